//! One table says who may do what; every request is walked with every credential at every door.
//!
//! The table is also shown in `docs/protocols.md`, which must be the same. `UPDATE_DOCS=1` writes
//! it.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::{Authority, Event, LogLimits, Need, Right, Role, WallTime, WinSize};
use tapdeck_host::backend::{CommandSpec, LocalPty, TerminalSetup};
use tapdeck_host::{Clock, Config, Driver, Handle, InheritedSignals, Session, SharedLog};
use tapdeck_serve::door::Door;
use tapdeck_serve::live::{Grants, Live, LiveOptions};
use tapdeck_serve::wire::{self, ChunkKind};

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns what each verb of the bus needs, with a payload to try it. The greeting needs nothing: it
/// makes the authority.
fn bus() -> Vec<(&'static str, &'static str, Need)> {
    let verbs = tapdeck_proto::bus::VERBS.iter().filter(|verb| verb.verb != "HELLO");
    let row = |verb: &tapdeck_proto::bus::Verb| {
        let need = Need::ALL.into_iter().find(|need| need.name() == verb.needs);
        (verb.verb, verb.example, need.unwrap_or_else(|| panic!("{} needs {:?}?", verb.verb, verb.needs)))
    };
    verbs.map(row).collect()
}

/// What each request of the attach wire needs. A resize without the stick is ignored without a
/// reply.
const ATTACH: [(&str, Need); 5] = [
    ("standard input", Need::Drive),
    ("take", Need::Drive),
    ("release", Need::Drive),
    ("signal", Need::Hold),
    ("kill", Need::Command),
];

/// What each request to a server needs.
const SERVER: [(&str, Need); 2] = [("open a session", Need::Open), ("attach to a session", Need::Watch)];

/// The keys of the ssh door.
const SSH_KEY: &str = "key";
const SSH_READ_ONLY: &str = "key with `restrict`, `no-pty` or `TAPDECK=read-only`";

/// A credential at a door, and the authority that the door makes from it.
struct Credential {
    door: &'static str,
    shown: &'static str,
    authority: Authority,
}

fn credentials() -> Vec<Credential> {
    let (person, program) = (Authority::of(Role::Human), Authority::of(Role::Bot));
    let observer = Authority::of(Role::Observer);
    let opener = Authority::none().and(Right::Open);
    [
        ("session socket", "none", program),
        ("session socket", "human token", person),
        ("`--bus` with a token file", "`TOKEN` or `human TOKEN`", person),
        ("`--bus` with a token file", "`bot TOKEN`", program),
        ("`--bus` with a token file", "`observer TOKEN`", observer),
        ("`serve`, Unix socket", "the user's own process", Authority::owner()),
        ("`serve`, network and page", "`tty:open`", opener),
        ("`serve`, network and page", "`tty:attach`", person),
        ("`serve`, network and page", "`observe`", observer),
        ("`web`", "link", Authority::owner()),
        ("`web --read-only`", "link", observer),
        ("ssh door", SSH_KEY, person),
        ("ssh door", SSH_READ_ONLY, observer),
    ]
    .map(|(door, shown, authority)| Credential { door, shown, authority })
    .into()
}

fn markdown() -> String {
    let mut text = String::from("| door | credential | counts as | watch | drive | open | administer |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for Credential { door, shown, authority } in credentials() {
        let role = match authority.role() {
            _ if !authority.grants(Right::Watch) => "-",
            Role::Human => "person",
            Role::Bot => "program",
            Role::Observer => "observer",
        };
        let rights = Right::ALL.map(|right| if authority.grants(right) { "yes" } else { "-" });
        text.push_str(&format!("| {door} | {shown} | {role} | {} |\n", rights.join(" | ")));
    }
    text.push_str("\n| request | needs |\n| --- | --- |\n");
    let bus = bus().into_iter().map(|(verb, _, need)| (format!("bus: {verb}"), need));
    let attach = ATTACH.iter().map(|(what, need)| (format!("attach wire: {what}"), *need));
    let server = SERVER.iter().map(|(what, need)| (format!("server: {what}"), *need));
    for (request, need) in bus.chain(attach).chain(server) {
        text.push_str(&format!("| {request} | {} |\n", need.name()));
    }
    text
}

