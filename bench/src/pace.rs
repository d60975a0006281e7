//! Recording at a person's pace: what a steady megabyte a second costs, and how much of what was
//! shown a recorder takes with it when it is killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tapdeck_tape::ahr::{Body, Item, Reader};

use crate::peers::{self, Peer};
use crate::{Options, Row, median, pty};

const SECONDS: u64 = 4;
const PER_SECOND: u64 = 1 << 20;

/// The program of this measurement: writes the file's beginning, at a steady pace.
pub fn drip(file: &Path) -> Result<()> {
    let bytes = std::fs::read(file)?;
    let mut out = std::io::stdout().lock();
    let start = Instant::now();
    for (i, piece) in bytes.chunks(4096).take((SECONDS * PER_SECOND / 4096) as usize).enumerate() {
        let due = Duration::from_micros(i as u64 * 4096 * 1_000_000 / PER_SECOND);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        out.write_all(piece)?;
    }
    Ok(())
}

/// The program that is recorded when the recorder is killed: says, every millisecond, for how many
/// it has run.
pub fn tick() -> Result<()> {
    let mut out = std::io::stdout().lock();
    let start = Instant::now();
    loop {
        writeln!(out, "{}", start.elapsed().as_millis())?;
        out.flush()?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Shares of a core at a megabyte a second.
pub fn steady(peers: &[Peer], file: &Path, o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let this = std::env::current_exe()?.into_os_string();
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for _ in 0..o.rounds.min(3) {
        for (peer, all) in peers.iter().zip(&mut all) {
            let out = folder.join("out");
            let command = peer.command(&[this.clone(), "drip".into(), file.into()], &out);
            all.push(pty::run_to_end(&command)?.cpu / SECONDS as f64 * 100.0);
            peers::take_size(&out);
        }
    }
    let bare = peers.iter().position(|p| p.name == "bare").map_or(0.0, |i| median(all[i].iter().copied()));
    let row = |(peer, all): (&Peer, &Vec<f64>)| {
        let m = median(all.iter().copied());
        (peer.name, vec![("% of a core", m), ("of its own", m - bare)])
    };
    Ok(peers.iter().zip(&all).map(row).collect())
}

/// Milliseconds of what was shown that the recording lacks after `kill -9`, at moments all over a
/// block's life.
pub fn killed(o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let this = std::env::current_exe()?.into_os_string();
    let mut lost = Vec::new();
    for i in 0..o.rounds as u64 * 5 {
        let out = folder.join("killed.ahr");
        let command: Vec<OsString> = vec![
            peers::tapdeck()?.into(),
            "rec".into(),
            "-q".into(),
            "--overwrite".into(),
            out.clone().into(),
            "--".into(),
            this.clone(),
            "tick".into(),
        ];
        let shown = pty::kill_after(&command, Duration::from_millis(400 + i * 37 % 250))?;
        let shown = last_tick(&shown).context("nothing was shown")?;
        let kept = last_tick(&recorded(&out)?).unwrap_or(0);
        lost.push(shown.saturating_sub(kept) as f64);
    }
    let most = lost.iter().copied().fold(0.0, f64::max);
    Ok(vec![("tapdeck rec", vec![("median ms", median(lost.into_iter())), ("most ms", most)])])
}

/// The last whole line, as a number.
fn last_tick(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    let (whole, _) = text.rsplit_once('\n')?;
    whole.lines().rev().find_map(|line| line.trim().parse().ok())
}

fn recorded(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for item in Reader::new(File::open(path)?) {
        if let Ok(Item::Record(record)) = item
            && let Body::Data { bytes: piece, .. } = record.body
        {
            bytes.extend_from_slice(&piece);
        }
    }
    Ok(bytes)
}
