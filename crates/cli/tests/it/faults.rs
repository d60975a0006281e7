//! Faults that need more than one program to provoke.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use tapdeck_needs::skip;

use crate::support::{Home, recorded_part};

/// A really full disk, where a small file system can be mounted.
#[test]
fn a_full_disk_never_ends_in_silence() {
    let home = Home::new();
    let disk = home.path("disk");
    std::fs::create_dir(&disk).expect("made");
    let mounted = home
        .command("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !mounted {
        skip("this user may not mount a tmpfs");
        return;
    }
    std::fs::write(home.path("key"), [9; 32]).expect("written");
    let out = home.run([
        "rec",
        "--seal",
        "key",
        "disk/full.ahr",
        "--",
        "sh",
        "-c",
        "head -c 4000000 /dev/urandom; echo; echo still here",
    ]);
    let verified = home.run(["verify", "disk/full.ahr"]);
    let sealed = home.run(["verify", "--json", "--key", "key", "disk/full.ahr"]);
    let kept = recorded_part(&disk.join("full.ahr"), &out.stdout);
    let unmounted = home.command("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|s| s.success()));
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!((out.status.code(), message.lines().count()), (Some(4), 1), "{message}");
    assert!(message.to_lowercase().contains("no space"), "{message}");
    let verified = (verified.status.code(), String::from_utf8_lossy(&verified.stdout).into_owned());
    assert_eq!(verified.0, Some(1), "{}", verified.1);
    for said in ["incomplete", "lost while recording", "ended with exit code 0"] {
        assert!(verified.1.contains(said), "{said}: {}", verified.1);
    }
    // The block that did not fit was dropped whole, a quarter of a megabyte.
    assert!(kept > 2_000_000, "{kept} bytes kept");
    // The seal may have lost its end to the full disk, but it must not report a change.
    let sealed = String::from_utf8_lossy(&sealed.stdout).into_owned();
    assert!(!sealed.contains("is not what was sealed"), "{sealed}");
}

/// Process 1 of a container is given every orphan, and is killed by no signal that it has not asked
/// for.
#[test]
fn as_process_one_it_reaps_orphans_and_ends_with_the_right_code() {
    let home = Home::new();
    let can = home
        .command("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|s| s.success()) {
        skip("this user may not make a pid namespace");
        return;
    }
    let under = |script: &str| {
        let args =
            ["--pid", "--fork", "--mount-proc", crate::support::TAPDECK, "run", "--", "sh", "-c", script];
        home.command("unshare").args(args).stdin(Stdio::null()).output().expect("unshare runs")
    };
    let orphans = "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' &) ; done; sleep 0.5; ps -eo stat= | grep -c Z; exit 6";
    let out = under(orphans);
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "0", "no zombie is left");
    assert_eq!(out.status.code(), Some(6));
    let out = under("kill -KILL $$");
    assert!(out.status.code() == Some(137) || out.status.signal() == Some(9), "{:?}", out.status);
}

