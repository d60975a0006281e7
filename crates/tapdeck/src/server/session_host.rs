//! Where a server's sessions come from: each is an ordinary session of this process, listed,
//! watched and recorded like any other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapdeck_core::WinSize;
use tapdeck_host::backend::{CommandSpec, Place, PlaceError};
use tapdeck_host::registry::{self, Listing};
use tapdeck_host::{
    Clock, Ended, IfExists, InheritedSignals, Launch, LaunchError, LiveIndex, OnFailure, RecordOptions,
    Recording, RecordingFile, Start, UserSide, calendar, tty_settings,
};
use tapdeck_serve::client;
use tapdeck_serve::net::{Client, Opened, Refusal, RefusalCode, SessionRunner};
use tapdeck_serve::wire::{Negotiation, start_code, win_size};
use tapdeck_tape::encryption::Recipients;

use super::Programs;
use crate::Error;
use crate::live::{DoorOptions, Doors, OnState, Warn, check_name};
use crate::turns::RuleBook;

/// Bytes of the past that a session keeps for those who join it.
const RING: usize = 1 << 20;
/// How long a program whose client has gone has to end by itself.
const KILL_AFTER: Duration = Duration::from_secs(1);
/// How long a detached session waits after its end for a client to see its last screen.
const LINGER: Duration = Duration::from_secs(600);

/// Is told the id of a session that begins.
pub type OnSession = Box<dyn Fn(&str) + Send + Sync>;
/// Makes what is called when the state of a session's program has changed.
pub type MakeOnState = Box<dyn Fn() -> Option<OnState> + Send + Sync>;

/// How the sessions of a server are made.
#[derive(Default)]
#[non_exhaustive]
pub struct SessionHostOptions {
    /// Record every session in this folder.
    pub record: Option<PathBuf>,
    /// What a session does when its recording fails.
    pub on_failure: OnFailure,
    /// The keys that can read the recordings; without any they are not encrypted.
    pub encrypt: Option<Recipients>,
    /// Makes what is called when the state of a session's program has changed; asked once for each
    /// session.
    pub on_state: Option<MakeOnState>,
    /// Called with the id of each session that begins.
    pub on_session: Option<OnSession>,
    /// Told of trouble that does not end a session.
    pub warn: Option<Warn>,
    /// Programs of this process, by the names of their backends.
    pub programs: Programs,
}

impl fmt::Debug for SessionHostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHostOptions")
            .field("record", &self.record)
            .field("programs", &self.programs.keys())
            .finish_non_exhaustive()
    }
}

/// Makes the sessions that the clients of a server ask for.
#[derive(Debug)]
pub struct SessionHost {
    signals: InheritedSignals,
    options: SessionHostOptions,
    rules: Option<Arc<RuleBook>>,
    next: AtomicU64,
    /// Detached sessions, which stay on the list when they have ended.
    lingering: Mutex<BTreeMap<u64, (PathBuf, Listing)>>,
}

impl SessionHost {
    /// Makes a host whose programs get these signals.
    ///
    /// # Errors
    /// When the folder for recordings cannot be made.
    pub fn new(signals: InheritedSignals, mut options: SessionHostOptions) -> Result<Self, Error> {
        let record = options.record.take().map(std::path::absolute).transpose();
        options.record = record.map_err(Error::io("cannot record there"))?;
        if let Some(folder) = &options.record {
            // Sessions are private; a folder that exists already is left to its owner.
            let made = tapdeck_host::disk::create_folders(folder);
            made.map_err(Error::io(format!("cannot record in {}", folder.display())))?;
        }
        let rules = RuleBook::load();
        let (next, lingering) = (AtomicU64::new(1), Mutex::default());
        let mut this = Self { signals, options, rules: None, next, lingering };
        this.rules = rules.inspect_err(|why| this.no_turns(why)).ok();
        Ok(this)
    }

    fn warn(&self, trouble: &str) {
        if let Some(warn) = &self.options.warn {
            warn(trouble);
        }
    }

    fn no_turns(&self, why: &dyn fmt::Display) {
        self.warn(&format!("turns and states will not be found: {why}"));
    }

