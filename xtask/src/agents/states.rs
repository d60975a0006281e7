//! Scripted situations with real agents: is each state that tapdeck reports true? The truth comes
//! from the model's log and from what the agent writes, and not from any rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::bus::Wanted;
use super::judge::{LAG_MS, Phase, Wrong, judge, latency};
use super::session::{COLS, Place, Session, Surroundings};
use super::{Agent, Options, clock, report};

/// How long the agent is watched once it is at rest: a late change is wrong as well.
const SETTLE: Duration = Duration::from_millis(1500);
const PATIENCE: f64 = 60.0;

const SURROUNDINGS: [Surroundings; 8] = [
    Surroundings { name: "plain", place: Place::Plain, rows: 35, loaded: false },
    Surroundings { name: "tmux", place: Place::Tmux, rows: 35, loaded: false },
    Surroundings { name: "loaded", place: Place::Plain, rows: 24, loaded: true },
    Surroundings { name: "TMUX=", place: Place::TmuxVariable, rows: 24, loaded: false },
    Surroundings { name: "screen", place: Place::Screen, rows: 35, loaded: false },
    Surroundings { name: "tall", place: Place::Plain, rows: 60, loaded: false },
    Surroundings { name: "tmux low", place: Place::Tmux, rows: 24, loaded: true },
    Surroundings { name: "screen tall", place: Place::Screen, rows: 60, loaded: false },
];

