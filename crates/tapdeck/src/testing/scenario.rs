//! Running scenario files, and telling what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use tapdeck_core::check::{Cause, Claim, Fact, Failure, Json, Timeline, Trace, What, evaluate, signal_name};
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_host::Clock;
use tapdeck_host::backend::Place;
use tapdeck_tape::cassette::{Binary, Digester, Files};
use tapdeck_tape::scenario::{
    Action, Assertion, CassetteRef, Line, MAX_FILE, SUFFIX, Scenario, ScenarioError, Source, bind,
};
use tapdeck_term::printable;

use super::finished::ended;
use super::live::Pending;
use super::report::write_report;
use super::{AtCaller, Halt, TestError, TestResult, live, picture, replay};

/// Where the session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// From the cassette, without the program.
    Cassette,
    /// From the program, run now.
    Live,
    /// From the program, run now; its cassette is made anew, and the scenario bound to it.
    Record,
}

/// A test: a scenario, or one combination of its matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The scenario's file.
    pub path: PathBuf,
    /// The combination, by its name.
    pub variant: Option<String>,
}

impl Case {
    /// The tests of a scenario file. One that cannot be read is one test, which fails.
    pub fn of_file(path: &Path) -> Vec<Self> {
        let case = |variant| Self { path: path.to_owned(), variant };
        let folder = folder_of(path);
        let text = stored_text(path).unwrap_or_default();
        let variants = Scenario::variants(&text, &|file| stored_text(&folder.join(file))).unwrap_or_default();
        if variants.is_empty() {
            return vec![case(None)];
        }
        variants.into_iter().map(|variant| case(Some(variant))).collect()
    }

    /// Its name: that of the scenario, and the combination.
    pub fn name(&self) -> String {
        named(&short_name(&self.path), self.variant.as_deref())
    }
}

/// A name with the combination of a matrix.
fn named(name: &str, variant: Option<&str>) -> String {
    variant.map_or_else(|| name.to_owned(), |variant| format!("{name} [{variant}]"))
}

/// What came of a scenario.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its file.
    pub path: PathBuf,
    /// The combination of its matrix, if it has one.
    pub variant: Option<String>,
    /// Its name, with the combination.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Checks that were made.
    pub checks: usize,
    /// How long that took.
    pub took: Duration,
    /// When the cassette that was judged was recorded.
    pub captured: Option<WallTime>,
    /// What would have to change on disk for it to pass, as far as that is a matter of stored
    /// facts; for a scenario that passes, what it would say of its cassette if it were bound now.
    pub changes: Vec<Change>,
    /// What a run that failed leaves to look at.
    pub evidence: Option<Arc<Evidence>>,
    /// Whether it failed at first, and passed when it was tried again.
    pub flaky: bool,
    /// The recording that was made, if accepting the changes is all that it takes to keep it.
    pub pending: Option<Pending>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Everything holds.
    Passed,
    /// These things do not.
    Failed(Vec<Fault>),
    /// It could not be run here, for a reason that is no fault of the program's.
    Skipped(String),
}

/// Something that does not hold.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The line of the scenario, or of a file that it includes, where there is one.
    pub line: Option<Box<Line>>,
    /// What should hold.
    pub claim: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Pictures, differences, events.
    pub details: String,
    /// What would make it hold, where that is a matter of files.
    pub remedy: Option<Remedy>,
    /// When the screen was wrong, if it was the screen.
    pub at: Option<Time>,
    /// Expected and shown text, where texts differ.
    pub texts: Option<Box<(String, String)>>,
}

/// What makes a scenario hold that does not, if the present state is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Run the program and make the cassette: [`How::Record`].
    Record,
    /// Make the file that is missing: write [`Report::changes`], or record.
    Make,
    /// Bind the scenario to the cassette that is there: write [`Report::changes`].
    Rebind,
    /// Derive the cassette's frames anew, with the emulator of this program.
    DeriveFrames,
}

