//! `run -d` and `rec -d`: a host process of its own, in a session of its own, that outlives the terminal.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::setsid;
use tapdeck_core::WinSize;
use tapdeck_host::Launch;

use crate::ending::{Ending, code, print, say};

/// Starts a detached host and prints its session's id. Fails as the program would have failed.
pub(crate) fn detach(size: Option<WinSize>) -> Ending {
    match start_host(size) {
        Ok(id) => {
            print(format_args!("{id}\n"));
            Ending::Code(0)
        }
        Err(ending) => ending,
    }
}

/// Starts this very command again as a detached host, and waits until its session runs; returns the id.
pub(crate) fn start_host(size: Option<WinSize>) -> Result<String, Ending> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Behind the subcommand, so that the program's own arguments stay as they are.
    let mut ours = vec![OsString::from("--detached-host")];
    if let Some(size) = size {
        ours.push(format!("--window-size={}x{}", size.cols, size.rows).into());
    }
    args.splice(1..1, ours);
    start(args)
}

/// Starts a detached host with these arguments, and waits until its session runs; returns the id.
pub(crate) fn start(args: Vec<OsString>) -> Result<String, Ending> {
    let failed = |what: String| {
        say(what);
        Err(Ending::Code(code::IO))
    };
    #[expect(clippy::disallowed_methods, reason = "it starts this program itself, not a session's")]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tapdeck").args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut host = match command.spawn() {
        Ok(host) => host,
        Err(e) => return failed(format!("cannot start a host: {e}")),
    };
    let mut answer = String::new();
    let read = host.stdout.take().map(|mut out| out.read_to_string(&mut answer));
    if let Some(Err(e)) = read {
        return failed(format!("the host does not answer: {e}"));
    }
    match answer.trim() {
        "" => {
            // It has said why on standard error, which it still shared.
            let status = host.wait().ok().and_then(|s| s.code());
            Err(Ending::Code(status.unwrap_or(code::INTERNAL)))
        }
        id => Ok(id.to_owned()),
    }
}

/// For the host: leaves the terminal's session, before anything is started. The program has no terminal but its own, and
/// goes when its host does, even by `kill -9`.
pub(crate) fn prepare(launch: &mut Launch) {
    // A process that leads a group already has been started by something that did this for it.
    let _ = setsid();
    launch.headless = true;
    launch.command.die_with_host = true;
}

/// For the host: the session runs. Says so, and lets go of everything that belongs to the terminal.
pub(crate) fn announce(id: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{id}");
    let _ = out.flush();
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
