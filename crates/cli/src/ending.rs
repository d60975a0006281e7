//! How the command ends. Every exit code is chosen here, and every message is printed here.

use std::io::Write;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Map, Value};
use tapdeck_core::Exit;
use tapdeck_host::backend::SpawnErrorKind;
use tapdeck_host::{Ended, Outcome};

/// Kinds of failure. The kind alone decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A check or a wait failed, or a session refused the request.
    Check,
    /// The command line or the configuration is wrong.
    Usage,
    /// No such session or file.
    NotFound,
    /// A connection, a file or standard output failed.
    Io,
    /// A fault of the command itself.
    Internal,
    /// The program asks back before it answers.
    AsksBack,
    /// A program could not be started here.
    NotStarted(SpawnErrorKind),
    /// Another process could not start a program, and gave this exit code.
    Relayed(i32),
}

impl Kind {
    pub(crate) fn exit_code(self) -> i32 {
        match self {
            Kind::Check => 1,
            Kind::Usage => 2,
            Kind::NotFound => 3,
            Kind::Io => 4,
            Kind::Internal => 5,
            Kind::AsksBack => 6,
            Kind::NotStarted(SpawnErrorKind::Unreachable) => Kind::Io.exit_code(),
            Kind::NotStarted(SpawnErrorKind::NotStarted) => 125,
            Kind::NotStarted(SpawnErrorKind::NotExecutable) => 126,
            Kind::NotStarted(SpawnErrorKind::NotFound) => 127,
            Kind::NotStarted(SpawnErrorKind::CalledOff(signal)) => Ending::by_signal(signal).exit_code(),
            Kind::Relayed(code) => code,
        }
    }

    /// The kind of an error about a file that the user named.
    pub(crate) fn of_io(e: &std::io::Error) -> Self {
        match e.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Io,
        }
    }
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With success.
    Done,
    /// With a failure that has been reported.
    Failed(Kind),
    /// As a program ended.
    As(Exit),
}

impl Ending {
    /// The ending of a command that checks something.
    pub(crate) fn of_check(passed: bool) -> Self {
        if passed { Ending::Done } else { Ending::Failed(Kind::Check) }
    }

    /// Ends as the program ended.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome.ended {
            // The reader is gone: end as the program would have, had it written there itself.
            Ended::OutputClosed => Ending::by_signal(Signal::PIPE.as_raw()),
            Ended::OutputFailed(_) | Ended::RecordingFailed => Ending::Failed(Kind::Io),
            _ => Ending::As(outcome.exit),
        }
    }

    /// Ends by a signal.
    pub(crate) fn by_signal(signal: i32) -> Self {
        Ending::As(Exit::Signal(signal))
    }

    pub(crate) fn is_success(self) -> bool {
        matches!(self, Ending::Done | Ending::As(Exit::Code(0)))
    }

    /// This ending, or a failure of this kind if all went well so far.
    pub(crate) fn or_failed(self, kind: Kind) -> Self {
        if self.is_success() { Ending::Failed(kind) } else { self }
    }

    /// The ending with the higher exit code, for commands that go through several files.
    pub(crate) fn worse(self, other: Self) -> Self {
        if other.exit_code() > self.exit_code() { other } else { self }
    }

    fn exit_code(self) -> i32 {
        match self {
            Ending::Done => 0,
            Ending::Failed(kind) => kind.exit_code(),
            Ending::As(Exit::Code(code)) => code,
            Ending::As(Exit::Signal(signal)) => 128 + signal,
        }
    }

    /// Ends the process.
    pub(crate) fn end(self) -> ! {
        // Nothing can be done about output that cannot be written any more.
        let _ = std::io::stdout().flush();
        if let Ending::As(Exit::Signal(signal)) = self {
            let limit = getrlimit(Resource::Core);
            // The program's core dump is the interesting one. Without the limit there are two.
            let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
            tapdeck_host::die_by(signal);
        }
        std::process::exit(self.exit_code())
    }
}

/// Prints one message on standard error, or logs it where standard error is a log in JSON. Messages
/// quote names and recordings, which must not act on the terminal.
pub(crate) fn say(message: impl std::fmt::Display) {
    let message = crate::human::without_numbers(&message.to_string());
    if crate::log::takes_messages() {
        tracing::warn!("{}", crate::human::printable(&message));
        return;
    }
    // With standard error gone as well, there is no place left for the message.
    let _ = writeln!(std::io::stderr(), "tapdeck: {}", crate::human::printable(&message));
}

/// How a command reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Messages on standard error.
    Text,
    /// JSON on standard output.
    Json,
    /// JSON on standard error, because standard output carries the session or the recording.
    JsonBeside,
}

impl Report {
    /// The report of a command with the option `--json`.
    pub(crate) fn json(as_json: bool) -> Self {
        if as_json { Report::Json } else { Report::Text }
    }

    /// Reports a failure. With JSON, `about` stands beside the error.
    pub(crate) fn failure(self, mut about: Map<String, Value>, message: &str) {
        about.insert("error".to_owned(), crate::human::without_numbers(message).into());
        match self {
            Report::Text if crate::log::takes_messages() => {
                tracing::error!("{}", crate::human::printable(&crate::human::without_numbers(message)));
            }
            Report::Text => say(message),
            Report::Json => print_json(&about),
            Report::JsonBeside => print_json_beside(&about.into()),
        }
    }
}

/// Prints an answer on standard output. Answers quote names, titles and rows of programs, so what
/// could act on the terminal is replaced. The process ends if standard output is closed.
pub(crate) fn print(text: std::fmt::Arguments<'_>) {
    let text = tapdeck_term::printable_lines(&text.to_string());
    if let Err(e) = std::io::stdout().write_all(text.as_bytes()) {
        output_failed(&e);
    }
}

/// Prints an answer as one line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) {
    print(format_args!("{}\n", crate::human::json(value)));
}

/// Prints a report as one line of JSON on standard error.
pub(crate) fn print_json_beside(value: &Value) {
    // With standard error gone, there is no place left for the report.
    let _ = writeln!(std::io::stderr(), "{}", crate::human::json(value));
}

/// Writes bytes to standard output at once. The process ends if that is closed.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if let Err(e) = out.write_all(bytes).and_then(|()| out.flush()) {
        output_failed(&e);
    }
}

/// Ends the process over output that cannot be written: quietly if its reader is gone.
pub(crate) fn output_failed(e: &std::io::Error) -> ! {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        Ending::by_signal(Signal::PIPE.as_raw()).end()
    }
    say(format_args!("cannot write the output: {e}"));
    Ending::Failed(Kind::Io).end()
}

#[cfg(test)]
mod tests {
    use tapdeck_serve::wire::start_code;

    use super::*;

    #[test]
    fn a_program_that_cannot_start_has_one_code_here_and_on_the_wire() {
        for kind in [
            SpawnErrorKind::Unreachable,
            SpawnErrorKind::NotStarted,
            SpawnErrorKind::NotExecutable,
            SpawnErrorKind::NotFound,
            SpawnErrorKind::CalledOff(2),
        ] {
            assert_eq!(Kind::NotStarted(kind).exit_code(), start_code(kind), "{kind:?}");
        }
    }
}
