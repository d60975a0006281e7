//! Starts this program again to read a recording in a sandbox.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::keys::IdentityArgs;

/// Makes the command that reads a recording with this subcommand and its options.
pub(crate) fn command(
    subcommand: &'static [&'static str],
    identity: &IdentityArgs,
) -> impl Fn(&Path) -> Command + Send + Sync + 'static {
    let identity = identity.file().map(|file| [OsString::from("--identity"), file.into_os_string()]);
    move |recording| {
        #[expect(clippy::disallowed_methods, reason = "it starts this program itself, not a session's")]
        let mut command = Command::new("/proc/self/exe");
        // What else the environment holds is not for a process that may be taken over.
        let kept = ["HOME", "XDG_STATE_HOME", "TAPDECK_LOG"];
        command.env_clear().envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.arg0("tapdeck").args(subcommand).args(identity.iter().flatten()).arg("--").arg(recording);
        command
    }
}
