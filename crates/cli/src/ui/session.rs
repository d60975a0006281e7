//! A live session of another process, behind its socket: the wire's `attach` as a [`Link`], and the list of sessions as
//! a [`Registry`]. A view joins without claiming the stick, and never resizes: it shows what is there.

use std::fs::File;
use std::io::BufReader;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::Exit;
use tapdeck_host::registry::{self, Listing};
use tapdeck_host::{Clock, sidecar, signals};
use tapdeck_serve::client::{Attach, Attachment, ClientError, Incoming, connect_to};
use tapdeck_serve::door::Address;
use tapdeck_tape::{Moment, snapshots_of};
use tapdeck_term::Size;

use super::dash::Registry;
use super::live::{Link, Live, News};

/// How long a session may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often it is looked for new snapshots.
const LOOK_NS: u64 = 500_000_000;
/// Keys that wait for a program that does not read.
const MAX_WAITING: usize = 4 << 20;

/// The way to a session.
struct SessionLink {
    attachment: Attachment,
    listing: Listing,
    own_name: String,
    outlives: bool,
    /// The program has ended, so that the end of the connection is no loss.
    over: bool,
    snapshots: Option<Snapshots>,
    clock: Clock,
}

/// The list of snapshots beside the recording that the session makes.
struct Snapshots {
    path: PathBuf,
    len: u64,
    known: usize,
    looked_ns: Option<u64>,
}

/// Begins to watch a session. `outlives` says whether it goes on when this view is left.
///
/// # Errors
/// When it cannot be reached.
pub fn watch(listing: &Listing, name: &str, scrollback: usize, outlives: bool) -> Result<Live, ClientError> {
    let token = Some(listing.human_token.as_str());
    // Only beside a recording does it matter when a row was written.
    let rows = listing.recording.is_some();
    let attach = Attach { name, token, watch: true, rows, ..Attach::default() };
    let address = Address::Unix(listing.socket.clone());
    let (attachment, opened) = Attachment::open(&address, &attach)?;
    let own_name = opened["name"].as_str().unwrap_or(name).to_owned();
    let snapshots = listing.recording.as_deref().map(|path| Snapshots {
        path: sidecar(Path::new(path), "snapshots.jsonl"),
        len: 0,
        known: 0,
        looked_ns: None,
    });
    let link = SessionLink {
        attachment,
        listing: listing.clone(),
        own_name,
        outlives,
        over: false,
        snapshots,
        clock: Clock::start(),
    };
    let size = size_of(&opened).unwrap_or_default();
    let mut live = Live::new(title(listing), size, scrollback, Box::new(link));
    live.hear(News::Driver(opened["driver"].as_str().map(str::to_owned)));
    live.hear(state_of(&opened));
    live.hear(dump_begins(&opened, "offset"));
    Ok(live)
}

/// What a session is called: its name, or its command.
fn title(listing: &Listing) -> String {
    match &listing.name {
        Some(name) => name.clone(),
        None => {
            let program = listing.command.first().map_or("", |c| c.rsplit('/').next().unwrap_or(c));
            format!("{} {program}", listing.id)
        }
    }
}

/// Bytes that redraw the screen come before the stream goes on at this offset.
fn dump_begins(control: &Value, key: &str) -> News {
    let number = |key: &str| control.get(key).and_then(Value::as_u64).unwrap_or(0);
    News::Picture { len: usize::try_from(number("dump")).unwrap_or(0), offset: number(key) }
}

/// Where rows of the picture end, and their last writes. What makes no sense is left out: those rows count as new.
fn rows_of(control: &Value) -> Vec<(usize, u64)> {
    let rows = control.get("rows").and_then(Value::as_array);
    let row = |row: &Value| Some((usize::try_from(row.get(0)?.as_u64()?).ok()?, row.get(1)?.as_u64()?));
    rows.into_iter().flatten().filter_map(row).collect()
}

fn size_of(control: &Value) -> Option<Size> {
    let side = |key: &str| control.get(key).and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
    Some(Size::new(side("cols")?, side("rows")?))
}

/// Sessions of another version may know of none, or of others.
fn state_of(control: &Value) -> News {
    let name = control.get("state").and_then(Value::as_str).unwrap_or_default();
    News::State(name.parse().unwrap_or_default())
}

fn exit_of(control: &Value) -> Exit {
    let code = control.get("code").and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    let signal = control.get("signal").and_then(Value::as_str);
    match signal.map(|name| signals::number(name).or_else(|| name.parse().ok())) {
        Some(signal) => Exit::Signal(signal.unwrap_or(code - 128)),
        None => Exit::Code(code),
    }
}

