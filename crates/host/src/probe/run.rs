//! A probe against the real program, through the same driver as every session, and against a
//! cassette of one.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::vec::Drain;

use bytes::Bytes;
use tapdeck_core::scrub::Rules;
use tapdeck_core::{Entry, Event, Exit, Lag, Role, Stamp, WallTime, WinSize};
use tapdeck_tape::cassette::{Cassette, EventKind, Model};
use tapdeck_term::Size;
use tapdeck_term::keys::encode;

use super::flow::{Agent, Probe, key_of};
use super::machine::{Action, Machine, rows};
use super::parse::{Facts, Status, sign};
use crate::backend::CommandSpec;
use crate::cassette::{
    CassetteFolder, CassetteRecorder, DEFAULT_ENV, Environment, PreflightError, Recorded, find_program,
    run_quietly,
};
use crate::clock::Clock;
use crate::driver::Ended;
use crate::inbox::Handle;
use crate::launch::{Launch, Session};
use crate::leftovers::{Leftover, Leftovers};
use crate::recorder::state_folder;
use crate::tap::{Tap, TapReader};

/// How often the screen is looked at when nothing happens.
const TICK: Duration = Duration::from_millis(50);
/// The resolution of times in a probe's cassette.
const RESOLUTION: Duration = Duration::from_millis(100);
/// How long the program may take to end by its own keys.
const QUIT_TICKS: usize = 40;

/// How to probe.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ProbeOptions {
    /// The program, if it is not the agent's usual one.
    pub program: Option<OsString>,
    /// The folder to run it in; an empty one kept for that when left out, so that trusting it gives
    /// nothing away.
    pub cwd: Option<PathBuf>,
    /// Ends a probe that takes longer than everything it waits for.
    pub timeout: Option<Duration>,
    /// Where to keep the whole timeline.
    pub cassette: Option<CassetteFolder>,
    /// What must not be seen in it.
    pub rules: Option<Arc<Rules>>,
}

