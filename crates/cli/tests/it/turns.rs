//! Turns and states, live: real programs that read a line at a time, driven over the bus and from
//! the command line.

use serde_json::{Value, json};
use tapdeck_needs::has;
use tapdeck_proto::bus::{Cmd, Role};
use tapdeck_serve::client::{Bus, Hello};
use tapdeck_serve::door::Address;

use crate::support::{Home, PATIENCE, Seat, eventually};

/// A session in the background, ended with the test.
struct Session<'h> {
    home: &'h Home,
    id: String,
}

impl<'h> Session<'h> {
    fn start(home: &'h Home, env: &[(&str, &str)], command: &[&str]) -> Self {
        Self::start_with(home, &[], env, command)
    }

    fn start_with(home: &'h Home, options: &[&str], env: &[(&str, &str)], command: &[&str]) -> Self {
        let args = [&["run", "-d"], options, &["--"], command].concat();
        let out = home.tapdeck(args).envs(env.iter().copied()).output().expect("tapdeck runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let id = String::from_utf8(out.stdout).expect("text").trim().to_owned();
        Self { home, id }
    }

    fn tapdeck(&self, args: &[&str]) -> (i32, String) {
        let args: Vec<&str> = args.iter().map(|a| if *a == "@" { self.id.as_str() } else { a }).collect();
        let out = self.home.run(&args);
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.code().unwrap_or(-1), text)
    }

    fn wait(&self, state: &str) {
        let (code, said) = self.tapdeck(&["wait", "@", "--state", state, "--timeout", "30"]);
        let look = |what: &str| self.tapdeck(&[what, "@"]).1;
        assert_eq!(code, 0, "not {state}: {said} {} {}", look("explain"), look("peek"));
    }

    fn bus(&self) -> Bus {
        let socket = self.home.path("run").join("tapdeck").join(format!("{}.sock", self.id));
        let mut bus = Bus::connect(&Address::Unix(socket)).expect("connected");
        bus.hello(&Hello::new(Role::Bot, "test"), PATIENCE).expect("welcome");
        bus
    }

    fn turns(&self) -> Vec<Value> {
        let (_, text) = self.tapdeck(&["turns", "@", "--json"]);
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.tapdeck(&["kill", "@"]);
    }
}

fn cmd(bus: &mut Bus, line: &str) -> String {
    let answer = bus.request(&Cmd(line.to_owned()), PATIENCE).expect("an answer");
    assert!(!answer.timeout, "{line}: {answer:?}");
    answer.text
}

/// Program, environment, its commands with what each must print, and one that prints `a` and goes
/// on for ever.
type Repl<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a str);

const TWO_LINES: &str = r"\[\e[32m\]me@host\[\e[0m\] \[\e[34m\]\w\[\e[0m\]\n\[\e[35m\]❯\[\e[0m\] ";

