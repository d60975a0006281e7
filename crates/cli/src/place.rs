//! The arguments for the place where a session's program runs.

use std::path::PathBuf;

use clap::Args;
use tapdeck_host::backend::{Container, Place};

/// Where the program runs.
#[derive(Args, Clone, Default)]
pub(crate) struct PlaceArgs {
    /// Where to run: docker:IMAGE (a new container), docker:exec:CONTAINER or
    /// ssh:[USER@]HOST[:PORT]
    #[arg(long, value_name = "PLACE", hide_short_help = true)]
    on: Option<Place>,
    /// With --on, the user to run as
    #[arg(long, value_name = "USER", requires = "on", hide_short_help = true)]
    user: Option<String>,
    /// With --on docker:IMAGE, mount this folder in the container: FOLDER:WITHIN[:ro]
    #[arg(long, value_name = "FOLDER:WITHIN", requires = "on", hide_short_help = true)]
    mount: Vec<String>,
    /// With --on ssh:…, the private key file [default: keys of the SSH agent and in ~/.ssh]
    #[arg(long, value_name = "FILE", requires = "on", hide_short_help = true)]
    identity: Vec<PathBuf>,
    /// With --on ssh:…, accept the key of an unknown host and add it to known_hosts
    #[arg(long, requires = "on", hide_short_help = true)]
    accept_new: bool,
}

impl PlaceArgs {
    /// The place that these arguments ask for, if they do.
    pub(crate) fn wanted(&self) -> Result<Option<Place>, String> {
        self.on.is_some().then(|| self.place()).transpose()
    }

    /// The place that these arguments describe, or what is wrong with them.
    pub(crate) fn place(&self) -> Result<Place, String> {
        let mut place = self.on.clone().unwrap_or_default();
        let is_ssh = matches!(place, Place::Ssh(_));
        if !is_ssh && (!self.identity.is_empty() || self.accept_new) {
            return Err(format!("--identity and --accept-new are for ssh, not for {place}"));
        }
        match &mut place {
            Place::Docker(docker) => {
                if !self.mount.is_empty() && matches!(docker.container, Container::Running(_)) {
                    return Err("--mount is for a new container: a running one cannot get mounts".into());
                }
                docker.user.clone_from(&self.user);
                docker.mounts = self.mount.iter().map(|m| mount(m)).collect::<Result<_, _>>()?;
            }
            _ if !self.mount.is_empty() => return Err(format!("--mount is for docker, not for {place}")),
            Place::Ssh(ssh) => {
                if self.user.is_some() && ssh.user.is_some() {
                    return Err("the user is given twice: omit --user".into());
                }
                ssh.user = ssh.user.take().or_else(|| self.user.clone());
                ssh.identities.clone_from(&self.identity);
                ssh.accept_new = self.accept_new;
            }
            _ if self.user.is_some() => return Err(format!("--user is for other places than {place}")),
            _ => {}
        }
        Ok(place)
    }
}

/// A mount with the absolute path of its folder. A missing folder would silently become an empty
/// one within.
fn mount(text: &str) -> Result<String, String> {
    let wrong = || format!("invalid mount {text:?}: use FOLDER:WITHIN or FOLDER:WITHIN:ro");
    let (folder, rest) = text.split_once(':').ok_or_else(wrong)?;
    let within = rest.strip_suffix(":ro").or(rest.strip_suffix(":rw")).unwrap_or(rest);
    if !within.starts_with('/') || within.contains(':') {
        return Err(wrong());
    }
    let folder = std::fs::canonicalize(folder).map_err(|e| format!("{folder}: {e}"))?;
    let folder = folder.to_str().filter(|f| !f.contains(':')).ok_or_else(wrong)?;
    Ok(format!("{folder}:{rest}"))
}
