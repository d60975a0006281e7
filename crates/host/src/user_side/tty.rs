//! The user's terminal settings: taken, and given back on every way out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, Termios, isatty, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr,
};
use tapdeck_core::WinSize;

use crate::sys;

/// What a panic must put back, wherever it happens: the settings, and what undoes a picture.
static RESTORE: Mutex<Option<(OwnedFd, Termios, Vec<u8>)>> = Mutex::new(None);

/// How much of the terminal is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Everything: keys come as they are typed, output goes as it is written.
    Raw,
    /// Output only, because the input comes from elsewhere.
    OutputOnly,
}

/// The user's terminal.
pub(crate) struct Tty {
    fd: OwnedFd,
    original: Termios,
    take: Take,
    taken: bool,
    /// What is written to the terminal when it is taken, and what undoes that.
    dress: (Vec<u8>, Vec<u8>),
}

impl Tty {
    /// Notes the settings of a terminal.
    pub(crate) fn new(fd: OwnedFd, take: Take) -> io::Result<Self> {
        let original = tcgetattr(&fd)?;
        Ok(Self { fd, original, take, taken: false, dress: (Vec::new(), Vec::new()) })
    }

    /// Has these bytes written whenever the terminal is taken, and those whenever it is given back,
    /// by a panic too: for pictures that must not be left behind.
    pub(crate) fn dressed(mut self, on: &[u8], off: &[u8]) -> Self {
        self.dress = (on.to_owned(), off.to_owned());
        self
    }

    /// Changes the bytes of [`Tty::dressed`], and writes none of them now.
    pub(crate) fn redress(&mut self, on: &[u8], off: &[u8]) {
        self.dress = (on.to_owned(), off.to_owned());
        if self.taken {
            let mut restore = RESTORE.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, _, undress)) = restore.as_mut() {
                off.clone_into(undress);
            }
            sys::change_undress(off);
        }
    }

    /// The settings as they were found.
    pub(crate) fn original(&self) -> &Termios {
        &self.original
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }

    /// The terminal's size.
    pub(crate) fn size(&self) -> io::Result<WinSize> {
        window_size(&self.fd)
    }

    /// Takes the terminal, if this process is in its foreground: from the background it would be
    /// stopped, or would change the settings under another program's feet.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        if !self.in_foreground() {
            return Ok(());
        }
        // A shell may have changed the settings while this process was stopped.
        let found = tcgetattr(&self.fd)?;
        if !self.taken {
            self.original = found.clone();
        }
        let mut settings = found;
        match self.take {
            Take::Raw => settings.make_raw(),
            Take::OutputOnly => settings.output_modes -= OutputModes::OPOST,
        }
        *RESTORE.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((self.fd.try_clone()?, self.original.clone(), self.dress.1.clone()));
        if !self.taken {
            sys::remember_terminal(self.fd.as_fd(), &self.dress.1);
        }
        // At once: waiting for output to drain could hang on a terminal that is not read.
        tcsetattr(&self.fd, OptionalActions::Now, &settings)?;
        if !std::mem::replace(&mut self.taken, true) {
            write_out(&self.dress.0);
        }
        Ok(())
    }

    /// Gives the terminal back as it was.
    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.taken) {
            return Ok(());
        }
        RESTORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        sys::forget_terminal();
        write_out(&self.dress.1);
        tcsetattr(&self.fd, OptionalActions::Now, &self.original)?;
        Ok(())
    }

    /// Whether this process may change the terminal. A terminal that controls no session of ours
    /// says nothing about foreground, and stops no process.
    pub(crate) fn in_foreground(&self) -> bool {
        tcgetpgrp(&self.fd).map_or(true, |foreground| foreground == getpgrp())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // Only a panic comes this way; the ordinary way reports the error.
        let _ = self.give_back();
    }
}

/// The size of a terminal.
pub(crate) fn window_size(fd: impl AsFd) -> io::Result<WinSize> {
    let size = tcgetwinsize(fd)?;
    Ok(WinSize { cols: size.ws_col, rows: size.ws_row, x_pixels: size.ws_xpixel, y_pixels: size.ws_ypixel })
}

/// Sets the terminal of standard output up for typing at a shell, as `stty sane` does. Returns
/// false if there is none.
///
/// # Errors
/// When the system refuses.
pub fn restore_sane_settings() -> io::Result<bool> {
    let terminal = rustix::stdio::stdout();
    if !isatty(terminal) {
        return Ok(false);
    }
    let mut settings = tcgetattr(terminal)?;
    settings.input_modes -= InputModes::IGNBRK
        | InputModes::INLCR
        | InputModes::IGNCR
        | InputModes::INPCK
        | InputModes::ISTRIP
        | InputModes::IXOFF
        | InputModes::IXANY;
    settings.input_modes |= InputModes::ICRNL | InputModes::IXON;
    settings.output_modes -=
        OutputModes::OCRNL | OutputModes::ONOCR | OutputModes::ONLRET | OutputModes::OFILL;
    settings.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    settings.local_modes -= LocalModes::ECHONL | LocalModes::NOFLSH | LocalModes::TOSTOP;
    settings.local_modes |= LocalModes::ISIG
        | LocalModes::ICANON
        | LocalModes::IEXTEN
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOK
        | LocalModes::ECHOCTL
        | LocalModes::ECHOKE;
    // What was half written by a program that is gone must not hold this up.
    tcsetattr(terminal, OptionalActions::Now, &settings)?;
    Ok(true)
}

/// Writes to the terminal past all buffers. When that fails, there is no terminal to be left in
/// disorder.
fn write_out(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Gives the terminal back before a panic's message is printed, so that it can be read.
pub fn restore_terminal_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // A thread that panics while it holds the lock must not wait for itself.
        if let Ok(mut slot) = RESTORE.try_lock()
            && let Some((fd, original, undress)) = slot.take()
        {
            write_out(&undress);
            // A terminal that is gone needs nothing back.
            let _ = tcsetattr(&fd, OptionalActions::Now, &original);
        }
        print(info);
    }));
}
