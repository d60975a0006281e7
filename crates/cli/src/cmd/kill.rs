//! `tapdeck kill` and `tapdeck resize`.

use clap::Args;
use serde_json::json;
use tapdeck_core::WinSize;
use tapdeck_host::registry::Listing;
use tapdeck_serve::client::{ClientError, connect_to};

use crate::ending::{Ending, code};
use crate::parse;
use crate::sessions::{ANSWER, Failed, ask, connect, find};

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

/// Set the size of a session's terminal.
#[derive(Args)]
#[command(after_help = "Example:\n  tapdeck resize build 120x40")]
pub(crate) struct ResizeArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The size
    #[arg(value_name = "COLSxROWS", value_parser = parse::size)]
    size: WinSize,
}

pub(crate) fn run(args: &KillArgs) -> Ending {
    kill(args).unwrap_or_else(Failed::end)
}

fn kill(args: &KillArgs) -> Result<Ending, Failed> {
    if let Some(name) = &args.signal
        && tapdeck_host::signals::number(name).is_none()
    {
        return Err(Failed(format!("no signal is called {name:?}"), code::USAGE));
    }
    let listing = find(Some(&args.session))?;
    if args.signal.is_some() {
        let mut bus = connect(&listing, "kill", "human")?;
        ask(&mut bus, "KILL", &json!({"signal": args.signal}).to_string())?;
        return Ok(Ending::Code(0));
    }
    match end(&listing) {
        // It was over before it heard of this.
        Ok(()) | Err(ClientError::Ended) => Ok(Ending::Code(0)),
        Err(e) => Err(e.into()),
    }
}

/// Has a session end, and waits until it has.
fn end(listing: &Listing) -> Result<(), ClientError> {
    let mut bus = connect_to(listing, "kill", "human")?;
    bus.ask("SUB", &json!({"frames": "none", "out": false, "looks": false}).to_string(), ANSWER)?;
    bus.ask("KILL", "{}", ANSWER)?;
    // Done when it is done, not when it was asked to.
    loop {
        match bus.next(None) {
            Ok(Some(frame)) if frame.json()["name"] == "CLOSED" => return Ok(()),
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
    }
}

pub(crate) fn run_resize(args: &ResizeArgs) -> Ending {
    resize(args).unwrap_or_else(Failed::end)
}

fn resize(args: &ResizeArgs) -> Result<Ending, Failed> {
    let listing = find(Some(&args.session))?;
    let mut bus = connect(&listing, "resize", "human")?;
    ask(&mut bus, "RESIZE", &json!({"cols": args.size.cols, "rows": args.size.rows}).to_string())?;
    Ok(Ending::Code(0))
}
