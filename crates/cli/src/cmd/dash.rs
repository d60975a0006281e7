//! `tapdeck dash`: all live sessions in one terminal.

use clap::Args;
use tapdeck_cli::ui::dash::{Dash, run::run as show};
use tapdeck_cli::ui::session::Sessions;
use tapdeck_cli::ui::theme::Theme;

use crate::config::Config;
use crate::ending::Ending;
use crate::failure::Result;

/// Show all live sessions, side by side.
#[derive(Args)]
#[command(after_help = "\
Tab and the arrows choose a session, z makes it as large as the screen, Enter types to it (which
takes the stick; Ctrl-] stops and lets go), s shows whole screens in small; ? shows all keys.
Watching changes nothing: sessions keep their size, and the stick stays with its holder.

Example:
  tapdeck dash")]
pub(crate) struct DashArgs {
    /// Leave the mouse to the terminal
    #[arg(long)]
    no_mouse: bool,
}

pub(crate) fn run(args: &DashArgs) -> Result {
    let config = Config::load()?;
    // Tiles show the screen alone.
    let mut dash = Dash::new(Box::new(Sessions::new(0)), Theme::from_env());
    let signal = show(&mut dash, config.view.mouse && !args.no_mouse)?;
    Ok(signal.map_or(Ending::Done, Ending::by_signal))
}
