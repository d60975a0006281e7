//! How fast bytes are judged: `cargo run --release -p tapdeck-core --example scrub FILE…` prints MB/s for each file.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool that measures")]

use std::sync::Arc;
use std::time::Instant;

use tapdeck_core::scrub::{Rules, Scrubber};
use tapdeck_term::Size;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rules = Arc::new(Rules::new(Rules::of_packs(&Rules::default_packs())?, Vec::new())?);
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let mut best = f64::MAX;
        let mut hits = 0;
        for _ in 0..3 {
            let mut scrubber = Scrubber::new(rules.clone(), Size::new(120, 40));
            let start = Instant::now();
            bytes.chunks(64 << 10).for_each(|chunk| scrubber.output(chunk));
            scrubber.finish();
            best = best.min(start.elapsed().as_secs_f64());
            hits = scrubber.report().hits();
        }
        println!("{path}: {:.0} MB/s, {hits} hits", bytes.len() as f64 / best / 1e6);
    }
    Ok(())
}
