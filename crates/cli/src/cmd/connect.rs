//! `tapdeck connect`: a program at a server, as if it ran here.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use clap::Args;
use rustix::termios::isatty;
use tapdeck_core::WinSize;
use tapdeck_host::backend::{Backend, CommandSpec, Prompter, SpawnErrorKind};
use tapdeck_host::{Launch, LaunchError, TerminalPrompter, UserSide, terminal_size, tty_settings};
use tapdeck_serve::client::{Attach, Attachment, Conn, RemoteProgram};
use tapdeck_serve::net::{Endpoint, Transport, Trust, dial};
use tapdeck_serve::wire::{Negotiation, Tty, wire_size};

use super::attach;
use crate::ending::{Ending, Kind, Report, print, say};
use crate::failure::{Failure, Result};
use crate::parse;

/// The variable that holds a token.
const TOKEN_VAR: &str = "TAPDECK_TOKEN";
/// The longest token, in bytes.
const TOKEN_LIMIT: u64 = 4096;

/// Run a program on a server as if it ran here.
#[derive(Args)]
#[command(after_help = "\
Exits with the program's exit code, or by the same signal. If standard input is a terminal, the
program gets one too; otherwise, or with --no-pty, it runs on pipes, with separate standard output
and error. The program is stopped when this command ends, unless you use --detach. With --attach, the
exit code is 0 when you detach.

A network server needs a token, from --token-file or TAPDECK_TOKEN. On the first connection to a host
you are asked to confirm the server's fingerprint, which is then stored; later connections fail if it
changes. Without a terminal, give --fingerprint or --accept-new.

Examples:
  tapdeck connect unix:/run/user/1000/tty/tty.sock
  tapdeck connect quic://build.example:4433 --token-file laptop.token -- htop
  tapdeck connect tls://build.example:4433 --no-pty -- cargo test
  tapdeck connect tls://build.example:4433 -d --name nightly -- make
  tapdeck connect tls://build.example:4433 --attach nightly --read-only
  tapdeck connect tls://build.example:4433 --on docker:debian:12 -- bash")]
pub(crate) struct ConnectArgs {
    /// Address of the server: unix:PATH, or tls://, quic://, wss://, ws:// or wt:// with HOST:PORT
    #[arg(value_name = "ADDRESS")]
    address: Endpoint,
    /// Run on pipes, with separate standard output and error
    #[arg(long, conflicts_with = "pty", hide_short_help = true)]
    no_pty: bool,
    /// Run on a terminal even if standard input is not one
    #[arg(short = 't', long, hide_short_help = true)]
    pty: bool,
    /// Run in the background: print the session's id and return
    #[arg(short, long)]
    detach: bool,
    /// Attach to this session, by id or name, instead of starting a program
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["command", "detach", "pty", "no_pty"])]
    attach: Option<String>,
    /// With --attach, view only: send no input
    #[arg(short, long, conflicts_with = "takeover")]
    read_only: bool,
    /// With --attach, take the stick (control) at once, even from another person
    #[arg(long)]
    takeover: bool,
    #[command(flatten)]
    view: attach::ViewArgs,
    /// Name of the session
    #[arg(long, value_name = "NAME", value_parser = parse::session_name)]
    name: Option<String>,
    /// Working directory on the server
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// Set an environment variable: NAME=VALUE, or just NAME to pass yours
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::variable, hide_short_help = true)]
    env: Vec<(String, Option<OsString>)>,
    /// Where the server runs the program: local, or a place as for run --on
    #[arg(
        long,
        visible_alias = "on",
        value_name = "BACKEND",
        default_value = "local",
        hide_short_help = true
    )]
    backend: String,
    /// Size of the program's terminal [default: that of your terminal]
    #[arg(long, alias = "window-size", value_name = "COLSxROWS", value_parser = parse::size, hide_short_help = true)]
    size: Option<WinSize>,
    /// File that contains the token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Expected fingerprint of the server, which the server prints when it starts
    #[arg(long, value_name = "sha256:…", value_parser = parse::fingerprint, hide_short_help = true)]
    fingerprint: Option<String>,
    /// Trust the key of an unknown server and remember it for this host
    #[arg(long, hide_short_help = true)]
    accept_new: bool,
    /// Trust server certificates signed by these CA certificates (PEM)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,
    /// The program and its arguments [default: the shell of the server's user]
    #[arg(value_name = "CMD", last = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &ConnectArgs) -> Result {
    args.check()?;
    match (&args.attach, args.detach) {
        (Some(session), _) => join(args, session),
        (None, true) => detach(args),
        (None, false) => run_there(args).map_err(not_started),
    }
}

