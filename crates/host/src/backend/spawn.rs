//! Starting a program, and finding what it started in turn.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tapdeck_core::Exit;

use super::StopSignal;
use crate::process_table::by_session;
use crate::processes::Process;
use crate::sys::{ChildSetup, InheritedSignals, LastWill, kill, prepare_child, take_inherited_descriptors};

/// What to run. The environment is this process's own, byte for byte, unless changed here.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandSpec {
    /// Program and arguments; the program is looked up in PATH as a shell would.
    pub argv: Vec<OsString>,
    /// Folder to run in.
    pub cwd: Option<PathBuf>,
    /// Variables to set, or with `None` to remove.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Take the program along when the thread that starts it is gone, even by `kill -9`.
    pub die_with_host: bool,
    /// Take everything along that the program has started in its session as well, if this process
    /// is killed: a small process of its own waits for that.
    pub jobs_die_too: bool,
    /// Open files that the program gets on top of its standard ones.
    pub descriptors: Descriptors,
}

impl CommandSpec {
    /// A command in the present folder and environment.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: None,
            env: Vec::new(),
            die_with_host: false,
            jobs_die_too: false,
            descriptors: Descriptors::default(),
        }
    }

    fn program(&self) -> &OsStr {
        self.argv.first().map_or(OsStr::new(""), OsString::as_os_str)
    }
}

/// Splits a line into a program and its arguments. A line with shell syntax runs in a shell.
pub fn command_line(line: &str) -> Vec<String> {
    let plain = |c: char| c.is_alphanumeric() || " _-./:=,@%+".contains(c);
    // An assignment in front is shell syntax, too.
    let assigns = line.split_whitespace().next().is_some_and(|word| word.contains('='));
    if line.chars().all(plain) && !assigns {
        line.split_whitespace().map(str::to_owned).collect()
    } else {
        ["/bin/sh", "-c", line].map(str::to_owned).into()
    }
}

/// Open files that a program gets under the numbers that they have here. The first program that is
/// started with them gets them; this process then holds them no longer, so that a reader at the
/// other end sees the program close them.
#[derive(Debug, Clone, Default)]
pub struct Descriptors(Arc<Mutex<Vec<OwnedFd>>>);

impl Descriptors {
    /// Those above 2 that the caller of this process passed on, such as the pipe of make's job
    /// server. The second call gets none.
    pub fn inherited() -> Self {
        Self(Arc::new(Mutex::new(take_inherited_descriptors())))
    }

    /// Hands them over; there are none afterwards.
    fn take(&self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes them.
    pub fn close(&self) {
        drop(self.take());
    }
}

/// A program that could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is nothing to run.
    #[error("no command was given to run")]
    NoCommand,
    /// There is no such program.
    #[error("{program}: command not found")]
    NotFound {
        /// As it was named.
        program: String,
    },
    /// The program is there, what its first line names is not.
    #[error("{program}: its interpreter {interpreter} does not exist")]
    NoInterpreter {
        /// As it was named.
        program: String,
        /// As its first line names it.
        interpreter: String,
    },
    /// It may not be executed, or is no program.
    #[error("{program}: cannot be executed: {why}")]
    NotExecutable {
        /// As it was named.
        program: String,
        /// The system's reason.
        why: io::Error,
    },
    /// The folder to run in cannot be entered.
    #[error("cannot run in {}: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// No terminal could be had.
    #[error("no pseudo-terminal: {0}")]
    Terminal(#[source] io::Error),
    /// The place where it was to run cannot be reached, or refused.
    #[error("{place}: {why}")]
    Unreachable {
        /// As it was named.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The place where it was to run does not let the user in.
    #[error("{place}: {why}")]
    NotAdmitted {
        /// As it was named.
        place: String,
        /// What was tried.
        why: String,
    },
    /// The key of the place where it was to run is not known, and the user cannot be asked.
    #[error("{place}: {why}")]
    UnknownKey {
        /// As it was named.
        place: String,
        /// The key.
        why: String,
    },
    /// The place where it was to run gives it no terminal.
    #[error("{place}: it gives no terminal")]
    NoTerminalThere {
        /// As it was named.
        place: String,
    },
    /// The user cancelled while the place was being reached.
    #[error("called off by signal {0}")]
    CalledOff(i32),
    /// Something else that the system refused.
    #[error("{program}: could not be started: {why}")]
    System {
        /// As it was named.
        program: String,
        /// The system's reason.
        why: io::Error,
    },
}

impl SpawnError {
    /// A place that cannot be reached.
    pub(super) fn unreachable(place: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self::Unreachable { place: place.to_string(), why: why.to_string() }
    }

    /// Returns the kind, which decides the exit code of a command that cannot start a program.
    pub fn kind(&self) -> SpawnErrorKind {
        match self {
            SpawnError::Unreachable { .. }
            | SpawnError::NotAdmitted { .. }
            | SpawnError::UnknownKey { .. }
            | SpawnError::NoTerminalThere { .. } => SpawnErrorKind::Unreachable,
            SpawnError::CalledOff(signal) => SpawnErrorKind::CalledOff(*signal),
            SpawnError::NoCommand | SpawnError::NotFound { .. } | SpawnError::NoInterpreter { .. } => {
                SpawnErrorKind::NotFound
            }
            SpawnError::NotExecutable { .. } => SpawnErrorKind::NotExecutable,
            SpawnError::Folder { .. } | SpawnError::Terminal(_) | SpawnError::System { .. } => {
                SpawnErrorKind::NotStarted
            }
        }
    }
}

/// Kinds of [`SpawnError`], as far as shells tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnErrorKind {
    /// The place cannot be reached, or does not admit the user.
    Unreachable,
    /// The user cancelled, with this signal.
    CalledOff(i32),
    /// There is no such program.
    NotFound,
    /// The file is there, but cannot be executed.
    NotExecutable,
    /// The system refused something else.
    NotStarted,
}

/// The terminal that controls a program's session.
pub(super) struct Controlling<'a> {
    pub(crate) master: BorrowedFd<'a>,
    /// Whether it can stop the program: see [`super::TerminalSetup::stoppable`].
    pub(crate) stoppable: bool,
}

