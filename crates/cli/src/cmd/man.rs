//! `tapdeck man`: the manual pages.

use std::io;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use roff::{Roff, bold, roman};

mod markdown;

use crate::Cli;
use crate::ending::{Ending, print_bytes};
use crate::failure::{Failure, Result};
use crate::groups::{GROUPS, about};
use crate::help::notes::{self, Part};

/// Print a man page, or write all of them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck man rec | man -l -
  tapdeck man cassette record | man -l -
  tapdeck man --dir ~/.local/share/man/man1    from then on: man tapdeck-rec")]
pub(crate) struct ManArgs {
    /// Write all man pages to this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    dir: Option<PathBuf>,
    /// Print the command reference as Markdown
    #[arg(long, conflicts_with_all = ["command", "dir"])]
    markdown: bool,
    /// The command [default: tapdeck itself]
    command: Vec<String>,
}

pub(crate) fn run(args: &ManArgs) -> Result {
    let mut all = Cli::command().long_version(Resettable::Reset);
    all.build();
    if let Some(dir) = &args.dir {
        let written = std::fs::create_dir_all(dir).and_then(|()| write_all(&all, dir));
        written.map_err(|e| Failure::io(format!("cannot write {}: {e}", dir.display())))?;
        return Ok(Ending::Done);
    }
    if args.markdown {
        print_bytes(markdown::reference(&all).as_bytes());
        return Ok(Ending::Done);
    }
    let mut command = &all;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            let name = args.command.join(" ");
            return Err(Failure::usage(format!("there is no command {name:?}: see tapdeck --help")));
        };
        command = found;
    }
    print_bytes(&page(command)?);
    Ok(Ending::Done)
}

/// Writes the page of a command, and those of the commands below it.
fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    std::fs::write(dir.join(Man::new(command.clone()).get_filename()), page(command)?)?;
    // Below `help` all commands stand once more.
    if command.get_name() == "help" {
        return Ok(());
    }
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let inner = inner.filter(|inner| command.get_name() == "tapdeck" || inner.get_name() != "help");
    inner.into_iter().try_for_each(|inner| write_all(inner, dir))
}

/// Returns the page of a command, which must have been built.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_name() == "tapdeck" {
        commands_section(command).to_writer(&mut page)?;
    } else if command.get_name() != "help" && command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    notes_sections(command).to_writer(&mut page)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// The commands by group.
fn commands_section(all: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for group in GROUPS {
        roff.control("SS", [group.title]);
        for command in group.commands(all) {
            roff.control("TP", []);
            roff.text([bold(format!("tapdeck-{}", command.get_name())), roman("(1)")]);
            roff.text([roman(about(command))]);
        }
    }
    roff
}

/// What stands below the options in the command's help.
fn notes_sections(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let text = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
    let parts = notes::parse(&text);
    let (examples, other): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| part.is_examples());
    for (title, parts) in [("NOTES", other), ("EXAMPLES", examples)] {
        if !parts.is_empty() {
            roff.control("SH", [title]);
        }
        for part in parts {
            roff.control("PP", []);
            match part {
                Part::Paragraph(text) => _ = roff.text([roman(text.as_str())]),
                Part::List { heading, rows } => {
                    if !part.is_examples() {
                        roff.text([roman(heading.as_str())]);
                    }
                    for (left, right) in rows {
                        roff.control("TP", []);
                        roff.text([bold(left.as_str())]);
                        roff.text([roman(right.as_str())]);
                    }
                }
            }
        }
    }
    roff
}
