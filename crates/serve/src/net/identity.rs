//! The identity of a server: a key and a certificate, made on first use or given by the user.
//!
//! Clients know a server by the digest of its public key, so that the certificate can be renewed
//! without a warning. Browsers accept a certificate by its hash only if it is valid for at most two
//! weeks.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};
use tapdeck_core::WallTime;
use tapdeck_host::{Clock, OutFile, calendar, registry};

use crate::tokens::hex;

/// The protocols, for listeners that offer several on one port.
pub(super) const ALPN: &[u8] = b"alknet/tty";
/// The same protocol at a server that checks proofs of tokens.
pub(super) const PROVING: &[u8] = b"alknet/tty-proof";

const DAY: Duration = Duration::from_secs(86_400);

/// A key and a certificate.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    fingerprint: String,
    /// The key pair of a certificate that was made here.
    own: Option<KeyPair>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// The certificate's names: those of this machine on this machine.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Identity {
    /// Reads the identity in this folder, and makes it if there is none.
    pub fn own(folder: &Path) -> io::Result<Self> {
        registry::private_folder(folder)?;
        let path = folder.join("key.pem");
        let pair = match fs::read_to_string(&path) {
            Ok(_) if fs::metadata(&path)?.mode() & 0o077 != 0 => {
                let what = format!("other users can read this key; run chmod 600 {}", path.display());
                return Err(wrong(&path, &what));
            }
            Ok(text) => KeyPair::from_pem(&text).map_err(|e| wrong(&path, &e))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let pair = KeyPair::generate().map_err(io::Error::other)?;
                // Two processes may start at once: the first one's identity stays.
                match keep(&path, &pair.serialize_pem()) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Self::own(folder),
                    kept => kept?,
                }
                pair
            }
            Err(e) => return Err(e),
        };
        let params = params()?;
        let certificate = params.self_signed(&pair).map_err(io::Error::other)?;
        let key = PrivateKeyDer::try_from(pair.serialize_der()).map_err(io::Error::other)?;
        let fingerprint = fingerprint_of_key(&pair.subject_public_key_info());
        Ok(Self { chain: vec![certificate.der().clone()], key, fingerprint, own: Some(pair) })
    }

    /// Reads the user's own: a chain of certificates and the key of the first.
    pub fn from_files(chain: &Path, key: &Path) -> io::Result<Self> {
        let certificates = CertificateDer::pem_file_iter(chain).map_err(|e| wrong(chain, &e))?;
        let certificates: Result<Vec<_>, _> = certificates.collect();
        let certificates = certificates.map_err(|e| wrong(chain, &e))?;
        let Some(first) = certificates.first() else {
            return Err(wrong(chain, &"there is no certificate in it"));
        };
        let fingerprint = fingerprint(first).map_err(|e| wrong(chain, &e))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, &e))?;
        let this = Self { chain: certificates, key: secret, fingerprint, own: None };
        // Check it now: in use, it would fail for one address or another.
        let unfit =
            |e: io::Error| wrong(chain, &format!("it does not go with the key in {}: {e}", key.display()));
        this.server_config(&[]).map_err(unfit)?;
        Ok(this)
    }

    /// Returns the fingerprint by which clients know it: the digest of its public key.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub(super) fn server_config(&self, alpn: &[&[u8]]) -> io::Result<rustls::ServerConfig> {
        config(self.chain.clone(), self.key.clone_key(), alpn)
    }

    /// Returns the configuration for browsers that know the certificate by its hash, and the hash
    /// if the certificate was made here.
    pub(super) fn browser_config(
        &self,
        alpn: &[&[u8]],
    ) -> io::Result<(rustls::ServerConfig, Option<String>)> {
        let Some(pair) = &self.own else { return Ok((self.server_config(alpn)?, None)) };
        let now = Clock::start().wall_start();
        let mut params = params()?;
        let (year, month, day) = date(now - DAY)?;
        params.not_before = rcgen::date_time_ymd(year, month, day);
        let (year, month, day) = date(now + 12 * DAY)?;
        params.not_after = rcgen::date_time_ymd(year, month, day);
        let certificate = params.self_signed(pair).map_err(io::Error::other)?;
        let hash = hex(&Sha256::digest(certificate.der()));
        Ok((config(vec![certificate.der().clone()], self.key.clone_key(), alpn)?, Some(hash)))
    }
}

fn params() -> io::Result<CertificateParams> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    if !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)) {
        names.push(host);
    }
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "tapdeck");
    Ok(params)
}

/// Returns the year, month and day of a time.
fn date(at: WallTime) -> io::Result<(i32, u8, u8)> {
    let text = calendar(at);
    let part = |range| text.get(range).and_then(|t: &str| t.parse::<u16>().ok());
    let found = part(0..4).zip(part(4..6)).zip(part(6..8));
    let ((year, month), day) = found.ok_or_else(|| io::Error::other("the clock is wrong"))?;
    let narrow = |n: u16| u8::try_from(n).unwrap_or(1);
    Ok((i32::from(year), narrow(month), narrow(day)))
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> io::Result<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = builder.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
    Ok(config)
}

/// Writes a secret atomically.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OutFile::create(path, false)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
}

/// Returns the digest of a certificate's public key.
pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    Ok(fingerprint_of_key(&ParsedCertificate::try_from(certificate)?.subject_public_key_info()))
}

fn fingerprint_of_key(spki: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(spki)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_once_and_known_by_its_key() {
        let temp = tempfile::tempdir().expect("temp");
        let folder = temp.path().join("serve");
        let first = Identity::own(&folder).expect("made");
        let again = Identity::own(&folder).expect("kept");
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_eq!(fingerprint(&first.chain[0]).expect("a certificate"), first.fingerprint());
        let (_, hash) = first.browser_config(&[]).expect("a short one");
        assert_eq!(hash.map(|h| h.len()), Some(64));
        let mode = fs::metadata(folder.join("key.pem")).expect("there").permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        fs::write(folder.join("key.pem"), "nonsense").expect("written");
        assert!(Identity::own(&folder).is_err_and(|e| e.to_string().contains("key.pem")));
    }
}
