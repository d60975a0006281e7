//! Sessions elsewhere: the same scenarios on a terminal and on pipes, here, in a container, beside
//! another program in one, and behind ssh. The engine and the server are real ones that these tests
//! start and end themselves.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Home, Seat, eventually, recorded_output, signal};

use self::servers::{Agent, Engine, Make, PASSWORD, Sshd};

mod servers;

/// A place to run things at, with what it takes to get there.
struct Spot<'a> {
    name: &'static str,
    home: &'a Home,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Spot<'_> {
    fn command(&self, args: &[&str], program: &[&str]) -> Command {
        let mut command = self.home.tapdeck(args);
        command.args(&self.args).arg("--").args(program);
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// Runs something to its end, with this on its standard input.
    fn run(&self, args: &[&str], program: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args, program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("tapdeck runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || {
            // A program that does not read its input is no fault of the test's.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("it ends");
        feeder.join().expect("the input was given");
        output
    }
}

/// What a program without a person does and how it ends, the same everywhere.
struct Case {
    what: &'static str,
    args: &'static [&'static str],
    script: &'static str,
    input: &'static [u8],
    /// Exit code, or as a negative number the signal.
    end: i32,
    out: &'static str,
    err: &'static str,
}

const CASES: [Case; 9] = [
    Case {
        what: "an exit code",
        args: &[],
        script: "echo hello; exit 7",
        input: b"",
        end: 7,
        out: "hello\r\n",
        err: "",
    },
    Case { what: "a death", args: &[], script: "kill -TERM $$", input: b"", end: -15, out: "", err: "" },
    Case {
        what: "no such program",
        args: &[],
        script: "exec nosuch-program 2>&-",
        input: b"",
        end: 127,
        out: "",
        err: "",
    },
    Case {
        what: "streams apart",
        args: &["--no-pty"],
        script: "echo out; echo err >&2; exit 3",
        input: b"",
        end: 3,
        out: "out\n",
        err: "err\n",
    },
    Case {
        what: "a death on pipes",
        args: &["--no-pty"],
        script: "kill -KILL $$",
        input: b"",
        end: -9,
        out: "",
        err: "",
    },
    Case {
        what: "input and its end on pipes",
        args: &["--no-pty"],
        script: "cat; echo over",
        input: b"one\0two\n",
        end: 0,
        out: "one\0two\nover\n",
        err: "",
    },
    Case {
        what: "the end of input on a terminal",
        args: &[],
        script: "stty -echo; read a; cat; echo over",
        input: b"first\n",
        end: 0,
        out: "over\r\n",
        err: "",
    },
    Case {
        what: "a variable and a folder",
        args: &["--env", "FLAVOUR=a b", "--cwd", "/tmp"],
        script: "echo \"$FLAVOUR\"; pwd",
        input: b"",
        end: 0,
        out: "a b\r\n/tmp\r\n",
        err: "",
    },
    Case {
        what: "a limit",
        args: &["--timeout", "1s"],
        script: "sleep 300 & sleep 400",
        input: b"",
        end: -15,
        out: "",
        err: "tapdeck: ended after 1s, the time limit\n",
    },
];

fn end_of(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0))
}

fn check_cases(spot: &Spot<'_>) {
    for case in &CASES {
        let args: Vec<&str> = ["run"].iter().chain(case.args).copied().collect();
        let output = spot.run(&args, &["sh", "-c", case.script], case.input);
        let what = format!("{} on {}", case.what, spot.name);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(end_of(&output), case.end, "{what}: {out:?} {err:?}");
        // Podman itself may complain in the program's stream when that is killed.
        let complains = out.find("Error: read unixpacket").or_else(|| out.find("Error: write unixpacket"));
        let out = &out[..complains.unwrap_or(out.len())];
        // A far terminal may show what is typed before it is told not to.
        let out = if case.input.is_empty() { out } else { out.strip_prefix("first\r\n").unwrap_or(out) };
        assert_eq!(out, case.out, "{what}: {err:?}");
        assert_eq!(err, case.err, "{what}");
    }
}

