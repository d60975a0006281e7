//! The rules of the house that no lint knows: which crate may use which, what each must not own,
//! how long files are, how comments and the manual are written, where links lead, and whether the
//! walks of ARCHITECTURE.md are true.

mod markdown;
mod source;
mod walks;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

#[cfg(test)]
pub(crate) use markdown::links;
use source::Line;

/// The crates in their one order: each may use only those before it.
const ORDER: [&str; 9] = ["term", "core", "proto", "tape", "raster", "host", "serve", "tapdeck", "cli"];

/// What must not appear in a crate's sources, with the reason.
const FORBIDDEN: [(&str, &[&str], &str); 8] = [
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
    (
        "raster",
        &["std::net", "std::thread", "std::process", "std::time::Instant", "tapdeck_core", "tapdeck_tape"],
        "raster turns a grid into pixels, and knows no session",
    ),
    ("host", &["encoding_rs"], "text is decoded at the edges, by core"),
    (
        "serve",
        &["Term::new", "Gate::new", "Stick::new", "Command::new", "libc::"],
        "serve reaches a session through host: it has no grid, no gate and no process of its own",
    ),
    ("cli", &["libc::"], "the command reaches the system through host"),
];

/// The one place that changes files for good, and the calls that nothing else makes: a power cut is
/// simulated there.
const DISK: &str = "crates/host/src/disk/";
const DURABLE: [&str; 8] = [
    "fs::rename",
    "fs::hard_link",
    "sync_all()",
    "sync_data()",
    ".set_len(",
    "linkat(",
    "renameat",
    "fdatasync(",
];

/// The library crates. Their messages name facts; which flag or command helps, `cli` says.
const LIBRARIES: [&str; 8] = ["term", "core", "proto", "tape", "raster", "host", "serve", "tapdeck"];

/// Files of the libraries with such words in their data: flags of other programs, and the head of
/// what a cassette's id is made of.
const DATA: [&str; 9] = [
    "crates/core/src/scrub/table.rs",
    "crates/core/src/check/normalise.rs",
    "crates/tape/src/cassette/manifest.rs",
    "crates/tapdeck/src/squad/worktree.rs",
    "crates/tapdeck/src/trees/git.rs",
    "crates/tapdeck/src/trees/repository.rs",
    "crates/tapdeck/src/trees/restore.rs",
    "crates/tapdeck/src/trees/scratch.rs",
    "crates/tapdeck/src/trees/snapshot.rs",
];

/// Files past this are reported; past the second they need a reason in their head.
const LONG: usize = 600;
const TOO_LONG: usize = 1000;
const REASON: &str = "Longer than a thousand lines because";

/// The widest line of comment.
const WIDTH: usize = 100;

/// Words that hide the actor of a sentence: a comment says user, client, program, recorder.
const VAGUE: [&str; 3] = ["whoever", "somebody", "nobody"];

pub(crate) fn run() -> Result<()> {
    let root = crate::root()?;
    let mut faults = Vec::new();
    let crates = crates(&root)?;
    for krate in &crates {
        check_order(&root, krate, &mut faults)?;
    }
    for named in ORDER.into_iter().chain(FORBIDDEN.map(|(krate, ..)| krate)) {
        if !crates.iter().any(|krate| krate == named) {
            faults.push(format!("xtask/src/tidy: there is no crate crates/{named}"));
        }
    }
    walks::check(&root, &fs::read_to_string(root.join("ARCHITECTURE.md"))?, &mut faults);
    markdown::check(&root, &mut faults)?;
    check_named_tests(&root, &fs::read_to_string(root.join("SECURITY.md"))?, &mut faults)?;
    let commands = commands(&root)?;
    let mut sizes = Vec::new();
    for (name, text) in texts(&root)? {
        let lines = source::lines(&text);
        check_words(&name, &lines, &mut faults);
        check_durable(&name, &lines, &mut faults);
        check_messages(&name, &lines, &commands, &mut faults);
        check_comments(&name, &lines, &mut faults);
        let length = text.lines().count();
        if length > TOO_LONG && !text.contains(REASON) {
            faults.push(format!("{name}: over {TOO_LONG} lines and no reason given"));
        }
        sizes.push((length, name));
    }
    for (name, text) in files(&root, &root, &["js", "mjs", "toml"])? {
        check_other_comments(&name, &text, &mut faults);
    }
    report_sizes(&mut sizes);
    for fault in &faults {
        println!("   {fault}");
    }
    if !faults.is_empty() {
        bail!("tidy found {} faults", faults.len());
    }
    Ok(())
}

