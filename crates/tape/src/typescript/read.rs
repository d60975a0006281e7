//! Reading a typescript with its timing file.

use std::collections::VecDeque;
use std::io::Read;

use bytes::Bytes;
use memchr::memmem;

use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::Size;

use super::STARTED;
use crate::event::{Event, EventReader, Header, Item, Kind, Note, clamp_size, seconds};
use crate::lines::Lines;
use crate::window::Window;
use crate::{Error, FilePosition, Result};

/// A single timing line stands for at most this much.
const MAX_STEP: usize = 64 << 20;
/// The line that `script` opens its file with holds the command, but not a book.
const MAX_BANNER: usize = 64 * 1024;
/// How the end of the file begins that `script` adds.
const DONE: &[u8] = b"\nScript done";

/// Reads the data file along the timing file.
#[derive(Debug)]
pub struct TypescriptReader<R, T> {
    data: Window<R>,
    /// The input's own file, where input was logged apart from output.
    input: Option<Window<R>>,
    timing: Lines<T>,
    header: Header,
    time: Time,
    /// Time of the last event that was given.
    given: Time,
    /// Time of the field that says how long it lasted, which may come late.
    lasted: Option<Time>,
    /// Whether the timing file has fields of its own, which tell the ending too.
    advanced: bool,
    /// Items read before they were asked for.
    ready: VecDeque<Item>,
    exit: Option<Event>,
    noted_rest: bool,
    done: bool,
}

impl<R: Read, T: Read> TypescriptReader<R, T> {
    /// `data` holds output, or output and input together (`--log-io`).
    ///
    /// # Errors
    /// When a reader fails or the timing file does not begin as one.
    pub fn new(data: R, timing: T) -> Result<Self> {
        Self::with_input(data, None, timing)
    }

