//! The meaning of MARK records: a code and a value of 32 bits each. The list is this project's own;
//! a code that is not in it is kept as it is, so that a file written by a later version passes
//! through unharmed.

use crate::event::Kind;

/// Codes below this belong to the original writer, which gave them no meaning that we could know.
const BASE: u32 = 256;

/// What a MARK record says.
///
/// | code | meaning | value |
/// | --- | --- | --- |
/// | 257 | session ended | exit code |
/// | 258 | session ended by a signal | signal number |
/// | 259 | output was lost before it could be recorded | bytes |
/// | 260 | a turn started | number of the turn |
/// | 261 | a turn ended | number of the turn |
/// | 262 | the talking stick changed hands | fencing number, low 32 bits |
/// | 263 | recording paused | 0 |
/// | 264 | recording resumed | bytes of DATA that follow and draw the screen again |
/// | 265 | the DATA that follow come from another stream | 1 stdout, 2 stderr |
/// | 266 | the program was suspended | 0 |
/// | 267 | the program was resumed | 0 |
/// | 268 | input was delivered but not recorded | bytes |
/// | 269 | recorded output could not be written to disk | bytes |
/// | 270 | a marker; its label is in `NAME.events.jsonl` | number of the label, from 1 |
/// | 271 | output was lost to damage of the file, which a repair cut out | bytes |
///
/// A loss of more than 32 bits' worth is written as several marks; losses of one kind add up.
/// Offsets of DATA count what the program wrote, so they jump over what was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// The program ended with this exit code.
    Exit(u32),
    /// The program was ended by this signal.
    Signal(u32),
    /// So many bytes of output passed before the recorder could take them.
    OutputLag(u32),
    /// A turn of a conversation started.
    TurnStart(u32),
    /// A turn of a conversation ended.
    TurnEnd(u32),
    /// The right to write went to another party; the value is the low half of its fencing number.
    Stick(u32),
    /// Recording was paused on purpose.
    Paused,
    /// Recording went on. As many bytes of the output that follows were not written by the program:
    /// they bring the screen from what it was at the pause to what it is now.
    Resumed(u32),
    /// The DATA that follow come from this stream: 1 is stdout, 2 is stderr.
    Stream(u32),
    /// The program was stopped (job control).
    ChildSuspended,
    /// The program was continued.
    ChildResumed,
    /// So many bytes of input were delivered without being recorded.
    InputLag(u32),
    /// So many bytes of output were lost because the disk refused them.
    DiskLoss(u32),
    /// A moment that was marked; its label has this number in the sidecar of events.
    Label(u32),
    /// So many bytes of output were in a damaged part of the file that a repair cut out.
    Repaired(u32),
    /// A code that this version does not know.
    Other {
        /// The code.
        code: u32,
        /// Its value.
        val: u32,
    },
}

impl From<Mark> for Kind {
    fn from(mark: Mark) -> Self {
        let (code, val) = mark.to_raw();
        Self::Mark { code, val }
    }
}

impl Mark {
    /// The pair as it stands in the record.
    pub(crate) fn to_raw(self) -> (u32, u32) {
        match self {
            Self::Exit(v) => (BASE + 1, v),
            Self::Signal(v) => (BASE + 2, v),
            Self::OutputLag(v) => (BASE + 3, v),
            Self::TurnStart(v) => (BASE + 4, v),
            Self::TurnEnd(v) => (BASE + 5, v),
            Self::Stick(v) => (BASE + 6, v),
            Self::Paused => (BASE + 7, 0),
            Self::Resumed(v) => (BASE + 8, v),
            Self::Stream(v) => (BASE + 9, v),
            Self::ChildSuspended => (BASE + 10, 0),
            Self::ChildResumed => (BASE + 11, 0),
            Self::InputLag(v) => (BASE + 12, v),
            Self::DiskLoss(v) => (BASE + 13, v),
            Self::Label(v) => (BASE + 14, v),
            Self::Repaired(v) => (BASE + 15, v),
            Self::Other { code, val } => (code, val),
        }
    }

    /// The meaning of a pair. A value where none belongs makes the mark unknown rather than lost.
    pub fn from_raw(code: u32, val: u32) -> Self {
        match (code.wrapping_sub(BASE), val) {
            (1, v) => Self::Exit(v),
            (2, v) => Self::Signal(v),
            (3, v) => Self::OutputLag(v),
            (4, v) => Self::TurnStart(v),
            (5, v) => Self::TurnEnd(v),
            (6, v) => Self::Stick(v),
            (7, 0) => Self::Paused,
            (8, v) => Self::Resumed(v),
            (9, v) => Self::Stream(v),
            (10, 0) => Self::ChildSuspended,
            (11, 0) => Self::ChildResumed,
            (12, v) => Self::InputLag(v),
            (13, v) => Self::DiskLoss(v),
            (14, v) => Self::Label(v),
            (15, v) => Self::Repaired(v),
            _ => Self::Other { code, val },
        }
    }

    /// How many bytes of output it says are lost, for whatever reason.
    pub fn lost_output(self) -> u64 {
        match self {
            Self::OutputLag(n) | Self::DiskLoss(n) | Self::Repaired(n) => u64::from(n),
            _ => 0,
        }
    }

    /// Splits a loss into values that fit a mark: `Mark::pieces(n).map(Mark::OutputLag)`. At most
    /// 256 come, a tebibyte: beyond that, an offset was damaged, and a billion marks would be of no
    /// use of it.
    pub fn pieces(mut bytes: u64) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let piece = u32::try_from(bytes).unwrap_or(u32::MAX);
            bytes -= u64::from(piece);
            (piece > 0).then_some(piece)
        })
        .take(256)
    }
}
