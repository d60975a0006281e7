//! A recording that is shown: its place, whether it plays, and how it goes to another place.
//! It goes a long way in steps, so that keys are handled on the way.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tapdeck_core::Offset;
use tapdeck_host::backend::Pace;
use tapdeck_host::{Goal, PlayError, Player, Source};
use tapdeck_tape::export::behind;
use tapdeck_tape::{Instruction, Kind, Moment, Time};
use tapdeck_term::{Settings, Term};

/// The bytes of output in one step.
const STEP: u64 = 512 << 10;
/// A keyframe of the index has neither scrollback nor the places of last writes. It is used
/// only to skip more output than this.
const INDEX_SAVES: u64 = 256 << 20;
/// The most memory for scrollback.
const SCROLLBACK_BYTES: usize = 64 << 20;
/// While it plays, the time is drawn anew this often.
const TICK: Duration = Duration::from_millis(250);
/// How often a recording in progress is looked at for more.
const FOLLOW: Duration = Duration::from_millis(250);
const SPEEDS: [f64; 11] = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0];

/// What a user is told when there is no marker to jump to.
pub const NO_MARKER: &str = "there is no marker in that direction";
/// The most jumps that wait for moments: more come from a key that is held down.
const MAX_OWED: usize = 16;
/// While it plays, a moment passed less than this ago is skipped on the way back: otherwise no key
/// could get before it.
const JUST_PASSED: Duration = Duration::from_secs(1);

/// What a jump stops at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A marker or a snapshot.
    Moment(Moment),
    /// An instruction.
    Instruction(Instruction),
}

/// A recording with a place in it.
pub struct Tape {
    player: Player,
    pace: Pace,
    playing: bool,
    over: bool,
    /// When the next event is due, and since when the present place is shown.
    due: Time,
    since: Time,
    /// The place that it goes to.
    way: Option<Goal>,
    moments: Vec<Moment>,
    all_moments: bool,
    /// The moments are wanted: the whole recording is read for them.
    wants_moments: bool,
    /// Jumps to moments that wait until the moments are known, in the order of the keys: forth or
    /// back.
    owed: VecDeque<bool>,
    /// The label of the moment jumped to last, or that there was none, until it is told.
    hopped: Option<Option<Stop>>,
    instructions: Vec<Instruction>,
    /// Jumps stop at instructions, too.
    stops_at_instructions: bool,
    shown: Time,
    /// It waits at the end for more, and when it last looked for that.
    following: Option<Time>,
}

impl Tape {
    /// Opens a recording and stands at its start.
    ///
    /// # Errors
    /// When it cannot be opened or played.
    pub fn open(source: Source, scrollback: usize) -> Result<Self, PlayError> {
        let settings =
            Settings::default().scrollback(scrollback).scrollback_bytes(SCROLLBACK_BYTES).replies(false);
        let mut player = Player::of(source, settings)?;
        player.sparing_index(INDEX_SAVES);
        Ok(Self::of(player))
    }

    /// A recording that a player has opened, at its start.
    pub fn of(player: Player) -> Self {
        let idle_limit = player.idle_limit();
        let instructions = player.source().instructions().unwrap_or_default();
        Self {
            player,
            pace: Pace { speed: 1.0, idle_limit },
            playing: false,
            over: false,
            due: Time::ZERO,
            since: Time::ZERO,
            way: None,
            moments: Vec::new(),
            all_moments: false,
            wants_moments: false,
            owed: VecDeque::new(),
            hopped: None,
            instructions,
            stops_at_instructions: false,
            shown: Time::ZERO,
            following: None,
        }
    }

    /// Sets how fast it plays, and how long its pauses are at most, where that is not left to the
    /// recording.
    pub fn set_pace(&mut self, speed: f64, idle_limit: Option<Duration>) {
        self.pace.speed = speed;
        self.pace.idle_limit = idle_limit.or(self.pace.idle_limit);
    }

    /// The player underneath.
    pub fn player(&mut self) -> &mut Player {
        &mut self.player
    }

    /// Begins to look through the whole recording for its length and its moments. Signals must have
    /// been set up.
    pub fn look_ahead(&mut self) {
        self.player.look_ahead();
        self.wants_moments = true;
        self.learn();
    }

    /// The terminal at this place.
    pub fn term(&self) -> &Term {
        self.player.term()
    }

