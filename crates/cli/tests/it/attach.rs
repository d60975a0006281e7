//! Sessions on terminals of several sizes: what each shows, who has a say in the size, and what is
//! left behind.

use rustix::process::Signal;
use serde_json::Value;
use tapdeck_term::keys::{KeyEvent, KeyPress, encode};

use crate::live::Detached;
use crate::support::{Home, Seat, TAPDECK, eventually, signal};

/// Rows that are used, from the top of the screen.
fn rows(seat: &Seat) -> Vec<String> {
    seat.screen().lines().map(str::to_owned).collect()
}

/// What a session last showed went away with the screen on which it was painted, and the session
/// with it.
#[test]
fn the_last_screen_of_a_session_stays_whatever_the_sizes() {
    let home = Home::new();
    let script = "echo compile error in foo.c; printf '\\033[31mred\\033[m\\n'; exit 2";
    for (cols, rows_n, alternate) in
        [(120, 40, false), (80, 24, false), (30, 8, false), (80, 24, true), (90, 20, true)]
    {
        let screen = if alternate { "printf '\\033[?1049h\\033[H'; " } else { "" };
        let session = Detached::start(&home, &[], &["sh", "-c", &format!("{screen}{script}")]);
        eventually("it to end", || session.listing()["state"] == "exited");
        let mut seat = Seat::with_size(home.tapdeck(["attach", &session.id]), cols, rows_n);
        assert!(seat.end().success());
        let shown = rows(&seat);
        let at = shown.iter().position(|r| r == "compile error in foo.c");
        let at = at.unwrap_or_else(|| panic!("{cols}x{rows_n} {alternate}: {shown:?}"));
        assert_eq!(shown[at + 1], "red");
        assert!(shown[at + 2].starts_with("tapdeck: the program of "), "right below: {shown:?}");
        assert!(!seat.term.modes().alternate());
    }
    // A session that ends while a smaller terminal is attached.
    let session = Detached::start(&home, &[], &["sh", "-c", "seq 30; read x; echo the last line"]);
    session.wait_text("^30$");
    let mut seat = Seat::with_size(home.tapdeck(["attach", "--read-only", &session.id]), 40, 10);
    seat.wait_text("30");
    session.ok(&["send", "Enter"]);
    assert!(seat.end().success());
    let shown = rows(&seat);
    assert!(shown.iter().any(|r| r == "the last line") && shown.iter().any(|r| r == "30"), "{shown:?}");
    let above: Vec<String> = seat.term.lines().map(|l| l.text()).collect();
    assert!(above.iter().any(|r| r == "1"), "what had scrolled away is above: {above:?}");
}

/// The terminal of a `run` kept the size of a client that had driven from elsewhere.
#[test]
fn the_size_follows_the_client_that_typed_last() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--name", "loc", "--", "sh"]));
    seat.wait_text("$");
    let size = || {
        let all: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
        (all[0]["cols"].as_u64(), all[0]["rows_n"].as_u64())
    };
    // A client that has typed nothing leaves the session in the size of its own terminal.
    let mut guest = Seat::with_size(home.tapdeck(["attach", "loc"]), 100, 30);
    guest.wait_text("$");
    guest.resize(101, 31);
    eventually("the guest to be there", || {
        let all: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
        all[0]["driver"] == "attach"
    });
    assert_eq!(size(), (Some(80), Some(24)));
    guest.send("stty size\r");
    guest.wait_text("31 101");
    guest.resize(100, 30);
    eventually("the size to follow who drives", || size() == (Some(100), Some(30)));
    guest.send("\x1cd");
    assert!(guest.end().success());
    seat.send("\x0c\rstty size\r");
    seat.wait_text("24 80");
    assert_eq!(size(), (Some(80), Some(24)));
    // Without another terminal on the session, the size follows at once.
    let mut taker = Seat::with_size(home.tapdeck(["attach", "loc", "--takeover"]), 100, 30);
    eventually("the size to be the taker's", || size() == (Some(100), Some(30)));
    taker.wait_text("24 80");
    seat.send("exit\r");
    assert!(seat.end().success());
    assert!(taker.end().success());
    let session = Detached::start(&home, &["--name", "alone"], &["cat"]);
    let mut seat = Seat::with_size(home.tapdeck(["attach", "alone"]), 100, 30);
    eventually("the size to follow", || session.listing()["cols"] == 100);
    seat.send("\x1cd");
    assert!(seat.end().success());
}

