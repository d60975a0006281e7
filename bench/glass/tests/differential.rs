//! The same programs through our model and through others: the screens must agree.
//!
//! What they are known to do differently is left out of the programs, each for a reason:
//! - erasing or moving while a wrap is pending: `alacritty_terminal` and `avt` keep the wrap
//!   through an erase, we follow xterm; so each step first addresses the cursor;
//! - CUU, CUD, CNL and CPL pass a region's margins in `alacritty_terminal`, with us they stop
//!   there, as on a VT420;
//! - `avt` inserts and deletes lines with the cursor outside the region, where nothing should
//!   happen;
//! - IL and DL leave the cursor's column alone there, with us (as in ECMA-48 and xterm) they return
//!   it;
//! - DCH of more than is there: `alacritty_terminal` then deletes from the left of the cursor, so
//!   it has room here;
//! - ED 1 with the cursor in the second row: `alacritty_terminal` leaves the first, so ED 1 is left
//!   out;
//! - wide characters cut in half: `alacritty_terminal` leaves the other half, we blank it as xterm
//!   does; `avt` leaves what stood in a last column that a wide character did not fit into;
//! - clusters: `alacritty_terminal` and `avt` have one cell a code point, so text here has none
//!   that join;
//! - `avt` wipes nothing on its alternate screen's first use that it did not write, and keeps ED
//!   2's rows in scrollback, so only screens are compared.

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::Flags;
use proptest::prelude::*;
use tapdeck_term::{Settings, Size, Term};

const COLS: u16 = 20;
const ROWS: u16 = 8;

/// With scrolling regions, or else with vertical movement and line editing near them.
fn step(regions: bool) -> impl Strategy<Value = String> {
    let text = prop_oneof![3 => "[a-zA-Z0-9 ]{1,25}", 1 => "[äöé→│█]{1,8}"];
    let op = prop_oneof![
        4 => text,
        1 => Just("\r\n".to_owned()),
        1 => Just("\x1bM".to_owned()),
        1 => (0u8..3).prop_map(|n| format!("\x1b[{n}K")),
        1 => prop::sample::select(vec!["\x1b[J", "\x1b[2J"]).prop_map(str::to_owned),
        2 => (1u8..9, prop::sample::select(vec!["\x1b[", "\x1b[5G\x1b["]), prop::sample::select(vec!['@', 'P', 'X']))
            .prop_map(|(n, at, c)| format!("{}{n}{c}", if c == 'P' { "\x1b[5G\x1b[" } else { at })),
        1 => (1u8..4, prop::sample::select(vec!['L', 'M'])).prop_map(|(n, c)| format!("\x1b[{n}{c}\r")),
        1 => (1u8..4, prop::sample::select(vec!['S', 'T'])).prop_map(|(n, c)| format!("\x1b[{n}{c}")),
        1 => (1u8..5, 4u8..9).prop_map(move |(t, b)| if regions { format!("\x1b[{t};{b}r") } else { String::new() }),
        1 => prop::sample::select(vec!["\x1b[1;31m", "\x1b[m", "\x1b[48;5;20m"]).prop_map(str::to_owned),
        1 => (1u8..9, prop::sample::select(if regions { vec!['C', 'D', 'G', 'd'] } else { vec!['A', 'B', 'C', 'E', 'F', 'G'] }))
            .prop_map(|(n, c)| format!("\x1b[{n}{c}")),
    ];
    (1..=ROWS, 1..=COLS, op).prop_map(|(y, x, op)| format!("\x1b[{y};{x}H{op}"))
}

fn program(regions: bool) -> impl Strategy<Value = String> {
    prop::collection::vec(step(regions), 0..40).prop_map(|v| v.concat())
}

/// The rows of our screen.
fn ours(bytes: &[u8]) -> (Term, Vec<String>) {
    let mut t = Term::new(Size::new(COLS, ROWS), Settings::default());
    t.feed(bytes);
    let rows = t.screen().map(|l| l.text()).collect();
    (t, rows)
}

fn alacritty(bytes: &[u8]) -> (Vec<String>, (i32, usize)) {
    let size = alacritty_terminal::term::test::TermSize::new(COLS.into(), ROWS.into());
    let config = alacritty_terminal::term::Config::default();
    let mut term = alacritty_terminal::Term::new(config, &size, alacritty_terminal::event::VoidListener);
    let mut parser: alacritty_terminal::vte::ansi::Processor =
        alacritty_terminal::vte::ansi::Processor::new();
    parser.advance(&mut term, bytes);
    let grid = term.grid();
    let rows = (0..grid.screen_lines())
        .map(|y| {
            let mut text = String::new();
            for x in 0..grid.columns() {
                let cell = &grid[Point::new(Line(y as i32), Column(x))];
                if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                    text.push(cell.c);
                    text.extend(cell.zerowidth().into_iter().flatten());
                }
            }
            text.trim_end().to_owned()
        })
        .collect();
    (rows, (grid.cursor.point.line.0, grid.cursor.point.column.0))
}

fn avt(text: &str) -> Vec<String> {
    let mut t = avt::Terminal::with_scrollback(COLS.into(), ROWS.into(), Some(1000)).expect("a terminal");
    t.feed(text);
    t.screen().visible_lines().map(|l| l.text().trim_end().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn screens_agree_with_alacritty(text in prop_oneof![program(true), program(false)]) {
        let (term, rows) = ours(text.as_bytes());
        let (theirs, cursor) = alacritty(text.as_bytes());
        prop_assert_eq!(&rows, &theirs);
        let c = term.cursor();
        prop_assert_eq!((i32::from(c.row), usize::from(c.col)), cursor);
    }

    #[test]
    fn screens_agree_with_avt(text in program(false)) {
        let (_, rows) = ours(text.as_bytes());
        prop_assert_eq!(rows, avt(&text));
    }

    /// What we dump, others show.
    #[test]
    fn dumps_are_understood_by_others(text in prop_oneof![program(true), program(false)]) {
        let (term, rows) = ours(text.as_bytes());
        for dump in [term.dump(), term.dump_screen()] {
            let (theirs, _) = alacritty(&dump);
            prop_assert_eq!(&rows, &theirs);
            prop_assert_eq!(&rows, &avt(&String::from_utf8_lossy(&dump)));
        }
    }
}
