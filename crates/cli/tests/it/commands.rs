//! What all commands have in common: names of sessions, spellings of options, modes of files.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use tapdeck_proto::bus::Rename;

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually, recorded_output, signal};

/// The names of the files in the home, without the folders of the system.
fn files(home: &Home) -> Vec<String> {
    let listed = std::fs::read_dir(home.path("")).expect("listed").flatten();
    let mut names: Vec<String> = listed.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "run" && name != "state");
    names.sort();
    names
}

/// Two sessions could have one name, and no command could then find either by it.
#[test]
fn a_name_belongs_to_one_session() {
    let home = Home::new();
    let start = || {
        let mut command = home.tapdeck(["run", "-d", "--name", "build", "--", "cat"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    // At the same moment, exactly one gets it.
    let racers: Vec<_> = (0..6).map(|_| start()).collect();
    let outs: Vec<_> = racers.into_iter().map(|r| r.wait_with_output().expect("it ends")).collect();
    let (won, lost): (Vec<_>, Vec<_>) = outs.iter().partition(|out| out.status.success());
    assert_eq!((won.len(), lost.len()), (1, 5), "{outs:?}");
    for out in lost {
        assert_eq!(out.status.code(), Some(2), "{}", text(out));
        assert!(text(out).contains("the name \"build\" is taken"), "{}", text(out));
    }
    let id = String::from_utf8_lossy(&won[0].stdout).trim().to_owned();
    for args in
        [&["run", "--name", "build"][..], &["rec", "--name", "build", "b.ahr"], &["run", "--name", &id]]
    {
        let out = home.run([args, &["--", "touch", "ran"]].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        assert!(
            text(&out).contains(&format!("is taken by session {id}: give another name")),
            "{}",
            text(&out)
        );
        assert_eq!(files(&home), [""; 0]);
    }
    // A renamed session has given its name back, and holds the new one.
    let other = Detached::start(&home, &["--name", "other"], &["cat"]);
    for (name, why) in [
        ("", "cannot be blank"),
        (" ", "cannot be blank"),
        ("a\nb", "cannot contain control characters"),
        (&"x".repeat(65), "at most 64 characters"),
    ] {
        for args in [
            &["run", "--name", name, "--", "touch", "ran"][..],
            &["rec", "--name", name, "b.ahr", "--", "touch", "ran"],
            &["serve", "token", "add", "--name", name],
            &["rename", "other", name],
        ] {
            let out = home.run(args);
            assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out));
            assert!(text(&out).contains(why), "{args:?}: {}", text(&out));
        }
        let denied = other.bus("human", "test").request(&Rename { name: name.to_owned() }, PATIENCE);
        assert!(denied.is_err_and(|e| e.to_string().contains(why)), "{name:?}");
    }
    let out = home.run(["rename", "other", "build"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    assert!(
        text(&out).contains("is taken by session ") && text(&out).contains("give another name"),
        "{}",
        text(&out)
    );
    assert!(home.run(["rename", "build", "nightly"]).status.success());
    other.ok(&["rename", "build"]);
    assert_eq!(other.listing()["name"], "build");
    assert_eq!(home.run(["run", "-d", "--name", "nightly", "--", "cat"]).status.code(), Some(2));
    // So has one that ended, and one whose host was killed.
    assert!(home.run(["kill", "nightly"]).status.success());
    let again = Detached::start(&home, &["--name", "nightly"], &["cat"]);
    let host = again.listing()["host_pid"].as_u64().expect("a process");
    signal(u32::try_from(host).expect("a pid"), rustix::process::Signal::KILL);
    eventually("the name to be free", || {
        let out = home.run(["run", "-d", "--name", "nightly", "--", "cat"]);
        out.status.success()
    });
    assert!(home.run(["kill", "--all"]).status.success());
}

#[test]
fn several_sessions_are_listed_and_killed_at_once() {
    let home = Home::new();
    assert!(home.run(["kill", "--all"]).status.success(), "none is fine");
    assert_eq!(home.run(["kill"]).status.code(), Some(3), "there is none");
    let ids: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            let out = home.run(["run", "-d", "--name", name, "--", "cat"]);
            String::from_utf8_lossy(&out.stdout).trim().to_owned()
        })
        .collect();
    let listed = |home: &Home| String::from_utf8_lossy(&home.run(["ls", "-q"]).stdout).into_owned();
    assert_eq!(listed(&home).lines().collect::<Vec<_>>(), ids);
    let out = home.run(["kill"]);
    assert_eq!(out.status.code(), Some(2), "it is not clear which: {}", text(&out));
    assert_eq!(listed(&home).lines().count(), 4);
    let out = home.run(["kill", "a", "nope", "b"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out));
    assert!(text(&out).contains("no live session is called \"nope\""), "{}", text(&out));
    eventually("both to be gone", || listed(&home).lines().count() == 2);
    assert!(home.run(["kill", "--all", "--signal", "CONT"]).status.success());
    assert_eq!(listed(&home).lines().count(), 2);
    assert!(home.run(["kill", "--all"]).status.success());
    eventually("all to be gone", || listed(&home).is_empty());
}

/// `send`, `type`, `paste`, `rename` and `kill` wanted a name even when there was one session.
#[test]
fn the_only_session_needs_no_name() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "only"], &["cat"]);
    let ok = |args: &[&str]| {
        let out = home.run(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out));
    };
    ok(&["type", "--", "typed"]);
    ok(&["send", "--", "-", "x", "Enter"]);
    session.wait_text("^typed-x$");
    ok(&["type", "--enter", "only", "--", "--dashes"]);
    session.wait_text("^--dashes$");
    ok(&["paste", "--", "pasted"]);
    session.wait_text("^pasted$");
    let mut piped = home.tapdeck(["paste"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = piped.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut pipe, b"piped").expect("written");
    drop(pipe);
    assert!(piped.wait().expect("it ends").success());
    session.wait_text("^piped$");
    ok(&["rename", "renamed"]);
    assert_eq!(session.listing()["name"], "renamed");

    // The first argument is always a session: a forgotten one is not typed into a program.
    for (args, code, said) in [
        (&["type", "renamed"][..], 2, "tapdeck type renamed TEXT, or tapdeck type -- renamed for the only"),
        (&["send", "C-c"], 2, "or tapdeck send -- C-c for the only session"),
        (&["type"], 2, "no text to send"),
        (&["type", "renamed", "two", "words"], 2, "unexpected argument \"words\"; see"),
        (&["send", "C-c", "Enter"], 3, "no live session is called \"C-c\""),
        (&["type", "hello", "world"], 3, "no live session is called \"hello\""),
    ] {
        let out = home.run(args);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
        assert!(text(&out).contains(said), "{args:?}: {}", text(&out));
    }
    // With a second one it must be named.
    let other = Detached::start(&home, &["--name", "other"], &["cat"]);
    for args in [&["type", "--", "x"][..], &["send", "--", "x"], &["paste", "--", "x"], &["kill"]] {
        let out = home.run(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out));
        assert!(text(&out).contains("renamed") && text(&out).contains("other"), "{}", text(&out));
    }
    drop(other);
    eventually("the other to be gone", || {
        String::from_utf8_lossy(&home.run(["ls", "-q"]).stdout).lines().count() == 1
    });
    ok(&["kill"]);
    eventually("it to be gone", || home.run(["ls", "-q"]).stdout.is_empty());
}

