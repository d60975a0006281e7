//! The page of a server: for those whose token lets them watch or drive.

use std::sync::Arc;

use tapdeck_serve::net::{Endpoint, Server, Site};

/// The page at this address, if there is one in this build.
#[cfg(feature = "web")]
pub(super) fn make(at: &Endpoint, names: &[String], players: &[String], server: Arc<Server>) -> Option<Site> {
    use tapdeck_host::{Clock, state_folder};
    use tapdeck_serve::net::Transport;
    use tapdeck_serve::tokens::Scope;
    use tapdeck_serve::web::{Scope as Sight, SiteOptions};

    let Endpoint::Net { transport, host, port } = at else { return None };
    let mut hosts: Vec<String> = [host.as_str(), "127.0.0.1", "localhost"]
        .iter()
        .map(|h| if h.contains(':') { format!("[{h}]:{port}") } else { format!("{h}:{port}") })
        .collect();
    hosts.extend(names.iter().cloned());
    let (clock, tokens) = (Clock::start(), Arc::clone(&server));
    Some(Site::new(SiteOptions {
        hosts,
        secure: *transport == Transport::Wss,
        check: Box::new(move |secret| {
            let token = tokens.tokens().find(secret, clock.now().wall_ns)?;
            let sight = [
                (&[Scope::Open, Scope::Attach][..], Sight::Open),
                (&[Scope::Attach], Sight::Attach),
                (&[Scope::Observe], Sight::Observe),
            ];
            let allows = |scopes: &[Scope]| scopes.iter().all(|scope| token.allows(*scope));
            sight.into_iter().find(|(scopes, _)| allows(scopes)).map(|(_, sight)| sight)
        }),
        recordings: Some(state_folder().join("recordings")),
        start: None,
        players: players.to_vec(),
        tty: Some(server),
    }))
}

#[cfg(not(feature = "web"))]
pub(super) fn make(_: &Endpoint, _: &[String], _: &[String], _: Arc<Server>) -> Option<Site> {
    None
}
