//! `tapdeck serve`: sessions over the network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use tapdeck::server::{SessionHost, SessionHostOptions};
use tapdeck_host::{InheritedSignals, Keyboard, OnFailure, Pressed, registry, state_folder};
use tapdeck_serve::admission::{self, Startups};
use tapdeck_serve::door::Door;
use tapdeck_serve::net::{Endpoint, Identity, Limits, NoToken, Running, Server};
use tapdeck_serve::tokens::Tokens;

use crate::config::{Config, Strict};
use crate::ending::{Ending, Kind, print, say};
use crate::failure::{Failure, Result};
use crate::keys::recipients;
use crate::log::{self, LogFormat};
use crate::parse;

mod site;
#[cfg(feature = "ssh")]
mod ssh_door;
mod token;

/// Serve sessions over the network.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Prints the addresses that it listens on. A session ends when the client that opened it disconnects,
unless it was opened with --detach, and when the server stops. tapdeck ls lists the sessions.

On a Unix socket, the system identifies you. Everywhere else clients need a token: see tapdeck serve
token. Clients identify the server by the fingerprint that it prints. For ws:// and wss:// addresses
it also prints the URL of the web page; replace TOKEN in it with a token.

Examples:
  tapdeck serve --listen unix:/run/user/1000/tty/tty.sock
  tapdeck serve token add --name laptop -o laptop.token
  tapdeck serve --listen quic://0.0.0.0:4433 --listen tls://0.0.0.0:4433
  tapdeck serve --listen wss://0.0.0.0:8443        the web page, and sessions
  tapdeck serve --listen ssh://127.0.0.1:2222      then: ssh -p 2222 build@127.0.0.1
  tapdeck serve --record runs/                     record every session"
)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Address to listen on: unix:PATH, or tls://, quic://, wss://, ws://, wt:// or ssh:// with
    /// HOST:PORT [default: a Unix socket in the runtime folder]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Vec<Listen>,
    /// Authorized keys for ssh:// addresses [default: ~/.ssh/authorized_keys]
    #[cfg(feature = "ssh")]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    authorized_keys: Option<PathBuf>,
    /// Record every session in this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// With --record, end a program whose recording fails, or suspend it with `=stop`
    #[arg(long, value_name = "end|stop|off", num_args = 0..=1, require_equals = true, default_missing_value = "end", hide_possible_values = true, hide_short_help = true)]
    strict: Option<Strict>,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions, hide_short_help = true)]
    max_sessions: usize,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = Limits::default().admission.connections, hide_short_help = true)]
    max_connections: usize,
    /// Maximum number of connections that have not authenticated: from START of them on, newcomers
    /// displace the one that has waited longest with a chance of RATE percent, at FULL always
    #[arg(long, value_name = "START:RATE:FULL", default_value_t, hide_short_help = true)]
    max_startups: Startups,
    /// Maximum number of them from one address, or one IPv6 /64 network; loopback is exempt
    #[arg(long, value_name = "N", default_value_t = Limits::default().admission.per_source, hide_short_help = true)]
    max_startups_per_source: usize,
    /// Longest lock-out of an address after failed authentication; 0s for none; loopback is exempt
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "10m", hide_short_help = true)]
    max_lockout: Duration,
    /// Timeout for a new connection to authenticate and send its request
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "10s", hide_short_help = true)]
    hello_time: Duration,
    /// TLS certificate chain, as PEM, your certificate first
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of --cert, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Additional host name, with an optional port, at which browsers may open the page
    #[arg(long, value_name = "HOST[:PORT]", hide_short_help = true)]
    host: Vec<String>,
    /// Origin of another site whose player may show live sessions to logged-in users, such as
    /// https://docs.example
    #[arg(long, value_name = "ORIGIN", value_parser = parse::origin, hide_short_help = true)]
    player: Vec<String>,
    #[cfg(all(feature = "mcp", feature = "web"))]
    #[command(flatten)]
    mcp: super::mcp::McpDoorArgs,
    /// Log format on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_short_help = true)]
    log_format: LogFormat,
}

/// An address to listen at.
#[derive(Clone)]
enum Listen {
    Wire(Endpoint),
    #[cfg(feature = "ssh")]
    Ssh(String),
}

fn address(text: &str) -> Result<Listen, String> {
    #[cfg(feature = "ssh")]
    if let Some(place) = text.strip_prefix("ssh://") {
        return Ok(Listen::Ssh(place.to_owned()));
    }
    text.parse().map(Listen::Wire).map_err(|e: <Endpoint as std::str::FromStr>::Err| {
        match cfg!(feature = "ssh") {
            true => format!("{e}, or ssh://HOST:PORT"),
            false => e.to_string(),
        }
    })
}

#[derive(Subcommand)]
enum ServeCommand {
    Token(token::TokenArgs),
}

