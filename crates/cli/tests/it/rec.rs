//! `tapdeck rec`: every byte, whole after every accident.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Home, Seat, eventually, lives, older, recorded_output, recorded_part, signal};

#[test]
fn every_byte_is_recorded_and_shown_as_it_is() {
    let home = Home::new();
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let bytes: Vec<u8> = (0..=255).chain(std::iter::repeat_with(&mut noise).take(5 << 20)).collect();
    std::fs::write(home.path("noise"), &bytes).expect("written");
    let out = home.run(["rec", "-q", "noise.ahr", "--", "sh", "-c", "stty raw; exec cat noise"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(out.stdout == bytes, "what was shown is what was written");
    assert!(recorded_output(&home.path("noise.ahr")) == bytes, "what was recorded is what was written");
    assert_eq!(home.run(["verify", "noise.ahr"]).status.code(), Some(0));
    let played = home.run(["play", "--speed", "1000", "noise.ahr"]);
    assert!(played.stdout == bytes, "what is played is what was written");
}

#[test]
fn a_recording_is_private_and_described() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("deep/er")).expect("made");
    let file = "deep/er/demo.ahr";
    let out = home.run(["rec", "--title", "a demo", file, "--", "sh", "-c", "echo hi; exit 3"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("recorded"), "it says where the recording is");
    let mode = std::fs::metadata(home.path(file)).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let info = String::from_utf8(home.run(["info", "--json", file]).stdout).expect("text");
    for part in [
        r#""title":"a demo""#,
        r#""exit":{"code":3}"#,
        r#""whole":true"#,
        r#""cmd":["sh","-c","echo hi; exit 3"]"#,
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
}

/// `rec /nope/x.ahr` created the folder, `rec demo.gif` wrote an `.ahr` under that name, and a
/// program that could not be started left an empty recording, or an emptied one.
#[test]
fn what_cannot_be_recorded_leaves_nothing_behind() {
    let home = Home::new();
    std::fs::write(home.path("plain"), "").expect("written");
    assert_eq!(home.run(["rec", "-q", "kept.ahr", "--", "echo", "kept"]).status.code(), Some(0));
    let files = || {
        let listed = std::fs::read_dir(home.path("")).expect("listed").flatten();
        let mut names: Vec<String> = listed.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let before = files();
    for (args, code, says) in [
        (&["nope/x.ahr", "--", "true"][..], 4, "cannot write nope/x.ahr: there is no folder nope; create it"),
        (
            &["demo.gif", "--", "true"],
            2,
            "cannot record demo.gif: unsupported output format \".gif\"; supported: .ahr, .cast",
        ),
        (&["demo.ans", "--", "true"], 2, "cannot record demo.ans"),
        (&["x.ahr", "--", "no-such-program"], 127, "no-such-program: command not found"),
        (&["x.cast", "--", "no-such-program"], 127, "command not found"),
        (&["x.typescript", "--", "no-such-program"], 127, "command not found"),
        (&["x.ahr", "--", "./plain"], 126, "./plain: cannot be executed"),
        (&["-d", "x.ahr", "--", "no-such-program"], 127, "command not found"),
        (&["--overwrite", "kept.ahr", "--", "no-such-program"], 127, "command not found"),
        (&["f.ahr", "echo", "x y"], 2, "put -- before the command: tapdeck rec f.ahr -- echo 'x y'"),
    ] {
        let out = home.run([&["rec"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says) && said.lines().count() == 1, "{args:?}: {said}");
        assert_eq!(files(), before, "{args:?}");
        assert_eq!(recorded_output(&home.path("kept.ahr")), b"kept\r\n", "{args:?}");
    }
    assert_eq!(String::from_utf8_lossy(&home.run(["ls", "--json"]).stdout).trim(), "[]");
}

#[test]
fn without_a_name_it_goes_to_the_state_folder() {
    let home = Home::new();
    assert_eq!(home.run(["rec", "--", "true"]).status.code(), Some(0));
    let folder = home.path("state/tapdeck/recordings");
    let names: Vec<_> =
        std::fs::read_dir(folder).expect("it is there").flatten().map(|e| e.file_name()).collect();
    assert!(names.iter().any(|n| n.to_string_lossy().ends_with(".ahr")), "{names:?}");
}

/// Between the making of the file and the session's own signals, a cancel left sockets and an empty
/// recording behind.
#[test]
fn a_cancel_at_any_moment_leaves_nothing_behind() {
    let home = Home::new();
    for n in 0..40_u64 {
        let name = format!("c{n}.ahr");
        let mut child = home
            .tapdeck(["rec", "-q", &name, "--", "sleep", "300"])
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        // Somewhere in its beginning, another place each time.
        std::thread::park_timeout(Duration::from_micros(n * 700));
        signal(child.id(), [Signal::TERM, Signal::INT, Signal::HUP][n as usize % 3]);
        child.wait().expect("it ends");
        if home.path(&name).exists() {
            let verified = home.run(["verify", &name]);
            assert_eq!(
                verified.status.code(),
                Some(0),
                "{name}: {}",
                String::from_utf8_lossy(&verified.stdout)
            );
            assert!(std::fs::metadata(home.path(&name)).is_ok_and(|m| m.len() > 0), "{name} is empty");
        }
    }
    let folder = home.path("run/tapdeck");
    let left: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    let sockets = left.iter().filter(|name| name.to_string_lossy().ends_with(".sock")).count();
    assert_eq!(sockets, 0, "{left:?}");
}

#[test]
fn input_is_recorded_only_when_asked_for() {
    let home = Home::new();
    for (flag, inputs) in [(&[][..], 0), (&["-I"], 0), (&["-I", "--hidden-input"], 1)] {
        let mut args = vec!["rec", "-q", "--overwrite"];
        args.extend(flag);
        args.extend(["typed.ahr", "--", "sh", "-c", "stty -echo; echo ready; read x; echo got $x"]);
        let mut seat = Seat::new(home.tapdeck(args));
        seat.wait_text("ready");
        seat.send("secret\r");
        seat.wait_text("got secret");
        seat.end();
        let info = String::from_utf8(home.run(["info", "--json", "typed.ahr"]).stdout).expect("text");
        assert!(info.contains(&format!(r#""inputs":{inputs}"#)), "{info}");
        let events = home.part("typed.ahr", "events.jsonl");
        assert!(events.contains(r#""to":"local""#), "{events}");
    }
}

/// Tapdeck turns the echo off for piped input, which makes it no password.
#[test]
fn piped_input_is_recorded() {
    let home = Home::new();
    for name in ["a.ahr", "a.cast"] {
        let mut child = home
            .tapdeck(["rec", "-q", "-I", name, "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("piped").write_all(b"typed\n").expect("written");
        assert!(child.wait().expect("ended").success());
        home.run(["convert", "-q", "--overwrite", name, "-o", "x.cast"]);
        let cast = std::fs::read_to_string(home.path("x.cast")).expect("a cast");
        assert!(cast.lines().any(|l| l.contains("\"i\"") && l.contains("typed")), "{name}: {cast}");
    }
}

/// Input without echo is not recorded unless asked for; only the fact that keys were typed is.
#[test]
fn a_password_is_not_recorded_with_the_rest_of_the_input() {
    let home = Home::new();
    let ask = "stty -echo; printf 'secret? '; read s; stty echo; printf '\nname? '; read n; echo \"$n.\"";
    for (name, flags) in [("a.ahr", &["-I"][..]), ("b.ahr", &["-I", "--hidden-input"]), ("c.cast", &["-I"])] {
        let args = [&["rec", "-q"], flags, &[name, "--", "sh", "-c", ask]].concat();
        let mut seat = Seat::new(home.tapdeck(args));
        seat.wait_text("secret?");
        seat.send("hunter2\r");
        seat.wait_text("name?");
        seat.send("ada\r");
        seat.wait_text("ada.");
        seat.end();
        home.run(["convert", "--overwrite", name, "-o", "x.cast"]);
        let cast = std::fs::read_to_string(home.path("x.cast")).expect("a cast");
        let typed: Vec<&str> = cast.lines().filter(|l| l.contains("\"i\"")).collect();
        assert!(typed.iter().any(|l| l.contains("ada")), "{name}: {cast}");
        assert_eq!(cast.contains("hunter2"), flags.len() > 1, "{name}: {cast}");
        let events = home.part_now("a.ahr", "events.jsonl").unwrap_or_default();
        assert!(!events.contains("hunter2"), "{events}");
    }
    let mut seat = Seat::new(home.tapdeck(["cassette", "record", "kept", "--", "sh", "-c", ask]));
    seat.wait_text("secret?");
    seat.send("hunter2\r");
    seat.wait_text("name?");
    seat.send("ada\r");
    seat.end();
    assert_eq!(home.run(["convert", "kept", "-o", "kept.cast"]).status.code(), Some(0));
    let cast = std::fs::read_to_string(home.path("kept.cast")).expect("a cast");
    assert!(cast.contains("*******\\r") && cast.contains("ada") && !cast.contains("hunter2"), "{cast}");
}

#[test]
fn nothing_is_overwritten_unless_told() {
    let home = Home::new();
    assert_eq!(home.run(["rec", "-q", "a.ahr", "--", "echo", "one"]).status.code(), Some(0));
    let before = std::fs::read(home.path("a.ahr")).expect("it is there");
    let out = home.run(["rec", "a.ahr", "--", "touch", "ran"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--append"), "it says what to do");
    assert!(!home.path("ran").exists(), "the program was not run");
    assert_eq!(std::fs::read(home.path("a.ahr")).expect("it is there"), before);
    home.run(["rec", "-q", "--append", "a.ahr", "--", "echo", "two"]);
    assert_eq!(recorded_output(&home.path("a.ahr")), b"one\r\ntwo\r\n");
    assert_eq!(home.run(["verify", "a.ahr"]).status.code(), Some(0));
    home.run(["rec", "-q", "--overwrite", "a.ahr", "--", "echo", "three"]);
    assert_eq!(recorded_output(&home.path("a.ahr")), b"three\r\n");
    // What was told of a recording that is gone is not told of the next one, and what a person
    // wrote of it is kept.
    std::fs::remove_file(home.path("a.ahr")).expect("removed");
    std::fs::write(home.path("a.events.jsonl"), "{}\n").expect("written");
    std::fs::write(home.path("a.instructions.jsonl"), "{}\n").expect("written");
    let out = home.run(["rec", "-q", "a.ahr", "--", "echo", "four"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("a.instructions.jsonl is left of an earlier"),
        "{out:?}"
    );
    std::fs::remove_file(home.path("a.instructions.jsonl")).expect("it was left");
    assert_eq!(home.run(["rec", "-q", "a.ahr", "--", "echo", "four"]).status.code(), Some(0));
    assert!(!home.path("a.events.jsonl").exists());
    // Another recording whose files would be the same ones loses none of them.
    std::fs::write(home.path("a.meta.json"), "{}\n").expect("written");
    let before = std::fs::read(home.path("a.meta.json")).expect("it is there");
    for how in ["--quiet", "--overwrite", "--append"] {
        let out = home.run(["rec", how, "a", "--", "echo", "five"]);
        assert_eq!(out.status.code(), Some(2), "{how}: {out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("a.meta.json belongs to a.ahr"), "{out:?}");
    }
    assert_eq!(std::fs::read(home.path("a.meta.json")).expect("it is there"), before);
    assert!(!home.path("a").exists());
}

/// Going on with a recording that was torn by a crash costs nothing of what could be read of it
/// before.
#[test]
fn what_a_torn_end_holds_outlives_an_append() {
    let home = Home::new();
    let script = "head -c 90000 /dev/urandom | base64";
    assert_eq!(home.run(["rec", "-q", "a.ahr", "--", "sh", "-c", script]).status.code(), Some(0));
    // A recording of this version ends with a description of itself.
    older(&home, "a.ahr", "a.ahr");
    let whole = std::fs::read(home.path("a.ahr")).expect("read");
    for missing in [1, 50, 2_000, whole.len() / 2, whole.len() - 60, whole.len() - 10] {
        std::fs::write(home.path("a.ahr"), &whole[..whole.len() - missing]).expect("cut");
        let before = recorded_output(&home.path("a.ahr"));
        let out = home.run(["rec", "-q", "--append", "a.ahr", "--", "echo", "more"]);
        assert_eq!(out.status.code(), Some(0), "{missing} bytes missing");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let kept = said.contains("kept what could be read");
        assert!(said.contains("ended within a block") && kept != before.is_empty(), "{missing}: {said}");
        let after = recorded_output(&home.path("a.ahr"));
        let expected = [&before[..], b"more\r\n"].concat();
        assert!(after == expected, "{missing} missing: {} bytes of {}", after.len(), expected.len());
        assert_eq!(home.run(["verify", "a.ahr"]).status.code(), Some(0), "{missing} missing");
    }
    let left = std::fs::read_dir(home.path("")).expect("listed").flatten();
    let left: Vec<_> =
        left.map(|f| f.file_name()).filter(|n| n.to_string_lossy().ends_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_no_recording_is_not_continued() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"x\"]\n";
    for text in ["buy milk\n", "A", cast, &"x".repeat(100_000)] {
        std::fs::write(home.path("notes"), text).expect("written");
        std::fs::set_permissions(home.path("notes"), PermissionsExt::from_mode(0o644)).expect("set");
        let out = home.run(["rec", "--append", "notes", "--", "touch", "ran"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if text == "A" {
            // The first letter of a block.
            assert_eq!(out.status.code(), Some(0), "{said}");
            std::fs::remove_file(home.path("ran")).expect("it ran");
            continue;
        }
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("no .ahr recording"), "{said}");
        assert_eq!(std::fs::read_to_string(home.path("notes")).expect("read"), text);
        let mode = std::fs::metadata(home.path("notes")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert!(!home.path("ran").exists());
    }
    std::fs::write(home.path("empty"), "").expect("written");
    assert_eq!(home.run(["rec", "-q", "--append", "empty", "--", "echo", "x"]).status.code(), Some(0));
    assert_eq!(recorded_output(&home.path("empty")), b"x\r\n");
}

#[test]
fn what_is_no_file_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.path("folder")).expect("made");
    std::os::unix::fs::symlink("elsewhere", home.path("link")).expect("made");
    rustix::fs::mknodat(rustix::fs::CWD, home.path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("made");
    for (path, says) in [
        ("folder", "a folder"),
        ("link", "a symbolic link"),
        ("fifo", "a pipe"),
        ("/dev/full", "a device"),
        ("-", "standard output"),
    ] {
        for flag in ["--quiet", "--overwrite", "--append"] {
            let out = home.run(["rec", flag, path, "--", "touch", "ran"]);
            let message = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{path}: {message}");
            assert!(message.contains(says), "{path}: {message}");
        }
    }
    assert!(!home.path("ran").exists() && !home.path("elsewhere").exists());
}

#[test]
fn two_recorders_do_not_share_a_file() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["rec", "-q", "one.ahr", "--", "sh", "-c", "echo up; read x"]));
    seat.wait_text("up");
    let out = home.run(["rec", "--append", "one.ahr", "--", "true"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("another process"));
    assert_eq!(home.run(["rec", "-q", "other.ahr", "--", "echo", "other"]).status.code(), Some(0));
    for command in ["convert", "repair", "scrub"] {
        let out = home.run([command, "other.ahr", "-o", "one.ahr", "--overwrite"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("another process"), "{command}: {said}");
    }
    seat.send("\r");
    seat.end();
    assert_eq!(recorded_output(&home.path("one.ahr")), b"up\r\n\r\n");
}

#[test]
fn pipes_are_recorded_with_their_stream() {
    let home = Home::new();
    home.run(["rec", "-q", "--no-pty", "p.ahr", "--", "sh", "-c", "echo out; sleep 0.1; echo err >&2"]);
    assert_eq!(recorded_output(&home.path("p.ahr")), b"out\nerr\n");
    let info = String::from_utf8(home.run(["info", "--json", "p.ahr"]).stdout).expect("text");
    assert!(info.contains(r#""marks":2"#), "the switch of streams and the exit: {info}");
}

/// Killed at any moment, the recording is whole and is what was shown up to some point. How close
/// that point is to the end depends on the machine's load, so it is no test's verdict.
#[test]
fn a_killed_recorder_leaves_a_whole_recording() {
    let home = Home::new();
    for round in 0..6usize {
        let name = format!("k{round}.ahr");
        let script = "echo pid $$; n=0; while :; do n=$((n+1)); echo tick $n; sleep 0.01; done";
        let mut child = home
            .tapdeck(["rec", "-q", &name, "--", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tapdeck runs");
        let mut stdout = child.stdout.take().expect("piped");
        let mut all = Vec::new();
        let mut buf = [0; 4096];
        let something_on_disk = || std::fs::metadata(home.path(&name)).is_ok_and(|m| m.len() > 0);
        while all.len() < 100 + round * 77 || !something_on_disk() {
            let n = stdout.read(&mut buf).expect("output");
            all.extend_from_slice(&buf[..n]);
        }
        child.kill().expect("killed");
        child.wait().expect("it ends");
        let kept = recorded_output(&home.path(&name));
        assert!(all.starts_with(&kept) || kept.starts_with(&all), "what is kept is what was written");
        let verified = home.run(["verify", &name]);
        assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
        let pid = String::from_utf8_lossy(&all).lines().next().and_then(|l| l[4..].trim().parse().ok());
        eventually("the program to be hung up on", || !lives(pid.expect("a pid")));
    }
}

/// The recorder keeps a timer: an idle tail must not wait in memory for the next byte.
#[test]
fn an_idle_tail_is_on_disk_while_the_program_waits() {
    let home = Home::new();
    let mut seat =
        Seat::new(home.tapdeck(["rec", "-q", "idle.ahr", "--", "sh", "-c", "echo the tail; read x"]));
    seat.wait_text("the tail");
    eventually("the tail to be on disk", || {
        home.path("idle.ahr").exists() && recorded_output(&home.path("idle.ahr")) == b"the tail\r\n"
    });
    signal(seat.child.id(), rustix::process::Signal::TERM);
    assert_eq!(seat.end().signal(), Some(15));
    let verified = home.run(["verify", "idle.ahr"]);
    assert!(String::from_utf8_lossy(&verified.stdout).contains("ended by signal 15"));
}

/// A limit on file sizes stands in for a full disk: writes fail in the middle of a block.
#[test]
fn a_disk_that_refuses_costs_the_recording_not_the_session() {
    let home = Home::new();
    let script = format!(
        "ulimit -f 2000; exec {} rec big.ahr -- sh -c 'head -c 3000000 /dev/urandom; echo; echo still here'",
        crate::support::TAPDECK
    );
    let out = home.command("bash").args(["-c", &script]).stdin(Stdio::null()).output().expect("bash runs");
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.stdout.len() >= 3_000_000 && out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!(out.status.code(), Some(4), "{message}");
    assert_eq!(message.lines().count(), 1, "said once: {message}");
    assert!(message.contains("missing"), "{message}");
    assert!(message.contains("the limit of file size is reached (2048000 bytes"), "{message}");
    let verified = home.run(["verify", "big.ahr"]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_eq!((verified.status.code(), said.contains("incomplete")), (Some(1), true), "{said}");
    let kept = recorded_part(&home.path("big.ahr"), &out.stdout);
    assert!(kept > 1_900_000, "{kept} bytes kept");
}

#[test]
fn a_file_that_is_deleted_meanwhile_is_reported() {
    let home = Home::new();
    let out = home.run(["rec", "gone.ahr", "--", "rm", "gone.ahr"]);
    assert_eq!(out.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&out.stderr).contains("deleted"));
}

#[test]
fn verify_names_what_is_damaged() {
    let home = Home::new();
    home.run(["rec", "-q", "v.ahr", "--", "sh", "-c", "for i in 1 2 3 4; do seq 1000; sleep 0.3; done"]);
    let whole = std::fs::read(home.path("v.ahr")).expect("it is there");
    let middle = whole.len() / 2;
    for (name, bytes) in [
        ("torn.ahr", whole[..whole.len() - 10].to_vec()),
        ("zeroed.ahr", [&whole[..middle], &vec![0; 40][..], &whole[middle + 40..]].concat()),
        ("garbage.ahr", [&whole[..], b"trailing garbage"].concat()),
    ] {
        std::fs::write(home.path(name), bytes).expect("written");
        let out = home.run(["verify", name]);
        let text = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains("damaged") && text.lines().count() >= 2, "{name}: {text}");
    }
    assert_eq!(home.run(["verify", "missing.ahr"]).status.code(), Some(3));
    std::fs::write(home.path("not.ahr"), "plain text").expect("written");
    assert_eq!(home.run(["verify", "not.ahr"]).status.code(), Some(1));
}

/// With no terminal at all, the model must answer the program's queries, or agents wait for ever.
#[test]
fn the_model_answers_where_no_terminal_does() {
    let home = Home::new();
    let ask = "stty raw -echo; printf '\\033[6n'; head -c 6 | tr '\\033' E; printf '\\r\\n'";
    let out = home.run(["rec", "-q", "-I", "--headless", "ask.ahr", "--", "sh", "-c", ask]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(0), 0), "headless shows nothing");
    let text = home.run(["play", "--fast", "ask.ahr"]).stdout;
    assert_eq!(String::from_utf8_lossy(&text), "E[1;1R\n");
    let info = String::from_utf8(home.run(["info", "--json", "ask.ahr"]).stdout).expect("text");
    assert!(info.contains(r#""inputs":1"#), "answers are recorded: {info}");
    let piped = home.run(["run", "--", "sh", "-c", ask]);
    assert!(piped.stdout.ends_with(b"E[1;1R\r\n"), "{}", String::from_utf8_lossy(&piped.stdout));
}

#[test]
fn it_records_straight_into_formats_of_others() {
    let home = Home::new();
    let script = "printf 'one\\n'; sleep 0.3; printf 'two \\033[31mred\\033[m\\n'; exit 3";
    for name in ["o.cast", "o.cast.zst", "o.ttyrec", "o.ttyrec.zst", "o.typescript", "o.raw"] {
        let out = home.run(["rec", name, "--", "sh", "-c", script]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(3), "{name}: {said}");
        assert_eq!(out.stdout, b"one\r\ntwo \x1b[31mred\x1b[m\r\n", "{name}");
        assert!(said.contains(&format!("in {name}")), "{said}");
        assert_eq!(
            said.contains("cannot carry: how the program ended"),
            !name.contains("cast") && !name.contains("script")
        );
        let mode = std::fs::metadata(home.path(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        let raw = home.run(["convert", "-q", name, "-o", "-", "--to", "raw"]);
        assert_eq!(raw.stdout, out.stdout, "{name}: {}", String::from_utf8_lossy(&raw.stderr));
        assert_eq!(home.run(["rec", name, "--", "true"]).status.code(), Some(2), "{name} is not overwritten");
        assert_eq!(home.run(["rec", "--append", name, "--", "true"]).status.code(), Some(2));
    }
    let start = Instant::now();
    assert_eq!(home.run(["play", "o.typescript"]).status.code(), Some(0));
    assert!(start.elapsed() >= Duration::from_millis(250), "times are recorded");
    let cast = std::fs::read_to_string(home.path("o.cast")).expect("read");
    assert!(cast.starts_with("{\"version\":3") && cast.trim_end().ends_with("\"x\",\"3\"]"), "{cast}");
    assert_eq!(home.run(["rec", "o.3a", "--", "true"]).status.code(), Some(2));
}

/// A recorder that dies must not take more than the last moment with it, in any format.
#[test]
fn a_killed_recorder_leaves_what_was_shown_in_any_format() {
    for name in ["k.cast", "k.cast.zst", "k.ahr.zst", "k.ttyrec", "k.typescript"] {
        let home = Home::new();
        let mut seat = Seat::new(home.tapdeck(["rec", name, "--", "sh", "-c", "echo shown; sleep 60"]));
        seat.wait_text("shown");
        eventually("it is on disk", || {
            let out = home.run(["convert", "-q", "--partial", "--overwrite", name, "-o", "k.raw"]);
            out.status.code().is_some_and(|c| c < 2)
                && std::fs::read(home.path("k.raw")).is_ok_and(|b| b.starts_with(b"shown"))
        });
        signal(seat.child.id(), rustix::process::Signal::KILL);
        seat.end();
        let out = home.run(["convert", "-q", "--partial", name, "-o", "-", "--to", "raw"]);
        assert!(out.stdout.starts_with(b"shown"), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// A recording opens anywhere right after it ends, with no command in between; a short one needs no
/// index.
#[test]
fn the_index_is_written_as_it_goes() {
    let home = Home::new();
    let index = |args: &[&str]| {
        let out = home.run([&["index", "--json"], args].concat());
        serde_json::from_slice::<serde_json::Value>(&out.stdout).expect("JSON")
    };
    let rec = |args: &[&str], script: &str| {
        let out = home.run([&["rec", "-q"], args, &["--", "sh", "-c", script]].concat());
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    };
    let lines = "yes 'a line of some sixty characters, so that there are enough' | head -n 90000";
    rec(&["a.ahr"], lines);
    let found = index(&["a.ahr"]);
    assert_eq!((&found["written"], &found["keyframes"]), (&false.into(), &1.into()), "{found}");
    // Going on with the recording goes on with its index.
    rec(&["--append", "a.ahr"], lines);
    let found = index(&["a.ahr"]);
    assert_eq!((&found["written"], &found["keyframes"]), (&false.into(), &2.into()), "{found}");
    let screen = |at: &str| home.run(["play", "--at", at, "--speed", "1000000", "a.ahr"]).stdout;
    let with = screen("byte:9000000");
    older(&home, "a.ahr", "a.ahr");
    assert!(with == screen("byte:9000000") && with.len() > 1_000_000, "the same with and without");
    // Overwritten, too short, or not wanted: none.
    rec(&["--overwrite", "a.ahr"], "echo short");
    rec(&["--index", "off", "b.ahr"], lines);
    rec(&["--index", "whole", "c.ahr"], "echo short");
    let there = |name: &str| !home.part_bytes(name, "ahx").is_empty();
    assert_eq!((there("a.ahr"), there("b.ahr"), there("c.ahr")), (false, false, true));
    assert_eq!(index(&["c.ahr"])["written"], false);
    // One that breaks off is gone on with, and ends as one made at once.
    rec(&["--index", "off", "--append", "b.ahr"], lines);
    index(&["b.ahr"]);
    let whole = home.part_bytes("b.ahr", "ahx");
    home.append("b.ahr", "ahx", &whole[..whole.len() - 20]);
    assert_eq!(index(&["b.ahr"])["written"], true);
    assert_eq!(index(&["b.ahr"])["written"], false);
    assert_eq!(home.run(["verify", "b.ahr"]).status.code(), Some(0));
}

/// What is recorded of the input: as bytes, and how many bytes were left out.
fn recorded_input(path: &Path) -> (String, u64) {
    use tapdeck_tape::ahr::{Body, Item, Mark, Reader};
    let (mut text, mut left_out) = (String::new(), 0);
    for item in Reader::new(std::fs::File::open(path).expect("a recording")) {
        let Ok(Item::Record(record)) = item else { continue };
        match record.body {
            Body::Input { bytes } => text += &String::from_utf8_lossy(&bytes),
            Body::Mark { code, val } => {
                if let Mark::InputLag(n) = Mark::from_raw(code, val) {
                    left_out += u64::from(n);
                }
            }
            _ => {}
        }
    }
    (text, left_out)
}

/// Types a secret at a program that reads each key and draws a star for it, a name that the
/// terminal echoes, and a key that the program asks for in words.
fn type_secrets(home: &Home, record: &[&str]) {
    let script =
        "stty -icanon -echo; printf 'word? '; while c=$(head -c1) && [ -n \"$c\" ]; do printf '*'; done
        stty sane; printf '\nname? '; read n; printf 'API key: '; read k; echo done";
    let mut command = home.tapdeck(record);
    command.args(["--", "sh", "-c", script]).env("TAPDECK_CONFIG", home.path("c.toml"));
    let mut seat = Seat::new(command);
    seat.wait_text("word?");
    for (n, key) in ["h", "u", "n", "t", "e", "r", "2"].iter().enumerate() {
        seat.send(key);
        seat.wait_text(&format!("word? {}", "*".repeat(n + 1)));
    }
    seat.send("\r");
    seat.wait_text("name?");
    seat.send("ada");
    seat.wait_text("name? ada");
    seat.send("\r");
    seat.wait_text("API key:");
    seat.send("s3cr3t\r");
    seat.wait_text("done");
    assert_eq!(seat.end().code(), Some(0));
}

/// The terminal of such a program has its line editing off, too, as that of any editor: the
/// password was recorded.
#[test]
fn a_secret_that_the_program_masks_or_asks_for_is_not_recorded() {
    let home = Home::new();
    std::fs::write(home.path("c.toml"), "").expect("written");
    type_secrets(&home, &["rec", "-q", "-I", "r.ahr"]);
    assert_eq!(recorded_input(&home.path("r.ahr")), ("ada\r".to_owned(), 15));
    // Formats without a mark for it have a star for each byte.
    type_secrets(&home, &["rec", "-q", "-I", "r.cast"]);
    type_secrets(&home, &["cassette", "record", "kept"]);
    assert_eq!(home.run(["convert", "-q", "kept", "-o", "kept.cast"]).status.code(), Some(0));
    for name in ["r.cast", "kept.cast"] {
        let cast = std::fs::read_to_string(home.path(name)).expect("a recording");
        let events = cast.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let typed = events.filter(|e| e[1] == "i").filter_map(|e| e[2].as_str().map(str::to_owned));
        assert_eq!(typed.collect::<String>(), "*******\rada\r******\r", "{name}");
    }
    // With rules of the user's own.
    let config = "[rec]\nignored_prompts = ['key']\nsecret_prompts = ['(?i)name\\?$']\n";
    std::fs::write(home.path("c.toml"), config).expect("written");
    type_secrets(&home, &["rec", "-q", "-I", "own.ahr"]);
    assert_eq!(recorded_input(&home.path("own.ahr")), ("s3cr3t\r".to_owned(), 12));
}

/// A folder that an earlier version, or a user, had made readable stayed so.
#[test]
fn the_folder_of_recordings_is_private() {
    let home = Home::new();
    let folder = home.path("state/tapdeck/recordings");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("set");
    assert!(home.run(["rec", "-q", "--", "true"]).status.success());
    assert_eq!(folder.metadata().expect("there").permissions().mode() & 0o777, 0o700);
}
