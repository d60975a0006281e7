//! Full-screen programs and shells look and behave as they do without us.

use std::time::Duration;

use tapdeck_needs::has;

use crate::support::{Home, Seat, descends};

#[test]
fn the_terminal_is_its_own() {
    let home = Home::new();
    let script = "exec 3>/dev/tty; echo via tty >&3; tty; stty size; ps -o pid=,pgid=,sid=,tpgid= -p $$";
    let mut seat = Seat::with_size(home.tapdeck(["run", "--", "sh", "-c", script]), 101, 33);
    assert_eq!(seat.end().code(), Some(0));
    let screen = seat.screen();
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!((lines[0], lines[2]), ("via tty", "33 101"), "{screen}");
    assert!(lines[1].starts_with("/dev/pts/"), "{screen}");
    let ids: Vec<_> = lines[3].split_whitespace().collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "leader of session, group and foreground: {screen}");
}

#[test]
fn a_size_of_nothing_is_passed_on() {
    let home = Home::new();
    let mut seat = Seat::with_size(home.tapdeck(["run", "--", "stty", "size"]), 0, 0);
    assert_eq!(seat.end().code(), Some(0));
    assert!(String::from_utf8_lossy(&seat.raw).contains("0 0"));
    for (cols, rows) in [(1, 1), (65535, 65535)] {
        let mut seat = Seat::with_size(
            home.tapdeck(["rec", "-q", "--overwrite", "x.ahr", "--", "stty", "size"]),
            cols,
            rows,
        );
        assert_eq!(seat.end().code(), Some(0));
        assert!(
            String::from_utf8_lossy(&seat.raw).replace(['\r', '\n'], "").contains(&format!("{rows} {cols}"))
        );
    }
}

#[test]
fn a_resize_reaches_the_program_in_order() {
    let home = Home::new();
    let script = "trap 'stty size; [ $(stty size | cut -d\" \" -f1) = 30 ] && exit' WINCH; echo ready; while :; do sleep 0.05; done";
    let mut seat = Seat::new(home.tapdeck(["rec", "-q", "r.ahr", "--", "sh", "-c", script]));
    seat.wait_text("ready");
    seat.resize(90, 28);
    seat.wait_text("28 90");
    seat.resize(100, 30);
    seat.end();
    assert!(seat.screen().contains("30 100"), "{}", seat.screen());
    let info = home.run(["info", "--json", "r.ahr"]).stdout;
    let info = String::from_utf8_lossy(&info);
    assert!(
        info.contains(r#""resizes":3"#) && info.contains(r#""last_size":{"cols":100,"rows":30}"#),
        "{info}"
    );
}

#[test]
fn job_control_works_as_in_a_bare_shell() {
    let home = Home::new();
    let mut seat = Seat::new(home.tapdeck(["run", "--", "bash", "--norc", "-i"]));
    seat.wait_text("$");
    seat.send("sleep 100\r");
    seat.wait_text("sleep 100");
    wait_for_job(&mut seat, "sleep");
    seat.send("\x1a");
    seat.wait_text("Stopped");
    seat.send("fg\r");
    wait_for_job(&mut seat, "sleep");
    seat.send("\x03");
    seat.wait_text("^C");
    seat.send("echo status $?\r");
    seat.wait_text("status 130");
    seat.send("exit\r");
    assert_eq!(seat.end().code(), Some(0));
}

/// Waits until a program of this name runs below the seat's child and is not stopped.
fn wait_for_job(seat: &mut Seat, name: &str) {
    let root = seat.child.id().cast_signed();
    seat.wait("the job", |_| {
        let Ok(all) = std::fs::read_dir("/proc") else { return false };
        let pids = all.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        pids.into_iter().any(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(&format!("({name})")) && stat.contains(") S") && descends(pid, root)
        })
    });
}

/// A program, what is typed to it (waiting for a text before each), and the text that shows that it
/// is done.
struct Scene {
    program: &'static [&'static str],
    keys: &'static [(&'static str, &'static str)],
    until: &'static str,
}

