//! Sharing a live session: how much slower the program gets with a hundred observers, some of which
//! never read, and how long it takes to attach to a session with much scrollback.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_proto::attach::Said;
use tapdeck_proto::bus::{Event, Frames, Screen, Snap, Sub, TypedLine};
use tapdeck_serve::client::{Attach, Attachment, Bus, Hello, Incoming, Role};
use tapdeck_serve::door::Address;

use crate::{Options, Row, median, peers};

const LIMIT: Duration = Duration::from_secs(300);
/// Times that a session is attached to in a round.
const ATTACHES: usize = 9;

/// A detached session in a folder of its own.
struct Session<'a> {
    tapdeck: PathBuf,
    folder: &'a Path,
    id: String,
}

impl<'a> Session<'a> {
    fn start(folder: &'a Path, command: &[&str]) -> Result<Self> {
        let tapdeck = peers::tapdeck()?;
        let mut start = Command::new(&tapdeck);
        start
            .env("XDG_RUNTIME_DIR", folder)
            .args(["run", "-d", "--window-size", "120x40", "--"])
            .args(command);
        let out = start.stderr(Stdio::inherit()).output()?;
        ensure!(out.status.success(), "no session: {:?}", out.status);
        let id = String::from_utf8(out.stdout)?.trim().to_owned();
        Ok(Self { tapdeck, folder, id })
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("tapdeck").join(format!("{}.sock", self.id))
    }

    fn bus(&self) -> Result<Bus> {
        let mut bus = Bus::connect(&Address::Unix(self.socket()))?;
        bus.hello(&Hello::new(Role::Bot, "bench"), LIMIT)?;
        Ok(bus)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let mut kill = Command::new(&self.tapdeck);
        kill.env("XDG_RUNTIME_DIR", self.folder).args(["kill", &self.id]).stderr(Stdio::null());
        // A session that has ended by itself is gone already.
        let _ = kill.status();
    }
}

/// The program's time with so many observers, of which a tenth never read and a tenth read a
/// kilobyte a second.
fn flood(file: &Path, folder: &Path, watchers: usize) -> Result<(f64, f64)> {
    let script = format!("read go; cat {}", file.display());
    let session = Session::start(folder, &["sh", "-c", &script])?;
    let poor = if watchers >= 10 { watchers / 10 } else { 0 };
    let watchers = Watchers::start(&session.socket(), watchers, poor)?;
    let mut bus = session.bus()?;
    bus.request(&Sub { frames: Frames::None, out: false, ..Sub::default() }, LIMIT)?;
    let start = Instant::now();
    bus.tell(&TypedLine("go".into()))?;
    loop {
        let frame = bus.next(Some(LIMIT))?.context("the program does not end")?;
        if matches!(frame.event(), Some(Event::Closed { .. })) {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, watchers.stop()? as f64 / 1e6 / seconds))
}

/// Some who watch a session, until dropped.
pub struct Watchers {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<u64>>,
}

