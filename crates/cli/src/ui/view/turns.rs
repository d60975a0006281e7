//! Searching the conversation of a program in the alternate screen. Its rows are gone in the end,
//! so behind the last match in the rows the search goes on in the turns of the recording: it moves
//! to the time at which a turn's answer was on the screen.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tapdeck_core::Offset;
use tapdeck_host::{Goal, PlayError, Source};
use tapdeck_tape::{RecordedTurn, Replay};

use super::search::Hit;
use super::{App, Mode, Mood, Origin, rows};

/// How often it is asked whether the turns are known.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The most searches that wait: more come from a key that is held down.
const MAX_OWED: usize = 16;

/// The turns that no row of the recording shows.
type Hidden = Result<Vec<RecordedTurn>, String>;

/// Where a search in the turns is.
#[derive(Debug, Default)]
pub(super) struct TurnSearch {
    turns: Option<Vec<RecordedTurn>>,
    /// The turns are being looked for.
    coming: Option<Receiver<Hidden>>,
    /// The direction of a search that waits for the turns, and the match that counts if no turn
    /// has one.
    waiting: Option<(bool, Option<Hit>)>,
    /// The turn that is shown, and the place in the output where it is.
    shown: Option<(usize, Offset)>,
    /// The place before the first turn was shown.
    base: Offset,
    /// The way to a place ends with a search there.
    arriving: Option<Arrival>,
    /// Searches that wait for its end, in the order of the keys: forth or back.
    owed: VecDeque<bool>,
}

/// The search at the end of a way.
#[derive(Debug, Clone)]
struct Arrival {
    forth: bool,
    /// What is said if the screen does not show the match; `None` back at the first place.
    turn: Option<String>,
    /// The search has begun.
    searching: bool,
}

impl TurnSearch {
    /// Whether there is something to wait for.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting.is_some() || self.arriving.is_some()
    }
}

impl App {
    /// Goes on in the turns when the rows have no further match. Returns whether it does.
    pub(super) fn search_turns(&mut self, forth: bool, otherwise: Option<Hit>) -> Result<bool, PlayError> {
        let Origin::Tape(tape) = &self.origin else { return Ok(false) };
        if matches!(self.mode, Mode::Prompt(_)) || !self.search.is_set() {
            return Ok(false);
        }
        if self.turns.turns.is_none() {
            if !tape.source().may_have_turns() {
                return Ok(false);
            }
            let source = tape.source().clone();
            self.turns.coming.get_or_insert_with(|| look_for(source));
            self.turns.waiting = Some((forth, otherwise));
            return Ok(true);
        }
        self.go_to_turn(forth)
    }

    /// Takes the turns when they are known, and searches where a way has ended.
    pub(super) fn tick_turns(&mut self) -> Result<(), PlayError> {
        if let Some(coming) = &self.turns.coming {
            let turns = match coming.try_recv() {
                Err(TryRecvError::Empty) => return Ok(()),
                Ok(turns) => turns,
                Err(TryRecvError::Disconnected) => Err("the turns could not be read".to_owned()),
            };
            self.turns.coming = None;
            self.turns.turns = Some(turns.unwrap_or_else(|why| {
                self.notify(why, Mood::Wrong);
                Vec::new()
            }));
        }
        if let Some((forth, otherwise)) = self.turns.waiting.take()
            && !self.go_to_turn(forth)?
        {
            self.turns.owed.clear();
            match otherwise {
                Some(hit) => self.found(hit, true),
                None => self.found_nowhere(),
            }
        }
        let on_its_way = matches!(&self.origin, Origin::Tape(tape) if tape.is_on_its_way());
        if !on_its_way
            && let Some(arrival) = self.turns.arriving.as_mut().filter(|arrival| !arrival.searching)
        {
            arrival.searching = true;
            let (forth, term) = (arrival.forth, self.origin.term());
            let range = rows::range(term);
            let from = match (&arrival.turn, forth) {
                (_, false) => range.end - 1,
                (Some(_), true) => rows::screen(term),
                (None, true) => range.start,
            };
            self.search.from(term, from, forth, 1);
        }
        Ok(())
    }

