//! Which input a recording must not keep: what is typed while the screen asks for a secret.
//!
//! A terminal without echo says so itself ([`Event::Input`] is then `hidden`). Programs that read
//! each key and draw the field themselves do not, so [`Withholding`] follows the screen: a line
//! that is typed behind a request for a secret ([`SECRET_PROMPTS`]) is hidden, and so is one of
//! which only `*` or the like appears. That can be seen only after the first key, so entries are
//! held back from it on until it appears, for a moment at most.

mod prompts;

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tapdeck_term::{Scanner, Settings, Term, Token};

use crate::event::{Author, Event, WinSize};
use crate::log::Entry;
use crate::time::Time;
use prompts::{DECORATION, MASKS};
pub use prompts::{SECRET_PROMPTS, SecretPrompt, SecretPrompts};

/// How long entries are held back at most: a block with them is still on disk in time.
const HOLD: Duration = Duration::from_millis(120);
/// How many pieces of output after a key may show what became of it.
const LOOKS: u8 = 40;
/// How many characters may appear beside a mask: a clock, a spinner, a count.
const ASIDE: usize = 12;
/// Characters of a line that are looked for.
const MAX_TYPED: usize = 4096;
/// Keys in a row that show nothing, after which a masked field is over.
const SILENT: u8 = 3;
/// Rows above the cursor among which the request may be.
const ABOVE: u16 = 3;

/// Decides for each input of a session, in order, whether it is hidden.
#[derive(Debug)]
pub struct Withholding {
    prompts: Arc<SecretPrompts>,
    term: Term,
    line: Line,
    /// What is held back, and until when.
    queue: VecDeque<Entry>,
    deadline: Option<Time>,
}

/// What is known of the line that is being typed.
#[derive(Debug)]
enum Line {
    /// Nothing was typed yet.
    Fresh,
    /// Something was, and has not appeared yet.
    Open(Look),
    /// It appears as it is.
    Plain,
    /// The screen asked for it.
    Asked,
    /// It appears as a mask.
    Masked(Look),
}

/// The screen before something was typed.
#[derive(Debug)]
struct Look {
    before: HashMap<char, usize>,
    typed: Vec<char>,
    looks: u8,
    silent: u8,
    /// The line has ended meanwhile.
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Plain,
    Masked,
    Unknown,
}

impl Withholding {
    /// Follows a session from its beginning, in a terminal of this size.
    pub fn new(prompts: Arc<SecretPrompts>, size: WinSize) -> Self {
        let settings = Settings::default().scrollback(0).replies(false);
        Self {
            prompts,
            term: Term::new(size.or_default().size(), settings),
            line: Line::Fresh,
            queue: VecDeque::new(),
            deadline: None,
        }
    }

    /// When [`Self::release`] has something to do though nothing comes.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Takes the next entry of the log, and appends what may be recorded by now.
    pub fn take(&mut self, mut entry: Entry, out: &mut Vec<Entry>) {
        self.release(entry.at.mono, out);
        match &mut entry.event {
            Event::Output { bytes, .. } => {
                self.term.feed(bytes);
                self.look(out);
            }
            Event::Resize(size) => drop(self.term.resize(size.or_default().size())),
            Event::Input { by: Author::Party(_), bytes, hidden } => {
                *hidden |= self.typed(bytes, *hidden, entry.at.mono);
            }
            // What becomes of what was typed is not seen any more.
            Event::RecordingPaused { .. } => {
                self.hide_waiting();
                self.release_all(out);
            }
            // A caller waits for the first two, and nothing comes after the third.
            Event::Snapshot { .. } | Event::Instruction(_) | Event::Exit(_) => self.release_all(out),
            _ => {}
        }
        match self.deadline {
            Some(_) => self.queue.push_back(entry),
            None => out.push(entry),
        }
    }

    fn hide_waiting(&mut self) {
        for entry in &mut self.queue {
            if let Event::Input { by: Author::Party(_), hidden, .. } = &mut entry.event {
                *hidden = true;
            }
        }
    }

    /// Appends what was held back, if it is time.
    pub fn release(&mut self, now: Time, out: &mut Vec<Entry>) {
        if self.deadline.is_some_and(|at| now >= at) {
            self.release_all(out);
        }
    }

    /// Appends everything that was held back.
    pub fn release_all(&mut self, out: &mut Vec<Entry>) {
        self.deadline = None;
        out.extend(self.queue.drain(..));
        if let Line::Open(Look { ended: true, .. }) = self.line {
            self.line = Line::Fresh;
        }
    }

