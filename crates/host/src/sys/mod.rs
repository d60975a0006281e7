//! The calls that have no safe wrapper: signal masks and dispositions, a signal file descriptor,
//! and what runs between fork and exec. Everything unsafe in this crate is in this folder.

#![expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, sigset_t};

mod child;
mod will;

pub use child::raise_file_limit;
pub(crate) use child::{ChildSetup, prepare_child};
pub(crate) use will::LastWill;

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

/// Unblocks all signals for the calling thread, for a process that was started by one that blocks
/// them to read them. Call before any thread is started.
///
/// # Errors
/// When the system refuses.
pub fn unblock_signals() -> io::Result<()> {
    SignalSet::asynchronous().unblock().map(drop)
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
