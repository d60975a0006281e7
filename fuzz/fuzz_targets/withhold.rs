//! Any session: what is typed comes out in order and whole, and nothing is held back for long.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tapdeck_core::withhold::Withholding;
use tapdeck_core::{
    Author, Entry, Event, Offset, Party, Role, Seq, Stamp, Stream, Time, WallTime, WinSize,
};

fuzz_target!(|data: &[u8]| {
    let local = Party { name: "local".into(), role: Role::Human };
    let mut guard = Withholding::new(Arc::default(), WinSize::cells(20, 5));
    let (mut out, mut now) = (Vec::new(), 0);
    for (n, piece) in data.chunks(6).enumerate() {
        let (Some(kind), bytes) = (piece.first(), piece.get(1..).unwrap_or_default()) else { continue };
        now += u64::from(kind >> 1);
        let bytes = bytes.to_vec().into();
        let event = match kind & 1 {
            0 => Event::Output { stream: Stream::Out, bytes },
            _ => Event::Input { by: Author::Party(local.clone()), bytes, hidden: false },
        };
        let at = Stamp { mono: Time::from_millis(now), wall: WallTime::from_secs(1) };
        guard.take(Entry { seq: Seq(n as u64), offset: Offset(0), at, event }, &mut out);
        assert!(guard.deadline().is_none_or(|at| at <= Time::from_millis(now + 120)));
    }
    guard.release_all(&mut out);
    let order: Vec<u64> = out.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(order, (0..data.chunks(6).len() as u64).collect::<Vec<_>>());
});
