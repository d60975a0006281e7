//! One client: its connection, what it is, and what waits for it.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tapdeck_core::{Authority, PartyId, Role, Seq};
use tapdeck_term::Generation;

use super::auth::Grants;
use super::capture::Capture;
use super::paste::Paste;
use super::queue::Queue;
use crate::conn::Conn;
use crate::paint::HOLD_NS;
use crate::wire;

/// The longest frame of the bus, to and from clients that did not agree on more.
pub(crate) const MAX_FRAME: usize = 256 * 1024;
/// The most that a client can agree on.
pub(crate) const MAX_AGREED: usize = 16 << 20;
/// With this much waiting, a client is behind and gets no more of the stream until it has caught up.
pub(crate) const BEHIND: usize = 1 << 20;
/// With this much waiting it is not served at all any more.
const HOPELESS: usize = 2 * MAX_AGREED;
const READ: usize = 64 * 1024;

/// What a client speaks.
pub(crate) enum Kind {
    /// It has not said anything yet.
    Unknown,
    Bus(BusState),
    Wire(WireState),
}

/// A bus client.
pub(crate) struct BusState {
    pub(crate) max_frame: usize,
    pub(crate) sub: Option<Box<Sub>>,
    pub(crate) capture: Option<Capture>,
    pub(crate) paste: Option<Box<Paste>>,
    /// What the requests that these two answer were called.
    pub(crate) capture_id: Option<Id>,
    pub(crate) paste_id: Option<Id>,
}

/// What a client calls a request, to know its reply by.
pub(crate) type Id = Box<str>;

/// What a subscriber wants.
pub(crate) struct Sub {
    pub(crate) out: bool,
    pub(crate) frames: Frames,
    /// The least time between two frames.
    pub(crate) interval_ns: u64,
    pub(crate) last_frame_ns: u64,
    /// The screen that it has seen.
    pub(crate) seen: Option<Generation>,
    /// From where on it gets the stream.
    pub(crate) from: Seq,
    pub(crate) missed: Option<Missed>,
    /// How many frames it takes before it has said that it has drawn one, if it says so at all.
    pub(crate) window: Option<u64>,
    pub(crate) undrawn: u64,
    /// What a painter has been given to draw.
    pub(crate) drawn: Option<crate::paint::Drawn>,
    /// Since when a frame is held back, because the program is in the middle of drawing.
    pub(crate) held_ns: Option<u64>,
    /// What it sees, somebody has seen: one that only waits for something leaves the last screen to others.
    pub(crate) looks: bool,
    /// The last frame was held in vain: whoever draws without a pause is shown as it comes, or it would hardly move.
    pub(crate) restless: bool,
}

impl Sub {
    /// Whether it has drawn enough of what it was sent.
    pub(crate) fn keeps_up(&self) -> bool {
        self.window.is_none_or(|window| self.undrawn < window)
    }

    /// Whether it is time for a frame: of one that is held back, as soon as the program has drawn to its end.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.held_ns.is_some() || now >= self.last_frame_ns + self.interval_ns
    }

    /// Holds its frame back while the program is drawing; says whether it is held.
    pub(crate) fn hold(&mut self, drawing: bool, now: u64) -> bool {
        if !drawing {
            self.restless = false;
            return false;
        }
        let limit = if self.restless { HOLD_NS / 10 } else { HOLD_NS };
        let until = *self.held_ns.get_or_insert(now) + limit;
        // Nobody has to look again before that, if nothing comes.
        self.last_frame_ns = until.saturating_sub(self.interval_ns);
        self.restless |= now >= until;
        now < until
    }
}

/// How a subscriber gets the screen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    None,
    Full,
    Delta,
    /// For a painter: see [`crate::paint`].
    Paint,
}

