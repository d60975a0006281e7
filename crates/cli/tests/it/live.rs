//! Live sessions: started without a terminal, found, watched, driven, handed over, and left in
//! order.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_proto::attach::Said;
use tapdeck_proto::bus::{Key, Release, Role, Snap, Take, Typing};
use tapdeck_serve::client::{Attach, Attachment, Bus, Hello, Incoming};
use tapdeck_serve::door::Address;
use tapdeck_term::{Settings, Size, Term};

use crate::support::{Home, PATIENCE, Seat, eventually, lives, recorded_output, signal};

/// The request to type this, which is answered.
pub fn typing(text: &str) -> Key {
    Key::Typed(Typing { text: Some(text.to_owned()), confirm: true, ..Typing::default() })
}

/// A detached session, ended with the test.
pub struct Detached<'a> {
    home: &'a Home,
    pub id: String,
}

impl<'a> Detached<'a> {
    pub fn start(home: &'a Home, options: &[&str], command: &[&str]) -> Self {
        let mut args = vec!["run", "-d"];
        args.extend(options);
        args.push("--");
        args.extend(command);
        let out = home.run(&args);
        assert!(out.status.success(), "{}", text(&out));
        let id = String::from_utf8(out.stdout).expect("text").trim().to_owned();
        Self { home, id }
    }

    /// A session that was started in another way.
    pub fn of(home: &'a Home, id: String) -> Self {
        Self { home, id }
    }

    pub fn listing(&self) -> Value {
        let all: Value = serde_json::from_slice(&self.home.run(["ls", "--json"]).stdout).expect("JSON");
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|s| s["id"] == self.id.as_str()).unwrap_or(Value::Null)
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path("run").join("tapdeck").join(format!("{}.sock", self.id))
    }

    pub fn token(&self) -> String {
        let file = self.home.path("run").join("tapdeck").join(format!("{}.json", self.id));
        let entry: Value = serde_json::from_slice(&std::fs::read(file).expect("listed")).expect("JSON");
        entry["human_token"].as_str().expect("a token").to_owned()
    }

    pub fn bus(&self, role: &str, name: &str) -> Bus {
        let mut bus = Bus::connect(&Address::Unix(self.socket())).expect("it listens");
        let role = Role::from_name(role).expect("a role");
        let token = (role == Role::Human).then(|| self.token());
        bus.hello(&Hello::new(role, name).token(token.as_deref()), PATIENCE).expect("it answers");
        bus
    }

    #[track_caller]
    pub fn wait_text(&self, pattern: &str) {
        let out = self.home.run(["wait", &self.id, "--text", pattern]);
        assert!(out.status.success(), "{pattern}: {}\n{}", text(&out), self.peek());
    }

    fn peek(&self) -> String {
        String::from_utf8(self.home.run(["peek", &self.id]).stdout).expect("text")
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let mut all = vec![args[0], self.id.as_str()];
        all.extend(&args[1..]);
        let out = self.home.run(&all);
        assert!(out.status.success(), "{args:?}: {}", text(&out));
        String::from_utf8(out.stdout).expect("text")
    }
}

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        let _ = self.home.run(["kill", &self.id]);
    }
}

