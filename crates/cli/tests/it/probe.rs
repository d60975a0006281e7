//! Probes against a program that behaves as an agent does, on a real terminal, and against the
//! cassette of that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;
use tapdeck_tape::cassette::Cassette;

use crate::support::Home;

/// An agent that asks for trust, shows an old panel at its start, and draws the true one in two
/// pieces.
const AGENT: &str = r#"#!/bin/bash
[ "$1" = auth ] && exit ${SIGNED_IN:-0}
stty raw -echo
printf 'Do you trust the files in this folder?\r\n ❯ 1. Yes, proceed\r\n'
IFS= read -rN1 key
printf '\033[2J\033[HCurrent session\r\n 99%% used\r\nCurrent week (all models)\r\n 99%% used\r\nClaude Pro plan\r\n❯ '
typed=
while IFS= read -rN1 key; do
    case "$key" in
        $'\003') exit 0 ;;
        $'\r' | $'\n')
            [ "$typed" = /usage ] || { typed=; continue; }
            printf '\033[2J\033[HClaude Max plan\r\nCurrent session\r\n'
            sleep 0.1
            printf ' 12%% used\r\n Resets 3pm\r\nCurrent week (all models)\r\n 40%% used\r\n Resets Mar 4\r\nme@example.org\r\n' ;;
        *) typed=$typed$key; printf %s "$key" ;;
    esac
done
"#;

