//! `cargo xtask pictures`: the pictures of the manual, made by the command itself.
//!
//! A picture `docs/img/NAME.svg`, and `NAME.light.svg` for readers with a light background, is made
//! from the recording `NAME.cast`, or as a still of its last screen from `NAME.still.cast`. The
//! same recording always gives the same picture, so CI can check that none is stale.
//!
//! `--record [NAME]` makes the recordings anew by running `NAME.sh` or `NAME.still.sh` on a
//! recorded terminal, and `NAME.png` and `NAME.light.png` by running `NAME.page.sh`, which takes
//! pictures of the page with Chromium where that and its driver are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::docs::Stale;
use crate::{succeed, tools};

/// The themes of the pictures, and the ending of each.
const THEMES: [(&str, &str); 2] = [("dark", "svg"), ("light", "light.svg")];
/// The ending of scripts that take a picture of the page.
const PAGE: &str = ".page.sh";
/// The largest picture of the page, in bytes.
const PAGE_LIMIT: u64 = 150_000;
/// What the scripts share.
const STAGE: &str = "stage.sh";

/// Builds the command and draws all pictures.
pub(crate) fn run() -> Result<()> {
    let root = crate::root()?;
    build(&root)?;
    draw(&root, Stale::Write)
}

/// Records the scenes anew, all or one of them, and draws all pictures.
pub(crate) fn record(only: Option<&str>) -> Result<()> {
    let root = crate::root()?;
    build(&root)?;
    let mut found = false;
    for script in files(&root, ".sh")? {
        let name = name(&script)?;
        if name == STAGE || only.is_some_and(|only| name.split('.').next() != Some(only)) {
            continue;
        }
        found = true;
        if name.ends_with(PAGE) && !tools::has("chromedriver") {
            println!("   skipping {name}: chromedriver is not installed");
            continue;
        }
        println!("   recording {name}");
        play(&root, &script)?;
    }
    if let Some(only) = only.filter(|_| !found) {
        bail!("there is no docs/img/{only}.sh");
    }
    draw(&root, Stale::Write)
}

/// Runs a script in an empty folder. The command and the manual's agent come first in `PATH`.
fn play(root: &Path, script: &Path) -> Result<()> {
    let folder = root.join("target/pictures");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!(
        "{}:{}:{path}",
        root.join("target/debug").display(),
        root.join("crates/cli/tests/it/manual").display()
    );
    let stage = root.join("docs/img").join(STAGE);
    let both = format!(". '{}'; . '{}'", stage.display(), script.display());
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", &both]).current_dir(&folder).env("PATH", path);
    let script_name = script.to_string_lossy();
    let Some(base) = script_name.strip_suffix(PAGE) else {
        return succeed(bash.env("OUT", script.with_extension("cast")));
    };
    succeed(bash.env("OUT", base))?;
    for picture in ["png", "light.png"].map(|ending| format!("{base}.{ending}")) {
        if fs::metadata(&picture)?.len() > PAGE_LIMIT {
            bail!("{picture} is larger than {PAGE_LIMIT} bytes");
        }
    }
    Ok(())
}

/// Draws the pictures, or fails when one is stale. The command must have been built.
pub(crate) fn draw(root: &Path, when_stale: Stale) -> Result<()> {
    let fresh = root.join("target/picture.svg");
    let mut stale = Vec::new();
    for recording in files(root, ".cast")? {
        let base = recording.with_extension("");
        let still = base.extension().is_some_and(|end| end == "still");
        for (theme, ending) in THEMES {
            let picture = base.with_extension(ending);
            let mut convert = Command::new(root.join("target/debug/tapdeck"));
            convert.args(["convert", "--quiet", "--overwrite", "--theme", theme]);
            convert.args(["--format", if still { "svg-still" } else { "svg" }]);
            succeed(convert.arg(&recording).arg("-o").arg(&fresh))?;
            let new = fs::read(&fresh)?;
            if fs::read(&picture).ok().as_ref() == Some(&new) {
                continue;
            }
            if when_stale == Stale::Write {
                fs::write(&picture, new)?;
                println!("   wrote {}", picture.strip_prefix(root).unwrap_or(&picture).display());
            }
            stale.push(name(&picture)?);
        }
    }
    if when_stale == Stale::Fail && !stale.is_empty() {
        bail!("stale: {}; run cargo xtask pictures", stale.join(", "));
    }
    Ok(())
}

fn build(root: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    succeed(cargo.args(["build", "--quiet", "--package", "tapdeck-cli"]).current_dir(root))
}

/// The files of `docs/img` with this ending, sorted.
fn files(root: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let folder = fs::read_dir(root.join("docs/img")).context("docs/img")?;
    let mut found: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    Ok(found)
}

fn name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    Ok(name.with_context(|| format!("{}: no name", path.display()))?.to_owned())
}
