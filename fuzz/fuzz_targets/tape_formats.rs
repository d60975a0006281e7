//! Any bytes as a recording of any format: reading ends, time never goes back, and what was read
//! can be written in every other format and exported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::ahr::Quality;
use tapdeck_tape::export::{self, HtmlOptions, SvgOptions};
use tapdeck_tape::{Beside, Container, EventReader, Format, Item, Time, convert_to_parts, open, writer};

const FORMATS: [Format; 8] = [
    Format::CastV1,
    Format::CastV2,
    Format::CastV3,
    Format::Ttyrec,
    Format::Typescript,
    Format::Ans,
    Format::ThreeA,
    Format::Ahr,
];

fn reader(format: Format, zst: bool, data: &[u8]) -> Option<Box<dyn EventReader + Send + '_>> {
    // For a typescript, the first half is the timing file.
    let (timing, data) = match format {
        Format::Typescript => data.split_at(data.len() / 2),
        _ => (&[][..], data),
    };
    let beside = Beside::default().timing(timing);
    open(Container { format, zst }, data, beside).ok()
}

fuzz_target!(|data: &[u8]| {
    let [first, data @ ..] = data else { return };
    let format = FORMATS[usize::from(first & 7)];
    let zst = first & 8 != 0;
    let _ = Container::detect(None, data, false);
    let Some(mut events) = reader(format, zst, data) else { return };
    let mut last = Time::ZERO;
    while let Ok(Some(item)) = events.next_item() {
        if let Item::Event(event) = item {
            assert!(event.time >= last);
            last = event.time;
        }
    }
    let target = FORMATS[usize::from(first >> 4 & 7)];
    if let (Some(mut events), Some(mut writer)) = (reader(format, zst, data), writer(target, Quality::Stored)) {
        let _ = convert_to_parts(&mut *events, &mut *writer);
    }
    if data.len() < 4096
        && let Some(mut events) = reader(format, zst, data)
    {
        let _ = match first >> 7 {
            0 => export::html(&mut *events, Vec::new(), HtmlOptions::default(), std::io::sink()),
            _ => export::svg_animated(&mut *events, SvgOptions::default(), std::io::sink()).map(drop),
        };
    }
});
