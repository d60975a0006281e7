//! The X11 desktop: keys that work in every window, and the clipboard, with a real server, terminal
//! emulator and keyboard.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tapdeck_needs::has;

use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually};

/// A desktop of a test's own.
struct Desktop<'h> {
    home: &'h Home,
    display: String,
    children: Vec<Child>,
}

impl<'h> Desktop<'h> {
    fn start(home: &'h Home) -> Self {
        let mut command = home.command("Xvfb");
        // The server finds a free number by itself, and says it.
        command.args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"]);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb runs");
        let mut number = String::new();
        let said = BufReader::new(server.stdout.as_mut().expect("piped")).read_line(&mut number);
        said.expect("the display's number");
        Self { home, display: format!(":{}", number.trim()), children: vec![server] }
    }

    fn start_program(&mut self, program: &str, args: &[&str], out: Stdio) -> &mut Child {
        let mut command = self.home.command(program);
        command.args(args).env("DISPLAY", &self.display).env_remove("WAYLAND_DISPLAY");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn().expect("it runs");
        self.children.push(child);
        self.children.last_mut().expect("just put there")
    }

    fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = self.home.command(program);
        let out = command.args(args).env("DISPLAY", &self.display).stdin(Stdio::null()).output();
        let out = out.expect("it runs");
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    }

    /// A window with a terminal in it, which has the focus from now on.
    fn window(&mut self, title: &str, command: &[&str]) {
        let args = [&["-T", title, "-e"], command].concat();
        self.start_program("xterm", &args, Stdio::null());
        self.focus(title);
    }

    fn focus(&self, title: &str) {
        let pattern = format!("^{title}$");
        eventually("the window", || {
            let found = self.run("xdotool", &["search", "--onlyvisible", "--name", &pattern]);
            let Some(window) = found.lines().next() else { return false };
            self.run("xdotool", &["windowfocus", window]);
            self.run("xdotool", &["getwindowfocus", "getwindowname"]).trim() == title
        });
    }
}

impl Drop for Desktop<'_> {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The lines that a program says, as they come.
fn lines(out: ChildStdout) -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    told
}

fn are_there(programs: &[&str]) -> bool {
    programs.iter().all(|p| has(p))
}

struct End<'h>(&'h Home);

impl Drop for End<'_> {
    fn drop(&mut self) {
        for name in ["left", "right", "third", "away"] {
            self.0.run(["kill", name]);
        }
    }
}