impl ConnectArgs {
    fn has_terminal(&self) -> bool {
        self.pty || (!self.no_pty && isatty(rustix::stdio::stdin()))
    }

    /// Refuses options that would have no effect.
    fn check(&self) -> Result<()> {
        // The user would believe to be protected by the certificate.
        if let Some(option) = self.useless_certificate_option() {
            let message =
                format!("{option} is of no use at {}: this transport has no certificate", self.address);
            return Err(Failure::usage(message));
        }
        self.out_of_place().map_or(Ok(()), |why| Err(Failure::usage(why)))
    }

    /// An option about a certificate, for a transport without one.
    fn useless_certificate_option(&self) -> Option<&'static str> {
        let bare = matches!(self.address, Endpoint::Unix(_) | Endpoint::Net { transport: Transport::Ws, .. });
        let said = self.fingerprint.as_ref().map(|_| "--fingerprint").or(self.ca.as_ref().map(|_| "--ca"));
        said.filter(|_| bare)
    }

    /// Why an option has no effect: it is for joining a session when a program is started, or the
    /// other way round.
    fn out_of_place(&self) -> Option<String> {
        let joining = [
            ("--read-only", self.read_only),
            ("--takeover", self.takeover),
            ("--detach-keys", self.view.detach_keys.is_some()),
            ("--scrollback", self.view.scrollback.is_some()),
        ];
        let starting =
            [("--cwd", self.cwd.is_some()), ("--env", !self.env.is_empty()), ("--size", self.size.is_some())];
        let given = |options: &[(&'static str, bool)]| {
            options.iter().find_map(|(option, given)| given.then_some(*option))
        };
        match self.attach {
            None => given(&joining)
                .map(|option| format!("{option} is for a session that is joined with --attach")),
            Some(_) => given(&starting)
                .map(|option| format!("{option} is for a program that is started, not with --attach")),
        }
    }

    /// The token, from a file or the environment. Every user of the machine can read a command
    /// line.
    fn token(&self) -> Result<Option<String>, Failure> {
        let text = match &self.token_file {
            Some(path) => {
                let failed = |e: std::io::Error| Failure::file(path, &e);
                let about = std::fs::metadata(path).map_err(failed)?;
                if about.len() > TOKEN_LIMIT {
                    return Err(Failure::usage(format!("{} is too long to be a token", path.display())));
                }
                if about.is_file() && about.mode() & 0o077 != 0 {
                    let path = path.display();
                    say(format_args!(
                        "warning: other users can read the token in {path}; run chmod 600 {path}"
                    ));
                }
                Some(std::fs::read_to_string(path).map_err(failed)?)
            }
            None => std::env::var(TOKEN_VAR).ok(),
        };
        Ok(text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()))
    }

    /// The variables to set there. Those without a value have the value from here.
    fn variables(&self) -> BTreeMap<String, String> {
        let value = |(name, value): &(String, Option<OsString>)| {
            let value = value.clone().or_else(|| std::env::var_os(name))?;
            Some((name.clone(), value.to_string_lossy().into_owned()))
        };
        self.env.iter().filter_map(value).collect()
    }

    /// The request to the server. The terminal there gets the settings of `user`, if that is a
    /// terminal.
    fn wanted(&self, size: WinSize, user: Option<&UserSide>, token: Option<String>) -> Negotiation {
        let tty = self.has_terminal().then(|| {
            let settings = user.and_then(UserSide::termios).map(|t| tty_settings::of(&t)).unwrap_or_default();
            let mut modes: BTreeMap<String, u8> =
                settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            if user.is_some_and(|o| !o.is_interactive()) {
                // Piped input would be shown twice.
                modes.insert("ECHO".to_owned(), 0);
            }
            let term = std::env::var("TERM").ok().filter(|t| !t.is_empty());
            Tty { term, size: Some(wire_size(size)), modes, answers: !self.detach }
        });
        Negotiation {
            backend: self.backend.clone(),
            token,
            tty,
            cmd: self.command.clone(),
            cwd: self.cwd.clone(),
            env: self.variables(),
            name: self.name.clone(),
            detached: self.detach,
            ..Negotiation::default()
        }
    }

    fn dial(&self, token: Option<&str>, prompter: &mut dyn Prompter) -> Result<Conn, Failure> {
        let trust = Trust::by_acquaintance()
            .fingerprint(self.fingerprint.clone())
            .ca(self.ca.clone())
            .accept_new(self.accept_new);
        Ok(dial(&self.address, &trust, token, prompter)?)
    }
}

