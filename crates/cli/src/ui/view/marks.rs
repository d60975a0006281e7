//! The marks of rows: snapshots, markers and instructions, each at the row that was being
//! written. Looking through all rows takes a while in a long session, so the answer is kept until
//! the terminal changes, and for a short time after that.

use std::collections::BTreeMap;
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_tape::export::{behind, place_moments, rows_at};
use tapdeck_tape::{Instruction, Moment, MomentKind};
use tapdeck_term::{Generation, Term};

use super::rows::Row;

/// The greatest age of the marks while the terminal keeps changing.
const KEEP: Duration = Duration::from_millis(250);

/// The marks of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// Snapshots.
    pub(super) snapshots: u32,
    /// A marker.
    pub(super) marker: bool,
    /// An instruction.
    pub(super) instruction: bool,
}

/// The marks of all rows.
#[derive(Debug, Default)]
pub(super) struct Marks {
    rows: BTreeMap<Row, Mark>,
    /// Snapshots with their rows, in order of their anchors.
    snapshots: Vec<(Row, usize)>,
    /// Instructions with their rows, by their numbers in the list.
    instructions: Vec<(Row, usize)>,
    /// A row has an instruction and another mark.
    shares: bool,
    made: Option<(Generation, usize, usize, u64)>,
    made_at: Time,
}

impl Marks {
    /// Brings the marks up to date. `moments` are in order of their anchors; those behind `offset`
    /// are still to come. Returns whether they may be out of date.
    pub(super) fn refresh(
        &mut self,
        term: &Term,
        moments: &[Moment],
        instructions: &[Instruction],
        offset: u64,
        now: Time,
    ) -> bool {
        let wanted = (term.generation(), moments.len(), instructions.len(), offset);
        if self.made == Some(wanted) {
            return false;
        }
        let counts = |m: Option<(Generation, usize, usize, u64)>| m.map(|(_, m, i, _)| (m, i));
        if counts(self.made) == counts(Some(wanted)) && now < self.made_at + KEEP {
            return true;
        }
        (self.made, self.made_at) = (Some(wanted), now);
        self.rows.clear();
        self.snapshots.clear();
        let there = &moments[..moments.partition_point(|m| m.anchor <= offset)];
        let first = term.evicted();
        // The count of rows before a moment is the number of the row behind the one that was being
        // written.
        let row_of = |before: usize| first + before.saturating_sub(1) as u64;
        let named = there.iter().enumerate().collect();
        for (before, i) in place_moments(term, named) {
            let mark = self.rows.entry(row_of(before)).or_default();
            match there[i].kind {
                MomentKind::Marker => mark.marker = true,
                MomentKind::Snapshot(_) => {
                    mark.snapshots += 1;
                    self.snapshots.push((row_of(before), i));
                }
            }
        }
        self.snapshots.sort_by_key(|(_, i)| *i);
        let there = instructions.iter().enumerate().filter(|(_, i)| i.anchor_byte < offset);
        let (numbers, anchors): (Vec<usize>, Vec<u64>) = there.map(|(n, i)| (n, behind(i))).unzip();
        self.instructions = rows_at(term, &anchors).into_iter().zip(numbers).collect();
        for (row, _) in &self.instructions {
            self.rows.entry(*row).or_default().instruction = true;
        }
        self.shares = self.rows.values().any(|mark| mark.instruction && (mark.marker || mark.snapshots > 0));
        false
    }

    /// The marks of a row.
    pub(super) fn of(&self, row: Row) -> Option<Mark> {
        self.rows.get(&row).copied()
    }

    /// Has the marks made anew: an instruction was changed.
    pub(super) fn forget(&mut self) {
        self.made = None;
    }

    /// The newest instruction at a row, by its number in the list.
    pub(super) fn instruction_at(&self, row: Row) -> Option<usize> {
        self.instructions.iter().filter(|(at, _)| *at == row).map(|(_, n)| *n).max()
    }

    /// The instructions that are there, with their rows.
    pub(super) fn instructions(&self) -> &[(Row, usize)] {
        &self.instructions
    }

    /// Whether a row has an instruction and another mark.
    pub(super) fn shares_rows(&self) -> bool {
        self.shares
    }

    /// The snapshots that are there, with their rows, in order of their anchors.
    pub(super) fn snapshots(&self) -> &[(Row, usize)] {
        &self.snapshots
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_core::WallTime;

    use super::*;
    use tapdeck_term::{Settings, Size};

    #[test]
    fn marks_stand_at_the_row_being_written() {
        let mut term = Term::new(Size::new(10, 4), Settings::default());
        term.feed(b"one\r\ntwo\r\nthree");
        let snapshot = |id, anchor| Moment {
            kind: MomentKind::Snapshot(id),
            time: Time::ZERO,
            wall: None,
            anchor,
            label: String::new(),
        };
        let moments = [snapshot(1, 3), snapshot(2, 8), snapshot(3, 8), snapshot(4, 100)];
        let instruction = Instruction {
            id: 1,
            deleted: false,
            written: WallTime::ZERO,
            anchor_byte: 7,
            line: Some(1),
            snapshot: None,
            text: "x".into(),
        };
        let mut marks = Marks::default();
        marks.refresh(&term, &moments, &[instruction], 15, Time::ZERO);
        assert_eq!(marks.of(0), Some(Mark { snapshots: 1, ..Mark::default() }));
        assert_eq!(marks.of(1), Some(Mark { snapshots: 2, instruction: true, ..Mark::default() }));
        assert_eq!(marks.of(2), None);
        assert_eq!((marks.instruction_at(1), marks.instruction_at(0)), (Some(0), None));
        assert!(marks.shares_rows());
        assert_eq!(marks.snapshots(), [(0, 0), (1, 1), (1, 2)], "the fourth is still to come");
    }
}
