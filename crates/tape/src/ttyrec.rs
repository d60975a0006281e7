//! ttyrec: a row of records, each with seconds, microseconds and a length as little-endian u32,
//! then the bytes. Times are absolute. There is no size, no input and no ending; a torn end is
//! noticed by its length.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Time, WallTime};

use crate::event::{Event, EventReader, EventWriter, Field, Header, Item, Kind, Losses, Note, Parts};
use crate::window::Window;
use crate::{Error, FilePosition, Result};

const HEAD: usize = 12;
/// A pause that is worth a record of its own.
const LONG_US: u64 = 10_000;
/// Longer records were never written by anything: a pty gives some kilobytes at a time.
pub(crate) const MAX_RECORD: usize = 16 << 20;

/// Reads a ttyrec.
#[derive(Debug)]
pub struct TtyrecReader<R> {
    window: Window<R>,
    header: Header,
    first: Option<Item>,
    last_us: Option<u64>,
    time: Time,
    noted_order: bool,
    queued: Option<Item>,
    done: bool,
}

impl<R: Read> TtyrecReader<R> {
    /// Reads as far as the first record, which tells when the session began.
    ///
    /// # Errors
    /// When the reader fails, or the file does not begin with a record.
    pub fn new(inner: R) -> Result<Self> {
        let mut reader = Self {
            window: Window::new(inner, 0),
            header: Header::default(),
            first: None,
            last_us: None,
            time: Time::ZERO,
            noted_order: false,
            queued: None,
            done: false,
        };
        reader.first = reader.read()?;
        // Some recorders count from zero instead of from 1970.
        reader.header.started = reader.last_us.filter(|&us| us > 0).map(WallTime::from_micros);
        Ok(reader)
    }

    fn read(&mut self) -> Result<Option<Item>> {
        let at = FilePosition::Byte(self.window.offset());
        let have = self.window.fill(HEAD)?;
        if have == 0 || self.done {
            return Ok(None);
        }
        let Some(head) = self.window.data().first_chunk::<HEAD>() else {
            self.done = true;
            return Ok(Some(Note::damage(at, "the file ends within a record")));
        };
        let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let (sec, usec, len) = (word(0), word(4), word(8) as usize);
        if len > MAX_RECORD {
            self.done = true;
            return Err(Error::malformed(at, "not a ttyrec record"));
        }
        let have = self.window.fill(HEAD + len)?;
        let end = have.min(HEAD + len);
        let bytes = Bytes::copy_from_slice(&self.window.data()[HEAD..end]);
        self.window.consume(end);

        let us = u64::from(sec) * 1_000_000 + u64::from(usec);
        let last = self.last_us.replace(us).unwrap_or(us);
        self.time += Duration::from_micros(us.saturating_sub(last));
        let event = Item::Event(Event::new(self.time, Kind::Output(bytes)));
        if end < HEAD + len {
            self.done = true;
            let what = format!(
                "the file ends within a record, {} short",
                tapdeck_core::count(HEAD + len - end, "byte")
            );
            self.queued = Some(Note::damage(at, what));
        } else if us < last && !self.noted_order {
            self.noted_order = true;
            self.queued = Some(Note::item(at, "time goes back here; no pause was made of it"));
        }
        Ok(Some(event))
    }
}

impl<R: Read> EventReader for TtyrecReader<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        if let Some(item) = self.first.take().or_else(|| self.queued.take()) {
            return Ok(Some(item));
        }
        self.read()
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }
}

/// Writes a ttyrec.
#[derive(Debug, Default)]
pub struct TtyrecWriter {
    start_us: u64,
    /// When something happened last, and what time the last record has.
    last_us: u64,
    written_us: u64,
    losses: Losses,
}

impl TtyrecWriter {
    fn record(&mut self, us: u64, bytes: &[u8], out: &mut Parts) {
        self.written_us = us;
        let at = self.start_us.saturating_add(us);
        // The seconds have 32 bits and will wrap in 2106; readers only use differences.
        let (sec, usec) = ((at / 1_000_000) as u32, (at % 1_000_000) as u32);
        for word in [sec, usec, bytes.len() as u32] {
            out.main.extend_from_slice(&word.to_le_bytes());
        }
        out.main.extend_from_slice(bytes);
    }
}

