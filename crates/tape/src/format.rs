//! Which format a file has. The content decides where it has a signature; the name decides
//! otherwise, and is all there is for a file that is about to be written.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use crate::ahr::{AhrEvents, AhrWriter, BlockReader, Quality, Reader};
use crate::ans::{AnsReader, AnsWriter};
use crate::carriage_returns::WithReturns;
use crate::cassette::{Cassette, CassetteReader, Files};
use crate::cast::{CastReader, CastVersion, CastWriter};
use crate::event::{EventReader, EventWriter, Header, Item, Kind};
use crate::meta::Meta;
use crate::raw::{RawReader, RawWriter};
use crate::three_a::{ThreeAReader, ThreeAWriter};
use crate::ttyrec::{MAX_RECORD, TtyrecReader, TtyrecWriter};
use crate::typescript::{STARTED, Timing, TypescriptReader, TypescriptWriter};
use crate::zst::{self, ZstReader};
use crate::{Error, FilePosition, Result, ahr};

/// So much of a compressed file is looked at.
const SNIFF: u64 = 16 * 1024;

/// A format of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The native recording.
    Ahr,
    /// asciicast version 1; read only.
    CastV1,
    /// asciicast version 2.
    CastV2,
    /// asciicast version 3.
    CastV3,
    /// ttyrec.
    Ttyrec,
    /// Typescript with a timing file.
    Typescript,
    /// DOS art.
    Ans,
    /// Animated ASCII art.
    ThreeA,
    /// Bare output.
    Raw,
    /// A golden master: a folder, or compressed one archive.
    Cassette,
}

/// A format, and whether it is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Container {
    /// The format inside.
    pub format: Format,
    /// Whether it is wrapped in Zstandard.
    pub zst: bool,
}

impl Container {
    /// By a file's name alone. A bare `.cast` is taken for version 3 when it is to be written.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let (name, zst) = match name.strip_suffix(".zst").or_else(|| name.strip_suffix(".zstd")) {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let format = match name.rsplit_once('.').map(|(_, end)| end) {
            Some("ahr") => Format::Ahr,
            Some("cast") => Format::CastV3,
            Some("ttyrec" | "tty") => Format::Ttyrec,
            Some("typescript" | "script") => Format::Typescript,
            Some("ans" | "ansi" | "ice") => Format::Ans,
            Some("3a") => Format::ThreeA,
            Some("raw" | "bin") => Format::Raw,
            Some("tar") if zst => Format::Cassette,
            Some("tzst") => return Some(Self { format: Format::Cassette, zst: true }),
            Some("cassette") => Format::Cassette,
            _ if name.ends_with("typescript") => Format::Typescript,
            _ => return None,
        };
        Some(Self { format, zst })
    }

    /// By a file's first bytes (a few kilobytes are plenty) and, where these are silent, its name.
    /// For a compressed file, give the first bytes of what is inside and say so.
    pub fn detect(name: Option<&str>, head: &[u8], zst: bool) -> Option<Self> {
        let named = name.and_then(Self::of_name);
        // A ttyrec has no signature: what looks like one is one, unless the name says that it is
        // another format.
        let looks = match named.map(|c| c.format) {
            // Nor does one begin with nothing: zeros are no recording.
            None => is_ttyrec(head, 1_000_000) && head.get(8..12) != Some(&[0; 4]),
            // Some recorders let microseconds run over, and players do not mind.
            Some(Format::Ttyrec) => is_ttyrec(head, u32::MAX),
            Some(_) => false,
        };
        let format = by_content(head).or(looks.then_some(Format::Ttyrec)).or_else(|| {
            // Names of formats with a signature that is missing are not believed.
            named.map(|c| c.format).filter(|f| matches!(f, Format::Ans | Format::Raw | Format::Typescript))
        })?;
        Some(Self { format, zst })
    }

    /// By a file's first bytes as they stand on disk: a compressed file is looked into. Give at
    /// least some kilobytes where there are as many.
    pub fn sniff(name: Option<&str>, head: &[u8]) -> Option<Self> {
        if !Self::is_zst(head) {
            return Self::detect(name, head, false);
        }
        let mut inner = Vec::new();
        // The head breaks off somewhere in the stream; what came out before that is enough.
        let _ = ZstReader::new(head).ok()?.take(SNIFF).read_to_end(&mut inner);
        Self::detect(name, &inner, true)
    }

    /// Whether a file begins as a Zstandard stream.
    pub fn is_zst(head: &[u8]) -> bool {
        head.starts_with(&zst::MAGIC)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ahr => "ahr",
            Self::CastV1 => "asciicast v1",
            Self::CastV2 => "asciicast v2",
            Self::CastV3 => "asciicast v3",
            Self::Ttyrec => "ttyrec",
            Self::Typescript => "typescript",
            Self::Ans => "ans",
            Self::ThreeA => "3a",
            Self::Raw => "raw",
            Self::Cassette => "cassette",
        })
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Format::CastV1 => f.write_str("cast-v1")?,
            Format::CastV2 => f.write_str("cast-v2")?,
            Format::CastV3 => f.write_str("cast-v3")?,
            other => write!(f, "{other}")?,
        }
        if self.zst { f.write_str(".zst") } else { Ok(()) }
    }
}

