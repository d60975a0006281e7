//! `tapdeck attach`: a live session in this terminal.
//!
//! While the session has this terminal's size its bytes pass through as they are; otherwise a model
//! of our own is kept, and the part around its cursor painted. Questions of the program to its
//! terminal are taken out: the session's own model answers them.

mod notice;
mod told;
mod view;

use std::ffi::OsString;

use clap::Args;
use rustix::termios::isatty;
use tapdeck_core::Exit;
use tapdeck_host::registry::Listing;
use tapdeck_host::{Keyboard, signals, terminal_size};
use tapdeck_proto::attach::Opened;
use tapdeck_serve::client::{Attach, Attachment};
use tapdeck_serve::door::Address;

use crate::config::{Config, Pass, Scrollback};
use crate::ending::{Ending, say};
use crate::failure::{Failure, Result};
use crate::screen::detach_keys::DetachKeys;
use crate::sessions::{Which, find, find_exactly, not_within};
use crate::{detached_host, parse};
use view::View;

/// Attach this terminal to a live session.
#[derive(Args)]
#[command(after_help = "\
C-\\ d (Ctrl-backslash, then d) detaches, C-\\ z suspends. C-\\ t takes the stick (control) from its
holder, C-\\ r releases it, C-\\ C-\\ sends a Ctrl-backslash, and C-\\ ? lists these keys. Your screen
comes back when you detach. The exit code is 0 when you detach and when the program exits. The
session has the size of the holder's terminal; other terminals show what fits.

Examples:
  tapdeck attach build
  tapdeck attach build --read-only
  tapdeck attach build --takeover
  tapdeck attach build --scrollback 1000
  tapdeck attach -A work                 your shell, started if it does not run
  tapdeck attach -A build -- make watch
  tapdeck attach build --detach-keys 'C-p C-q'")]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    which: Which,
    /// View only: send no input
    #[arg(short, long, conflicts_with = "takeover")]
    read_only: bool,
    /// Take the stick (control) at once, even from another person
    #[arg(long)]
    takeover: bool,
    /// Start the session of this name in the background if it does not run
    #[arg(short = 'A', long, requires = "session")]
    or_run: bool,
    #[command(flatten)]
    view: ViewArgs,
    /// With -A, the program and its arguments [default: your shell]
    #[arg(value_name = "CMD", last = true, requires = "or_run")]
    command: Vec<OsString>,
}

/// How a terminal shows a session.
#[derive(Args, Default)]
pub(crate) struct ViewArgs {
    /// Detach with these one or two keys; `none` disables it [default: C-\ d, or that of the
    /// configuration]
    #[arg(long, value_name = "KEYS")]
    pub(crate) detach_keys: Option<String>,
    /// Add the session's last N lines of scrollback, and all lines to come, to your terminal's
    /// [default: none, or that of the configuration]
    #[arg(long, value_name = "N|none")]
    pub(crate) scrollback: Option<Scrollback>,
    /// Take control before you type, even from another terminal of yours
    #[arg(long, hide_short_help = true)]
    no_share: bool,
}

impl ViewArgs {
    /// Fills in what was not given from the configuration.
    pub(crate) fn options(&self) -> Result<ViewOptions> {
        let config = Config::load()?.attach;
        let keys = self.detach_keys.as_ref().unwrap_or(&config.detach_keys);
        Ok(ViewOptions {
            detach_keys: parse::detach_keys(keys).map_err(Failure::usage)?,
            scrollback: self.scrollback.unwrap_or(config.scrollback).0,
            hint: config.hint,
            share: config.share && !self.no_share,
            pass: config.pass,
        })
    }
}

/// How a terminal shows a session.
pub(crate) struct ViewOptions {
    detach_keys: Option<DetachKeys>,
    /// Lines of scrollback for the terminal; without, the session has the alternate screen.
    scrollback: Option<usize>,
    /// Show at the start how to leave.
    hint: bool,
    /// Type without asking another terminal of the same user for the stick.
    share: bool,
    /// What else of the output reaches the terminal.
    pass: Vec<Pass>,
}

