//! `tapdeck scrub`: a real session without its secret, in every format, in every file, in every
//! frame.

use std::fs;

use serde_json::Value;
use tapdeck_tape::cassette::{Cassette, CassetteEvent, EventKind, Files, names};
use tapdeck_term::{Scanner, Settings, Size, Term, Token};

use crate::support::{Home, Seat, recorded_output};

const KEY: &str = "sk-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0";
const VALUE: &str = "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0";

/// A key that is read is echoed, wrapped at column 80, moved about and put into a title.
const SCRIPT: &str = "printf 'Your key? '; read -r k; x=$(printf '%070d' 0); printf '%s %s\\n' $x $k; i=1; \
    for c in $(printf %s $k | fold -w1); do printf '\\033[9;%dH%s\\033[0m' $((i+3)) $c; i=$((i+1)); done; \
    printf '\\033]2;%s\\007\\033[10;1H\\033[?25h' $k; printf '%s' $k | head -c 30; printf '\\r\\033[2Kover\\n'";

fn record(home: &Home, name: &str) {
    let title = format!("with {KEY}");
    type_it(home.tapdeck(["rec", "-q", "-I", "--title", &title, name, "--", "sh", "-c", SCRIPT]));
}

/// The user types the key, byte by byte, and each comes back before the next.
fn type_it(command: std::process::Command) {
    let mut seat = Seat::with_size(command, 80, 24);
    seat.wait_text("Your key?");
    for typed in 1..=KEY.len() {
        seat.send(&KEY.as_bytes()[typed - 1..typed]);
        seat.wait_text(&KEY[..typed]);
    }
    seat.send("\r");
    assert!(seat.end().success());
}

fn sequences(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    Scanner::new().feed(bytes, |_, token| {
        if let Token::Control { bytes, .. } = token {
            // Of a title only the frame: its text is what is masked.
            list.push(if bytes.starts_with(b"\x1b]") { bytes[..4].to_vec() } else { bytes.to_vec() });
        }
    });
    list
}

/// Every frame, byte by byte: where there is something and how wide it is; and none shows the
/// secret.
fn check_frames(before: &[u8], after: &[u8]) {
    let term = || Term::new(Size::new(80, 24), Settings::default());
    let (mut a, mut b) = (term(), term());
    for (i, (x, y)) in before.iter().zip(after).enumerate() {
        a.feed(&[*x]);
        b.feed(&[*y]);
        let shape = |t: &Term| -> Vec<Vec<Option<bool>>> {
            let cells =
                |c: Vec<Option<String>>| c.into_iter().map(|c| c.map(|c| c.trim().is_empty())).collect();
            t.screen().map(|l| cells(l.cells())).collect()
        };
        assert_eq!(shape(&a), shape(&b), "byte {i}");
        let shown: String = b.screen().map(|l| l.text()).collect();
        assert!(!shown.contains(&VALUE[..16]) && !b.title().contains(&VALUE[..16]), "byte {i}: {shown}");
    }
}

#[test]
fn a_typed_secret_is_in_no_file_and_no_frame() {
    let home = Home::new();
    record(&home, "a.ahr");
    let before = recorded_output(&home.path("a.ahr"));
    assert!(String::from_utf8_lossy(&before).contains(VALUE), "it was there");
    let out = home.run(["scrub", "--json", "a.ahr", "-o", "b.ahr"]);
    let report: Value = serde_json::from_slice(&out.stdout).expect("a report");
    assert_eq!((out.status.code(), &report["status"]), (Some(0), &"scrubbed".into()), "{report}");
    let rule = |name: &str| {
        let rules = report["rules"].as_array().expect("a list");
        rules.iter().find(|r| r["rule"] == name).cloned().expect("every rule is listed")
    };
    let key = rule("anthropic-key");
    for place in ["output", "input", "fields"] {
        assert!(key[place].as_u64() > Some(0), "{place}: {key}");
    }
    assert_eq!(rule("jwt")["hits"], 0);
    let after = recorded_output(&home.path("b.ahr"));
    assert_eq!(after.len(), before.len());
    assert_eq!(sequences(&after), sequences(&before));
    check_frames(&before, &after);
    // In no file beside it either, nor in any other format made of it.
    for name in ["b.cast", "b.ttyrec", "b.typescript", "b.json", "b.txt", "b.md"] {
        assert!(home.run(["convert", "-q", "b.ahr", "-o", name]).status.success(), "{name}");
    }
    let mut files = 0;
    for entry in fs::read_dir(home.path(".")).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with("b.") && entry.path().is_file() {
            files += 1;
            let text = fs::read(entry.path()).expect("read");
            assert!(!String::from_utf8_lossy(&text).contains(&VALUE[..16]), "{:?}", entry.path());
        }
    }
    assert!(files >= 8, "{files}");
    assert!(home.run(["verify", "b.ahr"]).status.success());
    // Twice is once.
    let again = home.run(["scrub", "--json", "--dry-run", "b.ahr"]);
    let again: Value = serde_json::from_slice(&again.stdout).expect("a report");
    assert_eq!(again["hits"], 0, "{again}");
}

