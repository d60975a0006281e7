//! The door for ssh clients, with OpenSSH's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use tapdeck_needs::has;

use crate::support::{Home, Seat, eventually};

pub struct Door {
    pub child: Child,
    pub port: String,
}

impl Door {
    pub fn open(home: &Home) -> Self {
        let keys = home.path("keys").display().to_string();
        let mut command =
            home.tapdeck(["serve", "--listen", "ssh://127.0.0.1:0", "--authorized-keys", &keys]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it serves");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut said).expect("it says where");
        let port = said.split([':', ' ']).nth(3).expect("a port").to_owned();
        Self { child, port }
    }

    /// OpenSSH's client with this key, under this name.
    fn ssh(&self, home: &Home, key: &str, name: &str) -> Command {
        let mut ssh = home.command("ssh");
        ssh.args(["-F", "none", "-o", "UserKnownHostsFile=hosts", "-o", "StrictHostKeyChecking=accept-new"]);
        ssh.args([
            "-o",
            "BatchMode=yes",
            "-o",
            "IdentitiesOnly=yes",
            "-i",
            key,
            "-p",
            &self.port,
            "-l",
            name,
        ]);
        ssh.arg("127.0.0.1");
        ssh
    }

    pub fn ask(&self, home: &Home, key: &str, name: &str, words: &[&str]) -> Output {
        self.ssh(home, key, name).args(words).stdin(Stdio::null()).output().expect("ssh runs")
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Makes keys of these names.
pub fn make_keys(home: &Home, keys: &[&str]) {
    for key in keys {
        let mut keygen = home.command("ssh-keygen");
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", key]).stdin(Stdio::null()).status();
        assert!(made.expect("ssh-keygen runs").success());
    }
}

#[test]
fn a_client_with_a_key_attaches_by_name() {
    if !has("ssh") || !has("ssh-keygen") {
        return;
    }
    let home = Home::new();
    make_keys(&home, &["full", "watch", "bound", "stranger"]);
    let key = |name: &str| std::fs::read_to_string(home.path(&format!("{name}.pub"))).expect("a key");
    let bound = "environment=\"TAPDECK_SESSIONS=other\"";
    let keys = format!("{}restrict {}{bound} {}", key("full"), key("watch"), key("bound"));
    std::fs::write(home.path("keys"), keys).expect("written");
    let run = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["run", "-d", "--name", "work", "--", "sh"]);
    let door = Door::open(&home);

    // The message and the exit code.
    let cases = [
        ("full", "x", &["ls"][..], 0, "work"),
        ("full", "nosuch", &[], 3, "(work)"),
        ("bound", "nosuch", &[], 3, "this key opens other"),
        ("full", "work", &["sh", "-c", "id"], 2, "this door knows"),
        ("watch", "work", &["attach", "--takeover"], 1, "only lets you watch"),
        ("bound", "work", &[], 1, "does not open that session"),
        ("bound", "work", &["ls"], 1, "only the sessions"),
        ("stranger", "work", &["ls"], 255, "Permission denied"),
    ];
    for (key, name, words, code, said) in cases {
        let output = door.ask(&home, key, name, words);
        let text = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
        assert_eq!(output.status.code(), Some(code), "{key} {words:?}: {text}");
        assert!(text.contains(said), "{key} {words:?}: {text}");
    }

    // A person drives, at the size of their own terminal.
    let mut seat = Seat::with_size(door.ssh(&home, "full", "work"), 70, 18);
    seat.wait("a prompt", |seat| seat.screen().contains(['$', '#']));
    seat.send("until [ \"$(stty size)\" = '18 70' ]; do :; done; echo size-$(stty size | tr ' ' x)\r");
    seat.wait_text("size-18x70");
    seat.resize(64, 16);
    seat.send("until [ \"$(stty size)\" = '16 64' ]; do :; done; echo now-$(stty size | tr ' ' x)\r");
    seat.wait_text("now-16x64");
    seat.send("\x1cd");
    assert_eq!(seat.end().code(), Some(0), "{}", seat.screen());
    assert!(run(&["peek", "work"]).contains("now-16x64"), "the session is still there");

    // A client that may only watch sees the same, and none of its keys arrives.
    let mut seat = Seat::with_size(door.ssh(&home, "watch", "work"), 64, 16);
    seat.wait_text("now-16x64");
    seat.send("echo meddled\r");
    seat.wait_text("read-only");
    assert!(!run(&["peek", "work"]).contains("meddled"));
    // They see the end, too.
    run(&["type", "work", "exit 5", "--enter"]);
    assert_eq!(seat.end().code(), Some(0), "{}", seat.screen());
    assert!(seat.screen().contains("exit code 5"), "{}", seat.screen());

    // The key of the door stays the same; the clients' terminals are gone with them.
    let own = home.path("state/tapdeck/ssh_host_ed25519_key");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(own).expect("a key").mode() & 0o777, 0o600);
    let served = door.child.id().cast_signed();
    eventually("nobody left behind", || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        !pids
            .into_iter()
            .any(|pid| pid != served && crate::support::lives(pid) && crate::support::descends(pid, served))
    });
    drop(door);
    let again = Door::open(&home);
    assert_eq!(again.ask(&home, "full", "x", &["ls"]).status.code(), Some(0));
}

#[test]
fn a_door_without_a_list_is_not_opened() {
    let home = Home::new();
    let output = home.run(["serve", "--listen", "ssh://127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--authorized-keys"));
    assert_eq!(home.run(["serve", "--listen", "nowhere"]).status.code(), Some(2));
}
