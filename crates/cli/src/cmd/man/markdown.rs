//! The reference of all commands as Markdown, grouped by what they are for.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::groups::{GROUPS, about};

/// Returns the reference of all subcommands. The command must have been built.
pub(super) fn reference(all: &Command) -> String {
    let mut page = String::new();
    for group in GROUPS {
        let commands = group.commands(all);
        if commands.is_empty() {
            continue;
        }
        add(&mut page, format_args!("## {}\n\n| command | does |\n| --- | --- |\n", group.title));
        for command in &commands {
            let name = command.get_name();
            add(&mut page, format_args!("| [`{name}`](#tapdeck-{name}) | {} |\n", about(command)));
        }
        page.push('\n');
        for command in commands {
            describe(command, &mut page);
        }
    }
    page
}

/// Describes a command and those below it.
fn describe(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    add(page, format_args!("### {name}\n\n{}.\n\n", about(command)));
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    add(page, format_args!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage: ")));
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        add(page, format_args!("Also called `{}`.\n\n", aliases.join("`, `")));
    }
    let rows: Vec<String> = command.get_arguments().filter_map(row).collect();
    if !rows.is_empty() {
        add(page, format_args!("| option | does |\n| --- | --- |\n{}\n", rows.concat()));
    }
    let notes = command.get_after_help().map(|notes| notes.to_string());
    let notes = notes.filter(|notes| !notes.trim().is_empty());
    if let Some(notes) = notes {
        add(page, format_args!("```text\n{}\n```\n\n", notes.trim_end()));
    }
    // Below `help` all commands stand once more.
    if command.get_name() == "help" {
        return;
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        describe(inner, page);
    }
}

/// A row of the table of options. `--help` is left out: every command has it.
fn row(arg: &Arg) -> Option<String> {
    if arg.is_hide_set() || arg.get_id() == "help" {
        return None;
    }
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    let takes = arg.get_action().takes_values() && !values.is_empty();
    let value = if takes { values.join(" ") } else { String::new() };
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
    let spelt: Vec<String> = short.into_iter().chain(long).chain(aliases).collect();
    let spelling = match (spelt.is_empty(), takes) {
        (true, _) => value,
        (false, true) if arg.is_require_equals_set() => format!("{}[={value}]", spelt.join(", ")),
        (false, true) => format!("{} {value}", spelt.join(", ")),
        (false, false) => spelt.join(", "),
    };
    let help = arg.get_help().map(|help| help.to_string()).unwrap_or_default();
    let mut help = help.replace('\n', " ");
    let possible: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() {
        add(&mut help, format_args!("; one of {}", possible.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !arg.is_hide_default_value_set() && defaults.iter().any(|value| !value.is_empty()) {
        add(&mut help, format_args!("; default `{}`", defaults.join(",")));
    }
    Some(format!("| `{}` | {} |\n", spelling.replace('|', "\\|"), help.replace('|', "\\|")))
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn commands_and_their_options_are_described() {
        let mut all = crate::Cli::command();
        all.build();
        let page = reference(&all);
        assert!(page.contains("### tapdeck serve token add"), "{page}");
        assert!(page.contains("| `-I, --input` |"), "{page}");
    }
}