/// A notice was written between the program's bytes: it scrolled up with them, and the cursor that
/// the program had saved was another after it.
#[test]
fn a_notice_is_never_among_what_the_program_wrote() {
    let home = Home::new();
    // Every line begins where the cursor was saved, so that a cursor saved by another writer shows.
    let script = "printf 'ready\\0337'; read x; for i in $(seq 400); do printf '\\0338\\0337\\n'; printf 'line %s' $i; \
                  [ $((i % 40)) = 0 ] && sleep 0.05; printf '\\r\\n\\0337'; done; read x";
    let session = Detached::start(&home, &["--name", "s"], &["sh", "-c", script]);
    let mut first = Seat::with_size(home.tapdeck(["attach", "s"]), 80, 24);
    eventually("a driver", || session.listing()["driver"] == "attach");
    let mut second = Seat::with_size(home.tapdeck(["attach", "s", "--no-share"]), 80, 24);
    second.wait_text("ready");
    second.send("z");
    second.wait_text("attach drives");
    first.send("\r");
    for _ in 0..20 {
        second.send("z");
        second.read_some(std::time::Duration::from_millis(20));
    }
    first.wait_text("line 400");
    second.wait_text("line 400");
    second.wait("the notice to go", |s| !s.screen().contains("drives"));
    let lines = |seat: &Seat| seat.term.lines().map(|l| l.text()).collect::<Vec<_>>();
    assert_eq!(first.screen(), second.screen());
    let notices: Vec<String> = lines(&second).into_iter().filter(|l| l.contains("drives")).collect();
    assert!(notices.is_empty(), "{notices:?}");
    let cursor = |seat: &Seat| (seat.term.cursor().row, seat.term.cursor().col);
    assert_eq!(cursor(&first), cursor(&second));
    // Taken over by a terminal of another size, and left while the notice of it stands.
    let mut third = Seat::with_size(home.tapdeck(["attach", "s", "--takeover"]), 60, 20);
    second.wait_text("drives");
    second.wait("the other size", |s| s.term.modes().alternate());
    second.send("\x1cd");
    assert!(second.end().success());
    let shown = rows(&second);
    assert!(shown[0].starts_with("tapdeck: detached from"), "{shown:?}");
    assert_eq!(shown.len(), 1, "{shown:?}");
    third.send("\r");
    assert!(third.end().success());
    assert!(first.end().success());
}

/// The title that the program set stayed when it was left.
#[test]
fn the_title_is_given_back() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "printf '\\033]2;theirs\\007up'; read x"]);
    session.wait_text("up");
    let attach = format!("printf '\\033]2;mine\\007'; {} attach {}", crate::support::TAPDECK, session.id);
    let mut command = home.command("sh");
    command.args(["-c", &attach]);
    let mut seat = Seat::new(command);
    seat.wait("the program's title", |s| s.term.title() == "theirs");
    seat.send("\x1cd");
    assert!(seat.end().success());
    assert_eq!(seat.term.title(), "mine");
}

/// A session that was brought to itself showed itself showing itself, without end.
#[test]
fn a_session_is_not_brought_to_itself() {
    let home = Home::new();
    let mut seat = Seat::with_size(home.tapdeck(["run", "--name", "outermost", "--", "sh"]), 200, 24);
    seat.wait_text("$");
    let tapdeck = crate::support::TAPDECK;
    let refused = |seat: &mut Seat, command: &str, times: usize| {
        seat.send(format!("{tapdeck} {command}; echo code $?\r"));
        seat.wait("the refusal", |s| s.screen().matches("code 2").count() == times);
        assert_eq!(seat.screen().matches("without end").count(), times, "{}", seat.screen());
    };
    refused(&mut seat, "attach outermost", 1);
    refused(&mut seat, "attach --read-only outermost", 2);
    if cfg!(feature = "tui") {
        refused(&mut seat, "view outermost", 3);
    } else {
        refused(&mut seat, "attach outermost", 3);
    }
    // What is shown within a session is shown in all that it is within; but others can be had.
    let session = Detached::start(&home, &["--name", "other"], &["sh", "-c", "echo elsewhere; read x"]);
    session.wait_text("elsewhere");
    seat.send(format!("clear; {tapdeck} run --name inner -- sh\r"));
    eventually("the inner one", || {
        let out = home.run(["wait", "inner", "--prompt", "--timeout", "5s"]);
        out.status.success()
    });
    refused(&mut seat, "attach outermost", 1);
    refused(&mut seat, "attach inner", 2);
    seat.send(format!("{tapdeck} attach other\r"));
    seat.wait_text("elsewhere");
    seat.send("\x1cd");
    seat.wait_text("detached from");
    seat.wait("the inner shell", |s| s.screen().ends_with('$'));
    seat.send("exit\r");
    eventually("its end", || home.run(["peek", "inner"]).status.code() == Some(3));
    seat.wait("the outer shell", |s| s.screen().ends_with('$'));
    seat.send("exit\r");
    seat.end();
}

