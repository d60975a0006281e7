//! Paints a model into a terminal of another size: as a whole, or the part around the cursor, and
//! only rows that changed.

use std::ops::Range;

use tapdeck_term::{
    Attrs, Colour, CursorShape, Generation, Line, Palette, Rgb, Size, Style, Term, Theme, Underline,
};

/// The terminal to paint into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Columns of the terminal.
    pub(crate) cols: u16,
    /// Rows of the terminal.
    pub(crate) rows: u16,
    /// Rows that the picture may use, from the top.
    pub(crate) free: u16,
    /// The first row and column to show. Without it the view follows the cursor.
    pub(crate) pan: Option<(u16, u16)>,
}

/// Something that is written over the picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    /// The rows of the terminal that it covers, in part or whole.
    pub(crate) rows: Range<u16>,
    /// What writes it, wherever the cursor is.
    pub(crate) bytes: Vec<u8>,
}

/// The place of a picture on a terminal, in rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where the picture begins on the terminal.
    pub(crate) at: (u16, u16),
    /// The first row and column of the model in sight.
    pub(crate) corner: (u16, u16),
    /// How much is in sight.
    pub(crate) shown: (u16, u16),
}

impl Layout {
    /// Whether a part of a model of this size is out of sight.
    pub(crate) fn hides(&self, size: Size) -> bool {
        self.shown != (size.rows, size.cols)
    }
}

/// Paints one model into one terminal.
pub(crate) struct Crop {
    /// A smaller picture stands in the middle, in a frame, not at the top left.
    centred: bool,
    colours: bool,
    /// The colours in place of the terminal's own.
    theme: Option<Theme>,
    seen: Option<Generation>,
    room: Option<Room>,
    layout: Layout,
    over: Overlay,
    shape: (CursorShape, bool),
}

impl Default for Crop {
    fn default() -> Self {
        Self::new(false, true, None)
    }
}

impl Crop {
    fn new(centred: bool, colours: bool, theme: Option<Theme>) -> Self {
        Self {
            centred,
            colours,
            theme,
            seen: None,
            room: None,
            layout: Layout { at: (0, 0), corner: (0, 0), shown: (0, 0) },
            over: Overlay::default(),
            shape: (CursorShape::Default, false),
        }
    }

    /// A painter that puts small pictures in the middle of the terminal, in a frame.
    pub(crate) fn centred(colours: bool, theme: Option<Theme>) -> Self {
        Self::new(true, colours, theme)
    }

    /// The colours in place of the terminal's own.
    pub(crate) fn theme(&self) -> Option<Theme> {
        self.theme
    }

    /// Whether it paints colours and styles.
    pub(crate) fn colours(&self) -> bool {
        self.colours
    }

    /// The generation that has been painted.
    pub(crate) fn seen(&self) -> Option<Generation> {
        self.seen
    }

    /// The layout of the last picture.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Has everything painted anew.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// Appends what undoes the changes to the terminal that a painting leaves.
    pub(crate) fn leave(&mut self, out: &mut Vec<u8>) {
        self.forget();
        if std::mem::replace(&mut self.shape, (CursorShape::Default, false)).0 != CursorShape::Default {
            out.extend_from_slice(b"\x1b[0 q");
        }
    }

    /// Computes where the picture of a model goes.
    pub(crate) fn layout_of(&self, term: &Term, room: Room) -> Layout {
        let (cursor, size) = (term.cursor(), term.size());
        let shown = (size.rows.min(room.free), size.cols.min(room.cols));
        let at = match self.centred {
            true => ((room.free - shown.0) / 2, (room.cols - shown.1) / 2),
            false => (0, 0),
        };
        let corner = match room.pan {
            Some((row, col)) => (row.min(size.rows - shown.0), col.min(size.cols - shown.1)),
            None => {
                // The beginning of a line comes back into sight as soon as the cursor does not keep
                // it out.
                let left = if cursor.col < shown.1 { 0 } else { self.layout.corner.1 };
                let top = follow(self.layout.corner.0, cursor.row, shown.0, size.rows);
                (top, follow(left, cursor.col, shown.1, size.cols))
            }
        };
        Layout { at, corner, shown }
    }

