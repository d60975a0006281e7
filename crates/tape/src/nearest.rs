//! What was probably meant by a name that does not exist.

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

#[cfg(test)]
mod tests {
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
