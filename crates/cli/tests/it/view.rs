//! The viewer on a real terminal.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::live::Detached;
use crate::support::{Home, Seat, TAPDECK, eventually, recorded_output, signal};

/// A recording of numbered lines on 60×10, one every tenth of a second.
fn recording(home: &Home, lines: usize) -> PathBuf {
    let path = home.path("demo.cast");
    let mut cast = "{\"version\":2,\"width\":60,\"height\":10}\n".to_owned();
    for i in 1..=lines {
        let _ = writeln!(cast, "[{}.{},\"o\",\"line {i}\\r\\n\"]", i / 10, i % 10);
    }
    std::fs::write(&path, cast).expect("written");
    path
}

fn view(home: &Home, path: &std::path::Path, cols: u16, rows: u16) -> Seat {
    Seat::with_size(home.tapdeck(["view".as_ref(), path.as_os_str()]), cols, rows)
}

/// The terminal is as it was: settings, screen, mouse, paste and cursor.
#[track_caller]
fn restored(seat: &Seat) {
    assert_eq!(format!("{:?}", seat.termios()), seat.original);
    let modes = seat.term.modes();
    assert!(!modes.alternate() && modes.cursor_visible() && !modes.bracketed_paste());
    assert_eq!(modes.mouse(), tapdeck_term::MouseTracking::Off);
}

#[test]
fn shown_searched_and_left() {
    let home = Home::new();
    let mut seat = view(&home, &recording(&home, 50), 80, 20);
    seat.wait_text("line 50");
    seat.wait_text("■ END");
    assert!(seat.term.modes().alternate());
    seat.send("/line 7$\r");
    seat.wait_text("1 of 1 found");
    seat.wait_text("line 7 ");
    seat.send("5");
    seat.wait("the middle", |s| s.screen().contains("0:02 / 0:05") && s.screen().contains("line 25"));
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
}

/// Keys of `less` in a row, each with what the screen then shows at its top and says at its bottom.
#[test]
fn the_keys_of_less() {
    let home = Home::new();
    let mut command = home.tapdeck(["view".as_ref(), recording(&home, 200).as_os_str()]);
    command.env("SHELL", "/bin/sh").env("EDITOR", "echo edited").env_remove("VISUAL");
    let mut seat = Seat::with_size(command, 80, 20);
    seat.wait_text("■ END");
    let steps: &[(&str, &str, &str)] = &[
        ("g", "line 1 ", "rows 1–10 of"),
        ("10j", "line 11 ", "rows 11–20"),
        ("100g", "line 100 ", "rows 100–109"),
        ("50%", "line 101 ", "rows 101–110"),
        ("ma20k", "line 81 ", "rows 81–90"),
        ("'a", "line 101 ", "rows 101–110"),
        ("''", "line 81 ", "rows 81–90"),
        ("5d", "line 86 ", "rows 86–95"),
        ("u", "line 81 ", "rows 81–90"),
        ("=", "line 81 ", "byte"),
        ("g3/line .*7$\r", "line 24 ", "3 of 20 found"),
        ("n", "line 34 ", "4 of 20 found"),
        ("\x1bu", "line 34 ", "rows 34–43 of 201 · 21%"),
        ("&7$\r", "line 37 ", "only &7$"),
        ("g", "line 7 ", "rows 1–10 of 20"),
        ("&!1\r", "line 7 ", "only &7$ &!1"),
        ("&\r", "line 7 ", "rows 7–16 of 201"),
        ("/\x12l.ne\r", "line 7 ", "not found: l.ne"),
        ("ssaved.txt\r", "line 7 ", "saved 200 rows to saved.txt"),
    ];
    for (keys, top, says) in steps {
        seat.send(keys);
        seat.wait(&format!("{top}and {says} after {keys:?}"), |s| {
            let screen = s.screen();
            let first = screen.lines().find_map(|row| row.find("line ").map(|at| row[at..].to_owned()));
            first.is_some_and(|row| row.starts_with(top)) && screen.contains(says)
        });
    }
    let saved = std::fs::read_to_string(home.path("saved.txt")).expect("saved");
    assert_eq!(saved.lines().count(), 200);
    seat.send("!echo out$((1+1))side\r");
    seat.wait_text("out2side");
    seat.wait_text("press Enter");
    assert!(!seat.term.modes().alternate());
    seat.send("\r");
    seat.wait_text("sh is done");
    seat.send("|$wc -l\r");
    seat.wait_text("194");
    seat.send("\r");
    seat.wait_text("sh is done");
    seat.send("v");
    seat.wait("the editor", |s| s.raw.windows(9).any(|w| w == b"edited +7"));
    seat.wait_text("sh is done");
    seat.send("h");
    seat.wait_text("Keys 1–");
    seat.send("G");
    seat.wait_text("a number before a key is its N");
    seat.send("qZZ");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
}

