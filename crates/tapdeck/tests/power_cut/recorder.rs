//! The recorder: what was synced can be read, nothing is invented, and `verify`, `repair` and
//! `--append` agree about what is left.

use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tapdeck::tape::ahr::parts::EVENTS;
use tapdeck::tape::ahr::{Body, Item, Parts, Reader};
use tapdeck::tape::seal::{self, SealKey, Verdict};
use tapdeck::tape::{Container, Kind};
use tapdeck::{Event, Exit, LiveIndex, RecordOptions, Recording};
use tapdeck_core::{Change, Fence, LogLimits, Stamp, Stream, Why, WinSize};
use tapdeck_host::disk::journal::{self, Inode, Op};
use tapdeck_host::{
    Clock, IfExists, Recorder, RecordingFile, SharedLog, Source, SyncLevel, append_lines, append_part,
};

use crate::disk::Disk;
use crate::rng::Rng;
use crate::{Judge, Round};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn never_synced(round: &mut Round<'_>) -> Judge {
    record(round, SyncLevel::None)
}

pub(crate) fn synced_by_block(round: &mut Round<'_>) -> Judge {
    record(round, SyncLevel::Block)
}

pub(crate) fn synced_by_interval(round: &mut Round<'_>) -> Judge {
    record(round, SyncLevel::Interval)
}

/// A session that is recorded step by step.
pub(crate) struct Live {
    inode: Inode,
    log: SharedLog,
    clock: Clock,
    recorder: Recorder,
}

impl Live {
    pub(crate) fn start(path: &Path, if_exists: IfExists, options: RecordOptions) -> Result<Self, String> {
        let file = RecordingFile::open(path, if_exists).map_err(|e| e.to_string())?;
        Self::start_in(file, path, options)
    }

    fn start_in(file: RecordingFile, path: &Path, options: RecordOptions) -> Result<Self, String> {
        let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
        let size = WinSize::cells(80, 24);
        log.append(Event::Resize(size), clock.now());
        let recorder = Recorder::start(file, log.clone(), clock, options, size).map_err(|e| e.to_string())?;
        let meta = path.metadata().map_err(|e| e.to_string())?;
        Ok(Self { inode: (meta.dev(), meta.ino()), log, clock, recorder })
    }

    /// A moment so long ago that the recorder writes at once.
    fn past(&self) -> Stamp {
        let now = self.clock.now();
        Stamp { wall: now.wall - Duration::from_secs(1), ..now }
    }

    /// The program writes.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.log.append(Event::Output { stream: Stream::Out, bytes }, self.past());
    }

    /// The program writes, and the recorder does. Returns the number of that change.
    fn output(&self, bytes: &[u8]) -> usize {
        let before = journal::len();
        self.write(bytes);
        // A block of parts, which says so in its flags, may come first.
        let has_output = |block: &[u8]| block.get(36).is_some_and(|flags| flags & 4 == 0);
        self.wait_for(
            before,
            |op, inode| matches!(op, Op::Write(file, _, block) if *file == inode && has_output(block)),
        )
    }

    /// Waits for a change of the recording behind so many.
    fn wait_for(&self, before: usize, is_it: impl Fn(&Op, Inode) -> bool) -> usize {
        let mut found = None;
        let in_time = journal::wait(PATIENCE, |ops| {
            found = ops.iter().skip(before).position(|op| is_it(op, self.inode));
            found.is_some()
        });
        assert!(in_time, "the recorder did nothing");
        before + found.unwrap_or_default()
    }

    /// Waits until a thread has synced the recording.
    fn wait_for_sync(&self, written: usize) {
        self.wait_for(
            written,
            |op, inode| matches!(op, Op::Sync(file, before) if *file == inode && *before > written),
        );
    }

    /// The stick changes hands, which is told in a part.
    fn change_hands(&self) {
        let change = Change { from: None, to: Some("a".into()), why: Why::Claimed, fence: Fence(1) };
        self.log.append(Event::Holder(change), self.clock.now());
    }

    fn snapshot(&self, id: u64) {
        self.log.append(Event::Snapshot { id, label: "label".into(), tree: None }, self.past());
        // The recorder answers the caller before it comes to this.
        self.flush();
    }

    pub(crate) fn flush(&self) {
        assert!(self.log.flush(PATIENCE), "the recorder did not flush");
    }

    pub(crate) fn finish(self) {
        self.log.append(Event::Exit(Exit::Code(0)), self.clock.now());
        self.log.close();
        let report = self.recorder.finish();
        assert_eq!(report.trouble, None);
    }
}

