//! Terminal model: bytes to a grid of cells, and back to bytes that redraw it.
//!
//! [`Term`] is fed with what a program writes and keeps what a terminal would show: the screen, the
//! rows that scrolled off it, and the modes. Each row knows the last byte that wrote to it. What
//! the terminal would answer comes back as a value, as does everything that is meant for its owner.
//! There is no clock, no I/O and no thread in here.
//!
//! Beside the model: [`ModeWatch`] follows only the modes that must be undone when a program dies,
//! [`Scanner`] and [`ReplayFilter`] cut a stream into tokens and take out what would make a
//! terminal answer, and [`keys`] writes keystrokes as the modes in force want them.
//!
//! ```
//! use tapdeck_term::{Settings, Size, Term};
//!
//! let mut term = Term::new(Size::new(20, 3), Settings::default());
//! term.feed(b"plain \x1b[1mbold\x1b[m\r\n> ");
//! let rows: Vec<String> = term.screen().map(|row| row.text()).collect();
//! assert_eq!(rows, ["plain bold", ">", ""]);
//! assert_eq!((term.cursor().row, term.cursor().col), (1, 2));
//! // A question of the program comes back as what the terminal answers.
//! assert_eq!(term.feed(b"\x1b[6n").replies, b"\x1b[2;3R");
//! ```

mod cell;
mod changes;
mod charset;
mod clusters;
mod dump;
mod filter;
mod grid;
pub mod keys;
mod lines;
mod links;
mod machine;
mod modes;
mod pack;
mod paint;
mod palette;
mod parser;
mod restore;
mod rewrap;
mod scan;
mod scrollback;
mod size;
mod skip;
mod style;
mod term;
mod trace;
mod unicode;
mod watch;

pub use changes::{Changes, Graphics, Mark, Progress, RowSet, Signal};
pub use filter::{FilterOptions, ReplayFilter};
pub use grid::LineSize;
pub use lines::{Line, Run, StyledCell};
pub use links::Link;
pub use machine::CursorShape;
pub use modes::{Modes, MouseEncoding, MouseTracking};
pub use palette::{Palette, Rgb};
pub use scan::{Kind, Scanner, Token};
pub use size::{MAX_SIDE, Settings, Size};
pub use skip::is_plain_text;
pub use style::{Attrs, Colour, Style, Underline, UnknownColour};
pub use term::{Cursor, Diff, Generation, RowDiff, Term};
pub use trace::{Glyph, Tracer, Witness};
pub use unicode::{char_width, text_width};
pub use watch::ModeWatch;

/// Name of this emulator, for whatever is derived with it and kept.
pub const EMULATOR_NAME: &str = "tapdeck-term";

/// Its version. Raise it with every change after which the same bytes may give another screen:
/// frames that were kept are only compared with frames of the same version.
pub const EMULATOR_VERSION: &str = "1";
