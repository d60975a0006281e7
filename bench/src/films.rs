//! Films: how many frames a second `tapdeck convert` makes of a recording, and how large they are.
//! `agg`, asciinema's program for GIFs, is measured beside it where it is installed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::peers::find;
use crate::{Options, Row, median};

/// The screen that agg was measured on.
const COLS: usize = 126;
const ROWS: usize = 43;

/// Measures both workloads. `None` stands for a peer that is not installed.
pub fn measure(tapdeck: &Path, o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let agg = find("agg");
    let mut rows = Vec::new();
    for (kind, frames, cast) in [("htop", 120, processes(120)), ("true colour", 216, colours(216))] {
        let file = folder.join("film.cast");
        std::fs::write(&file, cast)?;
        let names: [(&'static str, &str); 4] = match kind {
            "htop" => {
                [("htop, gif", "gif"), ("htop, apng", "apng"), ("htop, mp4", "mp4"), ("htop, agg", "agg")]
            }
            _ => [
                ("true colour, gif", "gif"),
                ("true colour, apng", "apng"),
                ("true colour, mp4", "mp4"),
                ("true colour, agg", "agg"),
            ],
        };
        for (name, format) in names {
            let out = folder.join("film.out");
            let mut seconds = Vec::new();
            for _ in 0..o.rounds {
                let mut command = match (format, &agg) {
                    ("agg", None) => continue,
                    ("mp4", _) if find("ffmpeg").is_none() => continue,
                    ("agg", Some(agg)) => Command::new(agg),
                    _ => {
                        let mut command = Command::new(tapdeck);
                        command.args(["convert", "-q", "--overwrite", "--format", format, "-o"]);
                        command
                    }
                };
                match format {
                    "agg" => command.arg(&file).arg(&out),
                    _ => command.arg(&out).arg(&file),
                };
                let start = Instant::now();
                let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
                ensure!(status.with_context(|| format!("{name} did not start"))?.success(), "{name} failed");
                seconds.push(start.elapsed().as_secs_f64());
            }
            if seconds.is_empty() {
                continue;
            }
            let seconds = median(seconds.into_iter());
            let size = std::fs::metadata(&out)?.len() as f64;
            let frames = f64::from(frames);
            rows.push((
                name,
                vec![
                    ("seconds", seconds),
                    ("frames/s", frames / seconds),
                    ("MB", size / 1e6),
                    ("KB/frame", size / 1e3 / frames),
                ],
            ));
        }
    }
    Ok(rows)
}

fn header() -> String {
    format!("{{\"version\":2,\"width\":{COLS},\"height\":{ROWS}}}\n")
}

fn frame(cast: &mut String, at: f64, screen: &str) {
    // Escape sequences are all that JSON has to be told of.
    let text = screen.replace('\x1b', "\\u001b");
    let _ = writeln!(cast, "[{at:.6},\"o\",\"{text}\"]");
}

/// A list of processes that is written anew twice a second: meters, and numbers that change.
fn processes(frames: u32) -> String {
    let mut cast = header();
    let mut random = Random(7);
    let mut cpu = [0_u32; ROWS];
    for n in 0..frames {
        let mut screen = String::from("\x1b[H");
        for core in 0..4 {
            let busy = random.below(40);
            let bar = "|".repeat(busy as usize);
            let _ = write!(
                screen,
                "\x1b[{};1H\x1b[36m{core:3}\x1b[1m[\x1b[32m{bar:<50}\x1b[90m{:5.1}%\x1b[39m]\x1b[m",
                core + 1,
                f64::from(busy) * 2.5
            );
        }
        let _ =
            write!(screen, "\x1b[5;1HTasks: \x1b[1;36m{}\x1b[m, 213 thr; 2 running", 90 + random.below(5));
        let _ = write!(
            screen,
            "\x1b[7;1H\x1b[30;42m{:<COLS$}\x1b[m",
            "    PID USER      PRI  NI  VIRT   RES S CPU% MEM%   TIME+  Command"
        );
        for (y, cpu) in cpu.iter_mut().enumerate().skip(7).take(ROWS - 8) {
            if random.below(3) == 0 {
                *cpu = random.below(400);
            }
            let _ = write!(
                screen,
                "\x1b[{};1H{:7} \x1b[32mroot      \x1b[m 20   0 {:5}M {:4}M \x1b[32mS\x1b[m {:4.1} {:4.1} {:2}:{:02}.{:02} \x1b[36m/usr/lib/service-{y}\x1b[m --worker --id={}",
                y + 1,
                1000 + y * 37,
                100 + y * 13,
                10 + y,
                f64::from(*cpu) / 10.0,
                y as f64 / 10.0,
                n / 120,
                n / 2 % 60,
                *cpu % 100,
                y * 7919 % 1000,
            );
        }
        let _ = write!(
            screen,
            "\x1b[{ROWS};1H\x1b[mF1\x1b[30;46mHelp  \x1b[mF2\x1b[30;46mSetup \x1b[mF10\x1b[30;46mQuit\x1b[m"
        );
        frame(&mut cast, f64::from(n) * 0.5, &screen);
    }
    cast
}

/// A screen on which each cell has another colour in each frame, with text over it.
fn colours(frames: u32) -> String {
    let mut cast = header();
    for n in 0..frames {
        let mut screen = String::from("\x1b[H");
        for y in 0..ROWS {
            let _ = write!(screen, "\x1b[{};1H", y + 1);
            for x in 0..COLS {
                let wave = |phase: f64| {
                    let turn = x as f64 / 19.0 + y as f64 / 11.0 + f64::from(n) / 9.0 + phase;
                    (127.5 + 127.5 * turn.sin()) as u8
                };
                let letter = char::from(b'a' + ((x * 7 + y * 3 + n as usize / 4) % 26) as u8);
                let letter = if (x + y) % 3 == 0 { letter } else { ' ' };
                let _ = write!(
                    screen,
                    "\x1b[48;2;{};{};{};38;2;{};220;240m{letter}",
                    wave(0.0),
                    wave(2.1),
                    wave(4.2),
                    wave(1.0)
                );
            }
        }
        frame(&mut cast, f64::from(n) * 0.05, &screen);
    }
    cast
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % limit
    }
}