    /// For recordings with input in a file of its own (`--log-in` beside `--log-out`).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_input(data: R, input: Option<R>, timing: T) -> Result<Self> {
        let mut reader = Self {
            data: Window::new(data, 0),
            input: input.map(|r| Window::new(r, 0)),
            timing: Lines::new(timing),
            header: Header::default(),
            time: Time::ZERO,
            given: Time::ZERO,
            lasted: None,
            advanced: false,
            ready: VecDeque::new(),
            exit: None,
            noted_rest: false,
            done: false,
        };
        let banner = skip_banner(&mut reader.data)?;
        reader.banner(&banner);
        if let Some(input) = &mut reader.input {
            skip_banner(input)?;
        }
        // Header fields come before the first real event, so reading up to it completes the header.
        let first = reader.read()?;
        // A remark about the first event is already waiting, and comes after it.
        if let Some(first) = first {
            reader.ready.push_front(first);
        }
        Ok(reader)
    }

    fn read(&mut self) -> Result<Option<Item>> {
        while !self.done {
            let Some(line) = self.timing.next_line()? else {
                if let Some(item) = self.leftover()? {
                    return Ok(Some(item));
                }
                self.done = true;
                let lasted = self.lasted.filter(|lasted| *lasted > self.given);
                let pause = || Some(Event::new(lasted?, Kind::Output(Bytes::new())));
                let exit = self.exit.take().map(|exit| Event::new(self.time, exit.kind));
                return Ok(exit.or_else(pause).map(Item::Event));
            };
            let (at, ended) = (FilePosition::Line(line.number), line.ended);
            let text = String::from_utf8_lossy(line.text).into_owned();
            if text.trim().is_empty() {
                continue;
            }
            match self.step(&text, at) {
                Ok(Some(item)) => return Ok(Some(item)),
                Ok(None) => {}
                Err(Error::Malformed { .. }) if !ended => {
                    return Ok(Some(Note::damage(at, "the timing file ends within this line")));
                }
                Err(e) => {
                    self.done = true;
                    return Err(e);
                }
            }
        }
        Ok(None)
    }

    /// One line of timing.
    fn step(&mut self, text: &str, at: FilePosition) -> Result<Option<Item>> {
        let malformed = || Error::malformed(at, format!("not a timing line: {:?}", cut(text)));
        let mut words = text.splitn(3, ' ');
        let first = words.next().unwrap_or_default();
        let is_letter = matches!(first, "O" | "I" | "S" | "H");
        self.advanced |= is_letter;
        let delay = if is_letter { words.next().ok_or_else(malformed)? } else { first };
        let delay = delay.parse::<f64>().ok().and_then(seconds).ok_or_else(malformed)?;
        let rest: String = words.collect::<Vec<_>>().join(" ");
        self.time += delay;
        match first {
            "H" => {
                self.field(&rest);
                Ok(None)
            }
            "S" => Ok(self.signal(&rest, at)),
            _ => {
                let len: usize = rest.trim().parse().map_err(|_| malformed())?;
                if len > MAX_STEP {
                    return Err(malformed());
                }
                self.given = self.time;
                self.bytes(first == "I", len, at)
            }
        }
    }

    fn bytes(&mut self, is_input: bool, len: usize, at: FilePosition) -> Result<Option<Item>> {
        let window = match &mut self.input {
            Some(input) if is_input => input,
            _ => &mut self.data,
        };
        let have = window.fill(len)?.min(len);
        let bytes = Bytes::copy_from_slice(&window.data()[..have]);
        window.consume(have);
        if have < len {
            self.done = true;
            if have == 0 {
                let what = "the data file ends before its timing does";
                return Ok(Some(Note::damage(at, what)));
            }
            let what = format!(
                "the data file ends {} before its timing does",
                tapdeck_core::count(len - have, "byte")
            );
            self.ready.push_back(Note::damage(at, what));
        }
        let kind = if is_input { Kind::Input(bytes) } else { Kind::Output(bytes) };
        Ok(Some(Item::Event(Event::new(self.time, kind))))
    }

    /// Data that no timing line speaks of: the timing file was cut, and its bytes are given all the
    /// same.
    fn leftover(&mut self) -> Result<Option<Item>> {
        let have = self.data.fill(2 * MAX_BANNER)?;
        let data = self.data.data();
        let len = match have {
            _ if have >= 2 * MAX_BANNER => MAX_BANNER,
            // The closing line, itself cut.
            _ if DONE.starts_with(data) => 0,
            _ => memmem::rfind(data, DONE).unwrap_or(have),
        };
        if len == 0 {
            self.closing();
            return Ok(None);
        }
        let bytes = Bytes::copy_from_slice(&data[..len]);
        self.data.consume(len);
        let event = Item::Event(Event::new(self.time, Kind::Output(bytes)));
        if std::mem::replace(&mut self.noted_rest, true) {
            return Ok(Some(event));
        }
        self.ready.push_back(event);
        Ok(Some(Note::item(
            self.timing.place(),
            "the timing file ends before its data; the rest has no times",
        )))
    }

    /// What the opening line tells; the timing file may know better.
    fn banner(&mut self, line: &str) {
        let when = line.as_bytes().strip_prefix(STARTED).and_then(|rest| std::str::from_utf8(rest).ok());
        self.header.started = when.and_then(parse_time).filter(|at| *at > WallTime::ZERO);
        for (name, value) in bracketed(line) {
            self.field(&format!("{name} {value}"));
        }
    }

    /// What the closing line tells, at which the data stands.
    fn closing(&mut self) {
        if self.advanced {
            return;
        }
        let line = String::from_utf8_lossy(self.data.data()).into_owned();
        let code = bracketed(line.trim_start()).into_iter().find(|(name, _)| *name == "COMMAND_EXIT_CODE");
        if let (None, Some((_, code))) = (&self.exit, code) {
            self.field(&format!("EXIT_CODE {code}"));
        }
    }

    fn field(&mut self, rest: &str) {
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let value = value.trim_end();
        let Size { cols, rows } = self.header.size.unwrap_or_default();
        match name {
            "TERM" => self.header.term = Some(value.to_owned()),
            "COMMAND" => self.header.command = Some(value.to_owned()),
            "SHELL" => {
                self.header.env.insert("SHELL".to_owned(), value.to_owned());
            }
            "COLUMNS" => {
                if let Ok(cols) = value.parse() {
                    self.header.size = Some(clamp_size(cols, u64::from(rows)));
                }
            }
            "LINES" => {
                if let Ok(rows) = value.parse() {
                    self.header.size = Some(clamp_size(u64::from(cols), rows));
                }
            }
            "DURATION" => self.lasted = Some(self.time),
            "START_TIME" => self.header.started = parse_time(value).or(self.header.started),
            "EXIT_CODE" => {
                if let Ok(code) = value.parse() {
                    self.exit = Some(Event::new(self.time, Kind::Exit(Exit::Code(code))));
                }
            }
            _ => {}
        }
    }

    fn signal(&mut self, rest: &str, at: FilePosition) -> Option<Item> {
        let mut words = rest.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        if name != "SIGWINCH" {
            return Some(Note::item(at, format!("signal {} passed", cut(name))));
        }
        let (mut cols, mut rows) = (None, None);
        for word in words {
            if let Some(n) = word.strip_prefix("COLS=") {
                cols = n.parse().ok();
            } else if let Some(n) = word.strip_prefix("ROWS=") {
                rows = n.parse().ok();
            }
        }
        let (Some(cols), Some(rows)) = (cols, rows) else {
            return Some(Note::item(at, format!("ignored an impossible size {:?}", cut(rest))));
        };
        let size = clamp_size(cols, rows);
        self.given = self.time;
        Some(Item::Event(Event::new(self.time, Kind::Resize(size))))
    }
}

impl<R: Read, T: Read> EventReader for TypescriptReader<R, T> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        match self.ready.pop_front() {
            Some(item) => Ok(Some(item)),
            None => self.read(),
        }
    }

    fn position(&self) -> u64 {
        self.data.offset()
    }
}

