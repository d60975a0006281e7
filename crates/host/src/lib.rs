//! The operating system side of a session: where programs run, the loop that drives them, the user's terminal,
//! the clock and the recorder.

mod ahead;
pub mod backend;
pub mod cassette;
mod clock;
#[cfg(feature = "hotkeys")]
pub mod desktop;
mod driver;
mod glass;
mod inbox;
mod launch;
mod looks;
pub mod modes;
mod outer;
mod player;
pub mod probe;
pub mod processes;
mod recorder;
pub mod registry;
mod shared;
pub mod signals;
mod source;
mod spool;
mod sys;

pub use ahead::Blocks;
pub use clock::Clock;
pub use driver::{Config, Driver, Ended, Outcome};
pub use glass::{Glass, Look, Picture};
pub use inbox::{Anchor, Handle, SnapshotError, Unanswered};
pub use launch::{Finished, Launch, LaunchError, Recording, Session, Start};
pub use looks::{Sessions, by_session};
pub use outer::{
    Far, FarInput, HeldSignals, Keyboard, Outer, Port, PortClosed, Pressed, Signals, Sink, Whose,
    restore_terminal_on_panic, terminal_size,
};
pub use player::{Goal, PlayError, Played, Player};
pub use recorder::{
    CreateError, IfExists, KeepInput, LiveIndex, Mended, RecordOptions, Recorder, RecordingFile, Report,
    SEALED_SIDECARS, append_lines, calendar, can_record, default_path, digest_of, file_digest,
    forget_sidecars, home_folder, sidecar, state_folder,
};
pub use shared::{Bell, SharedLog, Woken};
pub use source::{Source, SourceError, open_stream, timing_names};
pub use spool::is_stream;
pub use sys::{InheritedSignals, die_by, raise_file_limit};
