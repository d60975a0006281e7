//! What makes a session live: its socket, its entry in the list of sessions, further buses, and
//! recordings that begin while it runs.
//!
//! [`crate::Session`] does all of this by itself. [`Doors`] is for programs that run a session
//! through [`Launch`] on their own.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapdeck_core::Offset;
use tapdeck_core::scrub::Rules;
use tapdeck_host::registry::{self, ClaimedName, Registered};
use tapdeck_host::{
    Clock, CreateError, IfExists, KeepInput, Launch, LiveIndex, RecordOptions, Recorder, RecordingFile,
    Session,
};
use tapdeck_proto::bus::Rec;
use tapdeck_serve::client::about;
use tapdeck_serve::door::Door;
use tapdeck_serve::live::{Admin, AdminError, Dismissal, Live, LiveOptions};
use tapdeck_tape::encryption::Recipients;

pub use tapdeck_host::registry::Listing;
pub use tapdeck_serve::door::{Address, AddressError};
pub use tapdeck_serve::live::{Grants, OnState, OnTurn, TurnOptions};

use crate::scrub::{Owner, Selection};

/// The longest name of a session, in characters.
pub const NAME_LIMIT: usize = 64;

/// Checks a name for a session.
///
/// # Errors
/// When it is blank or too long, or has control characters.
pub fn check_name(name: &str) -> Result<(), DoorError> {
    match name.chars().count() {
        _ if name.trim().is_empty() => Err(DoorError::Blank),
        _ if name.chars().any(tapdeck_term::is_unsafe) => Err(DoorError::Control),
        1..=NAME_LIMIT => Ok(()),
        n => Err(DoorError::Name(n)),
    }
}

/// A session that could not be made live.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// Its name is empty, or blanks only.
    #[error("a name cannot be blank")]
    Blank,
    /// Its name has control characters.
    #[error("a name cannot contain control characters")]
    Control,
    /// Its name is too long.
    #[error("a name has at most {NAME_LIMIT} characters, and not {0}")]
    Name(usize),
    /// Another session has its name.
    #[error("the name {name:?} is taken{}", by.as_ref().map(|id| format!(" by session {id}")).unwrap_or_default())]
    Taken {
        /// The name.
        name: String,
        /// The id of the session that has it, once it can be found.
        by: Option<String>,
    },
    /// An address could not be bound.
    #[error("{address}: {source}")]
    Bind {
        /// Which.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// Its own socket or its entry in the list of sessions could not be made.
    #[error("{0}")]
    Own(#[source] io::Error),
}

/// An address at which a session's bus is served beside its own socket.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bus {
    address: Address,
    grants: Option<Grants>,
    anywhere: bool,
}

impl Bus {
    /// Serves the bus at this address, for processes on this machine.
    pub fn new(address: Address) -> Self {
        Self { address, grants: None, anywhere: false }
    }

    /// Sets what its clients may do; by default, what clients of the session's own socket may.
    #[must_use]
    pub fn grants(mut self, grants: impl Into<Option<Grants>>) -> Self {
        self.grants = grants.into();
        self
    }

    /// Sets whether other machines may reach it. What passes is not encrypted.
    #[must_use]
    pub fn anywhere(mut self, anywhere: bool) -> Self {
        self.anywhere = anywhere;
        self
    }
}

/// Is told of trouble that does not end the session, in one sentence.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// How a session is made live.
#[derive(Default)]
#[non_exhaustive]
pub struct DoorOptions {
    /// Its id; by default the id of this process, with a number behind it where that is taken.
    pub id: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// Further addresses for its bus.
    pub buses: Vec<Bus>,
    /// Where it is recorded, for the list of sessions.
    pub recording: Option<PathBuf>,
    /// It has no terminal of its own.
    pub detached: bool,
    /// Stay reachable after the program's end until a client has looked, but no longer than this.
    pub linger: Option<Duration>,
    /// How turns and states are found, if they are.
    pub turns: Option<TurnOptions>,
    /// Called when the program's state has changed.
    pub on_state: Option<OnState>,
    /// Called when a turn is over.
    pub on_turn: Option<OnTurn>,
    /// Told of trouble with late recordings.
    pub warn: Option<Warn>,
}

