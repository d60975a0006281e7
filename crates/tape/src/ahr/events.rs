//! The native recording in the common language: its records as events and back. Wall-clock times
//! become times since the start; where the wall clock was set back, time stands still instead.
//! Labels of markers have no room in a record, so they travel in the part `events.jsonl`, numbered
//! by MARK records. A writer puts the lines in front of the block that they speak of, so that a
//! reader of a stream knows them in time.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::Read;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapdeck_core::{Exit, Time, WallTime};

use super::build::BlockBuilder;
use super::carry::CarriedEvents;
use super::codec::Quality;
use super::mark::Mark;
use super::parts::{EVENTS, META, Place, part_blocks};
use super::reader::{Item as AhrItem, Reader};
use super::record::{Body, Record};
use crate::event::{
    Event, EventReader, EventWriter, Field, Header, Item, Kind, Loss, Losses, Note, Parts, clamp_size,
};
use crate::lines::Lines;
use crate::meta::Meta;
use crate::{FilePosition, Result};

/// A line of `events.jsonl` that this crate writes or understands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventLine {
    /// Wall clock in nanoseconds.
    pub(crate) ts_ns: u64,
    /// What it is; `marker` is the kind that this crate writes.
    pub(crate) kind: String,
    /// Number of the marker in the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<u32>,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

/// Labels take no more memory than this, far more than a person writes.
const MAX_LABELS: usize = 32 << 20;

/// The labels in a file of events, by number. Lines of other kinds are passed over.
///
/// # Errors
/// When the reader fails.
pub fn labels_of(events: impl Read) -> Result<BTreeMap<u32, String>> {
    let mut lines = Lines::new(events);
    let mut labels = BTreeMap::new();
    let mut room = MAX_LABELS;
    while let Some(line) = lines.next_line()? {
        let Some((n, label)) = label_of(line.text) else { continue };
        let Some(left) = room.checked_sub(label.len() + size_of::<String>()) else { break };
        room = left;
        labels.insert(n, label);
    }
    Ok(labels)
}

/// The label in a line of events, with its number.
fn label_of(line: &[u8]) -> Option<(u32, String)> {
    let line: EventLine =
        serde_json::from_slice(line).ok().filter(|line: &EventLine| line.kind == "marker")?;
    line.n.zip(line.label)
}

/// A line of a stream is learned from if it is no longer than this: those of markers are short.
const MAX_LEARNED: usize = 1 << 20;

/// Reads a native recording as events.
#[derive(Debug)]
pub struct AhrEvents<R> {
    reader: Reader<R>,
    header: Header,
    labels: BTreeMap<u32, String>,
    ready: VecDeque<Item>,
    last_ts: Option<u64>,
    time: Time,
    next_off: u64,
    /// An event whose gap was given first.
    behind: Option<Item>,
    /// What parts say is learned as they come, and the beginning of a line of events.
    learns: bool,
    line: Vec<u8>,
}

impl<R: Read> AhrEvents<R> {
    /// With what is known from parts or sidecars. Where nothing is, as of a stream, the reader
    /// learns from the parts on its way.
    ///
    /// # Errors
    /// When the reader fails, or the recording is of a later version.
    pub fn new(inner: R, meta: Option<&Meta>, labels: BTreeMap<u32, String>) -> Result<Self> {
        Self::over(Reader::new(inner).with_sound_times(), meta, labels)
    }

