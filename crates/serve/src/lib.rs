//! The doors of a session: sockets, and the protocols spoken through them. A door holds no state of
//! the session; it asks the session through its handle.
//!
//! A live session from outside, by its bus (what may be asked is in `docs/protocols.md`):
//!
//! ```no_run
//! use tapdeck_proto::bus::{Cmd, Snap};
//! use tapdeck_serve::client::{ANSWER, Role, connect_to, find};
//!
//! let session = find(Some("work"))?;
//! let mut bus = connect_to(&session, "example", Role::Bot)?;
//! let answer = bus.request(&Cmd("git status".into()), ANSWER)?;
//! println!("{}", answer.text);
//! let screen = bus.request(&Snap::default(), ANSWER)?;
//! println!("{}", screen.contents.rows.join("\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "mcp")]
pub mod acp;
pub mod admission;
#[cfg(feature = "web")]
pub mod agentapi;
pub mod broker;
pub mod client;
mod conn;
pub mod door;
pub mod live;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "net")]
pub mod net;
#[cfg(any(feature = "mcp", feature = "web"))]
mod new_session;
mod paint;
#[cfg(any(feature = "mcp", feature = "web"))]
mod recordings;
pub mod snapshot;
#[cfg(feature = "ssh")]
pub mod ssh_door;
#[cfg(feature = "net")]
pub mod tokens;
#[cfg(feature = "web")]
pub mod web;
pub mod wire;

#[cfg(any(feature = "mcp", feature = "web"))]
pub use new_session::NewSession;
