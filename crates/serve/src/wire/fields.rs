//! Fields of a JSON object from elsewhere. One that is left out has its usual value; one of the wrong kind is refused with
//! its name: whoever says `"read_only": "yes"` must not be given a keyboard.

use serde_json::Value;

/// A text, if it is there.
pub fn text<'a>(from: &'a Value, key: &str) -> Result<Option<&'a str>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => Err(format!("{key:?} has a NUL in it")),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key:?} is a text, and not {}", short(other))),
    }
}

/// True or false.
pub fn flag(from: &Value, key: &str, usual: bool) -> Result<bool, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(usual),
        Some(Value::Bool(on)) => Ok(*on),
        Some(other) => Err(format!("{key:?} is true or false, and not {}", short(other))),
    }
}

/// A whole number, if it is there.
pub fn number(from: &Value, key: &str) -> Result<Option<u64>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || format!("{key:?} is a number from 0 up, and not {}", short(value));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    }
}

/// A value as it is shown to whoever sent it, who may have sent much.
pub(crate) fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        other => other.to_string(),
    }
}
