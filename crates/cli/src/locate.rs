//! Where a position lies in a recording that is played.

use tapdeck_core::Offset;
use tapdeck_host::{Source, SourceError};
use tapdeck_tape::edit::locate;
use tapdeck_tape::export::final_rows;
use tapdeck_term::Term;

use crate::parse::Position;

/// How much output lies before a position. The whole recording may have to be read for it.
pub(crate) fn offset(source: &Source, position: &Position) -> Result<Offset, String> {
    if let Position::Byte(byte) = position {
        return Ok(Offset(*byte));
    }
    let turns = source.turns().map_err(|e| e.to_string())?;
    let located = locate(|| source.open().map_err(Unreadable::Open), &turns, &[position]);
    let mut spots = match located {
        Ok(located) => located.spots,
        Err(Unreadable::Open(e)) => return Err(e.to_string()),
        Err(Unreadable::Read(e)) => return Err(source.read_error(e).to_string()),
    };
    match spots.pop() {
        Some(Ok(spot)) => Ok(Offset(spot.offset)),
        Some(Err(why)) => Err(format!("{}: {position} is not in it: {why}", source.path().display())),
        None => Ok(Offset(0)),
    }
}

/// How much output lies before the end of a turn; 0 is the start of the recording.
pub(crate) fn turn_end(source: &Source, number: u64) -> Result<u64, String> {
    if number == 0 {
        return Ok(0);
    }
    let turns = source.turns().map_err(|e| e.to_string())?;
    let found = turns.iter().find(|turn| turn.number == number).map(|turn| turn.end_byte);
    found.ok_or_else(|| {
        let path = source.path().display();
        let count = crate::human::count(turns.len() as u64, "turn");
        format!("{path} has no turn {number}: it has {count}; see tapdeck turns {path}")
    })
}

/// The last byte that wrote to a line, as branch-points numbers it. A line that was never written
/// to was there from the start.
pub(crate) fn written(term: &Term, line: u64) -> Option<u64> {
    let row = usize::try_from(line.checked_sub(term.evicted())?).ok()?;
    Some(final_rows(term).nth(row)?.written().unwrap_or(0))
}

/// Why a recording could not be looked through.
enum Unreadable {
    Open(SourceError),
    Read(tapdeck_tape::Error),
}

impl From<tapdeck_tape::Error> for Unreadable {
    fn from(e: tapdeck_tape::Error) -> Self {
        Self::Read(e)
    }
}
