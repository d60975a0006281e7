//! What a program tells its terminal beside what is drawn: notifications, progress, the clipboard.
//! The model reads it, so that it passes whether the screen is painted or not, and is written anew
//! in its plainest form.

use tapdeck_term::{Progress, Signal, printable};

use crate::config::Pass;

/// More than this waits for no terminal.
const LIMIT: usize = 1 << 20;

/// What waits to be told.
pub(super) struct Told {
    pass: Vec<Pass>,
    waiting: Vec<u8>,
    /// The terminal shows a progress.
    progresses: bool,
}

impl Told {
    pub(super) fn new(pass: Vec<Pass>) -> Self {
        Self { pass, waiting: Vec::new(), progresses: false }
    }

    /// Takes what may pass of these signals.
    pub(super) fn take(&mut self, signals: Vec<Signal>) {
        for signal in signals {
            let (pass, sequence) = match signal {
                Signal::Notification { title, body } => (Pass::Notifications, notification(&title, &body)),
                Signal::Progress(progress) => (Pass::Progress, of_progress(progress)),
                Signal::ClipboardWrite { selection, data } => (Pass::Clipboard, clipboard(&selection, &data)),
                _ => continue,
            };
            if self.pass.contains(&pass) && self.waiting.len() + sequence.len() <= LIMIT {
                self.progresses |= pass == Pass::Progress;
                self.waiting.extend_from_slice(sequence.as_bytes());
            }
        }
    }

    /// Writes it, where no sequence and no character is cut by it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.waiting);
    }

    /// Takes back what would stay.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.write(out);
        if std::mem::take(&mut self.progresses) {
            out.extend_from_slice(of_progress(Progress::None).as_bytes());
        }
    }
}

/// A title needs OSC 777, and a text that looks like one of the commands of OSC 9 as well.
fn notification(title: &str, body: &str) -> String {
    // OSC 99 calls its only text the title.
    let (title, body) = if body.is_empty() { (body, title) } else { (title, body) };
    let (title, body) = (printable(title).replace(';', ","), printable(body));
    if title.is_empty() && !body.starts_with(|c: char| c.is_ascii_digit()) {
        format!("\x1b]9;{body}\x1b\\")
    } else {
        format!("\x1b]777;notify;{title};{body}\x1b\\")
    }
}

fn of_progress(progress: Progress) -> String {
    let (state, value) = match progress {
        Progress::None => (0, 0),
        Progress::Running(value) => (1, value),
        Progress::Error(value) => (2, value),
        Progress::Indeterminate => (3, 0),
        Progress::Paused(value) => (4, value),
    };
    format!("\x1b]9;4;{state};{value}\x1b\\")
}

fn clipboard(selection: &str, data: &str) -> String {
    let selection: String = selection.chars().filter(|c| "cpqs01234567".contains(*c)).collect();
    let is_base64 = |c: &char| c.is_ascii_alphanumeric() || "+/=".contains(*c);
    let data: String = data.chars().filter(is_base64).collect();
    format!("\x1b]52;{selection};{data}\x1b\\")
}
