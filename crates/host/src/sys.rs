//! The calls that have no safe wrapper: signal masks and dispositions, a signal file descriptor,
//! and what runs between fork and exec. Everything unsafe in this crate is in this file.

#![expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, sigset_t};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(sigset_t);

impl SignalSet {
    /// The set of these signals; numbers that are none are left out.
    pub(crate) fn of(signals: impl IntoIterator<Item = c_int>) -> Self {
        let mut set = MaybeUninit::<sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set that it is given.
        let mut set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        };
        for signal in signals {
            // SAFETY: the set is initialised; a bad number makes sigaddset fail without effect.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        Self(set)
    }

    /// All signals but those that a thread's own fault raises.
    pub(crate) fn asynchronous() -> Self {
        Self::of((1..=libc::SIGRTMAX()).filter(|signal| !FAULTS.contains(signal)))
    }

    /// Blocks these signals for the calling thread and those it starts, and returns what was
    /// blocked before.
    pub(crate) fn block(&self) -> io::Result<SignalSet> {
        self.change_mask(libc::SIG_BLOCK)
    }

    /// Unblocks these signals for the calling thread.
    pub(crate) fn unblock(&self) -> io::Result<SignalSet> {
        self.change_mask(libc::SIG_UNBLOCK)
    }

    /// Makes this the calling thread's mask.
    pub(crate) fn install(&self) -> io::Result<SignalSet> {
        self.change_mask(libc::SIG_SETMASK)
    }

    fn change_mask(&self, how: c_int) -> io::Result<SignalSet> {
        let mut old = SignalSet::of([]);
        // SAFETY: both sets are initialised and outlive the call.
        match unsafe { libc::pthread_sigmask(how, &self.0, &mut old.0) } {
            0 => Ok(old),
            e => Err(io::Error::from_raw_os_error(e)),
        }
    }
}

/// A file descriptor that is readable when one of the (blocked) signals is pending.
pub(crate) struct SignalFd(OwnedFd);

