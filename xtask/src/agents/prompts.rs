//! Prompts of all kinds, delivered to real agents: is each verdict of `paste` true? The model says
//! what arrived, byte by byte.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

use super::corpus::corpus;
use super::session::{Place, Session, Surroundings};
use super::{Agent, Options, clock, report};

const AROUND: Surroundings = Surroundings { name: "plain", place: Place::Plain, rows: 35, loaded: false };

/// A prompt, and what became of it.
pub(super) struct Delivery {
    pub(super) agent: Agent,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) outcome: String,
    pub(super) evidence: String,
    /// What the model received.
    pub(super) got: Vec<String>,
    pub(super) ms: f64,
    /// From the end of the answer to idle.
    pub(super) idle_ms: Option<f64>,
    /// Whether a prompt after it could not be delivered.
    pub(super) spoilt: bool,
}

impl Delivery {
    pub(super) fn exact(&self) -> bool {
        self.outcome == "submitted" && self.got == [self.text.as_str()]
    }

    /// Whether this is a command, which the agent runs itself: nothing need arrive.
    fn is_command(&self) -> bool {
        let leaves = !matches!(self.agent, Agent::Claude | Agent::Codex)
            && ["exit", "quit", ":q!"].contains(&self.text.as_str());
        leaves || self.text.starts_with(['/', '!']) && self.text.trim_end().len() > 1
    }

    /// `submitted` is true if exactly this prompt arrived; any other verdict if nothing did.
    pub(super) fn true_verdict(&self) -> bool {
        if self.is_command() && self.got.iter().all(|got| got.starts_with("<bash-input>")) {
            return true;
        }
        if self.outcome != "submitted" {
            return self.got.is_empty();
        }
        let wanted = as_delivered(self.agent, &self.text);
        self.exact() || (self.got.len() == 1 && as_delivered(self.agent, &self.got[0]) == wanted)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "agent": self.agent.name(), "prompt": self.name, "ok": self.true_verdict() && !self.spoilt,
            "outcome": self.outcome, "evidence": self.evidence, "exact": self.exact(), "ms": self.ms.round(),
            "idle_ms": self.idle_ms.map(f64::round), "spoilt": self.spoilt, "text": self.text, "got": self.got,
        })
    }
}

/// A prompt with the changes that tapdeck and the agents make themselves.
fn as_delivered(agent: Agent, text: &str) -> String {
    // Tapdeck removes control characters, and all end lines with LF.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    if agent == Agent::Claude {
        // It composes characters, and drops those that are not seen.
        text = text.replace('\t', "    ").replace(['\u{2028}', '\u{2029}'], "\n");
        text = text.chars().filter(|c| !is_invisible(*c)).nfc().collect();
    }
    text.trim().to_owned()
}

/// Whether this is a character that formats text and is not seen itself.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Delivers the prompts, and reports on them.
pub(super) fn run(options: &Options, path: &std::ffi::OsStr) -> Result<bool> {
    let mut deliveries = Vec::new();
    for agent in &options.agents {
        let mut session = None;
        for (i, (name, text)) in corpus(options.count.unwrap_or(500), options.seed).into_iter().enumerate() {
            if options.only.as_deref().is_some_and(|only| !name.contains(only)) {
                continue;
            }
            let live = match session.take() {
                Some(live) => live,
                None => ready(Session::start(*agent, AROUND, options, path)?),
            };
            let mut delivery = deliver(&live, name, text)?;
            let goes_on =
                delivery.outcome == "submitted" && delivery.true_verdict() || probe(&live, &mut delivery, i)?;
            report::delivery(&delivery, options)?;
            if (!delivery.true_verdict() || delivery.spoilt) && options.pictures {
                println!("{}", live.picture());
            }
            deliveries.push(delivery);
            session = goes_on.then_some(live);
        }
    }
    report::prompts(&deliveries, &options.agents, options)
}

fn ready(session: Session) -> Session {
    session.watch.state("idle", session.started, 60.0);
    session
}

fn deliver(session: &Session, name: String, text: String) -> Result<Delivery> {
    let since = clock();
    let said = session.paste(text.as_bytes(), "5s")?;
    let ms = clock() - since;
    let word = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    let (outcome, evidence) = (word("outcome"), word("evidence"));
    let mut idle_ms = None;
    if outcome == "submitted"
        && let Some(asked) = session.model.wait_asked(since, "", 5.0)
        && let Some(end) = session.model.wait_end(asked.id, 30.0)
    {
        idle_ms = session.watch.state("idle", end.at, 10.0).map(|at| at - end.at);
    } else {
        // What was not delivered may still arrive late.
        std::thread::sleep(Duration::from_millis(1500));
    }
    let got = session.model.asked_since(since).into_iter().map(|l| l.last).collect();
    Ok(Delivery { agent: session.agent, name, text, outcome, evidence, got, ms, idle_ms, spoilt: false })
}

/// Whether the next prompt arrives, if need be once the input field has been emptied by hand.
fn probe(session: &Session, after: &mut Delivery, number: usize) -> Result<bool> {
    if session.watch.closed(0.0) {
        return Ok(false);
    }
    for keys in [&[][..], &["Escape", "C-e", "C-u", "C-u"], &["C-c"]] {
        if !keys.is_empty() {
            after.spoilt = true;
            for key in keys {
                session.press(&[key]);
                session.watch.quiet(200.0, 2.0);
            }
        }
        let probe = deliver(session, "probe".into(), format!("probe number {number}"))?;
        if probe.outcome == "submitted" && probe.true_verdict() {
            return Ok(true);
        }
    }
    Ok(false)
}
