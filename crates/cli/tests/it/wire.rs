//! Sessions over the network: the same scenarios through every transport, and what others do to
//! them.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Home, Seat, TAPDECK, eventually, lives, signal};

/// A server of a test's own, ended with it.
pub struct Server<'a> {
    home: &'a Home,
    pub child: Child,
    /// Where it listens, as it says.
    pub addresses: Vec<String>,
    /// What lets everything be done.
    pub token: String,
    /// What else it has to say.
    says: Lines<BufReader<ChildStdout>>,
}

impl<'a> Server<'a> {
    pub fn start(home: &'a Home, options: &[&str]) -> Self {
        Self::start_with(home, options, |_| ())
    }

    /// Starts one whose command is changed first.
    pub fn start_with(home: &'a Home, options: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let token = text(&home.run(["serve", "token", "add"]).stdout).trim().to_owned();
        assert_eq!(token.strip_prefix("tdk_").map(str::len), Some(64), "256 bits");
        let socket = format!("unix:{}", home.path("tty").join("tty.sock").display());
        let mut command = home.tapdeck(["serve", "--listen", &socket]);
        change(command.args(options).stdout(Stdio::piped()));
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let wanted = 1 + options.iter().filter(|o| **o == "--listen").count();
        let mut addresses = Vec::new();
        while addresses.len() < wanted {
            let line = lines.next().expect("it listens").expect("text");
            addresses.extend(line.strip_prefix("listening ").map(str::to_owned));
        }
        Self { home, child, addresses, token, says: lines }
    }

    /// The rest of the next line that begins so.
    pub fn says(&mut self, start: &str) -> String {
        let lines = self.says.by_ref().map_while(Result::ok);
        lines.filter_map(|l| l.strip_prefix(start).map(str::to_owned)).next().expect("it is said")
    }

    pub fn connect(&self, address: &str, args: &[&str]) -> Command {
        let mut command = self.home.tapdeck(["connect", address, "--accept-new"]);
        command.args(args).env("TAPDECK_TOKEN", &self.token);
        command
    }

    pub fn run(&self, address: &str, args: &[&str]) -> Output {
        self.connect(address, args).stdin(Stdio::null()).output().expect("it runs")
    }