/// A running program in a session of its own. Dropping it kills the session, so that no way
/// out of this process, a panic included, leaves anything behind.
pub(super) struct Leader {
    /// The session's leader: the program, or its minder.
    child: Child,
    session: Pid,
    /// The program; leads a group of its own.
    program: Pid,
    minder: Option<Minder>,
    pidfd: OwnedFd,
    exit: Option<Exit>,
    /// What is left to be done for the program's session; nothing once it has ended, as its number
    /// may be another's then.
    will: Option<LastWill>,
    /// Whom [`Leader::freeze`] stopped; only they are continued, not jobs that were stopped before.
    frozen: Vec<Pid>,
}

impl Leader {
    /// Starts the program. On error nothing is left running: exec itself has been seen to work.
    pub(super) fn spawn(
        spec: &CommandSpec,
        signals: InheritedSignals,
        terminal: Option<Controlling<'_>>,
        stdio: [Stdio; 3],
    ) -> Result<Self, SpawnError> {
        if spec.argv.is_empty() {
            return Err(SpawnError::NoCommand);
        }
        #[expect(clippy::disallowed_methods, reason = "this is the backend that starts programs")]
        let mut command = Command::new(spec.program());
        let [stdin, stdout, stderr] = stdio;
        command.args(spec.argv.iter().skip(1)).stdin(stdin).stdout(stdout).stderr(stderr);
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        for (key, value) in &spec.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        let system = |why| SpawnError::System { program: spec.program().to_string_lossy().into(), why };
        let stoppable = terminal.as_ref().is_some_and(|t| t.stoppable);
        let minder = stoppable.then(|| pipe_with(PipeFlags::CLOEXEC)).transpose();
        let minder = minder.map_err(|e| system(e.into()))?;
        let descriptors = spec.descriptors.take();
        prepare_child(
            &mut command,
            ChildSetup {
                signals,
                terminal: terminal.as_ref().map(|t| t.master.as_raw_fd()),
                die_with_host: spec.die_with_host,
                minder: minder.as_ref().map(|(_, reports)| reports.as_raw_fd()),
                descriptors: descriptors.iter().map(AsRawFd::as_raw_fd).collect(),
            },
        );
        let mut child = command.spawn().map_err(|e| explain(spec, e))?;
        // The program alone holds them now.
        drop(descriptors);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = pid.ok_or_else(|| io::Error::other("no process number")).and_then(|session| {
            let pidfd = pidfd_open(session, PidfdFlags::empty())?;
            let (program, minder) = match minder {
                Some((reports, _)) => Minder::meet(reports).map(|(pid, minder)| (pid, Some(minder)))?,
                None => (session, None),
            };
            Ok((session, program, minder, pidfd))
        });
        match opened {
            Ok((session, program, minder, pidfd)) => {
                // Without it the program still goes with its host, though its jobs may not.
                let will = spec.jobs_die_too.then(|| LastWill::hang_up(number(session)).ok()).flatten();
                Ok(Self { child, session, program, minder, pidfd, exit: None, will, frozen: Vec::new() })
            }
            Err(why) => {
                // A child that is gone needs neither.
                let _ = child.kill();
                let _ = child.wait();
                Err(system(why))
            }
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.program
    }

    /// Readable once the program has ended.
    pub(super) fn exit_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    pub(super) fn exited(&mut self) -> io::Result<Option<Exit>> {
        if self.exit.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            let signal = status.signal().map(Exit::Signal);
            self.exit = Some(signal.unwrap_or(Exit::Code(status.code().unwrap_or(1))));
            self.will = None;
        }
        Ok(self.exit)
    }

