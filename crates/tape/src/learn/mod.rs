//! Learns the rules of an agent from looks at its screen: what its input field begins with, and
//! what shows that it is at work. A person corrects what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// A look at a program's screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The rows as text.
    pub rows: Vec<String>,
    /// The cursor's row.
    pub cursor_row: usize,
    /// The window's title.
    pub title: String,
    /// How long the program had written nothing.
    pub quiet: Duration,
    /// Whether it had asked for bracketed paste.
    pub pastes: bool,
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// The rule file.
    pub rules: String,
    /// What was not seen, as sentences.
    pub missing: Vec<&'static str>,
}

/// A screen that has not changed for this long is one of a program that waits; one that has changed
/// within this time is one of a program at work.
const AT_REST: Duration = Duration::from_millis(1500);
const AT_WORK: Duration = Duration::from_millis(400);
/// Looks at work in a row that count: a key that is echoed is no work.
const RUN: usize = 4;
/// Signs with which input fields begin.
const PROMPTS: &str = ">❯›»➜λ▌┃│|:$%#";
/// Words of a row that says how to stop the program.
const STOPS: [&str; 4] = ["interrupt", "cancel", "stop", "abort"];

/// Learns the rules of a program from looks at it, in the order of time. `None` if it was never at
/// rest, so that nothing can be said.
pub fn learn(name: &str, command: &str, samples: &[Sample]) -> Option<Learned> {
    let at_rest: Vec<&Sample> = samples.iter().filter(|s| s.quiet >= AT_REST).collect();
    let runs = samples.chunk_by(|a, b| (a.quiet < AT_WORK) == (b.quiet < AT_WORK));
    let at_work: Vec<&Sample> =
        runs.filter(|run| run.len() >= RUN && run[0].quiet < AT_WORK).flatten().collect();
    let last = at_rest.last()?;
    let mut missing = Vec::new();
    let frame = frame_of(last);
    let mark = busy_row(&at_rest, &at_work);
    let title = &first_letters(&at_work) - &first_letters(&at_rest);
    let title = Some(title).filter(|title| !title.is_empty());
    if at_work.is_empty() {
        missing.push("the program was never seen at work: submit a prompt while it is watched");
    } else if mark.is_none() && title.is_none() {
        missing.push("no row and no title was there only while it was at work");
    }
    if frame.is_none() {
        missing.push("no row looks like an input field, so prompts cannot be confirmed");
    }
    let rules = File { name, command, last, frame, mark, title }.write();
    Some(Learned { rules, missing })
}

/// What the rule file is made of.
struct File<'a> {
    name: &'a str,
    command: &'a str,
    last: &'a Sample,
    frame: Option<char>,
    mark: Option<String>,
    title: Option<BTreeSet<char>>,
}

impl File<'_> {
    fn write(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        let Self { name, command, .. } = self;
        writeln!(out, "# Learned by looking at {command}. Check it, and correct it where it is wrong.")?;
        writeln!(out, "name = {name:?}\n\n[turns]\ncommands = [{command:?}]\nby_state = true")?;
        writeln!(out, "settle_ms = 500\nanswer_within_ms = 3000")?;
        if self.last.pastes {
            writeln!(out, "# It asked for bracketed paste.\nbrackets = true")?;
        }
        if let Some(sign) = self.frame {
            let sign = escaped(&sign.to_string());
            writeln!(out, "# The row of its input field, and the row that repeats a prompt.")?;
            writeln!(out, "frame = '^\\s*{sign}(?:\\s|$)'\necho = '^\\s*{sign} \\S'")?;
        }
        writeln!(out, "\n[[turns.state]]\nname = \"question\"\nstate = \"blocked\"\nlast_rows = 6")?;
        writeln!(
            out,
            "screen = ['(?i)\\[y/n\\]|\\(y/n\\)|\\(y\\)es.*\\(n\\)o|esc to cancel|enter to (?:select|confirm)']"
        )?;
        if let Some(title) = &self.title {
            let letters: String = title.iter().map(|c| escaped(&c.to_string())).collect();
            writeln!(out, "\n[[turns.state]]\nname = \"title at work\"\nstate = \"working\"")?;
            writeln!(out, "title = '^[{letters}]'")?;
        }
        if let Some(mark) = &self.mark {
            writeln!(out, "\n[[turns.state]]\nname = \"shown at work\"\nstate = \"working\"")?;
            writeln!(out, "screen = ['{mark}']")?;
        }
        writeln!(
            out,
            "\n[[turns.state]]\nname = \"the screen changes\"\nstate = \"working\"\nchanging_ms = 1200"
        )?;
        writeln!(out, "\n[[turns.state]]\nname = \"at rest\"\nstate = \"idle\"")?;
        match self.frame {
            Some(sign) => writeln!(out, "screen = ['^\\s*{}(?:\\s|$)']", escaped(&sign.to_string())),
            None => writeln!(out, "quiet_ms = 1500"),
        }
    }
}

