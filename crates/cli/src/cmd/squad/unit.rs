//! `tapdeck squad unit`: a service that brings a squad up at login.

use clap::Args;

use super::locate::{self, Which};
use crate::ending::{Ending, print};
use crate::failure::{Failure, Result};

/// Print a systemd user unit that brings a squad up at login.
#[derive(Args)]
#[command(after_help = "\
Example:
  tapdeck squad unit > ~/.config/systemd/user/squad.service
  systemctl --user enable --now squad.service
  loginctl enable-linger                 also without a login, after a reboot")]
pub(crate) struct UnitArgs {
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(args: &UnitArgs) -> Result {
    let found = args.which.find()?;
    let squad = locate::read(&found.file)?;
    let program =
        std::env::current_exe().map_err(|e| Failure::io(format!("cannot find this program: {e}")))?;
    let text = |path: &std::path::Path| {
        let text = path.to_str().ok_or_else(|| Failure::usage(format!("{} is not UTF-8", path.display())))?;
        Ok::<String, Failure>(
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$"),
        )
    };
    let (program, file, folder) = (text(&program)?, text(&squad.path)?, text(squad.folder())?);
    // KillMode: a restart of the service must not end the agents, which are not its children.
    print(format_args!(
        "[Unit]\nDescription=Agents of the squad {name}\n\n\
         [Service]\nExecStart=\"{program}\" squad up \"{file}\"\nWorkingDirectory={folder}\n\
         KillMode=process\nRestart=on-failure\nRestartSec=5\n\n\
         [Install]\nWantedBy=default.target\n",
        name = squad.name
    ));
    Ok(Ending::Done)
}
