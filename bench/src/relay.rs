//! The minimal relay: two ptys and a poll loop, nothing else. The limit for any wrapper.

use std::ffi::OsString;
use std::os::fd::AsFd;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// Runs a command on a pty of its own, between this process's standard input and output.
pub fn run(command: &[OsString]) -> Result<()> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let original = tcgetattr(stdin)?;
    tcsetattr(&slave, OptionalActions::Now, &original)?;
    tcsetwinsize(&master, tcgetwinsize(stdin)?)?;
    let mut raw = original.clone();
    raw.make_raw();
    tcsetattr(stdin, OptionalActions::Now, &raw)?;
    let mut child = crate::pty::spawn(command, &slave)?;
    drop(slave);
    let mut buf = vec![0; 1 << 16];
    loop {
        let mut fds = [PollFd::new(&master, PollFlags::IN), PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
        poll(&mut fds, None)?;
        if !fds[0].revents().is_empty() {
            match rustix::io::read(&master, &mut buf[..]) {
                Ok(0) | Err(Errno::IO) => break,
                Ok(n) => write_all(stdout, &buf[..n])?,
                Err(e) => return Err(e.into()),
            }
        }
        if !fds[1].revents().is_empty() {
            match rustix::io::read(stdin, &mut buf[..]) {
                Ok(0) | Err(Errno::IO) => break,
                Ok(n) => write_all(&master, &buf[..n])?,
                Err(e) => return Err(e.into()),
            }
        }
    }
    child.wait()?;
    tcsetattr(stdin, OptionalActions::Now, &original)?;
    Ok(())
}

fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let n = rustix::io::write(&fd, bytes)?;
        bytes = &bytes[n..];
    }
    Ok(())
}
