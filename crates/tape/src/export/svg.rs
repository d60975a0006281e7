//! A screen as SVG: still, or animated by the picture's own clock (SMIL), without a script. Text
//! stays text, each run pinned to its cells, so any font of fixed width will do.

use std::io::Write;
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_term::{Attrs, Generation, Palette, Run, Style, Term, Theme, Underline};

use super::pieces::{Piece, pieces};
use super::{Out, cell_char, markup};
use crate::Result;
use crate::cast::theme_of;
use crate::event::{EventReader, Item};
use crate::push_fmt::PushFmt;
use crate::replay::Replay;

/// How to draw.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SvgOptions {
    /// Height of the text in pixels.
    pub font_size: f32,
    /// Animated only: frames a second at most.
    pub fps: u32,
    /// Animated only: pauses are cut to this.
    pub idle_limit: Duration,
    /// Animated only: the picture ends after so many versions of rows, because browsers suffer
    /// beyond.
    pub max_rows: usize,
    /// The colours; without them an animation has those of its recording, if it carries any.
    pub theme: Option<Theme>,
}

impl Default for SvgOptions {
    fn default() -> Self {
        Self { font_size: 14.0, fps: 10, idle_limit: Duration::from_secs(2), max_rows: 50_000, theme: None }
    }
}

impl SvgOptions {
    fn cell(&self) -> (f32, f32) {
        // As tall as the usual fonts are, so that frames drawn with characters have no gaps.
        (self.font_size * 0.6, self.font_size * 8.0 / 7.0)
    }

    fn palette(&self, term: &Term) -> Palette {
        term.palette().under(self.theme.unwrap_or_default())
    }
}

/// The lines drawn at text of a style, as CSS and SVG name them; empty for none.
pub(super) fn decoration(style: &Style) -> String {
    let lines: Vec<&str> = [
        (style.underline != Underline::None, "underline"),
        (style.attrs.contains(Attrs::STRIKE), "line-through"),
        (style.attrs.contains(Attrs::OVERLINE), "overline"),
    ]
    .into_iter()
    .filter_map(|(on, line)| on.then_some(line))
    .collect();
    lines.join(" ")
}

/// The size of the picture.
fn extent(cols: u16, rows: u16, options: &SvgOptions) -> (f32, f32) {
    let (w, h) = options.cell();
    (f32::from(cols) * w + 16.0, f32::from(rows) * h + 16.0)
}

fn open(cols: u16, rows: u16, palette: &Palette, options: &SvgOptions) -> String {
    let (width, height) = extent(cols, rows, options);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"{}\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n<g transform=\"translate(8 8)\" shape-rendering=\"crispEdges\">\n",
        options.font_size,
        palette.dynamic(1),
    )
}

/// Draws a row: backgrounds, then text.
fn row(y: usize, runs: &[Run], palette: &Palette, options: &SvgOptions, out: &mut String) {
    let (w, h) = options.cell();
    let top = y as f32 * h;
    for run in runs {
        let Style { fg, bg, attrs, underline, .. } = run.style;
        let (mut ink, mut paper) = (palette.foreground(fg), palette.background(bg));
        let inverse = attrs.contains(Attrs::INVERSE);
        if inverse {
            std::mem::swap(&mut ink, &mut paper);
        }
        let (x, width) = (f32::from(run.col) * w, f32::from(run.width) * w);
        if inverse || paper != palette.dynamic(1) {
            let fill = paper;
            out.push_fmt(format_args!(
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{h:.1}\" fill=\"{fill}\"/>\n"
            ));
        }
        if attrs.contains(Attrs::CONCEAL) || run.text.trim().is_empty() && underline == Underline::None {
            continue;
        }
        let base = top + options.font_size * 0.92;
        let mut look = format!(" fill=\"{}\"", ink);
        for (on, attribute) in [
            (attrs.contains(Attrs::BOLD), " font-weight=\"bold\""),
            (attrs.contains(Attrs::ITALIC), " font-style=\"italic\""),
            (attrs.contains(Attrs::FAINT), " opacity=\"0.6\""),
        ] {
            if on {
                look.push_str(attribute);
            }
        }
        let lines = decoration(&run.style);
        if !lines.is_empty() {
            look.push_fmt(format_args!(" text-decoration=\"{lines}\""));
        }
        for piece in pieces(run) {
            // Blanks between pinned pieces show nothing, unless something is drawn through them.
            if !piece.text.trim().is_empty() || !lines.is_empty() {
                text(&piece, base, w, &look, out);
            }
        }
    }
}

fn text(piece: &Piece<'_>, base: f32, cell: f32, look: &str, out: &mut String) {
    let (x, width) = (f32::from(piece.col) * cell, f32::from(piece.width) * cell);
    out.push_fmt(format_args!(
        "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\"{look}"
    ));
    if !piece.text.is_ascii() {
        // Cells go from left to right, whatever is in them.
        out.push_str(" direction=\"ltr\" unicode-bidi=\"bidi-override\"");
    }
    out.push('>');
    let shown: String = piece.text.chars().filter_map(cell_char).collect();
    markup(&shown, out);
    out.push_str("</text>\n");
}

/// The screen as it is now.
///
/// # Errors
/// When the writer fails.
pub fn svg_still(term: &Term, options: SvgOptions, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let palette = options.palette(term);
    out.put(open(term.size().cols, term.size().rows, &palette, &options))?;
    for (y, line) in term.screen().enumerate() {
        let mut text = String::new();
        row(y, &line.runs(), &palette, &options, &mut text);
        out.put(text)?;
    }
    out.put("</g>\n</svg>\n")?;
    out.flush()
}

