//! `PASTE`: sends a prompt and confirms that it was delivered, or reports that it was not.
//!
//! The text goes in brackets if the program asked for them. Then the program's input field is
//! watched until the end of the text is drawn there and stands still, because many programs swallow
//! an Enter that comes earlier. Enter is sent once, as the keyboard protocol in force wants it, and
//! never again. Delivery is seen from the program's journal, from the turn that it began, or from
//! the program's state, and never while the text still stands in the field. A text that was not
//! taken is deleted again, so that it does not stand in the way of the next one.
//!
//! Several pastes are served in the order in which they came.

use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::turns::{
    AgentState, Evidence, Field, Judgement, before_cursor, ending, skeleton, squeezed,
};
use tapdeck_core::{Offset, PartyId, Refused, StickError, Time, WallTime};
use tapdeck_host::Picture;
use tapdeck_proto::bus::{self, Denied, Outcome, Pasted, Reply};
use tapdeck_term::keys::{self, Key, KeyPress, Mods};

use super::bus::{Answer, Answered};
use super::client::{Client, Id, Pending};
use super::session::LiveSession;
use super::turns::judged;

/// What is offered to the gate at a time.
const PIECE: usize = 64 * 1024;
/// How long the end of the text must stand still.
const SETTLED: Duration = Duration::from_millis(80);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(15);
/// No terminal drops anything of a line as short as this.
const LONG_LINE: usize = 1000;
/// How long each step may take, unless the client says.
const LIMIT: Duration = Duration::from_secs(15);
/// The longest time that a client can ask for.
const MAX_LIMIT: Duration = Duration::from_secs(3_600);
/// How long the keys that empty the input field may take, how often they are pressed for one line,
/// and for how many lines.
const CLEARED: Duration = Duration::from_millis(400);
const IN_VAIN: u32 = 4;
const LINES: u32 = 400;
/// How long a program may take to draw what was typed just before.
const ECHOED: Duration = Duration::from_millis(700);
/// How long after its start a program is given time to show a first prompt.
const YOUNG: Duration = Duration::from_secs(10);
/// How long a client may hold the stick after its own prompt.
const HANDOVER: Duration = Duration::from_secs(1);
/// How long a text that has left the input field may take to show up anywhere else.
const ELSEWHERE: Duration = Duration::from_millis(1500);

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The program to be ready.
    Ready,
    /// The input field to be emptied before the text is sent, or after it was not taken.
    Cleared { pressed: u32, in_vain: u32 },
    /// The text to be taken by the gate.
    Offering,
    /// The text to be drawn.
    Drawn,
    /// The Enter to be taken.
    Taken,
}

const CLEAR: Step = Step::Cleared { pressed: 0, in_vain: 0 };

/// A delivery at work.
pub(crate) struct Paste {
    /// What is to be sent, and whether it was given as bytes to be sent as they are.
    text: String,
    raw: bool,
    /// What is left to be sent, spelt as the modes in force wanted it when it began.
    bytes: Bytes,
    enter: bool,
    clear: bool,
    queue: bool,
    /// Its place in the order of all pastes.
    ticket: u64,
    /// Whether it has let go of the stick, because another one comes first.
    yielded: bool,
    /// Since when another client holds the stick.
    refused: Option<Time>,
    /// Why it was not taken, once that is known.
    failed: Option<String>,
    step: Step,
    since: Time,
    limit: Duration,
    /// The text without what programs draw in other ways.
    skeleton: String,
    tail: String,
    /// The last of several lines. Line editors show little more of a text taller than the screen.
    last_line: String,
    /// How often the tail stood on the screen before anything was sent, and what was in the input
    /// field.
    shown_before: usize,
    field_before: Option<Field>,
    ended_before: bool,
    stands_since: Option<Time>,
    /// Submissions that were over, output and the time when Enter was sent.
    answered: u32,
    output: Offset,
    entered: WallTime,
}

impl Paste {
    pub(crate) fn next_look(&self, now: Time) -> Time {
        (self.since + self.limit).min(now + LOOK)
    }
}

/// Returns the text of the whole screen.
fn page_of(picture: &Picture) -> String {
    picture.term().screen().map(|line| squeezed(&line.text())).collect()
}

