//! `tapdeck acp`: the program of a session as an agent of an editor, by the Agent Client Protocol.

use std::ffi::OsString;
use std::io::{BufReader, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use rustix::termios::isatty;
use tapdeck::Session;
use tapdeck_core::WinSize;
use tapdeck_serve::acp::{AcpServer, Programs, Started, Stopper};

use super::rec::new_recording;
use super::stopped::stopped;
use crate::ending::{Ending, say};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::find;

/// A terminal of a common size: a person can attach at any time.
const SIZE: WinSize = WinSize::cells(120, 40);
/// How long the last screen of a session that this command started can be looked at.
const LINGER: Duration = Duration::from_secs(10);

/// Let an editor drive a terminal agent, by the Agent Client Protocol.
#[derive(Args, Clone)]
#[command(after_help = "\
Speaks ACP 1 on standard input and output, for editors that start their agents themselves. With CMD,
each conversation of the editor is a new session, which ends with this command. With SESSION, the
conversation is that of a live session.

The editor joins as a bot under its own name: a person can attach and take control at any time.

Examples:
  tapdeck acp -- claude            start an agent for each conversation
  tapdeck acp --record -- codex    the same, recorded
  tapdeck acp work                 drive a live session")]
pub(crate) struct AcpArgs {
    /// Id or name of a live session, or a unique prefix [default: the only session]
    #[arg(value_name = "SESSION", conflicts_with = "command")]
    session: Option<String>,
    /// Record the sessions that are started, into the folder of tapdeck rec
    #[arg(long, requires = "command")]
    record: bool,
    /// Size of the terminal of sessions that are started [default: 120x40]
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size, requires = "command")]
    size: Option<WinSize>,
    /// Start this program for each conversation
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &AcpArgs) -> Result {
    let programs = if args.command.is_empty() {
        Programs::Live(Box::new(find(args.session.as_deref())?))
    } else {
        let args = args.clone();
        Programs::Started(Box::new(move |folder| args.start(folder).map_err(|e| e.message().to_owned())))
    };
    if isatty(stdin()) {
        say("waiting for an ACP client on standard input, which is a terminal; Ctrl-C ends this");
    }
    let server = AcpServer::new(programs, |id| format!("tapdeck attach {id}"));
    stop_on_signals(server.stopper())?;
    let served = server.serve(BufReader::new(stdin()), stdout());
    served.map_err(|e| Failure::io(format!("cannot serve the client: {e}")))?;
    Ok(Ending::Done)
}

impl AcpArgs {
    /// Starts the program in this process, so that it ends with this command however that ends.
    fn start(&self, folder: &Path) -> Result<Started> {
        let size = self.size.unwrap_or(SIZE);
        let mut builder = Session::builder(self.command.iter().cloned());
        builder = builder.cwd(folder).size(size.cols, size.rows).linger(LINGER);
        if self.record {
            let program = self.command.first().map(Path::new).unwrap_or(Path::new(""));
            builder = builder.record(new_recording(program)?);
        }
        let session = builder.spawn().map_err(|e| Failure::io(e.to_string()))?;
        let listing = find(Some(session.id().unwrap_or_default()))?;
        let stop = move || {
            if let Err(e) = session.stop() {
                say(format_args!("cannot end session {}: {e}", session.id().unwrap_or_default()));
            }
        };
        Ok(Started { listing, stop: Box::new(stop) })
    }
}

/// Ends the serving when a signal asks for it.
fn stop_on_signals(stopper: Stopper) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wait = move || {
        runtime.block_on(stopped());
        stopper.stop();
    };
    std::thread::Builder::new().name("tapdeck-signals".into()).spawn(wait)?;
    Ok(())
}
