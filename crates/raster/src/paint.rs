//! One row of a screen, painted: backgrounds, characters, lines, and the cursor.

use tapdeck_term::{Attrs, Colour, CursorShape, LineSize, Palette, Style, Underline};

use crate::glyphs::{Cell, Glyph, Glyphs, Ink, Shape, Stretch};
use crate::image::{Image, mix, opaque};
use crate::raster::{Placed, Row, paper};

/// Where a row goes.
#[derive(Clone, Copy)]
pub(crate) struct Band {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) cell: Cell,
}

pub(crate) struct Painter<'a> {
    pub(crate) image: &'a mut Image,
    pub(crate) glyphs: &'a mut Glyphs,
    pub(crate) palette: &'a Palette,
    pub(crate) reverse: bool,
}

/// A character with its colours and its place in pixels.
struct Drawn<'a> {
    text: &'a str,
    placed: Placed,
    x0: i32,
    x1: i32,
    ink: [u8; 4],
    paper: [u8; 4],
}

/// The geometry of a row: single, or one half of a row of double height.
struct Geometry {
    stretch: Stretch,
    across: i32,
    down: i32,
    /// Where the row that characters are drawn on begins; above the band for a lower half.
    top: i32,
}

impl Painter<'_> {
    pub(crate) fn row(mut self, row: &Row, band: Band) {
        let cell = band.cell;
        let height = cell.height as i32;
        let bottom = band.y + height;
        let (stretch, lower) = match row.size {
            LineSize::Single => (Stretch::No, false),
            LineSize::DoubleWidth => (Stretch::Wide, false),
            LineSize::DoubleTop => (Stretch::WideAndHigh, false),
            LineSize::DoubleBottom => (Stretch::WideAndHigh, true),
        };
        let (across, down) = stretch.factors();
        let top = if lower { band.y - height } else { band.y };
        let g = Geometry { stretch, across: across as i32, down: down as i32, top };
        let back = opaque(paper(self.palette, self.reverse));
        self.image.fill(band.x, band.y, band.x + band.width, bottom, back);

        let pitch = cell.width as i32 * g.across;
        let right = band.x + band.width;
        let mut cells: Vec<Drawn<'_>> = Vec::with_capacity(usize::from(u8::MAX));
        for (text, placed) in row.cells() {
            let x0 = band.x + i32::from(placed.col) * pitch;
            let x1 = (x0 + i32::from(placed.columns) * pitch).min(right);
            if x0 >= right {
                break;
            }
            let selected = (row.selected.0..row.selected.1).contains(&placed.col);
            let (ink, paper) = self.colours(&placed.style, selected);
            cells.push(Drawn { text, placed, x0, x1, ink, paper });
        }
        let under = row.cursor.and_then(|(col, shape)| {
            let at =
                |c: &Drawn<'_>| (c.placed.col..c.placed.col + u16::from(c.placed.columns)).contains(&col);
            let found = cells.iter().position(at);
            let x0 = band.x + i32::from(col) * pitch;
            (found.is_some() || x0 < right).then_some((found, x0, shape))
        });
        let colour = opaque(self.palette.dynamic(2));
        if let Some((Some(i), _, CursorShape::Default | CursorShape::Block)) = under {
            (cells[i].ink, cells[i].paper) = (back, colour);
        }
        for same in cells.chunk_by(|a, b| a.paper == b.paper) {
            if let [first, ..] = same
                && first.paper != back
            {
                let end = same.last().map_or(first.x1, |last| last.x1);
                self.image.fill(first.x0, band.y, end, bottom, first.paper);
            }
        }
        for c in &cells {
            self.character(c, &g, band);
        }
        for same in cells.chunk_by(|a, b| a.placed.style == b.placed.style && a.ink == b.ink) {
            if let (Some(first), Some(last)) = (same.first(), same.last()) {
                self.lines(first, last.x1, &g, band);
            }
        }
        if let Some((found, x0, shape)) = under {
            let (x0, x1) = found.map_or((x0, (x0 + pitch).min(right)), |i| (cells[i].x0, cells[i].x1));
            let line = cell.line as i32;
            match shape {
                CursorShape::Underline => {
                    let y = bottom - (2 * line).min(height);
                    self.image.fill(x0, y, x1, bottom, colour);
                }
                CursorShape::Bar => {
                    let x1 = (x0 + (line * 3 + 1) / 2).min(x1);
                    self.image.fill(x0, band.y, x1, bottom, colour);
                }
                _ if found.is_none() => self.image.fill(x0, band.y, x1, bottom, colour),
                _ => {}
            }
        }
    }

    /// The colours of text and background.
    fn colours(&self, style: &Style, selected: bool) -> ([u8; 4], [u8; 4]) {
        let dynamic = |n: usize| self.palette.dynamic(if self.reverse { 1 - n } else { n });
        let mut ink = opaque(match style.fg {
            Colour::Default => dynamic(0),
            other => self.palette.foreground(other),
        });
        let mut paper = opaque(match style.bg {
            Colour::Default => dynamic(1),
            other => self.palette.background(other),
        });
        if style.attrs.contains(Attrs::INVERSE) != selected {
            std::mem::swap(&mut ink, &mut paper);
        }
        if style.attrs.contains(Attrs::FAINT) {
            ink = mix(paper, ink, 140);
        }
        (ink, paper)
    }

    fn character(&mut self, c: &Drawn<'_>, g: &Geometry, band: Band) {
        let attrs = c.placed.style.attrs;
        if attrs.contains(Attrs::CONCEAL) || matches!(c.text, "" | " ") {
            return;
        }
        let style = u8::from(attrs.contains(Attrs::BOLD)) | u8::from(attrs.contains(Attrs::ITALIC)) << 1;
        let shape = Shape { style, columns: c.placed.columns, stretch: g.stretch };
        let glyph = self.glyphs.get(c.text, shape);
        let clip = (band.x, band.y, band.x + band.width, band.y + band.cell.height as i32);
        blit(self.image, glyph, (c.x0, g.top), c.ink, clip);
    }

    /// Draws underline, strike and overline of neighbours of one style.
    fn lines(&mut self, first: &Drawn<'_>, x1: i32, g: &Geometry, band: Band) {
        let Style { attrs, underline, underline_colour, link, .. } = first.placed.style;
        if attrs.contains(Attrs::CONCEAL) {
            return;
        }
        let cell = band.cell;
        let thick = cell.line as i32 * g.down;
        let full = g.top + cell.height as i32 * g.down;
        let mut pen = Pen {
            image: &mut *self.image,
            x0: first.x0,
            x1,
            origin: band.x,
            clip: (band.y, band.y + cell.height as i32),
            pitch: cell.width as i32 * g.across,
            thick,
        };
        let y = g.top + cell.underline as i32 * g.down;
        let colour = match underline_colour {
            Colour::Default => first.ink,
            other => opaque(self.palette.foreground(other)),
        };
        match underline {
            Underline::None if link != 0 => {
                let faint = mix(first.paper, first.ink, 150);
                pen.pattern(y, |x| x.rem_euclid(2 * thick) < thick, faint);
            }
            Underline::None => {}
            Underline::Single => pen.line(y, colour),
            Underline::Double => {
                let y = y.min(full - 3 * thick);
                pen.line(y, colour);
                pen.line(y + 2 * thick, colour);
            }
            Underline::Curly => pen.wave(y, full, colour),
            Underline::Dotted => pen.pattern(y, |x| x.rem_euclid(2 * thick) < thick, colour),
            Underline::Dashed => {
                let pitch = pen.pitch;
                pen.pattern(y, |x| x.rem_euclid(pitch) < (pitch * 5 + 7) / 8, colour);
            }
        }
        if attrs.contains(Attrs::STRIKE) {
            pen.line(g.top + cell.strike as i32 * g.down, first.ink);
        }
        if attrs.contains(Attrs::OVERLINE) {
            pen.line(g.top, first.ink);
        }
    }
}

