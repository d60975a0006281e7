//! Describing a session before it starts.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use std::vec::Drain;

use tapdeck_core::{Entry, Event, Lag, Stamp, WinSize};
use tapdeck_host::backend::{Backend, CommandSpec, Console, InProcess, Place};
#[cfg(feature = "net")]
use tapdeck_host::backend::{NewHost, Prompter};
use tapdeck_host::{
    IfExists, InheritedSignals, Launch, LaunchError, LiveIndex, RecordOptions, Recording, RecordingFile,
    Start, Tap, TapReader, TapThread,
};

use super::{Done, Finished, Inner, Session};
use crate::{Error, Result};

/// What makes a backend for a terminal of this size.
type MakeBackend = Box<dyn FnOnce(WinSize) -> io::Result<Box<dyn Backend>> + Send>;

/// A session to start: see [`Session::builder`].
pub struct SessionBuilder {
    launch: Launch,
    backend: Option<MakeBackend>,
    record: Option<PathBuf>,
    record_options: RecordOptions,
    if_exists: IfExists,
    taps: Vec<Box<dyn Tap + Send>>,
    #[cfg(feature = "live")]
    doors: LiveChoice,
}

/// How the session can be reached by other processes.
#[cfg(feature = "live")]
#[derive(Debug, Default)]
struct LiveChoice {
    private: bool,
    turns: crate::turns::Turns,
    options: crate::live::DoorOptions,
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("launch", &self.launch)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

impl SessionBuilder {
    pub(super) fn new<A: Into<OsString>>(command: impl IntoIterator<Item = A>) -> Self {
        Self {
            launch: Launch::new(CommandSpec::new(command)),
            backend: None,
            record: None,
            record_options: RecordOptions::default().index(LiveIndex::Off),
            if_exists: IfExists::Refuse,
            taps: Vec::new(),
            #[cfg(feature = "live")]
            doors: LiveChoice::default(),
        }
    }

    /// Sets the terminal's size; 80x24 by default.
    #[must_use]
    pub fn size(mut self, cols: u16, rows: u16) -> Self {
        self.launch.size = Some(WinSize::cells(cols, rows));
        self
    }

    /// Runs the program in this folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.launch.command.cwd = Some(folder.into());
        self
    }

