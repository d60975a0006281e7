//! The dashboard as data: keys and news in, screen out.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tapdeck_core::{Exit, Time};
use tapdeck_term::{Rgb, Size, Theme};

use super::*;
use crate::ui::keys::Decoder;
use crate::ui::live::News;
use crate::ui::testing::{PaperLink, terminal, text};

type Sessions = Rc<RefCell<Vec<(String, PaperLink)>>>;

struct Paper(Sessions);

impl Registry for Paper {
    fn list(&mut self) -> Result<Vec<Entry>, String> {
        let entry = |id: &String, link: &PaperLink| {
            let name = link.0.borrow().name.clone();
            let title = name.clone().unwrap_or_else(|| id.clone());
            Entry { id: id.clone(), name, title, command: format!("run-{id}") }
        };
        Ok(self.0.borrow().iter().map(|(id, link)| entry(id, link)).collect())
    }

    fn open(&mut self, id: &str) -> Result<Live, String> {
        let sessions = self.0.borrow();
        let (_, link) = sessions.iter().find(|(name, _)| name == id).ok_or("no such session")?;
        if id == "shy" {
            return Err("shy cannot be reached".into());
        }
        let mut live = Live::new(id, Size::new(40, 10), 0, Box::new(link.clone()));
        if id == "slow" {
            live.hear(News::Picture { len: 5, offset: tapdeck_core::Offset(5) });
        }
        Ok(live)
    }

    fn start(&mut self, line: &str) -> Result<String, String> {
        if line == "nosuch" {
            return Err("nosuch: not found".into());
        }
        let id = format!("new-{line}");
        self.0.borrow_mut().push((id.clone(), PaperLink::default()));
        Ok(id)
    }