pub fn text(out: &Output) -> String {
    format!(
        "{:?} {}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

/// A wait that failed did not say what the program did instead.
#[test]
fn a_wait_in_vain_tells_what_the_program_does_instead() {
    let home = Home::new();
    let script = "printf 'Do you want to continue? [y/N] '; read a; exit 7";
    let session = Detached::start(&home, &[], &["sh", "-c", script]);
    session.ok(&["wait", "--state", "blocked"]);
    let out = home.run(["wait", &session.id, "--state", "idle", "--timeout", "100ms"]);
    let said = text(&out);
    let wanted = "the program is not idle: it is blocked and asks \"Do you want to continue? [y/N]\"";
    assert!(out.status.code() == Some(1) && said.contains(wanted), "{said}");

    let waits = home.tapdeck(["wait", &session.id, "--state", "idle"]).stderr(Stdio::piped()).spawn();
    let waits = waits.expect("it starts");
    eventually("the wait to watch", || session.listing()["clients"].to_string().contains("wait"));
    session.ok(&["answer", "no"]);
    let said = text(&waits.wait_with_output().expect("it ends"));
    assert!(said.contains("the program has ended with code 7"), "{said}");
}

#[test]
fn a_session_without_a_terminal_is_found_driven_and_ended() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "work"], &["sh"]);
    let listing = session.listing();
    assert_eq!(
        (&listing["name"], &listing["state"], &listing["driver"]),
        (&json!("work"), &json!("running"), &Value::Null)
    );
    assert_eq!(
        (&listing["cols"], &listing["rows_n"], &listing["detached"]),
        (&json!(80), &json!(24), &json!(true))
    );
    session.ok(&["type", "echo one; sh -c 'exit 3'; echo code $?", "--enter"]);
    session.wait_text("^code 3$");
    session.ok(&["send", "C-l"]);
    session.ok(&["type", "tput cols; tput lines", "--enter"]);
    session.wait_text("^24$");
    session.ok(&["resize", "100x30"]);
    session.ok(&["type", "tput lines", "--enter"]);
    session.wait_text("^30$");
    let frame: Value = serde_json::from_str(&session.ok(&["peek", "--json"])).expect("JSON");
    assert_eq!((&frame["cols"], &frame["rows_n"]), (&json!(100), &json!(30)));
    let seq = frame["seq"].as_u64().expect("a place").to_string();
    assert_eq!(session.ok(&["peek", "--since", &seq]), "", "nothing was written since");
    session.ok(&["type", "echo late", "--enter"]);
    session.wait_text("^late$");
    assert!(session.ok(&["peek", "--since", &seq]).contains("late\n"));
    assert!(!home.run(["wait", "work", "--text", "never", "--timeout", "100ms"]).status.success());
    session.ok(&["wait", "--idle", "50"]);
    session.ok(&["wait", "--prompt"]);
    session.ok(&["kill"]);
    assert!(session.listing().is_null(), "kill returns when the session has left the list");
    for args in [["peek", "work"], ["attach", "work"], ["kill", "work"]] {
        assert_eq!(home.run(args).status.code(), Some(3), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(home.path("run/tapdeck")).expect("folder").count(), 0, "nothing is left");
}

#[test]
fn what_cannot_start_is_said_as_a_shell_would() {
    let home = Home::new();
    let out = home.run(["run", "-d", "--", "no-such-program"]);
    assert_eq!(out.status.code(), Some(127), "{}", text(&out));
    assert!(out.stdout.is_empty(), "no id of a session that is none");
    assert!(String::from_utf8_lossy(&out.stderr).contains("not found"));
    assert_eq!(home.run(["ls", "--json"]).stdout, b"[]\n");
}

#[test]
fn a_program_that_ends_unseen_leaves_its_last_screen_until_a_look() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "echo the end; exit 7"]);
    eventually("it to end", || session.listing()["state"] == "exited");
    assert_eq!(session.listing()["exit"]["code"], 7, "looking at the list is not looking at it");
    assert_eq!(session.peek(), "the end\n");
    eventually("its host to go", || session.listing().is_null());
    let session = Detached::start(&home, &[], &["sh", "-c", "kill -9 $$"]);
    let exit: Value = serde_json::from_str(&session.ok(&["wait", "--exit"])).expect("JSON");
    assert_eq!((&exit["signal"], &exit["code"]), (&json!("KILL"), &json!(137)));
    // `wait` does not count as looking.
    let session = Detached::start(&home, &[], &["sh", "-c", "read x; echo result 42; exit 3"]);
    let id = session.id.clone();
    std::thread::scope(|scope| {
        let waits = [&["--exit"][..], &["--state", "done"], &["--text", "result"]].map(|what| {
            let (home, mut args) = (&home, vec!["wait", id.as_str()]);
            args.extend(what);
            scope.spawn(move || home.run(args))
        });
        eventually("all to wait", || session.listing()["clients"].as_array().is_some_and(|c| c.len() >= 3));
        session.ok(&["send", "Enter"]);
        for wait in waits {
            let out = wait.join().expect("it ran");
            assert!(out.status.success(), "{}", text(&out));
        }
    });
    session.ok(&["wait", "--exit"]);
    assert!(session.peek().ends_with("result 42\n"));
    eventually("its host to go", || session.listing().is_null());
}

