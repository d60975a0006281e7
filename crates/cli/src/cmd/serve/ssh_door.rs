//! What clients of the ssh door get: `attach` and `ls`, and nothing else.

use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;

use tapdeck_core::Right;
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{InheritedSignals, state_folder};
use tapdeck_serve::net::Running;
use tapdeck_serve::ssh_door::{self, Denied, Request, SshDoor};

use crate::ending::{Kind, say};
use crate::failure::{Failure, Result};
use crate::sessions::find;
use crate::snapshot_door::SESSION_VAR;

/// Opens the door at an address. Returns the address with the fingerprint of its key.
pub(super) fn open(
    running: &Running,
    address: &str,
    keys: Option<&Path>,
    signals: InheritedSignals,
) -> Result<String, Failure> {
    let io = |what: &str, e: std::io::Error| Failure::io(format!("{what}: {e}"));
    let home = tapdeck_host::home_folder().unwrap_or_default();
    let keys = keys.map_or_else(|| home.join(".ssh/authorized_keys"), Path::to_owned);
    let count = ssh_door::check(&keys).map_err(|e| {
        let hint = if e.kind() == std::io::ErrorKind::NotFound {
            ": name the list with --authorized-keys"
        } else {
            ""
        };
        Failure::io(format!("{}: {e}{hint}", keys.display()))
    })?;
    if count == 0 {
        say(format_args!("{} has no key for this door: no client can come in yet", keys.display()));
    }
    let own = state_folder().join("ssh_host_ed25519_key");
    let host_key = ssh_door::host_key(&own).map_err(|e| io("the door's own key", e))?;
    let print = host_key.fingerprint(Default::default());
    let wrong = || Failure::usage(format!("invalid address ssh://{address}: use ssh://HOST:PORT"));
    let mut found = address.to_socket_addrs().map_err(|_| wrong())?;
    let listener = TcpListener::bind(found.next().ok_or_else(wrong)?);
    let listener = listener.map_err(|e| io(&format!("cannot listen at ssh://{address}"), e))?;
    let door = SshDoor::new(keys, host_key, signals, admit);
    let at = running.ssh(door, listener).map_err(|e| io(&format!("cannot listen at ssh://{address}"), e))?;
    Ok(format!("ssh://{at} {print}"))
}

/// The command for a request. A refusal has the exit code that the command would have here.
fn admit(request: &Request) -> Result<CommandSpec, Denied> {
    command(request).map_err(|failure| Denied::new(failure.message(), failure.kind().exit_code()))
}

fn command(request: &Request) -> Result<CommandSpec, Failure> {
    let words: Vec<&str> = request.command.as_deref().unwrap_or("attach").split_whitespace().collect();
    let usage = || {
        let known = "this door knows `attach [--read-only] [--takeover] [SESSION]` and `ls [--json]`";
        Failure::usage(known)
    };
    let denied = |why: &str| Err(Failure::check(why));
    let (verb, rest) = words.split_first().ok_or_else(usage)?;
    let mut argv = vec!["/proc/self/exe".to_owned(), (*verb).to_owned()];
    match *verb {
        "attach" => {
            let (flags, names): (Vec<&str>, Vec<&str>) = rest.iter().partition(|w| w.starts_with('-'));
            let known = |flag: &&str| matches!(*flag, "--read-only" | "-r" | "--takeover");
            if names.len() > 1 || !flags.iter().all(known) {
                return Err(usage());
            }
            let name = names.first().copied().unwrap_or(&request.user);
            // A key for some sessions must not reveal the names of others.
            let listing = find(Some(name)).map_err(|failure| match &request.grant.sessions {
                Some(allowed) if failure.kind() != Kind::Io => {
                    let only = allowed.join(", ");
                    let message = format!("no live session is called {name:?}: this key opens {only}");
                    failure.with_message(message)
                }
                _ => failure,
            })?;
            if let Some(allowed) = &request.grant.sessions
                && !allowed.iter().any(|a| *a == listing.id || Some(a) == listing.name.as_ref())
            {
                return denied("this key does not open that session");
            }
            let read_only = !request.grant.authority.grants(Right::Drive);
            if read_only {
                if flags.contains(&"--takeover") {
                    return denied("this key only lets you watch");
                }
                argv.push("--read-only".into());
            }
            // Keys are of several people.
            argv.push("--no-share".into());
            let flags = flags.into_iter().filter(|f| !read_only || *f == "--takeover");
            argv.extend(flags.map(str::to_owned));
            argv.push(listing.id);
        }
        "ls" if rest.iter().all(|w| *w == "--json") => {
            if request.grant.sessions.is_some() {
                return denied("this key opens only the sessions that it names");
            }
            argv.extend(rest.iter().map(|w| (*w).to_owned()));
        }
        _ => return Err(usage()),
    }
    let mut spec = CommandSpec::new(argv);
    // The server may run in a session itself, which the client must not take for this one.
    spec.env.push((SESSION_VAR.into(), None));
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_serve::ssh_door::Grant;

    #[test]
    fn nothing_but_attach_and_ls() {
        let ask = |text: &str, grant: Grant| {
            let request =
                Request { user: "nobody".into(), command: Some(text.into()), grant, terminal: true };
            command(&request)
                .map(|spec| spec.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            ask("ls --json", Grant::default()),
            Ok(["/proc/self/exe", "ls", "--json"].map(Into::into).into())
        );
        let refused =
            ["", "sh", "ls -l", "ls; sh", "attach a b", "attach --detach-keys none", "run -- sh", "scp -t x"];
        for text in refused {
            assert!(ask(text, Grant::default()).is_err(), "{text}");
        }
        let bound = Grant { sessions: Some(vec!["one".into()]), ..Grant::default() };
        assert!(ask("ls", bound).is_err());
    }
}
