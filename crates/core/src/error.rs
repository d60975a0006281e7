//! The error of texts that name nothing: colours, times, modes, states, paths.

/// A text that could not be read as what was asked for. The message says what may be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

impl ParseError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The message, for callers that put it into one of their own.
impl From<ParseError> for String {
    fn from(error: ParseError) -> Self {
        error.0
    }
}
