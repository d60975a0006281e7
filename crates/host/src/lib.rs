//! The operating system side of a session: where programs run, the loop that drives them, the
//! user's terminal, the clock and the recorder.
//!
//! [`Launch`] runs a session in the foreground of this process, as the command does. [`Driver`] is
//! the loop itself, around any [`backend`]: here a program without a user, until its screen shows
//! what is waited for.
//!
//! ```
//! use std::time::Duration;
//! use tapdeck_core::{Event, Exit, LogLimits, ReaderKind, Role, WinSize};
//! use tapdeck_host::backend::{CommandSpec, LocalPty, TerminalSetup};
//! use tapdeck_host::{Clock, Config, Driver, InheritedSignals, SharedLog};
//!
//! let size = WinSize::cells(40, 5);
//! let script = "printf 'name? '; read name; echo \"hello $name\"";
//! let command = CommandSpec::new(["sh", "-c", script]);
//! let setup = TerminalSetup::default().size(size);
//! let program = LocalPty::spawn(&command, InheritedSignals::of_login(), &setup)?;
//! let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
//! log.append(Event::Resize(size), clock.now());
//! let driver = Driver::new(program, clock, Config::default().size(size), log.clone())?;
//! let (handle, glass) = (driver.handle(), driver.glass());
//! let session = std::thread::spawn(move || driver.run());
//!
//! let shows = |text: &str| {
//!     glass.look(&handle).term().screen().any(|row| row.text().contains(text))
//! };
//! let reader = log.reader_from_start(ReaderKind::Lossy);
//! while !shows("name?") {
//!     log.wait(reader, 1, Some(Duration::from_secs(1)));
//!     log.read(reader, usize::MAX, &mut Vec::new());
//! }
//! let me = handle.join("me", Role::Bot)?;
//! handle.claim(me)?.expect("the stick is free");
//! handle.input(me, None, "Ada\r".into())?.expect("there is room");
//! assert_eq!(session.join().expect("no panic")?.exit, Exit::Code(0));
//! assert!(shows("hello Ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
pub mod backend;
pub mod cassette;
mod clock;
#[cfg(feature = "hotkeys")]
pub mod desktop;
pub mod disk;
mod driver;
mod glass;
mod inbox;
mod journals;
mod launch;
pub mod leftovers;
mod opaque;
mod out_file;
mod player;
pub mod probe;
mod process_table;
pub mod processes;
mod recorder;
pub mod registry;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod service_events;
mod shared;
pub mod signals;
mod snapshot_watch;
mod source;
mod spool;
mod sys;
mod tap;
pub mod tty_settings;
mod user_keys;
mod user_side;

pub use ahead::Blocks;
pub use clock::Clock;
pub use driver::{Config, Driver, Ended, Outcome};
pub use glass::{Glass, Look, Picture};
pub use inbox::{Anchor, Handle, NewSnapshot, NotRecorded, SnapshotError, Unanswered};
pub use journals::JournalWatch;
pub use launch::{Finished, Launch, LaunchError, Recording, Session, Start};
pub use out_file::OutFile;
pub use player::{Goal, PlayError, Player};
pub use process_table::{Sessions, by_session};
pub use recorder::{
    Addition, Adopted, AppendError, CreateError, FailureAction, IfExists, KeepInput, LiveIndex, Mended,
    NAME_PLACEHOLDERS, OnFailure, RecordOptions, Recorder, RecordingFile, Report, RunningDigest,
    SEALED_SIDECARS, SyncLevel, adopt_sidecars, append_lines, append_part, calendar, can_record, describe,
    digest_of, file_digest, find_sidecar, forget_sidecars, home_folder, is_locked, recording_name,
    recordings_folder, sidecar, state_folder, write_sidecars,
};
pub use shared::{Bell, RecordingStatus, SharedLog, Woken};
pub use snapshot_watch::SnapshotWatch;
pub use source::{ReadSeek, Source, SourceError, is_encrypted, is_native, open_stream, timing_names};
pub use spool::{is_stream, scratch};
pub use sys::{InheritedSignals, die_by, raise_file_limit, unblock_signals};
pub use tap::{Tap, TapPanicked, TapReader, TapThread, Wake};
pub use user_keys::{KeyAction, UserKeys};
pub use user_side::{
    HeldSignals, Keyboard, Pressed, QueuesClosed, Signals, Sink, SocketInput, TerminalPrompter, UserProfile,
    UserQueues, UserSide, UserSocket, restore_sane_settings, restore_terminal_on_panic, terminal_size,
};
