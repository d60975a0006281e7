//! Sessions over TCP with TLS: one a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::identity::{ALPN, Identity};
use super::line::serve_whole;
use super::pending::{PendingClients, logged};
use super::session::BREATH;
use super::{Peer, Server};

/// A port, bound.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves those who come to this port.
pub(super) fn listen(server: Arc<Server>, listener: TcpListener, identity: &Identity) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(identity.server_config(&[ALPN])?));
    let pending = PendingClients::new(&server);
    accept_all("tls", listener, move |stream| {
        let acceptor = acceptor.clone();
        Arc::clone(&pending).visit(async move |server, client| {
            let Some(stream) = hands_shaken(&server, acceptor, stream).await else { return };
            serve_whole(server, stream, Peer::Stranger, client).await;
        })
    });
    Ok(())
}

/// Accepts connections, and has each served by a task of its own.
pub(super) fn accept_all<F, S>(door: &'static str, listener: TcpListener, serve: F)
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    settle(&stream);
                    tokio::spawn(logged(door, Some(peer), serve(stream)));
                }
                // Out of descriptors, most likely: clients that are here may leave meanwhile.
                Err(e) => {
                    tracing::error!(door, why = %e, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    });
}

/// Keys are small and nothing is gained by waiting for more; a peer that is gone without a word is found out.
pub(super) fn settle(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    let _ = rustix::net::sockopt::set_tcp_keepidle(stream, std::time::Duration::from_secs(30));
    let _ = rustix::net::sockopt::set_tcp_keepintvl(stream, std::time::Duration::from_secs(10));
}

/// The stream within, if the other side knows how and does not take all day.
pub(super) async fn hands_shaken(
    server: &Server,
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let shaken = timeout(server.limits.hello, acceptor.accept(stream)).await;
    let why = match shaken {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(e)) => e.to_string(),
        Err(_) => format!("no handshake within {:?}", server.limits.hello),
    };
    tracing::warn!(error = "handshake", why, "refused");
    None
}
