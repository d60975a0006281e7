//! Recordings of terminal sessions: read, write, convert, repair and export them.
//!
//! Everything works over slices and `std::io` traits that the caller opens. The crate creates no
//! file, reads no clock and paces nothing. It never trusts a file: every length is bounded before
//! memory is taken for it, a damaged part costs what it covers, and every message names a position.
//!
//! - [`open`] and [`writer`] read and write every format ([`Format`]) as common [`Event`]s, so any
//!   format converts into any other; [`convert()`] does that and reports what was lost.
//! - [`Replay`] runs a recording through a terminal model, to its end or step by step.
//! - [`edit`] cuts recordings, joins them, and changes their pace.
//! - [`export`] makes text, Markdown, JSON, HTML and SVG of what a recording shows.
//! - [`ahr`] is the native recording in detail: blocks, damage, repair. [`index`] makes it
//!   seekable, [`seal`] proves that it was not changed, [`encryption`] hides what is in it.
//! - [`cassette`] is the folder of evidence about a run that tests are made of, and [`scenario`]
//!   the file that says what must hold of it.
//!
//! ```
//! use tapdeck_tape::ahr::Quality;
//! use tapdeck_tape::{Beside, Container, Event, Format, Header, Item, Kind, Parts, Size, Time};
//! use tapdeck_tape::{open, writer};
//!
//! let mut ahr = writer(Format::Ahr, Quality::default()).expect("a format that can be written");
//! let mut parts = Parts::default();
//! ahr.begin(&Header { size: Some(Size::new(80, 24)), ..Header::default() }, &mut parts);
//! ahr.event(&Event::new(Time::from_millis(1), Kind::Output("hello".into())), &mut parts);
//! ahr.finish(&mut parts);
//!
//! let container = Container { format: Format::Ahr, zst: false };
//! let mut reader = open(container, &parts.main[..], Beside::default())?;
//! let mut output = Vec::new();
//! while let Some(item) = reader.next_item()? {
//!     if let Item::Event(Event { kind: Kind::Output(bytes), .. }) = item {
//!         output.extend_from_slice(&bytes);
//!     }
//! }
//! assert_eq!(output, b"hello");
//! # Ok::<(), tapdeck_tape::Error>(())
//! ```

pub mod agents;
pub mod ahr;
mod ans;
mod carriage_returns;
pub mod cassette;
pub mod cast;
pub mod conversation;
mod convert;
pub mod edit;
pub mod encryption;
mod error;
pub mod event;
pub mod export;
mod format;
pub mod index;
mod instruction;
pub mod journal;
mod json;
pub mod learn;
mod lines;
mod markdown;
pub mod meta;
pub mod nanos;
pub mod nearest;
mod push_fmt;
mod raw;
mod replay;
pub mod scenario;
pub mod scrub;
pub mod seal;
mod three_a;
mod trees;
pub mod ttyrec;
mod turns;
pub mod typescript;
mod utf8;
mod window;
mod xxh64;
pub mod zst;

pub(crate) use tapdeck_core::base64;

#[cfg(test)]
mod testing;

pub use convert::{Report, convert, convert_to_parts};
pub use error::{Error, FilePosition, Result};
pub use event::{Event, EventReader, EventWriter, Header, Item, Kind, Loss, Losses, Note, Parts};
pub use format::{Beside, Container, Format, UnknownFormat, bounded, cast_version, open, writer};
pub use instruction::{Branch, Instruction, MAX_INSTRUCTIONS, instructions_of, nearest_snapshot};
pub use json::{Extra, JsonValue};
pub use replay::{Moment, MomentKind, Replay, snapshots_of};
pub use trees::{
    RecordedConversation, RecordedTree, conversations_of, files_not_kept, place_trees, tree_at_turn, trees_of,
};
pub use turns::{RecordedPart, RecordedTurn, Speaker, TurnNumbers, TurnWatch, is_turn, turns_of};

pub use tapdeck_core::{Exit, Time, WallTime};
pub use tapdeck_term::Size;
