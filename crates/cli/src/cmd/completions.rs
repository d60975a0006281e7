//! `tapdeck completions`: completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use crate::complete;
use crate::ending::{Ending, print_bytes};
use crate::failure::Result;

/// Print shell completions.
#[derive(Args)]
#[command(after_help = "\
The completions are dynamic: the shell asks tapdeck for session names, recordings, agents, states and
formats.

Examples:
  tapdeck completions bash > ~/.local/share/bash-completion/completions/tapdeck
  tapdeck completions zsh > ~/.zfunc/_tapdeck       with ~/.zfunc in fpath
  tapdeck completions fish > ~/.config/fish/completions/tapdeck.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result {
    print_bytes(&complete::script(&args.shell.to_string())?);
    Ok(Ending::Done)
}
