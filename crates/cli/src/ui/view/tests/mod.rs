//! The viewer as data: keys in, screen out.

mod less;

use std::path::PathBuf;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_host::{Source, sidecar};
use tapdeck_term::Size;

use super::*;
use crate::ui::keys::Decoder;
use crate::ui::live::News;
use crate::ui::testing::{PaperLink, terminal, text};

const SECOND: Duration = Duration::from_secs(1);

struct Stage {
    app: App,
    terminal: Terminal<TestBackend>,
    now: Time,
    /// The time of day, in nanoseconds.
    wall: u64,
    _home: Option<tempfile::TempDir>,
}

/// Forty lines, one a second, on 20×8; a marker after the tenth.
fn forty() -> String {
    let mut cast = "{\"version\":2,\"width\":20,\"height\":8}\n".to_owned();
    for i in 1..=40 {
        let line = if i == 40 { format!("line {i}") } else { format!("line {i}\\r\\n") };
        cast += &format!("[{i}.0,\"o\",\"{line}\"]\n");
        if i == 10 {
            cast += "[10.5,\"m\",\"ten\"]\n";
        }
    }
    cast
}

/// Snapshots after lines 20 and 30, at the ends of those lines.
const SNAPSHOTS: &str = r#"{"id":7,"ts_ns":20500000000,"label":"twenty","kind":"ipc","anchor_byte":169}
{"id":8,"ts_ns":30500000000,"label":"","kind":"ipc","anchor_byte":259}
"#;

impl Stage {
    fn of(cast: &str, cols: u16, rows: u16) -> Self {
        Self::with(cast, "", cols, rows, true)
    }

    fn with(cast: &str, snapshots: &str, cols: u16, rows: u16, colour: bool) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("demo.cast");
        std::fs::write(&path, cast).expect("written");
        if !snapshots.is_empty() {
            std::fs::write(home.path().join("demo.cast.snapshots.jsonl"), snapshots).expect("written");
        }
        let source = Source::find(&path, None, None).expect("a recording");
        let mut tape = Tape::open(source, 100_000).expect("it opens");
        tape.wait_for_moments();
        let mut stage = Self::on(Origin::Tape(Box::new(tape)), cols, rows, colour);
        stage._home = Some(home);
        stage.app.go(tapdeck_host::Goal::Byte(tapdeck_core::Offset::MAX)).expect("the end");
        stage.settle();
        stage
    }

    fn live(cols: u16, rows: u16) -> (Self, PaperLink) {
        let link = PaperLink::default();
        let live = Live::new("shell", Size::new(20, 8), 1000, Box::new(link.clone()));
        let mut stage = Self::on(Origin::Live(Box::new(live), None), cols, rows, true);
        stage.settle();
        (stage, link)
    }

    fn on(origin: Origin, cols: u16, rows: u16, colour: bool) -> Self {
        let styles = Styles { colour, theme: None };
        let options = Options {
            styles,
            branch_command: vec!["branch".into(), "{snapshot}".into()],
            keymap: crate::keymap::Keymap::default(),
        };
        Self {
            app: App::new(origin, options),
            terminal: terminal(cols, rows),
            now: SECOND.into(),
            wall: 99,
            _home: None,
        }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        sidecar(self.app.origin.path().expect("a recording"), suffix)
    }

    /// Lets happen what is due now, and draws.
    fn settle(&mut self) {
        loop {
            self.app.tick(self.now).expect("it reads");
            if self.app.due(self.now).is_none_or(|due| due > self.now) {
                break;
            }
        }
        self.terminal.draw(|frame| self.app.draw(frame)).expect("in memory");
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }

    /// Types; says what the last key asked for.
    fn send(&mut self, keys: &str) -> Effect {
        let mut decoder = Decoder::default();
        let mut last = Effect::Nothing;
        let mut events = decoder.push(keys.as_bytes());
        events.extend(decoder.flush());
        for event in events {
            last = self.app.on_event(&event, self.now, WallTime::from_nanos(self.wall)).expect("it reads");
            self.settle();
        }
        last
    }

    fn rows(&self) -> Vec<String> {
        text(self.terminal.backend().buffer())
    }

    fn screen(&self) -> String {
        self.rows().join("\n")
    }

    /// The lines in the frame, without the frame.
    fn lines(&self) -> Vec<String> {
        let strip = |row: &String| row.trim().trim_matches(['│', '┃', '◆', '▾', '✎', '▶']).trim().to_owned();
        self.rows().iter().map(strip).filter(|row| row.starts_with("line")).collect()
    }

    fn first(&self) -> String {
        self.lines().first().cloned().unwrap_or_default()
    }

    /// Where some text is on the screen.
    fn find(&self, text: &str) -> (u16, u16) {
        for (y, row) in self.rows().iter().enumerate() {
            if let Some(x) = row.find(text) {
                return (row[..x].chars().count() as u16, y as u16);
            }
        }
        panic!("no {text:?} in\n{}", self.screen());
    }
}

