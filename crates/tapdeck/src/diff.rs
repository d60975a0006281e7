//! Where the screens of two recordings part.
//!
//! Times and bytes of two runs of a program differ, even where all that it showed was the same. So
//! the screens are compared that stood still for a moment, one after the other, and each only once
//! however long it stood. Areas that may differ are masked, and facts that change from run to run
//! are normalised, as in scenarios.

use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_core::check::{Frame, Look};
use tapdeck_host::{Source, SourceError};
use tapdeck_tape::{Event, EventReader, Item, Kind, RecordedTurn};
use tapdeck_term::{Line, Settings, Size, Term};

/// A screen that stands still for less time than this is on its way to another.
pub const SETTLE: Duration = Duration::from_millis(200);

/// How the screens of two recordings are compared.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Masks and normalisation.
    pub look: Look,
    /// How long a screen stands still to count.
    pub settle: Duration,
    /// Whether colours and attributes count, too.
    pub styles: bool,
}

impl Default for Comparison {
    fn default() -> Self {
        Self { look: Look::default(), settle: SETTLE, styles: false }
    }
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Compared {
    /// Screens that were equal before the first difference.
    pub equal: u64,
    /// The first difference: the screens of both, or none where a recording has no more of them.
    pub difference: Option<(Option<Shown>, Option<Shown>)>,
}

/// A screen of a recording that stood still.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// Since when.
    pub time: Time,
    /// The turn that it belongs to.
    pub turn: Option<u64>,
    /// The size of the terminal.
    pub size: Size,
    /// Its title.
    pub title: String,
    /// Its rows as they are compared.
    pub rows: Vec<String>,
    /// The styles of its rows, if they are compared.
    styles: Vec<String>,
}

impl Shown {
    fn looks_like(&self, other: &Self) -> bool {
        (self.size, &self.rows, &self.styles) == (other.size, &other.rows, &other.styles)
    }

    /// Whether a row of this screen differs from that of another, counted from 0.
    pub fn differs_in(&self, other: &Self, row: usize) -> bool {
        self.rows.get(row) != other.rows.get(row) || self.styles.get(row) != other.styles.get(row)
    }
}

impl Comparison {
    /// Compares two recordings up to their first difference. A recording that breaks off is
    /// compared as far as it goes.
    ///
    /// # Errors
    /// When a recording cannot be opened or read.
    pub fn compare(&self, a: &Source, b: &Source) -> Result<Compared, SourceError> {
        let (mut a, mut b) = (Screens::open(a, self)?, Screens::open(b, self)?);
        let mut equal = 0;
        loop {
            match (a.next()?, b.next()?) {
                (None, None) => return Ok(Compared { equal, difference: None }),
                (Some(a), Some(b)) if a.looks_like(&b) => equal += 1,
                (a, b) => return Ok(Compared { equal, difference: Some((a, b)) }),
            }
        }
    }
}

impl Comparison {
    /// The last screen of a recording that stood still, or that it ends with; none if it shows
    /// nothing.
    ///
    /// # Errors
    /// When the recording cannot be opened or read.
    pub fn last(&self, source: &Source) -> Result<Option<Shown>, SourceError> {
        let mut screens = Screens::open(source, self)?;
        let mut last = None;
        while let Some(shown) = screens.next()? {
            last = Some(shown);
        }
        Ok(last)
    }
}

/// The screens of a recording that stood still, in order.
struct Screens<'a> {
    source: &'a Source,
    how: &'a Comparison,
    reader: Box<dyn EventReader + Send>,
    turns: Vec<RecordedTurn>,
    term: Term,
    offset: u64,
    /// When the screen was last changed; none before that.
    changed: Option<Time>,
    /// What it showed then, if a change may be one that does not count.
    before: Option<Shown>,
    last: Option<Shown>,
    over: bool,
}

