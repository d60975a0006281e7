//! The dashboard as data: keys and news in, screen out.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tapdeck_core::{Exit, Time};
use tapdeck_term::Size;

use super::*;
use crate::ui::keys::Decoder;
use crate::ui::live::News;
use crate::ui::testing::{PaperLink, terminal, text};

type Sessions = Rc<RefCell<Vec<(String, PaperLink)>>>;

struct Paper(Sessions);

impl Registry for Paper {
    fn list(&mut self) -> Result<Vec<String>, String> {
        Ok(self.0.borrow().iter().map(|(id, _)| id.clone()).collect())
    }

    fn open(&mut self, id: &str) -> Result<Live, String> {
        let sessions = self.0.borrow();
        let (_, link) = sessions.iter().find(|(name, _)| name == id).ok_or("no such session")?;
        if id == "shy" {
            return Err("shy cannot be reached".into());
        }
        Ok(Live::new(id, Size::new(40, 10), 0, Box::new(link.clone())))
    }
}

struct Stage {
    dash: Dash,
    sessions: Sessions,
    terminal: Terminal<TestBackend>,
    now: Time,
}

impl Stage {
    fn new(names: &[&str], cols: u16, rows: u16) -> Self {
        let sessions: Sessions = Rc::default();
        sessions.borrow_mut().extend(names.iter().map(|n| ((*n).to_owned(), PaperLink::default())));
        let dash = Dash::new(Box::new(Paper(sessions.clone())), Theme { colour: true });
        let mut stage = Self { dash, sessions, terminal: terminal(cols, rows), now: Time::ZERO };
        stage.pass(Duration::ZERO);
        stage
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.dash.tick(self.now);
        self.terminal.draw(|frame| self.dash.draw(frame)).expect("in memory");
    }

    fn tell(&mut self, i: usize, news: News) {
        self.sessions.borrow()[i].1.0.borrow_mut().news.push_back(news);
        self.pass(Duration::from_nanos(1));
    }

    fn send(&mut self, keys: &str) -> Effect {
        let mut decoder = Decoder::default();
        let mut events = decoder.push(keys.as_bytes());
        events.extend(decoder.flush());
        let mut last = Effect::Nothing;
        for event in events {
            last = self.dash.on_event(&event, self.now);
            self.pass(Duration::from_nanos(1));
        }
        last
    }

    fn sent(&self, i: usize) -> Vec<u8> {
        self.sessions.borrow()[i].1.0.borrow().sent.clone()
    }

    fn screen(&self) -> String {
        text(self.terminal.backend().buffer()).join("\n")
    }
}

#[test]
fn sessions_come_and_go() {
    let mut stage = Stage::new(&[], 80, 20);
    assert!(stage.screen().contains("No live sessions"), "{}", stage.screen());
    stage.sessions.borrow_mut().extend(["one", "shy"].map(|n| (n.to_owned(), PaperLink::default())));
    stage.pass(LOOK);
    assert!(stage.screen().contains("1 one"), "{}", stage.screen());
    assert!(stage.screen().contains("shy cannot be reached"), "{}", stage.screen());
    stage.sessions.borrow_mut().push(("two".into(), PaperLink::default()));
    stage.pass(LOOK);
    assert!(stage.screen().contains("2 two"), "{}", stage.screen());
    stage.tell(2, News::Output(b"last words".to_vec()));
    stage.tell(2, News::Ended(Exit::Signal(9)));
    stage.sessions.borrow_mut().pop();
    assert!(
        stage.screen().contains("signal 9") && stage.screen().contains("last words"),
        "{}",
        stage.screen()
    );
    stage.pass(LINGER + LOOK);
    assert!(!stage.screen().contains("two"), "{}", stage.screen());
}

