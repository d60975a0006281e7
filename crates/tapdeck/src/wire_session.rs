//! A session behind a network server: a thread keeps a model of its terminal, fed by the attach
//! wire.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tapdeck_core::turns::AgentState;
use tapdeck_core::{Exit, WinSize};
use tapdeck_host::{Clock, signals};
use tapdeck_proto::attach::{Asked, Said};
use tapdeck_serve::client::{self, ANSWER, Attach, Attachment, ClientError, Incoming};
use tapdeck_serve::wire::wire_size;
use tapdeck_term::{Modes, Settings, Size, Term};

use crate::remote::{NAME, state_of};
use crate::{Credentials, Error, Result, Screen, Update};

/// How long input waits for a connection that takes nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a session behind a server. Dropping it leaves the session.
pub(crate) struct WireSession {
    id: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    model: Mutex<Model>,
    changed: Condvar,
}

/// What is known of the session, and what it is to be told.
struct Model {
    term: Term,
    state: Option<(AgentState, String)>,
    holder: Option<Arc<str>>,
    /// This client holds the stick.
    drives: bool,
    exit: Option<Exit>,
    /// Output that passed unseen.
    missed: u64,
    /// Grows with each change of the screen.
    shown: u64,
    /// The first picture is whole.
    ready: bool,
    /// Nothing more comes.
    closed: bool,
    /// What the session or the connection refused, until a call reports it.
    refused: Option<ClientError>,
    orders: Vec<Order>,
    ordered: u64,
    /// How many of the orders have left this process.
    sent: u64,
    wake: PipeWriter,
}

enum Order {
    Type(Vec<u8>),
    Ask(Asked),
    Leave,
}