impl Fault {
    /// Something that should hold, and what is wrong.
    pub fn new(claim: impl Into<String>, message: impl Into<String>) -> Self {
        let (claim, message) = (claim.into(), message.into());
        Self { line: None, claim, message, details: String::new(), remedy: None, at: None, texts: None }
    }

    /// The fault with what would make it hold.
    pub fn with(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// The file that it is about, the scenario's or one that it includes, and the line.
    pub fn place(&self, scenario: &Path) -> (PathBuf, Option<u64>) {
        let file = self.line.as_ref().and_then(|line| line.file.as_deref());
        let path = file.map_or_else(|| scenario.to_owned(), |file| folder_of(scenario).join(file));
        (path, self.line.as_ref().map(|line| line.number))
    }

    /// The fault in full, for people; nothing in it can act on a terminal.
    pub fn explain(&self, scenario: &Path) -> String {
        let (path, number) = self.place(scenario);
        let place = number.map_or_else(String::new, |number| format!(":{number}"));
        let head = printable(&format!("{}{place}: {}", path.display(), self.claim));
        let details: String = self.details.lines().map(|l| printable(l) + "\n").collect();
        format!("{head}\n  {}\n{details}", printable(&self.message))
    }
}

/// A file that would be different if the present state were taken as right.
#[derive(Debug, Clone)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// What it would hold.
    pub text: String,
    /// The difference, for a person to judge.
    pub difference: String,
    /// For the scenario itself, what it would be bound to.
    pub(super) binding: Option<Box<CassetteRef>>,
}

/// Has all changes of one scenario file's bindings be one change: each combination of a matrix is
/// bound on its own, and all of them are in the same text.
pub fn join_bindings(reports: &mut [Report]) {
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.variant.is_some()) {
        for change in &report.changes {
            let Some(binding) = change.binding.as_deref() else { continue };
            let text = match texts.remove(&change.path) {
                Some(text) => bind(&text, binding, report.variant.as_deref()),
                None => change.text.clone(),
            };
            texts.insert(change.path.clone(), text);
        }
    }
    let changes = reports.iter_mut().flat_map(|report| &mut report.changes);
    for change in changes.filter(|change| change.binding.is_some()) {
        let Some(text) = texts.get(&change.path) else { continue };
        // Without the file nothing of it could have been read.
        let before = stored_text(&change.path).unwrap_or_default();
        change.difference = picture::difference(&before, text);
        change.text.clone_from(text);
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

const READABLE: &str = "the scenario can be read";

/// A scenario that was read, and where.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) scenario: Scenario,
}

/// A scenario that cannot be read is a fault in it.
fn unread(error: ScenarioError) -> Fault {
    Fault { line: Some(Box::new(error.line)), ..Fault::new(READABLE, error.what) }
}

impl Loaded {
    /// Reads the text of a scenario that lies there, with a combination of its matrix. Stored texts
    /// among `new` are taken from there, others from their files.
    pub(super) fn parse(
        path: &Path,
        name: &str,
        text: String,
        variant: Option<&str>,
        new: &BTreeMap<PathBuf, String>,
    ) -> Result<Self, Fault> {
        let folder = folder_of(path).to_owned();
        let stored = |file: &str| {
            let path = folder.join(file);
            new.get(&path).map_or_else(|| stored_text(&path), |text| Ok(text.clone()))
        };
        let scenario = Scenario::parse_variant(&text, variant, &stored).map_err(unread)?;
        Ok(Self { path: path.to_owned(), folder, name: name.to_owned(), text, scenario })
    }

    /// The files that the program gets from beside the scenario, with their digests.
    ///
    /// # Errors
    /// With the name of the one that cannot be read.
    pub(super) fn copied(&self) -> Result<Vec<(String, String)>, (String, io::Error)> {
        let Some(Source::Program(program)) = &self.scenario.source else { return Ok(Vec::new()) };
        let digest = |name: &String| {
            let digest = digest_of(&self.folder.join(name)).map_err(|e| (name.clone(), e))?;
            Ok((name.clone(), digest))
        };
        program.copy.iter().map(digest).collect()
    }

