//! Keys that the user types for us and not for the program.

use bytes::Bytes;

/// What is to be done with what the user typed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyAction {
    /// It is the program's.
    Pass(Bytes),
    /// Marks this moment in the recordings of the session.
    Mark(String),
    /// Pauses the recordings of the session, or lets them go on.
    Pause,
    /// Shows a text over a row of the user's terminal, until it is hidden.
    Show(String),
    /// Shows a text over a row of the user's terminal for a moment.
    Tell(String),
    /// Hides the text.
    Hide,
}

/// Tells the user's own keys from those of the program.
pub trait UserKeys: Send {
    /// Takes what was typed, in order. A key may come in several pieces.
    fn read(&mut self, typed: &[u8]) -> Vec<KeyAction>;
}
