//! Scenarios as several tests: a matrix, a watch that runs them again, and a time of their own.

use std::fs;

use serde_json::Value;

use crate::scenarios::{swap, test, text};
use crate::support::{Home, Seat};

/// Each combination of a matrix is a test of its own: named, selected, recorded and bound. What is
/// wrong in an included file is told with that file and its line.
#[test]
fn a_matrix_is_a_test_for_each_combination() {
    let home = Home::new();
    let folder = home.path("matrix");
    fs::create_dir_all(folder.join("common")).expect("made");
    let common = folder.join("common/check.yaml");
    fs::write(&common, "- {screen: {contains: \"{{word}} in {{size}}\"}}\n- {exit: 0}\n").expect("written");
    let file = folder.join("greet.scenario.yaml");
    let scenario = r#"scenario: greet
about: in all sizes
parameters: {word: hello}
matrix:
  size: [30x4, 40x5]
  command: [[sh, -c], [env, LC_ALL=C, sh, -c]]
size: "{{size}}"
program:
  run: ["{{command}}", 'echo "{{word}} in $(stty size | sed "s/\(.*\) \(.*\)/\2x\1/")"']
assert:
  - include: common/check.yaml
  - {screen: {file: "{{size}}.txt"}}
"#;
    fs::write(&file, scenario).expect("written");
    let names = ["30x4, sh -c", "30x4, env LC_ALL=C sh -c", "40x5, sh -c", "40x5, env LC_ALL=C sh -c"];
    let listed = text(&test(&home, &["--list"], &folder));
    for name in names {
        assert!(listed.contains(&format!("greet [{name}]: in all sizes (0 steps, 3 claims)")), "{listed}");
    }
    let one = test(&home, &["--live", "--json", "--only", "40x5, sh"], &folder);
    let told: Value = serde_json::from_slice(&one.stdout).expect("JSON");
    let all = told["scenarios"].as_array().expect("a list");
    assert_eq!(
        (all.len(), &all[0]["name"], &all[0]["variant"]),
        (1, &"greet [40x5, sh -c]".into(), &names[2].into())
    );
    // The text is not stored yet, so that it fails with what is there.
    assert_eq!(all[0]["result"], "failed");
    let recorded = test(&home, &["--record"], &folder);
    assert!(recorded.status.success(), "{}", text(&recorded));
    let junit = home.path("junit.xml");
    let replayed = test(&home, &["--junit", junit.to_str().expect("text")], &folder);
    assert!(text(&replayed).contains("4 passed, 0 failed"), "{}", text(&replayed));
    let junit = fs::read_to_string(junit).expect("read");
    assert!(names.iter().all(|name| junit.contains(&format!("name=\"greet [{name}]\""))), "{junit}");
    assert!(folder.join("greet.40x5-env-LC_ALL-C-sh-c.cassette").is_dir());
    // A change is noticed by each of them, and accepted for all.
    swap(&file, "'echo \"", "'echo  \"");
    let other = test(&home, &[], &folder);
    assert!(text(&other).contains("0 passed, 4 failed"), "{}", text(&other));
    assert!(text(&other).contains("program.run is not the command"), "{}", text(&other));
    let rebound = test(&home, &["--rebind"], &folder);
    assert!(text(&rebound).contains("4 passed, 0 failed"), "{}", text(&rebound));
    assert!(test(&home, &[], &folder).status.success());
    // A recording that is reviewed keeps the others.
    fs::write(folder.join("40x5.txt"), "old\n").expect("written");
    let updated = test(&home, &["--record", "--update", "--accept", "--only", "40x5, sh"], &folder);
    assert!(updated.status.success(), "{}", text(&updated));
    swap(&file, "'echo  \"", "'echo \"");
    let again = test(&home, &["--record", "--update", "--accept"], &folder);
    assert!(again.status.success(), "{}", text(&again));
    assert!(text(&test(&home, &[], &folder)).contains("4 passed, 0 failed"));
    fs::write(&common, "- {exit: 0}\n- {screen: {contains: \"{{word}} out {{size}}\"}}\n").expect("written");
    let wrong = text(&test(&home, &["--live"], &folder));
    assert!(wrong.contains("common/check.yaml:2: at @end: contains \"hello out 30x4\""), "{wrong}");
    fs::write(&common, "- {exit: 0}\n- {screen: {contain: x}}\n").expect("written");
    let wrong = text(&test(&home, &["--live"], &folder));
    assert!(wrong.contains("common/check.yaml:2: the scenario can be read\n  unknown key"), "{wrong}");
}

