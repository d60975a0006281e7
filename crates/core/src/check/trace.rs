//! Facts about what happened rather than about what was shown: order, delays and pieces of output,
//! what was typed, signals and sizes, service events, and how it all ended.

use core::time::Duration;
use std::fmt;

use tapdeck_term::{Scanner, Size};

use super::condition::{TextTest, range};
use super::schema::Schema;
use super::timeline::{Cause, Moment, Pos, Timeline, What, signal_name};
use super::when::{Span, seconds};
use super::{Json, JsonPath, quote};
use crate::event::Exit;

/// A kind of moment to look for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The start.
    Start,
    /// The end.
    End,
    /// A named place.
    Mark(String),
    /// These bytes have been written, in one piece or in several.
    Output(Vec<u8>),
    /// This text is on the screen.
    Shows(String),
    /// Input with these bytes in it.
    Input(Vec<u8>),
    /// A key, by name.
    Key(String),
    /// A paste with this text in it.
    Paste(String),
    /// A signal.
    Signal(String),
    /// A new size.
    Resize(Size),
    /// A service event.
    Service(JsonPath, JsonTest),
}

/// Bytes to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BytesTest {
    /// Exactly these.
    Is(Vec<u8>),
    /// These are among them.
    Contains(Vec<u8>),
    /// These are not.
    Lacks(Vec<u8>),
}

/// A value to compare with.
#[derive(Clone, Debug)]
pub enum JsonTest {
    /// Any value will do.
    Exists,
    /// Exactly this.
    Is(Json),
    /// A text that passes.
    Text(TextTest),
    /// A value of this shape.
    Shape(Box<Schema>),
}

/// A number that must lie in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// At least.
    pub min: Option<u64>,
    /// At most.
    pub max: Option<u64>,
}

impl Count {
    /// This many, no more and no less.
    pub fn exactly(n: u64) -> Self {
        Self { min: Some(n), max: Some(n) }
    }

    fn check(self, n: u64, what: &str) -> Result<(), String> {
        let fits = n >= self.min.unwrap_or(0) && n <= self.max.unwrap_or(u64::MAX);
        fits.then_some(()).ok_or_else(|| format!("{n} {what}, {}", range(self.min, self.max)))
    }
}

/// How a program is to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitTest {
    /// With this code, or by this signal.
    Is(Exit),
    /// With any code but 0, or by a signal.
    Failure,
}

/// A fact about what happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Trace {
    /// These happened one after the other.
    Order(Vec<Happening>),
    /// From the one to the other it took at least and at most so many milliseconds.
    Delay {
        /// From here
        from: Happening,
        /// to there.
        to: Happening,
        /// Milliseconds.
        ms: Count,
    },
    /// The longest silence between two pieces of output, in milliseconds.
    Gap(Count),
    /// Pieces of output.
    Chunks(Count),
    /// Bytes of the largest piece of output.
    ChunkBytes(Count),
    /// Bytes of output.
    OutputBytes(Count),
    /// The output itself.
    Output(BytesTest),
    /// Places where a piece of output ends inside an escape sequence.
    SplitEscapes(Count),
    /// Places where a piece of output ends inside a character.
    SplitCharacters(Count),
    /// Everything that was typed, the terminal's own answers left out.
    Input(BytesTest),
    /// The keys that were sent, by name.
    Keys(Vec<String>),
    /// The texts that were pasted, without their brackets.
    Pastes(Vec<String>),
    /// The signals that were sent.
    Signals(Vec<String>),
    /// The sizes that were set.
    Resizes(Vec<Size>),
    /// Times that the bell rang.
    Bells(Count),
    /// What was written to clipboards: selection and base64.
    Clipboard(Vec<(String, String)>),
    /// What the terminal has to answer to the program's questions.
    Replies(BytesTest),
    /// Service events in which the path leads to such a value.
    Service {
        /// Where to look.
        path: JsonPath,
        /// What is to be there.
        test: JsonTest,
        /// In so many events.
        count: Count,
    },
    /// Every service event of a type, or every one, has a shape.
    Events {
        /// The type, where only those of one are meant.
        kind: Option<String>,
        /// The shape.
        shape: Box<Schema>,
        /// So many of them.
        count: Count,
    },
    /// A value in what is kept beside the events.
    Beside {
        /// The name of what it is in.
        name: &'static str,
        /// Where to look.
        path: JsonPath,
        /// What is to be there.
        test: JsonTest,
        /// It is not to be there.
        absent: bool,
    },
    /// The program's end.
    Exit(ExitTest),
    /// Why it ended.
    Ended(Cause),
    /// Whether all processes closed the terminal.
    Eof(bool),
    /// Processes left behind.
    Leaked(Count),
}

