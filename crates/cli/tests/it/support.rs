//! A person at a terminal, for tests: a pty, a program on it, and the terminal model as eyes.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use tapdeck_term::{Settings, Size, Term};

/// The longest wait of a test, after which it has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The command under test.
pub const TAPDECK: &str = env!("CARGO_BIN_EXE_tapdeck");

/// A home of a test's own, gone with it.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What a recording says of itself in one of its parts, waited for.
    #[track_caller]
    pub fn part(&self, recording: &str, name: &str) -> String {
        let mut found = None;
        eventually(name, || {
            found = self.part_now(recording, name);
            found.is_some()
        });
        found.expect("it is there")
    }

    /// The same, if it is there by now.
    pub fn part_now(&self, recording: &str, name: &str) -> Option<String> {
        let source = tapdeck_host::Source::find(&self.path(recording), None, None).ok()?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut source.sidecar(name)?, &mut text).ok()?;
        Some(text)
    }

    /// A part as bytes; empty if there is none.
    pub fn part_bytes(&self, recording: &str, name: &str) -> Vec<u8> {
        let source = tapdeck_host::Source::find(&self.path(recording), None, None).expect("a recording");
        let mut bytes = Vec::new();
        if let Some(mut part) = source.sidecar(name) {
            std::io::Read::read_to_end(&mut part, &mut bytes).expect("read");
        }
        bytes
    }

    /// Adds to a part of a recording that is finished.
    #[track_caller]
    pub fn append(&self, recording: &str, name: &str, bytes: &[u8]) {
        tapdeck_host::append_part(&self.path(recording), name, bytes).expect("appended");
    }

    /// What a recording says of itself as a whole, waited for.
    #[track_caller]
    pub fn meta(&self, recording: &str) -> serde_json::Value {
        let lines = self.part(recording, "meta.json");
        serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON")
    }

    /// Whether a recording has been written to its end.
    pub fn is_finished(&self, recording: &str) -> bool {
        let path = self.path(recording);
        let tail = || tapdeck_tape::ahr::tail(std::fs::File::open(&path).ok()?).ok();
        !tapdeck_host::is_locked(&path) && tail().is_some_and(|tail| tail.is_last)
    }

    /// `tapdeck` with these arguments, in this home.
    pub fn tapdeck<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        // Another build can be tried instead, such as one with optimisations.
        let other = std::env::var("TAPDECK_BINARY").ok();
        let mut command = self.command(other.as_deref().unwrap_or(TAPDECK));
        command.args(args);
        command
    }

    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let home = self.0.path();
        command.current_dir(home).env("HOME", home).env("TERM", "xterm-256color");
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env_remove("NO_COLOR").env("PS1", "$ ").env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs to the end without a terminal; nothing on standard input.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> std::process::Output {
        self.tapdeck(args).stdin(Stdio::null()).output().expect("tapdeck runs")
    }
}

/// A program on a terminal that a test looks at and types to.
pub struct Seat {
    master: OwnedFd,
    pub child: Child,
    pub term: Term,
    pub raw: Vec<u8>,
    /// What the terminal would answer, until a test takes it.
    pub replies: Vec<u8>,
    /// The terminal's settings before anything ran on it.
    pub original: String,
}

impl Seat {
    pub fn new(command: Command) -> Self {
        Self::with_size(command, 80, 24)
    }

