//! `tapdeck probe`: the facts that only an agent's screen shows, read by rules that are data.

mod cache;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tapdeck::convert::begin_manifest;
use tapdeck::scrub::{Owner, Rules, packs};
use tapdeck_host::cassette::{
    AccountLock, CassetteFolder, FailedRun, diagnostics_folder, executables, name_binary, name_leftovers,
    rfc3339,
};
use tapdeck_host::probe::{
    Agent, Facts, Probe, ProbeOptions, Probed, Status, agent, probe, probe_folder, read_cassette,
};
use tapdeck_host::{Clock, state_folder};
use tapdeck_tape::cassette::{Cassette, Discovery, Quota};

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::scrubbing::ScrubArgs;
use crate::{human, parse};

/// Read an agent's quota, models or reasoning levels from its screen.
#[derive(Args)]
#[command(after_help = "\
Starts the agent, types its command, and reads the panel once it is complete and stops changing. The
answer is ok (exit code 0), unauthenticated, unavailable or error (exit code 1). Answers are cached:
quota and unavailable expire after 15 minutes, models and reasoning levels after a day.

Examples:
  tapdeck probe claude quota
  tapdeck probe codex models --json
  tapdeck probe claude quota --cassette cassettes/claude-quota
  tapdeck probe claude quota --cached --json                    use the cached answer until it expires
  tapdeck probe claude quota --from cassettes/claude-quota      without running the agent")]
pub(crate) struct ProbeArgs {
    /// The agent: claude, codex, gemini, or one with your own rules
    #[arg(value_name = "AGENT")]
    agent: String,
    /// What to read
    #[arg(value_name = "WHAT", value_enum)]
    what: Subject,
    /// The program to run [default: the agent's command in PATH]
    #[arg(long, value_name = "PROGRAM", conflicts_with = "from", hide_short_help = true)]
    program: Option<OsString>,
    /// Working directory [default: an empty folder under $XDG_STATE_HOME/tapdeck]
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    cwd: Option<PathBuf>,
    /// Account that the agent uses: probes, tests and recordings with the same account run one at a
    /// time [default: the agent's name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    account: Option<String>,
    /// Wait this long for an account that is in use
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse::duration, hide_short_help = true)]
    account_wait: Duration,
    /// Timeout; the agent is stopped
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse::duration)]
    timeout: Duration,
    /// Keep the run as a cassette; the traces of a failed probe go to the diagnostics folder
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    cassette: Option<PathBuf>,
    /// Replace an existing cassette
    #[arg(long, requires = "cassette", hide_short_help = true)]
    overwrite: bool,
    /// Do not mask secrets in the cassette
    #[arg(long, requires = "cassette", hide_short_help = true)]
    no_scrub: bool,
    /// Mask by the rules in this TOML file in the cassette, too; repeatable
    #[arg(
        long,
        value_name = "FILE",
        requires = "cassette",
        conflicts_with = "no_scrub",
        hide_short_help = true
    )]
    rules: Vec<PathBuf>,
    /// Read the cassette of an earlier probe instead of running the agent
    #[arg(long, value_name = "CASSETTE")]
    from: Option<PathBuf>,
    /// Use the cached answer of an earlier probe until it expires; then ask the agent
    #[arg(long, conflicts_with_all = ["from", "cassette"])]
    cached: bool,
    /// Use only the cached answer and never start the agent; exit code 1 if there is none or it
    /// expired
    #[arg(long, conflicts_with_all = ["from", "cassette", "cached"], hide_short_help = true)]
    only_cached: bool,
    /// Maximum age of a cached answer [default: 15m for quota, 24h for models and reasoning]
    #[arg(long, value_name = "TIME", value_parser = parse::duration, hide_short_help = true)]
    max_age: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The facts to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    Quota,
    Models,
    Reasoning,
    Status,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Models => "models",
            Self::Reasoning => "reasoning",
            Self::Status => "status",
        }
    }

    fn is_quota(self) -> bool {
        matches!(self, Self::Quota | Self::Status)
    }
}

