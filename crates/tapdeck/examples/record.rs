//! Records a program, opens the recording, and looks at it in the middle and at its end.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use tapdeck::{Recording, Session};

fn main() -> tapdeck::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the recording");
    let file = folder.path().join("demo.ahr");

    let script = "for i in 1 2 3; do echo step $i; sleep 0.1; done";
    let session = Session::builder(["sh", "-c", script]).size(40, 6).record(&file).spawn()?;
    let finished = session.wait_exit(Duration::from_secs(10))?;
    println!("{}", finished.exit);
    session.stop()?;

    let mut tape = Recording::open(&file)?;
    tape.seek(tape.duration()? / 2)?;
    println!("in the middle:\n{}", tape.screen());
    tape.seek(tape.duration()?)?;
    println!("at the end:\n{}", tape.screen());
    assert!(tape.screen().contains("step 3") && tape.verify()?.is_whole());
    Ok(())
}
