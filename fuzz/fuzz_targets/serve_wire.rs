//! Any bytes as the attach wire, cut anywhere: lengths are refused before they are waited for, and
//! the cut changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_serve::wire::{Chunk, Negotiation, WireError, take_answer, take_chunk, take_framed};

fn chunks<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Chunk>, Option<WireError>) {
    let (mut buf, mut got) = (Vec::new(), Vec::new());
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            match take_chunk(&mut buf, 1 << 16) {
                Ok(Some(chunk)) => got.push(chunk),
                Ok(None) => break,
                Err(e) => return (got, Some(e)),
            }
        }
    }
    (got, None)
}

fuzz_target!(|data: &[u8]| {
    let _ = take_answer(&mut data.to_vec());
    let _ = take_framed(&mut data.to_vec(), 1 << 12);
    let _ = Negotiation::parse(data);
    assert_eq!(chunks(std::iter::once(data)), chunks(data.chunks(1)));
});
