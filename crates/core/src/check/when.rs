//! When: points and stretches of a timeline, as scenarios name them.

use core::time::Duration;
use std::fmt;
use std::str::FromStr;

use super::timeline::{Pos, Timeline};
use crate::ParseError;
use crate::time::Time;

/// What a point is counted from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// The start.
    Start,
    /// The end.
    End,
    /// A place that was given a name.
    Mark(String),
}

/// A point such as `1.5s`, `@end`, `@menu` or `@menu+200ms`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    anchor: Anchor,
    /// Milliseconds from there on.
    plus_ms: i64,
}

impl From<Anchor> for Point {
    fn from(anchor: Anchor) -> Self {
        Self { anchor, plus_ms: 0 }
    }
}

impl Point {
    /// So long after the start.
    pub(crate) fn after_start(length: Duration) -> Self {
        Self { anchor: Anchor::Start, plus_ms: signed_millis(length) }
    }

    /// A named place.
    pub fn mark(name: &str) -> Self {
        Anchor::Mark(name.to_owned()).into()
    }

    /// The point that is so much later, in whole milliseconds.
    #[must_use]
    pub fn plus(mut self, length: Duration) -> Self {
        self.plus_ms = self.plus_ms.saturating_add(signed_millis(length));
        self
    }

    /// The two places that the point means in a timeline: before and after what happened at that
    /// very moment. At a name they are one: the name stands between two moments.
    pub(crate) fn resolve(&self, timeline: &Timeline) -> Result<(Pos, Pos), String> {
        let base = match &self.anchor {
            Anchor::Start => Pos::default(),
            Anchor::End => timeline.end.at,
            Anchor::Mark(name) => timeline.mark(name).ok_or_else(|| {
                let names: Vec<_> = timeline.marks().map(|(n, _)| n).filter(|n| !n.contains(' ')).collect();
                let there = if names.is_empty() {
                    "there are none".into()
                } else {
                    format!("there are {}", names.join(", "))
                };
                format!("nothing is called {name:?} in this timeline: {there}")
            })?,
        };
        if self.plus_ms == 0 && self.anchor != Anchor::Start {
            return Ok((base, base));
        }
        let millis = base.time.as_millis().checked_add_signed(self.plus_ms);
        let time = millis.map(Time::from_millis).ok_or_else(|| format!("{self} is before the beginning"))?;
        Ok((Pos::before(time), Pos::after(time)))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.plus_ms < 0 { "-" } else { "+" };
        let amount = seconds(Duration::from_millis(self.plus_ms.unsigned_abs()));
        match (&self.anchor, self.plus_ms) {
            (Anchor::Start, ..0) => write!(f, "@start-{amount}"),
            (Anchor::Start, _) => write!(f, "{amount}"),
            (Anchor::End, 0) => f.write_str("@end"),
            (Anchor::End, _) => write!(f, "@end{sign}{amount}"),
            (Anchor::Mark(name), 0) => write!(f, "@{name}"),
            (Anchor::Mark(name), _) => write!(f, "@{name}{sign}{amount}"),
        }
    }
}

impl FromStr for Point {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let Some(named) = text.strip_prefix('@') else { return Ok(Self::after_start(length(text)?)) };
        let cut = named.rfind(['+', '-']).filter(|i| length(&named[i + 1..]).is_ok());
        let (name, plus_ms) = match cut {
            Some(i) => {
                let amount = signed_millis(length(&named[i + 1..])?);
                (&named[..i], if named[i..].starts_with('-') { -amount } else { amount })
            }
            None => (named, 0),
        };
        let anchor = match name {
            "" => return Err(ParseError::new(format!("{text:?} is no time: @ wants a name behind it"))),
            "start" => Anchor::Start,
            "end" => Anchor::End,
            name => Anchor::Mark(name.to_owned()),
        };
        Ok(Self { anchor, plus_ms })
    }
}