/// A person at a terminal: size, keys, a change of size, Ctrl-C, output as it comes, and all of it
/// recorded.
fn check_person(spot: &Spot<'_>) {
    let tape = spot.home.path(&format!("{}.ahr", spot.name));
    let mut args = vec!["rec", "-q", "--overwrite"];
    let path = tape.display().to_string();
    args.push(&path);
    let mut seat = Seat::with_size(spot.command(&args, &["sh"]), 90, 28);
    seat.wait("a prompt", |seat| seat.screen().contains(['$', '#']));
    // Engines before 1.42 set the size when the program runs already.
    seat.send("until [ \"$(stty size)\" = '28 90' ]; do :; done; echo size-$(stty size | tr ' ' x)\r");
    seat.wait_text("size-28x90");
    seat.send("echo term-$TERM\r");
    seat.wait_text("term-xterm-256color");
    seat.send("sh -c 'trap \"exit 42\" INT; echo be$((1))fore; while :; do sleep 1; done'\r");
    seat.wait_text("be1fore");
    seat.send("\x03");
    // What is typed before that would be thrown away with it.
    seat.wait_text("^C");
    seat.send("echo code-$?\r");
    seat.wait_text("code-42");
    seat.resize(70, 20);
    seat.send("until [ \"$(stty size)\" = '20 70' ]; do :; done; echo now-$(stty size | tr ' ' x)\r");
    seat.wait_text("now-20x70");
    seat.send("exit 9\r");
    let status = seat.end();
    assert_eq!(status.code(), Some(9), "{}", spot.name);
    let recorded = recorded_output(&tape);
    assert_eq!(recorded, seat.raw, "{}: what was shown is what was recorded", spot.name);
}

/// Much output, all of it, in order.
fn check_flood(spot: &Spot<'_>) {
    let script =
        "i=0; while [ $i -lt 200 ]; do i=$((i+1)); head -c 50000 /dev/zero; done | tr '\\0' x; echo end";
    let output = spot.run(&["run", "--no-pty"], &["sh", "-c", script], b"");
    assert_eq!(output.stdout.len(), 200 * 50_000 + 4, "{}", spot.name);
    assert!(output.stdout.ends_with(b"xend\n") && output.stdout[..10_000_000].iter().all(|b| *b == b'x'));
}

