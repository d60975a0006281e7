//! Zstandard around a text or byte format: `.cast.zst`, `.ttyrec.zst`. A few kilobytes can stand
//! for terabytes, so the reader stops when the ratio is beyond anything that a session makes.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::xxh64::Xxh64;
use crate::{Error, FilePosition, Result};

/// The frame's first bytes.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// So much may come out whatever went in.
const FREE: u64 = 256 << 20;
/// Beyond that, at most this many bytes out for each byte in: a spinner that runs for days comes to
/// a few hundred.
const MAX_RATIO: u64 = 4096;
/// Largest window, 32 MiB: the highest ordinary level uses 8.
const WINDOW_LOG_MAX: u32 = 25;

/// A stream is made of frames of at least this much, which can be read without each other: damage
/// costs one of them.
const FRAME: u64 = 256 << 10;

/// So much is given to the decompressor at once.
const STEP: usize = 1024;

/// Decompresses as it is read.
pub struct ZstReader<R: Read> {
    /// `None` once the decompressor could not be made anew.
    inner: Option<zstd::Decoder<'static, Input<R>>>,
    /// How much came in.
    taken: Arc<AtomicU64>,
    out: u64,
    through_damage: bool,
    torn: Arc<OnceLock<String>>,
}

/// What stands in the place of a frame that could not be read: no block of a recording.
const DAMAGE: &[u8] = b"<damaged>";

/// The compressed stream, with bytes in front of it that were taken and are to be taken again.
struct Input<R> {
    again: &'static [u8],
    inner: BufReader<Counted<R>>,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.again.is_empty() {
            return Ok(self.again);
        }
        // What the decompressor gives before damage is lost with the step that meets it.
        let have = self.inner.fill_buf()?;
        Ok(&have[..have.len().min(STEP)])
    }

    fn consume(&mut self, n: usize) {
        match self.again.get(n..) {
            Some(rest) if !self.again.is_empty() => self.again = rest,
            _ => self.inner.consume(n),
        }
    }
}

/// Counts the bytes that came in.
#[derive(Debug)]
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

impl<R: Read> ZstReader<R> {
    /// Around a compressed stream.
    ///
    /// # Errors
    /// When memory for the decompressor cannot be had.
    pub fn new(inner: R) -> Result<Self> {
        let fail = |source| Error::Read { at: FilePosition::Byte(0), source };
        let taken = Arc::new(AtomicU64::new(0));
        let inner = BufReader::with_capacity(1 << 17, Counted { inner, count: taken.clone() });
        let inner = decoder(Input { again: &[], inner }).map_err(fail)?;
        Ok(Self { inner: Some(inner), taken, out: 0, through_damage: false, torn: Arc::default() })
    }

    /// The count of the bytes that came in.
    pub(crate) fn taken(&self) -> Arc<AtomicU64> {
        self.taken.clone()
    }

    /// Why the stream has no end, once that is known of one that is read through damage.
    pub(crate) fn torn(&self) -> Arc<OnceLock<String>> {
        self.torn.clone()
    }

    /// Goes on behind a damaged frame, with a few bytes in its place that no recording holds: for a
    /// format that finds damage itself, and its way behind it.
    #[must_use]
    pub(crate) fn through_damage(mut self) -> Self {
        self.through_damage = true;
        self
    }

    /// Moves to the next frame, or to the end.
    fn skip_frame(&mut self) -> io::Result<()> {
        let Some(broken) = self.inner.take() else { return Ok(()) };
        let mut input = broken.finish();
        // At least one byte on: the broken frame may begin here.
        input.fill_buf()?;
        input.consume(1);
        let mut matched = 0;
        loop {
            let have = input.fill_buf()?;
            if have.is_empty() {
                return Ok(());
            }
            let mut passed = 0;
            for byte in have {
                passed += 1;
                matched = match *byte {
                    byte if byte == MAGIC[matched] => matched + 1,
                    byte => usize::from(byte == MAGIC[0]),
                };
                if matched == MAGIC.len() {
                    break;
                }
            }
            input.consume(passed);
            if matched == MAGIC.len() {
                input.again = &MAGIC;
                self.inner = Some(decoder(input)?);
                return Ok(());
            }
        }
    }
}

fn decoder<R: BufRead>(input: R) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(input)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

