//! Rows as bytes, for scrollback.
//!
//! A record is: a byte of flags, the row's provenance as a difference, its marks, the number of
//! cells, its runs of style where there are any, and its text to the end of the record. Plain ASCII
//! is one byte a cell; otherwise the text is UTF-8 in which C0 controls, which cells never hold,
//! say what needs saying: [`WIDE_NEXT`], [`CLUSTER_NEXT`], [`EMPTY_RUN`].

use crate::cell::{self, Cell};
use crate::clusters::Clusters;
use crate::grid::{LineSize, RowMeta};
use crate::style::{Attrs, Colour, Style, StyleId, Styles, Underline};

const WRAPPED: u8 = 1;
const STYLED: u8 = 1 << 3;
const RICH: u8 = 1 << 4;
const MARKED: u8 = 1 << 5;

/// The next character takes two columns.
const WIDE_NEXT: u8 = 2;
/// A cluster follows, up to a NUL.
const CLUSTER_NEXT: u8 = 1;
/// A number of cells that nothing was written to follows.
const EMPTY_RUN: u8 = 3;
/// An empty cell at the right edge, where a wide character did not fit.
const PADDING: u8 = 4;

/// Writes a number seven bits a byte; returns how many bytes it took.
#[inline]
fn varint(out: &mut [u8], mut v: u64) -> usize {
    let mut n = 0;
    while v >= 0x80 {
        out[n] = v as u8 | 0x80;
        v >>= 7;
        n += 1;
    }
    out[n] = v as u8;
    n + 1
}

fn put_varint(out: &mut Vec<u8>, v: u64) {
    let mut bytes = [0; 10];
    let n = varint(&mut bytes, v);
    out.extend_from_slice(&bytes[..n]);
}

fn get_varint(bytes: &mut &[u8]) -> u64 {
    let mut v = 0u64;
    let mut shift = 0;
    while let Some((&b, rest)) = bytes.split_first() {
        *bytes = rest;
        v |= u64::from(b & 0x7f) << shift;
        if b < 0x80 || shift > 56 {
            break;
        }
        shift += 7;
    }
    v
}

fn get_byte(bytes: &mut &[u8]) -> u8 {
    bytes.split_off_first().copied().unwrap_or(0)
}

fn put_colour(out: &mut Vec<u8>, c: Colour) {
    match c {
        Colour::Default => {}
        Colour::Indexed(i) => out.extend([0, i]),
        Colour::Rgb(r, g, b) => out.extend([1, r, g, b]),
    }
}

fn get_colour(bytes: &mut &[u8]) -> Colour {
    if get_byte(bytes) == 0 {
        Colour::Indexed(get_byte(bytes))
    } else {
        Colour::Rgb(get_byte(bytes), get_byte(bytes), get_byte(bytes))
    }
}

fn put_style(out: &mut Vec<u8>, s: Style) {
    let fields = u8::from(s.fg != Colour::Default)
        | u8::from(s.bg != Colour::Default) << 1
        | u8::from(s.underline_colour != Colour::Default) << 2
        | u8::from(!s.attrs.is_empty()) << 3
        | u8::from(s.underline != Underline::None) << 4
        | u8::from(s.link != 0) << 5;
    out.push(fields);
    put_colour(out, s.fg);
    put_colour(out, s.bg);
    put_colour(out, s.underline_colour);
    if !s.attrs.is_empty() {
        put_varint(out, u64::from(s.attrs.0));
    }
    if s.underline != Underline::None {
        out.push(s.underline as u8);
    }
    if s.link != 0 {
        put_varint(out, u64::from(s.link));
    }
}

fn get_style(bytes: &mut &[u8]) -> Style {
    let fields = get_byte(bytes);
    let mut s = Style::default();
    if fields & 1 != 0 {
        s.fg = get_colour(bytes);
    }
    if fields & 2 != 0 {
        s.bg = get_colour(bytes);
    }
    if fields & 4 != 0 {
        s.underline_colour = get_colour(bytes);
    }
    if fields & 8 != 0 {
        s.attrs = Attrs(get_varint(bytes) as u16);
    }
    if fields & 16 != 0 {
        s.underline = Underline::from_code(u16::from(get_byte(bytes)));
    }
    if fields & 32 != 0 {
        s.link = get_varint(bytes) as u32;
    }
    s
}

