//! The recorder's door for snapshots and instructions: the socket that `rec` opens, and its
//! answers.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use tapdeck::trees::TreeRequests;
use tapdeck_host::{Anchor, Clock, Handle, SnapshotError, registry};
use tapdeck_serve::snapshot::{
    Address, Door, Instruction, Limits, Request, Response, Server, Snapshot, Taken, socket_name,
};

use crate::ending::say;
use crate::failure::{Failure, Result};

/// The variable with the recorder's socket, for other programs of the same family.
pub(crate) const SOCKET_VAR: &str = "AH_RECORDER_IPC_SOCKET";
/// The variable with the session's id, which begins with its host's process id.
pub(crate) const SESSION_VAR: &str = "TAPDECK_SESSION";

/// How long a disk may take over a snapshot.
const DISK_LIMIT: Duration = Duration::from_secs(30);

/// The door to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ipc {
    /// A private Unix socket if there can be one.
    Auto,
    /// A private Unix socket.
    Uds,
    Tcp(SocketAddr),
    Off,
}

impl Ipc {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Ipc::Auto),
            "uds" => Ok(Ipc::Uds),
            "off" => Ok(Ipc::Off),
            _ if text.starts_with("tcp:") => match text.parse::<Address>().map_err(|e| e.to_string())? {
                Address::Tcp(address) => Ok(Ipc::Tcp(address)),
                Address::Unix(_) => Err("expected tcp:HOST:PORT".to_owned()),
            },
            _ => Err("expected auto, uds, tcp:HOST:PORT or off".to_owned()),
        }
    }

    /// Opens the door before the program starts. With `auto`, a recording goes on without one.
    pub(crate) fn open(&self, needed: bool) -> Result<Option<Door>> {
        let opened = match self {
            Ipc::Off => return Ok(None),
            Ipc::Auto | Ipc::Uds => private_socket(),
            Ipc::Tcp(address) => Door::tcp(*address).map_err(|e| format!("tcp:{address}: {e}")),
        };
        match opened {
            Ok(door) => Ok(Some(door)),
            Err(why) if *self == Ipc::Auto && !needed => {
                say(format_args!("snapshots cannot be announced to this recording: {why}"));
                Ok(None)
            }
            Err(why) => Err(Failure::io(format!("cannot open the door for snapshots: {why}"))),
        }
    }
}

/// Binds a socket in the folder of the user's live sessions.
fn private_socket() -> Result<Door, String> {
    let folder = registry::folder().map_err(|e| e.to_string())?;
    let path = folder.join(socket_name(std::process::id()));
    Door::unix(&path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The variables that tell a program about its recorder.
pub(crate) fn exports(session: Option<&str>, ipc: Option<&str>) -> Vec<(OsString, Option<OsString>)> {
    let session = session.map_or_else(|| std::process::id().to_string(), str::to_owned);
    let mut vars = vec![(SESSION_VAR.into(), Some(session.into()))];
    if let Some(ipc) = ipc {
        vars.push((SOCKET_VAR.into(), Some(ipc.into())));
    }
    vars
}

/// Answers at the door until the server is dropped.
pub(crate) fn answer(door: Option<Door>, handle: Handle, trees: Option<TreeRequests>) -> Option<Server> {
    let clock = Clock::start();
    let server = Server::start(door?, Limits::default(), move |request| {
        let taken = match request {
            Request::Snapshot(Snapshot { id, label }) => match &trees {
                Some(trees) => trees.snapshot(id, &label),
                None => handle.snapshot(id, &label, DISK_LIMIT),
            }
            .map(|anchor| (id, anchor)),
            Request::Instruction(asked) => instruct(&handle, asked, clock),
        };
        match taken {
            Ok((id, Anchor { byte, at })) => {
                Response::Success(Taken { id, anchor_byte: byte.0, ts_ns: at.as_nanos() })
            }
            Err(why) => Response::Failure(why.to_string()),
        }
    });
    // Without a thread the session goes on; its clients see a closed door.
    server.ok()
}

/// Has an instruction recorded.
fn instruct(handle: &Handle, asked: Instruction, clock: Clock) -> Result<(u64, Anchor), SnapshotError> {
    let Instruction { id, anchor_byte, text } = asked;
    let anchor = Some(anchor_byte).filter(|byte| *byte != u64::MAX);
    let instruction = tapdeck_core::Instruction { id, anchor, text, ..Default::default() };
    handle.instruct(instruction, clock.now().wall, DISK_LIMIT)
}
