//! Rules made ready: one automaton says quickly that a line holds nothing, and only where it does
//! not is each rule asked.

use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::doubt::is_no_secret;
use super::table::{BUILTIN, PACKS};
use crate::withhold::SecretPrompts;

/// What masked characters become, when they are one byte long.
pub(crate) const MASK: char = '*';
/// What the first line of a PEM block has in it. Blocks are followed from there, so it is looked
/// for beside the rules.
pub(super) const PEM_BEGIN: &str = "-----BEGIN ";
/// Memory that the automaton may take.
const AUTOMATON: usize = 8 << 20;
/// The longest pattern that a user may give, and how many.
const MAX_PATTERN: usize = 4096;
const MAX_RULES: usize = 1000;

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its name in reports.
    pub name: String,
    /// The pack that it belongs to.
    pub pack: String,
    /// A regular expression over one logical line. The first group that took part is masked; all of
    /// it where the pattern has no groups.
    pub pattern: String,
    /// Characters that stay as they are.
    pub keep: String,
    /// The masked text must hold a letter and a digit.
    pub mixed: bool,
    /// The masked text must hold a digit.
    pub digit: bool,
    /// The masked text stands behind a name: code and words that keep a secret's place are left
    /// alone.
    pub named: bool,
    /// The masked text is a secret: it is masked wherever else it is seen, also in part.
    pub secret: bool,
}

/// A value that must not be seen, whatever it looks like.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name in reports.
    pub name: String,
    /// The value.
    pub value: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The one thing that must not end in a log.
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Its pattern is wrong.
    #[error("rule {name:?}: {why}")]
    Pattern {
        /// Which rule.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// There is no such pack.
    #[error("there is no pack {0:?}: {list}", list = pack_names())]
    NoPack(String),
    /// Two rules have the same name.
    #[error("there are two rules of the name {0:?}")]
    Twice(String),
    /// A literal secret is too short to be looked for.
    #[error("the value of {0} is shorter than 4 characters: too much else would be masked")]
    Short(String),
    /// There are too many.
    #[error("more than {MAX_RULES} rules")]
    TooMany,
}

fn pack_names() -> String {
    let names: Vec<&str> = PACKS.iter().map(|p| p.0).collect();
    format!("take {}, or all", names.join(", "))
}

/// Where a rule found something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) rule: usize,
    pub(super) range: Range<usize>,
}

#[derive(Clone, Debug)]
struct Ready {
    regex: Regex,
    /// The pattern has groups: without one of them there is no hit.
    groups: bool,
    rule: Rule,
}

/// A set of rules, ready to be used by any number of scrubbers.
#[derive(Clone, Debug)]
pub struct Rules {
    set: RegexSet,
    ready: Vec<Ready>,
    secrets: Vec<Secret>,
    /// What a prompt for a password looks like, where secrets are looked for at all.
    prompt: Option<SecretPrompts>,
}

/// The name of the rule for what is typed at such a prompt.
const TYPED: &str = "typed-password";

impl Rules {
    /// The names of the packs that are used unless others are named.
    pub fn default_packs() -> Vec<String> {
        PACKS.iter().filter(|p| p.1).map(|p| p.0.to_owned()).collect()
    }

    /// The rules of these packs, of the product's own. `all` is every pack.
    ///
    /// # Errors
    /// When there is no such pack.
    pub fn of_packs(packs: &[impl AsRef<str>]) -> Result<Vec<Rule>, RuleError> {
        for pack in packs {
            let pack = pack.as_ref();
            if pack != "all" && !PACKS.iter().any(|p| p.0 == pack) {
                return Err(RuleError::NoPack(pack.to_owned()));
            }
        }
        let wanted = |pack: &str| packs.iter().any(|p| p.as_ref() == pack || p.as_ref() == "all");
        Ok(BUILTIN
            .iter()
            .filter(|b| wanted(b.pack))
            .map(|b| Rule {
                name: b.name.into(),
                pack: b.pack.into(),
                pattern: b.pattern.into(),
                keep: b.keep.into(),
                mixed: b.mixed,
                digit: b.digit,
                named: b.named,
                secret: b.secret,
            })
            .collect())
    }

    /// A rule for a folder's path. The slashes stay.
    pub fn folder(name: &str, path: &str) -> Option<Rule> {
        let path = path.trim_end_matches('/');
        (path.len() >= 6 && path.matches('/').count() >= 2).then(|| Rule {
            name: name.into(),
            pack: "paths".into(),
            pattern: format!("({})(?:[^A-Za-z0-9_.-]|$)", regex::escape(path)),
            keep: "/".into(),
            ..Rule::default()
        })
    }

    /// A rule for the name of a user, standing alone. There is none for a name that says nothing.
    pub fn user(name: &str) -> Option<Rule> {
        let says_nothing = ["root", "user", "admin", "ubuntu", "debian", "runner", "build", "nobody"];
        (name.chars().count() >= 3 && !says_nothing.contains(&name)).then(|| Rule {
            name: "user-name".into(),
            pack: "people".into(),
            pattern: format!("(?:^|[^A-Za-z0-9_])({})(?:[^A-Za-z0-9_]|$)", regex::escape(name)),
            ..Rule::default()
        })
    }

