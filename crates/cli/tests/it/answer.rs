//! Prompts with their answers, and answers to a program's questions: over the bus and from the
//! command line.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tapdeck_proto::bus::{Answer, AnswerOutcome, Explain, MAX_ANSWER};
use tapdeck_serve::client::{self, AskOutcome, Choice, ClientError};

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, eventually};

/// A program with the screen of Claude Code, which asks whether to create each of its files. Keys
/// that come within a time after a dialog are lost. What it takes is written to `taken`.
const MENU: &str = r#"#!/bin/bash
stty -echo -icanon
rule=$(printf '─%.0s' {1..60})
for name in "$@"; do
  printf '\033[H\033[2J%s\r\n Create file %s\r\n Do you want to create %s?\r\n' "$rule" "$name" "$name"
  printf ' ❯ 1. Yes\r\n   2. Yes, and don’t ask again for\r\n      this session\r\n   3. No\r\n\r\n Esc to cancel\r\n'
  end=$((${EPOCHREALTIME/./} + ${DEAF_US:-0}))
  while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do read -rsn1 -t 0.02 && echo "lost" >> taken; done
  read -rsn1 key
  echo "$name $key" >> taken
done
printf '\033[H\033[2J● done\r\n%s\r\n❯ \r\n%s\r\n' "$rule" "$rule"
read -rsn1 key
echo "late $key" >> taken
"#;

/// A program with a dialog whose options have no numbers.
const ARROWS: &str = r#"#!/bin/bash
stty -echo -icanon
at=1
while true; do
  marks=(' ' ' ' ' '); marks[$at]='❯'
  printf '\033[H\033[2J Is this a project you trust?\r\n\r\n %s No, exit\r\n %s Yes, I trust it\r\n %s Later\r\n\r\n Enter to confirm · Esc to cancel\r\n' "${marks[@]}"
  read -rsn1 key
  case $key in
    $'\e') read -rsn2 key; case $key in *A) at=$((at - 1)) ;; *B) at=$((at + 1)) ;; esac ;;
    '') break ;;
  esac
done
echo "chose $at" >> taken
printf '\033[H\033[2J● done\r\n'
sleep 60
"#;

/// Starts a script under the name of the agent whose rules tell its states.
fn start<'h>(home: &'h Home, script: &str, deaf_ms: u32, args: &[&str]) -> Detached<'h> {
    let path = home.path("claude");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let deaf = format!("DEAF_US={}", deaf_ms * 1000);
    let mut command = vec!["env", deaf.as_str(), path.to_str().expect("text")];
    command.extend(args);
    let session = Detached::start(home, &[], &command);
    session.ok(&["wait", "--state", "blocked"]);
    session
}

/// Runs a command about a session with `--json`: its exit code, and what it printed.
fn run(home: &Home, session: &Detached<'_>, args: &[&str]) -> (i32, Value) {
    let mut all = vec![args[0], session.id.as_str()];
    all.extend(&args[1..]);
    all.push("--json");
    let out = home.run(&all);
    let said = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&out)));
    (out.status.code().unwrap_or(-1), said)
}

fn taken(home: &Home) -> String {
    std::fs::read_to_string(home.path("taken")).unwrap_or_default()
}

#[test]
fn a_dialog_is_approved_and_the_next_one_denied() {
    let home = Home::new();
    let session = start(&home, MENU, 200, &["a.txt", "b.txt"]);
    let shown = session.ok(&["answer"]);
    assert!(shown.contains("Do you want to create a.txt?\n> 1. Yes\n"), "{shown}");
    let (code, said) = run(&home, &session, &["approve"]);
    assert_eq!((code, &said["outcome"], &said["sent"]), (0, &json!("answered"), &json!("1. Yes")), "{said}");
    assert_eq!(said["question"]["text"], json!("Do you want to create a.txt?"), "{said}");
    assert_eq!(said["next"]["text"], json!("Do you want to create b.txt?"), "{said}");
    // The first key was taken by the first dialog, and none was sent to the second.
    assert_eq!(taken(&home), "a.txt 1\n");
    let (code, said) = run(&home, &session, &["deny"]);
    assert_eq!((code, &said["sent"]), (0, &json!("3. No")), "{said}");
    assert_eq!(said["state"]["state"], json!("idle"), "{said}");
    let (code, said) = run(&home, &session, &["answer"]);
    assert_eq!((code, &said["state"]), (1, &json!("idle")), "{said}");
    let (code, said) = run(&home, &session, &["approve"]);
    assert_eq!((code, &said["outcome"]), (1, &json!("nothing_asked")), "{said}");
    assert_eq!(taken(&home), "a.txt 1\nb.txt 3\n");
}

