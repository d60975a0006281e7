//! Real coding agents, talking to a model on the loopback: what they are doing is told right, and
//! prompts reach them, each once, however busy the machine is. They are no part of the usual tests:
//! `cargo xtask agents` installs the agents and runs these.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tapdeck_needs::has;

use crate::support::Home;

/// How long an agent on a busy machine may take for anything.
const SECONDS: &str = "120";
pub const KEY: &str = "not-a-real-key-0123456789";

/// The model, and what it was asked.
pub struct Model {
    child: Child,
    pub port: String,
    log: PathBuf,
}

impl Model {
    pub fn start(home: &Home) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cassettes/agents/fake-model.mjs");
        let (port, log) = (home.path("port"), home.path("asked.jsonl"));
        let child = home.command("node").arg(script).args([&port, &log]).spawn().expect("node runs");
        let mut model = Self { child, port: String::new(), log };
        let deadline = Instant::now() + Duration::from_secs(60);
        while model.port.is_empty() {
            assert!(Instant::now() < deadline, "the model listens");
            std::thread::park_timeout(Duration::from_millis(20));
            model.port = fs::read_to_string(&port).unwrap_or_default();
        }
        model
    }

    /// What people asked: requests of the conversation itself have tools, those for titles and the
    /// like have none.
    fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines = log.lines().map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
        let has_tools = |l: &Value| l["tools"].as_array().is_some_and(|t| !t.is_empty());
        lines.filter(has_tools).map(|l| l["last"].as_str().unwrap_or("").to_owned()).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent in the background.
pub struct Agent {
    pub home: Home,
    pub model: Model,
}

impl Agent {
    /// Starts one of them with everything answered that it would ask first, but for whether the
    /// folder can be trusted.
    pub fn start(name: &str, trusted: bool) -> Self {
        let home = Home::new();
        let model = Model::start(&home);
        let project = home.path("project");
        fs::create_dir_all(&project).expect("a folder");
        let folder = project.to_str().expect("text");
        let url = format!("http://127.0.0.1:{}", model.port);
        let mut command = home.tapdeck(["run", "-d", "--name", "agent", "--"]);
        command.current_dir(&project);
        match name {
            "claude" => {
                let projects =
                    if trusted { json!({folder: {"hasTrustDialogAccepted": true}}) } else { json!({}) };
                let config = json!({
                    "hasCompletedOnboarding": true, "theme": "dark", "projects": projects,
                    "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
                });
                fs::write(home.path(".claude.json"), config.to_string()).expect("written");
                command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", KEY);
                command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
                command.env("IS_SANDBOX", "1").args(["claude", "--permission-mode", "default"]);
            }
            "codex" => {
                fs::create_dir_all(home.path(".codex")).expect("a folder");
                let mut config = format!(
                    "model = \"mock-model\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
                     approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n\
                     [model_providers.mock]\nname = \"mock\"\nbase_url = \"{url}/v1\"\n\
                     wire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n"
                );
                if trusted {
                    config += &format!("[projects.\"{folder}\"]\ntrust_level = \"trusted\"\n");
                }
                fs::write(home.path(".codex/config.toml"), config).expect("written");
                command.env("MOCK_KEY", KEY).arg("codex");
            }
            other => panic!("nobody knows how to start {other}"),
        }
        let out = command.output().expect("tapdeck runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self { home, model }
    }

    fn tapdeck(&self, args: &[&str]) -> (bool, String) {
        let out = self.home.run(args);
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.success(), text)
    }

    pub fn is(&self, state: &str) {
        let (there, said) = self.tapdeck(&["wait", "agent", "--state", state, "--timeout", SECONDS]);
        assert!(there, "not {state}: {said}\n{}", self.picture());
    }

    /// Presses a key until the program is idle: keys that come just when a dialog does are lost on
    /// some.
    fn press(&self, key: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.tapdeck(&["send", "agent", key]);
            if self.tapdeck(&["wait", "agent", "--state", "idle", "--timeout", "3"]).0 {
                return;
            }
            assert!(Instant::now() < deadline, "{key} leads nowhere\n{}", self.picture());
        }
    }

    fn picture(&self) -> String {
        let ask = |args: &[&str]| self.tapdeck(args).1;
        format!("{}\n{}", ask(&["explain", "agent"]), ask(&["peek", "agent"]))
    }

    /// Delivers a prompt, and gives back what was said about it.
    fn paste(&self, text: &str) -> Value {
        let args = ["paste", "agent", "-", "--json", "--timeout", SECONDS];
        let mut command = self.home.tapdeck(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tapdeck runs");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("taken");
        let out = child.wait_with_output().expect("it ends");
        serde_json::from_slice(&out.stdout).unwrap_or(Value::Null)
    }

    fn submit(&self, text: &str) {
        let outcome = self.paste(text);
        assert_eq!(outcome["outcome"], json!("submitted"), "{text:.200}: {outcome}\n{}", self.picture());
    }

    /// The last turn.
    fn turn(&self) -> Value {
        let (there, text) = self.tapdeck(&["turns", "show", "agent", "--json"]);
        assert!(there, "{text}\n{}", self.picture());
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tapdeck(&["kill", "agent"]);
        end_daemons(&self.home, &self.model);
    }
}

