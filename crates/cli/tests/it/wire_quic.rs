//! QUIC where the way is bad, one side is slow, or the other is gone: the client has no thread that
//! would see to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{Home, Seat, eventually, signal};
use crate::wire::{Server, text};

const LISTEN: [&str; 2] = ["--listen", "quic://127.0.0.1:0"];

/// A relay between one client and a server that may lose datagrams.
struct Between {
    address: String,
    seen: Arc<Seen>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    datagrams: AtomicU64,
    /// Whether the last one came from the client, and when.
    last: Mutex<Option<(bool, Instant)>>,
    client: Mutex<Option<SocketAddr>>,
}

impl Between {
    /// Loses every n-th datagram of both sides; none if this is 0.
    fn new(server: &str, loses: u64) -> Self {
        let server: SocketAddr = server.strip_prefix("quic://").expect("QUIC").parse().expect("an address");
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let address = format!("quic://{}", front.local_addr().expect("bound"));
        let (seen, over) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
        let threads = [true, false].map(|from_client| {
            let (from, to) = if from_client { (&front, &back) } else { (&back, &front) };
            let (from, to, seen, over) = (from.clone(), to.clone(), seen.clone(), over.clone());
            from.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
            std::thread::spawn(move || {
                let mut buf = [0; 65536];
                while !over.load(Ordering::Relaxed) {
                    let Ok((n, sender)) = from.recv_from(&mut buf) else { continue };
                    *seen.last.lock().expect("whole") = Some((from_client, Instant::now()));
                    let number = seen.datagrams.fetch_add(1, Ordering::Relaxed) + 1;
                    let mut client = seen.client.lock().expect("whole");
                    if from_client {
                        *client = Some(sender);
                    }
                    let receiver = if from_client { Some(server) } else { *client };
                    drop(client);
                    if let Some(receiver) = receiver.filter(|_| loses == 0 || number % loses != 0) {
                        let _ = to.send_to(&buf[..n], receiver);
                    }
                }
            })
        });
        Self { address, seen, over, threads: threads.into() }
    }

    /// Waits until nothing passes any more, and everything that the server sent was confirmed: a
    /// client that does not see to its connection leaves the last word to the server.
    fn wait_until_quiet(&self) {
        eventually("the client's last word", || {
            let last = *self.seen.last.lock().expect("whole");
            last.is_some_and(|(client, at)| client && at.elapsed() > Duration::from_millis(300))
        });
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn numbers(last: u32, end: &str) -> String {
    (1..=last).map(|n| format!("{n}{end}")).collect()
}

#[test]
fn every_byte_comes_over_a_way_that_loses_every_tenth_datagram() {
    let home = Home::new();
    let server = Server::start(&home, &LISTEN);
    let way = Between::new(&server.addresses[1], 10);
    let out = server.run(&way.address, &["--", "sh", "-c", "seq 1 750000; exit 5"]);
    let expected = numbers(750_000, "\n");
    assert!(out.stdout == expected.as_bytes(), "{} bytes came: {}", out.stdout.len(), text(&out.stderr));
    assert_eq!(out.status.code(), Some(5));
    assert!(way.seen.datagrams.load(Ordering::Relaxed) > 100, "it went another way");
}

#[test]
fn ten_megabytes_are_typed_while_the_program_is_busy() {
    const SIZE: usize = 10_000_000;
    let home = Home::new();
    let server = Server::start(&home, &LISTEN);
    let typed: Vec<u8> = (0..SIZE).map(|n| (n * 7 % 251) as u8).collect();
    std::fs::write(home.path("typed"), &typed).expect("written");
    let sum = Command::new("cksum").stdin(std::fs::File::open(home.path("typed")).expect("open")).output();
    let sum = text(&sum.expect("it runs").stdout);
    for (kind, set) in [("--no-pty", ":"), ("-t", "stty raw -echo")] {
        let script = format!("{set}; printf READY; seq 1 300000; head -c {SIZE} | cksum");
        let mut child = server
            .connect(&server.addresses[1], &[kind, "--", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut out = child.stdout.take().expect("piped");
        let mut ready = [0; 5];
        out.read_exact(&mut ready).expect("ready");
        let mut stdin = child.stdin.take().expect("piped");
        std::thread::scope(|s| {
            // It ends on its own; what it has read is what counts.
            let typing = s.spawn(|| stdin.write_all(&typed).and_then(|()| stdin.flush()));
            let mut rest = String::new();
            out.read_to_string(&mut rest).expect("text");
            assert!(
                rest == numbers(300_000, "\n") + &sum,
                "{kind}: {} bytes, {:?}",
                rest.len(),
                rest.get(rest.len() - 40..)
            );
            typing.join().expect("no panic").expect("all was taken");
        });
        assert!(child.wait().expect("it ends").success(), "{kind}");
    }
}

/// The server counts a client that confirms nothing as gone.
#[test]
fn a_terminal_that_is_stopped_does_not_stop_its_connection() {
    let home = Home::new();
    let server = Server::start(&home, &LISTEN);
    let way = Between::new(&server.addresses[1], 0);
    let mut seat = Seat::new(server.connect(&way.address, &["--", "sh", "-c", "seq 1 500000; exit 6"]));
    way.wait_until_quiet();
    assert!(!server.listed().is_empty(), "it waits for its reader");
    assert_eq!(seat.end().code(), Some(6));
    let shown = text(&seat.raw);
    assert!(shown.ends_with(&numbers(500_000, "\r\n")), "{} bytes", shown.len());
}

#[test]
fn a_stopped_terminal_with_a_session_of_others_does_not_stop_its_connection() {
    let home = Home::new();
    let server = Server::start(&home, &LISTEN);
    let way = Between::new(&server.addresses[1], 0);
    // Larger than what may be under way, and something to answer after it.
    let script = "read x; seq 1 500000; read x; echo you said $x; read x";
    let opened = server.run(&way.address, &["-t", "-d", "--name", "work", "--", "sh", "-c", script]);
    assert!(opened.status.success(), "{}", text(&opened.stderr));
    let mut seat = Seat::new(server.connect(&way.address, &["--attach", "work"]));
    eventually("it is attached", || seat.read_some(Duration::from_millis(20)));
    seat.send("\r");
    way.wait_until_quiet();
    seat.send("hello\r");
    seat.wait_text("you said hello");
}

#[test]
fn a_server_that_is_killed_is_missed() {
    let home = Home::new();
    let mut server = Server::start(&home, &LISTEN);
    let mut seat = Seat::new(server.connect(&server.addresses[1], &["--", "sh", "-c", "echo up; exec cat"]));
    seat.wait_text("up");
    signal(server.child.id(), rustix::process::Signal::KILL);
    let _ = server.child.wait();
    assert_eq!(seat.end().code(), Some(4));
    assert!(seat.screen().contains("the other side has ended the connection"), "{}", seat.screen());
    // A port without a server is given up at once.
    let out = server.run(&server.addresses[1], &["--", "true"]);
    assert_eq!(out.status.code(), Some(125), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("no server listens there"), "{}", text(&out.stderr));
}
