//! Deterministic terminal output of six kinds, at 120 columns and 40 rows.

use std::fmt::Write as _;

pub(crate) const COLS: usize = 120;
pub(crate) const ROWS: usize = 40;

const WORDS: &[&str] = &[
    "the",
    "quick",
    "brown",
    "request",
    "handled",
    "error",
    "warn",
    "info",
    "debug",
    "connection",
    "reset",
    "by",
    "peer",
    "socket",
    "timeout",
    "thread",
    "pool",
    "worker",
    "started",
    "finished",
    "cache",
    "miss",
    "hit",
    "index",
    "build",
    "compile",
    "link",
    "crate",
    "module",
    "function",
    "returned",
    "value",
    "null",
    "pointer",
    "exception",
    "retry",
    "queue",
    "message",
    "partition",
    "offset",
    "commit",
    "leader",
    "follower",
    "election",
    "term",
    "snapshot",
    "apply",
    "log",
    "entry",
    "replicated",
    "user",
    "session",
    "token",
    "expired",
    "refresh",
    "grant",
    "scope",
    "denied",
    "policy",
    "rule",
    "match",
    "fallback",
    "default",
    "config",
    "reload",
    "file",
    "path",
    "read",
    "write",
    "open",
];

/// A small generator of numbers (splitmix64), so that the workloads are the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn between(&mut self, a: u64, b: u64) -> u64 {
        a + self.below(b - a)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    fn words(&mut self, n: u64) -> String {
        (0..n).map(|_| self.pick(WORDS)).collect::<Vec<_>>().join(" ")
    }
}

fn cut(s: &str, n: usize) -> &str {
    &s[..s.len().min(n)]
}

pub(crate) fn all(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("plain", plain(bytes)),
        ("dense SGR", dense(bytes)),
        ("scrolling", scrolling(bytes)),
        ("\\r progress", progress(bytes)),
        ("unicode", unicode(bytes)),
        ("agent", agent(bytes)),
    ]
}

pub(crate) fn plain(bytes: usize) -> Vec<u8> {
    let (mut r, mut out, mut t) = (Rng(1), String::new(), 0u64);
    while out.len() < bytes {
        t += r.between(1, 900);
        let level = r.pick(&["INFO ", "INFO ", "INFO ", "DEBUG", "WARN ", "ERROR"]);
        let n = r.between(4, 14);
        let message = r.words(n);
        let _ = write!(
            out,
            "2026-03-{:02}T{:02}:{:02}:{:02}.{:03}Z {level} [worker-{}] {}::{} id={:012x} {message}\r\n",
            1 + t / 86_400_000 % 28,
            t / 3_600_000 % 24,
            t / 60_000 % 60,
            t / 1000 % 60,
            t % 1000,
            r.below(32),
            r.pick(WORDS),
            r.pick(WORDS),
            r.next() >> 16,
        );
    }
    out.into_bytes()
}

/// Every cell its own SGR, whole frames by cursor address.
fn dense(bytes: usize) -> Vec<u8> {
    let mut out = String::from("\x1b[?1049h\x1b[2J");
    let mut frame = 0;
    while out.len() < bytes {
        let ch = char::from((33 + frame % 90) as u8);
        out.push_str("\x1b[H");
        for y in 0..ROWS {
            let _ = write!(out, "\x1b[{};1H", y + 1);
            for x in 0..COLS {
                let k = x + y + frame;
                let _ = if k % 5 == 4 {
                    write!(
                        out,
                        "\x1b[38;2;{};{};{};48;2;{};{};{}m{ch}",
                        k % 256,
                        k * 3 % 256,
                        k * 7 % 256,
                        k * 5 % 256,
                        k * 11 % 256,
                        k * 13 % 256
                    )
                } else {
                    write!(out, "\x1b[38;5;{};48;5;{};1;3;4m{ch}", k % 156 + 100, 255 - k % 156)
                };
            }
        }
        frame += 1;
    }
    out.into_bytes()
}

/// Coloured lines in a scrolling region, with lines inserted and deleted.
fn scrolling(bytes: usize) -> Vec<u8> {
    let mut r = Rng(3);
    let mut out = format!("\x1b[?1049h\x1b[2J\x1b[3;{}r", ROWS - 2);
    let mut i = 0;
    while out.len() < bytes {
        i += 1;
        let n = r.between(3, 15);
        let line = r.words(n);
        let text = cut(&line, COLS - 8);
        let _ = match i % 64 {
            0..48 => write!(
                out,
                "\x1b[{};1H\n\x1b[38;5;{}m{i:6}\x1b[0m \x1b[1m{text}\x1b[0m\x1b[K",
                ROWS - 2,
                r.below(16)
            ),
            48..56 => write!(out, "\x1b[3;1H\x1bM\x1b[7m{text}\x1b[27m\x1b[K"),
            56..60 => write!(out, "\x1b[10;1H\x1b[2L\x1b[32m{text}\x1b[m"),
            _ => write!(out, "\x1b[12;1H\x1b[2M\x1b[{};1H\x1b[33m{text}\x1b[m", ROWS - 3),
        };
    }
    out.into_bytes()
}

