//! Pixels, and the few ways in which they are changed.

use tapdeck_term::Rgb;

/// A picture of 8-bit RGBA pixels, row by row from the top left, without premultiplication.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Vec<[u8; 4]>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}x{})", self.width, self.height)
    }
}

/// A part of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First column of pixels.
    pub x: u32,
    /// First row of pixels.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// An opaque pixel.
pub(crate) fn opaque(Rgb(r, g, b): Rgb) -> [u8; 4] {
    [r, g, b, 255]
}

/// `over` at a share of `alpha / 255` above `under`; both are opaque.
#[inline]
pub(crate) fn mix(under: [u8; 4], over: [u8; 4], alpha: u8) -> [u8; 4] {
    let (a, rest) = (u32::from(alpha), 255 - u32::from(alpha));
    let part = |i: usize| ((u32::from(over[i]) * a + u32::from(under[i]) * rest + 127) / 255) as u8;
    [part(0), part(1), part(2), 255]
}

impl Image {
    /// A picture of one colour; `[0; 4]` is transparent.
    pub fn new(width: u32, height: u32, pixel: [u8; 4]) -> Self {
        Self { width, height, pixels: vec![pixel; width as usize * height as usize] }
    }

    /// Columns of pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows of pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// All pixels.
    pub fn pixels(&self) -> &[[u8; 4]] {
        &self.pixels
    }

    /// One row of pixels. Panics below the picture.
    pub fn row(&self, y: u32) -> &[[u8; 4]] {
        let start = y as usize * self.width as usize;
        &self.pixels[start..start + self.width as usize]
    }

    /// One pixel. Panics outside of the picture.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 4] {
        self.row(y)[x as usize]
    }

    /// All of the picture.
    pub fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// The pixels of a row from `x0` to `x1`, cut to the picture. Empty outside of it.
    pub(crate) fn span(&mut self, x0: i32, x1: i32, y: i32) -> &mut [[u8; 4]] {
        let cut = |x: i32| x.clamp(0, self.width as i32) as usize;
        if y < 0 || y >= self.height as i32 || cut(x0) >= cut(x1) {
            return &mut [];
        }
        let start = y as usize * self.width as usize;
        let (from, to) = (start + cut(x0), start + cut(x1));
        &mut self.pixels[from..to]
    }

    /// Fills a rectangle, cut to the picture.
    pub(crate) fn fill(&mut self, x0: i32, y0: i32, x1: i32, y1: i32, pixel: [u8; 4]) {
        for y in y0.max(0)..y1.min(self.height as i32) {
            self.span(x0, x1, y).fill(pixel);
        }
    }

    /// Draws a colour over one pixel of an opaque picture.
    pub(crate) fn tint(&mut self, x: i32, y: i32, colour: [u8; 4], alpha: u8) {
        if let [p] = self.span(x, x + 1, y) {
            *p = mix(*p, colour, alpha);
        }
    }

    /// Copies a picture to a place in this one, cut to it, with its transparent pixels.
    pub fn put(&mut self, x: u32, y: u32, other: &Self) {
        let n = other.width.min(self.width.saturating_sub(x)) as usize;
        for dy in 0..other.height.min(self.height.saturating_sub(y)) {
            let start = (y + dy) as usize * self.width as usize + x as usize;
            self.pixels[start..start + n].copy_from_slice(&other.row(dy)[..n]);
        }
    }

    /// The smallest rectangle with all pixels that differ from a picture of the same size, among
    /// the given rows. `None` where there is no difference.
    pub fn difference(&self, other: &Self, rows: impl IntoIterator<Item = u32>) -> Option<Area> {
        let mut found: Option<(u32, u32, u32, u32)> = None;
        for y in rows {
            let (a, b) = (self.row(y), other.row(y));
            if a == b {
                continue;
            }
            let first = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0) as u32;
            let last = a.iter().zip(b).rposition(|(a, b)| a != b).unwrap_or(0) as u32;
            found = Some(match found {
                None => (first, y, last, y),
                Some((x0, y0, x1, y1)) => (x0.min(first), y0.min(y), x1.max(last), y1.max(y)),
            });
        }
        found.map(|(x0, y0, x1, y1)| Area { x: x0, y: y0, width: x1 - x0 + 1, height: y1 - y0 + 1 })
    }
}
