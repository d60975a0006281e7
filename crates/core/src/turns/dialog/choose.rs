//! Which option an answer means.

use super::{Dialog, DialogOption, Form, Reply, unboxed};

/// An answer, as people and programs give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Consent, to no more than this once.
    Yes,
    /// Refusal.
    No,
    /// The option with this number.
    Number(u32),
    /// The option with this label or part of it, or text for a question that takes text.
    Label(String),
    /// Text for a question that takes text.
    Text(String),
}

impl Choice {
    /// Reads what was given for a choice: `yes`, `no`, a number or a label.
    pub fn named(text: &str) -> Self {
        match text.trim().to_lowercase().as_str() {
            "yes" | "y" => Self::Yes,
            "no" | "n" => Self::No,
            number => number.parse().map_or_else(|_| Self::Label(text.to_owned()), Self::Number),
        }
    }
}

/// Why no option was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoChoice {
    /// No option says so.
    #[error("no option says {0:?}")]
    None(String),
    /// There is no option with this number.
    #[error("there is no option {0}")]
    Number(u32),
    /// Several fit.
    #[error("{text:?} fits several options: {}", labels.join(", "))]
    Several {
        /// What was given.
        text: String,
        /// Those that it fits.
        labels: Vec<String>,
    },
    /// The option with this number is a field.
    #[error("option {0} takes text: give the text instead of its number")]
    Field(u32),
    /// It takes one of its options, and no text.
    #[error("the question takes one of its options, and no text")]
    NoText,
    /// The text has a line end.
    #[error("the question takes one line of text")]
    Lines,
}

/// First words of an option that consents.
const YES: [&str; 10] =
    ["yes", "y", "allow", "approve", "accept", "proceed", "continue", "submit", "trust", "ok"];
/// First words of an option that refuses.
const NO: [&str; 13] = [
    "no", "n", "deny", "reject", "decline", "cancel", "don't", "disallow", "abort", "exit", "quit", "skip",
    "stop",
];
/// Parts of an option that consents to more than what is asked now.
const MORE: [&str; 9] = [
    "don't ask",
    "do not ask",
    "always",
    "for this session",
    "auto-approve",
    "auto-accept",
    "accept edits",
    "all edits",
    "remember",
];

/// What choosing an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Consent to what is asked.
    Yes,
    /// Consent to more than what is asked now.
    Always,
    /// Refusal.
    No,
    /// Something else.
    Other,
}

impl DialogOption {
    /// Returns what choosing it means, by its words.
    pub fn meaning(&self) -> Meaning {
        let label = plain(&self.label);
        let first = first_word(&label);
        if NO[..2].contains(&first) || label.starts_with("do not") {
            Meaning::No
        } else if MORE.iter().any(|more| label.contains(more)) {
            Meaning::Always
        } else if NO.contains(&first) {
            Meaning::No
        } else if YES.contains(&first) {
            Meaning::Yes
        } else {
            Meaning::Other
        }
    }

    /// Returns whether it is a field for text, which cannot be chosen as such.
    pub fn is_field(&self) -> bool {
        self.field
    }
}

impl Dialog {
    /// Returns what answers the dialog with this choice.
    ///
    /// # Errors
    /// When no option fits, or several do.
    pub fn choose(&self, choice: &Choice) -> Result<Reply, NoChoice> {
        match choice {
            Choice::Yes => self.consent().ok_or_else(|| NoChoice::None("yes".into())),
            Choice::No => self.refusal().ok_or_else(|| NoChoice::None("no".into())),
            Choice::Number(number) => match self.options.iter().position(|o| o.number == *number) {
                Some(at) if self.options[at].field => Err(NoChoice::Field(*number)),
                Some(at) => Ok(self.pick(at)),
                None if self.takes_text() && self.options.is_empty() => self.line(&number.to_string()),
                None => Err(NoChoice::Number(*number)),
            },
            Choice::Label(text) => self.labelled(text),
            Choice::Text(text) if self.takes_text() => self.line(text),
            Choice::Text(text) => match self.labelled(text) {
                Err(NoChoice::None(_)) => Err(NoChoice::NoText),
                chosen => chosen,
            },
        }
    }

