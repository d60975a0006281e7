//! Signals by name, for those who send them from afar.

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

/// The signal of this name, with or without `SIG`, in any case. An unknown name is none: it is never taken for another.
pub fn number(name: &str) -> Option<i32> {
    let bare = name.get(..3).filter(|p| p.eq_ignore_ascii_case("SIG")).map_or(name, |_| &name[3..]);
    NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(bare)).map(|(_, s)| *s)
}

/// The name of a signal, without `SIG`.
pub fn name(number: i32) -> Option<&'static str> {
    NAMES.iter().find(|(_, s)| *s == number).map(|(n, _)| *n)
}

#[cfg(test)]
mod tests {
    use super::*;

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