    /// Appends what brings a terminal up to date, with `over` written over the picture.
    pub(crate) fn paint(&mut self, term: &Term, room: Room, over: &Overlay, out: &mut Vec<u8>) {
        let layout = self.layout_of(term, room);
        let all = self.seen.is_none() || layout != self.layout || self.room != Some(room);
        (self.layout, self.room) = (layout, Some(room));
        let mut stale = vec![all; usize::from(room.rows)];
        if let Some(since) = self.seen.filter(|_| !all) {
            for row in term.diff(since).rows {
                let shown = row.row.checked_sub(layout.corner.0).filter(|y| *y < layout.shown.0);
                if let Some(row) = shown.and_then(|y| stale.get_mut(usize::from(y + layout.at.0))) {
                    *row = true;
                }
            }
        }
        let within = |rows: &Range<u16>| usize::from(rows.start)..usize::from(rows.end.min(room.rows));
        if *over != self.over {
            // What stood there is uncovered, and what comes may leave parts of its rows free.
            for rows in [within(&self.over.rows), within(&over.rows)] {
                stale.get_mut(rows).into_iter().flatten().for_each(|row| *row = true);
            }
        }
        let covers = stale.get(within(&over.rows)).is_some_and(|rows| rows.contains(&true));
        self.over.clone_from(over);
        self.seen = Some(term.generation());
        out.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        let brush = Brush::of(term, self.colours, self.theme);
        for y in (0..room.rows).filter(|y| stale[usize::from(*y)]) {
            self.paint_row(term, &brush, room, y, out);
        }
        if covers {
            out.extend_from_slice(&over.bytes);
        }
        self.place_cursor(term, out);
        out.extend_from_slice(b"\x1b[?2026l");
    }

    fn place_cursor(&mut self, term: &Term, out: &mut Vec<u8>) {
        let (cursor, Layout { at, corner, shown }) = (term.cursor(), self.layout);
        let shape = (cursor.shape, cursor.blink);
        if shape != self.shape {
            self.shape = shape;
            let steady = u8::from(!cursor.blink);
            let number = match cursor.shape {
                CursorShape::Default => 0,
                CursorShape::Block => 1 + steady,
                CursorShape::Underline => 3 + steady,
                CursorShape::Bar => 5 + steady,
            };
            out.extend_from_slice(format!("\x1b[{number} q").as_bytes());
        }
        let y = cursor.row.checked_sub(corner.0).filter(|y| *y < shown.0);
        let x = cursor.col.checked_sub(corner.1).filter(|x| *x < shown.1);
        if let (Some(y), Some(x)) = (y, x) {
            out.extend_from_slice(format!("\x1b[{};{}H", at.0 + y + 1, at.1 + x + 1).as_bytes());
            out.extend_from_slice(if cursor.visible { b"\x1b[?25h" } else { b"" });
        }
    }

    /// Paints a row of the terminal, with its margins.
    fn paint_row(&self, term: &Term, brush: &Brush, room: Room, y: u16, out: &mut Vec<u8>) {
        let Layout { at, corner, shown } = self.layout;
        out.extend_from_slice(format!("\x1b[{};1H\x1b[m", y + 1).as_bytes());
        let framed_left = self.centred && at.1 > 0;
        let end = at.1 + shown.1;
        let framed_right = self.centred && end < room.cols;
        let indent = at.1 - u16::from(framed_left);
        let line = y.checked_sub(at.0).filter(|y| *y < shown.0).and_then(|y| term.row(corner.0 + y));
        match line {
            Some(line) => {
                blanks(indent, out);
                out.extend_from_slice(if framed_left { "\x1b[2m│\x1b[m".as_bytes() } else { b"" });
                brush.write_part(&line, corner.1, shown.1, at.1, out);
                out.extend_from_slice(if framed_right { "\x1b[2m│\x1b[m".as_bytes() } else { b"" });
            }
            None if self.centred && (y + 1 == at.0 || y == at.0 + shown.0) && y < room.free => {
                let (left, right) = if y < at.0 { ("┌", "┐") } else { ("└", "┘") };
                blanks(indent, out);
                let corner = |framed, sign| if framed { sign } else { "" };
                let rule = "─".repeat(usize::from(shown.1));
                let (left, right) = (corner(framed_left, left), corner(framed_right, right));
                out.extend_from_slice(format!("\x1b[2m{left}{rule}{right}\x1b[m").as_bytes());
            }
            None => {
                out.extend_from_slice(b"\x1b[K");
                return;
            }
        }
        // In the last column this would erase what was written there.
        if end + u16::from(framed_right) < room.cols {
            out.extend_from_slice(b"\x1b[K");
        }
    }
}

