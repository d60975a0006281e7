//! Keeps the files of a session while it is recorded, on a thread of its own: neither the program
//! nor the recorder ever waits for git.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_host::{
    Anchor, Clock, Handle, NewSnapshot, Session, SharedLog, SnapshotError, Source, Unanswered,
};
use tapdeck_serve::live::OnTurn;

use super::TreeError;
use super::provider::{Moment, Provider, Taken, Worker};

/// How long a disk may take over a snapshot.
const DISK: Duration = Duration::from_secs(30);
/// How long the start of a session waits for its files.
const START: Duration = Duration::from_secs(1);
/// How long the end of a session waits for its files.
const END: Duration = Duration::from_secs(10);
/// How long a program in the session waits for the files of its snapshot.
const ASKED: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug)]
enum Job {
    /// A turn is over.
    Turn,
    /// A program in the session takes a snapshot.
    Snapshot { id: u64, label: String, reply: Sender<Result<Anchor, SnapshotError>> },
    /// The program has ended.
    End(Sender<()>),
}

/// The way to a keeper: what is asked before it runs is done when it does.
#[derive(Debug, Clone)]
pub struct TreeRequests {
    jobs: Sender<Job>,
    /// How many turns are over.
    turns: Arc<AtomicU64>,
}

impl TreeRequests {
    /// What keeps the files whenever a turn is over.
    pub fn on_turn(&self) -> OnTurn {
        let Self { jobs, turns } = self.clone();
        Box::new(move |turn| {
            turns.store(u64::from(turn.number), Ordering::Release);
            // A keeper that is gone keeps nothing.
            let _ = jobs.send(Job::Turn);
        })
    }

    /// Has the files kept for a snapshot that a program takes, and the snapshot recorded. Waits for
    /// both. Without the files, the snapshot is recorded all the same.
    ///
    /// # Errors
    /// When the snapshot could not be recorded.
    pub fn snapshot(&self, id: u64, label: &str) -> Result<Anchor, SnapshotError> {
        let (reply, answer) = channel();
        // The channel says when the keeper is gone.
        let _ = self.jobs.send(Job::Snapshot { id, label: label.to_owned(), reply });
        answer.recv_timeout(ASKED + DISK).unwrap_or_else(|e| {
            Err(match e {
                RecvTimeoutError::Timeout => SnapshotError::Late(ASKED + DISK),
                RecvTimeoutError::Disconnected => Unanswered::SessionOver.into(),
            })
        })
    }
}

/// Keeps the files of a session.
#[derive(Debug)]
pub struct Keeper {
    requests: TreeRequests,
    waiting: Receiver<Job>,
    /// The thread that keeps the files of the start.
    first: JoinHandle<(Worker, Result<Option<Taken>, TreeError>)>,
}

/// A keeper that runs.
#[derive(Debug)]
pub struct Keeping {
    troubles: Arc<Mutex<Vec<String>>>,
    _thread: JoinHandle<()>,
}

impl Keeping {
    /// What could not be kept, a sentence each. Asked after the session's end.
    pub fn troubles(&self) -> Vec<String> {
        lock(&self.troubles).clone()
    }
}