#[test]
fn keys_capture_and_paste_where_the_focus_is() {
    if !are_there(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let home = Home::new();
    let _end = End(&home);
    let mut desktop = Desktop::start(&home);
    desktop.start_program(TAPDECK, &["broker"], Stdio::null());
    let args = ["hotkeys", "--json", "--capture", "Ctrl+Alt+C", "--paste", "Super+F2"];
    let hotkeys = desktop.start_program(TAPDECK, &args, Stdio::piped());
    let said = lines(hotkeys.stdout.take().expect("piped"));
    let next = || said.recv_timeout(PATIENCE).expect("it says what it did");
    assert!(next().contains("C-M-c"), "the keys are held");
    let press = |desktop: &Desktop<'_>, key: &str| {
        desktop.run("xdotool", &["key", key]);
        next()
    };
    let idle = |name: &str| {
        eventually("the session", || home.run(["wait", name, "--state", "idle"]).status.success());
    };
    // A window with no session.
    desktop.window("bare", &["bash", "--norc"]);
    assert!(press(&desktop, "ctrl+alt+c").contains("no session runs in the window"));
    desktop.window("left", &[TAPDECK, "run", "--name", "left", "--", "bash", "--norc"]);
    idle("left");
    assert!(press(&desktop, "ctrl+alt+c").contains("not completed a turn"));
    desktop.run("xdotool", &["type", "echo one; echo two\n"]);
    home.run(["wait", "left", "--text", "^two$"]);
    idle("left");
    // Nothing depends on locks.
    desktop.run("xdotool", &["key", "Caps_Lock"]);
    let captured = press(&desktop, "ctrl+alt+c");
    assert!(captured.contains("captured") && captured.contains("\"byte_length\":8"), "{captured}");
    desktop.run("xdotool", &["key", "Caps_Lock"]);
    // One that runs elsewhere, and is attached here.
    home.run(["run", "-d", "--name", "away", "--", "bash", "--norc"]);
    desktop.window("right", &[TAPDECK, "attach", "away"]);
    idle("away");
    let pasted = press(&desktop, "super+F2");
    assert!(pasted.contains("pasted"), "{pasted}");
    assert!(home.run(["wait", "away", "--text", "two", "--timeout", "20"]).status.success());
    // A key that another program holds is refused with a message.
    let second = desktop.run(TAPDECK, &["hotkeys", "--capture", "Ctrl+Alt+C"]);
    assert!(second.contains("C-M-c is taken by another program"), "{second}");
    let plain = desktop.run(TAPDECK, &["hotkeys", "--capture", "c"]);
    assert!(plain.contains("add Ctrl, Alt or Super"), "{plain}");
    // Two in one window: the target is ambiguous.
    let both = format!("{TAPDECK} run --name third -- {TAPDECK} attach left");
    desktop.window("both", &["sh", "-c", &both]);
    eventually("both", || {
        let seen = home.run(["ls", "--json"]).stdout;
        String::from_utf8_lossy(&seen).matches("\"attached\":true").count() >= 2
    });
    let ambiguous = press(&desktop, "ctrl+alt+c");
    assert!(ambiguous.contains("several sessions") && ambiguous.contains("third"), "{ambiguous}");
}

#[test]
fn what_is_captured_gets_onto_the_clipboard() {
    let home = Home::new();
    let _end = End(&home);
    home.run(["run", "-d", "--name", "left", "--", "bash", "--norc"]);
    home.run(["wait", "left", "--state", "idle"]);
    home.run(["paste", "left", "echo grüße; echo two"]);
    home.run(["wait", "left", "--state", "idle"]);
    let tools =
        [("xclip", ["-selection", "clipboard", "-o"].as_slice()), ("xsel", &["--clipboard", "--output"])];
    for (tool, args) in tools {
        if !are_there(&["Xvfb", tool]) {
            continue;
        }
        // Only this tool, under its own name.
        let folder = home.path(&format!("only-{tool}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::os::unix::fs::symlink(format!("/usr/bin/{tool}"), folder.join(tool)).expect("linked");
        let mut desktop = Desktop::start(&home);
        let mut broker = home.tapdeck(["broker"]);
        broker.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env("PATH", &folder);
        let broker = broker.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
        desktop.children.push(broker);
        eventually("the session", || home.run(["capture", "left"]).status.success());
        // The desktop is that of the command, and not the broker's.
        let mut deliver = home.tapdeck(["deliver", "clipboard"]);
        deliver.env("DISPLAY", &desktop.display).env_remove("WAYLAND_DISPLAY");
        let out = deliver.output().expect("it runs");
        assert!(out.status.success(), "{tool}: {}", String::from_utf8_lossy(&out.stderr));
        // The tool that keeps it goes into the background first and takes the clipboard then.
        eventually(tool, || desktop.run(tool, args) == "grüße\ntwo\n");
    }
    // Where the desktop has no tool for it, the terminal is asked.
    let mut broker = home.tapdeck(["broker"]);
    broker.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").stdin(Stdio::null()).stdout(Stdio::null());
    let mut broker = broker.spawn().expect("it runs");
    eventually("the session", || home.run(["capture", "left"]).status.success());
    let mut seat = Seat::new(home.tapdeck(["deliver", "clipboard"]));
    seat.wait_text("delivered through this terminal");
    let wanted = b"\x1b]52;c;Z3LDvMOfZQp0d28K\x07";
    assert!(seat.raw.windows(wanted.len()).any(|w| w == wanted), "{:?}", String::from_utf8_lossy(&seat.raw));
    let _ = broker.kill();
    let _ = broker.wait();
}
