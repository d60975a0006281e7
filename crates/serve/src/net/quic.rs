//! Sessions over QUIC: one for each bidirectional stream, many on a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{EndpointConfig, MtuDiscoveryConfig, TokioRuntime, TransportConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::identity::Identity;
use super::session::serve_stream_of;
use super::{Channel, Peer, Server, port_watch};
use crate::admission::Seat;

/// Sessions over one connection.
const STREAMS: u32 = 4096;
/// Bytes of one stream that may be on the way before its reader takes them.
const STREAM_WINDOW: u32 = 1 << 20;
/// How long a silent peer on another machine is waited for, and how often it is probed.
/// [`port_watch`] knows better about a peer on this machine.
const IDLE: Duration = Duration::from_secs(30);
const ALIVE: Duration = Duration::from_secs(10);
/// How long telling all clients about the server's end may take.
const GOODBYE: Duration = Duration::from_millis(300);
/// The largest packet, where the path allows it: a burst of them must fit into one system call. A
/// larger burst would be lost as a whole, without an error.
const PACKET: u16 = 6500;
/// The most packets in one system call; quinn's number for servers.
pub(super) const BURST: usize = 10;
const _: () = assert!(BURST * PACKET as usize <= 65_507, "a burst is as large as a datagram can be");

/// Returns how connections to this address are carried.
pub(super) fn transport(peer: SocketAddr) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.max_concurrent_bidi_streams(STREAMS.into());
    // HTTP/3 needs a few unidirectional streams; the tty wire needs none.
    config.max_concurrent_uni_streams(16u32.into());
    config.stream_receive_window(STREAM_WINDOW.into());
    if peer.ip().is_loopback() {
        config.max_idle_timeout(None);
    } else {
        config.max_idle_timeout(IDLE.try_into().ok());
        config.keep_alive_interval(Some(ALIVE));
    }
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(PACKET);
    config.mtu_discovery_config(Some(discovery));
    Arc::new(config)
}

/// Returns how large datagrams may be.
pub(super) fn endpoint_config() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    // A size out of bounds leaves the default.
    let _ = config.max_udp_payload_size(PACKET);
    config
}

fn config(tls: rustls::ServerConfig, peer: SocketAddr) -> io::Result<quinn::ServerConfig> {
    let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(peer));
    Ok(config)
}

/// A port and the connections to it.
pub(super) struct Running {
    endpoint: quinn::Endpoint,
    at: SocketAddr,
}

impl Running {
    /// Returns the address.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Tells all clients that the server ends.
    pub(super) async fn stop(self) {
        self.endpoint.close(0u32.into(), b"the server ends");
        // A client that does not confirm in time notices by itself.
        let _ = timeout(GOODBYE, self.endpoint.wait_idle()).await;
    }
}

/// Serves a port on a thread of its own. A datagram passes through several tasks; on several
/// threads, each could wait for a thread to wake.
pub(super) fn listen(server: &Arc<Server>, address: SocketAddr, identity: &Identity) -> io::Result<Running> {
    let far: SocketAddr = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
    let near: SocketAddr = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let usual = config(identity.server_config(server.protocols())?, far)?;
    let local = Arc::new(config(identity.server_config(server.protocols())?, near)?);
    let socket = std::net::UdpSocket::bind(address)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let endpoint = {
        let _runtime = runtime.enter();
        quinn::Endpoint::new(endpoint_config(), Some(usual), socket, Arc::new(TokioRuntime))?
    };
    let running = Running { at: endpoint.local_addr()?, endpoint: endpoint.clone() };
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name("tapdeck-quic".into());
    thread.spawn(move || runtime.block_on(accept_all(&endpoint, &server, &local)))?;
    Ok(running)
}

async fn accept_all(endpoint: &quinn::Endpoint, server: &Arc<Server>, local: &Arc<quinn::ServerConfig>) {
    let admission = &server.admission;
    loop {
        admission.room().await;
        let Some(incoming) = endpoint.accept().await else { break };
        let peer = incoming.remote_address();
        // In a crowd, a client has to prove its address first, which costs no seat.
        if !incoming.remote_address_validated() && admission.is_crowded() {
            // The address may have been validated meanwhile, which is as good.
            let _ = incoming.retry();
            continue;
        }
        let Ok(seat) = admission.enter("quic", Some(peer)) else {
            incoming.refuse();
            continue;
        };
        let accepted = match peer.ip().is_loopback() {
            true => incoming.accept_with(Arc::clone(local)),
            false => incoming.accept(),
        };
        let Ok(connecting) = accepted else { continue };
        let server = Arc::clone(server);
        tokio::spawn(seat.clone().visit(async move {
            match timeout(seat.time_left(), connecting).await {
                Ok(Ok(connection)) => serve_connection(&server, &connection, &seat).await,
                Ok(Err(e)) => tracing::warn!(error = "handshake", why = %e, "refused"),
                Err(_) => tracing::warn!(error = "handshake", "refused"),
            }
        }));
    }
    endpoint.wait_idle().await;
}

/// Serves every stream of a connection, to the connection's end. Its sessions end with it.
async fn serve_connection(server: &Arc<Server>, connection: &quinn::Connection, seat: &Seat) {
    let who = Channel::of_quic(connection).map_or(Peer::Stranger, Peer::Bound);
    serve_streams(server, seat, who, connection.remote_address(), || connection.accept_bi()).await;
    connection.close(0u32.into(), b"");
}

/// Serves all streams, until no more can come or the peer is gone. Streams that are left end then.
pub(super) async fn serve_streams<A, F, W, R, E>(
    server: &Arc<Server>,
    seat: &Seat,
    who: Peer,
    peer: SocketAddr,
    accept: A,
) where
    A: Fn() -> F,
    F: Future<Output = Result<(W, R), E>>,
    W: AsyncWrite + Unpin + Send + 'static,
    R: AsyncRead + Unpin + Send + 'static,
{
    let mut streams = JoinSet::new();
    let gone = std::pin::pin!(port_watch::gone(peer));
    let all = async {
        loop {
            tokio::select! {
                accepted = accept() => {
                    let Ok((writer, reader)) = accepted else { return };
                    let (server, seat) = (Arc::clone(server), seat.clone());
                    streams.spawn(async move {
                        serve_stream_of(server, reader, writer, who, Some(&seat)).await;
                    });
                }
                Some(_) = streams.join_next() => {}
            }
        }
    };
    tokio::select! {
        () = gone => {}
        () = all => {}
    }
}

/// Returns a local address with any port from which this address can be reached.
pub(super) fn any(to: SocketAddr) -> SocketAddr {
    if to.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    }
}
