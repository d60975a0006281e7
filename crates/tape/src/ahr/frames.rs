//! Blocks as they stand in the file, packed, for callers that open them elsewhere: on other
//! threads, several at a time. Only blocks of the plain kind are given, each of which leads to the
//! next; whatever else there is, is odd, and needs a [`super::BlockReader`].

use std::io::Read;

use bytes::BytesMut;

use super::block::{Block, is_boundary};
use super::codec::decompress_exact;
use super::header::{HEADER_LEN, Header, VERSION};
use super::record::walk;
use crate::Result;
use crate::window::Window;

/// Reads packed blocks one after another.
#[derive(Debug)]
pub struct Frames<R> {
    window: Window<R>,
    odd: bool,
}

impl<R: Read> Frames<R> {
    /// From a reader that stands at `offset`.
    pub fn new(inner: R, offset: u64) -> Self {
        Self { window: Window::new(inner, offset), odd: false }
    }

    /// The next block with its header, and where it begins; `None` at the end, or where something
    /// is odd.
    ///
    /// # Errors
    /// When the reader fails.
    pub fn next_frame(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let have = self.window.fill(HEADER_LEN)?;
        if have == 0 || self.odd {
            return Ok(None);
        }
        self.odd = true;
        let Some(header) = Header::from_bytes(self.window.data()).filter(is_plain) else { return Ok(None) };
        let len = HEADER_LEN + header.compressed_len as usize;
        self.window.fill(len + HEADER_LEN)?;
        if !is_boundary(self.window.data(), len) {
            return Ok(None);
        }
        self.odd = false;
        let offset = self.window.offset();
        let frame = self.window.data()[..len].to_vec();
        self.window.consume(len);
        Ok(Some((offset, frame)))
    }

    /// Whether it ended because something is odd.
    pub fn is_odd(&self) -> bool {
        self.odd
    }
}

fn is_plain(header: &Header) -> bool {
    header.version == VERSION && usize::from(header.header_len) == HEADER_LEN && header.fault().is_none()
}

impl Block {
    /// Opens a block of [`Frames`]; `None` when anything about it is not as it should be. `pool` is
    /// used again from block to block.
    pub fn open(offset: u64, frame: &[u8], pool: &mut BytesMut) -> Option<Self> {
        let header = Header::from_bytes(frame).filter(is_plain)?;
        let payload = frame.get(HEADER_LEN..)?;
        if payload.len() != header.compressed_len as usize || !header.fits(payload) {
            return None;
        }
        let whole = decompress_exact(payload, header.uncompressed_len as usize, pool).is_some();
        let bytes = pool.split().freeze();
        let found = walk(&bytes);
        let sound = whole && found.error.is_none() && found.count == u64::from(header.record_count);
        sound.then(|| Self {
            offset,
            len: frame.len() as u64,
            header,
            bytes,
            record_count: found.count,
            start_off: found.start_off,
            end_off: found.end_off,
            last_ts: found.last_ts,
            partial: false,
            raw: None,
            encrypted: false,
        })
    }
}
