//! Runs git, or a program of the user, beside a session: without a terminal, for a limited time.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The most of a program's output that is read. A list of paths is the longest.
const MAX_OUT: u64 = 256 << 20;
/// The most of what it says on standard error.
const MAX_ERR: u64 = 64 << 10;

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Ran {
    /// Whether it succeeded.
    pub(super) success: bool,
    /// What it printed.
    pub(super) out: Vec<u8>,
    /// What it said on standard error.
    pub(super) err: String,
}

/// Runs a command to its end, with this on its standard input. One that takes longer than `limit`
/// is killed, with the programs that it started.
///
/// # Errors
/// When it cannot be started, or takes too long.
pub(super) fn run(mut command: Command, input: Vec<u8>, limit: Duration) -> io::Result<Ran> {
    use std::os::unix::process::CommandExt;
    // In a group of its own, so that no key of the user's terminal reaches it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // A program that reads no input has closed its end.
    let feed = start(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let complain = start(move || read(stderr, MAX_ERR));
    let (tell, told) = channel();
    let watch = start(move || {
        let out = read(stdout, MAX_OUT);
        let status = child.wait();
        // A caller that gave up no longer wants the answer.
        let _ = tell.send((out, status));
    });
    let (Ok(_), Ok(complain), Ok(_)) = (feed, complain, watch) else {
        // It is not started again, so an error of killing it changes nothing.
        let _ = kill_process_group(group, Signal::KILL);
        return Err(io::Error::other("the system has no thread to give"));
    };
    let Ok((out, status)) = told.recv_timeout(limit) else {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {limit:?}")));
    };
    let err = complain.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    let err = String::from_utf8_lossy(&err).into_owned();
    Ok(Ran { success: status?.success(), out: out?, err })
}

fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name("tapdeck-tool".into()).stack_size(128 << 10).spawn(work)
}

fn read(from: Option<impl Read>, at_most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(at_most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], limit: Duration) -> io::Result<Ran> {
        #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, input.to_vec(), limit)
    }

    #[test]
    fn a_program_gets_its_input_and_is_not_waited_for_longer_than_allowed() {
        let long = Duration::from_secs(60);
        let ran = shell("cat; echo no >&2; exit 3", &[b'x'; 300_000], long).expect("it runs");
        assert_eq!((ran.success, ran.out.len(), &*ran.err), (false, 300_000, "no\n"));
        let ran = shell("exec <&-; echo yes", &[b'x'; 300_000], long).expect("input is not read");
        assert_eq!((ran.success, &ran.out[..]), (true, &b"yes\n"[..]));
        // The programs that it started are killed with it.
        let late = shell("sleep 1000 & sleep 1000", b"", Duration::from_millis(50));
        assert_eq!(late.expect_err("it takes too long").kind(), io::ErrorKind::TimedOut);
    }
}
