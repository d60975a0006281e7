//! Tests a program: drives it, waits for its screen, and checks claims about the whole session.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tapdeck::testing::{Program, TestResult};

fn main() -> TestResult {
    let script = "printf '\\033[1mready\\033[m\\n'; read name; echo \"hello $name\"; exit 3";
    let mut session = Program::new(["sh", "-c", script]).size(40, 6).start()?;
    session.expect_screen("{contains: ready, style: {text: ready, bold: true}}")?;
    session.snapshot("ready");
    session.type_text("Ada\n")?;
    session.expect("hello Ada")?;

    let finished = session.finish()?;
    finished.assert("exit: 3")?;
    finished.assert("never: {contains: panic}")?;
    finished.assert("order: ['@ready', {shows: hello Ada}, '@end']")?;

    // A failed claim names the line of the test, and shows the screen.
    println!("{}", finished.assert("eventually: {contains: goodbye}").expect_err("it was never shown"));
    Ok(())
}