    /// Whether it takes text other than its options.
    pub fn takes_text(&self) -> bool {
        matches!(self.form, Form::Line { free: true, .. }) || self.field().is_some()
    }

    /// The place of the option that is a field for text.
    fn field(&self) -> Option<usize> {
        self.options.iter().position(|option| option.field)
    }

    /// Whether the text that it takes is a secret.
    pub fn is_secret(&self) -> bool {
        matches!(self.form, Form::Line { secret: true, .. })
    }

    fn pick(&self, at: usize) -> Reply {
        match (self.form, self.options.get(at).and_then(|o| o.types.clone())) {
            (Form::Line { .. }, Some(text)) => Reply::Line(text),
            (Form::Key, _) => Reply::Enter,
            // Such an option may be a field, where Enter without a text does nothing.
            _ if self.options.get(at).is_some_and(|o| o.label.to_lowercase().contains("(esc")) => {
                Reply::Escape
            }
            _ => Reply::Option(at),
        }
    }

    fn line(&self, text: &str) -> Result<Reply, NoChoice> {
        let text = text.trim_end_matches(['\n', '\r']);
        if text.contains(['\n', '\r']) {
            return Err(NoChoice::Lines);
        }
        Ok(match self.field() {
            Some(at) => Reply::Field(at, text.to_owned()),
            None => Reply::Line(text.to_owned()),
        })
    }

    fn consent(&self) -> Option<Reply> {
        let consents = |o: &DialogOption| {
            let label = plain(&o.label);
            let is_form = self.options.iter().any(|option| option.checked.is_some());
            // What sends off a form consents to whatever is checked in it.
            YES.contains(&first_word(&label))
                && !(is_form && o.checked.is_none())
                && !MORE.iter().any(|more| label.contains(more))
        };
        match self.options.iter().position(consents) {
            Some(at) => Some(self.pick(at)),
            None if self.asks_plainly() => Some(Reply::Line("y".into())),
            None => None,
        }
    }

    fn refusal(&self) -> Option<Reply> {
        let says = |words: &[&str]| {
            self.options.iter().position(|o| {
                let label = plain(&o.label);
                words.contains(&first_word(&label)) || label.starts_with("do not")
            })
        };
        match says(&NO[..2]).or_else(|| says(&NO)) {
            Some(at) => Some(self.pick(at)),
            None if self.escape => Some(Reply::Escape),
            None if self.asks_plainly() => Some(Reply::Line("n".into())),
            None => None,
        }
    }

    /// Whether it asks for a line, names no options, and ends in a question mark.
    fn asks_plainly(&self) -> bool {
        self.options.is_empty()
            && self.takes_text()
            && !self.is_secret()
            && self.question.trim_end_matches([' ', ':']).ends_with('?')
    }

    fn labelled(&self, text: &str) -> Result<Reply, NoChoice> {
        let wanted = plain(text.trim());
        let fits: [&dyn Fn(&DialogOption) -> bool; 4] = [
            &|o| plain(&o.label) == wanted,
            &|o| self.form != Form::Menu && o.types.as_deref() == Some(wanted.as_str()),
            &|o| plain(&o.label).starts_with(&wanted),
            &|o| plain(&o.label).contains(&wanted),
        ];
        for fit in fits.iter().filter(|_| !wanted.is_empty()) {
            let found: Vec<usize> = (0..self.options.len()).filter(|at| fit(&self.options[*at])).collect();
            match found.as_slice() {
                [] => {}
                [at] if self.options[*at].field => return Err(NoChoice::Field(self.options[*at].number)),
                [at] => return Ok(self.pick(*at)),
                many => {
                    let labels = many.iter().map(|at| self.options[*at].label.clone()).collect();
                    return Err(NoChoice::Several { text: text.to_owned(), labels });
                }
            }
        }
        if self.takes_text() { self.line(text) } else { Err(NoChoice::None(text.to_owned())) }
    }
}

/// A label as it is compared: lower case, with plain apostrophes.
fn plain(label: &str) -> String {
    unboxed(label).to_lowercase().replace('’', "'")
}

fn first_word(label: &str) -> &str {
    label.split(|c: char| !(c.is_alphanumeric() || c == '\'')).find(|word| !word.is_empty()).unwrap_or("")
}
