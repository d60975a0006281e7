//! A server for sessions over the network.
//!
//! ```no_run
//! use tapdeck::server::Server;
//!
//! # fn main() -> tapdeck::Result<()> {
//! let server = Server::builder().listen("quic://127.0.0.1:4433").record_into("runs").start()?;
//! println!("{:?}, fingerprint {}", server.addresses(), server.fingerprint().unwrap_or("none"));
//! std::thread::park();
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tapdeck_host::backend::{Backend, Console, InProcess};
use tapdeck_host::{InheritedSignals, state_folder};
use tapdeck_serve::door::Door;
use tapdeck_serve::net::{self, Running};

pub use tapdeck_core::{Authority, Right};
pub use tapdeck_serve::admission;
pub use tapdeck_serve::net::{Authenticate, Endpoint, Identity, Limits};
pub use tapdeck_serve::tokens::{Scope, Token, Tokens};

mod session_host;

pub use session_host::{MakeOnState, OnSession, SessionHost, SessionHostOptions};

use crate::{Error, Result};

/// What makes the program of a session that asks for it by name.
pub type MakeProgram = Arc<dyn Fn() -> io::Result<Box<dyn Backend>> + Send + Sync>;

/// A server to start: see [`Server::builder`].
#[derive(Default)]
pub struct ServerBuilder {
    auth: Option<Box<dyn Authenticate>>,
    listen: Vec<String>,
    limits: Limits,
    host: SessionHostOptions,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("listen", &self.listen)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A server that runs. Dropping it ends its sessions.
pub struct Server {
    running: Option<Running>,
    addresses: Vec<String>,
    fingerprint: Option<String>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Says what clients may do, by the secret that they show. By default that is the token file of
    /// this user, which `tapdeck serve token` keeps.
    #[must_use]
    pub fn auth(mut self, auth: impl Authenticate) -> Self {
        self.auth = Some(Box::new(auth));
        self
    }

    /// Listens at an address: `unix:PATH`, `tls://HOST:PORT`, `quic://HOST:PORT` or
    /// `wt://HOST:PORT`. Port 0 is any that is free.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen.push(address.into());
        self
    }

    /// Sets how much clients may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves a function of this process as the backend of this name. It runs once for each session
    /// that asks for it.
    #[must_use]
    pub fn backend(
        mut self,
        name: impl Into<String>,
        program: impl Fn(&Console) -> io::Result<i32> + Send + Sync + 'static,
    ) -> Self {
        let program = Arc::new(program);
        let make: MakeProgram = Arc::new(move || {
            let program = Arc::clone(&program);
            Ok(Box::new(InProcess::start(move |console| program(console))?))
        });
        self.host.programs.insert(name.into(), make);
        self
    }

    /// Records every session in this folder.
    #[must_use]
    pub fn record_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.host.record = Some(folder.into());
        self
    }

    /// Calls this with the id of each session that begins.
    #[must_use]
    pub fn on_session(mut self, told: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.host.on_session = Some(Box::new(told));
        self
    }

    /// Starts the server on threads of its own.
    ///
    /// # Errors
    /// When an address makes no sense or cannot be had, or the folder for recordings cannot be
    /// made.
    pub fn start(self) -> Result<Server> {
        let host = SessionHost::new(InheritedSignals::of_login(), self.host)?;
        let tokens = Tokens::at(Tokens::default_path());
        let server = net::Server::with_authenticator(host, self.limits, tokens, self.auth);
        let running = Running::start(server).map_err(Error::io("cannot start the server"))?;
        let mut server = Server { running: Some(running), addresses: Vec::new(), fingerprint: None };
        let mut identity = None;
        for address in &self.listen {
            server.listen(address, &mut identity)?;
        }
        Ok(server)
    }
}

impl Server {
    /// Describes a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Where it listens, with the ports that were free.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The fingerprint by which clients know it; `None` where it only listens at Unix sockets.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Ends all sessions and stops.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }

    fn listen(&mut self, address: &str, identity: &mut Option<Arc<Identity>>) -> Result<()> {
        let failed = || Error::io(format!("cannot listen at {address}"));
        let endpoint: Endpoint = address
            .parse()
            .map_err(|e: <Endpoint as std::str::FromStr>::Err| Error::Invalid(e.to_string()))?;
        let Some(running) = &self.running else { return Err(Error::Over) };
        if let Endpoint::Unix(path) = &endpoint {
            let door = Door::unix(path).map_err(failed())?;
            running.unix(door).map_err(failed())?;
            self.addresses.push(endpoint.to_string());
            return Ok(());
        }
        let own = match identity {
            Some(own) => Arc::clone(own),
            None => {
                let made = Identity::own(&state_folder().join("serve"));
                Arc::clone(identity.insert(Arc::new(made.map_err(Error::io("no certificate"))?)))
            }
        };
        self.fingerprint = Some(own.fingerprint().to_string());
        let listening = running.net(&endpoint, &own, |_, _| None).map_err(failed())?;
        self.addresses.push(listening.at.to_string());
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The programs of a server, by the names of their backends.
pub(crate) type Programs = BTreeMap<String, MakeProgram>;