/// The sign that the input field begins with: on the row of the cursor, or the lowest row that has
/// one.
fn frame_of(sample: &Sample) -> Option<char> {
    let sign = |row: &String| {
        let mut chars = row.trim_start().chars();
        let first = chars.next().filter(|c| PROMPTS.contains(*c))?;
        chars.next().is_none_or(char::is_whitespace).then_some(first)
    };
    let here = sample.rows.get(sample.cursor_row).and_then(sign);
    here.or_else(|| sample.rows.iter().rev().find_map(sign))
}

/// A pattern for a row that is there at work and never at rest.
fn busy_row(at_rest: &[&Sample], at_work: &[&Sample]) -> Option<String> {
    let idle: BTreeSet<String> = at_rest.iter().flat_map(|s| &s.rows).map(|row| shape(row)).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for sample in at_work {
        let rows: BTreeSet<String> = sample.rows.iter().map(|row| shape(row)).collect();
        for row in rows.into_iter().filter(|row| row.len() >= 4 && !idle.contains(row)) {
            *seen.entry(row).or_default() += 1;
        }
    }
    let stops = |row: &str| STOPS.iter().any(|word| row.to_lowercase().contains(word));
    // A row that says how to stop it tells most, then the one that was there most often.
    let often = seen.into_iter().filter(|(row, n)| n * 3 >= at_work.len() || stops(row));
    let best = often.max_by_key(|(row, n)| (stops(row), *n))?.0;
    let row = best.to_lowercase();
    let phrase = STOPS.iter().find_map(|word| row.find(word).map(|at| at + word.len()));
    if let Some(end) = phrase {
        let words: Vec<&str> = row[..end].split_whitespace().rev().take(3).collect();
        let words: Vec<&str> =
            words.into_iter().rev().map(|w| w.trim_matches(|c: char| !c.is_alphanumeric())).collect();
        return Some(format!("(?i){}", escaped(&words.join(" "))));
    }
    Some(format!("^\\s*{}", best.split('0').map(escaped).collect::<Vec<_>>().join("\\d+")))
}

/// A row without what changes from look to look: numbers are 0, and a turning sign is gone.
fn shape(row: &str) -> String {
    let row = row.trim();
    let row = row.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut out = String::new();
    for c in row.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('0') => {}
            true => out.push('0'),
            false => out.push(c),
        }
    }
    out.trim_end_matches(['.', '…', ' ']).to_owned()
}

/// The first characters of the titles, if these are signs.
fn first_letters(samples: &[&Sample]) -> BTreeSet<char> {
    let first = samples.iter().filter_map(|s| s.title.chars().next());
    first.filter(|c| !c.is_alphanumeric() && !c.is_control() && *c != '\'').collect()
}

/// A text as a pattern that fits in quotes of TOML.
fn escaped(text: &str) -> String {
    regex::escape(text).replace('\'', ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Agents;

    fn sample(rows: &[&str], title: &str, quiet_ms: u64) -> Sample {
        Sample {
            rows: rows.iter().map(|&row| row.to_owned()).collect(),
            cursor_row: rows.len() - 1,
            title: title.to_owned(),
            quiet: Duration::from_millis(quiet_ms),
            pastes: true,
        }
    }

    #[test]
    fn a_busy_row_a_title_and_an_input_field_are_found() {
        let rest = sample(&["mybot 0.3", "done in 4s", "❯ "], "○ mybot", 2000);
        let mut samples = vec![rest.clone(), sample(&["mybot 0.3", "done in 4s", "❯ hel"], "○ mybot", 10)];
        for (n, mark) in "⠋⠙⠹⠸⠼⠴".chars().enumerate() {
            let row = format!("{mark} Thinking ({n}s, esc to interrupt)");
            samples.push(sample(&["mybot 0.3", &row, "❯ "], "◐ mybot", 80));
        }
        samples.push(rest);
        let learned = learn("mybot", "mybot", &samples).expect("it was at rest");
        assert_eq!(learned.missing, [""; 0]);
        for part in ["(?i)esc to interrupt", "title = '^[◐]'", "frame = '^\\s*❯(?:\\s|$)'", "brackets = true"]
        {
            assert!(learned.rules.contains(part), "{part}\n{}", learned.rules);
        }
        let agents = Agents::new(&[("mybot".into(), learned.rules.clone())]).expect("a rule file");
        agents.rules("mybot").expect("sound").expect("there");
        assert_eq!(agents.for_command(&["mybot".to_owned()]), "mybot");
    }

    #[test]
    fn what_was_not_seen_is_said() {
        assert_eq!(learn("x", "x", &[sample(&["a"], "", 10)]), None);
        let learned = learn("x", "x", &[sample(&["it's"], "", 9000)]).expect("it was at rest");
        assert_eq!(learned.missing.len(), 2, "{learned:?}");
        let made = Agents::new(&[("x".into(), learned.rules)]).expect("a rule file").rules("x");
        made.expect("sound").expect("there");
    }
}