    /// Over a reader of records, such as one that reads ahead.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn over(reader: Reader<R>, meta: Option<&Meta>, labels: BTreeMap<u32, String>) -> Result<Self> {
        let mut events = Self {
            reader,
            header: Header::default(),
            labels,
            ready: VecDeque::new(),
            last_ts: None,
            time: Time::ZERO,
            next_off: 0,
            behind: None,
            learns: false,
            line: Vec::new(),
        };
        events.learns = meta.is_none() && events.labels.is_empty();
        if let Some(meta) = meta {
            events.describe(meta);
        }
        // The first record tells the start, and the first RESIZE the true size.
        while let Some(item) = events.read()? {
            if let (Item::Event(Event { kind: Kind::Resize(size), time: Time::ZERO }), true) =
                (&item, events.ready.iter().all(|i| matches!(i, Item::Note(_))))
            {
                events.header.size = Some(*size);
                if events.learns
                    && let Some(item) = events.read()?
                {
                    events.ready.push_back(item);
                }
                break;
            }
            let is_event = matches!(item, Item::Event(_));
            events.ready.push_back(item);
            if is_event || events.ready.len() > 100 {
                break;
            }
        }
        Ok(events)
    }

    fn describe(&mut self, meta: &Meta) {
        let header = &mut self.header;
        header.command = (!meta.cmd.is_empty()).then(|| shell_words(&meta.cmd));
        header.argv = meta.argv().iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
        header.folder.clone_from(&meta.cwd);
        header.title.clone_from(&meta.title);
        header.tags.clone_from(&meta.tags);
        header.env.clone_from(&meta.env);
        header.term.clone_from(&meta.term);
        header.pipes = meta.pipes;
        header.idle_limit = meta.idle_limit();
        header.theme.clone_from(&meta.theme);
        if meta.cols > 0 && meta.rows > 0 && header.size.is_none() {
            header.size = Some(clamp_size(meta.cols.into(), meta.rows.into()));
        }
    }

    /// Takes what a part says.
    fn learn(&mut self, name: &str, bytes: &[u8]) {
        match name {
            META => {
                if let Some(meta) = Meta::of_part(bytes) {
                    self.describe(&meta);
                }
            }
            EVENTS => {
                for piece in bytes.split_inclusive(|b| *b == b'\n') {
                    if self.line.len() + piece.len() <= MAX_LEARNED {
                        self.line.extend_from_slice(piece);
                    }
                    if piece.ends_with(b"\n") {
                        let known: usize = self.labels.len() * size_of::<String>();
                        if let Some((n, label)) = label_of(&self.line).filter(|_| known < MAX_LABELS / 2) {
                            self.labels.insert(n, label);
                        }
                        self.line.clear();
                    }
                }
            }
            _ => {}
        }
    }

    fn read(&mut self) -> Result<Option<Item>> {
        if let Some(item) = self.behind.take() {
            return Ok(Some(item));
        }
        loop {
            let record = match self.reader.next_item()? {
                None => return Ok(None),
                Some(AhrItem::Damage(damage)) => {
                    return Ok(Some(Note::damage(
                        FilePosition::Byte(damage.offset),
                        format!("{} ({} bytes)", damage.kind, damage.len),
                    )));
                }
                Some(AhrItem::Record(record)) => record,
            };
            if let Body::Part { name, bytes } = &record.body {
                if self.learns {
                    self.learn(name, bytes);
                }
                continue;
            }
            let last = self.last_ts.replace(record.ts_ns).unwrap_or(record.ts_ns);
            if self.header.started.is_none() {
                self.header.started = Some(WallTime::from_nanos(record.ts_ns));
                self.header.first_byte = self.reader.begins_at();
                self.next_off = self.header.first_byte;
            }
            self.time += Duration::from_nanos(record.ts_ns.saturating_sub(last));
            let gap = self.gap(&record.body);
            let Some(kind) = self.kind(record.body) else { continue };
            let event = Item::Event(Event::new(self.time, kind));
            if gap == 0 {
                return Ok(Some(event));
            }
            self.behind = Some(event);
            return Ok(Some(Item::Event(Event::new(self.time, Kind::Lost(gap)))));
        }
    }

    /// How many bytes of output are missing before this record.
    fn gap(&mut self, body: &Body) -> u64 {
        let Body::Data { off, bytes } = body else { return 0 };
        let expected = std::mem::replace(&mut self.next_off, off.saturating_add(bytes.len() as u64));
        off.saturating_sub(expected)
    }

    /// What a record says of the session. Parts were read when the recording was opened.
    fn kind(&self, body: Body) -> Option<Kind> {
        Some(match body {
            Body::Data { bytes, .. } => Kind::Output(bytes),
            Body::Input { bytes } => Kind::Input(bytes),
            Body::Resize(size) => Kind::Resize(clamp_size(size.cols.into(), size.rows.into())),
            Body::Snapshot { id, anchor, label } => Kind::Snapshot { id, anchor, label },
            Body::Mark { code, val } => match Mark::from_raw(code, val) {
                Mark::Exit(code) => Kind::Exit(Exit::Code(code as i32)),
                Mark::Signal(number) => Kind::Exit(Exit::Signal(number as i32)),
                Mark::Label(n) => Kind::Marker(self.labels.get(&n).cloned().unwrap_or_default()),
                _ => Kind::Mark { code, val },
            },
            Body::Part { .. } | Body::Unknown { .. } => return None,
        })
    }
}

impl<R: Read> EventReader for AhrEvents<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        match self.ready.pop_front() {
            Some(item) => Ok(Some(item)),
            None => self.read(),
        }
    }

    fn position(&self) -> u64 {
        self.reader.position()
    }
}

/// Writes a native recording, with what its parts say.
pub struct AhrWriter {
    builder: BlockBuilder,
    quality: Quality,
    start_ns: u64,
    last_ns: u64,
    byte_off: u64,
    labels: u32,
    /// Lost bytes that a mark spoke of and no gap has used up.
    declared: u64,
    losses: Losses,
    /// Lines of events for the block in hand, and those of another recording to put between them.
    lines: Vec<u8>,
    carried: Option<Box<CarriedEvents<Box<dyn Read + Send>>>>,
    /// Where the last block ended.
    place: Place,
}