#[test]
fn a_recording_opens_at_its_end_in_a_frame_of_its_size() {
    let stage = Stage::with(&forty(), SNAPSHOTS, 40, 14, true);
    assert_eq!(
        stage.rows(),
        [
            "",
            "         ╭─ demo.cast ─ 20×8 ─╮",
            "         │line 33             │",
            "         │line 34             │",
            "         │line 35             │",
            "         │line 36             │",
            "         │line 37             │",
            "         │line 38             │",
            "         │line 39             │",
            "         │line 40             ┃",
            "         ╰────────────────────╯",
            "",
            " 0:40 / 0:40 ━━━━━━▾━━━━◆━━━━━◆━━━━● 1×",
            " ■ END  rows 33–40 of 40 · 100% ? keys",
        ]
    );
}

#[test]
fn searching_is_incremental_and_lights_up() {
    let mut stage = Stage::of(&forty(), 60, 14);
    stage.send("g/line 2");
    assert!(stage.screen().contains("line 2▏"), "{}", stage.screen());
    let (x, y) = stage.find("line 2 ");
    let buf = stage.terminal.backend().buffer();
    assert_eq!(buf[(x, y)].bg, Color::Indexed(214), "the one found");
    assert_eq!(buf[(x + 6, y)].bg, Color::Reset, "and not what is behind it");
    stage.send("0");
    assert_eq!(stage.first(), "line 18", "as more is typed, another is found\n{}", stage.screen());
    stage.send("\x7f");
    assert_eq!(stage.first(), "line 1", "and back again");
    stage.send("\x1b");
    assert_eq!(stage.first(), "line 1", "escape returns");
    stage.send("/LINE\r");
    assert!(stage.screen().contains("not found: LINE"), "upper case counts\n{}", stage.screen());
    stage.send("/[13]0$\r");
    assert_eq!(stage.app.focus, Some(9));
    stage.pass(SECOND);
    assert!(stage.screen().contains("1 of 2 found"), "{}", stage.screen());
    for (key, row) in [("n", 29), ("n", 9), ("N", 29), ("N", 9)] {
        stage.send(key);
        assert_eq!(stage.app.focus, Some(row), "{key}");
    }
    stage.send("G\x1b?line 3[0-5]\r");
    assert_eq!(stage.app.focus, Some(34));
    stage.send("n");
    assert_eq!(stage.app.focus, Some(33), "n goes on in the direction of the search");
    stage.send("/a(\r");
    assert!(stage.screen().contains("no regular expression"), "{}", stage.screen());
}

#[test]
fn the_timeline_seeks_steps_and_plays() {
    let mut stage = Stage::of(&forty(), 50, 14);
    let last = |stage: &Stage| stage.lines().last().cloned().unwrap_or_default();
    for (keys, line, clock) in [
        ("5", "line 20", "0:20 / 0:40"),
        (".", "line 21", "0:21"),
        (",", "line 20", "0:20"),
        (",", "line 19", "0:19"),
        ("\x1b[C", "line 24", "0:24"),
        ("\x1b[D", "line 19", "0:19"),
        ("[", "line 10", "0:10"),
        ("0", "", "0:00"),
        ("]", "line 10", "0:10"),
        ("\x1b[1;2C", "line 40", "0:40"),
        ("\x1b[1;2D", "", "0:00"),
    ] {
        stage.send(keys);
        stage.pass(SECOND);
        assert_eq!(last(&stage), line, "after {keys:?}\n{}", stage.screen());
        assert!(stage.screen().contains(clock), "after {keys:?}\n{}", stage.screen());
    }
    stage.send(" ");
    assert!(stage.screen().contains("PLAYING"), "{}", stage.screen());
    for second in 1..=3 {
        stage.pass(SECOND);
        assert_eq!(last(&stage), format!("line {second}"));
    }
    stage.send(">");
    assert!(stage.screen().contains("1.5×"));
    stage.send("> ");
    stage.pass(10 * SECOND);
    assert_eq!(last(&stage), "line 3", "paused");
    stage.send(" ");
    stage.pass(SECOND);
    assert_eq!(last(&stage), "line 5", "twice as fast");
    stage.send("9");
    stage.pass(SECOND);
    stage.send(" ");
    let bar = stage.app.drawn.bar;
    stage.send(&format!("\x1b[<0;{};{}M", bar.x + bar.width / 2 + 1, bar.y + 1));
    assert!(
        ["line 19", "line 20", "line 21"].contains(&last(&stage).as_str()),
        "a click\n{}",
        stage.screen()
    );
    stage.send(&format!("\x1b[<32;{};{}M", bar.x + bar.width, bar.y + 1));
    assert_eq!(last(&stage), "line 40", "dragged to the end");
    assert_eq!(stage.send("q"), Effect::Quit);
}

