//! Events into a terminal model, with what happened beside the output remembered. Everything that
//! needs a screen (exports, final lines, keyframes) goes through here, so they all agree on what it
//! shows.

use std::io::Read;

use serde::Deserialize;
use tapdeck_core::{Exit, Offset, Time, WallTime};
use tapdeck_term::{Settings, Term};

use crate::Result;
use crate::ahr::MAX_OFFSET;
use crate::event::{Event, EventReader, Header, Item, Kind, Note};
use crate::lines::Lines;
use crate::turns::{RecordedTurn, TurnWatch};

/// Moments beyond this many are dropped, far more than a person sets.
const MAX_MOMENTS: usize = 1_000_000;
/// Remarks beyond this many are dropped.
const MAX_NOTES: usize = 1_000;

/// Something that was marked in the course of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// What it is.
    pub kind: MomentKind,
    /// When, since the start.
    pub time: Time,
    /// Wall clock, where it is known.
    pub wall: Option<WallTime>,
    /// How many bytes the program had written.
    pub anchor: u64,
    /// Its label.
    pub label: String,
}

impl Moment {
    /// The id, if this is a snapshot.
    pub fn snapshot_id(&self) -> Option<u64> {
        match self.kind {
            MomentKind::Snapshot(id) => Some(id),
            MomentKind::Marker => None,
        }
    }
}

/// Kinds of moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentKind {
    /// A file-system snapshot with its id.
    Snapshot(u64),
    /// A marker.
    Marker,
}

/// A terminal that follows a recording.
#[derive(Debug, Clone)]
pub struct Replay {
    term: Term,
    byte_off: u64,
    time: Time,
    started: Option<WallTime>,
    moments: Vec<Moment>,
    /// Snapshots and markers that are not kept.
    more_moments: u64,
    ending: Option<Exit>,
    notes: Vec<Note>,
    turns: TurnWatch,
}

impl Replay {
    /// A terminal as the header describes it, with this many rows of scrollback. It answers no
    /// query of the recorded program: the program is gone.
    pub fn new(header: &Header, scrollback: usize) -> Self {
        let settings = Settings::default().scrollback(scrollback).replies(false).newline_mode(header.pipes);
        Self {
            term: Term::new(header.size.unwrap_or_default(), settings),
            byte_off: 0,
            time: Time::ZERO,
            started: header.started,
            moments: Vec::new(),
            more_moments: 0,
            ending: None,
            notes: Vec::new(),
            turns: TurnWatch::default(),
        }
    }

    /// Watches for these turns of the recording, which [`Replay::hidden_turns`] tells of.
    #[must_use]
    pub(crate) fn with_turns(mut self, turns: Vec<RecordedTurn>) -> Self {
        self.turns = TurnWatch::new(turns);
        self
    }

    /// Replays a whole recording to its end.
    ///
    /// # Errors
    /// When the recording cannot be read on.
    pub fn to_end(reader: &mut dyn EventReader, scrollback: usize) -> Result<Self> {
        Self::to_end_with_turns(reader, scrollback, Vec::new())
    }

    /// Replays a whole recording, of which these turns are known, to its end.
    ///
    /// # Errors
    /// When the recording cannot be read on.
    pub fn to_end_with_turns(
        reader: &mut dyn EventReader,
        scrollback: usize,
        turns: Vec<RecordedTurn>,
    ) -> Result<Self> {
        let mut replay = Self::new(reader.header(), scrollback).with_turns(turns);
        while let Some(item) = reader.next_item()? {
            replay.item(item);
        }
        Ok(replay)
    }

    /// Takes what a reader gave.
    pub fn item(&mut self, item: Item) {
        match item {
            Item::Event(event) => self.apply(&event),
            Item::Note(note) if self.notes.len() < MAX_NOTES => self.notes.push(note),
            Item::Note(_) => {}
        }
    }

    /// Takes an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.time = event.time;
        match &event.kind {
            Kind::Output(bytes) => self.output(bytes),
            Kind::Lost(bytes) => self.byte_off = self.byte_off.saturating_add(*bytes).min(MAX_OFFSET),
            Kind::Resize(size) => {
                self.term.resize(*size);
            }
            Kind::Marker(label) => self.moment(MomentKind::Marker, self.byte_off, label),
            Kind::Snapshot { id, anchor, label } => self.moment(MomentKind::Snapshot(*id), *anchor, label),
            Kind::Exit(exit) => self.ending = Some(*exit),
            Kind::Input(_) | Kind::Mark { .. } | Kind::Other { .. } => {}
        }
    }

    /// Feeds output, in parts where a turn begins or ends in it.
    fn output(&mut self, mut bytes: &[u8]) {
        loop {
            self.turns.look(self.byte_off, &self.term);
            let stop = self.turns.next_stop().map(|stop| stop.saturating_sub(self.byte_off));
            let len = stop.and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX).min(bytes.len());
            let (part, rest) = bytes.split_at(len);
            self.term.feed_at(part, self.byte_off);
            self.byte_off = self.byte_off.saturating_add(len as u64);
            bytes = rest;
            if bytes.is_empty() {
                return self.turns.look(self.byte_off, &self.term);
            }
        }
    }

    fn moment(&mut self, kind: MomentKind, anchor: u64, label: &str) {
        if self.moments.len() < MAX_MOMENTS {
            let wall = self.started.map(|start| start + self.time.since_start());
            let label = label.to_owned();
            self.moments.push(Moment { kind, time: self.time, wall, anchor, label });
        } else {
            self.more_moments += 1;
        }
    }

    /// Forgets the oldest rows of scrollback.
    pub(crate) fn forget_scrollback(&mut self, rows: usize) {
        self.term.forget_scrollback(rows);
    }

    /// The terminal as it is now.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// How much the program has written.
    pub fn offset(&self) -> Offset {
        Offset(self.byte_off)
    }

    /// Time of the last event, since the start.
    pub(crate) fn time(&self) -> Time {
        self.time
    }

    /// Snapshots and markers so far, in order.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// How many snapshots and markers there were beyond the million that are kept.
    pub fn more_moments(&self) -> u64 {
        self.more_moments
    }

    /// The turns so far that were shown in the alternate screen, so that no line of the terminal
    /// has them, in order.
    pub fn hidden_turns(&self) -> Vec<&RecordedTurn> {
        self.turns.hidden(&self.term)
    }

    /// How the program ended, where the recording tells.
    pub(crate) fn ending(&self) -> Option<Exit> {
        self.ending
    }

    /// Remarks of the reader.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

#[derive(Deserialize)]
struct SnapshotLine {
    id: u64,
    #[serde(with = "crate::nanos")]
    ts_ns: WallTime,
    #[serde(default)]
    label: Option<String>,
    anchor_byte: u64,
}

/// The snapshots in a sidecar `NAME.snapshots.jsonl`, in order; lines that are none are passed
/// over.
///
/// # Errors
/// When the reader fails.
pub fn snapshots_of(sidecar: impl Read, started: WallTime) -> Result<Vec<Moment>> {
    let mut lines = Lines::new(sidecar);
    let mut moments = Vec::new();
    while let Some(line) = lines.next_line()? {
        if moments.len() < MAX_MOMENTS
            && let Ok(line) = serde_json::from_slice::<SnapshotLine>(line.text)
        {
            moments.push(Moment {
                kind: MomentKind::Snapshot(line.id),
                time: line.ts_ns.since(started).into(),
                wall: Some(line.ts_ns),
                anchor: line.anchor_byte,
                label: line.label.unwrap_or_default(),
            });
        }
    }
    Ok(moments)
}
