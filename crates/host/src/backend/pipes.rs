//! A program on plain pipes: no terminal, standard output and standard error apart.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use tapdeck_core::{Exit, Stamp, Stream, WinSize};

use super::spawn::Leader;
use super::{Backend, CommandSpec, EndOfInput, Got, SpawnError, StopSignal, Watch};
use crate::sys::InheritedSignals;

/// A program on pipes.
pub struct Pipes {
    leader: Leader,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    /// Which stream to try first, so that a flood on one cannot starve the other.
    err_first: bool,
}

crate::opaque::opaque_debug!(Pipes);

impl Pipes {
    /// Starts a program on three pipes, in a session of its own.
    pub fn spawn(spec: &CommandSpec, signals: InheritedSignals) -> Result<Self, SpawnError> {
        let (in_read, in_write) = pipe().map_err(SpawnError::Terminal)?;
        let (out_read, out_write) = pipe().map_err(SpawnError::Terminal)?;
        let (err_read, err_write) = pipe().map_err(SpawnError::Terminal)?;
        let ours = |fd: OwnedFd| -> Result<Option<File>, SpawnError> {
            let flags = fcntl_getfl(&fd).map_err(|e| SpawnError::Terminal(e.into()))?;
            fcntl_setfl(&fd, flags | OFlags::NONBLOCK).map_err(|e| SpawnError::Terminal(e.into()))?;
            Ok(Some(File::from(fd)))
        };
        let (stdin, stdout, stderr) = (ours(in_write)?, ours(out_read)?, ours(err_read)?);
        let stdio = [Stdio::from(in_read), Stdio::from(out_write), Stdio::from(err_write)];
        let leader = Leader::spawn(spec, signals, None, stdio)?;
        Ok(Self { leader, stdin, stdout, stderr, err_first: false })
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Reads from a stream that may be gone; forgets it at its end.
fn read_one(stream: &mut Option<File>, buf: &mut [u8]) -> io::Result<usize> {
    let Some(file) = stream else { return Ok(0) };
    match file.read(buf) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

impl Backend for Pipes {
    fn watch(&self) -> Watch<'_> {
        Watch {
            readable: [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)],
            writable: self.stdin.as_ref().map(AsFd::as_fd),
            exit: Some(self.leader.exit_fd()),
            ..Watch::default()
        }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        self.err_first = !self.err_first;
        let order = if self.err_first { [Stream::Err, Stream::Out] } else { [Stream::Out, Stream::Err] };
        for stream in order {
            let file = if stream == Stream::Out { &mut self.stdout } else { &mut self.stderr };
            let n = read_one(file, buf)?;
            if n > 0 {
                return Ok(Got::Bytes(stream, n));
            }
        }
        let open = self.stdout.is_some() || self.stderr.is_some();
        Ok(if open { Got::Nothing } else { Got::Closed })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stdin) = &mut self.stdin else { return Ok(bytes.len()) };
        match stdin.write(bytes) {
            // The program has closed its input: what is typed now goes nowhere, as with any pipe.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.stdin = None;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn end_input(&mut self, _line_open: bool, _quiet: Duration) -> io::Result<EndOfInput> {
        self.stdin = None;
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        self.leader.signal_group(None, signal)
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        self.leader.stop(how);
        Ok(())
    }

    fn freeze(&mut self, frozen: bool) -> io::Result<()> {
        self.leader.freeze(frozen);
        Ok(())
    }

    fn stopped(&mut self) -> bool {
        self.leader.stopped()
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        self.leader.exited()
    }

    fn pid(&self) -> Option<i32> {
        Some(self.leader.pid().as_raw_nonzero().get())
    }
}