/// What the frames' pass hears beside the frames.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) bells: u64,
    pub(crate) clipboard: Vec<(String, String)>,
    pub(crate) replies: Vec<u8>,
}

impl Trace {
    /// Whether the frames' pass must listen for it.
    pub(crate) fn listens(&self) -> bool {
        matches!(self, Self::Bells(_) | Self::Clipboard(_) | Self::Replies(_))
    }

    /// Whether it follows happenings, which is the business of [`super::follow`].
    pub(crate) fn follows(&self) -> Option<Vec<&Happening>> {
        match self {
            Self::Order(list) => Some(list.iter().collect()),
            Self::Delay { from, to, .. } => Some(vec![from, to]),
            _ => None,
        }
    }

    /// Checks it against the moments of a span; the error says what is wrong, and where if it is
    /// somewhere.
    pub(crate) fn check(&self, t: &Timeline, span: Span, heard: &Heard) -> Result<(), (String, Option<Pos>)> {
        let inside = || t.moments.iter().filter(|m| span.holds(m.at));
        let nowhere = |r: Result<(), String>| r.map_err(|message| (message, None));
        match self {
            // Judged where the happenings are followed.
            Self::Order(_) | Self::Delay { .. } => Ok(()),
            Self::Gap(count) => gap(inside(), *count),
            Self::Chunks(count) => nowhere(count.check(outputs(inside()).count() as u64, "pieces of output")),
            Self::ChunkBytes(count) => {
                let largest = outputs(inside()).map(|(_, b)| b.len()).max().unwrap_or(0);
                nowhere(count.check(largest as u64, "bytes are in the largest piece of output"))
            }
            Self::OutputBytes(count) => {
                let total: usize = outputs(inside()).map(|(_, b)| b.len()).sum();
                nowhere(count.check(total as u64, "bytes of output"))
            }
            Self::Output(test) => {
                nowhere(test.check(&joined(outputs(inside()).map(|(_, b)| b)), "the output"))
            }
            Self::SplitEscapes(count) => {
                splits(t, span, Scanner::in_sequence, "split escape sequences", *count)
            }
            Self::SplitCharacters(count) => {
                splits(t, span, Scanner::in_character, "split characters", *count)
            }
            Self::Input(test) => nowhere(test.check(&joined(typed(inside())), "the input")),
            Self::Keys(wanted) => {
                let keys = inside().filter_map(|m| match &m.what {
                    What::Input(i) => i.key.clone(),
                    _ => None,
                });
                nowhere(same("the keys are", &keys.collect::<Vec<_>>(), wanted))
            }
            Self::Pastes(wanted) => nowhere(same("the pastes are", &pastes(inside()), wanted)),
            Self::Signals(wanted) => {
                let signals = inside().filter_map(|m| match &m.what {
                    What::Signal(name) => Some(name.clone()),
                    _ => None,
                });
                nowhere(same("the signals are", &signals.collect::<Vec<_>>(), wanted))
            }
            Self::Resizes(wanted) => {
                let sizes = inside().filter_map(|m| match &m.what {
                    What::Resize(size) => Some(size_name(*size)),
                    _ => None,
                });
                let wanted: Vec<_> = wanted.iter().map(|s| size_name(*s)).collect();
                nowhere(same("the sizes are", &sizes.collect::<Vec<_>>(), &wanted))
            }
            Self::Bells(count) => nowhere(count.check(heard.bells, "bells rang")),
            Self::Clipboard(wanted) => {
                let show = |list: &[(String, String)]| {
                    list.iter().map(|(s, d)| format!("{s};{d}")).collect::<Vec<_>>()
                };
                nowhere(same("what was written to the clipboard is", &show(&heard.clipboard), &show(wanted)))
            }
            Self::Replies(test) => nowhere(test.check(&heard.replies, "the terminal's answer")),
            Self::Service { path, test, count } => service(inside(), path, test, *count),
            Self::Events { kind, shape, count } => events(inside(), kind.as_deref(), shape, *count),
            Self::Beside { name, path, test, absent } => nowhere(beside(t, name, path, test, *absent)),
            Self::Exit(test) => nowhere(exit(t.end.exit, *test)),
            Self::Ended(cause) => {
                let is = t.end.cause;
                nowhere((is == *cause).then_some(()).ok_or_else(|| format!("it ended by {}", is.name())))
            }
            Self::Eof(wanted) => nowhere(match t.end.eof {
                Some(is) if is == *wanted => Ok(()),
                Some(is) => {
                    Err(format!("the terminal was {}closed by all who held it", if is { "" } else { "not " }))
                }
                None => Err("the trace does not tell whether the terminal was closed".to_owned()),
            }),
            Self::Leaked(count) => nowhere(match t.end.leaked {
                Some(n) => count.check(u64::from(n), "processes were left behind"),
                None => Err("the trace does not tell how many processes were left behind".to_owned()),
            }),
        }
    }
}