#[test]
fn the_documentation_shows_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols.md");
    let text = std::fs::read_to_string(&path).expect("the documentation");
    let (begin, end) = ("<!-- authority: begin -->\n", "<!-- authority: end -->");
    let (front, rest) = text.split_once(begin).expect("the begin of the table");
    let (shown, behind) = rest.split_once(end).expect("the end of the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{front}{begin}{}{end}{behind}", markdown())).expect("written");
    } else {
        assert_eq!(shown, markdown(), "run this test with UPDATE_DOCS=1");
    }
}

/// A folder that only this user can enter, as doors and token lists ask for.
fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("private");
    folder
}

/// The tokens of the bus's file.
const BARE: &str = "bare-bare-bare-bare";
const HUMAN: &str = "human-human-human";
const BOT: &str = "bot-bot-bot-bot-bot";
const OBSERVER: &str = "observer-observer";

/// A session with its own socket and a door with a token file.
struct Served {
    _live: Live,
    handle: Handle,
    folder: tempfile::TempDir,
}

impl Served {
    fn start() -> Self {
        let folder = private_folder();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{BARE}\nhuman {HUMAN}\nbot {BOT}\nobserver {OBSERVER}\n"))
            .expect("written");
        std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o600)).expect("a mode");
        let size = WinSize::cells(80, 24);
        let setup = TerminalSetup::default().size(size);
        let program = LocalPty::spawn(&CommandSpec::new(["cat"]), InheritedSignals::of_login(), &setup);
        let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
        log.append(Event::Resize(size), clock.now());
        let config = Config::default().size(size);
        let driver = Driver::new(program.expect("cat"), clock, config, log.clone()).expect("a driver");
        let (handle, glass) = (driver.handle(), driver.glass());
        std::thread::spawn(move || driver.run());
        let door = |name: &str| Door::unix(&folder.path().join(name)).expect("a door");
        let doors = vec![
            (door("own"), Grants::own("secret")),
            (door("bus"), Grants::from_file(&tokens).expect("tokens")),
        ];
        let session =
            Session { handle: handle.clone(), log, glass, clock, size, has_terminal: true, pid: None };
        let live = Live::start(session, LiveOptions::default().doors(doors)).expect("served");
        Self { _live: live, handle, folder }
    }

    fn connect(&self, door: &str) -> UnixStream {
        let stream = UnixStream::connect(self.folder.path().join(door)).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    /// A person who holds the stick between the tries.
    fn keeper(&self) -> Client {
        Client::new(self.connect("own"), "human", Some("secret"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.cancel();
    }
}

/// What a client shows at a door of the session, the role that it asks for, and what it gets.
fn session_cases() -> Vec<(&'static str, Option<&'static str>, &'static str, Authority)> {
    let (person, program) = (Authority::of(Role::Human), Authority::of(Role::Bot));
    let observer = Authority::of(Role::Observer);
    vec![
        ("own", None, "human", program),
        ("own", None, "observer", observer),
        ("own", Some("secret"), "human", person),
        ("own", Some("secret"), "bot", program),
        ("own", Some("secret"), "observer", observer),
        ("bus", Some(BARE), "human", person),
        ("bus", Some(HUMAN), "human", person),
        ("bus", Some(HUMAN), "observer", observer),
        ("bus", Some(BOT), "human", program),
        ("bus", Some(OBSERVER), "human", observer),
    ]
}

/// A client of the bus.
struct Client(BufReader<UnixStream>);

impl Client {
    fn new(stream: UnixStream, role: &str, token: Option<&str>) -> Self {
        let mut client = Self(BufReader::new(stream));
        client.send(&format!("HELLO#hello {}", json!({"role": role, "token": token, "watch": true})));
        assert!(client.reply("hello").starts_with("OK"), "{role} {token:?}");
        client
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("sent");
    }

    /// The reply to the request of this id.
    fn reply(&mut self, id: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("in time") > 0, "the session ended the connection");
            let verb = line.split(' ').next().unwrap_or_default();
            if verb.split_once('#').is_some_and(|(_, of)| of == id) {
                return line;
            }
        }
    }

    fn ask(&mut self, verb: &str) -> String {
        self.send(&format!("{verb}#ask"));
        self.reply("ask")
    }

    /// Whether a request is refused for want of a right. Some are answered late: what is refused is
    /// refused before the next request is.
    fn is_denied(&mut self, verb: &str, payload: &str) -> bool {
        self.send(&format!("{verb}#try {payload}"));
        self.send("NOSUCHVERB#next");
        let mut denied = false;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("in time") > 0, "the session ended the connection");
            if line.starts_with("DENIED#next") {
                return denied;
            }
            let Some(payload) = line.strip_prefix("DENIED#try ") else { continue };
            let reply: Value = serde_json::from_str(payload).expect("JSON");
            let error = reply["error"].as_str().unwrap_or_default();
            denied = error == "an observer cannot drive"
                || error.starts_with("only a person")
                || (verb == "RELEASE" && error.ends_with(" drives"));
        }
    }
}

