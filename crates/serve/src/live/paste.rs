//! `PASTE`: a prompt delivered so that it provably arrives, or is said not to have.
//!
//! The text goes in brackets where the program asked for them. Then the screen is watched until its end is drawn and
//! stands still, because an Enter that comes earlier is swallowed by many programs. Enter is sent once, as the keyboard
//! protocol in force wants it, and never again: whether it was taken is seen from the turn that it began, from the
//! program's state, or from the text having left the prompt.

use bytes::Bytes;
use serde_json::{Value, json};
use tapdeck_core::Refused;
use tapdeck_core::turns::{AgentState, Evidence, before_cursor, ending, squeezed};
use tapdeck_host::Picture;
use tapdeck_term::keys::{self, Key, KeyPress, Mods};

use super::client::{Client, Kind};
use super::hub::Hub;
use super::turns::judged;

const MS: u64 = 1_000_000;
/// The longest text.
const MAX: usize = 8 << 20;
/// What is offered to the gate at a time.
const PIECE: usize = 64 * 1024;
/// How long the end of the text must stand still.
const SETTLED_NS: u64 = 80 * MS;
/// How often it is looked.
const LOOK_NS: u64 = 15 * MS;
/// No terminal drops anything of a line as short as this.
const LONG_LINE: usize = 1000;
/// How long each step may take, unless the client says.
const LIMIT_MS: u64 = 15_000;

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The program to be ready.
    Ready,
    /// The text to be taken by the gate.
    Offering,
    /// The text to be drawn.
    Drawn,
    /// The Enter to be taken.
    Taken,
}

/// A delivery at work.
pub(crate) struct Paste {
    /// What is to be sent, and whether it was given as bytes to be sent as they are.
    text: String,
    raw: bool,
    /// What is left to be sent, spelt as the modes in force wanted it when it began.
    bytes: Bytes,
    enter: bool,
    step: Step,
    since_ns: u64,
    limit_ns: u64,
    tail: String,
    /// The last of several lines: of a text that is taller than the screen, line editors show hardly more.
    last_line: String,
    /// How often the tail, and placeholders, stood there before anything was sent.
    shown_before: (usize, usize),
    ended_before: bool,
    stands_since: Option<(u64, u64)>,
    /// Submissions that were over, and output, when Enter was sent.
    answered: u32,
    seq: u64,
}

impl Paste {
    pub(crate) fn next_look_ns(&self, now: u64) -> u64 {
        (self.since_ns + self.limit_ns).min(now + LOOK_NS)
    }
}

/// What stands in the program's input field, as far as that is known, and how many texts it shows by a placeholder only.
fn field_of(picture: &Picture) -> (String, usize) {
    let rules = picture.detector().map(|d| d.rules());
    let first = rules.map_or(0, |r| r.input_row(picture.term()));
    let rows: Vec<String> = picture.term().screen().skip(usize::from(first)).map(|l| l.text()).collect();
    let placeholders = rows.iter().map(|row| rules.map_or(0, |r| r.placeholders(row))).sum();
    (rows.iter().map(|row| squeezed(row)).collect(), placeholders)
}

fn answer(outcome: &str, why: &str, picture: &Picture) -> Value {
    let mut value = json!({"outcome": outcome, "evidence": why, "seq": picture.offset()});
    if let Some(detector) = picture.detector() {
        value["state"] = judged(detector.judgement());
    }
    let cursor = picture.term().cursor();
    value["row"] = json!(picture.term().row(cursor.row).map(|l| l.text()));
    value
}