    /// Sets a variable of the program's environment, which is otherwise that of this process.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.launch.command.env.push((name.into(), Some(value.into())));
        self
    }

    /// Runs the program there: in a container, on another machine. See [`Place`].
    #[must_use]
    pub fn on(mut self, place: Place) -> Self {
        self.launch.place = place;
        self
    }

    /// Runs the program on pipes instead of a terminal.
    #[must_use]
    pub fn pipes(mut self) -> Self {
        self.launch.no_pty = true;
        self
    }

    /// Records the session in this file, which must not exist. The end of its name says the format;
    /// without one that is known it is an `.ahr`.
    #[must_use]
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }

    /// Replaces a recording that exists.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.if_exists = IfExists::Overwrite;
        self
    }

    /// Sets what is recorded, and how.
    #[must_use]
    pub fn record_options(mut self, options: RecordOptions) -> Self {
        self.record_options = options;
        self
    }

    /// Calls this with each event of the session, in order, on a thread of its own.
    #[must_use]
    pub fn tap(self, tap: impl FnMut(&Event) + Send + 'static) -> Self {
        self.tap_with(Listener(tap))
    }

    /// Runs a tap on a thread of its own: it sees each entry of the log with its place and time,
    /// says when to be woken, and is told of lags and flushes.
    #[must_use]
    pub fn tap_with(mut self, tap: impl Tap + Send + 'static) -> Self {
        self.taps.push(Box::new(tap));
        self
    }

    /// Runs a program of your own kind in place of the command, which is then only a description.
    #[must_use]
    pub fn backend<B: Backend + 'static>(
        mut self,
        make: impl FnOnce(WinSize) -> io::Result<B> + Send + 'static,
    ) -> Self {
        self.backend = Some(Box::new(move |size| Ok(Box::new(make(size)?))));
        self
    }

    /// Runs a function of this process in place of the command: it writes to the console and reads
    /// lines from it, and returns its exit code.
    #[must_use]
    pub fn in_process(self, program: impl FnOnce(&Console) -> io::Result<i32> + Send + 'static) -> Self {
        self.backend(move |_| InProcess::start(program))
    }

    /// Stops the program after this long.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.launch.timeout = Some(limit);
        self
    }

    /// Starts the session on a thread of its own, and returns when the program runs. Signals and
    /// terminal of this process are left alone.
    ///
    /// # Errors
    /// When the program cannot be started, the recording cannot be created, or a socket cannot be
    /// opened.
    pub fn spawn(mut self) -> Result<Session> {
        self.launch.headless = true;
        self.launch.command.die_with_host = true;
        self.launch.no_input = false;
        let recording = self.recording()?;
        #[cfg(feature = "live")]
        let doors = self.open_doors(recording.as_ref(), true)?;
        #[cfg(feature = "live")]
        let id = doors.as_ref().map(|doors| doors.id().to_owned());
        #[cfg(not(feature = "live"))]
        let id = None;
        let (opened, started) = channel();
        let done = Arc::new(Done::default());
        let tell = Arc::clone(&done);
        let signals = InheritedSignals::note();
        let run = move || {
            let Self { launch, backend, taps, .. } = self;
            let mut tapping = Vec::new();
            #[cfg(feature = "live")]
            let mut served = None;
            let failed = opened.clone();
            let open = |session: tapdeck_host::Session| {
                tapping.extend(taps.into_iter().filter_map(|tap| start_tap(&session, tap)));
                let (handle, log) = (session.handle.clone(), session.log.clone());
                let (glass, clock) = (session.glass.clone(), session.clock);
                #[cfg(feature = "live")]
                {
                    // Trouble with the list of sessions must not keep the program from running.
                    served = doors.and_then(|doors| doors.serve(session).ok());
                }
                let inner = Inner {
                    id,
                    handle,
                    log,
                    glass,
                    clock,
                    own: OnceLock::new(),
                    done: Arc::clone(&tell),
                    thread: Mutex::default(),
                    #[cfg(feature = "live")]
                    late: served.as_ref().map(crate::live::Served::recordings),
                    #[cfg(feature = "live")]
                    dismissal: served.as_ref().map(crate::live::Served::dismissal),
                };
                // The caller waits for exactly this.
                let _ = opened.send(Ok(inner));
            };
            let ran = run(&launch, backend, Some(signals), recording, open);
            for tap in tapping {
                // One that panicked has said so itself.
                let _ = tap.finish();
            }
            let recording = ran.report.map(Arc::new);
            match ran.outcome {
                Ok(outcome) => {
                    tell.set(Ok(Finished { exit: outcome.exit, ended: outcome.ended, recording }));
                }
                Err(e) => {
                    let e = Arc::new(e);
                    tell.set(Err(Arc::clone(&e)));
                    // The receiver is gone if the session had been opened.
                    let _ = failed.send(Err(e));
                }
            }
            #[cfg(feature = "live")]
            drop(served);
        };
        let builder = std::thread::Builder::new().name("tapdeck-session".into());
        let thread = builder.spawn(run).map_err(Error::io("cannot start a thread for the session"))?;
        match started.recv() {
            Ok(Ok(inner)) => {
                *inner.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(thread);
                Ok(Session(Arc::new(inner)))
            }
            Ok(Err(e)) => Err(Error::Launch(e)),
            Err(_) => Err(Error::Over),
        }
    }

    /// Runs the session in the foreground of this process, transparently, to its end. The signals
    /// and the terminal of this process are the session's meanwhile: call it before starting any
    /// thread.
    ///
    /// # Errors
    /// As [`SessionBuilder::spawn`].
    #[cfg_attr(not(feature = "live"), expect(unused_mut, reason = "the doors take their options"))]
    pub fn foreground(mut self) -> Result<Finished> {
        let recording = self.recording()?;
        #[cfg(feature = "live")]
        let doors = self.open_doors(recording.as_ref(), false)?;
        let Self { launch, backend, taps, .. } = self;
        let mut tapping = Vec::new();
        let open = |session: tapdeck_host::Session| {
            tapping.extend(taps.into_iter().filter_map(|tap| start_tap(&session, tap)));
            // As above: the program matters more than those who would watch it.
            #[cfg(feature = "live")]
            return doors.and_then(|doors| doors.serve(session).ok());
        };
        let ran = run(&launch, backend, None, recording, open);
        for tap in tapping {
            // One that panicked has said so itself.
            let _ = tap.finish();
        }
        let outcome = ran.outcome?;
        Ok(Finished { exit: outcome.exit, ended: outcome.ended, recording: ran.report.map(Arc::new) })
    }

    /// Creates the recording.
    fn recording(&self) -> Result<Option<Recording>> {
        let Some(path) = &self.record else { return Ok(None) };
        let file = create(path, self.if_exists)?;
        let options = self
            .record_options
            .clone()
            .argv(match self.launch.command.argv.as_slice() {
                [] => self.launch.shown_command().into_iter().map(Into::into).collect(),
                argv => argv.to_vec(),
            })
            .cwd(self.launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()));
        Ok(Some(Recording { file, options }))
    }
}

