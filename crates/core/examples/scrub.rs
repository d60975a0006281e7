//! How fast bytes are judged, and what is found: `cargo run --release -p tapdeck-core --example
//! scrub FILE…` prints MB/s for each file; with `--show` before the files, also what each rule
//! found, so that one sees which rule is too eager.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool that measures")]

use std::sync::Arc;
use std::time::Instant;

use tapdeck_core::scrub::{Rules, Scrubber};
use tapdeck_term::Size;

/// Hits of a rule that are shown.
const SHOWN: usize = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rules = Arc::new(Rules::new(Rules::of_packs(&Rules::default_packs())?, Vec::new())?);
    let show = std::env::args().nth(1).is_some_and(|a| a == "--show");
    for path in std::env::args().skip(1 + usize::from(show)) {
        let bytes = std::fs::read(&path)?;
        let mut best = f64::MAX;
        let mut hits = 0;
        for round in 0..3 {
            let mut scrubber = Scrubber::new(rules.clone(), Size::new(120, 40));
            let start = Instant::now();
            bytes.chunks(64 << 10).for_each(|chunk| scrubber.output(chunk));
            scrubber.finish();
            best = best.min(start.elapsed().as_secs_f64());
            let report = scrubber.report();
            hits = report.hits();
            if show && round == 0 {
                for rule in report.rules.iter().filter(|r| r.hits() > 0) {
                    println!("{}: {}", rule.name, rule.hits());
                    for hit in report.positions.iter().filter(|h| h.rule == rule.name).take(SHOWN) {
                        let at = hit.at as usize;
                        let around = &bytes[at.saturating_sub(40)..(at + hit.length + 10).min(bytes.len())];
                        println!("  {:?}", String::from_utf8_lossy(around));
                    }
                }
            }
        }
        println!("{path}: {:.0} MB/s, {hits} hits", bytes.len() as f64 / best / 1e6);
    }
    Ok(())
}
