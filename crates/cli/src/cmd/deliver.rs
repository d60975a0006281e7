//! `tapdeck deliver`: delivers the captured turn to a session, the clipboard or a file.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tapdeck_core::base64;
use tapdeck_serve::broker::msgpack::Value;
use tapdeck_serve::broker::{Asked, BrokerError};

use crate::ending::{Ending, print};
use crate::failure::{Failure, Result};
use crate::sessions::id_or_name;

/// Deliver what was captured.
#[derive(Args)]
#[command(after_help = "\
What is injected is pasted, not submitted: as text, without control characters, in brackets where
the program has asked for them, and on one line where it has not.

Examples:
  tapdeck deliver inject codex
  tapdeck deliver clipboard
  tapdeck deliver file answer.md")]
pub(crate) struct DeliverArgs {
    #[command(subcommand)]
    target: Target,
}

#[derive(Subcommand)]
enum Target {
    /// Into the prompt of a session
    Inject {
        /// Id or name of the session
        #[arg(value_name = "SESSION")]
        session: String,
        /// The exact bytes, control characters included
        #[arg(long)]
        raw: bool,
    },
    /// Onto the clipboard, by the desktop's own tools or through this terminal (OSC 52)
    Clipboard,
    /// Into a file, which is replaced
    File {
        /// The file
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

pub(crate) fn run(args: &DeliverArgs) -> Result {
    let mut broker = Asked::connect()?;
    let answer = match &args.target {
        Target::Inject { session, raw } => broker.ask(
            "deliver",
            [
                ("sink", "inject".into()),
                ("session", Value::Str(id_or_name(session))),
                ("raw", Value::Bool(*raw)),
            ],
        )?,
        Target::File { path } => {
            let path = std::path::absolute(path).map_err(|e| Failure::usage(e.to_string()))?;
            let path = path.to_str().ok_or_else(|| Failure::usage("the file's name is not UTF-8"))?;
            broker.ask("deliver", [("sink", "file".into()), ("path", path.into())])?
        }
        Target::Clipboard => match broker.ask("deliver", [("sink", "clipboard".into())]) {
            Err(BrokerError::Refused { error, .. }) if error == "sink_failed" => {
                return through_terminal(&mut broker);
            }
            answer => answer?,
        },
    };
    let id = answer.get("turn_id").and_then(Value::as_str).unwrap_or("-").to_owned();
    print(format_args!("delivered {id}\n"));
    Ok(Ending::Done)
}

/// Sets the clipboard through the terminal, for a desktop without a tool for it.
fn through_terminal(broker: &mut Asked) -> Result {
    let temp = tempfile::tempdir().map_err(|e| Failure::io(e.to_string()))?;
    let path = temp.path().join("turn");
    let name = path.to_str().unwrap_or_default().to_owned();
    broker.ask("deliver", [("sink", "file".into()), ("path", Value::Str(name))])?;
    let failed = |e: std::io::Error| Failure::io(format!("no clipboard can be reached: {e}"));
    let content = std::fs::read(&path).map_err(failed)?;
    let mut tty = std::fs::OpenOptions::new().write(true).open("/dev/tty").map_err(failed)?;
    let sequence = format!("\x1b]52;c;{}\x07", base64::encode(&content));
    tty.write_all(sequence.as_bytes()).map_err(failed)?;
    print(format_args!("delivered through this terminal\n"));
    Ok(Ending::Done)
}
