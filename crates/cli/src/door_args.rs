//! How a session can be reached: the options that `run` and `rec` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags};
use tapdeck::live::{Address, AddressError, Bus, DoorError, DoorOptions, Doors, Grants, OnTurn, Served};
use tapdeck::turns::RuleBook;
use tapdeck_host::{Keyboard, Launch, Pressed, Session};

use crate::config::Config;
use crate::ending::say;
use crate::failure::{Failure, Result};
use crate::{detached_host, parse};

/// How a session can be reached.
#[derive(Args, Clone)]
pub(crate) struct DoorArgs {
    /// Name of the session
    #[arg(long, value_name = "NAME", value_parser = parse::session_name)]
    pub(crate) name: Option<String>,
    /// Run in the background: print the session's id and return; see tapdeck attach
    #[arg(short = 'd', long)]
    pub(crate) detach: bool,
    /// Also serve the bus at this address: unix:PATH (or a path) or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    bus: Vec<String>,
    /// Allow a --bus address that other machines can reach; the connection is not encrypted
    #[arg(long, requires = "token_file", hide_short_help = true)]
    allow_remote: bool,
    /// Tokens for --bus, one per line, optionally after `human`, `bot` or `observer`
    #[arg(long, value_name = "FILE", requires = "bus", hide_short_help = true)]
    token_file: Option<PathBuf>,
    /// Agent rules for detecting turns and states [default: those for the command]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    agent: Option<String>,
    /// Regular expression for the program's prompt, matched against the text before the cursor
    #[arg(long, value_name = "RE", hide_short_help = true)]
    prompt: Option<String>,
    /// This process is the host of a detached session
    #[arg(long, hide = true)]
    pub(crate) detached_host: bool,
}

impl DoorArgs {
    /// Opens the doors. A session that cannot be reached still runs, unless the user asked for an
    /// address or for no terminal.
    pub(crate) fn open(
        &self,
        launch: &Launch,
        recording: Option<&Path>,
        on_turn: Option<OnTurn>,
    ) -> Result<Option<OpenDoors>> {
        let asked = self.detach || self.detached_host || !self.bus.is_empty();
        let argv = launch.shown_command();
        // A mistake there is reported with the hooks below, and keeps no program from running.
        let ignored = Config::load().unwrap_or_default().agents.ignore_journals;
        let chosen = RuleBook::load_ignoring(ignored)
            .and_then(|book| book.choose_as(&argv, self.agent.as_deref(), self.prompt.as_deref()));
        let mut options = DoorOptions::default();
        options.turns = match chosen {
            Ok(turns) => Some(turns),
            // A rule file that is broken must not keep a program from running, unless the user
            // asked for it.
            Err(why) if self.agent.is_some() || self.prompt.is_some() => {
                return Err(why.into());
            }
            Err(why) => {
                say(format_args!("turns and states will not be found: {why}"));
                None
            }
        };
        let addresses = self.addresses().map_err(Failure::usage)?;
        options.name.clone_from(&self.name);
        options.recording = recording.map(Path::to_owned);
        options.detached = self.detached_host;
        options.linger = self.detached_host.then_some(Duration::MAX);
        options.on_state = crate::hooks::on_state();
        options.on_turn = on_turn;
        options.warn = Some(Arc::new(|trouble: &str| say(trouble)));
        let opened = self.buses(addresses).map(|buses| {
            options.buses = buses;
            Doors::open(launch, options)
        });
        let opened = match opened {
            Ok(Err(e @ DoorError::Taken { .. })) => {
                let name = self.name.as_deref().unwrap_or_default();
                let how = format!("give another name, or end that session with tapdeck kill {name}");
                return Err(Failure::usage(format!("{e}: {how}")));
            }
            Ok(opened) => opened.map_err(|e| e.to_string()),
            Err(why) => Err(why),
        };
        match opened {
            Ok(doors) => Ok(Some(OpenDoors { doors, alone: self.detached_host })),
            Err(why) if asked => Err(Failure::io(format!("cannot open the session to others: {why}"))),
            Err(why) => {
                say(format_args!("clients cannot join this session: {why}"));
                Ok(None)
            }
        }
    }

    /// Whether the session's bus is at an address of the user's own, so that a client may type.
    pub(crate) fn has_bus(&self) -> bool {
        !self.bus.is_empty()
    }

    /// The addresses that were asked for.
    fn addresses(&self) -> Result<Vec<Address>, String> {
        let parse = if self.allow_remote { Address::anywhere } else { str::parse };
        let clear = |e| match e {
            AddressError::NotLocal(at) => format!(
                "{at} can be reached from other machines: give --allow-remote and --token-file if it is to be, or a loopback address"
            ),
            e => e.to_string(),
        };
        let addresses: Vec<Address> = self
            .bus
            .iter()
            .map(|text| parse(text).map_err(clear).map_err(|why| format!("--bus: {why}")))
            .collect::<Result<_, _>>()?;
        match addresses.iter().find(|at| matches!(at, Address::Tcp(_)) && self.token_file.is_none()) {
            Some(at) => Err(format!("--bus: every user of this machine can reach {at}: give --token-file")),
            None => Ok(addresses),
        }
    }

    fn buses(&self, addresses: Vec<Address>) -> Result<Vec<Bus>, String> {
        let grants = |file: &PathBuf| Grants::from_file(file).map_err(|e| format!("{}: {e}", file.display()));
        let grants = self.token_file.as_ref().map(grants).transpose()?;
        let bus = |address| Bus::new(address).grants(grants.clone()).anywhere(self.allow_remote);
        Ok(addresses.into_iter().map(bus).collect())
    }
}

/// The doors of a session that is about to start.
pub(crate) struct OpenDoors {
    doors: Doors,
    /// The session is the only one of a detached host.
    alone: bool,
}

impl OpenDoors {
    /// The session's id.
    pub(crate) fn id(&self) -> &str {
        self.doors.id()
    }

    /// Serves the session, which runs now.
    pub(crate) fn serve(self, session: Session) -> Option<Hosted> {
        let handle = session.handle.clone();
        let id = self.doors.id().to_owned();
        match self.doors.serve(session) {
            Ok(served) => {
                if self.alone {
                    detached_host::announce(&id);
                }
                Some(Hosted { served, alone: self.alone })
            }
            Err(e) => {
                // A program in the user's terminal matters more than clients that would watch it.
                say(format_args!("clients cannot join this session: {e}"));
                if self.alone {
                    // With no terminal and no way in, no client could ever see it.
                    handle.cancel();
                }
                None
            }
        }
    }
}

/// A session that is served. A detached host stays until a client has seen its end, or a signal
/// ends it.
pub(crate) struct Hosted {
    served: Served,
    alone: bool,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if !self.alone {
            return;
        }
        self.served.end();
        let Ok(mut keyboard) = Keyboard::ends_only() else { return };
        while !self.served.is_over() {
            let mut over = [PollFd::from_borrowed_fd(self.served.over(), PollFlags::IN)];
            match keyboard.wait_beside(None, &mut over) {
                Ok(Pressed::Signal(_)) => self.served.dismiss(),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}
