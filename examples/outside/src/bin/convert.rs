//! Converts a recording with progress, checks it, and repairs one that was cut off.

use tapdeck::Recording;
use tapdeck::convert::To;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tape = Recording::open("demo.ahr")?;
    for (to, name) in [(To::Cast, "demo.cast"), (To::Html, "demo.html"), (To::Txt, "demo.txt")] {
        let progress = move |done, total| println!("{name}: {done} of {total} bytes");
        let done = tape.convert(to).progress(progress).write(name)?;
        println!("{name}: {} events; not carried: {:?}", done.events, done.losses);
    }
    println!("whole: {}", tape.verify()?.is_whole());

    let bytes = std::fs::read("demo.ahr")?;
    std::fs::write("torn.ahr", &bytes[..bytes.len() - 20])?;
    let torn = Recording::open("torn.ahr")?;
    println!("torn: {:?}", torn.verify()?.problems);
    println!("lost: {} bytes", torn.repair_to("clean.ahr")?.lost_bytes());
    println!("clean: {}", Recording::open("clean.ahr")?.verify()?.is_whole());
    Ok(())
}