/// Returns what stands in the program's input field, where that is known.
fn field_of(picture: &Picture) -> Option<Field> {
    picture.detector().and_then(|detector| detector.input_field(picture.term()))
}

/// How far a step has come.
enum Progress {
    /// The next step begins.
    Next(Step),
    /// Not yet; when the time is over, for this reason.
    Wait(&'static str),
    /// The delivery is over.
    Over(Outcome, String),
    /// The input was refused.
    Denied(String),
}

/// Why input was not taken.
enum Unoffered {
    /// Another client holds the stick.
    Held(String),
    /// For another reason.
    No(String),
}

fn over(outcome: Outcome, why: impl Into<String>) -> Progress {
    Progress::Over(outcome, why.into())
}

impl LiveSession {
    /// Answers `PASTE`, at once or later.
    pub(super) fn paste(
        &mut self,
        client: &mut Client,
        asked: &bus::Paste,
        id: Option<Id>,
        now: Time,
    ) -> Answered {
        if let Some(ended) = self.ended() {
            return Err(Denied::because(ended));
        }
        if client.bus().is_some_and(|bus| bus.paste.is_some()) {
            return Err(Denied::because("a paste of yours is still on its way"));
        }
        if self.driving_party(client).is_none() {
            return Err(Denied::because("an observer cannot drive"));
        }
        if let Some(bus) = client.bus() {
            self.pastes += 1;
            bus.paste = Some(Pending { id, work: Box::new(Paste::new(asked, self.pastes, now)) });
        }
        // It begins with the next turn of the doors, in the order of all pastes.
        Ok(Answer::Later)
    }

    /// Takes a client's delivery further, and answers when it is over.
    /// `first` is the ticket of the one that came first.
    pub(super) fn drive_paste(&mut self, client: &mut Client, first: u64, now: Time) {
        let Some(mut pending) = client.bus().and_then(|bus| bus.paste.take()) else { return };
        let party = client.party;
        let reply = match pending.work.ticket == first {
            true => pending.work.advance(self, party, now),
            false => pending.work.wait_in_line(self, party, now),
        };
        match reply {
            Some(reply) => client.conn.reply(pending.id.as_deref(), &reply),
            None => {
                if let Some(bus) = client.bus() {
                    bus.paste = Some(pending);
                }
            }
        }
    }
}

impl Paste {
    fn new(asked: &bus::Paste, ticket: u64, now: Time) -> Self {
        let text = asked.text.trim_end_matches(['\n', '\r']);
        let is_kept = |c: &char| asked.raw || !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        let text: String = text.chars().filter(is_kept).collect();
        let tail = ending(&squeezed(&text)).to_owned();
        let skeleton = skeleton(&text);
        let last_line = text.rsplit_once(['\n', '\r']).map_or_else(String::new, |(_, last)| squeezed(last));
        Self {
            text,
            raw: asked.raw,
            bytes: Bytes::new(),
            enter: asked.enter,
            clear: asked.clear,
            queue: asked.queue,
            ticket,
            yielded: false,
            refused: None,
            failed: None,
            step: Step::Ready,
            since: now,
            limit: asked.wait_ms.map_or(LIMIT, Duration::from_millis).min(MAX_LIMIT),
            skeleton,
            tail,
            last_line,
            shown_before: 0,
            field_before: None,
            ended_before: false,
            stands_since: None,
            answered: 0,
            output: Offset(0),
            entered: WallTime::ZERO,
        }
    }

    /// Returns its place in the order of all pastes.
    pub(super) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Waits while another paste is delivered, without the stick that this one needs.
    fn wait_in_line(
        &mut self,
        session: &mut LiveSession,
        party: Option<PartyId>,
        now: Time,
    ) -> Option<Reply> {
        if let Some(party) = party.filter(|_| !std::mem::replace(&mut self.yielded, true)) {
            // A client that does not hold the stick has nothing to give up.
            let _ = session.access.driver().release(party);
        }
        if self.is_late(now) || session.exit.is_some() {
            let why = "another prompt was being delivered all the time, and nothing was sent";
            return Some(pasted(Outcome::Stalled, why.to_owned(), &session.access.look()).into());
        }
        None
    }

    /// Whether the step has had its time. One that waits its turn has an hour for that.
    fn is_late(&self, now: Time) -> bool {
        let limit = if self.queue && self.step == Step::Ready { MAX_LIMIT } else { self.limit };
        now >= self.since + limit
    }

