//! The files that go with a recording. Beside it they would be in the way of the program that is
//! recorded: they are made in the state folder, and stand beside the recording when it is complete.
//! If the recorder is killed, readers find in the state folder what was known until then.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::sidecar;
use super::name::known_state_folder;
use super::{CreateError, RecordingFile};
use crate::disk::{self, DiskFile};
use crate::out_file::OutFile;

/// In a folder of working copies, the link that names the recording.
const LINK: &str = "recording";

/// The files that go with a recording in the making. The list of
/// snapshots is not among them: a program that takes one is told that the list is on disk.
pub(super) struct Sidecars {
    recording: PathBuf,
    /// The folder of the working copies; `None` when they stand beside the recording at once.
    working: Option<PathBuf>,
}

impl Sidecars {
    /// Begins the files of a recording. Those of one that is continued stand beside it already.
    pub(super) fn begin(file: &RecordingFile) -> Self {
        let recording = file.path().to_owned();
        // Without a state folder they are made beside the recording.
        let working = (file.written() == 0).then(|| working_folder(file).ok()).flatten();
        Self { recording, working }
    }

    /// Where one of them is made.
    pub(super) fn path(&self, suffix: &str) -> PathBuf {
        match &self.working {
            Some(folder) => folder.join(suffix),
            None => sidecar(&self.recording, suffix),
        }
    }

    /// Puts one of them beside the recording, if it was made.
    pub(super) fn publish(&self, suffix: &str) -> io::Result<()> {
        let Some(folder) = &self.working else { return Ok(()) };
        publish(&folder.join(suffix), &sidecar(&self.recording, suffix))
    }

    /// Removes the folder of the working copies. One that could not be published stays.
    pub(super) fn finish(&self) {
        let Some(folder) = &self.working else { return };
        if sidecar(&self.recording, "meta.json").exists() {
            // The complete one stands there. It is well if there is no other.
            let _ = disk::remove_file(&folder.join("meta.json"));
        }
        remove_if_empty(folder);
    }
}

/// Finds a file that goes with a recording: beside it or, while it is recorded and after its
/// recorder was killed, in the state folder. Without one, returns its place beside the recording.
pub fn find_sidecar(recording: &Path, suffix: &str) -> PathBuf {
    let beside = sidecar(recording, suffix);
    if beside.symlink_metadata().is_ok() {
        return beside;
    }
    let working = existing_folder(recording).map(|folder| folder.join(suffix));
    working.filter(|path| path.is_file()).unwrap_or(beside)
}

/// Puts what a killed recorder left in the state folder beside its recording, which is to be
/// continued.
pub(super) fn adopt(recording: &Path) -> Result<(), CreateError> {
    let Some(folder) = existing_folder(recording) else { return Ok(()) };
    let system = |why| CreateError::System { path: recording.to_owned(), why };
    for entry in fs::read_dir(&folder).map_err(system)?.flatten() {
        let name = entry.file_name();
        let Some(suffix) = name.to_str().filter(|name| *name != LINK) else { continue };
        let to = sidecar(recording, suffix);
        if to.symlink_metadata().is_ok() {
            // The recorder was killed while it published: this one was complete.
            disk::remove_file(&entry.path()).map_err(system)?;
        } else {
            publish(&entry.path(), &to).map_err(system)?;
        }
    }
    remove_if_empty(&folder);
    Ok(())
}

/// Makes an empty folder for the working copies of a recording.
fn working_folder(file: &RecordingFile) -> io::Result<PathBuf> {
    let path = fs::canonicalize(file.path())?;
    let all = all_folders().ok_or(io::ErrorKind::NotFound)?;
    prune(&all);
    let folder = folder_of(&all, &file.share()?.metadata()?);
    match disk::remove_folder(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    disk::create_folders(&all)?;
    disk::create_folder(&folder)?;
    disk::symlink(&path, &folder.join(LINK))?;
    Ok(folder)
}

fn existing_folder(recording: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(recording).ok()?;
    let folder = folder_of(&all_folders()?, &fs::metadata(&path).ok()?);
    // A file's number is used again when the file is gone.
    (fs::read_link(folder.join(LINK)).ok()? == path).then_some(folder)
}

fn all_folders() -> Option<PathBuf> {
    Some(known_state_folder()?.join("unfinished"))
}

fn folder_of(all: &Path, recording: &Metadata) -> PathBuf {
    all.join(format!("{:x}-{:x}", recording.dev(), recording.ino()))
}

/// Removes the working copies of recordings that a user has deleted.
fn prune(all: &Path) {
    for folder in fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Ok(recording) = fs::read_link(folder.join(LINK)) else { continue };
        // Without the folder, too, its disk may only be unmounted.
        let deleted = !recording.exists() && recording.parent().is_some_and(Path::is_dir);
        if deleted {
            // The next recording tries again.
            let _ = disk::remove_folder(&folder);
        }
    }
}

/// Moves a file, if it is there, and has it on disk.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    DiskFile::open(from, File::options().read(true))?.sync()?;
    match disk::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            OutFile::replace_with(to, &mut File::open(from)?)?;
            disk::remove_file(from)?;
        }
        moved => moved?,
    }
    disk::sync_folder_of(to)
}

fn remove_if_empty(folder: &Path) {
    if fs::read_dir(folder).is_ok_and(|entries| entries.count() <= 1) {
        // A folder with nothing but its link is of no use; one that stays harms nothing.
        let _ = disk::remove_folder(folder);
    }
}