fn outputs<'a>(moments: impl Iterator<Item = &'a Moment>) -> impl Iterator<Item = (Pos, &'a [u8])> {
    moments.filter_map(|m| match &m.what {
        What::Output(bytes) => Some((m.at, &bytes[..])),
        _ => None,
    })
}

fn typed<'a>(moments: impl Iterator<Item = &'a Moment>) -> impl Iterator<Item = &'a [u8]> {
    moments.filter_map(|m| match &m.what {
        What::Input(input) if !input.reply => Some(&input.bytes[..]),
        _ => None,
    })
}

fn joined<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    pieces.flatten().copied().collect()
}

fn gap<'a>(moments: impl Iterator<Item = &'a Moment>, count: Count) -> Result<(), (String, Option<Pos>)> {
    let mut last: Option<Pos> = None;
    let mut longest = (Duration::ZERO, None);
    for (at, _) in outputs(moments) {
        if let Some(before) = last
            && at.time.since(before.time) > longest.0
        {
            longest = (at.time.since(before.time), Some(before));
        }
        last = Some(at);
    }
    count
        .check(longest.0.as_millis() as u64, "ms is the longest silence")
        .map_err(|message| (message, longest.1))
}

fn splits(
    timeline: &Timeline,
    span: Span,
    split: impl Fn(&Scanner) -> bool,
    what: &str,
    count: Count,
) -> Result<(), (String, Option<Pos>)> {
    let mut scanner = Scanner::new();
    let (mut n, mut last) = (0, None);
    for (at, bytes) in outputs(timeline.moments.iter()) {
        scanner.feed(bytes, |_, _| ());
        if split(&scanner) && span.holds(at) {
            n += 1;
            last = Some(at);
        }
    }
    count.check(n, what).map_err(|message| (message, last))
}

/// The pasted texts. A paste may have been taken by the program in several pieces.
fn pastes<'a>(moments: impl Iterator<Item = &'a Moment>) -> Vec<String> {
    let mut pastes: Vec<Vec<u8>> = Vec::new();
    let mut open = false;
    for moment in moments {
        let What::Input(input) = &moment.what else { continue };
        if !input.paste {
            open &= input.reply;
            continue;
        }
        match pastes.last_mut() {
            Some(last) if open => last.extend_from_slice(&input.bytes),
            _ => pastes.push(input.bytes.to_vec()),
        }
        // In brackets the end is plain to see; without them every piece is a paste of its own.
        open = pastes.last().is_some_and(|p| p.starts_with(b"\x1b[200~") && !p.ends_with(b"\x1b[201~"));
    }
    let bare = |p: Vec<u8>| {
        let text = p.strip_prefix(b"\x1b[200~").unwrap_or(&p);
        let text = text.strip_suffix(b"\x1b[201~").unwrap_or(text);
        String::from_utf8_lossy(text).replace('\r', "\n")
    };
    pastes.into_iter().map(bare).collect()
}

fn same(what: &str, is: &[String], wanted: &[String]) -> Result<(), String> {
    let list = |l: &[String]| if l.is_empty() { "none".to_owned() } else { l.join(", ") };
    (is == wanted).then_some(()).ok_or_else(|| format!("{what} {}, not {}", list(is), list(wanted)))
}