/// Checks that the tests exist that SECURITY.md names, as `module::name`.
fn check_named_tests(root: &Path, page: &str, faults: &mut Vec<String>) -> Result<()> {
    let texts = texts(root)?;
    for (module, test) in page.split('`').skip(1).step_by(2).filter_map(|code| code.rsplit_once("::")) {
        let file = module.rsplit("::").next().unwrap_or_default();
        let there = texts.iter().any(|(name, text)| {
            name.split(['/', '.']).any(|part| part == file) && text.contains(&format!("fn {test}("))
        });
        if !there {
            faults.push(format!("SECURITY.md: there is no test {module}::{test}"));
        }
    }
    Ok(())
}

fn crates(root: &Path) -> Result<Vec<String>> {
    let folders = fs::read_dir(root.join("crates"))?.flatten();
    let names = folders.filter(|e| e.path().join("Cargo.toml").exists());
    names.map(|e| e.file_name().into_string().ok().context("a crate's name is text")).collect()
}

/// The subcommands: each is a file or a folder under `cmd/`.
fn commands(root: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(root.join("crates/cli/src/cmd"))?.flatten();
    let names = entries.filter_map(|e| Some(e.path().file_stem()?.to_str()?.replace('_', "-")));
    Ok(names.filter(|name| name != "mod").collect())
}

fn check_order(root: &Path, krate: &str, faults: &mut Vec<String>) -> Result<()> {
    let Some(place) = ORDER.iter().position(|c| *c == krate) else {
        faults.push(format!("crates/{krate} has no place in the order of crates"));
        return Ok(());
    };
    let manifest = fs::read_to_string(root.join("crates").join(krate).join("Cargo.toml"))?;
    for used in uses(&manifest) {
        if !ORDER[..place].contains(&used) {
            faults.push(format!("crates/{krate} must not use {used}: it comes later in the order"));
        }
    }
    Ok(())
}

/// The crates of the workspace among a manifest's dependencies, by folder.
fn uses(manifest: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            within = line.ends_with("dependencies]");
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        // What tests need of their machine is no part of the product.
        let ours = within && name != "tapdeck-needs";
        let folder = if name == "tapdeck" { Some(name) } else { name.strip_prefix("tapdeck-") };
        folder.filter(|_| ours)
    })
}

/// Reports words that a crate must not use. Comments and tests may.
fn check_words(name: &str, lines: &[Line], faults: &mut Vec<String>) {
    for (krate, words, reason) in FORBIDDEN {
        let own = name.strip_prefix(&format!("crates/{krate}/src/"));
        if own.is_none_or(is_test) {
            continue;
        }
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| !line.test) {
            for word in words.iter().filter(|word| line.code.contains(*word)) {
                faults.push(format!("{name}:{}: {word}: {reason}", n + 1));
            }
        }
    }
}

/// Reports changes to files that go past the disk module. Those of tests may.
fn check_durable(name: &str, lines: &[Line], faults: &mut Vec<String>) {
    let source = name.starts_with("crates/") && name.contains("/src/");
    if !source || is_test(name) || name.starts_with(DISK) {
        return;
    }
    for (n, line) in lines.iter().enumerate().filter(|(_, line)| !line.test) {
        for call in DURABLE.iter().filter(|call| line.code.contains(*call)) {
            faults.push(format!("{name}:{}: {call}: only {DISK} does that, see there", n + 1));
        }
    }
}

