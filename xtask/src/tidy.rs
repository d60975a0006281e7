//! The rules of the house: which crate may use which, what each must not own, and how large files have grown.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The crates in their one order: each may use only those before it.
const ORDER: [&str; 8] = ["term", "core", "proto", "tape", "host", "serve", "tapdeck", "cli"];

/// What must not appear in a crate's sources, with the reason.
const FORBIDDEN: [(&str, &[&str], &str); 6] = [
    (
        "term",
        &["std::fs", "std::net", "std::thread", "std::process", "std::time", "serde"],
        "term is a pure function of bytes",
    ),
    (
        "core",
        &["std::fs", "std::net", "std::thread", "std::process", "std::time", "serde", "mpsc"],
        "core has no I/O, no clock, no threads",
    ),
    (
        "proto",
        &["std::fs", "std::net", "std::thread", "std::process"],
        "proto turns messages into bytes and back, without I/O",
    ),
    (
        "tape",
        &["std::net", "std::process", "Instant::now", "SystemTime::now"],
        "tape turns events into bytes and back, nothing more",
    ),
    ("host", &["encoding_rs"], "text is decoded at the edges, by core"),
    ("cli", &["libc::"], "the command reaches the system through host"),
];

/// Files past this are reported; past the second they need a reason in their head.
const LONG: usize = 600;
const TOO_LONG: usize = 1000;
const REASON: &str = "Longer than a thousand lines because";

pub(crate) fn run() -> Result<()> {
    let root = crate::root()?;
    let mut faults = Vec::new();
    for krate in crates(&root)? {
        check_order(&root, &krate, &mut faults)?;
    }
    for (krate, words, reason) in FORBIDDEN {
        for file in sources(&root.join("crates").join(krate).join("src"))? {
            check_words(&file, words, reason, &mut faults)?;
        }
    }
    let mut sizes = Vec::new();
    for folder in ["crates", "bench", "xtask", "fuzz"] {
        for file in sources(&root.join(folder))? {
            let text = fs::read_to_string(&file)?;
            sizes.push((text.lines().count(), file.clone()));
            if text.lines().count() > TOO_LONG && !text.contains(REASON) {
                faults.push(format!("{}: over {TOO_LONG} lines and no reason given", file.display()));
            }
        }
    }
    report_sizes(&root, &mut sizes);
    for fault in &faults {
        println!("   {fault}");
    }
    if !faults.is_empty() {
        bail!("tidy found {} faults", faults.len());
    }
    Ok(())
}

fn crates(root: &Path) -> Result<Vec<String>> {
    let folders = fs::read_dir(root.join("crates"))?.flatten();
    let names = folders.filter(|e| e.path().join("Cargo.toml").exists());
    names.map(|e| e.file_name().into_string().ok().context("a crate's name is text")).collect()
}

fn check_order(root: &Path, krate: &str, faults: &mut Vec<String>) -> Result<()> {
    let Some(place) = ORDER.iter().position(|c| *c == krate) else {
        faults.push(format!("crates/{krate} has no place in the order of crates"));
        return Ok(());
    };
    let manifest = fs::read_to_string(root.join("crates").join(krate).join("Cargo.toml"))?;
    for line in manifest.lines() {
        let Some(rest) = line.strip_prefix("tapdeck-") else { continue };
        let used = rest.split(['.', ' ', '=']).next().unwrap_or_default();
        let allowed = ORDER[..place].contains(&used);
        if !allowed {
            faults.push(format!("crates/{krate} must not use tapdeck-{used}: it comes later in the order"));
        }
    }
    Ok(())
}

fn check_words(file: &Path, words: &[&str], reason: &str, faults: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(file)?;
    // Tests may do what they need.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    for (n, line) in code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for word in words {
            if line.contains(word) {
                faults.push(format!("{}:{}: {word}: {reason}", file.display(), n + 1));
            }
        }
    }
    Ok(())
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if !folder.is_dir() || folder.ends_with("target") {
            continue;
        }
        for entry in fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn report_sizes(root: &Path, sizes: &mut [(usize, PathBuf)]) {
    sizes.sort();
    let total: usize = sizes.iter().map(|(n, _)| n).sum();
    let median = sizes.get(sizes.len() / 2).map_or(0, |(n, _)| *n);
    println!("   {} files, {total} lines, median {median}", sizes.len());
    for (lines, file) in sizes.iter().rev().filter(|(n, _)| *n > LONG) {
        println!("   {lines:>5} {}", file.strip_prefix(root).unwrap_or(file).display());
    }
}
