//! Positions in a recording, as people give them.

use std::fmt;
use std::time::Duration;

/// A position in a recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Position {
    /// A time from its start: what happened at that time or before lies before it.
    Time(Duration),
    /// A share of its time, from 0 to 1.
    Share(f64),
    /// A number of bytes of output.
    Byte(u64),
    /// A marker's label, or a snapshot's label or id.
    Moment(String),
    /// The number of a turn: where its answer begins.
    Turn(u64),
    /// A line of the final screen and its scrollback, from 0 at the oldest: the byte that wrote to
    /// it last lies before it.
    Line(u64),
}

/// As the command line spells it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{}s", time.as_secs_f64()),
            Self::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
            Self::Byte(byte) => write!(f, "byte:{byte}"),
            Self::Moment(name) => write!(f, "@{name}"),
            Self::Turn(number) => write!(f, "turn:{number}"),
            Self::Line(number) => write!(f, "line:{number}"),
        }
    }
}
