//! A scenario from what a person did: their keys as steps, waits for what the screen showed before
//! each, and names for the moments at which they paused.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use tapdeck_core::Exit;
use tapdeck_core::Time;
use tapdeck_core::check::{Pos, Screen, What, signal_name};
use tapdeck_term::Size;
use tapdeck_term::keys::{KeyPress, encode, is_report};

use crate::Result;
use crate::event::{EventReader, Item, Kind};

/// A person who looks at the screen for so long has seen something.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest text that a wait looks for.
const LONGEST: usize = 60;
/// The most steps of a scenario.
const MOST_STEPS: usize = 10_000;

/// Keys whose bytes are told from text.
const KEYS: &[&str] = &[
    "Up", "Down", "Left", "Right", "Home", "End", "PgUp", "PgDn", "IC", "DC", "BTab", "F1", "F2", "F3", "F4",
    "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "C-Up", "C-Down", "C-Left", "C-Right", "S-Up",
    "S-Down", "S-Left", "S-Right", "M-Up", "M-Down", "M-Left", "M-Right", "Tab", "BSpace", "Escape",
];

/// A scenario that was made of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// How many steps it has.
    pub steps: usize,
    /// Whether the recording has input at all.
    pub has_input: bool,
}

/// Makes a scenario of a recording with input.
///
/// # Errors
/// When the recording cannot be read on.
pub fn draft(reader: &mut dyn EventReader, name: &str) -> Result<Draft> {
    let header = reader.header().clone();
    let size = header.size.unwrap_or_default();
    let mut steps = Steps::new(size);
    let mut exit = None;
    while let Some(item) = reader.next_item()? {
        let Item::Event(event) = item else { continue };
        let at = event.time;
        match event.kind {
            Kind::Output(bytes) => steps.shows(at, &What::Output(bytes)),
            Kind::Resize(size) if steps.size == size => {}
            Kind::Resize(size) => {
                steps.look(at);
                steps.add(format!("resize: {}x{}", size.cols, size.rows));
                steps.shows(at, &What::Resize(size));
            }
            Kind::Input(bytes) if !is_report(&bytes) => steps.input(at, &bytes),
            Kind::Exit(how) => exit = Some(how),
            _ => {}
        }
    }
    let has_input = steps.has_input;
    steps.end();
    let last = steps.appeared();
    steps.add(if exit.is_some() { "wait: {exit: true}".into() } else { "cancel: true".into() });
    let command = header.command.unwrap_or_else(|| "sh".into());
    let mut text = format!(
        "scenario: {}\nsize: {}x{}\nprogram:\n  run: {}\n",
        quoted(name),
        size.cols,
        size.rows,
        run(&command)
    );
    if let Some(term) = &header.term {
        let _ = write!(
            text,
            "env:\n  allow: [PATH]\n  set: {{TERM: {}, LANG: C.UTF-8, TZ: UTC}}\n",
            quoted(term)
        );
    }
    text.push_str("steps:\n");
    for step in &steps.list {
        let _ = writeln!(text, "  - {step}");
    }
    text.push_str("assert:\n");
    match exit {
        Some(Exit::Code(code)) => {
            let _ = writeln!(text, "  - {{exit: {code}}}");
        }
        Some(Exit::Signal(number)) => {
            let _ = writeln!(text, "  - {{exit: {{signal: {}}}}}", signal_name(number));
        }
        None => text.push_str("  - {ended: cancelled}\n"),
    }
    if let Some(last) = last {
        let _ = writeln!(text, "  - {{eventually: {{contains: {}}}}}", quoted(&last));
    }
    Ok(Draft { text, steps: steps.list.len(), has_input })
}

/// The steps so far, and the screen that the person had before them.
struct Steps {
    list: Vec<String>,
    screen: Screen,
    size: Size,
    /// What was on the screen when the person last did something.
    before: BTreeSet<String>,
    /// Text that is being typed.
    typed: String,
    /// When the screen last changed.
    changed: Time,
    pauses: usize,
    has_input: bool,
}

impl Steps {
    fn new(size: Size) -> Self {
        Self {
            list: Vec::new(),
            screen: Screen::new(size),
            size,
            before: BTreeSet::new(),
            typed: String::new(),
            changed: Time::ZERO,
            pauses: 0,
            has_input: false,
        }
    }

    fn add(&mut self, step: String) {
        if self.list.len() < MOST_STEPS {
            self.list.push(step);
        }
    }

