//! Admission: how many connections a server keeps that have not authenticated, for how long, and
//! what failed attempts cost. Every door asks this one policy: ssh, TLS, QUIC, WebTransport, the
//! page with its WebSockets, Unix sockets, and the bus of a session.
//!
//! - A connection without a credential has a seat among the pending ones. Seats are limited in sum
//!   and for each source address, and last for the grace time.
//! - A newcomer is seated, and the connection that has waited longest makes room: first one of its
//!   own address, then one of the address with the most seats. Between `start` and `full` that
//!   happens by chance, as with `MaxStartups` of sshd. Every connection keeps its seat for a short
//!   turn, so that a flood cannot displace clients that are about to authenticate. While all seats
//!   are that new, the next connection waits to be accepted.
//! - A failed attempt adds to the debt of its source, which time pays off. The refusal is delayed
//!   by the debt. A source with too much debt is locked out until the debt is paid, as with
//!   `PerSourcePenalties` of sshd.
//! - Loopback addresses are limited in sum only and never locked out, because a proxy, a tunnel and
//!   all local users share them. A valid credential is never delayed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tapdeck_core::Time;

#[cfg(any(feature = "net", feature = "web"))]
mod seat;
#[cfg(test)]
mod tests;

#[cfg(any(feature = "net", feature = "web"))]
pub use seat::Admission;
#[cfg(feature = "web")]
pub(crate) use seat::PAGE;
#[cfg(feature = "net")]
pub(crate) use seat::settle;
#[cfg(any(feature = "net", feature = "web"))]
pub(crate) use seat::{Seat, accept_all};

/// How long a pending connection keeps its seat whatever else happens.
const TURN: Duration = Duration::from_millis(250);
/// What a failed attempt adds to the debt of its source.
const FAILED: Duration = Duration::from_secs(5);
/// What a connection that ends without an attempt adds.
const SILENT: Duration = Duration::from_secs(1);
/// A source with this much debt is locked out.
const LOCK_AT: Duration = Duration::from_secs(15);
/// The delay of a refusal is this part of the debt, up to the longest.
const DELAY_PART: u32 = 50;
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// The most sources that are remembered. Those with the least debt are forgotten first.
const SOURCES: usize = 16 * 1024;
/// The most failed attempts of one connection.
const ATTEMPTS: u32 = 6;

/// When pending connections are dropped to make room for newcomers: from `start` of them on with a
/// chance of `rate` percent, which grows to certainty at `full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Startups {
    /// With fewer pending connections, none is dropped.
    pub start: usize,
    /// The chance at `start`, in percent.
    pub rate: u8,
    /// The most pending connections.
    pub full: usize,
}

impl Startups {
    const DEFAULT: Self = Self { start: 128, rate: 30, full: 512 };
}

/// `128:30:512`.
impl Default for Startups {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Startups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.start, self.rate, self.full)
    }
}

/// Text that is not `START:RATE:FULL`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected START:RATE:FULL, such as {default}, with START <= FULL and RATE <= 100", default = Startups::DEFAULT)]
pub struct StartupsError;

impl FromStr for Startups {
    type Err = StartupsError;

    fn from_str(text: &str) -> Result<Self, StartupsError> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(StartupsError);
        let (start, rate, full) = (part()?, part()?, part()?);
        let number = |text: &str| text.parse::<usize>().map_err(|_| StartupsError);
        let rate = rate.parse::<u8>().map_err(|_| StartupsError)?;
        let startups = Self { start: number(start)?, rate, full: number(full)? };
        let makes_sense = startups.full > 0 && startups.start <= startups.full && rate <= 100;
        makes_sense.then_some(startups).ok_or(StartupsError)
    }
}

/// What a server grants to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most authenticated connections.
    pub connections: usize,
    /// How long a client may take to authenticate.
    pub grace: Duration,
    /// The most connections that have not authenticated.
    pub startups: Startups,
    /// The most of them from one address, or from one IPv6 network of 64 bits.
    pub per_source: usize,
    /// The longest time for which a source is locked out; zero for never.
    pub lockout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            grace: Duration::from_secs(10),
            startups: Startups::DEFAULT,
            per_source: 32,
            lockout: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// Returns the limits of a process that has no more descriptors than usual: 512 connections,
    /// and startups of `64:30:256`.
    pub(crate) fn small() -> Self {
        let startups = Startups { start: 64, rate: 30, full: 256 };
        Self::default().connections(512).startups(startups)
    }

    /// Sets the most authenticated connections; 1,000 by default.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long a client may take to authenticate; ten seconds by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the most connections that have not authenticated; `128:30:512` by default.
    #[must_use]
    pub fn startups(mut self, startups: Startups) -> Self {
        self.startups = startups;
        self
    }

    /// Sets the most of them from one address; 32 by default.
    #[must_use]
    pub fn per_source(mut self, per_source: usize) -> Self {
        self.per_source = per_source.max(1);
        self
    }

    /// Sets the longest lock-out; ten minutes by default, zero for none.
    #[must_use]
    pub fn lockout(mut self, lockout: Duration) -> Self {
        self.lockout = lockout;
        self
    }
}

