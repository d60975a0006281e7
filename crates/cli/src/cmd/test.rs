//! `tapdeck test`: scenarios, judged from their cassettes or from the programs themselves.

use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use tapdeck::testing::{
    Case, Fault, Halt, How, Outcome, Place, Remedy, Report, find, join_bindings, json_report, junit, run_on,
    summary, write_report,
};
use tapdeck_core::WallTime;
use tapdeck_host::{Clock, Keyboard, Pressed};
use tapdeck_tape::Container;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result, advice};
use crate::human;
use crate::place::PlaceArgs;
use crate::unreadable::{self, FileRole};
use tapdeck::OutFile;

mod draft;
mod kept;
mod review;
mod watch;

use review::Update;

/// Test terminal programs: check scenarios against cassettes or the programs themselves.
#[derive(Args)]
#[command(after_help = "\
A scenario is a file NAME.scenario.yaml; folders are searched for them. The number of checks counts
the waits of its steps, its claims and, from a cassette, the parts of the cassette that were verified.

Exit codes:
  0   all scenarios pass, or are skipped without --no-skips
  1   a scenario fails, or cannot be read
  2   wrong usage
  3   no such file, or no scenario in it
  4   a report or an update cannot be written

Examples:
  tapdeck test cassettes/                   replay cassettes; needs no program
  tapdeck test --live cassettes/            run the programs
  tapdeck test --live --on docker:debian my.scenario.yaml    run the program in a container
  tapdeck test --record my.scenario.yaml    run the program and record its cassette
  tapdeck test --record --update my.scenario.yaml    record anew, and review changed texts
  tapdeck test --update cassettes/          review how stored texts would change
  tapdeck test --rebind my.scenario.yaml    accept a changed cassette, command or step
  tapdeck test --live --report report my.scenario.yaml    pictures and recordings of failures
  tapdeck test --live --watch .             run again what a change touches; Ctrl-C ends it
  tapdeck test --from-session demo.ahr -o new.scenario.yaml    a scenario from what you did
  tapdeck test --junit report.xml --jobs 4 cassettes/")]
pub(crate) struct TestArgs {
    /// Scenario files, or folders that contain them
    #[arg(value_name = "PATH", required_unless_present = "from_session")]
    paths: Vec<PathBuf>,
    /// Write a scenario from a recording with input (rec -I), or from the recording of a session
    #[arg(long, value_name = "SESSION|FILE", requires = "output", conflicts_with_all = ["paths", "live", "record", "update", "rebind"])]
    from_session: Option<String>,
    /// The file to write, NAME.scenario.yaml
    #[arg(long, short, value_name = "FILE", requires = "from_session")]
    output: Option<PathBuf>,
    /// Run the programs instead of replaying their cassettes
    #[arg(long, conflicts_with = "record")]
    live: bool,
    /// Run the programs and record their cassettes
    #[arg(long)]
    record: bool,
    /// Number of scenarios to run in parallel [default: the number of CPUs]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run only tests whose name, with the combination of a matrix, contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// List the scenarios, and run none
    #[arg(long, conflicts_with_all = ["record", "update"])]
    list: bool,
    /// Run tests again when their scenario, stored texts, copied files or program change
    #[arg(long, conflicts_with_all = ["record", "update", "rebind", "list", "json"])]
    watch: bool,
    /// Run each scenario N times; it fails if one of the runs does
    #[arg(long, value_name = "N", requires = "live", default_value = "1", hide_short_help = true)]
    repeat: NonZeroUsize,
    /// Run a scenario that fails up to N times more; if it passes then, it is reported as flaky
    #[arg(long, value_name = "N", requires = "live", default_value_t = 0, hide_short_help = true)]
    retries: usize,
    /// Write a JUnit XML report
    #[arg(long, value_name = "FILE", value_parser = crate::parse::file())]
    junit: Option<PathBuf>,
    /// Write a report into a folder: a page with pictures and recordings, JSON, and JUnit XML
    #[arg(long, value_name = "DIR", value_parser = crate::parse::file())]
    report: Option<PathBuf>,
    /// Keep so many recordings of failed runs; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 10, hide_short_help = true)]
    keep_failed: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Show each stored text or binding that would change, and ask whether to accept it
    #[arg(long, conflicts_with = "live")]
    update: bool,
    /// Accept changed cassettes, steps, commands or environments: bind the scenarios to them anew
    #[arg(long, hide_short_help = true, conflicts_with_all = ["live", "record", "update"])]
    rebind: bool,
    /// With --update, accept all changes without asking
    #[arg(long, hide_short_help = true, requires = "update", visible_alias = "yes")]
    accept: bool,
    /// Fail if a cassette was recorded longer ago than this
    #[arg(long, value_name = "TIME", hide_short_help = true, value_parser = crate::parse::duration, conflicts_with_all = ["live", "record"])]
    max_age: Option<Duration>,
    /// Fail if a scenario is skipped, for instance because its program is not installed
    #[arg(long, hide_short_help = true)]
    no_skips: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &TestArgs) -> Result {
    if let (Some(from), Some(output)) = (&args.from_session, &args.output) {
        return draft::write(from, output);
    }
    let place = args.place.wanted().map_err(Failure::usage)?;
    if place.is_some() && !args.live && !args.record {
        return Err(Failure::usage(
            "--on is for --live and --record: a cassette was recorded where it was recorded",
        ));
    }
    let how = match (args.live, args.record) {
        (true, _) => How::Live,
        (_, true) => How::Record,
        _ => How::Cassette,
    };
    let job = Job { how, place };
    if args.watch {
        return watch::watch(args, &job);
    }
    let cases = args.cases()?;
    if args.list {
        return list(&cases, args.json);
    }
    let io = |e: std::io::Error| Failure::io(format!("cannot run anything: {e}"));
    // Before any thread is started, so that all have the signals blocked.
    let mut signals = (how != How::Cassette).then(Keyboard::ends_only).transpose().map_err(io)?;
    match once(args, &job, &cases, signals.as_mut())? {
        Ran::All(reports) => Ok(Ending::of_check(reports.iter().all(|report| is_good(args, report)))),
        Ran::Stopped(signal) => Ok(Ending::by_signal(signal)),
    }
}

