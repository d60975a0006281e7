//! `tapdeck run` without a terminal: from pipes, from cron, in CI.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use tapdeck_needs::has;

use crate::support::{Home, PATIENCE, eventually, lives};

#[test]
fn ends_as_the_program_ends() {
    let home = Home::new();
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 7", Some(7), None),
        ("exit 255", Some(255), None),
        ("kill -SEGV $$", None, Some(11)),
        ("kill -TERM $$", None, Some(15)),
        ("kill -KILL $$", None, Some(9)),
        ("kill -INT $$", None, Some(2)),
        ("kill -HUP $$", None, Some(1)),
    ] {
        for how in [&["run", "--"][..], &["run", "--no-pty", "--"], &["run", "--headless", "--"]] {
            let status = home.run(how.iter().chain(&["sh", "-c", script])).status;
            assert_eq!((status.code(), status.signal()), (code, signal), "{how:?} {script}");
        }
    }
}

/// It ended as if its reader were gone, without a message.
#[test]
fn output_that_cannot_be_written_is_said() {
    let home = Home::new();
    for how in [&["run", "--"][..], &["run", "--no-pty", "--"], &["rec", "-q", "full.ahr", "--"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
        let args = how.iter().chain(&["sh", "-c", "echo out; exec sleep 300"]);
        let child = home.tapdeck(args).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).spawn();
        let out = child.and_then(|child| child.wait_with_output()).expect("it ends");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), said.lines().count()), (Some(4), 1), "{how:?}: {said}");
        assert!(said.contains("No space left on device"), "{how:?}: {said}");
    }
    assert_eq!(home.run(["verify", "full.ahr"]).status.code(), Some(0));
}