/// Long rows were wrapped by the terminal, and wide characters moved the columns.
#[test]
fn a_list_fits_the_terminal() {
    let home = Home::new();
    let command = format!("cat # {}", "漢字 ".repeat(40));
    let _a = Detached::start(&home, &["--name", "建物の名前はとても長いです"], &["sh", "-c", &command]);
    let _b = Detached::start(&home, &["--name", "b"], &["cat"]);
    let piped = home.run(["ls"]);
    let piped = String::from_utf8_lossy(&piped.stdout).into_owned();
    assert!(piped.contains(command.trim()), "a pipe gets everything: {piped}");
    for cols in [40, 80, 200] {
        let mut seat = Seat::with_size(home.tapdeck(["ls"]), cols, 24);
        assert!(seat.end().success());
        let screen = seat.screen();
        let rows: Vec<&str> = screen.lines().collect();
        assert_eq!(rows.len(), 3, "{cols}:\n{screen}");
        assert!(rows[0].contains("NAME") && rows[2].contains("cat"), "{cols}:\n{screen}");
        assert_eq!(rows[0].contains("CLIENTS"), cols == 200, "{cols}:\n{screen}");
        assert_eq!(rows[1].contains("建物の名前はとても長いです"), cols >= 80, "{cols}:\n{screen}");
    }
}

