//! Reading a recording without the time of its pauses, for formats that cannot tell of them.

use std::time::Duration;

use tapdeck_core::Time;

use crate::Result;
use crate::ahr::Mark;
use crate::event::{Event, EventReader, Header, Item, Kind};

/// A reader whose times leave out the pauses of the recording.
#[derive(Debug)]
pub struct Unpaused<R> {
    inner: R,
    /// When the pause began that is not over, and how long those before lasted.
    since: Option<Time>,
    gone: Duration,
}

impl<R: EventReader> Unpaused<R> {
    /// Over a recording from its start.
    pub fn new(inner: R) -> Self {
        Self { inner, since: None, gone: Duration::ZERO }
    }
}

impl<R: EventReader> EventReader for Unpaused<R> {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        let mut item = self.inner.next_item()?;
        if let Some(Item::Event(Event { time, kind })) = &mut item {
            if let Kind::Mark { code, val } = kind {
                match Mark::from_raw(*code, *val) {
                    Mark::Paused => drop(self.since.get_or_insert(*time)),
                    Mark::Resumed(_) => self.gone += time.since(self.since.take().unwrap_or(*time)),
                    _ => {}
                }
            }
            *time = self.since.unwrap_or(*time) - self.gone;
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::ahr::{AhrEvents, AhrWriter, Quality};
    use crate::testing::{read_all, write_all};

    #[test]
    fn pauses_take_no_time() {
        let event = |ms, kind| Event::new(Time::from_millis(ms), kind);
        let out = |text: &'static str| Kind::Output(Bytes::from_static(text.as_bytes()));
        let events = [
            event(0, out("a")),
            event(10, Mark::Paused.into()),
            event(40, Kind::Marker("in it".into())),
            event(110, Mark::Resumed(1).into()),
            event(110, out("r")),
            event(120, out("b")),
            event(130, Mark::Paused.into()),
            event(200, Kind::Exit(tapdeck_core::Exit::Code(0))),
        ];
        let file = write_all(&mut AhrWriter::new(Quality::Stored), &Header::default(), &events).main;
        let read = || AhrEvents::new(&file[..], None, Default::default()).unwrap();
        let times = |events: Vec<Event>| events.iter().map(|e| e.time.as_millis()).collect::<Vec<_>>();
        assert_eq!(times(read_all(read()).1)[..], [0, 10, 40, 110, 110, 120, 130, 200]);
        assert_eq!(times(read_all(Unpaused::new(read())).1)[..], [0, 10, 10, 10, 10, 20, 30, 30]);
    }
}
