//! What is done: steps that drive a live program, and plays, which say word for word what happens.

use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::check::{self, Condition, End, ExitTest, Input, Moment, Pos, Timeline, What};
use tapdeck_core::{Exit, Seq, Time};
use tapdeck_term::Size;
use tapdeck_term::keys::KeyPress;

use super::assertion::{exit, key_name, signal};
use super::condition::{self, Common, Said, size};
use super::pointer::{self, Click, Drag, Scroll};
use super::raw::{self, At};
use super::timeline::from_json;
use super::{Line, ScenarioError, Stored};

/// A step, with where it stands.
#[derive(Debug, Clone)]
pub struct Step {
    /// The line.
    pub line: Line,
    /// What to do.
    pub action: Action,
    /// How long a wait may take, where the step says.
    pub within: Option<Duration>,
}

/// What to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// Press keys, written as the modes in force want them.
    Send(Vec<KeyPress>),
    /// Type a text.
    Type(String),
    /// Paste a text.
    Paste(String),
    /// Give the program these bytes.
    Bytes(Vec<u8>),
    /// Say that the terminal's window has the focus, or lost it.
    Focus(bool),
    /// Click.
    Click(Click),
    /// Drag.
    Drag(Drag),
    /// Turn the wheel.
    Scroll(Scroll),
    /// The condition must come to hold.
    Expect(Condition),
    /// Wait.
    Wait(Until),
    /// Set the terminal's size.
    Resize(Size),
    /// Send a signal, by its name.
    Signal(String),
    /// Give this moment a name.
    Snapshot(String),
    /// End the program.
    Cancel,
}

impl Action {
    /// Whether it waits for something on the screen; a click waits for its text.
    fn may_wait(&self) -> bool {
        matches!(self, Self::Expect(_) | Self::Wait(_) | Self::Click(_) | Self::Drag(_) | Self::Scroll(_))
    }
}

/// Until when to wait.
#[derive(Debug, Clone)]
pub enum Until {
    /// What the condition looks at has stayed the same for so long, and the condition holds.
    Stable(Duration, Condition),
    /// The program has ended.
    Exit,
    /// The condition holds.
    Screen(Condition),
}

/// The name of the place that a step leaves behind, by its number from 1. Names that people give
/// have no blanks.
pub fn step_mark(number: usize) -> String {
    format!("step {number}")
}

pub(super) fn read(raw: At<raw::Step>, common: &Common, stored: Stored<'_>) -> Result<Step, ScenarioError> {
    let line = raw.line;
    let at = |what: String| ScenarioError { line: line.clone(), what };
    let raw = raw.value;
    let mut actions = Vec::new();
    if let Some(keys) = raw.send {
        let parsed = keys.0.iter().map(|k| k.parse::<KeyPress>().map_err(|e| at(e.to_string())));
        actions.push(Action::Send(parsed.collect::<Result<_, _>>()?));
    }
    actions.extend(raw.type_.map(Action::Type));
    actions.extend(raw.paste.map(Action::Paste));
    actions.extend(raw.bytes.map(|b| Action::Bytes(b.into_bytes())));
    actions.extend(raw.focus.map(Action::Focus));
    if let Some(click) = &raw.click {
        actions.push(Action::Click(pointer::click(click).map_err(at)?));
    }
    if let Some(drag) = &raw.drag {
        actions.push(Action::Drag(pointer::drag(drag).map_err(at)?));
    }
    if let Some(scroll) = &raw.scroll {
        actions.push(Action::Scroll(pointer::scroll(scroll).map_err(at)?));
    }
    if let Some(c) = &raw.expect {
        actions.push(Action::Expect(condition::read(c, &line, common, stored)?));
    }
    if let Some(wait) = &raw.wait {
        actions.push(Action::Wait(match (&wait.stable, wait.exit, &wait.screen) {
            (Some(length), None, screen) => {
                let length = check::length(length).map_err(|e| at(e.into()))?;
                Until::Stable(length, condition::stable(screen.as_ref(), &line, common, stored)?)
            }
            (None, Some(true), None) => Until::Exit,
            (None, None, Some(c)) => Until::Screen(condition::read(c, &line, common, stored)?),
            _ => {
                return Err(
                    at("a wait wants stable, exit: true or screen; screen may go with stable".into()),
                );
            }
        }));
    }
    if let Some(text) = &raw.resize {
        actions.push(Action::Resize(size(text).map_err(at)?));
    }
    if let Some(name) = &raw.signal {
        actions.push(Action::Signal(signal(name).map_err(at)?));
    }
    if let Some(name) = raw.snapshot {
        actions.push(Action::Snapshot(mark_name(name).map_err(at)?));
    }
    if raw.cancel == Some(true) {
        actions.push(Action::Cancel);
    }
    let within = condition::read_at(&raw.within, check::length)?;
    match (actions.pop(), actions.is_empty()) {
        (Some(action), true) => {
            if within.is_some() && !action.may_wait() {
                return Err(at("within goes with expect, wait, and steps with the mouse".into()));
            }
            Ok(Step { line, action, within })
        }
        (Some(_), false) => Err(at("one step at a time".into())),
        (None, _) => Err(at(
            "a step is one of send, type, paste, bytes, focus, click, drag, scroll, expect, wait, resize, signal, snapshot and cancel".into(),
        )),
    }
}

