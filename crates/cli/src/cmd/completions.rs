//! `tapdeck completions`: what a shell needs to complete its command lines.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::ending::{Ending, output_failed};

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

pub(crate) fn run(args: &CompletionsArgs) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tapdeck", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => Ending::Code(0),
        Err(e) => output_failed(&e),
    }
}