#[test]
fn each_command_has_exactly_its_output() {
    let repls: [Repl<'_>; 7] = [
        (
            &["bash", "--norc"],
            &[],
            &[
                ("echo hi", "hi\n"),
                ("printf abc", "abc"),
                ("true", ""),
                ("seq 100 | tail -3", "98\n99\n100\n"),
                ("printf '\\033[31mred\\033[0m\\n'", "red\n"),
                ("echo; echo b; echo", "\nb\n\n"),
            ],
            "echo a; sleep 1000",
        ),
        (
            &["bash", "--norc"],
            &[("PS1", TWO_LINES)],
            &[("echo hi", "hi\n"), ("cd /usr", ""), ("printf 'a\\nb'", "a\nb"), ("pwd", "/usr\n")],
            "echo a; sleep 1000",
        ),
        (
            &["bash", "--norc", "--noediting"],
            &[],
            &[("echo hi", "hi\n"), ("printf abc", "abc"), ("true", "")],
            "echo a; sleep 1000",
        ),
        (
            &["zsh", "-f"],
            &[("PROMPT", "%F{green}%~%f\n%F{blue}->%f ")],
            &[("echo hi", "hi\n"), ("printf abc", "abc"), ("cd /usr", ""), ("seq 3", "1\n2\n3\n")],
            "echo a; sleep 1000",
        ),
        (
            &["python3", "-q"],
            &[],
            &[("print(6*7)", "42\n"), ("x = 1", ""), ("print('a\\nb')", "a\nb\n"), ("x", "1\n")],
            "import time; print('a'); time.sleep(1000)",
        ),
        (
            &["sqlite3"],
            &[],
            &[("select 1;", "1\n"), ("select 'a' union select 'b';", "a\nb\n")],
            "select 'a'; with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c;",
        ),
        (
            &["node"],
            &[("NODE_NO_READLINE", "")],
            &[("1+1", "2\n"), ("console.log('x')", "x\nundefined\n")],
            "console.log('a'); while (true);",
        ),
    ];
    for (command, env, lines, endless) in repls {
        if !has(command[0]) {
            continue;
        }
        let home = Home::new();
        let session = Session::start(&home, env, command);
        session.wait("idle");
        let mut bus = session.bus();
        for (line, wanted) in lines {
            let got = cmd(&mut bus, line);
            assert_eq!(&got, wanted, "{command:?}: {line}\n{}", session.tapdeck(&["peek", "@"]).1);
        }
        drop(bus);
        let wanted: Vec<&str> = lines.iter().filter(|(_, w)| !w.is_empty()).map(|(l, _)| *l).collect();
        let turns = session.turns();
        let got: Vec<&str> = turns.iter().filter_map(|t| t["input"].as_str()).collect();
        assert_eq!(got, wanted, "{command:?}: no empty turns, each with what was asked");
        // Broken off in the middle; and then it goes on as if nothing had been.
        session.tapdeck(&["type", "@", endless, "--enter"]);
        session.tapdeck(&["wait", "@", "--text", "^a$"]);
        session.wait("working");
        session.tapdeck(&["send", "@", "C-c"]);
        session.wait("idle");
        let (_, turn) = session.tapdeck(&["turns", "show", "@", "--json"]);
        let turn: Value = serde_json::from_str(&turn).expect("JSON");
        let text = turn["text"].as_str().expect("text");
        assert!(text.starts_with("a\n") && !text.contains("^C"), "{command:?}: {turn}");
        assert_eq!((&turn["interrupted"], &turn["input"]), (&json!(true), &json!(endless)), "{command:?}");
        let (line, wanted) = lines[0];
        assert_eq!(cmd(&mut session.bus(), line), wanted, "{command:?}, after the interrupt");
    }
}