    fn lingering(&self) -> MutexGuard<'_, BTreeMap<u64, (PathBuf, Listing)>> {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session that is wanted.
    fn launch(&self, wanted: &Negotiation) -> Result<Launch, Refusal> {
        let place = match self.options.programs.contains_key(&wanted.backend) {
            true => Place::Local,
            false => place(wanted)?,
        };
        if let Some(why) = wanted.name.as_deref().and_then(|name| check_name(name).err()) {
            return Err(Refusal::new(RefusalCode::MalformedNegotiation, why.to_string()));
        }
        let mut argv: Vec<OsString> = wanted.cmd.iter().map(OsString::from).collect();
        if argv.is_empty() && self.options.programs.contains_key(&wanted.backend) {
            argv.push(wanted.backend.clone().into());
        }
        if argv.is_empty() && place.is_local() {
            let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty());
            argv.push(shell.unwrap_or_else(|| "/bin/sh".into()));
        }
        let mut command = CommandSpec::new(argv);
        command.cwd = wanted.cwd.as_ref().map(PathBuf::from);
        command.die_with_host = true;
        let set = |key: &str, value: &str| (OsString::from(key), Some(OsString::from(value)));
        if let Some(term) = wanted.tty.as_ref().and_then(|t| t.term.as_deref()) {
            command.env.push(set("TERM", term));
        }
        command.env.extend(wanted.env.iter().map(|(key, value)| set(key, value)));
        let mut launch = Launch::new(command);
        launch.place = place;
        launch.no_pty = wanted.tty.is_none() || wanted.backend == "pipe";
        if let Some(tty) = &wanted.tty {
            launch.size = Some(tty.size.map_or(WinSize::cells(80, 24), win_size));
            // A client on another system has settings that no terminal has here.
            let known = tty.modes.iter().filter(|(name, _)| tty_settings::is_known(name));
            launch.tty_settings = known.map(|(name, value)| (name.clone(), *value)).collect();
        }
        launch.ring = RING;
        launch.kill_after = KILL_AFTER;
        Ok(launch)
    }

    fn recording(
        &self,
        id: &str,
        wanted: &Negotiation,
        launch: &Launch,
    ) -> Result<Option<Recording>, Refusal> {
        let Some(folder) = &self.options.record else { return Ok(None) };
        let program = launch.command.argv.first().map(PathBuf::from).unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy();
        let program: String =
            program.chars().filter(|c| c.is_alphanumeric() || "-_.".contains(*c)).take(40).collect();
        let when = calendar(Clock::start().wall_start());
        let path = folder.join(format!("{when}-{program}-{id}.ahr"));
        let file = RecordingFile::open(&path, IfExists::Refuse).map_err(cannot_record)?;
        let options = RecordOptions::default()
            .argv(launch.command.argv.clone())
            .cwd(launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()))
            .title(wanted.name.clone())
            .on_failure(self.options.on_failure)
            .encrypt(self.options.encrypt.clone())
            .index(LiveIndex::Off);
        Ok(Some(Recording { file, options }))
    }

    fn try_run(&self, wanted: &Negotiation, user: UserSide, client: &mut Client) -> Result<(), Refusal> {
        let launch = self.launch(wanted)?;
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{n}", std::process::id());
        let recording = self.recording(&id, wanted, &launch)?;
        let path = recording.as_ref().map(|r| r.file.path().to_owned());
        let linger = wanted.detached.then_some(LINGER);
        let turns = self.rules.as_ref().and_then(|book| {
            let chosen = book.choose(&launch.shown_command());
            chosen.inspect_err(|why| self.no_turns(why)).ok()
        });
        let options = DoorOptions {
            id: Some(id),
            name: wanted.name.clone(),
            recording: path,
            detached: wanted.detached,
            linger,
            turns: turns.filter(|_| !launch.no_pty),
            on_state: self.options.on_state.as_ref().and_then(|make| make()),
            warn: self.options.warn.clone(),
            ..DoorOptions::default()
        };
        let doors = Doors::open(&launch, options).map_err(|e| {
            Refusal::new(RefusalCode::AllocateFailed, format!("cannot open the session to others: {e}"))
        })?;
        if wanted.detached {
            let (folder, listing) = doors.listing();
            self.lingering().insert(n, (folder.to_owned(), listing.clone()));
        }
        let mut served = None;
        let open = |session: tapdeck_host::Session| {
            let opened = Opened { id: doors.id().to_owned(), handle: session.handle.clone() };
            if let Some(told) = &self.options.on_session {
                told(doors.id());
            }
            let handle = session.handle.clone();
            served = Some(doors.serve(session).inspect_err(|e| {
                self.warn(&format!("clients cannot join this session: {e}"));
                if wanted.detached {
                    handle.cancel();
                }
            }));
            client.opened(opened);
        };
        let finished = match self.options.programs.get(&wanted.backend) {
            Some(make) => {
                let start: &Start<'_> = &|_, _, _, _| make().map_err(LaunchError::Setup);
                launch.run_served_on(start, self.signals, Some(user), recording, open)
            }
            None => launch.run_served(self.signals, Some(user), recording, open),
        };
        if let Some(report) = &finished.report
            && let Some(trouble) = &report.trouble
        {
            self.warn(&format!("recording {}: {trouble}", report.path.display()));
        }
        match finished.outcome {
            Ok(outcome) if outcome.ended == Ended::RecordingFailed => {
                let why = "the program was ended because its recording failed";
                client.over(Err(Refusal::new(RefusalCode::AllocateFailed, why)));
            }
            Ok(outcome) => client.over(Ok(outcome.exit)),
            Err(e) => return Err(failed(&e)),
        }
        // Attached clients are told, and a detached session is kept until a client has seen its
        // end.
        drop(served);
        self.lingering().remove(&n);
        Ok(())
    }
}

