//! Complete screens. A program that draws in a synchronised update (mode 2026) asks that nothing is
//! shown before its end, so what lies in between is no screen of it, and no check sees it.

use core::time::Duration;

use bytes::Bytes;
use tapdeck_term::ModeWatch;

use super::timeline::{Pos, Timeline, What};
use crate::time::Time;

/// How long a synchronised update may take. After that the screen counts as it is: a program that
/// hangs in the middle of an update shows what it has drawn.
pub const UPDATE_LIMIT: Duration = Duration::from_secs(1);

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Cuts a piece of output where a synchronised update begins or ends, so that a screen between two
/// updates is seen even if they arrive together.
pub fn pieces(output: &Bytes) -> Vec<Bytes> {
    let mut cuts: Vec<usize> = memchr::memmem::find_iter(output, BEGIN).collect();
    cuts.extend(memchr::memmem::find_iter(output, END).map(|at| at + END.len()));
    cuts.sort_unstable();
    let (mut out, mut from) = (Vec::with_capacity(cuts.len() + 1), 0);
    for cut in cuts.into_iter().chain([output.len()]) {
        if cut > from {
            out.push(output.slice(from..cut));
            from = cut;
        }
    }
    out
}

/// Follows whether a synchronised update is going on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Updates {
    since: Option<Time>,
}

impl Updates {
    /// Takes in whether one is going on at this time.
    pub fn note(&mut self, is_open: bool, at: Time) {
        self.since = is_open.then(|| self.since.unwrap_or(at));
    }

    /// When the screen counts although the update has not ended; `None` if it counts already.
    pub fn due(&self, now: Time) -> Option<Time> {
        self.since.map(|since| since + UPDATE_LIMIT).filter(|due| now < *due)
    }
}

/// A screen that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Since when.
    pub(super) at: Pos,
    /// Pieces of output and changes of size that led to it.
    pub(super) fed: usize,
}

/// The screens of a timeline that count, from the blank one at the start to the last one, which
/// always counts.
pub(super) fn screens(timeline: &Timeline) -> Vec<Shown> {
    let mut watch = ModeWatch::new();
    let mut updates = Updates::default();
    let mut shown = vec![Shown { at: Pos::default(), fed: 0 }];
    let (mut fed, mut withheld) = (0, None);
    for moment in &timeline.moments {
        let at = moment.at;
        if let Some(fed) = withheld
            && updates.due(at.time).is_none()
        {
            shown.push(Shown { at: updates.due(Time::ZERO).map_or(at, Pos::before), fed });
            withheld = None;
        }
        let mut show = |watch: &ModeWatch| {
            fed += 1;
            updates.note(watch.synchronised(), at.time);
            if updates.due(at.time).is_some() {
                withheld = Some(fed);
            } else {
                withheld = None;
                shown.push(Shown { at, fed });
            }
        };
        match &moment.what {
            What::Output(bytes) => pieces(bytes).iter().for_each(|piece| {
                watch.feed(piece);
                show(&watch);
            }),
            What::Resize(_) => show(&watch),
            _ => {}
        }
    }
    if let Some(fed) = withheld {
        let end = timeline.end.at;
        let due = updates.due(Time::ZERO).map_or(end, Pos::before);
        shown.push(Shown { at: due.min(end), fed });
    }
    shown
}

/// What a moment shows, cut as [`screens`] counts it.
pub(super) fn parts(what: &What) -> Vec<What> {
    match what {
        What::Output(bytes) => pieces(bytes).into_iter().map(What::Output).collect(),
        What::Resize(size) => vec![What::Resize(*size)],
        _ => Vec::new(),
    }
}
