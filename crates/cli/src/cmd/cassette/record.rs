//! `tapdeck cassette record`: keeps a run as evidence. The run goes through the same driver as
//! every session. The checks before the run, the environment, and the traces of a failed run are
//! specific to it.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use tapdeck::convert::begin_manifest;
use tapdeck::scrub::{Owner, Rules, packs};
use tapdeck_core::{Exit, WallTime};
use tapdeck_host::cassette::{
    AccountLock, CassetteFolder, CassetteRecorder, DEFAULT_ENV, Environment, FailedRun, Recorded,
    check_command, diagnostics_folder, executables, name_binary, name_leftovers, rfc3339,
};
use tapdeck_host::leftovers::{Leftover, Leftovers};
use tapdeck_host::{Clock, Ended, Launch, LaunchError, Outcome, service_events, state_folder};
use tapdeck_tape::JsonValue;
use tapdeck_tape::cassette::{self, Closing, Manifest, signal_name};

use crate::ending::{Ending, Kind, print_json_beside, say};
use crate::failure::{Failure, Result};
use crate::scrubbing::ScrubArgs;
use crate::seal_key::read_key;
use crate::session_args::SessionArgs;
use crate::{human, parse};

/// Record a run of a program as a cassette.
#[derive(Args)]
#[command(after_help = "\
The cassette is written completely or not at all. A run that timed out, was canceled, or did not exit
with --expect-exit leaves only its traces, in the diagnostics folder.

Secrets, accounts, personal names, identifiers and the run's paths are masked in all files, with
characters of the same width. scrub-report.json counts the matches of each rule.

The program gets only these environment variables: PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG,
LC_ALL, LC_CTYPE, TZ, COLORTERM, and those of --env.

Examples:
  tapdeck cassette record cassettes/hello -- sh -c 'echo hello'
  tapdeck cassette record --headless --size 120x40 --timeout 30s top -- top -n 3
  tapdeck cassette record --check 'claude auth status' --account me --env ANTHROPIC_API_KEY c -- claude
  tapdeck cassette record --resolution 10ms demo.tar.zst -- vim notes.txt")]
pub(crate) struct RecordArgs {
    /// The cassette to write: a folder, or an archive if the name ends in .tar.zst
    #[arg(value_name = "DIR", value_parser = parse::file())]
    target: PathBuf,
    /// Replace an existing cassette
    #[arg(long)]
    overwrite: bool,
    /// Command that must succeed before the run, in the same environment
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    check: Option<String>,
    /// Account that the program uses; recordings with the same account run one at a time
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    account: Option<String>,
    /// Wait this long for an account that is in use
    #[arg(long, value_name = "TIME", value_parser = parse::duration, requires = "account", hide_short_help = true)]
    account_wait: Option<Duration>,
    /// Pass this environment variable too, with your value or the given one
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::variable)]
    env: Vec<(String, Option<OsString>)>,
    /// Pass only the variables of --env (and TERM)
    #[arg(long, hide_short_help = true)]
    env_only: bool,
    /// Round times down to multiples of this
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = resolution)]
    resolution: u64,
    /// Read service events from this file or named pipe, one JSON value per line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    events: Option<PathBuf>,
    /// Seal the cassette with the key in this file; see tapdeck cassette verify --key
    #[arg(long, value_name = "KEYFILE", value_hint = clap::ValueHint::FilePath)]
    seal: Option<PathBuf>,
    /// Do not mask secrets
    #[arg(long, hide_short_help = true)]
    no_scrub: bool,
    /// Mask with these rule packs instead of the default ones; `all` for every pack
    #[arg(long, value_name = "PACK", conflicts_with = "no_scrub")]
    scrub: Vec<String>,
    /// Mask by the rules in this TOML file, too; repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "no_scrub", hide_short_help = true)]
    rules: Vec<PathBuf>,
    /// Fail unless the program exits with this code
    #[arg(long, value_name = "CODE", hide_short_help = true)]
    expect_exit: Option<i32>,
    /// Kill the processes that the program leaves behind
    #[arg(long, hide_short_help = true)]
    kill_leaked: bool,
    /// Keep the cassette even if the run ended this way
    #[arg(long, value_name = "HOW", value_enum, hide_short_help = true)]
    accept: Vec<Accept>,
    /// Folder for the traces of a failed run [default: `diagnostics` in $XDG_STATE_HOME/tapdeck]
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    diagnostics: Option<PathBuf>,
    /// Name of the recorded harness [default: the program's name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    harness: Option<String>,
    /// Command that prints the program's version
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    version_from: Option<String>,
    /// Capability that the recording demonstrates
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    capability: Option<String>,
    /// Kind of account, such as `pro`
    #[arg(long, value_name = "KIND", hide_short_help = true)]
    account_class: Option<String>,
    /// How long the recording stays valid as evidence about the live program, such as 24h
    #[arg(long, value_name = "TIME", value_parser = window, hide_short_help = true)]
    freshness: Option<String>,
    /// Permission mode that the program ran with
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    permission_mode: Option<String>,
    /// Contract version of the service events
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    contract_version: Option<String>,
    /// Print nothing on success
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print the report as JSON on standard error
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// The program and its arguments, after `--`
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<OsString>,
}

