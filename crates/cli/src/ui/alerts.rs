//! What a view tells the user's terminal when a program changes its state, so that a user who looks
//! elsewhere hears of it.

use std::str::FromStr;

use tapdeck_core::turns::AgentState;

use crate::human;

/// Which changes are told, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alerts {
    /// The states that are told.
    pub states: Vec<AgentState>,
    /// Whether the terminal rings its bell.
    pub bell: bool,
    /// How the terminal is asked for a desktop notification.
    pub desktop: Desktop,
}

/// How a terminal is asked for a desktop notification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Desktop {
    /// Not at all.
    #[default]
    None,
    /// `OSC 9`, a text.
    Osc9,
    /// `OSC 777`, a title and a text.
    Osc777,
}

impl FromStr for Desktop {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "osc9" => Ok(Self::Osc9),
            "osc777" => Ok(Self::Osc777),
            _ => Err(format!("expected \"osc9\", \"osc777\" or \"none\", and not {name:?}")),
        }
    }
}

impl Alerts {
    /// What tells the terminal that the program of a session came into a state; empty if that is
    /// not told.
    pub fn bytes(&self, name: &str, state: AgentState) -> Vec<u8> {
        if !self.states.contains(&state) {
            return Vec::new();
        }
        // A semicolon would begin another field of the sequence.
        let name = human::printable(name).replace(';', ",");
        let mut out = match self.desktop {
            Desktop::None => String::new(),
            Desktop::Osc9 => format!("\x1b]9;{name} is {state}\x1b\\"),
            Desktop::Osc777 => format!("\x1b]777;notify;tapdeck;{name} is {state}\x1b\\"),
        };
        if self.bell {
            out.push('\x07');
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_told_in_its_own_words() {
        for (desktop, bell, expected) in [
            ("none", false, ""),
            ("none", true, "\x07"),
            ("osc9", true, "\x1b]9;a,b is blocked\x1b\\\x07"),
            ("osc777", false, "\x1b]777;notify;tapdeck;a,b is blocked\x1b\\"),
        ] {
            let desktop = desktop.parse().expect("a way");
            let alerts = Alerts { states: vec![AgentState::Blocked], bell, desktop };
            assert_eq!(alerts.bytes("a;b", AgentState::Blocked), expected.as_bytes());
            assert!(alerts.bytes("a;b", AgentState::Idle).is_empty());
            let hostile = alerts.bytes("a\x1b]52;c;x\x07", AgentState::Blocked);
            assert!(!String::from_utf8_lossy(&hostile).contains("\x1b]52"), "{hostile:?}");
        }
        assert!("bell".parse::<Desktop>().is_err());
    }
}
