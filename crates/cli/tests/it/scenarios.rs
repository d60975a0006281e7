//! Scenarios through the command: the corpus, and what a change to it does.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Home, Seat, eventually, lives, signal};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cassettes").canonicalize().expect("the corpus")
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("copied");
        }
    }
}

pub fn test(home: &Home, args: &[&str], path: &Path) -> Output {
    home.tapdeck(["test"]).args(args).arg(path).output().expect("it runs")
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The corpus needs none of its programs: there are none in this PATH.
#[test]
fn the_corpus_from_cassettes() {
    let home = Home::new();
    let output = home.tapdeck(["test"]).env("PATH", "/nowhere").arg(corpus()).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("0 failed, 0 skipped"), "{}", text(&output));
}

/// Evidence is public: nothing in it tells of the machine or the person that recorded it.
#[test]
fn nothing_of_a_machine_is_in_the_corpus() {
    fn look(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                look(&path, found);
                continue;
            }
            let bytes = match tapdeck_tape::cassette::Files::read(&path) {
                // An archive of a cassette, as the text that is in it.
                Ok(files) => files.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect(),
                Err(_) => fs::read(&path).expect("read"),
            };
            let text = String::from_utf8_lossy(&bytes);
            // Folders of people and of builds, a login at a host, and what the programs of the
            // corpus show of a machine.
            for mark in ["/root/", "/work/", "/tmp/tapdeck-", "root@", "load average: 0", "load average: 1"] {
                if text.contains(mark) {
                    found.push(format!("{}: {mark}", path.display()));
                }
            }
        }
    }
    let mut found = Vec::new();
    look(&corpus(), &mut found);
    look(&corpus().join("../agents"), &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_corpus_live() {
    let home = Home::new();
    let output = test(&home, &["--live", "--jobs", "4"], &corpus());
    assert!(output.status.success(), "{}", text(&output));
}

/// One scenario in a folder of its own.
fn one(home: &Home, name: &str) -> (PathBuf, PathBuf) {
    let folder = home.path("one");
    fs::create_dir_all(&folder).expect("made");
    let file = folder.join(format!("{name}.scenario.yaml"));
    let from = corpus().join("synthetic");
    fs::copy(from.join(format!("{name}.scenario.yaml")), &file).expect("copied");
    let cassette = folder.join(format!("{name}.cassette"));
    copy(&from.join(format!("{name}.cassette")), &cassette);
    (file, cassette)
}

/// A change to evidence fails exactly the check that names it.
#[test]
fn a_changed_cassette_fails_the_right_check() {
    type Change = fn(&Path, &Path);
    fn field(path: &Path, name: &str) -> String {
        let value: Value = serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON");
        value.pointer(name).and_then(Value::as_str).expect(name).to_owned()
    }
    let cases: [(&str, Change, &str); 9] = [
        (
            "a byte of output.raw",
            |_, c| {
                let path = c.join("output.raw");
                let mut raw = fs::read(&path).expect("read");
                raw[3] ^= 1;
                fs::write(&path, raw).expect("written");
            },
            "output.raw is what was recorded",
        ),
        (
            "a frame",
            |_, c| swap(&c.join("frames.jsonl"), "full screen", "full scream"),
            "frames are what the bytes show",
        ),
        ("a seq", |_, c| swap(&c.join("output.jsonl"), "\"seq\":1,", "\"seq\":99,"), "numbered from 1"),
        (
            "the id in the scenario",
            |s, c| {
                let id = field(&c.join("manifest.json"), "/id");
                swap(s, &id, "00000000-0000-7000-8000-000000000000");
            },
            "the cassette has the id that the scenario names",
        ),
        (
            "the digest in the scenario",
            |s, c| {
                let digest = field(&c.join("manifest.json"), "/content_digest/sha256");
                swap(s, &digest, &"0".repeat(64));
            },
            "the cassette has the digest that the scenario names",
        ),
        (
            "the emulator",
            |_, c| {
                let version = field(&c.join("manifest.json"), "/terminal/emulator/version");
                let path = c.join("manifest.json");
                let mut value: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
                value["terminal"]["emulator"]["version"] = format!("{version}9").into();
                fs::write(&path, value.to_string()).expect("written");
            },
            "emulator of this program",
        ),
        (
            "the version",
            |_, c| swap(&c.join("manifest.json"), "\"version\": 1", "\"version\": 2"),
            "can read the version",
        ),
        ("a file", |_, c| fs::remove_file(c.join("final.json")).expect("removed"), "every file is there"),
        ("the size", |s, _| swap(s, "size: 30x4", "size: 31x4"), "the cassette has the size"),
    ];
    for (what, change, claim) in cases {
        let home = Home::new();
        let (file, cassette) = one(&home, "alternate-screen");
        assert!(test(&home, &[], &file).status.success(), "before anything is changed");
        change(&file, &cassette);
        let output = test(&home, &["--json"], &file);
        assert_eq!(output.status.code(), Some(1), "{what}: {}", text(&output));
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let faults = value["scenarios"][0]["faults"].as_array().expect("faults").clone();
        assert!(
            faults.iter().any(|f| f["claim"].as_str().expect("text").contains(claim)),
            "{what}: {faults:#?}"
        );
        // The manifest is bound to everything, so that one may fail with the right one; nothing
        // else does.
        let others = faults.iter().filter(|f| {
            let said = f["claim"].as_str().expect("text");
            !said.contains(claim) && !said.contains("committed")
        });
        assert_eq!(others.count(), 0, "{what}: {faults:#?}");
    }
}

/// A scenario whose run has everything that can be pinned.
const PINNED: &str = "\
scenario: pinned
size: 40x8
env:
  allow: [PATH]
  set: {TERM: xterm-256color, LANG: C.UTF-8, WORD: hi}
program:
  run: [sh, ask.sh, now]
  copy: [copied]
  files:
    ask.sh: |
      stty -echo; echo ready; read a; echo \"$WORD $a\"; read b; cat copied
steps:
  - expect: {contains: ready}
  - type: \"yes\\n\"
  - expect: {contains: hi yes}
  - resize: 50x8
  - send: Enter
  - wait: {exit: true}
assert:
  - {screen: {contains: from a file}}
  - {ended: program}
";

pub fn swap(path: &Path, from: &str, to: &str) {
    let old = fs::read_to_string(path).expect("read");
    assert!(old.contains(from), "{} has no {from}: {old}", path.display());
    fs::write(path, old.replacen(from, to, 1)).expect("written");
}

/// Whatever a cassette was recorded from, and whatever it holds, is pinned: a change is named, and
/// can be accepted.
#[test]
fn a_scenario_pins_its_cassette_and_what_that_was_made_from() {
    let home = Home::new();
    let folder = home.path("pinned");
    let file = folder.join("pinned.scenario.yaml");
    let cassette = folder.join("pinned.cassette");
    fs::create_dir_all(&folder).expect("made");
    fs::write(&file, PINNED).expect("written");
    fs::write(folder.join("copied"), "from a file\n").expect("written");
    let output = test(&home, &["--record"], &file);
    assert!(output.status.success(), "{}", text(&output));
    let whole = home.path("whole");
    copy(&folder, &whole);
    // In the scenario, and in the file that it copies.
    let outside = [
        ("run", &file, "ask.sh, now]", "ask.sh, later]", "program.run is not the command that was recorded"),
        ("env.set", &file, "WORD: hi}", "WORD: ho}", "WORD of env.set is not what it was"),
        (
            "another variable",
            &file,
            "WORD: hi}",
            "WORD: hi, NEW: x}",
            "NEW of env.set was not in the recorded run",
        ),
        ("env.allow", &file, "allow: [PATH]", "allow: [PATH, USER]", "env.allow is not the list"),
        ("a file", &file, "echo ready;", "echo ready ;", "ask.sh of program.files is not what it was"),
        ("type", &file, "yes\\n\"", "yep\\n\"", "step 2 of steps is not the one that was recorded"),
        ("resize", &file, "resize: 50x8", "resize: 50x9", "step 4 of steps is not the one"),
        ("send", &file, "send: Enter", "send: C-j", "step 5 of steps is not the one"),
        (
            "a new step",
            &file,
            "  - send: Enter",
            "  - send: x\n  - send: Enter",
            "6 were recorded, and there are 7",
        ),
        (
            "a copied file",
            &folder.join("copied"),
            "from a",
            "From a",
            "copied of program.copy is not what it was",
        ),
    ];
    // In the cassette, bound anew as a recorder would: only the scenario knows that it was changed.
    let within = [
        (
            "exit",
            "final.json",
            "\"code\": 0",
            "\"code\": 3",
            "ended with exit code 3; the scenario was written for",
        ),
        ("input", "input.jsonl", "eWVzD", "bm9wD", "input.jsonl is not the input"),
        (
            "events",
            "service-events.jsonl",
            "\"payload\":{",
            "\"payload\":{\"n\":1,",
            "service-events.jsonl has other events",
        ),
        ("the rest", "manifest.json", "\"timeout_ms\": 20000", "\"timeout_ms\": 20001", "its binding is"),
    ];
    let within: Vec<_> =
        within.map(|(what, name, from, to, says)| (what, cassette.join(name), from, to, says)).to_vec();
    let outside =
        outside.into_iter().map(|(what, path, from, to, says)| (what, path.clone(), from, to, says));
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tape/tests/cassettes/reader.py");
    for (what, path, from, to, says) in outside.chain(within) {
        fs::remove_dir_all(&folder).expect("removed");
        copy(&whole, &folder);
        swap(&path, from, to);
        if path.starts_with(&cassette) {
            if !tapdeck_needs::has("python3") {
                continue;
            }
            let bound = home.command("python3").arg(&reader).arg("--bind").arg(&cassette).status();
            assert!(bound.expect("it runs").success(), "{what}");
        }
        let output = test(&home, &[], &file);
        assert_eq!(output.status.code(), Some(1), "{what}: {}", text(&output));
        assert!(text(&output).contains(says), "{what}: {}", text(&output));
        if what == "a new step" {
            // The cassette has nothing to judge it by.
            assert!(text(&output).contains("make it with `tapdeck test --record`"), "{}", text(&output));
            assert_eq!(test(&home, &["--rebind"], &file).status.code(), Some(1));
            continue;
        }
        assert!(text(&output).contains("accept it with --rebind"), "{what}: {}", text(&output));
        let kept = fs::read_to_string(&file).expect("read");
        let output = test(&home, &["--rebind"], &file);
        assert!(output.status.success(), "{what}: {}", text(&output));
        let output = test(&home, &[], &file);
        assert!(output.status.success(), "{what}: {}", text(&output));
        let bound = fs::read_to_string(&file).expect("read");
        let others = |text: &str| {
            let ours = |line: &&str| {
                !["  id:", "  sha256:", "  binding:", "  pins:"].iter().any(|k| line.starts_with(k))
            };
            text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(others(&bound), others(&kept), "{what}");
    }
    // What is only looked at may be put differently.
    fs::remove_dir_all(&folder).expect("removed");
    copy(&whole, &folder);
    swap(&file, "{contains: hi yes}", "{matches: 'hi (yes|no)'}");
    swap(&file, "allow: [PATH]", "allow:  [ PATH ]  # as before");
    let output = test(&home, &[], &file);
    assert!(output.status.success(), "{}", text(&output));
}

/// A play is pinned entry by entry, and a scenario from before there were pins gets them.
#[test]
fn a_play_is_pinned_and_older_scenarios_are_bound_on_request() {
    let home = Home::new();
    let (file, _) = one(&home, "sgr");
    let old = fs::read_to_string(&file).expect("read");
    let older: String = old
        .lines()
        .filter(|l| !l.starts_with("  binding:") && !l.starts_with("  pins:"))
        .map(|l| format!("{l}\n"))
        .collect();
    fs::write(&file, &older).expect("written");
    let output = test(&home, &[], &file);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(fs::read_to_string(&file).expect("read"), older);
    let output = test(&home, &["--rebind"], &file);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(fs::read_to_string(&file).expect("read"), old);
    swap(&file, "many", "few");
    let output = test(&home, &[], &file);
    assert!(text(&output).contains("of play is not the one that was recorded"), "{}", text(&output));
}

#[test]
fn a_failure_is_shown_with_the_screen() {
    let home = Home::new();
    let file = home.path("x.scenario.yaml");
    let scenario = "size: 20x3\nplay:\n  - write: hello\n  - {write: ' world', after: 1s}\n  - {exit: 0, after: 1s}\nassert:\n  - {at: 900ms, screen: {contains: world}}\n  - {screen: {equals: hello wurld}}\n";
    fs::write(&file, scenario).expect("written");
    let output = test(&home, &["--live"], &file);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "x.scenario.yaml:7: at 900ms: contains \"world\"",
        "it does hold at 1s",
        "  1 │hello world\n      │      ^^^^^\n",
        "  1 - hello wurld\n      + hello world\n               ^\n",
        "▶       0s  output \"hello\"",
        "0 passed, 1 failed",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let report = home.path("report.xml");
    let output = test(&home, &["--live", "--junit", report.to_str().expect("text")], &file);
    assert_eq!(output.status.code(), Some(1));
    let xml = fs::read_to_string(&report).expect("a report");
    assert!(xml.contains("tests=\"1\" failures=\"1\"") && xml.contains("hello wurld"), "{xml}");
}

/// Recording makes everything that is missing; after that a change on disk is shown, and made only
/// when agreed to.
#[test]
fn record_then_update() {
    let home = Home::new();
    let file = home.path("greet.scenario.yaml");
    let stored = home.path("greet.txt");
    let scenario = "# kept\nsize: 30x3\nprogram:\n  run: [sh, -c, 'printf \"name? \"; read n; sleep 0.3; echo \"hi $n\"']\nsteps:\n  - expect: {contains: 'name? '}\n  - type: \"Ada\\n\"\n  - wait: {exit: true}\nassert:\n  - {screen: {file: greet.txt}}\n  - {exit: 0}\n";
    fs::write(&file, scenario).expect("written");
    let missing = test(&home, &[], &file);
    assert!(text(&missing).contains("--record"), "{}", text(&missing));
    let recorded = test(&home, &["--record"], &file);
    assert!(recorded.status.success(), "{}", text(&recorded));
    assert_eq!(fs::read_to_string(&stored).expect("stored"), "name? Ada\nhi Ada\n");
    assert!(fs::read_to_string(&file).expect("read").starts_with("# kept\n"));
    assert!(test(&home, &[], &file).status.success());
    fs::write(&stored, "name? Ada\nho Ada\n").expect("written");
    let unasked = test(&home, &["--update"], &file);
    assert_eq!(unasked.status.code(), Some(1), "{}", text(&unasked));
    assert!(text(&unasked).contains("+ hi Ada") && text(&unasked).contains("--accept"), "{}", text(&unasked));
    assert!(fs::read_to_string(&stored).expect("stored").contains("ho"), "nobody agreed");
    let agreed = test(&home, &["--update", "--yes", "--json"], &file);
    assert!(agreed.status.success(), "{}", text(&agreed));
    let told: Value = serde_json::from_slice(&agreed.stdout).expect("one value");
    assert_eq!(
        (&told["scenarios"][0]["result"], &told["updates"][0]["written"]),
        (&"passed".into(), &true.into())
    );
    assert!(test(&home, &[], &file).status.success());
    // What else is wrong stays wrong.
    let bound = fs::read_to_string(&file).expect("read");
    fs::write(&file, bound.replace("{exit: 0}", "{exit: 1}")).expect("written");
    fs::write(&stored, "another\n").expect("written");
    let more = test(&home, &["--update", "--yes"], &file);
    assert_eq!(more.status.code(), Some(1), "{}", text(&more));
    assert!(text(&more).contains("updated") && text(&more).contains("1 failed"), "{}", text(&more));
    assert_eq!(fs::read_to_string(&stored).expect("stored"), "name? Ada\nhi Ada\n");
    // One file cannot be two things.
    let twice = bound.replace("{exit: 0}", "{at: 0s, screen: {file: greet.txt}}");
    fs::write(&file, twice).expect("written");
    fs::write(&stored, "another\n").expect("written");
    let torn = test(&home, &["--update", "--yes", "--json"], &file);
    assert_eq!(torn.status.code(), Some(1), "{}", text(&torn));
    let told: Value = serde_json::from_slice(&torn.stdout).expect("one value");
    assert_eq!(told["updates"][0]["written"], false, "{told}");
    assert_eq!(fs::read_to_string(&stored).expect("stored"), "another\n");
}

/// An intended change is recorded anew and reviewed: refused, nothing is lost; accepted, the
/// cassette and its texts change together.
#[test]
fn record_anew_and_review() {
    let home = Home::new();
    let folder = home.path("review");
    fs::create_dir(&folder).expect("made");
    let file = folder.join("greet.scenario.yaml");
    let scenario = |word: &str, last: &str| {
        format!(
            "size: 30x3\nprogram:\n  run: [sh, -c, 'echo {word}; read x; echo {last}']\nsteps:\n  - expect: {{contains: {word}}}\n  - snapshot: first\n  - send: Enter\n  - wait: {{exit: true}}\nassert:\n  - {{at: '@first', screen: {{file: first.txt}}}}\n  - {{screen: {{file: last.txt}}}}\n"
        )
    };
    fs::write(&file, scenario("hello", "bye")).expect("written");
    assert!(test(&home, &["--record"], &file).status.success());
    let text_of = |name: &str| fs::read_to_string(folder.join(name)).expect("read");
    let bound = text_of("greet.scenario.yaml");
    fs::write(&file, bound.replace("hello", "hallo").replace("bye", "ciao")).expect("written");
    // Everything in the folder, byte for byte.
    let all = || {
        let mut files = Vec::new();
        let mut open = vec![folder.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("listed").flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else {
                    files.push((entry.path(), fs::read(entry.path()).expect("read")));
                }
            }
        }
        files.sort();
        files
    };
    let before = all();
    let plain = test(&home, &["--record"], &file);
    assert_eq!(plain.status.code(), Some(1), "{}", text(&plain));
    assert!(text(&plain).contains("review them with --record --update"), "{}", text(&plain));
    let unasked = test(&home, &["--record", "--update"], &file);
    assert_eq!(unasked.status.code(), Some(1), "{}", text(&unasked));
    assert!(text(&unasked).contains("+ hallo") && text(&unasked).contains("--accept"), "{}", text(&unasked));
    assert_eq!(all(), before, "nothing is lost on refusal");
    let review = |answers: [&str; 2]| {
        let mut command = home.tapdeck(["test", "--record", "--update"]);
        command.arg(&file);
        let mut seat = Seat::with_size(command, 100, 50);
        seat.wait_text("first.txt (1 of 2): [a]ccept, [r]eject, [s]kip");
        seat.send(answers[0]);
        seat.wait_text("last.txt (2 of 2): [a]ccept");
        seat.send(answers[1]);
        let status = seat.end();
        (status.code(), seat.screen())
    };
    let (code, screen) = review(["a\r", "r\r"]);
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("the new recording is not kept"), "{screen}");
    assert_eq!(all(), before, "half of it is not accepted");
    let (code, screen) = review(["a\r", "s\r"]);
    assert_eq!((code, text_of("last.txt.new").as_str()), (Some(1), "\nciao\n"), "{screen}");
    let (code, screen) = review(["a\r", "a\r"]);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(text_of("last.txt"), "\nciao\n");
    assert!(!folder.join("last.txt.new").exists(), "it is decided");
    assert!(test(&home, &[], &file).status.success());
    // A script accepts all at once.
    fs::write(&file, text_of("greet.scenario.yaml").replace("ciao", "adieu")).expect("written");
    let accepted = test(&home, &["--record", "--update", "--accept", "--json"], &file);
    assert!(accepted.status.success(), "{}", text(&accepted));
    let told: Value = serde_json::from_slice(&accepted.stdout).expect("one value");
    assert_eq!(
        (&told["scenarios"][0]["result"], &told["updates"][0]["decision"], &told["updates"][0]["written"]),
        (&"passed".into(), &"accepted".into(), &true.into())
    );
    assert!(test(&home, &[], &file).status.success());
    // What else is wrong is not accepted with it.
    let wrong =
        text_of("greet.scenario.yaml").replace("adieu", "au revoir") + "  - {never: {contains: hallo}}\n";
    fs::write(&file, wrong).expect("written");
    let before = all();
    let more = test(&home, &["--record", "--update", "--accept"], &file);
    assert_eq!(more.status.code(), Some(1), "{}", text(&more));
    assert_eq!(all(), before);
}

