//! Characters as masks or small pictures, each drawn once and kept.

use std::collections::HashMap;

use swash::scale::image::{Content, Image as Rendered};
use swash::scale::{Render, ScaleContext, Source, StrikeWith};
use swash::shape::ShapeContext;
use swash::zeno::{Format, Transform};

use crate::drawn;
use crate::fonts::{FaceId, Fonts};

/// When the glyphs take more than this, all are forgotten.
const MAX_BYTES: usize = 32 << 20;

/// A glyph, placed relative to the top left of its first cell.
#[derive(Debug)]
pub(crate) struct Glyph {
    pub(crate) left: i32,
    pub(crate) top: i32,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) ink: Ink,
}

#[derive(Debug)]
pub(crate) enum Ink {
    /// How much of each pixel the text's colour covers.
    Mask(Vec<u8>),
    /// Pixels with colours of their own, as RGBA.
    Colours(Vec<u8>),
}

impl Glyph {
    fn nothing() -> Self {
        Self { left: 0, top: 0, width: 0, height: 0, ink: Ink::Mask(Vec::new()) }
    }

    fn bytes(&self) -> usize {
        let (Ink::Mask(data) | Ink::Colours(data)) = &self.ink;
        data.len() + 128
    }
}

/// How much larger than usual characters are drawn on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stretch {
    No,
    Wide,
    WideAndHigh,
}

impl Stretch {
    pub(crate) fn factors(self) -> (usize, usize) {
        match self {
            Self::No => (1, 1),
            Self::Wide => (2, 1),
            Self::WideAndHigh => (2, 2),
        }
    }
}

/// Everything that tells one glyph of a cluster from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Bit 0 bold, bit 1 italic.
    pub(crate) style: u8,
    /// Columns.
    pub(crate) columns: u8,
    pub(crate) stretch: Stretch,
}

/// The measures of a cell in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// From the top of the cell.
    pub(crate) baseline: usize,
    /// The thickness of lines.
    pub(crate) line: usize,
    /// The size of the font.
    pub(crate) em: f32,
    /// From the top of the cell to the lines of text.
    pub(crate) underline: usize,
    pub(crate) strike: usize,
}

impl Cell {
    /// A cell for text of a size, as wide as a whole number of pixels: the font is made to fit.
    pub(crate) fn new(fonts: &Fonts, size: f32, line_height: f32) -> Self {
        let font = fonts.face(fonts.text(0)).font();
        let metrics = font.metrics(&[]);
        let units = f32::from(metrics.units_per_em.max(1));
        let advance = font.glyph_metrics(&[]).advance_width(font.charmap().map('0')) / units;
        let advance = if advance > 0.1 { advance } else { 0.6 };
        let width = (size * advance).round().max(2.0);
        let em = width / advance;
        let metrics = metrics.scale(em);
        let height = (em * line_height).round().max(4.0);
        let spare = height - (metrics.ascent + metrics.descent);
        let baseline = (spare / 2.0 + metrics.ascent).round().clamp(1.0, height);
        let line = (em / 13.0).round().max(1.0);
        let below = (-metrics.underline_offset - metrics.stroke_size / 2.0).max(line).round();
        let middle = if metrics.strikeout_offset > 0.0 { metrics.strikeout_offset } else { em * 0.27 };
        let strike = (baseline - middle).round();
        Self {
            width: width as usize,
            height: height as usize,
            baseline: baseline as usize,
            line: line as usize,
            em,
            underline: (baseline + below).min(height - line).max(0.0) as usize,
            strike: strike.max(0.0) as usize,
        }
    }
}

/// The cache.
pub(crate) struct Glyphs {
    fonts: Fonts,
    cell: Cell,
    /// Shades between no ink and full ink, less one.
    shades: u16,
    scale: ScaleContext,
    shape: ShapeContext,
    list: Vec<Glyph>,
    bytes: usize,
    ascii: HashMap<Shape, Box<[Option<usize>; 128]>>,
    clusters: HashMap<Shape, HashMap<Box<str>, usize>>,
}

impl std::fmt::Debug for Glyphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Glyphs({})", self.list.len())
    }
}

impl Glyphs {
    pub(crate) fn new(fonts: Fonts, cell: Cell, shades: u8) -> Self {
        Self {
            fonts,
            cell,
            shades: u16::from(shades.max(2)) - 1,
            scale: ScaleContext::new(),
            shape: ShapeContext::new(),
            list: Vec::new(),
            bytes: 0,
            ascii: HashMap::new(),
            clusters: HashMap::new(),
        }
    }