/// `wait --text` took a row of an earlier run for the one that it waited for.
#[test]
fn a_wait_can_leave_out_what_was_there_before() {
    let home = Home::new();
    let session = Detached::start(&home, &[], &["sh", "-c", "echo passed; while read x; do echo $x; done"]);
    session.wait_text("^passed$");
    let since = session.ok(&["peek", "--json"]);
    let since: Value = serde_json::from_str(&since).expect("JSON");
    let since = since["seq"].to_string();
    for flags in [&["--new"][..], &["--since", &since]] {
        let out = home.run([&["wait", "--text", "^passed$", "--timeout", "200ms"], flags].concat());
        assert_eq!(out.status.code(), Some(1), "{}", text(&out));
        assert!(text(&out).contains("no row matched"), "{}", text(&out));
    }
    let waiting = home.tapdeck(["wait", "--text", "^again", "--new"]).stderr(Stdio::piped()).spawn();
    let waiting = waiting.expect("it starts");
    eventually("it to wait", || session.listing()["clients"].as_array().is_some_and(|c| !c.is_empty()));
    // It has scrolled away by the time that anything looks.
    let many: String = (0..60).map(|n| format!("row {n}\n")).collect();
    std::fs::write(home.path("many"), format!("again\n{many}")).expect("written");
    let input = std::fs::File::open(home.path("many")).expect("open");
    let typed = home.tapdeck(["type", &session.id, "-"]).stdin(input).status().expect("it runs");
    assert!(typed.success());
    let out = waiting.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{}", text(&out));
    let out = home.run(["wait", "--text", "^again", "--since", &since]);
    assert!(out.status.success(), "what came before the call counts from there on: {}", text(&out));
    assert_eq!(home.run(["wait", "--idle", "10ms", "--new"]).status.code(), Some(2));
}

/// A row that comes with the program's end is seen, and the wait is still no look at the session.
#[test]
fn a_wait_for_new_rows_sees_the_last_one() {
    let home = Home::new();
    let session = Detached::start(
        &home,
        &["--name", "x"],
        &["sh", "-c", "until [ -e go ]; do sleep 0.05; done; echo done; exit 3"],
    );
    let waiting = home.tapdeck(["wait", "x", "--text", "^done$", "--new"]).spawn().expect("it starts");
    eventually("it to wait", || session.listing()["clients"].as_array().is_some_and(|c| !c.is_empty()));
    std::fs::write(home.path("go"), "").expect("written");
    let out = waiting.wait_with_output().expect("it ends");
    assert!(out.status.success(), "{}", text(&out));
    eventually("its end", || session.listing()["state"] == "exited");
    let out = home.run(["wait", "x", "--text", "^done$", "--since", "0"]);
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(session.listing()["exit"]["code"], 3, "it still waits to be looked at");
}