#[test]
fn an_instruction_is_kept_and_the_command_started() {
    let home = Home::new();
    let path = recording(&home, 12);
    std::fs::write(
        home.path("demo.cast.snapshots.jsonl"),
        "{\"id\":5,\"ts_ns\":0,\"label\":\"\\u001b[31mfive\",\"kind\":\"ipc\",\"anchor_byte\":39}\n",
    )
    .expect("written");
    std::fs::create_dir_all(home.path("config/tapdeck")).expect("made");
    let config = "[view]\nbranch_command = [\"sh\", \"-c\", \"echo id=$1 text=$2; read x; exit 3\", \"sh\", \"{snapshot}\", \"{text}\"]\n";
    std::fs::write(home.path("config/tapdeck/config.toml"), config).expect("written");
    let mut command = home.tapdeck(["view".as_ref(), path.as_os_str()]);
    command.env("XDG_CONFIG_HOME", home.path("config"));
    let mut seat = Seat::with_size(command, 80, 24);
    seat.wait_text("line 12");
    seat.send("{");
    seat.wait_text("snapshot 5");
    seat.send("i");
    seat.wait_text("Instruction from snapshot 5");
    seat.send("do $(touch x) it\r");
    seat.wait_text("Run sh?");
    let kept = std::fs::read_to_string(home.path("demo.cast.instructions.jsonl")).expect("kept");
    assert!(kept.contains("\"text\":\"do $(touch x) it\"") && kept.contains("\"id\":5"), "{kept}");
    seat.send("y");
    seat.wait_text("id=5 text=do $(touch x) it");
    assert!(!seat.term.modes().alternate(), "the command has the terminal");
    seat.send("\r");
    seat.wait_text("sh ended with exit code 3");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    assert!(!home.path("x").exists(), "no shell has seen the text");
    restored(&seat);
    assert!(!seat.raw.windows(5).any(|w| w == b"\x1b[31m"), "a label cannot act");
}

#[test]
fn the_terminal_comes_back_after_a_signal_and_is_lent_out_on_suspension() {
    let home = Home::new();
    let path = recording(&home, 5);
    for kind in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut seat = view(&home, &path, 80, 20);
        seat.wait_text("■ END");
        signal(seat.child.id(), kind);
        assert_eq!(seat.end().signal(), Some(kind.as_raw()));
        restored(&seat);
    }
    let script = format!("set -m; {TAPDECK} view demo.cast; echo stopped; fg >/dev/null; echo over");
    let mut command = home.command("bash");
    command.args(["-c", &script]);
    let mut seat = Seat::with_size(command, 80, 20);
    seat.wait_text("■ END");
    seat.send("\x1a");
    seat.wait("the shell", |s| {
        !s.term.modes().alternate() || s.screen().contains("■ END") && s.raw.ends_with(b"l")
    });
    seat.wait("the viewer again", |s| s.term.modes().alternate() && s.screen().contains("■ END"));
    seat.send("q");
    seat.wait_text("over");
    seat.end();
    restored(&seat);
}

