//! The signals sent to this process, as events that the driver loop reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use crate::sys::{
    Disposition, FAULTS, InheritedSignals, SignalFd, SignalSet, disposition, forward_faults, set_disposition,
};

/// Signals that are left alone: those that cannot be caught, and those by which the terminal stops
/// a background job.
const LEFT_ALONE: [i32; 4] = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU];

/// Signals that this process ignores for itself, and passes on when another process sends them.
const OWN_ERRORS: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Signals with a meaning of their own here, caught even where the user ignores them.
const ALWAYS: [i32; 4] = [libc::SIGCHLD, libc::SIGWINCH, libc::SIGCONT, libc::SIGTSTP];

/// Signals by which a process is told to end.
pub(super) const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What the process's signals were before they were held back.
static HELD: Mutex<Option<InheritedSignals>> = Mutex::new(None);

/// Holds back the signals by which this process is told to end, until a session takes them over or
/// this is dropped: between the making of files and sockets and the session that removes or
/// finishes them, nothing may be left behind.
pub struct HeldSignals {
    old_mask: SignalSet,
}

crate::opaque::opaque_debug!(HeldSignals);

impl HeldSignals {
    /// Holds them back. Call before any thread is started.
    pub fn hold() -> io::Result<Self> {
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(InheritedSignals::note());
        Ok(Self { old_mask: SignalSet::of(ENDS).block()? })
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        // One that came too late for the session now does what it does.
        let _ = self.old_mask.install();
    }
}

/// The process's signals, blocked and readable. Install before any thread is started, so that all
/// have them blocked.
pub struct Signals {
    fd: SignalFd,
    inherited: InheritedSignals,
    old_mask: SignalSet,
    /// It has all of them.
    all: bool,
}

crate::opaque::opaque_debug!(Signals);

impl Signals {
    /// Takes over the signals of this process.
    pub fn install() -> io::Result<Self> {
        let mut this = Self::install_those(|_| true)?;
        this.all = true;
        forward_faults(true);
        Ok(this)
    }

    /// Takes over those by which this process is told to end, and leaves all others as they are.
    pub(crate) fn install_ends() -> io::Result<Self> {
        Self::install_those(|signal| ENDS.contains(&signal))
    }

    fn install_those(those: impl Fn(i32) -> bool) -> io::Result<Self> {
        let held = *HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let inherited = held.unwrap_or_else(InheritedSignals::note);
        // A parent that ignores SIGCHLD would make the kernel throw the child's exit status away.
        set_disposition(libc::SIGCHLD, false)?;
        // A file size limit is an error of the recording, not the end of the session.
        set_disposition(libc::SIGXFSZ, true)?;
        let wanted = (1..=libc::SIGRTMAX()).filter(|signal| those(*signal)).filter(|signal| {
            if ALWAYS.contains(signal) {
                return true;
            }
            // What the user ignores (nohup) stays ignored, here and in the child.
            let threading = (32..libc::SIGRTMIN()).contains(signal);
            let ignored = match OWN_ERRORS.contains(signal) {
                true => inherited.ignores(*signal),
                false => disposition(*signal).is_ok_and(|d| d == Disposition::Ignore),
            };
            !threading && !LEFT_ALONE.contains(signal) && !FAULTS.contains(signal) && !ignored
        });
        let set = SignalSet::of(wanted);
        let old_mask = set.block()?;
        Ok(Self { fd: SignalFd::open(&set)?, inherited, old_mask, all: false })
    }

    /// The signal state that a child is to have.
    pub(crate) fn inherited(&self) -> InheritedSignals {
        self.inherited
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn next(&self) -> Option<i32> {
        self.fd.next()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if self.all {
            forward_faults(false);
        }
        // The mask was this thread's before, so the system takes it again.
        let _ = self.old_mask.install();
    }
}