    /// Sends a signal to a process group, or to the program's where that one is gone.
    pub(super) fn signal_group(&self, group: Option<Pid>, signal: i32) -> io::Result<()> {
        if let Some(group) = group
            && kill(-number(group), signal).is_ok()
        {
            return Ok(());
        }
        if self.exit.is_some() {
            return Ok(());
        }
        kill(-number(self.program), signal).or_else(|_| kill(number(self.program), signal))
    }

    /// Stops the whole session.
    pub(super) fn stop(&self, how: StopSignal) {
        match how {
            StopSignal::HangUp => signal_all(&self.members(), &[libc::SIGHUP, libc::SIGCONT]),
            StopSignal::Terminate => signal_all(&self.members(), &[libc::SIGTERM, libc::SIGCONT]),
            StopSignal::Kill => {
                // A member may fork while the list is read, so look again until none is left. A
                // process that was killed stays listed until its parent reaps it; it is not
                // counted.
                for _ in 0..50 {
                    let members = self.members();
                    if members.is_empty() {
                        break;
                    }
                    signal_all(&members, &[libc::SIGKILL]);
                }
            }
        }
    }

    /// Freezes or continues the whole session. The program is the first to stop and the last to go
    /// on: a shell must not see its job stop, or it would take the terminal for itself. Its minder
    /// likewise must not see the program stop, or would report it.
    pub(super) fn freeze(&mut self, frozen: bool) {
        if frozen {
            let mut members = living(self.session, &['T', 't']);
            members.sort_by_key(|pid| (*pid != self.session, *pid != self.program));
            signal_all(&members, &[libc::SIGSTOP]);
            self.frozen = members;
        } else {
            let mut members = std::mem::take(&mut self.frozen);
            members.reverse();
            signal_all(&members, &[libc::SIGCONT]);
        }
    }

    /// Whether the program is stopped, said once for each stop.
    pub(super) fn stopped(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        if self.exit.is_some() {
            return false;
        }
        match &self.minder {
            Some(minder) => minder.reported_stop() && is_stopped(self.program),
            None => {
                let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                waitid(WaitId::Pid(self.session), options).is_ok_and(|status| status.is_some())
            }
        }
    }

    /// Whether a process of this group, or the program's, is waiting in a read from its terminal.
    pub(super) fn reads_terminal(&self, group: Option<Pid>) -> bool {
        self.any_of(group, reads_terminal)
    }

    /// Whether a process of this group, or the program's, is waiting in a read from its terminal,
    /// or for one of several descriptors. One that cannot be looked at counts, too.
    pub(super) fn waits_for_input(&self, group: Option<Pid>) -> bool {
        self.any_of(group, |pid| reads_terminal(pid) || waits_for_several(pid))
    }

    fn any_of(&self, group: Option<Pid>, is: impl Fn(i32) -> bool) -> bool {
        let group = number(group.unwrap_or(self.program));
        let in_group =
            |pid: &i32| rustix::process::getpgid(Pid::from_raw(*pid)).is_ok_and(|g| number(g) == group);
        self.members().into_iter().map(number).filter(in_group).any(is)
    }

    /// Living processes of the session beside the program.
    pub(super) fn survivors(&self) -> usize {
        self.members().iter().filter(|pid| **pid != self.session && **pid != self.program).count()
    }

