//! The moment of a recording from which a session is branched, and the kept files before it.

use tapdeck_core::{Time, WallTime};
use tapdeck_host::Source;
use tapdeck_tape::{Item, RecordedTree, Replay, tree_at_turn};

use crate::cmd::play::find_moment;
use crate::failure::{Failure, Result};
use crate::locate;
use crate::parse::{self, Position};

/// Every line that is kept of a recording.
const ALL_ROWS: usize = 1_000_000;

/// A moment, as a user names it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Where {
    /// As it was written.
    text: String,
    position: Position,
}

impl Where {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), position: parse::position(text)? })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The newest of the kept trees that is not later than this moment.
    pub(crate) fn tree_before<'t>(
        &self,
        source: &Source,
        trees: &'t [RecordedTree],
    ) -> Result<&'t RecordedTree> {
        let found = match &self.position {
            // The end of a turn; 0 is the session's start.
            Position::Turn(turn) => {
                locate::turn_end(source, *turn).map_err(Failure::not_found)?;
                tree_at_turn(trees, *turn)
            }
            Position::Line(line) => before_byte(trees, written(source, *line)?),
            position => match Self::look_up(source, position)? {
                Found::Byte(byte) => before_byte(trees, byte),
                Found::Time(time) => trees.iter().rev().find(|tree| tree.at <= time),
            },
        };
        found.ok_or_else(|| {
            let (path, first) = (source.path().display(), trees.first());
            let first = first.map(|tree| format!("; the first are at byte:{}", tree.anchor_byte));
            let first = first.unwrap_or_default();
            Failure::not_found(format!("{path}: no files were kept before {}{first}", self.text))
        })
    }

    fn look_up(source: &Source, position: &Position) -> Result<Found> {
        let mut reader = source.open()?;
        let started = reader.header().started.unwrap_or_default();
        Ok(match position {
            Position::Byte(byte) => Found::Byte(*byte),
            Position::Time(time) => Found::Time(started + *time),
            Position::Share(share) => {
                let mut end = Time::ZERO;
                while let Some(item) = reader.next_item().map_err(|e| source.read_error(e))? {
                    if let Item::Event(event) = item {
                        end = event.time;
                    }
                }
                Found::Time(started + end.scaled(*share).since_start())
            }
            Position::Moment(name) => {
                let replay = Replay::to_end(&mut *reader, 0).map_err(|e| source.read_error(e))?;
                let mut moments = replay.moments().to_vec();
                moments.extend(source.moments_beside(&moments));
                let found = find_moment(&moments, name).map(|moment| Found::Byte(moment.anchor));
                found.ok_or_else(|| {
                    let path = source.path().display();
                    Failure::not_found(format!(
                        "{path} has no marker or snapshot {name:?}: see tapdeck branch-points {path}"
                    ))
                })?
            }
            position => return Err(Failure::usage(format!("{position} cannot be branched from"))),
        })
    }
}

enum Found {
    Byte(u64),
    Time(WallTime),
}

fn before_byte(trees: &[RecordedTree], byte: u64) -> Option<&RecordedTree> {
    trees.iter().rev().find(|tree| tree.anchor_byte <= byte)
}

/// The last byte that wrote to a line.
fn written(source: &Source, line: u64) -> Result<u64> {
    let mut reader = source.open()?;
    let replay = Replay::to_end(&mut *reader, ALL_ROWS).map_err(|e| source.read_error(e))?;
    let path = source.path().display();
    locate::written(replay.term(), line).ok_or_else(|| {
        Failure::not_found(format!("{path} has no line {line}: see tapdeck branch-points {path}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_named() {
        for good in ["turn:0", "turn:12", "line:3", "byte:9", "1:23", "90s", "50%", "@cp"] {
            assert_eq!(Where::parse(good).expect(good).text(), good);
        }
        for bad in ["", "turn:", "turn:x", "line:-1", "2 turns", "@"] {
            assert!(Where::parse(bad).is_err(), "{bad}");
        }
    }
}
