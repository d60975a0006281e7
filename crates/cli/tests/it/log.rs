//! The log: off by default, never on a program's terminal, and never with a token in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Home, Seat, eventually};
use crate::wire::{Server, text};

/// The log files that commands have left in this home.
fn logs(home: &Home) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.path("state/tapdeck/log")) else { return Vec::new() };
    entries.flatten().map(|entry| std::fs::read_to_string(entry.path()).expect("text")).collect()
}

#[test]
fn a_programs_output_is_the_same_with_and_without_a_log() {
    let home = Home::new();
    let script = "printf 'one\\033[1mtwo'; echo three >&2; exit 3";
    let on_terminal = |levels: &str| {
        let mut command = home.tapdeck(["run", "--", "sh", "-c", script]);
        command.env("TAPDECK_LOG", levels);
        let mut seat = Seat::new(command);
        let status = seat.end();
        (status.code(), std::mem::take(&mut seat.raw))
    };
    let on_pipes = |levels: &str| {
        let mut command = home.tapdeck(["run", "--no-pty", "--", "sh", "-c", script]);
        let out = command.env("TAPDECK_LOG", levels).stdin(Stdio::null()).output().expect("it runs");
        (out.status.code(), out.stdout, out.stderr)
    };
    let (terminal, pipes) = (on_terminal(""), on_pipes(""));
    assert_eq!(terminal.0, Some(3));
    assert_eq!(logs(&home), [""; 0], "there is no log unless it is asked for");
    assert_eq!(on_terminal("trace"), terminal);
    assert_eq!(on_pipes("trace"), pipes);
    let logs = logs(&home);
    assert_eq!(logs.len(), 2, "one file a process: {logs:?}");
    assert!(logs.iter().all(|log| log.contains("started") && log.contains("ended")), "{logs:?}");
}

/// What is written and typed in a session is not for its log.
#[test]
fn a_sessions_log_tells_of_its_life_and_not_of_its_contents() {
    let home = Home::new();
    let tape = home.path("demo.ahr");
    let mut command = home.tapdeck(["rec", "-I", "--size", "70x20"]);
    command.arg(&tape).args(["--", "sh", "-c", "read word; echo written-$word"]);
    command.env("TAPDECK_LOG", "debug");
    let mut seat = Seat::new(command);
    seat.send(b"typed\r");
    assert_eq!(seat.end().code(), Some(0));
    let log = logs(&home).concat();
    for part in [
        "session started cols=70 rows=20 has_terminal=true",
        "recording started",
        "stick changed hands",
        "session ended exit=Code(0) ended=Program",
        "recording finished",
        &format!("path={}", tape.display()),
    ] {
        assert!(log.contains(part), "{part} is missing:\n{log}");
    }
    assert!(!log.contains("written") && !log.contains("typed"), "{log}");
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    let home = Home::new();
    let out = home.tapdeck(["ls"]).env("TAPDECK_LOG", "loud").output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("unknown level \"loud\""), "{}", text(&out.stderr));
}

/// Starts a server that logs into a file. One client is refused and one is served. Returns the log.
fn served(home: &Home, options: &[&str], wrong: &str) -> (String, String) {
    let log = home.path("log");
    let options = [&["--listen", "tls://127.0.0.1:0"], options].concat();
    let server = Server::start_with(home, &options, |command| {
        command.env("TAPDECK_LOG", "trace").stderr(std::fs::File::create(&log).expect("made"));
    });
    let address = &server.addresses[1];
    let refused = server.connect(address, &["--", "true"]).env("TAPDECK_TOKEN", wrong).output();
    assert!(!refused.expect("it runs").status.success());
    let out = server.run(address, &["--", "sh", "-c", "exit 7"]);
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    let read = |path: &Path| std::fs::read_to_string(path).expect("text");
    eventually("the end of the connection", || read(&log).matches("closed").count() >= 2);
    (read(&log), server.token.clone())
}