    fn shows(&mut self, at: Time, what: &What) {
        if let What::Resize(size) = what {
            self.size = *size;
        }
        if self.screen.advance(Pos::before(at), what).is_some_and(|c| !c.rows.is_empty()) {
            self.changed = at;
        }
    }

    fn rows(&mut self) -> Vec<String> {
        let frame = self.screen.frame();
        frame.rows.iter().map(|row| row.text().trim().to_owned()).filter(|row| !row.is_empty()).collect()
    }

    /// A text that has come since the person last did something, the lowest on the screen that says
    /// anything; what they typed themselves is not one.
    fn appeared(&mut self) -> Option<String> {
        let rows = self.rows();
        let is_new = |row: &&String| {
            row.chars().any(char::is_alphanumeric)
                && !self.before.contains(*row)
                && (self.typed.trim().is_empty() || !row.ends_with(self.typed.trim()))
        };
        let row = rows.iter().rev().find(is_new)?;
        let mut text = row.clone();
        if let Some((at, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(at);
        }
        Some(text.trim_end().to_owned())
    }

    /// Waits for what the person saw, before they did something else.
    fn look(&mut self, at: Time) {
        if let Some(text) = self.appeared() {
            self.flush();
            self.add(format!("expect: {{contains: {}}}", quoted(&text)));
            if at.since(self.changed) >= PAUSE {
                self.pauses += 1;
                self.add(format!("snapshot: pause-{}", self.pauses));
            }
        }
        self.before = self.rows().into_iter().collect();
    }

    fn input(&mut self, at: Time, bytes: &[u8]) {
        self.has_input = true;
        self.look(at);
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.press(rest);
        }
    }

    /// Takes one key, text or paste off the bytes.
    fn press<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if let Some(after) = bytes.strip_prefix(b"\x1b[200~") {
            let end = memchr::memmem::find(after, b"\x1b[201~").unwrap_or(after.len());
            let text = String::from_utf8_lossy(&after[..end]).replace('\r', "\n");
            self.flush();
            self.add(format!("paste: {}", quoted(&text)));
            return after[end..].strip_prefix(b"\x1b[201~").unwrap_or_default();
        }
        if let Some(after) = bytes.strip_prefix(b"\r") {
            self.typed.push('\n');
            self.flush();
            return after;
        }
        let modes = self.screen.term().modes();
        let named = KEYS.iter().filter_map(|name| Some((*name, name.parse::<KeyPress>().ok()?)));
        let written = named.map(|(name, press)| (name, encode(press, &modes)));
        let found =
            written.filter(|(_, w)| !w.is_empty() && bytes.starts_with(w)).max_by_key(|(_, w)| w.len());
        if let Some((name, written)) = found {
            self.flush();
            self.add(format!("send: {name}"));
            return &bytes[written.len()..];
        }
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(),
        };
        match valid.chars().next() {
            Some(c) if !c.is_control() => {
                self.typed.push(c);
                &bytes[c.len_utf8()..]
            }
            Some(c @ '\x01'..='\x1a') => {
                self.flush();
                self.add(format!("send: C-{}", char::from(c as u8 + b'a' - 1)));
                &bytes[1..]
            }
            // What has no name is given as it is.
            _ => {
                self.flush();
                let text: String = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
                match valid.len() == bytes.len() {
                    true => self.add(format!("bytes: \"{text}\"")),
                    false => self.add(format!("bytes: {}", quoted(&String::from_utf8_lossy(bytes)))),
                }
                &[]
            }
        }
    }

    fn flush(&mut self) {
        if !self.typed.is_empty() {
            let text = quoted(&std::mem::take(&mut self.typed));
            self.add(format!("type: {text}"));
        }
    }

    fn end(&mut self) {
        self.flush();
    }
}

/// A text as YAML reads it, whatever is in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The command as a list; what a shell would have to take apart is given to one.
fn run(command: &str) -> String {
    let is_plain = |c: char| {
        c.is_alphanumeric() || matches!(c, ' ' | '/' | '.' | '-' | '_' | '=' | ':' | ',' | '+' | '@')
    };
    let words: Vec<String> = match command.chars().all(is_plain) {
        true => command.split_whitespace().map(quoted).collect(),
        false => ["sh", "-c", command].map(quoted).to_vec(),
    };
    format!("[{}]", words.join(", "))
}
