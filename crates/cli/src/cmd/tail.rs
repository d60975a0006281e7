//! `tapdeck tail`: prints what a session writes.

use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags};
use tapdeck_host::{Keyboard, Pressed};
use tapdeck_proto::bus::{Event, Frames, InfoWanted, Push, Role, Sub};

use crate::ending::{Ending, say};
use crate::failure::Result;
use crate::screen::OutputStream;
use crate::sessions::{Which, ask, connect, find};

/// Print a session's recent output.
///
/// A file or a pipe gets it byte for byte. A terminal gets only what draws: nothing that makes it
/// answer or changes its settings.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck tail build             the last 64 KB of output
  tapdeck tail -f build          and follow new output
  tapdeck tail -f build | grep --line-buffered error")]
pub(crate) struct TailArgs {
    #[command(flatten)]
    which: Which,
    /// Keep printing new output until the program exits
    #[arg(short, long)]
    follow: bool,
    /// Start at this output offset instead of 64 KB before the end
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

pub(crate) fn run(args: &TailArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "tail", Role::Observer)?;
    let status = ask(&mut bus, &InfoWanted::Brief)?.status;
    let end = status.seq;
    let mut failed = status.recording_error;
    let since = args.since.unwrap_or_else(|| end.saturating_sub(64 * 1024));
    bus.tell(&Sub { frames: Frames::None, since: Some(since), ..Sub::default() })?;
    let mut at = since.min(end);
    let mut stream = OutputStream::stdout();
    // A signal is the usual end of --follow, and must leave a usable terminal.
    let mut keyboard = Keyboard::ends_only()?;
    while args.follow || at < end {
        let Some(frame) = bus.next(Some(Duration::ZERO))? else {
            let mut fds = [PollFd::from_borrowed_fd(bus.fd(), PollFlags::IN)];
            if let Pressed::Signal(signal) = keyboard.wait_beside(None, &mut fds)? {
                stream.end();
                return Ok(Ending::by_signal(signal));
            }
            continue;
        };
        match frame.push() {
            Some(Push::Out(mut bytes)) => {
                if !args.follow {
                    // Output after the request is only for --follow.
                    bytes.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
                }
                at += bytes.len() as u64;
                stream.pass_on(&bytes);
            }
            Some(Push::Event(Event::Gap { to, bytes, .. })) => {
                at = to;
                say(format_args!("output is missing here: {}", crate::human::bytes(bytes)));
            }
            Some(Push::Event(Event::Recording { error: Some(why), .. })) => failed = Some(why),
            Some(Push::Event(Event::Closed { .. })) => break,
            _ => {}
        }
    }
    stream.end();
    if let Some(why) = failed {
        say(format_args!("the recording of {} failed: {why}", listing.shown()));
    }
    Ok(Ending::Done)
}
