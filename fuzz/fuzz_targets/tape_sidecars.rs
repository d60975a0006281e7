//! Any bytes as what stands beside a recording: meta data, labels, snapshots, events to be carried,
//! the seal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::ahr::{CarriedEvents, labels_of};
use tapdeck_tape::meta::Meta;
use tapdeck_tape::{WallTime, snapshots_of};

fuzz_target!(|data: &[u8]| {
    if let Ok(meta) = Meta::from_bytes(data) {
        let again = meta.to_bytes().and_then(|bytes| Meta::from_bytes(&bytes));
        assert!(again.is_ok());
    }
    let _ = labels_of(data);
    let _ = snapshots_of(data, WallTime::from_nanos(5));
    let mut carried = CarriedEvents::new(data);
    let mut lines = 0;
    while let Ok(Some(line)) = carried.next_up_to(u64::MAX) {
        assert!(line.ends_with(b"\n"));
        lines += 1;
    }
    assert!(lines <= data.len());
});
