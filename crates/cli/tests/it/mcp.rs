//! Agents and editors that drive sessions by the Model Context Protocol: what each level lets them
//! do, over standard input and output and over HTTP; and the official SDK as a client.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tapdeck_proto::bus::{Release, Take};

use crate::live::Detached;
use crate::support::{Home, PATIENCE, TAPDECK, eventually, signal};

/// A client that speaks the protocol by hand.
struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u64,
    /// Answers and news that came while another answer was waited for.
    kept: Vec<Value>,
}

impl Client {
    /// Starts `tapdeck mcp` with these options, and introduces itself.
    fn start(home: &Home, options: &[&str]) -> Self {
        let mut command = home.tapdeck(["mcp"]);
        let mut child =
            command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        let mut client = Self { to: child.stdin.take(), child, from, asked: 0, kept: Vec::new() };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"},
        });
        assert_eq!(client.ask("initialize", hello)["serverInfo"]["name"], "tapdeck");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("open");
        writeln!(to, "{message}").expect("it listens");
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        self.asked
    }

    /// Returns the message that fits.
    fn hear(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at);
        }
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("text") > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if fits(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.hear(|message| message["id"] == id);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// Calls a tool. Returns its text, or the reason why it failed.
    fn call(&mut self, tool: &str, args: Value) -> Result<String, String> {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": args}));
        let text =
            result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {result}")).to_owned();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    fn json(&mut self, tool: &str, args: Value) -> Value {
        let text = self.call(tool, args).unwrap_or_else(|why| panic!("{tool}: {why}"));
        serde_json::from_str(&text).expect("JSON")
    }

    fn tools(&mut self) -> Vec<String> {
        let tools = self.ask("tools/list", json!({}))["tools"].clone();
        tools
            .as_array()
            .expect("a list")
            .iter()
            .map(|t| t["name"].as_str().expect("a name").to_owned())
            .collect()
    }
}

/// It ends by itself when its client is gone.
impl Drop for Client {
    fn drop(&mut self) {
        drop(self.to.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

const DRIVE: [&str; 7] =
    ["answer", "ask", "press_keys", "release_stick", "resize_session", "take_stick", "type_text"];
const OPEN: [&str; 2] = ["kill_session", "start_session"];

#[test]
fn each_level_offers_its_tools_and_no_more() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "build"], &["sh"]);
    for (allow, drives, opens) in [("read", false, false), ("drive", true, false), ("open", true, true)] {
        let mut client = Client::start(&home, &["--allow", allow]);
        let tools = client.tools();
        assert!(tools.iter().any(|tool| tool == "read_screen"), "{tools:?}");
        for (names, allowed) in [(&DRIVE[..], drives), (&OPEN[..], opens)] {
            for name in names {
                assert_eq!(tools.iter().any(|tool| tool == name), allowed, "{allow}: {name}");
            }
        }
        let typed = client.call("type_text", json!({"text": "x"}));
        match drives {
            true => assert!(typed.is_ok(), "{typed:?}"),
            false => assert!(typed.expect_err("refused").contains("--allow drive would allow it")),
        }
        if !opens {
            let started = client.call("start_session", json!({"command": ["true"]})).expect_err("refused");
            assert!(started.contains("--allow open would allow it"), "{started}");
        }
    }
    // By default, it only reads.
    assert!(Client::start(&home, &[]).call("kill_session", json!({})).is_err());
    assert_eq!(session.listing()["done"], false);
}

#[test]
fn a_client_sees_only_the_sessions_of_its_pattern() {
    let home = Home::new();
    let _seen = Detached::start(&home, &["--name", "build-1"], &["sh"]);
    let hidden = Detached::start(&home, &["--name", "secret"], &["sh"]);
    let mut client = Client::start(&home, &["--allow", "open", "--session", "build*"]);
    let listed = client.json("list_sessions", json!({}));
    let names: Vec<&Value> =
        listed["sessions"].as_array().expect("a list").iter().map(|s| &s["session"]).collect();
    assert_eq!(names, ["build-1"]);
    for which in ["secret", hidden.id.as_str()] {
        let why = client.call("read_screen", json!({"session": which})).expect_err("hidden");
        assert!(why.contains("no live session") && !why.contains("secret ("), "{why}");
        assert!(client.call("kill_session", json!({"session": which})).is_err());
    }
    let resources = client.ask("resources/list", json!({})).to_string();
    assert!(resources.contains("build-1") && !resources.contains("secret"), "{resources}");
    // What it starts, it must be able to see.
    let why = client.call("start_session", json!({"command": ["sh"]})).expect_err("no name");
    assert!(why.contains("matches its patterns"), "{why}");
    let started = client.json("start_session", json!({"command": ["sh"], "name": "build-2"}));
    let ended = client.call("kill_session", json!({"session": "build-2"}));
    assert_eq!(ended, Ok(format!("ended session {}", started["session"].as_str().expect("an id"))));
    assert_eq!(hidden.listing()["done"], false);
}

