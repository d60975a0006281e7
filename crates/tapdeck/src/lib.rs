//! Run, record, replay, share and test terminal programs: the library behind the `tapdeck` command.
//!
//! The parts are the crates of the workspace, re-exported under one name: [`term`] is the terminal model,
//! [`core`] the session without I/O, [`tape`] the formats of recordings, [`host`] the operating system and
//! [`serve`] the sockets. [`testing`] drives and checks terminal programs in the tests of other projects.
//!
//! ```no_run
//! use tapdeck::host::{Launch, backend::CommandSpec};
//!
//! // Runs a program in the foreground of this process, transparently, and says how it ended.
//! let finished = Launch::new(CommandSpec::new(["vim", "notes.txt"])).run(None);
//! # let _ = finished;
//! ```
//!
//! ```
//! use tapdeck::term::{Settings, Size, Term};
//!
//! let mut term = Term::new(Size::new(20, 3), Settings::default());
//! term.feed(b"one\r\n\x1b[1mtwo\x1b[m");
//! let rows: Vec<String> = term.screen().map(|line| line.text()).collect();
//! assert_eq!(rows, ["one", "two", ""]);
//! ```

pub mod testing;

pub use tapdeck_core as core;
pub use tapdeck_host as host;
pub use tapdeck_serve as serve;
pub use tapdeck_tape as tape;
pub use tapdeck_term as term;
