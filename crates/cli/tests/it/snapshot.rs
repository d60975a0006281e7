//! Snapshots in a recorded session: where they are anchored, when success is said, and who can do
//! harm.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tapdeck_needs::{has, skip};
use tapdeck_serve::snapshot::{Address, Snapshot, Taken, ask};
use tapdeck_tape::ahr::{Body, Item, Reader};

use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually, recorded_output};

/// The snapshots in a recording: id, anchor, label.
fn snapshots(path: &Path) -> Vec<(u64, u64, String)> {
    let reader = Reader::new(std::fs::File::open(path).expect("the recording is there"));
    let records = reader.filter_map(|item| match item {
        Ok(Item::Record(record)) => Some(record.body),
        _ => None,
    });
    let snapshots = records.filter_map(|body| match body {
        Body::Snapshot { id, anchor, label } => Some((id, anchor, label)),
        _ => None,
    });
    snapshots.collect()
}

/// The snapshots among the events of a recording, which are found without reading its output.
fn listed(home: &Home, recording: &str) -> Vec<(u64, u64, String)> {
    let text = home.part_now(recording, "events.jsonl").unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    lines
        .filter(|v| v["kind"] == "snapshot")
        .map(|v| {
            assert!(v["ts_ns"].as_u64().is_some_and(|ts| ts > 1_600_000_000_000_000_000), "{v}");
            let number = |key: &str| v[key].as_u64().expect("a number");
            (number("id"), number("anchor_byte"), v["label"].as_str().expect("text").to_owned())
        })
        .collect()
}

fn socket_of(home: &Home, recording: &str) -> PathBuf {
    // The recorder writes it while the program starts.
    let meta = home.meta(recording);
    meta["ipc"].as_str().expect("the socket is named").into()
}

/// A session that waits for a line, and its socket.
fn waiting_session(home: &Home, args: &[&str], then: &str) -> (Seat, PathBuf) {
    let script = format!("stty -echo; echo up; read x; {then}");
    let mut all = vec!["rec", "-q"];
    all.extend(args);
    all.extend(["s.ahr", "--", "sh", "-c", &script]);
    let mut seat = Seat::new(home.tapdeck(all));
    seat.wait_text("up");
    let socket = socket_of(home, "s.ahr");
    (seat, socket)
}

fn take(socket: &Path, id: u64, label: &str) -> Taken {
    let snapshot = Snapshot { id, label: label.into() };
    ask(&Address::Unix(socket.to_owned()), &snapshot.into(), PATIENCE).expect("it is taken")
}

