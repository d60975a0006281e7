//! What was probably meant by a name that does not exist, and how a message says so.

/// The name that is nearest to this one, if one is near: first by the number of typing errors, then
/// by how alike they begin.
pub fn name<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let score = |name: &str| {
        let errors = strsim::damerau_levenshtein(wrong, name);
        let alike = strsim::jaro_winkler(wrong, name);
        let near = errors <= 1 + wrong.chars().count() / 5 || alike > 0.8;
        near.then_some((errors, alike))
    };
    let near = names.into_iter().filter_map(|name| Some((score(name)?, name)));
    near.min_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(y.total_cmp(x))).map(|(_, name)| name)
}

/// The names that a message lists at most, and how much it shows of a wrong one.
const LISTED: usize = 48;
const SHOWN: usize = 64;

/// Says that a name is unknown: which one was probably meant, or else which ones there are.
pub fn unknown(kind: &str, wrong: &str, known: &[&str]) -> String {
    let end = wrong.char_indices().nth(SHOWN).map_or(wrong.len(), |(at, _)| at);
    let wrong = &wrong[..end];
    let listed = known[..known.len().min(LISTED)].join(", ");
    match name(wrong, known.iter().copied()) {
        Some(meant) => format!("unknown {kind} {wrong:?}; did you mean {meant:?}?"),
        None if known.is_empty() => format!("unknown {kind} {wrong:?}; there are none here"),
        None if known.len() <= LISTED => format!("unknown {kind} {wrong:?}; known here: {listed}"),
        None => format!("unknown {kind} {wrong:?}; known here: {listed}, …"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unknown_name_is_explained() {
        let known = ["session", "text", "timeout_s"];
        for (wrong, known, message) in [
            ("sesion", &known[..], "unknown argument \"sesion\"; did you mean \"session\"?"),
            ("colour", &known[..], "unknown argument \"colour\"; known here: session, text, timeout_s"),
            ("text", &[], "unknown argument \"text\"; there are none here"),
        ] {
            assert_eq!(super::unknown("argument", wrong, known), message);
        }
        assert!(super::unknown("argument", &"ä".repeat(1000), &known).len() < 300);
    }

    #[test]
    fn a_name_with_typing_errors_is_found() {
        let names = ["play", "explain", "rec", "relay", "repair", "resize", "rename", "type", "turns"];
        for (wrong, meant) in [
            ("plya", Some("play")),
            ("paly", Some("play")),
            ("rce", Some("rec")),
            ("record", Some("rec")),
            ("renmae", Some("rename")),
            ("quit", None),
            ("", None),
        ] {
            assert_eq!(super::name(wrong, names), meant, "{wrong}");
        }
    }
}