#[test]
fn an_instruction_goes_behind_its_line_with_the_nearest_snapshot() {
    let mut stage = Stage::with(&forty(), SNAPSHOTS, 60, 20, true);
    stage.send("{");
    assert!(stage.screen().contains("snapshot 8"), "{}", stage.screen());
    let (_, y) = stage.find("line 30");
    assert!(stage.rows()[usize::from(y)].trim_start().starts_with('◆'), "{}", stage.screen());
    stage.send("{");
    assert!(stage.screen().contains("snapshot 7 “twenty”"), "{}", stage.screen());
    stage.send("{");
    assert!(stage.screen().contains("that was the first one"), "{}", stage.screen());
    stage.send("i");
    let rows = stage.rows();
    let (_, at) = stage.find("line 20");
    assert!(rows[usize::from(at) + 1].contains("Instruction from snapshot 7"), "{}", stage.screen());
    let (x, below) = stage.find("line 21");
    assert!(below > at + 3, "the lines behind it give way");
    let buf = stage.terminal.backend().buffer();
    assert!(buf[(x, below)].modifier.contains(Modifier::DIM), "and are dimmed");
    assert!(!buf[(x, at)].modifier.contains(Modifier::DIM), "those before it are not");
    stage.send("use \x1b[200~tabs\nplease\x1b[201~\r");
    assert!(stage.screen().contains("Run branch?"), "{}", stage.screen());
    assert_eq!(stage.send("y"), Effect::Run(vec!["branch".into(), "7".into()]));
    let kept = std::fs::read_to_string(stage.path("instructions.jsonl")).expect("kept");
    assert_eq!(
        kept,
        "{\"id\":99,\"ts_ns\":99,\"anchor_byte\":168,\"line\":19,\"snapshot\":{\"id\":7,\"anchor_byte\":169,\
         \"label\":\"twenty\"},\"text\":\"use tabs\\nplease\"}\n"
    );
    stage.send("i\x1b[1;3B\x1b[1;3B\x1b[1;3B\x1b[1;3B\x1b[1;3B\x1b[1;3B");
    assert!(stage.screen().contains("from snapshot 8"), "moved nearer to the other\n{}", stage.screen());
    stage.send("\x1b");
    assert!(!stage.screen().contains("Instruction"));
    stage.send("i\r");
    assert!(stage.screen().contains("nothing was written"), "{}", stage.screen());
    assert_eq!(std::fs::read_to_string(stage.path("instructions.jsonl")).expect("kept"), kept);
}

