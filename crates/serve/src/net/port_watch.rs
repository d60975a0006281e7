//! Whether the peer of a datagram connection on this machine still lives. Silence does not tell: a
//! client that its user has suspended is as silent as one that was killed. But a process that is
//! gone has no port.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How often to check.
const GLANCE: Duration = Duration::from_millis(250);

/// Completes once no process has this port of this machine; never for a port of another machine.
pub(super) async fn gone(peer: SocketAddr) {
    if !peer.ip().is_loopback() {
        return std::future::pending().await;
    }
    let mut port_watch = PortWatch::new(peer, tokio::time::Instant::now().into_std());
    loop {
        tokio::time::sleep_until(port_watch.next_look().into()).await;
        if port_watch.is_gone(tokio::time::Instant::now().into_std()) {
            return;
        }
    }
}

/// Watches whether a process has a port of this machine.
#[derive(Debug)]
pub(super) struct PortWatch {
    port: SocketAddr,
    next_look: Instant,
    /// Checks in a row that found the port free.
    missed: u8,
}

impl PortWatch {
    pub(super) fn new(port: SocketAddr, now: Instant) -> Self {
        Self { port, next_look: now + GLANCE, missed: 0 }
    }

    /// Returns when to check again.
    pub(super) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Checks if it is time to. Returns whether the peer is gone.
    pub(super) fn is_gone(&mut self, now: Instant) -> bool {
        if now >= self.next_look {
            self.next_look = now + GLANCE;
            self.missed = if is_free(self.port) { self.missed + 1 } else { 0 };
        }
        // Twice, because a client may change its port in between.
        self.missed >= 2
    }
}

fn is_free(port: SocketAddr) -> bool {
    // Any other error tells nothing about the peer.
    UdpSocket::bind(port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_when_no_process_has_it() {
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
