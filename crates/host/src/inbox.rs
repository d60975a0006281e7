//! The driver's one inbox: how other threads act on a session.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::turns::Notice;
use tapdeck_core::{
    Event, Fence, Group, Instruction, KeptTree, MAX_INSTRUCTION, Offset, PartyId, Refused, Role, StickError,
    WallTime, WinSize,
};

use crate::glass;
use crate::recorder::OnFailure;
use crate::shared::Bell;
use crate::user_keys::UserKeys;

/// A request to the driver. Those that can be refused carry the way back.
pub(crate) enum Request {
    Cancel,
    Signal(i32),
    /// The model is free again.
    Nudge,
    Resize(WinSize, Option<Sender<()>>),
    /// The stick's holder, by number and name.
    Holder(Sender<Option<(PartyId, Arc<str>)>>),
    Join(String, Role, Sender<(PartyId, Arc<str>)>),
    Share(PartyId, Group),
    Leave(PartyId),
    Claim(PartyId, Sender<Result<Fence, StickError>>),
    Take(PartyId, Sender<Result<Fence, StickError>>),
    Release(PartyId, Sender<Result<Fence, StickError>>),
    Input(PartyId, Option<Fence>, Bytes, Sender<Result<(), Refused>>),
    InputOrClaim(PartyId, Bytes, Sender<Result<(), Refused>>),
    /// How much of the input waits for the program.
    Waiting(Sender<usize>),
    /// How long a line of input may be.
    LongestLine(Sender<Option<usize>>),
    /// Whether the program waits for input.
    WaitsForInput(Sender<Option<bool>>),
    /// A snapshot or an instruction, which the recorder answers for.
    Anchored(Event, Sender<Result<Anchor, SnapshotError>>),
    Service(Arc<str>),
    /// Something that was found out about the session.
    Found(Event),
    /// The recordings are to be paused, or to go on, or to change between the two.
    PauseRecording(Option<bool>, Arc<str>, Sender<Result<bool, NotRecorded>>),
    /// The user's terminal has keys that are not for the program.
    UserKeys(Box<dyn UserKeys>),
    /// A recording of the session has failed.
    RecordingFailed(OnFailure),
}

struct Inner {
    /// `None` once the session is over: what is posted then is dropped, and with it the way back.
    queue: Mutex<Option<VecDeque<Request>>>,
    wake: Bell,
    /// The session's host was told to end.
    dismissed: AtomicBool,
    /// The newest id of an instruction.
    instruction: AtomicU64,
    /// The thread that runs the session, or is about to.
    thread: OnceLock<ThreadId>,
}

/// A handle to a running session; any thread may hold one.
///
/// Calls that return something wait for the driver's answer. Two callers would wait for ever, and
/// get an error instead:
///
/// - The thread that runs the driver cannot answer itself: there, as in the `open` of
///   [`crate::Launch::run_with`], calls return [`Unanswered::OwnThread`]. Start a thread for them.
/// - A thread that holds the model (a [`crate::Look`]) may be what the driver waits for: there they
///   return [`Unanswered::HoldsModel`]. Drop the look first.
#[derive(Clone)]
pub struct Handle(Arc<Inner>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("over", &self.queue().is_none()).finish_non_exhaustive()
    }
}

/// Why a session did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// It is over.
    #[error("the session is over")]
    SessionOver,
    /// The thread that asks is the one that would answer.
    #[error("this thread drives the session and cannot wait for it: ask from another one")]
    OwnThread,
    /// The thread that asks holds the model, which the driver may be waiting for.
    #[error("this thread looks at the session's screen and cannot wait for its driver: drop the look first")]
    HoldsModel,
    /// No driver runs it yet.
    #[error("the session was not started within {} s", START.as_secs())]
    NotDriven,
}

/// How long to wait for a driver to start.
const START: Duration = Duration::from_secs(10);

/// A session that is not recorded has no recording to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is not being recorded")]
pub struct NotRecorded;

/// A snapshot to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// Its number.
    pub id: u64,
    /// A name for people; may be empty.
    pub label: Arc<str>,
    /// What was kept of the files.
    pub tree: Option<Arc<KeptTree>>,
}

impl NewSnapshot {
    pub(crate) fn event(self) -> Event {
        let Self { id, label, tree } = self;
        Event::Snapshot { id, label, tree }
    }
}

