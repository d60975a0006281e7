//! Authority: what a client may do at a session or at a server.
//!
//! Each door makes one [`Authority`] from the credential that a client shows. [`Authority::check`]
//! is the only rule that compares it with a request; handlers call it and test no role themselves.

use crate::stick::Role;
use crate::time::WallTime;

/// A right that a credential grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// See the screen, the output and the turns of a session.
    Watch,
    /// Hold the stick and type.
    Drive,
    /// Start programs.
    Open,
    /// Resize, end and record a session without holding the stick.
    Administer,
}

impl Right {
    /// Every right.
    pub const ALL: [Right; 4] = [Right::Watch, Right::Drive, Right::Open, Right::Administer];

    /// Returns the name that documentation uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Watch => "watch",
            Right::Drive => "drive",
            Right::Open => "open",
            Right::Administer => "administer",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a request needs from the client that sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// The right to watch.
    Watch,
    /// The right to drive.
    Drive,
    /// The right to drive, and the stick.
    Hold,
    /// The stick, or the right to administer.
    Command,
    /// The right to administer.
    Administer,
    /// The right to start programs.
    Open,
}

impl Need {
    /// Every need.
    pub const ALL: [Need; 6] =
        [Need::Watch, Need::Drive, Need::Hold, Need::Command, Need::Administer, Need::Open];

    /// Returns the words that documentation uses.
    pub fn name(self) -> &'static str {
        match self {
            Need::Watch => "watch",
            Need::Drive => "drive",
            Need::Hold => "drive, and the stick",
            Need::Command => "the stick, or administer",
            Need::Administer => "administer",
            Need::Open => "open",
        }
    }
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// The credential has expired.
    #[error("the credential has expired")]
    Expired,
    /// The credential does not grant the right.
    #[error("the credential does not allow to {}", .0.name())]
    Lacks(Right),
    /// Another client holds the stick, or no client does.
    #[error("only the holder of the stick can do this")]
    NotHolder,
}

/// Who a client is, what it may do, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority {
    role: Role,
    rights: u8,
    until: Option<WallTime>,
}

impl Authority {
    /// Returns what a role may do at a session: a person watches, drives and administers, a program
    /// watches and drives, an observer watches.
    pub const fn of(role: Role) -> Self {
        let rights = match role {
            Role::Observer => Right::Watch.bit(),
            Role::Bot => Right::Watch.bit() | Right::Drive.bit(),
            Role::Human => Right::Watch.bit() | Right::Drive.bit() | Right::Administer.bit(),
        };
        Self { role, rights, until: None }
    }

    /// Returns the authority of the user that runs the server: a person who may also start
    /// programs.
    pub const fn owner() -> Self {
        Self::of(Role::Human).and(Right::Open)
    }

    /// Returns an authority without any right, to be extended by [`Authority::and`].
    pub const fn none() -> Self {
        Self { role: Role::Observer, rights: 0, until: None }
    }

    /// Adds a right.
    #[must_use]
    pub const fn and(self, right: Right) -> Self {
        Self { rights: self.rights | right.bit(), ..self }
    }

    /// Sets when the authority expires, in nanoseconds since 1970.
    #[must_use]
    pub const fn until(self, until: Option<WallTime>) -> Self {
        Self { until, ..self }
    }

    /// Lowers the authority to the role that a client asks for. A client never gets more than its
    /// credential grants.
    #[must_use]
    pub fn limited_to(self, asked: Role) -> Self {
        let role = self.role.min(asked);
        let own = Self::of(role).rights | Right::Open.bit();
        Self { role, rights: self.rights & own, ..self }
    }

    /// Returns how the client counts at the stick.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns when the authority expires, in nanoseconds since 1970.
    pub fn expires(&self) -> Option<WallTime> {
        self.until
    }

    /// Returns whether the credential grants this right.
    pub fn grants(&self, right: Right) -> bool {
        self.rights & right.bit() != 0
    }

    /// Checks whether a request is allowed at `now` for a client that
    /// holds the stick or does not.
    ///
    /// # Errors
    /// When the authority has expired, lacks the right, or needs the stick.
    pub fn check(&self, need: Need, holds: bool, now: WallTime) -> Result<(), Denied> {
        if self.until.is_some_and(|until| now >= until) {
            return Err(Denied::Expired);
        }
        let right = match need {
            Need::Watch => Right::Watch,
            Need::Drive | Need::Hold => Right::Drive,
            Need::Command if holds => return Ok(()),
            Need::Command | Need::Administer => Right::Administer,
            Need::Open => Right::Open,
        };
        if !self.grants(right) {
            return Err(Denied::Lacks(right));
        }
        if need == Need::Hold && !holds { Err(Denied::NotHolder) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_authority_meets_the_needs_of_its_role() {
        // Without the stick, then with it: watch, drive, hold, command, administer, open.
        let table = [
            (Authority::owner(), "wd.cao", "wdhcao"),
            (Authority::of(Role::Human), "wd.ca.", "wdhca."),
            (Authority::of(Role::Bot), "wd....", "wdhc.."),
            (Authority::of(Role::Observer), "w.....", "w..c.."),
            (Authority::none().and(Right::Open), ".....o", "...c.o"),
        ];
        for (authority, without, with) in table {
            for (holds, expected) in [(false, without), (true, with)] {
                let letters = Need::ALL.iter().zip("wdhcao".chars());
                let met = |need| authority.check(need, holds, WallTime::from_nanos(5)).is_ok();
                let got: String = letters.map(|(need, c)| if met(*need) { c } else { '.' }).collect();
                assert_eq!(got, expected, "{authority:?}, holds the stick: {holds}");
            }
        }
    }

    #[test]
    fn an_authority_expires_and_is_never_raised() {
        let until = Authority::owner().until(Some(WallTime::from_nanos(10)));
        assert_eq!(until.check(Need::Watch, true, WallTime::from_nanos(9)), Ok(()));
        for need in Need::ALL {
            assert_eq!(until.check(need, true, WallTime::from_nanos(10)), Err(Denied::Expired), "{need:?}");
        }
        let roles = [Role::Observer, Role::Bot, Role::Human];
        for granted in roles {
            for asked in roles {
                let got = Authority::of(granted).limited_to(asked);
                assert_eq!(got, Authority::of(granted.min(asked)), "{granted:?}, asked for {asked:?}");
            }
        }
    }
}