pub(crate) fn run(args: &ProbeArgs) -> Result {
    Ok(Ending::of_check(answer(args)? == Status::Ok))
}

fn answer(args: &ProbeArgs) -> Result<Status> {
    let usage = |e: tapdeck_host::probe::FlowError| Failure::usage(e.to_string());
    let own = tapdeck::turns::own_file(&args.agent).map_err(|e| Failure::io(e.to_string()))?;
    let agent = agent(&args.agent, own.as_deref()).map_err(usage)?;
    let flow = agent.probe(args.what.name()).map_err(usage)?;
    let question = Question { agent: &agent, flow: &flow, max_age: args.max_age, cached: false };
    if let Some(path) = &args.from {
        let cassette = Cassette::open(path).map_err(|e| Failure::cassette(path, e))?;
        let (status, detail, facts) = read_cassette(&agent, &flow, &cassette);
        let at = &cassette.manifest.harness.captured_at;
        args.show(&question, &Answer { status, detail: &detail, facts: &facts, at });
        return Ok(status);
    }
    let program = args.program.clone().unwrap_or_else(|| agent.program.as_str().into());
    let place = cache::place(&agent, &flow, &program);
    if (args.cached || args.only_cached)
        && let Some(status) = remembered(args, Question { cached: true, ..question }, &place)
    {
        return Ok(status);
    }
    let account = args.account.as_deref().unwrap_or(&agent.name);
    let lock = AccountLock::wait(&state_folder().join("locks"), account, &Clock::start(), args.account_wait);
    let lock = lock.map_err(|e| Failure::check(format!("{e}: nothing was probed")))?;
    let options = ProbeOptions::default()
        .program(args.program.clone())
        .cwd(args.cwd.clone())
        .timeout(args.timeout)
        .cassette(args.folder(&agent)?)
        .rules(args.rules()?);
    let mut probed = probe(&agent, &flow, options);
    drop(lock);
    let at = rfc3339(probed.captured);
    let kept = args.keep(&agent, &flow, &mut probed)?;
    let Probed { status, detail, facts, started, .. } = &probed;
    let answer = Answer { status: *status, detail, facts, at: &at };
    args.show(&question, &answer);
    if let Some(kept) = kept {
        say(kept);
    }
    let mut kept = question.kept(args.what, &answer);
    if *status != Status::Ok {
        // What was found before no longer counts.
        kept = cache::CachedAnswer {
            failure: Some(cache::CachedFailure {
                status: *status,
                detail: detail.clone(),
                captured_at: at.clone(),
                started: *started,
            }),
            ..kept
        };
    }
    if let Err(e) = cache::store(&place, &kept) {
        say(format_args!("the answer is not kept for --cached: {}: {e}", place.display()));
    }
    Ok(probed.status)
}

/// Shows an earlier answer, if there is one to use; `None` if the program must be probed.
fn remembered(args: &ProbeArgs, question: Question<'_>, place: &Path) -> Option<Status> {
    let kept = cache::load(place);
    let at = kept.as_ref().map(cache::CachedAnswer::captured_at).unwrap_or_default();
    let failure = kept.as_ref().and_then(|kept| kept.failure.as_ref());
    let now = Clock::start().wall_start();
    let is_answer = failure.is_none_or(|failure| failure.is_answer(now));
    let fresh = question.is_fresh(at) && is_answer;
    if !fresh && !args.only_cached {
        return None;
    }
    let facts = kept.as_ref().map(cache::CachedAnswer::facts).unwrap_or_default();
    let (status, detail) = match &kept {
        Some(_) if let Some(failure) = failure.filter(|_| fresh) => {
            (failure.status, format!("{}; found by the probe of {at}", failure.detail))
        }
        Some(_) if let Some(cache::CachedFailure { status, detail, captured_at, .. }) = failure => {
            let why = format!("the last probe, at {captured_at}, failed ({status}): {detail}");
            (Status::Error, why)
        }
        Some(_) if fresh => (Status::Ok, format!("found by the probe of {at}")),
        Some(_) => (Status::Error, format!("the answer of the last probe, at {at}, has expired")),
        None => (Status::Error, "no answer is cached; run it without --only-cached".to_owned()),
    };
    args.show(&question, &Answer { status, detail: &detail, facts: &facts, at });
    Some(status)
}

