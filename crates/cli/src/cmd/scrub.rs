//! `tapdeck scrub`: a recording without its secrets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tapdeck::convert::To;
use tapdeck::scrub::{Owner, packs};
use tapdeck_core::scrub::{BUILTIN, Hit, PACKS, Report, RuleReport, Rules, ScrubStream, Scrubber};
use tapdeck_host::cassette::{self, CassetteFolder, new_uuid};
use tapdeck_host::{Clock, RunningDigest, Source, timing_names};
use tapdeck_tape::ahr::parts::{EVENTS, INSTRUCTIONS, META};
use tapdeck_tape::ahr::{CarriedEvents, Place, Quality, part_blocks};
use tapdeck_tape::cassette::Files;
use tapdeck_tape::scrub::{Scrubbed, first_size, scrub_line, scrub_meta, study};
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{Container, EventWriter, Format, JsonValue, Note, Parts, convert as copy, writer};

use crate::ending::{self as reports, Ending, print, print_json, print_json_beside, say};
use crate::failure::{Failure, Result};
use crate::formats;
use crate::human;
use crate::keys::IdentityArgs;
use crate::progress::Progress;
use crate::scrubbing::ScrubArgs;
use tapdeck::OutFile;

/// Mask secrets, names and identifiers in a recording or a cassette.
#[derive(Args)]
#[command(after_help = "\
Matches rules against the screen, so it finds a secret that was written in pieces, contains color
sequences, wraps, or was assembled with cursor movements. The mask has the same width: sequences,
times, chunks and offsets do not change. Input, titles, links, the clipboard and events are masked,
too. A secret that is recognized once is masked everywhere, even where only a part of it is visible.

The exit code is 1 if something could not be checked or masked; with --dry-run, also if something
would be masked.

Examples:
  tapdeck scrub demo.ahr -o clean.ahr
  tapdeck scrub demo.cast -o clean.cast --secret-env GITHUB_TOKEN
  tapdeck scrub demo.ahr --dry-run --json          list the matches
  tapdeck scrub demo.ahr -o clean.ahr --pack secrets --rules ours.toml
  tapdeck scrub cassettes/login -o cassettes/login-clean     a cassette; the copy gets a new id
  tapdeck scrub --list-rules")]
pub(crate) struct ScrubCommand {
    /// The recording
    #[arg(value_name = "FILE", required_unless_present = "list_rules")]
    input: Option<PathBuf>,
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["dry_run", "list_rules"])]
    output: Option<PathBuf>,
    /// Rule packs to use, comma-separated, or `all` or `none`
    #[arg(long = "pack", value_name = "PACK")]
    packs: Vec<String>,
    #[command(flatten)]
    rules: ScrubArgs,
    /// Report what would be masked, without writing anything
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// List the rule packs and their rules
    #[arg(long)]
    list_rules: bool,
    /// Format of the recording [default: from its content and name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container, hide_short_help = true)]
    from: Option<Container>,
    /// Timing file of a typescript
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    timing: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Replace existing files and their sidecars
    #[arg(long)]
    overwrite: bool,
    /// Brotli compression level of an .ahr, from 0 to 11
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=11), hide_short_help = true)]
    brotli_q: u8,
    /// Print nothing on success
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print the report as JSON, on standard error if standard output carries the recording
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ScrubCommand) -> Result {
    if args.list_rules {
        list_rules(args.json);
        return Ok(Ending::Done);
    }
    let outcome = scrub(args).map_err(|failure| failure.about("in", args.name()))?;
    args.tell(&outcome);
    let found = args.dry_run && outcome.report.hits() > 0;
    Ok(Ending::of_check(!found && outcome.is_complete()))
}

/// What became of a recording.
struct Outcome {
    report: Report,
    /// Remarks about the original.
    notes: Vec<Note>,
}

impl Outcome {
    fn is_complete(&self) -> bool {
        self.report.is_clean() && !self.is_damaged()
    }

    /// Whether a part of the original could not be looked at.
    fn is_damaged(&self) -> bool {
        self.notes.iter().any(|note| note.is_damage)
    }
}

impl ScrubCommand {
    fn path(&self) -> &Path {
        self.input.as_deref().unwrap_or(Path::new(""))
    }

