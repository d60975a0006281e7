//! Records goldens of real agents: a prompt, a permission dialog that is denied, and the end. What
//! a golden must give is written down here, and not read off the rules.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tapdeck_term::{Attrs, Line, Settings, Size, Style, Term};

use super::session::{COLS, Place, Session, Surroundings};
use super::{Agent, Options};

const AROUND: [Surroundings; 3] = [
    Surroundings { name: "plain", place: Place::Plain, rows: 24, loaded: false },
    Surroundings { name: "tmux", place: Place::Tmux, rows: 35, loaded: false },
    Surroundings { name: "screen", place: Place::Screen, rows: 60, loaded: false },
];
const PROMPT: &str = "say it slowly, in 4 words";
const NOTE: &str = "write the note a";
const STATES: [&str; 7] = ["idle", "working", "idle", "working", "blocked", "idle", "done"];
/// How often a recorded golden is cut in other ways; there are many of them.
const CUTS: u32 = 40;

/// Records the goldens of the agents, four each: in three surroundings, and one without titles.
pub(super) fn run(options: &Options, path: &std::ffi::OsStr) -> Result<bool> {
    let folder = crate::root()?.join("agents/goldens");
    for agent in &options.agents {
        for around in AROUND {
            if options.around.as_deref().is_some_and(|name| name != around.name) {
                continue;
            }
            let session = Session::start(*agent, around, options, path)?;
            play(&session).with_context(|| session.picture())?;
            let golden = golden(&session)?;
            let name = |what: &str| folder.join(format!("recorded-{}-{what}.json", agent.name()));
            write(&name(around.name), &golden)?;
            if around.place == Place::Plain {
                write(&name("untitled"), &without_titles(golden))?;
            }
        }
    }
    Ok(true)
}

fn play(session: &Session) -> Result<()> {
    let watch = &session.watch;
    watch.state("idle", session.started, 60.0).context("never idle")?;
    // Some take no prompts right after their first screen.
    watch.quiet(1500.0, 10.0);
    let said = watch.expect("and that is all.", false);
    session.paste(PROMPT.as_bytes(), "20s")?;
    watch.shown(said, 20.0).context("no answer")?;
    watch.quiet(1500.0, 10.0);
    let (question, no): (_, &[&str]) = match session.agent {
        Agent::Claude => ("Do you want to", &["Escape"]),
        Agent::Codex => ("Would you like to run", &["Escape"]),
        Agent::Gemini | Agent::Qwen => ("Apply this change?", &["Escape"]),
        Agent::Opencode => ("Permission required", &["Escape"]),
        Agent::Aider => ("Create new file? (Y)es/(N)o", &["n", "Enter"]),
        Agent::Copilot => ("Do you want to create", &["Escape"]),
        Agent::Cline => ("Approve tool call?", &["n"]),
    };
    let asks = watch.expect(question, false);
    session.paste(NOTE.as_bytes(), "20s")?;
    watch.shown(asks, 20.0).context("no dialog")?;
    std::thread::sleep(Duration::from_millis(1000));
    session.press(no);
    watch.quiet(if session.agent == Agent::Opencode { 4000.0 } else { 1500.0 }, 10.0);
    session.tapdeck(&["kill", "agent"]);
    watch.closed(10.0);
    Ok(())
}

/// The recording as a golden.
fn golden(session: &Session) -> Result<Value> {
    let path = session.recording();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    // The folder of the run is no part of it, but its length is.
    let home = session.home.to_str().context("the temporary folder has a plain name")?;
    let other = format!("/home/{}", "u".repeat(home.len().saturating_sub("/home/".len())));
    let size = Size { cols: COLS, rows: session.around.rows };
    // Aider writes line by line, and little.
    let mut made = Made::new(size, session.agent != Agent::Aider);
    let mut seconds = 0.0;
    for line in text.lines().skip(1) {
        let event: Value = serde_json::from_str(line)?;
        seconds += event[0].as_f64().unwrap_or_default();
        let at = Duration::from_secs_f64(seconds).as_millis();
        let data = event[2].as_str().unwrap_or_default().replace(home, &other);
        made.take(at, event[1].as_str().unwrap_or_default(), &data);
    }
    let (mut states, mut turns) = (STATES.to_vec(), vec![json!({"input": PROMPT}), json!({"input": NOTE})]);
    if session.agent == Agent::Opencode {
        // Its input field is not known, so the end of a turn without an answer is seen late.
        states.insert(5, "working");
    }
    if session.agent == Agent::Aider {
        // What is typed to a question is a line like any other.
        states.insert(5, "working");
        turns.push(json!({"input": "n"}));
    }
    Ok(json!({
        "agent": session.agent.name(), "cols": COLS, "rows": session.around.rows, "cuts": CUTS,
        "expect": {"ready": true, "states": states, "turns": turns}, "events": made.events,
    }))
}

/// How far the screens of a golden are apart, in milliseconds.
const APART: u128 = 500;
/// How long an agent rests before it is ended, and a little less, in milliseconds.
const LONG_REST: u64 = 1400;
/// How long a screen must stand to be kept in any case, in milliseconds.
const REST: u128 = 150;

/// A golden as it is made: of what the agent wrote, only the rows that it changed are kept, now
/// and then. Agents redraw their screens many times a second.
struct Made {
    term: Term,
    /// Whether the screen is kept in place of the output.
    thins: bool,
    rows: Vec<String>,
    title: String,
    modes: (bool, bool),
    /// When the screen was last kept, and when the agent last wrote.
    drawn: u128,
    fed: u128,
    events: Vec<Value>,
}

