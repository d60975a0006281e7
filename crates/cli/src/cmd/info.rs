//! `tapdeck info`: what a recording is.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_host::{Clock, Source};
use tapdeck_tape::ahr::parts::{EVENTS, INDEX, INSTRUCTIONS, META};
use tapdeck_tape::ahr::{Ending as Ended, Summary};
use tapdeck_tape::cassette::{Freshness, is_traces, open_for_viewing};
use tapdeck_tape::meta::{EditSource, Meta};
use tapdeck_tape::{Format, Item, Kind};

use super::recordings::tag_text;
use crate::ending::{Ending, Report, print, print_json};
use crate::failure::{Failure, Result};
use crate::health::{summarise, summary_json};
use crate::human;
use crate::input::InputArgs;

/// Show a recording's metadata: command, size, duration, event counts, and what else is in it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck info demo.ahr
  tapdeck info --json demo.ahr | jq .summary.duration_ns")]
pub(crate) struct InfoArgs {
    /// The recordings, or `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// With more output than this, a recording opens faster with an index.
const WORTH_AN_INDEX: u64 = 4 << 20;

pub(crate) fn run(args: &InfoArgs) -> Result {
    let report = Report::json(args.json);
    let mut ending = Ending::Done;
    for path in &args.files {
        if let Err(failure) = show(path, &args.input, args.json) {
            ending = ending.worse(failure.report(report));
        }
    }
    Ok(ending)
}

/// Prints what is known of a recording.
pub(crate) fn show(path: &Path, input: &InputArgs, as_json: bool) -> Result<()> {
    show_found(path, input, as_json).map_err(|failure| failure.about("file", path.to_string_lossy()))
}

fn show_found(path: &Path, input: &InputArgs, as_json: bool) -> Result<()> {
    let source = input.find(path)?;
    if source.container().format != Format::Ahr || source.container().zst {
        return show_other(&source, as_json);
    }
    let summary = summarise(&source)?;
    let meta = source.meta();
    if as_json {
        print_json(&to_json(&source, &summary, meta.as_ref()));
    } else {
        print(format_args!("{}", to_text(&source, &summary, meta.as_ref())));
    }
    Ok(())
}

/// Prints what a recording of another format tells of itself.
fn show_other(source: &Source, as_json: bool) -> Result<()> {
    let mut reader = source.open().map_err(|e| Failure::io(e.to_string()))?;
    let header = reader.header().clone();
    let (mut output_bytes, mut inputs, mut moments, mut end, mut ending) = (0, 0u64, 0u64, Time::ZERO, None);
    let broke_off = loop {
        let event = match reader.next_item() {
            Ok(Some(Item::Event(event))) => event,
            Ok(Some(Item::Note(_))) => continue,
            Ok(None) => break None,
            Err(e) => break Some(e.to_string()),
        };
        end = event.time;
        match event.kind {
            Kind::Output(bytes) => output_bytes += bytes.len() as u64,
            Kind::Input(_) => inputs += 1,
            Kind::Marker(_) | Kind::Snapshot { .. } => moments += 1,
            Kind::Exit(Exit::Code(code)) => ending = Some(format!("exit code {code}")),
            Kind::Exit(Exit::Signal(signal)) => ending = Some(format!("signal {signal}")),
            _ => {}
        }
    };
    let format = source.container().to_string();
    let cassette = cassette_facts(source);
    if as_json {
        let value = json!({
            "file": source.path().to_string_lossy(), "format": format, "title": header.title, "tags": header.tags, "env": header.env,
            "command": header.command, "term": header.term, "started_ns": header.started.map(WallTime::as_nanos),
            "cols": header.size.map(|s| s.cols), "rows": header.size.map(|s| s.rows), "duration_ns": end.as_nanos(),
            "output_bytes": output_bytes, "inputs": inputs, "moments": moments, "ended": ending,
            "broke_off": broke_off, "cassette": cassette,
        });
        print_json(&value);
        return Ok(());
    }
    let mut text = format!("{}\n", human::printable(&source.path().to_string_lossy()));
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {name:<10} {}\n", human::printable(&value)));
        }
    };
    line("format", Some(format));
    line("title", header.title);
    let listed = |things: Vec<String>| (!things.is_empty()).then(|| things.join(", "));
    line("tags", listed(header.tags.iter().map(tag_text).collect()));
    line("env", listed(header.env.iter().map(|(name, value)| format!("{name}={value}")).collect()));
    line("command", header.command);
    line("started", header.started.map(human::moment));
    line("lasted", Some(human::duration(end.since_start())));
    line("ended", ending);
    line("terminal", header.size.map(|size| size.to_string()));
    line("output", Some(human::bytes(output_bytes)));
    line("input", (inputs > 0).then(|| human::count(inputs, "piece")));
    line("moments", (moments > 0).then(|| moments.to_string()));
    line("on disk", Some(human::bytes(source.len())));
    let fact = |key: &str| cassette.as_ref().and_then(|c| c.get(key)?.as_str().map(str::to_owned));
    line("failed", fact("failed"));
    line("id", fact("id"));
    line("sha256", fact("sha256"));
    line("emulator", fact("emulator"));
    line("scrubbing", fact("scrubbing"));
    line("version", fact("version"));
    line("captured", fact("captured_at"));
    line("freshness", fact("freshness"));
    line("health", broke_off.map(|why| format!("breaks off: {why}")));
    print(format_args!("{text}"));
    Ok(())
}

