//! Pauses of a recording: nothing of them is in it, and the picture behind them is right.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tapdeck_core::Offset;
use tapdeck_host::{Goal, Player};
use tapdeck_proto::bus::Pause;
use tapdeck_term::Settings;

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, Seat, eventually, recorded_output, signal};

/// A shell that is recorded on a terminal.
struct Stage<'a> {
    home: &'a Home,
    file: &'a str,
    seat: Seat,
    session: Detached<'a>,
}

impl<'a> Stage<'a> {
    fn start(home: &'a Home, file: &'a str) -> Self {
        let mut seat = Seat::new(home.tapdeck(["rec", "-q", "-I", file, "--", "sh"]));
        seat.wait_text("$");
        let mut id = None;
        eventually("the session to be listed", || {
            let all: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
            id = all[0]["id"].as_str().map(str::to_owned);
            id.is_some()
        });
        let session = Detached::of(home, id.expect("it is listed"));
        Self { home, file, seat, session }
    }

    fn pause(&mut self, pause: bool) {
        let mut bus = self.session.bus("human", "ada");
        let answer = bus.request(&Pause { pause: Some(pause) }, PATIENCE).expect("it answers");
        assert_eq!(answer.paused, pause);
    }

    /// Types a line, and waits for what it shows.
    #[track_caller]
    fn line(&mut self, line: &str, shows: &str) {
        self.seat.send(format!("{line}\r"));
        self.seat.wait_text(shows);
    }

    /// Lets the recording go on, and checks that it has the picture of the terminal.
    #[track_caller]
    fn resume(&mut self, what: &str) {
        self.pause(false);
        self.has_picture(what);
    }

    #[track_caller]
    fn has_picture(&mut self, what: &str) {
        let path = self.home.path(self.file);
        self.seat.wait(what, |seat| {
            let settings = Settings::default().replies(false);
            // Nothing may be on disk yet.
            let Ok(mut player) = Player::open(&path, settings) else { return false };
            player.seek(Goal::Byte(Offset::MAX)).expect("read");
            player.term().dump_screen() == seat.term.dump_screen()
        });
    }

    fn end(&mut self) {
        self.seat.send("exit\r");
        assert!(self.seat.end().success());
    }
}

/// Everything that a recording says: output, input, labels and parts.
fn all_bytes(path: &Path) -> Vec<u8> {
    use tapdeck_tape::ahr::{Body, Item, Reader};
    let mut all = Vec::new();
    for item in Reader::new(std::fs::File::open(path).expect("it is there")) {
        let Ok(Item::Record(record)) = item else { panic!("damaged") };
        match record.body {
            Body::Data { bytes, .. } | Body::Input { bytes } | Body::Part { bytes, .. } => all.extend(bytes),
            Body::Snapshot { label, .. } => all.extend(label.into_bytes()),
            _ => {}
        }
        all.push(b'\n');
    }
    all
}

#[track_caller]
fn has_no_secret(path: &Path) {
    let all = String::from_utf8_lossy(&all_bytes(path)).into_owned();
    for secret in ["secret", "sec\"\"ret"] {
        assert!(
            !all.contains(secret),
            "{secret}: {:?}",
            all.find(secret).map(|at| &all[at.saturating_sub(99)..])
        );
    }
}

