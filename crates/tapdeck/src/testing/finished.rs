//! A program under test that has ended, and what can be claimed of its whole session.

use std::path::Path;

use tapdeck_core::Exit;
use tapdeck_core::check::{Timeline, signal_name};

use super::scenario::stored_text;
use super::{AtCaller, TestError, TestResult, picture};

/// A program that has ended, with everything that happened.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What happened.
    pub timeline: Timeline,
    /// The command lines of the processes that it left behind. They were ended.
    pub left: Vec<String>,
}

impl Finished {
    /// Checks a claim about the whole session.
    ///
    /// # Errors
    /// With pictures of the screens nearest to what is wrong.
    #[track_caller]
    pub fn check(&self, claim: tapdeck_core::check::Claim) -> TestResult {
        let verdict = tapdeck_core::check::evaluate(&self.timeline, std::slice::from_ref(&claim)).pop();
        match verdict {
            Some(Err(failure)) => Err(TestError::with(
                format!("{claim}: {}", failure.message),
                picture::failure(&failure, &self.timeline),
            )),
            _ => Ok(()),
        }
    }

    /// Checks a claim that is written as an assertion of a scenario file: `never: {contains:
    /// panic}`, `exit: 0`,
    /// `order: [{shows: one}, {key: q}]`.
    ///
    /// # Errors
    /// As [`Finished::check`]; also when the claim is not understood.
    #[track_caller]
    pub fn assert(&self, claim: &str) -> TestResult {
        let read = tapdeck_tape::scenario::claim(claim, &stored);
        self.check(read.map_err(|e| TestError::new(e.to_string())).at_caller()?)
    }

    /// The program must have ended with code 0.
    ///
    /// # Errors
    /// When it did not.
    #[track_caller]
    pub fn success(&self) -> TestResult {
        if self.exit == Exit::Code(0) {
            Ok(())
        } else {
            Err(TestError::new(format!("the program {}", ended(self.exit))))
        }
    }
}

/// How a program ended, in words.
pub(super) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("has ended with code {code}"),
        Exit::Signal(n) => format!("was killed by {}", signal_name(n)),
    }
}

/// A text that a condition names, from the folder that the test runs in.
pub(super) fn stored(file: &str) -> std::io::Result<String> {
    stored_text(Path::new(file))
}
