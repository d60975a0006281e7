//! The longer mode: every fuzz target for a while, with `cargo fuzz`. The corpora grow from run to
//! run, begin with real files, and are kept small; a ledger counts what was executed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Real files for a target: what stands in front of each, and the end of their names.
const SEEDS: [(&str, &[u8], &str); 11] = [
    ("tape_formats", &[1], "docs/img/.cast"),
    ("tape_formats", &[2], "docs/img/.cast"),
    ("tape_cassette", &[], "cassettes/.json"),
    ("tape_cassette", &[], "cassettes/.jsonl"),
    ("tape_scenario", &[], "cassettes/.scenario.yaml"),
    ("term_feed", &[], "cassettes/output.raw"),
    ("term_dump", &[], "cassettes/output.raw"),
    ("term_scan", &[], "cassettes/output.raw"),
    ("scrub", &[], "cassettes/output.raw"),
    ("serve_msgpack", &[], "crates/proto/tests/goldens/broker/"),
    ("serve_wire", &[], "crates/proto/tests/goldens/tty/"),
];
/// Longer files would only slow the fuzzer down.
const SEED: u64 = 64 * 1024;
/// What was executed so far: a line for each target.
const LEDGER: &str = "fuzz/ledger.tsv";

/// Runs each target for so many seconds, or these targets alone.
pub(crate) fn run(seconds: &str, only: &[&str]) -> Result<()> {
    let seconds: u32 = seconds.parse().context("usage: cargo xtask fuzz [SECONDS [TARGET...]]")?;
    let root = crate::root()?;
    let mut names: Vec<String> = fs::read_dir(root.join("fuzz/fuzz_targets"))?
        .flatten()
        .filter_map(|e| e.path().file_stem()?.to_str().map(str::to_owned))
        .filter(|name| only.is_empty() || only.contains(&name.as_str()))
        .collect();
    names.sort();
    for name in names {
        println!("== fuzz {name}, {seconds} s");
        plant(&root, &name)?;
        let ran = fuzz(&root, &name, seconds)?;
        let found = ran.findings > 0;
        note(&root, &name, &ran)?;
        if found {
            bail!("{name} found something: see fuzz/artifacts/{name}");
        }
        // Inputs that reach nothing new are dropped.
        cargo_fuzz(&root, "cmin", &name, &[]).status().context("cargo fuzz cmin")?;
    }
    Ok(())
}

/// The parsers have no unsafe code, so the sanitizers would find nothing, at half the speed.
fn cargo_fuzz(root: &Path, what: &str, name: &str, args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(["fuzz", what, "--sanitizer", "none", name, "--"]).args(args);
    // The fuzzer's instrumentation is a nightly flag; this lets the stable compiler take it.
    command.env("RUSTC_BOOTSTRAP", "1").current_dir(root);
    command
}

/// Runs a target, and returns for how long, without the time to build it, how many inputs were
/// executed, and whether one was a finding.
fn fuzz(root: &Path, name: &str, seconds: u32) -> Result<Count> {
    let time = format!("-max_total_time={seconds}");
    let args = [time.as_str(), "-print_final_stats=1", "-rss_limit_mb=2048", "-timeout=10"];
    let output = cargo_fuzz(root, "run", name, &args).stderr(Stdio::piped()).output();
    let output = output.context("cargo-fuzz is needed: cargo install cargo-fuzz")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{said}");
    }
    let executed = said.lines().find_map(|l| l.strip_prefix("stat::number_of_executed_units:"));
    // "Done 4193890 runs in 26 second(s)"
    let done = said.lines().filter(|l| l.starts_with("Done ")).find_map(|l| l.split(" runs in ").nth(1));
    let number =
        |text: Option<&str>| text.and_then(|t| t.split_whitespace().next()?.parse().ok()).unwrap_or_default();
    Ok(Count {
        seconds: number(done),
        executions: number(executed),
        findings: (!output.status.success()).into(),
    })
}

