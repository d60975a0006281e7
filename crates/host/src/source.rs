//! A recording of any format on disk: found out once, opened from its start as often as needed,
//! with what it says of itself (the parts of a native recording, the sidecars of an older one) and
//! the timing file of a typescript.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tapdeck_tape::ahr::parts::{EVENTS, INDEX, INSTRUCTIONS, META};
use tapdeck_tape::ahr::{self, AhrEvents, Parts, labels_of};
use tapdeck_tape::cassette::{CassetteReader, is_cassette, open_for_viewing};
use tapdeck_tape::index::Index;
use tapdeck_tape::meta::{Meta, is_meta};
use tapdeck_tape::zst::ZstReader;
use tapdeck_tape::{
    Beside, Container, EventReader, Format, Instruction, Moment, RecordedTurn, bounded, cast_version,
    instructions_of, open, snapshots_of, turns_of,
};

use crate::ahead::Blocks;
use crate::recorder::{SIDECARS, find_sidecar, sidecar};
use crate::spool::{Way, is_device, open_way, reopen, spool};

/// The format that carries everything.
const NATIVE: Container = Container { format: Format::Ahr, zst: false };

/// So much of a file tells its format.
const HEAD: usize = 4096;

/// A recording that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// It could not be opened.
    #[error("{}: {why}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// It could not be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: tapdeck_tape::Error,
    },
    /// Neither its content nor its name tells what it is.
    #[error("{}: no recording in any known format", .0.display())]
    Unknown(PathBuf),
    /// Its name says one format, and its content is not in it.
    #[error("{}: its name says {named}, and its content something else", path.display())]
    Misnamed {
        /// Which.
        path: PathBuf,
        /// What its name says.
        named: Format,
    },
    /// It is not what it seems to be.
    #[error("{}: {what}", path.display())]
    Not {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// A typescript without its timing file.
    #[error("{}: a typescript needs its timing file", .0.display())]
    NoTiming(PathBuf),
}

/// What can be read from any place.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// A recording of a known format.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    container: Container,
    timing: Option<PathBuf>,
    len: u64,
    /// What came through a pipe.
    spool: Option<Arc<File>>,
    /// Where the parts of a native recording lie.
    parts: Arc<Parts>,
    encrypted: bool,
}

impl Source {
    /// Finds out what a file is. `format` and `timing` overrule what it seems to be. `-` is
    /// standard input; what can be read only once is read to its end first.
    pub fn find(path: &Path, format: Option<Container>, timing: Option<&Path>) -> Result<Self, SourceError> {
        let fail = |why| SourceError::Open { path: path.to_owned(), why };
        if path.is_dir() && is_cassette(path) {
            let files = std::fs::read_dir(path).map_err(fail)?.flatten();
            let len = files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
            let container = Container { format: Format::Cassette, zst: false };
            return Ok(Self {
                path: path.to_owned(),
                container,
                timing: None,
                len,
                spool: None,
                parts: Arc::default(),
                encrypted: false,
            });
        }
        let way = open_way(path).map_err(fail)?;
        let is_stream = matches!(way, Way::Stream(_));
        let (Way::File(mut file) | Way::Stream(mut file)) = way;
        let shown = shown_name(path);
        let head = head_of(&mut file).map_err(fail)?;
        if !head.is_empty() && is_device(&file) {
            return Err(fail(io::Error::other("a device is no recording, and may never end")));
        }
        let container = match format {
            Some(container) => container,
            None => detect(path.to_str(), &head).ok_or_else(|| unknown(&shown, &head))?,
        };
        if head.is_empty() && container.format == Format::Ahr {
            return Err(unknown(&shown, &head));
        }
        // Only what is a recording is worth the room.
        let spool = is_stream.then(|| spool(head.as_slice().chain(&file))).transpose().map_err(fail)?;
        let len = spool.as_ref().unwrap_or(&file).metadata().map_err(fail)?.len();
        let spool = spool.map(Arc::new);
        let timing = match (container.format, timing) {
            (Format::Typescript, Some(given)) => Some(given.to_owned()),
            (Format::Typescript, None) => {
                let found = timing_names(path).into_iter().find(|p| p.is_file());
                Some(found.ok_or_else(|| SourceError::NoTiming(path.to_owned()))?)
            }
            _ => None,
        };
        let mut this =
            Self { path: shown, container, timing, len, spool, parts: Arc::default(), encrypted: false };
        if container == NATIVE {
            this.encrypted = ahr::Header::from_bytes(&head).is_some_and(|h| h.is_encrypted());
            let file = this.file().map_err(fail)?;
            this.parts = Arc::new(Parts::of(file).map_err(|e| this.read_error(e))?);
        }
        Ok(this)
    }

