//! A terminal without a window: feed it what a program writes, and read the screen.
//!
//! [`Term`] keeps what a terminal would show: the screen, the scrollback, the cursor, the modes and
//! the title. Besides the sequences of VT terminals and xterm it understands grapheme
//! clusters, hyperlinks and the kitty keyboard protocol. There is no clock, no I/O and no thread in
//! it, so the same bytes always give the same screen, however they are cut into pieces.
//!
//! ```
//! use tapdeck_term::{Attrs, Settings, Size, Term};
//!
//! let mut term = Term::new(Size::new(20, 3), Settings::default());
//! term.feed(b"plain \x1b[1mbold\x1b[m\r\n> ");
//! assert_eq!(term.text(), "plain bold\n>");
//! assert_eq!((term.cursor().row, term.cursor().col), (1, 2));
//! let cell = term.cell(0, 6).expect("a cell on the screen");
//! assert!(cell.text == "b" && cell.style.attrs.contains(Attrs::BOLD));
//! // The answer to a query of the program comes back as a value: write it to the program.
//! assert_eq!(term.feed(b"\x1b[6n").replies, b"\x1b[2;3R");
//! ```
//!
//! # What to use
//!
//! - [`Term::feed`] takes output and returns [`Changes`]: the rows that changed, replies for the
//!   program, and [`Signal`]s such as the bell or a new title.
//! - [`Term::screen`], [`Term::scrollback`] and [`Term::lines`] give rows; a [`Line`] has its text,
//!   its [`Run`]s of one [`Style`], and the offset of the last byte that wrote to it.
//! - [`Term::diff`] gives the rows that changed since a [`Generation`], for painters.
//! - [`Term::dump`] gives bytes that bring a fresh terminal to the same state.
//! - [`keys`] encodes keystrokes, pastes and mouse events as the modes in force want them.
//! - [`Scanner`] cuts a stream into tokens; [`ReplayFilter`] passes only what draws or can be
//!   undone; [`ModeWatch`] follows only the modes to undo when a program dies.
//! - [`printable`] and [`is_safe_link`] judge text and links of strangers.

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
mod theme;
mod trace;
mod unicode;
mod untrusted;
mod watch;

pub use changes::{Changes, Graphics, Mark, Progress, RowSet, Signal};
pub use dump::Keep;
pub use filter::{FilterOptions, ReplayFilter};
pub use grid::LineSize;
pub use lines::{Line, Run, StyledCell};
pub use links::Link;
pub use machine::CursorShape;
pub use modes::{Modes, MouseEncoding, MouseTracking};
pub use palette::{NotAColour, Palette, Rgb};
pub use restore::undo_everything;
pub use scan::{Kind, Scanner, Token};
pub use size::{MAX_SIDE, Settings, Size};
pub use skip::is_plain_text;
pub use style::{Attrs, Colour, Style, Underline, UnknownColour};
pub use term::{Cursor, Diff, Generation, RowDiff, Term};
pub use theme::Theme;
pub use trace::{Glyph, Tracer, Witness};
pub use unicode::{char_width, text_width};
pub use untrusted::{is_printable, is_safe_link, is_unsafe, printable, printable_json, printable_lines};
pub use watch::ModeWatch;

/// Name of this emulator, for whatever is derived with it and kept.
pub const EMULATOR_NAME: &str = "tapdeck-term";

/// Its version. Raise it with every change after which the same bytes may give another screen:
/// frames that were kept are only compared with frames of the same version.
pub const EMULATOR_VERSION: &str = "1";
