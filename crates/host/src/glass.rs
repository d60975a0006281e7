//! The glass: the one terminal model of a live session.
//!
//! Code that needs the screen brings the model up to the log's end first. A session without clients
//! pays for no drawing at the moment of output, only later and in large pieces. The model reads the
//! log losslessly: when it falls far behind, the driver brings it up itself before it lets the log
//! go on. Where no terminal of the user's shows the session, the model answers the program, and the
//! driver feeds it after every read.
//!
//! The driver may wait for the model, so a thread that holds the model must not wait for the
//! driver. A [`Look`] marks its thread, and [`Handle`] refuses to ask from there.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use bytes::Bytes;
use tapdeck_core::turns::{Detector, Limits, Notice, Report, Rules};
use tapdeck_core::{Author, Entry, Event, Offset, ReaderId, ReaderKind, Seq, Stamp, Time, WinSize};
use tapdeck_term::{Changes, Settings, Signal, Size, Term, is_plain_text, text_width};

use crate::inbox::Handle;
use crate::shared::SharedLog;

/// What is taken from the log at a time. A flood of plain lines is taken in pieces of this size,
/// because only the last rows of each have to be drawn.
const PIECE: usize = 8 << 20;
/// With this much unread, the driver waits for the model; with less where the log holds less.
const FAR_BEHIND: usize = 12 << 20;
/// A log that holds less than this for its readers has the model read after every piece of output:
/// one turn of the driver, which may read 2 MiB, must fit into what is left of it.
const NARROW: usize = 8 << 20;
/// Bells, titles and the like that are kept until they are taken.
const SIGNALS: usize = 256;

/// The model, and where in the log it stands.
pub struct Picture {
    term: Term,
    log: SharedLog,
    reader: ReaderId,
    /// Output bytes that the model has seen.
    offset: Offset,
    /// The log's entry that comes next.
    next: Seq,
    replies: Vec<u8>,
    signals: VecDeque<Signal>,
    entries: Vec<Entry>,
    /// Plain text that is not drawn yet, with its offsets; never between two calls.
    text: Vec<(u64, Bytes)>,
    known: Arc<Known>,
    /// Finds turns and states, where that is asked for.
    detector: Option<Detector>,
}

/// What can be said of the model without holding it.
#[derive(Default)]
struct Known {
    offset: AtomicU64,
    generation: AtomicU64,
    /// When the detector of turns and states wants to look again; [`NEVER`] for not at all.
    look_ns: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Picture {
    /// Feeds everything that the log holds by now. What comes meanwhile is for the next time: a
    /// program that writes as fast as it is read would hold its reader for ever.
    pub(crate) fn catch_up(&mut self) {
        let end = self.log.end();
        let mut entries = std::mem::take(&mut self.entries);
        while self.next < end {
            entries.clear();
            // The driver waits before anything is lost, so there is no lag; if there were, the
            // stream goes on.
            let _ = self.log.read(self.reader, PIECE, &mut entries);
            if entries.is_empty() {
                break;
            }
            for entry in entries.drain(..) {
                self.next = entry.seq.next();
                self.take(entry);
            }
            self.draw_text();
        }
        self.entries = entries;
        self.publish();
    }

    fn take(&mut self, entry: Entry) {
        // The detector judges the screen at its own times, and has to see it as it was then.
        let due = self.detector.as_ref().and_then(Detector::deadline).is_some_and(|at| at <= entry.at.mono);
        // What follows half a sequence belongs to that.
        let whole = !self.text.is_empty() || self.term.is_idle();
        let text = whole && matches!(&entry.event, Event::Output { bytes, .. } if is_plain_text(bytes));
        if due || !text {
            self.draw_text();
        }
        if due && let Some(detector) = &mut self.detector {
            detector.advance(&self.term, entry.at);
        }
        let changes = match entry.event {
            Event::Output { bytes, .. } => {
                self.offset = entry.offset + bytes.len();
                let changes =
                    if text { Changes::default() } else { self.term.feed_at(&bytes, entry.offset.0) };
                if let Some(detector) = &mut self.detector {
                    detector.output(&bytes, entry.offset, &changes.signals, entry.at);
                }
                if text {
                    self.text.push((entry.offset.0, bytes));
                }
                changes
            }
            Event::Resize(size) => self.term.resize(model_size(size)),
            other => return self.tell(&other, entry.at),
        };
        self.note(changes);
    }

    /// Draws the plain text that has gathered, as much of it as will still be there at its end.
    fn draw_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let skipped = self.term.skip_text(self.text.iter().map(|(_, bytes)| &bytes[..]));
        for (offset, bytes) in self.text.drain(..).skip(skipped) {
            // Plain text asks nothing and rings no bell.
            self.term.feed_at(&bytes, offset);
        }
    }

    fn tell(&mut self, event: &Event, at: Stamp) {
        let Some(detector) = &mut self.detector else { return };
        match event {
            // What the model answers is no input of a user.
            Event::Input { by: Author::Party(party), bytes, .. } => {
                detector.input(&self.term, bytes, Some(party), at);
            }
            Event::Signal(signal) => detector.signal(*signal),
            Event::Exit(exit) => detector.exit(*exit, at),
            _ => {}
        }
    }

