//! Sessions over QUIC: one a bidirectional stream, many a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{EndpointConfig, MtuDiscoveryConfig, TokioRuntime, TransportConfig};
use tokio::time::timeout;

use super::identity::{ALPN, Identity};
use super::{Peer, Server, serve_stream};

/// Sessions over one connection.
const STREAMS: u32 = 4096;
/// What may be under way on one stream that its reader has not taken.
const STREAM_WINDOW: u32 = 1 << 20;
/// How long a silent peer counts as there, and how often it is asked. One on this machine is never out of reach, so its
/// silence means that it is gone.
const IDLE: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(2)];
const ALIVE: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(400)];
/// Packets may grow to what a network of large frames carries, where the way allows.
const PACKET: u16 = 8952;
/// With this many connections half open, a client first has to show that its address is its own.
const CROWD: usize = 64;

/// How connections to this address are carried.
pub(super) fn transport(peer: SocketAddr) -> Arc<TransportConfig> {
    let local = usize::from(peer.ip().is_loopback());
    let mut config = TransportConfig::default();
    config.max_concurrent_bidi_streams(STREAMS.into());
    // HTTP/3 needs a few; the wire itself none.
    config.max_concurrent_uni_streams(16u32.into());
    config.stream_receive_window(STREAM_WINDOW.into());
    config.max_idle_timeout(IDLE[local].try_into().ok());
    config.keep_alive_interval(Some(ALIVE[local]));
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(PACKET);
    config.mtu_discovery_config(Some(discovery));
    Arc::new(config)
}

fn endpoint_config() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    // A size that is out of bounds leaves the usual one.
    let _ = config.max_udp_payload_size(PACKET);
    config
}

fn config(tls: rustls::ServerConfig, peer: SocketAddr) -> io::Result<quinn::ServerConfig> {
    let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(peer));
    Ok(config)
}

/// Serves those who come to this port; returns where it is.
pub(super) fn listen(
    server: Arc<Server>,
    address: SocketAddr,
    identity: &Identity,
) -> io::Result<SocketAddr> {
    let far: SocketAddr = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
    let near: SocketAddr = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let usual = config(identity.server_config(&[ALPN])?, far)?;
    let local = Arc::new(config(identity.server_config(&[ALPN])?, near)?);
    let socket = std::net::UdpSocket::bind(address)?;
    let endpoint = quinn::Endpoint::new(endpoint_config(), Some(usual), socket, Arc::new(TokioRuntime))?;
    let bound = endpoint.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(seat) = Arc::clone(&server.connections).try_acquire_owned() else {
                incoming.refuse();
                continue;
            };
            if endpoint.open_connections() > CROWD && !incoming.remote_address_validated() {
                // It may have been validated meanwhile, which is as good.
                let _ = incoming.retry();
                continue;
            }
            let accepted = if incoming.remote_address().ip().is_loopback() {
                incoming.accept_with(Arc::clone(&local))
            } else {
                incoming.accept()
            };
            let Ok(connecting) = accepted else { continue };
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                if let Ok(Ok(connection)) = timeout(server.limits.hello, connecting).await {
                    serve_connection(&server, connection).await;
                }
                drop(seat);
            });
        }
    });
    Ok(bound)
}

/// Serves every stream of a connection, until there is no connection.
async fn serve_connection(server: &Arc<Server>, connection: quinn::Connection) {
    while let Ok((writer, reader)) = connection.accept_bi().await {
        tokio::spawn(serve_stream(Arc::clone(server), reader, writer, Peer::Stranger));
    }
}

/// Any port from which this address can be reached.
pub(super) fn any(to: SocketAddr) -> SocketAddr {
    if to.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    }
}

/// The client's side.
pub(super) fn client(tls: rustls::ClientConfig, to: SocketAddr) -> io::Result<quinn::Endpoint> {
    let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport(to));
    let socket = std::net::UdpSocket::bind(any(to))?;
    let mut endpoint = quinn::Endpoint::new(endpoint_config(), None, socket, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}
