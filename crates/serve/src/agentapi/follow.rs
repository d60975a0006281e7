//! Follows a session on a thread of its own and publishes the conversation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tapdeck_host::Clock;
use tapdeck_host::registry::Listing;
use tapdeck_proto::agentapi::{AgentError, AgentStatus, ErrorLevel, Message};
use tapdeck_proto::bus::{Event, Exit, Frame, InfoWanted, Push, Snap, Sub, Turns, WhichTurn};
use tokio::sync::watch;

use super::conversation::{Conversation, timestamp};
use crate::client::{ANSWER, Bus, ClientError, Role, connect_to_watch};

/// How often the conversation is looked at when nothing happens.
const LOOK: Duration = Duration::from_millis(100);
/// Frames a second.
const FRAMES: u64 = 10;

/// The conversation as clients see it.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) status: AgentStatus,
    pub(super) screen: Arc<str>,
    /// Why the session can no longer be followed.
    pub(super) error: Option<Arc<AgentError>>,
    /// Whether there is no more to come.
    pub(super) over: bool,
}

/// A conversation that is followed.
pub(super) struct Followed {
    clock: Clock,
    conversation: Mutex<Conversation>,
    view: watch::Sender<View>,
}

/// How the session ended: by its program's end, or because it cannot be followed.
pub(super) type End = Result<Exit, ClientError>;

impl Followed {
    /// Connects to a session and follows it until it ends; then calls `ended`.
    pub(super) fn start(
        listing: &Listing,
        looks: bool,
        ended: impl FnOnce(End) + Send + 'static,
    ) -> Result<(Arc<Self>, Option<String>), ClientError> {
        let clock = Clock::start();
        let mut bus = connect_to_watch(listing, "agentapi", Role::Observer)?;
        let sub = Sub { out: false, max_fps: Some(FRAMES), looks, ..Sub::default() };
        bus.request(&sub, ANSWER)?;
        // From here on turns are pushed, so those that are kept now complete the list.
        let turns = bus.request(&Turns { limit: None, whole: true }, ANSWER)?;
        let known = turns.last().map_or(0, |turn| number_of(&turn.turn_id));
        let turns = turns.into_iter().filter_map(|turn| turn.detail).collect();
        let mut conversation = Conversation::new(turns, clock.now());
        let info = bus.request(&InfoWanted::Full, ANSWER)?;
        conversation.state(info.status.agent_state, clock.now());
        let rows = info.contents.map(|contents| contents.rows).unwrap_or_default();
        conversation.frame(rows, info.status.seq, None, clock.now());
        let view = watch::Sender::new(view_of(&conversation, clock));
        let followed = Arc::new(Self { clock, conversation: Mutex::new(conversation), view });
        let following = Arc::clone(&followed);
        let thread = thread::Builder::new().name("tapdeck-agentapi".into());
        thread
            .spawn(move || {
                let end = following.follow(bus, known);
                following.end(&end);
                ended(end);
            })
            .map_err(ClientError::Io)?;
        Ok((followed, info.status.agent))
    }

    /// Returns a receiver of the conversation as clients see it.
    pub(super) fn view(&self) -> watch::Receiver<View> {
        self.view.subscribe()
    }

    /// Changes the conversation, and publishes what follows from that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Conversation, tapdeck_core::Stamp) -> T) -> T {
        let mut conversation = self.conversation();
        let changed = change(&mut conversation, self.clock.now());
        self.publish(&conversation);
        changed
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, conversation: &Conversation) {
        self.view.send_if_modified(|old| {
            if old.over {
                return false;
            }
            let new = view_of(conversation, self.clock);
            let same = |(a, b): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(a, b);
            let unchanged = old.status == new.status
                && old.screen == new.screen
                && old.messages.len() == new.messages.len()
                && old.messages.iter().zip(&new.messages).all(same);
            if !unchanged {
                *old = new;
            }
            !unchanged
        });
    }

    /// Takes what the session pushes until it ends. Turns up to `known` are in the conversation.
    fn follow(&self, mut bus: Bus, mut known: u64) -> End {
        loop {
            match bus.next(Some(LOOK))?.and_then(|frame| frame.push()) {
                Some(Push::Frame(Frame::Screen(screen))) => {
                    let since = self.conversation().answer_since();
                    let written = match since {
                        Some(since) => {
                            let asked = Snap { since: Some(since), ..Snap::default() };
                            Some(bus.request(&asked, ANSWER)?.lines.unwrap_or_default())
                        }
                        None => None,
                    };
                    self.change(|c, now| c.frame(screen.contents.rows, screen.seq, written, now));
                }
                Some(Push::Event(Event::State(judged))) => self.change(|c, now| c.state(judged.state, now)),
                Some(Push::Event(Event::Turn(turn))) => {
                    let number = number_of(&turn.turn_id);
                    if number > known {
                        known = number;
                        let asked = WhichTurn { number: Some(number), ..WhichTurn::default() };
                        match bus.request(&asked, ANSWER) {
                            Ok(turn) => {
                                turn.detail.into_iter().for_each(|turn| self.change(|c, _| c.turn(turn)))
                            }
                            // The session has forgotten it already.
                            Err(ClientError::Denied(_)) => {}
                            Err(e) => return Err(e),
                        }
                    }
                }
                Some(Push::Event(Event::Closed { exit })) => return Ok(exit),
                _ => {}
            }
            self.change(Conversation::tick);
        }
    }

    /// Tells clients that the session has ended.
    fn end(&self, end: &End) {
        let message = match end {
            Ok(exit) => match &exit.signal {
                Some(signal) => format!("the agent was ended by SIG{signal}"),
                None => format!("the agent has exited with code {}", exit.code),
            },
            Err(e) => format!("the session cannot be followed: {e}"),
        };
        let level =
            if matches!(end, Ok(exit) if exit.code == 0) { ErrorLevel::Warning } else { ErrorLevel::Error };
        let error = AgentError { level, message, time: timestamp(self.clock.now().wall) };
        self.view.send_modify(|view| (view.error, view.over) = (Some(Arc::new(error)), true));
    }

    /// Ends the event streams of all clients.
    pub(super) fn close(&self) {
        self.view.send_modify(|view| view.over = true);
    }
}

fn view_of(conversation: &Conversation, clock: Clock) -> View {
    View {
        messages: conversation.messages().cloned().collect(),
        status: conversation.status(clock.now().mono),
        screen: conversation.screen().into(),
        error: None,
        over: false,
    }
}

/// Returns the number in a turn's id.
fn number_of(turn_id: &str) -> u64 {
    turn_id.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}
