//! What a call does to sessions: each is a request or two on the session's bus.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::Time;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::{
    Contents, Explain, Info, InfoWanted, Key, Kill, Release, Resize, Resized, Role, Snap, Status, Take,
    Taken, Turns, Typing, WhichTurn,
};
use tapdeck_term::printable;

use super::TEXT;
use super::call::{Call, Refusal};
use crate::client::{
    ANSWER, Bus, Choice, ClientError, Described, Said, alive, answer, ask, connect_to, connect_to_watch,
    describe_all, has_ended, pick,
};

/// How long a frame full of rows that scrolled away may take.
const SCROLLBACK: Duration = Duration::from_secs(30);
/// The largest picture, in bytes.
const PICTURE: usize = 4 << 20;
/// The time between two attempts to type to a program that does not read.
const RETRY: Duration = Duration::from_millis(20);
/// How long a program may not read before typing fails.
const UNREAD: Duration = Duration::from_secs(10);
/// The most sticks that clients keep, and for how long one is kept unused.
const KEPT: usize = 64;
const UNUSED: Duration = Duration::from_secs(600);

/// The client's credential and name, and the session's id.
type StickKey = (String, String, String);

/// A connection that has the stick.
struct Kept {
    used: Time,
    bus: Arc<Mutex<Bus>>,
    /// Ends it when the client's credential is revoked.
    watcher: tokio::task::AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// The connections of clients that keep the stick between calls.
#[derive(Default)]
pub(super) struct Sticks(Mutex<HashMap<StickKey, Kept>>);

impl Sticks {
    fn all(&self) -> MutexGuard<'_, HashMap<StickKey, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &StickKey, now: Time) -> Option<Arc<Mutex<Bus>>> {
        let mut all = self.all();
        all.retain(|_, kept| now.since(kept.used) < UNUSED);
        let kept = all.get_mut(key)?;
        kept.used = now;
        Some(Arc::clone(&kept.bus))
    }

    fn keep(&self, key: StickKey, kept: Kept) {
        let mut all = self.all();
        let oldest = all.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest.filter(|_| all.len() >= KEPT) {
            all.remove(&oldest);
        }
        all.insert(key, kept);
    }

    fn drop(&self, key: &StickKey) {
        self.all().remove(key);
    }
}

/// A screen, in words.
pub(super) struct ShownScreen {
    pub(super) about: String,
    pub(super) rows: String,
}

