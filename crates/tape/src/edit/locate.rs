//! Where the positions that people give lie in a recording.

use std::fmt;
use std::time::Duration;

use tapdeck_core::Time;

use super::Position;
use crate::event::{EventReader, Item, Kind};
use crate::export::final_rows;
use crate::replay::Replay;
use crate::turns::RecordedTurn;
use crate::{Error, Result};

/// Rows of scrollback in which lines are looked for.
const ALL_ROWS: usize = 1_000_000;
/// The labels that a message lists.
const MAX_NAMES: usize = 10;

/// A place between two events of a recording, or within one of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// How many events lie before it.
    pub index: u64,
    /// How many bytes of the next event do.
    pub within: u64,
    /// When it is.
    pub time: Time,
    /// Its offset in the output.
    pub offset: u64,
}

/// A position that is not in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFound {
    /// It lies behind the end.
    Outside {
        /// When the recording ends.
        end: Duration,
        /// How much output it has.
        bytes: u64,
    },
    /// No marker and no snapshot is called so.
    Moment {
        /// Some of those that there are.
        names: Vec<String>,
        /// There are others.
        more: bool,
    },
    /// There is no turn of this number; there are so many.
    Turn(usize),
    /// There is no line of this number; there are so many.
    Line(u64),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { end, bytes } => {
                write!(f, "the recording lasts {}s and has {bytes} bytes of output", end.as_secs_f64())
            }
            Self::Moment { names, .. } if names.is_empty() => f.write_str("it has no marker or snapshot"),
            Self::Moment { names, more } => {
                let others = if *more { " and others" } else { "" };
                write!(f, "no marker or snapshot has this label; it has {}{others}", names.join(", "))
            }
            Self::Turn(0) => f.write_str("the recording has no turns"),
            Self::Turn(count) => write!(f, "the recording has {}", tapdeck_core::count(*count, "turn")),
            Self::Line(count) => write!(f, "the recording has the lines 0 to {}", count.saturating_sub(1)),
        }
    }
}

/// What [`locate`] found.
#[derive(Debug, Clone, Default)]
pub struct Located {
    /// The end of the recording.
    pub end: Spot,
    /// For each position, in order, where it is.
    pub spots: Vec<Result<Spot, NotFound>>,
}

/// A position that can be found in one pass.
enum Wanted {
    Time(Time),
    Byte(u64),
    Moment { name: String, id: Option<u64>, by_id: Option<Spot> },
    Missing(NotFound),
}

/// Finds positions in a recording, which `open` opens anew for each pass over it: one, or two where
/// a position depends on the end.
///
/// # Errors
/// When the recording cannot be opened or read.
pub fn locate<'a, E: From<Error>>(
    mut open: impl FnMut() -> std::result::Result<Box<dyn EventReader + Send + 'a>, E>,
    turns: &[RecordedTurn],
    positions: &[&Position],
) -> std::result::Result<Located, E> {
    let needs_lines = positions.iter().any(|p| matches!(p, Position::Line(_)));
    let needs_end = positions.iter().any(|p| matches!(p, Position::Share(_)));
    let (mut end, mut lines) = (Time::ZERO, Vec::new());
    if needs_lines || needs_end {
        let mut reader = open()?;
        let mut replay = Replay::new(reader.header(), if needs_lines { ALL_ROWS } else { 0 });
        while let Some(item) = reader.next_item()? {
            if let Item::Event(event) = &item {
                end = event.time;
            }
            if needs_lines {
                replay.item(item);
            }
        }
        let term = replay.term();
        let first = reader.header().first_byte;
        lines = final_rows(term).map(|line| line.written().map(|w| w + first)).collect();
    }
    let wanted = positions.iter().map(|position| match position {
        Position::Time(time) => Wanted::Time((*time).into()),
        Position::Share(share) => Wanted::Time(end.scaled(*share)),
        Position::Byte(byte) => Wanted::Byte(*byte),
        Position::Moment(name) => Wanted::Moment { name: name.clone(), id: name.parse().ok(), by_id: None },
        Position::Turn(number) => match turns.iter().find(|turn| turn.number == *number) {
            Some(turn) => Wanted::Byte(turn.start_byte),
            None => Wanted::Missing(NotFound::Turn(turns.len())),
        },
        Position::Line(number) => match usize::try_from(*number).ok().and_then(|n| lines.get(n)) {
            // A line that nothing was written to was there from the start.
            Some(written) => Wanted::Byte(written.map_or(0, |byte| byte + 1)),
            None => Wanted::Missing(NotFound::Line(lines.len() as u64)),
        },
    });
    let mut search = Search::new(wanted.collect());
    let mut reader = open()?;
    search.here.offset = reader.header().first_byte;
    while let Some(item) = reader.next_item()? {
        if let Item::Event(event) = item {
            search.event(event.time, &event.kind);
        }
    }
    Ok(search.finish())
}

