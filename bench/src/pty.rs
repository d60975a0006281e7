//! The bench's own terminal: runs a command on a pty, drains it, and takes the time.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

/// How a run went.
pub struct Run {
    /// Seconds of wall time.
    pub wall: f64,
    /// Seconds of processor time of the command and what it waited for.
    pub cpu: f64,
    /// Largest resident set of any of them, in KiB.
    pub max_rss_kb: f64,
}

fn open_pair() -> Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((master, slave))
}

/// Starts a command with the slave side as its controlling terminal.
pub fn spawn(command: &[OsString], slave: &OwnedFd) -> Result<Child> {
    let mut c = Command::new(&command[0]);
    c.args(&command[1..]);
    c.stdin(Stdio::from(slave.try_clone()?));
    c.stdout(Stdio::from(slave.try_clone()?));
    c.stderr(Stdio::from(slave.try_clone()?));
    c.env("TERM", "xterm-256color");
    // SAFETY: two async-signal-safe system calls; standard input is the terminal.
    unsafe {
        c.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?;
            Ok(())
        });
    }
    c.spawn().with_context(|| format!("cannot start {}", command[0].display()))
}

/// Runs a command to its end while reading everything it writes.
pub fn run_to_end(command: &[OsString]) -> Result<Run> {
    let (master, slave) = open_pair()?;
    // Output as it is: what the peers see is what the program wrote.
    let mut termios = tcgetattr(&slave)?;
    termios.output_modes -= rustix::termios::OutputModes::OPOST;
    tcsetattr(&slave, OptionalActions::Now, &termios)?;
    let start = Instant::now();
    let mut child = spawn(command, &slave)?;
    drop(slave);
    let mut buf = vec![0; 1 << 16];
    loop {
        match rustix::io::read(&master, &mut buf[..]) {
            Ok(0) | Err(rustix::io::Errno::IO) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let (cpu, max_rss_kb) = wait(&mut child)?;
    Ok(Run { wall: start.elapsed().as_secs_f64(), cpu, max_rss_kb })
}

/// Runs a command for a time, kills it with everything that it shows read, and gives that.
pub fn kill_after(command: &[OsString], time: Duration) -> Result<Vec<u8>> {
    let (master, slave) = open_pair()?;
    let start = Instant::now();
    let mut child = spawn(command, &slave)?;
    drop(slave);
    let mut shown = Vec::new();
    while start.elapsed() < time {
        shown.extend(read_within(&master, Duration::from_secs(5))?);
    }
    child.kill()?;
    child.wait()?;
    // What it had put on the terminal by then was shown, too.
    while let Ok(more) = read_within(&master, Duration::ZERO) {
        shown.extend(more);
    }
    Ok(shown)
}

fn wait(child: &mut Child) -> Result<(f64, f64)> {
    // SAFETY: all zeroes is a valid rusage, and wait4 fills it for a child that is ours and not yet
    // waited for.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut status = 0;
        if libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok((seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss as f64))
}

/// Sends single bytes to a command that echoes, and takes the time of each round trip in
/// microseconds. `ready` is called when the command is about to echo; what it gives is kept
/// meanwhile.
pub fn echo_times<T>(
    command: &[OsString],
    count: usize,
    ready: impl FnOnce() -> Result<T>,
) -> Result<Vec<f64>> {
    let (master, slave) = open_pair()?;
    let mut child = spawn(command, &slave)?;
    drop(slave);
    let result = echo_loop(&master, count, ready);
    let _ = child.kill();
    // A peer's own child ends when its terminal hangs up.
    drop(master);
    child.wait()?;
    result
}

fn echo_loop<T>(master: &OwnedFd, count: usize, ready: impl FnOnce() -> Result<T>) -> Result<Vec<f64>> {
    let mut seen = Vec::new();
    while !contains(&seen, b"READY") {
        seen.extend(read_within(master, Duration::from_secs(10))?);
    }
    let _meanwhile = ready()?;
    // What the peer draws at the start comes in its own time.
    while let Ok(more) = read_within(master, Duration::from_millis(200)) {
        seen.extend(more);
    }
    let mut times = Vec::with_capacity(count);
    for i in 0..count {
        let byte = b'a' + (i % 26) as u8;
        let start = Instant::now();
        rustix::io::write(master, &[byte])?;
        while !read_within(master, Duration::from_secs(5))?.contains(&byte) {}
        times.push(start.elapsed().as_secs_f64() * 1e6);
        // A person's keys do not come back to back; neither do these.
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
    }
    Ok(times)
}

fn read_within(master: &OwnedFd, limit: Duration) -> Result<Vec<u8>> {
    let mut fds = [PollFd::from_borrowed_fd(master.as_fd(), PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: i64::from(limit.subsec_nanos()) };
    if poll(&mut fds, Some(&limit))? == 0 {
        bail!("no answer");
    }
    let mut buf = vec![0; 4096];
    let n = rustix::io::read(master, &mut buf[..])?;
    buf.truncate(n);
    Ok(buf)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}
