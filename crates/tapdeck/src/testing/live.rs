//! A scenario with the program itself: it runs in an empty folder with a home of its own and the
//! environment that the
//! scenario allows, and is driven by the steps. Elsewhere than here it has as much of that as the
//! place can give.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::Exit;
use tapdeck_core::check::{Claim, Timeline, Trace, seconds};
use tapdeck_core::scrub::Rules;
use tapdeck_host::backend::{Container, Place, PlaceError};
use tapdeck_host::cassette::{
    AccountLock, CassetteFolder, CommitError, LockError, executables, name_binary, new_uuid, rfc3339, scrub,
};
use tapdeck_host::{Clock, service_events, state_folder};
use tapdeck_tape::cassette::{
    Binary, Cassette, Closing, Command, ContentDigest, Files, Harness, Manifest, Provenance, ReplayMode,
    Terminal, Timing, VERSION, names,
};
use tapdeck_tape::scenario::{
    self, Action, EnvPolicy, FakeClock, Line, Program as Spec, Script, Source, Step, Until, step_mark,
};
use tapdeck_tape::{Extra, JsonValue};

use super::finished::ended;
use super::scenario::{Fault, Loaded, Outcome, Ran, Report, judge, stored_text};
use super::session::{Program, Session};
use super::{Halt, TestResult, picture, replay};
use crate::OutFile;
use crate::scrub::{Owner, Selection};
use tapdeck_term::Size;

/// What a program gets when its scenario does not say: enough to start, nothing to leak.
const ALLOWED: [&str; 1] = ["PATH"];
const GIVEN: [(&str, &str); 3] = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("TZ", "UTC")];

/// How long a scenario waits for an account by default, and how long before it looks whether it is
/// still wanted.
const ACCOUNT_WAIT: Duration = Duration::from_secs(600);
const ACCOUNT_LOOK: Duration = Duration::from_secs(1);

/// How exact the times of a recorded scenario are.
const RESOLUTION: Duration = Duration::from_millis(10);

pub(super) fn run(loaded: &Loaded, place: Option<&Place>, halt: &Halt) -> Ran {
    let mut ran = Ran::default();
    match &loaded.scenario.source {
        None if loaded.cassette().exists() => {
            ran.skipped = Some("it has a cassette only, no program and no play".into());
        }
        None => ran.faults.push(Fault::new(
            "there is something to check",
            format!("it has no program, no play and no cassette {}", loaded.cassette().display()),
        )),
        Some(Source::Play(play)) => {
            let mut timeline = play.timeline(loaded.scenario.size);
            timeline.end.eof = Some(true);
            timeline.end.leaked = Some(0);
            ran.timeline = Some(timeline);
        }
        Some(Source::Program(program)) => run_program(loaded, program, (place, halt), &mut ran),
    }
    ran
}

