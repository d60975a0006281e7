//! The walks of ARCHITECTURE.md: each step is a function, each calls the next, and none is long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source;

/// The most steps of a walk, with those that all rows of its table share.
const STEPS: usize = 12;

/// A function: its file below `crates/`, without `.rs`, and its name.
type Step<'a> = (&'a str, &'a str);

/// Checks the page's walks. A walk is a row of a table, or a paragraph; what stands outside of the
/// table is part of each row's walk. A bold beginning starts another table.
pub(super) fn check(root: &Path, page: &str, faults: &mut Vec<String>) {
    let mut files = Files { root, read: BTreeMap::new() };
    let walks = page.split_once("\n## Walks\n").map_or("", |(_, behind)| behind);
    let walks = walks.split("\n## ").next().unwrap_or_default();
    for walk in walks.split("\n**") {
        let units = units(walk);
        let (rows, shared): (Vec<&String>, Vec<&String>) = units.iter().partition(|u| u.starts_with('|'));
        let shared: BTreeSet<Step<'_>> = shared.into_iter().flat_map(|unit| steps(unit)).collect();
        for row in rows {
            let all: BTreeSet<Step<'_>> = steps(row).into_iter().chain(shared.iter().copied()).collect();
            if all.len() > STEPS {
                let name = row.split('|').nth(1).unwrap_or_default().trim();
                faults.push(format!("ARCHITECTURE.md: {name}: {} steps, at most {STEPS}", all.len()));
            }
        }
        for unit in &units {
            for (file, function) in steps(unit) {
                if files.bodies(file, function).is_empty() {
                    faults.push(format!("ARCHITECTURE.md: {file}.rs has no function {function}"));
                }
            }
            for ((file, caller), (_, called)) in calls(unit) {
                if !files.bodies(file, caller).iter().any(|body| has_call(body, called)) {
                    faults.push(format!("ARCHITECTURE.md: {file}.rs::{caller} does not call {called}"));
                }
            }
        }
    }
}

/// The rows of tables, and the paragraphs and items of lists, each on one line.
fn units(text: &str) -> Vec<String> {
    let mut units = vec![String::new()];
    for line in text.lines() {
        let item = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if line.is_empty() || item || line.starts_with('|') {
            units.push(String::new());
        }
        if let Some(unit) = units.last_mut() {
            unit.push_str(line.trim());
            unit.push(' ');
        }
    }
    units
}

/// The steps of a unit: `FILE.rs::FUNCTION` in backticks.
fn steps(unit: &str) -> Vec<Step<'_>> {
    unit.split('`').skip(1).step_by(2).filter_map(|span| span.split_once(".rs::")).collect()
}

/// The calls that a unit claims: `a → b, c` says that `a` calls `b` and `c`.
fn calls(unit: &str) -> Vec<(Step<'_>, Step<'_>)> {
    let mut found = Vec::new();
    let (mut caller, mut before): (Option<Step<'_>>, Option<Step<'_>>) = (None, None);
    let parts: Vec<&str> = unit.split('`').collect();
    for pair in parts.chunks_exact(2) {
        let step = pair[1].split_once(".rs::");
        caller = match pair[0].trim() {
            "→" => before,
            "," => caller,
            _ => None,
        };
        if let (Some(caller), Some(step)) = (caller, step) {
            found.push((caller, step));
        }
        before = step;
    }
    found
}

/// Returns whether code calls a function of this name.
fn has_call(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let front = code[..at].chars().next_back();
        let behind = &code[at + name.len()..];
        !front.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && (behind.starts_with('(') || behind.starts_with("::<"))
    })
}

/// The sources that were read, as code without comments and strings.
struct Files<'a> {
    root: &'a Path,
    read: BTreeMap<String, String>,
}

impl Files<'_> {
    /// Returns the bodies of all functions of this name, without those of tests.
    fn bodies(&mut self, file: &str, function: &str) -> Vec<String> {
        let path = self.root.join("crates").join(format!("{file}.rs"));
        let code = self.read.entry(file.to_owned()).or_insert_with(|| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines = source::lines(&text).into_iter().filter(|line| !line.test);
            lines.map(|line| line.code).collect::<Vec<_>>().join("\n")
        });
        bodies(code, function)
    }
}

fn bodies(code: &str, function: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, head) in code.match_indices(&format!("fn {function}")) {
        let behind = &code[at + head.len()..];
        if !behind.starts_with(['(', '<']) {
            continue;
        }
        // A declaration without a body ends in a semicolon; those of array types are in brackets.
        let mut nested = 0;
        let begin = behind.find(|c| {
            nested += match c {
                '(' | '[' => 1,
                ')' | ']' => -1,
                _ => 0,
            };
            nested == 0 && (c == '{' || c == ';')
        });
        let Some(begin) = begin.filter(|at| behind[*at..].starts_with('{')) else { continue };
        let mut depth = 0;
        let end = behind[begin..].find(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        found.push(behind[begin..begin + end.unwrap_or(0)].to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_claims_calls() {
        let row = "| x | `a.rs::one` → `b.rs::two`, `c.rs::three` ⇒ `d.rs::four` → `e.rs::five` |";
        let claimed: Vec<_> = calls(row).into_iter().map(|((_, by), (_, of))| (by, of)).collect();
        assert_eq!(claimed, [("one", "two"), ("one", "three"), ("four", "five")]);
        assert_eq!(steps(row).len(), 5);
    }

    #[test]
    fn a_body_has_the_calls_of_its_function_only() {
        let code = "trait T { fn go(&self); }\nfn go(n: [u8; 2]) -> u8 { if n { self.near() } }\nfn far() {}\nfn go_on() {}";
        let found = bodies(code, "go");
        assert_eq!(found.len(), 1);
        assert!(has_call(&found[0], "near") && !has_call(&found[0], "far") && !has_call(&found[0], "ear"));
    }

    #[test]
    fn a_wrapped_item_is_one_unit() {
        let units = units("1. `a.rs::one` →\n   `b.rs::two`\n2. `a.rs::one`\n\n| `c.rs::three` |\n");
        let counts: Vec<usize> = units.iter().map(|unit| steps(unit).len()).collect();
        assert_eq!(counts.into_iter().filter(|n| *n > 0).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(calls(&units[1]).len(), 1);
    }
}