impl<R: Read> Read for ZstReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(inner) = &mut self.inner else { return Ok(0) };
        let read = inner.read(buf);
        let taken = self.taken.load(Ordering::Relaxed);
        let n = match read {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                let what = format!(
                    "the compressed stream has no end: {} bytes could be read; it is still being written, \
                     or was cut off",
                    self.out
                );
                if self.through_damage {
                    // What came so far is judged first.
                    self.inner = None;
                    let _ = self.torn.set(what);
                    return Ok(0);
                }
                return Err(io::Error::new(e.kind(), what));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(_) if self.through_damage && buf.len() >= DAMAGE.len() => {
                self.skip_frame()?;
                buf[..DAMAGE.len()].copy_from_slice(DAMAGE);
                DAMAGE.len()
            }
            Err(e) => {
                let what = format!("the compressed stream is damaged after {} bytes: {e}", self.out);
                return Err(io::Error::new(e.kind(), what));
            }
        };
        self.out += n as u64;
        if self.out > FREE && self.out / MAX_RATIO > taken {
            let what = "expands beyond any recording: a decompression bomb";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(n)
    }
}

impl<R: Read> fmt::Debug for ZstReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstReader").field("out", &self.out).finish_non_exhaustive()
    }
}

/// Compresses what a writer made, in frames that can be read without each other. A frame ends
/// where a piece that was given ends.
pub struct ZstWriter {
    inner: zstd::Encoder<'static, Vec<u8>>,
    level: i32,
    /// Of what is in the frame.
    hash: Xxh64,
    in_frame: u64,
}

impl ZstWriter {
    /// At zstd's own level, 1 to 19; 3 is its default.
    ///
    /// # Errors
    /// When memory for the compressor cannot be had.
    pub fn new(level: i32) -> Result<Self> {
        let level = level.clamp(1, 19);
        Ok(Self { inner: encoder(level).map_err(write_error)?, level, hash: Xxh64::new(), in_frame: 0 })
    }

    /// Replaces `bytes` by as much of the compressed stream as is ready.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn step(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.write_all(bytes).map_err(write_error)?;
        self.hash.update(bytes);
        self.in_frame += bytes.len() as u64;
        bytes.clear();
        if self.in_frame >= FRAME {
            let next = encoder(self.level).map_err(write_error)?;
            let ended = std::mem::replace(&mut self.inner, next);
            bytes.append(&mut ended.finish().map_err(write_error)?);
            (self.hash, self.in_frame) = (Xxh64::new(), 0);
        } else {
            bytes.append(self.inner.get_mut());
        }
        Ok(())
    }

    /// All that was given so far, so that it can be read should nothing follow. Costs some
    /// compression.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn flush(&mut self) -> Result<Vec<u8>> {
        if self.in_frame > 0 {
            self.inner.flush().map_err(write_error)?;
        }
        Ok(std::mem::take(self.inner.get_mut()))
    }

    /// What would end the stream right behind the last flush, should nothing that follows be kept.
    /// Empty where a frame has just ended.
    pub fn end_here(&self) -> Vec<u8> {
        if self.in_frame == 0 {
            return Vec::new();
        }
        // An empty block that is the last, then the low half of the hash of everything before.
        let [a, b, c, d, ..] = self.hash.digest().to_le_bytes();
        vec![1, 0, 0, a, b, c, d]
    }

    /// The end of the compressed stream.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.inner.finish().map_err(write_error)
    }
}

fn encoder(level: i32) -> io::Result<zstd::Encoder<'static, Vec<u8>>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}

impl fmt::Debug for ZstWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstWriter").finish_non_exhaustive()
    }
}

fn write_error(source: io::Error) -> Error {
    Error::Write { at: FilePosition::Byte(0), source }
}

#[cfg(test)]
mod tests {
    use memchr::memmem;

    use super::*;

