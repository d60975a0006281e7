//! The talking stick: exactly one party drives at a time.
//!
//! The party with the stick is its holder. A claim gets the stick while it is free. A human can
//! always take it; a bot takes it only while it is free or another bot holds it. A bot holds it
//! under a lease that its own writing renews. Every change of hands raises the fencing number, so
//! that a write prepared under an older hold can be refused. A refusal names the holder.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::authority::{Authority, Right};
use crate::time::{Stamp, Time};

/// How a party counts at the stick, from the least to the most. A credential or the operator grants
/// it; what a client says of itself can only lower it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A client that only watches.
    Observer,
    /// A program. It never takes the stick from a human.
    Bot,
    /// A person. A person may always take the stick.
    Human,
}

impl Role {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Bot => "bot",
            Self::Human => "human",
        }
    }
}

/// A party's number at its stick; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyId(u64);

/// A fencing number: grows with every change of hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

/// A client or a user that is present at the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Unique among the parties that are present.
    pub name: Arc<str>,
    /// How it counts at the stick.
    pub role: Role,
}

/// Parties that are the same user: those of a group type without asking for the stick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group(pub u64);

impl Group {
    /// The user who started the session.
    pub const OWNER: Self = Self(0);
}

/// Why the stick changed hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was free and a party claimed it.
    Claimed,
    /// A party took it.
    Taken,
    /// The holder gave it up.
    Released,
    /// The holder left.
    Left,
    /// The holder's lease ran out.
    Expired,
}

impl Why {
    /// The word for it in files and protocols.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Taken => "taken",
            Self::Released => "released",
            Self::Left => "left",
            Self::Expired => "expired",
        }
    }
}

/// A change of hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The former holder.
    pub from: Option<Arc<str>>,
    /// The new holder.
    pub to: Option<Arc<str>>,
    /// Why.
    pub why: Why,
    /// The fencing number from here on.
    pub fence: Fence,
}

/// A request that the stick's rules refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StickError {
    /// Another party holds the stick.
    #[error("{holder} drives")]
    Held {
        /// Its name.
        holder: Arc<str>,
    },
    /// The stick is free; the party must claim it first.
    #[error("the stick is free: claim it first")]
    NotHeld,
    /// The write was prepared under an older hold.
    #[error("stale: the stick has changed hands since")]
    Stale,
    /// Observers do not write.
    #[error("an observer cannot drive")]
    Observer,
    /// No such party.
    #[error("not at this session")]
    Unknown,
}

#[derive(Debug)]
struct Hold {
    party: PartyId,
    /// When a bot's lease ends.
    until: Option<Time>,
}

/// The stick of one session.
#[derive(Debug)]
pub struct Stick {
    parties: BTreeMap<PartyId, Party>,
    groups: BTreeMap<PartyId, Group>,
    next_id: u64,
    hold: Option<Hold>,
    fence: Fence,
    lease: Duration,
}

impl Stick {
    /// Creates a free stick. A bot's lease lasts `lease` from its last write.
    pub(crate) fn new(lease: Duration) -> Self {
        Self {
            parties: BTreeMap::new(),
            groups: BTreeMap::new(),
            next_id: 0,
            hold: None,
            fence: Fence(0),
            lease,
        }
    }

    /// Adds a party. A name that is taken gets a number behind it.
    pub(crate) fn join(&mut self, name: &str, role: Role) -> PartyId {
        let id = PartyId(self.next_id);
        self.next_id += 1;
        let base = if name.is_empty() { "anonymous" } else { name };
        let mut unique = base.to_owned();
        let mut n = 2u64;
        while self.parties.values().any(|p| *p.name == *unique) {
            unique = format!("{base}-{n}");
            n += 1;
        }
        self.parties.insert(id, Party { name: unique.into(), role });
        id
    }

    /// Removes a party, which releases the stick if that party holds it.
    pub(crate) fn leave(&mut self, id: PartyId) -> Option<Change> {
        let change = if self.holds(id) { Some(self.hand_over(None, Why::Left)) } else { None };
        self.parties.remove(&id);
        self.groups.remove(&id);
        change
    }

    /// Puts a party into a group.
    pub(crate) fn share(&mut self, id: PartyId, group: Group) {
        if self.parties.contains_key(&id) {
            self.groups.insert(id, group);
        }
    }

    /// Whether a person may type although another one of the same group holds the stick.
    pub(crate) fn shares_with_holder(&self, id: PartyId) -> bool {
        let group = |id: PartyId| self.groups.get(&id).filter(|_| self.role(id) == Some(Role::Human));
        group(id).is_some_and(|own| self.holder().and_then(group) == Some(own))
    }

    /// Returns the party with this number, while it is present.
    pub fn party(&self, id: PartyId) -> Option<&Party> {
        self.parties.get(&id)
    }

    /// Returns the party that holds the stick.
    pub fn holder(&self) -> Option<PartyId> {
        self.hold.as_ref().map(|h| h.party)
    }

