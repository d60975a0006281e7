//! What a cassette says of its run beside the bytes: who sealed it, which program it was, what it
//! left behind, what it told at its end, and for how long that may be believed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tapdeck_tape::cassette::{Cassette, digest_hex};

use crate::support::{Home, eventually, lives, signal};

fn record(home: &Home, args: &[&str], command: &[&str]) -> Output {
    let all = ["cassette", "record", "--headless"].iter().chain(args).chain(&["--"]).chain(command);
    home.run(all)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[track_caller]
fn passes(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[track_caller]
fn fails(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", said(output));
    assert!(said(output).contains(says), "no {says:?} in: {}", said(output));
}

fn object(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON")
}

fn swap(path: &Path, from: &str, to: &str) {
    let old = fs::read_to_string(path).expect("read");
    assert!(old.contains(from), "{} has no {from}: {old}", path.display());
    fs::write(path, old.replacen(from, to, 1)).expect("written");
}

/// Binds a changed cassette anew, as the format's document says. False if that cannot be done here.
fn bind(home: &Home, cassette: &str) -> bool {
    if !tapdeck_needs::has("python3") {
        return false;
    }
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tape/tests/cassettes/reader.py");
    let status = home.command("python3").arg(reader).arg("--bind").arg(home.path(cassette)).status();
    assert!(status.expect("it runs").success());
    true
}

/// Digests can be made anew by all who can write the files; a seal only by the owner of the key.
#[test]
fn a_sealed_cassette_shows_what_was_bound_anew() {
    let home = Home::new();
    fs::write(home.path("key"), "0123456789abcdef0123").expect("written");
    fs::write(home.path("other"), "another key, as long").expect("written");
    let verify = |key: &str| home.run(["cassette", "verify", "--key", key, "c"]);
    passes(&record(&home, &["--seal", "key", "c"], &["sh", "-c", "echo hello"]));
    passes(&verify("key"));
    assert!(said(&home.run(["cassette", "verify", "c"])).contains("sealed, which only its key can check"));
    assert!(said(&home.run(["verify", "--key", "key", "c"])).contains("the owner of the key has sealed"));
    fails(&verify("other"), "it was sealed with the key");
    // Without rules the cassette is written as it comes, with them at the end: both are sealed.
    passes(&record(&home, &["--seal", "key", "--no-scrub", "raw"], &["true"]));
    passes(&home.run(["cassette", "verify", "--key", "key", "raw"]));
    passes(&record(&home, &["plain"], &["true"]));
    fails(&home.run(["cassette", "verify", "--key", "key", "plain"]), "it is not sealed");
    swap(&home.path("c/final.json"), "\"code\": 0", "\"code\": 3");
    if bind(&home, "c") {
        passes(&home.run(["cassette", "verify", "c"]));
        fails(&verify("key"), "is not what was sealed");
    }
}

/// A path says little about a program that is replaced with every update.
#[test]
fn a_cassette_says_which_program_it_was() {
    let home = Home::new();
    let script = "#!/usr/bin/env sh\necho ready\n";
    fs::create_dir_all(home.path("lib/agent")).expect("made");
    fs::write(home.path("lib/agent/cli.js"), script).expect("written");
    fs::set_permissions(home.path("lib/agent/cli.js"), PermissionsExt::from_mode(0o755)).expect("set");
    fs::write(home.path("lib/agent/package.json"), r#"{"name": "agent", "version": "1.2.3"}"#)
        .expect("written");
    symlink("lib/agent/cli.js", home.path("agent")).expect("linked");
    passes(&record(&home, &["c"], &["./agent"]));
    let shell = fs::read(fs::canonicalize("/bin/sh").expect("there")).expect("read");
    let check = |harness: &Value| {
        assert_eq!(harness["binary_sha256"], digest_hex(script.as_bytes()), "{harness}");
        assert_eq!(harness["binary_version"], "agent 1.2.3", "{harness}");
        assert_eq!(harness["binaries"][1]["role"], "interpreter", "{harness}");
        assert_eq!(harness["binaries"][1]["sha256"], digest_hex(&shell), "{harness}");
        assert!(!harness.to_string().contains("lib/agent"), "a path: {harness}");
    };
    check(&object(&home.path("c/manifest.json"))["harness"]);
    passes(&record(&home, &["--version-from", "echo 9.9", "d"], &["./agent"]));
    assert_eq!(object(&home.path("d/manifest.json"))["harness"]["binary_version"], "9.9");
    let scenario = format!(
        "program:\n  run: ['{}']\n  needs: [sh]\nsteps:\n  - expect: {{contains: ready}}\nassert:\n  - {{exit: 0}}\n",
        home.path("agent").display()
    );
    fs::write(home.path("a.scenario.yaml"), scenario).expect("written");
    passes(&home.run(["test", "--record", "a.scenario.yaml"]));
    check(&object(&home.path("a.cassette/manifest.json"))["harness"]);
}

/// A daemon with a session of its own was certified as no leak at all.
#[test]
fn what_a_run_leaves_behind_is_counted_named_and_killed_on_request() {
    if !tapdeck_needs::has("setsid") {
        return;
    }
    let home = Home::new();
    // The shell waits until its daemon has left the terminal, whose end would end it.
    let script = "setsid -f sh -c \"touch up; exec sleep 4321\"; until [ -e up ]; do sleep 0.02; done; rm up; echo started";
    let left = |output: &Output| {
        let text = said(output);
        assert!(text.contains("left behind: sleep 4321 (process "), "{text}");
        let number = text.split("(process ").nth(1).and_then(|t| t.split(')').next()).expect("a number");
        number.parse::<i32>().expect("a number")
    };
    let output = record(&home, &["c"], &["sh", "-c", script]);
    passes(&output);
    let pid = left(&output);
    let metadata = &object(&home.path("c/final.json"))["metadata"];
    assert_eq!((&metadata["leaked_processes"], &metadata["leaked"]), (&1.into(), &json!(["sleep 4321"])));
    assert!(lives(pid), "it was only told");
    signal(pid.unsigned_abs(), rustix::process::Signal::KILL);
    let output = record(&home, &["--kill-leaked", "d"], &["sh", "-c", script]);
    passes(&output);
    let pid = left(&output);
    eventually("the end of what was left behind", || !lives(pid));
    assert_eq!(object(&home.path("d/final.json"))["metadata"]["leaked_processes"], 1);
    passes(&record(&home, &["e"], &["sh", "-c", "sleep 0.2 & echo started"]));
    assert_eq!(object(&home.path("e/final.json"))["metadata"]["leaked_processes"], 0, "it was about to end");
    // A test says which process it was, live and from its cassette.
    let scenario = format!("program:\n  run: [sh, -c, '{script}']\nassert:\n  - {{leaked: 0}}\n");
    fs::write(home.path("a.scenario.yaml"), &scenario).expect("written");
    fails(&home.run(["test", "--live", "a.scenario.yaml"]), "were left behind, wanted are 0: sleep 4321");
    fs::write(home.path("a.scenario.yaml"), scenario.replace("leaked: 0", "leaked: 1")).expect("written");
    passes(&home.run(["test", "--record", "a.scenario.yaml"]));
    swap(&home.path("a.scenario.yaml"), "leaked: 1", "leaked: 0");
    fails(&home.run(["test", "a.scenario.yaml"]), "sleep 4321");
}

/// What a harness reports at its end is what the run cost, and its absence is a run that broke off.
#[test]
fn the_last_service_event_fills_the_ending_and_can_be_required() {
    let home = Home::new();
    let events = "{\"type\": \"routing\", \"usage\": {\"input\": 1}}\n\
                  {\"type\": \"final\", \"usage\": {\"input\": 12}, \"total_cost_usd\": 0.25, \
                  \"routing\": {\"model\": \"m1\"}, \"log_path\": \"/var/log/agent.log\"}\n";
    fs::write(home.path("events"), events).expect("written");
    passes(&record(&home, &["--events", "events", "c"], &["true"]));
    let ending = object(&home.path("c/final.json"));
    assert_eq!((&ending["usage"], &ending["cost"]), (&json!({"input": 12}), &0.25.into()), "{ending}");
    // By a pipe, too, where the event comes with the program's end.
    assert!(home.command("mkfifo").arg("fifo").status().expect("it runs").success());
    let script = "echo '{\"type\": \"final\", \"cost\": 7}' >fifo";
    passes(&record(&home, &["--events", "fifo", "d"], &["sh", "-c", script]));
    assert_eq!(object(&home.path("d/final.json"))["cost"], 7);
    assert_eq!(ending["routing_actual"], json!({"model": "m1"}));
    assert_eq!(ending["session_log_path"], "/var/log/agent.log");
    let play = |last: &str| {
        let events = "  - service: {type: final, usage: {input: 3}}\n".replace("final", last);
        let text = format!(
            "require: {{service: final}}\nplay:\n  - {{write: hello}}\n{events}  - {{exit: 0}}\nassert:\n  - {{exit: 0}}\n"
        );
        fs::write(home.path("p.scenario.yaml"), text).expect("written");
        home.run(["test", "--record", "p.scenario.yaml"])
    };
    fails(&play("tool"), "the last service event is \"tool\", not \"final\"");
    passes(&play("final"));
    assert_eq!(object(&home.path("p.cassette/final.json"))["usage"], json!({"input": 3}));
    passes(&home.run(["test", "p.scenario.yaml"]));
    fs::write(
        home.path("n.scenario.yaml"),
        "require: {service: final}\nplay:\n  - {exit: 0}\nassert:\n  - {exit: 0}\n",
    )
    .expect("written");
    fails(&home.run(["test", "--live", "n.scenario.yaml"]), "there is no service event");
}

/// Evidence grows old, and says so; what is no length of time is refused before the run.
#[test]
fn freshness_is_understood_and_checked() {
    let home = Home::new();
    let output = record(&home, &["--freshness", "banana", "c"], &["true"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!home.path("c").exists());
    passes(&record(&home, &["--freshness", "24h", "c"], &["true"]));
    passes(&home.run(["cassette", "verify", "--fresh", "c"]));
    assert!(said(&home.run(["info", "c"])).contains("fresh until 20"));
    passes(&record(&home, &["none"], &["true"]));
    passes(&home.run(["cassette", "verify", "none"]));
    fails(&home.run(["cassette", "verify", "--fresh", "none"]), "does not say for how long");
    fs::write(home.path("p.scenario.yaml"), "play:\n  - {exit: 0}\nassert:\n  - {exit: 0}\n")
        .expect("written");
    passes(&home.run(["test", "--record", "p.scenario.yaml"]));
    passes(&home.run(["test", "--max-age", "1h", "p.scenario.yaml"]));
    let age = |name: &str| {
        let manifest = home.path(name).join("manifest.json");
        let captured = object(&manifest)["harness"]["captured_at"].as_str().expect("a time").to_owned();
        swap(
            &manifest,
            &format!("\"captured_at\": \"{captured}\""),
            "\"captured_at\": \"2024-02-29T12:00:00Z\"",
        );
        bind(&home, name)
    };
    if age("c") && age("p.cassette") {
        passes(&home.run(["cassette", "verify", "c"]));
        fails(
            &home.run(["cassette", "verify", "--fresh", "c"]),
            "it has been stale since 2024-03-01 12:00:00",
        );
        assert!(said(&home.run(["info", "c"])).contains("stale since 2024-03-01"));
        passes(&home.run(["test", "--rebind", "p.scenario.yaml"]));
        fails(
            &home.run(["test", "--max-age", "1h", "p.scenario.yaml"]),
            "it was recorded at 2024-02-29 12:00:00",
        );
        swap(&home.path("c/manifest.json"), "\"24h\"", "\"banana\"");
        assert!(bind(&home, "c"));
        fails(&home.run(["cassette", "verify", "c"]), "\"banana\" is no length of time");
    }
}

/// One at a time for all that talk to an account, with a wait that ends.
#[test]
fn an_account_is_waited_for() {
    let home = Home::new();
    let script = "until [ -e go ]; do sleep 0.05; done";
    let spawn = |args: &[&str], script: &str| {
        let all = ["cassette", "record", "--headless", "--account", "me"].iter().chain(args);
        let mut command = home.tapdeck(all.chain(&["--", "sh", "-c", script]));
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut first = spawn(&["one"], script);
    let lock = home.path("state/tapdeck/locks/me.lock");
    eventually("the lock", || fs::read_to_string(&lock).is_ok_and(|text| text.contains("pid")));
    let second = spawn(&["--account-wait", "60s", "two"], "true");
    let output = record(&home, &["--account", "me", "--account-wait", "50ms", "three"], &["true"]);
    fails(&output, "is in use by process");
    fs::write(home.path("agent"), "#!/bin/sh\nsleep 60\n").expect("written");
    fs::set_permissions(home.path("agent"), PermissionsExt::from_mode(0o755)).expect("set");
    let probe =
        ["probe", "claude", "quota", "--program", "./agent", "--account", "me", "--account-wait", "50ms"];
    fails(&home.run(probe), "is in use by process");
    fs::write(home.path("go"), "").expect("written");
    assert!(first.wait().expect("it ends").success());
    passes(&second.wait_with_output().expect("it ends"));
    assert!(Cassette::open(&home.path("two")).is_ok());
}

/// A scenario says of its run what `cassette record` is told by options.
#[test]
fn a_scenario_carries_what_its_run_is_evidence_for() {
    let home = Home::new();
    let write = |more: &str| {
        let program = "program:\n  run: [sh, -c, 'echo ready']\n  version_from: echo; echo agent 3.2.1\n  capability: conversation\n  \
                       permission_mode: plan\n  account_class: pro\n  freshness: 24h\n";
        let rest = "steps:\n  - expect: {contains: ready}\nassert:\n  - {exit: 0}\n";
        fs::write(home.path("a.scenario.yaml"), format!("{program}{more}{rest}")).expect("written");
    };
    write("  check: test -n \"$HOME\" && test -z \"$XDG_STATE_HOME\"\n  account: me\n");
    passes(&home.run(["test", "--record", "a.scenario.yaml"]));
    let manifest = object(&home.path("a.cassette/manifest.json"));
    let harness = &manifest["harness"];
    assert_eq!(
        (&harness["binary_version"], &harness["capability"]),
        (&"agent 3.2.1".into(), &"conversation".into())
    );
    assert_eq!((&harness["account_class"], &harness["freshness_window"]), (&"pro".into(), &"24h".into()));
    assert_eq!(manifest["command"]["permission_mode"], "plan");
    passes(&home.run(["cassette", "verify", "--fresh", "a.cassette"]));
    write("  check: echo signed out; false\n");
    let output = home.run(["test", "--live", "a.scenario.yaml"]);
    fails(&output, "check: echo signed out; false");
    assert!(said(&output).contains("signed out\n"), "{}", said(&output));
    // The account is in use, and is waited for in vain.
    write("  account: me\n  account_wait: 50ms\n");
    let hold = ["cassette", "record", "--headless", "--account", "me", "c", "--", "sh", "-c"];
    let script = "until [ -e go ]; do sleep 0.05; done";
    let mut holder = home.tapdeck(hold).arg(script).stdin(Stdio::null()).spawn().expect("it starts");
    let lock = home.path("state/tapdeck/locks/me.lock");
    eventually("the lock", || fs::read_to_string(&lock).is_ok_and(|text| text.contains("pid")));
    fails(&home.run(["test", "--live", "a.scenario.yaml"]), "is in use by process");
    fs::write(home.path("go"), "").expect("written");
    assert!(holder.wait().expect("it ends").success());
    passes(&home.run(["test", "--live", "a.scenario.yaml"]));
    write("  account_class: x\n");
    assert!(
        said(&home.run(["test", "--live", "a.scenario.yaml"])).contains("account_class"),
        "a key stands twice"
    );
    fs::write(home.path("a.scenario.yaml"), "program:\n  run: [sh]\n  freshness: banana\n").expect("written");
    fails(&home.run(["test", "--live", "a.scenario.yaml"]), "\"banana\" is no length of time");
}

/// Only `cassette record` took service events; a scenario could not say what shape they have.
#[test]
fn a_scenario_takes_service_events_and_checks_their_shape() {
    let home = Home::new();
    let scenario = |tokens: &str, more: &str| {
        let text = format!(
            "program:\n  run: [sh, -c, 'printf one; echo \"$FIRST\" >> out/events; until [ -e seen ]; do [ -s out/events ] \
             && echo > seen; done; printf two; echo \"$LAST\" >> out/events']\n  events: out/events\nenv:\n  allow: [PATH]\n  \
             set:\n    FIRST: '{{\"type\":\"tool\",\"name\":\"read\"}}'\n    LAST: '{{\"type\":\"final\",\"usage\":{{\"tokens\":{tokens}}}}}'\n\
             require: {{service: final}}\nassert:\n  - {{events: {{schema: {{type: object, required: [type]}}, count: 2}}}}\n  \
             - {{events: {{type: final, schema: {{properties: {{usage: {{properties: {{tokens: {{type: integer}}}}}}}}}}}}}}\n{more}"
        );
        fs::write(home.path("a.scenario.yaml"), text).expect("written");
    };
    scenario("12", "");
    passes(&home.run(["test", "--record", "a.scenario.yaml"]));
    passes(&home.run(["test", "a.scenario.yaml"]));
    passes(&home.run(["cassette", "verify", "a.cassette"]));
    assert_eq!(object(&home.path("a.cassette/final.json"))["usage"]["tokens"], 12);
    scenario("\"12\"", "");
    let output = home.run(["test", "--live", "a.scenario.yaml"]);
    fails(&output, "service event 1: $.usage.tokens is a string, not integer: \"12\"");
    scenario("12", "  - {events: {schema: {typ: object}}}\n");
    fails(&home.run(["test", "--live", "a.scenario.yaml"]), "no word of a schema is \"typ\": use type, enum");
}

/// `test --record` masked the folders of a run, but not the name of the user.
#[test]
fn the_name_of_the_user_is_in_no_recorded_test() {
    let home = Home::new();
    let text = "program:\n  run: [sh, -c, 'echo by adalovelace in $HOME']\nassert:\n  - {exit: 0}\n";
    fs::write(home.path("a.scenario.yaml"), text.replace("adalovelace", "$WHO")).expect("written");
    let scenario = fs::read_to_string(home.path("a.scenario.yaml")).expect("read");
    let named = scenario.replace("assert:", "env:\n  allow: [PATH]\n  set: {WHO: '${LOGNAME}'}\nassert:");
    fs::write(home.path("a.scenario.yaml"), named).expect("written");
    let mut command = home.tapdeck(["test", "--record", "a.scenario.yaml"]);
    passes(&command.env("USER", "adalovelace").env("LOGNAME", "adalovelace").output().expect("it runs"));
    for entry in fs::read_dir(home.path("a.cassette")).expect("listed").flatten() {
        let bytes = fs::read(entry.path()).expect("read");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("adalovelace"), "{}: {text}", entry.path().display());
    }
    let raw = fs::read_to_string(home.path("a.cassette/output.raw")).expect("read");
    assert!(raw.starts_with("by *********** in "), "{raw}");
}

/// An argument with a blank became two when a cassette went through a recording.
#[test]
fn arguments_stay_a_list_through_a_conversion() {
    let home = Home::new();
    let argv = ["sh", "-c", "echo 'a  b' \"$1\"", "name", "two words", ""];
    passes(&record(&home, &["c"], &argv));
    passes(&home.run(["convert", "c", "-o", "d.ahr"]));
    passes(&home.run(["convert", "d.ahr", "-o", "e.cassette"]));
    for name in ["c", "e.cassette"] {
        assert_eq!(object(&home.path(name).join("manifest.json"))["command"]["argv"], json!(argv), "{name}");
    }
}
