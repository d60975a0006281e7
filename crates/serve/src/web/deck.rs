//! Plays a recording for one browser: it has the player, keeps its pace, and sends frames as fast
//! as they are drawn. It ends when the page is gone.
//!
//! It reads commands and says messages line by line at a socket, so that it can be a process of its
//! own, in a sandbox: a recording may come from a stranger.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_host::{Clock, Goal, PlayError, Player};
use tapdeck_proto::bus::Denied;
use tapdeck_proto::page::{
    Command, Failed, PageMessage, PlayMoments, PlayState, PlayWelcome, PlayedMoment, Seek, Speed,
};
use tapdeck_tape::{Kind, Moment, MomentKind};
use tapdeck_term::{Settings, Theme};

use crate::paint::{self, Drawn, HOLD};

const MS: Duration = Duration::from_millis(1);
/// The least time between two frames, and between two words about the place.
const FRAME: Duration = Duration::from_millis(16);
const STATE: Duration = Duration::from_millis(100);
/// Output that is passed between two looks at what is wanted.
const PIECE: u64 = 2 << 20;
/// Frames that are sent before one is drawn.
const WINDOW: u64 = 2;
/// How long nothing may happen before it is looked again.
const LOOK: Duration = Duration::from_millis(200);
/// Rows above the screen.
const SCROLLBACK: usize = 10_000;
/// The most moments that are told.
const MOMENTS: usize = 2000;

/// The longest command.
const COMMAND: u64 = 64 * 1024;
/// Commands that wait for the deck.
const COMMANDS: usize = 1024;

/// Plays a recording for the browser behind this socket, until that is gone. What goes wrong is
/// said as `ERROR {error}`.
///
/// # Errors
/// When no thread can be started for the commands.
pub fn play(path: &Path, page: UnixStream) -> io::Result<()> {
    let (command, commands) = sync_channel(COMMANDS);
    let mut from = BufReader::new(page.try_clone()?);
    thread::Builder::new().name("tapdeck-commands".into()).spawn(move || {
        let mut line = String::new();
        // A line without an end is the last one.
        while matches!((&mut from).take(COMMAND).read_line(&mut line), Ok(1..)) && line.ends_with('\n') {
            line.pop();
            if command.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    })?;
    let settings = Settings::default().replies(false).scrollback(SCROLLBACK);
    let mut say = page;
    let ended = match Player::open(path, settings) {
        Ok(player) => Deck::new(player, &say).run(&commands),
        Err(e) => Err(PlayEnd::Failed(e)),
    };
    if let Err(PlayEnd::Failed(e)) = ended {
        // A page that is gone needs no reason.
        let _ = say.write_all(format!("{}\n", Failed { error: e.to_string() }.line()).as_bytes());
    }
    // The thread may still wait for a command.
    let _ = say.shutdown(std::net::Shutdown::Both);
    Ok(())
}

/// Why playing ended.
enum PlayEnd {
    Gone,
    Failed(PlayError),
}

impl From<PlayError> for PlayEnd {
    fn from(e: PlayError) -> Self {
        PlayEnd::Failed(e)
    }
}

struct Deck<'a> {
    player: Player,
    say: &'a UnixStream,
    clock: Clock,
    playing: bool,
    speed: f64,
    idle: Option<Duration>,
    /// The moment of the wall clock, and the place in the recording that belonged to it.
    since: (Time, Time),
    goal: Option<Goal>,
    /// The colours that the page shows.
    theme: Theme,
    moments: Option<Vec<Moment>>,
    /// A hop that waits until they are known.
    hop: Option<i64>,
    /// What was drawn last.
    drawn: Option<Drawn>,
    undrawn: u64,
    framed: Time,
    /// Since when a frame is held back, because the program is in the middle of drawing.
    held: Option<Time>,
    told: Option<PlayState>,
    told_at: Time,
}