#[test]
fn nothing_of_a_pause_is_recorded_and_the_picture_behind_it_is_right() {
    let home = Home::new();
    let mut stage = Stage::start(&home, "a.ahr");
    stage.line("echo be''fore", "before");
    // What is shown and then cleared.
    stage.pause(true);
    stage.line("echo sec\"\"ret-one", "secret-one");
    stage.line("printf '\\033[H\\033[2J'; echo cle''ared", "cleared");
    stage.resume("the screen behind what was cleared");
    stage.line("echo betw''een", "between");
    stage.has_picture("the screen between the pauses");
    // What scrolls away while the program writes on.
    stage.pause(true);
    stage.line("echo sec\"\"ret-two; i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo row $i; done", "row 60");
    stage.resume("the screen behind what scrolled away");
    // The screen changes its size and goes over to the other one.
    stage.pause(true);
    stage.line("echo sec\"\"ret-three; printf '\\033[?1049h\\033[H'; echo alter''nate", "alternate");
    stage.seat.resize(100, 30);
    stage.line("stty size", "30 100");
    stage.line("printf '\\033[2J\\033[H'; echo sm''all", "small");
    stage.resume("the alternate screen in its new size");
    stage.line("printf '\\033[?1049l'; echo ba''ck", "back");
    stage.end();
    let path = home.path("a.ahr");
    // On leaving the other screen, what the main one showed is there: it is the picture.
    let all = String::from_utf8_lossy(&all_bytes(&path)).into_owned();
    for (secret, times) in [("secret-one", 0), ("secret-two", 0), ("row 1\r", 0)] {
        assert_eq!(all.matches(secret).count(), times, "{secret}");
    }
    for kept in ["before", "cleared", "between", "row 60", "back", "\"kind\":\"paused\"", "\"by\":\"ada\""] {
        assert!(all.contains(kept), "{kept}");
    }
    let output = recorded_output(&path);
    let info: Value = serde_json::from_slice(&home.run(["info", "--json", "a.ahr"]).stdout).expect("JSON");
    assert_eq!((&info["summary"]["pauses"], &info["summary"]["whole"]), (&3.into(), &true.into()));
    assert_eq!(info["summary"]["end_offset"], output.len());
    assert!(info["summary"]["paused_ns"].as_u64() > Some(0));
    let verified = home.run(["verify", "a.ahr"]);
    assert!(verified.status.success() && text(&verified).contains("paused 3 times"), "{}", text(&verified));
    let shown = text(&home.run(["info", "a.ahr"]));
    assert!(shown.contains("paused     3 times, "), "{shown}");
    // A copy in another format has the same last screen.
    assert!(home.run(["convert", "-q", "a.ahr", "-o", "a.cast"]).status.success());
    let last = |file: &str| home.run(["play", "--fast", file]).stdout;
    assert_eq!(String::from_utf8_lossy(&last("a.cast")), String::from_utf8_lossy(&last("a.ahr")));
}

#[test]
fn a_recording_may_end_in_a_pause() {
    let home = Home::new();
    let mut stage = Stage::start(&home, "a.ahr");
    stage.line("echo sh''own", "shown");
    stage.has_picture("the screen");
    stage.pause(true);
    stage.line("echo sec\"\"ret", "secret");
    stage.end();
    has_no_secret(&home.path("a.ahr"));
    let info: Value = serde_json::from_slice(&home.run(["info", "--json", "a.ahr"]).stdout).expect("JSON");
    assert_eq!((&info["summary"]["exit"]["code"], &info["summary"]["pauses"]), (&0.into(), &1.into()));
    assert!(text(&home.run(["verify", "a.ahr"])).contains("and ends so"));
    assert!(text(&home.run(["play", "--fast", "a.ahr"])).contains("shown"));
    // The recorder is killed in a pause.
    let mut stage = Stage::start(&home, "b.ahr");
    stage.line("echo sh''own", "shown");
    stage.pause(true);
    stage.line("echo sec\"\"ret", "secret");
    eventually("the pause to be on disk", || {
        home.part_now("b.ahr", "events.jsonl").is_some_and(|events| events.contains("paused"))
    });
    signal(stage.seat.child.id(), rustix::process::Signal::KILL);
    eventually("the recorder to be gone", || stage.seat.child.try_wait().expect("a child").is_some());
    has_no_secret(&home.path("b.ahr"));
    let verified = home.run(["verify", "b.ahr"]);
    assert!(verified.status.success() && text(&verified).contains("and ends so"), "{}", text(&verified));
}

/// The times of an asciicast, added up.
fn length(home: &Home, file: &str) -> f64 {
    let cast = std::fs::read_to_string(home.path(file)).expect("text");
    let time =
        |line: &str| serde_json::from_str::<(f64, String, String)>(line).map_or(0.0, |(time, ..)| time);
    cast.lines().map(time).sum()
}

#[test]
fn other_formats_have_no_time_of_a_pause() {
    let home = Home::new();
    for file in ["a.cast", "b.ahr"] {
        let began = Instant::now();
        let mut stage = Stage::start(&home, file);
        stage.line("echo be''fore", "before");
        stage.pause(true);
        // The pause is to have a length.
        std::thread::sleep(Duration::from_millis(1200));
        stage.line("echo sec\"\"ret; printf '\\033[H\\033[2J'; echo cle''ared", "cleared");
        stage.pause(false);
        stage.line("echo beh''ind", "behind");
        stage.end();
        let took = began.elapsed().as_secs_f64();
        if file == "b.ahr" {
            let out = home.run(["convert", file, "-o", "b.cast", "--json"]);
            assert!(out.status.success(), "{}", text(&out));
        }
        let cast = file.replace("ahr", "cast");
        let played = length(&home, &cast);
        assert!(played < took - 1.2, "{cast}: {played} of {took}");
        let all = std::fs::read_to_string(home.path(&cast)).expect("text");
        assert!(all.contains("before") && all.contains("behind") && !all.contains("secret"), "{all}");
        // And playing skips it.
        let began = Instant::now();
        assert!(home.run(["play", file]).status.success());
        assert!(began.elapsed().as_secs_f64() < took - 0.9, "{file} of {took}");
    }
}