/// Runs the session to its end: with these signals for its program, or with the signals and the
/// terminal of this process.
fn run<D>(
    launch: &Launch,
    backend: Option<MakeBackend>,
    signals: Option<InheritedSignals>,
    recording: Option<Recording>,
    open: impl FnOnce(tapdeck_host::Session) -> D,
) -> tapdeck_host::Finished {
    let Some(make) = backend else {
        return match signals {
            Some(signals) => launch.run_served(signals, None, recording, open),
            None => launch.run_with(recording, open),
        };
    };
    let make = RefCell::new(Some(make));
    let start: &Start<'_> = &|_, _, size, _| {
        let make = make.borrow_mut().take();
        let make = make.ok_or_else(|| io::Error::other("the backend was started before"));
        make.and_then(|make| make(size)).map_err(LaunchError::Setup)
    };
    match signals {
        Some(signals) => launch.run_served_on(start, signals, None, recording, open),
        None => launch.run_on(start, recording, open),
    }
}

/// Creates a recording in the format that its name says.
fn create(path: &Path, if_exists: IfExists) -> Result<RecordingFile> {
    use tapdeck_tape::{Container, Format};
    let named = path.file_name().and_then(|n| n.to_str()).and_then(Container::of_name);
    match named {
        Some(container) if container != (Container { format: Format::Ahr, zst: false }) => {
            if !tapdeck_host::can_record(container.format) {
                let why = format!("{} cannot be recorded: record an .ahr and convert it", container.format);
                return Err(Error::Recording { path: path.to_owned(), why });
            }
            let overwrite = matches!(if_exists, IfExists::Overwrite);
            Ok(RecordingFile::open_as(path, container, overwrite)?)
        }
        _ => Ok(RecordingFile::open(path, if_exists)?),
    }
}

#[cfg(feature = "live")]
impl SessionBuilder {
    /// Gives the session a name by which it can be found.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.doors.options.name = Some(name.into());
        self
    }

    /// Says how turns and states are found: by the rules for the command, unless told otherwise.
    #[must_use]
    pub fn turns(mut self, turns: crate::turns::Turns) -> Self {
        self.doors.turns = turns;
        self
    }

    /// Keeps the session reachable after the program's end until a client has looked, but no longer
    /// than this.
    #[must_use]
    pub fn linger(mut self, limit: Duration) -> Self {
        self.doors.options.linger = Some(limit);
        self
    }

    /// Serves the session's bus at a further address.
    #[must_use]
    pub fn bus(mut self, address: crate::live::Address, grants: crate::live::Grants) -> Self {
        let bus = crate::live::Bus::new(address).grants(grants);
        self.doors.options.buses.push(bus);
        self
    }

    /// Keeps the session to this process: it is not listed, and no other process can reach it.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.doors.private = true;
        self
    }

    fn open_doors(
        &mut self,
        recording: Option<&Recording>,
        detached: bool,
    ) -> Result<Option<crate::live::Doors>> {
        let LiveChoice { private, turns, mut options } = std::mem::take(&mut self.doors);
        if private {
            return Ok(None);
        }
        options.turns = match self.launch.no_pty {
            true => None,
            false => turns.options(&self.launch.shown_command())?,
        };
        options.recording = recording.map(|recording| recording.file.path().to_owned());
        options.detached = detached;
        Ok(Some(crate::live::Doors::open(&self.launch, options)?))
    }
}

/// A closure as a tap.
struct Listener<F>(F);

impl<F: FnMut(&Event)> Tap for Listener<F> {
    fn take(&mut self, entries: Drain<'_, Entry>, _now: Stamp) {
        entries.for_each(|entry| (self.0)(&entry.event));
    }

    /// What was lost past the log's cap cannot be had again.
    fn lagged(&mut self, _lag: &Lag, _now: Stamp) {}
}

/// Starts a tap; without a thread for it, the program runs all the same.
fn start_tap(
    session: &tapdeck_host::Session,
    tap: Box<dyn Tap + Send>,
) -> Option<TapThread<Box<dyn Tap + Send>>> {
    TapThread::start("tapdeck-tap", TapReader::from_start(&session.log, session.clock), tap).ok()
}

