//! The bus of a session: the original protocol, what bad and slow clients cannot do, and commands
//! with their answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use tapdeck_proto::bus::{AgentState, Cmd, Explain, Frame, Push, Role, Sub, Take, TypedLine};
use tapdeck_serve::client::{Bus, Hello};

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, eventually};

struct Raw {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Raw {
    fn new(session: &Detached<'_>) -> Self {
        let stream = UnixStream::connect(session.socket()).expect("it listens");
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
fn the_bus_speaks_the_original_protocol() {
    let home = Home::new();
    let session = Detached::start(
        &home,
        &[],
        &["sh", "-c", "stty -echo; printf 'ready> '; while read l; do printf '%s\\n' \"[$l]\"; done"],
    );
    session.wait_text("ready>");
    let mut a = Raw::new(&session);
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
    // The first client drives, later ones wait, and a client is not a person just because it says
    // so.
    let mut b = Raw::new(&session);
    assert_eq!(b.ask(r#"HELLO {"role": "ai", "name": "bot"}"#, "OK")["driver"], "bot");
    let mut c = Raw::new(&session);
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
    // A request that was cut short once ended the session, because what could not be read asked for
    // nothing special.
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
    person.request(&Take, PATIENCE).expect("a person may");
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
        let mut raw = Raw::new(&session);
        // It may hang up in the middle of this.
        let _ = raw.writer.write_all(format!("{bad}\n").as_bytes());
        raw.until("DENIED");
        assert!(raw.line().is_none(), "{bad:.20}: denied and dropped");
    }
    drop(b);
    session.ok(&["kill"]);
}

/// Replies could not be told from what is pushed, nor from those to earlier requests.
#[test]
fn a_request_with_an_id_gets_one_reply_with_the_same() {
    let home = Home::new();
    let session = Detached::start(
        &home,
        &[],
        &["sh", "-c", "printf 'ready> '; while read l; do printf 'ready> '; done"],
    );
    session.wait_text("ready>");
    let mut raw = Raw::new(&session);
    let hello = raw.ask(r#"HELLO#h-1 {"role": "bot", "name": "me"}"#, "OK#h-1");
    assert_eq!(hello["ids"], json!(true));
    for (request, reply) in [
        ("snap#a", "FRAME#a"),
        ("INFO#B_2 brief", "INFO#B_2"),
        (r#"ROWS#r {"from": 0, "to": 1}"#, "ROWS#r"),
        (r#"SUB#s {"out": false}"#, "OK#s"),
        (r#"KEY#k1 {"text": "", "confirm": true}"#, "OK#k1"),
        // Those that have no reply otherwise.
        (r#"KEY#k2 "x""#, "OK#k2"),
        ("LINE#l y", "OK#l"),
        ("ACK#c", "OK#c"),
        ("NOSUCHVERB#n", "DENIED#n"),
        ("KEY#k3 7", "DENIED#k3"),
        ("SNAP#d [", "DENIED#d"),
        ("CMD#m z", "RESP#m"),
        (r#"PASTE#p {"text": "q", "enter": false}"#, "PASTE#p"),
        ("SNAP#", "DENIED"),
        ("SNAP#a#b", "DENIED"),
    ] {
        raw.ask(request, reply);
    }
    // What is pushed has none.
    raw.send(r#"KEY "w""#);
    raw.until("FRAME");
    for role in [r#""king""#, r#""""#, "1"] {
        let mut raw = Raw::new(&session);
        let refused = raw.ask(&format!(r#"HELLO {{"role": {role}}}"#), "DENIED");
        assert!(refused["error"].as_str().is_some_and(|e| e.contains(role)), "{refused}");
        assert!(raw.line().is_none(), "the end");
    }
}

#[test]
fn the_state_is_explained() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["bash", "--norc", "--noediting"]);
    session.ok(&["wait", "--prompt"]);
    let mut bus = session.bus("bot", "driver");
    // The title is set by the turn that ends in the explained state.
    let answer = bus.request(&Cmd("printf '\\033]2;a title\\007'; echo one".to_owned()), PATIENCE);
    assert_eq!(answer.expect("an answer").text, "one\n");
    let explained = bus.request(&Explain, PATIENCE).expect("an answer");
    assert_eq!((explained.judged.state, explained.ready), (AgentState::Idle, true), "{explained:?}");
    assert_eq!((explained.agent.as_str(), explained.turns), ("shell", 1), "{explained:?}");
    assert_eq!(explained.title, "a title");
    let prompt = explained.prompt.as_deref().expect("a prompt was seen");
    let row = explained.judged.rows.last().expect("a row that the state rests on");
    assert!(row.text.starts_with(prompt.trim_end()), "{explained:?}");
    assert!(explained.judged.rule.starts_with("shell: prompt"), "{explained:?}");
    assert!(!explained.judged.evidence.is_empty() && explained.judged.since_ns > 0, "{explained:?}");
    assert!(u128::from(explained.since_ms) < PATIENCE.as_millis(), "{explained:?}");
    // On the wire the state's fields stand beside the others.
    let mut raw = Raw::new(&session);
    let reply = raw.ask("EXPLAIN#e", "EXPLAIN#e");
    let mut fields: Vec<&str> = reply.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    let wanted = [
        "agent",
        "evidence",
        "interrupt",
        "prompt",
        "ready",
        "rows",
        "rule",
        "since_ms",
        "since_ns",
        "state",
        "title",
        "turns",
    ];
    assert_eq!(fields, wanted);
    assert_eq!((&reply["state"], &reply["turns"]), (&json!("idle"), &json!(1)));
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
        let answer = bus.request(&Cmd(command.to_owned()), PATIENCE).expect("an answer");
        assert_eq!((answer.text.as_str(), answer.timeout), (output, false), "{command}");
    }
    let long = bus
        .request(&Cmd("head -c 3000000 /dev/zero | tr '\\0' x; echo".to_owned()), PATIENCE)
        .expect("an answer");
    assert!(long.truncated);
}

#[test]
fn bad_clients_do_no_harm() {
    let home = Home::new();
    let token = home.path("tokens");
    std::fs::write(
        &token,
        "human person-person-person\nbot machine-machine-machine\nobserver eye-eye-eye-eye-eye\n",
    )
    .expect("written");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).expect("a mode");
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
        b"HELLO {\"token\": \"human person-person-person\"}\n",
        b"HELLO {\"role\": \"human\", \"watch\": \"yes\", \"token\": \"person-person-person\"}\n",
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
    eye.hello(&Hello::new(Role::Human, "eye").token("eye-eye-eye-eye-eye"), PATIENCE).expect("let in");
    assert!(eye.request(&Take, PATIENCE).is_err(), "an observer's token grants no more");
    assert!(eye.tell(&TypedLine("a\nKEY \"b\"".into())).is_err(), "one frame is one line");
    // A client that dies holding the stick gives it back.
    let mut bot = Bus::connect(&address.parse().expect("an address")).expect("it listens");
    bot.hello(&Hello::new(Role::Human, "bot").token("machine-machine-machine"), PATIENCE).expect("let in");
    assert_eq!(session.listing()["driver"], "bot");
    // What cannot be read is not taken for what was not said: a stale hold, a signal, a wish for no
    // output.
    let mut raw = Raw::new(&session);
    raw.ask(r#"HELLO {"role": "bot", "watch": true}"#, "OK");
    for (verb, payload) in [
        ("KEY", r#"{"text": "x", "fence": "1"}"#),
        ("KILL", r#"{"signal": 9}"#),
        ("SUB", r#"{"out": "no"}"#),
        ("SNAP", r#"{"since": -1}"#),
        ("KILL", "[]"),
    ] {
        let denied = raw.ask(&format!("{verb} {payload}"), "DENIED");
        let for_its_role = denied["error"].as_str().is_none_or(|error| error.starts_with("only "));
        assert!(!for_its_role && denied["driver"].is_null(), "{verb} {payload}: {denied}");
    }
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
        ("tcp:127.0.0.1:0", &[][..], 2, "--token-file"),
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

/// Most clients watch, some never read, some read a little: the program writes on, clients that can
/// follow have the right screen at the end, and the others are told what they missed.
#[test]
fn slow_subscribers_are_told_and_slow_no_other() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "read go; seq 1 2000000; echo THE END; read x"]);
    let mut healthy: Vec<Bus> = (0..6).map(|i| session.bus("observer", &format!("h{i}"))).collect();
    let mut slow: Vec<Raw> = (0..4).map(|_| Raw::new(&session)).collect();
    for bus in &mut healthy {
        bus.request(&Sub::default(), PATIENCE).expect("subscribed");
    }
    for raw in &mut slow {
        raw.ask("SUB", "OK");
    }
    session.ok(&["type", "go", "--enter"]);
    std::thread::scope(|scope| {
        for bus in &mut healthy {
            scope.spawn(move || {
                let mut last: Vec<String> = Vec::new();
                while !last.iter().any(|row| row == "THE END") {
                    let frame = bus.next(Some(PATIENCE)).expect("it goes on").expect("in time");
                    if let Some(Push::Frame(Frame::Screen(screen))) = frame.push() {
                        last = screen.contents.rows;
                    }
                }
                assert!(last.iter().any(|row| row == "2000000"));
            });
        }
    });
    // Those who read nothing meanwhile: what they missed is said, and then they have the screen as
    // well.
    let whole = session.listing()["seq"].as_u64().expect("a place");
    for raw in &mut slow {
        let (mut gap, mut seen, mut ended) = (0, 0, false);
        // In either order: the screen may come before it is said what is missing. Every byte is
        // sent or said to be.
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

/// A client that asks while the program writes gets all of the output, and all events.
#[test]
fn what_is_asked_meanwhile_costs_nothing_of_the_output() {
    let home = Home::new();
    let lines =
        "stty -echo; read x; i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo line$i; done; echo THE END; cat";
    let session = Detached::start(&home, &[], &["sh", "-c", lines]);
    let mut raw = Raw::new(&session);
    raw.ask(r#"HELLO {"role": "bot", "name": "b"}"#, "OK");
    raw.ask("RELEASE", "OK");
    raw.ask(r#"SUB {"frames": "none"}"#, "OK");
    // In one piece, so that the second finds out what the first has done.
    raw.send("KEY \"\"\nKEY \"\"\nKEY \"go\\r\"");
    let asked = ["INFO", "SNAP", r#"ROWS {"from": 0, "to": 1}"#, r#"FIND {"text": "x"}"#, "TURNS", "EXPLAIN"];
    let (mut out, mut drivers) = (String::new(), Vec::new());
    for ask in asked.iter().cycle() {
        if out.contains("THE END") {
            break;
        }
        raw.send(ask);
        let wanted = ask.split(' ').next().unwrap_or_default();
        loop {
            let (verb, value) = raw.line().expect("it goes on");
            match verb.as_str() {
                "OUT" => out.push_str(value.as_str().expect("text")),
                "EVENT" if value["name"] == "DRIVER" => drivers.push(value["driver"].clone()),
                _ => {}
            }
            if verb == wanted || (wanted, verb.as_str()) == ("SNAP", "FRAME") {
                break;
            }
        }
    }
    let whole: String = (1..=500).map(|i| format!("line{i}\r\n")).collect();
    let (missing, _): (Vec<_>, Vec<_>) = whole.lines().partition(|line| !out.lines().any(|l| l == *line));
    assert!(out.contains(&whole), "missing: {missing:?}");
    assert_eq!(drivers, ["b"]);
}
