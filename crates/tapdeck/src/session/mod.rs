//! A session of this process: a program on a terminal, driven by calls.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::turns::AgentState;
use tapdeck_core::{Exit, PartyId, Refused, Role, StickError, WinSize};
use tapdeck_host::{Clock, Ended, Glass, Handle, LaunchError, Report, SharedLog, TapReader, signals};
use tapdeck_term::keys::{self, KeyPress};
use tapdeck_term::{Modes, Term};

use crate::cond::Seen;
use crate::{Cond, Error, Result, Screen};

mod builder;
mod updates;

#[cfg(feature = "net")]
pub use builder::Credentials;
pub use builder::SessionBuilder;
#[cfg(feature = "live")]
pub(crate) use updates::RemoteUpdates;
pub use updates::{Update, Updates};

/// How long input waits for a program that is not reading.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a program that is not reading is asked again.
const RETRY: Duration = Duration::from_millis(20);

/// A program that runs on a terminal of its own, on a thread of this process.
///
/// Clones are the same session; any thread may use one. Dropping the last clone stops the program.
///
/// ```
/// use std::time::Duration;
/// use tapdeck::{Session, row};
///
/// # fn main() -> tapdeck::Result<()> {
/// # let registry = tempfile::tempdir().unwrap();
/// let session = Session::builder(["sh"]).size(80, 24).spawn()?;
/// session.type_line("echo answer $((6*7))")?;
/// session.wait_for(row("^answer 42$"), Duration::from_secs(10))?;
/// println!("{}", session.screen());
/// session.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    id: Option<String>,
    handle: Handle,
    log: SharedLog,
    glass: Glass,
    clock: Clock,
    /// The party that the session's own methods type as.
    own: OnceLock<(PartyId, Arc<str>)>,
    done: Arc<Done>,
    thread: Mutex<Option<JoinHandle<()>>>,
    #[cfg(feature = "live")]
    late: Option<crate::live::LateRecordings>,
    #[cfg(feature = "live")]
    dismissal: Option<tapdeck_serve::live::Dismissal>,
}

/// A session that has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// How the program ended.
    pub exit: Exit,
    /// Why the session ended.
    pub ended: Ended,
    /// What became of its recording.
    pub recording: Option<Arc<Report>>,
}

/// How the session's thread tells of its end.
#[derive(Default)]
struct Done {
    result: Mutex<Option<Result<Finished, Arc<LaunchError>>>>,
    changed: Condvar,
}

impl Done {
    fn set(&self, result: Result<Finished, Arc<LaunchError>>) {
        *self.lock() = Some(result);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<Finished, Arc<LaunchError>>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end, this long at most.
    fn wait(&self, within: Option<Duration>) -> Option<Result<Finished>> {
        let over = |result: &mut Option<_>| result.is_none();
        let guard = self.lock();
        let guard = match within {
            None => self.changed.wait_while(guard, over).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.changed.wait_timeout_while(guard, limit, over).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        guard.clone().map(|result| result.map_err(Error::Launch))
    }
}

impl Session {
    /// Describes a session for this command: the program and its arguments.
    pub fn builder<A: Into<std::ffi::OsString>>(command: impl IntoIterator<Item = A>) -> SessionBuilder {
        SessionBuilder::new(command)
    }

    /// The id by which other processes reach it; `None` when it is not listed.
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Types text; line ends are the Enter key.
    ///
    /// # Errors
    /// When the program has ended, does not read, or another party holds the stick.
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.own()?.type_text(text)
    }

    /// Types text and presses Enter.
    ///
    /// # Errors
    /// As [`Session::type_text`].
    pub fn type_line(&self, text: &str) -> Result<()> {
        self.type_text(&format!("{text}\n"))
    }

    /// Presses a key by its name, such as `Enter`, `C-c`, `F10` or `q`.
    ///
    /// # Errors
    /// As [`Session::type_text`]; also when there is no such key.
    pub fn press(&self, key: &str) -> Result<()> {
        self.own()?.press(key)
    }

    /// Pastes text, bracketed where the program asked for it.
    ///
    /// # Errors
    /// As [`Session::type_text`].
    pub fn paste(&self, text: &str) -> Result<()> {
        self.own()?.paste(text)
    }

    /// Sets the terminal's size, and returns when it is set.
    ///
    /// # Errors
    /// When the session is over.
    pub fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        Ok(self.0.handle.resize_now(WinSize::cells(cols, rows))?)
    }

