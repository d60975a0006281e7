//! The Agent Client Protocol: an editor drives an agent at a terminal, and a person beside it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tapdeck_needs::has;

use crate::agents::Agent;
use crate::live::Detached;
use crate::support::{Home, TAPDECK, eventually};

/// The rules of `tests/acp/agent.py`.
const RULES: &str = r#"[turns]
commands = ["agent.py"]
by_state = true
brackets = true
settle_ms = 40
answer_within_ms = 2000
frame = '^›'
echo = '^› \S'
interrupt = ["Escape"]
[[turns.journal]]
name = "journal"
path = "{JOURNAL:/nonexistent}"
lines = true
time = "at"
[[turns.journal.record]]
when = { kind = "asked" }
asked = ["text"]
[[turns.journal.record]]
when = { kind = "said" }
said = ["text"]
[[turns.journal.record]]
when = { kind = "tool" }
[turns.journal.record.used]
each = ""
id = "id"
name = "name"
about = ["about"]
[[turns.journal.record]]
when = { kind = "result" }
[turns.journal.record.returned]
each = ""
id = "id"
text = ["text"]
failed = "failed"
[[turns.journal.record]]
when = { kind = "ended" }
state = "idle"
ended = true
[[turns.state]]
name = "busy"
state = "working"
title = '^busy'
[[turns.state]]
name = "question"
state = "blocked"
title = '^ask'
[[turns.state]]
name = "rest"
state = "idle"
title = '^rest'
screen = ['^›']
"#;

/// Installs the agent. Returns its path.
fn agent(home: &Home) -> String {
    let agents = home.path(".config/tapdeck/agents");
    fs::create_dir_all(&agents).expect("a folder");
    fs::write(agents.join("agent.toml"), RULES).expect("written");
    let path = home.path("agent.py");
    fs::write(&path, include_str!("../acp/agent.py")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.to_str().expect("text").to_owned()
}

/// A client that speaks the protocol by hand.
struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u64,
    /// Messages that came while another one was waited for.
    kept: Vec<Value>,
}

