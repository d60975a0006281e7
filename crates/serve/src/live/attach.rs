//! The wire's side of the service: a client that is attached to the session.
//!
//! It is given bytes that redraw the screen, and then the stream from exactly there: the model says which entry of the
//! log it has not seen yet. A client that falls behind is told how much it missed and given the screen anew.

use bytes::Bytes;
use serde_json::{Value, json};
use tapdeck_core::{Need, Refused, Right, Role, Seq};
use tapdeck_host::signals;

use super::client::{Client, Kind, MAX_AGREED, Missed, WireState};
use super::hub::Hub;
use crate::wire::{self, Chunk, ChunkKind, Joining, size_of};

/// A dump is sent in pieces of this size: a client has something to do with the first while the next ones come.
const PIECE: usize = 64 * 1024;
/// Rows in one message about where they end: it stays well below what a control message may be.
const ROWS: usize = 1000;

/// A client that has yet to say what it wants.
pub(super) fn unopened() -> WireState {
    WireState { opened: false, read_only: false, shows: false, from: Seq(0), missed: None, held: None }
}

impl Hub {
    pub(super) fn serve_wire(&mut self, client: &mut Client, now: u64) {
        let Kind::Wire(state) = &client.kind else { return };
        if !state.opened {
            match wire::take_negotiation(&mut client.inbox, wire::MAX_NEGOTIATION) {
                Ok(None) => return,
                Ok(Some(request)) => self.open(client, &request, now),
                Err(e) => refuse(client, "malformed_negotiation", &e.to_string()),
            }
        }
        while !client.closing && !client.gone && !matches!(&client.kind, Kind::Wire(w) if w.held.is_some()) {
            match wire::take_chunk(&mut client.inbox, MAX_AGREED) {
                Ok(None) => break,
                Ok(Some(chunk)) => self.take_chunk(client, chunk),
                Err(e) => {
                    client.control(&json!({"type": "error", "message": e.to_string()}));
                    client.closing = true;
                }
            }
        }
    }

    fn open(&mut self, client: &mut Client, request: &Value, now: u64) {
        let joining = match Joining::from_json(request) {
            Ok(joining) => joining,
            Err(e) => return refuse(client, "malformed_negotiation", &e.to_string()),
        };
        let asked = if joining.read_only { Role::Observer } else { Role::Human };
        let authority = match client.grants.authority(asked, joining.token) {
            Ok(authority) => authority,
            Err(why) => return refuse(client, "forbidden", why),
        };
        if joining.backend != Some("attach") {
            let message = match joining.backend {
                Some(other) => format!("this is one session: the backend is attach, and not {other:?}"),
                None => "this is one session: the backend has to be attach".to_owned(),
            };
            return refuse(client, "unknown_backend", &message);
        }
        client.known = true;
        let read_only = !authority.grants(Right::Drive);
        client.authority = authority;
        self.join(client, joining.name.unwrap_or("attach"));
        let mut drives = false;
        if let (false, Some(party)) = (read_only || joining.watch, client.party) {
            let claimed = if joining.takeover { self.handle.take(party) } else { self.handle.claim(party) };
            drives = matches!(claimed, Ok(Ok(_)));
            // Whoever drives has the session in the size of their terminal; but who has not typed yet, and did not ask
            // to take over, leaves it as it is for whoever else has it on theirs.
            if (joining.takeover || !self.is_shown())
                && drives
                && let Some(size) = joining.size
            {
                let _ = self.handle.resize_now(size);
            }
        }
        self.pump(now);
        let glass = self.glass.clone();
        let handle = self.handle.clone();
        let look = glass.look(&handle);
        if let Kind::Wire(w) = &mut client.kind {
            (w.opened, w.read_only, w.from) = (true, read_only, look.next());
            w.shows = joining.size.is_some() && !read_only;
        }
        let size = look.term().size();
        let (dump, ends) = match (joining.screen_only, joining.rows) {
            (true, _) => (look.term().dump_screen(), Vec::new()),
            (false, true) => look.term().dump_with_rows(),
            (false, false) => (look.term().dump(), Vec::new()),
        };
        client.control(&json!({
            "type": "opened",
            "session": self.about.id,
            "name": client.name,
            "cols": size.cols,
            "rows": size.rows,
            "driver": self.driver.as_deref(),
            "you": drives,
            "read_only": read_only,
            "offset": look.offset(),
            "dump": dump.len(),
            "state": look.detector().map_or("unknown", |d| d.judgement().state.name()),
        }));
        drop(look);
        for rows in ends.chunks(ROWS) {
            client.control(&json!({"type": "rows", "rows": rows}));
        }
        send_dump(client, dump);
        client.control(&json!({"type": "live"}));
        if let Some(exit) = self.exit {
            self.say_over(client, exit);
        }
    }

    /// Whether a terminal shows the session: its own, or that of somebody who is attached and may drive. (The client that
    /// is being served is not among the clients.)
    fn is_shown(&self) -> bool {
        !self.about.detached || self.clients.values().any(|c| matches!(&c.kind, Kind::Wire(w) if w.shows))
    }

