//! What is done for this process after it was killed.

#![expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::c_int;

use super::kill;

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
