//! `tapdeck kill`: ends sessions, or sends them a signal.

use std::time::Duration;

use clap::Args;
use tapdeck_host::Clock;
use tapdeck_host::registry::{self, Listing};
use tapdeck_proto::bus::{Event, Frames, Kill, Role, Sub};
use tapdeck_serve::client::{ClientError, connect_to};

use crate::ending::{Ending, Report};
use crate::failure::{Failure, Result};
use crate::sessions::{ANSWER, alive, ask, connect, find};

/// How long a session that has ended may take to leave the list, and how often it is looked.
const UNLISTED: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// End sessions, or send them a signal.
#[derive(Args)]
#[command(after_help = "\
Sends SIGTERM, SIGHUP if the program still runs after 2 seconds, and SIGKILL 10 seconds after that.
Returns when the session has ended.

Examples:
  tapdeck kill build
  tapdeck kill build nightly
  tapdeck kill --all
  tapdeck kill build --signal INT")]
pub(crate) struct KillArgs {
    /// Ids or names of live sessions, or unique prefixes [default: the only session]
    #[arg(value_name = "SESSION", conflicts_with = "all")]
    sessions: Vec<String>,
    /// All live sessions
    #[arg(short, long)]
    all: bool,
    /// Send this signal to the foreground process group instead
    #[arg(short, long, value_name = "NAME")]
    signal: Option<String>,
}

pub(crate) fn run(args: &KillArgs) -> Result {
    if let Some(name) = &args.signal
        && tapdeck_host::signals::number(name).is_none()
    {
        return Err(Failure::usage(format!("no signal is called {name:?}; see kill -l")));
    }
    let found: Vec<Result<Listing>> = match args.all {
        true => alive()?.1.into_iter().map(Ok).collect(),
        false if args.sessions.is_empty() => vec![find(None)],
        false => args.sessions.iter().map(|session| find(Some(session))).collect(),
    };
    // All at once: each may take seconds to end.
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let kill = |found: Result<Listing>| scope.spawn(move || kill(&found?, args.signal.as_deref()));
        let killers: Vec<_> = found.into_iter().map(kill).collect();
        let broken = |_| Err(Failure::internal("a thread broke down"));
        killers.into_iter().map(|killer| killer.join().unwrap_or_else(broken)).collect()
    });
    let failures = results.into_iter().filter_map(Result::err);
    Ok(failures.map(|failure| failure.report(Report::Text)).fold(Ending::Done, Ending::worse))
}

/// Ends a session and waits until it has ended, or sends its program a signal.
pub(super) fn kill(listing: &Listing, signal: Option<&str>) -> Result<()> {
    if signal.is_some() {
        let mut bus = connect(listing, "kill", Role::Human)?;
        ask(&mut bus, &Kill { signal: signal.map(str::to_owned) })?;
        return Ok(());
    }
    match end(listing) {
        // The session ended before it read the request.
        Ok(()) | Err(ClientError::Ended) => {}
        Err(e) => return Err(e.into()),
    }
    // The session takes itself off the list last. One that cannot is cleared by the next `ls`.
    let clock = Clock::start();
    while registry::is_alive(listing.pid) && listing.socket.exists() && clock.elapsed() < UNLISTED {
        std::thread::park_timeout(LOOK);
    }
    Ok(())
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