    pub fn with_size(mut command: Command, cols: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pty");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other side");
        set_size(&master, cols, rows);
        let stdio = || Stdio::from(slave.try_clone().expect("a copy"));
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: two async-signal-safe system calls; standard input is the terminal.
        #[expect(unsafe_code, reason = "the standard library has no safe way to give a child a terminal")]
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?;
                Ok(())
            });
        }
        let original = format!("{:?}", tcgetattr(&master).expect("settings"));
        let child = command.spawn().expect("it starts");
        let size = Size { cols: cols.max(1), rows: rows.max(1) };
        Self {
            master,
            child,
            term: Term::new(size, Settings::default()),
            raw: Vec::new(),
            replies: Vec::new(),
            original,
        }
    }

    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        let mut bytes = bytes.as_ref();
        while !bytes.is_empty() {
            let n = rustix::io::write(&self.master, bytes).expect("it takes input");
            bytes = &bytes[n..];
        }
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        set_size(&self.master, cols, rows);
        self.term.resize(Size { cols, rows });
    }

    pub fn termios(&self) -> Termios {
        tcgetattr(&self.master).expect("settings")
    }

    pub fn screen(&self) -> String {
        let rows: Vec<String> = self.term.screen().map(|line| line.text()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Reads until the condition holds.
    #[track_caller]
    pub fn wait(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            if Instant::now() > deadline {
                panic!("waited in vain for {what}; the screen:\n{}", self.screen());
            }
            self.read_some(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub fn wait_text(&mut self, text: &str) {
        self.wait(text, |seat| seat.screen().contains(text));
    }

    /// Reads until the program has ended and nothing is left to read.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.read_some(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                while self.read_some(Duration::from_millis(1)) {}
                return status;
            }
            if Instant::now() > deadline {
                panic!("it does not end; the screen:\n{}", self.screen());
            }
        }
    }

    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    /// Whether a program of this name, somewhere below, is waiting in a read or a poll of its
    /// terminal.
    pub fn waits_for_input(&self, name: &str) -> bool {
        let root = self.child.id().cast_signed();
        let Ok(all) = std::fs::read_dir("/proc") else { return false };
        let pids = all.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        pids.into_iter().any(|pid| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
            let number = call.split(' ').next().unwrap_or_default();
            comm.trim() == name && matches!(number, "0" | "7" | "23" | "270") && descends(pid, root)
        })
    }

    /// Whether every thread of the program sleeps: what it was given has been passed on.
    pub fn sleeps(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.into_iter().flatten().flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
        })
    }

    /// Takes the terminal away, and returns how the program ended.
    pub fn hang_up(&mut self) -> ExitStatus {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        self.master = openpt(flags).expect("another pty");
        eventually("the end", || self.child.try_wait().expect("a child").is_some());
        self.child.wait().expect("it has ended")
    }

    /// Reads what is there within the time; says whether anything was.
    pub fn read_some(&mut self, within: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) };
        if !matches!(poll(&mut fds, Some(&limit)), Ok(n) if n > 0) {
            return false;
        }
        let mut buf = [0; 65536];
        match rustix::io::read(&self.master, &mut buf) {
            Ok(n) if n > 0 => {
                let changes = self.term.feed(&buf[..n]);
                self.replies.extend_from_slice(&changes.replies);
                self.raw.extend_from_slice(&buf[..n]);
                true
            }
            // No process has the terminal open; do not spin on it.
            _ => {
                std::thread::park_timeout(within);
                false
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(fd: &OwnedFd, cols: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(fd, size).expect("the size is set");
}

/// Whether a process was started by another, directly or not.
pub fn descends(mut pid: i32, root: i32) -> bool {
    while pid > 1 && pid != root {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rfind(')').and_then(|i| stat[i + 2..].split(' ').nth(1)?.parse().ok());
        pid = parent.unwrap_or(0);
    }
    pid == root
}

/// Waits for something that no descriptor announces.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Whether a process is there and not a zombie.
pub fn lives(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// A process's state letter.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
    rustix::process::kill_process(pid, signal).expect("it is signalled");
}

/// A recording's output, read by the library.
pub fn recorded_output(path: &Path) -> Vec<u8> {
    use tapdeck_tape::ahr::{Body, Item, Reader};
    let reader = Reader::new(std::fs::File::open(path).expect("the recording is there"));
    let mut bytes = Vec::new();
    for item in reader {
        if let Ok(Item::Record(record)) = item
            && let Body::Data { bytes: piece, off } = record.body
        {
            assert_eq!(off, bytes.len() as u64, "offsets are contiguous");
            bytes.extend_from_slice(&piece);
        }
    }
    bytes
}

/// Checks that everything in a recording with gaps is what was shown at that place; returns how
/// much it is.
pub fn recorded_part(path: &Path, shown: &[u8]) -> usize {
    use tapdeck_tape::ahr::{Body, Item, Reader};
    let reader = Reader::new(std::fs::File::open(path).expect("the recording is there"));
    let mut kept = 0;
    for item in reader {
        if let Ok(Item::Record(record)) = item
            && let Body::Data { bytes: piece, off } = record.body
        {
            let at = usize::try_from(off).expect("small");
            assert_eq!(&shown[at..at + piece.len()], &piece[..], "at {at}");
            kept += piece.len();
        }
    }
    kept
}

/// Writes a recording as earlier versions did: without a word about itself.
pub fn older(home: &Home, recording: &str, to: &str) {
    use tapdeck_tape::ahr::{BlockBuilder, Body, Item, Quality, Reader};
    let file = std::fs::File::open(home.path(recording)).expect("a recording");
    let (mut builder, mut out) = (BlockBuilder::new(0), Vec::new());
    for item in Reader::new(file) {
        let Ok(Item::Record(record)) = item else { panic!("damaged") };
        let mut rest = Some(record).filter(|record| !matches!(record.body, Body::Part { .. }));
        while let Some(record) = rest {
            rest = builder.push(record);
            if builder.is_full() {
                out.extend_from_slice(builder.finish(Quality::default(), false));
            }
        }
    }
    out.extend_from_slice(builder.finish(Quality::default(), true));
    std::fs::write(home.path(to), out).expect("written");
}

/// Where the blocks of a recording begin.
pub fn blocks_of(file: &[u8]) -> Vec<usize> {
    let at = |i: &usize| file[*i..].starts_with(b"AHRC\x01\x00\x2c\x00");
    (0..file.len()).filter(at).collect()
}
