//! Encrypted recordings: written for a public key, read with its identity alone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::{Home, Seat, TAPDECK, eventually};

/// A key pair of age, as `age-keygen` writes it.
const IDENTITY: &str = "# public key: age103lvjd40lsv57mxjwn49ncxfdmw6wl928semjzc60u2qlahdlvvqd8vaqa\n\
                        AGE-SECRET-KEY-1PR7E5V5Q0S75HXNWHUU46MTA8H4XV7XZELH7GC48HWE3UAP3TD8SC2Z6VK\n";
const PUBLIC: &str = "age103lvjd40lsv57mxjwn49ncxfdmw6wl928semjzc60u2qlahdlvvqd8vaqa";
const OTHER: &str = "age12wr7nljvwunrw85u9r94l80vfk28szcc8rqx642l4p57pf2axdmq392ukt";

fn home() -> Home {
    let home = Home::new();
    std::fs::write(home.path("key.txt"), IDENTITY).expect("written");
    private(&home.path("key.txt"));
    home
}

fn private(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("set");
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned()
}

#[track_caller]
fn succeeds(out: &Output) -> String {
    assert!(out.status.success(), "{}", text(out));
    text(out)
}

/// Whether a word stands in any file of the home, in the state folder and its names too.
fn is_anywhere(folder: &Path, word: &str) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        let named = path.to_string_lossy().contains(word);
        let inside = if path.is_dir() {
            is_anywhere(&path, word)
        } else {
            let bytes = std::fs::read(&path).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        };
        named || inside
    })
}

#[test]
fn every_command_reads_an_encrypted_recording_with_its_identity() {
    let home = home();
    let script = "printf 'tapir\\n'; printf 'tapir again\\n'";
    let rec = ["rec", "--encrypt", PUBLIC, "--title", "tapir title", "a.ahr", "--", "sh", "-c", script];
    succeeds(&home.run(rec));
    assert!(!is_anywhere(&home.path(""), "tapir"), "nothing of it is in the clear");
    let reads: [&[&str]; 8] = [
        &["play", "--fast", "a.ahr"],
        &["info", "a.ahr"],
        &["info", "--json", "a.ahr"],
        &["verify", "a.ahr"],
        &["turns", "a.ahr"],
        &["branch-points", "a.ahr"],
        &["convert", "a.ahr", "-o", "-", "--format", "txt"],
        &["repair", "a.ahr", "-o", "b.ahr"],
    ];
    for read in reads {
        let refused = home.run(read);
        assert_eq!(refused.status.code(), Some(4), "{read:?}: {}", text(&refused));
        assert!(text(&refused).contains("a.ahr is encrypted; give an identity"), "{}", text(&refused));
        let opened = home.run(read.iter().chain(&["--identity", "key.txt"]));
        let said = succeeds(&opened);
        if !matches!(read[0], "verify" | "turns" | "repair") {
            assert!(said.contains("tapir"), "{read:?}: {said}");
        }
    }
    let info = home.tapdeck(["info", "a.ahr"]).env("TAPDECK_IDENTITY", "key.txt").output().expect("it runs");
    let info = succeeds(&info);
    assert!(info.contains("tapir title") && info.contains("sh -c"), "{info}");
    assert!(!is_anywhere(&home.path(""), "tapir"), "a repaired copy is encrypted, too");
    let indexed = home.run(["index", "a.ahr"]);
    assert!(
        text(&indexed).contains("cannot be indexed") && !home.path("a.ahx").exists(),
        "{}",
        text(&indexed)
    );
    succeeds(&home.run(["convert", "a.ahr", "-o", "plain.ahr", "--identity", "key.txt"]));
    assert!(succeeds(&home.run(["info", "plain.ahr"])).contains("tapir title"));
    succeeds(&home.run(["scrub", "a.ahr", "-o", "scrubbed.ahr", "--identity", "key.txt"]));
    let mut seat = Seat::new(home.tapdeck(["view", "--identity", "key.txt", "a.ahr"]));
    seat.wait_text("tapir again");
    seat.send("q");
    seat.end();
}

