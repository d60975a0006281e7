//! What was probably meant by a name that does not exist.

/// The name that is nearest to this one, if one is near.
pub(crate) fn name<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name));
    let near = near.filter(|(score, _)| *score > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
