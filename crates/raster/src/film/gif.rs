//! Animated GIF: each frame has a palette of its own, and a transparent colour for what stays.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use gif::{DisposalMethod, EncodingError, Frame, Repeat};

use super::Encoder;
use super::palette::Census;
use crate::image::{Area, Image};

/// Writes an animated GIF that repeats for ever.
pub struct Gif<W: Write> {
    encoder: gif::Encoder<W>,
    census: Census,
    /// The frame whose end is not known yet, and when it begins.
    pending: Option<(Frame<'static>, Duration)>,
    begun: bool,
}

impl<W: Write> std::fmt::Debug for Gif<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gif").finish_non_exhaustive()
    }
}

fn failed(e: EncodingError) -> io::Error {
    match e {
        EncodingError::Io(e) => e,
        e => io::Error::other(e.to_string()),
    }
}

/// A time in the unit of GIF.
fn hundredths(time: Duration) -> u64 {
    (time.as_millis() as u64 + 5) / 10
}

/// Number of pixels that stay as they are.
const SAME: u32 = u32::MAX;

impl<W: Write> Gif<W> {
    /// Begins a film.
    ///
    /// # Errors
    /// When a side is longer than 65,535 pixels, or the writer fails.
    pub fn new(out: W, width: u32, height: u32) -> io::Result<Self> {
        let side = |n: u32| u16::try_from(n).map_err(|_| io::Error::other("too large for a GIF"));
        let mut encoder = gif::Encoder::new(out, side(width)?, side(height)?, &[]).map_err(failed)?;
        encoder.set_repeat(Repeat::Infinite).map_err(failed)?;
        Ok(Self { encoder, census: Census::default(), pending: None, begun: false })
    }

    fn flush(&mut self, end: Duration) -> io::Result<()> {
        let Some((mut frame, start)) = self.pending.take() else { return Ok(()) };
        // Browsers slow down frames that are shorter than two hundredths.
        let delay = hundredths(end).saturating_sub(hundredths(start)).max(2);
        frame.delay = delay.min(u16::MAX.into()) as u16;
        self.encoder.write_frame(&frame).map_err(failed)
    }

    /// The pixels of an area as colours by number, [`SAME`] for those that stay.
    fn numbers(&mut self, old: &Image, new: &Image, area: Area, whole: bool) -> Vec<u32> {
        self.census.clear();
        let mut numbers = Vec::with_capacity(area.width as usize * area.height as usize);
        let columns = area.x as usize..(area.x + area.width) as usize;
        let mut last = None::<([u8; 4], u32)>;
        for y in area.y..area.y + area.height {
            for (new, old) in new.row(y)[columns.clone()].iter().zip(&old.row(y)[columns.clone()]) {
                // What stays is transparent, unless it goes on with the colour before it: long
                // stretches of one number are what becomes small.
                let number = match last {
                    Some((same, number)) if same == *new => number,
                    _ if new == old && !whole => SAME,
                    _ => {
                        let number = self.census.count([new[0], new[1], new[2]], 1);
                        last = Some((*new, number));
                        number
                    }
                };
                if number == SAME {
                    last = None;
                }
                numbers.push(number);
            }
        }
        numbers
    }
}

impl<W: Write> Encoder for Gif<W> {
    type Done = W;

    fn frame(&mut self, old: &Image, new: &Image, area: Area, at: Duration) -> io::Result<()> {
        self.flush(at)?;
        // Nothing is there yet that could stay.
        let whole = !std::mem::replace(&mut self.begun, true);
        let numbers = self.numbers(old, new, area, whole);
        let (palette, entries) = self.census.palette();
        let transparent = palette.len() as u8;
        let entry = |n: &u32| entries.get(*n as usize).copied().unwrap_or(transparent);
        let mut colours: Vec<u8> = palette.into_iter().flatten().collect();
        let see_through = numbers.contains(&SAME);
        if see_through || colours.is_empty() {
            colours.extend([0; 3]);
        }
        let frame = Frame {
            dispose: DisposalMethod::Keep,
            transparent: see_through.then_some(transparent),
            left: area.x as u16,
            top: area.y as u16,
            width: area.width as u16,
            height: area.height as u16,
            palette: Some(colours),
            buffer: Cow::Owned(numbers.iter().map(entry).collect()),
            ..Frame::default()
        };
        self.pending = Some((frame, at));
        Ok(())
    }

    fn finish(mut self, end: Duration) -> io::Result<W> {
        self.flush(end)?;
        self.encoder.into_inner().map_err(failed)
    }
}
