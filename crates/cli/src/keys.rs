//! The keys of encrypted recordings: identities that read them, and recipients that they are
//! written for. Identities are given by file, never on the command line.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use tapdeck_host::backend::Prompter;
use tapdeck_host::{TerminalPrompter, is_encrypted};
use tapdeck_tape::encryption::{KeyError, Recipients, add_identities};

use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::parse;

/// The environment variable that names an identity file.
const VARIABLE: &str = "TAPDECK_IDENTITY";
/// What an identity begins with.
const SECRET: &str = "AGE-SECRET-KEY-";
/// The longest file of keys, in bytes.
const MAX: u64 = 1 << 20;

/// What reads an encrypted recording.
#[derive(Args, Clone, Default)]
pub(crate) struct IdentityArgs {
    /// Identity file that decrypts the recording [default: $TAPDECK_IDENTITY, or `identity` in the
    /// configuration]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) identity: Option<PathBuf>,
}

impl IdentityArgs {
    /// Loads the identity of the user, if one is named, or one of these recordings needs it.
    pub(crate) fn load<'a>(&self, recordings: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        match self.file() {
            Some(file) if self.identity.is_some() || recordings.into_iter().any(is_encrypted) => load(&file),
            _ => Ok(()),
        }
    }

    /// The identity file that is to be used, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let variable = || std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let configured = || {
            // A mistake in the configuration is reported by the commands that need it.
            let identity = Config::load().ok()?.play.identity;
            (!identity.is_empty()).then(|| parse::home_path(&identity))
        };
        self.identity.clone().or_else(variable).or_else(configured)
    }
}

/// The identity files that were loaded.
static LOADED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Checks an identity file for a process that can ask no user for a passphrase.
#[cfg(any(feature = "mcp", feature = "web"))]
pub(crate) fn check(path: &Path) -> Result<()> {
    let shown = path.display();
    add_identities(&read_identity(path)?, None).map_err(|e| match e {
        KeyError::Protected => Failure::usage(format!(
            "{shown} is protected by a passphrase, for which the page cannot ask: give an identity without one"
        )),
        e => Failure::usage(format!("{shown}: {e}")),
    })
}

/// Loads an identity file. One that is protected by a passphrase is opened with that.
fn load(path: &Path) -> Result<()> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if loaded.iter().any(|known| known == path) {
        return Ok(());
    }
    load_anew(path)?;
    loaded.push(path.to_owned());
    Ok(())
}

fn read_identity(path: &Path) -> Result<Vec<u8>> {
    if path.to_string_lossy().starts_with(SECRET) {
        let why = "an identity is secret and must not stand on a command line";
        return Err(Failure::usage(format!("--identity: {why}; give the file that holds it")));
    }
    let bytes = read(path)?;
    let about = path.metadata()?;
    if about.is_file() && about.mode() & 0o077 != 0 {
        let shown = path.display();
        return Err(Failure::usage(format!("{shown}: other users can read it; run chmod 600 {shown}")));
    }
    Ok(bytes)
}

fn load_anew(path: &Path) -> Result<()> {
    let shown = path.display();
    let bytes = read_identity(path)?;
    let failed = |e: KeyError| Failure::usage(format!("{shown}: {e}"));
    match add_identities(&bytes, None) {
        Err(KeyError::Protected) => {
            let question = format!("Passphrase of {shown}: ");
            let answer = TerminalPrompter::new(None).ask(&question, true)?;
            let Some(passphrase) = answer else {
                let why = "is protected by a passphrase, and there is no terminal to ask for it";
                return Err(Failure::usage(format!("{shown} {why}")));
            };
            add_identities(&bytes, Some(&passphrase)).map_err(failed)
        }
        loaded => loaded.map_err(failed),
    }
}

/// Reads the recipients of a recording: public keys, or files of them. `None` without any.
pub(crate) fn recipients(given: &[String]) -> Result<Option<Recipients>> {
    let mut text = String::new();
    for one in given {
        if one.is_empty() || one.starts_with("ssh-") {
            let why = "give a public key of age (age1…), or a file of them";
            return Err(Failure::usage(format!("--encrypt {one:?}: {why}")));
        }
        if one.starts_with(SECRET) {
            let why = "an identity is secret and must not stand on a command line";
            return Err(Failure::usage(format!("--encrypt: {why}; give its public key (age1…) or its file")));
        }
        if one.starts_with("age1") {
            let key = Recipients::parse(one);
            text += &key.map_err(|e| Failure::usage(format!("--encrypt {one}: {}", told(&e))))?.to_string();
        } else {
            let path = parse::home_path(one);
            let file = String::from_utf8(read(&path)?)
                .map_err(|_| Failure::usage(format!("{}: no file of public keys", path.display())))?;
            let keys = Recipients::parse(&file);
            text += &keys.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?.to_string();
        }
    }
    if given.is_empty() {
        return Ok(None);
    }
    Recipients::parse(&text).map(Some).map_err(|e| Failure::usage(format!("--encrypt: {e}")))
}

/// What is wrong with the one key of an option.
fn told(e: &KeyError) -> String {
    match e {
        KeyError::NotAKey { wanted, .. } => format!("no {wanted}"),
        e => e.to_string(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| Failure::file(path, &e);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX {
        return Err(Failure::usage(format!("{}: too long for a file of keys", path.display())));
    }
    Ok(bytes)
}
