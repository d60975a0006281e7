//! `tapdeck hotkeys`: capturing and pasting turns with keys that work in every window of an X11
//! desktop.

use clap::Args;
use serde_json::{Value as Json, json};
use tapdeck_host::desktop::{Desktop, DesktopError};
use tapdeck_host::processes::terminals_above;
use tapdeck_host::registry::Listing;
use tapdeck_proto::broker::Request;
use tapdeck_proto::bus::Role;
use tapdeck_serve::broker::BrokerClient;
use tapdeck_term::keys::KeyPress;

use crate::config::Config;
use crate::ending::{Kind, print, say};
use crate::failure::{Failure, Result};
use crate::hooks::notify;
use crate::human;
use crate::sessions::{alive, ask, connect};

/// Capture and paste turns with global hotkeys (X11).
#[derive(Args)]
#[command(after_help = "\
The keys act on the session that runs or is attached in the focused window. If the window shows
several sessions, they do nothing and report it. Pasted text is not submitted. Write keys as
Ctrl+Alt+C or C-M-c, here or under [hotkeys] in the configuration. Needs a running broker. Runs until
you stop it.

Examples:
  tapdeck broker & tapdeck hotkeys &
  tapdeck hotkeys --capture Super+F1 --paste Super+F2 --notify")]
pub(crate) struct HotkeysArgs {
    /// Hotkey that captures the last turn of the session in the focused window [default:
    /// Ctrl+Alt+C]
    #[arg(long, value_name = "KEY")]
    capture: Option<String>,
    /// Hotkey that pastes the captured turn into the session in the focused window [default:
    /// Ctrl+Alt+V]
    #[arg(long, value_name = "KEY")]
    paste: Option<String>,
    /// Show a desktop notification for each action (notify-send)
    #[arg(long)]
    notify: bool,
    /// Print each action as JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
}

/// The action of a key.
#[derive(Clone, Copy)]
enum Act {
    Capture,
    Paste,
}

impl From<DesktopError> for Failure {
    fn from(e: DesktopError) -> Self {
        let kind = match &e {
            DesktopError::Plain(_) | DesktopError::NoKey(_) => Kind::Usage,
            DesktopError::Taken(_) | DesktopError::NoFocus | DesktopError::NobodysWindow => Kind::Check,
            _ => Kind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

pub(crate) fn run(args: &HotkeysArgs) -> Result {
    let config = Config::load()?.hotkeys;
    let capture = key(args.capture.as_ref().unwrap_or(&config.capture))?;
    let paste = key(args.paste.as_ref().unwrap_or(&config.paste))?;
    if capture == paste {
        return Err(Failure::usage(format!("{capture} cannot both capture and paste")));
    }
    let mut desktop = Desktop::connect()?;
    let acts = [(capture, Act::Capture), (paste, Act::Paste)];
    for (press, _) in acts {
        desktop.grab(press)?;
    }
    if args.json {
        print(format_args!("{}\n", json!({"capture": capture.to_string(), "paste": paste.to_string()})));
    } else {
        print(format_args!("{capture} captures, {paste} pastes\n"));
    }
    loop {
        let (_, act) = acts[desktop.wait()?];
        let done = desktop.focused_process().map_err(Failure::from).and_then(|window| perform(act, window));
        let (text, event) = match done {
            Ok(done) => done,
            Err(failure) => (failure.message().to_owned(), json!({"error": failure.message()})),
        };
        if args.notify || config.notify {
            notify("tapdeck", &text, &event);
        }
        if args.json {
            print(format_args!("{event}\n"));
        } else if event.get("error").is_some() {
            say(&text);
        } else {
            print(format_args!("{text}\n"));
        }
    }
}

fn key(name: &str) -> Result<KeyPress, Failure> {
    name.parse().map_err(|e| Failure::usage(format!("{e}: write it like Ctrl+Alt+C or F12")))
}

fn perform(act: Act, window: u32) -> Result<(String, Json), Failure> {
    let session = session_in(window)?;
    let mut broker = BrokerClient::connect()?;
    let (request, does) = match act {
        Act::Capture => (Request::Capture { session: session.id.clone() }, "captured"),
        Act::Paste => (Request::Paste { session: session.id.clone(), raw: false }, "pasted"),
    };
    let answer = broker.ask(&request)?;
    let turn = answer.turn_id().unwrap_or("-").to_owned();
    let bytes = answer.byte_length().unwrap_or(0);
    let name = session.name.as_ref().unwrap_or(&session.id);
    let text = match act {
        Act::Capture => format!("{does} {turn} of {name}, {}", human::count(bytes, "byte")),
        Act::Paste => format!("{does} {turn} into {name}, {}", human::count(bytes, "byte")),
    };
    let event = json!({"did": does, "session": session.id, "turn_id": turn, "byte_length": bytes});
    Ok((human::printable(&text), event))
}

/// Finds the session that a window of this process shows.
fn session_in(window: u32) -> Result<Listing, Failure> {
    let (_, all) = alive()?;
    let mut found: Vec<Listing> = all.into_iter().filter(|l| is_shown(l, window)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::not_found(format!(
            "no session runs in the window that has the focus (process {window})"
        ))),
        _ => {
            let names: Vec<&str> = found.iter().map(|l| l.name.as_ref().unwrap_or(&l.id).as_str()).collect();
            let why = format!(
                "several sessions run in the window that has the focus: {}: use tapdeck capture",
                names.join(", ")
            );
            Err(Failure::check(why))
        }
    }
}

/// Whether a window of this process shows the session: the session or a client of it runs below.
fn is_shown(listing: &Listing, window: u32) -> bool {
    let is_below = |pid: u32| pid == window || terminals_above(pid).contains(&window);
    if is_below(listing.pid) {
        return true;
    }
    // A session that does not answer is not shown.
    let info = connect(listing, "hotkeys", Role::Observer)
        .and_then(|mut bus| ask(&mut bus, &tapdeck_proto::bus::InfoWanted::Brief));
    let clients = info.map(|info| info.status.clients).unwrap_or_default();
    let attached = clients.iter().filter(|c| c.attached);
    attached.filter_map(|c| u32::try_from(c.pid?).ok()).any(is_below)
}
