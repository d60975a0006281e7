//! The bus's side of the service: verbs, and what they do.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tapdeck_core::{Exit, Fence, Need, Seq, WinSize};
use tapdeck_host::signals;

use super::asked::asked;
use super::auth::role_name;
use super::capture::Capture;
use super::client::{BusState, Client, Frames, Kind, MAX_FRAME, Sub};
use super::frame;
use super::greeting::drop_with;
use super::hub::Hub;
use super::send::exit_json;

const MS: u64 = 1_000_000;
/// Frames a second, unless a client asks for less or more.
const FPS: u64 = 30;
const MAX_FPS: u64 = 240;
/// How long a command may take, unless the client says.
const CMD_LIMIT_NS: u64 = 30_000 * MS;

/// What is said of a name that cannot be a request's.
const NO_ID: &str = "behind the # of a verb stands an id of 1 to 32 letters, digits, - and _";

/// Verbs that are about the session as it is, and those for which the program's state has to be known, too.
const PRESENT: [&str; 8] = ["SNAP", "INFO", "SUB", "ROWS", "FIND", "KEY", "CMD", "PASTE"];
const JUDGED: [&str; 6] = ["INFO", "CMD", "PASTE", "TURNS", "TURN", "EXPLAIN"];

/// A client that has not asked for anything yet.
pub(super) fn unsubscribed() -> BusState {
    BusState { max_frame: MAX_FRAME, sub: None, capture: None, paste: None, capture_id: None, paste_id: None }
}