#[test]
fn the_bus_keeps_to_the_table() {
    let served = Served::start();
    let mut keeper = served.keeper();
    for (door, token, asked, authority) in session_cases() {
        for (verb, payload, need) in bus() {
            for holds in [false, true] {
                if holds && !authority.grants(Right::Drive) {
                    continue;
                }
                assert!(keeper.ask("TAKE").starts_with("OK"));
                let mut client = Client::new(served.connect(door), asked, token);
                if holds {
                    assert!(keeper.ask("RELEASE").starts_with("OK"));
                    assert!(client.ask("TAKE").starts_with("OK"));
                }
                let expected = authority.check(need, holds, WallTime::ZERO).is_err();
                let case = format!("{verb} at {door} with {token:?} as {asked}, holds the stick: {holds}");
                assert_eq!(client.is_denied(verb, payload), expected, "{case}");
            }
        }
    }
}

/// The next control message of an attached client.
fn control(stream: &mut UnixStream, inbox: &mut Vec<u8>) -> Value {
    loop {
        while let Some(chunk) = wire::take_chunk(inbox, wire::MAX_CHUNK).expect("a chunk") {
            if chunk.kind == ChunkKind::Control {
                return serde_json::from_slice(&chunk.payload).expect("JSON");
            }
        }
        let mut buf = [0; 4096];
        let n = stream.read(&mut buf).expect("in time");
        assert!(n > 0, "the session ended the connection");
        inbox.extend_from_slice(&buf[..n]);
    }
}

/// A request to be attached: the door, the credential, and whether only to watch.
struct Joins {
    door: &'static str,
    token: Option<&'static str>,
    read_only: bool,
}

impl Served {
    /// Tries all requests of the attach wire, with the stick and without, and compares each outcome
    /// with the authority.
    fn walk_attached(&self, keeper: &mut Client, joins: &Joins, authority: &Authority) {
        let Joins { door, token, read_only } = joins;
        for (what, need) in ATTACH {
            for holds in [false, true] {
                if holds && !authority.grants(Right::Drive) {
                    continue;
                }
                // A session that is ended cannot be used again.
                let mut own = (what == "kill").then(|| {
                    let served = Self::start();
                    let keeper = served.keeper();
                    (served, keeper)
                });
                let (served, keeper) = match &mut own {
                    Some((served, keeper)) => (&*served, keeper),
                    None => (self, &mut *keeper),
                };
                assert!(keeper.ask("TAKE").starts_with("OK"));
                if holds {
                    assert!(keeper.ask("RELEASE").starts_with("OK"));
                }
                let request =
                    json!({"backend": "attach", "token": token, "read_only": read_only, "watch": !holds});
                let (mut stream, mut inbox) = (served.connect(door), Vec::new());
                stream.write_all(&wire::framed(&request)).expect("sent");
                while control(&mut stream, &mut inbox)["type"] != "live" {}
                let bytes = match what {
                    "standard input" => [&wire::chunk_head(ChunkKind::Stdin, 1)[..], b"x"].concat(),
                    "signal" => wire::control(&json!({"type": "signal", "name": "CONT"})),
                    other => wire::control(&json!({"type": other})),
                };
                stream.write_all(&bytes).expect("sent");
                // Always answered, so that it is known when an answer to the first would have come.
                let next = json!({"type": "signal", "name": "NOPE"});
                stream.write_all(&wire::control(&next)).expect("sent");
                let mut errors = Vec::new();
                let mut ended = false;
                while errors.iter().filter(|e| *e == "read-only").count() < 2
                    && !errors.iter().any(|e: &String| e.contains("NOPE"))
                    && !ended
                {
                    let told = control(&mut stream, &mut inbox);
                    ended = told["type"] == "exit";
                    let error = told.get("message").or(told.get("error")).and_then(Value::as_str);
                    errors.extend(error.map(str::to_owned));
                }
                let denied = |e: &String| e == "read-only" || e.starts_with("only ");
                let denied = errors.iter().any(denied);
                let expected = authority.check(need, holds, WallTime::ZERO).is_err();
                assert_eq!(
                    denied, expected,
                    "{what} at {door} with {token:?}, read-only: {read_only}, holds the stick: {holds}: {errors:?}"
                );
            }
        }
    }
}