    fn members(&self) -> Vec<Pid> {
        living(self.session, &[])
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.stop(StopSignal::Kill);
            // A child that is gone needs neither.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The process between this one and the program, which reports when the program stops.
struct Minder {
    reports: OwnedFd,
}

impl Minder {
    /// Takes the program's number, the first thing that a minder reports.
    fn meet(reports: OwnedFd) -> io::Result<(Pid, Self)> {
        let mut number = [0; size_of::<i32>()];
        let mut reports = fs::File::from(reports);
        reports.read_exact(&mut number)?;
        let pid = Pid::from_raw(i32::from_ne_bytes(number));
        let pid = pid.ok_or_else(|| io::Error::other("no process number"))?;
        rustix::io::ioctl_fionbio(&reports, true)?;
        Ok((pid, Self { reports: reports.into() }))
    }

    /// Whether the program has stopped since this was last asked.
    fn reported_stop(&self) -> bool {
        let mut reports = [0; 64];
        let mut any = false;
        while rustix::io::read(&self.reports, &mut reports).is_ok_and(|n| n > 0) {
            any = true;
        }
        any
    }
}

fn is_stopped(pid: Pid) -> bool {
    Process::find(number(pid).cast_unsigned()).is_some_and(|process| process.state == 'T')
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

fn signal_all(members: &[Pid], signals: &[i32]) {
    for member in members {
        for signal in signals {
            // Gone already is as good as signalled.
            let _ = kill(number(*member), *signal);
        }
    }
}

/// The living processes of a session, its leader included, but for those in one of these states.
fn living(session: Pid, but_in: &[char]) -> Vec<Pid> {
    let all = by_session();
    if all.is_empty() {
        // No list of processes here.
        return vec![session];
    }
    let its = all.get(&number(session)).into_iter().flatten();
    let its = its.filter(|(_, p)| !p.is_dead() && !but_in.contains(&p.state));
    its.filter_map(|(pid, _)| Pid::from_raw(i32::try_from(*pid).ok()?)).collect()
}

/// Whether a thread of this process is waiting in a read from a terminal.
fn reads_terminal(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        // "0 0x3 …": the number of the system call, then its arguments; "running" when it is in
        // none.
        let call = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
        let mut words = call.split(' ');
        let reads = words.next().and_then(|n| n.parse().ok()) == Some(libc::SYS_read);
        let fd = words.next().and_then(|w| i64::from_str_radix(w.trim_start_matches("0x"), 16).ok());
        let Some(fd) = fd.filter(|_| reads) else { return false };
        let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
        target.starts_with("/dev/pts") || target.starts_with("/dev/tty")
    })
}

/// Whether the first thread of this process is waiting for one of several descriptors, as programs
/// do that read in another way than by `read` alone, or cannot be looked at.
fn waits_for_several(pid: i32) -> bool {
    let Ok(call) = fs::read_to_string(format!("/proc/{pid}/syscall")) else { return true };
    let call = call.split(' ').next().and_then(|number| number.parse().ok());
    #[cfg(target_arch = "x86_64")]
    let older = [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait];
    #[cfg(not(target_arch = "x86_64"))]
    let older = [];
    let newer = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];
    call.is_some_and(|call| older.contains(&call) || newer.contains(&call))
}

/// Turns a failed exec into what a person needs to know.
fn explain(spec: &CommandSpec, why: io::Error) -> SpawnError {
    let program = match spec.program().to_string_lossy() {
        name if name.is_empty() => "\"\"".to_owned(),
        name => name.into_owned(),
    };
    if let Some(folder) = &spec.cwd
        && let Err(why) = fs::read_dir(folder)
        && why.kind() != io::ErrorKind::PermissionDenied
    {
        return SpawnError::Folder { folder: folder.clone(), why };
    }
    match why.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => match missing_interpreter(spec) {
            Some(interpreter) => SpawnError::NoInterpreter { program, interpreter },
            None => SpawnError::NotFound { program },
        },
        Some(libc::EACCES | libc::EPERM | libc::ENOEXEC | libc::EISDIR | libc::ELIBBAD | libc::ETXTBSY) => {
            SpawnError::NotExecutable { program, why }
        }
        _ if spec.program().is_empty() => SpawnError::NotFound { program },
        _ => SpawnError::System { program, why },
    }
}

/// The interpreter that a script asks for, if the script is there and the interpreter is not.
fn missing_interpreter(spec: &CommandSpec) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let program = spec.program();
    if !program.as_bytes().contains(&b'/') {
        return None;
    }
    let path = spec.cwd.as_deref().unwrap_or(Path::new("")).join(program);
    let mut head = [0; 256];
    let n = fs::File::open(path).ok()?.read(&mut head).ok()?;
    let line = head[..n].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let interpreter = line.split_whitespace().next()?;
    (!Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_a_program_and_the_rest_is_for_a_shell() {
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("   ", &[]),
            ("htop", &["htop"]),
            ("vim  -u NONE a.txt", &["vim", "-u", "NONE", "a.txt"]),
            ("echo 'a b' | wc", &["/bin/sh", "-c", "echo 'a b' | wc"]),
            ("~/x", &["/bin/sh", "-c", "~/x"]),
            ("A=1 env", &["/bin/sh", "-c", "A=1 env"]),
        ];
        for (line, expected) in cases {
            assert_eq!(command_line(line), expected, "{line:?}");
        }
    }
}
