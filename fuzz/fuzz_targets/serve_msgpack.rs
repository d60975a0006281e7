//! Any bytes as a message to the broker: nothing is allocated that the bytes do not cover, and what can be read is
//! written in a form that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_serve::broker::msgpack::Value;

fuzz_target!(|data: &[u8]| {
    if let Ok(value) = Value::decode(data) {
        let written = value.encode();
        let again = Value::decode(&written).expect("what was written can be read");
        // By their bytes: a number that is none is unequal to itself.
        assert_eq!(again.encode(), written);
    }
});