    fn name(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }

    /// Reports go beside a recording on standard output.
    pub(super) fn report(&self) -> reports::Report {
        match self.output.as_deref().is_some_and(|o| o.as_os_str() == "-") {
            true if self.json => reports::Report::JsonBeside,
            _ => reports::Report::json(self.json),
        }
    }

    fn tell(&self, outcome: &Outcome) {
        let report = &outcome.report;
        let status = match (outcome.is_complete(), self.dry_run) {
            (false, _) => "incomplete",
            (true, true) => "not_scrubbed",
            (true, false) => "scrubbed",
        };
        if self.json {
            let mut value = report_json(report, status);
            value["notes"] = outcome.notes.iter().map(ToString::to_string).collect();
            value["in"] = self.name().into();
            value["out"] = self.output.as_ref().map(|o| o.to_string_lossy().into_owned()).into();
            return match self.report() {
                reports::Report::JsonBeside => print_json_beside(&value),
                _ => print_json(&value),
            };
        }
        if !self.quiet {
            for rule in report.rules.iter().filter(|r| r.hits() > 0) {
                let parts = [("output", rule.output), ("input", rule.input), ("beside it", rule.fields)];
                let parts = parts.iter().filter(|p| p.1 > 0).map(|(what, n)| format!("{n} in {what}"));
                say(format_args!("{}: {}", rule.name, parts.collect::<Vec<_>>().join(", ")));
            }
            let (found, none): (Vec<_>, Vec<_>) = report.rules.iter().partition(|r| r.hits() > 0);
            let hits = human::count(report.hits(), "hit");
            let found = human::count(found.len(), "rule");
            let none = human::count(none.len(), "rule");
            let masked = human::bytes(report.masked_bytes);
            match self.dry_run {
                true => say(format_args!("would mask {masked}: {hits} of {found}; {none} found nothing")),
                false => {
                    say(format_args!("{status}: {hits} of {found}, {masked} masked; {none} found nothing"));
                }
            }
        }
        for note in outcome.notes.iter().take(5) {
            say(format_args!("{}: {note}", self.path().display()));
        }
        if outcome.is_damaged() {
            say("the recording is damaged: not all of it could be looked at");
        }
        if report.unseen_payloads > 0 {
            say(format_args!(
                "{} sequences carry more than 1 MiB, which was not looked into",
                report.unseen_payloads
            ));
        }
        if report.residue > 0 {
            say(format_args!(
                "a known secret is still there {}, inside a sequence that must not be touched",
                human::times(report.residue)
            ));
        }
    }
}

/// A scrubber's report in full.
fn report_json(report: &Report, status: &str) -> Value {
    let rule = |r: &RuleReport| json!({"rule": r.name, "pack": r.pack, "hits": r.hits(), "output": r.output, "input": r.input, "fields": r.fields});
    let stream = |s: ScrubStream| match s {
        ScrubStream::Output => "output",
        ScrubStream::Input => "input",
        ScrubStream::Field => "field",
    };
    let hit = |h: &Hit| json!({"rule": h.rule, "stream": stream(h.stream), "at": h.at, "length": h.length});
    json!({
        "status": status,
        "hits": report.hits(),
        "rules": report.rules.iter().map(rule).collect::<Vec<_>>(),
        "positions": report.positions.iter().map(hit).collect::<Vec<_>>(),
        "more_positions": report.more_positions,
        "masked_bytes": report.masked_bytes,
        "secrets_learned": report.learned,
        "unseen_payloads": report.unseen_payloads,
        "residue": report.residue,
    })
}