/// Positions that are looked for while the events go by.
struct Search {
    wanted: Vec<Wanted>,
    spots: Vec<Option<Spot>>,
    here: Spot,
    names: Vec<String>,
    more_names: bool,
}

impl Search {
    fn new(wanted: Vec<Wanted>) -> Self {
        let spots = vec![None; wanted.len()];
        Self { wanted, spots, here: Spot::default(), names: Vec::new(), more_names: false }
    }

    fn event(&mut self, time: Time, kind: &Kind) {
        let here = Spot { time, ..self.here };
        let (label, id) = match kind {
            Kind::Marker(label) => (Some(label), None),
            Kind::Snapshot { id, label, .. } => (Some(label), Some(*id)),
            _ => (None, None),
        };
        if let Some(label) = label {
            self.name(label, id);
        }
        for (wanted, spot) in self.wanted.iter_mut().zip(&mut self.spots) {
            if spot.is_some() {
                continue;
            }
            match wanted {
                // The start is before what happened at once.
                Wanted::Time(Time::ZERO) => *spot = Some(Spot { time: Time::ZERO, ..self.here }),
                Wanted::Time(at) if time > *at => *spot = Some(Spot { time: *at, ..self.here }),
                Wanted::Byte(at) => {
                    let Kind::Output(bytes) = kind else { continue };
                    if *at < here.offset + bytes.len() as u64 {
                        let within = at.saturating_sub(here.offset);
                        let time = if within > 0 { time } else { self.here.time };
                        *spot = Some(Spot { within, time, offset: here.offset + within, ..here });
                    }
                }
                Wanted::Moment { name, id: wanted_id, by_id } => {
                    if label == Some(&*name) {
                        *spot = Some(here);
                    } else if id.is_some() && id == *wanted_id && by_id.is_none() {
                        *by_id = Some(here);
                    }
                }
                _ => {}
            }
        }
        self.here.index += 1;
        self.here.time = time;
        match kind {
            Kind::Output(bytes) => self.here.offset += bytes.len() as u64,
            Kind::Lost(bytes) => self.here.offset = self.here.offset.saturating_add(*bytes),
            _ => {}
        }
    }

    fn name(&mut self, label: &str, id: Option<u64>) {
        if self.names.len() == MAX_NAMES {
            self.more_names = true;
            return;
        }
        self.names.push(match id {
            Some(id) if label.is_empty() => format!("@{id}"),
            _ => format!("@{label}"),
        });
    }

    fn finish(self) -> Located {
        let (end, names, more) = (self.here, self.names, self.more_names);
        let outside = NotFound::Outside { end: end.time.since_start(), bytes: end.offset };
        let spots = self.wanted.into_iter().zip(self.spots).map(|(wanted, spot)| match (spot, wanted) {
            (Some(spot), _) => Ok(spot),
            (None, Wanted::Time(at)) if at <= end.time => Ok(end),
            (None, Wanted::Byte(at)) if at <= end.offset => Ok(end),
            (None, Wanted::Moment { by_id: Some(spot), .. }) => Ok(spot),
            (None, Wanted::Moment { .. }) => Err(NotFound::Moment { names: names.clone(), more }),
            (None, Wanted::Missing(why)) => Err(why),
            (None, _) => Err(outside.clone()),
        });
        Located { end, spots: spots.collect() }
    }
}