/// A text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown format {0:?}; use ahr, cast, cast-v1, cast-v2, cast-v3, ttyrec, typescript, ans, 3a, raw or cassette, \
     with .zst behind any of them"
)]
pub struct UnknownFormat(String);

impl std::str::FromStr for Container {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> std::result::Result<Self, UnknownFormat> {
        let (name, zst) = text.strip_suffix(".zst").map_or((text, false), |name| (name, true));
        let format = match name {
            "ahr" => Format::Ahr,
            "cast-v1" | "asciicast-v1" => Format::CastV1,
            "cast-v2" | "asciicast-v2" => Format::CastV2,
            "cast" | "asciicast" | "cast-v3" | "asciicast-v3" => Format::CastV3,
            "ttyrec" => Format::Ttyrec,
            "typescript" | "script" => Format::Typescript,
            "ans" => Format::Ans,
            "3a" => Format::ThreeA,
            "raw" => Format::Raw,
            "cassette" => Format::Cassette,
            _ => return Err(UnknownFormat(text.to_owned())),
        };
        Ok(Self { format, zst })
    }
}

fn by_content(head: &[u8]) -> Option<Format> {
    if head.starts_with(&ahr::MAGIC) {
        return Some(Format::Ahr);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(Format::Cassette);
    }
    if head.starts_with(STARTED) {
        return Some(Format::Typescript);
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if text.starts_with(b"@3a") && matches!(text.get(3), None | Some(b'\n' | b'\r' | b' ')) {
        return Some(Format::ThreeA);
    }
    by_version(text)
}

/// An asciicast opens with an object that holds its version, after comments.
fn by_version(text: &[u8]) -> Option<Format> {
    match version_in(text)? {
        1 => Some(Format::CastV1),
        2 => Some(Format::CastV2),
        3 => Some(Format::CastV3),
        _ => None,
    }
}

/// The version that the first bytes of an asciicast say, whether it can be read or not.
pub fn cast_version(head: &[u8]) -> Option<u64> {
    version_in(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start())
}

fn version_in(mut text: &[u8]) -> Option<u64> {
    while text.starts_with(b"#") {
        text = text[memchr::memchr(b'\n', text)?..].trim_ascii_start();
    }
    if !text.starts_with(b"{") {
        return None;
    }
    let at = memchr::memmem::find(text, b"\"version\"")?;
    let value = text[at + 9..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

/// A ttyrec has no signature, but its first record leads to a second or to the end.
fn is_ttyrec(head: &[u8], usec_below: u32) -> bool {
    let record = |at: usize| -> Option<usize> {
        let b = head.get(at..at + 12)?;
        let word = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        (word(4) < usec_below && word(8) as usize <= MAX_RECORD).then(|| at + 12 + word(8) as usize)
    };
    match record(0) {
        Some(next) if next < head.len() => next + 12 > head.len() || record(next).is_some(),
        Some(next) => next == head.len() || next > 12,
        None => false,
    }
}

/// What a reader needs beside the file itself.
#[derive(Default)]
#[non_exhaustive]
pub struct Beside<'a> {
    /// The sidecar of a native recording.
    pub meta: Option<Meta>,
    /// The labels of its markers.
    pub labels: BTreeMap<u32, String>,
    /// The timing file of a typescript.
    pub timing: Option<Box<dyn Read + Send + 'a>>,
    /// Speed at which DOS art is to appear.
    pub baud: Option<u32>,
}

impl<'a> Beside<'a> {
    /// Gives the sidecar of a native recording.
    #[must_use]
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.meta = meta.into();
        self
    }

    /// Gives the labels of its markers.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<u32, String>) -> Self {
        self.labels = labels;
        self
    }

    /// Gives the timing file of a typescript.
    #[must_use]
    pub fn timing(mut self, timing: impl Read + Send + 'a) -> Self {
        self.timing = Some(Box::new(timing));
        self
    }

    /// Sets the speed at which DOS art is to appear.
    #[must_use]
    pub fn baud(mut self, baud: impl Into<Option<u32>>) -> Self {
        self.baud = baud.into();
        self
    }
}

impl fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("meta", &self.meta).field("baud", &self.baud).finish_non_exhaustive()
    }
}

