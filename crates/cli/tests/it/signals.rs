//! Signals: passed on to the foreground process group, with the terminal given back on every way
//! out.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::support::{Home, Seat, eventually, lives, signal, state_of};

fn seat(home: &Home, script: &str) -> Seat {
    Seat::new(home.tapdeck(["run", "--", "sh", "-c", script]))
}

#[test]
fn signals_reach_the_foreground_group() {
    let home = Home::new();
    for (name, sig) in [
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("ALARM", Signal::ALARM),
        ("PIPE", Signal::PIPE),
        ("XCPU", Signal::XCPU),
        ("XFSZ", Signal::XFSZ),
        ("ABRT", Signal::ABORT),
        ("SEGV", Signal::SEGV),
        ("BUS", Signal::BUS),
        ("FPE", Signal::FPE),
        ("ILL", Signal::ILL),
        ("TRAP", Signal::TRAP),
        ("SYS", Signal::SYS),
    ] {
        let trap = if name == "ALARM" { "ALRM" } else { name };
        let script =
            format!("trap 'echo caught {trap}; exit 5' {trap}; echo ready; while :; do sleep 0.05; done");
        let mut seat = seat(&home, &script);
        let before = seat.original.clone();
        seat.wait_text("ready");
        signal(seat.child.id(), sig);
        let status = seat.end();
        assert!(seat.screen().contains(&format!("caught {trap}")), "{}", seat.screen());
        assert_eq!(status.code(), Some(5), "{name}");
        assert_eq!(format!("{:?}", seat.termios()), before, "{name}: the terminal is as it was");
    }
}

#[test]
fn a_job_of_a_shell_gets_the_signal_not_the_shell() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--", "bash", "--norc", "-i"]));
    seat.wait_text("$");
    seat.send("sh -c 'trap \"echo job has it; exit\" INT; echo job runs; while :; do sleep 0.05; done'\r");
    seat.wait("the job's own line", |s| s.screen().lines().any(|l| l == "job runs"));
    signal(seat.child.id(), Signal::INT);
    seat.wait("the job's answer", |s| s.screen().lines().any(|l| l == "job has it"));
    seat.send("exit 6\r");
    assert_eq!(seat.end().code(), Some(6));
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let home = Home::new();
    // What the program does, the signal sent to us, and the signal that is to be seen.
    for (script, send, seen) in [
        ("echo ready; exec sleep 60", Some(Signal::TERM), Some(15)),
        ("echo ready; exec sleep 60", Some(Signal::HUP), Some(1)),
        ("echo ready; exec sleep 60", Some(Signal::QUIT), Some(3)),
        ("echo ready; exec sleep 60", Some(Signal::INT), Some(2)),
        ("echo ready; kill -SEGV $$", None, Some(11)),
        ("echo ready; kill -KILL $$", None, Some(9)),
        ("echo ready; stty raw -echo; kill -KILL $$", None, Some(9)),
        ("echo ready", None, None),
    ] {
        let mut seat = seat(&home, script);
        let before = seat.original.clone();
        seat.wait_text("ready");
        if let Some(sig) = send {
            assert_ne!(format!("{:?}", seat.termios()), before, "raw while it runs");
            signal(seat.child.id(), sig);
        }
        let status = seat.end();
        assert_eq!(status.signal(), seen, "{script} {send:?}");
        assert_eq!(format!("{:?}", seat.termios()), before, "{script} {send:?}");
    }
}

#[test]
fn a_failed_start_leaves_the_terminal_alone() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--", "/nonexistent"]));
    let before = seat.original.clone();
    assert_eq!(seat.end().code(), Some(127));
    assert!(seat.screen().contains("command not found"));
    assert_eq!(format!("{:?}", seat.termios()), before);
}

/// A program that is killed in the middle of its picture leaves modes behind that a shell would
/// suffer from.
#[test]
fn modes_of_a_killed_program_are_undone() {
    let home = Home::new();
    let script = "printf 'before\\033[?1049h\\033[?25l\\033[?1000h\\033[?2004hpicture'; kill -KILL $$";
    let mut seat = seat(&home, script);
    seat.end();
    let modes = seat.term.modes();
    assert!(!modes.alternate() && modes.cursor_visible(), "{:?}", seat.screen());
    assert_eq!(seat.term.undo_modes(), b"", "nothing is left to undo");
    assert!(seat.screen().contains("before"));
}

/// But one that ends by itself has its last word, whatever it is.
#[test]
fn modes_of_a_program_that_ended_by_itself_are_its_own() {
    let home = Home::new();
    let mut seat = seat(&home, "printf '\\033[?25l'; exit 3");
    seat.end();
    assert_eq!(seat.raw, b"\x1b[?25l");
}

