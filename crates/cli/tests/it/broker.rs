//! The broker: what it survives, and turns that go from one session to another.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_needs::has;
use tapdeck_proto::broker::{Answer, Message, Response};

use crate::support::{Home, PATIENCE, eventually, signal};

struct Broker<'h> {
    home: &'h Home,
    child: Child,
}

impl<'h> Broker<'h> {
    fn start(home: &'h Home) -> Self {
        Self::start_with(home, &[])
    }

    fn start_with(home: &'h Home, env: &[(&str, &str)]) -> Self {
        let mut command = home.tapdeck(["broker"]);
        command.envs(env.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
        let broker = Self { home, child };
        let deadline = std::time::Instant::now() + PATIENCE;
        while UnixStream::connect(broker.socket()).is_err() {
            assert!(std::time::Instant::now() < deadline, "the broker listens");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        broker
    }

    fn socket(&self) -> std::path::PathBuf {
        self.home.path("run").join("tapdeck/broker.sock")
    }

    fn peer(&self) -> Peer {
        let stream = UnixStream::connect(self.socket()).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Peer(stream)
    }

    fn greeted(&self, role: &str) -> Peer {
        let mut peer = self.peer();
        let ack = peer.ask(&hello(1, role));
        assert!(ack.outcome.is_ok(), "{ack:?}");
        peer
    }
}

impl Drop for Broker<'_> {
    fn drop(&mut self) {
        signal(self.child.id(), rustix::process::Signal::TERM);
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(ended.is_ok_and(|status| status.success()) && !self.socket().exists(), "it tidies up");
        }
    }
}

struct Peer(UnixStream);

impl Peer {
    fn send(&mut self, message: &Value) {
        let body = rmp_serde::to_vec_named(message).expect("encoded");
        let mut bytes = u32::try_from(body.len()).expect("short").to_be_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.0.write_all(&bytes).expect("sent");
    }

    fn receive(&mut self) -> Option<Message> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).ok()?;
        Some(Message::decode(&body).expect("a message"))
    }

    fn response(&mut self) -> Response {
        self.receive().expect("an answer").response().expect("a response")
    }

    fn ask(&mut self, message: &Value) -> Response {
        self.send(message);
        self.response()
    }

    fn error(&mut self, message: &Value) -> String {
        word(&self.ask(message))
    }
}

/// The word by which a response says how it went.
fn word(response: &Response) -> String {
    response.outcome.as_ref().map_or_else(|refusal| refusal.code.to_string(), |_| "ok".to_owned())
}

fn hello(version: u64, role: &str) -> Value {
    json!({"type": "hello", "id": 0, "version": version, "role": role})
}

fn register(session: &str) -> Value {
    json!({"type": "register", "id": 1, "session": session, "pid": 1, "pattern": "$"})
}

fn turn(session: &str, content: &str) -> Value {
    json!({"type": "turn_completed", "id": 2, "session": session, "content": content, "interrupted": false})
}

fn of(kind: &str, session: &str) -> Value {
    json!({"type": kind, "id": 3, "session": session})
}

#[test]
fn bad_peers_do_no_harm() {
    let home = Home::new();
    let broker = Broker::start(&home);
    assert_eq!(home.run(["broker"]).status.code(), Some(1), "one is enough");
    assert_eq!(broker.peer().error(&hello(9, "client")), "version_mismatch");
    assert_eq!(broker.peer().error(&hello(1, "king")), "malformed");
    assert_eq!(broker.peer().error(&of("list_sessions", "")), "malformed", "hello comes first");
    let mut long = broker.greeted("client");
    long.0.write_all(&[0x7f, 0xff, 0xff, 0xff, 1, 2, 3]).expect("sent");
    assert_eq!(word(&long.response()), "payload_too_large", "told before the end");
    assert!(long.receive().is_none(), "closed");
    let mut wrong = broker.greeted("client");
    wrong.0.write_all(&[0, 0, 0, 2, 0xc1, 0xc1]).expect("sent");
    assert_eq!(word(&wrong.response()), "malformed");
    // Half a frame, and a peer that never reads: neither delays other clients.
    let mut half = broker.greeted("wrapper");
    half.0.write_all(&[0, 0, 1, 0, 0x81]).expect("sent");
    let mut owner = broker.greeted("wrapper");
    let mut liar = broker.greeted("wrapper");
    let mut client = broker.greeted("client");
    assert_eq!(owner.error(&register("s")), "ok");
    assert_eq!(liar.error(&register("s")), "duplicate_session");
    assert_eq!(liar.error(&turn("s", "lie")), "forbidden");
    assert_eq!(client.error(&turn("s", "lie")), "forbidden");
    assert_eq!(owner.error(&of("capture", "s")), "forbidden");
    assert_eq!(client.error(&of("fly", "s")), "unknown_type");
    assert_eq!(client.error(&of("capture", "s")), "no_turn");
    assert_eq!(client.error(&of("paste", "s")), "buffer_empty");
    assert_eq!(owner.error(&turn("s", "the answer")), "ok");
    assert_eq!(client.error(&of("capture", "s")), "ok");
    assert_eq!(client.error(&of("paste", "s")), "ok");
    let inject = owner.receive().and_then(|message| message.inject()).expect("injected");
    assert_eq!(inject.content.0, b"the answer");
    drop(owner);
    let deadline = std::time::Instant::now() + PATIENCE;
    while client.error(&of("paste", "s")) != "session_disconnected" {
        assert!(std::time::Instant::now() < deadline, "it notices");
    }
}

