//! Any bytes as a message to or from the broker: they are refused, or read as a message whose frame
//! reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_proto::broker::{Message, Role};

/// Reads a frame that was written here.
fn read(frame: &[u8]) -> Message {
    Message::decode(&frame[4..]).expect("what was written can be read")
}

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::decode(data) else { return };
    for role in [Role::Wrapper, Role::Client] {
        if let Ok(request) = message.request(role) {
            assert_eq!(read(&request.frame(1)).request(role), Ok(request));
        }
    }
    if let Some(response) = message.response() {
        let again = read(&response.frame()).response().expect("a response");
        assert_eq!(again.id, response.id);
        assert_eq!(again.outcome.is_ok(), response.outcome.is_ok());
    }
    if let Some(inject) = message.inject() {
        assert_eq!(read(&inject.frame()).inject(), Some(inject));
    }
    // A greeting has one form; that it is read without harm is enough.
    let _ = message.hello();
});
