//! `cargo xtask release VERSION`: writes the changelog and the version, and packs the command for
//! those who do not build it. With `--tag` it commits and tags; otherwise it prints how.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::succeed;
use crate::tools::DEB;

const SHELLS: [(&str, &str); 3] = [("bash", "tapdeck"), ("zsh", "_tapdeck"), ("fish", "tapdeck.fish")];

/// Files of the repository that are packed as they are.
const FILES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// Folders of the repository, and the extensions of the files in them that are packed.
const FOLDERS: [(&str, &[&str]); 3] =
    [("docs", &["md"]), ("docs/img", &["svg", "png"]), ("docs/schema", &["json"])];

/// What becomes of the changed files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Git {
    /// They are committed and tagged. Nothing is pushed.
    Tag,
    /// The commands that do so are printed.
    Print,
}

/// A release that is about to be made.
struct Release {
    changelog: String,
    manifest: String,
    /// The changes, as the changelog lists them.
    notes: String,
    /// Where the packages go.
    folder: PathBuf,
}

impl Release {
    fn new(root: &Path, version: &str) -> Result<Self> {
        check_version(version)?;
        let today = output(Command::new("date").args(["-u", "+%F"]))?;
        let changelog = released(&fs::read_to_string(root.join("CHANGELOG.md"))?, version, today.trim())?;
        let manifest = with_version(&fs::read_to_string(root.join("Cargo.toml"))?, version)?;
        let notes = section(&changelog, version).context("the changelog has no such section")?.to_owned();
        println!("{notes}");
        let folder = root.join("target").join(format!("release-{version}"));
        Ok(Self { changelog, manifest, notes, folder })
    }
}

/// Says what a release would do.
pub(crate) fn plan(version: &str) -> Result<()> {
    let release = Release::new(&crate::root()?, version)?;
    println!("would set the version to {version}, build the release and pack {}", release.folder.display());
    Ok(())
}

/// Makes a release.
pub(crate) fn run(version: &str, git: Git) -> Result<()> {
    let root = crate::root()?;
    let Release { changelog, manifest, notes, folder } = Release::new(&root, version)?;
    let changes = output(Command::new("git").args(["status", "--porcelain"]).current_dir(&root))?;
    if !changes.is_empty() {
        bail!("commit or stash your changes first:\n{changes}");
    }
    fs::write(root.join("CHANGELOG.md"), &changelog)?;
    fs::write(root.join("Cargo.toml"), manifest)?;
    // Also writes the version into the lock file.
    cargo(&root, &["build", "--release", "--package", "tapdeck-cli"])?;
    let staged = stage(&root)?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let notes_file = folder.join("NOTES.md");
    fs::write(&notes_file, notes)?;
    pack(&root, &staged, &folder, version)?;
    debian(&root, &folder)?;
    checksums(&folder)?;
    println!("packed {}", folder.display());
    let subject = format!("Release {version}");
    let mut commit = Command::new("git");
    commit.args(["commit", "--all", "--message", &subject]).current_dir(&root);
    let mut tag = Command::new("git");
    // Headings begin with `#`, which git would otherwise strip as comments.
    tag.args(["tag", "--annotate", "--cleanup=whitespace", &format!("v{version}"), "--file"]);
    tag.arg(notes_file).current_dir(&root);
    for command in [&mut commit, &mut tag] {
        match git {
            Git::Tag => succeed(command)?,
            Git::Print => println!("{}", shown(command)),
        }
    }
    Ok(())
}

/// A command as a line for a shell.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        if word.contains(' ') { format!("'{word}'") } else { word.into_owned() }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn check_version(version: &str) -> Result<()> {
    let (numbers, extra) = version.split_once('-').unwrap_or((version, "rc"));
    let parts: Vec<&str> = numbers.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let word = extra.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.') && !extra.is_empty();
    if parts.len() != 3 || !parts.iter().all(number) || !word {
        bail!("{version:?} is not a version; write MAJOR.MINOR.PATCH, for instance 0.2.0");
    }
    Ok(())
}

/// Returns the changelog with the unreleased changes as those of this version. A section that
/// exists already stays as it is.
fn released(changelog: &str, version: &str, date: &str) -> Result<String> {
    if section(changelog, version).is_some() {
        return Ok(changelog.to_owned());
    }
    let changes = section(changelog, "Unreleased").context("CHANGELOG.md has no section Unreleased")?;
    if changes.lines().filter(|line| line.starts_with("- ")).count() == 0 {
        bail!("CHANGELOG.md lists no unreleased change");
    }
    let heading = "## Unreleased\n";
    Ok(changelog.replacen(heading, &format!("{heading}\n## {version} ({date})\n"), 1))
}

/// Returns the section of a version, with its heading.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let headed = |at: usize| {
        let title = changelog[at..].strip_prefix("## ")?;
        Some(title.split_whitespace().next() == Some(version))
    };
    let starts =
        || changelog.match_indices("## ").map(|(at, _)| at).filter(|at| is_line_start(changelog, *at));
    let start = starts().find(|at| headed(*at) == Some(true))?;
    let end = starts().find(|at| *at > start).unwrap_or(changelog.len());
    Some(changelog[start..end].trim_end())
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text[..at].ends_with('\n')
}

/// Returns the workspace's manifest with this version, also where its crates ask for each other.
fn with_version(manifest: &str, version: &str) -> Result<String> {
    let old = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let old = old.context("Cargo.toml has no version")?;
    let mut lines = Vec::new();
    for line in manifest.lines() {
        let own =
            line == format!("version = \"{old}\"") || line.starts_with("tapdeck") && line.contains("path =");
        lines.push(if own {
            line.replace(&format!("\"{old}\""), &format!("\"{version}\""))
        } else {
            line.to_owned()
        });
    }
    Ok(lines.join("\n") + "\n")
}

