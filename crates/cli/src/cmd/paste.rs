//! `tapdeck paste`: a prompt delivered to a session so that it is known whether it arrived.

use std::io::Read;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tapdeck_serve::client::Bus;

use crate::ending::{Ending, code, print, say};
use crate::human;
use crate::sessions::{Failed, ask, connect, find};

/// The longest text.
const MAX: u64 = 8 << 20;

/// Paste a prompt into a session, press Enter, and say whether it was taken.
#[derive(Args)]
#[command(after_help = "\
Waits until the program is ready, pastes the text as the modes in force want it, waits until its
end is on the screen, presses Enter once, and looks whether that was taken. Says submitted,
stalled or blocked, and why; ends with 0 only when it was submitted. Control characters are left
out. A text of several lines needs a program that has asked for bracketed paste: elsewhere every
line end would submit.

Examples:
  tapdeck paste claude 'fix the failing test'
  tapdeck paste claude - < prompt.md
  tapdeck paste build 'make test' --json")]
pub(crate) struct PasteArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The text; `-` or nothing for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Do not press Enter
    #[arg(long)]
    no_enter: bool,
    /// Send the text exactly as it is, control characters and line ends included
    #[arg(long)]
    raw: bool,
    /// How long each step may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    timeout: u64,
    /// Take the stick if somebody else drives
    #[arg(long)]
    take: bool,
    /// As a program, which never takes the stick from a person
    #[arg(long)]
    bot: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PasteArgs) -> Ending {
    paste(args).unwrap_or_else(|failed| failed.end_as(args.json))
}

fn paste(args: &PasteArgs) -> Result<Ending, Failed> {
    let text = match args.text.as_deref() {
        None | Some("-") => {
            let mut text = Vec::new();
            let read = std::io::stdin().take(MAX + 1).read_to_end(&mut text);
            read.map_err(|e| Failed(format!("cannot read the text: {e}"), code::IO))?;
            String::from_utf8(text).map_err(|e| {
                Failed(
                    format!("the text is not UTF-8, at byte {}", e.utf8_error().valid_up_to()),
                    code::USAGE,
                )
            })?
        }
        Some(text) => text.to_owned(),
    };
    let listing = find(Some(&args.session))?;
    let role = if args.bot { "bot" } else { "human" };
    let mut bus = connect(&listing, "paste", role)?;
    if args.take {
        ask(&mut bus, "TAKE", "")?;
    }
    let how = How { enter: !args.no_enter, raw: args.raw, wait: Duration::from_secs(args.timeout) };
    let outcome = deliver(&mut bus, &text, how)?;
    let what = outcome["outcome"].as_str().unwrap_or("stalled").to_owned();
    if args.json {
        print(format_args!("{}\n", human::json(&outcome)));
    } else {
        let why = human::printable(outcome["evidence"].as_str().unwrap_or(""));
        if is_fine(&outcome) {
            print(format_args!("{what}: {why}\n"))
        } else {
            say(format_args!("{what}: {why}"))
        }
    }
    Ok(Ending::Code(if is_fine(&outcome) { 0 } else { code::FAILED }))
}

/// How a text is delivered.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) enter: bool,
    pub(crate) raw: bool,
    pub(crate) wait: Duration,
}

/// Delivers a text and waits for the outcome.
pub(crate) fn deliver(bus: &mut Bus, text: &str, how: How) -> Result<Value, Failed> {
    if text.len() as u64 > MAX {
        return Err(Failed(format!("the text is longer than {} MiB", MAX >> 20), code::USAGE));
    }
    let wait_ms = u64::try_from(how.wait.as_millis()).unwrap_or(u64::MAX);
    let request = json!({"text": text, "enter": how.enter, "raw": how.raw, "wait_ms": wait_ms});
    // Four steps at most, each with its own limit.
    Ok(bus.ask("PASTE", &request.to_string(), how.wait * 4 + Duration::from_secs(10))?.json())
}

/// Whether the text got there.
pub(crate) fn is_fine(outcome: &Value) -> bool {
    matches!(outcome["outcome"].as_str(), Some("submitted" | "pasted"))
}
