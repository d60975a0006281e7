//! The Agent Client Protocol, version 1, on two streams: for an editor, the program of a session is
//! an agent.
//!
//! `peer` reads and writes the messages, `prompt` takes one prompt to the end of its answer, and
//! `telling` makes updates of an answer that grows. Everything goes over the bus of the session, as
//! a bot under the client's name, so a person can take over at any time. Prompts run on threads;
//! the thread that reads never waits for a session's program.

mod content;
mod peer;
mod prompt;
mod telling;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{Shutdown, shutdown};
use serde_json::{Value, json};
use tapdeck_host::registry::Listing;
use tapdeck_proto::acp::{
    AgentCapabilities, Chunk, Implementation, InSession, Initialize, Initialized, McpCapabilities,
    NewSession, OpenSession, Prompt, PromptCapabilities, Prompted, SessionCapabilities, SessionUpdate,
    StopReason, Update, VERSION, code,
};
use tapdeck_proto::bus::Turns;

use crate::client::{ANSWER, Bus, ClientError, Role, connect_to_watch, name_on_bus};
use peer::{Incoming, Peer, RpcError, params, value};
use telling::Telling;

/// The most sessions of one client.
const SESSIONS: usize = 16;

/// A session that was started for the client.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct Started {
    /// The session.
    pub listing: Listing,
    /// Ends its program.
    pub stop: Box<dyn FnOnce() + Send>,
}

/// Starts a session in a folder. The error is a message for the client.
pub type Start = Box<dyn Fn(&Path) -> Result<Started, String> + Send>;

/// Says how a person gets to the terminal of a session, by its id.
pub type Attach = fn(&str) -> String;

/// Which sessions the client gets.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub enum Programs {
    /// This one, which goes on without the client.
    Live(Box<Listing>),
    /// New ones, which end with the client.
    Started(Start),
}

/// What ends the serving.
#[derive(Debug)]
enum End {
    /// The client has closed its stream.
    Closed(io::Result<()>),
    /// A stop was asked for.
    Stopped,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Stopper(Sender<End>);

impl Stopper {
    /// Ends it. The sessions that were started for the client end, too.
    pub fn stop(&self) {
        // It may have ended.
        let _ = self.0.send(End::Stopped);
    }
}

/// An agent for one client.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct AcpServer {
    programs: Programs,
    attach: Attach,
    end: (Sender<End>, Receiver<End>),
}

impl AcpServer {
    /// Serves these sessions. `attach` says how a person gets to the terminal of one, by its id.
    pub fn new(programs: Programs, attach: Attach) -> Self {
        Self { programs, attach, end: channel() }
    }

