//! `tapdeck convert`: any format to any other, with what is lost said, and nothing half-written.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use tapdeck_needs::has;

use crate::support::{Home, Seat, older, recorded_output};

/// A recording with colours, a byte that is not UTF-8, input and an exit code.
fn record(home: &Home, name: &str) {
    let script = "read x; printf 'one \\033[31mred\\033[m \\377bad\\n'; sleep 0.1; seq 1 40; exit 3";
    let mut child = home
        .tapdeck(["rec", "-q", "-I", name, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(b"typed\n").expect("written");
    assert_eq!(child.wait().expect("ended").code(), Some(3));
}

#[track_caller]
fn convert(home: &Home, args: &[&str]) -> String {
    let out = home.run([&["convert"], args].concat());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(0), "{args:?}: {said}");
    said
}

fn report(home: &Home, args: &[&str]) -> Value {
    let out = home.run([&["convert", "--json"], args].concat());
    serde_json::from_slice(&out.stdout).expect("a report")
}

fn lost(report: &Value) -> Vec<&str> {
    report["not_carried"].as_array().expect("a list").iter().filter_map(|l| l["what"].as_str()).collect()
}

#[test]
fn formats_that_carry_bytes_give_them_all_back() {
    let home = Home::new();
    record(&home, "a.ahr");
    let want = recorded_output(&home.path("a.ahr"));
    for name in ["b.ttyrec", "b.ttyrec.zst", "b.typescript", "b.raw", "b2.ahr"] {
        convert(&home, &["a.ahr", "-o", name]);
        let back = format!("back-{name}.ahr");
        convert(&home, &[name, "-o", &back]);
        assert_eq!(recorded_output(&home.path(&back)), want, "{name}");
        let mode = std::fs::metadata(home.path(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let verified = home.run(["verify", "--json", "b2.ahr"]);
    let verified: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(verified["sha256_matches"], true, "the new meta.json belongs to the new recording");
    assert_eq!(verified["exit"]["code"], 3);
}

#[test]
fn what_the_target_cannot_carry_is_counted() {
    let home = Home::new();
    record(&home, "a.ahr");
    let cast = report(&home, &["a.ahr", "-o", "a.cast"]);
    assert_eq!((&cast["from"], &cast["to"]), (&"ahr".into(), &"cast-v3".into()));
    assert!(lost(&cast).contains(&"invalid-utf8"), "{cast}");
    assert!(!lost(&cast).contains(&"input"), "{cast}");
    let ttyrec = report(&home, &["a.ahr", "-o", "a.ttyrec"]);
    assert!(lost(&ttyrec).contains(&"input") && lost(&ttyrec).contains(&"exit"), "{ttyrec}");
    let said = convert(&home, &["a.ahr", "-o", "b.ttyrec"]);
    assert!(said.contains("what ttyrec cannot carry: input: 1 with "), "{said}");
    assert_eq!(convert(&home, &["-q", "b.ttyrec", "-o", "c.ahr"]), "");
}

#[test]
fn exports_show_what_was_shown_and_cannot_act() {
    let home = Home::new();
    record(&home, "a.ahr");
    for name in ["a.txt", "a.ansi", "a.md", "a.json", "a.csv", "a.html", "a.svg"] {
        convert(&home, &["a.ahr", "-o", name]);
        let text = String::from_utf8(std::fs::read(home.path(name)).expect("read")).expect("text");
        assert!(text.contains("red") && text.contains("40"), "{name}: {text}");
        let acts = text.chars().any(|c| c.is_control() && !"\r\n\t".contains(c));
        assert_eq!(acts, name == "a.ansi", "{name}");
    }
    let text = std::fs::read_to_string(home.path("a.txt")).expect("read");
    assert_eq!(text.lines().count(), 41, "{text}");
}

#[test]
fn streams_in_and_out() {
    let home = Home::new();
    record(&home, "a.ahr");
    for to in ["cast", "cast-v2", "cast.zst", "ttyrec", "ahr"] {
        let piped = home.run(["convert", "-q", "a.ahr", "-o", "-", "--to", to]);
        assert_eq!(piped.status.code(), Some(0), "{}", String::from_utf8_lossy(&piped.stderr));
        let mut child = home
            .tapdeck(["convert", "-q", "-", "-o", "-", "--to", "txt"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("piped").write_all(&piped.stdout).expect("written");
        let out = child.wait_with_output().expect("ended");
        assert!(String::from_utf8_lossy(&out.stdout).ends_with("39\n40\n"), "{to}");
    }
}

/// Every command that reads recordings reads a pipe as it reads a file.
#[test]
fn a_pipe_is_as_good_as_a_file() {
    let home = Home::new();
    record(&home, "a.ahr");
    let shell = |script: &str| {
        let mut command = home.command("bash");
        command.args(["-c", script]).env("T", env!("CARGO_BIN_EXE_tapdeck"));
        command.output().expect("bash runs")
    };
    for name in ["a.ahr", "a.ttyrec", "a.cast.zst"] {
        if name != "a.ahr" {
            convert(&home, &["a.ahr", "-o", name]);
        }
        for what in
            ["play --fast", "branch-points --format csv", "convert -q --to txt -o -", "verify", "info"]
        {
            let file = shell(&format!("$T {what} {name}"));
            assert_eq!(file.status.code(), Some(0), "{what} {name}");
            let ways = [
                format!("$T {what} <(cat {name})"),
                format!("cat {name} | $T {what} -"),
                format!("mkfifo p; cat {name} > p & $T {what} p; e=$?; rm p; exit $e"),
            ];
            for way in ways {
                let piped = shell(&way);
                let (want, got) =
                    (String::from_utf8_lossy(&file.stdout), String::from_utf8_lossy(&piped.stdout));
                assert_eq!(piped.status.code(), Some(0), "{way}: {}", String::from_utf8_lossy(&piped.stderr));
                let same = match what {
                    // They begin with the name, and a file has more to tell beside it.
                    "verify" => want.split_once(": ").map(|w| w.1) == got.split_once(": ").map(|g| g.1),
                    "info" => {
                        let output = |text: &str| {
                            let mut lines = text.lines().map(str::trim);
                            lines.find(|l| l.starts_with("output")).map(str::to_owned)
                        };
                        output(&want).is_some() && output(&want) == output(&got)
                    }
                    _ => want == got && !want.is_empty(),
                };
                assert!(same, "{way}: {got}");
            }
        }
    }
}

/// The command, the title and the folder are in an .ahr; where nothing can be, they were lost
/// without a message.
#[test]
fn fields_of_the_header_that_have_no_place_are_counted() {
    let home = Home::new();
    let args = ["rec", "-q", "--headless", "--title", "a title", "h.ahr", "--", "echo", "hello"];
    assert_eq!(home.run(args).status.code(), Some(0));
    let meta = home.meta("h.ahr");
    // Beside these three there may be the kind of terminal.
    let term = u64::from(meta.get("term").is_some());
    for (out, fields) in [
        ("b.ahr", 0),
        ("b.ahr.zst", 0),
        ("b.cast", 1),
        ("b.cassette", 1),
        ("b.typescript", 2),
        ("b.ttyrec", 3 + term),
        ("b.ans", 2 + term),
        ("b.3a", 2 + term),
    ] {
        let report = report(&home, &["h.ahr", "-o", out]);
        let list = report["not_carried"].as_array().expect("a list");
        let counted =
            list.iter().find(|l| l["what"] == "header").map_or(0, |l| l["events"].as_u64().unwrap_or(0));
        assert_eq!(counted, fields, "{out}: {report}");
    }
    let copy = home.meta("b.ahr");
    for key in ["cmd", "title", "cwd"] {
        assert_eq!(copy[key], meta[key], "{key}");
    }
    // A stream and a compressed file tell as much.
    let piped = home.run(["convert", "-q", "h.ahr", "-o", "-", "--to", "ahr"]);
    std::fs::write(home.path("p.ahr"), &piped.stdout).expect("written");
    assert_eq!(home.meta("p.ahr")["title"], "a title");
    assert_eq!(home.run(["convert", "-q", "b.ahr.zst", "-o", "z.cast"]).status.code(), Some(0));
    let cast = std::fs::read_to_string(home.path("z.cast")).expect("written");
    assert!(cast.contains("a title") && cast.contains("echo hello"), "{cast}");
}

/// The message about an unreadable file has the true reason.
#[test]
fn what_is_no_recording_is_called_what_it_is() {
    let home = Home::new();
    record(&home, "a.ahr");
    convert(&home, &["a.ahr", "-o", "a.cast"]);
    convert(&home, &["a.ahr", "-o", "a.typescript", "--out-timing", "elsewhere"]);
    std::fs::write(home.path("empty.cast"), "").expect("written");
    std::fs::write(home.path("empty.ttyrec"), "").expect("written");
    std::fs::write(home.path("four.cast"), "{\"version\": 4}\n").expect("written");
    std::fs::write(home.path("text.3a"), "hello\n").expect("written");
    std::fs::write(home.path("one.json"), "{\"version\": 1}").expect("written");
    std::fs::write(home.path("two.cast"), "{\"version\": 2, \"width\": 80}\n").expect("written");
    std::fs::write(home.path("three.cast"), "{\"version\": 3, \"width\": 80, \"height\": 24}\n")
        .expect("written");
    assert_eq!(home.run(["convert", "-q", "--sidecar", "a.ahr", "-o", "demo.ahr"]).status.code(), Some(0));
    std::fs::write(home.path("zeros"), [0; 4096]).expect("written");
    for (args, code, word) in [
        (&["verify", "empty.cast"][..], 1, "it is empty"),
        (&["verify", "empty.ttyrec"], 1, "it is empty"),
        (&["info", "four.cast"], 4, "version 4"),
        (&["verify", "four.cast"], 1, "version 4"),
        (&["verify", "text.3a"], 1, "its name says 3a"),
        (&["verify", "a.typescript"], 2, "--timing"),
        (&["info", "zeros"], 4, "no recording in any known format"),
        (&["index", "a.cast"], 1, "only an .ahr can be indexed"),
        (&["repair", "a.cast", "-o", "b.cast"], 1, "only an .ahr can be repaired"),
        (&["run", "--window-size", "65535x65535", "--", "true"], 2, "each up to 1000"),
        // What no reader would show is not recorded either.
        (&["rec", "--window-size", "2000x50", "w.ahr", "--", "true"], 2, "each up to 1000"),
        (&["verify", "one.json"], 1, "missing field `width`"),
        (&["verify", "two.cast"], 1, "version 2 needs width and height"),
        (&["info", "three.cast"], 4, "version 3 needs term.cols and term.rows"),
        (&["verify", "demo.meta.json"], 1, "the sidecar of a recording"),
        (&["info", "demo.meta.json"], 4, "the sidecar of a recording"),
        (&["play", "demo.meta.json"], 4, "the sidecar of a recording"),
        (&["convert", "demo.meta.json", "-o", "x.cast"], 4, "the sidecar of a recording"),
        (&["convert", "a.cast", "-o", "t.typescript", "--out-timing", "./t.typescript"], 2, "timing file"),
    ] {
        let out = home.run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
    for what in ["info", "verify", "branch-points"] {
        let out = home.run([what, "--timing", "elsewhere", "a.typescript"]);
        assert_eq!(out.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&out.stderr));
    }
    // A recording made of one that says neither.
    std::fs::write(home.path("c.raw"), "hello").expect("written");
    convert(&home, &["c.raw", "-o", "c.ahr"]);
    let info = String::from_utf8(home.run(["info", "c.ahr"]).stdout).expect("text");
    assert!(!info.contains("1970") && !info.contains("command"), "{info}");
}

#[test]
fn nothing_is_overwritten_and_nothing_half_written_is_left() {
    let home = Home::new();
    record(&home, "a.ahr");
    convert(&home, &["a.ahr", "-o", "a.cast"]);
    let before = std::fs::read(home.path("a.cast")).expect("read");
    let again = home.run(["convert", "a.ahr", "-o", "a.cast"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("a.cast exists"));
    convert(&home, &["--overwrite", "a.ahr", "-o", "a.cast"]);
    assert_eq!(std::fs::read(home.path("a.cast")).expect("read"), before);

    std::fs::create_dir(home.path("d")).expect("made");
    let cut = [&before[..before.len() - 30], b"\n[0.1, \"o\" oops\n"].concat();
    std::fs::write(home.path("cut.cast"), cut).expect("written");
    let broken = home.run(["convert", "cut.cast", "-o", "d/out.ahr"]);
    assert_eq!(broken.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("nothing was written"));
    let left: Vec<_> = std::fs::read_dir(home.path("d")).expect("listed").collect();
    assert!(left.is_empty(), "{left:?}");
    let kept = home.run(["convert", "--partial", "cut.cast", "-o", "d/out.ahr"]);
    assert_eq!(kept.status.code(), Some(1));
    assert!(!recorded_output(&home.path("d/out.ahr")).is_empty());
}

#[test]
fn wrong_requests_are_refused_in_a_sentence() {
    let home = Home::new();
    record(&home, "a.ahr");
    std::fs::write(home.path("x.typescript"), "Script started on now\nhi\n").expect("written");
    std::fs::write(home.path("noise"), "nothing that anybody knows").expect("written");
    for (args, code, word) in [
        (&["a.ahr", "-o", "a.doc"][..], 2, "unsupported output format \".doc\"; supported: "),
        (&["nothing.ahr", "-o", "a.cast"], 3, "nothing.ahr"),
        (&["x.typescript", "-o", "x.ahr"], 2, "--timing"),
        (&["noise", "-o", "x.ahr"], 4, "--from"),
        (&["a.ahr", "-o", "no/such/folder.cast"], 4, "cannot write"),
        (&["a.ahr", "-o", "-", "--to", "typescript"], 2, "--out-timing"),
    ] {
        let out = home.run([&["convert"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{args:?}: {said}");
    }
}

/// What could act on the terminal does not go there.
#[test]
fn a_terminal_is_given_text_only() {
    let home = Home::new();
    record(&home, "a.ahr");
    let mut seat = Seat::new(home.tapdeck(["convert", "a.ahr", "-o", "-", "--to", "raw"]));
    assert_eq!(seat.end().code(), Some(2));
    assert!(seat.screen().contains("could act on this terminal"), "{}", seat.screen());
    // The title of a cast is a stranger's text, and so is a message that quotes it.
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"hi\\u001b]0;evil\\u0007\"]\n[1,\"q\u{202e}\u{7}\", oops\n";
    std::fs::write(home.path("h.cast"), cast).expect("written");
    let out = home.run(["convert", "--partial", "h.cast", "-o", "-", "--to", "txt"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "hi\n");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!said.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{said:?}");
}

#[test]
fn a_typescript_of_script_itself_is_read() {
    let home = Home::new();
    if !has("script") {
        return;
    }
    let script = ["-q", "-c", "printf 'from script\\n'", "--log-out", "s.typescript", "--log-timing", "s.tm"];
    let ran = home.command("script").args(script).stdin(Stdio::null()).output().expect("script runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    convert(&home, &["s.typescript", "--timing", "s.tm", "-o", "s.ahr"]);
    assert_eq!(recorded_output(&home.path("s.ahr")), b"from script\r\n");
    convert(&home, &["s.typescript", "-o", "s.txt"]);
    assert_eq!(std::fs::read(home.path("s.txt")).expect("read"), b"from script\n");
}

/// Turns and changes of the driver, beside an older recording, were dropped on the way to another.
#[test]
fn events_beside_a_recording_go_along_or_are_counted() {
    let home = Home::new();
    record(&home, "new.ahr");
    older(&home, "new.ahr", "a.ahr");
    let lines = [
        "{\"ts_ns\":1,\"kind\":\"driver\",\"from\":null,\"to\":\"ann\",\"why\":\"claimed\",\"fence\":1}",
        "{\"ts_ns\":2,\"kind\":\"marker\",\"n\":1,\"label\":\"of no record\"}",
        "{\"kind\":\"of a later version\",\"deep\":[1,{\"x\":null}]}",
    ];
    std::fs::write(home.path("a.events.jsonl"), lines.join("\n")).expect("written");
    let done = report(&home, &["a.ahr", "-o", "b.ahr"]);
    assert_eq!(lost(&done), [""; 0]);
    assert_eq!(home.part("b.ahr", "events.jsonl"), format!("{}\n{}\n", lines[0], lines[2]));
    for target in ["c.cast", "c.txt", "c.ttyrec", "c.cassette"] {
        let done = report(&home, &["a.ahr", "-o", target]);
        assert!(lost(&done).contains(&"beside"), "{target}: {done}");
    }
}

/// An export kept the last million lines, and dropped the first without a message.
#[test]
fn no_line_is_left_out_of_a_long_session() {
    let home = Home::new();
    std::fs::write(home.path("a.raw"), "x\r\n".repeat(1_500_000)).expect("written");
    assert_eq!(lost(&report(&home, &["a.raw", "-o", "a.txt"])), [""; 0]);
    assert_eq!(std::fs::metadata(home.path("a.txt")).expect("there").len(), 3_000_000);
}

/// The list of branch points has a million lines of scrollback, and says so.
#[test]
fn a_list_of_a_long_session_says_that_it_is_cut() {
    let home = Home::new();
    std::fs::write(home.path("a.raw"), "x\r\n".repeat(1_000_500)).expect("written");
    for form in ["json", "md"] {
        let out = home.run(["branch-points", "--format", form, "a.raw", "-o", &format!("list.{form}")]);
        assert!(out.status.success(), "{out:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains("only the last million lines are kept"), "{form}: {said}");
        let list = std::fs::read_to_string(home.path(&format!("list.{form}"))).expect("written");
        let head: Vec<&str> = list.lines().take(3).collect();
        assert!(head.concat().contains("it lacks the first 477 lines"), "{form}: {head:?}");
        let (lines, heads) = (list.lines().count(), 5);
        assert!((1_000_000..1_000_100 + heads).contains(&lines), "{form}: {lines}");
    }
}