impl<'a> Screens<'a> {
    fn open(source: &'a Source, how: &'a Comparison) -> Result<Self, SourceError> {
        let reader = source.open()?;
        let header = reader.header();
        let settings = Settings::default().scrollback(0).replies(false).newline_mode(header.pipes);
        Ok(Self {
            term: Term::new(header.size.unwrap_or_default(), settings),
            offset: header.first_byte,
            turns: source.turns()?,
            source,
            how,
            reader,
            changed: None,
            before: None,
            last: None,
            over: false,
        })
    }

    /// The next screen that stood still and looks different from the one before.
    fn next(&mut self) -> Result<Option<Shown>, SourceError> {
        while !self.over {
            let next = self.next_change()?;
            let stood_still = match (&next, self.changed) {
                (_, None) => false,
                // A frame that is being drawn is none, however long that takes.
                (Some(event), Some(since)) => {
                    event.time.since(since) >= self.how.settle && !self.term.modes().synchronised()
                }
                (None, Some(_)) => true,
            };
            self.over = next.is_none();
            let shown = stood_still.then(|| self.shown());
            if let Some(event) = next {
                self.take(&event);
            }
            if let Some(shown) = shown
                && self.last.as_ref().is_none_or(|last| !last.looks_like(&shown))
            {
                self.last = Some(shown.clone());
                return Ok(Some(shown));
            }
        }
        Ok(None)
    }

    /// The next event that can change the screen.
    fn next_change(&mut self) -> Result<Option<Event>, SourceError> {
        loop {
            match self.reader.next_item().map_err(|e| self.source.read_error(e))? {
                None => return Ok(None),
                Some(Item::Event(event)) => match event.kind {
                    Kind::Output(_) | Kind::Resize(_) => return Ok(Some(event)),
                    Kind::Lost(bytes) => self.offset = self.offset.saturating_add(bytes),
                    _ => {}
                },
                Some(Item::Note(_)) => {}
            }
        }
    }

    fn take(&mut self, event: &Event) {
        let changed = self.changed.replace(event.time);
        match &event.kind {
            Kind::Output(bytes) => {
                self.term.feed(bytes);
                self.offset = self.offset.saturating_add(bytes.len() as u64);
            }
            Kind::Resize(size) => {
                self.term.resize(*size);
            }
            _ => {}
        }
        // A spinner that is normalised does not keep the screen from standing still.
        if !self.how.look.masks.is_empty() || !self.how.look.normalise.is_empty() {
            let now = self.shown();
            match self.before.as_ref().filter(|before| before.looks_like(&now)) {
                Some(_) => self.changed = changed.or(self.changed),
                None => self.before = Some(now),
            }
        }
    }

    fn shown(&self) -> Shown {
        let begun = self.turns.iter().rev().find(|turn| turn.start_byte < self.offset);
        let styles = match self.how.styles {
            true => self.term.screen().enumerate().map(|(y, line)| self.styles(y, &line)).collect(),
            false => Vec::new(),
        };
        Shown {
            time: self.changed.unwrap_or_default(),
            turn: begun.map(|turn| turn.number),
            size: self.term.size(),
            title: self.term.title().to_owned(),
            rows: self.how.look.shown(&Frame::of(&self.term)),
            styles,
        }
    }

    /// The styles of a row, without what is masked.
    fn styles(&self, y: usize, line: &Line<'_>) -> String {
        let masks = &self.how.look.masks;
        let is_masked = |x: usize| {
            masks.iter().any(|mask| {
                (usize::from(mask.top)..=usize::from(mask.bottom)).contains(&y)
                    && (usize::from(mask.left)..=usize::from(mask.right)).contains(&x)
            })
        };
        let (mut text, mut x, mut last) = (String::new(), 0, None);
        line.each(|_, width, mut style| {
            // Numbers of links are each terminal's own.
            style.link = u32::from(style.link != 0);
            if !is_masked(x) && last != Some(style) {
                text.push_str(&format!("{x}{style:?} "));
                last = Some(style);
            }
            x += width;
        });
        text
    }
}
