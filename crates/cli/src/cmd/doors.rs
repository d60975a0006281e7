//! What makes a session live: its socket, its place on the list, further buses, and recordings that begin late.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags};
use serde_json::Value;
use tapdeck_core::scrub::Rules;
use tapdeck_host::registry::{self, Listing, Registered};
use tapdeck_host::{
    Clock, CreateError, IfExists, KeepInput, Keyboard, Launch, Pressed, RecordOptions, Recorder,
    RecordingFile, Session,
};
use tapdeck_serve::door::{Address, AddressError, Door};
use tapdeck_serve::live::{About, Grants, Live, LiveOptions, StartRecording, TurnOptions};

use crate::ending::{Ending, code, say};
use crate::parse;
use crate::scrubbing::{ScrubArgs, Whose, packs};

/// How a session can be reached.
#[derive(Args)]
pub(crate) struct DoorArgs {
    /// A name for the session
    #[arg(long, value_name = "NAME", value_parser = parse::session_name)]
    pub(crate) name: Option<String>,
    /// Start it without a terminal, print its id, and return; see tapdeck attach
    #[arg(short = 'd', long)]
    pub(crate) detach: bool,
    /// Put the bus at an address of your own as well: unix:PATH (or just a path) or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    bus: Vec<String>,
    /// Let such an address be reached from other machines; what passes is not encrypted
    #[arg(long, requires = "token_file")]
    allow_remote: bool,
    /// Tokens for those addresses, one a line, each with `human`, `bot` or `observer` in front or none
    #[arg(long, value_name = "FILE", requires = "bus")]
    token_file: Option<PathBuf>,
    /// The rules by which its turns and states are found, by name; left out, by its command
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// What its prompt looks like, as a regular expression over what stands in front of the cursor
    #[arg(long, value_name = "RE")]
    prompt: Option<String>,
    /// This process is the host of a detached session
    #[arg(long, hide = true)]
    pub(crate) detached_host: bool,
}

/// The doors of a session that is about to start. Bound before the program runs, so that nothing is missed.
pub(crate) struct Doors {
    folder: PathBuf,
    listing: Listing,
    doors: Vec<(Door, Grants)>,
    /// It is the one session of a detached host, which says so to whoever started it.
    alone: bool,
    linger: Option<Duration>,
    turns: Option<TurnOptions>,
}