#[test]
fn the_attach_wire_keeps_to_the_table() {
    let served = Served::start();
    let mut keeper = served.keeper();
    for (door, token, asked, authority) in session_cases().into_iter().filter(|case| case.2 != "bot") {
        let joins = Joins { door, token, read_only: asked == "observer" };
        served.walk_attached(&mut keeper, &joins, &authority);
    }
}

/// Every combination of scopes, with the secret of a token that has them.
#[cfg(feature = "net")]
fn tokens(path: std::path::PathBuf) -> (tapdeck_serve::tokens::Tokens, Vec<(String, Authority)>) {
    use tapdeck_serve::tokens::{Scope, Tokens};
    let tokens = Tokens::at(path);
    let sets: [&[Scope]; 6] = [
        &[Scope::Open],
        &[Scope::Attach],
        &[Scope::Observe],
        &[Scope::Open, Scope::Attach],
        &[Scope::Open, Scope::Observe],
        &[],
    ];
    let made = sets.map(|scopes| {
        let has = |scope| scopes.contains(&scope);
        let mut authority = match (has(Scope::Attach), has(Scope::Observe)) {
            (true, _) => Authority::of(Role::Human),
            (_, true) => Authority::of(Role::Observer),
            _ => Authority::none(),
        };
        if has(Scope::Open) {
            authority = authority.and(Right::Open);
        }
        let (_, secret) = tokens.add(None, scopes.to_vec(), WallTime::ZERO, None).expect("a token");
        (secret, authority)
    });
    (tokens, made.into())
}

/// A server that has no sessions and starts none.
#[cfg(feature = "net")]
fn server(tokens: tapdeck_serve::tokens::Tokens) -> std::sync::Arc<tapdeck_serve::net::Server> {
    use tapdeck_host::UserSide;
    use tapdeck_host::registry::Listing;
    use tapdeck_serve::net::{Client, Limits, Refusal, RefusalCode, Server, SessionRunner};
    use tapdeck_serve::wire::Negotiation;

    struct Nothing;
    impl SessionRunner for Nothing {
        fn run(&self, _: &Negotiation, _: UserSide, client: &mut Client) {
            client.over(Err(Refusal::new(RefusalCode::AllocateFailed, "nothing starts here")));
        }

        fn close(&self) {}

        fn find(&self, _: Option<&str>) -> Result<Listing, Refusal> {
            Err(Refusal::new(RefusalCode::NoSuchSession, "there is none"))
        }
    }
    Server::new(Nothing, Limits::default(), tokens)
}

