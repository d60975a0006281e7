//! The flow as a state machine without I/O: it looks at the screen when there is something new or some time has
//! passed, and says what to send. Whatever it acts on must have stood still for a moment: a half-drawn panel is
//! no panel. What it reads must have been written after the keys that asked for it.

use std::cmp::Ordering;

use tapdeck_tape::cassette::Model;
use tapdeck_term::Modes;
use tapdeck_term::keys::{KeyPress, encode, text};

use super::flow::{Agent, More, Pattern, Probe, key_of};
use super::parse::{Facts, Status, sign};

/// How long something must hold before it is acted on.
const SETTLE_MS: u64 = 300;
/// How long typed text may take to be drawn; then it is sent anyway, as a person would.
const DRAWN_MS: u64 = 3_000;
/// How long the program may take to be ready, and a panel to be complete.
const START_LIMIT_MS: u64 = 45_000;
const PANEL_LIMIT_MS: u64 = 20_000;
/// How many keys a dialog is worth.
const DIALOG_TRIES: usize = 6;
/// Rows above the screen that are looked at.
const ROWS_ABOVE: usize = 500;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Nothing more is wanted.
    Finish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    /// At this word of this step.
    Typing {
        step: usize,
        word: usize,
    },
    Waiting {
        step: usize,
    },
    Over,
}

/// What was seen and is waited for to stand still.
#[derive(Debug, Clone, PartialEq)]
enum Sight {
    Dialog(usize),
    Sign(Status, String),
    Ready,
    Drawn,
    Done(Facts),
}

/// A probe on its way.
#[derive(Debug)]
pub struct Machine<'a> {
    agent: &'a Agent,
    probe: &'a Probe,
    phase: Phase,
    /// When the phase began.
    since_ms: u64,
    sight: Option<(Sight, u64)>,
    tries: Vec<usize>,
    /// How often more of a panel was asked for.
    more: Vec<usize>,
    /// Output before this place is stale.
    sent_at: u64,
    result: Option<(Status, String)>,
    facts: Facts,
}

impl<'a> Machine<'a> {
    /// A probe of a program that is about to be started.
    pub fn new(agent: &'a Agent, probe: &'a Probe) -> Self {
        Self {
            agent,
            probe,
            phase: Phase::Starting,
            since_ms: 0,
            sight: None,
            tries: vec![0; agent.dialog.len()],
            more: vec![0; probe.more.len()],
            sent_at: 0,
            result: None,
            facts: Facts::default(),
        }
    }

    /// What came of it, and a sentence about it.
    pub fn result(&self) -> Option<(Status, &str)> {
        self.result.as_ref().map(|(status, detail)| (*status, detail.as_str()))
    }

    /// What was read.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Looks at the screen.
    pub fn look(&mut self, now_ms: u64, model: &Model) -> Option<Action> {
        let action = match self.phase {
            Phase::Starting => self.starting(now_ms, model),
            Phase::Typing { step, word } => self.typing(now_ms, model, step, word),
            Phase::Waiting { step } => self.waiting(now_ms, model, step),
            Phase::Over => Some(Action::Finish),
        };
        if self.phase == Phase::Over { Some(Action::Finish) } else { action }
    }

    /// The program has ended.
    pub fn exited(&mut self, model: &Model) {
        if self.phase == Phase::Over {
            return;
        }
        let rows = rows(model, 0);
        if self.probe.on_exit {
            self.facts = Facts::read(self.probe, &rows);
            let missing = self.facts.missing(self.probe);
            if missing.is_empty() {
                return self.finish(Status::Ok, "read off what it printed".into());
            }
        }
        match sign(self.agent, &rows) {
            Some((status, row)) => self.finish(status, row),
            None => {
                let last = rows.iter().rev().find(|r| !r.trim().is_empty()).map_or("", |r| r.trim());
                let what = if self.probe.on_exit {
                    "what it printed lacks what was asked for"
                } else {
                    "it ended early"
                };
                self.finish(Status::Error, format!("{what}; the last it said: {last:?}"));
            }
        }
    }

