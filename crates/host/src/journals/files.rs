//! Reading journals as they grow.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tapdeck_core::turns::{Journal, Report};
use tapdeck_core::{Stamp, Time, WallTime};
use tapdeck_tape::journal::Record;

use super::Program;
use super::paths;

/// How often new files are looked for, and how seldom after a while without any.
const SEARCH: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(2);
/// After so many searches in vain it is done seldom.
const IN_VAIN: u32 = 100;
/// The largest file that is one record.
const DOCUMENT: u64 = 256 << 10;
/// What is read of a growing file at a time, the longest line, and how much of what was there
/// before is read.
const PIECE: u64 = 1 << 20;
const LINE: usize = 16 << 20;
const BEFORE: u64 = 1 << 20;
/// Clocks of files are coarse, so a record may seem older than it is.
const SLACK: Duration = Duration::from_millis(20);
/// An agent that is started from a shell is noticed a little later.
const NOTICED: Duration = Duration::from_secs(2);

/// The journals of one program.
#[derive(Debug)]
pub(super) struct Files {
    journals: Vec<Journal>,
    names: Vec<Arc<str>>,
    /// What was written down before is of another session.
    since: WallTime,
    open: BTreeMap<(usize, PathBuf), Source>,
    searched: Option<Time>,
    in_vain: u32,
    opened: u64,
    /// What a journal calls the conversation.
    id: Option<String>,
}

/// A file that is read.
#[derive(Debug)]
struct Source {
    number: u64,
    /// It is known to be of this program.
    sure: bool,
    /// It is known to be of another one.
    foreign: bool,
    /// What it calls the conversation.
    conversation: Option<Arc<str>>,
    offset: u64,
    /// The end of the last piece, which is no whole line.
    rest: Vec<u8>,
    /// The line that goes on is longer than is read.
    skips: bool,
    /// What a file that is one record had in it.
    seen: Vec<u8>,
    changed: Option<(SystemTime, u64)>,
}

impl Files {
    pub(super) fn new(journals: Vec<Journal>, since: WallTime) -> Self {
        let names = journals.iter().map(|journal| Arc::from(journal.name.as_str())).collect();
        let open = BTreeMap::new();
        Self { journals, names, since, open, searched: None, in_vain: 0, opened: 0, id: None }
    }

    /// Looks for new files now and then, and reads what has come. `wall` is the wall clock, which
    /// may have been set since the session's own began.
    pub(super) fn look(
        &mut self,
        program: impl Fn() -> Option<Program>,
        now: Stamp,
        wall: WallTime,
    ) -> Vec<Report> {
        let in_session = |time: WallTime| now.wall - wall.since(time);
        let pause = if self.in_vain < IN_VAIN { SEARCH } else { SELDOM };
        if self.searched.is_none_or(|at| now.mono >= at + pause)
            && let Some(program) = program()
        {
            self.searched = Some(now.mono);
            self.search(&program, in_session);
        }
        let mut found = Vec::new();
        for ((at, path), source) in &mut self.open {
            let journal = &self.journals[*at];
            for (record, written) in source.records(journal, path) {
                let time = in_session(record.time(journal).unwrap_or(written));
                // The lines of a log are about one conversation, which its first one names.
                if let Some(id) = id_in(journal, &record).filter(|_| !journal.lines) {
                    source.conversation = Some(id.as_str().into());
                    self.id = Some(id);
                }
                if source.foreign || time + SLACK < self.since {
                    continue;
                }
                found.extend(record.reports(journal).into_iter().map(|what| Report {
                    source: Arc::clone(&self.names[*at]),
                    file: source.number,
                    sure: source.sure,
                    conversation: source.conversation.clone(),
                    at: time,
                    what,
                }));
            }
        }
        found
    }

    fn search(&mut self, program: &Program, in_session: impl Fn(WallTime) -> WallTime) {
        let before = self.opened;
        for (at, journal) in self.journals.iter().enumerate() {
            let found = paths::find(&journal.path, program, self.id.as_deref());
            // Files of a program that has gone are of no further use.
            let is_sure = journal.path.contains("{pid}") || journal.path.contains("{id}");
            if is_sure {
                self.open.retain(|(n, path), _| *n != at || found.contains(path));
            }
            for path in found {
                let is_new = modified(&path).is_some_and(|time| in_session(time) + SLACK >= self.since);
                if (is_new || is_sure) && !self.open.contains_key(&(at, path.clone())) {
                    let is_old = |time: WallTime| in_session(time) + NOTICED < self.since;
                    let own =
                        if is_sure { Some(Own::Yes(None)) } else { is_of(&path, journal, program, is_old) };
                    // One that has only just been begun is looked at again.
                    let Some(own) = own else { continue };
                    self.opened += 1;
                    self.open.insert((at, path), Source::new(self.opened, is_sure, own));
                }
            }
        }
        self.in_vain = if self.opened > before { 0 } else { self.in_vain.saturating_add(1) };
    }
}