/// The facts that tests of a cassette are bound to.
fn cassette_facts(source: &Source) -> Option<Value> {
    if source.container().format != Format::Cassette {
        return None;
    }
    let cassette = open_for_viewing(source.path()).ok()?;
    if is_traces(source.path()) {
        // No test can be bound to it.
        let why = cassette.outcome.metadata.get("failed");
        return Some(json!({
            "failed": why.and_then(|why| why.as_str().map(str::to_owned)).unwrap_or_default(),
            "scrubbing": cassette.scrub_report.status, "harness": cassette.manifest.harness.name,
            "version": cassette.manifest.harness.binary_version,
            "captured_at": cassette.manifest.harness.captured_at,
        }));
    }
    let freshness = match cassette.freshness(Clock::start().wall_start()) {
        Freshness::Unlimited => "unlimited".to_owned(),
        Freshness::Until(until) => format!("fresh until {}", until.utc()),
        Freshness::Expired(since) => format!("stale since {}", since.utc()),
        Freshness::Unclear(why) => format!("unclear: {why}"),
    };
    Some(json!({
        "id": cassette.manifest.id, "sha256": cassette.manifest.content_digest.sha256,
        "emulator": cassette.manifest.terminal.emulator.to_string(), "frames": cassette.frames.len(),
        "events": cassette.events.len(), "scrubbing": cassette.scrub_report.status,
        "harness": cassette.manifest.harness.name, "version": cassette.manifest.harness.binary_version,
        "captured_at": cassette.manifest.harness.captured_at, "freshness": freshness,
        "freshness_window": cassette.manifest.harness.freshness_window,
    }))
}

fn to_json(source: &Source, summary: &Summary, meta: Option<&Meta>) -> Value {
    let meta = meta.and_then(|m| m.to_bytes().ok()).and_then(|b| serde_json::from_slice::<Value>(&b).ok());
    let path = source.path();
    json!({
        "file": path.to_string_lossy(), "encrypted": source.is_encrypted(), "meta": meta,
        "summary": summary_json(path, summary),
        "parts": parts(source).iter().map(Part::to_json).collect::<Vec<_>>(),
        "missing": missing(source, summary), "beside": beside(source),
    })
}

/// What a recording holds besides the session itself.
struct Part {
    name: String,
    bytes: u64,
    /// Lines, or keyframes of the index.
    count: Option<u64>,
}

impl Part {
    fn to_json(&self) -> Value {
        json!({"name": self.name, "bytes": self.bytes, "count": self.count})
    }

    fn counted(&self) -> String {
        let one = self.count == Some(1);
        let what = match (&*self.name, one) {
            (INSTRUCTIONS, true) => "instruction",
            (INSTRUCTIONS, false) => "instructions",
            (INDEX, true) => "keyframe",
            (INDEX, false) => "keyframes",
            (_, true) => "line",
            (_, false) => "lines",
        };
        let bytes = human::bytes(self.bytes);
        self.count.map_or_else(|| bytes.clone(), |count| format!("{count} {what}, {bytes}"))
    }
}

fn parts(source: &Source) -> Vec<Part> {
    let part = |(name, bytes): (&str, u64)| {
        let count = match name {
            INDEX => source.index().map(|(index, _)| index.keyframes.len() as u64),
            INSTRUCTIONS => source.instructions().ok().map(|all| all.len() as u64),
            META | EVENTS => source.sidecar(name).and_then(|part| lines(part).ok()),
            _ => None,
        };
        Part { name: human::printable(name), bytes, count }
    };
    source.parts().list().map(part).collect()
}

fn lines(part: impl Read) -> io::Result<u64> {
    let mut part = BufReader::with_capacity(1 << 16, part);
    let mut lines = 0;
    loop {
        let some = part.fill_buf()?;
        if some.is_empty() {
            return Ok(lines);
        }
        lines += some.iter().filter(|b| **b == b'\n').count() as u64;
        let n = some.len();
        part.consume(n);
    }
}