    /// Returns the current fencing number.
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Claims the stick: granted while it is free, and to its holder.
    pub(crate) fn claim(&mut self, id: PartyId, now: Stamp) -> Result<Option<Change>, StickError> {
        self.check_may_drive(id)?;
        match self.holder() {
            Some(holder) if holder == id => {
                self.renew(now);
                Ok(None)
            }
            Some(holder) => Err(self.held_by(holder)),
            None => Ok(Some(self.hand_to(id, Why::Claimed, now))),
        }
    }

    /// Takes the stick, where the rules allow it.
    pub(crate) fn take(&mut self, id: PartyId, now: Stamp) -> Result<Option<Change>, StickError> {
        let role = self.check_may_drive(id)?;
        match self.holder() {
            Some(holder) if holder == id => {
                self.renew(now);
                Ok(None)
            }
            Some(holder) if role != Role::Human && self.role(holder) == Some(Role::Human) => {
                Err(self.held_by(holder))
            }
            Some(_) => Ok(Some(self.hand_to(id, Why::Taken, now))),
            None => Ok(Some(self.hand_to(id, Why::Claimed, now))),
        }
    }

    /// Gives the stick up.
    pub(crate) fn release(&mut self, id: PartyId) -> Result<Change, StickError> {
        match self.holder() {
            Some(holder) if holder == id => Ok(self.hand_over(None, Why::Released)),
            Some(holder) => Err(self.held_by(holder)),
            None => Err(StickError::NotHeld),
        }
    }

    /// Checks that `id` may write now. With a fencing number, only if the stick has not changed
    /// hands since.
    pub(crate) fn admit(&mut self, id: PartyId, fence: Option<Fence>, now: Stamp) -> Result<(), StickError> {
        match self.holder() {
            Some(holder) if holder == id => {
                if fence.is_some_and(|f| f != self.fence) {
                    return Err(StickError::Stale);
                }
                self.renew(now);
                Ok(())
            }
            Some(holder) => Err(self.held_by(holder)),
            None => {
                self.check_may_drive(id)?;
                Err(StickError::NotHeld)
            }
        }
    }

    /// Returns when the current lease ends, for the loop that keeps the timer.
    pub fn lease_end(&self) -> Option<Time> {
        self.hold.as_ref().and_then(|h| h.until)
    }

    /// Ends a lease that has run out.
    pub(crate) fn expire(&mut self, now: Stamp) -> Option<Change> {
        let over = self.lease_end().is_some_and(|until| now.mono >= until);
        over.then(|| self.hand_over(None, Why::Expired))
    }

    fn holds(&self, id: PartyId) -> bool {
        self.holder() == Some(id)
    }

    fn role(&self, id: PartyId) -> Option<Role> {
        self.parties.get(&id).map(|p| p.role)
    }

    fn check_may_drive(&self, id: PartyId) -> Result<Role, StickError> {
        let role = self.role(id).ok_or(StickError::Unknown)?;
        if Authority::of(role).grants(Right::Drive) { Ok(role) } else { Err(StickError::Observer) }
    }

    fn held_by(&self, id: PartyId) -> StickError {
        self.parties.get(&id).map_or(StickError::NotHeld, |p| StickError::Held { holder: p.name.clone() })
    }

    fn hand_to(&mut self, id: PartyId, why: Why, now: Stamp) -> Change {
        let change = self.hand_over(Some(id), why);
        self.renew(now);
        change
    }

    fn hand_over(&mut self, to: Option<PartyId>, why: Why) -> Change {
        let name =
            |stick: &Self, id: Option<PartyId>| id.and_then(|i| stick.party(i)).map(|p| p.name.clone());
        let from = name(self, self.holder());
        self.fence = Fence(self.fence.0 + 1);
        self.hold = to.map(|party| Hold { party, until: None });
        Change { from, to: name(self, to), why, fence: self.fence }
    }