/// Where connections come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// A Unix socket, where the kernel identifies the client.
    Local,
    /// An address; of an IPv6 address, its network of 64 bits.
    Net(IpAddr),
}

impl Source {
    pub(crate) fn of(peer: Option<SocketAddr>) -> Self {
        match peer.map(|peer| peer.ip().to_canonical()) {
            None => Self::Local,
            Some(IpAddr::V6(ip)) if !ip.is_loopback() => {
                Self::Net(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into())
            }
            Some(ip) => Self::Net(ip),
        }
    }

    /// Returns whether many clients share it by its nature.
    fn is_shared(self) -> bool {
        match self {
            Self::Local => true,
            Self::Net(ip) => ip.is_loopback(),
        }
    }
}

/// The number of a connection.
pub(crate) type Ticket = u64;

/// Why a connection is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TurnedAway {
    #[error("its address is locked out after failed attempts")]
    LockedOut,
    #[error("too many connections from its address have not authenticated")]
    TooManyOfSource,
    #[error("the server has as many connections as it may have")]
    Full,
}

/// A connection that was seated, and the one that made room for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) ticket: Ticket,
    pub(crate) evicted: Option<Ticket>,
}

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How long to delay the refusal.
    pub(crate) delay: Duration,
    /// The connection has had enough attempts.
    pub(crate) is_last: bool,
}

struct Connection {
    source: Source,
    came: Time,
    /// Clients need not authenticate to be welcome here.
    anonymous: bool,
    failures: u32,
}

/// The debt of a source, as the time at which it is paid off.
struct Debt {
    until: Time,
    locked: bool,
}

/// The policy: a state machine without a clock. `now` never goes back.
pub(crate) struct Policy {
    limits: Limits,
    next: Ticket,
    /// In the order in which they came.
    pending: BTreeMap<Ticket, Connection>,
    admitted: HashMap<Ticket, Connection>,
    /// How many of the pending ones each source has.
    crowds: HashMap<Source, usize>,
    debts: HashMap<Source, Debt>,
    dice: RandomState,
}