/// What was promised from a change on.
struct Promise {
    from: usize,
    /// So much output is there.
    output: usize,
    snapshots: u64,
    closed: bool,
}

fn record(round: &mut Round<'_>, level: SyncLevel) -> Judge {
    let path = round.root.join("demo.ahr");
    let index = if round.rng.chance(2) { LiveIndex::Whole } else { LiveIndex::Off };
    let options = RecordOptions::default().sync(level).index(index);
    let (mut old, mut if_exists) = (Vec::new(), IfExists::Refuse);
    if round.rng.chance(2) {
        old = round.rng.text(9000);
        let before = Live::start(&path, IfExists::Refuse, options.clone()).expect("a recorder");
        before.write(&old);
        before.flush();
        let killed = Disk::of(round.root).expect("a folder");
        before.finish();
        if_exists = if round.rng.chance(2) { IfExists::Append } else { IfExists::Overwrite };
        if round.rng.chance(2) {
            crate::clear(round.root);
            killed.crash(round.rng, round.root).expect("a folder");
            if round.rng.chance(2) {
                let file = File::options().write(true).open(&path).expect("a recording");
                let len = file.metadata().expect("a length").len();
                file.set_len(len - round.rng.below(len as usize) as u64).expect("cut");
            }
        }
        let left = read(&path).expect("a recording");
        old.truncate(left.prefix());
    }
    // A seal cannot be continued.
    let key = (if_exists != IfExists::Append && round.rng.chance(3)).then(|| SealKey::new(b"secret"));
    round.begin();
    let live = Live::start(&path, if_exists, options.seal(key.clone())).expect("a recorder");
    let inode = live.inode;
    let mut new = if if_exists == IfExists::Append { old.clone() } else { Vec::new() };
    let mut promises = Vec::new();
    let mut snapshots = 0;
    let promise = |output: &Vec<u8>, snapshots, closed| Promise {
        from: journal::len(),
        output: output.len(),
        snapshots,
        closed,
    };
    promises.push(promise(&new, 0, false));
    // Output, and the change that wrote it.
    let mut written = Vec::new();
    let mut events = 0;
    let steps = 1 + round.rng.below(24);
    let waits_at = round.rng.below(steps);
    for step in 0..steps {
        let text = round.rng.text(3000);
        let at = live.output(&text);
        new.extend(text);
        written.push((at, new.len()));
        if level == SyncLevel::Interval && step == waits_at {
            live.wait_for_sync(at);
            promises.push(promise(&new, snapshots, false));
        }
        match round.rng.below(12) {
            2 => {
                live.change_hands();
                events += 1;
            }
            0 => {
                live.flush();
                promises.push(promise(&new, snapshots, false));
            }
            1 => {
                snapshots += 1;
                live.snapshot(snapshots);
                promises.push(promise(&new, snapshots, false));
            }
            _ => {}
        }
    }
    live.finish();
    promises.push(promise(&new, snapshots, true));
    Box::new(move |ops, cut, rng| {
        let mut output = 0;
        let mut closed = false;
        let mut listed = 0;
        for promise in promises.iter().filter(|p| p.from <= cut) {
            output = promise.output;
            listed = promise.snapshots;
            closed |= promise.closed;
        }
        let begun = promises[0].from <= cut;
        let writes = written.iter().filter(|(at, _)| *at < cut);
        if level == SyncLevel::Block
            && let Some((_, len)) = writes.clone().rev().nth(1)
        {
            // The block in hand may be lost.
            output = output.max(*len);
        }
        let synced = ops.iter().filter_map(|op| match op {
            Op::Sync(file, before) if *file == inode => Some(*before),
            _ => None,
        });
        let synced = synced.max().unwrap_or(0);
        output = writes.filter(|(at, _)| *at < synced).map(|(_, len)| *len).fold(output, usize::max);
        if !path.exists() {
            return if begun || !old.is_empty() { Err("the recording is gone".into()) } else { Ok(()) };
        }
        let left = read(&path)?;
        let is_of = |whole: &[u8]| left.check(whole, output);
        if let Err(why) = is_of(&new) {
            // Before the recorder started, it is the old one.
            if begun || is_of(&old).is_err() {
                return Err(why);
            }
        }
        if left.prefix() < output {
            return Err(format!("{output} bytes of output were promised, {} are there", left.prefix()));
        }
        if let Some(id) = (1..=listed).find(|id| !left.snapshots.contains(id)) {
            return Err(format!("snapshot {id} was answered and is gone"));
        }
        let told = std::fs::read(&path).and_then(|file| {
            let file = Cursor::new(file);
            let parts = Parts::of(file.clone()).map_err(std::io::Error::other)?;
            parts.read(EVENTS, file).map_err(std::io::Error::other)
        });
        let told = told.unwrap_or_default();
        let told = told.split(|b| *b == b'\n').filter(|line| line.starts_with(b"{") && line.ends_with(b"}"));
        let all = events + usize::try_from(listed).unwrap_or(0);
        if closed && told.count() < all {
            return Err("the events were complete and are not".into());
        }
        agree(&path, &left, closed)?;
        if let Some(key) = key.as_ref().filter(|_| closed) {
            check_seal(&path, key)?;
        }
        if rng.chance(4) { go_on(&path, &left, RecordOptions::default()) } else { Ok(()) }
    })
}

