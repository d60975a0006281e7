//! A real agent in a session of its own, in one of the surroundings in which people start agents.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tapdeck_term::Size;

use super::bus::Watch;
use super::model::Model;
use super::prepare::prepare;
use super::{Agent, Options, clock};

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Plain,
    /// In a pane of a real tmux.
    Tmux,
    /// With tmux's variable only.
    TmuxVariable,
    /// With screen's variables.
    Screen,
}

/// The surroundings of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) rows: u16,
    /// Whether a core of the machine is busy.
    pub(super) loaded: bool,
}

pub(super) const COLS: u16 = 100;
const RECORDING: &str = "session.cast";
/// How the homes of runs begin; the id of the process follows.
const HOMES: &str = "tapdeck-agents-";

/// An agent, its session and its model.
pub(super) struct Session {
    pub(super) agent: Agent,
    pub(super) model: Model,
    pub(super) watch: Watch,
    pub(super) around: Surroundings,
    pub(super) home: PathBuf,
    /// When it was started.
    pub(super) started: f64,
    binary: PathBuf,
    path: std::ffi::OsString,
}

impl Session {
    /// Starts an agent with everything answered that it would ask first.
    pub(super) fn start(
        agent: Agent,
        around: Surroundings,
        options: &Options,
        path: &std::ffi::OsStr,
    ) -> Result<Self> {
        let binary = &options.binary;
        let home = std::env::temp_dir().join(format!("{HOMES}{}-{:.0}", std::process::id(), clock()));
        fs::create_dir_all(home.join("project"))?;
        fs::create_dir_all(home.join("run"))?;
        super::private(&home.join("run"))?;
        if let Some(rules) = &options.rules {
            let folder = home.join("config/tapdeck/agents");
            fs::create_dir_all(&folder)?;
            for entry in
                fs::read_dir(rules)?.flatten().filter(|e| e.path().extension().is_some_and(|e| e == "toml"))
            {
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        let model = Model::start(&home, agent)?;
        let setting = Setting { home: &home, path };
        let (variables, inside) = prepare(agent, &home, &format!("http://127.0.0.1:{}", model.port))?;
        let started = clock();
        let (start, file): (&[&str], _) =
            if options.record { (&["rec", "-I"], Some(home.join(RECORDING))) } else { (&["run"], None) };
        let mut command = if around.place == Place::Tmux {
            let mut command = setting.command("tmux");
            command.args(["-L", "judge", "-f", "/dev/null", "new-session", "-d", "-x"]);
            // One row is tmux's own.
            command.args([COLS.to_string(), "-y".to_owned(), (around.rows + 1).to_string()]);
            command.arg(binary).args(start).args(["--name", "agent"]).args(file).arg("--");
            command
        } else {
            let mut command = setting.command(binary);
            let size = format!("{COLS}x{}", around.rows);
            command.args(start).args(["-d", "--name", "agent", "--size", &size]).args(file).arg("--");
            command
        };
        match around.place {
            Place::TmuxVariable => command.args(["env", "TMUX=/tmp/x,1,0"]),
            Place::Screen => command.env("TERM", "screen").env("STY", "1234.pts-0.host"),
            _ => &mut command,
        };
        crate::succeed(command.envs(variables).args(&inside).stdout(Stdio::null()))?;
        let watch = watch(&home, Size { cols: COLS, rows: around.rows })?;
        Ok(Self { agent, model, watch, around, started, binary: binary.clone(), path: path.into(), home })
    }

    /// Where the session is recorded, if it is.
    pub(super) fn recording(&self) -> PathBuf {
        self.home.join(RECORDING)
    }

    fn setting(&self) -> Setting<'_> {
        Setting { home: &self.home, path: &self.path }
    }

    /// Runs the command, and returns what it says.
    pub(super) fn tapdeck(&self, args: &[&str]) -> String {
        let out = self.setting().command(&self.binary).args(args).stdin(Stdio::null()).output();
        let Ok(out) = out else { return String::new() };
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    }

    /// Runs a command that writes to the session, also where a person is attached to it.
    fn drive(&self, command: &str, args: &[&str]) {
        let mut all = vec![command, "agent"];
        all.extend(args);
        if self.around.place == Place::Tmux {
            all.push("--takeover");
        }
        self.tapdeck(&all);
    }

    /// Presses keys, one after the other.
    pub(super) fn press(&self, keys: &[&str]) {
        self.drive("send", keys);
    }

    /// Types a command as a person does, and presses Enter once it is drawn.
    pub(super) fn type_command(&self, text: &str) {
        let typed = self.watch.expect(text, false);
        self.drive("type", &[text]);
        self.watch.shown(typed, 5.0);
        self.watch.quiet(300.0, 3.0);
        self.press(&["Enter"]);
    }

    /// Delivers a prompt. Returns what was said about it.
    pub(super) fn paste(&self, text: &[u8], timeout: &str) -> Result<Value> {
        let mut command = self.setting().command(&self.binary);
        command.args(["paste", "agent", "-", "--json", "--timeout", timeout]);
        if self.around.place == Place::Tmux {
            command.arg("--takeover");
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        child.stdin.take().context("piped")?.write_all(text)?;
        let out = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&out.stderr);
        Ok(serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|_| json!({"outcome": "refused", "evidence": said.trim()})))
    }