    /// Makes rules ready.
    ///
    /// # Errors
    /// When a pattern is none, matches nothing at all, or a value is too short.
    pub fn new(rules: Vec<Rule>, secrets: Vec<Secret>) -> Result<Self, RuleError> {
        if rules.len() > MAX_RULES || secrets.len() > MAX_RULES {
            return Err(RuleError::TooMany);
        }
        let mut ready: Vec<Ready> = Vec::with_capacity(rules.len());
        for rule in rules {
            let wrong = |why: String| RuleError::Pattern { name: rule.name.clone(), why };
            if ready.iter().any(|r| r.rule.name == rule.name) {
                return Err(RuleError::Twice(rule.name));
            }
            if rule.pattern.len() > MAX_PATTERN {
                return Err(wrong(format!("its pattern is longer than {MAX_PATTERN} bytes")));
            }
            let regex = RegexBuilder::new(&rule.pattern).size_limit(AUTOMATON).build();
            // The message of a syntax error draws the pattern on several lines; its last one says
            // what is wrong.
            let regex = regex
                .map_err(|e| wrong(e.to_string().lines().last().unwrap_or_default().trim().to_owned()))?;
            if regex.is_match(b"") {
                return Err(wrong("its pattern matches the empty text".into()));
            }
            ready.push(Ready { groups: regex.captures_len() > 1, regex, rule });
        }
        for secret in &secrets {
            if secret.value.chars().count() < 4 {
                return Err(RuleError::Short(secret.name.clone()));
            }
        }
        let patterns = ready.iter().map(|r| r.rule.pattern.as_str());
        let set = RegexSetBuilder::new(patterns.chain([PEM_BEGIN]))
            .size_limit(4 * AUTOMATON)
            .dfa_size_limit(AUTOMATON)
            .build()
            .map_err(|e| RuleError::Pattern { name: "all together".into(), why: e.to_string() })?;
        let secret = ready.iter().any(|r| r.rule.pack == "secrets");
        let prompt = secret.then(SecretPrompts::default);
        Ok(Self { set, ready, secrets, prompt })
    }

    /// Name and pack of each rule, the literal secrets behind the rules.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let rules = self.ready.iter().map(|r| (r.rule.name.as_str(), r.rule.pack.as_str()));
        let secrets = self.secrets.iter().map(|s| (s.name.as_str(), "literal"));
        rules.chain(secrets).chain(self.prompt.iter().map(|_| (TYPED, "secrets")))
    }

    /// How many there are, literal secrets included.
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.secrets.len() + usize::from(self.prompt.is_some())
    }

    /// The literal secrets with their numbers.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (usize, &str)> {
        let first = self.ready.len();
        self.secrets.iter().enumerate().map(move |(i, s)| (first + i, s.value.as_str()))
    }

    /// Whether what is typed behind this text is a password.
    pub(super) fn is_password_prompt(&self, text: &str) -> bool {
        self.prompt.as_ref().is_some_and(|p| p.asks(text))
    }

    /// The number of the rule for what is typed there.
    pub(super) fn prompt_rule(&self) -> Option<usize> {
        self.prompt.as_ref().map(|_| self.ready.len() + self.secrets.len())
    }

    /// Characters that a rule leaves alone.
    pub(super) fn keep(&self, rule: usize) -> &str {
        self.ready.get(rule).map_or("", |r| &r.rule.keep)
    }

    /// Whether what a rule masks stands behind a name.
    pub(super) fn is_named(&self, rule: usize) -> bool {
        self.ready.get(rule).is_some_and(|r| r.rule.named)
    }

    pub(super) fn is_secret(&self, rule: usize) -> bool {
        self.ready.get(rule).is_none_or(|r| r.rule.secret)
    }

    /// Whether a line may hold something: quick, and mostly not.
    pub(super) fn suspects(&self, text: &[u8]) -> bool {
        self.set.is_match(text)
    }

    /// What the rules find in a line, in the order of the rules.
    pub(super) fn scan(&self, text: &[u8], found: &mut Vec<Found>) {
        if !self.set.is_match(text) {
            return;
        }
        for rule in self.set.matches(text) {
            let Some(ready) = self.ready.get(rule) else { continue };
            for captures in ready.regex.captures_iter(text) {
                let group = match ready.groups {
                    true => captures.iter().skip(1).flatten().next(),
                    false => captures.get(0),
                };
                let Some(group) = group else { continue };
                if ready.counts(group.as_bytes(), &text[group.end()..]) {
                    found.push(Found { rule, range: group.range() });
                }
            }
        }
    }
}

impl Ready {
    /// Whether a text is one that the rule means, and is not masked already.
    fn counts(&self, text: &[u8], rest: &[u8]) -> bool {
        let rule = &self.rule;
        let done = text.iter().all(|b| *b == MASK as u8 || rule.keep.as_bytes().contains(b));
        let digit = !(rule.digit || rule.mixed) || text.iter().any(u8::is_ascii_digit);
        let letter = !rule.mixed || text.iter().any(u8::is_ascii_alphabetic);
        !done && digit && letter && !(rule.named && is_no_secret(text, rest))
    }
}
