//! What other threads ask of a session: the driver's inbox, served in the order in which it came.

use std::io;

use tapdeck_core::{Event, Stamp};

use super::keys::OwnKeys;
use super::snapshot::AnchorRequest;
use super::{Driver, Ended};
use crate::backend::{Backend, StopSignal};
use crate::inbox::Request;
use crate::user_side::UserSide;

impl<B: Backend> Driver<B> {
    /// Does what other threads have asked for.
    pub(super) fn serve_inbox(&mut self, now: Stamp) -> io::Result<()> {
        let mut anchored = Vec::new();
        for request in self.handle.drain() {
            // Replies are discarded where they cannot be sent: a caller that has stopped waiting no
            // longer wants them.
            match request {
                Request::Cancel => {
                    tracing::debug!("cancelled");
                    self.told_to_end = true;
                    self.ended = Ended::Cancelled;
                    self.begin_stop(now, StopSignal::Terminate);
                }
                Request::Signal(libc::SIGCONT) if self.held => self.continued(now)?,
                Request::Signal(signal) => self.forward(signal, now),
                Request::Service(payload) => {
                    self.log.append(Event::Service(payload), now);
                }
                Request::Found(event) => {
                    self.log.append(event, now);
                }
                Request::UserKeys(keys) => {
                    // Only where the user's keys come as they are typed, and notices can be shown.
                    let types = |user: &UserSide| user.is_interactive() && user.shows_on_terminal();
                    if self.user.as_ref().is_some_and(types) {
                        self.own_keys = Some(OwnKeys::new(keys));
                    }
                }
                Request::PauseRecording(wish, by, reply) => {
                    let _ = reply.send(self.pause_recording(wish, by, now)?);
                }
                Request::RecordingFailed(then) => self.recording_failed(then, now)?,
                Request::Nudge => self.answer(now)?,
                Request::Resize(size, reply) => {
                    self.resize(size, now)?;
                    self.sized_elsewhere = true;
                    let _ = reply.map(|reply| reply.send(()));
                }
                Request::Holder(reply) => {
                    let stick = self.gate.stick();
                    let holder = stick.holder().and_then(|id| Some((id, stick.party(id)?.name.clone())));
                    let _ = reply.send(holder);
                }
                Request::Join(name, role, reply) => {
                    let id = self.gate.join(&name, role);
                    let name = self.gate.stick().party(id).map_or_else(|| name.into(), |p| p.name.clone());
                    tracing::debug!(%name, ?role, "client joined");
                    // A caller that waited no longer does not know the party, and would never
                    // leave.
                    if reply.send((id, name)).is_err() {
                        self.gate.leave(id);
                    }
                }
                Request::Share(id, group) => self.gate.share(id, group),
                Request::Leave(id) => {
                    let party = self.gate.stick().party(id);
                    tracing::debug!(name = party.map(|p| &*p.name), "client left");
                    self.gate.leave(id);
                }
                Request::Claim(id, reply) => {
                    let _ = reply.send(self.gate.claim(id, now));
                }
                Request::Take(id, reply) => {
                    let _ = reply.send(self.gate.take(id, now));
                }
                Request::Release(id, reply) => {
                    let _ = reply.send(self.gate.release(id));
                }
                Request::Input(id, fence, bytes, reply) => {
                    let _ = reply.send(self.gate.offer(id, fence, bytes, now));
                    self.deliver(now)?;
                }
                Request::InputOrClaim(id, bytes, reply) => {
                    let _ = reply.send(self.gate.offer_or_claim(id, bytes, now));
                    self.deliver(now)?;
                }
                Request::LongestLine(reply) => {
                    let _ = reply.send(self.backend.longest_line());
                }
                Request::WaitsForInput(reply) => {
                    // A caller that is gone needs no answer.
                    let _ = reply.send(self.backend.waits_for_input());
                }
                Request::Waiting(reply) => {
                    let _ = reply.send(self.gate.waiting());
                }
                Request::Anchored(event, reply) => anchored.push(AnchorRequest { event, reply }),
            }
            self.log_changes(now);
        }
        self.anchor(anchored, now)
    }
}
