//! Conversion: a reader of one format, a writer of another, and a report of what got lost between
//! them.

use tapdeck_core::Time;

use crate::Result;
use crate::event::{EventReader, EventWriter, Item, Kind, Losses, Note, Parts};

/// Remarks beyond this many are only counted.
const MAX_NOTES: usize = 100;
/// Bytes are handed on when this many have gathered.
const FLUSH: usize = 256 * 1024;

/// What a conversion did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events read.
    pub events: u64,
    /// Bytes of output among them.
    pub output_bytes: u64,
    /// When the last event happened.
    pub end: Time,
    /// Remarks about the source, the first hundred.
    pub notes: Vec<Note>,
    /// Remarks beyond these.
    pub more_notes: u64,
    /// What the target could not carry.
    pub losses: Losses,
}

/// Copies everything from `reader` to `writer`. `sink` takes the bytes as they come, with the
/// reader's position for a progress bar, and may stop the work by failing.
///
/// # Errors
/// When the source cannot be read on, with all that came before it already handed over and the
/// target finished, or when `sink` fails.
pub fn convert<E: From<crate::Error>>(
    reader: &mut dyn EventReader,
    writer: &mut dyn EventWriter,
    mut sink: impl FnMut(&mut Parts, u64) -> std::result::Result<(), E>,
) -> std::result::Result<Report, E> {
    let mut report = Report::default();
    let mut parts = Parts::default();
    writer.begin(reader.header(), &mut parts);
    let outcome = loop {
        match reader.next_item() {
            Ok(Some(Item::Event(event))) => {
                report.events += 1;
                report.end = event.time;
                if let Kind::Output(bytes) = &event.kind {
                    report.output_bytes += bytes.len() as u64;
                }
                writer.event(&event, &mut parts);
            }
            Ok(Some(Item::Note(note))) if report.notes.len() < MAX_NOTES => report.notes.push(note),
            Ok(Some(Item::Note(_))) => report.more_notes += 1,
            Ok(None) => break Ok(()),
            Err(e) => break Err(e),
        }
        if parts.main.len() + parts.timing.len() >= FLUSH {
            sink(&mut parts, reader.position())?;
            parts.clear();
        }
    };
    // A source that breaks off still makes a whole target of what it gave.
    writer.finish(&mut parts);
    sink(&mut parts, reader.position())?;
    report.losses = writer.losses().clone();
    outcome.map_err(E::from).map(|()| report)
}

/// Converts between memory and memory; for tests and small files.
///
/// # Errors
/// When the source cannot be read.
pub fn convert_to_parts(
    reader: &mut dyn EventReader,
    writer: &mut dyn EventWriter,
) -> Result<(Parts, Report)> {
    let mut all = Parts::default();
    let report = convert::<crate::Error>(reader, writer, |parts, _| {
        all.main.append(&mut parts.main);
        all.timing.append(&mut parts.timing);
        all.place = parts.place.or(all.place);
        Ok(())
    })?;
    Ok((all, report))
}
