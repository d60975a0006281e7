//! Help: `-h` is short, `--help` complete, and both fit the terminal.

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};

use crate::Cli;
use crate::ending::{Ending, Kind};
use crate::groups::{GROUPS, about};
use crate::human;

pub(crate) mod notes;

use notes::Part;

/// Lines are not wider than this, however wide the terminal is.
const WIDEST: usize = 100;

/// What `tapdeck` prints without arguments.
const WELCOME: &str = "\
Tapdeck runs a program on a terminal and lets you record, replay, share and test the session.

Examples:
  tapdeck tour                   learn the main commands in two minutes
  tapdeck rec demo.ahr -- bash   record a shell; exit ends the recording
  tapdeck play demo.ahr          watch it; ? shows the keys

tapdeck --help lists all commands.";

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

/// Prints the help, the version or the complaint that the parser's error is.
pub(crate) fn print(e: &clap::Error) -> Ending {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    let help = matches!(e.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand);
    if help && std::env::args_os().len() <= 1 {
        let text = notes::render(&notes::parse(WELCOME), width(), |_| "Three things to try:".to_owned());
        // With standard error gone as well, there is no place left for the text.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
        // A script whose arguments came out empty asked for nothing, so this is an error, as it is
        // for git and for every subcommand that lacks an argument.
        return Ending::Failed(Kind::Usage);
    }
    // The layout is made only here: no other run of the command pays for it.
    let laid_out = help.then(|| command(width()).try_get_matches_from(std::env::args_os()).err()).flatten();
    let e = laid_out.as_ref().unwrap_or(e);
    // With standard error gone as well, there is no place left for the message.
    let _ = e.print();
    if e.use_stderr() { Ending::Failed(Kind::Usage) } else { Ending::Done }
}

/// The columns to lay help out for: the terminal's, those that `COLUMNS` names, or the most that
/// are good to read.
fn width() -> usize {
    let terminal = tapdeck_host::terminal_size().map(|size| usize::from(size.cols));
    let named = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.filter(|cols| *cols > 0).or_else(named).unwrap_or(WIDEST).clamp(20, WIDEST)
}

/// Returns the definition of the command with its help laid out for a width.
pub(crate) fn command(width: usize) -> Command {
    let mut all = with_notes(Cli::command(), width).help_template(TEMPLATE);
    let (short, long) = groups(&all, width);
    all = all.before_help(short).before_long_help(long);
    all.build();
    with_usage(all, width)
}

/// Lays out the notes of a command and of those below it: two examples for `-h`, all for `--help`.
fn with_notes(command: Command, width: usize) -> Command {
    let title = title(&command);
    let parts = command.get_after_help().map(|text| notes::parse(&text.to_string())).unwrap_or_default();
    let styled = |parts: &[Part]| StyledStr::from(notes::render(parts, width, &title));
    let (short, long) = (styled(&notes::shortened(&parts)), styled(&parts));
    let command = if parts.is_empty() { command } else { command.after_help(short).after_long_help(long) };
    command.term_width(width).mut_subcommands(|inner| with_notes(inner, width))
}

/// Breaks the usage lines of a command and of those below it. The command must have been built.
fn with_usage(mut command: Command, width: usize) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage);
    let lines: Vec<&str> = usage.lines().map(str::trim).collect();
    let room = width.saturating_sub("Usage: ".len());
    if lines.iter().any(|line| line.chars().count() > room) {
        let broken = |line: &&str| human::wrap(line, room.saturating_sub(4)).join("\n           ");
        let usage: Vec<String> = lines.iter().map(broken).collect();
        command = command.override_usage(usage.join("\n       "));
    }
    command.mut_subcommands(|inner| with_usage(inner, width))
}

/// The commands by group: their names for `-h`, what each does for `--help`.
fn groups(all: &Command, width: usize) -> (StyledStr, StyledStr) {
    let title = title(all);
    let mut built = all.clone();
    built.build();
    let (mut names, mut long) = (Vec::new(), String::new());
    for group in GROUPS {
        let commands = group.commands(&built);
        let row = |command: &&Command| {
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let also =
                if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
            (command.get_name().to_owned(), about(command) + &also)
        };
        let listed: Vec<&str> = commands.iter().map(|command| command.get_name()).collect();
        names.push((group.title.to_owned(), listed.join(", ")));
        long.push_str(&format!("{}\n", title(&format!("{}:", group.title))));
        notes::list(&mut long, &commands.iter().map(row).collect::<Vec<_>>(), width);
        long.push('\n');
    }
    let mut short = format!("{}\n", title("Commands:"));
    notes::list(&mut short, &names, width);
    (short.trim_end().to_owned().into(), long.trim_end().to_owned().into())
}

/// Makes a title of a line, in the style of the titles that clap writes.
fn title(command: &Command) -> impl Fn(&str) -> String + use<> {
    let style = *command.get_styles().get_header();
    move |text| format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `f` with each command and its full name.
    fn each(command: &Command, name: &str, f: &mut impl FnMut(&str, &Command)) {
        f(name, command);
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            each(inner, &format!("{name} {}", inner.get_name()), f);
        }
    }

    #[test]
    fn help_fits_the_terminal() {
        let mut faults = Vec::new();
        for width in [40, 80] {
            each(&command(width), "tapdeck", &mut |name, command| {
                let mut command = command.clone();
                let texts = [("-h", command.render_help()), ("--help", command.render_long_help())];
                for (flag, text) in texts {
                    let text = text.to_string();
                    let wide = text.lines().filter(|line| line.trim_end().chars().count() > width);
                    faults.extend(wide.map(|line| format!("{name} {flag} at {width}: {line}")));
                }
            });
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn short_help_is_short_and_long_help_complete() {
        let mut faults = Vec::new();
        each(&command(80), "tapdeck", &mut |name, command| {
            let mut command = command.clone();
            let (short, long) = (command.render_help().to_string(), command.render_long_help().to_string());
            if short.lines().count() > 45 {
                faults.push(format!("{name} -h has {} lines", short.lines().count()));
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(option) = arg.get_long() else { continue };
                if !long.contains(&format!("--{option}")) {
                    faults.push(format!("{name} --help has no --{option}"));
                }
            }
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let root = command(80).render_long_help().to_string();
        assert!(root.contains("Live sessions:\n  run") && root.contains("Tests:\n  test"), "{root}");
    }
}