/// A snapshot hid the instruction in its row, no key led to an instruction, and what was written
/// could not be changed.
#[test]
fn instructions_are_gone_to_changed_and_deleted() {
    let mut stage = Stage::with(&forty(), SNAPSHOTS, 60, 20, true);
    let lines = |stage: &Stage| -> Vec<serde_json::Value> {
        let kept = std::fs::read_to_string(stage.path("instructions.jsonl")).expect("kept");
        kept.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let row =
        |stage: &Stage, text: &str| stage.rows()[usize::from(stage.find(text).1)].trim_start().to_owned();
    stage.send("{iuse tabs\rn");
    assert!(row(&stage, "line 30").starts_with("◆✎line 30"), "both marks\n{}", stage.screen());
    stage.wall = 100;
    stage.send("/line 33\rihere too\rn");
    assert!(row(&stage, "line 33").starts_with("│✎line 33"), "{}", stage.screen());

    // By rows, and in time.
    stage.send("{");
    assert!(stage.screen().contains("snapshot 8, instruction “use tabs”"), "{}", stage.screen());
    stage.send("}");
    assert!(stage.screen().contains("instruction “here too”"), "{}", stage.screen());
    stage.send("}");
    assert!(stage.screen().contains("that was the last one"), "{}", stage.screen());
    stage.send("[");
    assert!(stage.screen().contains("instruction “here too”"), "{}", stage.screen());
    assert!(stage.screen().contains("line 33") && !stage.screen().contains("line 34"), "{}", stage.screen());
    stage.send("i");
    assert!(stage.screen().contains("│here too"), "its text is in the box\n{}", stage.screen());
    stage.send(" and there\rn");
    let all = lines(&stage);
    assert_eq!((all.len(), &all[2]["text"]), (3, &"here too and there".into()));
    assert_eq!((&all[2]["id"], &all[2]["anchor_byte"]), (&all[1]["id"], &all[1]["anchor_byte"]));
    stage.send("i\r");
    assert!(stage.screen().contains("nothing was changed"), "{}", stage.screen());
    stage.send("i");
    stage.send(&"\x7f".repeat(20));
    assert!(stage.screen().contains("Enter delete"), "{}", stage.screen());
    stage.send("\r");
    assert!(stage.screen().contains("deleted in"), "{}", stage.screen());
    assert_eq!(lines(&stage)[3]["deleted"], true);
    assert!(!row(&stage, "line 33").contains('✎'), "{}", stage.screen());
}

#[test]
fn a_click_in_the_gutter_opens_the_box_behind_that_line() {
    let mut stage = Stage::of(&forty(), 60, 20);
    let (x, y) = stage.find("line 36");
    stage.send(&format!("\x1b[<0;{0};{1}M\x1b[<0;{0};{1}m", x + 1, y + 1));
    assert!(!stage.screen().contains("no snapshot"), "a click in the text\n{}", stage.screen());
    assert_eq!(stage.app.selection, None);
    stage.send(&format!("\x1b[<0;{};{}M", x, y + 1));
    let (_, at) = stage.find("line 36");
    assert!(stage.rows()[usize::from(at) + 1].contains("no snapshot to branch from"), "{}", stage.screen());
    stage.send("x\r");
    assert!(
        stage.screen().contains("kept in"),
        "with no snapshot nothing can be branched\n{}",
        stage.screen()
    );
    let folder = stage.path("instructions.jsonl");
    std::fs::remove_file(&folder).expect("there");
    std::fs::create_dir(&folder).expect("made");
    stage.send("iy\r");
    assert!(stage.screen().contains("cannot write"), "{}", stage.screen());
    assert!(stage.screen().contains("│xy"), "what was written is not lost\n{}", stage.screen());
}

/// A recording that grew was shown as it was when it was opened.
#[test]
fn a_recording_in_progress_is_followed() {
    let cast = forty();
    let (head, tail) = cast.split_at(cast.find("[30.0").expect("there"));
    let mut stage = Stage::of(head, 60, 20);
    assert!(stage.screen().contains("line 29") && stage.screen().contains("END"), "{}", stage.screen());
    let path = stage.app.origin.path().expect("a recording").to_owned();
    let grow = |more: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("it opens");
        std::io::Write::write_all(&mut file, more.as_bytes()).expect("written");
    };
    stage.send("F");
    assert!(stage.screen().contains("FOLLOWING"), "{}", stage.screen());
    // The last line is still being written.
    let (now, later) = tail.split_at(tail.find("[35.0").expect("there") + 9);
    grow(now);
    stage.pass(SECOND);
    assert!(stage.screen().contains("line 34") && !stage.screen().contains("line 35"), "{}", stage.screen());
    grow(later);
    stage.pass(SECOND);
    assert!(stage.screen().contains("line 40") && stage.screen().contains("FOLLOWING"), "{}", stage.screen());
    stage.send("k");
    assert!(stage.screen().contains("no longer following"), "{}", stage.screen());
    grow("[41.0,\"o\",\"\\r\\nline 41\"]\n");
    stage.pass(SECOND);
    stage.send("G");
    assert!(!stage.screen().contains("line 41"), "{}", stage.screen());
    // From any place it goes to the end of a recording that has grown.
    stage.send("0F");
    assert!(stage.screen().contains("line 41"), "{}", stage.screen());
    stage.send("\x1b[D");
    assert!(!stage.screen().contains("FOLLOWING"), "a move in time\n{}", stage.screen());
}

