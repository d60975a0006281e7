//! Programs that the checks use: what is installed, and how to install what is not.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

/// Programs that the tests drive, and the Debian package of each.
const PROGRAMS: [(&str, &str); 37] = [
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
    ("fish", "fish"),
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
    ("asciinema", "asciinema"),
    ("ttyrec", "ttyrec"),
    ("scriptreplay", "bsdutils"),
    ("setpriv", "util-linux"),
    ("age", "age"),
    ("ffmpeg", "ffmpeg"),
    ("faketime", "faketime"),
];

/// Installs the missing programs with `apt-get`, where that is possible. A test that needs one that
/// is missing still reports itself as skipped.
pub(crate) fn install_programs() {
    let missing = PROGRAMS.iter().filter(|(program, _)| !has(program));
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.dedup();
    if packages.is_empty() || !has("apt-get") {
        return;
    }
    println!("   {}", packages.join(" "));
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(&packages);
    if !(apt(&["update"]) && apt(&args)) {
        println!("   apt-get could not install all of them");
    }
}

pub(crate) fn has(program: &str) -> bool {
    tapdeck_needs::find(program).is_some()
}

/// A subcommand of cargo that `cargo install` builds.
pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

pub(crate) const DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2" };
pub(crate) const DEB: CargoTool = CargoTool { name: "cargo-deb", version: "3.8.0" };

impl CargoTool {
    /// Returns the path of the tool. Builds it below `target/tools` if it is neither installed nor
    /// built already; returns `None` if that fails, for instance without a network.
    pub(crate) fn get(&self) -> Result<Option<PathBuf>> {
        if let Some(path) = tapdeck_needs::find(self.name) {
            return Ok(Some(path));
        }
        let folder = crate::root()?.join("target/tools");
        let path = folder.join("bin").join(self.name);
        if path.is_file() {
            return Ok(Some(path));
        }
        println!("   building {} {}", self.name, self.version);
        let build = folder.join("build");
        let done = Command::new("cargo")
            .args(["install", self.name, "--version", self.version, "--locked", "--quiet"])
            // It runs for a second: a build without optimisations and debug information is enough.
            .args(["--debug", "--root"])
            .arg(&folder)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TARGET_DIR", &build)
            .status()?;
        if build.exists() {
            std::fs::remove_dir_all(build)?;
        }
        Ok(done.success().then_some(path))
    }
}

/// The official SDKs of the Agent Client Protocol and the Model Context Protocol, and a generator
/// of clients from OpenAPI documents, with which the tests try the servers.
const PACKAGES: [&str; 3] = ["agent-client-protocol==0.12.1", "mcp==2.3.0", "openapi-python-client==0.29.1"];

/// Installs Python packages that the tests use below `target`. Returns the Python that has them, or
/// `None` without one: the tests then report themselves as skipped.
pub(crate) fn install_python() -> Result<Option<PathBuf>> {
    let folder = crate::root()?.join("target/python");
    let python = folder.join("bin/python3");
    let run = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    let has = |python: &Path| run(python, &["-c", "import acp, mcp.client.client, openapi_python_client"]);
    let found = PathBuf::from("python3");
    if has(&found) {
        return Ok(Some(found));
    }
    if !has(&python) {
        println!("   installing {}", PACKAGES.join(" "));
        let made = folder.to_str().is_some_and(|folder| run(&found, &["-m", "venv", folder]));
        let mut args = vec!["-m", "pip", "install", "--quiet"];
        args.extend(PACKAGES);
        if !made || !run(&python, &args) {
            return Ok(None);
        }
    }
    Ok(Some(python))
}

/// The coding agents that the corpus talks to, in the versions that it was recorded with.
const AGENTS: [&str; 2] = ["@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0"];

/// Installs the coding agents below `target`. Returns a `PATH` with them, or why there are none.
pub(crate) fn install_agents() -> Result<Result<OsString, String>> {
    let folder = crate::root()?.join("target/agents");
    let bin = folder.join("node_modules/.bin");
    if !has("npm") {
        return Ok(Err("npm is not installed".into()));
    }
    std::fs::create_dir_all(&folder)?;
    let run = |program: &std::ffi::OsStr, args: &[&str]| -> Result<String, String> {
        let name = Path::new(program).file_name().unwrap_or(program).display();
        let output = Command::new(program).args(args).current_dir(&folder).stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("{name} cannot be started: {e}"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(said(&output.stdout)),
            false => Err(format!("{name}: {}: {}", output.status, said(&output.stderr))),
        }
    };
    if !bin.join("claude").exists() || !bin.join("codex").exists() {
        println!("   installing {}", AGENTS.join(" "));
        let mut args = vec!["install", "--no-audit", "--no-fund", "--prefix", "."];
        args.extend(AGENTS);
        if let Err(why) = run("npm".as_ref(), &args) {
            return Ok(Err(why));
        }
        // Some configurations of npm do not run a package's own installer. What comes of it shows
        // when the agent is started.
        let _ = run("node".as_ref(), &["node_modules/@anthropic-ai/claude-code/install.cjs"]);
    }
    for agent in ["claude", "codex"] {
        match run(bin.join(agent).as_os_str(), &["--version"]) {
            Ok(version) => println!("   {agent}: {version}"),
            Err(why) => return Ok(Err(why)),
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(Ok(std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?))
}
