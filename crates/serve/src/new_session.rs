//! A program to start as a session, as a client of the page, of the HTTP API or of MCP asks for it.

use std::path::PathBuf;

/// The longest command line, in bytes.
const COMMAND: usize = 64 * 1024;

/// A program to start as a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NewSession {
    /// The program and its arguments; the user's shell if empty.
    pub command: Vec<String>,
    /// The session's name.
    pub name: Option<String>,
    /// The folder to start in.
    pub folder: Option<PathBuf>,
}

impl NewSession {
    /// Checks what a client asks for. Returns why it cannot be.
    pub(crate) fn checked(self) -> Result<Self, &'static str> {
        let length: usize = self.command.iter().map(|word| word.len() + 1).sum();
        if length > COMMAND || self.command.iter().any(|word| word.contains('\0')) {
            return Err("a command line has at most 64 KiB and no null characters");
        }
        if self.folder.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err("give the folder as an absolute path");
        }
        Ok(self)
    }
}