#[test]
fn keys_that_cannot_be_used_are_named_before_the_program_runs() {
    let home = home();
    std::fs::write(home.path("loose.txt"), IDENTITY).expect("written");
    std::fs::write(home.path("bad.txt"), "age1nonsense\n").expect("written");
    let secret = IDENTITY.lines().last().expect("a line");
    for (key, want) in [
        ("age1nonsense", "--encrypt age1nonsense: no age public key"),
        ("missing.txt", "missing.txt: no such file"),
        ("bad.txt", "bad.txt: line 1 is no age public key"),
        (secret, "an identity is secret and must not stand on a command line"),
    ] {
        let out = home.run(["rec", "--encrypt", key, "a.ahr", "--", "touch", "ran"]);
        assert!(!out.status.success() && text(&out).contains(want), "{key}: {}", text(&out));
        assert!(!text(&out).contains(secret), "no secret is repeated");
    }
    assert!(!home.path("ran").exists() && !home.path("a.ahr").exists());
    let cast = home.run(["rec", "--encrypt", PUBLIC, "a.cast", "--", "true"]);
    assert_eq!(cast.status.code(), Some(2), "{}", text(&cast));
    succeeds(&home.run(["rec", "--encrypt", OTHER, "a.ahr", "--", "echo", "x"]));
    for (key, want) in [
        ("key.txt", "is encrypted to other keys"),
        ("loose.txt", "run chmod 600"),
        (secret, "must not stand on a command line"),
    ] {
        for command in [&["info", "a.ahr"][..], &["web", "--port", "0"]] {
            if key == "key.txt" && command[0] == "web" {
                continue;
            }
            let out = home.run([command, &["--identity", key]].concat());
            assert!(!out.status.success() && text(&out).contains(want), "{key}: {}", text(&out));
            assert!(!text(&out).contains(secret), "no secret is repeated");
        }
    }
}

#[test]
fn an_encrypted_recording_is_continued_sealed_and_survives_its_recorder() {
    let home = home();
    // The recipients may stand in a file; that of the identity does.
    let encrypt = ["--encrypt", "key.txt", "--encrypt", OTHER];
    let rec = |more: &[&str], say: &str| {
        home.run([&["rec"][..], &encrypt, more, &["a.ahr", "--", "echo", say]].concat())
    };
    succeeds(&rec(&[], "first"));
    let plain = home.run(["rec", "--append", "a.ahr", "--", "true"]);
    assert!(text(&plain).contains("is encrypted: continue it with --encrypt"), "{}", text(&plain));
    succeeds(&rec(&["--append"], "second"));
    let shown = succeeds(&home.run(["play", "--fast", "--identity", "key.txt", "a.ahr"]));
    assert!(shown.contains("first") && shown.contains("second"), "{shown}");
    let info = succeeds(&home.run(["info", "--identity", "key.txt", "a.ahr"]));
    assert!(info.contains("echo first"), "{info}");
    succeeds(&home.run(["rec", "p.ahr", "--", "true"]));
    let mixed = home.run(["rec", "--append", "--encrypt", PUBLIC, "p.ahr", "--", "true"]);
    assert!(text(&mixed).contains("is not encrypted, and cannot become so"), "{}", text(&mixed));

    // A block for another reader costs itself alone.
    succeeds(&home.run(["rec", "--append", "--encrypt", OTHER, "a.ahr", "--", "echo", "third"]));
    let shown = text(&home.run(["play", "--fast", "--identity", "key.txt", "a.ahr"]));
    assert!(shown.contains("first") && shown.contains("second") && !shown.contains("third"), "{shown}");
    let verified = home.run(["verify", "--identity", "key.txt", "a.ahr"]);
    assert!(text(&verified).contains("encrypted to another key"), "{}", text(&verified));

    std::fs::write(home.path("seal.key"), "0123456789abcdef").expect("written");
    succeeds(&home.run(["rec", "--seal", "seal.key", "--encrypt", PUBLIC, "s.ahr", "--", "echo", "sealed"]));
    let verify = ["verify", "--key", "seal.key", "--identity", "key.txt", "s.ahr"];
    succeeds(&home.run(verify));
    let mut bytes = std::fs::read(home.path("s.ahr")).expect("there");
    let at = bytes.len() - 3;
    bytes[at] ^= 1;
    std::fs::write(home.path("s.ahr"), bytes).expect("written");
    assert_eq!(home.run(verify).status.code(), Some(1));

    let script = "echo before the end; read x";
    let mut killed = home.tapdeck(["rec", "--encrypt", PUBLIC, "k.ahr", "--", "sh", "-c", script]);
    let mut killed = killed.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let fast = ["play", "--fast", "--identity", "key.txt", "k.ahr"];
    eventually("it to be on disk", || text(&home.run(fast)).contains("before the end"));
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    assert!(succeeds(&home.run(fast)).contains("before the end"));
}

