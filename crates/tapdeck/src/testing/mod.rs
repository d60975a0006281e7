//! Testing terminal programs: drive one and check what it shows, or check a recording of one
//! without it.
//!
//! A test of another project's drives its program in a few lines. Waits end with the output that
//! they wait for; a wait
//! in vain fails with a picture of the screen.
//!
//! ```no_run
//! use tapdeck::testing::Session;
//!
//! # fn main() -> tapdeck::testing::TestResult {
//! let mut less = Session::start(["less", "Cargo.toml"])?;
//! less.expect("[package]")?;
//! less.type_text("/version\n")?;
//! less.expect("version")?;
//! less.send("q")?;
//! less.finish()?.success()
//! # }
//! ```
//!
//! [`run_all`] runs scenario files, live or from their cassettes, as `tapdeck test` does:
//!
//! ```no_run
//! # fn main() -> tapdeck::testing::TestResult {
//! tapdeck::testing::run_all("tests/scenarios", tapdeck::testing::How::Cassette)?;
//! # Ok(())
//! # }
//! ```

mod collect;
mod finished;
mod halt;
mod live;
mod picture;
mod pointer;
mod replay;
mod report;
mod scenario;
mod session;
mod sources;

use std::fmt;
use std::panic::Location;

pub use finished::Finished;
pub use halt::Halt;
pub use live::Pending;
pub use report::{json_report, junit, write_report};
pub use scenario::{
    Case, Change, Evidence, Fault, How, Outcome, Remedy, Report, Summary, find, join_bindings, run, run_all,
    run_all_reported, run_on, summary,
};
pub use session::{Program, Session};
pub use tapdeck_core::check;
pub use tapdeck_host::backend::Place;
pub use tapdeck_tape::scenario::{Click, Drag, Line, Scroll, Target};
pub use tapdeck_term::keys::{Button, Mods, MouseKind};

/// What the functions of this module return.
pub type TestResult<T = ()> = Result<T, TestError>;

/// A test that failed: what went wrong, the line of the test, and the screen at that time. It
/// prints itself whole under
/// `unwrap` too.
#[derive(Clone, PartialEq, Eq)]
pub struct TestError {
    message: String,
    details: String,
    at: &'static Location<'static>,
}

impl TestError {
    #[track_caller]
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with(message, String::new())
    }

    #[track_caller]
    pub(crate) fn with(message: impl Into<String>, details: String) -> Self {
        Self { message: message.into(), details, at: Location::caller() }
    }

    /// The place in the test that failed.
    pub fn location(&self) -> &'static Location<'static> {
        self.at
    }

    /// What went wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Pictures of the screen, and what else there is to look at.
    pub fn details(&self) -> &str {
        &self.details
    }
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.file(), self.at.line(), self.message)?;
        if self.details.is_empty() { Ok(()) } else { write!(f, "\n{}", self.details.trim_end()) }
    }
}

impl fmt::Debug for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TestError {}

/// Gives an error that was made in a closure, which knows no caller, the place of the test.
pub(crate) trait AtCaller {
    #[track_caller]
    fn at_caller(self) -> Self;
}

impl<T> AtCaller for TestResult<T> {
    #[track_caller]
    fn at_caller(self) -> Self {
        let at = Location::caller();
        self.map_err(|e| TestError { at, ..e })
    }
}