impl fmt::Debug for DoorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorOptions")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("buses", &self.buses)
            .field("recording", &self.recording)
            .field("detached", &self.detached)
            .field("linger", &self.linger)
            .finish_non_exhaustive()
    }
}

/// The doors of a session that is about to start. They are bound before the program runs, so that
/// nothing is missed.
pub struct Doors {
    folder: PathBuf,
    listing: Listing,
    name: Option<ClaimedName>,
    doors: Vec<(Door, Grants)>,
    options: DoorOptions,
}

impl fmt::Debug for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").field("id", &self.listing.id).finish_non_exhaustive()
    }
}

impl Doors {
    /// Claims the session's name, and binds its own socket and every further address.
    ///
    /// # Errors
    /// When an address cannot be bound, or the name makes no sense or is taken.
    pub fn open(launch: &Launch, options: DoorOptions) -> Result<Self, DoorError> {
        let folder = registry::folder().map_err(DoorError::Own)?;
        let name = options.name.as_deref().map(|name| claim_name(&folder, name)).transpose()?;
        let token = registry::new_token().map_err(DoorError::Own)?;
        let (id, own) = own_door(&folder, options.id.as_deref()).map_err(DoorError::Own)?;
        let mut doors = vec![(own, Grants::own(&token))];
        let mut buses = Vec::new();
        for bus in &options.buses {
            let grants = bus.grants.clone().unwrap_or_else(|| Grants::own(&token));
            let bound = match &bus.address {
                Address::Tcp(tcp) if bus.anywhere => Door::tcp_anywhere(*tcp),
                address => Door::bind(address),
            };
            let door = bound.map_err(|source| DoorError::Bind { address: bus.address.clone(), source })?;
            buses.push(door.address().to_string());
            doors.push((door, grants));
        }
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let recording =
            options.recording.as_ref().map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()));
        let listing = Listing {
            socket: registry::socket_path(&folder, &id),
            id,
            name: options.name.clone(),
            pid: std::process::id(),
            buses,
            command: launch.shown_command(),
            cwd: cwd.to_string_lossy().into_owned(),
            started: Clock::start().wall_start(),
            detached: options.detached,
            recording: recording.map(|p| p.to_string_lossy().into_owned()),
            human_token: token,
        };
        Ok(Self { folder, listing, name, doors, options })
    }

    /// The folder of the session's entry, and the entry.
    pub fn listing(&self) -> (&Path, &Listing) {
        (&self.folder, &self.listing)
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.listing.id
    }

    /// Serves the session, which runs now, on a thread of its own.
    ///
    /// # Errors
    /// When the thread or the entry in the list of sessions cannot be made.
    pub fn serve(self, session: Session) -> io::Result<Served> {
        let listing = &self.listing;
        let late = LateRecordings::new(&session, listing, self.options.warn);
        let entry = Entry { listing: listing.clone(), name: self.name, registered: None };
        let entry = Arc::new(Mutex::new(entry));
        let admin = Office { late: late.clone(), folder: self.folder.clone(), entry: Arc::clone(&entry) };
        let options = LiveOptions::default()
            .about(about(listing))
            .doors(self.doors)
            .linger(self.options.linger)
            .turns(self.options.turns)
            .on_state(self.options.on_state)
            .on_turn(self.options.on_turn)
            .admin(Box::new(admin));
        let live = Live::start(session, options)?;
        // A client may have renamed the session already.
        let mut listed = lock(&entry);
        let registered = Registered::new(&self.folder, &listed.listing);
        if registered.is_err() {
            // A session that no client can find must not wait for one.
            live.dismiss();
        }
        listed.registered = Some(registered?);
        drop(listed);
        Ok(Served { late, live, _listed: Listed(entry) })
    }
}

