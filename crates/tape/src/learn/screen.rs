//! Programs that draw their screen: the row of their input field, how they repeat a prompt, and
//! what is there only while they work.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{AT_REST, AT_WORK, Learned, Sample, escaped};

/// Looks at work in a row that count: a key that is echoed is no work.
const RUN: usize = 4;
/// Signs with which input fields begin.
const SIGNS: &str = ">❯›»➜λ▌:$%#*";
/// The sides of a box around a field.
const SIDES: [char; 4] = ['│', '┃', '║', '|'];
/// Lines above or below a field.
const LINES: &str = "─━═▀▄▔▁";
/// Signs of a line that are enough to know one.
const LINE: usize = 10;
/// Words of a row that says how to stop the program.
const STOPS: [&str; 4] = ["interrupt", "cancel", "stop", "abort"];
/// The shortest text by which the row that repeats it is found.
const TYPED: usize = 2;

/// Learns rules by which states begin and end turns.
pub(super) fn learn(head: &str, samples: &[Sample], rests: &[&Sample]) -> Learned {
    let at_rest: Vec<&Sample> = samples.iter().filter(|s| s.quiet >= AT_REST).collect();
    let runs = samples.chunk_by(|a, b| (a.quiet < AT_WORK) == (b.quiet < AT_WORK));
    let at_work: Vec<&Sample> =
        runs.filter(|run| run.len() >= RUN && run[0].quiet < AT_WORK).flatten().collect();
    let field = field_of(rests);
    let mark = busy_row(&at_rest, &at_work);
    let title = &first_letters(&at_work) - &first_letters(&at_rest);
    let title = Some(title).filter(|title| !title.is_empty());
    let typed = field.as_ref().map(|field| typed(field, samples)).unwrap_or_default();
    let echo = field.as_ref().and_then(|field| echo(field, &typed, rests));
    let mut missing = Vec::new();
    if at_work.is_empty() && typed.is_empty() {
        missing.push(
            "no prompt was submitted: type one while it is watched, and let the program answer".to_owned(),
        );
    } else if field.is_none() && mark.is_none() && title.is_none() {
        missing.push("no row and no title was there only while it was at work".to_owned());
    }
    let mut found = Vec::new();
    match &field {
        Some(field) => found.push(field.described()),
        None => missing.push(format!(
            "no prompt and no input field was found: a text in front of the cursor that comes back after \
             each answer, or a row, perhaps in a box, that begins with one of {}",
            SIGNS.chars().flat_map(|c| [c, ' ']).collect::<String>().trim_end()
        )),
    }
    found.extend(echo.as_ref().map(|echo| format!("rows that match {echo} repeat a prompt")));
    found.extend(title.as_ref().map(|title| {
        format!(
            "at work its title begins with {}",
            title.iter().map(char::to_string).collect::<Vec<_>>().join(" ")
        )
    }));
    found.extend(mark.as_ref().map(|mark| format!("at work a row matches {mark}")));
    if mark.is_none() && title.is_none() {
        found.push(
            "nothing was there only while it worked, so an answer counts as over when it is quiet".to_owned(),
        );
    }
    let last = rests.last().copied();
    let rules =
        File { head: head.to_owned(), pastes: last.is_some_and(|s| s.pastes), field, echo, mark, title }
            .write();
    Learned { rules, found, missing }
}

/// An input field.
struct Field {
    /// The sign in front of the text, if there is one.
    sign: Option<char>,
    /// The side of the box around it.
    side: Option<char>,
    /// What stands there while nothing was typed.
    hint: Option<String>,
    /// Whether there is a line above it.
    has_line: bool,
}

impl Field {
    /// Returns the text of a row behind its sign, if it is this field.
    fn text<'a>(&self, row: &'a str) -> Option<&'a str> {
        let (side, bare) = unboxed(row);
        if side != self.side {
            return None;
        }
        let text = match self.sign {
            Some(sign) => bare.strip_prefix(sign)?,
            None => bare,
        };
        text.is_empty()
            .then_some("")
            .or_else(|| text.starts_with(char::is_whitespace).then(|| text.trim()))
            .or(self.sign.is_none().then(|| text.trim()))
    }

    /// The pattern of its beginning.
    fn front(&self) -> String {
        let side = self.side.map(String::from).unwrap_or_default();
        match (self.sign, self.side) {
            (Some(sign), Some(_)) => format!("^[\\s{}]*{}", escaped(&side), escaped(&sign.to_string())),
            (Some(sign), None) => format!("^\\s*{}", escaped(&sign.to_string())),
            (None, _) => format!("^\\s*{}", escaped(&side)),
        }
    }

    /// The pattern of its row.
    fn pattern(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\\s+{}|", escaped(hint))).unwrap_or_default();
        format!("{}(?:{hint}\\s|$)", self.front())
    }

    fn described(&self) -> String {
        let boxed = if self.side.is_some() { " in a box" } else { "" };
        let hint = self.hint.as_ref().map(|hint| format!(", with the hint {hint:?}")).unwrap_or_default();
        match self.sign {
            Some(sign) => format!("its input field begins with {sign}{boxed}{hint}"),
            None => format!("its input field is a row{boxed}{hint}"),
        }
    }
}

