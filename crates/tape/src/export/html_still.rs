//! One screen as HTML: a `<pre>` whose colours and attributes are inline styles, so that it can
//! stand in any page. Text is escaped, and nothing in it can act.

use std::io::Write;

use tapdeck_term::{Attrs, Palette, Style, Term, Theme};

use super::svg::decoration;
use super::{Out, cell_char, markup};
use crate::Result;
use crate::push_fmt::PushFmt;

/// Writes the screen of a terminal as a `<pre>` element with inline styles, in the colours of a
/// theme.
///
/// # Errors
/// When the writer fails.
pub fn html_still(term: &Term, theme: Theme, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let palette = &term.palette().under(theme);
    out.put(format!(
        "<pre style=\"color:{};background:{};line-height:1.2\">",
        palette.dynamic(0),
        palette.dynamic(1)
    ))?;
    for line in term.screen() {
        let (mut text, mut col) = (String::new(), 0);
        for run in line.runs() {
            text.extend(std::iter::repeat_n(' ', usize::from(run.col.saturating_sub(col))));
            col = run.col + run.width;
            let css = css(palette, &run.style);
            let link = term.link(run.style.link);
            if let Some(link) = link {
                text.push_str("<a href=\"");
                markup(&link.uri, &mut text);
                text.push_str("\">");
            }
            if !css.is_empty() {
                text.push_fmt(format_args!("<span style=\"{css}\">"));
            }
            let shown: String = run.text.chars().filter_map(cell_char).collect();
            markup(&shown, &mut text);
            text.push_str(if css.is_empty() { "" } else { "</span>" });
            text.push_str(if link.is_some() { "</a>" } else { "" });
        }
        out.line(&text)?;
    }
    out.put("</pre>\n")?;
    out.flush()
}

/// The declarations that show a style; empty for the default style.
fn css(palette: &Palette, style: &Style) -> String {
    let has = |attr| style.attrs.contains(attr);
    let (mut fg, mut bg) = (palette.foreground(style.fg), palette.background(style.bg));
    if has(Attrs::INVERSE) {
        std::mem::swap(&mut fg, &mut bg);
    }
    if has(Attrs::CONCEAL) {
        fg = bg;
    }
    let mut all = Vec::new();
    if fg != palette.dynamic(0) {
        all.push(format!("color:{}", fg));
    }
    if bg != palette.dynamic(1) {
        all.push(format!("background:{}", bg));
    }
    for (on, declaration) in [
        (has(Attrs::BOLD), "font-weight:bold"),
        (has(Attrs::FAINT), "opacity:0.6"),
        (has(Attrs::ITALIC), "font-style:italic"),
    ] {
        if on {
            all.push(declaration.to_owned());
        }
    }
    let lines = decoration(style);
    if !lines.is_empty() {
        all.push(format!("text-decoration:{lines}"));
    }
    all.join(";")
}
