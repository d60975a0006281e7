//! `tapdeck man`: its manual pages.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::Cli;
use crate::ending::{Ending, code, output_failed, say};

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
    /// The command; the page of tapdeck itself when left out
    command: Vec<String>,
}

pub(crate) fn run(args: &ManArgs) -> Ending {
    let mut all = Cli::command();
    all.build();
    if let Some(dir) = &args.dir {
        let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(all, dir));
        return match written {
            Ok(()) => Ending::Code(0),
            Err(e) => {
                say(format_args!("cannot write {}: {e}", dir.display()));
                Ending::Code(code::IO)
            }
        };
    }
    let mut command = &all;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            say(format_args!("there is no command {:?}: see tapdeck --help", args.command.join(" ")));
            return Ending::Code(code::USAGE);
        };
        command = found;
    }
    let mut page = Vec::new();
    let rendered = Man::new(command.clone()).render(&mut page);
    match rendered.and_then(|()| std::io::stdout().write_all(&page)) {
        Ok(()) => Ending::Code(0),
        Err(e) => output_failed(&e),
    }
}