impl Watchers {
    /// So many, of whom as many as `poor` never read and as many again read a kilobyte a second.
    pub fn start(socket: &Path, count: usize, poor: usize) -> Result<Self> {
        let mut clients = Vec::new();
        for _ in 0..count {
            let mut stream = UnixStream::connect(socket)?;
            stream.write_all(b"SUB\n")?;
            stream.set_nonblocking(true)?;
            clients.push(stream);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let reader = Some(std::thread::spawn(move || read_all(clients, poor, &seen)));
        Ok(Self { stop, reader })
    }

    /// Ends them, and says how many bytes they had read.
    fn stop(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Release);
        let reader = self.reader.take().context("they have ended")?;
        reader.join().map_err(|_| anyhow::anyhow!("the readers broke down"))
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Reads and discards on one thread for all clients, so that the observers cost as little as they
/// can.
fn read_all(mut clients: Vec<UnixStream>, poor: usize, stop: &AtomicBool) -> u64 {
    let mut buf = vec![0; 256 * 1024];
    let mut total = 0;
    let mut slow_at = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let ready: Vec<usize> = {
            let mut fds: Vec<PollFd<'_>> =
                clients[2 * poor..].iter().map(|c| PollFd::new(c, PollFlags::IN)).collect();
            let limit = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            if poll(&mut fds, Some(&limit)).is_err() {
                continue;
            }
            (0..fds.len()).filter(|i| !fds[*i].revents().is_empty()).collect()
        };
        for i in ready {
            total += clients[2 * poor + i].read(&mut buf).unwrap_or(0) as u64;
        }
        if slow_at.elapsed() > Duration::from_secs(1) {
            slow_at = Instant::now();
            for client in &mut clients[poor..2 * poor] {
                let _ = client.read(&mut buf[..1024]);
            }
        }
    }
    total
}

/// Time to the first full screen of a session with ten thousand rows of scrollback, and to write as
/// much into a pipe.
fn attach(folder: &Path) -> Result<(f64, f64)> {
    let session = Session::start(
        folder,
        &["sh", "-c", "seq 1 10040 | sed 's/$/ the quick brown fox jumps over the lazy dog/'; read x"],
    )?;
    let mut bus = session.bus()?;
    let shown = |screen: Screen| screen.contents.rows.iter().any(|row| row.starts_with("10040 the quick"));
    while !shown(bus.request(&Snap::default(), LIMIT)?) {}
    let mut times = Vec::new();
    for _ in 0..ATTACHES {
        let (attached, dump) = attach_once(&session)?;
        times.push((attached, through_pipe(&dump)?));
    }
    Ok((median(times.iter().map(|t| t.0)), median(times.iter().map(|t| t.1))))
}

/// Milliseconds until a client has the first full screen with all scrollback, and the bytes that it
/// was sent.
fn attach_once(session: &Session) -> Result<(f64, Vec<u8>)> {
    let start = Instant::now();
    let request = Attach::new("bench").read_only(true);
    let (mut attachment, _) = Attachment::open(&Address::Unix(session.socket()), &request)?;
    let mut dump = Vec::new();
    'all: loop {
        for incoming in attachment.receive()? {
            match incoming {
                Incoming::Output(bytes) => dump.extend(bytes),
                Incoming::Control(Said::Live) => break 'all,
                Incoming::Control(_) => {}
                Incoming::End => anyhow::bail!("it ended"),
            }
        }
        attachment.wait(LIMIT)?;
    }
    Ok((start.elapsed().as_secs_f64() * 1e3, dump))
}

/// Milliseconds to write so much into a pipe with a reader.
fn through_pipe(dump: &[u8]) -> Result<f64> {
    let (mut reader, mut writer) = std::io::pipe()?;
    let expected = dump.len();
    let sink = std::thread::spawn(move || {
        let mut buf = vec![0; 256 * 1024];
        let mut got = 0;
        while got < expected {
            got += reader.read(&mut buf).unwrap_or(expected);
        }
    });
    let start = Instant::now();
    writer.write_all(dump)?;
    let _ = sink.join();
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Measures everything.
pub fn measure(file: &Path, o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let mut one = Vec::new();
    let mut many = Vec::new();
    let mut attached = Vec::new();
    for _ in 0..o.rounds {
        one.push(flood(file, folder, 1)?);
        many.push(flood(file, folder, 100)?);
        attached.push(attach(folder)?);
    }
    let seconds = |runs: &[(f64, f64)]| median(runs.iter().map(|r| r.0));
    let rate = |runs: &[(f64, f64)]| median(runs.iter().map(|r| r.1));
    let base = seconds(&one);
    let row = |name, runs: &[(f64, f64)]| {
        let columns =
            vec![("seconds", seconds(runs)), ("x one", seconds(runs) / base), ("MB/s to all", rate(runs))];
        (name, columns)
    };
    Ok(vec![
        row("1 watches", &one),
        row("100 watch", &many),
        (
            "attach, ms",
            vec![
                ("attach", seconds(&attached)),
                ("pipe", rate(&attached)),
                ("x pipe", seconds(&attached) / rate(&attached)),
            ],
        ),
    ])
}
