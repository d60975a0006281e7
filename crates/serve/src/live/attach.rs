//! The tty wire's side of the service: a client that is attached to the session.
//!
//! The client gets bytes that redraw the screen, and then the stream from exactly there: the model
//! says which entry of the log it has not seen yet. A client that falls behind is told how much it
//! missed, and gets the whole screen again.

use bytes::Bytes;
use tapdeck_core::{Need, Refused, Right, Role, Seq, Time, WinSize};
use tapdeck_host::signals;
use tapdeck_proto::attach::{Asked, Gap, Join, Opened, Said};
use tapdeck_proto::bus::{self, AgentState, MAX_AGREED, Paused};
use tapdeck_proto::tty::{Control, RefusalCode};

use super::client::{Client, Kind, Missed, WireState};
use super::hub::Hub;
use super::session::{LiveSession, recording_notice};
use super::turns::state_of;
use crate::wire::{self, Chunk, ChunkKind, win_size};

/// The size of the pieces of a dump. The client can draw the first while the next ones come.
const PIECE: usize = 64 * 1024;
/// Rows in one message about where they end: it stays well below what a control message may be.
const ROWS: usize = 1000;

/// A client that has yet to say what it wants.
pub(super) fn unopened() -> WireState {
    WireState { opened: false, read_only: false, shows: false, from: Seq(0), missed: None, held: None }
}

impl Hub {
    /// Serves what a client of the attach wire has sent.
    pub(super) fn serve_wire(&mut self, number: u64, now: Time) {
        let Some(Client { kind: Kind::Wire(state), conn, .. }) = self.clients.get_mut(&number) else {
            return;
        };
        if !state.opened {
            let request = match wire::take_framed(&mut conn.inbox, wire::MAX_NEGOTIATION) {
                Ok(None) => return,
                Ok(Some(request)) => Ok(request),
                Err(e) => Err(Refusal(RefusalCode::MalformedNegotiation, e.to_string())),
            };
            if let Err(Refusal(error, message)) = request.and_then(|request| self.open(number, &request, now))
                && let Some(client) = self.clients.get_mut(&number)
            {
                client.conn.send(wire::refusal(error, &message));
                client.conn.closing = true;
            }
        }
        if let Some(client) = self.clients.get_mut(&number) {
            self.session.serve_chunks(client);
        }
    }

    /// Opens a session for a client.
    fn open(&mut self, number: u64, request: &[u8], now: Time) -> Result<(), Refusal> {
        let Some(client) = self.clients.get_mut(&number) else { return Ok(()) };
        let join =
            Join::parse(request).map_err(|e| Refusal(RefusalCode::MalformedNegotiation, e.to_string()))?;
        let asked = if join.read_only { Role::Observer } else { Role::Human };
        client.authority = client
            .show(asked, join.token.as_deref())
            .map_err(|why| Refusal(RefusalCode::Forbidden, why.to_owned()))?;
        match join.backend.as_deref() {
            Some("attach") => {}
            Some(other) => {
                let message = format!("this is one session: the backend is attach, and not {other:?}");
                return Err(Refusal(RefusalCode::UnknownBackend, message));
            }
            None => {
                let message = "this is one session: the backend has to be attach".to_owned();
                return Err(Refusal(RefusalCode::UnknownBackend, message));
            }
        }
        client.known = true;
        let read_only = !client.authority.grants(Right::Drive);
        self.session.join(client, join.name.as_deref().unwrap_or("attach"));
        if let (true, Some(party), Some(token)) = (join.share, client.party, join.token.as_deref()) {
            self.session.access.driver().share(party, client.group_of(token));
        }
        let party = client.party.filter(|_| !read_only && !join.watch);
        let mut drives = false;
        if let Some(party) = party {
            let driver = self.session.access.driver();
            let claimed = if join.takeover { driver.take(party) } else { driver.claim(party) };
            drives = matches!(claimed, Ok(Ok(_)));
            // The session has the size of its holder's terminal. A client that has not typed yet,
            // and did not ask to take over, leaves the size as it is for other terminals that show
            // the session.
            if drives
                && (join.takeover || !self.is_shown())
                && let Some(size) = join.size()
            {
                self.session.resize_to(win_size(size));
            }
        }
        self.pump(now);
        if let Some(client) = self.clients.get_mut(&number) {
            self.session.send_opened(client, &join, drives);
        }
        Ok(())
    }

