//! All checks of a cassette, one by one, so that a person sees which one fails and that the others
//! do not. A check that cannot mean anything because an earlier one failed is skipped, and says so:
//! one cause, one failure.

use bytes::Bytes;
use tapdeck_term::Size;

use super::read::Parts;
use super::record::final_text;
use super::unknown::{manifest_digest, pretty_keeping};
use crate::seal::SealKey;

use super::{Cassette, Emulator, EventKind, Files, Frame, Model, Refusal, digest_hex, names};

/// Differences between frames beyond this many are only counted.
const MAX_DIFFERENCES: usize = 20;

/// A check and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its short name.
    pub name: &'static str,
    /// What it makes sure of.
    pub what: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

impl Check {
    /// Returns whether the cassette fails because its frames were derived by another emulator.
    pub fn is_other_emulator(&self) -> bool {
        self.name == "emulator" && matches!(self.verdict, Verdict::Failed(_))
    }
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It does not; a sentence for each thing that is wrong.
    Failed(Vec<String>),
    /// It was not looked at, because of this.
    Skipped(String),
}

/// The checks, in their order.
const CHECKS: [(&str, &str); 13] = [
    ("version", "this program can read the version"),
    ("files", "every file is there and can be read"),
    ("fields", "every field is there and means something"),
    ("features", "no unknown feature is required"),
    ("chunks", "the chunks of output.jsonl cover output.raw"),
    ("digest", "output.raw is what was recorded, whole and chunk by chunk"),
    ("seq", "events are numbered from 1 without a gap"),
    ("time", "time never goes back and keeps to the resolution"),
    ("terminal", "the manifest and input.jsonl agree on sizes"),
    ("emulator", "frames were derived by the emulator of this program"),
    ("frames", "frames are what the bytes show"),
    ("final", "final.json agrees with the last screen"),
    ("binding", "the id and all other files are what was committed"),
];

struct Checks {
    list: Vec<Check>,
}

impl Checks {
    fn new() -> Self {
        let skipped = || Verdict::Skipped("not looked at".into());
        Self { list: CHECKS.iter().map(|&(name, what)| Check { name, what, verdict: skipped() }).collect() }
    }

    fn set(&mut self, name: &str, faults: Vec<String>) -> bool {
        let passed = faults.is_empty();
        if let Some(check) = self.list.iter_mut().find(|c| c.name == name) {
            check.verdict = if passed { Verdict::Passed } else { Verdict::Failed(faults) };
        }
        passed
    }

    fn skip(&mut self, name: &str, why: String) {
        if let Some(check) = self.list.iter_mut().find(|c| c.name == name) {
            check.verdict = Verdict::Skipped(why);
        }
    }

    fn result(&mut self, name: &str, result: Result<(), Refusal>) -> bool {
        self.set(name, result.err().map(|e| e.to_string()).into_iter().collect())
    }

    /// Whatever was not looked at was not because of this.
    fn because(mut self, why: &str) -> Vec<Check> {
        for check in &mut self.list {
            if let Verdict::Skipped(reason) = &mut check.verdict {
                *reason = format!("not looked at because {why} failed");
            }
        }
        self.list
    }
}

/// Checks everything, frames derived anew included.
pub fn verify(files: Result<&Files, &Refusal>) -> Vec<Check> {
    verified(files).0
}

/// Verifies a cassette and returns it when every check passed, so that it is read only once.
pub fn verified(files: Result<&Files, &Refusal>) -> (Vec<Check>, Option<Cassette>) {
    let mut checks = Checks::new();
    let parts = match files.map(Parts::parse) {
        Ok(Ok(parts)) => parts,
        Ok(Err(refusal)) => return (refused(checks, &refusal), None),
        Err(refusal) => return (refused(checks, refusal), None),
    };
    for name in ["version", "files", "fields", "features"] {
        checks.set(name, Vec::new());
    }
    if !checks.result("chunks", parts.check_chunks()) {
        return (checks.because("chunks"), None);
    }
    let mut faults: Vec<String> = parts.check_digests().err().map(|e| e.to_string()).into_iter().collect();
    if let Some(fault) = faults.first_mut()
        && matches!(parts.check_digests(), Err(Refusal::Digest { .. }))
        && parts.all_chunks_have_digests()
    {
        fault.push_str("; every chunk of it is as recorded, so it is the manifest that was changed");
    }
    let digest = checks.set("digest", faults);
    if !checks.result("seq", parts.check_seq()) {
        return (checks.because("seq"), None);
    }
    let resolution = parts.manifest.timing.resolution_ms;
    let time = checks.set("time", time_faults(&parts, resolution));
    if !digest {
        return (checks.because("digest"), None);
    }
    let cassette = parts.into_cassette();
    let terminal = checks.set("terminal", terminal_faults(&cassette));
    if !checks.result("emulator", cassette.manifest.terminal.emulator.check()) {
        return (checks.because("emulator"), None);
    }
    let (derived, model) = derive_frames(&cassette);
    let frames = checks.set("frames", frame_faults(&cassette.frames, &derived));
    let last = checks.set("final", final_faults(&cassette, &model));
    if !(time && terminal && frames && last) {
        return (checks.because("another check"), None);
    }
    let mut faults =
        files.map_or_else(|_| Vec::new(), |files| binding_faults(&cassette, files, |_, _| false));
    match unbound(&cassette) {
        // The format does not ask it of others.
        Some(why) if faults.is_empty() && !made_here(&cassette) => {
            checks.skip("binding", format!("not guarded: {why}"));
            return (checks.list, Some(cassette));
        }
        Some(why) => faults.push(why),
        None => {}
    }
    let bound = checks.set("binding", faults);
    (checks.list, bound.then_some(cassette))
}