    /// Takes the delivery as far as it goes now. Returns the reply once it is over.
    fn advance(&mut self, session: &mut LiveSession, party: Option<PartyId>, now: Time) -> Option<Reply> {
        loop {
            let late = self.is_late(now);
            let progress = match self.step {
                _ if session.exit.is_some() => {
                    let taken = self.step == Step::Taken;
                    let outcome = if taken { Outcome::Submitted } else { Outcome::Stalled };
                    over(outcome, "the program has ended")
                }
                Step::Ready => self.await_prompt(session, late, now),
                Step::Cleared { pressed, in_vain } => {
                    self.await_clearing(session, party, (pressed, in_vain), now)
                }
                Step::Offering => self.await_room(session, party, now),
                Step::Drawn => self.await_drawing(session, party, now),
                Step::Taken => self.await_taking(&session.access.look(), now),
            };
            let (outcome, why) = match self.unless_left_behind(progress, session, late) {
                Progress::Next(step) => {
                    (self.step, self.since) = (step, now);
                    continue;
                }
                Progress::Wait(_) if !late => return None,
                Progress::Wait(why) => (Outcome::Stalled, why.to_owned()),
                Progress::Over(outcome, why) => (outcome, why),
                Progress::Denied(why) => return Some(Denied::because(why).into()),
            };
            let mut reply = pasted(outcome, why, &session.access.look());
            reply.entered = (self.step == Step::Taken).then_some(self.output.0);
            return Some(reply.into());
        }
    }

    /// Turns the failure of a text that stands in the input field into its deletion there.
    fn unless_left_behind(&mut self, progress: Progress, session: &mut LiveSession, late: bool) -> Progress {
        let why = match &progress {
            Progress::Wait(why) if late && matches!(self.step, Step::Drawn | Step::Taken) => *why,
            _ => return progress,
        };
        let look = session.access.look();
        let stands = field_of(&look).is_some_and(|field| !field.is_empty());
        let keys = look.detector().is_some_and(|d| !d.rules().clear().is_empty());
        if !stands || !keys || look.detector().is_some_and(|d| d.judgement().state == AgentState::Blocked) {
            return progress;
        }
        self.failed = Some(why.to_owned());
        Progress::Next(CLEAR)
    }

    /// Presses the keys that empty the input field, line by line, until it is empty.
    fn await_clearing(
        &mut self,
        session: &mut LiveSession,
        party: Option<PartyId>,
        (pressed, in_vain): (u32, u32),
        now: Time,
    ) -> Progress {
        let look = session.access.look();
        let field = field_of(&look).filter(|field| !field.is_empty());
        if field.is_none() {
            drop(look);
            return match self.failed.take() {
                Some(why) => over(Outcome::Stalled, format!("{why}; the text was deleted again")),
                None => self.spell_for(session),
            };
        }
        let changed = pressed == 0 || field != self.field_before;
        if !changed && now < self.since + CLEARED {
            return Progress::Wait("");
        }
        let in_vain = if changed { 0 } else { in_vain + 1 };
        if in_vain == IN_VAIN || pressed == LINES {
            return match self.failed.take() {
                Some(why) => over(Outcome::Stalled, format!("{why}; the text still stands there")),
                None => over(Outcome::Blocked, "the input field could not be emptied; nothing was sent"),
            };
        }
        let modes = look.term().modes();
        let names = look.detector().map(|d| d.rules().clear().to_vec()).unwrap_or_default();
        drop(look);
        self.field_before = field;
        let keys = names.iter().filter_map(|name| name.parse::<KeyPress>().ok());
        self.bytes = keys.flat_map(|key| keys::encode(key, &modes)).collect::<Vec<u8>>().into();
        match self.offer(session, party) {
            Ok(_) => Progress::Next(Step::Cleared { pressed: pressed + 1, in_vain }),
            Err(Unoffered::Held(why) | Unoffered::No(why)) => Progress::Denied(why),
        }
    }

