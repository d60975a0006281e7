//! `ANSWER`: answers the question that a blocked program shows, and confirms that it was taken.
//!
//! Only the question that stood there when the request came is answered. Some programs ignore keys
//! for a moment after a dialog appears, so a dialog is given time to stand. Keys are sent once, and
//! again only if the program has not written to the dialog since: then it has not taken them.

use std::time::Duration;

use tapdeck_core::turns::{AgentState, Choice, Dialog, Meaning, Reply as Act};
use tapdeck_core::{PartyId, Refused, Time};
use tapdeck_host::Picture;
use tapdeck_proto::bus::{self, AnswerOutcome, Answered as Outcome, Denied, Question, Reply};
use tapdeck_term::Modes;
use tapdeck_term::keys::{self, Key, KeyPress, Mods};

use super::bus::{Answer, Answered};
use super::client::{Client, Id, Pending};
use super::session::LiveSession;
use super::turns::judged;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(15);
/// How long a dialog stands before it is answered. Claude Code ignores keys for 200 ms.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a dialog must be gone: in between, it may be half drawn.
const GONE: Duration = Duration::from_millis(80);
/// How long a program that has let go of a dialog may take to be seen at work or at rest. Until
/// then, its state is still that of the dialog.
const JUDGED: Duration = Duration::from_millis(600);
/// How long a moved mark stands before Enter is pressed at an option that a digit did not choose.
const MOVED: Duration = Duration::from_millis(500);
/// How long keys may take before they count as ignored. Each later attempt waits for twice as long.
/// A busy machine may only be slow, and would take the keys of a second attempt for the next
/// question.
const IGNORED: Duration = Duration::from_millis(1200);
/// How often the same keys are sent, and how many steps a mark is moved in.
const ATTEMPTS: u32 = 4;
const STEPS: u32 = 12;
/// How long it may take in all, unless the client says.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest time that a client can ask for.
const MAX_LIMIT: Duration = Duration::from_secs(600);

/// Keys that were sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    keys: Keys,
    at: Time,
    /// How often the same keys were sent.
    attempts: u32,
    /// The option that was marked then.
    marked: Option<usize>,
    /// The last byte that had written to the dialog then.
    written: u64,
}

/// What is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// The digit of the option.
    Digit(char),
    /// The arrow towards the option, so many times.
    Arrows(Key, usize),
    Enter,
    Escape,
    /// A line of text and Enter.
    Line,
    /// The text for a field.
    Text,
}

/// An answer at work.
pub(crate) struct AnswerWork {
    /// The question that is answered, and no other.
    dialog: Dialog,
    act: Act,
    began: Time,
    /// When the dialog has stood for long enough.
    ready: Time,
    limit: Duration,
    sent: Option<Sent>,
    steps: u32,
    /// Since when the dialog has been gone, and since when its mark has been where it is.
    gone: Option<Time>,
    moved: Option<Time>,
}

impl AnswerWork {
    pub(crate) fn next_look(&self, now: Time) -> Time {
        (self.began + self.limit).min(now + LOOK)
    }
}

/// How far an answer has come.
enum Progress {
    /// These keys are to be pressed.
    Press(Keys),
    /// Not yet; when the time is over, for this reason.
    Wait(&'static str),
    Over(AnswerOutcome, String),
}

fn over(outcome: AnswerOutcome, why: impl Into<String>) -> Progress {
    Progress::Over(outcome, why.into())
}

impl LiveSession {
    /// Answers `ANSWER`, at once or later.
    pub(super) fn answer(
        &mut self,
        client: &mut Client,
        asked: &bus::Answer,
        id: Option<Id>,
        now: Time,
    ) -> Answered {
        if let Some(ended) = self.ended() {
            return Err(Denied::because(ended));
        }
        if client.bus().is_some_and(|bus| bus.answer.is_some()) {
            return Err(Denied::because("an answer of yours is still on its way"));
        }
        if self.driving_party(client).is_none() {
            return Err(Denied::because("an observer cannot drive"));
        }
        let work = match AnswerWork::new(asked, &self.access.look(), now) {
            Ok(work) => work,
            Err(outcome) => return Ok((*outcome).into()),
        };
        if let Some(bus) = client.bus() {
            bus.answer = Some(Pending { id, work: Box::new(work) });
        }
        self.drive_answer(client, now);
        Ok(Answer::Later)
    }

