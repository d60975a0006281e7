//! Crowds at a server: many sessions over one connection, many connections, and those who only get
//! in the way.
//!
//! `TAPDECK_CROWD` sets the number; `cargo xtask crowd` asks for a thousand.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::{Value, json};
use tapdeck_serve::wire::{self, ChunkKind, Decoder, Piece};

use crate::support::{Home, PATIENCE};
use crate::wire::{Server, text};

/// How many there are.
fn crowd() -> usize {
    std::env::var("TAPDECK_CROWD").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// Trusts every server: other tests check certificates.
#[derive(Debug)]
pub struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The client's side of TLS, which agrees on this protocol.
pub fn client_config(alpn: &[u8]) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.expect("versions").dangerous().with_custom_certificate_verifier(Arc::new(Credulous));
    let mut tls = tls.with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls
}

fn endpoint() -> quinn::Endpoint {
    endpoint_for(b"alknet/tty")
}

/// A QUIC client that speaks this protocol.
pub fn endpoint_for(alpn: &[u8]) -> quinn::Endpoint {
    let crypto = QuicClientConfig::try_from(client_config(alpn)).expect("for QUIC");
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a socket");
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    // With two hundred handshakes at once, a busy machine may need longer than a network would be
    // given.
    transport.max_idle_timeout(None);
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

pub fn port_of(address: &str) -> SocketAddr {
    address.split_once("://").expect("a scheme").1.parse().expect("an address")
}

async fn connect(endpoint: &quinn::Endpoint, to: SocketAddr) -> quinn::Connection {
    let connecting = endpoint.connect(to, "localhost").expect("a name");
    tokio::time::timeout(PATIENCE, connecting).await.expect("in time").expect("connected")
}

/// One session over one stream.
struct Session {
    writer: quinn::SendStream,
    reader: quinn::RecvStream,
    decoder: Decoder,
    output: Vec<u8>,
    controls: Vec<Value>,
}

impl Session {
    async fn open(connection: &quinn::Connection, token: &str, mut wanted: Value) -> Self {
        let (mut writer, reader) = connection.open_bi().await.expect("a stream");
        wanted["token"] = json!(token);
        writer.write_all(&wire::framed(&wanted)).await.expect("sent");
        let mut session =
            Self { writer, reader, decoder: Decoder::default(), output: Vec::new(), controls: Vec::new() };
        session.until(|s| !s.controls.is_empty()).await;
        assert_eq!(session.controls[0]["type"], "opened", "{:?}", session.controls);
        session
    }

    async fn type_line(&mut self, line: &str) {
        let mut chunk = wire::chunk_head(ChunkKind::Stdin, line.len()).to_vec();
        chunk.extend_from_slice(line.as_bytes());
        self.writer.write_all(&chunk).await.expect("sent");
    }

    /// Reads until something is so, or there is no more.
    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let read = tokio::time::timeout(PATIENCE, self.reader.read_chunk(1 << 16, true)).await;
            let Some(chunk) = read.expect("in time").expect("a stream") else { return };
            self.decoder.buffer().extend_from_slice(&chunk.bytes);
            while let Some(piece) = self.decoder.next().expect("chunks") {
                match piece {
                    Piece::Bytes(_, bytes) => self.output.extend_from_slice(&bytes),
                    Piece::Control(control) => {
                        self.controls.push(serde_json::to_value(control).expect("JSON"));
                    }
                }
            }
        }
    }
}

fn run<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// The processes right below another.
fn children(parent: u32) -> usize {
    let all = tapdeck_host::by_session();
    let its = all.values().flatten().filter(|(_, p)| p.parent == parent && !p.is_dead());
    its.count()
}

fn quic_server(home: &Home) -> Server<'_> {
    Server::start(home, &["--listen", "quic://127.0.0.1:0"])
}

#[test]
#[expect(clippy::print_stderr, reason = "how long it took is worth knowing and proves nothing")]
fn a_thousand_sessions_over_one_connection() {
    let home = Home::new();
    let server = quic_server(&home);
    let to = port_of(&server.addresses[1]);
    let since = run(async {
        let endpoint = endpoint();
        let connection = connect(&endpoint, to).await;
        // Each says its own and ends its own way, on a terminal or without.
        let mut all = Vec::new();
        for n in 0..crowd() {
            let script = format!("read x; echo \"got $x\"; exit {}", n % 200);
            let tty = if n % 2 == 0 { json!({"cols": 80, "rows": 24}) } else { Value::Null };
            let wanted = json!({"cmd": ["sh", "-c", script], "tty": tty});
            all.push(Session::open(&connection, &server.token, wanted).await);
        }
        assert_eq!(children(server.child.id()), crowd());
        for (n, session) in all.iter_mut().enumerate() {
            session.type_line(&format!("number {n}\n")).await;
        }
        for (n, session) in all.iter_mut().enumerate() {
            session.until(|_| false).await;
            let said = text(&session.output);
            assert!(said.contains(&format!("got number {n}")), "{n}: {said:?}");
            let last = session.controls.last().expect("how it ended");
            assert_eq!((&last["type"], &last["code"]), (&json!("exit"), &json!(n % 200)), "{n}");
        }
        // They are there again, and gone with their connection.
        let mut all = Vec::new();
        for _ in 0..crowd() {
            let wanted = json!({"cmd": ["cat"], "tty": {"cols": 80, "rows": 24}});
            all.push(Session::open(&connection, &server.token, wanted).await);
        }
        assert_eq!(children(server.child.id()), crowd());
        let since = Instant::now();
        connection.close(0u32.into(), b"");
        endpoint.wait_idle().await;
        since
    });
    crate::support::eventually("their programs are gone", || children(server.child.id()) == 0);
    eprintln!("{} programs were gone after {:?}", crowd(), since.elapsed());
    crate::support::eventually("nothing is listed", || server.listed().is_empty());
}

