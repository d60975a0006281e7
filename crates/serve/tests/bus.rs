//! The client of the bus against sessions that answer late, out of turn, or not at all.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_proto::bus::{Cmd, InfoWanted, Key, Release, Screen, Snap, Take};
use tapdeck_serve::client::{Bus, ClientError, Hello, Role};
use tapdeck_serve::door::Address;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

/// What a scripted session does: each line that it waits for, and what it says to that.
type Script = Vec<(&'static str, String)>;

struct Scripted {
    bus: Bus,
    session: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

fn scripted(script: Script) -> Scripted {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).expect("bound");
    let session = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut lines = BufReader::new(stream.try_clone().expect("a copy"));
        for (wanted, says) in script {
            let mut line = String::new();
            lines.read_line(&mut line).expect("read");
            assert_eq!(line.split_once(' ').map_or(line.trim_end(), |(verb, _)| verb), wanted);
            stream.write_all(says.as_bytes()).expect("written");
        }
    });
    let bus = Bus::connect(&Address::Unix(path)).expect("connected");
    Scripted { bus, session, _folder: folder }
}

/// The payload of a frame with this title.
fn screen(title: &str) -> String {
    serde_json::to_string(&Screen { title: title.into(), ..Screen::default() }).expect("JSON")
}

fn hello(bus: &mut Bus) {
    bus.hello(&Hello::new(Role::Bot, "me"), PATIENCE).expect("welcome");
}

/// A pushed frame was taken for the answer, and so was the refusal of something sent before.
#[test]
fn an_answer_is_known_by_its_question() {
    let (delta, full) = (screen("delta"), screen("full"));
    let script = vec![
        ("HELLO", "OK {\"ids\": true}\n".into()),
        ("KEY", String::new()),
        ("SNAP#1", format!("FRAME {delta}\nDENIED {{\"error\": \"the key\"}}\nFRAME#1 {full}\n")),
        ("SNAP#2", String::new()),
        ("INFO#3", "FRAME#2 {}\nINFO {}\nINFO#3 {\"id\": \"right\"}\n".into()),
        ("TAKE#4", "OK {}\nDENIED#4 {\"error\": \"no\"}\n".into()),
        ("RELEASE#5", "DENIED {\"error\": \"too long\"}\n".into()),
    ];
    let Scripted { mut bus, session, _folder } = scripted(script);
    hello(&mut bus);
    bus.tell(&Key::Raw("x".into())).expect("sent");
    assert_eq!(bus.request(&Snap::default(), PATIENCE).expect("an answer").title, "full");
    assert!(matches!(bus.request(&Snap::default(), SHORT), Err(ClientError::Late(_))));
    assert_eq!(bus.request(&InfoWanted::Brief, PATIENCE).expect("an answer").about.id, "right");
    assert!(matches!(bus.request(&Take, PATIENCE), Err(ClientError::Denied(why)) if why == "no"));
    let pushed: Vec<_> = std::iter::from_fn(|| bus.next(Some(SHORT)).expect("no error")).collect();
    let pushed: Vec<_> = pushed.iter().map(|f| f.verb.as_str()).collect();
    assert_eq!(pushed, ["FRAME", "DENIED", "INFO", "OK"]);
    // Why the connection is over matters more than that it is.
    assert!(matches!(bus.request(&Release, PATIENCE), Err(ClientError::Denied(why)) if why == "too long"));
    session.join().expect("as scripted");
}

#[test]
fn a_session_that_does_not_mark_its_answers_is_asked_as_before() {
    let script = vec![
        ("HELLO", "OK {}\n".into()),
        ("SNAP", format!("OUT \"x\"\nFRAME {}\n", screen("full"))),
        ("TAKE", "DENIED {}\n".into()),
    ];
    let Scripted { mut bus, session, _folder } = scripted(script);
    hello(&mut bus);
    assert_eq!(bus.request(&Snap::default(), PATIENCE).expect("an answer").title, "full");
    assert!(matches!(bus.request(&Take, PATIENCE), Err(ClientError::Denied(_))));
    assert_eq!(bus.next(Some(PATIENCE)).expect("no error").expect("pushed").verb, "OUT");
    session.join().expect("as scripted");
}

/// The time limit covered only the answer: a request to a session that had stopped reading never
/// returned.
#[test]
fn a_session_that_does_not_read_is_late_and_later_reads_whole_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).expect("bound");
    let (go, wait): (_, Receiver<()>) = channel();
    let session = std::thread::spawn(move || {
        let (stream, _): (UnixStream, _) = listener.accept().expect("a client");
        wait.recv().expect("told to read");
        let lines = BufReader::new(stream).lines().map(|line| line.expect("text"));
        lines.take(2).collect::<Vec<_>>()
    });
    let mut bus = Bus::connect(&Address::Unix(path)).expect("connected");
    let long = "a".repeat(3_000_000);
    assert!(matches!(bus.request(&Cmd(long.clone()), SHORT), Err(ClientError::Late(_))));
    assert!(
        matches!(bus.request(&Snap::default(), SHORT), Err(ClientError::Late(_))),
        "it would stand within the first"
    );
    go.send(()).expect("it waits");
    bus.tell(&InfoWanted::Full).expect("sent");
    let lines = session.join().expect("no panic");
    assert_eq!((lines[0].len(), lines[1].as_str()), ("CMD ".len() + long.len(), "INFO"));
}
