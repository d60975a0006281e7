//! Drives an interactive program: types, presses keys, waits for what the screen shows.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use tapdeck::{Session, quiet, row, text};

const LIMIT: Duration = Duration::from_secs(10);

fn main() -> tapdeck::Result<()> {
    let script = "printf 'name? '; read name; echo \"hello $name\"; trap 'echo bye; exit 3' INT; sleep 60";
    let session = Session::builder(["sh", "-c", script]).size(40, 6).spawn()?;
    session.wait_for(text("name? ") & quiet(Duration::from_millis(50)), LIMIT)?;
    session.type_line("Ada")?;
    println!("{}", session.wait_for(row("^hello Ada$"), LIMIT)?);

    // A wait in vain says what it waited for, and shows the screen.
    let late = session.wait_for(row("^never$").in_rows(0..2), Duration::from_millis(100));
    println!("{}", late.expect_err("it is never shown"));

    session.press("C-c")?;
    println!("{}", session.wait_exit(LIMIT)?.exit);
    Ok(())
}