    /// Lets time go by for the detector of turns and states.
    pub fn tick(&mut self, now: Stamp) {
        if let Some(detector) = &mut self.detector {
            detector.advance(&self.term, now);
        }
        self.publish();
    }

    /// Judges the session by the rules of a nested program, or (`None`) by those of the first one
    /// again; see [`Detector::set_nested`].
    pub fn set_nested(&mut self, nested: Option<Arc<Rules>>, now: Stamp) {
        self.draw_text();
        if let Some(detector) = &mut self.detector {
            detector.set_nested(nested, &self.term, now);
        }
        self.publish();
    }

    /// Tells the detector what the program's journals say.
    pub fn report(&mut self, reports: Vec<Report>, now: Stamp) {
        self.draw_text();
        for report in reports {
            if let Some(detector) = &mut self.detector {
                detector.report(&self.term, report, now);
            }
        }
        self.publish();
    }

    /// The detector of turns and states.
    pub fn detector(&self) -> Option<&Detector> {
        self.detector.as_ref()
    }

    /// What the detector has found since this was last called.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let found =
            self.detector.as_mut().map(|d| std::iter::from_fn(|| d.poll()).collect()).unwrap_or_default();
        self.publish();
        found
    }

    fn publish(&self) {
        self.known.offset.store(self.offset.0, Ordering::Release);
        self.known.generation.store(self.term.generation().0, Ordering::Release);
        let look =
            self.detector.as_ref().and_then(|d| if d.has_news() { Some(Time::ZERO) } else { d.deadline() });
        self.known.look_ns.store(look.map_or(NEVER, Time::as_nanos), Ordering::Release);
    }

    fn note(&mut self, changes: Changes) {
        self.replies.extend_from_slice(&changes.replies);
        for signal in changes.signals {
            if self.signals.len() == SIGNALS {
                self.signals.pop_front();
            }
            self.signals.push_back(signal);
        }
    }

    /// Shows text that the program did not write, to observers alone: it is in no log and no
    /// recording.
    pub fn show_echo(&mut self, text: &[u8]) {
        let changes = self.term.feed_at(text, self.offset.0);
        self.note(changes);
        self.publish();
    }

    /// The model.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Output bytes that the model has seen.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// The first entry of the log that the model has not seen.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// Bells, titles and the like since they were last taken.
    pub fn take_signals(&mut self) -> VecDeque<Signal> {
        std::mem::take(&mut self.signals)
    }
}

struct Inner {
    picture: Mutex<Picture>,
    /// The driver found the model taken, and wants to be told when it is free.
    wanted: AtomicBool,
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picture")
            .field("offset", &self.offset)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Look<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Look").field(&**self).finish()
    }
}

impl fmt::Debug for Glass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glass").field("seen", &self.seen()).finish_non_exhaustive()
    }
}

/// A share in the model of a session.
#[derive(Clone)]
pub struct Glass {
    inner: Arc<Inner>,
    log: SharedLog,
    reader: ReaderId,
    known: Arc<Known>,
    /// With this much unread, the driver waits for the model.
    far_behind: usize,
}

thread_local! {
    /// Looks that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread holds a model, so that it must not wait for a driver.
pub(crate) fn is_held_here() -> bool {
    HELD.get() > 0
}

/// The model, held for a moment and up to date. While a thread has one, [`Handle`] answers none of
/// its questions.
pub struct Look<'a> {
    picture: Option<MutexGuard<'a, Picture>>,
    wanted: &'a AtomicBool,
    handle: &'a Handle,
}

impl std::ops::Deref for Look<'_> {
    type Target = Picture;

    fn deref(&self) -> &Picture {
        // Only the drop below takes it.
        self.picture.as_ref().expect("held until dropped")
    }
}

impl std::ops::DerefMut for Look<'_> {
    fn deref_mut(&mut self) -> &mut Picture {
        self.picture.as_mut().expect("held until dropped")
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.picture = None;
        HELD.set(HELD.get() - 1);
        if self.wanted.swap(false, Ordering::AcqRel) {
            self.handle.nudge();
        }
    }
}

impl Glass {
    /// Makes a model of this size that reads the log from its start. `lines` is for a program on
    /// pipes, whose lines end without a carriage return.
    pub(crate) fn new(log: &SharedLog, size: WinSize, lines: bool) -> Self {
        let reader = log.reader_from_start(ReaderKind::Lossless);
        let settings = Settings::default().replies(false).newline_mode(lines);
        let known = Arc::new(Known { look_ns: AtomicU64::new(NEVER), ..Known::default() });
        let picture = Picture {
            term: Term::new(model_size(size), settings),
            log: log.clone(),
            reader,
            offset: Offset(0),
            next: Seq(0),
            replies: Vec::new(),
            signals: VecDeque::new(),
            entries: Vec::new(),
            text: Vec::new(),
            known: Arc::clone(&known),
            detector: None,
        };
        let inner = Inner { picture: Mutex::new(picture), wanted: AtomicBool::new(false) };
        let cap = log.limits().cap;
        let far_behind = if cap < NARROW { 0 } else { FAR_BEHIND.min(cap / 2) };
        Self { inner: Arc::new(inner), log: log.clone(), reader, known, far_behind }
    }

