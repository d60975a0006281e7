//! The supervisor of a squad: one loop that starts agents in their order, listens to their
//! sessions, sends first prompts, passes answers on, holds the vote and restarts what has ended.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tapdeck::squad::{Agent, Condition, PromptState, Restart, Squad, State};
use tapdeck_core::Time;
use tapdeck_host::{Clock, Keyboard, Pressed};
use tapdeck_proto::bus::{AgentState, Event, Exit, Role, Turn, WhichTurn};
use tapdeck_serve::client::{Bus, alive};

use super::jobs::{Done, Jobs, Task};
use super::logs::Log;
use super::member::{self, Member, backoff, session_name};
use super::relays::{self, Next};
use super::vote;
use crate::cmd::kill;
use crate::ending::{Ending, Kind};
use crate::failure::{Failure, Result};
use crate::sessions::{ask, connect, find, split_turn_id};

/// An agent that ran this long has not failed to start.
const STABLE: Duration = Duration::from_secs(600);
/// The most of an answer that is kept for the vote, in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// How an agent has ended that could not be started.
pub(super) const NOT_STARTED: &str = "not started";

/// A squad that is supervised.
pub(super) struct Supervisor {
    squad: Squad,
    state: State,
    /// What is on disk.
    written: State,
    members: BTreeMap<String, Member>,
    jobs: Jobs,
    log: Log,
    clock: Clock,
}

impl Supervisor {
    /// Reads what is known of the squad. `shown` prints the log as well.
    pub(super) fn new(squad: Squad, shown: bool) -> Result<Self> {
        let mut state = State::load(&squad.name)?.unwrap_or_default();
        (state.version, state.supervisor) = (1, Some(std::process::id()));
        state.name.clone_from(&squad.name);
        state.file.clone_from(&squad.path);
        state.relays.resize(squad.relays.len(), Default::default());
        // What the last run left must not count for agents that wait for others.
        for saved in state.agents.values_mut() {
            (saved.ended, saved.succeeded, saved.error, saved.restarts) = (None, false, None, 0);
        }
        let members = squad.agents.keys().map(|name| (name.clone(), Member::new())).collect();
        let log = Log::open(&squad.name, shown)?;
        let written = State::default();
        Ok(Self { squad, state, written, members, jobs: Jobs::new(), log, clock: Clock::start() })
    }

    /// Supervises until all agents have ended, or a signal comes. Calls `announce` with a summary
    /// when the first agents run.
    pub(super) fn run(&mut self, announce: impl FnOnce(&str)) -> io::Result<Ending> {
        let mut keyboard = Keyboard::ends_only()?;
        let mut announce = Some(announce);
        self.adopt()?;
        loop {
            let now = self.clock.now().mono;
            self.start_members(now);
            self.listen();
            self.queue_prompts();
            let members = &self.members;
            self.jobs.start(now, |to| {
                members.get(to).filter(|m| m.state == AgentState::Idle).and_then(|m| m.session.clone())
            });
            self.save();
            if let Some(announce) = announce.take() {
                announce(&self.summary());
            }
            if self.is_over() {
                return Ok(self.ending());
            }
            let fds: Vec<BorrowedFd<'_>> =
                self.members.values().filter_map(|m| m.bus.as_ref()).map(Bus::fd).collect();
            if let Pressed::Signal(signal) = keyboard.wait_with(self.pause(now), &fds)? {
                self.state.supervisor = None;
                self.save();
                self.log.add("squad", "no longer supervised; the agents go on");
                return Ok(Ending::by_signal(signal));
            }
        }
    }

    /// How long nothing is due.
    fn pause(&self, now: Time) -> Option<Duration> {
        let due = self.members.iter().filter(|(name, _)| self.may_start(name));
        let starts = due.filter_map(|(_, member)| Some(member.start_at?.since(now)));
        starts.chain(self.jobs.pause(now)).min()
    }

    /// Takes over the agents that run already.
    fn adopt(&mut self) -> io::Result<()> {
        let now = self.clock.now().mono;
        let (_, listings) = alive()?;
        for listing in listings {
            let name =
                listing.name.as_deref().and_then(|name| name.strip_prefix(&format!("{}/", self.squad.name)));
            let Some((name, member)) = name
                .and_then(|name| self.members.get_key_value(name))
                .map(|(n, _)| n.clone())
                .and_then(|name| self.members.get_mut(&name).map(|member| (name, member)))
            else {
                continue;
            };
            match member.watch(&listing, now) {
                Ok(status) if status.done => {
                    // Its name is given back, and it is started anew.
                    member.is_gone();
                    member.start_at = Some(now);
                    dismiss(&listing.id);
                }
                Ok(status) => {
                    self.log.add(&name, &format!("runs already, as session {}", listing.id));
                    let saved = self.state.agents.entry(name.clone()).or_default();
                    saved.session = Some(listing.id.clone());
                    (saved.ended, saved.error) = (None, None);
                    if status.turns > saved.turn {
                        self.answered(&name, u64::from(status.turns));
                    } else if saved.prompt == PromptState::Sent && status.agent_state == AgentState::Idle {
                        // It was sent in vain, or could not be delivered.
                        saved.prompt = PromptState::Waiting;
                    }
                }
                Err(e) => self.log.add(&name, &format!("session {} cannot be watched: {e}", listing.id)),
            }
        }
        Ok(())
    }