/// A hundred sessions at once, each with its own terminal, leave nothing behind.
#[test]
fn many_at_once() {
    let home = Home::new();
    let mut all: Vec<_> = (0..40)
        .map(|i| {
            let script = format!("seq 1 200; exit {i}");
            home.tapdeck(["run", "--", "sh", "-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .expect("tapdeck runs")
        })
        .collect();
    for (i, child) in all.drain(..).enumerate() {
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(i32::try_from(i).expect("small")));
        assert_eq!(out.stdout.iter().filter(|b| **b == b'\n').count(), 200);
    }
}

/// A recording in a format of others cannot say what is missing from its middle: it ends where the
/// disk did.
#[test]
fn a_refused_recording_in_another_format_ends_whole() {
    for (name, limit) in [
        // Room for several writes, however much is written at once, and for less than all.
        ("f.cast", 1000),
        ("f.cast.zst", 400),
        ("f.ttyrec", 1000),
        ("f.ttyrec.zst", 400),
        ("f.typescript", 1000),
        ("f.typescript", 1001),
    ] {
        refused_in_another_format(name, limit);
    }
}

fn refused_in_another_format(name: &str, limit: u32) {
    let home = Home::new();
    // Output that hardly compresses, in lines.
    let inner = "head -c 300000 /dev/urandom | od -An -v -tx1; echo still here";
    let script = format!("ulimit -f {limit}; exec {} rec {name} -- sh -c '{inner}'", crate::support::TAPDECK);
    let out = home.command("sh").args(["-c", &script]).stdin(Stdio::null()).output().expect("it runs");
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!(out.status.code(), Some(4), "{name}: {message}");
    assert!(message.contains("are missing from it, the rest is whole"), "{message}");
    let verified = home.run(["verify", name]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    // A ttyrec cannot tell that it has no end.
    let expected = if name.contains("ttyrec") { (0, "whole") } else { (1, "incomplete") };
    assert_eq!(
        (verified.status.code(), said.contains(expected.1)),
        (Some(expected.0), true),
        "{name}: {said}"
    );
    let kept = home.run(["convert", "-q", name, "-o", "-", "--to", "raw"]).stdout;
    assert!(kept.len() > 50_000 && out.stdout.starts_with(&kept), "{name}: what is there is the beginning");
}

/// A file that was emptied behind the recorder's back got a hole in place of what was lost, without
/// a message.
#[test]
fn a_recording_that_another_process_cuts_says_so() {
    let home = Home::new();
    let script =
        "echo before; while ! [ -s cut.ahr ]; do sleep 0.05; done; sleep 0.3; : > cut.ahr; echo after";
    let out = home.run(["rec", "cut.ahr", "--", "sh", "-c", script]);
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), message.contains("was cut while")), (Some(4), true), "{message}");
    let verified = home.run(["verify", "cut.ahr"]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    // What begins with nothing looks like another format; the name says which it is.
    assert_eq!((verified.status.code(), said.contains("ttyrec")), (Some(1), false), "{said}");
    let back = home.run(["convert", "-q", "cut.ahr", "-o", "-", "--to", "raw"]).stdout;
    assert_eq!(back, b"after\r\n");
}

/// Whatever cannot hold a recording is refused at once, and whatever cannot be written ends in an
/// error.
#[test]
fn targets_that_cannot_be_written() {
    let home = Home::new();
    assert_eq!(home.run(["rec", "-q", "a.ahr", "--", "echo", "x"]).status.code(), Some(0));
    assert!(home.command("mkfifo").arg("pipe").status().is_ok_and(|s| s.success()));
    for (args, code) in [
        (&["rec", "/dev/full", "--", "true"][..], 2),
        (&["rec", "--overwrite", "pipe", "--", "true"], 2),
        (&["rec", ".", "--", "true"], 2),
        (&["rec", "/proc/none/x.ahr", "--", "true"], 4),
        (&["convert", "a.ahr", "-o", "/dev/full", "--to", "html"], 4),
        (&["convert", "a.ahr", "-o", "/dev/full", "--to", "cast.zst"], 4),
        (&["convert", "a.ahr", "-o", "/dev/full", "--to", "md"], 4),
        (&["convert", "a.ahr", "-o", "/dev/full", "--to", "ttyrec"], 4),
        (&["repair", "a.ahr", "-o", "/dev/full"], 4),
        (&["index", "/dev/null"], 1),
    ] {
        let out = home.run(args);
        let message = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), message.lines().count()), (Some(code), 1), "{args:?}: {message}");
    }
    for args in
        [&["play", "--fast", "a.ahr"][..], &["branch-points", "a.ahr"], &["verify", "--json", "a.ahr"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let status = home.tapdeck(args).stdout(full).stderr(Stdio::null()).status().expect("it runs");
        assert_eq!(status.code(), Some(4), "{args:?}");
    }
}
