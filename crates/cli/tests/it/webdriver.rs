//! Chromium without a window, driven by WebDriver: the few requests that tests and benchmarks need,
//! on nothing but the standard library.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// One request on a connection of its own. Headers are lines without their ends.
pub fn http(port: u16, method: &str, path: &str, headers: &[&str], body: &str) -> std::io::Result<Answer> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    (&stream).write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            break;
        }
    }
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let length = head
        .lines()
        .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() })
}

/// What kind of browser it is to be.
#[derive(Clone, Copy, Default)]
pub struct Kind {
    /// A telephone: a small screen, fingers and no mouse.
    pub phone: bool,
    /// Self-signed certificates are accepted.
    pub trusting: bool,
}

/// A browser, gone when this is dropped.
pub struct Driver {
    child: Child,
    port: u16,
    session: String,
}

impl Driver {
    /// Starts one that keeps what it keeps in this folder.
    pub fn start(folder: &Path, kind: Kind) -> io::Result<Self> {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env("HOME", folder)
            .spawn()?;
        let Some(out) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut lines = BufReader::new(out).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("ChromeDriver was started successfully on port ")?
                .trim_end_matches('.')
                .parse()
                .ok()
        });
        // A full pipe must not stop it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let mut driver = Self { child, port: port.unwrap_or(0), session: String::new() };
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let mut args = vec![
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1100,700",
            &profile,
        ];
        if kind.trusting {
            args.push("--ignore-certificate-errors");
        }
        let mut options = json!({"args": args});
        if kind.phone {
            let metrics =
                json!({"width": 390, "height": 740, "pixelRatio": 2, "touch": true, "mobile": true});
            options["mobileEmulation"] = json!({"deviceMetrics": metrics});
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": 300_000},
        }}});
        let made = driver.ask("POST", "/session", &wanted.to_string())?;
        made["sessionId"].as_str().unwrap_or_default().clone_into(&mut driver.session);
        Ok(driver)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<Value> {
        let host = format!("Host: 127.0.0.1:{}", self.port);
        let headers = [&host[..], "Content-Type: application/json", "Connection: close"];
        let answer = http(self.port, method, path, &headers, body)?;
        let value: Value = serde_json::from_str(&answer.body)?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("{method} {path}: {value}")));
        }
        Ok(value["value"].clone())
    }

    /// A command of this session.
    pub fn post(&self, path: &str, body: &Value) -> io::Result<Value> {
        self.ask("POST", &format!("/session/{}{path}", self.session), &body.to_string())
    }

    /// A question about it.
    pub fn get(&self, path: &str) -> io::Result<Value> {
        self.ask("GET", &format!("/session/{}{path}", self.session), "")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", &format!("/session/{}", self.session), "");
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
