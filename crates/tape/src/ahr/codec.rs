//! Brotli, behind two functions. Both sides know the length of the records, so a block is
//! compressed and decompressed in one go between buffers of known size, and what a payload can
//! expand to is bounded by what its header declared.

use brotlic::decode::DecoderInfo;
use brotlic::{BrotliDecoder, CompressionMode, WindowSize};
use bytes::BytesMut;

/// A window of 256 KiB covers a whole block; a larger one only costs memory.
const LGWIN: u8 = 18;
/// Room for a block as this crate writes it, in one step.
const FIRST_STEP: usize = 512 * 1024;

/// How hard to compress a block. Every choice gives the same format, so it may change from block to
/// block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// A valid brotli stream of uncompressed meta-blocks, at about the speed of copying: for a
    /// program that writes faster than anything can compress.
    Stored,
    /// Brotli's own quality, 0 to 11; above 11 counts as 11.
    Brotli(u8),
}

impl Default for Quality {
    fn default() -> Self {
        Self::Brotli(4)
    }
}

/// How a decompression ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// The stream ended by itself after this much input and output.
    Whole { read: usize, written: usize },
    /// All input was used and more is needed; this much came out.
    Short { written: usize },
    /// The stream is not brotli, or holds more than the room given.
    Broken,
}

/// Appends a brotli stream of `input` to `out`.
pub(crate) fn compress(input: &[u8], quality: Quality, out: &mut Vec<u8>) {
    let base = out.len();
    if let Quality::Brotli(q) = quality
        && let (Ok(q), Ok(window)) = (brotlic::Quality::new(q.min(11)), WindowSize::new(LGWIN))
        && let Some(bound) = brotlic::compress_bound(input.len(), brotlic::Quality::default())
    {
        out.resize(base + bound, 0);
        if let Ok(len) = brotlic::compress(input, &mut out[base..], q, window, CompressionMode::Generic) {
            out.truncate(base + len);
            return;
        }
        out.truncate(base);
    }
    store(input, out);
}

/// Writes `input` as uncompressed meta-blocks (RFC 7932, section 9.2).
fn store(input: &[u8], out: &mut Vec<u8>) {
    // The stream opens with the window size: 4 bits that read 0011 for 18. The first meta-block's
    // header follows in the same byte; later ones start on a byte boundary, because uncompressed
    // bytes do.
    let (mut bits, mut used) = (0b0011_u32, 4);
    for chunk in input.chunks(1 << 20) {
        // ISLAST 0, MNIBBLES, MLEN - 1, ISUNCOMPRESSED 1, then padding. A length with a leading
        // nibble of zero is forbidden, so a short one takes four nibbles and a long one five.
        let (nibbles, width) = if chunk.len() <= 1 << 16 { (0b00, 16) } else { (0b01, 20) };
        bits |= (nibbles << 1) << used;
        used += 3;
        bits |= (chunk.len() as u32 - 1) << used;
        used += width;
        bits |= 1 << used;
        out.extend_from_slice(&bits.to_le_bytes()[..(used as usize + 8) / 8]);
        out.extend_from_slice(chunk);
        (bits, used) = (0, 0);
    }
    // ISLAST 1, ISLASTEMPTY 1.
    bits |= 0b11 << used;
    out.push(bits as u8);
}

/// Decompresses to the end of `out`, at most `limit` bytes. Memory is taken as the bytes come: a
/// header may declare megabytes for a payload that holds nothing.
pub(crate) fn decompress(input: &[u8], limit: usize, out: &mut BytesMut) -> Decoded {
    let mut decoder = BrotliDecoder::new();
    let base = out.len();
    let (mut read, mut written, mut room) = (0, 0, limit.min(FIRST_STEP));
    out.resize(base + room, 0);
    let decoded = loop {
        let Ok(step) = decoder.decompress(&input[read..], &mut out[base + written..]) else {
            break Decoded::Broken;
        };
        read += step.bytes_read;
        written += step.bytes_written;
        match step.info {
            DecoderInfo::Finished => break Decoded::Whole { read, written },
            DecoderInfo::NeedsMoreOutput if room < limit => {
                room = limit.min(room * 4);
                out.resize(base + room, 0);
            }
            DecoderInfo::NeedsMoreOutput => break Decoded::Broken,
            DecoderInfo::NeedsMoreInput if read == input.len() => break Decoded::Short { written },
            // A decoder that neither moves nor says why would be a bug; it must not become a hang.
            DecoderInfo::NeedsMoreInput if step.bytes_read == 0 && step.bytes_written == 0 => {
                break Decoded::Broken;
            }
            DecoderInfo::NeedsMoreInput => {}
        }
    };
    out.truncate(base + written);
    decoded
}

/// Decompresses a whole stream of exactly `len` bytes; `None` when it is anything else.
pub(crate) fn decompress_exact(input: &[u8], len: usize, out: &mut BytesMut) -> Option<()> {
    (decompress(input, len, out) == Decoded::Whole { read: input.len(), written: len }).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back() {
        // A stored block that a brotli decoder refuses would lose exactly the fastest part of a
        // session.
        for len in [0, 1, 2, 15, 16, 255, 65_535, 65_536, 262_144, 1 << 20, (1 << 20) + 1, 3 << 20] {
            let input: Vec<u8> = (0..len).map(|i: usize| (i * 7 + i / 251) as u8).collect();
            let mut packed = Vec::new();
            compress(&input, Quality::Stored, &mut packed);
            assert!(packed.len() <= len + 5 + 4 * (len >> 20), "{len} became {}", packed.len());
            let mut out = BytesMut::new();
            assert_eq!(
                decompress(&packed, len, &mut out),
                Decoded::Whole { read: packed.len(), written: len }
            );
            assert!(out == input, "{len} bytes differ");
        }
    }

    #[test]
    fn no_quality_loses_noise() {
        // Bytes that cannot be compressed need more room than they take; too little would drop the
        // block.
        let mut x = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        })
        .take(100_000)
        .collect();
        for q in 0..=12 {
            let mut packed = Vec::new();
            compress(&noise, Quality::Brotli(q), &mut packed);
            let mut out = BytesMut::new();
            assert_eq!(
                decompress(&packed, noise.len(), &mut out),
                Decoded::Whole { read: packed.len(), written: noise.len() }
            );
            assert!(out == noise);
        }
    }

    #[test]
    fn a_bomb_is_stopped_at_the_declared_length() {
        let mut packed = Vec::new();
        compress(&vec![0; 10 << 20], Quality::Brotli(5), &mut packed);
        assert!(packed.len() < 1000);
        assert_eq!(decompress(&packed, 4096, &mut BytesMut::new()), Decoded::Broken);
    }
}