    /// Holds the model, brought up to the log's end.
    pub fn look<'a>(&'a self, handle: &'a Handle) -> Look<'a> {
        let picture = self.lock();
        HELD.set(HELD.get() + 1);
        let mut look = Look { picture: Some(picture), wanted: &self.inner.wanted, handle };
        look.catch_up();
        look
    }

    /// Output bytes that the model has seen.
    pub fn seen(&self) -> Offset {
        Offset(self.known.offset.load(Ordering::Acquire))
    }

    /// Whether the log holds anything that the model has not seen.
    pub fn is_behind(&self) -> bool {
        self.log.pending(self.reader) > 0
    }

    /// When to call [`Picture::tick`] and take what was found, as far as the model has come.
    pub fn look_at(&self) -> Option<Time> {
        let at = self.known.look_ns.load(Ordering::Acquire);
        (at != NEVER).then(|| Time::from_nanos(at))
    }

    /// The generation that the model has reached; see [`tapdeck_term::Term::generation`].
    pub fn generation(&self) -> u64 {
        self.known.generation.load(Ordering::Acquire)
    }

    /// Has turns and states found by these rules, from the beginning.
    pub fn detect(&self, rules: Arc<Rules>, limits: Limits) {
        let mut picture = self.lock();
        picture.detector = Some(Detector::new(rules, limits));
        picture.publish();
    }

    /// From now on the model answers the program; what was asked before has been answered already.
    pub(crate) fn set_replies(&self, on: bool) {
        let mut picture = self.lock();
        picture.catch_up();
        picture.term.set_replies(on);
    }

    /// Bytes that paint the screen, as it is by now, on a terminal of the same size.
    pub(crate) fn painted(&self) -> Vec<u8> {
        let mut picture = self.lock();
        picture.catch_up();
        picture.term.dump_screen()
    }

    /// The screen as it is by now, to compare a later one with.
    pub(crate) fn copied(&self) -> Term {
        let mut picture = self.lock();
        picture.catch_up();
        picture.term.clone()
    }

    /// Bytes that bring a terminal from an earlier state of this one to that by now, without what
    /// came and went in between.
    pub(crate) fn redraw_since(&self, before: &Term) -> Vec<u8> {
        let mut picture = self.lock();
        picture.catch_up();
        picture.term.redraw_since(before)
    }

    /// Bytes that write a notice over a row of the terminal that shows this screen, away from the
    /// cursor, and which row. `None` while the screen is in the middle of something.
    pub(crate) fn covered(&self, text: &str) -> Option<(u16, Vec<u8>)> {
        let mut picture = self.lock();
        picture.catch_up();
        let term = &picture.term;
        if !term.is_idle() || term.modes().synchronised() {
            return None;
        }
        let Size { cols, rows } = term.size();
        let row = if term.cursor().row + 1 == rows { 0 } else { rows - 1 };
        let room = usize::from(cols).saturating_sub(2);
        let (mut shown, mut width) = (String::new(), 0);
        for c in text.chars().filter(|c| !c.is_control()) {
            let wide = text_width(c.encode_utf8(&mut [0; 4]));
            if width + wide > room {
                break;
            }
            shown.push(c);
            width += wide;
        }
        Some((row, term.over_row(row, &format!("\x1b[0;7m {shown} \x1b[m"))))
    }

    /// Bytes that bring a row back that a notice was written over.
    pub(crate) fn uncovered(&self, row: u16) -> Vec<u8> {
        let mut picture = self.lock();
        picture.catch_up();
        picture.term.repaint_row(row)
    }

    /// For the driver, after output, when the model is the one to answer: its answers. When another
    /// thread holds the model, the driver is nudged as soon as that one lets go.
    pub(crate) fn answers(&self) -> Vec<u8> {
        let mut picture = match self.inner.picture.try_lock() {
            Ok(picture) => picture,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.inner.wanted.store(true, Ordering::Release);
                // The other thread may have let go in between, and seen no wish.
                match self.inner.picture.try_lock() {
                    Ok(picture) => picture,
                    Err(_) => return Vec::new(),
                }
            }
        };
        picture.catch_up();
        std::mem::take(&mut picture.replies)
    }

    /// For the driver, once a turn: brings a model that is far behind up to date before it loses
    /// anything.
    pub(crate) fn keep_up(&self) {
        if self.log.pending(self.reader) > self.far_behind {
            self.lock().catch_up();
        }
    }

    /// For the driver, after every piece of output: keeps up with a log that cannot hold many of
    /// them.
    pub(crate) fn keep_close(&self) {
        if self.far_behind == 0 {
            self.keep_up();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Picture> {
        self.inner.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn model_size(size: WinSize) -> Size {
    size.or_default().size()
}