#[test]
fn an_anchor_lies_behind_what_was_written_before_and_is_on_disk_when_success_is_said() {
    let home = Home::new();
    let script = format!(
        "stty raw; printf before; {TAPDECK} snapshot --id 7 --label cp1 >one; cp s.ahr at-once.ahr; \
         head -c 60000 /dev/zero; {TAPDECK} snapshot --id 8 --json >two; \
         printf after"
    );
    let out = home.run(["rec", "-q", "s.ahr", "--", "sh", "-c", &script]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(std::fs::read_to_string(home.path("one")).expect("an answer"), "6\n");
    let first = (7, 6, "cp1".to_owned());
    assert_eq!(snapshots(&home.path("at-once.ahr")), std::slice::from_ref(&first));
    assert_eq!(recorded_output(&home.path("at-once.ahr")), b"before");
    assert_eq!(listed(&home, "at-once.ahr"), std::slice::from_ref(&first));
    let two: serde_json::Value =
        serde_json::from_slice(&std::fs::read(home.path("two")).expect("an answer")).expect("JSON");
    assert_eq!((two["id"].as_u64(), two["anchor_byte"].as_u64()), (Some(8), Some(60006)), "{two}");
    let both = [first, (8, 60006, String::new())];
    assert_eq!(snapshots(&home.path("s.ahr")), both);
    assert_eq!(listed(&home, "s.ahr"), both);
    assert_eq!(home.run(["verify", "s.ahr"]).status.code(), Some(0));

    // A recording that is continued counts on; one that is replaced begins with no snapshots.
    let again = format!("stty raw; printf more; {TAPDECK} snapshot --id 9 >three");
    home.run(["rec", "-q", "--append", "s.ahr", "--", "sh", "-c", &again]);
    assert_eq!(std::fs::read_to_string(home.path("three")).expect("an answer"), "60015\n");
    assert_eq!(listed(&home, "s.ahr").len(), 3);
    home.run(["rec", "-q", "--overwrite", "s.ahr", "--", "sh", "-c", &again]);
    assert_eq!(listed(&home, "s.ahr"), [(9, 4, String::new())]);
}

/// A format without snapshots says so, rather than that there is no recording.
#[test]
fn a_format_that_carries_no_snapshots_is_named_as_the_reason() {
    let home = Home::new();
    let script = format!("{TAPDECK} snapshot --id 1 2>said; echo $? >>said");
    assert_eq!(home.run(["rec", "-q", "s.cast", "--", "sh", "-c", &script]).status.code(), Some(0));
    let said = std::fs::read_to_string(home.path("said")).expect("an answer");
    assert!(said.contains(".ahr") && said.ends_with("1\n"), "{said}");
}

/// Without a reader of the session, the anchor must still count what the program has written.
#[test]
fn a_user_who_does_not_look_shifts_no_anchor() {
    let home = Home::new();
    let script = format!(
        "stty raw; head -c 65536 /dev/zero; head -c 3000 /dev/zero; {TAPDECK} snapshot --id 1 >anchor; \
         head -c 3000 /dev/zero; {TAPDECK} snapshot --id 2 >>anchor; touch taken"
    );
    let mut child = home
        .tapdeck(["rec", "-q", "s.ahr", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tapdeck runs");
    eventually("both to be taken", || home.path("taken").exists());
    assert_eq!(std::fs::read_to_string(home.path("anchor")).expect("answers"), "68536\n71536\n");
    let mut shown = Vec::new();
    child.stdout.take().expect("piped").read_to_end(&mut shown).expect("read");
    assert_eq!((shown.len(), child.wait().expect("it ends").code()), (71536, Some(0)));
    assert_eq!(recorded_output(&home.path("s.ahr")).len(), 71536);
}

/// A program that never stops writing does not delay a snapshot.
#[test]
fn a_flood_does_not_hold_a_snapshot_up() {
    let home = Home::new();
    let script = format!(
        "yes & for i in 1 2 3 4 5; do {TAPDECK} snapshot --id $i >>anchors; done; kill $!; wait; exit 5"
    );
    let out = home.run(["rec", "-q", "--brotli-q", "0", "s.ahr", "--", "sh", "-c", &script]);
    assert_eq!(out.status.code(), Some(5), "{}", String::from_utf8_lossy(&out.stderr));
    let anchors: Vec<u64> = std::fs::read_to_string(home.path("anchors"))
        .expect("answers")
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert!(anchors.len() == 5 && anchors.is_sorted(), "{anchors:?}");
    let recorded: Vec<u64> = snapshots(&home.path("s.ahr")).iter().map(|s| s.1).collect();
    assert_eq!(recorded, anchors);
}

#[test]
fn a_hundred_clients_and_bad_ones_among_them() {
    let home = Home::new();
    let (mut seat, socket) = waiting_session(&home, &[], "echo got $x; exit 4");
    let open = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&socket).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        // One that is refused early may not take all of it.
        let _ = stream.write_all(bytes);
        stream
    };
    let half: Vec<UnixStream> = (0..20).map(|_| open(&[16, 0, 0, 0, 0, 42])).collect();
    let silent: Vec<UnixStream> = (0..20).map(|_| open(b"")).collect();
    let oversized: Vec<UnixStream> = (0..5).map(|_| open(&[0xff; 9000])).collect();
    let garbage: Vec<UnixStream> = (0..5).map(|_| open(&[3, 0, 0, 0, 9, 9, 9])).collect();
    let good: Vec<_> = (0..100)
        .map(|id| {
            let socket = socket.clone();
            std::thread::spawn(move || take(&socket, id, &format!("client {id}")))
        })
        .collect();
    for (id, thread) in (0u64..).zip(good) {
        let taken = thread.join().expect("each is answered");
        assert_eq!((taken.id, taken.anchor_byte), (id, 4), "\"up\\r\\n\" was written");
    }
    for mut bad in oversized.into_iter().chain(garbage) {
        let mut head = [0; 5];
        bad.read_exact(&mut head).expect("an answer");
        assert_eq!(head[4], 1, "a failure");
    }
    drop((half, silent));
    let mut recorded: Vec<u64> = snapshots(&home.path("s.ahr")).iter().map(|s| s.0).collect();
    assert_eq!(listed(&home, "s.ahr"), snapshots(&home.path("s.ahr")));
    recorded.sort_unstable();
    assert!(recorded.iter().copied().eq(0..100), "each once: {recorded:?}");
    seat.send("hello\r");
    seat.wait_text("got hello");
    assert_eq!(seat.end().code(), Some(4));
    assert_eq!(home.run(["verify", "s.ahr"]).status.code(), Some(0));
}

#[test]
fn the_socket_is_private_and_gone_afterwards() {
    let home = Home::new();
    for (runtime, name) in [(true, "usual"), (false, "without")] {
        let file = format!("{name}.ahr");
        let mut command = home.tapdeck(["rec", "-q", &file, "--", "sh", "-c", "echo up; read x"]);
        if !runtime {
            command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", home.path(""));
        }
        let mut seat = Seat::new(command);
        seat.wait_text("up");
        let socket = socket_of(&home, &file);
        let folder = socket.parent().expect("a folder").to_owned();
        assert!(!runtime || folder == home.path("run/tapdeck"), "{}", folder.display());
        assert_eq!(socket, folder.join(format!("snapshot-{}.sock", seat.child.id())));
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&socket)), (0o700, 0o600));
        let idle = UnixStream::connect(&socket).expect("connected");
        seat.send("\r");
        assert_eq!(seat.end().code(), Some(0), "an idle client holds nothing up");
        assert!(!socket.exists());
        drop(idle);
    }
    let beside = ["usual.ipc", "without.ipc"].map(|name| home.path(name).exists());
    assert_eq!(beside, [false, false], "the recording's folder has no sockets");
}

