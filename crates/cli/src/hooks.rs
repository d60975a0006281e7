//! The user's hooks, which run when a session's program changes its state.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Serialize;
use tapdeck_proto::bus::StateChange;
use tapdeck_serve::live::OnState;

use crate::config::{Config, Hooks};
use crate::ending::say;

/// The hook for changes of state, if the user has configured one. A program that is only run gets
/// its session even with a wrong configuration: a login shell may depend on it.
pub(crate) fn on_state() -> Option<OnState> {
    let hooks = Config::load().map(|config| config.hooks).unwrap_or_else(|wrong| {
        say(format_args!("{wrong}; no hooks are run"));
        Hooks::default()
    });
    if hooks.on_state.is_empty() && !hooks.bell && !hooks.notify {
        return None;
    }
    Some(Box::new(move |event| changed(&hooks, event)))
}

fn changed(hooks: &Hooks, event: &StateChange) {
    let state = event.judged.state.name();
    if !hooks.states.is_empty() && !hooks.states.iter().any(|s| s == state) {
        return;
    }
    let (session, rule) = (&event.session, &event.judged.rule);
    let name = event.session_name.as_ref().unwrap_or(session);
    if let Some((program, args)) = hooks.on_state.split_first() {
        let fill = |arg: &String| {
            arg.replace("{session}", session)
                .replace("{name}", name)
                .replace("{state}", state)
                .replace("{rule}", rule)
        };
        start(program, args.iter().map(fill).collect(), event);
    }
    if hooks.notify {
        notify(&format!("{name} is {state}"), rule, event);
    }
    if hooks.bell
        && let Ok(mut tty) = std::fs::OpenOptions::new().write(true).open("/dev/tty")
    {
        // A terminal that is gone rings no bell.
        let _ = tty.write_all(b"\x07");
    }
}

/// Tells the desktop.
pub(crate) fn notify(title: &str, text: &str, event: &impl Serialize) {
    start("notify-send", vec!["--".into(), title.to_owned(), text.to_owned()], event);
}

/// Starts a program and forgets it; one that cannot be started must not disturb the session.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's own program, without a terminal and without a session"
)]
fn start(program: &str, args: Vec<String>, event: &impl Serialize) {
    let spawned = Command::new(program)
        .args(args)
        .env("TAPDECK_STATE_EVENT", serde_json::to_string(event).unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut child) = spawned {
        // Reaps the program when it ends.
        let _ = std::thread::Builder::new().name("tapdeck-hook".into()).spawn(move || child.wait());
    }
}
