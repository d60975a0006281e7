//! Reads the fields of JSON objects that other programs sent.
//!
//! A field that is left out or `null` has its default. A field of the wrong kind is an error that
//! names the field: a request with `"read_only": "yes"` must not be taken for one without the
//! field.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use serde_json::Value;

/// A payload that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It is not JSON, or not an object.
    #[error("{0}")]
    Form(String),
    /// A field is missing, or has the wrong kind or value.
    #[error("{0}")]
    Field(String),
}

/// Names of the flags, of whatever message. A field name has the same kind in every message.
const FLAGS: [&str; 12] = [
    "watch",
    "out",
    "looks",
    "scrollback",
    "ansi",
    "confirm",
    "enter",
    "raw",
    "whole",
    "overwrite",
    "input",
    "hidden_input",
];
/// Names of the numbers.
const NUMBERS: [&str; 7] = ["max_frame", "max_fps", "since", "window", "fence", "wait_ms", "limit"];
/// Names of the texts.
const TEXTS: [&str; 3] = ["signal", "path", "stop"];

/// Reads a text; `None` when it is left out.
pub(crate) fn text<'a>(from: &'a Value, key: &str) -> Result<Option<&'a str>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => Err(format!("{key:?} has a NUL in it")),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key:?} is a text, and not {}", short(other))),
    }
}

/// Reads a flag.
pub(crate) fn flag(from: &Value, key: &str, default: bool) -> Result<bool, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(on)) => Ok(*on),
        Some(other) => Err(format!("{key:?} is true or false, and not {}", short(other))),
    }
}

/// Reads a whole number; `None` when it is left out.
pub(crate) fn number(from: &Value, key: &str) -> Result<Option<u64>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || format!("{key:?} is a number from 0 up, and not {}", short(value));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    }
}

/// Formats a value for an error message; long values are named by their kind.
pub(crate) fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        other => other.to_string(),
    }
}

/// Checks the kinds of all fields that a request may have, whatever its verb.
fn check_kinds(value: &Value) -> Result<(), PayloadError> {
    if !value.is_object() && !value.is_null() {
        return Err(PayloadError::Form(format!("a JSON object is wanted, and not {}", short(value))));
    }
    let flags = FLAGS.iter().try_for_each(|key| flag(value, key, false).map(drop));
    let numbers = || NUMBERS.iter().try_for_each(|key| number(value, key).map(drop));
    let texts = || TEXTS.iter().try_for_each(|key| text(value, key).map(drop));
    flags.and_then(|()| numbers()).and_then(|()| texts()).map_err(PayloadError::Field)
}

/// Reads a request's JSON object. An empty payload and `null` stand for an empty object.
pub(crate) fn object<T: DeserializeOwned>(payload: &str) -> Result<T, PayloadError> {
    let malformed = |e| PayloadError::Form(format!("malformed JSON: {e}"));
    let value: Value = match payload.trim() {
        "" => Value::Null,
        _ => serde_json::from_str(payload).map_err(malformed)?,
    };
    checked(value)
}

/// Reads a JSON object of which nothing is required. What is no object counts as an empty one.
pub(crate) fn lenient_object<T: DeserializeOwned + Default>(payload: &str) -> T {
    let object = serde_json::from_str(payload).ok().filter(Value::is_object);
    object.and_then(|object| serde_json::from_value(object).ok()).unwrap_or_default()
}

/// Reads a JSON object whose fields have the right kinds.
pub(crate) fn checked<T: DeserializeOwned>(value: Value) -> Result<T, PayloadError> {
    check_kinds(&value)?;
    let value = if value.is_null() { Value::Object(serde_json::Map::new()) } else { value };
    serde_json::from_value(value).map_err(|e| PayloadError::Field(e.to_string()))
}

/// Returns whether a field has its default, and is left out of what is sent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Returns whether a field has its default, and is left out of what is sent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_true(flag: &bool) -> bool {
    *flag
}

pub(crate) fn yes() -> bool {
    true
}

/// Reads a value; `null` stands for the default.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a flag; `null` stands for `true`.
pub(crate) fn or_yes<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(true))
}

/// Reads a value; one of another kind counts as left out, as it always did.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// Reads a value that is there, `null` included: `Some(None)` is not the same as a field left out.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Reads a field that must be there but may be `null`.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// Reads a field by a function that says what is wrong with it.
pub(crate) fn by<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    from: D,
    read: impl FnOnce(&Value) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&Value::deserialize(from)?).map_err(D::Error::custom)
}