    /// The test that it is.
    pub(super) fn case(&self) -> Case {
        Case { path: self.path.clone(), variant: self.scenario.variant.clone() }
    }

    /// The cassette's folder or archive.
    pub(super) fn cassette(&self) -> PathBuf {
        match &self.scenario.cassette.path {
            Some(path) => self.folder.join(path),
            None => self.folder.join(format!("{}{}", self.name, self.scenario.cassette_suffix())),
        }
    }
}

/// What a run gave: the timeline, and faults beside the assertions.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) timeline: Option<Timeline>,
    /// The timeline before it was scrubbed, if it is known.
    pub(super) unscrubbed: Option<Timeline>,
    /// Claims beside the scenario's own, with their lines.
    pub(super) claims: Vec<(Option<Line>, Claim)>,
    pub(super) faults: Vec<Fault>,
    /// Checks that were made on the way.
    pub(super) checks: usize,
    pub(super) changes: Vec<Change>,
    /// When the cassette was recorded.
    pub(super) captured: Option<WallTime>,
    pub(super) skipped: Option<String>,
    /// What happened in a run that broke off, so that its claims cannot be judged.
    pub(super) broken: Option<Timeline>,
    /// The folder that the program ran in, gone by now.
    pub(super) folder: Option<PathBuf>,
    /// The command lines of the processes that it left behind.
    pub(super) left: Vec<String>,
    /// What the program told of its version.
    pub(super) version: Option<String>,
    /// The files that ran.
    pub(super) binaries: Vec<Binary>,
    /// Where it ran, if not here.
    pub(super) place: Option<String>,
}

/// The scenario files among these paths and in the folders among them, in order.
///
/// # Errors
/// With the path that cannot be read.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, std::io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let meta = fs::metadata(path).map_err(|e| (path.clone(), e))?;
        if !meta.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        let mut open = vec![path.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).map_err(|e| (folder.clone(), e))? {
                let entry = entry.map_err(|e| (folder.clone(), e))?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // Links are not followed: a circle would never end.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && !name.ends_with(".cassette") && !name.starts_with('.') => {
                        open.push(entry.path());
                    }
                    Ok(kind) if kind.is_file() && name.ends_with(SUFFIX) => inside.push(entry.path()),
                    _ => {}
                }
            }
        }
        inside.sort();
        found.extend(inside);
    }
    Ok(found)
}

/// Runs a scenario, or all in a folder, as a test of another project may in one line.
///
/// # Errors
/// With everything that does not hold, in full; also when there are no scenarios at all.
#[track_caller]
pub fn run_all(path: impl AsRef<Path>, how: How) -> TestResult<Vec<Report>> {
    run_every(path.as_ref(), how, None)
}

/// As [`run_all`], and writes the report of it into a folder, as `tapdeck test --report` does.
///
/// # Errors
/// As [`run_all`]; also when the report cannot be written.
#[track_caller]
pub fn run_all_reported(
    path: impl AsRef<Path>,
    how: How,
    folder: impl AsRef<Path>,
) -> TestResult<Vec<Report>> {
    run_every(path.as_ref(), how, Some(folder.as_ref()))
}