#[test]
fn an_interrupted_turn_says_so_and_turns_survive_in_the_recording() {
    let home = Home::new();
    let tape = home.path("demo.ahr");
    let tape = tape.to_str().expect("text");
    let out = home.run(["rec", "-d", tape, "--", "bash", "--norc"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let id = String::from_utf8(out.stdout).expect("text").trim().to_owned();
    let session = Session { home: &home, id };
    session.wait("idle");
    session.tapdeck(&["type", "@", "echo one; sleep 1000", "--enter"]);
    session.tapdeck(&["wait", "@", "--text", "^one$"]);
    session.wait("working");
    session.tapdeck(&["send", "@", "C-c"]);
    session.wait("idle");
    session.tapdeck(&["type", "@", "printf '\\033[1mtwo\\033[m'", "--enter"]);
    session.tapdeck(&["wait", "@", "--text", "^two"]);
    session.wait("idle");
    let (_, explained) = session.tapdeck(&["explain", "@"]);
    assert!(explained.contains("idle") && explained.contains("rules     shell"), "{explained}");
    let live = session.turns();
    assert_eq!(live.len(), 2, "{live:?}");
    assert_eq!((&live[0]["interrupted"], &live[1]["interrupted"]), (&json!(true), &json!(false)));
    let id = live[1]["turn_id"].as_str().expect("an id").to_owned();
    assert_eq!(session.tapdeck(&["turns", "show", &id]).1, "two\n");
    assert_eq!(session.tapdeck(&["turns", "show", &id, "--raw"]).1, "\u{1b}[1mtwo\u{1b}[m");
    assert_eq!(session.tapdeck(&["turns", "show", "@:9"]).0, 3);
    drop(session);
    let out = home.run(["turns", tape, "--json"]);
    let recorded: Vec<Value> = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert_eq!(recorded[0]["input"], json!("echo one; sleep 1000"));
    let id = recorded[1]["turn_id"].as_str().expect("an id that can be given back");
    let out = home.run(["turns", "show", id, "--raw"]);
    assert_eq!(out.stdout, b"\x1b[1mtwo\x1b[m");
    assert_eq!(home.run(["convert", "-q", tape, "-o", "t.cast"]).status.code(), Some(0));
    for args in [&["turns", "t.cast"][..], &["turns", "show", "t.cast:1"]] {
        let out = home.run(args);
        assert_eq!(out.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&out.stderr).contains("carries no turns"));
    }
}

#[test]
fn a_prompt_is_delivered_once_or_said_not_to_be() {
    let home = Home::new();
    let session = Session::start(&home, &[], &["bash", "--norc"]);
    session.wait("idle");
    let long = format!("echo {}", "0123456789 ".repeat(9_100));
    let texts = ["echo hello", "true", "for i in 1 2\ndo echo line $i\ndone", "echo a\necho b", &long];
    let mut wanted = Vec::new();
    for round in 0..4 {
        for text in texts {
            let (code, said) = session.tapdeck(&["paste", "@", text]);
            assert_eq!(code, 0, "round {round}: {said}");
            assert!(said.starts_with("submitted: "), "{said}");
            session.wait("idle");
            if text != "true" {
                wanted.push(text.lines().next().expect("a line").to_owned());
            }
        }
    }
    let turns = session.turns();
    assert_eq!(turns.len(), wanted.len(), "each was submitted once: {turns:?}");
    let (_, answer) = session.tapdeck(&["turns", "show", "@"]);
    assert_eq!(answer.trim_end(), long.strip_prefix("echo ").expect("a prefix").trim_end());
    // More lines than the screen has rows.
    let tall: String = (1..=100).map(|n| format!("echo line {n}\n")).chain(["echo end".into()]).collect();
    let (code, said) = session.tapdeck(&["paste", "@", &tall]);
    assert!(code == 0 && said.starts_with("submitted: "), "{said}");
    session.wait("idle");
    assert!(session.tapdeck(&["turns", "show", "@"]).1.ends_with("line 100\nend\n"));
    // Text that another client began is not submitted along with it.
    session.tapdeck(&["type", "@", "rm -rf ./nothing "]);
    session.tapdeck(&["wait", "@", "--text", "nothing"]);
    let (code, said) = session.tapdeck(&["paste", "@", "echo more"]);
    assert!(code == 1 && said.contains("blocked: ") && said.contains("rm -rf ./nothing"), "{said}");
    session.tapdeck(&["send", "@", "C-u"]);
    session.tapdeck(&["send", "@", "Up"]);
    session.tapdeck(&["wait", "@", "--text", r"\$ echo end|# echo end"]);
    let (code, said) = session.tapdeck(&["paste", "@", "echo more"]);
    assert!(code == 1 && said.contains("blocked: "), "{said}");
    session.tapdeck(&["send", "@", "C-c"]);
    session.wait("idle");
    session.tapdeck(&["send", "@", "C-r"]);
    session.tapdeck(&["type", "@", "hello"]);
    session.tapdeck(&["wait", "@", "--text", "i-search.*hello.*echo hello"]);
    let (code, said) = session.tapdeck(&["paste", "@", "echo more"]);
    assert!(code == 1 && said.contains("blocked: ") && said.contains("i-search"), "{said}");
    session.tapdeck(&["send", "@", "C-c"]);
    session.wait("idle");
    let (code, said) = session.tapdeck(&["paste", "@", "echo more"]);
    assert_eq!(code, 0, "{said}");
    session.wait("idle");
    // A terminal in line mode drops what is too long for it.
    session.tapdeck(&["type", "@", "cat > /dev/null", "--enter"]);
    session.wait("working");
    let (code, said) = session.tapdeck(&["paste", "@", &long, "--timeout", "1"]);
    assert!(code == 1, "{said}");
    session.tapdeck(&["send", "@", "C-c"]);
    session.wait("idle");
    // A question is not answered by a prompt that was for another client.
    session.tapdeck(&["type", "@", "read -p 'Password: ' x", "--enter"]);
    session.wait("blocked");
    let (code, said) = session.tapdeck(&["paste", "@", "echo wrong"]);
    assert!(code == 1 && said.contains("blocked: "), "{said}");
    session.tapdeck(&["send", "@", "C-c"]);
    session.wait("idle");
    session.tapdeck(&["type", "@", "stty -echo; sleep 1000", "--enter"]);
    session.wait("working");
    let (code, said) = session.tapdeck(&["paste", "@", "echo late", "--timeout", "1"]);
    assert!(code == 1 && said.contains("stalled: ") && said.contains("nothing was sent"), "{said}");
}

/// The terminal itself shows what is typed before a program reads it, and that was taken for the
/// program's answer.
#[test]
fn a_prompt_waits_for_a_program_that_has_only_begun() {
    let home = Home::new();
    std::fs::write(home.path("rc"), "echo welcome; sleep 1.5\n").expect("written");
    let session = Session::start(&home, &[], &["bash", "--rcfile", "rc", "-i"]);
    let (code, said) = session.tapdeck(&["paste", "@", "echo hello"]);
    assert!(code == 0 && said.starts_with("submitted: "), "{said}");
    session.wait("idle");
    let turns = session.turns();
    assert_eq!((turns.len(), &turns[0]["input"]), (1, &json!("echo hello")), "{turns:?}");
    drop(session);
    let session = Session::start(&home, &[], &["sleep", "1000"]);
    let (code, said) = session.tapdeck(&["paste", "@", "echo hello", "--timeout", "1"]);
    assert!(code == 1 && said.contains("stalled: ") && said.contains("nothing was sent"), "{said}");
}

/// A full-screen program without rules: its activity alone said that it had taken the prompt, and
/// the prompt was sent only when all the time was over.
#[test]
fn a_full_screen_program_without_rules_is_given_its_prompts() {
    if !has("python3") {
        return;
    }
    let script = r#"
import os, sys, termios, tty
tty.setraw(0)
deaf = sys.argv[1] == "deaf"
os.write(1, b"\x1b[?1049h\x1b[?2004hready\r\n> ")
text = b""
while True:
    data = os.read(0, 4096).replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")
    if data.endswith(b"\r") and not deaf:
        os.write(1, b"\x1b[H\x1b[2Jyou said " + text + b"\r\n> ")
        text = b""
    else:
        text += data.replace(b"\r", b"")
        os.write(1, b"\x1b[2;1H\x1b[K> " + text)
"#;
    let home = Home::new();
    std::fs::write(home.path("bot.py"), script).expect("written");
    for (manner, code, says) in [("hears", 0, "submitted: "), ("deaf", 1, "stalled: Enter was sent once")] {
        let session = Session::start(&home, &[], &["python3", "bot.py", manner]);
        session.wait("idle");
        let limit = if code == 0 { "600" } else { "4" };
        let (got, said) = session.tapdeck(&["paste", "@", "good morning", "--timeout", limit]);
        assert!(got == code && said.contains(says), "{manner}: {said}");
        let heard = session.tapdeck(&["peek", "@"]).1.contains("you said good morning");
        assert_eq!(heard, code == 0, "{manner}");
    }
}

/// A command, the bell of this terminal and the desktop are told of a change, and only of those
/// that were asked for.
#[test]
fn hooks_are_run_when_the_state_changes() {
    let home = Home::new();
    let script = |name: &str, text: &str| {
        let path = home.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("executable");
        path.display().to_string()
    };
    let hook =
        script("hook", "echo \"$1 $2\" >> \"$HOME/told\"; echo \"$TAPDECK_STATE_EVENT\" >> \"$HOME/events\"");
    script("notify-send", "echo \"$*\" >> \"$HOME/notified\"");
    let config = format!(
        "[hooks]\non_state = [{hook:?}, \"{{name}}\", \"{{state}}\"]\nstates = [\"idle\", \"blocked\"]\nbell = true\nnotify = true\n"
    );
    std::fs::write(home.path("config.toml"), config).expect("written");
    let mut command = home.tapdeck(["run", "--name", "hooked", "--", "bash", "--norc"]);
    let path = format!("{}:{}", home.path("").display(), std::env::var("PATH").expect("a path"));
    command.env("TAPDECK_CONFIG", home.path("config.toml")).env("PATH", path);
    let mut seat = Seat::new(command);
    let read = |name: &str| std::fs::read_to_string(home.path(name)).unwrap_or_default();
    seat.wait("the hook", |_| read("told") == "hooked idle\n");
    seat.send("read -p 'Password: ' x\r");
    seat.wait("the question", |_| read("told") == "hooked idle\nhooked blocked\n");
    seat.wait("the notice", |_| read("notified").lines().any(|l| l.starts_with("-- hooked is blocked")));
    seat.wait("the bell", |seat| seat.raw.contains(&7));
    let event: Value = serde_json::from_str(read("events").lines().next_back().expect("one")).expect("JSON");
    assert_eq!((&event["state"], &event["session_name"]), (&json!("blocked"), &json!("hooked")));
    seat.send("x\rexit\r");
    assert!(seat.end().success());
}

#[test]
fn several_lines_are_not_typed_into_a_program_that_would_run_each() {
    let home = Home::new();
    let session = Session::start(&home, &[], &["bash", "--norc", "--noediting"]);
    session.wait("idle");
    let (code, said) = session.tapdeck(&["paste", "@", "touch one\ntouch two"]);
    assert!(code == 1 && said.contains("bracketed paste"), "{said}");
    assert!(!home.path("one").exists());
    let (code, said) = session.tapdeck(&["paste", "@", "echo \u{1b}[31mx\u{7}"]);
    assert_eq!(code, 0, "{said}");
    session.wait("idle");
    assert_eq!(session.tapdeck(&["turns", "show", "@"]).1, "[31mx\n", "without its controls");
}

/// An agent is judged by its own rules also when it is started from a shell, or by a script within
/// one.
#[test]
fn what_is_started_from_a_shell_has_its_own_turns() {
    let home = Home::new();
    let rules =
        "[turns]\ncommands = [\"parrot\"]\n[[turns.prompt]]\nname = \"perch\"\npattern = '^parrot> $'\n";
    let agents = home.path("config/tapdeck/agents");
    std::fs::create_dir_all(&agents).expect("a folder");
    std::fs::write(agents.join("parrot.toml"), rules).expect("written");
    let parrot = "#!/bin/sh\nwhile printf 'parrot> '; read x; do echo \"$x $x\"; done\n";
    std::fs::write(home.path("parrot"), parrot).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path("parrot"), mode).expect("executable");
    let config = home.path("config");
    let env = [("XDG_CONFIG_HOME", config.to_str().expect("text")), ("PS1", "$ ")];
    let session = Session::start(&home, &env, &["bash", "--norc"]);
    session.wait("idle");
    // Each asks as another client, so that none holds the stick meanwhile.
    let ask = |line: &str| cmd(&mut session.bus(), line);
    assert_eq!(ask("cd; echo first"), "first\n");
    let judged_by = |name: &str| {
        let rules = format!("rules     {name}");
        eventually(&rules, || session.tapdeck(&["explain", "@"]).1.contains(&rules));
    };
    for (starts, again) in [("./parrot", "one"), ("bash -c './parrot; true'", "two")] {
        let (code, said) = session.tapdeck(&["type", "@", starts, "--enter"]);
        assert_eq!(code, 0, "{said}");
        judged_by("parrot");
        session.wait("idle");
        assert_eq!(ask(again), format!("{again} {again}\n"));
        // The client before may not have released the stick yet.
        eventually("the end of input", || session.tapdeck(&["send", "@", "C-d"]).0 == 0);
        judged_by("shell");
        session.wait("idle");
        assert_eq!(ask("echo back"), "back\n");
    }
    assert_eq!(session.turns().len(), 5);
}