fn blanks(n: u16, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(b' ', usize::from(n)));
}

/// The first place shown so that `at` is in sight, moved no more than it must be.
fn follow(first: u16, at: u16, room: u16, whole: u16) -> u16 {
    let last = whole.saturating_sub(room);
    let low = at.saturating_sub(room.saturating_sub(1));
    first.clamp(low.min(last), at.min(last).max(low.min(last)))
}

/// The styles of a model's rows on a terminal that has its own palette.
struct Brush {
    /// Palette entries that the program changed.
    changed: Vec<(u8, Colour)>,
    text: Colour,
    background: Colour,
    reverse: bool,
    colours: bool,
}

impl Brush {
    fn of(term: &Term, colours: bool, theme: Option<Theme>) -> Self {
        let (themed, usual) = (theme.map(|theme| term.palette().under(theme)), Palette::default());
        let palette = themed.as_ref().unwrap_or(term.palette());
        // The terminal may show any colour of the theme as another one, and the rest as they are.
        let differs = |ours: Rgb, usual: Rgb, always: bool| {
            (always || ours != usual).then_some(Colour::Rgb(ours.0, ours.1, ours.2))
        };
        let is_themed = |i: u8| themed.is_some() && i < 16;
        let entry = |i: u8| Some((i, differs(palette.entry(i), usual.entry(i), is_themed(i))?));
        let dynamic = |n| {
            let found = differs(palette.dynamic(n), usual.dynamic(n), themed.is_some());
            found.unwrap_or(Colour::Default)
        };
        Self {
            changed: (0..=255).filter_map(entry).collect(),
            text: dynamic(0),
            background: dynamic(1),
            reverse: term.modes().reverse_video(),
            colours,
        }
    }

    fn colour(&self, colour: Colour, default: Colour) -> Colour {
        match colour {
            Colour::Default => default,
            Colour::Indexed(i) => {
                self.changed.iter().find(|(n, _)| *n == i).map_or(colour, |(_, changed)| *changed)
            }
            Colour::Rgb(..) => colour,
        }
    }

    fn style(&self, style: Style) -> Style {
        if !self.colours {
            return Style::default();
        }
        let mut attrs = style.attrs.and(Attrs::VISIBLE);
        if self.reverse {
            let inverse = attrs.contains(Attrs::INVERSE);
            attrs = if inverse { attrs.without(Attrs::INVERSE) } else { attrs.or(Attrs::INVERSE) };
        }
        let underlined = style.underline != Underline::None;
        Style {
            fg: self.colour(style.fg, self.text),
            bg: self.colour(style.bg, self.background),
            underline_colour: if underlined { style.underline_colour } else { Colour::Default },
            attrs,
            link: 0,
            ..style
        }
    }

