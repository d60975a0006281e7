//! Any bytes as a cassette: as an archive, and as each of the files of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::cassette::{Cassette, Files, names, verify};

fuzz_target!(|data: &[u8]| {
    if let Ok(files) = Files::read_archive(data) {
        let _ = verify(Ok(&files));
    }
    // The pieces between bytes 0xFF, each a file.
    let mut files = Files::default();
    for (name, piece) in names::REQUIRED.into_iter().zip(data.split(|b| *b == 0xff)) {
        files.put(name, piece.to_vec());
    }
    let accepted = Cassette::from_files(&files).is_ok();
    let checks = verify(Ok(&files));
    assert!(accepted || checks.iter().any(|c| c.verdict != tapdeck_tape::cassette::Verdict::Passed));
});
