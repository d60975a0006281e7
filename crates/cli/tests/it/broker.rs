//! The broker: what it survives, and turns that go from one session to another.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use tapdeck_needs::has;
use tapdeck_serve::broker::msgpack::{Value, map};

use crate::support::{Home, PATIENCE, signal};

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
        assert_eq!(ack.get("status"), Some(&Value::from("ok")), "{ack:?}");
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
        let body = message.encode();
        let mut bytes = u32::try_from(body.len()).expect("short").to_be_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.0.write_all(&bytes).expect("sent");
    }

    fn receive(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).ok()?;
        Some(Value::decode(&body).expect("MessagePack"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive().expect("an answer")
    }

    fn error(&mut self, message: &Value) -> String {
        self.ask(message).get("error").and_then(Value::as_str).unwrap_or("ok").to_owned()
    }
}

fn hello(version: u64, role: &str) -> Value {
    map([("type", "hello".into()), ("id", 0.into()), ("version", version.into()), ("role", role.into())])
}

fn register(session: &str) -> Value {
    map([
        ("type", "register".into()),
        ("id", 1.into()),
        ("session", session.into()),
        ("pid", 1.into()),
        ("pattern", "$".into()),
    ])
}

fn turn(session: &str, content: &[u8]) -> Value {
    map([
        ("type", "turn_completed".into()),
        ("id", 2.into()),
        ("session", session.into()),
        ("content", Value::Bin(content.to_vec())),
        ("interrupted", false.into()),
    ])
}

fn of(kind: &str, session: &str) -> Value {
    map([("type", kind.into()), ("id", 3.into()), ("session", session.into())])
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
    let told = long.receive().expect("told before the end");
    assert_eq!(told.get("error"), Some(&Value::from("payload_too_large")));
    assert!(long.receive().is_none(), "closed");
    let mut wrong = broker.greeted("client");
    wrong.0.write_all(&[0, 0, 0, 2, 0xc1, 0xc1]).expect("sent");
    assert_eq!(wrong.receive().expect("told").get("error"), Some(&Value::from("malformed")));
    // Half a frame, and a peer that never reads: neither delays other clients.
    let mut half = broker.greeted("wrapper");
    half.0.write_all(&[0, 0, 1, 0, 0x81]).expect("sent");
    let mut owner = broker.greeted("wrapper");
    let mut liar = broker.greeted("wrapper");
    let mut client = broker.greeted("client");
    assert_eq!(owner.error(&register("s")), "ok");
    assert_eq!(liar.error(&register("s")), "duplicate_session");
    assert_eq!(liar.error(&turn("s", b"lie")), "forbidden");
    assert_eq!(client.error(&turn("s", b"lie")), "forbidden");
    assert_eq!(owner.error(&of("capture", "s")), "forbidden");
    assert_eq!(client.error(&of("fly", "s")), "unknown_type");
    assert_eq!(client.error(&of("capture", "s")), "no_turn");
    assert_eq!(client.error(&of("paste", "s")), "buffer_empty");
    assert_eq!(owner.error(&turn("s", b"the answer")), "ok");
    assert_eq!(client.error(&of("capture", "s")), "ok");
    assert_eq!(client.error(&of("paste", "s")), "ok");
    let inject = owner.receive().expect("injected");
    assert_eq!(inject.get("type"), Some(&Value::from("inject")));
    assert_eq!(inject.get("content"), Some(&Value::Bin(b"the answer".to_vec())));
    drop(owner);
    let deadline = std::time::Instant::now() + PATIENCE;
    while client.error(&of("paste", "s")) != "session_disconnected" {
        assert!(std::time::Instant::now() < deadline, "it notices");
    }
}

/// A clipboard tool that does not end delays only the client that asked for it.
#[test]
fn a_slow_sink_holds_up_nobody() {
    let home = Home::new();
    let (tool, gate) = (home.path("xclip"), home.path("gate"));
    std::fs::write(&tool, "#!/bin/sh\nread x < \"$HOME/gate\"\ncat > \"$HOME/copied\"\n").expect("written");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    assert!(home.command("mkfifo").arg(&gate).status().expect("it runs").success());
    let path = format!("{}:/usr/bin:/bin", home.path("").display());
    let broker = Broker::start_with(&home, &[("PATH", &path), ("DISPLAY", ":none")]);
    let (mut owner, mut slow) = (broker.greeted("wrapper"), broker.greeted("client"));
    assert_eq!(owner.error(&register("s")), "ok");
    assert_eq!(owner.error(&turn("s", b"the answer")), "ok");
    assert_eq!(slow.error(&of("capture", "s")), "ok");
    slow.send(&map([("type", "deliver".into()), ("id", 9.into()), ("sink", "clipboard".into())]));
    let mut quick = broker.greeted("client");
    for _ in 0..20 {
        assert_eq!(quick.error(&of("list_turns", "s")), "ok");
        assert_eq!(owner.error(&turn("s", b"the next")), "ok");
    }
    std::fs::write(&gate, "go on\n").expect("somebody reads it");
    let answer = slow.receive().expect("an answer at last");
    assert_eq!((answer.get("id"), answer.get("status")), (Some(&9.into()), Some(&"ok".into())), "{answer:?}");
    assert_eq!(std::fs::read(home.path("copied")).expect("there"), b"the answer");
}

#[test]
fn a_thousand_sessions_are_listed() {
    let home = Home::new();
    let broker = Broker::start(&home);
    let mut wrapper = broker.greeted("wrapper");
    for i in 0..1000 {
        let name = format!("session-{i}");
        assert_eq!(wrapper.error(&register(&name)), "ok");
        assert_eq!(wrapper.error(&turn(&name, name.as_bytes())), "ok");
    }
    let listed = broker.greeted("client").ask(&of("list_sessions", ""));
    assert!(matches!(listed.get("sessions"), Some(Value::Array(all)) if all.len() == 1000));
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
        (["deliver", "file", "nowhere/answer.txt"], 1, "No such file"),
        (["deliver", "inject", "nobody"], 3, "knows no such session"),
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
}