    /// Sends the screen anew to a client that missed some of the stream.
    pub(super) fn resend_screen(&mut self, client: &mut Client) {
        let glass = self.glass.clone();
        let handle = self.handle.clone();
        let look = glass.look(&handle);
        let Kind::Wire(w) = &mut client.kind else { return };
        let Some(Missed { from, .. }) = w.missed.take() else { return };
        w.from = look.next();
        let size = look.term().size();
        // CAN ends a sequence that the gap may have cut.
        let mut dump = b"\x18".to_vec();
        dump.extend_from_slice(&look.term().dump_screen());
        client.control(&json!({
            "type": "gap",
            "from": from,
            "to": look.offset(),
            "bytes": look.offset() - from,
            "cols": size.cols,
            "rows": size.rows,
            "dump": dump.len(),
        }));
        send_dump(client, dump);
        client.control(&json!({"type": "live"}));
    }

    fn take_chunk(&mut self, client: &mut Client, chunk: Chunk) {
        match chunk.kind {
            ChunkKind::Stdin => self.offer(client, chunk.payload.into()),
            ChunkKind::Control => match wire::parse_object(&chunk.payload) {
                Ok(control) => self.take_control(client, &control),
                Err(e) => client.control(&json!({"type": "error", "message": e.to_string()})),
            },
            ChunkKind::Stdout | ChunkKind::Stderr => {
                client.control(&json!({"type": "error", "message": "output comes from the program"}));
                client.closing = true;
            }
        }
    }

    /// Offers input to the gate; what finds no room is kept, and nothing more is read from the client meanwhile.
    fn offer(&mut self, client: &mut Client, bytes: Bytes) {
        let Some(party) = self.driving_party(client) else {
            client
                .control(&json!({"type": "denied", "driver": self.driver.as_deref(), "error": "read-only"}));
            return;
        };
        match self.handle.input_or_claim(party, bytes.clone()) {
            Ok(Ok(())) => {}
            Ok(Err(Refused::Full { .. })) => {
                if let Kind::Wire(w) = &mut client.kind {
                    w.held = Some(bytes);
                }
            }
            Ok(Err(e)) => {
                let driver = self.handle.holder().ok().flatten();
                let denied = json!({"type": "denied", "driver": driver.as_deref(), "error": e.to_string()});
                client.control(&denied);
            }
            Err(_) => {}
        }
    }

    /// Input that found no room is offered again.
    pub(super) fn retry_held(&mut self) {
        let held: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, c)| matches!(&c.kind, Kind::Wire(w) if w.held.is_some()))
            .map(|(n, _)| *n)
            .collect();
        for number in held {
            let Some(mut client) = self.clients.remove(&number) else { continue };
            if let Kind::Wire(w) = &mut client.kind
                && let Some(bytes) = w.held.take()
            {
                self.offer(&mut client, bytes);
                let now = self.clock.now().mono_ns;
                self.serve_wire(&mut client, now);
            }
            self.clients.insert(number, client);
        }
    }

    fn take_control(&mut self, client: &mut Client, control: &Value) {
        let kind = control.get("type").and_then(Value::as_str).unwrap_or("");
        let error = |client: &mut Client, message: &str| {
            client.control(&json!({"type": "error", "about": kind, "message": message}));
        };
        let party = self.driving_party(client);
        match (kind, party) {
            ("take", Some(party)) => {
                if let Ok(Err(e)) = self.handle.take(party) {
                    client.control(
                        &json!({"type": "denied", "driver": self.driver.as_deref(), "error": e.to_string()}),
                    );
                }
            }
            ("release", Some(party)) => {
                let _ = self.handle.release(party);
            }
            ("resize", Some(_)) => match size_of(control) {
                // Only who drives has a say in the size: a viewer scales.
                Some(size) if self.allows(client, Need::Hold) => {
                    let _ = self.handle.resize_now(size);
                }
                Some(_) => {}
                None => error(client, wire::NO_SIZE),
            },
            ("signal", Some(_)) => {
                let name = control.get("name").and_then(Value::as_str).unwrap_or("");
                match signals::number(name) {
                    Some(signal) if self.allows(client, Need::Hold) => self.handle.signal(signal),
                    Some(_) => error(client, "only who drives can send signals"),
                    None => error(client, &format!("no signal is called {name:?}")),
                }
            }
            ("take" | "release" | "resize" | "signal", None) => error(client, "read-only"),
            // Whatever else there may be one day.
            _ => {}
        }
    }
}

fn refuse(client: &mut Client, error: &str, message: &str) {
    client.send(wire::refusal(error, message));
    client.closing = true;
}

fn send_dump(client: &mut Client, dump: Vec<u8>) {
    let mut dump = Bytes::from(dump);
    while !dump.is_empty() {
        let piece = dump.split_to(dump.len().min(PIECE));
        client.send(wire::chunk_head(ChunkKind::Stdout, piece.len()).to_vec());
        client.send(piece);
    }
}