#[test]
fn old_spellings_still_work() {
    let home = Home::new();
    for size in ["--size", "--window-size"] {
        let out = home.run(["run", size, "97x13", "--", "stty", "size"]);
        assert_eq!(String::from_utf8_lossy(&out.stdout), "13 97\r\n", "{size}");
    }
    let session = Detached::start(&home, &[], &["sh", "-c", "printf '\\033[31mred\\033[m\\n'; cat"]);
    session.wait_text("^red$");
    for (args, colored) in [
        (&["peek"][..], false),
        (&["peek", "--color", "auto"], false),
        (&["peek", "--color", "never"], false),
        (&["peek", "--color", "always"], true),
        (&["peek", "--color=always", "--scrollback"], true),
        (&["peek", "--ansi"], true),
    ] {
        let out = home.run(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out));
        assert_eq!(out.stdout.contains(&0x1b), colored, "{args:?}: {}", text(&out));
    }
    for (no_color, colored) in [("", true), ("1", false)] {
        let mut command = home.tapdeck(["peek"]);
        command.env("NO_COLOR", no_color);
        let mut seat = Seat::new(command);
        assert!(seat.end().success());
        assert_eq!(String::from_utf8_lossy(&seat.raw).contains(";31mred"), colored, "NO_COLOR={no_color}");
    }
    for take in ["--takeover", "--take"] {
        assert!(home.run(["type", take, &session.id, "x"]).status.success(), "{take}");
        assert!(home.run(["send", take, &session.id, "Enter"]).status.success(), "{take}");
        let out = home.run(["paste", take, "--timeout", "2s", "--no-enter", &session.id, "y"]);
        assert!(out.status.code().is_some_and(|code| code < 2), "{take}: {}", text(&out));
    }
    for idle in ["50", "50ms", "0.05s"] {
        assert!(home.run(["wait", "--idle", idle]).status.success(), "{idle}");
    }
    assert!(home.run(["resize", "90x20"]).status.success(), "the only session");
    assert_eq!(session.listing()["cols"], 90);
    for format in ["--format", "--to"] {
        std::fs::write(home.path("x.ttyrec"), [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'h', b'i'])
            .expect("written");
        let out = home.run(["convert", "-q", "x.ttyrec", "-o", "-", format, "txt"]);
        assert_eq!(String::from_utf8_lossy(&out.stdout), "hi\n", "{format}");
    }
}

#[test]
fn a_session_without_a_terminal_prints_its_final_screen() {
    let home = Home::new();
    let script = "printf 'gone\\033[2J\\033[Hone\\r\\n\\033[1mtwo\\033[m'; exit 3";
    for args in [
        &["run", "--headless"][..],
        &["rec", "--headless", "a.ahr"],
        &["cassette", "record", "--expect-exit", "3", "--headless", "c"],
    ] {
        let out = home.run([args, &["--", "sh", "-c", script]].concat());
        assert_eq!(String::from_utf8_lossy(&out.stdout), "one\ntwo\n", "{args:?}: {}", text(&out));
    }
    for args in [&["run", "--headless", "--quiet"][..], &["rec", "--headless", "-q", "b.ahr"]] {
        let out = home.run([args, &["--", "sh", "-c", script]].concat());
        assert_eq!((out.status.code(), text(&out).lines().count()), (Some(3), 1), "{args:?}: {}", text(&out));
    }
}

