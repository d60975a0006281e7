//! Edited and joined recordings, and where two of them differ.

use serde_json::{Value, json};

use crate::support::Home;

/// A session on both screens, with pauses in between.
const SCRIPT: &str = "echo one; sleep 0.25; printf '\\033]2;title\\007\\033[?1049h\\033[3;5H\\033[31mfull'; sleep 0.25; \
    printf '\\033[1;1H漢字'; sleep 0.25; printf '\\033[?1049l'; echo two; sleep 0.25; seq 1 30; sleep 0.25; echo end; exit 3";

fn record(home: &Home, name: &str, script: &str) {
    let out = home.run(["rec", "-q", "--headless", "--window-size", "30x8", name, "--", "sh", "-c", script]);
    assert!(out.status.code().is_some(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(home.path(name).exists());
}

#[track_caller]
fn run(home: &Home, args: &[&str], code: i32) -> String {
    let out = home.run(args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[track_caller]
fn json(home: &Home, args: &[&str], code: i32) -> Value {
    serde_json::from_str(&run(home, args, code)).expect("JSON")
}

/// A picture of the screen at a position, with colours and cursor.
fn picture(home: &Home, name: &str, at: &str) -> String {
    run(home, &["convert", "-q", name, "-o", "-", "--format", "svg-still", "--to", at], 0)
}

#[test]
fn what_follows_a_cut_looks_as_it_did_in_every_format() {
    let home = Home::new();
    record(&home, "raw.ahr", SCRIPT);
    let marks = ["--mark", "30%=a", "--mark", "70%=b", "--mark", "90%=c"];
    run(&home, &[&["convert", "-q", "raw.ahr", "-o", "a.ahr"][..], &marks].concat(), 0);
    run(&home, &["convert", "-q", "a.ahr", "-o", "a.cast"], 0);
    let lines = run(&home, &["play", "--fast", "a.ahr"], 0);
    assert!(lines.contains("one\ntwo\n1\n"), "{lines}");
    for (i, cut) in
        [&["--from", "50%"][..], &["--cut", "20%..60%"], &["--cut", "..0.3s", "--cut", "byte:40..65%"]]
            .into_iter()
            .enumerate()
    {
        for from in ["a.ahr", "a.cast"] {
            for to in ["ahr", "cast", "cast-v2", "ttyrec", "typescript", "ahr.zst"] {
                let name = format!("{i}-{}.{to}", &from[2..]);
                run(&home, &[&["convert", "-q", from, "-o", &name, "--format", to][..], cut].concat(), 0);
                assert_eq!(run(&home, &["play", "--fast", &name], 0), lines, "{name}");
                for at in ["@b", "@c"] {
                    // The others have no markers, or no labels.
                    if ["ahr", "cast", "cast-v2"].contains(&to) {
                        assert!(picture(&home, &name, at) == picture(&home, "a.ahr", at), "{name} {at}");
                    }
                }
            }
        }
    }
    assert!(picture(&home, "a.ahr", "@a") != picture(&home, "a.ahr", "@b"));
}

#[test]
fn an_edited_recording_says_so_and_takes_along_what_stands_beside() {
    let home = Home::new();
    record(&home, "a.ahr", SCRIPT);
    let output = run(&home, &["convert", "-q", "a.ahr", "-o", "-", "--format", "raw"], 0);
    let byte = |text: &str| output.find(text).expect("shown") as u64;
    let line = |anchor: u64, text: &str| {
        json!({ "ts_ns": 5, "anchor_byte": anchor, "line": 0, "text": text }).to_string() + "\n"
    };
    let instructions = line(byte("one"), "early") + &line(byte("end"), "late");
    std::fs::write(home.path("a.instructions.jsonl"), instructions).expect("written");
    let report = json(
        &home,
        &["convert", "--json", "a.ahr", "-o", "b.ahr", "--from", "40%", "--speed", "2", "--title", "new"],
        0,
    );
    assert_eq!(report["removed"]["instructions"], 1, "{report}");
    assert_eq!(report["edits"][1], "speed 2");
    let kept: Value = serde_json::from_str(&home.part("b.ahr", "instructions.jsonl")).expect("one line");
    let output = run(&home, &["convert", "-q", "b.ahr", "-o", "-", "--format", "raw"], 0);
    assert_eq!(
        (&kept["text"], kept["anchor_byte"].as_u64()),
        (&"late".into(), output.rfind("end").map(|n| n as u64))
    );

    let (before, after) = (home.meta("a.ahr"), home.meta("b.ahr"));
    let digest = tapdeck_host::file_digest(&home.path("a.ahr")).expect("read");
    assert_eq!(after["history"][0]["sources"][0]["sha256"], digest);
    assert_eq!((&after["title"], &after["exit"]), (&"new".into(), &before["exit"]));
    assert!(after["startedAtNs"].as_u64() > before["startedAtNs"].as_u64());
    run(&home, &["convert", "-q", "b.ahr", "-o", "c.ahr", "--to", "50%", "--no-input"], 0);
    let info = run(&home, &["info", "c.ahr"], 0);
    let edited: Vec<&str> = info.lines().filter(|line| line.starts_with("  edited ")).collect();
    assert!(
        edited.len() == 2 && edited[0].contains("a.ahr (") && edited[1].contains("end at 50%, no input"),
        "{info}"
    );
    run(&home, &["convert", "-q", "--sidecar", "a.ahr", "-o", "d.ahr", "--from", "40%"], 0);
    let beside = std::fs::read(home.path("d.meta.json")).expect("beside it");
    let beside: Value = serde_json::from_slice(&beside).expect("JSON");
    assert_eq!((&beside["history"][0]["sources"][0]["name"], beside.get("seal")), (&"a.ahr".into(), None));
    assert!(home.path("d.instructions.jsonl").exists() && !home.path("b.meta.json").exists());
    assert!(home.meta("c.ahr").get("exit").is_none(), "its end was cut off");
    assert!(run(&home, &["verify", "c.ahr"], 0).contains("whole"));
}

#[test]
fn joined_recordings_have_the_lines_of_all() {
    let home = Home::new();
    record(&home, "a.ahr", SCRIPT);
    record(&home, "b.ahr", "echo B begins; echo; exit 0");
    run(&home, &["convert", "-q", "b.ahr", "-o", "b.cast"], 0);
    let report =
        json(&home, &["cat", "--json", "a.ahr", "b.cast", "-o", "both.ahr", "--mark", "100%=end"], 0);
    assert_eq!(report["in"], json!(["a.ahr", "b.cast"]));
    let text = run(&home, &["convert", "-q", "both.ahr", "-o", "-", "--format", "txt"], 0);
    assert!(text.contains("one\ntwo\n1\n") && text.ends_with("end\nB begins\n"), "{text}");
    let info = json(&home, &["info", "--json", "both.ahr"], 0);
    assert_eq!(info["meta"]["exit"]["code"], 0, "as the last one ended");
    assert_eq!(info["meta"]["history"][0]["sources"][1]["name"], "b.cast");
    let picture_of = |name| picture(&home, name, "100%");
    assert_eq!(picture_of("both.ahr"), picture_of("b.ahr"), "the second begins on a fresh screen");
    run(&home, &["cat", "-q", "a.ahr", "a.ahr", "-o", "a.ahr", "--overwrite"], 2);
}

#[test]
fn edits_that_make_no_sense_are_refused() {
    let home = Home::new();
    record(&home, "a.ahr", "echo a; sleep 0.2; echo b");
    for (args, code, what) in [
        (&["--cut", "0.1..9"][..], 3, "cut 0.1s..9s: 9s is not in the recording"),
        (&["--cut", "0.15..0.1"], 2, "ends before it begins"),
        (&["--cut", "0..0.1", "--cut", "0.05..0.15"], 2, "cut 0s..0.1s and cut 0.05s..0.15s overlap"),
        (&["--from", "@x"], 3, "no marker or snapshot"),
        (&["--to", "turn:1"], 3, "no turns"),
        (
            &["--from", "0.1", "--mark", "0.05=x"],
            2,
            "marker \"x\" at 0.05s would be removed by start at 0.1s",
        ),
        (&["--from", "100%"], 2, "nothing of the recording would be left"),
        (&["--cut", ".."], 2, "all of the recording"),
        (&["--from", "nonsense"], 2, "expected a position"),
    ] {
        let out = home.run([&["convert", "a.ahr", "-o", "x.ahr"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(what), "{args:?}: {said}");
        assert!(!home.path("x.ahr").exists(), "{args:?}");
    }
}

#[test]
fn screens_are_compared_and_not_bytes() {
    let home = Home::new();
    record(&home, "a.ahr", SCRIPT);
    record(&home, "slow.ahr", &SCRIPT.replace("0.25", "0.4").replace("echo one", "printf o; echo ne"));
    record(&home, "other.ahr", &SCRIPT.replace("echo two", "echo 12:34:56 zwei"));
    run(&home, &["convert", "-q", "a.ahr", "-o", "a.cast"], 0);
    for b in ["a.ahr", "a.cast", "slow.ahr"] {
        let text = run(&home, &["diff", "a.ahr", b], 0);
        assert!(text.starts_with("no difference: "), "{b}: {text}");
    }
    let text = run(&home, &["diff", "a.ahr", "other.ahr"], 1);
    let row = text.lines().find(|line| line.starts_with("two ")).expect("the row that differs");
    assert!(
        text.starts_with("first difference after 3 screens equal") && row.ends_with("| 12:34:56 zwei"),
        "{text}"
    );
    let coloured = run(&home, &["diff", "--color", "always", "a.ahr", "other.ahr"], 1);
    assert!(coloured.contains("\x1b[32m12:34:56 zwei\x1b[m\n"), "{coloured}");
    let narrow = home.tapdeck(["diff", "a.ahr", "other.ahr"]).env("COLUMNS", "40").output().expect("ran");
    let narrow = String::from_utf8_lossy(&narrow.stdout).into_owned();
    assert!(narrow.contains("\n| two\n") && narrow.contains("\n| 12:34:56 zwei\n"), "{narrow}");
    let found = json(&home, &["diff", "--json", "a.ahr", "other.ahr"], 1);
    assert_eq!((&found["equal"], &found["equal_screens"]), (&false.into(), &3.into()));
    assert_eq!(found["difference"]["changed_rows"], json!([2]));
    assert_eq!(found["difference"]["b"]["screen"]["text"][1], "12:34:56 zwei");
    // What scrolls by is masked wherever it is seen.
    record(&home, "clock.ahr", "echo 10:00:00; sleep 0.3; echo x");
    record(&home, "later.ahr", "echo 11:30:00; sleep 0.3; echo x");
    run(&home, &["diff", "clock.ahr", "later.ahr"], 1);
    for how in [["--normalise", "clock"], ["--mask", "rows=1,cols=1-8"], ["--normalize", "/1[01]:../N/"]] {
        run(&home, &["diff", "clock.ahr", "later.ahr", how[0], how[1]], 0);
    }
    run(&home, &["diff", "clock.ahr", "gone.ahr"], 3);
    run(&home, &["diff", "clock.ahr", "later.ahr", "--mask", "all"], 2);
    record(&home, "short.ahr", "echo 10:00:00");
    assert!(run(&home, &["diff", "clock.ahr", "short.ahr"], 1).contains("short.ahr: no more screens"));
    record(&home, "red.ahr", "printf '\\033[31m10:00:00\\033[m\\r\\n'; sleep 0.3; echo x");
    run(&home, &["diff", "clock.ahr", "red.ahr"], 0);
    run(&home, &["diff", "--style", "clock.ahr", "red.ahr"], 1);
}