/// Ends the daemons that some agents leave behind: those with the home of this test, but the model.
pub fn end_daemons(home: &Home, model: &Model) {
    let own = home.path("");
    let wanted = format!("HOME={}", own.to_str().expect("text").trim_end_matches('/'));
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
        if environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
            && let Some(pid) = pid.and_then(rustix::process::Pid::from_raw)
            && Some(pid) != rustix::process::Pid::from_raw(model.child.id().cast_signed())
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Keeps the machine busy.
struct Load(Arc<AtomicBool>);

impl Load {
    fn of(threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stop)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// The prompts: short and long, of one line and of many, with all that a shell or an editor might
/// trip over.
fn prompt(i: usize) -> String {
    match i % 20 {
        3 => {
            let lines: Vec<String> =
                (0..1200).map(|n| format!("line {n} of prompt {i} {}", "x".repeat(64))).collect();
            format!("{}\nend of prompt {i}.", lines.join("\n"))
        }
        n if n % 4 == 1 => format!(
            "prompt {i}, first line\n\n  - a list, with \"quotes\" and `ticks`\n  - grüße, 漢字 and 🙂\n\nend of prompt {i}."
        ),
        n if n % 4 == 2 => {
            let lines: Vec<String> = (0..25).map(|n| format!("{n}: fn f{n}() {{ return {i}; }}")).collect();
            format!("{}\nend of prompt {i}.", lines.join("\n"))
        }
        n if n % 4 == 3 => format!(
            "prompt {i} in one line that is longer than the terminal is wide: {}end of prompt {i}.",
            "and on ".repeat(40)
        ),
        _ => format!("What is the capital of France? end of prompt {i}."),
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what this is run for")]
fn deliver_all(name: &str) {
    if !has(name) || !has("node") {
        return;
    }
    let count = number("TAPDECK_PROMPTS", 100);
    let agent = Agent::start(name, true);
    agent.is("idle");
    let _load = Load::of(number("TAPDECK_LOAD", 4));
    let mut failed = Vec::new();
    for i in 0..count {
        let outcome = agent.paste(&prompt(i));
        if outcome["outcome"] != json!("submitted") {
            failed.push(format!("{i}: {outcome}\n{}", agent.picture()));
            break;
        }
        agent.is("idle");
        let turn = agent.turn();
        let said = turn["text"].as_str().unwrap_or("");
        if said.is_empty() || said.contains(&format!("of prompt {i}")) {
            failed.push(format!("{i}: what was asked is no part of the answer: {turn}\n{}", agent.picture()));
            break;
        }
    }
    let asked = agent.model.asked();
    println!(
        "{name}: {} of {count} prompts reported as submitted, {} requests",
        count - failed.len(),
        asked.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for i in 0..count {
        let end = format!("end of prompt {i}.");
        let times = asked.iter().filter(|a| a.trim_end().ends_with(&end)).count();
        let got: Vec<String> = asked.iter().map(|a| format!("{:.60}…", squeezed(a))).collect();
        assert_eq!(times, 1, "prompt {i} reached the model {times} times: {got:#?}\n{}", agent.picture());
    }
    for (i, got) in asked.iter().enumerate() {
        assert_eq!(squeezed(got), squeezed(&prompt(i)), "prompt {i} as the model got it");
    }
}

/// Text without what an agent may change about blanks.
fn squeezed(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn every_prompt_reaches_claude_once() {
    deliver_all("claude");
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn every_prompt_reaches_codex_once() {
    deliver_all("codex");
}

/// Start, dialog, prompt, streaming answer, permission question, interrupt, exit.
fn walk(name: &str, trust: Option<&str>, quit: &str) {
    if !has(name) || !has("node") {
        return;
    }
    let agent = Agent::start(name, false);
    if let Some(trust) = trust {
        agent.is("blocked");
        let outcome = agent.paste("not now");
        assert_eq!(outcome["outcome"], json!("blocked"), "{outcome}\n{}", agent.picture());
        while !agent.tapdeck(&["wait", "agent", "--text", trust, "--timeout", "2"]).0 {
            agent.tapdeck(&["send", "agent", "Down"]);
        }
        agent.press("Enter");
    } else {
        agent.is("idle");
    }
    agent.submit("What is the capital of France?");
    agent.is("idle");
    let turn = agent.turn();
    assert_eq!(turn["text"], json!("The capital of France is Paris.\n"));
    assert_eq!(
        (&turn["interrupted"], &turn["input"]),
        (&json!(false), &json!("What is the capital of France?"))
    );
    // An answer that takes its time: at work until its end, and no sooner done.
    agent.submit("Tell it slowly");
    agent.is("working");
    agent.is("idle");
    let turn = agent.turn();
    assert!(turn["text"].as_str().is_some_and(|t| t.contains("that is all.")), "{turn}\n{}", agent.picture());
    // A question back.
    agent.submit("Please write the note");
    agent.is("blocked");
    agent.press("Enter");
    let turn = agent.turn();
    assert!(
        turn["text"].as_str().is_some_and(|t| t.contains("The note is written.")),
        "{turn}\n{}",
        agent.picture()
    );
    // Broken off.
    agent.submit("Go on endlessly");
    agent.is("working");
    agent.tapdeck(&["wait", "agent", "--text", "and on and on", "--timeout", SECONDS]);
    agent.press("Escape");
    let turn = agent.turn();
    assert_eq!(turn["interrupted"], json!(true), "{turn}\n{}", agent.picture());
    let asked = agent.model.asked();
    assert_eq!(asked.iter().filter(|a| a.contains("endlessly")).count(), 1, "{asked:?}");
    agent.tapdeck(&["paste", "agent", "--no-enter", quit]);
    agent.tapdeck(&["wait", "agent", "--text", quit, "--timeout", SECONDS]);
    agent.tapdeck(&["wait", "agent", "--idle", "500", "--timeout", SECONDS]);
    agent.tapdeck(&["send", "agent", "Enter"]);
    agent.is("done");
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn claude_is_seen_through() {
    walk("claude", Some("^ *❯ Yes"), "/exit");
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn codex_is_seen_through() {
    walk("codex", None, "/quit");
}
