//! The conversation with an agent as a state machine: frames, states and turns of a session in,
//! messages and a status out. It has no clock and does no I/O.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::{Stamp, Time, WallTime};
use tapdeck_host::cassette::rfc3339;
use tapdeck_proto::agentapi::{AgentStatus, ConversationRole, Message};
use tapdeck_proto::bus::{AgentState, TurnDetail};

use super::text;

/// The most messages that are kept. The oldest go first.
const MESSAGES: usize = 2000;
/// A program without rules counts as waiting when its screen has stood still for this long.
const STILL: Duration = Duration::from_secs(2);
/// Keystrokes may change the agent's state within this long.
const KEYS: Duration = Duration::from_secs(1);
/// A dialog in the middle of an answer counts once it has stood for this long: what is drawn while
/// an agent starts to work may look like one for a moment.
const DIALOG: Duration = Duration::from_millis(500);
/// An answer is over when the agent has been idle for this long and no turn was reported, as after
/// a command that prints nothing.
const NO_TURN: Duration = Duration::from_secs(2);

/// What was on the screen when a prompt was sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    rows: HashSet<String>,
    seq: u64,
}

/// What is going on between two prompts.
#[derive(Debug)]
enum Phase {
    /// Nothing was asked yet: the screen is the agent's first message.
    Greeting,
    /// The last answer is complete.
    Rest,
    /// A prompt is on its way.
    Sending(Before),
    /// An answer is being written.
    Running(Run),
}

/// An answer that is being written.
#[derive(Debug)]
struct Run {
    before: Before,
    /// The prompt, if a client of ours sent it.
    prompt: Option<String>,
    /// The numbers of the user's message and of the answer, once they are published.
    user: Option<u64>,
    agent: Option<u64>,
    /// Since when the agent has been idle.
    idle: Option<Time>,
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    messages: VecDeque<Arc<Message>>,
    next_id: u64,
    phase: Phase,
    state: AgentState,
    /// Since when it is in that state.
    since: Time,
    /// Whether the agent has been at its prompt.
    ready: bool,
    rows: Vec<String>,
    seq: u64,
    /// When the screen last changed.
    changed: Time,
    /// When keystrokes were typed that have not changed the state yet.
    typed: Option<Time>,
    /// Turns that ended while a prompt was on its way.
    held: Vec<TurnDetail>,
}