#[test]
fn sizes_change_and_may_be_nothing() {
    let home = Home::new();
    let path = recording(&home, 30);
    let mut seat = view(&home, &path, 80, 20);
    seat.wait_text("line 30");
    seat.resize(30, 8);
    seat.wait("the smaller picture", |s| s.screen().contains("line 30") && s.screen().contains("■ END"));
    assert!(!seat.screen().contains("line 20"));
    seat.resize(1, 1);
    seat.send("k");
    seat.resize(100, 30);
    seat.wait("the larger picture", |s| s.screen().contains("60×10"));
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
    for (cols, rows) in [(0, 0), (1, 1), (3, 2)] {
        let mut seat = view(&home, &path, cols, rows);
        seat.wait("the viewer", |s| s.term.modes().alternate());
        seat.send("jkg/line\rnG0  hx=[q");
        assert_eq!(seat.end().code(), Some(0), "{cols}x{rows}");
        restored(&seat);
    }
}

#[test]
fn a_hundred_thousand_rows_are_searched() {
    let home = Home::new();
    let path = home.path("long.raw");
    let text: String = (1..=100_000).map(|i| format!("row {i} of many\r\n")).collect();
    std::fs::write(&path, text).expect("written");
    let mut seat = view(&home, &path, 80, 30);
    seat.wait_text("row 100000 of many");
    seat.send("g");
    seat.wait_text("row 1 of many");
    seat.send("/row 99[9]98\\b\r");
    seat.wait_text("row 99998 of many");
    seat.send("\x1b?row 17 \r");
    seat.wait_text("row 17 of many");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
}

#[test]
fn what_cannot_be_viewed_says_so() {
    let home = Home::new();
    let path = recording(&home, 1);
    let out = home.run(["view".as_ref(), path.as_os_str()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("the viewer needs a terminal"), "{out:?}");
    let out = home.run(["dash"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("the dashboard needs a terminal"), "{out:?}");
    let out = home.run(["view", "nowhere.ahr"]);
    assert_eq!(out.status.code(), Some(3), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("neither a file nor a live session"), "{out:?}");
    assert_eq!(home.run(["view"]).status.code(), Some(3), "no session to be the only one");
    std::fs::write(home.path("bad.toml"), "[view]\nmuose = 1\n").expect("written");
    let mut command = home.tapdeck(["view".as_ref(), path.as_os_str()]);
    let out = command.env("TAPDECK_CONFIG", home.path("bad.toml")).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(message.contains("bad.toml:2: "), "{message}");
    let mut seat =
        Seat::new(home.tapdeck(["view".as_ref(), path.as_os_str(), "--at".as_ref(), "@none".as_ref()]));
    assert_eq!(seat.end().code(), Some(3), "{}", seat.screen());
    restored(&seat);
}

/// Ends a session when a test is over, however it went.
struct Ends<'a>(&'a Home, &'static str);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let _ = self.0.tapdeck(["kill", self.1]).output();
    }
}

fn start<'a>(home: &'a Home, name: &'static str, script: &str) -> Ends<'a> {
    let out = home.run(["run", "-d", "--name", name, "--window-size", "60x10", "--", "sh", "-c", script]);
    assert!(out.status.success(), "{out:?}");
    Ends(home, name)
}

