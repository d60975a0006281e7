//! `.3a`, animated ASCII art: a text file of blocks, each opened by a line with `@`. `@3a` holds
//! the header, `@body` the frames, separated by blank lines; with colours on, each line holds a row
//! of text and then, as long again, a row of names of colours. A pinned block gives one channel the
//! same frame throughout.

mod read;
mod write;

pub(crate) use read::ThreeAReader;
pub(crate) use write::ThreeAWriter;
