//! A picture of a terminal that stays as it is.

use std::fmt;

use tapdeck_tape::export::{SvgOptions, html_still, svg_still};
use tapdeck_term::{Cursor, Settings, Size, StyledCell, Term, Theme};

/// A picture of a terminal's screen: text, styles and cursor at one moment.
///
/// It prints as the rows' text, blank rows at the end left off. Two screens are equal when they
/// show the same.
///
/// ```
/// use tapdeck::Screen;
///
/// let screen = Screen::of_output(20, 3, b"one\r\n\x1b[1mtwo");
/// assert_eq!(screen.row(1), "two");
/// assert_eq!(screen.to_string(), "one\ntwo");
/// assert!(screen.cell(1, 0).is_some_and(|cell| cell.text == "t"));
/// assert!(screen.to_html().contains("font-weight"));
/// ```
#[derive(Clone)]
pub struct Screen(Box<Term>);

impl Screen {
    /// The screen that this terminal shows now.
    pub fn of(term: &Term) -> Self {
        let settings = Settings::default().scrollback(0).replies(false);
        let mut copy = Term::new(term.size(), settings);
        copy.feed(&term.dump_screen());
        Self(Box::new(copy))
    }

    /// The screen that a terminal of this size shows after this output.
    pub fn of_output(cols: u16, rows: u16, output: &[u8]) -> Self {
        let settings = Settings::default().scrollback(0).replies(false);
        let mut term = Term::new(Size::new(cols, rows), settings);
        term.feed(output);
        Self(Box::new(term))
    }

    /// The screen's size.
    pub fn size(&self) -> Size {
        self.0.size()
    }

    /// The cursor.
    pub fn cursor(&self) -> Cursor {
        self.0.cursor()
    }

    /// The window's title.
    pub fn title(&self) -> &str {
        self.0.title()
    }

    /// The text of a row, counted from 0, without blanks at its end; empty outside of the screen.
    pub fn row(&self, row: u16) -> String {
        self.0.row(row).map(|line| line.text()).unwrap_or_default()
    }

    /// The text of all rows, from the top.
    pub fn rows(&self) -> impl Iterator<Item = String> + '_ {
        self.0.screen().map(|line| line.text())
    }

    /// A cell by its row and column, counted from 0; `None` outside of the screen.
    pub fn cell(&self, row: u16, col: u16) -> Option<StyledCell> {
        self.0.cell(row, col)
    }

    /// Whether the text is in one of the rows.
    pub fn contains(&self, text: &str) -> bool {
        self.0.screen().any(|line| line.text().contains(text))
    }

    /// The rows with their colours, as a terminal understands them.
    pub fn to_ansi(&self) -> String {
        let mut out = Vec::new();
        for line in self.0.screen() {
            line.write_ansi(&mut out, true);
            out.push(b'\n');
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A picture in SVG.
    pub fn to_svg(&self) -> String {
        self.to_svg_in(Theme::default())
    }

    /// A picture in SVG, in the colours of a theme.
    pub fn to_svg_in(&self, theme: Theme) -> String {
        let mut out = Vec::new();
        let mut options = SvgOptions::default();
        options.theme = Some(theme);
        // Memory takes everything, so this cannot fail.
        let written = svg_still(&self.0, options, &mut out);
        debug_assert!(written.is_ok(), "{written:?}");
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A picture in pixels.
    ///
    /// # Errors
    /// When an option is out of range, the chosen font is not installed, or the picture would be
    /// too large.
    #[cfg(feature = "raster")]
    pub fn to_image(
        &self,
        look: &tapdeck_raster::Look,
    ) -> Result<tapdeck_raster::Image, tapdeck_raster::RasterError> {
        let mut raster = tapdeck_raster::Raster::new(look.clone())?;
        raster.draw(&self.0)?;
        Ok(raster.image().clone())
    }

    /// The rows as a `<pre>` element with inline styles, which can stand in any HTML page.
    pub fn to_html(&self) -> String {
        self.to_html_in(Theme::default())
    }

    /// The rows as a `<pre>` element, in the colours of a theme.
    pub fn to_html_in(&self, theme: Theme) -> String {
        let mut out = Vec::new();
        // Memory takes everything, so this cannot fail.
        let written = html_still(&self.0, theme, &mut out);
        debug_assert!(written.is_ok(), "{written:?}");
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The model behind the picture.
    pub fn term(&self) -> &Term {
        &self.0
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text())
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { cols, rows } = self.size();
        write!(f, "Screen {cols}x{rows}\n{self}")
    }
}

impl PartialEq for Screen {
    fn eq(&self, other: &Self) -> bool {
        self.size() == other.size()
            && self.cursor() == other.cursor()
            && self.title() == other.title()
            && self.0.screen().map(|line| line.runs()).eq(other.0.screen().map(|line| line.runs()))
    }
}
