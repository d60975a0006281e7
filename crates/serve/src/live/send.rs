//! What clients are owed: the newest screen, what is in their queues, and the end.

use bytes::Bytes;
use tapdeck_core::{Exit, Time};
use tapdeck_host::Picture;
use tapdeck_proto::attach;
use tapdeck_proto::bus::{self, Frame, Frames, Push};

use super::client::{Client, Kind};
use super::hub::Hub;
use super::pass::{encode, encode_event};
use super::session::LiveSession;
use super::{attach as attached, frame};
use crate::paint::{self, Drawn};

impl Hub {
    /// Sends the newest screen to the clients whose frame is due, and tells clients that fell
    /// behind what they missed.
    pub(super) fn send_frames(&mut self, now: Time) {
        let session = &mut self.session;
        for client in self.clients.values_mut() {
            let due = match &client.kind {
                Kind::Bus(bus) => {
                    bus.sub.as_ref().is_some_and(|sub| sub.is_due(now) && session.wants_frame(client, sub))
                }
                Kind::Wire(w) => w.missed.is_some() && client.conn.queue.is_empty(),
                Kind::Unknown => false,
            };
            if due && !session.holds_frame(client, now) {
                session.send_frame(client, now);
            }
        }
    }

    pub(super) fn flush(&mut self, now: Time) {
        let driver = self.session.access.driver();
        let policy = &mut self.policy;
        self.clients.retain(|number, client| {
            client.conn.flush(now);
            let late = client.is_silent() && now > client.conn.came + policy.limits().grace;
            let stuck = client.conn.stuck().is_some_and(|at| now > at);
            let gone = client.conn.gone || late || stuck;
            if gone {
                // The stick goes back when its holder goes, however it goes.
                if let Some(party) = client.party.take() {
                    driver.leave(party);
                }
                client.conn.shutdown();
                policy.leave(*number, now);
            }
            !gone
        });
    }

    /// Tells every client that follows how the program ended, once.
    pub(super) fn say_goodbye(&mut self) {
        let Some(exit) = self.session.exit else { return };
        self.session.settled = true;
        for client in self.clients.values_mut().filter(|c| !c.conn.closing && c.follows()) {
            self.session.say_over(client, exit);
        }
    }
}

impl LiveSession {
    /// Returns whether a client's frame has to wait because the program is in the middle of a
    /// synchronised update. The wait is bounded.
    fn holds_frame(&mut self, client: &mut Client, now: Time) -> bool {
        let Some(sub) = client.bus().and_then(|bus| bus.sub.as_mut()) else { return false };
        sub.frames != Frames::None && {
            let drawing = self.access.look().term().modes().synchronised();
            sub.hold(drawing, now)
        }
    }

    fn send_frame(&mut self, client: &mut Client, now: Time) {
        let Kind::Bus(bus) = &mut client.kind else {
            return attached::resend_screen(self, client);
        };
        let (max, theme) = (bus.max_frame, bus.theme);
        let Some(sub) = &mut bus.sub else { return };
        let look = self.access.look();
        sub.last_frame = now;
        sub.held_at = None;
        sub.undrawn += 1;
        let seen = sub.seen.replace(look.term().generation());
        let missed = sub.missed.take();
        if let Some(missed) = missed {
            // What the model has seen by now is on the screen that follows.
            sub.from = look.next();
            let to = look.offset();
            let gap = bus::Event::Gap { from: missed.from.0, to: to.0, bytes: to - missed.from };
            client.conn.send(encode_event(gap));
        }
        let short = match (sub.frames, seen, missed) {
            (Frames::None, _, None) => return,
            (Frames::Paint, _, _) => {
                let drawn = sub.drawn.replace(Drawn::of(look.term())).filter(|_| missed.is_none());
                let frame = paint::frame(look.term(), look.offset(), drawn, theme);
                Some(encode(&Push::Frame(Frame::Paint(Box::new(frame)))))
            }
            (Frames::Delta, Some(since), None) => {
                Some(encode(&Push::Frame(Frame::Screen(Box::new(frame::delta(&look, since))))))
            }
            _ => None,
        };
        let frame = short.filter(|line| line.len() <= max);
        client.conn.send(frame.unwrap_or_else(|| full_frame(&mut self.full, &look, max)));
    }

    /// Tells a client how the program ended, in its own form.
    pub(super) fn say_over(&mut self, client: &mut Client, exit: Exit) {
        let now = self.clock.now().mono;
        self.told_at.get_or_insert(now);
        self.looked |= client.sees_end();
        match &mut client.kind {
            Kind::Bus(bus) => {
                if let Some(answer) = bus.capture.as_ref().map(|pending| pending.work.cut_short()) {
                    client.answer_capture(answer);
                }
                if client.subscribes() {
                    self.send_frame(client, now);
                    client.conn.send(encode_event(bus::Event::Closed { exit: self.exit_told(exit) }));
                }
                // The subscription is over; the connection stays for questions.
                if let Some(bus) = client.bus() {
                    bus.sub = None;
                }
            }
            Kind::Wire(w) => {
                if w.missed.is_some() {
                    attached::resend_screen(self, client);
                }
                client.conn.control(&attach::Said::Exit(self.exit_told(exit)));
                client.conn.closing = true;
            }
            Kind::Unknown => {}
        }
    }
}

/// Returns the encoded full frame, made once for all clients.
fn full_frame(made: &mut Option<(u64, [Option<Bytes>; 2])>, look: &Picture, max: usize) -> Bytes {
    let generation = look.term().generation().0;
    let make = |cells| encode(&Push::Frame(Frame::Screen(Box::new(frame::full(look, cells)))));
    let (_, frames) = match made {
        Some(made) if made.0 == generation => made,
        made => made.insert((generation, [None, None])),
    };
    let styled = frames[0].get_or_insert_with(|| make(true));
    if styled.len() <= max { styled.clone() } else { frames[1].get_or_insert_with(|| make(false)).clone() }
}