/// Ctrl-C ended the viewer while it followed; `less +F` goes on reading.
#[test]
fn ctrl_c_stops_following_and_the_viewer_stays() {
    let mut stage = Stage::of(&forty(), 60, 20);
    stage.send("F");
    assert!(stage.screen().contains("FOLLOWING"), "{}", stage.screen());
    assert_eq!(stage.send("\x03"), Effect::Nothing);
    assert!(stage.screen().contains("no longer following"), "{}", stage.screen());
    assert!(!stage.screen().contains("FOLLOWING"), "{}", stage.screen());
    assert_eq!(stage.send("\x03"), Effect::Quit);
}

/// A recording that tells how its program ended does not grow, and was followed nevertheless.
#[test]
fn a_finished_recording_is_not_followed() {
    let cast = "{\"version\":3,\"term\":{\"cols\":20,\"rows\":8}}\n[1.0,\"o\",\"done\"]\n[0.5,\"x\",\"0\"]\n";
    let mut stage = Stage::of(cast, 60, 20);
    for keys in ["F", "/done\r\x1bF"] {
        stage.send(keys);
        assert!(stage.screen().contains("the recording has ended"), "{}", stage.screen());
        assert!(stage.screen().contains("■ END"), "{}", stage.screen());
    }
    stage.send("0F");
    assert!(stage.screen().contains("PLAYING"), "{}", stage.screen());
    stage.pass(3 * SECOND);
    stage.pass(3 * SECOND);
    assert!(stage.screen().contains("■ END"), "{}", stage.screen());
}

/// All hints were left out where one of them did not fit.
#[test]
fn the_status_line_always_names_the_key_for_help() {
    for (cols, rows) in [(80, 24), (60, 14), (40, 12), (30, 12)] {
        let stage = Stage::of(&forty(), cols, rows);
        let status = stage.rows().pop().unwrap_or_default();
        assert!(status.ends_with("? keys"), "{cols}×{rows}: {status}");
        let (live, _) = Stage::live(cols, rows);
        let status = live.rows().pop().unwrap_or_default();
        assert!(status.ends_with("? keys"), "{cols}×{rows}: {status}");
    }
}

#[test]
fn text_is_selected_by_dragging_and_copied() {
    let mut stage = Stage::of(&forty(), 60, 20);
    let at = |stage: &Stage, text: &str| stage.find(text);
    let drag = |from: (u16, u16), to: (u16, u16)| {
        format!("\x1b[<0;{};{}M\x1b[<32;{2};{3}M\x1b[<0;{2};{3}m", from.0 + 1, from.1 + 1, to.0 + 1, to.1 + 1)
    };
    let (from, to) = (at(&stage, "line 36"), at(&stage, "line 38"));
    stage.send(&drag((from.0 + 5, from.1), (to.0 + 3, to.1)));
    let reversed = |stage: &Stage, (x, y): (u16, u16)| {
        stage.terminal.backend().buffer()[(x, y)].modifier.contains(Modifier::REVERSED)
    };
    assert!(reversed(&stage, (from.0 + 5, from.1)) && reversed(&stage, (to.0 + 3, to.1)));
    assert!(!reversed(&stage, (from.0 + 4, from.1)) && !reversed(&stage, (to.0 + 4, to.1)));
    assert_eq!(stage.send("y"), Effect::Copy("36\nline 37\nline".into()));
    assert!(stage.screen().contains("copied 3 lines, 15 characters"), "{}", stage.screen());
    // The same, from the end to the start.
    stage.send(&drag((to.0 + 3, to.1), (from.0 + 5, from.1)));
    assert_eq!(stage.send("y"), Effect::Copy("36\nline 37\nline".into()));
    // Beyond the upper edge it scrolls.
    stage.send(&drag((to.0 + 6, to.1), (to.0, 0)));
    let Effect::Copy(text) = stage.send("y") else { panic!("nothing is copied") };
    assert!(text.starts_with("line 32\n") && text.ends_with("\nline 38"), "{text}");
    stage.send("\x1b");
    assert_eq!(stage.app.selection, None);
    stage.send("G");
    assert_eq!(stage.send("y"), Effect::Copy("line 40".into()), "without a selection the last line");
    stage.send("/line 35\r");
    assert_eq!(stage.send("y"), Effect::Copy("line 35".into()), "or the line that was found");
}

