//! Watches a session of another process, by its name: its frames, states and turns.

use tapdeck::{Remote, Update};

fn main() -> tapdeck::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    for update in Remote::find(&name)?.subscribe()? {
        match update {
            Update::Frame(screen) => println!("frame:\n{screen}"),
            Update::State { state, rule } => println!("state: {state}, by {rule}"),
            Update::Turn { number, input, text, .. } => println!("turn {number}: {input}\n{text}"),
            Update::Closed(exit) => println!("closed: {exit:?}"),
            _ => {}
        }
    }
    Ok(())
}