#[test]
fn suspended_and_continued_together() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    let inner = "echo pid $$; n=0; while :; do n=$((n+1)); echo tick $n; sleep 0.05; done";
    seat.send(format!("{} run -- sh -c '{inner}'\r", crate::support::TAPDECK));
    seat.wait("the first tick", |s| s.screen().lines().any(|l| l.starts_with("tick ")));
    let pid: i32 = text_after(&seat, "pid ");
    // Between the two is the program's minder.
    let wrapper = parent_of(parent_of(pid));
    signal(wrapper.cast_unsigned(), Signal::TSTP);
    seat.wait_text("Stopped");
    eventually("the wrapper to stop", || state_of(wrapper) == Some('T'));
    // The system takes a moment to stop a process that runs on another processor.
    eventually("the program to stop, too", || state_of(pid) == Some('T'));
    seat.send("stty -a | grep -c -- ' icanon'\r");
    seat.wait("a line mode answer", |s| s.screen().lines().any(|l| l.trim() == "1"));
    let ticks = count_ticks(&seat);
    seat.send("fg\r");
    seat.wait("more ticks", |s| count_ticks(s) > ticks + 3);
    assert_ne!(state_of(pid), Some('T'));
    signal(wrapper.cast_unsigned(), Signal::INT);
    seat.wait("the shell again", |s| s.screen().trim_end().ends_with('$'));
    seat.send("exit\r");
    seat.end();
    assert!(!lives(pid));
}

/// Ctrl-Z in a program that is started directly, one that reads lines and one that has the screen
/// to itself and stops its own group.
#[test]
fn ctrl_z_stops_the_program_and_its_wrapper_together() {
    let home = Home::new();
    // What it writes differs from the echo, so that it is known to run. The system cannot stop a
    // shell that waits for its command to start.
    let lines = "sed -u s/^/=/";
    let below = format!("sh -c '{lines}; :'");
    for (command, program) in [("run", lines), ("rec -q z.ahr", lines), ("run", "vim"), ("run", &below)] {
        let vim = program == "vim";
        if vim && !tapdeck_needs::has("vim") {
            continue;
        }
        let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
        seat.wait_text("$");
        let program = if vim { "vim -u NONE -N -n" } else { program };
        seat.send(format!("{} {command} -- {program}\r", crate::support::TAPDECK));
        if vim {
            seat.wait("vim", |s| s.term.modes().alternate());
        } else {
            seat.send("abc\r");
            seat.wait("the line", |s| s.screen().contains("\n=abc"));
        }
        for round in 1..=2 {
            seat.send("\x1a");
            seat.wait("the shell", |s| s.screen().matches("Stopped").count() == round);
            assert!(!seat.term.modes().alternate(), "{}", seat.screen());
            seat.send(format!("echo {round} is here\r"));
            seat.wait("the shell's answer", |s| s.screen().lines().any(|l| l == format!("{round} is here")));
            seat.send("fg; echo code $?\r");
            if vim {
                seat.wait("vim again", |s| s.term.modes().alternate());
            } else {
                seat.send(format!("line {round}\r"));
                let line = format!("\n=line {round}");
                seat.wait("the program again", |s| s.screen().contains(&line));
            }
        }
        seat.send(if vim { ":cquit 7\r" } else { "\x04" });
        let code = if vim { "code 7" } else { "code 0" };
        seat.wait("its code", |s| s.screen().lines().any(|l| l == code));
        seat.send("exit\r");
        seat.end();
    }
}

/// The wrapper is killed: the terminal is gone for its minder, and the program is hung up on.
#[test]
fn a_program_with_a_minder_is_hung_up_on_when_the_wrapper_is_killed() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    let inner = "echo pid $$; cat";
    seat.send(format!("{} run -- sh -c '{inner}'\r", crate::support::TAPDECK));
    seat.wait("the line", |s| s.screen().contains("\npid ") && s.raw.ends_with(b"\n"));
    let pid: i32 = text_after(&seat, "pid ");
    let minder = parent_of(pid);
    signal(parent_of(minder).cast_unsigned(), Signal::KILL);
    eventually("both to be gone", || !lives(pid) && !lives(minder));
    seat.send("exit\r");
    seat.end();
}

/// A program that is killed by a signal ends its wrapper in the same way, with a minder between
/// them.
#[test]
fn the_end_of_a_program_with_a_minder_is_its_own() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    for (end, code) in [("kill -KILL $$", 137), ("kill -SEGV $$", 139), ("trap \"\" HUP; exit 9", 9)] {
        seat.send(format!("{} run -- sh -c '{end}'; echo code $?\r", crate::support::TAPDECK));
        seat.wait("its code", |s| s.screen().lines().any(|l| l == format!("code {code}")));
    }
    seat.send(format!("{} run -- nosuchprogram; echo code $?\r", crate::support::TAPDECK));
    seat.wait("its code", |s| s.screen().lines().any(|l| l == "code 127"));
    seat.send("exit\r");
    seat.end();
}