#[test]
fn a_live_session_is_watched_typed_to_and_left_running() {
    let home = Home::new();
    let _ends = start(&home, "live", "echo ready; while read line; do echo \"got $line\"; stty size; done");
    let mut seat = Seat::with_size(home.tapdeck(["view", "live"]), 80, 20);
    seat.wait_text("ready");
    seat.wait_text("not driven");
    seat.send("\r");
    seat.wait_text("TYPING");
    seat.send("one\r");
    seat.wait_text("got one");
    seat.wait_text("10 60");
    assert!(String::from_utf8_lossy(&home.run(["ls", "--json"]).stdout).contains("\"driver\":\"view\""));
    seat.send("\x1d");
    seat.wait_text("not driven");
    seat.send("/got\r");
    seat.wait_text("1 of 1 found");
    seat.send("q");
    seat.wait_text("The program still runs");
    seat.send("y");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
    let peek = home.run(["peek", "live"]);
    assert!(String::from_utf8_lossy(&peek.stdout).contains("got one"), "it goes on: {peek:?}");
    let mut seat = Seat::with_size(home.tapdeck(["view", "live"]), 80, 20);
    seat.wait_text("got one");
    seat.send("qe");
    assert_eq!(seat.end().code(), Some(0));
    // Its host has seen that its end was seen, and goes.
    eventually("the host to go", || home.run(["peek", "live"]).status.code() == Some(3));
    let gone = Seat::with_size(home.tapdeck(["view", "live"]), 80, 20).end();
    assert_eq!(gone.code(), Some(3), "there is none any more");
}

#[test]
fn a_program_recorded_in_the_viewer_ends_the_command_as_it_ended() {
    let home = Home::new();
    let args = ["rec", "--view", "--export-session", "rv.ahr", "--", "sh", "-c"];
    let script =
        format!("echo start; stty size; {TAPDECK} snapshot --id 9 --label nine; echo behind; read x; exit 7");
    let mut command = home.tapdeck(args);
    command.arg(script);
    let mut seat = Seat::with_size(command, 80, 20);
    seat.wait_text("behind");
    seat.wait_text("17 78");
    seat.wait_text("TYPING");
    seat.send("\x1d");
    seat.wait("the mark", |s| s.screen().contains('◆'));
    seat.send("[");
    seat.wait_text("snapshot 9 “nine”");
    seat.send("i");
    seat.wait_text("Instruction from snapshot 9");
    seat.send("less noise\r");
    seat.wait_text("kept in rv.ahr");
    seat.send("\r");
    seat.wait_text("TYPING");
    seat.send("\r");
    seat.wait_text("■ EXIT 7");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(7));
    restored(&seat);
    assert!(seat.screen().contains("recorded in"), "{}", seat.screen());
    assert!(!home.path("rv.instructions.jsonl").exists(), "it is in the recording now");
    let kept = home.part("rv.ahr", "instructions.jsonl");
    assert!(kept.contains("\"id\":9") && kept.contains("less noise"), "{kept}");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let written = recorded_output(&home.path("rv.ahr")).len() as u64;
    assert!(kept["anchor_byte"].as_u64().is_some_and(|at| at < written), "{kept} of {written}");
    let out = home.run(["verify", "rv.ahr"]);
    assert!(out.status.success(), "{out:?}");
}

/// A view that comes late did not see rows being written, and still knows which snapshot belongs to
/// which.
#[test]
fn snapshots_from_before_the_view_came_are_at_their_rows() {
    let home = Home::new();
    let snap = |id: u32| format!("{TAPDECK} snapshot --id {id} >/dev/null");
    let script = format!("echo one; {}; seq 100 130; echo two; {}; seq 200 230; read x", snap(1), snap(2));
    let args = ["rec", "-d", "--export-session", "--name", "late", "--window-size", "60x10", "late.ahr"];
    let out = home.run([&args[..], &["--", "sh", "-c", &script]].concat());
    assert!(out.status.success(), "{out:?}");
    let _ends = Ends(&home, "late");
    assert!(home.run(["wait", "late", "--text", "^230$"]).status.success());
    let mut seat = Seat::with_size(home.tapdeck(["view", "late"]), 80, 20);
    seat.wait_text("230");
    for (keys, name, row) in
        [("[", "snapshot 2", "◆two"), ("[", "snapshot 1", "◆one"), ("]", "snapshot 2", "◆two")]
    {
        seat.send(keys);
        seat.wait_text(name);
        seat.wait_text(row);
    }
    seat.send("g");
    seat.wait_text("◆one");
    seat.send("/102\r");
    seat.wait_text("1 of 1 found");
    seat.send("i");
    seat.wait_text("Instruction from snapshot 1");
    seat.send("\x1b");
    seat.wait("the box to close", |s| !s.screen().contains("Instruction"));
    seat.send("qe");
    assert_eq!(seat.end().code(), Some(0));
}