/// What is done with an agent.
#[derive(Clone, Copy)]
enum Act {
    /// From the start to the first prompt.
    Start,
    /// A prompt, answered as it says.
    Ask(&'static str),
    /// A prompt that brings a permission dialog, approved or denied.
    Permit(&'static str, bool),
    /// A prompt, and keys while it is answered: `true` once words have come.
    Break(&'static str, &'static [&'static str], bool),
    /// A prompt, and another size while it is answered.
    Resize(&'static str),
    /// A command, what it shows, the state then, and the keys that close it.
    Panel(&'static str, &'static str, &'static str, &'static [&'static str]),
    /// A prompt, the keys that open a menu while it is answered, what that shows, the keys that
    /// close it, and whether these end the turn.
    Menu(&'static str, &'static [&'static str], &'static str, &'static [&'static str], bool),
    Exit(&'static str),
}

type Situation = (&'static str, Act);

const COMMON: [Situation; 11] = [
    ("start", Act::Start),
    ("short answer", Act::Ask("Say something short")),
    ("short answer again", Act::Ask("Say something short, please")),
    ("stream", Act::Ask("Say it slowly, in 30 words")),
    ("silence", Act::Ask("Please be silent for 25 seconds")),
    ("100 lines", Act::Ask("Say it in 100 lines")),
    ("dialog approved", Act::Permit("Please write the note a", true)),
    ("dialog denied", Act::Permit("Please write the note b", false)),
    ("words, then a dialog", Act::Permit("Please tell first, slowly, then write the note c", true)),
    ("silence, then a dialog", Act::Permit("Please be silent for 4 seconds and write the note d", true)),
    ("resize in mid-answer", Act::Resize("Say it slowly, in 40 words")),
];

const CLAUDE: [Situation; 9] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape"], true)),
    ("Ctrl-C in mid-answer", Act::Break("Go on and on, endlessly", &["C-c"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape"], false)),
    ("/model", Act::Panel("/model", "Select model", "blocked", &["Escape"])),
    ("/help", Act::Panel("/help", "For more help", "blocked", &["Escape"])),
    ("/status", Act::Panel("/status", "Version:", "blocked", &["Escape"])),
    ("/usage", Act::Panel("/usage", "Usage", "blocked", &["Escape"])),
    ("unknown command", Act::Panel("/nonsense", "Unknown", "idle", &[])),
    ("exit", Act::Exit("/exit")),
];

const CODEX: [Situation; 9] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape"], false)),
    ("task is still running", Act::Menu("Say it slowly, in 60 words", &["C-c"], RUNNING, &["Escape"], false)),
    ("task is cancelled", Act::Menu("Go on and on, endlessly", &["C-c"], RUNNING, &["Enter"], true)),
    ("/model", Act::Panel("/model", "Select Model", "blocked", &["Escape"])),
    ("/diff", Act::Panel("/diff", "q close", "blocked", &["q"])),
    ("/status", Act::Panel("/status", "Session:", "idle", &[])),
    ("unknown command", Act::Panel("/nonsense", "Unrecognized", "idle", &["C-u"])),
    ("exit", Act::Exit("/quit")),
];
const GEMINI: [Situation; 5] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape"], false)),
    ("/model", Act::Panel("/model", "Select Model", "blocked", &["Escape"])),
    ("unknown command", Act::Panel("/nonsense", "Unknown", "idle", &[])),
    ("exit", Act::Exit("/quit")),
];
const OPENCODE: [Situation; 5] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape", "Escape"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape", "Escape"], false)),
    ("/models", Act::Panel("/models", "Select model", "blocked", &["Escape"])),
    ("/help", Act::Panel("/help", "Press ctrl", "blocked", &["Escape"])),
    ("exit", Act::Exit("/exit")),
];
const AIDER: [Situation; 3] = [
    ("Ctrl-C in mid-answer", Act::Break("Go on endlessly", &["C-c"], true)),
    ("unknown command", Act::Panel("/nonsense", "Invalid command", "idle", &[])),
    ("exit", Act::Exit("/exit")),
];
const COPILOT: [Situation; 4] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape", "Escape"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape", "Escape"], false)),
    ("/model", Act::Panel("/model", "Search models", "blocked", &["Escape"])),
    ("exit", Act::Exit("/exit")),
];
const CLINE: [Situation; 3] = [
    ("Esc in mid-answer", Act::Break("Go on endlessly", &["Escape"], true)),
    ("Esc in the silence", Act::Break("Be silent for 20 seconds", &["Escape"], false)),
    ("exit", Act::Exit("/quit")),
];
const RUNNING: &str = "Task is still running";

/// What became of a situation.
pub(super) struct Outcome {
    pub(super) agent: Agent,
    pub(super) around: &'static str,
    pub(super) rows: u16,
    pub(super) situation: &'static str,
    pub(super) expected: String,
    pub(super) seen: Vec<(f64, String, String)>,
    pub(super) wrong: Vec<Wrong>,
    /// From the last byte of the answer to idle.
    pub(super) idle_ms: Option<f64>,
    /// From the drawn dialog to blocked.
    pub(super) blocked_ms: Option<f64>,
    /// Keys that a dialog did not take, pressed as soon as it was reported.
    pub(super) lost_keys: u32,
    pub(super) notes: Vec<String>,
}

impl Outcome {
    pub(super) fn failed(&self) -> bool {
        !self.wrong.is_empty() || !self.notes.is_empty()
    }

    /// Whether a prompt was not taken.
    fn undelivered(&self) -> bool {
        self.notes.iter().any(|note| note.contains("nothing arrived"))
    }