fn run_program(loaded: &Loaded, spec: &Spec, (place, halt): (Option<&Place>, &Halt), ran: &mut Ran) {
    let place = match place_of(spec, place) {
        Ok(place) => place,
        Err(why) => {
            let line = spec.on.as_ref().filter(|_| place.is_none()).map(|(line, _)| Box::new(line.clone()));
            return ran.faults.push(Fault { line, ..Fault::new("the program's place is there", why) });
        }
    };
    ran.place = match &place {
        Place::Local => None,
        // The machine's name stays private.
        Place::Ssh(_) => Some("ssh".into()),
        other => Some(other.to_string()),
    };
    let itself = if place.is_local() { &spec.run[..1] } else { &[] };
    let needs = spec.needs.as_deref().unwrap_or(itself);
    let scenario = &loaded.scenario;
    let for_clock = scenario.clock.iter().map(|_| FAKETIME);
    let missing: Vec<&str> =
        needs.iter().map(String::as_str).chain(for_clock).filter(|p| !installed(p)).collect();
    if !missing.is_empty() {
        ran.skipped = Some(format!("{} is not installed", missing.join(", ")));
        return;
    }
    if scenario.clock.is_some() && !place.is_local() {
        ran.skipped = Some(format!("clock is for programs of this machine, not for {place}"));
        return;
    }
    let setup = |e: std::io::Error| Fault::new("the program's folder can be made", e.to_string());
    let folder = match tempfile::Builder::new().prefix("tapdeck-test-").tempdir() {
        Ok(folder) => folder,
        Err(e) => return ran.faults.push(setup(e)),
    };
    let made = if place.is_local() { Ok(folder.path().to_owned()) } else { open_folder(folder.path()) };
    let work = match made.and_then(|work| write_files(&work, &loaded.folder, spec).map(|()| work)) {
        Ok(work) => work,
        Err(e) => return ran.faults.push(setup(e)),
    };
    ran.folder = Some(work.clone());
    // Until the end of the run.
    let _account = match account(spec, halt) {
        Ok(lock) => lock,
        Err(e) => return ran.faults.push(Fault::new("the account is free", e)),
    };
    let ready = expanded(loaded, &work)
        .and_then(|world| scripts(&scenario.setup, "setup", spec, &world, (&place, halt)).map(|()| world));
    let world = match ready {
        Ok(world) => world,
        Err(fault) => return ran.faults.push(fault),
    };
    if place.is_local() {
        ran.binaries = binaries(spec, &work);
    }
    drive(loaded, spec, &world, (&place, halt), ran);
    ran.faults.extend(scripts(&scenario.teardown, "teardown", spec, &world, (&place, halt)).err());
}

/// Where a program runs, with its environment and command as they are here.
struct World {
    folder: PathBuf,
    size: Size,
    env: EnvPolicy,
    argv: Vec<String>,
    within: Duration,
}

/// Puts in the environment and the command what stands for something of this machine: `{root}`,
/// `{work}`, and in the environment `${NAME}`.
fn expanded(loaded: &Loaded, work: &Path) -> Result<World, Fault> {
    let scenario = &loaded.scenario;
    let root = loaded.folder.join(scenario.root.as_deref().unwrap_or("."));
    let root = root
        .canonicalize()
        .map_err(|e| Fault::new("the project's root is there", format!("{}: {e}", root.display())))?;
    let places = [("{root}", root.display().to_string()), ("{work}", work.display().to_string())];
    let placed =
        |text: &str| places.iter().fold(text.to_owned(), |text, (name, path)| text.replace(name, path));
    let mut env = policy(loaded);
    for (name, value) in &mut env.set {
        let wrong = |what: String| Fault::new(format!("env: {name}"), what);
        *value = variables(&placed(value)).map_err(wrong)?;
    }
    let argv = match &scenario.source {
        Some(Source::Program(spec)) => spec.run.iter().map(|arg| placed(arg)).collect(),
        _ => Vec::new(),
    };
    let (size, within) = (scenario.size, scenario.within);
    Ok(World { folder: work.to_owned(), size, env, argv, within })
}

/// Replaces `${NAME}` by the variable of this process.
fn variables(text: &str) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        let value = std::env::var(name)
            .map_err(|_| format!("there is no variable {name} here, which ${{{name}}} names"))?;
        out.extend([before, &value]);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// Runs commands of `sh` where the program runs, each on a terminal, until one fails.
fn scripts(
    all: &[Script],
    key: &str,
    spec: &Spec,
    world: &World,
    (place, halt): (&Place, &Halt),
) -> Result<(), Fault> {
    for script in all {
        let claim = format!("{key}: {}", script.command);
        let wrong = |message: String| Fault {
            line: Some(Box::new(script.line.clone())),
            ..Fault::new(claim.clone(), message)
        };
        let argv = ["sh".to_owned(), "-c".to_owned(), script.command.clone()];
        let session = start(&argv, spec.timeout, world, (place.clone(), halt))
            .map_err(|e| wrong(e.message().into()))?;
        let finished = session.finish().map_err(|e| wrong(e.message().into()))?;
        if finished.exit != Exit::Code(0) {
            let details = picture::around(&finished.timeline, finished.timeline.end.at);
            return Err(Fault { details, ..wrong(format!("it {}", ended(finished.exit))) });
        }
    }
    Ok(())
}