/// Errors were in the words of the system or of the parser, over several lines.
#[test]
fn errors_say_what_to_do_next() {
    let home = Home::new();
    assert!(home.run(["rec", "-q", "demo.ahr", "--", "echo", "hi"]).status.success());
    for (name, content) in [("empty.ahr", ""), ("noise.ahr", "nothing like it"), ("notes.txt", "hello\n")] {
        std::fs::write(home.path(name), content).expect("written");
    }
    std::fs::create_dir(home.path("folder")).expect("created");
    let reads: [&[&str]; 9] = [
        &["play"],
        &["view"],
        &["info"],
        &["verify"],
        &["index"],
        &["branch-points"],
        &["convert", "-o", "x.cast"],
        &["repair", "-o", "x.ahr"],
        &["scrub", "-o", "x.ahr"],
    ];
    for (file, said) in [
        ("dmeo.ahr", "; did you mean demo.ahr?"),
        ("folder", "folder is a folder without recordings; name a file"),
        ("empty.ahr", "empty.ahr: it is empty"),
        ("noise.ahr", "noise.ahr: "),
        ("notes.txt", "notes.txt: no recording in any known format; "),
        ("none/x.ahr", "none/x.ahr: no such file; there is no folder none"),
    ] {
        for command in reads {
            let out = home.run([command, &[file]].concat());
            let lines = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(!out.status.success() && lines.contains(said), "{command:?} {file}: {}", text(&out));
            assert_eq!(lines.lines().count(), 1, "{command:?} {file}: {lines}");
            assert!(out.stdout.is_empty() && !home.path("x.cast").exists(), "{command:?} {file}");
        }
    }
    for (args, code, said) in [
        (
            &["completions", "tcsh"][..],
            2,
            "unknown value \"tcsh\" for SHELL; use bash, elvish, fish, powershell or zsh",
        ),
        (&["play"], 2, "missing FILE: tapdeck play [OPTIONS] FILE; see tapdeck play --help"),
        (&["wait"], 2, "give --text RE or --idle TIME or --exit or --state STATE or --prompt; see"),
        (
            &["convert", "demo.ahr", "x.cast"],
            2,
            "put -o before the output: tapdeck convert demo.ahr -o x.cast",
        ),
        (&["resize", "80y24"], 2, "invalid value \"80y24\" for COLSxROWS: expected COLSxROWS, such as"),
        (&["snapshot", "--id", "x"], 2, "invalid value \"x\" for --id N: expected a number"),
        (
            &["play", "--at", "never", "demo.ahr"],
            2,
            "expected a time (1:23, 90s), a share (50%), @LABEL, turn:N, line:N or byte:N",
        ),
        (&["kill", "--all", "x"], 2, "cannot be used with"),
        (&["wait", "--text", "("], 2, "for --text RE: not a regular expression: unclosed group"),
        (&["convert", "demo.ahr", "-o", "x.doc"], 2, "unsupported output format \".doc\"; supported: "),
        (&["convert", "demo.ahr", "-o", "x"], 2, "unsupported output format \"x\"; supported: "),
        (&["test", "nope"], 3, "nope: no such file; scenarios are files called NAME.scenario.yaml"),
        (&["test", "folder"], 3, "there are no scenarios in folder: "),
        (&["test", "demo.ahr"], 2, "demo.ahr is a recording; name a scenario"),
        (&["view", "nope"], 3, "neither a file nor a live session of that name; the recordings in that"),
        (&["turns", "nope.ahr"], 3, "nope.ahr: no such file"),
        (&["turns", "noise.ahr"], 4, "noise.ahr: "),
        (&["cassette", "frames", "dmeo.ahr"], 3, "did you mean demo.ahr?"),
    ] {
        let out = home.run(args);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
        assert!(text(&out).contains(said), "{args:?}: {}", text(&out));
        assert_eq!(String::from_utf8_lossy(&out.stderr).lines().count(), 1, "{args:?}: {}", text(&out));
    }
}

/// `demo.meta.json.8465.tmp` stood in the output of the README's first command.
#[test]
fn a_short_program_finds_nothing_but_its_recording() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["rec", "-q", "demo.ahr", "--", "ls", "-A", "-1"]));
    assert!(seat.end().success());
    let shown = String::from_utf8_lossy(&recorded_output(&home.path("demo.ahr"))).into_owned();
    let shown: Vec<&str> = shown.lines().filter(|name| *name != "run" && *name != "state").collect();
    assert_eq!(shown, ["demo.ahr"]);
    assert_eq!(files(&home), ["demo.ahr"]);
}

/// A long program saw `meta.json` and its like appear in its folder.
#[test]
fn a_long_program_finds_nothing_but_its_recording() {
    let home = Home::new();
    std::fs::write(home.path("key"), "0123456789abcdef0123456789abcdef").expect("written");
    let script = "while [ ! -e stop ]; do echo; ls -A -1; done";
    let start = |args: &[&str]| {
        let mut command = home.tapdeck(["rec", "-q", "--title", "long", "--no-scrub"]);
        command.args(args).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts")
    };
    let begun = |name: &str| {
        assert_eq!(home.meta(name)["title"], "long");
        eventually("a block", || std::fs::metadata(home.path(name)).is_ok_and(|file| file.len() > 0));
    };
    let working = || std::fs::read_dir(home.path("state/tapdeck/unfinished")).map_or(0, Iterator::count);
    let mut child = start(&["--seal", "key", "--index", "whole", "long.ahr"]);
    begun("long.ahr");
    assert_eq!((files(&home), working()), (vec!["key".to_owned(), "long.ahr".to_owned()], 0));
    // What is known of a recording in progress is found.
    let info = home.run(["info", "long.ahr"]);
    assert!(text(&info).contains("title      long"), "{}", text(&info));
    std::fs::write(home.path("stop"), "").expect("written");
    child.wait().expect("it ends");
    assert_eq!((files(&home), working()), (["key", "long.ahr", "stop"].map(str::to_owned).to_vec(), 0));
    let info = text(&home.run(["info", "long.ahr"]));
    for part in ["meta.json", "ahx", "seal"] {
        assert!(info.contains(part), "{part}: {info}");
    }
    let shown = String::from_utf8_lossy(&recorded_output(&home.path("long.ahr"))).into_owned();
    let names: std::collections::BTreeSet<&str> =
        shown.split_whitespace().filter(|name| *name != "stop").collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["key", "long.ahr", "run"]);
    let verified = home.run(["verify", "--key", "key", "long.ahr"]);
    assert!(verified.status.success() && text(&verified).contains("seal intact"), "{}", text(&verified));

    // So is what was known of one whose recorder was killed.
    std::fs::remove_file(home.path("stop")).expect("removed");
    let mut child = start(&["killed.ahr"]);
    begun("killed.ahr");
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    let info = home.run(["info", "killed.ahr"]);
    assert!(text(&info).contains("title      long"), "{}", text(&info));
    assert!(home.run(["repair", "killed.ahr", "-o", "copy.ahr"]).status.success());
    assert!(text(&home.run(["info", "copy.ahr"])).contains("title      long"));
    let out = home.run(["rec", "-q", "--append", "killed.ahr", "--", "true"]);
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(home.meta("killed.ahr")["title"], "long");
    assert_eq!((files(&home).len(), working()), (4, 0), "{:?}", files(&home));
}

