//! Any bytes as the records of a well-formed block, which random bytes of a file hardly ever reach.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::ahr::{AhrEvents, BlockBuilder, Header, MAGIC, Quality, Record, Summary};
use tapdeck_tape::Replay;
use tapdeck_tape::export::{self, BranchPoints};

fuzz_target!(|data: &[u8]| {
    // A stored block of the same length, whose payload is then exchanged.
    if data.is_empty() || data.len() > 60_000 {
        return;
    }
    let mut builder = BlockBuilder::new(0);
    assert!(builder.push(Record::data(0, 0, vec![0; data.len()])).is_none());
    let mut file = builder.finish(Quality::Stored, true).to_vec();
    assert_eq!(file[..4], MAGIC);
    // The payload is a header of three bytes, the records, and one byte to end.
    let start = Header::from_bytes(&file).map_or(0, |h| usize::from(h.header_len)) + 3;
    let end = (start + data.len()).min(file.len() - 1);
    file[start..end].copy_from_slice(&data[..end - start]);
    let _ = Summary::of(&file[..]);
    if let Ok(mut events) = AhrEvents::new(&file[..], None, BTreeMap::new())
        && let Ok(replay) = Replay::to_end(&mut events, 100)
    {
        let _ = export::branch_json(&BranchPoints::new(replay.term(), replay.moments()), std::io::sink());
    }
});
