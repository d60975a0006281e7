//! `tapdeck render` alone, for runs of conformance suites without the rest of the program.

#[path = "../src/cmd/render.rs"]
#[allow(unreachable_pub, reason = "the file is written for the binary")]
mod render;

use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: render::RenderArgs,
}

fn main() -> anyhow::Result<()> {
    render::run(&Cli::parse().args)
}
