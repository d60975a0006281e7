//! Live sessions: started without a terminal, found, watched, driven, handed over, and left in order.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_serve::client::{Attach, Attachment, Bus, Hello, Incoming};
use tapdeck_serve::door::Address;
use tapdeck_term::{Settings, Size, Term};

use crate::support::{Home, PATIENCE, Seat, eventually, lives, recorded_output};

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

    fn listing(&self) -> Value {
        let all: Value = serde_json::from_slice(&self.home.run(["ls", "--json"]).stdout).expect("JSON");
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|s| s["id"] == self.id.as_str()).unwrap_or(Value::Null)
    }

    fn socket(&self) -> PathBuf {
        self.home.path("run").join("tapdeck").join(format!("{}.sock", self.id))
    }

    fn token(&self) -> String {
        let file = self.home.path("run").join("tapdeck").join(format!("{}.json", self.id));
        let entry: Value = serde_json::from_slice(&std::fs::read(file).expect("listed")).expect("JSON");
        entry["human_token"].as_str().expect("a token").to_owned()
    }

    pub fn bus(&self, role: &str, name: &str) -> Bus {
        let mut bus = Bus::connect(&Address::Unix(self.socket())).expect("it listens");
        let token = (role == "human").then(|| self.token());
        bus.hello(&Hello { role, name, token: token.as_deref() }, PATIENCE).expect("it answers");
        bus
    }

    /// A client of the original protocol, byte by byte.
    fn raw(&self) -> Raw {
        Raw::new(UnixStream::connect(self.socket()).expect("it listens"))
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

fn text(out: &Output) -> String {
    format!(
        "{:?} {}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

struct Raw {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Raw {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Self { reader: BufReader::new(stream.try_clone().expect("a copy")), writer: stream }
    }

    fn send(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).expect("sent");
    }

    fn line(&mut self) -> Option<(String, Value)> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let (verb, payload) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), "null"));
        Some((verb.to_owned(), serde_json::from_str(payload).expect("JSON")))
    }

    #[track_caller]
    fn until(&mut self, verb: &str) -> Value {
        loop {
            match self.line() {
                Some((v, value)) if v == verb => return value,
                Some(_) => {}
                None => panic!("ended before {verb}"),
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, line: &str, verb: &str) -> Value {
        self.send(line);
        self.until(verb)
    }
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
    eventually("it to be gone", || session.listing().is_null());
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
fn a_program_that_ends_unseen_leaves_its_last_screen_until_somebody_looks() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "echo the end; exit 7"]);
    eventually("it to end", || session.listing()["state"] == "exited");
    assert_eq!(session.listing()["exit"]["code"], 7, "looking at the list is not looking at it");
    assert_eq!(session.peek(), "the end\n");
    eventually("its host to go", || session.listing().is_null());
    let session = Detached::start(&home, &[], &["sh", "-c", "kill -9 $$"]);
    let exit: Value = serde_json::from_str(&session.ok(&["wait", "--exit"])).expect("JSON");
    assert_eq!((&exit["signal"], &exit["code"]), (&json!("KILL"), &json!(137)));
    // Whoever waited, for whatever, has not looked.
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
    // No name is nobody's, even where there is only one to be meant.
    for nobody in [&["kill", ""][..], &["send", "", "x"], &["peek", ""]] {
        assert_eq!(home.run(nobody).status.code(), Some(2), "{nobody:?}");
    }
    session.ok(&["kill"]);
    eventually("its host to go", || session.listing().is_null());
}

