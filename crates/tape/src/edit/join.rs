//! Several recordings as one, each behind the one before.

use std::collections::VecDeque;
use std::sync::Arc;

use tapdeck_core::{Time, WallTime};
use tapdeck_term::{Keep, Term};

use super::Moved;
use super::reader::{follower, pieces};
use crate::Result;
use crate::event::{Event, EventReader, Header, Item, Kind};

/// One of the recordings that are joined.
pub struct Part {
    /// Its events.
    pub reader: Box<dyn EventReader + Send>,
    /// Its terminal changes its size. The terminal then begins with an empty scrollback, or lines
    /// of the recording before would come back into its screen.
    pub resizes: bool,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("resizes", &self.resizes).finish_non_exhaustive()
    }
}

/// Where the recordings went that were joined: for each, where its times and offsets are now.
pub type Joined = Vec<Arc<Moved>>;

/// Reads several recordings as one. Each begins on a terminal as at power-on; the lines that the
/// one before left stay in the scrollback, unless it changes its size. Between two there is no
/// pause. Only how the last one ended is told.
#[derive(Debug)]
pub struct JoinReader {
    header: Header,
    part: Part,
    later: VecDeque<Part>,
    /// Follows, to know what a part leaves to the next.
    term: Term,
    /// Where in the whole the part begins, and the time of the last event.
    base: Time,
    last: Time,
    out_off: u64,
    ready: VecDeque<Item>,
    joined: Joined,
    position: u64,
    over: bool,
}

impl JoinReader {
    /// Joins recordings; `None` if there is none.
    pub fn new(parts: Vec<Part>) -> Option<Self> {
        let pipes = parts.iter().all(|part| part.reader.header().pipes);
        let mut later: VecDeque<Part> = parts.into();
        let part = later.pop_front()?;
        let header = Header { pipes, first_byte: 0, ..part.reader.header().clone() };
        let mut this = Self {
            term: follower(&header),
            header,
            part,
            later,
            base: Time::ZERO,
            last: Time::ZERO,
            out_off: 0,
            ready: VecDeque::new(),
            joined: Vec::new(),
            position: 0,
            over: false,
        };
        this.begin();
        Some(this)
    }

    /// Where everything went, when all was read.
    pub fn into_joined(self) -> Joined {
        self.joined
    }

    /// Begins the part at hand.
    fn begin(&mut self) {
        // Line feeds return the carriage for a program without a terminal.
        let needs_returns = self.part.reader.header().pipes && !self.header.pipes;
        if needs_returns {
            self.put(b"\x1b[20h".to_vec());
        }
        let header = self.part.reader.header();
        let started = |header: &Header| header.started.unwrap_or_default();
        let walls: (WallTime, WallTime) = (started(header), started(&self.header));
        let offsets = (header.first_byte, self.out_off);
        self.joined.push(Arc::new(Moved::by(walls, self.base, offsets)));
    }

    /// Writes output of its own.
    fn put(&mut self, bytes: Vec<u8>) {
        self.term.feed(&bytes);
        self.out_off += bytes.len() as u64;
        self.ready.extend(pieces(self.base, bytes));
    }

    /// Goes on with the next part.
    fn next_part(&mut self) {
        let Some(part) = self.later.pop_front() else {
            self.over = true;
            return;
        };
        self.position += self.part.reader.position();
        self.base = self.last;
        self.part = part;
        let size = self.part.reader.header().size.unwrap_or_default();
        if size != self.term.size() {
            self.term.resize(size);
            self.ready.push_back(Item::Event(Event::new(self.base, Kind::Resize(size))));
        }
        let keep = if self.part.resizes { Keep::Nothing } else { Keep::Lines };
        self.put(self.term.renew(keep));
        self.begin();
    }

    fn event(&mut self, event: Event) {
        let time = self.base + event.time.since_start();
        self.last = time;
        let kind = match event.kind {
            Kind::Output(bytes) => {
                self.term.feed(&bytes);
                self.out_off = self.out_off.saturating_add(bytes.len() as u64);
                Kind::Output(bytes)
            }
            Kind::Resize(size) => {
                self.term.resize(size);
                Kind::Resize(size)
            }
            Kind::Lost(bytes) => {
                self.out_off = self.out_off.saturating_add(bytes);
                Kind::Lost(bytes)
            }
            Kind::Snapshot { id, anchor, label } => {
                let anchor = self.joined.last().map_or(anchor, |moved| moved.offset(anchor));
                Kind::Snapshot { id, anchor, label }
            }
            Kind::Exit(_) if !self.later.is_empty() => return,
            kind => kind,
        };
        self.ready.push_back(Item::Event(Event::new(time, kind)));
    }
}

impl EventReader for JoinReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.over {
                return Ok(None);
            }
            match self.part.reader.next_item()? {
                Some(Item::Event(event)) => self.event(event),
                Some(note) => self.ready.push_back(note),
                None => self.next_part(),
            }
        }
    }

    fn position(&self) -> u64 {
        self.position + self.part.reader.position()
    }
}
