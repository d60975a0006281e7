//! Judging a screen by an agent's rules.

use core::time::Duration;
use std::cell::OnceCell;

use regex::Regex;
use tapdeck_term::{Progress, Term};

use super::rules::{ProgressState, Rules, StateRule};
use super::{Evidence, page};

impl Rules {
    /// The first row of the program's own input field; the first of all where that is not known.
    pub fn input_row(&self, term: &Term) -> u16 {
        let Some(frame) = &self.frame else { return 0 };
        let is_frame = |y: &u16| term.row(*y).is_some_and(|l| frame.is_match(&l.text()));
        (0..term.size().rows).rev().find(is_frame).unwrap_or(0)
    }

    /// Whether a row is no part of any answer.
    pub(super) fn is_chrome(&self, row: &str) -> bool {
        self.chrome.iter().any(|c| c.is_match(row))
    }

    /// How often a row says that a long text was pasted and is not shown.
    pub fn placeholders(&self, row: &str) -> usize {
        self.placeholder.as_ref().map_or(0, |p| p.find_iter(row).count())
    }
}

/// A rule that holds, and what it rests on.
pub(super) struct Held<'r> {
    pub(super) rule: &'r StateRule,
    pub(super) evidence: Evidence,
    pub(super) rows: Vec<(u16, String)>,
}

/// The screen, read once for all rules.
pub(super) struct Screen<'t> {
    term: &'t Term,
    /// Read when a rule asks for them: many never do.
    rows: OnceCell<Vec<(u16, String)>>,
    before_cursor: String,
    cursor_row: u16,
    title: String,
    progress: Progress,
    quiet: Duration,
}

impl<'t> Screen<'t> {
    pub(super) fn new(term: &'t Term, progress: Progress, quiet: Duration) -> Self {
        Self {
            term,
            rows: OnceCell::new(),
            before_cursor: page::before_cursor(term).0,
            cursor_row: term.cursor().row,
            title: term.title().to_owned(),
            progress,
            quiet,
        }
    }

    fn rows(&self) -> &[(u16, String)] {
        self.rows.get_or_init(|| {
            let mut rows: Vec<(u16, String)> = self
                .term
                .screen()
                .enumerate()
                .map(|(y, l)| (u16::try_from(y).unwrap_or(u16::MAX), l.text()))
                .collect();
            // What is blank below the last text is no bottom.
            let used = rows.iter().rposition(|(_, t)| !t.is_empty()).map_or(0, |last| last + 1);
            rows.truncate(used);
            rows
        })
    }

    /// The first rule that holds.
    pub(super) fn judge<'r>(&self, rules: &'r Rules) -> Option<Held<'r>> {
        rules.states.iter().find_map(|rule| self.holds(rule, rules))
    }

    fn holds<'r>(&self, rule: &'r StateRule, rules: &Rules) -> Option<Held<'r>> {
        let mut rows = Vec::new();
        let mut evidence = Evidence::Quiet;
        if rule.quiet.is_some_and(|q| self.quiet < q)
            || rule.changing.is_some_and(|c| self.quiet >= c)
            || (rule.pastes && !self.term.modes().bracketed_paste())
        {
            return None;
        }
        if let Some(wanted) = rule.progress {
            let is = match self.progress {
                Progress::None => ProgressState::None,
                Progress::Running(_) | Progress::Indeterminate => ProgressState::Busy,
                Progress::Paused(_) => ProgressState::Paused,
                Progress::Error(_) => ProgressState::Error,
            };
            if is != wanted {
                return None;
            }
            evidence = Evidence::Progress;
        }
        if let Some(title) = &rule.title {
            if !title.is_match(&self.title) {
                return None;
            }
            evidence = evidence.min(Evidence::Title);
        }
        if let Some(cursor) = &rule.cursor {
            if !cursor.is_match(&self.before_cursor) {
                return None;
            }
            rows.push((self.cursor_row, self.before_cursor.clone()));
            evidence = evidence.min(Evidence::Prompt);
        }
        let wants_rows = !rule.screen.is_empty() || !rule.without.is_empty() || rule.field.is_some();
        let rows_seen = if wants_rows { self.rows() } else { &[] };
        let skip = rows_seen.len().saturating_sub(usize::from(rule.last_rows));
        let near = &rows_seen[skip..];
        let find = |re: &Regex| near.iter().rev().find(|(_, t)| re.is_match(t));
        if let (Some(field), Some(frame)) = (&rule.field, &rules.frame) {
            let (_, lowest) = rows_seen.iter().rev().find(|(_, t)| frame.is_match(t))?;
            if !field.is_match(lowest) {
                return None;
            }
        }
        for re in &rule.screen {
            rows.push(find(re)?.clone());
            evidence = evidence.min(Evidence::Screen);
        }
        if rule.without.iter().any(|re| find(re).is_some()) {
            return None;
        }
        rows.sort();
        rows.dedup();
        Some(Held { rule, evidence, rows })
    }
}