    /// Whether all agents that come before one are far enough.
    fn may_start(&self, name: &str) -> bool {
        let Some(agent) = self.squad.agents.get(name) else { return false };
        agent.waits_for().all(|(first, condition)| {
            let saved = self.state.agents.get(first);
            let member = self.members.get(first);
            let has_ended = saved.is_some_and(|s| s.ended.is_some());
            match condition {
                Condition::Started => member.is_some_and(|m| m.session.is_some()) || has_ended,
                Condition::Idle => member.is_some_and(|m| m.was_idle),
                Condition::Answered => saved.is_some_and(|s| s.prompt == PromptState::Answered),
                Condition::Done => saved.is_some_and(|s| s.ended.is_some() && s.succeeded),
            }
        })
    }

    fn start_members(&mut self, now: Time) {
        // One may be what the next waits for.
        loop {
            let due = |(name, member): &(&String, &Member)| {
                member.start_at.is_some_and(|at| at <= now) && self.may_start(name)
            };
            let Some(name) = self.members.iter().find(due).map(|(name, _)| name.clone()) else { return };
            self.start(&name, now);
        }
    }

    fn start(&mut self, name: &str, now: Time) {
        let (Some(agent), Some(member)) = (self.squad.agents.get(name), self.members.get_mut(name)) else {
            return;
        };
        let saved = self.state.agents.entry(name.to_owned()).or_default();
        member.start_at = None;
        let wall = self.clock.now().wall;
        let started = member::start(&self.squad, name, agent, saved, wall).and_then(|id| {
            let listing = find(Some(&id)).map_err(|failure| failure.message().to_owned())?;
            let status = member.watch(&listing, now).map_err(|e| e.to_string())?;
            Ok((id, status.exit.filter(|_| status.done)))
        });
        match started {
            Ok((id, exit)) => {
                let recording = saved.recording.as_ref().filter(|_| agent.record);
                let recording =
                    recording.map(|r| format!(", recorded in {}", r.display())).unwrap_or_default();
                self.log.add(name, &format!("started as session {id}{recording}"));
                if let Some(exit) = exit {
                    self.ended(name, &exit);
                    dismiss(&id);
                }
            }
            Err(why) => {
                let why = format!("cannot be started: {why}");
                self.log.add(name, &why);
                saved.error = Some(why);
                saved.ended = Some(NOT_STARTED.to_owned());
                self.restart_later(name, now);
            }
        }
    }

    /// Has an agent started again, if its policy says so.
    fn restart_later(&mut self, name: &str, now: Time) {
        let (Some(agent), Some(member)) = (self.squad.agents.get(name), self.members.get_mut(name)) else {
            return;
        };
        let saved = self.state.agents.entry(name.to_owned()).or_default();
        let wanted = match agent.restart {
            Restart::No => false,
            Restart::OnFailure => !saved.succeeded,
            Restart::Always => true,
        };
        if !wanted {
            return;
        }
        if member.session.is_some() && now.since(member.started_at) > STABLE {
            saved.restarts = 0;
        }
        if saved.restarts >= agent.restart_limit {
            let why = format!("given up after {} restarts", saved.restarts);
            self.log.add(name, &why);
            saved.error = Some(why);
            return;
        }
        saved.restarts += 1;
        let pause = backoff(saved.restarts);
        member.start_at = Some(now + pause);
        let limit = agent.restart_limit;
        self.log.add(name, &format!("restart {} of {limit} in {} s", saved.restarts, pause.as_secs()));
    }

    /// Takes what the sessions have said.
    fn listen(&mut self) {
        let names: Vec<String> = self.members.keys().cloned().collect();
        for name in names {
            while let Some(bus) = self.members.get_mut(&name).and_then(|m| m.bus.as_mut()) {
                match bus.next(Some(Duration::ZERO)) {
                    Ok(None) => break,
                    Ok(Some(frame)) => match frame.event() {
                        Some(Event::State(judged)) => self.changed(&name, judged.state),
                        Some(Event::Turn(turn)) => self.turn(&name, &turn),
                        Some(Event::Closed { exit }) => self.ended(&name, &exit),
                        _ => {}
                    },
                    Err(e) => {
                        self.log.add(&name, &format!("its session is lost: {e}"));
                        let lost = Exit { code: 255, signal: None, recording_error: None };
                        self.ended(&name, &lost);
                    }
                }
            }
        }
        let now = self.clock.now().mono;
        for done in self.jobs.finished(now) {
            self.delivered(&done);
        }
    }

