//! Pictures of a terminal: the grid of a [`Term`](tapdeck_term::Term) as pixels.
//!
//! [`Raster`] draws a screen in the colours of a [`Look`] and keeps the picture up to date: a row
//! that did not change is not drawn again. [`Image`] is written as PNG, and [`film`] writes one
//! picture after the other as GIF or APNG. There are no sessions and no clock in here.
//!
//! Text is drawn with fonts that the crate carries, so a picture needs nothing of its machine.
//! Lines, blocks, braille and the symbols of powerline are drawn by code: they meet their
//! neighbours without a seam at every size.

mod drawn;
pub mod film;
mod fonts;
mod glyphs;
mod image;
mod look;
mod paint;
mod png;
mod raster;
mod window;

pub use fonts::FONT;
pub use image::{Area, Image};
pub use look::{Look, Selection};
pub use raster::{Damage, Raster};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RasterError {
    /// No font has this name, or its file cannot be read.
    #[error("no font is called {0:?} on this system")]
    Font(String),
    /// An option is out of range.
    #[error("{0}")]
    Option(String),
    /// The picture would be too large.
    #[error("a picture of {width} by {height} pixels is too large; the limit is 67 million pixels")]
    TooLarge {
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
}