/// A host that only waits to be looked at ends when it is told to, and so does one whose program
/// has not ended.
#[test]
fn a_host_that_is_told_to_end_waits_for_no_client() {
    let home = Home::new();
    for script in ["exit 3", "exec sleep 1000"] {
        let session = Detached::start(&home, &[], &["sh", "-c", script]);
        if script.starts_with("exit") {
            eventually("it to end", || session.listing()["state"] == "exited");
        }
        signal(session.id.parse().expect("its host's number"), rustix::process::Signal::TERM);
        eventually("its host to go", || session.listing().is_null() && !session.socket().exists());
    }
}

#[test]
fn what_is_said_to_a_program_that_has_ended() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "over"], &["sh", "-c", "exit 3"]);
    eventually("it to end", || session.listing()["state"] == "exited");
    for said in [
        &["send", "over", "C-c", "--take"][..],
        &["send", "over", "x"],
        &["type", "over", "x"],
        &["paste", "over", "x"],
        &["kill", "over", "--signal", "INT"],
    ] {
        let out = home.run(said);
        assert_eq!(out.status.code(), Some(1), "{said:?}: {}", text(&out));
        assert!(text(&out).contains("the program has ended with code 3"), "{said:?}: {}", text(&out));
    }
    // An empty name matches no session, even if there is only one.
    for nobody in [&["kill", ""][..], &["send", "", "x"], &["peek", ""]] {
        assert_eq!(home.run(nobody).status.code(), Some(2), "{nobody:?}");
    }
    session.ok(&["kill"]);
    eventually("its host to go", || session.listing().is_null());
}

/// Two programs and a person fight for the stick: never two drivers, never a key after the
/// hand-over, and the person always wins.
#[test]
fn the_stick_is_never_held_by_two() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "stty raw -echo; printf UP; exec cat >keys"]);
    session.wait_text("UP");
    // `cargo xtask soak` has them fight ten thousand times.
    let fights = std::env::var("TAPDECK_FIGHTS").ok().and_then(|n| n.parse().ok()).unwrap_or(2100_usize);
    let rounds = fights.div_ceil(3);
    let fight = |role: &str, letter: char| {
        let mut bus = session.bus(role, &letter.to_string());
        let mut typed = 0;
        for _ in 0..rounds {
            let took = bus.request(&Take, PATIENCE).is_ok();
            assert!(took || role == "bot", "a person is never refused");
            typed += usize::from(bus.request(&typing(&letter.to_string()), PATIENCE).is_ok());
            let _ = bus.request(&Release, PATIENCE);
        }
        typed
    };
    let typed: Vec<usize> = std::thread::scope(|scope| {
        let fighters = [("bot", 'a'), ("bot", 'b'), ("human", 'h')];
        let threads = fighters.map(|(role, letter)| scope.spawn(move || fight(role, letter)));
        threads.into_iter().map(|t| t.join().expect("it fought")).collect()
    });
    let keys = || std::fs::read_to_string(home.path("keys")).unwrap_or_default();
    let count = |letter| keys().matches(letter).count();
    // What the gate took from a driver who lost the stick before it was delivered is dropped, never
    // delivered late.
    session.ok(&["wait", "--idle", "100"]);
    for (letter, typed) in ["a", "b", "h"].into_iter().zip(&typed) {
        assert!(count(letter) <= *typed, "{letter}: {} of {typed}", count(letter));
    }
    assert!(count("h") > 0 && typed[2] <= rounds, "{typed:?}");
}