/// Exports were as private as recordings, so that a web server could not show them; a token's file
/// had whatever mode the shell gave it.
#[test]
fn exports_are_for_others_and_secrets_are_not() {
    let home = Home::new();
    let mode = |name: &str| {
        let about = std::fs::metadata(home.path(name)).expect("it is there");
        about.permissions().mode() & 0o777
    };
    assert!(home.run(["rec", "-q", "a.ahr", "--", "echo", "hi"]).status.success());
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        for (name, expected) in
            [("a.html", expected), ("a.txt", expected), ("a.cast", 0o600), ("b.ahr", 0o600)]
        {
            let script = format!("umask {umask}; exec \"$@\"");
            let args = ["convert", "-q", "--overwrite", "a.ahr", "-o", name];
            let _ = std::fs::remove_file(home.path(name));
            let mut command = home.command("sh");
            command.args(["-c", &script, "sh", crate::support::TAPDECK]).args(args);
            assert!(command.status().expect("it runs").success(), "{name}");
            assert_eq!(mode(name), expected, "{name} under {umask}");
        }
    }
    // One that is replaced keeps its mode.
    std::fs::set_permissions(home.path("a.html"), PermissionsExt::from_mode(0o640)).expect("set");
    assert!(home.run(["convert", "-q", "--overwrite", "a.ahr", "-o", "a.html"]).status.success());
    assert_eq!(mode("a.html"), 0o640);
}

#[cfg(feature = "net")]
#[test]
fn a_token_goes_to_a_private_file() {
    let home = Home::new();
    let add = |args: &[&str]| home.run([&["serve", "token", "add"], args].concat());
    let out = add(&["--name", "a", "-o", "a.token"]);
    assert!(out.status.success() && out.stdout.is_empty(), "{}", text(&out));
    let about = std::fs::metadata(home.path("a.token")).expect("it is there");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let secret = std::fs::read_to_string(home.path("a.token")).expect("read");
    for (args, code, says) in [
        (&["--name", "b", "-o", "a.token"][..], 2, "a.token exists: give another name, or --overwrite"),
        (&["--name", "b", "-o", "nope/b.token"], 4, "there is no folder nope; create it first"),
    ] {
        let out = add(args);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out));
        assert!(text(&out).contains(says), "{}", text(&out));
    }
    assert_eq!(std::fs::read_to_string(home.path("a.token")).expect("read"), secret);
    let tokens = String::from_utf8_lossy(&home.run(["serve", "token", "ls"]).stdout).into_owned();
    assert_eq!(tokens.lines().count(), 1, "no token was made that was not handed over: {tokens}");
    assert!(add(&["--name", "b", "-o", "a.token", "--overwrite"]).status.success());
    let warning = "other users can read the token in a.token; run chmod 600 a.token";
    for (mode, warns) in [(0o600, false), (0o644, true), (0o640, true)] {
        std::fs::set_permissions(home.path("a.token"), PermissionsExt::from_mode(mode)).expect("set");
        let out = home.run(["connect", "ws://127.0.0.1:1", "--token-file", "a.token", "--", "true"]);
        assert_eq!(text(&out).contains(warning), warns, "{mode:o}: {}", text(&out));
    }
}

