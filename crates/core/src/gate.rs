//! The gate: the one way in.
//!
//! Every writer offers its bytes here. The stick admits or refuses them, and admitted bytes wait in
//! one bounded queue until the program takes them. When the stick changes hands, input of the
//! former holder that is still in the queue is dropped: no key reaches the program after its sender
//! lost the stick. The gate returns the bytes that the program took, for the log.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::event::Author;
use crate::stick::{Change, Fence, Group, PartyId, Role, Stick, StickError};
use crate::time::Stamp;

/// Bytes that were delivered to the program, and their author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The author.
    pub by: Author,
    /// The bytes.
    pub bytes: Bytes,
}

/// An offer that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The stick refuses.
    #[error(transparent)]
    Stick(#[from] StickError),
    /// The program is not taking input, and enough is waiting already.
    #[error("the program is not reading: {waiting} bytes are waiting")]
    Full {
        /// How many bytes.
        waiting: usize,
    },
    /// The program was told that nothing more will come.
    #[error("the program's standard input is at its end")]
    Ended,
}

#[derive(Debug)]
struct Pending {
    /// The party whose stick admitted it; `None` for replies and the end of input, which are always
    /// admitted.
    party: Option<PartyId>,
    by: Author,
    bytes: Bytes,
}

/// The gate of one session.
#[derive(Debug)]
pub struct Gate {
    stick: Stick,
    queue: VecDeque<Pending>,
    waiting: usize,
    limit: usize,
    /// The last byte delivered, so that the end of input knows whether a line is open.
    last_byte: Option<u8>,
    ended: bool,
    changes: VecDeque<Change>,
}

impl Gate {
    /// Creates a gate whose queue takes bytes until `limit` are waiting.
    pub fn new(lease: Duration, limit: usize) -> Self {
        Self {
            stick: Stick::new(lease),
            queue: VecDeque::new(),
            waiting: 0,
            limit,
            last_byte: None,
            ended: false,
            changes: VecDeque::new(),
        }
    }

    /// Adds a party to the session.
    pub fn join(&mut self, name: &str, role: Role) -> PartyId {
        self.stick.join(name, role)
    }

    /// Puts a party into a group, whose people type without asking for the stick.
    pub fn share(&mut self, id: PartyId, group: Group) {
        self.stick.share(id, group);
    }

    /// Removes a party: releases the stick if it held it, and drops its undelivered input.
    pub fn leave(&mut self, id: PartyId) {
        let change = self.stick.leave(id);
        self.drop_undelivered(id);
        self.changes.extend(change);
    }

    /// Claims the stick: granted while it is free, and to its holder.
    pub fn claim(&mut self, id: PartyId, now: Stamp) -> Result<Fence, StickError> {
        let before = self.stick.holder();
        let change = self.stick.claim(id, now)?;
        Ok(self.note(before, change))
    }

    /// Takes the stick, where the rules allow it.
    pub fn take(&mut self, id: PartyId, now: Stamp) -> Result<Fence, StickError> {
        let before = self.stick.holder();
        let change = self.stick.take(id, now)?;
        Ok(self.note(before, change))
    }

    /// Gives the stick up.
    pub fn release(&mut self, id: PartyId) -> Result<Fence, StickError> {
        let change = self.stick.release(id)?;
        Ok(self.note(Some(id), Some(change)))
    }

    /// Ends a lease that has run out.
    pub fn expire(&mut self, now: Stamp) {
        let before = self.stick.holder();
        let change = self.stick.expire(now);
        self.note(before, change);
    }

    /// Returns the stick, to look at.
    pub fn stick(&self) -> &Stick {
        &self.stick
    }

    /// Returns the next change of hands that has not been reported.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Returns whether the queue would take an offer of any size.
    pub fn has_room(&self) -> bool {
        self.waiting < self.limit
    }

    /// Returns how many bytes wait for the program.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Offers input on behalf of a party.
    pub fn offer(
        &mut self,
        id: PartyId,
        fence: Option<Fence>,
        bytes: Bytes,
        now: Stamp,
    ) -> Result<(), Refused> {
        self.stick.admit(id, fence, now)?;
        if self.ended {
            return Err(Refused::Ended);
        }
        if !self.has_room() {
            return Err(Refused::Full { waiting: self.waiting });
        }
        let party = self.stick.party(id).ok_or(StickError::Unknown)?.clone();
        self.push(Some(id), Author::Party(party), bytes);
        Ok(())
    }

