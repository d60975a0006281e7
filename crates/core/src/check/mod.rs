//! Checks: facts that must hold of a session, judged on its timeline alone.
//!
//! A [`Timeline`] says what happened; frames are derived from its bytes by the terminal model as it
//! is walked through, once for all checks. "At a time" always means the state at that time: what
//! the last byte before it had left on the screen, never a frame that came later, and a stretch
//! begins with what was on the screen already. A screen in the middle of a synchronised update does
//! not count. There is no clock and no I/O: the same checks judge a cassette without waiting and a
//! program that has just run.

mod claim;
mod complete;
mod condition;
mod follow;
mod frame;
mod json;
mod look;
mod normalise;
mod schema;
mod style;
mod styled;
#[cfg(test)]
mod tests;
mod timeline;
mod trace;
mod when;

use tapdeck_term::is_unsafe;

pub use crate::ParseError;
pub use claim::{Claim, Failure, Shot, evaluate};
pub use complete::{UPDATE_LIMIT, Updates, pieces};
pub use condition::{Condition, Fact, Mismatch, Mode, Spot, TextTest, View};
pub use frame::{Frame, Row, Screen};
pub use json::{Json, JsonPath};
pub use look::{Look, Region};
pub use normalise::Normaliser;
pub use schema::{JsonType, Schema};
pub use style::{Attr, Cells, StyleFact, colour, underline};
pub use timeline::{Cause, End, Input, Moment, Pos, Timeline, What, signal_name, signal_number};
pub use trace::{BytesTest, Count, ExitTest, Happening, JsonTest, Trace};
pub use when::{Anchor, Point, Window, length, seconds};

/// Builds a pattern over several rows, in which `^` and `$` are the ends of each.
///
/// # Errors
/// When the text is no pattern, or one that would take too much memory.
pub fn pattern(text: &str) -> Result<regex::Regex, ParseError> {
    let built = regex::RegexBuilder::new(text).multi_line(true).size_limit(4 << 20).build();
    built.map_err(|e| {
        let why = e.to_string();
        let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        ParseError::new(format!("/{text}/ is no pattern: {last}"))
    })
}

/// Bytes as people write them: text in quotes, everything else as escapes.
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for piece in bytes.utf8_chunks() {
        for c in piece.valid().chars() {
            match c {
                '\x1b' => out.push_str("\\e"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '"' | '\\' => out.extend(['\\', c]),
                c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_unsafe(c) => out.extend(c.escape_unicode()),
                c => out.push(c),
            }
        }
        for byte in piece.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}
