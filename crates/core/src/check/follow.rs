//! Following happenings through a timeline, one after the other.

use core::time::Duration;
use std::sync::Arc;

use super::frame::Frame;
use super::look::Look;
use super::timeline::{Moment, Pos, What};
use super::trace::{Happening, Trace};
use super::when::{Span, seconds};

/// Where the following has got to.
pub(crate) struct Follow<'a> {
    wanted: Vec<&'a Happening>,
    span: Span,
    found: Vec<Pos>,
    /// How often each text that is to come was on the screen when it was last looked at.
    shown: Vec<usize>,
    /// The end of the output before this moment, as long as a happening could reach back.
    tail: Vec<u8>,
}

impl<'a> Follow<'a> {
    pub(crate) fn new(wanted: Vec<&'a Happening>, span: Span) -> Self {
        let shown = vec![0; wanted.len()];
        let mut this = Self { wanted, span, found: Vec::new(), shown, tail: Vec::new() };
        while matches!(this.next(), Some(Happening::Start)) {
            this.found.push(Pos::default());
        }
        this
    }

    fn next(&self) -> Option<&'a Happening> {
        self.wanted.get(self.found.len()).copied()
    }

    /// Whether it will look at the screen yet.
    pub(crate) fn wants_frame(&self) -> bool {
        self.wanted[self.found.len()..].iter().any(|h| matches!(h, Happening::Shows(_)))
    }

    /// Takes a screen in that counts from here on although nothing has happened.
    pub(crate) fn late(&mut self, at: Pos, frame: &Frame) {
        let come = self.look(frame);
        while self.span.holds(at)
            && matches!(self.next(), Some(Happening::Shows(_)))
            && come.contains(&self.found.len())
        {
            self.found.push(at);
        }
    }

    /// Takes a moment in, with the frames that it led to if some were wanted.
    pub(crate) fn step(&mut self, moment: &Moment, frames: &[Arc<Frame>]) {
        let come: Vec<usize> = frames.iter().flat_map(|frame| self.look(frame)).collect();
        if !self.span.holds(moment.at) {
            return;
        }
        // One moment can be several happenings only where they can be told apart in its bytes.
        let mut used = false;
        let (mut buffer, mut cut) = (std::mem::take(&mut self.tail), 0);
        if let What::Output(bytes) = &moment.what {
            buffer.extend_from_slice(bytes);
        }
        while let Some(next) = self.next() {
            let here = match (next, &moment.what) {
                (Happening::Output(wanted), What::Output(_)) => match find(&buffer[cut..], wanted) {
                    Some(end) => {
                        cut += end;
                        true
                    }
                    None => false,
                },
                (Happening::Shows(_), What::Output(_) | What::Resize(_)) => come.contains(&self.found.len()),
                (Happening::Mark(name), What::Mark(is)) if !used => **is == **name,
                (Happening::Input(part), What::Input(i)) if !used => {
                    !i.reply && find(&i.bytes, part).is_some()
                }
                (Happening::Key(name), What::Input(i)) if !used => i.key.as_ref() == Some(name),
                (Happening::Paste(text), What::Input(i)) if !used => {
                    i.paste && String::from_utf8_lossy(&i.bytes).replace('\r', "\n").contains(text.as_str())
                }
                (Happening::Signal(name), What::Signal(is)) if !used => is == name,
                (Happening::Resize(size), What::Resize(is)) if !used => is == size,
                (Happening::Service(path, test), What::Service(value)) if !used => {
                    path.select(value).into_iter().any(|v| test.holds(v))
                }
                _ => false,
            };
            if !here {
                break;
            }
            used = true;
            self.found.push(moment.at);
        }
        let reach = match self.next() {
            Some(Happening::Output(wanted)) => wanted.len().saturating_sub(1),
            // What comes after may still be looked for in bytes; those before it are of no use
            // then.
            _ => 0,
        };
        let from = cut.max(buffer.len().saturating_sub(reach));
        self.tail = buffer.split_off(from);
    }

    /// Which of the texts that are to come have come with this frame: what was there before has
    /// not.
    fn look(&mut self, frame: &Frame) -> Vec<usize> {
        let mut come = Vec::new();
        for (i, wanted) in self.wanted.iter().enumerate().skip(self.found.len()) {
            if let Happening::Shows(text) = wanted {
                let times = Look::default().times(frame, text);
                if times > std::mem::replace(&mut self.shown[i], times) {
                    come.push(i);
                }
            }
        }
        come
    }

    /// The verdict at the end of the timeline.
    pub(crate) fn end(mut self, trace: &Trace, end: Pos) -> Result<(), (String, Option<Pos>)> {
        while matches!(self.next(), Some(Happening::End)) {
            self.found.push(end);
        }
        if let Some(missing) = self.next() {
            return Err(match self.found.last() {
                Some(at) => {
                    let before = &self.wanted[self.found.len() - 1];
                    (format!("{missing} did not come after {before} ({})", seconds(at.time)), Some(*at))
                }
                None => (format!("{missing} did not come"), None),
            });
        }
        if let (Trace::Delay { ms, .. }, [from, to]) = (trace, &self.found[..]) {
            let took = to.time.since(from.time);
            let least = Duration::from_millis(ms.min.unwrap_or(0));
            if took < least || ms.max.is_some_and(|most| took > Duration::from_millis(most)) {
                let (a, b) = (seconds(from.time), seconds(to.time));
                return Err((format!("it took {}, from {a} to {b}", seconds(took)), Some(*to)));
            }
        }
        Ok(())
    }
}

/// Where the first occurrence ends.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, wanted).map(|i| i + wanted.len())
}
