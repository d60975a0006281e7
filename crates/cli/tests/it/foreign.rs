//! Programs of others, tested as their projects would test them: with scenarios written from the
//! manual. Each passes, and each of five ways to break the program fails with its cause.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Home;

/// What is changed in the program, and what the failure says of it.
type Breaks<'a> = [(&'a str, &'a str, &'a str); 5];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

/// Runs the scenario of a program in a folder of its own, as it is and with each break.
fn try_program(home: &Home, name: &str, program: &str, breaks: &Breaks<'_>) {
    let folder = home.path("project");
    let scenario = format!("{name}.scenario.yaml");
    for file in [program, &scenario] {
        fs::copy(sources().join(file), folder.join(file)).expect("copied");
    }
    let run = || {
        let output = home.tapdeck(["test", "--live"]).arg(folder.join(&scenario)).output().expect("it runs");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    };
    let (code, said) = run();
    assert_eq!(code, Some(0), "{said}");
    let path = folder.join(program);
    let whole = fs::read_to_string(&path).expect("read");
    for (from, to, says) in breaks {
        assert_eq!(whole.matches(from).count(), 1, "{from}");
        fs::write(&path, whole.replace(from, to)).expect("written");
        let (code, said) = run();
        assert_eq!(code, Some(1), "{from} → {to}: {said}");
        assert!(said.contains(says), "{from} → {to}: {said}");
    }
}

#[test]
fn a_script_with_dialog() {
    if !tapdeck_needs::has("dialog") {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path("project")).expect("made");
    try_program(
        &home,
        "setup",
        "setup.sh",
        &[
            (
                "Name of this machine:",
                "Name of the machine:",
                "\"Name of this machine:\" is not on the screen",
            ),
            ("--default-item web", "--default-item base", "\"Install web on web1?\" is not on the screen"),
            ("mail \"A mail server\"", "mail \"A mall server\"", "\"A mail server\" is not on the screen"),
            ("|| exit 4", "&& exit 4", "the program ended with code 4"),
            ("clear\n", "clear\nsetsid sleep 3 & sleep 0.2\n", "sleep 3"),
        ],
    );
}

#[test]
fn a_command_with_a_progress_bar() {
    if !tapdeck_needs::has("python3") {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path("project")).expect("made");
    try_program(
        &home,
        "fetch",
        "fetch.py",
        &[
            ("\"#\" * full", "\"=\" * full", "the output has no \"one.tar"),
            ("\\r\\033[K\\033[32m", "\\n\\033[32m", "at @end: equals"),
            ("\\033[32m✓", "\\033[31m✓", "the cell at row 1, column 1 is red, not green"),
            ("\"one.tar\", \"two.tar\"", "\"two.tar\", \"one.tar\"", "order:"),
            ("time.process_time()", "time.no_such_time()", "Traceback"),
        ],
    );
}

#[test]
fn an_application_in_textual() {
    if !tapdeck_needs::has("python3") {
        return;
    }
    let home = Home::new();
    let venv = home.path("project/venv");
    fs::create_dir(home.path("project")).expect("made");
    let made = home.command("python3").args(["-m", "venv"]).arg(&venv).output().expect("it runs");
    if !made.status.success() {
        return tapdeck_needs::skip("python3 has no module venv");
    }
    let pip = home.command(venv.join("bin/pip")).args(["install", "--quiet", "textual"]).output();
    let pip = pip.expect("it runs");
    if !pip.status.success() {
        let why = String::from_utf8_lossy(&pip.stderr).into_owned();
        return tapdeck_needs::skip(&format!("pip cannot install Textual: {why}"));
    }
    try_program(
        &home,
        "todo",
        "todo.py",
        &[
            ("TITLE = \"Things to do\"", "TITLE = \"Things\"", "\"Things to do\" is not on the screen"),
            ("event.input.value = \"\"", "pass", "\"buy milk\" is on the screen"),
            ("\"delete\", \"Delete\"", "\"remove\", \"Delete\"", "\"Delete it?\" is not on the screen"),
            ("event.button.id == \"yes\"", "event.button.id == \"no\"", "\"1 things\" is not on the screen"),
            ("things.append(", "things.apend(", "AttributeError"),
        ],
    );
}
