//! Addresses of servers: `unix:PATH`, or a transport with a host and a port.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// A network transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP with TLS: one session for each connection.
    Tls,
    /// QUIC: one session for each stream, many on a connection.
    Quic,
    /// A WebSocket in the clear, on this machine only: one session for each socket.
    Ws,
    /// A WebSocket over TLS.
    Wss,
    /// WebTransport, for browsers: one session for each stream.
    WebTransport,
}

const TRANSPORTS: [(&str, Transport); 5] = [
    ("tls", Transport::Tls),
    ("quic", Transport::Quic),
    ("ws", Transport::Ws),
    ("wss", Transport::Wss),
    ("wt", Transport::WebTransport),
];

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of a host.
    Net {
        /// The transport.
        transport: Transport,
        /// The host, by name or IP address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Why a text is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address: write unix:PATH, or tls://, quic://, wss://, ws:// or wt:// with HOST:PORT")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Endpoint::Unix(path.into())) };
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (_, transport) = TRANSPORTS.into_iter().find(|(name, _)| *name == scheme).ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong());
        }
        Ok(Endpoint::Net { transport, host: host.to_owned(), port: port.parse().map_err(|_| wrong())? })
    }
}

impl Endpoint {
    /// Resolves a host's name.
    pub(super) fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
        let none = || io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        if found.is_empty() { Err(none()) } else { Ok(found) }
    }

    /// Returns the address with another port.
    pub(super) fn with_port(&self, port: u16) -> Self {
        match self {
            Endpoint::Net { transport, host, .. } => {
                Endpoint::Net { transport: *transport, host: host.clone(), port }
            }
            unix => unix.clone(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
            Endpoint::Net { transport, host, port } => {
                let scheme = TRANSPORTS.iter().find(|(_, t)| t == transport).map_or("", |(name, _)| name);
                write!(f, "{scheme}://{}", authority(host, *port))
            }
        }
    }
}

/// Splits a host and a port.
pub(super) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_both_ways_and_nonsense_nowhere() {
        for text in [
            "unix:/run/x.sock",
            "tls://127.0.0.1:0",
            "quic://[::1]:4433",
            "wss://build.example:443",
            "ws://localhost:1",
            "wt://h:2",
        ] {
            assert_eq!(text.parse::<Endpoint>().map(|e| e.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("wss://h:1/".parse::<Endpoint>().map(|e| e.to_string()), Ok("wss://h:1".into()));
        for bad in [
            "",
            "unix:",
            "host:22",
            "tls://host",
            "tls://:1",
            "tls://h:99999",
            "http://h:1",
            "tls://a b:1",
            "tls://u@h:1",
            "quic://h:1/x",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