    /// The glyph of a cluster.
    pub(crate) fn get(&mut self, text: &str, shape: Shape) -> &Glyph {
        let id = match text.as_bytes() {
            [b] if *b < 128 => self.ascii.get(&shape).and_then(|known| known[usize::from(*b)]),
            _ => self.clusters.get(&shape).and_then(|known| known.get(text)).copied(),
        };
        let id = id.unwrap_or_else(|| self.add(text, shape));
        &self.list[id]
    }

    fn add(&mut self, text: &str, shape: Shape) -> usize {
        let mut glyph = self.draw(text, shape);
        self.reduce(&mut glyph);
        if self.bytes + glyph.bytes() > MAX_BYTES {
            self.list.clear();
            self.ascii.clear();
            self.clusters.clear();
            self.bytes = 0;
        }
        self.bytes += glyph.bytes() + text.len();
        let id = self.list.len();
        self.list.push(glyph);
        match text.as_bytes() {
            [b] if *b < 128 => {
                self.ascii.entry(shape).or_insert_with(|| Box::new([None; 128]))[usize::from(*b)] = Some(id);
            }
            _ => {
                self.clusters.entry(shape).or_default().insert(text.into(), id);
            }
        }
        id
    }

    /// Reduces the shades of a mask, so that films have fewer colours.
    fn reduce(&self, glyph: &mut Glyph) {
        if let Ink::Mask(data) = &mut glyph.ink
            && self.shades < 255
        {
            for a in data {
                let step = (u16::from(*a) * self.shades + 127) / 255;
                *a = (step * 255 / self.shades) as u8;
            }
        }
    }

    fn draw(&mut self, text: &str, shape: Shape) -> Glyph {
        let mut chars = text.chars();
        let Some(first) = chars.next() else { return Glyph::nothing() };
        let alone = chars.as_str().is_empty();
        let (across, down) = shape.stretch.factors();
        let columns = usize::from(shape.columns.max(1));
        if alone {
            let (w, h) = (self.cell.width * across * columns, self.cell.height * down);
            if let Some(mask) = drawn::draw(first, w, h, self.cell.line * down) {
                return Glyph { left: 0, top: 0, width: w, height: h, ink: Ink::Mask(mask.alpha) };
            }
        }
        if first.is_whitespace() || first.is_control() {
            return Glyph::nothing();
        }
        let emoji = text.contains('\u{fe0f}')
            || shape.columns == 2 && matches!(u32::from(first), 0x2300..0x2c00 | 0x1f000..0x1fb00);
        let style = usize::from(shape.style);
        match self.fonts.find(first, emoji && !text.contains('\u{fe0e}'), style) {
            Some(face) => self.render(text, face, shape),
            None => self.missing(shape),
        }
    }

    /// What stands for a character that no font has: an empty box.
    fn missing(&self, shape: Shape) -> Glyph {
        let (across, down) = shape.stretch.factors();
        let (w, h) = (self.cell.width * across * usize::from(shape.columns.max(1)), self.cell.height * down);
        let mut mask = drawn::Mask::new(w, h);
        let line = (self.cell.line * down) as i32;
        let (x1, y1) = (w as i32 - line, (self.cell.baseline * down) as i32);
        let y0 = y1 - (self.cell.em * 0.73) as i32 * down as i32;
        mask.rect(line, y0, x1, y1, 255);
        mask.rect(2 * line, y0 + line, x1 - line, y1 - line, 0);
        Glyph { left: 0, top: 0, width: w, height: h, ink: Ink::Mask(mask.alpha) }
    }

    fn render(&mut self, text: &str, face: FaceId, shape: Shape) -> Glyph {
        let (across, down) = shape.stretch.factors();
        let cell = self.cell;
        let room = (cell.width * usize::from(shape.columns.max(1))) as f32;
        let own = face == self.fonts.text(usize::from(shape.style)) || face == self.fonts.text(0);
        let mut em = cell.em;
        let mut image = self.image(text, face, em, (across, down));
        // The font of the text fits by itself; others are made to fit into their cells.
        let limit = room * across as f32;
        if !own
            && let Some((_, width, ..)) = image.as_ref().map(Placed::extent)
            && width as f32 > limit
        {
            em *= limit / width as f32;
            image = self.image(text, face, em, (across, down));
        }
        let Some(placed) = image else { return Glyph::nothing() };
        let (left, width, top, height) = placed.extent();
        let mut shift = 0;
        let mut drop = (cell.baseline * down) as i32;
        if !own {
            shift = (limit as i32 - width as i32) / 2 - left;
            if em < cell.em || placed.is_coloured() {
                // In the middle of what capital letters take.
                let middle = drop - (cell.em * 0.365) as i32 * down as i32;
                drop = middle + top - (height as i32) / 2;
            }
        }
        let mut glyph = placed.flatten();
        glyph.left += shift;
        glyph.top += drop;
        glyph
    }