impl ProbeOptions {
    /// Sets the program, if it is not the agent's usual one.
    #[must_use]
    pub fn program(mut self, program: impl Into<Option<OsString>>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the folder to run it in; [`probe_folder`] by default.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<Option<PathBuf>>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Ends the probe after this long.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Keeps the whole timeline in this folder.
    #[must_use]
    pub fn cassette(mut self, cassette: impl Into<Option<CassetteFolder>>) -> Self {
        self.cassette = cassette.into();
        self
    }

    /// Masks what these rules find in the timeline.
    #[must_use]
    pub fn rules(mut self, rules: impl Into<Option<Arc<Rules>>>) -> Self {
        self.rules = rules.into();
        self
    }
}

/// What came of a probe.
#[derive(Debug)]
pub struct Probed {
    /// In one word.
    pub status: Status,
    /// In one sentence.
    pub detail: String,
    /// Whether the agent was started: without it, the answer says nothing about the account.
    pub started: bool,
    /// What was read.
    pub facts: Facts,
    /// When, in nanoseconds since 1970.
    pub captured: WallTime,
    /// The environment that the program had.
    pub environment: Environment,
    /// The command line.
    pub argv: Vec<OsString>,
    /// The timeline, where it was to be kept and there is one.
    pub recorded: Option<Recorded>,
    /// The processes that the program left behind. They were ended.
    pub left: Vec<Leftover>,
}

/// The empty folder in which agents are probed: `$XDG_STATE_HOME/tapdeck/probe`.
pub fn probe_folder() -> PathBuf {
    state_folder().join("probe")
}

/// Runs a probe against the program.
pub fn probe(agent: &Agent, probe: &Probe, mut options: ProbeOptions) -> Probed {
    let mut done = prepare(agent, probe, &mut options);
    if let Err((status, detail)) = preflight(agent, probe, &options, &done) {
        (done.status, done.detail) = (status, detail);
        return done;
    }
    let clock = Clock::start();
    let mut launch = Launch::new(CommandSpec::new(done.argv.clone()));
    done.environment.apply(&mut launch.command);
    launch.command.cwd = options.cwd;
    launch.headless = true;
    launch.size = Some(WinSize::cells(agent.cols, agent.rows));
    launch.timeout = options.timeout;
    let leftovers = Leftovers::adopt();
    let (tx, rx) = channel();
    let (agent, flow) = (agent.clone(), probe.clone());
    let outcome = launch.run_recorded(
        |log, clock, size| {
            let recorder = options.cassette.map(|folder| {
                CassetteRecorder::start(folder, log.clone(), clock, size, RESOLUTION, options.rules)
            });
            recorder.transpose()
        },
        |recorder| recorder.and_then(|r| r.finish().ok()),
        |session| {
            let Session { handle, log, clock, .. } = session;
            let watcher = Watcher { reader: TapReader::from_start(&log, clock), clock };
            let work = move || watcher.watch(&agent, &flow, &handle, &tx);
            // Without a thread nothing is read, and the time limit ends the program.
            let _ = std::thread::Builder::new().name("tapdeck-probe".into()).spawn(work);
        },
    );
    done.left = leftovers.wait(&clock).unwrap_or_default();
    // Agents leave servers behind that have sessions of their own: those that a probe brought into
    // the world go with it.
    leftovers.kill();
    drop(leftovers);
    match outcome {
        Ok((Ok(outcome), recorded)) => {
            done.started = true;
            done.recorded = recorded;
            match rx.recv() {
                Ok((status, detail, facts)) => {
                    (done.status, done.detail, done.facts) = (status, detail, facts)
                }
                Err(_) => done.detail = "the probe broke down".into(),
            }
            // The machine only saw that the program was gone.
            if outcome.ended == Ended::TimedOut && done.status == Status::Error {
                let seconds = options.timeout.unwrap_or_default().as_secs_f64();
                done.detail = format!("its time limit of {seconds} s was over before there was an answer");
            }
        }
        Ok((Err(e), _)) | Err(e) => done.detail = e.to_string(),
    }
    done
}

/// Decides what to run, where, and in which environment. Nothing has been found out yet.
fn prepare(agent: &Agent, probe: &Probe, options: &mut ProbeOptions) -> Probed {
    let clock = Clock::start();
    // A program that is named by a path is meant from here.
    let program = options.program.take().unwrap_or_else(|| agent.program.as_str().into());
    let program = match program.as_bytes().contains(&b'/') {
        true => std::fs::canonicalize(&program).map_or(program, PathBuf::into_os_string),
        false => program,
    };
    if options.cwd.is_none() {
        let folder = probe_folder();
        options.cwd = std::fs::create_dir_all(&folder).is_ok().then_some(folder);
    }
    let allowed = DEFAULT_ENV.into_iter().chain(agent.env.iter().map(String::as_str));
    let given = [("TERM".into(), "xterm-256color".into())];
    let mut environment = Environment::from_allowlist(allowed, given);
    environment.default_value("LANG", "C.UTF-8");
    let mut argv = vec![program];
    argv.extend(probe.args.iter().map(OsString::from));
    Probed {
        status: Status::Error,
        detail: String::new(),
        started: false,
        facts: Facts::default(),
        captured: clock.wall_start(),
        environment,
        argv,
        recorded: None,
        left: Vec::new(),
    }
}

/// Checks that the program exists and that its user is signed in, as far as it can tell.
fn preflight(
    agent: &Agent,
    probe: &Probe,
    options: &ProbeOptions,
    planned: &Probed,
) -> Result<(), (Status, String)> {
    if let Err(e) = find_program(&planned.argv[0], options.cwd.as_deref()) {
        let why = match e {
            PreflightError::NotFound(name) => format!("{name}: command not found"),
            e => e.to_string(),
        };
        return Err((Status::Unavailable, why));
    }
    if probe.on_exit || agent.auth.is_empty() {
        return Ok(());
    }
    let words = planned.argv.iter().take(1).cloned().chain(agent.auth.iter().map(OsString::from));
    let mut spec = CommandSpec::new(words);
    spec.cwd.clone_from(&options.cwd);
    planned.environment.apply(&mut spec);
    match run_quietly(&spec) {
        Ok((Ended::Program, Exit::Code(code @ 1..), _)) => {
            let asked = agent.auth.join(" ");
            let why = format!("`{} {asked}` ended with exit code {code}", agent.program);
            Err((Status::Unauthenticated, why))
        }
        // An answer that cannot be had decides nothing.
        _ => Ok(()),
    }
}

/// What the program shows.
struct Shown {
    model: Model,
    exited: bool,
}

impl Tap for Shown {
    fn take(&mut self, entries: Drain<'_, Entry>, _now: Stamp) {
        for entry in entries {
            match entry.event {
                Event::Output { bytes, .. } => self.model.output(&bytes),
                Event::Resize(size) => self.model.resize(size.size()),
                Event::Exit(_) => self.exited = true,
                _ => {}
            }
        }
    }