    /// Returns what ends it from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.end.0.clone())
    }

    /// Serves a client until it closes its stream or a stop is asked for. Sessions that were
    /// started for it end then.
    ///
    /// # Errors
    /// When there is no thread to read on, or the client's stream fails.
    pub fn serve(
        self,
        from: impl BufRead + Send + 'static,
        to: impl Write + Send + 'static,
    ) -> io::Result<()> {
        let sessions = Arc::new(Mutex::new(HashMap::new()));
        let peer = Arc::new(Peer::new(to));
        let mut desk = Desk {
            peer: Arc::clone(&peer),
            programs: self.programs,
            attach: self.attach,
            client: None,
            sessions: Arc::clone(&sessions),
        };
        let (tell, end) = self.end;
        let mut from = from;
        let read = move || {
            let closed = loop {
                match peer::read(&mut from) {
                    Ok(Some(message)) => desk.take(message),
                    Ok(None) => break Ok(()),
                    Err(e) => break Err(e),
                }
            };
            // A stop may have been faster.
            let _ = tell.send(End::Closed(closed));
        };
        std::thread::Builder::new().name("tapdeck-acp".into()).spawn(read)?;
        let end = end.recv().unwrap_or(End::Stopped);
        peer.hang_up();
        let open: Vec<Arc<Open>> = lock(&sessions).drain().map(|(_, session)| session).collect();
        open.iter().for_each(|session| session.stop());
        match end {
            End::Closed(closed) => closed,
            End::Stopped => Ok(()),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session of the client.
struct Open {
    listing: Listing,
    /// The client's name on the bus.
    client: String,
    attach: Attach,
    /// What the client's user should know, told with the next answer.
    notes: Mutex<Vec<String>>,
    /// A prompt is on its way.
    busy: AtomicBool,
    cancelled: AtomicBool,
    /// The connection of a delivery, which is shut when that is cancelled.
    line: Mutex<Option<OwnedFd>>,
    questions: AtomicU64,
    stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Open {
    fn new(listing: Listing, client: String, attach: Attach, stop: Option<Box<dyn FnOnce() + Send>>) -> Self {
        Self {
            listing,
            client,
            attach,
            notes: Mutex::default(),
            busy: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            line: Mutex::default(),
            questions: AtomicU64::new(0),
            stop: Mutex::new(stop),
        }
    }

    fn id(&self) -> &str {
        &self.listing.id
    }

    /// Joins the session as a bot that may type.
    fn join(&self) -> Result<Bus, ClientError> {
        connect_to_watch(&self.listing, &self.client, Role::Bot)
    }

    fn tell(&self, peer: &Peer, update: &Update) {
        peer.notify("session/update", &SessionUpdate { session_id: self.id(), update });
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }

    fn next_question(&self) -> String {
        format!("question-{}", self.questions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Cancels the prompt that is on its way.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(line) = lock(&self.line).take() {
            // A connection that has ended needs no end.
            let _ = shutdown(line, Shutdown::Both);
        }
    }

    /// Has this connection shut when the prompt is cancelled, as long as the guard lives.
    fn while_busy(&self, bus: &Bus) -> io::Result<Delivering<'_>> {
        *lock(&self.line) = Some(bus.fd().try_clone_to_owned()?);
        if self.is_cancelled() {
            self.cancel();
        }
        Ok(Delivering(self))
    }

    /// Ends the program, if it was started for the client.
    fn stop(&self) {
        let stop = lock(&self.stop).take();
        if let Some(stop) = stop {
            stop();
        }
    }
}

/// A delivery that can be cut short.
struct Delivering<'a>(&'a Open);

impl Drop for Delivering<'_> {
    fn drop(&mut self) {
        lock(&self.0.line).take();
    }
}

impl From<io::Error> for RpcError {
    fn from(e: io::Error) -> Self {
        Self::failed(e.to_string())
    }
}

/// Takes the client's messages.
struct Desk {
    peer: Arc<Peer>,
    programs: Programs,
    attach: Attach,
    /// The client's name on the bus, once it has introduced itself.
    client: Option<String>,
    sessions: Arc<Mutex<HashMap<String, Arc<Open>>>>,
}

impl Desk {
    fn take(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                if let Some(result) = self.answer(&id, &method, params).transpose() {
                    self.peer.respond(&id, result);
                }
            }
            Incoming::Notification { method, params } => {
                let named = (method == "session/cancel").then(|| peer::params::<InSession>(params));
                if let Some(Ok(named)) = named
                    && let Ok(session) = self.session(&named.session_id)
                    && session.busy.load(Ordering::SeqCst)
                {
                    session.cancel();
                }
            }
            Incoming::Response { id, result } => self.peer.answered(&id, result),
            Incoming::Malformed { id, error } => self.peer.respond(&id, Err(error)),
        }
    }

    /// Answers a request; later when that takes time.
    fn answer(&mut self, id: &Value, method: &str, given: Value) -> Result<Option<Value>, RpcError> {
        if method == "initialize" {
            return self.initialize(&params(given)?).map(Some);
        }
        let Some(client) = self.client.clone() else {
            return Err(RpcError::new(code::REQUEST, "the first request is initialize"));
        };
        match method {
            "session/new" => self.open(&params(given)?, client).map(Some),
            "session/load" => self.reopen(&params(given)?, client, true).map(Some),
            "session/resume" => self.reopen(&params(given)?, client, false).map(Some),
            "session/close" => {
                let named: InSession = params(given)?;
                let session = self.session(&named.session_id)?;
                lock(&self.sessions).remove(&named.session_id);
                if session.busy.load(Ordering::SeqCst) {
                    session.cancel();
                }
                session.stop();
                Ok(Some(json!({})))
            }
            "session/prompt" => self.prompt(id, &params(given)?).map(|()| None),
            _ => Err(RpcError::new(code::METHOD, format!("there is no method {method:?}"))),
        }
    }

    fn initialize(&mut self, asked: &Initialize) -> Result<Value, RpcError> {
        if self.client.is_some() {
            return Err(RpcError::new(code::REQUEST, "the connection is initialized already"));
        }
        self.client = Some(name_on_bus("acp", asked.client()));
        let prompt = PromptCapabilities { embedded_context: true, ..PromptCapabilities::default() };
        Ok(value(&Initialized {
            protocol_version: VERSION,
            agent_capabilities: AgentCapabilities {
                load_session: true,
                prompt_capabilities: prompt,
                mcp_capabilities: McpCapabilities::default(),
                session_capabilities: SessionCapabilities::default(),
            },
            agent_info: Implementation {
                name: "tapdeck",
                title: "Tapdeck",
                version: env!("CARGO_PKG_VERSION"),
            },
            auth_methods: [],
        }))
    }

    fn session(&self, id: &str) -> Result<Arc<Open>, RpcError> {
        let session = lock(&self.sessions).get(id).cloned();
        session.ok_or_else(|| RpcError::new(code::NOT_FOUND, format!("no session {id:?} is open here")))
    }

    /// Answers `session/new`.
    fn open(&mut self, asked: &OpenSession, client: String) -> Result<Value, RpcError> {
        let folder = Path::new(&asked.cwd);
        if !folder.is_absolute() || !folder.is_dir() {
            return Err(RpcError::params(format!("{}: no such folder", asked.cwd)));
        }
        if lock(&self.sessions).len() >= SESSIONS {
            return Err(RpcError::new(code::REQUEST, "too many sessions are open: close one"));
        }
        let session = match &self.programs {
            Programs::Live(listing) if lock(&self.sessions).contains_key(&listing.id) => {
                let why = format!("there is one session here, {}, and it is open already", listing.id);
                return Err(RpcError::new(code::REQUEST, why));
            }
            Programs::Live(listing) => Open::new((**listing).clone(), client, self.attach, None),
            Programs::Started(start) => {
                let Started { listing, stop } = start(folder).map_err(RpcError::failed)?;
                Open::new(listing, client, self.attach, Some(stop))
            }
        };
        Ok(value(&NewSession { session_id: self.keep(session, asked)?.id().to_owned() }))
    }

    /// Answers `session/load` and `session/resume`.
    fn reopen(&mut self, asked: &OpenSession, client: String, replay: bool) -> Result<Value, RpcError> {
        let id = asked.session_id.as_deref().ok_or_else(|| RpcError::params("missing field `sessionId`"))?;
        let session = match (self.session(id), &self.programs) {
            (Ok(session), _) => session,
            (Err(_), Programs::Live(listing)) if listing.id == id => {
                self.keep(Open::new((**listing).clone(), client, self.attach, None), asked)?
            }
            (Err(e), _) => return Err(e),
        };
        if session.busy.load(Ordering::SeqCst) {
            return Err(RpcError::new(code::REQUEST, "a prompt is on its way"));
        }
        if replay {
            self.replay(&session)?;
        }
        Ok(json!({}))
    }

    /// Keeps a session that can be joined.
    fn keep(&self, session: Open, asked: &OpenSession) -> Result<Arc<Open>, RpcError> {
        if let Err(e) = session.join() {
            session.stop();
            return Err(e.into());
        }
        let mut notes = Vec::new();
        let servers: Vec<&str> =
            asked.mcp_servers.iter().flatten().map(|server| server.name.as_str()).collect();
        if !servers.is_empty() {
            notes.push(format!(
                "[Not passed on to the program: the MCP servers {}. Configure them in the program itself.]",
                servers.join(", ")
            ));
        }
        let folder = &session.listing.cwd;
        if Path::new(folder) != Path::new(&asked.cwd) {
            notes.push(format!("[The program of this session was started in {folder}.]"));
        }
        if asked.additional_directories.as_ref().is_some_and(|more| !more.is_empty()) {
            notes.push("[Not passed on to the program: the additional directories.]".to_owned());
        }
        *lock(&session.notes) = notes;
        let session = Arc::new(session);
        lock(&self.sessions).insert(session.id().to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// Tells the turns that the session keeps.
    fn replay(&self, session: &Open) -> Result<(), RpcError> {
        let mut bus = session.join()?;
        let turns = bus.request(&Turns { limit: None, whole: true }, ANSWER)?;
        let number = |id: &str| id.rsplit(':').next().and_then(|number| number.parse::<u64>().ok());
        let missing = turns.first().and_then(|turn| number(&turn.turn_id)).map_or(0, |first| first - 1);
        if missing > 0 {
            let note = format!("[{missing} earlier turns are in the recording, if there is one.]");
            session.tell(&self.peer, &Update::AgentMessageChunk(Chunk::text(note)));
        }
        for turn in turns {
            let Some(detail) = &turn.detail else { continue };
            let asked = tapdeck_term::printable_lines(&detail.input);
            session.tell(&self.peer, &Update::UserMessageChunk(Chunk::text(asked)));
            let mut telling = Telling::new(&turn.turn_id);
            let parts = prompt::parts_of(&mut bus, &turn.turn_id)?;
            let mut updates =
                if parts.is_empty() { telling.rest(&detail.text) } else { telling.parts(parts) };
            updates.extend(telling.end(turn.interrupted));
            updates.iter().for_each(|update| session.tell(&self.peer, update));
        }
        Ok(())
    }

    /// Takes `session/prompt` to a thread, which responds.
    fn prompt(&self, id: &Value, asked: &Prompt) -> Result<(), RpcError> {
        let session = self.session(&asked.session_id)?;
        let text = content::text_of(&asked.prompt)?;
        if session.busy.swap(true, Ordering::SeqCst) {
            return Err(RpcError::new(code::REQUEST, "a prompt is on its way"));
        }
        session.cancelled.store(false, Ordering::SeqCst);
        let (peer, id) = (Arc::clone(&self.peer), id.clone());
        let working = Arc::clone(&session);
        let work = move || {
            let stopped = match prompt::prompt(&peer, &working, &text) {
                // What breaks because it was cancelled is no failure.
                Err(_) if working.is_cancelled() => Ok(StopReason::Cancelled),
                stopped => stopped,
            };
            working.busy.store(false, Ordering::SeqCst);
            peer.respond(&id, stopped.map(|stop_reason| value(&Prompted { stop_reason })));
        };
        let thread = std::thread::Builder::new().name("tapdeck-acp-prompt".into()).spawn(work);
        if let Err(e) = thread {
            session.busy.store(false, Ordering::SeqCst);
            return Err(e.into());
        }
        Ok(())
    }
}