/// How tests are run, and where their programs are.
struct Job {
    how: How,
    place: Option<Place>,
}

/// Whether a test is as it should be.
fn is_good(args: &TestArgs, report: &Report) -> bool {
    match report.outcome {
        Outcome::Passed => true,
        Outcome::Skipped(_) => !args.no_skips,
        Outcome::Failed(_) => false,
    }
}

/// Runs the tests once, and tells and writes what came of them.
fn once(args: &TestArgs, job: &Job, cases: &[Case], signals: Option<&mut Keyboard>) -> Result<Ran> {
    let how = job.how;
    let clock = Clock::start();
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let quiet = args.json;
    let each = |report: &Report| {
        if !quiet {
            tell(report);
        }
    };
    let age = |report: &mut Report| {
        if let Some(max_age) = args.max_age {
            refuse_old(report, clock.wall_start() - max_age, max_age);
        }
    };
    let runs = Runs { how, repeat: args.repeat.get(), retries: args.retries };
    let mut reports = match run_all(cases, runs, job.place.as_ref(), (jobs, signals), (age, each))? {
        Ran::All(reports) => reports,
        stopped => return Ok(stopped),
    };
    for report in &mut reports {
        // Stored texts stay as they are with --rebind: only --update changes what a test expects.
        let passed = matches!(report.outcome, Outcome::Passed);
        report.changes.retain(|change| if args.rebind { change.path == report.path } else { !passed });
    }
    join_bindings(&mut reports);
    let updates = match args.update || args.rebind {
        true => review::update(&mut reports, how, args.accept || args.rebind, args.json)?,
        false => Vec::new(),
    };
    // The other claims of an updated scenario may still fail.
    if updates.iter().any(Update::is_written) {
        judge_again(&mut reports, !quiet);
    }
    let took = clock.elapsed();
    if let Some(path) = &args.junit {
        write_junit(path, &reports, took)
            .map_err(|e| Failure::io(format!("the report {} cannot be written: {e}", path.display())))?;
    }
    if let Some(folder) = &args.report {
        write_report(folder, &reports, took)
            .map_err(|e| Failure::io(format!("the report {} cannot be written: {e}", folder.display())))?;
    }
    if how != How::Cassette && args.keep_failed > 0 {
        for path in kept::keep(&reports, args.keep_failed)? {
            say(format_args!("the failed run is kept: tapdeck view {}", path.display()));
        }
    }
    if args.json {
        let mut value = json_report(&reports, took);
        if args.update || args.rebind {
            value["updates"] = updates.iter().map(Update::as_json).collect();
        }
        print_json(&value);
    } else {
        sum_up(&reports, took, how);
        let pending = reports.iter().filter(|r| r.pending.is_some()).count();
        if pending > 0 {
            print(format_args!(
                "{pending} of them would pass with other stored texts: review them with --record --update\n"
            ));
        }
    }
    Ok(Ran::All(reports))
}