impl<'a> Deck<'a> {
    fn new(mut player: Player, say: &'a UnixStream) -> Self {
        player.look_ahead();
        Self {
            idle: player.idle_limit(),
            player,
            say,
            clock: Clock::start(),
            playing: false,
            speed: 1.0,
            since: (Time::ZERO, Time::ZERO),
            goal: None,
            theme: Theme::XTERM,
            moments: None,
            hop: None,
            drawn: None,
            undrawn: 0,
            framed: Time::ZERO,
            held: None,
            told: None,
            told_at: Time::ZERO,
        }
    }

    fn run(mut self, commands: &Receiver<String>) -> Result<(), PlayEnd> {
        let source = self.player.source();
        let meta = source.meta();
        let header = source.open().ok().map(|reader| reader.header().clone()).unwrap_or_default();
        let title = meta.as_ref().and_then(|m| m.title.clone()).or(header.title).or(header.command);
        let command = meta.map(|m| m.cmd);
        self.tell(&PlayWelcome { title, command })?;
        loop {
            let wait = self.turn()?;
            let mut next = match commands.recv_timeout(wait) {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            while let Some(command) = next {
                match Command::parse(&command) {
                    Ok(Some(command)) => self.obey(command)?,
                    // Commands of later versions are ignored.
                    Ok(None) => {}
                    Err(e) => self.tell(&Denied::because(e))?,
                }
                next = commands.try_recv().ok();
            }
        }
    }

    fn tell(&mut self, message: &impl PageMessage) -> Result<(), PlayEnd> {
        let line = format!("{}\n", message.line());
        self.say.write_all(line.as_bytes()).map_err(|_| PlayEnd::Gone)
    }

    fn now(&self) -> Time {
        self.clock.now().mono
    }

    /// Counts time from here.
    fn rebase(&mut self) {
        self.since = (self.now(), self.player.at());
    }

    fn obey(&mut self, command: Command) -> Result<(), PlayEnd> {
        match command {
            Command::Ack => self.undrawn = self.undrawn.saturating_sub(1),
            Command::Play => {
                if self.player.peek()?.is_none() && self.goal.is_none() {
                    self.drawn = None;
                    self.player.rewind()?;
                }
                self.playing = true;
                self.rebase();
            }
            Command::Pause => self.playing = false,
            Command::Speed(Speed { speed }) => {
                self.speed = speed.clamp(0.01, 1000.0);
                self.rebase();
            }
            Command::Idle(idle) => {
                self.idle = idle.ms.map(|ms| Duration::from_millis(ms.max(1)));
                self.rebase();
            }
            Command::Seek(Seek { ms, moment }) => {
                let moment = moment.and_then(|n| self.moments.as_ref()?.get(usize::try_from(n).ok()?));
                let time = Goal::Time(Time::from_millis(ms));
                self.seek(moment.map_or(time, Goal::from))?;
            }
            Command::Hop(hop) => {
                self.hop = hop.by;
                self.hop_if_known()?;
            }
            Command::Step(step) => {
                self.playing = false;
                if step.by < 0 {
                    self.drawn = None;
                    self.player.step_back()?;
                } else {
                    while !matches!(self.player.advance()?, None | Some(Kind::Output(_))) {}
                }
            }
            Command::Theme(theme) => {
                self.theme = paint::theme(Some(theme));
                self.drawn = None;
            }
            Command::Rows(asked) => {
                self.tell(&paint::rows(self.player.term(), asked, self.theme))?;
            }
            Command::Find(asked) => self.tell(&paint::find(self.player.term(), asked))?,
        }
        Ok(())
    }

    fn seek(&mut self, goal: Goal) -> Result<(), PlayEnd> {
        // After a jump the model is another one, whose generations tell nothing about what was
        // drawn.
        self.drawn = None;
        self.player.begin_seek(goal)?;
        self.goal = Some(goal);
        Ok(())
    }

    /// Seeks to the moment before or behind the current place or target; without one, to the
    /// beginning or end. What the page knows of that place may be outdated.
    fn hop_if_known(&mut self) -> Result<(), PlayEnd> {
        let (Some(moments), Some(by)) = (&self.moments, self.hop) else { return Ok(()) };
        let here = self.place();
        let found = if by < 0 {
            moments.iter().rfind(|m| m.time + MS < here)
        } else {
            moments.iter().find(|m| m.time > here + MS)
        };
        let moment = found.map(Goal::from);
        let end = if by < 0 { Time::ZERO } else { self.player.end() };
        self.hop = None;
        self.seek(moment.unwrap_or(Goal::Time(end)))
    }

    /// Plays what is due and sends messages. Returns for how long there is nothing to do.
    fn turn(&mut self) -> Result<Duration, PlayEnd> {
        let mut wait = LOOK;
        if let Some(goal) = self.goal.take() {
            if self.player.approach(goal, PIECE)? {
                self.rebase();
            } else {
                self.goal = Some(goal);
                wait = Duration::ZERO;
            }
        } else if self.playing {
            wait = wait.min(self.advance()?);
        }
        let now = self.now();
        if self.goal.is_none() && self.is_stale() && self.undrawn < WINDOW {
            let due = (self.framed + FRAME).max(self.held_until(now));
            if now >= due {
                self.frame(now)?;
            } else {
                wait = wait.min(due.since(now));
            }
        }
        self.tell_moments()?;
        Ok(wait.min(self.tell_state(now)?))
    }

    /// Passes what is due; says when the next event is.
    fn advance(&mut self) -> Result<Duration, PlayEnd> {
        let stop = self.player.offset() + PIECE;
        loop {
            let (now, here) = (self.now(), self.player.at());
            let Some((at, _)) = self.player.peek()? else {
                self.playing = false;
                return Ok(Duration::ZERO);
            };
            let due = self.due(now);
            if at <= due {
                self.player.advance()?;
                if self.player.offset() >= stop {
                    // Behind its time, it goes on from here rather than to catch up in silence.
                    if due > at + Time::from_secs(1).scaled(self.speed).since_start() {
                        self.rebase();
                    }
                    return Ok(Duration::ZERO);
                }
                continue;
            }
            // A pause that is too long is cut short.
            let idle = if self.player.is_after_pause() { Some(Duration::ZERO) } else { self.idle };
            if let Some(idle) = idle
                && at.since(here) > idle
                && due < at - idle
                && due >= here
            {
                self.since = (now, at - idle);
                continue;
            }
            return Ok(Time::from(at.since(due)).scaled(1.0 / self.speed).since_start());
        }
    }

    fn is_stale(&self) -> bool {
        self.drawn != Some(Drawn::of(self.player.term()))
    }

    /// Returns until when a frame waits for the end of a synchronised update. After a step or a
    /// jump, a frame is shown as it is.
    fn held_until(&mut self, now: Time) -> Time {
        if self.playing && self.player.term().modes().synchronised() {
            *self.held.get_or_insert(now) + HOLD
        } else {
            Time::ZERO
        }
    }

    fn frame(&mut self, now: Time) -> Result<(), PlayEnd> {
        self.held = None;
        let term = self.player.term();
        let frame = paint::frame(term, self.player.offset(), self.drawn, self.theme);
        self.drawn = Some(Drawn::of(term));
        self.undrawn += 1;
        self.framed = now;
        self.tell(&frame)
    }

    fn tell_moments(&mut self) -> Result<(), PlayEnd> {
        if self.moments.is_some() {
            return Ok(());
        }
        let Some(moments) = self.player.moments(Some(Duration::ZERO)) else { return Ok(()) };
        let moments: Vec<Moment> = moments.iter().take(MOMENTS).cloned().collect();
        let told: Vec<PlayedMoment> = moments
            .iter()
            .map(|m| PlayedMoment {
                ms: m.time.as_millis(),
                label: m.label.clone(),
                snapshot: match m.kind {
                    MomentKind::Snapshot(id) => Some(id),
                    MomentKind::Marker => None,
                },
            })
            .collect();
        self.moments = Some(moments);
        self.tell(&PlayMoments(told))?;
        self.hop_if_known()
    }

    /// The place in the recording that belongs to a moment of our clock.
    fn due(&self, now: Time) -> Time {
        self.since.1 + Time::from(now.since(self.since.0)).scaled(self.speed).since_start()
    }

    /// Where it is, or is going.
    fn place(&self) -> Time {
        match self.goal {
            Some(Goal::Moment { time: to, .. } | Goal::Time(to)) => to,
            _ if self.playing => self.due(self.now()).max(self.player.at()),
            _ => self.player.at(),
        }
    }

    /// Says where it is, if that is news; and when there may be more to say about it.
    fn tell_state(&mut self, now: Time) -> Result<Duration, PlayEnd> {
        let at = self.place();
        let end = self.player.end();
        let state = PlayState {
            at_ms: at.min(end).as_millis(),
            duration_ms: end.as_millis(),
            playing: self.playing,
            speed: self.speed,
            idle_ms: self.idle.map(|idle| Time::from(idle).as_millis()),
            seeking: self.goal.is_some(),
            damages: self.player.damages(),
        };
        // The place changes all the time; everything else is told at once.
        let same_but_place = self.told.as_ref().is_some_and(|told| {
            let PlayState { at_ms, duration_ms, .. } = state;
            PlayState { at_ms, duration_ms, ..told.clone() } == state
        });
        let due = self.told_at + STATE;
        if self.told.as_ref() == Some(&state) {
            return Ok(LOOK);
        } else if same_but_place && now < due {
            return Ok(due.since(now));
        }
        self.tell(&state)?;
        (self.told, self.told_at) = (Some(state), now);
        Ok(LOOK)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Plays a recording for a page that sends these commands in turn, and waits each time for a
    /// place in milliseconds and a width.
    fn check(cast: &str, said: &[(&str, u64, u64)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.cast");
        std::fs::write(&path, cast).expect("written");
        let (mut page, socket) = UnixStream::pair().expect("sockets");
        page.set_read_timeout(Some(PATIENCE)).expect("set");
        let deck = thread::spawn(move || play(&path, socket));
        let mut heard = BufReader::new(page.try_clone().expect("a copy"));
        for (what, place, cols) in said {
            page.write_all(format!("{what}\n").as_bytes()).expect("it listens");
            let mut now = (None, None);
            while now != (Some(*place), Some(*cols)) {
                let mut line = String::new();
                let read = heard.read_line(&mut line);
                assert!(read.is_ok(), "{what} leads to {now:?}, not {place} and {cols}");
                let (verb, payload) = line.split_once(' ').expect("a verb");
                let value: Value = serde_json::from_str(payload).expect("JSON");
                match verb {
                    "STATE" if value["seeking"] == false => now.0 = value["at_ms"].as_u64(),
                    "FRAME" => {
                        now.1 = value["cols"].as_u64();
                        page.write_all(b"ACK\n").expect("it listens");
                    }
                    _ => {}
                }
            }
        }
        drop((page, heard));
        deck.join().expect("it ends").expect("it played");
    }

    /// `]` went past the resize behind a marker, and `[` stayed there for ever.
    #[test]
    fn hops_lead_to_each_moment_and_back() {
        let cast = concat!(
            "{\"version\": 2, \"width\": 80, \"height\": 24}\n",
            "[0.5, \"o\", \"hello\\r\\n\"]\n[1.0, \"m\", \"one\"]\n[1.5, \"r\", \"120x40\"]\n[3.0, \"o\", \"later\\r\\n\"]\n",
            "[4.0, \"m\", \"two\"]\n[4.5, \"i\", \"x\"]\n[6.0, \"o\", \"end\\r\\n\"]\n",
        );
        let (on, back) = ("HOP {\"by\": 1}", "HOP {\"by\": -1}");
        check(
            cast,
            &[
                (on, 1000, 80),
                (on, 4000, 120),
                (on, 6000, 120),
                (back, 4000, 120),
                (back, 1000, 80),
                (back, 0, 80),
            ],
        );
    }
}