#[test]
fn a_wrapped_line_is_copied_as_one_and_too_much_is_refused() {
    let mut cast = "{\"version\":2,\"width\":20,\"height\":4}\n".to_owned();
    cast += "[0.1,\"o\",\"a line that is longer than its 漢字 row\\r\\nend\"]\n";
    let mut stage = Stage::of(&cast, 60, 20);
    stage.send("/longer\r");
    assert_eq!(stage.send("y"), Effect::Copy("a line that is longer than its 漢字 row".into()));
    let long =
        format!("{{\"version\":2,\"width\":500,\"height\":400}}\n[0.1,\"o\",\"{}\"]\n", "x".repeat(90_000));
    let mut stage = Stage::of(&long, 60, 20);
    assert_eq!(stage.send("y"), Effect::Nothing);
    assert!(stage.screen().contains("cannot copy 90000 bytes"), "{}", stage.screen());
}

#[test]
fn nothing_from_a_recording_acts() {
    let nasty = "\\u001b]0;t\\u001bP\\u0007\\u0090\\u009b31m";
    let mut cast = "{\"version\":2,\"width\":20,\"height\":3}\n".to_owned();
    cast += &format!("[0.1,\"o\",\"{nasty}x\\u202ey\\u0000\\u009b\\u001b]8;;javascript:x\\u0007z\"]\n");
    cast += "[0.2,\"m\",\"\\u001b]52;c;eA==\\u0007\\u202e\\n\"]\n[0.3,\"o\",\"end\"]\n";
    let snapshots = "{\"id\":1,\"ts_ns\":1,\"label\":\"\\u001b[31m\\u009b\",\"anchor_byte\":5}\n";
    let mut stage = Stage::with(&cast, snapshots, 60, 16, true);
    for keys in [
        "[",
        "i",
        "\x1b",
        "{",
        "=",
        "h",
        " ",
        "\x1b[200~\x1b[31m\x1b[201~",
        "/\x1b[200~\x1b[31m\u{9b}\x1b[201~",
    ] {
        stage.send(keys);
        for cell in &stage.terminal.backend().buffer().content {
            let symbol = cell.symbol();
            assert!(
                !symbol.chars().any(crate::human::is_unsafe),
                "after {keys:?}: {symbol:?}\n{}",
                stage.screen()
            );
        }
    }
}

#[test]
fn without_colour_there_is_none() {
    let mut cast = forty();
    cast += "[41.0,\"o\",\"\\u001b[31;44mred\"]\n";
    let mut stage = Stage::with(&cast, SNAPSHOTS, 60, 16, false);
    for keys in ["", "/red\r", "{", "i", "\x1b", "h"] {
        stage.send(keys);
        for cell in &stage.terminal.backend().buffer().content {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "after {keys:?}");
        }
    }
    stage.send("xG");
    let (x, y) = stage.find("red");
    let found = stage.terminal.backend().buffer()[(x, y)].modifier;
    assert!(found.contains(Modifier::REVERSED), "what is found still shows");
}

#[test]
fn a_smaller_screen_scrolls_and_wide_characters_stay_whole() {
    let mut cast = "{\"version\":2,\"width\":40,\"height\":4}\n".to_owned();
    cast += "[0.1,\"o\",\"漢字漢字漢字漢字漢字漢字漢字 far right\"]\n";
    let mut stage = Stage::of(&cast, 20, 8);
    let (x, _) = stage.find("漢字");
    assert_eq!(x, 1, "{}", stage.screen());
    stage.send("8\x1b)");
    assert!(stage.screen().contains("漢字漢字"), "{}", stage.screen());
    stage.send("\x1b)\x1b[1;3C");
    assert!(stage.screen().contains("far right"), "{}", stage.screen());
    stage.send("\x1b(");
    assert!(!stage.screen().contains("far right"), "{}", stage.screen());
    stage.send("\x1b}");
    assert!(stage.screen().contains("far right"), "{}", stage.screen());
    stage.send("\x1b[1;5D/far\r");
    assert!(stage.screen().contains("far"), "a hit is brought into sight\n{}", stage.screen());
}

#[test]
fn blank_rows_are_the_first_to_go_where_the_window_is_smaller() {
    // Lines above the cursor, what stands at the bottom, and the first and last row of ten that are
    // in sight of 24.
    for (lines, bottom, first, last) in [
        (3, "", "line 1", "line 3"),
        (14, "", "line 7", "line 14"),
        (3, "status", "line 3", ""),
        (12, "status", "line 12", ""),
    ] {
        let mut output: String = (1..=lines).map(|n| format!("line {n}\\r\\n")).collect();
        if !bottom.is_empty() {
            output += &format!("\\u001b[24H{bottom}\\u001b[{lines}H");
        }
        let cast = format!("{{\"version\":2,\"width\":40,\"height\":24}}\n[0.1,\"o\",\"{output}\"]\n");
        let stage = Stage::of(&cast, 50, 13);
        let seen = stage.lines();
        assert_eq!(seen.first().map(String::as_str), Some(first), "{lines} {bottom}\n{}", stage.screen());
        if !last.is_empty() {
            assert!(seen.iter().any(|l| l == last), "{lines} {bottom}\n{}", stage.screen());
        }
    }
}

