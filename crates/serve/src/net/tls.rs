//! Sessions over TCP with TLS: one for each connection.

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

/// Binds a port.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves the clients of a port.
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

/// Accepts connections, and serves each in a task of its own.
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
                // Most likely out of descriptors: clients may leave meanwhile.
                Err(e) => {
                    tracing::error!(door, why = %e, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    });
}

/// Sets up a connection: keys are sent without delay, and a peer that is gone is noticed.
pub(super) fn settle(stream: &TcpStream) {
    // The connection works without these options, too.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    let _ = rustix::net::sockopt::set_tcp_keepidle(stream, std::time::Duration::from_secs(30));
    let _ = rustix::net::sockopt::set_tcp_keepintvl(stream, std::time::Duration::from_secs(10));
}

/// Makes the TLS handshake; `None` when it fails or takes too long.
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
