//! `tapdeck tail` and `tapdeck bus`: what a session writes, and what passes on its bus.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use crate::ending::{Ending, output_failed, print, say};
use crate::sessions::{Failed, Which, ask, connect, find};

/// Print what a session has written lately, byte for byte.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck tail build             what it still remembers
  tapdeck tail -f build          and go on with what it writes from now on
  tapdeck tail -f build | grep --line-buffered error")]
pub(crate) struct TailArgs {
    #[command(flatten)]
    which: Which,
    /// Go on until the program ends
    #[arg(short, long)]
    follow: bool,
    /// Begin at this place in the output instead of 64 KB back
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

/// Print everything that passes on a session's bus, for debugging.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck bus build
  tapdeck bus build --frames delta | head")]
pub(crate) struct BusArgs {
    #[command(flatten)]
    which: Which,
    /// How the screen is sent
    #[arg(long, value_parser = ["full", "delta", "none"], default_value = "full")]
    frames: String,
}

pub(crate) fn run(args: &TailArgs) -> Ending {
    tail(args).unwrap_or_else(Failed::end)
}

fn tail(args: &TailArgs) -> Result<Ending, Failed> {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "tail", "observer")?;
    let info = ask(&mut bus, "INFO", "brief")?;
    let end = info["seq"].as_u64().unwrap_or(0);
    let since = args.since.unwrap_or_else(|| end.saturating_sub(64 * 1024));
    bus.send("SUB", &json!({"frames": "none", "since": since}).to_string())?;
    let mut out = std::io::stdout();
    let mut at = since.min(end);
    while args.follow || at < end {
        let Some(frame) = bus.next(None)? else { break };
        match frame.verb.as_str() {
            "OUT" => {
                let text: String = serde_json::from_str(&frame.payload).unwrap_or_default();
                let mut bytes: Vec<u8> =
                    text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
                if !args.follow {
                    // What came after the question is for those who follow.
                    bytes.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
                }
                at += bytes.len() as u64;
                if let Err(e) = out.write_all(&bytes).and_then(|()| out.flush()) {
                    output_failed(&e);
                }
            }
            "EVENT" => {
                let event = frame.json();
                match event["name"].as_str() {
                    Some("GAP") => {
                        at = event["to"].as_u64().unwrap_or(at);
                        say(format_args!("{} bytes are missing here", event["bytes"]));
                    }
                    Some("CLOSED") => break,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(Ending::Code(0))
}

pub(crate) fn run_bus(args: &BusArgs) -> Ending {
    listen(args).unwrap_or_else(Failed::end)
}

fn listen(args: &BusArgs) -> Result<Ending, Failed> {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "bus", "observer")?;
    bus.send("SUB", &json!({"frames": args.frames}).to_string())?;
    loop {
        match bus.next(None) {
            Ok(Some(frame)) => {
                print(format_args!("{} {}\n", frame.verb, frame.payload));
                let _ = std::io::stdout().flush();
                if frame.json().get("name").and_then(Value::as_str) == Some("CLOSED") {
                    return Ok(Ending::Code(0));
                }
            }
            Ok(None) => {}
            Err(tapdeck_serve::client::ClientError::Ended) => return Ok(Ending::Code(0)),
            Err(e) => return Err(e.into()),
        }
    }
}
