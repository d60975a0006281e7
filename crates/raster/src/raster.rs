//! The screen of a terminal as a picture that is kept up to date.

use tapdeck_term::{Attrs, CursorShape, Line, LineSize, Palette, Rgb, Size, Style, Term};

use crate::RasterError;
use crate::fonts::Fonts;
use crate::glyphs::{Cell, Glyphs};
use crate::image::{Image, opaque};
use crate::look::Look;
use crate::paint::{Band, Painter};
use crate::window;

/// The most pixels of a picture.
const MAX_PIXELS: u64 = 1 << 26;

/// Draws screens, and only the rows of them that are not drawn yet.
///
/// [`Raster::draw`] takes any [`Term`]: it compares the screen with what it drew last.
#[derive(Debug)]
pub struct Raster {
    look: Look,
    cell: Cell,
    glyphs: Glyphs,
    image: Image,
    /// Where the grid begins.
    origin: (u32, u32),
    rows: Vec<Row>,
    spare: Row,
    drawn: Option<Ground>,
}

/// Pixels that a drawing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The whole picture, which may have another size than before.
    All,
    /// These rows of pixels, as half-open ranges from the top.
    Rows(Vec<std::ops::Range<u32>>),
}

impl Damage {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Rows(rows) if rows.is_empty())
    }

    /// The rows of pixels that changed in a picture of a height.
    pub fn rows(&self, height: u32) -> impl Iterator<Item = u32> + '_ {
        let all = matches!(self, Self::All).then_some(0..height);
        let some = match self {
            Self::All => &[],
            Self::Rows(rows) => rows.as_slice(),
        };
        all.into_iter().chain(some.iter().cloned()).flatten()
    }
}

/// What all rows have in common. When it changes, everything is drawn again.
#[derive(Clone, Debug, PartialEq)]
struct Ground {
    size: Size,
    palette: Palette,
    reverse: bool,
    title: String,
}

/// The contents of a row, as they were drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    text: String,
    cells: Vec<Placed>,
    pub(crate) size: LineSize,
    pub(crate) cursor: Option<(u16, CursorShape)>,
    pub(crate) selected: (u16, u16),
}

/// A character of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Where its text ends.
    end: u32,
    pub(crate) col: u16,
    pub(crate) columns: u8,
    pub(crate) style: Style,
}

impl Row {
    fn take(&mut self, line: &Line<'_>) {
        self.text.clear();
        self.cells.clear();
        let mut col = 0;
        line.each(|text, width, style| {
            self.text.push_str(text);
            // Protection is not seen, nor which link it is.
            let attrs = style.attrs.and(Attrs::VISIBLE);
            let style = Style { attrs, link: style.link.min(1), ..style };
            self.cells.push(Placed { end: self.text.len() as u32, col, columns: width as u8, style });
            col += width as u16;
        });
        self.size = line.size();
    }

    /// Text and place of each character.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&str, Placed)> {
        let mut start = 0;
        self.cells.iter().map(move |cell| {
            let text = &self.text[start..cell.end as usize];
            start = cell.end as usize;
            (text, *cell)
        })
    }
}

impl Raster {
    /// Loads the fonts.
    ///
    /// # Errors
    /// When an option is out of range, or the chosen font is not installed.
    pub fn new(look: Look) -> Result<Self, RasterError> {
        look.check()?;
        let fonts = Fonts::new(look.font.as_deref(), look.system_fonts)?;
        let cell = Cell::new(&fonts, look.font_size * look.scale, look.line_height);
        let glyphs = Glyphs::new(fonts, cell, look.shades);
        Ok(Self {
            look,
            cell,
            glyphs,
            image: Image::new(0, 0, [0; 4]),
            origin: (0, 0),
            rows: Vec::new(),
            spare: Row::default(),
            drawn: None,
        })
    }

    /// The options.
    pub fn look(&self) -> &Look {
        &self.look
    }

    /// Width and height of the picture of a screen.
    pub fn extent(&self, size: Size) -> (u32, u32) {
        let frame = window::Frame::new(&self.look);
        let (w, h) = self.grid(size);
        (w + frame.left + frame.right, h + frame.top + frame.bottom)
    }

    fn grid(&self, size: Size) -> (u32, u32) {
        (u32::from(size.cols) * self.cell.width as u32, u32::from(size.rows) * self.cell.height as u32)
    }

    /// The picture as it was drawn last.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Changes the cells that are drawn as selected.
    pub fn select(&mut self, selection: Option<crate::Selection>) {
        self.look.selection = selection;
    }

    /// Draws everything the next time.
    pub fn invalidate(&mut self) {
        self.drawn = None;
    }

    /// Brings the picture up to date, and returns what of it changed.
    ///
    /// # Errors
    /// When the picture would have more than 67 million pixels.
    pub fn draw(&mut self, term: &Term) -> Result<Damage, RasterError> {
        let size = term.size();
        let ground = Ground {
            size,
            palette: term.palette().under(self.look.theme),
            reverse: term.modes().reverse_video(),
            title: if self.look.window { term.title().to_owned() } else { String::new() },
        };
        let anew = self.drawn.as_ref() != Some(&ground);
        if anew {
            self.prepare(&ground)?;
        }
        let cursor = term.cursor();
        let mut changed: Vec<std::ops::Range<u32>> = Vec::new();
        for (y, line) in term.screen().enumerate() {
            let at = y as u16;
            self.spare.take(&line);
            let shown = self.look.cursor && cursor.visible && cursor.row == at;
            self.spare.cursor = shown.then_some((cursor.col, cursor.shape));
            self.spare.selected = self.look.selection.map_or((0, 0), |s| s.columns(at));
            if !anew && self.rows[y] == self.spare {
                continue;
            }
            std::mem::swap(&mut self.rows[y], &mut self.spare);
            let top = self.origin.1 + u32::from(at) * self.cell.height as u32;
            let (width, _) = self.grid(size);
            let band = Band { x: self.origin.0 as i32, y: top as i32, width: width as i32, cell: self.cell };
            let painter = Painter {
                image: &mut self.image,
                glyphs: &mut self.glyphs,
                palette: &ground.palette,
                reverse: ground.reverse,
            };
            painter.row(&self.rows[y], band);
            let bottom = top + self.cell.height as u32;
            match changed.last_mut() {
                Some(last) if last.end == top => last.end = bottom,
                _ => changed.push(top..bottom),
            }
        }
        self.drawn = Some(ground);
        Ok(if anew { Damage::All } else { Damage::Rows(changed) })
    }

    /// Draws what lies around the grid.
    fn prepare(&mut self, ground: &Ground) -> Result<(), RasterError> {
        let (width, height) = self.extent(ground.size);
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(RasterError::TooLarge { width, height });
        }
        self.rows = vec![Row::default(); usize::from(ground.size.rows)];
        let paper = paper(&ground.palette, ground.reverse);
        let frame = window::Frame::new(&self.look);
        self.origin = (frame.left, frame.top);
        if self.look.window {
            self.image = Image::new(width, height, [0; 4]);
            window::draw(&mut self.image, &self.look, &mut self.glyphs, self.cell, paper, &ground.title);
        } else {
            self.image = Image::new(width, height, opaque(paper));
        }
        Ok(())
    }
}

/// The colour behind everything.
pub(crate) fn paper(palette: &Palette, reverse: bool) -> Rgb {
    palette.dynamic(usize::from(!reverse))
}
