//! What feeding bytes brings back: rows that changed, replies for the program, and signals for the
//! host.

use std::ops::RangeInclusive;

/// A set of screen rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    /// The first 256 rows; screens are rarely larger.
    near: [u64; 4],
    far: Vec<u64>,
}

impl RowSet {
    #[inline]
    pub(crate) fn insert(&mut self, y: usize) {
        match self.near.get_mut(y >> 6) {
            Some(word) => *word |= 1 << (y & 63),
            None => self.insert_far(y),
        }
    }

    #[cold]
    fn insert_far(&mut self, y: usize) {
        let word = (y >> 6) - 4;
        if self.far.len() <= word {
            self.far.resize(word + 1, 0);
        }
        self.far[word] |= 1 << (y & 63);
    }

    #[inline]
    pub(crate) fn insert_range(&mut self, rows: RangeInclusive<usize>) {
        let (first, last) = (*rows.start(), *rows.end());
        if first > last {
            return;
        }
        if last < 64 {
            self.near[0] |= (u64::MAX >> (63 - (last - first))) << first;
        } else {
            for y in rows {
                self.insert(y);
            }
        }
    }

    /// Whether the row is in the set.
    pub fn contains(&self, y: usize) -> bool {
        let word = self.near.iter().chain(&self.far).nth(y >> 6);
        word.is_some_and(|w| w >> (y & 63) & 1 == 1)
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.near.iter().chain(&self.far).all(|&w| w == 0)
    }

    /// The rows, from the top.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.near.iter().chain(&self.far).enumerate().flat_map(|(i, &w)| {
            let mut w = w;
            std::iter::from_fn(move || {
                (w != 0).then(|| {
                    let bit = w.trailing_zeros() as usize;
                    w &= w - 1;
                    i * 64 + bit
                })
            })
        })
    }
}

/// The result of [`crate::Term::feed`].
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Screen rows that may look different now.
    pub rows: RowSet,
    /// Bytes that the terminal answers the program with; empty when replies are off.
    pub replies: Vec<u8>,
    /// What happened beside the screen, in order.
    pub signals: Vec<Signal>,
}

/// A mark of shell integration (OSC 133).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// `A`: a prompt begins.
    Prompt,
    /// `B`: the prompt ends, the command line begins.
    Input,
    /// `C`: the command's output begins.
    Output,
    /// `D`: the command is done, with its exit status when told.
    Done(Option<i32>),
}

/// State of a progress report (OSC 9;4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// No progress is shown.
    None,
    /// Percent done.
    Running(u8),
    /// An error, at a percentage.
    Error(u8),
    /// Busy for an unknown time.
    Indeterminate,
    /// Held up, at a percentage.
    Paused(u8),
}

/// Kinds of pictures, which are recognised and skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Graphics {
    /// DEC sixel.
    Sixel,
    /// DEC ReGIS.
    Regis,
    /// The kitty protocol.
    Kitty,
    /// iTerm2's inline files.
    Iterm,
}

/// Something that the host may want to know. Nothing of it was acted on. Texts come from the
/// program: control characters are taken out, the rest is untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// BEL.
    Bell,
    /// The title is now this.
    Title(String),
    /// The icon name is now this.
    IconName(String),
    /// The program wants to write to a clipboard (OSC 52): selection letters, and the data still in
    /// base64.
    ClipboardWrite {
        /// `c`, `p`, `s` … as sent.
        selection: String,
        /// Base64.
        data: String,
    },
    /// The program asks for a clipboard's contents. Never answered by the model.
    ClipboardRead {
        /// `c`, `p`, `s` … as sent.
        selection: String,
    },
    /// A notification (OSC 9, 99 or 777).
    Notification {
        /// Empty when there is none.
        title: String,
        /// The text.
        body: String,
    },
    /// OSC 9;4.
    Progress(Progress),
    /// OSC 133, with where it is: the absolute row (evicted rows counted) and the column.
    Mark {
        /// What begins or ends here.
        mark: Mark,
        /// Rows above it since the beginning, evicted ones included.
        row: u64,
        /// Column.
        col: u16,
        /// Offset of the sequence's last byte.
        offset: u64,
    },
    /// Bracketed paste (mode 2004) was switched: line editors do so when they begin and end to read
    /// a line. With where it was.
    BracketedPaste {
        /// On or off.
        on: bool,
        /// Rows above it since the beginning, evicted ones included.
        row: u64,
        /// Column.
        col: u16,
        /// Offset of the sequence's last byte.
        offset: u64,
    },
    /// The working directory (OSC 7, 9;9 or 1337 CurrentDir), as sent.
    Directory(String),
    /// iTerm2's SetMark (OSC 1337): the absolute row.
    UserMark {
        /// Rows above it since the beginning, evicted ones included.
        row: u64,
    },
    /// iTerm2's SetUserVar: name and base64 value.
    UserVar {
        /// Its name.
        name: String,
        /// Base64.
        value: String,
    },
    /// A picture was sent.
    Graphics(Graphics),
    /// A synchronised update began (`true`) or ended.
    Synchronised(bool),
    /// The program asks for another size in cells; the host decides.
    ResizeRequest {
        /// Columns; 0 leaves them.
        cols: u16,
        /// Rows; 0 leaves them.
        rows: u16,
    },
    /// The alternate screen was entered (`true`) or left.
    Alternate(bool),
    /// The terminal was reset (RIS).
    Reset,
    /// The mouse pointer should have this shape (OSC 22).
    Pointer(String),
}
