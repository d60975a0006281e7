//! Prompts on their way to agents. Each is delivered by a thread of its own, as `tapdeck paste`
//! does it, so that the supervisor never waits for a program.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_proto::bus::Role;

use crate::prompts::{Delivery, is_delivered};
use crate::sessions::{connect, find};

/// Timeout of each step of a delivery.
const STEP: Duration = Duration::from_secs(60);
/// While prompts are on their way, it is looked this often whether they have arrived.
const LOOK: Duration = Duration::from_millis(50);
/// The time between two attempts.
const RETRY: Duration = Duration::from_secs(3);
/// How often a delivery is tried.
const ATTEMPTS: u32 = 5;

/// What a prompt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    First,
    Relay(usize),
    Vote,
}

/// A prompt for an agent.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) to: String,
    pub(super) task: Task,
    pub(super) text: String,
    /// The session that it was sent to last.
    pub(super) session: String,
    /// How often it was tried.
    attempts: u32,
    /// Not before this time.
    due: Time,
}

/// What became of a delivery.
pub(super) struct Done {
    pub(super) job: Job,
    /// Why it failed, if it did.
    pub(super) failed: Option<String>,
}

/// The prompts that wait, and those on their way.
pub(super) struct Jobs {
    waiting: VecDeque<Job>,
    /// The agents that a prompt is on its way to, and what for.
    busy: Vec<(String, Task)>,
    tell: Sender<Done>,
    heard: Receiver<Done>,
}

impl Jobs {
    pub(super) fn new() -> Self {
        let (tell, heard) = channel();
        Self { waiting: VecDeque::new(), busy: Vec::new(), tell, heard }
    }

    pub(super) fn add(&mut self, to: &str, task: Task, text: String) {
        let to = to.to_owned();
        self.waiting.push_back(Job { to, task, text, session: String::new(), attempts: 0, due: Time::ZERO });
    }

    /// Whether a prompt of this kind waits or is on its way to an agent.
    pub(super) fn has(&self, to: &str, task: Task) -> bool {
        let is_it = |(agent, kind): (&str, Task)| agent == to && kind == task;
        self.busy.iter().any(|(agent, kind)| is_it((agent, *kind)))
            || self.waiting.iter().any(|job| is_it((&job.to, job.task)))
    }

    /// How long it takes until something is to be done; `None` while all prompts wait for agents.
    pub(super) fn pause(&self, now: Time) -> Option<Duration> {
        if !self.busy.is_empty() {
            return Some(LOOK);
        }
        self.waiting.iter().filter(|job| job.due > now).map(|job| job.due.since(now)).min()
    }

    /// Forgets the prompts for an agent that has ended.
    pub(super) fn forget(&mut self, to: &str) {
        self.waiting.retain(|job| job.to != to);
    }

    /// Sends what is due to agents that are ready. `session` is the id of a ready agent's session.
    pub(super) fn start(&mut self, now: Time, session: impl Fn(&str) -> Option<String>) {
        let mut later = VecDeque::new();
        while let Some(mut job) = self.waiting.pop_front() {
            // Prompts for one agent keep their order.
            let first = !later.iter().any(|earlier: &Job| earlier.to == job.to);
            let free = first && job.due <= now && !self.busy.iter().any(|(agent, _)| *agent == job.to);
            let Some(id) = free.then(|| session(&job.to)).flatten() else {
                later.push_back(job);
                continue;
            };
            job.attempts += 1;
            job.session.clone_from(&id);
            self.busy.push((job.to.clone(), job.task));
            let tell = self.tell.clone();
            let kept = job.clone();
            let send = move || {
                let failed = deliver(&id, &job.text).err();
                // The supervisor may have ended.
                let _ = tell.send(Done { job, failed });
            };
            if let Err(e) = std::thread::Builder::new().name("squad-prompt".into()).spawn(send) {
                // The receiver is this very object.
                let _ = self.tell.send(Done { job: kept, failed: Some(e.to_string()) });
            }
        }
        self.waiting = later;
    }

    /// The deliveries that have ended. One that failed is tried again a few times.
    pub(super) fn finished(&mut self, now: Time) -> Vec<Done> {
        let mut done = Vec::new();
        while let Ok(Done { mut job, failed }) = self.heard.try_recv() {
            self.busy.retain(|(agent, _)| *agent != job.to);
            if failed.is_some() && job.attempts < ATTEMPTS {
                job.due = now + RETRY;
                self.waiting.push_front(job);
                continue;
            }
            done.push(Done { job, failed });
        }
        done
    }
}

/// Pastes a prompt, and fails unless the program took it.
fn deliver(session: &str, text: &str) -> Result<(), String> {
    let said = |failure: crate::failure::Failure| failure.message().to_owned();
    let listing = find(Some(session)).map_err(said)?;
    // A bot never takes the stick from a person.
    let mut bus = connect(&listing, "squad", Role::Bot).map_err(said)?;
    let delivery = Delivery { enter: true, raw: false, clear: false, queue: true, step_limit: STEP };
    let outcome = delivery.paste(&mut bus, text).map_err(said)?;
    match is_delivered(&outcome) {
        true => Ok(()),
        false => Err(format!("{}: {}", outcome.outcome.name(), outcome.evidence)),
    }
}
