//! The doors of a session: sockets, and what is spoken through them. A door holds no state of the session; it
//! asks the session through its handle.

pub mod broker;
pub mod client;
mod conn;
pub mod door;
pub mod live;
#[cfg(feature = "net")]
pub mod net;
mod paint;
pub mod snapshot;
#[cfg(feature = "ssh")]
pub mod ssh_door;
#[cfg(feature = "net")]
pub mod tokens;
#[cfg(feature = "web")]
pub mod web;
pub mod wire;