/// Starts the program, takes the steps, and waits for its end.
fn drive(loaded: &Loaded, spec: &Spec, world: &World, (place, halt): (&Place, &Halt), ran: &mut Ran) {
    let ask = |command: &str| say(command, spec, world, (place.clone(), halt));
    if let Some(check) = &spec.evidence.check
        && let Err(e) = ask(check)
    {
        return ran.faults.push(Fault {
            details: e.details().to_owned(),
            ..Fault::new(format!("check: {check}"), e.message())
        });
    }
    if let Some(command) = &spec.evidence.version_from {
        match ask(command) {
            Ok(text) => ran.version = text.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned),
            Err(e) => return ran.faults.push(Fault::new(format!("version_from: {command}"), e.message())),
        }
    }
    let world = match loaded.scenario.clock.map(|clock| faked_time(clock, halt)).transpose() {
        Ok(Some(variables)) => {
            let mut env = world.env.clone();
            env.set.extend(variables);
            &World { env, folder: world.folder.clone(), argv: world.argv.clone(), ..*world }
        }
        Ok(None) => world,
        Err(e) => return ran.faults.push(Fault::new("the clock can be faked", e.message())),
    };
    let events = spec.evidence.events.as_ref().map(|name| events(&world.folder.join(name))).transpose();
    let events = match events {
        Ok(events) => events,
        Err(e) => return ran.faults.push(Fault::new("service events can be read", e.to_string())),
    };
    let mut session = match start(&world.argv, spec.timeout, world, (place.clone(), halt)) {
        Ok(session) => session,
        Err(e) => return ran.faults.push(Fault::new("the program starts", e.message())),
    };
    if let Some(Err(e)) = events.map(|source| session.read_events(source)) {
        return ran.faults.push(Fault::new("service events can be read", e.to_string()));
    }
    let clock = Clock::start();
    let mut slowest: (Duration, Option<&Line>) = (Duration::ZERO, None);
    let mut stepped = Duration::ZERO;
    for (i, step) in loaded.scenario.steps.iter().enumerate() {
        ran.checks += usize::from(matches!(step.action, Action::Expect(_) | Action::Wait(_)));
        let outcome = take(&mut session, step, loaded.scenario.within);
        let took = clock.elapsed().saturating_sub(std::mem::replace(&mut stepped, clock.elapsed()));
        if let Err(e) = outcome {
            let claim = describe(&step.action);
            let details = e.details().to_owned();
            let mut message = e.message().to_owned();
            if let (longest, Some(line)) = slowest
                && session.is_over_limit()
                && longest > took
            {
                message.push_str(&format!("; most of the time went to {line}: {}", seconds(longest)));
            }
            let at = Some(session.now());
            ran.faults.push(Fault {
                line: Some(Box::new(step.line.clone())),
                details,
                at,
                ..Fault::new(claim, message)
            });
            session.cancel();
            break;
        }
        if took >= slowest.0 {
            slowest = (took, Some(&step.line));
        }
        // Right after the screen that the step waited for, whatever has come since.
        session.mark(&step_mark(i + 1));
    }
    let pid = session.pid();
    let finished = session.finish();
    if let Some(pid) = pid.filter(|_| loaded.scenario.clock.is_some()) {
        forget_faked_time(pid);
    }
    if halt.is_called() {
        // What it would have done is unknown, so there is nothing to judge and nothing to keep.
        return ran.faults.push(Fault::new("the program ends by itself", "it was ended from outside"));
    }
    match finished {
        // After a step that failed the rest would fail as well, and say nothing new.
        Ok(finished) if ran.faults.is_empty() => {
            let about_end = |claim: &Claim| matches!(claim, Claim::Trace(_, Trace::Ended(_)));
            if finished.timeline.end.cause == tapdeck_core::check::Cause::Timeout
                && !loaded.scenario.assertions.iter().any(|a| about_end(&a.claim))
            {
                let limit = seconds(spec.timeout);
                let message = match loaded.scenario.steps.last() {
                    Some(last) => format!(
                        "it was still running after its time limit of {limit}, although the last step, in {}, \
                         was over after {}; end it with a step",
                        last.line,
                        seconds(stepped)
                    ),
                    None => format!("it was still running after its time limit of {limit}"),
                };
                let details = picture::around(&finished.timeline, finished.timeline.end.at);
                let at = Some(finished.timeline.end.at.time);
                ran.faults.push(Fault { details, at, ..Fault::new("the program ends by itself", message) });
            }
            ran.timeline = Some(finished.timeline);
            ran.left = finished.left;
        }
        Ok(finished) => ran.broken = Some(finished.timeline),
        Err(e) => ran.faults.push(Fault::new("the session goes on to its end", e.message())),
    }
}