    /// Takes note of what was typed. Returns whether it is hidden.
    fn typed(&mut self, bytes: &[u8], hidden: bool, at: Time) -> bool {
        let text = text_of(bytes);
        // A line of which nothing has appeared in time may be another one by now.
        if self.deadline.is_none() && matches!(self.line, Line::Open(_)) {
            self.line = Line::Fresh;
        }
        let ends = bytes.iter().any(|b| matches!(b, b'\r' | b'\n' | 0x03 | 0x04));
        let hide = match &mut self.line {
            _ if hidden => true,
            Line::Fresh if text.is_empty() => false,
            Line::Fresh if self.prompts.asks(&question(&self.term)) => {
                self.line = Line::Asked;
                true
            }
            Line::Fresh => {
                self.line = Line::Open(Look::new(&self.term, text));
                self.deadline = Some(at + HOLD);
                false
            }
            Line::Open(look) => {
                look.typed.extend(text);
                look.typed.truncate(MAX_TYPED);
                false
            }
            Line::Plain => false,
            Line::Asked => true,
            Line::Masked(look) => {
                let silent = if text.is_empty() { look.silent } else { look.silent + 1 };
                *look = Look { silent, ..Look::new(&self.term, text) };
                if silent > SILENT {
                    self.line = Line::Fresh;
                }
                silent <= SILENT
            }
        };
        if ends {
            match &mut self.line {
                Line::Open(look) => look.ended = true,
                line => *line = Line::Fresh,
            }
        }
        hide
    }

    /// Judges the line by what has appeared.
    fn look(&mut self, out: &mut Vec<Entry>) {
        let (Line::Open(look) | Line::Masked(look)) = &mut self.line else { return };
        let echo = look.judge(&self.term);
        look.looks += 1;
        let (over, ended) = (look.looks >= LOOKS, look.ended);
        let next = match (&self.line, echo) {
            (Line::Open(_), Echo::Masked) => {
                for entry in &mut self.queue {
                    if let Event::Input { by: Author::Party(_), hidden, .. } = &mut entry.event {
                        *hidden = true;
                    }
                }
                Line::Masked(Look::new(&self.term, Vec::new()))
            }
            (_, Echo::Plain) => Line::Plain,
            (Line::Open(_), Echo::Unknown) if over => Line::Plain,
            (Line::Masked(_), Echo::Masked) => Line::Masked(Look::new(&self.term, Vec::new())),
            _ => return,
        };
        self.line = if ended { Line::Fresh } else { next };
        self.release_all(out);
    }
}

impl Look {
    fn new(term: &Term, typed: Vec<char>) -> Self {
        Self { before: counted(term), typed, looks: 0, silent: 0, ended: false }
    }

    /// How what was typed has appeared. Where it stands says nothing: many programs draw a cursor
    /// of their own.
    fn judge(&self, term: &Term) -> Echo {
        let after = counted(term);
        let grown = |c: char| {
            let before = self.before.get(&c).copied().unwrap_or(0);
            after.get(&c).copied().unwrap_or(0).saturating_sub(before)
        };
        if self.typed.is_empty() {
            return Echo::Unknown;
        }
        if self.typed.iter().all(|c| grown(*c) > 0) {
            return Echo::Plain;
        }
        let mask = MASKS.chars().find(|mask| !self.typed.contains(mask) && grown(*mask) > 0);
        let aside: usize = after.keys().filter(|c| Some(**c) != mask).map(|c| grown(*c)).sum();
        if mask.is_some() && aside <= ASIDE { Echo::Masked } else { Echo::Unknown }
    }
}

/// How often each character is on the screen.
fn counted(term: &Term) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    for line in term.screen() {
        for c in line.text_ref().chars().filter(|c| !c.is_whitespace()) {
            *counts.entry(c).or_default() += 1;
        }
    }
    counts
}

/// The characters among what was typed, without keys that are sequences.
fn text_of(bytes: &[u8]) -> Vec<char> {
    let mut text = Vec::new();
    Scanner::new().feed(bytes, |_, token| {
        if let Token::Text(piece) = token {
            text.extend(
                String::from_utf8_lossy(piece).chars().filter(|c| !c.is_whitespace() && *c != '\x7f'),
            );
        }
    });
    text
}