#[test]
fn the_bus_speaks_the_original_protocol() {
    let home = Home::new();
    let session = Detached::start(
        &home,
        &[],
        &["sh", "-c", "stty -echo; printf 'ready> '; while read l; do printf '%s\\n' \"[$l]\"; done"],
    );
    session.wait_text("ready>");
    let mut a = session.raw();
    // A bare client is an observer, and needs no greeting.
    let frame = a.ask("SNAP", "FRAME");
    assert_eq!((&frame["rows"][0], &frame["cx"], &frame["cy"]), (&json!("ready>"), &json!(7), &json!(0)));
    assert_eq!((&frame["cols"], &frame["rows_n"]), (&json!(80), &json!(24)));
    assert_eq!(
        frame["cells"][0][0].as_array().map(|run| run[..4].to_vec()),
        Some(vec![json!(0), json!("ready>"), json!("e5e5e5"), json!("000000")])
    );
    assert!(a.ask("LINE hi", "DENIED")["driver"].is_null());
    let info = a.ask("info", "INFO");
    assert_eq!(
        (&info["done"], &info["driver"], &info["waiting"]),
        (&json!(false), &Value::Null, &json!(false))
    );
    assert_eq!(a.ask("HELLO", "OK")["driver"], Value::Null);
    // The first to come drives, later ones wait, and nobody is a person by saying so.
    let mut b = session.raw();
    assert_eq!(b.ask(r#"HELLO {"role": "ai", "name": "bot"}"#, "OK")["driver"], "bot");
    let mut c = session.raw();
    let hello = c.ask(r#"HELLO {"role": "human", "name": "bot"}"#, "OK");
    assert_eq!(
        (&hello["name"], &hello["driver"], &hello["role"]),
        (&json!("bot-2"), &json!("bot"), &json!("bot"))
    );
    assert_eq!(c.ask("LINE no", "DENIED")["driver"], "bot");
    b.send("SUB");
    b.until("OK");
    b.send("NOSUCHVERB {}");
    b.send("LINE hello there");
    let mut out = String::new();
    while !out.contains("[hello there]\r\n") {
        out.push_str(b.until("OUT").as_str().expect("text"));
    }
    b.send(r#"KEY "k\r""#);
    b.until("FRAME");
    session.wait_text(r"^\[k\]$");
    for wrong in [
        r#"TURN {"number":-1}"#,
        "KEY 7",
        r#"KEY {"keys": "x"}"#,
        r#"KEY {"text": 5}"#,
        r#"KEY {"confirm": true}"#,
        r#"SUB {"frames": "bogus"}"#,
        r#"SUB {"frames": 5}"#,
    ] {
        b.ask(wrong, "DENIED");
    }
    // A request that was cut short once ended the session, because what could not be read asked for nothing special.
    for cut in ["KILL {\"signal\":", "RESIZE {", "SUB {", "SNAP ["] {
        assert!(b.ask(cut, "DENIED")["error"].as_str().is_some_and(|e| e.contains("JSON")), "{cut}");
    }
    b.ask("RELEASE", "OK");
    let taken = c.ask("TAKE", "OK");
    assert_eq!(taken["driver"], "bot-2");
    let fence = taken["fence"].as_u64().expect("a number");
    let key = |fence| format!("KEY {}", json!({"text": "", "confirm": true, "fence": fence}));
    c.ask(&key(fence), "OK");
    c.ask(&key(fence - 1), "DENIED");
    assert!(c.ask("RELEASE", "OK")["driver"].is_null());
    // A person takes it from a program, never the other way.
    let mut person = session.bus("human", "me");
    person.ask("TAKE", "", PATIENCE).expect("a person may");
    assert_eq!(c.ask("TAKE", "DENIED")["driver"], "me");
    drop(person);
    eventually("the stick to be free", || session.listing()["driver"].is_null());
    let long = format!("LINE {}", "x".repeat(300_000));
    for bad in [
        long.as_str(),
        "HELLO 7",
        "HELLO {",
        r#"HELLO {"token": 5}"#,
        r#"HELLO {"role": "human", "token": "x"}"#,
    ] {
        let mut raw = session.raw();
        // It may hang up in the middle of this.
        let _ = raw.writer.write_all(format!("{bad}\n").as_bytes());
        raw.until("DENIED");
        assert!(raw.line().is_none(), "{bad:.20}: denied and dropped");
    }
    drop(b);
    session.ok(&["kill"]);
}

#[test]
fn a_command_gives_exactly_its_output() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["bash", "--norc", "--noediting"]);
    session.wait_text(r"\$ ?$|# ?$");
    let mut bus = session.bus("bot", "driver");
    for (command, output) in [
        ("echo one; echo two", "one\ntwo\n"),
        ("true", ""),
        ("printf 'no end'", "no end"),
        ("seq 200 | tail -3", "198\n199\n200\n"),
        ("for i in 1 2 3; do echo $i; sleep 0.1; done", "1\n2\n3\n"),
    ] {
        let answer = bus.ask("CMD", command, PATIENCE).expect("an answer").json();
        assert_eq!((answer["text"].as_str(), &answer["timeout"]), (Some(output), &json!(false)), "{command}");
    }
    let long =
        bus.ask("CMD", "head -c 3000000 /dev/zero | tr '\\0' x; echo", PATIENCE).expect("an answer").json();
    assert_eq!(long["truncated"], true);
}

#[test]
fn bad_clients_do_no_harm() {
    let home = Home::new();
    let token = home.path("tokens");
    std::fs::write(&token, "human person\nbot machine\nobserver eye\n").expect("written");
    let options = ["--bus", "tcp:127.0.0.1:0", "--token-file", token.to_str().expect("text")];
    let session = Detached::start(&home, &options, &["cat"]);
    let address = session.listing()["buses"][0].as_str().expect("an address").to_owned();
    let tcp = || {
        let stream =
            std::net::TcpStream::connect(address.strip_prefix("tcp:").expect("tcp")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    };
    let reply = |bytes: &[u8]| {
        let mut stream = tcp();
        // It may hang up in the middle of this.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.take(1 << 16).read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    for wrong in [
        &b"SNAP\n"[..],
        b"HELLO\n",
        b"HELLO {\"token\": \"wrong\"}\n",
        b"HELLO {\"token\": \"\"}\n",
        b"HELLO {\"token\": \"human person\"}\n",
    ] {
        let answer = reply(wrong);
        assert!(answer.starts_with("DENIED") && !answer.contains("person"), "{answer}");
    }
    let refused = reply(b"\x00\x00\x00\x02{}");
    assert!(refused.contains("forbidden"), "{refused}");
    assert!(reply(b"\x00\x7f\xff\xff").contains("malformed_negotiation"));
    let mut oversized = b"HELLO ".to_vec();
    oversized.resize(400 * 1024, b'x');
    assert!(!reply(&oversized).contains("OK"));
    reply(&(0..=255).cycle().skip(1).take(4096).collect::<Vec<u8>>());
    // Half a frame, and then nothing: the session does not wait for it.
    let mut half = tcp();
    half.write_all(b"HELLO {\"tok").expect("sent");
    let mut eye = Bus::connect(&address.parse().expect("an address")).expect("it listens");
    eye.hello(&Hello { role: "human", name: "eye", token: Some("eye") }, PATIENCE).expect("let in");
    assert!(eye.ask("TAKE", "", PATIENCE).is_err(), "an observer's token grants no more");
    assert!(eye.send("LINE", "a\nKEY \"b\"").is_err(), "one frame is one line");
    // A client that dies holding the stick gives it back.
    let mut bot = Bus::connect(&address.parse().expect("an address")).expect("it listens");
    bot.hello(&Hello { role: "human", name: "bot", token: Some("machine") }, PATIENCE).expect("let in");
    assert_eq!(session.listing()["driver"], "bot");
    drop(bot);
    eventually("the stick to be free", || session.listing()["driver"].is_null());
    session.ok(&["type", "still here", "--enter"]);
    session.wait_text("^still here$");
    // Something else at the path is left alone.
    std::fs::write(home.path("file"), "mine").expect("written");
    let bus = format!("unix:{}", home.path("file").display());
    assert_eq!(home.run(["run", "-d", "--bus", &bus, "--", "true"]).status.code(), Some(4));
    assert_eq!(std::fs::read(home.path("file")).expect("still there"), b"mine");
    let tokens = token.to_str().expect("text");
    for (bus, more, code, says) in [
        ("tcp:127.0.0.1:0", &[][..], 4, "--token-file"),
        ("127.0.0.1:7799", &[], 2, "tcp:HOST:PORT"),
        ("bogus:1", &[], 2, "unix:PATH"),
        ("tcp:0.0.0.0:0", &["--token-file", tokens], 2, "--allow-remote"),
    ] {
        let mut args = vec!["run", "-d", "--bus", bus];
        args.extend(more);
        args.extend(["--", "true"]);
        let out = home.run(&args);
        assert_eq!(out.status.code(), Some(code), "{bus}: {}", text(&out));
        assert!(text(&out).contains(says), "{bus}: {}", text(&out));
    }
}

/// Two programs and a person fight for the stick: never two drivers, never a key after the hand-over, and the person
/// always wins.
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
            let took = bus.ask("TAKE", "", PATIENCE).is_ok();
            assert!(took || role == "bot", "a person is never refused");
            let key = json!({"text": letter.to_string(), "confirm": true}).to_string();
            typed += usize::from(bus.ask("KEY", &key, PATIENCE).is_ok());
            let _ = bus.ask("RELEASE", "", PATIENCE);
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
    // What the gate took from a driver who lost the stick before it was delivered is dropped, never delivered late.
    session.ok(&["wait", "--idle", "100"]);
    for (letter, typed) in ["a", "b", "h"].into_iter().zip(&typed) {
        assert!(count(letter) <= *typed, "{letter}: {} of {typed}", count(letter));
    }
    assert!(count("h") > 0 && typed[2] <= rounds, "{typed:?}");
}

/// Attached in the middle of whatever the program is drawing, a client has exactly the session's screen.
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
        let attach = Attach { name: "twin", read_only: true, ..Attach::default() };
        let (mut twin, opened) =
            Attachment::open(&Address::Unix(session.socket()), &attach).expect("attached");
        let size = Size::new(side(&opened["cols"]), side(&opened["rows"]));
        let mut term = Term::new(size, Settings { replies: false, ..Settings::default() });
        let mut offset = opened["offset"].as_u64().expect("a place");
        // The picture may come in several pieces.
        let mut dump = usize::try_from(opened["dump"].as_u64().expect("a length")).expect("small");
        let frame = eye.ask("SNAP", "", PATIENCE).expect("a frame").json();
        let seq = frame["seq"].as_u64().expect("a place");
        // Fed up to exactly the byte at which the picture was taken, the twin shows the same picture.
        'feed: while dump > 0 || offset < seq {
            assert!(twin.wait(PATIENCE).expect("waited"), "it goes on");
            for incoming in twin.receive().expect("it goes on") {
                let bytes = match incoming {
                    Incoming::Output(bytes) => bytes,
                    // Too slow to be sent everything: the next one may be luckier.
                    Incoming::Control(about) if about["type"] == "gap" => continue 'rounds,
                    _ => continue,
                };
                let (picture, bytes) = bytes.split_at(dump.min(bytes.len()));
                term.feed(picture, 0);
                dump -= picture.len();
                let room = usize::try_from(seq.saturating_sub(offset)).expect("small").min(bytes.len());
                term.feed(&bytes[..room], offset);
                offset += room as u64;
                if offset >= seq {
                    break 'feed;
                }
            }
        }
        if offset == seq {
            let rows: Vec<Value> = term.screen().map(|l| Value::from(l.text())).collect();
            assert_eq!(Value::from(rows), frame["rows"], "round {round}");
            assert_eq!(json!(term.cursor().row), frame["cy"], "round {round}");
            compared += 1;
        }
    }
    assert_eq!(compared, 50, "of so many, some are fast enough");
}

