//! JSON whose shape only its author knows: what a file keeps for other programs, or for later
//! versions. It is read, kept and written again as it was.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, FilePosition};

/// A JSON value, kept as it was read.
///
/// ```
/// use tapdeck_tape::JsonValue;
///
/// let value: JsonValue = r#"{"tokens": 12, "model": {"name": "m1"}}"#.parse()?;
/// assert_eq!(value.get("tokens").and_then(|n| n.as_u64()), Some(12));
/// assert_eq!(value.get("model").map(|m| m.to_string()).as_deref(), Some(r#"{"name":"m1"}"#));
/// # Ok::<(), tapdeck_tape::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonValue(pub(crate) Value);

impl JsonValue {
    /// Makes a value of anything that serde can write; `null` where that has no form in JSON.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self(serde_json::to_value(value).unwrap_or_default())
    }

    /// Returns a copy of a field. `None` if there is no such field, or this is no object.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.0.get(key).cloned().map(Self)
    }

    /// Returns the text. `None` for every other kind of value.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }

    /// Returns the whole number. `None` for every other kind of value, and for negative numbers.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    /// Returns the flag. `None` for every other kind of value.
    pub fn as_bool(&self) -> Option<bool> {
        self.0.as_bool()
    }
}

/// JSON text on one line.
impl fmt::Display for JsonValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JsonValue {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong =
            |e: serde_json::Error| Error::malformed(FilePosition::Line(e.line() as u64), e.to_string());
        serde_json::from_str(text).map(Self).map_err(wrong)
    }
}

macro_rules! from {
    ($($kind:ty),*) => {
        $(impl From<$kind> for JsonValue {
            fn from(value: $kind) -> Self {
                Self(value.into())
            }
        })*
    };
}

from!(&str, String, bool, u32, u64, usize);

/// The fields of a JSON object that this version has no name for. They are kept as they were read,
/// and written again.
///
/// ```
/// use tapdeck_tape::meta::Meta;
///
/// let mut meta = Meta::from_bytes(br#"{"version": 1, "lab": {"room": 7}}"#)?;
/// assert_eq!(meta.extra.get("lab").map(|lab| lab.to_string()).as_deref(), Some(r#"{"room":7}"#));
/// meta.extra.insert("reviewed", true);
/// let copy = Meta::from_bytes(&meta.to_bytes()?)?;
/// assert_eq!(copy.extra, meta.extra);
/// # Ok::<(), tapdeck_tape::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Extra(pub(crate) Map<String, Value>);

impl Extra {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns a copy of a field.
    pub fn get(&self, key: &str) -> Option<JsonValue> {
        self.0.get(key).cloned().map(JsonValue)
    }

    /// Sets a field, and returns what it was before.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<JsonValue>) -> Option<JsonValue> {
        self.0.insert(key.into(), value.into().0).map(JsonValue)
    }

    /// Removes a field, and returns what it was.
    pub fn remove(&mut self, key: &str) -> Option<JsonValue> {
        self.0.remove(key).map(JsonValue)
    }
}
