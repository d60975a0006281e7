//! Writing animated art: the screen as it was, frame by frame. The format's header holds the length
//! of every frame and comes first, so frames are kept until the end, within bounds. Colours are the
//! sixteen that need no definition.

use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_term::{Attrs, Colour, Style, Term};

use crate::event::{Event, EventWriter, Field, Header, Kind, Loss, Losses, Parts};
use crate::push_fmt::PushFmt;
use crate::replay::Replay;

/// Changes within this time are one frame.
const FRAME: Duration = Duration::from_millis(50);
/// How long a frame is shown for which nothing is said.
const DEFAULT_MS: u64 = 100;
/// More would not be art any more.
const MAX_FRAMES: usize = 10_000;
const MAX_BYTES: usize = 24 << 20;

/// Writes animated art.
#[derive(Debug, Default)]
pub(crate) struct ThreeAWriter {
    replay: Option<Replay>,
    title: String,
    body: String,
    last: String,
    /// Length of each frame in milliseconds.
    delays: Vec<u64>,
    shown_since: Time,
    /// When something happened last.
    end: Time,
    /// When the screen began to change since the last frame.
    due: Option<Time>,
    /// Rows that had left the screen by then.
    gone: u64,
    losses: Losses,
}

/// Whole milliseconds, at most `u64::MAX`.
fn millis(duration: Duration) -> u64 {
    Time::from(duration).as_millis()
}

impl ThreeAWriter {
    fn frame(&mut self, now: Time) {
        self.due = None;
        let Some(replay) = &self.replay else { return };
        let (frame, changed, cut) = draw(replay.term());
        // What was on the screen when it was drawn last, or is now, was seen.
        let gone = replay.term().evicted();
        let by = (gone - self.gone).saturating_sub(u64::from(replay.term().size().rows));
        self.losses.add_many(Loss::Scrolled, by);
        self.gone = gone;
        if frame == self.last {
            return;
        }
        if self.delays.len() >= MAX_FRAMES || self.body.len() + frame.len() > MAX_BYTES {
            self.losses.add(Loss::Frames, 0);
            return;
        }
        if changed > 0 {
            self.losses.add(Loss::Colours, changed);
        }
        if cut > 0 {
            self.losses.add(Loss::Characters, cut);
        }
        if let Some(before) = self.delays.last_mut() {
            *before = millis(now.since(self.shown_since));
            self.body.push('\n');
        }
        self.body.push_str(&frame);
        self.last = frame;
        self.delays.push(DEFAULT_MS);
        self.shown_since = now;
    }
}

impl EventWriter for ThreeAWriter {
    fn begin(&mut self, header: &Header, _: &mut Parts) {
        let title = header.title.as_deref().unwrap_or_default();
        self.title = title.chars().filter(|c| !c.is_control()).collect();
        self.losses.drop_fields(header, &[Field::Title, Field::Pipes]);
        self.replay = Some(Replay::new(header, 0));
    }

    fn event(&mut self, event: &Event, _: &mut Parts) {
        self.end = self.end.max(event.time);
        if let Some(start) = self.due
            && event.time >= start + FRAME
        {
            self.frame(start);
        }
        match &event.kind {
            Kind::Output(_) | Kind::Resize(_) => {
                if let Some(replay) = &mut self.replay {
                    replay.apply(event);
                }
                self.due.get_or_insert(event.time);
            }
            kind => self.losses.drop_event(kind),
        }
    }

