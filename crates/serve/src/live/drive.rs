//! Requests that drive the session: keys, lines, commands, the stick, the size, signals and
//! recordings.

use std::time::Duration;

use tapdeck_core::{Fence, Instruction, Need, SnapshotPlace, Time, WinSize};
use tapdeck_host::{SnapshotError, signals};
use tapdeck_proto::bus::{
    self, Brokered, Denied, Instructed, Key, Nothing, Paused, Recorded, Released, Resized, Taken, Typed,
};
use tapdeck_term::Modes;
use tapdeck_term::keys::{self, Button, KeyPress, Mods, MouseEvent, MouseKind};

use super::bus::{Answer, Answered};
use super::capture::Capture;
use super::client::{Client, Id, Pending};
use super::session::LiveSession;

/// How long a command may take.
const CMD_LIMIT: Duration = Duration::from_secs(30);

impl LiveSession {
    pub(super) fn line(&mut self, client: &Client, text: &str) -> Answered {
        let bytes = self.line_bytes(text)?;
        self.offer(client, bytes, None)?;
        if !self.has_terminal {
            // A pipe does not echo: observers see the typed text, the record holds the program's
            // output.
            self.access.look().show_echo(format!("{text}\n").as_bytes());
        }
        Ok(Answer::Nothing)
    }

