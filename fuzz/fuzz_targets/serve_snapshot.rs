//! Any bytes as messages of the snapshot protocol: lengths are bounded, decoding never panics, and
//! whatever is understood is written again with the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_serve::snapshot::{MAX_FRAME, Request, Response, frame_len};

fuzz_target!(|data: &[u8]| {
    if let Some(head) = data.first_chunk()
        && let Ok(len) = frame_len(*head)
    {
        assert!(len <= MAX_FRAME);
    }
    if let Ok(request) = Request::from_bytes(data)
        && let Ok(frame) = request.to_frame()
    {
        assert_eq!(&frame[4..], data);
    }
    if let Ok(response) = Response::from_bytes(data)
        && data.len() <= MAX_FRAME
    {
        assert_eq!(&response.to_frame()[4..], data);
    }
});
