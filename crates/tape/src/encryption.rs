//! Encryption of recordings in the format of age (age-encryption.org/v1).
//!
//! Each block is encrypted by itself, to all recipients, so an encrypted recording is appended to,
//! survives a crash and can be read from any place like any other. A recorder needs only the public
//! keys. Readers need an identity: those given to [`add_identities`] hold for the whole process, as
//! the keys in an agent do, because every reader of a recording may meet an encrypted one.

use std::fmt;
#[cfg(feature = "encrypt")]
use std::sync::{PoisonError, RwLock};

#[cfg(feature = "encrypt")]
use age::secrecy::SecretString;
#[cfg(feature = "encrypt")]
use age::{scrypt, x25519};

#[cfg(feature = "encrypt")]
use crate::ahr::encrypted_block;

/// The first bytes of a message in the format of age.
#[cfg(feature = "encrypt")]
const ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
#[cfg(feature = "encrypt")]
const MESSAGE: &[u8] = b"age-encryption.org/v1\n";

/// Keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A line is no key.
    #[error("line {line} is no {wanted}")]
    NotAKey {
        /// Which line, from 1.
        line: usize,
        /// What it should be.
        wanted: &'static str,
    },
    /// There is no key.
    #[error("there is no key in it")]
    NoKey,
    /// The file is encrypted with a passphrase.
    #[error("it is protected by a passphrase")]
    Protected,
    /// The passphrase is wrong, or the file is damaged.
    #[error("the passphrase is wrong, or the file is damaged")]
    WrongPassphrase,
    /// The program was built without encryption.
    #[error("this build cannot encrypt: its feature `encrypt` is off")]
    NotBuilt,
}

/// The public keys that a recording is encrypted to.
#[derive(Clone)]
pub struct Recipients {
    #[cfg(feature = "encrypt")]
    keys: Vec<x25519::Recipient>,
}

impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipients").finish_non_exhaustive()
    }
}

/// The public keys, one a line, as [`Recipients::parse`] reads them.
impl fmt::Display for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "encrypt")]
        for key in &self.keys {
            writeln!(f, "{key}")?;
        }
        #[cfg(not(feature = "encrypt"))]
        let _ = f;
        Ok(())
    }
}

/// A failed encryption: the system gave no random numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the block could not be encrypted: {0}")]
pub struct EncryptionFailed(String);

#[cfg(feature = "encrypt")]
impl Recipients {
    /// Reads public keys (`age1…`), one a line. Blank lines and comments (`#`) are skipped. Of an
    /// identity (`AGE-SECRET-KEY-1…`), the public key is taken, so that a file of `age-keygen`
    /// does, too.
    ///
    /// # Errors
    /// When a line is no key, or there is none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let wanted = "age public key (age1…)";
        let keys = keys(text, wanted, |line| match line.parse::<x25519::Identity>() {
            Ok(identity) => Some(identity.to_public()),
            Err(_) => line.parse().ok(),
        })?;
        Ok(Self { keys })
    }

    /// Encrypts a finished block of a recording. `end_off` is how much the program had written at
    /// its end: a recorder that continues the file learns it without a key.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn encrypt_block(&self, block: &[u8], end_off: u64) -> Result<Vec<u8>, EncryptionFailed> {
        let failed = |e: &dyn fmt::Display| EncryptionFailed(e.to_string());
        let recipients = self.keys.iter().map(|key| key as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(|e| failed(&e))?;
        let mut message = Vec::with_capacity(block.len() + 512);
        let mut writer = encryptor.wrap_output(&mut message).map_err(|e| failed(&e))?;
        std::io::Write::write_all(&mut writer, block).map_err(|e| failed(&e))?;
        writer.finish().map_err(|e| failed(&e))?;
        encrypted_block(block, &message, end_off).ok_or_else(|| failed(&"it is no block"))
    }
}

/// Without encryption, there are no keys.
#[cfg(not(feature = "encrypt"))]
mod absent {
    use super::{EncryptionFailed, KeyError, Recipients};

    impl Recipients {
        /// Fails: this build has no encryption.
        pub fn parse(_text: &str) -> Result<Self, KeyError> {
            Err(KeyError::NotBuilt)
        }

        /// Fails: this build has no encryption.
        pub fn encrypt_block(&self, _block: &[u8], _end_off: u64) -> Result<Vec<u8>, EncryptionFailed> {
            Err(EncryptionFailed(KeyError::NotBuilt.to_string()))
        }
    }

    /// Fails: this build has no encryption.
    pub fn add_identities(_file: &[u8], _passphrase: Option<&str>) -> Result<(), KeyError> {
        Err(KeyError::NotBuilt)
    }