/// The sum of the sizes, in cells, that a recording may give its terminal: half a million changes
/// of a large one. Each costs time in proportion.
const MAX_RESIZED: u64 = 4_000_000_000;

/// A reader that refuses a recording of nothing but huge sizes.
struct Bounded<R> {
    inner: R,
    resized: u64,
}

/// Bounds what the sizes in a recording cost.
pub fn bounded<'a>(inner: impl EventReader + Send + 'a) -> Box<dyn EventReader + Send + 'a> {
    Box::new(Bounded { inner, resized: 0 })
}

impl<R: EventReader> EventReader for Bounded<R> {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        let item = self.inner.next_item()?;
        if let Some(Item::Event(event)) = &item
            && let Kind::Resize(size) = &event.kind
        {
            self.resized += u64::from(size.cols) * u64::from(size.rows);
            if self.resized > MAX_RESIZED {
                let at = FilePosition::Byte(self.position());
                return Err(Error::malformed(at, "changes the size of its terminal beyond any session"));
            }
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

/// Events from a compressed stream that may have no end, which is told behind them.
struct Torn<R> {
    events: R,
    /// `None` once it was told.
    torn: Option<Arc<OnceLock<String>>>,
}

impl<R: EventReader> EventReader for Torn<R> {
    fn header(&self) -> &Header {
        self.events.header()
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        let item = self.events.next_item()?;
        if item.is_none()
            && let Some(what) = self.torn.take().as_ref().and_then(|torn| torn.get())
        {
            let source = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, what.clone());
            return Err(Error::Read { at: FilePosition::Byte(self.position()), source });
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        self.events.position()
    }
}

/// Opens a recording of a known format.
///
/// # Errors
/// When its beginning is not of that format, or the timing file of a typescript is missing.
pub fn open<'a>(
    container: Container,
    file: impl Read + Send + 'a,
    beside: Beside<'a>,
) -> Result<Box<dyn EventReader + Send + 'a>> {
    if container == (Container { format: Format::Ahr, zst: true }) {
        // The blocks find damage, and their way behind it, themselves.
        let file = ZstReader::new(file)?.through_damage();
        let (count, torn) = (file.taken(), file.torn());
        let records = Reader::over(BlockReader::new(file).taken_from(count)).with_sound_times();
        let events = AhrEvents::over(records, beside.meta.as_ref(), beside.labels)?;
        return Ok(bounded(Torn { events, torn: Some(torn) }));
    }
    let file: Box<dyn Read + Send + 'a> =
        if container.zst { Box::new(ZstReader::new(file)?) } else { Box::new(file) };
    let reader: Box<dyn EventReader + Send + 'a> = match container.format {
        Format::Ahr => Box::new(AhrEvents::new(file, beside.meta.as_ref(), beside.labels)?),
        Format::CastV1 | Format::CastV2 | Format::CastV3 => Box::new(CastReader::new(file)?),
        Format::Ttyrec => Box::new(TtyrecReader::new(file)?),
        Format::Typescript => {
            let Some(timing) = beside.timing else {
                return Err(Error::malformed(FilePosition::Byte(0), "a typescript needs its timing file"));
            };
            Box::new(TypescriptReader::new(file, timing)?)
        }
        Format::Ans => Box::new(AnsReader::new(file, beside.baud)?),
        Format::ThreeA => Box::new(ThreeAReader::new(file)?),
        Format::Raw => Box::new(RawReader::new(file)),
        Format::Cassette => {
            let cassette = Cassette::from_files(&Files::read_archive(file)?)?;
            Box::new(CassetteReader::new(cassette))
        }
    };
    Ok(bounded(reader))
}

/// A writer of a format; `None` for one that is read only, or is not one file. Compression is the
/// caller's to add, with [`crate::zst::ZstWriter`].
pub fn writer(format: Format, quality: Quality) -> Option<Box<dyn EventWriter>> {
    Some(match format {
        Format::Ahr => Box::new(AhrWriter::new(quality)),
        // These have no way to say that there was no terminal, and are played on one.
        Format::CastV2 => Box::new(WithReturns::new(CastWriter::new(CastVersion::V2))),
        Format::CastV3 => Box::new(WithReturns::new(CastWriter::new(CastVersion::V3))),
        Format::Ttyrec => Box::new(WithReturns::new(TtyrecWriter::default())),
        Format::Typescript => Box::new(WithReturns::new(TypescriptWriter::new(Timing::Advanced))),
        Format::Ans => Box::new(WithReturns::new(AnsWriter::default())),
        Format::Raw => Box::new(RawWriter::default()),
        Format::ThreeA => Box::new(ThreeAWriter::default()),
        // A cassette is a folder of files, made by `cassette::Recording`.
        Format::CastV1 | Format::Cassette => return None,
    })
}
