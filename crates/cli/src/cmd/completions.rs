//! `tapdeck completions`: completion scripts for shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::ending::{Ending, print_bytes};
use crate::failure::Result;

/// Print completions for a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck completions bash > ~/.local/share/bash-completion/completions/tapdeck
  tapdeck completions zsh > ~/.zfunc/_tapdeck       with ~/.zfunc in fpath
  tapdeck completions fish > ~/.config/fish/completions/tapdeck.fish")]
pub(crate) struct CompletionsArgs {
    /// For which shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tapdeck", &mut script);
    print_bytes(&script);
    Ok(Ending::Done)
}