/// An instruction to a live session stood in the clear beside its encrypted recording, and was
/// refused later.
#[cfg(feature = "tui")]
#[test]
fn the_viewer_keeps_an_instruction_in_an_encrypted_recording() {
    let home = home();
    let script = "echo shown; read x";
    let mut seat =
        Seat::new(home.tapdeck(["rec", "--view", "--encrypt", PUBLIC, "v.ahr", "--", "sh", "-c", script]));
    seat.wait_text("shown");
    seat.send("\x1d");
    seat.wait("the viewer's keys", |seat| !seat.screen().contains("TYPING"));
    seat.send("i");
    seat.send("tapir");
    seat.wait_text("tapir");
    seat.send("\r");
    seat.wait_text("kept in v.ahr");
    assert!(!is_anywhere(&home.path(""), "tapir"));
    home.run(["kill", "--all"]);
    let list = || home.run(["branch-points", "--identity", "key.txt", "v.ahr"]).stdout;
    eventually("the recording to have it", || String::from_utf8_lossy(&list()).contains("tapir"));
}

#[test]
fn a_late_recording_and_the_configuration_encrypt_too() {
    let home = home();
    succeeds(&home.run(["run", "-d", "--name", "s", "--", "sh", "-c", "echo tapir; read x"]));
    let mut late = home.tapdeck(["rec", "--attach", "s", "--encrypt", PUBLIC, "late.ahr"]);
    let late = late.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let fast = ["play", "--fast", "--identity", "key.txt", "late.ahr"];
    eventually("it to be on disk", || text(&home.run(fast)).contains("tapir"));
    succeeds(&home.run(["type", "s", "--enter", "x"]));
    succeeds(&late.wait_with_output().expect("it ends"));
    assert!(!is_anywhere(&home.path("late.ahr").with_file_name("state"), "tapir"));
    let bytes = std::fs::read(home.path("late.ahr")).expect("there");
    assert!(!bytes.windows(5).any(|window| window == b"tapir"));

    let config = home.path("config.toml");
    let settings = format!(
        "[rec]\nencrypt = [\"{PUBLIC}\"]\n[play]\nidentity = \"{}\"\n",
        home.path("key.txt").display()
    );
    std::fs::write(&config, settings).expect("written");
    let configured =
        |args: &[&str]| home.tapdeck(args).env("TAPDECK_CONFIG", &config).output().expect("it runs");
    succeeds(&configured(&["rec", "c.ahr", "--", "echo", "tapir"]));
    assert!(text(&home.run(["info", "c.ahr"])).contains("is encrypted"));
    assert!(succeeds(&configured(&["play", "--fast", "c.ahr"])).contains("tapir"));
    let cast = configured(&["rec", "c.cast", "--", "true"]);
    assert!(text(&cast).contains("cannot be encrypted") && !home.path("c.cast").exists(), "{}", text(&cast));
}

#[test]
fn the_blocks_are_messages_that_age_reads() {
    if !tapdeck_needs::has("age") {
        return;
    }
    let home = home();
    succeeds(&home.run(["rec", "--encrypt", PUBLIC, "a.ahr", "--", "echo", "tapir"]));
    let file = std::fs::read(home.path("a.ahr")).expect("there");
    let header = usize::from(u16::from_le_bytes([file[6], file[7]]));
    let len = u32::from_le_bytes([file[28], file[29], file[30], file[31]]) as usize;
    std::fs::write(home.path("block.age"), &file[header..header + len]).expect("written");
    let age = home.command("age").args(["-d", "-i", "key.txt", "-o", "block.ahr", "block.age"]).output();
    succeeds(&age.expect("it runs"));
    let block = std::fs::read(home.path("block.ahr")).expect("there");
    assert!(block.starts_with(b"AHRC\x01\x00"), "a plain block is inside");
    // One whose identity is protected by a passphrase asks for it.
    let protect = format!("{TAPDECK} run -- age -p -a -o locked.txt key.txt");
    let mut seat = Seat::new({
        let mut shell = home.command("sh");
        shell.args(["-c", &protect]);
        shell
    });
    seat.wait_text("Enter passphrase");
    seat.send("open sesame\r");
    seat.wait_text("Confirm passphrase");
    seat.send("open sesame\r");
    seat.end();
    private(&home.path("locked.txt"));
    let mut seat = Seat::new(home.tapdeck(["info", "--identity", "locked.txt", "a.ahr"]));
    seat.wait_text("Passphrase of locked.txt:");
    seat.send("open sesame\r");
    seat.wait_text("echo tapir");
    seat.end();
}