/// A new user is told how to leave, by the session's name, and can ask for the rest.
#[test]
fn the_way_out_is_shown_on_entry_and_on_request() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "work"], &["cat"]);
    for (cols, rows_n) in [(80, 24), (100, 30)] {
        let mut seat = Seat::with_size(home.tapdeck(["attach", "work"]), cols, rows_n);
        seat.wait_text("work: C-\\ d leaves, C-\\ ? shows more");
        seat.wait("the hint to go", |s| !s.screen().contains("leaves"));
        seat.send("\x1c?");
        seat.wait_text("C-\\ d leaves · z suspends · t takes the stick · r gives it up · m marks");
        seat.wait_text("C-\\ sends C-\\");
        seat.send("\x1cd");
        assert!(seat.end().success());
        assert!(seat.screen().contains("detached from work: tapdeck attach work comes back"));
    }
    let mut command = home.tapdeck(["attach", "work"]);
    std::fs::write(home.path("quiet.toml"), "[attach]\nhint = false\n").expect("written");
    command.env("TAPDECK_CONFIG", home.path("quiet.toml"));
    session.ok(&["type", "--enter", "shown"]);
    let mut seat = Seat::new(command);
    seat.wait_text("shown");
    seat.send("\x1cd");
    assert!(seat.end().success());
    assert!(!String::from_utf8_lossy(&seat.raw).contains("leaves"));
}

/// The list of keys covered the row of the cursor for ten seconds, whatever was typed.
#[test]
fn a_notice_leaves_the_cursors_row_free_and_goes_with_the_next_key() {
    let home = Home::new();
    let script = "printf '\\n\\n\\n\\n\\n\\nlast'; exec cat";
    let _session = Detached::start(&home, &["--name", "work", "--size", "60x6"], &["sh", "-c", script]);
    for cols in [60, 40] {
        let mut seat = Seat::with_size(home.tapdeck(["attach", "work"]), cols, 6);
        seat.wait_text("leaves");
        seat.wait("the last row", |s| s.screen().lines().nth(5).is_some_and(|l| l.starts_with("last")));
        for key in ["x", "\x1c?"] {
            seat.send("\x1c?");
            seat.wait_text("sends C-\\");
            let shown = std::time::Instant::now();
            assert!(seat.screen().lines().next().is_some_and(|l| l.contains("C-\\ d leaves")));
            assert!(seat.screen().lines().nth(5).is_some_and(|l| l.starts_with("last")), "{}", seat.screen());
            seat.send(key);
            seat.wait("it to go", |s| !s.screen().contains("leaves"));
            assert!(shown.elapsed() < std::time::Duration::from_secs(5), "{key:?}");
        }
        seat.send("\x1cd");
        assert!(seat.end().success());
    }
}

#[test]
fn a_client_that_only_watches_is_told_so() {
    let home = Home::new();
    let _session = Detached::start(&home, &["--name", "work"], &["cat"]);
    let mut seat = Seat::new(home.tapdeck(["attach", "--read-only", "work"]));
    seat.wait_text("leaves");
    for keys in ["\x1ct", "x"] {
        seat.send(keys);
        seat.wait_text("read-only: attach without --read-only to type");
        seat.wait("it to go", |s| !s.screen().contains("read-only"));
    }
    seat.send("\x1c?");
    seat.wait_text("C-\\ d leaves · z suspends · ? hides this");
    seat.send("\x1cd");
    assert!(seat.end().success());
    // The stream that is no terminal is named.
    let line = format!("{} attach work | cat", crate::support::TAPDECK);
    let mut piped = home.command("sh");
    piped.args(["-c", &line]);
    let mut seat = Seat::new(piped);
    seat.wait_text("standard output is no terminal");
    assert!(home.run(["kill", "work"]).status.success());
    seat.end();
}

