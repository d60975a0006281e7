//! Claims, and the one walk through a timeline that judges them all.

use core::time::Duration;
use std::fmt;
use std::sync::Arc;

use tapdeck_term::{Signal, Size};

use super::complete::{Shown, parts, screens};
use super::condition::{Condition, Fact, Mismatch, Spot, View};
use super::follow::Follow;
use super::frame::{Frame, Screen};
use super::timeline::{Pos, Timeline, What};
use super::trace::{Heard, Trace};
use super::when::{Point, Span, Window, seconds};
use crate::time::Time;

/// What must hold, and when.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Claim {
    /// At this point.
    At(Point, Condition),
    /// At some time in the window.
    Eventually(Window, Condition),
    /// At no time in the window.
    Never(Window, Condition),
    /// All through the window.
    Always(Window, Condition),
    /// For so long on end the screen stays the same, somewhere in the window, and the condition
    /// holds.
    StableFor(Duration, Window, Condition),
    /// Something about what happened.
    Trace(Window, Trace),
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(point, condition) => write!(f, "at {point}: {condition}"),
            Self::Eventually(window, condition) => write!(f, "eventually{window}: {condition}"),
            Self::Never(window, condition) => write!(f, "never{window}: {condition}"),
            Self::Always(window, condition) => write!(f, "always{window}: {condition}"),
            Self::StableFor(length, window, condition) => {
                write!(f, "stable for {}{window}: {condition}", seconds(*length))
            }
            Self::Trace(window, trace) => write!(f, "{trace}{window}"),
        }
    }
}

/// A frame for a report.
#[derive(Clone, Debug)]
pub struct Shot {
    /// What it shows.
    pub label: String,
    /// The frame.
    pub frame: Arc<Frame>,
    /// Where to look.
    pub spots: Vec<Spot>,
}

/// A claim that does not hold.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// In one sentence.
    pub message: String,
    /// The place in the timeline that it is about.
    pub at: Option<Pos>,
    /// The frames nearest to it.
    pub shots: Vec<Shot>,
    /// Expected and shown text.
    pub texts: Option<(String, String)>,
    /// The file of the expected text.
    pub file: Option<String>,
}

impl Failure {
    fn new(message: impl Into<String>, at: Option<Pos>) -> Box<Self> {
        Box::new(Self { message: message.into(), at, ..Self::default() })
    }
}

/// Judges every claim; the answers are in the order of the claims.
pub fn evaluate(timeline: &Timeline, claims: &[Claim]) -> Vec<Result<(), Box<Failure>>> {
    let mut watches: Vec<Watch<'_>> = claims.iter().map(|c| Watch::new(c, timeline)).collect();
    walk(timeline, &mut watches);
    let mut verdicts: Vec<_> = watches.into_iter().map(|w| w.end(timeline)).collect();
    explain(timeline, claims, &mut verdicts);
    verdicts
}

