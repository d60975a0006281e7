//! Questions that a program asks on its screen, and answers to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Judged;
use crate::fields;

/// The longest choice or text of `ANSWER`, in bytes.
pub const MAX_ANSWER: usize = 64 << 10;

/// `ANSWER`: answers the question that a blocked program shows, and confirms that it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnyAnswer")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Answer {
    /// What to choose: `yes`, `no`, the number of an option, or its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub choice: Option<String>,
    /// What to type at a question that takes text, such as a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub text: Option<String>,
    /// How long the program may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

#[derive(Deserialize)]
struct AnyAnswer {
    #[serde(default)]
    choice: Value,
    #[serde(default)]
    text: Value,
    #[serde(default)]
    wait_ms: Option<u64>,
}

impl TryFrom<AnyAnswer> for Answer {
    type Error = String;

    fn try_from(any: AnyAnswer) -> Result<Self, Self::Error> {
        let read = |name: &str, value: Value| match value {
            Value::Null => Ok(None),
            Value::Number(n) if name == "choice" => Ok(Some(n.to_string())),
            Value::String(text) if text.len() > MAX_ANSWER => {
                Err(format!("{name:?} has at most {} KiB", MAX_ANSWER >> 10))
            }
            Value::String(text) => Ok(Some(text)),
            other => Err(format!("{name:?} is a text, and not {}", fields::short(&other))),
        };
        match (read("choice", any.choice)?, read("text", any.text)?) {
            (None, None) => Err("ANSWER takes {\"choice\": …} or {\"text\": …}".to_owned()),
            (Some(_), Some(_)) => Err("ANSWER takes a choice or a text, and not both".to_owned()),
            (choice, text) => Ok(Self { choice, text, wait_ms: any.wait_ms }),
        }
    }
}

/// What became of an answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerOutcome {
    /// The question has gone, or has made way for another one.
    Answered,
    /// The question still stands as it did, or it changed before anything could be sent.
    Stalled,
    /// The program asks nothing.
    NothingAsked,
    /// The question has no such option, or several that fit.
    NoSuchChoice,
}

impl AnswerOutcome {
    /// Returns the outcome's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            AnswerOutcome::Answered => "answered",
            AnswerOutcome::Stalled => "stalled",
            AnswerOutcome::NothingAsked => "nothing_asked",
            AnswerOutcome::NoSuchChoice => "no_such_choice",
        }
    }
}

/// `ANSWER`: what became of an answer, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answered {
    /// What became of it.
    pub outcome: AnswerOutcome,
    /// How that is known.
    pub evidence: String,
    /// The question that stood there when the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What was chosen or typed, for people; a password is not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// The question that has taken the place of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Question>,
    /// What the program is doing now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Judged>,
}

/// A question that a program asks on its screen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The rows of the dialog above its options: what the question is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<String>,
    /// What can be chosen, in the order of the screen.
    pub options: Vec<Choice>,
    /// Whether it takes text of any kind.
    pub takes_text: bool,
    /// Whether that text is a secret, such as a password.
    #[serde(skip_serializing_if = "fields::is_false")]
    pub secret: bool,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Choice {
    /// Its number, as the dialog shows it, or else its place from 1.
    pub number: u32,
    /// Its text.
    pub label: String,
    /// Whether it is the one that Enter would choose.
    pub marked: bool,
    /// What choosing it means, by its words.
    #[serde(skip_serializing_if = "Meaning::is_other")]
    pub means: Meaning,
    /// Whether it is a field for text, which cannot be chosen as such.
    #[serde(skip_serializing_if = "fields::is_false")]
    pub field: bool,
}

/// What choosing an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// Consent to what is asked.
    Yes,
    /// Consent to more than what is asked now.
    Always,
    /// Refusal.
    No,
    /// Something else.
    #[default]
    Other,
}

impl Meaning {
    fn is_other(&self) -> bool {
        *self == Self::Other
    }
}
