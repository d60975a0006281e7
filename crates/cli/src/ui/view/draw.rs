//! The viewer's picture: the terminal in its frame, the gutter, the timeline and the status line.
//! Without room for all of it, the terminal itself is kept longest.

use std::ops::Range;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use tapdeck_core::Exit;
use tapdeck_core::turns::AgentState;
use unicode_width::UnicodeWidthStr;

use super::commands::KeyTables;
use super::instruct::program_of;
use super::marks::Marks;
use super::prompt::Purpose;
use super::rows::{self, Row};
use super::search::Hit;
use super::timeline::Timeline;
use super::{App, Drawn, Letter, Mode, Origin};
use crate::human::{count, shortened};
use crate::ui::canvas::{Brush, cover, label};
use crate::ui::help;
use crate::ui::status_line::{Hint, draw_badge, draw_text};
use crate::ui::styles::Mood;

/// The least width of the box, if there is room: a narrow terminal is no reason for a narrow
/// text.
const BOX_WIDTH: u16 = 64;

/// The signs in the gutter.
const LEGEND: &str = " ◆ snapshot  ▾ marker  ✎ instruction ";

/// The parts of the screen.
struct Layout {
    /// Everything above timeline and status line.
    main: Rect,
    timeline: Option<Rect>,
    status: Option<Rect>,
    /// The frame, and whether it has a left, right, top and bottom side.
    frame: Rect,
    sides: [bool; 4],
    inner: Rect,
}

