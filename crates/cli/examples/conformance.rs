//! Runs recorded terminal cases through the model and writes `docs/conformance.md`:
//! `cargo run -p tapdeck-cli --example conformance -- DIR > docs/conformance.md`.
//!
//! `DIR/<suite>/<case>/` holds `in.bytes`, `size`, and either `expected.txt` with `cursor` or a
//! `script.json` of steps and checks; `DIR/CORE.txt` names the cases that must pass. Cases that
//! differ are listed with the reason that `crates/term/tests/differences.txt` gives; one without a
//! reason makes the program fail.

#![expect(clippy::print_stdout, reason = "it writes a document to its standard output")]

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tapdeck_term::{Settings, Size, Term};
use unicode_normalization::UnicodeNormalization as _;

const REASONS: &str = include_str!("../../term/tests/differences.txt");

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).context("which directory?")?;
    let core = fs::read_to_string(format!("{dir}/CORE.txt")).unwrap_or_default();
    let core: BTreeSet<&str> = core.split_whitespace().collect();
    let mut suites: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failed = Vec::new();
    let mut core_passed = 0;
    for suite in sorted(&dir)? {
        if !Path::new(&format!("{dir}/{suite}")).is_dir() {
            continue;
        }
        for case in sorted(&format!("{dir}/{suite}"))? {
            let path = format!("{dir}/{suite}/{case}");
            if !Path::new(&format!("{path}/in.bytes")).exists() {
                continue;
            }
            let name = format!("{suite}/{case}");
            let ok = run(&path).with_context(|| name.clone())?;
            let row = suites.entry(suite.clone()).or_default();
            row.0 += 1;
            row.1 += usize::from(ok);
            core_passed += usize::from(ok && core.contains(&*name));
            if !ok {
                failed.push(name);
            }
        }
    }
    report(&suites, core.len(), core_passed, &failed)
}

