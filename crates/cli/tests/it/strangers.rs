//! Strangers at the doors of a server: they say nothing, begin a handshake, send garbage, dribble
//! or guess tokens, and come back at once when they are sent away. A client with a credential comes
//! in all the same.
//!
//! `TAPDECK_STRANGERS` sets their number, and has each kind come alone; `cargo xtask strangers`
//! asks for a thousand and prints a table.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tapdeck_needs::has;
use tapdeck_serve::wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use crate::browser::http;
use crate::live::Detached;
use crate::ssh_door;
use crate::support::{Home, PATIENCE, eventually};
use crate::wire::{Server, text};
use crate::wire_crowd::{client_config, endpoint_for, half_open, port_of};

/// How many there are, and whether each kind comes alone.
fn strangers() -> (usize, bool) {
    let asked = std::env::var("TAPDECK_STRANGERS").ok().and_then(|n| n.parse().ok());
    (asked.unwrap_or(150), asked.is_some())
}

/// What a stranger does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Connects and says nothing.
    Silent,
    /// Begins a handshake or a request, and leaves it at that.
    Half,
    /// Sends what makes no sense.
    Garbage,
    /// Sends a byte now and then.
    Slow,
    /// Shows tokens that are wrong.
    Guess,
}

const MANNERS: [Manner; 5] = [Manner::Silent, Manner::Half, Manner::Garbage, Manner::Slow, Manner::Guess];

/// A door, by what is spoken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Ssh,
    Tls,
    Http,
    Bus,
    /// QUIC, with the protocol to agree on.
    Quic(&'static [u8]),
}

/// The beginning of a conversation over TCP.
fn beginning(speech: Speech, at: SocketAddr, whole: bool) -> Vec<u8> {
    let guess = r#"{"token":"0000000000000000000000000000000000000000000000000000000000000000"}"#;
    match speech {
        Speech::Ssh => b"SSH-2.0-stranger\r\n".to_vec(),
        Speech::Bus if whole => b"HELLO {\"role\":\"human\",\"token\":\"0000000000000000\"}\n".to_vec(),
        Speech::Bus => b"HELLO {\"role\":".to_vec(),
        Speech::Http => {
            let head = format!(
                "POST /login HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                guess.len()
            );
            // The body of half a request never comes to its end.
            let body = if whole { guess } else { "{" };
            format!("{head}{body}").into_bytes()
        }
        Speech::Tls | Speech::Quic(_) => {
            let name = "localhost".try_into().expect("a name");
            let mut tls =
                rustls::ClientConnection::new(Arc::new(client_config(b"alknet/tty")), name).expect("TLS");
            let mut hello = Vec::new();
            tls.write_tls(&mut hello).expect("a hello");
            hello
        }
    }
}

/// One visit of a stranger over TCP, until it is sent away.
async fn visit_tcp(speech: Speech, at: SocketAddr, manner: Manner) -> std::io::Result<()> {
    let mut stream = tokio::net::TcpStream::connect(at).await?;
    if (speech, manner) == (Speech::Tls, Manner::Guess) {
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client_config(b"alknet/tty")));
        let mut tls = connector.connect("localhost".try_into().expect("a name"), stream).await?;
        tls.write_all(&wire::framed(&json!({"cmd": ["true"], "token": "0".repeat(64)}))).await?;
        return tls.read_to_end(&mut Vec::new()).await.map(drop);
    }
    match manner {
        Manner::Silent => {}
        Manner::Garbage => stream.write_all(&[b'\xf5'; 300]).await?,
        Manner::Half => stream.write_all(&beginning(speech, at, false)).await?,
        Manner::Guess => stream.write_all(&beginning(speech, at, true)).await?,
        Manner::Slow => {
            let (mut reader, mut writer) = stream.split();
            let dribble = async {
                for byte in beginning(speech, at, true) {
                    writer.write_all(&[byte]).await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                std::future::pending().await
            };
            let mut ignored = Vec::new();
            return tokio::select! {
                ended = dribble => ended,
                ended = reader.read_to_end(&mut ignored) => ended.map(drop),
            };
        }
    }
    let mut buf = [0; 4096];
    while stream.read(&mut buf).await? > 0 {}
    Ok(())
}