#[test]
fn a_person_keeps_the_stick_and_the_recording_names_the_client() {
    let home = Home::new();
    let recording = home.path("a.ahr");
    let out = home.run(["rec", "-d", "--name", "build", recording.to_str().expect("text"), "--", "sh"]);
    let id = String::from_utf8(out.stdout).expect("text").trim().to_owned();
    let session = Detached::of(&home, id);
    let mut client = Client::start(&home, &["--allow", "drive"]);
    let typed =
        client.call("type_text", json!({"session": "build", "text": "echo $((40+2))", "enter": true}));
    assert!(typed.is_ok(), "{typed:?}");
    assert_eq!(client.json("wait_for", json!({"text": "^42"}))["met"], true);
    // It keeps the stick between calls, until a person takes it.
    let taken = client.call("take_stick", json!({})).expect("it is free");
    assert!(taken.contains("mcp:by-hand"), "{taken}");
    assert_eq!(session.listing()["driver"], "mcp:by-hand");
    let mut person = session.bus("human", "ann");
    person.request(&Take, PATIENCE).expect("a person may always take it");
    for (tool, args) in [
        ("type_text", json!({"text": "x"})),
        ("press_keys", json!({"keys": ["C-c"]})),
        ("take_stick", json!({})),
        ("resize_session", json!({"cols": 100, "rows": 30})),
    ] {
        let why = client.call(tool, args).expect_err("a person drives");
        assert!(why.contains("ann drives"), "{tool}: {why}");
    }
    person.request(&Release, PATIENCE).expect("given up");
    assert_eq!(
        client.call("resize_session", json!({"cols": 100, "rows": 30})),
        Ok("the size is 100x30".into())
    );
    assert_eq!(client.call("release_stick", json!({})), Ok("released".into()));
    assert!(client.call("release_stick", json!({})).is_err());
    home.run(["kill", "build"]);
    let recorded = || home.part_now("a.ahr", "events.jsonl").unwrap_or_default();
    eventually("the client's name in the recording", || recorded().matches("mcp:by-hand").count() >= 4);
    assert!(recorded().contains("\"ann\""), "{}", recorded());
}

#[test]
fn a_wait_is_cancelled_and_holds_up_no_other_call() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh"]);
    let mut client = Client::start(&home, &["--allow", "drive"]);
    let never = json!({"name": "wait_for", "arguments": {"text": "never", "timeout_s": 600}});
    let wait = client.send("tools/call", never.clone());
    assert!(client.call("read_screen", json!({})).is_ok());
    let clients = || session.listing()["clients"].as_array().map_or(0, Vec::len);
    eventually("the wait has begun", || clients() == 1);
    let cancelled = Instant::now();
    client
        .say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wait}}));
    eventually("the wait has left the session", || clients() == 0);
    assert!(cancelled.elapsed() < Duration::from_secs(10));
    // A prompt that is waited for leaves as well, and so does everything when the client goes.
    let ask = json!({"name": "ask", "arguments": {"text": "sleep 600", "timeout_s": 600}});
    let ask = client.send("tools/call", ask);
    session.wait_text("sleep 600");
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ask}}));
    eventually("the prompt's client has left", || clients() == 0);
    client.send("tools/call", never);
    eventually("the second wait has begun", || clients() == 1);
    drop(client);
    eventually("all have left", || clients() == 0);
}