#[test]
fn two_hundred_connections_at_once() {
    let home = Home::new();
    let server = quic_server(&home);
    let to = port_of(&server.addresses[1]);
    run(async {
        let endpoint = endpoint();
        let visit = async |n: usize| {
            let connection = connect(&endpoint, to).await;
            let wanted = json!({"cmd": ["cat"], "tty": {"cols": 80, "rows": 24, "modes": {"ECHO": 0}}});
            let mut session = Session::open(&connection, &server.token, wanted).await;
            session.type_line(&format!("visitor {n} was here\n")).await;
            session.until(|s| text(&s.output).contains(&format!("visitor {n} was here"))).await;
            (connection, session)
        };
        let mut all = Vec::new();
        for n in 0..200.min(2 * crowd()) {
            all.push(visit(n).await);
        }
        for (_, session) in &mut all {
            session.type_line("\x04").await;
        }
        for (_, session) in &mut all {
            session.until(|_| false).await;
            assert_eq!(session.controls.last().expect("how it ended")["code"], 0);
        }
    });
}

/// First datagrams of handshakes that no client continues.
pub async fn half_open(count: usize) -> Vec<Vec<u8>> {
    let sink = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let at = sink.local_addr().expect("bound");
    let endpoint = endpoint();
    let mut datagrams = Vec::new();
    for _ in 0..count {
        let _connecting = endpoint.connect(at, "localhost").expect("a name");
        let mut buf = vec![0; 2048];
        let n = tokio::time::timeout(PATIENCE, sink.recv(&mut buf)).await.expect("in time").expect("sent");
        buf.truncate(n);
        datagrams.push(buf);
    }
    datagrams
}

/// Those who come and say nothing, or nothing that makes sense, at every address; others come and
/// go as if they were not there.
#[test]
fn silent_clients_keep_no_other_out() {
    let home = Home::new();
    let options =
        ["--listen", "quic://127.0.0.1:0", "--listen", "tls://127.0.0.1:0", "--max-connections", "8"];
    let server = Server::start(&home, &options);
    let (quic, tls) = (port_of(&server.addresses[1]), port_of(&server.addresses[2]));
    let unix = server.addresses[0].strip_prefix("unix:").expect("a socket").to_owned();
    run(async {
        let endpoint = endpoint();
        let connection = connect(&endpoint, quic).await;
        let cat = json!({"cmd": ["cat"], "tty": null});
        let mut good = Session::open(&connection, &server.token, cat.clone()).await;

        // Handshakes that are begun and left, and datagrams that are none.
        let noise = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for datagram in half_open(3 * crowd()).await {
            UdpSocket::bind("127.0.0.1:0").expect("a socket").send_to(&datagram, quic).expect("sent");
            for len in [1, 20, 200, 1200] {
                let mut garbage = datagram.clone();
                garbage.truncate(len);
                garbage.iter_mut().enumerate().for_each(|(i, b)| *b ^= u8::try_from(i % 251).unwrap_or(0));
                noise.send_to(&garbage, quic).expect("sent");
            }
        }
        // Connections that say nothing, begin to, or talk nonsense; more than there are seats.
        let mut silent = Vec::new();
        let mut rude = Vec::new();
        for n in 0..3 * crowd() {
            let mut stream = TcpStream::connect(tls).expect("it listens");
            let hello: &[u8] = [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"][n % 3];
            stream.write_all(hello).expect("sent");
            silent.push(stream);
            // The listener's queue is short, and being told to come again is no harm.
            let mut stream = UnixStream::connect(&unix).expect("it listens");
            stream.write_all([&b""[..], b"\0\0"][n % 2]).expect("sent");
            rude.push(stream);
        }
        let mut mute = Vec::new();
        for _ in 0..20 {
            mute.push(connect(&endpoint, quic).await);
        }

        good.type_line("still here\n").await;
        good.until(|s| text(&s.output).contains("still here")).await;
        let mut another = Session::open(&connect(&endpoint, quic).await, &server.token, cat).await;
        another.type_line("so am I\n").await;
        another.until(|s| text(&s.output).contains("so am I")).await;
        for address in &server.addresses {
            let out = server.run(address, &["--", "echo", "come in"]);
            assert_eq!(text(&out.stdout), "come in\n", "{address}: {}", text(&out.stderr));
        }
    });
}

/// A client that is let in and then sends nothing keeps its place only for a while.
#[test]
fn a_connection_that_asks_for_nothing_is_closed() {
    let home = Home::new();
    let server = Server::start(&home, &["--listen", "quic://127.0.0.1:0", "--hello-time", "300ms"]);
    let to = port_of(&server.addresses[1]);
    run(async {
        let endpoint = endpoint();
        let connection = connect(&endpoint, to).await;
        let closed = tokio::time::timeout(PATIENCE, connection.closed()).await.expect("in time");
        assert!(matches!(closed, quinn::ConnectionError::ApplicationClosed(_)), "{closed}");
        // One that has had a session may be silent for as long as it likes.
        let connection = connect(&endpoint, to).await;
        let wanted = json!({"cmd": ["true"], "tty": null});
        Session::open(&connection, &server.token, wanted.clone()).await.until(|_| false).await;
        let silent = tokio::time::timeout(Duration::from_millis(900), connection.closed()).await;
        assert!(silent.is_err(), "{silent:?}");
        Session::open(&connection, &server.token, wanted).await.until(|_| false).await;
    });
}
