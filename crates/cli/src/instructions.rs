//! Where an instruction is kept: in the recording, through the session that makes it, or beside a
//! recording of another format.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_host::registry::{self, Listing};
use tapdeck_host::{AppendError, append_lines, append_part, is_encrypted, is_native, sidecar};
use tapdeck_proto::bus::{Instruct, Role, SnapshotPlace};
use tapdeck_serve::client::{ClientError, connect_to};
use tapdeck_tape::Instruction;
use tapdeck_tape::ahr::parts::INSTRUCTIONS;
use tapdeck_tape::export::behind;

/// How long a session may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// An instruction that was not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The recording is, or may become, an encrypted one, and no session of this user makes it.
    #[error("it would stand in the clear beside an encrypted recording")]
    Encrypted,
    /// Nothing can be added to the recording.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The session that makes the recording did not take it.
    #[error(transparent)]
    Session(#[from] ClientError),
    /// The file beside the recording could not be written.
    #[error("cannot write {}: {why}", path.display())]
    Beside {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
}

/// Returns the live session of this user that makes a recording.
pub fn recorder_of(path: &Path) -> Option<Listing> {
    let path = path.canonicalize().ok()?;
    let listed = registry::folder().and_then(|folder| registry::listed(&folder)).unwrap_or_default();
    let mut live = listed.into_iter().filter(|listing| registry::is_alive(listing.pid));
    live.find(|listing| {
        let recording = listing.recording.as_ref().map(Path::new);
        recording.and_then(|recording| recording.canonicalize().ok()).as_ref() == Some(&path)
    })
}

/// Keeps an instruction, a change of one or its deletion. Returns the file that has it: the
/// recording or, of another format, the file beside it. A recording in progress gets it from its
/// session.
///
/// # Errors
/// When it cannot be kept; then nothing is.
pub fn keep(path: &Path, instruction: &Instruction) -> Result<PathBuf, KeepError> {
    // An empty recording may become an encrypted one.
    let is_empty = path.metadata().is_ok_and(|about| about.len() == 0);
    if is_empty || is_native(path) {
        match append_part(path, INSTRUCTIONS, &instruction.to_line()) {
            Err(AppendError::Busy(_)) => {}
            kept => return Ok(kept.map(|()| path.to_owned())?),
        }
        if let Some(session) = recorder_of(path) {
            return tell(&session, instruction).map(|()| path.to_owned());
        }
        if is_empty || is_encrypted(path) {
            return Err(KeepError::Encrypted);
        }
    }
    let beside = sidecar(path, INSTRUCTIONS);
    append_lines(&beside, &instruction.to_line())
        .map_err(|why| KeepError::Beside { path: beside.clone(), why })?;
    Ok(beside)
}

/// Has a session put an instruction into its recording.
fn tell(session: &Listing, instruction: &Instruction) -> Result<(), KeepError> {
    let snapshot = instruction.snapshot.as_ref();
    let asked = Instruct {
        id: Some(instruction.id),
        anchor_byte: Some(behind(instruction)),
        line: instruction.line,
        snapshot: snapshot.map(|s| SnapshotPlace {
            id: s.id,
            anchor_byte: s.anchor_byte,
            label: s.label.clone(),
        }),
        text: if instruction.deleted { String::new() } else { instruction.text.clone() },
    };
    connect_to(session, "instruct", Role::Human)?.request(&asked, ANSWER)?;
    Ok(())
}