#[track_caller]
fn run_every(path: &Path, how: How, folder: Option<&Path>) -> TestResult<Vec<Report>> {
    let clock = Clock::start();
    let files = find(&[path.to_owned()])
        .map_err(|(p, e)| TestError::new(format!("{}: {e}", p.display())))
        .at_caller()?;
    if files.is_empty() {
        return Err(TestError::new(format!("there are no scenarios in {}", path.display())));
    }
    let cases = files.iter().flat_map(|file| Case::of_file(file));
    let reports: Vec<Report> = cases.map(|case| run(&case, how)).collect();
    if let Some(folder) = folder {
        write_report(folder, &reports, clock.elapsed())
            .map_err(|e| TestError::new(format!("the report {} cannot be written: {e}", folder.display())))
            .at_caller()?;
    }
    let mut details = String::new();
    let mut failed = 0;
    for report in &reports {
        if let Outcome::Failed(faults) = &report.outcome {
            failed += 1;
            details.extend(faults.iter().map(|f| f.explain(&report.path) + "\n"));
        }
    }
    if failed == 0 {
        return Ok(reports);
    }
    Err(TestError::with(format!("{failed} of {} scenarios failed", reports.len()), details))
}

/// Runs a test.
pub fn run(case: &Case, how: How) -> Report {
    run_on(case, how, None, &Halt::default())
}

/// Runs a test with its program at this place, whatever its scenario says, and under this rein.
pub fn run_on(case: &Case, how: How, place: Option<&Place>, halt: &Halt) -> Report {
    let clock = Clock::start();
    let load = || load(case);
    let recorded = match how {
        How::Record => load().map(|loaded| live::record(&loaded, place, halt)),
        _ => Ok(None),
    };
    let judged = match recorded {
        Ok(Some(failed)) => Ok(failed),
        // What was kept is judged as anybody else will judge it: from the files.
        Ok(None) => load().map(|loaded| {
            let ran = if how == How::Live { live::run(&loaded, place, halt) } else { replay::run(&loaded) };
            judge(&loaded, ran)
        }),
        Err(fault) => Err(fault),
    };
    let mut report = judged.unwrap_or_else(|fault| Report {
        path: case.path.clone(),
        variant: case.variant.clone(),
        name: case.name(),
        outcome: Outcome::Failed(vec![fault]),
        checks: 0,
        took: Duration::ZERO,
        captured: None,
        changes: Vec::new(),
        evidence: None,
        flaky: false,
        pending: None,
    });
    report.took = clock.elapsed();
    report
}

/// What a scenario is, without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: Option<String>,
    /// Its steps.
    pub steps: usize,
    /// Its claims.
    pub claims: usize,
}

/// Reads a test without running it.
///
/// # Errors
/// With what cannot be read.
pub fn summary(case: &Case) -> Result<Summary, Fault> {
    let Loaded { name, scenario, .. } = load(case)?;
    Ok(Summary {
        name: named(&scenario.name.unwrap_or(name), case.variant.as_deref()),
        about: scenario.about,
        steps: scenario.steps.len(),
        claims: scenario.assertions.len(),
    })
}

/// The name of a scenario's file without what all of them end in.
fn short_name(path: &Path) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

pub(super) fn load(case: &Case) -> Result<Loaded, Fault> {
    let wrong = |what: String| Fault::new(READABLE, what);
    let text = stored_text(&case.path).map_err(|e| wrong(e.to_string()))?;
    Loaded::parse(&case.path, &short_name(&case.path), text, case.variant.as_deref(), &BTreeMap::new())
}

/// The digest of a file's content, or of a folder's names and contents.
fn digest_of(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_dir() {
        let mut file = fs::File::open(path)?;
        let mut digest = Digester::default();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match io::Read::read(&mut file, &mut piece)? {
                0 => return Ok(digest.finish()),
                n => digest.update(&piece[..n]),
            }
        }
    }
    let mut inside = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    inside.sort();
    let mut digest = Digester::default();
    for name in inside {
        let line = format!("{} {}\n", name.to_string_lossy(), digest_of(&path.join(&name))?);
        digest.update(line.as_bytes());
    }
    Ok(digest.finish())
}