/// Writes a whole recording as an animation. Each version of a row is drawn once, and shown while
/// it was on the screen. The last screen stays for two seconds, then the animation starts again; a
/// viewer without animation (SMIL) shows it all the time. Returns where the animation was cut, if
/// the recording is longer than `max_rows` allows.
///
/// # Errors
/// When the recording cannot be read on or the writer fails.
pub fn svg_animated(
    reader: &mut dyn EventReader,
    mut options: SvgOptions,
    out: impl Write,
) -> Result<Option<Time>> {
    let mut out = Out::new(out);
    options.theme = options.theme.or_else(|| theme_of(reader.header()));
    let mut replay = Replay::new(reader.header(), 0);
    let size = replay.term().size();
    out.put(open(size.cols, size.rows, &options.palette(replay.term()), &options))?;
    let mut film = Film { rows: Vec::new(), since: Generation(0), drawn: 0 };
    let step = Duration::from_secs(1) / options.fps.clamp(1, 60);
    let (mut clock, mut last, mut due) = (Time::ZERO, Time::ZERO, None::<Time>);
    let (mut cols, mut rows) = (size.cols, size.rows);
    let mut cut = None;
    while let Some(item) = reader.next_item()? {
        if film.drawn >= options.max_rows {
            cut = Some(replay.time());
            break;
        }
        if let Item::Event(event) = &item {
            let pause = event.time.since(last).min(options.idle_limit);
            last = event.time;
            if due.is_some_and(|start| clock + pause >= start + step) {
                film.take(replay.term(), due.take().unwrap_or(clock), &options, &mut out)?;
            }
            clock += pause;
            due.get_or_insert(clock);
        }
        replay.item(item);
        let size = replay.term().size();
        (cols, rows) = (cols.max(size.cols), rows.max(size.rows));
    }
    film.take(replay.term(), due.unwrap_or(clock), &options, &mut out)?;
    let end = clock + step;
    film.close(replay.term(), &options, &mut out)?;
    // The clock that all rows refer to. It starts again two seconds after its end, and until then
    // nothing hides the rows of the last screen.
    out.put(format!(
        "</g>\n<rect width=\"0\" height=\"0\"><animate id=\"film\" attributeName=\"x\" from=\"0\" to=\"0\" \
         begin=\"0s;film.end+2s\" dur=\"{:.3}s\"/></rect>\n",
        end.as_secs_f64()
    ))?;
    if (cols, rows) != (size.cols, size.rows) {
        // The terminal grew: the picture is as large as it ever was.
        let (width, height) = extent(cols, rows, &options);
        for (name, value) in [
            ("viewBox", format!("0 0 {width:.1} {height:.1}")),
            ("width", format!("{width:.1}")),
            ("height", format!("{height:.1}")),
        ] {
            out.put(format!("<set attributeName=\"{name}\" to=\"{value}\" begin=\"0s\"/>\n"))?;
        }
    }
    out.put("</svg>\n")?;
    out.flush()?;
    Ok(cut)
}

/// The rows on the screen, each with the time since when.
struct Film {
    rows: Vec<(Time, Vec<Run>)>,
    since: Generation,
    drawn: usize,
}

impl Film {
    fn take<W: Write>(
        &mut self,
        term: &Term,
        now: Time,
        options: &SvgOptions,
        out: &mut Out<W>,
    ) -> Result<()> {
        let (diff, palette) = (term.diff(self.since), options.palette(term));
        self.since = diff.generation;
        // A terminal that became smaller has no rows below its end.
        let gone = self.rows.len().min(term.size().rows.into());
        for (below, (start, runs)) in self.rows.split_off(gone).into_iter().enumerate() {
            self.draw(gone + below, start, now, &runs, &palette, options, out)?;
        }
        for changed in diff.rows {
            let y = usize::from(changed.row);
            if self.rows.len() <= y {
                self.rows.resize(y + 1, (now, Vec::new()));
            }
            if self.rows[y].1 != changed.runs {
                let (start, runs) = std::mem::replace(&mut self.rows[y], (now, changed.runs));
                self.draw(y, start, now, &runs, &palette, options, out)?;
            }
        }
        Ok(())
    }

    /// Draws the last screen. Its rows are visible by default, and hidden only from the start of
    /// the film until they appear.
    fn close<W: Write>(&mut self, term: &Term, options: &SvgOptions, out: &mut Out<W>) -> Result<()> {
        let palette = options.palette(term);
        for (y, (start, runs)) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            let mut text = String::new();
            row(y, &runs, &palette, options, &mut text);
            if text.is_empty() {
                continue;
            }
            out.put("<g>")?;
            // A duration that rounds to zero would be an error, which hides the row for ever.
            if start.as_secs_f64() >= 0.001 {
                out.put(format!(
                    "<set attributeName=\"visibility\" to=\"hidden\" begin=\"film.begin\" dur=\"{:.3}s\"/>",
                    start.as_secs_f64()
                ))?;
            }
            out.put(format!("\n{text}</g>\n"))?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one row's whole life")]
    fn draw<W: Write>(
        &mut self,
        y: usize,
        start: Time,
        end: Time,
        runs: &[Run],
        palette: &Palette,
        options: &SvgOptions,
        out: &mut Out<W>,
    ) -> Result<()> {
        let mut text = String::new();
        row(y, runs, palette, options, &mut text);
        if text.is_empty() || end <= start {
            return Ok(());
        }
        self.drawn += 1;
        out.put(format!(
            "<g visibility=\"hidden\"><set attributeName=\"visibility\" to=\"visible\" \
             begin=\"film.begin+{:.3}s\" dur=\"{:.3}s\"/>\n{text}</g>\n",
            start.as_secs_f64(),
            end.since(start).as_secs_f64()
        ))
    }
}