/// Reports strings of the libraries that name a flag or a subcommand. Those of tests may.
fn check_messages(name: &str, lines: &[Line], commands: &[String], faults: &mut Vec<String>) {
    let library = |krate: &&str| name.starts_with(&format!("crates/{krate}/src/"));
    if !LIBRARIES.iter().any(library) || is_test(name) || DATA.contains(&name) {
        return;
    }
    for (n, line) in lines.iter().enumerate().filter(|(_, line)| !line.test) {
        if let Some(word) = command_line(&line.text, commands) {
            faults.push(format!(
                "{name}:{}: {word}: the library names the fact, cli/src/failure.rs the flag or command",
                n + 1
            ));
        }
    }
}

/// The first flag or subcommand of ours in a text.
fn command_line(text: &str, commands: &[String]) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut words = text.split(|c| !plain(c)).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let flag =
            word.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        if flag {
            return Some(word.to_owned());
        }
        if word == "tapdeck"
            && let Some(next) = words.peek()
            && commands.iter().any(|command| command == next)
            && text.contains(&format!("tapdeck {next}"))
        {
            return Some(format!("tapdeck {next}"));
        }
    }
    None
}

/// Whether a file is part of a crate's tests.
fn is_test(name: &str) -> bool {
    name.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Reports comments that are too wide or vague.
fn check_comments(name: &str, lines: &[Line], faults: &mut Vec<String>) {
    for (n, line) in lines.iter().enumerate() {
        if is_wide(line) {
            faults.push(format!("{name}:{}: a comment of {} columns: wrap it at {WIDTH}", n + 1, line.width));
        }
        if is_vague(&line.comment) {
            let words = VAGUE.join(", ");
            faults.push(format!("{name}:{}: a comment with one of {words}: name the actor", n + 1));
        }
    }
}

/// Reports comments of scripts and settings that are too wide or vague. A comment is a line of its
/// own there: what looks like one behind code may be part of a text.
fn check_other_comments(name: &str, text: &str, faults: &mut Vec<String>) {
    let mark = if name.ends_with(".toml") { "#" } else { "//" };
    let line = |line: &str| {
        let (comment, code) = match line.trim_start().starts_with(mark) {
            true => (line.to_owned(), String::new()),
            false => (String::new(), line.to_owned()),
        };
        Line { code, comment, width: line.chars().count(), ..Line::default() }
    };
    check_comments(name, &text.lines().map(line).collect::<Vec<_>>(), faults);
}

fn is_wide(line: &Line) -> bool {
    line.is_comment() && line.width > WIDTH
}

fn is_vague(comment: &str) -> bool {
    let mut words = comment.split(|c: char| !c.is_alphabetic());
    words.any(|word| VAGUE.iter().any(|vague| word.eq_ignore_ascii_case(vague)))
}

/// The sources of the project, by name.
fn texts(root: &Path) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for folder in ["crates", "bench", "xtask", "fuzz", "examples"] {
        all.extend(files(root, &root.join(folder), &["rs"])?);
    }
    Ok(all)
}

/// The files below a folder with one of these endings, by name. Cassettes are evidence, which stays
/// as it was recorded; links lead to files that are seen elsewhere.
fn files(root: &Path, folder: &Path, endings: &[&str]) -> Result<Vec<(String, String)>> {
    const NOT_OURS: [&str; 3] = ["target", "node_modules", "cassettes"];
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&&*name) {
                open.push(path);
            } else if kind.is_file() && endings.iter().any(|end| path.extension().is_some_and(|e| e == *end))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    let named = |file: PathBuf| {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        Ok((name, fs::read_to_string(&file)?))
    };
    found.into_iter().map(named).collect()
}