impl Client {
    /// Starts `tapdeck acp` with these arguments, and does not introduce itself.
    fn silent(home: &Home, args: &[&str]) -> Self {
        let mut command = home.tapdeck(["acp"]);
        command.args(args).env("JOURNAL", home.path("journal"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Self { to: child.stdin.take(), child, from, asked: 0, kept: Vec::new() }
    }

    fn start(home: &Home, args: &[&str]) -> Self {
        let mut client = Self::silent(home, args);
        let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "by hand", "version": "1"}});
        assert_eq!(client.ask("initialize", hello)["protocolVersion"], 1);
        client
    }

    fn raw(&mut self, line: &str) {
        writeln!(self.to.as_mut().expect("open"), "{line}").expect("it listens");
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.raw(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Returns the message that fits, and keeps those before it.
    #[track_caller]
    fn hear(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at);
        }
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("text") > 0, "it has ended: {:?}", self.kept);
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if fits(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    #[track_caller]
    fn answer(&mut self, id: u64) -> Value {
        self.hear(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// Makes a request that fails. Returns its code and message.
    #[track_caller]
    fn fails(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send(method, params);
        error(&self.answer(id))
    }

    #[track_caller]
    fn open(&mut self, home: &Home) -> String {
        let opened = self.ask("session/new", json!({"cwd": home.path(""), "mcpServers": []}));
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for the end of a prompt. Returns its stop reason and what was said since.
    #[track_caller]
    fn finish(&mut self, prompt: u64) -> (String, String) {
        let answer = self.answer(prompt);
        let said = |message: &Value| {
            let update = &message["params"]["update"];
            let is_said = update["sessionUpdate"] == "agent_message_chunk";
            is_said.then(|| update["content"]["text"].as_str().expect("text").to_owned())
        };
        let text = self.kept.drain(..).filter_map(|message| said(&message)).collect();
        let reason = answer["result"]["stopReason"].as_str();
        (reason.unwrap_or_else(|| panic!("{answer}")).to_owned(), text)
    }

    /// Waits for a question to the client's user.
    #[track_caller]
    fn question(&mut self) -> Value {
        self.hear(|message| message["method"] == "session/request_permission")
    }

    fn choose(&mut self, question: &Value, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.raw(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}).to_string());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.to.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn error(answer: &Value) -> (i64, String) {
    let error = &answer["error"];
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (error["code"].as_i64().expect("a code"), message.to_owned())
}

#[test]
fn what_is_wrong_is_said_and_the_connection_goes_on() {
    let home = Home::new();
    let mut client = Client::silent(&home, &["--", "sh"]);
    assert_eq!(client.fails("session/new", json!({"cwd": "/", "mcpServers": []})).0, -32600, "too early");
    for (line, code) in [("{", -32700), ("[]", -32600), ("{\"jsonrpc\":\"2.0\",\"id\":null}", -32600)] {
        client.raw(line);
        assert_eq!(error(&client.hear(|m| m["id"].is_null())).0, code, "{line}");
    }
    assert_eq!(client.fails("initialize", json!({})).0, -32602);
    // The newest version that is spoken here.
    assert_eq!(client.ask("initialize", json!({"protocolVersion": 7}))["protocolVersion"], 1);
    assert_eq!(client.fails("initialize", json!({"protocolVersion": 1})).0, -32600);
    assert_eq!(client.fails("session/fork", json!({})).0, -32601);
    for cwd in ["relative", "/nonexistent"] {
        let (code, why) = client.fails("session/new", json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!((code, why), (-32602, format!("{cwd}: no such folder")));
    }
    let unknown = json!({"sessionId": "1", "prompt": [{"type": "text", "text": "x"}], "cwd": "/"});
    for method in ["session/prompt", "session/load", "session/resume", "session/close"] {
        assert_eq!(client.fails(method, unknown.clone()).0, -32002, "{method}");
    }
    let session = client.open(&home);
    let picture = json!({"sessionId": session, "prompt": [{"type": "image", "data": "", "mimeType": "x"}]});
    assert_eq!(client.fails("session/prompt", picture).0, -32602);
    client.raw("{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"none\"}}");
    client.raw("{\"jsonrpc\":\"2.0\",\"method\":\"unknown\"}");
    client.raw("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
    let prompt = client.prompt(&session, "echo $((6*7))");
    assert_eq!(client.finish(prompt), ("end_turn".to_owned(), "42".to_owned()));
}

#[test]
fn a_shell_is_cancelled_and_ends_with_the_client() {
    let home = Home::new();
    let mut client = Client::start(&home, &["--record", "--", "sh"]);
    let session = client.open(&home);
    let prompt = client.prompt(&session, "echo begun; sleep 1000");
    eventually("the command runs", || {
        let out = home.run(["peek", session.as_str()]);
        String::from_utf8_lossy(&out.stdout).lines().any(|row| row.trim_end() == "begun")
    });
    let (code, why) = {
        let id = client.prompt(&session, "echo no");
        error(&client.answer(id))
    };
    assert_eq!((code, why.as_str()), (-32600, "a prompt is on its way"));
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    client.raw(&cancel.to_string());
    let (reason, said) = client.finish(prompt);
    assert!(reason == "cancelled" && said.starts_with("begun"), "{reason}: {said}");
    let pid = String::from_utf8(home.run(["ls", "-q"]).stdout).expect("text");
    assert_eq!(pid.trim(), session);
    drop(client);
    assert_eq!(home.run(["ls", "-q"]).stdout, b"");
    // The recording names the client.
    let mut recordings = fs::read_dir(home.path("state/tapdeck/recordings")).expect("a folder");
    let recording = recordings.next().expect("a recording").expect("readable").path();
    let recording = recording.to_str().expect("text");
    let out = home.run(["convert", "-q", recording, "-o", "-", "--as", "conversation", "--to", "json"]);
    let talk = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(talk.contains("acp:by-hand"), "{talk}{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn tools_and_questions_of_an_agent_are_passed_on() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    let agent = agent(&home);
    let mut client = Client::start(&home, &["--", &agent]);
    let servers = json!([{"name": "files", "command": "x", "args": [], "env": []}]);
    let opened = client.ask("session/new", json!({"cwd": home.path(""), "mcpServers": servers}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let prompt = client.prompt(&session, "a tool");
    let question = client.question();
    let asked = &question["params"];
    assert_eq!(asked["toolCall"]["title"], "Do you want to proceed?", "{asked}");
    assert!(asked["toolCall"]["content"].to_string().contains("rm -r build"), "{asked}");
    let options: Vec<_> =
        asked["options"].as_array().expect("options").iter().map(|o| (&o["name"], &o["kind"])).collect();
    let expected = [
        (json!("Yes"), json!("allow_once")),
        (json!("Yes, and don't ask again"), json!("allow_always")),
        (json!("No"), json!("reject_once")),
    ];
    assert_eq!(options, expected.iter().map(|(n, k)| (n, k)).collect::<Vec<_>>());
    client.choose(&question, "1");
    let updates = |client: &Client, id: &str| -> Vec<Value> {
        let of =
            |message: &Value| message["params"]["update"]["toolCallId"].as_str().unwrap_or("").to_owned();
        let wanted = client.kept.iter().filter(|message| of(message).starts_with(id));
        wanted.map(|message| message["params"]["update"]["status"].clone()).collect()
    };
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(updates(&client, "question-1"), ["pending", "completed"]);
    // It may have returned before it was told.
    assert_eq!(updates(&client, "tool-1").last(), Some(&json!("completed")));
    client.kept.retain(|message| message["method"] == "session/update");
    let said: String = client
        .kept
        .drain(..)
        .filter_map(|message| message["params"]["update"]["content"]["text"].as_str().map(str::to_owned))
        .collect();
    assert!(said.starts_with("[Not passed on to the program: the MCP servers files."), "{said}");
    assert!(said.ends_with("First **this**.\n\nDone."), "{said}");
    // A person at the terminal is faster.
    let prompt = client.prompt(&session, "a tool");
    let question = client.question();
    let out = home.run(["answer", session.as_str(), "no"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let taken_back = client.hear(|message| message["method"] == "$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // Too late.
    client.choose(&question, "1");
    assert_eq!(client.finish(prompt), ("end_turn".to_owned(), "First **this**.\n\nNot done.".to_owned()));
    // A question stands while the client cancels.
    let prompt = client.prompt(&session, "a tool");
    let question = client.question();
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    client.raw(&cancel.to_string());
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    client.raw(&json!({"jsonrpc": "2.0", "id": question["id"], "result": cancelled}).to_string());
    let (reason, said) = client.finish(prompt);
    assert!(reason == "cancelled" && said.contains("First **this**."), "{reason}: {said}");
}

#[test]
fn a_live_session_goes_on_without_the_client_and_is_loaded_again() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "work"], &["sh"]);
    let mut client = Client::start(&home, &["work"]);
    assert_eq!(client.open(&home), session.id);
    let prompt = client.prompt(&session.id, "echo $((20+3))");
    assert_eq!(client.finish(prompt).0, "end_turn");
    assert_eq!(client.fails("session/new", json!({"cwd": "/", "mcpServers": []})).0, -32600);
    drop(client);
    let mut client = Client::start(&home, &["work"]);
    client.ask("session/load", json!({"sessionId": session.id, "cwd": home.path(""), "mcpServers": []}));
    let told: Vec<_> = client.kept.iter().map(|message| &message["params"]["update"]).collect();
    assert_eq!(told[0]["sessionUpdate"], "user_message_chunk", "{told:?}");
    assert_eq!(told[0]["content"]["text"], "echo $((20+3))", "{told:?}");
    assert_eq!(told[1]["content"]["text"], "23", "{told:?}");
    // A person who drives keeps the client out.
    let mut person = session.bus("human", "anna");
    person.request(&tapdeck_proto::bus::Take, crate::support::PATIENCE).expect("it is free");
    let id = client.prompt(&session.id, "echo no");
    let (code, why) = error(&client.answer(id));
    assert!(code == -32603 && why.contains("anna"), "{code}: {why}");
}

/// Has an editor talk to a real agent.
fn drives(name: &str) {
    if !has("node") || !has(name) {
        return;
    }
    let agent = Agent::start(name, true);
    agent.is("idle");
    let mut client = Client::start(&agent.home, &["agent"]);
    let session = client.open(&agent.home);
    let prompt = client.prompt(&session, "What is the capital of France?");
    let (reason, said) = client.finish(prompt);
    assert!(reason == "end_turn" && said.ends_with("The capital of France is Paris."), "{reason}: {said}");
    let prompt = client.prompt(&session, "Answer in 100 lines");
    let lines: String = (1..=100).map(|n| format!("{n}. line {n} of 100\n")).collect();
    assert_eq!(client.finish(prompt), ("end_turn".to_owned(), format!("{lines}\nThat was all.")));
    let prompt = client.prompt(&session, "Please write the note, tell first");
    let question = client.question();
    assert_eq!(question["params"]["options"][0]["kind"], "allow_once", "{question}");
    client.choose(&question, "1");
    let said = client.finish(prompt).1;
    assert_eq!(said, "First I write the note.\n\nThe note is written.");
    assert!(agent.home.path("project/note.txt").exists());
    let prompt = client.prompt(&session, "Talk endlessly");
    agent.is("working");
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    client.raw(&cancel.to_string());
    assert_eq!(client.finish(prompt).0, "cancelled");
    agent.is("idle");
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn claude_is_driven_by_acp() {
    drives("claude");
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn codex_is_driven_by_acp() {
    drives("codex");
}

/// The official SDK as a client, with everything that it can do here.
#[test]
fn the_sdk_drives_an_agent() {
    // `cargo xtask ci` installs it, and says where.
    let python = std::env::var("PYTHON_FOR_TESTS").unwrap_or_else(|_| "python3".to_owned());
    let check = Command::new(&python).args(["-c", "import acp"]).stderr(Stdio::null()).status();
    if !check.is_ok_and(|status| status.success()) {
        return tapdeck_needs::skip("the Python package agent-client-protocol is not installed");
    }
    let home = Home::new();
    let agent = agent(&home);
    let mut command = home.command(&python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/client.py"));
    // The SDK passes on no variables but common ones.
    let set = |name: &str, path: &str| format!("{name}={}", home.path(path).to_str().expect("text"));
    command.arg(home.path("")).args(["env", &set("JOURNAL", "journal"), &set("XDG_RUNTIME_DIR", "run")]);
    command.args([&set("XDG_STATE_HOME", "state"), TAPDECK, "acp", "--", &agent, "trust"]);
    let out = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("ok"), "{text}");
}
