//! Any bytes in any pieces with any sizes in between: no panic, and everything within its bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_term::{Settings, Size, Term};

fuzz_target!(|data: &[u8]| {
    let settings = Settings::default().scrollback(50).string_limit(4096);
    let mut t = Term::new(Size::new(20, 6), settings);
    // 0xFF never occurs in text: here it says that a size follows.
    for part in data.split(|b| *b == 0xff) {
        let (size, bytes) = part.split_at(part.len().min(2));
        if let [c, r] = *size {
            t.resize(Size::new(u16::from(c), u16::from(r)));
        }
        t.feed(bytes);
        t.check_invariants();
    }
    let cursor = t.cursor();
    assert!(cursor.col < t.size().cols && cursor.row < t.size().rows);
    assert!(t.scrollback_len() <= 50);
    for line in t.lines() {
        line.runs();
        assert!(line.written().is_none_or(|w| w < t.offset().max(1)));
    }
    t.undo_modes();
    t.restore_cursor();
    t.dump_screen();
});
