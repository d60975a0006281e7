//! Everything that must hold before a change lands: installs what the tests need, formats, lints, checks the
//! house, tests. What cannot run here is listed as skipped, by name.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};

/// Programs that the tests drive, and the Debian package of each.
const PROGRAMS: [(&str, &str); 29] = [
    ("vttest", "vttest"),
    ("tmux", "tmux"),
    ("vim", "vim"),
    ("less", "less"),
    ("top", "procps"),
    ("htop", "htop"),
    ("script", "bsdutils"),
    ("stty", "coreutils"),
    ("bash", "bash"),
    ("nano", "nano"),
    ("dialog", "dialog"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("dockerd", "docker.io"),
    ("podman", "podman"),
    ("catatonit", "catatonit"),
    ("busybox", "busybox-static"),
    ("od", "coreutils"),
    ("zsh", "zsh"),
    ("python3", "python3"),
    ("sqlite3", "sqlite3"),
    ("node", "nodejs"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("Xvfb", "xvfb"),
    ("xterm", "xterm"),
    ("xdotool", "xdotool"),
    ("xclip", "xclip"),
    ("xsel", "xsel"),
];

pub(crate) fn run() -> Result<()> {
    let mut skipped = install();
    step("format", &["cargo", "fmt", "--all", "--check"])?;
    step("lint", &["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    println!("== tidy");
    crate::tidy::run()?;
    if has("cargo-deny") {
        step("dependencies", &["cargo", "deny", "check", "licenses", "bans", "sources"])?;
    } else {
        skipped.push("dependencies (cargo-deny is not installed)".into());
    }
    step("build", &["cargo", "build", "--workspace", "--all-targets", "--quiet"])?;
    step("test", &["cargo", "test", "--workspace", "--no-fail-fast"])?;
    outside()?;
    agents(&mut skipped)?;
    for name in &skipped {
        println!("skipped: {name}");
    }
    println!("all well");
    Ok(())
}

/// The coding agents that the corpus talks to, in the versions that it was recorded with.
const AGENTS: [&str; 2] = ["@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0"];

/// What is asked of each agent in a run of everything; `cargo xtask agents` asks more.
const PROMPTS: &str = "10";

/// The scenarios and tests with real agents, live, against the model that comes with them.
fn agents(skipped: &mut Vec<String>) -> Result<()> {
    let path = match install_agents()? {
        Ok(path) => path,
        Err(why) => {
            skipped.push(format!("coding agents ({why})"));
            return Ok(());
        }
    };
    let root = crate::root()?;
    println!("== coding agents");
    let status = Command::new(root.join("target/debug/tapdeck"))
        .args(["test", "--live", "--jobs", "2", "cassettes/agents"])
        .env("PATH", &path)
        .current_dir(&root)
        .status()?;
    if !status.success() {
        bail!("the scenarios with coding agents failed");
    }
    talk(&path, PROMPTS)
}

/// The longer mode: so many prompts for each agent, on a busy machine, none lost and none submitted twice.
pub(crate) fn talk_to_agents(prompts: &str) -> Result<()> {
    match install_agents()? {
        Ok(path) => talk(&path, prompts),
        Err(why) => bail!("no coding agents to talk to: {why}"),
    }
}

/// Runs the tests of servers with this many sessions at once, instead of the few of every day.
pub(crate) fn gather_a_crowd(sessions: &str) -> Result<()> {
    println!("== {sessions} sessions at a server");
    let args = ["test", "-p", "tapdeck-cli", "--test", "it", "--", "--test-threads", "1", "--nocapture"];
    let status = Command::new("cargo")
        .args(args)
        .arg("wire_crowd::")
        .env("TAPDECK_CROWD", sessions)
        .current_dir(crate::root()?)
        .status()?;
    if !status.success() {
        bail!("the tests with a crowd failed");
    }
    Ok(())
}

/// How often the talking stick is fought for in the longer mode.
const FIGHTS: &str = "10000";

/// The longer mode of what a run of everything does a few times: fighting for the stick, and attaching under tmux so often.
pub(crate) fn soak(rounds: &str) -> Result<()> {
    println!("== {FIGHTS} fights for the stick; attaching under tmux, {rounds} times to each program");
    let status = Command::new("cargo")
        .args(["test", "-p", "tapdeck-cli", "--test", "it", "--", "under_tmux::", "the_stick_is_never"])
        .env("TAPDECK_ROUNDS", rounds)
        .env("TAPDECK_FIGHTS", FIGHTS)
        .current_dir(crate::root()?)
        .status()?;
    if !status.success() {
        bail!("the longer mode failed");
    }
    Ok(())
}

fn talk(path: &OsStr, prompts: &str) -> Result<()> {
    println!("== talking to coding agents, {prompts} prompts each");
    let args = [
        "test",
        "-p",
        "tapdeck-cli",
        "--test",
        "it",
        "--",
        "--ignored",
        "--test-threads",
        "1",
        "--nocapture",
    ];
    let status = Command::new("cargo")
        .args(args)
        .arg("agents::")
        .env("PATH", path)
        .env("TAPDECK_PROMPTS", prompts)
        .current_dir(crate::root()?)
        .status()?;
    if !status.success() {
        bail!("the tests with coding agents failed");
    }
    Ok(())
}

/// Installs the agents below `target`; gives a `PATH` with them, or why there are none.
fn install_agents() -> Result<Result<OsString, String>> {
    let folder = crate::root()?.join("target/agents");
    let bin = folder.join("node_modules/.bin");
    if !has("npm") {
        return Ok(Err("npm is not installed".into()));
    }
    let quiet = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    std::fs::create_dir_all(&folder)?;
    if !bin.join("claude").exists() || !bin.join("codex").exists() {
        println!("== install {}", AGENTS.join(" "));
        let mut args = vec!["install", "--no-audit", "--no-fund", "--prefix", "."];
        args.extend(AGENTS);
        if !quiet("npm", &args) {
            return Ok(Err("npm could not install them".into()));
        }
        // What npm may not run by itself, where that is so.
        quiet("node", &["node_modules/@anthropic-ai/claude-code/install.cjs"]);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(Ok(std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?))
}

/// A crate outside the workspace that uses the library as others do. It gets the workspace's lock file and target
/// folder, so that what is built already is not built again.
fn outside() -> Result<()> {
    let root = crate::root()?;
    let folder = root.join("examples/less-test");
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = folder.join("Cargo.toml").display().to_string();
    let target = root.join("target").display().to_string();
    step("outside crate", &["cargo", "test", "--manifest-path", &manifest, "--target-dir", &target])
}

/// Installs missing programs where that is possible, and returns what is missing still.
fn install() -> Vec<String> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| !has(program)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    println!("== install {}", packages.join(" "));
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    if has("apt-get") {
        let mut args = vec!["install", "-y", "--no-install-recommends"];
        args.extend(&packages);
        let _ = apt(&["update"]) && apt(&args);
    }
    let still = PROGRAMS.iter().filter(|(program, _)| !has(program));
    still.map(|(program, _)| format!("tests with {program} (it is not installed and could not be)")).collect()
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers lie where ordinary users do not look.
    let folders = std::env::split_paths(&path).chain([std::path::PathBuf::from("/usr/sbin")]);
    folders.into_iter().any(|folder| folder.join(program).is_file())
}

fn step(name: &str, command: &[&str]) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    let status = Command::new(command[0])
        .args(&command[1..])
        // The same cases every time: a gate must not depend on luck. `cargo test` and `cargo xtask fuzz` draw new ones.
        .env("PROPTEST_RNG_SEED", "20261")
        .current_dir(crate::root()?)
        .status()?;
    if !status.success() {
        bail!("{name} failed: {}", command.join(" "));
    }
    println!("   {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
