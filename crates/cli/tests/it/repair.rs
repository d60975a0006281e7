//! The health of recordings: `verify`, `repair`, `index`, seals and branch points.

use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;
use serde_json::Value;
use tapdeck_tape::ahr::{BlockBuilder, Mark, Quality, Record};
use tapdeck_term::Size;

use crate::support::{Home, blocks_of, recorded_part};

const START: u64 = 1_700_000_000_000_000_000;

/// A recording of five blocks, a second and ten lines each, with a snapshot in the third; where
/// blocks begin.
fn five_blocks(home: &Home, name: &str) -> (Vec<u8>, Vec<usize>) {
    let mut builder = BlockBuilder::new(0);
    let (mut file, mut starts, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    assert_eq!(builder.push(Record::resize(START, Size::new(80, 24))), None);
    for block in 0..5u64 {
        starts.push(file.len());
        let ts = START + block * 1_000_000_000;
        let text: String = (0..10).map(|n| format!("block {block} line {n}\r\n")).collect();
        assert_eq!(builder.push(Record::data(ts, shown.len() as u64, Bytes::from(text.clone()))), None);
        shown.extend_from_slice(text.as_bytes());
        if block == 2 {
            assert_eq!(builder.push(Record::snapshot(ts, 7, shown.len() as u64, "the third")), None);
        }
        file.extend_from_slice(builder.finish(Quality::default(), block == 4));
    }
    std::fs::write(home.path(name), &file).expect("written");
    (shown, starts)
}

fn damage(home: &Home, from: &str, to: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(home.path(from)).expect("read");
    change(&mut bytes);
    std::fs::write(home.path(to), bytes).expect("written");
}

#[track_caller]
fn verify(home: &Home, args: &[&str], code: i32) -> Value {
    let out = home.run([&["verify", "--json"], args].concat());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn each_damaged_range_is_named_with_what_it_held() {
    let home = Home::new();
    let (_, starts) = five_blocks(&home, "a.ahr");
    damage(&home, "a.ahr", "b.ahr", |bytes| bytes[starts[1] + 50..starts[1] + 60].fill(0));
    let found = verify(&home, &["b.ahr"], 1);
    let range = &found["damages"][0];
    assert_eq!(range["offset"], starts[1]);
    assert_eq!(range["lost_bytes"], 160);
    assert_eq!((&range["after_ns"], &range["before_ns"]), (&0.into(), &2_000_000_000u64.into()));
    let out = home.run(["verify", "b.ahr"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains(&format!("byte {}: ", starts[1])), "{text}");
    assert!(text.contains("160 bytes of output") && text.contains("from 0.000 s to 2.000 s"), "{text}");
}

#[test]
fn a_repaired_copy_is_whole_and_loses_nothing_else() {
    let home = Home::new();
    let (shown, starts) = five_blocks(&home, "a.ahr");
    let len = std::fs::metadata(home.path("a.ahr")).expect("there").len() as usize;
    type Change = Box<dyn Fn(&mut Vec<u8>)>;
    let (one, four) = (starts[1], starts[4]);
    let changes: [(Change, usize); 5] = [
        (Box::new(|_| {}), shown.len()),
        (Box::new(move |b| b[one + 50..one + 60].fill(0)), shown.len() - 160),
        (Box::new(move |b| b.truncate(four + 10)), shown.len() - 160),
        (Box::new(|b| b.extend_from_slice(b"something else")), shown.len()),
        (Box::new(move |b| drop(b.splice(one..one, *b"noise between"))), shown.len()),
    ];
    for (i, (change, kept)) in changes.iter().enumerate() {
        let (bad, good) = (format!("bad{i}.ahr"), format!("good{i}.ahr"));
        damage(&home, "a.ahr", &bad, change);
        let before = std::fs::read(home.path(&bad)).expect("read");
        let out = home.run(["repair", &bad, "-o", &good]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{i}: {said}");
        assert_eq!(said.contains("is whole"), i == 0, "{i}: {said}");
        verify(&home, &[&good], 0);
        assert_eq!(recorded_part(&home.path(&good), &shown), *kept, "{i}");
        assert_eq!(std::fs::read(home.path(&bad)).expect("read"), before, "the original is left alone");
        let mode = std::fs::metadata(home.path(&good)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(std::fs::read(home.path("good0.ahr")).expect("read").len(), len);
    assert_eq!(home.run(["repair", "a.ahr", "-o", "good0.ahr"]).status.code(), Some(2), "it is there");
    for verb in ["repair", "convert"] {
        let itself = home.run([verb, "--overwrite", "a.ahr", "-o", "./a.ahr"]);
        assert_eq!(itself.status.code(), Some(2), "{verb}");
    }
    std::fs::write(home.path("good0.snapshots.jsonl"), "of the old one").expect("written");
    assert_eq!(home.run(["repair", "--overwrite", "a.ahr", "-o", "good0.ahr"]).status.code(), Some(0));
    assert!(!home.path("good0.snapshots.jsonl").exists(), "what spoke of the old one is gone with it");
    std::fs::write(home.path("noise.ahr"), [7; 5000]).expect("written");
    assert_eq!(home.run(["repair", "noise.ahr", "-o", "x.ahr"]).status.code(), Some(1));
    assert!(!home.path("x.ahr").exists());
}

/// `verify` called a recording whole from which a block was cut out, where no output came behind
/// it; `repair` said of such a loss that it was none, and `verify` of the copy that it had happened
/// while recording.
#[test]
fn output_that_is_missing_before_the_end_is_missed() {
    let home = Home::new();
    let mut builder = BlockBuilder::new(0);
    let mut blocks = Vec::new();
    let records = [
        vec![Record::resize(START, Size::new(80, 24)), Record::data(START, 0, &b"one\r\n"[..])],
        vec![Record::data(START + 1_000, 5, vec![b'x'; 3_000])],
        vec![Record::mark(START + 2_000, Mark::Exit(0))],
    ];
    for (n, block) in records.into_iter().enumerate() {
        for record in block {
            assert_eq!(builder.push(record), None);
        }
        blocks.push(builder.finish(Quality::default(), n == 2).to_vec());
    }
    let [first, second, last] = &blocks[..] else { unreachable!("three blocks") };
    let garbled: Vec<u8> = second.iter().map(|b| b ^ 0x5a).collect();
    for (name, middle) in [("cut", &[][..]), ("garbled", &garbled)] {
        let (bad, good) = (format!("{name}.ahr"), format!("{name}-good.ahr"));
        std::fs::write(home.path(&bad), [first, middle, last].concat()).expect("written");
        assert_eq!(verify(&home, &[&bad], 1)["missing_bytes"], 3_000);
        let done = home.run(["repair", "--json", &bad, "-o", &good]);
        let done: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!((&done["lost_bytes"], &done["copy_whole"]), (&3_000.into(), &true.into()), "{name}");
        assert_eq!(verify(&home, &[&good], 0)["repaired_loss_bytes"], 3_000);
        let said = String::from_utf8(home.run(["verify", &good]).stdout).expect("text");
        assert!(said.contains("a repair cut out") && !said.contains("while recording"), "{said}");
    }
}

/// A copy gets a digest of its own, which must not vouch for what it was made of.
#[test]
fn a_digest_that_did_not_match_is_told_by_a_repair() {
    let home = Home::new();
    let late = "echo one; sleep 0.5";
    assert_eq!(home.run(["rec", "-q", "a.ahr", "--", "sh", "-c", late]).status.code(), Some(0));
    let sound = home.run(["repair", "--json", "a.ahr", "-o", "b.ahr"]);
    let sound: Value = serde_json::from_slice(&sound.stdout).expect("JSON");
    assert_eq!((&sound["whole"], &sound["sha256_matches"]), (&true.into(), &true.into()));
    // A block that is gone leaves no trace but that.
    damage(&home, "a.ahr", "a.ahr", |bytes| {
        let blocks = blocks_of(bytes);
        bytes.drain(blocks[1]..blocks[2]);
    });
    let out = home.run(["repair", "a.ahr", "-o", "d.ahr"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("SHA-256 differs"));
    assert_eq!(home.meta("d.ahr")["repairedFromSha256Mismatch"], true);
    verify(&home, &["a.ahr"], 1);
}

/// Files named `-` were left behind.
#[test]
fn what_needs_a_file_does_not_go_to_standard_output() {
    let home = Home::new();
    five_blocks(&home, "a.ahr");
    for args in [
        &["repair", "a.ahr", "-o", "-"][..],
        &["rec", "b.ahr", "--out-branch-points", "-", "--", "true"],
        &["test", "--junit", "-", "nowhere"],
        &["cassette", "record", "-", "--", "true"],
    ] {
        let out = home.run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), said.contains("name a file")), (Some(2), true), "{args:?}: {said}");
    }
    let names = std::fs::read_dir(home.path("")).expect("listed").flatten().map(|e| e.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('-')));
}

#[test]
fn recordings_of_others_are_read_to_their_end() {
    let home = Home::new();
    five_blocks(&home, "a.ahr");
    for name in ["a.cast", "a.ttyrec"] {
        assert_eq!(home.run(["convert", "-q", "a.ahr", "-o", name]).status.code(), Some(0));
        // This one was never ended, which only a .cast of version 3 can tell.
        let (code, whole) = if name == "a.cast" { (1, false) } else { (0, true) };
        assert_eq!(verify(&home, &[name], code)["whole"], whole);
        damage(&home, name, &format!("cut-{name}"), |bytes| bytes.truncate(bytes.len() - 20));
        assert_eq!(verify(&home, &[&format!("cut-{name}")], 1)["whole"], false, "{name}");
    }
}

#[test]
fn a_seal_shows_every_change() {
    let home = Home::new();
    std::fs::write(home.path("key"), [9; 32]).expect("written");
    std::fs::write(home.path("other"), [8; 32]).expect("written");
    let script = "seq 1 2000; sleep 0.4; echo end";
    let out = home.run(["rec", "-q", "--seal", "key", "s.ahr", "--", "sh", "-c", script]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let verdict = |name: &str, key: &str, code| {
        let found = verify(&home, &["--key", key, name], code);
        found["seal"]["verdict"].as_str().expect("a verdict").to_owned()
    };
    assert_eq!(verdict("s.ahr", "key", 0), "intact");
    assert_eq!(verdict("s.ahr", "other", 1), "wrong-key");
    // Without its last block, the head of the seal is gone, and nothing tells whether that is all.
    damage(&home, "s.ahr", "t.ahr", |bytes| {
        let blocks = blocks_of(bytes);
        bytes.truncate(*blocks.last().expect("a block"));
    });
    assert_eq!(verdict("t.ahr", "key", 1), "unfinished");
    // One taken out, two exchanged, and one more behind the end.
    damage(&home, "s.ahr", "t.ahr", |bytes| {
        let blocks = blocks_of(bytes);
        bytes.drain(blocks[1]..blocks[2]);
    });
    assert_eq!(verdict("t.ahr", "key", 1), "broken");
    damage(&home, "s.ahr", "t.ahr", |bytes| {
        let blocks = blocks_of(bytes);
        bytes[blocks[1]..blocks[3]].rotate_left(blocks[2] - blocks[1]);
    });
    assert_eq!(verdict("t.ahr", "key", 1), "broken");
    damage(&home, "s.ahr", "t.ahr", |bytes| bytes.extend_from_within(..blocks_of(bytes)[1]));
    assert_eq!(verdict("t.ahr", "key", 1), "broken");
    // A description that an attacker adds changes nothing of what is sealed, and is told.
    std::fs::copy(home.path("s.ahr"), home.path("t.ahr")).expect("copied");
    let forged = home.meta("s.ahr").to_string().replace("\"sh\"", "\"zsh\"");
    home.append("t.ahr", "meta.json", format!("{forged}\n").as_bytes());
    let found = verify(&home, &["--key", "key", "t.ahr"], 0);
    assert_eq!(
        (&found["seal"]["verdict"], &found["added"][0]["part"]),
        (&"intact".into(), &"meta.json".into())
    );
    assert_eq!(home.run(["rec", "--append", "s.ahr", "--", "true"]).status.code(), Some(2));
    // What is intact is named, and so is what the seal says nothing of.
    home.append("s.ahr", "instructions.jsonl", b"{}\n");
    let out = String::from_utf8(home.run(["verify", "--key", "key", "s.ahr"]).stdout).expect("text");
    assert!(out.contains("seal intact: the recording, its meta.json"), "{out}");
    assert!(out.contains("added since it was finished, and not sealed: instructions.jsonl"), "{out}");
    std::fs::write(home.path("short"), "secret").expect("written");
    assert_eq!(home.run(["rec", "--seal", "short", "x.ahr", "--", "true"]).status.code(), Some(2));
    assert_eq!(home.run(["rec", "--seal", "key", "x.cast", "--", "true"]).status.code(), Some(2));
}

#[test]
fn an_index_that_does_not_fit_is_made_anew() {
    let home = Home::new();
    five_blocks(&home, "a.ahr");
    let index = || -> Value {
        let out = home.run(["index", "--json", "a.ahr"]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
        serde_json::from_slice(&out.stdout).expect("JSON")
    };
    assert_eq!((&index()["written"], &index()["written"]), (&true.into(), &false.into()));
    assert_eq!(index()["moments"], 1);
    // Foreign, damaged, and stale.
    let whole = home.part_bytes("a.ahr", "ahx");
    home.append("a.ahr", "ahx", b"AHXI nothing of the kind");
    assert_eq!(index()["written"], true);
    home.append("a.ahr", "ahx", &whole[..whole.len() - 3]);
    assert_eq!(index()["written"], true);
    assert_eq!(home.run(["verify", "a.ahr"]).status.code(), Some(0));
    assert_eq!(home.run(["rec", "-q", "--append", "a.ahr", "--", "echo", "more"]).status.code(), Some(0));
    let played = home.run(["play", "--idle-time-limit", "1ms", "--at", "@the third", "a.ahr"]);
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    assert!(text.starts_with("block 3 line 0\r\n") && text.ends_with("more\r\n"), "{text}");
    assert_eq!(index()["written"], true);
    assert_eq!(home.run(["index", "nothing.ahr"]).status.code(), Some(3));
    std::fs::write(home.path("noise.ahr"), [7; 5000]).expect("written");
    assert_eq!(home.run(["index", "noise.ahr"]).status.code(), Some(1));
    assert_eq!(std::fs::read(home.path("noise.ahr")).expect("read"), [7; 5000]);
}

#[test]
fn branch_points_stand_beside_the_line_in_work() {
    let home = Home::new();
    five_blocks(&home, "a.ahr");
    let out = home.run(["branch-points", "--format", "json", "a.ahr"]);
    let rows: Vec<Value> = serde_json::from_slice(&out.stdout).expect("JSON");
    let at = rows.iter().position(|r| r["kind"] == "snapshot").expect("a snapshot");
    assert_eq!((&rows[at]["id"], &rows[at]["label"]), (&7.into(), &"the third".into()));
    assert_eq!(rows[at - 1]["text"], "block 2 line 9");
    assert_eq!(rows[at + 1]["text"], "block 3 line 0");
    assert_eq!(rows.len(), 51);
    let md = String::from_utf8(home.run(["branch-points", "a.ahr"]).stdout).expect("text");
    assert!(md.contains("snapshot 7"), "{md}");
    let csv = home.run(["branch-points", "--format", "csv", "a.ahr", "-o", "a.csv"]);
    assert_eq!(csv.status.code(), Some(0));
    assert!(std::fs::read_to_string(home.path("a.csv")).expect("read").contains("snapshot,7,480,"));
    assert_eq!(home.run(["branch-points", "a.ahr", "-o", "a.csv"]).status.code(), Some(2));
    assert_eq!(home.run(["branch-points", "nothing.ahr"]).status.code(), Some(3));
    let whole = std::fs::read(home.path("a.ahr")).expect("read");
    for (length, code) in [(20, 4), (whole.len() - 1, 0)] {
        std::fs::write(home.path("cut.ahr"), &whole[..length]).expect("written");
        let out = home.run(["branch-points", "cut.ahr"]);
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("see tapdeck verify"), "{out:?}");
    }
    assert_eq!(home.run(["index", "-"]).status.code(), Some(2));

    let rec = home.run(["rec", "-q", "--out-branch-points", "b.json", "b.cast", "--", "echo", "=1+1"]);
    assert_eq!(rec.status.code(), Some(0), "{}", String::from_utf8_lossy(&rec.stderr));
    let rows: Vec<Value> =
        serde_json::from_slice(&std::fs::read(home.path("b.json")).expect("read")).expect("JSON");
    assert_eq!(rows[0]["text"], "=1+1");
}
