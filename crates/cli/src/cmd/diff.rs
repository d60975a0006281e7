//! `tapdeck diff`: where the screens of two recordings part.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tapdeck::diff::{Compared, Comparison, Shown};
use tapdeck_cli::color::Color;
use tapdeck_core::check::{Look, Normaliser, Region};
use tapdeck_host::Source;
use tapdeck_term::char_width;

use crate::ending::{Ending, output_failed, print_json};
use crate::failure::{Failure, Result};
use crate::human;
use crate::keys::IdentityArgs;
use crate::parse;

/// The columns for output that is no terminal.
const WIDEST: usize = 160;
/// Narrower screens are shown below each other.
const NARROWEST: usize = 20;

/// Compare what two recordings show, and print the first screen that differs.
#[derive(Args)]
#[command(after_help = "\
Compares screens, not bytes or times: those that stood still for --settle, one after the other. The
recordings may have different formats. Prints the first difference side by side, or one below the other
if the terminal is too narrow. | marks the rows that differ.

Masks and rules are those of scenarios (see test). Rules: date, clock, duration, uuid, tmp, pid, spinner,
percent, counter, number, or one of your own.

The exit code is 0 if all screens are equal, and 1 if they differ.

Examples:
  tapdeck diff monday.ahr tuesday.ahr
  tapdeck diff --mask rows=24 --normalise clock,spinner a.ahr b.cast
  tapdeck diff --normalise '/build-[0-9]+/build-N/' a.ahr b.ahr
  tapdeck diff --json a.ahr b.ahr | jq .equal_screens")]
pub(crate) struct DiffArgs {
    /// The first recording, or `-` for standard input
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second recording
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Ignore a part of the screen, counted from 1: rows=1-2, cols=60-, or both with a comma
    #[arg(long, value_name = "AREA", value_parser = area)]
    mask: Vec<Region>,
    /// Make facts equal that change from run to run, by the names of rules or as /REGEX/TEXT/
    #[arg(long, visible_alias = "normalize", value_name = "RULE", value_parser = rules)]
    normalise: Vec<Rules>,
    /// How long a screen stands still to be compared
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse::duration)]
    settle: Duration,
    /// Compare colors and attributes, too
    #[arg(long)]
    style: bool,
    /// When to use colors
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The rules of one `--normalise`.
#[derive(Debug, Clone)]
struct Rules(Vec<Normaliser>);

/// An area such as `rows=1-2,cols=60-`.
fn area(text: &str) -> Result<Region, String> {
    let wrong =
        || "expected rows=FIRST-LAST, cols=FIRST-LAST, or both with a comma, counted from 1".to_owned();
    let mut region = Region::ALL;
    for part in text.split(',') {
        let (key, range) = part.split_once('=').ok_or_else(wrong)?;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first, last),
            None => (range, range),
        };
        let number = |text: &str, missing: u16| match text {
            "" => Ok(missing),
            text => text.parse::<u16>().ok().and_then(|n| n.checked_sub(1)).ok_or_else(wrong),
        };
        let (first, last) = (number(first, 0)?, number(last, u16::MAX)?);
        if first > last {
            return Err(wrong());
        }
        match key {
            "rows" => (region.top, region.bottom) = (first, last),
            "cols" => (region.left, region.right) = (first, last),
            _ => return Err(wrong()),
        }
    }
    match region.is_all() {
        true => Err("a mask over the whole screen leaves nothing to compare".to_owned()),
        false => Ok(region),
    }
}

/// Rules by their names, or one of the user's own between slashes.
fn rules(text: &str) -> Result<Rules, String> {
    if let Some(own) = text.strip_prefix('/') {
        let parts = own.strip_suffix('/').and_then(|own| own.rsplit_once('/'));
        let (pattern, with) = parts.ok_or("expected /REGEX/TEXT/")?;
        return Normaliser::new(text, pattern, with).map(|rule| Rules(vec![rule])).map_err(|e| e.to_string());
    }
    let rules = text.split(',').map(Normaliser::named).collect::<Result<Vec<_>, _>>();
    rules.map(Rules).map_err(|e| e.to_string())
}

pub(crate) fn run(args: &DiffArgs) -> Result {
    args.identity.load([args.a.as_path(), args.b.as_path()])?;
    if args.a.as_os_str() == "-" && args.b.as_os_str() == "-" {
        return Err(Failure::usage("only one of the recordings can be standard input"));
    }
    let (a, b) = (Source::find(&args.a, None, None)?, Source::find(&args.b, None, None)?);
    let look = Look {
        masks: args.mask.clone(),
        normalise: args.normalise.iter().flat_map(|rules| rules.0.clone()).collect(),
        ..Look::default()
    };
    let how = Comparison { look, settle: args.settle, styles: args.style };
    let found = how.compare(&a, &b)?;
    if args.json {
        print_json(&to_json(&found, args));
    } else {
        // The rows in it are printable already; the colors around them would be escaped.
        let text = to_text(&found, args);
        io::stdout().write_all(text.as_bytes()).unwrap_or_else(|e| output_failed(&e));
    }
    Ok(Ending::of_check(found.difference.is_none()))
}

fn to_json(found: &Compared, args: &DiffArgs) -> Value {
    let side = |path: &PathBuf, shown: &Option<Shown>| {
        let mut value = json!({ "file": path.to_string_lossy(), "screen": null });
        if let Some(shown) = shown {
            value["screen"] = screen_json(shown);
        }
        value
    };
    let difference = found.difference.as_ref().map(|(a, b)| {
        let rows = changed(a.as_ref(), b.as_ref()).into_iter().map(|row| row + 1);
        json!({ "a": side(&args.a, a), "b": side(&args.b, b), "changed_rows": rows.collect::<Vec<_>>() })
    });
    json!({ "equal": difference.is_none(), "equal_screens": found.equal, "difference": difference })
}

