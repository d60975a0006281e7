//! A real browser and what tests do with it; `tapdeck web`, and sessions for it to show.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tapdeck_needs::has;

use crate::support::{Home, PATIENCE, eventually};
use crate::webdriver::Driver;
pub use crate::webdriver::{Kind, http};

/// Keys that have no character, as WebDriver writes them.
pub const ENTER: &str = "\u{e007}";
pub const CONTROL: &str = "\u{e009}";
pub const SHIFT: &str = "\u{e008}";

/// A browser, gone with the test.
pub struct Browser(Driver);

impl Browser {
    /// Starts one; `None`, with a word about it, where it is not installed.
    pub fn start(home: &Home) -> Option<Self> {
        Self::of_kind(home, Kind::default())
    }

    /// Starts a browser of another kind.
    pub fn of_kind(home: &Home, kind: Kind) -> Option<Self> {
        if !has("chromedriver") || !has("chromium") {
            return None;
        }
        Some(Self(Driver::start(&home.path("browser"), kind).expect("a browser")))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.0.post(path, body).expect("chromedriver answers")
    }

    fn get(&self, path: &str) -> Value {
        self.0.get(path).expect("chromedriver answers")
    }

    pub fn go(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Runs a script in the page.
    pub fn js(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script that calls its last argument with the answer.
    pub fn js_async(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({"script": script, "args": []}))
    }

    #[track_caller]
    pub fn wait(&self, what: &str, script: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.js(script) != Value::Bool(true) {
            if std::time::Instant::now() > deadline {
                panic!("waited in vain for {what}; the page:\n{}\n{}", self.text(), self.log());
            }
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }

    /// What all screens show.
    pub fn text(&self) -> String {
        self.js("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn wait_text(&self, text: &str) {
        self.wait(text, &format!("return document.body.innerText.includes({})", json!(text)));
    }

    /// Presses keys one after another.
    pub fn type_keys(&self, text: &str) {
        let mut actions = Vec::new();
        for c in text.chars() {
            actions.push(json!({"type": "keyDown", "value": c.to_string()}));
            actions.push(json!({"type": "keyUp", "value": c.to_string()}));
        }
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Presses keys together.
    pub fn chord(&self, keys: &[&str]) {
        let down = keys.iter().map(|k| json!({"type": "keyDown", "value": k}));
        let up = keys.iter().rev().map(|k| json!({"type": "keyUp", "value": k}));
        let actions: Vec<Value> = down.chain(up).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Presses the mouse's button at one place and lets it go at another.
    pub fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        self.drag_with(None, from, to);
    }

    /// Clicks while a key is held.
    pub fn drag_with(&self, key: Option<&str>, from: (i64, i64), to: (i64, i64)) {
        let at = |(x, y): (i64, i64)| json!({"type": "pointerMove", "duration": 0, "x": x, "y": y});
        let actions = json!([
            at(from),
            {"type": "pointerDown", "button": 0},
            at(((from.0 + to.0) / 2, (from.1 + to.1) / 2)),
            at(to),
            {"type": "pointerUp", "button": 0},
        ]);
        let mut all = vec![
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}),
        ];
        if let Some(key) = key {
            let pause = json!({"type": "pause"});
            let (down, up) =
                (json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key}));
            all.push(json!({"type": "key", "id": "keys", "actions": [down, pause, pause, pause, pause, up]}));
        }
        self.post("/actions", &json!({"actions": all}));
    }

    /// Turns the mouse's wheel by a number of pixels.
    pub fn wheel(&self, at: (i64, i64), by: i64) {
        let turn = json!({"type": "scroll", "x": at.0, "y": at.1, "deltaX": 0, "deltaY": by});
        self.post("/actions", &json!({"actions": [{"type": "wheel", "id": "wheel", "actions": [turn]}]}));
    }

    /// A finger on the glass, moved from one place to another.
    pub fn swipe(&self, from: (i64, i64), to: (i64, i64)) {
        let point = |(x, y): (i64, i64)| json!([{"x": x, "y": y}]);
        self.cdp("Input.dispatchTouchEvent", &json!({"type": "touchStart", "touchPoints": point(from)}));
        for n in 1..=8 {
            let at = (from.0 + (to.0 - from.0) * n / 8, from.1 + (to.1 - from.1) * n / 8);
            self.cdp("Input.dispatchTouchEvent", &json!({"type": "touchMove", "touchPoints": point(at)}));
        }
        self.cdp("Input.dispatchTouchEvent", &json!({"type": "touchEnd", "touchPoints": []}));
    }