    fn renew(&mut self, now: Stamp) {
        let Some(party) = self.holder() else { return };
        let bot = self.role(party) == Some(Role::Bot);
        let until = bot.then(|| now.mono + self.lease);
        self.hold = Some(Hold { party, until });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::WallTime;

    fn at(ns: u64) -> Stamp {
        Stamp { mono: Time::from_nanos(ns), wall: WallTime::from_nanos(ns) }
    }

    fn name_of_holder(s: &Stick) -> Option<String> {
        s.holder().and_then(|d| s.party(d)).map(|p| p.name.to_string())
    }

    #[test]
    fn reasons_have_the_words_of_the_protocol() {
        let all = [Why::Claimed, Why::Taken, Why::Released, Why::Left, Why::Expired];
        assert_eq!(all.map(Why::name), ["claimed", "taken", "released", "left", "expired"]);
    }

    #[test]
    fn first_claim_drives_and_later_claims_wait() {
        let mut s = Stick::new(Duration::from_nanos(100));
        let (a, b) = (s.join("a", Role::Bot), s.join("b", Role::Human));
        assert!(s.claim(a, at(0)).is_ok_and(|c| c.is_some()));
        assert_eq!(s.claim(b, at(0)), Err(StickError::Held { holder: "a".into() }));
        assert_eq!(s.admit(b, None, at(0)), Err(StickError::Held { holder: "a".into() }));
        assert_eq!(s.admit(a, None, at(0)), Ok(()));
    }

    #[test]
    fn a_human_takes_from_anyone_and_a_bot_never_from_a_human() {
        let mut s = Stick::new(Duration::from_nanos(100));
        let (h, h2) = (s.join("h", Role::Human), s.join("h2", Role::Human));
        let (b, b2) = (s.join("b", Role::Bot), s.join("b2", Role::Bot));
        assert!(s.take(b, at(0)).is_ok());
        assert!(s.take(b2, at(0)).is_ok(), "bot from bot");
        assert!(s.take(h, at(0)).is_ok());
        assert!(s.take(b, at(0)).is_err());
        assert!(s.take(h2, at(0)).is_ok(), "human from human");
        assert_eq!(name_of_holder(&s).as_deref(), Some("h2"));
    }

    #[test]
    fn a_lease_ends_unless_renewed_by_writing_and_humans_have_none() {
        let mut s = Stick::new(Duration::from_nanos(100));
        let (b, h) = (s.join("b", Role::Bot), s.join("h", Role::Human));
        s.take(b, at(0)).expect("free");
        assert_eq!(s.admit(b, None, at(90)), Ok(()));
        assert_eq!(s.expire(at(150)), None);
        let change = s.expire(at(190)).expect("lease is over");
        assert_eq!((change.why, change.to), (Why::Expired, None));
        assert_eq!(s.admit(b, None, at(191)), Err(StickError::NotHeld));
        s.take(h, at(200)).expect("free");
        assert_eq!(s.lease_end(), None);
    }

    #[test]
    fn a_write_prepared_under_an_older_hold_is_refused() {
        let mut s = Stick::new(Duration::from_nanos(100));
        let (b, h) = (s.join("b", Role::Bot), s.join("h", Role::Human));
        s.take(b, at(0)).expect("free");
        let fence = s.fence();
        s.take(h, at(1)).expect("human");
        s.release(h).expect("held");
        s.take(b, at(2)).expect("free");
        assert_eq!(s.admit(b, Some(fence), at(3)), Err(StickError::Stale));
        assert_eq!(s.admit(b, Some(s.fence()), at(3)), Ok(()));
    }

    #[test]
    fn names_are_unique_and_leaving_releases() {
        let mut s = Stick::new(Duration::from_nanos(100));
        let (a, b) = (s.join("x", Role::Bot), s.join("x", Role::Bot));
        let name = |s: &Stick, id| s.party(id).map(|p| p.name.to_string());
        assert_eq!((name(&s, a), name(&s, b)), (Some("x".into()), Some("x-2".into())));
        s.take(a, at(0)).expect("free");
        assert_eq!(s.leave(a).map(|c| c.why), Some(Why::Left));
        assert_eq!((s.holder(), s.party(a)), (None, None));
        let o = s.join("eye", Role::Observer);
        assert_eq!(s.take(o, at(0)), Err(StickError::Observer));
    }

    proptest! {
        /// Any sequence of requests: the fence grows exactly with the changes of hands, a human who
        /// takes always drives, and a bot never drives right after taking from a human.
        #[test]
        fn rules_hold_for_any_history(ops in prop::collection::vec((0usize..4, 0usize..5), 1..200)) {
            let mut s = Stick::new(Duration::from_nanos(50));
            let ids = [s.join("h", Role::Human), s.join("i", Role::Human), s.join("b", Role::Bot), s.join("c", Role::Bot)];
            let is_human = |s: &Stick, id| s.party(id).is_some_and(|p| p.role == Role::Human);
            let mut now = 0;
            for (who, op) in ops {
                now += 7;
                let (id, before, fence) = (ids[who], s.holder(), s.fence());
                let changed = match op {
                    0 => s.claim(id, at(now)).is_ok_and(|c| c.is_some()),
                    1 => {
                        let took = s.take(id, at(now));
                        let allowed = is_human(&s, id) || before.is_none_or(|d| d == id || !is_human(&s, d));
                        prop_assert_eq!(took.is_ok(), allowed);
                        prop_assert_eq!(s.holder(), if allowed { Some(id) } else { before });
                        took.is_ok_and(|c| c.is_some())
                    }
                    2 => s.release(id).is_ok(),
                    3 => s.expire(at(now)).is_some(),
                    _ => { prop_assert_eq!(s.admit(id, None, at(now)).is_ok(), before == Some(id)); false }
                };
                prop_assert_eq!(s.fence().0 - fence.0, u64::from(changed));
                prop_assert_eq!(changed, before != s.holder());
            }
        }
    }
}