pub(crate) fn run(args: &AttachArgs) -> Result {
    let options = args.view.options()?;
    let listing = match args.which.session.as_deref() {
        Some(name) if args.or_run => find_or_start(name, &args.command)?,
        which => find(which)?,
    };
    let wish = Attach::new("attach").read_only(args.read_only).takeover(args.takeover);
    attach_to(&listing, options, wish)
}

/// The session of this name, which is started if there is none.
fn find_or_start(name: &str, command: &[OsString]) -> Result<Listing> {
    if let Some(listing) = find_exactly(name)? {
        return Ok(listing);
    }
    let name = parse::session_name(name).map_err(Failure::usage)?;
    let mut ours = vec!["run".into(), "--detached-host".into(), "--name".into(), OsString::from(&name)];
    ours.extend(terminal_size().map(|size| format!("--size={}x{}", size.cols, size.rows).into()));
    ours.push("--".into());
    ours.extend_from_slice(command);
    match detached_host::start(ours) {
        Ok(id) => find(Some(&id)),
        // Another command may have started it at the same time.
        Err(failure) => find_exactly(&name)?.ok_or(failure),
    }
}

/// Attaches to a session of this user.
pub(crate) fn attach_to(listing: &Listing, options: ViewOptions, wish: Attach<'_>) -> Result {
    not_within(listing)?;
    let wish = wish.token(&*listing.human_token);
    let name = listing.shown();
    let reattach = format!("tapdeck attach {name}");
    let from = Target { id: name, reattach: &reattach, is_remote: false };
    show(options, &from, &wish, |wish| Ok(Attachment::open(&Address::Unix(listing.socket.clone()), wish)?))
}

/// The session to show.
pub(crate) struct Target<'a> {
    /// Its id or name.
    pub(crate) id: &'a str,
    /// The command that attaches again.
    pub(crate) reattach: &'a str,
    /// It is on a server: commands for local sessions do not reach it, and this one ends as its
    /// program ended.
    pub(crate) is_remote: bool,
}

/// Shows a session on this terminal. `open` connects to it.
pub(crate) fn show(
    options: ViewOptions,
    from: &Target<'_>,
    wish: &Attach<'_>,
    open: impl FnOnce(&Attach<'_>) -> Result<(Attachment, Opened)>,
) -> Result {
    let keyboard = Keyboard::take()?;
    let size = keyboard.screen_size().filter(|_| keyboard.is_there());
    let Target { id, reattach, is_remote } = *from;
    let request =
        wish.clone().share(options.share).read_only(wish.read_only || !keyboard.is_there()).size(size);
    let (attachment, opened) = open(&request)?;
    if !keyboard.is_there() && !wish.read_only {
        let reach = if is_remote { String::new() } else { format!("; tapdeck type and send reach {id}") };
        let stream = if isatty(rustix::stdio::stdin()) { "output" } else { "input" };
        say(format_args!("standard {stream} is no terminal, so this only watches{reach}"));
    }
    let mut view = View::new(options, attachment, keyboard, &opened, wish, id)?;
    let how = view.follow();
    view.leave(how.as_ref().ok());
    drop(view);
    let how = how?;
    match how {
        AttachEnd::Detached => {
            say(format_args!("detached from {id}: {reattach} comes back"));
        }
        AttachEnd::Exited(exit, recording_error) => {
            let how = match exit {
                Exit::Code(code) => format!("exit code {code}"),
                Exit::Signal(signal) => match signals::name(signal) {
                    Some(name) => format!("killed by SIG{name}"),
                    None => format!("killed by signal {signal}"),
                },
            };
            say(format_args!("the program of {id} has ended: {how}"));
            if let Some(why) = recording_error {
                say(format_args!("the recording of {id} failed: {why}"));
            }
            if is_remote {
                return Ok(Ending::As(exit));
            }
        }
        AttachEnd::Lost(why) => {
            let why = why.map_or_else(|| format!("session {id} is gone"), |why| format!("{id}: {why}"));
            return Err(Failure::io(why));
        }
        AttachEnd::Signal(signal) => return Ok(Ending::by_signal(signal)),
    }
    Ok(Ending::Done)
}

/// How an attachment ended.
enum AttachEnd {
    Detached,
    /// With what went wrong with the recording.
    Exited(Exit, Option<String>),
    /// With what was said last, if anything was.
    Lost(Option<String>),
    Signal(i32),
}