#[test]
fn a_search_to_begin_with_waits_for_the_picture() {
    let mut stage = Stage::of(&forty(), 16, 10);
    stage.app.drawn = Drawn::default();
    stage.app.search_for("line 7$").expect("a pattern");
    stage.settle();
    stage.settle();
    assert_eq!((stage.app.focus, stage.app.scroll.left), (Some(6), 0), "{}", stage.screen());
    assert_eq!(stage.app.search_for("a("), Err("unclosed group".to_owned()));
}

#[test]
fn any_size_and_any_key() {
    // Numbers that look like chance and are the same every time.
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    };
    let keys = [
        "j",
        "k",
        "g",
        "G",
        "/",
        "?",
        "n",
        "N",
        "line",
        "\r",
        "\x1b",
        "i",
        "t",
        "h",
        " ",
        ".",
        ",",
        "5",
        "[",
        "]",
        "{",
        "}",
        "+",
        "-",
        "\x1b[A",
        "\x1b[C",
        "\x1b[D",
        "\x1b[1;3A",
        "\x1b[1;3B",
        "&",
        "!",
        "|",
        "'",
        "%",
        "(",
        ")",
        "\x1bF",
        "\x1b)",
        "\x06",
        "=",
        "m",
        "'",
        "a",
        "\x1b[<0;3;3M",
        "\x1b[<0;1;1M",
        "\x1b[<64;1;1M",
        "\x1b[<32;9;9M",
        "\x1b[<0;9;9m",
        "\x1b[<32;1;1M",
        "y",
        "\x1b[200~p\nq\x1b[201~",
        "d",
        "u",
        "F",
    ];
    let mut stage = Stage::with(&forty(), SNAPSHOTS, 40, 12, true);
    for (cols, rows) in
        [(0, 0), (1, 1), (2, 1), (1, 2), (3, 3), (5, 4), (8, 5), (13, 7), (500, 2), (2, 300), (200, 60)]
    {
        stage.terminal = terminal(cols, rows);
        stage.settle();
        for _ in 0..150 {
            stage.send(keys[next(keys.len())]);
            stage.pass(Duration::from_millis(10 * next(300) as u64));
        }
    }
}

#[test]
fn typing_to_a_live_program_takes_the_stick_and_says_who_drives() {
    let (mut stage, link) = Stage::live(60, 14);
    let tell = |news: News| link.0.borrow_mut().news.push_back(news);
    tell(News::Output(b"$ ls\r\n\x1b[?1h".to_vec()));
    tell(News::Holder(Some("bot".into())));
    stage.settle();
    assert!(stage.screen().contains("● LIVE") && stage.screen().contains("bot drives"), "{}", stage.screen());
    link.0.borrow_mut().refuses = Some("boss drives".into());
    stage.send("\r");
    assert!(stage.screen().contains("boss drives"), "refused\n{}", stage.screen());
    link.0.borrow_mut().refuses = None;
    stage.send("\rq\x1b[A\x03");
    assert_eq!(link.0.borrow().sent, b"q\x1bOA\x03", "keys as the program's modes want them");
    assert!(stage.screen().contains("TYPING"), "{}", stage.screen());
    stage.send("\x1d");
    assert!(link.0.borrow().released && stage.screen().contains("● LIVE"), "{}", stage.screen());
    stage.send("\r");
    tell(News::Holder(Some("boss".into())));
    stage.settle();
    assert!(stage.screen().contains("boss has taken the stick"), "{}", stage.screen());
    stage.send("x");
    assert_eq!(link.0.borrow().sent, b"q\x1bOA\x03", "nothing goes to the program any more");
    stage.send("i");
    assert!(stage.screen().contains("not recorded"), "{}", stage.screen());
}