/// `convert` listed what no user misses, such as the recorder's marks, and `-q` did not stop it.
#[test]
fn a_conversion_speaks_of_losses_that_matter() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["rec", "-q", "-I", "a.ahr", "--", "sh", "-c", "read x; exit 2"]));
    seat.send("typed\r");
    seat.end();
    let out = home.run(["convert", "a.ahr", "-o", "a.cast"]);
    assert!(out.status.success() && !text(&out).contains("cannot carry"), "{}", text(&out));
    let out = home.run(["convert", "a.ahr", "-o", "a.txt"]);
    assert!(text(&out).contains("what txt cannot carry: input: "), "{}", text(&out));
    let out = home.run(["convert", "a.ahr", "-o", "a.raw", "--json"]);
    assert!(text(&out).contains("\"timing\""), "the report has everything: {}", text(&out));
    let out = home.run(["convert", "-q", "a.ahr", "-o", "a.md"]);
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{}", text(&out));
}

/// A recording that was stopped stayed in the list as if it went on.
#[test]
fn a_recording_that_stopped_is_not_listed() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "s"], &["cat"]);
    assert_eq!(session.listing()["recording"], Value::Null);
    let mut recorder = home.tapdeck(["rec", "-q", "--attach", "s", "late.ahr"]).spawn().expect("it starts");
    eventually("it to be listed", || session.listing()["recording"].is_string());
    let path = home.path("late.ahr");
    assert_eq!(session.listing()["recording"].as_str(), path.to_str());
    home.part("late.ahr", "meta.json");
    signal(recorder.id(), rustix::process::Signal::INT);
    assert!(recorder.wait().expect("it ends").success());
    assert_eq!(session.listing()["recording"], Value::Null);
}

/// A session whose host is stopped held `wait` up for ten seconds, whatever its time-out.
#[test]
fn a_wait_is_over_in_time_though_the_session_does_not_answer() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "s"], &["cat"]);
    let host =
        session.listing()["host_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    signal(host, rustix::process::Signal::STOP);
    let out = home.run(["wait", "s", "--exit", "--timeout", "300ms"]);
    signal(host, rustix::process::Signal::CONT);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).contains("timed out after 300ms: the session does not answer"), "{}", text(&out));
}

/// Its mode followed the umask, so that other users could see what is recorded.
#[test]
fn the_folder_of_recordings_is_private() {
    let home = Home::new();
    let mut command = home.command("sh");
    let out = command.args(["-c", &format!("umask 0; {TAPDECK} rec -q -- true")]).output().expect("it runs");
    assert!(out.status.success(), "{}", text(&out));
    let mode = std::fs::metadata(home.path("state/tapdeck/recordings")).expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// `turns` took every name that is not one of a recording for a session, `play --at` was silent
/// behind the end, and `repair --adopt` could not write what does not exist.
#[test]
fn files_and_times_that_do_not_exist_are_told() {
    let home = Home::new();
    assert!(home.run(["rec", "-q", "--headless", "s.ahr", "--", "echo", "hello"]).status.success());
    std::fs::write(home.path("empty"), "").expect("written");
    for (args, code, why) in [
        (&["turns", "s.ah"][..], 3, "did you mean s.ahr?"),
        (&["turns", "."], 4, "is a folder"),
        (&["turns", "empty"], 4, "it is empty"),
        (&["turns", "show", "s.ah:2"], 3, "did you mean s.ahr?"),
        (&["play", "--at", "10:00", "s.ahr"], 3, "10:00 is not in it: it ends at"),
        (&["repair", "--adopt", "s.ah"], 3, "did you mean s.ahr?"),
    ] {
        let out = home.run(args);
        assert!(text(&out).contains(why), "{args:?}: {}", text(&out));
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
    }
}