/// The program that knows where its library is, which gives programs another time.
const FAKETIME: &str = "faketime";

/// The variables by which a program takes a clock for the real one. The library is preloaded
/// without the program around it, so that the exit and the signals are the program's own.
fn faked_time(clock: FakeClock, halt: &Halt) -> TestResult<Vec<(String, String)>> {
    let ask = Program::new([FAKETIME, "-f", "+0", "printenv", "LD_PRELOAD"]).size(400, 5).under(halt);
    let mut told = ask.start()?;
    told.wait_exit()?;
    let library = told.text().trim().to_owned();
    told.finish()?.success()?;
    let start = clock.start.as_secs();
    // As a distance from the real time, so that each process of the program has the same one.
    let distance = || i128::from(start) - i128::from(Clock::start().wall_start().as_secs());
    let time = if clock.passes { format!("{:+}", distance()) } else { start.to_string() };
    let mut variables = vec![("LD_PRELOAD", library), ("FAKETIME", time), ("FAKETIME_FMT", "%s".to_owned())];
    if !clock.passes {
        // What measures how long something takes goes on, or a program that waits would never end.
        variables.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()));
    }
    Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Removes the memory that the library's processes shared, which outlives them.
fn forget_faked_time(pid: i32) {
    for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
        // A program that the library does not reach has none.
        let _ = tapdeck_host::disk::remove_file(&Path::new("/dev/shm").join(name));
    }
}

/// What runs: the program, and those that it needs beside it.
fn binaries(spec: &Spec, work: &Path) -> Vec<Binary> {
    let of = |argv: &[OsString], cwd: &Path| executables(argv, Some(cwd)).unwrap_or_default();
    let argv: Vec<OsString> = spec.run.iter().map(OsString::from).collect();
    let mut found = of(&argv, work);
    for program in spec.needs.iter().flatten().filter(|program| **program != spec.run[0]) {
        let needed = of(&[program.into()], Path::new(""));
        let new: Vec<Binary> =
            needed.into_iter().filter(|b| found.iter().all(|f| f.sha256 != b.sha256)).collect();
        found.extend(new.into_iter().map(|binary| match &*binary.role {
            "program" => Binary { role: "needed".to_owned(), ..binary },
            _ => binary,
        }));
    }
    found
}

/// The file that service events come from; an empty one where the scenario has none.
fn events(path: &Path) -> std::io::Result<service_events::Source> {
    if !path.exists() {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, "")?;
    }
    service_events::Source::open(path)
}

/// Where the program is to run, with all that its scenario wants there.
fn place_of(spec: &Spec, place: Option<&Place>) -> Result<Place, String> {
    let place = match (place, &spec.on) {
        (Some(place), _) => place.clone(),
        (None, Some((_, on))) => on.parse().map_err(|e: PlaceError| format!("{on:?}: {e}"))?,
        (None, None) => Place::Local,
    };
    let has_files = !spec.files.is_empty() || !spec.copy.is_empty() || spec.evidence.events.is_some();
    if has_files && !sees_folders(&place) {
        return Err(format!("{place} does not see the files of the scenario: its folders are its own"));
    }
    Ok(place)
}

/// Whether folders of this machine can be seen there.
fn sees_folders(place: &Place) -> bool {
    match place {
        Place::Local => true,
        Place::Docker(docker) => matches!(docker.container, Container::New(_)),
        _ => false,
    }
}

