//! Files that cannot be read: what is wrong with them, and what to do next.

use std::io::ErrorKind;
use std::path::Path;

use tapdeck_host::{PlayError, SourceError};
use tapdeck_tape::Container;

use crate::ending::Kind;
use crate::failure::Failure;
use crate::human;
use tapdeck_tape::nearest;

/// Names that are shown of a folder, and entries of it that are looked at.
const SHOWN: usize = 3;
const MAX_ENTRIES: usize = 10_000;

/// What a file that the user named should be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRole {
    Recording,
    Scenario,
    Other,
}

impl FileRole {
    fn fits(self, name: &str) -> bool {
        match self {
            FileRole::Recording => Container::of_name(name).is_some(),
            FileRole::Scenario => name.ends_with(".scenario.yaml"),
            FileRole::Other => true,
        }
    }

    /// What a folder with several of them has.
    fn plural(self) -> &'static str {
        match self {
            FileRole::Recording => "recordings",
            FileRole::Scenario => "scenarios",
            FileRole::Other => "files",
        }
    }
}

/// A failure to read this file.
pub(crate) fn file(path: &Path, e: &std::io::Error, role: FileRole) -> Failure {
    let shown = path.display();
    let message = match e.kind() {
        ErrorKind::NotFound => format!("{shown}: no such file{}", instead_of(path, role)),
        ErrorKind::IsADirectory => {
            let kind = role.plural();
            match listed(&names(path, role), role) {
                Some(inside) => format!("{shown} is a folder; name one of its {kind}: {inside}"),
                None if role == FileRole::Other => format!("{shown} is a folder; name a file"),
                None => format!("{shown} is a folder without {kind}; name a file"),
            }
        }
        ErrorKind::PermissionDenied => {
            format!("{shown}: permission denied; ls -l {shown} shows the user who may read it")
        }
        _ => format!("{shown}: {e}"),
    };
    Failure::new(Kind::of_io(e), message)
}

/// What may have been meant by a name that does not exist, to be put behind the message.
pub(crate) fn instead_of(path: &Path, role: FileRole) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return format!("; there is no folder {}", folder.display());
    }
    let names = names(folder, role);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(near) = nearest::name(&name, names.iter().map(String::as_str)) {
        return format!("; did you mean {}?", path.with_file_name(near).display());
    }
    match (role, listed(&names, role)) {
        (FileRole::Recording | FileRole::Scenario, Some(listed)) => {
            format!("; the {} in that folder: {listed}", role.plural())
        }
        (FileRole::Recording, None) => {
            "; record one with tapdeck rec FILE, see live ones with tapdeck ls".into()
        }
        (FileRole::Scenario, None) => "; scenarios are files called NAME.scenario.yaml".into(),
        (FileRole::Other, _) => String::new(),
    }
}

fn listed(names: &[String], role: FileRole) -> Option<String> {
    let shown = names.iter().take(SHOWN).map(|name| human::printable(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        _ if names.is_empty() || role == FileRole::Other => None,
        0 => Some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}

/// The names in a folder that fit, in order.
fn names(folder: &Path, role: FileRole) -> Vec<String> {
    // Without a list there is nothing to suggest.
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| role.fits(name)).collect();
    names.sort();
    names
}

impl From<SourceError> for Failure {
    fn from(e: SourceError) -> Self {
        match &e {
            SourceError::Open { path, why } => file(path, why, FileRole::Recording),
            SourceError::Unknown(_) | SourceError::Misnamed { .. } => {
                Self::io(format!("{e}; if it is a recording, name its format with --from"))
            }
            SourceError::Read { path, why: tapdeck_tape::Error::Locked { .. } } => {
                let path = path.display();
                Self::io(match tapdeck_tape::encryption::has_identities() {
                    false => {
                        format!("{path} is encrypted; give an identity that can read it with --identity FILE")
                    }
                    true => format!("{path} is encrypted to other keys: the given identity cannot read it"),
                })
            }
            SourceError::NoTiming(_) => Self::usage(format!("{e}: name it with --timing")),
            _ => Self::io(e.to_string()),
        }
    }
}

impl From<PlayError> for Failure {
    fn from(e: PlayError) -> Self {
        match e {
            PlayError::Source(e) => e.into(),
            e => Self::io(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_has_a_next_step() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        let said = |name: &str, kind: ErrorKind, role| {
            let failure = file(&at(name), &kind.into(), role);
            let folder = format!("{}/", home.path().display());
            (failure.kind(), failure.message().replace(&folder, ""))
        };
        let missing = ErrorKind::NotFound;
        let (kind, message) = said("demo.ahr", missing, FileRole::Recording);
        assert_eq!(kind, Kind::NotFound);
        assert!(message.starts_with("demo.ahr: no such file; record one with tapdeck rec"), "{message}");
        for name in ["demo.ahr", "notes.txt", "a.cast", "b.cast", "c.ttyrec", "one.scenario.yaml"] {
            std::fs::write(at(name), "").expect("written");
        }
        for (name, kind, role, end) in [
            ("dmeo.ahr", missing, FileRole::Recording, "no such file; did you mean demo.ahr?"),
            (
                "x",
                missing,
                FileRole::Recording,
                "no such file; the recordings in that folder: a.cast, b.cast, c.ttyrec and 1 more",
            ),
            (
                "two",
                missing,
                FileRole::Scenario,
                "no such file; the scenarios in that folder: one.scenario.yaml",
            ),
            ("key", missing, FileRole::Other, "key: no such file"),
            (
                "demo.ahr",
                ErrorKind::PermissionDenied,
                FileRole::Recording,
                "permission denied; ls -l demo.ahr shows the user who may read it",
            ),
        ] {
            let (_, message) = said(name, kind, role);
            assert!(message.ends_with(end), "{message}");
        }
        let (_, message) = said("none/x.ahr", missing, FileRole::Recording);
        assert!(message.contains("there is no folder"), "{message}");
        let folder = file(home.path(), &ErrorKind::IsADirectory.into(), FileRole::Recording);
        assert!(folder.message().contains("is a folder; name one of its recordings: a.cast,"), "{folder}");
    }
}
