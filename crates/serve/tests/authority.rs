//! One table says who may do what; every request is walked with every credential at every door.
//!
//! The table is also shown in `docs/protocols.md`, which must be the same. `cargo xtask docs`
//! writes it, by running this with `UPDATE_DOCS=1`.

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

/// Returns what each verb of the bus needs, with a payload to try it. The greeting needs nothing:
/// it makes the authority.
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
const ATTACH: [(&str, Need); 6] = [
    ("standard input", Need::Drive),
    ("take", Need::Drive),
    ("release", Need::Drive),
    ("resize", Need::Hold),
    ("signal", Need::Hold),
    ("kill", Need::Command),
];

/// What each request to a server needs.
const SERVER: [(&str, Need); 2] = [("open a session", Need::Open), ("attach to a session", Need::Watch)];

/// How a test shows a credential.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "some doors are tested with their features only")]
enum Shows {
    /// At this door of [`Served`], with one of these tokens.
    Tokens(&'static str, &'static [Option<&'static str>]),
    /// At a server's Unix socket, by being the user's process.
    Process,
    /// At a server or its page, with a token of this scope.
    Scope(&'static str),
    /// At a page, with this token.
    Link(&'static str),
    /// At the ssh door, with a key that has one of these options.
    Key(&'static [&'static str]),
}

/// A credential at a door, and the authority that the door makes from it.
struct Credential {
    door: &'static str,
    shown: &'static str,
    shows: Shows,
    authority: Authority,
}

/// The table that everything here is compared with.
fn credentials() -> Vec<Credential> {
    use Shows::{Key, Link, Process, Scope, Tokens};
    const SESSION: &str = "session socket";
    const BUS: &str = "`--bus` with a token file";
    const SERVER: &str = "`serve`, network and page";
    const SSH: &str = "ssh door";
    let (person, program) = (Authority::of(Role::Human), Authority::of(Role::Bot));
    let (observer, owner) = (Authority::of(Role::Observer), Authority::owner());
    let opener = Authority::none().and(Right::Open);
    let keys = Key(&["", "no-port-forwarding,from=\"127.0.0.1\"", "environment=\"TAPDECK_SESSIONS=work\""]);
    let read_only = Key(&["restrict", "restrict,pty", "no-pty", "environment=\"TAPDECK=read-only\""]);
    [
        (SESSION, "none", Tokens("own", &[None]), program),
        (SESSION, "human token", Tokens("own", &[Some(SECRET)]), person),
        (BUS, "`TOKEN` or `human TOKEN`", Tokens("bus", &[Some(BARE), Some(HUMAN)]), person),
        (BUS, "`bot TOKEN`", Tokens("bus", &[Some(BOT)]), program),
        (BUS, "`observer TOKEN`", Tokens("bus", &[Some(OBSERVER)]), observer),
        ("`serve`, Unix socket", "the user's own process", Process, owner),
        (SERVER, "`tty:open`", Scope("tty:open"), opener),
        (SERVER, "`tty:attach`", Scope("tty:attach"), person),
        (SERVER, "`observe`", Scope("observe"), observer),
        ("`web`", "link", Link("the link of web"), owner),
        ("`web --read-only`", "link", Link("the link of web --read-only"), observer),
        (SSH, "key", keys, person),
        (SSH, "key with `restrict`, `no-pty` or `TAPDECK=read-only`", read_only, observer),
    ]
    .map(|(door, shown, shows, authority)| Credential { door, shown, shows, authority })
    .into()
}

fn markdown() -> String {
    let mut text = String::from("| door | credential | counts as | watch | drive | open | administer |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for Credential { door, shown, authority, .. } in credentials() {
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
        assert_eq!(shown, markdown(), "run cargo xtask docs");
    }
}

/// A folder that only this user can enter, as doors and token lists ask for.
fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("private");
    folder
}

/// The human token of the session's own door.
const SECRET: &str = "secret";
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
            (door("own"), Grants::own(SECRET)),
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
        Client::new(self.connect("own"), "human", Some(SECRET))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.cancel();
    }
}

/// A client at a door of the session: what it shows, the role that it asks for, and what it gets.
struct SessionCase {
    door: &'static str,
    token: Option<&'static str>,
    asked: Role,
    authority: Authority,
}

