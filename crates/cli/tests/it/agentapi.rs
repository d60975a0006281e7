//! `tapdeck agentapi`: live answers against the schemas of agentapi's own OpenAPI document, and a
//! client that a foreign generator makes from it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tapdeck_needs::skip;

use crate::support::{Home, PATIENCE, eventually, signal};
use crate::webdriver::{Answer, http};

const DOCUMENT: &str = include_str!("../../../serve/src/agentapi/openapi.json");
const SHELL: [&str; 7] = ["--size", "80x24", "--", "bash", "--norc", "--noprofile", "--noediting"];

/// The server, ended with the test.
struct Api {
    child: Child,
    port: u16,
}

impl Api {
    fn start(home: &Home, args: &[&str]) -> Self {
        let all = ["agentapi", "--port", "0"].into_iter().chain(args.iter().copied());
        let mut command = home.tapdeck(all);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("an address");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        Self { child, port: port.unwrap_or_else(|| panic!("no address: {line:?}")) }
    }

    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("Host: localhost:{}", self.port);
        let headers: Vec<&str> = [&host[..]].into_iter().chain(headers.iter().copied()).collect();
        http(self.port, method, path, &headers, body).expect("an answer")
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    fn post(&self, kind: &str, content: &str) -> (u16, Value) {
        let body = json!({"type": kind, "content": content}).to_string();
        let answer = self.ask("POST", "/message", &["Content-Type: application/json"], &body);
        (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
    }

    #[track_caller]
    fn wait(&self, status: &str) {
        eventually(status, || self.get("/status")["status"] == status);
    }

    /// Ends it as Ctrl-C does, and says whether it ended well.
    fn stop(&mut self) -> bool {
        signal(self.child.id(), Signal::INT);
        eventually("its end", || self.child.try_wait().expect("a child").is_some());
        self.child.wait().expect("it has ended").success()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks a value against a schema of the document: what OpenAPI 3.0 means by the words that the
/// document uses.
fn check(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    check_in(&document, value, schema, at)
}

fn check_in(document: &Value, value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    if let Some(target) = schema["$ref"].as_str() {
        let target = document.pointer(target.trim_start_matches('#')).expect("a target");
        return check_in(document, value, target, at);
    }
    if let Some(all) = schema["oneOf"].as_array() {
        let fits = all.iter().filter(|one| check_in(document, value, one, at).is_ok()).count();
        return if fits == 1 { Ok(()) } else { Err(format!("{at}: fits {fits} of {}", all.len())) };
    }
    if value.is_null() && schema["nullable"] == true {
        return Ok(());
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        None => true,
        Some(other) => panic!("{other}"),
    };
    let is_listed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    let is_constant = schema.get("const").is_none_or(|constant| constant == value);
    if !fits || !is_listed || !is_constant {
        return Err(format!("{at}: {value} is not {schema}"));
    }
    if schema["format"] == "date-time" && !is_time(value.as_str().unwrap_or_default()) {
        return Err(format!("{at}: {value} is no time"));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        check_in(document, item, &schema["items"], &format!("{at}[{n}]"))?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        fields.get(name).ok_or_else(|| format!("{at}: {name} is missing"))?;
    }
    for (name, value) in fields {
        match schema["properties"].get(name) {
            Some(schema) => check_in(document, value, schema, &format!("{at}.{name}"))?,
            None if schema["additionalProperties"] == false => {
                return Err(format!("{at}: {name} is too much"));
            }
            None => {}
        }
    }
    Ok(())
}

fn is_time(text: &str) -> bool {
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let (Some((day, time)), true) = (text.split_once('T'), text.ends_with('Z')) else { return false };
    day.len() == 10 && day.split('-').all(digits) && time[..8].split(':').all(digits)
}

#[track_caller]
fn is(value: &Value, name: &str) {
    let schema = json!({"$ref": format!("#/components/schemas/{name}")});
    check(value, &schema, name).unwrap_or_else(|why| panic!("{why}: {value}"));
}

/// Follows the events on a thread, and returns them when the server ends them.
fn follow(port: u16, path: &str) -> std::thread::JoinHandle<Vec<Value>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    std::thread::spawn(move || {
        let mut text = String::new();
        // A stream that the server cuts off ends here, too, and lacks what is asserted of it.
        let _ = stream.read_to_string(&mut text);
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let pairs = lines.windows(2).filter_map(|pair| {
            let (event, data) = (pair[0].strip_prefix("event: ")?, pair[1].strip_prefix("data: ")?);
            Some(json!({"event": event, "data": serde_json::from_str::<Value>(data).expect("JSON")}))
        });
        pairs.collect()
    })
}

#[test]
fn every_answer_keeps_to_the_schemas_of_agentapi() {
    let home = Home::new();
    let mut api = Api::start(&home, &SHELL);
    api.wait("stable");
    let (events, screens) = (follow(api.port, "/events"), follow(api.port, "/events?screen=true"));
    let status = api.get("/status");
    is(&status, "StatusResponseBody");
    assert_eq!((&status["agent_type"], &status["transport"]), (&json!("custom"), &json!("pty")));
    is(&api.get("/messages"), "MessagesResponseBody");
    let go = home.path("go");
    let prompt = format!("echo one; until [ -e {} ]; do sleep 0.05; done; echo two", go.display());
    let (code, sent) = api.post("user", &prompt);
    assert_eq!(code, 200, "{sent}");
    is(&sent, "MessageResponseBody");
    assert_eq!(api.get("/status")["status"], "running", "at once after a prompt");
    // The answer is updated while it is written.
    let last =
        || api.get("/messages")["messages"].as_array().and_then(|all| all.last().cloned()).expect("one");
    eventually("the first word", || last()["content"] == "one" && last()["role"] == "agent");
    let (code, refused) = api.post("user", "too early");
    is(&refused, "ErrorModel");
    let why = "failed to send message: message can only be sent when the agent is waiting for user input";
    assert_eq!((code, refused["errors"][0]["message"].as_str()), (500, Some(why)));
    std::fs::write(&go, "").expect("written");
    api.wait("stable");
    let all = api.get("/messages");
    is(&all, "MessagesResponseBody");
    let all: Vec<(u64, &str, &str)> = all["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|m| {
            (
                m["id"].as_u64().unwrap_or(99),
                m["role"].as_str().unwrap_or(""),
                m["content"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(all[1..], [(1, "user", &prompt[..]), (2, "agent", "one\ntwo")]);
    // Keystrokes are typed as they are.
    assert_eq!(api.post("raw", "echo ra\u{7f}aw\r"), (200, json!({"ok": true})));
    eventually("what was typed", || last()["content"] == "raw");
    refusals(&api);
    upload(&api);
    assert_eq!(api.get("/openapi.json"), serde_json::from_str::<Value>(DOCUMENT).expect("JSON"));
    assert!(api.stop(), "it ends well");
    assert_eq!(home.run(["ls", "--json"]).stdout, b"[]\n", "its session ends with it");
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let content = &document["paths"]["/events"]["get"]["responses"]["200"]["content"];
    let events = Value::Array(events.join().expect("the events"));
    check(&events, &content["text/event-stream"]["schema"], "events").expect("agentapi's events");
    let updates =
        |text: &str| events.as_array().is_some_and(|all| all.iter().any(|e| e["data"]["message"] == text));
    assert!(updates("one") && updates("one\ntwo") && updates(&prompt), "{events}");
    let screens = screens.join().expect("the events");
    let shown = |e: &&Value| e["event"] == "screen_update";
    screens.iter().filter(shown).for_each(|e| is(&e["data"], "ScreenUpdateBody"));
    assert!(
        screens.iter().any(|e| shown(&e) && e["data"]["screen"].as_str().is_some_and(|s| s.contains("one")))
    );
}

/// Requests that are refused: each with its status, and agentapi's form of an error.
fn refusals(api: &Api) {
    let json = "Content-Type: application/json";
    let good = r#"{"type":"user","content":"x"}"#;
    let long = format!(r#"{{"type":"user","content":"{}"}}"#, "x".repeat(1 << 20));
    let cases: [(&str, &str, &[&str], &str, u16); 12] = [
        ("POST", "/message", &[json], "{", 400),
        ("POST", "/message", &[json], r#"{"type":"other","content":"x"}"#, 422),
        ("POST", "/message", &[json], r#"{"type":"user"}"#, 422),
        ("POST", "/message", &[json], r#"{"type":"user","content":""}"#, 500),
        ("POST", "/message", &[json], r#"{"type":"user","content":" x"}"#, 500),
        ("POST", "/message", &["Content-Type: text/plain"], good, 415),
        ("POST", "/message", &[json], &long, 413),
        ("POST", "/message", &[json, "Origin: http://evil.example"], good, 403),
        ("GET", "/events?screen=x", &[], "", 422),
        ("GET", "/nothing", &[], "", 404),
        ("PUT", "/status", &[], "", 405),
        ("POST", "/upload", &[json], "{}", 400),
    ];
    for (method, path, headers, body, status) in cases {
        let answer = api.ask(method, path, headers, body);
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
        let problem: Value = serde_json::from_str(&answer.body).expect("JSON");
        is(&problem, "ErrorModel");
        assert_eq!(problem["status"], status);
        assert!(answer.head.contains("application/problem+json"), "{}", answer.head);
    }
    let elsewhere = http(api.port, "GET", "/status", &["Host: evil.example"], "").expect("an answer");
    assert_eq!(elsewhere.status, 400, "{}", elsewhere.body);
    let page = ["Origin: http://localhost:3000", "Access-Control-Request-Method: POST"];
    let asked = api.ask("OPTIONS", "/message", &page, "");
    let head = asked.head.to_ascii_lowercase();
    assert!(
        asked.status == 200 && head.contains("access-control-allow-origin: http://localhost:3000"),
        "{head}"
    );
}

fn upload(api: &Api) {
    let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../a.txt\"\r\n\r\nhello\r\n--x--\r\n";
    let answer = api.ask("POST", "/upload", &["Content-Type: multipart/form-data; boundary=x"], form);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let kept: Value = serde_json::from_str(&answer.body).expect("JSON");
    is(&kept, "UploadResponseBody");
    let path = Path::new(kept["filePath"].as_str().expect("a path"));
    assert_eq!(path.file_name().and_then(|name| name.to_str()), Some("a.txt"));
    assert_eq!(std::fs::read(path).expect("the file"), b"hello");
}

/// A live session is served as it is, and goes on without the server.
#[test]
fn a_live_session_keeps_its_turns_and_goes_on() {
    let home = Home::new();
    let started = home.run(["run", "-d", "--name", "work", "--", "bash", "--norc", "--noprofile"]);
    assert!(started.status.success());
    assert!(home.run(["paste", "work", "echo before"]).status.success());
    assert!(home.run(["wait", "work", "--state", "idle"]).status.success());
    eventually("a turn", || {
        String::from_utf8_lossy(&home.run(["turns", "work", "--json"]).stdout).contains("turn_id")
    });
    let mut api = Api::start(&home, &["work"]);
    api.wait("stable");
    let said = api.get("/messages");
    assert_eq!(
        (&said["messages"][1]["content"], &said["messages"][2]["content"]),
        (&json!("echo before"), &json!("before"))
    );
    // What other clients ask is part of the conversation.
    assert!(home.run(["paste", "work", "echo after"]).status.success());
    eventually("the other turn", || {
        let said = api.get("/messages");
        said["messages"][3]["content"] == "echo after" && said["messages"][4]["content"] == "after"
    });
    assert!(api.stop());
    assert!(home.run(["peek", "work"]).status.success(), "the session goes on");
    // When the session ends, so does the server.
    let mut api = Api::start(&home, &["work"]);
    assert!(home.run(["kill", "work"]).status.success());
    eventually("the end of the server", || api.child.try_wait().expect("a child").is_some());
}

const FOREIGN: &str = r#"
import io, sys, time
sys.path.insert(0, sys.argv[2])
from agentapi_client import Client
from agentapi_client.api.default import get_messages, get_status, post_message, post_upload
from agentapi_client.models import AgentStatus, MessageRequestBody, MessageType, PostUploadBody
from agentapi_client.types import File

client = Client(base_url=sys.argv[1])

def until_stable():
    for _ in range(300):
        if get_status.sync(client=client).status == AgentStatus.STABLE:
            return
        time.sleep(0.1)
    sys.exit("it does not become stable")

def post(content, kind):
    return post_message.sync(client=client, body=MessageRequestBody(content=content, type_=kind))

until_stable()
assert post("echo $((6*7))", MessageType.USER).ok is True
until_stable()
asked, answered = get_messages.sync(client=client).messages[-2:]
assert (asked.role.value, asked.content) == ("user", "echo $((6*7))"), asked
assert (answered.role.value, answered.content, answered.id) == ("agent", "42", asked.id + 1), answered
refused = post(" x ", MessageType.USER)
assert refused.status == 500 and "whitespace" in refused.detail, refused
assert post("echo raw\r", MessageType.RAW).ok is True
file = File(payload=io.BytesIO(b"hello"), file_name="a.txt")
assert open(post_upload.sync(client=client, body=PostUploadBody(file=file)).file_path).read() == "hello"
"#;

/// The client is generated by openapi-python-client from agentapi's document.
#[test]
fn a_client_of_a_foreign_generator_drives_a_session() {
    // `cargo xtask ci` installs the generator, and what its clients need, for this Python.
    let python = std::env::var("PYTHON_FOR_TESTS").unwrap_or_else(|_| "python3".to_owned());
    let home = Home::new();
    let version = home.command(&python).args(["-m", "openapi_python_client", "--version"]).output();
    if !version.is_ok_and(|version| version.status.success()) {
        return skip("openapi-python-client is not installed");
    }
    let document = home.path("openapi.json");
    std::fs::write(&document, DOCUMENT).expect("written");
    let folder = home.path("client");
    std::fs::create_dir(&folder).expect("made");
    let mut generate = home.command(&python);
    generate.args(["-m", "openapi_python_client", "generate"]).arg("--path").arg(&document).args([
        "--meta",
        "none",
        "--output-path",
    ]);
    let made = generate.arg(folder.join("agentapi_client")).output().expect("it runs");
    assert!(folder.join("agentapi_client/client.py").exists(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut api = Api::start(&home, &SHELL);
    let mut python = home.command(&python);
    python.args(["-c", FOREIGN, &format!("http://127.0.0.1:{}", api.port)]).arg(&folder);
    let ran = python.output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(api.stop());
}