impl TestArgs {
    /// Finds the tests to run. Fails if there are none.
    fn cases(&self) -> Result<Vec<Case>> {
        let files = find(&self.paths).map_err(|(path, e)| unreadable::file(&path, &e, FileRole::Scenario))?;
        if files.is_empty() {
            let looked: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
            return Err(Failure::not_found(format!(
                "there are no scenarios in {}: they are files called NAME.scenario.yaml",
                looked.join(", ")
            )));
        }
        let is_recording = |path: &&PathBuf| {
            path.file_name().and_then(|name| name.to_str()).and_then(Container::of_name).is_some()
        };
        if let Some(path) = files.iter().find(is_recording) {
            return Err(Failure::usage(format!(
                "{} is a recording; name a scenario, which is a file called NAME.scenario.yaml",
                path.display()
            )));
        }
        let mut cases: Vec<Case> = files.iter().flat_map(|file| Case::of_file(file)).collect();
        let Some(part) = &self.only else { return Ok(cases) };
        let all = cases.len();
        cases.retain(|case| case.name().contains(part.as_str()));
        if cases.is_empty() {
            return Err(Failure::not_found(format!("none of the {all} tests here has {part:?} in its name")));
        }
        Ok(cases)
    }
}

/// The result of all tests.
enum Ran {
    All(Vec<Report>),
    /// A signal stopped them.
    Stopped(i32),
}

/// Runs the failed scenarios again, after a change.
fn judge_again(reports: &mut [Report], aloud: bool) {
    for report in reports.iter_mut().filter(|r| matches!(r.outcome, Outcome::Failed(_))) {
        *report = run_one(&case_of(report), Runs::from(How::Cassette), None, &Halt::default());
        if aloud {
            tell(report);
        }
    }
}

/// Fails a scenario whose cassette was recorded before `oldest`.
fn refuse_old(report: &mut Report, oldest: WallTime, max_age: Duration) {
    if matches!(report.outcome, Outcome::Skipped(_)) || report.captured.is_some_and(|at| at >= oldest) {
        return;
    }
    let message = match report.captured {
        Some(at) => format!("it was recorded at {} and may be {} old", at.utc(), human::duration(max_age)),
        None => "it does not say when it was recorded".to_owned(),
    };
    let message = message + advice(Some(Remedy::Record));
    let fault = Fault::new("the cassette is not older than --max-age", message).with(Remedy::Record);
    match &mut report.outcome {
        Outcome::Failed(faults) => faults.push(fault),
        outcome => *outcome = Outcome::Failed(vec![fault]),
    }
}

/// How scenarios are run, and how often.
#[derive(Clone, Copy)]
struct Runs {
    how: How,
    /// Runs of each.
    repeat: usize,
    /// Further runs of one that fails.
    retries: usize,
}

impl From<How> for Runs {
    fn from(how: How) -> Self {
        Self { how, repeat: 1, retries: 0 }
    }
}

/// Runs one scenario as often as it is to be run, and says in its faults what to do about them.
fn run_one(case: &Case, runs: Runs, place: Option<&Place>, halt: &Halt) -> Report {
    let is_failed = |report: &Report| matches!(report.outcome, Outcome::Failed(_));
    let mut report = run_on(case, runs.how, place, halt);
    for _ in 1..runs.repeat {
        if is_failed(&report) || halt.is_called() {
            break;
        }
        report = run_again(report, runs, place, halt);
    }
    for _ in 0..runs.retries {
        if !is_failed(&report) || halt.is_called() {
            break;
        }
        report = run_again(report, runs, place, halt);
        report.flaky = !is_failed(&report);
    }
    if let Outcome::Failed(faults) = &mut report.outcome {
        for fault in faults {
            fault.message.push_str(advice(fault.remedy));
        }
    }
    report
}

/// The test that a report is about.
fn case_of(report: &Report) -> Case {
    Case { path: report.path.clone(), variant: report.variant.clone() }
}

/// Runs a scenario once more. Checks and times add up.
fn run_again(before: Report, runs: Runs, place: Option<&Place>, halt: &Halt) -> Report {
    let mut report = run_on(&case_of(&before), runs.how, place, halt);
    report.checks += before.checks;
    report.took += before.took;
    report
}

/// Prints the scenarios without running them.
fn list(cases: &[Case], json: bool) -> Result {
    let mut all = Vec::new();
    for case in cases {
        let path = &case.path;
        let listed = summary(case).map_err(|fault| Failure::check(fault.explain(path)))?;
        if json {
            all.push(json!({
                "path": path.to_string_lossy(),
                "name": listed.name,
                "variant": case.variant,
                "about": listed.about,
                "steps": listed.steps,
                "claims": listed.claims,
            }));
        } else {
            let about = listed.about.map(|about| format!(": {about}")).unwrap_or_default();
            let line = format!("{}{about} ({} steps, {} claims)", listed.name, listed.steps, listed.claims);
            print(format_args!(
                "{}  {}\n",
                human::printable(&path.to_string_lossy()),
                human::printable(&line)
            ));
        }
    }
    if json {
        print_json(&json!({ "scenarios": all }));
    }
    Ok(Ending::of_check(true))
}