impl WireSession {
    /// Joins a session that the server at this address knows.
    pub(crate) fn dial(address: &str, credentials: &Credentials, which: &str) -> Result<Self> {
        let attach = Attach::new(NAME)
            .token(credentials.secret())
            .session(which)
            // Typing claims the stick where it is free.
            .watch(true);
        let (attachment, opened) = Attachment::over(credentials.dial(address)?, &attach)?;
        let failed = || Error::io("cannot watch the session");
        let (woken, wake) = pipe().map_err(failed())?;
        let settings = Settings::default().scrollback(0).replies(false);
        let model = Model {
            term: Term::new(Size::new(opened.cols, opened.rows), settings),
            state: state_of(opened.state).map(|state| (state, String::new())),
            holder: opened.driver.map(Into::into),
            drives: opened.you,
            exit: None,
            missed: 0,
            shown: 0,
            ready: false,
            closed: false,
            refused: None,
            orders: Vec::new(),
            ordered: 0,
            sent: 0,
            wake,
        };
        let shared = Arc::new(Shared { model: Mutex::new(model), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tapdeck-wire".into());
        let thread = thread.spawn(move || theirs.follow(attachment, woken)).map_err(failed())?;
        let session = Self { id: opened.session, shared, thread: Some(thread) };
        session.shared.wait(ANSWER, |model| model.ready || model.closed);
        let model = session.shared.lock();
        if !model.ready {
            return Err(if model.closed { ClientError::Ended } else { ClientError::Late(ANSWER) }.into());
        }
        drop(model);
        Ok(session)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn screen(&self) -> Screen {
        Screen::of(&self.shared.lock().term)
    }

    pub(crate) fn state(&self) -> Option<AgentState> {
        self.shared.lock().state.as_ref().map(|(state, _)| *state)
    }

    /// Types bytes for the modes in force, and returns when the server has them and this client
    /// holds the stick.
    pub(crate) fn give(&self, encode: impl FnOnce(&Modes) -> Vec<u8>) -> Result<()> {
        let bytes = encode(&self.shared.lock().term.modes());
        if bytes.is_empty() {
            return Ok(());
        }
        self.order(Order::Type(bytes))?;
        self.holds()
    }

    /// Sets the terminal's size, and returns when the session has it.
    pub(crate) fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        let wanted = Size::new(cols, rows);
        if self.shared.lock().term.size() == wanted {
            return Ok(());
        }
        self.claim()?;
        self.order(Order::Ask(Asked::Resize(wire_size(WinSize::cells(cols, rows)))))?;
        self.answered(|model| model.term.size() == wanted)
    }

    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        if signals::number(name).is_none() {
            return Err(Error::Invalid(format!("no signal is called {name:?}")));
        }
        self.claim()?;
        self.order(Order::Ask(Asked::Signal { name: name.to_owned() }))
    }

    pub(crate) fn kill(&self) -> Result<()> {
        self.claim()?;
        self.order(Order::Ask(Asked::Kill))
    }

    pub(crate) fn subscribe(&self) -> WireUpdates {
        let model = self.shared.lock();
        let known = Known {
            shown: model.shown,
            missed: model.missed,
            state: model.state.clone(),
            holder: model.holder.clone(),
        };
        WireUpdates { shared: Arc::clone(&self.shared), known, closed: false }
    }

    /// Claims the stick where it is free. The wire lets only its holder resize and send signals.
    fn claim(&self) -> Result<()> {
        let (drives, holder) = {
            let model = self.shared.lock();
            (model.drives, model.holder.clone())
        };
        match holder {
            _ if drives => Ok(()),
            Some(holder) => Err(ClientError::Denied(format!("{holder} drives")).into()),
            None => {
                self.order(Order::Ask(Asked::Take))?;
                self.holds()
            }
        }
    }

    fn holds(&self) -> Result<()> {
        self.answered(|model| model.drives)
    }

    /// Waits until the session has done what it was asked for.
    fn answered(&self, done: impl Fn(&Model) -> bool) -> Result<()> {
        self.shared.wait(ANSWER, |model| done(model) || model.refused.is_some() || model.closed);
        let mut model = self.shared.lock();
        match model.refused.take() {
            Some(refused) => Err(refused.into()),
            None if done(&model) => Ok(()),
            None if model.closed => Err(Error::Over),
            None => Err(ClientError::Late(ANSWER).into()),
        }
    }

    /// Hands an order to the thread, and waits until it has left this process.
    fn order(&self, order: Order) -> Result<()> {
        let ticket = {
            let mut model = self.shared.lock();
            if let Some(refused) = model.refused.take() {
                return Err(refused.into());
            }
            if model.closed {
                return Err(Error::Over);
            }
            model.push(order)
        };
        self.shared.wait(PATIENCE, |model| model.sent >= ticket || model.closed);
        let model = self.shared.lock();
        match model.sent >= ticket {
            true => Ok(()),
            false if model.closed => Err(Error::Over),
            false => Err(ClientError::Late(PATIENCE).into()),
        }
    }
}

impl Drop for WireSession {
    fn drop(&mut self) {
        self.shared.lock().push(Order::Leave);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has left, too.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this is so, or for this long.
    fn wait(&self, limit: Duration, so: impl Fn(&Model) -> bool) {
        let wait = self.changed.wait_timeout_while(self.lock(), limit, |model| !so(model));
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// Keeps the model up with the session until one side leaves.
    fn follow(&self, mut attachment: Attachment, woken: PipeReader) {
        let ended = self.carry(&mut attachment, woken).err();
        let mut model = self.lock();
        model.closed = true;
        if model.exit.is_none() && model.refused.is_none() {
            model.refused = ended;
        }
        drop(model);
        self.changed.notify_all();
    }

    fn carry(&self, attachment: &mut Attachment, mut woken: PipeReader) -> Result<(), ClientError> {
        loop {
            let (orders, taken) = {
                let mut model = self.lock();
                (std::mem::take(&mut model.orders), model.ordered)
            };
            for order in orders {
                match order {
                    Order::Type(bytes) => attachment.type_bytes(&bytes)?,
                    Order::Ask(asked) => attachment.control(&asked)?,
                    Order::Leave => return Ok(()),
                }
            }
            attachment.flush()?;
            let incoming = attachment.receive()?;
            let mut ended = false;
            {
                let mut model = self.lock();
                for news in incoming {
                    ended |= !model.apply(news);
                }
                if attachment.waiting() == 0 {
                    model.sent = taken;
                }
            }
            self.changed.notify_all();
            if ended {
                return Ok(());
            }
            if attachment.has_more() {
                continue;
            }
            let (fd, writes) = attachment.wants();
            let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let mut fds = [PollFd::from_borrowed_fd(fd, flags), PollFd::new(&woken, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(std::io::Error::from(e).into()),
            }
            if !fds[1].revents().is_empty() {
                // The bytes only wake.
                let _ = woken.read(&mut [0; 64]);
            }
        }
    }
}

impl Model {
    /// Queues an order, and returns its number.
    fn push(&mut self, order: Order) -> u64 {
        if self.orders.is_empty() {
            // At most one byte waits in the pipe; a thread that is gone needs none.
            let _ = self.wake.write(b"!");
        }
        self.orders.push(order);
        self.ordered += 1;
        self.ordered
    }

    /// Takes in what came; `false` when nothing more comes.
    fn apply(&mut self, incoming: Incoming) -> bool {
        match incoming {
            Incoming::Output(bytes) => {
                self.term.feed(&bytes);
                self.shown += 1;
            }
            Incoming::Control(said) => self.told(said),
            Incoming::End => return false,
        }
        true
    }

    fn told(&mut self, said: Said) {
        match said {
            Said::Live => self.ready = true,
            Said::Resize { cols, rows } => self.resize(cols, rows),
            Said::Driver { driver, you } => {
                self.holder = driver.map(Into::into);
                self.drives = you;
            }
            Said::State { state, rule } => self.state = state_of(state).map(|state| (state, rule)),
            Said::Gap(gap) => {
                self.missed += gap.bytes;
                self.resize(gap.cols, gap.rows);
            }
            Said::Denied { driver, error } => {
                let why = if error.is_empty() {
                    driver.map_or_else(|| "no reason was given".into(), |driver| format!("{driver} drives"))
                } else {
                    error
                };
                self.refused = Some(ClientError::Denied(why));
            }
            Said::Error { message, .. } => self.refused = Some(ClientError::Denied(message)),
            Said::Exit(exit) => self.exit = Some(client::exit_of(&exit)),
            // Of another version, or about the first picture alone.
            _ => {}
        }
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        self.term.resize(Size::new(cols, rows));
        self.shown += 1;
    }
}

/// The updates of a session behind a server: each tells the newest, so a slow reader skips some.
pub(crate) struct WireUpdates {
    shared: Arc<Shared>,
    known: Known,
    closed: bool,
}

struct Known {
    shown: u64,
    missed: u64,
    state: Option<(AgentState, String)>,
    holder: Option<Arc<str>>,
}

impl WireUpdates {
    pub(crate) fn advance(&mut self, limit: Option<Duration>) -> Option<Update> {
        let clock = Clock::start();
        while !self.closed {
            if let Some(update) = self.next() {
                return Some(update);
            }
            let left = limit.map(|limit| limit.saturating_sub(clock.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let known = &self.known;
            self.shared.wait(left.unwrap_or(PATIENCE), |model| known.differs(model) || model.closed);
        }
        None
    }

    fn next(&mut self) -> Option<Update> {
        let model = self.shared.lock();
        let known = &mut self.known;
        if model.missed != known.missed {
            let bytes = model.missed - known.missed;
            known.missed = model.missed;
            return Some(Update::Gap(bytes));
        }
        if model.shown != known.shown {
            known.shown = model.shown;
            return Some(Update::Frame(Box::new(Screen::of(&model.term))));
        }
        if model.holder != known.holder {
            known.holder.clone_from(&model.holder);
            return Some(Update::Holder(model.holder.clone()));
        }
        if model.state != known.state {
            known.state.clone_from(&model.state);
            if let Some((state, rule)) = model.state.clone() {
                return Some(Update::State { state, rule });
            }
        }
        if model.closed {
            self.closed = true;
            return Some(Update::Closed(model.exit));
        }
        None
    }
}

impl Known {
    fn differs(&self, model: &Model) -> bool {
        self.shown != model.shown
            || self.missed != model.missed
            || self.state != model.state
            || self.holder != model.holder
    }
}

impl std::fmt::Debug for WireUpdates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireUpdates").finish_non_exhaustive()
    }
}