    /// Offers input on behalf of a party, and claims the stick for it if the stick is free: perhaps
    /// the party's own lease ran out between two keys. From a party of its own group, it takes it.
    ///
    /// # Errors
    /// When another party holds the stick, the party may not drive, or the program takes no input.
    pub fn offer_or_claim(&mut self, id: PartyId, bytes: Bytes, now: Stamp) -> Result<(), Refused> {
        match self.offer(id, None, bytes.clone(), now) {
            Err(Refused::Stick(StickError::NotHeld)) => {
                self.claim(id, now)?;
                self.offer(id, None, bytes, now)
            }
            Err(Refused::Stick(StickError::Held { .. })) if self.stick.shares_with_holder(id) => {
                self.take(id, now)?;
                self.offer(id, None, bytes, now)
            }
            answered => answered,
        }
    }

    /// Queues an answer to the program's query. It needs no stick. Past the limit it is dropped: a
    /// program that asks without reading must not fill the memory.
    pub fn reply(&mut self, bytes: Bytes) {
        if self.has_room() {
            self.push(None, Author::Reply, bytes);
        }
    }

    /// Queues the character by which the terminal spells the end of input.
    pub fn end_of_input(&mut self, bytes: Bytes) {
        self.push(None, Author::EndOfInput, bytes);
    }

    /// Returns whether the last byte delivered left a line open.
    pub fn line_open(&self) -> bool {
        self.last_byte.is_some_and(|b| b != b'\n' && b != b'\r')
    }

    /// Returns the bytes to write to the program next.
    pub fn poll_write(&self) -> Option<&[u8]> {
        self.queue.front().map(|p| &p.bytes[..])
    }

    /// Notes that the program took `n` bytes of what [`Gate::poll_write`] returned.
    pub fn wrote(&mut self, n: usize) -> Option<Delivered> {
        let front = self.queue.front_mut()?;
        let bytes = front.bytes.split_to(n.min(front.bytes.len()));
        self.waiting -= bytes.len();
        self.last_byte = bytes.last().copied().or(self.last_byte);
        let by = front.by.clone();
        if front.bytes.is_empty() {
            self.queue.pop_front();
        }
        (!bytes.is_empty()).then_some(Delivered { by, bytes })
    }

    /// Refuses all further input, because the program was told that none will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Drops everything that waits, because the program can take no more.
    pub fn close(&mut self) {
        self.queue.clear();
        self.waiting = 0;
    }

    fn push(&mut self, party: Option<PartyId>, by: Author, bytes: Bytes) {
        if !bytes.is_empty() {
            self.waiting += bytes.len();
            self.queue.push_back(Pending { party, by, bytes });
        }
    }

    fn note(&mut self, before: Option<PartyId>, change: Option<Change>) -> Fence {
        if change.is_some()
            && let Some(former) = before
        {
            self.drop_undelivered(former);
        }
        self.changes.extend(change);
        self.stick.fence()
    }