/// Lines that are appended to a file, as `view` does with instructions to a recording of another
/// format. A torn line does not spoil the ones before and behind it.
pub(crate) fn lines(round: &mut Round<'_>) -> Judge {
    let path = round.root.join("demo.instructions.jsonl");
    let line =
        |rng: &mut Rng| serde_json::json!({ "text": String::from_utf8_lossy(&rng.text(900)) }).to_string();
    let mut kept: Vec<(usize, String)> = Vec::new();
    if round.rng.chance(2) {
        let old = line(round.rng);
        std::fs::write(&path, format!("{old}\n{{\"text\": \"to")).expect("written");
        kept.push((0, old));
    }
    round.begin();
    for _ in 0..=round.rng.below(6) {
        let text = line(round.rng);
        append_lines(&path, format!("{text}\n").as_bytes()).expect("appended");
        kept.push((journal::len(), text));
    }
    Box::new(move |_, cut, _| {
        let check = |more: Option<&str>| {
            let text = std::fs::read(&path).unwrap_or_default();
            let found: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
            let promised = kept.iter().filter(|(from, _)| *from <= cut).map(|(_, line)| line.as_str());
            match promised.chain(more).find(|line| !found.contains(&line.as_bytes())) {
                Some(_) => Err(format!("a line that was kept is gone, {} are there", found.len() - 1)),
                None => Ok(()),
            }
        };
        check(None)?;
        let more = "{\"text\": \"one more\"}";
        append_lines(&path, format!("{more}\n").as_bytes()).map_err(|e| e.to_string())?;
        check(Some(more))
    })
}

/// Instructions that are added to a finished recording: those that were kept are there, and nothing
/// of the session is lost.
pub(crate) fn additions(round: &mut Round<'_>) -> Judge {
    let path = round.root.join("demo.ahr");
    let live = Live::start(&path, IfExists::Refuse, RecordOptions::default()).expect("a recorder");
    let output = round.rng.text(5000);
    live.write(&output);
    live.finish();
    round.begin();
    let mut kept = Vec::new();
    for n in 0..=round.rng.below(6) {
        let line = format!("{{\"n\": {n}, \"text\": \"{}\"}}\n", "x".repeat(round.rng.below(2000)));
        append_part(&path, "instructions.jsonl", line.as_bytes()).expect("appended");
        kept.push((journal::len(), line));
    }
    Box::new(move |_, cut, _| {
        let left = read(&path)?;
        left.check(&output, usize::MAX)?;
        if left.prefix() != output.len() {
            return Err(format!("{} bytes of output are left", left.prefix()));
        }
        let file = File::open(&path).map_err(|e| e.to_string())?;
        let parts = Parts::of(&file).map_err(|e| e.to_string())?;
        let found = parts.read("instructions.jsonl", &file).map_err(|e| e.to_string())?;
        let promised: String =
            kept.iter().filter(|(from, _)| *from <= cut).map(|(_, line)| line.as_str()).collect();
        if !found.starts_with(promised.as_bytes()) {
            return Err(format!("an instruction that was kept is gone, {} bytes are there", found.len()));
        }
        let source = Source::find(&path, None, None).map_err(|e| e.to_string())?;
        match tapdeck::convert::Digest::of(&source) {
            tapdeck::convert::Digest::Matches => Ok(()),
            digest => Err(format!("what was finished is not what it was: {digest:?}")),
        }
    })
}

