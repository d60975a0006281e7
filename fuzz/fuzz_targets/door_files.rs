//! Any bytes as the file of tokens that opens a session's door.
#![no_main]

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use libfuzzer_sys::fuzz_target;
use tapdeck_serve::live::Grants;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("tapdeck-fuzz-{}", std::process::id()));
    let mut options = std::fs::File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    file.expect("a file").write_all(data).expect("written");
    let _ = Grants::from_file(&path);
});
