//! `tapdeck render` alone, for runs of conformance suites without the rest of the program.

use clap::Parser;
use tapdeck_cli::render::{RenderArgs, render};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: RenderArgs,
}

fn main() -> anyhow::Result<()> {
    render(&Cli::parse().args)
}
