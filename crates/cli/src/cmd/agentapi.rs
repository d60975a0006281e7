//! `tapdeck agentapi`: the HTTP interface of coder/agentapi for one session.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use clap::Args;
use tapdeck::Session;
use tapdeck::turns::Turns;
use tapdeck_core::WinSize;
use tapdeck_host::LaunchError;
use tapdeck_host::registry::Listing;
use tapdeck_serve::agentapi::{
    Access, AgentApiOptions, Ended, ServeError, agent_types, parse_agent_type, serve,
};

use crate::ending::{Ending, Kind, print, say};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::find;

const PORT: u16 = 3284;
/// agentapi's terminal. A screen this tall holds whole answers.
const SIZE: WinSize = WinSize::cells(80, 1000);
/// How long the last screen of a session that this command started can be looked at.
const LINGER: Duration = Duration::from_secs(10);

/// Serve a session by the HTTP interface of coder/agentapi.
#[derive(Args)]
#[command(after_help = "\
Serves GET /status, GET /messages, POST /message, GET /events, POST /upload and GET /openapi.json as
agentapi 0.12.1 does, until Ctrl-C or the end of the session. Clients show no credential: every user
of this machine can connect. Options can also be set by AGENTAPI_PORT, AGENTAPI_TYPE,
AGENTAPI_ALLOWED_HOSTS and AGENTAPI_ALLOWED_ORIGINS.

Examples:
  tapdeck agentapi work                  a live session
  tapdeck agentapi -- claude             start a session, which ends with this command
  curl localhost:3284/status
  curl localhost:3284/message -H 'Content-Type: application/json' \\
    -d '{\"type\": \"user\", \"content\": \"Hello\"}'
  curl -N localhost:3284/events")]
pub(crate) struct AgentApiArgs {
    /// Id or name of a live session, or a unique prefix [default: the only session]
    #[arg(value_name = "SESSION", conflicts_with = "command")]
    session: Option<String>,
    /// Port to listen on; 0 for any free port [default: 3284]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Kind of agent to report: claude, codex, aider, … [default: by the session's rules]
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    agent_type: Option<String>,
    /// Host names at which clients may reach the server, without ports, separated by commas; * for
    /// all [default: localhost,127.0.0.1,[::1]]
    #[arg(short = 'a', long, value_name = "HOSTS", value_delimiter = ',')]
    allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the server, separated by commas; * for all [default:
    /// http://localhost:3284, http://localhost:3000, http://localhost:3001]
    #[arg(short = 'o', long, value_name = "ORIGINS", value_delimiter = ',')]
    allowed_origins: Vec<String>,
    /// Name of the session that is started
    #[arg(long, value_name = "NAME", value_parser = parse::session_name, requires = "command")]
    name: Option<String>,
    /// Size of the terminal of the session that is started [default: 80x1000]
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size, requires = "command")]
    size: Option<WinSize>,
    /// Start this program as a session
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &AgentApiArgs) -> Result {
    let access = args.access()?;
    let agent_type = args.agent_type()?;
    let address = SocketAddr::new(args.bind, args.port()?);
    let listener = TcpListener::bind(address).map_err(|e| {
        Failure::io(format!("cannot listen on {address}: {e}; choose another port with --port"))
    })?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        say(format_args!("every machine that reaches {address} can drive the session"));
    }
    // After the port is bound: no session is started by a command that fails.
    let own = if args.command.is_empty() { None } else { Some(args.start(agent_type.as_deref())?) };
    let session = match &own {
        Some(session) => listing_of(session)?,
        None => find(args.session.as_deref())?,
    };
    let id = session.id.clone();
    let options = AgentApiOptions::new(session).access(access).agent_type(agent_type).looks(own.is_some());
    print(format_args!("http://{address}\n"));
    let served = serve(options, listener, super::stopped::stopped());
    if let Some(session) = own {
        session.stop().map_err(|e| Failure::io(format!("cannot end session {id}: {e}")))?;
    }
    match served {
        Ok(Ended::Stopped) => Ok(Ending::Done),
        Ok(Ended::Exited(exit)) if exit.code == 0 => Ok(Ending::Done),
        Ok(Ended::Exited(exit)) => {
            let how = exit.signal.map_or_else(
                || format!("exited with code {}", exit.code),
                |signal| format!("was ended by SIG{signal}"),
            );
            Err(Failure::check(format!("the program of session {id} {how}")))
        }
        Err(ServeError::Session(e)) => Err(e.into()),
        Err(e) => Err(Failure::io(format!("cannot serve session {id}: {e}"))),
    }
}

impl AgentApiArgs {
    fn port(&self) -> Result<u16> {
        match (self.port, variable("AGENTAPI_PORT")) {
            (Some(port), _) => Ok(port),
            (None, Some(port)) => {
                port.parse().map_err(|_| Failure::usage(format!("AGENTAPI_PORT: {port:?} is no port")))
            }
            (None, None) => Ok(PORT),
        }
    }

    fn access(&self) -> Result<Access> {
        let list = |given: &[String], name: &str, usual: &[&str]| -> Vec<String> {
            if !given.is_empty() {
                return given.to_vec();
            }
            match variable(name) {
                Some(list) => list.split_whitespace().map(str::to_owned).collect(),
                None => usual.iter().map(|s| (*s).to_owned()).collect(),
            }
        };
        let hosts = list(&self.allowed_hosts, "AGENTAPI_ALLOWED_HOSTS", &Access::HOSTS);
        let origins = list(&self.allowed_origins, "AGENTAPI_ALLOWED_ORIGINS", &Access::ORIGINS);
        Access::new(&hosts, &origins).map_err(|e| Failure::usage(e.to_string()))
    }

    fn agent_type(&self) -> Result<Option<String>> {
        let Some(name) = self.agent_type.clone().or_else(|| variable("AGENTAPI_TYPE")) else {
            return Ok(None);
        };
        let known = parse_agent_type(&name).ok_or_else(|| {
            Failure::usage(format!("unknown agent type {name:?}; use one of {}", agent_types().join(", ")))
        })?;
        Ok(Some(known.to_owned()))
    }

    /// Starts the program in this process, so that it ends with this command however that ends.
    fn start(&self, agent_type: Option<&str>) -> Result<Session> {
        let size = self.size.unwrap_or(SIZE);
        let mut builder =
            Session::builder(self.command.iter().cloned()).size(size.cols, size.rows).linger(LINGER);
        if let Some(name) = &self.name {
            builder = builder.name(name);
        }
        let rules = tapdeck::turns::load()?;
        if let Some(agent) = agent_type.filter(|agent| rules.names().contains(agent)) {
            builder = builder.turns(Turns::Agent(agent.to_owned()));
        }
        builder.spawn().map_err(|e| match e {
            tapdeck::Error::Launch(e) => Failure::new(kind_of(&e), e.to_string()),
            e => Failure::io(e.to_string()),
        })
    }
}

/// Returns the kind of a failure to start a program.
fn kind_of(e: &LaunchError) -> Kind {
    match e {
        LaunchError::Spawn(e) => Kind::NotStarted(e.kind()),
        _ => Kind::Io,
    }
}

/// Returns the entry of a session of this process in the list.
fn listing_of(session: &Session) -> Result<Listing> {
    find(Some(session.id().unwrap_or_default()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
