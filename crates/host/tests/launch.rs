//! Sessions in the foreground of a process, as a program that uses the library starts them. A test
//! program of its own, because the signals of the process become the session's.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use tapdeck_core::{Exit, Role};
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{Launch, Unanswered};

fn headless(words: &[&str]) -> Launch {
    let mut launch = Launch::new(CommandSpec::new(words));
    launch.headless = true;
    launch.no_input = true;
    launch
}

/// Asked where it is opened, the session's own thread waited for itself, for ever.
#[test]
fn what_is_opened_asks_from_a_thread_of_its_own_and_what_cannot_start_says_why() {
    let launch = headless(&["sh", "-c", "exit 3"]);
    let mut opened = None;
    let finished = launch.run_with(None, |session| {
        let own = session.handle.join("me", Role::Bot).map(drop);
        let handle = session.handle.clone();
        let other = std::thread::spawn(move || handle.join("me", Role::Bot).map(drop));
        opened = Some((own, other));
    });
    assert_eq!(finished.outcome.expect("it ran").exit, Exit::Code(3));
    let (own, other) = opened.expect("opened");
    assert_eq!(own, Err(Unanswered::OwnThread));
    // It may have come too late; but it was answered.
    assert!(matches!(other.join().expect("no panic"), Ok(()) | Err(Unanswered::SessionOver)));

    let mut unknown = headless(&["true"]);
    unknown.tty_settings = vec![("ECHO".into(), 0), ("NOSUCH".into(), 1)];
    for (launch, why) in [
        (headless(&[]), "no command was given to run"),
        (headless(&[""]), "\"\": command not found"),
        (unknown, "no setting of a terminal is called \"NOSUCH\""),
    ] {
        let error = launch.run(None).outcome.expect_err("it cannot start").to_string();
        assert!(error.contains(why), "{error}");
    }
}
