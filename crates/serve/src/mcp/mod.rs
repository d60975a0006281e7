//! The Model Context Protocol: agents and editors list, watch and drive sessions by tools, read
//! screens, turns and recordings as resources, and start from prompts.
//!
//! Every tool is a client of the session's bus, as a bot under the name that the MCP client gives
//! itself: there is no second rule about typing, and each change of the stick is in the recording.
//! [`Allow`] says what a client may do; over HTTP its credential may allow less. Calls to sessions
//! block, so each runs on a thread, with a time limit, and ends soon after it is cancelled.

mod access;
mod args;
mod call;
mod prompts;
mod recordings;
mod resources;
mod server;
mod sessions;
mod subscriptions;
mod tools;

#[cfg(feature = "web")]
pub(crate) mod http;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;

use crate::NewSession;

#[cfg(feature = "web")]
pub(crate) use access::Access;
pub use access::{Allow, SessionPattern, UnknownAllow};
pub use recordings::write_recording;
use server::Handler;

/// The longest message from a client. A text is at most [`TEXT`], and JSON may write a byte of it
/// in six.
pub(crate) const MESSAGE: usize = 8 << 20;
/// The longest text that a client sends or gets.
const TEXT: usize = 1 << 20;
/// How long calls that still run may take when the client is gone.
const FAREWELL: Duration = Duration::from_secs(1);

/// Starts a program as a session that outlives the server. Returns its id, or why it failed.
type Start = Box<dyn Fn(NewSession) -> Result<String, String> + Send + Sync>;

/// Makes the process that reads a recording and writes its text, with [`write_recording`].
type Reader = Box<dyn Fn(&Path) -> Command + Send + Sync>;

/// Draws the screen that a terminal of this width and height shows after this output, as SVG.
type Draw = Box<dyn Fn(u16, u16, &[u8]) -> String + Send + Sync>;

/// Says how the server's user would allow this.
type Hint = Box<dyn Fn(Allow) -> String + Send + Sync>;

/// What a server offers, and to whom.
#[derive(Default)]
#[non_exhaustive]
pub struct McpOptions {
    allow: Allow,
    sessions: Vec<SessionPattern>,
    recordings: Option<PathBuf>,
    reader: Option<Reader>,
    start: Option<Start>,
    draw: Option<Draw>,
    hint: Option<Hint>,
}

impl McpOptions {
    /// Offers what this allows.
    pub fn new(allow: Allow) -> Self {
        Self { allow, ..Self::default() }
    }

    /// Offers only sessions whose id or name matches one of these patterns; all if there are none.
    #[must_use]
    pub fn sessions(mut self, patterns: Vec<SessionPattern>) -> Self {
        self.sessions = patterns;
        self
    }

    /// Offers the recordings of this folder.
    #[must_use]
    pub fn recordings(mut self, folder: impl Into<Option<PathBuf>>) -> Self {
        self.recordings = folder.into();
        self
    }

    /// Reads each recording in a process that this makes, and that calls [`write_recording`].
    /// Recordings may come from strangers, and the process can shut itself in. Without it, a thread
    /// of this process reads them.
    #[must_use]
    pub fn reader(mut self, reader: impl Fn(&Path) -> Command + Send + Sync + 'static) -> Self {
        self.reader = Some(Box::new(reader));
        self
    }

    /// Sets what draws a screen, of a width and a height, that output has made, as SVG. Without it,
    /// screens are text.
    #[must_use]
    pub fn draw(mut self, draw: impl Fn(u16, u16, &[u8]) -> String + Send + Sync + 'static) -> Self {
        self.draw = Some(Box::new(draw));
        self
    }

    /// Sets what a client hears when it may not do something: an option that would allow it.
    #[must_use]
    pub fn hint(mut self, hint: impl Fn(Allow) -> String + Send + Sync + 'static) -> Self {
        self.hint = Some(Box::new(hint));
        self
    }

    /// Sets what starts sessions. Without it, none can be started.
    #[must_use]
    pub fn start(
        mut self,
        start: impl Fn(NewSession) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.start = Some(Box::new(start));
        self
    }
}

impl std::fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpOptions")
            .field("allow", &self.allow)
            .field("sessions", &self.sessions)
            .field("recordings", &self.recordings)
            .finish_non_exhaustive()
    }
}

/// A server of the Model Context Protocol, for any number of clients.
#[derive(Clone)]
pub struct McpServer(Arc<server::Shared>);

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl McpServer {
    /// Makes a server.
    pub fn new(options: McpOptions) -> Self {
        Self(Arc::new(server::Shared::new(options)))
    }

    /// Serves the client at standard input and output on this thread, until it is gone.
    ///
    /// # Errors
    /// When there is no runtime, or the client does not begin as the protocol says.
    pub fn serve_stdio(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            let (from, to) = stdio_pipes();
            let transport = AsyncRwTransport::new_server(from, to).with_max_line_length(MESSAGE);
            let running = match Handler::local(self.clone()).serve(transport).await {
                Ok(running) => running,
                // A client that leaves before it has said anything is no failure.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
                Err(e) => return Err(io::Error::other(e.to_string())),
            };
            running.waiting().await.map(drop).map_err(io::Error::other)
        });
        // Its input may still be waited for by a thread that nothing can wake.
        runtime.shutdown_timeout(FAREWELL);
        served
    }
}
