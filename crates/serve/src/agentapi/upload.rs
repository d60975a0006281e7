//! Files that clients upload for the agent. They are gone when serving ends.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::http::StatusCode;
use sha2::{Digest, Sha256};
use tapdeck_proto::agentapi::UploadResponse;
use tempfile::TempDir;

use super::problem::Problem;

/// The largest file, as with agentapi.
pub(super) const FILE: usize = 10 << 20;
/// The most bytes of all files.
const ALL: u64 = 1 << 30;
/// The longest name of a file, in bytes.
const NAME: usize = 255;

/// The folder of the files.
pub(super) struct Uploads {
    folder: TempDir,
    /// The bytes that were uploaded.
    bytes: AtomicU64,
}

impl Uploads {
    /// Makes a private folder below the system's folder for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("agentapi-uploads-").tempdir()?;
        Ok(Self { folder, bytes: AtomicU64::new(0) })
    }

    /// Keeps the file of a form, and returns where it is.
    pub(super) async fn keep(&self, mut form: Multipart) -> Result<UploadResponse, Problem> {
        while let Some(field) = form.next_field().await.map_err(malformed)? {
            if field.name() == Some("file") {
                let name = file_name(field.file_name().unwrap_or_default());
                let name =
                    name.ok_or_else(|| Problem::invalid("body.file", "expected a file with a name"))?;
                let bytes = read(field).await?;
                let path = self.write(&name, &bytes).map_err(|e| {
                    let why = format!("cannot write the file: {e}");
                    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why)
                })?;
                let file_path = path.to_string_lossy().into_owned();
                return Ok(UploadResponse { file_path, ok: true });
            }
        }
        Err(Problem::invalid("body.file", "expected required property file to be present"))
    }

    /// Writes a file into a folder that is named after its contents.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let length = bytes.len() as u64;
        if self.bytes.fetch_add(length, Ordering::Relaxed) + length > ALL {
            self.bytes.fetch_sub(length, Ordering::Relaxed);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "uploads have used up their 1 GiB"));
        }
        let digest = Sha256::digest(bytes);
        let digest: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        let folder = self.folder.path().join(digest);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(name);
        let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }
}

async fn read(mut field: Field<'_>) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(malformed)? {
        if bytes.len() + chunk.len() > FILE {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "file size exceeds 10MB limit"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn malformed(e: MultipartError) -> Problem {
    Problem::new(e.status(), format!("the form cannot be read: {}", e.body_text()))
}

/// Returns the last part of a file's name, which may be a path of any system.
fn file_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let fits = !matches!(name, "" | "." | "..") && name.len() <= NAME && !name.contains(char::is_control);
    fits.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_in_its_folder() {
        for (name, expected) in [
            ("a.txt", Some("a.txt")),
            ("../../a.txt", Some("a.txt")),
            ("/etc/passwd", Some("passwd")),
            ("c:\\a\\b.txt", Some("b.txt")),
            ("..", None),
            ("a/", None),
            ("a\nb", None),
        ] {
            assert_eq!(file_name(name).as_deref(), expected, "{name}");
        }
        let uploads = Uploads::new().expect("a folder");
        let path = uploads.write("a.txt", b"hello").expect("written");
        assert!(path.starts_with(uploads.folder.path()), "{path:?}");
        assert_eq!(fs::read(&path).expect("read"), b"hello");
        let folder = uploads.folder.path().to_owned();
        drop(uploads);
        assert!(!folder.exists(), "gone with the server");
    }
}