/// One pass: the terminal is fed, and each watch sees what concerns it.
fn walk(timeline: &Timeline, watches: &mut [Watch<'_>]) {
    let mut screen = Screen::new(timeline.size);
    let shown = screens(timeline);
    let (mut next, mut fed) = (0, 0);
    // Shows the next screen; returns its frame if a watch follows what comes onto the screen.
    let show = |screen: &mut Screen, next: &mut usize, watches: &mut [Watch<'_>]| {
        let at = shown[*next].at;
        *next += 1;
        let until = shown.get(*next).map_or(Pos::after(Time::MAX), |s| s.at);
        if watches.iter().any(|w| w.wants_frame(at, until)) {
            let frame = screen.frame();
            let view = View { frame: &frame, term: screen.term() };
            for watch in watches.iter_mut().filter(|w| w.wants_frame(at, until)) {
                watch.see(view, at, until);
            }
        }
        let follows = watches.iter().any(|w| w.follow.as_ref().is_some_and(Follow::wants_frame));
        follows.then(|| screen.frame())
    };
    let is_due = |next: usize, fed: usize| shown.get(next).is_some_and(|s| s.fed == fed);
    for moment in &timeline.moments {
        // The blank screen at the start, or one that an update has kept back for too long.
        if is_due(next, fed) && shown[next].at <= moment.at {
            let late = show(&mut screen, &mut next, watches);
            for follow in watches.iter_mut().filter_map(|w| w.follow.as_mut()) {
                late.iter().for_each(|frame| follow.late(shown[next - 1].at, frame));
            }
        }
        let mut frames = Vec::new();
        for part in parts(&moment.what) {
            let changes = screen.advance(moment.at, &part);
            fed += 1;
            if let Some(changes) = &changes {
                for watch in watches.iter_mut().filter(|w| w.listens(moment.at)) {
                    watch.hear(changes);
                }
            }
            if is_due(next, fed) && shown[next].at <= moment.at {
                frames.extend(show(&mut screen, &mut next, watches));
            }
        }
        for follow in watches.iter_mut().filter_map(|w| w.follow.as_mut()) {
            follow.step(moment, &frames);
        }
    }
    if is_due(next, fed) {
        let last = show(&mut screen, &mut next, watches);
        for follow in watches.iter_mut().filter_map(|w| w.follow.as_mut()) {
            last.iter().for_each(|frame| follow.late(shown[next - 1].at, frame));
        }
    }
}

/// Why a claim can say nothing about this recording: it would hold, or not, whatever the program
/// did.
fn impossible(claim: &Claim, timeline: &Timeline) -> Option<String> {
    let (Claim::At(_, condition)
    | Claim::Eventually(_, condition)
    | Claim::Never(_, condition)
    | Claim::Always(_, condition)
    | Claim::StableFor(_, _, condition)) = claim
    else {
        return None;
    };
    let sizes = timeline.moments.iter().filter_map(|m| match m.what {
        What::Resize(size) => Some(size),
        _ => None,
    });
    let largest = sizes.fold(timeline.size, |a, b| Size::new(a.cols.max(b.cols), a.rows.max(b.rows)));
    // A difference from a text that is not known is no proof that it was never there. The
    // others say so themselves, with what the text would be.
    let unread = || matches!(claim, Claim::Never(..)).then(|| condition.unread()).flatten();
    condition.outside(largest).or_else(unread)
}

/// A claim being judged.
struct Watch<'a> {
    claim: &'a Claim,
    span: Result<Span, String>,
    follow: Option<Follow<'a>>,
    heard: Heard,
    state: State,
    /// The last answer, for frames whose rows are the same.
    last: Option<(Arc<Frame>, Result<(), Mismatch>)>,
}

#[derive(Default)]
struct State {
    settled: bool,
    failure: Option<Box<Failure>>,
    /// The last frame in the window, and what was wrong with it.
    near: Option<(Arc<Frame>, Mismatch)>,
    /// The present stretch of sameness: its frame and beginning; and the longest: beginning and
    /// length.
    stretch: Option<(Arc<Frame>, Time)>,
    longest: (Time, Duration),
}

impl<'a> Watch<'a> {
    fn new(claim: &'a Claim, timeline: &Timeline) -> Self {
        let span = impossible(claim, timeline).map_or(Ok(()), Err).and_then(|()| match claim {
            Claim::At(point, _) => {
                let window = Window { from: Some(point.clone()), to: None };
                let span = window.resolve(timeline);
                span.and_then(|s| Ok(Span { to: point.resolve(timeline)?.1, ..s }))
            }
            Claim::Eventually(window, _)
            | Claim::Never(window, _)
            | Claim::Always(window, _)
            | Claim::StableFor(_, window, _)
            | Claim::Trace(window, _) => window.resolve(timeline),
        });
        let follow = match (claim, &span) {
            (Claim::Trace(_, trace), Ok(span)) => trace.follows().map(|list| Follow::new(list, *span)),
            _ => None,
        };
        Self { claim, span, follow, heard: Heard::default(), state: State::default(), last: None }
    }

    fn wants_frame(&self, start: Pos, end: Pos) -> bool {
        let Ok(span) = &self.span else { return false };
        match self.claim {
            Claim::Trace(..) => false,
            // The state at that point, and no other.
            Claim::At(..) => start <= span.to && end > span.to,
            _ => !self.state.settled && span.touches(start, end),
        }
    }