fn service<'a>(
    moments: impl Iterator<Item = &'a Moment>,
    path: &JsonPath,
    test: &JsonTest,
    count: Count,
) -> Result<(), (String, Option<Pos>)> {
    let (mut n, mut near) = (0, None);
    for moment in moments {
        let What::Service(value) = &moment.what else { continue };
        let found = path.select(value);
        if found.iter().any(|v| test.holds(v)) {
            n += 1;
        } else if let Some(value) = found.first() {
            near = Some((moment.at, (*value).clone()));
        }
    }
    count.check(n, &format!("service events have {test} at {path}")).map_err(|message| match near {
        Some((at, value)) if n == 0 => (format!("{message}; the last one has {value} there"), Some(at)),
        _ => (message, None),
    })
}

fn events<'a>(
    moments: impl Iterator<Item = &'a Moment>,
    wanted: Option<&str>,
    shape: &Schema,
    count: Count,
) -> Result<(), (String, Option<Pos>)> {
    let mut n = 0;
    for moment in moments {
        let What::Service(value) = &moment.what else { continue };
        let kind = match value {
            Json::Map(fields) => fields.iter().find(|(key, _)| key == "type").map(|(_, kind)| kind),
            _ => None,
        };
        let is = |name: &str| matches!(kind, Some(Json::Text(kind)) if kind == name);
        // Those of the recorder have the form that it gives them.
        let ours = matches!(kind, Some(Json::Text(kind)) if kind.starts_with("tapdeck."));
        if wanted.map_or(!ours, is) {
            n += 1;
            let number = format!("service event {n}");
            shape.check(value).map_err(|why| (format!("{number}: {why}"), Some(moment.at)))?;
        }
    }
    let of = wanted.map(|kind| format!(" of type {kind:?}")).unwrap_or_default();
    count.check(n, &format!("service events{of}")).map_err(|message| (message, None))
}

fn beside(t: &Timeline, name: &str, path: &JsonPath, test: &JsonTest, absent: bool) -> Result<(), String> {
    let file = t.beside.iter().find(|(n, _)| *n == name);
    let found = file.map(|(_, value)| path.select(value)).unwrap_or_default();
    let holds = found.iter().any(|v| test.holds(v));
    match (absent, holds) {
        (false, true) | (true, false) => Ok(()),
        (true, true) => Err(format!("{name} has {test} at {path}")),
        (false, false) if file.is_none() => Err(format!("the cassette has no {name}")),
        (false, false) => Err(match found.first() {
            Some(value) => format!("{name} has {value} at {path}"),
            None => format!("{name} has nothing at {path}"),
        }),
    }
}

fn exit(is: Option<Exit>, test: ExitTest) -> Result<(), String> {
    let Some(is) = is else { return Err("how the program ended was not recorded".to_owned()) };
    let holds = match test {
        ExitTest::Is(wanted) => is == wanted,
        ExitTest::Failure => is != Exit::Code(0),
    };
    holds.then_some(()).ok_or_else(|| match is {
        Exit::Code(code) => format!("the program ended with code {code}"),
        Exit::Signal(n) => format!("the program was killed by {}", signal_name(n)),
    })
}

fn size_name(size: Size) -> String {
    format!("{}x{}", size.cols, size.rows)
}

impl BytesTest {
    pub(crate) fn check(&self, is: &[u8], what: &str) -> Result<(), String> {
        let has = |part: &[u8]| memchr::memmem::find(is, part).is_some();
        match self {
            Self::Is(wanted) if is == wanted => Ok(()),
            Self::Is(wanted) => {
                let same = is.iter().zip(wanted).take_while(|(a, b)| a == b).count();
                let part = |b: &[u8]| quote(&b[same..b.len().min(same + 40)]);
                Err(format!("{what} differs from byte {same} on: {} and not {}", part(is), part(wanted)))
            }
            Self::Contains(part) if has(part) => Ok(()),
            Self::Contains(part) => Err(format!("{what} has no {} in it", quote(part))),
            Self::Lacks(part) if has(part) => Err(format!("{what} has {} in it", quote(part))),
            Self::Lacks(_) => Ok(()),
        }
    }
}

impl JsonTest {
    pub(crate) fn holds(&self, value: &Json) -> bool {
        match (self, value) {
            (Self::Exists, _) => true,
            (Self::Is(wanted), value) => wanted == value,
            (Self::Text(test), Json::Text(text)) => test.holds(text),
            (Self::Text(_), _) => false,
            (Self::Shape(shape), value) => shape.check(value).is_ok(),
        }
    }
}

