//! Snapshot IPC: how a tool that takes a snapshot of the file system tells the recorder, and learns where in
//! the recording it belongs.
//!
//! [`wire`](self) is the codec, a hand-written SSZ of two small messages; [`Door`] a bound address; [`Server`]
//! answers at it, each client on a thread of its own, with limits that keep a bad client from harming
//! anybody; [`ask`] is the client, and [`find`] finds the recorder that a process runs under.

mod ask;
mod find;
mod frames;
mod server;
mod wire;

pub use crate::door::{Address, AddressError, Door, default_folder, socket_name};
pub use ask::{AskError, ask};
pub use find::find;
pub use server::{Limits, Server};
pub use wire::{MAX_FRAME, MAX_LABEL, Response, Snapshot, Taken, WireError, frame_len};
