//! Signals by name, for those who send them from afar.

use std::io;

/// The signals that have a name everywhere, less the `SIG`.
const NAMES: &[(&str, i32)] = &[
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

/// The signal of this name, with or without `SIG`, in any case. An unknown name is none: it is
/// never taken for another.
pub fn number(name: &str) -> Option<i32> {
    let bare = name.get(..3).filter(|p| p.eq_ignore_ascii_case("SIG")).map_or(name, |_| &name[3..]);
    NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(bare)).map(|(_, s)| *s)
}

/// The name of a signal, without `SIG`.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(_, s)| *s == number).map(|(n, _)| *n)
}

/// Whether a signal ends a program that does nothing about it, for backends that have no process to
/// send it to.
///
/// # Errors
/// When no signal has this number.
pub(crate) fn ends(number: i32) -> io::Result<bool> {
    if !(1..=libc::SIGRTMAX()).contains(&number) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no signal has the number {number}"),
        ));
    }
    Ok(!matches!(
        number,
        libc::SIGCHLD
            | libc::SIGCONT
            | libc::SIGURG
            | libc::SIGWINCH
            | libc::SIGSTOP
            | libc::SIGTSTP
            | libc::SIGTTIN
            | libc::SIGTTOU
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_a_program_by_default_ends_one() {
        let cases = [
            (libc::SIGTERM, Some(true)),
            (libc::SIGUSR1, Some(true)),
            (40, Some(true)),
            (libc::SIGWINCH, Some(false)),
            (libc::SIGCONT, Some(false)),
            (libc::SIGSTOP, Some(false)),
            (0, None),
            (-1, None),
            (999, None),
        ];
        for (signal, expected) in cases {
            assert_eq!(ends(signal).ok(), expected, "{signal}");
        }
    }

    #[test]
    fn names_go_both_ways_and_unknown_ones_nowhere() {
        for (text, expected) in
            [("TERM", Some(15)), ("sigterm", Some(15)), ("SIGKILL", Some(9)), ("9", None), ("", None)]
        {
            assert_eq!(number(text), expected, "{text:?}");
        }
        assert!(NAMES.iter().all(|(n, s)| number(n) == Some(*s) && name(*s) == Some(n)));
    }
}
