//! `tapdeck repair`: a clean copy of a damaged recording, which loses nothing but what the damage
//! took.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck::convert::{ConvertError, Digest, Repaired};
use tapdeck_host::adopt_sidecars;

use crate::ending::{Ending, print_json, say};
use crate::failure::{Failure, Result};
use crate::health::{damage_json, damage_text, digest_json, faults};
use crate::input::native;
use crate::keys::IdentityArgs;
use crate::unreadable::{self, FileRole};
use crate::{human, parse};

/// Write a clean copy of a damaged recording and report what is lost.
#[derive(Args)]
#[command(after_help = "\
Copies intact blocks unchanged, keeps the readable part of torn blocks, restores the order of blocks,
and marks where output is missing and how much. The original is not changed.

Older recordings have files beside them, such as NAME.meta.json. --adopt puts into the recording what
it does not have itself, and removes the files, copies of --sidecar too. A file that says something
else than the recording is left. Nothing else is repaired.

Exit codes:
  0   the copy was written, or the files were adopted
  1   nothing could be recovered

Examples:
  tapdeck repair crashed.ahr -o clean.ahr
  tapdeck verify clean.ahr
  tapdeck repair --adopt old.ahr")]
pub(crate) struct RepairArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The clean copy to write
    #[arg(short, long, value_name = "OUT", value_parser = parse::file(), required_unless_present = "adopt")]
    output: Option<PathBuf>,
    /// Put the files beside the recording into it, and remove them
    #[arg(long, conflicts_with_all = ["output", "overwrite"])]
    adopt: bool,
    /// Replace existing files
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The most damaged ranges that are printed.
const SHOWN: usize = 20;

pub(crate) fn run(args: &RepairArgs) -> Result {
    let done = match &args.output {
        Some(output) => repair(args, output).map(|done| done.report(args)),
        None => adopt(args),
    };
    done.map_err(|failure| failure.about("file", args.file.to_string_lossy()))?;
    Ok(Ending::Done)
}

/// Puts the files beside a recording into it.
fn adopt(args: &RepairArgs) -> Result<()> {
    args.file.metadata().map_err(|e| unreadable::file(&args.file, &e, FileRole::Recording))?;
    let adopted = adopt_sidecars(&args.file)?;
    if args.json {
        let paths = |list: &[PathBuf]| list.iter().map(|path| path.to_string_lossy()).collect::<Value>();
        print_json(&json!({
            "file": args.file.to_string_lossy(),
            "adopted": paths(&adopted.added),
            "known": paths(&adopted.known),
            "left": paths(&adopted.left),
        }));
        return Ok(());
    }
    let file = args.file.display();
    for path in &adopted.added {
        say(format_args!("{} is in {file} now", path.display()));
    }
    for path in &adopted.known {
        say(format_args!("{} is removed: {file} has all of it already", path.display()));
    }
    for path in &adopted.left {
        say(format_args!("{} is left: {file} says something else", path.display()));
    }
    if adopted.added.is_empty() && adopted.known.is_empty() && adopted.left.is_empty() {
        say(format_args!("beside {file} there is nothing to put into it"));
    }
    Ok(())
}

/// The copy that was made, and where.
struct Done(Repaired, PathBuf);

fn repair(args: &RepairArgs, output: &Path) -> Result<Done, Failure> {
    let source = native(&args.file, &args.identity, "repaired; see tapdeck convert --partial")?;
    let repaired = tapdeck::convert::repair(&source, output, args.overwrite);
    repaired.map(|repaired| Done(repaired, output.to_owned())).map_err(|e| match e {
        ConvertError::Exists(path) => Failure::write(&path, &io::ErrorKind::AlreadyExists.into()),
        ConvertError::Write { path, source } => Failure::write(&path, &source),
        ConvertError::SameFile(path) => {
            Failure::usage(format!("{} would be replaced by its own copy: give another name", path.display()))
        }
        ConvertError::Nothing(path) => {
            Failure::check(format!("{}: nothing to save: not one readable block in it", path.display()))
        }
        e => Failure::io(e.to_string()),
    })
}

impl Done {
    fn report(&self, args: &RepairArgs) {
        if args.json {
            print_json(&self.to_json(args));
        } else {
            self.say(args);
        }
    }

    fn say(&self, args: &RepairArgs) {
        let (from, to) = (args.file.display(), self.1.display());
        let written = format!(
            "{} copied, {} written",
            human::count(self.0.blocks_copied, "block"),
            human::bytes(self.0.written)
        );
        let lost = self.0.before.lost_while_recording();
        if self.0.before.is_whole() && lost > 0 {
            let lost = human::bytes(lost);
            say(format_args!(
                "{from} is not damaged, but {lost} of output were lost while recording; {to} is a copy: {written}"
            ));
        } else if self.0.before.is_whole() {
            say(format_args!("{from} is whole; {to} is a copy: {written}"));
        } else {
            let damages = &self.0.before.damages;
            let lost = match damages.iter().any(|d| d.kind.is_loss()) || self.0.lost_bytes() > 0 {
                false => "nothing is lost".to_owned(),
                true => format!("{} of output are known to be lost", human::bytes(self.0.lost_bytes())),
            };
            let ranges = human::count(damages.len(), "damaged range");
            say(format_args!("{to}: {written}; {ranges}, {lost}:"));
            for damage in damages.iter().take(SHOWN) {
                say(format_args!("  {}", damage_text(damage, None)));
            }
            if damages.len() > SHOWN {
                say(format_args!("  and {} more: see tapdeck verify {from}", damages.len() - SHOWN));
            }
            for fault in faults(&self.0.before) {
                say(format_args!("  {fault}"));
            }
        }
        if matches!(self.0.digest, Digest::Differs) {
            say(format_args!(
                "{from} is not what it was when it was finished: SHA-256 differs; that of {to} speaks of the copy alone"
            ));
        }
        if !self.0.after.is_whole() {
            say(format_args!("what could not be mended: see tapdeck verify {to}"));
        }
    }

    fn to_json(&self, args: &RepairArgs) -> Value {
        json!({
            "file": args.file.to_string_lossy(),
            "out": self.1.to_string_lossy(),
            "whole": self.0.before.is_whole(),
            "copy_whole": self.0.after.is_whole(),
            "sha256_matches": digest_json(self.0.digest),
            "blocks_copied": self.0.blocks_copied,
            "written_bytes": self.0.written,
            "lost_bytes": self.0.lost_bytes(),
            "damages": self.0.before.damages.iter().map(|d| damage_json(d, None)).collect::<Vec<_>>(),
        })
    }
}