/// Where in a recording a snapshot was taken, or an instruction belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Bytes of output before it.
    pub byte: Offset,
    /// When.
    pub at: WallTime,
}

/// A snapshot or an instruction that is not in the recording, or may not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The session did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The session is not recorded, or not in the format that carries snapshots and instructions.
    #[error("this session is not being recorded as an .ahr, which alone carries snapshots and instructions")]
    NotRecorded,
    /// A recording has no room for so long a label.
    #[error("a label is at most 65535 bytes long, and this one is {0}")]
    LongLabel(usize),
    /// The text of an instruction is too long.
    #[error("an instruction is at most {MAX_INSTRUCTION} bytes long, and this one is {0}")]
    LongInstruction(usize),
    /// An instruction is to be deleted, and it is not said which.
    #[error("to delete an instruction, give its id")]
    Nameless,
    /// The user's terminal holds up so much output that no more can be read.
    #[error("the terminal that shows the session takes no output, so the place is unknown")]
    HeldUp,
    /// The disk refused.
    #[error("the recording could not be written: {0}")]
    Failed(String),
    /// The disk has not answered; it may still be recorded.
    #[error("the disk has not answered within {} s", .0.as_secs())]
    Late(Duration),
}

impl Handle {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            queue: Mutex::new(Some(VecDeque::new())),
            wake: Bell::new()?,
            dismissed: AtomicBool::new(false),
            instruction: AtomicU64::new(0),
            thread: OnceLock::new(),
        })))
    }

    /// The calling thread is the one that drives.
    pub(crate) fn driven_here(&self) {
        // A driver runs once, so this is the first time.
        let _ = self.0.thread.set(std::thread::current().id());
    }

    /// Ends the program: asks first, then insists, over its whole session of processes.
    pub fn cancel(&self) {
        self.post(Request::Cancel);
    }

    /// Tells the session's host that it is not needed any more: it need not keep the last screen.
    pub fn dismiss(&self) {
        self.0.dismissed.store(true, Ordering::Release);
    }

    /// Whether the host was told to end.
    pub fn is_dismissed(&self) -> bool {
        self.0.dismissed.load(Ordering::Acquire)
    }

    /// Sends a signal to the terminal's foreground.
    pub fn signal(&self, signal: i32) {
        self.post(Request::Signal(signal));
    }

    pub(crate) fn recording_failed(&self, then: OnFailure) {
        self.post(Request::RecordingFailed(then));
    }

    pub(crate) fn nudge(&self) {
        self.post(Request::Nudge);
    }

    /// Sets the terminal's size.
    pub fn resize(&self, size: WinSize) {
        self.post(Request::Resize(size, None));
    }

    /// Sets the terminal's size, and returns when it is set.
    pub fn resize_now(&self, size: WinSize) -> Result<(), Unanswered> {
        self.ask(|tx| Request::Resize(size, Some(tx)))
    }

    /// Tells the session something that is not bytes, as a JSON text.
    pub fn service(&self, payload: &str) {
        self.post(Request::Service(payload.into()));
    }

    /// Has it recorded that files of the session could not be kept.
    pub fn files_not_kept(&self, why: &str) {
        self.post(Request::Found(Event::FilesNotKept(why.into())));
    }

    /// Puts what was found out about turns and states into the log, so that it is recorded.
    pub fn found(&self, notice: &Notice) {
        let event = match notice {
            Notice::Started { number, start } => Event::TurnStarted { number: *number, start: *start },
            Notice::Completed(turn) => {
                let turn = tapdeck_core::turns::Turn { raw: Bytes::new(), ..(**turn).clone() };
                Event::TurnEnded(Arc::new(turn))
            }
            Notice::State(judgement) => Event::State(Arc::new(judgement.clone())),
            Notice::Decided(decision) => Event::Decided(Arc::clone(decision)),
            Notice::Conversation { agent, id } => {
                Event::Conversation { agent: Arc::clone(agent), id: Arc::clone(id) }
            }
            _ => return,
        };
        self.post(Request::Found(event));
    }

    /// Joins the session under a name, which may get a number to be unique.
    pub fn join(&self, name: &str, role: Role) -> Result<PartyId, Unanswered> {
        self.join_named(name, role).map(|(id, _)| id)
    }

    /// Joins the session under a name; returns also the name that the party got.
    pub fn join_named(&self, name: &str, role: Role) -> Result<(PartyId, Arc<str>), Unanswered> {
        self.ask(|tx| Request::Join(name.to_owned(), role, tx))
    }

    /// The name of the stick's holder.
    pub fn holder(&self) -> Result<Option<Arc<str>>, Unanswered> {
        Ok(self.holding_party()?.map(|(_, name)| name))
    }

    /// Whether this party holds the stick.
    pub fn holds(&self, id: PartyId) -> bool {
        self.holding_party().is_ok_and(|holder| holder.is_some_and(|(party, _)| party == id))
    }

    fn holding_party(&self) -> Result<Option<(PartyId, Arc<str>)>, Unanswered> {
        self.ask(Request::Holder)
    }

    /// Leaves it; the stick is released.
    pub fn leave(&self, id: PartyId) {
        self.post(Request::Leave(id));
    }

    /// Puts a party into a group, whose people type without asking for the stick.
    pub fn share(&self, id: PartyId, group: Group) {
        self.post(Request::Share(id, group));
    }

    /// Claims the stick politely.
    pub fn claim(&self, id: PartyId) -> Result<Result<Fence, StickError>, Unanswered> {
        self.ask(|tx| Request::Claim(id, tx))
    }

    /// Takes the stick, where the rules allow it.
    pub fn take(&self, id: PartyId) -> Result<Result<Fence, StickError>, Unanswered> {
        self.ask(|tx| Request::Take(id, tx))
    }

    /// Gives the stick up.
    pub fn release(&self, id: PartyId) -> Result<Result<Fence, StickError>, Unanswered> {
        self.ask(|tx| Request::Release(id, tx))
    }

    /// Offers input; says whether the gate took it.
    pub fn input(
        &self,
        id: PartyId,
        fence: Option<Fence>,
        bytes: Bytes,
    ) -> Result<Result<(), Refused>, Unanswered> {
        self.ask(|tx| Request::Input(id, fence, bytes, tx))
    }

    /// Offers input, and claims the stick for it while the stick is free; returns whether the gate
    /// took it.
    pub fn input_or_claim(&self, id: PartyId, bytes: Bytes) -> Result<Result<(), Refused>, Unanswered> {
        self.ask(|tx| Request::InputOrClaim(id, bytes, tx))
    }

    /// How many bytes of input the program has not taken yet.
    pub fn undelivered(&self) -> Result<usize, Unanswered> {
        self.ask(Request::Waiting)
    }

    /// Whether the program waits for input, as far as can be seen; `None` where it cannot.
    pub fn waits_for_input(&self) -> Result<Option<bool>, Unanswered> {
        self.ask(Request::WaitsForInput)
    }

    /// How many bytes a line of input may have before the terminal itself drops the rest. `None`
    /// where the program reads byte by byte, or the backend cannot tell.
    pub fn longest_line(&self) -> Result<Option<usize>, Unanswered> {
        self.ask(Request::LongestLine)
    }

    /// Marks this moment in the recordings of the session.
    pub fn mark(&self, label: &str, by: &str) {
        self.post(Request::Found(Event::Marker { label: label.into(), by: by.into() }));
    }

    /// Keeps these keys of the user at the session's own terminal from the program. Without such a
    /// terminal, nothing changes.
    pub fn intercept_keys(&self, keys: impl UserKeys + 'static) {
        self.post(Request::UserKeys(Box::new(keys)));
    }

    /// Pauses the recordings of the session (`true`), lets them go on (`false`), or does the one
    /// that they do not do now (`None`). Returns whether they are paused then. What is written and
    /// typed during a pause is in no recording. They go on with the screen as it is then.
    pub fn pause_recording(
        &self,
        wish: Option<bool>,
        by: &str,
    ) -> Result<Result<bool, NotRecorded>, Unanswered> {
        self.ask(|tx| Request::PauseRecording(wish, by.into(), tx))
    }

    /// Has a snapshot recorded, behind everything that the program has written so far, and waits
    /// until it is on disk.
    pub fn snapshot(&self, id: u64, label: &str, at_most: Duration) -> Result<Anchor, SnapshotError> {
        self.record_snapshot(NewSnapshot { id, label: label.into(), tree: None }, at_most)
    }

    /// Does the same as [`Handle::snapshot`] with all that is known of the snapshot.
    pub fn record_snapshot(&self, taken: NewSnapshot, at_most: Duration) -> Result<Anchor, SnapshotError> {
        self.refuse_deadlock()?;
        if taken.label.len() > usize::from(u16::MAX) {
            return Err(SnapshotError::LongLabel(taken.label.len()));
        }
        self.record(taken.event(), at_most)
    }

    /// Has an instruction recorded, and waits until it is on disk. One without an id gets one.
    /// Returns the id, and the place.
    pub fn instruct(
        &self,
        instruction: Instruction,
        now: WallTime,
        at_most: Duration,
    ) -> Result<(u64, Anchor), SnapshotError> {
        self.refuse_deadlock()?;
        let instruction = self.numbered(instruction, now)?;
        let id = instruction.id;
        self.record(Event::Instruction(Arc::new(instruction)), at_most).map(|anchor| (id, anchor))
    }

    /// Has an instruction recorded, and does not wait for it. Returns its id.
    pub fn instruct_later(&self, instruction: Instruction, now: WallTime) -> Result<u64, SnapshotError> {
        let instruction = self.numbered(instruction, now)?;
        let id = instruction.id;
        let (tx, _) = channel();
        self.post(Request::Anchored(Event::Instruction(Arc::new(instruction)), tx));
        Ok(id)
    }

    /// Gives a new instruction its id: the time, or more if an earlier one has that.
    fn numbered(&self, instruction: Instruction, now: WallTime) -> Result<Instruction, SnapshotError> {
        if instruction.text.len() > MAX_INSTRUCTION {
            return Err(SnapshotError::LongInstruction(instruction.text.len()));
        }
        if instruction.id == 0 && instruction.text.is_empty() {
            return Err(SnapshotError::Nameless);
        }
        if instruction.id != 0 {
            return Ok(instruction);
        }
        let next = |last: u64| now.as_nanos().max(last.saturating_add(1));
        let last =
            self.0.instruction.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        Ok(Instruction { id: next(last.unwrap_or_default()), ..instruction })
    }

    fn record(&self, event: Event, at_most: Duration) -> Result<Anchor, SnapshotError> {
        let (tx, rx) = channel();
        self.post(Request::Anchored(event, tx));
        rx.recv_timeout(at_most).unwrap_or_else(|e| {
            Err(match e {
                RecvTimeoutError::Timeout => SnapshotError::Late(at_most),
                RecvTimeoutError::Disconnected => Unanswered::SessionOver.into(),
            })
        })
    }

    /// Posts a request and waits for its answer.
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Unanswered> {
        self.refuse_deadlock()?;
        let (tx, rx) = channel();
        self.post(request(tx));
        if self.0.thread.get().is_none() {
            match rx.recv_timeout(START) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(Unanswered::SessionOver),
                Err(RecvTimeoutError::Timeout) if self.0.thread.get().is_none() => {
                    return Err(Unanswered::NotDriven);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        rx.recv().map_err(|_| Unanswered::SessionOver)
    }

    /// Refuses callers that the driver would wait for while they wait for it.
    fn refuse_deadlock(&self) -> Result<(), Unanswered> {
        if glass::is_held_here() {
            return Err(Unanswered::HoldsModel);
        }
        let own = self.0.thread.get().is_some_and(|thread| *thread == std::thread::current().id());
        // Once it is over, that thread is like any other.
        if own && self.queue().is_some() { Err(Unanswered::OwnThread) } else { Ok(()) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.wake.fd()
    }

    /// Takes what has been posted.
    pub(crate) fn drain(&self) -> VecDeque<Request> {
        self.0.wake.quieten();
        self.queue().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the inbox: callers that wait for an answer get [`Unanswered::SessionOver`].
    pub(crate) fn close(&self) {
        *self.queue() = None;
    }

    fn queue(&self) -> MutexGuard<'_, Option<VecDeque<Request>>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, request: Request) {
        match &mut *self.queue() {
            Some(queue) => queue.push_back(request),
            None => return,
        }
        self.0.wake.ring();
    }
}