fn progress(bytes: usize) -> Vec<u8> {
    let spinner: Vec<char> = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".chars().collect();
    let (mut r, mut out, mut job) = (Rng(4), String::new(), 0);
    while out.len() < bytes {
        job += 1;
        let name = format!("{}-{}", r.pick(WORDS), r.pick(WORDS));
        let n = r.between(60, 200) as usize;
        for k in 0..=n {
            let pct = k * 100 / n;
            let full = pct * 40 / 100;
            let _ = match job % 4 {
                0 => write!(
                    out,
                    "\r{name:<20} [{}>{}] {pct:3}% {:7.1}MB/s eta 0:{:02}",
                    "=".repeat(full),
                    " ".repeat(40 - full),
                    k as f64 * 1.7,
                    (n - k) % 60
                ),
                1 => {
                    write!(out, "\r\x1b[K\x1b[36m{}\x1b[0m {name} \x1b[2m({k}/{n})\x1b[0m", spinner[k % 10])
                }
                2 => write!(
                    out,
                    "\r\x1b[2K  Downloading {name} {}{} \x1b[32m{pct}%\x1b[39m",
                    "█".repeat(full),
                    "░".repeat(40 - full)
                ),
                _ => write!(
                    out,
                    "\r{pct}%|{:<40}| {k}/{n} [00:{:02}<00:{:02}, {:.2}it/s]",
                    "#".repeat(full),
                    k % 60,
                    (n - k) % 60,
                    k as f64 * 3.3
                ),
            };
        }
        let _ = write!(out, "\r\x1b[K\x1b[32m✓\x1b[0m {name} done\r\n");
    }
    out.into_bytes()
}

fn unicode(bytes: usize) -> Vec<u8> {
    let range =
        |a: u32, b: u32, step: usize| (a..b).step_by(step).filter_map(char::from_u32).collect::<Vec<_>>();
    let (cjk, kana, hangul) = (range(0x4e00, 0x9fa5, 7), range(0x3041, 0x3097, 1), range(0xac00, 0xd7a0, 11));
    let emoji = [
        "😀",
        "😂",
        "🔥",
        "🚀",
        "✨",
        "🎉",
        "🐛",
        "🧪",
        "📦",
        "🔧",
        "👨‍👩‍👧‍👦",
        "👩🏽‍💻",
        "🏳️‍🌈",
        "🇯🇵",
        "🇩🇪",
        "❤️",
        "👍🏿",
        "1️⃣",
    ];
    let marks = [
        "e\u{301}",
        "a\u{308}",
        "n\u{303}",
        "o\u{302}\u{323}",
        "Z\u{351}\u{36b}\u{343}",
        "\u{928}\u{93f}",
        "\u{e01}\u{e33}",
        "\u{627}\u{64e}",
    ];
    let latin: Vec<char> = "äöüßéèêñçøåæœłžšČĐ—–“”…€£×÷≈≠≤≥→←↑↓│─┌┐└┘├┤┬┴┼═║".chars().collect();
    let (mut r, mut out) = (Rng(5), String::new());
    while out.len() < bytes {
        let kind = r.below(10);
        for _ in 0..r.between(12, 40) {
            match kind {
                0..4 => out.extend([r.pick(&cjk), r.pick(&cjk)]),
                4 => out.extend([r.pick(&kana), r.pick(&hangul)]),
                5 | 6 => {
                    let _ = write!(out, "{} {}", r.pick(WORDS), r.pick(&emoji));
                }
                7 => out.extend([r.pick(&marks), r.pick(&marks)]),
                _ => {
                    out.push_str(cut(r.pick(WORDS), 4));
                    out.extend([r.pick(&latin), r.pick(&latin)]);
                }
            }
        }
        out.push_str("\r\n");
    }
    out.into_bytes()
}