/// The same keys give the same picture with and without us, also when the size changes while it
/// draws.
#[test]
fn full_screen_programs_look_the_same() {
    let scenes = [
        Scene {
            program: &["vim", "-u", "NONE", "-N", "-n", "text"],
            keys: &[("line 1", "ihello \x1b"), ("hello line 1", ":set nu\r"), ("1 hello", "Go the end\x1b")],
            until: "the end",
        },
        Scene {
            program: &["less", "text"],
            keys: &[("line 1", "/line 77\r"), ("line 77", " "), ("line 100", "G")],
            until: "(END)",
        },
        Scene { program: &["less", "-N", "text"], keys: &[("line 1", "50g")], until: "line 72\n:" },
    ];
    let home = Home::new();
    let text: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    std::fs::write(home.path("text"), text).expect("written");
    for scene in scenes {
        if !has(scene.program[0]) {
            continue;
        }
        let play = |under: bool| {
            let mut command =
                if under { home.tapdeck(["run", "--"]) } else { home.command(scene.program[0]) };
            command.args(if under { scene.program } else { &scene.program[1..] });
            let mut seat = Seat::new(command);
            for (wait, keys) in scene.keys {
                seat.wait_text(wait);
                seat.send(keys);
            }
            seat.wait_text(scene.until);
            seat.resize(100, 30);
            // A pager that is resized while it draws may not notice by itself; then it is resized
            // again.
            let mut looks = 0;
            seat.wait(if under { "the new size, with us" } else { "the new size, without us" }, |s| {
                looks += 1;
                if looks % 50 == 0 {
                    s.resize(99, 30);
                    s.resize(100, 30);
                }
                s.screen().lines().count() > 24
            });
            seat
        };
        let mut bare = play(false);
        while bare.read_some(Duration::from_millis(500)) {}
        let mut wrapped = play(true);
        wrapped.wait(&format!("the picture that it has without us:\n{}", bare.screen()), |s| {
            s.screen() == bare.screen()
                && format!("{:?}", s.term.modes()) == format!("{:?}", bare.term.modes())
        });
    }
}

#[test]
fn top_and_htop_draw_and_obey() {
    let home = Home::new();
    for (program, sign) in [("top", "load average"), ("htop", "PID")] {
        if !has(program) {
            continue;
        }
        let mut seat = Seat::new(home.tapdeck(["run", "--", program]));
        let before = seat.original.clone();
        seat.wait_text(sign);
        seat.resize(120, 40);
        seat.wait("the new width", |s| s.screen().lines().any(|l| l.chars().count() > 81));
        seat.send("q");
        assert_eq!(seat.end().code(), Some(0), "{program}");
        assert_eq!(format!("{:?}", seat.termios()), before, "{program}");
    }
}

/// Both directions full at once: a program that writes without reading, and a paste that it must
/// read in the end.
#[test]
fn a_large_paste_into_a_busy_writer_loses_nothing() {
    use std::io::{Read, Write};
    let home = Home::new();
    const PASTE: usize = 10 << 20;
    let script =
        format!("stty raw -echo; printf R; head -c 3000000 /dev/zero | tr '\\0' y; head -c {PASTE} | cksum");
    let mut child = home
        .tapdeck(["run", "--", "sh", "-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("tapdeck runs");
    let paste: Vec<u8> = (0..PASTE).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let expected = {
        let mut sum = home
            .command("cksum")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("cksum");
        sum.stdin.take().expect("piped").write_all(&paste).expect("taken");
        sum.wait_with_output().expect("it ends").stdout
    };
    let mut stdout = child.stdout.take().expect("piped");
    let mut ready = [0];
    stdout.read_exact(&mut ready).expect("it is ready");
    let mut stdin = child.stdin.take().expect("piped");
    // All of the paste is offered before any of the output is read.
    let writer = std::thread::spawn(move || stdin.write_all(&paste));
    let mut all = Vec::new();
    stdout.read_to_end(&mut all).expect("output");
    writer.join().expect("no panic").expect("all was taken");
    child.wait().expect("it ends");
    let sum = all.splitn(2, |b| *b != b'y').nth(1).map(|_| &all[3_000_000..]).expect("the sum");
    assert_eq!(String::from_utf8_lossy(sum).trim(), String::from_utf8_lossy(&expected).trim());
}