#[test]
fn choosing_zooming_and_typing() {
    let mut stage = Stage::new(&["a", "b", "c", "d"], 100, 26);
    stage.tell(1, News::Output(b"\x1b]0;title of b\x07hello from b".to_vec()));
    assert!(stage.screen().contains("2 b — title of b") && stage.screen().contains("hello from b"));
    for (keys, chosen) in [
        ("\t", 1),
        ("\t\t\t", 0),
        ("\x1b[Z", 3),
        ("\x1b[D", 2),
        ("\x1b[A", 0),
        ("\x1b[A", 0),
        ("2", 1),
        ("j", 3),
        ("k", 1),
    ] {
        stage.send(keys);
        assert_eq!(stage.dash.chosen, chosen, "{keys:?}");
    }
    stage.send("z");
    assert!(!stage.screen().contains("1 a"), "{}", stage.screen());
    stage.send("\rls\r");
    assert_eq!((stage.sent(1), stage.sent(0)), (b"ls\r".to_vec(), Vec::new()));
    assert!(stage.screen().contains("TYPING"), "{}", stage.screen());
    stage.send("\x1d");
    assert!(stage.screen().contains("LIVE") && stage.dash.zoomed, "{}", stage.screen());
    stage.send("\x1b");
    assert!(stage.screen().contains("1 a"));
    let tile = stage.dash.tiles[2].drawn;
    stage.send(&format!("\x1b[<0;{};{}M", tile.x + 2, tile.y + 2));
    assert_eq!(stage.dash.chosen, 2, "a click");
    stage.send("t");
    assert!(stage.screen().contains("⌨ me"), "{}", stage.screen());
    stage.send("r");
    assert!(!stage.screen().contains("⌨ me"), "{}", stage.screen());
    stage.tell(2, News::Holder(Some("bot".into())));
    assert!(stage.screen().contains("⌨ bot"), "{}", stage.screen());
    stage.send("r");
    assert!(stage.screen().contains("you do not drive"), "{}", stage.screen());
    stage.send("xy");
    assert!(stage.sessions.borrow()[2].1.0.borrow().ended);
    assert_eq!(stage.send("q"), Effect::Quit);
}

#[test]
fn each_tile_says_what_its_program_is_doing() {
    let mut stage = Stage::new(&["a", "b", "c"], 120, 20);
    assert!(!stage.screen().contains("unknown"), "{}", stage.screen());
    for (i, state) in [AgentState::Working, AgentState::Idle, AgentState::Blocked].into_iter().enumerate() {
        stage.tell(i, News::State(state));
        assert!(stage.screen().contains(&format!(" {state} ")), "{}", stage.screen());
    }
    assert!(stage.screen().contains("3 LIVE, 1 BLOCKED"), "{}", stage.screen());
    stage.send("b");
    assert_eq!(stage.dash.chosen, 2);
    assert!(stage.screen().contains("c · blocked · not driven"), "{}", stage.screen());
    stage.tell(2, News::Ended(Exit::Code(0)));
    stage.send("1b");
    assert!(stage.screen().contains("no session waits") && stage.dash.chosen == 0, "{}", stage.screen());
}

#[test]
fn a_stick_that_is_taken_ends_the_typing() {
    let mut stage = Stage::new(&["a"], 60, 12);
    stage.send("\rx");
    stage.tell(0, News::Holder(Some("boss".into())));
    stage.send("y");
    assert_eq!(stage.sent(0), b"x");
}

#[test]
fn a_small_tile_shows_the_part_with_the_cursor_or_everything_in_small() {
    let mut stage = Stage::new(&["a"], 30, 8);
    let lines: String = (1..=10).map(|i| format!("row {i}\r\n")).collect();
    stage.tell(0, News::Output(lines.trim_end().as_bytes().to_vec()));
    assert!(stage.screen().contains("row 10") && !stage.screen().contains("row 2"), "{}", stage.screen());
    stage.send("s");
    assert!(stage.screen().contains(['▌', '█', '▛', '▀', '▖']), "{}", stage.screen());
    assert!(!stage.screen().contains("row 10"), "{}", stage.screen());
}

#[test]
fn any_size_and_many_sessions() {
    let names: Vec<String> = (0..40).map(|i| format!("s{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stage = Stage::new(&names, 80, 24);
    for i in 0..40 {
        stage.tell(i, News::Output("漢字 \x1b[31mtext\r\n".repeat(20).into_bytes()));
    }
    for (cols, rows) in [(0, 0), (1, 1), (2, 2), (9, 3), (30, 4), (500, 3), (3, 200), (200, 60)] {
        stage.terminal = terminal(cols, rows);
        for key in [
            "",
            "\t",
            "j",
            "j",
            "k",
            "z",
            "s",
            "\t",
            "s",
            "z",
            "?",
            "x",
            "n",
            "\r",
            "a",
            "\x1d",
            "9",
            "\x1b[<0;2;2M",
        ] {
            stage.send(key);
        }
    }
    stage.terminal = terminal(80, 24);
    stage.send("\x1b[Z");
    for i in 0..40 {
        stage.send("\t");
        assert!(!stage.dash.tiles[stage.dash.chosen].drawn.is_empty(), "the chosen one is in sight: {i}");
    }
}
