//! A squad: named agents that work together, as a file describes them.
//!
//! [`Squad`] is the file, [`State`] what is known of a squad between two runs of its supervisor,
//! and [`Worktree`] the folder of an agent that has a git worktree of its own.

mod file;
mod state;
mod worktree;

pub use file::{Agent, Condition, Mistake, Relay, Restart, Squad, SquadError, Vote, WorktreeOf};
pub use state::{FOLDER, PromptState, SavedAgent, SavedRelay, SavedVote, State, StateError};
pub use worktree::{Removal, Worktree, WorktreeError};