    fn changed(&mut self, name: &str, state: AgentState) {
        let Some(member) = self.members.get_mut(name) else { return };
        member.is_now(state);
        if state == AgentState::Blocked {
            let session = session_name(&self.squad.name, name);
            self.log.add(name, &format!("is blocked: it asks something; see tapdeck attach {session}"));
        }
    }

    fn ended(&mut self, name: &str, exit: &Exit) {
        let now = self.clock.now().mono;
        let how = match &exit.signal {
            Some(signal) => format!("signal {signal}"),
            None => format!("exit {}", exit.code),
        };
        self.log.add(name, &format!("ended: {how}"));
        let saved = self.state.agents.entry(name.to_owned()).or_default();
        saved.succeeded = exit.signal.is_none() && exit.code == 0;
        saved.ended = Some(how);
        if saved.prompt == PromptState::Sent {
            // It is lost with the program.
            saved.prompt = PromptState::Waiting;
        }
        self.jobs.forget(name);
        self.restart_later(name, now);
        if let Some(member) = self.members.get_mut(name) {
            member.is_gone();
        }
    }

    /// Queues first prompts of agents that are ready for them.
    fn queue_prompts(&mut self) {
        for (name, member) in &self.members {
            let prompt = self.squad.agents.get(name).and_then(|agent: &Agent| agent.prompt.as_ref());
            let Some(prompt) = prompt.filter(|_| member.state == AgentState::Idle) else { continue };
            let saved = self.state.agents.get(name).map(|saved| saved.prompt);
            if saved == Some(PromptState::Waiting) && !self.jobs.has(name, Task::First) {
                self.jobs.add(name, Task::First, prompt.clone());
            }
        }
    }

    fn delivered(&mut self, done: &Done) {
        let to = done.job.to.as_str();
        let session = self.members.get(to).and_then(|member| member.session.as_ref());
        if done.job.task == Task::First && session != Some(&done.job.session) {
            // Its program has ended meanwhile: the next one is asked anew.
            return;
        }
        let what = match done.job.task {
            Task::First => "the first prompt",
            Task::Relay(_) => "a relayed answer",
            Task::Vote => "the answers to judge",
        };
        if let Some(why) = &done.failed {
            let why = format!("{what} could not be delivered: {why}");
            self.log.add(to, &why);
            let saved = self.state.agents.entry(to.to_owned()).or_default();
            saved.error = Some(why);
            if done.job.task == Task::First {
                // A person has to look after it: tapdeck squad up tries again.
                saved.prompt = PromptState::Sent;
            }
            return;
        }
        self.log.add(to, &format!("got {what}"));
        let saved = self.state.agents.entry(to.to_owned()).or_default();
        saved.error = None;
        match done.job.task {
            // A quick answer may have come first.
            Task::First if saved.prompt == PromptState::Waiting => saved.prompt = PromptState::Sent,
            Task::Vote => self.state.vote.asked = true,
            _ => {}
        }
    }

    fn turn(&mut self, name: &str, turn: &Turn) {
        if turn.interrupted {
            return self.log.add(name, "its turn was interrupted");
        }
        if let (_, Some(number)) = split_turn_id(&turn.turn_id) {
            self.answered(name, number);
        }
    }

    /// Handles an answer: for the first prompt, the relays and the vote.
    fn answered(&mut self, name: &str, number: u64) {
        let Some(id) = self.members.get(name).and_then(|m| m.session.clone()) else { return };
        let (answer, is_truncated) = match fetch(&id, number) {
            Ok(answer) => answer,
            Err(failure) => {
                return self.log.add(name, &format!("its answer cannot be read: {}", failure.message()));
            }
        };
        let was_asked = self.jobs.has(name, Task::First);
        let saved = self.state.agents.entry(name.to_owned()).or_default();
        saved.turn = u32::try_from(number).unwrap_or(u32::MAX);
        if saved.prompt == PromptState::Sent || (saved.prompt == PromptState::Waiting && was_asked) {
            saved.prompt = PromptState::Answered;
            let cut = (0..=MAX_ANSWER.min(answer.len())).rev().find(|at| answer.is_char_boundary(*at));
            saved.answer = Some(answer[..cut.unwrap_or(0)].to_owned());
            self.log.add(name, "has answered its first prompt");
        }
        self.relay(name, &answer, is_truncated);
        self.vote(name, &answer);
    }

