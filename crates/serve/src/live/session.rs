//! The session as its clients see it: access to it, its state as read from the log, and its own
//! description. Requests are answered by methods of [`LiveSession`], which get the client that
//! asks.

use std::sync::Arc;

use bytes::Bytes;
use tapdeck_core::{Exit, Offset, Time, WinSize};
use tapdeck_host::{Clock, RecordingStatus, SharedLog, signals};
use tapdeck_proto::{attach, bus};

use super::Admin;
use super::access::Access;
use super::turns::Turns;

/// A session that is served.
pub(super) struct LiveSession {
    pub(super) access: Access,
    pub(super) log: SharedLog,
    pub(super) clock: Clock,
    pub(super) about: bus::About,
    pub(super) has_terminal: bool,
    pub(super) pid: Option<i32>,
    pub(super) admin: Option<Box<dyn Admin>>,
    pub(super) turns: Turns,
    pub(super) size: WinSize,
    /// The client that holds the stick, as far as the log has been read.
    pub(super) holder: Option<Arc<str>>,
    pub(super) suspended: bool,
    pub(super) waiting: bool,
    pub(super) exit: Option<Exit>,
    /// When that was seen.
    pub(super) exit_at: Time,
    /// Clients were told: its recordings have ended, too, or take too long.
    pub(super) settled: bool,
    /// Clients were told that the recordings are paused.
    pub(super) pause_told: bool,
    /// How many failed recordings clients have been told of.
    pub(super) failures_told: usize,
    /// It is not known how the program ended.
    pub(super) lost: bool,
    /// A client has seen how the program ended.
    pub(super) looked: bool,
    /// When a client was first told how the program ended, whether it looked or not.
    pub(super) told_at: Option<Time>,
    pub(super) last_output: Time,
    /// What the program's prompt looks like, once known.
    pub(super) prompt: String,
    /// Output bytes that have been passed on.
    pub(super) passed: Offset,
    /// The encoded full frames of the newest screen, with and without cells.
    pub(super) full: Option<(u64, [Option<Bytes>; 2])>,
    /// Pastes so far.
    pub(super) pastes: u64,
}

impl LiveSession {
    /// Returns why there is no program to type to any more.
    pub(super) fn ended(&self) -> Option<String> {
        Some(match self.exit? {
            _ if self.lost => "the session broke down".to_owned(),
            Exit::Code(code) => format!("the program has ended with code {code}"),
            Exit::Signal(signal) => {
                let name = signals::name(signal).map_or_else(|| signal.to_string(), |n| format!("SIG{n}"));
                format!("the program was ended by {name}")
            }
        })
    }

    /// Returns whether the program runs.
    pub(super) fn state(&self) -> bus::SessionState {
        match (self.exit, self.suspended) {
            (Some(_), _) if self.lost => bus::SessionState::Lost,
            (Some(_), _) => bus::SessionState::Exited,
            (None, true) => bus::SessionState::Suspended,
            (None, false) => bus::SessionState::Running,
        }
    }

    /// Returns how the program ended, with what went wrong with its recording.
    pub(super) fn exit_told(&self, exit: Exit) -> bus::Exit {
        let recording_error = self.log.recording().and_then(|recording| recording.error);
        bus::Exit { recording_error, ..exit_of(exit) }
    }

    /// Returns the holder's name for a message.
    pub(super) fn holder_name(&self) -> Option<String> {
        self.holder.as_deref().map(str::to_owned)
    }
}

/// How a recording is doing, as data.
pub(super) fn recording_state(recording: &RecordingStatus) -> bus::RecordingState {
    match (recording.ended, &recording.error) {
        (_, Some(_)) => bus::RecordingState::Failed,
        (false, None) if recording.paused => bus::RecordingState::Paused,
        (false, None) => bus::RecordingState::Running,
        (true, None) => bus::RecordingState::Finished,
    }
}

/// How a recording is doing, as an event.
pub(super) fn recording_event(recording: &RecordingStatus) -> bus::Event {
    bus::Event::Recording {
        path: recording.path.to_string_lossy().into_owned(),
        state: recording_state(recording),
        error: recording.error.clone(),
    }
}

/// A failed recording, as a message to an attached client.
pub(super) fn recording_notice(recording: &RecordingStatus) -> Option<attach::Said> {
    let path = recording.path.to_string_lossy().into_owned();
    recording.error.clone().map(|error| attach::Said::Recording { path, error })
}

/// How a program ended, as data.
pub(crate) fn exit_of(exit: Exit) -> bus::Exit {
    match exit {
        Exit::Code(code) => bus::Exit { code, signal: None, recording_error: None },
        Exit::Signal(signal) => {
            let name = signals::name(signal).map_or_else(|| signal.to_string(), str::to_owned);
            bus::Exit { code: 128 + signal, signal: Some(name), recording_error: None }
        }
    }
}
