//! Films: one picture after the other in a file, of which only what changed is written.

mod apng;
mod gif;
mod palette;

use std::io;
use std::time::Duration;

use tapdeck_term::Rgb;

use crate::image::{Area, Image, mix, opaque};
use crate::raster::Damage;

pub use apng::Apng;
pub use gif::Gif;

/// A format that films are written in. It gets the part of a picture that changed.
pub trait Encoder {
    /// What is left when the film is complete.
    type Done;

    /// Takes the next frame, which is shown from a time on: `old` became `new`, and only `area`
    /// differs.
    ///
    /// # Errors
    /// When the writer fails.
    fn frame(&mut self, old: &Image, new: &Image, area: Area, at: Duration) -> io::Result<()>;

    /// Ends the film at a time.
    ///
    /// # Errors
    /// When the writer fails.
    fn finish(self, end: Duration) -> io::Result<Self::Done>;
}

/// A film in the making: pictures go in, and each frame has what differs from the one before.
///
/// All frames have the size of the film. What a picture does not cover has the colour of the
/// backdrop, and so has what is transparent in it.
#[derive(Debug)]
pub struct Film<E> {
    encoder: E,
    old: Image,
    new: Image,
    backdrop: [u8; 4],
    /// Size of the last picture.
    size: (u32, u32),
    frames: u32,
}

impl<E: Encoder> Film<E> {
    /// Begins a film of a size in pixels.
    pub fn new(encoder: E, width: u32, height: u32, backdrop: Rgb) -> Self {
        let backdrop = opaque(backdrop);
        let blank = Image::new(width, height, backdrop);
        Self { encoder, old: blank.clone(), new: blank, backdrop, size: (0, 0), frames: 0 }
    }

    /// Frames that were written so far.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Takes a picture that is shown from a time on, and what of it changed since the last one.
    /// Returns whether it made a frame: a picture that looks like the last one makes none.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn show(&mut self, image: &Image, damage: &Damage, at: Duration) -> io::Result<bool> {
        let size = (image.width(), image.height());
        let resized = std::mem::replace(&mut self.size, size) != size;
        let damage = if resized { &Damage::All } else { damage };
        for y in damage.rows(self.new.height()) {
            let row = self.new.span(0, i32::MAX, y as i32);
            let shown = if y < image.height() { image.row(y) } else { &[] };
            let shown = &shown[..shown.len().min(row.len())];
            let (covered, rest) = row.split_at_mut(shown.len());
            for (to, from) in covered.iter_mut().zip(shown) {
                *to = if from[3] == 255 { *from } else { mix(self.backdrop, *from, from[3]) };
            }
            rest.fill(self.backdrop);
        }
        let mut area = self.new.difference(&self.old, damage.rows(self.new.height()));
        if self.frames == 0 {
            // The first frame is the whole picture.
            area = Some(self.new.area());
        }
        let Some(area) = area else { return Ok(false) };
        self.encoder.frame(&self.old, &self.new, area, at)?;
        self.frames += 1;
        for y in area.y..area.y + area.height {
            self.old.span(0, i32::MAX, y as i32).copy_from_slice(self.new.row(y));
        }
        Ok(true)
    }

    /// Ends the film at a time.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn finish(self, end: Duration) -> io::Result<E::Done> {
        self.encoder.finish(end)
    }
}

#[cfg(test)]
mod tests;
