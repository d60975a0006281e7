//! For how long a cassette supports a claim about the live program: a time and a length of time,
//! both written as text, and understood here.

use std::time::Duration;

use tapdeck_core::WallTime;

use super::{Cassette, Check, Verdict};

/// Reads a time as RFC 3339 writes it, to the second: `2026-03-04T05:06:07Z`, or with a fraction
/// or an offset.
pub fn parse_time(text: &str) -> Option<WallTime> {
    let number = |at: std::ops::Range<usize>| {
        let digits = text.get(at)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let marks = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    let marked = marks.iter().all(|(at, mark)| text.get(*at..at + 1) == Some(*mark));
    let separated = matches!(text.get(10..11), Some("T" | "t" | " "));
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !marked || !separated || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = text.get(19..)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        rest = fraction.get(digits..).filter(|_| digits > 0)?;
    }
    let offset = match rest {
        "Z" | "z" => 0,
        rest => {
            let sign = match rest.as_bytes().first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = rest[1..].split_once(':')?;
            let two =
                |part: &str| (part.len() == 2).then(|| part.parse::<u8>().ok()).flatten().map(i64::from);
            sign * (two(hours).filter(|h| *h < 24)? * 3600 + two(minutes).filter(|m| *m < 60)? * 60)
        }
    };
    // Days since 1970, with years that begin in March, so that a leap day is a year's last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day - 719_469;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(WallTime::from_secs(u64::try_from(seconds).ok()?))
}

/// Reads a length of time for which something may be believed: `15m`, `24h`, `7d`, `2w`.
pub fn parse_window(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok().filter(|n| (0.0..1e9).contains(n))?;
    Duration::try_from_secs_f64(number * scale).ok()
}

/// Whether a cassette may still be believed about the live program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// It says nothing of how long it may be believed.
    Unlimited,
    /// It may be, until then.
    Until(WallTime),
    /// It was recorded too long ago: since then.
    Expired(WallTime),
    /// What it says is no time, or no length of time.
    Unclear(String),
}

impl Cassette {
    /// When it was recorded, as far as that can be understood.
    pub fn captured_at(&self) -> Option<WallTime> {
        parse_time(&self.manifest.harness.captured_at)
    }

    /// Whether it may be believed at this time.
    pub fn freshness(&self, now: WallTime) -> Freshness {
        let harness = &self.manifest.harness;
        let Some(captured) = self.captured_at() else {
            return Freshness::Unclear(format!("harness.captured_at {:?} is no time", harness.captured_at));
        };
        let Some(text) = &harness.freshness_window else { return Freshness::Unlimited };
        let Some(window) = parse_window(text) else {
            let what = format!("harness.freshness_window {text:?} is no length of time such as 24h");
            return Freshness::Unclear(what);
        };
        let until = captured + window;
        if until < now { Freshness::Expired(until) } else { Freshness::Until(until) }
    }
}

/// Checks that what a cassette says about its freshness can be understood; with `must`, that it may
/// be believed now.
pub fn check_freshness(cassette: &Cassette, now: WallTime, must: bool) -> Check {
    let verdict = match cassette.freshness(now) {
        Freshness::Unclear(why) => Verdict::Failed(vec![why]),
        Freshness::Expired(since) if must => {
            Verdict::Failed(vec![format!("it has been stale since {}: record it again", since.utc())])
        }
        Freshness::Expired(since) => Verdict::Skipped(format!("stale since {}", since.utc())),
        Freshness::Unlimited if must => {
            Verdict::Failed(vec!["it does not say for how long it may be believed".to_owned()])
        }
        Freshness::Unlimited | Freshness::Until(_) => Verdict::Passed,
    };
    Check { name: "freshness", what: "it says when it was recorded, and may still be believed", verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_windows_are_understood_or_refused() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199)),
            ("2024-02-29T23:59:59.123Z", Some(1_709_251_199)),
            ("2024-03-01T01:59:59+02:00", Some(1_709_251_199)),
            ("2024-02-29T18:59:59-05:00", Some(1_709_251_199)),
            ("2000-03-01T00:00:00Z", Some(951_868_800)),
            ("2023-02-29T00:00:00Z", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-01-01T24:00:00Z", None),
            ("2024-01-01T00:00:00", None),
            ("2024-01-01T00:00:00.Z", None),
            ("2024-01-01T00:00:00+2:00", None),
            ("2024-01-01", None),
            ("1969-12-31T23:59:59Z", None),
            ("banana", None),
            ("\u{e4}024-01-01T00:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse_time(text), seconds.map(WallTime::from_secs), "{text}");
        }
        for (text, seconds) in [
            ("15m", Some(900)),
            ("1.5h", Some(5400)),
            ("24h", Some(86_400)),
            ("7d", Some(604_800)),
            ("2w", Some(1_209_600)),
            ("banana", None),
            ("-1h", None),
            ("h", None),
            ("24", None),
            ("NaNh", None),
            ("infh", None),
            ("", None),
        ] {
            assert_eq!(parse_window(text), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
