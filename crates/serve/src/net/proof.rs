//! Proofs that a client has a token, without showing it.
//!
//! A token is the seed of an Ed25519 key, and the server keeps the public half. The client signs a
//! value that only the two ends of their TLS connection share (RFC 5705). A proof is worthless on
//! any other connection, so a server in the middle cannot pass it on, and it learns no token.
//! Neither proof nor public key let a thief log in.

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use tapdeck_core::WallTime;

use super::identity::PROVING;
use crate::client::ClientError;
use crate::conn::Conn;
use crate::tokens::{Token, Tokens, hex};

/// What tokens with a key begin with. A client never sends one to a server that it can prove it to.
pub(crate) const PREFIX: &str = "tdk_";

const LABEL: &[u8] = b"EXPORTER-tapdeck-token";
/// Begins everything that is signed, and keeps the key apart from the digest in the token file.
const DOMAIN: &[u8] = b"tapdeck-token-1\0";

/// A value that both ends of one TLS connection know, and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel([u8; 32]);

impl Channel {
    /// Returns the channel of a TLS connection; `None` before TLS 1.3.
    pub(super) fn of_tls<D>(tls: &rustls::ConnectionCommon<D>) -> Option<Self> {
        let is_new = tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        // QUIC has an empty context, which TLS 1.3 does not tell from none.
        let value = is_new.then(|| tls.export_keying_material([0; 32], LABEL, Some(b"")));
        value?.ok().map(Self)
    }

    /// Returns the channel of a QUIC connection at the server.
    pub(super) fn of_quic(connection: &quinn::Connection) -> Option<Self> {
        let mut value = [0; 32];
        connection.export_keying_material(&mut value, LABEL, b"").ok()?;
        Some(Self(value))
    }

    /// Returns the channel of a QUIC connection at a client without a runtime.
    pub(super) fn of_flow(session: &dyn quinn_proto::crypto::Session) -> Option<Self> {
        let mut value = [0; 32];
        session.export_keying_material(&mut value, LABEL, b"").ok()?;
        Some(Self(value))
    }

    fn message(&self) -> Vec<u8> {
        [DOMAIN, &self.0].concat()
    }
}

/// What a connection can carry of a token.
pub(crate) enum Carries {
    /// A proof, over this channel.
    Proof(Channel),
    /// A proof, if the server could check one.
    Nothing,
    /// The token: another end of TLS may be between, or there is none.
    Token,
}

impl Carries {
    /// Returns what a connection with this channel carries, if the server has agreed to `alpn`.
    pub(super) fn over(channel: Option<Channel>, alpn: Option<&[u8]>) -> Self {
        let agreed = channel.filter(|_| alpn == Some(PROVING));
        agreed.map_or(Self::Nothing, Self::Proof)
    }
}

/// Returns the token and the proof to put into a negotiation: one of them, or none.
pub(crate) fn credentials(
    conn: &Conn,
    token: Option<&str>,
) -> Result<(Option<String>, Option<String>), ClientError> {
    let Some(secret) = token.filter(|t| t.starts_with(PREFIX)) else {
        return Ok((token.map(str::to_owned), None));
    };
    match conn.carries() {
        Carries::Token => Ok((Some(secret.to_owned()), None)),
        Carries::Proof(channel) => Ok((None, Some(prove(secret, &channel)?))),
        Carries::Nothing => Err(ClientError::Denied(
            "the server cannot check this token without reading it, so it was not sent: the server \
             is of an older version, or not the one that made the token"
                .into(),
        )),
    }
}

fn pair(secret: &str) -> Option<Ed25519KeyPair> {
    let seed = Sha256::new().chain_update(DOMAIN).chain_update(secret).finalize();
    Ed25519KeyPair::from_seed_unchecked(&seed).ok()
}

/// Returns the public key of a token, in hexadecimal.
pub(crate) fn public_key(secret: &str) -> Option<String> {
    pair(secret).map(|pair| hex(pair.public_key().as_ref()))
}

fn prove(secret: &str, channel: &Channel) -> Result<String, ClientError> {
    let pair = pair(secret).ok_or(ClientError::Unfit("the token makes no key"))?;
    let signature = pair.sign(&channel.message());
    Ok(format!("{}:{}", hex(pair.public_key().as_ref()), hex(signature.as_ref())))
}

/// Returns the token that a proof is of, unless it has expired.
pub(super) fn find(tokens: &Tokens, proof: &str, channel: &Channel, now: WallTime) -> Option<Token> {
    let (key, signature) = proof.split_once(':')?;
    let token = tokens.with_key(key, now)?;
    let public = UnparsedPublicKey::new(&ED25519, unhex(key)?);
    public.verify(&channel.message(), &unhex(signature)?).ok().map(|()| token)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    // A number of one digit, or with a sign, would be read as well.
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_token_and_its_channel_alone() {
        let temp = tempfile::tempdir().expect("temp");
        let tokens = Tokens::at(temp.path().join("serve").join("tokens.json"));
        let add = |name| tokens.add(Some(name), vec![], WallTime::default(), None).expect("made");
        let ((token, secret), (_, other)) = (add("a"), add("b"));
        let (here, there) = (Channel([1; 32]), Channel([2; 32]));
        let proof = prove(&secret, &here).expect("a proof");
        let find = |proof: &str, channel| find(&tokens, proof, channel, WallTime::default());
        assert_eq!(find(&proof, &here), Some(token));
        assert_eq!(find(&proof, &there), None, "it was passed on");
        let (_, signature) = proof.split_once(':').expect("two parts");
        let of_other = public_key(&other).expect("a key");
        let unknown = public_key("tdk_x").expect("a key");
        for key in [of_other.as_str(), unknown.as_str(), "", "zz", "é"] {
            assert_eq!(find(&format!("{key}:{signature}"), &here), None, "{key}");
        }
        for wrong in ["", ":", &proof[..proof.len() - 1], &proof.replace(':', "")] {
            assert_eq!(find(wrong, &here), None, "{wrong}");
        }
        assert_eq!((unhex("0a00"), unhex("0a0"), unhex("0a+0")), (Some(vec![10, 0]), None, None));
        assert!(tokens.remove("a").expect("gone") && find(&proof, &here).is_none());
    }
}
