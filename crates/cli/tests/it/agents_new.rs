//! `tapdeck agents new`: what is learned by watching a program drives the same program afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::live::Detached;
use crate::support::Home;

/// A chat that reads lines behind a prompt.
const LINES: &str = r#"
import time
while True:
    line = input("me> ")
    time.sleep(0.2)
    print("bot: you said", line)
"#;

/// A chat that draws an input field in a box, with a hint in it and a mark while it works.
const BOX: &str = r#"
import os, sys, time, tty
tty.setraw(0)
history, text = [], ""
def draw(*busy):
    cols, rows = os.get_terminal_size()
    wide = cols - 2
    shown = text if text else "\x1b[2mAsk anything\x1b[22m"
    pad = " " * (wide - 3 - len(text or "Ask anything"))
    lines = (history + list(busy))[-(rows - 4):]
    field = ["╭" + "─" * wide + "╮", "│ > " + shown + pad + "│", "╰" + "─" * wide + "╯", "  ? for help"]
    drawn = "\r\n".join(line + "\x1b[K" for line in lines + field)
    sys.stdout.write("\x1b[H" + drawn + "\x1b[J\x1b[%d;%dH" % (len(lines) + 2, 5 + len(text)))
    sys.stdout.flush()
sys.stdout.write("\x1b[?2004h")
draw()
while True:
    typed = os.read(0, 1024).decode().replace("\x1b[200~", "").replace("\x1b[201~", "")
    for c in typed:
        if c >= " ":
            text += c
        elif c == "\r" and text:
            asked, text = text, ""
            history += ["you said: " + asked, ""]
            for n in range(8):
                draw("✻ Thinking… (%ds, esc to interrupt)" % n)
                time.sleep(0.1)
            history += ["The answer to " + asked + ",", "in two lines.", ""]
    draw()
"#;

/// Learns the rules of a program in a session, and asks one of its later sessions.
fn learn_and_ask(name: &str, program: &str, found: &str, answer: &str) {
    if !tapdeck_needs::has("python3") {
        return;
    }
    let home = Home::new();
    let script = format!("{name}.py");
    fs::write(home.path(&script), program).expect("written");
    let command = ["python3", &script];
    let watched = Detached::start(&home, &[], &command);
    let mut child = home.tapdeck(["agents", "new", "mybot", &watched.id, "--watch", "9s"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    assert!(line.contains("watching"), "{line}");
    // At rest, then a prompt that stands there for a moment, then at rest again.
    watched.ok(&["wait", "--idle", "1.8s"]);
    watched.ok(&["type", "--", "hello there"]);
    watched.ok(&["wait", "--idle", "0.4s"]);
    watched.ok(&["send", "Enter"]);
    watched.wait_text("hello there,?$");
    watched.ok(&["wait", "--idle", "1.8s"]);
    said.read_to_string(&mut line).expect("text");
    let ended = child.wait().expect("it ends");
    assert!(ended.success(), "{line}");
    assert!(line.contains(&format!("the rules are for the command {name}")), "{line}");
    assert!(line.contains(found), "{line}");
    let session = Detached::start(&home, &[], &command);
    session.ok(&["wait", "--state", "idle"]);
    for prompt in ["hi", "what now?"] {
        assert_eq!(session.ok(&["ask", prompt]), answer.replace("PROMPT", prompt));
    }
    session.ok(&["paste", "and this"]);
    session.ok(&["wait", "--state", "idle"]);
    let shown = home.run(["turns", "show", "--text", &format!("{}:3", session.id)]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), answer.replace("PROMPT", "and this"));
}

#[test]
fn a_prompt_of_lines_is_learned() {
    learn_and_ask("chat", LINES, "it shows the prompt \"me> \"", "bot: you said PROMPT\n");
}

#[test]
fn an_input_field_in_a_box_is_learned() {
    let found = "its input field begins with > in a box, with the hint \"Ask anything\"";
    learn_and_ask("boxed", BOX, found, "The answer to PROMPT,\nin two lines.\n");
}
