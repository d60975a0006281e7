//! `tapdeck verify`: whether every block of a recording is whole, and what is lost if not; with a
//! key, whether the recording is what was sealed.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck::convert::Digest;
use tapdeck_core::Time;
use tapdeck_host::{SEALED_SIDECARS, Source, SourceError, is_locked};
use tapdeck_tape::ahr::parts::{INSTRUCTIONS, SEAL};
use tapdeck_tape::ahr::{Ending as Ended, Mark, Summary};
use tapdeck_tape::seal::{self, SealKey, SealReport, Verdict};
use tapdeck_tape::{Format, Header, Item, Kind};

use super::info::paused_text;
use crate::ending::{Ending, Report, print, print_json};
use crate::failure::{Failure, Result};
use crate::health::{damage_text, digest_json, faults, summarise, summary_json};
use crate::human;
use crate::input::InputArgs;
use crate::seal_key::read_key;

/// Check a recording for damage and report exactly what is lost.
#[derive(Args)]
#[command(after_help = "\
Reports each damaged range with its offset in the file and its content. Recordings in other formats
are read to the end; an asciicast v3 or a typescript without its end, as a killed recorder leaves it,
is incomplete, and so is a recording that says that output was lost. One that is being recorded is in
progress. With the key of a sealed recording (rec --seal), it also detects changes, removed blocks and
truncation.

Exit codes:
  0   intact
  1   damaged, incomplete, or changed since it was sealed
  3   no such file
  4   read error

Examples:
  tapdeck verify demo.ahr
  tapdeck verify --key seal.key demo.ahr
  tapdeck verify --json *.ahr")]