/// Draws lines from `x0` to `x1`, cut to the rows of pixels of a band.
struct Pen<'a> {
    image: &'a mut Image,
    x0: i32,
    x1: i32,
    /// Patterns count from here, so that they go on from cell to cell.
    origin: i32,
    clip: (i32, i32),
    pitch: i32,
    thick: i32,
}

impl Pen<'_> {
    fn rows(&self, y: i32) -> std::ops::Range<i32> {
        y.max(self.clip.0)..(y + self.thick).min(self.clip.1)
    }

    fn line(&mut self, y: i32, colour: [u8; 4]) {
        for y in self.rows(y) {
            self.image.span(self.x0, self.x1, y).fill(colour);
        }
    }

    fn pattern(&mut self, y: i32, on: impl Fn(i32) -> bool, colour: [u8; 4]) {
        for y in self.rows(y) {
            for (x, pixel) in (self.x0..).zip(self.image.span(self.x0, self.x1, y)) {
                if on(x - self.origin) {
                    *pixel = colour;
                }
            }
        }
    }

    /// A wave of one cell's length, between the underline and the end of the row.
    fn wave(&mut self, y: i32, bottom: i32, colour: [u8; 4]) {
        let half = self.thick as f32 / 2.0;
        let height = ((self.thick * 3) as f32).min((bottom - y + self.thick) as f32).max(half * 2.0);
        let middle = (y as f32 + half).min(bottom as f32 - height / 2.0);
        let swing = (height / 2.0 - half).max(0.5);
        for x in self.x0..self.x1 {
            let turn = ((x - self.origin) as f32 + 0.5) / self.pitch as f32 * std::f32::consts::TAU;
            let centre = middle - turn.sin() * swing;
            // Steep parts of a wave are as thick as flat ones, measured across it.
            let slope = (turn.cos() * swing * std::f32::consts::TAU / self.pitch as f32).abs();
            let reach = half * slope.hypot(1.0).min(1.6);
            let (from, to) = ((centre - reach).floor() as i32, (centre + reach).ceil() as i32);
            for y in from.max(self.clip.0)..to.min(self.clip.1) {
                let covered = ((y + 1) as f32).min(centre + reach) - (y as f32).max(centre - reach);
                self.image.tint(x, y, colour, (covered.clamp(0.0, 1.0) * 255.0) as u8);
            }
        }
    }
}

