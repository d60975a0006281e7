//! `tapdeck::Session` and `tapdeck::Recording` as other programs use them.

use std::sync::mpsc::channel;
use std::time::Duration;

use tapdeck::{Error, Event, Exit, Recording, Role, Session, Update, quiet, row, text};

const LIMIT: Duration = Duration::from_secs(20);

fn is_shared<T: Clone + Send + Sync>() {}

#[test]
fn a_session_is_driven_recorded_and_read_again() -> tapdeck::Result<()> {
    is_shared::<Session>();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("demo.ahr");
    let session = Session::builder(["sh"]).env("PS1", "> ").size(60, 10).record(&file).private().spawn()?;
    session.wait_for(row("^> $") | text("> "), LIMIT)?;
    session.type_line("echo answer $((6*7))")?;
    let screen = session.wait_for(row("^answer 42$"), LIMIT)?;
    assert!(screen.contains("answer 42") && screen.size().cols == 60, "{screen:?}");
    session.resize(40, 5)?;
    assert_eq!(session.screen().size().cols, 40);
    session.type_line("exit 3")?;
    assert_eq!(session.wait_exit(LIMIT)?.exit, Exit::Code(3));
    let finished = session.stop()?;
    assert_eq!(finished.recording.expect("recorded").path, file);
    let last = session.screen();
    let mut tape = Recording::open(&file)?;
    assert!(!tape.screen().contains("answer 42"));
    tape.seek(tape.duration()?)?;
    assert_eq!(tape.screen(), last);
    Ok(())
}

#[test]
fn a_wait_in_vain_shows_the_screen_and_a_pattern_is_checked_first() -> tapdeck::Result<()> {
    let session = Session::builder(["sh", "-c", "echo here; read x; exit 7"]).private().spawn()?;
    session.wait_for("here", LIMIT)?;
    session.wait_for(quiet(Duration::from_millis(50)), LIMIT)?;
    let timeout = session.wait_for(row("^there$").in_rows(0..2), Duration::from_millis(50));
    let timeout = timeout.expect_err("it never comes");
    assert!(timeout.is_timeout() && timeout.screen().expect("a screen").contains("here"));
    let said = timeout.to_string();
    assert!(said.contains("a match of /^there$/ in rows 1 to 2") && said.contains("here"), "{said}");
    assert!(matches!(session.wait_for(row("("), LIMIT), Err(Error::Invalid(_))));
    assert!(matches!(session.press("NoSuchKey"), Err(Error::Invalid(_))));
    session.press("Enter")?;
    let ended = session.wait_for("there", LIMIT).expect_err("it ends");
    assert!(matches!(ended, Error::Ended { exit: Exit::Code(7), .. }), "{ended}");
    assert!(matches!(session.type_text("x"), Err(Error::Over)));
    Ok(())
}

#[test]
fn what_cannot_start_says_so() {
    let missing = Session::builder(["/no/such/program"]).private().spawn();
    assert!(matches!(missing, Err(Error::Launch(_))), "{missing:?}");
}

#[test]
fn a_function_is_a_program_and_a_tap_sees_everything() -> tapdeck::Result<()> {
    let (tell, told) = channel();
    let adder = |console: &tapdeck::backend::Console| {
        let mut sum = 0;
        while let Some(line) = console.read_line()? {
            sum += String::from_utf8_lossy(&line).trim().parse::<i32>().unwrap_or(0);
            console.emit(format!("{sum}\r\n").as_bytes())?;
        }
        Ok(0)
    };
    let session = Session::builder(["adder"])
        .in_process(adder)
        .tap(move |event| {
            if let Event::Output { bytes, .. } = event {
                let _ = tell.send(bytes.clone());
            }
        })
        .private()
        .spawn()?;
    session.type_line("40")?;
    session.type_line("2")?;
    session.wait_for(row("^42$"), LIMIT)?;
    session.stop()?;
    let seen: Vec<u8> = told.try_iter().flatten().collect();
    assert_eq!(seen, b"40\r\n42\r\n");
    Ok(())
}

#[test]
fn updates_come_in_order_and_end() -> tapdeck::Result<()> {
    let session = Session::builder(["sh", "-c", "read x; echo \"got $x\""]).private().spawn()?;
    let mut updates = session.subscribe();
    let person = session.party("ada", Role::Human)?;
    person.take()?;
    assert!(matches!(session.type_text("x"), Err(Error::Refused(_))), "a program waits for a person");
    person.type_line("it")?;
    let all: Vec<Update> = updates.by_ref().collect();
    assert!(all.contains(&Update::Holder(Some("ada".into()))), "{all:?}");
    assert!(all.iter().any(|u| matches!(u, Update::Frame(screen) if screen.contains("got it"))), "{all:?}");
    assert_eq!(all.last(), Some(&Update::Closed(Some(Exit::Code(0)))));
    assert!(updates.next_within(Duration::ZERO).is_none());
    Ok(())
}