    fn see(&mut self, view: View<'_>, start: Pos, end: Pos) {
        let Ok(span) = self.span.clone() else { return };
        let holds = self.judge(view);
        match (self.claim, holds) {
            (Claim::At(point, _), Err(wrong)) => {
                let label = format!("the screen at {point}");
                self.fail(wrong, view.frame, span.to, label);
            }
            (Claim::Eventually(..), Ok(())) => self.state.settled = true,
            (Claim::Eventually(..), Err(wrong)) => self.state.near = Some((view.frame.clone(), wrong)),
            (Claim::Never(_, condition), Ok(())) => {
                let spots = condition.spots(view.frame);
                let wrong =
                    Mismatch { spots, ..Mismatch::new(format!("at {}: {condition}", seconds(start.time))) };
                self.fail(wrong, view.frame, start, format!("the screen at {}", seconds(start.time)));
            }
            (Claim::Always(..), Err(wrong)) => {
                let message = format!("at {}: {}", seconds(start.time.max(span.from.time)), wrong.message);
                self.fail(
                    Mismatch { message, ..wrong },
                    view.frame,
                    start,
                    format!("the screen at {}", seconds(start.time)),
                );
            }
            (Claim::StableFor(..), holds) => self.stretch(view, holds.is_ok(), start, end, span),
            _ => {}
        }
    }

    fn judge(&mut self, view: View<'_>) -> Result<(), Mismatch> {
        let (Claim::At(_, condition)
        | Claim::Eventually(_, condition)
        | Claim::Never(_, condition)
        | Claim::Always(_, condition)
        | Claim::StableFor(_, _, condition)) = self.claim
        else {
            return Ok(());
        };
        if let Some((frame, answer)) = &self.last
            && condition.is_of_rows()
            && frame.size == view.frame.size
            && condition.look.same_rows(frame, view.frame)
        {
            return answer.clone();
        }
        // What was not there can only have come with a row that changed.
        if let (Some((before, answer @ Err(_))), [Fact::Contains(text)]) =
            (&mut self.last, &condition.facts[..])
            && condition.look.still_lacks(before, view.frame, text)
        {
            *before = view.frame.clone();
            return answer.clone();
        }
        let answer = condition.check(view);
        self.last = Some((view.frame.clone(), answer.clone()));
        answer
    }

    fn fail(&mut self, wrong: Mismatch, frame: &Arc<Frame>, at: Pos, label: String) {
        self.state.settled = true;
        self.state.failure = Some(Box::new(Failure {
            message: wrong.message,
            at: Some(at),
            shots: vec![Shot { label, frame: frame.clone(), spots: wrong.spots }],
            texts: wrong.texts,
            file: wrong.file,
        }));
    }

    /// Follows how long the screen has stayed the same.
    fn stretch(&mut self, view: View<'_>, holds: bool, start: Pos, end: Pos, span: Span) {
        let Claim::StableFor(wanted, _, condition) = self.claim else { return };
        let from = start.time.max(span.from.time);
        let until = end.time.min(span.to.time);
        let since = match &self.state.stretch {
            Some((frame, since)) if condition.look.same_rows(frame, view.frame) => *since,
            Some((frame, since)) if condition.look.text(frame) == condition.look.text(view.frame) => *since,
            _ => from,
        };
        if !holds {
            self.state.stretch = None;
            self.state.near = self.judge(view).err().map(|wrong| (view.frame.clone(), wrong));
            return;
        }
        self.state.stretch = Some((view.frame.clone(), since));
        let lasted = until.since(since);
        if lasted >= self.state.longest.1 {
            self.state.longest = (since, lasted);
            self.state.near = Some((view.frame.clone(), Mismatch::default()));
        }
        self.state.settled |= lasted >= *wanted;
    }

    fn listens(&self, at: Pos) -> bool {
        matches!(self.claim, Claim::Trace(_, trace) if trace.listens())
            && self.span.as_ref().is_ok_and(|s| s.holds(at))
    }

    fn hear(&mut self, changes: &tapdeck_term::Changes) {
        // More than this is no answer to anything.
        const ENOUGH: usize = 1 << 20;
        for signal in &changes.signals {
            match signal {
                Signal::Bell => self.heard.bells += 1,
                Signal::ClipboardWrite { selection, data } if self.heard.clipboard.len() < 1000 => {
                    self.heard.clipboard.push((selection.clone(), data.clone()));
                }
                _ => {}
            }
        }
        let room = ENOUGH.saturating_sub(self.heard.replies.len()).min(changes.replies.len());
        self.heard.replies.extend_from_slice(&changes.replies[..room]);
    }

