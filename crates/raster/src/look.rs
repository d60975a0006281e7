//! What a picture is to look like.

use tapdeck_term::Theme;

use crate::RasterError;

/// The options of a picture.
///
/// ```
/// use tapdeck_raster::{Look, Raster};
/// use tapdeck_term::{Settings, Size, Term};
///
/// let mut term = Term::new(Size::new(20, 3), Settings::default());
/// term.feed(b"\x1b[32mready\x1b[m");
/// let mut raster = Raster::new(Look { font_size: 20.0, ..Look::default() })?;
/// raster.draw(&term)?;
/// let png = raster.image().to_png();
/// assert!(png.starts_with(b"\x89PNG"));
/// # Ok::<(), tapdeck_raster::RasterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Look {
    /// The colours that the program did not change.
    pub theme: Theme,
    /// The family of a font that is installed; without it the one that the crate carries.
    pub font: Option<String>,
    /// Height of the text in pixels.
    pub font_size: f32,
    /// Height of a row, as a multiple of the font's size.
    pub line_height: f32,
    /// Pixels for each pixel: 2 for screens of high density.
    pub scale: f32,
    /// Pixels around the grid.
    pub padding: u32,
    /// Draws a window around the grid, with a title bar and a shadow.
    pub window: bool,
    /// Draws the cursor where the program shows it.
    pub cursor: bool,
    /// Cells that are drawn as selected.
    pub selection: Option<Selection>,
    /// Looks for characters that the crate's fonts lack in the fonts of the system. Without it the
    /// same screen gives the same pixels on every machine.
    pub system_fonts: bool,
    /// Shades between ink and paper: 256 for stills, fewer for small films.
    pub shades: u8,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            font: None,
            font_size: 14.0,
            line_height: 1.2,
            scale: 1.0,
            padding: 10,
            window: false,
            cursor: true,
            selection: None,
            system_fonts: true,
            shades: 255,
        }
    }
}

impl Look {
    /// Height of the text that can be asked for.
    pub const FONT_SIZES: std::ops::RangeInclusive<f32> = 4.0..=200.0;
    /// Scales that can be asked for.
    pub const SCALES: std::ops::RangeInclusive<f32> = 0.25..=8.0;
    /// Padding that can be asked for.
    pub const PADDINGS: std::ops::RangeInclusive<u32> = 0..=500;

    /// Checks that all numbers are in range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), RasterError> {
        let fault = |what: &str| Err(RasterError::Option(what.to_owned()));
        if !Self::FONT_SIZES.contains(&self.font_size) {
            return fault("a font size is a number from 4 to 200");
        }
        if !(0.8..=3.0).contains(&self.line_height) {
            return fault("a line height is a number from 0.8 to 3");
        }
        if !Self::SCALES.contains(&self.scale) {
            return fault("a scale is a number from 0.25 to 8");
        }
        if !Self::PADDINGS.contains(&self.padding) {
            return fault("a padding is a number from 0 to 500");
        }
        Ok(())
    }

    /// Pixels of this many at a scale of 1.
    pub(crate) fn scaled(&self, pixels: u32) -> u32 {
        (pixels as f32 * self.scale).round() as u32
    }
}

/// A stretch of text, from its first cell to its last one, as row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The first cell.
    pub start: (u16, u16),
    /// The last cell.
    pub end: (u16, u16),
}

impl Selection {
    /// The columns that are selected in a row, the second one excluded.
    pub(crate) fn columns(&self, row: u16) -> (u16, u16) {
        let (start, end) = (self.start.min(self.end), self.start.max(self.end));
        if row < start.0 || row > end.0 {
            return (0, 0);
        }
        let from = if row == start.0 { start.1 } else { 0 };
        let to = if row == end.0 { end.1.saturating_add(1) } else { u16::MAX };
        (from, to)
    }
}