    pub(crate) fn decrypt(_message: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(not(feature = "encrypt"))]
pub use absent::add_identities;
#[cfg(not(feature = "encrypt"))]
pub(crate) use absent::decrypt;

/// The keys of this process.
#[cfg(feature = "encrypt")]
static IDENTITIES: RwLock<Vec<x25519::Identity>> = RwLock::new(Vec::new());

/// Lets this process read recordings that are encrypted to these identities
/// (`AGE-SECRET-KEY-1…`, one a line, as `age-keygen` writes them). The bytes may be protected by a
/// passphrase.
///
/// # Errors
/// [`KeyError::Protected`] when a passphrase is needed and none is given; otherwise when a line is
/// no identity, there is none, or the passphrase is wrong.
#[cfg(feature = "encrypt")]
pub fn add_identities(file: &[u8], passphrase: Option<&str>) -> Result<(), KeyError> {
    let (mut bare, opened);
    let file = if file.starts_with(ARMOR) {
        bare = Vec::new();
        let mut reader = age::armor::ArmoredReader::new(file);
        std::io::Read::read_to_end(&mut reader, &mut bare).map_err(|_| KeyError::WrongPassphrase)?;
        &bare[..]
    } else {
        file
    };
    let text = match (file.starts_with(MESSAGE), passphrase) {
        (false, _) => file,
        (true, None) => return Err(KeyError::Protected),
        (true, Some(passphrase)) => {
            let identity = scrypt::Identity::new(SecretString::from(passphrase.to_owned()));
            opened = age::decrypt(&identity, file).map_err(|_| KeyError::WrongPassphrase)?;
            &opened[..]
        }
    };
    let wanted = "age identity (AGE-SECRET-KEY-1…)";
    let text = str::from_utf8(text).map_err(|_| KeyError::NotAKey { line: 1, wanted })?;
    let mut added = keys(text, wanted, |line| line.parse().ok())?;
    IDENTITIES.write().unwrap_or_else(PoisonError::into_inner).append(&mut added);
    Ok(())
}

/// Whether this process has an identity.
pub fn has_identities() -> bool {
    #[cfg(feature = "encrypt")]
    return !IDENTITIES.read().unwrap_or_else(PoisonError::into_inner).is_empty();
    #[cfg(not(feature = "encrypt"))]
    false
}

/// Decrypts a message; `None` when no key of this process fits.
#[cfg(feature = "encrypt")]
pub(crate) fn decrypt(message: &[u8]) -> Option<Vec<u8>> {
    let identities = IDENTITIES.read().unwrap_or_else(PoisonError::into_inner);
    let decryptor = age::Decryptor::new(message).ok()?;
    let mut plain = Vec::new();
    let mut reader = decryptor.decrypt(identities.iter().map(|key| key as &dyn age::Identity)).ok()?;
    // A message is longer than what it holds, so the memory is bounded.
    std::io::Read::read_to_end(&mut reader, &mut plain).ok()?;
    Some(plain)
}

#[cfg(feature = "encrypt")]
fn keys<T>(text: &str, wanted: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, KeyError> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys: Result<Vec<T>, KeyError> =
        lines.map(|(i, line)| parse(line).ok_or(KeyError::NotAKey { line: i + 1, wanted })).collect();
    keys.and_then(|keys| if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) })
}