    /// Runs without a terminal and without trusting new servers.
    pub fn stranger(&self, address: &str, args: &[&str]) -> Output {
        // A session of its own has no terminal on which a question could be asked.
        let mut command = self.home.command("setsid");
        command.args(["-w", TAPDECK, "connect", address]).args(args).env("TAPDECK_TOKEN", &self.token);
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    pub fn listed(&self) -> Vec<Value> {
        let out = self.home.run(["ls", "--json"]);
        serde_json::from_slice::<Value>(&out.stdout).expect("JSON").as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if lives(self.child.id().cast_signed()) {
            signal(self.child.id(), rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Everything that a session must be, whatever carries it.
fn scenario(server: &Server<'_>, address: &str) {
    // A shell: typed to, resized, interrupted, left with a code of its own.
    let mut seat = Seat::new(server.connect(address, &["--", "sh"]));
    seat.wait_text("$");
    seat.send("echo $TERM in $(stty size)\n");
    seat.wait_text("xterm-256color in 24 80");
    seat.resize(100, 30);
    seat.send("stty size\n");
    seat.wait_text("30 100");
    seat.send("sleep 300; echo in\"\"terrupted\n");
    seat.wait("the job", |s| s.screen().contains("sleep 300"));
    eventually("the job runs", || running("sleep 300", server.child.id()));
    seat.send("\x03");
    seat.send("exit 7\n");
    assert_eq!(seat.end().code(), Some(7), "{address}");

    // Pipes: apart, with the end of input passed on.
    let mut child = server
        .connect(address, &["--no-pty", "--", "sh", "-c", "cat; echo err >&2; exit 3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(b"in\0\xff").expect("written");
    let out = child.wait_with_output().expect("it ends");
    assert_eq!((&out.stdout[..], &out.stderr[..]), (&b"in\0\xff"[..], &b"err\n"[..]), "{address}");
    assert_eq!(out.status.code(), Some(3));

    // Death by a signal is that signal; a program that is not there is 127.
    let out = server.run(address, &["--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(out.status.signal(), Some(15), "{address}: {}", text(&out.stderr));
    let out = server.run(address, &["--", "no-such-program"]);
    assert_eq!(out.status.code(), Some(127), "{address}");
    assert!(text(&out.stderr).contains("no-such-program: command not found"), "{}", text(&out.stderr));

    // However soon a program ends, and whatever is still being said to it: how it ended comes
    // through.
    for n in 0..30 {
        let out = server
            .connect(address, &["--", "sh", "-c", "exit 7"])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert_eq!(out.status.code(), Some(7), "{address}, time {n}: {}", text(&out.stderr));
    }

    // Much output, whole.
    let out = server.run(address, &["--", "sh", "-c", "seq 1 1500000"]);
    let expected: String = (1..=1_500_000).map(|n| format!("{n}\n")).collect();
    assert!(out.stdout == expected.as_bytes(), "{address}: {} bytes came", out.stdout.len());
}

/// Whether a process of this command line runs below another.
pub fn running(command: &str, root: u32) -> bool {
    pids(command).into_iter().any(|pid| crate::support::descends(pid, root.cast_signed()))
}

fn pids(command: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&line).replace('\0', " ").trim_end() == command && lives(*pid)
    })
    .collect()
}

#[test]
fn the_same_through_a_unix_socket() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    scenario(&server, &server.addresses[0]);
}

#[test]
fn the_same_through_tls() {
    through("tls");
}

#[test]
fn the_same_through_quic() {
    through("quic");
}

#[test]
#[cfg(feature = "web")]
fn the_same_through_web_sockets() {
    through("ws");
    through("wss");
}

#[test]
fn the_same_through_web_transport() {
    through("wt");
}

fn through(scheme: &str) {
    let home = Home::new();
    let server = Server::start(&home, &["--listen", &format!("{scheme}://127.0.0.1:0")]);
    scenario(&server, &server.addresses[1]);
    // A killed client, whatever carried it.
    let address = &server.addresses[1];
    let mut child = server
        .connect(address, &["--no-pty", "--", "sh", "-c", "sleep 4331 & wait"])
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("it runs", || running("sleep 4331", server.child.id()));
    child.kill().expect("killed");
    let _ = child.wait();
    eventually("it is gone", || !running("sleep 4331", server.child.id()));
    // With more typed than its program has read.
    let mut child = server
        .connect(address, &["--no-pty", "--", "sh", "-c", "head -c 1; sleep 4332 & wait"])
        .stdin(std::fs::File::open("/dev/zero").expect("there is one"))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    eventually("it runs", || running("sleep 4332", server.child.id()));
    child.kill().expect("killed");
    let _ = child.wait();
    eventually("it is gone, too", || !running("sleep 4332", server.child.id()));
}

#[test]
fn output_comes_while_the_program_runs() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let script = "echo one; read go; echo two";
    let mut child = server
        .connect(&server.addresses[0], &["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = child.stdout.take().expect("piped");
    let mut first = [0; 4];
    out.read_exact(&mut first).expect("before it is told to go on");
    child.stdin.take().expect("piped").write_all(b"\n").expect("told");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert_eq!((&first[..], rest.as_str()), (&b"one\n"[..], "two\n"));
    assert!(child.wait().expect("it ends").success());
}

/// A server that a script starts in the background ignores interrupts; its sessions could not be
/// interrupted either.
#[test]
fn a_session_can_be_interrupted_whatever_its_server_ignores() {
    let home = Home::new();
    let socket = format!("unix:{}", home.path("tty").join("tty.sock").display());
    let script = format!("trap '' INT QUIT TSTP; exec {} serve --listen {socket}", crate::support::TAPDECK);
    let mut command = home.command("sh");
    let mut child = command.args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let _ = lines.next().expect("it listens").expect("text");
    let server = Server { home: &home, child, addresses: vec![socket], token: String::new(), says: lines };
    let program = ["--", "sh", "-c", "trap 'exit 9' INT; echo up; cat"];
    let mut seat = Seat::new(server.connect(&server.addresses[0], &program));
    seat.wait_text("up");
    // A shell that is about to start something may miss an interrupt.
    eventually("it waits", || running("cat", server.child.id()));
    seat.send("\x03");
    assert_eq!(seat.end().code(), Some(9));
}

#[test]
fn a_client_that_is_killed_takes_its_program_along_with_all_it_started() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    // Grandchildren in the background, one of them deaf to the terminal's end.
    let script = "sleep 4321 & sh -c 'trap \"\" HUP TERM; sleep 4322; sleep 4322' & wait";
    for options in [&["-t"][..], &["--no-pty"]] {
        let mut args = options.to_vec();
        args.extend(["--", "sh", "-c", script]);
        let mut child =
            server.connect(&server.addresses[0], &args).stdin(Stdio::null()).spawn().expect("it starts");
        let root = server.child.id();
        eventually("both run", || running("sleep 4321", root) && running("sleep 4322", root));
        child.kill().expect("killed");
        let _ = child.wait();
        eventually("both are gone", || !running("sleep 4321", root) && !running("sleep 4322", root));
        eventually("nothing is listed", || server.listed().is_empty());
    }
}

#[test]
fn a_detached_session_outlives_its_client_and_ends_with_its_server() {
    let home = Home::new();
    let mut server = Server::start(&home, &[]);
    let out = server.run(&server.addresses[0], &["-t", "-d", "--name", "work", "--", "sh"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let listed = server.listed();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], text(&out.stdout).trim());
    for command in [&["type", "work", "echo here$((40+2))"][..], &["send", "work", "Enter"]] {
        assert!(home.run(command).status.success());
    }
    assert!(home.run(["wait", "work", "--text", "here42"]).status.success());
    let pid = listed[0]["pid"].as_i64().and_then(|p| i32::try_from(p).ok()).expect("its process");
    assert!(lives(pid));
    signal(server.child.id(), rustix::process::Signal::TERM);
    assert!(server.child.wait().expect("it ends").success());
    eventually("its program is gone", || !lives(pid));
    let left: Vec<PathBuf> = std::fs::read_dir(home.path("run").join("tapdeck"))
        .expect("the folder")
        .map(|e| e.expect("an entry").path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The input could not be ended, so a program that reads to its end ran for ever.
#[test]
fn the_input_of_a_detached_job_on_pipes_is_at_its_end() {
    let home = Home::new();
    let server = Server::start(&home, &["--listen", "quic://127.0.0.1:0"]);
    let script = "cat; echo done";
    let mut ids = Vec::new();
    for address in &server.addresses {
        ids.push(server.run(address, &["-d", "--no-pty", "--", "sh", "-c", script]));
    }
    ids.push(home.run(["run", "-d", "--no-pty", "--", "sh", "-c", script]));
    for out in ids {
        let id = text(&out.stdout).trim().to_owned();
        let said = text(&out.stderr);
        assert!(out.status.success() && !said.contains("passed on"), "{said}");
        let ended = home.run(["wait", &id, "--exit", "--timeout", "20s"]);
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        // Its last screen would wait for a client that looks.
        home.run(["kill", &id]);
    }
    // Lost input is reported, and input that no program would read is refused.
    let file = home.path("data");
    std::fs::write(&file, "data").expect("written");
    let stdin = || std::fs::File::open(&file).expect("there");
    let mut here = home.tapdeck(["run", "-d", "--no-pty", "--name", "long", "--", "sleep", "300"]);
    let far = server.connect(&server.addresses[0], &["-d", "--no-pty", "--", "sleep", "300"]);
    for command in [&mut here, &mut { far }] {
        let out = command.stdin(stdin()).output().expect("it runs");
        assert!(text(&out.stderr).contains("not passed on"), "{}", text(&out.stderr));
        let id = text(&out.stdout).trim().to_owned();
        eventually("typing is refused", || {
            let typed = home.run(["type", &id, "x"]);
            !typed.status.success() && text(&typed.stderr).contains("at its end")
        });
        assert!(home.run(["kill", &id]).status.success());
    }
}

#[test]
fn a_client_that_joins_a_session_at_a_server_ends_as_its_program_ends() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let address = &server.addresses[0];
    // A client that is no terminal gets what was there before as text.
    let long = format!("{} {}", "x".repeat(79), "y".repeat(120));
    let script = format!("echo early; echo '{long}'; printf last; exit 3");
    assert!(
        server.run(address, &["-d", "--no-pty", "--name", "job", "--", "sh", "-c", &script]).status.success()
    );
    assert!(home.run(["wait", "job", "--exit", "--timeout", "20s"]).status.success());
    let told = server.run(address, &["--attach", "job"]);
    assert_eq!((text(&told.stdout), told.status.code()), (format!("early\n{long}\nlast"), Some(3)));
    for (name, end) in [("code", "exit 7"), ("signal", "kill -TERM $$")] {
        let script = format!("read x; {end}");
        assert!(
            server.run(address, &["-t", "-d", "--name", name, "--", "sh", "-c", &script]).status.success()
        );
        let joined = server
            .connect(address, &["--attach", name])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        eventually("it is there", || {
            server.listed().iter().any(|s| s["name"] == name && s["clients"][0]["attached"] == true)
        });
        assert!(home.run(["send", name, "Enter"]).status.success());
        let joined = joined.wait_with_output().expect("it ends");
        let ended = (joined.status.code(), joined.status.signal());
        let wanted = if name == "code" { (Some(7), None) } else { (None, Some(15)) };
        assert_eq!(ended, wanted, "{}", text(&joined.stderr));
    }
}

#[test]
fn a_recording_bears_the_id_of_its_session_and_a_program_that_never_ran_leaves_none() {
    let home = Home::new();
    let runs = home.path("runs");
    let server = Server::start(&home, &["--record", &runs.to_string_lossy()]);
    let mode = std::fs::metadata(&runs).expect("the folder").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o700);
    let address = &server.addresses[0];
    let out = server.run(address, &["--", "no-such-program"]);
    assert_eq!(out.status.code(), Some(127));
    assert_eq!(std::fs::read_dir(&runs).expect("the folder").count(), 0, "nothing is left of it");
    for _ in 0..2 {
        let out = server.run(address, &["-d", "-t", "--", "sleep", "300"]);
        let id = text(&out.stdout).trim().to_owned();
        let listed = server.listed().into_iter().find(|s| s["id"] == *id).expect("listed");
        let recording = listed["recording"].as_str().expect("it is recorded");
        assert!(recording.ends_with(&format!("-sleep-{id}.ahr")), "{id}: {recording}");
        assert!(std::path::Path::new(recording).exists());
    }
}