impl Conversation {
    /// Begins with the turns that the session has had so far.
    pub(super) fn new(turns: Vec<TurnDetail>, now: Stamp) -> Self {
        let mut new = Self {
            messages: VecDeque::new(),
            next_id: 0,
            phase: Phase::Greeting,
            state: AgentState::Unknown,
            since: now.mono,
            ready: !turns.is_empty(),
            rows: Vec::new(),
            seq: 0,
            changed: now.mono,
            typed: None,
            held: Vec::new(),
        };
        // agentapi begins with what the agent shows before the first prompt.
        new.put(None, ConversationRole::Agent, String::new(), now.wall);
        for turn in turns {
            new.end_turn(&turn);
        }
        new
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    /// Returns the screen as text.
    pub(super) fn screen(&self) -> String {
        text::of(self.rows.iter().map(String::as_str))
    }

    pub(super) fn status(&self, now: Time) -> AgentStatus {
        let stable = match (&self.phase, self.state) {
            (Phase::Sending(_), _) => false,
            // A client that answers a dialog and then asks must not be told of the dialog.
            _ if self.typed.is_some_and(|typed| now.since(typed) < KEYS) => false,
            (_, AgentState::Blocked) => self.is_blocked(now),
            (_, AgentState::Done) => true,
            (Phase::Running(_), _) | (_, AgentState::Working) => false,
            (_, AgentState::Idle) => true,
            (_, AgentState::Unknown) => now.since(self.changed) >= STILL,
        };
        if stable { AgentStatus::Stable } else { AgentStatus::Running }
    }

    /// Returns whether the agent waits for an answer other than a prompt.
    pub(super) fn is_blocked(&self, now: Time) -> bool {
        let stands = !matches!(self.phase, Phase::Running(_)) || now.since(self.since) >= DIALOG;
        self.state == AgentState::Blocked && stands
    }

    /// Returns where the answer begins that is being written, if any.
    pub(super) fn answer_since(&self) -> Option<u64> {
        match &self.phase {
            Phase::Running(run) => Some(run.before.seq),
            _ => None,
        }
    }

    /// Takes the screen, and the rows that were written since [`Conversation::answer_since`].
    pub(super) fn frame(&mut self, rows: Vec<String>, seq: u64, written: Option<Vec<String>>, now: Stamp) {
        if rows != self.rows {
            self.changed = now.mono;
        }
        (self.rows, self.seq) = (rows, seq);
        match &self.phase {
            Phase::Greeting => {
                let greeting = text::without_input_field(&self.rows);
                self.put(Some(0), ConversationRole::Agent, greeting, now.wall);
            }
            Phase::Running(run) => {
                let prompt = run.prompt.as_deref().unwrap_or_default();
                let Some(written) = written else { return };
                let said = text::answer(&written, &run.before.rows, prompt);
                if !said.is_empty() || run.agent.is_some() {
                    self.publish(said, now.wall);
                }
            }
            Phase::Rest | Phase::Sending(_) => {}
        }
    }

    /// Takes the agent's state.
    pub(super) fn state(&mut self, state: AgentState, now: Stamp) {
        if self.state != state {
            (self.typed, self.since) = (None, now.mono);
        }
        self.state = state;
        let idle = state == AgentState::Idle;
        self.ready |= idle;
        match &mut self.phase {
            Phase::Running(run) => run.idle = idle.then(|| run.idle.unwrap_or(now.mono)),
            // Another client has sent a prompt.
            Phase::Rest | Phase::Greeting if state == AgentState::Working && self.ready => {
                self.begin(None, self.before());
            }
            _ => {}
        }
    }

    /// Ends an answer of which no turn was reported, once the agent has been idle for a while.
    pub(super) fn tick(&mut self, now: Stamp) {
        let Phase::Running(run) = &mut self.phase else { return };
        if self.state == AgentState::Unknown {
            // Without rules, an answer is over when the screen stands still.
            run.idle = Some(self.changed);
        }
        if run.idle.is_none_or(|idle| now.mono.since(idle) < NO_TURN) {
            return;
        }
        if run.prompt.is_some() && run.agent.is_none() {
            self.publish(String::new(), now.wall);
        }
        self.phase = Phase::Rest;
    }

    /// Takes a turn that has ended.
    pub(super) fn turn(&mut self, turn: TurnDetail) {
        match self.phase {
            Phase::Sending(_) => self.held.push(turn),
            _ => self.end_turn(&turn),
        }
    }

    /// Notes that a prompt is on its way.
    pub(super) fn sending(&mut self) {
        self.phase = Phase::Sending(self.before());
    }

    /// Notes that the prompt was delivered, or was not.
    pub(super) fn sent(&mut self, prompt: Option<String>, now: Stamp) {
        let before = match std::mem::replace(&mut self.phase, Phase::Rest) {
            Phase::Sending(before) => before,
            other => {
                self.phase = other;
                return;
            }
        };
        if let Some(prompt) = prompt {
            let user = self.put(None, ConversationRole::User, prompt.clone(), now.wall);
            self.begin(Some((prompt, user)), before);
        }
        for turn in std::mem::take(&mut self.held) {
            self.end_turn(&turn);
        }
    }

    /// Notes that keystrokes were typed.
    pub(super) fn typed(&mut self, now: Stamp) {
        self.typed = Some(now.mono);
    }

    fn before(&self) -> Before {
        let rows = self.rows.iter().map(|row| row.trim().to_owned()).filter(|row| !row.is_empty());
        Before { rows: rows.collect(), seq: self.seq }
    }

    fn begin(&mut self, prompt: Option<(String, u64)>, before: Before) {
        let (prompt, user) = prompt.unzip();
        self.phase = Phase::Running(Run { before, prompt, user, agent: None, idle: None });
    }

    /// Publishes the answer so far.
    fn publish(&mut self, said: String, now: WallTime) {
        let Phase::Running(run) = &self.phase else { return };
        let (user, agent) = (run.user, run.agent);
        let user = user.unwrap_or_else(|| self.put(None, ConversationRole::User, String::new(), now));
        let agent = self.put(agent, ConversationRole::Agent, said, now);
        if let Phase::Running(run) = &mut self.phase {
            (run.user, run.agent) = (Some(user), Some(agent));
        }
    }

    /// Completes the answer that is being written, or adds a prompt and its answer.
    fn end_turn(&mut self, turn: &TurnDetail) {
        let (asked, ended) = (WallTime::from_nanos(turn.start_ns), WallTime::from_nanos(turn.end_ns));
        let (user, agent) = match std::mem::replace(&mut self.phase, Phase::Rest) {
            Phase::Running(Run { user, agent, prompt, .. }) => {
                // The prompt as the client wrote it is more exact than as the agent shows it.
                if prompt.is_none() {
                    let input = text::of(turn.input.lines());
                    self.put(user, ConversationRole::User, input, asked);
                }
                (user, agent)
            }
            _ => (None, None),
        };
        if user.is_none() && agent.is_none() && !self.ends_with(ConversationRole::User) {
            self.put(None, ConversationRole::User, text::of(turn.input.lines()), asked);
        }
        self.put(agent, ConversationRole::Agent, text::of(turn.text.lines()), ended);
    }

    fn ends_with(&self, role: ConversationRole) -> bool {
        self.messages.back().is_some_and(|last| last.role == role)
    }

    /// Adds a message, or replaces the one with this number. Returns its number.
    fn put(&mut self, id: Option<u64>, role: ConversationRole, content: String, at: WallTime) -> u64 {
        let content = text::bounded(content);
        let first = self.messages.front().map_or(self.next_id, |first| first.id);
        if let Some(id) = id {
            let place = id.checked_sub(first).and_then(|n| usize::try_from(n).ok());
            if let Some(old) = place.and_then(|n| self.messages.get_mut(n))
                && old.content != content
            {
                *old = Arc::new(Message { content, id, role, time: timestamp(at) });
            }
            return id;
        }
        let id = self.next_id;
        self.next_id += 1;
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(Arc::new(Message { content, id, role, time: timestamp(at) }));
        id
    }
}

/// Returns a time by RFC 3339, with milliseconds.
pub(super) fn timestamp(at: WallTime) -> String {
    let seconds = rfc3339(at);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), at.as_millis() % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp { mono: Time::from_millis(millis), wall: WallTime::from_millis(millis) }
    }

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn turn(input: &str, text: &str) -> TurnDetail {
        TurnDetail {
            text: text.into(),
            input: input.into(),
            start_byte: 0,
            end_byte: 0,
            start_ns: 1_000_000,
            end_ns: 2_000_000,
            evidence: "prompt".into(),
            parts: None,
            raw: None,
        }
    }

    fn said(conversation: &Conversation) -> Vec<(u64, ConversationRole, &str)> {
        conversation.messages().map(|m| (m.id, m.role, m.content.as_str())).collect()
    }

    use ConversationRole::{Agent, User};

    #[test]
    fn a_prompt_of_ours_is_followed_to_its_answer() {
        let mut c = Conversation::new(Vec::new(), at(0));
        c.frame(rows("hello\n>"), 5, None, at(1));
        assert_eq!(c.status(Time::from_millis(2)), AgentStatus::Running, "it has only just begun");
        c.state(AgentState::Idle, at(3));
        assert_eq!(c.status(Time::from_millis(3)), AgentStatus::Stable);
        c.sending();
        assert_eq!(c.status(Time::from_millis(4)), AgentStatus::Running);
        // The state changes before the delivery is confirmed.
        c.state(AgentState::Working, at(5));
        c.sent(Some("ask".into()), at(6));
        assert_eq!(said(&c), [(0, Agent, "hello\n>"), (1, User, "ask")]);
        assert_eq!(c.answer_since(), Some(5));
        c.frame(rows("hello\n> ask\nanswe\n>"), 9, Some(rows("> ask\nanswe\n>")), at(7));
        assert_eq!(said(&c).last(), Some(&(2, Agent, "answe")));
        assert_eq!(c.status(Time::from_secs(9)), AgentStatus::Running);
        c.state(AgentState::Blocked, at(8));
        assert_eq!(c.status(Time::from_millis(8)), AgentStatus::Running, "it may be gone at once");
        assert_eq!(c.status(Time::from_millis(600)), AgentStatus::Stable, "a dialog waits");
        c.typed(at(600));
        assert_eq!(c.status(Time::from_millis(601)), AgentStatus::Running, "it may have been answered");
        assert_eq!(c.status(Time::from_millis(1700)), AgentStatus::Stable, "it was not");
        c.turn(turn("ask", "answer\n"));
        c.state(AgentState::Idle, at(9));
        assert_eq!(said(&c)[1..], [(1, User, "ask"), (2, Agent, "answer")]);
        assert_eq!(c.status(Time::from_millis(9)), AgentStatus::Stable);
    }

    #[test]
    fn a_turn_that_ends_before_its_delivery_is_confirmed_is_not_lost() {
        let mut c = Conversation::new(Vec::new(), at(0));
        c.state(AgentState::Idle, at(1));
        c.sending();
        c.turn(turn("ask", "quick"));
        c.sent(Some("ask".into()), at(2));
        assert_eq!(said(&c), [(0, Agent, ""), (1, User, "ask"), (2, Agent, "quick")]);
        c.sending();
        c.sent(None, at(3));
        assert_eq!(said(&c).len(), 3, "what was not delivered is no message");
    }

    #[test]
    fn prompts_of_other_clients_are_part_of_the_conversation() {
        let mut c = Conversation::new(vec![turn("first", "one")], at(0));
        c.state(AgentState::Idle, at(1));
        c.state(AgentState::Working, at(2));
        c.frame(rows("tw"), 9, Some(rows("tw")), at(3));
        assert_eq!(said(&c)[3..], [(3, User, ""), (4, Agent, "tw")]);
        c.turn(turn("second", "two"));
        let all =
            [(0, Agent, ""), (1, User, "first"), (2, Agent, "one"), (3, User, "second"), (4, Agent, "two")];
        assert_eq!(said(&c), all);
    }

    #[test]
    fn a_prompt_without_an_answer_comes_to_an_end() {
        let mut c = Conversation::new(Vec::new(), at(0));
        c.state(AgentState::Idle, at(1));
        c.sending();
        c.sent(Some("/clear".into()), at(2));
        c.state(AgentState::Idle, at(3));
        c.tick(at(1000));
        assert_eq!(c.status(Time::from_millis(1000)), AgentStatus::Running);
        c.tick(at(2100));
        assert_eq!(c.status(Time::from_millis(2100)), AgentStatus::Stable);
        assert_eq!(said(&c).last(), Some(&(2, Agent, "")));
    }
}