/// Leaves out the line that `script` put before the data; some of its versions were told not to.
fn skip_banner<R: Read>(window: &mut Window<R>) -> Result<String> {
    let have = window.fill(MAX_BANNER)?;
    let data = window.data();
    // A file that was cut within this line holds nothing else; a few letters may be the program's
    // own.
    let torn = have < STARTED.len() && have >= 6 && STARTED.starts_with(data);
    let len = match memchr::memchr(b'\n', data) {
        _ if !data.starts_with(STARTED) && !torn => 0,
        Some(end) => end + 1,
        None if have < MAX_BANNER => have,
        None => 0,
    };
    let banner = String::from_utf8_lossy(&data[..len]).into_owned();
    window.consume(len);
    Ok(banner)
}

/// What stands in the brackets of a line that `script` writes: `… [COMMAND="make" TERM="xterm"
/// COLUMNS="80"]`. Quotes in a command are not escaped, so a value ends where the next name begins.
fn bracketed(line: &str) -> Vec<(&'static str, &str)> {
    const NAMES: [&str; 6] = ["COMMAND", "TERM", "TTY", "COLUMNS", "LINES", "COMMAND_EXIT_CODE"];
    let Some(inside) = line.find(" [").map(|at| &line[at + 1..]) else { return Vec::new() };
    let mut found: Vec<(usize, usize, &'static str)> = Vec::new();
    for name in NAMES {
        let first = format!("[{name}=\"");
        let (at, len) = match inside.starts_with(&first) {
            true => (Some(0), first.len()),
            false => (inside.rfind(&format!("\" {name}=\"")), name.len() + 4),
        };
        found.extend(at.map(|at| (at, at + len, name)));
    }
    found.sort_unstable();
    let ends: Vec<usize> = found.iter().skip(1).map(|f| f.0 + 1).chain([inside.len()]).collect();
    let mut fields = Vec::new();
    for ((_, start, name), end) in found.into_iter().zip(ends) {
        if let Some(value) = inside.get(start..end).and_then(|v| v.rsplit_once('"')) {
            fields.push((name, value.0));
        }
    }
    fields
}

/// `2026-11-15 09:29:29+00:00`, as nanoseconds since 1970.
fn parse_time(text: &str) -> Option<WallTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let east = match text.get(19..20) {
        Some("-") => -1,
        _ => 1,
    };
    let offset = east * (number(20..22).unwrap_or(0) * 60 + number(23..25).unwrap_or(0));
    // Days since 1970 by counting years from March, so that the leap day comes last.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
        - 1
        - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    u64::try_from(seconds).ok().map(WallTime::from_secs)
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_script_itself_are_understood() {
        for (line, want) in [
            ("Script started on 2026-11-16 00:44:28+00:00", &[][..]),
            (
                "Script started on 2026 [COMMAND=\"x\" TERM=\"xterm\" TTY=\"/dev/pts/1\" COLUMNS=\"120\" LINES=\"20\"]\n",
                &[
                    ("COMMAND", "x"),
                    ("TERM", "xterm"),
                    ("TTY", "/dev/pts/1"),
                    ("COLUMNS", "120"),
                    ("LINES", "20"),
                ],
            ),
            (
                "Script started on x [COMMAND=\"echo \"a b\" [x]\" <not executed on terminal>]\n",
                &[("COMMAND", "echo \"a b\" [x]")],
            ),
            ("Script started on x [TERM=\"dumb\" COLUMNS=\"9\"]", &[("TERM", "dumb"), ("COLUMNS", "9")]),
            ("Script done on x [COMMAND_EXIT_CODE=\"3\"]\n", &[("COMMAND_EXIT_CODE", "3")]),
            ("Script done on x [COMMAND=\"cut", &[]),
        ] {
            assert_eq!(bracketed(line), want, "{line}");
        }
        let data = "Script started on 2026-11-16 00:44:28+00:00 [COMMAND=\"x\" TERM=\"xterm\" COLUMNS=\"120\" LINES=\"20\"]\nhi\
            \nScript done on 2026-11-16 00:44:28+00:00 [COMMAND_EXIT_CODE=\"3\"]\n";
        let reader = TypescriptReader::new(data.as_bytes(), &b"0.5 2\n1.5 0\n"[..]).unwrap();
        let (header, events, notes) = crate::testing::read_all(reader);
        assert_eq!(notes, []);
        assert_eq!((header.size, header.command.as_deref()), (Some(Size::new(120, 20)), Some("x")));
        assert_eq!(header.started, parse_time("2026-11-16 00:44:28+00:00"));
        assert_eq!(events.last(), Some(&Event::new(Time::from_secs(2), Kind::Exit(Exit::Code(3)))));
    }

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(parse_time("1970-01-01 00:00:00+00:00"), Some(WallTime::ZERO));
        assert_eq!(parse_time("2026-11-15 09:29:29+00:00"), Some(WallTime::from_secs(1_794_734_969)));
        assert_eq!(parse_time("2024-02-29 12:00:00+01:00"), Some(WallTime::from_secs(1_709_204_400)));
        assert_eq!(parse_time("yesterday"), None);
    }
}