#[cfg(all(test, feature = "encrypt"))]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::ahr::{self, BlockBuilder, BlockItem, BlockReader, Body, Quality, Record, Repair};
    use crate::{Error, Size};

    const SECRET: &str = "the quick brown fox";

    /// A recording of ten blocks, encrypted to a key, and where each block ends in the file and in
    /// the output.
    fn recording(key: &x25519::Identity) -> (Vec<u8>, Vec<(usize, u64)>) {
        let recipients = Recipients::parse(&key.to_public().to_string()).expect("a key");
        let (mut builder, mut file, mut ends) = (BlockBuilder::new(0), Vec::new(), Vec::new());
        for n in 0..10_u64 {
            let off = n * SECRET.len() as u64;
            let mut records = vec![Record::data(n + 1, off, SECRET)];
            match n {
                0 => records.insert(0, Record::resize(1, Size::new(80, 24))),
                3 | 7 => records.push(Record::part(n + 1, "events.jsonl", format!("line {n}\n"))),
                _ => {}
            }
            for record in records {
                assert!(builder.push(record).is_none());
            }
            let end = off + SECRET.len() as u64;
            let block = builder.finish(Quality::default(), n == 9).to_vec();
            file.extend(recipients.encrypt_block(&block, end).expect("encrypted"));
            ends.push((file.len(), end));
        }
        (file, ends)
    }

    fn known_key() -> x25519::Identity {
        use age::secrecy::ExposeSecret;
        let key = x25519::Identity::generate();
        add_identities(key.to_string().expose_secret().as_bytes(), None).expect("added");
        key
    }

    fn events(file: &[u8]) -> crate::Result<Vec<u8>> {
        let parts = ahr::Parts::of(Cursor::new(file))?;
        parts.read(ahr::parts::EVENTS, Cursor::new(file))
    }

    /// The output that can be read, and whether anything was found damaged.
    fn output(file: &[u8]) -> (Vec<u8>, bool) {
        let (mut out, mut damaged, mut blocks) = (Vec::new(), false, BlockReader::new(file));
        while let Some(item) = blocks.next_item().expect("a key fits") {
            let BlockItem::Block(block) = item else {
                damaged = true;
                continue;
            };
            for record in block.records().flatten() {
                if let Body::Data { bytes, .. } = record.body {
                    out.extend_from_slice(&bytes);
                }
            }
        }
        (out, damaged)
    }

    #[test]
    fn an_encrypted_recording_is_read_with_its_key_alone() {
        let key = known_key();
        let (file, _) = recording(&key);
        assert!(memchr::memmem::find(&file, b"fox").is_none());
        assert_eq!(output(&file), (SECRET.repeat(10).into_bytes(), false));
        assert_eq!(events(&file).expect("read"), b"line 3\nline 7\n");
        let (strange, _) = recording(&x25519::Identity::generate());
        let mut blocks = BlockReader::new(&strange[..]);
        let locked = (0..20).find_map(|_| blocks.next_item().err());
        assert!(matches!(locked, Some(Error::Locked { .. })), "{locked:?}");
        assert!(matches!(events(&strange), Err(Error::Locked { .. })));
    }

    #[test]
    fn a_recorder_goes_on_without_a_key() {
        let (file, ends) = recording(&x25519::Identity::generate());
        for cut in 0..=file.len() {
            let tail = ahr::tail(Cursor::new(&file[..cut])).expect("read");
            let whole = ends.iter().rev().find(|(end, _)| *end <= cut).copied().unwrap_or_default();
            assert_eq!((tail.end as usize, tail.next_off), whole, "{cut}");
            assert_eq!(tail.is_torn(), whole.0 < cut, "{cut}");
        }
    }

    #[test]
    fn what_is_cut_or_damaged_costs_one_block() {
        let (file, ends) = recording(&known_key());
        let block = SECRET.len();
        for cut in (0..file.len()).step_by(29).chain(ends.iter().map(|(end, _)| *end)) {
            let whole = ends.iter().filter(|(end, _)| *end <= cut).count();
            let torn = cut > 0 && !ends.iter().any(|(end, _)| *end == cut);
            assert_eq!(output(&file[..cut]), (SECRET.repeat(whole).into_bytes(), torn), "{cut}");
        }
        for at in (0..120).chain((120..file.len()).step_by(61)) {
            let mut changed = file.clone();
            changed[at] ^= 0x10;
            let (out, damaged) = output(&changed);
            let kept = out.len() / block;
            assert!(damaged && (kept == 9 || kept == 10), "{at}: {kept}, {damaged}");
            assert_eq!(out, SECRET.repeat(kept).into_bytes(), "{at}");
        }
    }

    /// A block for other readers made all of the recording unreadable.
    #[test]
    fn a_block_for_another_key_costs_itself_alone() {
        let (mut file, ends) = recording(&known_key());
        let (strange, others) = recording(&x25519::Identity::generate());
        file.splice(ends[3].0..ends[4].0, strange[others[3].0..others[4].0].iter().copied());
        assert_eq!(output(&file), (SECRET.repeat(9).into_bytes(), true));
        assert_eq!(events(&file).expect("read"), b"line 3\nline 7\n");
    }

    #[test]
    fn a_repaired_recording_is_still_encrypted() {
        let (mut file, ends) = recording(&known_key());
        file[ends[4].0 - 5] ^= 1;
        file.truncate(ends[8].0 + 100);
        let mut repair = Repair::new(&file[..]);
        let mut clean = Vec::new();
        while let Some(piece) = repair.next_piece().expect("read") {
            clean.extend_from_slice(piece);
        }
        assert!(memchr::memmem::find(&clean, b"fox").is_none());
        let summary = ahr::Summary::of(&clean[..]).expect("read");
        assert!(summary.is_whole(), "{summary:?}");
        assert_eq!(summary.output_bytes, 8 * SECRET.len() as u64);
        assert_eq!(summary.repaired_loss, SECRET.len() as u64);
    }

    #[test]
    fn keys_are_read_from_files_of_age() {
        let key = x25519::Identity::generate();
        let public = key.to_public().to_string();
        assert!(Recipients::parse(&format!("# mine\n\n{public}\n{public}\n")).is_ok());
        use age::secrecy::ExposeSecret;
        let secret = key.to_string();
        let of_secret = Recipients::parse(secret.expose_secret()).expect("a key");
        assert_eq!(of_secret.to_string(), format!("{public}\n"), "nothing of the identity is kept");
        let wrong = Recipients::parse(&format!("{public}\nage1nonsense\n")).expect_err("no key");
        assert_eq!(wrong, KeyError::NotAKey { line: 2, wanted: "age public key (age1…)" });
        assert_eq!(Recipients::parse("# none\n").expect_err("none"), KeyError::NoKey);
        assert_eq!(add_identities(b"", None), Err(KeyError::NoKey));
        assert!(add_identities(b"\xff", None).is_err());
        assert_eq!(add_identities(MESSAGE, None), Err(KeyError::Protected));
        assert_eq!(add_identities(MESSAGE, Some("x")), Err(KeyError::WrongPassphrase));
    }
}
