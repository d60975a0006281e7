//! What runs between fork and exec, and the minder that stays between this process and a program.

#![expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use libc::{c_int, sigset_t};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};

use super::{InheritedSignals, SignalSet, die_by, set_disposition};

/// What the child does between fork and exec.
pub(crate) struct ChildSetup {
    /// Signals as the user had them.
    pub(crate) signals: InheritedSignals,
    /// The other end of the terminal on standard input, which is to control the new session.
    pub(crate) terminal: Option<RawFd>,
    /// Whether the child is killed when the thread that starts it is gone.
    pub(crate) die_with_host: bool,
    /// Where a [minder](run_minder) reports to, if the program is to have one.
    pub(crate) minder: Option<RawFd>,
    /// Descriptors above 2 that the program gets, under the same numbers.
    pub(crate) descriptors: Vec<RawFd>,
}

/// Arranges for `setup` to happen in the child: a session of its own, the terminal as its
/// controlling one, no descriptor above 2 but those that are passed on, signals as the user had
/// them.
pub(crate) fn prepare_child(command: &mut Command, setup: ChildSetup) {
    let files = FILE_LIMIT_AT_START.get().copied().flatten();
    let host = std::process::id().cast_signed();
    let between_fork_and_exec = move || {
        rustix::process::setsid()?;
        if let Some(master) = setup.terminal {
            // What this process opened bears the mark of a descriptor that is closed on exec for
            // good, and a program can see that: here, where no other thread can start a process
            // meanwhile, it is opened without. SAFETY: the caller holds the master open until this
            // child runs the program.
            let master = unsafe { BorrowedFd::borrow_raw(master) };
            if let Ok(slave) = ioctl_tiocgptpeer(master, OpenptFlags::RDWR | OpenptFlags::NOCTTY) {
                rustix::stdio::dup2_stdin(&slave)?;
                rustix::stdio::dup2_stdout(&slave)?;
                rustix::stdio::dup2_stderr(&slave)?;
            }
            // SAFETY: standard input is open; the caller wired the terminal to it.
            let terminal = unsafe { BorrowedFd::borrow_raw(0) };
            rustix::process::ioctl_tiocsctty(terminal)?;
        }
        if let Some(reports) = setup.minder {
            // A parent that ignores this signal could not wait for its child. The program's own
            // disposition follows below.
            set_disposition(libc::SIGCHLD, false)?;
            // SAFETY: both processes go on with async-signal-safe system calls only.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => lead_foreground_group()?,
                program => run_minder(program, reports, host, setup.die_with_host),
            }
        }
        if setup.die_with_host {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        }
        close_above_stderr_on_exec()?;
        for fd in &setup.descriptors {
            // SAFETY: changes a flag of a descriptor that the caller holds open until this child
            // runs the program.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) };
        }
        if let Some(limit) = files {
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
        }
        if setup.signals.fresh {
            for signal in 1..=libc::SIGRTMAX() {
                // Two cannot be ignored, and some numbers are none.
                let _ = set_disposition(signal, false);
            }
        }
        for (signal, ignore) in setup.signals.ignored {
            set_disposition(signal, ignore)?;
        }
        setup.signals.mask.install()?;
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and makes only async-signal-safe system
    // calls.
    unsafe { command.pre_exec(between_fork_and_exec) };
}

/// Puts this process into a group of its own, in the foreground of the terminal on standard input.
fn lead_foreground_group() -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    // The system stops a process of the background that does this, unless it blocks that signal.
    // The program's own mask is installed afterwards.
    SignalSet::of([libc::SIGTTOU]).block()?;
    // SAFETY: standard input is open; the caller wired the terminal to it.
    let terminal = unsafe { BorrowedFd::borrow_raw(0) };
    rustix::termios::tcsetpgrp(terminal, rustix::process::getpid())?;
    Ok(())
}

/// Leads the session of `program` until that ends, and ends as it did. The system does not let a
/// terminal stop a group of processes without a parent in its session. The minder is that parent,
/// as a shell would be, so that Ctrl-Z stops the program.
///
/// Reports to the descriptor the program's number (4 bytes), then a byte for each time that the
/// program stops, with SIGCHLD to `host`.
fn run_minder(program: libc::pid_t, reports: RawFd, host: libc::pid_t, die_with_host: bool) -> ! {
    // SAFETY: async-signal-safe system calls on memory of this frame. Nothing else of the process
    // that this is a copy of is used, so that closing every other descriptor does no harm.
    unsafe {
        if die_with_host {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        // Signals to the session are for the program. The minder waits for its own.
        let mut all = MaybeUninit::<sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::chdir(c"/".as_ptr());
        libc::dup2(reports, 0);
        libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
        libc::write(0, (&raw const program).cast(), size_of_val(&program));
        loop {
            let mut status = 0;
            match libc::waitpid(program, &raw mut status, libc::WUNTRACED | libc::WNOHANG) {
                -1 => libc::_exit(1),
                0 => {
                    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
                    let signal = libc::sigwaitinfo(all.as_ptr(), info.as_mut_ptr());
                    // The terminal is gone, which the system tells its leader alone. When the
                    // leader ends, the system hangs up on the program.
                    if signal == libc::SIGHUP && info.assume_init().si_code == libc::SI_KERNEL {
                        libc::_exit(128 + libc::SIGHUP);
                    }
                }
                _ if libc::WIFSTOPPED(status) => {
                    libc::write(0, c"s".as_ptr().cast(), 1);
                    if libc::getppid() == host {
                        libc::kill(host, libc::SIGCHLD);
                    }
                }
                _ if libc::WIFSIGNALED(status) => {
                    // The program has left its core already.
                    libc::prctl(libc::PR_SET_DUMPABLE, 0);
                    die_by(libc::WTERMSIG(status));
                    libc::_exit(128 + libc::WTERMSIG(status));
                }
                _ => libc::_exit(libc::WEXITSTATUS(status)),
            }
        }
    }
}

/// The limit of open files that this process began with, once it has raised its own.
static FILE_LIMIT_AT_START: OnceLock<Option<rustix::process::Rlimit>> = OnceLock::new();

/// Lets this process open as many files as the system allows. Programs still get the limit that the
/// user had.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let all = Rlimit { current: before.maximum, maximum: before.maximum };
    // Refused, there are as many as there were.
    let raised = setrlimit(Resource::Nofile, all).is_ok();
    // The first call counts.
    let _ = FILE_LIMIT_AT_START.set(raised.then_some(before));
}

/// Marks every descriptor above 2 close-on-exec. Not closed at once: the standard library reports a
/// failed exec through one of them.
fn close_above_stderr_on_exec() -> io::Result<()> {
    let (first, flags): (u32, u32) = (3, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: takes three integers; only changes flags of this process's own descriptors.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    if done == 0 {
        return Ok(());
    }
    // A kernel without close_range: one by one, up to the limit.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = c_int::try_from(limit.unwrap_or(1 << 20).min(1 << 20)).unwrap_or(1 << 20);
    for fd in 3..limit {
        // SAFETY: sets a flag; a number that is no descriptor fails without effect.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}