/// Runs all tests, several at a time. `each` gets the reports in the order of the tests. A
/// signal to end ends the programs of the scenarios first.
fn run_all(
    cases: &[Case],
    runs: Runs,
    place: Option<&Place>,
    (jobs, mut signals): (usize, Option<&mut Keyboard>),
    (also, each): (impl Fn(&mut Report) + Sync, impl Fn(&Report) + Sync),
) -> Result<Ran> {
    let io = |e: std::io::Error| Failure::io(format!("cannot run anything: {e}"));
    let halt = signals.as_ref().map_or_else(Halt::default, |s| Halt::with_signals(s.inherited()));
    let next = AtomicUsize::new(0);
    let done: Mutex<(usize, BTreeMap<usize, Report>)> = Mutex::default();
    // What is recorded is written into the scenario, so that the combinations of one wait for one
    // another.
    let is_apart = |a: &Case, b: &Case| runs.how != How::Record || a.path != b.path;
    let groups: Vec<Vec<(usize, &Case)>> = cases
        .iter()
        .enumerate()
        .collect::<Vec<_>>()
        .chunk_by(|(_, a), (_, b)| !is_apart(a, b))
        .map(<[_]>::to_vec)
        .collect();
    let run_group = |group: &[(usize, &Case)]| {
        for (i, case) in group.iter().copied() {
            let mut report = run_one(case, runs, place, &halt);
            also(&mut report);
            if halt.is_called() {
                return;
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.1.insert(i, report);
            let (told, reports) = &mut *done;
            while let Some(report) = reports.get(told) {
                each(report);
                *told += 1;
            }
        }
    };
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_group(group);
        }
    };
    let (over, working) = std::io::pipe().map_err(io)?;
    let workers: Vec<PipeWriter> =
        (0..jobs.min(groups.len())).map(|_| working.try_clone()).collect::<Result<_, _>>().map_err(io)?;
    drop(working);
    let ended = std::thread::scope(|scope| {
        for working in workers {
            let work = &work;
            scope.spawn(move || {
                work();
                // The wait below ends when the last worker closes its end.
                drop(working);
            });
        }
        signals.as_mut().map_or(Ok(None), |signals| wait(signals, &over, &halt))
    });
    if let Some(signal) = ended.map_err(io)? {
        return Ok(Ran::Stopped(signal));
    }
    Ok(Ran::All(done.into_inner().unwrap_or_else(PoisonError::into_inner).1.into_values().collect()))
}

/// Waits until the workers have closed the other end, or for a signal, which ends the scenarios.
fn wait(signals: &mut Keyboard, over: &PipeReader, halt: &Halt) -> std::io::Result<Option<i32>> {
    loop {
        let mut others = [PollFd::new(over, PollFlags::IN)];
        let pressed = signals.wait_beside(None, &mut others).inspect_err(|_| halt.call())?;
        match pressed {
            Pressed::Signal(signal) => {
                halt.call();
                return Ok(Some(signal));
            }
            _ if poll(&mut others, Some(&Timespec::default()))? > 0 => return Ok(None),
            _ => {}
        }
    }
}

/// Prints the line of a scenario, and its faults.
fn tell(report: &Report) {
    let ms = report.took.as_secs_f64() * 1e3;
    let name = human::printable(&report.name);
    match &report.outcome {
        Outcome::Passed => {
            let word = if report.flaky { "flaky   " } else { "ok      " };
            print(format_args!("{word} {name} ({} checks, {ms:.1} ms)\n", report.checks));
        }
        Outcome::Skipped(why) => print(format_args!("skipped  {name}: {}\n", human::printable(why))),
        Outcome::Failed(faults) => {
            print(format_args!("FAILED   {name} ({} checks, {ms:.1} ms)\n", report.checks));
            for fault in faults {
                print(format_args!("\n{}", fault.explain(&report.path)));
            }
            print(format_args!("\n"));
        }
    }
}

fn count(reports: &[Report], which: impl Fn(&Outcome) -> bool) -> usize {
    reports.iter().filter(|r| which(&r.outcome)).count()
}

fn sum_up(reports: &[Report], took: Duration, how: How) {
    let failed = count(reports, |o| matches!(o, Outcome::Failed(_)));
    let skipped = count(reports, |o| matches!(o, Outcome::Skipped(_)));
    let checks: usize = reports.iter().map(|r| r.checks).sum();
    let from = match how {
        How::Cassette => "from cassettes",
        How::Live => "live",
        How::Record => "recorded",
    };
    let time = human::duration(took);
    let passed = reports.len() - failed - skipped;
    print(format_args!(
        "\n{passed} passed, {failed} failed, {skipped} skipped, {checks} checks {from} in {time}\n"
    ));
}

fn write_junit(path: &Path, reports: &[Report], took: Duration) -> std::io::Result<()> {
    let mut out = OutFile::create_shared(path, true)?;
    out.write_all(junit(reports, took).as_bytes())?;
    out.commit()
}