    pub(super) fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        self.watch.resize(Size { cols, rows });
        if self.around.place == Place::Tmux {
            let (cols, rows) = (cols.to_string(), (rows + 1).to_string());
            let mut command = self.setting().command("tmux");
            return crate::succeed(command.args(["-L", "judge", "resize-window", "-x", &cols, "-y", &rows]));
        }
        self.tapdeck(&["resize", "agent", &format!("{cols}x{rows}")]);
        Ok(())
    }

    /// What stands on the screen, and why the state is what it is.
    pub(super) fn picture(&self) -> String {
        format!("{}\n{}", self.tapdeck(&["explain", "agent"]), self.tapdeck(&["peek", "agent"]))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tapdeck(&["kill", "agent"]);
        self.watch.closed(5.0);
        if self.around.place == Place::Tmux {
            let mut command = self.setting().command("tmux");
            let _ = command.args(["-L", "judge", "kill-server"]).stderr(Stdio::null()).status();
        }
        // It would write to its log while the home is removed.
        self.model.end();
        clear(&self.home);
    }
}

/// Ends what still runs in a home, and removes it. Some agents leave daemons behind, which have the
/// home of their run and of nothing else.
fn clear(home: &Path) {
    let wanted = format!("HOME={}", home.display());
    let model = home.join("port");
    let model = model.to_string_lossy();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let has = |file: &str, word: &str| {
            let words = fs::read(entry.path().join(file)).unwrap_or_default();
            words.split(|b| *b == 0).any(|w| w == word.as_bytes())
        };
        let pid = entry.file_name().into_string().unwrap_or_default();
        if pid.parse::<u32>().is_ok() && (has("environ", &wanted) || has("cmdline", &model)) {
            let _ = Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status();
        }
    }
    let _ = fs::remove_dir_all(home);
}

/// Ends what runs left behind that were killed themselves.
pub(super) fn clear_leftovers() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(HOMES).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            clear(&entry.path());
        }
    }
}

/// How to start a program in a home of its own.
struct Setting<'a> {
    home: &'a Path,
    path: &'a std::ffi::OsStr,
}

impl Setting<'_> {
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home.join("project")).env("PATH", self.path).env("HOME", self.home);
        command.env("XDG_STATE_HOME", self.home.join("state")).env("XDG_RUNTIME_DIR", self.home.join("run"));
        command.env("XDG_CONFIG_HOME", self.home.join("config")).env("TERM", "xterm-256color");
        command.env("TMUX_TMPDIR", self.home).env("LC_ALL", "C.UTF-8");
        for name in ["TMUX", "TMUX_PANE", "STY", "NO_COLOR", "TERM_PROGRAM", "CLAUDECODE", "TAPDECK_SESSION"]
        {
            command.env_remove(name);
        }
        command
    }
}

/// Finds the session's socket, and subscribes.
fn watch(home: &Path, size: Size) -> Result<Watch> {
    let folder = home.join("run/tapdeck");
    let deadline = clock() + 30_000.0;
    loop {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
        // A recorder has a socket of its own, without such a file beside it.
        let mut sockets = entries.filter(|p| p.extension().is_some_and(|e| e == "json"));
        if let Some(watch) = sockets.find_map(|s| Watch::start(&s.with_extension("sock"), size).ok()) {
            return Ok(watch);
        }
        ensure!(clock() < deadline, "no session in {} after 30 s", folder.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}