/// Where it is to run: named as `run --on` names it, or in fields of its own.
fn place(wanted: &Negotiation) -> Result<Place, Refusal> {
    let unknown = |e: &dyn std::fmt::Display| Refusal::new(RefusalCode::UnknownBackend, e.to_string());
    let text = match (wanted.backend.as_str(), &wanted.container, &wanted.image, &wanted.host) {
        ("local" | "pipe", ..) => return Ok(Place::Local),
        ("docker", Some(container), ..) => format!("docker:exec:{container}"),
        ("docker", None, Some(image), _) => format!("docker:{image}"),
        ("docker", None, None, _) => return Err(unknown(&"docker wants a container or an image")),
        ("ssh", .., Some(host)) => {
            let user = wanted.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
            let port = match wanted.port {
                Some(port @ 1..=65535) => format!(":{port}"),
                Some(port) => {
                    let why = format!("\"port\" is from 1 to 65535, and not {port}");
                    return Err(Refusal::new(RefusalCode::MalformedNegotiation, why));
                }
                None => String::new(),
            };
            format!("ssh:{user}{host}{port}")
        }
        ("ssh", .., None) => return Err(unknown(&"ssh wants a host")),
        (other, ..) => other.to_owned(),
    };
    text.parse().map_err(|e: PlaceError| unknown(&e))
}

fn cannot_record(e: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalCode::AllocateFailed, format!("the session cannot be recorded: {e}"))
}

fn failed(e: &LaunchError) -> Refusal {
    let code = match e {
        LaunchError::Spawn(e) => Some(start_code(e.kind())),
        _ => None,
    };
    Refusal { code, ..Refusal::new(RefusalCode::AllocateFailed, e.to_string()) }
}

impl SessionRunner for SessionHost {
    fn run(&self, wanted: &Negotiation, user: UserSide, client: &mut Client) {
        if let Err(refusal) = self.try_run(wanted, user, client) {
            client.over(Err(refusal));
        }
    }

    fn close(&self) {
        for (folder, listing) in self.lingering().values() {
            registry::clear_own(folder, listing);
        }
    }

    fn find(&self, session: Option<&str>) -> Result<Listing, Refusal> {
        client::find(session).map_err(|e| Refusal::new(RefusalCode::NoSuchSession, e.to_string()))
    }
}
