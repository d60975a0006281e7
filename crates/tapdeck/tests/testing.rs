//! `tapdeck::testing` as the tests of other projects use it.

use std::time::Duration;
use tapdeck::Exit;
use tapdeck::testing::check::{
    BytesTest, Cause, Claim, Condition, Count, Fact, Happening, Point, Trace, Window,
};
use tapdeck::testing::{Button, Click, Drag, How, Mods, Program, Scroll, Session, Target, TestResult};

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

/// A wait for a program that has ended fails at once, not when its time is over.
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

/// A test that gives up, or panics, leaves no process behind.
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

/// The line of the test is what its author looks for first; the region says where the text was
/// looked for.
#[test]
fn an_error_names_the_line_and_the_region() -> TestResult {
    let mut session = sh("echo here; read x").start()?;
    session.expect("here")?;
    let line = line!() + 1;
    let wrong = session.expect_within(&region("here", 2, 3), Duration::ZERO).expect_err("it is in row 1");
    assert_eq!((wrong.location().file(), wrong.location().line()), (file!(), line));
    let said = wrong.to_string();
    assert!(said.starts_with(&format!("{}:{line}: ", file!())), "{said}");
    assert!(said.contains("in rows 2 to 3"), "{said}");
    let line = line!() + 1;
    let wrong = session.send("NoSuchKey").expect_err("there is no such key");
    assert_eq!(wrong.location().line(), line);
    Ok(())
}

fn region(text: &str, first: u16, last: u16) -> Condition {
    let mut condition = Condition { facts: vec![Fact::Contains(text.into())], ..Condition::default() };
    (condition.look.region.top, condition.look.region.bottom) = (first - 1, last - 1);
    condition
}

/// A recording that could not store its scenario had replaced the cassette already, and the two no
/// longer fitted.
#[test]
fn a_scenario_that_cannot_be_stored_keeps_its_cassette() -> TestResult {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hello.scenario.yaml");
    let scenario = |extra: &str| {
        format!(
            "size: 20x3\nprogram:\n  run: [sh, -c, 'echo hello']\nassert:\n  - eventually: {{contains: hello}}\n{extra}"
        )
    };
    std::fs::write(&path, scenario("")).expect("written");
    tapdeck::testing::run_all(&path, How::Record)?;
    let bound = std::fs::read_to_string(&path).expect("read");
    let manifest = folder.path().join("hello.cassette/manifest.json");
    let kept = std::fs::read(&manifest).expect("a cassette");
    // The text is to be stored in a folder that does not exist, so storing it fails.
    let more = "  - {screen: {file: no/such/folder/end.txt}}\n";
    std::fs::write(&path, format!("{bound}{more}")).expect("written");
    let failed = tapdeck::testing::run_all(&path, How::Record).expect_err("it cannot be stored");
    assert!(failed.details().contains("no/such/folder"), "{failed}");
    assert_eq!(std::fs::read(&manifest).expect("still there"), kept);
    Ok(())
}

fn contains(text: &str) -> Condition {
    Condition { facts: vec![Fact::Contains(text.into())], ..Condition::default() }
}