fn agent(home: &Home, text: &str) {
    let path = home.path("agent");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn a_probe_gets_past_the_dialog_and_reads_the_fresh_panel() {
    let home = Home::new();
    agent(&home, AGENT);
    let args = ["probe", "claude", "quota", "--program", "./agent", "--json", "--cassette", "c"];
    let output = home.run(args);
    let answer = json(&output);
    assert_eq!((output.status.code(), answer["status"].as_str()), (Some(0), Some("ok")), "{answer}");
    let windows = &answer["quota"]["windows"];
    assert_eq!((&windows[0]["used_percent"], &windows[1]["used_percent"]), (&12.0.into(), &40.0.into()));
    assert_eq!(answer["quota"]["account_class"], "max");
    // The whole timeline is kept, the address in it masked, and the facts can be read off it again.
    let cassette = Cassette::open(&home.path("c")).expect("accepted");
    // Which agent it was: a script, and the shell that runs it.
    let harness = &cassette.manifest.harness;
    let script = tapdeck_tape::cassette::digest_hex(AGENT.as_bytes());
    assert_eq!(harness.binary_sha256, Some(script));
    assert_eq!(
        harness.binaries.iter().map(|b| b.role.as_str()).collect::<Vec<_>>(),
        ["program", "interpreter"]
    );
    assert!(cassette.frames.len() >= 3, "{} frames", cassette.frames.len());
    assert!(cassette.frames.iter().any(|f| f.text.iter().any(|row| row.contains("trust"))));
    assert!(!String::from_utf8_lossy(cassette.raw()).contains("me@example.org"));
    let quota = cassette.quota.expect("a quota");
    assert_eq!((quota.status.as_str(), quota.freshness_window.as_deref()), ("ok", Some("15m")));
    let output = home.run(["probe", "claude", "quota", "--from", "c", "--json"]);
    assert_eq!(json(&output)["quota"]["windows"], *windows);
}

/// An answer is kept until it expires, and only for the same user and account.
#[test]
fn an_answer_is_believed_for_a_while() {
    let home = Home::new();
    agent(&home, AGENT);
    let ask = |more: &[&str]| {
        let args = ["probe", "claude", "quota", "--program", "./agent", "--json"];
        let output = home.run(args.iter().chain(more).copied());
        (output.status.code(), json(&output))
    };
    let (code, answer) = ask(&["--only-cached"]);
    assert_eq!((code, &answer["status"], &answer["limited"]), (Some(1), &"error".into(), &true.into()));
    let (code, answer) = ask(&["--cached"]);
    assert_eq!(
        (code, &answer["cached"], &answer["limited"]),
        (Some(0), &false.into(), &false.into()),
        "{answer}"
    );
    let windows = answer["quota"]["windows"].clone();
    // The program is gone, and the answer still there.
    agent(&home, "#!/bin/sh\nexit 9\n");
    for way in ["--cached", "--only-cached"] {
        let (code, answer) = ask(&[way]);
        assert_eq!(
            (code, &answer["cached"], &answer["fresh"]),
            (Some(0), &true.into(), &true.into()),
            "{answer}"
        );
        assert_eq!((&answer["quota"]["windows"], &answer["limited"]), (&windows, &false.into()));
    }
    let (code, answer) = ask(&["--only-cached", "--max-age", "0s"]);
    assert_eq!(
        (code, &answer["fresh"], &answer["limited"]),
        (Some(1), &false.into(), &true.into()),
        "{answer}"
    );
    assert_ne!(ask(&["--cached", "--max-age", "0s"]).0, Some(0), "it is asked, and has no answer");
    // What the agent said later counts: the answer is no older than before, and not believed.
    let (code, answer) = ask(&["--only-cached"]);
    assert_eq!((code, &answer["status"], &answer["limited"]), (Some(1), &"error".into(), &true.into()));
    assert!(answer["detail"].as_str().is_some_and(|d| d.contains("the last probe, at ")), "{answer}");
    let other = home
        .tapdeck(["probe", "claude", "quota", "--program", "./agent", "--only-cached", "--json"])
        .env("ANTHROPIC_API_KEY", "of-somebody-else")
        .output()
        .expect("it runs");
    assert_eq!(other.status.code(), Some(1), "another account");
}

/// An agent that does not tell is not started again and again. One that is missing is looked for
/// each time: that may change at once.
#[test]
fn that_an_agent_does_not_tell_is_cached_too() {
    let home = Home::new();
    agent(&home, "#!/bin/sh\necho started >> started\necho Usage is unavailable; exec sleep 60\n");
    let ask = |program: &str, more: &[&str]| {
        let args = ["probe", "codex", "quota", "--program", program, "--cwd", ".", "--json"];
        let output = home.run(args.iter().chain(more).copied());
        assert_eq!(output.status.code(), Some(1));
        json(&output)
    };
    let starts = || fs::read_to_string(home.path("started")).map_or(0, |text| text.lines().count());
    let answer = ask("./agent", &["--cached"]);
    assert_eq!((&answer["status"], &answer["cached"]), (&"unavailable".into(), &false.into()), "{answer}");
    for way in ["--cached", "--only-cached"] {
        let answer = ask("./agent", &[way]);
        let told = (&answer["status"], &answer["cached"], &answer["fresh"], &answer["limited"]);
        assert_eq!(told, (&"unavailable".into(), &true.into(), &true.into(), &true.into()), "{answer}");
        assert!(answer["detail"].as_str().is_some_and(|d| d.contains("Usage is unavailable")), "{answer}");
    }
    assert_eq!(starts(), 1);
    assert_eq!(ask("./agent", &[])["cached"], false);
    assert_eq!(starts(), 2);
    for _ in 0..2 {
        let answer = ask("./none", &["--cached"]);
        assert_eq!(
            (&answer["status"], &answer["cached"]),
            (&"unavailable".into(), &false.into()),
            "{answer}"
        );
    }
    // What has no panel to read is said in a sentence.
    let stderr = |args: [&str; 3]| String::from_utf8(home.run(args).stderr).expect("text");
    assert!(stderr(["probe", "aider", "quota"]).contains("only claude, codex and gemini"));
    assert!(stderr(["probe", "cluade", "quota"]).contains("did you mean claude?"));
    assert!(stderr(["probe", "gemini", "reasoning"]).contains("can read: models, quota, status"));
}

#[test]
fn without_an_account_or_a_program_there_is_a_clear_answer_and_no_cassette() {
    let home = Home::new();
    agent(&home, &AGENT.replace("${SIGNED_IN:-0}", "1"));
    let output = home.run(["probe", "claude", "quota", "--program", "./agent", "--json", "--cassette", "c"]);
    assert_eq!((output.status.code(), json(&output)["status"].as_str()), (Some(1), Some("unauthenticated")));
    let output = home.run(["probe", "codex", "models", "--program", "./none", "--json", "--cassette", "c"]);
    assert_eq!((output.status.code(), json(&output)["status"].as_str()), (Some(1), Some("unavailable")));
    agent(&home, "#!/bin/sh\necho Not logged in; sleep 60\n");
    let output = home.run(["probe", "codex", "quota", "--program", "./agent", "--json", "--cassette", "c"]);
    assert_eq!((output.status.code(), json(&output)["status"].as_str()), (Some(1), Some("unauthenticated")));
    assert!(!home.path("c").exists());
    assert!(home.path("state/tapdeck/diagnostics").is_dir(), "the traces of the run that there was");
    assert_eq!(home.run(["probe", "nobody", "quota"]).status.code(), Some(2));
}

/// Recordings of the real agents, without an account: what was read off them must be read off them
/// again.
#[test]
fn the_real_agents_as_they_were() {
    let home = Home::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cassettes/probes");
    let cases: [(&str, &str, &str, &[&str]); 4] = [
        (
            "gemini",
            "models",
            "models",
            &[
                "gemini-3.1-pro-preview",
                "gemini-3-flash-preview",
                "gemini-2.5-pro",
                "gemini-3.5-flash-lite",
                "gemini-3.8-flash",
                "gemma-4-31b-it",
                "gemma-4-26b-a4b-it",
            ],
        ),
        ("claude", "models", "models", &["Opus 5.5", "Default", "Fable 5.2", "Sonnet 5.5", "Haiku 5.5"]),
        (
            "codex",
            "models",
            "models",
            &[
                "GPT-6.1-Sol",
                "GPT-6-Astra",
                "GPT-6-Sol",
                "GPT-6-Luna",
                "GPT-5.6-Sol",
                "GPT-6.1 Terra",
                "GPT-5.6-Terra",
                "GPT-5.6-Luna",
                "GPT-5.5",
            ],
        ),
        ("codex", "reasoning", "reasoning_levels", &["low", "medium", "high", "extra high", "max", "ultra"]),
    ];
    for (agent, probe, key, want) in cases {
        let cassette = format!("{folder}/{agent}-{probe}.tar.zst");
        let output = home.run(["probe", agent, probe, "--json", "--from", &cassette]);
        let answer = json(&output);
        let read: Vec<&str> =
            answer["discovery"][key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(read, want, "{agent} {probe}: {answer}");
        let verify = home.run(["cassette", "verify", &cassette]);
        assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
    }
}
