//! Rows that did not change are not drawn again, and the picture is the same.

use proptest::prelude::*;
use tapdeck_raster::{Damage, Image, Look, Raster, Selection};
use tapdeck_term::{Settings, Size, Term};

/// What programs write: text, styles, movements, and what changes how all of it looks.
const PIECES: [&str; 40] = [
    "hello",
    "x",
    "你好",
    "e\u{301}",
    "👍",
    "┌──┐",
    "█▄▀",
    "⣿⡇",
    "\r\n",
    "\n",
    "\r",
    "\t",
    "\x08",
    "\x1b[m",
    "\x1b[1;31m",
    "\x1b[3;4m",
    "\x1b[4:3;58;5;9m",
    "\x1b[7m",
    "\x1b[2;9m",
    "\x1b[53m",
    "\x1b[8m",
    "\x1b[48;2;10;90;40m",
    "\x1b[H",
    "\x1b[5;10H",
    "\x1b[K",
    "\x1b[2J",
    "\x1b[L",
    "\x1b[M",
    "\x1b[3P",
    "\x1b[2@",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[4 q",
    "\x1b[6 q",
    "\x1b[?5h",
    "\x1b[?5l",
    "\x1b#6",
    "\x1b#3",
    "\x1b#5",
    "\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\",
];

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<usize>),
    Resize(u16, u16),
    Colour(u8),
    Select(Option<(u16, u16, u16, u16)>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(0..PIECES.len(), 1..12).prop_map(Step::Write),
        1 => (1..40_u16, 1..12_u16).prop_map(|(cols, rows)| Step::Resize(cols, rows)),
        1 => any::<u8>().prop_map(Step::Colour),
        1 => prop::option::of((0..12_u16, 0..40_u16, 0..12_u16, 0..40_u16)).prop_map(Step::Select),
    ]
}

fn same_outside_of(damage: &Damage, before: &Image, after: &Image) -> bool {
    let changed: Vec<u32> = damage.rows(after.height()).collect();
    (before.width(), before.height()) == (after.width(), after.height())
        && (0..after.height()).filter(|y| !changed.contains(y)).all(|y| before.row(y) == after.row(y))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_drawn_bit_by_bit_equals_what_is_drawn_at_once(steps in prop::collection::vec(step(), 1..12)) {
        let look = Look { system_fonts: false, padding: 3, ..Look::default() };
        let mut kept = Raster::new(look.clone()).expect("the fonts of the crate");
        let mut anew = Raster::new(look).expect("the fonts of the crate");
        let mut term = Term::new(Size::new(30, 8), Settings::default());
        for step in steps {
            let before = kept.image().clone();
            match step {
                Step::Write(pieces) => pieces.iter().for_each(|i| drop(term.feed(PIECES[*i].as_bytes()))),
                Step::Resize(cols, rows) => drop(term.resize(Size::new(cols, rows))),
                Step::Colour(n) => drop(term.feed(format!("\x1b]4;1;#{n:02x}8040\x07\x1b]11;#0000{n:02x}\x07").as_bytes())),
                Step::Select(cells) => {
                    let selection = cells.map(|(a, b, c, d)| Selection { start: (a, b), end: (c, d) });
                    kept.select(selection);
                    anew.select(selection);
                }
            }
            let damage = kept.draw(&term).expect("a picture");
            anew.invalidate();
            prop_assert_eq!(anew.draw(&term).expect("a picture"), Damage::All);
            prop_assert!(kept.image() == anew.image());
            prop_assert!(damage == Damage::All || same_outside_of(&damage, &before, kept.image()));
            prop_assert!(kept.draw(&term).expect("a picture").is_empty());
        }
    }
}