    fn starting(&mut self, now_ms: u64, model: &Model) -> Option<Action> {
        if now_ms >= self.since_ms + START_LIMIT_MS {
            let seconds = START_LIMIT_MS / 1000;
            self.finish(Status::Error, format!("it was not ready for a command within {seconds} s"));
            return None;
        }
        if self.probe.on_exit {
            return None;
        }
        let rows = rows(model, 0);
        let any = |p: &Pattern| rows.iter().any(|row| p.is_match(row));
        let dialog = self.agent.dialog.iter().zip(&self.tries);
        let dialog = dialog.into_iter().position(|(d, tries)| *tries < DIALOG_TRIES && any(&d.when));
        let sight = match dialog {
            Some(i) => Some(Sight::Dialog(i)),
            None => match sign(self.agent, &rows) {
                Some((status, row)) => Some(Sight::Sign(status, row)),
                None => self.probe.ready.as_ref().is_some_and(any).then_some(Sight::Ready),
            },
        };
        match self.settled(sight, now_ms)? {
            Sight::Dialog(i) => {
                self.tries[i] += 1;
                let modes = model.term().modes();
                let dialog = &self.agent.dialog[i];
                if let Some(key) = dialog.choose.as_ref().and_then(|choose| towards(&rows, choose)) {
                    return Some(Action::Send(encode(key, &modes)));
                }
                Some(Action::Send(bytes_of(&dialog.keys, &modes)))
            }
            Sight::Sign(status, row) => {
                self.finish(status, row);
                None
            }
            _ => {
                self.enter(Phase::Typing { step: 0, word: 0 }, now_ms);
                None
            }
        }
    }

    fn typing(&mut self, now_ms: u64, model: &Model, step: usize, word: usize) -> Option<Action> {
        let words = &self.probe.steps[step].keys;
        let Some(current) = words.get(word) else {
            self.enter(Phase::Waiting { step }, now_ms);
            return None;
        };
        // A key right behind text can be swallowed: the text must be drawn first.
        if let Some(before) = word.checked_sub(1).map(|w| &words[w])
            && key_of(before).is_none()
        {
            let drawn = rows(model, 0).iter().any(|row| row.contains(before.as_str()));
            let settled = self.settled(drawn.then_some(Sight::Drawn), now_ms).is_some();
            if !settled && now_ms < self.since_ms + DRAWN_MS {
                return None;
            }
        }
        let modes = model.term().modes();
        let bytes = bytes_of(std::slice::from_ref(current), &modes);
        self.sent_at = model.fed();
        self.enter(Phase::Typing { step, word: word + 1 }, now_ms);
        Some(Action::Send(bytes))
    }

    fn waiting(&mut self, now_ms: u64, model: &Model, step: usize) -> Option<Action> {
        let fresh = rows(model, self.sent_at);
        let last = step + 1 == self.probe.steps.len();
        let shown = |p: &Pattern| fresh.iter().any(|row| p.is_match(row));
        let done = self.probe.steps[step].done.iter().all(shown);
        let facts = if done && last { Facts::read(self.probe, &fresh) } else { Facts::default() };
        let complete = done && (!last || facts.missing(self.probe).is_empty());
        let sight = match complete {
            true => Some(Sight::Done(facts)),
            false => sign(self.agent, &fresh).map(|(status, row)| Sight::Sign(status, row)),
        };
        match self.settled(sight, now_ms) {
            Some(Sight::Done(facts)) if last => {
                self.facts.merge(facts);
                let goes_on = |(more, used): (&More, &usize)| *used < more.times && shown(&more.when);
                if let Some(i) = self.probe.more.iter().zip(&self.more).position(goes_on) {
                    self.more[i] += 1;
                    self.enter(Phase::Waiting { step }, now_ms);
                    let modes = model.term().modes();
                    return Some(Action::Send(bytes_of(&self.probe.more[i].keys, &modes)));
                }
                self.finish(Status::Ok, "read off its screen".into());
            }
            Some(Sight::Done(_)) => self.enter(Phase::Typing { step: step + 1, word: 0 }, now_ms),
            Some(Sight::Sign(status, row)) => self.finish(status, row),
            _ if now_ms >= self.since_ms + PANEL_LIMIT_MS => {
                let all = rows(model, 0);
                let explains = |row: &&String| self.probe.late.iter().any(|p| p.is_match(row));
                if let Some(row) = all.iter().find(explains) {
                    self.finish(Status::Unavailable, row.trim().to_owned());
                    return None;
                }
                let missing = Facts::read(self.probe, &fresh).missing(self.probe).join(", ");
                let seconds = PANEL_LIMIT_MS / 1000;
                let missing = if missing.is_empty() { String::new() } else { format!(": {missing} missing") };
                self.finish(Status::Error, format!("the panel was not complete within {seconds} s{missing}"));
            }
            _ => {}
        }
        None
    }