    fn finish(&mut self, out: &mut Parts) {
        if let Some(start) = self.due {
            self.frame(start);
        }
        if let Some(last) = self.delays.last_mut()
            && self.end > self.shown_since
        {
            *last = millis(self.end.since(self.shown_since)).max(1);
        }
        let mut head = String::from("@3a\n");
        if !self.title.trim().is_empty() {
            head.push_fmt(format_args!("title {}\n", self.title.trim()));
        }
        head.push_fmt(format_args!("loop no\ncolors yes\ndelay {DEFAULT_MS}"));
        for (i, ms) in self.delays.iter().enumerate().filter(|(_, ms)| **ms != DEFAULT_MS) {
            head.push_fmt(format_args!(" {i}:{}", (*ms).min(1_000_000_000)));
        }
        head.push_str("\n\n@body\n");
        out.main.extend_from_slice(head.as_bytes());
        out.main.extend_from_slice(self.body.as_bytes());
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// The screen: each row its text and, as long again, the names of its colours; and how many
/// characters look different from what they were, and how many lost what was combined with them.
fn draw(term: &Term) -> (String, usize, usize) {
    let cols = usize::from(term.size().cols);
    let (mut out, mut changed, mut cut) = (String::new(), 0, 0);
    for line in term.screen() {
        let (mut text, mut names) = (String::new(), String::new());
        let mut count = 0;
        line.each(|cell, width, style| {
            let (name, exact) = name_of(&style);
            changed += usize::from(!exact && !cell.trim().is_empty());
            // One character for each element: what combines with it has no place here.
            cut += usize::from(cell.chars().nth(1).is_some());
            let c = cell.chars().next().filter(|c| !c.is_control()).unwrap_or(' ');
            text.push(c);
            names.push(name);
            count += width;
        });
        // Blank rows are drawn in full: an empty line would end the frame.
        for _ in count..cols {
            text.push(' ');
            names.push('_');
        }
        out.push_str(&text);
        out.push_str(&names);
        out.push('\n');
    }
    (out, changed, cut)
}

/// The predefined name nearest to a style, and whether it says all.
fn name_of(style: &Style) -> (char, bool) {
    let plain = style.bg == Colour::Default && !style.attrs.contains(Attrs::INVERSE);
    let digit = |n: u8| char::from_digit(u32::from(n & 15), 16).unwrap_or('_');
    match style.fg {
        Colour::Default => ('_', plain),
        Colour::Indexed(n @ 0..=15) => (digit(n), plain),
        Colour::Indexed(n @ 232..) => (if n < 244 { '8' } else { '7' }, false),
        Colour::Indexed(n) => {
            let n = n - 16;
            (digit(nearest(n / 36 * 51, n / 6 % 6 * 51, n % 6 * 51)), false)
        }
        Colour::Rgb(r, g, b) => (digit(nearest(r, g, b)), false),
    }
}

/// One of the sixteen: a bit for each strong component, and one for brightness.
fn nearest(r: u8, g: u8, b: u8) -> u8 {
    let top = r.max(g).max(b);
    let strong = |c: u8| u8::from(top > 40 && u16::from(c) * 2 > u16::from(top));
    let colour = strong(r) | strong(g) << 1 | strong(b) << 2;
    colour | if top > 200 { 8 } else { 0 }
}

#[cfg(test)]
mod tests {
    use tapdeck_term::Size;

    use super::*;
    use crate::testing::{output_of, read_all, sample_events, write_all};
    use crate::three_a::ThreeAReader;

    /// What scrolled by between two frames was left out without a word.
    #[test]
    fn rows_that_no_frame_shows_are_counted() {
        let header = Header {
            size: Some(Size::new(10, 2)),
            command: Some("seq 6".into()),
            title: Some("t".into()),
            ..Header::default()
        };
        let output =
            |ms: u64, text: &'static [u8]| Event::new(Time::from_millis(ms), Kind::Output(text.into()));
        let mut writer = ThreeAWriter::default();
        write_all(&mut writer, &header, &[output(0, b"1\r\n2"), output(500, b"\r\n3\r\n4")]);
        assert_eq!(writer.losses().of(Loss::Scrolled).events, 0);
        let mut writer = ThreeAWriter::default();
        write_all(&mut writer, &header, &[output(0, b"1\r\n2"), output(500, b"\r\n3\r\n4\r\n5\r\n6")]);
        assert_eq!(writer.losses().of(Loss::Scrolled).events, 2);
        assert_eq!(writer.losses().of(Loss::Header).events, 1, "the command; the title has a place");
    }

    #[test]
    fn the_screens_come_back_at_their_times() {
        let (mut header, mut events) = sample_events();
        header.size = Some(Size::new(20, 3));
        events.retain(|e| !matches!(e.kind, Kind::Resize(_)));
        events
            .push(Event::new(Time::from_secs(3), Kind::Output(b"\x1b[H\x1b[31mred\x1b[44mblue"[..].into())));
        let mut writer = ThreeAWriter::default();
        let file = write_all(&mut writer, &header, &events).main;
        let (back, got, notes) = read_all(ThreeAReader::new(&file[..]).unwrap());
        assert_eq!(notes, []);
        assert_eq!(back.size, Some(Size::new(20, 3)));
        let times: Vec<u64> = got.iter().map(|e| e.time.as_millis()).collect();
        assert_eq!(times, [0, 1_500, 3_000]);
        let last = String::from_utf8(output_of(&got[2..])).unwrap();
        assert!(last.starts_with("\x1b[H\x1b[K\x1b[0;31mredblue\x1b[0m"), "{last:?}");
        assert_eq!(writer.losses().of(Loss::Colours).bytes, 4);
        assert_eq!(writer.losses().of(Loss::Exit).events, 1);
    }

    #[test]
    fn a_pause_at_the_end_is_kept_and_what_combines_is_counted() {
        let header = Header { size: Some(Size::new(10, 2)), ..Header::default() };
        let out =
            |s: u64, text: &'static str| Event::new(Time::from_secs(s), Kind::Output(text.as_bytes().into()));
        let events = [out(0, "a"), out(1, "\r\ne\u{301}x"), out(6, "")];
        let mut writer = ThreeAWriter::default();
        let file = write_all(&mut writer, &header, &events).main;
        let (_, got, _) = read_all(ThreeAReader::new(&file[..]).unwrap());
        assert_eq!(got.last().map(|e| e.time), Some(Time::from_secs(6)));
        assert_eq!(writer.losses().of(Loss::Characters).bytes, 1);
    }
}
