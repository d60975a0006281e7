//! The journals of a session's agent: files in which it writes down what it does.
//!
//! A thread of its own reads them, because a slow disk must not hold up the session's clients. It
//! sleeps while nothing happens at the terminal: an agent that does something also draws something.

mod files;
mod paths;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_core::turns::{Journal, Report};

use crate::clock::Clock;
use crate::processes::{self, Process};
use crate::shared::Bell;
use files::Files;

/// How often the files are looked at while the terminal is in use.
const LOOK: Duration = Duration::from_millis(25);
/// How long after the last sign of life at the terminal that goes on.
const ACTIVE: Duration = Duration::from_secs(3);
/// What is read of a process's environment.
const ENVIRONMENT: u64 = 256 << 10;
/// Reports that wait to be taken; later ones wait in their files.
const QUEUE: usize = 4096;

/// A reader of journals. It ends when it is dropped.
#[derive(Debug)]
pub struct JournalWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reports: Vec<Report>,
    poked: bool,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of the program whose journals are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Program {
    /// The processes in the foreground of the terminal.
    pids: Vec<u32>,
    environment: BTreeMap<String, String>,
    folders: Vec<PathBuf>,
    /// The words of its command line.
    arguments: Vec<String>,
}

impl Program {
    /// The program at the terminal that this process leads the session of.
    fn at_terminal_of(leader: u32) -> Option<Self> {
        let group = Process::find(leader)?.foreground;
        let pids = processes::group(u32::try_from(group).ok().filter(|group| *group > 0)?);
        let environment = pids.iter().map(|pid| environment(*pid)).find(|env| !env.is_empty())?;
        let folder = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
        let mut folders: Vec<PathBuf> = pids.iter().filter_map(folder).collect();
        folders.dedup();
        let arguments = pids.iter().flat_map(|pid| processes::command(*pid)).collect();
        Some(Self { pids, environment, folders, arguments })
    }
}

/// The environment that a process was started with; empty where it cannot be read.
fn environment(pid: u32) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) {
        // A process that ends meanwhile has no environment.
        let _ = file.take(ENVIRONMENT).read_to_end(&mut bytes);
    }
    let variables = bytes.split(|b| *b == 0).filter_map(|v| std::str::from_utf8(v).ok()?.split_once('='));
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl JournalWatch {
    /// Starts to read the journals of the program at the terminal that the process `leader` leads
    /// the session of. Rings the bell when there is something to take; times are those of the
    /// session's clock.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(journals: Vec<Journal>, leader: u32, bell: Bell, clock: Clock) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        let files = Files::new(journals, clock.now().wall);
        let thread = std::thread::Builder::new().name("journals".into());
        let thread = thread.spawn(move || watch(&watched, leader, files, &bell, &clock))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells that something happened at the terminal.
    pub fn poke(&self) {
        let mut state = self.shared.lock();
        if !state.poked {
            state.poked = true;
            self.shared.woken.notify_all();
        }
    }

    /// Whether there is something to take.
    pub fn has_news(&self) -> bool {
        !self.shared.lock().reports.is_empty()
    }

    /// Takes what the journals have said.
    pub fn take(&self) -> Vec<Report> {
        std::mem::take(&mut self.shared.lock().reports)
    }
}

impl Drop for JournalWatch {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.woken.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported already.
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared, leader: u32, mut files: Files, bell: &Bell, clock: &Clock) {
    let mut poked_at = None;
    loop {
        let mut state = shared.lock();
        let now = clock.now();
        if std::mem::take(&mut state.poked) {
            poked_at = Some(now.mono);
        }
        let is_active = poked_at.is_some_and(|at| now.mono.since(at) < ACTIVE);
        let full = state.reports.len() >= QUEUE;
        if state.stop {
            return;
        }
        drop(state);
        if is_active && !full {
            let program = || Program::at_terminal_of(leader);
            let found = files.look(program, now, Clock::start().wall_start());
            if !found.is_empty() {
                shared.lock().reports.extend(found);
                bell.ring();
            }
        }
        let state = shared.lock();
        if state.stop {
            return;
        }
        let asleep = |state: &mut State| !state.stop && !state.poked;
        if is_active {
            // Also while it is poked all the time: the files are looked at so often and no oftener.
            let waited = shared.woken.wait_timeout_while(state, LOOK, |state| !state.stop);
            drop(waited);
        } else {
            drop(shared.woken.wait_while(state, asleep));
        }
    }
}