    /// Waits until the program is ready for a prompt.
    fn await_prompt(&mut self, session: &mut LiveSession, late: bool, now: Time) -> Progress {
        let look = session.access.look();
        let detector = look.detector();
        match detector.map_or(AgentState::Unknown, |d| d.judgement().state) {
            AgentState::Blocked => return over(Outcome::Blocked, "the program waits for another answer"),
            AgentState::Working => {
                return Progress::Wait("the program was at work all the time, and nothing was sent");
            }
            // It has only just come to its prompt. Activity alone tells of no prompt to wait for.
            AgentState::Idle
                if !late && detector.is_some_and(|d| !d.is_ready() && !is_guessed(d.judgement())) =>
            {
                return Progress::Wait("");
            }
            AgentState::Idle if detector.is_some_and(|d| d.is_standing(look.term())) => {
                let why = "what was submitted before stands in its prompt still, and nothing was sent";
                return over(Outcome::Stalled, why);
            }
            // What was typed just before is not drawn yet, and would be submitted along.
            _ if !late && now < self.since + ECHOED && is_typed_unseen(&look) => return Progress::Wait(""),
            // It is known to ask for brackets, and has not come to that.
            _ if !late && wants_brackets(&look) => return Progress::Wait(""),
            // What is typed before a program reads would be shown by the terminal itself, as if the
            // program had taken it.
            AgentState::Unknown => {
                // What is submitted before the first prompt was seen begins no turn.
                let is_young = now.since_start() < YOUNG && detector.is_some_and(|d| d.prompt().is_none());
                if is_young && !late && now < self.since + ECHOED {
                    return Progress::Wait("");
                }
                let silent = look.offset() == Offset(0);
                drop(look);
                let reads = session.access.driver().waits_for_input().ok().flatten();
                if reads == Some(false) && (silent || !late) {
                    return Progress::Wait("the program does not read its terminal, and nothing was sent");
                }
                return self.begin(session);
            }
            _ => {}
        }
        drop(look);
        self.begin(session)
    }

    /// Spells the text for a program that is ready, unless something is in its way.
    fn begin(&mut self, session: &mut LiveSession) -> Progress {
        if let Some(why) = self.refusal(&session.access.look()) {
            return over(Outcome::Blocked, why);
        }
        let look = session.access.look();
        // A draft would be submitted along with the text.
        if let Some(draft) = look.detector().and_then(|d| d.draft(look.term())) {
            let can_clear = look.detector().is_some_and(|d| !d.rules().clear().is_empty());
            if self.clear && can_clear {
                return Progress::Next(CLEAR);
            }
            let brief: String = draft.chars().take(60).collect();
            let why = match (self.clear, can_clear) {
                (true, false) => "and the keys that delete it are not known",
                _ => "and not submitted",
            };
            return over(Outcome::Blocked, format!("{brief:?} was typed there {why}; nothing was sent"));
        }
        drop(look);
        self.spell_for(session)
    }

    /// Returns why no program, or not this one, would take the text for a prompt.
    fn refusal(&self, look: &Picture) -> Option<String> {
        if !self.enter || self.raw {
            return None;
        }
        let by_state = look.detector().is_some_and(|d| d.rules().has_field());
        if by_state && self.skeleton.is_empty() {
            return Some("the text is empty, or has no visible character; nothing was sent".to_owned());
        }
        let refusal = look.detector()?.rules().refusal(&self.text)?;
        Some(format!("{refusal}; nothing was sent"))
    }

    /// Spells the text as the modes in force want it.
    fn spell_for(&mut self, session: &mut LiveSession) -> Progress {
        if let Some(why) = self.too_long_a_line(session) {
            return over(Outcome::Blocked, why);
        }
        match spell(self, &session.access.look()) {
            Ok(()) => Progress::Next(Step::Offering),
            Err(why) => over(Outcome::Blocked, why),
        }
    }

    /// Returns why the program could not read the text's longest line.
    fn too_long_a_line(&self, session: &LiveSession) -> Option<String> {
        let longest = self.text.split(['\n', '\r']).map(str::len).max().unwrap_or(0);
        if longest <= LONG_LINE {
            return None;
        }
        let room = session.access.driver().longest_line().ok().flatten().filter(|room| longest > *room)?;
        Some(format!("a line has {longest} bytes, and the program reads lines of at most {room} bytes"))
    }

