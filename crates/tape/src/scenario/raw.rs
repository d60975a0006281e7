//! The types of the file, as serde reads them. Unknown keys are errors everywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor, value};
use serde_json::Value;

use super::de::{PLACED, WORDS};
use super::tree::{self, Line, Node};
use super::{ScenarioError, de};

/// A value and the line where it begins.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) line: Line,
    pub(super) value: T,
}

impl<T> At<T> {
    pub(super) fn error(&self, what: impl Into<String>) -> ScenarioError {
        ScenarioError { line: self.line.clone(), what: what.into() }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = At<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value and its line")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<At<T>, A::Error> {
                let parts = (seq.next_element::<String>()?, seq.next_element()?, seq.next_element()?);
                let (Some(file), Some(number), Some(value)) = parts else {
                    return Err(A::Error::custom("a value has no line"));
                };
                let file = (!file.is_empty()).then(|| file.into());
                Ok(At { line: Line { file, number }, value })
            }
        }
        from.deserialize_tuple_struct(PLACED, 3, V(PhantomData))
    }
}

/// One thing, or a list of them.
#[derive(Debug, Clone)]
pub(super) struct Many<T>(pub(super) Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = Many<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one or a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Many<T>, A::Error> {
                Vec::deserialize(value::SeqAccessDeserializer::new(seq)).map(Many)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Many<T>, A::Error> {
                T::deserialize(value::MapAccessDeserializer::new(map)).map(|one| Many(vec![one]))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Many<T>, E> {
                T::deserialize(value::StrDeserializer::new(text)).map(|one| Many(vec![one]))
            }
        }
        from.deserialize_newtype_struct(WORDS, V(PhantomData))
    }
}

/// A plain value, from whatever YAML takes it for.
trait Plain: Sized {
    fn plain(text: String) -> Result<Self, String>;
}

impl Plain for String {
    fn plain(text: String) -> Result<Self, String> {
        Ok(text)
    }
}

impl Plain for u64 {
    fn plain(text: String) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is no number, nor a range with min and max"))
    }
}

/// Either a plain value or a map with more to say. Written out, so that an unknown key in the map
/// is told as one.
macro_rules! short_or_long {
    ($(#[$doc:meta])* $name:ident, $short:ident($kind:ty), $long:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(super) enum $name {
            $short($kind),
            Long($long),
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct V;
                impl<'de> Visitor<'de> for V {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a plain value or a map")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        <$long>::deserialize(value::MapAccessDeserializer::new(map)).map($name::Long)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        <$kind as Plain>::plain(text.to_owned()).map($name::$short).map_err(E::custom)
                    }
                }
                from.deserialize_newtype_struct(WORDS, V)
            }
        }
    };
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) scenario: Option<String>,
    pub(super) about: Option<String>,
    pub(super) cassette: Option<Cassette>,
    pub(super) size: Option<At<String>>,
    pub(super) replay: Option<At<String>>,
    pub(super) within: Option<At<String>>,
    pub(super) clock: Option<At<Clock>>,
    pub(super) root: Option<At<String>>,
    #[serde(default)]
    pub(super) setup: Vec<At<String>>,
    #[serde(default)]
    pub(super) teardown: Vec<At<String>>,
    pub(super) env: Option<Env>,
    pub(super) program: Option<Program>,
    pub(super) play: Option<At<Vec<At<PlayItem>>>>,
    #[serde(default)]
    pub(super) normalise: Vec<At<Rule>>,
    #[serde(default)]
    pub(super) masks: Vec<At<Area>>,
    #[serde(default)]
    pub(super) scrub: Vec<At<Scrub>>,
    #[serde(default)]
    pub(super) steps: Vec<At<Step>>,
    pub(super) require: Option<At<Require>>,
    #[serde(default, rename = "assert")]
    pub(super) assertions: Vec<At<Assertion>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cassette {
    pub(super) path: Option<At<String>>,
    pub(super) id: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) binding: Option<String>,
    pub(super) pins: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    pub(super) variants: BTreeMap<String, Bound>,
}

/// What a combination of the matrix is bound to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Bound {
    pub(super) id: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) binding: Option<String>,
    pub(super) pins: Option<serde_json::Map<String, Value>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongClock {
    pub(super) start: String,
}

