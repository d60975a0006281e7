//! What clients are owed: the newest screen, what is in their queues, and the end.

use std::net::Shutdown;

use bytes::Bytes;
use serde_json::{Value, json};
use tapdeck_core::Exit;

use super::client::{BEHIND, BusState, Client, Frames, Kind};
use super::frame;
use super::hub::{HELLO_NS, Hub, STUCK_NS};

impl Hub {
    pub(super) fn wants_frame(&self, client: &Client, seen: Option<tapdeck_term::Generation>) -> bool {
        let Kind::Bus(bus) = &client.kind else { return false };
        let Some(sub) = &bus.sub else { return false };
        let room = client.queue.len() <= BEHIND && sub.keeps_up();
        // One that has missed something is told as soon as it has taken what it was sent before.
        let owed = sub.missed.is_some() && client.queue.is_empty();
        owed || (sub.frames != Frames::None && room && seen.is_none_or(|g| g.0 < self.glass.generation()))
    }

    /// Sends the newest screen to those whose turn it is, and tells those who fell behind what they missed.
    pub(super) fn send_frames(&mut self, now: u64) {
        let due: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, c)| match &c.kind {
                Kind::Bus(bus) => {
                    bus.sub.as_ref().is_some_and(|sub| sub.is_due(now) && self.wants_frame(c, sub.seen))
                }
                Kind::Wire(w) => w.missed.is_some() && c.queue.is_empty(),
                Kind::Unknown => false,
            })
            .map(|(n, _)| *n)
            .collect();
        for number in due {
            let Some(mut client) = self.clients.remove(&number) else { continue };
            if !self.holds_frame(&mut client, now) {
                self.send_frame(&mut client, now);
            }
            self.clients.insert(number, client);
        }
    }

    /// Whether a client's frame has to wait, because the program is in the middle of a synchronised update: half a
    /// redraw is nothing to look at. It does not wait for ever.
    fn holds_frame(&self, client: &mut Client, now: u64) -> bool {
        let Kind::Bus(BusState { sub: Some(sub), .. }) = &mut client.kind else { return false };
        sub.frames != Frames::None && {
            let drawing = self.glass.look(&self.handle).term().modes().synchronised();
            sub.hold(drawing, now)
        }
    }

    pub(super) fn send_frame(&mut self, client: &mut Client, now: u64) {
        if let Kind::Wire(_) = client.kind {
            self.resend_screen(client);
            return;
        }
        let glass = self.glass.clone();
        let handle = self.handle.clone();
        let look = glass.look(&handle);
        let (generation, next) = (look.term().generation(), look.next());
        let Kind::Bus(bus) = &mut client.kind else { return };
        let max = bus.max_frame;
        let Some(sub) = &mut bus.sub else { return };
        sub.last_frame_ns = now;
        sub.held_ns = None;
        sub.undrawn += 1;
        let seen = sub.seen.replace(generation);
        let missed = sub.missed.take();
        if missed.is_some() {
            // What the model has seen by now is on the screen that follows.
            sub.from = next;
        }
        let frames = sub.frames;
        let drawn = match frames {
            Frames::Paint => sub.drawn.replace(crate::paint::Drawn::of(look.term())),
            _ => None,
        };
        if let Some(missed) = missed {
            let to = look.offset();
            let event = json!({"name": "GAP", "from": missed.from, "to": to, "bytes": to - missed.from});
            client.say("EVENT", &event);
        }
        match (frames, seen, missed) {
            (Frames::None, _, None) => {}
            (Frames::Paint, _, _) => {
                let drawn = drawn.filter(|_| missed.is_none());
                let text = format!("FRAME {}\n", crate::paint::frame(look.term(), look.offset(), drawn));
                if text.len() <= max { client.send(text) } else { client.send(self.full_frame(&look, max)) }
            }
            (Frames::Delta, Some(since), None) => {
                let text = format!("FRAME {}\n", frame::delta(&look, since));
                if text.len() <= max { client.send(text) } else { client.send(self.full_frame(&look, max)) }
            }
            _ => client.send(self.full_frame(&look, max)),
        }
    }

    /// The encoded full frame, made once for everybody.
    fn full_frame(&mut self, look: &tapdeck_host::Picture, max: usize) -> Bytes {
        let generation = look.term().generation().0;
        if self.full.as_ref().is_none_or(|(g, _)| *g != generation) {
            self.full = Some((generation, [None, None]));
        }
        let Some((_, made)) = &mut self.full else { return Bytes::new() };
        let make = |cells| Bytes::from(format!("FRAME {}\n", frame::full(look, cells)));
        let styled = made[0].get_or_insert_with(|| make(true));
        if styled.len() <= max { styled.clone() } else { made[1].get_or_insert_with(|| make(false)).clone() }
    }

    pub(super) fn flush(&mut self, now: u64) {
        let handle = &self.handle;
        self.clients.retain(|_, client| {
            if !client.queue.is_empty() || client.closing {
                client.flush(now);
            } else {
                client.took_ns = now;
            }
            let late =
                (!client.known || matches!(client.kind, Kind::Unknown)) && now > client.came_ns + HELLO_NS;
            let stuck = !client.queue.is_empty() && now > client.took_ns + STUCK_NS;
            let gone = client.gone || late || stuck;
            if gone {
                // The stick goes back when its holder goes, however it goes.
                if let Some(party) = client.party.take() {
                    handle.leave(party);
                }
                client.conn.shutdown(Shutdown::Both);
            }
            !gone
        });
    }

    /// Tells everybody how the program ended, once, when it has.
    pub(super) fn say_goodbye(&mut self) {
        let Some(exit) = self.exit else { return };
        let told: Vec<u64> =
            self.clients.iter().filter(|(_, c)| !c.closing && c.follows()).map(|(n, _)| *n).collect();
        for number in told {
            let Some(mut client) = self.clients.remove(&number) else { continue };
            self.say_over(&mut client, exit);
            self.clients.insert(number, client);
        }
    }

    pub(super) fn say_over(&mut self, client: &mut Client, exit: Exit) {
        let now = self.clock.now().mono_ns;
        self.told_ns.get_or_insert(now);
        self.looked |= !matches!(&client.kind, Kind::Bus(BusState { sub: Some(sub), .. }) if !sub.looks);
        match &mut client.kind {
            Kind::Bus(bus) => {
                if let Some(capture) = bus.capture.take() {
                    let id = bus.capture_id.take();
                    client.say_to(id, "RESP", &capture.cut_short());
                }
                let Kind::Bus(bus) = &client.kind else { return };
                if bus.sub.is_some() {
                    self.send_frame(client, now);
                    client.say("EVENT", &json!({"name": "CLOSED", "exit": exit_json(exit)}));
                    // The subscription is over; the connection stays for questions.
                    if let Kind::Bus(bus) = &mut client.kind {
                        bus.sub = None;
                    }
                }
            }
            Kind::Wire(w) => {
                if w.missed.is_some() {
                    self.resend_screen(client);
                }
                let mut control = exit_json(exit);
                control["type"] = json!("exit");
                client.control(&control);
                client.closing = true;
            }
            Kind::Unknown => {}
        }
    }
}

/// How a program ended, as data.
pub(crate) fn exit_json(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({"code": code}),
        Exit::Signal(signal) => {
            let name = tapdeck_host::signals::name(signal).map_or_else(|| signal.to_string(), str::to_owned);
            json!({"code": 128 + signal, "signal": name})
        }
    }
}
