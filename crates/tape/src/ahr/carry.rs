//! The lines of `NAME.events.jsonl` that are no markers (turns, states, changes of the driver), on
//! their way to the sidecar of another native recording. Markers are written anew, since their
//! numbers may change; everything else is carried as it stands, known or not, in order of time
//! between them.

use std::io::Read;

use serde::Deserialize;

use super::events::EventLine;
use crate::lines::Lines;
use crate::{Error, Result};

/// Lines of an old sidecar, to be put between the lines of a new one.
#[derive(Debug)]
pub struct CarriedEvents<R> {
    lines: Lines<R>,
    /// The next line and its time.
    next: Option<(u64, Vec<u8>)>,
}

#[derive(Deserialize)]
struct Stamp {
    ts_ns: u64,
}

impl<R: Read> CarriedEvents<R> {
    /// From an old sidecar.
    pub fn new(sidecar: R) -> Self {
        Self { lines: Lines::new(sidecar), next: None }
    }

    /// Gives `sink` the new lines, each after the old ones that are not later.
    ///
    /// # Errors
    /// When the old sidecar cannot be read, or `sink` fails.
    pub fn merge<E: From<Error>>(
        &mut self,
        fresh: &[u8],
        mut sink: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for line in fresh.split_inclusive(|b| *b == b'\n') {
            let stamp = serde_json::from_slice::<Stamp>(line);
            let ts = stamp.map_or(0, |s| s.ts_ns);
            while let Some(old) = self.next_up_to(ts)? {
                sink(&old)?;
            }
            sink(line)?;
        }
        Ok(())
    }

    /// The next old line, with its end, if it is not later than this; `u64::MAX` for any.
    ///
    /// # Errors
    /// When the old sidecar cannot be read.
    pub fn next_up_to(&mut self, ts_ns: u64) -> Result<Option<Vec<u8>>> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        match self.next.take() {
            Some((ts, mut line)) if ts <= ts_ns => {
                line.push(b'\n');
                Ok(Some(line))
            }
            later => {
                self.next = later;
                Ok(None)
            }
        }
    }

    fn read(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        while let Some(line) = self.lines.next_line()? {
            let known = serde_json::from_slice::<EventLine>(line.text);
            if line.text.trim_ascii().is_empty() || known.is_ok_and(|event| event.kind == "marker") {
                continue;
            }
            // A line without a time, or that is no JSON, stays where it stands.
            let ts = serde_json::from_slice::<Stamp>(line.text).map_or(0, |s| s.ts_ns);
            return Ok(Some((ts, line.text.to_vec())));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_marker_is_carried_in_order_of_time() {
        let old = b"{\"ts_ns\":1,\"kind\":\"driver\",\"to\":\"ann\"}\n\
            {\"ts_ns\":2,\"kind\":\"marker\",\"n\":1,\"label\":\"old\"}\r\n\
            not JSON at all\n\n\
            {\"ts_ns\":5,\"kind\":\"of later versions\",\"n\":7,\"label\":\"x\"}\n\
            {\"ts_ns\":9,\"kind\":\"driver\"}";
        let mut carried = CarriedEvents::new(&old[..]);
        let mut out = Vec::new();
        for fresh in [
            "{\"ts_ns\":4,\"kind\":\"marker\",\"n\":1,\"label\":\"a\"}\n",
            "",
            "{\"ts_ns\":5,\"kind\":\"marker\",\"n\":2,\"label\":\"b\"}\n",
        ] {
            let take = |line: &[u8]| -> Result<()> {
                out.extend_from_slice(line);
                Ok(())
            };
            carried.merge(fresh.as_bytes(), take).unwrap();
        }
        while let Some(line) = carried.next_up_to(u64::MAX).unwrap() {
            out.extend_from_slice(&line);
        }
        let text = String::from_utf8(out).unwrap();
        let starts = [
            "{\"ts_ns\":1,\"kind\":\"driver\",\"to\":\"ann\"}",
            "not JSON at all",
            "{\"ts_ns\":4,\"kind\":\"marker\"",
            "{\"ts_ns\":5,\"kind\":\"of later versions\",\"n\":7,\"label\":\"x\"}",
            "{\"ts_ns\":5,\"kind\":\"marker\"",
            "{\"ts_ns\":9,\"kind\":\"driver\"}",
        ];
        assert_eq!(text.lines().count(), starts.len(), "{text}");
        assert!(text.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    }
}