    /// Takes a client's answer further, and replies when it is over.
    pub(super) fn drive_answer(&mut self, client: &mut Client, now: Time) {
        let Some(mut pending) = client.bus().and_then(|bus| bus.answer.take()) else { return };
        match pending.work.advance(self, client.party, now) {
            Some(reply) => client.conn.reply(pending.id.as_deref(), &reply),
            None => {
                if let Some(bus) = client.bus() {
                    bus.answer = Some(pending);
                }
            }
        }
    }
}

impl AnswerWork {
    /// Judges the question that stands there. The error is the reply if nothing can be sent.
    fn new(asked: &bus::Answer, look: &Picture, now: Time) -> Result<Self, Box<Outcome>> {
        let detector = look.detector();
        let refused = |outcome, evidence: String, dialog: Option<&Dialog>| {
            let question = dialog.map(question_of);
            let state = detector.map(|d| judged(d.judgement()));
            Box::new(Outcome { outcome, evidence, question, sent: None, next: None, state })
        };
        let Some(dialog) = detector.and_then(|d| d.dialog(look.term())) else {
            let why = match detector.map(|d| d.judgement()) {
                Some(j) if j.state == AgentState::Blocked => {
                    format!(
                        "no question that can be answered is on the screen; blocked because of {}",
                        j.rule
                    )
                }
                Some(j) => format!("the program is {}, and asks nothing", j.state),
                None => "this session does not look for turns and states".to_owned(),
            };
            return Err(refused(AnswerOutcome::NothingAsked, why, None));
        };
        let choice = match (&asked.choice, &asked.text) {
            (Some(choice), _) => Choice::named(choice),
            (None, text) => Choice::Text(text.clone().unwrap_or_default()),
        };
        let act = match dialog.choose(&choice) {
            Ok(act) => act,
            Err(why) => {
                return Err(refused(AnswerOutcome::NoSuchChoice, why.to_string(), Some(&dialog)));
            }
        };
        let since = detector.map_or(now, |d| d.judgement().since.mono);
        let limit = asked.wait_ms.map_or(LIMIT, Duration::from_millis).min(MAX_LIMIT);
        let (ready, sent) = (since + SETTLE, None);
        Ok(Self { dialog, act, began: now, ready, limit, sent, steps: 0, gone: None, moved: None })
    }

    /// Takes the answer as far as it goes now. Returns the reply once it is over.
    fn advance(&mut self, session: &mut LiveSession, party: Option<PartyId>, now: Time) -> Option<Reply> {
        let late = now >= self.began + self.limit;
        let progress = if session.exit.is_some() {
            let outcome = if self.sent.is_some() { AnswerOutcome::Answered } else { AnswerOutcome::Stalled };
            over(outcome, "the program has ended")
        } else {
            self.judge(&session.access.look(), now)
        };
        let (outcome, why) = match progress {
            Progress::Wait(_) if !late => return None,
            Progress::Wait(why) if self.gone.is_some() && self.sent.is_some() => {
                (AnswerOutcome::Answered, why.to_owned())
            }
            Progress::Wait(why) => (AnswerOutcome::Stalled, why.to_owned()),
            Progress::Press(_) if late => {
                (AnswerOutcome::Stalled, "the time was over before all keys were sent".to_owned())
            }
            Progress::Press(keys) => match self.press(session, party, keys, now) {
                Ok(()) => return None,
                Err(why) => return Some(Denied::because(why).into()),
            },
            Progress::Over(outcome, why) => (outcome, why),
        };
        Some(self.outcome(outcome, why, &session.access.look()).into())
    }

    /// Judges what became of the dialog, and what is to be pressed.
    fn judge(&mut self, look: &Picture, now: Time) -> Progress {
        let Some(dialog) = self.dialog.again(look.term()) else { return self.judge_gone(look, now) };
        self.gone = None;
        let Some(sent) = self.sent else {
            if now < self.ready {
                return Progress::Wait("the dialog has not stood for long enough, and nothing was sent");
            }
            return self.first_keys(&dialog);
        };
        if dialog.marked() == sent.marked {
            self.moved = None;
        } else {
            let since = *self.moved.get_or_insert(now);
            if let Some(keys) = self.keys_after_move(&dialog, sent, now.since(since)) {
                return Progress::Press(keys);
            }
        }
        if let Some(over) = self.switched(&dialog) {
            return over;
        }
        // What has written to the dialog may be its reaction, which must not be taken twice.
        if let (Keys::Text, Act::Field(at, text)) = (sent.keys, &self.act) {
            return match dialog.shows(*at, text) && now >= sent.at + GONE {
                // Text checks the box of its field. Enter would uncheck it.
                true if dialog.options.get(*at).is_some_and(|option| option.checked.is_some()) => over(
                    AnswerOutcome::Answered,
                    format!("the text stands at option {}; more can be chosen", dialog.options[*at].number),
                ),
                true => Progress::Press(Keys::Enter),
                false => {
                    Progress::Wait("the text was typed, and has not come on the screen; Enter was not sent")
                }
            };
        }
        let untouched = dialog.written(look.term()) <= sent.written && dialog.marked() == sent.marked;
        let pause = IGNORED * 2_u32.pow(sent.attempts.saturating_sub(1));
        let again = untouched && sent.keys != Keys::Line && sent.attempts < ATTEMPTS;
        if again && now >= sent.at + pause {
            return Progress::Press(sent.keys);
        }
        Progress::Wait("the keys were sent, and the question still stands")
    }