/// Output that a client did not get.
#[derive(Clone, Copy)]
pub(crate) struct Missed {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Missed {
    pub(crate) fn more(this: &mut Option<Self>, from: u64, to: u64) {
        match this {
            Some(missed) => missed.to = to,
            None => *this = Some(Self { from, to }),
        }
    }
}

/// An attached client.
pub(crate) struct WireState {
    pub(crate) opened: bool,
    pub(crate) read_only: bool,
    /// It shows the session on a terminal of its own.
    pub(crate) shows: bool,
    pub(crate) from: Seq,
    pub(crate) missed: Option<Missed>,
    /// Input that the gate had no room for.
    pub(crate) held: Option<Bytes>,
}

/// A client.
pub(crate) struct Client {
    pub(crate) conn: Conn,
    pub(crate) grants: Arc<Grants>,
    pub(crate) kind: Kind,
    pub(crate) inbox: Vec<u8>,
    pub(crate) queue: Queue,
    /// It has shown that it may be here.
    pub(crate) known: bool,
    pub(crate) party: Option<PartyId>,
    pub(crate) name: String,
    /// What it may do. Until it has said who it is, it watches.
    pub(crate) authority: Authority,
    /// What the request that is being served is called, until it has its reply.
    pub(crate) asked: Option<Id>,
    pub(crate) came_ns: u64,
    /// When it last took something, while something waits.
    pub(crate) took_ns: u64,
    /// To be closed once everything has been sent.
    pub(crate) closing: bool,
    /// Gone.
    pub(crate) gone: bool,
}

impl Client {
    pub(crate) fn new(conn: Conn, grants: Arc<Grants>, now_ns: u64) -> Self {
        Self {
            conn,
            kind: Kind::Unknown,
            inbox: Vec::new(),
            queue: Queue::default(),
            known: !grants.is_required(),
            grants,
            party: None,
            name: String::new(),
            authority: Authority::of(Role::Observer),
            asked: None,
            came_ns: now_ns,
            took_ns: now_ns,
            closing: false,
            gone: false,
        }
    }

    /// Reads what has come. Says whether there is something to look at.
    pub(crate) fn read(&mut self) -> bool {
        let start = self.inbox.len();
        self.inbox.resize(start + READ, 0);
        match self.conn.read(&mut self.inbox[start..]) {
            Ok(0) => self.gone = true,
            Ok(n) => {
                self.inbox.truncate(start + n);
                return true;
            }
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
        self.inbox.truncate(start);
        false
    }

    pub(crate) fn send(&mut self, piece: impl Into<Bytes>) {
        if self.gone {
            return;
        }
        self.queue.push(piece);
        if self.queue.len() > HOPELESS {
            self.gone = true;
        }
    }

    /// Sends a frame of the bus. The first one while a request is served is its reply.
    pub(crate) fn say(&mut self, verb: &str, payload: &Value) {
        let id = self.asked.take();
        self.say_to(id, verb, payload);
    }

    /// Sends the reply to a request of this name.
    pub(crate) fn say_to(&mut self, id: Option<Id>, verb: &str, payload: &Value) {
        self.send(match id {
            Some(id) => format!("{verb}#{id} {payload}\n"),
            None => format!("{verb} {payload}\n"),
        });
    }

    /// The verb of the reply to the request that is being served, for who writes the frame.
    pub(crate) fn reply_verb(&mut self, verb: &str) -> String {
        match self.asked.take() {
            Some(id) => format!("{verb}#{id}"),
            None => verb.to_owned(),
        }
    }

    /// Sends a control chunk of the wire.
    pub(crate) fn control(&mut self, value: &Value) {
        self.send(wire::control(value));
    }

    /// Whether it gets the program's output as it comes.
    pub(crate) fn follows(&self) -> bool {
        match &self.kind {
            Kind::Unknown => false,
            Kind::Bus(bus) => bus.sub.is_some() || bus.capture.is_some() || bus.paste.is_some(),
            Kind::Wire(wire) => wire.opened,
        }
    }

    pub(crate) fn flush(&mut self, now_ns: u64) {
        let before = self.queue.len();
        if self.queue.flush(&mut self.conn).is_err() {
            self.gone = true;
        }
        if self.queue.len() < before || before == 0 {
            self.took_ns = now_ns;
        }
        if self.closing && self.queue.is_empty() {
            self.gone = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_waits_for_the_end_of_a_redraw_but_not_for_ever() {
        const MS: u64 = 1_000_000;
        let mut sub = Sub {
            out: false,
            frames: Frames::Paint,
            interval_ns: 16 * MS,
            last_frame_ns: 0,
            seen: None,
            from: Seq(0),
            missed: None,
            window: None,
            undrawn: 0,
            drawn: None,
            held_ns: None,
            looks: true,
            restless: false,
        };
        // At a moment the program is drawing or not; the frame is held or sent.
        let cases = [
            (100, true, true),
            (200, true, true),
            (201, false, false),
            (300, true, true),
            (449, true, true),
            (450, true, false),
            // Drawing without a pause, it is shown about as often as if nobody held anything.
            (470, true, true),
            (485, true, false),
            // Once it was whole, there is time again.
            (500, false, false),
            (520, true, true),
            (600, true, true),
        ];
        for (at, drawing, held) in cases {
            assert!(sub.is_due(at * MS), "at {at}");
            assert_eq!(sub.hold(drawing, at * MS), held, "at {at}");
            if !held {
                (sub.last_frame_ns, sub.held_ns) = (at * MS - sub.interval_ns, None);
            }
        }
    }
}