/// Claims a name for a session.
fn claim_name(folder: &Path, name: &str) -> Result<ClaimedName, DoorError> {
    check_name(name)?;
    // Sessions of older versions have names without a claim. An id is found before a name.
    let has = |l: &Listing| (l.name.as_deref() == Some(name) || l.id == name) && registry::is_alive(l.pid);
    let found = || Ok(registry::listed(folder)?.into_iter().find(has).map(|l| l.id));
    let claimed = ClaimedName::claim(folder, name).map_err(DoorError::Own)?;
    let taken = |by| DoorError::Taken { name: name.to_owned(), by };
    match (claimed, found().map_err(DoorError::Own)?) {
        (Some(claimed), None) => Ok(claimed),
        (_, by) => Err(taken(by)),
    }
}

/// A session's place in the list of sessions.
struct Entry {
    listing: Listing,
    name: Option<ClaimedName>,
    registered: Option<Registered>,
}

/// Takes the session off the list and gives its name back when dropped, even while a thread that
/// ends late still holds the entry.
struct Listed(Arc<Mutex<Entry>>);

impl Drop for Listed {
    fn drop(&mut self) {
        let mut entry = lock(&self.0);
        (entry.registered, entry.name) = (None, None);
    }
}

fn lock(entry: &Mutex<Entry>) -> MutexGuard<'_, Entry> {
    entry.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what clients ask of the process that hosts the session.
struct Office {
    late: LateRecordings,
    folder: PathBuf,
    entry: Arc<Mutex<Entry>>,
}

impl Admin for Office {
    fn record(&mut self, asked: &Rec) -> Result<u64, AdminError> {
        self.late.answer(asked)
    }

    fn rename(&mut self, name: &str) -> Result<(), AdminError> {
        let mut entry = lock(&self.entry);
        if entry.listing.name.as_deref() == Some(name) {
            return Ok(());
        }
        let claimed = claim_name(&self.folder, name).map_err(|e| AdminError::Refused(e.to_string()))?;
        let listing = Listing { name: Some(name.to_owned()), ..entry.listing.clone() };
        if let Some(registered) = &entry.registered {
            let failed = |e| AdminError::Failed(format!("cannot rename the session: {e}"));
            registered.update(&listing).map_err(failed)?;
        }
        (entry.listing, entry.name) = (listing, Some(claimed));
        Ok(())
    }
}

