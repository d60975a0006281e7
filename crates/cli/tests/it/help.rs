//! The first words of the command: help, version, completions and the tour.

use std::process::{Output, Stdio};

use crate::support::{Home, Seat, TAPDECK};

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("text")
}

#[test]
fn without_arguments_it_says_what_to_try() {
    let home = Home::new();
    let out = home.run::<&str>([]);
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("Three things to try:\n  tapdeck tour"), "{said}");
    assert!(said.lines().count() < 12, "{said}");
}

#[test]
fn the_version_names_the_features() {
    let home = Home::new();
    let long = text(&home.run(["--version"]).stdout);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines.len(), 2, "{long}");
    assert!(lines[0].starts_with(concat!("tapdeck ", env!("CARGO_PKG_VERSION"))), "{long}");
    assert!(lines[1].starts_with("features: "), "{long}");
    assert_eq!(text(&home.run(["-V"]).stdout), concat!("tapdeck ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// The terminal decides how wide help is, or `COLUMNS` where there is none.
#[test]
fn help_is_as_wide_as_the_terminal() {
    let home = Home::new();
    for (args, least) in [(["rec", "-h"], 20), (["rec", "--help"], 80), (["help", "wait"], 30)] {
        let out = home.tapdeck(args).env("COLUMNS", "40").stdin(Stdio::null()).output().expect("it runs");
        let help = text(&out.stdout);
        assert_eq!(out.status.code(), Some(0), "{help}");
        assert!(help.lines().count() >= least, "{args:?}: {help}");
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 40).collect();
        assert!(wide.is_empty(), "{args:?}: {wide:#?}");
    }
    let mut seat = Seat::with_size(home.tapdeck(["play", "-h"]), 50, 60);
    seat.wait_text("Usage: tapdeck play");
    assert!(seat.end().success());
    let usage = seat.screen();
    assert!(usage.lines().all(|line| line.chars().count() <= 50) && usage.contains("Examples:"), "{usage}");
}

/// Asks as bash does for what may stand after these words; the last is being typed.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let mut ask = home.tapdeck(["--", "tapdeck"]);
    ask.args(words).env("TAPDECK_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    ask.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let Output { status, stdout, stderr } = ask.stdin(Stdio::null()).output().expect("it runs");
    assert!(status.success(), "{}", text(&stderr));
    text(&stdout).lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_sessions_files_and_names() {
    let home = Home::new();
    let has = |words: &[&str], wanted: &str| {
        let all = completed(&home, words);
        assert!(all.iter().any(|word| word == wanted), "{words:?}: no {wanted} in {all:?}");
    };
    std::fs::write(home.path("demo.ahr"), "").expect("written");
    std::fs::write(home.path("notes.txt"), "").expect("written");
    std::fs::write(home.path("demo.scenario.yaml"), "").expect("written");
    let started = home.run(["run", "-d", "--name", "kitchen", "--", "cat"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    has(&["atta"], "attach");
    has(&["attach", "ki"], "kitchen");
    has(&["view", ""], "kitchen");
    has(&["view", ""], "demo.ahr");
    has(&["play", ""], "demo.ahr");
    has(&["test", ""], "demo.scenario.yaml");
    has(&["test", "--only", ""], "demo");
    has(&["send", "ki"], "kitchen");
    has(&["kill", "ki"], "kitchen");
    has(&["deliver", "inject", ""], "kitchen");
    has(&["wait", "--state", ""], "blocked");
    has(&["convert", "--format", ""], "html");
    has(&["play", "--from", ""], "ttyrec");
    has(&["run", "--agent", ""], "claude");
    has(&["probe", ""], "codex");
    has(&["rec", "--overw"], "--overwrite");
    assert!(!completed(&home, &["play", ""]).contains(&"notes.txt".to_owned()), "it is no recording");
    assert!(!completed(&home, &["convert", "--from", ""]).contains(&"html".to_owned()), "it is only written");

    assert!(home.run(["kill", "kitchen"]).status.success());
}

/// Real shells, with the scripts that they are given, and the Tab key.
#[test]
fn shells_complete_what_is_typed() {
    let home = Home::new();
    for name in ["demo.ahr", "my demo.ahr", "notes.txt", "login.scenario.yaml"] {
        std::fs::write(home.path(name), "").expect("written");
    }
    for name in ["kitchen", "host:web"] {
        let started = home.run(["run", "-d", "--name", name, "--", "cat"]);
        assert!(started.status.success(), "{}", text(&started.stderr));
    }
    let folder = std::path::Path::new(TAPDECK).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let script = home.run(["completions", "zsh"]).stdout;
    std::fs::create_dir(home.path(".zfunc")).expect("a folder");
    std::fs::write(home.path(".zfunc/_tapdeck"), script).expect("written");
    let zsh = "fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit -u";
    for (shell, args, setup) in [
        ("bash", ["--norc", "-i"], "source <(tapdeck completions bash)"),
        ("zsh", ["-f", "-i"], zsh),
        ("fish", ["--no-config", "-i"], "tapdeck completions fish | source"),
    ] {
        if !tapdeck_needs::has(shell) {
            continue;
        }
        let mut command = home.command(shell);
        command.args(args).env("PATH", &path);
        let mut seat = Seat::with_size(command, 100, 30);
        seat.send(format!("{setup}; printf 'set-%s\\n' 42\r"));
        seat.wait_text("set-42");
        for (typed, whole) in [
            ("attach ki", "attach kitchen"),
            ("play de", "play demo.ahr"),
            ("play my", "play my\\ demo.ahr"),
            ("play my\\ d", "play my\\ demo.ahr"),
            ("attach host:w", "attach host:web"),
            ("view kit", "view kitchen"),
            ("wait --state bloc", "wait --state blocked"),
            ("convert --format htm", "convert --format html"),
            ("run --agent clau", "run --agent claude"),
            ("test --only logi", "test --only login"),
        ] {
            seat.send(format!("tapdeck {typed}\t"));
            seat.wait(&format!("{whole} in {shell}"), |seat| {
                seat.screen().lines().any(|row| row.trim_end().ends_with(&format!("tapdeck {whole}")))
            });
            seat.send("\x15");
            seat.wait("an empty line", |seat| !seat.screen().contains(&format!("tapdeck {whole}")));
        }
    }
    assert!(home.run(["kill", "--all"]).status.success());
}

#[test]
fn the_tour_plays_in_any_terminal_and_reads_as_text() {
    let home = Home::new();
    let out = home.run(["tour"]);
    let read = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for shown in ["tapdeck rec hello.ahr", "tapdeck attach build", "tapdeck wait build", "1 passed, 0 failed"]
    {
        assert!(read.contains(shown), "no {shown:?} in {read}");
    }
    for (cols, rows) in [(80, 24), (72, 20), (40, 12)] {
        let mut seat = Seat::with_size(home.tapdeck(["tour"]), cols, rows);
        seat.wait_text("Tapdeck in two");
        // The next chapter, and out.
        seat.send("]");
        seat.wait_text("1. Record");
        seat.send("q");
        seat.wait_text("Next: tapdeck rec");
        assert!(seat.end().success(), "{cols}x{rows}");
    }
}
