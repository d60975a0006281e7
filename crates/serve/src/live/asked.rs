//! What stands behind the bus's verbs, and whether it can be read.

use serde_json::{Value, json};

use super::client::Client;
use crate::wire::fields;

/// What stands behind a verb: nothing, or an object. Anything else is refused, so that nobody gets what they did not ask
/// for.
pub(super) fn asked(client: &mut Client, payload: &str) -> Option<Value> {
    if payload.trim().is_empty() {
        return Some(Value::Null);
    }
    let parsed = serde_json::from_str(payload).map_err(|e| format!("malformed JSON: {e}"));
    match parsed.and_then(|value| well_formed(&value).map(|()| value)) {
        Ok(value) => Some(value),
        Err(error) => {
            client.say("DENIED", &json!({"error": error}));
            None
        }
    }
}

/// Fields that are true or false, those that are numbers, and those that are texts, whatever the verb.
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
const NUMBERS: [&str; 7] = ["max_frame", "max_fps", "since", "window", "fence", "wait_ms", "limit"];
const TEXTS: [&str; 3] = ["signal", "path", "stop"];

/// Whether all that an object says is of the right kind: a wish that cannot be read must not be taken for none.
pub(super) fn well_formed(value: &Value) -> Result<(), String> {
    if !value.is_object() && !value.is_null() {
        return Err(format!("a JSON object is wanted, and not {}", fields::short(value)));
    }
    FLAGS.iter().try_for_each(|key| fields::flag(value, key, false).map(drop))?;
    NUMBERS.iter().try_for_each(|key| fields::number(value, key).map(drop))?;
    TEXTS.iter().try_for_each(|key| fields::text(value, key).map(drop))
}
