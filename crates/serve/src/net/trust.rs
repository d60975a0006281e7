//! How a client verifies a server: by its fingerprint, given or seen before, or by a certificate
//! authority.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tapdeck_host::{OutFile, disk};

use tapdeck_host::backend::NewHost;

use super::identity::fingerprint;
use crate::client::ClientError;

/// What a client trusts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trust {
    /// The digest of the server's key.
    pub fingerprint: Option<String>,
    /// A file of certificate authorities, one of which signed the server's certificate.
    pub ca: Option<PathBuf>,
    /// The file with the fingerprints of hosts seen before.
    pub known: PathBuf,
    /// Trust a host that shows its key for the first time, and remember the key. With a
    /// fingerprint, only that key is trusted and remembered.
    pub accept_new: bool,
}

impl Trust {
    /// Trusts hosts seen before, by the fingerprints in the default file.
    pub fn by_acquaintance() -> Self {
        let known = tapdeck_host::state_folder().join("known_servers");
        Self { fingerprint: None, ca: None, known, accept_new: false }
    }

    /// Trusts only the server whose key has this digest.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: impl Into<Option<String>>) -> Self {
        self.fingerprint = fingerprint.into();
        self
    }

    /// Trusts servers whose certificate an authority in this file has signed.
    #[must_use]
    pub fn ca(mut self, ca: impl Into<Option<PathBuf>>) -> Self {
        self.ca = ca.into();
        self
    }

    /// Sets the file with the fingerprints of hosts seen before.
    #[must_use]
    pub fn known(mut self, known: PathBuf) -> Self {
        self.known = known;
        self
    }

    /// Sets whether new hosts are trusted and remembered.
    #[must_use]
    pub fn accept_new(mut self, accept_new: bool) -> Self {
        self.accept_new = accept_new;
        self
    }

    /// Returns what to expect of this host.
    pub(super) fn expect(&self, host: &str) -> io::Result<Arc<Expected>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = match &self.ca {
            Some(ca) => Some(authorities(ca, &provider)?),
            None => None,
        };
        Ok(Arc::new(Expected {
            fingerprint: self.fingerprint.clone(),
            known: known(&self.known, host)?,
            accept_new: self.accept_new,
            authorities,
            seen: Mutex::new(None),
            provider,
        }))
    }

    /// Returns what is wrong with the server's key, if that was why the connection failed.
    pub(super) fn complaint(&self, host: &str, expected: &Expected) -> Option<ClientError> {
        let seen = expected.seen()?;
        if expected.trusts(&seen) {
            return None;
        }
        Some(match (&expected.fingerprint, expected.known.last()) {
            (Some(given), _) => {
                ClientError::Denied(format!("{host} has the fingerprint {seen}, not {given}"))
            }
            (None, Some(before)) => ClientError::Denied(format!(
                "{host} has another key than before ({seen}, it was {before}): the connection may be \
                 intercepted; if it was changed on purpose, remove its line from {}",
                self.known.display()
            )),
            (None, None) => ClientError::NewHost(NewHost { name: host.to_owned(), fingerprint: seen }),
        })
    }

    /// Adds a line to the servers that are known. Half a line would be taken for another key, so
    /// the file is replaced as a whole.
    fn keep(&self, line: &str) -> io::Result<()> {
        let folder = self.known.parent().unwrap_or(Path::new("."));
        disk::create_folders(folder)?;
        let lock = fs::File::open(folder)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut text = match fs::read_to_string(&self.known) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        text.push_str(line);
        OutFile::replace(&self.known, text.as_bytes())
    }

    /// Remembers the key of a new host. Returns a note about it.
    pub(super) fn remember(&self, host: &str, expected: &Expected) -> io::Result<Option<String>> {
        let is_new = |seen: &String| self.accept_new && self.ca.is_none() && !expected.known.contains(seen);
        let Some(seen) = expected.seen().filter(is_new) else { return Ok(None) };
        let failed = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", self.known.display()));
        self.keep(&format!("{} {seen}\n", host_name(host))).map_err(failed)?;
        Ok(Some(format!("{host} is new and will be known by {seen}")))
    }
}

/// Reads certificate authorities.
fn authorities(ca: &Path, provider: &Arc<CryptoProvider>) -> io::Result<Arc<WebPkiServerVerifier>> {
    let wrong = |e: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", ca.display()))
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|e| wrong(&e))? {
        roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    verifier.build().map_err(|e| wrong(&e))
}

/// Returns the keys of a host, which hold for all its ports and transports. A line is a host and a
/// fingerprint; older versions wrote the port too.
fn known(path: &Path, host: &str) -> io::Result<Vec<String>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
    };
    let host = host_name(host);
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    let about_it = lines.filter(|(name, _)| host_name(name) == host || host_name(without_port(name)) == host);
    Ok(about_it.map(|(_, print)| print.trim().to_owned()).collect())
}

/// Returns the host of `HOST:PORT` or `[HOST]:PORT`. An IPv6 address without a port stays as it is.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, _)) if !host.contains(':') => host,
        Some((host, _)) => host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(authority),
        None => authority,
    }
}

/// Returns the name by which a host is known: case and a final dot make no difference.
fn host_name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// What is expected of one host, and what it showed.
#[derive(Debug)]
pub(super) struct Expected {
    fingerprint: Option<String>,
    known: Vec<String>,
    accept_new: bool,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    seen: Mutex<Option<String>>,
    provider: Arc<CryptoProvider>,
}

impl Expected {
    fn seen(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a key is the one given or known, or may be a new one.
    fn trusts(&self, seen: &String) -> bool {
        match &self.fingerprint {
            Some(given) => given == seen,
            None if self.authorities.is_some() => true,
            None if self.known.is_empty() => self.accept_new,
            None => self.known.contains(seen),
        }
    }

    /// Returns the TLS configuration of a client that expects this.
    pub(super) fn client_config(self: &Arc<Self>, alpn: &[&[u8]]) -> io::Result<rustls::ClientConfig> {
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let verifier: Arc<dyn ServerCertVerifier> = Arc::clone(self) as _;
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
        Ok(config)
    }
}

impl ServerCertVerifier for Expected {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let seen = fingerprint(end_entity)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen.clone());
        if let Some(authorities) = &self.authorities {
            authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        }
        // Nothing is sent to a server that is not trusted: its handshake fails here.
        match self.trusts(&seen) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General("the server's key is not trusted".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each port and transport had a pin of its own, so each trusted another key on first use.
    #[test]
    fn a_key_is_known_for_all_ports_of_its_host() {
        let temp = tempfile::tempdir().expect("temp");
        let path = temp.path().join("known_servers");
        assert!(known(&path, "a").expect("no file yet").is_empty());
        let text =
            "a sha256:1\nold:4433 sha256:2\n[fe80::1]:1 sha256:3\n\nA. sha256:4\nfe80::2 sha256:5\nx\n";
        fs::write(&path, text).expect("written");
        let keys = |host| known(&path, host).expect("read").join(" ");
        assert_eq!(keys("a"), "sha256:1 sha256:4");
        assert_eq!(keys("OLD"), "sha256:2", "a line of an older version");
        assert_eq!(keys("fe80::1"), "sha256:3");
        assert_eq!(keys("fe80::2"), "sha256:5");
        assert_eq!(keys("fe80"), "");
        assert_eq!(keys("4433"), "");
    }
}