    pub(super) fn to_json(&self) -> Value {
        let seen: Vec<Value> =
            self.seen.iter().map(|(at, state, rule)| json!([at.round(), state, rule])).collect();
        json!({
            "agent": self.agent.name(), "around": self.around, "rows": self.rows,
            "situation": self.situation, "ok": !self.failed(), "expected": self.expected, "seen": seen,
            "wrong": self.wrong.iter().map(Wrong::to_json).collect::<Vec<_>>(),
            "idle_ms": self.idle_ms.map(f64::round), "blocked_ms": self.blocked_ms.map(f64::round),
            "lost_keys": self.lost_keys, "notes": self.notes,
        })
    }
}

/// Runs the situations, and reports on them.
pub(super) fn run(options: &Options, path: &std::ffi::OsStr) -> Result<bool> {
    let mut outcomes = Vec::new();
    for agent in &options.agents {
        let mut left = options.count.unwrap_or(usize::MAX);
        let own: &[Situation] = match agent {
            Agent::Claude => &CLAUDE,
            Agent::Codex => &CODEX,
            Agent::Gemini | Agent::Qwen => &GEMINI,
            Agent::Opencode => &OPENCODE,
            Agent::Aider => &AIDER,
            Agent::Copilot => &COPILOT,
            Agent::Cline => &CLINE,
        };
        let wanted = |(name, act): &&Situation| {
            options.only.as_deref().is_none_or(|o| name.contains(o) || matches!(act, Act::Start))
        };
        let all: Vec<&Situation> = COMMON.iter().chain(own).filter(wanted).collect();
        for around in SURROUNDINGS {
            if left == 0 || options.around.as_deref().is_some_and(|a| a != around.name) {
                continue;
            }
            let some = &all[..all.len().min(left)];
            left -= some.len();
            let session = Session::start(*agent, around, options, path)?;
            let _load = around.loaded.then(Load::start);
            let mut undelivered = 0;
            for (name, act) in some {
                let outcome = Script::new(&session, name).play(*act, options);
                report::situation(&outcome, options)?;
                undelivered = if outcome.undelivered() { undelivered + 1 } else { 0 };
                if outcome.failed() && options.pictures {
                    println!("{}", session.picture());
                }
                outcomes.push(outcome);
                if undelivered == 3 {
                    println!("    no prompt is taken any more: the rest is left out");
                    break;
                }
            }
        }
    }
    report::states(&outcomes, options)
}

/// Keeps a core of the machine busy.
struct Load(Arc<AtomicBool>);

impl Load {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(stop)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A situation as it is played.
struct Script<'a> {
    session: &'a Session,
    situation: &'static str,
    began: f64,
    phases: Vec<Phase>,
    /// Since when the agent has been at rest, and when the answer ended before that.
    ended: Option<f64>,
    dialog: Option<f64>,
    lost_keys: u32,
}

/// A prompt that has arrived.
struct Asked {
    /// The end of the answer on the screen.
    over: Wanted,
    /// The request.
    id: u64,
    /// When the request had arrived and `paste` had returned.
    from: f64,
}

impl<'a> Script<'a> {
    fn new(session: &'a Session, situation: &'static str) -> Self {
        let began = if situation == "start" { session.started } else { clock() };
        Self { session, situation, began, phases: Vec::new(), ended: None, dialog: None, lost_keys: 0 }
    }

    fn play(mut self, act: Act, options: &Options) -> Outcome {
        let done = self.act(act, options);
        // What is wrong with the situation itself, such as an agent that does not go on.
        let notes: Vec<String> = done.err().map(|e| format!("{e:#}")).into_iter().collect();
        let until = clock();
        let states = self.session.watch.states();
        let first = states.iter().rposition(|s| s.at <= self.began).unwrap_or(0);
        let seen = &states[first..];
        let expected: Vec<&str> = self.phases.iter().map(|p| p.right[0]).collect();
        Outcome {
            agent: self.session.agent,
            around: self.session.around.name,
            rows: self.session.around.rows,
            situation: self.situation,
            expected: expected.join(" > "),
            seen: seen.iter().map(|s| (s.at - self.began, s.name.clone(), s.rule.clone())).collect(),
            wrong: judge(&states, &self.phases, self.began),
            idle_ms: self.ended.and_then(|end| latency(&states, "idle", end, until)),
            blocked_ms: self.dialog.and_then(|at| {
                let blocked = states.iter().find(|s| s.name == "blocked" && s.at >= at - 1000.0);
                blocked.map(|s| (s.at - at).max(0.0))
            }),
            lost_keys: self.lost_keys,
            notes,
        }
    }