/// One visit of a stranger over QUIC, until it is sent away.
async fn visit_quic(
    endpoint: &quinn::Endpoint,
    at: SocketAddr,
    manner: Manner,
) -> Result<(), quinn::ConnectionError> {
    let connection = endpoint.connect(at, "localhost").expect("a name").await?;
    if manner == Manner::Guess
        && let Ok((mut writer, mut reader)) = connection.open_bi().await
    {
        // It may be sent away meanwhile.
        let guess = wire::framed(&json!({"cmd": ["true"], "token": "0".repeat(64)}));
        let _ = writer.write_all(&guess).await;
        let _ = reader.read_to_end(1 << 16).await;
        return Ok(());
    }
    Err(connection.closed().await)
}

/// Strangers that come again whenever they are sent away; they leave when this is dropped.
struct Flood {
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
    visits: Arc<AtomicUsize>,
}

impl Flood {
    fn begin(speech: Speech, at: SocketAddr, manners: &[Manner], count: usize) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (manners, visits) = (manners.to_vec(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&visits);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut all = tokio::task::JoinSet::new();
                let quic = match speech {
                    Speech::Quic(alpn) => Some(endpoint_for(alpn)),
                    _ => None,
                };
                let datagrams = if quic.is_some() { half_open(50).await } else { Vec::new() };
                let noise = Arc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket"));
                for n in 0..count {
                    let manner = manners[n % manners.len()];
                    let (quic, noise, counted) = (quic.clone(), noise.clone(), counted.clone());
                    let datagram = datagrams.get(n % datagrams.len().max(1)).cloned();
                    all.spawn(async move {
                        loop {
                            counted.fetch_add(1, Ordering::Relaxed);
                            // Being sent away is what a stranger expects.
                            match (&quic, &datagram, manner) {
                                (Some(_), Some(datagram), Manner::Half | Manner::Garbage | Manner::Slow) => {
                                    let mut datagram = datagram.clone();
                                    if manner != Manner::Half {
                                        datagram.iter_mut().skip(1).step_by(7).for_each(|b| *b ^= 0x55);
                                    }
                                    let _ = noise.send_to(&datagram, at).await;
                                    tokio::time::sleep(Duration::from_millis(200)).await;
                                }
                                (Some(endpoint), _, _) => drop(visit_quic(endpoint, at, manner).await),
                                (None, _, _) => {
                                    if visit_tcp(speech, at, manner).await.is_err() {
                                        tokio::task::yield_now().await;
                                    }
                                }
                            }
                        }
                    });
                }
                let mut stopped = stopped;
                let _ = stopped.wait_for(|stop| *stop).await;
                all.shutdown().await;
            });
        });
        let flood = Self { stop, thread: Some(thread), visits };
        eventually("they are there", || flood.visits.load(Ordering::Relaxed) >= count);
        flood
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A way in, with the client that has a credential.
struct Way<'a> {
    name: &'static str,
    speech: Speech,
    at: SocketAddr,
    /// Comes in; returns what went wrong.
    enter: Box<dyn Fn() -> Result<(), String> + 'a>,
}

/// Has strangers come, and the client meanwhile. Returns how long that took, in order.
#[expect(clippy::print_stderr, reason = "the table")]
fn endure(way: &Way<'_>, manners: &[Manner], count: usize, times: usize) -> Vec<Duration> {
    let flood = Flood::begin(way.speech, way.at, manners, count);
    let mut took: Vec<Duration> = (0..times)
        .map(|_| {
            let begun = Instant::now();
            if let Err(why) = (way.enter)() {
                panic!("{} with {count} strangers ({manners:?}): {why}", way.name);
            }
            begun.elapsed()
        })
        .collect();
    took.sort();
    let (median, most) = (took[took.len() / 2], took[took.len() - 1]);
    let visits = flood.visits.load(Ordering::Relaxed);
    let manner = if let [one] = manners { format!("{one:?}") } else { "mixed".to_owned() };
    eprintln!(
        "| {} | {manner} | {count} | {visits} | {:.0} ms | {:.0} ms |",
        way.name,
        median.as_secs_f64() * 1e3,
        most.as_secs_f64() * 1e3
    );
    took
}

/// The descriptors that a process has open.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").count()
}

/// Runs a way with strangers of each kind, or with all kinds at once.
fn test(way: &Way<'_>, server: u32) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    let (count, alone) = strangers();
    let kinds: Vec<&[Manner]> = if alone { MANNERS.chunks(1).collect() } else { vec![&MANNERS] };
    let before = descriptors(server);
    for manners in kinds {
        // How long it takes is a figure for people; a busy machine is no failure.
        let took = endure(way, manners, count, if alone { 10 } else { 3 });
        assert!(took.iter().all(|took| *took < PATIENCE / 3), "{}: {took:?}", way.name);
        assert!(descriptors(server) < before + 700, "{}: {} descriptors", way.name, descriptors(server));
    }
    eventually("they have all left", || descriptors(server) < before + 16);
}

