//! A cassette without what must not be seen. The whole of it is read until nothing new is learned,
//! so that what is recognised late is masked early too; then it is made anew from the masked bytes,
//! with frames and numbers of its own. A recorder masks what it writes at once; what it recognised
//! too late is masked at the end.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tapdeck_core::scrub::{Masks, PACKS, Report, Rules, Scrubber};
use tapdeck_core::{Offset, Time};
use tapdeck_tape::JsonValue;
use tapdeck_tape::cassette::{
    Cassette, CassetteEvent, Closing, EventKind, Files, Recording, Refusal, RuleHits, ScrubReport, Traces,
    UnknownFields,
};
use tapdeck_tape::scrub::{scrub_argv, scrub_extra, scrub_json, status};
use tapdeck_tape::seal::SealKey;

use super::CommitError;

/// Readings after which no more is learned about secrets.
const MAX_READINGS: usize = 4;
/// Where the manifest names the cassette that another was made of.
const FROM: &str = "scrubbed_from";

/// Masks a cassette. With a new id it becomes another one that names the original; without one, the
/// original was never seen. It is sealed with the key, if there is one.
///
/// # Errors
/// When the original is refused, or the result outgrows the bounds of a cassette.
pub fn scrub(
    original: &Files,
    rules: Arc<Rules>,
    new_id: Option<String>,
    key: Option<SealKey>,
) -> Result<(Files, Report), Refusal> {
    let cassette = Cassette::from_files(original)?;
    let mut unknown = UnknownFields::of(original);
    let terminal = &cassette.manifest.terminal;
    let size = terminal.initial_size();
    let mut closing = Closing::new(cassette.manifest.clone())
        .outcome(cassette.outcome.clone())
        .scrub_report(cassette.scrub_report.clone())
        .quota(cassette.quota.clone())
        .discovery(cassette.discovery.clone())
        .seal(key.clone());
    let events = || Ok::<_, Refusal>(cassette.events.iter().cloned());
    let mut scrubber = Scrubber::new(rules, size);
    unknown.clone().each(|fields| scrub_extra(fields, &mut scrubber));
    let mut scrubber = study(scrubber, &closing, events)?;
    let mut recording = Recording::new(terminal.initial_size(), cassette.manifest.timing.resolution());
    let mut masked = Masked::default();
    for event in events()? {
        recording.event(masked.event(event, &mut scrubber));
    }
    let report = finish(&mut closing, &mut scrubber, |scrubber| {
        unknown.each(|fields| scrub_extra(fields, scrubber));
    });
    if let Some(id) = new_id {
        let old = std::mem::replace(&mut closing.manifest.id, id);
        closing.manifest.optional.insert(FROM, old);
    }
    let end = Time::from_millis(cassette.outcome.duration_ms);
    let mut files = recording.finish_in_memory(end, closing)?;
    unknown.put_into(&mut files, key.as_ref())?;
    Ok((files, report))
}

/// Masks in a folder what was recognised only after it had been written there. The scrubber has
/// read the run once; its masks that came too late are given with it. Returns whether there was
/// anything: `each` has then been given all events anew.
pub(super) fn scrub_again(
    folder: &Path,
    (scrubber, output, input): (Scrubber, Masks, Masks),
    closing: &mut Closing,
    mut each: impl FnMut(CassetteEvent) -> Result<(), CommitError>,
) -> Result<bool, CommitError> {
    let events = || {
        let mut late = Typed::default();
        let (output, input) = (&output, &input);
        Ok(Traces::open(folder)?.map(move |event| late.masked(event, output, input)))
    };
    let mut scrubber = study(scrubber.again(), closing, events)?;
    // What is found is counted when it is masked, and no event is masked twice.
    let (mut trial, mut masked) = (scrubber.clone(), Masked::default());
    let mut dirty = !output.is_empty() || !input.is_empty();
    dirty = dirty || events()?.any(|event| masked.event(event.clone(), &mut trial) != event);
    if dirty {
        let mut masked = Masked::default();
        for event in events()? {
            each(masked.event(event, &mut scrubber))?;
        }
    } else {
        scrubber = trial;
    }
    finish(closing, &mut scrubber, |_| ());
    Ok(dirty)
}

/// Masks what stands beside the events, and says in the report what was found.
fn finish(closing: &mut Closing, scrubber: &mut Scrubber, also: impl FnOnce(&mut Scrubber)) -> Report {
    beside(closing, scrubber);
    also(scrubber);
    let report = scrubber.report();
    closing.scrub_report = stored(&report, &closing.scrub_report);
    report
}

/// Reads all events until a reading teaches nothing new about their secrets.
fn study<I: Iterator<Item = CassetteEvent>>(
    mut scrubber: Scrubber,
    closing: &Closing,
    events: impl Fn() -> Result<I, Refusal>,
) -> Result<Scrubber, Refusal> {
    // What an argument or an event tells may be typed or shown without its name.
    beside(&mut closing.clone(), &mut scrubber);
    for event in events()? {
        if let EventKind::Service(mut payload) = event.kind {
            scrub_json(&mut payload, &mut scrubber);
        }
    }
    for reading in 0..MAX_READINGS {
        let known = scrubber.learned();
        if reading > 0 {
            scrubber = scrubber.again();
        }
        for event in events()? {
            match &event.kind {
                EventKind::Output { bytes, .. } => scrubber.output(bytes),
                EventKind::Input(input) => scrubber.input(&input.bytes),
                EventKind::Resize(size) => scrubber.resize(*size),
                _ => {}
            }
        }
        scrubber.finish();
        if scrubber.learned() == known {
            break;
        }
    }
    scrubber.forget_fields();
    Ok(scrubber)
}

