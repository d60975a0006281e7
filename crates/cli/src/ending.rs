//! How the command ends: every exit code is chosen here.

use std::io::Write;
use std::process::exit;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tapdeck_core::Exit;
use tapdeck_host::{Ended, LaunchError, Outcome};

/// The codes of commands that are not programs being run.
pub(crate) mod code {
    /// A check or a wait failed.
    pub(crate) const FAILED: i32 = 1;
    /// The command was not understood.
    pub(crate) const USAGE: i32 = 2;
    /// No such session or file.
    pub(crate) const NOT_FOUND: i32 = 3;
    /// Connection or I/O.
    pub(crate) const IO: i32 = 4;
    /// A program could not be started, for another reason than that it is not there or not executable.
    pub(crate) const NOT_STARTED: i32 = 125;
    /// A fault of ours.
    pub(crate) const INTERNAL: i32 = 5;
}

/// How the process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

impl Ending {
    /// As the program ended.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        // With nobody reading, the program did not choose its end: say what it would have met itself.
        if outcome.ended == Ended::OutputClosed {
            return Ending::Signal(rustix::process::Signal::PIPE.as_raw());
        }
        if matches!(outcome.ended, Ended::OutputFailed(_)) {
            return Ending::Code(code::IO);
        }
        Ending::of_exit(outcome.exit)
    }

    /// The same of one that ended elsewhere.
    pub(crate) fn of_exit(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Ending::Code(code),
            Exit::Signal(signal) => Ending::Signal(signal),
        }
    }

    pub(crate) fn of_launch_error(e: &LaunchError) -> Self {
        Ending::Code(match e {
            LaunchError::Spawn(e) => e.exit_code(),
            LaunchError::Place { code, .. } => *code,
            _ => code::IO,
        })
    }

    /// Ends the process.
    pub(crate) fn end(self) -> ! {
        let _ = std::io::stdout().flush();
        match self {
            Ending::Code(code) => exit(code),
            Ending::Signal(signal) => {
                // The program's core dump is the interesting one.
                let limit = getrlimit(Resource::Core);
                let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
                tapdeck_host::die_by(signal);
                exit(128 + signal)
            }
        }
    }
}

/// Prints one sentence on standard error. Messages quote names and recordings, which must not act on the terminal.
pub(crate) fn say(message: impl std::fmt::Display) {
    // With standard error gone as well, there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "tapdeck: {}", crate::human::printable(&message.to_string()));
}

/// Says why a command fails: as data on standard output where that was asked for, beside what it is about (an object),
/// else as a sentence on standard error.
pub(crate) fn complain(as_json: bool, mut about: serde_json::Value, message: impl std::fmt::Display) {
    if as_json {
        about["error"] = message.to_string().into();
        print(format_args!("{}\n", crate::human::json(&about)));
    } else {
        say(message);
    }
}

/// Prints an answer on standard output. A reader that has had enough ends the process quietly.
pub(crate) fn print(text: std::fmt::Arguments<'_>) {
    if let Err(e) = std::io::stdout().write_fmt(text) {
        output_failed(&e);
    }
}

/// Ends the process over output that cannot be written.
pub(crate) fn output_failed(e: &std::io::Error) -> ! {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        Ending::Signal(rustix::process::Signal::PIPE.as_raw()).end()
    }
    say(format_args!("cannot write the output: {e}"));
    exit(code::IO)
}
