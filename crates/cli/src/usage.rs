//! What is wrong with a command line, and what to type instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::ending::{Ending, Report};
use crate::failure::Failure;
use crate::{Cli, help, nearest};

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
    let text = |kind| match e.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    };
    match e.kind() {
        ErrorKind::UnknownArgument => {
            let unknown = text(ContextKind::InvalidArg)?;
            let (command, name) = subcommand(args);
            if !unknown.starts_with('-') {
                let takes_command = command.get_positionals().any(clap::Arg::is_last_set);
                let typed = args.iter().position(|arg| *arg == unknown).filter(|_| takes_command);
                return Some(match typed {
                    Some(at) => format!(
                        "unexpected argument {unknown:?}: put -- before the command: tapdeck {} -- {}",
                        shown(&args[..at]),
                        shown(&args[at..])
                    ),
                    None => format!("unexpected argument {unknown:?}; see {name} --help"),
                });
            }
            Some(match text(ContextKind::SuggestedArg) {
                Some(known) => format!("unknown option {unknown}; did you mean {known}?"),
                None => format!("unknown option {unknown}; see {name} --help"),
            })
        }
        ErrorKind::InvalidSubcommand => {
            let unknown = text(ContextKind::InvalidSubcommand)?;
            let (command, name) = subcommand(args);
            let known = command.get_subcommands().flat_map(Command::get_name_and_visible_aliases);
            Some(match nearest::name(&unknown, known) {
                Some(known) => format!("unknown command {unknown:?}; did you mean {known}?"),
                None => format!("unknown command {unknown:?}; see {name} --help"),
            })
        }
        _ => None,
    }
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
