//! One prompt: delivers it, tells its answer as that grows, passes on the questions that come in
//! between, and says how it ended.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tapdeck_core::turns::Evidence;
use tapdeck_host::Clock;
use tapdeck_proto::acp::{
    Permission, PermissionKind, PermissionOption, PermissionOutcome, RequestPermission, StopReason, ToolCall,
    ToolContent, ToolKind, ToolStatus, Update,
};
use tapdeck_proto::bus::{
    AgentState, AnswerOutcome, Choice as Listed, Explain, InfoWanted, Key, Meaning, Question, Turn, Typing,
    WhichTurn,
};

use super::Open;
use super::peer::{Peer, RpcError, params};
use super::telling::{Telling, chunks, fenced};
use crate::client::{
    ANSWER, AskOutcome, Asked, Asking, Bus, Choice, ClientError, Looked, answer, is_closed, release,
};

/// How often it is looked what is new.
const LOOK: Duration = Duration::from_millis(100);
/// How long each step of a delivery may take. A program that has only begun may need a while.
const STEP: Duration = Duration::from_secs(30);
/// How long a program may take to break off, how often it is told to, and how long it is given
/// between two keys.
const BREAK: Duration = Duration::from_secs(3);
const BREAKS: u32 = 3;
const KEYS: Duration = Duration::from_millis(150);

impl From<ClientError> for RpcError {
    fn from(e: ClientError) -> Self {
        Self::failed(e.to_string())
    }
}

/// Delivers a prompt, and returns when its answer is over.
pub(super) fn prompt(peer: &Peer, session: &Arc<Open>, text: &str) -> Result<StopReason, RpcError> {
    let bus = session.join()?;
    let mut course = Course { peer, session, bus, telling: None, clock: Clock::start() };
    let notes = session.take_notes();
    if !notes.is_empty() {
        course.say(&format!("{}\n\n", notes.join("\n\n")));
    }
    let Some(asking) = course.deliver(text)? else { return Ok(StopReason::Cancelled) };
    course.follow(asking)
}

/// A prompt on its way.
struct Course<'a> {
    peer: &'a Peer,
    session: &'a Arc<Open>,
    bus: Bus,
    telling: Option<Telling>,
    clock: Clock,
}

/// What became of a question.
enum Settled {
    /// It is gone.
    Gone,
    /// The turn was cancelled.
    Cancelled,
}