/// Puts real files into a target's corpus.
fn plant(root: &Path, name: &str) -> Result<()> {
    let corpus = root.join("fuzz/corpus").join(name);
    fs::create_dir_all(&corpus)?;
    for (n, (_, front, files)) in SEEDS.iter().enumerate().filter(|(_, seed)| seed.0 == name) {
        let (folder, end) = files.rsplit_once('/').context("a folder and the end of names")?;
        let mut found = Vec::new();
        walk(&root.join(folder), end, &mut found)?;
        for (m, path) in found.iter().enumerate() {
            let seed = [front, &fs::read(path)?[..]].concat();
            fs::write(corpus.join(format!("seed-{n}-{m}")), seed)?;
        }
    }
    Ok(())
}

fn walk(folder: &Path, end: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let (path, meta) = (entry.path(), entry.metadata()?);
        if meta.is_dir() {
            walk(&path, end, found)?;
        } else if meta.len() <= SEED && path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    Ok(())
}

/// What a target has executed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Count {
    seconds: u64,
    executions: u64,
    findings: u64,
}

fn read_ledger(text: &str) -> Result<BTreeMap<String, Count>> {
    let mut ledger = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, seconds, executions, findings] = fields[..] else { bail!("{LEDGER}: {line:?}") };
        let count =
            Count { seconds: seconds.parse()?, executions: executions.parse()?, findings: findings.parse()? };
        ledger.insert(name.to_owned(), count);
    }
    Ok(ledger)
}

fn write_ledger(ledger: &BTreeMap<String, Count>) -> String {
    let line =
        |(name, c): (&String, &Count)| format!("{name}\t{}\t{}\t{}\n", c.seconds, c.executions, c.findings);
    ledger.iter().map(line).collect()
}

/// Adds a run to the ledger.
fn note(root: &Path, name: &str, ran: &Count) -> Result<()> {
    let path = root.join(LEDGER);
    let mut ledger = read_ledger(&fs::read_to_string(&path).unwrap_or_default())?;
    let count = ledger.entry(name.to_owned()).or_default();
    count.seconds += ran.seconds;
    count.executions += ran.executions;
    count.findings += ran.findings;
    Ok(fs::write(path, write_ledger(&ledger))?)
}

/// The table of what was executed, for the documentation.
pub(crate) fn table(root: &Path) -> Result<String> {
    let ledger = read_ledger(&fs::read_to_string(root.join(LEDGER)).context(LEDGER)?)?;
    let mut table = "\n| target | time | executions | findings |\n| --- | --- | --- | --- |\n".to_owned();
    let mut sum = Count::default();
    for (name, count) in &ledger {
        sum.seconds += count.seconds;
        sum.executions += count.executions;
        sum.findings += count.findings;
        writeln!(table, "{}", row(&format!("`{name}`"), count))?;
    }
    writeln!(table, "{}\n", row("all", &sum))?;
    Ok(table)
}

fn row(name: &str, count: &Count) -> String {
    let (hours, minutes) = (count.seconds / 3600, count.seconds / 60 % 60);
    let time = match (hours, minutes) {
        (0, 0) => format!("{} s", count.seconds),
        (0, _) => format!("{minutes} min"),
        _ => format!("{hours} h {minutes} min"),
    };
    let digits = count.executions.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap_or_default()).collect();
    format!("| {name} | {time} | {} | {} |", groups.join(","), count.findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_reads_as_it_was_written() {
        let text = "scrub\t3700\t1234567\t1\nterm_feed\t60\t12\t0\n";
        let ledger = read_ledger(text).expect("read");
        assert_eq!(write_ledger(&ledger), text);
        assert_eq!(row("scrub", &ledger["scrub"]), "| scrub | 1 h 1 min | 1,234,567 | 1 |");
        assert!(read_ledger("scrub 1 2").is_err());
    }
}