/// A text that cannot be read is not an empty one, whatever the screen shows; one that is missing
/// can be made.
#[test]
fn a_stored_text_that_cannot_be_read_is_a_failure() {
    let home = Home::new();
    let file = home.path("blank.scenario.yaml");
    let stored = home.path("blank.txt");
    fs::write(&file, "program: {run: ['true']}\nassert:\n  - {screen: {file: blank.txt}}\n")
        .expect("written");
    fs::create_dir(&stored).expect("a folder");
    let refused = |args: &[&str], part: &str| {
        let output = test(&home, args, &file);
        assert_eq!(output.status.code(), Some(1), "{part}: {}", text(&output));
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    };
    refused(&["--live"], "blank.txt cannot be read: it is no file");
    refused(&["--record"], "it is no file");
    assert!(!home.path("blank.cassette").exists());
    fs::remove_dir(&stored).expect("removed");
    fs::write(&stored, b"ab\xff").expect("written");
    refused(&["--live"], "not UTF-8 from byte 3 on");
    fs::remove_file(&stored).expect("removed");
    refused(&["--live"], "blank.txt is not there yet: --update or --record makes it");
    assert!(test(&home, &["--record"], &file).status.success());
    assert_eq!(fs::read_to_string(&stored).expect("made"), "\n");
    fs::remove_file(&stored).expect("removed");
    refused(&[], "not there yet");
    assert!(test(&home, &["--update", "--yes"], &file).status.success());
    assert!(stored.is_file() && test(&home, &[], &file).status.success());
}

