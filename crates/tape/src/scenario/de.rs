//! From the tree of a scenario to the types of its file, with errors that name the line, the key
//! and what was probably meant.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{Content, Line, Node, Plain, plain};
use super::{ScenarioError, words};
use crate::nearest;

/// The name by which a type asks for its value together with the file and line.
pub(super) const PLACED: &str = "\0placed";

/// The name by which a type asks for the words of a scalar, whatever YAML takes them for.
pub(super) const WORDS: &str = "\0words";

/// What is wrong, with its line as soon as that is known.
#[derive(Debug)]
pub(super) struct Wrong {
    line: Option<Line>,
    /// Whether the key that the value belongs to is still to be told.
    wants_key: bool,
    what: String,
}

impl Wrong {
    fn value(what: String) -> Self {
        Self { line: None, wants_key: true, what }
    }

    fn at(mut self, line: &Line) -> Self {
        self.line.get_or_insert_with(|| line.clone());
        self
    }

    fn of_key(mut self, key: &str) -> Self {
        if std::mem::take(&mut self.wants_key) {
            self.what = format!("{key}: {}", self.what);
        }
        self
    }
}

impl From<Wrong> for ScenarioError {
    fn from(wrong: Wrong) -> Self {
        Self { line: wrong.line.unwrap_or_default(), what: wrong.what }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self { line: None, wants_key: false, what: what.to_string() }
    }

    fn invalid_type(is: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        let is = match is {
            de::Unexpected::Seq => ", not a list",
            de::Unexpected::Map => ", not keys",
            de::Unexpected::Unit => ", not nothing",
            _ => "",
        };
        Self::value(words::wanted(&wanted.to_string()) + is)
    }

    fn invalid_value(_: de::Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::value(words::wanted(&wanted.to_string()))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::custom(nearest::unknown("key", key, known))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::custom(format!("the key {key:?} is missing"))
    }
}

impl Node {
    fn scalar(&self) -> Option<Plain> {
        match &self.content {
            Content::Scalar { text, plain: true } => Some(plain(text)),
            Content::Scalar { plain: false, .. } => Some(Plain::Text),
            _ => None,
        }
    }

    fn unexpected(&self) -> de::Unexpected<'_> {
        match &self.content {
            Content::List(_) => de::Unexpected::Seq,
            Content::Map(_) => de::Unexpected::Map,
            Content::Scalar { .. } if self.is_null() => de::Unexpected::Unit,
            Content::Scalar { text, .. } => de::Unexpected::Str(text),
        }
    }

    fn list<'de, V: Visitor<'de>>(&self, items: &[Self], visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_seq(List(items.iter())).map_err(|e| e.at(&self.line))
    }

    fn map<'de, V: Visitor<'de>>(&self, entries: &[(Self, Self)], visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(Map { entries: entries.iter(), value: None }).map_err(|e| e.at(&self.line))
    }

    /// The words of a scalar, or whatever else there is.
    fn words<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.content {
            Content::Scalar { .. } if self.is_null() => {
                Err(Wrong::value("there is no text here: write \"\" for an empty one".into()).at(&self.line))
            }
            Content::Scalar { text, .. } => visitor.visit_str(text).map_err(|e: Wrong| e.at(&self.line)),
            Content::List(items) => self.list(items, visitor),
            Content::Map(entries) => self.map(entries, visitor),
        }
    }
}

impl<'de> Deserializer<'de> for &Node {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let value = match (&self.content, self.scalar()) {
            (Content::List(items), _) => self.list(items, visitor),
            (Content::Map(entries), _) => self.map(entries, visitor),
            (Content::Scalar { text, .. }, kind) => match kind.unwrap_or(Plain::Text) {
                Plain::Null => visitor.visit_unit(),
                Plain::Bool(b) => visitor.visit_bool(b),
                Plain::Unsigned(n) => visitor.visit_u64(n),
                Plain::Signed(n) => visitor.visit_i64(n),
                Plain::Float(n) => visitor.visit_f64(n),
                Plain::Text => visitor.visit_str(text),
            },
        };
        value.map_err(|e| e.at(&self.line))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.content {
            Content::Scalar { .. } => self.words(visitor),
            _ => {
                Err(de::Error::invalid_type(self.unexpected(), &visitor)).map_err(|e: Wrong| e.at(&self.line))
            }
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if name == WORDS { self.words(visitor) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if name == PLACED { visitor.visit_seq(Placed(self, 0)) } else { self.deserialize_any(visitor) }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq
        tuple map struct enum identifier
    }
}

struct List<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        self.0.next().map(|node| seed.deserialize(node).map_err(|e| e.at(&node.line))).transpose()
    }
}

struct Map<'a> {
    entries: std::slice::Iter<'a, (Node, Node)>,
    value: Option<&'a (Node, Node)>,
}

impl<'de> MapAccess<'de> for Map<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let text = key.text().unwrap_or_default();
        seed.deserialize(text.into_deserializer()).map(Some).map_err(|e: Wrong| e.at(&key.line))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let Some((key, value)) = self.value.take() else {
            return Err(de::Error::custom("a key has no value"));
        };
        let key = key.text().unwrap_or_default();
        seed.deserialize(value).map_err(|e| e.at(&value.line).of_key(key))
    }
}

/// A value behind its file, empty for the scenario itself, and its line.
struct Placed<'a>(&'a Node, u8);

impl<'de> SeqAccess<'de> for Placed<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Self(node, number) = self;
        *number += 1;
        let value = match number {
            1 => seed.deserialize(node.line.file.as_deref().unwrap_or_default().into_deserializer()),
            2 => seed.deserialize(node.line.number.into_deserializer()),
            3 => seed.deserialize(*node),
            _ => return Ok(None),
        };
        value.map(Some)
    }
}