impl Call {
    /// Returns the sessions that the client may see.
    pub(super) fn sessions(&self) -> Result<Vec<Listing>, Refusal> {
        let (_, mut found) = alive().map_err(|e| Refusal::new(format!("cannot list sessions: {e}")))?;
        let patterns = &self.shared.options.sessions;
        found.retain(|listing| patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(listing)));
        Ok(found)
    }

    /// Finds a session by its id, its name or the beginning of one; without a word, the only one.
    pub(super) fn find(&self, which: Option<&str>) -> Result<Listing, Refusal> {
        Ok(pick(self.sessions()?, which.filter(|which| !which.is_empty()), has_ended)?)
    }

    /// Returns what all sessions say of themselves.
    pub(super) fn describe(&self) -> Result<Value, Refusal> {
        let listings = self.sessions()?;
        let sessions: Vec<Value> =
            describe_all(&listings, &self.caller.name).into_iter().map(described).collect();
        Ok(json!({ "sessions": sessions }))
    }

    /// Connects to a session as an observer.
    pub(super) fn watch(&self, listing: &Listing) -> Result<Bus, Refusal> {
        Ok(connect_to(listing, &self.caller.name, Role::Observer)?)
    }

    /// Does something as a bot that may type, over the connection that holds the stick if there is
    /// one.
    pub(super) fn drive<T>(
        &self,
        listing: &Listing,
        work: impl FnOnce(&mut Bus) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let key = self.stick_key(listing);
        let Some(kept) = self.shared.sticks.find(&key, self.shared.clock.now().mono) else {
            let mut bus = connect_to_watch(listing, &self.caller.name, Role::Bot)?;
            return self.while_called(&mut bus, work);
        };
        let done = match kept.try_lock() {
            Ok(mut bus) => self.while_called(&mut bus, work),
            Err(TryLockError::Poisoned(bus)) => self.while_called(&mut bus.into_inner(), work),
            Err(TryLockError::WouldBlock) => {
                return Err(Refusal::new("another call of yours drives this session: wait for it to end"));
            }
        };
        if done.as_ref().is_err_and(|refusal| refusal.is_gone) {
            self.shared.sticks.drop(&key);
        }
        done
    }

    fn stick_key(&self, listing: &Listing) -> StickKey {
        let (credential, name) = self.caller.key();
        (credential, name, listing.id.clone())
    }

    /// Takes the stick and keeps it until it is released.
    pub(super) fn take(&self, which: Option<&str>) -> Result<Taken, Refusal> {
        let listing = self.find(which)?;
        let key = self.stick_key(&listing);
        let now = self.shared.clock.now().mono;
        if self.shared.sticks.find(&key, now).is_some() {
            return self.drive(&listing, |bus| Ok(bus.request(&Take, ANSWER)?));
        }
        let mut bus = connect_to_watch(&listing, &self.caller.name, Role::Bot)?;
        let taken = bus.request(&Take, ANSWER)?;
        let (shared, caller, gone) = (Arc::downgrade(&self.shared), self.caller.clone(), key.clone());
        let watcher = tokio::runtime::Handle::current().spawn(async move {
            caller.revoked().await;
            if let Some(shared) = shared.upgrade() {
                shared.sticks.drop(&gone);
            }
        });
        let bus = Arc::new(Mutex::new(bus));
        self.shared.sticks.keep(key, Kept { used: now, bus, watcher: watcher.abort_handle() });
        Ok(taken)
    }

    /// Gives up the stick that [`Call::take`] took.
    pub(super) fn release(&self, which: Option<&str>) -> Result<(), Refusal> {
        let listing = self.find(which)?;
        let key = self.stick_key(&listing);
        if self.shared.sticks.find(&key, self.shared.clock.now().mono).is_none() {
            return Err(Refusal::new("you do not hold the stick of this session"));
        }
        let released = self.drive(&listing, |bus| Ok(bus.request(&Release, ANSWER)?));
        self.shared.sticks.drop(&key);
        released.map(drop)
    }

    /// Types. Returns the offset in the program's output before its answer.
    pub(super) fn type_in(&self, which: Option<&str>, typing: Typing) -> Result<u64, Refusal> {
        let listing = self.find(which)?;
        let key = Key::Typed(Typing { confirm: true, ..typing });
        let until = self.shared.clock.now().mono + UNREAD;
        self.drive(&listing, |bus| {
            // The program may answer before the session confirms.
            let before = bus.request(&InfoWanted::Brief, ANSWER)?.status.seq;
            loop {
                match bus.request(&key, ANSWER) {
                    Ok(_) => return Ok(before),
                    Err(ClientError::Denied(why))
                        if why.contains("is not reading")
                            && !self.is_cancelled()
                            && self.shared.clock.now().mono < until =>
                    {
                        bus.next(Some(RETRY))?;
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        })
    }

    /// Submits a prompt, and waits until the program has answered it or asks back.
    pub(super) fn ask(&self, which: Option<&str>, text: &str, within: Duration) -> Result<Value, Refusal> {
        let listing = self.find(which)?;
        let asked = self.drive(&listing, |bus| Ok(ask(bus, text, within)?))?;
        let answer = asked.answer.as_deref();
        Ok(json!({
            "outcome": asked.outcome.name(),
            "answer": answer.map(bounded),
            "turn": asked.turn_id,
            "truncated": asked.truncated || answer.is_some_and(|answer| answer.len() > TEXT),
            "interrupted": asked.interrupted,
            "state": asked.state.name(),
            "question": asked.question,
            "evidence": asked.evidence,
        }))
    }

    /// Answers the question that a program asks.
    pub(super) fn answer(&self, which: Option<&str>, choice: &Choice) -> Result<Value, Refusal> {
        let listing = self.find(which)?;
        let answered = self.drive(&listing, |bus| Ok(answer(bus, choice, None)?))?;
        serde_json::to_value(answered).map_err(|e| Refusal::new(e.to_string()))
    }

    /// Ends a program, or sends it a signal. This needs the stick, which a person keeps.
    pub(super) fn kill(&self, which: Option<&str>, signal: Option<String>) -> Result<String, Refusal> {
        let listing = self.find(which)?;
        self.drive(&listing, |bus| {
            bus.request(&Take, ANSWER)?;
            bus.request(&Kill { signal }, ANSWER)?;
            Ok(())
        })?;
        Ok(listing.id)
    }

    /// Sets the size of a session's terminal. This needs the stick, which a person keeps.
    pub(super) fn resize(&self, which: Option<&str>, size: Resize) -> Result<Resized, Refusal> {
        let listing = self.find(which)?;
        self.drive(&listing, |bus| {
            bus.request(&Take, ANSWER)?;
            Ok(bus.request(&size, ANSWER)?)
        })
    }

    /// Reads a session's screen, with so many rows of its scrollback, or the rows that were written
    /// since an offset.
    pub(super) fn screen(
        &self,
        which: Option<&str>,
        scrollback: usize,
        since: Option<u64>,
    ) -> Result<ShownScreen, Refusal> {
        let listing = self.find(which)?;
        let mut bus = self.watch(&listing)?;
        let info = bus.request(&InfoWanted::Full, ANSWER)?;
        let contents = info.contents.clone().unwrap_or_default();
        let above = scrollback.min(contents.scrollback);
        let rows = if above == 0 && since.is_none() {
            contents.rows.clone()
        } else {
            let asked = Snap { scrollback: since.is_none(), since, ..Snap::default() };
            let mut lines = bus.request(&asked, SCROLLBACK)?.lines.unwrap_or_default();
            let keep = if since.is_some() { lines.len() } else { above + contents.rows.len() };
            lines.drain(..lines.len().saturating_sub(keep));
            lines
        };
        Ok(ShownScreen { about: about_screen(&listing, &info, &contents), rows: joined(&rows) })
    }

    /// Draws a session's screen as an SVG picture.
    pub(super) fn picture(&self, which: Option<&str>) -> Result<(Listing, String), Refusal> {
        let listing = self.find(which)?;
        let draw = self.shared.options.draw.as_ref();
        let draw =
            draw.ok_or_else(|| Refusal::new("this server draws no pictures: read the screen as text"))?;
        let screen = self.watch(&listing)?.request(&Snap { ansi: true, ..Snap::default() }, ANSWER)?;
        let rows = screen.ansi.ok_or_else(|| Refusal::new("the screen is too large for a picture"))?;
        let svg = draw(screen.cols, screen.rows_n, rows.join("\r\n").as_bytes());
        if svg.len() > PICTURE {
            return Err(Refusal::new("the picture is too large: read the screen as text"));
        }
        Ok((listing, svg))
    }

    /// Lists the newest turns of a session, with the beginning of what was asked.
    pub(super) fn turns(&self, which: Option<&str>, limit: u64) -> Result<Value, Refusal> {
        let listing = self.find(which)?;
        let turns = self.watch(&listing)?.request(&Turns { whole: true, limit: Some(limit) }, ANSWER)?;
        let turns: Vec<Value> = turns
            .iter()
            .map(|turn| {
                let input = turn.detail.as_ref().map_or("", |detail| detail.input.as_str());
                let answer = turn.detail.as_ref().map_or(0, |detail| detail.text.len());
                json!({
                    "number": turn.turn_id.rsplit(':').next().and_then(|n| n.parse::<u64>().ok()),
                    "asked": shortened(input, 200),
                    "answer_bytes": answer,
                    "ended_ms": turn.timestamp,
                    "interrupted": turn.interrupted,
                    "truncated": turn.truncated,
                })
            })
            .collect();
        Ok(json!({ "session": listing.id, "turns": turns }))
    }

    /// Explains the state of a session's program.
    pub(super) fn explain(&self, which: Option<&str>) -> Result<Value, Refusal> {
        let listing = self.find(which)?;
        let explained = self.watch(&listing)?.request(&Explain, ANSWER)?;
        serde_json::to_value(explained).map_err(|e| Refusal::new(e.to_string()))
    }

    /// Reads one turn whole: by default the last.
    pub(super) fn turn(&self, which: Option<&str>, number: Option<u64>) -> Result<Value, Refusal> {
        let listing = self.find(which)?;
        let turn = self.watch(&listing)?.request(&WhichTurn { number, ..WhichTurn::default() }, ANSWER)?;
        let detail = turn.detail.as_ref();
        let text = detail.map_or("", |detail| detail.text.as_str());
        let asked = detail.map_or("", |detail| detail.input.as_str());
        Ok(json!({
            "turn": turn.turn_id,
            "asked": bounded(asked),
            "answer": bounded(text),
            "interrupted": turn.interrupted,
            "truncated": turn.truncated || text.len() > TEXT,
        }))
    }
}

fn described(session: Described) -> Value {
    let about = session.about;
    let mut out = json!({
        "session": about.name.as_ref().unwrap_or(&about.id),
        "id": about.id,
        "command": about.command,
        "folder": about.cwd,
    });
    let more = match session.said {
        Said::Status(status) => status_of(&status),
        Said::Silent { state, error } => json!({ "state": state, "error": error }),
    };
    if let (Some(out), Value::Object(more)) = (out.as_object_mut(), more) {
        out.extend(more);
    }
    out
}

fn status_of(status: &Status) -> Value {
    json!({
        "state": status.state.name(),
        "agent": status.agent,
        "agent_state": status.agent_state.name(),
        "driver": status.driver,
        "clients": status.clients.iter().map(|client| &client.name).collect::<Vec<_>>(),
        "size": format!("{}x{}", status.cols, status.rows_n),
        "title": status.title,
        "turns": status.turns,
        "idle_ms": status.idle_ms,
        "exit": status.exit,
        "recording": status.recording,
        "recording_error": status.recording_error,
    })
}

/// Says what a model should know beside the rows.
fn about_screen(listing: &Listing, info: &Info, contents: &Contents) -> String {
    let status = &info.status;
    let mut out = String::new();
    let name = listing.name.as_ref().unwrap_or(&listing.id);
    // Memory takes everything, so writing cannot fail.
    let _ = write!(out, "session {name} (id {}), {}x{}", listing.id, status.cols, status.rows_n);
    let _ = write!(out, ", {}", status.state.name());
    if let Some(exit) = &status.exit {
        let _ = write!(out, ", exit code {}", exit.code);
    }
    let _ = write!(out, ", agent state {}", status.agent_state.name());
    let _ = match &status.driver {
        Some(driver) => write!(out, ", driver {driver}"),
        None => write!(out, ", no driver"),
    };
    let _ = write!(out, ", cursor at row {} column {}", contents.cy + 1, contents.cx + 1);
    let _ = write!(out, ", {} rows of scrollback", contents.scrollback);
    if contents.alternate {
        out.push_str(", alternate screen");
    }
    let _ = write!(out, ", seq {}", status.seq);
    if !status.title.is_empty() {
        let _ = write!(out, ", title {:?}", shortened(&status.title, 200));
    }
    printable(&out)
}

/// Joins rows without the empty ones at the end. Of a longer text than fits, the end is kept.
fn joined(rows: &[String]) -> String {
    let used = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |i| i + 1);
    let mut size = 0;
    let fits = rows[..used].iter().rev().take_while(|row| {
        size += row.len() + 1;
        size <= TEXT
    });
    let first = used - fits.count();
    let mut out = String::new();
    if first > 0 {
        let _ = writeln!(out, "[{first} older rows left out]");
    }
    for row in &rows[first..used] {
        out.push_str(&printable(row));
        out.push('\n');
    }
    out
}

/// The beginning of a text, on one line.
pub(super) fn shortened(text: &str, chars: usize) -> String {
    let line = printable(text.lines().next().unwrap_or_default());
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// A text of several lines, without what could act, cut to what a client gets at most.
pub(super) fn bounded(text: &str) -> String {
    tapdeck_term::printable_lines(&text[..text.floor_char_boundary(TEXT)])
}