/// A recording that grows is followed, and its text copied by the terminal.
#[test]
fn a_recording_in_progress_is_followed_and_copied_from() {
    let home = Home::new();
    let script = "echo first words; read x; echo later words; read x";
    let args =
        ["rec", "-d", "--name", "grows", "--window-size", "60x10", "grows.ahr", "--", "sh", "-c", script];
    let out = home.run(args);
    assert!(out.status.success(), "{out:?}");
    let _ends = Ends(&home, "grows");
    eventually("the first words on disk", || {
        recorded_output(&home.path("grows.ahr")).windows(11).any(|w| w == b"first words")
    });
    let mut seat = Seat::with_size(home.tapdeck(["view", "grows.ahr"]), 80, 20);
    seat.wait_text("first words");
    seat.wait_text("■ END");
    seat.send("gF");
    seat.wait_text("● FOLLOWING");
    assert!(home.run(["type", "grows", "--enter", "x"]).status.success());
    seat.wait_text("later words");
    seat.send("y");
    seat.wait_text("copied 1 line, 11 characters");
    // "later words" in Base64.
    let copied = b"\x1b]52;c;bGF0ZXIgd29yZHM=\x07";
    seat.wait("the clipboard", |s| s.raw.windows(copied.len()).any(|w| w == copied));
    seat.send("k");
    seat.wait_text("no longer following");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
}

/// A dashboard in a session showed a tile of itself.
#[test]
fn the_dashboard_leaves_out_the_session_that_it_runs_in() {
    let home = Home::new();
    let _other = Detached::start(&home, &["--name", "kitchen"], &["cat"]);
    let within = Detached::start(&home, &["--name", "itself"], &[TAPDECK, "dash"]);
    within.wait_text("kitchen");
    let shown = String::from_utf8_lossy(&home.run(["peek", "itself"]).stdout).into_owned();
    assert!(shown.contains("kitchen") && !shown.contains("itself"), "{shown}");
}

#[test]
fn the_dashboard_shows_sessions_as_they_come_and_types_to_one() {
    let home = Home::new();
    let mut seat = Seat::with_size(home.tapdeck(["dash"]), 130, 30);
    seat.wait_text("No live sessions");
    let _first = start(&home, "first", "echo I am one; cat");
    seat.wait_text("I am one");
    let _second = start(&home, "second", "printf '\\033]0;a \\033[31mtitle\\007'; echo I am two; cat");
    seat.wait_text("I am two");
    seat.wait_text("2 LIVE");
    seat.send("2");
    seat.wait_text("second");
    seat.send("\r");
    seat.wait_text("TYPING");
    seat.send("hello\r");
    seat.wait("the echo and the answer", |s| s.screen().matches("hello").count() == 2);
    seat.send("\x1d");
    seat.send("z");
    seat.wait("one tile", |s| !s.screen().contains("I am one") && s.screen().contains("I am two"));
    seat.send("z");
    seat.wait_text("I am one");
    seat.send("/fir");
    seat.wait("the filtered tile", |s| s.screen().contains("I am one") && !s.screen().contains("I am two"));
    seat.send("\x1b");
    seat.wait_text("I am two");
    seat.send("cecho I am $((1+2)); cat\r");
    seat.wait_text("I am 3");
    seat.wait_text("3 LIVE");
    seat.send(",third\r");
    seat.wait_text("3 third");
    assert!(home.run(["ls"]).stdout.windows(5).any(|w| w == b"third"));
    seat.send("xy");
    seat.wait_text("2 LIVE");
    seat.send("2xy");
    seat.wait_text("1 LIVE");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    restored(&seat);
    assert!(home.run(["ls"]).stdout.windows(5).any(|w| w == b"first"), "the other goes on");
}
