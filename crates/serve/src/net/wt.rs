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
use super::{Peer, Server, quic};

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
    tokio::spawn(async move {
        let admission = &server.admission;
        loop {
            admission.room().await;
            let incoming = endpoint.accept().await;
            let peer = incoming.remote_address();
            // In a crowd, a client has to prove its address first, which costs no seat.
            if !incoming.remote_address_validated() && admission.is_crowded() {
                incoming.retry();
                continue;
            }
            let Ok(seat) = admission.enter("wt", Some(peer)) else {
                incoming.refuse();
                continue;
            };
            let server = Arc::clone(&server);
            tokio::spawn(seat.clone().visit(async move {
                let hello = async {
                    let request = incoming.await.ok()?;
                    if request.path() != PATH {
                        request.not_found().await;
                        return None;
                    }
                    request.accept().await.ok()
                };
                if let Ok(Some(connection)) = timeout(seat.time_left(), hello).await {
                    quic::serve_streams(&server, &seat, Peer::Stranger, peer, || connection.accept_bi())
                        .await;
                    connection.close(0u32.into(), b"");
                }
            }));
        }
    });
    Ok((bound, hash))
}
