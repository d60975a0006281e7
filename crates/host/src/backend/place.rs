//! Places: where a session's program is to run, as a person writes it, and the one way from there
//! to a backend.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Backend, CommandSpec, LocalPty, Pipes, SpawnError, TerminalSetup};
use crate::sys::InheritedSignals;

/// Where a program runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Place {
    /// On this machine.
    #[default]
    Local,
    /// In a container.
    Docker(DockerPlace),
    /// On another machine.
    Ssh(SshPlace),
}

/// A container, new or running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerPlace {
    /// Which.
    pub container: Container,
    /// The user to be within it.
    pub user: Option<String>,
    /// Folders of this machine to be seen within a new one: `FOLDER:WITHIN[:ro]`.
    pub mounts: Vec<String>,
}

/// Which container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// A new one of this image, gone with the session.
    New(String),
    /// One that runs already, by name or id.
    Running(String),
}

/// A machine behind ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshPlace {
    /// The user there, if not as in the configuration or here.
    pub user: Option<String>,
    /// The machine, or its alias in the configuration.
    pub host: String,
    /// Its port, if not as in the configuration or 22.
    pub port: Option<u16>,
    /// Keys to be known by, instead of those of the configuration.
    pub identities: Vec<PathBuf>,
    /// Believe a machine that is not known yet, and remember it. One whose key has changed is never
    /// believed.
    pub accept_new: bool,
}

/// Text that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(String);

/// Informs and asks the user while a session's place is being reached; the user may cancel by a
/// signal.
pub trait Prompter {
    /// Shows a line of progress.
    fn note(&mut self, text: &str);

    /// Asks; `secret` answers are not shown as they are typed. Returns `None` without a user.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    fn ask(&mut self, question: &str, secret: bool) -> io::Result<Option<String>>;

    /// Asks whether a new host is trusted. Returns `None` without a user.
    ///
    /// # Errors
    /// As [`Prompter::ask`].
    fn is_trusted(&mut self, host: &NewHost) -> io::Result<Option<bool>> {
        Ok(self.ask(&host.question(), false)?.map(|answer| host.is_confirmed_by(&answer)))
    }

    /// The signal by which the user cancelled.
    fn cancelled(&mut self) -> Option<i32>;
}

/// A host that shows its key for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHost {
    /// The host's name, as the user gave it.
    pub name: String,
    /// The fingerprint of its key.
    pub fingerprint: String,
}

impl NewHost {
    /// The question to a user who can compare the fingerprint.
    pub(crate) fn question(&self) -> String {
        let Self { name, fingerprint } = self;
        format!("{name} is new to you; its key is {fingerprint}.\nTrust and remember it (yes/no)? ")
    }

    /// Whether the answer is yes, or the fingerprint itself.
    pub(crate) fn is_confirmed_by(&self, answer: &str) -> bool {
        let answer = answer.trim();
        answer.eq_ignore_ascii_case("yes") || answer == self.fingerprint
    }
}

/// A prompter without a user: drops every note and answers no question.
#[derive(Debug, Clone, Copy, Default)]
pub struct NonInteractive;

impl Prompter for NonInteractive {
    fn note(&mut self, _text: &str) {}

    fn ask(&mut self, _question: &str, _secret: bool) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn cancelled(&mut self) -> Option<i32> {
        None
    }
}

impl Place {
    /// Whether it is this machine itself.
    pub fn is_local(&self) -> bool {
        *self == Place::Local
    }

