//! Requests that look at the session: `SNAP`, `INFO` and `SUB`.

use std::time::Duration;

use tapdeck_core::{Event, Offset, ReaderKind, Seq, Time};
use tapdeck_host::Picture;
use tapdeck_proto::bus::{self, Frames, InfoWanted, Screen, Snap, Subscribed};
use tapdeck_term::Line;

use super::bus::Answer;
use super::client::{BEHIND, Client, Missed, Sub};
use super::frame;
use super::session::{LiveSession, recording_event, recording_state};
use super::turns::state_of;

/// Frames a second, unless a client asks for less or more.
const FPS: u32 = 30;
const MAX_FPS: u32 = 240;

impl LiveSession {
    pub(super) fn snap(&mut self, client: &Client, asked: Snap) -> Answer {
        if self.exit.is_some() {
            self.looked |= !client.only_waits();
        }
        let look = self.access.look();
        let mut screen = frame::full(&look, true);
        let numbers = add_rows(&look, asked, &mut screen);
        // The id and the verb stand in front of it.
        let max = client.max_frame().saturating_sub(64);
        // A scrollback may be many times as long as a frame: do not encode what cannot fit.
        let rows: usize =
            [&screen.lines, &screen.ansi].into_iter().flatten().flatten().map(String::len).sum();
        if rows > max {
            leave_out(&mut screen, &numbers, rows - max);
        }
        let mut payload = encode(&screen);
        if payload.len() > max {
            // Styles first: what was asked for are the rows.
            screen.contents.cells.clear();
            screen.contents.text_only = true;
            payload = encode(&screen);
        }
        if payload.len() > max {
            leave_out(&mut screen, &numbers, payload.len() - max);
            payload = encode(&screen);
        }
        Answer::Encoded { verb: "FRAME", payload }
    }

    pub(super) fn info(
        &mut self,
        wanted: InfoWanted,
        clients: Vec<bus::Client>,
        max_frame: usize,
        now: Time,
    ) -> Answer {
        // Before the model is held: the driver, which answers this, may be waiting for the model.
        let driver = self.access.holder().or_else(|| self.holder_name());
        let (state, ring_from, recording) = (self.state(), self.log.oldest(), self.log.recording());
        let exit = self.exit.map(|exit| self.exit_told(exit));
        let look = self.access.look();
        let term = look.term();
        let detector = look.detector();
        let mut info = bus::Info {
            about: self.about.clone(),
            status: bus::Status {
                state,
                done: self.exit.is_some(),
                exit,
                pid: self.pid,
                driver,
                waiting: self.waiting,
                recording: recording.as_ref().map(|r| r.path.to_string_lossy().into_owned()),
                recording_state: recording.as_ref().map(recording_state),
                recording_error: recording.and_then(|r| r.error),
                cols: term.size().cols,
                rows_n: term.size().rows,
                title: term.title().to_owned(),
                seq: look.offset().0,
                idle_ms: Time::from(now.since(self.last_output)).as_millis(),
                age_ms: now.as_millis(),
                clients,
                ring_from: ring_from.0,
                agent_state: detector.map_or(bus::AgentState::Unknown, |d| state_of(d.judgement().state)),
                agent: detector.map(|d| d.rules().name.clone()),
                turns: detector.map_or(0, |d| d.turns()),
            },
            contents: (wanted == InfoWanted::Full).then(|| frame::contents(&look, true)),
        };
        let payload = encode(&info);
        if payload.len() + 64 <= max_frame {
            return Answer::Encoded { verb: "INFO", payload };
        }
        if let Some(contents) = &mut info.contents {
            contents.cells.clear();
        }
        info.into()
    }

    /// Answers `SUB`, and sends the past that was asked for behind the reply.
    pub(super) fn subscribe(&mut self, client: &mut Client, asked: bus::Sub, id: Option<&str>) -> Answer {
        let fps = asked.max_fps.map_or(FPS, |fps| u32::try_from(fps).unwrap_or(MAX_FPS)).clamp(1, MAX_FPS);
        // The holder may have changed since the greeting, and is told in events only from here on.
        client.conn.reply(id, &Subscribed { driver: self.holder_name() }.into());
        let missed = asked.since.and_then(|since| self.send_past(client, Offset(since)));
        if let Some(bus) = client.bus() {
            bus.only_waits = !asked.looks;
            bus.theme = crate::paint::theme(asked.theme);
            bus.sub = Some(Box::new(Sub {
                out: asked.out,
                frames: asked.frames,
                interval: Duration::from_secs(1) / fps,
                last_frame: Time::ZERO,
                seen: None,
                from: Seq(0),
                missed,
                window: asked.window.map(|n| n.clamp(1, 64)),
                undrawn: 0,
                drawn: None,
                held_at: None,
                restless: false,
            }));
        }
        for failed in self.log.failed_recordings(0) {
            client.conn.send(super::pass::encode_event(recording_event(&failed)));
        }
        if let Some(exit) = self.exit.filter(|_| self.settled) {
            self.say_over(client, exit);
        }
        Answer::Later
    }

