//! The terminal model alone: what a program's output shows, where, and in which style.

use std::io::{self, Write};
use tapdeck_term::{Attrs, Settings, Size, Term, keys};

fn main() -> io::Result<()> {
    let mut term = Term::new(Size::new(20, 4), Settings::default());
    write!(term, "\x1b]2;demo\x07one\r\n\x1b[1;31mtwo\x1b[m\r\nthree\r\nfour\r\nfive")?;
    println!("{} at {:?}:\n{}", term.title(), term.size(), term.text());
    println!("scrolled off: {:?}", term.scrollback().map(|line| line.text()).collect::<Vec<_>>());
    let cell = term.cell(0, 0).expect("a cell on the screen");
    println!("{} is bold: {}, {:?}", cell.text, cell.style.attrs.contains(Attrs::BOLD), cell.style.fg);

    // What changed, what the program asked for, and how a key is sent in the modes in force.
    let changes = term.feed(b"\x1b[?1h\x1b[6n\x1b[1;1HTWO");
    println!("changed {:?}, reply {:?}", changes.rows, String::from_utf8_lossy(&changes.replies));
    let up = keys::encode("Up".parse().expect("a key"), &term.modes());
    println!("Up is {:?}", String::from_utf8_lossy(&up));

    // A copy of the terminal, from bytes.
    let mut copy = Term::new(term.size(), Settings::default());
    copy.feed(&term.dump());
    println!("the same: {}", copy.text() == term.text() && copy.cursor() == term.cursor());
    Ok(())
}
