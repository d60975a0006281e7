//! What a test needs of the machine it runs on.
//!
//! A test that cannot run returns early, which the test runner counts as a success. So it reports
//! itself as skipped, by name: on standard error, and in the file that [`REPORT`] names, which
//! `cargo xtask ci` collects and prints.
//!
//! ```
//! # fn test() {
//! if !tapdeck_needs::has("no-such-program") {
//!     return;
//! }
//! # unreachable!("it is not installed");
//! # }
//! # test();
//! ```

use std::io::Write;
use std::path::PathBuf;

/// The environment variable with the path of the file that skipped tests are appended to.
pub const REPORT: &str = "SKIPPED_TESTS";

/// Returns the path of an installed program. Looks in `PATH` and where Debian keeps servers.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns whether a program is installed; if it is not, reports the running test as skipped.
#[must_use]
pub fn has(program: &str) -> bool {
    let found = find(program).is_some();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// Reports the running test as skipped.
///
/// # Panics
/// If the report cannot be written: a skipped test must not look like one that passed.
pub fn skip(why: &str) {
    let line = format!("{}: {why}\n", test_name());
    #[expect(clippy::print_stderr, reason = "the log of the test shows that it was skipped")]
    {
        eprint!("SKIPPED {line}");
    }
    if let Some(path) = std::env::var_os(REPORT) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // One write a line, so that tests in several processes do not mix theirs.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the report of skipped tests");
    }
}

/// Returns the name that the test runner gave the running test.
fn test_name() -> String {
    // nextest runs one test per process, on the main thread; `cargo test` names each test's thread.
    let name = std::env::var("NEXTEST_TEST_NAME").ok();
    name.unwrap_or_else(|| std::thread::current().name().unwrap_or("a test").to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn programs_are_found_by_name() {
        assert!(super::find("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(super::find("no-such-program"), None);
    }

    #[test]
    fn the_running_test_is_named() {
        assert_eq!(super::test_name(), "tests::the_running_test_is_named");
    }
}