    /// Every file that belongs to a recording, whether it is there or not: itself, and what may
    /// stand beside it.
    pub fn files(path: &Path) -> Vec<PathBuf> {
        let sidecars = SIDECARS.iter().flat_map(|s| [sidecar(path, s), find_sidecar(path, s)]);
        [path.to_owned()].into_iter().chain(sidecars).chain(timing_names(path)).collect()
    }

    /// The file, opened anew.
    ///
    /// # Errors
    /// When it cannot be opened any more.
    pub fn file(&self) -> io::Result<File> {
        match &self.spool {
            Some(spool) => reopen(spool),
            None => open_file(&self.path),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn container(&self) -> Container {
        self.container
    }

    /// Whether it is a native recording that is not compressed as a whole.
    pub fn is_native(&self) -> bool {
        self.container == NATIVE
    }

    /// Whether it is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Length of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Opens it from its start.
    pub fn open(&self) -> Result<Box<dyn EventReader + Send>, SourceError> {
        self.open_counted(&Arc::default())
    }

    /// Opens it from its start, with a count of the bytes read from disk.
    pub fn open_counted(&self, count: &Arc<AtomicU64>) -> Result<Box<dyn EventReader + Send>, SourceError> {
        if self.container.format == Format::Cassette && self.spool.is_none() {
            let cassette = open_for_viewing(&self.path).map_err(|e| self.read_error(e.into()))?;
            count.store(self.len, Ordering::Relaxed);
            return Ok(Box::new(CassetteReader::new(cassette)));
        }
        let fail = |why| SourceError::Open { path: self.path.clone(), why };
        let file = self.file().map_err(fail)?;
        let mut beside = Beside::default();
        if self.container.format == Format::Ahr {
            beside.meta = self.meta();
            if let Some(events) = self.sidecar(EVENTS) {
                beside.labels = labels_of(BufReader::new(events)).unwrap_or_default();
            }
        }
        if let Some(timing) = &self.timing {
            let file = open_file(timing).map_err(|why| SourceError::Open { path: timing.clone(), why })?;
            beside.timing = Some(Box::new(BufReader::new(file)));
        }
        let read_error = |why| self.read_error(why);
        if self.container == NATIVE {
            let records = Blocks::open(Arc::new(file), 0, count.clone()).into_records();
            let events = AhrEvents::over(records, beside.meta.as_ref(), beside.labels);
            return Ok(bounded(events.map_err(read_error)?));
        }
        let file = Counted { inner: file, count: count.clone() };
        open(self.container, BufReader::with_capacity(1 << 16, file), beside).map_err(read_error)
    }

    /// What a native recording says of the session as a whole.
    pub fn meta(&self) -> Option<Meta> {
        let inside = self.file().ok().and_then(|file| self.parts.read(META, file).ok());
        let inside = inside.and_then(|lines| Meta::of_part(&lines));
        let beside = || {
            let bytes = std::fs::read(find_sidecar(&self.path, META)).ok();
            bytes.and_then(|bytes| Meta::from_bytes(&bytes).ok())
        };
        match inside {
            // An encrypted recording of an earlier version tells its end beside it.
            Some(inside) if self.encrypted && inside.digest.is_none() => Some(match beside() {
                Some(Meta { exit, ended_at, sha256, seal, .. }) => {
                    Meta { exit, ended_at, sha256, seal: seal.or(inside.seal.clone()), ..inside }
                }
                None => inside,
            }),
            Some(inside) => Some(inside),
            None => beside(),
        }
    }

    /// Every description that a native recording has, the oldest first, and the one beside it.
    pub fn all_meta(&self) -> Vec<Meta> {
        let inside = self.file().ok().and_then(|file| self.parts.read(META, file).ok());
        let beside = std::fs::read(find_sidecar(&self.path, META)).ok();
        let mut all: Vec<Meta> = beside.iter().filter_map(|bytes| Meta::from_bytes(bytes).ok()).collect();
        all.extend(inside.iter().flat_map(|lines| Meta::of_lines(lines)));
        all
    }

    /// Where the parts of a native recording lie.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Opens what goes with a recording: the part of that name or, of an older recording, the file
    /// beside it.
    pub fn sidecar(&self, suffix: &str) -> Option<Box<dyn ReadSeek>> {
        match self.parts.len_of(suffix) {
            Some(_) => Some(Box::new(self.parts.open(suffix, self.file().ok()?)?)),
            None if self.has_sidecars() => Some(Box::new(File::open(find_sidecar(&self.path, suffix)).ok()?)),
            None => None,
        }
    }

    /// Whether what is known of it may stand beside it: in one that describes itself, everything
    /// does. An encrypted recording of an earlier version is described in both places.
    fn has_sidecars(&self) -> bool {
        self.parts.len_of(META).is_none() || self.encrypted
    }

    /// The files beside a recording that say something of it which is not in it.
    pub fn beside(&self) -> Vec<PathBuf> {
        let speaks = |suffix: &&&str| match **suffix {
            INSTRUCTIONS => true,
            suffix => self.has_sidecars() && self.parts.len_of(suffix).is_none(),
        };
        let paths = SIDECARS.iter().filter(speaks).map(|suffix| find_sidecar(&self.path, suffix));
        paths.filter(|path| path.is_file()).collect()
    }

    /// What was added to a native recording since it was finished: parts and their bytes.
    pub fn additions(&self) -> Vec<(&str, u64)> {
        let Some(meta) = self.meta() else { return Vec::new() };
        let end = meta.digest.map(|digest| digest.bytes).or_else(|| meta.seal?.bytes());
        end.map_or_else(Vec::new, |end| self.parts.behind(end))
    }

    /// The index of a native recording, as far as it belongs to it, and its file.
    pub fn index(&self) -> Option<(Index, Box<dyn ReadSeek>)> {
        let mut file = self.sidecar(INDEX)?;
        let mut index = Index::load(&mut file).ok()?;
        index.check(self.file().ok()?).ok()?;
        Some((index, file))
    }

    /// Whether this is a recording with events, where its turns would be.
    pub fn may_have_turns(&self) -> bool {
        self.container == NATIVE && self.sidecar(EVENTS).is_some()
    }

    /// The turns of a native recording, in order; other formats have none.
    ///
    /// # Errors
    /// When its events cannot be read, or make no sense.
    pub fn turns(&self) -> Result<Vec<RecordedTurn>, SourceError> {
        match self.sidecar(EVENTS).filter(|_| self.container == NATIVE) {
            Some(events) => turns_of(BufReader::new(events)).map_err(|why| self.read_error(why)),
            None => Ok(Vec::new()),
        }
    }

    /// Opens the instructions about a recording, a line each: in it, and beside one that is in
    /// progress or of another format.
    pub fn instruction_lines(&self) -> Option<Box<dyn Read + Send>> {
        let inside = self.file().ok().and_then(|file| self.parts.open(INSTRUCTIONS, file));
        let beside = File::open(sidecar(&self.path, INSTRUCTIONS)).ok();
        match (inside, beside) {
            // A line that was torn ends where the file does.
            (Some(inside), Some(beside)) => Some(Box::new(inside.chain(&b"\n"[..]).chain(beside))),
            (Some(inside), None) => Some(Box::new(inside)),
            (None, Some(beside)) => Some(Box::new(beside)),
            (None, None) => None,
        }
    }

    /// The instructions about a recording, in the order in which they were written.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn instructions(&self) -> Result<Vec<Instruction>, SourceError> {
        match self.instruction_lines() {
            Some(lines) => instructions_of(BufReader::new(lines)).map_err(|why| self.read_error(why)),
            None => Ok(Vec::new()),
        }
    }

    /// The snapshots in `NAME.snapshots.jsonl` that are not among those already known. Formats that
    /// cannot hold snapshots have them there alone, and a crash may have cost the record.
    pub fn moments_beside(&self, known: &[Moment]) -> Vec<Moment> {
        let Some(file) = self.sidecar("snapshots.jsonl") else { return Vec::new() };
        let started = self.open().ok().and_then(|reader| reader.header().started).unwrap_or_default();
        let known: HashSet<_> = known.iter().filter_map(|m| Some((m.snapshot_id()?, m.anchor))).collect();
        let mut beside = snapshots_of(BufReader::new(file), started).unwrap_or_default();
        beside.retain(|m| m.snapshot_id().is_none_or(|id| !known.contains(&(id, m.anchor))));
        beside
    }

    /// An error of reading, with the file's name.
    pub fn read_error(&self, why: tapdeck_tape::Error) -> SourceError {
        SourceError::Read { path: self.path.clone(), why }
    }
}

/// Opens a recording that comes as a stream: its head is looked at and put back.
///
/// # Errors
/// As [`Source::find`] and [`Source::open`].
pub fn open_stream(
    path: &Path,
    format: Option<Container>,
    timing: Option<&Path>,
    count: &Arc<AtomicU64>,
) -> Result<(Container, Box<dyn EventReader + Send>), SourceError> {
    let name = || shown_name(path);
    let fail = |why| SourceError::Open { path: name(), why };
    let (Way::File(mut stream) | Way::Stream(mut stream)) = open_way(path).map_err(fail)?;
    let head = head_of(&mut stream).map_err(fail)?;
    if !head.is_empty() && is_device(&stream) {
        return Err(fail(io::Error::other("a device is no recording, and may never end")));
    }
    let container = match format {
        Some(container) => container,
        None => detect(path.to_str(), &head).ok_or_else(|| unknown(&name(), &head))?,
    };
    let mut beside = Beside::default();
    if container.format == Format::Typescript {
        let timing = timing.ok_or_else(|| SourceError::NoTiming(name()))?;
        let file = open_file(timing).map_err(|why| SourceError::Open { path: timing.to_owned(), why })?;
        beside.timing = Some(Box::new(BufReader::new(file)));
    }
    let stream = Counted { inner: io::Cursor::new(head).chain(stream), count: count.clone() };
    let reader = open(container, stream, beside).map_err(|why| SourceError::Read { path: name(), why })?;
    Ok((container, reader))
}

/// Whether a file begins with a block of a native recording.
pub fn is_native(recording: &Path) -> bool {
    let is_file = recording.metadata().is_ok_and(|m| m.is_file());
    let mut head = [0; ahr::MAGIC.len()];
    is_file
        && File::open(recording).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == ahr::MAGIC
}

/// Whether a file begins with an encrypted block of a recording.
pub fn is_encrypted(recording: &Path) -> bool {
    let is_file = recording.metadata().is_ok_and(|m| m.is_file());
    let mut head = [0; ahr::HEADER_LEN];
    let read = is_file && File::open(recording).is_ok_and(|mut file| file.read_exact(&mut head).is_ok());
    read && ahr::Header::from_bytes(&head).is_some_and(|header| header.is_encrypted())
}

/// The names under which a timing file may stand beside a typescript, the one that is written
/// first.
pub fn timing_names(typescript: &Path) -> Vec<PathBuf> {
    let name = typescript.file_name().unwrap_or_default();
    let mut names: Vec<PathBuf> = Vec::new();
    for end in [".timing", ".tm"] {
        let mut beside = name.to_owned();
        beside.push(end);
        names.push(typescript.with_file_name(beside));
    }
    names.extend(["timing", "tm"].map(|end| typescript.with_extension(end)));
    names
}

fn open_file(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}

fn head_of(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    from.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The name under which a recording is spoken of.
fn shown_name(path: &Path) -> PathBuf {
    if path.as_os_str() == "-" { "standard input".into() } else { path.to_owned() }
}

/// Why nothing is known of a file with this head.
fn unknown(path: &Path, head: &[u8]) -> SourceError {
    let named = path.to_str().and_then(Container::of_name);
    let what = match (head.is_empty(), cast_version(head), named) {
        (true, ..) => "it is empty: nothing was recorded yet".to_owned(),
        _ if is_meta(head) => {
            "this is the sidecar of a recording, not one itself: give the .ahr that stands beside it"
                .to_owned()
        }
        (_, Some(version), _) => {
            format!("an asciicast of version {version} cannot be read: versions 1 to 3 can")
        }
        (_, _, Some(named)) => {
            return SourceError::Misnamed { path: path.to_owned(), named: named.format };
        }
        _ => return SourceError::Unknown(path.to_owned()),
    };
    SourceError::Not { path: path.to_owned(), what }
}

fn detect(name: Option<&str>, head: &[u8]) -> Option<Container> {
    if is_meta(head) {
        return None;
    }
    if !Container::is_zst(head) {
        // Damage at its start makes a native recording no other format: its reader finds the next
        // block.
        return Container::detect(name, head, false)
            .or_else(|| name.and_then(Container::of_name).filter(|c| c.format == Format::Ahr));
    }
    let mut inside = vec![0; HEAD];
    let mut have = 0;
    // The head may end within the stream, so an error only says that this is all there is to look
    // at.
    if let Ok(mut reader) = ZstReader::new(head) {
        while let Ok(n @ 1..) = reader.read(&mut inside[have..]) {
            have += n;
        }
    }
    Container::detect(name, &inside[..have], true)
        .or_else(|| name.and_then(Container::of_name).filter(|c| c.zst))
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
