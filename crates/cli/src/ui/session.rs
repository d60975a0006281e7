//! A live session of another process, behind its socket: the tty wire's `attach` as a [`Link`], and
//! the list of sessions as a [`Registry`]. A view joins without claiming the stick, and never
//! resizes the session.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_core::{Offset, Time};
use tapdeck_host::backend::command_line;
use tapdeck_host::registry::{self, Listing};
use tapdeck_host::{Clock, SnapshotWatch, processes};
use tapdeck_proto::attach::{Asked, Said};
use tapdeck_proto::bus::{AgentState, Kill, Rename, Role};
use tapdeck_serve::client::{Attach, Attachment, ClientError, Incoming, connect_to, exit_of};
use tapdeck_serve::door::Address;
use tapdeck_term::Size;

use super::dash::{Entry, Registry};
use super::live::{Link, Live, News};
use crate::instructions::recorder_of;

/// How long a session may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often it is looked for new snapshots.
const LOOK: Duration = Duration::from_millis(500);
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

/// The snapshots in the recording that the session makes.
struct Snapshots {
    watch: SnapshotWatch,
    looked: Option<Time>,
}

/// Begins to watch a session. `outlives` says whether it goes on when this view is left.
///
/// # Errors
/// When it cannot be reached.
pub fn watch(listing: &Listing, name: &str, scrollback: usize, outlives: bool) -> Result<Live, ClientError> {
    let token = Some(listing.human_token.as_str());
    // Only beside a recording does it matter when a row was written.
    let rows = listing.recording.is_some();
    let attach = Attach::new(name).token(token).watch(true).rows(rows);
    let address = Address::Unix(listing.socket.clone());
    let (attachment, opened) = Attachment::open(&address, &attach)?;
    let own_name = if opened.name.is_empty() { name.to_owned() } else { opened.name.clone() };
    let snapshots = listing
        .recording
        .as_deref()
        .map(|path| Snapshots { watch: SnapshotWatch::new(PathBuf::from(path)), looked: None });
    let link = SessionLink {
        attachment,
        listing: listing.clone(),
        own_name,
        outlives,
        over: false,
        snapshots,
        clock: Clock::start(),
    };
    let size = Size::new(opened.cols.max(1), opened.rows.max(1));
    let mut live = Live::new(title(listing), size, scrollback, Box::new(link));
    live.hear(News::Holder(opened.driver));
    live.hear(state_of(opened.state));
    live.hear(News::Picture { len: opened.dump, offset: Offset(opened.offset) });
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

fn state_of(state: AgentState) -> News {
    News::State(state.name().parse().unwrap_or_default())
}

impl SessionLink {
    fn control(&mut self, message: Said, news: &mut Vec<News>) {
        match message {
            Said::Resize { cols, rows } => news.push(News::Resize(Size::new(cols, rows))),
            Said::Driver { driver: holder, .. } => news.push(News::Holder(holder)),
            Said::State { state, .. } => news.push(state_of(state)),
            Said::Denied { driver: holder, error } => news.push(News::Denied(
                match &holder {
                    Some(holder) => format!("{holder} drives"),
                    None if error.is_empty() => "refused".into(),
                    None => error,
                },
                holder,
            )),
            Said::Gap(gap) => {
                news.push(News::Resize(Size::new(gap.cols, gap.rows)));
                news.push(News::Picture { len: gap.dump, offset: Offset(gap.to) });
            }
            Said::Rows { rows } => news.push(News::Drawn(rows)),
            Said::Recording { error, .. } => news.push(News::RecordingFailed(error)),
            Said::Marked => news.push(News::Told("marked".to_owned())),
            Said::Paused { paused, by } => {
                news.push(News::Paused(paused, Some(by).filter(|by| *by != self.own_name)));
            }
            Said::Error { about: Some(about), message } if matches!(&*about, "mark" | "pause") => {
                news.push(News::Refused(message));
            }
            Said::Exit(exit) => {
                self.over = true;
                news.extend(exit.recording_error.clone().map(News::RecordingFailed));
                news.push(News::Ended(exit_of(&exit)));
            }
            Said::Error { message, .. } => news.push(News::Denied(message, None)),
            _ => {}
        }
    }

    /// Takes the snapshots that were recorded since the last look.
    fn look_for_snapshots(&mut self, news: &mut Vec<News>) {
        let Some(snapshots) = &mut self.snapshots else { return };
        let now = self.clock.now().mono;
        if snapshots.looked.is_some_and(|at| now < at + LOOK) {
            return;
        }
        snapshots.looked = Some(now);
        news.extend(snapshots.watch.look().into_iter().map(News::Snapshot));
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
                        Incoming::Control(control) => self.control(control, news),
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
        self.attachment.control(&Asked::Take).map_err(|e| e.to_string())
    }

    fn release(&mut self) {
        // A session that cannot be told so has let go of it by itself.
        let _ = self.attachment.control(&Asked::Release);
    }

    fn mark(&mut self, label: &str) -> Result<(), String> {
        let mark = Asked::Mark { label: label.to_owned() };
        self.attachment.control(&mark).map_err(|e| e.to_string())
    }

    fn pause(&mut self) -> Result<(), String> {
        self.attachment.control(&Asked::Pause { pause: None }).map_err(|e| e.to_string())
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

    fn look_every(&self) -> Option<Duration> {
        (self.snapshots.is_some() && !self.over).then_some(LOOK)
    }
}

/// Whether a live session of this user writes this recording.
pub fn is_being_recorded(path: &Path) -> bool {
    recorder_of(path).is_some()
}

/// Has a session's program ended, as `tapdeck kill` would.
fn end(listing: &Listing) -> Result<(), ClientError> {
    let mut bus = connect_to(listing, "view", Role::Human)?;
    bus.request(&Kill::default(), ANSWER).map(drop)
}

/// Starts a program, or the user's shell without one, as a detached session. Returns the id of the
/// session, or the reason why it could not be started.
pub type Start = Box<dyn Fn(Vec<String>) -> Result<String, String>>;

/// The live sessions of this user.
pub struct Sessions {
    /// Rows kept above each screen.
    scrollback: usize,
    start: Start,
    found: Vec<Listing>,
    /// By id, whether this process runs in a session.
    own: HashMap<String, bool>,
}

impl Sessions {
    /// Nothing found yet.
    pub fn new(scrollback: usize, start: Start) -> Self {
        Self { scrollback, start, found: Vec::new(), own: HashMap::new() }
    }
}

impl Registry for Sessions {
    fn list(&mut self) -> Result<Vec<Entry>, String> {
        let failed = |e: std::io::Error| format!("cannot list sessions: {e}");
        let folder = registry::folder().map_err(failed)?;
        let mut found = registry::listed(&folder).map_err(failed)?;
        found.retain(|listing| registry::is_alive(listing.pid));
        // The one that this very dashboard runs in would show itself for ever.
        let exported = std::env::var("TAPDECK_SESSION").ok();
        found.retain(|listing| {
            let runs_in =
                || exported.as_ref() == Some(&listing.id) || processes::shows_on_terminal_of(listing.pid);
            !*self.own.entry(listing.id.clone()).or_insert_with(runs_in)
        });
        self.own.retain(|id, own| *own || found.iter().any(|listing| listing.id == *id));
        self.found = found;
        let entry = |l: &Listing| Entry {
            id: l.id.clone(),
            name: l.name.clone(),
            title: title(l),
            command: l.command.join(" "),
        };
        Ok(self.found.iter().map(entry).collect())
    }

    fn open(&mut self, id: &str) -> Result<Live, String> {
        let listing =
            self.found.iter().find(|l| l.id == id).ok_or_else(|| format!("{id}: no such session"))?;
        watch(listing, "dash", self.scrollback, true).map_err(|e| format!("{}: {e}", title(listing)))
    }

    fn start(&mut self, line: &str) -> Result<String, String> {
        (self.start)(command_line(line))
    }

    fn rename(&mut self, id: &str, name: &str) -> Result<(), String> {
        let listing = self.found.iter().find(|l| l.id == id).ok_or("the session is gone")?;
        let renamed = connect_to(listing, "dash", Role::Human)
            .and_then(|mut bus| bus.request(&Rename { name: name.to_owned() }, ANSWER).map(drop));
        renamed.map_err(|e| format!("cannot rename {}: {e}", title(listing)))
    }
}