fn sorted(dir: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(dir)?
        .map(|e| Ok(e?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    Ok(names)
}

/// The reason for a difference: the line whose pattern, with `*` at its end, fits the name.
fn reason(name: &str) -> Option<&'static str> {
    REASONS.lines().filter(|l| !l.starts_with('#')).find_map(|l| {
        let (pattern, why) = l.split_once(": ")?;
        let fits = match pattern.strip_suffix('*') {
            Some(head) => name.starts_with(head),
            None => name == pattern,
        };
        fits.then_some(why)
    })
}

fn report(
    suites: &BTreeMap<String, (usize, usize)>,
    core: usize,
    passed: usize,
    failed: &[String],
) -> Result<()> {
    println!("# Conformance\n");
    println!(
        "The terminal model is checked with cases from the test suites of other terminals. Replies are not"
    );
    println!(
        "compared here. `cargo run -p tapdeck-cli --example conformance -- DIR > docs/conformance.md` makes"
    );
    println!("this page.\n");
    println!("| suite | cases | pass |\n| --- | --- | --- |");
    let (mut cases, mut ok) = (0, 0);
    for (name, (n, good)) in suites {
        println!("| {name} | {n} | {good} |");
        cases += n;
        ok += good;
    }
    println!("| all | {cases} | {ok} |");
    println!("| of which xterm and at least four others agree on | {core} | {passed} |\n");
    println!("## Differences\n");
    println!("Each difference is a choice.\n");
    println!("| reason | cases |\n| --- | --- |");
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in failed {
        let Some(why) = reason(name) else { bail!("{name} differs and no reason is written down") };
        by_reason.entry(why).or_default().push(name);
    }
    for (why, names) in by_reason {
        println!("| {why} | {} |", names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "));
    }
    if passed < core {
        bail!("{} cases that all agree on differ", core - passed);
    }
    Ok(())
}

fn run(path: &str) -> Result<bool> {
    let data = fs::read(format!("{path}/in.bytes"))?;
    let size = fs::read_to_string(format!("{path}/size"))?;
    let sides: Vec<u16> = size.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [cols, rows] = sides[..] else { bail!("no size") };
    let expected = fs::read_to_string(format!("{path}/expected.txt")).ok();
    let script: Vec<Value> = match fs::read_to_string(format!("{path}/script.json")) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => {
            let mut check = json!({ "expected.txt": true });
            if let Ok(cursor) = fs::read_to_string(format!("{path}/cursor")) {
                let place: Vec<u64> = cursor.split_whitespace().filter_map(|n| n.parse().ok()).collect();
                check["cursor"] = json!(place);
            }
            vec![json!(["feed", data.len()]), json!(["check", check])]
        }
    };
    let mut term = Term::new(Size::new(cols, rows), Settings::default());
    let mut at = 0;
    let mut ok = true;
    for step in &script {
        match step[0].as_str() {
            Some("feed") => {
                let to = number(&step[1]).max(at);
                term.feed(&data[at..to]);
                at = to;
            }
            Some("resize") => {
                term.resize(Size::new(number(&step[1]) as u16, number(&step[2]) as u16));
            }
            _ => ok &= check(&term, &step[1], expected.as_deref()),
        }
    }
    Ok(ok)
}

fn number(v: &Value) -> usize {
    v.as_u64().unwrap_or(0) as usize
}

fn trimmed(text: &str) -> String {
    text.trim_end().nfc().collect()
}

/// The text of some columns of a row, blanks as spaces.
fn span(term: &Term, row: usize, from: usize, to: usize) -> String {
    let Some(line) = term.row(row as u16) else { return String::new() };
    let mut cells = line.cells();
    cells.resize(usize::from(term.size().cols), Some(String::new()));
    let text: String = cells
        .iter()
        .take(to)
        .skip(from)
        .flatten()
        .map(|c| if c.is_empty() { " " } else { c.as_str() })
        .collect();
    trimmed(&text)
}

fn check(term: &Term, c: &Value, expected: Option<&str>) -> bool {
    let cols = usize::from(term.size().cols);
    let row = |y: usize| span(term, y, 0, cols);
    let mut ok = true;
    if c.get("expected.txt").is_some()
        && let Some(text) = expected
    {
        let want: Vec<String> = text.lines().map(trimmed).collect();
        let got: Vec<String> = (0..usize::from(term.size().rows)).map(row).collect();
        ok &= want == got;
    }
    for (y, want) in c["rows"].as_object().into_iter().flatten() {
        ok &= row(y.parse().unwrap_or(usize::MAX)) == want.as_str().unwrap_or("").nfc().collect::<String>();
    }
    if let Some([y, a, b, want]) = c["span"].as_array().map(Vec::as_slice) {
        ok &= span(term, number(y), number(a), number(b)) == trimmed(want.as_str().unwrap_or(""));
    }
    if let Some([y, x, want, width, ..]) = c["cell"].as_array().map(Vec::as_slice) {
        let (y, x) = (number(y), number(x));
        let cells = term.row(y as u16).map(|l| l.cells()).unwrap_or_default();
        let got = cells.get(x).cloned().flatten().filter(|t| t != " ").unwrap_or_default();
        let wide = matches!(cells.get(x + 1), Some(None));
        let want = trimmed(want.as_str().unwrap_or(""));
        ok &= got.nfc().collect::<String>() == want && (if wide { 2 } else { 1 }) == number(width);
    }
    let cursor = term.cursor();
    let col = |v: &Value| number(v).min(cols - 1) == usize::from(cursor.col);
    let line = |v: &Value| number(v) == usize::from(cursor.row);
    if let Some([y, x]) = c["cursor"].as_array().map(Vec::as_slice) {
        ok &= line(y) && col(x);
    }
    ok &= c.get("cursor_col").is_none_or(col);
    ok &= c.get("cursor_row").is_none_or(line);
    ok
}
