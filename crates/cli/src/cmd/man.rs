//! `tapdeck man`: the manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man;

mod markdown;

use crate::Cli;
use crate::ending::{Ending, print_bytes};
use crate::failure::{Failure, Result};

/// Print a manual page, or write all of them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck man rec | man -l -
  tapdeck man cassette record | man -l -
  tapdeck man --dir ~/.local/share/man/man1    from then on: man tapdeck-rec")]
pub(crate) struct ManArgs {
    /// Write all pages into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    dir: Option<PathBuf>,
    /// Print the reference of all commands as Markdown
    #[arg(long, conflicts_with_all = ["command", "dir"])]
    markdown: bool,
    /// The command; the page of tapdeck itself when left out
    command: Vec<String>,
}

pub(crate) fn run(args: &ManArgs) -> Result {
    let mut all = Cli::command();
    all.build();
    if let Some(dir) = &args.dir {
        let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(all, dir));
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
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    print_bytes(&page);
    Ok(Ending::Done)
}