impl SignalFd {
    /// Opens one for these signals.
    pub(crate) fn open(set: &SignalSet) -> io::Result<Self> {
        // SAFETY: the set is initialised; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set.0, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a new descriptor without another owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next pending signal.
    pub(crate) fn next(&self) -> Option<c_int> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has room for `size` bytes.
        let n = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(n) != Ok(size) {
            return None;
        }
        // SAFETY: zeroed above, and wholly written by the read; every bit pattern is a valid value.
        let info = unsafe { info.assume_init() };
        let signal = c_int::try_from(info.ssi_signo).ok()?;
        let own = info.ssi_pid == std::process::id();
        match signal {
            // What a fault's handler passes on.
            _ if signal == libc::SIGRTMAX() && own => c_int::try_from(info.ssi_ptr).ok(),
            // A write of this process to a pipe or a file that takes no more has failed, and says
            // so by itself.
            libc::SIGPIPE | libc::SIGXFSZ if own => self.next(),
            _ => Some(signal),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a signal does by default or by choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// The system's own action.
    Default,
    /// Nothing.
    Ignore,
    /// A handler of the program.
    Handled,
}

/// The present disposition of a signal.
pub(crate) fn disposition(signal: c_int) -> io::Result<Disposition> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads the old one into the buffer given.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed, then written by sigaction.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    Ok(match handler {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignore,
        _ => Disposition::Handled,
    })
}

/// Sets a signal to its default action or to being ignored. Async-signal-safe.
pub(crate) fn set_disposition(signal: c_int, ignore: bool) -> io::Result<()> {
    let handler = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: SIG_DFL and SIG_IGN are not handlers of ours, so no code of ours runs in signal
    // context.
    if unsafe { libc::signal(signal, handler) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Signals that a fault of this very process raises, if no process sent them. They cannot be
/// blocked.
pub(crate) const FAULTS: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// What a handler of faults needs, where it can be had without a lock: the terminal to give back,
/// how it was and what undoes a picture on it, and what each signal did before.
struct FaultRoom {
    /// Whether there is a terminal to give back.
    armed: AtomicBool,
    /// Whether a reader of signals passes on those that were sent.
    forward: AtomicBool,
    terminal: UnsafeCell<MaybeUninit<Kept>>,
    before: UnsafeCell<[MaybeUninit<libc::sigaction>; FAULTS.len()]>,
}

type Kept = (c_int, libc::termios, [u8; 256], usize);

// SAFETY: the terminal is written only while it is not armed, by the one thread that takes and
// gives back terminals, and what signals did before only once, before their handlers are there.
unsafe impl Sync for FaultRoom {}

static FAULT: FaultRoom = FaultRoom {
    armed: AtomicBool::new(false),
    forward: AtomicBool::new(false),
    terminal: UnsafeCell::new(MaybeUninit::uninit()),
    before: UnsafeCell::new([MaybeUninit::uninit(); FAULTS.len()]),
};

/// Has a fault give this terminal back as it is now, after writing `undress` to it. Not told twice
/// without [`forget_terminal`] between.
pub(crate) fn remember_terminal(terminal: BorrowedFd<'_>, undress: &[u8]) {
    let mut settings = MaybeUninit::<libc::termios>::zeroed();
    let mut bytes = [0; 256];
    let len = undress.len().min(bytes.len());
    bytes[..len].copy_from_slice(&undress[..len]);
    // SAFETY: the buffer is valid for the settings, and read only when the call has filled it in;
    // the place is unused while it is not armed.
    unsafe {
        if FAULT.armed.load(Ordering::Acquire)
            || libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()) != 0
        {
            return;
        }
        (*FAULT.terminal.get()).write((terminal.as_raw_fd(), settings.assume_init(), bytes, len));
    }
    FAULT.armed.store(true, Ordering::Release);
}

/// Changes the bytes that a fault writes to a terminal that is remembered.
pub(crate) fn change_undress(undress: &[u8]) {
    if !FAULT.armed.swap(false, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the place was filled in before it was armed, and is unused while it is not.
    unsafe {
        let (_, _, bytes, len) = (*FAULT.terminal.get()).assume_init_mut();
        *len = undress.len().min(bytes.len());
        bytes[..*len].copy_from_slice(&undress[..*len]);
    }
    FAULT.armed.store(true, Ordering::Release);
}

/// The terminal has been given back.
pub(crate) fn forget_terminal() {
    FAULT.armed.store(false, Ordering::Release);
}

/// Has signals of [`FAULTS`] that others send passed on to the reader of this process's signals, or
/// no longer.
pub(crate) fn forward_faults(forward: bool) {
    static CATCH: std::sync::Once = std::sync::Once::new();
    CATCH.call_once(|| {
        for (i, signal) in FAULTS.into_iter().enumerate() {
            if disposition(signal).is_ok_and(|d| d == Disposition::Ignore) {
                continue;
            }
            // SAFETY: zeroes are a valid action; the handler has the type that SA_SIGINFO asks for
            // and makes only async-signal-safe calls; the old action is written once, before the
            // handler can run.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                let before = (*FAULT.before.get())[i].as_mut_ptr();
                if libc::sigaction(signal, std::ptr::null(), before) == 0 {
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                }
            }
        }
    });
    FAULT.forward.store(forward, Ordering::Release);
}

/// What was sent by others is passed on as it was meant for the program. A true fault gives the
/// terminal back, and then happens again with what it did before.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system hands over a valid siginfo_t; everything called is async-signal-safe; what
    // is read was written before it was armed, or before this handler was there.
    unsafe {
        let sent = (*info).si_code <= 0;
        if sent && (*info).si_pid() != libc::getpid() && FAULT.forward.load(Ordering::Acquire) {
            let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(signal as usize) };
            libc::sigqueue(libc::getpid(), libc::SIGRTMAX(), value);
            return;
        }
        if FAULT.armed.swap(false, Ordering::AcqRel) {
            let (terminal, settings, undress, len) = (*FAULT.terminal.get()).assume_init_ref();
            // In the background it is another process's to set.
            if [-1, libc::getpgrp()].contains(&libc::tcgetpgrp(*terminal)) {
                libc::write(1, undress.as_ptr().cast(), *len);
                libc::tcsetattr(*terminal, libc::TCSANOW, settings);
            }
        }
        if let Some(i) = FAULTS.iter().position(|s| *s == signal) {
            libc::sigaction(signal, (*FAULT.before.get())[i].as_ptr(), std::ptr::null_mut());
        }
        if sent {
            libc::raise(signal);
        }
    }
}

/// Whether SIGPIPE was ignored when the process started. The standard library ignores it before
/// `main`, so this must be noted earlier or the child could not be given what the user had.
static SIGPIPE_IGNORED_AT_START: OnceLock<bool> = OnceLock::new();

/// The descriptors above 2 that the caller of this process passed on: those that were open at the
/// start, when this process had opened none yet. Empty once they are taken.
static DESCRIPTORS_AT_START: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

extern "C" fn note_start() {
    let ignored = disposition(libc::SIGPIPE).is_ok_and(|d| d == Disposition::Ignore);
    // The first call counts.
    let _ = SIGPIPE_IGNORED_AT_START.set(ignored);
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    // SAFETY: asks for a flag. The descriptor of the listing itself does not stay open over an
    // exec, and is left out by that.
    let stays = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } == 0;
    let passed = open.filter(|fd| *fd > 2).filter(stays).collect();
    *DESCRIPTORS_AT_START.lock().unwrap_or_else(PoisonError::into_inner) = passed;
}