fn scrub(args: &ScrubCommand) -> Result<Outcome> {
    let path = args.path();
    if path.as_os_str() == "-" {
        return Err(Failure::usage("a recording is read more than once to be scrubbed: name a file"));
    }
    args.identity.load([path])?;
    let source = Source::find(path, args.from, args.timing.as_deref())?;
    if source.container().format == Format::Cassette {
        return scrub_cassette(args, &source);
    }
    let meta = (source.container().format == Format::Ahr).then(|| source.meta()).flatten();
    let cwd = meta.as_ref().and_then(|m| m.cwd.clone());
    let rules = args.rules.rules(&packs(&args.packs), &Owner::of_process(cwd))?;
    // Output that cannot be written fails before the work. A dry run discards the copy.
    let (mut writer, mut sink) = match args.output.as_deref() {
        Some(path) => Sink::create(path, &source, args).map(|(writer, sink)| (Some(writer), Some(sink)))?,
        None => (writer(Format::Raw, Quality::default()), None),
    };
    let Some(writer) = &mut writer else { return Err(Failure::internal("there is no writer")) };
    let count = Arc::<AtomicU64>::default();
    let (mut progress, total) = (Progress::new("scrubbing"), source.len() * 2);
    let open = || source.open_counted(&count);
    let first = open()?;
    let mut scrubber = Scrubber::new(rules, first_size(first.header()));
    drop(first);
    if let Some(mut meta) = meta.clone() {
        scrub_meta(&mut meta, &mut scrubber);
    }
    let scrubber = study(scrubber, || {
        progress.tick(count.load(Ordering::Relaxed), total);
        open()
    })?;
    let mut reader = Scrubbed::new(open()?, scrubber);
    let copied = copy::<CopyError>(&mut reader, &mut **writer, |parts, _| {
        progress.tick(count.load(Ordering::Relaxed), total);
        sink.as_mut().map_or(Ok(()), |sink| sink.put(parts).map_err(CopyError::Out))
    });
    let notes = match copied {
        Ok(copied) if copied.events == 0 && !copied.notes.is_empty() => {
            return Err(Failure::io(format!("{}: no recording: nothing in it can be read", path.display())));
        }
        Ok(copied) => copied.notes,
        Err(CopyError::Out(failure)) => return Err(failure),
        Err(CopyError::Tape(e)) => {
            let why = source.read_error(e);
            let message = format!("{why}: nothing was written; tapdeck repair makes it whole");
            return Err(Failure::io(message));
        }
    };
    progress.clear();
    scrub_parts(&source, reader.scrubber(), sink.as_mut(), args)?;
    if let Some(sink) = &mut sink {
        sink.finish()?;
    }
    Ok(Outcome { report: reader.scrubber().report(), notes })
}

/// Scrubs a cassette into another, with its own frames, digests and id.
fn scrub_cassette(args: &ScrubCommand, source: &Source) -> Result<Outcome> {
    let rules = args.rules.rules(&packs(&args.packs), &Owner::of_process(None))?;
    let folder = args.output.as_deref().map(|path| cassette_folder(path, source, args)).transpose()?;
    let unreadable = |e: tapdeck_tape::Error| Failure::from(source.read_error(e));
    let original = Files::read(source.path()).map_err(|e| unreadable(e.into()))?;
    let id = new_uuid(Clock::start().wall_start());
    let id = id.map_err(|e| Failure::io(format!("no random numbers: {e}")))?;
    let scrubbed = cassette::scrub(&original, rules, Some(id), None);
    let (files, report) = scrubbed.map_err(|e| unreadable(e.into()))?;
    if let Some(mut folder) = folder {
        folder.append_all(&files)?;
        folder.commit()?;
    }
    Ok(Outcome { report, notes: Vec::new() })
}

fn cassette_folder(path: &Path, source: &Source, args: &ScrubCommand) -> Result<CassetteFolder> {
    if path.as_os_str() == "-" {
        return Err(Failure::usage("a cassette is a folder: it cannot go to standard output"));
    }
    let is_cassette = |t: To| t.container().is_some_and(|c| c.format == Format::Cassette);
    if let Some(target) = To::of_path(path).filter(|t| !is_cassette(*t)) {
        return Err(other_format(path, target, "cassette"));
    }
    not_itself(path, source)?;
    Ok(CassetteFolder::create(path, args.overwrite)?)
}

fn other_format(path: &Path, target: To, name: &str) -> Failure {
    Failure::usage(format!(
        "{} is the name of a {target}, and scrubbing keeps the format, {name}: convert it afterwards",
        path.display()
    ))
}

fn not_itself(path: &Path, source: &Source) -> Result<()> {
    let same = |o| std::fs::canonicalize(source.path()).is_ok_and(|i| i == o);
    match std::fs::canonicalize(path).is_ok_and(same) {
        true => {
            Err(Failure::usage(format!("{} would be replaced by itself: give another name", path.display())))
        }
        false => Ok(()),
    }
}

