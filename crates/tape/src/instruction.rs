//! Instructions: what a person asks an agent to do differently from a line of a session on, with
//! the snapshot from which the session would be branched. They are a part of a recording, and lines
//! of `NAME.instructions.jsonl` beside one of another format.

use std::collections::HashMap;
use std::io::Read;

use serde::{Deserialize, Serialize};
use tapdeck_core::{Offset, WallTime};

use crate::Result;
use crate::lines::Lines;
use crate::replay::Moment;

/// Instructions beyond this many are not read.
pub const MAX_INSTRUCTIONS: usize = 100_000;

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// Tells it from the others. A later line with the same id replaces it. Lines of earlier
    /// versions have none; the time when it was written stands for it.
    #[serde(default)]
    pub id: u64,
    /// It was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// When it was written.
    #[serde(rename = "ts_ns", with = "crate::nanos")]
    pub written: WallTime,
    /// Last byte of output that wrote to the line it stands behind.
    pub anchor_byte: u64,
    /// Number of that line, from 0 at the oldest. Without one, its place tells the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The snapshot to branch from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Branch>,
    /// What to do.
    pub text: String,
}

/// The snapshot that an instruction goes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its id.
    pub id: u64,
    /// Its place in the output.
    pub anchor_byte: u64,
    /// Its label.
    #[serde(default)]
    pub label: String,
}

impl Branch {
    /// Of a moment, if that is a snapshot.
    pub fn of(moment: &Moment) -> Option<Self> {
        let id = moment.snapshot_id()?;
        Some(Self { id, anchor_byte: moment.anchor, label: moment.label.clone() })
    }
}

impl Instruction {
    /// As it is recorded, behind so many bytes of output.
    pub fn recorded(asked: &tapdeck_core::Instruction, anchor: Offset, at: WallTime) -> Self {
        let snapshot = asked.snapshot.as_ref();
        Self {
            id: asked.id,
            deleted: asked.text.is_empty(),
            written: at,
            anchor_byte: anchor.0.saturating_sub(1),
            line: asked.line,
            snapshot: snapshot.map(|s| Branch { id: s.id, anchor_byte: s.anchor, label: s.label.clone() }),
            text: asked.text.clone(),
        }
    }

    /// Brings a list up to date: adds it, or replaces or deletes the one with its id.
    pub fn apply_to(self, list: &mut Vec<Self>) {
        let there = list.iter().position(|other| other.id == self.id);
        match there {
            Some(at) if self.deleted => drop(list.remove(at)),
            Some(at) => list[at] = self,
            None if self.deleted => {}
            None => list.push(self),
        }
    }

    /// As a line of the sidecar.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The instructions in a file of lines, in order, as later lines changed them; lines that are none
/// are passed over.
///
/// # Errors
/// When the reader fails.
pub fn instructions_of(lines: impl Read) -> Result<Vec<Instruction>> {
    let mut lines = Lines::new(lines);
    let mut found: Vec<Instruction> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    while let Some(line) = lines.next_line()? {
        let Ok(mut instruction) = serde_json::from_slice::<Instruction>(line.text) else { continue };
        if instruction.id == 0 {
            instruction.id = instruction.written.as_nanos();
        }
        match places.get(&instruction.id) {
            Some(&place) => found[place] = instruction,
            None if found.len() < MAX_INSTRUCTIONS => {
                places.insert(instruction.id, found.len());
                found.push(instruction);
            }
            None => {}
        }
    }
    found.retain(|instruction| !instruction.deleted);
    Ok(found)
}

/// The snapshot nearest to a line: the one whose anchor is closest to the line's last write, the
/// newest of several.
pub fn nearest_snapshot(moments: &[Moment], last_write: Offset) -> Option<&Moment> {
    let snapshots = moments.iter().enumerate().filter(|(_, m)| m.snapshot_id().is_some());
    let (_, nearest) = snapshots.min_by_key(|(i, m)| {
        let newest_first = std::cmp::Reverse((m.wall, m.time, *i));
        (m.anchor.abs_diff(last_write.0), newest_first)
    })?;
    Some(nearest)
}

#[cfg(test)]
mod tests {
    use tapdeck_core::Time;

    use super::*;
    use crate::replay::MomentKind;

    fn snapshot(id: u64, anchor: u64, nanos: u64) -> Moment {
        Moment {
            kind: MomentKind::Snapshot(id),
            time: Time::ZERO,
            wall: Some(WallTime::from_nanos(nanos)),
            anchor,
            label: String::new(),
        }
    }

    #[test]
    fn the_nearest_snapshot_and_the_newest_of_two() {
        let marker = Moment { kind: MomentKind::Marker, ..snapshot(0, 50, 0) };
        let all = [snapshot(1, 10, 1), snapshot(2, 90, 5), marker, snapshot(3, 90, 4), snapshot(4, 30, 9)];
        let nearest = |byte| nearest_snapshot(&all, Offset(byte)).and_then(Moment::snapshot_id);
        assert_eq!(nearest(0), Some(1));
        assert_eq!(nearest(50), Some(4), "markers do not count");
        assert_eq!(nearest(20), Some(4), "as far from 1 as from 4, which is newer");
        assert_eq!(nearest(u64::MAX), Some(2), "2 and 3 at one place, 2 newer by its clock");
        assert_eq!(nearest_snapshot(&[], Offset(5)), None);
    }

    #[test]
    fn lines_come_back_and_others_are_passed_over() {
        let one = Instruction {
            id: 7,
            deleted: false,
            written: WallTime::from_nanos(7),
            anchor_byte: 9,
            line: Some(3),
            snapshot: Branch::of(&snapshot(42, 11, 0)),
            text: "use\ntwo\u{1b} lines".into(),
        };
        let two = Instruction { id: 8, snapshot: None, ..one.clone() };
        // As earlier versions wrote it.
        let mut file = br#"{"ts_ns":7,"anchor_byte":9,"line":3,"text":"x"}"#.to_vec();
        file.extend_from_slice(b"\n{}\nnot json\n\n");
        file.extend_from_slice(&two.to_line());
        let found = instructions_of(&file[..]).expect("in memory");
        assert_eq!((found.len(), found[0].id, &found[1]), (2, 7, &two));
        // Later lines change and delete it.
        file.extend_from_slice(&one.to_line());
        assert_eq!(instructions_of(&file[..]).expect("in memory"), [one.clone(), two.clone()]);
        file.extend_from_slice(&Instruction { deleted: true, ..two }.to_line());
        assert_eq!(instructions_of(&file[..]).expect("in memory"), [one]);
    }
}