/// Checks the seal of a cassette whose binding holds.
pub fn check_seal(cassette: &Cassette, key: Option<&SealKey>) -> Check {
    let digest = &cassette.manifest.content_digest;
    let verdict = match (&digest.seal, &digest.binding, key) {
        (None, _, None) => Verdict::Skipped("not sealed".into()),
        (Some(_), _, None) => Verdict::Skipped("sealed, which only its key can check".into()),
        (Some(seal), Some(binding), Some(key)) => match key.check_binding(seal, binding) {
            None => Verdict::Passed,
            Some(why) => Verdict::Failed(vec![why]),
        },
        _ => Verdict::Failed(vec!["it is not sealed".into()]),
    };
    Check { name: "seal", what: "everything is what the owner of the key has sealed", verdict }
}

fn refused(mut checks: Checks, refusal: &Refusal) -> Vec<Check> {
    let name = match refusal {
        Refusal::Version { .. } => "version",
        Refusal::UnknownFeature(_) => "features",
        Refusal::MissingField { .. } | Refusal::Malformed { .. } => "fields",
        _ => "files",
    };
    checks.set(name, vec![refusal.to_string()]);
    checks.because(name)
}

fn time_faults(parts: &Parts, resolution: u64) -> Vec<String> {
    let back = parts.check_time().err().map(|e| e.to_string());
    let odd = || {
        let (seq, t_ms) = parts.times().find(|(_, t_ms)| t_ms % resolution != 0)?;
        Some(format!("seq {seq}: t_ms {t_ms} is no multiple of {resolution}, the resolution in the manifest"))
    };
    back.or_else(odd).into_iter().collect()
}

fn terminal_faults(cassette: &Cassette) -> Vec<String> {
    let said = cassette.manifest.terminal.resizes.iter().map(|r| (r.seq, r.t_ms, Size::new(r.cols, r.rows)));
    let there = cassette.events.iter().filter_map(|e| match e.kind {
        EventKind::Resize(size) => Some((e.seq, e.t_ms, size)),
        _ => None,
    });
    let (said, there): (Vec<_>, Vec<_>) = (said.collect(), there.collect());
    if said == there {
        return Vec::new();
    }
    vec![format!(
        "terminal.resizes in manifest.json lists {} changes of size that are not the {} in input.jsonl",
        said.len(),
        there.len()
    )]
}

/// The frames as the bytes give them, at the places where the cassette has some, and the terminal
/// at the end.
pub fn derive_frames(cassette: &Cassette) -> (Vec<Frame>, Model) {
    let mut model = Model::of(&cassette.manifest);
    let mut frames = Vec::with_capacity(cassette.frames.len());
    for event in &cassette.events {
        if !model.apply(event) && matches!(event.kind, EventKind::Frame(_)) {
            frames.push(model.frame(event.seq, event.t_ms));
            model.framed();
        }
    }
    (frames, model)
}