/// Why the copy failed.
enum CopyError {
    Tape(tapdeck_tape::Error),
    Out(Failure),
}

impl From<tapdeck_tape::Error> for CopyError {
    fn from(e: tapdeck_tape::Error) -> Self {
        CopyError::Tape(e)
    }
}

/// The output of the copy.
struct Sink {
    path: PathBuf,
    /// `None`: standard output.
    main: Option<OutFile>,
    timing: Option<(PathBuf, OutFile)>,
    zst: Option<ZstWriter>,
    /// It is a native recording in a file, beside which something older may stand.
    native: bool,
    overwrite: bool,
    /// What was written, and where parts of a native recording go.
    digest: RunningDigest,
    place: Option<Place>,
}

impl Sink {
    fn create(path: &Path, source: &Source, args: &ScrubCommand) -> Result<(Box<dyn EventWriter>, Self)> {
        let container = source.container();
        let name = container.to_string();
        let Some(writer) = writer(container.format, Quality::Brotli(args.brotli_q)) else {
            return Err(Failure::usage(format!("{name} can be read, but not written: convert it first")));
        };
        let to_stdout = path.as_os_str() == "-";
        if let Some(target) = To::of_path(path).filter(|_| !to_stdout)
            && !target.container().is_some_and(|c| is_same_kind(c, container))
        {
            return Err(other_format(path, target, &name));
        }
        not_itself(path, source)?;
        let create =
            |path: &Path| OutFile::create(path, args.overwrite).map_err(|e| Failure::write(path, &e));
        let timing = match (container.format, to_stdout) {
            (Format::Typescript, true) => {
                return Err(Failure::usage("a typescript has a timing file: name a file for it"));
            }
            (Format::Typescript, false) => {
                let path = timing_names(path).into_iter().next().unwrap_or_default();
                let file = create(&path)?;
                Some((path, file))
            }
            _ => None,
        };
        let zst = container.zst.then(|| ZstWriter::new(3)).transpose();
        let sink = Sink {
            path: path.to_owned(),
            main: if to_stdout { None } else { Some(create(path)?) },
            timing,
            zst: zst.map_err(|e| Failure::io(e.to_string()))?,
            native: container.format == Format::Ahr && !container.zst && !to_stdout,
            overwrite: args.overwrite,
            digest: RunningDigest::default(),
            place: None,
        };
        Ok((writer, sink))
    }
}

/// Whether two formats share a file name; all versions of the asciicast do.
fn is_same_kind(a: Container, b: Container) -> bool {
    let cast = |f| matches!(f, Format::CastV1 | Format::CastV2 | Format::CastV3);
    a.zst == b.zst && (a.format == b.format || (cast(a.format) && cast(b.format)))
}

impl Sink {
    fn put(&mut self, parts: &mut Parts) -> Result<()> {
        self.place = parts.place.or(self.place);
        self.put_main(&mut parts.main)?;
        if let Some((path, file)) = &mut self.timing {
            file.write_all(&parts.timing).map_err(|e| Failure::write(path, &e))?;
        }
        Ok(())
    }

    fn put_main(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        self.digest.update(bytes);
        if let Some(zst) = &mut self.zst {
            zst.step(bytes).map_err(|e| Failure::io(e.to_string()))?;
        }
        self.write(bytes)
    }

    /// Adds to a part of a native recording.
    fn put_part(&mut self, name: &str, bytes: &[u8], quality: u8) -> Result<()> {
        let Some(place) = self.place else { return Ok(()) };
        self.put_main(&mut part_blocks(&[(name, bytes)], place, Quality::Brotli(quality), true).concat())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.main {
            Some(file) => file.write_all(bytes).map_err(|e| Failure::write(&self.path, &e)),
            None => io::stdout().write_all(bytes).map_err(|e| crate::ending::output_failed(&e)),
        }
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(zst) = self.zst.take() {
            let end = zst.finish().map_err(|e| Failure::io(e.to_string()))?;
            self.write(&end)?;
        }
        if self.native && self.overwrite {
            tapdeck_host::forget_sidecars(&self.path).map_err(|e| Failure::write(&self.path, &e))?;
        }
        if let Some((path, file)) = self.timing.take() {
            file.commit().map_err(|e| Failure::write(&path, &e))?;
        }
        match self.main.take() {
            Some(file) => file.commit().map_err(|e| Failure::write(&self.path, &e)),
            None => io::stdout().flush().map_err(|e| crate::ending::output_failed(&e)),
        }
    }
}