    /// Whether the check box that was to be switched is switched, and the dialog still stands.
    fn switched(&self, dialog: &Dialog) -> Option<Progress> {
        let Act::Option(at) = self.act else { return None };
        let (was, is) = (self.dialog.options.get(at)?, dialog.options.get(at)?);
        if was.checked? == is.checked? {
            return None;
        }
        let state = if is.checked? { "checked" } else { "not checked any more" };
        let why = format!("option {} is {state}; more can be chosen", is.number);
        Some(over(AnswerOutcome::Answered, why))
    }

    /// Judges a screen without the dialog.
    fn judge_gone(&mut self, look: &Picture, now: Time) -> Progress {
        let gone = *self.gone.get_or_insert(now);
        if now < gone + GONE {
            return Progress::Wait("the question has changed");
        }
        if self.sent.is_none() {
            let why = "the question has gone or changed before it could be answered; nothing was sent";
            return over(AnswerOutcome::Stalled, why);
        }
        let Some(detector) = look.detector() else {
            return over(AnswerOutcome::Answered, "the dialog has gone");
        };
        // A client that waits for the next state must not be given the one of the answered dialog.
        if detector.judgement().state != AgentState::Blocked {
            return over(AnswerOutcome::Answered, "the dialog has gone");
        }
        if now < gone + JUDGED {
            return Progress::Wait("the dialog has gone, and the program is still blocked");
        }
        over(
            AnswerOutcome::Answered,
            match detector.dialog(look.term()) {
                Some(_) => "the dialog has made way for another one",
                None => "the dialog has gone, and the program is blocked by something else",
            },
        )
    }

    fn first_keys(&self, dialog: &Dialog) -> Progress {
        match &self.act {
            Act::Escape => Progress::Press(Keys::Escape),
            Act::Enter => Progress::Press(Keys::Enter),
            Act::Line(_) => Progress::Press(Keys::Line),
            Act::Field(at, _) if dialog.marked() == Some(*at) => Progress::Press(Keys::Text),
            Act::Option(at) | Act::Field(at, _) => Progress::Press(match dialog.digit(*at) {
                Some(digit) => Keys::Digit(digit),
                None => towards(dialog.marked(), *at),
            }),
        }
    }

    /// Returns what to press next at a menu whose mark has moved.
    fn keys_after_move(&self, dialog: &Dialog, sent: Sent, stood: Duration) -> Option<Keys> {
        let (wanted, is_field) = match self.act {
            Act::Option(at) => (at, false),
            Act::Field(at, _) => (at, true),
            _ => return None,
        };
        match (sent.keys, dialog.marked() == Some(wanted)) {
            (Keys::Arrows(..) | Keys::Digit(_), true) if is_field => (stood >= GONE).then_some(Keys::Text),
            (Keys::Arrows(..), true) => Some(Keys::Enter),
            // A digit that only moves the mark wants an Enter. One that chooses may show the mark
            // on its way out.
            (Keys::Digit(_), true) if stood >= MOVED => Some(Keys::Enter),
            (Keys::Arrows(..), false) if stood >= GONE => Some(towards(dialog.marked(), wanted)),
            _ => None,
        }
    }