/// Only typing claimed the stick; without it the session refused.
#[test]
fn a_session_is_resized_and_stopped_from_outside_before_anything_is_typed() -> tapdeck::Result<()> {
    let name = format!("stop-{}", std::process::id());
    let session = Session::builder(["cat"]).size(40, 6).name(&name).spawn()?;
    let remote = tapdeck::Remote::find(&name)?;
    remote.resize(50, 8)?;
    assert_eq!(session.screen().size().cols, 50);
    let person = session.party("ada", Role::Human)?;
    person.take()?;
    assert!(remote.stop().is_err(), "a person drives");
    person.release()?;
    remote.stop()?;
    assert_eq!(session.wait_exit(LIMIT)?.exit, Exit::Signal(15));
    Ok(())
}

#[test]
fn a_session_is_asked_and_its_question_answered() -> tapdeck::Result<()> {
    use tapdeck::turns::{AnswerOutcome, AskOutcome, Choice, Outcome};
    let session = Session::builder(["bash", "--norc", "--noediting"]).env("PS1", "$ ").spawn()?;
    let remote = session.remote()?;
    let asked = remote.ask("echo one; echo two", LIMIT)?;
    assert_eq!(asked.outcome, AskOutcome::Answered, "{asked:?}");
    assert_eq!(asked.answer.as_deref(), Some("one\ntwo\n"));
    // What the session itself types claims the stick.
    session.type_line("true")?;
    let remote = session.remote()?;
    let asked = remote.ask("read -p 'Sure? [y/N] ' a; echo \"said $a\"", LIMIT)?;
    assert_eq!(asked.outcome, AskOutcome::Blocked, "{asked:?}");
    let question = remote.explain()?.question.expect("a question");
    assert_eq!((question.text.as_str(), question.options.len()), ("Sure? [y/N]", 2));
    let answered = remote.answer(&Choice::Number(9))?;
    assert_eq!(answered.outcome, AnswerOutcome::NoSuchChoice, "{answered:?}");
    let answered = remote.answer(&Choice::Yes)?;
    assert_eq!((answered.outcome, answered.sent.as_deref()), (AnswerOutcome::Answered, Some("y")));
    session.wait_for(row("^said y$"), LIMIT)?;
    let submitted = remote.submit("echo three", LIMIT)?;
    assert_eq!(submitted.outcome, Outcome::Submitted, "{submitted:?}");
    session.wait_for(row("^three$"), LIMIT)?;
    let asked = remote.ask("echo four", LIMIT)?;
    let turns = remote.turns()?;
    assert_eq!(turns.last().map(|turn| turn.turn_id.clone()), asked.turn_id, "{turns:?}");
    session.stop()?;
    Ok(())
}

#[test]
fn stopping_ends_the_lingering() -> tapdeck::Result<()> {
    let name = format!("linger-{}", std::process::id());
    let session = Session::builder(["true"]).name(&name).linger(Duration::from_secs(600)).spawn()?;
    session.wait_exit(LIMIT)?;
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(session.stop().map(|finished| finished.exit)));
    assert_eq!(told.recv_timeout(LIMIT).expect("it does not linger")?, Exit::Code(0));
    assert!(tapdeck::Remote::find(&name).is_err());
    Ok(())
}

#[test]
fn a_session_is_found_watched_and_driven_from_outside() -> tapdeck::Result<()> {
    use tapdeck::{Remote, Terminal};
    let name = format!("lib-{}", std::process::id());
    let script = "printf '\\033[1mname\\033[m? '; read n; echo \"hello $n\"; read x; exit 5";
    let session = Session::builder(["sh", "-c", script]).size(40, 6).name(&name).spawn()?;
    let remote = Remote::find(&name)?;
    assert_eq!(remote.id(), session.id().expect("it is listed"));
    let mut updates = remote.subscribe()?;
    remote.wait_for("name?", LIMIT)?;
    assert_eq!(remote.screen()?, session.screen());
    // Both through the one trait.
    let both: [&dyn Terminal; 2] = [&remote, &session];
    both[0].type_line("Ada")?;
    for terminal in both {
        terminal.wait_for(row("^name. Ada$") & text("hello Ada"), LIMIT)?;
    }
    let timeout = remote.wait_for("never", Duration::from_millis(50)).expect_err("it never comes");
    assert!(timeout.screen().expect("a screen").contains("hello Ada"), "{timeout}");
    remote.press("Enter")?;
    assert_eq!(session.wait_exit(LIMIT)?.exit, Exit::Code(5));
    let all: Vec<Update> = updates.by_ref().collect();
    assert!(
        all.iter().any(|u| matches!(u, Update::Frame(screen) if screen.contains("hello Ada"))),
        "{all:?}"
    );
    assert_eq!(all.last(), Some(&Update::Closed(Some(Exit::Code(5)))));
    session.stop()?;
    assert!(Remote::find(&name).is_err());
    Ok(())
}