    /// Sends a signal, such as `INT`, to the terminal's foreground process group.
    ///
    /// # Errors
    /// When there is no such signal.
    pub fn signal(&self, name: &str) -> Result<()> {
        let number = signals::number(name);
        self.0.handle.signal(number.ok_or_else(|| Error::Invalid(format!("no signal is called {name:?}")))?);
        Ok(())
    }

    /// The screen as it is now.
    pub fn screen(&self) -> Screen {
        self.term(Screen::of)
    }

    /// Looks at the terminal model as it is now: scrollback, modes, palette. The session waits
    /// meanwhile, so be brief, and call no method of the session from within.
    pub fn term<T>(&self, look: impl FnOnce(&Term) -> T) -> T {
        look(self.0.glass.look(&self.0.handle).term())
    }

    /// What the program is doing, where rules for its turns say so.
    pub fn state(&self) -> Option<AgentState> {
        self.0.glass.look(&self.0.handle).detector().map(|d| d.judgement().state)
    }

    /// Waits until the condition holds, and returns the screen of that moment. What the program
    /// shows for a shorter time than it takes to look may be missed.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the screen when the time has passed, [`Error::Ended`] when the
    /// program ended before.
    pub fn wait_for(&self, cond: impl Into<Cond>, within: Duration) -> Result<Screen> {
        let cond = cond.into().checked()?;
        let inner = &*self.0;
        let news = TapReader::from_end(&inner.log, inner.clock);
        let since = inner.clock.now().mono;
        let (mut changed, mut generation) = (since, None);
        loop {
            // Asked first: what was written before the end must still be looked at.
            let over = inner.log.is_closed();
            let now = inner.clock.now().mono;
            let look = inner.glass.look(&inner.handle);
            if generation.replace(inner.glass.generation()) != Some(inner.glass.generation()) {
                changed = now;
            }
            let quiet = now.since(changed);
            let state = look.detector().map(|d| d.judgement().state);
            if cond.holds(&Seen { term: look.term(), state, quiet }) {
                return Ok(Screen::of(look.term()));
            }
            let left = within.saturating_sub(now.since(since));
            if over || left.is_zero() {
                let (screen, wanted) = (Box::new(Screen::of(look.term())), cond.to_string());
                drop(look);
                return Err(match over.then(|| inner.done.wait(None)).flatten() {
                    Some(finished) => Error::Ended { exit: finished?.exit, wanted, screen },
                    None => Error::Timeout { after: within, wanted, screen },
                });
            }
            drop(look);
            let pause = cond.pause().map_or(left, |pause| pause.saturating_sub(quiet));
            news.wait(Some(left.min(pause.max(Duration::from_millis(1)))));
            news.skip();
        }
    }

    /// Waits until the program has ended by itself.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the screen when the time has passed; also when the session broke
    /// down.
    pub fn wait_exit(&self, within: Duration) -> Result<Finished> {
        self.0.done.wait(Some(within)).unwrap_or_else(|| {
            let screen = Box::new(self.screen());
            Err(Error::Timeout { after: within, wanted: "the end of the program".into(), screen })
        })
    }

    /// Stops the program if it still runs, waits for its end, and returns how it ended. Its
    /// recording is complete then, and other processes no longer reach a session that lingers.
    ///
    /// # Errors
    /// When the session broke down.
    pub fn stop(&self) -> Result<Finished> {
        self.0.handle.cancel();
        #[cfg(feature = "live")]
        if let Some(dismissal) = &self.0.dismissal {
            dismissal.dismiss();
        }
        let finished = self.0.done.wait(None).unwrap_or(Err(Error::Over));
        self.0.join();
        finished
    }

    /// Starts a further recording of the session, which begins with the output that is still
    /// remembered. It ends with the session.
    ///
    /// # Errors
    /// When the file exists or cannot be written, or the session is not live.
    #[cfg(feature = "live")]
    pub fn record_late(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        use tapdeck_host::{IfExists, RecordOptions, RecordingFile};
        let path = path.as_ref();
        let late = self.0.late.as_ref().ok_or_else(|| Error::Invalid("the session is not live".into()))?;
        let file = RecordingFile::open(path, IfExists::Refuse)?;
        let started = late.start(file, RecordOptions::default());
        started.map(|_| ()).map_err(Error::io(format!("cannot record {}", path.display())))
    }

