//! The project's own chores. `cargo xtask ci` is the test command of the README; `cargo xtask tidy` checks the
//! rules of the house that no lint knows.

mod ci;
mod fuzz;
mod tidy;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["ci"] => ci::run(),
        ["tidy"] => tidy::run(),
        ["agents"] => ci::talk_to_agents("100"),
        ["agents", prompts] => ci::talk_to_agents(prompts),
        ["crowd"] => ci::gather_a_crowd("1000"),
        ["crowd", sessions] => ci::gather_a_crowd(sessions),
        ["soak"] => ci::soak("200"),
        ["soak", rounds] => ci::soak(rounds),
        ["fuzz"] => fuzz::run("60"),
        ["fuzz", seconds] => fuzz::run(seconds),
        _ => bail!(
            "usage: cargo xtask ci | tidy | agents [PROMPTS] | crowd [SESSIONS] | soak [ROUNDS] | fuzz [SECONDS]"
        ),
    }
}

/// The workspace's folder.
fn root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies in the workspace")?.to_owned())
}