/// Appends a row's record to `out`.
pub(crate) fn pack(
    out: &mut Vec<u8>,
    base: u64,
    cells: &[Cell],
    meta: &RowMeta,
    styles: &Styles,
    clusters: &Clusters,
) {
    let mut cells = cells;
    while let [rest @ .., Cell::BLANK] = cells {
        cells = rest;
    }
    // Plain means 0x20–0x7e throughout: no bit above the seventh anywhere, and no empty cell, which
    // is the only thing below a space that a cell can hold.
    let (mut any, mut all, mut style_bits) = (0, u32::MAX, 0);
    if meta.rich {
        for c in cells {
            any |= c.text;
            all &= c.text.wrapping_add(0x60);
            style_bits |= c.style.0;
        }
    }
    let plain = any < 0x80 && all & 0x80 != 0;
    let styled = style_bits != 0;
    let flags = (u8::from(meta.wrapped) * WRAPPED)
        | ((meta.size as u8) << 1)
        | (u8::from(styled) * STYLED)
        | (u8::from(!plain) * RICH)
        | (u8::from(meta.marks != 0) * MARKED);
    // The head is put together aside: appending its few bytes one by one would cost more than
    // making them.
    let delta = meta.written.wrapping_sub(base) as i64;
    let mut head = [0u8; 24];
    head[0] = flags;
    let mut n = 1 + varint(&mut head[1..], ((delta << 1) ^ (delta >> 63)) as u64);
    if meta.marks != 0 {
        head[n] = meta.marks;
        n += 1;
    }
    n += varint(&mut head[n..], cells.len() as u64);
    out.extend_from_slice(&head[..n]);
    if styled {
        let runs = cells.chunk_by(|a, b| a.style == b.style);
        put_varint(out, runs.clone().count() as u64);
        for run in runs {
            put_varint(out, run.len() as u64);
            put_style(out, styles.get(run[0].style));
        }
    }
    if plain {
        out.extend(cells.iter().map(|c| c.text as u8));
    } else {
        pack_rich(out, cells, clusters);
    }
}

fn pack_rich(out: &mut Vec<u8>, cells: &[Cell], clusters: &Clusters) {
    // Small pieces are gathered here: appending each to the vector would cost more than making it.
    let mut buffer = [0u8; 256];
    let mut n = 0;
    let mut i = 0;
    while i < cells.len() {
        let c = cells[i];
        i += 1;
        if n > buffer.len() - 16 {
            out.extend_from_slice(&buffer[..n]);
            n = 0;
        }
        if c.text.wrapping_sub(0x20) < 0x5f {
            buffer[n] = c.text as u8;
            n += 1;
        } else if c.is_tail() {
        } else if c.is_empty() {
            if c.is_pad() {
                buffer[n] = PADDING;
                n += 1;
                continue;
            }
            let start = i;
            while i < cells.len() && cells[i].text == 0 {
                i += 1;
            }
            out.extend_from_slice(&buffer[..n]);
            n = 0;
            out.push(EMPTY_RUN);
            put_varint(out, (i - start + 1) as u64);
        } else {
            if c.is_wide() {
                buffer[n] = WIDE_NEXT;
                n += 1;
            }
            if c.is_cluster() {
                buffer[n] = CLUSTER_NEXT;
                out.extend_from_slice(&buffer[..=n]);
                n = 0;
                out.extend_from_slice(clusters.get(c.value()).as_bytes());
                out.push(0);
            } else {
                let ch = char::from_u32(c.value()).unwrap_or(char::REPLACEMENT_CHARACTER);
                n += ch.encode_utf8(&mut buffer[n..]).len();
            }
        }
    }
    out.extend_from_slice(&buffer[..n]);
}

/// A record opened for reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    pub(crate) meta: RowMeta,
    pub(crate) cells: usize,
    styled: bool,
    rich: bool,
    /// Runs of style, then text.
    body: &'a [u8],
}

impl<'a> Packed<'a> {
    pub(crate) fn open(mut bytes: &'a [u8], base: u64) -> Self {
        let flags = get_byte(&mut bytes);
        let z = get_varint(&mut bytes);
        let delta = (z >> 1) as i64 ^ -((z & 1) as i64);
        let marks = if flags & MARKED != 0 { get_byte(&mut bytes) } else { 0 };
        let cells = get_varint(&mut bytes) as usize;
        let meta = RowMeta {
            written: base.wrapping_add(delta as u64),
            len: cells as u16,
            wrapped: flags & WRAPPED != 0,
            wide: flags & RICH != 0,
            size: LineSize::from_bits(flags >> 1),
            marks,
            rich: true,
            fresh: false,
        };
        Self { meta, cells, styled: flags & STYLED != 0, rich: flags & RICH != 0, body: bytes }
    }

