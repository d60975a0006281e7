//! Editing: what a recording of any format becomes when parts of it are cut, its pauses are
//! limited, its speed is changed, or several are joined.
//!
//! An edit stands between a reader and a writer: [`EditReader`] and [`JoinReader`] are readers over
//! readers, so every format can be edited and memory does not grow with the recording. A recording
//! is read twice. First [`locate`] finds the [`Position`]s that a person gives, and [`Edits::plan`]
//! checks them. Then the edited events are read.
//!
//! At a cut, the screen is carried: the output goes on with bytes that draw the screen as it was at
//! the end of the cut, with modes, title, size and scrollback. So every frame behind the cut is the
//! one of the original. What stands in the scrollback or on the screen is not removed by cutting
//! the time when it was written.
//!
//! Offsets and times in its parts (turns, snapshots, instructions) are moved by [`Moved`],
//! which an edit leaves behind.

mod join;
mod locate;
mod moved;
mod plan;
mod position;
mod reader;
#[cfg(test)]
mod tests;
mod unpaused;

pub use join::{JoinReader, Joined, Part};
pub use locate::{Located, NotFound, Spot, locate};
pub use moved::{Moved, MovedLines, Removed};
pub use plan::{EditError, Edits, Plan};
pub use position::Position;
pub use reader::EditReader;
pub use unpaused::Unpaused;