fn signed_millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// Reads a length of time, in whole milliseconds, from `200ms`, `1.5s`, `2m` or plain seconds.
///
/// # Errors
/// When the text is no time, or one beyond a year.
pub fn length(text: &str) -> Result<Duration, ParseError> {
    let known = "write 200ms, 1.5s, 2m, @end or @ and a name";
    let wrong = || ParseError::new(format!("{text:?} is no time: {known}"));
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1.0,
        "" | "s" => 1e3,
        "m" | "min" => 60e3,
        "h" => 3600e3,
        _ => return Err(wrong()),
    };
    let n: f64 = number.trim().parse().map_err(|_| wrong())?;
    let ms = n * scale;
    // A year is more than any recording has, and far from where numbers lose their unit.
    if (0.0..=3.2e10).contains(&ms) { Ok(Duration::from_millis(ms.round() as u64)) } else { Err(wrong()) }
}

/// A time as people read it.
pub fn seconds(time: impl Into<Duration>) -> String {
    let ms = time.into().as_millis();
    match ms {
        0 => "0s".to_owned(),
        1..1000 => format!("{ms}ms"),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{}.{:03}s", ms / 1000, ms % 1000).replace("00s", "s").replace("0s", "s"),
    }
}

/// A stretch of the timeline; open ends are its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// From here,
    pub from: Option<Point>,
    /// to here.
    pub to: Option<Point>,
}

/// A window in a timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// What begins here or later is inside.
    pub(crate) from: Pos,
    /// What began earlier is inside when it lasted past this.
    pub(crate) lasted: Pos,
    /// What begins later is outside.
    pub(crate) to: Pos,
}

impl Window {
    pub(crate) fn resolve(&self, timeline: &Timeline) -> Result<Span, String> {
        let whole = (Pos::default(), Pos::default());
        let (from, lasted) = self.from.as_ref().map_or(Ok(whole), |p| p.resolve(timeline))?;
        let end = Pos::after(timeline.end.at.time);
        let to = self.to.as_ref().map_or(Ok(end), |p| p.resolve(timeline).map(|(_, after)| after))?;
        if from.time > timeline.end.at.time {
            let (from, end) = (seconds(from.time), seconds(timeline.end.at.time));
            return Err(format!("the recording ends at {end}, before {from}"));
        }
        if from > to {
            return Err(format!(
                "the stretch ends ({}) before it begins ({})",
                seconds(to.time),
                seconds(from.time)
            ));
        }
        Ok(Span { from, lasted, to })
    }
}

impl Span {
    /// Whether a state that was on the screen from `start` until `end` counts.
    pub(crate) fn touches(&self, start: Pos, end: Pos) -> bool {
        start <= self.to && (start >= self.from || end > self.lasted)
    }

    /// Whether something that happened at once counts.
    pub(crate) fn holds(&self, at: Pos) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, None) => Ok(()),
            (Some(from), None) => write!(f, " from {from}"),
            (None, Some(to)) => write!(f, " until {to}"),
            (Some(from), Some(to)) => write!(f, " from {from} to {to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points() {
        for (text, shown) in [
            ("1.5s", "1.5s"),
            ("200ms", "200ms"),
            ("2", "2s"),
            ("2m", "120s"),
            ("@end", "@end"),
            ("@menu+200ms", "@menu+200ms"),
            ("@menu-1.25s", "@menu-1.25s"),
            ("@two-words", "@two-words"),
            ("@start+1s", "1s"),
            ("@start-1s", "@start-1s"),
        ] {
            assert_eq!(text.parse::<Point>().expect(text).to_string(), shown);
        }
        for bad in ["", "@", "x", "-1s", "1y", "nan", "1e300h"] {
            assert!(bad.parse::<Point>().is_err(), "{bad}");
        }
        assert_eq!(
            ([1050, 61_200, 100_000].map(|ms| seconds(Duration::from_millis(ms)))),
            ["1.05s", "61.2s", "100s"]
        );
    }
}
