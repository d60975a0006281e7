//! Recording a cassette: what must hold before a run, the run itself through the same driver as any
//! other session, and the commit that makes a cassette appear whole or not at all.

mod executable;
mod folder;
mod lock;
mod preflight;
mod scrub;
mod task;

pub use executable::{executables, name_binary};
pub use folder::{CassetteFolder, CommitError, FailedRun, diagnostics_folder};
pub use lock::{AccountLock, LockError};
pub(crate) use preflight::run_quietly;
pub use preflight::{
    DEFAULT_ENV, Environment, PreflightError, check_command, find_program, git_sha, new_uuid, rfc3339,
};
pub use scrub::scrub;
pub use task::{CassetteRecorder, Recorded, name_leftovers};
