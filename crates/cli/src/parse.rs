//! Parsers of arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use regex::Regex;
use tapdeck_core::WinSize;
pub(crate) use tapdeck_tape::edit::Position;
use tapdeck_term::MAX_SIDE;

use crate::screen::detach_keys::DetachKeys;

/// The name of a file, where standard output (`-`) cannot stand for one.
pub(crate) fn file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("this cannot go to standard output: name a file"),
        false => Ok(path),
    })
}

/// A path in which `~` in front stands for the user's home.
pub(crate) fn home_path(text: &str) -> PathBuf {
    match (text.strip_prefix('~'), tapdeck_host::home_folder()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => text.into(),
    }
}

/// A size such as `120x40`.
pub(crate) fn size(text: &str) -> Result<WinSize, String> {
    let wrong = || format!("expected COLSxROWS, such as 120x40, each up to {MAX_SIDE}");
    let (cols, rows) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    let number = |s: &str| s.parse::<u16>().ok().filter(|n| (1..=MAX_SIDE).contains(n)).ok_or_else(wrong);
    Ok(WinSize::cells(number(cols)?, number(rows)?))
}

/// Keys that leave an attached session, such as `C-\\ d`; `none` for none.
pub(crate) fn detach_keys(text: &str) -> Result<Option<DetachKeys>, String> {
    if text == "none" { Ok(None) } else { text.parse().map(Some) }
}

/// A factor of speed such as `2` or `0.5x`.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let factor: f64 =
        text.trim_end_matches('x').parse().map_err(|_| "expected a number such as 2 or 0.5x")?;
    if factor.is_finite() && (0.001..=1e6).contains(&factor) {
        Ok(factor)
    } else {
        Err("the speed must be between 0.001 and 1000000".into())
    }
}

/// A duration such as `10`, `1.5s`, `200ms`, `2m`, `1h`, `7d`, `2w` or `1:23:45`. A plain number is
/// in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_in(text, 1.0)
}

/// The same where a plain number is in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Result<Duration, String> {
    duration_in(text, 1e-3)
}

/// A duration; a plain number is in units of so many seconds.
fn duration_in(text: &str, plain: f64) -> Result<Duration, String> {
    let wrong = || "expected a duration such as 500ms, 10s, 1.5m, 2h, 7d or 1:23:45".to_owned();
    if text.contains(':') {
        let mut secs = 0.0;
        for part in text.split(':') {
            let n: f64 = part.parse().map_err(|_| wrong())?;
            if !(0.0..1e9).contains(&n) || text.split(':').count() > 3 {
                return Err(wrong());
            }
            secs = secs * 60.0 + n;
        }
        return Duration::try_from_secs_f64(secs).map_err(|_| wrong());
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let n: f64 = number.trim().parse().map_err(|_| wrong())?;
    let scale = match unit {
        "" => plain,
        "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 7.0 * 86_400.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(n * scale).map_err(|_| wrong())
}

/// Where a page comes from, as browsers say it: `https://docs.example` or `http://localhost:3000`.
#[cfg(any(feature = "net", feature = "web"))]
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-.:[]_".contains(c));
    match host.is_some_and(fits) {
        true => Ok(text.to_owned()),
        false => Err("expected https://HOST or http://HOST:PORT, with nothing behind it".to_owned()),
    }
}

/// A regular expression.
pub(crate) fn regex(text: &str) -> Result<Regex, String> {
    // The error quotes the pattern over several lines, and says at the end what is wrong.
    let why = |e: regex::Error| e.to_string().lines().last().unwrap_or_default().replace("error: ", "");
    Regex::new(text).map_err(|e| format!("not a regular expression: {}", why(e)))
}

/// A name for a session.
pub(crate) fn session_name(text: &str) -> Result<String, String> {
    tapdeck::live::check_name(text).map(|()| text.to_owned()).map_err(|e| e.to_string())
}

/// The fingerprint of a server, with or without `sha256:` in front.
#[cfg(feature = "net")]
pub(crate) fn fingerprint(text: &str) -> Result<String, String> {
    let digits = text.to_ascii_lowercase();
    let digits = digits.strip_prefix("sha256:").unwrap_or(&digits);
    match digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => Ok(format!("sha256:{digits}")),
        false => Err("a fingerprint is sha256: and 64 hexadecimal digits, as the server prints it".into()),
    }
}

/// A variable for a program: `NAME=VALUE`, or `NAME` for the one here.
pub(crate) fn variable(text: &str) -> Result<(String, Option<OsString>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (text, None),
    };
    match name.is_empty() || name.contains('\0') {
        true => Err("expected NAME or NAME=VALUE".to_owned()),
        false => Ok((name.to_owned(), value)),
    }
}

/// A tag: `NAME=VALUE`, or `NAME` without a value.
pub(crate) fn tag(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if name.trim().is_empty() {
        return Err("expected NAME or NAME=VALUE".to_owned());
    }
    Ok((line(name)?, line(value)?))
}

/// The name of a tag.
pub(crate) fn tag_name(text: &str) -> Result<String, String> {
    match text.contains('=') || text.trim().is_empty() {
        true => Err("expected the name of a tag".to_owned()),
        false => line(text),
    }
}

