//! Sessions over WebTransport, for browsers: one for each bidirectional stream, many on a
//! connection. The token in each negotiation says what its client may do, so a page from elsewhere,
//! which has none, can do nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use wtransport::tls::WEBTRANSPORT_ALPN;
use wtransport::{Endpoint, ServerConfig};

use super::identity::Identity;
use super::pending::{PendingClients, logged};
use super::{Server, quic};

/// The path of the sessions on the server.
pub(super) const PATH: &str = "/tty";
/// How often the certificate is renewed, long before it expires.
const RENEW: Duration = Duration::from_secs(5 * 86_400);

fn config(address: SocketAddr, identity: &Identity) -> io::Result<(ServerConfig, Option<String>)> {
    let (tls, hash) = identity.browser_config(&[WEBTRANSPORT_ALPN])?;
    let builder = ServerConfig::builder().with_bind_address(address).with_custom_tls(tls);
    let built = builder.keep_alive_interval(Some(Duration::from_secs(10)));
    let built =
        built.max_idle_timeout(Some(Duration::from_secs(30))).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok((built.build(), hash))
}

/// Serves the clients of a port. Returns its address, and the hash by which a browser knows the
/// certificate.
pub(super) fn listen(
    server: Arc<Server>,
    address: SocketAddr,
    identity: Arc<Identity>,
) -> io::Result<(SocketAddr, Option<String>)> {
    let (config, hash) = config(address, &identity)?;
    let endpoint = Arc::new(Endpoint::server(config)?);
    let bound = endpoint.local_addr()?;
    let renewed = Arc::clone(&endpoint);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(RENEW).await;
            if let Ok((config, _)) = self::config(bound, &identity) {
                // The old certificate stays in use; the next renewal tries again.
                let _ = renewed.reload_config(config, false);
            }
        }
    });
    let pending = PendingClients::new(&server);
    tokio::spawn(async move {
        loop {
            let incoming = endpoint.accept().await;
            let peer = incoming.remote_address();
            let visit = Arc::clone(&pending).visit(async move |server, client| {
                let hello = async {
                    let request = incoming.await.ok()?;
                    if request.path() != PATH {
                        request.not_found().await;
                        return None;
                    }
                    request.accept().await.ok()
                };
                if let Ok(Some(connection)) = timeout(server.limits.hello, hello).await {
                    let peer = connection.remote_address();
                    quic::serve_streams(&server, &client, peer, || connection.accept_bi()).await;
                    connection.close(0u32.into(), b"");
                }
            });
            tokio::spawn(logged("wt", Some(peer), visit));
        }
    });
    Ok((bound, hash))
}