/// Masks what stands beside the events. Names of rules and variables, times and digests stay.
pub(super) fn beside(closing: &mut Closing, scrubber: &mut Scrubber) {
    let Closing { manifest, outcome, quota, discovery, .. } = closing;
    manifest.command.argv = scrub_argv(&manifest.command.argv, scrubber);
    let harness = &mut manifest.harness;
    let texts = [&mut harness.binary_version, &mut harness.account_class, &mut outcome.session_log_path];
    for text in texts.into_iter().flatten().chain([&mut harness.name]) {
        *text = scrubber.text(text);
    }
    let values =
        [&mut harness.capability, &mut outcome.usage, &mut outcome.cost, &mut outcome.routing_actual];
    for value in values.into_iter().flatten() {
        scrub_json(value, scrubber);
    }
    // The id of a cassette is no secret.
    let from = manifest.optional.remove(FROM);
    for map in [&mut manifest.optional, &mut manifest.extra, &mut outcome.metadata, &mut outcome.extra] {
        scrub_extra(map, scrubber);
    }
    if let Some(id) = from {
        manifest.optional.insert(FROM, id);
    }
    if let Some(quota) = quota {
        for text in [&mut quota.source].into_iter().chain(&mut quota.account_class) {
            *text = scrubber.text(text);
        }
        for window in &mut quota.windows {
            for text in [&mut window.name, &mut window.limit_id].into_iter().chain(&mut window.resets_at) {
                *text = scrubber.text(text);
            }
        }
        scrub_extra(&mut quota.extra, scrubber);
    }
    if let Some(discovery) = discovery {
        for text in discovery.models.iter_mut().chain(&mut discovery.reasoning_levels) {
            *text = scrubber.text(text);
        }
        scrub_extra(&mut discovery.extra, scrubber);
    }
}

/// Masks events, in order.
#[derive(Default)]
struct Masked(Typed);

impl Masked {
    fn event(&mut self, event: CassetteEvent, scrubber: &mut Scrubber) -> CassetteEvent {
        let mut event = self.0.masked(event, scrubber.output_masks(), scrubber.input_masks());
        match &mut event.kind {
            EventKind::Output { bytes, .. } => scrubber.inspect(bytes),
            EventKind::Service(payload) => scrub_json(payload, scrubber),
            _ => {}
        }
        event
    }
}

/// Bytes of input so far.
#[derive(Default)]
struct Typed(u64);

impl Typed {
    fn masked(&mut self, mut event: CassetteEvent, output: &Masks, input: &Masks) -> CassetteEvent {
        let apply = |masks: &Masks, at: Offset, bytes: &mut Bytes| {
            let touched = masks.touches(at, bytes.len());
            if touched {
                let mut masked = bytes.to_vec();
                masks.apply(at, &mut masked);
                *bytes = masked.into();
            }
            touched
        };
        match &mut event.kind {
            EventKind::Output { offset, bytes } => {
                apply(output, Offset(*offset), bytes);
            }
            EventKind::Input(typed) => {
                let (at, before) = (Offset(self.0), typed.bytes.clone());
                self.0 += before.len() as u64;
                if apply(input, at, &mut typed.bytes) && typed.bytes != before {
                    // The name of a key that was masked would give it away.
                    typed.key = None;
                }
            }
            _ => {}
        }
        event
    }
}

/// The report as a cassette keeps it. What was said before stays: about the environment, and about
/// what earlier rules have masked.
pub(super) fn stored(report: &Report, before: &ScrubReport) -> ScrubReport {
    let mut out = before.clone();
    out.status = status(report).into();
    for rule in &report.rules {
        match out.rules.iter_mut().find(|r| r.rule == rule.name) {
            Some(known) => known.hits += rule.hits(),
            None => out.rules.push(RuleHits { rule: rule.name.clone(), hits: rule.hits() }),
        }
    }
    let used = |pack: &str| report.rules.iter().any(|r| r.pack == pack);
    let was_kept = |what: &String| before.rules.is_empty() || before.kept.contains(what);
    let kept = PACKS.iter().filter(|p| !used(p.0)).map(|p| format!("{} ({})", p.2, p.0));
    out.kept = kept.filter(was_kept).collect();
    let masked = before.extra.get("masked_bytes").and_then(|n| n.as_u64()).unwrap_or(0);
    out.extra.insert("masked_bytes", masked + report.masked_bytes);
    out.extra.remove("left");
    if !report.is_clean() {
        let left = json!({"residue": report.residue, "unseen_payloads": report.unseen_payloads});
        out.extra.insert("left", JsonValue::of(&left));
    }
    out
}