/// A screen as JSON.
pub(super) fn screen_json(shown: &Shown) -> Value {
    json!({
        "time_ms": shown.time.as_millis(),
        "turn": shown.turn,
        "cols": shown.size.cols,
        "rows": shown.size.rows,
        "title": shown.title,
        "text": shown.rows,
    })
}

/// The rows that differ, counted from 0; all of one screen if the other is missing.
pub(super) fn changed(a: Option<&Shown>, b: Option<&Shown>) -> Vec<usize> {
    let rows = |shown: Option<&Shown>| shown.map_or(0, |shown| shown.rows.len());
    let differs = |row: &usize| match (a, b) {
        (Some(a), Some(b)) => a.differs_in(b, *row),
        _ => true,
    };
    (0..rows(a).max(rows(b))).filter(differs).collect()
}

fn to_text(found: &Compared, args: &DiffArgs) -> String {
    let equal = human::count(found.equal, "screen");
    let Some((a, b)) = &found.difference else {
        return format!("no difference: {equal} equal\n");
    };
    let names = [&args.a, &args.b].map(|path| human::printable(&path.to_string_lossy()));
    let screens = side_by_side([&names[0], &names[1]], a.as_ref(), b.as_ref(), args.color.is_on());
    format!("first difference after {equal} equal\n{screens}")
}

/// Two screens side by side, or one below the other if the terminal is too narrow. | marks the rows
/// that differ.
pub(super) fn side_by_side(names: [&str; 2], a: Option<&Shown>, b: Option<&Shown>, colours: bool) -> String {
    let head = |name: &str, shown: Option<&Shown>| match shown {
        None => format!("{name}: no more screens"),
        Some(shown) => {
            let turn = shown.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
            format!("{name} at {}{turn}, {}", human::duration(shown.time.since_start()), shown.size)
        }
    };
    let heads = [head(names[0], a), head(names[1], b)];
    let mut text = String::new();
    let marked = changed(a, b);
    let rows = |shown: Option<&Shown>| shown.map(|s| s.rows.clone()).unwrap_or_default();
    let (a, b) = (rows(a), rows(b));
    // What is blank at the bottom of both is not shown.
    let used = |rows: &[String]| rows.iter().rposition(|row| !row.is_empty()).map_or(0, |y| y + 1);
    let last = marked.last().map_or(0, |y| y + 1);
    let shown_rows = used(&a).max(used(&b)).max(last.min(a.len().min(b.len())));
    let width = tapdeck_host::terminal_size().map(|size| usize::from(size.cols)).filter(|cols| *cols > 0);
    let width = width.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok()).unwrap_or(WIDEST);
    let column = (width.saturating_sub(3)) / 2;
    let widest = a.iter().chain(&b).map(|row| text_width(row)).max().unwrap_or(0).max(NARROWEST);
    let paint = |text: String, code: &str, on: bool| match colours && on {
        true => format!("\x1b[{code}m{text}\x1b[m"),
        false => text,
    };
    let row = |rows: &[String], y: usize| human::printable(rows.get(y).map_or("", String::as_str));
    // Writing to a string cannot fail.
    if widest <= column {
        let column = column.min(widest.max(heads.iter().map(|head| text_width(head)).max().unwrap_or(0)));
        let _ = writeln!(text, "{}   {}", padded(&heads[0], column), fitted(&heads[1], column));
        for y in 0..shown_rows {
            let is_marked = marked.contains(&y);
            let left = paint(padded(&row(&a, y), column), "31", is_marked);
            let right = paint(row(&b, y), "32", is_marked);
            let line = format!("{left} {} {right}", if is_marked { '|' } else { ' ' });
            let _ = writeln!(text, "{}", line.trim_end());
        }
    } else {
        for (head, rows, code) in [(&heads[0], &a, "31"), (&heads[1], &b, "32")] {
            let _ = writeln!(text, "{head}");
            for y in 0..shown_rows.min(rows.len()) {
                let is_marked = marked.contains(&y);
                let shown = paint(fitted(&row(rows, y), width.saturating_sub(2)), code, is_marked);
                let line = format!("{} {shown}", if is_marked { '|' } else { ' ' });
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
    }
    text
}

fn text_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// A text cut to a width.
fn fitted(text: &str, width: usize) -> String {
    let mut left = width;
    let fits = |c: &char| {
        let fits = char_width(*c) <= left;
        left = left.saturating_sub(char_width(*c));
        fits
    };
    text.chars().take_while(fits).collect()
}

/// A text cut or filled to a width.
fn padded(text: &str, width: usize) -> String {
    let mut text = fitted(text, width);
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(text_width(&text))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas() {
        let region = |top, bottom, left, right| Ok(Region { top, bottom, left, right });
        assert_eq!(area("rows=24"), region(23, 23, 0, u16::MAX));
        assert_eq!(area("rows=1-2,cols=60-"), region(0, 1, 59, u16::MAX));
        assert_eq!(area("cols=-3"), region(0, u16::MAX, 0, 2));
        for bad in ["", "rows", "rows=0", "rows=3-2", "cols=x", "rows=1-", "row=1"] {
            assert!(area(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rules_by_name_and_of_ones_own() {
        assert_eq!(rules("clock,spinner").expect("rules").0.len(), 2);
        assert_eq!(rules("/a+/b/").expect("a rule").0.len(), 1);
        assert_eq!(rules("/a/b/c/").expect("the text has no slash").0.len(), 1);
        for bad in ["moon", "clock,moon", "/a", "/a/", "/(/x/"] {
            assert!(rules(bad).is_err(), "{bad}");
        }
    }
}
