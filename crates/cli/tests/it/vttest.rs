//! `vttest` walked through: every screen of its menus, as the model shows it under `tapdeck run`,
//! against the screens that were looked at and found right. A changed screen is a change of
//! behaviour: look at it, then run with `TAPDECK_BLESS=1`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use tapdeck_needs::has;
use tapdeck_term::{Settings, Size, Term};

use crate::support::{Home, PATIENCE, Seat};

/// The menus that are walked, by the number to type: those whose screens do not depend on the
/// keyboard, the clock or the font.
const MENUS: [(&str, &str); 5] = [
    ("1", "cursor movements"),
    ("2", "screen features"),
    ("6.3", "device attributes and status"),
    ("7", "VT52"),
    ("8", "insert and delete"),
];

#[test]
fn vttest_screens_are_as_they_should_be() {
    if !has("vttest") {
        return;
    }
    let home = Home::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/vttest.txt");
    let bless = std::env::var_os("TAPDECK_BLESS").is_some();
    let expected = if bless { String::new() } else { std::fs::read_to_string(&file).expect("the screens") };
    let expected = screens(&expected);
    let mut found = String::new();
    for (path, name) in MENUS {
        walk(&home, path, name, &expected, &mut found);
    }
    if bless {
        std::fs::write(&file, &found).expect("written");
        return;
    }
    let found = screens(&found);
    for (title, screen) in &expected {
        let now = found.get(title).map_or("(missing)", String::as_str);
        assert_eq!(now, screen, "{title}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Walks one menu and writes down every screen that waits for a key.
fn walk(home: &Home, path: &str, name: &str, expected: &BTreeMap<String, String>, found: &mut String) {
    let mut seat = Seat::new(home.tapdeck(["run", "--", "vttest"]));
    let settings = Settings::default().column_switch(true);
    seat.term = Term::new(Size { cols: 80, rows: 24 }, settings);
    let mut before = 0;
    for step in path.split('.') {
        // What is typed before a menu is whole is thrown away.
        while !text(&seat.raw[before..]).contains("Enter choice number") {
            settle(&mut seat, before);
        }
        settle(&mut seat, before);
        before = seat.raw.len();
        seat.send(format!("{step}\r"));
    }
    settle(&mut seat, before);
    let mut n = 0;
    loop {
        n += 1;
        let title = format!("{name}, screen {n}");
        // On a busy machine a program can rest halfway through a screen.
        let deadline = Instant::now() + PATIENCE;
        let is_there = |shown: &str| match expected.get(&title) {
            Some(screen) => *screen == shown,
            None => expected.is_empty() || shown.contains("Enter choice number"),
        };
        while !is_there(&seat.screen()) && Instant::now() < deadline {
            listen(&mut seat);
        }
        if seat.screen().contains("Enter choice number") {
            break;
        }
        assert!(n < 100, "{name} does not end:\n{}", seat.screen());
        let _ = writeln!(found, "=== {title}\n{}", seat.screen());
        before = seat.raw.len();
        seat.send("\r");
        settle(&mut seat, before);
    }
}

/// Reads, and answers what is asked, until the program has shown something since then, waits for
/// input again, and nothing is on its way.
fn settle(seat: &mut Seat, before: usize) {
    let mut quiet = 0;
    seat.wait("vttest to wait for a key", |seat| {
        let news = listen(seat);
        let rests = seat.raw.len() > before && seat.waits_for_input("vttest") && seat.sleeps();
        quiet = if news || !rests { 0 } else { quiet + 1 };
        quiet >= 3
    });
}

/// Reads, and answers what is asked; whether something came.
fn listen(seat: &mut Seat) -> bool {
    let at = seat.raw.len();
    let replies = seat.take_replies();
    if !replies.is_empty() {
        seat.send(replies);
    }
    seat.read_some(Duration::from_millis(10)) || seat.raw.len() > at
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn screens(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("=== ").skip(1);
    parts.filter_map(|p| p.split_once('\n')).map(|(t, s)| (t.to_owned(), s.trim_end().to_owned())).collect()
}
