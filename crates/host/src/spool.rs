//! Recordings that come through a pipe. They are read more than once, and from places of their own,
//! so a pipe is first emptied into a file without a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// What a path of a recording leads to.
pub(crate) enum Way {
    /// A file that can be opened again and again.
    File(File),
    /// A pipe, a socket or a terminal, which can be read once.
    Stream(File),
}

/// Opens a recording; `-` is standard input.
pub(crate) fn open_way(path: &Path) -> io::Result<Way> {
    let file = match path.as_os_str() == "-" {
        true => File::from(rustix::io::dup(rustix::stdio::stdin())?),
        false => File::open(path)?,
    };
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let once = kind.is_fifo() || kind.is_socket() || kind.is_char_device() || path.as_os_str() == "-";
    Ok(if once { Way::Stream(file) } else { Way::File(file) })
}

/// Whether a path leads to something that can be read only once.
pub fn is_stream(path: &Path) -> bool {
    let kind = std::fs::metadata(path).map(|m| m.file_type());
    path.as_os_str() == "-" || kind.is_ok_and(|k| k.is_fifo() || k.is_socket() || k.is_char_device())
}

/// Whether this is a device other than a terminal.
pub(crate) fn is_device(file: &File) -> bool {
    file.metadata().is_ok_and(|m| m.file_type().is_char_device()) && !rustix::termios::isatty(file)
}

/// Reads a stream to its end, into a file that is gone with the last who has it open.
pub(crate) fn spool(mut stream: impl io::Read) -> io::Result<File> {
    let mut file = scratch()?;
    io::copy(&mut stream, &mut file)?;
    Ok(file)
}

/// The same file opened anew, with a position of its own.
pub(crate) fn reopen(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a file for temporary use, which is gone with the last who has it open.
///
/// # Errors
/// When there is no room for temporary files.
pub fn scratch() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(fd.into());
    }
    let path = folder.join(format!("tapdeck-{}.spool", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