    /// A probe reads what is on the screen now, whatever came before.
    fn lagged(&mut self, _lag: &Lag, _now: Stamp) {}
}

/// Reads the screen and answers the program.
struct Watcher {
    reader: TapReader,
    clock: Clock,
}

impl Watcher {
    fn watch(self, agent: &Agent, probe: &Probe, handle: &Handle, tx: &Sender<(Status, String, Facts)>) {
        let mut machine = Machine::new(agent, probe);
        let mut shown = Shown { model: Model::new(Size::new(agent.cols, agent.rows)), exited: false };
        let party = handle.join("probe", Role::Bot).ok();
        let send = |bytes: Vec<u8>| {
            if let Some(party) = party {
                // A refusal means that the program no longer reads, which shows soon enough.
                let _ = handle.input_or_claim(party, Bytes::from(bytes));
            }
        };
        loop {
            if self.read(&mut shown) {
                machine.exited(&shown.model);
                break;
            }
            match machine.look(self.clock.now().mono, &shown.model) {
                Some(Action::Send(bytes)) => send(bytes),
                Some(Action::Finish) => break,
                None => {}
            }
        }
        let (status, detail) = machine.result().unwrap_or((Status::Error, "it ended without an answer"));
        // A receiver that is gone no longer wants the answer.
        let _ = tx.send((status, detail.to_owned(), machine.facts().clone()));
        // Its own way out first, so that it can put its things in order.
        let modes = shown.model.term().modes();
        for key in agent.quit.iter().filter_map(|k| key_of(k)) {
            send(encode(key, &modes));
            if self.read(&mut shown) {
                break;
            }
        }
        for _ in 0..QUIT_TICKS {
            if self.read(&mut shown) {
                break;
            }
        }
        handle.cancel();
    }

    /// Takes what has come, or waits a moment for it; returns whether the session is over.
    fn read(&self, shown: &mut Shown) -> bool {
        let goes_on = self.reader.wait(Some(TICK));
        while self.reader.read(shown, 1 << 16) {}
        shown.exited || !goes_on
    }
}

/// Reads the facts off a cassette of a probe, with no program at all.
pub fn read_cassette(agent: &Agent, probe: &Probe, cassette: &Cassette) -> (Status, String, Facts) {
    let typed = |e: &EventKind| match e {
        EventKind::Input(i) => i.source.as_deref() != Some("reply") && i.bytes.contains(&b'\r'),
        _ => false,
    };
    // What was on the screen before the last command was sent is stale.
    let sent = cassette.events.iter().rposition(|e| typed(&e.kind)).unwrap_or(0);
    let mut model = Model::of(&cassette.manifest);
    let mut since = 0;
    let mut found: Option<Facts> = None;
    let done = probe.steps.last().map_or(&[][..], |step| &step.done);
    for (i, event) in cassette.events.iter().enumerate() {
        if i == sent {
            since = model.fed();
        }
        if model.apply(event) && i >= sent {
            let fresh = rows(&model, since);
            let shown = done.iter().all(|p| fresh.iter().any(|row| p.is_match(row)));
            let facts = Facts::read(probe, &fresh);
            if shown && facts.missing(probe).is_empty() {
                found.get_or_insert_default().merge(facts);
            }
        }
    }
    if let Some(facts) = found {
        return (Status::Ok, "read off the cassette".into(), facts);
    }
    let all = rows(&model, 0);
    match sign(agent, &all) {
        Some((status, row)) => (status, row, Facts::default()),
        None => {
            let missing = Facts::read(probe, &all).missing(probe).join(", ");
            (Status::Error, format!("the cassette does not show it: {missing} missing"), Facts::default())
        }
    }
}
