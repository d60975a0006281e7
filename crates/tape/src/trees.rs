//! The kept trees of a recorded session: its events of the kind `tree`. Each says where
//! the files of a snapshot are kept, so that a session can be branched from there.

use std::io::Read;

use serde::{Deserialize, Serialize};
use tapdeck_core::WallTime;

use crate::Result;
use crate::lines::Lines;
use crate::turns::RecordedTurn;

/// Trees beyond this many are not read, far more than a session has turns.
const MAX: usize = 1_000_000;

/// The files of a session as they were at a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedTree {
    /// When the snapshot was recorded.
    #[serde(with = "crate::nanos", rename = "ts_ns")]
    pub at: WallTime,
    /// Its number among the kept trees of its session, from 1.
    pub n: u64,
    /// The snapshot's id.
    pub snapshot: u64,
    /// How many bytes the program had written.
    pub anchor_byte: u64,
    /// What kept it: `git`, or `command` for a program of the user.
    pub provider: String,
    /// What the provider calls it: for git, the commit.
    pub commit: String,
    /// For git, the tree of the commit.
    #[serde(default)]
    pub tree: Option<String>,
    /// For git, the reference that keeps the commit.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// The folder that was kept, absolute.
    pub folder: String,
    /// The program's folder below it; empty where it is the same.
    #[serde(default)]
    pub below: String,
    /// How many turns were over. [`place_trees`] makes it the number of the last of them.
    #[serde(default)]
    pub turn: u64,
    /// These are the files at the end of that turn.
    #[serde(skip)]
    pub ends_turn: bool,
    /// Why it was kept: `start`, `turn`, `snapshot` or `end`.
    #[serde(default)]
    pub reason: String,
}

/// A conversation of an agent in a recorded session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct RecordedConversation {
    /// When it became known.
    #[serde(with = "crate::nanos", rename = "ts_ns")]
    pub at: WallTime,
    /// The name of the agent's rules.
    pub agent: String,
    /// What the agent calls it.
    pub id: String,
}

/// Reads the kept trees of events, in their order. Other lines are passed over.
///
/// # Errors
/// When the reader fails.
pub fn trees_of(events: impl Read) -> Result<Vec<RecordedTree>> {
    of_kind(events, "tree")
}

/// Numbers the turns of kept trees as those of their recording, by their places in it: a recorder
/// counts the turns of its own session only.
pub fn place_trees(trees: &mut [RecordedTree], turns: &[RecordedTurn]) {
    // Where the session began to which a tree belongs. The first files of the first may be recorded
    // late.
    let mut session: Option<u64> = None;
    for tree in trees {
        let is_start = tree.reason == "start";
        if is_start {
            session = Some(session.map_or(0, |_| tree.anchor_byte));
        }
        let from = session.unwrap_or(0);
        let over = || turns.iter().rev().filter(|turn| turn.end_byte <= tree.anchor_byte);
        // git takes its time: the next turns may be over, too.
        let own = over()
            .take_while(|turn| turn.end_byte > from || from == 0)
            .find(|turn| turn.recorded_number == tree.turn);
        tree.ends_turn = own.is_some() && tree.reason == "turn";
        tree.turn = own.or_else(|| over().next()).map_or(0, |turn| turn.number);
    }
}

/// The newest of the kept trees that is not later than the end of a turn; 0 is the start of the
/// recording. Files that were kept while the next turn was at work are of a later moment.
pub fn tree_at_turn(trees: &[RecordedTree], turn: u64) -> Option<&RecordedTree> {
    let is_at_end = |tree: &RecordedTree| if turn == 0 { tree.reason == "start" } else { tree.ends_turn };
    let is_before = |tree: &&RecordedTree| tree.turn < turn || tree.turn == turn && is_at_end(tree);
    trees.iter().rev().find(is_before)
}

/// Reads from events why files of the session could not be kept.
///
/// # Errors
/// When the reader fails.
pub fn files_not_kept(events: impl Read) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct NotKept {
        why: String,
    }
    Ok(of_kind::<NotKept>(events, "files_not_kept")?.into_iter().map(|line| line.why).collect())
}

/// Reads the conversations of events, in their order. Other lines are passed over.
///
/// # Errors
/// When the reader fails.
pub fn conversations_of(events: impl Read) -> Result<Vec<RecordedConversation>> {
    of_kind(events, "conversation")
}

fn of_kind<T: serde::de::DeserializeOwned>(events: impl Read, kind: &str) -> Result<Vec<T>> {
    #[derive(Deserialize)]
    struct KindOnly {
        kind: String,
    }
    let mark = format!("\"{kind}\"");
    let mut lines = Lines::new(events);
    let mut found = Vec::new();
    while let Some(line) = lines.next_line()? {
        // Most lines are about turns and states, which can be long.
        if found.len() < MAX
            && memchr::memmem::find(line.text, mark.as_bytes()).is_some()
            && serde_json::from_slice::<KindOnly>(line.text).is_ok_and(|line| line.kind == kind)
            && let Ok(line) = serde_json::from_slice(line.text)
        {
            found.push(line);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_from_other_lines() {
        let text = concat!(
            "{\"ts_ns\":1,\"kind\":\"state\",\"rule\":\"\\\"tree\\\"\"}\n",
            "{\"ts_ns\":5,\"kind\":\"tree\",\"n\":2,\"snapshot\":7,\"anchor_byte\":9,\"provider\":\"git\",",
            "\"commit\":\"c\",\"tree\":\"t\",\"ref\":\"refs/x\",\"folder\":\"/w\",\"below\":\"b\",\"turn\":3,",
            "\"reason\":\"turn\",\"later\":1}\n",
            "{\"kind\":\"tree\"}\nno JSON \"tree\"\n",
        );
        let trees = trees_of(text.as_bytes()).expect("in memory");
        let [tree] = &trees[..] else { panic!("{trees:?}") };
        assert_eq!((tree.n, tree.snapshot, tree.anchor_byte, tree.turn), (2, 7, 9, 3));
        assert_eq!((tree.commit.as_str(), tree.reference.as_deref()), ("c", Some("refs/x")));
        assert_eq!(tree.at, WallTime::from_nanos(5));
    }
}
