//! What the log says, passed on to every client in its own form.

use bytes::Bytes;
use tapdeck_core::{Change, Entry, Event, Offset, Stream, Time, Why};
use tapdeck_proto::attach;
use tapdeck_proto::bus::{self, MAX_FRAME, Push};
use tapdeck_term::Signal;

use super::capture::Capture;
use super::client::{BEHIND, Client, Kind, Missed};
use super::hub::Hub;
use crate::wire::{self, ChunkKind};

impl Hub {
    pub(super) fn pass_on(&mut self, entry: &Entry, now: Time) {
        let session = &mut self.session;
        match &entry.event {
            Event::Output { stream, bytes } => {
                session.last_output = now;
                session.passed = entry.offset + bytes.len();
                session.waiting = false;
                self.pass_output(entry, *stream, bytes);
            }
            Event::Resize(size) => {
                session.size = *size;
                let size = size.or_default();
                let control = attach::Said::Resize { cols: size.cols, rows: size.rows };
                let control = Bytes::from(wire::control(&control));
                for client in self.clients.values_mut() {
                    if client.attached().is_some_and(|wire| entry.seq >= wire.from) {
                        client.conn.send(control.clone());
                    }
                }
            }
            Event::Holder(change) => self.pass_change(change),
            Event::Wait => {
                session.waiting = true;
                self.announce(bus::Event::Wait);
                self.captures().for_each(Capture::prompt_came);
            }
            Event::Suspended => session.suspended = true,
            Event::Resumed => session.suspended = false,
            Event::Exit(exit) => {
                session.exit = Some(*exit);
                session.exit_at = now;
            }
            _ => {}
        }
    }

    fn pass_output(&mut self, entry: &Entry, stream: Stream, bytes: &Bytes) {
        let (mut text, mut head) = (None, None);
        let kind = match stream {
            Stream::Out => ChunkKind::Stdout,
            Stream::Err => ChunkKind::Stderr,
        };
        let end = entry.offset + bytes.len();
        for client in self.clients.values_mut() {
            let behind = client.conn.queue.len() > BEHIND;
            match &mut client.kind {
                Kind::Unknown => {}
                Kind::Bus(bus) => {
                    if let Some(capture) = &mut bus.capture {
                        capture.work.feed(entry.seq, bytes);
                    }
                    let Some(sub) = &mut bus.sub else { continue };
                    if !sub.out || entry.seq < sub.from {
                        continue;
                    }
                    if behind || sub.missed.is_some() {
                        Missed::more(&mut sub.missed, entry.offset, end);
                        continue;
                    }
                    let text: &Bytes = text.get_or_insert_with(|| encode_out(bytes));
                    client.conn.send(text.clone());
                }
                Kind::Wire(w) => {
                    if !w.opened || entry.seq < w.from {
                        continue;
                    }
                    if behind || w.missed.is_some() {
                        Missed::more(&mut w.missed, entry.offset, end);
                        continue;
                    }
                    let head: &Bytes = head
                        .get_or_insert_with(|| Bytes::copy_from_slice(&wire::chunk_head(kind, bytes.len())));
                    client.conn.send(head.clone());
                    client.conn.send(bytes.clone());
                }
            }
        }
    }

    pub(super) fn note_lag(&mut self, from: Offset, to: Offset) {
        for client in self.clients.values_mut() {
            match &mut client.kind {
                Kind::Bus(bus) => {
                    if let Some(capture) = &mut bus.capture {
                        capture.work.lost();
                    }
                    if let Some(sub) = &mut bus.sub
                        && sub.out
                    {
                        Missed::more(&mut sub.missed, from, to);
                    }
                }
                Kind::Wire(w) if w.opened => Missed::more(&mut w.missed, from, to),
                _ => {}
            }
        }
    }

    fn pass_change(&mut self, change: &Change) {
        self.session.holder.clone_from(&change.to);
        let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().map(str::to_owned);
        self.announce(bus::Event::Driver {
            who: name(&change.to),
            driver: name(&change.to),
            from: name(&change.from),
            why: match change.why {
                Why::Claimed => bus::Why::Claimed,
                Why::Taken => bus::Why::Taken,
                Why::Released => bus::Why::Released,
                Why::Left => bus::Why::Left,
                Why::Expired => bus::Why::Expired,
            },
            fence: change.fence.0,
        });
        for client in self.clients.values_mut().filter(|c| c.attached().is_some()) {
            let you = change.to.as_deref() == Some(client.name.as_str());
            client.conn.control(&attach::Said::Driver { driver: name(&change.to), you });
        }
    }

    /// Tells every subscriber of an event.
    pub(super) fn announce(&mut self, event: bus::Event) {
        let text = encode_event(event);
        for client in self.clients.values_mut().filter(|c| c.subscribes()) {
            client.conn.send(text.clone());
        }
    }

    /// Tells every attached client.
    pub(super) fn tell_attached(&mut self, message: &attach::Said) {
        for client in self.clients.values_mut().filter(|c| c.attached().is_some()) {
            client.conn.control(message);
        }
    }

    /// Passes on bells and marks that the model heard. The model is brought up to date for them
    /// only while a client wants them.
    pub(super) fn pass_signals(&mut self) {
        let listening = |c: &Client| match &c.kind {
            Kind::Bus(bus) => bus.sub.is_some() || bus.capture.is_some(),
            _ => false,
        };
        if !self.clients.values().any(listening) {
            return;
        }
        let signals = self.session.access.look().take_signals();
        for signal in signals {
            match signal {
                Signal::Bell => self.announce(bus::Event::Bell),
                Signal::Mark { mark, offset, .. } => {
                    self.captures().for_each(|capture| capture.mark(mark, offset));
                }
                _ => {}
            }
        }
    }

    /// Returns the commands whose output is being captured.
    fn captures(&mut self) -> impl Iterator<Item = &mut Capture> {
        let pending = self.clients.values_mut().filter_map(|c| c.bus()?.capture.as_mut());
        pending.map(|pending| &mut pending.work)
    }
}

/// Encodes an event as a line.
pub(super) fn encode_event(event: bus::Event) -> Bytes {
    encode(&Push::Event(event))
}

/// Encodes a push as a line.
pub(super) fn encode(push: &Push) -> Bytes {
    format!("{} {}\n", push.verb(), push.payload()).into()
}

/// Encodes output in lines that every client can take.
pub(super) fn encode_out(bytes: &Bytes) -> Bytes {
    // A byte takes at most six characters.
    const CHUNK: usize = MAX_FRAME / 6 - 16;
    let mut out = String::new();
    for piece in bytes.chunks(CHUNK) {
        out.push_str("OUT ");
        out.push_str(&bus::write_output(piece));
        out.push('\n');
    }
    out.into()
}