    /// A command of Chromium's own protocol, for what WebDriver has no word for.
    pub fn cdp(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// The middle of a cell of the first screen, counted from 0.
    pub fn cell(&self, col: u32, row: u32) -> (i64, i64) {
        let at = self.js(&format!(
            "const p = document.querySelector('.tile').tile.painter, box = p.space.getBoundingClientRect();
             return [Math.round(box.left + ({col} + 0.5) * p.cw), Math.round(box.top + (p.frame.top - p.frame.first + {row} + 0.5) * p.lh)]"
        ));
        (at[0].as_i64().expect("a number"), at[1].as_i64().expect("a number"))
    }

    /// What is selected, as it would be copied.
    pub fn copied(&self) -> Value {
        self.js("const data = new DataTransfer(), at = getSelection().anchorNode;
             const e = new ClipboardEvent('copy', {clipboardData: data, bubbles: true, cancelable: true});
             (at.nodeType === 1 ? at : at.parentElement).dispatchEvent(e);
             return data.getData('text/plain')")
    }

    pub fn set_size(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({"width": width, "height": height}));
    }

    /// Opens another tab and goes there; returns the handles of both.
    pub fn new_tab(&self) -> (String, String) {
        let old = self.get("/window");
        let new = self.post("/window/new", &json!({"type": "tab"}));
        let (old, new) = (old.as_str().unwrap_or_default(), new["handle"].as_str().unwrap_or_default());
        self.tab(new);
        (old.to_owned(), new.to_owned())
    }

    pub fn tab(&self, handle: &str) {
        self.post("/window", &json!({"handle": handle}));
    }

    /// Takes the stick as a person, to type.
    #[track_caller]
    pub fn take(&self) {
        self.wait("the stick", "const b = document.querySelector('.stick'); return b !== null && !b.hidden");
        let at = self.js("const b = document.querySelector('.stick').getBoundingClientRect(); return [Math.round(b.left + b.width / 2), Math.round(b.top + b.height / 2)]");
        let at = (at[0].as_i64().expect("a number"), at[1].as_i64().expect("a number"));
        self.drag(at, at);
        self.wait_text("you drive");
        self.wait("the focus", "return document.activeElement.className === 'hands'");
    }

    /// Cuts the connection of the first tile, as a bad network would.
    pub fn cut(&self) {
        self.js(
            "const { link } = document.querySelector('.tile').tile; window.cut = link.socket; link.cut()",
        );
    }

    /// Waits until that tile has another connection, and drives again.
    #[track_caller]
    pub fn wait_to_drive_again(&self) {
        self.wait(
            "another connection, and the stick",
            "const { link, name, driver } = document.querySelector('.tile').tile;
             return link.socket !== null && link.socket !== window.cut && driver === name",
        );
    }

    /// A picture of the page, kept beside the test's other files where TAPDECK_SHOTS says.
    pub fn shot(&self, name: &str) -> Vec<u8> {
        let picture = self.get("/screenshot");
        let bytes = tapdeck_core::base64::decode(picture.as_str().unwrap_or_default()).expect("base64");
        if let Some(folder) = std::env::var_os("TAPDECK_SHOTS") {
            let path = std::path::Path::new(&folder).join(format!("{name}.png"));
            std::fs::write(path, &bytes).expect("written");
        }
        bytes
    }

    /// What the page complained about.
    pub fn log(&self) -> Value {
        self.post("/se/log", &json!({"type": "browser"}))
    }
}

/// `tapdeck web`, gone with the test.
pub struct Web {
    child: Child,
    pub url: String,
    pub port: u16,
}

impl Web {
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let mut all = vec!["web"];
        all.extend(args);
        Self::run(home.tapdeck(&all))
    }

    /// The page of a command that is ready to start.
    pub fn run(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("a link");
        let url = url.trim().to_owned();
        let port = url
            .strip_prefix("http://127.0.0.1:")
            .and_then(|rest| rest.split('/').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no link: {url:?}"));
        Self { child, url, port }
    }

    /// What is behind `#token=`.
    pub fn token(&self) -> &str {
        let after = self.url.split("#token=").nth(1).expect("a token");
        after.split('&').next().expect("a token")
    }

    /// Ends it as Ctrl-C would, and says how it went.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        crate::support::signal(self.child.id(), rustix::process::Signal::INT);
        eventually("the end of tapdeck web", || self.child.try_wait().expect("a child").is_some());
        self.child.wait().expect("it has ended")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A detached session for the page to show, ended with the test.
pub struct Session<'a> {
    home: &'a Home,
    pub id: String,
}

impl<'a> Session<'a> {
    pub fn start(home: &'a Home, name: &str, command: &[&str]) -> Self {
        let mut args = vec!["run", "-d", "--name", name, "--"];
        args.extend(command);
        let out = home.run(&args);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self { home, id: String::from_utf8_lossy(&out.stdout).trim().to_owned() }
    }

    pub fn peek(&self) -> String {
        String::from_utf8_lossy(&self.home.run(["peek", &self.id]).stdout).into_owned()
    }

    #[track_caller]
    pub fn wait_text(&self, pattern: &str) {
        let out = self.home.run(["wait", &self.id, "--text", pattern]);
        assert!(out.status.success(), "{pattern}: {}", self.peek());
    }

    pub fn info(&self) -> Value {
        let all: Value = serde_json::from_slice(&self.home.run(["ls", "--json"]).stdout).expect("JSON");
        all.as_array()
            .into_iter()
            .flatten()
            .find(|s| s["id"] == self.id.as_str())
            .cloned()
            .unwrap_or_default()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = self.home.run(["kill", &self.id]);
    }
}

pub const SHELL: [&str; 3] = ["bash", "--norc", "--noprofile"];

/// Pages of a test's own at another port, served until the test ends.
pub struct Elsewhere {
    pub port: u16,
    listener: Option<std::net::TcpListener>,
}

impl Elsewhere {
    /// A place whose pages are not known yet.
    pub fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Self { port, listener: Some(listener) }
    }

    /// Serves these: path, kind and text.
    pub fn serve(&mut self, files: Vec<(&'static str, &'static str, String)>) {
        let listener = self.listener.take().expect("once");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
                let _ = reader.read_line(&mut line);
                let mut rest = String::new();
                while reader.read_line(&mut rest).is_ok_and(|n| n > 2) {
                    rest.clear();
                }
                let path = line.split(' ').nth(1).unwrap_or_default();
                let (status, kind, text) = match files.iter().find(|(known, ..)| *known == path) {
                    Some((_, kind, text)) => ("200 OK", *kind, &text[..]),
                    None => ("404 Not Found", "text/plain", ""),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    text.len()
                );
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
            }
        });
    }
}
