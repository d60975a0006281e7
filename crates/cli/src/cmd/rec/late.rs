//! `tapdeck rec --attach`: a recording of a session that runs already.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck::scrub::packs;
use tapdeck_host::{Clock, Keyboard, Pressed, is_locked};
use tapdeck_proto::bus::{Event, Frames, Rec, Role, Sub};
use tapdeck_serve::client::{Bus, connect_to_watch};
use tapdeck_tape::ahr;

use super::{NATIVE, RecArgs};
use crate::ending::{Ending, Kind, say};
use crate::failure::{Failure, Result};
use crate::keys::recipients;
use crate::sessions::{ask, find};

/// How long the host may take to finish the file after the program's end.
const FINISH: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &RecArgs, session: &str) -> Result {
    let listing = find(Some(session))?;
    let program = listing.command.first().map(PathBuf::from).unwrap_or_default();
    let path = std::path::absolute(args.place(&program)?)?;
    let Some(text) = path.to_str() else {
        return Err(Failure::usage("the recording's name is not UTF-8: give another"));
    };
    if args.container(&path)? != NATIVE {
        return Err(Failure::usage("a late recording is an .ahr: see tapdeck convert"));
    }
    // From here on Ctrl-C ends the recording, not only this process.
    let mut keyboard = Keyboard::signals_only()?;
    let mut bus = connect_to_watch(&listing, "recorder", Role::Human)?;
    let started = ask(
        &mut bus,
        &Rec {
            path: Some(text.to_owned()),
            input: args.input,
            hidden_input: args.hidden_input,
            quality: Some(args.brotli_q.into()),
            overwrite: args.overwrite,
            title: args.title.clone(),
            tags: args.tag.iter().cloned().collect(),
            encrypt: recipients(&args.encrypt)?.map(|keys| keys.to_string()),
            scrub: args.scrub.as_ref().map(|list| packs(std::slice::from_ref(list))),
            stop: None,
        },
    )?;
    let from = started.from;
    if !args.quiet {
        let since = if from == 0 { "its beginning".to_owned() } else { format!("byte {from} of its output") };
        say(format_args!("recording {} from {since} in {text}; Ctrl-C stops the recording", listing.shown()));
    }
    ask(&mut bus, &Sub { frames: Frames::None, out: false, ..Sub::default() })?;
    follow(&mut bus, &mut keyboard, text, &path, args.quiet)
}

/// Waits for the session's end or a signal, and then for the host to finish the file.
fn follow(bus: &mut Bus, keyboard: &mut Keyboard, text: &str, path: &Path, quiet: bool) -> Result {
    let (mut over, mut failed) = (false, false);
    while !over {
        {
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(bus.fd(), rustix::event::PollFlags::IN)];
            if let Pressed::Signal(_) = keyboard.wait_beside(None, &mut fds)? {
                let stopped = ask(bus, &Rec { stop: Some(text.to_owned()), ..Rec::default() });
                // What is refused then is what went wrong, and that has been said.
                stopped.map(drop).or_else(|e| if failed { Ok(()) } else { Err(e.with_kind(Kind::Io)) })?;
                break;
            }
        }
        while let Ok(Some(frame)) = bus.next(Some(Duration::ZERO)) {
            match frame.event() {
                Some(Event::Closed { .. }) => over = true,
                Some(Event::Recording { path, error: Some(why), .. }) if path == text => {
                    say(format_args!("recording {text}: {why}"));
                    failed = true;
                }
                _ => {}
            }
        }
        over |= bus.next(Some(Duration::ZERO)).is_err();
    }
    if failed {
        return Ok(Ending::Failed(Kind::Io));
    }
    // The host keeps the file locked until it is finished.
    let clock = Clock::start();
    while is_locked(path) || !is_finished(path) {
        if clock.elapsed() > FINISH {
            return Err(Failure::io(format!("{text} has not been finished: see tapdeck verify")));
        }
        if let Pressed::Signal(signal) = keyboard.wait(Some(Duration::from_millis(20)))? {
            return Ok(Ending::by_signal(signal));
        }
    }
    if !quiet {
        say(format_args!("recorded in {text}"));
    }
    Ok(Ending::Done)
}

/// Whether a recording ends with a block that says so.
fn is_finished(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| ahr::tail(file).is_ok_and(|tail| tail.is_last))
}