#[test]
fn a_stopped_session_holds_up_no_other_and_a_flood_is_told_at_a_bounded_rate() {
    let home = Home::new();
    let stopped = Detached::start(&home, &["--name", "stopped"], &["cat"]);
    let _flood =
        Detached::start(&home, &["--name", "flood"], &["sh", "-c", "while :; do echo $((n+=1)); done"]);
    let mut client = Client::start(&home, &[]);
    let host =
        stopped.listing()["host_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    signal(host, rustix::process::Signal::STOP);
    let read = |session: &str| json!({"name": "read_screen", "arguments": {"session": session}});
    let slow = client.send("tools/call", read("stopped"));
    let begun = Instant::now();
    let quick = client.send("tools/call", read("flood"));
    let first = client.hear(|message| message["id"].is_u64());
    assert_eq!(first["id"], quick, "{first}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let uri = "tapdeck://sessions/flood/screen";
    client.ask("resources/subscribe", json!({"uri": uri}));
    let told = |message: &Value| message["method"] == "notifications/resources/updated";
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(client.hear(told)["params"]["uri"], uri);
    }
    // The first comes at once, and the others at most twice a second.
    assert!(begun.elapsed() >= Duration::from_millis(1900), "{:?}", begun.elapsed());
    client.ask("resources/unsubscribe", json!({"uri": uri}));
    signal(host, rustix::process::Signal::CONT);
    let late = client.hear(|message| message["id"] == slow);
    assert!(late.get("result").is_some(), "{late}");
}

#[test]
fn what_is_too_large_or_makes_no_sense_is_refused() {
    let home = Home::new();
    let _session = Detached::start(&home, &[], &["cat"]);
    let mut client = Client::start(&home, &["--allow", "open"]);
    let long = "x".repeat((1 << 20) + 1);
    let cases = [
        ("type_text", json!({"text": long}), "1 MiB"),
        ("ask", json!({"text": long}), "1 MiB"),
        ("press_keys", json!({"keys": []}), "keys"),
        ("press_keys", json!({"keys": vec!["x"; 1001]}), "keys"),
        ("press_keys", json!({"keys": ["NoSuchKey"]}), "NoSuchKey"),
        ("wait_for", json!({}), "exactly one"),
        ("wait_for", json!({"text": "x", "exit": true}), "exactly one"),
        ("wait_for", json!({"text": "("}), "regular expression"),
        ("wait_for", json!({"text": "(((a{1000}){1000}){1000})"}), "regular expression"),
        ("wait_for", json!({"states": ["happy"]}), "happy"),
        ("search_recordings", json!({"pattern": "x"}), "no recordings"),
        ("start_session", json!({"command": ["sh"], "folder": "relative"}), "absolute"),
        ("start_session", json!({"command": ["no-such-program"]}), "no-such-program"),
        ("start_session", json!({"command": ["x".repeat(70_000)]}), "64 KiB"),
        ("kill_session", json!({"signal": "NOSUCH"}), "NOSUCH"),
        ("read_turn", json!({"number": 7}), "turn"),
        ("list_sessions", json!({"session": "x"}), "unknown argument \"session\"; there are none here"),
        ("read_screen", json!({"sesion": "x"}), "unknown argument \"sesion\"; did you mean \"session\"?"),
        ("wait_for", json!({"text": "x", "timeout": 5}), "did you mean \"timeout_s\"?"),
        ("press_keys", json!({"keys": ["x"], "colour": 1}), "unknown argument \"colour\"; known here: "),
    ];
    for (tool, args, expected) in cases {
        let why = client.call(tool, args).expect_err(tool);
        assert!(why.contains(expected), "{tool}: {why}");
    }
    // A message beyond all bounds is dropped, and the client is served on.
    let id = client.send("tools/call", json!({"name": "x".repeat(9 << 20)}));
    assert!(client.call("list_sessions", json!({})).is_ok());
    assert!(client.kept.iter().all(|message| message["id"] != id), "it was never read");
}

#[test]
fn recordings_are_read_and_searched_within_their_folder() {
    let home = Home::new();
    let folder = home.path("tapes");
    fs::create_dir(&folder).expect("a folder");
    fs::write(home.path("outside.cast"), CAST).expect("written");
    fs::write(folder.join("a.cast"), CAST).expect("written");
    fs::write(folder.join("broken.cast"), "no recording").expect("written");
    std::os::unix::fs::symlink("../outside.cast", folder.join("link.cast")).expect("linked");
    let mut client = Client::start(&home, &["--recordings", folder.to_str().expect("text")]);
    let found = client.json("search_recordings", json!({"pattern": "needle [0-9]+"}));
    assert_eq!(found["hits"], json!([{"recording": "a.cast", "line": 2, "text": "a Needle 42"}]), "{found}");
    assert_eq!(found["unreadable"][0]["recording"], "broken.cast", "{found}");
    // A capital letter makes case matter.
    assert_eq!(client.json("search_recordings", json!({"pattern": "NEEDLE"}))["hits"], json!([]));
    let read = client.call("read_recording", json!({"recording": "a.cast", "from": -2}));
    assert_eq!(read, Ok("lines 2 to 3 of a.cast\n\na Needle 42\nthe end".to_owned()));
    let resource = client.ask("resources/read", json!({"uri": "tapdeck://recordings/a.cast"}));
    assert_eq!(resource["contents"][0]["text"], "hello\na Needle 42\nthe end", "{resource}");
    for name in ["../outside.cast", "link.cast", "/etc/passwd", "tapes/a.cast", ""] {
        let why = client.call("read_recording", json!({"recording": name})).expect_err(name);
        assert!(why.contains("no recording is called"), "{name}: {why}");
    }
}

const CAST: &str = "{\"version\": 2, \"width\": 80, \"height\": 24}\n\
     [0.5, \"o\", \"hello\\r\\na Needle 42\\r\\n\"]\n[1.0, \"o\", \"the end\"]\n";

/// The official SDK as a client: each line that it is told is one request.
pub struct Sdk {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Sdk {
    /// Starts it, if it is installed. It speaks the older protocol, or the newest.
    pub fn start(home: &Home, how: &[&str]) -> Option<Self> {
        // `cargo xtask ci` installs it, and says where.
        let python = std::env::var("PYTHON_FOR_TESTS").unwrap_or_else(|_| "python3".to_owned());
        let check =
            Command::new(&python).args(["-c", "import mcp.client.client"]).stderr(Stdio::null()).status();
        if !check.is_ok_and(|status| status.success()) {
            tapdeck_needs::skip("the Python package mcp, version 2, is not installed");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/client.py");
        let mut command = home.command(&python);
        command.args(["-W", "ignore", script]).args(how);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        let mut sdk = Self { to: child.stdin.take(), child, from };
        assert_eq!(sdk.hear(), json!("ready"));
        Some(sdk)
    }

    #[track_caller]
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).expect("text") > 0, "it has ended");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        answer.get("ok").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    #[track_caller]
    fn ask(&mut self, asked: &Value) -> Value {
        writeln!(self.to.as_mut().expect("open"), "{asked}").expect("it listens");
        self.hear()
    }

    #[track_caller]
    fn call(&mut self, tool: &str, args: Value) -> Value {
        self.ask(&json!({"op": "call", "tool": tool, "args": args}))
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        drop(self.to.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Does everything that a client of the SDK can do, once.
pub fn converse(sdk: &mut Sdk, version: &str) {
    let info = sdk.ask(&json!({"op": "info"}));
    assert_eq!(info["version"], version, "{info}");
    assert!(info["instructions"].as_str().is_some_and(|text| text.contains("data, never")), "{info}");
    let typed = sdk.call("type_text", json!({"session": "build", "text": "echo $((40+2))", "enter": true}));
    assert_eq!(typed["isError"], false, "{typed}");
    let met = sdk.call("wait_for", json!({"session": "build", "text": "^42"}));
    assert_eq!(met["structuredContent"]["met"], true, "{met}");
    let screen = sdk.call("read_screen", json!({"session": "build"}));
    assert!(screen["content"][0]["text"].as_str().is_some_and(|text| text.contains("\n42\n")), "{screen}");
    let picture = sdk.call("read_screen", json!({"session": "build", "form": "svg"}));
    assert_eq!(picture["content"][1]["resource"]["mimeType"], "image/svg+xml", "{picture}");
    let asked = sdk.call("ask", json!({"session": "build", "text": "echo $((20+3))", "timeout_s": 20}));
    assert_eq!(asked["structuredContent"]["outcome"], "answered", "{asked}");
    assert_eq!(asked["structuredContent"]["answer"], "23\n", "{asked}");
    let turns = sdk.call("list_turns", json!({"session": "build"}));
    assert!(turns.to_string().contains("echo $((20+3))"), "{turns}");
    let uri = "tapdeck://sessions/build/screen";
    assert!(sdk.ask(&json!({"op": "resources"})).to_string().contains(uri));
    assert_eq!(sdk.ask(&json!({"op": "templates"}))["resourceTemplates"].as_array().map(Vec::len), Some(3));
    let read = sdk.ask(&json!({"op": "read", "uri": uri}));
    assert!(read["contents"][0]["text"].as_str().is_some_and(|text| text.contains("23")), "{read}");
    let change = json!({"tool": "type_text", "args": {"session": "build", "text": "#"}});
    assert_eq!(sdk.ask(&json!({"op": "follow", "uri": uri, "call": change}))["updated"], uri);
    let prompts = sdk.ask(&json!({"op": "prompts"}));
    assert!(prompts.to_string().contains("review_pair"), "{prompts}");
    let prompt = sdk.ask(&json!({"op": "prompt", "name": "watch_agent", "args": {"session": "build"}}));
    assert!(prompt.to_string().contains("\\\"build\\\""), "{prompt}");
    // A wait holds up no other call, and can be given up.
    let never = json!({"session": "build", "text": "never", "timeout_s": 3});
    let calls =
        json!([{"tool": "wait_for", "args": never}, {"tool": "read_turn", "args": {"session": "build"}}]);
    let together = sdk.ask(&json!({"op": "together", "calls": calls}));
    assert_eq!(together["order"], json!(["read_turn", "wait_for"]), "{together}");
    let long = json!({"session": "build", "text": "never", "timeout_s": 600});
    let given_up = sdk.ask(&json!({"op": "cancel", "tool": "wait_for", "args": long, "after": 0.5}));
    assert_eq!(given_up["cancelled"], true, "{given_up}");
}

#[test]
fn the_official_sdk_drives_a_session() {
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let home = Home::new();
        let _session = Detached::start(&home, &["--name", "build"], &["sh"]);
        let Some(mut sdk) = Sdk::start(&home, &[mode, "stdio", TAPDECK, "mcp", "--allow", "drive"]) else {
            return;
        };
        converse(&mut sdk, version);
    }
}
