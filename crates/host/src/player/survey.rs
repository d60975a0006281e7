//! What only a look at the whole recording tells: its moments and, in most formats, its length. The
//! look is taken on a thread of its own, so that a large recording begins to play at once.

use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_tape::ahr::labels_of;
use tapdeck_tape::index::Index;
use tapdeck_tape::{Item, Kind, Moment, MomentKind};

use crate::source::Source;

/// Moments beyond this many are dropped: no user marks a session a million times.
const MAX_MOMENTS: usize = 1_000_000;

/// What a recording holds as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Survey {
    pub(super) end: Time,
    pub(super) moments: Vec<Moment>,
}

/// A survey that is to be made, is being made, or is there.
#[derive(Default)]
pub(super) enum Surveyor {
    #[default]
    Idle,
    Busy {
        hear: Receiver<Survey>,
        _quit: Quit,
    },
    Done(Survey),
}

/// Stops the thread when its answer is not wanted any more.
pub(super) struct Quit(Arc<AtomicBool>);

impl Drop for Quit {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Surveyor {
    /// Begins, if that has not been done.
    pub(super) fn start(&mut self, source: &Source) {
        if !matches!(self, Surveyor::Idle) {
            return;
        }
        let (tell, hear) = channel();
        let quit = Arc::<AtomicBool>::default();
        let (source, stop) = (source.clone(), quit.clone());
        let task = move || {
            // A receiver that is gone no longer wants the answer.
            let _ = tell.send(survey(&source, &stop));
        };
        let started = std::thread::Builder::new().name("tapdeck-survey".into()).spawn(task);
        *self = match started {
            Ok(_) => Surveyor::Busy { hear, _quit: Quit(quit) },
            Err(_) => Surveyor::Done(Survey::default()),
        };
    }

    /// The survey, if it is there within the time; without a limit, when it is there.
    pub(super) fn within(&mut self, limit: Option<Duration>) -> Option<&Survey> {
        if let Surveyor::Busy { hear, .. } = self {
            let heard = match limit {
                Some(limit) => hear.recv_timeout(limit),
                None => hear.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match heard {
                Ok(survey) => *self = Surveyor::Done(survey),
                Err(RecvTimeoutError::Disconnected) => *self = Surveyor::Done(Survey::default()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        match self {
            Surveyor::Done(survey) => Some(survey),
            _ => None,
        }
    }
}

/// Reads everything and keeps the moments. What cannot be read ends it: the player will say so when
/// it gets there.
fn survey(source: &Source, stop: &AtomicBool) -> Survey {
    let mut survey = Survey::default();
    let Ok(mut reader) = source.open() else { return survey };
    let started = reader.header().started;
    let mut off = 0u64;
    while let Ok(Some(item)) = reader.next_item() {
        let Item::Event(event) = item else { continue };
        if stop.load(Ordering::Relaxed) {
            break;
        }
        survey.end = event.time;
        let (kind, anchor, label) = match event.kind {
            Kind::Output(bytes) => {
                off = off.saturating_add(bytes.len() as u64);
                continue;
            }
            Kind::Lost(bytes) => {
                off = off.saturating_add(bytes);
                continue;
            }
            Kind::Marker(label) => (MomentKind::Marker, off, label),
            Kind::Snapshot { id, anchor, label } => (MomentKind::Snapshot(id), anchor, label),
            _ => continue,
        };
        if survey.moments.len() < MAX_MOMENTS {
            let wall = started.map(|start| start + event.time.since_start());
            survey.moments.push(Moment { kind, time: event.time, wall, anchor, label });
        }
    }
    survey
}

/// What an index tells of the whole, if it covers the whole. It knows markers without their labels,
/// which stand in the sidecar in the same order.
pub(super) fn by_index(source: &Source, index: &Index) -> Option<Survey> {
    let (_, end, _) = index.end?;
    let mut moments = index.moments.clone();
    let markers = moments.iter().filter(|m| m.kind == MomentKind::Marker).count();
    if markers > 0 {
        let labels = labels_of(BufReader::new(source.sidecar("events.jsonl")?)).ok()?;
        if labels.len() != markers {
            return None;
        }
        let unnamed = moments.iter_mut().filter(|m| m.kind == MomentKind::Marker);
        for (moment, label) in unnamed.zip(labels.into_values()) {
            moment.label = label;
        }
    }
    Some(Survey { end, moments })
}
