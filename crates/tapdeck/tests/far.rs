//! `tapdeck::Remote` at a session behind a network server.

use std::time::Duration;

use tapdeck::server::{Authority, Right, Server};
use tapdeck::{Credentials, Error, Exit, Remote, Role, Session, Update, quiet, row, text};

const LIMIT: Duration = Duration::from_secs(20);

/// A server for the sessions of this user: `driver` may drive, `watcher` may watch.
fn server(address: &str) -> tapdeck::Result<Server> {
    let auth = |secret: &str| match secret {
        "driver" => Some(Authority::of(Role::Bot).and(Right::Open)),
        "watcher" => Some(Authority::of(Role::Observer)),
        _ => None,
    };
    Server::builder().auth(auth).listen(address).start()
}

fn join(server: &Server, secret: &str, which: &str) -> tapdeck::Result<Remote> {
    let who = Credentials::token(secret).fingerprint(server.fingerprint().unwrap_or_default());
    Remote::dial(&server.addresses()[0], &who, which)
}

fn drives_a_session(address: &str, name: &str) -> tapdeck::Result<()> {
    let name = format!("{name}-{}", std::process::id());
    let script = "printf '\\033[1mname\\033[m? '; read n; echo \"hello $n\"; stty size; read x; \
                  trap 'exit 5' TERM; stty size; echo ready; while :; do read y; done";
    let session = Session::builder(["sh", "-c", script]).size(40, 6).name(&name).spawn()?;
    session.wait_for("name?", LIMIT)?;
    let server = server(address)?;

    let remote = join(&server, "driver", &name)?;
    assert_eq!(remote.id(), session.id().expect("it is listed"));
    assert_eq!(remote.screen()?, session.screen(), "the first picture is whole");
    let mut updates = remote.subscribe()?;
    let watcher = join(&server, "watcher", &name)?;
    let refused = watcher.type_line("no").expect_err("it may only watch");
    assert!(matches!(&refused, Error::Remote(why) if why.to_string().contains("read-only")), "{refused}");

    remote.type_line("Ada")?;
    let screen = remote.wait_for(row("^name. Ada$") & text("hello Ada") & text("6 40"), LIMIT)?;
    assert_eq!(screen.cell(0, 0), session.screen().cell(0, 0), "styles are kept");
    watcher.wait_for("hello Ada", LIMIT)?;
    remote.resize(50, 8)?;
    assert_eq!((remote.screen()?.size().cols, session.screen().size().rows), (50, 8));
    assert!(watcher.resize(20, 4).is_err(), "only the holder resizes");
    remote.press("Enter")?;
    remote.wait_for(text("8 50") & text("ready"), LIMIT)?;
    remote.wait_for(quiet(Duration::from_millis(30)), LIMIT)?;
    let timeout = remote.wait_for("never", Duration::from_millis(50)).expect_err("it never comes");
    assert!(timeout.is_timeout() && timeout.screen().expect("a screen").contains("ready"), "{timeout}");
    assert!(matches!(remote.signal("NONE"), Err(Error::Invalid(_))));
    assert!(matches!(remote.press("NoSuchKey"), Err(Error::Invalid(_))));

    remote.stop()?;
    assert_eq!(session.wait_exit(LIMIT)?.exit, Exit::Code(5));
    let all: Vec<Update> = updates.by_ref().collect();
    assert!(all.contains(&Update::Holder(Some("library".into()))), "{all:?}");
    assert!(all.iter().any(|u| matches!(u, Update::Frame(s) if s.contains("ready"))), "{all:?}");
    assert_eq!(all.last(), Some(&Update::Closed(Some(Exit::Code(5)))));
    let over = remote.wait_for("never", LIMIT).expect_err("it has ended");
    assert!(matches!(over, Error::Ended { exit: Exit::Code(5), .. }), "{over}");
    assert!(matches!(remote.type_text("x"), Err(Error::Over)));
    assert!(remote.screen()?.contains("ready"), "the last screen stays");
    session.stop()?;
    server.stop();
    Ok(())
}

/// `stop` only hung up, so a program that ignores that went on.
#[test]
fn a_program_that_ignores_the_hang_up_is_stopped() -> tapdeck::Result<()> {
    let name = format!("far-stop-{}", std::process::id());
    let script = "trap '' HUP; echo ready; while :; do read x; done";
    let session = Session::builder(["sh", "-c", script]).name(&name).spawn()?;
    session.wait_for("ready", LIMIT)?;
    let server = server("tls://127.0.0.1:0")?;
    let watcher = join(&server, "watcher", &name)?;
    assert!(watcher.stop().is_err(), "it may only watch");
    join(&server, "driver", &name)?.stop()?;
    assert_eq!(session.wait_exit(LIMIT)?.exit, Exit::Signal(15));
    server.stop();
    Ok(())
}

#[test]
fn a_session_is_driven_over_tls() -> tapdeck::Result<()> {
    drives_a_session("tls://127.0.0.1:0", "far-tls")
}

#[test]
fn a_session_is_driven_over_quic() -> tapdeck::Result<()> {
    drives_a_session("quic://127.0.0.1:0", "far-quic")
}

#[test]
fn what_cannot_be_joined_says_why() -> tapdeck::Result<()> {
    let server = server("tls://127.0.0.1:0")?;
    let unknown = join(&server, "driver", "no-such-session").expect_err("there is none");
    assert!(unknown.to_string().contains("no-such-session"), "{unknown}");
    assert!(matches!(join(&server, "stranger", "x"), Err(Error::Remote(_))));
    let who = Credentials::token("driver");
    assert!(matches!(Remote::dial("nowhere", &who, "x"), Err(Error::Invalid(_))));
    // A server whose key is not known: by default, and if the caller says so.
    for who in [who.clone(), who.ask_about_new(|new| !new.fingerprint.starts_with("sha256:"))] {
        let refused = Remote::dial(&server.addresses()[0], &who, "x").expect_err("it is not trusted");
        assert!(!refused.to_string().contains("no session"), "{refused}");
    }
    server.stop();
    Ok(())
}

#[test]
fn leaving_lets_the_session_go_on() -> tapdeck::Result<()> {
    let name = format!("far-leave-{}", std::process::id());
    let session = Session::builder(["cat"]).name(&name).spawn()?;
    let server = server("tls://127.0.0.1:0")?;
    let remote = join(&server, "driver", &name)?;
    remote.type_line("one")?;
    remote.wait_for("one", LIMIT)?;
    let mut updates = session.subscribe();
    drop(remote);
    let gone = |update: Update| matches!(update, Update::Holder(None));
    assert!(updates.by_ref().any(gone), "the stick is free again");
    session.type_line("two")?;
    session.wait_for("two", LIMIT)?;
    session.stop()?;
    server.stop();
    Ok(())
}