/// A clipboard tool that does not end delays only the client that asked for it.
#[test]
fn a_slow_sink_holds_up_no_client() {
    let home = Home::new();
    let (tool, gate) = (home.path("xclip"), home.path("gate"));
    std::fs::write(&tool, "#!/bin/sh\nread x < \"$HOME/gate\"\ncat > \"$HOME/copied\"\n").expect("written");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    assert!(home.command("mkfifo").arg(&gate).status().expect("it runs").success());
    let path = format!("{}:/usr/bin:/bin", home.path("").display());
    let broker = Broker::start_with(&home, &[("PATH", &path), ("DISPLAY", ":none")]);
    let (mut owner, mut slow) = (broker.greeted("wrapper"), broker.greeted("client"));
    assert_eq!(owner.error(&register("s")), "ok");
    assert_eq!(owner.error(&turn("s", "the answer")), "ok");
    assert_eq!(slow.error(&of("capture", "s")), "ok");
    slow.send(&json!({"type": "deliver", "id": 9, "sink": "clipboard"}));
    let mut quick = broker.greeted("client");
    for _ in 0..20 {
        assert_eq!(quick.error(&of("list_turns", "s")), "ok");
        assert_eq!(owner.error(&turn("s", "the next")), "ok");
    }
    std::fs::write(&gate, "go on\n").expect("somebody reads it");
    let answer = slow.response();
    assert!(answer.id == 9 && answer.outcome.is_ok(), "{answer:?}");
    assert_eq!(std::fs::read(home.path("copied")).expect("there"), b"the answer");
}

/// The tool was given the display that the broker was started with.
#[test]
fn the_clipboard_is_that_of_the_client() {
    let home = Home::new();
    let tool = home.path("xclip");
    let script = "#!/bin/sh\ncat > \"$HOME/copied\"; echo \"$DISPLAY $XAUTHORITY\" > \"$HOME/display\"\n";
    std::fs::write(&tool, script).expect("written");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let path = format!("{}:/usr/bin:/bin", home.path("").display());
    let broker = Broker::start_with(&home, &[("PATH", &path), ("DISPLAY", ":broker")]);
    let (mut owner, mut client) = (broker.greeted("wrapper"), broker.greeted("client"));
    assert_eq!(owner.error(&register("s")), "ok");
    assert_eq!(owner.error(&turn("s", "the answer")), "ok");
    assert_eq!(client.error(&of("capture", "s")), "ok");
    let mut deliver = home.tapdeck(["deliver", "clipboard"]);
    deliver.env("DISPLAY", ":mine").env("XAUTHORITY", "/my/cookie").env_remove("WAYLAND_DISPLAY");
    assert!(deliver.output().expect("it runs").status.success());
    assert_eq!(std::fs::read_to_string(home.path("display")).expect("there"), ":mine /my/cookie\n");
    assert_eq!(std::fs::read(home.path("copied")).expect("there"), b"the answer");
    // A client that says nothing of it means the broker's, as it always did.
    assert_eq!(client.error(&json!({"type": "deliver", "id": 9, "sink": "clipboard"})), "ok");
    assert!(std::fs::read_to_string(home.path("display")).expect("there").starts_with(":broker"));
}

/// Each session waited two seconds for it, twice.
#[test]
fn a_broker_that_hangs_holds_up_no_session() {
    let home = Home::new();
    let broker = Broker::start(&home);
    signal(broker.child.id(), rustix::process::Signal::STOP);
    let started = std::time::Instant::now();
    let ended = [(); 3].map(|()| home.run(["run", "--headless", "--", "true"]).status.success());
    let took = started.elapsed();
    signal(broker.child.id(), rustix::process::Signal::CONT);
    assert_eq!(ended, [true; 3]);
    assert!(took < Duration::from_secs(6), "three sessions took {took:?}");
}

