//! A cassette on its way to disk. It is written under a temporary name beside its place, made
//! durable, and then moved there in one step; an older one is exchanged with it, never removed
//! first. That of a run is written in a folder for diagnostics, where it stays if the run fails or
//! the recorder is killed. There it has no manifest, so that nothing can take it for evidence.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tapdeck_core::WallTime;
use tapdeck_tape::cassette::{Exit, Files, Manifest, Refusal, VERSION, digest_hex, is_cassette, names};

use crate::disk::{self, DiskFile, parent_of};
use crate::out_file::OutFile;
use crate::recorder::calendar;

/// A cassette that could not be put in its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Something is there already.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    /// What is there is not a cassette, so it is not replaced, asked or not.
    #[error("{} exists and is no cassette: it is not replaced", .0.display())]
    NotACassette(PathBuf),
    /// What is there was written by a later version.
    #[error("{} holds a cassette of version {found}, newer than {VERSION}: it is not replaced by an older one", path.display())]
    Newer {
        /// Where.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The disk refused.
    #[error("cannot write {}: {why}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The content is no cassette.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl CommitError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::Io { path, why }
    }
}

/// Why a run is no cassette: `failure.json` beside its traces.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum FailedRun {
    /// A run of a program.
    Program {
        /// How the program ended, where it did.
        exit: Option<Exit>,
        /// Why the run was rejected.
        reason: String,
        /// When it was recorded, RFC 3339.
        recorded_at: String,
        /// Where the cassette would stand.
        target: String,
    },
    /// A probe of an agent.
    Probe {
        /// The probe's name.
        probe: String,
        /// Why the run was rejected.
        reason: String,
        /// What the probe found instead.
        status: String,
    },
}

/// What a run says of itself while it is recorded.
const UNFINISHED: &str = "the recorder was killed, or its machine stopped";

/// A cassette in the making.
#[derive(Debug)]
pub struct CassetteFolder {
    target: PathBuf,
    temporary: PathBuf,
    overwrite: bool,
    files: BTreeMap<&'static str, DiskFile>,
    /// What the traces of the run say of it, if they are to outlive a killed recorder.
    about: Option<Box<Manifest>>,
    /// It has become something else, and is not to be removed.
    moved: bool,
}

impl CassetteFolder {
    /// Begins one that will stand at `target`: a folder, or an archive when the name ends in
    /// `.tar.zst`.
    ///
    /// # Errors
    /// When something is there that must not be replaced, or the disk refuses.
    pub fn create(target: &Path, overwrite: bool) -> Result<Self, CommitError> {
        may_replace(target, overwrite)?;
        let parent = parent_of(target);
        disk::create_folders(parent).map_err(CommitError::io(parent))?;
        sweep(target);
        let temporary = beside(target, "tmp");
        disk::create_folder(&temporary).map_err(CommitError::io(&temporary))?;
        Ok(Self::new(target, temporary, overwrite, None))
    }

    /// Begins one of a run, in a folder below `diagnostics`: what a killed recorder leaves stays
    /// there, and can be looked at. Where that cannot be written, it begins beside its target.
    ///
    /// # Errors
    /// As [`CassetteFolder::create`].
    pub fn create_for_run(
        target: &Path,
        overwrite: bool,
        diagnostics: &Path,
        now: WallTime,
        about: &Manifest,
    ) -> Result<Self, CommitError> {
        may_replace(target, overwrite)?;
        let traces = traces_of(target, diagnostics, now);
        if disk::create_folders(diagnostics).and_then(|()| disk::create_folder(&traces)).is_err() {
            return Self::create(target, overwrite);
        }
        let mut about = about.clone();
        about.content_digest.sha256 = digest_hex(&[]);
        let this = Self::new(target, traces, overwrite, Some(Box::new(about)));
        let parent = parent_of(target);
        disk::create_folders(parent).map_err(CommitError::io(parent))?;
        sweep(target);
        Ok(this)
    }

    fn new(target: &Path, temporary: PathBuf, overwrite: bool, about: Option<Box<Manifest>>) -> Self {
        let (target, files) = (target.to_owned(), BTreeMap::new());
        Self { target, temporary, overwrite, files, about, moved: false }
    }

    /// Returns where its files are until it is committed.
    pub(super) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Returns what its traces are to say of the run.
    pub(super) fn about(&mut self) -> Option<&mut Manifest> {
        self.about.as_deref_mut()
    }

    /// Writes what the traces say of the run, should nothing more be written.
    pub(super) fn describe_traces(&mut self) -> Result<(), CommitError> {
        let Some(about) = &self.about else { return Ok(()) };
        let manifest = serde_json::to_vec_pretty(about).unwrap_or_default();
        let reason = FailedRun::Program {
            exit: None,
            reason: UNFINISHED.to_owned(),
            recorded_at: about.provenance.recorded_at.clone(),
            target: self.target.to_string_lossy().into_owned(),
        };
        self.put_object(names::FAILED_MANIFEST, &manifest)?;
        self.put_object(names::FAILURE, &serde_json::to_vec_pretty(&reason).unwrap_or_default())?;
        self.append(names::RAW, &[])
    }

