//! `tapdeck send` and `tapdeck type`: keys and text for a session.

use std::io::Read;

use clap::Args;
use serde_json::json;
use tapdeck_term::keys::KeyPress;

use crate::ending::{Ending, code};
use crate::sessions::{Failed, ask, connect, find};

/// Send keys to a session.
#[derive(Args)]
#[command(after_help = "\
Keys have the names that tmux gives them: Enter, Tab, BSpace, Escape, Up, F5, C-c, M-x, S-Left; a
single character is itself. They are sent as the program's modes want them.

Examples:
  tapdeck send build C-c --take
  tapdeck send build Up Enter
  tapdeck send build : w q Enter")]
pub(crate) struct SendArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The keys, in order
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    who: Who,
}

/// Type text into a session.
#[derive(Args)]
#[command(after_help = "\
Line ends are typed as Enter. Nothing else is added: --enter presses Enter at the end.

Examples:
  tapdeck type build 'make test' --enter
  tapdeck type build - < script.sh")]
pub(crate) struct TypeArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The text; `-` for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// Press Enter at the end
    #[arg(short, long)]
    enter: bool,
    #[command(flatten)]
    who: Who,
}

/// As whom.
#[derive(Args)]
struct Who {
    /// Take the stick if somebody else drives
    #[arg(long)]
    take: bool,
    /// As a program, which never takes the stick from a person
    #[arg(long)]
    bot: bool,
}

pub(crate) fn run(args: &SendArgs) -> Ending {
    for key in &args.keys {
        if let Err(e) = key.parse::<KeyPress>() {
            return Failed(e.to_string(), code::USAGE).end();
        }
    }
    deliver(&args.session, &args.who, &json!({"keys": args.keys})).unwrap_or_else(Failed::end)
}

pub(crate) fn run_type(args: &TypeArgs) -> Ending {
    let mut text = String::new();
    if args.text == "-" {
        if let Err(e) = std::io::stdin().read_to_string(&mut text) {
            return Failed(format!("cannot read the text: {e}"), code::IO).end();
        }
    } else {
        text.clone_from(&args.text);
    }
    if args.enter {
        text.push('\n');
    }
    deliver(&args.session, &args.who, &json!({"text": text})).unwrap_or_else(Failed::end)
}

/// Sends it in pieces that the session takes, and gives the stick back if it was taken for this.
fn deliver(session: &str, who: &Who, what: &serde_json::Value) -> Result<Ending, Failed> {
    const PIECE: usize = 32 * 1024;
    let listing = find(Some(session))?;
    let mut bus = connect(&listing, "send", if who.bot { "bot" } else { "human" })?;
    if who.take {
        ask(&mut bus, "TAKE", "")?;
    }
    let pieces: Vec<serde_json::Value> = match what["text"].as_str() {
        None => vec![what.clone()],
        Some(text) => {
            let chars: Vec<char> = text.chars().collect();
            chars.chunks(PIECE).map(|c| json!({"text": c.iter().collect::<String>()})).collect()
        }
    };
    for mut piece in pieces {
        piece["confirm"] = json!(true);
        // A program that is slow to read makes whoever types wait, not fail.
        loop {
            match ask(&mut bus, "KEY", &piece.to_string()) {
                Ok(_) => break,
                Err(Failed(why, _)) if why.contains("is not reading") => {
                    bus.next(Some(std::time::Duration::from_millis(20)))?;
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok(Ending::Code(0))
}
