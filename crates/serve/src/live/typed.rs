//! What a client of the bus types: keys by name, text, pastes, the mouse and the focus, spelt as the modes in force want
//! them. And what it reads above the screen: rows by number, and where some text stands.

use serde_json::{Value, json};
use tapdeck_core::Fence;
use tapdeck_term::Modes;
use tapdeck_term::keys::{self, Button, KeyPress, Mods, MouseEvent, MouseKind};

use super::client::Client;
use super::hub::Hub;
use crate::paint;

impl Hub {
    /// A JSON string is sent as it is; `{"keys": [names]}`, `{"text": …}`, `{"paste": …}`, `{"mouse": …}` and
    /// `{"focus": …}` as the modes in force want them.
    pub(super) fn key(&mut self, client: &mut Client, payload: &str) {
        let bad = |client: &mut Client, why: &str| client.say("DENIED", &json!({"error": why}));
        let value: Value = match serde_json::from_str(payload) {
            Ok(value) => value,
            Err(e) => return bad(client, &format!("KEY takes a JSON string: {e}")),
        };
        if value.is_object()
            && let Err(why) = super::asked::well_formed(&value)
        {
            return bad(client, &why);
        }
        let modes = {
            let glass = self.glass.clone();
            glass.look(&self.handle).term().modes()
        };
        let bytes = match spell(&value, &modes) {
            Ok(bytes) => bytes,
            Err(why) => return bad(client, &why),
        };
        // Written under an older hold of the stick than the present one, it is refused.
        let fence = value.get("fence").and_then(Value::as_u64).map(Fence);
        let confirm = value.get("confirm").and_then(Value::as_bool).unwrap_or(false);
        // A mouse or a focus that the program did not ask for is nothing to send, and no reason to claim the stick.
        let idle = bytes.is_empty() && (value.get("mouse").is_some() || value.get("focus").is_some());
        if (idle || self.offer_bus(client, bytes, fence)) && confirm {
            client.say("OK", &json!({"seq": self.log.offset()}));
        }
    }

    /// `ROWS {from, to}`
    pub(super) fn rows(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = super::asked::asked(client, payload) else { return };
        let glass = self.glass.clone();
        match paint::rows(glass.look(&self.handle).term(), &request) {
            Ok(rows) => {
                let verb = client.reply_verb("ROWS");
                client.send(format!("{verb} {rows}\n"));
            }
            Err(why) => client.say("DENIED", &json!({"error": why})),
        }
    }

    /// `FIND {text}`
    pub(super) fn find(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = super::asked::asked(client, payload) else { return };
        let glass = self.glass.clone();
        match paint::find(glass.look(&self.handle).term(), &request) {
            Ok(found) => client.say("FIND", &found),
            Err(why) => client.say("DENIED", &json!({"error": why})),
        }
    }
}

fn string<'a>(value: &'a Value, what: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("{what} is a string, and not {value}"))
}

/// What an object of KEY may hold to be typed.
const TAKES: [&str; 5] = ["keys", "text", "paste", "mouse", "focus"];

fn spell(value: &Value, modes: &Modes) -> Result<Vec<u8>, String> {
    let map = match value {
        Value::String(text) => return Ok(text.as_bytes().to_vec()),
        Value::Object(map) => map,
        _ => return Err("KEY takes a JSON string".into()),
    };
    let mut bytes = Vec::new();
    if !TAKES.iter().any(|key| map.contains_key(*key)) {
        return Err(format!("KEY takes a JSON string, or an object with one of {}", TAKES.join(", ")));
    }
    if let Some(names) = map.get("keys") {
        for name in names.as_array().ok_or("\"keys\" is an array of names")? {
            let press: KeyPress = string(name, "a key")?.parse().map_err(|e| format!("{e}"))?;
            bytes.extend_from_slice(&keys::encode(press, modes));
        }
    }
    if let Some(text) = map.get("text") {
        bytes.extend_from_slice(&keys::text(string(text, "text")?, modes));
    }
    if let Some(text) = map.get("paste") {
        bytes.extend_from_slice(&keys::paste(string(text, "paste")?, modes));
    }
    if let Some(event) = map.get("mouse") {
        let event = mouse(event).ok_or(
            "a mouse event has kind (press, release or move), button, col and row, and x, y and mods at will",
        )?;
        bytes.extend_from_slice(&keys::mouse(event, modes));
    }
    if let Some(gained) = map.get("focus") {
        let gained = gained.as_bool().ok_or("\"focus\" is true or false")?;
        bytes.extend_from_slice(&keys::focus(gained, modes));
    }
    Ok(bytes)
}