/// What serves a running session. Late recordings are finished before clients are told that all is over.
pub(crate) struct Served {
    late: LateRecordings,
    live: Option<Live>,
    _registered: Option<Registered>,
    /// This process has nothing else to do.
    alone: bool,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(std::mem::take(&mut self.late));
        let Some(live) = self.live.take().filter(|_| self.alone) else { return };
        live.end();
        // Who stays only to be looked at goes when told to.
        let Ok(mut keyboard) = Keyboard::ends_only() else { return };
        while !live.is_over() {
            let mut over = [PollFd::from_borrowed_fd(live.over(), PollFlags::IN)];
            match keyboard.wait_beside(None, &mut over) {
                Ok(Pressed::Signal(_)) => live.dismiss(),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}

impl DoorArgs {
    /// Opens the doors. A session that nobody can reach is still a session; addresses that were asked for are not
    /// optional.
    pub(crate) fn open(&self, launch: &Launch, recording: Option<&Path>) -> Result<Option<Doors>, Ending> {
        let asked = self.detach || self.detached_host || !self.bus.is_empty();
        let turns = match crate::agents::choose(
            &launch.shown_command(),
            self.agent.as_deref(),
            self.prompt.as_deref(),
        ) {
            Ok(turns) => Some(turns),
            // What was asked for must be there; a rule file that is broken must not keep a program from running.
            Err(why) if self.agent.is_some() || self.prompt.is_some() => {
                say(why);
                return Err(Ending::Code(code::USAGE));
            }
            Err(why) => {
                say(format_args!("turns and states will not be found: {why}"));
                None
            }
        };
        let buses = self.buses().map_err(|why| {
            say(why);
            Ending::Code(code::USAGE)
        })?;
        match self.try_open(launch, recording, buses) {
            Ok(doors) => Ok(Some(Doors { turns, ..doors })),
            Err(why) if asked => {
                say(format_args!("cannot open the session to others: {why}"));
                Err(Ending::Code(code::IO))
            }
            Err(why) => {
                say(format_args!("nobody will be able to join this session: {why}"));
                Ok(None)
            }
        }
    }

    /// Whether somebody is to reach it at an address of their own, and to type.
    pub(crate) fn has_bus(&self) -> bool {
        !self.bus.is_empty()
    }

    /// The addresses that were asked for.
    fn buses(&self) -> Result<Vec<Address>, String> {
        let parse = if self.allow_remote { Address::anywhere } else { str::parse };
        let clear = |e| match e {
            AddressError::NotLocal(at) => format!(
                "{at} can be reached from other machines: give --allow-remote and --token-file if it is to be, or a loopback address"
            ),
            e => e.to_string(),
        };
        let buses: Vec<Address> = self
            .bus
            .iter()
            .map(|text| parse(text).map_err(clear).map_err(|why| format!("--bus: {why}")))
            .collect::<Result<_, _>>()?;
        match buses.iter().find(|at| matches!(at, Address::Tcp(_)) && self.token_file.is_none()) {
            Some(at) => Err(format!("--bus: every user of this machine can reach {at}: give --token-file")),
            None => Ok(buses),
        }
    }

    fn try_open(
        &self,
        launch: &Launch,
        recording: Option<&Path>,
        asked: Vec<Address>,
    ) -> Result<Doors, String> {
        let folder = registry::folder().map_err(|e| e.to_string())?;
        let token = registry::new_token().map_err(|e| e.to_string())?;
        // Unique among the processes of this machine; a number behind it in case a folder serves several.
        let mut tries = 1;
        let (id, own) = loop {
            let id = id_of(tries);
            match Door::unix(&registry::socket_path(&folder, &id)) {
                Ok(door) => break (id, door),
                Err(e) if e.kind() == std::io::ErrorKind::AddrInUse && tries < 100 => tries += 1,
                Err(e) => return Err(e.to_string()),
            }
        };
        let mut doors = vec![(own, Grants::own(&token))];
        let mut buses = Vec::new();
        for address in &asked {
            let grants = match (&self.token_file, address) {
                (Some(file), _) => Grants::from_file(file).map_err(|e| format!("{}: {e}", file.display()))?,
                (None, _) => Grants::own(&token),
            };
            let bound = match address {
                Address::Tcp(tcp) if self.allow_remote => Door::tcp_anywhere(*tcp),
                address => Door::bind(address),
            };
            let door = bound.map_err(|e| format!("{address}: {e}"))?;
            buses.push(door.address().to_string());
            doors.push((door, grants));
        }
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let listing = Listing {
            socket: registry::socket_path(&folder, &id),
            id,
            name: self.name.clone(),
            pid: std::process::id(),
            buses,
            command: launch.shown_command(),
            cwd: cwd.to_string_lossy().into_owned(),
            started_ns: Clock::start().wall_start_ns(),
            detached: self.detached_host,
            recording: recording
                .map(|p| std::path::absolute(p).unwrap_or(p.into()).to_string_lossy().into_owned()),
            human_token: token,
        };
        let linger = self.detached_host.then_some(Duration::MAX);
        Ok(Doors { folder, listing, doors, alone: self.detached_host, linger, turns: None })
    }
}

/// The id of the host's first session and those after it.
fn id_of(n: u64) -> String {
    let pid = std::process::id();
    if n <= 1 { pid.to_string() } else { format!("{pid}-{n}") }
}

/// The id of the `n`th session of this server, from 1.
#[cfg(feature = "net")]
pub(crate) fn id_at_server(n: u64) -> String {
    format!("{}-{n}", std::process::id())
}

impl Doors {
    /// The doors of a session of a server, which has this id.
    #[cfg(feature = "net")]
    pub(crate) fn of_server(
        id: String,
        name: Option<&str>,
        launch: &Launch,
        recording: Option<&Path>,
        linger: Option<Duration>,
    ) -> std::io::Result<Self> {
        let folder = registry::folder()?;
        let socket = registry::socket_path(&folder, &id);
        let token = registry::new_token()?;
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let listing = Listing {
            id,
            name: name.map(str::to_owned),
            pid: std::process::id(),
            buses: Vec::new(),
            command: launch.shown_command(),
            cwd: cwd.to_string_lossy().into_owned(),
            started_ns: Clock::start().wall_start_ns(),
            detached: linger.is_some(),
            recording: recording.map(|p| p.to_string_lossy().into_owned()),
            human_token: token.clone(),
            socket,
        };
        let doors = vec![(Door::unix(&listing.socket)?, Grants::own(&token))];
        Ok(Self { folder, listing, doors, alone: false, linger, turns: None })
    }

    /// Has turns and states found by these rules.
    #[cfg(feature = "net")]
    pub(crate) fn with_turns(self, turns: Option<TurnOptions>) -> Self {
        Self { turns, ..self }
    }

    /// Where it is listed, and how.
    #[cfg(feature = "net")]
    pub(crate) fn listing(&self) -> (PathBuf, Listing) {
        (self.folder.clone(), self.listing.clone())
    }

    /// The session's id.
    pub(crate) fn id(&self) -> &str {
        &self.listing.id
    }

    /// Serves the session, which runs now.
    pub(crate) fn serve(self, session: Session) -> Served {
        let late = LateRecordings::default();
        let listing = &self.listing;
        let about = About {
            id: listing.id.clone(),
            name: listing.name.clone(),
            command: listing.command.clone(),
            cwd: listing.cwd.clone(),
            detached: listing.detached,
            recording: listing.recording.clone(),
        };
        let record = late.starter(&session, listing);
        let options = LiveOptions {
            about,
            doors: self.doors,
            linger: self.linger,
            turns: self.turns,
            on_state: crate::hooks::on_state(),
            record: Some(record),
        };
        let handle = session.handle.clone();
        let opened = Live::start(session, options)
            .and_then(|live| Ok((live, Registered::new(&self.folder, listing)?)));
        match opened {
            Ok((live, registered)) => {
                if self.alone {
                    crate::detached_host::announce(&listing.id);
                }
                Served { late, live: Some(live), _registered: Some(registered), alone: self.alone }
            }
            Err(e) => {
                say(format_args!("nobody can join this session: {e}"));
                if self.linger.is_some() {
                    // With no terminal and no way in, nobody could ever see it.
                    handle.cancel();
                }
                // A program in somebody's terminal matters more than those who would watch it.
                Served { late, live: None, _registered: None, alone: false }
            }
        }
    }
}

/// Recordings that were begun while the session ran.
#[derive(Default)]
struct LateRecordings(Arc<Mutex<Vec<Recorder>>>);

impl LateRecordings {
    fn starter(&self, session: &Session, listing: &Listing) -> StartRecording {
        let (recorders, log, clock) = (Arc::clone(&self.0), session.log.clone(), session.clock);
        let (argv, cwd) = (listing.command.clone(), listing.cwd.clone());
        Box::new(move |request| {
            let mut recorders = recorders.lock().unwrap_or_else(PoisonError::into_inner);
            let text = |key: &str| request.get(key).and_then(Value::as_str);
            if let Some(path) = text("stop") {
                let at = recorders.iter().position(|r| r.path() == Path::new(path));
                let at = at.ok_or_else(|| format!("{path} is not being recorded"))?;
                let report = recorders.swap_remove(at).stop();
                return report.trouble.map_or(Ok(report.output_bytes), Err);
            }
            let path = text("path").filter(|p| p.starts_with('/')).ok_or("a recording needs a whole path")?;
            let flag = |key: &str| request.get(key).and_then(Value::as_bool).unwrap_or(false);
            let scrub = match request.get("scrub") {
                None | Some(Value::Null) => None,
                Some(list) => Some(scrub_rules(list, &cwd)?),
            };
            let if_exists = if flag("overwrite") { IfExists::Overwrite } else { IfExists::Refuse };
            let file = RecordingFile::open(Path::new(path), if_exists).map_err(|e| match &e {
                CreateError::Exists(_) | CreateError::Left(_) => {
                    format!("{e}: give another name, or say that it is to be overwritten")
                }
                _ => e.to_string(),
            })?;
            let quality = request.get("quality").and_then(Value::as_u64).unwrap_or(4).min(11);
            let options = RecordOptions {
                quality: u8::try_from(quality).unwrap_or(4),
                input: KeepInput::asked(flag("input"), flag("hidden_input")),
                argv: argv.iter().map(Into::into).collect(),
                cwd: Some(cwd.clone().into()),
                title: text("title").map(str::to_owned),
                index: tapdeck_host::LiveIndex::Off,
                scrub,
                ..RecordOptions::default()
            };
            let (recorder, from) =
                Recorder::start_late(file, log.clone(), clock, options).map_err(|e| e.to_string())?;
            recorders.push(recorder);
            Ok(from)
        })
    }
}

/// The rules of the packs that a late recording is to be masked by.
fn scrub_rules(list: &Value, cwd: &str) -> Result<Arc<Rules>, String> {
    let named = list.as_array().and_then(|l| l.iter().map(|p| p.as_str().map(str::to_owned)).collect());
    let named: Vec<String> = named.ok_or("scrub takes a list of packs")?;
    let rules = ScrubArgs::default().rules(&packs(&named), &Whose::ours(Some(cwd.to_owned())));
    rules.map_err(|(why, _)| why)
}

impl Drop for LateRecordings {
    fn drop(&mut self) {
        let recorders = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for recorder in recorders {
            let report = recorder.finish();
            if let Some(trouble) = report.trouble {
                say(format_args!("recording {}: {trouble}", report.path.display()));
            }
        }
    }
}