fn modified(path: &Path) -> Option<WallTime> {
    wall_time(std::fs::metadata(path).ok()?.modified().ok()?)
}

fn wall_time(time: SystemTime) -> Option<WallTime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(WallTime::ZERO + since)
}

/// What a record calls the conversation.
fn id_in(journal: &Journal, record: &Record) -> Option<String> {
    record.text(journal.id.as_deref()?)
}

/// Whether a journal is one of the program's own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Own {
    No,
    /// With what it calls the conversation.
    Yes(Option<Arc<str>>),
}

/// Whether a journal begins with the program's folder, and not before the program did; `None` while
/// its first record is not whole.
fn is_of(
    path: &Path,
    journal: &Journal,
    program: &Program,
    is_old: impl Fn(WallTime) -> bool,
) -> Option<Own> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(PIECE).read_to_end(&mut bytes)).ok()?;
    let end = bytes.iter().position(|b| *b == b'\n');
    let Some(record) = Record::parse(&bytes[..end?]) else { return Some(Own::No) };
    let resumes = journal.resume.as_ref().is_some_and(|word| program.arguments.contains(word));
    let born = journal.born.as_deref().and_then(|field| record.time_in(field));
    if born.is_some_and(is_old) && !resumes {
        return Some(Own::No);
    }
    let own = Own::Yes(id_in(journal, &record).map(Into::into));
    let Some(field) = &journal.folder else { return Some(own) };
    let folder = record.text(field);
    let is_same =
        folder.is_some_and(|folder| program.folders.iter().any(|f| f.as_os_str() == folder.as_str()));
    Some(if is_same { own } else { Own::No })
}

impl Source {
    fn new(number: u64, sure: bool, own: Own) -> Self {
        let (rest, seen) = (Vec::new(), Vec::new());
        let (foreign, conversation) = match own {
            Own::No => (true, None),
            Own::Yes(conversation) => (false, conversation),
        };
        Self { number, sure, foreign, conversation, offset: 0, rest, skips: false, seen, changed: None }
    }

    /// The records that have come, with the time at which their file was written.
    fn records(&mut self, journal: &Journal, path: &Path) -> Vec<(Record, WallTime)> {
        let Ok(about) = std::fs::metadata(path) else { return Vec::new() };
        let (Ok(time), length) = (about.modified(), about.len()) else { return Vec::new() };
        // A document may be rewritten within one tick of its file system's clock.
        let is_same = self.changed == Some((time, length));
        if self.foreign || is_same && (journal.lines || is_old(time)) {
            return Vec::new();
        }
        let written = wall_time(time).unwrap_or(WallTime::ZERO);
        // What cannot be read now is read when it changes again.
        let records = if journal.lines { self.lines(path, length) } else { self.document(path) };
        let Ok(records) = records else { return Vec::new() };
        if !journal.lines || self.offset >= length {
            self.changed = Some((time, length));
        }
        records.into_iter().map(|record| (record, written)).collect()
    }

    fn document(&mut self, path: &Path) -> std::io::Result<Vec<Record>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(DOCUMENT).read_to_end(&mut bytes)?;
        if bytes == self.seen {
            return Ok(Vec::new());
        }
        let record = Record::parse(&bytes);
        if record.is_some() {
            self.seen = bytes;
        }
        Ok(record.into_iter().collect())
    }

    fn lines(&mut self, path: &Path, length: u64) -> std::io::Result<Vec<Record>> {
        if length < self.offset {
            // It was begun anew.
            (self.offset, self.skips) = (0, false);
            self.rest.clear();
        }
        if self.offset == 0 && length > BEFORE {
            // Of a long past, the end is enough; the line that goes on there is no whole one.
            (self.offset, self.skips) = (length - BEFORE, true);
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = std::mem::take(&mut self.rest);
        self.offset += file.take(PIECE).read_to_end(&mut bytes)? as u64;
        let mut records = Vec::new();
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            let is_whole = line.ends_with(b"\n");
            if !is_whole {
                if line.len() > LINE || self.skips {
                    self.skips = true;
                } else {
                    self.rest = line.to_vec();
                }
            } else if !std::mem::take(&mut self.skips) {
                records.extend(Record::parse(line));
            }
        }
        Ok(records)
    }
}