    /// Offers what is left to the gate. `Ok(false)` when the gate has no room for all of it.
    fn offer(&mut self, session: &mut LiveSession, party: Option<PartyId>) -> Result<bool, Unoffered> {
        let Some(party) = party else { return Err(Unoffered::No("an observer cannot drive".into())) };
        while !self.bytes.is_empty() {
            let piece = self.bytes.slice(..self.bytes.len().min(PIECE));
            match session.access.driver().input_or_claim(party, piece.clone()) {
                Ok(Ok(())) => self.bytes = self.bytes.slice(piece.len()..),
                Ok(Err(Refused::Full { .. })) => return Ok(false),
                Ok(Err(e @ Refused::Stick(StickError::Held { .. }))) => {
                    return Err(Unoffered::Held(e.to_string()));
                }
                Ok(Err(e)) => return Err(Unoffered::No(e.to_string())),
                Err(e) => return Err(Unoffered::No(e.to_string())),
            }
        }
        Ok(true)
    }

    /// Offers the text. If the client of the prompt before still holds the stick, begins again once
    /// it has gone: the program may be at work by then.
    fn await_room(&mut self, session: &mut LiveSession, party: Option<PartyId>, now: Time) -> Progress {
        let whole = self.bytes.len();
        match self.offer(session, party) {
            Err(Unoffered::Held(why)) if self.bytes.len() == whole => {
                let since = *self.refused.get_or_insert(now);
                let patience = if self.queue { MAX_LIMIT } else { HANDOVER };
                if now >= since + patience {
                    return Progress::Denied(why);
                }
                self.step = Step::Ready;
                Progress::Wait("another client drives")
            }
            Ok(false) => Progress::Wait("the program takes no input"),
            Ok(true) if self.enter => Progress::Next(Step::Drawn),
            // What the program has not read when the client goes would be dropped.
            Ok(true) if session.access.driver().undelivered().is_ok_and(|n| n > 0) => {
                Progress::Wait("the program does not read")
            }
            Ok(true) => over(Outcome::Pasted, "nothing more was asked for"),
            Err(Unoffered::Held(why) | Unoffered::No(why)) => Progress::Denied(why),
        }
    }

    /// Waits until the end of the text is on the screen, and presses Enter.
    fn await_drawing(&mut self, session: &mut LiveSession, party: Option<PartyId>, now: Time) -> Progress {
        let look = session.access.look();
        if !self.is_drawn(&look, now) {
            return Progress::Wait("the end of the text has not come on the screen; Enter was not sent");
        }
        let modes = look.term().modes();
        (self.answered, self.output) = (look.detector().map_or(0, |d| d.answered()), look.offset());
        drop(look);
        self.entered = session.clock.now().wall;
        self.bytes = keys::encode(KeyPress::new(Key::Enter, Mods::NONE), &modes).into();
        match self.offer(session, party) {
            Ok(true) => Progress::Next(Step::Taken),
            Ok(false) => over(Outcome::Stalled, "no room for the Enter key, which was not sent"),
            Err(Unoffered::Held(why) | Unoffered::No(why)) => Progress::Denied(why),
        }
    }

    /// Waits until something shows that Enter was taken.
    fn await_taking(&self, look: &Picture, now: Time) -> Progress {
        match taken(look, self, now) {
            Some(why) => over(Outcome::Submitted, why),
            None => Progress::Wait("Enter was sent once, and nothing shows that it was taken"),
        }
    }

    /// Returns whether the end of the text is on the screen and stands still.
    fn is_drawn(&mut self, look: &Picture, now: Time) -> bool {
        let shown = match (&self.field_before, field_of(look)) {
            (Some(before), Some(field)) => self.is_in(&field, before),
            _ => self.tail.is_empty() || count(&page_of(look), &self.tail) > self.shown_before,
        };
        let shown = shown || (!self.ended_before && ends_in_last_line(look, self));
        if !shown {
            self.stands_since = None;
            return false;
        }
        // A spinner elsewhere must not hold it up: the page may change as long as the text stays.
        let since = *self.stands_since.get_or_insert(now);
        now >= since + SETTLED
    }

