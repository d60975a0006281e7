//! `tapdeck deliver`: delivers the captured turn to a session, the clipboard or a file.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tapdeck_core::base64;
use tapdeck_proto::broker::{self, ErrorCode, Request};
use tapdeck_serve::broker::{BrokerClient, BrokerError};

use crate::ending::{Ending, print};
use crate::failure::{Failure, Result};
use crate::sessions::{find, id_or_name};

/// Deliver the captured turn.
#[derive(Args)]
#[command(after_help = "\
inject pastes the text without control characters and does not submit it. A program that is not in
bracketed paste mode gets the text on one line.

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
    /// Paste it into a session's prompt, without submitting it
    Inject {
        /// Id or name of a session [default: the only session]
        #[arg(value_name = "SESSION")]
        session: Option<String>,
        /// Send the exact bytes, including control characters
        #[arg(long)]
        raw: bool,
    },
    /// Copy it to the clipboard, with the desktop's tools or through this terminal (OSC 52)
    Clipboard,
    /// Write it to a file, which is replaced
    File {
        /// The file
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

pub(crate) fn run(args: &DeliverArgs) -> Result {
    let mut broker = BrokerClient::connect()?;
    let target = match &args.target {
        Target::Inject { session, raw } => {
            let session = match session {
                Some(name) => id_or_name(name),
                None => find(None)?.id,
            };
            broker::Target::Inject { session, raw: *raw }
        }
        Target::File { path } => {
            let path = std::path::absolute(path).map_err(|e| Failure::usage(e.to_string()))?;
            let path = path.to_str().ok_or_else(|| Failure::usage("the file's name is not UTF-8"))?;
            broker::Target::File { path: path.to_owned() }
        }
        Target::Clipboard => {
            let desktop = desktop();
            if !desktop.is_named() {
                return through_terminal(&mut broker);
            }
            broker::Target::Clipboard(desktop)
        }
    };
    let answer = match broker.ask(&Request::Deliver(target)) {
        Err(BrokerError::Refused { error: ErrorCode::SinkFailed, .. })
            if matches!(args.target, Target::Clipboard) =>
        {
            return through_terminal(&mut broker);
        }
        answer => answer?,
    };
    print(format_args!("delivered {}\n", answer.turn_id().unwrap_or("-")));
    Ok(Ending::Done)
}

/// The desktop of this command, which need not be the broker's.
fn desktop() -> broker::Desktop {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    broker::Desktop {
        display: variable("DISPLAY"),
        wayland_display: variable("WAYLAND_DISPLAY"),
        xauthority: variable("XAUTHORITY"),
    }
}

/// Sets the clipboard through the terminal, for a desktop without a tool for it.
fn through_terminal(broker: &mut BrokerClient) -> Result {
    let temp = tempfile::tempdir().map_err(|e| Failure::io(e.to_string()))?;
    let path = temp.path().join("turn");
    let file = broker::Target::File { path: path.to_str().unwrap_or_default().to_owned() };
    broker.ask(&Request::Deliver(file))?;
    let failed = |e: std::io::Error| Failure::io(format!("no clipboard can be reached: {e}"));
    let content = std::fs::read(&path).map_err(failed)?;
    let mut tty = std::fs::OpenOptions::new().write(true).open("/dev/tty").map_err(failed)?;
    let sequence = format!("\x1b]52;c;{}\x07", base64::encode(&content));
    tty.write_all(sequence.as_bytes()).map_err(failed)?;
    print(format_args!("delivered through this terminal\n"));
    Ok(Ending::Done)
}