    /// Takes the end of a search that began at the end of a way. Returns whether it was one.
    pub(super) fn arrive(&mut self, hit: Option<(Hit, bool)>) -> bool {
        let Some(arrival) = self.turns.arriving.take_if(|arrival| arrival.searching) else { return false };
        let first = rows::screen(self.origin.term());
        match (hit, arrival.turn) {
            (Some((hit, _)), None) => self.found(hit, true),
            (Some((hit, false)), Some(said)) if hit.row >= first => {
                self.found(hit, false);
                self.notify(said, Mood::Calm);
            }
            (_, Some(said)) => self.notify(said, Mood::Calm),
            (None, None) => self.found_nowhere(),
        }
        if let Some(forth) = self.turns.owed.pop_front() {
            self.search_again(forth, 1);
        }
        true
    }

    /// Keeps a search until the one in the turns is done. Returns whether there is one.
    pub(super) fn owe_search(&mut self, forth: bool) -> bool {
        let is_busy = self.turns.is_busy();
        if is_busy && self.turns.owed.len() < MAX_OWED {
            self.turns.owed.push_back(forth);
        }
        is_busy
    }

    /// Gives up a search in the turns.
    pub(super) fn leave_turns(&mut self) {
        (self.turns.waiting, self.turns.arriving) = (None, None);
        self.turns.owed.clear();
    }

    /// Shows the next turn with a match, or goes back to the first place behind the last one.
    fn go_to_turn(&mut self, forth: bool) -> Result<bool, PlayError> {
        let now = self.now;
        let Origin::Tape(tape) = &mut self.origin else { return Ok(false) };
        let turns = self.turns.turns.as_deref().unwrap_or_default();
        let shown = self.turns.shown.filter(|(_, place)| *place == tape.offset()).map(|(i, _)| i);
        let found = |i: &usize| {
            let turn = &turns[*i];
            turn.input.lines().chain(turn.text.lines()).find(|line| self.search.matches(line))
        };
        let next = if forth {
            (shown.map_or(0, |i| i + 1)..turns.len()).find(|i| found(i).is_some())
        } else {
            (0..shown.unwrap_or(turns.len())).rev().find(|i| found(i).is_some())
        };
        if shown.is_none() {
            self.turns.base = tape.offset();
        }
        let turn = next.and_then(|i| {
            let said = format!("turn {}: {}", turns[i].number, found(&i)?.trim());
            Some((i, Offset(turns[i].end_byte), said))
        });
        let (place, said) = match turn {
            Some((i, place, said)) => {
                self.turns.shown = Some((i, place));
                (place, Some(said))
            }
            None if shown.is_some() => {
                self.turns.shown = None;
                (self.turns.base, None)
            }
            None => return Ok(false),
        };
        tape.go(Goal::Byte(place), now)?;
        self.turns.arriving = Some(Arrival { forth, turn: said, searching: false });
        // The screen of that time is what is looked for.
        self.scroll.follow = true;
        self.dirty = true;
        Ok(true)
    }
}

/// Looks for the hidden turns on a thread of its own: the whole recording has to be read.
fn look_for(source: Source) -> Receiver<Hidden> {
    let (tell, coming) = channel();
    let look = move || {
        let hidden = || -> Hidden {
            let turns = source.turns().map_err(|e| e.to_string())?;
            if turns.is_empty() {
                return Ok(turns);
            }
            let mut reader = source.open().map_err(|e| e.to_string())?;
            let replay = Replay::to_end_with_turns(&mut *reader, 0, turns).map_err(|e| e.to_string())?;
            Ok(replay.hidden_turns().into_iter().cloned().collect())
        };
        // The viewer may be gone.
        let _ = tell.send(hidden());
    };
    // Without a thread nothing is sent, which is noticed.
    let _ = std::thread::Builder::new().name("turns".into()).spawn(look);
    coming
}