    fn drop_undelivered(&mut self, id: PartyId) {
        self.queue.retain(|p| p.party != Some(id));
        self.waiting = self.queue.iter().map(|p| p.bytes.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Time, WallTime};

    fn at(ns: u64) -> Stamp {
        Stamp { mono: Time::from_nanos(ns), wall: WallTime::from_nanos(ns) }
    }

    fn drain(gate: &mut Gate, step: usize) -> Vec<(Author, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(next) = gate.poll_write() {
            let n = next.len().min(step);
            all.extend(gate.wrote(n).map(|d| (d.by, d.bytes.to_vec())));
        }
        all
    }

    #[test]
    fn people_of_a_group_type_without_asking() {
        let mut gate = Gate::new(Duration::from_nanos(1_000), 1 << 20);
        let (first, second) = (gate.join("first", Role::Human), gate.join("second", Role::Human));
        let (other, bot) = (gate.join("other", Role::Human), gate.join("bot", Role::Bot));
        gate.share(first, Group(7));
        let offer = |gate: &mut Gate, id, text| gate.offer_or_claim(id, Bytes::from_static(text), at(0));
        offer(&mut gate, first, b"a").expect("free");
        assert!(offer(&mut gate, second, b"b").is_err(), "it is in no group");
        gate.share(second, Group(7));
        gate.share(other, Group(8));
        gate.share(bot, Group(7));
        offer(&mut gate, second, b"c").expect("the same user");
        assert_eq!(gate.stick().holder(), Some(second));
        for id in [other, bot] {
            assert!(offer(&mut gate, id, b"d").is_err());
        }
        // A program that types is not interrupted by chance.
        gate.release(second).expect("it holds it");
        gate.claim(bot, at(0)).expect("free");
        assert!(offer(&mut gate, first, b"e").is_err());
    }

    #[test]
    fn short_writes_deliver_every_byte_in_order() {
        let mut gate = Gate::new(Duration::from_nanos(1_000), 1 << 20);
        let h = gate.join("me", Role::Human);
        gate.take(h, at(0)).expect("free");
        gate.offer(h, None, Bytes::from_static(b"hello "), at(0)).expect("drives");
        gate.reply(Bytes::from_static(b"\x1b[0n"));
        gate.offer(h, None, Bytes::from_static(b"world"), at(0)).expect("drives");
        let got = drain(&mut gate, 1);
        let bytes: Vec<u8> = got.iter().flat_map(|(_, b)| b.clone()).collect();
        assert_eq!(bytes, b"hello \x1b[0nworld");
        assert_eq!(got.iter().filter(|(by, _)| *by == Author::Reply).count(), 4);
        assert_eq!((gate.waiting(), gate.line_open()), (0, true));
    }

    #[test]
    fn a_hand_over_drops_the_undelivered_input_of_the_former_holder() {
        let mut gate = Gate::new(Duration::from_nanos(1_000), 1 << 20);
        let (b, h) = (gate.join("bot", Role::Bot), gate.join("me", Role::Human));
        gate.take(b, at(0)).expect("free");
        gate.offer(b, None, Bytes::from_static(b"rm -rf /"), at(0)).expect("drives");
        gate.wrote(3);
        gate.take(h, at(1)).expect("human");
        gate.offer(h, None, Bytes::from_static(b"\x03"), at(1)).expect("drives");
        assert_eq!(gate.poll_write(), Some(&b"\x03"[..]));
        assert!(gate.offer(b, None, Bytes::from_static(b"x"), at(1)).is_err());
        let names: Vec<_> = std::iter::from_fn(|| gate.poll_change()).map(|c| c.to).collect();
        assert_eq!(names, [Some("bot".into()), Some("me".into())]);
    }

    #[test]
    fn a_program_that_does_not_read_cannot_fill_the_memory() {
        let mut gate = Gate::new(Duration::from_nanos(1_000), 10);
        let h = gate.join("me", Role::Human);
        gate.take(h, at(0)).expect("free");
        gate.offer(h, None, Bytes::from_static(b"0123456789"), at(0)).expect("room");
        let refused = gate.offer(h, None, Bytes::from_static(b"x"), at(0));
        assert_eq!(refused, Err(Refused::Full { waiting: 10 }));
        gate.reply(Bytes::from_static(b"dropped"));
        assert_eq!(gate.waiting(), 10);
    }

    #[test]
    fn a_lease_that_ran_out_drops_the_bots_input() {
        let mut gate = Gate::new(Duration::from_nanos(100), 1 << 10);
        let b = gate.join("bot", Role::Bot);
        gate.take(b, at(0)).expect("free");
        gate.offer(b, None, Bytes::from_static(b"late"), at(0)).expect("drives");
        gate.expire(at(100));
        assert_eq!((gate.poll_write(), gate.stick().holder()), (None, None));
    }

    #[test]
    fn typing_claims_a_free_stick_and_no_other() {
        let mut gate = Gate::new(Duration::from_nanos(100), 1 << 10);
        let (bot, human) = (gate.join("bot", Role::Bot), gate.join("me", Role::Human));
        let watcher = gate.join("eye", Role::Observer);
        let text = || Bytes::from_static(b"x");
        assert_eq!(gate.offer(bot, None, text(), at(0)), Err(StickError::NotHeld.into()));
        gate.offer_or_claim(bot, text(), at(0)).expect("the stick is free");
        gate.expire(at(100));
        gate.offer_or_claim(bot, text(), at(101)).expect("the lease ran out");
        let held = StickError::Held { holder: "bot".into() };
        assert_eq!(gate.offer_or_claim(human, text(), at(102)), Err(held.into()));
        gate.release(bot).expect("it holds the stick");
        assert_eq!(gate.offer_or_claim(watcher, text(), at(103)), Err(StickError::Observer.into()));
        assert_eq!(gate.stick().holder(), None);
    }
}