impl fmt::Debug for AhrWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AhrWriter").field("place", &self.place).finish_non_exhaustive()
    }
}

impl AhrWriter {
    /// With blocks compressed so.
    pub fn new(quality: Quality) -> Self {
        Self {
            builder: BlockBuilder::new(0),
            quality,
            start_ns: 0,
            last_ns: 0,
            byte_off: 0,
            labels: 0,
            declared: 0,
            losses: Losses::default(),
            lines: Vec::new(),
            carried: None,
            place: Place { ts_ns: 0, byte_off: 0 },
        }
    }

    /// With the events of the recording that this one is made of.
    #[must_use]
    pub fn carrying(mut self, events: Option<Box<dyn Read + Send>>) -> Self {
        self.carried = events.map(|events| Box::new(CarriedEvents::new(events)));
        self
    }

    /// Where parts go that are added behind all blocks.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The facts that a header tells.
    pub fn meta(header: &Header) -> Meta {
        let mut meta = Meta::new();
        meta.started_at = header.started.unwrap_or_default();
        match header.argv.is_empty() {
            true => meta.cmd = header.command.iter().cloned().collect(),
            false => meta.set_argv(&header.argv),
        }
        meta.cwd.clone_from(&header.folder);
        meta.title.clone_from(&header.title);
        meta.tags.clone_from(&header.tags);
        meta.env.clone_from(&header.env);
        meta.term.clone_from(&header.term);
        meta.pipes = header.pipes;
        meta.set_idle_limit(header.idle_limit);
        meta.theme.clone_from(&header.theme);
        if header.first_byte > 0 {
            meta.extra.insert("firstByte", header.first_byte);
        }
        let size = header.size.unwrap_or_default();
        (meta.cols, meta.rows) = (size.cols, size.rows);
        meta
    }

    fn push(&mut self, record: Record, out: &mut Parts) {
        let mut rest = Some(record);
        while let Some(record) = rest {
            rest = self.builder.push(record);
            if self.builder.is_full() {
                self.finish_block(false, out);
            }
        }
    }

    /// Writes the block in hand, behind the events that go with it.
    fn finish_block(&mut self, last: bool, out: &mut Parts) {
        self.carry_up_to(if last { u64::MAX } else { self.last_ns });
        let lines = std::mem::take(&mut self.lines);
        for block in part_blocks(&[(EVENTS, &lines)], self.place, self.quality, false) {
            out.main.extend_from_slice(&block);
        }
        out.main.extend_from_slice(self.builder.finish(self.quality, last));
        self.place = Place { ts_ns: self.last_ns, byte_off: self.builder.byte_off() };
        out.place = Some(self.place);
    }

    /// Takes events of the recording that this one is made of.
    fn carry_up_to(&mut self, ts_ns: u64) {
        while let Some(carried) = &mut self.carried {
            match carried.next_up_to(ts_ns) {
                Ok(Some(line)) => self.lines.extend_from_slice(&line),
                Ok(None) => return,
                Err(_) => {
                    self.losses.add(Loss::Beside, 0);
                    self.carried = None;
                }
            }
        }
    }
}

impl EventWriter for AhrWriter {
    fn begin(&mut self, header: &Header, out: &mut Parts) {
        self.start_ns = header.started.unwrap_or_default().as_nanos();
        self.last_ns = self.start_ns;
        self.byte_off = header.first_byte;
        self.builder.go_on_at(self.byte_off);
        let size = header.size.unwrap_or_default();
        self.push(Record::resize(self.start_ns, size), out);
        self.finish_block(false, out);
        // Numbers and text always make JSON.
        let line = Self::meta(header).to_line().unwrap_or_default();
        for block in part_blocks(&[(META, &line)], self.place, self.quality, false) {
            out.main.extend_from_slice(&block);
        }
        let told = [
            Field::Command,
            Field::Folder,
            Field::Title,
            Field::Term,
            Field::Env,
            Field::Tags,
            Field::Pipes,
            Field::IdleLimit,
            Field::Theme,
        ];
        self.losses.drop_fields(header, &told);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        let ts = self.start_ns.saturating_add(event.time.as_nanos());
        self.last_ns = ts;
        let record = match &event.kind {
            Kind::Output(bytes) => {
                let off = self.byte_off;
                self.byte_off = self.byte_off.saturating_add(bytes.len() as u64);
                Record::data(ts, off, bytes.clone())
            }
            Kind::Input(bytes) => Record::input(ts, bytes.clone()),
            Kind::Resize(size) => Record::resize(ts, *size),
            Kind::Marker(label) => {
                self.labels += 1;
                let line = EventLine {
                    ts_ns: ts,
                    kind: "marker".to_owned(),
                    n: Some(self.labels),
                    label: Some(label.clone()),
                };
                self.carry_up_to(ts);
                // Text and numbers always make JSON.
                let _ = serde_json::to_writer(&mut self.lines, &line);
                self.lines.push(b'\n');
                Record::mark(ts, Mark::Label(self.labels))
            }
            Kind::Exit(Exit::Code(code)) => Record::mark(ts, Mark::Exit(*code as u32)),
            Kind::Exit(Exit::Signal(number)) => Record::mark(ts, Mark::Signal(*number as u32)),
            Kind::Mark { code, val } => {
                self.declared += Mark::from_raw(*code, *val).lost_output();
                Record::mark(ts, Mark::Other { code: *code, val: *val })
            }
            Kind::Lost(bytes) => {
                // What no mark explains was damage in the source.
                let unexplained = bytes.saturating_sub(std::mem::take(&mut self.declared));
                self.byte_off = self.byte_off.saturating_add(*bytes);
                for n in Mark::pieces(unexplained) {
                    self.push(Record::mark(ts, Mark::Repaired(n)), out);
                }
                return;
            }
            Kind::Snapshot { id, anchor, label } => Record::snapshot(ts, *id, *anchor, label.clone()),
            Kind::Other { .. } => return self.losses.drop_event(&event.kind),
        };
        self.push(record, out);
    }

