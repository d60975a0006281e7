//! The Model Context Protocol at the page: its guards, and what each credential lets a client do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::browser::{Web, http};
use crate::live::Detached;
use crate::mcp::{Sdk, converse};
use crate::support::{Home, PATIENCE, eventually};
use crate::wire::{Server, text};

/// A client that posts by hand, with a session of the older protocol.
struct Poster {
    port: u16,
    token: String,
    session: Option<String>,
}

impl Poster {
    fn start(port: u16, token: &str) -> Self {
        let mut poster = Self { port, token: token.to_owned(), session: None };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "poster", "version": "1"},
        });
        poster.ask("initialize", &hello);
        poster
    }

    /// Posts a request, without waiting for its answer.
    fn post(&self, method: &str, params: &Value) -> TcpStream {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let (port, token, length) = (self.port, &self.token, body.len());
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{session}\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).expect("sent");
        stream
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = String::new();
        self.post(method, params).read_to_string(&mut answer).expect("an answer");
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = session.map(|id| id.trim().to_owned()).or(self.session.take());
        let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        let messages = data.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = messages.into_iter().find(|message| message["id"] == 1);
        found.unwrap_or_else(|| panic!("{method}: {answer}"))["result"].clone()
    }

    fn call(&mut self, tool: &str, args: &Value) -> Result<String, String> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": args}));
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    fn tools(&mut self) -> String {
        self.ask("tools/list", &json!({})).to_string()
    }
}

fn port_of(address: &str) -> u16 {
    address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

#[test]
fn mcp_is_behind_the_guards_of_the_page() {
    let home = Home::new();
    let web = Web::start(&home, &["--mcp", "open"]);
    let host = format!("Host: 127.0.0.1:{}", web.port);
    let token = format!("Authorization: Bearer {}", web.token());
    let other_site = "Origin: http://evil.example";
    let cases: [(&[&str], u16); 5] = [
        (&[&host], 403),
        (&[&host, "Authorization: Bearer guess"], 401),
        (&[&host, &token, other_site], 403),
        (&["Host: evil.example", &token], 403),
        // Past the guards; the request itself makes no sense.
        (&[&host, &token], 406),
    ];
    for (headers, expected) in cases {
        let answer = http(web.port, "POST", "/mcp", headers, "{}").expect("an answer");
        assert_eq!(answer.status, expected, "{headers:?}: {}", answer.body);
    }
    let get = http(web.port, "GET", "/mcp", &[&host], "").expect("an answer");
    assert_eq!(get.status, 401);
    // A client without a credential may send no more than any other request.
    let long = "x".repeat(100_000);
    let guess = [host.as_str(), "Authorization: Bearer guess"];
    assert_eq!(http(web.port, "POST", "/mcp", &guess, &long).expect("an answer").status, 413);
    let off = Web::start(&home, &["--mcp", "off"]);
    let (host, token) =
        (format!("Host: 127.0.0.1:{}", off.port), format!("Authorization: Bearer {}", off.token()));
    assert_eq!(http(off.port, "POST", "/mcp", &[&host, &token], "{}").expect("an answer").status, 404);
}

#[test]
fn a_token_bounds_what_a_client_may_do() {
    let home = Home::new();
    let _session = Detached::start(&home, &["--name", "build"], &["sh"]);
    let server = Server::start(&home, &["--listen", "ws://127.0.0.1:0", "--mcp", "open"]);
    let port = port_of(&server.addresses[1]);
    let token = |scope: &str| {
        let out = home.run(["serve", "token", "add", "--scope", scope]);
        text(&out.stdout).trim().to_owned()
    };
    // A view-only token reads, whatever the server allows to others.
    let mut observer = Poster::start(port, &token("observe"));
    let tools = observer.tools();
    assert!(tools.contains("read_screen") && !tools.contains("type_text"), "{tools}");
    for (tool, args) in
        [("type_text", json!({"text": "x"})), ("kill_session", json!({})), ("take_stick", json!({}))]
    {
        let why = observer.call(tool, &args).expect_err("it only watches");
        assert!(why.contains("your token only lets you read"), "{why}");
    }
    let mut driver = Poster::start(port, &token("tty:attach,observe"));
    assert!(driver.call("type_text", &json!({"session": "build", "text": "x"})).is_ok());
    let why = driver.call("start_session", &json!({"command": ["sh"]})).expect_err("it may not");
    assert!(why.contains("your token only lets you drive"), "{why}");
    // A session of one client does not lend its rights to another credential.
    observer.session.clone_from(&driver.session);
    assert!(observer.call("type_text", &json!({"text": "x"})).is_err());
    let mut owner = Poster::start(port, &server.token);
    let started = owner.call("start_session", &json!({"command": ["sh"]})).expect("it may");
    let started: Value = serde_json::from_str(&started).expect("JSON");
    assert!(owner.call("kill_session", &json!({"session": started["session"]})).is_ok());
    // By default the page lets clients of MCP read, and says what would let them do more.
    let web = Web::start(&home, &[]);
    let mut reader = Poster::start(web.port, web.token());
    let why = reader.call("type_text", &json!({"text": "x"})).expect_err("it reads");
    assert!(why.contains("--mcp drive would allow it"), "{why}");
}

#[test]
fn revoking_a_token_ends_what_its_client_does() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "build"], &["sh"]);
    let server = Server::start(&home, &["--listen", "ws://127.0.0.1:0", "--mcp", "open"]);
    let out = home.run(["serve", "token", "add", "--name", "guest"]);
    let mut guest = Poster::start(port_of(&server.addresses[1]), text(&out.stdout).trim());
    guest.call("take_stick", &json!({"session": "build"})).expect("it is free");
    assert_eq!(session.listing()["driver"], "mcp:poster");
    let wait =
        json!({"name": "wait_for", "arguments": {"session": "build", "text": "never", "timeout_s": 600}});
    let mut wait = guest.post("tools/call", &wait);
    let clients = || session.listing()["clients"].as_array().map_or(0, Vec::len);
    eventually("it waits", || clients() == 2);
    home.tapdeck(["serve", "token", "rm", "guest"]).stdin(Stdio::null()).status().expect("it runs");
    eventually("it has left", || clients() == 0);
    let mut answer = String::new();
    wait.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("no longer good"), "{answer}");
    assert_eq!(session.listing()["driver"], Value::Null);
}

#[test]
fn the_official_sdk_drives_a_session_over_http() {
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let home = Home::new();
        let _session = Detached::start(&home, &["--name", "build"], &["sh"]);
        let web = Web::start(&home, &["--mcp", "drive"]);
        let url = format!("http://127.0.0.1:{}/mcp", web.port);
        let Some(mut sdk) = Sdk::start(&home, &[mode, "http", &url, web.token()]) else { return };
        converse(&mut sdk, version);
    }
}
