//! Sessions on terminals of several sizes: what each shows, who has a say in the size, and what is
//! left behind.

use serde_json::Value;

use crate::live::Detached;
use crate::support::{Home, Seat, eventually};

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
    let mut second = Seat::with_size(home.tapdeck(["attach", "s"]), 80, 24);
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
        seat.wait_text("C-\\ d leaves · t takes the stick · r gives it up · m marks · p pauses");
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
    seat.wait_text("C-\\ d leaves · ? hides this");
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
