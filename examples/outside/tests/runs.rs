//! The programs of this crate run to their ends.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tapdeck::{AgentState, Session, state};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tapdeck-outside-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is the system's to clean up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program of this crate, and returns what it printed.
fn run(program: &str, folder: &Path) -> String {
    let state = folder.join("state");
    let ran = Command::new(program).current_dir(folder).env("XDG_STATE_HOME", state).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

#[test]
fn a_session_and_its_recording_in_15_lines_and_then_conversions() {
    let folder = Folder::new("demo");
    let said = run(env!("CARGO_BIN_EXE_outside"), &folder.0);
    assert!(said.contains("answer 42") && folder.0.join("demo.ahr").exists(), "{said}");
    let said = run(env!("CARGO_BIN_EXE_convert"), &folder.0);
    for part in ["demo.cast: ", "demo.html: ", "whole: true", "torn: [\"", "clean: true"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(std::fs::read_to_string(folder.0.join("demo.txt")).expect("text").contains("answer 42"));
}

#[test]
fn frames_states_and_turns_of_a_session_are_seen() -> tapdeck::Result<()> {
    let name = format!("outside-{}", std::process::id());
    let limit = Duration::from_secs(60);
    let session = Session::builder(["bash", "--norc"]).size(60, 10).name(&name).timeout(limit).spawn()?;
    session.wait_for(state(AgentState::Idle), limit)?;
    let mut watch = Command::new(env!("CARGO_BIN_EXE_watch"));
    let mut watch = watch.arg(&name).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut said = String::new();
    let mut out = BufReader::new(watch.stdout.take().expect("a pipe"));
    // The first frame tells that it watches.
    out.read_line(&mut said).expect("a line");
    session.type_line("echo answer $((6*7))")?;
    // The turn is over when the shell's prompt is back.
    while !said.contains("turn 1: ") && out.read_line(&mut said).expect("a line") > 0 {}
    session.type_line("exit")?;
    out.read_to_string(&mut said).expect("text");
    assert!(watch.wait().expect("its end").success(), "{said}");
    for part in ["frame:\n", "state: ", "turn 1: echo answer", "answer 42", "closed: Some(Code(0))"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    Ok(())
}

#[test]
fn the_terminal_model_alone() {
    let said = run(env!("CARGO_BIN_EXE_term"), &std::env::temp_dir());
    for part in ["demo at", "scrolled off: [\"one\"]", "t is bold: true", "Up is \"\\u{1b}OA\"", "the same: true"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

#[test]
fn a_server_with_an_authenticator_and_a_program_of_its_own() {
    let folder = Folder::new("serve");
    let said = run(env!("CARGO_BIN_EXE_serve"), &folder.0);
    for part in ["forbidden", "begins", "tap: ", "sum 42"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(folder.0.join("runs").read_dir().expect("recordings").next().is_some(), "{said}");
}
