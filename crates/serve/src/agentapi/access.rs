//! Which host names and web pages are served. Host names keep out pages whose name was made to
//! point here (DNS rebinding); origins keep out other pages.

use axum::http::{HeaderMap, header};

/// Allowed host names and origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// A host name or an origin that cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// There is none.
    #[error("the list of allowed {0} is empty")]
    Empty(&'static str),
    /// It holds a separator.
    #[error("{0:?} has a blank or a comma in it; separate names by commas, in the environment by blanks")]
    Separator(String),
    /// A host name with a scheme.
    #[error("the host {0:?} must not begin with http:// or https://")]
    Scheme(String),
    /// A host name with a port.
    #[error("the host {0:?} must not have a port")]
    Port(String),
    /// It is no origin.
    #[error("the origin {0:?} must be like http://localhost:3000")]
    NoOrigin(String),
}

impl Access {
    /// The hosts that agentapi allows by default.
    pub const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
    /// The origins that agentapi allows by default.
    pub const ORIGINS: [&str; 3] =
        ["http://localhost:3284", "http://localhost:3000", "http://localhost:3001"];

    /// Allows these host names, without ports, and these origins. `*` allows all.
    ///
    /// # Errors
    /// When a list is empty or has an entry that is no host name or origin.
    pub fn new(hosts: &[String], origins: &[String]) -> Result<Self, AccessError> {
        check("hosts", hosts)?;
        check("origins", origins)?;
        let hosts = hosts.iter().map(|host| parse_host(host)).collect::<Result<_, _>>()?;
        let origins = origins.iter().map(|origin| parse_origin(origin)).collect::<Result<_, _>>()?;
        Ok(Self { hosts, origins })
    }

    /// Returns whether a request names a host that is allowed. The port is ignored.
    pub(super) fn allows_host(&self, headers: &HeaderMap) -> bool {
        if self.hosts.iter().any(|host| host == "*") {
            return true;
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next().and_then(|h| h.to_str().ok()), hosts.next()) else {
            return false;
        };
        let name = host_name(host);
        self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    /// Returns the origin to answer to: `None` for a request without one, an error for a page that
    /// is not allowed.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Result<Option<String>, ()> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(None),
            (Some(origin), None) => {
                let origin = origin.to_str().map_err(drop)?;
                self.origins.iter().find_map(|allowed| answer_to(allowed, origin)).map(Some).ok_or(())
            }
            _ => Err(()),
        }
    }

    /// Returns the allowed hosts, for people.
    pub(super) fn hosts(&self) -> String {
        self.hosts.join(", ")
    }
}

/// agentapi's defaults.
impl Default for Access {
    fn default() -> Self {
        let host = |host: &str| host.trim_matches(['[', ']']).to_owned();
        Self { hosts: Self::HOSTS.map(host).into(), origins: Self::ORIGINS.map(str::to_owned).into() }
    }
}

fn check(what: &'static str, list: &[String]) -> Result<(), AccessError> {
    if list.is_empty() {
        return Err(AccessError::Empty(what));
    }
    let separated =
        |item: &&String| item.contains(|c: char| c.is_whitespace() || c == ',') || item.is_empty();
    list.iter().find(separated).map_or(Ok(()), |item| Err(AccessError::Separator(item.clone())))
}

fn parse_host(host: &str) -> Result<String, AccessError> {
    if host.contains("://") {
        return Err(AccessError::Scheme(host.to_owned()));
    }
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Ok(address.to_owned());
    }
    // A bare IPv6 address has more than one colon.
    if host.matches(':').count() == 1 || host.contains(']') {
        return Err(AccessError::Port(host.to_owned()));
    }
    Ok(host.to_owned())
}

fn parse_origin(origin: &str) -> Result<String, AccessError> {
    if origin == "*" {
        return Ok(origin.to_owned());
    }
    let no_origin = || AccessError::NoOrigin(origin.to_owned());
    let (scheme, rest) = origin.split_once("://").ok_or_else(no_origin)?;
    let host = rest.split('/').next().unwrap_or_default();
    if scheme.is_empty() || host.is_empty() {
        return Err(no_origin());
    }
    Ok(format!("{scheme}://{host}"))
}

/// Returns a `Host` without its port.
fn host_name(host: &str) -> &str {
    if let Some(address) = host.strip_prefix('[') {
        return address.split(']').next().unwrap_or_default();
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Returns what to answer to an origin that this entry allows; one `*` in it stands for anything.
fn answer_to(allowed: &str, origin: &str) -> Option<String> {
    if allowed == "*" {
        return Some("*".to_owned());
    }
    let (allowed, lower) = (allowed.to_ascii_lowercase(), origin.to_ascii_lowercase());
    let fits = match allowed.split_once('*') {
        Some((head, tail)) => {
            lower.len() >= head.len() + tail.len() && lower.starts_with(head) && lower.ends_with(tail)
        }
        None => allowed == lower,
    };
    fits.then(|| origin.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("a value"))])
    }

    #[test]
    fn hosts_and_origins_are_those_of_agentapi_by_default() {
        let access = Access::default();
        for host in ["localhost", "LOCALHOST:3284", "127.0.0.1:1", "[::1]:3284", "[::1]"] {
            assert!(access.allows_host(&headers(header::HOST, host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:3284", "127.0.0.2", "[::2]", ""] {
            assert!(!access.allows_host(&headers(header::HOST, host)), "{host}");
        }
        let origin = |origin: &str| access.origin(&headers(header::ORIGIN, origin));
        assert_eq!(origin("http://localhost:3000"), Ok(Some("http://localhost:3000".into())));
        for other in ["http://localhost", "https://localhost:3284", "null", "http://evil.example"] {
            assert_eq!(origin(other), Err(()), "{other}");
        }
        assert_eq!(access.origin(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn lists_are_checked() {
        let new = |hosts: &[&str], origins: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            Access::new(&own(hosts), &own(origins))
        };
        let origins = ["http://a.example"];
        assert!(matches!(new(&[], &origins), Err(AccessError::Empty("hosts"))));
        assert!(matches!(new(&["a b"], &origins), Err(AccessError::Separator(_))));
        assert!(matches!(new(&["http://a"], &origins), Err(AccessError::Scheme(_))));
        assert!(matches!(new(&["a:80"], &origins), Err(AccessError::Port(_))));
        assert!(matches!(new(&["[::1]:80"], &origins), Err(AccessError::Port(_))));
        assert!(matches!(new(&["a"], &["a.example"]), Err(AccessError::NoOrigin(_))));
        let wide = new(&["*"], &["https://*.example"]).expect("lists");
        assert!(wide.allows_host(&headers(header::HOST, "any:1")));
        let origin = |origin: &str| wide.origin(&headers(header::ORIGIN, origin)).is_ok();
        assert!(origin("https://a.example") && !origin("http://a.example") && !origin("https://.exampl"));
    }
}
