//! Scrubbing on the way to the disk. What the log gives is held back for a moment, so that a secret
//! that comes in pieces is seen whole before any of it is written; a line that looks like the
//! beginning of one is held longer. All of it bounded: what comes later than that can only be
//! masked from there on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::scrub::{Masks, Report, Rules, Scrubber};
use tapdeck_core::{Entry, Event, Offset, WallTime, WinSize};
use tapdeck_term::Size;

/// What came is written no sooner than after this long.
const HOLD: Duration = Duration::from_millis(250);
/// A line that may become a hit is waited for this long.
const OPEN: Duration = Duration::from_secs(10);
/// Bytes held back at most.
const MAX_HELD: usize = 1 << 20;

/// Entries on their way to the disk.
pub(crate) struct Held {
    scrubber: Scrubber,
    /// With the time when each came here. A recorder that is behind gets entries that are old.
    queue: VecDeque<(WallTime, Entry)>,
    weight: usize,
    /// Input is recorded, so it is looked at.
    with_input: bool,
    /// Offsets of what was released.
    output: Offset,
    input: u64,
    /// When the queue is to be looked at again.
    due: WallTime,
    /// Masks of output and of input that came too late for what they cover, if they are kept.
    late: Option<(Masks, Masks)>,
}

impl Held {
    pub(crate) fn new(rules: Arc<Rules>, size: WinSize, with_input: bool) -> Self {
        let size = size.or_default();
        Self {
            scrubber: Scrubber::new(rules, Size::new(size.cols, size.rows)),
            queue: VecDeque::new(),
            weight: 0,
            with_input,
            output: Offset(0),
            input: 0,
            due: WallTime::ZERO,
            late: None,
        }
    }

    /// Keeps the masks that come too late, for a caller that can write anew.
    pub(crate) fn keep_late(mut self) -> Self {
        self.late = Some(Default::default());
        self
    }

    /// For texts beside the recording.
    pub(crate) fn scrubber(&mut self) -> &mut Scrubber {
        &mut self.scrubber
    }

    /// When something is to be done though nothing comes, in wall-clock nanoseconds.
    pub(crate) fn due(&self) -> Option<WallTime> {
        (!self.queue.is_empty()).then_some(self.due)
    }

    /// So many bytes of output were lost before they came here.
    pub(crate) fn lost(&mut self, n: u64) {
        self.scrubber.lost(n);
    }

    pub(crate) fn push(&mut self, entry: Entry, now: WallTime) {
        match &entry.event {
            Event::Output { bytes, .. } => {
                self.weight += bytes.len();
                self.scrubber.output(bytes);
            }
            Event::Input { bytes, hidden, .. } if self.with_input => {
                self.weight += bytes.len();
                if *hidden {
                    self.scrubber.hidden_input(bytes);
                } else {
                    self.scrubber.input(bytes);
                }
            }
            Event::Input { bytes, hidden, .. } => self.scrubber.overhear(bytes, *hidden),
            Event::Resize(size) => {
                let size = size.or_default();
                self.scrubber.resize(Size::new(size.cols, size.rows));
            }
            _ => {}
        }
        if self.queue.is_empty() {
            self.due = now + HOLD;
        }
        self.queue.push_back((now, entry));
    }

    /// What may be written now, masked; with `all`, everything.
    pub(crate) fn release(&mut self, now: WallTime, all: bool) -> Vec<Entry> {
        let Some(first) = self.queue.front().map(|(came, _)| *came) else { return Vec::new() };
        // A caller waits for a snapshot or an instruction to be on disk, and nothing comes from a
        // session that has ended.
        let urgent = |(_, e): &(WallTime, Entry)| {
            matches!(e.event, Event::Snapshot { .. } | Event::Instruction(_) | Event::Exit(_))
        };
        let all = all || self.queue.iter().any(urgent);
        let full = self.weight > MAX_HELD;
        if !all && !full && now < self.due {
            return Vec::new();
        }
        self.scrubber.settle();
        if let Some((output, input)) = &mut self.late {
            output.extend_before(self.scrubber.output_masks(), self.output.0);
            input.extend_before(self.scrubber.input_masks(), self.input);
        }
        let open = !all && self.scrubber.is_open() && now < first + OPEN;
        if open && !full {
            self.due = now + HOLD;
            return Vec::new();
        }
        let mut out = Vec::new();
        while let Some((came, _)) = self.queue.front() {
            // Of too much, the newest stays: it may end in the middle of something.
            let some = full && self.weight > MAX_HELD / 2;
            if !(all || some || (!open && now >= *came + HOLD)) {
                break;
            }
            let entry = self.queue.pop_front();
            out.extend(entry.map(|(_, entry)| self.masked(entry)));
        }
        if let Some((came, _)) = self.queue.front() {
            self.due = (*came + HOLD).max(if open { now + HOLD } else { WallTime::ZERO });
        }
        self.scrubber.forget_before(self.output.0, self.input);
        out
    }

    fn masked(&mut self, mut entry: Entry) -> Entry {
        match &mut entry.event {
            Event::Output { bytes, .. } => {
                self.weight -= bytes.len();
                if self.scrubber.output_masks().touches(entry.offset, bytes.len()) {
                    let mut masked = bytes.to_vec();
                    self.scrubber.output_masks().apply(entry.offset, &mut masked);
                    *bytes = masked.into();
                }
                self.output = entry.offset + bytes.len();
                self.scrubber.inspect(bytes);
            }
            Event::Input { bytes, .. } if self.with_input => {
                self.weight -= bytes.len();
                if self.scrubber.input_masks().touches(Offset(self.input), bytes.len()) {
                    let mut masked = bytes.to_vec();
                    self.scrubber.input_masks().apply(Offset(self.input), &mut masked);
                    *bytes = masked.into();
                }
                self.input += bytes.len() as u64;
            }
            Event::Snapshot { label, .. } | Event::Marker { label, .. } => {
                *label = self.scrubber.text(label).into();
            }
            _ => {}
        }
        entry
    }

    /// Gives the scrubber back, with what it has learned, and the masks that came too late.
    pub(crate) fn into_parts(self) -> (Scrubber, Masks, Masks) {
        let (output, input) = self.late.unwrap_or_default();
        (self.scrubber, output, input)
    }

    /// What was found.
    pub(crate) fn report(&self) -> Report {
        self.scrubber.report()
    }
}
