//! What other tools run scenarios with: the plugin for pytest, and the steps for CI servers. All
//! write the report of the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::{Home, TAPDECK};

fn contrib() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").canonicalize().expect("it is there")
}

/// A folder with a scenario that passes and one that fails.
fn scenarios(home: &Home) -> PathBuf {
    let folder = home.path("scenarios");
    fs::create_dir(&folder).expect("made");
    for (name, text) in [("good", "hello"), ("bad", "hullo")] {
        let scenario = format!(
            "program: {{run: [echo, hello]}}\nassert:\n  - {{screen: {{contains: {text}}}}}\n  - {{exit: 0}}\n"
        );
        fs::write(folder.join(format!("{name}.scenario.yaml")), scenario).expect("written");
    }
    folder
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a report says, without what differs from run to run.
fn report(folder: &Path) -> Value {
    assert!(folder.join("index.html").is_file() && folder.join("junit.xml").is_file());
    let bytes = fs::read(folder.join("report.json")).expect("a report");
    let mut report: Value = serde_json::from_slice(&bytes).expect("JSON");
    report["ns"].take();
    for scenario in report["scenarios"].as_array_mut().expect("a list") {
        scenario["ns"].take();
        for fault in scenario["faults"].as_array_mut().expect("a list") {
            // It has the times of what happened.
            fault["details"].take();
        }
    }
    report
}

/// The report that the command itself writes.
fn own(home: &Home, scenarios: &Path) -> Value {
    let folder = home.path("own");
    let output = home.tapdeck(["test", "--live", "--report"]).args([&folder, scenarios]).output();
    assert_eq!(output.expect("it runs").status.code(), Some(1));
    report(&folder)
}

#[test]
fn pytest_runs_scenarios() {
    if !tapdeck_needs::has("python3") {
        return;
    }
    let home = Home::new();
    let (venv, plugin) = (home.path("venv"), home.path("plugin"));
    let made = home.command("python3").args(["-m", "venv"]).arg(&venv).output().expect("it runs");
    if !made.status.success() {
        return tapdeck_needs::skip("python3 has no module venv");
    }
    // pip builds beside the sources.
    crate::scenarios::copy(&contrib().join("pytest-tapdeck"), &plugin);
    let pip = home.command(venv.join("bin/pip")).args(["install", "--quiet"]).arg(&plugin).output();
    let pip = pip.expect("it runs");
    if !pip.status.success() {
        return tapdeck_needs::skip(&format!("pip cannot install the plugin: {}", text(&pip)));
    }
    let scenarios = scenarios(&home);
    let mine = "def test_good(tapdeck):\n    tapdeck('good.scenario.yaml', live=True)\n\ndef test_bad(tapdeck):\n    tapdeck('bad.scenario.yaml', live=True)\n";
    fs::write(scenarios.join("test_mine.py"), mine).expect("written");
    let folder = home.path("report");
    let mut pytest = home.command(venv.join("bin/pytest"));
    pytest.args(["--tapdeck-live", "--tapdeck-command", TAPDECK, "--tapdeck-report"]).arg(&folder);
    let output = pytest.current_dir(&scenarios).output().expect("it runs");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("2 failed, 2 passed"), "{said}");
    assert!(said.contains("bad.scenario.yaml:3: at @end: contains \"hullo\""), "{said}");
    assert_eq!(report(&folder), own(&home, &scenarios));
}

/// The scripts of the steps, as the servers run them.
#[test]
fn steps_for_servers_write_the_report() {
    for file in ["github/action.yml", "gitlab/tapdeck.gitlab-ci.yml"] {
        let home = Home::new();
        let scenarios = scenarios(&home);
        let step = fs::read_to_string(contrib().join(file)).expect("read");
        let indented = |line: &&str| {
            line.starts_with("        ") || (file.starts_with("gitlab") && line.starts_with("      "))
        };
        let begins = |line: &&str| line.trim() == "run: |" || line.trim() == "- |";
        let script: Vec<&str> =
            step.lines().skip_while(|l| !begins(l)).skip(1).take_while(indented).collect();
        assert_eq!(script.len(), 3, "{file}: {script:?}");
        let folder = home.path("report");
        let bin = Path::new(TAPDECK).parent().expect("a folder");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
        let mut sh = home.command("sh");
        sh.args(["-e", "-c", &script.join("\n")]).env("PATH", path).env("LIVE", "true");
        let output = sh.env("PATHS", &scenarios).env("REPORT", &folder).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{file}: {}", text(&output));
        assert_eq!(report(&folder), own(&home, &scenarios), "{file}");
    }
}
