//! `tapdeck mcp`: sessions as tools of an agent or an editor, by the Model Context Protocol.

use std::path::PathBuf;

use clap::Args;
use rustix::termios::isatty;
use tapdeck::Screen;
use tapdeck_serve::mcp::{Allow, McpOptions, McpServer, SessionPattern};

use crate::cmd::recording_text;
use crate::config::Config;
use crate::detached_host;
use crate::ending::{Ending, say};
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;

/// Let an agent or an editor watch and drive sessions, by the Model Context Protocol.
#[derive(Args)]
#[command(after_help = "\
Speaks MCP on standard input and output, for clients that start their servers themselves. tapdeck web
and tapdeck serve offer the same at /mcp.

read lets the client read screens, turns and recordings; drive also lets it type, answer and take the
stick; open also lets it start and end sessions. It joins sessions as a bot, under its own name: a
person can take control at any time.

Examples:
  tapdeck mcp                                       only read
  tapdeck mcp --allow drive --session 'build*'      drive some sessions
  claude mcp add tapdeck -- tapdeck mcp --allow drive
  codex mcp add tapdeck -- tapdeck mcp --allow drive")]
pub(crate) struct McpArgs {
    /// What the client may do: read, drive or open
    #[arg(long, value_name = "WHAT", default_value_t)]
    allow: Allow,
    /// Offer only sessions whose name or id matches this pattern, such as 'build*'
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    session: Vec<SessionPattern>,
    /// Folder with the recordings to offer [default: the folder of tapdeck rec]
    #[arg(long, value_name = "FOLDER")]
    recordings: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &McpArgs) -> Result {
    let config = Config::load()?;
    if let Some(identity) = args.identity.file() {
        crate::keys::check(&identity)?;
    }
    let folder = args.recordings.clone().unwrap_or_else(|| config.recordings_folder());
    if args.recordings.is_some() && !folder.is_dir() {
        return Err(Failure::not_found(format!("{}: no such folder", folder.display())));
    }
    let options = options(args.allow, &args.session, folder, &args.identity)
        .hint(|needed| format!("--allow {needed}"))
        .start(|new| detached_host::start_new(&new));
    if isatty(std::io::stdin()) {
        say("waiting for an MCP client on standard input, which is a terminal; Ctrl-C ends this");
    }
    let served = McpServer::new(options).serve_stdio();
    served.map_err(|e| Failure::io(format!("cannot serve the client: {e}")))?;
    Ok(Ending::Done)
}

/// What all servers offer.
fn options(
    allow: Allow,
    sessions: &[SessionPattern],
    recordings: PathBuf,
    identity: &IdentityArgs,
) -> McpOptions {
    McpOptions::new(allow)
        .sessions(sessions.to_vec())
        .recordings(recordings)
        .reader(recording_text::command(identity))
        .draw(|cols, rows, output| Screen::of_output(cols, rows, output).to_svg())
}

/// What clients of MCP may do at the page.
#[cfg(feature = "web")]
#[derive(Args)]
pub(crate) struct McpDoorArgs {
    /// What MCP clients may do at /mcp, as far as their token allows it: off, read, drive or open
    #[arg(long, value_name = "WHAT", default_value = "read", value_parser = door, hide_short_help = true)]
    mcp: Door,
    /// Offer MCP clients only sessions whose name or id matches this pattern
    #[arg(long, value_name = "PATTERN", value_parser = pattern, hide_short_help = true)]
    mcp_session: Vec<SessionPattern>,
}

/// What MCP clients may do; nothing where it is off.
#[cfg(feature = "web")]
#[derive(Clone, Copy)]
struct Door(Option<Allow>);

#[cfg(feature = "web")]
fn door(text: &str) -> Result<Door, String> {
    match text {
        "off" => Ok(Door(None)),
        text => text.parse().map(|allow| Door(Some(allow))).map_err(|e| format!("{e}, or off")),
    }
}

#[cfg(feature = "web")]
impl McpDoorArgs {
    /// The server for the page, if it is not off.
    pub(crate) fn server(&self, recordings: PathBuf, identity: &IdentityArgs) -> Option<McpServer> {
        let options = options(self.mcp.0?, &self.mcp_session, recordings, identity);
        Some(McpServer::new(options.hint(|needed| format!("--mcp {needed}"))))
    }
}

/// A pattern of session names.
fn pattern(text: &str) -> Result<SessionPattern, String> {
    match text {
        "" => Err("expected a pattern such as 'build*'".to_owned()),
        text => Ok(text.into()),
    }
}
