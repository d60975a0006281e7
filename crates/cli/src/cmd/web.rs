//! `tapdeck web`: sessions and recordings in a browser.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::Args;
use tapdeck_core::{Authority, Role};
use tapdeck_host::registry;
use tapdeck_serve::NewSession;
use tapdeck_serve::web::{Site, SiteOptions, StartError, Themes, serve};

use crate::cmd::page_player;
use crate::config::Config;
use crate::detached_host::{self, host_args};
use crate::ending::{Ending, print, say};
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;
use crate::parse;
use crate::sessions::find;

/// Show sessions and recordings in a browser.
#[derive(Args)]
#[command(after_help = "\
Prints a link with a secret after the #, and serves the page until Ctrl-C. Sessions keep running.

Examples:
  tapdeck web                            all live sessions, and the recordings in the default folder
  tapdeck web build                      open this session
  tapdeck web -- claude                  start a session and open it
  tapdeck web --read-only --port 8080    a view-only link
  ssh -L 8080:127.0.0.1:8080 HOST tapdeck web --port 8080    from another machine")]
pub(crate) struct WebArgs {
    /// Id or name of a live session to open
    #[arg(value_name = "SESSION", conflicts_with = "command")]
    session: Option<String>,
    /// Port to listen on; 0 for any free port [default: 0]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Make the link view-only
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    read_only: Option<bool>,
    /// Folder with the recordings to list [default: the folder of tapdeck rec]
    #[arg(long, value_name = "FOLDER")]
    recordings: Option<PathBuf>,
    /// Additional host name, with an optional port, at which browsers may open the page, such as
    /// that of a proxy
    #[arg(long, value_name = "HOST[:PORT]")]
    host: Vec<String>,
    /// Origin of another site whose player may show live sessions to logged-in users, such as
    /// http://localhost:3000
    #[arg(long, value_name = "ORIGIN", value_parser = parse::origin)]
    player: Vec<String>,
    /// Default theme of the page: dark, light, high-contrast, sepia, dracula or one of your own
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
    #[cfg(feature = "mcp")]
    #[command(flatten)]
    mcp: super::mcp::McpDoorArgs,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Start this program as a session and open it
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &WebArgs) -> Result {
    let config = Config::load()?;
    if let Some(identity) = args.identity.file() {
        crate::keys::check(&identity)?;
    }
    let themes = themes(&config, args.theme.as_deref())?;
    let settings = &config.web;
    let read_only = args.read_only.unwrap_or(settings.read_only);
    let folder = args.recordings.clone().unwrap_or_else(|| config.recordings_folder());
    if args.recordings.is_some() && !folder.is_dir() {
        return Err(Failure::not_found(format!("{}: no such folder", folder.display())));
    }
    let shown = args.session.as_deref().map(|which| find(Some(which))).transpose()?.map(|found| found.id);
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port.unwrap_or(settings.port));
    let listener =
        TcpListener::bind(address).map_err(|e| Failure::io(format!("cannot listen on {address}: {e}")))?;
    let address = listener.local_addr()?;
    let token = registry::new_token().map_err(|e| Failure::io(format!("no randomness to be had: {e}")))?;
    // After the port is bound: no session is left behind by a command that fails.
    let shown = match (shown, args.command.is_empty()) {
        (None, false) => Some(detached_host::start(host_args(&args.command))?),
        (shown, _) => shown,
    };
    let port = address.port();
    let hosts = ["127.0.0.1", "localhost"].iter().map(|h| format!("{h}:{port}")).collect();
    let authority = if read_only { Authority::of(Role::Observer) } else { Authority::owner() };
    let good = token.clone();
    let check = move |shown: &str| tapdeck_serve::web::is_same(shown, &good).then_some(authority);
    #[cfg(feature = "mcp")]
    let mcp = args.mcp.server(folder.clone(), &args.identity);
    let mut options = SiteOptions::new(check)
        .hosts(hosts)
        .names([&args.host[..], &settings.hosts].concat())
        .recordings(folder)
        .player(page_player::command(&args.identity))
        .players([&args.player[..], &settings.players].concat())
        .themes(themes);
    #[cfg(feature = "mcp")]
    {
        options = options.mcp(mcp);
    }
    if !read_only {
        options = options.start(start_quietly);
    }
    let site = Site::new(options);
    let opened = shown.as_deref().map(|id| format!("&open=s/{id}")).unwrap_or_default();
    print(format_args!("http://127.0.0.1:{port}/#token={token}{opened}\n"));
    serve(&site, listener, super::stopped::stopped())
        .map_err(|e| Failure::io(format!("cannot serve the page: {e}")))?;
    if let Some(id) = shown.filter(|_| !args.command.is_empty()) {
        say(format_args!("session {id} goes on: tapdeck attach {id}, or tapdeck kill {id}"));
    }
    Ok(Ending::Done)
}

/// The themes of the page, the user's own among them.
pub(super) fn themes(config: &Config, option: Option<&str>) -> Result<Themes> {
    let all = config.all_themes();
    let chosen = config.choose_theme(option, &config.web.theme).map_err(Failure::usage)?.unwrap_or_default();
    let usual = all.iter().find(|(_, theme)| *theme == chosen).map(|(name, _)| name.clone());
    Ok(Themes { usual: usual.unwrap_or_default(), all })
}

/// Starts a program as a detached session for a user of the page, who is shown the message of a
/// failure.
fn start_quietly(new: NewSession) -> Result<String, StartError> {
    detached_host::start_new(&new).map_err(StartError::Failed)
}