#[test]
fn every_format_keeps_its_format() {
    let home = Home::new();
    record(&home, "a.ahr");
    for name in ["a.cast", "a.cast.zst", "a.ttyrec", "a.typescript", "a.raw"] {
        assert!(home.run(["convert", "-q", "a.ahr", "-o", name]).status.success(), "{name}");
        let clean = name.replacen('a', "b", 1);
        let out = home.run(["scrub", "-q", name, "-o", &clean]);
        assert_eq!(out.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        let back = format!("{clean}.ahr");
        assert!(home.run(["convert", "-q", &clean, "-o", &back]).status.success(), "{name}");
        let output = recorded_output(&home.path(&back));
        assert!(!String::from_utf8_lossy(&output).contains(&VALUE[..16]), "{name}");
        // What tells whose key it was stays; all of the rest is masked.
        let masked = format!("sk-ant-api03-{}\r\n", "*".repeat(VALUE.len()));
        assert!(String::from_utf8_lossy(&output).contains(&masked), "{name}");
    }
}

/// As a folder and as an archive: no file holds it, the sequences are intact, the frames keep their
/// shape, and the result is a whole cassette of its own.
#[test]
fn a_scrubbed_cassette_is_another_cassette() {
    let home = Home::new();
    let args = ["cassette", "record", "-q", "--no-scrub", "a", "--", "sh", "-c", SCRIPT, "sh", "--token"];
    let mut command = home.tapdeck(args);
    command.arg("wonder1land2rabbit3hole");
    type_it(command);
    let before = Cassette::open(&home.path("a")).expect("recorded");
    assert!(before.frames.iter().any(|f| f.text.concat().contains(KEY)), "it was there");
    for to in ["b", "b.tar.zst"] {
        let out = home.run(["scrub", "--json", "a", "-o", to]);
        let report: Value = serde_json::from_slice(&out.stdout).expect("a report");
        assert_eq!((out.status.code(), &report["status"]), (Some(0), &"scrubbed".into()), "{report}");
        let verify = home.run(["cassette", "verify", to]);
        assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
        let after = Cassette::open(&home.path(to)).expect("whole");
        assert_ne!(after.manifest.id, before.manifest.id);
        assert_ne!(after.manifest.content_digest.sha256, before.manifest.content_digest.sha256);
        assert_eq!(after.manifest.optional.get("scrubbed_from"), Some(before.manifest.id.as_str().into()));
        assert_eq!(after.scrub_report.status, "scrubbed");
        let hits = |name: &str| after.scrub_report.rules.iter().find(|r| r.rule == name).map(|r| r.hits);
        assert!(
            hits("anthropic-key") > Some(5) && hits("key-colon-value") == Some(1) && hits("jwt") == Some(0)
        );
        assert_eq!(after.manifest.command.argv[4..], ["--token", &"*".repeat(23)]);
        let files = Files::read(&home.path(to)).expect("read");
        for name in names::REQUIRED {
            let bytes = files.get(name).expect("there");
            let text = String::from_utf8_lossy(bytes);
            for gone in [&VALUE[..12], &VALUE[18..], "rabbit"] {
                assert!(!text.contains(gone), "{gone} in {name}");
            }
        }
        assert_eq!(sequences(after.raw()), sequences(before.raw()));
        check_frames(before.raw(), after.raw());
        let typed = |c: &Cassette| -> Vec<u8> {
            let bytes = |e: &CassetteEvent| match &e.kind {
                EventKind::Input(input) => input.bytes.to_vec(),
                _ => Vec::new(),
            };
            c.events.iter().flat_map(bytes).collect()
        };
        let masked = format!("sk-ant-api03-{}\r", "*".repeat(VALUE.len()));
        assert_eq!((typed(&before), typed(&after)), (format!("{KEY}\r").into_bytes(), masked.into_bytes()));
        // Twice is once.
        let again = home.run(["scrub", "--json", "--dry-run", to]);
        let again: Value = serde_json::from_slice(&again.stdout).expect("a report");
        assert_eq!(again["hits"], 0, "{again}");
    }
    assert_eq!(home.run(["scrub", "--dry-run", "a"]).status.code(), Some(1));
    for (to, why) in [("b", "exists"), ("c.cast", "cast"), ("-", "standard output"), ("a", "itself")] {
        let out = home.run(["scrub", "a", "-o", to]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(why), "{to}: {said}");
    }
    fs::write(home.path("a/output.raw"), "other").expect("written");
    let damaged = home.run(["scrub", "a", "-o", "d"]);
    assert_eq!(damaged.status.code(), Some(4), "{}", String::from_utf8_lossy(&damaged.stderr));
    assert!(!home.path("d").exists());
}

/// The exit code says whether all of a recording was looked at, and a dry run masks nothing.
#[test]
fn what_cannot_be_looked_at_is_not_called_clean() {
    let home = Home::new();
    let script = "echo AKIAIOSFODNN7EXAMPLE; sleep 0.6; seq 1 4000";
    for name in ["a.ahr", "a.cast"] {
        assert!(home.run(["rec", "-q", name, "--", "sh", "-c", script]).status.success());
    }
    let whole = fs::read(home.path("a.ahr")).expect("a recording");
    fs::write(home.path("cut.ahr"), &whole[..whole.len() - 20]).expect("written");
    let mut hole = whole.clone();
    let at = hole.len() - 200;
    hole[at..at + 20].fill(0xff);
    fs::write(home.path("hole.ahr"), hole).expect("written");
    let cast = fs::read(home.path("a.cast")).expect("a recording");
    fs::write(home.path("cut.cast"), &cast[..cast.len() - 8]).expect("written");
    let noise: Vec<u8> = (0..3000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(home.path("bin.ahr"), noise).expect("written");
    for (name, code, status) in [
        ("a.ahr", 0, "scrubbed"),
        ("cut.ahr", 1, "incomplete"),
        ("hole.ahr", 1, "incomplete"),
        ("cut.cast", 1, "incomplete"),
        ("bin.ahr", 4, "cannot be read"),
    ] {
        let clean = format!("clean-{name}");
        for args in [&["scrub", name, "-o", &clean][..], &["scrub", "--dry-run", name]] {
            let out = home.run(args);
            let said = String::from_utf8_lossy(&out.stderr);
            let dry = args.contains(&"--dry-run");
            // With --dry-run, a hit is enough for an exit code of 1.
            assert_eq!(out.status.code(), Some(if dry { code.max(1) } else { code }), "{args:?}: {said}");
            match dry && code < 4 {
                true => assert!(said.contains("would mask ") && !said.contains("scrubbed"), "{said}"),
                false => {
                    assert!(said.contains(status) || said.contains("nothing in it can be read"), "{said}")
                }
            }
        }
    }
}

#[test]
fn rules_and_values_of_ones_own() {
    let home = Home::new();
    let script = "echo TICKET-1234 tok wonderland-rabbit-hole; printf '%s\\n' TICKET";
    assert!(home.run(["rec", "-q", "a.ahr", "--", "sh", "-c", script]).status.success());
    let rule = |example: &str| {
        format!(
            "[[rule]]\nname = 'ticket'\npattern = 'TICKET-(\\d+)'\nhits = [['TICKET-12', '{example}']]\nmisses = ['TICKET']\n"
        )
    };
    fs::write(home.path("r.toml"), rule("TICKET-**")).expect("written");
    let mut scrub =
        home.tapdeck(["scrub", "a.ahr", "-o", "b.ahr", "--rules", "r.toml", "--secret-env", "RABBIT"]);
    let out = scrub.env("RABBIT", "wonderland-rabbit-hole").output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("ticket: 1 in output") && said.contains("env:RABBIT: 1 in output"), "{said}");
    let output = String::from_utf8_lossy(&recorded_output(&home.path("b.ahr"))).into_owned();
    assert!(output.contains("TICKET-**** tok **********************"), "{output}");
    fs::write(home.path("wrong.toml"), rule("TICKET-XX")).expect("written");
    for (args, why, code) in [
        (vec!["--rules", "wrong.toml"], "ticket", 2),
        (vec!["--rules", "none.toml"], "none.toml", 3),
        (vec!["--pack", "nope"], "nope", 2),
        (vec!["--no-rule", "nope"], "nope", 2),
        (vec!["--secret-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL", 2),
    ] {
        let out = home.run([&["scrub", "a.ahr", "-o", "c.ahr"], &args[..]].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(!home.path("c.ahr").exists());
    }
    for (args, code) in [
        (vec!["scrub", "a.ahr", "-o", "b.ahr"], 2),
        (vec!["scrub", "a.ahr", "-o", "a.ahr", "--overwrite"], 2),
        (vec!["scrub", "a.ahr", "-o", "b.cast"], 2),
        (vec!["scrub", "none.ahr", "-o", "d.ahr"], 3),
        (vec!["scrub", "-", "-o", "d.ahr"], 2),
        (vec!["scrub", "--list-rules"], 0),
    ] {
        assert_eq!(home.run(&args).status.code(), Some(code), "{args:?}");
    }
}

/// A key that is printed in two halves with a pause between them, in each kind of recorder.
#[test]
fn a_recorder_masks_before_it_writes() {
    let home = Home::new();
    let (head, tail) = KEY.split_at(20);
    for name in ["a.ahr", "a.cast"] {
        let script = format!("printf 'first {head}'; sleep 0.4; echo '{tail} last'; echo rabbit $RABBIT");
        let mut rec =
            home.tapdeck(["rec", "--scrub", "--secret-env", "RABBIT", name, "--", "sh", "-c", &script]);
        let out = rec.env("RABBIT", "down-the-hole").output().expect("it runs");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            out.status.success() && said.contains("anthropic-key") && said.contains("env:RABBIT"),
            "{said}"
        );
        let shown = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(shown.contains(KEY), "the user's own terminal is not scrubbed: {shown}");
        let copy = format!("{name}.raw");
        assert!(home.run(["convert", "-q", name, "-o", &copy]).status.success());
        let output = fs::read_to_string(home.path(&copy)).expect("read");
        assert_eq!(output.len(), shown.len(), "{output:?}");
        assert!(output.starts_with("first sk-ant-") && output.contains(" last"), "{output:?}");
        for gone in [&VALUE[..8], &VALUE[14..], "hole"] {
            assert!(!output.contains(gone), "{output:?}");
        }
    }
    let meta = home.part("a.ahr", "meta.json");
    assert!(!meta.contains(&VALUE[8..]), "the command line: {meta}");
    // What an edit says of itself in the history is masked, too.
    let title = format!("the key is {KEY}");
    assert!(home.run(["convert", "-q", "a.ahr", "-o", "e.ahr", "--title", &title]).status.success());
    assert!(home.part("e.ahr", "meta.json").contains(KEY));
    assert!(home.run(["scrub", "e.ahr", "-o", "f.ahr"]).status.success());
    let meta = home.part("f.ahr", "meta.json");
    assert!(meta.contains("the key is") && !meta.contains(&VALUE[8..]), "{meta}");
    assert_eq!(home.run(["rec", "--scrub=nope", "b.ahr", "--", "true"]).status.code(), Some(2));
    assert!(!home.path("b.ahr").exists());
}

/// The bytes of every file of a recording or a cassette, an `.ahr` as the text that it has.
fn all_files(home: &Home, name: &str) -> String {
    let path = home.path(name);
    let mut text = String::new();
    if path.is_dir() {
        for file in fs::read_dir(&path).expect("a folder") {
            let bytes = fs::read(file.expect("an entry").path()).expect("read");
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
        return text;
    }
    for export in ["x.cast", "x.txt", "x.json"] {
        let out = home.run(["convert", "--overwrite", name, "-o", export]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        text.push_str(&fs::read_to_string(home.path(export)).expect("text"));
    }
    for part in ["meta.json", "events.jsonl"] {
        text.push_str(&home.part_now(name, part).unwrap_or_default());
    }
    text
}

/// `cassette record` left the user's name; a password that was typed without an echo was shown
/// later, and the prompt of the shell behind the request for it was masked.
#[test]
fn every_recorder_masks_what_is_the_users_own() {
    let home = Home::new();
    fs::write(home.path("own.toml"), "[[rule]]\nname = \"ticket\"\npattern = 'TICKET-\\d+'\n")
        .expect("written");
    let script = "stty -echo; printf 'Password: '; read -r p; stty echo; printf 'ada@host1:~$ ready\\n'; \
        echo \"it was $p for $USER in $HOME/src: TICKET-4711\"; echo 'ada@host1:~$ done'";
    let cassette = ["cassette", "record", "--rules", "own.toml", "kept"];
    let native = ["rec", "-q", "-I", "--scrub", "--rules", "own.toml", "a.ahr"];
    let deaf = ["rec", "-q", "--scrub", "--rules", "own.toml", "b.cast"];
    for args in [&cassette[..], &native, &deaf] {
        let name = args[args.len() - 1];
        let mut command = home.tapdeck([args, &["--", "sh", "-c", script]].concat());
        command.env("USER", "adalovelace").env_remove("LOGNAME");
        let mut seat = Seat::with_size(command, 120, 24);
        seat.wait_text("Password:");
        seat.send("open sesame\r");
        seat.wait_text("it was open sesame");
        assert!(seat.end().success(), "{name}: {}", seat.screen());
        let text = all_files(&home, name);
        let own = home.path("");
        let folder = own.to_str().expect("text").trim_end_matches('/');
        for secret in ["open sesame", "sesame", "adalovelace", folder, "TICKET-4711"] {
            assert!(!text.contains(secret), "{name}: {secret} is in {text}");
        }
        for kept in ["ada@host1:~$ ready", "ada@host1:~$ done", "it was"] {
            assert!(text.contains(kept), "{name}: {kept} is not in {text}");
        }
    }
    let report = Cassette::open(&home.path("kept")).expect("accepted").scrub_report;
    let hits = |name: &str| report.rules.iter().find(|r| r.rule == name).map(|r| r.hits);
    assert_eq!(hits("typed-password"), Some(2), "typed, and shown: {report:?}");
    assert_eq!(hits("ticket"), Some(2), "shown, and in the command");
    // Rules without anything to mask by them.
    for args in
        [&["rec", "--rules", "own.toml", "c.ahr"][..], &["probe", "claude", "quota", "--rules", "own.toml"]]
    {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
    let out = home.run(["cassette", "record", "--rules", "none.toml", "no", "--", "true"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("none.toml"), "{out:?}");
}

/// Random secrets, written by a program in random pieces with colours, wraps and cursor moves, are
/// in no file that is left.
#[test]
fn random_secrets_are_in_no_file() {
    let home = Home::new();
    for seed in [3_u64, 1815, 4_711_000_001] {
        let mut state = seed;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % below
        };
        let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
        let fronts = ["sk-ant-api03-", "ghp_", "api_key=", "--password ", "Authorization: Bearer "];
        let (mut output, mut secrets) = (String::new(), Vec::new());
        for n in 0..24 {
            let mut value: String = (0..30 + random(6)).map(|_| letters[random(letters.len())]).collect();
            value.insert(random(10), '7');
            value.insert(0, 'k');
            let line = format!("{}{value}", fronts[n % fronts.len()]);
            let col = random(100);
            let row = 2 + random(20);
            match random(3) {
                0 => output.push_str(&format!("{}{line}\r\n", " ".repeat(col))),
                1 => {
                    for c in line.chars() {
                        output.push_str(&format!("\x1b[3{}m{c}", random(8)));
                    }
                    output.push_str("\x1b[m\r\n");
                }
                _ => {
                    for (i, c) in line.char_indices().rev() {
                        output.push_str(&format!("\x1b[{row};{}H{c}", 5 + i));
                    }
                    output.push_str("\x1b[24;1H\r\n");
                }
            }
            secrets.push(value);
        }
        let folder = home.path("pieces");
        fs::create_dir_all(&folder).expect("a folder");
        let mut rest = output.as_bytes();
        let mut script = String::from("cd pieces\n");
        let mut number = 0;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((1 + random(400)).min(rest.len()));
            fs::write(folder.join(number.to_string()), piece).expect("written");
            script.push_str(&format!("cat {number}\n"));
            if random(3) == 0 {
                script.push_str("sleep 0.01\n");
            }
            (rest, number) = (behind, number + 1);
        }
        fs::write(home.path("run.sh"), script).expect("written");
        for args in [
            &["cassette", "record", "--overwrite", "--headless", "-q", "c"][..],
            &["rec", "-q", "--overwrite", "--headless", "--scrub", "r.ahr"],
            &["rec", "-q", "--overwrite", "--headless", "--scrub", "r.cast"],
        ] {
            let name = args[args.len() - 1];
            let out = home.run([args, &["--size", "132x24", "--", "sh", "run.sh"]].concat());
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            let text = all_files(&home, name);
            for secret in &secrets {
                let backwards: String = secret.chars().rev().collect();
                for part in [secret.as_str(), &secret[..16], &secret[secret.len() - 16..], &backwards] {
                    assert!(!text.contains(part), "seed {seed}, {name}: {part}");
                }
            }
        }
    }
}
