//! The doors of a live session: one thread, one poll, any number of clients.
//!
//! A client speaks either the text bus or, to be attached, the tty wire; the first byte tells
//! which. The thread reads the session's log with a cursor of its own and looks at the session's
//! one model. It never holds the program up. Bytes that a client does not take wait in a bounded
//! queue of its own. When the queue is full, the client is told what it missed and gets the newest
//! screen.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_host::{Bell, Handle, Session};

use crate::door::Door;

mod access;
mod answer;
mod attach;
mod auth;
mod bus;
mod capture;
mod client;
mod connection;
mod drive;
mod frame;
mod greeting;
mod hub;
mod look;
mod pass;
mod paste;
mod queue;
mod send;
mod session;
mod turns;

pub(crate) use access::Access;
pub(crate) use queue::Queue;

pub use auth::Grants;
#[cfg(feature = "web")]
pub(crate) use auth::role_on_bus;
#[cfg(any(feature = "net", feature = "web"))]
pub(crate) use auth::same;
use hub::Hub;
#[cfg(feature = "net")]
pub(crate) use session::exit_of;
pub use turns::{Follow, NestedProgram, OnState, OnTurn, TurnOptions};

/// Why the process that hosts a session did not do what a client asked for. The message goes to the
/// client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The request makes no sense, or asks for a name or a file that is taken.
    #[error("{0}")]
    Refused(String),
    /// The host tried, and failed for this reason.
    #[error("{0}")]
    Failed(String),
    /// The host tried, and the system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What clients who may administer a session ask of the process that hosts it.
pub trait Admin: Send {
    /// Starts or stops a recording. Returns the offset in the output at which it begins or ends.
    ///
    /// # Errors
    /// When the recording cannot be started, or there is none to stop.
    fn record(&mut self, asked: &tapdeck_proto::bus::Rec) -> Result<u64, AdminError>;

    /// Gives the session another name.
    ///
    /// # Errors
    /// When the name is taken or makes no sense.
    fn rename(&mut self, name: &str) -> Result<(), AdminError>;
}

/// How a session is served.
#[derive(Default)]
#[non_exhaustive]
pub struct LiveOptions {
    /// What it says about itself.
    pub about: tapdeck_proto::bus::About,
    /// Where clients come in, and what each door grants.
    pub doors: Vec<(Door, Grants)>,
    /// Stay after the program's end until a client has looked, but no longer than this.
    pub linger: Option<Duration>,
    /// How turns and states are found, if they are.
    pub turns: Option<TurnOptions>,
    /// Called when the program's state has changed.
    pub on_state: Option<OnState>,
    /// Called when a turn is over.
    pub on_turn: Option<OnTurn>,
    /// Late recordings and the session's name, if they can be changed.
    pub admin: Option<Box<dyn Admin>>,
}

impl LiveOptions {
    /// Sets what the session says about itself.
    #[must_use]
    pub fn about(mut self, about: tapdeck_proto::bus::About) -> Self {
        self.about = about;
        self
    }

    /// Sets where clients come in, and what each door grants.
    #[must_use]
    pub fn doors(mut self, doors: Vec<(Door, Grants)>) -> Self {
        self.doors = doors;
        self
    }

    /// Stays after the program's end until a client has looked, but no longer than this.
    #[must_use]
    pub fn linger(mut self, linger: impl Into<Option<Duration>>) -> Self {
        self.linger = linger.into();
        self
    }

    /// Finds turns and states, in this way.
    #[must_use]
    pub fn turns(mut self, turns: impl Into<Option<TurnOptions>>) -> Self {
        self.turns = turns.into();
        self
    }

    /// Sets what is called when the program's state has changed.
    #[must_use]
    pub fn on_state(mut self, on_state: impl Into<Option<OnState>>) -> Self {
        self.on_state = on_state.into();
        self
    }

    /// Sets what is called when a turn is over.
    #[must_use]
    pub fn on_turn(mut self, on_turn: impl Into<Option<OnTurn>>) -> Self {
        self.on_turn = on_turn.into();
        self
    }

    /// Lets clients start late recordings and rename the session.
    #[must_use]
    pub fn admin(mut self, admin: Box<dyn Admin>) -> Self {
        self.admin = Some(admin);
        self
    }
}

impl std::fmt::Debug for LiveOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveOptions")
            .field("about", &self.about)
            .field("doors", &self.doors)
            .field("linger", &self.linger)
            .field("turns", &self.turns)
            .finish_non_exhaustive()
    }
}

/// A session that is being served. Dropping it tells the clients that the session is over and ends
/// the service. With [`LiveOptions::linger`], the service ends only after a client has seen the
/// last screen.
pub struct Live {
    stop: Arc<AtomicBool>,
    dismissal: Dismissal,
    over: Bell,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Live {
    /// Serves the session on a thread of its own.
    pub fn start(session: Session, options: LiveOptions) -> io::Result<Self> {
        let bell = Bell::new()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut hub = Hub::new(session, options, bell.clone(), Arc::clone(&stop));
        let (handle, over) = (hub.session.access.driver().clone(), Bell::new()?);
        let ended = RingAtEnd(over.clone());
        let builder = std::thread::Builder::new().name("tapdeck-doors".into());
        let serve = move || {
            let _ended = ended;
            hub.run();
        };
        let thread = builder.spawn(serve)?;
        Ok(Self { stop, dismissal: Dismissal { handle, bell }, over, thread: Some(thread) })
    }

    /// Ends the session. With [`LiveOptions::linger`], clients may still connect to see the last
    /// screen.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Release);
        self.dismissal.bell.ring();
    }

    /// Whether the service has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Readable once that is so, or about to be.
    pub fn over(&self) -> BorrowedFd<'_> {
        self.over.fd()
    }

    /// Ends the service without waiting for clients.
    pub fn dismiss(&self) {
        self.dismissal.dismiss();
    }

    /// Returns what ends the lingering from another thread.
    pub fn dismissal(&self) -> Dismissal {
        self.dismissal.clone()
    }
}

/// Ends the lingering of a session: see [`LiveOptions::linger`].
#[derive(Debug, Clone)]
pub struct Dismissal {
    handle: Handle,
    bell: Bell,
}

impl Dismissal {
    /// Ends the lingering, also of a session that is still to end.
    pub fn dismiss(&self) {
        self.handle.dismiss();
        self.bell.ring();
    }
}

/// Rings however the thread that has it ends.
struct RingAtEnd(Bell);

impl Drop for RingAtEnd {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked serves no client; its panic has been reported.
            let _ = thread.join();
        }
    }
}