/// The program cannot tell that it is recorded, unless it is to be told.
#[test]
fn the_environment_is_touched_only_when_asked() {
    let home = Home::new();
    let script = "env | grep -E '^(AH_RECORDER|TAPDECK)' | sort";
    let out = home.run(["rec", "-q", "s.ahr", "--", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "");
    // Out of the session's processes, only the environment leads back to the recorder.
    let script = format!(
        "{script}; setsid -f {TAPDECK} snapshot --id 3 >anchor; until [ -s anchor ]; do sleep 0.01; done"
    );
    for ipc in ["uds", "tcp:127.0.0.1:0"] {
        let out = home.run([
            "rec",
            "-q",
            "--overwrite",
            "--export-session",
            "--ipc",
            ipc,
            "s.ahr",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let address = socket_of(&home, "s.ahr");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("AH_RECORDER_IPC_SOCKET={}", address.display()), "{text}");
        assert!(lines[1].starts_with("TAPDECK_SESSION="), "{text}");
        let anchor = std::fs::read_to_string(home.path("anchor")).expect("an answer");
        assert_eq!(anchor.trim(), text.len().to_string());
        std::fs::remove_file(home.path("anchor")).expect("removed");
    }
}

#[test]
fn without_a_recorder_the_client_says_so() {
    let home = Home::new();
    let code = |args: &[&str]| {
        let mut command = home.tapdeck(args);
        command.env_remove("AH_RECORDER_IPC_SOCKET").env_remove("TAPDECK_SESSION").stdin(Stdio::null());
        let out = command.output().expect("tapdeck runs");
        let text = [&out.stdout[..], &out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    for (args, wanted, says) in [
        (&["snapshot", "--id", "1"][..], 3, "no recorded session"),
        (&["snapshot", "--id", "1", "--socket", "nowhere.sock"], 3, "nowhere.sock"),
        (&["snapshot", "--id", "1", "--socket", "tcp:127.0.0.1:1"], 3, "tcp:127.0.0.1:1"),
        (&["snapshot", "--id", "1", "--socket", "tcp:192.0.2.1:1"], 2, "loopback"),
        (&["snapshot", "--id", "1", "--json", "--socket", "nowhere.sock"], 3, r#""error":"no recorder"#),
        (&["snapshot"], 2, "--id"),
        (&["run", "--", TAPDECK, "snapshot", "--id", "1"], 3, "no recorded session"),
        (
            &["rec", "-q", "--ipc", "off", "o.ahr", "--", TAPDECK, "snapshot", "--id", "1"],
            3,
            "no recorded session",
        ),
        (&["rec", "--ipc", "tcp:0.0.0.0:0", "x.ahr", "--", "true"], 2, "loopback"),
        (&["rec", "--ipc", "pigeon", "x.ahr", "--", "true"], 2, "pigeon"),
    ] {
        let (got, text) = code(args);
        assert!(got == Some(wanted) && text.contains(says), "{args:?}: {got:?} {text}");
    }
    assert!(!home.path("x.ahr").exists(), "nothing was begun");
}

/// A limit on file sizes stands in for a full disk.
#[test]
fn a_disk_that_refuses_is_a_failed_snapshot() {
    let home = Home::new();
    let script = format!(
        "ulimit -f 100; exec {TAPDECK} rec -q s.ahr -- sh -c '{TAPDECK} snapshot --id 1; \
         head -c 300000 /dev/urandom >&2; {TAPDECK} snapshot --id 2 >two 2>&1; echo code $? >>two; echo still here'"
    );
    let out = home.command("bash").args(["-c", &script]).stdin(Stdio::null()).output().expect("bash runs");
    assert!(out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!(out.status.code(), Some(4));
    let said = std::fs::read_to_string(home.path("two")).expect("an answer");
    // The block of output is cut down to what there is room for. What is left may hold a snapshot.
    let refused = said.contains("could not be written") && said.ends_with("code 1\n");
    assert!(refused || said.ends_with("code 0\n"), "{said}");
    let kept: Vec<u64> = snapshots(&home.path("s.ahr")).iter().map(|s| s.0).collect();
    let named: Vec<u64> = listed(&home, "s.ahr").iter().map(|s| s.0).collect();
    let expected = if refused { vec![1] } else { vec![1, 2] };
    assert_eq!((kept, named), (expected.clone(), expected), "only what was written is there");
}

/// A really full disk: what fails there succeeds again once there is room.
#[test]
fn a_full_disk_is_a_failed_snapshot_until_there_is_room() {
    let home = Home::new();
    let disk = home.path("disk");
    std::fs::create_dir(&disk).expect("made");
    let mut mount: Command = home.command("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&disk).stderr(Stdio::null());
    if !mount.status().is_ok_and(|s| s.success()) {
        skip("this user may not mount a tmpfs");
        return;
    }
    let script = format!(
        "cat /dev/zero >disk/ballast 2>/dev/null; head -c 100000 /dev/urandom; {TAPDECK} snapshot --id 1 2>one; \
         echo code $? >>one; rm disk/ballast; {TAPDECK} snapshot --id 2 >two; echo still here"
    );
    let out = home.run(["rec", "-q", "disk/s.ahr", "--", "sh", "-c", &script]);
    let kept: Vec<u64> = snapshots(&disk.join("s.ahr")).iter().map(|s| s.0).collect();
    let verified = home.run(["verify", "disk/s.ahr"]);
    let unmounted = home.command("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|s| s.success()));
    let said = std::fs::read_to_string(home.path("one")).expect("an answer");
    assert!(said.to_lowercase().contains("no space") && said.ends_with("code 1\n"), "{said}");
    assert!(!std::fs::read_to_string(home.path("two")).expect("an answer").is_empty());
    assert_eq!(kept, [2]);
    assert!(out.stdout.ends_with(b"still here\r\n"), "the session goes on");
    assert_eq!(verified.status.code(), Some(1), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// The recorder is killed: its socket is left behind, and a client is told that no recorder
/// answers.
#[test]
fn a_killed_recorder_is_no_recorder() {
    let home = Home::new();
    let (mut seat, socket) = waiting_session(&home, &[], "true");
    take(&socket, 1, "kept");
    seat.child.kill().expect("killed");
    seat.child.wait().expect("it ends");
    assert_eq!(snapshots(&home.path("s.ahr")), [(1, 4, "kept".to_owned())], "it was on disk");
    let out = home.run(["snapshot", "--id", "2", "--socket", &socket.to_string_lossy()]);
    assert_eq!(out.status.code(), Some(3));
}

/// File modes keep other users out. Should they fail to, the recorder checks the user. Root may
/// ask, because snapshots are taken by root.
#[test]
fn another_user_is_not_answered_but_root_is() {
    let home = Home::new();
    if !rustix::process::geteuid().is_root() || !has("setpriv") {
        skip("a second user needs root");
        return;
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let program = home.path("tapdeck");
    std::fs::copy(TAPDECK, &program).expect("copied to where all can run it");
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("allowed");
    };
    allow(&home.path("."), 0o777);
    let (mut seat, socket) = waiting_session(&home, &[], "true");
    for path in [home.path("run"), home.path("run/tapdeck"), socket.clone()] {
        allow(&path, 0o777);
    }
    let ask_as_nobody = |id: &str| {
        let mut command = home.command("setpriv");
        command.args(nobody).arg(&program).args(["snapshot", "--id", id, "--socket"]).arg(&socket);
        command.output().expect("it runs")
    };
    let out = ask_as_nobody("1");
    assert_eq!(
        (out.status.code(), out.stdout.len()),
        (Some(4), 0),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(snapshots(&home.path("s.ahr")).is_empty());
    seat.send("\r");
    seat.end();

    // The other way round, found among root's parents.
    let folder = home.path("theirs");
    std::fs::create_dir(&folder).expect("made");
    allow(&folder, 0o777);
    let script = "printf abc; echo >up; until [ -e done ]; do sleep 0.01; done";
    let mut command = home.command("setpriv");
    command.args(nobody).arg(&program).args(["rec", "-q", "u.ahr", "--", "sh", "-c", script]);
    command.current_dir(&folder).env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    eventually("it to be up", || folder.join("up").exists());
    let mut command = home.tapdeck(["snapshot", "--id", "2"]);
    let out = command.env("TAPDECK_SESSION", child.id().to_string()).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "3\n", "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::write(folder.join("done"), "").expect("written");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// A path that no socket can have: the recording matters more, unless the program relies on the
/// door.
#[test]
fn without_a_door_there_is_still_a_recording_unless_it_was_asked_for() {
    let home = Home::new();
    let deep = home.path(&"deep".repeat(30));
    std::fs::create_dir(&deep).expect("made");
    let rec = |flags: &[&str], then: &str| {
        let args = [&["rec", "-q", "--overwrite"], flags, &["s.ahr", "--", "sh", "-c", then]].concat();
        let mut command = home.tapdeck(args);
        let out = command.env("XDG_RUNTIME_DIR", &deep).stdin(Stdio::null()).output().expect("it runs");
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = rec(&[], "exit 6");
    assert!(code == Some(6) && said.contains("snapshots cannot be announced"), "{code:?} {said}");
    assert!(said.lines().count() == 2 && said.contains("clients cannot join"), "{said}");
    for flags in [&["--ipc", "uds"][..], &["--export-session"]] {
        let (code, said) = rec(flags, "touch ran");
        assert!(code == Some(4) && said.contains("cannot open the door"), "{code:?} {said}");
    }
    assert!(!home.path("ran").exists());

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let door = format!("tcp:{}", taken.local_addr().expect("bound"));
    let out = home.run(["rec", "--ipc", &door, "new.ahr", "--", "touch", "ran"]);
    assert_eq!(out.status.code(), Some(4));
    assert!(!home.path("new.ahr").exists() && !home.path("ran").exists(), "nothing is left behind");
    let out = home.run(["rec", "-q", "none.ahr", "--", "/nonexistent"]);
    assert_eq!(out.status.code(), Some(127));
    let left = std::fs::read_dir(home.path("run/tapdeck")).expect("it is there").count();
    assert_eq!(left, 0, "no socket without a session");
}
