//! Measures the viewer: how long a frame takes while a program redraws a 200×50 screen 120 times a
//! second.
//!
//! `cargo run --release -p tapdeck-bench --bin bench-view` prints, for each kind of output, the
//! time that it takes to take in one update and to paint one frame, to a picture in memory and as
//! the bytes that a terminal would get. The target is a frame in under 30 ms; at 60 frames and 120
//! updates a second all of it together is the share of one core that the last column shows.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ratatui::backend::{Backend, CrosstermBackend, TestBackend};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use tapdeck_cli::keymap::Keymap;
use tapdeck_cli::ui::live::{Link, Live, News};
use tapdeck_cli::ui::styles::Styles;
use tapdeck_cli::ui::view::{App, Options, Origin};
use tapdeck_term::Size;

const COLS: u16 = 200;
const ROWS: u16 = 50;
const UPDATES: usize = 120 * 10;
const TARGET_MS: f64 = 30.0;

/// A session that tells what it is given.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<VecDeque<News>>>);

impl Link for Paper {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn news(&mut self, news: &mut Vec<News>) {
        news.extend(self.0.borrow_mut().drain(..));
    }
    fn send(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn take(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn release(&mut self) {}
    fn mark(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn pause(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn end(&mut self) {}
    fn outlives(&self) -> bool {
        true
    }
    fn own_name(&self) -> &str {
        "bench"
    }
}

/// What a program writes in one update.
fn update(kind: &str, n: usize) -> String {
    let mut out = String::from("\x1b[?2026h");
    match kind {
        // Every cell changes, each with a colour of its own: as bad as it gets.
        "every cell" => {
            out.push_str("\x1b[H");
            for y in 0..usize::from(ROWS) {
                let _ = write!(out, "\x1b[{};1H", y + 1);
                for x in 0..usize::from(COLS) {
                    let c = char::from(b'!' + ((x + y + n) % 90) as u8);
                    let _ = write!(out, "\x1b[38;5;{}m{c}", (x * 7 + y * 3 + n) % 256);
                }
            }
        }
        // A spinner, a counter and a line of an answer.
        "agent" => {
            let _ = write!(
                out,
                "\x1b[{};1H\x1b[2K\x1b[35m✻\x1b[m Thinking… ({n}s · {} tokens)",
                ROWS - 2,
                n * 37
            );
            let _ = write!(
                out,
                "\x1b[{};1H\x1b[2K  • line {n} of the answer, with \x1b[1mbold\x1b[m text 漢字",
                n % 40 + 1
            );
        }
        // Log lines that scroll the whole screen.
        _ => {
            for i in 0..5 {
                let _ = write!(
                    out,
                    "\x1b[32mINFO\x1b[m {:>8} request served in {} µs from cache, key={:x}\r\n",
                    n * 5 + i,
                    n % 977,
                    n * 2_654_435_761
                );
            }
        }
    }
    out.push_str("\x1b[?2026l");
    out
}

fn median(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len() - 1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

fn run<B: Backend>(kind: &str, target: &str, backend: B, search: bool) -> Result<bool> {
    let paper = Paper::default();
    let live = Live::new("bench", Size::new(COLS, ROWS), 100_000, Box::new(paper.clone()));
    let options = Options {
        styles: Styles { colour: true, theme: None },
        branch_command: Vec::new(),
        keymap: Keymap::default(),
    };
    let mut app = App::new(Origin::Live(Box::new(live), None), options);
    if search {
        app.search_for("request|[0-9]{3}|line").map_err(anyhow::Error::msg)?;
    }
    let area = Rect::new(0, 0, COLS + 2, ROWS + 4);
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    let mut terminal = Terminal::with_options(backend, options).ok().context("a terminal")?;
    let (mut feeds, mut frames) = (Vec::new(), Vec::new());
    for n in 0..UPDATES {
        paper.0.borrow_mut().push_back(News::Output(update(kind, n).into_bytes()));
        let start = Instant::now();
        app.tick(tapdeck_tape::Time::from_nanos(n as u64 * 1_000_000_000 / 120))?;
        feeds.push(start.elapsed().as_secs_f64() * 1e3);
        // Two updates a frame: 120 and 60 a second.
        if n % 2 == 1 {
            let start = Instant::now();
            terminal.draw(|frame| app.draw(frame)).ok().context("drawn")?;
            frames.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let (feed, p50, p99) = (median(&mut feeds, 0.5), median(&mut frames, 0.5), median(&mut frames, 0.99));
    let worst = frames.last().copied().unwrap_or(f64::NAN);
    let load = (feed * 120.0 + p50 * 60.0) / 10.0;
    println!("{kind:<12}{target:<10}{feed:>10.3}{p50:>10.3}{p99:>10.3}{worst:>10.3}{load:>9.1} %");
    Ok(p99 < TARGET_MS)
}

fn main() -> Result<()> {
    println!("the viewer, {COLS}×{ROWS}, {UPDATES} updates, ms");
    println!(
        "{:<12}{:<10}{:>10}{:>10}{:>10}{:>10}{:>11}",
        "", "to", "update", "frame p50", "p99", "worst", "of a core"
    );
    let mut fine = true;
    for (kind, search) in [("agent", false), ("scrolling", false), ("every cell", false), ("scrolling", true)]
    {
        let name = if search { "+ search" } else { "memory" };
        fine &= run(kind, name, TestBackend::new(COLS + 2, ROWS + 4), search)?;
        fine &= run(kind, "bytes", CrosstermBackend::new(io::sink()), search)?;
    }
    if !fine {
        bail!("a frame took longer than {TARGET_MS} ms");
    }
    Ok(())
}