/// What the caller opened above standard error reaches the program under the same number, and is
/// closed with it. What Tapdeck opened does not.
#[test]
fn descriptors_of_the_caller_reach_the_program() {
    let home = Home::new();
    let script = "ls -1 /proc/self/fd; echo to three >&3; cat <&9";
    std::fs::write(home.path("nine"), "from nine\n").expect("a file");
    let shown = |wrapper: &str| {
        let line = format!("{wrapper} sh -c '{script}' 3>three 9<nine; :");
        let done = home.command("sh").args(["-c", &line]).output().expect("a shell");
        assert_eq!(std::fs::read_to_string(home.path("three")).expect("a file"), "to three\n");
        String::from_utf8_lossy(&done.stdout).replace('\r', "")
    };
    // The test's own caller may have passed some on, too.
    let bare = shown("");
    assert!(bare.contains("\n3\n") && bare.ends_with("\n9\nfrom nine\n"), "{bare}");
    for args in ["run --", "rec -q d.ahr --", "run --no-pty --", "run --name named --"] {
        assert_eq!(shown(&format!("{} {args}", crate::support::TAPDECK)), bare, "{args}");
    }
    // A pipe ends when the program closes it, though the wrapper lives on.
    let line = format!(
        "{} run -- sh -c 'echo ready >&3; exec 3>&-; read line <done' 3>&1 >/dev/null | (cat; echo x >done)",
        crate::support::TAPDECK
    );
    let line = format!("mkfifo done; {line}");
    let done = home.command("sh").args(["-c", &line]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ready\n", "{done:?}");
    // The program of a detached session gets them, too, and its host keeps none: the pipe ends.
    for (name, args) in [("away", "run -d"), ("taped", "rec -d away.ahr")] {
        let line = format!(
            "{} {args} --name {name} -- sh -c 'echo to three >&3; exec 3>&-; read x' 3>&1",
            crate::support::TAPDECK
        );
        let done = home.command("sh").args(["-c", &line]).output().expect("a shell");
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert!(String::from_utf8_lossy(&done.stdout).contains("to three\n"), "{done:?}");
        assert_eq!(home.run(["kill", name]).status.code(), Some(0));
    }
}

/// The program stops itself: without us, the shell would get the terminal; so it must with us.
#[test]
fn a_program_that_stops_itself_hands_over_to_the_shell() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    seat.send(format!("{} run -- sh -c 'kill -STOP $$; echo went on; exit 3'\r", crate::support::TAPDECK));
    seat.wait_text("Stopped");
    seat.send("fg; echo code $?\r");
    seat.wait("the program to go on", |s| s.screen().lines().any(|l| l == "went on"));
    seat.wait("its code", |s| s.screen().lines().any(|l| l == "code 3"));
    seat.send("exit\r");
    seat.end();
}

/// A user's terminal that takes nothing must not keep a process that was told to go. The first
/// process of a window, of `setsid` or of a service cannot be stopped by itself: the program was
/// set going again at once.
#[test]
fn a_stopped_program_stays_so_where_there_is_no_shell() {
    let home = Home::new();
    let script = "echo pid $$; kill -STOP $$; echo went on; exit 3";
    let mut seat = Seat::new(home.tapdeck(["run", "--name", "alone", "--", "sh", "-c", script]));
    seat.wait_text("pid ");
    seat.wait("the whole line", |s| s.raw.ends_with(b"\n"));
    let pid: i32 = text_after(&seat, "pid ");
    eventually("the program to stop", || state_of(pid) == Some('T'));
    // Twice through the loop that notices the stop.
    for rows in ["30", "31"] {
        assert_eq!(home.run(["resize", "alone", &format!("90x{rows}")]).status.code(), Some(0));
    }
    assert_eq!(state_of(pid), Some('T'), "{}", seat.screen());
    signal(pid.cast_unsigned(), Signal::CONT);
    assert_eq!(seat.end().code(), Some(3));
    assert!(seat.screen().contains("went on"));
}

#[test]
fn told_to_end_it_ends_though_its_output_is_not_read() {
    let home = Home::new();
    let mut seat = seat(&home, "echo ready; exec yes");
    seat.wait("the first line", |s| s.raw.windows(5).any(|w| w == b"ready"));
    // From here on nothing reads; the pipeline fills up.
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    signal(seat.child.id(), Signal::TERM);
    eventually("the end", || seat.child.try_wait().expect("a child").is_some());
}