pub(crate) struct VerifyArgs {
    /// The recordings, or `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Key file that the recordings were sealed with
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result {
    let key = args.key.as_deref().map(read_key).transpose()?;
    let report = Report::json(args.json);
    let mut ending = Ending::Done;
    for path in &args.files {
        let checked = if tapdeck_tape::cassette::is_cassette(path) {
            super::cassette::check_one(path, report, false, (key.as_ref(), false))
        } else {
            check(path, &args.input, key.as_ref(), args.json)
                .map_err(|failure| failure.about("file", path.to_string_lossy()))
        };
        ending = ending.worse(checked.map_or_else(|failure| failure.report(report), Ending::of_check));
    }
    Ok(ending)
}

/// Checks one recording, prints the result, and returns whether it is whole.
fn check(path: &Path, input: &InputArgs, key: Option<&SealKey>, as_json: bool) -> Result<bool> {
    let source = input.judge(path)?;
    if source.container().format != Format::Ahr || source.container().zst {
        return check_other(&source, as_json);
    }
    let path = source.path();
    let summary = summarise(&source)?;
    let digest = Digest::of(&source);
    let sealed = key.map(|key| check_seal(&source, key)).transpose()?;
    let in_progress = summary.ending.is_none() && path.is_file() && is_locked(path);
    let seal_is_there = source.all_meta().iter().any(|m| m.seal.is_some());
    if as_json {
        let mut value = to_json(&source, &summary, &digest, sealed.as_ref(), seal_is_there);
        value["in_progress"] = in_progress.into();
        print_json(&value);
    } else {
        report(path, &summary, &digest, in_progress);
        report_additions(&source, seal_is_there);
        match &sealed {
            Some(sealed) => report_seal(sealed),
            None if seal_is_there => print(format_args!("  sealed: give the key with --key to check it\n")),
            None => {}
        }
    }
    let intact = sealed.is_none_or(|s| s.verdict == Verdict::Intact);
    Ok(summary.is_whole()
        && summary.lost_while_recording() == 0
        && !matches!(digest, Digest::Differs)
        && intact)
}

/// Reads a recording of another format to its end.
fn check_other(source: &Source, as_json: bool) -> Result<bool> {
    let path = source.path();
    let mut reader = source.open().map_err(|e| match &e {
        // A file that is no recording fails the check.
        SourceError::Read { why: tapdeck_tape::Error::Malformed { .. }, .. } => Failure::check(e.to_string()),
        _ => Failure::io(e.to_string()),
    })?;
    let (mut events, mut output_bytes, mut end) = (0u64, 0u64, Time::ZERO);
    let (mut notes, mut more, mut ended) = (Vec::new(), 0u64, false);
    // Marks tell of losses, and so do gaps in the output. What a repair cut out was lost later.
    let (mut marked, mut missing, mut repaired) = (0u64, 0u64, 0u64);
    loop {
        match reader.next_item() {
            Ok(Some(Item::Event(event))) => {
                events += 1;
                end = event.time;
                match event.kind {
                    Kind::Output(bytes) => output_bytes += bytes.len() as u64,
                    Kind::Exit(_) => ended = true,
                    Kind::Lost(bytes) => missing += bytes,
                    Kind::Mark { code, val } => {
                        let mark = Mark::from_raw(code, val);
                        marked += mark.lost_output();
                        if let Mark::Repaired(bytes) = mark {
                            repaired += u64::from(bytes);
                        }
                    }
                    _ => {}
                }
            }
            Ok(Some(Item::Note(note))) if notes.len() < MAX_NOTES => notes.push(note.to_string()),
            Ok(Some(Item::Note(_))) => more += 1,
            Ok(None) => break,
            Err(e) => {
                notes.push(e.to_string());
                break;
            }
        }
    }
    let damaged = !notes.is_empty();
    let lost = marked.max(missing).saturating_sub(repaired);
    if lost > 0 {
        notes.push(format!("{} of output were lost while recording", human::bytes(lost)));
    }
    let in_progress = !ended && path.is_file() && is_locked(path);
    if !damaged && !ended && !in_progress && tells_end(source, reader.header()) {
        notes.push("no end is recorded: the recorder was killed, or the disk was full".to_owned());
    }
    let whole = notes.is_empty();
    let format = source.container().to_string();
    if as_json {
        let value = json!({
            "file": path.to_string_lossy(), "format": format, "whole": whole, "events": events,
            "output_bytes": output_bytes, "duration_ns": end.as_nanos(), "notes": notes, "more_notes": more,
            "in_progress": in_progress,
        });
        print_json(&value);
        return Ok(whole);
    }
    print(format_args!(
        "{}: {}: {format}, {}, {} of output, {}{}\n",
        printable(path),
        match (whole, damaged) {
            (true, _) => "whole",
            (false, true) => "damaged",
            (false, false) => "incomplete",
        },
        human::count(events, "event"),
        human::bytes(output_bytes),
        human::duration(end.since_start()),
        if in_progress { ", in progress" } else { "" },
    ));
    for note in &notes {
        print(format_args!("  {}\n", human::printable(note)));
    }
    if more > 0 {
        print(format_args!("  and {more} more remarks\n"));
    }
    Ok(whole)
}

/// Whether a recording of another format tells how its program ended, if it is complete.
fn tells_end(source: &Source, header: &Header) -> bool {
    match source.container().format {
        Format::CastV3 | Format::Ahr => true,
        // Only the newer form of the timing file, which tells the start, has the exit code.
        Format::Typescript => header.started.is_some(),
        _ => false,
    }
}

fn check_seal(source: &Source, key: &SealKey) -> Result<SealReport> {
    let path = source.path();
    let fail = |e: &dyn std::fmt::Display| Failure::io(format!("{}: {e}", path.display()));
    let metas = source.all_meta();
    let Some(meta) = seal::sealed_meta(&metas, key).or(metas.last()) else {
        let what = "it does not describe itself, so there is no seal to check";
        return Err(Failure::check(format!("{}: {what}", path.display())));
    };
    let lines = source.sidecar(SEAL).map(BufReader::new);
    // Events in a recording are in its sealed blocks; a seal of an earlier version names them.
    let covered = |name: &str| meta.seal.as_ref().is_some_and(|seal| seal.covers(name));
    let asked = |name: &&&str| covered(name) || source.parts().len_of(name).is_none();
    let mut contents: Vec<(&str, Vec<u8>)> = Vec::new();
    for name in SEALED_SIDECARS.iter().filter(asked) {
        let Some(mut sidecar) = source.sidecar(name) else { continue };
        let mut bytes = Vec::new();
        sidecar.read_to_end(&mut bytes).map_err(|e| fail(&e))?;
        contents.push((name, bytes));
    }
    let sidecars: Vec<(&str, &[u8])> = contents.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let recording = BufReader::with_capacity(1 << 16, source.file().map_err(|e| fail(&e))?);
    seal::verify(recording, meta, lines, &sidecars, key).map_err(|e| fail(&e))
}

fn report_seal(sealed: &SealReport) {
    let verdict = match sealed.verdict {
        Verdict::Intact => {
            "seal intact: the recording, its meta.json and its events are what was sealed".to_owned()
        }
        Verdict::Unfinished => {
            format!(
                "seal unfinished: proven: {}, but not that this is all",
                human::count(sealed.blocks, "block")
            )
        }
        Verdict::Broken => "seal broken".to_owned(),
        Verdict::WrongKey => "sealed with another key".to_owned(),
        Verdict::Unsealed => "not sealed".to_owned(),
    };
    print(format_args!("  {verdict}\n"));
    for problem in &sealed.problems {
        print(format_args!("  {}\n", human::printable(problem)));
    }
    if sealed.more > 0 {
        print(format_args!("  and {} more\n", sealed.more));
    }
}

/// What was added since the recording was finished, and what stands beside it.
fn report_additions(source: &Source, sealed: bool) {
    let not_sealed = if sealed { ", and not sealed" } else { "" };
    for (part, bytes) in source.additions() {
        let (part, bytes) = (human::printable(part), human::bytes(bytes));
        print(format_args!("  added since it was finished{not_sealed}: {part}, {bytes}\n"));
    }
    for path in source.beside() {
        if path.to_string_lossy().ends_with(INSTRUCTIONS) {
            print(format_args!("  written later{not_sealed}: {}\n", printable(&path)));
        }
    }
}

fn printable(path: &Path) -> String {
    human::printable(&path.to_string_lossy())
}

/// The most remarks that are printed; others are only counted.
const MAX_NOTES: usize = 1_000;

fn report(path: &Path, s: &Summary, digest: &Digest, in_progress: bool) {
    let whole = match (s.is_whole(), s.lost_while_recording()) {
        (false, _) => "damaged",
        (true, 1..) => "incomplete",
        (true, 0) => "whole",
    };
    let ended = match s.ending {
        Some(Ended::Exit(code)) => format!("ended with exit code {}", code.cast_signed()),
        Some(Ended::Signal(signal)) => format!("ended by signal {signal}"),
        None if in_progress => "in progress".into(),
        None => "no end recorded".into(),
    };
    print(format_args!(
        "{}: {whole}: {}, {}, {} of output, {}, {ended}\n",
        printable(path),
        human::count(s.blocks, "block"),
        human::count(s.records, "record"),
        human::bytes(s.output_bytes),
        human::duration(s.duration()),
    ));
    for damage in &s.damages {
        print(format_args!("  {}\n", damage_text(damage, s.first_ts)));
    }
    if s.more_damages > 0 {
        print(format_args!("  and {} more damaged ranges\n", s.more_damages));
    }
    let repaired = s.repaired_loss;
    for (bytes, how) in [
        (s.lost_while_recording(), "while recording"),
        (repaired, "to damage of the file, which a repair cut out"),
    ] {
        if bytes > 0 {
            let bytes = human::bytes(bytes);
            print(format_args!("  {bytes} of output were lost {how}, as the recording says itself\n"));
        }
    }
    if let Some(paused) = paused_text(s) {
        print(format_args!("  paused {paused}: what happened then was not to be recorded\n"));
    }
    for fault in faults(s) {
        print(format_args!("  {fault}\n"));
    }
    if matches!(digest, Digest::Differs) {
        print(format_args!("  it is not what it was when it was finished: SHA-256 differs\n"));
    }
}

fn to_json(
    source: &Source,
    summary: &Summary,
    digest: &Digest,
    sealed: Option<&SealReport>,
    seal_is_there: bool,
) -> Value {
    let mut value = summary_json(source.path(), summary);
    let added = |(part, bytes): (&str, u64)| json!({"part": part, "bytes": bytes});
    value["added"] = source.additions().into_iter().map(added).collect();
    value["sha256_matches"] = digest_json(*digest);
    value["sealed"] = seal_is_there.into();
    value["seal"] = sealed.map_or(Value::Null, |s| {
        let verdict = match s.verdict {
            Verdict::Intact => "intact",
            Verdict::Unfinished => "unfinished",
            Verdict::Broken => "broken",
            Verdict::WrongKey => "wrong-key",
            Verdict::Unsealed => "unsealed",
        };
        json!({
            "verdict": verdict, "blocks": s.blocks, "first_bad": s.first_bad, "problems": s.problems, "more": s.more,
        })
    });
    value
}