/// The rest of the answer was lost, because nothing had been submitted to what looked like a
/// prompt.
#[test]
fn an_answer_with_a_prompt_in_it_is_told_to_its_end() {
    let home = Home::new();
    let session = Session::start(&home, &[("PS1", "bash-5.2# ")], &["bash", "--norc"]);
    session.wait("idle");
    let line = "printf 'bash-5.2# '; sleep 1.7; echo real";
    session.tapdeck(&["type", "@", line, "--enter"]);
    eventually("the rest of the answer", || !session.turns().is_empty());
    let last = |session: &Session<'_>| {
        let (_, turn) = session.tapdeck(&["turns", "show", "@", "--json"]);
        let turn: Value = serde_json::from_str(&turn).expect("JSON");
        (turn["input"].as_str().unwrap_or_default().to_owned(), turn["text"].clone())
    };
    assert_eq!(last(&session), (line.to_owned(), json!("bash-5.2# real\n")));
    session.wait("idle");
    assert_eq!(cmd(&mut session.bus(), "echo next"), "next\n");
    if has("python3") {
        let session = Session::start(&home, &[], &["python3", "-q"]);
        session.wait("idle");
        session.tapdeck(&["type", "@", "import time", "--enter"]);
        session.wait("idle");
        let line = "print('>>> ', end='', flush=True); time.sleep(0.7); print('real')";
        session.tapdeck(&["type", "@", line, "--enter"]);
        eventually("the rest of the answer", || last(&session).1 == json!(">>> real\n"));
        assert_eq!(last(&session).0, line);
    }
}