impl Policy {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 0,
            pending: BTreeMap::new(),
            admitted: HashMap::new(),
            crowds: HashMap::new(),
            debts: HashMap::new(),
            dice: RandomState::new(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns how long to wait before the next connection is accepted; `None` for not at all.
    pub(crate) fn wait(&self, now: Time) -> Option<Duration> {
        if self.pending.len() < self.limits.startups.full {
            return None;
        }
        let (_, oldest) = self.oldest_of(self.largest_crowd()?)?;
        let left = (oldest.came + TURN).since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether no further connection can be admitted.
    pub(crate) fn is_full(&self) -> bool {
        self.admitted.len() >= self.limits.connections
    }

    /// Returns whether so many are pending that some are dropped.
    #[cfg(feature = "net")]
    pub(crate) fn is_crowded(&self) -> bool {
        self.pending.len() >= self.limits.startups.start
    }

    /// Seats a connection. Where clients are welcome without a credential (`anonymous`), leaving
    /// without one costs nothing.
    pub(crate) fn enter(
        &mut self,
        source: Source,
        anonymous: bool,
        now: Time,
    ) -> Result<Entered, TurnedAway> {
        if self.is_locked_out(source, now) {
            return Err(TurnedAway::LockedOut);
        }
        let crowd = self.crowds.get(&source).copied().unwrap_or_default();
        let own = !source.is_shared() && crowd >= self.limits.per_source;
        let has_had_turn = |connection: &Connection| now >= connection.came + TURN;
        let victim = if own {
            let oldest = self.oldest_of(source).filter(|(_, oldest)| has_had_turn(oldest));
            Some(oldest.ok_or(TurnedAway::TooManyOfSource)?.0)
        } else if self.drops_early() {
            let is_full = self.pending.len() >= self.limits.startups.full;
            let oldest = self.largest_crowd().and_then(|source| self.oldest_of(source));
            oldest.filter(|(_, oldest)| is_full || has_had_turn(oldest)).map(|(ticket, _)| ticket)
        } else {
            None
        };
        let evicted = victim.inspect(|victim| self.leave(*victim, now));
        self.next += 1;
        self.pending.insert(self.next, Connection { source, came: now, anonymous, failures: 0 });
        *self.crowds.entry(source).or_default() += 1;
        Ok(Entered { ticket: self.next, evicted })
    }

    /// Drops the connection that would have to make room next, to free its resources.
    pub(crate) fn evict(&mut self, now: Time) -> Option<Ticket> {
        let (ticket, _) = self.oldest_of(self.largest_crowd()?)?;
        self.leave(ticket, now);
        Some(ticket)
    }

    /// Admits a connection, which has authenticated. Once admitted, it stays so.
    pub(crate) fn admit(&mut self, ticket: Ticket) -> Result<(), TurnedAway> {
        if self.admitted.contains_key(&ticket) {
            return Ok(());
        }
        if self.is_full() {
            return Err(TurnedAway::Full);
        }
        let connection = self.take_pending(ticket).ok_or(TurnedAway::Full)?;
        self.admitted.insert(ticket, connection);
        Ok(())
    }

    /// Notes that a connection has ended.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Time) {
        if let Some(left) = self.take_pending(ticket) {
            if left.failures == 0 && !left.anonymous && !left.source.is_shared() {
                self.charge(left.source, SILENT, now);
            }
        } else {
            self.admitted.remove(&ticket);
        }
    }

    /// Notes a failed attempt to authenticate.
    pub(crate) fn fail(&mut self, ticket: Ticket, now: Time) -> Failure {
        let known = self.pending.get_mut(&ticket).or_else(|| self.admitted.get_mut(&ticket));
        let Some(connection) = known else { return Failure { delay: Duration::ZERO, is_last: true } };
        connection.failures += 1;
        let (source, is_last) = (connection.source, connection.failures >= ATTEMPTS);
        // The kernel has identified a local client, which has nothing to guess.
        let delay = match source {
            Source::Local => Duration::ZERO,
            source => (self.charge(source, FAILED, now) / DELAY_PART).min(LONGEST_DELAY),
        };
        Failure { delay, is_last }
    }

    fn take_pending(&mut self, ticket: Ticket) -> Option<Connection> {
        let connection = self.pending.remove(&ticket)?;
        if let Some(crowd) = self.crowds.get_mut(&connection.source) {
            *crowd -= 1;
            if *crowd == 0 {
                self.crowds.remove(&connection.source);
            }
        }
        Some(connection)
    }

    /// The source with the most pending connections.
    fn largest_crowd(&self) -> Option<Source> {
        self.crowds.iter().max_by_key(|(_, crowd)| **crowd).map(|(source, _)| *source)
    }

    fn oldest_of(&self, source: Source) -> Option<(Ticket, &Connection)> {
        let mut all = self.pending.iter().filter(|(_, connection)| connection.source == source);
        all.next().map(|(ticket, connection)| (*ticket, connection))
    }

    /// Decides by chance whether a pending connection makes room.
    fn drops_early(&self) -> bool {
        let Startups { start, rate, full } = self.limits.startups;
        let pending = self.pending.len();
        if pending < start || pending >= full {
            return pending >= full;
        }
        let (rate, above) = (usize::from(rate), pending - start);
        let chance = rate + (100 - rate) * above / (full - start);
        self.dice.hash_one(self.next) % 100 < chance as u64
    }

    fn is_locked_out(&mut self, source: Source, now: Time) -> bool {
        match self.debts.get(&source) {
            Some(debt) if now < debt.until => debt.locked,
            Some(_) => {
                self.debts.remove(&source);
                false
            }
            None => false,
        }
    }

    /// Adds to the debt of a source. Returns all of it.
    fn charge(&mut self, source: Source, penalty: Duration, now: Time) -> Duration {
        if self.debts.len() >= SOURCES && !self.debts.contains_key(&source) {
            self.forget_some(now);
        }
        let most = self.limits.lockout.max(LOCK_AT);
        let debt = self.debts.entry(source).or_insert(Debt { until: now, locked: false });
        debt.until = (debt.until.max(now) + penalty).min(now + most);
        let owed = debt.until.since(now);
        let locks = owed >= LOCK_AT && !source.is_shared() && !self.limits.lockout.is_zero();
        if locks && !debt.locked {
            debt.locked = true;
            tracing::warn!(?source, seconds = owed.as_secs(), "locked out after failed attempts");
        }
        owed
    }

    /// Makes room in the table: forgets what is paid off, or the eighth with the least debt.
    fn forget_some(&mut self, now: Time) {
        self.debts.retain(|_, debt| debt.until > now);
        if self.debts.len() < SOURCES {
            return;
        }
        let mut ends: Vec<Time> = self.debts.values().map(|debt| debt.until).collect();
        let (_, bound, _) = ends.select_nth_unstable(SOURCES / 8);
        let bound = *bound;
        self.debts.retain(|_, debt| debt.until > bound);
    }
}