fn write_files(folder: &Path, beside: &Path, spec: &Spec) -> std::io::Result<()> {
    for name in &spec.copy {
        let target = folder.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        copy(&beside.join(name), &target)
            .map_err(|e| std::io::Error::new(e.kind(), format!("{name}: {e}")))?;
    }
    for (name, content) in &spec.files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        if content.starts_with("#!") {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, mode)?;
        }
    }
    Ok(())
}

/// Copies a file, or a folder with everything in it. Links in it stay links.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// The environment that the scenario means.
fn policy(loaded: &Loaded) -> EnvPolicy {
    loaded.scenario.env.clone().unwrap_or_else(|| EnvPolicy {
        allow: ALLOWED.map(str::to_owned).to_vec(),
        set: GIVEN.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
    })
}

/// Locks the account that the program uses, if the scenario names one, waiting for it.
fn account(spec: &Spec, halt: &Halt) -> Result<Option<AccountLock>, String> {
    let Some(account) = &spec.evidence.account else { return Ok(None) };
    let limit = spec.evidence.account_wait.unwrap_or(ACCOUNT_WAIT);
    let (clock, folder) = (Clock::start(), state_folder().join("locks"));
    loop {
        let left = limit.saturating_sub(clock.elapsed());
        match AccountLock::wait(&folder, account, &clock, left.min(ACCOUNT_LOOK)) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Held { .. }) if !left.is_zero() && !halt.is_called() => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Runs a command where the program is to run, and as that; returns what it printed.
fn say(command: &str, spec: &Spec, world: &World, at: (Place, &Halt)) -> TestResult<String> {
    let argv = ["/bin/sh", "-c", command].map(str::to_owned);
    let mut session = start(&argv, spec.timeout, world, at)?;
    session.wait_exit()?;
    let text = session.text();
    let finished = session.finish()?;
    finished.success().map_err(|e| super::TestError::with(e.message(), text.clone()))?;
    Ok(text)
}

fn start(
    argv: &[String],
    timeout: Duration,
    world: &World,
    (mut place, halt): (Place, &Halt),
) -> TestResult<Session> {
    let (env, size, folder) = (&world.env, world.size, &world.folder);
    let mut program = Program::new(argv)
        .size(size.cols, size.rows)
        .timeout(timeout)
        .patience(world.within)
        .only_env(env.allow.iter().map(String::as_str));
    if sees_folders(&place) {
        program = program.cwd(folder).home(folder);
    }
    if !place.is_local() {
        // Another place starts with its own environment, and finds programs in its own way.
        for name in env.allow.iter().filter(|name| *name != "PATH") {
            if let Some(value) = std::env::var_os(name) {
                program = program.env(name, value);
            }
        }
    }
    for (name, value) in &env.set {
        program = program.env(name, value);
    }
    if let Place::Docker(docker) = &mut place
        && let Container::New(_) = docker.container
    {
        let path = folder.to_str().filter(|path| !path.contains(':'));
        let path = path.ok_or_else(|| super::TestError::new("the program's folder cannot be mounted"))?;
        // By its own name, so that a recording can be scrubbed of it like any other.
        docker.mounts.push(format!("{path}:{path}"));
    }
    program.on(place).under(halt).start()
}

/// Creates a folder that any user within the container can use. On this machine only users with
/// access to the parent folder can reach it.
fn open_folder(within: &Path) -> std::io::Result<PathBuf> {
    let folder = within.join("work");
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    Ok(folder)
}

fn take(session: &mut Session, step: &Step, within: Duration) -> TestResult {
    let limit = step.within.unwrap_or(within);
    match &step.action {
        Action::Send(keys) => keys.iter().try_for_each(|key| session.press(*key)),
        Action::Type(text) => session.type_text(text),
        Action::Paste(text) => session.paste(text),
        Action::Bytes(bytes) => session.write(bytes.clone()),
        Action::Focus(gained) => session.focus(*gained),
        Action::Click(click) => session.click_on(click, limit),
        Action::Drag(drag) => session.drag_along(drag, limit),
        Action::Scroll(scroll) => session.scroll_by(scroll, limit),
        Action::Expect(condition) | Action::Wait(Until::Screen(condition)) => {
            session.expect_within(condition, limit)
        }
        Action::Wait(Until::Stable(length, condition)) => session.stable_within(*length, condition, limit),
        Action::Wait(Until::Exit) => session.exit_within(limit).map(|_| ()),
        Action::Resize(size) => {
            session.resize(size.cols, size.rows);
            Ok(())
        }
        Action::Signal(name) => session.signal(name),
        Action::Snapshot(name) => {
            session.snapshot(name);
            Ok(())
        }
        Action::Cancel => {
            session.cancel();
            Ok(())
        }
        other => Err(super::TestError::new(format!("the step \"{}\" is not known here", describe(other)))),
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Expect(condition) => format!("expect: {condition}"),
        Action::Wait(Until::Screen(condition)) => format!("wait: {condition}"),
        Action::Wait(Until::Stable(length, condition)) => {
            let what = if condition.facts.is_empty() { String::new() } else { format!(": {condition}") };
            format!("wait: stable for {}{what}", seconds(*length))
        }
        Action::Wait(Until::Exit) => "wait: exit".to_owned(),
        Action::Send(keys) => {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            format!("send: {}", keys.join(" "))
        }
        Action::Type(text) => format!("type: {text:?}"),
        Action::Paste(text) => format!("paste: {text:?}"),
        Action::Bytes(bytes) => format!("bytes: {}", bytes.escape_ascii()),
        Action::Focus(gained) => format!("focus: {gained}"),
        Action::Click(click) => format!("click: {}", click.at),
        Action::Drag(drag) => format!("drag: {} to {}", drag.from, drag.to),
        Action::Scroll(scroll) => match &scroll.at {
            Some(at) => format!("scroll: {at}"),
            None => "scroll".to_owned(),
        },
        Action::Resize(size) => format!("resize: {size}"),
        Action::Signal(name) => format!("signal: {name}"),
        Action::Snapshot(name) => format!("snapshot: {name}"),
        Action::Cancel => "cancel".to_owned(),
        _ => "a step of a later version".to_owned(),
    }
}

/// Returns whether a program is installed. One of the project or of the scenario itself must be
/// there, so that its absence is a failure and no reason to skip.
fn installed(program: &str) -> bool {
    if program.contains('/') {
        return !program.starts_with('/') || Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs the program and, when everything holds, keeps the session as the scenario's cassette;
/// texts that are not stored yet are stored with it. `None` when it was kept; a run that fails
/// leaves everything as it was, and can be accepted later if only stored texts differ.
pub(super) fn record(loaded: &Loaded, place: Option<&Place>, halt: &Halt) -> Option<Report> {
    let mut ran = run(loaded, place, halt);
    let made = match &ran.timeline {
        Some(timeline) if ran.skipped.is_none() && ran.faults.is_empty() => make(loaded, timeline, &ran),
        _ => return Some(judge(loaded, ran)),
    };
    match made.and_then(|made| keep(loaded, made)) {
        Ok(failed) => failed,
        Err(fault) => {
            ran.faults.push(fault);
            Some(judge(loaded, ran))
        }
    }
}

/// A recording that passes once its stored texts are accepted. Until then nothing of it is kept.
#[derive(Clone)]
pub struct Pending(Arc<Waiting>);

struct Waiting {
    loaded: Loaded,
    made: Made,
    /// The stored texts, all of them.
    texts: BTreeMap<PathBuf, String>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("scenario", &self.0.loaded.path).finish_non_exhaustive()
    }
}

impl Pending {
    /// Keeps the recording with its texts, and judges the scenario from what was kept.
    pub fn accept(&self) -> Report {
        let Waiting { loaded, made, texts } = &*self.0;
        match bound(loaded, made).and_then(|bound| store(loaded, made, texts.clone(), bound)) {
            Ok(()) => super::run(&loaded.case(), super::How::Cassette),
            Err(fault) => judge(loaded, Ran { faults: vec![fault], ..Ran::default() }),
        }
    }
}

fn wrong(what: impl std::fmt::Display) -> Fault {
    Fault::new("the cassette can be written", what.to_string())
}

/// The files of a cassette, and what happened before they were scrubbed.
pub(super) struct Made {
    pub(super) files: Files,
    unscrubbed: Option<Timeline>,
}

/// The files of the cassette, without what must not be seen.
pub(super) fn make(loaded: &Loaded, timeline: &Timeline, ran: &Ran) -> Result<Made, Fault> {
    let closing = closing(loaded, ran).map_err(wrong)?;
    // A play is as exact as it is written, and holds nothing that its author did not write.
    let Some(folder) = &ran.folder else {
        let files = scenario::record(timeline, Duration::from_millis(1), closing).map_err(wrong)?;
        return Ok(Made { files, unscrubbed: None });
    };
    let files = scenario::record(timeline, RESOLUTION, closing).map_err(wrong)?;
    let cassette = Cassette::from_files(&files).map_err(wrong)?;
    let root = loaded.folder.join(loaded.scenario.root.as_deref().unwrap_or("."));
    // The root is known to the program only if its scenario names it.
    let root = root.canonicalize().ok().filter(|_| loaded.scenario.root.is_some());
    let root = root.and_then(|root| Rules::folder("project-root", &root.to_string_lossy()));
    let owner = Owner::of_process(Some(folder.to_string_lossy().into_owned()));
    let own = loaded.scenario.scrub.iter().cloned();
    let rules = Selection::default().rules(root.into_iter().chain(own)).load(&owner).map_err(wrong)?;
    let (files, _) = scrub(&files, rules, None, None).map_err(wrong)?;
    Ok(Made { files, unscrubbed: Some(scenario::timeline(&cassette)) })
}

/// The text of the scenario, bound to this cassette.
fn bound(loaded: &Loaded, made: &Made) -> Result<String, Fault> {
    let cassette = Cassette::from_files(&made.files).map_err(wrong)?;
    let bound = replay::scenario_ref(loaded, &cassette, &made.files).map_err(wrong)?;
    // Another combination may have been bound since the scenario was read.
    let text = stored_text(&loaded.path).map_err(wrong)?;
    Ok(scenario::bind(&text, &bound, loaded.scenario.variant.as_deref()))
}

/// Puts the cassette in its place if everything holds of it: a session that does not pass is no
/// golden master. What does not hold is told about what would have been kept.
fn keep(loaded: &Loaded, made: Made) -> Result<Option<Report>, Fault> {
    let bound = bound(loaded, &made)?;
    let judged = |new: &BTreeMap<PathBuf, String>| {
        // The lines are those of the file as it is: a session that does not pass leaves it so.
        let variant = loaded.scenario.variant.as_deref();
        let parse = |text: &str| Loaded::parse(&loaded.path, &loaded.name, text.to_owned(), variant, new);
        let mut as_kept = parse(&loaded.text)?;
        as_kept.scenario.cassette = parse(&bound)?.scenario.cassette;
        // In time it is replayed once it is kept.
        as_kept.scenario.replay = ReplayMode::Collapsed;
        let ran = Ran { unscrubbed: made.unscrubbed.clone(), ..replay::of_files(&as_kept, Ok(&made.files)) };
        let mut report = judge(&as_kept, ran);
        // The scenario itself is bound when it is kept.
        report.changes.retain(|change| change.path != loaded.path);
        Ok(report)
    };
    let mut new = BTreeMap::new();
    let mut report = judged(&new)?;
    let missing = report.changes.iter().filter(|c| !c.path.exists());
    new.extend(missing.map(|c| (c.path.clone(), c.text.clone())));
    if !new.is_empty() {
        report = judged(&new)?;
    }
    if matches!(report.outcome, Outcome::Passed) {
        return store(loaded, &made, new, bound).map(|()| None);
    }
    let mut texts = new;
    texts.extend(report.changes.iter().map(|c| (c.path.clone(), c.text.clone())));
    if !report.changes.is_empty() && matches!(judged(&texts)?.outcome, Outcome::Passed) {
        report.pending = Some(Pending(Arc::new(Waiting { loaded: loaded.clone(), made, texts })));
    }
    Ok(Some(report))
}

/// Writes the cassette, the texts beside the scenario, and the scenario that is bound to it.
fn store(
    loaded: &Loaded,
    made: &Made,
    mut texts: BTreeMap<PathBuf, String>,
    bound: String,
) -> Result<(), Fault> {
    let path = loaded.cassette();
    let commit = |e: CommitError| wrong(format_args!("{}: {e}", path.display()));
    let mut folder = CassetteFolder::create(&path, true).map_err(commit)?;
    for name in names::REQUIRED {
        // Every recording has all of these, empty ones included.
        folder.append(name, made.files.get(name).map_or(&[][..], |bytes| &bytes[..])).map_err(commit)?;
    }
    texts.insert(loaded.path.clone(), bound);
    // Everything is on disk before the first file changes its name, so that a full disk changes
    // nothing.
    let mut ready = Vec::new();
    for (path, text) in texts {
        let cannot = |e| wrong(format_args!("{}: {e}", path.display()));
        let mut file = OutFile::create_shared(&path, true).map_err(cannot)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync()).map_err(cannot)?;
        ready.push((path, file));
    }
    folder.commit().map_err(commit)?;
    for (path, file) in ready {
        file.commit().map_err(|e| wrong(format_args!("{}: {e}", path.display())))?;
    }
    Ok(())
}

/// Everything about the cassette but what happened.
fn closing(loaded: &Loaded, ran: &Ran) -> std::io::Result<Closing> {
    let began = Clock::start().wall_start();
    let now = rfc3339(began);
    let env = policy(loaded);
    let given = |name: &str| env.set.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let mut allowed: Vec<String> = env.allow.clone();
    allowed.extend(env.set.iter().map(|(name, _)| name.clone()));
    let (argv, timeout_ms) = match &loaded.scenario.source {
        Some(Source::Program(spec)) => {
            allowed.push("HOME".to_owned());
            (spec.run.clone(), Some(spec.timeout.as_millis() as u64))
        }
        _ => {
            allowed.clear();
            (Vec::new(), None)
        }
    };
    allowed.sort();
    allowed.dedup();
    let size = loaded.scenario.size;
    let mut extra = Extra::default();
    if let Some(place) = ran.place.as_deref() {
        extra.insert("place", place);
    }
    if let Some(clock) = loaded.scenario.clock {
        extra.insert("clock", clock.start.utc());
    }
    let mut manifest = Manifest {
        version: VERSION,
        id: new_uuid(began)?,
        content_digest: ContentDigest::default(),
        harness: Harness {
            name: argv.first().cloned().unwrap_or_else(|| "play".to_owned()),
            captured_at: now.clone(),
            ..Harness::default()
        },
        command: Command {
            argv,
            workdir_policy: "temporary".to_owned(),
            env_allowlist: allowed,
            timeout_ms,
            permission_mode: None,
        },
        terminal: Terminal {
            initial_rows: size.rows,
            initial_cols: size.cols,
            locale: given("LANG"),
            term: given("TERM"),
            ..Terminal::default()
        },
        timing: Timing::default(),
        provenance: Provenance::here(now),
        required_features: Vec::new(),
        optional: Default::default(),
        extra,
    };
    name_binary(&mut manifest.harness, ran.binaries.clone(), ran.version.clone());
    if let Some(Source::Program(spec)) = &loaded.scenario.source {
        let evidence = &spec.evidence;
        manifest.harness.account_class.clone_from(&evidence.account_class);
        manifest.harness.capability = evidence.capability.clone().map(JsonValue::from);
        manifest.harness.freshness_window.clone_from(&evidence.freshness);
        manifest.command.permission_mode.clone_from(&evidence.permission_mode);
    }
    let mut closing = Closing::new(manifest);
    if !ran.left.is_empty() {
        closing.outcome.metadata.insert("leaked", JsonValue::of(&ran.left));
    }
    Ok(closing)
}