impl ProbeArgs {
    fn folder(&self, agent: &Agent) -> Result<Option<CassetteFolder>> {
        let Some(path) = &self.cassette else { return Ok(None) };
        let now = Clock::start().wall_start();
        let begun = begin_manifest(now, Path::new("."));
        let mut about = begun.map_err(|e| Failure::io(format!("no random numbers: {e}")))?.manifest;
        about.harness.name.clone_from(&agent.name);
        let folder = CassetteFolder::create_for_run(path, self.overwrite, &diagnostics_folder(), now, &about);
        folder.map(Some).map_err(|e| Failure::usage(e.to_string()))
    }

    fn rules(&self) -> Result<Option<Arc<Rules>>> {
        if self.no_scrub {
            return Ok(None);
        }
        let cwd = self.cwd.clone().unwrap_or_else(probe_folder);
        let owner = Owner::of_process(Some(cwd.to_string_lossy().into_owned()));
        let args = ScrubArgs { rules: self.rules.clone(), ..ScrubArgs::default() };
        args.rules(&packs(&[]), &owner).map(Some)
    }

    /// Keeps the timeline if it was asked for. Returns a message about its place.
    fn keep(&self, agent: &Agent, flow: &Probe, probed: &mut Probed) -> Result<Option<String>> {
        let Some(recorded) = probed.recorded.take() else { return Ok(None) };
        let io = |e: &dyn std::fmt::Display| Failure::io(e.to_string());
        let cwd = self.cwd.as_deref().unwrap_or(Path::new("."));
        let mut closing = begin_manifest(probed.captured, cwd).map_err(|e| io(&e))?;
        let m = &mut closing.manifest;
        m.harness.name.clone_from(&agent.name);
        m.harness.capability = Some(flow.name.as_str().into());
        m.harness.account_class.clone_from(&probed.facts.plan);
        m.harness.freshness_window = Some(window(flow));
        m.command.workdir_policy = if self.cwd.is_some() { "given" } else { "temporary" }.into();
        // The program was there a moment ago.
        let binaries = executables(&probed.argv, self.cwd.as_deref()).unwrap_or_default();
        name_binary(&mut m.harness, binaries, None);
        // The path of the program is private, so the manifest has its digest.
        let args = probed.argv.iter().skip(1).map(|a| a.to_string_lossy().into_owned());
        m.command.argv = [agent.program.clone()].into_iter().chain(args).collect();
        m.command.env_allowlist = probed.environment.names();
        m.command.timeout_ms = Some(self.timeout.as_millis() as u64);
        m.terminal.term = probed.environment.get("TERM");
        m.terminal.locale = probed.environment.get("LANG");
        closing.scrub_report.environment_removed = probed.environment.removed();
        closing.outcome.exit = recorded.exit().map(Into::into).unwrap_or_default();
        closing.outcome.metadata.insert("ended", "probe");
        name_leftovers(&mut closing.outcome, &probed.left);
        let at = rfc3339(probed.captured);
        match self.what.is_quota() {
            true => closing.quota = Some(quota(agent, flow, probed.status, &probed.facts, &at)),
            false => closing.discovery = Some(discovery(flow, &probed.facts, &at)),
        }
        if probed.status == Status::Ok {
            recorded.accept(closing).map_err(|e| io(&e))?;
            return Ok(self.cassette.as_ref().map(|p| format!("the timeline is kept in {}", p.display())));
        }
        // A failed probe is no evidence.
        let reason = FailedRun::Probe {
            probe: flow.name.clone(),
            reason: probed.detail.clone(),
            status: probed.status.to_string(),
        };
        let place =
            recorded.reject(&diagnostics_folder(), probed.captured, &reason, closing).map_err(|e| io(&e))?;
        Ok(Some(format!("no cassette was made; the traces are in {}", place.display())))
    }

