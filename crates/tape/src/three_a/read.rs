//! Reading animated art. Each frame becomes one event that draws it from the top left corner. The
//! older form of the format, with `width` and `height` in its header, is refused by name.

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use tapdeck_core::Time;

use crate::event::{Event, EventReader, Header, Item, Kind, Note, clamp_size};
use crate::lines::Lines;
use crate::{Error, FilePosition, Result};

/// Art is small; frames are read whole to know its size.
const MAX_FILE: u64 = 32 << 20;
const DEFAULT_DELAY_MS: u64 = 50;
const MAX_DELAY_MS: u64 = 1_000_000_000;

/// Reads animated art, once through.
#[derive(Debug)]
pub(crate) struct ThreeAReader {
    header: Header,
    notes: Vec<Note>,
    frames: std::vec::IntoIter<Event>,
    done: u64,
}

#[derive(Debug, Default)]
struct Art {
    title: Option<String>,
    delay_ms: Option<u64>,
    frame_delays: BTreeMap<usize, u64>,
    looped: bool,
    colours: Option<bool>,
    names: BTreeMap<char, String>,
    text_pin: Option<Vec<String>>,
    colour_pin: Option<Vec<String>>,
    frames: Vec<Vec<String>>,
    notes: Vec<Note>,
}

impl ThreeAReader {
    /// Reads the file.
    ///
    /// # Errors
    /// When the reader fails or the file is not of this format.
    pub(crate) fn new(inner: impl Read) -> Result<Self> {
        let art = Art::parse(inner)?;
        let (events, size) = art.events();
        let mut header =
            Header { title: art.title, size: Some(clamp_size(size.0, size.1)), ..Header::default() };
        header.extra.insert("loop", art.looped);
        Ok(Self { header, notes: art.notes, frames: events.into_iter(), done: 0 })
    }
}

impl EventReader for ThreeAReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        if !self.notes.is_empty() {
            return Ok(Some(Item::Note(self.notes.remove(0))));
        }
        Ok(self.frames.next().map(|event| {
            if let Kind::Output(bytes) = &event.kind {
                self.done += bytes.len() as u64;
            }
            Item::Event(event)
        }))
    }

    fn position(&self) -> u64 {
        self.done
    }
}

impl Art {
    fn parse(inner: impl Read) -> Result<Self> {
        let mut art = Self { looped: true, ..Self::default() };
        let mut lines = Lines::new(inner.take(MAX_FILE + 1));
        let mut block = String::new();
        let mut frame: Vec<String> = Vec::new();
        let mut pins: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(line) = lines.next_line()? {
            let at = FilePosition::Line(line.number);
            let text = clean(&String::from_utf8_lossy(line.text));
            // The body is always last and may hold lines that look like titles.
            if block != "body"
                && let Some(title) = text.strip_prefix('@')
            {
                if block.is_empty() && title != "3a" {
                    return Err(Error::malformed(at, "not a 3a file: it does not begin with @3a"));
                }
                title.clone_into(&mut block);
                continue;
            }
            match block.as_str() {
                "" if text.is_empty() => {}
                "" => return Err(Error::malformed(at, "not a 3a file: it does not begin with @3a")),
                "3a" => art.key(&text, at)?,
                "body" if text.is_empty() => {
                    if !frame.is_empty() {
                        art.frames.push(std::mem::take(&mut frame));
                    }
                }
                "body" => frame.push(text),
                _ if text.is_empty() => {}
                other => pins.entry(other.to_owned()).or_default().push(text),
            }
        }
        if lines.position() > MAX_FILE {
            let what = format!("larger than {} MiB: not a piece of art", MAX_FILE >> 20);
            return Err(Error::malformed(FilePosition::Byte(MAX_FILE), what));
        }
        if block.is_empty() {
            return Err(Error::malformed(FilePosition::Line(1), "not a 3a file: it is empty"));
        }
        if !frame.is_empty() {
            art.frames.push(frame);
        }
        art.text_pin = pins.remove("text-pin");
        // The specification's own example spells the name in the singular.
        art.colour_pin = pins.remove("colors-pin").or_else(|| pins.remove("color-pin"));
        Ok(art)
    }

