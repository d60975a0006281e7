//! `tapdeck bus`: prints what passes on a session's bus.

use clap::Args;
use tapdeck_proto::bus::{Event, Frames, Role, Sub};
use tapdeck_serve::client::ClientError;
use tapdeck_term::printable_json;

use crate::ending::{Ending, print_bytes};
use crate::failure::Result;
use crate::sessions::{Which, connect, find};

/// Print all messages of a session's bus, for debugging.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck bus build
  tapdeck bus build --frames delta | head")]
pub(crate) struct BusArgs {
    #[command(flatten)]
    which: Which,
    /// How to get the screen: as full frames, as deltas, or not at all
    #[arg(long, value_parser = ["full", "delta", "none"], default_value = "full")]
    frames: String,
}

pub(crate) fn run(args: &BusArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "bus", Role::Observer)?;
    let frames = match args.frames.as_str() {
        "delta" => Frames::Delta,
        "none" => Frames::None,
        _ => Frames::Full,
    };
    bus.tell(&Sub { frames, ..Sub::default() })?;
    loop {
        match bus.next(None) {
            Ok(Some(frame)) => {
                let line = printable_json(format!("{} {}", frame.verb, frame.payload));
                print_bytes(format!("{line}\n").as_bytes());
                if matches!(frame.event(), Some(Event::Closed { .. })) {
                    return Ok(Ending::Done);
                }
            }
            Ok(None) => {}
            Err(ClientError::Ended) => return Ok(Ending::Done),
            Err(e) => return Err(e.into()),
        }
    }
}
