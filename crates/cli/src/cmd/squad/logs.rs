//! `tapdeck squad logs`, and the log itself: what the supervisor did and when.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use clap::Args;
use tapdeck::squad::State;
use tapdeck_host::cassette::rfc3339;
use tapdeck_host::{Clock, append_lines, disk};

use super::locate::Which;
use crate::ending::{Ending, print, say};
use crate::failure::{Failure, Result};
use crate::human;

/// A log that is longer becomes the old log.
const MAX: u64 = 1 << 20;

/// Print what the supervisor of a squad did.
#[derive(Args)]
#[command(after_help = "\
The log has starts, exits, prompts, relays and the vote. The agents' own output is in their recordings;
tapdeck squad status names them.

Example:
  tapdeck squad logs -n 20")]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    which: Which,
    /// Print the last N lines only
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
}

pub(crate) fn run(args: &LogsArgs) -> Result {
    let found = args.which.find()?;
    let path = path(&found.name)?;
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(2 * MAX)))?;
        file.take(2 * MAX).read_to_end(&mut text)
    });
    match read {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        read => drop(read.map_err(|e| Failure::file(&path, &e))?),
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = args.lines.map_or(0, |n| lines.len().saturating_sub(n));
    for line in &lines[from..] {
        print(format_args!("{}\n", human::printable(line)));
    }
    Ok(Ending::Done)
}

fn path(name: &str) -> Result<PathBuf> {
    Ok(State::folder()?.join(format!("{name}.log")))
}

/// The log of a supervisor.
pub(super) struct Log {
    path: PathBuf,
    /// Whether it is printed as well.
    shown: bool,
    clock: Clock,
    failed: bool,
}

impl Log {
    pub(super) fn open(name: &str, shown: bool) -> Result<Self> {
        Ok(Self { path: path(name)?, shown, clock: Clock::start(), failed: false })
    }

    /// Adds a line about an agent, or about the squad as a whole.
    pub(super) fn add(&mut self, about: &str, text: &str) {
        let text = human::printable(&text.replace('\n', " "));
        if self.shown {
            print(format_args!("{about}: {text}\n"));
        }
        if self.path.metadata().is_ok_and(|meta| meta.len() > MAX) {
            // One that stays only grows.
            let _ = disk::rename(&self.path, &self.path.with_extension("log.1"));
        }
        let line = format!("{} {about}: {text}\n", rfc3339(self.clock.now().wall));
        if let Err(e) = append_lines(&self.path, line.as_bytes())
            && !std::mem::replace(&mut self.failed, true)
        {
            say(format_args!("{}: {e}", self.path.display()));
        }
    }
}