    fn key(&mut self, text: &str, at: FilePosition) -> Result<()> {
        let text = text.trim();
        let (key, value) = text.split_once(' ').unwrap_or((text, ""));
        let value = value.trim();
        match key {
            _ if text.is_empty() || text.starts_with(";;") || text.starts_with('#') => {}
            "title" => self.title = Some(value.split_whitespace().collect::<Vec<_>>().join(" ")),
            "loop" => self.looped = !value.eq_ignore_ascii_case("no"),
            "colors" => self.colours = Some(value.eq_ignore_ascii_case("yes")),
            "width" | "height" => {
                return Err(Error::malformed(at, "this is the older 3a format, which is not read"));
            }
            "delay" => {
                let bad = || Error::malformed(at, format!("impossible delay {value:?}"));
                for word in value.split_whitespace() {
                    let ms = |text: &str| text.parse().ok().filter(|&ms| ms <= MAX_DELAY_MS).ok_or_else(bad);
                    match word.split_once(':') {
                        Some((frame, delay)) => {
                            self.frame_delays.insert(frame.parse().map_err(|_| bad())?, ms(delay)?);
                        }
                        None => self.delay_ms = Some(ms(word)?),
                    }
                }
            }
            "col" => {
                let mut words = value.split_whitespace();
                let name = words.next().and_then(|w| w.chars().next());
                let sgr: Option<Vec<String>> = words.map(colour).collect();
                match (name, sgr) {
                    (Some(name), Some(sgr)) => {
                        self.names.insert(name, format!("\x1b[0;{}m", sgr.join(";")));
                    }
                    _ => {
                        let what = format!("ignored a color: {value:?}");
                        self.notes.push(Note { at, what, is_damage: false });
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The frames as events, and the art's size.
    fn events(&self) -> (Vec<Event>, (u64, u64)) {
        let coloured = self.colours.unwrap_or(!self.names.is_empty());
        let single = self.text_pin.clone().into_iter().collect::<Vec<_>>();
        let frames = if self.frames.is_empty() { &single } else { &self.frames };
        let (mut width, mut height, mut time_ms) = (0, 0, 0_u64);
        let mut events = Vec::with_capacity(frames.len());
        for (i, frame) in frames.iter().enumerate() {
            let rows = match (&self.text_pin, coloured) {
                (Some(pin), _) if !self.frames.is_empty() => pin,
                _ => frame,
            };
            let mut out = String::from("\x1b[H");
            height = height.max(rows.len());
            for (y, row) in rows.iter().enumerate() {
                let all: Vec<char> = row.chars().collect();
                let joined = coloured && self.text_pin.is_none() && self.colour_pin.is_none();
                let (text, names) = all.split_at(if joined { all.len() / 2 } else { all.len() });
                let names: Vec<char> = match (&self.colour_pin, &self.text_pin) {
                    _ if !coloured => Vec::new(),
                    (Some(pin), _) => pin.get(y).map(|r| r.chars().collect()).unwrap_or_default(),
                    (None, Some(_)) => frame.get(y).map(|r| r.chars().collect()).unwrap_or_default(),
                    (None, None) => names.to_vec(),
                };
                width = width.max(text.len());
                self.row(text, &names, &mut out);
                if y + 1 < rows.len() {
                    out.push_str("\r\n");
                }
            }
            events.push(Event::new(Time::from_millis(time_ms), Kind::Output(Bytes::from(out))));
            let delay = self.frame_delays.get(&i).or(self.delay_ms.as_ref());
            time_ms = time_ms.saturating_add(delay.copied().unwrap_or(DEFAULT_DELAY_MS));
        }
        // Where the file tells how long the last one is shown, that is part of the duration.
        if frames.len().checked_sub(1).is_some_and(|last| self.frame_delays.contains_key(&last)) {
            events.push(Event::new(Time::from_millis(time_ms), Kind::Output(Bytes::new())));
        }
        (events, (width as u64, height as u64))
    }

    fn row(&self, text: &[char], names: &[char], out: &mut String) {
        // Before the text: behind a row as wide as the screen, the cursor still stands on its last
        // cell.
        out.push_str("\x1b[K");
        let mut current = None;
        for (x, &c) in text.iter().enumerate() {
            let name = names.get(x).copied();
            if name != current {
                match name.and_then(|n| self.names.get(&n)) {
                    Some(sgr) => out.push_str(sgr),
                    None => out.push_str(&predefined(name)),
                }
                current = name;
            }
            out.push(c);
        }
        if current.is_some() {
            out.push_str("\x1b[0m");
        }
    }
}

/// The names that need no definition: a hexadecimal digit is one of the sixteen colours.
fn predefined(name: Option<char>) -> String {
    match name.and_then(|n| n.to_digit(16)) {
        Some(n @ 0..=7) => format!("\x1b[0;{}m", 30 + n),
        Some(n) => format!("\x1b[0;{}m", 82 + n),
        None => "\x1b[0m".to_owned(),
    }
}

/// `fg:…` or `bg:…` as parameters of SGR.
fn colour(word: &str) -> Option<String> {
    const NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    let (ground, value) = word.split_once(':')?;
    let (plain, bright, long) = match ground {
        "fg" => (30, 90, 38),
        "bg" => (40, 100, 48),
        _ => return None,
    };
    let named = |name: &str| NAMES.iter().position(|n| *n == name);
    if let Some(n) = named(value) {
        return Some((plain + n).to_string());
    }
    if let Some(n) = value.strip_prefix("bright-").and_then(named) {
        return Some((bright + n).to_string());
    }
    if value.len() == 6
        && let Ok(rgb) = u32::from_str_radix(value, 16)
    {
        return Some(format!("{long};2;{};{};{}", rgb >> 16, rgb >> 8 & 255, rgb & 255));
    }
    value.parse::<u8>().ok().map(|n| format!("{long};5;{n}"))
}

/// What the specification tells a reader to ignore or to take for a space. Escape characters are
/// among it, so art cannot smuggle in sequences of its own.
fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\t'
            | '\u{a0}'
            | '\u{1680}'
            | '\u{180e}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}' => Some(' '),
            '\u{200b}'..='\u{200f}'
            | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{300}'..='\u{36f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => None,
            c if c.is_control() => None,
            c => Some(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tapdeck_term::Size;

    use super::*;
    use crate::testing::{output_of, read_all};

    #[test]
    fn frames_are_drawn_at_their_times_in_their_colours() {
        let file = "@3a\n;; comment\ntitle  A  Cool   Art\ndelay 10 1:100\nloop no\n#x\ncolors yes\n\
            col + fg:bright-red bg:ff00A0\n\n@body\nab1+\ncd__\n\nef++\ngh22\n\n\nijff\nkl00\n";
        let (header, events, notes) = read_all(ThreeAReader::new(file.as_bytes()).unwrap());
        assert_eq!(notes, []);
        assert_eq!((header.size, header.title.as_deref()), (Some(Size::new(2, 2)), Some("A Cool Art")));
        let times: Vec<u64> = events.iter().map(|e| e.time.as_millis()).collect();
        assert_eq!(times, [0, 10, 110]);
        let first = String::from_utf8(output_of(&events[..1])).unwrap();
        assert_eq!(
            first,
            "\x1b[H\x1b[K\x1b[0;31ma\x1b[0;91;48;2;255;0;160mb\x1b[0m\r\n\x1b[K\x1b[0mcd\x1b[0m"
        );
    }

    #[test]
    fn plain_and_pinned_art_is_read_and_escapes_are_not() {
        let plain = "@3a\n\n@body\na\x1b[31mb\n@x\n\ncd\n";
        let (header, events, _) = read_all(ThreeAReader::new(plain.as_bytes()).unwrap());
        assert_eq!(header.size, Some(Size::new(6, 2)));
        assert_eq!(output_of(&events), b"\x1b[H\x1b[Ka[31mb\r\n\x1b[K@x\x1b[H\x1b[Kcd");
        let pinned = "@3a\ncolors yes\n\n@text-pin\nab\n\n@body\n12\n\n34\n";
        let (_, events, _) = read_all(ThreeAReader::new(pinned.as_bytes()).unwrap());
        assert_eq!(events.len(), 2);
        assert!(output_of(&events).starts_with(b"\x1b[H\x1b[K\x1b[0;31ma\x1b[0;32mb"));
    }

    #[test]
    fn other_files_are_refused_by_line() {
        for bad in
            ["", "hello", "@body\nx", "@3a\nwidth 10\n", "@3a\ndelay -1\n", "@3a\ndelay 99999999999999\n"]
        {
            let error = ThreeAReader::new(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line "), "{bad}: {error}");
        }
    }
}
