//! Everything that must hold before a change lands: installs what the tests need, formats, lints, checks the
//! house, tests. What cannot run here is listed as skipped, by name.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};

/// Programs that the tests drive, and the Debian package of each.
const PROGRAMS: [(&str, &str); 14] = [
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
    ("od", "coreutils"),
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
    for name in &skipped {
        println!("skipped: {name}");
    }
    println!("all well");
    Ok(())
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