// SAFETY: the loader calls each pointer in this section once, before `main`, with arguments that a
// function without parameters ignores under the C calling convention. The function only reads what
// the system keeps of this process.
#[unsafe(link_section = ".init_array")]
#[used]
static NOTE_START: extern "C" fn() = note_start;

/// Takes the descriptors above 2 that this process's caller passed on. The second call gets none.
pub(crate) fn take_inherited_descriptors() -> Vec<OwnedFd> {
    let taken = std::mem::take(&mut *DESCRIPTORS_AT_START.lock().unwrap_or_else(PoisonError::into_inner));
    // SAFETY: they were open before this process opened anything, so nothing else owns them, and
    // they are given out once.
    taken.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
}

/// The signal state that the child is to have: what this process had when it started.
#[derive(Clone, Copy)]
pub struct InheritedSignals {
    mask: SignalSet,
    ignored: [(c_int, bool); 3],
    /// Nothing is ignored, whatever this process ignores.
    fresh: bool,
}

crate::opaque::opaque_debug!(InheritedSignals);

impl InheritedSignals {
    /// Notes the present state. Call before changing anything.
    pub fn note() -> Self {
        let ignored = |signal| disposition(signal).is_ok_and(|d| d == Disposition::Ignore);
        let pipe = SIGPIPE_IGNORED_AT_START.get().copied().unwrap_or(false);
        Self {
            mask: SignalSet::of([]).block().unwrap_or(SignalSet::of([])),
            ignored: [
                (libc::SIGPIPE, pipe),
                (libc::SIGCHLD, ignored(libc::SIGCHLD)),
                (libc::SIGXFSZ, ignored(libc::SIGXFSZ)),
            ],
            fresh: false,
        }
    }

    /// Whether this one was ignored, of those whose disposition this process changes for itself.
    pub(crate) fn ignores(&self, signal: c_int) -> bool {
        self.ignored.contains(&(signal, true))
    }

    /// Those of a new login: nothing ignored, nothing blocked. For programs of people who did not
    /// start this process: one that a script started in the background ignores interrupts, and
    /// theirs would do so too.
    pub fn of_login() -> Self {
        Self {
            mask: SignalSet::of([]),
            ignored: [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ].map(|s| (s, false)),
            fresh: true,
        }
    }
}

/// What the child does between fork and exec.
pub(crate) struct ChildSetup {
    /// Signals as the user had them.
    pub signals: InheritedSignals,
    /// The other end of the terminal on standard input, which is to control the new session.
    pub terminal: Option<RawFd>,
    /// Whether the child is killed when the thread that starts it is gone.
    pub die_with_host: bool,
    /// Where a [minder](run_minder) reports to, if the program is to have one.
    pub minder: Option<RawFd>,
    /// Descriptors above 2 that the program gets, under the same numbers.
    pub descriptors: Vec<RawFd>,
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

/// The home of this process's user as the system's list of users has it.
pub(crate) fn listed_home() -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = vec![0u8; 64 << 10];
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    // SAFETY: the entry and the buffer are valid for the lengths given and outlive the call.
    let done = unsafe {
        libc::getpwuid_r(
            libc::getuid(),
            entry.as_mut_ptr(),
            text.as_mut_ptr().cast(),
            text.len(),
            &raw mut found,
        )
    };
    if done != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the entry is filled in and its strings lie in the buffer, each
    // with its end.
    let home = unsafe {
        let home = entry.assume_init().pw_dir;
        if home.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(home)
    };
    Some(std::ffi::OsStr::from_bytes(home.to_bytes()).into())
}

/// Sends a signal to a process, or with a negative number to a process group.
pub(crate) fn kill(pid: i32, signal: c_int) -> io::Result<()> {
    // SAFETY: takes two integers; a bad one makes it fail without effect.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reaps every child that has ended, other than `own`. Only process 1 is given children it did not
/// start.
pub(crate) fn reap_adopted(own: Option<i32>) {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the buffer is valid for a siginfo_t; WNOWAIT leaves the child to be waited for.
        let found = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), look) } == 0;
        // SAFETY: zeroed, then written; si_pid is 0 when no child has ended.
        let pid = unsafe { info.assume_init().si_pid() };
        if !found || pid == 0 || Some(pid) == own {
            return;
        }
        // SAFETY: reaps exactly that child, whose status no other code wants.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Ends this process by `signal`, so that a parent sees the same death as the child's. Returns only
