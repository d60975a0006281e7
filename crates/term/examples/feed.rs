//! Feeds a file again and again: something for a profiler to look at.

use tapdeck_term::{Settings, Size, Term};

fn main() {
    let mut args = std::env::args().skip(1);
    let data = std::fs::read(args.next().unwrap_or_default()).unwrap_or_default();
    let rounds: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    for _ in 0..rounds {
        let mut t = Term::new(Size::new(120, 40), Settings::default());
        for piece in data.chunks(64 << 10) {
            std::hint::black_box(t.feed(piece));
        }
    }
}