    /// The sight, once it has been the same for long enough.
    fn settled(&mut self, sight: Option<Sight>, now_ms: u64) -> Option<Sight> {
        match (&self.sight, sight) {
            (_, None) => {
                self.sight = None;
                None
            }
            (Some((before, since)), Some(sight)) if *before == sight => {
                if now_ms < since + SETTLE_MS {
                    return None;
                }
                self.sight = None;
                Some(sight)
            }
            (_, Some(sight)) => {
                self.sight = Some((sight, now_ms));
                None
            }
        }
    }

    fn enter(&mut self, phase: Phase, now_ms: u64) {
        self.phase = phase;
        self.since_ms = now_ms;
        self.sight = None;
    }

    fn finish(&mut self, status: Status, detail: String) {
        self.phase = Phase::Over;
        self.result.get_or_insert((status, detail));
    }
}

/// Keys and texts as bytes, under the modes in force.
fn bytes_of(words: &[String], modes: &Modes) -> Vec<u8> {
    let word = |w: &String| key_of(w).map_or_else(|| text(w, modes), |key| encode(key, modes));
    words.iter().flat_map(word).collect()
}

/// The key that moves the mark of a menu towards a row; `None` when it is there, or there is no menu.
fn towards(rows: &[String], choose: &Pattern) -> Option<KeyPress> {
    let marked =
        rows.iter().position(|row| row.trim_start_matches([' ', '│']).starts_with(['❯', '›', '>']))?;
    let wanted = rows.iter().position(|row| choose.is_match(row))?;
    match marked.cmp(&wanted) {
        Ordering::Less => key_of("Down"),
        Ordering::Equal => None,
        Ordering::Greater => key_of("Up"),
    }
}