/// A program that dies is a failure, whatever was on the screen before; a scenario may want it.
#[test]
fn a_program_that_dies_fails_unless_it_is_meant_to() {
    let home = Home::new();
    let file = home.path("die.scenario.yaml");
    let run = |script: &str, more: &str| {
        let scenario =
            format!("program: {{run: [sh, -c, '{script}']}}\nsteps:\n  - expect: {{contains: hi}}\n{more}\n");
        fs::write(&file, scenario).expect("written");
        let output = test(&home, &["--live"], &file);
        (output.status.success(), text(&output))
    };
    let checks = "assert:\n  - {eventually: {contains: hi}}";
    for (script, part) in [
        ("echo hi; exit 3", "has ended with code 3; if that is right, add `- {exit: 3}` to assert"),
        ("echo hi; kill -SEGV $$", "was killed by SEGV; if that is right, add `- {exit: {signal: SEGV}}`"),
    ] {
        let (passed, said) = run(script, checks);
        assert!(!passed && said.contains(part), "{said}");
    }
    let (passed, said) = run("echo hi; exit 3", "assert:\n  - {exit: 3}");
    assert!(passed, "{said}");
    let (passed, said) = run("echo hi; exit 0", checks);
    assert!(passed, "{said}");
    let (passed, said) = run("echo hi; exec sleep 300", &format!("  - signal: INT\n{checks}"));
    assert!(passed, "a signal of the scenario's own: {said}");
    // A cassette of such a run fails as well.
    run("echo hi; exit 3", "assert:\n  - {exit: 3}");
    assert!(test(&home, &["--record"], &file).status.success());
    let bound = fs::read_to_string(&file).expect("read");
    fs::write(&file, bound.replace("{exit: 3}", "{eventually: {contains: hi}}")).expect("written");
    let replayed = test(&home, &[], &file);
    assert!(text(&replayed).contains("has ended with code 3"), "{}", text(&replayed));
}