    fn end(self, timeline: &Timeline) -> Result<(), Box<Failure>> {
        let span = self.span.map_err(|why| Failure::new(why, None))?;
        if let Some(failure) = self.state.failure {
            return Err(failure);
        }
        let near = self.state.near;
        let shots = |label: String| {
            let shot = |(frame, wrong): (Arc<Frame>, Mismatch)| Shot { label, frame, spots: wrong.spots };
            near.clone().map(shot).into_iter().collect::<Vec<_>>()
        };
        match self.claim {
            Claim::Eventually(..) if !self.state.settled => {
                let Some((frame, wrong)) = near.clone() else {
                    return Err(Failure::new("nothing was shown", None));
                };
                let last = seconds(span.to.time.min(timeline.end.at.time));
                Err(Box::new(Failure {
                    message: format!("not once until {last}; last: {}", wrong.message),
                    at: Some(frame.at),
                    shots: shots(format!("the last screen, since {}", seconds(frame.at.time))),
                    texts: wrong.texts,
                    file: wrong.file,
                }))
            }
            Claim::StableFor(wanted, ..) if !self.state.settled => {
                let (since, lasted) = self.state.longest;
                let message = match &near {
                    Some((_, wrong)) if lasted.is_zero() && !wrong.message.is_empty() => {
                        wrong.message.clone()
                    }
                    _ => format!(
                        "the longest it stayed the same is {} from {} on, not {}",
                        seconds(lasted),
                        seconds(since),
                        seconds(*wanted)
                    ),
                };
                let at = near.as_ref().map(|(frame, _)| frame.at);
                Err(Box::new(Failure {
                    message,
                    at,
                    shots: shots("the screen then".to_owned()),
                    ..Failure::default()
                }))
            }
            Claim::Trace(_, trace) => {
                let verdict = match self.follow {
                    Some(follow) => follow.end(trace, timeline.end.at),
                    None => trace.check(timeline, span, &self.heard),
                };
                verdict.map_err(|(message, at)| Failure::new(message, at))
            }
            _ => Ok(()),
        }
    }
}

/// For what did not hold when it should: says when it did, and shows that.
fn explain(timeline: &Timeline, claims: &[Claim], verdicts: &mut [Result<(), Box<Failure>>]) {
    let failed: Vec<(usize, Claim)> = claims
        .iter()
        .zip(verdicts.iter())
        .enumerate()
        .filter_map(|(i, (claim, verdict))| match (claim, verdict) {
            (Claim::At(_, c) | Claim::Eventually(_, c), Err(f)) if f.at.is_some() => {
                Some((i, Claim::Eventually(Window::default(), c.clone())))
            }
            _ => None,
        })
        .collect();
    if failed.is_empty() {
        return;
    }
    for (i, probe) in failed {
        let Claim::Eventually(_, condition) = &probe else { continue };
        let Some(held) = nearest(timeline, condition, verdicts[i].as_ref().err().and_then(|f| f.at)) else {
            continue;
        };
        if let Err(failure) = &mut verdicts[i] {
            let when = seconds(held.at.time);
            failure.message.push_str(&format!("; it does hold at {when}"));
            let spots = condition.spots(&held);
            failure.shots.push(Shot {
                label: format!("the screen at {when}, where it holds"),
                frame: held,
                spots,
            });
        }
    }
}

/// The frame nearest to a place of which the condition holds.
fn nearest(timeline: &Timeline, condition: &Condition, to: Option<Pos>) -> Option<Arc<Frame>> {
    let to = to?.time;
    let mut screen = Screen::new(timeline.size);
    let (mut shown, mut fed) = (screens(timeline).into_iter().skip(1).peekable(), 0);
    let mut best: Option<(Time, Arc<Frame>)> = None;
    let parts = timeline.moments.iter().flat_map(|m| parts(&m.what).into_iter().map(|part| (m.at, part)));
    for (at, part) in parts {
        screen.advance(at, &part);
        fed += 1;
        let Some(Shown { at, .. }) = shown.next_if(|s| s.fed == fed) else { continue };
        let nearer = best.as_ref().is_none_or(|(b, _)| at.time.abs_diff(to) < b.abs_diff(to));
        if !nearer {
            continue;
        }
        let frame = screen.frame();
        if condition.check(View { frame: &frame, term: screen.term() }).is_ok() {
            best = Some((at.time, frame));
        }
    }
    best.map(|(_, frame)| frame)
}
