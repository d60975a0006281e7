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
    let mut command = tests(&["--ignored", "--test-threads", "1", "--nocapture", "agents::"]);
    succeed(command.env("PATH", path).env("TAPDECK_PROMPTS", prompts))
}

/// Runs the tests of servers with this many sessions at once.
pub(crate) fn gather_a_crowd(sessions: &str) -> Result<()> {
    println!("== {sessions} sessions at a server");
    let mut command = tests(&["--test-threads", "1", "--nocapture", "wire_crowd::"]);
    succeed(command.env("TAPDECK_CROWD", sessions))
}

/// Contends for the stick, and attaches under tmux this many times to each program.
pub(crate) fn soak(rounds: &str) -> Result<()> {
    println!("== {FIGHTS} fights for the stick; attaching under tmux, {rounds} times to each program");
    let mut command = tests(&["under_tmux::", "the_stick_is_never"]);
    succeed(command.env("TAPDECK_ROUNDS", rounds).env("TAPDECK_FIGHTS", FIGHTS))
}

/// The command's tests, with these arguments to the test binary.
fn tests(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(["test", "-p", "tapdeck-cli", "--test", "it", "--"]).args(args);
    command
}
