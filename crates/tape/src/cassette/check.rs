//! Small checks and spellings that all files of a cassette share.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal.
pub fn digest_hex(bytes: &[u8]) -> String {
    let mut digest = Digester::default();
    digest.update(bytes);
    digest.finish()
}

/// SHA-256 in hexadecimal, of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all pieces.
    pub fn finish(self) -> String {
        let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
        self.0.finalize().iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
    }
}

/// Whether a text is a UUID in its usual spelling.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// An object as the files of a cassette hold it: indented, with a line end.
pub(crate) fn pretty(value: &impl Serialize) -> Vec<u8> {
    // Our own types have text keys and no failing serialiser.
    let mut out = serde_json::to_vec_pretty(value).unwrap_or_default();
    out.push(b'\n');
    out
}
