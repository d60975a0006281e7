//! `tapdeck kill` and `tapdeck resize`.

use clap::Args;
use serde_json::{Value, json};
use tapdeck_core::WinSize;

use super::sessions::{Failed, ask, connect, find};
use crate::ending::{Ending, code};
use crate::parse;

/// End a session, or send it a signal.
#[derive(Args)]
#[command(after_help = "\
Without --signal the program is asked to end, its terminal hangs up after two seconds, and it is killed
after ten.

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
    let mut bus = connect(&listing, "kill", "human")?;
    if args.signal.is_none() {
        ask(&mut bus, "SUB", &json!({"frames": "none", "out": false}).to_string())?;
    }
    ask(&mut bus, "KILL", &json!({"signal": args.signal}).to_string())?;
    if args.signal.is_some() {
        return Ok(Ending::Code(0));
    }
    // Done when it is done, not when it was asked to.
    loop {
        match bus.next(None) {
            Ok(Some(frame)) if frame.json().get("name").and_then(Value::as_str) == Some("CLOSED") => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(Ending::Code(0))
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
