//! Any text as the rules of an agent: they are refused in words, or they judge any screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapdeck_tape::agents::Agents;

fuzz_target!(|text: &str| {
    let Ok(agents) = Agents::new(&[("own".to_owned(), text.to_owned())]) else { return };
    let names: Vec<String> = agents.names().into_iter().map(str::to_owned).collect();
    for name in names {
        let _ = agents.rules(&name);
    }
    let _ = agents.for_command(&["sh".to_owned(), "-c".to_owned()]);
});