/// An agent's screen: inline frames that erase and redraw above a growing transcript, then a
/// full-screen phase.
fn agent(bytes: usize) -> Vec<u8> {
    let (mut r, mut out, mut f) = (Rng(6), String::new(), 0usize);
    let marks: Vec<char> = "✻✽✶✳✢·".chars().collect();
    let grey = "\x1b[38;2;153;153;153m";
    while out.len() < bytes {
        let mut before = 0;
        out.push_str("\x1b[?25l\x1b[?2004h\x1b]0;✳ agent: fix tests\x07");
        for _ in 0..300 {
            f += 1;
            out.push_str("\x1b[?2026h");
            if before > 0 {
                out.push_str(&"\x1b[2K\x1b[1A".repeat(before - 1));
                out.push_str("\x1b[2K\x1b[G");
            }
            if f % 12 == 0 {
                let _ = write!(
                    out,
                    "\x1b[38;2;215;119;87m●\x1b[39m \x1b[1m{}\x1b[22m(src/{}.rs)\r\n  ⎿  \x1b[2m{}\x1b[22m\r\n",
                    r.pick(&["Read", "Edit", "Bash", "Grep"]),
                    r.pick(WORDS),
                    r.words(8)
                );
                for q in 0..r.between(2, 9) {
                    let sign = r.pick(&["\x1b[48;2;34;92;43m+", "\x1b[48;2;122;41;54m-", " "]);
                    let _ = write!(
                        out,
                        "     \x1b[2m{:4}\x1b[22m {sign} \x1b[38;2;102;217;239mlet\x1b[39m {} = \x1b[38;2;230;219;116m\"{}\"\x1b[39m;\x1b[49m\r\n",
                        q + 10,
                        r.pick(WORDS),
                        r.words(3)
                    );
                }
            }
            let width = COLS - 2;
            let mut body = vec![format!(
                "\x1b[38;2;215;119;87m{} {}…\x1b[39m {grey}({}s · ↑ {:.1}k tokens · esc to interrupt)\x1b[39m",
                marks[f % 6],
                r.pick(WORDS),
                f % 97,
                (f % 900) as f64 / 10.0
            )];
            for q in 0..6 {
                let tick = if q < f / 50 % 6 { '☒' } else { '☐' };
                let bold = if q == 2 { 1 } else { 22 };
                body.push(format!("  {grey}⎿\x1b[39m  {tick} \x1b[{bold}m{}\x1b[22m", r.words(5)));
            }
            let frame = "\x1b[38;2;136;136;136m";
            body.push(format!("{frame}╭{}╮\x1b[39m", "─".repeat(width)));
            let typed = r.words((f % 9) as u64);
            let typed = cut(&typed, width - 4);
            let fill = " ".repeat(width - 4 - typed.len());
            body.push(format!("{frame}│\x1b[39m > {typed}\x1b[7m \x1b[27m{fill}{frame}│\x1b[39m"));
            body.push(format!("{frame}╰{}╯\x1b[39m", "─".repeat(width)));
            body.push(format!(
                "  {grey}? for shortcuts{}\x1b]8;;https://example.com/x\x1b\\context left\x1b]8;;\x1b\\: 42%\x1b[39m",
                " ".repeat(COLS - 40)
            ));
            before = body.len();
            out.push_str(&body.join("\r\n"));
            out.push_str("\x1b[?2026l");
        }
        out.push_str("\r\n\x1b[?25h\x1b[?1049h\x1b[2J\x1b[H\x1b[?1000h\x1b[?1006h\x1b[>1u");
        for k in 0..200 {
            f += 1;
            out.push_str("\x1b[?2026h\x1b[?25l");
            for y in 1..=ROWS {
                if k % 20 != 0 && r.below(4) != 0 {
                    continue;
                }
                let _ = write!(out, "\x1b[{y};1H");
                let _ = if y == 1 {
                    write!(
                        out,
                        "\x1b[48;5;236m\x1b[38;5;252m opencode │ session {f:08} │ {}\x1b[K\x1b[0m",
                        r.words(3)
                    )
                } else if y == ROWS {
                    write!(out, "\x1b[7m {f} tok  {} \x1b[K\x1b[27m", r.words(4))
                } else {
                    let (a, b) = (r.words(7), r.words(5));
                    write!(
                        out,
                        "\x1b[38;5;{}m▌\x1b[0m \x1b[1;34m{}\x1b[0m {}\x1b[K\x1b[{y};{}H│ \x1b[38;2;{};200;{k}m{}\x1b[0m",
                        100 + y,
                        r.pick(WORDS),
                        cut(&a, COLS / 2 - 16),
                        COLS / 2,
                        y * 5,
                        cut(&b, COLS / 2 - 4)
                    )
                };
            }
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h\x1b[?2026l", ROWS - 1, 5 + k % 60);
        }
        out.push_str("\x1b[<u\x1b[?1006l\x1b[?1000l\x1b[?1049l");
    }
    out.into_bytes()
}
