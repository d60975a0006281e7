//! The session as a state machine without I/O.
//!
//! A program's output is a [`Log`] of bytes with offsets and times, read by any number of readers that each
//! keep a cursor. What is typed to it passes one [`Gate`], where the talking [`Stick`] says who may. Nothing
//! here reads a clock, opens a file or starts a thread: time comes in as a [`Stamp`], bytes come in and go out
//! as values. So all of it can be tested, and replayed, on virtual time. What a session must have been like to pass as
//! a test is the business of [`check`]; what must not be seen of it is taken out by [`scrub`].
//!
//! ```
//! use tapdeck_core::{Event, Log, LogLimits, ReaderKind, Stamp, Stream};
//!
//! let mut log = Log::new(LogLimits::default());
//! let reader = log.reader_from_start(ReaderKind::Lossless);
//! let now = Stamp { mono_ns: 5, wall_ns: 5 };
//! log.append(Event::Output { stream: Stream::Out, bytes: "hello".into() }, now);
//! let mut entries = Vec::new();
//! assert_eq!(log.read(reader, usize::MAX, &mut entries), None, "nothing was lost");
//! assert_eq!((entries.len(), log.offset()), (1, 5));
//! ```

pub mod base64;
pub mod check;
mod decode;
mod event;
mod gate;
mod log;
pub mod scrub;
mod stick;
pub mod turns;

pub use decode::{TextDecoder, UnknownEncoding};
pub use event::{Author, Event, Exit, Stamp, Stream, WinSize};
pub use gate::{Delivered, Gate, Refused};
pub use log::{Entry, Lag, Log, LogLimits, ReaderId, ReaderKind, Seq};
pub use stick::{Change, Fence, Party, PartyId, Role, Stick, StickError, Why};