    /// Returns whether a terminal shows the session: its own, or that of an attached client that
    /// may drive.
    fn is_shown(&self) -> bool {
        !self.session.about.detached
            || self.clients.values().any(|c| matches!(&c.kind, Kind::Wire(w) if w.shows))
    }

    /// Offers input again that found no room.
    pub(super) fn retry_held(&mut self) {
        let session = &mut self.session;
        for client in self.clients.values_mut() {
            if let Kind::Wire(w) = &mut client.kind
                && let Some(bytes) = w.held.take()
            {
                session.offer_attached(client, bytes);
                session.serve_chunks(client);
            }
        }
    }
}

/// Why a client is not attached: a word for programs, and a sentence for people.
struct Refusal(RefusalCode, String);

impl LiveSession {
    /// Tells a client that it is attached, and draws the screen for it.
    fn send_opened(&mut self, client: &mut Client, join: &Join, drives: bool) {
        let read_only = !client.authority.grants(Right::Drive);
        let driver = self.holder_name();
        let look = self.access.look();
        if let Kind::Wire(w) = &mut client.kind {
            (w.opened, w.read_only, w.from) = (true, read_only, look.next());
            w.shows = join.size().is_some() && !read_only;
        }
        let size = look.term().size();
        let (dump, ends) = match (join.screen_only, join.rows) {
            (true, _) => (look.term().dump_screen(), Vec::new()),
            (false, true) => look.term().dump_with_rows(),
            (false, false) => (look.term().dump(), Vec::new()),
        };
        client.conn.control(&Said::Opened(Opened {
            session: self.about.id.clone(),
            name: client.name.clone(),
            cols: size.cols,
            rows: size.rows,
            driver,
            you: drives,
            read_only,
            offset: look.offset().0,
            dump: dump.len(),
            state: look.detector().map_or(AgentState::Unknown, |d| state_of(d.judgement().state)),
        }));
        drop(look);
        for rows in ends.chunks(ROWS) {
            client.conn.control(&Said::Rows { rows: rows.to_vec() });
        }
        send_dump(client, dump);
        for notice in self.log.failed_recordings(0).iter().filter_map(recording_notice) {
            client.conn.control(&notice);
        }
        if let (true, by) = self.log.is_paused() {
            client.conn.control(&Said::Paused { paused: true, by: by.to_string() });
        }
        if let Some(exit) = self.exit.filter(|_| self.settled) {
            self.say_over(client, exit);
        }
    }

    fn serve_chunks(&mut self, client: &mut Client) {
        let held = |client: &Client| matches!(&client.kind, Kind::Wire(w) if w.held.is_some());
        while client.attached().is_some() && !client.conn.closing && !client.conn.gone && !held(client) {
            match wire::take_chunk(&mut client.conn.inbox, MAX_AGREED) {
                Ok(None) => break,
                Ok(Some(chunk)) => self.take_chunk(client, chunk),
                Err(e) => {
                    client.conn.control(&error(None, e));
                    client.conn.closing = true;
                }
            }
        }
    }

    fn take_chunk(&mut self, client: &mut Client, chunk: Chunk) {
        match chunk.kind {
            ChunkKind::Stdin => self.offer_attached(client, chunk.payload.into()),
            ChunkKind::Control => match Control::parse(&chunk.payload) {
                Ok(control) => self.take_control(client, &control),
                Err(e) => client.conn.control(&error(None, e)),
            },
            ChunkKind::Stdout | ChunkKind::Stderr => {
                client.conn.control(&error(None, "output comes from the program"));
                client.conn.closing = true;
            }
        }
    }

