//! A dump fed to a fresh terminal shows the same rows, and any split of the input gives the same
//! terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_term::{Settings, Size, Term};

fn rows(t: &Term) -> Vec<String> {
    t.lines().map(|l| l.text()).collect()
}

fuzz_target!(|data: &[u8]| {
    let [cols, rows_, cut, bytes @ ..] = data else { return };
    let settings = Settings::default().scrollback(50).string_limit(4096);
    let size = Size::new(u16::from(*cols % 40) + 2, u16::from(*rows_ % 12) + 1);
    let mut whole = Term::new(size, settings.clone());
    whole.feed(bytes);
    let mut split = Term::new(size, settings.clone());
    let at = usize::from(*cut).min(bytes.len());
    split.feed(&bytes[..at]);
    split.feed(&bytes[at..]);
    assert_eq!(rows(&whole), rows(&split));
    assert_eq!(whole.cursor(), split.cursor());
    assert_eq!(whole.dump(), split.dump());
    let mut again = Term::new(whole.size(), settings);
    again.feed(&whole.dump());
    assert_eq!(rows(&whole), rows(&again));
    assert_eq!(whole.cursor(), again.cursor());
    assert_eq!(whole.modes(), again.modes());
});
