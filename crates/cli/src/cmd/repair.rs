//! `tapdeck repair`: a clean copy of a damaged recording, which loses nothing but what the damage
//! took.

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck_host::{forget_sidecars, sidecar};
use tapdeck_tape::ahr::{Repair, Summary};
use tapdeck_tape::meta::Meta;

use crate::ending::{Ending, print_json, say};
use crate::failure::{Failure, Result};
use crate::health::{Digest, check_digest, damage_json, damage_text, faults};
use crate::input::native;
use crate::{human, parse};
use tapdeck::OutFile;

/// Write a clean copy of a damaged recording, and say what is lost.
#[derive(Args)]
#[command(after_help = "\
Whole blocks are copied as they are, what can be read of a torn one is kept, blocks out of place
are put back, and where output is missing a mark says how much. The recording itself is left alone. Its sidecars are copied; a seal
is not, since it spoke of the other file.

Exit code 0: the copy is written. 1: there is nothing to save.

Examples:
  tapdeck repair crashed.ahr -o clean.ahr
  tapdeck verify clean.ahr")]
pub(crate) struct RepairArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the clean copy goes
    #[arg(short, long, value_name = "OUT", value_parser = parse::file())]
    output: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    overwrite: bool,
    /// Answer in JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The most damaged ranges that are printed.
const SHOWN: usize = 20;

pub(crate) fn run(args: &RepairArgs) -> Result {
    let done = repair(args).map_err(|failure| failure.about("file", args.file.to_string_lossy()))?;
    if args.json {
        print_json(&done.to_json(args));
    } else {
        done.say(args);
    }
    Ok(Ending::Done)
}

struct Repaired {
    /// The summary of the recording, and of its copy.
    before: Summary,
    after: Summary,
    digest: Digest,
    blocks_copied: u64,
    bytes: u64,
}

fn repair(args: &RepairArgs) -> Result<Repaired> {
    let fail = |e: &dyn std::fmt::Display| Failure::io(format!("{}: {e}", args.file.display()));
    let source = native(&args.file, "repaired; see tapdeck convert --partial")?;
    let file = source.file().map_err(|e| fail(&e))?;
    // Evidence is never replaced by its repair, not even with --overwrite.
    if std::fs::canonicalize(&args.output)
        .is_ok_and(|out| std::fs::canonicalize(&args.file).is_ok_and(|i| i == out))
    {
        let path = args.output.display();
        return Err(Failure::usage(format!("{path} would be replaced by its own copy: give another name")));
    }
    let create = |path: &Path| OutFile::create(path, args.overwrite).map_err(|e| Failure::write(path, &e));
    let mut out = create(&args.output)?;
    let meta_path = sidecar(&args.output, "meta.json");
    let old_meta = source.meta();
    let meta_file = old_meta.as_ref().map(|_| create(&meta_path)).transpose()?;
    let mut sidecars = Vec::new();
    for suffix in ["events.jsonl", "snapshots.jsonl"] {
        let Ok(mut from) = std::fs::File::open(sidecar(&args.file, suffix)) else { continue };
        let path = sidecar(&args.output, suffix);
        let mut copy = create(&path)?;
        io::copy(&mut from, &mut copy).map_err(|e| Failure::write(&path, &e))?;
        sidecars.push((path, copy));
    }
    let digest = check_digest(&source);
    let mut repair = Repair::new(BufReader::with_capacity(1 << 16, file));
    let mut bytes = 0;
    while let Some(piece) = repair.next_piece().map_err(|e| fail(&e))? {
        bytes += piece.len() as u64;
        out.write_all(piece).map_err(|e| Failure::write(&args.output, &e))?;
    }
    if bytes == 0 {
        let path = args.file.display();
        return Err(Failure::check(format!("{path}: nothing to save: not one readable block in it")));
    }
    out.commit().map_err(|e| Failure::write(&args.output, &e))?;
    if args.overwrite {
        forget_sidecars(&args.output);
        if meta_file.is_none() {
            // The file that was replaced may have had none.
            let _ = std::fs::remove_file(&meta_path);
        }
    }
    for (path, copy) in sidecars {
        copy.commit().map_err(|e| Failure::write(&path, &e))?;
    }
    if let (Some(meta), Some(mut file)) = (old_meta, meta_file) {
        let sha256 = tapdeck_host::file_digest(&args.output).ok();
        let mut copy = Meta { sha256, seal: None, ..meta };
        if matches!(digest, Digest::Differs) {
            // The new digest is the copy's. It must not hide that the original differs from its
            // digest.
            copy.extra.insert("repairedFromSha256Mismatch".into(), true.into());
        }
        let bytes = copy.to_bytes().map_err(|e| fail(&e))?;
        file.write_all(&bytes).and_then(|()| file.commit()).map_err(|e| Failure::write(&meta_path, &e))?;
    }
    let copy = std::fs::File::open(&args.output).map_err(|e| Failure::write(&args.output, &e))?;
    let after = Summary::of(BufReader::with_capacity(1 << 16, copy)).map_err(|e| fail(&e))?;
    let blocks_copied = repair.blocks_copied();
    Ok(Repaired { before: repair.before().clone(), after, digest, blocks_copied, bytes })
}

impl Repaired {
    /// Bytes of output that are lost, as far as the recording tells.
    fn lost_bytes(&self) -> u64 {
        self.after.missing_bytes.saturating_sub(self.before.declared_loss)
    }

    fn say(&self, args: &RepairArgs) {
        let (from, to) = (args.file.display(), args.output.display());
        let written = format!("{} blocks copied, {} written", self.blocks_copied, human::bytes(self.bytes));
        if self.before.is_whole() {
            say(format_args!("{from} is whole; {to} is a copy: {written}"));
        } else {
            let damages = &self.before.damages;
            let lost = match damages.iter().any(|d| d.kind.is_loss()) || self.lost_bytes() > 0 {
                false => "nothing is lost".to_owned(),
                true => format!("{} of output are known to be lost", human::bytes(self.lost_bytes())),
            };
            say(format_args!("{to}: {written}; {} damaged ranges, {lost}:", damages.len()));
            for damage in damages.iter().take(SHOWN) {
                say(format_args!("  {}", damage_text(damage, None)));
            }
            if damages.len() > SHOWN {
                say(format_args!("  and {} more: see tapdeck verify {from}", damages.len() - SHOWN));
            }
            for fault in faults(&self.before) {
                say(format_args!("  {fault}"));
            }
        }
        if matches!(self.digest, Digest::Differs) {
            say(format_args!(
                "{from} is not the file that its meta.json describes: SHA-256 differs; that of {to} speaks of the copy alone"
            ));
        }
        if !self.after.is_whole() {
            say(format_args!("what could not be mended: see tapdeck verify {to}"));
        }
    }

    fn to_json(&self, args: &RepairArgs) -> Value {
        json!({
            "file": args.file.to_string_lossy(),
            "out": args.output.to_string_lossy(),
            "whole": self.before.is_whole(),
            "copy_whole": self.after.is_whole(),
            "sha256_matches": self.digest.to_json(),
            "blocks_copied": self.blocks_copied,
            "written_bytes": self.bytes,
            "lost_bytes": self.lost_bytes(),
            "damages": self.before.damages.iter().map(|d| damage_json(d, None)).collect::<Vec<_>>(),
        })
    }
}
