//! The text of a scenario as a tree, in which every value knows its file and line, and plain
//! values keep the digits that their author wrote.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::Value;

use super::ScenarioError;
use super::words::tab;

/// The deepest nesting: nothing in a scenario needs half of it.
const MAX_DEPTH: usize = 64;

/// The most that a scenario may hold, with what its aliases, inclusions and parameters repeat:
/// values, and blocks of their texts.
pub(super) const MAX_WEIGHT: usize = 1_000_000;
const BLOCK: usize = 32;

/// Where something stands: in the scenario, or in a file that it includes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The included file, from the scenario's folder; `None` for the scenario itself.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub number: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}, line {}", self.number),
            None => write!(f, "line {}", self.number),
        }
    }
}

/// A value, and where it begins.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) line: Line,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A text; without quotes it may be meant as a number, `true` or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// What a plain scalar is, as YAML 1.2 has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text,
}

pub(super) fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return Plain::Float(sign * f64::INFINITY);
    }
    let of_base = |prefix, base| text.strip_prefix(prefix).and_then(|d| u64::from_str_radix(d, base).ok());
    if let Some(n) = of_base("0x", 16).or_else(|| of_base("0o", 8)) {
        return Plain::Unsigned(n);
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !digits.contains(|c: char| c.is_ascii_digit())
        || digits.contains(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '-' | '+'))
    {
        return Plain::Text;
    }
    let signed = text.strip_prefix('+').unwrap_or(text);
    let whole = signed.parse().map(Plain::Unsigned).or_else(|_| signed.parse().map(Plain::Signed));
    whole.or_else(|_| signed.parse().map(Plain::Float)).unwrap_or(Plain::Text)
}

impl Node {
    pub(super) fn error(&self, what: impl Into<String>) -> ScenarioError {
        ScenarioError { line: self.line.clone(), what: what.into() }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true } if plain(text) == Plain::Null)
    }

    /// Takes the value of a key out of a map.
    pub(super) fn take(&mut self, key: &str) -> Option<Self> {
        let Content::Map(entries) = &mut self.content else { return None };
        let at = entries.iter().position(|(name, _)| name.text() == Some(key))?;
        Some(entries.remove(at).1)
    }

    /// The value of a key of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// What it adds to the weight of a scenario.
    pub(super) fn weight(&self) -> usize {
        1 + match &self.content {
            Content::Scalar { text, .. } => text.len() / BLOCK,
            Content::List(items) => items.iter().map(Self::weight).sum(),
            Content::Map(entries) => entries.iter().map(|(k, v)| k.weight() + v.weight()).sum(),
        }
    }

    /// As JSON. A number that JSON would write in another way stays a text, so that a change of
    /// its digits is a change.
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar { text, plain: false } => text.as_str().into(),
            Content::Scalar { text, plain: true } => match plain(text) {
                Plain::Null => Value::Null,
                Plain::Bool(b) => b.into(),
                Plain::Unsigned(n) => n.into(),
                Plain::Signed(n) => n.into(),
                Plain::Float(n) if n.to_string() == *text => n.into(),
                Plain::Float(_) | Plain::Text => text.as_str().into(),
            },
            Content::List(items) => items.iter().map(Self::to_value).collect(),
            Content::Map(entries) => {
                let entry =
                    |(key, value): &(Self, Self)| (key.text().unwrap_or("").to_owned(), value.to_value());
                Value::Object(entries.iter().map(entry).collect())
            }
        }
    }
}

/// Reads a text. `file` is its name if a scenario includes it.
pub(super) fn read(text: &str, file: Option<&Arc<str>>) -> Result<Node, ScenarioError> {
    let mut builder = Builder { file, ..Builder::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| broken(text, file, &e))?;
        builder.take(event, span)?;
    }
    let empty = Node { line: builder.line(1), content: Content::Map(Vec::new()) };
    Ok(builder.root.unwrap_or(empty))
}

