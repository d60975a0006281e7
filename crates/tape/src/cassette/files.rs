//! A cassette as a set of named files, read from a folder or an archive within bounds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;

use super::{Refusal, names, tar};
use crate::zst::{MAGIC, ZstReader, ZstWriter};

/// Longest output.
const MAX_RAW: u64 = 1 << 30;
/// Longest stream of events.
const MAX_STREAM: u64 = 256 << 20;
/// Longest file that is one object.
const MAX_OBJECT: u64 = 16 << 20;

/// What is packed at a time.
const PIECE: u64 = 1 << 20;

/// The content of a cassette by file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, Bytes>);

/// Whether a path looks like a cassette: a folder with a manifest, or an archive by its name.
pub fn is_cassette(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if path.is_dir() {
        return path.join(names::MANIFEST).is_file() || path.join(names::RAW).is_file();
    }
    name.ends_with(".tar.zst") || name.ends_with(".tzst") || name.ends_with(".cassette")
}

impl Files {
    /// Reads a folder or an archive. Files that no cassette has are passed over.
    ///
    /// # Errors
    /// When it cannot be read, is neither, or has a file beyond all bounds.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        if std::fs::metadata(path).map_err(Refusal::Io)?.is_dir() {
            return Self::read_folder(path);
        }
        let mut file = File::open(path).map_err(Refusal::Io)?;
        if !file.metadata().map_err(Refusal::Io)?.is_file() {
            return Err(Refusal::NotACassette);
        }
        let mut head = Vec::new();
        (&mut file).take(4).read_to_end(&mut head).map_err(Refusal::Io)?;
        if head != MAGIC {
            return Err(Refusal::NotACassette);
        }
        let file = ZstReader::new(io::Cursor::new(head).chain(file));
        Self::read_archive(file.map_err(|e| Refusal::Io(io::Error::other(e)))?)
    }

    fn read_folder(folder: &Path) -> Result<Self, Refusal> {
        let mut files = Self::default();
        for name in names::REQUIRED.into_iter().chain(names::OPTIONAL) {
            let path = folder.join(name);
            let fail = |source| Refusal::File { file: name.into(), source };
            let file = match open_plain(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(fail(e)),
            };
            let bytes = bounded(file, name).map_err(|e| match e {
                Refusal::Io(source) => fail(source),
                e => e,
            })?;
            files.put(name, bytes);
        }
        if files.0.is_empty() {
            return Err(Refusal::NotACassette);
        }
        Ok(files)
    }

    /// Reads an archive that has been decompressed.
    ///
    /// # Errors
    /// When it is damaged, or has a file beyond all bounds.
    pub fn read_archive(mut from: impl Read) -> Result<Self, Refusal> {
        let mut files = Self::default();
        let mut at = 0_u64;
        let torn = |at: u64| move |e: io::Error| Refusal::Archive { at, what: e.to_string() };
        loop {
            let mut head = [0; 512];
            from.read_exact(&mut head).map_err(torn(at))?;
            let Some(member) = tar::parse(&head, at)? else { break };
            at += 512;
            let pad = tar::padding(member.len) as u64;
            let known = names::REQUIRED.into_iter().chain(names::OPTIONAL);
            let name = known.filter(|_| member.plain).find(|n| *n == member.name);
            let mut body = (&mut from).take(member.len);
            match name {
                Some(name) => {
                    if files.get(name).is_some() {
                        let what = format!("{name} is there twice");
                        return Err(Refusal::Archive { at, what });
                    }
                    let bytes = bounded(&mut body, name)?;
                    if bytes.len() as u64 != member.len {
                        return Err(Refusal::Archive { at, what: format!("{name} breaks off") });
                    }
                    files.put(name, bytes);
                }
                None => {
                    io::copy(&mut body, &mut io::sink()).map_err(torn(at))?;
                }
            }
            io::copy(&mut (&mut from).take(pad), &mut io::sink()).map_err(torn(at))?;
            at = at.saturating_add(member.len).saturating_add(pad);
        }
        if files.0.is_empty() {
            return Err(Refusal::NotACassette);
        }
        Ok(files)
    }

    /// The files as one archive; `folder` is the name that they stand under.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn to_archive(&self, folder: &str) -> crate::Result<Vec<u8>> {
        let mut out = Vec::new();
        let files = self.0.iter().map(|(name, bytes)| (&**name, bytes.len() as u64, &bytes[..]));
        pack(folder, files, &mut out).map_err(Refusal::Io)?;
        Ok(out)
    }

    /// Packs the files of a folder into one archive, a piece at a time; `name` is what they stand
    /// under.
    ///
    /// # Errors
    /// When the compressor or the disk fails.
    pub fn pack_folder(folder: &Path, name: &str, out: &mut impl Write) -> io::Result<()> {
        let mut names: Vec<&str> = names::REQUIRED.into_iter().chain(names::OPTIONAL).collect();
        names.sort_unstable();
        let mut files = Vec::new();
        for name in names {
            match open_plain(&folder.join(name)) {
                Ok(file) => files.push((name, file.metadata()?.len(), file)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        pack(name, files, out)
    }

    /// A file's content.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.0.get(name)
    }

    /// Sets a file's content.
    pub fn put(&mut self, name: &str, bytes: impl Into<Bytes>) {
        self.0.insert(name.to_owned(), bytes.into());
    }

    /// All files by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes))
    }

    pub(crate) fn need(&self, name: &'static str) -> Result<&Bytes, Refusal> {
        self.get(name).ok_or(Refusal::MissingFile { file: name })
    }
}

/// Writes an archive of files: their names, lengths and contents.
fn pack<'a, R: Read>(
    folder: &str,
    files: impl IntoIterator<Item = (&'a str, u64, R)>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut zst = ZstWriter::new(9).map_err(io::Error::other)?;
    let mut piece = Vec::new();
    for (name, len, mut content) in files {
        piece.extend_from_slice(&tar::header(folder, name, len));
        while content.by_ref().take(PIECE).read_to_end(&mut piece)? > 0 {
            zst.step(&mut piece).map_err(io::Error::other)?;
            out.write_all(&piece)?;
            piece.clear();
        }
        piece.resize(piece.len() + tar::padding(len), 0);
    }
    piece.resize(piece.len() + 1024, 0);
    zst.step(&mut piece).map_err(io::Error::other)?;
    out.write_all(&piece)?;
    out.write_all(&zst.finish().map_err(io::Error::other)?)
}

/// The longest content of a file of this name.
pub(crate) fn limit_of(name: &str) -> u64 {
    match name {
        names::RAW => MAX_RAW,
        name if name.ends_with(".jsonl") => MAX_STREAM,
        _ => MAX_OBJECT,
    }
}

/// Opens a file of a folder that may come from a stranger: no link out of the folder, and no pipe,
/// which could keep a reader waiting for ever.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other(
            "it is a symbolic link, and a cassette's files may not be; copy the file that it leads to",
        ),
        _ => e,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a plain file")),
    }
}

fn bounded(from: impl Read, name: &str) -> Result<Vec<u8>, Refusal> {
    let limit = limit_of(name);
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes).map_err(Refusal::Io)?;
    if bytes.len() as u64 > limit {
        return Err(Refusal::TooLarge { file: name.into(), limit });
    }
    Ok(bytes)
}