    /// Begins to write all files anew; what is there stays until [`CassetteFolder::exchange`].
    pub(super) fn begin_again(&self) -> Result<Self, CommitError> {
        let mut temporary = self.temporary.clone().into_os_string();
        temporary.push(".masked");
        let temporary = PathBuf::from(temporary);
        disk::create_folder(&temporary).map_err(CommitError::io(&temporary))?;
        Ok(Self::new(&self.target, temporary, self.overwrite, None))
    }

    /// Takes the files that were written anew in the place of its own.
    pub(super) fn exchange(&mut self, mut new: Self) -> Result<(), CommitError> {
        let at = CommitError::io;
        for name in new.files.keys() {
            disk::rename(&new.temporary.join(name), &self.temporary.join(name))
                .map_err(at(&new.temporary))?;
        }
        for name in self.files.keys().filter(|name| !new.files.contains_key(*name)) {
            let path = self.temporary.join(name);
            disk::remove_file(&path).map_err(at(&path))?;
        }
        self.files = std::mem::take(&mut new.files);
        Ok(())
    }

    /// Writes a file of one object in the place of one that may be there.
    fn put_object(&self, name: &str, content: &[u8]) -> Result<(), CommitError> {
        let path = self.temporary.join(name);
        OutFile::replace(&path, &[content, b"\n"].concat()).map_err(CommitError::io(&path))
    }

    /// Appends to one of its files; an empty piece creates it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), CommitError> {
        let path = self.temporary.join(name);
        if !self.files.contains_key(name) {
            let mut options = OpenOptions::new();
            let file = DiskFile::open(&path, options.append(true).create_new(true).mode(0o600));
            self.files.insert(name, file.map_err(CommitError::io(&path))?);
        }
        match self.files.get_mut(name) {
            Some(file) => file.write_all(bytes).map_err(CommitError::io(&path)),
            None => Ok(()),
        }
    }

    /// Appends all files of a cassette.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append_all(&mut self, files: &Files) -> Result<u64, CommitError> {
        let mut written = 0;
        for name in names::REQUIRED.into_iter().chain(names::OPTIONAL) {
            if let Some(bytes) = files.get(name) {
                self.append(name, bytes)?;
                written += bytes.len() as u64;
            }
        }
        Ok(written)
    }

    /// Makes it durable and puts it in its place, in one step.
    ///
    /// # Errors
    /// When the disk refuses, or something has come to stand there meanwhile. The old one is still
    /// there then.
    pub fn commit(mut self) -> Result<(), CommitError> {
        let at = CommitError::io;
        for (name, file) in &self.files {
            file.sync().map_err(at(&self.temporary.join(name)))?;
        }
        for name in [names::FAILURE, names::FAILED_MANIFEST].into_iter().filter(|_| self.about.is_some()) {
            let path = self.temporary.join(name);
            match disk::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(&path)(e)),
                _ => {}
            }
        }
        disk::sync_folder(&self.temporary).map_err(at(&self.temporary))?;
        // Another run may have been faster, and newer.
        may_replace(&self.target, self.overwrite)?;
        if is_archive_name(&self.target) {
            self.commit_archive()?;
        } else {
            match place(&self.temporary, &self.target, self.overwrite) {
                Err(CommitError::Io { why, .. }) if why.kind() == io::ErrorKind::CrossesDevices => {
                    let copy = beside(&self.target, "tmp");
                    copy_folder(&self.temporary, &copy).map_err(at(&copy))?;
                    let original = std::mem::replace(&mut self.temporary, copy);
                    place(&self.temporary, &self.target, self.overwrite)?;
                    // What is left of it is no evidence.
                    let _ = disk::remove_folder(&original);
                }
                placed => placed?,
            }
            self.moved = true;
        }
        Ok(())
    }

    fn commit_archive(&self) -> Result<(), CommitError> {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        let folder = name.split('.').next().filter(|n| !n.is_empty() && n.len() < 60).unwrap_or("cassette");
        let at = CommitError::io;
        let mut archive = OutFile::replacing(&self.target).map_err(at(&self.target))?;
        Files::pack_folder(&self.temporary, folder, &mut archive).map_err(at(&self.target))?;
        archive.commit().map_err(at(&self.target))
    }

    /// Moves what there is of a failed run to a folder below `diagnostics`, with the reason beside
    /// it, and says where. It has no manifest, so no reader accepts it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn fail(
        mut self,
        diagnostics: &Path,
        now: WallTime,
        reason: &FailedRun,
    ) -> Result<PathBuf, CommitError> {
        let at = CommitError::io;
        let reason = serde_json::to_vec_pretty(reason).unwrap_or_default();
        self.put_object(names::FAILURE, &reason)?;
        let manifest = self.temporary.join(names::MANIFEST);
        if manifest.exists() {
            let failed = self.temporary.join(names::FAILED_MANIFEST);
            disk::rename(&manifest, &failed).map_err(at(&manifest))?;
        }
        if self.about.is_some() {
            self.moved = true;
            return Ok(self.temporary.clone());
        }
        disk::create_folders(diagnostics).map_err(at(diagnostics))?;
        let to = traces_of(&self.target, diagnostics, now);
        if let Err(e) = disk::rename(&self.temporary, &to) {
            if e.kind() != io::ErrorKind::CrossesDevices {
                return Err(at(&to)(e));
            }
            copy_folder(&self.temporary, &to).map_err(at(&to))?;
            return Ok(to);
        }
        self.moved = true;
        Ok(to)
    }
}