/// The time limit is told as what it is, with the step that it ended and the one that took the
/// time. A wait in vain does not use it up.
#[test]
fn a_time_limit_blames_the_right_step() {
    let home = Home::new();
    let file = home.path("slow.scenario.yaml");
    let run = |scenario: &str| {
        fs::write(&file, scenario).expect("written");
        let began = std::time::Instant::now();
        let output = test(&home, &["--live"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        (text(&output), began.elapsed())
    };
    let (said, _) = run(
        "program: {run: [sh, -c, 'sleep 1.5; echo one; sleep 300'], timeout: 2s}\nsteps:\n  - expect: {contains: one}\n  - expect: {contains: two}\n",
    );
    assert!(said.contains("slow.scenario.yaml:4: expect"), "{said}");
    assert!(said.contains("its time limit of 2s has ended the program"), "{said}");
    assert!(said.contains("most of the time went to line 3: "), "{said}");
    assert!(!said.contains("killed by"), "{said}");
    let (said, _) = run(
        "program: {run: [sh, -c, 'echo one; sleep 300'], timeout: 1s}\nsteps:\n  - expect: {contains: one}\n",
    );
    assert!(said.contains("although the last step, in line 3, was over after "), "{said}");
    let never = "program: {run: [sh, -c, 'echo one; sleep 300'], timeout: 200s}\nsteps:\n  - expect: {contains: two}\n";
    let (said, took) = run(never);
    assert!(said.contains("10s have passed") && took.as_secs() < 60, "{said}");
    let (said, _) = run(&format!("within: 300ms\n{never}"));
    assert!(said.contains("300ms have passed"), "{said}");
}

/// A run that fails keeps nothing: half a golden master is none.
#[test]
fn a_failed_run_is_not_recorded() {
    let home = Home::new();
    let file = home.path("bad.scenario.yaml");
    for (scenario, part) in [
        (
            "program: {run: [sh, -c, 'echo hello; exit 3']}\nsteps:\n  - wait: {exit: true}\nassert:\n  - {exit: 0}\n",
            "bad.scenario.yaml:5: exit code 0",
        ),
        // It is there while the program runs, and masked in what would be kept.
        (
            "program: {run: [echo, mail ada@example.org]}\nsteps:\n  - expect: {contains: 'ada@example.org'}\nassert:\n  - {screen: {file: bad.txt}}\n  - {exit: 0}\n",
            "scrubbing masks what it wants",
        ),
    ] {
        fs::write(&file, scenario).expect("written");
        let output = test(&home, &["--record"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(part), "{}", text(&output));
        assert!(!home.path("bad.cassette").exists() && !home.path("bad.txt").exists());
        assert_eq!(fs::read_to_string(&file).expect("read"), scenario);
    }
}

/// A signal during the run ends the programs, removes their folders, keeps nothing, and ends the
/// command.
#[test]
fn a_signal_ends_the_programs_first() {
    let home = Home::new();
    let file = home.path("deaf.scenario.yaml");
    let folders = home.path("folders");
    fs::create_dir(&folders).expect("made");
    let scenario = "program: {run: [sh, -c, \"trap '' HUP INT; echo $$ > up; sleep 68 & wait; wait\"], timeout: 60s}\nassert:\n  - {output_bytes: 0}\n";
    fs::write(&file, scenario).expect("written");
    for (how, sent) in [("--live", Signal::INT), ("--record", Signal::TERM), ("--live", Signal::HUP)] {
        let mut child = home.tapdeck(["test", how]);
        let mut child = child.arg(&file).env("TMPDIR", &folders).spawn().expect("it runs");
        let up = || {
            let inside = fs::read_dir(&folders).expect("listed").flatten();
            inside.filter_map(|e| fs::read_to_string(e.path().join("up")).ok()).find(|t| t.ends_with('\n'))
        };
        eventually("the program runs", || up().is_some());
        let program: i32 = up().and_then(|t| t.trim().parse().ok()).expect("a number");
        signal(child.id(), sent);
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(sent.as_raw()), "{how}: {status:?}");
        assert!(!lives(program), "{how}: the program is left");
        assert_eq!(fs::read_dir(&folders).expect("listed").count(), 0, "{how}: a folder is left");
        assert!(!home.path("deaf.cassette").exists());
    }
    assert_eq!(fs::read_to_string(&file).expect("read"), scenario);
    // The signals of the programs themselves are as this process had them.
    let scenario = "program: {run: [sh, -c, 'sh -c \"kill -INT \\$\\$\"; echo $?']}\nassert:\n  - {screen: {contains: '130'}}\n";
    fs::write(&file, scenario).expect("written");
    let output = test(&home, &["--live"], &file);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn wrong_scenarios_are_told_with_their_line() {
    let home = Home::new();
    let file = home.path("x.scenario.yaml");
    for (scenario, part) in [
        ("assert:\n  - {exit: 0}\n  - {scren: {contains: x}}\n", "x.scenario.yaml:3"),
        ("program: {run: [no-such-program-here]}\nassert:\n  - {exit: 0}\n", "skipped"),
        ("play:\n  - write: x\n", "asserts nothing"),
        ("assert:\n  - {exit: 0}\n", "no program, no play and no cassette"),
        ("program:\n  run: [ls]\n  on: dokker:x\nassert:\n  - {exit: 0}\n", "x.scenario.yaml:3"),
    ] {
        fs::write(&file, scenario).expect("written");
        let output = test(&home, &["--live", "--no-skips"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    assert_eq!(test(&home, &[], &home.path("nowhere")).status.code(), Some(3));
    let none = test(&home, &["--only", "zzz"], &file);
    assert_eq!(none.status.code(), Some(3));
    assert!(text(&none).contains("none of the 1 tests here has \"zzz\""), "{}", text(&none));
}

/// A stored text may say how the screen looks. A run that fails leaves pictures and a recording.
#[test]
fn a_failure_leaves_a_report_and_its_recording() {
    let home = Home::new();
    let folder = home.path("look");
    fs::create_dir(&folder).expect("made");
    let file = folder.join("look.scenario.yaml");
    let scenario = |colour: u8| {
        format!(
            "size: 20x3\nprogram:\n  run: [printf, '\\033[1;{colour}mred\\033[m and plain \\033[44m  \\033[m']\nassert:\n  - {{screen: {{styled: look.txt}}}}\n"
        )
    };
    fs::write(&file, scenario(31)).expect("written");
    let recorded = test(&home, &["--record"], &file);
    assert!(recorded.status.success(), "{}", text(&recorded));
    let stored = fs::read_to_string(folder.join("look.txt")).expect("stored");
    assert_eq!(stored, "red and plain\n--- styles\nrow 1 \"red\": red, bold\nrow 1 \"  \": on blue\n");
    assert!(test(&home, &[], &file).status.success());
    let bound = fs::read_to_string(&file).expect("read");
    fs::write(&file, bound.replace(";31m", ";32m")).expect("written");
    let report = home.path("report");
    let args = ["--live", "--keep-failed", "2", "--report", report.to_str().expect("text")];
    let mut kept = Vec::new();
    for _ in 0..3 {
        let failed = test(&home, &args, &file);
        let said = text(&failed);
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(said.contains("1 line of look.txt differs"), "{said}");
        assert!(said.contains("- row 1 \"red\": red, bold"), "{said}");
        assert!(said.contains("+ row 1 \"red\": green, bold"), "{said}");
        let line = said.lines().find_map(|l| l.split_once("the failed run is kept: tapdeck view "));
        kept.push(PathBuf::from(line.expect(&said).1));
    }
    assert!(!kept[0].exists() && kept[1].exists() && kept[2].exists(), "the last two are kept");
    assert!(home.run(["info".as_ref(), kept[2].as_os_str()]).status.success());
    let page = fs::read_to_string(report.join("index.html")).expect("a page");
    for part in ["old", "new", "difference"] {
        assert!(page.contains(&format!("<img alt=\"{part}\" src=\"data:image/svg+xml;base64,")), "{part}");
    }
    assert!(page.contains("recording-1.html") && page.contains("0 passed, 1 failed"));
    assert!(fs::read_to_string(report.join("recording-1.html")).expect("a page").contains("id=\"player\""));
    let json: Value =
        serde_json::from_slice(&fs::read(report.join("report.json")).expect("read")).expect("JSON");
    assert_eq!(json["scenarios"][0]["result"], "failed");
    assert!(fs::read_to_string(report.join("junit.xml")).expect("read").contains("failures=\"1\""));
    // A step that fails leaves its picture, too; what passes leaves nothing.
    let step = "program: {run: [sh, -c, 'echo here; read x']}\nwithin: 300ms\nsteps:\n  - expect: {contains: there}\n";
    fs::write(&file, step).expect("written");
    let failed = test(&home, &args, &file);
    assert!(text(&failed).contains("is kept"), "{}", text(&failed));
    let page = fs::read_to_string(report.join("index.html")).expect("a page");
    assert!(page.contains("<img alt=\"new\"") && !page.contains("<img alt=\"old\""));
}

/// A project's own folders, environment and preparations are part of its tests.
#[test]
fn a_scenario_uses_its_project() {
    let home = Home::new();
    let project = home.path("project");
    let tests = project.join("tests");
    fs::create_dir_all(tests.join("data/deep")).expect("made");
    fs::create_dir_all(project.join("bin")).expect("made");
    fs::write(tests.join("data/deep/one.txt"), "one\n").expect("written");
    fs::write(project.join("bin/tool"), "#!/bin/sh\necho the tool\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(project.join("bin/tool"), mode).expect("changed");
    let file = tests.join("use.scenario.yaml");
    let scenario = r#"about: a test of the project
root: ..
env:
  allow: [PATH]
  set: {PATH: "{root}/bin:${PATH}", WHERE: "{work}/data"}
program:
  run: [sh, -c, 'tool; cat "$WHERE"/deep/one.txt; cat ready; cd "$1" && ls -d bin', sh, "{root}"]
  copy: [data]
setup:
  - echo prepared > ready
teardown:
  - test -f ready
assert:
  - {screen: {equals: "the tool\none\nprepared\nbin"}}
"#;
    fs::write(&file, scenario).expect("written");
    let output = test(&home, &["--live"], &file);
    assert!(output.status.success(), "{}", text(&output));
    assert!(test(&home, &["--record"], &file).status.success());
    let cassette = tests.join("use.cassette");
    for entry in fs::read_dir(&cassette).expect("listed").flatten() {
        let bytes = fs::read(entry.path()).expect("read");
        let of_machine = String::from_utf8_lossy(&bytes).contains(project.to_str().expect("text"));
        assert!(!of_machine, "{} names the project's folder", entry.path().display());
    }
    // What was copied and prepared is part of what was recorded.
    let bound = fs::read_to_string(&file).expect("read");
    fs::write(tests.join("data/deep/one.txt"), "two\n").expect("written");
    assert!(!test(&home, &[], &file).status.success(), "another file in the folder");
    fs::write(tests.join("data/deep/one.txt"), "one\n").expect("written");
    fs::write(&file, bound.replace("echo prepared", "echo  prepared")).expect("written");
    let other = test(&home, &[], &file);
    assert!(text(&other).contains("setup has other commands"), "{}", text(&other));
    for (from, to, part) in [
        (
            "echo prepared > ready",
            "echo oh; exit 4",
            ":10: setup: echo oh; exit 4\n  it has ended with code 4",
        ),
        ("test -f ready", "exit 5", ":12: teardown: exit 5\n  it has ended with code 5"),
        ("${PATH}", "${NO_SUCH_NAME}", "there is no variable NO_SUCH_NAME"),
    ] {
        fs::write(&file, scenario.replace(from, to)).expect("written");
        let output = test(&home, &["--live"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    // A program of the project, or of the scenario, that is missing is no reason to skip.
    for program in ["{root}/bin/none", "./none"] {
        let gone = scenario.replace("run: [sh,", &format!("run: [\"{program}\","));
        fs::write(&file, gone).expect("written");
        let output = test(&home, &["--live"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("the program starts"), "{}", text(&output));
    }
    fs::write(&file, scenario).expect("written");
    let listed = test(&home, &["--list"], &tests);
    assert!(text(&listed).contains("use: a test of the project (0 steps, 1 claims)"), "{}", text(&listed));
}

/// A test that fails now and then is found by repeating it, and named flaky when it is retried.
#[test]
fn a_flaky_test_is_found_and_named() {
    let home = Home::new();
    let file = home.path("luck.scenario.yaml");
    let count = home.path("count");
    // Fails each second time.
    let scenario = "program:\n  run: [sh, -c, 'n=$(cat \"$1\"); echo $((n + 1)) > \"$1\"; exit $((n % 2))', sh, \"{root}/count\"]\nassert:\n  - {output_bytes: 0}\n";
    fs::write(&file, scenario).expect("written");
    let run = |start: &str, args: &[&str]| {
        fs::write(&count, start).expect("written");
        let output = test(&home, &[&["--live"], args].concat(), &file);
        let runs = fs::read_to_string(&count).expect("read");
        (output.status.code(), runs.trim().to_owned(), text(&output))
    };
    let (code, runs, said) = run("0", &["--repeat", "5"]);
    assert_eq!((code, &*runs), (Some(1), "2"), "{said}");
    let (code, runs, said) = run("1", &["--retries", "3"]);
    assert_eq!((code, &*runs), (Some(0), "3"), "{said}");
    assert!(said.contains("flaky    luck"), "{said}");
    let (_, _, said) = run("1", &["--retries", "3", "--json"]);
    let told: Value = serde_json::from_str(said.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&told["scenarios"][0]["flaky"], &told["scenarios"][0]["result"]),
        (&true.into(), &"passed".into())
    );
    let (code, _, said) = run("1", &[]);
    assert_eq!(code, Some(1), "{said}");
}

/// What a person did becomes a scenario that passes, also at the tempo of a machine.
#[test]
fn a_session_becomes_a_scenario() {
    let home = Home::new();
    let script = "printf 'name? '; read n; echo \"hello $n\"; printf 'more? '; read m; stty -icanon -echo; printf 'press a key\\n'; head -c 3 | od -c | head -1; echo done; exit 3";
    let recording = home.path("did.ahr");
    let mut command = home.tapdeck(["rec", "-I"]);
    command.arg(&recording).args(["--", "sh", "-c", script]);
    let mut seat = Seat::with_size(command, 60, 12);
    seat.wait_text("name?");
    for key in ["A", "d", "a"] {
        seat.send(key);
    }
    seat.wait_text("name? Ada");
    seat.send("\r");
    seat.wait_text("more?");
    seat.send("no\r");
    seat.wait_text("press a key");
    seat.send("\x1b[A");
    seat.wait_text("done");
    assert_eq!(seat.end().code(), Some(3));
    let file = home.path("new.scenario.yaml");
    let write = || {
        let mut command = home.tapdeck(["test", "--from-session"]);
        command.arg(&recording).arg("-o").arg(&file).output().expect("it runs")
    };
    let made = write();
    assert!(made.status.success(), "{}", text(&made));
    let scenario = fs::read_to_string(&file).expect("written");
    for part in [
        "size: 60x12",
        "- expect: {contains: \"name?\"}\n  - type: \"Ada\\n\"\n",
        "- expect: {contains: \"more?\"}\n  - type: \"no\\n\"\n",
        "- expect: {contains: \"press a key\"}\n  - send: Up\n  - wait: {exit: true}\nassert:\n  - {exit: 3}\n",
        "- {eventually: {contains: \"done\"}}",
    ] {
        assert!(scenario.contains(part), "{part}\n{scenario}");
    }
    let passes = test(&home, &["--live"], &file);
    assert!(passes.status.success(), "{}\n{scenario}", text(&passes));
    assert_eq!(write().status.code(), Some(4), "what is there is not replaced");
    let misnamed = home.tapdeck(["test", "--from-session"]).arg(&recording).args(["-o", "x.yaml"]).output();
    assert_eq!(misnamed.expect("it runs").status.code(), Some(2));
}