/// The descriptors bore the mark of those that are closed on exec, which no terminal's own have.
#[test]
fn descriptors_are_as_a_terminal_gives_them() {
    let home = Home::new();
    if !has("python3") {
        return;
    }
    let script = "import fcntl; print([fcntl.fcntl(n, fcntl.F_GETFL) & ~0o100000 for n in range(3)])";
    let out = home.run(["run", "--", "python3", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "[2, 2, 2]");
}

#[test]
fn a_program_that_cannot_be_started_is_one_sentence() {
    let home = Home::new();
    std::fs::write(home.path("data"), "not a program").expect("written");
    std::fs::write(home.path("script"), "#!/no/such/interpreter\n").expect("written");
    std::fs::set_permissions(home.path("script"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("set");
    for (program, code, says) in [
        ("/nonexistent", 127, "/nonexistent: command not found"),
        ("no-such-command-anywhere", 127, "no-such-command-anywhere: command not found"),
        ("", 127, "command not found"),
        ("./data", 126, "./data: cannot be executed"),
        ("/", 126, "/: cannot be executed"),
        ("./script", 127, "its interpreter /no/such/interpreter does not exist"),
    ] {
        let out = home.run(["run", "--", program]);
        let message = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{program}: {message}");
        assert!(message.contains(says), "{program}: {message}");
        assert_eq!(message.lines().count(), 1, "{program}: {message}");
    }
    let out = home.run(["run", "--cwd", "/no/such/folder", "--", "true"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot run in /no/such/folder"));
}

#[test]
fn the_environment_is_the_users_own() {
    let home = Home::new();
    let odd = |command: &mut std::process::Command| {
        command.env("EMPTY", "").env("LINES_AND", "a\nb=c").env("SPACE", " x ").stdin(Stdio::null());
    };
    let mut bare = home.command("env");
    odd(&mut bare);
    let mut wrapped = home.tapdeck(["run", "--no-pty", "--", "env", "-0"]);
    odd(&mut wrapped);
    let bare = bare.arg("-0").output().expect("env runs").stdout;
    assert_eq!(wrapped.output().expect("tapdeck runs").stdout, bare);
    let mut wrapped = home.tapdeck(["run", "--", "env", "-0"]);
    odd(&mut wrapped);
    let on_terminal = String::from_utf8(wrapped.output().expect("tapdeck runs").stdout).expect("text");
    assert_eq!(on_terminal.replace("\r\n", "\n"), String::from_utf8(bare).expect("text"));
}

#[test]
fn piped_input_reaches_the_program_once_and_then_ends() {
    let home = Home::new();
    for (input, script, output) in [
        ("hi\n", "cat", "hi\r\n"),
        ("no line end", "cat", "no line end"),
        ("", "cat", ""),
        ("a\nb\n", "read x; echo got $x; cat", "got a\r\nb\r\n"),
        ("x\n", "cat; echo one; cat; echo two", "x\r\none\r\ntwo\r\n"),
        ("5\n", "wc -l; exit 3", "1\r\n"),
    ] {
        let mut child = home
            .tapdeck(["run", "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tapdeck runs");
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("taken");
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&out.stdout), output, "{input:?} into {script:?}");
    }
}

#[test]
fn an_interactive_shell_on_a_pipe_ends_with_its_input() {
    let home = Home::new();
    let mut child = home
        .tapdeck(["run", "--", "bash", "--norc"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tapdeck runs");
    child.stdin.take().expect("piped").write_all(b"echo 6 times 7 is $((6*7))\n").expect("taken");
    let out = child.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&out.stdout).contains("6 times 7 is 42"));
}

#[test]
fn a_reader_that_has_had_enough_ends_it_quietly() {
    let home = Home::new();
    let mut child = home
        .tapdeck(["run", "--", "sh", "-c", "echo $$; exec yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tapdeck runs");
    let mut stdout = child.stdout.take().expect("piped");
    let mut head = [0; 64];
    let n = stdout.read(&mut head).expect("some output");
    let pid: i32 = String::from_utf8_lossy(&head[..n])
        .lines()
        .next()
        .and_then(|l| l.trim().parse().ok())
        .expect("a pid");
    drop(stdout);
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(
        (out.status.signal(), out.stderr.len()),
        (Some(13), 0),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(!lives(pid), "the program is gone too");
}

#[test]
fn pipes_keep_output_and_errors_apart() {
    let home = Home::new();
    let out = home.run(["run", "--no-pty", "--", "sh", "-c", "echo out; echo err >&2; tty"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "out\nnot a tty\n");
    assert_eq!(String::from_utf8_lossy(&out.stderr), "err\n");
}

#[test]
fn the_signals_that_the_user_ignores_stay_ignored_and_no_others() {
    let home = Home::new();
    let masks = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let expected = |prefix: &str| {
        let script = format!("{prefix} {masks}");
        home.command("bash").args(["-c", &script]).output().expect("bash runs").stdout
    };
    let wrapped = |prefix: &str| {
        let script = format!("{prefix} {} run --no-pty -- {masks}", crate::support::TAPDECK);
        home.command("bash").args(["-c", &script]).output().expect("bash runs").stdout
    };
    for prefix in ["", "trap '' HUP;", "trap '' PIPE CHLD;", "trap '' INT QUIT XFSZ;"] {
        let (bare, under) = (expected(prefix), wrapped(prefix));
        assert_eq!(String::from_utf8_lossy(&under), String::from_utf8_lossy(&bare), "{prefix:?}");
    }
}

/// A parent that ignores SIGCHLD makes the kernel throw exit statuses away.
#[test]
fn the_status_survives_a_parent_that_ignores_sigchld() {
    let home = Home::new();
    let script = format!("trap '' CHLD; {} run -- sh -c 'exit 9'; echo $?", crate::support::TAPDECK);
    let out = home.command("bash").args(["-c", &script]).stdin(Stdio::null()).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "9");
}

#[test]
fn a_grandchild_that_keeps_the_terminal_does_not_keep_us() {
    let home = Home::new();
    let script = "trap '' HUP; sleep 60 & echo $!; echo done";
    let out = home.run(["run", "--", "sh", "-c", script]);
    let text = String::from_utf8_lossy(&out.stdout).replace('\r', "");
    assert!(text.ends_with("done\n"), "{text}");
    let pid: i32 = text.lines().next().and_then(|l| l.parse().ok()).expect("a pid");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("killed");
}

#[test]
fn output_written_just_before_the_end_is_not_lost() {
    let home = Home::new();
    for _ in 0..20 {
        let out = home.run(["run", "--", "sh", "-c", "seq 1 3000; exit 4"]);
        let lines = String::from_utf8_lossy(&out.stdout).lines().count();
        assert_eq!((lines, out.status.code()), (3000, Some(4)));
    }
}

#[test]
fn a_time_limit_ends_the_whole_session_of_processes() {
    let home = Home::new();
    let out = home.run(["run", "--timeout", "300ms", "--", "sh", "-c", "sleep 300 & echo $!; wait"]);
    assert_eq!(out.status.signal(), Some(15));
    let pid = String::from_utf8_lossy(&out.stdout).trim().parse().expect("a pid");
    eventually("the grandchild to end", || !lives(pid));
    assert!(String::from_utf8_lossy(&out.stderr).contains("time limit"));
    // A limit that was not reached once was said to have ended the program.
    let out = home.run(["run", "--timeout", "10m", "--", "true"]);
    assert_eq!((out.status.code(), &out.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn a_program_that_ignores_the_polite_ways_is_killed() {
    let home = Home::new();
    let start = std::time::Instant::now();
    let mut child = home
        .tapdeck(["run", "--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tapdeck runs");
    let mut up = [0; 4];
    child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("it is up");
    crate::support::signal(child.id(), rustix::process::Signal::TERM);
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(1), "the hang-up that follows is not ignored");
    assert!(start.elapsed() < PATIENCE);
}

/// What shells and readers of manuals are given is about every command there is.
#[test]
fn completions_and_manual_pages_know_every_command() {
    let home = Home::new();
    let help = String::from_utf8(home.run(["--help"]).stdout).expect("text");
    let listed = help.lines().skip(3).take_while(|l| *l != "Options:");
    let names = listed.filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = names.filter(|c| !c.is_empty()).collect();
    assert!(commands.contains(&"rec") && commands.len() > 20, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let mut ask = home.tapdeck(["--", "tapdeck", ""]);
        ask.env("TAPDECK_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1").env("_CLAP_IFS", "\n");
        let offered = String::from_utf8(ask.output().expect("it runs").stdout).expect("text");
        assert!(commands.iter().all(|c| offered.contains(c)), "{shell}: {offered}");
        let script = String::from_utf8(home.run(["completions", shell]).stdout).expect("text");
        assert!(script.contains("TAPDECK_COMPLETE"), "{shell}: {script}");
    }
    assert_eq!(home.run(["man", "--dir", "pages"]).status.code(), Some(0));
    for command in &commands {
        let page = std::fs::read(home.path(&format!("pages/tapdeck-{command}.1"))).expect(command);
        assert!(home.run(["man", command]).stdout == page, "{command}");
    }
    assert_eq!(home.run(["man", "nothing"]).status.code(), Some(2));
}

/// With `--json`, what went wrong is data too, whichever command it is.
#[test]
fn errors_are_data_where_answers_are() {
    let home = Home::new();
    std::fs::create_dir(home.path("scenarios")).expect("a folder");
    std::fs::write(home.path("scenarios/a.scenario.yaml"), "name: a\n").expect("written");
    for (args, code) in [
        (&["peek", "none", "--json"][..], 3),
        (&["turns", "none", "--json"], 3),
        (&["turns", "show", "none:1", "--json"], 3),
        (&["explain", "none", "--json"], 3),
        (&["wait", "none", "--exit", "--json"], 3),
        (&["paste", "none", "text", "--json"], 3),
        (&["ask", "none", "text", "--json"], 3),
        (&["answer", "none", "--json"], 3),
        (&["approve", "none", "--json"], 3),
        (&["deny", "none", "--json"], 3),
        (&["snapshot", "--id", "x", "--json"], 2),
        (&["snapshot", "--id", "1", "--socket", "none.sock", "--json"], 3),
        (&["test", "--json", "none"], 3),
        (&["test", "--json", "--only", "zz", "scenarios"], 3),
        (&["branch-points", "--format", "json", "none"], 3),
        (&["render", "--json", "none"], 3),
        (&["info", "--json", "none"], 3),
        (&["verify", "--json", "none"], 3),
    ] {
        let out = home.run(args);
        assert_eq!(out.status.code(), Some(code), "{args:?}");
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&out.stdout)));
        assert!(answer["error"].as_str().is_some_and(|why| !why.is_empty()), "{args:?}: {answer}");
        assert!(out.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let session = crate::live::Detached::start(&home, &[], &["sh", "-c", "echo here; read x"]);
    let waited: serde_json::Value =
        serde_json::from_str(&session.ok(&["wait", "--text", "here", "--json"])).expect("JSON");
    assert!(waited["waited_ms"].is_u64() && waited["exit"].is_null(), "{waited}");
}

/// `run --cwdd x -- ls` ran a program called `--cwdd`, and `help` was an unknown command.
#[test]
fn mistyped_options_and_commands_are_named_with_the_right_ones() {
    let home = Home::new();
    for (args, says) in [
        (&["run", "--cwdd", "x", "--", "ls"][..], "unknown option --cwdd; did you mean --cwd?"),
        (&["ls", "--jsn"], "unknown option --jsn; did you mean --json?"),
        (&["ls", "-Z"], "unknown option -Z; see tapdeck ls --help"),
        (&["cassette", "recrd"], "unknown command \"recrd\"; did you mean record?"),
        (&["peek", "a", "b"], "unexpected argument \"b\"; see tapdeck peek --help"),
        (&["help", "recc"], "recc"),
    ] {
        let out = home.run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let out = home.run(["run", "sh", "-c", "echo \"$0\"", "--cwdd"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "--cwdd\r\n", "the program's own options are its own");
    for (args, usage) in [
        (&["help", "rec"][..], "Usage: tapdeck rec "),
        (&["help", "cassette", "record"], "Usage: tapdeck cassette record "),
        (&["help", "serve", "token", "add"], "Usage: tapdeck serve token add "),
    ] {
        let out = home.run(args);
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains(usage), "{args:?}");
    }
}