    /// The text when every cell is plain ASCII of the default style.
    pub(crate) fn as_plain(&self) -> Option<&'a str> {
        std::str::from_utf8(self.as_ascii()?).ok()
    }

    /// The bytes when every cell is plain ASCII of the default style.
    pub(crate) fn as_ascii(&self) -> Option<&'a [u8]> {
        (!self.styled && !self.rich).then_some(self.body)
    }

    /// Calls `f` with text (empty for a cell without any), columns and style of each character.
    pub(crate) fn each(&self, mut f: impl FnMut(&str, usize, Style)) {
        self.pieces(|piece, style| match piece {
            Piece::Ascii(text) => (0..text.len()).for_each(|i| f(&text[i..=i], 1, style)),
            Piece::One(text, width) => f(text, width, style),
            Piece::Empty => f("", 1, style),
        });
    }

    /// Calls `f` with pieces of one style: most text is ASCII, and has the style of its neighbours.
    pub(crate) fn pieces(&self, mut f: impl FnMut(Piece<'_>, Style)) {
        let (mut runs, mut body) = Runs::open(self);
        let mut wide = 1;
        while let Some(&b) = body.first() {
            let rest = match b {
                b' '..=b'~' if wide == 1 => {
                    let plain = |b: &u8| matches!(b, b' '..=b'~');
                    let n = if self.rich { body.iter().take_while(|b| plain(b)).count() } else { body.len() };
                    let (span, rest) = body.split_at(n);
                    let mut span = std::str::from_utf8(span).unwrap_or("");
                    while !span.is_empty() {
                        let (left, style) = runs.here();
                        let (now, later) = span.split_at(left.min(span.len()));
                        f(Piece::Ascii(now), style);
                        runs.advance(now.len());
                        span = later;
                    }
                    rest
                }
                WIDE_NEXT => {
                    wide = 2;
                    body = &body[1..];
                    continue;
                }
                EMPTY_RUN => {
                    let mut rest = &body[1..];
                    for _ in 0..get_varint(&mut rest) {
                        f(Piece::Empty, runs.here().1);
                        runs.advance(1);
                    }
                    rest
                }
                PADDING => {
                    f(Piece::Empty, runs.here().1);
                    runs.advance(1);
                    &body[1..]
                }
                _ => {
                    let (one, rest) = if b == CLUSTER_NEXT {
                        let end = memchr::memchr(0, body).unwrap_or(body.len());
                        (&body[1..end], body.get(end + 1..).unwrap_or(&[]))
                    } else {
                        let n = match b {
                            0..=0x7f => 1,
                            0x80..=0xdf => 2,
                            0xe0..=0xef => 3,
                            _ => 4,
                        };
                        body.split_at(n.min(body.len()))
                    };
                    f(Piece::One(std::str::from_utf8(one).unwrap_or("\u{fffd}"), wide), runs.here().1);
                    // A wide character's halves have one style each in principle; the lead's
                    // counts.
                    runs.advance(wide);
                    rest
                }
            };
            body = rest;
            wide = 1;
        }
    }

    /// The cells, interned into a screen's tables.
    pub(crate) fn unpack(&self, styles: &mut Styles, clusters: &mut Clusters, out: &mut Vec<Cell>) {
        let mut last: (Style, StyleId) = (Style::default(), StyleId(0));
        self.each(|text, width, style| {
            if style != last.0 {
                last = (style, styles.intern(style));
            }
            out.push(Cell { text: text_code(text, width, clusters), style: last.1 });
            if width == 2 {
                out.push(Cell { text: cell::TAIL, style: last.1 });
            }
        });
        if self.rich
            && self.body.last() == Some(&PADDING)
            && let Some(c) = out.last_mut()
        {
            c.text |= cell::PAD;
        }
    }
}

/// A part of a row that has one style.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// Printable ASCII, a column each.
    Ascii(&'a str),
    /// One character, and the columns it takes.
    One(&'a str, usize),
    /// A cell that nothing was written to.
    Empty,
}

/// The styles of a row's cells, from the left.
struct Runs<'a> {
    /// Runs still to be read, and how many they are.
    bytes: &'a [u8],
    more: u64,
    left: usize,
    style: Style,
}

impl<'a> Runs<'a> {
    /// The runs, and the text behind them.
    fn open(row: &Packed<'a>) -> (Self, &'a [u8]) {
        let mut body = row.body;
        if !row.styled {
            return (Self { bytes: &[], more: 0, left: usize::MAX, style: Style::default() }, body);
        }
        let more = get_varint(&mut body);
        let runs = Self { bytes: body, more, left: 0, style: Style::default() };
        for _ in 0..more {
            get_varint(&mut body);
            get_style(&mut body);
        }
        (runs, body)
    }

    /// How many cells are left of the style that the next has.
    fn here(&mut self) -> (usize, Style) {
        while self.left == 0 {
            self.next();
        }
        (self.left, self.style)
    }

    fn next(&mut self) {
        // Past the last run nothing has a style.
        (self.left, self.style) = (usize::MAX, Style::default());
        if let Some(more) = self.more.checked_sub(1) {
            self.more = more;
            self.left = get_varint(&mut self.bytes) as usize;
            self.style = get_style(&mut self.bytes);
        }
    }

    fn advance(&mut self, mut cells: usize) {
        while cells > self.left {
            cells -= self.left;
            self.next();
        }
        self.left -= cells;
    }
}

/// The code of a cell's text.
pub(crate) fn text_code(text: &str, width: usize, clusters: &mut Clusters) -> u32 {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    let wide = if width == 2 { cell::WIDE } else { 0 };
    if chars.next().is_none() { first as u32 | wide } else { clusters.intern(text) | cell::CLUSTER | wide }
}
