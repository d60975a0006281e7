//! `tapdeck verify`: is every block of a recording whole, and if not, what is lost? Is it what was sealed?

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck_host::{Source, SourceError, sidecar};
use tapdeck_tape::ahr::{Damage, Ending as Ended, Summary};
use tapdeck_tape::meta::Meta;
use tapdeck_tape::seal::{self, SealKey, SealReport, Verdict};
use tapdeck_tape::{Format, Item, Kind};

use crate::ending::{Ending, code, complain, print};
use crate::human;
use crate::input::InputArgs;

/// Check that a recording is whole, and say exactly what is lost where it is not.
#[derive(Args)]
#[command(after_help = "\
Each damaged range is named with its place in the file and what it held. Recordings of other
formats are read to their end. With the key of a sealed recording (rec --seal), a change, a
removed block or a cut tail shows.

Exit code 0: whole. 1: damaged, or not what was sealed. 3: no such file. 4: it cannot be read.

Examples:
  tapdeck verify demo.ahr
  tapdeck verify --key seal.key demo.ahr
  tapdeck verify --json *.ahr")]
pub(crate) struct VerifyArgs {
    /// The recordings; `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// The key that the recordings were sealed with
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Ending {
    let key = match args.key.as_deref().map(read_key).transpose() {
        Ok(key) => key,
        Err((message, code)) => {
            complain(args.json, json!({}), message);
            return Ending::Code(code);
        }
    };
    let mut worst = 0;
    for path in &args.files {
        if tapdeck_tape::cassette::is_cassette(path) {
            worst = worst.max(super::cassette::check_one(path, args.json, false));
            continue;
        }
        let code = match check(path, &args.input, key.as_ref(), args.json) {
            Ok(whole) => {
                if whole {
                    0
                } else {
                    code::FAILED
                }
            }
            Err((message, code)) => {
                complain(args.json, json!({"file": path.to_string_lossy()}), message);
                code
            }
        };
        worst = worst.max(code);
    }
    Ending::Code(worst)
}

/// Checks one recording, prints what was found, and says whether all is well.
fn check(
    path: &Path,
    input: &InputArgs,
    key: Option<&SealKey>,
    as_json: bool,
) -> Result<bool, (String, i32)> {
    let source = input.judge(path)?;
    if source.container().format != Format::Ahr || source.container().zst {
        return check_other(&source, as_json);
    }
    let path = source.path();
    let summary = summarise(&source)?;
    let digest = check_digest(&source);
    let sealed = key.map(|key| check_seal(&source, key)).transpose()?;
    let seal_is_there = source.meta().is_some_and(|m| m.seal.is_some());
    if as_json {
        print(format_args!(
            "{}\n",
            human::json(&to_json(path, &summary, &digest, sealed.as_ref(), seal_is_there))
        ));
    } else {
        report(path, &summary, &digest);
        match &sealed {
            Some(sealed) => report_seal(path, sealed),
            None if seal_is_there => print(format_args!("  sealed: give the key with --key to check it\n")),
            None => {}
        }
    }
    let intact = sealed.is_none_or(|s| s.verdict == Verdict::Intact);
    Ok(summary.is_whole() && !matches!(digest, Digest::Differs) && intact)
}

/// Reads a recording of another format to its end.
fn check_other(source: &Source, as_json: bool) -> Result<bool, (String, i32)> {
    let path = source.path();
    let mut reader = source.open().map_err(|e| match &e {
        // That it is none is an answer.
        SourceError::Read { why: tapdeck_tape::Error::Malformed { .. }, .. } => (e.to_string(), code::FAILED),
        _ => (e.to_string(), code::IO),
    })?;
    let (mut events, mut output_bytes, mut duration_ns) = (0u64, 0u64, 0u64);
    let (mut notes, mut more) = (Vec::new(), 0u64);
    loop {
        match reader.next_item() {
            Ok(Some(Item::Event(event))) => {
                events += 1;
                duration_ns = event.time_ns;
                if let Kind::Output(bytes) = event.kind {
                    output_bytes += bytes.len() as u64;
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
    let whole = notes.is_empty();
    let format = crate::formats::container_name(source.container());
    if as_json {
        let value = json!({
            "file": path.to_string_lossy(), "format": format, "whole": whole, "events": events,
            "output_bytes": output_bytes, "duration_ns": duration_ns, "notes": notes, "more_notes": more,
        });
        print(format_args!("{}\n", human::json(&value)));
        return Ok(whole);
    }
    print(format_args!(
        "{}: {}: {format}, {events} events, {} of output, {}\n",
        printable(path),
        if whole { "whole" } else { "damaged" },
        human::bytes(output_bytes),
        human::duration(std::time::Duration::from_nanos(duration_ns)),
    ));
    for note in &notes {
        print(format_args!("  {}\n", human::printable(note)));
    }
    if more > 0 {
        print(format_args!("  and {more} more remarks\n"));
    }
    Ok(whole)
}

/// A key from its file: all of its bytes.
pub(crate) fn read_key(path: &Path) -> Result<SealKey, (String, i32)> {
    use std::io::Read;
    let mut secret = Vec::new();
    let read = open(path)?.take(MAX_KEY + 1).read_to_end(&mut secret);
    read.map_err(|e| (format!("{}: {e}", path.display()), code::IO))?;
    if secret.len() < 16 || secret.len() as u64 > MAX_KEY {
        let path = path.display();
        return Err((format!("{path}: a key has 16 to {MAX_KEY} bytes, best random ones"), code::USAGE));
    }
    Ok(SealKey::new(&secret))
}

fn check_seal(source: &Source, key: &SealKey) -> Result<SealReport, (String, i32)> {
    let path = source.path();
    let fail = |e: &dyn std::fmt::Display| (format!("{}: {e}", path.display()), code::IO);
    let Some(meta) = source.meta() else {
        return Err((
            format!("{}: no meta.json beside it, so no seal to check", path.display()),
            code::FAILED,
        ));
    };
    let lines = File::open(sidecar(path, "seal")).ok().map(BufReader::new);
    let contents: Vec<(&str, Vec<u8>)> = tapdeck_host::SEALED_SIDECARS
        .iter()
        .filter_map(|name| Some((*name, std::fs::read(sidecar(path, name)).ok()?)))
        .collect();
    let sidecars: Vec<(&str, &[u8])> = contents.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let recording = BufReader::with_capacity(1 << 16, source.file().map_err(|e| fail(&e))?);
    seal::verify(recording, &meta, lines, &sidecars, key).map_err(|e| fail(&e))
}

fn report_seal(path: &Path, sealed: &SealReport) {
    let verdict = match sealed.verdict {
        Verdict::Intact => {
            "seal intact: the recording, its meta.json, events and snapshots are what was sealed".to_owned()
        }
        Verdict::Unfinished => {
            format!("seal unfinished: {} blocks are proven, but not that they are all", sealed.blocks)
        }
        Verdict::Broken => "seal broken".to_owned(),
        Verdict::WrongKey => "sealed with another key".to_owned(),
        Verdict::Unsealed => "not sealed".to_owned(),
    };
    print(format_args!("  {verdict}\n"));
    if sealed.verdict == Verdict::Intact {
        let (lines, notes) = (sidecar(path, "seal"), sidecar(path, "instructions.jsonl"));
        if !lines.exists() {
            print(format_args!("  {} is gone: it would only tell where a change is\n", printable(&lines)));
        }
        if notes.exists() {
            print(format_args!("  {} is not sealed: it is written later\n", printable(&notes)));
        }
    }
    for problem in &sealed.problems {
        print(format_args!("  {}\n", human::printable(problem)));
    }
    if sealed.more > 0 {
        print(format_args!("  and {} more\n", sealed.more));
    }
}

fn printable(path: &Path) -> String {
    human::printable(&path.to_string_lossy())
}

/// Reads a whole recording; an error comes with its exit code.
pub(crate) fn summarise(source: &Source) -> Result<Summary, (String, i32)> {
    let path = source.path();
    let fail = |e: &dyn std::fmt::Display| (format!("{}: {e}", path.display()), code::IO);
    let file = source.file().map_err(|e| fail(&e))?;
    let summary = Summary::of(BufReader::with_capacity(1 << 16, file)).map_err(|e| fail(&e))?;
    if summary.blocks == 0 {
        return Err((format!("{}: no recording: not one whole block in it", path.display()), code::FAILED));
    }
    Ok(summary)
}

/// Opens a file for reading; an error comes with its exit code.
pub(crate) fn open(path: &Path) -> Result<File, (String, i32)> {
    let wrong = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { code::NOT_FOUND } else { code::IO };
        (format!("{}: {e}", path.display()), code)
    };
    let file = File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err((format!("{} is a folder", path.display()), code::IO));
    }
    Ok(file)
}

/// What the sidecar says of a recording, if there is one.
pub(crate) fn meta(path: &Path) -> Option<Meta> {
    let bytes = std::fs::read(tapdeck_host::sidecar(path, "meta.json")).ok()?;
    Meta::from_bytes(&bytes).ok()
}

/// Remarks beyond this many are only counted.
const MAX_NOTES: usize = 1_000;
/// No key is longer.
const MAX_KEY: u64 = 65_536;

/// Whether a file is the one that its sidecar describes.
pub(crate) enum Digest {
    Matches,
    Differs,
    Unknown,
}

impl Digest {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Digest::Matches => true.into(),
            Digest::Differs => false.into(),
            Digest::Unknown => Value::Null,
        }
    }
}

pub(crate) fn check_digest(source: &Source) -> Digest {
    let Some(expected) = source.meta().and_then(|m| m.sha256) else { return Digest::Unknown };
    match source.file().and_then(tapdeck_host::digest_of) {
        Ok(found) if found == expected => Digest::Matches,
        Ok(_) => Digest::Differs,
        Err(_) => Digest::Unknown,
    }
}

fn report(path: &Path, s: &Summary, digest: &Digest) {
    let whole = if s.is_whole() { "whole" } else { "damaged" };
    let ended = match s.ending {
        Some(Ended::Exit(code)) => format!("ended with exit code {}", code.cast_signed()),
        Some(Ended::Signal(signal)) => format!("ended by signal {signal}"),
        None => "no end recorded".into(),
    };
    print(format_args!(
        "{}: {whole}: {} blocks, {} records, {} of output, {}, {ended}\n",
        printable(path),
        s.blocks,
        s.records,
        human::bytes(s.output_bytes),
        human::duration(std::time::Duration::from_nanos(s.duration_ns())),
    ));
    for damage in &s.damages {
        print(format_args!("  {}\n", damage_text(damage, s.first_ts)));
    }
    if s.more_damages > 0 {
        print(format_args!("  and {} more damaged ranges\n", s.more_damages));
    }
    let repaired = s.repaired_loss;
    for (bytes, how) in [
        (s.declared_loss.saturating_sub(repaired), "while recording"),
        (repaired, "to damage of the file, which a repair cut out"),
    ] {
        if bytes > 0 {
            let bytes = human::bytes(bytes);
            print(format_args!("  {bytes} of output were lost {how}, as the recording says itself\n"));
        }
    }
    for fault in faults(s) {
        print(format_args!("  {fault}\n"));
    }
    if matches!(digest, Digest::Differs) {
        print(format_args!("  the file is not the one that its meta.json describes: SHA-256 differs\n"));
    }
}

/// What is wrong with a recording beside its damaged ranges.
pub(crate) fn faults(s: &Summary) -> Vec<String> {
    let mut faults = Vec::new();
    if s.missing_bytes > s.declared_loss {
        faults.push(format!("{} of output are missing", human::bytes(s.missing_bytes - s.declared_loss)));
    }
    if s.overlaps > 0 {
        faults.push(format!("output begins before the end of what came before it, {} times", s.overlaps));
    }
    faults
}

/// A damaged range and what it held; with the recording's start, also when that was.
pub(crate) fn damage_text(damage: &Damage, start: Option<u64>) -> String {
    let since = |ts: u64| start.map(|start| ts.saturating_sub(start) as f64 / 1e9);
    let when = match (damage.after_ts.and_then(since), damage.before_ts.and_then(since)) {
        (Some(after), Some(before)) => format!(", from {after:.3} s to {before:.3} s"),
        (Some(after), None) => format!(", after {after:.3} s"),
        (None, Some(before)) => format!(", before {before:.3} s"),
        (None, None) => String::new(),
    };
    format!("{damage}{when}")
}

/// The same as data.
pub(crate) fn damage_json(damage: &Damage, start: Option<u64>) -> Value {
    let since = |ts: Option<u64>| Some(ts?.saturating_sub(start?));
    json!({
        "offset": damage.offset,
        "len": damage.len,
        "kind": damage.kind.name(),
        "message": damage.to_string(),
        "lost_records": damage.lost_records,
        "lost_bytes": damage.lost_bytes,
        "after_ts_ns": damage.after_ts,
        "before_ts_ns": damage.before_ts,
        "after_ns": since(damage.after_ts),
        "before_ns": since(damage.before_ts),
    })
}

/// The summary as data.
pub(crate) fn summary_json(path: &Path, s: &Summary) -> Value {
    let size = |size: Option<(u16, u16)>| size.map(|(cols, rows)| json!({"cols": cols, "rows": rows}));
    let damages: Vec<Value> = s.damages.iter().map(|d| damage_json(d, s.first_ts)).collect();
    json!({
        "file": path.to_string_lossy(),
        "whole": s.is_whole(),
        "blocks": s.blocks,
        "records": s.records,
        "file_bytes": s.file_bytes,
        "record_bytes": s.record_bytes,
        "output_bytes": s.output_bytes,
        "first_byte": s.begins_at,
        "end_offset": s.end_off,
        "inputs": s.inputs,
        "input_bytes": s.input_bytes,
        "resizes": s.resizes,
        "marks": s.marks,
        "snapshots": s.snapshots,
        "first_size": size(s.first_size),
        "last_size": size(s.last_size),
        "first_ts_ns": s.first_ts,
        "last_ts_ns": s.last_ts,
        "duration_ns": s.duration_ns(),
        "exit": match s.ending {
            Some(Ended::Exit(code)) => json!({"code": code.cast_signed()}),
            Some(Ended::Signal(signal)) => json!({"signal": signal}),
            None => Value::Null,
        },
        "finished": s.has_last_block,
        "declared_loss_bytes": s.declared_loss,
        "repaired_loss_bytes": s.repaired_loss,
        "missing_bytes": s.missing_bytes,
        "overlaps": s.overlaps,
        "damages": damages,
        "more_damages": s.more_damages,
    })
}

fn to_json(
    path: &Path,
    summary: &Summary,
    digest: &Digest,
    sealed: Option<&SealReport>,
    seal_is_there: bool,
) -> Value {
    let mut value = summary_json(path, summary);
    value["sha256_matches"] = digest.to_json();
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