/// Starts a program and leaves it running.
fn detach(args: &ConnectArgs) -> Result {
    let size = args.size.or_else(terminal_size).unwrap_or(WinSize::cells(80, 24));
    let token = args.token()?;
    let conn = args.dial(token.as_deref(), &mut TerminalPrompter::new(None))?;
    let (_, session) = RemoteProgram::open(conn, &args.wanted(size, None, token))?;
    print(format_args!("{session}\n"));
    crate::detached_host::warn_of_input();
    Ok(Ending::Done)
}

/// Attaches to a session there.
fn join(args: &ConnectArgs, session: &str) -> Result {
    let options = args.view.options()?;
    let token = args.token()?;
    let wish = Attach::new(args.name.as_deref().unwrap_or("connect"))
        .token(token.as_deref())
        .session(session)
        .read_only(args.read_only)
        .takeover(args.takeover);
    let reattach = format!("tapdeck connect {} --attach {session}", args.address);
    let from = attach::Target { id: session, reattach: &reattach, is_remote: true };
    // Before the terminal is in raw mode: the user may be asked about the server.
    let conn = args.dial(token.as_deref(), &mut TerminalPrompter::new(None))?;
    attach::show(options, &from, &wish, |wish| Ok(Attachment::over(conn, wish)?))
}

/// Gives a failure another exit code than a program's: one that was not started must not look like
/// one that ended with 1.
fn not_started(failure: Failure) -> Failure {
    match failure.kind() {
        Kind::Check | Kind::NotFound | Kind::Io => {
            failure.with_kind(Kind::NotStarted(SpawnErrorKind::NotStarted))
        }
        _ => failure,
    }
}

/// Runs a program there as if it were here.
fn run_there(args: &ConnectArgs) -> Result {
    let token = args.token()?;
    let mut launch = Launch::new(CommandSpec::new(Vec::<PathBuf>::new()));
    launch.no_pty = !args.has_terminal();
    launch.size = args.size;
    let start =
        |user: Option<&UserSide>, size, prompter: &mut dyn Prompter| -> Result<RemoteProgram, Failure> {
            let conn = args.dial(token.as_deref(), prompter)?;
            Ok(RemoteProgram::open(conn, &args.wanted(size, user, token.clone()))?.0)
        };
    // A launch error carries the message; the exit code follows from the failure.
    let failed = Cell::new(None);
    let finished = launch.run_on(
        &|_, user, size, prompter| match start(user, size, prompter) {
            Ok(program) => Ok(Box::new(program) as Box<dyn Backend>),
            Err(failure) => {
                let failure = not_started(failure);
                let why = failure.message().to_owned();
                failed.set(Some(failure));
                Err(LaunchError::Place { why })
            }
        },
        None,
        |_| (),
    );
    match finished.outcome {
        Ok(outcome) => Ok(Ending::of(&outcome)),
        Err(e) => Ok(failed.take().unwrap_or_else(|| Failure::from(e)).report(Report::Text)),
    }
}