/// Draws a glyph at a cell, cut to a rectangle.
pub(crate) fn blit(
    image: &mut Image,
    glyph: &Glyph,
    at: (i32, i32),
    ink: [u8; 4],
    clip: (i32, i32, i32, i32),
) {
    let (left, top) = (at.0 + glyph.left, at.1 + glyph.top);
    let (from, to) = ((clip.1 - top).max(0), (clip.3 - top).min(glyph.height as i32));
    let (x0, x1) = (left.max(clip.0), (left + glyph.width as i32).min(clip.2));
    if x0 >= x1 {
        return;
    }
    for row in from..to {
        let start = row as usize * glyph.width + (x0 - left) as usize;
        let pixels = image.span(x0, x1, top + row);
        match &glyph.ink {
            Ink::Mask(alpha) => {
                for (pixel, a) in pixels.iter_mut().zip(&alpha[start..]) {
                    match a {
                        0 => {}
                        255 => *pixel = ink,
                        a => *pixel = mix(*pixel, ink, *a),
                    }
                }
            }
            Ink::Colours(data) => {
                for (pixel, rgba) in pixels.iter_mut().zip(data[start * 4..].chunks_exact(4)) {
                    *pixel = mix(*pixel, [rgba[0], rgba[1], rgba[2], 255], rgba[3]);
                }
            }
        }
    }
}