/// A shell on a terminal, with a first line on its screen.
fn shell(home: &Home) -> Seat {
    let mut command = home.command("bash");
    command.args(["--norc", "-i"]);
    let mut seat = Seat::new(command);
    seat.wait_text("$");
    seat.send("echo the screen\\ before\r");
    // At its prompt, bash has the terminal as its line editor wants it.
    seat.wait("the prompt", |s| s.screen().ends_with("the screen before\n$"));
    seat
}

/// A program that had the terminal tell of keys being let go, or tell all keys by number, could not
/// be left.
#[test]
fn the_keys_that_detach_are_known_in_every_keyboard_protocol() {
    let home = Home::new();
    let protocols = [">1u", ">3u", ">8u", ">15u", ">31u", "=15u", ">4;1m", ">4;2m"];
    for protocol in protocols {
        let script = format!("printf '\\033[{protocol}ready'; exec cat");
        let session = Detached::start(&home, &[], &["sh", "-c", &script]);
        session.wait_text("ready");
        let mut seat = Seat::new(home.tapdeck(["attach", &session.id]));
        seat.wait_text("ready");
        seat.wait("the protocol", |s| !s.term.undo_modes().is_empty());
        let press = |seat: &Seat, name: &str| {
            let key: KeyPress = name.parse().expect("a key");
            for event in [KeyEvent::Press, KeyEvent::Release] {
                seat.send(encode(KeyPress { event, ..key }, &seat.term.modes()));
            }
        };
        press(&seat, "C-\\");
        press(&seat, "?");
        seat.wait_text("z suspends");
        press(&seat, "C-\\");
        press(&seat, "d");
        assert!(seat.end().success(), "{protocol}");
        assert!(seat.term.modes().kitty_keyboard() == 0 && seat.term.modes().modify_other_keys() == 0);
    }
}

/// Every attach left a copy of the session behind, and took the screen from the user.
#[test]
fn the_users_screen_comes_back() {
    let home = Home::new();
    let script = "printf '\\033]4;1;#00ff00\\007\\033]11;#400000\\007'; seq 300; exec bash --norc -i";
    let session = Detached::start(&home, &["--name", "work"], &["sh", "-c", script]);
    session.wait_text("^300$");
    let mut seat = shell(&home);
    for round in 1..=3 {
        seat.send(format!("{TAPDECK} attach work\r"));
        seat.wait("the session", |s| s.screen().contains("300") && !s.screen().contains("leaves"));
        // The program has two screens, each with a cursor that it saved.
        seat.send("clear; printf 'main\\0337\\n\\033[?1049h\\033[3;3Halter\\0337\\033[9;9Hend'; read\r");
        seat.wait("its other screen", |s| s.screen().ends_with("end") && !s.screen().contains("main"));
        seat.send("\r");
        seat.wait("its prompt", |s| s.screen().ends_with('$'));
        seat.send("printf '\\0338native'; printf '\\033[?1049l\\0338d\\n'; seq 300\r");
        seat.wait("all of it", |s| s.screen().contains("\n300\n"));
        assert_eq!(seat.screen(), session.ok(&["peek"]).trim_end(), "{round}");
        seat.send("\x1cd");
        seat.wait("the shell", |s| {
            s.screen().matches("comes back").count() == round && s.screen().ends_with('$')
        });
        let shown = rows(&seat);
        assert_eq!(shown[1], "the screen before", "{shown:?}");
        assert_eq!(shown.len(), 2 + 2 * round + 1, "{shown:?}");
        assert_eq!(seat.term.scrollback_len(), 0, "nothing of the session is left behind");
        assert_eq!(*seat.term.palette(), Default::default());
    }
    // With scrollback, its lines join those of the terminal: as many as were asked for.
    let rows_of = |seat: &Seat| seat.term.lines().map(|l| l.text()).collect::<Vec<_>>();
    seat.send(format!("{TAPDECK} attach work --scrollback 50\r"));
    seat.wait("the session", |s| s.screen().contains("\n300\n"));
    let count = |seat: &Seat| rows_of(seat).iter().filter(|row| row.parse::<u32>().is_ok()).count();
    assert_eq!(count(&seat), 50 + 23);
    seat.send("seq 1000 1099\r");
    seat.wait("more", |s| s.screen().contains("\n1099\n"));
    assert_eq!(count(&seat), 50 + 23 + 100);
    seat.send("\x1cd");
    seat.wait("the shell", |s| s.screen().contains("comes back") && s.screen().ends_with('$'));
    assert!(rows_of(&seat).iter().any(|row| row == "the screen before"));
    seat.send("exit\r");
    seat.end();
}