/// Binds a session's own socket: under the id that it is to have, or the first that is free.
fn own_door(folder: &Path, id: Option<&str>) -> io::Result<(String, Door)> {
    let bind = |id: &str| Door::unix(&registry::socket_path(folder, id));
    if let Some(id) = id {
        return Ok((id.to_owned(), bind(id)?));
    }
    // Unique among the processes of this machine; a number behind it where one process serves
    // several.
    let pid = std::process::id();
    let mut tries = 1;
    loop {
        let id = if tries == 1 { pid.to_string() } else { format!("{pid}-{tries}") };
        match bind(&id) {
            Ok(door) => return Ok((id, door)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && tries < 10_000 => tries += 1,
            Err(e) => return Err(e),
        }
    }
}

/// What serves a running session. Dropping it finishes late recordings, tells clients that the
/// session is over, and waits for one to look where the session lingers.
pub struct Served {
    // The order of the fields is the order in which they end.
    late: LateRecordings,
    live: Live,
    _listed: Listed,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Served {
    /// Finishes late recordings and tells clients that the session is over. A session that lingers
    /// can still be looked at.
    pub fn end(&mut self) {
        self.late.finish();
        self.live.end();
    }

    /// Whether clients are no longer served.
    pub fn is_over(&self) -> bool {
        self.live.is_over()
    }

    /// Readable once clients are no longer served, or are about to be.
    pub fn over(&self) -> BorrowedFd<'_> {
        self.live.over()
    }

    /// Ends the lingering.
    pub fn dismiss(&self) {
        self.live.dismiss();
    }

    pub(crate) fn dismissal(&self) -> Dismissal {
        self.live.dismissal()
    }

    pub(crate) fn recordings(&self) -> LateRecordings {
        self.late.clone()
    }
}

/// Recordings that were begun while the session ran. Its clones are the same ones.
#[derive(Clone)]
pub(crate) struct LateRecordings(Arc<Late>);

struct Late {
    recorders: Mutex<Vec<Recorder>>,
    log: tapdeck_host::SharedLog,
    clock: Clock,
    argv: Vec<String>,
    cwd: String,
    warn: Option<Warn>,
}

impl LateRecordings {
    fn new(session: &Session, listing: &Listing, warn: Option<Warn>) -> Self {
        Self(Arc::new(Late {
            recorders: Mutex::default(),
            log: session.log.clone(),
            clock: session.clock,
            argv: listing.command.clone(),
            cwd: listing.cwd.clone(),
            warn,
        }))
    }

    fn recorders(&self) -> MutexGuard<'_, Vec<Recorder>> {
        self.0.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a recording; returns the byte of the output at which it begins.
    pub(crate) fn start(&self, file: RecordingFile, options: RecordOptions) -> io::Result<Offset> {
        let options = options
            .argv(self.0.argv.iter().map(Into::into).collect())
            .cwd(Some(self.0.cwd.clone().into()))
            .index(LiveIndex::Off);
        let (recorder, from) = Recorder::start_late(file, self.0.log.clone(), self.0.clock, options)?;
        self.recorders().push(recorder);
        Ok(from)
    }

    /// Starts or stops a recording, as a client asks.
    fn answer(&self, request: &Rec) -> Result<u64, AdminError> {
        if let Some(path) = &request.stop {
            let mut recorders = self.recorders();
            let at = recorders.iter().position(|r| r.path() == Path::new(path));
            let at = at.ok_or_else(|| AdminError::Refused(format!("{path} is not being recorded")))?;
            let report = recorders.swap_remove(at).stop();
            return report.trouble.map_or(Ok(report.output_bytes), |why| Err(AdminError::Failed(why)));
        }
        let path = request.path.as_ref().filter(|p| p.starts_with('/'));
        let path = path.ok_or_else(|| AdminError::Refused("a recording needs a whole path".to_owned()))?;
        let scrub =
            request.scrub.as_ref().map(|packs| scrub_rules(packs.clone(), &self.0.cwd)).transpose()?;
        let encrypt = request.encrypt.as_deref().map(Recipients::parse).transpose();
        let encrypt = encrypt.map_err(|e| AdminError::Refused(format!("the public keys: {e}")))?;
        let if_exists = if request.overwrite { IfExists::Overwrite } else { IfExists::Refuse };
        let file = RecordingFile::open(Path::new(path), if_exists).map_err(|e| match &e {
            CreateError::NoFolder { .. } => AdminError::Refused(format!("{e}; create it first")),
            CreateError::Exists(_) | CreateError::Left(_) => {
                AdminError::Refused(format!("{e}: give another name, or say that it is to be overwritten"))
            }
            _ => AdminError::Failed(e.to_string()),
        })?;
        let quality = request.quality.unwrap_or(4).min(11);
        let options = RecordOptions::default()
            .quality(u8::try_from(quality).unwrap_or(4))
            .input(KeepInput::asked(request.input, request.hidden_input))
            .title(request.title.clone())
            .tags(request.tags.clone())
            .encrypt(encrypt)
            .scrub(scrub);
        Ok(self.start(file, options)?.0)
    }

    fn finish(&self) {
        let recorders = std::mem::take(&mut *self.recorders());
        for recorder in recorders {
            let report = recorder.finish();
            if let (Some(trouble), Some(warn)) = (report.trouble, &self.0.warn) {
                warn(&format!("recording {}: {trouble}", report.path.display()));
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.late.finish();
    }
}

/// The rules of the packs that a late recording is to be masked by.
fn scrub_rules(packs: Vec<String>, cwd: &str) -> Result<Arc<Rules>, AdminError> {
    let selection = Selection::default().packs(packs);
    let owner = Owner::of_process(Some(cwd.to_owned()));
    selection.load(&owner).map_err(|e| AdminError::Refused(e.to_string()))
}