    fn act(&mut self, act: Act, options: &Options) -> Result<()> {
        match act {
            Act::Start => self.start(),
            Act::Ask(text) => {
                let asked = self.ask(&options.shortened(text))?;
                self.answered(&asked, asked.id)
            }
            Act::Permit(text, yes) => self.permit(text, yes),
            Act::Break(text, keys, words) => self.interrupt(text, keys, words),
            Act::Resize(text) => {
                let asked = self.ask(text)?;
                std::thread::sleep(Duration::from_millis(1500));
                let rows = self.session.around.rows;
                self.session.resize(COLS - 20, rows - 4)?;
                std::thread::sleep(Duration::from_millis(1000));
                self.session.resize(COLS, rows)?;
                self.answered(&asked, asked.id)
            }
            Act::Panel(command, shows, state, keys) => {
                let shown = self.session.watch.expect(shows, false);
                self.session.type_command(command);
                let right: &[&str] = if state == "idle" { &["idle"] } else { &["blocked"] };
                let closed = self.panel(shown, shows, right, keys)?;
                self.rest(closed)
            }
            Act::Menu(text, open, shows, close, ends) => {
                let asked = self.ask(text)?;
                std::thread::sleep(Duration::from_millis(1000));
                self.phases.push(busy("busy", asked.from, clock()));
                let shown = self.session.watch.expect(shows, false);
                self.session.press(open);
                let closed = self.panel(shown, shows, &["blocked"], close)?;
                if ends {
                    let gone = self.session.model.wait_end(asked.id, 10.0).context("not interrupted")?;
                    return self.rest(gone.at.max(closed));
                }
                let asked = Asked { from: closed + LAG_MS, ..asked };
                self.answered(&asked, asked.id)
            }
            Act::Exit(command) => self.exit(command),
        }
    }

    fn start(&mut self) -> Result<()> {
        let idle = self.session.watch.state("idle", self.began, PATIENCE).context("never idle")?;
        let asked = self.ask("Say hello")?;
        let first = self.session.watch.states().iter().find(|s| s.name == "idle").map_or(idle, |s| s.at);
        self.phases.insert(
            0,
            Phase { name: "start", from: self.began, to: first, right: &["working", "unknown"], busy: false },
        );
        self.answered(&asked, asked.id)
    }

    /// Delivers a prompt, and waits until it has arrived.
    fn ask(&mut self, text: &str) -> Result<Asked> {
        let mark = format!("m{:.0}", clock() % 1e7);
        let over = self.session.watch.expect(&format!("Over-{mark}"), false);
        let since = clock();
        let said = self.session.paste(format!("{text} (mark {mark})").as_bytes(), "20s")?;
        let returned = clock();
        if said["outcome"] != json!("submitted") {
            let arrived = self.session.model.wait_asked(since, &mark, 1.0).map_or("nothing", |_| "it");
            bail!("{said}, and {arrived} arrived");
        }
        let asked =
            self.session.model.wait_asked(since, &mark, 10.0).context("submitted, but nothing arrived")?;
        Ok(Asked { over, id: asked.id, from: returned.max(asked.at) })
    }

    /// The answer to this request, to its end.
    fn answered(&mut self, asked: &Asked, id: u64) -> Result<()> {
        let end = self.session.model.wait_end(id, PATIENCE).context("the answer does not end")?;
        self.phases.push(busy("busy", asked.from, end.at));
        let drawn = self.session.watch.shown(asked.over, 20.0);
        self.ended = Some(end.at);
        let drawn = drawn.context("the end of the answer was never drawn")?;
        self.rest(drawn.max(end.at))
    }

    /// At rest since then.
    fn rest(&mut self, since: f64) -> Result<()> {
        let idle = self.session.watch.state("idle", since, 10.0);
        std::thread::sleep(SETTLE);
        self.phases.push(Phase { name: "rest", from: since, to: clock(), right: &["idle"], busy: false });
        idle.map(|_| ()).context("not idle after 10 s")
    }

