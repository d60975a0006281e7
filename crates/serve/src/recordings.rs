//! The recordings in one folder, and nothing outside it: names have plain parts only, and links are
//! not followed.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use tapdeck_proto::page::ListedRecording;
use tapdeck_tape::Container;

/// Limits: the depth of folders, the files that are examined, and the recordings that are listed.
const DEPTH: usize = 4;
const LOOKED_AT: usize = 20_000;
const TOLD: usize = 500;

/// The recording in a folder that has a cassette.
const MANIFEST: &str = "manifest.json";

/// Returns the newest recordings, newest first.
pub(crate) fn list(root: &Path) -> Vec<ListedRecording> {
    let mut found: Vec<(u64, String, u64)> = Vec::new();
    let mut open = vec![(root.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                break;
            }
            // Of the entry itself: links are not followed.
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            let Some(name) = name_of(root, &path) else { continue };
            let cassette = meta.is_dir() && path.join(MANIFEST).is_file();
            let recording = meta.is_file() && Container::of_name(&name).is_some();
            if cassette || recording {
                let at = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
                let ms = at.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0));
                found.push((ms, name, if cassette { 0 } else { meta.len() }));
            } else if meta.is_dir() && depth < DEPTH {
                open.push((path, depth + 1));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    let told = found.into_iter().take(TOLD);
    told.map(|(ms, name, size)| ListedRecording { name, size, modified_ms: ms }).collect()
}

/// Returns a recording's name: its path within the folder. A name that is not UTF-8 is not shown.
fn name_of(root: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(root).ok()?.to_str()?;
    (!name.chars().any(char::is_control)).then(|| name.to_owned())
}

/// Returns the path of the recording of this name, if the folder has it.
pub(crate) fn find(root: &Path, name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.len() > 4096 || name.chars().any(char::is_control) {
        return None;
    }
    let mut path = root.to_owned();
    for part in Path::new(name).components() {
        let Component::Normal(part) = part else { return None };
        path.push(part);
        if fs::symlink_metadata(&path).ok()?.is_symlink() {
            return None;
        }
    }
    let meta = fs::symlink_metadata(&path).ok()?;
    let cassette = meta.is_dir() && path.join(MANIFEST).is_file();
    (cassette || (meta.is_file() && Container::of_name(name).is_some())).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_folder_is_found() {
        let temp = tempfile::tempdir().expect("temp");
        let root = temp.path().join("tapes");
        fs::create_dir_all(root.join("deep")).expect("made");
        fs::write(temp.path().join("secret.ahr"), "x").expect("written");
        for name in ["a.ahr", "deep/b.cast", "notes.txt"] {
            fs::write(root.join(name), "x").expect("written");
        }
        std::os::unix::fs::symlink("../secret.ahr", root.join("link.ahr")).expect("linked");
        std::os::unix::fs::symlink("..", root.join("up")).expect("linked");
        let mut names: Vec<String> = list(&root).into_iter().map(|r| r.name).collect();
        names.sort();
        assert_eq!(names, ["a.ahr", "deep/b.cast"]);
        for name in ["a.ahr", "deep/b.cast"] {
            assert_eq!(find(&root, name), Some(root.join(name)));
        }
        let secret = temp.path().join("secret.ahr");
        let bad = [
            "",
            ".",
            "..",
            "../secret.ahr",
            "deep/../../secret.ahr",
            "./a.ahr/..",
            "link.ahr",
            "up/secret.ahr",
            "notes.txt",
            "deep",
            "no-such.ahr",
            "a.ahr\0",
            "a\n.ahr",
            secret.to_str().expect("text"),
        ];
        for name in bad {
            assert_eq!(find(&root, name), None, "{name:?}");
        }
    }
}
