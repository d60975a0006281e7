//! Zstandard around a text or byte format: `.cast.zst`, `.ttyrec.zst`. A few kilobytes can stand
//! for terabytes, so the reader stops when the ratio is beyond anything that a session makes.

use std::fmt;
use std::io::{self, BufReader, Read, Write};

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

/// Decompresses as it is read.
pub struct ZstReader<R: Read> {
    inner: zstd::Decoder<'static, BufReader<Counted<R>>>,
    out: u64,
}

/// Counts the bytes that came in.
#[derive(Debug)]
struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count += n as u64;
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
        let mut inner = zstd::Decoder::new(Counted { inner, count: 0 }).map_err(fail)?;
        inner.window_log_max(WINDOW_LOG_MAX).map_err(fail)?;
        Ok(Self { inner, out: 0 })
    }
}

impl<R: Read> Read for ZstReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.out += n as u64;
        let taken = self.inner.get_ref().get_ref().count;
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

/// Compresses what a writer made.
pub struct ZstWriter {
    inner: zstd::Encoder<'static, Vec<u8>>,
    hash: Xxh64,
}

impl ZstWriter {
    /// At zstd's own level, 1 to 19; 3 is its default.
    ///
    /// # Errors
    /// When memory for the compressor cannot be had.
    pub fn new(level: i32) -> Result<Self> {
        let fail = |source| Error::Write { at: FilePosition::Byte(0), source };
        let mut inner = zstd::Encoder::new(Vec::new(), level.clamp(1, 19)).map_err(fail)?;
        inner.include_checksum(true).map_err(fail)?;
        Ok(Self { inner, hash: Xxh64::new() })
    }

    /// Replaces `bytes` by as much of the compressed stream as is ready.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn step(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.write_all(bytes).map_err(write_error)?;
        self.hash.update(bytes);
        bytes.clear();
        bytes.append(self.inner.get_mut());
        Ok(())
    }

    /// All that was given so far, so that it can be read should nothing follow. Costs some
    /// compression.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn flush(&mut self) -> Result<Vec<u8>> {
        self.inner.flush().map_err(write_error)?;
        Ok(std::mem::take(self.inner.get_mut()))
    }

    /// What would end the stream right behind the last flush, should nothing that follows be kept.
    pub fn end_here(&self) -> [u8; 7] {
        // An empty block that is the last, then the low half of the hash of everything before.
        let [a, b, c, d, ..] = self.hash.digest().to_le_bytes();
        [1, 0, 0, a, b, c, d]
    }

    /// The end of the compressed stream.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.inner.finish().map_err(write_error)
    }
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
            let ended = [&file[..], &writer.end_here()].concat();
            ZstReader::new(&ended[..]).unwrap().read_to_end(&mut got).expect("whole, and its checksum right");
            assert_eq!(got, want, "{i}");
        }
    }

    #[test]
    fn a_bomb_is_stopped() {
        let mut writer = ZstWriter::new(19).unwrap();
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