impl Hub {
    /// `PASTE {text, enter, raw, wait_ms}`
    pub(super) fn paste(&mut self, client: &mut Client, payload: &str, now: u64) {
        let deny = |client: &mut Client, why: &str| client.say("DENIED", &json!({"error": why}));
        if matches!(&client.kind, Kind::Bus(bus) if bus.paste.is_some()) {
            return deny(client, "a paste of yours is still on its way");
        }
        let Some(request) = super::asked::asked(client, payload) else { return };
        let Some(text) = request.get("text").and_then(Value::as_str).filter(|t| t.len() <= MAX) else {
            return deny(client, "PASTE takes {\"text\": …} of at most 8 MiB");
        };
        let flag = |key: &str, usual| request.get(key).and_then(Value::as_bool).unwrap_or(usual);
        let (enter, raw) = (flag("enter", true), flag("raw", false));
        if self.driving_party(client).is_none() {
            return deny(client, "an observer cannot drive");
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let is_kept = |c: &char| raw || !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        let text: String = text.chars().filter(is_kept).collect();
        let tail = ending(&squeezed(&text)).to_owned();
        let last_line = text.rsplit_once(['\n', '\r']).map_or_else(String::new, |(_, last)| squeezed(last));
        let limit = request.get("wait_ms").and_then(Value::as_u64).unwrap_or(LIMIT_MS).min(3_600_000);
        let paste = Box::new(Paste {
            text,
            raw,
            bytes: Bytes::new(),
            enter,
            step: Step::Ready,
            since_ns: now,
            limit_ns: limit * MS,
            tail,
            last_line,
            shown_before: (0, 0),
            ended_before: false,
            stands_since: None,
            answered: 0,
            seq: 0,
        });
        if let Kind::Bus(bus) = &mut client.kind {
            bus.paste = Some(paste);
            bus.paste_id = client.asked.take();
        }
        self.drive_paste(client, now);
    }

    /// Takes all deliveries a step further.
    pub(super) fn drive_pastes(&mut self, now: u64) {
        let pasting = |c: &Client| matches!(&c.kind, Kind::Bus(bus) if bus.paste.is_some());
        let numbers: Vec<u64> = self.clients.iter().filter(|(_, c)| pasting(c)).map(|(n, _)| *n).collect();
        for number in numbers {
            let Some(mut client) = self.clients.remove(&number) else { continue };
            self.drive_paste(&mut client, now);
            self.clients.insert(number, client);
        }
    }

    fn drive_paste(&mut self, client: &mut Client, now: u64) {
        let Kind::Bus(bus) = &mut client.kind else { return };
        let Some(mut paste) = bus.paste.take() else { return };
        match self.paste_step(client, &mut paste, now) {
            Some((verb, value)) => {
                let id = if let Kind::Bus(bus) = &mut client.kind { bus.paste_id.take() } else { None };
                client.say_to(id, verb, &value);
            }
            None => {
                if let Kind::Bus(bus) = &mut client.kind {
                    bus.paste = Some(paste);
                }
            }
        }
    }

    fn paste_step(&mut self, client: &Client, paste: &mut Paste, now: u64) -> Option<(&'static str, Value)> {
        let glass = self.glass.clone();
        let handle = self.handle.clone();
        let late = now >= paste.since_ns + paste.limit_ns;
        loop {
            let mut look = glass.look(&handle);
            let state = look.detector().map_or(AgentState::Unknown, |d| d.judgement().state);
            let say = |outcome, why: &str| Some(("PASTE", answer(outcome, why, &look)));
            if self.exit.is_some() {
                let outcome = if paste.step == Step::Taken { "submitted" } else { "stalled" };
                return say(outcome, "the program has ended");
            }
            match paste.step {
                Step::Ready => match state {
                    AgentState::Blocked => return say("blocked", "the program waits for another answer"),
                    AgentState::Working if late => {
                        return say("stalled", "the program was at work all the time, and nothing was sent");
                    }
                    AgentState::Working => return None,
                    // It has only just come to its prompt.
                    AgentState::Idle if !late && !look.detector().is_some_and(|d| d.is_ready()) => {
                        return None;
                    }
                    AgentState::Idle if look.detector().is_some_and(|d| d.is_standing(look.term())) => {
                        return say(
                            "stalled",
                            "what was submitted before stands in its prompt still, and nothing was sent",
                        );
                    }
                    // It is known to ask for brackets, and has not come to that.
                    _ if !late && wants_brackets(&look) => return None,
                    _ => {
                        // It would be submitted along with the text.
                        if let Some(draft) = look.detector().and_then(|d| d.draft(look.term())) {
                            let brief: String = draft.chars().take(60).collect();
                            let why =
                                format!("{brief:?} was typed there and not submitted; nothing was sent");
                            return say("blocked", &why);
                        }
                        let longest = paste.text.split(['\n', '\r']).map(str::len).max().unwrap_or(0);
                        if longest > LONG_LINE {
                            drop(look);
                            let room = self.handle.longest_line().ok().flatten();
                            look = glass.look(&handle);
                            if let Some(room) = room.filter(|r| longest > *r) {
                                let why = format!(
                                    "a line has {longest} bytes, and the program reads lines of at most {room} bytes"
                                );
                                return Some(("PASTE", answer("blocked", &why, &look)));
                            }
                        }
                        if let Err(why) = spell(paste, &look) {
                            return Some(("PASTE", answer("blocked", why, &look)));
                        }
                        (paste.step, paste.since_ns) = (Step::Offering, now);
                    }
                },
                Step::Offering => {
                    drop(look);
                    match self.offer_paste(client, paste) {
                        Ok(true) if paste.enter => (paste.step, paste.since_ns) = (Step::Drawn, now),
                        // What the program has not read when the client goes would be dropped.
                        Ok(true) if self.handle.undelivered().is_ok_and(|n| n > 0) => {
                            if late {
                                let why = "the program does not read";
                                return Some(("PASTE", answer("stalled", why, &glass.look(&handle))));
                            }
                            return None;
                        }
                        Ok(true) => {
                            let why = "nothing more was asked for";
                            return Some(("PASTE", answer("pasted", why, &glass.look(&handle))));
                        }
                        Ok(false) if late => {
                            let why = "the program takes no input";
                            return Some(("PASTE", answer("stalled", why, &glass.look(&handle))));
                        }
                        Ok(false) => return None,
                        Err(why) => return Some(("DENIED", json!({"error": why}))),
                    }
                }
                Step::Drawn => {
                    if !self.is_drawn(&look, paste, now) {
                        return if late {
                            say(
                                "stalled",
                                "the end of the text has not come on the screen; Enter was not sent",
                            )
                        } else {
                            None
                        };
                    }
                    let modes = look.term().modes();
                    (paste.answered, paste.seq) =
                        (look.detector().map_or(0, |d| d.answered()), look.offset());
                    drop(look);
                    paste.bytes = keys::encode(KeyPress::new(Key::Enter, Mods::NONE), &modes).into();
                    match self.offer_paste(client, paste) {
                        Ok(true) => (paste.step, paste.since_ns) = (Step::Taken, now),
                        Ok(false) => {
                            return Some((
                                "PASTE",
                                json!({"outcome": "stalled", "evidence": "no room for the Enter key, which was not sent"}),
                            ));
                        }
                        Err(why) => return Some(("DENIED", json!({"error": why}))),
                    }
                }
                Step::Taken => {
                    if let Some(why) = taken(&look, paste) {
                        return say("submitted", why);
                    }
                    return if late {
                        say("stalled", "Enter was sent once, and nothing shows that it was taken")
                    } else {
                        None
                    };
                }
            }
        }
    }

    /// Whether the end of the text is on the screen and stands still.
    fn is_drawn(&self, look: &Picture, paste: &mut Paste, now: u64) -> bool {
        let (field, placeholders) = field_of(look);
        let (tails_before, placeholders_before) = paste.shown_before;
        let shown = paste.tail.is_empty()
            || count(&field, &paste.tail) > tails_before
            || placeholders > placeholders_before
            || (!paste.ended_before && ends_in_last_line(look, paste));
        if !shown {
            paste.stands_since = None;
            return false;
        }
        // A turning mark elsewhere must not hold it up: the page may change as long as the text stays.
        match paste.stands_since {
            None => {
                paste.stands_since = Some((now, look.offset()));
                false
            }
            Some((since, _)) => now >= since + SETTLED_NS,
        }
    }

    /// Offers what is left; `Ok(false)` when there is no room for all of it.
    fn offer_paste(&mut self, client: &Client, paste: &mut Paste) -> Result<bool, String> {
        let Some(party) = client.party else { return Err("an observer cannot drive".into()) };
        while !paste.bytes.is_empty() {
            let piece = paste.bytes.slice(..paste.bytes.len().min(PIECE));
            match self.handle.input_or_claim(party, piece.clone()) {
                Ok(Ok(())) => paste.bytes = paste.bytes.slice(piece.len()..),
                Ok(Err(Refused::Full { .. })) => return Ok(false),
                Ok(Err(e)) => return Err(e.to_string()),
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(true)
    }
}

/// Whether the program will ask for bracketed paste and has not yet.
fn wants_brackets(look: &Picture) -> bool {
    look.detector().is_some_and(|d| d.rules().brackets()) && !look.term().modes().bracketed_paste()
}

/// Spells the text as the modes in force want it, and notes what stands in the program's input field before it comes.
fn spell(paste: &mut Paste, look: &Picture) -> Result<(), &'static str> {
    let modes = look.term().modes();
    if !paste.raw && paste.text.contains(['\n', '\r']) && !modes.bracketed_paste() {
        return Err("the program has not asked for bracketed paste, so every line end would submit: \
                    paste one line, or give --raw");
    }
    let text = std::mem::take(&mut paste.text);
    paste.bytes = if paste.raw { keys::text(&text, &modes) } else { keys::paste(&text, &modes) }.into();
    let (field, placeholders) = field_of(look);
    paste.shown_before = (count(&field, &paste.tail), placeholders);
    paste.ended_before = ends_in_last_line(look, paste);
    Ok(())
}

/// Whether the last of several lines stands in front of the cursor.
fn ends_in_last_line(look: &Picture, paste: &Paste) -> bool {
    !paste.last_line.is_empty() && squeezed(&before_cursor(look.term())).ends_with(&paste.last_line)
}

fn count(page: &str, tail: &str) -> usize {
    if tail.is_empty() { 0 } else { page.matches(tail).count() }
}

/// What shows that the Enter was taken.
fn taken(look: &Picture, paste: &Paste) -> Option<&'static str> {
    let detector = look.detector()?;
    if detector.answered() > paste.answered {
        return Some("it was answered already");
    }
    if detector.has_taken() {
        return Some("its turn has begun");
    }
    let judgement = detector.judgement();
    match judgement.state {
        AgentState::Working if judgement.evidence != Evidence::Input => Some("the program is at work"),
        AgentState::Blocked => Some("the program asks back"),
        _ => {
            // Without rules that tell, the text has to have left the line of the cursor, and something to have come.
            let term = look.term();
            let row = term.row(term.cursor().row).map(|l| squeezed(&l.text())).unwrap_or_default();
            let left = !paste.tail.is_empty() && !row.contains(&paste.tail);
            let unknown = judgement.state == AgentState::Unknown;
            (unknown && left && look.offset() > paste.seq)
                .then_some("the text has left the line of the cursor")
        }
    }
}