    fn line_bytes(&self, text: &str) -> Result<Vec<u8>, Denied> {
        if text.contains('\r') {
            return Err(Denied::because("a line holds no line ends"));
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(if self.has_terminal { b'\r' } else { b'\n' });
        Ok(bytes)
    }

    pub(super) fn key(&mut self, client: &Client, key: &Key) -> Answered {
        let modes = self.access.look().term().modes();
        let bytes = encode(key, &modes).map_err(Denied::because)?;
        let Key::Typed(typing) = key else {
            self.offer(client, bytes, None)?;
            return Ok(Answer::Nothing);
        };
        // A mouse or focus event that the program did not ask for sends nothing, and does not claim
        // the stick.
        if !bytes.is_empty() || typing.mouse.is_none() && typing.focus.is_none() {
            self.offer(client, bytes, typing.fence.map(Fence))?;
        }
        Ok(if typing.confirm { Typed { seq: self.log.offset().0 }.into() } else { Answer::Nothing })
    }

    pub(super) fn cmd(&mut self, client: &mut Client, text: &str, id: Option<Id>, now: Time) -> Answered {
        if client.bus().is_some_and(|bus| bus.capture.is_some()) {
            return Err(Denied::because("a command of yours is still running"));
        }
        let bytes = self.line_bytes(text)?;
        let work = {
            let look = self.access.look();
            // All output from here on is an answer, so the line is sent before anything else is
            // read.
            let ready = look.detector().is_some_and(|d| d.is_ready());
            Capture::new(&look, &self.prompt, look.offset().0, now, CMD_LIMIT).by_turn(ready)
        };
        self.prompt = work.prompt().to_owned();
        self.offer(client, bytes, None)?;
        self.waiting = false;
        if let Some(bus) = client.bus() {
            bus.capture = Some(Pending { id, work });
        }
        Ok(Answer::Later)
    }

    /// Offers input of a client to the gate.
    fn offer(&mut self, client: &Client, bytes: Vec<u8>, fence: Option<Fence>) -> Result<(), Denied> {
        if let Some(ended) = self.ended() {
            return Err(self.denied(ended));
        }
        let Some(party) = self.driving_party(client) else {
            return Err(self.denied("an observer cannot drive"));
        };
        let offered = match fence {
            Some(_) => self.access.driver().input(party, fence, bytes.into()),
            None => self.access.driver().input_or_claim(party, bytes.into()),
        };
        match offered {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(self.denied(e)),
            Err(e) => Err(self.denied(e)),
        }
    }

    /// Returns a refusal that says which client holds the stick.
    fn denied(&self, error: impl ToString) -> Denied {
        Denied { error: error.to_string(), driver: Some(self.access.holder()) }
    }

    pub(super) fn take(&mut self, client: &Client) -> Result<Taken, Denied> {
        let Some(party) = self.driving_party(client) else {
            let error = self.ended().unwrap_or_else(|| "an observer cannot drive".into());
            return Err(self.denied(error));
        };
        match self.access.driver().take(party) {
            Ok(Ok(fence)) => Ok(Taken { driver: self.access.holder(), fence: fence.0 }),
            Ok(Err(e)) => Err(self.denied(e)),
            Err(e) => Err(self.denied(e)),
        }
    }

    pub(super) fn release(&mut self, client: &Client) -> Result<Released, Denied> {
        match client.party.map(|party| self.access.driver().release(party)) {
            Some(Ok(Ok(_))) => Ok(Released { driver: self.access.holder() }),
            Some(Ok(Err(e))) => Err(self.denied(e)),
            _ => Err(self.denied("not at this session")),
        }
    }

    pub(super) fn resize(&mut self, client: &Client, asked: bus::Resize) -> Result<Resized, Denied> {
        if !self.allows(client, Need::Command) {
            return Err(Denied::because("only a person or who drives can set the size"));
        }
        let bus::Resize { cols, rows } = asked;
        self.access.driver().resize_now(WinSize::cells(cols, rows)).map_err(Denied::because)?;
        Ok(Resized { cols, rows })
    }

    pub(super) fn kill(&mut self, client: &Client, asked: &bus::Kill) -> Result<Nothing, Denied> {
        if !self.allows(client, Need::Command) {
            return Err(Denied::because("only a person or who drives can end the session"));
        }
        match (&asked.signal, self.ended()) {
            (Some(_), Some(ended)) => return Err(Denied::because(ended)),
            (None, _) => {
                self.looked = true;
                self.access.driver().cancel();
            }
            (Some(name), None) => match signals::number(name) {
                Some(signal) => self.access.driver().signal(signal),
                None => return Err(Denied::because(format!("no signal is called {name:?}"))),
            },
        }
        Ok(Nothing {})
    }

    pub(super) fn rec(&mut self, client: &Client, asked: &bus::Rec) -> Result<Recorded, Denied> {
        if !self.allows(client, Need::Administer) {
            return Err(Denied::because("only a person can have the session recorded"));
        }
        let admin = self.admin.as_mut();
        let admin = admin.ok_or_else(|| Denied::because("this session cannot be recorded late"))?;
        let from = admin.record(asked).map_err(Denied::because)?;
        Ok(Recorded { from })
    }

    /// Pauses the session's recordings, or lets them go on.
    pub(super) fn pause(&mut self, client: &Client, asked: &bus::Pause) -> Result<Paused, Denied> {
        if !self.allows(client, Need::Administer) {
            return Err(Denied::because("only a person can pause the recording"));
        }
        if let Some(ended) = self.ended() {
            return Err(Denied::because(ended));
        }
        match self.access.driver().pause_recording(asked.pause, &client.name) {
            Ok(Ok(paused)) => Ok(Paused { paused }),
            Ok(Err(e)) => Err(Denied::because(e)),
            Err(e) => Err(Denied::because(e)),
        }
    }

    /// Marks this moment in the session's recordings.
    pub(super) fn mark(&mut self, client: &Client, label: &str) -> Result<Nothing, Denied> {
        if !self.allows(client, Need::Drive) {
            return Err(Denied::because("an observer cannot drive"));
        }
        if let Some(ended) = self.ended() {
            return Err(Denied::because(ended));
        }
        if label.len() > bus::MAX_LABEL {
            let why =
                format!("a label has at most {} bytes, and this one has {}", bus::MAX_LABEL, label.len());
            return Err(Denied::because(why));
        }
        if !self.log.is_recording() {
            return Err(Denied::because("the session is not being recorded"));
        }
        self.access.driver().mark(label, &client.name);
        Ok(Nothing {})
    }

    /// Answers `INSTRUCT`.
    pub(super) fn instruct(&mut self, client: &Client, asked: bus::Instruct) -> Result<Instructed, Denied> {
        if !self.allows(client, Need::Drive) {
            return Err(Denied::because("an observer cannot drive"));
        }
        if let Some(ended) = self.ended() {
            return Err(Denied::because(ended));
        }
        if !self.log.is_recorded() {
            return Err(Denied::because(SnapshotError::NotRecorded.to_string()));
        }
        let bus::Instruct { id, anchor_byte: anchor, line, snapshot, text } = asked;
        let snapshot = snapshot.map(|s| SnapshotPlace { id: s.id, anchor: s.anchor_byte, label: s.label });
        let asked = Instruction { id: id.unwrap_or_default(), anchor, line, snapshot, text };
        let id = self.access.driver().instruct_later(asked, self.clock.now().wall);
        id.map(|id| Instructed { id }).map_err(|e| Denied::because(e.to_string()))
    }

    /// Answers `BROKER`. The broker gets the session's turns and may type into it from then on.
    pub(super) fn broker(&mut self, client: &Client) -> Result<Brokered, Denied> {
        if !self.allows(client, Need::Administer) {
            return Err(Denied::because("only a person can register the session with the broker"));
        }
        Ok(Brokered { broker: self.join_broker() })
    }

    pub(super) fn rename(&mut self, client: &Client, asked: bus::Rename) -> Result<Nothing, Denied> {
        if !self.allows(client, Need::Administer) {
            return Err(Denied::because("only a person can rename the session"));
        }
        let admin = self.admin.as_mut();
        let admin = admin.ok_or_else(|| Denied::because("this session cannot be renamed"))?;
        admin.rename(&asked.name).map_err(Denied::because)?;
        self.about.name = Some(asked.name);
        Ok(Nothing {})
    }
}

/// Encodes what is typed as the modes in force want it.
fn encode(key: &Key, modes: &Modes) -> Result<Vec<u8>, String> {
    let typing = match key {
        Key::Raw(text) => return Ok(text.as_bytes().to_vec()),
        Key::Typed(typing) => typing,
    };
    let mut bytes = Vec::new();
    for name in typing.keys.iter().flatten() {
        let press: KeyPress = name.parse().map_err(|e| format!("{e}"))?;
        bytes.extend_from_slice(&keys::encode(press, modes));
    }
    if let Some(text) = &typing.text {
        bytes.extend_from_slice(&keys::text(text, modes));
    }
    if let Some(text) = &typing.paste {
        bytes.extend_from_slice(&keys::paste(text, modes));
    }
    if let Some(event) = typing.mouse.as_ref().and_then(mouse) {
        bytes.extend_from_slice(&keys::mouse(event, modes));
    }
    if let Some(gained) = typing.focus {
        bytes.extend_from_slice(&keys::focus(gained, modes));
    }
    Ok(bytes)
}

fn mouse(event: &bus::Mouse) -> Option<MouseEvent> {
    let button = event.button.map(|button| match button {
        bus::Button::Left => Button::Left,
        bus::Button::Middle => Button::Middle,
        bus::Button::Right => Button::Right,
        bus::Button::WheelUp => Button::WheelUp,
        bus::Button::WheelDown => Button::WheelDown,
        bus::Button::WheelLeft => Button::WheelLeft,
        bus::Button::WheelRight => Button::WheelRight,
    });
    let kind = match event.kind {
        bus::MouseKind::Press => MouseKind::Press(button?),
        bus::MouseKind::Release => MouseKind::Release(button?),
        bus::MouseKind::Move => MouseKind::Move(button),
    };
    let mods = event.mods.chars().fold(Mods::NONE, |mods, letter| match letter {
        'S' => mods.with(Mods::SHIFT),
        'M' => mods.with(Mods::ALT),
        'C' => mods.with(Mods::CTRL),
        _ => mods,
    });
    Some(MouseEvent { kind, col: event.col, row: event.row, x: event.x, y: event.y, mods })
}

#[cfg(test)]
mod tests {
    use tapdeck_proto::bus::Ask;
    use tapdeck_term::{Settings, Size, Term};