impl Hub {
    /// Serves what a client has sent, frame by frame.
    pub(super) fn serve_bus(&mut self, number: u64, now: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if memchr::memchr(b'\n', &client.inbox).is_none() && client.inbox.len() <= max_frame(client) {
            return;
        }
        let inbox = std::mem::take(&mut client.inbox);
        let mut rest = &inbox[..];
        while let Some(client) = self.clients.get_mut(&number).filter(|c| !c.closing && !c.gone) {
            let (line, behind) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], Some(&rest[end + 1..])),
                None => (rest, None),
            };
            if line.len() > max_frame(client) {
                too_long(client);
                break;
            }
            let Some(behind) = behind else { break };
            rest = behind;
            let Ok(line) = std::str::from_utf8(line) else {
                // Whatever comes next may be a frame again.
                client.say("DENIED", &json!({"error": "a frame is a line of UTF-8"}));
                continue;
            };
            let line = line.strip_suffix('\r').unwrap_or(line);
            let (verb, payload) = line.split_once(' ').unwrap_or((line, ""));
            let (verb, id) = verb.split_once('#').map_or((verb, None), |(verb, id)| (verb, Some(id)));
            let (verb, known) = (verb.to_ascii_uppercase(), client.known);
            // Before the client leaves its place to be served: what is passed on without it, it would never hear of.
            if known && PRESENT.contains(&verb.as_str()) {
                self.pump(now);
            }
            if known && JUDGED.contains(&verb.as_str()) {
                self.follow_turns();
            }
            let Some(mut client) = self.clients.remove(&number) else { return };
            if id.is_none_or(is_id) {
                client.asked = id.map(Into::into);
                self.take_frame(&mut client, &verb, payload, now);
            } else {
                client.say("DENIED", &json!({"error": NO_ID}));
            }
            // Whoever gives a request a name wants a reply, even where there is nothing to say.
            if client.asked.is_some() {
                client.say("OK", &json!({}));
            }
            self.clients.insert(number, client);
        }
        if let Some(client) = self.clients.get_mut(&number) {
            client.inbox = rest.to_vec();
        }
    }

    fn take_frame(&mut self, client: &mut Client, verb: &str, payload: &str, now: u64) {
        if verb == "HELLO" {
            return self.hello(client, payload);
        }
        if !client.known {
            client.say("DENIED", &json!({"error": "a token is needed"}));
            client.closing = true;
            return;
        }
        match verb {
            "SNAP" => self.snap(client, payload),
            "INFO" => self.info(client, payload, now),
            "SUB" => self.subscribe(client, payload),
            "ACK" => {
                if let Kind::Bus(BusState { sub: Some(sub), .. }) = &mut client.kind {
                    sub.undrawn = sub.undrawn.saturating_sub(1);
                }
            }
            "ROWS" => self.rows(client, payload),
            "FIND" => self.find(client, payload),
            "LINE" => self.line(client, payload),
            "KEY" => self.key(client, payload),
            "CMD" => self.cmd(client, payload, now),
            "TAKE" => self.take(client),
            "RELEASE" => self.release(client),
            "TURNS" => self.list_turns(client, payload),
            "TURN" => self.show_turn(client, payload),
            "EXPLAIN" => self.explain(client),
            "BROKER" => {
                let known = self.join_broker();
                client.say("OK", &json!({"broker": known}));
            }
            "PASTE" => match self.ended() {
                Some(ended) => client.say("DENIED", &json!({"error": ended})),
                None => self.paste(client, payload, now),
            },
            "RESIZE" => self.resize(client, payload),
            "KILL" => self.kill(client, payload),
            "REC" => self.rec(client, payload),
            // Unknown verbs are ignored, so that newer clients can talk to older sessions; but not by who waits.
            _ if client.asked.is_some() => {
                client.say("DENIED", &json!({"error": format!("no verb is called {verb:.20}")}));
            }
            _ => {}
        }
    }

    fn snap(&mut self, client: &mut Client, payload: &str) {
        if self.exit.is_some() {
            self.looked = true;
        }
        let Some(request) = asked(client, payload) else { return };
        let glass = self.glass.clone();
        let look = glass.look(&self.handle);
        let max = max_frame(client);
        let mut value = frame::full(&look, true);
        let flag = |key: &str| request.get(key).and_then(Value::as_bool).unwrap_or(false);
        let term = look.term();
        if let Some(since) = request.get("since").and_then(Value::as_u64) {
            // The rows that were written to since, wherever they are by now.
            value["since"] = json!(since);
            value["lines"] = term
                .lines()
                .filter(|l| l.written().is_some_and(|w| w >= since))
                .map(|l| Value::from(l.text()))
                .collect();
        } else if flag("scrollback") {
            value["lines"] = term.lines().map(|l| Value::from(l.text())).collect();
        }
        if flag("ansi") {
            let mut rows = Vec::new();
            let lines: Vec<_> =
                if flag("scrollback") { term.lines().collect() } else { term.screen().collect() };
            for line in lines {
                let mut out = Vec::new();
                line.write_ansi(&mut out, true);
                rows.push(Value::from(String::from_utf8_lossy(&out).into_owned()));
            }
            value["ansi"] = rows.into();
        }
        let verb = client.reply_verb("FRAME");
        let mut text = format!("{verb} {value}\n");
        if text.len() > max {
            text = format!("{verb} {}\n", frame::full(&look, false));
        }
        client.send(text);
    }

    fn info(&mut self, client: &mut Client, payload: &str, now: u64) {
        let brief = payload.trim() == "brief";
        // Before the model is held: the driver, which answers this, may be waiting for the model.
        let driver = self.handle.holder().ok().flatten().or_else(|| self.driver.clone());
        let glass = self.glass.clone();
        let look = glass.look(&self.handle);
        let mut value = if brief { json!({}) } else { frame::full(&look, true) };
        let term = look.term();
        let clients: Vec<Value> = self
            .clients
            .values()
            .chain(std::iter::once(&*client))
            .filter(|c| c.party.is_some())
            .map(|c| {
                let attached = matches!(&c.kind, Kind::Wire(w) if w.opened);
                json!({"name": c.name, "role": role_name(c.authority.role()), "pid": c.conn.pid(), "attached": attached})
            })
            .collect();
        let about = &self.about;
        let extra: BTreeMap<&str, Value> = BTreeMap::from([
            ("done", json!(self.exit.is_some())),
            ("driver", json!(driver.as_deref())),
            ("waiting", json!(self.waiting)),
            ("id", json!(about.id)),
            ("name", json!(about.name)),
            ("command", json!(about.command)),
            ("cwd", json!(about.cwd)),
            ("detached", json!(about.detached)),
            ("recording", json!(about.recording)),
            ("pid", json!(self.pid)),
            ("cols", json!(term.size().cols)),
            ("rows_n", json!(term.size().rows)),
            ("title", json!(term.title())),
            ("seq", json!(look.offset())),
            ("idle_ms", json!(now.saturating_sub(self.last_output_ns) / MS)),
            ("age_ms", json!(now / MS)),
            ("state", json!(self.state())),
            ("exit", self.exit.map_or(Value::Null, exit_json)),
            ("clients", json!(clients)),
            ("ring_from", json!(self.log.oldest())),
            ("agent_state", json!(look.detector().map_or("unknown", |d| d.judgement().state.name()))),
            ("agent", json!(look.detector().map(|d| d.rules().name.clone()))),
            ("turns", json!(look.detector().map_or(0, |d| d.turns()))),
        ]);
        for (key, v) in extra {
            value[key] = v;
        }
        let verb = client.reply_verb("INFO");
        let mut text = format!("{verb} {value}\n");
        if text.len() > max_frame(client) {
            value["cells"] = json!([]);
            text = format!("{verb} {value}\n");
        }
        client.send(text);
    }

    /// That there is nobody to type to any more, and why.
    pub(super) fn ended(&self) -> Option<String> {
        Some(match self.exit? {
            _ if self.lost => "the session broke down".to_owned(),
            Exit::Code(code) => format!("the program has ended with code {code}"),
            Exit::Signal(signal) => {
                let name = signals::name(signal).map_or_else(|| signal.to_string(), |n| format!("SIG{n}"));
                format!("the program was ended by {name}")
            }
        })
    }

    fn state(&self) -> &'static str {
        match (self.exit, self.suspended) {
            (Some(_), _) if self.lost => "lost",
            (Some(_), _) => "exited",
            (None, true) => "suspended",
            (None, false) => "running",
        }
    }

    fn subscribe(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = asked(client, payload) else { return };
        let frames = match request.get("frames") {
            None | Some(Value::Null) => Frames::Full,
            Some(frames) => match frames.as_str() {
                Some("full") => Frames::Full,
                Some("delta") => Frames::Delta,
                Some("none") => Frames::None,
                Some("paint") => Frames::Paint,
                _ => {
                    let error = format!("frames are full, delta, paint or none, and not {frames}");
                    return client.say("DENIED", &json!({"error": error}));
                }
            },
        };
        let fps = request.get("max_fps").and_then(Value::as_u64).unwrap_or(FPS).clamp(1, MAX_FPS);
        let out = request.get("out").and_then(Value::as_bool).unwrap_or(true);
        let since = request.get("since").and_then(Value::as_u64);
        // Who drives may have changed since the greeting, and is told in events only from here on.
        client.say("OK", &json!({"driver": self.driver.as_deref()}));
        let missed = since.and_then(|since| self.send_past(client, since));
        let Kind::Bus(bus) = &mut client.kind else { return };
        bus.sub = Some(Box::new(Sub {
            out,
            frames,
            interval_ns: 1_000 * MS / fps,
            last_frame_ns: 0,
            seen: None,
            from: Seq(0),
            missed,
            window: request.get("window").and_then(Value::as_u64).map(|n| n.clamp(1, 64)),
            undrawn: 0,
            drawn: None,
            held_ns: None,
            looks: request.get("looks").and_then(Value::as_bool).unwrap_or(true),
            restless: false,
        }));
        if let Some(exit) = self.exit {
            self.say_over(client, exit);
        }
    }

    /// Sends what the ring still has of the output since a place; says what it has no more.
    fn send_past(&mut self, client: &mut Client, since: u64) -> Option<super::client::Missed> {
        let reader = self.log.reader_from_start(tapdeck_core::ReaderKind::Lossy);
        let mut entries = Vec::new();
        let here = self.passed;
        let mut missed = None;
        let _ = self.log.read(reader, usize::MAX, &mut entries);
        self.log.remove_reader(reader);
        let oldest = entries.first().map_or(here, |e| e.offset);
        if since < oldest {
            client
                .say("EVENT", &json!({"name": "GAP", "from": since, "to": oldest, "bytes": oldest - since}));
        }
        let mut sent = 0;
        for entry in entries {
            let tapdeck_core::Event::Output { bytes, .. } = &entry.event else { continue };
            let end = entry.offset + bytes.len() as u64;
            // What comes behind is passed on as it always is.
            if end <= since || entry.offset >= here {
                continue;
            }
            if sent > super::client::BEHIND {
                super::client::Missed::more(&mut missed, entry.offset, end);
                continue;
            }
            let skip = usize::try_from(since.saturating_sub(entry.offset)).unwrap_or(0);
            sent += bytes.len();
            client.send(super::pass::encode_out(&bytes.slice(skip..)));
        }
        missed
    }

    fn line(&mut self, client: &mut Client, text: &str) {
        if text.contains('\r') {
            return client.say("DENIED", &json!({"error": "a line holds no line ends"}));
        }
        let bytes = self.line_bytes(text);
        if self.offer_bus(client, bytes, None) && !self.has_terminal {
            // A pipe does not echo: watchers see what was typed, the record holds what the program wrote.
            let glass = self.glass.clone();
            glass.look(&self.handle).show_echo(format!("{text}\n").as_bytes());
        }
    }

    fn line_bytes(&self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(if self.has_terminal { b'\r' } else { b'\n' });
        bytes
    }

    fn cmd(&mut self, client: &mut Client, text: &str, now: u64) {
        if matches!(&client.kind, Kind::Bus(bus) if bus.capture.is_some()) {
            return client.say("DENIED", &json!({"error": "a command of yours is still running"}));
        }
        if text.contains('\r') {
            return client.say("DENIED", &json!({"error": "a line holds no line ends"}));
        }
        let capture = {
            let glass = self.glass.clone();
            let look = glass.look(&self.handle);
            // From here on everything is an answer, so the line is sent before anything else is looked at.
            let ready = look.detector().is_some_and(|d| d.is_ready());
            Capture::new(&look, &self.prompt, look.offset(), now, CMD_LIMIT_NS).by_turn(ready)
        };
        self.prompt = capture.prompt().to_owned();
        let bytes = self.line_bytes(text);
        if self.offer_bus(client, bytes, None)
            && let Kind::Bus(bus) = &mut client.kind
        {
            self.waiting = false;
            bus.capture = Some(capture);
            bus.capture_id = client.asked.take();
        }
    }

    /// Answers those whose command has come to its end.
    pub(super) fn finish_captures(&mut self, now: u64) {
        let capturing = |c: &Client| matches!(&c.kind, Kind::Bus(bus) if bus.capture.is_some());
        if !self.clients.values().any(capturing) {
            return;
        }
        let glass = self.glass.clone();
        let look = glass.look(&self.handle);
        // What the model has seen and the captures have not yet would make an answer too short.
        if look.offset() != self.passed {
            return;
        }
        for client in self.clients.values_mut() {
            let Kind::Bus(bus) = &mut client.kind else { continue };
            if let Some(answer) = bus.capture.as_mut().and_then(|c| c.answer(&look, now)) {
                bus.capture = None;
                let id = bus.capture_id.take();
                client.say_to(id, "RESP", &answer);
            }
        }
    }

    /// Offers input for a bus client, and tells it when that is refused.
    pub(super) fn offer_bus(&mut self, client: &mut Client, bytes: Vec<u8>, fence: Option<Fence>) -> bool {
        let deny = |hub: &Self, client: &mut Client, error: &str| {
            let driver = hub.handle.holder().ok().flatten();
            client.say("DENIED", &json!({"driver": driver.as_deref(), "error": error}));
            false
        };
        if let Some(ended) = self.ended() {
            return deny(self, client, &ended);
        }
        let Some(party) = self.driving_party(client) else {
            return deny(self, client, "an observer cannot drive");
        };
        let bytes = bytes::Bytes::from(bytes);
        let offered = match fence {
            Some(_) => self.handle.input(party, fence, bytes),
            None => self.handle.input_or_claim(party, bytes),
        };
        match offered {
            Ok(Ok(())) => true,
            Ok(Err(e)) => deny(self, client, &e.to_string()),
            Err(e) => deny(self, client, &e.to_string()),
        }
    }

    fn take(&mut self, client: &mut Client) {
        let result = match self.driving_party(client) {
            Some(party) => self.handle.take(party).map_err(|e| e.to_string()),
            None => Err(self.ended().unwrap_or_else(|| "an observer cannot drive".into())),
        };
        let driver = self.handle.holder().ok().flatten();
        match result {
            Ok(Ok(fence)) => client.say("OK", &json!({"driver": driver.as_deref(), "fence": fence.0})),
            Ok(Err(e)) => {
                client.say("DENIED", &json!({"driver": driver.as_deref(), "error": e.to_string()}));
            }
            Err(e) => client.say("DENIED", &json!({"driver": driver.as_deref(), "error": e})),
        }
    }

    fn release(&mut self, client: &mut Client) {
        let released = client.party.map(|party| self.handle.release(party));
        let driver = self.handle.holder().ok().flatten();
        match released {
            Some(Ok(Ok(_))) => client.say("OK", &json!({"driver": driver.as_deref()})),
            Some(Ok(Err(e))) => {
                client.say("DENIED", &json!({"driver": driver.as_deref(), "error": e.to_string()}));
            }
            _ => client.say("DENIED", &json!({"driver": driver.as_deref(), "error": "not at this session"})),
        }
    }

    fn resize(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = asked(client, payload) else { return };
        let side = |key: &str| {
            request
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| u16::try_from(n).ok())
                .filter(|n| (1..=10_000).contains(n))
        };
        match (side("cols"), side("rows")) {
            _ if !self.allows(client, Need::Command) => {
                client.say("DENIED", &json!({"error": "only a person or who drives can set the size"}));
            }
            (Some(cols), Some(rows)) => match self.handle.resize_now(WinSize::cells(cols, rows)) {
                Ok(()) => client.say("OK", &json!({"cols": cols, "rows": rows})),
                Err(e) => client.say("DENIED", &json!({"error": e.to_string()})),
            },
            _ => client.say("DENIED", &json!({"error": crate::wire::NO_SIZE})),
        }
    }

    fn kill(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = asked(client, payload) else { return };
        if !self.allows(client, Need::Command) {
            return client
                .say("DENIED", &json!({"error": "only a person or who drives can end the session"}));
        }
        match request.get("signal").and_then(Value::as_str) {
            Some(_) if self.exit.is_some() => {
                return client.say("DENIED", &json!({"error": self.ended()}));
            }
            None => {
                self.looked = true;
                self.handle.cancel();
            }
            Some(name) => match signals::number(name) {
                Some(signal) => self.handle.signal(signal),
                None => {
                    return client.say("DENIED", &json!({"error": format!("no signal is called {name:?}")}));
                }
            },
        }
        client.say("OK", &json!({}));
    }

    fn rec(&mut self, client: &mut Client, payload: &str) {
        if !self.allows(client, Need::Administer) {
            return client.say("DENIED", &json!({"error": "only a person can have the session recorded"}));
        }
        let Some(request) = asked(client, payload) else { return };
        let started = match &mut self.record {
            Some(start) => start(&request),
            None => Err("this session cannot be recorded late".into()),
        };
        match started {
            Ok(from) => {
                if let Some(path) = request.get("path").and_then(Value::as_str) {
                    self.about.recording = Some(path.to_owned());
                }
                client.say("OK", &json!({"from": from}));
            }
            Err(why) => client.say("DENIED", &json!({"error": why})),
        }
    }
}

/// Whether a request may be called this.
fn is_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn too_long(client: &mut Client) {
    let error = format!("the frame is too long: at most {} bytes", max_frame(client));
    drop_with(client, &error);
}

fn max_frame(client: &Client) -> usize {
    match &client.kind {
        Kind::Bus(bus) => bus.max_frame,
        _ => MAX_FRAME,
    }
}
