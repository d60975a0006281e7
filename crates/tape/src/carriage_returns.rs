//! Output of a program on pipes, for a terminal. Such a program ends its lines with a line feed
//! alone, which on a terminal leads down and not back to the left: without a carriage return before
//! it, each line begins where the last one ended.

use std::borrow::Cow;

use bytes::Bytes;

use crate::event::{Event, EventWriter, Header, Kind, Losses, Parts};

/// Puts carriage returns before line feeds, as a terminal driver does, across any cuts of the
/// stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddReturns {
    /// The last byte was a carriage return.
    after_return: bool,
}

impl AddReturns {
    /// Returns the output with carriage returns; borrowed where none is missing.
    pub(crate) fn add<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut out = Vec::new();
        let mut done = 0;
        for at in memchr::memchr_iter(b'\n', bytes) {
            let has_one = if at == 0 { self.after_return } else { bytes[at - 1] == b'\r' };
            if !has_one {
                out.extend_from_slice(&bytes[done..at]);
                out.push(b'\r');
                done = at;
            }
        }
        if let Some(last) = bytes.last() {
            self.after_return = *last == b'\r';
        }
        if done == 0 && out.is_empty() {
            return Cow::Borrowed(bytes);
        }
        out.extend_from_slice(&bytes[done..]);
        Cow::Owned(out)
    }
}

/// A writer of a format that is played on a terminal: what came from pipes gets its carriage
/// returns.
#[derive(Debug)]
pub(crate) struct WithReturns<W> {
    inner: W,
    returns: Option<AddReturns>,
}

impl<W> WithReturns<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, returns: None }
    }
}

impl<W: EventWriter> EventWriter for WithReturns<W> {
    fn begin(&mut self, header: &Header, out: &mut Parts) {
        self.returns = header.pipes.then(AddReturns::default);
        self.inner.begin(header, out);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        if let (Some(returns), Kind::Output(bytes)) = (&mut self.returns, &event.kind)
            && let Cow::Owned(bytes) = returns.add(bytes)
        {
            return self.inner.event(&Event::new(event.time, Kind::Output(Bytes::from(bytes))), out);
        }
        self.inner.event(event, out);
    }

    fn finish(&mut self, out: &mut Parts) {
        self.inner.finish(out);
    }

    fn losses(&self) -> &Losses {
        self.inner.losses()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the stream is cut, every line feed has one carriage return before it that it
        /// lacked, and nothing else has changed.
        #[test]
        fn cuts_make_no_difference(bytes in prop::collection::vec(prop::sample::select(&b"\r\nab"[..]), 0..60), cut in 1usize..7) {
            let mut returns = AddReturns::default();
            let got: Vec<u8> = bytes.chunks(cut).flat_map(|piece| returns.add(piece).into_owned()).collect();
            let mut wanted = Vec::new();
            for byte in &bytes {
                if *byte == b'\n' && wanted.last() != Some(&b'\r') {
                    wanted.push(b'\r');
                }
                wanted.push(*byte);
            }
            prop_assert_eq!(got, wanted);
        }
    }
}