impl Drop for CassetteFolder {
    fn drop(&mut self) {
        if !self.moved {
            // What is left is removed by the next run.
            let _ = disk::remove_folder(&self.temporary);
        }
    }
}

/// Where failed runs go that are given no other place.
pub fn diagnostics_folder() -> PathBuf {
    crate::recorder::state_folder().join("diagnostics")
}

/// Returns the folder for the traces of a run.
fn traces_of(target: &Path, diagnostics: &Path, now: WallTime) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    diagnostics.join(format!("{}-{name}-{}", calendar(now), std::process::id()))
}

/// What every version's manifest says.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

fn may_replace(target: &Path, overwrite: bool) -> Result<(), CommitError> {
    match fs::symlink_metadata(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(CommitError::io(target)(e)),
        Ok(_) if !overwrite => return Err(CommitError::Exists(target.to_owned())),
        Ok(_) if !is_cassette(target) => return Err(CommitError::NotACassette(target.to_owned())),
        Ok(_) => {}
    }
    // Whatever else is wrong with it does not matter: it is to be replaced.
    let manifest = match target.is_dir() {
        // The rest may be large.
        true => fs::read(target.join(names::MANIFEST)).ok(),
        false => Files::read(target).ok().and_then(|files| Some(files.get(names::MANIFEST)?.to_vec())),
    };
    let version = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let version = version.map(|Versioned { version }| version);
    match version {
        Some(found) if found > VERSION => Err(CommitError::Newer { path: target.to_owned(), found }),
        _ => Ok(()),
    }
}

/// Moves a folder to its place, and has that on disk. One that is there is exchanged with it, so
/// that at no moment there is none.
fn place(from: &Path, to: &Path, overwrite: bool) -> Result<(), CommitError> {
    let at = CommitError::io;
    let placed = || disk::sync_folder_of(to).map_err(at(to));
    let old = overwrite && fs::symlink_metadata(to).is_ok();
    match if old { disk::exchange(from, to) } else { disk::rename_new(from, to) } {
        Ok(()) if old => {
            placed()?;
            // The old one now has the temporary name. Failing to remove it loses nothing.
            let _ = disk::remove_folder(from).or_else(|_| disk::remove_file(from));
            Ok(())
        }
        Ok(()) => placed(),
        // A file system that cannot do either: the old one steps aside and comes back should the
        // new one fail.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            let aside = beside(to, "old");
            if old {
                disk::rename(to, &aside).map_err(at(to))?;
            }
            if let Err(e) = disk::rename(from, to) {
                if old {
                    // The first error is the one to report.
                    let _ = disk::rename(&aside, to);
                }
                return Err(at(to)(e));
            }
            placed()?;
            // What is left is removed by the next run.
            let _ = disk::remove_folder(&aside);
            Ok(())
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty) => {
            Err(CommitError::Exists(to.to_owned()))
        }
        Err(e) => Err(at(to)(e)),
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    disk::create_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        fs::copy(entry.path(), &copy)?;
        DiskFile::open(&copy, OpenOptions::new().append(true))?.sync()?;
    }
    disk::sync_folder(to)
}

fn is_archive_name(path: &Path) -> bool {
    path.file_name().is_some_and(|n| {
        let name = n.to_string_lossy().to_ascii_lowercase();
        name.ends_with(".tar.zst") || name.ends_with(".tzst")
    })
}

/// A hidden name beside a path, of this process alone.
fn beside(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{end}", std::process::id()))
}

/// Removes what killed recorders left beside a path.
fn sweep(target: &Path) {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let prefix = format!(".{name}.");
    let Ok(entries) = fs::read_dir(parent_of(target)) else { return };
    for entry in entries.flatten() {
        let left = entry.file_name().to_string_lossy().into_owned();
        let pid = left.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".tmp"));
        if let Some(pid) = pid.and_then(|p| p.parse::<u32>().ok())
            && (pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists())
        {
            // What cannot be removed now may be next time.
            let _ = disk::remove_folder(&entry.path());
        }
    }
}
