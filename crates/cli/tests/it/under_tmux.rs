//! Attached under tmux, again and again while programs draw: what tmux has on its screen afterwards
//! is the session's screen, cell for cell. A byte lost or doubled between the picture and the
//! stream would stay there.
//!
//! `TAPDECK_ROUNDS` says how often; `cargo xtask soak` asks for two hundred.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tapdeck_needs::has;
use tapdeck_proto::bus::Snap;
use tapdeck_serve::client::Bus;
use tapdeck_term::{Settings, Size, Style, Term};

use crate::live::{Detached, typing};
use crate::support::{Home, PATIENCE, TAPDECK, eventually};

const COLS: u16 = 110;
const ROWS: u16 = 32;

/// A tmux server of a test's own, gone with it.
pub struct Tmux<'a>(&'a Home);

impl<'a> Tmux<'a> {
    /// Starts it, with a window that keeps it alive.
    pub fn start(home: &'a Home) -> Self {
        let tmux = Self(home);
        let options = ["set", "-g", "history-limit", "20000", ";", "set", "-g", "status", "off"];
        tmux.run(&[&["new-session", "-d", "cat", ";"][..], &options].concat());
        tmux
    }

    pub fn run(&self, args: &[&str]) -> String {
        let mut command: Command = self.0.command("tmux");
        let out = command.arg("-S").arg(self.0.path("tmux.sock")).args(["-f", "/dev/null"]).args(args);
        let out = out.env_remove("TMUX").output().expect("tmux runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// A window of the session's size in which a client is attached with these options.
    fn attach(&self, id: &str, options: &str) {
        let tapdeck = std::env::var("TAPDECK_BINARY").unwrap_or_else(|_| TAPDECK.to_owned());
        let (cols, rows) = (COLS.to_string(), ROWS.to_string());
        let client = format!("exec '{tapdeck}' attach {options} {id}");
        self.run(&["new-session", "-d", "-s", "client", "-x", &cols, "-y", &rows, &client]);
    }

    /// Takes the client's terminal away.
    fn detach(&self) {
        self.run(&["kill-session", "-t", "client"]);
    }

    /// The screen with its styles, as a terminal that was fed it has it, and the cursor.
    fn screen(&self) -> Option<(Term, String)> {
        let place = ["display-message", "-t", "client", "-p", "#{cursor_x},#{cursor_y}", ";"];
        let all = self.run(&[&place[..], &["capture-pane", "-t", "client", "-p", "-e"]].concat());
        let (cursor, rows) = all.split_once('\n')?;
        let mut term = Term::new(Size::new(COLS, ROWS), Settings::default());
        term.feed(rows.trim_end_matches('\n').replace('\n', "\x1b[m\r\n").as_bytes());
        Some((term, cursor.to_owned()))
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// The session's own screen.
fn model(eye: &mut Bus) -> Value {
    let screen = eye.request(&Snap::default(), PATIENCE).expect("a frame");
    serde_json::to_value(screen).expect("JSON")
}

/// The styled cells of a row of a frame: column, text, bold and underlined. (tmux has colours of
/// its own idea.)
fn styled(run: &Value) -> Vec<(usize, char, bool, bool)> {
    let start = run[0].as_u64().and_then(|n| usize::try_from(n).ok()).expect("a column");
    let (bold, underlined) = (run[4] == true, run[6] == true);
    let cells = run[1].as_str().unwrap_or_default().chars().enumerate();
    cells.filter(|(_, c)| *c != ' ').map(|(i, c)| (start + i, c, bold, underlined)).collect()
}

/// Where tmux and the session differ, if they do.
fn difference(frame: &Value, shown: &Term, cursor: &str) -> Option<String> {
    let place = format!("{},{}", frame["cx"], frame["cy"]);
    if cursor != place {
        return Some(format!("the cursor is at {cursor}, not at {place}"));
    }
    for (y, (line, row)) in shown.screen().zip(frame["rows"].as_array()?).enumerate() {
        let (line_text, row) = (line.text(), row.as_str().unwrap_or_default().trim_end());
        if line_text != row {
            return Some(format!("row {y} is {line_text:?}, not {row:?}"));
        }
        // Of styles, those that both have and that no terminal may leave out.
        let mut there = Vec::new();
        let mut col = 0;
        line.each(|text, width, style: Style| {
            let bold = style.attrs.contains(tapdeck_term::Attrs::BOLD);
            let underlined = style.underline != tapdeck_term::Underline::None;
            there.extend(text.chars().next().filter(|c| *c != ' ').map(|c| (col, c, bold, underlined)));
            col += width;
        });
        let wanted: Vec<_> = frame["cells"][y].as_array()?.iter().flat_map(styled).collect();
        let ascii = row.is_ascii();
        if ascii && there != wanted {
            return Some(format!("row {y} is {there:?}, not {wanted:?}"));
        }
    }
    None
}

/// Attaches to a program so often, while `keys` are typed to it by another client; `behind` are
/// rows of scrollback to be there.
fn check(name: &str, command: &[&str], keys: &[&str], behind: usize) {
    if !has("tmux") || !has(command[0]) {
        return;
    }
    let rounds = std::env::var("TAPDECK_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let home = Home::new();
    let text: String =
        (1..2000).map(|i| format!("{i}: some text with (brackets) and {}\n", "x".repeat(i % 90))).collect();
    std::fs::write(home.path("text"), text).expect("written");
    let size = format!("{COLS}x{ROWS}");
    let session = Detached::start(&home, &["--window-size", &size], command);
    let mut hand = session.bus("bot", "hand");
    let key = |hand: &mut Bus, text: &str| {
        hand.request(&typing(text), PATIENCE).expect("it drives");
    };
    if behind > 0 {
        key(&mut hand, &format!("seq {behind}\r"));
        session.wait_text(&format!("^{behind}$"));
    }
    let mut eye = session.bus("observer", "eye");
    let tmux = Tmux::start(&home);
    if behind > 0 {
        tmux.attach(&session.id, "--scrollback 20000");
        let counted: Vec<String> = (1..=behind).map(|n| n.to_string()).collect();
        eventually("all rows in tmux's own scrollback", || {
            let all = tmux.run(&["capture-pane", "-t", "client", "-p", "-S", "-"]);
            let rows: Vec<&str> = all.lines().collect();
            let first = rows.iter().position(|row| *row == "1").unwrap_or(0);
            rows.get(first..first + behind).is_some_and(|rows| rows == counted)
        });
        tmux.detach();
    }
    for round in 0..rounds {
        let enough = AtomicBool::new(false);
        // Something is being drawn before, while and after the client attaches.
        std::thread::scope(|scope| {
            let (hand, enough) = (&mut hand, &enough);
            let typing = scope.spawn(move || {
                let mut typed = 0;
                while typed < keys.len() || (!enough.load(Ordering::Relaxed) && typed < 400) {
                    key(hand, keys[typed % keys.len()]);
                    typed += 1;
                    std::thread::park_timeout(Duration::from_millis(3));
                }
            });
            tmux.attach(&session.id, if round % 2 == 0 { "" } else { "--scrollback 100" });
            let deadline = Instant::now() + PATIENCE;
            while tmux.screen().is_none_or(|(term, _)| term.screen().all(|l| l.is_blank())) {
                assert!(Instant::now() < deadline, "{name}, round {round}: nothing is shown");
            }
            enough.store(true, Ordering::Relaxed);
            typing.join().expect("it typed");
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = model(&mut eye);
            let shown = tmux.screen();
            // Taken between two pictures of which one is the other, it can be compared with them.
            if before["seq"] == model(&mut eye)["seq"]
                && let Some((term, cursor)) = shown
            {
                let Some(difference) = difference(&before, &term, &cursor) else { break };
                assert!(Instant::now() < deadline, "{name}, round {round}: {difference}");
            }
            assert!(Instant::now() < deadline, "{name}, round {round}: it never holds still");
        }
        tmux.detach();
    }
}

#[test]
fn vim() {
    check(
        "vim",
        &["vim", "-u", "NONE", "-i", "NONE", "-n", "text"],
        &["\x06", "\x06", "\x02", "/9\r", "n", "x", "u", "G", "gg"],
        0,
    );
}

#[test]
fn less() {
    check("less", &["less", "text"], &[" ", " ", "b", "/7\r", "n", "G", "g", "j", "k"], 0);
}

#[test]
fn htop() {
    check("htop", &["htop", "-d", "5"], &["\x1b[B", "\x1b[A", "t", "t"], 0);
}

#[test]
fn a_shell_with_ten_thousand_rows_behind_it() {
    let keys = [
        "seq 20\r",
        "echo \x1b[1mbold\x1b[m\r",
        "printf '\\033[4m%s\\033[m\\n' $RANDOM\r",
        "seq 200\r",
        "l",
        "s\r",
    ];
    check("bash", &["bash", "--norc"], &keys, 10_000);
}
