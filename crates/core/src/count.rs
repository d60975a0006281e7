//! Numbers of things in messages.

/// A number of things: `1 event`, `2 events`.
pub fn count(n: impl TryInto<u64>, thing: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// How often: `once`, `2 times`.
pub fn times(n: impl TryInto<u64>) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            [count(0u64, "row"), count(1usize, "row"), count(2u32, "row")],
            ["0 rows", "1 row", "2 rows"]
        );
        assert_eq!([times(1u64), times(3u64)], ["once", "3 times"]);
    }
}
