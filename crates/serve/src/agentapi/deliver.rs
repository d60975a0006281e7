//! Sends messages to the agent: prompts by a confirmed paste, raw ones as keystrokes.

use std::time::Duration;

use tapdeck_core::turns::Choice;
use tapdeck_host::registry::Listing;
use tapdeck_proto::agentapi::AgentStatus;
use tapdeck_proto::bus::{AnswerOutcome, Key, Outcome};

use super::conversation::Conversation;
use super::follow::Followed;
use crate::client::{self, ANSWER, ClientError, Role, connect_to_watch};

/// How long each step of a delivery may take, as with agentapi.
const STEP: Duration = Duration::from_secs(15);

/// Why a message was not delivered. The first sentences are those of agentapi.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undelivered {
    #[error("message must not be empty")]
    Empty,
    #[error("message must be trimmed of leading and trailing whitespace")]
    Untrimmed,
    #[error("message can only be sent when the agent is waiting for user input")]
    Busy,
    #[error(
        "the agent asks a question, and the message does not answer it ({0}): send yes, no, the number or \
         the label of an option, or keys as a message of type \"raw\""
    )]
    Unanswered(String),
    #[error("the message was not delivered: {0}")]
    Failed(String),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Delivers a prompt, and waits until the agent has taken it.
pub(super) fn prompt(listing: &Listing, followed: &Followed, text: &str) -> Result<(), Undelivered> {
    if text.is_empty() {
        return Err(Undelivered::Empty);
    }
    if text.trim() != text {
        return Err(Undelivered::Untrimmed);
    }
    if followed.change(|conversation, now| conversation.is_blocked(now.mono)) {
        return answer(listing, followed, text);
    }
    followed.change(|conversation, now| {
        if conversation.status(now.mono) != AgentStatus::Stable {
            return Err(Undelivered::Busy);
        }
        conversation.sending();
        Ok(())
    })?;
    let pasted = paste(listing, text);
    let delivered = pasted.is_ok().then(|| text.to_owned());
    followed.change(|conversation, now| conversation.sent(delivered, now));
    pasted
}

/// Answers the question that the agent asks. The answer is part of the turn, and no message.
fn answer(listing: &Listing, followed: &Followed, text: &str) -> Result<(), Undelivered> {
    let mut bus = connect_to_watch(listing, "agentapi", Role::Bot)?;
    let answered = client::answer(&mut bus, &Choice::named(text), None)?;
    if answered.outcome != AnswerOutcome::Answered {
        return Err(Undelivered::Unanswered(answered.evidence));
    }
    followed.change(Conversation::typed);
    Ok(())
}

fn paste(listing: &Listing, text: &str) -> Result<(), Undelivered> {
    let mut bus = connect_to_watch(listing, "agentapi", Role::Bot)?;
    let pasted = client::submit(&mut bus, text, STEP)?;
    match pasted.outcome {
        Outcome::Submitted | Outcome::Pasted => Ok(()),
        Outcome::Blocked | Outcome::Stalled => Err(Undelivered::Failed(pasted.evidence)),
    }
}

/// Types keystrokes as they are.
pub(super) fn keystrokes(listing: &Listing, followed: &Followed, text: &str) -> Result<(), Undelivered> {
    let mut bus = connect_to_watch(listing, "agentapi", Role::Bot)?;
    bus.confirm(&Key::Raw(text.to_owned()), ANSWER)?;
    followed.change(Conversation::typed);
    Ok(())
}