impl EventWriter for TtyrecWriter {
    fn begin(&mut self, header: &Header, _: &mut Parts) {
        self.start_us = header.started.unwrap_or_default().as_micros();
        self.losses.drop_fields(header, &[Field::Pipes]);
        self.losses.drop_size(header);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        let us = event.time.as_micros();
        self.last_us = self.last_us.max(us);
        let Kind::Output(bytes) = &event.kind else {
            self.losses.drop_event(&event.kind);
            return;
        };
        for piece in bytes.chunks(MAX_RECORD) {
            self.record(us, piece, out);
        }
    }

    fn finish(&mut self, out: &mut Parts) {
        // A pause at the end is a record of nothing. What ends with the program needs none.
        if self.last_us >= self.written_us + LONG_US {
            self.record(self.last_us, b"", out);
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loss;
    use crate::testing::{read_all, sample_events, write_all};

    #[test]
    fn output_comes_back_and_the_rest_is_counted() {
        let (header, events) = sample_events();
        let mut writer = TtyrecWriter::default();
        let parts = write_all(&mut writer, &header, &events);
        let (back, got, notes) = read_all(TtyrecReader::new(&parts.main[..]).unwrap());
        assert_eq!(notes, []);
        assert_eq!(back.started, header.started.map(|at| WallTime::from_micros(at.as_micros())));
        let want: Vec<_> = events.iter().filter(|e| matches!(e.kind, Kind::Output(_))).cloned().collect();
        let base = want[0].time;
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got.kind, want.kind);
            assert_eq!(got.time, Time::from_micros(want.time.since(base).as_micros() as u64));
        }
        assert_eq!(writer.losses().of(Loss::Input).events, 1);
        assert_eq!(writer.losses().of(Loss::Resize).events, 1);
        assert_eq!(writer.losses().of(Loss::Size).events, 1);
    }

    #[test]
    fn microseconds_may_run_over_and_a_pause_at_the_end_is_kept() {
        let mut file = Vec::new();
        for (sec, usec, text) in [(5u32, 0u32, "a"), (5, 2_500_000, "b"), (9, 0, "")] {
            for word in [sec, usec, text.len() as u32] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(text.as_bytes());
        }
        let (header, got, notes) = read_all(TtyrecReader::new(&file[..]).unwrap());
        assert_eq!(notes, []);
        let times: Vec<u64> = got.iter().map(|e| e.time.as_millis()).collect();
        assert_eq!(times, [0, 2_500, 4_000]);
        let again = write_all(&mut TtyrecWriter::default(), &header, &got).main;
        let (_, back, _) = read_all(TtyrecReader::new(&again[..]).unwrap());
        assert_eq!(back, got);
    }

    #[test]
    fn a_cut_file_gives_its_beginning_and_says_so() {
        let (header, events) = sample_events();
        let file = write_all(&mut TtyrecWriter::default(), &header, &events).main;
        let mut ends = vec![0];
        for event in &events {
            if let Kind::Output(bytes) = &event.kind {
                ends.push(ends[ends.len() - 1] + HEAD + bytes.len());
            }
        }
        for cut in 0..file.len() {
            let (_, _, notes) = read_all(TtyrecReader::new(&file[..cut]).unwrap());
            assert_eq!(notes.is_empty(), ends.contains(&cut), "cut at {cut}");
        }
    }

    #[test]
    fn a_length_that_lies_is_refused_with_its_place() {
        let mut file = write_all(&mut TtyrecWriter::default(), &sample_events().0, &sample_events().1).main;
        let at = file.len();
        file.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
        let mut reader = TtyrecReader::new(&file[..]).unwrap();
        let error = loop {
            match reader.next_item() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the lie was not noticed"),
                Err(e) => break e,
            }
        };
        assert!(error.to_string().starts_with(&format!("byte {at}: ")), "{error}");
        assert!(matches!(reader.next_item(), Ok(None)));
    }
}
