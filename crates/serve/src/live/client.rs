//! A client: its connection, and what it has shown, asked for and seen so far.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Authority, Group, Offset, PartyId, Role, Seq, Time};
use tapdeck_proto::bus::{Frames, MAX_FRAME, Reply};
use tapdeck_term::{Generation, Theme};

use super::answer::AnswerWork;
use super::auth::Grants;
use super::capture::Capture;
use super::connection::Connection;
use super::paste::Paste;
use crate::conn::Conn;
use crate::paint::HOLD;

/// With this many bytes waiting, a client is behind. It gets no more of the stream until it has
/// caught up.
pub(crate) const BEHIND: usize = 1 << 20;

/// What a client speaks.
pub(crate) enum Kind {
    /// Nothing yet.
    Unknown,
    Bus(Box<BusState>),
    Wire(WireState),
}

/// A bus client.
pub(crate) struct BusState {
    pub(crate) max_frame: usize,
    /// The colours of what the client paints.
    pub(crate) theme: Theme,
    pub(crate) sub: Option<Box<Sub>>,
    pub(crate) capture: Option<Pending<Capture>>,
    pub(crate) paste: Option<Pending<Box<Paste>>>,
    pub(crate) answer: Option<Pending<Box<AnswerWork>>>,
    /// The client said with its subscription that it only waits: it does not look at the session.
    pub(crate) only_waits: bool,
}

impl BusState {
    /// A client that has not asked for anything yet.
    pub(crate) fn new() -> Self {
        Self {
            max_frame: MAX_FRAME,
            theme: Theme::XTERM,
            sub: None,
            capture: None,
            paste: None,
            answer: None,
            only_waits: false,
        }
    }
}

/// Work for a request whose reply comes later.
pub(crate) struct Pending<T> {
    /// The request's id.
    pub(crate) id: Option<Id>,
    pub(crate) work: T,
}

/// What a client calls a request, to know its reply by.
pub(crate) type Id = Box<str>;

/// What a subscriber wants.
pub(crate) struct Sub {
    pub(crate) out: bool,
    pub(crate) frames: Frames,
    /// The least time between two frames.
    pub(crate) interval: Duration,
    pub(crate) last_frame: Time,
    /// The screen that it has seen.
    pub(crate) seen: Option<Generation>,
    /// From where on it gets the stream.
    pub(crate) from: Seq,
    pub(crate) missed: Option<Missed>,
    /// How many frames it takes before an `ACK`, if it sends any.
    pub(crate) window: Option<u64>,
    pub(crate) undrawn: u64,
    /// What a painter has been given to draw.
    pub(crate) drawn: Option<crate::paint::Drawn>,
    /// Since when a frame is held back, because the program is in the middle of drawing.
    pub(crate) held_at: Option<Time>,
    /// The last frame was held in vain: a program that draws without a pause is shown as it draws.
    pub(crate) restless: bool,
}

impl Sub {
    /// Whether it has drawn enough of what it was sent.
    pub(crate) fn keeps_up(&self) -> bool {
        self.window.is_none_or(|window| self.undrawn < window)
    }

    /// Whether it is time for a frame. A frame that was held back is due once the program has
    /// finished drawing.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.held_at.is_some() || now >= self.last_frame + self.interval
    }

    /// Holds its frame back while the program is drawing; says whether it is held.
    pub(crate) fn hold(&mut self, drawing: bool, now: Time) -> bool {
        if !drawing {
            self.restless = false;
            return false;
        }
        let limit = if self.restless { HOLD / 10 } else { HOLD };
        let until = *self.held_at.get_or_insert(now) + limit;
        // No look is needed before that, if nothing comes.
        self.last_frame = until - self.interval;
        self.restless |= now >= until;
        now < until
    }
}

/// Output that a client did not get.
#[derive(Clone, Copy)]
pub(crate) struct Missed {
    pub(crate) from: Offset,
    pub(crate) to: Offset,
}

