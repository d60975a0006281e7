//! Clients of a live session: [`Bus`] asks and listens in text, [`Attachment`] has the terminal itself.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::conn::Conn;
use crate::door::{Address, is_trusted};

mod attachment;
mod bus;
mod list;

pub use attachment::{Attach, Attachment, Incoming};
pub use bus::{Bus, Frame, Hello};
pub use list::{ANSWER, alive, connect_to, describe};

/// How long a session may take to answer when it is asked to let somebody in.
const CONNECT: Duration = Duration::from_secs(5);

/// Why a client could not do what it wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no session listens at {0}")]
    NobodyThere(Address),
    /// Somebody else does.
    #[error("{0} belongs to another user")]
    NotOurs(Address),
    /// The session refused.
    #[error("refused: {0}")]
    Denied(String),
    /// The session does not answer.
    #[error("the session did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The session has ended the conversation.
    #[error("the session has ended the connection")]
    Ended,
    /// What cannot be sent.
    #[error("this cannot be sent: {0}")]
    Unfit(&'static str),
    /// What came makes no sense.
    #[error("the session's answer makes no sense: {0}")]
    Nonsense(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

fn connect(address: &Address) -> Result<Conn, ClientError> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NobodyThere(address.clone())
        }
        _ => ClientError::Io(e),
    };
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            if !is_trusted(&stream) {
                return Err(ClientError::NotOurs(address.clone()));
            }
            Ok(Conn::Unix(stream))
        }
        Address::Tcp(tcp) => {
            let stream = TcpStream::connect_timeout(tcp, CONNECT).map_err(failed)?;
            // Keys and their echoes are small, and nothing is gained by waiting for more.
            let _ = stream.set_nodelay(true);
            Ok(Conn::Tcp(stream))
        }
    }
}
