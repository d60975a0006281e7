//! Reads and searches recordings: their lines as a terminal showed them, and their turns. A
//! recording may come from a stranger, so a process of its own reads it, and this one only gets its
//! text.

use std::io::{self, Read as _, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use regex::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tapdeck_core::Time;
use tapdeck_host::Source;
use tapdeck_proto::page::ListedRecording;
use tapdeck_tape::export::{LinesAs, lines};

use super::call::{Call, Refusal};
use super::sessions::shortened;
use super::{Reader, TEXT};
use crate::recordings::{find, list};

/// Rows that the reader keeps in memory.
const ROWS: usize = 20_000;
/// The most text of a recording that is looked at, and the longest line.
const READ: u64 = 512 << 20;
const LINE: usize = 16 * 1024;
/// How long one call may read.
const TIME: Duration = Duration::from_secs(45);
/// The most recordings that one call searches.
const SEARCHED: usize = 200;
/// How often a call looks whether it is cancelled.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Writes the text of a recording: its lines, and between them its turns of the alternate screen.
///
/// # Errors
/// When it cannot be read, or the writer fails.
pub fn write_recording(path: &Path, mut out: impl Write) -> io::Result<()> {
    let source = Source::find(path, None, None).map_err(io::Error::other)?;
    let mut reader = source.open().map_err(io::Error::other)?;
    let turns = source.turns().map_err(io::Error::other)?;
    lines(LinesAs::Txt, &mut *reader, turns, ROWS, &mut out).map_err(io::Error::other)?;
    out.flush()
}

/// Lines of a recording.
pub(super) struct ReadLines {
    /// The number of the first one, from 1.
    pub(super) from: u64,
    pub(super) count: u64,
    /// There are more.
    pub(super) is_cut: bool,
    pub(super) text: String,
}

impl Call {
    fn folder(&self) -> Result<&Path, Refusal> {
        let folder = self.shared.options.recordings.as_deref();
        folder.ok_or_else(|| Refusal::new("this server shows no recordings"))
    }

    fn listed(&self) -> Result<Vec<ListedRecording>, Refusal> {
        let folder = self.folder()?;
        let found = list(folder);
        if found.is_empty() {
            return Err(Refusal::new(format!("there are no recordings in {}", folder.display())));
        }
        Ok(found)
    }

    /// Lists the newest recordings.
    pub(super) fn recordings(&self) -> Result<Value, Refusal> {
        let told = |r: &ListedRecording| json!({ "recording": r.name, "bytes": r.size, "modified_ms": r.modified_ms });
        Ok(json!({ "recordings": self.listed()?.iter().map(told).collect::<Vec<_>>() }))
    }

    /// Reads so many lines of a recording, from a line on; a negative one counts from the end.
    pub(super) fn read_recording(&self, name: &str, from: i64, count: u64) -> Result<ReadLines, Refusal> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let last = (from < 0).then(|| usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX));
        let first = from.max(1).unsigned_abs();
        let mut kept = std::collections::VecDeque::new();
        let mut total = 0;
        let mut size = 0;
        let mut is_cut = false;
        let until = self.shared.clock.now().mono + TIME;
        self.each_line(name, until, |number, line| {
            total = number;
            if number < first {
                return ControlFlow::Continue(());
            }
            size += line.len() + 1;
            kept.push_back(line.to_owned());
            // From the end, the window moves on; from a line, it is full.
            while last.is_some_and(|last| kept.len() > last.min(5000)) || (last.is_some() && size > TEXT) {
                size -= kept.pop_front().map_or(0, |line: String| line.len() + 1);
            }
            is_cut = last.is_none() && (kept.len() >= count || size > TEXT);
            if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        kept.truncate(count);
        let begin = if last.is_some() { (total + 1).saturating_sub(kept.len() as u64) } else { first };
        let lines: Vec<String> = kept.into();
        Ok(ReadLines { from: begin, count: lines.len() as u64, is_cut, text: lines.join("\n") })
    }

    /// Searches the newest recordings whose name contains a text.
    pub(super) fn search(&self, pattern: &Regex, name: Option<&str>, limit: usize) -> Result<Value, Refusal> {
        let until = self.shared.clock.now().mono + TIME;
        let mut all = self.listed()?;
        all.retain(|recording| name.is_none_or(|name| recording.name.contains(name)));
        let mut hits: Vec<Value> = Vec::new();
        let (mut searched, mut unreadable) = (0, Vec::new());
        let mut is_complete = all.len() <= SEARCHED;
        for recording in all.iter().take(SEARCHED) {
            if hits.len() >= limit || self.is_cancelled() || self.shared.clock.now().mono >= until {
                is_complete = false;
                break;
            }
            let read = self.each_line(&recording.name, until, |number, line| {
                if pattern.is_match(line) {
                    let text = shortened(line, 500);
                    hits.push(json!({ "recording": recording.name, "line": number, "text": text }));
                }
                if hits.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            match read {
                Ok(()) => searched += 1,
                Err(refusal) => {
                    unreadable.push(json!({ "recording": recording.name, "error": refusal.why }));
                }
            }
        }
        Ok(json!({
            "hits": hits,
            "searched": searched,
            "complete": is_complete && hits.len() < limit && unreadable.is_empty(),
            "unreadable": unreadable,
        }))
    }

    /// Passes the lines of a recording on, with their numbers from 1, until there is no more, the
    /// taker has enough, or the time is over.
    fn each_line(
        &self,
        name: &str,
        until: Time,
        take: impl FnMut(u64, &str) -> ControlFlow<()>,
    ) -> Result<(), Refusal> {
        let unknown = || Refusal::new(format!("no recording is called {name:?}; list_recordings shows them"));
        let path = find(self.folder()?, name).ok_or_else(unknown)?;
        let mut sink = Lines { call: self, until, take, line: Vec::new(), number: 0, read: 0, stop: None };
        let read = match &self.shared.options.reader {
            Some(reader) => read_by_process(reader, &path, &mut sink),
            None => write_recording(&path, &mut sink),
        };
        match (read, sink.stop.take()) {
            (Ok(()), None) => {
                // The last line may have no end.
                let _ = sink.end_line();
                Ok(())
            }
            (_, Some(Stop::Enough)) => Ok(()),
            (_, Some(Stop::Refused(why))) => Err(Refusal::new(why)),
            (Err(e), None) => Err(Refusal::new(format!("cannot read {name}: {e}"))),
        }
    }
}

/// Why no more lines are taken.
enum Stop {
    Enough,
    Refused(&'static str),
}

/// Cuts what is written to it into lines, bounded.
struct Lines<'a, F> {
    call: &'a Call,
    until: Time,
    take: F,
    line: Vec<u8>,
    number: u64,
    read: u64,
    stop: Option<Stop>,
}

impl<F: FnMut(u64, &str) -> ControlFlow<()>> Lines<'_, F> {
    fn end_line(&mut self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        self.pass_on()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.number += 1;
        let line = String::from_utf8_lossy(&self.line);
        let flow = (self.take)(self.number, tapdeck_term::printable(line.trim_end()).as_str());
        self.line.clear();
        if flow.is_break() { Err(self.stop(Stop::Enough)) } else { Ok(()) }
    }

    fn stop(&mut self, why: Stop) -> io::Error {
        self.stop = Some(why);
        io::Error::other("no more is wanted")
    }

    /// Fails when the call is over.
    fn check(&mut self) -> io::Result<()> {
        if self.call.is_cancelled() {
            return Err(self.stop(Stop::Refused("cancelled")));
        }
        if self.call.shared.clock.now().mono >= self.until {
            return Err(self.stop(Stop::Refused("reading the recording took too long")));
        }
        if self.read > READ {
            return Err(self.stop(Stop::Refused("the recording has too much text")));
        }
        Ok(())
    }
}

impl<F: FnMut(u64, &str) -> ControlFlow<()>> Write for Lines<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.read += bytes.len() as u64;
        self.check()?;
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                self.pass_on()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A process that is ended and reaped with the call.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself. Once killed, it does not keep us waiting.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a process read a recording, and passes on what it writes.
fn read_by_process<F: FnMut(u64, &str) -> ControlFlow<()>>(
    reader: &Reader,
    path: &Path,
    sink: &mut Lines<'_, F>,
) -> io::Result<()> {
    let mut command = reader(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process(command.spawn()?);
    let Some(mut text) = process.0.stdout.take() else { return Err(io::Error::other("no output")) };
    let mut piece = vec![0; 64 * 1024];
    loop {
        sink.check()?;
        if poll(&mut [PollFd::new(&text, PollFlags::IN)], Some(&LOOK))? == 0 {
            continue;
        }
        match text.read(&mut piece)? {
            0 => break,
            n => sink.write_all(&piece[..n])?,
        }
    }
    let status = process.0.wait()?;
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(err) = process.0.stderr.take() {
        err.take(4096).read_to_string(&mut said)?;
    }
    let said = shortened(said.strip_prefix("tapdeck: ").unwrap_or(&said), 300);
    Err(io::Error::other(if said.is_empty() { status.to_string() } else { said }))
}
