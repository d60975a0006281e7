//! `tapdeck snapshot`: tells the recorder that a snapshot of the file system was taken.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tapdeck_serve::snapshot::{Address, Snapshot, ask, find};

use crate::ending::{Ending, print};
use crate::failure::{Failure, Result};
use crate::snapshot_door::{SESSION_VAR, SOCKET_VAR};

/// Longer than the recorder takes to say that its disk does not answer.
const PATIENCE: Duration = Duration::from_secs(40);

/// Add a file system snapshot to the recording.
#[derive(Args)]
#[command(after_help = "\
Run it after you take a snapshot of the file system. It prints the output offset of the snapshot, in
bytes. By then the recording is on disk, including the snapshot.

Finds the recorder by --socket, else by $AH_RECORDER_IPC_SOCKET, else the one that records this
command.

Examples:
  tapdeck snapshot --id 42 --label 'before the upgrade'
  tapdeck snapshot --id 43 --json
  tapdeck snapshot --id 44 --socket tcp:127.0.0.1:7001")]
pub(crate) struct SnapshotArgs {
    /// Number of the snapshot
    #[arg(long, value_name = "N")]
    id: u64,
    /// Label of the snapshot
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Address of the recorder: a path or tcp:HOST:PORT
    #[arg(long, value_name = "ADDR")]
    socket: Option<Address>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &SnapshotArgs) -> Result {
    let line = tell(args).map_err(|failure| failure.about("id", args.id))?;
    print(format_args!(
        "{line}
"
    ));
    Ok(Ending::Done)
}

fn tell(args: &SnapshotArgs) -> Result<String> {
    let address = recorder(args)?;
    let snapshot = Snapshot { id: args.id, label: args.label.clone() };
    let taken = ask(&address, &snapshot.into(), PATIENCE)?;
    if !args.json {
        return Ok(taken.anchor_byte.to_string());
    }
    let (anchor_byte, ts_ns) = (taken.anchor_byte, taken.ts_ns);
    Ok(json!({"id": taken.id, "anchor_byte": anchor_byte, "ts_ns": ts_ns, "label": args.label}).to_string())
}

/// Finds the recorder to tell.
fn recorder(args: &SnapshotArgs) -> Result<Address> {
    if let Some(address) = &args.socket {
        return Ok(address.clone());
    }
    if let Some(text) = std::env::var_os(SOCKET_VAR).filter(|v| !v.is_empty()) {
        return match text.into_string() {
            Ok(text) => text.parse().map_err(|e| Failure::usage(format!("{SOCKET_VAR}: {e}"))),
            Err(path) => Ok(Address::Unix(path.into())),
        };
    }
    let exported = std::env::var(SESSION_VAR).ok().and_then(|pid| pid.parse().ok());
    exported.and_then(|pid| find(Some(pid))).or_else(|| find(None)).ok_or_else(|| {
        let message = "this command runs in no recorded session: name the recorder's --socket";
        Failure::not_found(message)
    })
}