/// How a run may have ended and still be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Accept {
    /// The run timed out
    Timeout,
    /// A signal or a key canceled the run
    Cancelled,
}

fn resolution(text: &str) -> Result<u64, String> {
    let ms = parse::duration(text)?.as_millis();
    match u64::try_from(ms) {
        Ok(ms @ 1..=60_000) => Ok(ms),
        _ => Err("expected 1ms to 60s".to_owned()),
    }
}

/// A length of time, as the manifest has it.
fn window(text: &str) -> Result<String, String> {
    let wrong = || format!("expected a length of time such as 15m, 24h or 7d, not {text:?}");
    cassette::parse_window(text).map(|_| text.to_owned()).ok_or_else(wrong)
}

pub(crate) fn run(args: &RecordArgs) -> Result {
    record(args).map_err(|failure| failure.about("accepted", false))
}

fn record(args: &RecordArgs) -> Result {
    let clock = Clock::start();
    let mut launch = args.session.launch(&args.command)?;
    if launch.no_pty {
        return Err(Failure::usage("a cassette is recorded on a terminal: leave --no-pty away"));
    }
    let environment = args.environment(&launch);
    environment.apply(&mut launch.command);
    let lock = args.lock(clock)?;
    if let Some(pid) = lock.as_ref().and_then(AccountLock::stale) {
        say(format_args!("the lock of process {pid}, which is gone, was taken over"));
    }
    let key = args.seal.as_deref().map(read_key).transpose()?;
    let rules = args.rules(&launch, &environment)?;
    let mut closing = args.preflight(&launch, &environment, clock)?.seal(key);
    let diagnostics = args.diagnostics.clone().unwrap_or_else(diagnostics_folder);
    let now = clock.wall_start();
    let about = &closing.manifest;
    let folder = CassetteFolder::create_for_run(&args.target, args.overwrite, &diagnostics, now, about)?;
    let source = args.events.as_deref().map(service_events::Source::open).transpose();
    let source = source.map_err(|e| {
        let path = args.events.as_deref().unwrap_or(Path::new("")).display();
        Failure::io(format!("cannot read service events from {path}: {e}"))
    })?;
    // Elsewhere processes cannot be seen.
    let leftovers = launch.place.is_local().then(Leftovers::adopt);
    let mut started = WallTime::ZERO;
    let (mut screen, mut reading) = (None, None);
    let finished = launch.run_recorded(
        |log, clock, size| {
            started = clock.wall_start();
            CassetteRecorder::start(
                folder,
                log.clone(),
                clock,
                size,
                Duration::from_millis(args.resolution),
                rules,
            )
        },
        CassetteRecorder::finish,
        |session| {
            screen = args.session.final_screen(&session, args.quiet, false);
            reading = source.map(|source| source.read(session.handle));
        },
    );
    let setup = |e: LaunchError| Failure::io(e.to_string());
    let (outcome, recorded) = finished.map_err(setup)?;
    let mut recorded = recorded.map_err(|e| Failure::internal(e.to_string()))?;
    if let Some(reading) = reading {
        let reading = reading.map_err(|e| Failure::io(format!("cannot read service events: {e}")))?;
        recorded.add_late_events(&reading.finish());
    }
    let left = leftovers.as_ref().and_then(|leftovers| leftovers.wait(&clock));
    args.comment_on_leftovers(leftovers, left.as_deref().unwrap_or_default());
    drop(lock);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(e) => return args.fail(recorded, clock, &e.to_string(), None, closing),
    };
    if let Some(screen) = screen {
        screen.print();
    }
    args.session.comment_on(&outcome);
    let m = &mut closing.manifest;
    m.harness.captured_at = rfc3339(started);
    m.provenance.recorded_at = rfc3339(started);
    m.optional.insert("started_at_ns", started.as_nanos());
    if let Some(why) = args.verdict(&recorded, &outcome) {
        return args.fail(recorded, clock, &why, Some(&outcome), closing);
    }
    closing.outcome = ending(&outcome, &recorded);
    if let Some(left) = &left {
        name_leftovers(&mut closing.outcome, left);
    }
    let (bytes, duration) = (recorded.output_bytes(), recorded.duration());
    let manifest = recorded.accept(closing)?;
    args.say_accepted(&manifest, bytes, duration);
    Ok(Ending::Done)
}

