//! A screen as text with its styles, for stored texts that a person can read and compare: the rows,
//! and below them each stretch of text that does not look like the rest.

use tapdeck_term::{Attrs, Colour, Style, Underline};

use super::condition::View;
use super::frame::Row;
use super::look::Look;
use super::quote;

/// What stands between the rows and the styles.
const DIVIDER: &str = "--- styles";

pub(crate) fn text(look: &Look, view: View<'_>) -> String {
    let mut out = look.text(view.frame).into_owned();
    out.push_str(&format!("\n{DIVIDER}\n"));
    for (y, _) in look.rows(view.frame) {
        let Some(line) = view.term.row(y) else { continue };
        for run in line.runs() {
            let Some(style) = describe(run.style, view, run.text.trim().is_empty()) else { continue };
            let row = Row::from_text(&run.text);
            let start = run.col;
            for (from, to) in look.columns(usize::from(y), start, start + run.width) {
                let mut piece = row.slice(from - start, to - start).to_owned();
                look.normalise.iter().for_each(|rule| rule.apply(&mut piece));
                let row = y - look.region.top + 1;
                out.push_str(&format!("row {row} {}: {style}\n", quote(piece.as_bytes())));
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// How a stretch of text looks, in words; `None` if it looks as all text does.
fn describe(style: Style, view: View<'_>, is_blank: bool) -> Option<String> {
    let attrs = style.attrs.and(Attrs::VISIBLE);
    let mut words = Vec::new();
    let lines = style.underline != Underline::None
        || attrs.contains(Attrs::STRIKE)
        || attrs.contains(Attrs::OVERLINE);
    let link = view.term.link(style.link).map(|l| l.uri.as_str());
    if is_blank && style.bg == Colour::Default && !attrs.contains(Attrs::INVERSE) && !lines && link.is_none()
    {
        return None;
    }
    if style.fg != Colour::Default {
        words.push(style.fg.to_string());
    }
    if style.bg != Colour::Default {
        words.push(format!("on {}", style.bg));
    }
    words.extend(attrs.names().map(str::to_owned));
    if style.underline != Underline::None {
        words.push(format!("underline {}", style.underline.name()));
    }
    words.extend(link.map(|link| format!("link {}", quote(link.as_bytes()))));
    (!words.is_empty()).then(|| words.join(", "))
}
