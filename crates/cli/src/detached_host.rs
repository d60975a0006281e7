//! `run -d` and `rec -d`: a host process in a session of its own, which outlives the terminal.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::setsid;
use rustix::termios::isatty;
use tapdeck_core::WinSize;
use tapdeck_host::Launch;
use tapdeck_host::backend::Descriptors;

use crate::door_args::DoorArgs;
use crate::ending::{Ending, Kind, print, say};
use crate::failure::{Failure, Result};

/// Starts a detached host and prints its session's id. Fails as the program would have failed.
pub(crate) fn detach(size: Option<WinSize>) -> Result {
    print(format_args!("{}\n", start_host(size)?));
    warn_of_input();
    Ok(Ending::Done)
}

/// Warns about data on standard input, which a detached program does not get.
pub(crate) fn warn_of_input() {
    let stdin = rustix::stdio::stdin();
    if !isatty(stdin) && rustix::io::ioctl_fionread(stdin).is_ok_and(|n| n > 0) {
        say(
            "what is on standard input is not passed on to a detached program: give it as a file or an argument",
        );
    }
}

/// Starts this command again as a detached host, waits until its session runs, and returns the id.
pub(crate) fn start_host(size: Option<WinSize>) -> Result<String> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Behind the subcommand, so that the program's own arguments stay as they are.
    let mut ours = vec![OsString::from("--detached-host")];
    // A terminal may not know its size: those of serial lines and of containers often do not.
    if let Some(size) = size.filter(|size| size.cols > 0 && size.rows > 0) {
        ours.push(format!("--size={}x{}", size.cols, size.rows).into());
    }
    args.splice(1..1, ours);
    start(args)
}

/// Starts a detached host with these arguments, waits until its session runs, and returns the id.
pub(crate) fn start(args: Vec<OsString>) -> Result<String> {
    match try_start(args, Variables::new(), Stdio::inherit())? {
        Started { id: Some(id), .. } => Ok(id),
        // The host shares standard error and has printed why.
        Started { code, .. } => Err(Failure::reported(code.map_or(Kind::Internal, Kind::Relayed))),
    }
}

/// The arguments of a detached host for a program; without one it runs the user's shell.
#[cfg(any(feature = "tui", feature = "web"))]
pub(crate) fn host_args(command: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
    let ours = ["run", "--detached-host", "--"].map(OsString::from);
    ours.into_iter().chain(command.into_iter().map(Into::into)).collect()
}

/// Environment variables for a program, beside those of this process.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Starts a detached host for a user who does not see standard error. The failure has the message
/// that the host printed there.
pub(crate) fn start_quietly(args: Vec<OsString>, env: Variables) -> Result<String> {
    // The files that this process was started with are not meant for its sessions.
    Descriptors::inherited().close();
    let Started { id, said, mut host, .. } = try_start(args, env, Stdio::piped())?;
    if id.is_some() {
        let reaper = std::thread::Builder::new().name("tapdeck-reaper".into()).stack_size(64 * 1024);
        // Reaps the host when it ends. Without the thread it stays a zombie while this process
        // lives, and does no other harm.
        let _ = reaper.spawn(move || host.wait());
    }
    id.ok_or_else(|| {
        let said = said.lines().last().unwrap_or_default();
        let said = said.strip_prefix("tapdeck: ").unwrap_or(said);
        Failure::io(if said.is_empty() { "the session could not be started" } else { said })
    })
}

/// Starts a program as a detached session for a client, which is shown the message of a failure.
#[cfg(any(feature = "mcp", feature = "web"))]
pub(crate) fn start_new(new: &tapdeck_serve::NewSession) -> Result<String, String> {
    let mut args = vec![OsString::from("run"), "--detached-host".into()];
    if let Some(name) = &new.name {
        crate::parse::session_name(name)?;
        args.extend(["--name".into(), name.into()]);
    }
    if let Some(folder) = &new.folder {
        if !folder.is_dir() {
            return Err(format!("{}: no such folder", folder.display()));
        }
        args.extend(["--cwd".into(), folder.into()]);
    }
    args.push("--".into());
    args.extend(new.command.iter().map(OsString::from));
    start_quietly(args, Vec::new()).map_err(|failure| failure.message().to_owned())
}

/// A host that was started.
struct Started {
    /// The id of its session, if that runs.
    id: Option<String>,
    /// What the host printed on standard error, if that is a pipe.
    said: String,
    /// The exit code of a host without a session.
    code: Option<i32>,
    host: Child,
}

fn try_start(args: Vec<OsString>, env: Variables, stderr: Stdio) -> Result<Started> {
    #[expect(clippy::disallowed_methods, reason = "it starts this program itself, not a session's")]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tapdeck").args(args).envs(env).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut host = command.spawn().map_err(|e| Failure::io(format!("cannot start a host: {e}")))?;
    let mut answer = String::new();
    let mut said = String::new();
    // A host that runs lets go of both; one that fails says a line or two, which a pipe holds.
    let out = host.stdout.take().map(|mut out| out.read_to_string(&mut answer));
    let err = host.stderr.take().map(|mut err| err.read_to_string(&mut said));
    for read in [out, err].into_iter().flatten() {
        read.map_err(|e| Failure::io(format!("the host does not answer: {e}")))?;
    }
    let id = Some(answer.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
    let code = if id.is_none() { host.wait().ok().and_then(|s| s.code()) } else { None };
    Ok(Started { id, said, code, host })
}

/// Prepares the host: leaves the terminal's session before anything is started. The program and its
/// jobs end with their host, even if that is killed.
pub(crate) fn prepare(launch: &mut Launch, doors: &DoorArgs) {
    // Fails for the leader of a process group, which its parent has put into a session already.
    let _ = setsid();
    // The dashboard, the page and a squad's supervisor block signals to read them. The program must
    // not inherit that. It cannot fail with these arguments.
    let _ = tapdeck_host::unblock_signals();
    launch.headless = true;
    if !launch.place.is_local() {
        // The caller's open files cannot reach the program, and a service must not keep them open.
        launch.command.descriptors.close();
    }
    // On a terminal a client can type later. On pipes no client could ever end the input.
    launch.no_input = launch.no_pty && !doors.has_bus();
    launch.command.die_with_host = true;
    launch.command.jobs_die_too = true;
}

/// Announces that the host's session runs, and lets go of everything that belongs to the terminal.
pub(crate) fn announce(id: &str) {
    let mut out = std::io::stdout();
    // The session goes on even if the command that started it is gone.
    let _ = writeln!(out, "{id}");
    let _ = out.flush();
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        // A descriptor that cannot be replaced stays open; the session goes on.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
