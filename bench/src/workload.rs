//! What the programs under test write: log lines, and the redraws of a full-screen agent.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

const WORDS: [&str; 40] = [
    "request",
    "handled",
    "error",
    "warn",
    "connection",
    "reset",
    "socket",
    "timeout",
    "thread",
    "worker",
    "cache",
    "miss",
    "index",
    "build",
    "compile",
    "link",
    "module",
    "function",
    "returned",
    "value",
    "retry",
    "queue",
    "message",
    "offset",
    "commit",
    "leader",
    "snapshot",
    "apply",
    "log",
    "entry",
    "user",
    "session",
    "token",
    "refresh",
    "policy",
    "rule",
    "config",
    "reload",
    "file",
    "path",
];

/// A small generator of pseudo-random numbers: the same bytes on every run.
struct Rng(u64);

impl Rng {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    fn words(&mut self, n: usize) -> String {
        (0..n).map(|_| WORDS[self.next(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }
}

/// Writes a workload of about `size` bytes to a file.
pub fn write(kind: &str, size: usize, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let (mut written, mut i) = (0, 0);
    while written < size {
        let piece = if kind == "plain" { log_line(&mut rng, i) } else { agent_frame(&mut rng, i) };
        out.write_all(piece.as_bytes())?;
        written += piece.len();
        i += 1;
    }
    out.flush()?;
    Ok(())
}

fn log_line(rng: &mut Rng, i: usize) -> String {
    let level = ["INFO ", "INFO ", "DEBUG", "WARN ", "ERROR"][rng.next(5)];
    let (worker, id, n) = (rng.next(32), rng.next(1 << 48), 4 + rng.next(10));
    let words = rng.words(n);
    format!(
        "2026-03-{:02}T{:02}:{:02}:{:02}.{:03}Z {level} [worker-{worker}] id={id:012x} {words}\r\n",
        1 + i / 8_640_000 % 28,
        i / 360_000 % 24,
        i / 6_000 % 60,
        i / 100 % 60,
        i * 7 % 1000,
    )
}

/// A redraw inside a synchronised update: part of it erases lines upwards and writes them again, as
/// inline agents do, part addresses the whole screen.
fn agent_frame(rng: &mut Rng, i: usize) -> String {
    use std::fmt::Write as _;
    let mut f = String::from("\x1b[?2026h");
    if i % 500 < 300 {
        f.push_str(&"\x1b[2K\x1b[1A".repeat(10));
        f.push_str("\x1b[2K\x1b[G");
        if i.is_multiple_of(12) {
            let (a, b) = (rng.words(1), rng.words(8));
            let _ = write!(
                f,
                "\x1b[38;2;215;119;87m●\x1b[39m \x1b[1mEdit\x1b[22m(src/{a}.rs)\r\n  ⎿  \x1b[2m{b}\x1b[22m\r\n"
            );
        }
        let word = rng.words(1);
        let _ = write!(
            f,
            "\x1b[38;2;215;119;87m✻ {word}…\x1b[39m \x1b[38;2;153;153;153m({}s · ↑ {}k tokens · esc to interrupt)\x1b[39m\r\n",
            i % 97,
            i % 900
        );
        for q in 0..6 {
            let words = rng.words(5);
            let _ = write!(
                f,
                "  \x1b[38;2;153;153;153m⎿\x1b[39m  {} {words}\r\n",
                if q < i / 50 % 6 { '☒' } else { '☐' }
            );
        }
        let (line, input) = ("─".repeat(118), rng.words(i % 9));
        let _ = write!(
            f,
            "\x1b[38;2;136;136;136m╭{line}╮\x1b[39m\r\n│ > {input}\x1b[7m \x1b[27m\r\n╰{line}╯\r\n"
        );
    } else {
        for y in 1..=40 {
            if !i.is_multiple_of(20) && rng.next(4) != 0 {
                continue;
            }
            let (a, b, c) = (rng.words(1), rng.words(5), rng.words(4));
            let _ = write!(
                f,
                "\x1b[{y};1H\x1b[38;5;{}m▌\x1b[0m \x1b[1;34m{a}\x1b[0m {b}\x1b[K\x1b[{y};60H│ \x1b[38;2;{};200;90m{c}\x1b[0m",
                100 + y,
                y * 5
            );
        }
    }
    f.push_str("\x1b[?2026l");
    f
}

/// A thread that keeps one core busy until dropped.
pub struct Busy(Arc<AtomicBool>);

impl Busy {
    /// Starts it.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop()
            }
        });
        Self(stop)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
