//! Any bytes as an index beside a real recording: a jump shows a screen or an error, never a panic.
#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::ahr::{BlockBuilder, Quality, Record};
use tapdeck_tape::Time;
use tapdeck_tape::index::{Index, Seeker, Target};

static RECORDING: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut builder = BlockBuilder::new(0);
    let mut file = Vec::new();
    for i in 0..20_u64 {
        let _ = builder.push(Record::data(i * 1000, i * 10, format!("line {i:04}\n").into_bytes()));
        file.extend_from_slice(builder.finish(Quality::Stored, i == 19));
    }
    file
});

fuzz_target!(|data: &[u8]| {
    let Ok(mut index) = Index::load(Cursor::new(data)) else { return };
    let unchecked = index.clone();
    let _ = index.check(Cursor::new(&*RECORDING));
    for index in [index, unchecked] {
        let mut seeker = Seeker::new(Cursor::new(&*RECORDING), Some((index, Cursor::new(data))), 10);
        let _ = seeker.seek(Target::Time(Time::from_micros(9)));
        let _ = seeker.seek(Target::Byte(55));
    }
});