impl fmt::Display for JsonTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("something"),
            Self::Is(value) => write!(f, "{value}"),
            Self::Text(test) => write!(f, "{test}"),
            Self::Shape(shape) => write!(f, "{shape}"),
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the start"),
            Self::End => f.write_str("the end"),
            Self::Mark(name) => write!(f, "@{name}"),
            Self::Output(bytes) => write!(f, "output {}", quote(bytes)),
            Self::Shows(text) => write!(f, "{text:?} on the screen"),
            Self::Input(bytes) => write!(f, "input {}", quote(bytes)),
            Self::Key(key) => write!(f, "key {key}"),
            Self::Paste(text) => write!(f, "paste {text:?}"),
            Self::Signal(name) => write!(f, "signal {name}"),
            Self::Resize(size) => write!(f, "size {}", size_name(*size)),
            Self::Service(path, test) => write!(f, "service event with {test} at {path}"),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(a), Some(b)) if a == b => write!(f, "{a}"),
            (Some(a), Some(b)) => write!(f, "{a} to {b}"),
            (Some(a), None) => write!(f, "at least {a}"),
            (None, Some(b)) => write!(f, "at most {b}"),
            (None, None) => f.write_str("any number of"),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(list) => {
                let list: Vec<_> = list.iter().map(ToString::to_string).collect();
                write!(f, "in order: {}", list.join(", "))
            }
            Self::Delay { from, to, ms } => {
                let time =
                    |n: Option<u64>| n.map(|ms| seconds(Duration::from_millis(ms))).unwrap_or_default();
                write!(f, "from {from} to {to}")?;
                match (ms.min, ms.max) {
                    (Some(_), None) => write!(f, " at least {}", time(ms.min)),
                    (None, Some(_)) => write!(f, " at most {}", time(ms.max)),
                    _ => write!(f, " {} to {}", time(ms.min), time(ms.max)),
                }
            }
            Self::Gap(c) => write!(f, "longest silence {c} ms"),
            Self::Chunks(c) => write!(f, "{c} pieces of output"),
            Self::ChunkBytes(c) => write!(f, "largest piece of output {c} bytes"),
            Self::OutputBytes(c) => write!(f, "{c} bytes of output"),
            Self::Output(t) => write!(f, "output {t}"),
            Self::SplitEscapes(c) => write!(f, "{c} split escape sequences"),
            Self::SplitCharacters(c) => write!(f, "{c} split characters"),
            Self::Input(t) => write!(f, "input {t}"),
            Self::Keys(k) => write!(f, "keys {}", k.join(", ")),
            Self::Pastes(p) => write!(f, "pastes {p:?}"),
            Self::Signals(s) => write!(f, "signals {}", s.join(", ")),
            Self::Resizes(s) => {
                let sizes: Vec<_> = s.iter().map(|s| size_name(*s)).collect();
                write!(f, "sizes {}", sizes.join(", "))
            }
            Self::Bells(c) => write!(f, "{c} bells"),
            Self::Clipboard(c) => write!(f, "{} clipboard writes", c.len()),
            Self::Replies(t) => write!(f, "terminal's answers {t}"),
            Self::Service { path, test, count } => write!(f, "{count} service events with {test} at {path}"),
            Self::Events { kind: Some(kind), shape, .. } => {
                write!(f, "service events of type {kind:?} are {shape}")
            }
            Self::Events { kind: None, shape, .. } => write!(f, "service events are {shape}"),
            Self::Beside { name, path, test, absent } => {
                write!(f, "{name} {} {test} at {path}", if *absent { "without" } else { "with" })
            }
            Self::Exit(ExitTest::Failure) => f.write_str("exit with a failure"),
            Self::Exit(ExitTest::Is(Exit::Code(code))) => write!(f, "exit code {code}"),
            Self::Exit(ExitTest::Is(Exit::Signal(n))) => write!(f, "killed by {}", signal_name(*n)),
            Self::Ended(cause) => write!(f, "ended by {}", cause.name()),
            Self::Eof(on) => write!(f, "terminal {}closed by all", if *on { "" } else { "not " }),
            Self::Leaked(c) => write!(f, "{c} processes left behind"),
        }
    }
}

impl fmt::Display for BytesTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(b) => write!(f, "is {}", quote(b)),
            Self::Contains(b) => write!(f, "has {}", quote(b)),
            Self::Lacks(b) => write!(f, "lacks {}", quote(b)),
        }
    }
}