pub(crate) fn run(args: &ServeArgs) -> Result {
    match &args.command {
        Some(ServeCommand::Token(args)) => token::run(args),
        None => serve(args),
    }
}

fn serve(args: &ServeArgs) -> Result {
    log::start_server(args.log_format).map_err(Failure::usage)?;
    tapdeck_host::raise_file_limit();
    let mut signals = Keyboard::signals_only()?;
    let mut options = SessionHostOptions::default();
    options.record.clone_from(&args.record);
    if args.strict.is_some() && args.record.is_none() {
        return Err(Failure::usage("--strict is about recordings: give --record FOLDER, too"));
    }
    if args.record.is_some() {
        let strict = args.strict.map_or_else(|| Config::load().map(|config| config.rec.strict), Ok)?;
        options.on_failure = OnFailure::default().action(strict.action());
        options.encrypt = recipients(&Config::load()?.rec.encrypt)?;
    }
    options.on_state = Some(Box::new(crate::hooks::on_state));
    options.warn = Some(Arc::new(|trouble: &str| say(trouble)));
    let host =
        SessionHost::new(InheritedSignals::of_login(), options).map_err(|e| Failure::io(e.to_string()))?;
    let limits = Limits::default().sessions(args.max_sessions).admission(
        admission::Limits::default()
            .connections(args.max_connections)
            .grace(args.hello_time)
            .startups(args.max_startups)
            .per_source(args.max_startups_per_source)
            .lockout(args.max_lockout),
    );
    let running = Running::start(Server::new(host, limits, Tokens::at(Tokens::default_path())))?;
    let listened = listen(args, &running);
    if listened.is_ok() {
        while !matches!(signals.wait(None)?, Pressed::Signal(_)) {}
    }
    running.stop();
    listened.map(|()| Ending::Done)
}

/// Listens at all addresses, and prints where.
fn listen(args: &ServeArgs, running: &Running) -> Result<()> {
    let mut addresses = args.listen.clone();
    if addresses.is_empty() {
        let folder = registry::folder()?;
        addresses.push(Listen::Wire(Endpoint::Unix(folder.join("serve.sock"))));
    }
    let mut identity = None;
    for address in &addresses {
        match address {
            #[cfg(feature = "ssh")]
            Listen::Ssh(place) => {
                let signals = InheritedSignals::of_login();
                let shown = ssh_door::open(running, place, args.authorized_keys.as_deref(), signals)?;
                print(format_args!("listening {shown}\n"));
            }
            Listen::Wire(address @ Endpoint::Unix(path)) => {
                let failed = |e| cannot_listen(address, &e);
                running.unix(Door::unix(path).map_err(failed)?).map_err(failed)?;
                print(format_args!("listening {address}\n"));
            }
            Listen::Wire(address) => {
                let own = match identity.take() {
                    Some(own) => own,
                    None => announce_identity(args, running)?,
                };
                listen_net(args, running, address, &own)?;
                identity = Some(own);
            }
        }
    }
    Ok(())
}

/// Loads the server's certificate, and prints its fingerprint.
fn announce_identity(args: &ServeArgs, running: &Running) -> Result<Arc<Identity>> {
    let own = Arc::new(identity(args)?);
    print(format_args!("fingerprint {}\n", own.fingerprint()));
    if running.has_token().is_ok_and(|there_is| !there_is) {
        say("there is no valid token, so no client can come in: see tapdeck serve token add");
    }
    Ok(own)
}

/// Listens at an address of the network.
fn listen_net(args: &ServeArgs, running: &Running, address: &Endpoint, own: &Arc<Identity>) -> Result<()> {
    let config = Config::load()?;
    let listening = running
        .net(address, own, |at, server| site::make(at, &config, args, server))
        .map_err(|e| cannot_listen(address, &e))?;
    print(format_args!("listening {}\n", listening.at));
    if let Some(link) = site::link(&listening.at, &args.host) {
        print(format_args!("page {link}\n"));
    }
    if let Some(hash) = listening.browser_hash {
        print(format_args!("certificate {hash}\n"));
    }
    Ok(())
}

fn cannot_listen(address: &Endpoint, e: &std::io::Error) -> Failure {
    // Without an OS error, the address itself was refused.
    let refused = e.kind() == std::io::ErrorKind::PermissionDenied && e.raw_os_error().is_none();
    let kind = if refused { Kind::Usage } else { Kind::Io };
    let no_token = e.get_ref().is_some_and(|e| e.is::<NoToken>());
    let hint = if no_token { ": see tapdeck serve token add" } else { "" };
    Failure::new(kind, format!("cannot listen at {address}: {e}{hint}"))
}

fn identity(args: &ServeArgs) -> Result<Identity> {
    let made = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key),
        _ => Identity::own(&state_folder().join("serve")),
    };
    made.map_err(|e| Failure::io(format!("no certificate: {e}")))
}
