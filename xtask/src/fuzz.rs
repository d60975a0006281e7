//! The longer mode: every fuzz target for a while, with `cargo fuzz`.

use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) fn run(seconds: &str) -> Result<()> {
    let seconds: u32 = seconds.parse().context("usage: cargo xtask fuzz [SECONDS]")?;
    let targets = crate::root()?.join("fuzz/fuzz_targets");
    let mut names: Vec<String> = std::fs::read_dir(targets)?
        .flatten()
        .filter_map(|e| e.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    for name in names {
        println!("== fuzz {name}, {seconds} s");
        let status = Command::new("cargo")
            .args(["fuzz", "run", &name, "--", &format!("-max_total_time={seconds}")])
            // The fuzzer's instrumentation is a nightly flag; this lets the stable compiler take
            // it.
            .env("RUSTC_BOOTSTRAP", "1")
            .current_dir(crate::root()?)
            .status()
            .context("cargo-fuzz is needed: cargo install cargo-fuzz")?;
        if !status.success() {
            bail!("{name} found something: see fuzz/artifacts/{name}");
        }
    }
    Ok(())
}
