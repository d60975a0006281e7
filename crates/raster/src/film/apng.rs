//! Animated PNG: all colours, and what changed as a rectangle of each frame.

use std::io::{self, Write};
use std::time::Duration;

use super::Encoder;
use crate::image::{Area, Image};
use crate::png::{Pixels, SIGNATURE, chunk, compress, filtered, header};

/// Writes an animated PNG that repeats for ever.
///
/// The file says at its beginning how many frames it has. When that is known at last, overwrite
/// [`Apng::COUNT_AT`] and what follows with [`Apng::count`].
#[derive(Debug)]
pub struct Apng<W: Write> {
    out: W,
    level: u32,
    sequence: u32,
    frames: u32,
    /// The frame whose end is not known yet, its compressed pixels, and when it begins.
    pending: Option<(Area, Vec<u8>, Duration)>,
    scratch: Vec<u8>,
}

impl<W: Write> Apng<W> {
    /// Where the chunk with the number of frames is.
    pub const COUNT_AT: u64 = 8 + 25;

    /// The chunk with the number of frames.
    pub fn count(frames: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut data = [0; 8];
        data[..4].copy_from_slice(&frames.to_be_bytes());
        chunk(&mut out, b"acTL", &data).expect("a vector takes all bytes");
        out
    }

    /// Begins a film, compressed at a level from 0 to 9. It announces as many frames as can be.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn new(mut out: W, width: u32, height: u32, level: u32) -> io::Result<Self> {
        out.write_all(&SIGNATURE)?;
        chunk(&mut out, b"IHDR", &header(width, height, 8, 2))?;
        out.write_all(&Self::count(i32::MAX as u32))?;
        Ok(Self { out, level, sequence: 0, frames: 0, pending: None, scratch: Vec::new() })
    }

    fn next(&mut self) -> [u8; 4] {
        let number = self.sequence.to_be_bytes();
        self.sequence += 1;
        number
    }

    fn flush(&mut self, end: Duration) -> io::Result<()> {
        let Some((area, data, start)) = self.pending.take() else { return Ok(()) };
        let delay = (end.as_millis().saturating_sub(start.as_millis()) as u64).max(1);
        let (delay, per_second) = match delay {
            0..=0xffff => (delay, 1000_u16),
            0x1_0000..=655_350 => (delay / 10, 100),
            _ => ((delay / 1000).min(0xffff), 1),
        };
        let mut control = Vec::with_capacity(26);
        control.extend(self.next());
        for n in [area.width, area.height, area.x, area.y] {
            control.extend(n.to_be_bytes());
        }
        control.extend((delay as u16).to_be_bytes());
        control.extend(per_second.to_be_bytes());
        // Keep what is there, and replace the pixels of the rectangle.
        control.extend([0, 0]);
        chunk(&mut self.out, b"fcTL", &control)?;
        if self.frames == 0 {
            chunk(&mut self.out, b"IDAT", &data)?;
        } else {
            let mut numbered = self.next().to_vec();
            numbered.extend(data);
            chunk(&mut self.out, b"fdAT", &numbered)?;
        }
        self.frames += 1;
        Ok(())
    }
}

impl<W: Write> Encoder for Apng<W> {
    /// The writer, and the number of frames.
    type Done = (W, u32);

    fn frame(&mut self, _old: &Image, new: &Image, area: Area, at: Duration) -> io::Result<()> {
        self.flush(at)?;
        self.scratch.clear();
        let columns = area.x as usize..(area.x + area.width) as usize;
        let mut above = None;
        for y in area.y..area.y + area.height {
            let row = &new.row(y)[columns.clone()];
            filtered(row, above, Pixels::Rgb, &mut self.scratch);
            above = Some(row);
        }
        self.pending = Some((area, compress(&self.scratch, self.level)?, at));
        Ok(())
    }

    fn finish(mut self, end: Duration) -> io::Result<(W, u32)> {
        self.flush(end)?;
        chunk(&mut self.out, b"IEND", &[])?;
        self.out.flush()?;
        Ok((self.out, self.frames))
    }
}
