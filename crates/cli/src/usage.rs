//! What is wrong with a command line, and what to type instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::ending::{Ending, Report};
use crate::failure::Failure;
use crate::{Cli, help};
use tapdeck_tape::nearest;

/// Prints help, the version, or what is wrong with the command line.
pub(crate) fn report(e: &clap::Error) -> Ending {
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let as_json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let how = Report::json(as_json && e.use_stderr());
    if let Some(sentence) = sentence(e, &args) {
        return Failure::usage(sentence).report(how);
    }
    if how == Report::Json {
        let text = e.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim();
        let why = first.strip_prefix("error: ").unwrap_or(first);
        return Failure::usage(why).report(how);
    }
    help::print(e)
}

/// One sentence for the mistakes that have an obvious remedy.
fn sentence(e: &clap::Error, args: &[String]) -> Option<String> {
    match e.kind() {
        ErrorKind::UnknownArgument => unknown_argument(e, args),
        ErrorKind::InvalidSubcommand => unknown_command(e, args),
        ErrorKind::MissingRequiredArgument => Some(missing_argument(e, args)),
        ErrorKind::InvalidValue => unknown_value(e, args),
        ErrorKind::ValueValidation => invalid_value(e),
        ErrorKind::ArgumentConflict => conflict(e),
        _ => None,
    }
}

fn unknown_argument(e: &clap::Error, args: &[String]) -> Option<String> {
    let unknown = text(e, ContextKind::InvalidArg)?;
    let (command, name) = subcommand(args);
    if !unknown.starts_with('-') {
        return Some(unexpected_word(&unknown, args, &command, &name));
    }
    Some(match text(e, ContextKind::SuggestedArg) {
        Some(known) => format!("unknown option {unknown}; did you mean {known}?"),
        None => format!("unknown option {unknown}; see {name} --help"),
    })
}

/// A word too many: an output without its option, a command without `--`, or something else.
fn unexpected_word(unknown: &str, args: &[String], command: &Command, name: &str) -> String {
    let typed = args.iter().position(|arg| arg == unknown);
    let is_file = unknown.contains(['.', '/']);
    if is_file && command.get_arguments().any(|arg| arg.get_long() == Some("output")) {
        let before = shown(&args[..typed.unwrap_or(args.len())]);
        return format!(
            "unexpected argument {unknown:?}: put -o before the output: tapdeck {before} -o {unknown}"
        );
    }
    match typed.filter(|_| command.get_positionals().any(is_command)) {
        Some(at) => format!(
            "unexpected argument {unknown:?}: put -- before the command: tapdeck {} -- {}",
            shown(&args[..at]),
            shown(&args[at..])
        ),
        None => format!("unexpected argument {unknown:?}; see {name} --help"),
    }
}

fn unknown_command(e: &clap::Error, args: &[String]) -> Option<String> {
    let unknown = text(e, ContextKind::InvalidSubcommand)?;
    let (command, name) = subcommand(args);
    let known = command.get_subcommands().flat_map(Command::get_name_and_visible_aliases);
    Some(match nearest::name(&unknown, known) {
        Some(known) => format!("unknown command {unknown:?}; did you mean {known}?"),
        None => format!("unknown command {unknown:?}; see {name} --help"),
    })
}

fn missing_argument(e: &clap::Error, args: &[String]) -> String {
    let missing: Vec<String> = texts(e, ContextKind::InvalidArg).iter().map(|arg| plain(arg)).collect();
    let (mut command, name) = subcommand(args);
    if missing.iter().any(|arg| arg.contains(" or ")) {
        return format!("give {}; see {name} --help", missing.join(" and "));
    }
    let usage = plain(&command.render_usage().to_string());
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage).lines().next().unwrap_or_default().trim();
    // The usage of a part of a command lacks the words before it.
    let usage = usage.split_once(' ').map_or("", |(_, rest)| rest);
    format!("missing {}: {name} {usage}; see {name} --help", missing.join(" and "))
}

fn unknown_value(e: &clap::Error, args: &[String]) -> Option<String> {
    let (arg, value) = (plain(&text(e, ContextKind::InvalidArg)?), text(e, ContextKind::InvalidValue)?);
    let known = texts(e, ContextKind::ValidValue);
    let what = if value.is_empty() { "missing value".into() } else { format!("unknown value {value:?}") };
    Some(match alternatives(&known) {
        Some(known) => format!("{what} for {arg}; use {known}"),
        None => format!("{what} for {arg}; see {} --help", subcommand(args).1),
    })
}

fn invalid_value(e: &clap::Error) -> Option<String> {
    let (arg, value) = (plain(&text(e, ContextKind::InvalidArg)?), text(e, ContextKind::InvalidValue)?);
    let why = std::error::Error::source(e)?.to_string();
    let why = match why.as_str() {
        "invalid digit found in string" | "cannot parse integer from empty string" => "expected a number",
        "number would be zero for non-zero type" => "expected a number above zero",
        why => why,
    };
    Some(format!("invalid value {value:?} for {arg}: {why}"))
}

fn conflict(e: &clap::Error) -> Option<String> {
    let (arg, others) = (plain(&text(e, ContextKind::InvalidArg)?), texts(e, ContextKind::PriorArg));
    let others: Vec<String> = others.iter().map(|other| plain(other)).collect();
    let others = alternatives(&others).filter(|_| !others.contains(&arg));
    Some(match others {
        Some(others) => format!("{arg} cannot be used with {others}"),
        None => format!("{arg} may be given only once"),
    })
}

/// The first text of a kind in an error.
fn text(e: &clap::Error, kind: ContextKind) -> Option<String> {
    match e.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}

/// The texts of a kind in an error.
fn texts(e: &clap::Error, kind: ContextKind) -> Vec<String> {
    match e.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// An argument without brackets: `--output OUT` for `--output <OUT>`.
fn plain(arg: &str) -> String {
    arg.replace(['<', '>'], "").replace('|', " or ")
}

/// Words as alternatives: `a, b or c`.
fn alternatives(words: &[String]) -> Option<String> {
    let (last, before) = words.split_last()?;
    Some(if before.is_empty() { last.clone() } else { format!("{} or {last}", before.join(", ")) })
}

/// Whether an argument is a program to run, which stands behind `--`.
fn is_command(arg: &clap::Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.is_last_set() && names.iter().any(|name| *name == "CMD")
}

/// The subcommand that was typed, and its full name.
fn subcommand(args: &[String]) -> (Command, String) {
    let (mut command, mut name) = (Cli::command(), "tapdeck".to_owned());
    for arg in args {
        let Some(sub) = command.find_subcommand(arg).cloned() else { break };
        name = format!("{name} {}", sub.get_name());
        command = sub;
    }
    (command, name)
}

/// Arguments as a shell takes them.
fn shown(args: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = |arg: &String| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg.clone(),
        false => format!("'{}'", arg.replace('\'', "'\\''")),
    };
    args.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
