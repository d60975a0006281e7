//! A recording as a backend: every consumer of a session can be run, and tested, with no process at
//! all.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Exit, Stamp, Stream, WinSize};

use tapdeck_tape::{EventReader, Item, Kind};

use super::{Backend, EndOfInput, Got, StopSignal, Watch};
use crate::signals;

/// How recorded time becomes played time.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Played seconds are recorded seconds divided by this; infinite means at once.
    pub speed: f64,
    /// Pauses longer than this are cut to it (recorded time).
    pub idle_limit_ns: Option<u64>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { speed: 1.0, idle_limit_ns: None }
    }
}

impl Pace {
    /// How long a recorded gap lasts when played.
    pub fn gap_ns(&self, recorded_ns: u64) -> u64 {
        let gap = self.idle_limit_ns.map_or(recorded_ns, |limit| recorded_ns.min(limit));
        let played = gap as f64 / self.speed;
        if played.is_finite() && played > 0.0 { played as u64 } else { 0 }
    }
}

/// One recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Nanoseconds since the recording's start.
    pub at_ns: u64,
    /// What happened.
    pub what: RecordedEvent,
}

/// What a recording can play back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedEvent {
    /// The program wrote this.
    Output(Stream, Bytes),
    /// The terminal's size was set.
    Resize(WinSize),
    /// The program ended.
    Exit(Exit),
}

type Events = Box<dyn Iterator<Item = io::Result<Recorded>> + Send>;

/// A recording that plays as if it ran.
pub struct Replay {
    events: Events,
    pace: Pace,
    /// The event in hand, and when it is due on the session's clock.
    next: Option<(u64, RecordedEvent)>,
    recorded_ns: u64,
    due_ns: u64,
    exit: Option<Exit>,
    ended: bool,
    pipes: bool,
}

crate::opaque::opaque_debug!(Replay);

impl Replay {
    /// Plays these events, in their order, as those of a program on a terminal. Where several
    /// programs ran one after the other, the last exit is the session's.
    pub fn new(events: impl Iterator<Item = io::Result<Recorded>> + Send + 'static, pace: Pace) -> Self {
        Self {
            events: Box::new(events),
            pace,
            next: None,
            recorded_ns: 0,
            due_ns: 0,
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
        let first = size.map(|size| Ok(Recorded { at_ns: 0, what: RecordedEvent::Resize(size.into()) }));
        let rest = std::iter::from_fn(move || reader.next_item().map_err(io::Error::other).transpose());
        let rest = rest.filter_map(|item| match item {
            Ok(Item::Event(event)) => Some(Ok(Recorded {
                at_ns: event.time_ns,
                what: match event.kind {
                    Kind::Output(bytes) => RecordedEvent::Output(Stream::Out, bytes),
                    Kind::Resize(size) => RecordedEvent::Resize(size.into()),
                    Kind::Exit(exit) => RecordedEvent::Exit(exit),
                    _ => return None,
                },
            })),
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
                    let gap_ns = self.pace.gap_ns(event.at_ns.saturating_sub(self.recorded_ns));
                    self.due_ns = self.due_ns.saturating_add(gap_ns);
                    self.recorded_ns = self.recorded_ns.max(event.at_ns);
                    self.next = Some((self.due_ns, event.what));
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
        let due = self.next.as_ref().map_or(0, |(due, _)| *due);
        Watch { read_at_ns: (!self.ended).then_some(due), ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        loop {
            self.fill()?;
            match self.next.take() {
                None => return Ok(Got::Closed),
                Some((due, event)) if due > now.mono.as_nanos() => {
                    self.next = Some((due, event));
                    return Ok(Got::Nothing);
                }
                Some((_, RecordedEvent::Output(_, bytes))) if bytes.is_empty() => {}
                Some((due, RecordedEvent::Output(stream, mut bytes))) => {
                    let n = bytes.len().min(buf.len());
                    buf[..n].copy_from_slice(&bytes.split_to(n));
                    if !bytes.is_empty() {
                        self.next = Some((due, RecordedEvent::Output(stream, bytes)));
                    }
                    return Ok(Got::Bytes(stream, n));
                }
                Some((_, RecordedEvent::Resize(size))) => return Ok(Got::Resized(size)),
                // Another program may have been recorded behind this one.
                Some((_, RecordedEvent::Exit(exit))) => self.exit = Some(exit),
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
