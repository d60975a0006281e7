//! The lines of `events.jsonl` (turns, states, changes of the driver), on their way to another
//! native recording. Markers are written anew, since their numbers may change, and snapshots have
//! records of their own; everything else is carried as it stands, known or not, in order of time
//! between them.

use std::io::Read;

use serde::Deserialize;

use super::events::EventLine;
use crate::Result;
use crate::lines::Lines;

/// Lines of another recording, to be put between new ones.
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
    /// From the events of a recording.
    pub fn new(events: R) -> Self {
        Self { lines: Lines::new(events), next: None }
    }

    /// The next line, with its end, if it is not later than this; `u64::MAX` for any.
    ///
    /// # Errors
    /// When the lines cannot be read.
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
            if line.text.trim_ascii().is_empty()
                || known.is_ok_and(|event| matches!(&*event.kind, "marker" | "snapshot"))
            {
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
            {\"ts_ns\":3,\"kind\":\"snapshot\",\"id\":1}\n\
            not JSON at all\n\n\
            {\"ts_ns\":5,\"kind\":\"of later versions\",\"n\":7,\"label\":\"x\"}\n\
            {\"ts_ns\":9,\"kind\":\"driver\"}";
        let mut carried = CarriedEvents::new(&old[..]);
        let mut out = Vec::new();
        for (ts, fresh) in [(4, "the first"), (4, "again"), (5, "the second"), (u64::MAX, "")] {
            while let Some(old) = carried.next_up_to(ts).unwrap() {
                out.extend_from_slice(&old);
            }
            out.extend_from_slice(fresh.as_bytes());
            out.push(b'\n');
        }
        let text = String::from_utf8(out).unwrap();
        let starts = [
            "{\"ts_ns\":1,\"kind\":\"driver\",\"to\":\"ann\"}",
            "not JSON at all",
            "the first",
            "again",
            "{\"ts_ns\":5,\"kind\":\"of later versions\",\"n\":7,\"label\":\"x\"}",
            "the second",
            "{\"ts_ns\":9,\"kind\":\"driver\"}",
            "",
        ];
        assert_eq!(text.lines().count(), starts.len(), "{text}");
        assert!(text.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    }
}