impl Missed {
    pub(crate) fn more(this: &mut Option<Self>, from: Offset, to: Offset) {
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
    pub(crate) conn: Connection,
    pub(crate) grants: Arc<Grants>,
    pub(crate) kind: Kind,
    /// It has shown that it may be here.
    pub(crate) known: bool,
    /// It has just shown a token that is wrong.
    pub(crate) guessed: bool,
    pub(crate) party: Option<PartyId>,
    pub(crate) name: String,
    pub(crate) authority: Authority,
}

impl Client {
    pub(crate) fn new(socket: Conn, grants: Arc<Grants>, now: Time) -> Self {
        Self {
            conn: Connection::new(socket, now),
            kind: Kind::Unknown,
            known: !grants.is_required(),
            guessed: false,
            grants,
            party: None,
            name: String::new(),
            authority: Authority::of(Role::Observer),
        }
    }

    /// Makes the client's authority from the role that it asks for and the token that it shows.
    pub(crate) fn show(&mut self, asked: Role, token: Option<&str>) -> Result<Authority, &'static str> {
        let authority = self.grants.authority(asked, token);
        self.guessed |= authority.is_err() && token.is_some();
        authority
    }

    /// The group of the people who show this token, which was found to be right.
    pub(crate) fn group_of(&self, token: &str) -> Group {
        self.grants.group(token)
    }

    /// Whether the client only waits, and does not look at the session.
    pub(crate) fn only_waits(&self) -> bool {
        matches!(&self.kind, Kind::Bus(bus) if bus.only_waits)
    }

    /// Whether the client sees the end of a session. One that asks a question, as `ls` does, is not
    /// told of it.
    pub(crate) fn sees_end(&self) -> bool {
        match &self.kind {
            Kind::Bus(bus) => (bus.sub.is_some() && !bus.only_waits) || bus.capture.is_some(),
            Kind::Wire(_) => true,
            Kind::Unknown => false,
        }
    }

    /// Returns the state of a bus client.
    pub(crate) fn bus(&mut self) -> Option<&mut BusState> {
        match &mut self.kind {
            Kind::Bus(bus) => Some(bus),
            _ => None,
        }
    }

    /// Returns the state of a client that is attached.
    pub(crate) fn attached(&self) -> Option<&WireState> {
        match &self.kind {
            Kind::Wire(wire) if wire.opened => Some(wire),
            _ => None,
        }
    }

    /// Returns whether the client has subscribed.
    pub(crate) fn subscribes(&self) -> bool {
        matches!(&self.kind, Kind::Bus(bus) if bus.sub.is_some())
    }

    /// Returns the longest frame that the client takes.
    pub(crate) fn max_frame(&self) -> usize {
        match &self.kind {
            Kind::Bus(bus) => bus.max_frame,
            _ => MAX_FRAME,
        }
    }

    /// Returns whether the client gets the program's output as it comes.
    pub(crate) fn follows(&self) -> bool {
        match &self.kind {
            Kind::Unknown => false,
            Kind::Bus(bus) => {
                bus.sub.is_some() || bus.capture.is_some() || bus.paste.is_some() || bus.answer.is_some()
            }
            Kind::Wire(wire) => wire.opened,
        }
    }

    /// Returns whether the client has yet to say who it is.
    pub(crate) fn is_silent(&self) -> bool {
        !self.known || matches!(self.kind, Kind::Unknown)
    }

    /// Answers the `CMD` that is waiting.
    pub(crate) fn answer_capture(&mut self, reply: impl Into<Reply>) {
        if let Some(pending) = self.bus().and_then(|bus| bus.capture.take()) {
            self.conn.reply(pending.id.as_deref(), &reply.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_waits_for_the_end_of_a_redraw_but_not_for_ever() {
        let mut sub = Sub {
            out: false,
            frames: Frames::Paint,
            interval: Duration::from_millis(16),
            last_frame: Time::ZERO,
            seen: None,
            from: Seq(0),
            missed: None,
            window: None,
            undrawn: 0,
            drawn: None,
            held_at: None,
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
            // Drawing without a pause, it is shown about as often as without holding.
            (470, true, true),
            (485, true, false),
            // Once it was whole, there is time again.
            (500, false, false),
            (520, true, true),
            (600, true, true),
        ];
        for (at, drawing, held) in cases {
            let now = Time::from_millis(at);
            assert!(sub.is_due(now), "at {at}");
            assert_eq!(sub.hold(drawing, now), held, "at {at}");
            if !held {
                (sub.last_frame, sub.held_at) = (now - sub.interval, None);
            }
        }
    }
}