    /// What runs there when no command is given, for those who list sessions.
    pub(crate) fn shown_command(&self, command: &CommandSpec) -> Vec<String> {
        if command.argv.is_empty() {
            return vec![self.to_string()];
        }
        command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    /// Starts a program there, on a terminal or, without one, on pipes. An empty command is the
    /// place's own: a login shell, or what the image says.
    ///
    /// # Errors
    /// When the place cannot be reached, or the program cannot be started there. Nothing is left
    /// running.
    pub fn start(
        &self,
        command: &CommandSpec,
        terminal: Option<&TerminalSetup>,
        signals: InheritedSignals,
        prompter: &mut dyn Prompter,
    ) -> Result<Box<dyn Backend>, SpawnError> {
        match self {
            Place::Local => Ok(match terminal {
                Some(setup) => Box::new(LocalPty::spawn(command, signals, setup)?),
                None => Box::new(Pipes::spawn(command, signals)?),
            }),
            #[cfg(feature = "docker")]
            Place::Docker(place) => {
                Ok(Box::new(super::docker::Docker::start(place, command, terminal, prompter)?))
            }
            #[cfg(feature = "ssh")]
            Place::Ssh(place) => Ok(Box::new(super::ssh::Ssh::start(place, command, terminal, prompter)?)),
            #[cfg(not(all(feature = "docker", feature = "ssh")))]
            other => {
                // Only places of other features ask.
                let _ = prompter;
                Err(SpawnError::unreachable(other, "this program was built without it"))
            }
        }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let fail = |what: &str| Err(PlaceError(format!("{what}: write {FORMS}")));
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return fail("a place has no spaces");
        }
        let Some((kind, rest)) = text.split_once(':').or((text == "local").then_some((text, ""))) else {
            return fail("no such place");
        };
        match kind {
            "local" if rest.is_empty() => Ok(Place::Local),
            "docker" => {
                let container = match rest.strip_prefix("exec:") {
                    Some(name) => Container::Running(name.to_owned()),
                    None => Container::New(rest.to_owned()),
                };
                let (Container::New(name) | Container::Running(name)) = &container;
                // A name goes into the path of a request: what is no name is no part of one.
                let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
                if name.is_empty() || !name.chars().all(plain) || name.starts_with(['-', '/']) {
                    return fail("no image and no container has this name");
                }
                Ok(Place::Docker(DockerPlace { container, user: None, mounts: Vec::new() }))
            }
            "ssh" => {
                let (user, target) = match rest.strip_prefix("//").unwrap_or(rest).rsplit_once('@') {
                    Some((user, target)) => (Some(user.to_owned()), target),
                    None => (None, rest.strip_prefix("//").unwrap_or(rest)),
                };
                let (host, port) = match target.strip_prefix('[').and_then(|t| t.split_once(']')) {
                    Some((host, "")) => (host, None),
                    Some((host, port)) => (host, port.strip_prefix(':').or(Some(port))),
                    // An address of many colons without brackets has no port.
                    None => match target.split_once(':') {
                        Some((host, port)) if !port.contains(':') => (host, Some(port)),
                        _ => (target, None),
                    },
                };
                if host.is_empty() || host.starts_with('-') || user.as_deref() == Some("") {
                    return fail("a machine has a name");
                }
                let port = match port.map(str::parse::<u16>).transpose() {
                    Ok(port) if port != Some(0) => port,
                    _ => return fail("a port is a number from 1 to 65535"),
                };
                let (host, identities) = (host.to_owned(), Vec::new());
                Ok(Place::Ssh(SshPlace { user, host, port, identities, accept_new: false }))
            }
            _ => fail("no such place"),
        }
    }
}

const FORMS: &str = "docker:IMAGE, docker:exec:CONTAINER or ssh:[USER@]HOST[:PORT]";

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Local => f.write_str("local"),
            Place::Docker(DockerPlace { container: Container::New(image), .. }) => {
                write!(f, "docker:{image}")
            }
            Place::Docker(DockerPlace { container: Container::Running(name), .. }) => {
                write!(f, "docker:exec:{name}")
            }
            Place::Ssh(SshPlace { user, host, port, .. }) => {
                f.write_str("ssh:")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                if host.contains(':') {
                    write!(f, "[{host}]")?
                } else {
                    f.write_str(host)?
                }
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        let same = [
            "local",
            "docker:debian:12",
            "docker:registry.example:5000/team/agent@sha256:0123",
            "docker:exec:web-1",
            "ssh:host",
            "ssh:ada@host:2222",
            "ssh:ada@[::1]:22",
            "ssh:[fe80::1]",
        ];
        for text in same {
            assert_eq!(text.parse::<Place>().map(|p| p.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("ssh://ada@host:22".parse::<Place>().map(|p| p.to_string()), Ok("ssh:ada@host:22".into()));
        assert_eq!("ssh:fe80::1".parse::<Place>().map(|p| p.to_string()), Ok("ssh:[fe80::1]".into()));
        let refused = [
            "",
            "docker",
            "docker:",
            "docker:exec:",
            "docker:a b",
            "docker:-v",
            "docker:x?y",
            "docker:exec:../x y",
            "ssh:",
            "ssh:@host",
            "ssh:host:0",
            "ssh:host:99999",
            "ssh:host:x",
            "ssh:-oProxyCommand=x",
            "ssh:[::1]22x",
            "podman:x",
            "local:x",
        ];
        for text in refused {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