/// Every credential at the session's doors, with every role: a client gets no more than it asks
/// for.
fn session_cases() -> Vec<SessionCase> {
    let mut cases = Vec::new();
    for Credential { shows, authority, .. } in credentials() {
        let Shows::Tokens(door, tokens) = shows else { continue };
        for (token, asked) in tokens
            .iter()
            .flat_map(|token| [Role::Human, Role::Bot, Role::Observer].map(|role| (*token, role)))
        {
            cases.push(SessionCase { door, token, asked, authority: authority.limited_to(asked) });
        }
    }
    cases
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Human => "human",
        Role::Bot => "bot",
        Role::Observer => "observer",
    }
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
        self.ask_with(verb, "")
    }

    fn ask_with(&mut self, verb: &str, payload: &str) -> String {
        self.send(&format!("{verb}#ask {payload}"));
        self.reply("ask")
    }

    /// Whether a request is refused for want of a right. Some are answered late: what is refused is
    /// refused before the next request is.
    fn is_denied(&mut self, verb: &str, payload: &str) -> bool {
        self.send(&format!("{verb}#try {payload}"));
        self.send("ACK#next");
        let mut denied = false;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("in time") > 0, "the session ended the connection");
            if line.starts_with("OK#next") {
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
    for SessionCase { door, token, asked, authority } in session_cases() {
        let asked = role_name(asked);
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

/// A request to be attached: the way to the session, the credential, and whether only to watch.
struct Joins<'a> {
    door: &'a str,
    connect: &'a dyn Fn(&Served) -> UnixStream,
    token: Option<&'a str>,
    read_only: bool,
}

impl Served {
    /// Tries all requests of the attach wire, with the stick and without, and compares each outcome
    /// with the authority.
    fn walk_attached(&self, keeper: &mut Client, joins: &Joins<'_>, authority: &Authority) {
        let Joins { door, connect, token, read_only } = joins;
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
                assert!(keeper.ask_with("RESIZE", "{\"cols\":80,\"rows\":24}").starts_with("OK"));
                if holds {
                    assert!(keeper.ask("RELEASE").starts_with("OK"));
                }
                let request =
                    json!({"backend": "attach", "token": token, "read_only": read_only, "watch": !holds});
                let (mut stream, mut inbox) = (connect(served), Vec::new());
                stream.write_all(&wire::framed(&request)).expect("sent");
                while control(&mut stream, &mut inbox)["type"] != "live" {}
                let bytes = match what {
                    "standard input" => [&wire::chunk_head(ChunkKind::Stdin, 1)[..], b"x"].concat(),
                    "signal" => wire::control(&json!({"type": "signal", "name": "CONT"})),
                    "resize" => wire::control(&json!({"type": "resize", "cols": 90, "rows": 30})),
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
                let denied = match what {
                    "resize" => !keeper.ask_with("INFO", "brief").contains("\"cols\":90"),
                    _ => errors.iter().any(denied),
                };
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
    // A client of this wire asks to drive or to watch.
    for SessionCase { door, token, asked, authority } in session_cases() {
        if asked != Role::Bot {
            let connect = |served: &Served| served.connect(door);
            let joins = Joins { door, connect: &connect, token, read_only: asked == Role::Observer };
            served.walk_attached(&mut keeper, &joins, &authority);
        }
    }
}

/// Every combination of scopes in the table, with the secret of a token that has them. Together
/// they grant what each grants.
#[cfg(feature = "net")]
fn tokens(path: std::path::PathBuf) -> (tapdeck_serve::tokens::Tokens, Vec<(String, Authority)>) {
    let tokens = tapdeck_serve::tokens::Tokens::at(path);
    let mut sets = vec![(Vec::new(), Authority::none())];
    for Credential { shows, authority, .. } in credentials() {
        let Shows::Scope(scope) = shows else { continue };
        for (mut scopes, mut granted) in sets.clone() {
            scopes.push(scope.parse().expect("a scope"));
            granted = Right::ALL.into_iter().filter(|r| authority.grants(*r)).fold(granted, Authority::and);
            sets.push((scopes, granted));
        }
    }
    let made = sets.into_iter().map(|(scopes, authority)| {
        let (_, secret) = tokens.add(None, scopes, WallTime::ZERO, None).expect("a token");
        (secret, authority)
    });
    let made = made.collect();
    (tokens, made)
}

/// A server that starts no sessions, and has at most the one that listens at this socket.
#[cfg(feature = "net")]
struct OneSession(Option<std::path::PathBuf>);

#[cfg(feature = "net")]
impl tapdeck_serve::net::SessionRunner for OneSession {
    fn run(
        &self,
        _: &tapdeck_serve::wire::Negotiation,
        _: tapdeck_host::UserSide,
        client: &mut tapdeck_serve::net::Client,
    ) {
        use tapdeck_serve::net::{Refusal, RefusalCode};
        client.over(Err(Refusal::new(RefusalCode::AllocateFailed, "nothing starts here")));
    }

    fn close(&self) {}

    fn find(&self, _: Option<&str>) -> Result<tapdeck_host::registry::Listing, tapdeck_serve::net::Refusal> {
        use tapdeck_serve::net::{Refusal, RefusalCode};
        let none = || Refusal::new(RefusalCode::NoSuchSession, "there is none");
        self.0.as_ref().map(|socket| listing(socket.clone())).ok_or_else(none)
    }
}

/// A session of this process.
#[cfg(feature = "net")]
fn listing(socket: std::path::PathBuf) -> tapdeck_host::registry::Listing {
    tapdeck_host::registry::Listing {
        id: "1-1".into(),
        name: None,
        pid: std::process::id(),
        socket,
        buses: Vec::new(),
        command: Vec::new(),
        cwd: "/".into(),
        started: WallTime::ZERO,
        detached: true,
        recording: None,
        human_token: SECRET.into(),
    }
}

#[cfg(feature = "net")]
fn server(
    runner: OneSession,
    tokens: tapdeck_serve::tokens::Tokens,
) -> std::sync::Arc<tapdeck_serve::net::Server> {
    use tapdeck_serve::net::{Limits, Server};
    Server::new(runner, Limits::default(), tokens)
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
    let server = server(OneSession(None), tokens);
    let strangers = made.into_iter().map(|(secret, authority)| (Peer::Stranger, Some(secret), authority));
    let owners = credentials().into_iter().filter(|c| matches!(c.shows, Shows::Process));
    let owners = owners.map(|owner| (Peer::Owner, None, owner.authority));
    let without = (Peer::Stranger, None, Authority::none());
    for (peer, token, authority) in strangers.chain(owners).chain([without]) {
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

/// A client that attaches through a server has at the session what its credential grants.
#[cfg(feature = "net")]
#[test]
fn attaching_through_a_server_keeps_to_the_table() {
    use tapdeck_serve::net::{Peer, serve_stream};
    use tapdeck_serve::tokens::Tokens;

    let folder = private_folder();
    let path = folder.path().join("tokens.json");
    let (_, made) = tokens(path.clone());
    let strangers = made.into_iter().map(|(secret, authority)| (Peer::Stranger, Some(secret), authority));
    let owners = credentials().into_iter().filter(|c| matches!(c.shows, Shows::Process));
    let owners = owners.map(|owner| (Peer::Owner, None, owner.authority));
    let served = Served::start();
    let mut keeper = served.keeper();
    for (peer, token, authority) in strangers.chain(owners) {
        if authority.check(Need::Watch, false, WallTime::ZERO).is_err() {
            continue;
        }
        let connect = |served: &Served| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            ours.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            theirs.set_nonblocking(true).expect("a mode");
            let runner = OneSession(Some(served.folder.path().join("own")));
            let server = server(runner, Tokens::at(path.clone()));
            std::thread::spawn(move || {
                runtime().block_on(async move {
                    let (reader, writer) =
                        tokio::net::UnixStream::from_std(theirs).expect("a stream").into_split();
                    serve_stream(server, reader, writer, peer).await;
                });
            });
            ours
        };
        for read_only in [false, true] {
            let authority = if read_only { authority.limited_to(Role::Observer) } else { authority };
            let joins = Joins { door: "a server", connect: &connect, token: token.as_deref(), read_only };
            served.walk_attached(&mut keeper, &joins, &authority);
        }
    }
}

/// A client that the library's own check admitted leaves when its authority expires.
#[cfg(feature = "net")]
#[test]
fn an_authority_that_expires_ends_the_attachment() {
    use tapdeck_serve::net::{Limits, Peer, Server, serve_stream};
    use tapdeck_serve::tokens::Tokens;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = private_folder();
    let socket = folder.path().join("session");
    let session = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let lasts = Duration::from_millis(300);
    let check = move |_: &str| {
        let until = Clock::start().wall_start() + lasts;
        Some(Authority::of(Role::Human).until(Some(until)))
    };
    let tokens = Tokens::at(folder.path().join("tokens.json"));
    let server = Server::with_authenticator(
        OneSession(Some(socket)),
        Limits::default(),
        tokens,
        Some(Box::new(check)),
    );
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
    assert!(String::from_utf8_lossy(&asked).contains("\"token\":\"secret\""), "{asked:?}");
}

/// A page for the tokens and links of the table, and one token that is wrong.
#[cfg(all(feature = "net", feature = "web"))]
fn page(folder: &Path) -> (tapdeck_serve::web::Site, Vec<(String, Authority)>) {
    use tapdeck_serve::web::{Site, SiteOptions, StartError};

    let (tokens, mut made) = tokens(folder.join("tokens.json"));
    let links: Vec<(&str, Authority)> = credentials()
        .into_iter()
        .filter_map(|c| if let Shows::Link(link) = c.shows { Some((link, c.authority)) } else { None })
        .collect();
    made.extend(links.iter().map(|(link, authority)| ((*link).to_owned(), *authority)));
    made.push(("wrong".into(), Authority::none()));
    let check = move |secret: &str| {
        let link = links.iter().find(|(link, _)| *link == secret).map(|(_, authority)| *authority);
        link.or_else(|| Some(tokens.find(secret, WallTime::ZERO)?.authority()))
    };
    let site = Site::new(
        SiteOptions::new(check)
            .hosts(vec!["localhost:1".into()])
            .start(|_| Err(StartError::Failed("nothing starts here".into()))),
    );
    (site, made)
}

/// Runs a test in a process of its own whose runtime folder is a private one. Returns whether this
/// is that process.
#[cfg(all(feature = "net", feature = "web"))]
#[expect(clippy::disallowed_methods, reason = "a test runs itself, without a terminal")]
fn has_own_registry(test: &str) -> bool {
    const MARK: &str = "TAPDECK_TEST_HAS_OWN_REGISTRY";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let folder = private_folder();
    let mut again = std::process::Command::new(std::env::current_exe().expect("a path"));
    again.args(["--exact", test, "--nocapture"]).env("XDG_RUNTIME_DIR", folder.path()).env(MARK, "1");
    let ran = again.output().expect("it runs");
    assert!(
        ran.status.success(),
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    false
}

/// Connects to a session through the page. Lines written to the stream are its messages.
#[cfg(all(feature = "net", feature = "web"))]
fn through_the_page(site: &tapdeck_serve::web::Site, id: &str, token: &str) -> Client {
    use futures_util::{SinkExt, StreamExt};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest};

    let (ours, theirs) = UnixStream::pair().expect("a pair");
    ours.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    theirs.set_nonblocking(true).expect("a mode");
    let mut request = format!("ws://localhost:1/ws/session/{id}").into_client_request().expect("a request");
    request.headers_mut().insert("Authorization", format!("Bearer {token}").parse().expect("a header"));
    let site = site.clone();
    std::thread::spawn(move || {
        runtime().block_on(async move {
            let (client, server) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move { tapdeck_serve::web::serve_stream(&site, server).await });
            let (mut socket, _) = tokio_tungstenite::client_async(request, client).await.expect("admitted");
            let (reader, mut writer) =
                tokio::net::UnixStream::from_std(theirs).expect("a stream").into_split();
            let mut lines = tokio::io::BufReader::new(reader).lines();
            loop {
                tokio::select! {
                    line = lines.next_line() => match line {
                        Ok(Some(line)) => socket.send(Message::text(line)).await.expect("sent"),
                        _ => return,
                    },
                    message = socket.next() => match message {
                        Some(Ok(Message::Text(text))) => {
                            if writer.write_all(format!("{text}\n").as_bytes()).await.is_err() {
                                return;
                            }
                        }
                        Some(Ok(Message::Close(why))) => panic!("closed: {why:?}"),
                        Some(Ok(_)) => {}
                        _ => return,
                    },
                }
            }
        });
    });
    Client(BufReader::new(ours))
}

#[cfg(all(feature = "net", feature = "web"))]
#[test]
fn the_bus_over_the_page_keeps_to_the_table() {
    use tapdeck_host::registry::{self, Registered};

    if !has_own_registry("the_bus_over_the_page_keeps_to_the_table") {
        return;
    }
    let folder = private_folder();
    let (site, made) = page(folder.path());
    let served = Served::start();
    let mut keeper = served.keeper();
    let listing = listing(served.folder.path().join("own"));
    // A session of this list is reached at a path that follows from its id.
    let place = registry::folder().expect("a folder");
    registry::private_folder(&place).expect("private");
    let socket = registry::socket_path(&place, &listing.id);
    std::os::unix::fs::symlink(&listing.socket, socket).expect("a link");
    let _registered = Registered::new(&place, &listing).expect("registered");
    let verbs = tapdeck_proto::bus::VERBS.iter().filter(|verb| verb.page);
    let verbs: Vec<&str> = verbs.map(|verb| verb.verb).collect();
    for (token, authority) in made {
        if authority.check(Need::Watch, false, WallTime::ZERO).is_err() {
            continue;
        }
        for (verb, payload, need) in bus().into_iter().filter(|(verb, ..)| verbs.contains(verb)) {
            for holds in [false, true] {
                if holds && !authority.grants(Right::Drive) {
                    continue;
                }
                assert!(keeper.ask("TAKE").starts_with("OK"));
                let mut client = through_the_page(&site, &listing.id, &token);
                if holds {
                    assert!(keeper.ask("RELEASE").starts_with("OK"));
                    assert!(client.ask("TAKE").starts_with("OK"));
                }
                let expected = authority.check(need, holds, WallTime::ZERO).is_err();
                let case = format!("{verb} over the page with {authority:?}, holds the stick: {holds}");
                assert_eq!(client.is_denied(verb, payload), expected, "{case}");
            }
        }
    }
}

#[cfg(all(feature = "net", feature = "web"))]
#[test]
fn the_page_keeps_to_the_table() {
    let folder = private_folder();
    let (site, made) = page(folder.path());
    let post = |method: &str, path: &str, token: &str, body: &str| request(&site, method, path, token, body);
    let ask = |method: &str, path: &str, token: &str| post(method, path, token, "{}");
    // A login of another form is refused like a wrong token.
    for body in ["{}", "{\"token\":5}", "{\"token\":null}", "[]", "5", "null", "{\"token\":\"wrong\"}"] {
        assert_eq!(post("POST", "/login", "wrong", body).0, "403", "{body}");
    }
    // A good token counts only in its field.
    let may = |authority: &Authority, need| authority.check(need, false, WallTime::ZERO).is_ok();
    let (good, _) = made.iter().find(|(_, a)| may(a, Need::Watch)).expect("a credential that watches");
    assert_eq!(post("POST", "/login", "wrong", &json!({"token": good}).to_string()).0, "200");
    for body in
        [json!([good]), json!([[good]]), json!(good), json!({"Token": good}), json!([{"token": good}])]
    {
        assert_eq!(post("POST", "/login", "wrong", &body.to_string()).0, "403", "{body}");
    }
    for body in ["[]", "[\"true\"]", "5", "\"true\""] {
        let both = |a: &Authority| may(a, Need::Open) && may(a, Need::Drive);
        let (owner, _) = made.iter().find(|(_, a)| both(a)).expect("a credential that opens and drives");
        assert_eq!(post("POST", "/api/v1/sessions", owner, body).0, "400", "{body}");
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
        assert_eq!(ask("POST", "/api/v1/sessions", &token).0, open, "{authority:?}");
        let scope = match (open, may(Need::Drive)) {
            ("422", _) => "\"open\"",
            (_, true) => "\"attach\"",
            _ => "\"observe\"",
        };
        let (status, login) = ask("GET", "/login", &token);
        assert!(status == "401" || login.contains(scope), "{authority:?}: {login}");
    }
}

/// Every operation of the API with every credential. There is no session, turn or recording, so
/// that what is allowed is not found.
#[cfg(all(feature = "net", feature = "web"))]
#[test]
fn the_api_keeps_to_the_table() {
    use tapdeck_proto::api::{BASE, Method, ROUTES};

    if !has_own_registry("the_api_keeps_to_the_table") {
        return;
    }
    let folder = private_folder();
    let (site, made) = page(folder.path());
    for (token, authority) in made {
        let may = |need| authority.check(need, false, WallTime::ZERO).is_ok();
        for route in ROUTES {
            let path = route.path.replace("{id}", "none").replace("{number}", "1").replace("{name}", "x");
            // A stream of events has no end; its head alone is asked for.
            let method = match route.method {
                Method::Get => "HEAD",
                Method::Post => "POST",
            };
            let body = match route.id {
                "typeText" | "paste" | "ask" => "{\"text\":\"x\"}",
                "pressKeys" => "{\"keys\":[]}",
                "answer" => "{\"choice\":\"yes\"}",
                "resizeSession" => "{\"cols\":80,\"rows\":24}",
                _ => "{}",
            };
            let path = match route.id {
                "waitFor" => format!("{BASE}{path}?exit=true"),
                _ => format!("{BASE}{path}"),
            };
            let allowed = match route.needs {
                "nothing" => true,
                "watch" => may(Need::Watch),
                "drive" => may(Need::Drive),
                "the stick, or administer" => may(Need::Command) || authority.grants(Right::Drive),
                "open" => may(Need::Open) && may(Need::Drive),
                other => panic!("what is {other:?}?"),
            };
            let expected = match (route.needs, may(Need::Watch), allowed, route.id) {
                ("nothing", ..) => "200",
                (_, false, ..) => "401",
                (_, true, false, _) => "403",
                (.., "listSessions" | "listRecordings" | "events") => "200",
                (.., "openSession") => "422",
                _ => "404",
            };
            let (status, answer) = request(&site, method, &path, &token, body);
            assert_eq!(status, expected, "{} with {authority:?}: {answer}", route.id);
            if method == "POST" && status != "200" {
                let problem = answer.split("\r\n\r\n").nth(1).expect("a body");
                let problem: serde_json::Value = serde_json::from_str(problem).expect("JSON");
                assert_eq!(problem["status"].to_string(), status, "{problem}");
                assert!(problem["message"].as_str().is_some_and(|why| why.contains(' ')), "{problem}");
            }
        }
    }
}

/// Sends a request to the page over a connection of its own. Returns the status and the answer.
#[cfg(all(feature = "net", feature = "web"))]
fn request(
    site: &tapdeck_serve::web::Site,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (String, String) {
    use tapdeck_serve::web::serve_stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    use tapdeck_serve::admission::{Admission, Limits};
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
    let admission = Admission::new(Limits::default());
    let address = listen(door, listener, admission).expect("it listens");
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
    let keys = credentials().into_iter().filter_map(|c| match c.shows {
        Shows::Key(options) => Some(options.iter().map(move |options| (*options, Some(c.authority)))),
        _ => None,
    });
    let rejected = [
        "command=\"true\"",
        "expiry-time=\"20300101\"",
        "from=\"10.0.0.1\"",
        "environment=\"TAPDECK=admin\"",
    ];
    for (options, authority) in keys.flatten().chain(rejected.map(|options| (options, None))) {
        let granted = runtime().block_on(granted_by_ssh(options));
        assert_eq!(granted, authority, "{options:?}");
        let Some(granted) = granted else { continue };
        let read_only = !granted.grants(Right::Drive);
        let connect = |served: &Served| served.connect("own");
        let joins = Joins { door: "own", connect: &connect, token: Some(SECRET), read_only };
        served.walk_attached(&mut keeper, &joins, &granted);
        assert!(granted.check(Need::Open, false, WallTime::ZERO).is_err(), "the door opens no sessions");
    }
}