/// A change of what a test depends on runs it again, and leaves the others alone.
#[test]
fn a_watched_test_runs_again_when_something_changes() {
    let home = Home::new();
    let folder = home.path("watched");
    fs::create_dir_all(folder.join("bin")).expect("made");
    let tool = folder.join("bin/tool");
    let write_tool = |says: &str| {
        fs::write(&tool, format!("#!/bin/sh\necho {says}; cat input common\n")).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&tool, mode).expect("changed");
    };
    write_tool("one");
    fs::write(folder.join("input"), "in 1\n").expect("written");
    fs::write(folder.join("end.txt"), "one\nin 1\ncommon\n").expect("written");
    fs::write(folder.join("common.yaml"), "program: {files: {common: common}}\n").expect("written");
    let scenario = "include: common.yaml\nprogram: {run: [\"{root}/bin/tool\"], copy: [input]}\nassert: [{screen: {file: end.txt}}]\n";
    fs::write(folder.join("uses.scenario.yaml"), scenario).expect("written");
    let other = "program: {run: [echo, hi]}\nassert: [{screen: {equals: hi}}]\n";
    fs::write(folder.join("other.scenario.yaml"), other).expect("written");
    let mut command = home.tapdeck(["test", "--live", "--watch"]);
    command.arg(&folder);
    let mut seat = Seat::with_size(command, 90, 120);
    // The screen is cleared before each run, so that this is the newest one.
    let mut run = |says: &[&str], lacks: &str| {
        seat.wait(&format!("{says:?}"), |seat| {
            let screen = seat.screen();
            screen.contains("Ctrl-C ends this") && says.iter().all(|part| screen.contains(part))
        });
        assert!(lacks.is_empty() || !seat.screen().contains(lacks), "{}", seat.screen());
    };
    run(&["ok       other", "ok       uses", "2 passed, 0 failed"], "");
    write_tool("two");
    run(&["FAILED   uses", "differs from end.txt", "0 passed, 1 failed"], "other");
    fs::write(folder.join("end.txt"), "two\nin 1\ncommon\n").expect("written");
    run(&["ok       uses", "1 passed, 0 failed"], "other");
    fs::write(folder.join("input"), "in 2\n").expect("written");
    run(&["FAILED   uses", "+ in 2"], "other");
    // What failed runs again with what changed.
    fs::write(folder.join("other.scenario.yaml"), other.replace("echo, hi", "echo, ho")).expect("written");
    run(&["FAILED   uses", "FAILED   other", "0 passed, 2 failed"], "");
    fs::write(folder.join("common.yaml"), "program: {file: {}}\n").expect("written");
    run(&["common.yaml:1: the scenario can be read", "did you mean \"files\"?"], "");
    fs::write(folder.join("common.yaml"), "program: {files: {common: common}}\n").expect("written");
    fs::write(folder.join("input"), "in 1\n").expect("written");
    fs::write(folder.join("other.scenario.yaml"), other).expect("written");
    // In one run or two.
    run(&["passed, 0 failed"], "");
    // A new scenario is found, and Ctrl-C ends the watch, not only a program of it.
    fs::write(folder.join("new.scenario.yaml"), other).expect("written");
    run(&["ok       new", "1 passed, 0 failed"], "uses");
    seat.send("\x03");
    assert_eq!(seat.end().code(), Some(0));
}

/// A program that shows the time shows the same one each time.
#[test]
fn a_clock_stands_still_or_passes() {
    let home = Home::new();
    let file = home.path("time.scenario.yaml");
    let frozen = "clock: 2026-01-31 12:00:00\nprogram: {run: [sh, -c, 'date +%F_%T; sleep 0.1; date +%F_%T; kill -TERM $$']}\nassert:\n  - {screen: {equals: \"2026-01-31_12:00:00\\n2026-01-31_12:00:00\"}}\n  - {exit: {signal: SIGTERM}}\n";
    fs::write(&file, frozen).expect("written");
    let missing =
        home.tapdeck(["test", "--live"]).arg(&file).env("PATH", "/nowhere").output().expect("it runs");
    assert!(text(&missing).contains("skipped  time: sh, faketime is not installed"), "{}", text(&missing));
    if !tapdeck_needs::has("faketime") {
        return;
    }
    let recorded = test(&home, &["--record"], &file);
    assert!(recorded.status.success(), "{}", text(&recorded));
    let manifest = fs::read_to_string(home.path("time.cassette/manifest.json")).expect("read");
    assert!(manifest.contains("\"clock\": \"2026-01-31 12:00:00\""), "{manifest}");
    swap(&file, "clock: 2026-01", "clock: 2025-01");
    let other = text(&test(&home, &[], &file));
    assert!(other.contains("clock is not the one with which it was recorded"), "{other}");
    let passes = "clock: {start: 2026-12-31 23:59:58}\nprogram: {run: [sh, -c, 'while date +%Y; do sleep 0.05; done']}\nsteps:\n  - expect: {contains: \"2026\"}\n  - expect: {contains: \"2027\"}\n  - cancel: true\nassert: [{ended: cancelled}]\n";
    fs::write(&file, passes).expect("written");
    let output = test(&home, &["--live"], &file);
    assert!(output.status.success(), "{}", text(&output));
}
