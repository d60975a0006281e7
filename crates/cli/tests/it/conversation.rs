//! `convert --as conversation`: prompts and answers, who asked, tools, questions and their
//! decisions, of a session with an agent that keeps a journal and asks for permission.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Home, eventually};

const RULES: &str = r#"[turns]
commands = ["clerk"]
by_state = true
settle_ms = 40
answer_within_ms = 2000
frame = '^clerk>'

[[turns.journal]]
name = "log"
path = "{CLERK_HOME:~/.clerk}/log.jsonl"
lines = true
time = "at"

[[turns.journal.record]]
when = { kind = "asked" }
asked = ["text"]
state = "working"

[[turns.journal.record]]
when = { kind = "said" }
said = ["text"]

[[turns.journal.record]]
when = { kind = "tool" }
used = { id = "id", name = "tool", about = ["file"] }

[[turns.journal.record]]
when = { kind = "result" }
returned = { id = "id", text = ["text"], failed = "failed" }

[[turns.journal.record]]
when = { kind = "end" }
ended = true
state = "idle"

[[turns.state]]
name = "question"
state = "blocked"
screen = ['^❯ 1\. ']

[[turns.state]]
name = "busy"
state = "working"
title = '^busy'

[[turns.state]]
name = "rest"
state = "idle"
title = '^rest'
screen = ['^clerk>']
"#;

/// Answers with a block of code, and asks before it files something.
const CLERK: &str = r#"#!/bin/bash
mkdir -p ~/.clerk
note() { printf '{"at":"%s",%s}\n' "$(date -u +%FT%T.%3NZ)" "$1" >> ~/.clerk/log.jsonl; }
printf '\033[?1049h\033[H'
while printf '\033]0;rest\a\r\nclerk> '; read -r x; do
  printf '\033]0;busy\a\033[H\033[J'
  note "\"kind\":\"asked\",\"text\":\"$x\""
  case $x in
  file*)
    note '"kind":"tool","id":"t1","tool":"File","file":"a.txt"'
    printf 'Do you want to file a.txt?\r\n\r\n❯ 1. Yes\r\n  2. No\r\n\r\nEsc to cancel'
    stty raw -echo; k=$(dd bs=1 count=1 2>/dev/null); stty -raw echo
    printf '\033[H\033[J'
    if [ "$k" = 1 ]; then note '"kind":"result","id":"t1","text":"filed","failed":false'
    else note '"kind":"result","id":"t1","text":"denied","failed":true'; fi
    note '"kind":"said","text":"That was **it**."' ;;
  *) note '"kind":"said","text":"As code:\n\n```sh\necho \"<b>\"\n```"' ;;
  esac
  sleep 0.2; echo "answered: $x"; note '"kind":"end"'
done
printf '\033[?1049l'
"#;

