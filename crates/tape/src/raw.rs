//! Raw: the bare bytes of the output, nothing else. As a source it is one long event stream at time
//! zero.

use std::io::Read;

use bytes::Bytes;
use tapdeck_core::Time;

use crate::Result;
use crate::event::{Event, EventReader, EventWriter, Header, Item, Kind, Loss, Losses, Parts};
use crate::window::Window;

const CHUNK: usize = 64 * 1024;

/// Reads bare output.
#[derive(Debug)]
pub(crate) struct RawReader<R> {
    window: Window<R>,
    header: Header,
}

impl<R: Read> RawReader<R> {
    /// Over any bytes.
    pub(crate) fn new(inner: R) -> Self {
        Self { window: Window::new(inner, 0), header: Header::default() }
    }
}

impl<R: Read> EventReader for RawReader<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        let have = self.window.fill(CHUNK)?.min(CHUNK);
        if have == 0 {
            return Ok(None);
        }
        let bytes = Bytes::copy_from_slice(&self.window.data()[..have]);
        self.window.consume(have);
        Ok(Some(Item::Event(Event::new(Time::ZERO, Kind::Output(bytes)))))
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }
}

/// Writes bare output.
#[derive(Debug, Default)]
pub(crate) struct RawWriter {
    losses: Losses,
}

impl EventWriter for RawWriter {
    fn begin(&mut self, header: &Header, _: &mut Parts) {
        self.losses.drop_fields(header, &[]);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        if event.time > Time::ZERO && self.losses.of(Loss::Timing).events == 0 {
            self.losses.add(Loss::Timing, 0);
        }
        match &event.kind {
            Kind::Output(bytes) => out.main.extend_from_slice(bytes),
            kind => self.losses.drop_event(kind),
        }
    }

    fn finish(&mut self, _: &mut Parts) {}

    fn losses(&self) -> &Losses {
        &self.losses
    }
}
