//! A scenario file from anywhere: it is understood, or refused with a line; what it plays is judged
//! without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_core::check::{Claim, evaluate};
use tapdeck_tape::scenario::{Scenario, Source};

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::parse(text, &|_| Err(std::io::ErrorKind::NotFound.into())) else { return };
    if let Some(Source::Play(play)) = &scenario.source
        && play.items.iter().map(|i| i.times.saturating_mul(i.what.len() as u64)).sum::<u64>() < 200
    {
        let claims: Vec<Claim> = scenario.assertions.iter().map(|a| a.claim.clone()).collect();
        let _ = evaluate(&play.timeline(scenario.size), &claims);
    }
});