    /// Writes the columns of a row that are in sight, which begin at a column of the terminal. A
    /// wide character that is cut in half is left blank.
    fn write_part(&self, line: &Line<'_>, from: u16, cols: u16, column: u16, out: &mut Vec<u8>) {
        let (from, to) = (usize::from(from), usize::from(from) + usize::from(cols));
        let mut col = 0;
        let mut pen = Style::default();
        let (mut last, mut look) = (Style::default(), self.style(Style::default()));
        let plain = look;
        // Terminals disagree about the width of some characters; what follows keeps its column.
        let mut pin = false;
        let mut put = |text: &str, width: usize, style: Style, at: usize, out: &mut Vec<u8>| {
            if std::mem::take(&mut pin) {
                out.extend_from_slice(format!("\x1b[{}G", usize::from(column) + at - from + 1).as_bytes());
            }
            if style != pen {
                style.write_sgr(out);
                pen = style;
            }
            out.extend_from_slice(text.as_bytes());
            pin = width != 1 || (text.len() > 1 && text.chars().nth(1).is_some());
        };
        line.each(|text, width, style| {
            let at = col;
            col += width;
            if col <= from || at >= to {
                return;
            }
            if style != last {
                (last, look) = (style, self.style(style));
            }
            if text.is_empty() || at < from || col > to {
                (at.max(from)..col.min(to)).for_each(|at| put(" ", 1, look, at, out));
            } else {
                put(text, width, look, at, out);
            }
        });
        // Rows of the model may end before their last column.
        (col.max(from)..to).for_each(|at| put(" ", 1, plain, at, out));
        if pen != Style::default() {
            out.extend_from_slice(b"\x1b[m");
        }
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_term::{Settings, Size};

    use super::*;

    fn room(cols: u16, rows: u16) -> Room {
        Room { cols, rows, free: rows, pan: None }
    }

    /// What is painted into a small terminal is the part of the large one around its cursor.
    #[test]
    fn the_part_around_the_cursor_is_shown() {
        let mut term = Term::new(Size::new(20, 6), Settings::default());
        let mut small = Term::new(Size::new(8, 3), Settings::default());
        let mut crop = Crop::default();
        for bytes in [
            &b"one two three four\r\n2\r\n3\r\n"[..],
            b"\x1b[6;20H\x1b[31mX",
            b"\x1b[H",
            b"\xe4\xb8\xad\xe4\xb8\xad",
        ] {
            term.feed(bytes);
            let mut out = Vec::new();
            crop.paint(&term, room(8, 3), &Overlay::default(), &mut out);
            small.feed(&out);
            let (y0, x0) = crop.layout.corner;
            for y in 0..3 {
                let text: String = small.row(y).map(|l| l.text()).unwrap_or_default();
                let whole: String = term.row(y + y0).map(|l| l.text()).unwrap_or_default();
                if whole.is_ascii() {
                    let part: String = whole.chars().skip(usize::from(x0)).take(8).collect();
                    assert_eq!(text, part.trim_end(), "row {y}");
                }
            }
            let (a, b) = (small.cursor(), term.cursor());
            assert_eq!((a.row + y0, a.col + x0), (b.row, b.col.min(x0 + 7)));
        }
        assert_eq!(small.row(0).map(|l| l.text()).as_deref(), Some("中中two"));
    }

    /// A long line moves the view to the right; the next one, which fits, is seen from its
    /// beginning again.
    #[test]
    fn the_view_goes_back_to_the_left_when_the_cursor_fits_there() {
        let mut term = Term::new(Size::new(60, 12), Settings::default());
        let mut crop = Crop::default();
        for (bytes, left) in
            [(&b"$ "[..], 0), (b"0123456789012345678901234567890123456789", 13), (b"\r\n$ ", 0)]
        {
            term.feed(bytes);
            crop.paint(&term, room(30, 8), &Overlay::default(), &mut Vec::new());
            assert_eq!(crop.layout.corner.1, left, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    /// A notice stands in the last row, the cursor where it belongs, and the row comes back.
    #[test]
    fn a_notice_stands_over_the_last_row() {
        let mut term = Term::new(Size::new(20, 6), Settings::default());
        let mut small = Term::new(Size::new(8, 3), Settings::default());
        let mut crop = Crop::default();
        term.feed(b"one\r\ntwo\r\nthree\x1b[H");
        for (notice, last) in [(None, "three"), (Some(&b"notice"[..]), "notice"), (None, "three")] {
            let bytes = [&b"\x1b[3;1H"[..], notice.unwrap_or_default()].concat();
            let over = notice.map_or(Overlay::default(), |_| Overlay { rows: 2..3, bytes });
            let mut out = Vec::new();
            crop.paint(&term, room(8, 3), &over, &mut out);
            small.feed(&out);
            assert_eq!(small.row(2).map(|l| l.text()).as_deref(), Some(last));
            assert_eq!((small.cursor().row, small.cursor().col), (0, 0));
        }
    }

    fn painted(crop: &mut Crop, term: &Term, room: Room) -> Vec<String> {
        let mut out = Vec::new();
        crop.paint(term, room, &Overlay::default(), &mut out);
        let mut terminal = Term::new(Size::new(room.cols, room.rows), Settings::default());
        // What was on the terminal before must not show through.
        terminal.feed("x".repeat(usize::from(room.cols * room.rows)).as_bytes());
        terminal.feed(&out);
        terminal.screen().map(|line| line.text()).collect()
    }

    #[test]
    fn a_small_picture_stands_in_a_frame_in_the_middle() {
        let mut term = Term::new(Size::new(4, 2), Settings::default());
        term.feed("ab\r\n漢字".as_bytes());
        let frame = painted(&mut Crop::centred(true, None), &term, room(8, 5));
        assert_eq!(frame, [" ┌────┐", " │ab  │", " │漢字│", " └────┘", ""]);
        let high = painted(&mut Crop::centred(true, None), &term, room(4, 4));
        assert_eq!(high, ["────", "ab", "漢字", "────"]);
        let wide = painted(&mut Crop::centred(true, None), &term, room(7, 2));
        assert_eq!(wide, ["│ab  │", "│漢字│"]);
    }

    #[test]
    fn a_pan_stays_within_the_picture_and_halves_are_blank() {
        let mut term = Term::new(Size::new(6, 3), Settings::default());
        term.feed("漢字漢\r\nabcdef\r\nx".as_bytes());
        for (pan, rows) in [((0, 0), ["漢", "abc"]), ((0, 1), [" 字", "bcd"]), ((9, 9), ["def", ""])] {
            let room = Room { pan: Some(pan), ..room(3, 2) };
            assert_eq!(painted(&mut Crop::centred(true, None), &term, room), rows, "{pan:?}");
        }
    }

    #[test]
    fn changed_palettes_and_reverse_video_are_painted() {
        let mut term = Term::new(Size::new(2, 1), Settings::default());
        term.feed(b"\x1b]4;1;rgb:01/02/03\x07\x1b[31ma\x1b[?5h");
        let mut out = Vec::new();
        Crop::default().paint(&term, room(2, 1), &Overlay::default(), &mut out);
        let mut terminal = Term::new(Size::new(2, 1), Settings::default());
        terminal.feed(&out);
        let style = terminal.cell(0, 0).map(|cell| cell.style).unwrap_or_default();
        assert_eq!(style.fg, Colour::Rgb(1, 2, 3));
        assert!(style.attrs.contains(Attrs::INVERSE));
    }

    /// A theme replaces the colours that the terminal would choose, and no others.
    #[test]
    fn a_theme_is_painted_whatever_the_terminals_own_colours_are() {
        let mut term = Term::new(Size::new(5, 1), Settings::default());
        term.feed(b"a\x1b[34mb\x1b[38;5;208mc\x1b[38;2;1;2;3md\x1b]4;1;rgb:04/05/06\x07\x1b[31me");
        for (name, theme) in Theme::BUILT_IN.iter().chain(&[("xterm", Theme::XTERM)]) {
            let mut out = Vec::new();
            let mut crop = Crop::centred(true, Some(*theme));
            crop.paint(&term, room(5, 1), &Overlay::default(), &mut out);
            let mut terminal = Term::new(Size::new(5, 1), Settings::default());
            terminal.feed(&out);
            let rgb = |Rgb(r, g, b)| Colour::Rgb(r, g, b);
            let look = |col| terminal.cell(0, col).map(|cell| (cell.style.fg, cell.style.bg));
            let paper = rgb(theme.background);
            assert_eq!(look(0), Some((rgb(theme.foreground), paper)), "{name}");
            assert_eq!(look(1), Some((rgb(theme.ansi[4]), paper)), "{name}");
            assert_eq!(look(2), Some((Colour::Indexed(208), paper)), "{name}");
            assert_eq!(look(3), Some((Colour::Rgb(1, 2, 3), paper)), "{name}");
            assert_eq!(look(4), Some((Colour::Rgb(4, 5, 6), paper)), "{name}: the program's own red");
        }
    }
}
