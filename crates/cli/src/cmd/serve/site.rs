//! The page of a server, for clients with a token to watch or drive.

use std::sync::Arc;

use tapdeck_serve::net::{Endpoint, Server, Site};

use super::ServeArgs;
use crate::config::Config;

/// The page at this address, if there is one in this build.
#[cfg(feature = "web")]
pub(super) fn make(at: &Endpoint, config: &Config, args: &ServeArgs, server: Arc<Server>) -> Option<Site> {
    use tapdeck_host::Clock;
    use tapdeck_serve::net::Transport;
    use tapdeck_serve::web::SiteOptions;

    use crate::keys::IdentityArgs;

    let Endpoint::Net { transport, host, port } = at else { return None };
    let hosts = [host.as_str(), "127.0.0.1", "localhost"]
        .iter()
        .map(|h| if h.contains(':') { format!("[{h}]:{port}") } else { format!("{h}:{port}") })
        .collect();
    let (clock, tokens) = (Clock::start(), Arc::clone(&server));
    let check = move |secret: &str| Some(tokens.tokens().find(secret, clock.now().wall)?.authority());
    let options = SiteOptions::new(check)
        .hosts(hosts)
        .names(args.host.clone())
        .secure(*transport == Transport::Wss)
        .recordings(config.recordings_folder())
        .player(crate::cmd::page_player::command(&IdentityArgs::default()))
        .players(args.player.clone())
        // Reading the configuration has checked the theme.
        .themes(crate::cmd::web::themes(config, None).unwrap_or_default())
        .tty(server);
    #[cfg(feature = "mcp")]
    let options = options.mcp(args.mcp.server(config.recordings_folder(), &IdentityArgs::default()));
    Some(Site::new(options))
}

/// The link to the page at this address, with a token in the place of `TOKEN`.
#[cfg(feature = "web")]
pub(super) fn link(at: &Endpoint, names: &[String]) -> Option<String> {
    use std::net::IpAddr;
    use tapdeck_serve::net::Transport;

    let Endpoint::Net { transport, host, port } = at else { return None };
    let scheme = match transport {
        Transport::Ws => "http",
        Transport::Wss => "https",
        _ => return None,
    };
    let place = match (names.first(), host.parse()) {
        // The name that the user gives it is how it is reached; without TLS it is that of a proxy,
        // of which nothing is known.
        (Some(name), _) if *transport == Transport::Wss => name.clone(),
        (_, Ok(IpAddr::V6(ip))) if !ip.is_unspecified() => format!("[{ip}]:{port}"),
        (_, Ok(ip)) if ip.is_unspecified() => format!("localhost:{port}"),
        _ => format!("{host}:{port}"),
    };
    Some(format!("{scheme}://{place}/#token=TOKEN"))
}

#[cfg(not(feature = "web"))]
pub(super) fn link(_: &Endpoint, _: &[String]) -> Option<String> {
    None
}

#[cfg(not(feature = "web"))]
pub(super) fn make(_: &Endpoint, _: &Config, _: &ServeArgs, _: Arc<Server>) -> Option<Site> {
    None
}

#[cfg(all(test, feature = "web"))]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_told_where_to_go() {
        let cases = [
            ("ws://127.0.0.1:8080", None, Some("http://127.0.0.1:8080")),
            ("wss://0.0.0.0:8443", None, Some("https://localhost:8443")),
            ("wss://[::]:8443", None, Some("https://localhost:8443")),
            ("wss://[::1]:8443", None, Some("https://[::1]:8443")),
            ("wss://0.0.0.0:8443", Some("deck.example"), Some("https://deck.example")),
            ("ws://127.0.0.1:8080", Some("deck.example"), Some("http://127.0.0.1:8080")),
            ("tls://127.0.0.1:4433", None, None),
            ("unix:/run/tty.sock", None, None),
        ];
        for (at, name, expected) in cases {
            let names: Vec<String> = name.into_iter().map(str::to_owned).collect();
            let expected = expected.map(|place| format!("{place}/#token=TOKEN"));
            assert_eq!(link(&at.parse().expect("an address"), &names), expected, "{at} {name:?}");
        }
    }
}
