//! Everything that must hold before a change lands. Prints at the end how long each step took, and
//! by name what was skipped: a step or a test that could not run here is not green.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{docs, longer, pictures, succeed, tidy, tools};

/// How many prompts each coding agent gets; `cargo xtask agents` gives more.
const PROMPTS: &str = "10";

/// The longest that an example may run.
const EXAMPLE: &str = "60";

pub(crate) fn run() -> Result<()> {
    let mut run = Run::new()?;
    let outcome = run.everything();
    run.report()?;
    outcome
}

/// One run: what it has found out so far.
struct Run {
    root: PathBuf,
    /// The description of the workspace that cargo gives.
    workspace: Value,
    times: Vec<(&'static str, Duration)>,
    skipped: Vec<String>,
}

impl Run {
    fn new() -> Result<Self> {
        let root = crate::root()?;
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(&root)
            .output()?;
        let workspace = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        let run = Self { root, workspace, times: Vec::new(), skipped: Vec::new() };
        match fs::remove_file(run.skips()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(run),
        }
    }

    /// The steps, cheapest first. All that compile the workspace use all features, so that no
    /// dependency is compiled twice because of other features; the feature matrix is the exception.
    fn everything(&mut self) -> Result<()> {
        self.step("programs", |_| {
            tools::install_programs();
            Ok(())
        })?;
        self.step("format", |run| run.cargo(&["fmt", "--all", "--check"]))?;
        self.step("tidy", |_| tidy::run())?;
        self.step("minimum Rust", Self::minimum_rust)?;
        self.step("lint", |run| {
            let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--quiet"];
            run.cargo(&[&args[..], &["--", "-D", "warnings"]].concat())
        })?;
        self.step("page scripts", Self::page_scripts)?;
        self.step("dependencies", Self::dependencies)?;
        self.step("features", Self::features)?;
        self.step("fuzz targets", Self::fuzz_targets)?;
        self.step("documentation", |run| {
            let mut command = run.command("cargo");
            command.args(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"]);
            succeed(command.env("RUSTDOCFLAGS", "-D warnings"))
        })?;
        self.step("build", |run| {
            run.cargo(&["build", "--workspace", "--all-targets", "--all-features", "--quiet"])
        })?;
        self.step("generated pages", |run| docs::generate(&run.root, docs::Stale::Fail))?;
        self.step("pictures", |run| pictures::draw(&run.root, docs::Stale::Fail))?;
        self.step("test", Self::tests)?;
        self.step("doc tests", |run| {
            run.cargo(&["test", "--doc", "--workspace", "--all-features", "--quiet"])
        })?;
        self.step("examples", Self::examples)?;
        self.step("outside crates", Self::outside_crates)?;
        self.step("coding agents", Self::agents)
    }

    fn step(&mut self, name: &'static str, check: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        println!("== {name}");
        let start = Instant::now();
        let outcome = check(self).with_context(|| format!("step {name:?} failed"));
        self.times.push((name, start.elapsed()));
        outcome
    }

    /// Where tests report that they were skipped.
    fn skips(&self) -> PathBuf {
        self.root.join("target/skipped-tests")
    }

    fn skip(&mut self, what: impl Into<String>) {
        self.skipped.push(what.into());
    }

    /// A program that runs in the workspace's folder.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(&self.root)
            // The same cases every time: a gate must not depend on luck. `cargo test` and
            // `cargo xtask fuzz` draw new ones.
            .env("PROPTEST_RNG_SEED", "20261")
            .env(tapdeck_needs::REPORT, self.skips());
        command
    }

    fn cargo(&self, args: &[&str]) -> Result<()> {
        succeed(self.command("cargo").args(args))
    }

    /// The crates of the workspace.
    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.workspace["packages"].as_array().into_iter().flatten()
    }

