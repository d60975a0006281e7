//! `tapdeck::testing` as the tests of other projects use it.

use std::time::Duration;
use tapdeck::Exit;
use tapdeck::testing::check::{
    BytesTest, Cause, Claim, Condition, Count, Fact, Happening, Point, Trace, Window,
};
use tapdeck::testing::{Program, Session, TestResult};

fn sh(script: &str) -> Program {
    Program::new(["sh", "-c", script]).size(40, 6)
}

#[test]
fn a_dialogue() -> TestResult {
    let mut session =
        sh("printf 'name? '; read n; printf '\\033[1mhello %s\\033[m\\n' \"$n\"; exit 3").start()?;
    session.expect("name? ")?;
    session.snapshot("asked");
    session.type_text("Ada\n")?;
    session.expect("hello Ada")?;
    assert_eq!(session.wait_exit()?, Exit::Code(3));
    let finished = session.finish()?;
    assert!(finished.success().is_err());
    let hello = || Condition { facts: vec![Fact::Contains("hello".into())], ..Condition::default() };
    finished.check(Claim::At(
        Point::mark("asked"),
        Condition { facts: vec![Fact::Lacks("hello".into())], ..hello() },
    ))?;
    finished.check(Claim::Eventually(Window::default(), hello()))?;
    let order = vec![Happening::Mark("asked".into()), Happening::Input(b"Ada\r".to_vec()), Happening::End];
    finished.check(Claim::Trace(Window::default(), Trace::Order(order)))?;
    finished.check(Claim::Trace(Window::default(), Trace::Eof(true)))?;
    let wrong = finished.check(Claim::Never(Window::default(), hello())).expect_err("it was there");
    assert!(wrong.to_string().contains("2 │hello Ada\n      │^^^^^"), "{wrong}");
    Ok(())
}

/// Whoever waits for a program that is gone must not wait for its patience.
#[test]
fn a_program_that_ends_ends_the_wait() -> TestResult {
    let mut session = sh("echo bye").patience(Duration::from_secs(600)).start()?;
    let failure = session.expect("hello").expect_err("it never comes");
    assert!(failure.message().contains("has ended with code 0"), "{failure}");
    assert!(failure.details().contains("bye"), "{failure}");
    assert!(session.type_text("x").is_err(), "nobody is there to take it");
    session.finish()?.success()
}

#[test]
fn more_than_a_terminal_holds_can_be_typed() -> TestResult {
    let lines = "0123456789abcdef\n".repeat(20_000);
    let mut session = sh("stty -icanon -echo; echo ready; head -c 340000 | wc -c").start()?;
    session.expect("ready")?;
    session.type_text(&lines)?;
    session.expect("340000")?;
    let finished = session.finish()?;
    finished.check(Claim::Trace(
        Window::default(),
        Trace::Input(BytesTest::Is(lines.replace('\n', "\r").into_bytes())),
    ))
}

#[test]
fn sizes_signals_and_limits() -> TestResult {
    let mut session =
        sh("trap 'stty size' WINCH; trap 'echo got; exit 7' INT; echo ready; while :; do sleep 0.05; done")
            .timeout(Duration::from_secs(60))
            .start()?;
    session.expect("ready")?;
    session.resize(50, 10);
    session.expect("10 50")?;
    session.wait_stable(Duration::from_millis(50))?;
    session.signal("INT")?;
    assert!(session.signal("NONSENSE").is_err() && session.send("NoSuchKey").is_err());
    session.expect("got")?;
    let finished = session.finish()?;
    assert_eq!(finished.exit, Exit::Code(7));
    finished.check(Claim::Trace(Window::default(), Trace::Signals(vec!["INT".into()])))?;
    let late = sh("sleep 300").timeout(Duration::from_millis(300)).start()?.finish()?;
    assert_eq!(late.timeline.end.cause, Cause::Timeout);
    late.check(Claim::Trace(Window::default(), Trace::Leaked(Count::exactly(0))))
}

/// A test that gives up, or panics, leaves nobody behind.
#[test]
fn dropping_a_session_ends_everything() -> TestResult {
    let mut session = sh("sleep 301 & echo pid $! .; wait").start()?;
    session.expect(" .")?;
    let text = session.text();
    let pid = text.split_whitespace().nth(1).expect("a number").to_owned();
    drop(session);
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    Ok(())
}

#[test]
fn what_cannot_be_started_is_told() {
    let Err(e) = Session::start(["no-such-program-anywhere"]) else { panic!("there is no such program") };
    assert!(e.message().contains("not found"), "{e}");
}

/// What a scenario file can say, a test can say in the same words.
#[test]
fn conditions_and_claims_in_the_words_of_scenarios() -> TestResult {
    let mut session =
        sh("printf '\\033[?1049h\\033[7mready\\033[m'; read x; printf '\\033[?1049l'; exit 4").start()?;
    session.expect_screen("{contains: ready, alternate: true, style: {text: ready, inverse: true}}")?;
    session.snapshot("ready");
    session.type_text("\n")?;
    let finished = session.finish()?;
    finished.assert("{at: '@ready', screen: {cursor: {row: 1, col: 6}}}")?;
    finished.assert("order: [{shows: ready}, {input: \"\\r\"}, '@end']")?;
    finished.assert("exit: 4")?;
    let wrong = finished.assert("never: {contains: ready}").expect_err("it was there");
    assert!(wrong.details().contains("1 │ready\n      │^^^^^"), "{wrong}");
    let wrong = finished.assert("nevre: {contains: ready}").expect_err("no such claim");
    assert!(wrong.message().contains("nevre"), "{wrong}");
    Ok(())
}