/// Scrubs what a native recording says of itself. Without `sink`, only counts.
fn scrub_parts(
    source: &Source,
    scrubber: &mut Scrubber,
    mut sink: Option<&mut Sink>,
    args: &ScrubCommand,
) -> Result<()> {
    if source.container().format != Format::Ahr {
        return Ok(());
    }
    for part in [EVENTS, INSTRUCTIONS] {
        let Some(old) = source.sidecar(part) else { continue };
        let fail =
            |e: &dyn std::fmt::Display| Failure::io(format!("{part} of {}: {e}", source.path().display()));
        let lines = scrub_lines(BufReader::new(old), scrubber).map_err(|e| fail(&e))?;
        let lines = match part {
            // The writer has written those of markers.
            EVENTS => carried_events(&lines).map_err(|e| fail(&e))?,
            _ => lines,
        };
        if let Some(sink) = &mut sink {
            sink.put_part(part, &lines, args.brotli_q)?;
        }
    }
    if let Some(mut meta) = source.meta() {
        scrub_meta(&mut meta, scrubber);
        if let Some(sink) = sink {
            // The seal is of the original bytes.
            (meta.seal, meta.sha256) = (None, None);
            meta.brotli_q = Some(args.brotli_q);
            meta.digest = Some(sink.digest.digest());
            meta.extra.insert("scrubbed", JsonValue::of(&json!({"tapdeck": env!("CARGO_PKG_VERSION")})));
            let line = meta.to_line().map_err(|e| Failure::io(e.to_string()))?;
            sink.put_part(META, &line, args.brotli_q)?;
        }
    }
    Ok(())
}

/// The events that a writer does not write itself.
fn carried_events(lines: &[u8]) -> tapdeck_tape::Result<Vec<u8>> {
    let mut carried = CarriedEvents::new(lines);
    let mut out = Vec::new();
    while let Some(line) = carried.next_up_to(u64::MAX)? {
        out.extend_from_slice(&line);
    }
    Ok(out)
}

fn scrub_lines(mut from: impl BufRead, scrubber: &mut Scrubber) -> io::Result<Vec<u8>> {
    /// The longest line of a sidecar.
    const MAX_LINE: u64 = 1 << 20;
    let mut out = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(out);
        }
        out.extend(scrub_line(&line, scrubber));
    }
}

fn list_rules(as_json: bool) {
    if as_json {
        let rule = |b: &tapdeck_core::scrub::Builtin| json!({"rule": b.name, "pack": b.pack, "about": b.about, "pattern": b.pattern});
        let packs =
            PACKS.iter().map(|(name, on, about)| json!({"pack": name, "default": on, "about": about}));
        let value = json!({
            "packs": packs.collect::<Vec<_>>(),
            "rules": BUILTIN.iter().map(rule).collect::<Vec<_>>(),
        });
        print_json(&value);
        return;
    }
    let used = Rules::default_packs();
    for (pack, _, about) in PACKS {
        let when = if used.iter().any(|u| u == pack) { "" } else { " (only when asked for)" };
        print(format_args!("{pack}: {about}{when}\n"));
        for rule in BUILTIN.iter().filter(|b| b.pack == *pack) {
            print(format_args!("  {:<18} {}\n", rule.name, rule.about));
        }
        match *pack {
            "secrets" => {
                print(format_args!("  {:<18} what is typed at a prompt for a password\n", "typed-password"))
            }
            "people" => print(format_args!("  {:<18} the user's name, standing alone\n", "user-name")),
            "paths" => {
                print(format_args!("  {:<18} the folder that the session ran in\n", "working-folder"));
                print(format_args!("  {:<18} your own home folder\n", "own-home-folder"));
            }
            _ => {}
        }
    }
}