/// Attached in the middle of whatever the program is drawing, a client has exactly the session's
/// screen.
#[test]
fn an_attached_client_has_the_sessions_screen_to_the_cell() {
    let home = Home::new();
    // It draws all the time, at a pace that a client can follow whatever the machine is busy with.
    let script = "i=0; while :; do i=$((i+1)); printf '\\033[%d;%dH\\033[3%dm%s\\033[m' $((i%24+1)) $((i%70+1)) $((i%8)) \"中$i\"; [ $((i%37)) = 0 ] && printf '\\n\\n%s\\r' row-$i && sleep 0.01; done";
    let session = Detached::start(&home, &[], &["sh", "-c", script]);
    let mut eye = session.bus("observer", "eye");
    let mut compared = 0;
    'rounds: for round in 0..500 {
        if compared == 50 {
            break;
        }
        let attach = Attach::new("twin").read_only(true);
        let (mut twin, opened) =
            Attachment::open(&Address::Unix(session.socket()), &attach).expect("attached");
        let size = Size::new(opened.cols, opened.rows);
        let mut term = Term::new(size, Settings::default().replies(false));
        let mut offset = opened.offset;
        // The picture may come in several pieces.
        let mut dump = opened.dump;
        let frame = eye.request(&Snap::default(), PATIENCE).expect("a frame");
        let seq = frame.seq;
        // Fed up to the byte at which the picture was taken, the twin shows the same picture.
        'feed: while dump > 0 || offset < seq {
            assert!(twin.wait(PATIENCE).expect("waited"), "it goes on");
            for incoming in twin.receive().expect("it goes on") {
                let bytes = match incoming {
                    Incoming::Output(bytes) => bytes,
                    // Too slow to be sent everything: the next one may be luckier.
                    Incoming::Control(Said::Gap(_)) => continue 'rounds,
                    _ => continue,
                };
                let (picture, bytes) = bytes.split_at(dump.min(bytes.len()));
                term.feed(picture);
                dump -= picture.len();
                let room = usize::try_from(seq.saturating_sub(offset)).expect("small").min(bytes.len());
                term.feed_at(&bytes[..room], offset);
                offset += room as u64;
                if offset >= seq {
                    break 'feed;
                }
            }
        }
        if offset == seq {
            let rows: Vec<String> = term.screen().map(|l| l.text()).collect();
            assert_eq!(rows, frame.contents.rows, "round {round}");
            assert_eq!(term.cursor().row, frame.contents.cy, "round {round}");
            compared += 1;
        }
    }
    assert_eq!(compared, 50, "of so many, some are fast enough");
}

#[test]
fn a_terminal_without_a_size_can_start_a_session() {
    let home = Home::new();
    let mut seat = Seat::with_size(home.tapdeck(["run", "-d", "--name", "s", "--", "cat"]), 0, 0);
    assert_eq!(seat.end().code(), Some(0), "{:?}", String::from_utf8_lossy(&seat.raw));
    let session = Detached { home: &home, id: "s".to_owned() };
    session.ok(&["type", "here", "--enter"]);
    session.wait_text("^here$");
}

#[test]
fn attached_in_a_terminal_and_left_in_order() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "s"], &["sh"]);
    let mut seat = Seat::with_size(home.tapdeck(["attach", "s"]), 90, 20);
    seat.wait_text("$");
    seat.send("tput cols; echo '<'$((40+2))'>'\r");
    seat.wait_text("<42>");
    assert!(seat.screen().contains("90"), "the size is that of whoever drives");
    seat.send("\x1cd");
    assert!(seat.end().success());
    assert!(seat.screen().contains("detached"), "{}", seat.screen());
    assert_eq!(session.listing()["driver"], Value::Null);
    // Back again, the screen is as it was; a second terminal sees as much as fits, and is told who
    // drives.
    let mut seat = Seat::with_size(home.tapdeck(["attach", "s"]), 90, 20);
    seat.wait_text("<42>");
    let mut small = Seat::with_size(home.tapdeck(["attach", "--no-share", "s"]), 30, 8);
    small.wait_text("<42>");
    small.send("x");
    small.wait_text("attach drives");
    small.send("\x1ct");
    eventually("the stick to change hands", || session.listing()["driver"] == "attach-2");
    eventually("the size to follow", || session.listing()["cols"] == 30);
    small.send("exit 5\r");
    assert!(small.end().success());
    assert!(seat.end().success());
    assert!(seat.screen().contains("exit code 5"), "{}", seat.screen());
}

