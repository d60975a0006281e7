//! A connection of any kind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;

/// A stream to the other side.
#[derive(Debug)]
pub enum Conn {
    /// A Unix socket.
    Unix(UnixStream),
    /// A TCP stream.
    Tcp(TcpStream),
    /// A TCP stream with TLS on it. It never blocks.
    #[cfg(feature = "net")]
    Sealed(Box<crate::net::Sealed>),
    /// A stream of a QUIC connection that lives in its user's thread. It never blocks.
    #[cfg(feature = "net")]
    Flow(Box<crate::net::Flow>),
    /// A socket to a thread that carries its bytes on.
    #[cfg(feature = "net")]
    Bridge(crate::net::Bridge),
}

impl Conn {
    /// Connects to a Unix socket of this user's.
    #[cfg(feature = "net")]
    pub(crate) fn unix(path: &std::path::Path) -> Result<Self, crate::client::ClientError> {
        crate::client::connect(&crate::door::Address::Unix(path.to_owned()))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Conn::Unix(s) => Conn::Unix(s.try_clone()?),
            Conn::Tcp(s) => Conn::Tcp(s.try_clone()?),
            // What is sealed has one state.
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) => return Err(io::ErrorKind::Unsupported.into()),
            // The original waits for the thread when it is dropped; a copy does not.
            #[cfg(feature = "net")]
            Conn::Bridge(b) => Conn::Unix(b.stream.try_clone()?),
        })
    }

    /// The process at the other side, where the system tells.
    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Conn::Unix(s) => socket_peercred(s).ok().map(|peer| peer.pid.as_raw_nonzero().get()),
            Conn::Tcp(_) => None,
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) | Conn::Bridge(_) => None,
        }
    }

    /// The address of the other side of a TCP stream.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Conn::Tcp(s) => s.peer_addr().ok(),
            _ => None,
        }
    }

    pub(crate) fn shutdown(&mut self, how: Shutdown) {
        // A stream that is gone already is as shut as can be.
        let _ = match self {
            Conn::Unix(s) => s.shutdown(how),
            Conn::Tcp(s) => s.shutdown(how),
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.tcp.shutdown(how),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.shutdown(how),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.shutdown(how),
        };
    }

    pub(crate) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Conn::Unix(s) => s.set_nonblocking(on),
            Conn::Tcp(s) => s.set_nonblocking(on),
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) if on => Ok(()),
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.set_nonblocking(on),
        }
    }

    /// Whether there is something to read of which the descriptor no longer tells.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.has_more(),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.has_more(),
            _ => false,
        }
    }

    /// Whether something was taken that is not sent yet: see [`Write::flush`].
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.has_unsent(),
            _ => false,
        }
    }

    /// Whether the connection is kept up by its user's thread. Its descriptor then tells only that
    /// there is something to read: after each read there may be room to send. A caller that does
    /// not want to read calls [`Conn::tend`] instead.
    pub(crate) fn lives_here(&self) -> bool {
        match self {
            #[cfg(feature = "net")]
            Conn::Flow(_) => true,
            _ => false,
        }
    }

    /// Keeps the connection up without reading from it.
    pub(crate) fn tend(&mut self) -> io::Result<()> {
        match self {
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.tend(),
            _ => Ok(()),
        }
    }

    /// What the connection can carry of a token.
    #[cfg(feature = "net")]
    pub(crate) fn carries(&self) -> crate::net::proof::Carries {
        match self {
            Conn::Sealed(s) => s.carries(),
            Conn::Flow(f) => f.carries(),
            Conn::Unix(_) | Conn::Tcp(_) | Conn::Bridge(_) => crate::net::proof::Carries::Token,
        }
    }

    /// Says that nothing more will come from this side.
    #[cfg(feature = "net")]
    pub(crate) fn say_goodbye(&mut self) {
        if let Conn::Sealed(s) = self {
            s.say_goodbye();
        }
        self.shutdown(Shutdown::Write);
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Conn::Unix(s) => s.as_fd(),
            Conn::Tcp(s) => s.as_fd(),
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.tcp.as_fd(),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.as_fd(),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.as_fd(),
        }
    }
}

impl Read for Conn {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Conn::Unix(s) => s.read(buf),
            Conn::Tcp(s) => s.read(buf),
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.read(buf),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.read(buf),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.read(buf),
        }
    }
}

impl Write for Conn {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Conn::Unix(s) => s.write(buf),
            Conn::Tcp(s) => s.write(buf),
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.write(buf),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.write(buf),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.write(buf),
        }
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Conn::Unix(s) => s.write_vectored(bufs),
            Conn::Tcp(s) => s.write_vectored(bufs),
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.write_vectored(bufs),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.write_vectored(bufs),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.write_vectored(bufs),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            #[cfg(feature = "net")]
            Conn::Sealed(s) => s.flush(),
            #[cfg(feature = "net")]
            Conn::Flow(f) => f.flush(),
            _ => Ok(()),
        }
    }
}