impl SessionLink {
    fn control(&mut self, control: &Value, news: &mut Vec<News>) {
        let text = |key: &str| control.get(key).and_then(Value::as_str).map(str::to_owned);
        match control.get("type").and_then(Value::as_str).unwrap_or_default() {
            "resize" => news.extend(size_of(control).map(News::Resize)),
            "driver" => news.push(News::Driver(text("driver"))),
            "state" => news.push(state_of(control)),
            "denied" => news.push(News::Denied(
                match text("driver") {
                    Some(driver) => format!("{driver} drives"),
                    None => text("error").unwrap_or_else(|| "refused".into()),
                },
                text("driver"),
            )),
            "gap" => {
                news.extend(size_of(control).map(News::Resize));
                news.push(dump_begins(control, "to"));
            }
            "rows" => news.push(News::Drawn(rows_of(control))),
            "exit" => {
                self.over = true;
                news.push(News::Ended(exit_of(control)));
            }
            "error" => news.extend(text("message").map(|why| News::Denied(why, None))),
            _ => {}
        }
    }

    /// Reads the list of snapshots when it has grown.
    fn look_for_snapshots(&mut self, news: &mut Vec<News>) {
        let Some(snapshots) = &mut self.snapshots else { return };
        let now = self.clock.now().mono_ns;
        if snapshots.looked_ns.is_some_and(|at| now < at + LOOK_NS) {
            return;
        }
        snapshots.looked_ns = Some(now);
        let Ok(file) = File::open(&snapshots.path) else { return };
        let len = file.metadata().map_or(0, |m| m.len());
        if len == snapshots.len {
            return;
        }
        let all: Vec<Moment> = snapshots_of(BufReader::new(file), 0).unwrap_or_default();
        news.extend(all.iter().skip(snapshots.known).cloned().map(News::Snapshot));
        (snapshots.len, snapshots.known) = (len, all.len());
    }
}

impl Link for SessionLink {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.attachment.wants().0)
    }

    fn news(&mut self, news: &mut Vec<News>) {
        self.look_for_snapshots(news);
        if self.over {
            return;
        }
        let received = self.attachment.flush().and_then(|()| self.attachment.receive());
        match received {
            Ok(incoming) => {
                for item in incoming {
                    match item {
                        Incoming::Output(bytes) => news.push(News::Output(bytes)),
                        Incoming::Control(control) => self.control(&control, news),
                        Incoming::End if self.over => {}
                        Incoming::End => news.push(News::Gone("the session is gone".into())),
                    }
                }
            }
            Err(e) => news.push(News::Gone(e.to_string())),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.attachment.waiting() > MAX_WAITING {
            return Err("the program does not read what is typed".into());
        }
        self.attachment.type_bytes(bytes).map_err(|e| e.to_string())
    }

    fn take(&mut self) -> Result<(), String> {
        self.attachment.control(&json!({"type": "take"})).map_err(|e| e.to_string())
    }

    fn release(&mut self) {
        // A session that cannot be told so has let go of it by itself.
        let _ = self.attachment.control(&json!({"type": "release"}));
    }

    fn end(&mut self) {
        // It may be over already, which is just what was wanted.
        let _ = end(&self.listing);
    }

    fn outlives(&self) -> bool {
        self.outlives
    }

    fn own_name(&self) -> &str {
        &self.own_name
    }

    fn due_ns(&self) -> Option<u64> {
        (self.snapshots.is_some() && !self.over).then_some(LOOK_NS)
    }
}

/// Has a session's program ended, as `tapdeck kill` would.
fn end(listing: &Listing) -> Result<(), ClientError> {
    let mut bus = connect_to(listing, "view", "human")?;
    bus.ask("KILL", "{}", ANSWER).map(|_| ())
}

/// The live sessions of this user.
pub struct Sessions {
    /// Rows kept above each screen.
    pub scrollback: usize,
    found: Vec<Listing>,
}

impl Sessions {
    /// Nothing found yet.
    pub fn new(scrollback: usize) -> Self {
        Self { scrollback, found: Vec::new() }
    }
}

impl Registry for Sessions {
    fn list(&mut self) -> Result<Vec<String>, String> {
        let failed = |e: std::io::Error| format!("cannot list sessions: {e}");
        let folder = registry::folder().map_err(failed)?;
        let mut found = registry::listed(&folder).map_err(failed)?;
        found.retain(|listing| registry::is_alive(listing.pid));
        self.found = found;
        // The one that this very dashboard runs in would show itself for ever.
        let own = std::env::var("TAPDECK_SESSION").ok();
        let ids = self.found.iter().map(|l| l.id.clone());
        Ok(ids.filter(|id| Some(id) != own.as_ref()).collect())
    }

    fn open(&mut self, id: &str) -> Result<Live, String> {
        let listing =
            self.found.iter().find(|l| l.id == id).ok_or_else(|| format!("{id}: no such session"))?;
        watch(listing, "dash", self.scrollback, true).map_err(|e| format!("{}: {e}", title(listing)))
    }
}
