//! Which turn a client asks for.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::fields::{self, is_false};

/// `TURN`: one turn, with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichTurn {
    /// Its number, from 1; the last one when left out.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub number: Option<u64>,
    /// With the bytes that the program wrote.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub raw: bool,
    /// With what the answer is made of, from this part on, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "fields::or_default")]
    pub parts: Option<usize>,
    /// The one that is not over instead, with the answer so far. What the screen shows of it may
    /// change.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub running: bool,
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    fields::by(from, |value| match value {
        Value::Null => Ok(None),
        number => number.as_u64().map(Some).ok_or("turns are numbered from 1"),
    })
}
