//! What happened in a session, in the order in which it was seen: the ground that checks stand on. It is the same
//! whether it was read from a cassette or comes from a program that has just run.

use std::sync::Arc;

use bytes::Bytes;
use tapdeck_term::Size;

use super::Json;
use crate::event::Exit;

/// A place in a timeline. Order is by time first and by `seq` among moments of the same time, which is the same
/// order that `seq` alone gives: neither ever goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pos {
    /// Milliseconds since the start.
    pub t_ms: u64,
    /// The counter over all streams.
    pub seq: u64,
}

impl Pos {
    /// After everything that happened at this time.
    pub const fn after(t_ms: u64) -> Self {
        Self { t_ms, seq: u64::MAX }
    }

    /// Before everything that happened at this time.
    pub const fn before(t_ms: u64) -> Self {
        Self { t_ms, seq: 0 }
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

/// One thing that happened.
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
    /// Something that whoever drives the program had to say.
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
    /// Somebody ended it.
    Cancelled,
}

impl Cause {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::str::FromStr for Cause {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Program, Self::Timeout, Self::Cancelled]
            .into_iter()
            .find(|c| c.name() == name)
            .ok_or_else(|| format!("no session ends by {name:?}: write program, timeout or cancelled"))
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
    /// The terminal was closed by all who held it, where that was looked at.
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
}

impl Timeline {
    /// Where a name was given; the first time, if it was given twice.
    pub fn mark(&self, name: &str) -> Option<Pos> {
        self.marks().find(|(n, _)| *n == name).map(|(_, at)| at)
    }

    /// The names that were given, in order.
    pub fn marks(&self) -> impl Iterator<Item = (&str, Pos)> {
        self.moments.iter().filter_map(|m| match &m.what {
            What::Mark(name) => Some((&**name, m.at)),
            _ => None,
        })
    }
}

/// The signals that tests speak of, as Linux numbers them.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("WINCH", 28),
    ("SYS", 31),
];

/// The name of a signal, without `SIG`; its number where it has none.
pub fn signal_name(number: i32) -> String {
    let found = SIGNALS.iter().find(|(_, n)| *n == number);
    found.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

/// The number of a signal, from `INT`, `SIGINT` or `2`.
pub fn signal_number(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = || short.parse().ok().filter(|n| (1..=64).contains(n));
    SIGNALS.iter().find(|(n, _)| *n == short).map(|(_, n)| *n).or_else(number)
}
