//! Facts that change from run to run, made equal before rows are compared: clocks, dates,
//! durations, process numbers, temporary names, spinners, counters. Rules are data, each with what
//! it must hit and what it must leave alone. They work on the rows being compared and never on what
//! is stored.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::ParseError;

/// A rule as it is written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Its name in scenario files.
    pub(crate) name: &'static str,
    /// What it looks for.
    pub(crate) pattern: &'static str,
    /// What it puts in its place; `$1` stands for the first group.
    pub(crate) with: &'static str,
    /// Text that it hits, and what becomes of it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests try each rule on them"))]
    pub(crate) hits: &'static [(&'static str, &'static str)],
    /// Text that it leaves alone.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests try each rule on them"))]
    pub(crate) spares: &'static [&'static str],
}

/// The rules that come with the product, in the order in which they are applied.
pub(crate) const RULES: &[Rule] = &[
    // Dates and full timestamps.
    Rule {
        name: "date",
        pattern: r"(?x)\b\d{4}(?:-\d{2}-\d{2}|/\d{2}/\d{2}|\.\d{2}\.\d{2})(?:[T\ ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|\ ?[+-]\d{2}:?\d{2})?)?\b
            |\b\d{8}T\d{6}(?:[.,]\d+)?Z?\b
            |\b\d{1,2}(?:/\d{1,2}/|\.\d{1,2}\.|-\d{1,2}-)(?:19|20)\d{2}\b
            |\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?\ +(?:\d{1,2}\ +(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\ +\d{1,2})\b(?:,?\ \d{4}\b)?
            |\b\d{1,2}(?:st|nd|rd|th)?[\ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?[\ -]\d{4}\b
            |\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?\ +\d{1,2}(?:st|nd|rd|th)?(?:,?\ \d{4}\b|\ +\d{2}:\d{2}(?::\d{2})?\b)",
        with: "<date>",
        hits: &[
            ("on 2026-03-04 it", "on <date> it"),
            ("2026-03-04T05:06:07.123Z done", "<date> done"),
            ("Wed Mar  4 05:06", "<date> 05:06"),
            ("Wed, 04 Mar 2026", "<date>"),
            ("on 2026/03/04 it", "on <date> it"),
            ("2026-03-04 05:06:07 +0100", "<date>"),
            ("backup-20260304T050607Z.tar", "backup-<date>.tar"),
            ("due 04/03/2026, 4.3.2026 or 4-3-2026", "due <date>, <date> or <date>"),
            ("4 March 2026", "<date>"),
            ("04-Mar-2026", "<date>"),
            ("March 4th, 2026", "<date>"),
            ("Wednesday, March 4, 2026", "<date>"),
            ("Mar  4 05:06:07 host", "<date> host"),
        ],
        spares: &[
            "2026-3",
            "1-2-3",
            "Monday",
            "version 10-20-30",
            "192.168.20.20",
            "1.2.3",
            "May 4 people",
            "12/34/5678",
            "1/2",
        ],
    },
    // Times of the day.
    Rule {
        name: "clock",
        pattern: r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?\b",
        with: "<clock>",
        hits: &[("top - 05:06:07 up", "top - <clock> up"), ("at 9:41 PM", "at <clock>")],
        spares: &["1:2", "25:61", "ratio 3:4", "a::b"],
    },
    // Lengths of time with a unit.
    Rule {
        name: "duration",
        pattern: r"(?x)\b(?:\d+\ ?(?:w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?),?\ ?){1,5}\d+(?:\.\d+)?\ ?(?:ms|secs?|seconds?|s|mins?|minutes?|m|h|hrs?|hours?|d|days?)\b
            |\b\d+(?:\.\d+)?\ ?(?:ms|msecs?|milliseconds?|µs|μs|us|usecs?|microseconds?|ns|nsecs?|nanoseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?)\b
            |\bP(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?\b",
        with: "<duration>",
        hits: &[
            ("took 1.25s", "took <duration>"),
            ("(12 ms)", "(<duration>)"),
            ("1h 2m 3s left", "<duration> left"),
            ("up 3 days", "up <duration>"),
            ("real\t0m0.012s", "real\t<duration>"),
            ("1 min 20 sec", "<duration>"),
            ("1 hour, 5 minutes ago", "<duration> ago"),
            ("2h30m left", "<duration> left"),
            ("1d 4h; 2 weeks", "<duration>; <duration>"),
            ("2d 3h 4m", "<duration>"),
            ("350 milliseconds", "<duration>"),
            ("12 msec and 3.5 μs", "<duration> and <duration>"),
            ("PT1H2M3.5S", "<duration>"),
        ],
        spares: &["5 apples", "s3", "3 sheep", "0m", "4 hosts", "2d", "3 mice", "PTA", "1080p"],
    },
    // Universally unique identifiers.
    Rule {
        name: "uuid",
        pattern: r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        with: "<uuid>",
        hits: &[("id 01234567-89ab-cdef-0123-456789abcdef.", "id <uuid>.")],
        spares: &["01234567-89ab", "deadbeef"],
    },
    // Names under temporary folders.
    Rule {
        name: "tmp",
        pattern: r"(/tmp|/var/tmp|/run/user/\d+)/[^\s'\x22:,;)\]]+",
        with: "$1/<tmp>",
        hits: &[("saved /tmp/tmp.Xy12/a.txt now", "saved /tmp/<tmp> now")],
        spares: &["/tmp", "/template/x", "/tmp is full"],
    },
    // Process numbers that say they are one.
    Rule {
        name: "pid",
        pattern: r#"(?xi)\b(pid|ppid|pgid|pgrp|tgid|spid|tid|lwp|process(?:\ id)?|process\ group|pids)(["']?[\ =:\#]+|\[)\d+
            |^(\[\d+\][+-]?\ +)\d+\b
            |(\b[a-z_][\w./-]*\[)\d+(\]:)
            |(/proc/)\d+\b
            |(\bkilled\ +)\d+\b"#,
        with: "$1$2$3$4$6$7<pid>$5",
        hits: &[
            ("PID 4711 died", "PID <pid> died"),
            ("pid=12", "pid=<pid>"),
            ("[1] 4711", "[1] <pid>"),
            ("[1]+  4711 Running", "[1]+  <pid> Running"),
            ("sshd[4711]: hello", "sshd[<pid>]: hello"),
            ("Process ID: 12", "Process ID: <pid>"),
            (r#"{"pid": 12, "tid": 13}"#, r#"{"pid": <pid>, "tid": <pid>}"#),
            ("cat /proc/4711/status", "cat /proc/<pid>/status"),
            ("process group 12", "process group <pid>"),
        ],
        spares: &["rapid 12", "port 4711", "[1]+ Stopped", "list[0] = 1", "/processor/1", "skilled 5"],
    },
    // The turning mark of something at work.
    Rule {
        name: "spinner",
        pattern: r"[⠀-⣿]|[◐◑◒◓◴◵◶◷✳✶✻✽✢]|^(\s*)[|/\\-](\s)|(\s)[|/\\-]$",
        with: "$1$3<spin>$2",
        hits: &[
            ("⠹ Loading", "<spin> Loading"),
            ("wait \\", "wait <spin>"),
            ("◐ Thinking", "<spin> Thinking"),
        ],
        spares: &["a/b", "--help", "x | y"],
    },
    // Shares in per cent.
    Rule {
        name: "percent",
        pattern: r"\b\d{1,3}(?:\.\d+)? ?%",
        with: "<percent>",
        hits: &[("done 42%", "done <percent>"), ("12.5 % used", "<percent> used")],
        spares: &["%d", "100 percent"],
    },
    // How many of how many, and tokens.
    Rule {
        name: "counter",
        pattern: r"\b\d+(?:[.,]\d+)*/\d+(?:[.,]\d+)*\b|\b\d+(?:\.\d+)?k? tokens?\b",
        with: "<counter>",
        hits: &[("12/345 files", "<counter> files"), ("1.2k tokens", "<counter>")],
        spares: &["a/b", "12 files"],
    },
    // Every number; the last resort for meters and tables.
    Rule {
        name: "number",
        pattern: r"\b\d+(?:[.,]\d+)*\b",
        with: "<n>",
        hits: &[("load 0.12, 3", "load <n>, <n>")],
        spares: &["abc", "x86"],
    },
];

/// A rule ready for use.
#[derive(Clone)]
pub struct Normaliser(Arc<Ready>);

struct Ready {
    key: usize,
    name: String,
    pattern: Regex,
    with: String,
}

impl fmt::Debug for Normaliser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Normaliser({})", self.0.name)
    }
}

static KEYS: AtomicUsize = AtomicUsize::new(0);

static BUILT_IN: LazyLock<Vec<Normaliser>> = LazyLock::new(|| {
    let ready = RULES.iter().map(|r| Normaliser::new(r.name, r.pattern, r.with));
    // The test below compiles every rule.
    ready.filter_map(Result::ok).collect()
});

impl Normaliser {
    /// Makes a rule of a scenario's own.
    ///
    /// # Errors
    /// When the pattern cannot be read.
    pub fn new(name: &str, pattern: &str, with: &str) -> Result<Self, ParseError> {
        let pattern = super::pattern(pattern)?;
        let key = KEYS.fetch_add(1, Ordering::Relaxed);
        Ok(Self(Arc::new(Ready { key, name: name.to_owned(), pattern, with: with.to_owned() })))
    }

    /// Returns a built-in rule.
    ///
    /// # Errors
    /// When no rule has this name.
    pub fn named(name: &str) -> Result<Self, ParseError> {
        let found = BUILT_IN.iter().find(|n| n.0.name == name).cloned();
        found.ok_or_else(|| {
            let names: Vec<_> = RULES.iter().map(|r| r.name).collect();
            let names = names.join(", ");
            ParseError::new(format!("there is no rule {name:?} to normalise by: there are {names}"))
        })
    }

    /// What tells it from every other rule that there is, was or will be.
    pub(crate) fn key(&self) -> usize {
        self.0.key
    }

    /// Makes one row equal to itself in another run.
    pub(crate) fn apply(&self, row: &mut String) {
        if let std::borrow::Cow::Owned(new) = self.0.pattern.replace_all(row, &self.0.with) {
            *row = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_do_what_they_say() {
        for rule in RULES {
            let ready = Normaliser::named(rule.name).expect(rule.name);
            for (before, after) in rule.hits {
                let mut row = (*before).to_owned();
                ready.apply(&mut row);
                assert_eq!(row, *after, "{}: {before}", rule.name);
            }
            for spared in rule.spares {
                let mut row = (*spared).to_owned();
                ready.apply(&mut row);
                assert_eq!(row, *spared, "{}", rule.name);
            }
        }
        assert!(Normaliser::named("moon").is_err());
    }

    proptest! {
        /// A stored text has been normalised once already: doing it again must change nothing.
        #[test]
        fn twice_is_once(row in "([0-9]{1,4}|[-:/.|% ]|s|ms|pid|PID|/tmp/|⠹|k tokens|[a-z]|Mon Jan ){0,20}") {
            let mut once = row;
            for rule in RULES {
                Normaliser::named(rule.name).expect("there").apply(&mut once);
            }
            let mut twice = once.clone();
            for rule in RULES {
                Normaliser::named(rule.name).expect("there").apply(&mut twice);
            }
            prop_assert_eq!(once, twice);
        }
    }
}