/// The terminal goes away (a closed window): the program gets SIGHUP, and the recording is whole.
#[test]
fn a_terminal_that_goes_away_ends_the_session() {
    let home = Home::new();
    let mut seat =
        Seat::new(home.tapdeck(["rec", "-q", "gone.ahr", "--", "sh", "-c", "echo up; exec sleep 300"]));
    seat.wait_text("up");
    let status = seat.hang_up();
    assert_eq!(status.signal(), Some(1));
    let verified = home.run(["verify", "gone.ahr"]);
    let text = String::from_utf8_lossy(&verified.stdout);
    assert!(text.contains("whole") && text.contains("ended by signal 1"), "{text}");
}

/// Started in the background, the terminal is not ours yet, and its settings are the line editor's.
#[test]
fn from_the_background_to_the_foreground() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    let inner = "echo in the back; read x; echo got $x";
    seat.send(format!("{} run -- sh -c '{inner}' &\r", crate::support::TAPDECK));
    seat.wait("output from the background", |s| s.screen().lines().any(|l| l.ends_with("in the back")));
    seat.send("echo the shell has the keyboard\r");
    seat.wait("the shell's answer", |s| s.screen().lines().any(|l| l == "the shell has the keyboard"));
    seat.send("fg\r");
    seat.wait("the foreground", |s| !s.termios().local_modes.contains(rustix::termios::LocalModes::ICANON));
    seat.send("hello\r");
    seat.wait("the program's answer", |s| s.screen().lines().any(|l| l == "got hello"));
    seat.wait("the shell again", |s| s.screen().ends_with('$'));
    seat.send("exit\r");
    seat.end();
}

/// A full-screen program that was stopped and continued in the background came back to the shell's
/// text.
#[test]
fn the_picture_comes_back_with_the_foreground() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    let inner = "echo $$ >pid; stty -icanon -echo; printf \"\\033[?1049h\\033[HPICTURE\"; read x; printf \"\\033[?1049l\"";
    seat.send(format!("{} run -- sh -c '{inner}'\r", crate::support::TAPDECK));
    let shown = |s: &Seat| s.term.modes().alternate() && s.screen() == "PICTURE";
    seat.wait("its picture", |s| shown(s));
    let pid: i32 = std::fs::read_to_string(home.path("pid")).expect("it ran").trim().parse().expect("a pid");
    signal(parent_of(parent_of(pid)).cast_unsigned(), Signal::TSTP);
    seat.wait_text("Stopped");
    seat.send("bg\recho mine\r");
    seat.wait("the shell's answer", |s| s.screen().lines().any(|l| l == "mine"));
    eventually("it to go on", || state_of(pid) == Some('S'));
    assert!(!seat.term.modes().alternate() && !seat.screen().contains("PICTURE\n"), "{}", seat.screen());
    seat.send("fg\r");
    seat.wait("its picture again", |s| shown(s));
    seat.send("\r");
    seat.wait("the shell again", |s| !s.term.modes().alternate() && s.screen().ends_with('$'));
    seat.send("exit\r");
    seat.end();
}

/// A program that has the screen to itself painted over the shell from the background.
#[test]
fn what_paints_in_the_background_is_seen_in_the_foreground() {
    let home = Home::new();
    let mut seat = Seat::new(home.command("bash").arg("--norc").arg("-i").to_owned_command());
    seat.wait_text("$");
    let inner = "stty -icanon -echo; printf \"\\033[H\\033[JPAI\"; printf NTED; read x; echo went";
    seat.send(format!("{} run --name painter -- sh -c '{inner}' &\r", crate::support::TAPDECK));
    eventually("it to paint", || home.run(["wait", "painter", "--text", "PAINTED"]).status.success());
    seat.send("echo mine\r");
    seat.wait("the shell's answer", |s| s.screen().lines().any(|l| l == "mine"));
    assert!(!seat.screen().contains("PAINTED"), "{}", seat.screen());
    seat.send("fg\r");
    seat.wait("what it painted", |s| s.screen() == "PAINTED");
    seat.send("\r");
    seat.wait("the shell again", |s| s.screen().contains("went") && s.screen().ends_with('$'));
    seat.send("exit\r");
    seat.end();
}

fn count_ticks(seat: &Seat) -> usize {
    seat.raw.windows(5).filter(|w| *w == b"tick ").count()
}

fn text_after<T: std::str::FromStr>(seat: &Seat, word: &str) -> T {
    let text = seat.screen();
    let line = text.lines().find(|l| l.starts_with(word)).expect("the line is there");
    line[word.len()..].trim().parse().ok().expect("a number")
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let rest = &stat[stat.rfind(')').expect("a name") + 2..];
    rest.split(' ').nth(1).and_then(|p| p.parse().ok()).expect("a parent")
}

trait Owned {
    fn to_owned_command(&mut self) -> std::process::Command;
}

impl Owned for std::process::Command {
    fn to_owned_command(&mut self) -> std::process::Command {
        std::mem::replace(self, std::process::Command::new("true"))
    }
}
