//! Runs a shell as a named, attachable, recorded session, and opens the recording.

use std::time::Duration;
use tapdeck::{Recording, Session, row};

fn main() -> tapdeck::Result<()> {
    let session = Session::builder(["bash", "--norc"])
        .size(80, 24).name("demo").record("demo.ahr").spawn()?; // own thread, listed, attachable
    session.type_line("echo answer $((6*7))")?;
    session.wait_for(row("^answer 42$"), Duration::from_secs(10))?;
    println!("{}", session.screen());
    println!("{}", session.stop()?.exit);
    let mut tape = Recording::open("demo.ahr")?;
    tape.seek(tape.duration()? / 2)?;
    println!("{}", tape.screen());
    Ok(())
}
