//! Scrubbing keeps the length and the sequences of a stream, and does not depend on how it is cut.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tapdeck_core::Offset;
use tapdeck_core::scrub::{Rules, Scrubber};
use tapdeck_term::{Kind, Scanner, Size, Token};

fn scrub(rules: &Arc<Rules>, size: Size, data: &[u8], step: usize) -> Vec<u8> {
    let mut scrubber = Scrubber::new(rules.clone(), size);
    data.chunks(step).for_each(|piece| scrubber.output(piece));
    scrubber.finish();
    let mut out = data.to_vec();
    scrubber.output_masks().apply(Offset(0), &mut out);
    out
}

fn sequences(data: &[u8]) -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    Scanner::new().feed(data, |_, token| {
        if let Token::Control { kind: Kind::Control | Kind::Esc | Kind::Csi, bytes, .. } = token {
            list.push(bytes.to_vec());
        }
    });
    list
}

fuzz_target!(|data: &[u8]| {
    let [cols, rows, step, data @ ..] = data else { return };
    let packs = Rules::of_packs(&["all"]).expect("packs");
    let rules = Arc::new(Rules::new(packs, Vec::new()).expect("rules"));
    let size = Size::new(u16::from(*cols), u16::from(*rows % 50));
    let whole = scrub(&rules, size, data, usize::MAX >> 1);
    assert_eq!(whole, scrub(&rules, size, data, usize::from(*step).max(1)));
    assert_eq!(sequences(&whole), sequences(data));
});
