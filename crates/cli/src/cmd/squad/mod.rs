//! `tapdeck squad`: several agents that work together, as a file describes them.

mod board;
mod down;
mod init;
mod jobs;
mod locate;
mod logs;
mod member;
mod relays;
mod status;
mod supervisor;
mod unit;
mod up;
mod vote;

use clap::{Args, Subcommand};

use crate::failure::Result;

/// Run several agents together: worktrees, first prompts, relays, restarts.
#[derive(Args)]
#[command(after_help = "\
A squad is described in squad.toml. Its agents are sessions with the names SQUAD/AGENT, so that every
other command works with them: tapdeck attach review/writer, tapdeck turns review/writer.

Examples:
  tapdeck squad init review              write squad.toml: a writer and a reviewer
  tapdeck squad up                       start what does not run, and supervise it
  tapdeck squad up -d                    the same, in the background
  tapdeck squad status
  tapdeck squad board                    its sessions side by side
  tapdeck squad down                     end its sessions")]
pub(crate) struct SquadArgs {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    Up(up::UpArgs),
    Status(status::StatusArgs),
    Logs(logs::LogsArgs),
    #[cfg(feature = "tui")]
    Board(board::BoardArgs),
    Down(down::DownArgs),
    Init(init::InitArgs),
    Unit(unit::UnitArgs),
}

impl SquadArgs {
    pub(super) fn reports_json(&self) -> bool {
        matches!(&self.command, Sub::Status(args) if args.json)
    }
}

pub(crate) fn run(args: &SquadArgs) -> Result {
    match &args.command {
        Sub::Up(args) => up::run(args),
        Sub::Status(args) => status::run(args),
        Sub::Logs(args) => logs::run(args),
        #[cfg(feature = "tui")]
        Sub::Board(args) => board::run(args),
        Sub::Down(args) => down::run(args),
        Sub::Init(args) => init::run(args),
        Sub::Unit(args) => unit::run(args),
    }
}