/// A suspended client left the terminal raw, on the other screen and in the program's modes.
#[test]
fn a_suspended_client_gives_the_terminal_back() {
    let home = Home::new();
    let script = "printf '\\033[?1049h\\033[?1003;1006h\\033[>15u\\033[>4;2m\\033[?25lpicture'; exec cat";
    let session = Detached::start(&home, &["--name", "work"], &["sh", "-c", script]);
    session.wait_text("picture");
    for options in ["", "--scrollback 10"] {
        let mut seat = shell(&home);
        let original = format!("{:?}", seat.termios());
        seat.send(format!("{TAPDECK} attach {options} work; echo left $?\r"));
        for by_key in [true, false] {
            seat.wait("the session", |s| {
                s.screen().contains("picture") && s.term.modes().kitty_keyboard() == 15
            });
            match by_key {
                true => seat.send("\x1b[92;5u\x1b[122u"),
                false => signal(child_of(&seat), Signal::TSTP),
            }
            seat.wait("the shell", |s| s.screen().contains("Stopped") && s.screen().ends_with('$'));
            assert!(!seat.screen().contains("picture"), "{}", seat.screen());
            // Bash turns on the paste that it knows to be pasted, for itself.
            let undo = String::from_utf8(seat.term.undo_modes()).expect("text");
            assert!(matches!(&*undo, "" | "\x1b[?2004l"), "{undo:?}");
            assert_eq!(seat.term.modes().modify_other_keys(), 0);
            seat.send("fg\r");
        }
        seat.wait_text("picture");
        seat.send("\x1b[92;5u\x1b[100u");
        seat.wait_text("comes back");
        seat.send("\r");
        seat.wait("the shell", |s| s.screen().ends_with("$\n$"));
        assert_eq!(format!("{:?}", seat.termios()), original);
        seat.send("exit\r");
        seat.end();
    }
}

/// The `tapdeck` that a shell runs in the foreground.
fn child_of(seat: &Seat) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", seat.child.id());
    let children = std::fs::read_to_string(children).expect("a process");
    children.split_whitespace().next_back().and_then(|pid| pid.parse().ok()).expect("a child")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

/// What a client left that was killed, `tapdeck reset` puts in order.
#[test]
fn reset_puts_a_terminal_in_order() {
    let home = Home::new();
    let script = "printf '\\033[?1049h\\033[?1003;1006;2004;1004h\\033[>15u\\033[=3u\\033[>4;2m\\033[?25l\\033[2;5r\\033(0x'; exec cat";
    let _session = Detached::start(&home, &["--name", "work"], &["sh", "-c", script]);
    let mut seat = shell(&home);
    seat.send(format!("{TAPDECK} attach work --scrollback 10\r"));
    seat.wait("the session", |s| s.term.modes().kitty_keyboard() == 3);
    signal(child_of(&seat), Signal::KILL);
    seat.wait("the shell's word", |s| contains(&s.raw, b"Killed"));
    seat.send(format!(
        "\nprintf '\\033]4;1;#00ff00\\007\\033]11;#400000\\007'; stty raw -echo; {TAPDECK} reset\n"
    ));
    seat.wait("order", |s| !s.term.modes().alternate() && s.term.modes().cursor_visible());
    seat.send("echo all\\ right\r");
    seat.wait_text("all right");
    assert_eq!(*seat.term.palette(), Default::default());
    let undo = String::from_utf8(seat.term.undo_modes()).expect("text");
    assert!(matches!(&*undo, "" | "\x1b[?2004l"), "{undo:?}");
    seat.send("exit\r");
    seat.end();
    assert_eq!(format!("{:?}", seat.termios()), seat.original);
}