/// What is wrong with a text that is no YAML.
fn broken(text: &str, file: Option<&Arc<str>>, error: &ScanError) -> ScenarioError {
    let number = error.marker().line() as u64;
    let line = |number| Line { file: file.cloned(), number };
    if let Some(number) = tab(text, number) {
        return ScenarioError {
            line: line(number),
            what: "a tab is no indentation: YAML wants blanks".into(),
        };
    }
    let what = match error.kind() {
        ErrorKind::UnknownAnchor => "the alias names no anchor: write &NAME before *NAME",
        ErrorKind::UnexpectedEof
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping => {
            "the file ends too early: a bracket, a quote or a value is missing"
        }
        _ => "this is no YAML: check the brackets, quotes, colons and the indentation before this place",
    };
    ScenarioError { line: line(number), what: what.into() }
}

/// Makes a tree of events.
#[derive(Default)]
struct Builder<'a> {
    file: Option<&'a Arc<str>>,
    /// Lists and maps that are not complete, with their anchors, and a key that waits for its
    /// value.
    open: Vec<(Node, usize, Option<Node>)>,
    anchors: HashMap<usize, Node>,
    weight: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn line(&self, number: usize) -> Line {
        Line { file: self.file.cloned(), number: number as u64 }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ScenarioError> {
        let line = self.line(span.start.line());
        let node = |content| Node { line: line.clone(), content };
        let is_end = matches!(event, Event::SequenceEnd | Event::MappingEnd);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                if let (Some(tag), false) = (tag, is_text) {
                    return Err(node(Content::List(Vec::new()))
                        .error(format!("the tag {} means nothing here", tag.original())));
                }
                let plain = style == ScalarStyle::Plain && !is_text;
                (node(Content::Scalar { text: text.into_owned(), plain }), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                return self.open(node(Content::List(Vec::new())), anchor);
            }
            Event::MappingStart(_, anchor, _) => return self.open(node(Content::Map(Vec::new())), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some((mut node, anchor, _)) = self.open.pop() else { return Ok(()) };
                merge_keys(&mut node);
                (node, anchor)
            }
            Event::Alias(id) => match self.anchors.get(&id) {
                Some(node) => (Node { line, ..node.clone() }, 0),
                None => return Err(node(Content::List(Vec::new())).error("an alias cannot be in its anchor")),
            },
            Event::DocumentStart(..) if self.root.is_some() => {
                let what = "a scenario is one document: a second one begins here";
                return Err(ScenarioError { line, what: what.into() });
            }
            _ => return Ok(()),
        };
        if !is_end {
            self.weight += node.weight();
        }
        if self.weight > MAX_WEIGHT {
            return Err(node.error("it is too large, with what its aliases repeat"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node)
    }

    fn open(&mut self, node: Node, anchor: usize) -> Result<(), ScenarioError> {
        self.weight += 1;
        if self.open.len() >= MAX_DEPTH {
            return Err(node.error(format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        self.open.push((node, anchor, None));
        Ok(())
    }

    /// Puts a complete value where it belongs.
    fn add(&mut self, node: Node) -> Result<(), ScenarioError> {
        let Some((parent, _, key)) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => match node.text() {
                    None => return Err(node.error("a key is a text")),
                    Some(text) => {
                        if text != "<<" && entries.iter().any(|(key, _)| key.text() == Some(text)) {
                            return Err(node.error(format!("{text} is there twice")));
                        }
                        *key = Some(node);
                    }
                },
            },
            Content::Scalar { .. } => {}
        }
        Ok(())
    }
}

/// Puts the entries of maps under the key `<<` into the map itself, as many readers of YAML do.
fn merge_keys(node: &mut Node) {
    let Content::Map(entries) = &mut node.content else { return };
    let (merged, own): (Vec<_>, Vec<_>) =
        std::mem::take(entries).into_iter().partition(|(key, _)| key.text() == Some("<<"));
    *entries = own;
    let mut known: HashSet<String> =
        entries.iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect();
    for (_, value) in merged {
        let maps = match value.content {
            Content::List(maps) => maps,
            content => vec![Node { line: value.line, content }],
        };
        for map in maps {
            let Content::Map(more) = map.content else { continue };
            let new = more.into_iter().filter(|(key, _)| known.insert(key.text().unwrap_or("").to_owned()));
            entries.extend(new);
        }
    }
}
