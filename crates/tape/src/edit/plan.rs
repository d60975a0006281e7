//! What is to be done to a recording, and the same with every position found and checked.

use std::fmt;
use std::time::Duration;

use super::{Located, NotFound, Position, Spot};

/// The slowest and the fastest that a recording can be made.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1e6;

/// What is to be done to a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    /// Ranges to remove, each from the start or up to the end where a side is left out.
    cuts: Vec<Cut>,
    marks: Vec<(Position, String)>,
    speed: Option<f64>,
    idle_limit: Option<Duration>,
    drop_input: bool,
    title: Option<String>,
}

/// A range to remove.
#[derive(Debug, Clone, PartialEq)]
struct Cut {
    from: Option<Position>,
    to: Option<Position>,
    /// What asked for it.
    as_said: String,
}

/// An edit that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A position is not in the recording.
    #[error("{said}: {position} is not in the recording: {why}")]
    NotFound {
        /// The edit that names it.
        said: String,
        /// The position.
        position: Position,
        /// Why not.
        why: NotFound,
    },
    /// A range ends before it begins.
    #[error("{0}: the range ends before it begins")]
    Reversed(String),
    /// Two ranges overlap.
    #[error("{0} and {1} overlap")]
    Overlap(String, String),
    /// A marker is in a range that is removed.
    #[error("{mark} would be removed by {cut}")]
    MarkRemoved {
        /// The marker.
        mark: String,
        /// The range.
        cut: String,
    },
    /// Nothing would be left.
    #[error("nothing of the recording would be left")]
    Nothing,
}

impl Edits {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes what comes before a position.
    #[must_use]
    pub fn from(mut self, position: Position) -> Self {
        let as_said = format!("start at {position}");
        self.cuts.push(Cut { from: None, to: Some(position), as_said });
        self
    }

    /// Removes what comes behind a position.
    #[must_use]
    pub fn until(mut self, position: Position) -> Self {
        let as_said = format!("end at {position}");
        self.cuts.push(Cut { from: Some(position), to: None, as_said });
        self
    }

    /// Removes a range; a side that is left out is the start or the end.
    #[must_use]
    pub fn cut(mut self, from: Option<Position>, to: Option<Position>) -> Self {
        let side = |side: &Option<Position>| side.as_ref().map_or_else(String::new, Position::to_string);
        let as_said = format!("cut {}..{}", side(&from), side(&to));
        self.cuts.push(Cut { from, to, as_said });
        self
    }

    /// Sets a marker.
    #[must_use]
    pub fn mark(mut self, at: Position, label: impl Into<String>) -> Self {
        self.marks.push((at, label.into()));
        self
    }

    /// Plays so many times as fast.
    #[must_use]
    pub fn speed(mut self, speed: f64) -> Self {
        self.speed = Some(speed.clamp(*SPEEDS.start(), *SPEEDS.end()));
        self
    }

    /// Shortens pauses to this, counted before the speed is changed.
    #[must_use]
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = Some(limit);
        self
    }

    /// Leaves out the input.
    #[must_use]
    pub fn drop_input(mut self) -> Self {
        self.drop_input = true;
        self
    }

    /// Sets the title; an empty one removes it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Whether all of the recording is kept, input apart.
    pub fn removes_nothing(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Everything that is to be done, in words.
    pub fn as_said(&self) -> Vec<String> {
        let mut said: Vec<String> = self.cuts.iter().map(|cut| cut.as_said.clone()).collect();
        said.extend(self.marks.iter().map(mark_said));
        said.extend(self.idle_limit.map(|limit| format!("pauses up to {}s", limit.as_secs_f64())));
        said.extend(self.speed.map(|speed| format!("speed {speed}")));
        said.extend(self.drop_input.then(|| "no input".to_owned()));
        said.extend(self.title.as_ref().map(|title| format!("title {title:?}")));
        said
    }

    /// The positions that [`Edits::plan`] needs, in its order.
    pub fn positions(&self) -> Vec<&Position> {
        let cuts = self.cuts.iter().flat_map(|cut| [&cut.from, &cut.to]).flatten();
        cuts.chain(self.marks.iter().map(|(at, _)| at)).collect()
    }

    /// Checks the edits against a recording in which [`Edits::positions`] were located.
    ///
    /// # Errors
    /// When a position is not there, a range is reversed or overlaps another, or nothing is left.
    pub fn plan(&self, located: &Located) -> Result<Plan, EditError> {
        let mut spots = located.spots.iter();
        let mut find = |position: &Position, said: &str| {
            let missing = || Err(NotFound::Moment { names: Vec::new(), more: false });
            spots.next().cloned().unwrap_or_else(missing).map_err(|why| EditError::NotFound {
                said: said.to_owned(),
                position: position.clone(),
                why,
            })
        };
        let mut cuts = Vec::new();
        for cut in &self.cuts {
            let start = cut.from.as_ref().map(|at| find(at, &cut.as_said)).transpose()?;
            let end = cut.to.as_ref().map(|at| find(at, &cut.as_said)).transpose()?;
            let (start, end) = (start.unwrap_or_default(), end.unwrap_or(located.end));
            match start.cmp(&end) {
                std::cmp::Ordering::Less => cuts.push((start, end, &cut.as_said)),
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => return Err(EditError::Reversed(cut.as_said.clone())),
            }
        }
        cuts.sort();
        for pair in cuts.windows(2) {
            let [(_, end, first), (start, _, second)] = pair else { continue };
            if start < end {
                return Err(EditError::Overlap((*first).clone(), (*second).clone()));
            }
        }
        let mut marks = Vec::new();
        for mark in &self.marks {
            let said = mark_said(mark);
            let at = find(&mark.0, &said)?;
            // At its very start a range is not yet removed, and at its end no longer.
            if let Some((_, _, cut)) = cuts.iter().find(|(start, end, _)| *start < at && at < *end) {
                return Err(EditError::MarkRemoved { mark: said, cut: (*cut).clone() });
            }
            marks.push((at, mark.1.clone()));
        }
        marks.sort();
        let mut removed: Vec<(Spot, Spot)> = Vec::new();
        for (start, end, _) in cuts {
            match removed.last_mut() {
                Some((_, last)) if *last == start => *last = end,
                _ => removed.push((start, end)),
            }
        }
        let gone: u64 = removed.iter().map(|(start, end)| end.index - start.index).sum();
        let splits = removed.iter().any(|(start, end)| start.within > 0 || end.within > 0);
        if gone >= located.end.index && !removed.is_empty() && !splits {
            return Err(EditError::Nothing);
        }
        Ok(Plan {
            removed,
            marks,
            speed: self.speed.unwrap_or(1.0),
            idle_limit: self.idle_limit,
            drop_input: self.drop_input,
            title: self.title.clone(),
        })
    }
}

fn mark_said((at, label): &(Position, String)) -> String {
    format!("marker {label:?} at {at}")
}

/// Edits that were checked against a recording.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is removed, in order, apart from each other.
    pub(super) removed: Vec<(Spot, Spot)>,
    /// Markers to set, in order.
    pub(super) marks: Vec<(Spot, String)>,
    pub(super) speed: f64,
    pub(super) idle_limit: Option<Duration>,
    pub(super) drop_input: bool,
    pub(super) title: Option<String>,
}

impl fmt::Display for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_said().join(", "))
    }
}
