//! Numbers, times and foreign text in a form for people.

use std::time::Duration;

use tapdeck_core::WallTime;
pub use tapdeck_core::{count, times};
use tapdeck_term::printable_json;
use tapdeck_term::text_width;
pub use tapdeck_term::{is_unsafe, printable};

/// A count of bytes: `512 bytes`, `1.4 MB`.
pub fn bytes(n: u64) -> String {
    let scaled = n as f64;
    match n {
        0..1_000 => count(n, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", scaled / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled / 1e6),
        _ => format!("{:.2} GB", scaled / 1e9),
    }
}

/// A duration: `0.42s`, `12.3s`, `3:07`, `1:02:03`.
pub fn duration(d: Duration) -> String {
    let secs = d.as_secs();
    match secs {
        0 => format!("{:.2}s", d.as_secs_f64()),
        1..60 => format!("{:.1}s", d.as_secs_f64()),
        60..3_600 => format!("{}:{:02}", secs / 60, secs % 60),
        _ => format!("{}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60),
    }
}

/// A place in a recording: `0:07`, `1:02:03`.
pub fn clock(d: Duration) -> String {
    let secs = d.as_secs();
    match secs {
        0..3_600 => format!("{}:{:02}", secs / 60, secs % 60),
        _ => format!("{}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60),
    }
}

/// A moment as `2026-03-04 05:06:07 UTC`.
pub fn moment(at: WallTime) -> String {
    format!("{} UTC", at.utc())
}

/// Removes the numbers that the system's errors end with, such as `(os error 2)`: the words before
/// them say the same.
pub fn without_numbers(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((before, behind)) = rest.split_once(" (os error ") {
        out.push_str(before);
        rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = rest.strip_prefix(')').unwrap_or(rest);
    }
    out.push_str(rest);
    out
}

/// Breaks a text into lines at its spaces. A word that is wider than a line is cut.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line) + 1 + text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => {
                let chars: Vec<char> = word.chars().collect();
                lines.extend(chars.chunks(width).map(|piece| piece.iter().collect::<String>()));
            }
        }
    }
    lines
}

/// Cuts foreign text to a number of columns, with an ellipsis in place of the rest.
pub fn shortened(text: &str, width: usize) -> String {
    let text = printable(text);
    if text_width(&text) <= width {
        return text;
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if text_width(&out) + 1 > width {
            out.pop();
            break;
        }
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A value as one line of JSON, with unsafe characters escaped.
pub fn json(value: &impl serde::Serialize) -> String {
    // A `Value` sorts the keys.
    let value = serde_json::to_value(value).unwrap_or_default();
    printable_json(value.to_string())
}

/// That recordings were paused or go on, by another client if there is a name.
pub fn paused(paused: bool, by: Option<&str>) -> String {
    let what = if paused { "the recording is paused" } else { "the recording goes on" };
    by.map_or_else(|| what.to_owned(), |by| format!("{what} ({})", printable(by)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!((bytes(0).as_str(), bytes(1_400_000).as_str()), ("0 bytes", "1.4 MB"));
        assert_eq!(bytes(u64::MAX), "18446744073.71 GB");
        assert_eq!(duration(Duration::from_millis(420)), "0.42s");
        assert_eq!(duration(Duration::from_secs(3_723)), "1:02:03");
    }

    #[test]
    fn messages_have_words_alone() {
        let missing = std::io::Error::from_raw_os_error(2);
        assert_eq!(
            without_numbers(&format!("a: {missing}; b: {missing}")),
            "a: No such file or directory; b: No such file or directory"
        );
        assert_eq!(without_numbers("plain"), "plain");
    }

    #[test]
    fn shortening() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "ab…");
        assert_eq!(shortened("漢字", 3), "漢…");
        assert_eq!(shortened("a\x1b[31m", 9), "a\u{fffd}[31m");
        assert_eq!(shortened("abc", 0), "");
    }

    #[test]
    fn nothing_acts() {
        assert_eq!(printable("a\x1b[31m\u{9b}\u{202e}é"), "a\u{fffd}[31m\u{fffd}\u{fffd}é");
        let value = serde_json::json!("a\x1b\u{9b}\u{7f}\u{202e}é");
        let text = json(&value);
        assert!(!text.chars().any(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