#[test]
fn rows_that_fall_out_of_scrollback_do_not_count() {
    let (mut stage, link) = Stage::live(70, 14);
    let lines: String = (1..=5000).map(|i| format!("line {i}\r\n")).collect();
    link.0.borrow_mut().news.push_back(News::Output(lines.into_bytes()));
    stage.settle();
    assert!(stage.screen().contains("rows 1001–1008 of 1008 · 100%"), "{}", stage.screen());
    stage.send("g");
    assert!(stage.screen().contains("rows 1–8 of 1008 · 0%"), "{}", stage.screen());
    stage.send("/line 4500$\r");
    assert_eq!(stage.app.focus, Some(4499));
    link.0.borrow_mut().news.push_back(News::Output(b"more\r\n".repeat(100)));
    stage.settle();
    assert!(
        stage.lines().contains(&"line 4500".to_owned()),
        "what is read stays where it is\n{}",
        stage.screen()
    );
    link.0.borrow_mut().news.push_back(News::Output(b"more\r\n".repeat(2000)));
    stage.settle();
    assert!(stage.screen().contains("rows 1–8 of 1008"), "until it is gone\n{}", stage.screen());
}

#[test]
fn leaving_a_live_program_is_asked_about() {
    let (mut stage, link) = Stage::live(70, 14);
    assert_eq!(stage.send("q"), Effect::Nothing);
    assert!(
        stage.screen().contains("still runs") && !stage.screen().contains("leave it running"),
        "{}",
        stage.screen()
    );
    assert_eq!(stage.send("n"), Effect::Nothing);
    assert_eq!(stage.send("qy"), Effect::Nothing, "it would not go on without the viewer");
    assert_eq!(stage.send("q\r"), Effect::Nothing);
    link.0.borrow_mut().outlives = true;
    stage.send("q");
    assert!(stage.screen().contains("leave it running"), "{}", stage.screen());
    assert_eq!(stage.send("y"), Effect::Quit);
    assert_eq!(stage.send("q\r"), Effect::Quit, "Enter does what is asked first");
    assert!(!link.0.borrow().ended);
    assert_eq!(stage.send("qe"), Effect::Nothing, "how it ends is seen first");
    assert!(link.0.borrow().ended && !stage.app.has_left());
    stage.pass(20 * SECOND);
    assert!(stage.screen().contains("being ended"), "{}", stage.screen());
    assert_eq!(stage.send("q"), Effect::Quit, "the user does not have to wait for that");
    link.0.borrow_mut().news.push_back(News::Ended(Exit::Code(3)));
    stage.settle();
    assert!(stage.app.has_left());
    assert!(stage.screen().contains("EXIT 3"), "{}", stage.screen());
    assert_eq!(stage.send("q"), Effect::Quit, "nothing runs any more");
}

#[test]
fn a_live_recording_is_marked_and_paused() {
    let (mut stage, link) = Stage::live(60, 14);
    stage.send("m");
    assert!(stage.screen().contains("marker"), "{}", stage.screen());
    stage.send("tests begin\rm\rmnot this\x1b");
    assert_eq!(link.0.borrow().marks, ["tests begin", ""]);
    link.0.borrow_mut().news.push_back(News::Told("marked".into()));
    stage.settle();
    assert!(stage.screen().contains("marked"), "{}", stage.screen());
    stage.send("p");
    stage.settle();
    assert!(stage.screen().contains("the recording is paused"), "{}", stage.screen());
    stage.send("k");
    assert!(stage.screen().contains("REC PAUSED"), "{}", stage.screen());
    stage.send("p");
    stage.settle();
    assert!(stage.screen().contains("the recording goes on"), "{}", stage.screen());
    link.0.borrow_mut().news.push_back(News::Refused("this session is not being recorded".into()));
    stage.settle();
    let screen = stage.screen();
    assert!(screen.contains("not being recorded") && !screen.contains("PAUSED"), "{screen}");
    // Keys of less in a recording.
    let mut tape = Stage::of(&forty(), 60, 14);
    tape.send("gma10p'a");
    assert_eq!(tape.app.scroll.top, 0);
}

#[test]
fn narrow_boxes_name_the_keys_that_matter_most() {
    for (cols, has) in [
        (80, "Enter keep, branch · Esc drop · Alt-Enter line · Alt-↑↓ move"),
        (40, "Enter keep, branch · Esc drop"),
    ] {
        let mut stage = Stage::with(&forty(), SNAPSHOTS, cols, 20, true);
        stage.send("i");
        let screen = stage.screen();
        let footer = screen.lines().find(|row| row.contains("Enter")).unwrap_or_default();
        assert!(footer.contains(has) && !footer.contains('…'), "{screen}");
    }
}
