//! The HTTP API: the generated clients drive a live server, and the page's guards hold.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tapdeck_needs::has;

use crate::browser::{SHELL, Session, Web};
use crate::support::Home;
use crate::webdriver::http;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients")
}

/// A session called `demo`, a recording and a page.
fn serve(home: &Home) -> (Session<'_>, Web) {
    let session = Session::start(home, "demo", &SHELL);
    let folder = home.path("recordings");
    std::fs::create_dir_all(folder.join("deep")).expect("made");
    let made = home.run(["rec", "-q", "--headless", "recordings/deep/one.ahr", "--", "echo", "hello"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let web = Web::start(home, &["--recordings", folder.to_str().expect("text")]);
    (session, web)
}

#[track_caller]
fn passed(ran: &Output) {
    assert!(
        ran.status.success(),
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

const PYTHON: &str = r#"
import sys, threading
sys.path.insert(0, sys.argv[3])
from tapdeck_api import Tapdeck, TapdeckError

deck = Tapdeck(sys.argv[1], sys.argv[2], timeout=60)
assert [s["name"] for s in deck.list_sessions()["sessions"]] == ["demo"]
deck.wait_for("demo", state="idle")
seen, heard = [], threading.Event()
def follow():
    for name, data in deck.session_events("demo"):
        seen.append(name)
        heard.set()
follower = threading.Thread(target=follow, daemon=True)
follower.start()
asked = deck.ask("demo", text="echo $((6*7))")
assert (asked["outcome"], asked["answer"].strip()) == ("answered", "42"), asked
assert deck.show_turn("demo", "last")["text"].strip() == "42"
assert len(deck.list_turns("demo", limit=1)["turns"]) == 1
deck.type_text("demo", text="echo ty")
deck.press_keys("demo", keys=["p", "e", "d", "Enter"])
assert deck.wait_for("demo", text="^typed")["exit"] is None
assert "typed" in deck.get_screen("demo", format="text")
assert deck.get_screen("demo")["cols"] == deck.show_session("demo")["cols"]
assert deck.paste("demo", text="echo pasted")["outcome"] == "submitted"
deck.wait_for("demo", text="^pasted")
deck.wait_for("demo", state="idle")
assert deck.explain("demo")["state"] == "idle"
assert deck.answer("demo", choice="yes")["outcome"] == "nothing_asked"
# An earlier request may not have left yet, and then this one has a number behind its name.
driver = deck.take_stick("demo", lease_ms=5000)["driver"]
assert driver.startswith("api"), driver
assert deck.show_session("demo")["driver"] == driver
deck.type_text("demo", text="echo held\n")
deck.wait_for("demo", text="^held")
assert deck.resize_session("demo", cols=90, rows=30) == {"cols": 90, "rows": 30}
assert deck.release_stick("demo")["driver"] is None
for status, wrong in [
    (404, lambda: deck.show_session("no-such")),
    (404, lambda: deck.show_turn("demo", "77")),
    (404, lambda: deck.show_recording("../demo")),
    (400, lambda: deck.show_turn("demo", "x")),
    (400, lambda: deck.press_keys("demo", keys=["Nonsense"])),
    (400, lambda: deck.kill_session("demo", signal="NONSENSE")),
    (400, lambda: deck.wait_for("demo")),
    (409, lambda: deck.release_stick("demo")),
    (504, lambda: deck.wait_for("demo", state="blocked", timeout_ms=100)),
    (413, lambda: deck.paste("demo", text="x" * (10 << 20))),
    (422, lambda: deck.open_session(command="no-such-program-anywhere")),
    (422, lambda: deck.open_session(command=["sleep", "9"], cwd="/no/such/folder")),
    (400, lambda: deck.open_session(command=["sleep", "9"], cwd="relative")),
    (400, lambda: deck.open_session(command=[1])),
    (401, lambda: Tapdeck(sys.argv[1], "wrong").list_sessions()),
]:
    try:
        wrong()
    except TapdeckError as e:
        assert e.status == status and " " in str(e), (e.status, str(e))
    else:
        raise AssertionError(f"not refused with {status}")
named = deck.open_session(command=["sleep", "1000"], name="named", cwd="/")["id"]
shown = deck.show_session("named")
assert (shown["id"], shown["command"], shown["cwd"]) == (named, ["sleep", "1000"], "/"), shown
listed = next(s for s in deck.list_sessions()["sessions"] if s["id"] == named)
assert isinstance(listed["clients"], list) and isinstance(shown["clients"], list), listed
deck.kill_session(named)
opened = deck.open_session(command="sleep 1000")["id"]
assert deck.kill_session(opened) == {}
assert [r["name"] for r in deck.list_recordings()["recordings"]] == ["deep/one.ahr"]
assert deck.show_recording("deep/one.ahr")["exit"]["code"] == 0
assert deck.get_recording_text("deep/one.ahr") == "hello\n"
assert deck.get_recording_file("deep/one.ahr") == open(sys.argv[4], "rb").read()
name, listed = next(iter(deck.events()))
assert name == "list" and listed["recordings"][0]["name"] == "deep/one.ahr", listed
assert deck.openapi()["openapi"] == "3.1.0"
deck.kill_session("demo")
follower.join(30)
assert not follower.is_alive() and "turn" in seen and seen[-1] == "closed", seen
"#;

#[test]
fn the_python_client_reaches_every_operation() {
    if !has("python3") {
        return;
    }
    let home = Home::new();
    let (_session, web) = serve(&home);
    let mut python = home.command("python3");
    python.args(["-c", PYTHON, &format!("http://127.0.0.1:{}", web.port), web.token()]);
    python.arg(clients().join("python")).arg(home.path("recordings/deep/one.ahr"));
    passed(&python.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("it runs"));
}

const SCRIPT: &str = r#"
import assert from "node:assert";
const [url, token, module] = process.argv.slice(-3);
const { Tapdeck, TapdeckError } = await import(module);
const deck = new Tapdeck(url, token);
assert.deepEqual((await deck.listSessions()).sessions.map((s) => s.name), ["demo"]);
await deck.waitFor("demo", { state: "idle" });
const seen = [];
const followed = (async () => { for await (const { event } of deck.sessionEvents("demo", { screen: true })) seen.push(event); })();
assert.equal((await deck.ask("demo", { text: "echo $((6*7))" })).answer.trim(), "42");
await deck.takeStick("demo");
await deck.typeText("demo", { text: "echo held\n" });
await deck.waitFor("demo", { text: "^held" });
await deck.releaseStick("demo");
assert.match(await deck.getScreen("demo", { format: "text" }), /held/);
assert.equal(await deck.getRecordingText("deep/one.ahr"), "hello\n");
assert.ok((await deck.getRecordingFile("deep/one.ahr")).length > 100);
await assert.rejects(deck.showSession("no-such"), (e) => e instanceof TapdeckError && e.status === 404 && e.error === "not_found");
await deck.killSession("demo");
await followed;
assert.ok(seen.includes("screen") && seen.includes("turn") && seen.at(-1) === "closed", seen.join(" "));
"#;

#[test]
fn the_typescript_client_drives_a_session() {
    if !has("node") {
        return;
    }
    let home = Home::new();
    let (_session, web) = serve(&home);
    let mut node = home.command("node");
    node.args([
        "--input-type=module",
        "-e",
        SCRIPT,
        "--",
        &format!("http://127.0.0.1:{}", web.port),
        web.token(),
    ]);
    passed(&node.arg(clients().join("typescript/tapdeck.js")).output().expect("it runs"));
}

/// Each row: what is asked, with which headers, and the status that must come, with a reason in
/// JSON.
#[test]
fn other_pages_and_strangers_get_nothing_but_the_document() {
    let home = Home::new();
    let (_session, web) = serve(&home);
    let fill = |text: &str| text.replace("TOKEN", web.token()).replace("PORT", &web.port.to_string());
    let (own, bearer) = ("Host: 127.0.0.1:PORT", "Authorization: Bearer TOKEN");
    let cases = [
        ("GET", "/openapi.json", own.to_owned(), 200),
        ("GET", "/sessions", format!("{own}|{bearer}"), 200),
        ("GET", "/sessions", own.to_owned(), 401),
        ("GET", "/sessions", format!("{own}|Authorization: Bearer guess"), 401),
        ("GET", "/sessions", format!("Host: evil.example|{bearer}"), 403),
        ("GET", "/sessions", format!("{own}|Origin: http://evil.example|{bearer}"), 403),
        ("POST", "/sessions/demo/kill", own.to_owned(), 403),
        ("POST", "/sessions/demo/kill", format!("{own}|Origin: http://127.0.0.1:PORT"), 401),
        ("GET", "/sessions/demo/events", own.to_owned(), 401),
        ("GET", "/nothing", format!("{own}|{bearer}"), 404),
        ("DELETE", "/sessions/demo", format!("{own}|{bearer}"), 405),
        ("POST", "/sessions/demo/type", format!("{own}|{bearer}|Content-Type: text/plain"), 400),
        // The bus itself ignores unknown fields.
        ("POST", "/sessions/demo/kill", format!("{own}|{bearer}|Content-Type: application/json"), 400),
        // A field that it does not know: a program would be started that the client did not mean.
        ("POST", "/sessions", format!("{own}|{bearer}|Content-Type: application/json"), 400),
    ];
    for (method, path, headers, status) in cases {
        let headers = fill(&headers);
        let headers: Vec<&str> = headers.split('|').collect();
        let answer = http(web.port, method, &format!("/api/v1{path}"), &headers, "{\"text\":\"x\"}");
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert!(status == 200 || body["status"] == status && body["message"].is_string(), "{body}");
        let fault = match (method, path) {
            ("DELETE", _) => "\"method_not_allowed\"",
            (_, "/sessions/demo/kill") if status == 400 => "unknown field \\\"text\\\"; known here: signal",
            _ => "",
        };
        assert!(answer.body.contains(fault), "{}", answer.body);
    }
}

#[test]
fn a_view_only_link_watches_and_does_not_drive() {
    let home = Home::new();
    let session = Session::start(&home, "demo", &SHELL);
    let web = Web::start(&home, &["--read-only"]);
    let headers = [
        format!("Host: 127.0.0.1:{}", web.port),
        format!("Authorization: Bearer {}", web.token()),
        "Content-Type: application/json".to_owned(),
    ];
    let headers = headers.each_ref().map(String::as_str);
    let ask = |method: &str, path: &str, body: &str| {
        http(web.port, method, &format!("/api/v1{path}"), &headers, body).expect("an answer").status
    };
    assert_eq!(ask("GET", "/sessions/demo/screen", ""), 200);
    assert_eq!(ask("GET", "/sessions/demo/turns", ""), 200);
    for (path, body) in [
        ("/sessions", r#"{"command":"true"}"#),
        ("/sessions/demo/type", r#"{"text":"echo no\n"}"#),
        ("/sessions/demo/keys", r#"{"keys":["Enter"]}"#),
        ("/sessions/demo/paste", r#"{"text":"echo no"}"#),
        ("/sessions/demo/ask", r#"{"text":"echo no"}"#),
        ("/sessions/demo/answer", r#"{"choice":"yes"}"#),
        ("/sessions/demo/take", "{}"),
        ("/sessions/demo/release", "{}"),
        ("/sessions/demo/resize", r#"{"cols":50,"rows":10}"#),
        ("/sessions/demo/kill", "{}"),
    ] {
        assert_eq!(ask("POST", path, body), 403, "{path}");
    }
    assert_eq!(session.info()["cols"], 80);
    assert!(!session.peek().contains("echo no"), "{}", session.peek());
}
