//! `tapdeck serve`: sessions for those who come over the network.

use std::path::PathBuf;

use clap::Args;
use tapdeck_host::{Keyboard, Pressed, registry};
use tapdeck_serve::door::Door;
use tapdeck_serve::net::{Limits, Running, Server};

use super::sessions::Failed;
use crate::ending::{Ending, code, print};

mod desk;

use desk::SessionDesk;

/// Let sessions be opened and joined over the network.
#[derive(Args)]
#[command(after_help = "\
Prints the addresses at which it listens, and ends its sessions when it is told to end. A session ends
when the client that opened it has gone, unless it was opened detached. All are in tapdeck ls.

Examples:
  tapdeck serve --listen unix:/run/user/1000/tty.sock
  tapdeck serve --record runs/")]
pub(crate) struct ServeArgs {
    /// Where to listen: unix:PATH; a socket among those of live sessions when left out
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Record every session in this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// How many sessions there may be at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    max_sessions: usize,
    /// How many connections there may be at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,
}

pub(crate) fn run(args: &ServeArgs) -> Ending {
    serve(args).unwrap_or_else(Failed::end)
}

fn serve(args: &ServeArgs) -> Result<Ending, Failed> {
    let io = |e: std::io::Error| Failed(e.to_string(), code::IO);
    tapdeck_host::raise_file_limit();
    let mut signals = Keyboard::signals_only().map_err(io)?;
    let desk = SessionDesk::new(signals.inherited(), args.record.clone())?;
    let limits =
        Limits { sessions: args.max_sessions, connections: args.max_connections, ..Limits::default() };
    let running = Running::start(Server::new(desk, limits)).map_err(io)?;
    let listen = if args.listen.is_empty() {
        let folder = registry::folder().map_err(io)?;
        vec![format!("unix:{}", folder.join("serve.sock").display())]
    } else {
        args.listen.clone()
    };
    for address in &listen {
        let failed = |e: std::io::Error| Failed(format!("cannot listen at {address}: {e}"), code::IO);
        match address.strip_prefix("unix:") {
            Some(path) => running.unix(Door::unix(path.as_ref()).map_err(failed)?).map_err(failed)?,
            None => {
                let message = format!("{address:?} is no address to listen at: write unix:PATH");
                return Err(Failed(message, code::USAGE));
            }
        }
        print(format_args!("listening {address}\n"));
    }
    loop {
        if let Pressed::Signal(_) = signals.wait(None).map_err(io)? {
            running.stop();
            return Ok(Ending::Code(0));
        }
    }
}