/// A client of the tty wire.
fn connects<'a>(server: &'a Server<'a>, address: &'a str) -> Box<dyn Fn() -> Result<(), String> + 'a> {
    Box::new(move || {
        let out = server.run(address, &["--", "true"]);
        if out.status.success() { Ok(()) } else { Err(text(&out.stderr)) }
    })
}

fn way<'a>(server: &'a Server<'a>, name: &'static str, speech: Speech) -> Way<'a> {
    let address = &server.addresses[1];
    Way { name, speech, at: port_of(address), enter: connects(server, address) }
}

#[test]
fn at_the_tls_door() {
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "tls://127.0.0.1:0"], quiet);
    test(&way(&server, "tls", Speech::Tls), server.child.id());
}

#[test]
fn at_the_quic_door() {
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "quic://127.0.0.1:0"], quiet);
    test(&way(&server, "quic", Speech::Quic(b"alknet/tty")), server.child.id());
}

#[test]
fn at_the_webtransport_door() {
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "wt://127.0.0.1:0"], quiet);
    test(&way(&server, "wt", Speech::Quic(b"h3")), server.child.id());
}

#[test]
fn at_the_websocket_and_the_page() {
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "ws://127.0.0.1:0"], quiet);
    test(&way(&server, "ws", Speech::Http), server.child.id());
    let at = port_of(&server.addresses[1]);
    let (host, bearer) = (format!("Host: {at}"), format!("Authorization: Bearer {}", server.token));
    let enter = || match http(at.port(), "GET", "/login", &[&host, &bearer], "") {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(answer.body),
        Err(e) => Err(e.to_string()),
    };
    let page = Way { name: "page", speech: Speech::Http, at, enter: Box::new(enter) };
    test(&page, server.child.id());
}

/// A hundred silent connections locked out a client with a key for 30 seconds.
#[test]
fn at_the_ssh_door() {
    if !has("ssh") || !has("ssh-keygen") {
        return;
    }
    let home = Home::new();
    let mut keygen = home.command("ssh-keygen");
    let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", "key"]).stdin(Stdio::null()).status();
    assert!(made.expect("ssh-keygen runs").success());
    std::fs::copy(home.path("key.pub"), home.path("keys")).expect("a list");
    let door = ssh_door::Door::open(&home);
    let at = SocketAddr::new([127, 0, 0, 1].into(), door.port.parse().expect("a port"));
    let enter = || {
        let out = door.ask(&home, "key", "x", &["ls"]);
        if out.status.success() { Ok(()) } else { Err(text(&out.stderr)) }
    };
    test(&Way { name: "ssh", speech: Speech::Ssh, at, enter: Box::new(enter) }, door.child.id());
}

#[test]
fn at_the_bus() {
    let home = Home::new();
    let token = "a-token-that-is-long-enough";
    let file = home.path("token");
    std::fs::write(&file, token).expect("written");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    let options = ["--bus", "tcp:127.0.0.1:0", "--token-file", file.to_str().expect("text")];
    let session = Detached::start(&home, &options, &["cat"]);
    let listing = session.listing();
    let host = listing["host_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    let at = listing["buses"][0].as_str().and_then(|bus| bus.strip_prefix("tcp:")?.parse().ok());
    let at: SocketAddr = at.expect("an address");
    let enter = || {
        let talk = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(at)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream
                .write_all(format!("HELLO {}\n", json!({"role": "observer", "token": token})).as_bytes())?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            Ok(line)
        };
        match talk() {
            Ok(line) if line.starts_with("OK") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    test(&Way { name: "bus", speech: Speech::Bus, at, enter: Box::new(enter) }, host);
}

/// Thousands of refusals are no news.
fn quiet(command: &mut std::process::Command) {
    command.stderr(Stdio::null());
}

/// An address of this machine that is not loopback, if it has one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: the system only says from where it would be.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|at| at.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// Tokens could be guessed without an end. A guesser shuts out its own address alone.
#[test]
fn a_guesser_is_locked_out_and_no_other_address_is() {
    let Some(ip) = own_address() else { return };
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "tls://0.0.0.0:0"], quiet);
    let port = port_of(&server.addresses[1]).port();
    let (theirs, ours) = (format!("tls://{ip}:{port}"), format!("tls://127.0.0.1:{port}"));
    let guess = || {
        let mut command = server.connect(&theirs, &["--", "true"]);
        let out =
            command.env("TAPDECK_TOKEN", "0".repeat(64)).stdin(Stdio::null()).output().expect("it runs");
        text(&out.stderr)
    };
    let mut said = Vec::new();
    eventually("it is locked out", || {
        said.push(guess());
        !said.last().is_some_and(|said| said.contains("forbidden"))
    });
    assert!((2..20).contains(&said.len()), "{said:?}");
    assert!(!server.run(&theirs, &["--", "true"]).status.success(), "not with the right one either");
    let out = server.run(&ours, &["--", "echo", "come in"]);
    assert_eq!(text(&out.stdout), "come in\n", "{}", text(&out.stderr));
}

