//! The scanner loses nothing, and what the filter lets through asks nothing and can be undone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_term::{FilterOptions, ModeWatch, ReplayFilter, Scanner, Settings, Size, Term, Token};

fuzz_target!(|data: &[u8]| {
    let mut joined = Vec::new();
    let mut scanner = Scanner::new();
    let mut take = |_: &Scanner, t: Token<'_>| match t {
        Token::Text(b) | Token::Control { bytes: b, .. } | Token::Part { bytes: b, .. } => joined.extend_from_slice(b),
    };
    for piece in data.chunks(7) {
        scanner.feed(piece, &mut take);
    }
    scanner.finish(&mut take);
    assert_eq!(joined, data);
    let mut out = Vec::new();
    let mut filter = ReplayFilter::new(FilterOptions::default());
    for piece in data.chunks(5) {
        filter.filter(piece, &mut out);
    }
    filter.finish(&mut out);
    let mut t = Term::new(Size::new(20, 6), Settings::default());
    assert!(t.feed(&out).replies.is_empty(), "{out:?}");
    let undo = t.undo_modes();
    t.feed(&undo);
    assert!(t.undo_modes().is_empty(), "{out:?}");
    let mut watch = ModeWatch::new();
    watch.feed(data);
    watch.undo();
});