/// A text that a check compares with.
pub(super) fn stored_text(path: &Path) -> io::Result<String> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if meta.len() > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    let bytes = fs::read(path)?;
    let wrong = |e: std::string::FromUtf8Error| {
        io::Error::other(format!("it is not UTF-8 from byte {} on", e.utf8_error().valid_up_to() + 1))
    };
    String::from_utf8(bytes).map_err(wrong)
}

/// Judges what a run gave.
pub(super) fn judge(loaded: &Loaded, mut ran: Ran) -> Report {
    let mut seen = ran.broken.take();
    if let Some(timeline) = ran.timeline.take() {
        ran.faults.extend(died(loaded, &timeline));
        ran.checks += usize::from(loaded.scenario.last_event.is_some());
        ran.faults.extend(last_event_fault(loaded, &timeline));
        let own =
            loaded.scenario.assertions.iter().map(|a| (Some(a.line.clone()), a.name.as_deref(), &a.claim));
        // What is kept beside the events is a fact about a cassette; of a program that has just
        // run there is nothing.
        let there = |claim: &Claim| {
            !timeline.beside.is_empty() || !matches!(claim, Claim::Trace(_, Trace::Beside { .. }))
        };
        let own = own.filter(|(_, _, claim)| there(claim));
        let beside = std::mem::take(&mut ran.claims);
        let all: Vec<_> = own.chain(beside.iter().map(|(line, claim)| (line.clone(), None, claim))).collect();
        let claims: Vec<Claim> = all.iter().map(|(_, _, claim)| (*claim).clone()).collect();
        ran.checks += claims.len();
        let verdicts = evaluate(&timeline, &claims);
        for ((line, name, claim), verdict) in all.into_iter().zip(verdicts) {
            let Err(failure) = verdict else { continue };
            let change = change(loaded, claim, &failure);
            let (mut message, mut remedy) = (failure.message.clone(), None);
            if let Some(change) = &change
                && !change.path.exists()
            {
                message = format!("{} is not there yet", change.path.display());
                remedy = Some(Remedy::Make);
            }
            if matches!(claim, Claim::Trace(_, Trace::Leaked(_))) && !ran.left.is_empty() {
                message.push_str(&format!(": {}", ran.left.join("; ")));
            }
            let held =
                |before: &Timeline| evaluate(before, std::slice::from_ref(claim)).iter().all(Result::is_ok);
            if ran.unscrubbed.as_ref().is_some_and(held) {
                message.push_str("; it holds of the program itself, but scrubbing masks what it wants");
            }
            ran.changes.extend(change);
            let said = claim.to_string();
            let claim = name.map_or(said.clone(), |name| format!("{name} ({said})"));
            let details = picture::failure(&failure, &timeline);
            let (at, texts) = (failure.at.map(|at| at.time), failure.texts.clone().map(Box::new));
            let line = line.map(Box::new);
            ran.faults.push(Fault { line, claim, message, details, remedy, at, texts });
        }
        seen = Some(timeline);
    }
    if ran.checks == 0 && ran.faults.is_empty() && ran.skipped.is_none() {
        ran.faults
            .push(Fault::new("something is checked", "the scenario asserts nothing, so it can never fail"));
    }
    let evidence = seen.filter(|_| !ran.faults.is_empty()).map(|timeline| {
        let made = live::make(loaded, &timeline, &ran);
        let stored = || Files::read(&loaded.cassette()).ok().filter(|_| ran.folder.is_none());
        // A picture without its recording is still worth showing.
        let recording = stored().or_else(|| made.ok().map(|made| made.files));
        Arc::new(Evidence { timeline, recording })
    });
    let outcome = match ran.skipped {
        Some(why) => Outcome::Skipped(why),
        None if ran.faults.is_empty() => Outcome::Passed,
        None => Outcome::Failed(ran.faults),
    };
    Report {
        path: loaded.path.clone(),
        variant: loaded.scenario.variant.clone(),
        name: named(
            loaded.scenario.name.as_ref().unwrap_or(&loaded.name),
            loaded.scenario.variant.as_deref(),
        ),
        outcome,
        checks: ran.checks,
        took: Duration::ZERO,
        captured: ran.captured,
        changes: ran.changes,
        evidence,
        flaky: false,
        pending: None,
    }
}

