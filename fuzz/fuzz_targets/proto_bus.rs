//! Any text as lines of the bus, from a client and from a session: each is refused, or read as a
//! message that reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_proto::bus::{Line, Push, Reply, Request};

fuzz_target!(|text: &str| {
    for line in text.split('\n') {
        let Line { verb, payload, .. } = Line::split(line);
        let _ = Line::split(line).has_valid_id();
        if let Ok(request) = Request::parse(verb, payload) {
            let again = Request::parse(request.verb(), &request.payload());
            assert!(again.is_ok(), "{request:?}");
        }
        if let Ok(Some(reply)) = Reply::parse(verb, payload) {
            assert!(matches!(Reply::parse(reply.verb(), &reply.payload()), Ok(Some(_))), "{reply:?}");
        }
        if let Ok(Some(push)) = Push::parse(verb, payload) {
            assert!(matches!(Push::parse(push.verb(), &push.payload()), Ok(Some(_))), "{push:?}");
        }
    }
});