#[test]
fn a_shell_marks_its_prompts_and_outputs_when_asked_to() {
    // What the user's own file defines must be there, and the file stays as it is.
    let shells = [
        ("bash", ".bashrc", "alias hello='echo from rc'\nPROMPT_COMMAND='PS1=\"\\w\\n$ \"'\n"),
        ("zsh", ".zshrc", "alias hello='echo from rc'\nprecmd() { PS1=$'%~\\n$ '; }\n"),
        (
            "fish",
            ".config/fish/config.fish",
            "alias hello 'echo from rc'\nfunction fish_prompt; printf '%s\\n$ ' $PWD; end\n",
        ),
    ];
    for (shell, file, text) in shells {
        if !has(shell) {
            continue;
        }
        let home = Home::new();
        let rc = home.path(file);
        std::fs::create_dir_all(rc.parent().expect("a folder")).expect("a folder");
        std::fs::write(&rc, text).expect("written");
        let tmp = home.path("tmp");
        std::fs::create_dir(&tmp).expect("a folder");
        let env = [("TMPDIR", tmp.to_str().expect("text"))];
        let session = Session::start_with(&home, &["--shell-integration"], &env, &[shell]);
        session.wait("idle");
        let mut bus = session.bus();
        let false_prompt = "printf '$ '; sleep 1.7; printf '>>> '; sleep 0.3; echo real";
        for (line, wanted) in [
            ("hello", "from rc\n"),
            ("echo \"z$TAPDECK_ZDOTDIR$ZDOTDIR\"", "z\n"),
            (false_prompt, "$ >>> real\n"),
            ("true", ""),
            ("printf abc", "abc"),
            ("cd /usr; pwd", "/usr\n"),
            ("sh -c 'exit 3'", ""),
            (
                "echo $?$status",
                if shell == "bash" {
                    "3\n"
                } else if shell == "zsh" {
                    "33\n"
                } else {
                    ""
                },
            ),
        ] {
            if !(shell == "fish" && line.starts_with("echo $?")) {
                assert_eq!(cmd(&mut bus, line), wanted, "{shell}: {line}");
            }
        }
        drop(bus);
        let before = session.turns().len();
        session.tapdeck(&["type", "@", "sleep 0.5; echo A\necho B\necho C", "--enter"]);
        eventually("all three", || session.turns().len() == before + 3);
        session.wait("idle");
        let (_, told) = session.tapdeck(&["explain", "@"]);
        assert!(told.contains("mark"), "{shell}: {told}");
        let texts: Vec<String> = (before + 1..=before + 3)
            .map(|n| session.tapdeck(&["turns", "show", &format!("{}:{n}", session.id), "--text"]).1)
            .collect();
        assert_eq!(texts, ["A\n", "B\n", "C\n"], "{shell}");
        session.tapdeck(&["kill", "@"]);
        let is_empty = || {
            std::fs::read_dir(&tmp)
                .expect("a folder")
                .all(|f| !f.expect("an entry").file_name().to_string_lossy().starts_with("tapdeck-shell-"))
        };
        eventually("the temporary files are gone", is_empty);
        assert_eq!(std::fs::read_to_string(&rc).expect("read"), text, "{shell}");
    }
}