impl Course<'_> {
    fn tell(&self, updates: Vec<Update>) {
        updates.iter().for_each(|update| self.session.tell(self.peer, update));
    }

    fn say(&self, text: &str) {
        let mut updates = Vec::new();
        chunks(text, &mut updates);
        self.tell(updates);
    }

    /// Submits the prompt, once what the program asks first is settled. `None` when it was
    /// cancelled.
    fn deliver(&mut self, text: &str) -> Result<Option<Asking>, RpcError> {
        let mut question = self.bus.request(&Explain, ANSWER)?.question;
        loop {
            match question {
                Some(asked) if can_be_chosen(&asked) => {
                    if let Settled::Cancelled = self.settle(&asked, None)? {
                        self.interrupt(None)?;
                        return Ok(None);
                    }
                }
                Some(asked) if asked.takes_text => {
                    let from = self.seq()?;
                    let answered = answer(&mut self.bus, &Choice::Text(text.to_owned()), None)?;
                    if answered.outcome != AnswerOutcome::Answered {
                        return Err(RpcError::failed(format!(
                            "the answer was not taken: {}",
                            answered.evidence
                        )));
                    }
                    release(&mut self.bus)?;
                    return Ok(Some(Asking::since(from)));
                }
                _ => {}
            }
            let begun = {
                let _line = self.session.while_busy(&self.bus)?;
                Asking::begin(&mut self.bus, text, STEP)
            };
            let begun = match begun {
                Err(_) if self.session.is_cancelled() => {
                    self.bus = self.session.join()?;
                    self.interrupt(None)?;
                    return Ok(None);
                }
                begun => begun?,
            };
            match begun {
                Ok(asking) => return Ok(Some(asking)),
                // A question came up while the program started.
                Err(Asked { question: Some(asked), .. }) if can_be_chosen(&asked) => question = Some(asked),
                Err(asked) => {
                    return Err(RpcError::failed(format!(
                        "the prompt was not delivered: {}",
                        asked.evidence
                    )));
                }
            }
        }
    }

    /// Tells the answer until it is over.
    fn follow(&mut self, mut asking: Asking) -> Result<StopReason, RpcError> {
        loop {
            if self.session.is_cancelled() {
                self.interrupt(Some(&mut asking))?;
                return Ok(StopReason::Cancelled);
            }
            let asked = match asking.look(&mut self.bus)? {
                Looked::Over(asked) if asked.outcome != AskOutcome::Blocked => *asked,
                Looked::Over(asked) => {
                    self.tell_progress(asking.entered())?;
                    self.finish(&asked)?;
                    let from = self.seq()?;
                    match &asked.question {
                        Some(question) if can_be_chosen(question) => {
                            if let Settled::Gone = self.settle(question, Some(asking.entered()))? {
                                // What a line editor asks is a turn of its own.
                                asking.go_on(asked.answer.is_some().then_some(from));
                            }
                            continue;
                        }
                        question => {
                            self.say(&self.unanswerable(question.as_ref(), &asked.evidence));
                            return Ok(StopReason::EndTurn);
                        }
                    }
                }
                Looked::Runs(_, pause) => {
                    self.tell_progress(asking.entered())?;
                    if !is_closed(&mut self.bus, pause.map_or(LOOK, |pause| pause.min(LOOK)))? {
                        continue;
                    }
                    asking.ended(&mut self.bus)
                }
            };
            self.finish(&asked)?;
            if asked.outcome == AskOutcome::Ended {
                self.say("\n\n[The program has ended.]");
            }
            return Ok(if asked.interrupted { StopReason::Cancelled } else { StopReason::EndTurn });
        }
    }

    /// Tells what is new of the answer to the prompt that was submitted at this byte.
    fn tell_progress(&mut self, entered: u64) -> Result<(), RpcError> {
        let from = self.telling.as_ref().map_or(0, Telling::from);
        let asked = WhichTurn { running: true, parts: Some(from), ..WhichTurn::default() };
        let turn = match self.bus.request(&asked, ANSWER) {
            Ok(turn) => turn,
            // It is over, or has not begun.
            Err(ClientError::Denied(_)) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let Some(detail) = turn.detail.filter(|detail| detail.start_byte >= entered) else { return Ok(()) };
        let telling = self.telling.get_or_insert_with(|| Telling::new(&turn.turn_id));
        let updates = if detail.evidence == Evidence::Journal.name() {
            telling.parts(detail.parts.unwrap_or_default())
        } else {
            telling.screen(&detail.text, self.clock.now().mono)
        };
        self.tell(updates);
        Ok(())
    }

    /// Tells the rest of an answer that is over.
    fn finish(&mut self, asked: &Asked) -> Result<(), RpcError> {
        // A turn that runs on has an id and no answer.
        let (Some(turn_id), Some(answer)) = (&asked.turn_id, &asked.answer) else { return Ok(()) };
        let telling = self.telling.take();
        let mut telling = telling.unwrap_or_else(|| Telling::new(turn_id));
        let parts = parts_of(&mut self.bus, turn_id)?;
        // A program that writes its answers down and has not written the end of this one was
        // stopped, by a refused permission for instance.
        let is_shown = parts.is_empty();
        let mut updates = if is_shown {
            telling.rest(answer)
        } else {
            let from = telling.from();
            telling.parts(parts.into_iter().skip(from).collect())
        };
        updates.extend(telling.end(asked.interrupted || is_shown));
        if asked.truncated {
            chunks("\n\n[Text is missing from this answer.]", &mut updates);
        }
        self.tell(updates);
        Ok(())
    }

    /// Has the client's user choose how a question is answered, and answers it so. A person at the
    /// terminal may be faster. `entered` is where the answer that it interrupts begins.
    fn settle(&mut self, question: &Question, entered: Option<u64>) -> Result<Settled, RpcError> {
        let call = ToolCall {
            tool_call_id: self.session.next_question(),
            title: Some(title_of(question)),
            kind: Some(ToolKind::Other),
            status: Some(ToolStatus::Pending),
            content: content_of(question),
        };
        let id = call.tool_call_id.clone();
        self.tell(vec![Update::ToolCall(call.clone())]);
        let asked = RequestPermission {
            session_id: self.session.id().to_owned(),
            tool_call: call,
            options: options_of(question),
        };
        let (request, chosen) = self.peer.ask("session/request_permission", &asked);
        let outcome = loop {
            if self.session.is_cancelled() {
                break None;
            }
            match chosen.recv_timeout(LOOK) {
                Ok(Ok(value)) => break Some(params::<Permission>(value)?.outcome),
                Ok(Err(error)) => {
                    return Err(RpcError::failed(format!("the client cannot ask its user: {error}")));
                }
                Err(RecvTimeoutError::Timeout) if self.still_asks(question)? => {
                    // The program may write down what it asks for after it has asked.
                    if let Some(entered) = entered {
                        self.tell_progress(entered)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.peer.take_back(request);
                    self.tell_settled(&id, ToolStatus::Completed, "answered at the terminal");
                    return Ok(Settled::Gone);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(RpcError::failed("the client is gone")),
            }
        };
        let Some(PermissionOutcome::Selected { option_id }) = outcome else {
            // A client that cancels answers its requests by itself.
            self.peer.forget(request);
            self.session.cancel();
            self.tell_settled(&id, ToolStatus::Failed, "cancelled");
            return Ok(Settled::Cancelled);
        };
        let option = asked.options.iter().find(|option| option.option_id == option_id);
        let option = option.ok_or_else(|| RpcError::failed(format!("there is no option {option_id:?}")))?;
        let choice = option_id.parse().map_or(Choice::No, Choice::Number);
        let refused = match answer(&mut self.bus, &choice, None) {
            Ok(answered) if answered.outcome == AnswerOutcome::Answered => None,
            Ok(answered) => Some(answered.evidence),
            Err(ClientError::Denied(why)) => Some(why),
            Err(e) => return Err(e.into()),
        };
        release(&mut self.bus)?;
        let Some(why) = refused else {
            self.tell_settled(&id, ToolStatus::Completed, &option.name);
            return Ok(Settled::Gone);
        };
        self.tell_settled(&id, ToolStatus::Failed, &format!("the answer was not taken: {why}"));
        self.say(&format!(
            "\n\n[The answer was not taken: {why}. Answer at the terminal: {}]",
            self.attach()
        ));
        while !self.session.is_cancelled() {
            if !self.still_asks(question)? {
                return Ok(Settled::Gone);
            }
            is_closed(&mut self.bus, LOOK)?;
        }
        Ok(Settled::Cancelled)
    }

    fn tell_settled(&self, id: &str, status: ToolStatus, how: &str) {
        let content = Some(vec![ToolContent::text(how)]);
        let (tool_call_id, status) = (id.to_owned(), Some(status));
        let call = ToolCall { tool_call_id, status, content, ..ToolCall::default() };
        self.tell(vec![Update::ToolCallUpdate(call)]);
    }

    /// Returns whether this question still stands. Its mark may have moved.
    fn still_asks(&mut self, question: &Question) -> Result<bool, RpcError> {
        let explained = self.bus.request(&Explain, ANSWER)?;
        let labels = |q: &Question| q.options.iter().map(|o| o.label.clone()).collect::<Vec<_>>();
        let same = |q: &Question| q.text == question.text && labels(q) == labels(question);
        Ok(explained.judged.state == AgentState::Blocked && explained.question.as_ref().is_some_and(same))
    }

    /// Breaks off what the program does, with the keys that its rules name, and tells the rest of
    /// the answer.
    fn interrupt(&mut self, mut asking: Option<&mut Asking>) -> Result<(), RpcError> {
        for _ in 0..BREAKS {
            let explained = self.bus.request(&Explain, ANSWER)?;
            if !matches!(explained.judged.state, AgentState::Idle | AgentState::Done) {
                for key in explained.interrupt {
                    let typing = Typing { keys: Some(vec![key]), confirm: true, ..Typing::default() };
                    match self.bus.request(&Key::Typed(typing), ANSWER) {
                        Ok(_) => is_closed(&mut self.bus, KEYS)?,
                        Err(ClientError::Denied(why)) => {
                            self.say(&format!("\n\n[The program goes on: {why}.]"));
                            return Ok(());
                        }
                        Err(e) => return Err(e.into()),
                    };
                }
                release(&mut self.bus)?;
            }
            let clock = Clock::start();
            while clock.elapsed() < BREAK {
                let closed = is_closed(&mut self.bus, LOOK)?;
                let Some(asking) = asking.as_deref_mut() else {
                    let state = self.bus.request(&Explain, ANSWER)?.judged.state;
                    if closed || matches!(state, AgentState::Idle | AgentState::Done) {
                        return Ok(());
                    }
                    continue;
                };
                let over = match asking.look(&mut self.bus)? {
                    Looked::Over(asked) if asked.outcome != AskOutcome::Blocked => Some(*asked),
                    _ => closed.then(|| asking.ended(&mut self.bus)),
                };
                if let Some(asked) = over {
                    return self.finish(&Asked { interrupted: true, ..asked });
                }
            }
        }
        self.say(&format!("\n\n[The program does not break off. See what it does: {}]", self.attach()));
        Ok(())
    }

    /// Says that the program waits for something that the protocol cannot pass on.
    fn unanswerable(&self, question: Option<&Question>, evidence: &str) -> String {
        match question {
            Some(question) if question.takes_text && !question.secret => {
                let asked = fenced(words_of(question));
                format!("\n\nThe program asks for a text. Your next message is the answer.\n\n{asked}")
            }
            Some(question) => {
                let asked = fenced(words_of(question));
                format!("\n\nThe program asks. Answer at the terminal: {}\n\n{asked}", self.attach())
            }
            None => format!("\n\n[The program waits ({evidence}). See why: {}]", self.attach()),
        }
    }

    fn attach(&self) -> String {
        (self.session.attach)(self.session.id())
    }

    fn seq(&mut self) -> Result<u64, RpcError> {
        Ok(self.bus.request(&InfoWanted::Brief, ANSWER)?.status.seq)
    }
}

/// Returns the parts of a turn that is over; none if its text was read off the screen, or if the
/// session has forgotten it.
pub(super) fn parts_of(bus: &mut Bus, turn_id: &str) -> Result<Vec<tapdeck_proto::bus::Part>, RpcError> {
    let number = turn_id.rsplit(':').next().and_then(|number| number.parse().ok());
    let asked = WhichTurn { number, parts: Some(0), ..WhichTurn::default() };
    match bus.request(&asked, ANSWER) {
        Ok(Turn { detail, .. }) => Ok(detail.and_then(|detail| detail.parts).unwrap_or_default()),
        Err(ClientError::Denied(_)) => Ok(Vec::new()),
        Err(e) => Err(e.into()),
    }
}

/// Returns whether a question can be answered by choosing.
fn can_be_chosen(question: &Question) -> bool {
    !options_of(question).is_empty()
}

/// Returns what can be chosen; for a panel without options, to close it.
fn options_of(question: &Question) -> Vec<PermissionOption> {
    if question.options.is_empty() && !question.takes_text {
        let (option_id, name) = ("close".to_owned(), "Close".to_owned());
        return vec![PermissionOption { option_id, name, kind: PermissionKind::RejectOnce }];
    }
    question.options.iter().filter(|option| !option.field).map(option_of).collect()
}

fn option_of(option: &Listed) -> PermissionOption {
    PermissionOption {
        option_id: option.number.to_string(),
        name: tapdeck_term::printable(&option.label),
        kind: match option.means {
            Meaning::Always => PermissionKind::AllowAlways,
            Meaning::No => PermissionKind::RejectOnce,
            Meaning::Yes | Meaning::Other => PermissionKind::AllowOnce,
        },
    }
}

fn title_of(question: &Question) -> String {
    let title = if question.text.trim().is_empty() { "The program asks" } else { question.text.trim() };
    tapdeck_term::printable(title)
}

/// Returns what a question is about.
fn content_of(question: &Question) -> Option<Vec<ToolContent>> {
    let detail = tapdeck_term::printable_lines(&question.detail.join("\n"));
    let detail = detail.trim_matches('\n').to_owned();
    (!detail.trim().is_empty()).then(|| vec![ToolContent::text(fenced(detail))])
}

/// Returns a question with what it is about.
fn words_of(question: &Question) -> String {
    let mut rows = question.detail.clone();
    if !rows.iter().any(|row| row.contains(question.text.trim())) {
        rows.push(question.text.clone());
    }
    tapdeck_term::printable_lines(rows.join("\n").trim_matches('\n'))
}
