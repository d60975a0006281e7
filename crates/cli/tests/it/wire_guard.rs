//! Access over the network, and what clients without access, or with malformed input, can do to
//! others: nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_serve::wire;

use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually};
use crate::wire::{Server, running, text};
use crate::wire_crowd::Credulous;

/// A client that writes what it likes.
struct Raw(UnixStream);

impl Raw {
    fn new(server: &Server<'_>) -> Self {
        let path = server.addresses[0].strip_prefix("unix:").expect("a socket");
        let stream = UnixStream::connect(Path::new(path)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Self(stream)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("sent");
    }

    /// Everything up to the end, with which this side has no more to say either.
    fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buf = [0; 65536];
        loop {
            match self.0.read(&mut buf) {
                Ok(0) => return all,
                Ok(n) => all.extend_from_slice(&buf[..n]),
                // It was cut off for what it sent; everything up to there has come.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return all,
                Err(e) => panic!("it does not end: {e}"),
            }
        }
    }

    /// Reads until this is among what came.
    fn until(&mut self, what: &str) -> String {
        let mut all = Vec::new();
        while !text(&all).contains(what) {
            let mut buf = [0; 4096];
            let n = self.0.read(&mut buf).expect("it comes");
            assert!(n > 0, "{what} never came: {}", text(&all));
            all.extend_from_slice(&buf[..n]);
        }
        text(&all)
    }
}

fn refusal(bytes: &[u8]) -> Value {
    assert_eq!(bytes.first(), Some(&0), "a refusal: {}", text(bytes));
    serde_json::from_slice(&bytes[4..]).expect("JSON")
}

#[test]
fn what_makes_no_sense_is_refused_and_harms_no_client() {
    let home = Home::new();
    let server = Server::start(&home, &["--hello-time", "300ms", "--max-sessions", "2"]);
    let mut good = Raw::new(&server);
    good.send(&wire::framed(&json!({"cmd": ["cat"], "tty": null})));
    good.until("opened");

    let framed = |value: &Value| wire::framed(value);
    for (bytes, error) in [
        (vec![0xff; 8], "malformed_negotiation"),
        (vec![0, 0, 0, 2, b'[', b']'], "malformed_negotiation"),
        (framed(&json!({"carriage": "boat"})), "malformed_negotiation"),
        (framed(&json!({"cmd": 5})), "malformed_negotiation"),
        (framed(&json!({"cmd": ["cat"], "tty": {"cols": 70_000, "rows": 24}})), "malformed_negotiation"),
        // There is one session, which a number must not be taken for, nor a wish to watch that
        // cannot be read.
        (framed(&json!({"backend": "attach", "session": 5})), "malformed_negotiation"),
        (framed(&json!({"backend": "attach", "read_only": "yes"})), "malformed_negotiation"),
        (framed(&json!({"backend": "attach", "watch": 1})), "malformed_negotiation"),
        (framed(&json!({"backend": "ssh", "host": "127.0.0.1", "port": -4})), "malformed_negotiation"),
        (framed(&json!({"backend": "ssh", "host": 7})), "malformed_negotiation"),
        (framed(&json!({"backend": "docker", "image": ["a"]})), "malformed_negotiation"),
        (framed(&json!({"cmd": ["cat"], "name": "n".repeat(5000)})), "malformed_negotiation"),
        (framed(&json!({"backend": "moon"})), "unknown_backend"),
        (framed(&json!({"backend": "attach", "session": "none-such"})), "no_such_session"),
        (framed(&json!({"cmd": ["no-such-program"]})), "allocate_failed"),
        (framed(&json!({"cwd": "/no/such/folder", "cmd": ["true"]})), "allocate_failed"),
        // One that says nothing, and one that never ends what it says.
        (vec![], "malformed_negotiation"),
        (vec![0, 0, 1, 0, b'{'], "malformed_negotiation"),
    ] {
        let mut raw = Raw::new(&server);
        raw.send(&bytes);
        assert_eq!(refusal(&raw.rest())["error"], error, "{}", text(&bytes));
    }

    // A second session, and no third.
    let mut second = Raw::new(&server);
    second.send(&framed(&json!({"cmd": ["cat"], "tty": null})));
    second.until("opened");
    let mut third = Raw::new(&server);
    third.send(&framed(&json!({"cmd": ["cat"]})));
    assert_eq!(refusal(&third.rest())["error"], "too_many_sessions");

    // An unknown signal is refused and the session goes on; a chunk that does not exist ends it.
    second.send(&wire::control(&json!({"type": "signal", "name": "SIGNONE"})));
    second.send(&wire::control(&json!({"type": "from the future"})));
    assert!(second.until("no signal is called").contains("SIGNONE"));
    second.send(&[9, 0, 0, 0, 0]);
    let last = text(&second.rest());
    assert!(last.contains("chunk type 9"), "{last}");

    // The first one has noticed nothing.
    good.send(&wire::chunk_head(wire::ChunkKind::Stdin, 6));
    good.send(b"still\n");
    good.until("still");
    good.send(&wire::control(&json!({"type": "eof"})));
    assert!(text(&good.rest()).contains("\"code\":0"));
}

