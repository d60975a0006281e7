//! Relays: which answers are passed on, and when that ends.

use tapdeck::squad::{Relay, SavedRelay};

/// What to do with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Pass this text on.
    Send(String),
    /// Nothing: this relay has ended.
    Nothing,
    /// Do not pass it on: a part of it is missing.
    Refuse,
    /// End it, for this reason.
    End(String),
}

/// Decides about an answer of a relay's agent.
pub(super) fn next(relay: &Relay, saved: &SavedRelay, answer: &str, is_truncated: bool) -> Next {
    if saved.ended.is_some() || answer.trim().is_empty() {
        return Next::Nothing;
    }
    if let Some(word) = relay.until.as_deref().filter(|word| answer.contains(*word)) {
        return Next::End(format!("{} said {word}", relay.from.get_ref()));
    }
    if saved.rounds >= relay.rounds {
        let over = if relay.rounds == 1 { "round is" } else { "rounds are" };
        return Next::End(format!("{} {over} over", relay.rounds));
    }
    if is_truncated && !relay.allow_truncated {
        return Next::Refuse;
    }
    let mut text = relay.before.trim_end().to_owned();
    if is_truncated {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str("[a part of this answer is missing]");
    }
    text.push_str(if text.is_empty() { "" } else { "\n" });
    text.push_str(answer.trim_end());
    Next::Send(text)
}

/// Whether one relay answers the other.
pub(super) fn is_back(relay: &Relay, other: &Relay) -> bool {
    relay.from.get_ref() == other.to.get_ref() && relay.to.get_ref() == other.from.get_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck::squad::Squad;

    #[test]
    fn a_relay_ends_at_its_word_and_after_its_rounds() {
        let text = "[agents.a]\ncommand=['x']\n[agents.b]\ncommand=['x']\n\
                    [[relay]]\nfrom='a'\nto='b'\nbefore='look:'\nuntil='OK'\nrounds=2\n";
        let squad = Squad::parse(text).expect("a squad");
        let relay = &squad.relays[0];
        let mut saved = SavedRelay::default();
        assert_eq!(next(relay, &saved, "one\n", false), Next::Send("look:\none".into()));
        assert_eq!(next(relay, &saved, "one", true), Next::Refuse);
        let text = text.replace("rounds=2", "rounds=2\nallow_truncated=true");
        let squad = Squad::parse(&text).expect("a squad");
        let relay = &squad.relays[0];
        let cut = "look:\n[a part of this answer is missing]\none";
        assert_eq!(next(relay, &saved, "one", true), Next::Send(cut.into()));
        assert_eq!(next(relay, &saved, " \n", false), Next::Nothing);
        assert_eq!(next(relay, &saved, "all OK", false), Next::End("a said OK".into()));
        saved.rounds = 2;
        assert_eq!(next(relay, &saved, "three", false), Next::End("2 rounds are over".into()));
        saved.ended = Some(String::new());
        assert_eq!(next(relay, &saved, "four", false), Next::Nothing);
    }
}