#[test]
fn a_session_is_listed_with_the_pattern_of_its_program() {
    let home = Home::new();
    let broker = Broker::start(&home);
    let programs = [("python3", "^>>> ?$"), ("sqlite3", "^sqlite> $"), ("bash", "[$#%] $")];
    for (program, pattern) in programs.into_iter().filter(|(program, _)| has(program)) {
        assert!(home.run(["run", "-d", "--name", program, "--", program]).status.success());
        let mut client = broker.greeted("client");
        eventually("it is listed", || {
            let listed = client.ask(&of("list_sessions", ""));
            let Ok(Answer::Sessions { sessions }) = listed.outcome else { return false };
            sessions.iter().any(|session| session.pattern.starts_with(pattern))
        });
        assert!(home.run(["kill", program]).status.success());
    }
}

#[test]
fn a_thousand_sessions_are_listed() {
    let home = Home::new();
    let broker = Broker::start(&home);
    let mut wrapper = broker.greeted("wrapper");
    for i in 0..1000 {
        let name = format!("session-{i}");
        assert_eq!(wrapper.error(&register(&name)), "ok");
        assert_eq!(wrapper.error(&turn(&name, &name)), "ok");
    }
    let listed = broker.greeted("client").ask(&of("list_sessions", ""));
    assert!(matches!(listed.outcome, Ok(Answer::Sessions { sessions }) if sessions.len() == 1000));
}

/// Ends the sessions of a test, however it ends.
struct End<'h>(&'h Home);

impl Drop for End<'_> {
    fn drop(&mut self) {
        for name in ["from", "plain", "editing", "zsh", "dash"] {
            self.0.run(["kill", name]);
        }
    }
}

/// An answer with escape sequences and line ends, pasted into a shell, runs nothing.
#[test]
fn what_is_captured_is_pasted_and_not_run() {
    let home = Home::new();
    let run = |args: &[&str]| {
        let out = home.run(args);
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{args:?}: {text}");
        text
    };
    let _end = End(&home);
    // One that is there before the broker, and two that come after it.
    run(&["run", "-d", "--name", "from", "--", "bash", "--norc"]);
    let _broker = Broker::start(&home);
    run(&["run", "-d", "--name", "plain", "--", "bash", "--norc", "--noediting"]);
    run(&["run", "-d", "--name", "editing", "--", "bash", "--norc"]);
    let mut shells = vec!["plain", "editing"];
    for (name, command) in [("zsh", ["zsh", "-f"]), ("dash", ["dash", "-i"])] {
        if has(name) {
            run(&["run", "-d", "--name", name, "--", command[0], command[1]]);
            shells.push(name);
        }
    }
    for name in shells.iter().copied().chain(["from"]) {
        run(&["wait", name, "--state", "idle", "--timeout", "30"]);
    }
    run(&["paste", "from", "printf 'one\\033[201~\\n\\033[31mtouch evil\\ntouch worse\\n'"]);
    run(&["wait", "from", "--state", "idle"]);
    let deadline = std::time::Instant::now() + PATIENCE;
    while !home.run(["capture", "from"]).status.success() {
        assert!(std::time::Instant::now() < deadline, "the session makes itself known");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    for name in shells {
        run(&["deliver", "inject", name]);
        run(&["wait", name, "--text", "touch worse", "--timeout", "30"]);
    }
    for (args, code, says) in [
        (&["deliver", "file", "nowhere/answer.txt"][..], 1, "No such file"),
        (&["deliver", "inject", "nobody"], 3, "knows no such session"),
        (&["deliver", "inject"], 2, "(editing)"),
    ] {
        let out = home.run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(code) && said.contains(says), "{args:?}: {said}");
    }
    run(&["deliver", "file", "answer.txt"]);
    assert_eq!(
        std::fs::read_to_string(home.path("answer.txt")).expect("there"),
        "one\ntouch evil\ntouch worse\n"
    );
    assert!(!home.path("evil").exists() && !home.path("worse").exists(), "nothing was run");
    run(&["send", "--take", "editing", "C-c"]);
    run(&["wait", "editing", "--state", "idle"]);
    run(&["paste", "from", "echo echo relayed"]);
    run(&["wait", "from", "--state", "idle"]);
    let said = run(&["relay", "from", "editing"]);
    assert!(said.contains("submitted"), "{said}");
    run(&["wait", "editing", "--text", "^relayed$", "--timeout", "30"]);
    // The only session that is left need not be named.
    for name in ["from", "plain", "zsh", "dash"] {
        // Not every shell is installed.
        let _ = home.run(["kill", name]);
    }
    eventually("the others to be gone", || {
        String::from_utf8_lossy(&home.run(["ls", "-q"]).stdout).lines().count() == 1
    });
    run(&["wait", "--state", "idle"]);
    assert!(run(&["deliver", "inject"]).contains("delivered"));
}
