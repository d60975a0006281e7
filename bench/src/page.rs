//! The page in a real browser: how long a key takes to become a painted letter, and whether a flood
//! of output holds the tab up. Each beside the same done by the page alone, which is what the
//! browser itself costs on this machine.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::webdriver::{Driver, Kind};
use crate::{Options, Row, median, workload};

const FRAME_MS: f64 = 1000.0 / 60.0;
const FLOOD: usize = 100 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// A key is pressed at any time between two pictures; what counts is the moment after the picture
/// with its letter.
const KEYS: &str = r"
const done = arguments[arguments.length - 1], local = LOCAL, times = [];
const { hands, painter } = document.querySelector('.tile').tile;
const wait = (ms) => new Promise((ok) => setTimeout(ok, ms));
const painted = () => new Promise((ok) => requestAnimationFrame(() => {
  const behind = new MessageChannel(); behind.port1.onmessage = ok; behind.port2.postMessage(0);
}));
const changed = () => new Promise((ok) => {
  const seen = new MutationObserver(() => { seen.disconnect(); ok(); });
  seen.observe(painter.list, { childList: true, subtree: true, characterData: true });
});
(async () => {
  for (let n = 0; n < 120; n++) {
    await wait(40 + Math.random() * 40);
    const start = performance.now(), change = changed();
    if (local) painter.list.lastChild.append('x');
    else hands.area.dispatchEvent(new KeyboardEvent('keydown', { key: 'x', code: 'KeyX', bubbles: true, cancelable: true }));
    await change; await painted();
    times.push(performance.now() - start);
  }
  done(times.slice(20));
})();";

/// The times between pictures until the screen shows the end, or for so long where nothing is to
/// come.
const GAPS: &str = r"
const done = arguments[arguments.length - 1], still = STILL, gaps = [];
const { link, painter } = document.querySelector('.tile').tile, apply = painter.apply;
let frames = 0;
painter.apply = (frame) => { frames++; return apply.call(painter, frame); };
const start = performance.now();
let last = start;
const look = (at) => {
  const now = performance.now();
  gaps.push(now - last); last = now;
  if (still ? now - start > still : painter.list.textContent.includes('THE-END')) { painter.apply = apply; done({ gaps: gaps.slice(2), frames, ms: now - start }); }
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
if (!still) link.send('KEY', { keys: ['Enter'] });";

/// `tapdeck web` with a session of its own; both gone when this is dropped.
struct Page<'a> {
    tapdeck: &'a Path,
    folder: &'a Path,
    web: Child,
    session: String,
    url: String,
}

impl<'a> Page<'a> {
    fn start(tapdeck: &'a Path, folder: &'a Path, script: &str) -> Result<Self> {
        let command = |args: &[&str]| {
            let mut command = Command::new(tapdeck);
            command.env("XDG_RUNTIME_DIR", folder).env("XDG_STATE_HOME", folder).args(args);
            command.stdin(Stdio::null()).stderr(Stdio::inherit());
            command
        };
        let out = command(&["run", "-d", "--", "sh", "-c", script]).output()?;
        ensure!(out.status.success(), "no session: {:?}", out.status);
        let session = String::from_utf8(out.stdout)?.trim().to_owned();
        let mut web = command(&["web", &session]).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(web.stdout.take().context("no output")?).read_line(&mut url)?;
        Ok(Self { tapdeck, folder, web, session, url: url.trim().to_owned() })
    }

