//! The model's screen as frames of the bus.

use std::borrow::Cow;

use tapdeck_host::Picture;
use tapdeck_proto::bus;
use tapdeck_term::{Attrs, Colour, Generation, Rgb, Run, Term, Underline};

use crate::paint::{hex, shape};

/// Returns a full frame: text rows and styled runs. `cells` is left out if it is too large for the
/// client.
pub(crate) fn full(picture: &Picture, cells: bool) -> bus::Screen {
    let mut frame = base(picture);
    frame.contents = contents(picture, cells);
    frame.contents.text_only = !cells;
    frame
}

/// Returns the screen's contents, with or without styled runs.
pub(crate) fn contents(picture: &Picture, cells: bool) -> bus::Contents {
    let term = picture.term();
    let runs = |line: tapdeck_term::Line<'_>| line.runs().iter().map(|r| run(term, r)).collect();
    bus::Contents {
        rows: term.screen().map(|line| line.text()).collect(),
        cells: if cells { term.screen().map(runs).collect() } else { Vec::new() },
        ..base_contents(picture)
    }
}

/// Returns what changed since a generation: rows by their number, each with its text and runs.
pub(crate) fn delta(picture: &Picture, since: Generation) -> bus::Screen {
    let term = picture.term();
    let diff = term.diff(since);
    let change = |row: &tapdeck_term::RowDiff| {
        let text = term.row(row.row).map(|line| line.text()).unwrap_or_default();
        bus::Change(row.row, text, row.runs.iter().map(|r| run(term, r)).collect())
    };
    bus::Screen { delta: true, changed: Some(diff.rows.iter().map(change).collect()), ..base(picture) }
}

fn base(picture: &Picture) -> bus::Screen {
    let term = picture.term();
    bus::Screen {
        cols: term.size().cols,
        rows_n: term.size().rows,
        seq: picture.offset().0,
        title: term.title().to_owned(),
        contents: base_contents(picture),
        ..bus::Screen::default()
    }
}

fn base_contents(picture: &Picture) -> bus::Contents {
    let term = picture.term();
    let (size, cursor, modes) = (term.size(), term.cursor(), term.modes());
    bus::Contents {
        cx: cursor.col.min(size.cols.saturating_sub(1)),
        cy: cursor.row,
        cursor: bus::Cursor { visible: cursor.visible, blink: cursor.blink, shape: shape(cursor.shape) },
        alternate: modes.alternate(),
        modes: modes.names().iter().map(ToString::to_string).collect(),
        scrollback: term.scrollback_len(),
        ..bus::Contents::default()
    }
}

fn run(term: &Term, run: &Run) -> bus::Run {
    let style = run.style;
    let has = |attr| style.attrs.contains(attr);
    let (mut fg, mut bg) = (term.palette().foreground(style.fg), term.palette().background(style.bg));
    if has(Attrs::INVERSE) != term.modes().reverse_video() {
        (fg, bg) = (bg, fg);
    }
    let more = bus::More {
        fg: colour(style.fg),
        bg: colour(style.bg),
        faint: has(Attrs::FAINT),
        conceal: has(Attrs::CONCEAL),
        inverse: has(Attrs::INVERSE),
        overline: has(Attrs::OVERLINE),
        underline: (!matches!(style.underline, Underline::None | Underline::Single))
            .then(|| Cow::Borrowed(style.underline.name())),
        link: term.link(style.link).map(|link| link.uri.to_string()),
    };
    bus::Run {
        col: run.col,
        text: run.text.to_string(),
        fg: hex(fg),
        bg: hex(bg),
        bold: has(Attrs::BOLD),
        italic: has(Attrs::ITALIC),
        underline: style.underline != Underline::None,
        strike: has(Attrs::STRIKE),
        blink: has(Attrs::BLINK),
        more: (more != bus::More::default()).then(|| Box::new(more)),
    }
}

fn colour(c: Colour) -> Option<bus::Colour> {
    match c {
        Colour::Default => None,
        Colour::Indexed(i) => Some(bus::Colour::Indexed(i)),
        Colour::Rgb(r, g, b) => Some(bus::Colour::Rgb(hex(Rgb(r, g, b)))),
    }
}
