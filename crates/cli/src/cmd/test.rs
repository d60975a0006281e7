//! `tapdeck test`: scenarios, judged from their cassettes or from the programs themselves.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, PipeReader, PipeWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tapdeck::testing::{Change, Fault, Halt, How, Outcome, Place, Remedy, Report, find, run_on};
use tapdeck_core::WallTime;
use tapdeck_host::{Clock, Keyboard, Pressed};
use tapdeck_tape::Container;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result, advice};
use crate::human;
use crate::place::PlaceArgs;
use crate::unreadable::{self, FileRole};
use tapdeck::OutFile;

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
  tapdeck test --update cassettes/          show how stored texts would change, and ask
  tapdeck test --rebind my.scenario.yaml    accept a changed cassette, command or step
  tapdeck test --junit report.xml --jobs 4 cassettes/")]
pub(crate) struct TestArgs {
    /// Scenario files, or folders that contain them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Run the programs instead of replaying their cassettes
    #[arg(long, conflicts_with = "record")]
    live: bool,
    /// Run the programs and record their cassettes
    #[arg(long)]
    record: bool,
    /// Number of scenarios to run in parallel [default: the number of CPUs]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run only scenarios whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write a JUnit XML report
    #[arg(long, value_name = "FILE", value_parser = crate::parse::file())]
    junit: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Accept the current output: show how stored texts and bindings would change, and ask
    #[arg(long, conflicts_with_all = ["live", "record"])]
    update: bool,
    /// Accept changed cassettes, steps, commands or environments: bind the scenarios to them anew
    #[arg(long, conflicts_with_all = ["live", "record", "update"])]
    rebind: bool,
    /// With --update, do not ask for confirmation
    #[arg(long, requires = "update")]
    yes: bool,
    /// Fail if a cassette was recorded longer ago than this
    #[arg(long, value_name = "TIME", value_parser = crate::parse::duration, conflicts_with_all = ["live", "record"])]
    max_age: Option<Duration>,
    /// Fail if a scenario is skipped, for instance because its program is not installed
    #[arg(long, hide_short_help = true)]
    no_skips: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &TestArgs) -> Result {
    let place = args.place.wanted().map_err(Failure::usage)?;
    if place.is_some() && !args.live && !args.record {
        return Err(Failure::usage(
            "--on is for --live and --record: a cassette was recorded where it was recorded",
        ));
    }
    let files = args.scenarios()?;
    let how = match (args.live, args.record) {
        (true, _) => How::Live,
        (_, true) => How::Record,
        _ => How::Cassette,
    };
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
    let mut reports = match run_all(&files, how, place.as_ref(), jobs, (age, each))? {
        Ran::All(reports) => reports,
        Ran::Stopped(signal) => return Ok(Ending::by_signal(signal)),
    };
    for report in &mut reports {
        // Stored texts stay as they are with --rebind: only --update changes what a test expects.
        let passed = matches!(report.outcome, Outcome::Passed);
        report.changes.retain(|change| if args.rebind { change.path == report.path } else { !passed });
    }
    let updates = match args.update || args.rebind {
        true => update(&reports, args.yes || args.rebind, args.json)?,
        false => Vec::new(),
    };
    // The other claims of an updated scenario may still fail.
    if updates.iter().any(|u| u.written) {
        judge_again(&mut reports, !quiet);
    }
    let took = clock.elapsed();
    if let Some(path) = &args.junit {
        write_junit(path, &reports, took)
            .map_err(|e| Failure::io(format!("the report {} cannot be written: {e}", path.display())))?;
    }
    if args.json {
        let mut value = json!({ "scenarios": reports.iter().map(as_json).collect::<Vec<_>>(), "ns": took.as_nanos() as u64 });
        if args.update || args.rebind {
            value["updates"] = updates.iter().map(Update::as_json).collect();
        }
        print_json(&value);
    } else {
        sum_up(&reports, took, how);
    }
    Ok(Ending::of_check(reports.iter().all(|r| match r.outcome {
        Outcome::Passed => true,
        Outcome::Skipped(_) => !args.no_skips,
        Outcome::Failed(_) => false,
    })))
}

impl TestArgs {
    /// Finds the scenarios to run. Fails if there are none.
    fn scenarios(&self) -> Result<Vec<PathBuf>> {
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
        let Some(part) = &self.only else { return Ok(files) };
        let all = files.len();
        let is_wanted = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().contains(part.as_str()))
        };
        let files: Vec<PathBuf> = files.into_iter().filter(is_wanted).collect();
        if files.is_empty() {
            return Err(Failure::not_found(format!(
                "none of the {all} scenarios here has {part:?} in its name"
            )));
        }
        Ok(files)
    }
}