    /// Offers keys to the gate.
    fn press(
        &mut self,
        session: &mut LiveSession,
        party: Option<PartyId>,
        pressed: Keys,
        now: Time,
    ) -> Result<(), String> {
        let Some(party) = party else { return Err("an observer cannot drive".into()) };
        if self.steps == STEPS {
            // The mark runs in circles. The time limit ends the request.
            return Ok(());
        }
        let look = session.access.look();
        let Some(dialog) = self.dialog.again(look.term()) else { return Ok(()) };
        let bytes = self.encode(pressed, &look.term().modes());
        let (marked, written) = (dialog.marked(), dialog.written(look.term()));
        drop(look);
        match session.access.driver().input_or_claim(party, bytes.into()) {
            Ok(Ok(())) => {}
            Ok(Err(Refused::Full { .. })) => return Ok(()),
            Ok(Err(e)) => return Err(e.to_string()),
            Err(e) => return Err(e.to_string()),
        }
        let attempts = match self.sent {
            Some(sent) if sent.keys == pressed && sent.marked == marked => sent.attempts + 1,
            _ => 1,
        };
        self.steps += 1;
        self.moved = None;
        self.sent = Some(Sent { keys: pressed, at: now, attempts, marked, written });
        Ok(())
    }

    fn encode(&self, pressed: Keys, modes: &Modes) -> Vec<u8> {
        let key = |key: Key| keys::encode(KeyPress::new(key, Mods::NONE), modes);
        match pressed {
            Keys::Digit(digit) => key(Key::Char(digit)),
            Keys::Arrows(arrow, times) => key(arrow).repeat(times),
            Keys::Enter => key(Key::Enter),
            Keys::Escape => key(Key::Escape),
            Keys::Text => {
                let text = if let Act::Field(_, text) = &self.act { text.as_str() } else { "" };
                keys::text(text, modes)
            }
            Keys::Line => {
                let text = if let Act::Line(text) = &self.act { text.as_str() } else { "" };
                let mut bytes = keys::text(text, modes);
                bytes.extend_from_slice(&key(Key::Enter));
                bytes
            }
        }
    }

    /// Returns what was chosen or typed, in words.
    fn said(&self) -> String {
        match &self.act {
            Act::Escape => "Escape".to_owned(),
            Act::Enter => "Enter".to_owned(),
            Act::Line(_) if self.dialog.is_secret() => "(hidden)".to_owned(),
            Act::Line(text) | Act::Field(_, text) => text.clone(),
            Act::Option(at) => {
                let option = self.dialog.options.get(*at);
                option.map_or_else(String::new, |o| format!("{}. {}", o.number, o.label))
            }
        }
    }

    fn outcome(&self, outcome: AnswerOutcome, evidence: String, look: &Picture) -> Outcome {
        let detector = look.detector();
        let attempts = self.sent.map_or(0, |sent| sent.attempts);
        let evidence = match attempts {
            0 | 1 => evidence,
            n => {
                format!("{evidence}; the same keys were sent {n} times, as the program ignored them at first")
            }
        };
        let standing = detector.and_then(|d| d.dialog(look.term()));
        let next = standing.filter(|_| outcome == AnswerOutcome::Answered);
        Outcome {
            outcome,
            evidence,
            // A form of check boxes still stands, with other boxes checked.
            question: Some(question_of(
                &self.dialog.again(look.term()).unwrap_or_else(|| self.dialog.clone()),
            )),
            sent: self.sent.is_some().then(|| self.said()),
            next: next.as_ref().map(question_of),
            state: detector.map(|d| judged(d.judgement())),
        }
    }
}

/// Returns the arrows that lead from the marked option to the wanted one, or Enter if it is marked.
fn towards(marked: Option<usize>, wanted: usize) -> Keys {
    match marked {
        Some(at) if at == wanted => Keys::Enter,
        Some(at) if at > wanted => Keys::Arrows(Key::Up, at - wanted),
        Some(at) => Keys::Arrows(Key::Down, wanted - at),
        None => Keys::Arrows(Key::Down, 1),
    }
}

/// Returns a dialog as data.
pub(super) fn question_of(dialog: &Dialog) -> Question {
    let option = |o: &tapdeck_core::turns::DialogOption| bus::Choice {
        number: o.number,
        label: o.label.clone(),
        marked: o.marked,
        means: match o.meaning() {
            Meaning::Yes => bus::Meaning::Yes,
            Meaning::Always => bus::Meaning::Always,
            Meaning::No => bus::Meaning::No,
            Meaning::Other => bus::Meaning::Other,
        },
        field: o.is_field(),
    };
    Question {
        text: dialog.question.clone(),
        detail: dialog.detail.clone(),
        options: dialog.options.iter().map(option).collect(),
        takes_text: dialog.takes_text(),
        secret: dialog.is_secret(),
    }
}