/// Whether a file was last written so long ago that its time would tell of another writing.
fn is_old(time: SystemTime) -> bool {
    time.elapsed().is_ok_and(|elapsed| elapsed > SLACK)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tapdeck_core::turns::{AgentState, JournalRecord, Reported};

    use super::*;

    fn record(when: &str, value: &str) -> JournalRecord {
        JournalRecord { when: vec![(when.into(), value.into())], ..JournalRecord::default() }
    }

    /// A status file and a transcript, as agents have them.
    fn journals() -> Vec<Journal> {
        let busy = JournalRecord { state: Some(AgentState::Working), ..record("status", "busy") };
        let asked = JournalRecord { asked: vec!["text".into()], ..record("type", "user") };
        vec![
            Journal {
                name: "status".into(),
                path: "{X:~}/{pid}.json".into(),
                id: Some("id".into()),
                time: Some("at".into()),
                records: vec![busy],
                ..Journal::default()
            },
            Journal {
                name: "transcript".into(),
                path: "{X:~}/*/{id}.jsonl".into(),
                lines: true,
                time: Some("at".into()),
                records: vec![asked.clone()],
                ..Journal::default()
            },
            Journal {
                name: "log".into(),
                path: "{X:~}/logs/*.jsonl".into(),
                lines: true,
                folder: Some("cwd".into()),
                born: Some("born".into()),
                resume: Some("resume".into()),
                records: vec![asked],
                ..Journal::default()
            },
        ]
    }

    #[test]
    fn what_is_written_down_is_read_once_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        for sub in ["a", "b", "logs"] {
            std::fs::create_dir(home.join(sub)).expect("made");
        }
        let write = |name: &str, text: &str| std::fs::write(home.join(name), text).expect("written");
        let append = |name: &str, text: &str| {
            let mut file = File::options().append(true).create(true).open(home.join(name)).expect("open");
            file.write_all(text.as_bytes()).expect("written");
        };
        let environment = [("HOME".to_owned(), home.to_str().expect("text").to_owned())].into();
        let folders = vec![PathBuf::from("/here")];
        let program = Program { pids: vec![7], environment, folders, arguments: Vec::new() };
        // The wall clock was set an hour ahead since the session began.
        let clock = crate::clock::Clock::start();
        let hour = Duration::from_secs(3600);
        let mut now = Stamp { mono: Time::ZERO, wall: clock.now().wall - hour };
        let at = |millis: u64| clock.now().wall.as_millis() - 10_000 + millis;
        let mut files = Files::new(journals(), now.wall - Duration::from_secs(9));
        let mut look = |files: &mut Files| {
            now.mono += SEARCH;
            let all = files.look(|| Some(program.clone()), now, now.wall + hour);
            all.into_iter().map(|r| (r.source.to_string(), r.sure, r.what)).collect::<Vec<_>>()
        };
        let asked = |source: &str, sure, text: &str| (source.to_owned(), sure, Reported::Asked(text.into()));
        assert_eq!(look(&mut files), []);
        write("7.json", &format!("{{\"id\":\"c1\",\"status\":\"busy\",\"at\":{}}}", at(2000)));
        write("8.json", r#"{"id":"c2","status":"busy"}"#);
        append(
            "b/c1.jsonl",
            &format!("{{\"type\":\"user\",\"text\":\"old\",\"at\":{}}}\n{{\"type\":\"us", at(900)),
        );
        append("logs/1.jsonl", "{\"cwd\":\"/he");
        let old = format!(
            "{{\"cwd\":\"/here\",\"born\":{}}}\n{{\"type\":\"user\",\"text\":\"three\"}}\n",
            at(0) - 9_000
        );
        append("logs/3.jsonl", &old);
        append("logs/2.jsonl", "{\"cwd\":\"/there\"}\n{\"type\":\"user\",\"text\":\"two\"}\n");
        let working = Reported::State(AgentState::Working, String::new());
        assert_eq!(look(&mut files), [("status".into(), true, working.clone())]);
        append("logs/1.jsonl", "re\"}\n{\"type\":\"user\",\"text\":\"one\"}\n");
        assert_eq!(look(&mut files), [asked("log", false, "one")]);
        append("b/c1.jsonl", &format!("er\",\"text\":\"new\",\"at\":{}}}\nno JSON\n", at(2100)));
        assert_eq!(look(&mut files), [asked("transcript", true, "new")]);
        assert_eq!(look(&mut files), []);
        // Half a document is none, and the same one says nothing new.
        write("7.json", r#"{"id":"c1","sta"#);
        assert_eq!(look(&mut files), []);
        write("7.json", &format!("{{\"id\":\"c1\",\"status\":\"busy\",\"at\":{}}}", at(2200)));
        assert_eq!(look(&mut files), [("status".into(), true, working)]);
    }
}
