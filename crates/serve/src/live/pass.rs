//! What the log says, passed on to every client in its own form.

use bytes::Bytes;
use serde_json::{Value, json};
use tapdeck_core::{Change, Entry, Event};
use tapdeck_term::Signal;

use super::client::{BEHIND, Client, Kind, Missed};
use super::frame;
use super::hub::Hub;
use crate::wire::{self, ChunkKind};

impl Hub {
    pub(super) fn pass_on(&mut self, entry: &Entry, now: u64) {
        match &entry.event {
            Event::Output { stream, bytes } => {
                self.last_output_ns = now;
                self.passed = entry.offset + bytes.len() as u64;
                self.waiting = false;
                self.pass_output(entry, *stream, bytes);
            }
            Event::Resize(size) => {
                self.size = *size;
                let size = size.or_default();
                let control = json!({"type": "resize", "cols": size.cols, "rows": size.rows});
                let control = Bytes::from(wire::control(&control));
                for client in self.clients.values_mut() {
                    if let Kind::Wire(w) = &client.kind
                        && w.opened
                        && entry.seq >= w.from
                    {
                        client.send(control.clone());
                    }
                }
            }
            Event::Holder(change) => self.pass_change(change),
            Event::Wait => {
                self.waiting = true;
                self.announce(&json!({"name": "WAIT"}));
                for client in self.clients.values_mut() {
                    if let Kind::Bus(bus) = &mut client.kind
                        && let Some(capture) = &mut bus.capture
                    {
                        capture.prompt_came();
                    }
                }
            }
            Event::Suspended => self.suspended = true,
            Event::Resumed => self.suspended = false,
            Event::Exit(exit) => {
                self.exit = Some(*exit);
                self.say_goodbye();
            }
            _ => {}
        }
    }

    fn pass_output(&mut self, entry: &Entry, stream: tapdeck_core::Stream, bytes: &Bytes) {
        let (mut text, mut head) = (None, None);
        let kind = match stream {
            tapdeck_core::Stream::Out => ChunkKind::Stdout,
            tapdeck_core::Stream::Err => ChunkKind::Stderr,
        };
        let end = entry.offset + bytes.len() as u64;
        for client in self.clients.values_mut() {
            let behind = client.queue.len() > BEHIND;
            match &mut client.kind {
                Kind::Unknown => {}
                Kind::Bus(bus) => {
                    if let Some(capture) = &mut bus.capture {
                        capture.feed(entry.seq, bytes);
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
                    client.send(text.clone());
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
                    client.send(head.clone());
                    client.send(bytes.clone());
                }
            }
        }
    }

    pub(super) fn note_lag(&mut self, from: u64, to: u64) {
        for client in self.clients.values_mut() {
            match &mut client.kind {
                Kind::Bus(bus) => {
                    if let Some(capture) = &mut bus.capture {
                        capture.lost();
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
        self.driver.clone_from(&change.to);
        self.announce(&json!({
            "name": "DRIVER",
            "who": change.to.as_deref(),
            "driver": change.to.as_deref(),
            "from": change.from.as_deref(),
            "why": change.why.name(),
            "fence": change.fence.0,
        }));
        for client in self.clients.values_mut() {
            if matches!(&client.kind, Kind::Wire(w) if w.opened) {
                let you = change.to.as_deref() == Some(client.name.as_str());
                client.control(&json!({"type": "driver", "driver": change.to.as_deref(), "you": you}));
            }
        }
    }

    /// Tells every subscriber of an event.
    pub(super) fn announce(&mut self, event: &Value) {
        let text = Bytes::from(format!("EVENT {event}\n"));
        for client in self.clients.values_mut() {
            if matches!(&client.kind, Kind::Bus(bus) if bus.sub.is_some()) {
                client.send(text.clone());
            }
        }
    }

    /// Tells every attached client.
    pub(super) fn tell_attached(&mut self, control: &Value) {
        for client in self.clients.values_mut() {
            if matches!(&client.kind, Kind::Wire(w) if w.opened) {
                client.control(control);
            }
        }
    }

    /// Bells that the model heard; it is brought up to date for them only while somebody subscribes.
    pub(super) fn pass_signals(&mut self) {
        let listening = |c: &Client| match &c.kind {
            Kind::Bus(bus) => bus.sub.is_some() || bus.capture.is_some(),
            _ => false,
        };
        if !self.clients.values().any(listening) {
            return;
        }
        let signals = self.glass.look(&self.handle).take_signals();
        for signal in signals {
            match signal {
                Signal::Bell => self.announce(&json!({"name": "BELL"})),
                Signal::Mark { mark, offset, .. } => {
                    for client in self.clients.values_mut() {
                        if let Kind::Bus(bus) = &mut client.kind
                            && let Some(capture) = &mut bus.capture
                        {
                            capture.mark(mark, offset);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// An output chunk as the bus carries it, in frames that every client can take.
pub(super) fn encode_out(bytes: &Bytes) -> Bytes {
    // A byte takes at most six characters.
    const CHUNK: usize = super::client::MAX_FRAME / 6 - 16;
    let mut out = String::new();
    for piece in bytes.chunks(CHUNK) {
        out.push_str("OUT ");
        out.push_str(&frame::latin1(piece));
        out.push('\n');
    }
    out.into()
}