    #[test]
    fn steps_make_one_stream() {
        let mut writer = ZstWriter::new(3).unwrap();
        let mut file = Vec::new();
        let mut want = Vec::new();
        for i in 0..1000 {
            let mut piece = format!("line {i}\n").into_bytes();
            want.extend_from_slice(&piece);
            writer.step(&mut piece).unwrap();
            file.extend(piece);
        }
        file.extend(writer.finish().unwrap());
        let mut got = Vec::new();
        ZstReader::new(&file[..]).unwrap().read_to_end(&mut got).unwrap();
        assert_eq!(got, want);
        assert!(ZstReader::new(&file[..file.len() / 2]).unwrap().read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_stream_can_end_behind_any_flush() {
        let (mut writer, mut file, mut want) = (ZstWriter::new(3).unwrap(), Vec::new(), Vec::new());
        for i in 1..70_usize {
            let mut piece = vec![i as u8; i * 7 % 45];
            want.extend_from_slice(&piece);
            writer.step(&mut piece).unwrap();
            file.extend(piece);
            file.extend(writer.flush().unwrap());
            let mut got = Vec::new();
            let ended = [&file[..], &writer.end_here()[..]].concat();
            ZstReader::new(&ended[..]).unwrap().read_to_end(&mut got).expect("whole, and its checksum right");
            assert_eq!(got, want, "{i}");
        }
    }

    /// One flipped byte lost all of the stream.
    #[test]
    fn damage_costs_one_frame() {
        let (mut writer, mut file) = (ZstWriter::new(3).unwrap(), Vec::new());
        let pieces: Vec<Vec<u8>> = (0..40_u32)
            .map(|n| {
                (0..40_000).map(|i| ((n * 40_000 + i).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
            })
            .collect();
        for piece in &pieces {
            let mut piece = piece.clone();
            writer.step(&mut piece).unwrap();
            file.extend(piece);
        }
        file.extend(writer.finish().unwrap());
        let frames = memmem::find_iter(&file, &MAGIC).count();
        assert!(frames > 4, "{frames}");
        for at in (0..file.len()).step_by(file.len() / 97) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x40;
            let mut got = Vec::new();
            ZstReader::new(&damaged[..]).unwrap().through_damage().read_to_end(&mut got).unwrap();
            let kept = pieces.iter().filter(|piece| memmem::find(&got, piece).is_some()).count();
            assert!(kept >= 40 - 8, "{at}: {kept} of 40 pieces");
            assert!(memmem::find(&got, DAMAGE).is_some(), "{at}: it is told");
        }
    }

    /// A flipped byte lost all of a stream of one frame, even what comes before it.
    #[test]
    fn damage_in_a_short_stream_costs_what_comes_behind_it() {
        let (mut writer, mut file) = (ZstWriter::new(3).unwrap(), Vec::new());
        let pieces: Vec<Vec<u8>> = (0..20_u32)
            .map(|n| (0..2000).map(|i| ((n * 2000 + i).wrapping_mul(2_654_435_761) >> 11) as u8).collect())
            .collect();
        let mut ends = Vec::new();
        for piece in &pieces {
            let mut piece = piece.clone();
            writer.step(&mut piece).unwrap();
            file.extend(piece);
            file.extend(writer.flush().unwrap());
            ends.push(file.len());
        }
        file.extend(writer.finish().unwrap());
        for n in [5, 10, 19] {
            let mut damaged = file.clone();
            // The header of a block, so that the decompressor stops there.
            damaged[ends[n - 1]] |= 0x06;
            let mut got = Vec::new();
            ZstReader::new(&damaged[..]).unwrap().through_damage().read_to_end(&mut got).unwrap();
            let kept = pieces.iter().filter(|piece| memmem::find(&got, piece).is_some()).count();
            assert!(kept + 2 >= n, "{kept} pieces of {n}");
        }
    }

    #[test]
    fn a_growing_stream_says_how_far_it_could_be_read() {
        let mut writer = ZstWriter::new(3).unwrap();
        let mut piece = vec![b'x'; 1000];
        writer.step(&mut piece).unwrap();
        piece.extend(writer.flush().unwrap());
        let mut got = Vec::new();
        let error = ZstReader::new(&piece[..]).unwrap().read_to_end(&mut got).unwrap_err();
        assert!(got.len() == 1000 && error.to_string().contains("1000 bytes could be read"), "{error}");
    }

    #[test]
    fn a_bomb_is_stopped() {
        let mut writer = ZstWriter::new(3).unwrap();
        let mut file = Vec::new();
        for _ in 0..300 {
            let mut piece = vec![0; 1 << 20];
            writer.step(&mut piece).unwrap();
            file.extend(piece);
        }
        file.extend(writer.finish().unwrap());
        let error = io::copy(&mut ZstReader::new(&file[..]).unwrap(), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("bomb"), "{error}");
    }
}