/// A client that leaves a program much to read stays until it was read.
#[test]
fn what_was_sent_before_leaving_is_read_to_its_end() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    // More than the pipe and the session hold, and less than waits on its way to them.
    let (input, go) = (vec![b'x'; 400 << 10], home.path("go"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; wc -c; sleep 300", go.display());
    let wanted = json!({"cmd": ["sh", "-c", script], "tty": null, "detached": true, "name": "much"});
    let mut raw = Raw::new(&server);
    raw.send(&wire::framed(&wanted));
    raw.until("opened");
    for piece in input.chunks(1 << 15) {
        raw.send(&wire::chunk_head(wire::ChunkKind::Stdin, piece.len()));
        raw.send(piece);
    }
    raw.0.shutdown(std::net::Shutdown::Write).expect("said");
    std::fs::write(&go, "").expect("written");
    let out = home.run(["wait", "much", "--text", &input.len().to_string(), "--timeout", "20s"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    drop(raw);
}

#[test]
fn a_token_lets_its_bearer_do_what_it_says_until_it_is_taken_back() {
    let home = Home::new();
    let mut listen = vec!["--listen", "tls://127.0.0.1:0"];
    if cfg!(feature = "web") {
        listen.extend(["--listen", "ws://127.0.0.1:0"]);
    }
    let server = Server::start(&home, &listen);
    let address = server.addresses[1].clone();
    let others = &server.addresses[1..];
    let token = |args: &[&str]| {
        let out = home.run([&["serve", "token", "add"], args].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout).trim().to_owned()
    };
    let ask_at = |address: &str, token: &str, args: &[&str]| {
        let mut command = server.connect(address, args);
        command.env("TAPDECK_TOKEN", token).stdin(Stdio::null());
        command.output().expect("it runs")
    };
    let ask = |token: &str, args: &[&str]| ask_at(&address, token, args);
    let watch = token(&["--name", "watch", "--scope", "observe"]);
    let open = token(&["--name", "open", "--scope", "tty:open"]);
    let old = token(&["--name", "old", "--expires", "1ms"]);

    for (who, token) in [("nobody", ""), ("a stranger", "0123"), ("a watcher", &watch), ("too late", &old)] {
        // Whether there is such a backend is not for them to know.
        for (args, at) in [&["--", "true"][..], &["--backend", "moon", "--", "true"]]
            .into_iter()
            .flat_map(|args| others.iter().map(move |at| (args, at)))
        {
            let out = ask_at(at, token, args);
            // Not 1, which a program may end with.
            assert_eq!(out.status.code(), Some(125), "{who} at {at}: {}", text(&out.stderr));
            assert!(text(&out.stderr).contains("(forbidden)"), "{who} at {at}: {}", text(&out.stderr));
            let alike = who != "nobody" || text(&out.stderr).contains("a token is needed");
            assert!(alike, "{who} at {at}: {}", text(&out.stderr));
        }
    }
    assert_eq!(ask(&open, &["--backend", "moon", "--", "true"]).status.code(), Some(2));
    assert!(ask(&open, &["--", "true"]).status.success());

    // Watching is not typing.
    assert!(server.run(&server.addresses[0], &["-t", "-d", "--name", "work", "--", "cat"]).status.success());
    assert_eq!(ask(&open, &["--attach", "work"]).status.code(), Some(1), "not its scope");
    let watcher = server
        .connect(&address, &["--attach", "work"])
        .env("TAPDECK_TOKEN", &watch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    eventually("the watcher is there", || {
        server.listed().iter().any(|s| s["clients"].as_array().is_some_and(|c| !c.is_empty()))
    });
    let listed = server.listed();
    assert_eq!(listed[0]["clients"][0]["role"], "observer", "{listed:?}");

    // What is taken back ends what it let in: the watcher is sent away, the program of the other
    // ends.
    let owners: Vec<_> = others
        .iter()
        .zip(["4341", "4342"])
        .map(|(at, seconds)| {
            let owner = server
                .connect(at, &["--", "sleep", seconds])
                .env("TAPDECK_TOKEN", &open)
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts");
            let program = format!("sleep {seconds}");
            eventually("its program runs", || running(&program, server.child.id()));
            (owner, program)
        })
        .collect();
    for name in ["watch", "open"] {
        assert!(home.run(["serve", "token", "rm", name]).status.success());
    }
    for (owner, program) in owners {
        let owner = owner.wait_with_output().expect("it ends");
        assert_eq!(owner.status.code(), Some(4));
        assert!(text(&owner.stderr).contains("the token is no longer good"), "{}", text(&owner.stderr));
        eventually("its program is gone", || !running(&program, server.child.id()));
    }
    let watcher = watcher.wait_with_output().expect("it ends");
    assert_eq!(watcher.status.code(), Some(4));
    let said = text(&watcher.stderr);
    assert!(said.contains("the token is no longer good") && !said.contains("tapdeck type"), "{said}");
    assert_eq!(ask(&open, &["--", "true"]).status.code(), Some(125));
}

/// A user who names a key relies on it.
#[test]
fn a_key_is_not_named_where_no_server_shows_one() {
    let home = Home::new();
    for address in ["unix:nowhere", "ws://127.0.0.1:1"] {
        for option in ["--fingerprint", "--ca"] {
            let out = home.run(["connect", address, option, "x", "--", "true"]);
            assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
            assert!(text(&out.stderr).contains(option), "{}", text(&out.stderr));
        }
    }
    // Nor is what only makes sense for a session that is joined, or only for a program that is
    // started.
    for wrong in [
        &["-r", "--", "true"][..],
        &["--takeover", "--", "true"],
        &["--detach-keys", "C-a", "-d", "--", "true"],
        &["--attach", "s", "--cwd", "/"],
    ] {
        let out = home.run([&["connect", "unix:nowhere"], wrong].concat());
        assert_eq!(out.status.code(), Some(2), "{wrong:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains("--attach"), "{wrong:?}: {}", text(&out.stderr));
    }
    let out = home.run(["connect", "tls://127.0.0.1:1", "--fingerprint", "zzz", "--", "true"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    for command in [&["run", "-d"][..], &["connect", "unix:nowhere", "-d"]] {
        let out = home.run([command, &["--name", &"n".repeat(5000), "--", "true"]].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        assert!(text(&out.stderr).contains("64 characters"), "{}", text(&out.stderr));
    }
    let out = home.run(["serve", "--listen", "nonsense"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(!cfg!(feature = "ssh") || text(&out.stderr).contains("ssh://"), "{}", text(&out.stderr));
}

#[test]
fn a_server_is_known_by_its_key() {
    let home = Home::new();
    let listen = ["--listen", "quic://127.0.0.1:0", "--listen", "tls://127.0.0.1:0"];
    let server = Server::start(&home, &listen);
    let [_, quic, tls] = &server.addresses[..] else { panic!("it listens at three addresses") };
    let first = server.run(quic, &["--", "true"]);
    assert!(first.status.success() && text(&first.stderr).contains("is new and"), "{}", text(&first.stderr));
    // The key belongs to the host: the other port and transport are known too.
    for address in [quic, tls] {
        let again = server.stranger(address, &["--", "true"]);
        assert!(again.status.success() && again.stderr.is_empty(), "{}", text(&again.stderr));
    }
    let wrong = server.run(quic, &["--fingerprint", &"0".repeat(64), "--", "true"]);
    assert_eq!(wrong.status.code(), Some(125));
    assert!(text(&wrong.stderr).contains("has the fingerprint sha256:"), "{}", text(&wrong.stderr));
    // Another server at that address, in a line of an older version.
    let known = home.path("state").join("tapdeck").join("known_servers");
    let lines = std::fs::read_to_string(&known).expect("remembered");
    let (name, key) = lines.trim().split_once(' ').expect("one line");
    assert_eq!(name, "127.0.0.1");
    std::fs::write(&known, format!("{name}:4433 sha256:{}\n", "1".repeat(64))).expect("written");
    for address in [quic, tls] {
        let changed = server.run(address, &["--", "true"]);
        assert_eq!(changed.status.code(), Some(125));
        assert!(text(&changed.stderr).contains("another key than before"), "{}", text(&changed.stderr));
    }
    // A user who knows the new key can add it.
    assert!(server.run(quic, &["--fingerprint", key, "--", "true"]).status.success());
    assert!(server.stranger(tls, &["--", "true"]).status.success());
}

/// `connect` trusted an unknown server without a word, and sent it the token.
#[test]
fn an_unknown_server_is_not_trusted_before_the_user_confirms_it() {
    let home = Home::new();
    let listen = ["tls", "quic", "wss", "wt"].map(|t| ["--listen".to_owned(), format!("{t}://127.0.0.1:0")]);
    let server = Server::start(&home, &listen.concat().iter().map(String::as_str).collect::<Vec<_>>());
    for address in &server.addresses[1..] {
        for how in [&["--", "true"][..], &["-d", "--", "true"], &["--attach", "none"]] {
            let refused = server.stranger(address, how);
            let said = text(&refused.stderr);
            assert!(!refused.status.success(), "{address} {how:?}");
            let hints = ["127.0.0.1 is not known yet", "sha256:", "--accept-new", "--fingerprint"];
            assert!(hints.iter().all(|hint| said.contains(hint)), "{address} {how:?}: {said}");
        }
    }
    let known = home.path("state").join("tapdeck").join("known_servers");
    assert!(!known.exists());
    let ask = |address: &str, how: &[&str]| {
        let mut command = home.tapdeck([&["connect", address], how].concat());
        command.env("TAPDECK_TOKEN", &server.token);
        let mut seat = Seat::new(command);
        seat.wait_text("(yes/no)?");
        assert!(seat.screen().contains("sha256:"), "{}", seat.screen());
        seat
    };
    for how in [&["--", "true"][..], &["-d", "--", "true"], &["--attach", "none"]] {
        let mut seat = ask(&server.addresses[1], how);
        seat.send("no\n");
        assert!(!seat.end().success(), "{}", seat.screen());
        assert!(seat.screen().contains("was not confirmed") && !known.exists(), "{}", seat.screen());
    }
    let mut seat = ask(&server.addresses[2], &["--", "sh", "-c", "echo in''side"]);
    seat.send("yes\n");
    assert!(seat.end().success(), "{}", seat.screen());
    assert!(seat.screen().contains("inside"), "{}", seat.screen());
    assert!(server.stranger(&server.addresses[1], &["--", "true"]).status.success());
}

/// A TLS server that only listens, with a key of its own.
struct Impostor {
    listener: std::net::TcpListener,
    config: Arc<rustls::ServerConfig>,
}

impl Impostor {
    fn new(alpn: &[u8]) -> Self {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let key = rustls::pki_types::PrivateKeyDer::try_from(pair.signing_key.serialize_der());
        let mut config = config.with_single_cert(vec![pair.cert.into()], key.expect("a key")).expect("fit");
        config.alpn_protocols = vec![alpn.to_vec()];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        Self { listener, config: Arc::new(config) }
    }

    /// What a client sends that connects with these options, and how the client ended.
    fn hears(&self, home: &Home, scheme: &str, options: &[&str], token: &str) -> (Vec<u8>, Output) {
        let address = format!("{scheme}://{}", self.listener.local_addr().expect("bound"));
        let mut command = home.command("setsid");
        command.args(["-w", TAPDECK, "connect", &address]).args(options).args(["--", "true"]);
        command.env("TAPDECK_TOKEN", token).stdin(Stdio::null());
        let client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (tcp, _) = self.listener.accept().expect("it comes");
        tcp.set_read_timeout(Some(PATIENCE)).expect("set");
        let tls = rustls::ServerConnection::new(Arc::clone(&self.config)).expect("a connection");
        let mut stream = rustls::StreamOwned::new(tls, tcp);
        let mut got = Vec::new();
        let mut byte = [0];
        // A whole negotiation is enough; a client that breaks off sends an alert.
        while !matches!(got.get(..4), Some(&[a, b, c, d]) if got.len() == 4 + u32::from_be_bytes([a, b, c, d]) as usize)
            && matches!(stream.read(&mut byte), Ok(1))
        {
            got.push(byte[0]);
        }
        drop(stream);
        (got, client.wait_with_output().expect("it ends"))
    }
}

/// What a server that is not trusted gets to read: nothing of the client.
#[test]
fn a_server_that_is_not_trusted_gets_no_token() {
    let home = Home::new();
    for (scheme, alpn) in [("tls", "alknet/tty"), ("tls", "alknet/tty-proof"), ("wss", "http/1.1")] {
        let (heard, out) =
            Impostor::new(alpn.as_bytes()).hears(&home, scheme, &[], "a-secret-that-stays-here");
        assert!(heard.is_empty(), "{scheme}: {}", text(&heard));
        assert_eq!(out.status.code(), Some(125), "{}", text(&out.stderr));
    }
}

/// A server in the middle, which the user trusted by mistake, got a token that it could use.
#[test]
fn a_server_in_the_middle_gets_nothing_that_it_can_use() {
    let home = Home::new();
    let server = Server::start(&home, &["--listen", "tls://127.0.0.1:0"]);
    let trusting = ["--accept-new"];
    let (heard, _) = Impostor::new(b"alknet/tty-proof").hears(&home, "tls", &trusting, &server.token);
    let heard_text = text(&heard);
    let secret = server.token.strip_prefix("tdk_").expect("a token with a key");
    assert!(heard_text.contains("\"proof\"") && !heard_text.contains(secret), "{heard_text}");
    // It passes on what it heard.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().expect("versions").dangerous();
    let config = config.with_custom_certificate_verifier(Arc::new(Credulous)).with_no_client_auth();
    let name = "localhost".try_into().expect("a name");
    let tls = rustls::ClientConnection::new(Arc::new(config), name).expect("a connection");
    let address = server.addresses[1].strip_prefix("tls://").expect("TLS");
    let tcp = std::net::TcpStream::connect(address).expect("it listens");
    tcp.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut stream = rustls::StreamOwned::new(tls, tcp);
    stream.write_all(&heard).expect("sent");
    let mut answer = Vec::new();
    // The refusal may end without a close.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(refusal(&answer)["error"], "forbidden");
    // One that pretends to be of an older version gets no token either. The host is known by now.
    std::fs::remove_file(home.path("state").join("tapdeck").join("known_servers")).expect("forgotten");
    let (heard, out) = Impostor::new(b"alknet/tty").hears(&home, "tls", &trusting, &server.token);
    assert!(heard.is_empty(), "{}", text(&heard));
    assert!(text(&out.stderr).contains("it was not sent"), "{}", text(&out.stderr));
}

/// Tokens of older versions have no key, and are shown as before.
#[test]
fn a_token_without_a_key_keeps_working() {
    let home = Home::new();
    let server = Server::start(&home, &["--listen", "tls://127.0.0.1:0", "--listen", "quic://127.0.0.1:0"]);
    let path = home.path("state").join("tapdeck").join("serve").join("tokens.json");
    let mut tokens: Value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
    let token = tokens["tokens"][0].as_object_mut().expect("a token");
    assert!(token.remove("ed25519").is_some());
    let digest = "e5f2464a3d57017f9d625ff4a7b9da98da298da554a22e9a30874801170502e9";
    token.insert("sha256".into(), digest.into());
    std::fs::write(&path, tokens.to_string()).expect("written");
    for address in &server.addresses[1..] {
        let old = || server.connect(address, &["--", "true"]);
        let run = |mut command: std::process::Command, token: &str| {
            command.env("TAPDECK_TOKEN", token).stdin(Stdio::null()).output().expect("it runs")
        };
        let out = run(old(), "an-older-token-without-a-key-0123456789abcdef");
        assert!(out.status.success(), "{}", text(&out.stderr));
        let out = run(old(), &server.token);
        assert!(text(&out.stderr).contains("the token is wrong"), "{}", text(&out.stderr));
    }
}

/// The files are named before a client is told by which key to know the server.
#[test]
fn a_certificate_that_does_not_go_with_its_key_is_refused() {
    let home = Home::new();
    let pair = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    std::fs::write(home.path("cert.pem"), pair().cert.pem()).expect("written");
    std::fs::write(home.path("key.pem"), pair().signing_key.serialize_pem()).expect("written");
    let listen = ["serve", "--listen", "tls://127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem"];
    let out = home.run(listen);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    assert!(out.stdout.is_empty() && said.contains("cert.pem") && said.contains("key.pem"), "{said}");
}

#[test]
fn an_address_for_others_needs_a_token_first() {
    let home = Home::new();
    let refused = || {
        let out = home.run(["serve", "--listen", "tls://0.0.0.0:0"]);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        assert!(
            text(&out.stderr).contains("there is no valid token: see tapdeck serve token add"),
            "{}",
            text(&out.stderr)
        );
    };
    refused();
    assert!(home.run(["serve", "token", "add", "--expires", "1ms"]).status.success());
    refused();
}

#[test]
fn two_hundred_at_once_and_a_reader_that_stops() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut stopped = Raw::new(&server);
    stopped.send(&wire::framed(&json!({"cmd": ["sh", "-c", "seq 1 2000000"], "tty": null})));
    let mut all: Vec<Raw> = (0..200).map(|_| Raw::new(&server)).collect();
    for raw in &mut all {
        raw.send(&wire::framed(&json!({"cmd": ["sh", "-c", "read x; echo got $x"], "tty": null})));
    }
    for raw in &mut all {
        raw.until("opened");
    }
    for (n, raw) in all.iter_mut().enumerate() {
        let line = format!("{n}\n");
        raw.send(&wire::chunk_head(wire::ChunkKind::Stdin, line.len()));
        raw.send(line.as_bytes());
    }
    for (n, raw) in all.iter_mut().enumerate() {
        let rest = text(&raw.rest());
        assert!(rest.contains(&format!("got {n}\n")) && rest.contains("\"code\":0"), "{n}: {rest}");
    }
    // The one that did not read has made its own program wait, and gets every byte now.
    assert!(running("seq 1 2000000", server.child.id()), "it waits");
    let came = stopped.rest();
    let (mut decoder, mut out) = (wire::Decoder::default(), Vec::new());
    decoder.buffer().extend_from_slice(&came);
    while let Some(piece) = decoder.next().expect("chunks") {
        if let wire::Piece::Bytes(_, bytes) = piece {
            out.extend_from_slice(&bytes);
        }
    }
    let expected: String = (1..=2_000_000).map(|n| format!("{n}\n")).collect();
    assert!(out == expected.as_bytes(), "{} bytes came", out.len());
}

/// Bytes that a process has written so far.
fn written(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let line = io.lines().find_map(|l| l.strip_prefix("wchar: "));
    line.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// What a process holds in memory, in MiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// A reader that rests stops its own program, whatever carries it: neither side fills its memory
/// meanwhile, nothing is lost, and others go on.
#[test]
fn a_reader_that_rests_holds_up_its_own_program_alone() {
    const LINES: u64 = 3_000_000;
    const BOUND: u64 = 20;
    let digits = |n: u64| u64::from(n.ilog10()) + 1;
    let sent: u64 = (1..=LINES).map(|n| digits(n) + 1).sum();
    let home = Home::new();
    let listen =
        ["--listen", "tls://127.0.0.1:0", "--listen", "quic://127.0.0.1:0", "--listen", "wt://127.0.0.1:0"];
    let server = Server::start(&home, &listen);
    for address in &server.addresses {
        let script = format!("echo $$ >pid; exec seq {LINES}");
        let mut reader = server
            .connect(
                address,
                &["--no-pty", "--cwd", home.path("").to_str().expect("text"), "--", "sh", "-c", &script],
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let before = resident(server.child.id());
        let mut program = 0;
        eventually("it runs", || {
            let pid = std::fs::read_to_string(home.path("pid")).unwrap_or_default();
            program = pid.trim().parse().unwrap_or(0);
            program != 0 && written(program) > 0
        });
        let mut last = 0;
        eventually("it waits", || {
            let before = std::mem::replace(&mut last, written(program));
            std::thread::park_timeout(std::time::Duration::from_millis(300));
            before == last
        });
        assert!(last < sent, "{address}: it has written everything");
        let held = (resident(server.child.id()).saturating_sub(before), resident(reader.id()));
        assert!(held.0 < BOUND && held.1 < 3 * BOUND, "{address}: {held:?} MiB");
        let other = server.run(address, &["--", "echo", "others go on"]);
        assert_eq!(text(&other.stdout), "others go on\n", "{address}");
        let mut out = reader.stdout.take().expect("piped");
        let got = std::io::copy(&mut out, &mut std::io::sink()).expect("read");
        assert_eq!(got, sent, "{address}");
        assert!(reader.wait().expect("it ends").success(), "{address}");
        std::fs::remove_file(home.path("pid")).expect("removed");
    }
}

/// Every look at an idle session was followed by another one 25 ms later, for ever, in each of a
/// thousand sessions.
#[test]
fn idle_sessions_cause_no_wake_ups() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut raw = Raw::new(&server);
    raw.send(&wire::framed(&json!({"cmd": ["cat"], "tty": {"cols": 80, "rows": 24}})));
    raw.until("opened");
    let woken = || -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).expect("threads");
        let status = threads.flatten().filter_map(|t| std::fs::read_to_string(t.path().join("status")).ok());
        let lines: Vec<String> =
            status.flat_map(|s| s.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let counts = lines.iter().filter_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
        counts.filter_map(|n| n.trim().parse::<u64>().ok()).sum()
    };
    eventually("a quarter of a second in which no thread wakes", || {
        let before = woken();
        std::thread::park_timeout(std::time::Duration::from_millis(250));
        woken() == before
    });
}