    fn relay(&mut self, name: &str, answer: &str, is_truncated: bool) {
        for i in 0..self.squad.relays.len() {
            let relay = &self.squad.relays[i];
            if relay.from.get_ref() != name {
                continue;
            }
            match relays::next(relay, &self.state.relays[i], answer, is_truncated) {
                Next::Nothing => {}
                Next::Refuse => {
                    let to = relay.to.get_ref();
                    let why = format!("its answer does not go to {to}: a part of it is missing");
                    self.log.add(name, &why);
                    self.state.agents.entry(name.to_owned()).or_default().error = Some(why);
                }
                Next::Send(text) => {
                    self.state.relays[i].rounds += 1;
                    let (to, round) = (relay.to.get_ref(), self.state.relays[i].rounds);
                    self.log
                        .add(name, &format!("its answer goes to {to}: round {round} of {}", relay.rounds));
                    self.jobs.add(to, Task::Relay(i), text);
                }
                Next::End(why) => {
                    self.log.add(name, &format!("relay to {} ends: {why}", relay.to.get_ref()));
                    for (other, saved) in self.squad.relays.iter().zip(&mut self.state.relays) {
                        if std::ptr::eq(other, relay) || relays::is_back(relay, other) {
                            saved.ended.get_or_insert_with(|| why.clone());
                        }
                    }
                }
            }
        }
    }

    fn vote(&mut self, name: &str, answer: &str) {
        let Some(rules) = &self.squad.vote else { return };
        let judge = rules.judge.get_ref();
        if self.state.vote.answer.is_some() {
            return;
        }
        let is_asked = self.state.vote.asked || self.jobs.has(judge, Task::Vote);
        if name == judge && is_asked {
            let best = vote::best(rules, answer);
            let said = match best {
                Some(best) => format!("{judge} names {best}"),
                None => format!(
                    "{judge} has not named an agent: see tapdeck turns show {}/{judge}",
                    self.squad.name
                ),
            };
            self.state.vote.best = best.map(str::to_owned);
            self.state.vote.answer = Some(answer.to_owned());
            return self.log.add("vote", &said);
        }
        if !is_asked && let Some(text) = vote::question(&self.squad, rules, &self.state) {
            self.log.add("vote", &format!("all have answered: {judge} is asked"));
            self.jobs.add(judge, Task::Vote, text);
        }
    }

    /// Whether nothing runs, and nothing can start any more.
    fn is_over(&self) -> bool {
        self.members.values().all(|m| m.session.is_none())
            && !self.members.iter().any(|(name, m)| m.start_at.is_some() && self.may_start(name))
    }

    fn ending(&mut self) -> Ending {
        self.state.supervisor = None;
        self.save();
        for (name, _) in self.members.iter().filter(|(_, m)| m.start_at.is_some()) {
            self.log.add(name, "never started: an agent that it waits for did not get far enough");
        }
        let failed = |name: &String| !self.state.agents.get(name).is_some_and(|saved| saved.succeeded);
        let failed = self.members.keys().any(failed);
        self.log.add("squad", "all agents have ended");
        if failed { Ending::Failed(Kind::Check) } else { Ending::Done }
    }

    fn summary(&self) -> String {
        let lines = self.members.iter().map(|(agent, member)| {
            let name = session_name(&self.squad.name, agent);
            let why = self.state.agents.get(agent).and_then(|saved| saved.error.as_ref());
            match (&member.session, why) {
                (Some(id), _) => format!("{name} runs as session {id}"),
                (None, Some(why)) => format!("{name} {why}"),
                (None, None) => format!("{name} does not run yet"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Writes what is known, if it has changed.
    fn save(&mut self) {
        if self.state == self.written {
            return;
        }
        match self.state.save() {
            Ok(()) => self.written.clone_from(&self.state),
            Err(e) => self.log.add("squad", &format!("its state cannot be saved: {e}")),
        }
    }
}

/// Lets a session go whose program has ended, so that its name is free.
fn dismiss(session: &str) {
    // It may be gone already.
    let _ = find(Some(session)).and_then(|listing| kill::kill(&listing, None));
}

/// An answer of a session, and whether a part of it is missing.
fn fetch(session: &str, number: u64) -> Result<(String, bool), Failure> {
    let listing = find(Some(session))?;
    let asked = WhichTurn { number: Some(number), ..WhichTurn::default() };
    let turn = ask(&mut connect(&listing, "squad", Role::Observer)?, &asked)?;
    let text = turn.detail.map(|detail| detail.text).unwrap_or_default();
    Ok((text, turn.truncated))
}