#[test]
fn a_person_pauses_with_a_key_and_others_are_refused() {
    let home = Home::new();
    let out = home.run(["rec", "-d", "--name", "s", "a.ahr", "--", "sh"]);
    assert!(out.status.success(), "{}", text(&out));
    let session = Detached::of(&home, String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let mut seat = Seat::new(home.tapdeck(["attach", "s"]));
    seat.wait_text("$");
    seat.send("\x1cp");
    seat.wait_text("the recording is paused");
    let mut second = Seat::new(home.tapdeck(["attach", "--read-only", "s"]));
    second.wait_text("the recording is paused (attach)");
    second.send("\x1cp");
    second.wait_text("read-only");
    let info: Value = serde_json::from_str(&session.ok(&["explain", "--json"])).expect("JSON");
    assert_eq!(info["recording_state"], "paused");
    seat.send("echo sec\"\"ret\r");
    seat.wait_text("secret");
    seat.send("printf '\\033[H\\033[2J'\r");
    seat.wait("a clear screen", |seat| !seat.screen().contains("secret"));
    seat.send("\x1cp");
    seat.wait_text("the recording goes on");
    let bot = session.bus("bot", "robot").request(&Pause::default(), PATIENCE);
    assert!(bot.is_err_and(|e| e.to_string().contains("only a person")));
    seat.send("exit\r");
    assert!(seat.end().success());
    eventually("the recording to be finished", || home.is_finished("a.ahr"));
    has_no_secret(&home.path("a.ahr"));
    // Nothing to pause.
    let plain = Detached::start(&home, &[], &["cat"]);
    let refused = plain.bus("human", "ada").request(&Pause::default(), PATIENCE);
    assert!(refused.is_err_and(|e| e.to_string().contains("not being recorded")));
}

/// Prints what is typed, one key, as octal numbers.
const ONE_KEY: &str = "stty -isig -icanon -echo; printf 'rea''dy'; dd bs=1 count=1 2>/dev/null | od -An -to1; \
                       stty isig icanon echo; echo do''ne";

#[test]
fn keys_behind_a_prefix_mark_and_pause_a_recording_in_the_foreground() {
    let home = Home::new();
    // Off unless asked for: every key belongs to the program.
    let mut stage = Stage::start(&home, "off.ahr");
    stage.line(ONE_KEY, "ready");
    stage.seat.send("\x1c");
    stage.seat.wait_text("done");
    assert!(stage.seat.screen().contains(" 034"));
    stage.end();
    let refused = home.run(["rec", "--prefix", "C-nothing", "x.ahr", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    std::fs::create_dir_all(home.path(".config/tapdeck")).expect("made");
    std::fs::write(home.path(".config/tapdeck/config.toml"), "[rec]\nprefix = 'C-\\'\n").expect("written");
    let mut stage = Stage::start(&home, "on.ahr");
    stage.line("echo be''fore", "before");
    stage.seat.send("\x1c?");
    stage.seat.wait_text("C-\\ m adds a marker");
    stage.seat.send("\x1cm");
    stage.seat.wait_text("marker: _");
    assert!(!stage.seat.screen().contains("adds a marker"), "the help is gone");
    stage.seat.send("the place");
    stage.seat.wait_text("marker: the place_");
    stage.seat.send("\r");
    stage.seat.wait_text("marked");
    stage.seat.wait("the notice to go", |seat| !seat.screen().contains("marked"));
    stage.has_picture("the screen without the notice");
    stage.seat.send("\x1cp");
    stage.seat.wait_text("the recording is paused");
    stage.line("echo sec\"\"ret; printf '\\033[H\\033[2J'; echo cle''ared", "cleared");
    stage.seat.send("\x1cp");
    stage.seat.wait_text("the recording goes on");
    stage.seat.wait("the notice to go", |seat| !seat.screen().contains("goes on"));
    stage.has_picture("the screen behind the pause");
    // Twice, it is the program's.
    stage.line(ONE_KEY, "ready");
    stage.seat.send("\x1c\x1c");
    stage.seat.wait_text("done");
    assert!(stage.seat.screen().contains(" 034"));
    stage.end();
    has_no_secret(&home.path("on.ahr"));
    let all = String::from_utf8_lossy(&all_bytes(&home.path("on.ahr"))).into_owned();
    for kept in ["\"label\":\"the place\"", "\"by\":\"local\"", "before", "cleared"] {
        assert!(all.contains(kept), "{kept}");
    }
    for shown in ["adds a marker", "marked", "the recording is paused"] {
        assert!(!all.contains(shown), "{shown} is not the program's");
    }
}
