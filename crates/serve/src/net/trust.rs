//! How a client verifies a server: by its fingerprint, given or seen before, or by a certificate
//! authority.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::identity::fingerprint;

/// What a client trusts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trust {
    /// The digest of the server's key.
    pub fingerprint: Option<String>,
    /// A file of certificate authorities, one of which signed the server's certificate.
    pub ca: Option<PathBuf>,
    /// The file with the fingerprints of servers seen before.
    pub known: PathBuf,
}

impl Trust {
    /// Trusts servers seen before, by the fingerprints in the default file.
    pub fn by_acquaintance() -> Self {
        let known = tapdeck_host::state_folder().join("known_servers");
        Self { fingerprint: None, ca: None, known }
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

    /// Sets the file with the fingerprints of servers seen before.
    #[must_use]
    pub fn known(mut self, known: PathBuf) -> Self {
        self.known = known;
        self
    }

    /// Returns what to expect of this server.
    pub(super) fn expect(&self, authority: &str) -> io::Result<Arc<Expected>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut expected = Expected {
            fingerprint: self.fingerprint.clone(),
            before: None,
            authorities: None,
            seen: Mutex::new(None),
            provider: Arc::clone(&provider),
        };
        if let Some(ca) = &self.ca {
            let wrong = |e: &dyn std::fmt::Display| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", ca.display()))
            };
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(ca).map_err(|e| wrong(&e))? {
                roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
            }
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            expected.authorities = Some(verifier.map_err(|e| wrong(&e))?);
        } else if self.fingerprint.is_none() {
            expected.before = known(&self.known, authority)?;
        }
        Ok(Arc::new(expected))
    }

    /// Returns what was wrong with the server's key, if that was the reason.
    pub(super) fn complaint(&self, authority: &str, expected: &Expected) -> Option<String> {
        let seen = expected.seen()?;
        if let Some(given) = expected.fingerprint.as_ref().filter(|f| **f != seen) {
            return Some(format!("the server at {authority} has the fingerprint {seen}, not {given}"));
        }
        let before = expected.before.as_ref().filter(|f| **f != seen)?;
        Some(format!(
            "the server at {authority} has another key than before ({seen}, it was {before}): the connection may be intercepted; if it was \
             changed on purpose, remove its line from {}",
            self.known.display()
        ))
    }

    /// Remembers a server that was seen for the first time. Returns a note about it.
    pub(super) fn remember(&self, authority: &str, expected: &Expected) -> io::Result<Option<String>> {
        let first = self.fingerprint.is_none() && self.ca.is_none() && expected.before.is_none();
        let Some(seen) = expected.seen().filter(|_| first) else { return Ok(None) };
        if let Some(folder) = self.known.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.known)?;
        file.write_all(format!("{authority} {seen}\n").as_bytes())?;
        Ok(Some(format!("{authority} is new here and will be known by {seen}")))
    }
}

/// Returns the fingerprint of a server seen before: the newest line about it.
fn known(path: &Path, authority: &str) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
    };
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    Ok(lines.filter(|(who, _)| *who == authority).map(|(_, print)| print.trim().to_owned()).next_back())
}

/// What is expected of one server, and what it showed.
#[derive(Debug)]
pub(super) struct Expected {
    fingerprint: Option<String>,
    before: Option<String>,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    seen: Mutex<Option<String>>,
    provider: Arc<CryptoProvider>,
}

impl Expected {
    fn seen(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        match self.fingerprint.as_ref().or(self.before.as_ref()) {
            Some(expected) if *expected != seen => {
                Err(rustls::Error::General("another key was expected".into()))
            }
            _ => Ok(ServerCertVerified::assertion()),
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
