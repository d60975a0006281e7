//! Watches a session from outside, as another process would: frames, turns, states and its end.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tapdeck::{Remote, Session, Update};

fn main() -> tapdeck::Result<()> {
    // Any session of the `tapdeck` command can be watched like this; here is one to have something
    // to watch.
    let name = format!("watch-{}", std::process::id());
    let script = "read x; echo working on $x; sleep 0.2; echo done";
    let session = Session::builder(["sh", "-c", script]).size(40, 6).name(&name).spawn()?;

    let remote = Remote::find(&name)?;
    println!("{} runs {:?}", remote.id(), remote.listing().map(|listing| &listing.command));
    let updates = remote.subscribe()?;
    remote.type_line("it")?;
    for update in updates {
        match update {
            Update::Frame(screen) => println!("--- frame\n{screen}"),
            Update::Turn { number, text, .. } => println!("--- turn {number}: {text}"),
            Update::State { state, rule } => println!("--- {state}: {rule}"),
            Update::Holder(party) => println!("--- {} types", party.as_deref().unwrap_or("no party")),
            Update::Gap(bytes) => println!("--- {bytes} bytes passed unseen"),
            Update::Closed(exit) => println!("--- ended: {exit:?}"),
            _ => {}
        }
    }
    assert!(session.stop()?.recording.is_none());
    Ok(())
}
