//! What happens in a session: the vocabulary that the log stores and every reader understands.

use std::sync::Arc;

use bytes::Bytes;
use tapdeck_term::Size;

use crate::stick::{Change, Party};
use crate::turns::{Decision, Judgement, OutputPoint, Turn};

/// A terminal's size as the kernel keeps it: a [`Size`] in cells, and the pixels. Zero means
/// unknown and is passed on as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WinSize {
    /// Columns of characters.
    pub cols: u16,
    /// Rows of characters.
    pub rows: u16,
    /// Width in pixels, or 0.
    pub x_pixels: u16,
    /// Height in pixels, or 0.
    pub y_pixels: u16,
}

impl WinSize {
    /// A size in characters, pixels unknown.
    pub const fn cells(cols: u16, rows: u16) -> Self {
        Self { cols, rows, x_pixels: 0, y_pixels: 0 }
    }

    /// Columns and rows, without the pixels.
    pub const fn size(self) -> Size {
        Size::new(self.cols, self.rows)
    }

    /// The size with the customary 80x24 in place of what is unknown, for a model of the screen.
    pub fn or_default(self) -> Self {
        Self {
            cols: if self.cols == 0 { 80 } else { self.cols },
            rows: if self.rows == 0 { 24 } else { self.rows },
            ..self
        }
    }
}

impl From<Size> for WinSize {
    fn from(size: Size) -> Self {
        Self::cells(size.cols, size.rows)
    }
}

impl From<WinSize> for Size {
    fn from(size: WinSize) -> Self {
        size.size()
    }
}

/// Which of the program's outputs a byte came from. A terminal has only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The terminal, or standard output on pipes.
    Out,
    /// Standard error on pipes.
    Err,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => write!(f, "killed by signal {number}"),
        }
    }
}

/// The author of a piece of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// A party at the gate.
    Party(Party),
    /// The terminal model, answering a query of the program.
    Reply,
    /// The end of input, as the terminal spells it.
    EndOfInput,
}

/// The files of a session as they were at a snapshot, kept by a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptTree {
    /// Its number among the kept trees of the session, from 1.
    pub number: u64,
    /// What kept it: `git`, or `command` for a program of the user.
    pub provider: String,
    /// What the provider calls it: for git, the commit.
    pub id: String,
    /// For git, the tree of the commit.
    pub tree: Option<String>,
    /// For git, the reference that keeps the commit.
    pub reference: Option<String>,
    /// The folder that was kept, absolute.
    pub folder: String,
    /// The program's folder below it; empty where it is the same.
    pub below: String,
    /// How many turns were over when it was kept.
    pub turn: u64,
    /// Why it was kept: `start`, `turn`, `snapshot` or `end`.
    pub reason: &'static str,
}

/// The longest text of an [`Instruction`], in bytes: it fits in a frame of the snapshot protocol.
pub const MAX_INSTRUCTION: usize = 60 << 10;

/// What a person or a tool asks an agent to do differently from a place of a session on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Instruction {
    /// Tells it from the others. One with the id of another replaces or deletes that.
    pub id: u64,
    /// Bytes of the recording's output before its place; `None` for all that there are.
    pub anchor: Option<u64>,
    /// Number of the line that it stands behind, if that is known.
    pub line: Option<u64>,
    /// The snapshot to branch from, if that is known.
    pub snapshot: Option<SnapshotPlace>,
    /// What to do; empty to delete it.
    pub text: String,
}

/// A snapshot in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPlace {
    /// Its number.
    pub id: u64,
    /// Bytes of the recording's output before it.
    pub anchor: u64,
    /// Its label.
    pub label: String,
}

/// One thing that happened in a live session. It differs from the events of a recording (`Kind` in
/// the crate `tapdeck-tape`) in what only a live session knows: authors, the stick, turns, states.
/// Bytes are shared, not copied: a reader holds the log's own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The program wrote these bytes.
    Output {
        /// Where it wrote them.
        stream: Stream,
        /// The bytes, exactly.
        bytes: Bytes,
    },
    /// These bytes were really delivered to the program.
    Input {
        /// Their author.
        by: Author,
        /// The bytes, exactly.
        bytes: Bytes,
        /// The terminal showed none of them: the program had told it not to, as for a password.
        hidden: bool,
    },
    /// The terminal's size was set.
    Resize(WinSize),
    /// The talking stick changed hands.
    Holder(Change),
    /// The program waits for a line ("your turn"). Only in-process programs can say so.
    Wait,
    /// A snapshot of the file system was taken: everything that the program wrote before is in
    /// it.
    Snapshot {
        /// Its number, given by the service that took it.
        id: u64,
        /// A name for people; may be empty.
        label: Arc<str>,
        /// What was kept of the files, where Tapdeck itself had it kept.
        tree: Option<Arc<KeptTree>>,
    },
    /// A client marked this moment.
    Marker {
        /// A name for people; may be empty.
        label: Arc<str>,
        /// The client's unique name.
        by: Arc<str>,
    },
    /// An instruction was written, changed or deleted.
    Instruction(Arc<Instruction>),
    /// The recordings of the session are paused: nothing that happens until they go on is in them.
    RecordingPaused {
        /// The client's unique name.
        by: Arc<str>,
    },
    /// The recordings of the session go on.
    RecordingResumed {
        /// The client's unique name.
        by: Arc<str>,
        /// The terminal's size now.
        size: WinSize,
        /// What brings a terminal from the screen at the pause to the screen now.
        redraw: Bytes,
        /// How many bytes were typed during the pause and not delivered yet.
        undelivered: usize,
    },
    /// The files of the session could not be kept, or not all of them, for this reason.
    FilesNotKept(Arc<str>),
    /// A signal was sent to the program.
    Signal(i32),
    /// A client sent the session something that is not bytes: a JSON text, kept as it is.
    Service(Arc<str>),
    /// A turn began to show something.
    TurnStarted {
        /// Its number.
        number: u32,
        /// Where.
        start: OutputPoint,
    },
    /// A turn is over. Its bytes are those of the output, and are not kept twice.
    TurnEnded(Arc<Turn>),
    /// What the program is doing has changed.
    State(Arc<Judgement>),
    /// A question that the program asked is over.
    Decided(Arc<Decision>),
    /// The agent has this conversation, by which it can be resumed.
    Conversation {
        /// The name of the agent's rules.
        agent: Arc<str>,
        /// What the agent calls the conversation.
        id: Arc<str>,
    },
    /// Program and host were suspended together.
    Suspended,
    /// Program and host go on.
    Resumed,
    /// The program ended.
    Exit(Exit),
}

impl Event {
    /// Payload bytes that the event carries.
    pub(crate) fn payload_len(&self) -> usize {
        match self {
            Event::Output { bytes, .. } | Event::Input { bytes, .. } => bytes.len(),
            Event::Snapshot { label, tree, .. } => {
                label.len() + tree.as_ref().map_or(0, |tree| tree.id.len() + tree.folder.len())
            }
            Event::Marker { label, by } => label.len() + by.len(),
            Event::Instruction(instruction) => instruction.text.len(),
            Event::RecordingPaused { by } => by.len(),
            Event::RecordingResumed { by, redraw, .. } => by.len() + redraw.len(),
            Event::Service(text) | Event::FilesNotKept(text) => text.len(),
            Event::TurnEnded(turn) => turn.text.len() + turn.input.len() + turn.raw.len(),
            Event::Decided(decision) => decision.dialog.text_len(),
            Event::State(judgement) => judgement.rows.iter().map(|(_, text)| text.len()).sum(),
            _ => 0,
        }
    }
}
