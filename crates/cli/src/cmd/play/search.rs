//! A search in time: the next place at which a row that matches appears.

use std::collections::HashSet;

use regex::{Regex, RegexBuilder};
use tapdeck_core::Offset;
use tapdeck_host::{Goal, PlayError, Player};
use tapdeck_term::{Generation, Term};

use crate::screen::top_row;

/// The most memory for a compiled pattern.
const PATTERN_LIMIT: usize = 1 << 20;
/// Events that are passed in one step.
const STEP: usize = 64;

/// What a step of a search came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Searching,
    Found,
    Nowhere,
}

/// A search that is under way.
pub(super) struct Search {
    regex: Regex,
    /// Where it began, to go back to.
    began: Goal,
    /// Matching rows that were on the screen already.
    known: HashSet<String>,
    top: u64,
    seen: Generation,
}

/// Compiles a pattern: a regular expression, with smart case.
pub(super) fn pattern(text: &str) -> Result<Regex, String> {
    let capital = text.chars().any(char::is_uppercase);
    RegexBuilder::new(text)
        .case_insensitive(!capital)
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|e| e.to_string().lines().last().unwrap_or_default().to_owned())
}

impl Search {
    /// A search from the player's place on.
    pub(super) fn new(regex: Regex, player: &Player) -> Self {
        let term = player.term();
        Self {
            began: Goal::Moment { anchor: player.offset(), time: player.at() },
            known: matching(&regex, term),
            top: top_row(term),
            seen: term.generation(),
            regex,
        }
    }

    /// The place where it began.
    pub(super) fn began(&self) -> Goal {
        self.began
    }

    /// Goes on for a while.
    pub(super) fn step(&mut self, player: &mut Player) -> Result<Step, PlayError> {
        for _ in 0..STEP {
            if player.advance()?.is_none() {
                return Ok(Step::Nowhere);
            }
            if let Some(written) = self.look(player.term()) {
                // It may have left the screen within the same event.
                if let Some(written) = written {
                    player.seek(Goal::Byte(Offset(written) + 1u64))?;
                }
                return Ok(Step::Found);
            }
        }
        Ok(Step::Searching)
    }

    /// Looks at what changed. Returns the place of the match's last write if it has left the
    /// screen.
    fn look(&mut self, term: &Term) -> Option<Option<u64>> {
        let top = top_row(term);
        let gone = std::mem::replace(&mut self.top, top).max(term.evicted())..top;
        let first = usize::try_from(gone.start.saturating_sub(term.evicted())).unwrap_or(usize::MAX);
        if !gone.is_empty() {
            for line in term.scrollback().skip(first) {
                if self.is_new(&line.text_ref()) {
                    return Some(line.written());
                }
            }
        }
        let diff = term.diff(std::mem::replace(&mut self.seen, term.generation()));
        let changed = diff.rows.iter().filter_map(|row| term.row(row.row));
        let found = changed.into_iter().any(|line| self.is_new(&line.text_ref()));
        if !self.known.is_empty() {
            // A row that has gone is new when it comes again.
            self.known = matching(&self.regex, term);
        }
        found.then_some(None)
    }

    fn is_new(&self, text: &str) -> bool {
        self.regex.is_match(text) && !self.known.contains(text)
    }
}

/// The rows on the screen that match.
fn matching(regex: &Regex, term: &Term) -> HashSet<String> {
    term.screen().map(|line| line.text()).filter(|text| regex.is_match(text)).collect()
}
