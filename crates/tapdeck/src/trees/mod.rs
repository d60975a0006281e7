//! The files of a session as they were: working trees that are kept while it is recorded, and put
//! back to branch from there.
//!
//! [`Keeper`] keeps them on a thread of its own, by git or by a program of the user.
//! [`Repository::restore`] makes a worktree with the files of a kept tree.

mod git;
mod keeper;
mod provider;
mod repository;
mod restore;
mod scratch;
mod snapshot;
mod tool;

use std::io;
use std::path::PathBuf;

pub use keeper::{Keeper, Keeping, TreeRequests};
pub use provider::{HookCommand, Provider};
pub use repository::Repository;
pub use snapshot::{Kept, Snapshots};

/// Files that could not be kept or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is no git.
    #[error("git is not installed")]
    NoGit,
    /// The folder is in no repository.
    #[error("{} is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// The folder is in a bare repository, or in the folder of a repository itself.
    #[error("{} is in a git repository without a working tree", .0.display())]
    NoWorkingTree(PathBuf),
    /// There is something in the way.
    #[error("{} exists and is not empty", .0.display())]
    Taken(PathBuf),
    /// git failed.
    #[error("{what}: {why}")]
    Git {
        /// What it was asked.
        what: String,
        /// What it said.
        why: String,
    },
    /// A program of the user failed.
    #[error("{what}: {why}")]
    Hook {
        /// The program.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// A file of our own could not be written.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}
