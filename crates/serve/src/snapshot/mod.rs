//! Snapshot IPC: a tool that takes a snapshot of the file system announces it to the recorder, and
//! learns where in the recording it belongs. Instructions come the same way.
//!
//! [`tapdeck_proto::snapshot`] has the messages. [`Door`] is a bound address. [`Server`] answers at
//! it, each client on a thread of its own, with limits that keep a bad client from harming others.
//! [`ask`] is the client, and [`find`] finds the recorder that a process runs under.

mod ask;
mod find;
mod frames;
mod server;

pub use crate::door::{Address, AddressError, Door, socket_name};
pub use ask::{AskError, ask};
pub use find::find;
pub use server::{Limits, Server};
pub use tapdeck_proto::snapshot::{
    Instruction, MAX_FRAME, MAX_LABEL, Request, Response, Snapshot, Taken, WireError, frame_len,
};