/// What a recording of this version has, and this one has not.
fn missing(source: &Source, s: &Summary) -> Vec<&'static str> {
    let has = |name| source.parts().len_of(name).is_some();
    let mut missing = Vec::new();
    if !has(META) {
        missing.push("meta.json");
    }
    if !s.has_last_block {
        missing.push("its end");
    }
    if !has(INDEX) && s.output_bytes > WORTH_AN_INDEX && !source.is_encrypted() {
        missing.push("an index");
    }
    missing
}

/// The names of files beside a recording that say more of it.
fn beside(source: &Source) -> Vec<String> {
    let name = |path: PathBuf| Some(human::printable(&path.file_name()?.to_string_lossy()));
    source.beside().into_iter().filter_map(name).collect()
}

/// How often and how long a recording was paused.
pub(super) fn paused_text(s: &Summary) -> Option<String> {
    let times = human::times(s.pauses);
    let open = if s.paused_at.is_some() { ", and ends so" } else { "" };
    (s.pauses > 0).then(|| format!("{times}, {} in sum{open}", human::duration(s.paused())))
}

/// A line of several things, unless there are none.
fn line_of(line: &mut impl FnMut(&str, String), name: &str, things: impl Iterator<Item = String>) {
    let things: Vec<String> = things.collect();
    if !things.is_empty() {
        line(name, things.join(", "));
    }
}

fn to_text(source: &Source, s: &Summary, meta: Option<&Meta>) -> String {
    let mut text = format!("{}\n", human::printable(&source.path().to_string_lossy()));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<10} {value}\n"));
    if let Some(meta) = meta {
        if let Some(title) = &meta.title {
            line("title", human::printable(title));
        }
        line_of(&mut line, "tags", meta.tags.iter().map(tag_text));
        line_of(
            &mut line,
            "env",
            meta.env.iter().map(|(name, value)| human::printable(&format!("{name}={value}"))),
        );
        if let Some(earlier) = &meta.continues {
            line("continues", human::printable(earlier));
        }
        if let Some(parent) = &meta.parent {
            line("branched", human::printable(&format!("from {} at {}", parent.path, parent.at)));
        }
        if !meta.cmd.is_empty() {
            line("command", human::printable(&meta.cmd.join(" ")));
        }
        if let Some(cwd) = &meta.cwd {
            line("folder", human::printable(cwd));
        }
    }
    for edit in meta.iter().flat_map(|meta| &meta.history) {
        let source = |source: &EditSource| match &source.sha256 {
            Some(digest) => format!("{} ({:.8})", source.name, digest),
            None => source.name.clone(),
        };
        let sources: Vec<String> = edit.sources.iter().map(source).collect();
        let joined = if sources.len() > 1 { "joined " } else { "" };
        let how = if edit.edits.is_empty() { String::new() } else { format!(": {}", edit.edits.join(", ")) };
        line("edited", human::printable(&format!("{joined}{}{how}", sources.join(" + "))));
    }
    // A recording converted from one without a start time begins at 0.
    if let Some(first) = s.first_ts.filter(|first| *first > 0) {
        line("started", human::moment(WallTime::from_nanos(first)));
    }
    line("lasted", human::duration(s.duration()));
    if let Some(paused) = paused_text(s) {
        line("paused", paused);
    }
    line(
        "ended",
        match s.ending {
            Some(Ended::Exit(code)) => format!("exit code {}", code.cast_signed()),
            Some(Ended::Signal(signal)) => format!("signal {signal}"),
            None => "not recorded".into(),
        },
    );
    if let Some(size) = s.first_size {
        let changes = s.resizes.saturating_sub(1);
        let resized =
            if changes > 0 { format!(", resized {}", human::times(changes)) } else { String::new() };
        line("terminal", format!("{size}{resized}"));
    }
    line("output", format!("{} in {}", human::bytes(s.output_bytes), human::count(s.outputs, "piece")));
    if s.inputs > 0 {
        line("input", format!("{} in {}", human::bytes(s.input_bytes), human::count(s.inputs, "piece")));
    }
    if s.snapshots > 0 {
        line("snapshots", s.snapshots.to_string());
    }
    line("on disk", format!("{} in {}", human::bytes(s.file_bytes), human::count(s.blocks, "block")));
    for (i, part) in parts(source).iter().enumerate() {
        line(if i == 0 { "in it" } else { "" }, format!("{}: {}", part.name, part.counted()));
    }
    let missing = missing(source, s);
    if !missing.is_empty() {
        line("not in it", missing.join(", "));
    }
    let beside = beside(source);
    if !beside.is_empty() {
        line("beside it", format!("{}; see tapdeck repair --adopt", beside.join(", ")));
    }
    if source.is_encrypted() {
        line("encrypted", "to keys of age".into());
    }
    if s.lost_while_recording() > 0 {
        let lost = human::bytes(s.lost_while_recording());
        line("lost", format!("{lost} of output while recording: see tapdeck verify"));
    }
    if !s.is_whole() {
        line("health", "damaged: see tapdeck verify".into());
    }
    text
}
