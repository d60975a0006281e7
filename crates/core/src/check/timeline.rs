//! What happened in a session, in the order in which it was seen: the ground that checks stand on.
//! It is the same whether it was read from a cassette or comes from a program that has just run.

use std::sync::Arc;

use bytes::Bytes;
use tapdeck_term::Size;

use super::Json;
use crate::ParseError;
use crate::event::Exit;
use crate::log::Seq;
use crate::time::Time;

/// A place in a timeline. Order is by time first and by `seq` among moments of the same time, which
/// is the same order that `seq` alone gives: neither ever goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pos {
    /// When, in whole milliseconds.
    pub time: Time,
    /// The counter over all streams.
    pub seq: Seq,
}

impl Pos {
    /// After everything that happened at this time.
    pub(crate) const fn after(time: Time) -> Self {
        Self { time, seq: Seq(u64::MAX) }
    }

    /// Before everything that happened at this time.
    pub const fn before(time: Time) -> Self {
        Self { time, seq: Seq(0) }
    }
}

/// Bytes that were given to the program.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Input {
    /// The bytes, exactly.
    pub bytes: Bytes,
    /// The key that they stand for, by its name.
    pub key: Option<String>,
    /// They are a paste.
    pub paste: bool,
    /// The terminal itself wrote them, in answer to a question of the program.
    pub reply: bool,
}

/// One thing that happened, as checks see it. It differs from [`crate::Event`] in that keys,
/// signals and marks have names, and in that nothing is in it that no check asks for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum What {
    /// The program wrote these bytes, in one piece.
    Output(Bytes),
    /// These bytes were given to it.
    Input(Input),
    /// The terminal's size changed.
    Resize(Size),
    /// A signal was sent, by its name without `SIG`.
    Signal(String),
    /// Something that the driver of the program reported.
    Service(Json),
    /// A place that was given a name.
    Mark(Arc<str>),
}

/// A thing that happened, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When.
    pub at: Pos,
    /// What.
    pub what: What,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Cause {
    /// The program ended by itself, or by a signal that it was sent.
    #[default]
    Program,
    /// Its time was over.
    Timeout,
    /// A user or a client ended it.
    Cancelled,
}

impl Cause {
    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::str::FromStr for Cause {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        [Self::Program, Self::Timeout, Self::Cancelled].into_iter().find(|c| c.name() == name).ok_or_else(
            || {
                let known = "write program, timeout or cancelled";
                ParseError::new(format!("no session ends by {name:?}: {known}"))
            },
        )
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct End {
    /// When.
    pub at: Pos,
    /// The program's own end, where it is known.
    pub exit: Option<Exit>,
    /// Why.
    pub cause: Cause,
    /// Whether all processes closed the terminal, where that was observed.
    pub eof: Option<bool>,
    /// Processes of the session that were left when it was over, where they were counted.
    pub leaked: Option<u32>,
}

/// A session from its first size to its end.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Timeline {
    /// The terminal's size at the start.
    pub size: Size,
    /// What happened, in order.
    pub moments: Vec<Moment>,
    /// How it ended.
    pub end: End,
    /// What is kept beside the events, by name: how it ended in the recorder's words, what a probe
    /// found. Only a recording has any of it.
    pub beside: Vec<(&'static str, Json)>,
}

impl Timeline {
    /// Where a name was given; the first time, if it was given twice.
    pub fn mark(&self, name: &str) -> Option<Pos> {
        self.marks().find(|(n, _)| *n == name).map(|(_, at)| at)
    }

    /// The names that were given, in order.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (&str, Pos)> {
        self.moments.iter().filter_map(|m| match &m.what {
            What::Mark(name) => Some((&**name, m.at)),
            _ => None,
        })
    }
}

/// The signals from 1 on, as Linux numbers them.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The name of a signal, without `SIG`; its number where it has none.
pub fn signal_name(number: i32) -> String {
    let name = usize::try_from(number).ok().and_then(|n| SIGNALS.get(n.checked_sub(1)?));
    name.map_or_else(|| number.to_string(), |name| (*name).to_owned())
}

/// The number of a signal, from `INT`, `SIGINT` or `2`.
pub fn signal_number(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = SIGNALS.iter().position(|n| *n == short).and_then(|i| i32::try_from(i + 1).ok());
    named.or_else(|| short.parse().ok().filter(|n| (1..=64).contains(n)))
}