/// Puts everything that is packed into `target/dist`. The Debian package takes it from there, too.
fn stage(root: &Path) -> Result<PathBuf> {
    let staged = root.join("target/dist");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    for folder in ["man", "completions"] {
        fs::create_dir_all(staged.join(folder))?;
    }
    let binary = root.join("target/release/tapdeck");
    fs::copy(&binary, staged.join("tapdeck"))?;
    succeed(Command::new(&binary).args(["man", "--dir"]).arg(staged.join("man")))?;
    for (shell, file) in SHELLS {
        let script = output(Command::new(&binary).args(["completions", shell]))?;
        fs::write(staged.join("completions").join(file), script)?;
    }
    for file in documents(root)? {
        let target = staged.join(&file);
        fs::create_dir_all(target.parent().context("a file is in a folder")?)?;
        fs::copy(root.join(&file), target).with_context(|| format!("cannot pack {}", file.display()))?;
    }
    Ok(staged)
}

/// Lists the documents to pack, relative to the root: everything that the README links to.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = FILES.iter().map(PathBuf::from).collect();
    for (folder, extensions) in FOLDERS {
        for entry in fs::read_dir(root.join(folder))?.flatten() {
            let extension = entry.path().extension().and_then(|e| Some(e.to_str()?.to_owned()));
            if extension.is_some_and(|extension| extensions.contains(&extension.as_str())) {
                files.push(Path::new(folder).join(entry.file_name()));
            }
        }
    }
    Ok(files)
}

/// Packs the tarball. The same tree gives the same bytes.
fn pack(root: &Path, staged: &Path, folder: &Path, version: &str) -> Result<()> {
    let name = format!("tapdeck-{version}-{}-linux", std::env::consts::ARCH);
    let date = output(Command::new("git").args(["log", "-1", "--format=%cI"]).current_dir(root))?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime", date.trim()]);
    tar.arg(format!("--transform=s,^\\.,{name},")).arg("-C").arg(staged);
    succeed(tar.arg("-czf").arg(folder.join(format!("{name}.tar.gz"))).arg("."))
}

fn debian(root: &Path, folder: &Path) -> Result<()> {
    let Some(deb) = DEB.get()? else {
        println!("skipped: the Debian package: cargo-deb could not be installed");
        return Ok(());
    };
    let mut command = Command::new(deb);
    command.args(["--package", "tapdeck-cli", "--no-build", "--quiet", "--output"]).arg(folder);
    succeed(command.current_dir(root))
}

fn checksums(folder: &Path) -> Result<()> {
    let mut names: Vec<String> =
        fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let sums = output(Command::new("sha256sum").args(names).current_dir(folder))?;
    Ok(fs::write(folder.join("SHA256SUMS"), sums)?)
}

fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    succeed(Command::new("cargo").args(args).current_dir(root))
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{}: {command:?}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::links;

    const CHANGELOG: &str =
        "# Changelog\n\n## Unreleased\n\n### Fixed\n\n- One.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n";

    #[test]
    fn unreleased_changes_become_those_of_the_version() {
        let text = released(CHANGELOG, "0.2.0", "2026-02-03").expect("there is a change");
        assert_eq!(section(&text, "0.2.0"), Some("## 0.2.0 (2026-02-03)\n\n### Fixed\n\n- One."));
        assert_eq!(section(&text, "Unreleased"), Some("## Unreleased"));
        assert_eq!(section(&text, "0.1.0"), Some("## 0.1.0 (2026-01-01)\n\n- First."));
        assert!(released(&text, "0.3.0", "2026-02-04").is_err(), "nothing has changed since");
        assert_eq!(released(CHANGELOG, "0.1.0", "2026-02-03").ok().as_deref(), Some(CHANGELOG));
    }

    #[test]
    fn the_version_is_set_for_the_workspace_and_its_crates() {
        let manifest =
            "version = \"0.1.0\"\nserde = \"0.1.0\"\ntapdeck-term = { path = \"x\", version = \"0.1.0\" }\n";
        let wanted =
            "version = \"0.2.0\"\nserde = \"0.1.0\"\ntapdeck-term = { path = \"x\", version = \"0.2.0\" }\n";
        assert_eq!(with_version(manifest, "0.2.0").expect("a version"), wanted);
    }

    #[test]
    fn packed_pages_link_only_to_packed_files() {
        let root = crate::root().expect("a root");
        let packed = documents(&root).expect("documents");
        let mut missing = Vec::new();
        for page in packed.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
            let text = fs::read_to_string(root.join(page)).expect("the page");
            for (line, link) in links(&text) {
                let target = link.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains(':') {
                    continue;
                }
                let target = fs::canonicalize(root.join(page).with_file_name(target)).expect("a target");
                let target = target.strip_prefix(&root).expect("a file of the repository");
                if !packed.iter().any(|file| file.starts_with(target)) {
                    missing.push(format!("{}:{line}: {link}", page.display()));
                }
            }
        }
        assert!(missing.is_empty(), "not packed: {missing:#?}");
        assert!(packed.contains(&PathBuf::from("docs/img/web.png")));
    }

    #[test]
    fn versions_have_three_numbers() {
        for good in ["0.1.0", "1.20.300", "0.2.0-rc.1"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["", "1.2", "v1.2.3", "1.2.x", "1.2.3-", "1.2.3-a/b"] {
            assert!(check_version(bad).is_err(), "{bad}");
        }
    }
}