/// The text that stands in front of the cursor, or above it where there is none.
fn question(term: &Term) -> String {
    let cursor = term.cursor();
    let cells = term.row(cursor.row).map(|line| line.cells()).unwrap_or_default();
    let before: String = cells.into_iter().take(usize::from(cursor.col)).flatten().collect();
    let says = |text: &str| text.contains(|c: char| !c.is_whitespace() && !DECORATION.contains(c));
    if says(&before) {
        return before;
    }
    let above = (1..=ABOVE).filter_map(|up| term.row(cursor.row.checked_sub(up)?));
    above.map(|line| line.text()).find(|text| says(text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Stream;
    use crate::log::{Offset, Seq};
    use crate::stick::{Party, Role};
    use crate::time::{Stamp, WallTime};

    /// A step of a session: what it shows, what is typed, or milliseconds that go by.
    #[derive(Clone, Copy)]
    enum Step<'a> {
        Out(&'a str),
        In(&'a str),
        Rest(u64),
    }
    use Step::{In, Out, Rest};

    /// What of the input is kept, with `-` for each byte that is hidden.
    fn kept(steps: &[Step<'_>]) -> String {
        let mut guard = Withholding::new(Arc::default(), WinSize::cells(40, 6));
        let (mut now, mut out) = (0, Vec::new());
        for step in steps {
            now += 1;
            let event = match step {
                Out(text) => Event::Output { stream: Stream::Out, bytes: text.as_bytes().to_vec().into() },
                In(text) => Event::Input {
                    by: Author::Party(Party { name: "local".into(), role: Role::Human }),
                    bytes: text.as_bytes().to_vec().into(),
                    hidden: false,
                },
                Rest(ms) => {
                    now += ms;
                    guard.release(Time::from_millis(now), &mut out);
                    continue;
                }
            };
            let at = Stamp { mono: Time::from_millis(now), wall: WallTime::from_secs(1) };
            guard.take(Entry { seq: Seq(now), offset: Offset(0), at, event }, &mut out);
        }
        guard.release_all(&mut out);
        let mut last = Time::ZERO;
        let mut text = String::new();
        for entry in &out {
            assert!(entry.at.mono >= last, "the order stays");
            last = entry.at.mono;
            if let Event::Input { bytes, hidden, .. } = &entry.event {
                let shown = String::from_utf8_lossy(bytes);
                text += &if *hidden { "-".repeat(bytes.len()) } else { shown.into_owned() };
            }
        }
        text
    }

    #[test]
    fn a_line_at_a_request_for_a_secret_is_hidden() {
        let asked = [Out("Password: "), In("h"), In("unter2\r"), Out("\r\n$ "), In("ls\r"), Out("ls\r\n")];
        assert_eq!(kept(&asked), "--------ls\r");
        let boxed = [
            Out("Enter your API key\r\n┌────┐\r\n│ > "),
            In("sk-1\r"),
            Out("\r\nname? "),
            In("ada\r"),
            Out("ada"),
        ];
        assert_eq!(kept(&boxed), "-----ada\r");
    }

    #[test]
    fn a_line_that_appears_as_a_mask_is_hidden_from_its_first_key_on() {
        let masked = [
            Out("code? "),
            In("s"),
            Out("*"),
            In("3"),
            Out("*"),
            In("c\r"),
            Out("*\r\n$ "),
            In("ls\r"),
            Out("ls"),
        ];
        assert_eq!(kept(&masked), "----ls\r");
        let pasted = [Out("code? "), In("hunter2"), Out("•••••••"), In("\r"), Out("\r\n"), In("x"), Out("x")];
        assert_eq!(kept(&pasted), "--------x");
        // A field elsewhere on the screen, drawn anew with a clock, and a mask of three a key.
        let drawn = [
            Out("\x1b[3;5Hcode "),
            In("s"),
            Out("\x1b[H12:00\x1b[3;10H***\x1b[6;1H"),
            In("3"),
            Out("\x1b[3;13H***"),
        ];
        assert_eq!(kept(&drawn), "--");
        // Menus that show nothing of what is typed do not hide the field that follows.
        let menu = [Out("menu"), In("j"), Rest(500), In("\r"), Rest(500)];
        let field = [Out("Unlock? "), In("s"), Out("*"), In("3"), Out("*"), In("\r"), Out("\r\n")];
        let after: Vec<Step<'_>> = menu.into_iter().chain(menu).chain(field).chain(field).collect();
        assert_eq!(kept(&after), "j\rj\r------");
        // Keys wait until they appear, with what is written meanwhile.
        let late = [Out("code? "), In("s"), Rest(60), In("3"), Out("\x07"), Out("**")];
        assert_eq!(kept(&late), "--");
    }

    #[test]
    fn ordinary_input_is_kept() {
        let shell =
            [Out("$ "), In("e"), Out("e"), In("cho *\r"), Out("cho *\r\n* a b\r\n$ "), In("x"), Out("x")];
        assert_eq!(kept(&shell), "echo *\rx");
        let silent = [Out("menu"), In("j"), Rest(500), In("k"), Rest(500), In("\x1b[A"), Out("\x1b[2J")];
        assert_eq!(kept(&silent), "jk\x1b[A");
        // An editor that scrolls over comments.
        let scrolled = [
            Out("\x1b[H/* one */\r\ntwo\r\nthree"),
            In("j"),
            Out("\x1b[H\x1b[2J * alpha beta\r\n * gamma delta\r\n * epsilon zeta"),
            In("k"),
        ];
        assert_eq!(kept(&scrolled), "jk");
        // A mask once, and then what is typed appears: the rest is kept.
        let game = [Out("map"), In("h"), Out("*"), In("h"), Out("h"), In("l"), Out("l")];
        assert_eq!(kept(&game), "--l");
    }
}
