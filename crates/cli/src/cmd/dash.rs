//! `tapdeck dash`: all live sessions in one terminal.

use clap::Args;
use tapdeck_cli::ui::alerts::Alerts;
use tapdeck_cli::ui::dash::{Dash, run::run as show};
use tapdeck_cli::ui::session::Sessions;
use tapdeck_cli::ui::styles::Styles;

use crate::config::{Config, Notifications};
use crate::detached_host::{host_args, start_quietly};
use crate::ending::Ending;
use crate::failure::{Failure, Result};

/// Show all live sessions side by side.
#[derive(Args)]
#[command(after_help = "\
Tab and the arrow keys select a session, z zooms in, Enter types to the program (Ctrl-] stops), /
filters by name, command or state, c starts a session, x ends one, comma renames one, s shows an overview of
large screens; ? shows all keys. Sessions keep their size, and the stick (control) its holder.

Example:
  tapdeck dash")]
pub(crate) struct DashArgs {
    /// Show only sessions with these words in name, command or state; / changes it
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
    /// Do not use the mouse
    #[arg(long)]
    no_mouse: bool,
    /// Color theme: dark, light, high-contrast, sepia, dracula, one of your own, or `none` for the
    /// terminal's colors
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
}

pub(crate) fn run(args: &DashArgs) -> Result {
    show_filtered(args, args.filter.as_deref().unwrap_or_default())
}

/// Shows the sessions that a filter leaves.
pub(super) fn show_filtered(args: &DashArgs, filter: &str) -> Result {
    let config = Config::load()?;
    let theme = config.choose_theme(args.theme.as_deref(), &config.view.theme).map_err(Failure::usage)?;
    // Tiles show the screen alone.
    let sessions = Sessions::new(0, Box::new(start));
    let mut dash = Dash::new(Box::new(sessions), Styles::from_env(theme)).with_filter(filter);
    let signal = show(&mut dash, config.view.mouse && !args.no_mouse, &alerts(&config.notifications))?;
    Ok(signal.map_or(Ending::Done, Ending::by_signal))
}

/// The alerts that the configuration asks for.
fn alerts(settings: &Notifications) -> Alerts {
    Alerts {
        // Reading the configuration has checked both.
        states: settings.states.iter().filter_map(|name| name.parse().ok()).collect(),
        bell: settings.bell,
        desktop: settings.terminal.parse().unwrap_or_default(),
    }
}

/// Starts a program as `tapdeck run -d` does, with the size of this terminal.
fn start(command: Vec<String>) -> Result<String, String> {
    let mut args = host_args(command);
    if let Some(size) = tapdeck_host::terminal_size().filter(|size| size.cols > 0 && size.rows > 0) {
        args.insert(1, format!("--size={}x{}", size.cols, size.rows).into());
    }
    start_quietly(args, Vec::new()).map_err(|failure| failure.message().to_owned())
}