fn lock(troubles: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    troubles.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Keeps the files around a folder, but for those of the session's recording, before its
    /// program is started. Waits a second at most: if it takes longer, the program may have changed
    /// some.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn begin(provider: Provider, folder: PathBuf, recording: &Path) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        // A process's number is used again, but not in the same second.
        let session =
            format!("{}-{}", tapdeck_host::calendar(Clock::start().wall_start()), std::process::id());
        // git names files by the folder's own path.
        let path = recording.canonicalize().unwrap_or_else(|_| recording.to_owned());
        let without = Source::files(&path);
        let requests = TreeRequests { jobs, turns: Arc::default() };
        let mut worker = Worker::new(provider, session, folder, without);
        let (tell, begun) = channel();
        let first = std::thread::Builder::new().name("tapdeck-trees".into());
        let first = first.spawn(move || {
            let taken = worker.take(&Moment { reason: "start", turn: 0, snapshot: None });
            // A session that did not wait so long no longer wants to know.
            let _ = tell.send(());
            (worker, taken)
        })?;
        // It goes on beside the session.
        let _ = begun.recv_timeout(START);
        Ok(Self { requests, waiting, first })
    }

    /// The way to this keeper.
    pub fn requests(&self) -> TreeRequests {
        self.requests.clone()
    }

    /// Keeps the files of a session, which runs now.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(self, session: &Session) -> io::Result<Keeping> {
        let Self { requests, waiting, first } = self;
        let troubles = Arc::<Mutex<Vec<String>>>::default();
        let (handle, log, clock) = (session.handle.clone(), session.log.clone(), session.clock);
        let (turns, told) = (Arc::clone(&requests.turns), Arc::clone(&troubles));
        let thread = std::thread::Builder::new().name("tapdeck-trees".into());
        let thread = thread.spawn(move || {
            // A panic there was reported already.
            let Ok((worker, taken)) = first.join() else { return };
            let mut work = Work { worker, handle, log, clock, turns, troubles: told };
            work.keep(taken);
            work.run(&waiting);
        })?;
        session.log.before_close(move || {
            let (reply, done) = channel();
            if requests.jobs.send(Job::End(reply)).is_ok() {
                // Files that take longer are not kept: the user waits for the prompt.
                let _ = done.recv_timeout(END);
            }
        });
        Ok(Keeping { troubles, _thread: thread })
    }
}

/// The thread's own.
struct Work {
    worker: Worker,
    handle: Handle,
    log: SharedLog,
    clock: Clock,
    turns: Arc<AtomicU64>,
    troubles: Arc<Mutex<Vec<String>>>,
}

impl Work {
    fn run(&mut self, waiting: &Receiver<Job>) {
        let mut next = waiting.recv().ok();
        while let Some(job) = next.take() {
            let mut after = None;
            match job {
                Job::Turn => {
                    // Turns that ended while git ran have the files of the last of them.
                    after =
                        std::iter::from_fn(|| waiting.try_recv().ok()).find(|job| !matches!(job, Job::Turn));
                    let taken = self.take("turn", None);
                    self.keep(taken);
                }
                Job::Snapshot { id, label, reply } => {
                    let taken = self.take("snapshot", Some((id, &label)));
                    let tree = self.settled(taken).map(|taken| Arc::new(taken.tree));
                    // A caller that gave up no longer wants the answer.
                    let _ = reply.send(self.record(NewSnapshot { id, label: label.into(), tree }));
                }
                Job::End(reply) => {
                    let taken = self.take("end", None);
                    self.keep(taken);
                    let _ = reply.send(());
                    return;
                }
            }
            next = after.or_else(|| waiting.recv().ok());
        }
    }

    /// Keeps the files as they are now.
    fn take(
        &mut self,
        reason: &'static str,
        snapshot: Option<(u64, &str)>,
    ) -> Result<Option<Taken>, TreeError> {
        let turn = self.turns.load(Ordering::Acquire);
        self.worker.take(&Moment { reason, turn, snapshot })
    }

    /// Has kept files recorded if they have changed.
    fn keep(&self, taken: Result<Option<Taken>, TreeError>) {
        let Some(Taken { tree, label, is_new: true }) = self.settled(taken) else { return };
        let taken = NewSnapshot { id: tree.number, label: label.into(), tree: Some(Arc::new(tree)) };
        if let Err(e) = self.record(taken) {
            self.note(format!("the files were kept, but not recorded: {e}"));
        }
    }

    /// What was kept. Notes what was not.
    fn settled(&self, taken: Result<Option<Taken>, TreeError>) -> Option<Taken> {
        self.worker.remarks().iter().for_each(|remark| self.note(remark.clone()));
        taken.unwrap_or_else(|e| {
            self.note(e.to_string());
            None
        })
    }

    /// Records a snapshot, by the driver or, once that has ended, directly.
    fn record(&self, taken: NewSnapshot) -> Result<Anchor, SnapshotError> {
        match self.handle.record_snapshot(taken.clone(), DISK) {
            Err(SnapshotError::Unanswered(Unanswered::SessionOver)) => {
                self.log.record_last_snapshot(taken, self.clock.now(), DISK)
            }
            recorded => recorded,
        }
    }

    fn note(&self, trouble: String) {
        let mut troubles = lock(&self.troubles);
        if !troubles.contains(&trouble) {
            self.handle.files_not_kept(&trouble);
            troubles.push(trouble);
        }
    }
}
