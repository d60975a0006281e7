//! A cassette without what must not be seen. The whole of it is read twice, so that what is recognised late is
//! masked early too; then it is made anew from the masked bytes, with frames and numbers of its own. Nothing of
//! the original reaches the disk on the way.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tapdeck_core::scrub::{PACKS, Report, Rule, RuleError, Rules, Scrubber, Secret};
use tapdeck_tape::cassette::{
    Cassette, CassetteEvent, Closing, EventKind, Files, Recording, Refusal, RuleHits, ScrubReport,
};
use tapdeck_tape::scrub::scrub_json;
use tapdeck_term::Size;

/// Readings after which no more is learned about secrets.
const MAX_READINGS: usize = 4;

/// The rules for a run: these packs, the folders of the run, and values that must not be seen.
///
/// # Errors
/// When there is no such pack.
pub fn scrub_rules(
    packs: &[String],
    folders: &[(&str, &Path)],
    secrets: impl IntoIterator<Item = (String, String)>,
) -> Result<Rules, RuleError> {
    let packs = if packs.is_empty() { Rules::default_packs() } else { packs.to_vec() };
    let mut rules = Rules::of_packs(&packs)?;
    if packs.iter().any(|p| p == "paths" || p == "all") {
        for (name, folder) in folders {
            let text = folder.to_string_lossy();
            // `/`, `/root` and their like say nothing about anybody.
            if folder.is_absolute() && folder.components().count() > 2 {
                rules.push(Rule {
                    name: (*name).into(),
                    pack: "paths".into(),
                    pattern: escape(&text),
                    keep: "/".into(),
                    ..Rule::default()
                });
            }
        }
    }
    let secrets = secrets.into_iter().filter(|(_, value)| value.chars().count() >= 4);
    Rules::new(rules, secrets.map(|(name, value)| Secret { name, value }).collect())
}

/// A text as a pattern that means just that text.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Masks a cassette. Its id stays: nobody has seen the original, or the caller gives another.
///
/// # Errors
/// When the result outgrows the bounds of a cassette.
pub fn scrub(cassette: &Cassette, rules: Arc<Rules>) -> Result<(Files, Report), Refusal> {
    let terminal = &cassette.manifest.terminal;
    let size = Size::new(terminal.initial_cols, terminal.initial_rows);
    let mut scrubber = Scrubber::new(rules, size);
    for reading in 0..MAX_READINGS {
        let known = scrubber.learned();
        if reading > 0 {
            scrubber = scrubber.again();
        }
        for event in &cassette.events {
            match &event.kind {
                EventKind::Output { bytes, .. } => scrubber.output(bytes),
                EventKind::Input(input) => scrubber.input(&input.bytes),
                EventKind::Resize { rows, cols } => scrubber.resize(Size::new(*cols, *rows)),
                _ => {}
            }
        }
        scrubber.finish();
        if reading > 0 && scrubber.learned() == known {
            break;
        }
    }
    let mut masked = cassette.raw().to_vec();
    scrubber.output_masks().apply(0, &mut masked);
    scrubber.inspect(&masked);
    let mut recording =
        Recording::new(terminal.initial_rows, terminal.initial_cols, cassette.manifest.timing.resolution_ms);
    let mut typed = 0;
    for event in &cassette.events {
        copy(event, &masked, &mut typed, &mut scrubber, &mut recording);
    }
    let mut closing = Closing {
        manifest: cassette.manifest.clone(),
        outcome: cassette.outcome.clone(),
        scrub_report: cassette.scrub_report.clone(),
        quota: cassette.quota.clone(),
        discovery: cassette.discovery.clone(),
    };
    for word in &mut closing.manifest.command.argv {
        *word = scrubber.text(word);
    }
    if let Some(path) = &mut closing.outcome.session_log_path {
        *path = scrubber.text(path);
    }
    for value in closing.outcome.metadata.values_mut() {
        scrub_json(value, &mut scrubber);
    }
    let report = scrubber.report();
    closing.scrub_report = stored(&report, &closing.scrub_report);
    let end_ns = cassette.outcome.duration_ms.saturating_mul(1_000_000);
    Ok((recording.finish_in_memory(end_ns, closing)?, report))
}

/// One event, masked, into the new recording.
fn copy(
    event: &CassetteEvent,
    masked: &[u8],
    typed: &mut u64,
    scrubber: &mut Scrubber,
    recording: &mut Recording,
) {
    let at = event.t_ms.saturating_mul(1_000_000);
    match &event.kind {
        EventKind::Output { offset, bytes } => {
            let start = *offset as usize;
            recording.output(at, &masked[start..start + bytes.len()]);
        }
        EventKind::Input(input) => {
            let mut bytes = input.bytes.to_vec();
            scrubber.input_masks().apply(*typed, &mut bytes);
            *typed += bytes.len() as u64;
            let mut copy = input.clone();
            if bytes != input.bytes[..] {
                // The name of a key that was masked would give it away.
                copy.key = None;
            }
            copy.bytes = bytes.into();
            recording.input(at, &copy);
        }
        EventKind::Resize { rows, cols } => recording.resize(at, *rows, *cols),
        EventKind::Signal { name } => recording.signal(at, name),
        EventKind::Service(payload) => {
            let mut payload = payload.clone();
            scrub_json(&mut payload, scrubber);
            recording.service(at, payload);
        }
        _ => {}
    }
}

/// The report as a cassette keeps it. What was said before about the environment stays.
fn stored(report: &Report, before: &ScrubReport) -> ScrubReport {
    let mut out = before.clone();
    out.status = if report.is_clean() { "scrubbed" } else { "incomplete" }.into();
    out.rules = report.rules.iter().map(|r| RuleHits { rule: r.name.clone(), hits: r.hits() }).collect();
    let used = |pack: &str| report.rules.iter().any(|r| r.pack == pack);
    out.kept = PACKS.iter().filter(|p| !used(p.0)).map(|p| format!("{} ({})", p.2, p.0)).collect();
    out.extra.insert("masked_bytes".into(), report.masked_bytes.into());
    if !report.is_clean() {
        let left = json!({"residue": report.residue, "unseen_payloads": report.unseen_payloads});
        out.extra.insert("left".into(), left);
    }
    out
}
