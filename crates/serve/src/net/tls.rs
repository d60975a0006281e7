//! Sessions over TCP with TLS: one for each connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::identity::Identity;
use super::line::serve_whole;
use super::{Channel, Peer, Server};
pub(super) use crate::admission::settle;
use crate::admission::{Seat, accept_all};

/// Binds a port.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves the clients of a port.
pub(super) fn listen(server: Arc<Server>, listener: TcpListener, identity: &Identity) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(identity.server_config(server.protocols())?));
    let admission = Arc::clone(&server.admission);
    tokio::spawn(accept_all(admission, "tls", listener, move |stream, seat| {
        let (server, acceptor) = (Arc::clone(&server), acceptor.clone());
        async move {
            let Some(stream) = hands_shaken(&seat, acceptor, stream).await else { return };
            let channel = Channel::of_tls(stream.get_ref().1);
            serve_whole(server, stream, channel.map_or(Peer::Stranger, Peer::Bound), &seat).await;
        }
    }));
    Ok(())
}

/// Makes the TLS handshake; `None` when it fails or takes too long.
pub(super) async fn hands_shaken(
    seat: &Seat,
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let why = match timeout(seat.time_left(), acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(e)) => e.to_string(),
        Err(_) => "the handshake timed out".to_owned(),
    };
    tracing::warn!(error = "handshake", why, "refused");
    None
}