    /// The recording.
    pub fn source(&self) -> &Source {
        self.player.source()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.player.source().path()
    }

    /// The place in the output.
    pub fn offset(&self) -> Offset {
        self.player.offset()
    }

    /// Snapshots and markers, in order of their anchors, as far as they are known.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Whether all moments are known.
    pub fn knows_moments(&self) -> bool {
        self.all_moments
    }

    /// The instructions about it.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Takes an instruction that was written, changed or deleted.
    pub fn instructed(&mut self, instruction: Instruction) {
        instruction.apply_to(&mut self.instructions);
    }

    /// Has [`Tape::hop`] stop at instructions, too.
    pub fn stop_at_instructions(&mut self) {
        self.stops_at_instructions = true;
    }

    /// Whether it plays.
    pub fn plays(&self) -> bool {
        self.playing
    }

    /// The speed.
    pub fn speed(&self) -> f64 {
        self.pace.speed
    }

    /// The progress on the way to another place: the place in the output, and the goal.
    pub fn is_on_its_way(&self) -> bool {
        self.way.is_some()
    }

    /// Time at this place, between events too, while it plays.
    pub fn at(&mut self, now: Time) -> Time {
        let at = self.player.at();
        if !self.playing || self.way.is_some() {
            return at;
        }
        let passed = Time::from(now.since(self.since)).scaled(self.pace.speed);
        let next = self.player.peek().ok().flatten().map_or(at, |(next, _)| next);
        (at + passed.since_start()).min(next).max(at)
    }

    /// The end, as far as it is known.
    pub fn end(&mut self) -> Time {
        self.player.end()
    }

    /// Whether it is at the end.
    pub fn is_at_end(&mut self) -> bool {
        self.way.is_none() && self.player.peek().is_ok_and(|next| next.is_none())
    }

    /// The number of damaged places that were skipped.
    pub fn damages(&self) -> u64 {
        self.player.damages()
    }

    fn learn(&mut self) -> bool {
        self.wants_moments && self.learn_within(Duration::ZERO)
    }

    /// Waits up to `limit` for the moments. Returns whether they became known.
    pub fn learn_within(&mut self, limit: Duration) -> bool {
        if self.all_moments {
            return false;
        }
        let Some(found) = self.player.moments(Some(limit)) else { return false };
        let mut moments = found.to_vec();
        moments.extend(self.player.source().moments_beside(&moments));
        moments.sort_by_key(|m| m.anchor);
        (self.moments, self.all_moments) = (moments, true);
        true
    }

    /// Waits until the moments are known.
    pub fn wait_for_moments(&mut self) {
        self.wants_moments = true;
        // The next call has them.
        let _ = self.player.moments(None);
        self.learn();
    }

    /// Plays the events that are due. Returns whether something changed.
    ///
    /// # Errors
    /// When the recording cannot be read on.
    pub fn tick(&mut self, now: Time) -> Result<bool, PlayError> {
        self.tick_with(now, |_| {})
    }

    /// Plays the events that are due, and hands over each of them. Those that are passed on the way
    /// to another place are not handed over.
    ///
    /// # Errors
    /// When the recording cannot be read on.
    pub fn tick_with(&mut self, now: Time, mut played: impl FnMut(&Kind)) -> Result<bool, PlayError> {
        let mut changed = self.learn();
        if self.way.is_none()
            && self.all_moments
            && let Some(forth) = self.owed.pop_front()
        {
            self.hop_now(forth, now)?;
            changed = true;
        }
        if let Some(goal) = self.way {
            changed = true;
            if self.player.approach(goal, STEP)? {
                self.way = None;
                self.reschedule(now)?;
            }
            return Ok(changed);
        }
        if !self.playing {
            return Ok(self.look_for_more(now)? || changed);
        }
        let stop = self.player.offset() + STEP;
        while self.due <= now && self.player.offset() < stop {
            let Some(event) = self.player.advance()? else {
                (self.playing, self.over) = (false, true);
                return Ok(true);
            };
            played(&event);
            changed = true;
            self.schedule(now)?;
        }
        if now.since(self.shown) >= TICK {
            self.shown = now;
            changed = true;
        }
        Ok(changed)
    }

