//! The session as a state machine without I/O.
//!
//! A program's output is a [`Log`] of bytes with offsets and times. Any number of readers read it,
//! each with a cursor of its own. Input passes one [`Gate`], where the talking [`Stick`] admits one
//! writer at a time; what a client may ask for at all is its [`Authority`]. Nothing here reads a
//! clock, opens a file or starts a thread: time comes in as a [`Stamp`], bytes come in and go out
//! as values, so tests and replays run on virtual time. [`check`] judges whether a session passes
//! as a test; [`scrub`] masks secrets; [`withhold`] keeps them out of recorded input.
//!
//! ```
//! use tapdeck_core::{Event, Log, LogLimits, Offset, ReaderKind, Stamp, Stream, Time, WallTime};
//!
//! let mut log = Log::new(LogLimits::default());
//! let reader = log.reader_from_start(ReaderKind::Lossless);
//! let now = Stamp { mono: Time::from_millis(5), wall: WallTime::from_secs(5) };
//! log.append(Event::Output { stream: Stream::Out, bytes: "hello".into() }, now);
//! let mut entries = Vec::new();
//! assert_eq!(log.read(reader, usize::MAX, &mut entries), None, "nothing was lost");
//! assert_eq!((entries.len(), log.offset()), (1, Offset(5)));
//! ```

mod authority;
pub mod base64;
pub mod check;
mod count;
mod decode;
mod error;
mod event;
mod gate;
mod log;
pub mod scrub;
mod stick;
mod time;
pub mod turns;
pub mod withhold;

pub use authority::{Authority, Denied, Need, Right};
pub use count::{count, times};
pub use decode::{TextDecoder, UnknownEncoding};
pub use error::ParseError;
pub use event::{
    Author, Event, Exit, Instruction, KeptTree, MAX_INSTRUCTION, SnapshotPlace, Stream, WinSize,
};
pub use gate::{Delivered, Gate, Refused};
pub use log::{Entry, Lag, Log, LogLimits, Offset, ReaderId, ReaderKind, Seq};
pub use stick::{Change, Fence, Group, Party, PartyId, Role, Stick, StickError, Why};
pub use time::{Stamp, Time, WallTime};