/// A row without the sides of a box, and which those are.
fn unboxed(row: &str) -> (Option<char>, &str) {
    let row = row.trim();
    match row.chars().next().filter(|c| SIDES.contains(c)) {
        Some(side) => {
            let bare = row.trim_start_matches(side).trim_start();
            (Some(side), bare.strip_suffix(side).unwrap_or(bare).trim_end())
        }
        None => (None, row),
    }
}

fn is_line(row: &str) -> bool {
    row.chars().filter(|c| LINES.contains(*c)).count() >= LINE
}

/// Finds the input field at rest: a sign on the row of the cursor, or the lowest row that has one,
/// or else the row of the cursor in a box.
fn field_of(rests: &[&Sample]) -> Option<Field> {
    let last = rests.last()?;
    let signed = |y: &usize| {
        let (_, bare) = unboxed(last.rows.get(*y)?);
        let mut chars = bare.chars();
        let sign = chars.next().filter(|c| SIGNS.contains(*c))?;
        chars.next().is_none_or(char::is_whitespace).then_some((*y, Some(sign)))
    };
    let boxed = || {
        let (side, _) = unboxed(last.rows.get(last.cursor_row)?);
        side.map(|_| (last.cursor_row, None))
    };
    let below = || (0..last.rows.len()).rev().find_map(|y| signed(&y));
    let (y, sign) = signed(&last.cursor_row).or_else(below).or_else(boxed)?;
    let row = &last.rows[y];
    let has_line = y > 0 && is_line(&last.rows[y - 1]);
    let mut field = Field { sign, side: unboxed(row).0, hint: None, has_line };
    // The same text at each rest is none that was typed.
    let texts: Vec<&str> =
        rests.iter().filter_map(|s| s.rows.iter().rev().find_map(|row| field.text(row))).collect();
    let hint = texts.last().filter(|hint| {
        !hint.is_empty() && texts.len() > 1 && texts.iter().filter(|text| text == hint).count() > 1
    });
    field.hint = hint.map(|hint| (*hint).to_owned());
    Some(field)
}

/// Returns the texts that were typed into the field and left it.
fn typed(field: &Field, samples: &[Sample]) -> Vec<String> {
    let mut typed = Vec::new();
    let mut before = String::new();
    for sample in samples {
        let Some(text) = sample.rows.iter().rev().find_map(|row| field.text(row)) else { continue };
        let text = if field.hint.as_deref() == Some(text) { "" } else { text };
        if text.is_empty() && before.chars().count() >= TYPED {
            typed.push(std::mem::take(&mut before));
        }
        text.clone_into(&mut before);
    }
    typed
}

/// Returns a pattern for the row that repeats a prompt: by what stands in front of a text that was
/// typed, or else the sign of the field.
fn echo(field: &Field, typed: &[String], rests: &[&Sample]) -> Option<String> {
    let in_front = |text: &String| {
        let rows = rests.iter().flat_map(|sample| &sample.rows);
        let row = rows.map(|row| unboxed(row).1).find(|row| row.ends_with(text.as_str()))?;
        let front = row[..row.len() - text.len()].trim_end();
        (!front.is_empty()).then(|| format!("^\\s*{} +\\S", escaped(front)))
    };
    let by_sign = || field.sign.map(|_| format!("{} \\S", field.front()));
    typed.iter().find_map(in_front).or_else(by_sign)
}

/// What the rule file is made of.
struct File {
    head: String,
    pastes: bool,
    field: Option<Field>,
    echo: Option<String>,
    mark: Option<String>,
    title: Option<BTreeSet<char>>,
}

impl File {
    fn write(self) -> String {
        let mut out = self.head.clone();
        // Writing to a string does not fail.
        let _ = self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "by_state = true\nsettle_ms = 500\nanswer_within_ms = 3000")?;
        if self.pastes {
            writeln!(out, "# It asked for bracketed paste.\nbrackets = true")?;
        }
        if let Some(field) = &self.field {
            writeln!(out, "# The first row of its input field: the answer stands above it.")?;
            writeln!(out, "frame = '{}'", field.pattern())?;
            if field.has_line {
                writeln!(out, "# Lines around it.\nborder = '^\\s*[╭╰┌└┏┗]?[{LINES}]{{{LINE},}}'")?;
            }
        }
        if let Some(echo) = &self.echo {
            writeln!(out, "# The row that repeats a prompt, above the answer.\necho = '{echo}'")?;
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
        match &self.field {
            Some(field) => writeln!(out, "screen = ['{}']", field.pattern()),
            None => writeln!(out, "quiet_ms = 1500"),
        }
    }
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
    // Signs in front of the words may turn.
    Some(format!("^\\W*{}", escaped(&best)))
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
