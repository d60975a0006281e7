//! The log of this process: off unless `TAPDECK_LOG` is set, or the command is a server.
//!
//! A log never reaches the terminal of a program. A server writes it to standard error; every other
//! command writes it to a file, because its standard error may be the program's own.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_host::state_folder;
use tapdeck_term::printable_lines;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;

/// What to log: `debug`, or `info,tapdeck_serve=trace`.
const LEVELS: &str = "TAPDECK_LOG";
/// Where to log, instead of the usual place.
const FILE: &str = "TAPDECK_LOG_FILE";
/// A level without a target is for our own crates, whose targets begin like this. Libraries may log
/// what they carry, tokens included, so they only log when they are named.
const OURS: &str = "tapdeck";

/// Whether messages go to the log as well, because standard error has nothing but JSON.
static TAKES_MESSAGES: AtomicBool = AtomicBool::new(false);

/// Returns whether messages for the user belong in the log.
pub(crate) fn takes_messages() -> bool {
    TAKES_MESSAGES.load(Ordering::Relaxed)
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Time, level, connection and message, for people
    #[default]
    Text,
    /// One JSON object a line, for programs
    Json,
}

/// Starts the log of a command that may have a program's terminal, if `TAPDECK_LOG` asks for one.
///
/// # Errors
/// If `TAPDECK_LOG` is not understood, or the file cannot be written.
pub(crate) fn start() -> Result<(), String> {
    let Some(levels) = levels()? else { return Ok(()) };
    let path = file()
        .unwrap_or_else(|| state_folder().join("log").join(format!("tapdeck-{}.log", std::process::id())));
    install(levels, LogFormat::Text, open(&path)?);
    Ok(())
}

/// Starts the log of a server, which has no terminal but its own.
///
/// # Errors
/// If `TAPDECK_LOG` is not understood, or `TAPDECK_LOG_FILE` cannot be written.
#[cfg_attr(not(feature = "net"), expect(dead_code, reason = "only `serve` is a server"))]
pub(crate) fn start_server(format: LogFormat) -> Result<(), String> {
    // What happens in each session is for `TAPDECK_LOG`; a server tells of its clients.
    let usual = || Targets::new().with_target(OURS, Level::INFO).with_target("tapdeck_host", Level::WARN);
    let levels = levels()?.unwrap_or_else(usual);
    match file() {
        Some(path) => install(levels, format, open(&path)?),
        None => install(levels, format, || Printable(Stderr)),
    }
    TAKES_MESSAGES.store(format == LogFormat::Json, Ordering::Relaxed);
    Ok(())
}

fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn levels() -> Result<Option<Targets>, String> {
    let Some(value) = std::env::var_os(LEVELS).filter(|value| !value.is_empty()) else { return Ok(None) };
    parse(&value.to_string_lossy()).map(Some)
}

fn parse(value: &str) -> Result<Targets, String> {
    value.split(',').try_fold(Targets::new(), |targets, item| {
        let (target, level) = item.split_once('=').unwrap_or((OURS, item));
        let level: LevelFilter = level.trim().parse().map_err(|_| {
            format!("unknown level {level:?} in {LEVELS}; use off, error, warn, info, debug or trace")
        })?;
        Ok(targets.with_target(target.trim(), level))
    })
}

/// Opens a log for appending. It is readable for its user only.
fn open(path: &Path) -> Result<impl Fn() -> Printable<Arc<std::fs::File>> + use<>, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), |folder| DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let file = made.and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(path));
    let file = file.map(Arc::new).map_err(|e| format!("cannot write the log {}: {e}", path.display()))?;
    Ok(move || Printable(Arc::clone(&file)))
}

/// Takes whole lines, which quote what peers sent, and replaces what could act on a terminal.
struct Printable<W>(W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(printable_lines(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Standard error, for a server that must not wait for the reader of its log: a line that cannot be
/// written at once is dropped.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let stderr = io::stderr();
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        if poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0 {
            stderr.lock().write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn install(levels: Targets, format: LogFormat, to: impl for<'w> MakeWriter<'w> + Send + Sync + 'static) {
    let lines = fmt::layer().with_writer(to).with_target(false).with_ansi(false);
    let registry = tracing_subscriber::registry().with(levels);
    let installed = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(registry.with(lines)),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_span_list(false);
            tracing::subscriber::set_global_default(registry.with(lines))
        }
    };
    // It fails only if there is a log already, which then goes on.
    drop(installed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_for_our_crates() {
        let targets = parse("debug,hyper=trace").expect("understood");
        assert!(targets.would_enable("tapdeck_serve::net", &Level::DEBUG));
        assert!(!targets.would_enable("tapdeck_serve::net", &Level::TRACE));
        assert!(targets.would_enable("hyper::proto", &Level::TRACE));
        assert!(!targets.would_enable("quinn", &Level::ERROR));
    }

    #[test]
    fn a_level_that_does_not_exist_is_named() {
        let why = parse("info,tapdeck_serve=loud").expect_err("no such level");
        assert!(why.contains("\"loud\"") && why.contains("debug"), "{why}");
    }
}