    fn show(&self, question: &Question<'_>, answer: &Answer<'_>) {
        if self.json {
            print_json(&question.to_json(self.what, answer));
        } else {
            print(format_args!("{}", question.to_text(answer)));
        }
    }
}

fn window(flow: &Probe) -> String {
    format!("{}m", flow.fresh_minutes)
}

fn quota(agent: &Agent, flow: &Probe, status: Status, facts: &Facts, at: &str) -> Quota {
    Quota {
        source: format!("{} {}", agent.name, flow.name),
        status: status.to_string(),
        captured_at: at.into(),
        freshness_window: Some(window(flow)),
        account_class: facts.plan.clone(),
        windows: facts.windows.clone(),
        ..Quota::default()
    }
}

fn discovery(flow: &Probe, facts: &Facts, at: &str) -> Discovery {
    Discovery {
        models: facts.models.clone(),
        reasoning_levels: facts.reasoning.clone(),
        captured_at: at.into(),
        freshness_window: Some(window(flow)),
        ..Discovery::default()
    }
}

/// An answer.
struct Answer<'a> {
    status: Status,
    detail: &'a str,
    facts: &'a Facts,
    at: &'a str,
}

/// The probe that an answer belongs to, and when it expires.
#[derive(Clone, Copy)]
struct Question<'a> {
    agent: &'a Agent,
    flow: &'a Probe,
    max_age: Option<Duration>,
    cached: bool,
}

impl Question<'_> {
    fn is_fresh(&self, at: &str) -> bool {
        let window = self.max_age.unwrap_or(Duration::from_secs(60 * self.flow.fresh_minutes));
        cache::is_fresh(at, window, Clock::start().wall_start())
    }

    fn kept(&self, what: Subject, answer: &Answer<'_>) -> cache::CachedAnswer {
        let Answer { status, facts, at, .. } = answer;
        match what.is_quota() {
            true => cache::CachedAnswer {
                quota: Some(quota(self.agent, self.flow, *status, facts, at)),
                discovery: None,
                failure: None,
            },
            false => cache::CachedAnswer {
                quota: None,
                discovery: Some(discovery(self.flow, facts, at)),
                failure: None,
            },
        }
    }

    fn to_json(self, what: Subject, answer: &Answer<'_>) -> Value {
        let fresh = self.is_fresh(answer.at);
        let mut value = json!({
            "agent": self.agent.name, "probe": self.flow.name, "status": answer.status, "detail": answer.detail,
            "fresh": fresh, "cached": self.cached,
        });
        let kept = serde_json::to_value(self.kept(what, answer)).unwrap_or_default();
        if let (Value::Object(value), Value::Object(kept)) = (&mut value, kept) {
            value.extend(kept);
            if what.is_quota() {
                // Without an answer, a caller must assume that nothing is left.
                let blocked = answer.facts.windows.iter().any(|w| w.state == "blocked");
                let limited = answer.status != Status::Ok || !fresh || blocked;
                value.insert("limited".into(), limited.into());
            }
        }
        value
    }

    fn to_text(self, answer: &Answer<'_>) -> String {
        let Answer { status, detail, facts, at } = answer;
        let mut text =
            format!("{} {}: {status} ({})\n", self.agent.name, self.flow.name, human::printable(detail));
        if let Some(plan) = &facts.plan {
            text.push_str(&format!("  plan       {}\n", human::printable(plan)));
        }
        for w in &facts.windows {
            let resets = w.resets_at.as_ref().map(|r| format!(", resets {r}")).unwrap_or_default();
            let line = format!("{}: {}% used{resets}, {}", w.name, w.used_percent.unwrap_or(0.0), w.state);
            text.push_str(&format!("  {}\n", human::printable(&line)));
        }
        for (name, list) in [("models", &facts.models), ("levels", &facts.reasoning)] {
            if !list.is_empty() {
                text.push_str(&format!("  {name:<10} {}\n", human::printable(&list.join(", "))));
            }
        }
        if *status == Status::Ok && !self.is_fresh(at) {
            text.push_str(&format!("  expired    found at {}; probe again\n", human::printable(at)));
        }
        text
    }
}
