//! `less`, driven and checked from the tests of another project.

use tapdeck::testing::{Program, Session, TestResult};

#[test]
fn less_searches() -> TestResult {
    let mut less = Session::start(["less", "Cargo.toml"])?;
    less.expect("[package]")?;
    less.type_text("/dev-dependencies\n")?;
    less.expect("tapdeck = {")?;
    less.send("q")?;
    less.finish()?.success()
}

#[test]
fn less_follows_a_resize() -> TestResult {
    let mut less = Program::new(["less", "Cargo.toml"]).size(40, 6).env("LESS", "").start()?;
    less.expect("Cargo.toml")?;
    // less notices a new size for certain only while it waits for a key.
    less.wait_stable(std::time::Duration::from_millis(200))?;
    less.resize(30, 4);
    // The prompt of a screen that was painted anew: less has heard of the size.
    less.expect(":")?;
    less.send("G")?;
    less.expect("(END)")?;
    assert!(less.text().lines().count() <= 4, "{}", less.text());
    less.send("q")?;
    less.finish()?.success()
}

/// A wait in vain says what was on the screen instead.
#[test]
fn a_failure_shows_the_screen() -> TestResult {
    let patience = std::time::Duration::from_millis(300);
    let mut less = Program::new(["less", "Cargo.toml"]).patience(patience).start()?;
    less.expect("[package]")?;
    let failure = less.expect("no such text").expect_err("it is not there");
    assert!(failure.to_string().contains("[package]"), "{failure}");
    less.send("q")?;
    less.finish()?.success()
}