fn side(value: &Value) -> u16 {
    value.as_u64().and_then(|n| u16::try_from(n).ok()).expect("a side")
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
    // Back again, the screen is as it was; a second terminal sees as much as fits, and is told who drives.
    let mut seat = Seat::with_size(home.tapdeck(["attach", "s"]), 90, 20);
    seat.wait_text("<42>");
    let mut small = Seat::with_size(home.tapdeck(["attach", "s"]), 30, 8);
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

/// Most watch, some never read, some read a little: the program writes on, those who can follow have the right screen
/// at the end, and those who cannot are told what they missed.
#[test]
fn slow_subscribers_are_told_and_slow_nobody() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "read go; seq 1 2000000; echo THE END; read x"]);
    let mut healthy: Vec<Bus> = (0..6).map(|i| session.bus("observer", &format!("h{i}"))).collect();
    let mut slow: Vec<Raw> = (0..4).map(|_| session.raw()).collect();
    for bus in &mut healthy {
        bus.ask("SUB", "", PATIENCE).expect("subscribed");
    }
    for raw in &mut slow {
        raw.ask("SUB", "OK");
    }
    session.ok(&["type", "go", "--enter"]);
    std::thread::scope(|scope| {
        for bus in &mut healthy {
            scope.spawn(move || {
                let mut last = Value::Null;
                while !last["rows"].as_array().is_some_and(|r| r.iter().any(|row| row == "THE END")) {
                    let frame = bus.next(Some(PATIENCE)).expect("it goes on").expect("in time");
                    if frame.verb == "FRAME" {
                        last = frame.json();
                    }
                }
                assert!(last["rows"].as_array().is_some_and(|r| r.iter().any(|row| row == "2000000")));
            });
        }
    });
    // Those who read nothing meanwhile: what they missed is said, and then they have the screen as well.
    let whole = session.listing()["seq"].as_u64().expect("a place");
    for raw in &mut slow {
        let (mut gap, mut seen, mut ended) = (0, 0, false);
        // In either order: the screen may come before it is said what is missing. Every byte is sent or said to be.
        while !ended || gap + seen < whole - 16 {
            let (verb, value) = raw.line().unwrap_or_else(|| panic!("{gap} + {seen} of {whole}, {ended}"));
            match verb.as_str() {
                "OUT" => seen += value.as_str().map_or(0, |t| t.chars().count() as u64),
                "EVENT" if value["name"] == "GAP" => gap += value["bytes"].as_u64().expect("a number"),
                "FRAME" => {
                    ended |= value["rows"].as_array().is_some_and(|r| r.iter().any(|row| row == "THE END"));
                }
                _ => {}
            }
        }
        assert!(gap > 0 && seen > 0, "{gap} {seen}");
    }
}

