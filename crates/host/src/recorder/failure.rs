//! What becomes of a session whose recording fails, and what is said about it.

use std::io;

use bytes::Bytes;
use rustix::process::{Resource, getrlimit};

/// What a session does when its recording fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FailureAction {
    /// It goes on without the recording.
    #[default]
    GoOn,
    /// Its program is suspended.
    Suspend,
    /// Its program is ended.
    End,
}

/// What to do when a recording fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnFailure {
    pub(crate) action: FailureAction,
    bell: bool,
    title: bool,
}

impl OnFailure {
    /// Sets what the session does; it goes on by default.
    #[must_use]
    pub fn action(mut self, action: FailureAction) -> Self {
        self.action = action;
        self
    }

    /// Sets whether the bell of the user's terminal rings.
    #[must_use]
    pub fn bell(mut self, bell: bool) -> Self {
        self.bell = bell;
        self
    }

    /// Sets whether the title of the user's terminal says so.
    #[must_use]
    pub fn title(mut self, title: bool) -> Self {
        self.title = title;
        self
    }

    /// The bytes that alert the user at a terminal.
    pub(crate) fn alert(self) -> Bytes {
        match (self.title, self.bell) {
            (true, true) => Bytes::from_static(b"\x1b]2;the recording failed\x1b\\\x07"),
            (true, false) => Bytes::from_static(b"\x1b]2;the recording failed\x1b\\"),
            (false, true) => Bytes::from_static(b"\x07"),
            (false, false) => Bytes::new(),
        }
    }
}

/// Says why a recording could not be written. The system calls a file that is as long as this
/// process may make it "too large", which it need not be.
pub(super) fn refusal(e: &io::Error) -> String {
    match (e.raw_os_error(), getrlimit(Resource::Fsize).current) {
        (Some(libc::EFBIG), Some(limit)) => {
            format!("the limit of file size is reached ({limit} bytes, see ulimit -f)")
        }
        (Some(libc::EFBIG), None) => "the file system takes no larger file".to_owned(),
        (Some(code), _) => {
            // The number helps no user.
            e.to_string().trim_end_matches(&format!(" (os error {code})")).to_owned()
        }
        _ => e.to_string(),
    }
}
