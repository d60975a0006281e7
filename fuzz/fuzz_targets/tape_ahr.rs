//! Any bytes as a native recording: every way of reading it ends, and a repaired copy is whole.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::ahr::{Reader, Repair, Scan, Summary, tail};

fuzz_target!(|data: &[u8]| {
    let _ = Reader::new(data).count();
    let _ = Scan::new(Cursor::new(data)).map(Iterator::count);
    let _ = tail(Cursor::new(data));
    let mut copy = Vec::new();
    let mut repair = Repair::new(data);
    while let Ok(Some(piece)) = repair.next_piece() {
        copy.extend_from_slice(piece);
    }
    let summary = Summary::of(&copy[..]).expect("a repaired copy can be read");
    // A time that only damage stands behind cannot be judged, and is kept as it is.
    assert!(!summary.damages.iter().any(|d| d.kind.is_loss()), "{:?}", summary.damages);
});