impl App {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let cursor = self.paint(area, frame.buffer_mut());
        self.options.styles.recolour(frame.buffer_mut());
        if let Some(at) = cursor {
            frame.set_cursor_position(at);
        }
    }

    /// The table of keys that is in force.
    pub(super) fn key_tables(&self) -> KeyTables {
        match self.origin {
            Origin::Tape(_) => KeyTables::Tape,
            Origin::Live(..) => KeyTables::Live,
        }
    }

    /// Draws everything into a buffer. Returns the position of the real cursor, if it is shown.
    fn paint(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        self.dirty = false;
        if area.is_empty() {
            self.drawn = Drawn::default();
            return None;
        }
        self.refresh_marks();
        let layout = self.layout(area);
        let hidden = self.term().size().cols.saturating_sub(layout.inner.width);
        self.scroll.left = self.scroll.left.min(hidden);
        let cursor = self.paint_rows(&layout, buf);
        self.paint_frame(&layout, buf);
        self.paint_box(&layout, buf);
        self.drawn.bar = layout.timeline.map_or(Rect::ZERO, |area| self.paint_timeline(area, buf));
        if let Some(status) = layout.status {
            self.paint_status(status, buf);
        }
        let (keys, styles) = (self.key_tables(), self.options.styles);
        if let Mode::Help(top) = &mut self.mode {
            let lines = keys.help(&self.options.keymap);
            let lines: Vec<(&str, &str)> = lines.iter().map(|(keys, text)| (keys.as_str(), *text)).collect();
            *top = help::draw(buf, layout.main, &lines, LEGEND, *top, styles).0;
            return None;
        }
        cursor
    }

    /// Brings the marks in the gutter up to date.
    pub(super) fn refresh_marks(&mut self) {
        let offset = match &self.origin {
            Origin::Tape(tape) => tape.offset().0,
            Origin::Live(live, _) => live.offset().0,
        };
        let mut marks = std::mem::take(&mut self.marks);
        let (moments, instructions) = (self.origin.moments(), self.instructions());
        self.marks_stale = match moments.is_empty() && instructions.is_empty() {
            true => {
                marks = Marks::default();
                false
            }
            false => marks.refresh(self.origin.term(), moments, instructions, offset, self.now),
        };
        self.marks = marks;
    }

    fn layout(&self, area: Rect) -> Layout {
        let has_timeline = matches!(self.origin, Origin::Tape(_)) && area.height >= 4;
        let has_status = area.height >= 2;
        let below = u16::from(has_timeline) + u16::from(has_status);
        let main = Rect { height: area.height - below, ..area };
        let row = |n: u16| Rect { y: area.bottom() - n, height: 1, ..area };
        let size = self.term().size();
        let (cols, own) = (size.cols, size.rows);
        // The box makes the frame longer, if there is room.
        let wanted = match &self.mode {
            Mode::Write(written) => own.saturating_add(written.height(BOX_WIDTH.max(cols).min(main.width))),
            _ => own,
        };
        let wanted = if self.tall { u16::MAX } else { wanted };
        // The second column of the gutter is for instructions beside other marks.
        let left = if main.width < 8 { 0 } else { 1 + u16::from(self.marks.shares_rows()) };
        let right = main.width >= cols.saturating_add(1 + left);
        let top = main.height >= 4;
        let bottom = main.height >= wanted.saturating_add(2) || (main.height >= 10 && main.height < own);
        let inner_width = cols.min(main.width - left - u16::from(right));
        let inner_height = wanted.min(main.height - u16::from(top) - u16::from(bottom));
        let width = inner_width + left + u16::from(right);
        let height = inner_height + u16::from(top) + u16::from(bottom);
        let frame = Rect {
            x: main.x + (main.width - width) / 2,
            y: main.y + (main.height - height) / 2,
            width,
            height,
        };
        let inner =
            Rect { x: frame.x + left, y: frame.y + u16::from(top), width: inner_width, height: inner_height };
        Layout {
            main,
            timeline: has_timeline.then(|| row(2)),
            status: has_status.then(|| row(1)),
            frame,
            sides: [left > 0, right, top, bottom],
            inner,
        }
    }

    /// Draws the rows in sight, and the box between them. Returns the position of the cursor while
    /// typing.
    fn paint_rows(&mut self, layout: &Layout, buf: &mut Buffer) -> Option<Position> {
        let inner = layout.inner;
        let styles = self.options.styles;
        let height = inner.height;
        let mut top = self.top(height);
        let boxed = match &self.mode {
            Mode::Write(written) => {
                let box_height = written.height(box_width(layout)).min(height.saturating_sub(1).max(1));
                // The line and the box behind it are both in sight.
                let visible = self.visible();
                let at = visible.before(written.row);
                let lowest = (at + 1 + u64::from(box_height)).saturating_sub(u64::from(height));
                top = visible.nth(visible.before(top).max(lowest).min(at));
                Some((written.row, box_height))
            }
            _ => None,
        };
        self.scroll.top = top;
        let page = self.visible().page(top, height);
        let term = self.origin.term();
        let hits = self.search.lights(term, &page);
        let (slots, box_y) = slots(&page, height, boxed);
        let bright = Brush::of(term, styles.colour);
        let dim = bright.clone().dimmed(true);
        for (y, slot) in (inner.y..inner.bottom()).zip(&slots) {
            let Some(row) = *slot else { continue };
            let Some(line) = rows::line(term, row) else { continue };
            let below = boxed.is_some_and(|(at, _)| row > at);
            let mut over = self.lights(&hits, row);
            let selected = self.selection.and_then(|selection| selection.columns(row));
            over.extend(selected.map(|columns| (columns, Style::new().add_modifier(Modifier::REVERSED))));
            let brush = if below { &dim } else { &bright };
            brush.row(buf, Rect { y, height: 1, ..inner }, line, self.scroll.left, &over);
        }
        self.drawn.boxed = box_y.zip(boxed.map(|(_, height)| height));
        self.drawn.inner = inner;
        self.drawn.slots = slots;
        let cursor = self.cursor_in_sight(inner);
        if boxed.is_none()
            && let Some(at) = cursor
        {
            if matches!(self.mode, Mode::Type) {
                return Some(at);
            }
            // A painted cursor: the terminal's own would suggest that keys go there.
            let cell = &mut buf[at];
            cell.modifier.toggle(Modifier::REVERSED);
        }
        None
    }

    /// Draws the box, over the frame where it is wider.
    fn paint_box(&self, layout: &Layout, buf: &mut Buffer) {
        let (Mode::Write(written), Some((y, height))) = (&self.mode, self.drawn.boxed) else { return };
        let (inner, main, width) = (layout.inner, layout.main, box_width(layout));
        let x = (inner.x + inner.width / 2).saturating_sub(width / 2);
        let area = Rect {
            x: x.clamp(main.x, main.right() - width),
            y: inner.y + y,
            width,
            height: height.min(inner.height - y),
        };
        cover(buf, area);
        written.draw(buf, area, !self.options.branch_command.is_empty(), self.options.styles);
    }

    fn cursor_in_sight(&self, inner: Rect) -> Option<Position> {
        let cursor = self.term().cursor();
        let row = rows::screen(self.term()) + u64::from(cursor.row);
        let y = self.drawn.slots.iter().position(|slot| *slot == Some(row))? as u16;
        let x = cursor.col.checked_sub(self.scroll.left).filter(|x| *x < inner.width)?;
        cursor.visible.then(|| Position::new(inner.x + x, inner.y + y))
    }

    /// The columns of a row that are lit up.
    fn lights(&self, hits: &[Hit], row: Row) -> Vec<(Range<u16>, Style)> {
        let styles = self.options.styles;
        let style = |hit: &Hit| {
            if self.search.hit.as_ref() == Some(hit) { styles.found_now() } else { styles.found() }
        };
        hits.iter().filter_map(|hit| Some((hit.columns(row)?, style(hit)))).collect()
    }

    fn paint_frame(&self, layout: &Layout, buf: &mut Buffer) {
        let styles = self.options.styles;
        let style = if matches!(self.mode, Mode::Type) { styles.frame_active() } else { styles.frame() };
        let [left, right, top, bottom] = layout.sides;
        let (frame, inner) = (layout.frame, layout.inner);
        let put = |buf: &mut Buffer, x: u16, y: u16, symbol: &str| label(buf, x, y, 1, symbol, style);
        for x in frame.x..frame.right() {
            if top {
                put(buf, x, frame.y, "─");
            }
            if bottom {
                put(buf, x, frame.bottom() - 1, "─");
            }
        }
        for y in inner.y..inner.bottom() {
            if left {
                put(buf, frame.x, y, "│");
            }
            if right {
                put(buf, frame.right() - 1, y, "│");
            }
        }
        for (there, x, y, symbol) in [
            (top && left, frame.x, frame.y, "╭"),
            (top && right, frame.right() - 1, frame.y, "╮"),
            (bottom && left, frame.x, frame.bottom() - 1, "╰"),
            (bottom && right, frame.right() - 1, frame.bottom() - 1, "╯"),
        ] {
            if there {
                put(buf, x, y, symbol);
            }
        }
        if top {
            self.paint_titles(frame, buf);
        }
        if right {
            self.paint_scrollbar(layout, buf);
        }
        if left {
            self.paint_gutter(frame.x, inner, buf);
        }
    }

    fn paint_titles(&self, frame: Rect, buf: &mut Buffer) {
        let styles = self.options.styles;
        let size = self.term().size();
        let right = format!(" {}×{} ", size.cols, size.rows);
        let right_width = right.width() as u16;
        let room = frame.width.saturating_sub(4);
        let name = match &self.origin {
            Origin::Tape(tape) => tape.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Origin::Live(live, _) => live.name.clone(),
        };
        let title = self.term().title();
        let title = if title.is_empty() { name } else { format!("{name} — {title}") };
        let title = format!(" {} ", shortened(&title, usize::from(room.saturating_sub(right_width + 2))));
        let used = label(buf, frame.x + 2, frame.y, room, &title, styles.title());
        if used + right_width < room {
            label(buf, frame.right() - 2 - right_width, frame.y, right_width, &right, styles.faint());
        }
    }

    /// The scroll bar, on the right side of the frame.
    fn paint_scrollbar(&self, layout: &Layout, buf: &mut Buffer) {
        let inner = layout.inner;
        let visible = self.visible();
        let total = visible.len();
        if total <= u64::from(inner.height) || inner.height < 2 {
            return;
        }
        let height = u64::from(inner.height);
        let length = (height * height / total).max(1);
        let top = visible.before(self.scroll.top);
        let at = ((height - length) * top).checked_div(total - height).unwrap_or(0).min(height - length);
        for y in at..at + length {
            label(buf, layout.frame.right() - 1, inner.y + y as u16, 1, "┃", self.options.styles.title());
        }
    }

    /// The marks of rows, on the left side of the frame.
    fn paint_gutter(&self, x: u16, inner: Rect, buf: &mut Buffer) {
        let styles = self.options.styles;
        let own_column = inner.x - x > 1;
        for (y, slot) in (inner.y..).zip(&self.drawn.slots) {
            let Some(row) = *slot else { continue };
            let focused = self.focus == Some(row);
            let mark = self.marks.of(row).unwrap_or_default();
            let highlight =
                |style: Style| if focused { style.add_modifier(Modifier::REVERSED) } else { style };
            if own_column && mark.instruction {
                label(buf, x + 1, y, 1, "✎", highlight(styles.instruction()));
            }
            let (symbol, style) = match mark {
                m if m.snapshots > 0 => ("◆", styles.snapshot()),
                m if m.instruction && !own_column => ("✎", styles.instruction()),
                m if m.marker => ("▾", styles.marker()),
                m if focused && !m.instruction => ("▶", styles.frame_chosen()),
                _ => continue,
            };
            label(buf, x, y, 1, symbol, highlight(style));
        }
    }

    fn paint_timeline(&mut self, area: Rect, buf: &mut Buffer) -> Rect {
        let (now, styles) = (self.now, self.options.styles);
        let Origin::Tape(tape) = &mut self.origin else { return Rect::ZERO };
        let (at, end, speed) = (tape.at(now), tape.end(), tape.speed());
        Timeline { at, end, speed, moments: tape.moments() }.draw(buf, area, styles)
    }

    fn paint_status(&mut self, area: Rect, buf: &mut Buffer) {
        let styles = self.options.styles;
        let (badge, mood) = self.badge();
        let rest = draw_badge(buf, area, &badge, mood, styles);
        // A question or a notice is short-lived, and is read whole.
        let keeps_hint = self.question().is_none() && self.notice.is_none();
        draw_text(buf, rest, &self.status_text(), &self.hints(), keeps_hint, styles);
    }

    /// The state in a word.
    fn badge(&mut self) -> (String, Mood) {
        if let Some(notice) = &self.notice
            && notice.mood == Mood::Wrong
        {
            return ("!".to_owned(), Mood::Wrong);
        }
        match &self.mode {
            Mode::Prompt(prompt) => return (prompt.purpose.sign().to_owned(), Mood::Asking),
            Mode::AskQuit | Mode::AskBranch(_) | Mode::Letter(_) | Mode::Pair { .. } | Mode::Flag { .. } => {
                return ("?".to_owned(), Mood::Asking);
            }
            Mode::Write(_) => return ("✎ WRITE".to_owned(), Mood::Asking),
            Mode::Type => return ("⌨ TYPING".to_owned(), Mood::Driving),
            _ => {}
        }
        match &mut self.origin {
            Origin::Tape(tape) => {
                let (word, mood) = match (tape.is_on_its_way(), tape.plays(), tape.is_at_end()) {
                    (true, _, _) if !tape.is_following() => ("… SEEKING", Mood::Going),
                    (_, true, _) => ("▶ PLAYING", Mood::Going),
                    _ if tape.is_following() => ("● FOLLOWING", Mood::Going),
                    (_, _, true) => ("■ END", Mood::Calm),
                    _ => ("❚❚ PAUSED", Mood::Calm),
                };
                (word.to_owned(), mood)
            }
            Origin::Live(live, _) => match (live.ended(), live.gone()) {
                (Some(Exit::Code(code)), _) => (format!("■ EXIT {code}"), Mood::Calm),
                (Some(Exit::Signal(signal)), _) => (format!("■ SIGNAL {signal}"), Mood::Calm),
                (None, Some(_)) => ("■ GONE".to_owned(), Mood::Wrong),
                (None, None) if live.recording_paused() => ("❚❚ REC PAUSED".to_owned(), Mood::Asking),
                (None, None) => ("● LIVE".to_owned(), Mood::Going),
            },
        }
    }

    /// The line that is typed at the bottom, or the question that a key answers.
    fn question(&self) -> Option<String> {
        Some(match &self.mode {
            Mode::Prompt(prompt) => {
                let tail = match (&self.search.error, self.search.is_busy(), self.search.hit) {
                    (Some(error), _, _) => format!("   ({error})"),
                    (None, true, _) => "   (searching)".to_owned(),
                    _ if !matches!(prompt.purpose, Purpose::Search { .. }) || prompt.keep => String::new(),
                    (None, false, None) if !prompt.text().is_empty() => "   (not found)".to_owned(),
                    _ => self.counted(),
                };
                prompt.shown() + &tail
            }
            Mode::AskQuit => self.quit_question(),
            Mode::AskBranch(_) => {
                format!("Run {}?   y yes   n no", program_of(&self.options.branch_command))
            }
            Mode::Letter(Letter::MarkTop | Letter::MarkBottom) => "set which mark? (a letter)".to_owned(),
            Mode::Letter(Letter::GoTo) => "go to which mark? (a letter, ' ^ $)".to_owned(),
            Mode::Letter(Letter::Forget) => "forget which mark? (a letter)".to_owned(),
            Mode::Letter(Letter::PipeTo) => {
                "rows from here to which mark? (a letter, ^ $ . for what is in sight)".to_owned()
            }
            Mode::Pair { own: None, .. } => "the partner of which bracket? (two characters)".to_owned(),
            Mode::Pair { own: Some(own), .. } => format!("which character goes with {own}?"),
            Mode::Flag { .. } => "which option? (i or I)".to_owned(),
            _ => return None,
        })
    }

    fn status_text(&self) -> String {
        if let Some(question) = self.question() {
            return question;
        }
        if let Some(notice) = &self.notice {
            return notice.text.clone();
        }
        if let Some(count) = self.count {
            let tenth = if count.tenth_at.is_some() { " …" } else { "" };
            return format!(":{}{tenth}", count.n);
        }
        if self.search.is_busy() {
            return format!("searching for {}", self.search.pattern());
        }
        let visible = self.visible();
        let (top, height) = (visible.before(self.scroll.top), u64::from(self.height()));
        let total = visible.len();
        let last = (top + height).min(total);
        let mut text = String::new();
        if let Origin::Live(live, _) = &self.origin
            && live.runs()
        {
            text = match live.holder() {
                Some(_) if live.drives() => "you drive · ".to_owned(),
                Some(holder) => format!("{holder} drives · "),
                None => "not driven · ".to_owned(),
            };
            if live.state() != AgentState::Unknown {
                text.insert_str(0, &format!("{} · ", live.state()));
            }
        }
        if let Origin::Live(live, _) = &self.origin
            && let Some(why) = live.gone()
        {
            text = format!("{why} · ");
        }
        text += &match total > height {
            true => format!("rows {}–{last} of {total} · {}%", top + 1, last * 100 / total),
            false => count(total, "row"),
        };
        if self.filter.is_on() {
            let patterns = self.filter.patterns().iter();
            let shown: Vec<String> =
                patterns.map(|p| format!("&{}{}", if p.not { "!" } else { "" }, p.text)).collect();
            text += &format!(" · only {}", shown.join(" "));
        }
        if self.until.is_some() {
            text += &format!(" · until {} comes", self.search.pattern());
        }
        text + &self.counted()
    }

    fn quit_question(&self) -> String {
        let Origin::Live(live, _) = &self.origin else { return String::new() };
        if live.link().outlives() {
            "The program still runs.   Enter leave it running   e end it   n stay".to_owned()
        } else {
            "The program still runs.   e end it and quit   n stay".to_owned()
        }
    }

    fn counted(&self) -> String {
        match self.search.counted().filter(|_| self.search.is_set() && self.search.lit) {
            Some((0, total)) => format!("   {total} found"),
            Some((nth, total)) => format!("   {nth} of {total} found"),
            None => String::new(),
        }
    }

    fn hints(&self) -> Vec<Hint> {
        match (&self.mode, &self.origin) {
            (Mode::Type, _) => vec![("Ctrl-]", "stop typing")],
            (Mode::Prompt(_), _) => vec![("Enter", "accept"), ("Esc", "back")],
            (
                Mode::AskQuit
                | Mode::AskBranch(_)
                | Mode::Letter(_)
                | Mode::Pair { .. }
                | Mode::Flag { .. }
                | Mode::Write(_),
                _,
            ) => Vec::new(),
            (_, Origin::Live(live, _)) if live.runs() => {
                vec![("Enter", "type"), ("/", "search"), ("q", "quit"), ("?", "keys")]
            }
            (_, Origin::Live(..)) => vec![("/", "search"), ("q", "quit"), ("?", "keys")],
            (_, Origin::Tape(tape)) => {
                let space = if tape.plays() { "pause" } else { "play" };
                vec![("space", space), ("/", "search"), ("i", "instruct"), ("q", "quit"), ("?", "keys")]
            }
        }
    }
}

fn box_width(layout: &Layout) -> u16 {
    layout.inner.width.max(BOX_WIDTH.min(layout.main.width))
}

/// Which row goes where, and where the box begins.
fn slots(page: &[Row], height: u16, boxed: Option<(Row, u16)>) -> (Vec<Option<Row>>, Option<u16>) {
    let mut slots: Vec<Option<Row>> = page.iter().copied().map(Some).collect();
    let box_y = boxed.map(|(at, box_height)| {
        let y = page.partition_point(|row| *row <= at);
        slots.splice(y..y, std::iter::repeat_n(None, usize::from(box_height)));
        y as u16
    });
    slots.resize(usize::from(height), None);
    (slots, box_y.filter(|y| *y < height))
}