    /// When [`Tape::tick`] has something to do again.
    pub fn due(&mut self, now: Time) -> Option<Time> {
        if self.way.is_some() {
            return Some(now);
        }
        if self.all_moments && !self.owed.is_empty() {
            return Some(now);
        }
        let learning = (self.wants_moments && !self.all_moments).then_some(now + TICK);
        let playing = self.playing.then(|| self.due.min(self.shown + TICK));
        let following = self.following.filter(|_| !self.playing).map(|looked| looked + FOLLOW);
        [learning, playing, following].into_iter().flatten().min()
    }

    /// Goes on when something was added to a recording that is followed.
    fn look_for_more(&mut self, now: Time) -> Result<bool, PlayError> {
        if self.following.is_none_or(|looked| now < looked + FOLLOW) {
            return Ok(false);
        }
        self.following = Some(now);
        if !self.player.look_for_more()? {
            let over = self.has_ended();
            if over {
                self.following = None;
            }
            return Ok(over);
        }
        self.way = Some(Goal::Byte(Offset::MAX));
        Ok(true)
    }

    /// Waits at the end for what is added to a recording in progress, and shows it. With `at_once`
    /// it goes to the end now, otherwise it plays up to there. Everything that moves in the
    /// recording stops it.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn follow(&mut self, at_once: bool, now: Time) -> Result<(), PlayError> {
        if at_once {
            self.pause();
            self.go(Goal::Byte(Offset::MAX), now)?;
        } else if !self.playing && !self.is_at_end() {
            self.play(now)?;
        }
        self.following = Some(now);
        Ok(())
    }

    /// Whether it is at the end of a recording that tells how its program ended, so that nothing
    /// will be added to it.
    pub fn has_ended(&mut self) -> bool {
        self.is_at_end() && self.player.has_exited() && !self.player.has_grown()
    }

    /// Whether it waits at the end for more, or plays up to there to do so.
    pub fn is_following(&self) -> bool {
        self.following.is_some()
    }

    /// Stops waiting for more.
    pub fn unfollow(&mut self) {
        self.following = None;
    }

    /// Whether the file has grown since it was read to its end.
    pub fn has_grown(&self) -> bool {
        self.player.has_grown()
    }

    fn schedule(&mut self, now: Time) -> Result<(), PlayError> {
        let at = self.player.at();
        if let Some((next, _)) = self.player.peek()? {
            // Counted from the time at which the last event was due, so that small delays do not
            // add up.
            let from = if self.due + Duration::from_secs(1) > now { self.due.min(now) } else { now };
            let gap = next.since(at);
            self.due = from + if self.player.is_after_pause() { Duration::ZERO } else { self.pace.gap(gap) };
            self.since = from;
        } else {
            self.due = now;
        }
        Ok(())
    }

    fn reschedule(&mut self, now: Time) -> Result<(), PlayError> {
        (self.due, self.over) = (now, false);
        self.schedule(now)
    }

    /// Plays or pauses; at the end it plays from the start.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn toggle(&mut self, now: Time) -> Result<(), PlayError> {
        if self.is_at_end() && !self.playing {
            self.player.rewind()?;
        }
        if self.playing {
            // Stand where the clock says, not at the last event.
            let at = self.at(now);
            self.player.seek(Goal::Time(at))?;
        }
        self.playing = !self.playing;
        self.following = None;
        self.reschedule(now)
    }

    /// Plays from here.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn play(&mut self, now: Time) -> Result<(), PlayError> {
        self.playing = true;
        self.reschedule(now)
    }

    /// Whether it has played to its end, and has not been moved or paused since.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Stops at the present place, even on the way to another.
    pub fn pause(&mut self) {
        (self.playing, self.over, self.way, self.following) = (false, false, None, None);
        self.owed.clear();
    }

    /// Plays from the start.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn restart(&mut self, now: Time) -> Result<(), PlayError> {
        self.player.rewind()?;
        (self.playing, self.way, self.following) = (true, None, None);
        self.reschedule(now)
    }

    /// Goes to the next marker or snapshot in time, or to the one before. If they are not known
    /// yet, [`Tape::tick`] does it as soon as they are. [`Tape::take_hop`] tells where it went.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn hop(&mut self, forth: bool, now: Time) -> Result<(), PlayError> {
        if self.owed.len() < MAX_OWED {
            self.owed.push_back(forth);
        }
        self.wants_moments = true;
        self.learn();
        while self.all_moments && self.way.is_none() {
            let Some(forth) = self.owed.pop_front() else { break };
            self.hop_now(forth, now)?;
        }
        Ok(())
    }

    /// The moment that [`Tape::hop`] went to, if it did and this was not told yet; none within when
    /// there was no moment to go to.
    pub fn take_hop(&mut self) -> Option<Option<Stop>> {
        self.hopped.take()
    }

    fn hop_now(&mut self, forth: bool, now: Time) -> Result<(), PlayError> {
        let (at, offset) = (self.at(now), self.player.offset().0);
        let moment = if forth {
            self.moments.iter().find(|m| (m.anchor, m.time) > (offset, at))
        } else {
            let since = if self.playing { JUST_PASSED } else { Duration::ZERO };
            let mut before = self.moments.iter().rev();
            before.find(|m| (m.anchor, m.time) < (offset, at) && m.time + since <= at)
        };
        let anchor = moment.map(|m| m.anchor);
        let (goal, stop) = match (moment, self.instruction_before(forth, offset, anchor)) {
            (_, Some(instruction)) => {
                let goal = Goal::Byte(Offset(behind(instruction)));
                (Some(goal), Some(Stop::Instruction(instruction.clone())))
            }
            (moment, None) => (moment.map(Goal::from), moment.cloned().map(Stop::Moment)),
        };
        self.hopped = Some(stop);
        goal.map_or(Ok(()), |goal| self.begin(goal, now))
    }

    /// The instruction that comes next in a direction, if that is before this anchor.
    fn instruction_before(&self, forth: bool, offset: u64, anchor: Option<u64>) -> Option<&Instruction> {
        let all = self.instructions.iter().filter(|_| self.stops_at_instructions);
        if forth {
            let ahead = all.filter(|i| behind(i) > offset && anchor.is_none_or(|at| behind(i) < at));
            ahead.min_by_key(|i| i.anchor_byte)
        } else {
            let passed = all.filter(|i| behind(i) < offset && anchor.is_none_or(|at| behind(i) > at));
            passed.max_by_key(|i| i.anchor_byte)
        }
    }

    /// Goes to a place.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn go(&mut self, goal: Goal, now: Time) -> Result<(), PlayError> {
        // A jump elsewhere gives up waiting for moments.
        self.owed.clear();
        self.begin(goal, now)
    }

    fn begin(&mut self, goal: Goal, now: Time) -> Result<(), PlayError> {
        self.player.begin_seek(goal)?;
        (self.way, self.over, self.following) = (Some(goal), false, None);
        // A short way is done at once.
        if self.player.approach(goal, STEP)? {
            self.way = None;
            self.reschedule(now)?;
        }
        Ok(())
    }

    /// Goes to a share of the whole.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn go_to_share(&mut self, share: f64, now: Time) -> Result<(), PlayError> {
        let to = self.player.known_end().scaled(share.clamp(0.0, 1.0));
        // The end includes the events at the very last moment.
        self.go(if share >= 1.0 { Goal::Byte(Offset::MAX) } else { Goal::Time(to) }, now)
    }

    /// Goes forward, or back, by a time.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn skip(&mut self, by_ns: i64, now: Time) -> Result<(), PlayError> {
        let to = self.at(now).shifted(by_ns);
        let to = to.min(self.player.end());
        self.go(Goal::Time(to), now)
    }

    /// Pauses, and goes on by one piece of output.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn step_forth(&mut self) -> Result<(), PlayError> {
        self.pause();
        while let Some(event) = self.player.advance()? {
            if matches!(event, Kind::Output(_)) {
                break;
            }
        }
        Ok(())
    }

    /// Pauses, and goes back by one piece of output.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn step_back(&mut self) -> Result<(), PlayError> {
        self.pause();
        self.player.step_back()
    }

    /// Plays faster or slower.
    pub fn change_speed(&mut self, faster: bool, now: Time) {
        let at = self.at(now);
        let here = SPEEDS.iter().position(|s| *s >= self.pace.speed).unwrap_or(4);
        let next = if faster { (here + 1).min(SPEEDS.len() - 1) } else { here.saturating_sub(1) };
        self.pace.speed = SPEEDS[next];
        if self.playing {
            // The rest of the pause passes at the new speed.
            if self.player.seek(Goal::Time(at)).and_then(|()| self.reschedule(now)).is_err() {
                self.playing = false;
            }
        }
    }
}