/// The body of a request could take for ever, also with a credential.
#[test]
fn a_slow_body_is_cut_off() {
    let home = Home::new();
    let server = Server::start_with(&home, &["--listen", "ws://127.0.0.1:0", "--hello-time", "500ms"], quiet);
    let at = port_of(&server.addresses[1]);
    let bearer = format!("Authorization: Bearer {}\r\n", server.token);
    for credential in ["", &bearer] {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\n{credential}\
             Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // A reset is an end, too.
        let read = stream.read_to_end(&mut answer);
        let timed_out = read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!timed_out, "it waits for the rest: {}", text(&answer));
        assert!(credential.is_empty() || text(&answer).contains(" 408 "), "{}", text(&answer));
    }
}

/// A page went on for ten seconds with a token that was taken back.
#[test]
fn what_is_open_on_the_page_ends_with_its_token() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("state/tapdeck/recordings")).expect("made");
    let made = home.run(["rec", "-q", "state/tapdeck/recordings/one.ahr", "--", "echo", "hello"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let server = Server::start_with(&home, &["--listen", "ws://127.0.0.1:0"], quiet);
    assert!(server.run(&server.addresses[0], &["-t", "-d", "--name", "work", "--", "cat"]).status.success());
    let id = server.listed()[0]["id"].as_str().expect("an id").to_owned();
    let added = home.run(["serve", "token", "add", "--name", "guest", "--scope", "observe"]);
    let guest = text(&added.stdout).trim().to_owned();
    let at = port_of(&server.addresses[1]);
    let of_session =
        ["/ws/session/ID", "/ws/alis/ID", "/api/v1/sessions/ID/events"].map(|p| p.replace("ID", &id));
    let others = ["/ws/list", "/ws/play/one.ahr", "/api/v1/events"].map(str::to_owned);
    let sockets: Vec<TcpStream> = of_session
        .iter()
        .chain(&others)
        .map(|path| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {guest}\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).expect("sent");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("an answer");
                head.push(byte[0]);
            }
            let begun = if path.starts_with("/ws/") { " 101 " } else { " 200 " };
            assert!(text(&head).contains(begun), "{path}: {}", text(&head));
            stream
        })
        .collect();
    let begun = Instant::now();
    assert!(home.run(["serve", "token", "rm", "guest"]).status.success());
    for mut stream in sockets {
        let (mut all, mut buf) = (Vec::new(), [0; 4096]);
        while !text(&all).contains("no longer good") {
            // Before, the next look was up to ten seconds away.
            let n = stream.read(&mut buf).unwrap_or_else(|e| panic!("{e}: {:?}", text(&all)));
            assert!(n > 0, "{:?}", text(&all));
            all.extend_from_slice(&buf[..n]);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// A server ran with a list of tokens that it could not read, and let no client in.
#[test]
fn a_broken_list_of_tokens_is_an_error_at_the_start() {
    let home = Home::new();
    assert!(home.run(["serve", "token", "add"]).status.success());
    let file = home.path("state/tapdeck/serve/tokens.json");
    for broken in ["", "{", "[]", "{\"version\": 9, \"tokens\": []}", "{\"version\": 1, \"tokens\": [{}]}"] {
        std::fs::write(&file, broken).expect("written");
        let out = home.run(["serve", "--listen", "tls://127.0.0.1:0"]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{broken:?}: {said}");
        assert!(said.contains("tokens.json") && said.contains("remove"), "{broken:?}: {said}");
    }
}