#[test]
fn keys_that_a_dialog_ignores_are_sent_again() {
    let home = Home::new();
    let session = start(&home, MENU, 1500, &["a.txt"]);
    let (code, said) = run(&home, &session, &["answer", "don't ask again"]);
    assert_eq!((code, &said["outcome"]), (0, &json!("answered")), "{said}");
    let taken = taken(&home);
    let lost = taken.lines().filter(|line| *line == "lost").count();
    assert!(lost > 0 && taken.lines().any(|line| line == "a.txt 2"), "{taken}");
    assert!(!taken.contains("late"), "a key was sent to what came after the dialog: {taken}");
}

#[test]
fn an_option_without_a_number_is_reached_by_arrows() {
    let home = Home::new();
    let session = start(&home, ARROWS, 0, &[]);
    let (code, said) = run(&home, &session, &["answer", "no"]);
    assert_eq!((code, &said["sent"]), (0, &json!("1. No, exit")), "{said}");
    assert_eq!(taken(&home), "chose 0\n");
}

#[test]
fn what_is_no_option_is_not_sent() {
    let home = Home::new();
    let session = start(&home, MENU, 0, &["a.txt"]);
    for (choice, outcome) in [("7", "no_such_choice"), ("maybe", "no_such_choice"), ("s", "no_such_choice")] {
        let (code, said) = run(&home, &session, &["answer", choice]);
        assert_eq!((code, &said["outcome"]), (1, &json!(outcome)), "{choice}: {said}");
        assert_eq!(
            said["question"]["options"][2],
            json!({"number": 3, "label": "No", "marked": false, "means": "no"})
        );
    }
    assert_eq!(taken(&home), "");
    let mut bus = session.bus("observer", "watcher");
    let asked = Answer { choice: Some("yes".into()), ..Answer::default() };
    let refused = bus.request(&asked, PATIENCE);
    assert!(matches!(&refused, Err(ClientError::Denied(why)) if why.contains("observer")), "{refused:?}");
    let question = bus.request(&Explain, PATIENCE).expect("an answer").question.expect("a question");
    assert_eq!((question.text.as_str(), question.options.len()), ("Do you want to create a.txt?", 3));
    let mut bus = session.bus("bot", "driver");
    for asked in [
        Answer { choice: Some("x".repeat(MAX_ANSWER + 1)), ..Answer::default() },
        Answer { choice: Some("yes".into()), text: Some("yes".into()), wait_ms: None },
        Answer::default(),
    ] {
        let refused = bus.request(&asked, PATIENCE);
        assert!(matches!(refused, Err(ClientError::Denied(_))), "{refused:?}");
    }
    assert_eq!(taken(&home), "");
    let answered = client::answer(&mut bus, &Choice::Number(3), None).expect("an answer");
    assert_eq!(answered.outcome, AnswerOutcome::Answered, "{answered:?}");
    assert_eq!(taken(&home), "a.txt 3\n");
}

#[test]
fn questions_on_a_line_are_answered() {
    let home = Home::new();
    let script = r#"read -rp 'Continue? [y/N] ' a; echo "got <$a>"
        read -rsp 'Password: ' p; echo; echo "read <$p>"; sleep 60"#;
    let session = Detached::start(&home, &[], &["bash", "-c", script]);
    session.ok(&["wait", "--state", "blocked"]);
    let (code, said) = run(&home, &session, &["approve"]);
    assert_eq!((code, &said["outcome"], &said["sent"]), (0, &json!("answered"), &json!("y")), "{said}");
    session.wait_text("^got <y>");
    session.ok(&["wait", "--text", "^Password:"]);
    session.ok(&["wait", "--state", "blocked"]);
    let (code, said) = run(&home, &session, &["approve"]);
    assert_eq!((code, &said["outcome"]), (1, &json!("no_such_choice")), "{said}");
    let (code, said) = run(&home, &session, &["answer", "--text", "yes sir"]);
    assert_eq!((code, &said["sent"]), (0, &json!("(hidden)")), "{said}");
    session.wait_text("^read <yes sir>");
}