    /// Returns whether the end of the text stands in the input field, and did not before.
    fn is_in(&self, field: &Field, before: &Field) -> bool {
        let shown = skeleton(&field.text);
        if field.placeholders > before.placeholders {
            return true;
        }
        match self.skeleton.is_empty() {
            // Nothing of it may be seen at all.
            true => true,
            false => field != before && shown.ends_with(ending(&self.skeleton)),
        }
    }
}

fn pasted(outcome: Outcome, evidence: String, look: &Picture) -> Pasted {
    let cursor = look.term().cursor();
    Pasted {
        outcome,
        evidence,
        seq: Some(look.offset().0),
        entered: None,
        state: look.detector().map(|d| judged(d.judgement())),
        row: look.term().row(cursor.row).map(|line| line.text()),
    }
}

/// Whether a state comes from the program's activity alone.
fn is_guessed(judgement: &Judgement) -> bool {
    judgement.evidence == Evidence::Quiet
}

/// Whether the end of the text stands no longer in the row of the cursor.
fn has_left_cursor(look: &Picture, paste: &Paste) -> bool {
    let term = look.term();
    let row = term.row(term.cursor().row).map(|line| squeezed(&line.text())).unwrap_or_default();
    !paste.tail.is_empty() && !row.contains(&paste.tail)
}

/// Whether something was typed that is not in the program's input field yet.
fn is_typed_unseen(look: &Picture) -> bool {
    look.detector().is_some_and(|d| d.has_typed() && d.draft(look.term()).is_none())
}

/// Whether the program will ask for bracketed paste and has not yet.
fn wants_brackets(look: &Picture) -> bool {
    look.detector().is_some_and(|d| d.rules().brackets()) && !look.term().modes().bracketed_paste()
}

/// Encodes the text for the modes in force, and notes what is in the input field before it comes.
fn spell(paste: &mut Paste, look: &Picture) -> Result<(), &'static str> {
    let modes = look.term().modes();
    if !paste.raw && paste.text.contains(['\n', '\r']) && !modes.bracketed_paste() {
        return Err("the program has not asked for bracketed paste, so every line end would submit: \
                    paste one line, or paste it raw");
    }
    let mut text = paste.text.clone();
    // Behind a blank, the program offers no completions for Enter to choose.
    if paste.enter && !paste.raw && look.detector().is_some_and(|d| d.rules().completes(&text)) {
        text.push(' ');
    }
    paste.bytes = if paste.raw { keys::text(&text, &modes) } else { keys::paste(&text, &modes) }.into();
    paste.shown_before = count(&page_of(look), &paste.tail);
    paste.field_before = field_of(look);
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
fn taken(look: &Picture, paste: &Paste, now: Time) -> Option<&'static str> {
    let detector = look.detector()?;
    if detector.journal_prompt().is_some_and(|(text, at)| at >= paste.entered && paste.is_prompt(text)) {
        return Some("the program's journal has it");
    }
    let field = field_of(look);
    // What still stands in the input field was not taken, whatever the program does.
    if paste.field_before.is_some() && detector.has_in_field(look.term(), &paste.skeleton) {
        return None;
    }
    if detector.answered() > paste.answered {
        return Some("it was answered already");
    }
    if detector.has_taken() {
        return Some("its turn has begun");
    }
    let judgement = detector.judgement();
    match judgement.state {
        // Drawing the text is activity, too.
        AgentState::Working if is_guessed(judgement) && !has_left_cursor(look, paste) => None,
        AgentState::Working if judgement.evidence != Evidence::Input => Some("the program is at work"),
        AgentState::Blocked => Some("the program asks back"),
        // A command of the program's own, for instance, which is not in its journal.
        _ if paste.field_before.is_some() => {
            let gone = now >= paste.since + ELSEWHERE && look.offset() > paste.output;
            (gone && field.is_some_and(|field| field.is_empty()))
                .then_some("the text has left the input field")
        }
        _ => {
            // Without rules for the program, the text must have left the cursor's row, and output
            // must have come.
            let unknown = judgement.state == AgentState::Unknown || is_guessed(judgement);
            (unknown && has_left_cursor(look, paste) && look.offset() > paste.output)
                .then_some("the text has left the line of the cursor")
        }
    }
}

impl Paste {
    /// Whether a prompt of the journal is this one. Programs change blanks, and may put what a
    /// prompt refers to behind it.
    fn is_prompt(&self, text: &str) -> bool {
        let text = skeleton(text);
        text == self.skeleton || (!self.skeleton.is_empty() && text.starts_with(&self.skeleton))
    }
}