impl Made {
    fn new(size: Size, thins: bool) -> Self {
        let rows = vec![String::new(); usize::from(size.rows)];
        let (term, events) = (Term::new(size, Settings::default()), Vec::new());
        Self { term, thins, rows, title: String::new(), modes: (false, false), drawn: 0, fed: 0, events }
    }

    fn take(&mut self, at: u128, kind: &str, data: &str) {
        match kind {
            "o" if self.thins => {
                // What stood there before this output is kept, if it stood for a while.
                if at >= self.fed + REST || at >= self.drawn + APART {
                    self.draw();
                }
                self.term.feed(data.as_bytes());
                self.fed = at;
            }
            "o" => self.events.push(json!([at, "o", data])),
            // What a terminal answers is no input of a person.
            "i" if is_reply(data) => {}
            "i" => {
                self.draw();
                self.events.push(json!([at, "i", data]));
            }
            "x" => {
                self.draw();
                self.drop_farewell();
                self.events.push(json!([at, "x", ""]));
            }
            _ => {}
        }
    }

    /// Leaves out what the agent wrote when it was ended, which came after a long rest.
    fn drop_farewell(&mut self) {
        let time = |event: &Value| event[0].as_u64().unwrap_or_default();
        let rests = |pair: &[Value]| time(&pair[1]) >= time(&pair[0]) + LONG_REST;
        if let Some(last) = self.events.windows(2).rposition(rests) {
            self.events.truncate(last + 1);
        }
    }

    /// Adds what has changed on the screen, at the time of the last output.
    fn draw(&mut self) {
        self.drawn = self.fed;
        let mut out = String::new();
        let modes = (self.term.modes().alternate(), self.term.modes().bracketed_paste());
        for (on, was, number) in [(modes.0, self.modes.0, 1049), (modes.1, self.modes.1, 2004)] {
            if on != was {
                out += &format!("\x1b[?{number}{}", if on { 'h' } else { 'l' });
            }
        }
        if modes.0 != self.modes.0 {
            self.rows.fill(String::new());
        }
        self.modes = modes;
        if self.term.title() != self.title {
            self.title = self.term.title().to_owned();
            out += &format!("\x1b]0;{}\x07", self.title);
        }
        for (y, line) in self.term.screen().enumerate() {
            let row = painted(line);
            if self.rows[y] != row {
                out += &format!("\x1b[{};1H{row}\x1b[m\x1b[K", y + 1);
                self.rows[y] = row;
            }
        }
        if !out.is_empty() {
            let cursor = self.term.cursor();
            out += &format!("\x1b[{};{}H", cursor.row + 1, cursor.col + 1);
            self.events.push(json!([self.fed, "o", out]));
        }
    }
}

/// Whether this is the answer of a terminal to a question of the program.
fn is_reply(data: &str) -> bool {
    let is_string = ["\x1b]", "\x1bP", "\x1b_"].iter().any(|start| data.starts_with(start));
    // Keys end with these letters, also in kitty's protocol.
    let is_report = data.strip_prefix("\x1b[").is_some_and(|rest| {
        rest.starts_with(['?', '>', '=', 'I', 'O'])
            || (rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.ends_with(['u', '~']))
    });
    is_string || is_report
}

/// A row with what the rules look at: text, and whether it is faint, inverse or colored.
fn painted(line: Line<'_>) -> String {
    let mut out = String::new();
    for run in line.runs() {
        let faint = if run.style.attrs.contains(Attrs::FAINT) { ";2" } else { "" };
        let inverse = if run.style.attrs.contains(Attrs::INVERSE) { ";7" } else { "" };
        let color = if run.style.fg == Style::default().fg { "" } else { ";36" };
        let style = format!("{faint}{inverse}{color}");
        if style.is_empty() {
            out += &run.text;
        } else {
            out += &format!("\x1b[{}m{}\x1b[m", style.trim_start_matches(';'), run.text);
        }
    }
    out
}

/// The same without the titles that the program sets.
fn without_titles(mut golden: Value) -> Value {
    for event in golden["events"].as_array_mut().into_iter().flatten() {
        let Some(text) = event[2].as_str().map(str::to_owned) else { continue };
        let mut rest = text.as_str();
        let mut kept = String::new();
        while let Some(at) = ["\x1b]0;", "\x1b]2;"].iter().filter_map(|title| rest.find(title)).min() {
            kept += &rest[..at];
            let end = rest[at..].find('\x07').map(|end| at + end + 1);
            let other = rest[at..].find("\x1b\\").map(|end| at + end + 2);
            rest = &rest[end.into_iter().chain(other).min().unwrap_or(rest.len())..];
        }
        event[2] = json!(kept + rest);
    }
    golden
}

/// Writes a golden, an event a line.
fn write(path: &Path, golden: &Value) -> Result<()> {
    let mut head = golden.clone();
    let events = head.as_object_mut().and_then(|head| head.remove("events")).unwrap_or_default();
    let lines: Vec<String> = events.as_array().into_iter().flatten().map(Value::to_string).collect();
    let head = head.to_string();
    let text = format!("{},\n\"events\": [\n{}\n]}}\n", &head[..head.len() - 1], lines.join(",\n"));
    println!("{} ({} KB)", path.display(), text.len() / 1000);
    fs::write(path, text).with_context(|| path.display().to_string())
}
