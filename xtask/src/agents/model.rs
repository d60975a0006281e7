//! The model on the loopback that the agents talk to, and its log: what it was asked, and when its
//! answers left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Agent, clock};

/// How requests begin that an agent makes for itself.
const OWN: [&str; 2] = ["[SUGGESTION MODE", "Managed memory has"];

/// A line of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) event: String,
    pub(super) at: f64,
    pub(super) id: u64,
    pub(super) tools: bool,
    pub(super) last: String,
    pub(super) kind: String,
}

/// A running model.
pub(super) struct Model {
    child: Child,
    pub(super) port: String,
    log: PathBuf,
    /// Whether the agent's own requests have tools.
    tools: bool,
}

impl Model {
    pub(super) fn start(folder: &Path, agent: Agent) -> Result<Self> {
        let script = crate::root()?.join("cassettes/agents/fake-model.mjs");
        let (port, log) = (folder.join("port"), folder.join("model.jsonl"));
        let child = Command::new("node")
            .arg(script)
            .args([&port, &log, &folder.join("project")])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start node")?;
        let mut model = Self { child, port: String::new(), log, tools: agent != Agent::Aider };
        let deadline = clock() + 60_000.0;
        while model.port.is_empty() {
            ensure!(clock() < deadline, "the model does not listen after 60 s");
            std::thread::sleep(Duration::from_millis(20));
            model.port = fs::read_to_string(&port).unwrap_or_default();
        }
        Ok(model)
    }

    /// The whole log.
    pub(super) fn log(&self) -> Vec<Line> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        // The last line may not be complete yet.
        let lines = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        lines
            .map(|l| Line {
                event: text(&l["event"]),
                at: l["t"].as_f64().unwrap_or_default(),
                id: l["id"].as_u64().unwrap_or_default(),
                tools: l["tools"].as_array().is_some_and(|t| !t.is_empty()),
                last: text(&l["last"]),
                kind: text(&l["kind"]),
            })
            .collect()
    }

    /// Requests of the conversation itself since then. Those for titles and the like have no tools,
    /// and others are known by their words.
    pub(super) fn asked_since(&self, since: f64) -> Vec<Line> {
        let is_own = |l: &Line| OWN.iter().any(|own| l.last.starts_with(own));
        self.log()
            .into_iter()
            .filter(|l| l.event == "asked" && l.tools == self.tools && l.at >= since && !is_own(l))
            .collect()
    }

    /// Waits until a request of the conversation arrives whose last prompt has this in it.
    pub(super) fn wait_asked(&self, since: f64, text: &str, seconds: f64) -> Option<Line> {
        wait(seconds, || self.asked_since(since).into_iter().find(|l| l.last.contains(text)))
    }

    /// Waits until the answer to this request has left, or the agent has hung up.
    pub(super) fn wait_end(&self, id: u64, seconds: f64) -> Option<Line> {
        wait(seconds, || {
            self.log().into_iter().find(|l| l.id == id && (l.event == "end" || l.event == "gone"))
        })
    }
}

impl Model {
    pub(super) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait<T>(seconds: f64, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = clock() + seconds * 1000.0;
    loop {
        let found = look();
        if found.is_some() || clock() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
