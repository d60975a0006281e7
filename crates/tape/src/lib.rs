//! Recordings: events to bytes and back.
//!
//! Everything here works over slices and `std::io` traits that the caller opened: no file is
//! created, no clock is read, nothing is paced and nothing is decided. A codec returns bytes and
//! others write them. What a file says is never trusted: every length is bounded before memory is
//! taken for it, a damaged part costs what it covers, and every message names the position that it
//! speaks of.
//!
//! [`ahr`] is the native recording in all its detail. The other formats meet in [`event`]: one
//! reader and one writer interface over common events, so that any format converts into any other.
//! [`cassette`] is the folder of evidence about a run that tests are made of.
//!
//! ```
//! use tapdeck_tape::ahr::Quality;
//! use tapdeck_tape::{Beside, Container, Event, Format, Header, Item, Kind, Parts, Size, open, writer};
//!
//! let mut ahr = writer(Format::Ahr, Quality::default()).expect("a format that can be written");
//! let mut parts = Parts::default();
//! ahr.begin(&Header { size: Some(Size::new(80, 24)), ..Header::default() }, &mut parts);
//! ahr.event(&Event::new(1_000_000, Kind::Output("hello".into())), &mut parts);
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
pub mod ans;
mod carriage_returns;
pub mod cassette;
pub mod cast;
mod convert;
mod error;
pub mod event;
pub mod export;
mod format;
pub mod index;
mod instruction;
mod lines;
pub mod meta;
pub mod raw;
mod replay;
pub mod scenario;
pub mod scrub;
pub mod seal;
pub mod three_a;
pub mod ttyrec;
pub mod typescript;
mod utf8;
mod window;
mod xxh64;
pub mod zst;

pub(crate) use tapdeck_core::base64;

#[cfg(test)]
mod testing;

pub use carriage_returns::AddReturns;
pub use convert::{Report, convert, convert_to_parts};
pub use error::{Error, Place, Result};
pub use event::{Event, EventReader, EventWriter, Header, Item, Kind, Loss, Losses, Note, Parts};
pub use format::{Beside, Container, Format, UnknownFormat, cast_version, open, writer};
pub use instruction::{Branch, Instruction, instructions_of, nearest_snapshot};
pub use replay::{Moment, MomentKind, Replay, snapshots_of};

pub use tapdeck_term::Size;
