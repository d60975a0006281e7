//! `tapdeck play`: in time, at a place, with keys, and harmless.

use std::time::{Duration, Instant};

use crate::hostile;
use crate::support::{Home, Seat};

fn record(home: &Home, name: &str, script: &str) {
    let out = home.run(["rec", "-q", name, "--", "sh", "-c", script]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn bytes_come_exactly_and_not_early() {
    let home = Home::new();
    record(&home, "t.ahr", "echo one; sleep 0.6; echo two");
    let start = Instant::now();
    let out = home.run(["play", "t.ahr"]);
    assert_eq!(out.stdout, b"one\r\ntwo\r\n");
    assert!(start.elapsed() >= Duration::from_millis(550), "not before its time");
    assert_eq!(home.run(["play", "--idle-time-limit", "1ms", "t.ahr"]).stdout, b"one\r\ntwo\r\n");
    assert_eq!(home.run(["play", "--speed", "100", "t.ahr"]).stdout, b"one\r\ntwo\r\n");
}

#[test]
fn fast_prints_all_lines_not_only_the_screen() {
    let home = Home::new();
    record(&home, "f.ahr", "seq 1 500; printf '\\033[31mredder\\033[0m and \\rnot\\n'");
    let out = home.run(["play", "--fast", "--no-colors", "f.ahr"]);
    let text = String::from_utf8(out.stdout).expect("text");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[499], lines[500]), (501, "1", "500", "notder and"));
    for (color, coloured) in [("auto", false), ("always", true), ("never", false)] {
        let out = home.run(["play", "--fast", "--color", color, "f.ahr"]).stdout;
        assert_eq!(out.windows(3).any(|w| w == b"31m"), coloured, "{color}");
    }
    // In its own time a pipe gets the bytes, unless colours are refused.
    for (color, coloured) in [("auto", true), ("always", true), ("never", false)] {
        let out = home.run(["play", "--color", color, "f.ahr"]).stdout;
        assert_eq!(out.windows(3).any(|w| w == b"31m"), coloured, "{color}");
    }
    let both = home.run(["play", "--no-colors", "--color", "always", "f.ahr"]);
    assert_eq!(both.status.code(), Some(2), "one of them");
}