short_or_long!(
    /// What the program takes for the time: always this, or a time that passes.
    Clock, Frozen(String), LongClock
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Require {
    pub(super) service: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Env {
    #[serde(default)]
    pub(super) allow: Vec<At<String>>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, At<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) run: At<Vec<String>>,
    pub(super) on: Option<At<String>>,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    #[serde(default)]
    pub(super) files: BTreeMap<String, At<String>>,
    #[serde(default)]
    pub(super) copy: Vec<At<String>>,
    pub(super) timeout: Option<At<String>>,
    pub(super) check: Option<String>,
    pub(super) account: Option<String>,
    pub(super) account_wait: Option<At<String>>,
    pub(super) account_class: Option<String>,
    pub(super) version_from: Option<String>,
    pub(super) freshness: Option<At<String>>,
    pub(super) capability: Option<String>,
    pub(super) permission_mode: Option<String>,
    pub(super) events: Option<At<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlayItem {
    pub(super) write: Option<String>,
    pub(super) hex: Option<String>,
    pub(super) chunk: Option<usize>,
    pub(super) times: Option<u64>,
    pub(super) after: Option<String>,
    pub(super) input: Option<String>,
    pub(super) key: Option<String>,
    pub(super) paste: Option<String>,
    pub(super) reply: Option<String>,
    pub(super) resize: Option<String>,
    pub(super) signal: Option<String>,
    pub(super) service: Option<Value>,
    pub(super) snapshot: Option<String>,
    pub(super) exit: Option<Exit>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    pub(super) send: Option<Many<String>>,
    #[serde(rename = "type")]
    pub(super) type_: Option<String>,
    pub(super) paste: Option<String>,
    pub(super) bytes: Option<String>,
    pub(super) focus: Option<bool>,
    pub(super) click: Option<Click>,
    pub(super) drag: Option<Drag>,
    pub(super) scroll: Option<Scroll>,
    pub(super) expect: Option<Condition>,
    pub(super) wait: Option<Wait>,
    pub(super) within: Option<At<String>>,
    pub(super) resize: Option<String>,
    pub(super) signal: Option<String>,
    pub(super) snapshot: Option<String>,
    pub(super) cancel: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LongPlace {
    pub(super) text: Option<String>,
    pub(super) row: Option<u16>,
    pub(super) col: Option<u16>,
}

short_or_long!(
    /// A place of the screen: where a text is, or a cell.
    Place, Text(String), LongPlace
);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LongClick {
    pub(super) text: Option<String>,
    pub(super) row: Option<u16>,
    pub(super) col: Option<u16>,
    pub(super) button: Option<String>,
    pub(super) times: Option<u16>,
    pub(super) mods: Many<String>,
}

short_or_long!(
    /// A click: on this text, or with more to say.
    Click, Text(String), Box<LongClick>
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drag {
    pub(super) from: Place,
    pub(super) to: Place,
    pub(super) button: Option<String>,
    #[serde(default)]
    pub(super) mods: Many<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Scroll {
    pub(super) up: Option<u16>,
    pub(super) down: Option<u16>,
    pub(super) left: Option<u16>,
    pub(super) right: Option<u16>,
    pub(super) text: Option<String>,
    pub(super) row: Option<u16>,
    pub(super) col: Option<u16>,
    pub(super) mods: Many<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wait {
    pub(super) stable: Option<String>,
    pub(super) exit: Option<bool>,
    pub(super) screen: Option<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Area {
    pub(super) rows: Option<At<String>>,
    pub(super) cols: Option<At<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Condition {
    pub(super) contains: Many<String>,
    pub(super) lacks: Many<String>,
    pub(super) matches: Many<String>,
    pub(super) equals: Option<String>,
    pub(super) file: Option<String>,
    pub(super) styled: Option<String>,
    pub(super) blank: Option<bool>,
    pub(super) rows: Option<At<String>>,
    pub(super) cols: Option<At<String>>,
    pub(super) masks: Vec<At<Area>>,
    pub(super) normalise: Option<Vec<At<Rule>>>,
    pub(super) cursor: Option<Cursor>,
    pub(super) size: Option<String>,
    pub(super) alternate: Option<bool>,
    pub(super) modes: BTreeMap<String, bool>,
    pub(super) title: Option<Text>,
    pub(super) scrolled: Option<Count>,
    pub(super) above: Option<Text>,
    pub(super) style: Many<Style>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongRule {
    pub(super) name: String,
    pub(super) pattern: String,
    pub(super) with: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scrub {
    pub(super) name: String,
    pub(super) pattern: String,
    #[serde(default)]
    pub(super) keep: String,
}

short_or_long!(
    /// A rule to normalise by: the name of one, or one of its own.
    Rule, Name(String), LongRule
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    pub(super) row: Option<u16>,
    pub(super) col: Option<u16>,
    pub(super) visible: Option<bool>,
    pub(super) shape: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongText {
    pub(super) is: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) matches: Option<String>,
}

short_or_long!(
    /// A text: exactly this, or something about it.
    Text, Is(String), LongText
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongCount {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

short_or_long!(
    /// A number: exactly this, or a range.
    Count, Exactly(u64), LongCount
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongBytes {
    pub(super) is: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) lacks: Option<String>,
}

short_or_long!(
    /// Bytes: exactly these, or something about them.
    Bytes, Is(String), LongBytes
);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Style {
    pub(super) text: Option<String>,
    pub(super) row: Option<u16>,
    pub(super) col: Option<u16>,
    pub(super) width: Option<u16>,
    pub(super) fg: Option<At<String>>,
    pub(super) bg: Option<At<String>>,
    pub(super) bold: Option<bool>,
    pub(super) faint: Option<bool>,
    pub(super) italic: Option<bool>,
    pub(super) blink: Option<bool>,
    pub(super) inverse: Option<bool>,
    pub(super) conceal: Option<bool>,
    pub(super) strike: Option<bool>,
    pub(super) overline: Option<bool>,
    pub(super) underline: Option<At<String>>,
    pub(super) link: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Assertion {
    pub(super) name: Option<String>,
    pub(super) at: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) screen: Option<Condition>,
    pub(super) eventually: Option<Condition>,
    pub(super) never: Option<Condition>,
    pub(super) always: Option<Condition>,
    pub(super) stable_for: Option<String>,
    pub(super) order: Option<Vec<Happening>>,
    pub(super) delay: Option<Delay>,
    pub(super) gap: Option<Times>,
    pub(super) chunks: Option<Count>,
    pub(super) chunk_bytes: Option<Count>,
    pub(super) output_bytes: Option<Count>,
    pub(super) output: Option<Bytes>,
    pub(super) split_escapes: Option<Count>,
    pub(super) split_characters: Option<Count>,
    pub(super) input: Option<Bytes>,
    pub(super) keys: Option<Vec<String>>,
    pub(super) pastes: Option<Vec<String>>,
    pub(super) signals: Option<Vec<String>>,
    pub(super) resizes: Option<Vec<String>>,
    pub(super) bells: Option<Count>,
    pub(super) clipboard: Option<Vec<Clipboard>>,
    pub(super) replies: Option<Bytes>,
    pub(super) service: Option<Service>,
    pub(super) events: Option<Events>,
    #[serde(rename = "final")]
    pub(super) final_: Option<Service>,
    pub(super) quota: Option<Service>,
    pub(super) discovery: Option<Service>,
    pub(super) manifest: Option<Service>,
    pub(super) scrub_report: Option<Service>,
    pub(super) exit: Option<Exit>,
    pub(super) ended: Option<String>,
    pub(super) eof: Option<bool>,
    pub(super) leaked: Option<Count>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Times {
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delay {
    pub(super) from: Happening,
    pub(super) to: Happening,
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LongHappening {
    pub(super) output: Option<String>,
    pub(super) shows: Option<String>,
    pub(super) input: Option<String>,
    pub(super) key: Option<String>,
    pub(super) paste: Option<String>,
    pub(super) signal: Option<String>,
    pub(super) resize: Option<String>,
    pub(super) service: Option<Service>,
}

short_or_long!(
    /// Something that happened: `@start`, `@end` or `@` and a name, or what it was.
    Happening, Point(String), Box<LongHappening>
);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clipboard {
    pub(super) selection: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    #[serde(default = "whole")]
    pub(super) path: String,
    pub(super) is: Option<Value>,
    pub(super) contains: Option<String>,
    pub(super) matches: Option<String>,
    #[serde(rename = "type")]
    pub(super) type_: Option<Value>,
    pub(super) schema: Option<Value>,
    pub(super) count: Option<Count>,
    pub(super) absent: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    #[serde(rename = "type")]
    pub(super) type_: Option<String>,
    pub(super) schema: Value,
    pub(super) count: Option<Count>,
}

/// The path of a value itself.
fn whole() -> String {
    "$".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongExit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<String>,
}

short_or_long!(
    /// How a program ended: its code, `failure`, or one of both in a map.
    Exit, Short(String), LongExit
);

/// Reads a part of a file.
pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ScenarioError> {
    typed(&tree::read(text, None)?)
}

/// The types of a tree.
pub(super) fn typed<T: serde::de::DeserializeOwned>(node: &Node) -> Result<T, ScenarioError> {
    T::deserialize(node).map_err(|e: de::Wrong| e.into())
}
