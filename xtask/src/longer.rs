//! Longer runs of tests that `cargo xtask ci` runs briefly.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Result, bail};

use crate::succeed;

/// How often sessions contend for the stick in the longer mode.
const FIGHTS: &str = "10000";

/// Gives each coding agent this many prompts on a busy machine: none is lost, none submitted twice.
pub(crate) fn talk_to_agents(prompts: &str) -> Result<()> {
    match crate::tools::install_agents()? {
        Ok(path) => talk(&path, prompts),
        Err(why) => bail!("no coding agents to talk to: {why}"),
    }
}

/// Talks to the coding agents in this `PATH`.
pub(crate) fn talk(path: &OsStr, prompts: &str) -> Result<()> {
    println!("   {prompts} prompts each");
    let mut command =
        tests(&["--ignored", "--test-threads", "1", "--nocapture", "agents::", "agents_mcp::", "acp::"]);
    succeed(command.env("PATH", path).env("TAPDECK_PROMPTS", prompts))
}

/// Runs the tests of servers with this many sessions at once.
pub(crate) fn gather_a_crowd(sessions: &str) -> Result<()> {
    println!("== {sessions} sessions at a server");
    let mut command = tests(&["--test-threads", "1", "--nocapture", "wire_crowd::"]);
    succeed(command.env("TAPDECK_CROWD", sessions))
}

/// Sends this many strangers of each kind to each door. Prints how long a client takes meanwhile.
pub(crate) fn send_strangers(count: &str) -> Result<()> {
    println!("== {count} strangers at each door");
    println!("| door | manner | strangers | visits | client p50 | max |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut command = tests(&["--test-threads", "1", "--nocapture", "strangers::at_the"]);
    succeed(command.env("TAPDECK_STRANGERS", count))
}

/// Contends for the stick, and attaches under tmux this many times to each program.
pub(crate) fn attach_often(rounds: &str) -> Result<()> {
    println!("== {FIGHTS} fights for the stick; attaching under tmux, {rounds} times to each program");
    let mut command = tests(&["under_tmux::", "the_stick_is_never"]);
    succeed(command.env("TAPDECK_ROUNDS", rounds).env("TAPDECK_FIGHTS", FIGHTS))
}

/// Kills recorders at this many random moments. Prints how much of their output is lost.
pub(crate) fn kill_recorders(moments: &str) -> Result<()> {
    println!("== kill -9 at {moments} random moments");
    let mut command = tests(&["--nocapture", "whole::a_killed_recorder"]);
    succeed(command.env("TAPDECK_KILLS", moments))
}

/// Throws every bomb whose name has this in it at a release build.
pub(crate) fn throw_bombs(name: &str) -> Result<()> {
    println!("== recordings that are small and cost much");
    let mut command = Command::new("cargo");
    command.args(["test", "--release", "-p", "tapdeck-cli", "--test", "it", "--"]);
    command.args(["--ignored", "--nocapture", "every_bomb"]);
    succeed(command.env("TAPDECK_BOMB", name))
}

/// Cuts the power of the simulated disk, 100,000 times if not told otherwise.
pub(crate) fn cut_the_power(settings: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["test", "-p", "tapdeck", "--all-features", "--test", "power_cut", "--", "--nocapture"]);
    command.env("TAPDECK_CUTS", "100000");
    for setting in settings.chunks(2) {
        match setting {
            ["--cuts", cuts] => command.env("TAPDECK_CUTS", cuts),
            ["--seed", seed] => command.env("TAPDECK_SEED", seed),
            _ => bail!("usage: cargo xtask crash [--cuts N] [--seed S]"),
        };
    }
    println!("== power cuts");
    succeed(&mut command)
}

/// The command's tests, with these arguments to the test binary.
fn tests(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // As the other steps compile it.
    command.args(["test", "--workspace", "--all-features", "--test", "it", "--"]).args(args);
    command
}
