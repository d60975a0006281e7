//! PNG files: stills, with a palette where 256 colours are enough.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::image::Image;

pub(crate) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// How the pixels of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pixels {
    Rgb,
    Rgba,
}

pub(crate) fn chunk(out: &mut impl Write, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(|_| io::Error::other("a chunk of over 4 GB"))?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(kind);
    crc.update(data);
    out.write_all(&length.to_be_bytes())?;
    out.write_all(kind)?;
    out.write_all(data)?;
    out.write_all(&crc.finalize().to_be_bytes())
}

/// The header: size, bits a sample and colour type, as PNG numbers it.
pub(crate) fn header(width: u32, height: u32, bits: u8, colour: u8) -> [u8; 13] {
    let mut out = [0; 13];
    out[..4].copy_from_slice(&width.to_be_bytes());
    out[4..8].copy_from_slice(&height.to_be_bytes());
    (out[8], out[9]) = (bits, colour);
    out
}

/// Appends a row of pixels with the filter that takes each from the one above or the one before,
/// whichever leaves less.
pub(crate) fn filtered(row: &[[u8; 4]], above: Option<&[[u8; 4]]>, pixels: Pixels, out: &mut Vec<u8>) {
    // Terminal pictures are flat: where a row repeats, only zeros are left of it.
    let up = above.is_some_and(|above| above == row);
    out.push(if up { 2 } else { 0 });
    let n = if pixels == Pixels::Rgba { 4 } else { 3 };
    if up {
        out.resize(out.len() + row.len() * n, 0);
    } else {
        for pixel in row {
            out.extend_from_slice(&pixel[..n]);
        }
    }
}

pub(crate) fn compress(data: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut zlib = ZlibEncoder::new(Vec::with_capacity(data.len() / 8), Compression::new(level));
    zlib.write_all(data)?;
    zlib.finish()
}

/// The colours of a picture in the order in which they appear, or `None` if there are over 256.
fn few_colours(image: &Image) -> Option<(Vec<[u8; 4]>, Vec<u8>)> {
    let mut known: HashMap<[u8; 4], u8> = HashMap::new();
    let mut list = Vec::new();
    let mut indexes = Vec::with_capacity(image.pixels().len());
    let mut last = None::<([u8; 4], u8)>;
    for pixel in image.pixels() {
        let index = match last {
            Some((same, index)) if same == *pixel => index,
            _ => match known.get(pixel) {
                Some(index) => *index,
                None => {
                    let index = u8::try_from(list.len()).ok()?;
                    list.push(*pixel);
                    known.insert(*pixel, index);
                    index
                }
            },
        };
        last = Some((*pixel, index));
        indexes.push(index);
    }
    Some((list, indexes))
}

impl Image {
    /// The picture as a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_png(&mut out).expect("a vector takes all bytes");
        out
    }

    /// Writes the picture as a PNG file.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_png(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&SIGNATURE)?;
        let (w, h) = (self.width(), self.height());
        let mut data = Vec::new();
        if let Some((colours, indexes)) = few_colours(self) {
            let bits: usize = match colours.len() {
                0..=2 => 1,
                3..=4 => 2,
                5..=16 => 4,
                _ => 8,
            };
            chunk(out, b"IHDR", &header(w, h, bits as u8, 3))?;
            let palette: Vec<u8> = colours.iter().flat_map(|c| [c[0], c[1], c[2]]).collect();
            chunk(out, b"PLTE", &palette)?;
            if colours.iter().any(|c| c[3] < 255) {
                let alphas: Vec<u8> = colours.iter().map(|c| c[3]).collect();
                chunk(out, b"tRNS", &alphas)?;
            }
            for row in indexes.chunks(w.max(1) as usize) {
                data.push(0);
                for packed in row.chunks(8 / bits) {
                    let byte = packed.iter().enumerate();
                    data.push(byte.fold(0, |b, (i, index)| b | index << (8 - bits * (i + 1))));
                }
            }
        } else {
            let transparent = self.pixels().iter().any(|p| p[3] < 255);
            let pixels = if transparent { Pixels::Rgba } else { Pixels::Rgb };
            chunk(out, b"IHDR", &header(w, h, 8, if transparent { 6 } else { 2 }))?;
            for y in 0..h {
                filtered(self.row(y), y.checked_sub(1).map(|y| self.row(y)), pixels, &mut data);
            }
        }
        chunk(out, b"IDAT", &compress(&data, 9)?)?;
        chunk(out, b"IEND", &[])
    }
}
