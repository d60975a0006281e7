//! Whether whoever is at the other end of a datagram connection on this machine still lives. Their silence says nothing: a
//! client that its user has suspended is as silent as one that was killed. But a process that is gone has no port.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How often to look.
const GLANCE: Duration = Duration::from_millis(250);

/// Ready when nobody has this port of this machine any more; never for the port of another.
pub(super) async fn gone(peer: SocketAddr) {
    if !peer.ip().is_loopback() {
        return std::future::pending().await;
    }
    let mut presence = Presence::new(peer, tokio::time::Instant::now().into_std());
    loop {
        tokio::time::sleep_until(presence.next_look().into()).await;
        if presence.is_gone(tokio::time::Instant::now().into_std()) {
            return;
        }
    }
}

/// What is known of one who has a port of this machine.
#[derive(Debug)]
pub(super) struct Presence {
    port: SocketAddr,
    next_look: Instant,
    /// Looks in a row that found nobody.
    missed: u8,
}

impl Presence {
    pub(super) fn new(port: SocketAddr, now: Instant) -> Self {
        Self { port, next_look: now + GLANCE, missed: 0 }
    }

    /// When to ask again.
    pub(super) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks if it is time to, and says whether nobody is there any more.
    pub(super) fn is_gone(&mut self, now: Instant) -> bool {
        if now >= self.next_look {
            self.next_look = now + GLANCE;
            self.missed = if is_free(self.port) { self.missed + 1 } else { 0 };
        }
        // Twice, because a port can be changed for another in between.
        self.missed >= 2
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
