//! Tells the command which commit it is built from.

#![expect(clippy::disallowed_methods, reason = "git tells the commit, and no session runs it")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TAPDECK_COMMIT");
    let given = std::env::var("TAPDECK_COMMIT").ok().filter(|commit| !commit.is_empty());
    // Debug builds name no commit: they would be compiled anew after each one.
    let release = std::env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    if let Some(commit) = given.or_else(|| release.then(head).flatten()) {
        println!("cargo::rustc-env=TAPDECK_BUILT_FROM={commit}");
    }
}

/// The commit of the sources, or none where they are not a repository of their own.
fn head() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let top = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != root {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        // Cargo takes a file that is missing for one that has changed.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