#[test]
fn a_server_logs_who_came_and_who_was_refused_without_their_tokens() {
    let home = Home::new();
    let wrong = "5ec2e7".repeat(11);
    let (log, token) = served(&home, &[], &wrong);
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("refused")).collect();
    assert_eq!(refused.len(), 1, "{log}");
    for part in ["WARN", "door=\"tls\"", "peer=127.0.0.1:", "error=\"forbidden\""] {
        assert!(refused[0].contains(part), "{part} is missing: {}", refused[0]);
    }
    assert!(log.lines().any(|line| line.contains("admitted") && line.contains("door=\"tls\"")), "{log}");
    assert!(!log.contains(&token) && !log.contains(&wrong), "{log}");
}

#[test]
fn a_servers_log_is_json_when_asked_for() {
    let home = Home::new();
    let (log, _) = served(&home, &["--log-format", "json"], "wrong");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let refused: Vec<&Value> = events.iter().filter(|event| event["message"] == "refused").collect();
    assert_eq!(refused.len(), 1, "{log}");
    assert_eq!(refused[0]["level"], "WARN");
    assert_eq!(refused[0]["error"], "forbidden");
    assert_eq!(refused[0]["span"]["door"], "tls");
}

#[test]
fn warnings_of_a_server_are_lines_of_its_json_log() {
    let home = Home::new();
    let log = home.path("log");
    let mut command = home.tapdeck(["serve", "--listen", "tls://127.0.0.1:0", "--log-format", "json"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("made"));
    let mut server = command.spawn().expect("it runs");
    let out = BufReader::new(server.stdout.take().expect("a pipe"));
    let listens = out.lines().any(|line| line.is_ok_and(|line| line.starts_with("listening")));
    server.kill().and_then(|()| server.wait()).expect("it ends");
    assert!(listens);
    let log = std::fs::read_to_string(&log).expect("text");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let warned = |e: &&Value| e["message"].as_str().is_some_and(|m| m.starts_with("there is no valid token"));
    assert_eq!(events.iter().find(warned).expect(&log)["level"], "WARN");
}

/// Opens a WebSocket at the page's tty wire. Returns its stream, once the server has agreed.
fn web_socket(port: &str) -> TcpStream {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    let head = format!(
        "GET /ws/tty HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer shown-by-programs\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream
}

/// A WebSocket is served by a task of its own, which once lost the door and the peer.
#[test]
fn the_pages_tty_wire_logs_its_door_and_its_peer() {
    for format in ["text", "json"] {
        let home = Home::new();
        let log = home.path("log");
        let options = ["--listen", "ws://127.0.0.1:0", "--log-format", format];
        let server = Server::start_with(&home, &options, |command| {
            command.env("TAPDECK_LOG", "info").stderr(std::fs::File::create(&log).expect("made"));
        });
        let port = server.addresses[1].rsplit(':').next().expect("a port").to_owned();
        let mut peers = Vec::new();
        for token in ["5ec2e7", &server.token] {
            let mut socket = web_socket(&port);
            peers.push(socket.local_addr().expect("an address").to_string());
            let negotiation = format!(r#"{{"backend":"local","cmd":["true"],"tty":null,"token":"{token}"}}"#);
            let length = u32::try_from(negotiation.len()).expect("short").to_be_bytes();
            let payload = [&length[..], negotiation.as_bytes()].concat();
            let size = u16::try_from(payload.len()).expect("short").to_be_bytes();
            // A binary message with a mask of zeros, which changes nothing.
            let frame = [&[0x82, 0x80 | 126], &size[..], &[0; 4], &payload].concat();
            socket.write_all(&frame).expect("sent");
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer).expect("an answer and the end");
        }
        let read = || std::fs::read_to_string(&log).expect("text");
        eventually("both clients are in the log", || read().contains("admitted"));
        let log = read();
        for (word, peer) in ["refused", "admitted"].into_iter().zip(&peers) {
            let line = log.lines().find(|line| line.contains(word)).expect(&log);
            assert!(line.contains("page") && line.contains(peer.as_str()), "{peer}: {line}");
            if format == "json" {
                let event: Value = serde_json::from_str(line).expect(line);
                assert_eq!(
                    (&event["span"]["door"], &event["span"]["peer"]),
                    (&"page".into(), &peer.as_str().into())
                );
            }
        }
        for secret in ["5ec2e7", server.token.as_str(), "shown-by-programs"] {
            assert!(!log.contains(secret), "{log}");
        }
    }
}