/// if the signal could not do it (process 1).
pub fn die_by(signal: c_int) {
    // If this fails, the caller goes on and exits by itself.
    let _ = set_disposition(signal, false);
    let _ = SignalSet::of([signal]).unblock();
    // SAFETY: sends a signal to the calling process.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Stops this process with SIGTSTP's own action and returns when it is continued.
pub(crate) fn stop_self() -> io::Result<()> {
    let set = SignalSet::of([libc::SIGTSTP]);
    let handled = disposition(libc::SIGTSTP)?;
    set_disposition(libc::SIGTSTP, false)?;
    // The stop happens when the signal is unblocked with one pending, and only for a thread that
    // has it open: so raise it first, then open the mask. SAFETY: sends a signal to the calling
    // thread.
    unsafe { libc::raise(libc::SIGTSTP) };
    let old = set.unblock()?;
    old.install()?;
    if handled == Disposition::Ignore {
        set_disposition(libc::SIGTSTP, true)?;
    }
    Ok(())
}

/// A process that outlives this one just long enough to do one thing, if this one is killed before
/// the value is dropped. Nothing else can act for a process that gets no chance to.
pub(crate) struct LastWill {
    /// Closed when this process is gone, however it went.
    alive: Option<OwnedFd>,
    pid: libc::pid_t,
}

impl LastWill {
    /// Leaves something to be done. There may be other threads, so the deed makes only
    /// async-signal-safe system calls, on memory that is there already.
    fn leave(deed: impl FnOnce()) -> io::Result<Self> {
        let (waits, alive) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: the child makes only async-signal-safe system calls on memory that was prepared
        // before, and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let mut word = 0u8;
                // SAFETY: as above; nothing of this process is used but what the deed has a copy
                // of, so that closing every descriptor does no harm.
                let read = unsafe {
                    libc::setsid();
                    libc::chdir(c"/".as_ptr());
                    libc::dup2(waits.as_raw_fd(), 0);
                    libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
                    loop {
                        let read = libc::read(0, (&raw mut word).cast(), 1);
                        if read >= 0 || *libc::__errno_location() != libc::EINTR {
                            break read;
                        }
                    }
                };
                // A byte says that all went well; the end says that the process is gone.
                if read == 0 {
                    deed();
                }
                // SAFETY: ends this process without running anything of the one that it is a copy
                // of.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { alive: Some(alive), pid }),
        }
    }

    /// Sends a request to the Unix socket at `path`.
    #[cfg(feature = "docker")]
    pub(crate) fn request(path: &std::path::Path, request: &[u8]) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let path = path.as_os_str().as_bytes();
        // SAFETY: all zeroes is a valid address of no family.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        if path.len() >= address.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or(1);
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = from.cast_signed();
        }
        let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0);
        Self::leave(|| {
            // SAFETY: every pointer is to memory of this frame or the caller's, which the child has
            // a copy of.
            unsafe {
                let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
                if libc::connect(socket, (&raw const address).cast(), length) == 0 {
                    libc::write(socket, request.as_ptr().cast(), request.len());
                    let mut answer = [0u8; 512];
                    while libc::read(socket, answer.as_mut_ptr().cast(), answer.len()) > 0 {}
                }
            }
        })
    }

    /// Hangs up on every process of a session, as a terminal that is gone does only for those in
    /// its foreground, and kills those that are left a moment later.
    pub(crate) fn hang_up(session: libc::pid_t) -> io::Result<Self> {
        Self::leave(|| {
            let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            for round in 0..60 {
                let signals = match round {
                    0 => &[libc::SIGHUP, libc::SIGCONT][..],
                    1..40 => &[],
                    _ => &[libc::SIGKILL],
                };
                if !signal_session(session, signals) {
                    return;
                }
                // Only a pause.
                let _ = rustix::event::poll(&mut [], Some(&pause));
            }
        })
    }
}

/// Signals every process of a session, without a byte of memory of its own; says whether there is
/// any.
fn signal_session(session: libc::pid_t, signals: &[c_int]) -> bool {
    use rustix::fs::{Mode, OFlags, RawDir, open};
    let Ok(list) = open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(list, &mut buffer);
    let mut any = false;
    while let Some(Ok(entry)) = entries.next() {
        let name = std::str::from_utf8(entry.file_name().to_bytes()).unwrap_or_default();
        let Ok(pid) = name.parse() else { continue };
        // SAFETY: takes an integer; of a process that is gone, or is in no session that can be seen
        // from here, it says so.
        if unsafe { libc::getsid(pid) } == session {
            any = true;
            for signal in signals {
                // Gone already is as good as signalled.
                let _ = kill(pid, *signal);
            }
        }
    }
    any
}

impl Drop for LastWill {
    fn drop(&mut self) {
        if let Some(alive) = self.alive.take() {
            // If the other process is gone, it needs no word.
            let _ = rustix::io::write(&alive, b".");
        }
        // SAFETY: the process is a child that no other code waits for; if one did, this fails.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}
