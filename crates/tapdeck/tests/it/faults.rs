//! Faults that need more than one program to provoke.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{Home, has, recorded_part};

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
        has("(a tmpfs that this user may mount)");
        return;
    }
    let out = home.run([
        "rec",
        "disk/full.ahr",
        "--",
        "sh",
        "-c",
        "head -c 4000000 /dev/urandom; echo; echo still here",
    ]);
    let verified = home.run(["verify", "disk/full.ahr"]);
    let kept = recorded_part(&disk.join("full.ahr"), &out.stdout);
    let unmounted = home.command("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|s| s.success()));
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!((out.status.code(), message.lines().count()), (Some(4), 1), "{message}");
    assert!(message.to_lowercase().contains("no space"), "{message}");
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
    assert!(kept > 1_000_000, "{kept} bytes kept");
}

/// Process 1 of a container is given every orphan, and is killed by no signal that it has not asked for.
#[test]
fn as_process_one_it_reaps_orphans_and_ends_with_the_right_code() {
    let home = Home::new();
    let can = home
        .command("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|s| s.success()) {
        has("(a pid namespace that this user may make)");
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
