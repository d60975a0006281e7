//! The cassette: a folder (or one `.tar.zst` archive) of evidence about one run of a terminal
//! program, made to be checked without the program. [`Cassette::open`] reads one and refuses
//! whatever is not whole; [`Recording`] makes the content of one; [`verify`] says of each check
//! whether it holds; [`Model`] derives frames from the bytes, always through the emulator that the
//! manifest names; [`Schedule`] replays.
//!
//! Nothing here writes to disk. The content is a set of named files ([`Files`]), which `host`
//! commits.

mod check;
mod events;
mod events_io;
mod files;
mod frame;
mod freshness;
mod keys;
mod manifest;
mod outcome;
mod read;
mod record;
mod refusal;
mod schedule;
mod tar;
mod traces;
mod unknown;
mod verify;

#[cfg(test)]
pub(crate) mod tests;

pub use check::{Digester, digest_hex, is_uuid};
pub use events::{CassetteEvent, EventKind, Input, Paste};
pub use events_io::{CassetteReader, Taken, from_header, header_losses, service_payload, signal_name};
pub use files::{Files, is_cassette};
pub use frame::{Cursor, Frame, FrameModes, FrameSize, Model, StyledRun};
pub use freshness::{Freshness, check_freshness, parse_time, parse_window};
pub use manifest::{
    Binary, Command, ContentDigest, Emulator, Harness, Manifest, Provenance, Resize, Terminal, Timing,
    VERSION,
};
pub use outcome::{Discovery, Exit, Final, Quota, QuotaWindow, RuleHits, ScrubReport};
pub use read::Cassette;
pub use record::{Closing, Recording};
pub use refusal::Refusal;
pub use schedule::{ReplayClock, ReplayMode, Schedule};
pub use traces::{Traces, is_traces, open_for_viewing};
pub use unknown::UnknownFields;
pub use verify::{Check, Verdict, check_seal, derive_frames, reframed, verified, verify};

/// Names of the files of a cassette.
pub mod names {
    /// What was run, how and on what.
    pub const MANIFEST: &str = "manifest.json";
    /// Input, resizes and signals.
    pub(crate) const INPUT: &str = "input.jsonl";
    /// The output, exactly.
    pub const RAW: &str = "output.raw";
    /// When each piece of it came.
    pub(crate) const OUTPUT: &str = "output.jsonl";
    /// Pictures of the screen, derived.
    pub(crate) const FRAMES: &str = "frames.jsonl";
    /// Events that are not bytes.
    pub(crate) const SERVICE: &str = "service-events.jsonl";
    /// How it ended.
    pub(crate) const FINAL: &str = "final.json";
    /// What a quota or status probe found.
    pub(crate) const QUOTA: &str = "quota.json";
    /// What a model or reasoning probe found.
    pub(crate) const DISCOVERY: &str = "discovery.json";
    /// What was redacted.
    pub(crate) const SCRUB: &str = "scrub-report.json";

    /// The manifest of a run that is no evidence.
    pub const FAILED_MANIFEST: &str = "manifest.failed.json";
    /// Why a run is no evidence.
    pub const FAILURE: &str = "failure.json";

    /// Those that every cassette has, in the order in which they are read.
    pub const REQUIRED: [&str; 8] = [MANIFEST, INPUT, RAW, OUTPUT, FRAMES, SERVICE, FINAL, SCRUB];
    /// Those that it may have.
    pub const OPTIONAL: [&str; 2] = [QUOTA, DISCOVERY];
}