    fn rename(&mut self, id: &str, name: &str) -> Result<(), String> {
        if name == "taken" {
            return Err("another session has the name taken".into());
        }
        let sessions = self.0.borrow();
        let (_, link) = sessions.iter().find(|(own, _)| own == id).ok_or("no such session")?;
        link.0.borrow_mut().name = Some(name.to_owned());
        Ok(())
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
        let dash = Dash::new(Box::new(Paper(sessions.clone())), Styles { theme: None, colour: true });
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

/// The tile of a blocked program shows its question, wherever that is on a larger screen.
#[test]
fn a_question_is_in_sight() {
    let lines: String = (1..=28).map(|n| format!("conversation {n}\r\n")).collect();
    let menu = "Bash command\r\n  rm -rf build\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n\r\n Esc to cancel";
    // At the bottom of the alternate screen; in the middle of it, above blank rows; and without a
    // form that can be read.
    let cases = [
        format!("\x1b[?1049h\x1b[?25l{lines}{menu}"),
        format!("\x1b[?1049h\x1b[?25l\x1b[12;1H{menu}"),
        format!("\x1b[?1049h\x1b[?25l{lines}Shall I? Press the blue key"),
    ];
    for (n, screen) in cases.into_iter().enumerate() {
        let mut stage = Stage::new(&["a", "b"], 80, 12);
        stage.tell(0, News::Resize(Size::new(100, 40)));
        stage.tell(0, News::Output(screen.into_bytes()));
        let asked: &[&str] = if n == 2 { &["blue key"] } else { &["proceed?", "1. Yes", "2. No"] };
        for overview in [false, true] {
            stage.tell(0, News::State(AgentState::Working));
            stage.tell(0, News::State(AgentState::Blocked));
            for text in asked {
                assert!(stage.screen().contains(text), "case {n}, overview {overview}: {}", stage.screen());
            }
            stage.send("s");
        }
    }
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
fn a_small_tile_shows_the_part_with_the_cursor() {
    let mut stage = Stage::new(&["a"], 30, 8);
    let lines: String = (1..=10).map(|i| format!("row {i}\r\n")).collect();
    stage.tell(0, News::Output(lines.trim_end().as_bytes().to_vec()));
    assert!(stage.screen().contains("row 10") && !stage.screen().contains("row 2"), "{}", stage.screen());
}

/// Tiles were painted empty, and filled a moment later.
#[test]
fn tiles_are_painted_with_their_first_pictures() {
    let sessions: Sessions = Rc::new(RefCell::new(vec![("slow".to_owned(), PaperLink::default())]));
    let mut dash = Dash::new(Box::new(Paper(sessions.clone())), Styles { theme: None, colour: true });
    dash.tick(Time::ZERO);
    assert!(!dash.is_dirty(), "the picture has not come");
    assert_eq!(dash.due(), Some(Time::ZERO + HOLD));
    sessions.borrow()[0].1.0.borrow_mut().news.push_back(News::Output(b"hello".to_vec()));
    dash.tick(Time::from_nanos(1));
    assert!(dash.is_dirty());
    let mut dash = Dash::new(Box::new(Paper(sessions)), Styles { theme: None, colour: true });
    dash.tick(Time::ZERO);
    assert!(!dash.is_dirty());
    dash.tick(Time::ZERO + HOLD);
    assert!(dash.is_dirty(), "a session that does not answer is not waited for any longer");
}

#[test]
fn a_filter_shows_sessions_by_name_command_title_and_state() {
    let mut stage = Stage::new(&["build", "bot", "shell"], 120, 30);
    stage.tell(1, News::State(AgentState::Blocked));
    stage.tell(2, News::Output(b"\x1b]0;Mail\x07".to_vec()));
    for (typed, shown) in [
        ("bu", &["build"][..]),
        ("B", &["build", "bot"]),
        ("b LD", &["build"]),
        ("blocked", &["bot"]),
        ("run-sh", &["shell"]),
        ("mail", &["shell"]),
        ("nowhere", &[]),
    ] {
        stage.send(&format!("/{typed}\r"));
        let names: Vec<&str> = stage.dash.shown.iter().map(|i| &*stage.dash.tiles[*i].live.name).collect();
        assert_eq!(names, shown, "{typed}");
        assert_eq!(stage.screen().contains("No session matches"), shown.is_empty(), "{}", stage.screen());
        assert!(stage.screen().contains(&format!("{} of 3 match", shown.len())), "{}", stage.screen());
        stage.send("\x1b");
        assert_eq!(stage.dash.shown.len(), 3, "Esc shows all");
    }
    // What is not in sight gets no keys.
    stage.send("/nowhere\r\rxyz");
    assert!(stage.sent(0).is_empty() && !stage.sessions.borrow()[0].1.0.borrow().ended);
    stage.send("\x1b");
    stage.send("/bo");
    assert!(stage.screen().contains("1 bot") && !stage.screen().contains("build"), "{}", stage.screen());
    stage.send("\rx");
    // The question stays about the session that it was asked for.
    stage.tell(1, News::State(AgentState::Idle));
    stage.dash.filter = "build".into();
    stage.send("y");
    let ended = |i: usize| stage.sessions.borrow()[i].1.0.borrow().ended;
    assert_eq!([ended(0), ended(1), ended(2)], [false, true, false]);
}

#[test]
fn sessions_are_started_and_chosen() {
    let mut stage = Stage::new(&["a"], 100, 30);
    stage.send("/a\rctop -b\r");
    assert!(stage.screen().contains("2 new-top -b"), "{}", stage.screen());
    assert!(stage.screen().contains("started new-top -b"), "{}", stage.screen());
    assert_eq!(stage.dash.chosen, 1);
    stage.send("cnosuch\r");
    assert!(stage.screen().contains("nosuch: not found"), "{}", stage.screen());
    stage.send("c\x1b[A\x1b[A");
    assert!(stage.screen().contains("top -b▏"), "the history: {}", stage.screen());
    stage.send("\x1b");
    assert_eq!((stage.dash.tiles.len(), stage.dash.mode), (2, Mode::Choose));
    assert_eq!(stage.send("q"), Effect::Quit);
}

#[test]
fn sessions_are_renamed() {
    let mut stage = Stage::new(&["a", "b"], 100, 30);
    stage.send("2,build\r");
    assert!(stage.screen().contains("2 build") && stage.screen().contains("renamed to build"));
    stage.send(",");
    assert!(stage.screen().contains("build▏"), "the name can be edited: {}", stage.screen());
    stage.send("\x15taken\r");
    assert!(stage.screen().contains("another session has the name"), "{}", stage.screen());
    // Another client may rename it, too.
    stage.sessions.borrow()[0].1.0.borrow_mut().name = Some("deploy".into());
    stage.pass(LOOK);
    assert!(stage.screen().contains("1 deploy"), "{}", stage.screen());
    stage.tell(1, News::Ended(Exit::Code(0)));
    stage.send(",");
    assert!(stage.screen().contains("has ended cannot be renamed"), "{}", stage.screen());
}

#[test]
fn the_keys_are_shown_whole_on_80_columns() {
    let mut stage = Stage::new(&["a"], 80, 24);
    stage.send("?");
    for (key, text) in draw::HELP {
        assert!(stage.screen().contains(&format!(" {key} ")), "{key}\n{}", stage.screen());
        assert!(stage.screen().contains(text), "{text}\n{}", stage.screen());
    }
    stage.send("?");
    assert!(!stage.screen().contains("show or hide the keys"), "{}", stage.screen());
}

/// Texts were cut, nothing said that there were more, and the arrow keys closed the box.
#[test]
fn the_keys_scroll_in_a_small_terminal() {
    let mut stage = Stage::new(&["a"], 40, 12);
    assert!(stage.screen().ends_with("? keys"), "{}", stage.screen());
    stage.send("?");
    assert!(stage.screen().contains("Keys 1–9 of"), "{}", stage.screen());
    let mut seen = String::new();
    for _ in 0..30 {
        seen += &stage.screen().replace(['│', '\n'], " ");
        stage.send("\x1b[B");
    }
    for word in draw::HELP.iter().flat_map(|(keys, text)| keys.split(' ').chain(text.split(' '))) {
        assert!(seen.contains(&format!(" {word}")), "{word}");
    }
    stage.send("\x1b[5~\x1b[5~\x1b[5~\x1b[5~");
    assert!(stage.screen().contains("Keys 1–9 of"), "{}", stage.screen());
    stage.send("\x1b[6~");
    assert!(stage.screen().contains("Keys 10–18 of"), "{}", stage.screen());
    stage.send("q");
    assert!(!stage.screen().contains("Keys"), "{}", stage.screen());
}

#[test]
fn without_sessions_the_whole_text_is_shown() {
    for cols in [80, 40, 30] {
        let stage = Stage::new(&[], cols, 12);
        for word in ["PROGRAM", "terminal."] {
            assert!(stage.screen().contains(word), "{cols}: {}", stage.screen());
        }
    }
}

#[test]
fn more_sessions_than_fit_are_scrolled() {
    let names: Vec<String> = (1..=30).map(|i| format!("s{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stage = Stage::new(&names, 80, 24);
    let per_page = stage.dash.columns * stage.dash.rows;
    assert!(per_page < 30 && stage.screen().contains(&format!("▼ {} more", 30 - per_page)));
    stage.send("\x1b[6~");
    assert_eq!(stage.dash.chosen, per_page);
    assert!(stage.screen().contains('▲') && stage.screen().contains('▼'), "{}", stage.screen());
    stage.send("\x1b[F");
    assert!(stage.screen().contains("30 s30") && !stage.screen().contains('▼'), "{}", stage.screen());
    stage.send("\x1b[5~\x1b[H");
    assert_eq!((stage.dash.chosen, stage.dash.first_row), (0, 0));
    // The wheel moves the tiles, and the choice only as far as it must stay in sight.
    stage.send("\x1b[<65;2;2M");
    assert_eq!((stage.dash.chosen, stage.dash.first_row), (stage.dash.columns, 1));
    stage.send("\x1b[<64;2;2M");
    assert_eq!((stage.dash.chosen, stage.dash.first_row), (stage.dash.columns, 0));
}

#[test]
fn the_overview_leaves_out_what_is_not_text() {
    let mut stage = Stage::new(&["a"], 30, 8);
    let box_of = "╭──────────────────────────────────────╮";
    let end_of = "╰──────────────────────────────────────╯";
    let bar = |text: &str| format!("│ {text:<36} │");
    let rows = ["first".to_owned(), String::new(), "second".to_owned(), String::new(), box_of.to_owned()];
    let rows = rows.into_iter().chain([bar("> ask"), bar("  more"), end_of.to_owned(), String::new()]);
    let text = rows.chain(["last        of    all            parts".to_owned()]).collect::<Vec<_>>();
    stage.tell(0, News::Output(text.join("\r\n").into_bytes()));
    assert!(!stage.screen().contains("first"), "{}", stage.screen());
    stage.send("s");
    for text in ["first", "second", "> ask", "more", "last     of all parts"] {
        assert!(stage.screen().contains(text), "{text}: {}", stage.screen());
    }
    assert!(!stage.screen().contains("╭──────────────────────────────────────"), "{}", stage.screen());
    // Typing needs the screen as it is.
    stage.send("\r");
    assert!(stage.screen().contains("of    all            parts"), "{}", stage.screen());
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
            "\x1b[<65;2;2M",
            "\x1b[6~",
            "/s1\r",
            "s",
            "G",
            "s",
            "\x1b",
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

/// A theme reaches the tiles and what is around them.
#[test]
fn the_dashboard_has_the_colours_of_its_theme() {
    let theme = Theme::named("sepia").expect("a theme");
    let mut stage = Stage::new(&["one"], 80, 20);
    stage.dash.styles.theme = Some(theme);
    stage.tell(0, News::Output(b"\x1b[34mblue".to_vec()));
    let buf = stage.terminal.backend().buffer();
    let Rgb(r, g, b) = theme.background;
    let paper = ratatui::style::Color::Rgb(r, g, b);
    let Rgb(r, g, b) = theme.ansi[4];
    let blue = ratatui::style::Color::Rgb(r, g, b);
    assert!(buf.content.iter().all(|cell| cell.bg != ratatui::style::Color::Reset));
    assert!(buf.content.iter().any(|cell| (cell.symbol(), cell.fg, cell.bg) == ("b", blue, paper)));
}

#[test]
fn changes_of_state_are_told_once_and_not_those_that_were_found() {
    let mut stage = Stage::new(&["one", "two"], 80, 20);
    stage.tell(0, News::State(AgentState::Working));
    stage.tell(1, News::State(AgentState::Blocked));
    assert_eq!(stage.dash.take_changes(), []);
    stage.tell(0, News::State(AgentState::Blocked));
    stage.tell(0, News::State(AgentState::Blocked));
    assert_eq!(stage.dash.take_changes(), [("one".to_owned(), AgentState::Blocked)]);
    assert_eq!(stage.dash.take_changes(), []);
}
