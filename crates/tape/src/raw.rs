//! Raw: the bare bytes of the output, nothing else. As a source it is one long event stream at time
//! zero.

use std::io::Read;

use bytes::Bytes;
use tapdeck_core::Time;

use crate::event::{Event, EventReader, EventWriter, Header, Item, Kind, Loss, Losses, Parts};
use crate::window::Window;
use crate::{Error, Result};

const CHUNK: usize = 64 * 1024;

/// Reads bare output.
#[derive(Debug)]
pub(crate) struct RawReader<R> {
    window: Window<R>,
    header: Header,
    /// Why nothing comes behind what is in view.
    failed: Option<Error>,
}

impl<R: Read> RawReader<R> {
    /// Over any bytes.
    pub(crate) fn new(inner: R) -> Self {
        Self { window: Window::new(inner, 0), header: Header::default(), failed: None }
    }
}

impl<R: Read> EventReader for RawReader<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let filled = self.window.fill(CHUNK);
        let have = self.window.data().len().min(CHUNK);
        match filled {
            Err(e) if have == 0 => return Err(e),
            Err(e) => self.failed = Some(e),
            Ok(_) if have == 0 => return Ok(None),
            Ok(_) => {}
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
        self.losses.drop_size(header);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What came before the end of a torn stream was dropped with the error.
    #[test]
    fn what_could_be_read_comes_before_the_error() {
        struct Torn(bool);
        impl Read for Torn {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                buf[..5].copy_from_slice(b"hello");
                Ok(5)
            }
        }
        let mut reader = RawReader::new(Torn(false));
        let first = reader.next_item();
        let Ok(Some(Item::Event(Event { kind: Kind::Output(bytes), .. }))) = first else {
            panic!("{first:?}");
        };
        assert_eq!(&bytes[..], b"hello");
        assert!(reader.next_item().is_err());
    }
}