#[test]
fn killing_the_host_leaves_no_orphan_and_a_whole_recording() {
    let home = Home::new();
    // Nothing of it goes by itself.
    let script = "trap '' HUP TERM; sleep 1000 & echo $$ $! >pids; echo shown; wait";
    let out = home.run(["rec", "-d", "r.ahr", "--", "sh", "-c", script]);
    assert!(out.status.success(), "{}", text(&out));
    let host: i32 = String::from_utf8_lossy(&out.stdout).trim().parse().expect("a pid");
    let session = Detached { home: &home, id: host.to_string() };
    session.wait_text("^shown$");
    eventually("it to be on disk", || recorded_output(&home.path("r.ahr")).ends_with(b"shown\r\n"));
    let kill = |pid: i32| {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).expect("a pid"),
            rustix::process::Signal::KILL,
        )
    };
    kill(host).expect("it is there");
    let gone = || {
        let pids = std::fs::read_to_string(home.path("pids")).expect("it ran");
        eventually("all of it to go", || {
            !pids.split_whitespace().any(|pid| lives(pid.parse().expect("a pid")))
        });
    };
    gone();
    assert_eq!(recorded_output(&home.path("r.ahr")), b"shown\r\n");
    eventually("its place on the list to go", || session.listing().is_null());
    let left: Vec<_> = std::fs::read_dir(home.path("run/tapdeck")).expect("there").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    // The jobs of a shell are in groups of their own, which no terminal hangs up on.
    let session = Detached::start(&home, &[], &["bash", "--norc"]);
    session.ok(&["type", "sleep 1000 & echo $$ $! >pids; echo jobs: $(jobs -p | wc -l)", "--enter"]);
    session.wait_text("^jobs: 1$");
    kill(session.id.parse().expect("a pid")).expect("it is there");
    gone();
    // A program that ends by itself leaves behind what it wants to.
    let session = Detached::start(&home, &[], &["bash", "--norc"]);
    session.ok(&[
        "type",
        "(trap '' HUP; echo $BASHPID >left; exec sleep 1000) & until [ -s left ]; do sleep .01; done; exit",
        "--enter",
    ]);
    session.ok(&["wait", "--exit"]);
    session.ok(&["kill"]);
    eventually("its host to go", || session.listing().is_null());
    let left: i32 =
        std::fs::read_to_string(home.path("left")).expect("it ran").trim().parse().expect("a pid");
    assert!(lives(left));
    kill(left).expect("it is there");
}