    fn permit(&mut self, text: &str, yes: bool) -> Result<()> {
        let (question, no): (_, &[&str]) = match self.session.agent {
            Agent::Claude => ("Do you want to", &["Escape"]),
            Agent::Codex => ("Would you like to run", &["Escape"]),
            Agent::Gemini | Agent::Qwen => ("Apply this change?", &["Escape"]),
            Agent::Opencode => ("Permission required", &["Escape"]),
            Agent::Aider => ("", &["n", "Enter"]),
            Agent::Copilot => ("Do you want to create", &["Escape"]),
            Agent::Cline => ("Approve tool call?", &["n"]),
        };
        // Aider's questions stay in sight, and it asks for the next prompt below them.
        let note = text.rsplit(' ').next().unwrap_or_default();
        let own = format!("{note}.txt Create new file? (Y)es/(N)o");
        let question = if question.is_empty() { &own } else { question };
        let shown = self.session.watch.expect(question, false);
        let asked = self.ask(text)?;
        let called = self.session.model.wait_end(asked.id, PATIENCE).context("no tool call")?;
        if called.kind != "tool" && self.session.agent != Agent::Aider {
            bail!("the model did not call the tool: {called:?}");
        }
        let drawn = self.session.watch.shown(shown, 20.0).context("no dialog")?;
        self.phases.push(busy("before the dialog", asked.from, drawn));
        self.dialog = Some(drawn);
        let blocked = self.session.watch.state("blocked", asked.from, 10.0);
        let (answered, gone) = match (self.session.agent, yes) {
            (Agent::Aider, true) => (format!("Applied edit to {note}.txt"), false),
            (Agent::Aider, false) => (format!("Skipping edits to {note}.txt"), false),
            _ => (question.to_owned(), true),
        };
        let gone = self.session.watch.expect(&answered, gone);
        let went = self.press_until(drawn, if yes { &["Enter"] } else { no }, gone)?;
        blocked.context("never blocked")?;
        if !yes || self.session.agent == Agent::Aider {
            return self.rest(went);
        }
        let next = self.session.model.wait_asked(called.at, "", 10.0).context("the tool gave no result")?;
        let asked = Asked { from: next.at.max(went + LAG_MS), ..asked };
        self.answered(&asked, next.id)
    }

    /// Answers a dialog, again where a key is lost. Returns when it went.
    fn press_until(&mut self, drawn: f64, keys: &[&str], gone: Wanted) -> Result<f64> {
        for _ in 0..10 {
            let pressed = clock();
            self.session.press(keys);
            if let Some(went) = self.session.watch.shown(gone, 2.0) {
                self.phases.push(Phase {
                    name: "dialog",
                    from: drawn,
                    to: pressed,
                    right: &["blocked"],
                    busy: true,
                });
                return Ok(went);
            }
            self.lost_keys += 1;
        }
        bail!("the dialog takes no keys")
    }

    fn interrupt(&mut self, text: &str, keys: &[&str], words: bool) -> Result<()> {
        let asked = self.ask(text)?;
        if words {
            let some = self.session.watch.expect("and on and on and on", false);
            self.session.watch.shown(some, 20.0).context("no words")?;
        }
        std::thread::sleep(Duration::from_millis(1500));
        let pressed = clock();
        self.phases.push(busy("busy", asked.from, pressed));
        self.session.press(keys);
        let gone = self.session.model.wait_end(asked.id, 10.0).context("not interrupted")?;
        self.rest(gone.at)?;
        // Some give the prompt back that they did not answer.
        self.session.press(&["C-e", "C-u"]);
        self.session.watch.quiet(300.0, 3.0);
        Ok(())
    }

    /// A panel that is about to be shown, until it is closed. Returns when it was.
    fn panel(
        &mut self,
        shown: Wanted,
        text: &str,
        right: &'static [&'static str],
        keys: &[&str],
    ) -> Result<f64> {
        let drawn = self.session.watch.shown(shown, 10.0);
        std::thread::sleep(SETTLE);
        let closed = clock();
        if let Some(from) = drawn {
            self.phases.push(Phase { name: "panel", from, to: closed, right, busy: false });
        }
        let gone = self.session.watch.expect(text, true);
        if !keys.is_empty() {
            self.session.press(keys);
        }
        drawn.with_context(|| format!("{text:?} was not shown"))?;
        if right == ["idle"] {
            return Ok(closed);
        }
        self.session.watch.shown(gone, 5.0).with_context(|| format!("{keys:?} does not close it"))
    }

    fn exit(&mut self, command: &str) -> Result<()> {
        self.session.type_command(command);
        self.session.watch.closed(20.0).then_some(()).context("never done")
    }
}

fn busy(name: &'static str, from: f64, to: f64) -> Phase {
    Phase { name, from, to, right: &["working"], busy: true }
}