fn mouse(value: &Value) -> Option<MouseEvent> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
    let button = match value.get("button").and_then(Value::as_str) {
        None => None,
        Some("left") => Some(Button::Left),
        Some("middle") => Some(Button::Middle),
        Some("right") => Some(Button::Right),
        Some("wheelup") => Some(Button::WheelUp),
        Some("wheeldown") => Some(Button::WheelDown),
        Some("wheelleft") => Some(Button::WheelLeft),
        Some("wheelright") => Some(Button::WheelRight),
        Some(_) => return None,
    };
    let kind = match value.get("kind").and_then(Value::as_str)? {
        "press" => MouseKind::Press(button?),
        "release" => MouseKind::Release(button?),
        "move" => MouseKind::Move(button),
        _ => return None,
    };
    let mut mods = Mods::NONE;
    for letter in value.get("mods").and_then(Value::as_str).unwrap_or_default().chars() {
        mods = mods.with(match letter {
            'S' => Mods::SHIFT,
            'M' => Mods::ALT,
            'C' => Mods::CTRL,
            _ => return None,
        });
    }
    let (col, row) = (number("col")?, number("row")?);
    Some(MouseEvent { kind, col, row, x: number("x").unwrap_or(0), y: number("y").unwrap_or(0), mods })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::{Settings, Size, Term};

    #[test]
    fn what_is_typed_is_spelt_by_the_modes() {
        let modes = |bytes: &[u8]| {
            let mut term = Term::new(Size::default(), Settings::default());
            term.feed(bytes);
            term.modes()
        };
        type Case<'a> = (&'a [u8], Value, Option<&'a [u8]>);
        let cases: [Case<'_>; 16] = [
            (b"", json!("raw\r"), Some(b"raw\r")),
            (b"", json!({"keys": ["Up", "C-c"]}), Some(b"\x1b[A\x03")),
            (b"\x1b[?1h", json!({"keys": ["Up"]}), Some(b"\x1bOA")),
            (b"\x1b[?2004h", json!({"paste": "a\nb"}), Some(b"\x1b[200~a\rb\x1b[201~")),
            (
                b"\x1b[?1000;1006h",
                json!({"mouse": {"kind": "press", "button": "left", "col": 3, "row": 4, "mods": "C"}}),
                Some(b"\x1b[<16;4;5M"),
            ),
            (b"", json!({"mouse": {"kind": "press", "button": "left", "col": 3, "row": 4}}), Some(b"")),
            (b"\x1b[?1004h", json!({"focus": true}), Some(b"\x1b[I")),
            (b"", json!({"mouse": {"kind": "press", "col": 3, "row": 4}}), None),
            (b"", json!({"keys": ["Nonsense"]}), None),
            (b"", json!({"keys": "x"}), None),
            (b"", json!({"keys": [5]}), None),
            (b"", json!({"text": 5}), None),
            (b"", json!({"paste": null}), None),
            (b"", json!({"focus": 1}), None),
            (b"", json!({"confirm": true}), None),
            (b"", json!({"keys": [], "confirm": true}), Some(b"")),
        ];
        for (setup, value, expected) in cases {
            assert_eq!(spell(&value, &modes(setup)).ok().as_deref(), expected, "{value}");
        }
    }
}