    /// Checks that every crate and the README name the same minimum version of Rust, and that the
    /// code compiles with it. Lints know the version, too (`clippy::incompatible_msrv`).
    fn minimum_rust(&mut self) -> Result<()> {
        let mut versions: Vec<&str> =
            self.packages().map(|p| p["rust_version"].as_str().unwrap_or("none")).collect();
        versions.dedup();
        let [minimum] = versions[..] else { bail!("the crates differ in rust-version: {versions:?}") };
        let stated = format!("Rust {minimum} or later");
        if !fs::read_to_string(self.root.join("README.md"))?.contains(&stated) {
            bail!("README.md does not say {stated:?}, which is what rust-version says");
        }
        let output = Command::new("rustc").arg("--version").output()?;
        let running = String::from_utf8(output.stdout)?;
        let running = running.split_whitespace().nth(1).unwrap_or_default();
        if running.starts_with(minimum) {
            println!("   {minimum}, which is what this run uses");
            return Ok(());
        }
        let minimum = minimum.to_owned();
        let installed = self.command("rustup").args(["run", &minimum, "rustc", "--version"]).output();
        if !installed.is_ok_and(|output| output.status.success()) {
            self.skip(format!("build with Rust {minimum}: only {running} is installed"));
            return Ok(());
        }
        let target = self.root.join("target/minimum-rust");
        let mut command = self.command("rustup");
        command.args(["run", &minimum, "cargo", "check", "--workspace", "--quiet", "--target-dir"]);
        succeed(command.arg(target))
    }

    /// Runs the unit tests of the page's scripts.
    fn page_scripts(&mut self) -> Result<()> {
        if !tools::has("node") {
            self.skip("page scripts: node is not installed");
            return Ok(());
        }
        let tests = files(&self.root.join("crates/serve/tests/page"), ".test.mjs")?;
        succeed(self.command("node").args(["--test", "--test-reporter=spec"]).args(tests))
    }

    /// Checks licences, sources and known vulnerabilities of what the project depends on.
    fn dependencies(&mut self) -> Result<()> {
        let Some(deny) = tools::DENY.get()? else {
            self.skip("dependencies: cargo-deny could not be installed");
            return Ok(());
        };
        let check = |run: &Self, what: &[&str]| {
            let mut command = run.command(&deny);
            command.args(["--log-level", "error", "check", "--hide-inclusion-graph"]).args(what);
            succeed(&mut command)
        };
        check(self, &["licenses", "bans", "sources"])?;
        if self.command(&deny).args(["fetch", "db"]).output()?.status.success() {
            return check(self, &["advisories"]);
        }
        self.skip("known vulnerabilities of dependencies: their database cannot be reached");
        Ok(())
    }

    /// Lints each crate without features, with each one alone, and with all of them.
    fn features(&mut self) -> Result<()> {
        for package in self.packages() {
            let (Some(name), Some(features)) = (package["name"].as_str(), package["features"].as_object())
            else {
                continue;
            };
            let alone = features.keys().map(String::as_str).filter(|feature| *feature != "default");
            let mut sets: Vec<&str> = std::iter::once("").chain(alone.clone()).collect();
            if sets.len() == 1 {
                continue;
            }
            println!("   {name}: {}", sets[1..].join(" "));
            // A feature that brings all others is the set with all of them.
            sets.retain(|set| set.is_empty() || enabled(features, set).len() < alone.clone().count());
            let lint = |features: &[&str]| {
                let args = [&["clippy", "--quiet", "--package", name], features, &["--", "-D", "warnings"]];
                self.cargo(&args.concat())
            };
            for set in sets {
                lint(&["--no-default-features", "--features", set])?;
            }
            lint(&["--all-features"])?;
        }
        Ok(())
    }

    /// Compiles the fuzz targets. They are a workspace of their own, with the same dependencies, so
    /// that what is built already is not built again.
    fn fuzz_targets(&mut self) -> Result<()> {
        let mut command = self.command("cargo");
        command.args(["check", "--manifest-path", "fuzz/Cargo.toml", "--quiet", "--target-dir", "target"]);
        // Nothing is linked, so the fuzzer itself, which is C++, need not be compiled.
        succeed(command.env("CUSTOM_LIBFUZZER_PATH", "/nonexistent/libfuzzer.a"))
    }

