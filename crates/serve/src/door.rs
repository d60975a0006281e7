//! Addresses, and the sockets bound to them.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::socket_peercred;

use crate::conn::Conn;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Where a recorder listens: a path (with `unix:` in front or without), or `tcp:HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of this machine.
    Tcp(SocketAddr),
}

/// Text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Not understood.
    #[error("{0:?} is no address: write a path, unix:PATH, or tcp:HOST:PORT such as tcp:127.0.0.1:0")]
    Malformed(String),
    /// A port that other machines could reach.
    #[error(
        "{0} can be reached from other machines, and this protocol does not authenticate clients: use a loopback address"
    )]
    NotLocal(SocketAddr),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let address = Self::anywhere(text)?;
        match address {
            Address::Tcp(tcp) if !tcp.ip().is_loopback() => Err(AddressError::NotLocal(tcp)),
            address => Ok(address),
        }
    }
}

impl Address {
    /// Parses an address that other machines may reach, for servers that authenticate every client.
    pub fn anywhere(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        let Some(tcp) = text.strip_prefix("tcp:") else {
            // A word with a colon in front of the first slash is another kind of address, not a
            // file.
            let bare = || Some(text).filter(|t| !t.split('/').next().unwrap_or_default().contains(':'));
            let path = text.strip_prefix("unix:").or_else(bare).filter(|p| !p.is_empty());
            return path.map(|path| Address::Unix(path.into())).ok_or_else(malformed);
        };
        let mut found = tcp.to_socket_addrs().map_err(|_| malformed())?;
        let address = found.next().ok_or_else(malformed)?;
        Ok(Address::Tcp(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// The name of the socket of the recorder with this process number.
pub fn socket_name(pid: u32) -> String {
    format!("snapshot-{pid}.sock")
}

/// Removes the sockets that killed recorders left behind. A socket that cannot be removed stays.
pub(crate) fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|n| n.to_str());
        let pid = name.and_then(|n| n.strip_prefix("snapshot-")?.strip_suffix(".sock")?.parse().ok());
        // Its number may be of a process that is not to be seen from here: then it still listens.
        if pid.is_some_and(|pid| !tapdeck_host::registry::is_alive(pid)) {
            // The next sweep tries again.
            let _ = clear_stale(&path);
        }
    }
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A bound address. Clients can connect at once, and wait until a server answers. A Unix socket is
/// removed from its folder when this is dropped.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    address: Address,
    /// The identity of our file: another process may have replaced it.
    identity: Option<(u64, u64)>,
}

impl Door {
    /// Binds a Unix socket. Its folder is made, or must be private already. A stale socket is
    /// replaced. A socket with a server, a symbolic link, or a file of any other kind is left
    /// alone, and an error.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        tapdeck_host::registry::private_folder(folder)?;
        // Two that find a stale socket at once must not both replace it.
        let lock = File::open(folder)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        clear_stale(path)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let meta = fs::symlink_metadata(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: Listener::Unix(listener),
            address: Address::Unix(path.to_owned()),
            identity: Some((meta.dev(), meta.ino())),
        })
    }

    /// Binds a port of this machine; 0 for any that is free.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, AddressError::NotLocal(address)));
        }
        Self::tcp_anywhere(address)
    }

    /// Binds a port that other machines may reach.
    pub fn tcp_anywhere(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // The usual 128 are filled by a crowd of strangers, and a client then waits for seconds.
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let address = Address::Tcp(listener.local_addr()?);
        Ok(Self { listener: Listener::Tcp(listener), address, identity: None })
    }

    /// Binds an address of either kind.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => Self::unix(path),
            Address::Tcp(address) => Self::tcp(*address),
        }
    }

    /// Where it is; with the port that was free.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns another descriptor of a Unix socket, for callers that poll it themselves. The socket
    /// is removed with the door.
    #[cfg(feature = "net")]
    pub(crate) fn unix_listener(&self) -> io::Result<UnixListener> {
        match &self.listener {
            Listener::Unix(l) => l.try_clone(),
            Listener::Tcp(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a Unix socket")),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match &self.listener {
            Listener::Unix(l) => l.as_fd(),
            Listener::Tcp(l) => l.as_fd(),
        }
    }

    /// The next client, if one waits: `None` for one that is not this user's.
    pub(crate) fn accept(&self) -> io::Result<Option<Conn>> {
        match &self.listener {
            Listener::Unix(l) => {
                let stream = l.accept()?.0;
                stream.set_nonblocking(false)?;
                Ok(is_ours(&stream).then_some(Conn::Unix(stream)))
            }
            Listener::Tcp(l) => {
                let stream = l.accept()?.0;
                stream.set_nonblocking(false)?;
                // Small messages and answers to them: nothing is gained by waiting for more.
                let _ = stream.set_nodelay(true);
                Ok(Some(Conn::Tcp(stream)))
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let Address::Unix(path) = &self.address else { return };
        let there = fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()));
        if there.is_some() && there == self.identity {
            // A socket that stays is swept away by a later process.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns whether the peer is a process of this user or of root.
pub(crate) fn is_ours(stream: impl AsFd) -> bool {
    let own = rustix::process::geteuid();
    socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

/// Whether a client may trust the recorder at the other side. File-system snapshots are often taken
/// by root within a user's session, and root has nothing to lose here.
pub(crate) fn is_trusted(stream: &UnixStream) -> bool {
    rustix::process::geteuid().is_root() || is_ours(stream)
}

/// Removes what a recorder that was killed has left behind.
fn clear_stale(path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if !meta.file_type().is_socket() {
        let what = if meta.is_symlink() { "a symbolic link" } else { "not a socket" };
        let message = format!("{} is there already and is {what}", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(_) => {
            let message = format!("another process listens at {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, message))
        }
    }
}