#[cfg(feature = "net")]
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[cfg(feature = "net")]
#[test]
fn a_server_keeps_to_the_table() {
    use tapdeck_serve::net::{Peer, serve_stream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = private_folder();
    let (tokens, made) = tokens(folder.path().join("tokens.json"));
    let server = server(tokens);
    let strangers = made.into_iter().map(|(secret, authority)| (Peer::Stranger, Some(secret), authority));
    let owner = (Peer::Owner, None, Authority::owner());
    let nobody = (Peer::Stranger, None, Authority::none());
    for (peer, token, authority) in strangers.chain([owner, nobody]) {
        for (what, need) in SERVER {
            let backend = if need == Need::Open { "local" } else { "attach" };
            let request = json!({"backend": backend, "cmd": ["true"], "tty": null, "token": token});
            let answer = runtime().block_on(async {
                let (mut client, theirs) = tokio::io::duplex(1 << 16);
                let (reader, writer) = tokio::io::split(theirs);
                let served = tokio::spawn(serve_stream(server.clone(), reader, writer, peer));
                client.write_all(&wire::framed(&request)).await.expect("sent");
                let mut answer = Vec::new();
                client.shutdown().await.expect("no more");
                client.read_to_end(&mut answer).await.expect("an answer");
                served.await.expect("no panic");
                String::from_utf8_lossy(&answer).into_owned()
            });
            let expected = authority.check(need, false, WallTime::ZERO).is_err();
            assert_eq!(answer.contains("\"forbidden\""), expected, "{what}: {authority:?}: {answer}");
        }
    }
}

/// A client that the library's own check admitted leaves when its authority expires.
#[cfg(feature = "net")]
#[test]
fn an_authority_that_expires_ends_the_attachment() {
    use tapdeck_host::UserSide;
    use tapdeck_host::registry::Listing;
    use tapdeck_serve::net::{
        Client, Limits, Peer, Refusal, RefusalCode, Server, SessionRunner, serve_stream,
    };
    use tapdeck_serve::tokens::Tokens;
    use tapdeck_serve::wire::Negotiation;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct OneSession(std::path::PathBuf);
    impl SessionRunner for OneSession {
        fn run(&self, _: &Negotiation, _: UserSide, client: &mut Client) {
            client.over(Err(Refusal::new(RefusalCode::AllocateFailed, "nothing starts here")));
        }

        fn close(&self) {}

        fn find(&self, _: Option<&str>) -> Result<Listing, Refusal> {
            Ok(Listing {
                id: "1-1".into(),
                name: None,
                pid: std::process::id(),
                socket: self.0.clone(),
                buses: Vec::new(),
                command: Vec::new(),
                cwd: "/".into(),
                started: WallTime::ZERO,
                detached: true,
                recording: None,
                human_token: "human".into(),
            })
        }
    }

    let folder = private_folder();
    let socket = folder.path().join("session");
    let session = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let lasts = Duration::from_millis(300);
    let check = move |_: &str| {
        let until = Clock::start().wall_start() + lasts;
        Some(Authority::of(Role::Human).until(Some(until)))
    };
    let tokens = Tokens::at(folder.path().join("tokens.json"));
    let server =
        Server::with_authenticator(OneSession(socket), Limits::default(), tokens, Some(Box::new(check)));
    let answer = runtime().block_on(async move {
        let (mut client, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(serve_stream(server, reader, writer, Peer::Stranger));
        let request = json!({"backend": "attach", "token": "any"});
        client.write_all(&wire::framed(&request)).await.expect("sent");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut answer)).await;
        read.expect("the client is sent away").expect("an answer");
        answer
    });
    assert!(String::from_utf8_lossy(&answer).contains("no longer good"), "{answer:?}");
    let (mut stream, _) = session.accept().expect("the session was asked");
    let mut asked = Vec::new();
    stream.read_to_end(&mut asked).expect("the request");
    assert!(String::from_utf8_lossy(&asked).contains("\"token\":\"human\""), "{asked:?}");
}

#[cfg(all(feature = "net", feature = "web"))]
#[test]
fn the_page_keeps_to_the_table() {
    use tapdeck_serve::web::{Site, SiteOptions, StartError, serve_stream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = private_folder();
    let (tokens, mut made) = tokens(folder.path().join("tokens.json"));
    made.push(("wrong".into(), Authority::none()));
    let site = Site::new(
        SiteOptions::new(move |secret: &str| Some(tokens.find(secret, WallTime::ZERO)?.authority()))
            .hosts(vec!["localhost:1".into()])
            .start(|_| Err(StartError::Failed("nothing starts here".into()))),
    );
    let post = |method: &str, path: &str, token: &str, body: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let site = site.clone();
        let answer = runtime().block_on(async move {
            let (mut client, theirs) = tokio::io::duplex(1 << 16);
            let served = tokio::spawn(async move { serve_stream(&site, theirs).await });
            client.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.expect("an answer");
            served.await.expect("no panic");
            String::from_utf8_lossy(&answer).into_owned()
        });
        let status = answer.split(' ').nth(1).expect("a status").to_owned();
        (status, answer)
    };
    let ask = |method: &str, path: &str, token: &str| post(method, path, token, "{}");
    // A login of another form is refused like a wrong token.
    for body in ["{}", "{\"token\":5}", "{\"token\":null}", "[]", "5", "null", "{\"token\":\"wrong\"}"] {
        assert_eq!(post("POST", "/login", "wrong", body).0, "403", "{body}");
    }
    // A good token counts only in its field.
    let (good, _) = &made[1];
    assert_eq!(post("POST", "/login", "wrong", &json!({"token": good}).to_string()).0, "200");
    for body in
        [json!([good]), json!([[good]]), json!(good), json!({"Token": good}), json!([{"token": good}])]
    {
        assert_eq!(post("POST", "/login", "wrong", &body.to_string()).0, "403", "{body}");
    }
    for body in ["[]", "[\"true\"]", "5", "\"true\""] {
        let (owner, _) = &made[3];
        assert_eq!(post("POST", "/sessions", owner, body).0, "400", "{body}");
    }
    for (token, authority) in made {
        let may = |need| authority.check(need, false, WallTime::ZERO).is_ok();
        let watch = ask("GET", "/ws/list", &token).0;
        assert_eq!(watch, if may(Need::Watch) { "204" } else { "401" }, "{authority:?}");
        // What the page starts it also drives.
        let open = match (may(Need::Watch), may(Need::Open) && may(Need::Drive)) {
            (false, _) => "401",
            (true, false) => "403",
            (true, true) => "422",
        };
        assert_eq!(ask("POST", "/sessions", &token).0, open, "{authority:?}");
        let scope = match (open, may(Need::Drive)) {
            ("422", _) => "\"open\"",
            (_, true) => "\"attach\"",
            _ => "\"observe\"",
        };
        let (status, login) = ask("GET", "/login", &token);
        assert!(status == "401" || login.contains(scope), "{authority:?}: {login}");
    }
}