#[test]
fn a_recording_begun_late_has_the_past_in_it() {
    let home = Home::new();
    let session =
        Detached::start(&home, &["--name", "late"], &["sh", "-c", "echo before; read x; echo after; exit 4"]);
    session.wait_text("^before$");
    let mut recorder = home.tapdeck(["rec", "--attach", "late", "late.ahr"]).spawn().expect("it starts");
    home.part("late.ahr", "meta.json");
    session.ok(&["type", "go", "--enter"]);
    assert!(recorder.wait().expect("it ends").success());
    assert_eq!(recorded_output(&home.path("late.ahr")), b"before\r\ngo\r\nafter\r\n");
    assert!(home.run(["verify", "late.ahr"]).status.success());
    // One that is stopped early is whole, and the session goes on.
    let session = Detached::start(&home, &["--name", "more"], &["cat"]);
    session.ok(&["type", "one", "--enter"]);
    session.wait_text("^one$");
    let mut recorder = home.tapdeck(["rec", "--attach", "more", "more.ahr"]).spawn().expect("it starts");
    eventually("it to be on disk", || {
        home.path("more.ahr").exists() && recorded_output(&home.path("more.ahr")).ends_with(b"one\r\n")
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(recorder.id()).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("told");
    assert!(recorder.wait().expect("it ends").success());
    assert!(home.run(["verify", "more.ahr"]).status.success());
    session.ok(&["type", "two", "--enter"]);
    session.wait_text("^two$");
    // What is masked in others is masked in a late one, and what it cannot have is refused.
    let secret = "ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let said = format!("echo {secret}; read x");
    let session = Detached::start(&home, &["--name", "quiet"], &["sh", "-c", &said]);
    session.wait_text("^ghp_");
    let mut recorder =
        home.tapdeck(["rec", "--attach", "quiet", "--scrub", "quiet.ahr"]).spawn().expect("it starts");
    home.part("quiet.ahr", "meta.json");
    session.ok(&["type", "go", "--enter"]);
    assert!(recorder.wait().expect("it ends").success());
    let masked = String::from_utf8(recorded_output(&home.path("quiet.ahr"))).expect("text");
    assert!(masked.starts_with("ghp_***") && !masked.contains(&secret[10..]), "{masked}");
    assert_eq!(home.run(["rec", "--attach", "more", "--timeout", "1s"]).status.code(), Some(2));
}

/// A recording that has ended, well or not, is not listed as one that runs.
#[test]
fn the_list_says_how_a_recording_is_doing() {
    let home = Home::new();
    for (n, (name, limit, running, ended)) in [
        ("a.cast", "8", "failed", "failed"),
        ("a.ahr", "8", "failed", "failed"),
        ("b.cast", "unlimited", "running", "finished"),
        ("b.ahr", "unlimited", "running", "finished"),
    ]
    .into_iter()
    .enumerate()
    {
        let session = format!("s{n}");
        let script = format!(
            "ulimit -f {limit}; exec {} rec -d --name {session} {name} -- \
             sh -c 'head -c 200000 /dev/urandom; read x'",
            crate::support::TAPDECK
        );
        let started = home.command("sh").args(["-c", &script]).output().expect("it runs");
        assert!(started.status.success(), "{}", text(&started));
        let is = |state: &str| {
            let all: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
            let listed = all[0].clone();
            let path = home.path(name).display().to_string();
            listed["recording"] == path.as_str()
                && listed["recording_state"] == state
                && listed["recording_error"].is_string() == (state == "failed")
        };
        eventually(&format!("{name} to be {running}"), || is(running));
        assert!(home.run(["type", &session, "go", "--enter"]).status.success());
        let expected = if ended == "failed" { 4 } else { 0 };
        assert_eq!(home.run(["wait", &session, "--exit"]).status.code(), Some(expected));
        eventually(&format!("{name} to be {ended}"), || is(ended));
        assert!(home.run(["kill", &session]).status.success());
    }
}

#[test]
fn a_foreground_session_is_live_too() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--name", "fg", "--", "sh"]));
    seat.wait_text("$");
    let out = home.run(["type", "fg", "echo from afar", "--enter"]);
    assert!(out.status.success(), "{}", text(&out));
    seat.wait("it to arrive", |s| s.screen().matches("from afar").count() == 2);
    // The user at the terminal takes over by typing.
    let mut bot = {
        let listing: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
        let socket = listing[0]["socket"].as_str().expect("a path");
        let mut bus = Bus::connect(&Address::Unix(socket.into())).expect("it listens");
        bus.hello(&Hello::new(Role::Bot, "bot"), PATIENCE).expect("let in");
        bus
    };
    bot.request(&Take, PATIENCE).expect("free");
    seat.send("echo mine\r");
    seat.wait("the echo", |s| s.screen().matches("mine").count() == 2);
    let denied = bot.request(&typing("x"), Duration::from_secs(5));
    assert!(denied.is_err_and(|e| e.to_string().contains("local")));
    seat.send("exit\r");
    assert!(seat.end().success());
    assert_eq!(home.run(["ls", "--json"]).stdout, b"[]\n");
}

/// More rows than fit in a frame were left out silently: `peek` printed nothing and exited with 0.
#[test]
fn peek_prints_a_scrollback_that_is_longer_than_a_frame() {
    let home = Home::new();
    // Nineteen megabytes of rows: a frame has at most sixteen.
    let program = "yes $(printf '─%.0s' $(seq 990)) | head -n 6500 | nl -w 5; echo THE END; read x";
    let session = Detached::start(&home, &["--window-size", "1000x24"], &["bash", "-c", program]);
    session.wait_text("THE END");
    for how in [&["peek", "--scrollback"][..], &["peek", "--scrollback", "--ansi"]] {
        let printed = session.ok(how);
        let rows: Vec<&str> = printed.lines().collect();
        assert_eq!(rows.len(), 6501, "{how:?}");
        for (n, row) in rows[..6500].iter().enumerate() {
            assert_eq!(row[..5].trim(), (n + 1).to_string(), "{how:?}");
        }
    }
    let mut bus = session.bus("observer", "eye");
    let screen = bus.request(&Snap { scrollback: true, ..Snap::default() }, PATIENCE).expect("a frame");
    let lines = screen.lines.expect("lines");
    assert!(screen.omitted > 0 && screen.omitted + lines.len() >= 6501, "{}", screen.omitted);
    assert!(lines.iter().any(|line| line == "THE END"), "the newest are there");
}