/// A recording in a format of others, which has no digests: what was promised is there, in front of
/// whatever else is.
pub(crate) fn foreign(round: &mut Round<'_>) -> Judge {
    // Not yet among them: a ttyrec with garbage behind its first record is not recognized, and a
    // `.zst` with garbage behind a flush is not read at all.
    let name = "demo.cast";
    let path = round.root.join(name);
    let container = Container::of_name(name).expect("a format");
    round.begin();
    let file = RecordingFile::open_as(&path, container, false).expect("a file");
    let live = Live::start_in(file, &path, RecordOptions::default()).expect("a recorder");
    let (mut output, mut promises) = (Vec::new(), Vec::new());
    for _ in 0..=round.rng.below(10) {
        let text = round.rng.text(3000);
        live.write(&text);
        output.extend(text);
        if round.rng.chance(3) {
            live.flush();
            promises.push((journal::len(), output.len()));
        }
    }
    live.finish();
    let complete = journal::len();
    promises.push((complete, output.len()));
    Box::new(move |_, cut, _| {
        let promised = promises.iter().rfind(|(from, _)| *from <= cut).map_or(0, |(_, len)| *len);
        if promised == 0 {
            return Ok(());
        }
        let recording = Recording::open(&path).map_err(|e| e.to_string())?;
        let mut found = Vec::new();
        for event in recording.events().map_err(|e| e.to_string())? {
            match event.map(|event| event.kind) {
                Ok(Kind::Output(bytes)) => found.extend_from_slice(&bytes),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if !found.starts_with(&output[..promised]) {
            let there = found.iter().zip(&output).take_while(|(a, b)| a == b).count();
            return Err(format!("{promised} bytes of output were promised, {there} are there"));
        }
        if cut >= complete && found != output {
            return Err("there is more than was written".into());
        }
        Ok(())
    })
}

/// An encrypted recording: what was promised is there, and it can be continued without its key.
#[cfg(feature = "encrypt")]
pub(crate) fn encrypted(round: &mut Round<'_>) -> Judge {
    use tapdeck::tape::encryption::{Recipients, add_identities};
    const IDENTITY: &str = "AGE-SECRET-KEY-1PR7E5V5Q0S75HXNWHUU46MTA8H4XV7XZELH7GC48HWE3UAP3TD8SC2Z6VK";
    static ADDED: std::sync::Once = std::sync::Once::new();
    ADDED.call_once(|| add_identities(IDENTITY.as_bytes(), None).expect("a key"));
    let path = round.root.join("demo.ahr");
    let recipients = Recipients::parse(IDENTITY).expect("a key");
    let options = RecordOptions::default().sync(SyncLevel::Block).encrypt(recipients);
    round.begin();
    let live = Live::start(&path, IfExists::Refuse, options.clone()).expect("a recorder");
    let (mut output, mut promises) = (Vec::new(), Vec::new());
    for _ in 0..=round.rng.below(10) {
        let text = round.rng.text(3000);
        live.write(&text);
        output.extend(text);
        if round.rng.chance(3) {
            live.flush();
            promises.push((journal::len(), output.len()));
        }
    }
    live.finish();
    promises.push((journal::len(), output.len()));
    Box::new(move |_, cut, rng| {
        let promised = promises.iter().rfind(|(from, _)| *from <= cut).map_or(0, |(_, len)| *len);
        if promised == 0 && !path.exists() {
            return Ok(());
        }
        let left = read(&path)?;
        // A block is opened whole or not at all, so nothing torn is ever given.
        left.check(&output, usize::MAX)?;
        if left.prefix() < promised {
            return Err(format!("{promised} bytes of output were promised, {} are there", left.prefix()));
        }
        if rng.chance(4) { go_on(&path, &left, options.clone()) } else { Ok(()) }
    })
}

/// What can be read of a recording.
#[derive(Default)]
pub(crate) struct Left {
    pieces: Vec<(u64, Bytes)>,
    snapshots: Vec<u64>,
    damaged: bool,
}

impl Left {
    /// Whether all of it is part of this output, at its place. Of a torn block behind what was
    /// promised, there is what a lost sector made of it; it is called damaged.
    fn check(&self, whole: &[u8], promised: usize) -> Result<(), String> {
        for (off, bytes) in &self.pieces {
            let (from, to) = (*off as usize, *off as usize + bytes.len());
            let torn = self.damaged && from >= promised;
            if whole.get(from..to) != Some(&bytes[..]) && !torn {
                return Err(format!("output {from}..{to} was never written so"));
            }
        }
        Ok(())
    }

    /// How much there is without a gap.
    pub(crate) fn prefix(&self) -> usize {
        self.pieces.iter().fold(0, |end, (off, bytes)| {
            let (from, to) = (*off as usize, *off as usize + bytes.len());
            if from <= end { end.max(to) } else { end }
        })
    }

    fn total(&self) -> usize {
        self.pieces.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

pub(crate) fn read(path: &Path) -> Result<Left, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut reader = Reader::new(std::io::BufReader::new(file));
    let mut left = Left::default();
    while let Some(item) = reader.next_item().map_err(|e| e.to_string())? {
        match item {
            Item::Record(record) => match record.body {
                Body::Data { off, bytes } => left.pieces.push((off, bytes)),
                Body::Snapshot { id, .. } => left.snapshots.push(id),
                _ => {}
            },
            Item::Damage(_) => left.damaged = true,
        }
    }
    Ok(left)
}

/// `verify` says that a recording is whole only if it is, and `repair` keeps what can be read.
fn agree(path: &Path, left: &Left, closed: bool) -> Result<(), String> {
    let gaps = left.prefix() != left.total();
    let nothing = left.pieces.is_empty() && left.snapshots.is_empty();
    let copy = path.with_file_name("repaired.ahr");
    let recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(_) if nothing && !closed => return Ok(()),
        Err(e) => return Err(format!("it cannot be opened: {e}")),
    };
    let (health, repaired) = (recording.verify(), recording.repair_to(&copy));
    let health = match (health, repaired) {
        (Ok(health), Ok(_)) => health,
        (Err(_), Err(_)) if nothing && !closed => return Ok(()),
        (Ok(_), Err(e)) => return Err(format!("verify reads it, repair does not: {e}")),
        (Err(e), _) => return Err(format!("verify fails: {e}")),
    };
    if health.is_whole() && (gaps || left.damaged) {
        return Err("verify calls a recording whole that is not".into());
    }
    if closed && !health.is_whole() {
        return Err(format!("it was complete: {:?}", health.problems));
    }
    if closed && health.digest != tapdeck::convert::Digest::Matches {
        return Err(format!("it has no true digest: {:?}", health.digest));
    }
    if health.digest == tapdeck::convert::Digest::Differs {
        return Err("it has a digest of something else".into());
    }
    let again = Recording::open(&copy).and_then(|copy| copy.verify()).map_err(|e| e.to_string())?;
    if !again.is_whole() {
        return Err(format!("the repaired copy is not whole: {:?}", again.problems));
    }
    let copied = read(&copy)?;
    if (copied.total(), copied.prefix(), &copied.snapshots) != (left.total(), left.prefix(), &left.snapshots)
    {
        let (is, was) = (copied.total(), left.total());
        return Err(format!("the repaired copy has {is} bytes of output, and {was} can be read"));
    }
    Ok(())
}

/// The seal of a complete recording is intact.
fn check_seal(path: &Path, key: &SealKey) -> Result<(), String> {
    let source = Source::find(path, None, None).map_err(|e| e.to_string())?;
    let metas = source.all_meta();
    let meta = seal::sealed_meta(&metas, key).ok_or("there is no seal")?;
    let file = File::open(path).map_err(|e| e.to_string())?;
    let report = seal::verify(file, meta, source.sidecar("seal"), &[], key).map_err(|e| e.to_string())?;
    if report.verdict == Verdict::Intact { Ok(()) } else { Err(format!("the seal: {:?}", report.problems)) }
}

/// A recording can be continued, and loses nothing by that.
fn go_on(path: &Path, left: &Left, options: RecordOptions) -> Result<(), String> {
    let live = match Live::start(path, IfExists::Append, options) {
        Ok(live) => live,
        // A file without one readable block may not be a recording at all.
        Err(_) if left.pieces.is_empty() && left.snapshots.is_empty() => return Ok(()),
        Err(e) => return Err(format!("it cannot be continued: {e}")),
    };
    live.write(b"and more");
    live.finish();
    let after = read(path)?;
    let last = after.pieces.last().map(|(_, bytes)| &bytes[..]);
    if last != Some(b"and more") {
        return Err("it was continued, and the new output cannot be read".into());
    }
    let kept = after.total() - b"and more".len();
    if kept != left.total() {
        return Err(format!("it had {} bytes of output, continued {kept}", left.total()));
    }
    let source = Source::find(path, None, None).map_err(|e| e.to_string())?;
    source.meta().map(|_| ()).ok_or_else(|| "it was continued, and does not describe itself".into())
}