#[test]
fn a_recording_begun_late_has_the_past_in_it() {
    let home = Home::new();
    let session =
        Detached::start(&home, &["--name", "late"], &["sh", "-c", "echo before; read x; echo after; exit 4"]);
    session.wait_text("^before$");
    let mut recorder = home.tapdeck(["rec", "--attach", "late", "late.ahr"]).spawn().expect("it starts");
    eventually("the recording to begin", || home.path("late.meta.json").exists());
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
}

#[test]
fn a_foreground_session_is_live_too() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--name", "fg", "--", "sh"]));
    seat.wait_text("$");
    let out = home.run(["type", "fg", "echo from afar", "--enter"]);
    assert!(out.status.success(), "{}", text(&out));
    seat.wait("it to arrive", |s| s.screen().matches("from afar").count() == 2);
    // Whoever sits at the terminal takes over by typing.
    let mut bot = {
        let listing: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
        let socket = listing[0]["socket"].as_str().expect("a path");
        let mut bus = Bus::connect(&Address::Unix(socket.into())).expect("it listens");
        bus.hello(&Hello { role: "bot", name: "bot", token: None }, PATIENCE).expect("let in");
        bus
    };
    bot.ask("TAKE", "", PATIENCE).expect("free");
    seat.send("echo mine\r");
    seat.wait("the echo", |s| s.screen().matches("mine").count() == 2);
    let denied = bot.ask("KEY", &json!({"text": "x", "confirm": true}).to_string(), Duration::from_secs(5));
    assert!(denied.is_err_and(|e| e.to_string().contains("local")));
    seat.send("exit\r");
    assert!(seat.end().success());
    assert_eq!(home.run(["ls", "--json"]).stdout, b"[]\n");
}