    /// Offers input to the gate. Input that finds no room is kept, and no more is read from the
    /// client until it fits.
    fn offer_attached(&mut self, client: &mut Client, bytes: Bytes) {
        let Some(party) = self.driving_party(client) else {
            let denied = Said::Denied { driver: self.holder_name(), error: "read-only".to_owned() };
            return client.conn.control(&denied);
        };
        match self.access.driver().input_or_claim(party, bytes.clone()) {
            // A driver that is gone has told everything in the log.
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(Refused::Full { .. })) => {
                if let Kind::Wire(w) = &mut client.kind {
                    w.held = Some(bytes);
                }
            }
            Ok(Err(e)) => {
                let denied = Said::Denied { driver: self.access.holder(), error: e.to_string() };
                client.conn.control(&denied);
            }
        }
    }

    fn take_control(&mut self, client: &mut Client, control: &Control) {
        let asked = match Asked::from_message(control) {
            // Messages of later versions are ignored.
            Ok(None) => return,
            Ok(Some(asked)) => Ok(asked),
            Err(e) => Err(e),
        };
        let about = asked.as_ref().map_or("resize", Asked::name);
        let Some(party) = self.driving_party(client) else {
            return client.conn.control(&error(Some(about), "read-only"));
        };
        match asked {
            Ok(Asked::Take) => {
                if let Ok(Err(e)) = self.access.driver().take(party) {
                    let denied = Said::Denied { driver: self.holder_name(), error: e.to_string() };
                    client.conn.control(&denied);
                }
            }
            Ok(Asked::Release) => {
                // A client that does not hold the stick has nothing to give up.
                let _ = self.access.driver().release(party);
            }
            Ok(Asked::Resize(size)) => {
                // Only the holder sets the size: other clients scale what they show.
                if self.allows(client, Need::Hold) {
                    self.resize_to(win_size(size));
                }
            }
            Ok(Asked::Signal { name }) => match signals::number(&name) {
                Some(signal) if self.allows(client, Need::Hold) => self.access.driver().signal(signal),
                Some(_) => client.conn.control(&error(Some(about), "only who drives can send signals")),
                None => {
                    let why = format!("no signal is called {name:?}");
                    client.conn.control(&error(Some(about), why));
                }
            },
            Ok(Asked::Mark { label }) => client.conn.control(&match self.mark(client, &label) {
                Ok(_) => Said::Marked,
                Err(denied) => error(Some(about), denied.error),
            }),
            Ok(Asked::Pause { pause }) => {
                // All who are attached are told, this client among them; if nothing has changed, it
                // alone.
                let before = self.log.is_paused().0;
                match self.pause(client, &bus::Pause { pause }) {
                    Ok(Paused { paused }) if paused == before => {
                        let by = self.log.is_paused().1.to_string();
                        client.conn.control(&Said::Paused { paused, by });
                    }
                    Ok(_) => {}
                    Err(denied) => client.conn.control(&error(Some(about), denied.error)),
                }
            }
            Ok(Asked::Kill) => {
                if let Err(denied) = self.kill(client, &bus::Kill::default()) {
                    client.conn.control(&error(Some(about), denied.error));
                }
            }
            Ok(_) => {}
            Err(e) => client.conn.control(&error(Some(about), e)),
        }
    }

    fn resize_to(&mut self, size: WinSize) {
        // A session that has ended has no terminal to resize.
        let _ = self.access.driver().resize_now(size);
    }
}

/// Sends the screen anew to a client that missed some of the stream.
pub(super) fn resend_screen(session: &mut LiveSession, client: &mut Client) {
    let look = session.access.look();
    let Kind::Wire(w) = &mut client.kind else { return };
    let Some(Missed { from, .. }) = w.missed.take() else { return };
    w.from = look.next();
    let size = look.term().size();
    // CAN ends a sequence that the gap may have cut.
    let mut dump = b"\x18".to_vec();
    dump.extend_from_slice(&look.term().dump_screen());
    client.conn.control(&Said::Gap(Gap {
        from: from.0,
        to: look.offset().0,
        bytes: look.offset() - from,
        cols: size.cols,
        rows: size.rows,
        dump: dump.len(),
    }));
    send_dump(client, dump);
}

fn error(about: Option<&str>, message: impl ToString) -> Said {
    Said::Error { about: about.map(str::to_owned), message: message.to_string() }
}

/// Sends bytes that draw the screen, and says that the stream follows.
fn send_dump(client: &mut Client, dump: Vec<u8>) {
    let mut dump = Bytes::from(dump);
    while !dump.is_empty() {
        let piece = dump.split_to(dump.len().min(PIECE));
        client.conn.send(wire::chunk_head(ChunkKind::Stdout, piece.len()).to_vec());
        client.conn.send(piece);
    }
    client.conn.control(&Said::Live);
}