/// A program on pipes ends its lines with a line feed alone. Live they were straight, and replayed
/// a staircase.
#[test]
fn what_ran_on_pipes_is_straight_in_every_form_and_exact_on_disk() {
    let home = Home::new();
    let script = "printf 'left\\nalso left\\n'; printf 'at last\\r\\n'";
    for name in ["p.ahr", "direct.cast"] {
        let out = home.run(["rec", "-q", "--no-pty", name, "--", "sh", "-c", script]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let bytes = b"left\nalso left\nat last\r\n";
    assert_eq!(crate::support::recorded_output(&home.path("p.ahr")), bytes);
    assert_eq!(home.run(["play", "p.ahr"]).stdout, bytes, "to a pipe as it came");
    let straight = "left\nalso left\nat last\n";
    let text = |name: &str| {
        let out = home.run(["play", "--fast", "--no-colors", name]);
        String::from_utf8(out.stdout).expect("text")
    };
    assert_eq!(text("p.ahr"), straight);
    assert_eq!(text("direct.cast"), straight);
    for name in ["q.txt", "q.cast", "q.ttyrec", "q.ahr", "q.raw", "q.cassette.tar.zst"] {
        let out = home.run(["convert", "p.ahr", "-o", name]);
        assert_eq!(out.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    }
    assert_eq!(std::fs::read_to_string(home.path("q.txt")).expect("written"), straight);
    assert_eq!(std::fs::read(home.path("q.raw")).expect("written"), bytes, "nothing but the bytes");
    assert_eq!(crate::support::recorded_output(&home.path("q.ahr")), bytes);
    for name in ["q.cast", "q.ttyrec", "q.ahr", "q.cassette.tar.zst"] {
        assert_eq!(text(name), straight, "{name}");
    }
    assert_eq!(home.run(["index", "p.ahr"]).status.code(), Some(0));
    let mut seat = Seat::new(home.tapdeck(["play", "p.ahr"]));
    assert!(seat.end().success());
    let screen = seat.screen();
    assert!(screen.lines().any(|line| line.trim_end() == "also left"), "{screen}");
}

/// A recording from a pipe, or one brought to the foreground, could not be paused or quit.
#[test]
fn keys_are_the_terminals_whatever_standard_input_is() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"begun\"]\n[9000,\"o\",\"over\"]\n";
    std::fs::write(home.path("long.cast"), cast).expect("written");
    let play = crate::support::TAPDECK;
    for script in [format!("cat long.cast | {play} play -"), format!("{play} play long.cast </dev/null")] {
        let mut command = home.command("sh");
        command.args(["-c", &script]);
        let mut seat = Seat::new(command);
        seat.wait_text("begun");
        seat.send("q");
        assert!(seat.end().success(), "{script}");
        assert_eq!(format!("{:?}", seat.termios()), seat.original, "{script}");
    }
    let mut shell = home.command("bash");
    shell.args(["--norc", "-i"]);
    let mut seat = Seat::new(shell);
    seat.wait_text("$");
    seat.send(format!("{play} play long.cast &\r"));
    seat.wait_text("begun");
    seat.send("fg\r");
    // A shell's line editor leaves signals to the terminal; a keyboard of one's own does not.
    let raw = |s: &Seat| !s.termios().local_modes.contains(rustix::termios::LocalModes::ISIG);
    seat.wait("the foreground", |s| raw(s));
    seat.send("q");
    seat.wait("the shell again", |s| !raw(s) && s.screen().trim_end().ends_with('$'));
    seat.send("exit 3\r");
    assert_eq!(seat.end().code(), Some(3));
}

#[test]
fn meta_and_missing_files() {
    let home = Home::new();
    record(&home, "m.ahr", "echo hi");
    let out = home.run(["play", "--print-meta", "m.ahr"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("command    sh -c echo hi"));
    assert_eq!(home.run(["play", "nothing.ahr"]).status.code(), Some(3));
    std::fs::write(home.path("text.ahr"), "hello").expect("written");
    assert_eq!(home.run(["play", "text.ahr"]).status.code(), Some(4));
}

#[test]
fn keys_pause_step_jump_and_quit() {
    let home = Home::new();
    record(&home, "k.ahr", "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.2; done");
    let mut seat = Seat::with_size(home.tapdeck(["play", "k.ahr"]), 80, 30);
    let before = seat.original.clone();
    seat.wait_text("line 1");
    seat.send(" ");
    seat.wait_text("❚❚");
    seat.send("9");
    seat.wait_text("line 8");
    seat.send("0");
    seat.wait("the start again", |s| !s.screen().contains("line 2"));
    seat.send(".");
    seat.send(".");
    seat.wait_text("line 2");
    seat.send(",");
    seat.wait("a step back", |s| !s.screen().contains("line 2"));
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    assert_eq!(format!("{:?}", seat.termios()), before);
}

#[test]
fn it_plays_to_the_end_and_leaves_the_last_picture() {
    let home = Home::new();
    record(&home, "e.ahr", "echo first; printf '\\033[5;10Hplaced'; echo; echo last");
    let mut seat = Seat::new(home.tapdeck(["play", "e.ahr"]));
    assert_eq!(seat.end().code(), Some(0));
    let screen = seat.screen();
    assert!(
        screen.contains("first") && screen.contains("         placed") && screen.contains("last"),
        "{screen}"
    );
}

#[test]
fn it_starts_at_a_place() {
    let home = Home::new();
    record(
        &home,
        "a.ahr",
        "for i in 1 2 3 4; do echo line $i; sleep 0.3; done; printf '\\033[?1049hfull screen'; sleep 0.3",
    );
    let mut seat = Seat::new(home.tapdeck(["play", "--at", "50%", "a.ahr"]));
    seat.wait_text("line 2");
    assert!(seat.screen().contains("line 1"), "what came before is there: {}", seat.screen());
    seat.end();
    let modes = seat.term.modes();
    assert!(!modes.alternate(), "the other screen is left at the end");
}

#[test]
fn it_loops_until_stopped() {
    let home = Home::new();
    record(&home, "l.ahr", "echo again");
    let mut seat = Seat::new(home.tapdeck(["play", "--loop", "l.ahr"]));
    seat.wait("three rounds", |s| s.raw.windows(5).filter(|w| *w == b"again").count() >= 3);
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
}

/// A recording that lasts no time was begun anew thousands of times a second.
#[test]
fn a_loop_of_nothing_rests() {
    let home = Home::new();
    let header = "{\"version\":2,\"width\":80,\"height\":24}\n";
    for (name, events) in [("empty.cast", ""), ("still.cast", "[0,\"o\",\"still\"]\n")] {
        std::fs::write(home.path(name), format!("{header}{events}")).expect("written");
        let mut seat = Seat::new(home.tapdeck(["play", "--loop", name]));
        seat.wait("it to begin", |s| s.term.modes().alternate());
        let raw = seat.raw.len();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1500) {
            seat.read_some(Duration::from_millis(50));
        }
        // Four times a second, not hundreds.
        assert!(seat.raw.len() - raw < 64 << 10, "{name}: {} bytes", seat.raw.len() - raw);
        seat.send("q");
        assert_eq!(seat.end().code(), Some(0));
    }
}

/// A recording that grows to the size of the terminal had the progress line in its last row.
#[test]
fn the_progress_line_leaves_a_row_that_the_picture_gets() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":40,\"height\":10}\n[0.1,\"o\",\"small\"]\n[0.9,\"r\",\"80x24\"]\n\
                [1,\"o\",\"\\u001b[24;1HBOTTOM ROW\\u001b[1;1Htop\"]\n[600,\"o\",\".\"]\n";
    std::fs::write(home.path("grows.cast"), cast).expect("written");
    let mut seat = Seat::new(home.tapdeck(["play", "grows.cast"]));
    seat.wait("the progress", |s| s.screen().contains('╌'));
    seat.wait_text("BOTTOM ROW");
    seat.wait("all of it", |s| s.screen().starts_with("top"));
    assert_eq!(seat.term.row(23).map(|l| l.text()).as_deref(), Some("BOTTOM ROW"), "{}", seat.screen());
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
}

/// A recorded title was set on the terminal that played it, and stayed.
#[test]
fn titles_are_left_out() {
    let home = Home::new();
    record(
        &home,
        "t.ahr",
        "printf '\\033]0;theirs\\007\\033]2;too\\033\\\\\\033[22;2tshown'; sleep 0.3; echo done",
    );
    let mut seat = Seat::new(home.tapdeck(["play", "t.ahr"]));
    seat.wait_text("shown");
    // Back to the beginning and forth again: painted from the model.
    seat.send("0");
    seat.wait_text("done");
    seat.end();
    assert_eq!(seat.term.title(), "");
    assert!(!seat.raw.windows(6).any(|w| w == b"theirs"));
}

/// A terminal got the bytes of a recording of its own size, and some of them acted on it.
#[test]
fn a_hostile_recording_cannot_act_on_the_terminal() {
    let home = Home::new();
    for path in hostile::recordings(&home) {
        for (cols, rows) in [(80, 24), (100, 30), (40, 10)] {
            let mut command = home.tapdeck(["play"]);
            command.arg(&path);
            let mut seat = Seat::with_size(command, cols, rows);
            assert_eq!(seat.end().code(), Some(0));
            assert!(seat.screen().contains(hostile::END), "{}", seat.screen());
            hostile::judge("play", hostile::May::Paint, &seat.raw);
            assert!(seat.term.undo_modes().is_empty() && seat.replies.is_empty());
        }
    }
}

/// In a terminal of the recording's size the status line covered the last row of a paused picture,
/// with the line that was being typed there, and no key brought it into sight.
#[test]
fn a_paused_picture_shows_the_row_of_the_cursor() {
    let home = Home::new();
    let rows: String = (1..24).map(|row| format!("row {row}\\r\\n")).collect();
    let header = "{\"version\":2,\"width\":80,\"height\":24}";
    let cast = format!("{header}\n[0.1,\"o\",\"{rows}prompt$ typed\"]\n[900,\"o\",\"x\"]\n");
    std::fs::write(home.path("prompt.cast"), cast).expect("written");
    let mut seat = Seat::new(home.tapdeck(["play", "prompt.cast"]));
    seat.wait("all rows", |s| s.screen().starts_with("row 1\n") && s.screen().ends_with("prompt$ typed"));
    seat.send(" ");
    seat.wait("the row of the cursor and the line", |s| {
        s.screen().starts_with("row 2\n")
            && s.screen().contains("prompt$ typed\n")
            && s.screen().contains("❚❚")
    });
    seat.send("\x1b[A");
    seat.wait("the rows above", |s| s.screen().starts_with("row 1\n") && s.screen().contains("row 23"));
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
}

/// A cast with lines a fifth of a second apart and markers before lines 3 and 6.
fn marked_cast() -> String {
    let mut cast = String::from("{\"version\":2,\"width\":80,\"height\":24}\n");
    for i in 1..=9 {
        if i == 3 || i == 6 {
            cast += &format!("[{}.1,\"m\",\"mark {i}\"]\n", i - 1);
        }
        cast += &format!("[{i}.0,\"o\",\"line {i}\\r\\n\"]\n");
    }
    cast
}

#[test]
fn every_format_plays() {
    let home = Home::new();
    record(&home, "a.ahr", "echo one; printf '\\033[1mtwo\\033[m\\n'");
    let want = home.run(["play", "a.ahr"]).stdout;
    for name in ["b.cast", "b.cast.zst", "b.ttyrec", "b.ttyrec.zst", "b.typescript", "b.raw"] {
        let out = home.run(["convert", "-q", "a.ahr", "-o", name]);
        assert_eq!(out.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        let played = home.run(["play", "--speed", "100", name]);
        assert_eq!(played.stdout, want, "{name}: {}", String::from_utf8_lossy(&played.stderr));
        let fast = home.run(["play", "--fast", "--no-colors", name]);
        assert_eq!(fast.stdout, b"one\ntwo\n", "{name}");
    }
    std::fs::write(
        home.path("v1.json"),
        "{\"version\":1,\"width\":80,\"height\":24,\"duration\":1,\"stdout\":[[0.01,\"hi\"]]}",
    )
    .expect("written");
    assert_eq!(home.run(["play", "v1.json"]).stdout, b"hi");
    let meta = home.run(["play", "--print-meta", "b.cast"]);
    assert!(String::from_utf8_lossy(&meta.stdout).contains("command    sh -c 'echo one;"));
    std::fs::write(home.path("art.ans"), "caf\u{fffd}").expect("written");
    assert_eq!(home.run(["play", "--fast", "art.ans"]).status.code(), Some(0));
    std::fs::write(home.path("art.3a"), "@3a\n\n@body\nabc\n").expect("written");
    let art = home.run(["play", "--fast", "--no-colors", "art.3a"]);
    assert_eq!(art.stdout, b"abc\n", "{}", String::from_utf8_lossy(&art.stderr));
}

#[test]
fn it_starts_at_a_marker_a_byte_or_a_share_of_any_format() {
    let home = Home::new();
    std::fs::write(home.path("m.cast"), marked_cast()).expect("written");
    let out = home.run(["convert", "-q", "m.cast", "-o", "m.ahr"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    for indexed in [false, true] {
        if indexed {
            assert_eq!(home.run(["index", "-q", "m.ahr"]).status.code(), Some(0));
        }
        for name in ["m.cast", "m.ahr"] {
            for (at, first) in
                [("@mark 6", "line 6"), ("byte:16", "line 3"), ("byte:18", "ne 3"), ("70%", "line 7")]
            {
                let out = home.run(["play", "--speed", "1000", "--at", at, name]);
                let rest = String::from_utf8_lossy(&out.stdout).into_owned();
                assert!(rest.starts_with(&format!("{first}\r\n")), "{name} {at}: {rest}");
                assert!(rest.ends_with("line 9\r\n"), "{name} {at}: {rest}");
            }
            let none = home.run(["play", "--at", "@nowhere", name]);
            assert_eq!(none.status.code(), Some(3));
            let said = String::from_utf8_lossy(&none.stderr).into_owned();
            assert!(said.contains("it has @mark 3, @mark 6"), "{said}");
        }
    }
}

#[test]
fn keys_work_in_every_format() {
    let home = Home::new();
    std::fs::write(home.path("m.cast"), marked_cast()).expect("written");
    for name in ["m.cast", "m.ahr", "m.ttyrec"] {
        if name != "m.cast" {
            assert_eq!(home.run(["convert", "-q", "m.cast", "-o", name]).status.code(), Some(0));
        }
        let mut seat = Seat::with_size(home.tapdeck(["play", "--speed", "0.01", name]), 80, 30);
        seat.wait("it to begin", |s| s.raw.windows(2).any(|w| w == b"\x1b["));
        seat.send(" ");
        seat.wait_text("❚❚");
        if name != "m.ttyrec" {
            seat.send("]");
            seat.wait("the first marker", |s| {
                s.screen().contains("line 2") && !s.screen().contains("line 3")
            });
            seat.send("]");
            seat.wait("the second marker", |s| {
                s.screen().contains("line 5") && !s.screen().contains("line 6")
            });
            seat.send("[");
            seat.wait("the first again", |s| s.screen().contains("line 2") && !s.screen().contains("line 3"));
        }
        seat.wait("its length", |s| s.screen().contains("/ 0:08") || s.screen().contains("/ 0:09"));
        seat.send("9");
        seat.wait_text("line 8");
        seat.send(",");
        seat.wait("a step back", |s| s.screen().contains("line 7") && !s.screen().contains("line 8"));
        seat.send(".");
        seat.wait_text("line 8");
        seat.send("q");
        assert_eq!(seat.end().code(), Some(0), "{name}");
    }
}

/// Whatever ended a painted recording, the terminal was to be usable, with the lines on it.
#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"begun\\r\\n\"]\n\
                [0.1,\"o\",\"\\u001b[?1049h\\u001b[?25l\\u001b[?1000h\\u001b[5 qalternate\"]\n[9000,\"o\",\"over\"]\n";
    std::fs::write(home.path("long.cast"), cast).expect("written");
    for (cols, rows) in [(80, 24), (100, 30), (40, 12)] {
        for end in ["q", "\x03", "SIGTERM"] {
            let mut seat = Seat::with_size(home.tapdeck(["play", "long.cast"]), cols, rows);
            seat.wait_text("alternate");
            match end {
                "SIGTERM" => crate::support::signal(seat.child.id(), rustix::process::Signal::TERM),
                keys => seat.send(keys),
            }
            let status = seat.end();
            assert_eq!(status.success(), end != "SIGTERM", "{cols}x{rows} {end:?}: {status}");
            let (modes, cursor) = (seat.term.modes(), seat.term.cursor());
            assert!(!modes.alternate() && cursor.visible, "{cols}x{rows} {end:?}");
            assert_eq!(cursor.shape, tapdeck_term::CursorShape::Default, "{cols}x{rows} {end:?}");
            assert_eq!(modes.mouse(), tapdeck_term::MouseTracking::Off, "{cols}x{rows} {end:?}");
            assert!(seat.screen().contains("begun"), "{cols}x{rows} {end:?}\n{}", seat.screen());
            assert_eq!(format!("{:?}", seat.termios()), seat.original, "{cols}x{rows} {end:?}");
        }
    }
}

#[test]
fn a_search_goes_on_in_time_and_help_shows_the_keys() {
    let home = Home::new();
    std::fs::write(home.path("m.cast"), marked_cast()).expect("written");
    for (cols, rows) in [(80, 24), (100, 30)] {
        let mut seat = Seat::with_size(home.tapdeck(["play", "m.cast", "-s", "0.01"]), cols, rows);
        seat.wait("it to begin", |s| s.raw.windows(2).any(|w| w == b"\x1b["));
        let at = |seat: &Seat, n: u32| {
            let screen = seat.screen();
            screen.contains(&format!("line {n}")) && !screen.contains(&format!("line {}", n + 1))
        };
        seat.send("/LINE\r");
        seat.wait_text("not found after this place: LINE");
        seat.send("/LINX\x7f\x7f\x7f\x7fline [47]\r");
        seat.wait("the first match", |s| at(s, 4) && s.screen().contains("found line"));
        seat.send("n");
        seat.wait("the second match", |s| at(s, 7));
        seat.send("n");
        seat.wait_text("not found after this place");
        assert!(at(&seat, 7), "it stays\n{}", seat.screen());
        seat.send("/(\r");
        seat.wait_text("unclosed");
        seat.send("?");
        seat.wait_text("1 minute forward");
        seat.send("\x1b");
        seat.wait("no help", |s| !s.screen().contains("1 minute forward"));
        seat.send("G");
        seat.wait_text("line 9");
        seat.send("g");
        seat.wait("the start", |s| !s.screen().contains("line 1"));
        seat.send(">");
        seat.wait_text("0.25x");
        seat.send("q");
        assert_eq!(seat.end().code(), Some(0));
    }
}

/// The terminal changes its size while a recording plays in it.
#[test]
fn a_resize_of_the_terminal_is_followed() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"begun\"]\n[9000,\"o\",\"over\"]\n";
    std::fs::write(home.path("long.cast"), cast).expect("written");
    let mut seat = Seat::new(home.tapdeck(["play", "long.cast"]));
    seat.wait_text("begun");
    seat.resize(100, 30);
    seat.wait("a frame", |s| s.screen().contains('┌') && s.screen().contains("│begun"));
    seat.resize(40, 12);
    seat.wait("a part of it", |s| s.screen().starts_with("begun") && s.screen().contains("of 80×24"));
    seat.resize(80, 24);
    seat.wait("all of it", |s| s.screen() == "begun");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
    assert!(!seat.term.modes().alternate() && seat.screen().contains("begun"), "{}", seat.screen());
}