fn stdout(home: &Home, args: &[&str]) -> String {
    let out = home.run(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// Records a talk of a person and a bot with the clerk.
fn talk(home: &Home) {
    let agents = home.path(".config/tapdeck/agents");
    fs::create_dir_all(&agents).expect("a folder");
    fs::write(agents.join("clerk.toml"), RULES).expect("written");
    fs::write(home.path("clerk"), CLERK).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path("clerk"), mode).expect("executable");
    stdout(home, &["rec", "-d", "--name", "clerk", "talk.ahr", "--", "./clerk"]);
    let wait = |state: &str| stdout(home, &["wait", "clerk", "--state", state, "--timeout", "30"]);
    wait("idle");
    stdout(home, &["paste", "clerk", "show it"]);
    wait("idle");
    for (prompt, answer) in [("file it", "approve"), ("file more", "deny")] {
        stdout(home, &["paste", "--bot", "clerk", prompt]);
        wait("blocked");
        stdout(home, &[answer, "clerk"]);
        wait("idle");
    }
    stdout(home, &["paste", "clerk", "my key is sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"]);
    wait("idle");
    stdout(home, &["send", "clerk", "C-d"]);
    eventually("the end of the recording", || home.is_finished("talk.ahr"));
}

#[test]
fn a_recording_tells_the_conversation() {
    let home = Home::new();
    talk(&home);
    let export = |to: &str, more: &[&str]| {
        let mut args = vec!["convert", "-q", "talk.ahr", "-o", "-", "--as", "conversation", "--to", to];
        args.extend(more);
        stdout(&home, &args)
    };
    let chat: Value = serde_json::from_str(&export("json", &[])).expect("JSON");
    assert_eq!(
        (&chat["kind"], &chat["version"], &chat["prompts"]),
        (&json!("conversation"), &json!(1), &json!(4))
    );
    let entries = chat["entries"].as_array().expect("a list");
    let kinds = |n: usize| -> Vec<&str> {
        let answer = entries[n]["answer"].as_array().expect("a list");
        answer.iter().map(|passage| passage["kind"].as_str().expect("a kind")).collect()
    };
    assert_eq!((kinds(0), kinds(1)), (vec!["text"], vec!["question", "tool", "text"]), "{chat}");
    assert_eq!(entries[0]["by"]["role"], "human");
    assert_eq!(entries[1]["by"], json!({"name": "paste", "role": "bot"}));
    assert_eq!(entries[0]["answer"][0]["text"], "As code:\n\n```sh\necho \"<b>\"\n```");
    for (n, label, result, failed) in [(1, "Yes", "filed", false), (2, "No", "denied", true)] {
        let [question, tool] = [0, 1].map(|at| &entries[n]["answer"][at]);
        assert_eq!((&tool["name"], &tool["about"]), (&json!("File"), &json!("a.txt")), "{tool}");
        assert_eq!((&tool["result"], &tool["failed"]), (&json!(result), &json!(failed)), "{tool}");
        assert_eq!(question["text"], "Do you want to file a.txt?");
        assert_eq!(
            (&question["answer"]["label"], &question["by"]["name"]),
            (&json!(label), &json!("answer"))
        );
    }

    let md = export("md", &[]);
    for part in [
        "\n- Prompts: 4\n",
        "\n> show it\n",
        "As code:\n\n```sh\necho \"<b>\"\n```\n",
        "\n## 2. Bot (paste), ",
        "**Tool: File** `a.txt`\n\n```text\nfiled\n```\n",
        "**Asked:** Do you want to file a.txt?\n\n1. Yes\n2. No\n\n**Decided:** 1. Yes, by Person (answer) after ",
        "**Tool: File**, failed or denied `a.txt`\n",
        "That was **it**.\n",
    ] {
        assert!(md.contains(part), "{part:?} is not in {md}");
    }
    assert!(!md.contains("clerk>") && !md.contains("answered:"), "{md}");
    let html = export("html", &[]);
    assert!(html.contains("<pre>echo &quot;&lt;b&gt;&quot;</pre>") && !html.contains("<script"), "{html}");
    assert!(
        html.contains("<li class=\"chosen\">2. No</li>") && html.contains("prefers-color-scheme"),
        "{html}"
    );

    let redacted = home.run(["convert", "talk.ahr", "-o", "chat.md", "--as", "conversation", "--redact"]);
    let said = String::from_utf8_lossy(&redacted.stderr);
    let chat = fs::read_to_string(home.path("chat.md")).expect("written");
    assert!(md.contains("Zm9vYmFy") && !chat.contains("Zm9vYmFy") && chat.contains("my key is"), "{chat}");
    assert!(said.contains("4 prompts") && said.contains("\ntapdeck: redacted: "), "{said}");
}

#[test]
fn what_has_no_conversation_is_told() {
    let home = Home::new();
    fs::write(home.path("demo.cast"), "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"hi\"]\n")
        .expect("written");
    stdout(&home, &["rec", "-q", "--headless", "plain.ahr", "--", "echo", "hi"]);
    let cases: [(&[&str], i32, &str); 5] = [
        (&["demo.cast", "-o", "a.md", "--as", "conversation"], 3, "demo.cast has no turns"),
        (&["plain.ahr", "-o", "a.md", "--as", "conversation"], 3, "only an .ahr of a session with prompts"),
        (&["plain.ahr", "-o", "a.csv", "--as", "conversation"], 2, "as csv; use md, html or json"),
        (&["plain.ahr", "-o", "a.md", "--redact"], 2, "--as"),
        (&["plain.ahr", "-o", "a.html", "--as", "conversation", "--theme", "dark"], 2, "--theme"),
    ];
    for (args, code, message) in cases {
        let out = home.run([&["convert"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
        assert!(!home.path("a.md").exists() && !home.path("a.csv").exists(), "{args:?}");
    }
}