/// A screen in the middle of a synchronised update is no screen: a wait does not see it, unless the
/// program leaves it so.
#[test]
fn a_wait_sees_complete_screens_only() -> TestResult {
    let mut session =
        sh(r"stty -echo; printf 'old'; read x; printf '\033[?2026h\rhalf'; kill -WINCH $$; read x
        printf '\rnew \033[?2026l\033[?2026h\rmore'; read x; printf '\033[?2026l\033[?2026hstuck'; sleep 300")
        .start()?;
    session.expect("old")?;
    session.type_text("\n")?;
    let wrong = session.expect_within(&contains("half"), Duration::from_millis(300)).expect_err("half drawn");
    assert!(wrong.details().contains("│old"), "{wrong}");
    session.type_text("\n")?;
    session.expect("new")?;
    session.type_text("\n")?;
    session.expect("more")?;
    session.expect("stuck")?;
    let finished = {
        session.cancel();
        session.finish()?
    };
    finished.check(Claim::Never(Window::default(), contains("half")))?;
    finished.check(Claim::Eventually(Window::default(), contains("new")))
}

/// What is compared is the screen: a clock that is masked, and output that draws the same again, do
/// not disturb it.
#[test]
fn a_stable_screen_is_one_that_looks_the_same() -> TestResult {
    let script = r"i=0; while :; do i=$((i+1)); printf '\033[1;1H%03d\033[2;1Hready' $i; sleep 0.02; done";
    let quiet = Duration::from_millis(300);
    let limit = Duration::from_secs(2);
    let mut session = sh(script).start()?;
    session.expect("ready")?;
    let wrong = session.stable_within(quiet, &Condition::default(), limit).expect_err("it counts");
    assert!(wrong.message().contains("never stayed the same for 300ms"), "{wrong}");
    assert!(wrong.details().contains("what changed last"), "{wrong}");
    let mut below = contains("ready");
    below.look.region.top = 1;
    let patience = Duration::from_secs(20);
    session.stable_within(quiet, &below, patience)?;
    let mut masked = Condition::default();
    masked.look.masks.push(tapdeck::testing::check::Region { bottom: 0, ..masked.look.region });
    session.stable_within(quiet, &masked, patience)?;
    below.facts = vec![Fact::Contains("never there".into())];
    let wrong = session.stable_within(quiet, &below, quiet * 2).expect_err("it is not there");
    assert!(wrong.message().contains("\"never there\" is not on the screen"), "{wrong}");
    Ok(())
}

/// A program that asks for the mouse with these modes, and shows what it is sent.
fn mouse(modes: &str, bytes: usize) -> Program {
    let modes: String = modes.split(' ').map(|m| format!(r"\033[?{m}h")).collect();
    sh(&format!("stty -icanon -echo; printf '{modes}one OK two'; head -c {bytes} | cat -v; read x"))
}

/// The mouse goes to where a text is, encoded as the program asked for it.
#[test]
fn the_mouse_is_encoded_as_the_program_wants_it() -> TestResult {
    let limit = Duration::from_secs(20);
    let mut session = mouse("1000 1006", 18).start()?;
    session.click("OK")?;
    session.expect("^[[<0;5;1M^[[<0;5;1m")?;
    // In pixels, from the middle of the cell; the terminal says that a cell has 10 by 20.
    let mut session = mouse("1000 1016", 22).start()?;
    session.click("OK")?;
    session.expect("^[[<0;45;10M^[[<0;45;10m")?;
    let mut session = mouse("1000", 12).start()?;
    session.click("OK")?;
    session.expect("^[[M %!^[[M#%!")?;
    let mut session = mouse("1002 1006", 38).start()?;
    let cell = |row, col| Target::Cell { row, col };
    let drag = Drag { from: "OK".into(), to: cell(0, 6), button: Button::Right, mods: Mods::CTRL };
    session.drag_along(&drag, limit)?;
    session.expect("^[[<18;5;1M^[[<50;6;1M^[[<50;7;1M^[[<18")?;
    let mut session = mouse("1000 1006", 20).start()?;
    let scroll = Scroll { at: Some("two".into()), wheel: Button::WheelDown, notches: 2, mods: Mods::NONE };
    session.scroll_by(&scroll, limit)?;
    session.expect("^[[<65;9;1M^[[<65;9;1M")?;
    // Without being asked, a terminal reports nothing.
    let mut session = sh("echo OK OK; read x").start()?;
    session.expect("OK")?;
    let wrong = session.click("OK OK").expect_err("it wants no mouse");
    assert!(wrong.message().contains("does not ask for mouse events"), "{wrong}");
    let wrong = session.click("OK").expect_err("there are two");
    assert!(wrong.message().contains("is there 2 times, in rows 1, 1: say more of it"), "{wrong}");
    let outside = Click { at: cell(6, 0), button: Button::Left, times: 1, mods: Mods::NONE };
    let wrong = session.click_on(&outside, limit).expect_err("there are six rows");
    assert!(wrong.message().contains("row 7, column 1 is outside of the screen"), "{wrong}");
    Ok(())
}

/// The report of a test in Rust is that of the command.
#[test]
fn a_folder_of_scenarios_is_run_with_a_report() -> TestResult {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = |text: &str| {
        format!("program: {{run: [echo, hello]}}\nassert:\n  - {{screen: {{contains: {text}}}}}\n")
    };
    std::fs::write(folder.path().join("a.scenario.yaml"), scenario("hello")).expect("written");
    let report = folder.path().join("report");
    tapdeck::testing::run_all_reported(folder.path(), How::Live, &report)?;
    let page = || std::fs::read_to_string(report.join("index.html")).expect("a page");
    assert!(page().contains("1 passed, 0 failed"), "{}", page());
    std::fs::write(folder.path().join("b.scenario.yaml"), scenario("hullo")).expect("written");
    let failed = tapdeck::testing::run_all_reported(folder.path(), How::Live, &report);
    assert!(failed.expect_err("one fails").message().contains("1 of 2 scenarios failed"));
    assert!(page().contains("1 passed, 1 failed") && page().contains("data:image/svg+xml"), "{}", page());
    assert!(report.join("recording-2.html").is_file() && report.join("junit.xml").is_file());
    Ok(())
}
