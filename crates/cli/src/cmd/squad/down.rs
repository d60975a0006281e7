//! `tapdeck squad down`: ends the supervisor and the sessions of a squad.

use clap::Args;
use tapdeck::squad::{PromptState, Removal, State};

use super::locate::{Supervision, Which};
use super::member::session_name;
use crate::cmd::kill;
use crate::ending::{Ending, Kind, print, say};
use crate::failure::Result;
use crate::sessions::alive;

/// End the sessions of a squad and its supervisor.
#[derive(Args)]
#[command(after_help = "\
The recordings and the worktrees stay. The next tapdeck squad up begins anew: it sends the first prompts
again. Its recordings continue those of before.

Examples:
  tapdeck squad down
  tapdeck squad down --worktrees         also remove worktrees without work that would be lost")]
pub(crate) struct DownArgs {
    #[command(flatten)]
    which: Which,
    /// Remove worktrees without uncommitted changes and unmerged commits
    #[arg(long)]
    worktrees: bool,
}

pub(crate) fn run(args: &DownArgs) -> Result {
    let found = args.which.find()?;
    let _supervision = Supervision::take_over(&found.name)?;
    let prefix = session_name(&found.name, "");
    let listings = alive()?.1.into_iter().filter(|l| l.name.as_ref().is_some_and(|n| n.starts_with(&prefix)));
    let mut ending = Ending::Done;
    // All at once: each may take seconds to end.
    let results: Vec<_> = std::thread::scope(|scope| {
        let killers: Vec<_> = listings
            .map(|listing| {
                let name = listing.name.clone().unwrap_or_default();
                (name, scope.spawn(move || kill::kill(&listing, None)))
            })
            .collect();
        killers.into_iter().map(|(name, killer)| (name, killer.join())).collect()
    });
    for (name, result) in results {
        match result {
            Ok(Ok(())) => print(format_args!("{name}: ended\n")),
            Ok(Err(failure)) => {
                say(format_args!("{name}: {}", failure.message()));
                ending = Ending::Failed(failure.kind());
            }
            Err(_) => ending = Ending::Failed(Kind::Internal),
        }
    }
    let Some(mut state) = State::load(&found.name)? else { return Ok(ending) };
    state.supervisor = None;
    (state.relays, state.vote) = Default::default();
    for (name, saved) in &mut state.agents {
        (saved.prompt, saved.answer, saved.restarts, saved.error) = (PromptState::Waiting, None, 0, None);
        if saved.ended.is_none() && saved.session.is_some() {
            saved.ended = Some("ended by down".to_owned());
        }
        let Some(worktree) = saved.worktree.as_ref().filter(|_| args.worktrees) else { continue };
        let path = worktree.path.display();
        match worktree.remove() {
            Ok(Removal::Removed) => {
                print(format_args!("{name}: removed worktree {path}\n"));
                saved.worktree = None;
            }
            Ok(Removal::Kept(why)) => {
                say(format_args!("{name}: kept worktree {path}: {why}"));
                ending = ending.worse(Ending::Failed(Kind::Check));
            }
            Err(e) => {
                say(format_args!("{name}: kept worktree {path}: {e}"));
                ending = ending.worse(Ending::Failed(Kind::Io));
            }
        }
    }
    state.save()?;
    Ok(ending)
}