    /// The glyphs of a cluster, rendered and placed relative to the origin of the text.
    fn image(&mut self, text: &str, face: FaceId, em: f32, (across, down): (usize, usize)) -> Option<Placed> {
        let font = self.fonts.face(face).font();
        let mut glyphs = Vec::new();
        let mut chars = text.chars().filter(|c| !matches!(c, '\u{fe0e}' | '\u{fe0f}'));
        match (chars.next(), chars.next()) {
            (Some(ch), None) => glyphs.push((font.charmap().map(ch), 0.0, 0.0)),
            _ => {
                let mut shaper = self.shape.builder(font).size(em).build();
                shaper.add_str(text);
                let mut pen = 0.0;
                shaper.shape_with(|cluster| {
                    // A mark that the font lacks takes no room.
                    for glyph in cluster.glyphs.iter().filter(|glyph| glyph.id != 0) {
                        glyphs.push((glyph.id, pen + glyph.x, glyph.y));
                        pen += glyph.advance;
                    }
                });
                // Without a rule of the font, marks come after the character that they belong to.
                let marks = text.chars().skip(1).all(|c| tapdeck_term::char_width(c) == 0);
                let room = self.cell.width as f32 * em / self.cell.em;
                if marks {
                    glyphs
                        .iter_mut()
                        .skip(1)
                        .filter(|(_, x, _)| *x > room * 0.9)
                        .for_each(|(_, x, _)| *x -= room);
                }
                // Of joined emoji that the font cannot draw as one, the first stands for all.
                if text.contains('\u{200d}') {
                    glyphs.truncate(1);
                }
            }
        }
        let mut scaler = self.scale.builder(font).size(em * down as f32).hint(true).build();
        let mut parts = Vec::new();
        for (id, x, y) in glyphs.into_iter().filter(|(id, ..)| *id != 0) {
            let sources =
                [Source::ColorOutline(0), Source::ColorBitmap(StrikeWith::BestFit), Source::Outline];
            let mut render = Render::new(&sources);
            render.format(Format::Alpha);
            if across != down {
                render.transform(Some(Transform::scale(across as f32 / down as f32, 1.0)));
            }
            if let Some(image) = render.render(&mut scaler, id)
                && !image.data.is_empty()
            {
                parts.push(((x * across as f32).round() as i32, (y * down as f32).round() as i32, image));
            }
        }
        (!parts.is_empty()).then_some(Placed(parts))
    }
}

/// Rendered glyphs and where they go.
struct Placed(Vec<(i32, i32, Rendered)>);

impl Placed {
    /// Left edge, width, top edge above the baseline, and height of all together.
    fn extent(&self) -> (i32, u32, i32, u32) {
        let mut found: Option<(i32, i32, i32, i32)> = None;
        for (x, y, image) in &self.0 {
            let p = image.placement;
            let (left, top) = (x + p.left, y + p.top);
            let (right, bottom) = (left + p.width as i32, top - p.height as i32);
            found = Some(match found {
                None => (left, right, top, bottom),
                Some((l, r, t, b)) => (l.min(left), r.max(right), t.max(top), b.min(bottom)),
            });
        }
        let (left, right, top, bottom) = found.unwrap_or_default();
        (left, (right - left) as u32, top, (top - bottom) as u32)
    }

    fn is_coloured(&self) -> bool {
        self.0.iter().any(|(.., image)| image.content == Content::Color)
    }

    /// All in one, with the top below the baseline as the drawing counts it.
    fn flatten(self) -> Glyph {
        let (left, width, top, height) = self.extent();
        let (w, h) = (width as usize, height as usize);
        let coloured = self.is_coloured();
        let mut data = vec![0; w * h * if coloured { 4 } else { 1 }];
        for (x, y, image) in self.0 {
            let p = image.placement;
            let (dx, dy) = ((x + p.left - left) as usize, (top - y - p.top) as usize);
            for row in 0..p.height as usize {
                for col in 0..p.width as usize {
                    let from = row * p.width as usize + col;
                    let to = (dy + row) * w + dx + col;
                    match (coloured, image.content) {
                        (true, Content::Color) => {
                            if image.data[from * 4 + 3] > 0 {
                                data[to * 4..to * 4 + 4].copy_from_slice(&image.data[from * 4..from * 4 + 4]);
                            }
                        }
                        // A mark without colours at an emoji with them has none to take.
                        (true, _) => {}
                        (false, _) => data[to] = data[to].max(image.data[from]),
                    }
                }
            }
        }
        let ink = if coloured { Ink::Colours(data) } else { Ink::Mask(data) };
        Glyph { left, top: -top, width: w, height: h, ink }
    }
}