/// A detached session that others type to and look at, and that is ended from outside.
fn check_shared(spot: &Spot<'_>) {
    let mut command = spot.command(&["run", "-d", "--name", "far"], &["sh"]);
    let started = command.stdin(Stdio::null()).output().expect("it starts");
    assert!(started.status.success(), "{}: {}", spot.name, String::from_utf8_lossy(&started.stderr));
    let ok = |args: &[&str]| {
        let output = spot.home.run(args);
        assert!(
            output.status.success(),
            "{}: {args:?}: {}",
            spot.name,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    ok(&["type", "far", "echo sum-$((40+2))", "--enter"]);
    ok(&["wait", "far", "--text", "sum-42", "--timeout", "20s"]);
    assert!(ok(&["peek", "far"]).contains("sum-42"));
    ok(&["kill", "far"]);
}

const SCENARIO: &str = r#"
scenario: far
size: 60x12
env: {set: {GREETING: good day}}
program: {run: [sh, -c, 'echo "$GREETING"; read x; until [ "$(stty size)" = "10 50" ]; do :; done; stty size; echo "got <$x>"; exit 7']}
steps:
  - expect: {contains: good day}
  - resize: 50x10
  - type: "ping\n"
  - wait: {exit: true}
assert:
  - {at: "@end", screen: {contains: ["got <ping>", "10 50"]}}
  - {order: [{shows: good day}, {input: "ping\r"}, {shows: "got <ping>"}]}
  - {exit: 7}
"#;

/// One with files of its own, for places that can see them.
const WITH_FILES: &str = r#"
program:
  run: [sh, -c, 'cat note.txt; cd "$HOME"; echo written > new.txt && cat new.txt']
  files: {note.txt: "a note\n"}
assert:
  - {at: "@end", screen: {contains: [a note, written]}}
  - {exit: 0}
"#;

/// A scenario, live and recorded; the cassette needs the place no more.
fn check_tested(spot: &Spot<'_>) {
    check_scenario(spot, SCENARIO);
}

fn check_scenario(spot: &Spot<'_>, scenario: &str) {
    let folder = spot.home.path(&spot.name.replace(' ', "-"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("far.scenario.yaml");
    std::fs::write(&path, scenario).expect("written");
    let test = |args: &[&str], place: &[String]| {
        let mut command = spot.home.tapdeck(["test", "--no-skips"]);
        command.args(args).args(place).arg(&path).envs(spot.env.iter().map(|(k, v)| (k, v)));
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {args:?}: {said}", spot.name);
    };
    test(&["--live"], &spot.args);
    test(&["--record"], &spot.args);
    test(&[], &[]);
}

#[test]
fn here() {
    let home = Home::new();
    let spot = Spot { name: "local", home: &home, args: Vec::new(), env: Vec::new() };
    check_cases(&spot);
    check_person(&spot);
    check_flood(&spot);
    check_shared(&spot);
    check_tested(&spot);
    check_scenario(&Spot { name: "local files", home: &home, args: Vec::new(), env: Vec::new() }, WITH_FILES);
}

#[test]
fn in_a_container() {
    check_engine(Make::Docker);
}

#[test]
fn in_a_container_of_podman() {
    check_engine(Make::Podman);
}

fn check_engine(make: Make) {
    let Some(engine) = Engine::start(make) else { return };
    let home = Home::new();
    let env = vec![("DOCKER_HOST".to_owned(), engine.host())];
    let new = Spot { name: "docker", home: &home, args: words("--on docker:tapdeck-test"), env: env.clone() };
    check_cases(&new);
    check_person(&new);
    check_flood(&new);
    check_shared(&new);
    check_tested(&new);
    let args = words("--on docker:tapdeck-test --user 1000");
    let nobody = Spot { name: "docker user", home: &home, args, env: new.env.clone() };
    check_scenario(&nobody, WITH_FILES);
    engine.wait_for_containers(0);
    if matches!(make, Make::Docker) {
        check_behind_tls(&engine, &home);
    }

    // A tapdeck that gets no chance to tidy up leaves nothing behind either.
    let mut seat = Seat::new(new.command(&["run"], &["sh", "-c", "echo up; sleep 300"]));
    seat.wait_text("up");
    seat.child.kill().expect("it is killed");
    engine.wait_for_containers(0);

    // Nor does a test that is told to end.
    let file = home.path("deaf.scenario.yaml");
    let deaf = "program: {run: [sh, -c, \"trap '' HUP INT TERM; sleep 335 & wait; wait\"], timeout: 60s}\nassert:\n  - {exit: 0}\n";
    std::fs::write(&file, deaf).expect("written");
    let mut command = home.tapdeck(["test", "--live", "--on", "docker:tapdeck-test"]);
    command.arg(&file).envs(new.env.clone()).stdin(Stdio::null());
    let mut testing = command.spawn().expect("it runs");
    engine.wait_for_containers(1);
    signal(testing.id(), rustix::process::Signal::TERM);
    let ended = testing.wait().expect("it ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(15), "{ended:?}");
    engine.wait_for_containers(0);

    // One more program in a container that runs already.
    let mut command = new.command(&["run", "-d", "--name", "host"], &["sleep", "1000"]);
    assert!(command.stdin(Stdio::null()).status().expect("it starts").success());
    let container = engine.wait_for_containers(1).remove(0);
    let args = words(&format!("--on docker:exec:{container}"));
    let exec = Spot { name: "docker exec", home: &home, args, env };
    check_cases(&exec);
    check_person(&exec);
    check_flood(&exec);
    check_shared(&exec);
    check_tested(&exec);
    let mut seat = Seat::new(exec.command(&["run"], &["sh", "-c", "echo up; sleep 333 & sleep 334"]));
    seat.wait_text("up");
    seat.child.kill().expect("it is killed");
    eventually("the program's end", || {
        let left = exec.run(&["run", "--no-pty"], &["ps", "-o", "args"], b"");
        !String::from_utf8_lossy(&left.stdout).contains("sleep 33")
    });
    let left = exec.run(&["run", "--no-pty"], &["sh", "-c", "ps -o args"], b"");
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert!(!left.contains("sleep 3") && !left.contains("sleep 4"), "left within: {left}");
    assert!(home.run(["kill", "host"]).status.success());
    engine.wait_for_containers(0);

    // It is the container's first process that finds out, and each has its own number for it.
    let missing = match make {
        Make::Docker => 127,
        Make::Podman => 1,
    };
    let refused = [
        ("docker:tapdeck-test", &["no-such-program"][..], missing, ""),
        ("docker:exec:nobody", &["sh"], 4, "o such container"),
        ("docker:no-such-image.invalid/x", &["sh"], 4, "no-such-image"),
    ];
    for (place, program, code, said) in refused {
        let spot =
            Spot { name: "docker", home: &home, args: words(&format!("--on {place}")), env: new.env.clone() };
        let output = spot.run(&["run"], program, b"");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{place}: {err}");
        assert!(err.contains(said), "{place}: {err}");
    }
    engine.wait_for_containers(0);
}

/// The same engine over the network, for clients with a certificate.
fn check_behind_tls(engine: &Engine, home: &Home) {
    let args = words("--on docker:tapdeck-test");
    let far = Spot { name: "docker tls", home, args, env: engine.behind_tls() };
    check_cases(&far);
    check_person(&far);
    check_flood(&far);
    engine.wait_for_containers(0);
    // Without the certificates the server is not trusted, and without the user's own the client is
    // not let in.
    for (left_out, said) in [("ca.pem", "ca.pem"), ("cert.pem", "cert.pem"), ("", "ertificate")] {
        let folder = home.path(&format!("without-{left_out}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut env = engine.behind_tls();
        let names = ["ca.pem", "cert.pem", "key.pem"];
        let kept = names.iter().filter(|n| **n != left_out && (!left_out.is_empty() || **n == "ca.pem"));
        for name in kept {
            std::fs::copy(Path::new(&env[2].1).join(name), folder.join(name)).expect("copied");
        }
        env[2].1 = folder.display().to_string();
        let output =
            Spot { name: "refused", home, args: far.args.clone(), env }.run(&["run"], &["true"], b"");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{left_out}: {err}");
        assert!(err.contains(said), "{left_out}: {err}");
    }
}

#[test]
fn an_engine_that_is_not_there() {
    let home = Home::new();
    let mut command = home.tapdeck(["run", "--on", "docker:x", "--", "true"]);
    let missing = format!("unix://{}", home.path("none.sock").display());
    let output = command.env("DOCKER_HOST", missing).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.sock"));
    for place in ["docker:", "ssh:", "nowhere:x"] {
        assert_eq!(home.run(["run", "--on", place, "--", "true"]).status.code(), Some(2), "{place}");
    }
}

#[test]
fn behind_ssh() {
    let Some(server) = Sshd::start() else { return };
    let home = Home::new();
    let place =
        format!("--on ssh:{}@127.0.0.1:{} --identity {}", server.user(), server.port(), server.key("user"));
    let spot = Spot { name: "ssh", home: &home, args: words(&place), env: Vec::new() };

    let stranger = spot.run(&["run"], &["true"], b"");
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert_eq!(stranger.status.code(), Some(4), "{said}");
    assert!(said.contains("is new to you") && said.contains("--accept-new"), "{said}");
    // A person is asked, and remembers.
    let mut seat = wide(spot.command(&["run"], &["echo", "inside"]));
    seat.wait_text("(yes/no)?");
    seat.send("yes\n");
    assert!(seat.end().success(), "{}", seat.screen());
    assert!(seat.screen().contains("inside"), "{}", seat.screen());

    check_cases(&spot);
    check_person(&spot);
    check_flood(&spot);
    check_shared(&spot);
    check_tested(&spot);

    // Only a person can unlock a locked key.
    let locked = place.replace(&server.key("user"), &server.key("locked"));
    let locked = Spot { name: "ssh", home: &home, args: words(&locked), env: Vec::new() };
    let alone = locked.run(&["run"], &["true"], b"");
    assert_eq!(alone.status.code(), Some(4));
    let mut seat = wide(locked.command(&["run"], &["echo", "inside"]));
    seat.wait_text("Passphrase");
    seat.send("wrong\n");
    seat.wait("the question again", |seat| seat.screen().matches("Passphrase").count() == 2);
    seat.send("open sesame\n");
    assert!(seat.end().success(), "{}", seat.screen());
    assert!(!seat.screen().contains("sesame"));
    // Ctrl-C at a question ends it, and the terminal is as it was.
    let mut seat = wide(locked.command(&["run"], &["true"]));
    seat.wait_text("Passphrase");
    seat.send("\x03");
    assert_eq!(seat.end().code(), Some(130));
    assert_eq!(format!("{:?}", seat.termios()), seat.original);

    // A key that only the agent has.
    let bare = words(&format!("--on ssh:{}@127.0.0.1:{}", server.user(), server.port()));
    let agent = Agent::start(&server.key("user"));
    let env = vec![("SSH_AUTH_SOCK".to_owned(), agent.socket.display().to_string())];
    let known = Spot { name: "ssh", home: &home, args: bare.clone(), env };
    let output = known.run(&["run"], &["echo", "inside"], b"");
    assert_eq!(output.stdout, b"inside\r\n", "{}", String::from_utf8_lossy(&output.stderr));
    // Without one there is still a password, for a person who knows it.
    if server.has_password() {
        let env = vec![("SSH_AUTH_SOCK".to_owned(), "/nonexistent".to_owned())];
        let keyless = Spot { name: "ssh", home: &home, args: bare, env };
        assert_eq!(keyless.run(&["run"], &["true"], b"").status.code(), Some(4));
        let mut seat = wide(keyless.command(&["run"], &["echo", "inside"]));
        seat.wait_text("Password of");
        seat.send("wrong\n");
        seat.wait("the question again", |seat| seat.screen().matches("Password of").count() == 2);
        seat.send(format!("{PASSWORD}\n"));
        assert!(seat.end().success(), "{}", seat.screen());
        assert!(seat.screen().contains("inside") && !seat.screen().contains(PASSWORD), "{}", seat.screen());
    }

    // Machines behind others, as the configuration has them.
    check_ways(&home, &server);

    // A connection that is lost is an error of its own.
    let mut seat = wide(spot.command(&["run"], &["sh", "-c", "echo up; sleep 300"]));
    seat.wait_text("up");
    server.cut();
    assert_eq!(seat.end().code(), Some(4), "{}", seat.screen());
    assert!(seat.screen().contains("the connection was lost"), "{}", seat.screen());

    // Attached clients see it, too.
    let mut command = spot.command(&["run", "-d", "--name", "lost"], &["sh", "-c", "echo up; sleep 300"]);
    assert!(command.stdin(Stdio::null()).status().expect("it starts").success());
    assert!(home.run(["wait", "lost", "--text", "up", "--timeout", "20s"]).status.success());
    server.cut();
    eventually("the loss", || {
        String::from_utf8_lossy(&home.run(["ls", "--json"]).stdout).contains(r#""state":"lost""#)
    });
    let waited = home.run(["wait", "lost", "--exit", "--timeout", "20s"]);
    assert_eq!(waited.stdout, b"{\"code\":4}\n");
    assert!(home.run(["kill", "lost"]).status.success());

    // Another key in its place is refused, whatever was allowed.
    let hosts = home.path(".ssh/known_hosts");
    let other = std::fs::read_to_string(server.key("locked") + ".pub").expect("a key");
    let name = format!("[127.0.0.1]:{}", server.port());
    std::fs::write(&hosts, format!("{name} {other}")).expect("written");
    let changed = spot.run(&["run", "--accept-new"], &["true"], b"");
    let said = String::from_utf8_lossy(&changed.stderr).into_owned();
    assert_eq!(changed.status.code(), Some(4), "{said}");
    assert!(said.contains("IS NOT WHO IT WAS"), "{said}");
}

/// Each row: a machine of the configuration, and the message if it cannot be reached.
const WAYS: [(&str, Option<&str>); 7] = [
    ("jump", None),
    ("jumps", None),
    ("behind-jump", None),
    ("piped", None),
    ("no-such-hop", Some("on the way, 127.0.0.1: port 1 cannot be reached")),
    ("broken-pipe", Some("through \"true\": ")),
    ("piped;id", Some("is no name that can be put into a command")),
];

fn check_ways(home: &Home, server: &Sshd) {
    let common = format!("HostName 127.0.0.1\n User {}\n IdentityFile {}", server.user(), server.key("user"));
    let port = server.port();
    let config = format!(
        "Host bad-hop\n Port 1\nHost jump\n ProxyJump hop\nHost jumps\n ProxyJump hop,{user}@other-hop:{port}\n\
         Host behind-jump\n ProxyJump jump\nHost piped\n ProxyCommand busybox nc \"%h\" %p\n\
         Host no-such-hop\n ProxyJump bad-hop\nHost broken-pipe\n ProxyCommand true\nHost piped;*\n HostName %h\n ProxyCommand nc %h %p\nHost *\n Port {port}\n {common}\n",
        user = server.user(),
    );
    std::fs::write(home.path(".ssh/config"), config).expect("written");
    for (machine, trouble) in WAYS {
        let args = words(&format!("--on ssh:{machine}"));
        let env = vec![("SSH_AUTH_SOCK".to_owned(), "/nonexistent".to_owned())];
        let spot = Spot { name: "ssh", home, args, env };
        let output = spot.run(&["run", "--no-pty"], &["sh", "-c", "cat; exit 7"], b"there and back");
        let said = String::from_utf8_lossy(&output.stderr);
        match trouble {
            None => {
                assert_eq!(output.status.code(), Some(7), "{machine}: {said}");
                assert_eq!(output.stdout, b"there and back", "{machine}: {said}");
            }
            Some(trouble) => {
                assert_eq!(output.status.code(), Some(4), "{machine}: {said}");
                assert!(said.contains(trouble), "{machine}: {said}");
            }
        }
    }
    std::fs::remove_file(home.path(".ssh/config")).expect("removed");
}

/// A seat that is wide enough for every message, however long the names of this machine are.
fn wide(command: Command) -> Seat {
    Seat::with_size(command, 240, 24)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}
