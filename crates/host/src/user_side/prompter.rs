//! Prompts on the user's terminal while a remote place is being reached, before the session begins.
//!
//! Notes go to standard error, questions to `/dev/tty`; SIGINT and the like cancel.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Signals;
use crate::backend::Prompter;

/// An answer may be this long.
const ANSWER_LIMIT: usize = 4096;

/// Prompts on the terminal of this process.
#[derive(Debug)]
pub struct TerminalPrompter<'a> {
    signals: Option<&'a Signals>,
    cancelled: Option<i32>,
}

impl<'a> TerminalPrompter<'a> {
    /// Prompts until one of these signals cancels. Without signals they do what they do by default:
    /// they end the process.
    pub fn new(signals: Option<&'a Signals>) -> Self {
        Self { signals, cancelled: None }
    }
}

/// Settings that are put back however a question ends.
struct Quiet<'a>(&'a File, Termios);

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(self.0, OptionalActions::Flush, &self.1);
    }
}

impl Prompter for TerminalPrompter<'_> {
    fn note(&mut self, text: &str) {
        // A closed standard error must not stop the session.
        let _ = writeln!(io::stderr(), "tapdeck: {text}");
    }

    fn ask(&mut self, question: &str, secret: bool) -> io::Result<Option<String>> {
        // Without a controlling terminal there is no user to ask.
        let Ok(mut tty) = File::options().read(true).write(true).open("/dev/tty") else { return Ok(None) };
        let shown = tty.try_clone()?;
        let settings = tcgetattr(&shown)?;
        let quiet = Quiet(&shown, settings.clone());
        if secret {
            let mut settings = settings;
            settings.local_modes -= LocalModes::ECHO;
            settings.local_modes |= LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
            tcsetattr(&shown, OptionalActions::Flush, &settings)?;
        }
        write!(tty, "{question}")?;
        tty.flush()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            let mut fds = vec![PollFd::new(&tty, PollFlags::IN)];
            let signals = self.signals.map(|s| PollFd::from_borrowed_fd(s.fd(), PollFlags::IN));
            fds.extend(signals);
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let typed = !fds[0].revents().is_empty();
            if self.cancelled().is_some() {
                drop(quiet);
                // The line end is for the eye only.
                let _ = writeln!(tty);
                return Err(io::ErrorKind::Interrupted.into());
            }
            if typed {
                let mut buf = [0; 256];
                let n = tty.read(&mut buf)?;
                answer.extend_from_slice(&buf[..n]);
                if n == 0 || answer.len() > ANSWER_LIMIT {
                    return Ok(None);
                }
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        Ok(Some(answer.trim_end_matches(['\r', '\n']).to_owned()))
    }

    fn cancelled(&mut self) -> Option<i32> {
        while let Some(signal) = self.signals.and_then(Signals::next) {
            // Other signals mean nothing before there is a session; a new size is looked at when it
            // begins.
            if matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT) {
                self.cancelled.get_or_insert(signal);
            }
        }
        self.cancelled
    }
}