/// The rows that were written at or after a place in the output, some above the screen included.
pub(super) fn rows(model: &Model, since: u64) -> Vec<String> {
    let term = model.term();
    let above = term.scrollback_len().saturating_sub(ROWS_ABOVE);
    let lines = term.scrollback().skip(above).chain(term.screen());
    lines.filter(|line| line.written().is_some_and(|at| at >= since)).map(|line| line.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::flow::agent;
    use super::*;

    /// A screen that answers: pieces of output with the time at which they come, and what must have been sent
    /// before each.
    fn play(
        name: &str,
        probe: &str,
        script: &[(&str, &str)],
        exits: bool,
    ) -> (Status, String, Facts, Vec<String>) {
        let agent = agent(name).expect("an agent");
        let probe = agent.probe(probe).expect("a probe");
        let mut machine = Machine::new(&agent, &probe);
        let mut model = Model::new(agent.rows, agent.cols);
        let (mut now, mut next, mut sent) = (0, 0, Vec::<String>::new());
        while machine.result().is_none() && now < 200_000 {
            if let Some((after, output)) = script.get(next)
                && (after.is_empty() || sent.last().is_some_and(|s| s == after))
            {
                model.output(output.as_bytes());
                sent.push(String::new());
                next += 1;
            }
            match machine.look(now, &model) {
                Some(Action::Send(bytes)) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if key_of(&text).is_none() && !text.starts_with(['\r', '\t']) {
                        // What is typed is echoed.
                        model.output(&bytes);
                    }
                    sent.push(text);
                }
                Some(Action::Finish) => break,
                None => {}
            }
            if exits && next == script.len() && now > 1_000 {
                machine.exited(&model);
            }
            now += 50;
        }
        let (status, detail) = machine.result().map(|(s, d)| (s, d.to_owned())).expect("a result");
        sent.retain(|s| !s.is_empty());
        (status, detail, machine.facts().clone(), sent)
    }

    const USAGE: &str = "\x1b[2J\x1b[H Settings:  Status   Config   Usage\r\n\r\n Claude Max plan\r\n\r\n\
        Current session\r\n ███▌   7% used\r\n Resets 3pm (UTC)\r\n\r\n\
        Current week (all models)\r\n █████  94.5% used\r\n Resets Mar 4, 1pm (UTC)\r\n\r\n\
        Current week (Sonnet only)\r\n <1% used\r\n";

    #[test]
    fn claude_quota_with_a_dialog_in_the_way() {
        let script = [
            ("", "Do you trust the files in this folder?\r\n ❯ 1. Yes, proceed\r\n"),
            ("\r", "\x1b[2J\x1b[H Welcome\r\n 88% used\r\n❯ "),
            ("\r", USAGE),
        ];
        let (status, detail, facts, sent) = play("claude", "quota", &script, false);
        assert_eq!((status, detail.as_str()), (Status::Ok, "read off its screen"));
        assert_eq!(sent, ["\r", "/usage", "\r"]);
        let seen: Vec<_> =
            facts.windows.iter().map(|w| (w.limit_id.as_str(), w.used_percent, w.state.as_str())).collect();
        assert_eq!(
            seen,
            [("session", Some(7.0), "ok"), ("week", Some(94.5), "blocked"), ("week_sonnet", Some(1.0), "ok")]
        );
        assert_eq!(facts.windows[0].resets_at.as_deref(), Some("3pm (UTC)"));
        assert_eq!(facts.windows[2].resets_at, None, "that of another window is not taken");
        assert_eq!(facts.plan.as_deref(), Some("max"));
    }

    /// A trust dialog once chose "No, exit" by default, and Enter ended the agent.
    #[test]
    fn the_right_row_of_a_menu_is_chosen() {
        let menu = |mark: usize| {
            let row = |i, text| format!(" {} {text}\r\n", if i == mark { "❯" } else { " " });
            format!(
                "\x1b[2J\x1b[HIs this a project you trust?\r\n{}{}",
                row(0, "No, exit"),
                row(1, "Yes, I trust this folder")
            )
        };
        let (first, second) = (menu(0), menu(1));
        let script =
            [("", first.as_str()), ("\x1b[B", second.as_str()), ("\r", "\x1b[2J\x1b[H❯ "), ("\r", USAGE)];
        let (status, detail, _, sent) = play("claude", "quota", &script, false);
        assert_eq!(status, Status::Ok, "{detail}");
        assert_eq!(sent, ["\x1b[B", "\r", "/usage", "\r"]);
    }

    /// A panel that was there before the command once satisfied the wait.
    #[test]
    fn a_stale_panel_never_satisfies() {
        let stale = format!("{USAGE}\r\n❯ ");
        let (status, detail, facts, sent) = play("claude", "quota", &[("", stale.as_str())], false);
        assert_eq!(status, Status::Error, "{detail}");
        assert!(detail.contains("not complete") && detail.contains("session"), "{detail}");
        assert_eq!((facts, sent.len()), (Facts::default(), 2));
    }

    /// A half-drawn panel was once parsed.
    #[test]
    fn a_half_drawn_panel_is_waited_for() {
        let (first, rest) = USAGE.split_at(USAGE.find("Current week (all").expect("there"));
        let script = [("", "❯ "), ("\r", first), ("", rest)];
        let (status, _, facts, _) = play("claude", "quota", &script, false);
        assert_eq!((status, facts.windows.len()), (Status::Ok, 3));
        let (status, detail, ..) = play("claude", "quota", &script[..2], false);
        assert_eq!(status, Status::Error);
        assert!(detail.contains("week missing") || detail.contains("week"), "{detail}");
    }

    #[test]
    fn who_is_not_signed_in_is_told_apart() {
        let cases = [
            ("claude", "Not logged in · Please run /login\r\n❯ ", Status::Unauthenticated),
            ("claude", "Select login method:\r\n ❯ 1. Claude account\r\n", Status::Unauthenticated),
            ("codex", "Sign in with ChatGPT to use Codex\r\n> 1. Sign in\r\n", Status::Unauthenticated),
        ];
        for (name, screen, want) in cases {
            let (status, detail, ..) = play(name, "quota", &[("", screen)], false);
            assert_eq!(status, want, "{screen}: {detail}");
        }
        let (status, ..) = play(
            "claude",
            "quota",
            &[("", "Opus · API Usage Billing\r\n❯ "), ("\r", "Total cost: $0\r\n")],
            false,
        );
        assert_eq!(status, Status::Unavailable);
        // False friends are healthy: the probe goes on, and is only missing its panel here.
        for screen in
            ["Authenticated with OAuth, sign in to none\r\n❯ ", "cwd: /tmp/sign in to/project\r\n❯ "]
        {
            let (status, detail, ..) = play("claude", "quota", &[("", screen)], false);
            assert_eq!(status, Status::Error, "{screen}: {detail}");
        }
        let (status, detail, ..) =
            play("claude", "quota", &[("", "Unable to connect to Anthropic services\r\n")], true);
        assert_eq!(status, Status::Unavailable, "{detail}");
        let (status, detail, ..) = play("claude", "quota", &[("", "Segmentation fault\r\n")], true);
        assert_eq!(status, Status::Error);
        assert!(detail.contains("Segmentation fault"), "{detail}");
    }

    #[test]
    fn codex_quota_models_and_levels() {
        let panel = "› /status\r\n│ Account: me@example.org (Plus) │\r\n\
            │ 5h limit:     [███░] 76% left (resets 14:20) │\r\n│ Weekly limit: less than 5% left (resets 1 Mar) │\r\n";
        let (status, detail, facts, sent) = play("codex", "quota", &[("", "› "), ("\r", panel)], false);
        assert_eq!(status, Status::Ok, "{detail}");
        assert_eq!(sent, ["/status", "\r"]);
        let seen: Vec<_> = facts
            .windows
            .iter()
            .map(|w| (w.used_percent, w.resets_at.as_deref(), w.state.as_str()))
            .collect();
        assert_eq!(seen, [(Some(24.0), Some("14:20"), "ok"), (Some(95.0), Some("1 Mar"), "blocked")]);
        assert_eq!(facts.plan.as_deref(), Some("plus"));
        let menu = "Select Model\r\n› 1. gpt-5.2-codex  (current)\r\n  2. GPT-6.1 Terra  A model.\r\n ↓\r\n";
        let rest = "\x1b[2J\x1b[HSelect Model\r\n  2. GPT-6.1 Terra  A model.\r\n› 3. gpt-5-mini\r\n";
        let script = [("", "› "), ("\r", menu), ("\x1b[B", rest)];
        let (status, detail, facts, _) = play("codex", "models", &script, false);
        assert_eq!(facts.models, ["gpt-5.2-codex", "GPT-6.1 Terra", "gpt-5-mini"], "{detail}");
        assert_eq!(status, Status::Ok);
        let levels =
            "\x1b[2J\x1b[HSelect Reasoning Level\r\n  1. Low\r\n› 2. Medium (default)\r\n  3. High\r\n";
        let script = [("", "› "), ("\r", menu), ("\r", levels)];
        let (status, detail, facts, _) = play("codex", "reasoning", &script, false);
        assert_eq!(
            (status, facts.reasoning),
            (Status::Ok, vec!["low".into(), "medium".into(), "high".into()]),
            "{detail}"
        );
    }

    #[test]
    fn claude_levels_come_from_its_help() {
        let help = "  --effort <level>   Effort level for the current session\r\n                     (low, medium, high)\r\n";
        let (status, detail, facts, sent) = play("claude", "reasoning", &[("", help)], true);
        assert_eq!(
            (status, facts.reasoning),
            (Status::Ok, vec!["low".into(), "medium".into(), "high".into()]),
            "{detail}"
        );
        assert!(sent.is_empty());
        let (status, ..) = play("claude", "reasoning", &[("", "unknown option\r\n")], true);
        assert_eq!(status, Status::Error, "nothing is made up");
    }
}