/// The files of a cassette with frames of this program's emulator, bound anew where it was bound.
/// Everything else is as it was.
///
/// # Errors
/// [`Refusal::Changed`] when the cassette was changed after it was committed: binding that anew
/// would make it evidence.
pub fn reframed(cassette: &Cassette, files: &Files) -> Result<Vec<(&'static str, Bytes)>, Refusal> {
    let (frames, model) = derive_frames(cassette);
    let mut lines = Vec::new();
    let stored = files.need(names::FRAMES)?.split(|b| *b == b'\n');
    for ((line, before), frame) in stored.zip(&cassette.frames).zip(&frames) {
        // One that still holds keeps the keys that this version does not know.
        match before == frame {
            true => lines.extend_from_slice(line),
            false => lines.extend(serde_json::to_vec(frame).unwrap_or_default()),
        }
        lines.push(b'\n');
    }
    let mut outcome = cassette.outcome.clone();
    outcome.final_text = Some(final_text(&model));
    let mut manifest = cassette.manifest.clone();
    manifest.terminal.emulator = Emulator::ours();
    let outcome: Bytes = match outcome == cassette.outcome {
        true => files.need(names::FINAL)?.clone(),
        false => pretty_keeping(files.need(names::FINAL)?, &outcome).into(),
    };
    let stored = files.need(names::MANIFEST)?;
    let own = manifest_digest(&pretty_keeping(stored, &manifest)).unwrap_or_default();
    let mut faults = binding_faults(cassette, files, |name, want| match name {
        // What is derived may be anything before: it is not kept.
        names::FRAMES => true,
        names::FINAL => want == digest_hex(&outcome),
        names::MANIFEST => want == own,
        _ => false,
    });
    faults.extend(unbound(cassette).filter(|_| made_here(cassette)));
    if !faults.is_empty() {
        return Err(Refusal::Changed { faults });
    }
    let digest = &mut manifest.content_digest;
    let bound = digest.binding.is_some();
    let mut out: Vec<(&'static str, Bytes)> = Vec::new();
    for name in names::REQUIRED.into_iter().chain(names::OPTIONAL).filter(|n| *n != names::MANIFEST) {
        let bytes = match name {
            names::FRAMES => std::mem::take(&mut lines).into(),
            names::FINAL => outcome.clone(),
            name => match files.get(name) {
                Some(bytes) => bytes.clone(),
                None => continue,
            },
        };
        if let Some(kept) = digest.files.get_mut(name) {
            *kept = digest_hex(&bytes);
        }
        out.push((name, bytes));
    }
    // What was not guarded before is not by being copied.
    if manifest.content_digest.files.contains_key(names::MANIFEST) {
        manifest.content_digest.files.insert(names::MANIFEST.into(), own);
    }
    // The key is its owner's: what is made anew is not sealed.
    manifest.content_digest.seal = None;
    if bound {
        manifest.content_digest.binding = Some(manifest.binding());
    }
    out.push((names::MANIFEST, pretty_keeping(stored, &manifest).into()));
    Ok(out)
}

fn frame_faults(stored: &[Frame], derived: &[Frame]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut more = 0;
    for (line, (stored, derived)) in (1..).zip(stored.iter().zip(derived)) {
        if stored == derived {
            continue;
        }
        for difference in stored.differences(derived) {
            if faults.len() < MAX_DIFFERENCES {
                faults.push(format!("frames.jsonl line {line} (seq {}): {difference}", stored.seq));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        faults.push(format!("and {more} more differences"));
    }
    faults
}

fn final_faults(cassette: &Cassette, model: &Model) -> Vec<String> {
    let mut faults = Vec::new();
    let outcome = &cassette.outcome;
    if outcome.final_text.as_ref().is_some_and(|text| *text != final_text(model)) {
        faults.push("final.json: final_text is not what the last screen shows".to_owned());
    }
    if outcome.exit.code.is_some() && outcome.exit.signal.is_some() {
        faults.push("final.json: a program ends with an exit code or by a signal, not both".to_owned());
    }
    faults
}

/// Whether this program's recorder made it, which binds whatever it makes.
fn made_here(cassette: &Cassette) -> bool {
    cassette.manifest.provenance.recorder_version.starts_with("tapdeck")
}

/// What is not guarded, if that is so.
fn unbound(cassette: &Cassette) -> Option<String> {
    let missing = cassette.manifest.content_digest.binding.is_none();
    missing.then(|| {
        "manifest.json has no content_digest.binding: nothing guards the id and the files beside output.raw"
            .to_owned()
    })
}

fn is_known(name: &str) -> bool {
    names::REQUIRED.iter().chain(&names::OPTIONAL).any(|known| *known == name)
}

/// What is not as it was committed. A digest that does not fit is passed over where `derived` says
/// that it may be.
fn binding_faults(cassette: &Cassette, files: &Files, derived: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let digest = &cassette.manifest.content_digest;
    let mut faults = Vec::new();
    for (name, want) in &digest.files {
        let is = match files.get(name) {
            // It was parsed before.
            Some(bytes) if name == names::MANIFEST => manifest_digest(bytes).unwrap_or_default(),
            Some(bytes) => digest_hex(bytes),
            // A later version may have files that this one does not read.
            None if !is_known(name) => continue,
            None => {
                faults.push(format!("{name} was removed after the cassette was committed"));
                continue;
            }
        };
        if *want != is && !derived(name, want) {
            faults.push(format!("{name} was changed after the cassette was committed"));
        }
    }
    for (name, _) in files.iter() {
        let known = name == names::MANIFEST || name == names::RAW || digest.files.contains_key(name);
        if !known && digest.binding.is_some() {
            faults.push(format!("{name} was added after the cassette was committed"));
        }
    }
    if faults.is_empty() && digest.binding.as_ref().is_some_and(|b| *b != cassette.manifest.binding()) {
        faults.push(format!(
            "the id {} in manifest.json is not the one that this evidence was committed under",
            cassette.manifest.id
        ));
    }
    faults
}
