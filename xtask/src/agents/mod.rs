//! Real coding agents against a model on the loopback: how true are the states that tapdeck
//! reports, and its verdicts on prompts? `--binary` judges any build, so that two can be compared.

mod bus;
mod corpus;
mod goldens;
mod judge;
mod model;
mod prepare;
mod prompts;
mod report;
mod session;
mod states;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo xtask agents states|prompts|goldens [--agent NAME] [--count N] [--only NAME] \
    [--around NAME] [--seed N] [--silence SECONDS] [--binary PATH] [--rules FOLDER] [--json FILE] [--pictures]";

/// The agents that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Opencode,
    Aider,
    Copilot,
    Cline,
}

impl Agent {
    const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Opencode,
        Self::Aider,
        Self::Copilot,
        Self::Cline,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
        }
    }

    fn of(name: &str) -> Result<Self> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|a| a.name() == name)
            .with_context(|| format!("unknown agent {name:?}; use one of {}", names()))
    }
}

/// What is to be run.
pub(crate) struct Options {
    agents: Vec<Agent>,
    /// At most so many situations or prompts for each agent.
    count: Option<usize>,
    only: Option<String>,
    around: Option<String>,
    seed: u64,
    /// How long the long silence is, in seconds.
    silence: u32,
    binary: PathBuf,
    /// A folder of rules to use in place of the built-in ones.
    rules: Option<PathBuf>,
    json: Option<PathBuf>,
    /// Whether sessions are recorded.
    record: bool,
    pictures: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            agents: vec![Agent::Claude, Agent::Codex],
            count: None,
            only: None,
            around: None,
            seed: 1,
            silence: 25,
            binary: PathBuf::new(),
            rules: None,
            json: None,
            record: false,
            pictures: false,
        };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if *name == "--pictures" {
                options.pictures = true;
                continue;
            }
            let value = *args.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
            match *name {
                "--agent" => options.agents = vec![Agent::of(value)?],
                "--rules" => options.rules = Some(value.into()),
                "--count" => options.count = Some(value.parse().context("--count takes a number")?),
                "--only" => options.only = Some(value.to_owned()),
                "--around" => options.around = Some(value.to_owned()),
                "--seed" => options.seed = value.parse().context("--seed takes a number")?,
                "--silence" => options.silence = value.parse().context("--silence takes seconds")?,
                "--binary" => options.binary = std::fs::canonicalize(value).context(value.to_owned())?,
                "--json" => options.json = Some(value.into()),
                _ => bail!("{USAGE}"),
            }
        }
        if options.binary.as_os_str().is_empty() {
            crate::succeed(Command::new("cargo").args(["build", "-p", "tapdeck-cli"]))?;
            options.binary = crate::root()?.join("target/debug/tapdeck");
        }
        Ok(options)
    }

    /// A prompt, with the silence that was asked for in place of the long one.
    fn shortened(&self, text: &str) -> String {
        text.replace("25 seconds", &format!("{} seconds", self.silence))
    }
}

/// Runs the part that the arguments name, with the agents that `PATH` has or that it installs.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match crate::tools::install_agents()? {
        Ok(path) => run_with(&path, args),
        Err(why) => bail!("no coding agents to judge: {why}"),
    }
}

/// Runs the part that the arguments name, with the agents in this `PATH`.
pub(crate) fn run_with(path: &OsStr, args: &[&str]) -> Result<()> {
    session::clear_leftovers();
    let right = match args {
        ["states", rest @ ..] => states::run(&Options::parse(rest)?, path)?,
        ["prompts", rest @ ..] => prompts::run(&Options::parse(rest)?, path)?,
        ["goldens", rest @ ..] => goldens::run(&Options { record: true, ..Options::parse(rest)? }, path)?,
        _ => bail!("{USAGE}"),
    };
    if !right {
        bail!("not everything that was reported about the agents was true");
    }
    Ok(())
}

/// The time in milliseconds, as the model's log has it.
fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

fn private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?)
}
