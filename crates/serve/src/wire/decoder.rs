//! Decodes chunks as they arrive. Input and output are handed on piece by piece, so that a receiver
//! never holds a chunk of 16 MiB.

use bytes::{Buf, Bytes, BytesMut};
use tapdeck_proto::tty::Control;

use super::{ChunkKind, MAX_CHUNK, WireError, kind_of};

/// The longest control message.
pub const MAX_CONTROL: usize = 64 * 1024;

/// A part of what the peer sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Bytes of a stream; a chunk may come in several pieces.
    Bytes(ChunkKind, Bytes),
    /// A whole control message.
    Control(Control),
}

/// Decodes a stream of chunks.
#[derive(Debug, Default)]
pub struct Decoder {
    buf: BytesMut,
    /// The chunk that has begun, and how many of its bytes are missing.
    open: Option<(ChunkKind, usize)>,
}

impl Decoder {
    /// Returns the buffer to read into. It holds what is put in between two calls of
    /// [`Decoder::next`], and at most one control message.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buf
    }

    /// Returns the next piece; `None` when more has to be read first.
    ///
    /// # Errors
    /// When the bytes are not of this wire.
    #[expect(clippy::should_implement_trait, reason = "not an iterator: there may be more later")]
    pub fn next(&mut self) -> Result<Option<Piece>, WireError> {
        loop {
            let (kind, left) = match self.open {
                Some(open) => open,
                None => match self.begin()? {
                    Some(open) => open,
                    None => return Ok(None),
                },
            };
            if kind == ChunkKind::Control {
                if self.buf.len() < left {
                    return Ok(None);
                }
                self.open = None;
                return Ok(Some(Piece::Control(Control::parse(&self.buf.split_to(left))?)));
            }
            if left == 0 {
                self.open = None;
                continue;
            }
            if self.buf.is_empty() {
                return Ok(None);
            }
            let bytes = self.buf.split_to(left.min(self.buf.len())).freeze();
            self.open = Some((kind, left - bytes.len())).filter(|(_, left)| *left > 0);
            return Ok(Some(Piece::Bytes(kind, bytes)));
        }
    }

    fn begin(&mut self) -> Result<Option<(ChunkKind, usize)>, WireError> {
        let Some(code) = self.buf.first() else { return Ok(None) };
        let kind = kind_of(*code)?;
        let Some(head) = self.buf.first_chunk::<5>() else { return Ok(None) };
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let (what, limit) = match kind {
            ChunkKind::Control => ("control message", MAX_CONTROL),
            _ => ("chunk", MAX_CHUNK),
        };
        if len > limit {
            return Err(WireError::TooLong { what, len, limit });
        }
        self.buf.advance(5);
        self.open = Some((kind, len));
        Ok(self.open)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tapdeck_proto::tty::ServerControl;

    use super::super::{chunk_head, control};
    use super::*;

    /// Decodes these parts of a stream. Joins adjacent pieces of the same kind.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Piece>, WireError> {
        let mut decoder = Decoder::default();
        let mut got: Vec<Piece> = Vec::new();
        for piece in pieces {
            decoder.buffer().extend_from_slice(piece);
            while let Some(piece) = decoder.next()? {
                match (got.last_mut(), piece) {
                    (Some(Piece::Bytes(last, all)), Piece::Bytes(kind, bytes)) if *last == kind => {
                        *all = [&all[..], &bytes[..]].concat().into();
                    }
                    (_, piece) => got.push(piece),
                }
            }
        }
        Ok(got)
    }

    #[test]
    fn lengths_and_types_are_refused_before_they_are_waited_for() {
        let long = |kind, len| chunk_head(kind, len).to_vec();
        assert!(matches!(decode([&[9u8][..]]), Err(WireError::UnknownType(9))));
        assert!(decode([&long(ChunkKind::Stdin, MAX_CHUNK + 1)[..]]).is_err());
        assert!(decode([&long(ChunkKind::Control, MAX_CONTROL + 1)[..]]).is_err());
        assert_eq!(decode([&long(ChunkKind::Stdin, MAX_CHUNK)[..]]), Ok(vec![]));
        assert!(decode([&[3, 0, 0, 0, 2, b'[', b']'][..]]).is_err(), "no object");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            chunks in prop::collection::vec((0usize..4, prop::collection::vec(any::<u8>(), 0..50)), 0..10),
            cut in 1usize..20,
        ) {
            let mut stream = Vec::new();
            for (kind, payload) in chunks {
                let kind = [ChunkKind::Stdin, ChunkKind::Stdout, ChunkKind::Stderr, ChunkKind::Control][kind];
                if kind == ChunkKind::Control {
                    stream.extend_from_slice(&control(&ServerControl::Opened { session: payload.len().to_string() }));
                } else {
                    stream.extend_from_slice(&chunk_head(kind, payload.len()));
                    stream.extend_from_slice(&payload);
                }
            }
            prop_assert_eq!(decode(stream.chunks(cut)), decode([&stream[..]]));
        }

        #[test]
        fn nonsense_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1usize..20) {
            // Whatever it returns: a panic would fail the test.
            let _ = decode(bytes.chunks(cut));
        }
    }
}
