//! `run -d` and `rec -d`: a host process of its own, in a session of its own, that outlives the terminal.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::setsid;
use rustix::termios::isatty;
use tapdeck_core::WinSize;
use tapdeck_host::Launch;

use crate::cmd::DoorArgs;
use crate::ending::{Ending, code, print, say};

/// Starts a detached host and prints its session's id. Fails as the program would have failed.
pub(crate) fn detach(size: Option<WinSize>) -> Ending {
    match start_host(size) {
        Ok(id) => {
            print(format_args!("{id}\n"));
            warn_of_input();
            Ending::Code(0)
        }
        Err(ending) => ending,
    }
}

/// Says that what somebody has put on standard input goes nowhere: a detached program is on its own.
pub(crate) fn warn_of_input() {
    let stdin = rustix::stdio::stdin();
    if !isatty(stdin) && rustix::io::ioctl_fionread(stdin).is_ok_and(|n| n > 0) {
        say(
            "what is on standard input is not passed on to a detached program: give it as a file or an argument",
        );
    }
}

/// Starts this very command again as a detached host, and waits until its session runs; returns the id.
pub(crate) fn start_host(size: Option<WinSize>) -> Result<String, Ending> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Behind the subcommand, so that the program's own arguments stay as they are.
    let mut ours = vec![OsString::from("--detached-host")];
    // A terminal may not know its size: those of serial lines and of containers often do not.
    if let Some(size) = size.filter(|size| size.cols > 0 && size.rows > 0) {
        ours.push(format!("--window-size={}x{}", size.cols, size.rows).into());
    }
    args.splice(1..1, ours);
    start(args)
}

/// Starts a detached host with these arguments, and waits until its session runs; returns the id.
pub(crate) fn start(args: Vec<OsString>) -> Result<String, Ending> {
    match try_start(args, Stdio::inherit()) {
        Ok(Started { id: Some(id), .. }) => Ok(id),
        // It has said why on standard error, which it still shared.
        Ok(started) => Err(Ending::Code(started.code.unwrap_or(code::INTERNAL))),
        Err(what) => {
            say(what);
            Err(Ending::Code(code::IO))
        }
    }
}

/// The same for somebody who does not see our standard error: why there is no session is returned.
pub(crate) fn start_quietly(args: Vec<OsString>) -> Result<String, String> {
    let Started { id, said, mut host, .. } = try_start(args, Stdio::piped())?;
    if id.is_some() {
        // Somebody has to hear of its end one day, or it stays a zombie for as long as we live.
        let reaper = std::thread::Builder::new().name("tapdeck-reaper".into()).stack_size(64 * 1024);
        let _ = reaper.spawn(move || host.wait());
    }
    id.ok_or_else(|| {
        let said = said.lines().last().unwrap_or_default();
        let said = said.strip_prefix("tapdeck: ").unwrap_or(said);
        if said.is_empty() { "the session could not be started".to_owned() } else { said.to_owned() }
    })
}

/// What became of a host.
struct Started {
    id: Option<String>,
    /// What it said on standard error, if that was kept, and how it ended, if it did.
    said: String,
    code: Option<i32>,
    host: Child,
}

fn try_start(args: Vec<OsString>, stderr: Stdio) -> Result<Started, String> {
    #[expect(clippy::disallowed_methods, reason = "it starts this program itself, not a session's")]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tapdeck").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut host = command.spawn().map_err(|e| format!("cannot start a host: {e}"))?;
    let mut answer = String::new();
    let mut said = String::new();
    // A host that runs lets go of both; one that fails says a line or two, which a pipe holds.
    let out = host.stdout.take().map(|mut out| out.read_to_string(&mut answer));
    let err = host.stderr.take().map(|mut err| err.read_to_string(&mut said));
    for read in [out, err].into_iter().flatten() {
        read.map_err(|e| format!("the host does not answer: {e}"))?;
    }
    let id = Some(answer.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
    let code = if id.is_none() { host.wait().ok().and_then(|s| s.code()) } else { None };
    Ok(Started { id, said, code, host })
}

/// For the host: leaves the terminal's session, before anything is started. The program has no terminal but its own, and
/// goes when its host does, even by `kill -9`, and so do its jobs.
pub(crate) fn prepare(launch: &mut Launch, doors: &DoorArgs) {
    // A process that leads a group already has been started by something that did this for it.
    let _ = setsid();
    launch.headless = true;
    // On a terminal somebody can type later. On pipes nobody could ever say that it was all.
    launch.no_input = launch.no_pty && !doors.has_bus();
    launch.command.die_with_host = true;
    launch.command.jobs_die_too = true;
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