    /// The session as its clients see it, to submit prompts, answer questions and read turns:
    /// [`Remote::ask`](crate::Remote::ask), [`Remote::answer`](crate::Remote::answer). Releases the
    /// stick if typing to this session has claimed it.
    ///
    /// # Errors
    /// When the session is not live, or is over.
    #[cfg(feature = "live")]
    pub fn remote(&self) -> Result<crate::Remote> {
        let id = self.id().ok_or_else(|| Error::Invalid("the session is not live".into()))?;
        if let Some((own, _)) = self.0.own.get() {
            // A party that does not hold the stick has nothing to release.
            let _ = self.0.handle.release(*own)?;
        }
        crate::Remote::find(id)
    }

    /// What happens in the session from now on, as typed updates.
    pub fn subscribe(&self) -> Updates {
        Updates::local(self.clone())
    }

    /// Joins the session as a party of its own. A person may always take the stick; a program waits
    /// until it is free.
    ///
    /// # Errors
    /// When the session is over.
    pub fn party(&self, name: &str, role: Role) -> Result<Party> {
        let (id, name) = self.0.handle.join_named(name, role)?;
        Ok(Party { session: self.clone(), id, name, leaves: true })
    }

    /// The party that types for the owner of the session.
    fn own(&self) -> Result<Party> {
        let (id, name) = match self.0.own.get() {
            Some(own) => own.clone(),
            None => {
                let joined = self.0.handle.join_named("owner", Role::Bot)?;
                // Another thread may have been faster; then this party only leaves again.
                let own = self.0.own.get_or_init(|| joined.clone()).clone();
                if own.0 != joined.0 {
                    self.0.handle.leave(joined.0);
                }
                own
            }
        };
        Ok(Party { session: self.clone(), id, name, leaves: false })
    }
}

impl Inner {
    /// Waits for the session's thread.
    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // How it ended is told by `done`; a panic leaves nothing to wait for.
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.cancel();
        self.join();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// A party at a session: what it types is told apart in recordings, and the stick is its own.
pub struct Party {
    session: Session,
    id: PartyId,
    name: Arc<str>,
    /// It was joined for the caller, and leaves with this value.
    leaves: bool,
}

impl Party {
    /// The name under which it joined, which has a number behind it where that was taken.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Types text; line ends are the Enter key. Claims the stick where it is free.
    ///
    /// # Errors
    /// As [`Session::type_text`].
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.give(|modes| keys::text(text, modes))
    }

    /// Types text and presses Enter.
    ///
    /// # Errors
    /// As [`Session::type_text`].
    pub fn type_line(&self, text: &str) -> Result<()> {
        self.type_text(&format!("{text}\n"))
    }

    /// Presses a key by its name.
    ///
    /// # Errors
    /// As [`Session::press`].
    pub fn press(&self, key: &str) -> Result<()> {
        let press: KeyPress = key.parse().map_err(|e: keys::KeyNameError| Error::Invalid(e.to_string()))?;
        self.give(|modes| keys::encode(press, modes))
    }

    /// Pastes text, bracketed where the program asked for it.
    ///
    /// # Errors
    /// As [`Session::type_text`].
    pub fn paste(&self, text: &str) -> Result<()> {
        self.give(|modes| keys::paste(text, modes))
    }

    /// Takes the stick from another party, where this party's role allows it.
    ///
    /// # Errors
    /// When it does not, or the session is over.
    pub fn take(&self) -> Result<()> {
        self.session.0.handle.take(self.id)??;
        Ok(())
    }

    /// Gives the stick up.
    ///
    /// # Errors
    /// When this party does not hold it, or the session is over.
    pub fn release(&self) -> Result<()> {
        self.session.0.handle.release(self.id)??;
        Ok(())
    }

    fn give(&self, encode: impl FnOnce(&Modes) -> Vec<u8>) -> Result<()> {
        let bytes = Bytes::from(self.session.term(|term| encode(&term.modes())));
        if bytes.is_empty() {
            return Ok(());
        }
        let inner = &*self.session.0;
        let news = TapReader::from_end(&inner.log, inner.clock);
        let since = inner.clock.now().mono;
        loop {
            let refused = match inner.handle.input(self.id, None, bytes.clone())? {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            let waited = inner.clock.now().mono.since(since);
            match refused {
                Refused::Stick(StickError::NotHeld | StickError::Held { .. }) => {
                    inner.handle.claim(self.id)??;
                }
                Refused::Full { .. } if waited < PATIENCE => {
                    news.wait(Some(RETRY));
                    news.skip();
                }
                refused => return Err(refused.into()),
            }
        }
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if self.leaves {
            self.session.0.handle.leave(self.id);
        }
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party").field("name", &self.name).field("session", &self.session).finish()
    }
}
