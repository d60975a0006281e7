//! Any bytes as the messages of the attach wire, the tty wire and the page, in both directions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_proto::attach::{Asked, Join, Said};
use tapdeck_proto::page::Command;
use tapdeck_proto::tty::{ClientControl, Control, Negotiation, Refusal, ServerControl};

fuzz_target!(|data: &[u8]| {
    let _ = Negotiation::parse(data);
    let _ = Refusal::parse(data);
    if let Ok(join) = Join::parse(data) {
        let _ = join.size();
    }
    if let Ok(control) = Control::parse(data) {
        let _ = (control.name(), control.size());
        let _ = Asked::from_message(&control);
        let _ = control.read::<ServerControl>();
        let _ = control.read::<ClientControl>();
        let _ = control.read::<Said>();
    }
    if let Ok(line) = std::str::from_utf8(data) {
        let _ = Command::parse(line);
    }
});
