//! The project's own chores. `cargo xtask ci` is the test command of the README; `cargo xtask tidy`
//! checks the rules of the house that no lint knows.

mod agents;
mod ci;
mod docs;
mod fuzz;
mod longer;
mod pictures;
mod release;
mod soak;
mod tidy;
mod tools;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use release::Git;

const USAGE: &str = "ci | tidy | docs [--check] | pictures [--record [NAME]] | release VERSION [--dry-run | --tag] | agents [PROMPTS | states | prompts | goldens] | crowd [SESSIONS] | strangers [N] | tmux [ROUNDS] | soak [MINUTES] | kills [MOMENTS] | bombs [NAME] | crash [--cuts N] [--seed S] | fuzz [SECONDS [TARGET...]]";

fn main() -> Result<()> {
    hear_signals()?;
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["ci"] => ci::run(),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::run(docs::Stale::Write),
        ["docs", "--check"] => docs::run(docs::Stale::Fail),
        ["pictures"] => pictures::run(),
        ["pictures", "--record"] => pictures::record(None),
        ["pictures", "--record", name] => pictures::record(Some(name)),
        ["agents"] => longer::talk_to_agents("100"),
        ["agents", what @ ("states" | "prompts" | "goldens"), ref rest @ ..] => {
            agents::run(&[&[what], rest].concat())
        }
        ["agents", prompts] => longer::talk_to_agents(prompts),
        ["crowd"] => longer::gather_a_crowd("1000"),
        ["crowd", sessions] => longer::gather_a_crowd(sessions),
        ["strangers"] => longer::send_strangers("1000"),
        ["strangers", count] => longer::send_strangers(count),
        ["kills"] => longer::kill_recorders("200"),
        ["kills", moments] => longer::kill_recorders(moments),
        ["bombs"] => longer::throw_bombs(""),
        ["bombs", name] => longer::throw_bombs(name),
        ["crash", ref settings @ ..] => longer::cut_the_power(settings),
        ["tmux"] => longer::attach_often("200"),
        ["tmux", rounds] => longer::attach_often(rounds),
        ["soak"] => soak::run("60"),
        ["soak", minutes] => soak::run(minutes),
        ["fuzz"] => fuzz::run("60", &[]),
        ["fuzz", seconds, ref only @ ..] => fuzz::run(seconds, only),
        ["release", version, "--dry-run"] | ["release", "--dry-run", version] => release::plan(version),
        ["release", version, "--tag"] | ["release", "--tag", version] => release::run(version, Git::Tag),
        ["release", version] => release::run(version, Git::Print),
        _ => bail!("usage: cargo xtask {USAGE}"),
    }
}

/// Signals that a shell has its background jobs ignore, and `nohup` what it runs.
const MUTED: [(&str, u32); 3] = [("HUP", 1), ("INT", 2), ("QUIT", 3)];

/// Restarts itself where such signals are ignored: every program that a test starts would inherit
/// that, and could not be interrupted.
fn hear_signals() -> Result<()> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or_default();
    let muted: Vec<&str> =
        MUTED.iter().filter(|(_, n)| ignored >> (n - 1) & 1 == 1).map(|(name, _)| *name).collect();
    if muted.is_empty() {
        return Ok(());
    }
    let mut again = Command::new("env");
    again.arg(format!("--default-signal={}", muted.join(",")));
    Err(again.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).exec()).context("env")
}

/// The workspace's folder.
fn root() -> Result<PathBuf> {
    // Cargo sets it when it runs this; several copies of the workspace may share a target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    Ok(here.parent().context("xtask lies in the workspace")?.to_owned())
}

/// Runs a command in the foreground; fails if it does.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{status}: {command:?}");
    }
    Ok(())
}