    /// Runs the tests: with nextest, where it is installed, because it runs those of several crates
    /// side by side. It is not installed here: `cargo test` runs the same tests without another
    /// tool to compile.
    fn tests(&mut self) -> Result<()> {
        let mut command = self.command("cargo");
        if let Some(python) = tools::install_python()? {
            command.env("PYTHON_FOR_TESTS", python);
        }
        if tools::has("cargo-nextest") {
            command.args(["nextest", "run", "--status-level", "slow"]);
        } else {
            command.args(["test", "--all-targets", "--quiet"]);
        }
        succeed(command.args(["--workspace", "--all-features", "--no-fail-fast"]))
    }

    /// Runs the library's examples, each in an empty folder with an empty home. They were built
    /// with the workspace: building them alone would compile the dependencies again.
    fn examples(&mut self) -> Result<()> {
        let library = self.packages().find(|package| package["name"] == "tapdeck");
        let targets = library.and_then(|library| library["targets"].as_array()).into_iter().flatten();
        let examples = targets.filter(|target| target["kind"][0] == "example");
        for name in examples.filter_map(|target| target["name"].as_str()) {
            println!("   {name}");
            let folder = self.root.join("target/examples").join(name);
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::create_dir_all(&folder)?;
            let mut command = self.command("timeout");
            command.arg(EXAMPLE).arg(self.root.join("target/debug/examples").join(name));
            command.current_dir(&folder).env("HOME", &folder).stdin(std::process::Stdio::null());
            for variable in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                command.env(variable, &folder);
            }
            let output = command.output()?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                bail!("example {name}: {}\n{said}", output.status);
            }
        }
        Ok(())
    }

    /// Tests crates outside the workspace that use the library as others do. They get the lock file
    /// and the target folder of the workspace, so that what is built already is not built again.
    fn outside_crates(&mut self) -> Result<()> {
        for folder in files(&self.root.join("examples"), "")? {
            fs::copy(self.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
            let mut command = self.command("cargo");
            command.args(["test", "--quiet", "--target-dir", "target", "--manifest-path"]);
            succeed(command.arg(folder.join("Cargo.toml")))?;
        }
        Ok(())
    }

    /// Runs the scenarios and tests with real coding agents, against a model that comes with them.
    fn agents(&mut self) -> Result<()> {
        let path = match tools::install_agents()? {
            Ok(path) => path,
            Err(why) => {
                self.skip(format!("coding agents: {why}"));
                return Ok(());
            }
        };
        let mut command = self.command(self.root.join("target/debug/tapdeck"));
        command.args(["test", "--live", "--jobs", "2", "cassettes/agents"]);
        succeed(command.env("PATH", &path))?;
        longer::talk(&path, PROMPTS)?;
        // `cargo xtask agents states` and `prompts` judge much more, but also by time, which is no
        // verdict for a gate.
        Ok(())
    }

    /// Prints how long each step took, and what was skipped.
    fn report(&self) -> Result<()> {
        println!("== times");
        for (name, time) in &self.times {
            println!("{:>6.0} s  {name}", time.as_secs_f64());
        }
        let all: Duration = self.times.iter().map(|(_, time)| *time).sum();
        println!("{:>6.0} s  together", all.as_secs_f64());
        let tests = fs::read_to_string(self.skips()).unwrap_or_default();
        let mut tests: Vec<&str> = tests.lines().collect();
        tests.sort_unstable();
        tests.dedup();
        let skipped: Vec<String> =
            self.skipped.iter().cloned().chain(tests.iter().map(|test| format!("test {test}"))).collect();
        println!("== skipped: {}", skipped.len());
        for what in skipped {
            println!("   {what}");
        }
        Ok(())
    }
}

/// The features of a crate that one of them enables, with itself.
fn enabled<'a>(features: &'a serde_json::Map<String, Value>, feature: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut rest) = (BTreeSet::new(), vec![feature]);
    while let Some(feature) = rest.pop() {
        let Some(brings) = features.get(feature).filter(|_| found.insert(feature)) else { continue };
        rest.extend(brings.as_array().into_iter().flatten().filter_map(Value::as_str));
    }
    found.retain(|feature| features.contains_key(*feature));
    found
}

/// The entries of a folder whose names end so, sorted.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    Ok(found)
}