    /// Sends the output since an offset that the ring still has. Returns the part left out at its
    /// end.
    fn send_past(&mut self, client: &mut Client, since: Offset) -> Option<Missed> {
        let reader = self.log.reader_from_start(ReaderKind::Lossy);
        let mut entries = Vec::new();
        let here = self.passed;
        let mut missed = None;
        // A lag shows in the offset of the first entry.
        let _ = self.log.read(reader, usize::MAX, &mut entries);
        self.log.remove_reader(reader);
        let oldest = entries.first().map_or(here, |e| e.offset);
        if since < oldest {
            let gap = bus::Event::Gap { from: since.0, to: oldest.0, bytes: oldest - since };
            client.conn.send(super::pass::encode_event(gap));
        }
        let mut sent = 0;
        for entry in entries {
            let Event::Output { bytes, .. } = &entry.event else { continue };
            let end = entry.offset + bytes.len();
            // What comes behind is passed on as it always is.
            if end <= since || entry.offset >= here {
                continue;
            }
            if sent > BEHIND {
                Missed::more(&mut missed, entry.offset, end);
                continue;
            }
            let skip = usize::try_from(since - entry.offset).unwrap_or(0);
            sent += bytes.len();
            client.conn.send(super::pass::encode_out(&bytes.slice(skip..)));
        }
        missed
    }

    /// Returns whether a client is owed a frame or the news of a gap.
    pub(super) fn wants_frame(&self, client: &Client, sub: &Sub) -> bool {
        let room = client.conn.queue.len() <= BEHIND && sub.keeps_up();
        // A client that missed output is told as soon as it has taken its queue.
        let owed = sub.missed.is_some() && client.conn.queue.is_empty();
        let stale = || sub.seen.is_none_or(|g| g.0 < self.access.generation());
        owed || (sub.frames != Frames::None && room && stale())
    }
}

/// Adds the rows that were asked for. Returns their numbers.
fn add_rows(look: &Picture, asked: Snap, screen: &mut Screen) -> Vec<u64> {
    let term = look.term();
    let end = asked.before.unwrap_or(u64::MAX);
    let numbered = || (term.evicted()..).zip(term.lines()).take_while(|(n, _)| *n < end);
    let since = asked.since.unwrap_or(0);
    // The rows that were written to since, wherever they are by now.
    let wanted = |line: &Line<'_>| asked.since.is_none() || line.written().is_some_and(|w| w >= since);
    let rows = || numbered().filter(|(_, line)| wanted(line));
    screen.since = asked.since;
    if asked.since.is_some() || asked.scrollback {
        screen.lines = Some(rows().map(|(_, line)| line.text()).collect());
    }
    if asked.ansi {
        let ansi = |line: Line<'_>| {
            let mut out = Vec::new();
            line.write_ansi(&mut out, true);
            String::from_utf8_lossy(&out).into_owned()
        };
        screen.ansi = Some(if asked.scrollback {
            numbered().map(|(_, line)| ansi(line)).collect()
        } else {
            term.screen().map(ansi).collect()
        });
    }
    rows().map(|(number, _)| number).collect()
}

/// Leaves out the oldest rows until the frame is shorter by at least this much, and says so.
fn leave_out(screen: &mut Screen, numbers: &[u64], excess: usize) {
    // For the two fields that say so.
    let excess = excess + 64;
    let count = screen.lines.as_ref().or(screen.ansi.as_ref()).map_or(0, Vec::len);
    let cost = |rows: &Option<Vec<String>>, n: usize| {
        rows.as_ref().and_then(|rows| rows.get(n)).map_or(0, |row| encode(row).len() + 1)
    };
    let (mut freed, mut more) = (0, 0);
    while freed < excess && more < count {
        freed += cost(&screen.lines, more) + cost(&screen.ansi, more);
        more += 1;
    }
    for rows in [&mut screen.lines, &mut screen.ansi].into_iter().flatten() {
        rows.drain(..more.min(rows.len()));
    }
    screen.omitted += more;
    screen.from = numbers.get(screen.omitted).or(numbers.last()).copied();
}

/// Serialises a message. These types have no maps with other keys than texts, so it cannot fail.
fn encode(message: &impl serde::Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