/// The result of all scenarios.
enum Ran {
    All(Vec<Report>),
    /// A signal stopped them.
    Stopped(i32),
}

/// Runs the failed scenarios again, after a change.
fn judge_again(reports: &mut [Report], aloud: bool) {
    for report in reports.iter_mut().filter(|r| matches!(r.outcome, Outcome::Failed(_))) {
        *report = run_one(&report.path, How::Cassette, None, &Halt::default());
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
    let fault = Fault {
        line: None,
        claim: "the cassette is not older than --max-age".to_owned(),
        message: message + advice(Some(Remedy::Record)),
        details: String::new(),
        remedy: Some(Remedy::Record),
    };
    match &mut report.outcome {
        Outcome::Failed(faults) => faults.push(fault),
        outcome => *outcome = Outcome::Failed(vec![fault]),
    }
}

/// Runs one scenario, and says in its faults what to do about them.
fn run_one(path: &Path, how: How, place: Option<&Place>, halt: &Halt) -> Report {
    let mut report = run_on(path, how, place, halt);
    if let Outcome::Failed(faults) = &mut report.outcome {
        for fault in faults {
            fault.message.push_str(advice(fault.remedy));
        }
    }
    report
}

/// Runs all scenarios, several at a time. `each` gets the reports in the order of the files. A
/// signal to end ends the programs of the scenarios first.
fn run_all(
    files: &[PathBuf],
    how: How,
    place: Option<&Place>,
    jobs: usize,
    (also, each): (impl Fn(&mut Report) + Sync, impl Fn(&Report) + Sync),
) -> Result<Ran> {
    let io = |e: std::io::Error| Failure::io(format!("cannot run anything: {e}"));
    // Before any thread is started, so that all have the signals blocked.
    let mut signals = (how != How::Cassette).then(Keyboard::ends_only).transpose().map_err(io)?;
    let halt = signals.as_ref().map_or_else(Halt::default, |s| Halt::with_signals(s.inherited()));
    let next = AtomicUsize::new(0);
    let done: Mutex<(usize, BTreeMap<usize, Report>)> = Mutex::default();
    let work = || {
        while let Some((i, path)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, files.get(i)?)))
        {
            let mut report = run_one(path, how, place, &halt);
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
    let (over, working) = std::io::pipe().map_err(io)?;
    let workers: Vec<PipeWriter> =
        (0..jobs.min(files.len())).map(|_| working.try_clone()).collect::<Result<_, _>>().map_err(io)?;
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
        Outcome::Passed => print(format_args!("ok       {name} ({} checks, {ms:.1} ms)\n", report.checks)),
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

fn as_json(report: &Report) -> Value {
    let (result, faults, why) = match &report.outcome {
        Outcome::Passed => ("passed", &[][..], None),
        Outcome::Failed(faults) => ("failed", &faults[..], None),
        Outcome::Skipped(why) => ("skipped", &[][..], Some(why)),
    };
    let fault =
        |f: &Fault| json!({ "line": f.line, "claim": f.claim, "message": f.message, "details": f.details });
    json!({
        "name": report.name,
        "path": report.path.to_string_lossy(),
        "result": result,
        "why": why,
        "checks": report.checks,
        "ns": report.took.as_nanos() as u64,
        "faults": faults.iter().map(fault).collect::<Vec<_>>(),
    })
}

fn write_junit(path: &Path, reports: &[Report], took: Duration) -> std::io::Result<()> {
    let mut out = OutFile::create_shared(path, true)?;
    out.write_all(junit(reports, took).as_bytes())?;
    out.commit()
}

fn junit(reports: &[Report], took: Duration) -> String {
    let failed = count(reports, |o| matches!(o, Outcome::Failed(_)));
    let skipped = count(reports, |o| matches!(o, Outcome::Skipped(_)));
    // The schema that servers check against knows `skipped` of a suite, not of all of them, and
    // wants a failure's type.
    let head = format!("tests=\"{}\" failures=\"{failed}\"", reports.len());
    let tail = format!("errors=\"0\" time=\"{:.3}\"", took.as_secs_f64());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {head} {tail}>\n  \
         <testsuite name=\"tapdeck\" {head} skipped=\"{skipped}\" {tail}>\n"
    );
    for report in reports {
        let folder = report.path.parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        out.push_str(&format!(
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" time=\"{:.6}\"",
            xml(&report.name),
            xml(&folder),
            xml(&report.path.to_string_lossy()),
            report.took.as_secs_f64()
        ));
        match &report.outcome {
            Outcome::Passed => out.push_str("/>\n"),
            Outcome::Skipped(why) => {
                out.push_str(&format!(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", xml(why)));
            }
            Outcome::Failed(faults) => {
                let message = faults.first().map(|f| f.message.as_str()).unwrap_or_default();
                let text: String = faults.iter().map(|f| f.explain(&report.path)).collect();
                out.push_str(&format!(
                    ">\n      <failure type=\"assertion\" message=\"{}\">{}</failure>\n    </testcase>\n",
                    xml(message),
                    xml(&text)
                ));
            }
        }
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Escapes text for XML, without the characters that XML cannot carry.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if human::is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A change of a file, and whether it was written.
struct Update {
    path: PathBuf,
    difference: String,
    written: bool,
}

impl Update {
    fn as_json(&self) -> Value {
        json!({ "path": self.path.to_string_lossy(), "difference": self.difference, "written": self.written })
    }
}

/// Shows what would change and, if the user agrees, changes it. With JSON on standard output, it
/// shows this on standard error.
fn update(reports: &[Report], yes: bool, json: bool) -> Result<Vec<Update>> {
    // Two checks of one file make one change.
    let mut changes: BTreeMap<&Path, &Change> = BTreeMap::new();
    let mut contrary = false;
    for change in reports.iter().flat_map(|r| &r.changes) {
        if let Some(other) = changes.insert(&change.path, change)
            && other.text != change.text
        {
            say(format_args!("{}: two checks want different texts in it", change.path.display()));
            contrary = true;
        }
    }
    let aloud = |text: std::fmt::Arguments<'_>| {
        if json {
            // With standard error gone as well, there is no place left for the message.
            let _ = std::io::stderr().write_fmt(text);
        } else {
            print(text);
        }
    };
    if changes.is_empty() {
        aloud(format_args!("nothing to update\n"));
    }
    for change in changes.values() {
        let lines: String = change.difference.lines().map(|l| human::printable(l) + "\n").collect();
        aloud(format_args!("\n{} would change:\n{lines}", human::printable(&change.path.to_string_lossy())));
    }
    let agreed = !changes.is_empty() && !contrary && (yes || user_agrees(changes.len(), aloud));
    if !agreed && !changes.is_empty() {
        say("nothing was changed");
    }
    let mut done = Vec::new();
    for change in changes.values() {
        if agreed {
            let written = OutFile::create_shared(&change.path, true).and_then(|mut file| {
                file.write_all(change.text.as_bytes())?;
                file.commit()
            });
            let path = change.path.display();
            written.map_err(|e| Failure::io(format!("{path} cannot be written: {e}")))?;
            aloud(format_args!("updated {}\n", human::printable(&change.path.to_string_lossy())));
        }
        let Change { path, difference, .. } = (*change).clone();
        done.push(Update { path, difference, written: agreed });
    }
    Ok(done)
}

fn user_agrees(files: usize, aloud: impl Fn(std::fmt::Arguments<'_>)) -> bool {
    if !std::io::stdin().is_terminal() {
        say("standard input is no terminal, so nothing is changed: say --yes to change without asking");
        return false;
    }
    aloud(format_args!("\nchange {files} file{}? [y/N] ", if files == 1 { "" } else { "s" }));
    // Without the question on the screen, the answer is no.
    let _ = std::io::stdout().flush();
    let mut answer = String::new();
    // No answer is no.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_xml_whatever_programs_show() {
        let fault = Fault {
            line: Some(3),
            claim: "a<b".into(),
            message: "\"&\x1b".into(),
            details: "\u{7}]]>\n".into(),
            remedy: None,
        };
        let report = |outcome| Report {
            path: "x/y.scenario.yaml".into(),
            name: "y".into(),
            outcome,
            checks: 1,
            took: Duration::from_micros(1_500),
            captured: None,
            changes: Vec::new(),
        };
        let text = junit(
            &[
                report(Outcome::Passed),
                report(Outcome::Failed(vec![fault])),
                report(Outcome::Skipped("z".into())),
            ],
            Duration::ZERO,
        );
        assert!(
            text.contains("tests=\"3\" failures=\"1\" skipped=\"1\"") && text.contains("a&lt;b"),
            "{text}"
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(!text.contains("]]>"), "{text}");
    }
}