    use super::*;

    #[test]
    fn what_is_typed_is_encoded_by_the_modes() {
        let modes = |bytes: &[u8]| {
            let mut term = Term::new(Size::default(), Settings::default());
            term.feed(bytes);
            term.modes()
        };
        type Case<'a> = (&'a [u8], &'a str, Option<&'a [u8]>);
        let cases: [Case<'_>; 16] = [
            (b"", r#""raw\r""#, Some(b"raw\r")),
            (b"", r#"{"keys": ["Up", "C-c"]}"#, Some(b"\x1b[A\x03")),
            (b"\x1b[?1h", r#"{"keys": ["Up"]}"#, Some(b"\x1bOA")),
            (b"\x1b[?2004h", r#"{"paste": "a\nb"}"#, Some(b"\x1b[200~a\rb\x1b[201~")),
            (
                b"\x1b[?1000;1006h",
                r#"{"mouse": {"kind": "press", "button": "left", "col": 3, "row": 4, "mods": "C"}}"#,
                Some(b"\x1b[<16;4;5M"),
            ),
            (b"", r#"{"mouse": {"kind": "press", "button": "left", "col": 3, "row": 4}}"#, Some(b"")),
            (b"\x1b[?1004h", r#"{"focus": true}"#, Some(b"\x1b[I")),
            (b"", r#"{"mouse": {"kind": "press", "col": 3, "row": 4}}"#, None),
            (b"", r#"{"keys": ["Nonsense"]}"#, None),
            (b"", r#"{"keys": "x"}"#, None),
            (b"", r#"{"keys": [5]}"#, None),
            (b"", r#"{"text": 5}"#, None),
            (b"", r#"{"paste": null}"#, None),
            (b"", r#"{"focus": 1}"#, None),
            (b"", r#"{"confirm": true}"#, None),
            (b"", r#"{"keys": [], "confirm": true}"#, Some(b"")),
        ];
        for (setup, payload, expected) in cases {
            let key = Key::from_payload(payload).ok();
            let typed = key.and_then(|key| encode(&key, &modes(setup)).ok());
            assert_eq!(typed.as_deref(), expected, "{payload}");
        }
    }
}