impl RecordArgs {
    /// Tells which processes were left behind, and ends them if that was asked for.
    fn comment_on_leftovers(&self, leftovers: Option<Leftovers>, left: &[Leftover]) {
        if left.is_empty() {
            return;
        }
        let done = match self.kill_leaked {
            true => "what was left behind was killed",
            false => "what was left behind goes on; --kill-leaked kills it",
        };
        for Leftover { pid, command } in left {
            say(format_args!("left behind: {} (process {pid})", human::printable(command)));
        }
        if self.kill_leaked {
            leftovers.iter().for_each(Leftovers::kill);
        }
        say(done);
    }

    fn environment(&self, launch: &Launch) -> Environment {
        // The variables of this machine say nothing about another.
        let usual = !self.env_only && launch.place.is_local();
        let defaults = DEFAULT_ENV.into_iter().filter(|_| usual);
        let named = self.env.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str());
        let given = self.env.iter().filter_map(|(name, value)| Some((name.into(), value.clone()?)));
        let mut environment = Environment::from_allowlist(defaults.chain(named), given);
        // No terminal of the user shows the program, so its terminal is the model.
        if launch.headless || !std::io::stdout().is_terminal() {
            environment.default_value("TERM", "xterm-256color");
        }
        if !self.env_only && ["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|n| environment.get(n).is_none()) {
            environment.default_value("LANG", "C.UTF-8");
        }
        environment
    }

    /// The scrub rules: the packs, files of rules, the user's name and folders, and the values of
    /// named variables that look like secrets by their names.
    fn rules(&self, launch: &Launch, environment: &Environment) -> Result<Option<Arc<Rules>>> {
        if self.no_scrub {
            return Ok(None);
        }
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok());
        let owner = Owner::of_process(cwd.map(|cwd| cwd.to_string_lossy().into_owned()));
        let owner = Owner { home: environment.get("HOME").or(owner.home), ..owner };
        let telling = |name: &str| {
            let name = name.to_ascii_uppercase();
            ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"].iter().any(|word| name.contains(word))
        };
        let secrets = self
            .env
            .iter()
            .filter(|(name, _)| telling(name))
            .filter_map(|(name, _)| Some((format!("variable {name}"), environment.get(name)?)));
        let args = ScrubArgs { rules: self.rules.clone(), ..ScrubArgs::default() };
        args.rules_and(&packs(&self.scrub), &owner, secrets.collect()).map(Some)
    }

    fn lock(&self, clock: Clock) -> Result<Option<AccountLock>> {
        let Some(account) = &self.account else { return Ok(None) };
        let wait = self.account_wait.unwrap_or_default();
        let lock = AccountLock::wait(&state_folder().join("locks"), account, &clock, wait);
        lock.map(Some).map_err(|e| Failure::check(format!("{e}: nothing was recorded")))
    }

    /// Checks what must hold before the run, and begins the manifest with what it finds.
    fn preflight(&self, launch: &Launch, environment: &Environment, clock: Clock) -> Result<Closing> {
        let cwd = launch.command.cwd.as_deref();
        let argv = launch.shown_command();
        let program = argv.first().cloned().unwrap_or_default();
        let binaries = launch.place.is_local().then(|| executables(&launch.command.argv, cwd)).transpose()?;
        if let Some(check) = &self.check {
            check_command(check, environment, cwd)?;
        }
        let version = match &self.version_from {
            Some(command) => {
                let said = check_command(command, environment, cwd)?;
                said.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned)
            }
            None => None,
        };
        let begun = begin_manifest(clock.wall_start(), cwd.unwrap_or(Path::new(".")));
        let mut closing = begun.map_err(|e| Failure::io(format!("no random numbers: {e}")))?;
        let m = &mut closing.manifest;
        let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        m.harness.name = self.harness.clone().unwrap_or(name);
        name_binary(&mut m.harness, binaries.unwrap_or_default(), version);
        m.harness.capability = self.capability.clone().map(JsonValue::from);
        m.harness.account_class.clone_from(&self.account_class);
        m.harness.freshness_window.clone_from(&self.freshness);
        m.command.argv = argv;
        m.command.workdir_policy = if cwd.is_some() { "given" } else { "inherited" }.into();
        m.command.env_allowlist = environment.names();
        m.command.timeout_ms = launch.timeout.map(|t| t.as_millis() as u64);
        m.command.permission_mode.clone_from(&self.permission_mode);
        m.terminal.term = environment.get("TERM");
        m.terminal.locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|n| environment.get(n)).filter(|l| !l.is_empty());
        let shown = !launch.headless && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let echo = launch.headless || std::io::stdin().is_terminal();
        m.terminal.pty_mode =
            Some(JsonValue::of(&json!({"settings": if shown { "user" } else { "system" }, "echo": echo})));
        m.provenance.contract_version.clone_from(&self.contract_version);
        closing.scrub_report.environment_removed = environment.removed();
        Ok(closing)
    }

    /// Why the run is not accepted as evidence, if it is not.
    fn verdict(&self, recorded: &Recorded, outcome: &Outcome) -> Option<String> {
        if let Some(trouble) = recorded.trouble() {
            return Some(trouble);
        }
        let accepted = |how| self.accept.contains(&how);
        match (outcome.ended, recorded.stopped_by()) {
            (Ended::TimedOut, _) if !accepted(Accept::Timeout) => {
                return Some("the run was over its time limit".into());
            }
            (Ended::TimedOut, _) => return None,
            (Ended::Program, None) => {}
            (Ended::OutputFailed(error), _) => {
                let why = std::io::Error::from_raw_os_error(error);
                return Some(format!("the output could not be written: {why}"));
            }
            (Ended::OutputClosed, _) => return Some("the reader of the output is gone".into()),
            (_, stopped) if !accepted(Accept::Cancelled) => {
                let by = stopped.map(|s| format!(" ({})", signal_name(s))).unwrap_or_default();
                return Some(format!("the run was canceled{by}"));
            }
            _ => return None,
        }
        match (self.expect_exit, outcome.exit) {
            (Some(want), Exit::Code(code)) if want != code => {
                Some(format!("the program ended with exit code {code}, not {want}"))
            }
            (Some(want), Exit::Signal(signal)) => {
                Some(format!("the program was ended by {}, not with exit code {want}", signal_name(signal)))
            }
            _ => None,
        }
    }

    /// Keeps the traces of a failed run in the diagnostics folder, apart from evidence.
    fn fail(
        &self,
        recorded: Recorded,
        clock: Clock,
        why: &str,
        outcome: Option<&Outcome>,
        closing: Closing,
    ) -> Result {
        let folder = self.diagnostics.clone().unwrap_or_else(diagnostics_folder);
        let exit = outcome.map(|o| o.exit.into());
        let reason = FailedRun::Program {
            exit,
            reason: why.to_owned(),
            recorded_at: rfc3339(clock.wall_start()),
            target: self.target.to_string_lossy().into_owned(),
        };
        let kept = recorded.reject(&folder, clock.wall_start(), &reason, closing);
        let place = kept.map_err(|e| {
            let message = format!("no cassette: {why}; and its traces could not be kept: {e}");
            Failure::from(e).with_message(message)
        })?;
        if self.json {
            print_json_beside(
                &json!({"accepted": false, "error": why, "diagnostics": place.to_string_lossy()}),
            );
        } else {
            say(format_args!("no cassette: {why}; its traces are in {}", place.display()));
        }
        Ok(Ending::Failed(Kind::Check))
    }

    fn say_accepted(&self, manifest: &Manifest, bytes: u64, duration: Duration) {
        let target = self.target.display();
        if self.json {
            print_json_beside(&json!({
                "accepted": true, "cassette": self.target.to_string_lossy(), "id": manifest.id,
                "sha256": manifest.content_digest.sha256, "output_bytes": bytes,
                "duration_ms": duration.as_millis() as u64,
            }));
        } else if !self.quiet {
            say(format_args!(
                "{target}: {} of output in {}, id {}",
                human::bytes(bytes),
                human::duration(duration),
                manifest.id
            ));
        }
    }
}

fn ending(outcome: &Outcome, recorded: &Recorded) -> cassette::Final {
    let ended = match (outcome.ended, recorded.stopped_by()) {
        (Ended::TimedOut, _) => "timed_out",
        (Ended::Program, None) => "program",
        _ => "cancelled",
    };
    let mut last = cassette::Final { exit: outcome.exit.into(), ..cassette::Final::default() };
    last.metadata.insert("ended", ended);
    last
}