    fn flush(&mut self, out: &mut Parts) {
        if !self.builder.is_empty() {
            self.finish_block(false, out);
        }
    }

    fn finish(&mut self, out: &mut Parts) {
        self.finish_block(true, out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// A command line that a shell would split into these words again.
fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c);
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tapdeck_term::Size;

    use super::*;
    use crate::ahr::Parts;
    use crate::testing::{read_all, sample_events, write_all};

    #[test]
    fn every_event_comes_back_with_its_label() {
        let (header, events) = sample_events();
        let mut writer = AhrWriter::new(Quality::default());
        let file = write_all(&mut writer, &header, &events).main;
        let parts = Parts::of(Cursor::new(&file)).unwrap();
        let labels = labels_of(parts.open(EVENTS, Cursor::new(&file)).unwrap()).unwrap();
        let meta = Meta::of_part(&parts.read(META, Cursor::new(&file)).unwrap()).unwrap();
        // A stream tells them on the way.
        for (meta, labels) in [(Some(&meta), labels), (None, BTreeMap::new())] {
            let (back, got, notes) = read_all(AhrEvents::new(&file[..], meta, labels).unwrap());
            assert_eq!(notes, []);
            assert_eq!(got, events);
            assert_eq!((back.size, back.started), (header.size, header.started));
            assert_eq!(
                (back.title, back.env, back.tags),
                (header.title.clone(), header.env.clone(), header.tags.clone())
            );
        }
    }

    #[test]
    fn a_gap_in_the_output_keeps_its_length() {
        // Anchors of snapshots count from the start; closing a gap would move them all.
        let mut builder = BlockBuilder::new(0);
        let records = [
            Record::resize(1, Size::new(80, 24)),
            Record::data(2, 0, &b"abc"[..]),
            Record::mark(3, Mark::OutputLag(100)),
            Record::data(4, 103, &b"def"[..]),
            Record::data(5, 206, &b"ghi"[..]),
            Record::data(6, (1 << 62) - 10, &b"end"[..]),
        ];
        for record in records {
            assert_eq!(builder.push(record), None);
        }
        let file = builder.finish(Quality::Stored, true).to_vec();
        let (header, events, _) = read_all(AhrEvents::new(&file[..], None, BTreeMap::new()).unwrap());
        let lost: Vec<u64> =
            events.iter().filter_map(|e| if let Kind::Lost(n) = e.kind { Some(n) } else { None }).collect();
        assert_eq!(lost[..2], [100, 100]);
        let again = write_all(&mut AhrWriter::new(Quality::Stored), &header, &events).main;
        let summary = crate::ahr::Summary::of(&again[..]).unwrap();
        assert_eq!(summary.end_off, (1 << 62) - 7);
        assert_eq!(summary.output_bytes, 12);
    }

    #[test]
    fn a_clock_set_back_makes_no_negative_time() {
        let mut builder = BlockBuilder::new(0);
        for (ts, off) in [(5_000, 0), (6_000, 1), (1_000, 2), (1_500, 3)] {
            assert_eq!(builder.push(Record::data(ts, off, &b"x"[..])), None);
        }
        let file = builder.finish(Quality::Stored, true).to_vec();
        let (_, got, _) = read_all(AhrEvents::new(&file[..], None, BTreeMap::new()).unwrap());
        let times: Vec<u64> = got.iter().map(|e| e.time.as_nanos()).collect();
        assert_eq!(times, [0, 1_000, 1_000, 1_500]);
    }
}
