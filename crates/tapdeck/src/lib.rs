//! Run, record, replay, share and test terminal programs: the library behind the `tapdeck` command.
//!
//! # A session in a few lines
//!
//! [`Session`] runs a program on a terminal of its own. [`Recording`] is a session on disk.
//! [`Screen`] is what either shows, and [`row`], [`text`] and their like say what to wait for:
//!
//! ```
//! use std::time::Duration;
//! use tapdeck::{Recording, Session, row};
//!
//! # fn main() -> tapdeck::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = folder.path().join("demo.ahr");
//! let session = Session::builder(["sh"])
//!     .size(80, 24)
//!     .record(&file)
//!     .spawn()?; // a thread of its own; listed and attachable
//! session.type_line("echo answer $((6*7))")?;
//! session.wait_for(row("^answer 42$"), Duration::from_secs(10))?;
//! println!("{}", session.screen());
//! println!("{}", session.stop()?.exit);
//!
//! let mut tape = Recording::open(&file)?;
//! tape.seek(tape.duration()? / 2)?;
//! println!("{}", tape.screen());
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! - Run and drive a program: [`Session`], [`SessionBuilder`]; in a container or on another machine
//!   with [`SessionBuilder::on`], as a function of your own with [`SessionBuilder::in_process`].
//! - Watch what happens: [`Session::subscribe`] gives an [`Update`] for each change,
//!   [`SessionBuilder::tap`] every event.
//! - Read, convert, edit and compare recordings: [`Recording`], [`convert`], [`diff`]; their
//!   formats are in [`tape`].
//! - The terminal model alone, bytes to cells: [`term`].
//!
//! With the feature `live`, which is on by default, a session is listed and can be attached to by
//! `tapdeck attach`; `Remote` finds and drives such sessions, and `turns` knows what a shell or an
//! agent was asked and answered. With `testing`, the module `testing` drives programs in tests.
//! With `net`, the module `server` serves sessions over the network, and `Remote::dial` joins a
//! session there. `docker` and `ssh` add places to run programs. With `raster`, recordings are
//! converted to PNG, GIF and films too, and a [`Screen`] is drawn as a picture.
//!
//! The repository's `crates/tapdeck/examples` has a program for each of these.

mod cond;
pub mod convert;
pub mod diff;
mod error;
#[cfg(feature = "live")]
pub mod live;
pub mod paths;
mod recording;
#[cfg(feature = "live")]
mod remote;
mod screen;
pub mod scrub;
#[cfg(feature = "net")]
pub mod server;
mod session;
#[cfg(feature = "live")]
pub mod squad;
mod terminal;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "live")]
pub mod trees;
#[cfg(feature = "live")]
pub mod turns;
#[cfg(feature = "net")]
mod wire_session;

pub use cond::{Cond, cursor, quiet, row, state, style, text};
pub use error::{Error, Result};
pub use recording::{Events, Recording};
#[cfg(feature = "live")]
pub use remote::Remote;
pub use screen::Screen;
#[cfg(feature = "net")]
pub use session::Credentials;
pub use session::{Finished, Party, Session, SessionBuilder, Update, Updates};
pub use tapdeck_host::OutFile;
#[cfg(feature = "net")]
pub use tapdeck_host::backend::NewHost;
pub use terminal::Terminal;

/// What [`SessionBuilder::tap_with`] needs: a tap sees each entry of a session's log.
pub mod tap {
    #[doc(inline)]
    pub use tapdeck_core::{Entry, Lag, Seq, Stamp, Time, WallTime};
    #[doc(inline)]
    pub use tapdeck_host::{Tap, Wake};
}

#[doc(inline)]
pub use tapdeck_core::turns::AgentState;
#[doc(inline)]
pub use tapdeck_core::{Event, Exit, Role};
#[doc(inline)]
pub use tapdeck_host::backend;
#[doc(inline)]
pub use tapdeck_host::{KeepInput, LiveIndex, RecordOptions};
#[cfg(feature = "raster")]
#[doc(inline)]
pub use tapdeck_raster as raster;
#[cfg(feature = "live")]
#[doc(inline)]
pub use tapdeck_serve::wire;
#[doc(inline)]
pub use tapdeck_tape as tape;
#[doc(inline)]
pub use tapdeck_term as term;