/// What a client shows to a server, and by what it knows the server.
#[cfg(feature = "net")]
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<String>,
    fingerprint: Option<String>,
    new_host: NewHostPolicy,
}

/// What to do about a server whose host shows its key for the first time.
#[cfg(feature = "net")]
#[derive(Clone, Default)]
enum NewHostPolicy {
    #[default]
    Refuse,
    Accept,
    Ask(Arc<dyn Fn(&NewHost) -> bool + Send + Sync>),
}

/// Answers for the caller of the library.
#[cfg(feature = "net")]
impl Prompter for NewHostPolicy {
    fn note(&mut self, _text: &str) {}

    fn ask(&mut self, _question: &str, _secret: bool) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn is_trusted(&mut self, host: &NewHost) -> io::Result<Option<bool>> {
        Ok(match self {
            NewHostPolicy::Ask(decide) => Some(decide(host)),
            NewHostPolicy::Refuse | NewHostPolicy::Accept => None,
        })
    }

    fn cancelled(&mut self) -> Option<i32> {
        None
    }
}

#[cfg(feature = "net")]
impl Credentials {
    /// Those of the user whose server it is, at a Unix socket.
    pub fn owner() -> Self {
        Self::default()
    }

    /// A token.
    pub fn token(secret: impl Into<String>) -> Self {
        Self { token: Some(secret.into()), ..Self::default() }
    }

    /// The token to show.
    pub(crate) fn secret(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Connects to the server at this address.
    pub(crate) fn dial(&self, address: &str) -> Result<tapdeck_serve::client::Conn> {
        use tapdeck_serve::net::{Trust, dial};
        let trust = Trust::by_acquaintance()
            .fingerprint(self.fingerprint.clone())
            .accept_new(matches!(self.new_host, NewHostPolicy::Accept));
        Ok(dial(&endpoint(address)?, &trust, self.secret(), &mut self.new_host.clone())?)
    }

    /// Trusts only the server with this fingerprint. By default, a server is trusted whose key was
    /// remembered for its host before, and any other is refused.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// Trusts a host that shows its key for the first time, and remembers the key.
    #[must_use]
    pub fn accept_new(mut self) -> Self {
        self.new_host = NewHostPolicy::Accept;
        self
    }

    /// Asks about a host that shows its key for the first time. If `decide` returns true, the host
    /// is trusted and the key remembered. The server has got nothing before that.
    #[must_use]
    pub fn ask_about_new(mut self, decide: impl Fn(&NewHost) -> bool + Send + Sync + 'static) -> Self {
        self.new_host = NewHostPolicy::Ask(Arc::new(decide));
        self
    }
}

#[cfg(feature = "net")]
fn endpoint(address: &str) -> Result<tapdeck_serve::net::Endpoint> {
    use tapdeck_serve::net::EndpointError;
    address.parse().map_err(|e: EndpointError| Error::Invalid(e.to_string()))
}

#[cfg(feature = "net")]
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token must not reach a log.
        f.debug_struct("Credentials").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

#[cfg(feature = "net")]
impl SessionBuilder {
    /// Runs the program at a server, by its backend of this name: `local` for a command. The
    /// session is here as any other, so that it can be recorded, watched and driven.
    ///
    /// # Errors
    /// When the address makes no sense. A server that cannot be reached fails
    /// [`SessionBuilder::spawn`].
    pub fn at(self, address: &str, credentials: Credentials, backend: &str) -> Result<Self> {
        use tapdeck_serve::client::RemoteProgram;
        use tapdeck_serve::wire::{Negotiation, Tty, wire_size};
        endpoint(address)?;
        let address = address.to_owned();
        let text = |os: &OsString| os.to_string_lossy().into_owned();
        let command = &self.launch.command;
        let cwd = command.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
        let env = command.env.iter().filter_map(|(name, value)| Some((text(name), text(value.as_ref()?))));
        let mut wanted = Negotiation {
            backend: backend.to_owned(),
            token: credentials.token.clone(),
            cmd: command.argv.iter().map(text).collect(),
            cwd,
            env: env.collect(),
            ..Negotiation::default()
        };
        let terminal = !self.launch.no_pty;
        Ok(self.backend(move |size| {
            wanted.tty = terminal.then(|| Tty { size: Some(wire_size(size)), ..Tty::default() });
            let conn = credentials.dial(&address).map_err(io::Error::other)?;
            let opened = RemoteProgram::open(conn, &wanted);
            opened.map(|(program, _)| program).map_err(io::Error::other)
        }))
    }
}
