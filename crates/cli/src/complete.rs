//! Completions: what a shell offers while a command is typed, asked of this binary each time.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use tapdeck::turns;
use tapdeck_core::turns::AgentState;
use tapdeck_tape::Container;

use crate::config::Config;
use crate::{Cli, formats, human, sessions};

/// The variable by which a shell asks. It has a name of its own because a program inside a session
/// may use `COMPLETE` for itself.
const VARIABLE: &str = "TAPDECK_COMPLETE";

/// The end of the name of a scenario.
const SCENARIO: &str = ".scenario.yaml";
/// The most entries of folders that are looked at for scenarios: a shell waits meanwhile.
const MAX_ENTRIES: usize = 5_000;

/// Answers the shell and ends the process, if a shell asks.
pub(crate) fn answer() {
    CompleteEnv::with_factory(definition).var(VARIABLE).bin("tapdeck").completer("tapdeck").complete();
}

/// The script for bash: the one of clap neither quotes names nor joins words at colons.
const BASH: &str = include_str!("complete.bash");
/// The end of the script for zsh. A file in `fpath` is read at the first Tab, as the body of the
/// function that completes.
const ZSH_FIRST: &str = "[[ $funcstack[1] == _tapdeck ]] && _clap_dynamic_completer_tapdeck \"$@\"\n";

/// Returns the script that makes a shell ask.
pub(crate) fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    if shell == "bash" {
        return Ok(BASH.replace("VARIABLE", VARIABLE).into_bytes());
    }
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(VARIABLE, "tapdeck", "tapdeck", "tapdeck", &mut script)?;
    }
    // Words come as they were typed, and names have no quotes.
    let text = String::from_utf8_lossy(&script);
    Ok(match shell {
        "zsh" => (text.replace("${words[@]}", "${(@Q)words}") + ZSH_FIRST).into_bytes(),
        "fish" => text.replace("--current-token)", "--current-token | string unescape)").into_bytes(),
        _ => script,
    })
}

fn definition() -> Command {
    with_values(Cli::command())
}

/// Says for the arguments of a command, and of those below it, which values there are.
fn with_values(command: Command) -> Command {
    let exports = matches!(command.get_name(), "convert" | "cat");
    command.mut_args(|arg| with_value(arg, exports)).mut_subcommands(with_values)
}

fn with_value(arg: Arg, exports: bool) -> Arg {
    if !arg.get_possible_values().is_empty() {
        return arg;
    }
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let (id, positional) = (arg.get_id().to_string(), arg.is_positional());
    match (id.as_str(), name.as_deref().unwrap_or_default()) {
        ("agent", _) => arg.add(ArgValueCandidates::new(agents)),
        ("format", "FORMAT") if exports => arg.add(ArgValueCandidates::new(|| {
            let mut all = words(&formats::RECORDINGS);
            all.extend(words(&formats::EXPORTS));
            all
        })),
        ("from" | "format" | "input_format", "FORMAT") => {
            arg.add(ArgValueCandidates::new(|| words(&formats::RECORDINGS)))
        }
        (_, "THEME") => arg.add(ArgValueCandidates::new(themes)),
        (_, "STATE") => arg.add(ArgValueCandidates::new(|| words(&AgentState::ALL.map(AgentState::name)))),
        (_, "SESSION" | "FROM" | "TO") => arg.add(ArgValueCandidates::new(live)),
        (_, "SESSION|TURN" | "FILE|SESSION") => arg.add(ArgValueCompleter::new(live_or_recorded)),
        (_, "FILE" | "IN") if positional => arg.add(ArgValueCompleter::new(recordings())),
        ("only", "TEXT") => arg.add(ArgValueCandidates::new(scenarios)),
        ("paths", "PATH") => arg.add(ArgValueCompleter::new(PathCompleter::any().filter(is_scenario))),
        _ => arg,
    }
}

fn words(words: &[&'static str]) -> Vec<CompletionCandidate> {
    words.iter().map(CompletionCandidate::new).collect()
}

/// The live sessions by name, or by id where they have none.
fn live() -> Vec<CompletionCandidate> {
    // A shell shows no errors: without an answer there is nothing to offer.
    let (_, listings) = sessions::alive().unwrap_or_default();
    let candidate = |listing: tapdeck_host::registry::Listing| {
        let command = human::printable(&listing.command.join(" "));
        CompletionCandidate::new(listing.name.unwrap_or(listing.id)).help(Some(command.into()))
    };
    listings.into_iter().map(candidate).collect()
}

fn live_or_recorded(typed: &OsStr) -> Vec<CompletionCandidate> {
    let begins = |candidate: &CompletionCandidate| {
        candidate.get_value().as_encoded_bytes().starts_with(typed.as_encoded_bytes())
    };
    let mut all: Vec<CompletionCandidate> = live().into_iter().filter(begins).collect();
    all.extend(recordings().complete(typed));
    all
}

/// Recordings and cassettes, by the names of their files, and the folders on the way to them.
fn recordings() -> PathCompleter {
    PathCompleter::any().filter(|path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.and_then(Container::of_name).is_some()
    })
}

/// The names of the scenarios below the folders that stand on the command line, or below this one.
fn scenarios() -> Vec<CompletionCandidate> {
    let typed = std::env::args_os().skip_while(|arg| arg != "--").skip(3).map(PathBuf::from);
    let mut open: Vec<PathBuf> = typed.filter(|path| path.exists()).collect();
    if open.is_empty() {
        open.push(".".into());
    }
    let (mut names, mut looked) = (BTreeSet::new(), 0);
    while let Some(path) = open.pop() {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if let Some(name) = name.strip_suffix(SCENARIO) {
            names.insert(name.to_owned());
        }
        // A file is no folder, and nothing in one that cannot be read can be tested.
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries.take(MAX_ENTRIES.saturating_sub(looked)) {
            looked += 1;
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !hidden && (is_folder || is_scenario(&entry.path())) {
                open.push(entry.path());
            }
        }
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn is_scenario(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(SCENARIO))
}

fn themes() -> Vec<CompletionCandidate> {
    // A configuration that is wrong is reported by the commands that use it.
    let config = Config::load().unwrap_or_default();
    config.all_themes().into_iter().map(|(name, _)| CompletionCandidate::new(name)).collect()
}

fn agents() -> Vec<CompletionCandidate> {
    // A rule file that is broken is reported by the commands that use it.
    let agents = turns::load().unwrap_or_default();
    agents.names().into_iter().map(CompletionCandidate::new).collect()
}