/// A user had to know whether the session ran.
#[test]
fn a_session_is_started_or_attached_to() {
    let home = Home::new();
    let mut first =
        Seat::with_size(home.tapdeck(["attach", "-A", "work", "--", "sh", "-c", "echo up; cat"]), 90, 20);
    first.wait_text("up");
    let listed = || -> Value { serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON") };
    assert_eq!((&listed()[0]["cols"], &listed()[0]["detached"]), (&90.into(), &true.into()));
    let mut second = Seat::new(home.tapdeck(["attach", "-A", "work"]));
    second.wait_text("up");
    let mut third = Seat::new(home.tapdeck(["run", "-A", "--name", "work", "--", "false"]));
    third.wait_text("up");
    assert_eq!(listed().as_array().map(Vec::len), Some(1));
    for seat in [&mut first, &mut second, &mut third] {
        seat.send("\x1cd");
        assert!(seat.end().success());
        assert!(seat.screen().contains("detached from work: tapdeck attach work comes back"));
    }
    // A part of a name is none.
    let mut other = Seat::new(home.tapdeck(["run", "-A", "--name", "wor", "--", "sh", "-c", "exit 5"]));
    assert_eq!(other.end().code(), Some(5));
    let mut other = Seat::new(home.tapdeck(["attach", "-A", "new", "--", "/nonexistent"]));
    assert_eq!(other.end().code(), Some(127));
    assert!(other.screen().contains("command not found"), "{}", other.screen());
    for args in [&["attach", "-A"][..], &["run", "-A", "--", "true"], &["attach", "work", "--", "true"]] {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
    assert!(home.run(["kill", "work"]).status.success());
}

/// What was typed in another terminal of the same user was refused.
#[test]
fn a_second_terminal_of_a_user_types_at_once() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "work"], &["sh"]);
    let mut first = Seat::with_size(home.tapdeck(["attach", "work"]), 80, 24);
    eventually("a driver", || session.listing()["driver"] == "attach");
    first.wait("the hint to go", |s| contains(&s.raw, b"leaves") && !s.screen().contains("leaves"));
    let mut second = Seat::with_size(home.tapdeck(["attach", "work"]), 70, 20);
    second.wait_text("$");
    second.send("echo sec''ond\r");
    second.wait_text("second");
    first.wait_text("attach-2 drives");
    // The session takes the size of the terminal that types.
    eventually("its size", || session.listing()["cols"] == 70);
    first.send("echo fir''st\r");
    first.wait_text("first");
    eventually("its size", || session.listing()["cols"] == 80);
    second.wait_text("attach drives");
    // A program that types is not interrupted, nor is a user who wants to be asked.
    let mut asked = Seat::with_size(home.tapdeck(["attach", "work", "--no-share"]), 80, 24);
    asked.wait_text("first");
    asked.send("x");
    asked.wait_text("attach drives: C-\\ t takes over");
    asked.send("\x1ct");
    eventually("the stick", || session.listing()["driver"] == "attach-3");
    second.send("y");
    second.wait_text("attach-3 drives: C-\\ t takes over");
    for seat in [&mut first, &mut second, &mut asked] {
        seat.send("\x1cd");
        assert!(seat.end().success());
    }
}

/// Notifications, progress and the clipboard got lost.
#[test]
fn what_the_terminal_is_told_passes_by_a_setting() {
    let home = Home::new();
    let script = "printf 'ready'; read x; printf '\\033]9;all done\\007\\033]777;notify;A;b\\007\\033]99;;kit\\033\\\\'; \
                  printf '\\033]9;4;1;40\\007\\033]52;c;c2VjcmV0\\007\\033]52;c;?\\007told'; exec cat";
    let told: [&[u8]; 4] =
        [b"\x1b]9;all done\x1b\\", b"\x1b]777;notify;A;b\x1b\\", b"\x1b]9;kit\x1b\\", b"\x1b]9;4;1;40\x1b\\"];
    let clipboard = b"\x1b]52;c;c2VjcmV0\x1b\\";
    std::fs::write(home.path("all.toml"), "[attach]\npass = [\"clipboard\"]\n").expect("written");
    for (all, cols) in [(false, 80), (false, 60), (true, 80)] {
        let _session = Detached::start(&home, &["--name", "work", "--size", "80x24"], &["sh", "-c", script]);
        let mut command = home.tapdeck(["attach", "work"]);
        if all {
            command.env("TAPDECK_CONFIG", home.path("all.toml"));
        }
        let mut seat = Seat::with_size(command, cols, 24);
        seat.wait_text("ready");
        assert!(home.run(["send", "work", "Enter", "--takeover"]).status.success());
        seat.wait_text("told");
        seat.send("\x1cd");
        assert!(seat.end().success());
        for part in told {
            assert_eq!(contains(&seat.raw, part), !all, "{:?} {cols}", String::from_utf8_lossy(part));
        }
        assert_eq!(contains(&seat.raw, clipboard), all);
        assert!(!contains(&seat.raw, b"\x1b]52;c;?"));
        assert_eq!(contains(&seat.raw, b"\x1b]9;4;0;0\x1b\\"), !all, "the progress ends with the view");
    }
}