    /// Opens it, takes the stick, and waits until it drives and shows this.
    fn open(&self, browser: &Driver, text: &str) -> Result<()> {
        browser.post("/url", &json!({"url": "about:blank"}))?;
        browser.post("/url", &json!({"url": self.url}))?;
        let script = format!(
            "const stick = document.querySelector('.stick');
             if (stick?.hidden === false && stick.textContent === 'Take') stick.click();
             return document.body.innerText.includes('you drive') && document.querySelector('.rows').innerText.includes({})",
            json!(text)
        );
        let until = Instant::now() + PATIENCE;
        while browser.post("/execute/sync", &json!({"script": script, "args": []}))? != json!(true) {
            ensure!(Instant::now() < until, "the page does not show the session");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Until the size has settled.
        std::thread::sleep(Duration::from_millis(500));
        Ok(())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        let _ = self.web.kill();
        let _ = self.web.wait();
        let mut kill = Command::new(self.tapdeck);
        kill.env("XDG_RUNTIME_DIR", self.folder).args(["kill", &self.session]).stderr(Stdio::null());
        let _ = kill.status();
    }
}

/// Both tables; nothing where there is no browser.
pub fn measure(tapdeck: &Path, o: &Options, folder: &Path) -> Result<Option<(Vec<Row>, Vec<Row>)>> {
    let Ok(browser) = Driver::start(&folder.join("browser"), Kind::default()) else { return Ok(None) };
    let ask = |script: &str| browser.post("/execute/async", &json!({"script": script, "args": []}));
    let files = ["plain", "agent"].map(|kind| (kind, folder.join(format!("flood-{kind}"))));
    for (kind, file) in &files {
        workload::write(kind, FLOOD, file)?;
    }
    let (mut keys, mut gaps): ([Vec<f64>; 2], [Vec<Gaps>; 3]) = Default::default();
    for _ in 0..o.rounds.min(5) {
        let page = Page::start(tapdeck, folder, "stty raw -echo; printf READY; exec cat")?;
        page.open(&browser, "READY")?;
        keys[0].extend(numbers(&ask(&KEYS.replace("LOCAL", "false"))?));
        keys[1].extend(numbers(&ask(&KEYS.replace("LOCAL", "true"))?));
        gaps[2].push(Gaps::of(&ask(&GAPS.replace("STILL", "2000"))?));
        drop(page);
        for ((_, file), gaps) in files.iter().zip(&mut gaps) {
            let script = format!("echo READY; read go; cat '{}'; echo THE-END; sleep 1000", file.display());
            let page = Page::start(tapdeck, folder, &script)?;
            page.open(&browser, "READY")?;
            gaps.push(Gaps::of(&ask(&GAPS.replace("STILL", "0"))?));
        }
    }
    for (_, file) in &files {
        std::fs::remove_file(file)?;
    }
    let key_row = |name, mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(f64::NAN);
        (
            name,
            vec![
                ("p50", at(50)),
                ("p99", at(99)),
                ("p50 frames", at(50) / FRAME_MS),
                ("p99 frames", at(99) / FRAME_MS),
            ],
        )
    };
    let gap_row = |name, runs: &[Gaps]| {
        let m = |f: fn(&Gaps) -> f64| median(runs.iter().map(f));
        let worst = runs.iter().map(|g| g.longest).fold(0.0, f64::max);
        (
            name,
            vec![
                ("p50", m(|g| g.p50)),
                ("p99", m(|g| g.p99)),
                ("longest", m(|g| g.longest)),
                ("worst run", worst),
                ("seconds", m(|g| g.seconds)),
                ("frames/s", m(|g| g.frames / g.seconds)),
            ],
        )
    };
    let [typed, local] = keys;
    Ok(Some((
        vec![key_row("a session", typed), key_row("the page alone", local)],
        vec![
            gap_row("100 MB plain", &gaps[0]),
            gap_row("100 MB agent", &gaps[1]),
            gap_row("nothing", &gaps[2]),
        ],
    )))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Times between pictures, in milliseconds, and how long it all took.
struct Gaps {
    p50: f64,
    p99: f64,
    longest: f64,
    seconds: f64,
    /// Frames that the session sent.
    frames: f64,
}

impl Gaps {
    fn of(value: &Value) -> Self {
        let mut all = numbers(&value["gaps"]);
        all.sort_by(f64::total_cmp);
        let at = |n: usize| all.get(n).copied().unwrap_or(f64::NAN);
        Self {
            p50: at(all.len() / 2),
            p99: at(all.len() * 99 / 100),
            longest: at(all.len().saturating_sub(1)),
            frames: value["frames"].as_f64().unwrap_or(f64::NAN),
            seconds: value["ms"].as_f64().unwrap_or(f64::NAN) / 1e3,
        }
    }
}
