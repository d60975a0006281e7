//! A recording as a backend: every consumer of a session can be run, and tested, with no process at
//! all.

use std::io;
use std::time::Duration;

use tapdeck_core::{Exit, Stamp, Stream, Time, WinSize};

use tapdeck_tape::{Event, EventReader, Item, Kind};

use super::{Backend, EndOfInput, Got, StopSignal, Watch};
use crate::signals;

/// How recorded time becomes played time.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Played seconds are recorded seconds divided by this; infinite means at once.
    pub speed: f64,
    /// Pauses longer than this are cut to it (recorded time).
    pub idle_limit: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { speed: 1.0, idle_limit: None }
    }
}

impl Pace {
    /// How long a recorded gap lasts when played.
    pub fn gap(&self, recorded: Duration) -> Duration {
        let gap = self.idle_limit.map_or(recorded, |limit| recorded.min(limit));
        let played = gap.as_nanos() as f64 / self.speed;
        // Float to integer saturates.
        if played.is_finite() && played > 0.0 { Duration::from_nanos(played as u64) } else { Duration::ZERO }
    }
}

type Events = Box<dyn Iterator<Item = io::Result<Event>> + Send>;

/// A recording that plays as if it ran.
pub struct Replay {
    events: Events,
    pace: Pace,
    /// The event in hand, and when it is due on the session's clock.
    next: Option<(Time, Kind)>,
    recorded: Time,
    due: Time,
    exit: Option<Exit>,
    ended: bool,
    pipes: bool,
}

crate::opaque::opaque_debug!(Replay);

impl Replay {
    /// Plays these events, in their order, as those of a program on a terminal. What was typed,
    /// marked and remarked is passed over. Where several
    /// programs ran one after the other, the last exit is the session's.
    pub fn new(events: impl Iterator<Item = io::Result<Event>> + Send + 'static, pace: Pace) -> Self {
        let shows = |event: &io::Result<Event>| {
            event
                .as_ref()
                .map_or(true, |e| matches!(e.kind, Kind::Output(_) | Kind::Resize(_) | Kind::Exit(_)))
        };
        Self {
            events: Box::new(events.filter(shows)),
            pace,
            next: None,
            recorded: Time::ZERO,
            due: Time::ZERO,
            exit: None,
            ended: false,
            pipes: false,
        }
    }

    /// Plays a recording of any format; see [`crate::Source::open`]. What is typed, marked and
    /// remarked in it is passed over.
    pub fn of(mut reader: impl EventReader + Send + 'static, pace: Pace) -> Self {
        let header = reader.header();
        let (pipes, size) = (header.pipes, header.size);
        let first = size.map(|size| Ok(Event::new(Time::ZERO, Kind::Resize(size))));
        let rest = std::iter::from_fn(move || reader.next_item().map_err(io::Error::other).transpose());
        let rest = rest.filter_map(|item| match item {
            Ok(Item::Event(event)) => Some(Ok(event)),
            Ok(Item::Note(_)) => None,
            Err(e) => Some(Err(e)),
        });
        Self::new(first.into_iter().chain(rest), pace).on_pipes(pipes)
    }

    /// Says whether the program ran on pipes: then its lines end without a carriage return, and yet
    /// begin at the left.
    #[must_use]
    pub fn on_pipes(mut self, pipes: bool) -> Self {
        self.pipes = pipes;
        self
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.next.is_none() && !self.ended {
            match self.events.next().transpose()? {
                Some(event) => {
                    self.due += self.pace.gap(event.time.since(self.recorded));
                    self.recorded = self.recorded.max(event.time);
                    self.next = Some((self.due, event.kind));
                }
                None => {
                    self.ended = true;
                    self.exit = self.exit.or(Some(Exit::Code(0)));
                }
            }
        }
        Ok(())
    }
}

impl Backend for Replay {
    fn watch(&self) -> Watch<'_> {
        let due = self.next.as_ref().map_or(Time::ZERO, |(due, _)| *due);
        Watch { read_at: (!self.ended).then_some(due), ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        loop {
            self.fill()?;
            match self.next.take() {
                None => return Ok(Got::Closed),
                Some((due, event)) if due > now.mono => {
                    self.next = Some((due, event));
                    return Ok(Got::Nothing);
                }
                Some((_, Kind::Output(bytes))) if bytes.is_empty() => {}
                Some((due, Kind::Output(mut bytes))) => {
                    let n = bytes.len().min(buf.len());
                    buf[..n].copy_from_slice(&bytes.split_to(n));
                    if !bytes.is_empty() {
                        self.next = Some((due, Kind::Output(bytes)));
                    }
                    return Ok(Got::Bytes(Stream::Out, n));
                }
                Some((_, Kind::Resize(size))) => return Ok(Got::Resized(size.into())),
                // Another program may have been recorded behind this one.
                Some((_, Kind::Exit(exit))) => self.exit = Some(exit),
                Some(_) => {}
            }
        }
    }

    /// A recording takes no input.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn end_input(&mut self, _line_open: bool, _quiet: Duration) -> io::Result<EndOfInput> {
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        if signals::ends(signal)? && !self.ended {
            self.exit = Some(Exit::Signal(signal));
            self.ended = true;
            self.next = None;
        }
        Ok(())
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        self.signal(how.signal())
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        Ok(if self.ended { self.exit } else { None })
    }

    fn bare_lines(&self) -> bool {
        self.pipes
    }
}