/// What a run that failed leaves to look at.
#[derive(Clone)]
pub struct Evidence {
    /// What happened.
    pub timeline: Timeline,
    /// The recording of it, scrubbed.
    pub recording: Option<Files>,
}

impl std::fmt::Debug for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evidence").field("end", &self.timeline.end).finish_non_exhaustive()
    }
}

/// A program that fails is a failure, unless the scenario says how it ends, or ends it.
fn died(loaded: &Loaded, timeline: &Timeline) -> Option<Fault> {
    let scenario = &loaded.scenario;
    let about_end = |a: &Assertion| matches!(a.claim, Claim::Trace(_, Trace::Exit(_) | Trace::Ended(_)));
    let exit = timeline.end.exit.filter(|_| timeline.end.cause == Cause::Program)?;
    let sent = |number: i32| {
        let name = signal_name(number);
        scenario.steps.iter().any(|s| matches!(&s.action, Action::Signal(sent) if *sent == name))
    };
    let is_meant = match exit {
        Exit::Code(code) => code == 0,
        Exit::Signal(number) => sent(number),
    };
    let is_program = matches!(scenario.source, Some(Source::Program(_)));
    if !is_program || is_meant || scenario.assertions.iter().any(about_end) {
        return None;
    }
    let say = match exit {
        Exit::Code(code) => format!("{{exit: {code}}}"),
        Exit::Signal(number) => format!("{{exit: {{signal: {}}}}}", signal_name(number)),
    };
    let message = format!("it {}; if that is right, add `- {say}` to assert", ended(exit));
    let details = picture::around(timeline, timeline.end.at);
    Some(Fault { details, ..Fault::new("the program ends with code 0", message) })
}

/// A run that breaks off says nothing at its end: the last event must be the one that is required.
fn last_event_fault(loaded: &Loaded, timeline: &Timeline) -> Option<Fault> {
    let (line, wanted) = loaded.scenario.last_event.as_ref()?;
    let events = timeline.moments.iter().filter_map(|moment| match &moment.what {
        What::Service(Json::Map(fields)) => Some(fields),
        _ => None,
    });
    let kind = |fields: &Vec<(String, Json)>| match fields.iter().find(|(key, _)| key == "type") {
        Some((_, Json::Text(kind))) => kind.clone(),
        _ => "without a type".to_owned(),
    };
    let kinds = events.map(kind).filter(|kind| !kind.starts_with("tapdeck."));
    let message = match kinds.last() {
        Some(kind) if kind == *wanted => return None,
        Some(kind) => format!("the last service event is {kind:?}, not {wanted:?}"),
        None => format!("there is no service event, so the last is not {wanted:?}"),
    };
    let claim = format!("require: {{service: {wanted}}}");
    Some(Fault { line: Some(Box::new(line.clone())), ..Fault::new(claim, message) })
}

/// What the stored text of a failed claim would have to be.
fn change(loaded: &Loaded, claim: &Claim, failure: &Failure) -> Option<Change> {
    let (Claim::At(_, condition) | Claim::Eventually(_, condition) | Claim::Always(_, condition)) = claim
    else {
        return None;
    };
    let (expected, shown) = failure.texts.as_ref()?;
    let file = failure.file.as_ref()?;
    let names = |fact: &Fact| match fact {
        Fact::Equals { file: Some(name), .. }
        | Fact::Styled { file: name, .. }
        | Fact::Unread { file: name, .. } => name == file,
        _ => false,
    };
    let stored = condition.facts.iter().any(names);
    stored.then(|| Change {
        path: loaded.folder.join(file),
        text: format!("{shown}\n"),
        difference: picture::difference(expected, shown),
        binding: None,
    })
}
