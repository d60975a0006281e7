//! Whether whoever is at the other end of a datagram connection on this machine still lives. Their silence says nothing: a
//! client that its user has suspended is as silent as one that was killed. But a process that is gone has no port.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How often to look.
const GLANCE: Duration = Duration::from_millis(250);

/// Ready when nobody has this port of this machine any more; never for the port of another.
pub(super) async fn gone(peer: SocketAddr) {
    if !peer.ip().is_loopback() {
        return std::future::pending().await;
    }
    // Twice, because a port can be changed for another in between.
    let mut free = 0;
    while free < 2 {
        tokio::time::sleep(GLANCE).await;
        free = if is_free(peer) { free + 1 } else { 0 };
    }
}

fn is_free(port: SocketAddr) -> bool {
    // Whatever else may be wrong says nothing about them.
    UdpSocket::bind(port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_when_nobody_has_it() {
        for host in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(host) else { continue };
            let mut at = socket.local_addr().expect("bound");
            if at.ip().is_unspecified() {
                at.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
            }
            assert!(!is_free(at), "{host}");
            drop(socket);
            assert!(is_free(at), "{host}");
        }
    }
}
