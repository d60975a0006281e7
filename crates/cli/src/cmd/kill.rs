//! `tapdeck kill`: ends a session, or sends it a signal.

use clap::Args;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::{Event, Frames, Kill, Role, Sub};
use tapdeck_serve::client::{ClientError, connect_to};

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sessions::{ANSWER, ask, connect, find};

/// End a session, or send it a signal.
#[derive(Args)]
#[command(after_help = "\
Without --signal the program is asked to end, its terminal hangs up after two seconds, and it is
killed after ten.

Examples:
  tapdeck kill build
  tapdeck kill build --signal INT")]
pub(crate) struct KillArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// Send this signal to the terminal's foreground instead
    #[arg(short, long, value_name = "NAME")]
    signal: Option<String>,
}

pub(crate) fn run(args: &KillArgs) -> Result {
    if let Some(name) = &args.signal
        && tapdeck_host::signals::number(name).is_none()
    {
        return Err(Failure::usage(format!("no signal is called {name:?}")));
    }
    let listing = find(Some(&args.session))?;
    if args.signal.is_some() {
        let mut bus = connect(&listing, "kill", Role::Human)?;
        ask(&mut bus, &Kill { signal: args.signal.clone() })?;
        return Ok(Ending::Done);
    }
    match end(&listing) {
        // The session ended before it read the request.
        Ok(()) | Err(ClientError::Ended) => Ok(Ending::Done),
        Err(e) => Err(e.into()),
    }
}

/// Ends a session, and waits until it has ended.
fn end(listing: &Listing) -> Result<(), ClientError> {
    let mut bus = connect_to(listing, "kill", Role::Human)?;
    bus.request(&Sub { frames: Frames::None, out: false, looks: false, ..Sub::default() }, ANSWER)?;
    bus.request(&Kill::default(), ANSWER)?;
    loop {
        match bus.next(None) {
            Ok(Some(frame)) if matches!(frame.event(), Some(Event::Closed { .. })) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
    }
}