fn report_sizes(sizes: &mut [(usize, String)]) {
    sizes.sort();
    let total: usize = sizes.iter().map(|(n, _)| n).sum();
    let median = sizes.get(sizes.len() / 2).map_or(0, |(n, _)| *n);
    println!("   {} files, {total} lines, median {median}", sizes.len());
    for (lines, file) in sizes.iter().rev().filter(|(n, _)| *n > LONG) {
        println!("   {lines:>5} {file}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_what_it_uses() {
        let manifest = "[package]\nname = \"tapdeck-x\"\ntapdeck-no = 1\n[dependencies]\ntapdeck.workspace = true\n\
                        tapdeck-term = { path = \"x\" }\nserde = \"1\"\n[dev-dependencies]\ntapdeck-needs.workspace = true\n";
        assert_eq!(uses(manifest).collect::<Vec<_>>(), ["tapdeck", "term"]);
    }

    #[test]
    fn code_behind_a_test_module_is_checked() {
        let text = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nuse std::net;\n// std::time\n";
        let mut faults = Vec::new();
        check_words("crates/term/src/lib.rs", &source::lines(text), &mut faults);
        assert_eq!(faults, ["crates/term/src/lib.rs:5: std::net: term is a pure function of bytes"]);
    }

    #[test]
    fn files_are_changed_by_the_disk_module() {
        let faults = |name: &str, text: &str| {
            let mut faults = Vec::new();
            check_durable(name, &source::lines(text), &mut faults);
            faults.len()
        };
        let text =
            "fs::rename(a, b);\n// fs::rename\nfile.sync_data()?;\n#[cfg(test)]\nfn t() { f.set_len(0); }\n";
        assert_eq!(faults("crates/serve/src/tokens.rs", text), 2);
        assert_eq!(faults("crates/host/src/disk/mod.rs", text), 0);
        assert_eq!(faults("crates/host/tests/launch.rs", text), 0);
    }

    #[test]
    fn library_messages_name_no_flags_and_commands() {
        let commands = ["ls".to_owned(), "run".to_owned()];
        let text = "f(\"see tapdeck ls\");\n// --flag\nf(\"use --size=1\");\nf(\"a tapdeck recording --\");\n\
                    #[cfg(test)]\nfn t() { f(\"--flag\"); }\n";
        let found = |name: &str| {
            let mut faults = Vec::new();
            check_messages(name, &source::lines(text), &commands, &mut faults);
            faults.iter().filter_map(|fault| fault.rsplit_once(": the")).map(|(f, _)| f.to_owned()).collect()
        };
        let named: Vec<String> = found("crates/host/src/lib.rs");
        assert_eq!(named, ["crates/host/src/lib.rs:1: tapdeck ls", "crates/host/src/lib.rs:3: --size"]);
        for other in ["crates/cli/src/main.rs", "crates/host/src/x/tests.rs", DATA[0]] {
            assert_eq!(found(other), Vec::<String>::new());
        }
    }

    #[test]
    fn comments_of_scripts_and_settings_are_checked() {
        let wide = "x".repeat(WIDTH);
        let mut faults = Vec::new();
        check_other_comments("a.js", &format!("  // nobody\nf(\"// {wide}\");\n// {wide}\n"), &mut faults);
        check_other_comments("a.toml", &format!("a = \"{wide}\"\n# {wide}\n// nobody\n"), &mut faults);
        let places: Vec<_> = faults.iter().filter_map(|fault| fault.split(' ').next()).collect();
        assert_eq!(places, ["a.js:1:", "a.js:3:", "a.toml:2:"]);
    }

    #[test]
    fn comments_are_narrow_and_name_the_actor() {
        let text = "// Whoever reads\nlet nobody = 1;\nf(); // nobody's\n// somebodyelse\n";
        let text = format!("{text}// {}\n", "x".repeat(WIDTH));
        let mut faults = Vec::new();
        check_comments("a.rs", &source::lines(&text), &mut faults);
        let places: Vec<_> = faults.iter().filter_map(|fault| fault.split(' ').next()).collect();
        assert_eq!(places, ["a.rs:1:", "a.rs:3:", "a.rs:5:"]);
    }
}