/// A text on one line.
pub(crate) fn line(text: &str) -> Result<String, String> {
    match text.chars().any(char::is_control) {
        true => Err("line ends and control characters are not allowed".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// A position such as `1:23:45`, `90s`, `50%`, `@label`, `turn:3`, `line:12` or `byte:4096`.
pub(crate) fn position(text: &str) -> Result<Position, String> {
    if let Some(name) = text.strip_prefix('@') {
        return match name {
            "" => Err("expected the label of a marker or snapshot after @".into()),
            name => Ok(Position::Moment(name.to_owned())),
        };
    }
    let number_of = |kind: &str| {
        let number = text.strip_prefix(kind)?.parse::<u64>();
        Some(number.map_err(|_| format!("expected a number after {kind}")))
    };
    if let Some(number) = number_of("turn:") {
        return number.map(Position::Turn);
    }
    if let Some(number) = number_of("line:") {
        return number.map(Position::Line);
    }
    if let Some(number) = number_of("byte:") {
        return number.map(Position::Byte);
    }
    let Some(number) = text.strip_suffix('%') else {
        let wrong = "expected a time (1:23, 90s), a share (50%), @LABEL, turn:N, line:N or byte:N";
        return duration(text).map(Position::Time).map_err(|_| wrong.to_owned());
    };
    let percent = number.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
    percent.map(|p| Position::Share(p / 100.0)).ok_or_else(|| "expected 0% to 100%".to_owned())
}

/// A range such as `1:00..2:00`; a side that is left out is the start or the end.
pub(crate) fn range(text: &str) -> Result<(Option<Position>, Option<Position>), String> {
    let side = |text: &str| if text.is_empty() { Ok(None) } else { position(text).map(Some) };
    let mut wrong = "expected FROM..TO, such as 1:00..2:00".to_owned();
    // A label may have dots in it.
    for (at, dots) in text.match_indices("..") {
        match (side(&text[..at]), side(&text[at + dots.len()..])) {
            (Ok(None), Ok(None)) => wrong = "this range is all of the recording".to_owned(),
            (Ok(from), Ok(to)) => return Ok((from, to)),
            (Err(why), _) | (_, Err(why)) => wrong = why,
        }
    }
    Err(wrong)
}

/// A marker to set, such as `1:00=tests`. The first `=` ends the position, in which `\=` stands for
/// an equals sign.
pub(crate) fn mark(text: &str) -> Result<(Position, String), String> {
    let ends = |(at, _): &(usize, &str)| !text[..*at].ends_with('\\');
    let Some((at, _)) = text.match_indices('=').find(ends) else {
        return Err("expected WHERE=LABEL, such as 1:00=tests".to_owned());
    };
    let (place, label) = (text[..at].replace("\\=", "="), &text[at + 1..]);
    let position = position(&place).map_err(|why| {
        format!("{place:?} is no place: {why}; the first = ends it, and \\= is an equals sign in it")
    })?;
    if label.is_empty() {
        Err("expected a label after =".to_owned())
    } else {
        Ok((position, label.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("120x40"), Ok(WinSize::cells(120, 40)));
        for bad in ["", "x", "0x0", "-1x0", "99999x99999", "80", "80x", "80x24x1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn positions() {
        assert_eq!(position("50%"), Ok(Position::Share(0.5)));
        assert_eq!(position("1:00"), Ok(Position::Time(Duration::from_secs(60))));
        assert_eq!(position("byte:4096"), Ok(Position::Byte(4096)));
        assert_eq!(position("@50%"), Ok(Position::Moment("50%".into())));
        assert_eq!(position("turn:3"), Ok(Position::Turn(3)));
        assert_eq!(position("line:12"), Ok(Position::Line(12)));
        for bad in ["%", "101%", "-1%", "nan%", "x", "@", "byte:", "byte:-1", "byte:x", "turn:", "line:-1"] {
            assert!(position(bad).is_err(), "{bad}");
        }
        for said in ["1.5s", "50%", "12.5%", "@a b", "turn:3", "line:0", "byte:7"] {
            assert_eq!(position(said).expect(said).to_string(), said, "it is spelled as it is read");
        }
    }

    #[test]
    fn ranges_and_marks() {
        let secs = |n: f64| Position::Time(Duration::from_secs_f64(n));
        let moment = |name: &str| Position::Moment(name.to_owned());
        assert_eq!(range("1.5..2.5"), Ok((Some(secs(1.5)), Some(secs(2.5)))));
        assert_eq!(range("..2"), Ok((None, Some(secs(2.0)))));
        assert_eq!(range("50%.."), Ok((Some(Position::Share(0.5)), None)));
        assert_eq!(range("@a..@b"), Ok((Some(moment("a")), Some(moment("b")))));
        for bad in ["", "..", "1", "1-2", "1..x", "x..1"] {
            assert!(range(bad).is_err(), "{bad}");
        }
        assert_eq!(mark("1:00=a=b"), Ok((secs(60.0), "a=b".to_owned())));
        assert_eq!(mark("@x=y"), Ok((moment("x"), "y".to_owned())));
        assert_eq!(mark("@a..b=c=new"), Ok((moment("a..b"), "c=new".to_owned())));
        assert_eq!(mark("@a..b\\=c=new"), Ok((moment("a..b=c"), "new".to_owned())));
        for bad in ["", "1:00", "1:00=", "x=y"] {
            assert!(mark(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("10", 10_000),
            ("1.5s", 1_500),
            ("200ms", 200),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("1w", 604_800_000),
            ("1:02", 62_000),
            ("1:23:45", 5_025_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration_ms("500"), Ok(Duration::from_millis(500)));
        assert_eq!(duration_ms("0.5s"), Ok(Duration::from_millis(500)));
        for bad in ["", "s", "-1", "nan", "inf", "1e308h", "1:2:3:4", "5 apples", "1:-2"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