/// A client of the ssh door, which takes any host key.
#[cfg(feature = "ssh")]
struct AnyHost;

#[cfg(feature = "ssh")]
impl russh::client::Handler for AnyHost {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &russh::keys::PublicKey) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

/// Logs in at the ssh door with a key whose line in the list begins with these options, and asks
/// for a session. Returns what the door grants; `None` when the key is rejected.
#[cfg(feature = "ssh")]
async fn granted_by_ssh(options: &str) -> Option<Authority> {
    use russh::keys::{Algorithm, PrivateKey, PrivateKeyWithHashAlg, key::safe_rng};
    use std::sync::{Arc, Mutex};
    use tapdeck_serve::ssh_door::{Denied, Request, SshDoor, host_key, listen};

    let folder = private_folder();
    let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).expect("a key");
    let public = key.public_key().to_openssh().expect("a line");
    let list = folder.path().join("authorized_keys");
    std::fs::write(&list, format!("{options} {public}\n")).expect("written");
    let asked: Arc<Mutex<Option<Request>>> = Arc::default();
    let asks = asked.clone();
    let door = SshDoor::new(
        list,
        host_key(&folder.path().join("host_key")).expect("a key"),
        InheritedSignals::of_login(),
        move |request: &Request| {
            *asks.lock().expect("no panic") = Some(request.clone());
            Err(Denied::new("nothing is shown here", 7))
        },
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listen(door, listener).expect("it listens");
    let mut client = russh::client::connect(Arc::default(), address, AnyHost).await.expect("connected");
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
    if !client.authenticate_publickey("work", key).await.expect("an answer").success() {
        return None;
    }
    let mut channel = client.channel_open_session().await.expect("a channel");
    channel.exec(true, "attach").await.expect("sent");
    while channel.wait().await.is_some() {}
    let request = asked.lock().expect("no panic").take().expect("the door has asked for a command");
    assert_eq!((request.user.as_str(), request.command.as_deref()), ("work", Some("attach")));
    Some(request.grant.authority)
}

/// A client of the ssh door attaches at the session's own socket with the token of a person, and
/// only to watch if its key does not let it drive.
#[cfg(feature = "ssh")]
#[test]
fn the_ssh_door_keeps_to_the_table() {
    let served = Served::start();
    let mut keeper = served.keeper();
    let shown = |name: &str| {
        let all = credentials().into_iter();
        let found = all.filter(|c| c.door == "ssh door").find(|c| c.shown == name);
        Some(found.expect("a row of the table").authority)
    };
    let (person, observer) = (shown(SSH_KEY), shown(SSH_READ_ONLY));
    for (options, authority) in [
        ("", person),
        ("no-port-forwarding,from=\"127.0.0.1\"", person),
        ("environment=\"TAPDECK_SESSIONS=work\"", person),
        ("restrict", observer),
        ("restrict,pty", observer),
        ("no-pty", observer),
        ("environment=\"TAPDECK=read-only\"", observer),
        ("command=\"true\"", None),
        ("expiry-time=\"20300101\"", None),
        ("from=\"10.0.0.1\"", None),
        ("environment=\"TAPDECK=admin\"", None),
    ] {
        let granted = runtime().block_on(granted_by_ssh(options));
        assert_eq!(granted, authority, "{options:?}");
        let Some(granted) = granted else { continue };
        let read_only = !granted.grants(Right::Drive);
        served.walk_attached(&mut keeper, &Joins { door: "own", token: Some("secret"), read_only }, &granted);
        assert!(granted.check(Need::Open, false, WallTime::ZERO).is_err(), "the door opens no sessions");
    }
}
