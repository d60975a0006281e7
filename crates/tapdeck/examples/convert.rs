//! Converts a recording to other formats, and repairs a damaged one.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use tapdeck::convert::To;
use tapdeck::{Recording, Session};

fn main() -> tapdeck::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the files");
    let file = |name: &str| folder.path().join(name);
    let session = Session::builder(["sh", "-c", "seq 1 200"]).size(40, 6).record(file("demo.ahr")).spawn()?;
    session.wait_exit(Duration::from_secs(10))?;
    session.stop()?;

    let tape = Recording::open(file("demo.ahr"))?;
    for (to, name) in [(To::Cast, "demo.cast"), (To::Html, "demo.html"), (To::Txt, "demo.txt")] {
        let done = tape.convert(to).progress(|_, _| ()).write(file(name))?;
        println!("{name}: {} events, {} bytes, not carried: {:?}", done.events, done.written, done.losses);
    }

    // A recording that was cut off, and what can be saved of it.
    let bytes = std::fs::read(file("demo.ahr")).expect("the recording");
    std::fs::write(file("torn.ahr"), &bytes[..bytes.len() - 20]).expect("a torn copy");
    let torn = Recording::open(file("torn.ahr"))?;
    println!("torn: {:?}", torn.verify()?.problems);
    let repaired = torn.repair_to(file("clean.ahr"))?;
    println!("repaired: {} bytes of output lost", repaired.lost_bytes());
    assert!(Recording::open(file("clean.ahr"))?.verify()?.is_whole());
    Ok(())
}