/// Names of moments must be told from times and from one another.
fn mark_name(name: String) -> Said<String> {
    let fine = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, '@' | '+'));
    let free = !matches!(name.as_str(), "start" | "end");
    if fine && free {
        Ok(name)
    } else {
        Err(format!("{name:?} is no name for a moment: use letters, digits, - and _"))
    }
}

/// A session that is written down rather than run.
#[derive(Debug, Clone, Default)]
pub struct Play {
    /// What happens.
    pub items: Vec<PlayItem>,
}

/// One line of a play.
#[derive(Debug, Clone)]
pub struct PlayItem {
    /// The pause before each time.
    pub after: Duration,
    /// What happens, all at once.
    pub what: Vec<What>,
    /// How often.
    pub times: u64,
    /// How it ends, if it does here.
    pub exit: Option<Exit>,
}

/// The largest play, in moments: enough for a flood, too little to fill a machine.
const MAX_MOMENTS: u64 = 200_000;

pub(super) fn read_play(raw: Vec<At<raw::PlayItem>>) -> Result<Play, ScenarioError> {
    let mut items = Vec::new();
    let mut moments = 0u64;
    for raw in raw {
        let item = read_item(&raw.value).map_err(|e| raw.error(e))?;
        moments = moments.saturating_add((item.what.len() as u64).saturating_mul(item.times));
        if moments > MAX_MOMENTS {
            return Err(raw.error(format!("a play has at most {MAX_MOMENTS} moments")));
        }
        items.push(item);
    }
    Ok(Play { items })
}

fn read_item(raw: &raw::PlayItem) -> Said<PlayItem> {
    let mut what = Vec::new();
    let pieces = |bytes: Vec<u8>| -> Said<Vec<What>> {
        let size = match raw.chunk {
            None => bytes.len().max(1),
            Some(0) => return Err("a chunk has at least one byte".into()),
            Some(n) => n,
        };
        Ok(bytes.chunks(size).map(|piece| What::Output(Bytes::copy_from_slice(piece))).collect())
    };
    let mut kinds = 0;
    let mut add = |more: Vec<What>| {
        kinds += 1;
        what.extend(more);
    };
    if let Some(text) = &raw.write {
        add(pieces(text.clone().into_bytes())?);
    }
    if let Some(text) = &raw.hex {
        add(pieces(hex(text)?)?);
    }
    let input = |bytes: &[u8]| Input { bytes: Bytes::copy_from_slice(bytes), ..Input::default() };
    if let Some(text) = &raw.input {
        let key = raw.key.as_ref().map(|k| key_name(k)).transpose()?;
        add(vec![What::Input(Input { key, ..input(text.as_bytes()) })]);
    } else if raw.key.is_some() {
        return Err("key goes with input, which says what it sends".into());
    }
    if let Some(text) = &raw.paste {
        add(vec![What::Input(Input { paste: true, ..input(text.as_bytes()) })]);
    }
    if let Some(text) = &raw.reply {
        add(vec![What::Input(Input { reply: true, ..input(text.as_bytes()) })]);
    }
    if let Some(text) = &raw.resize {
        add(vec![What::Resize(size(text)?)]);
    }
    if let Some(name) = &raw.signal {
        add(vec![What::Signal(signal(name)?)]);
    }
    if let Some(value) = &raw.service {
        add(vec![What::Service(from_json(value))]);
    }
    if let Some(name) = &raw.snapshot {
        add(vec![What::Mark(mark_name(name.clone())?.into())]);
    }
    let end = match raw.exit.as_ref().map(exit).transpose()? {
        Some(ExitTest::Is(exit)) => {
            add(Vec::new());
            Some(exit)
        }
        Some(ExitTest::Failure) => return Err("a play ends with a code or a signal".into()),
        None => None,
    };
    if kinds != 1 {
        return Err("a play's line is one of write, hex, input, paste, reply, resize, signal, service, snapshot and exit".into());
    }
    let after = raw.after.as_ref().map_or(Ok(Duration::ZERO), |t| check::length(t))?;
    Ok(PlayItem { after, what, times: raw.times.unwrap_or(1), exit: end })
}

fn hex(text: &str) -> Said<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let wrong = || format!("{text:?} is no hexadecimal: write two digits a byte");
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let pair =
        |p: &[u8]| std::str::from_utf8(p).ok().and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(wrong);
    digits.chunks(2).map(pair).collect()
}

impl Play {
    /// The timeline of the play, with every pause as long as it says.
    pub fn timeline(&self, size: Size) -> Timeline {
        let mut timeline = Timeline { size, ..Timeline::default() };
        let (mut time, mut seq) = (Time::ZERO, Seq(0));
        let mut exit = None;
        for item in &self.items {
            for _ in 0..item.times {
                time += item.after;
                for what in &item.what {
                    seq = seq.next();
                    timeline.moments.push(Moment { at: Pos { time, seq }, what: what.clone() });
                }
            }
            exit = item.exit.or(exit);
        }
        timeline.end = End { at: Pos { time, seq: seq.next() }, exit, ..End::default() };
        timeline
    }
}