#[test]
fn a_question_that_a_line_editor_reads_is_no_prompt() {
    let home = Home::new();
    let script = r#"set -o emacs; bind 'set enable-bracketed-paste on'
        read -er -p 'Run it? (Y)es/(N)o/(D)on'\''t ask again [Yes]: ' a; echo "got <$a>"; sleep 60"#;
    let session = Detached::start(&home, &["--agent", "aider"], &["bash", "-c", script]);
    session.ok(&["wait", "--state", "blocked"]);
    // The line editor's own sign of a prompt has come by then.
    session.ok(&["wait", "--idle", "500ms"]);
    session.ok(&["wait", "--state", "blocked", "--timeout", "1"]);
    let (code, said) = run(&home, &session, &["answer", "d"]);
    assert_eq!((code, &said["sent"]), (0, &json!("d")), "{said}");
    session.wait_text("^got <d>");
}

#[test]
fn a_prompt_is_asked_and_its_own_answer_printed() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["bash", "--norc", "--noediting"]);
    session.ok(&["wait", "--state", "idle"]);
    assert_eq!(session.ok(&["ask", "echo one"]), "one\n");
    // The same prompt again: its answer is not the one that is there already.
    assert_eq!(session.ok(&["ask", "sleep 0.3; echo two"]), "two\n");
    let (code, said) = run(&home, &session, &["ask", "true"]);
    assert_eq!((code, &said["outcome"], &said["answer"]), (0, &json!("answered"), &json!("")), "{said}");
    assert_eq!((&said["turn_id"], &said["truncated"]), (&Value::Null, &json!(false)), "{said}");
    let out = home.run(["ask", &session.id, "read -rp 'Sure? [y/N] ' a; echo \"said $a\""]);
    assert_eq!((out.status.code(), out.stdout.is_empty()), (Some(6), true), "{}", text(&out));
    assert!(String::from_utf8_lossy(&out.stderr).contains("Sure? [y/N]"), "{}", text(&out));
    let (code, said) = run(&home, &session, &["ask", "echo not now"]);
    assert_eq!((code, &said["outcome"], &said["state"]), (1, &json!("undelivered"), &json!("blocked")));
    let (code, said) = run(&home, &session, &["wait", "--state", "idle,blocked"]);
    assert_eq!((code, &said["state"]), (0, &json!("blocked")), "{said}");
    session.ok(&["deny"]);
    let (code, said) = run(&home, &session, &["wait", "--state", "idle", "--state", "blocked"]);
    assert_eq!((code, &said["state"]), (0, &json!("idle")), "{said}");
    eventually("the answer", || session.ok(&["turns", "--json"]).contains("Sure?"));
    // The turn that a question interrupts has its number already.
    let (code, said) = run(&home, &session, &["ask", "read -rp 'Really? [y/N] ' a"]);
    let runs = json!(format!("{}:4", session.id));
    assert_eq!((code, &said["outcome"], &said["turn_id"]), (6, &json!("blocked"), &runs), "{said}");
    session.ok(&["deny"]);
    eventually("the turn", || session.ok(&["turns", "--json"]).contains("Really?"));
    let turns: Value = serde_json::from_str(&session.ok(&["turns", "--json"])).expect("JSON");
    assert!(turns.to_string().contains(runs.as_str().expect("text")), "{turns}");
    let (code, said) = run(&home, &session, &["ask", "echo begun; sleep 30", "--timeout", "1"]);
    let runs = json!(format!("{}:5", session.id));
    assert_eq!((code, &said["outcome"], &said["turn_id"]), (1, &json!("timeout"), &runs), "{said}");
    let mut bus = session.bus("human", "driver");
    bus.request(&tapdeck_proto::bus::Kill { signal: Some("INT".into()) }, PATIENCE).expect("interrupted");
    session.ok(&["wait", "--state", "idle"]);
    let asked = client::ask(&mut bus, "exit 3", PATIENCE).expect("an outcome");
    assert_eq!(asked.outcome, AskOutcome::Ended, "{asked:?}");
    assert_eq!(home.run(["ask", "no-such-session", "hi"]).status.code(), Some(3));
}
