//! A program on another machine, through an ssh client within this process.
//!
//! The protocol runs on a thread of its own with a small runtime; between it and the driver are
//! plain sockets, which the driver waits at as it does at a terminal. What a person must be asked
//! is asked before the session begins.

mod config;
mod connect;
mod fault;
mod hosts;
mod pty_modes;
mod session;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_core::{Exit, Stamp, Stream, WinSize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::place::{Place, Prompter, SshPlace};
use super::remote::{Drain, Keys, Verdict};
use super::{Backend, CommandSpec, EndOfInput, Got, SpawnError, StopSignal, TerminalSetup, Watch};
use config::Proxy;
use connect::{Asker, Said, Target};
use fault::Fault;
use session::{Order, Program, Streams, Terminal};

/// How often a wait for the server checks whether the user has cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A program on another machine.
pub(super) struct Ssh {
    out: Option<UnixStream>,
    err: Option<UnixStream>,
    /// Which stream to try first, so that a flood on one cannot starve the other.
    err_first: bool,
    terminal: bool,
    keys: Keys,
    drain: Drain,
    orders: Option<UnboundedSender<Order>>,
    verdict: Arc<Verdict>,
    place: String,
    thread: Option<JoinHandle<()>>,
}

impl Ssh {
    /// Starts a program on another machine, on a terminal or on pipes.
    pub(super) fn start(
        place: &SshPlace,
        command: &CommandSpec,
        terminal: Option<&TerminalSetup>,
        prompter: &mut dyn Prompter,
    ) -> Result<Self, SpawnError> {
        let name = Place::Ssh(place.clone()).to_string();
        let fail = |why: &dyn std::fmt::Display| SpawnError::unreachable(&name, why);
        let target = target(place).map_err(|e| fail(&e))?;
        let pair = || -> io::Result<(UnixStream, UnixStream)> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            theirs.set_nonblocking(true)?;
            Ok((ours, theirs))
        };
        let (out, their_out) = pair().map_err(|e| fail(&e))?;
        let apart = terminal.is_none().then(pair).transpose().map_err(|e| fail(&e))?;
        let (err, their_err) = apart.unzip();
        let program = Program {
            command: command.clone(),
            terminal: terminal.map(|setup| Terminal {
                term: term(command),
                size: setup.size,
                modes: pty_modes::pty_modes(setup),
            }),
        };
        let verdict = Arc::new(Verdict::new().map_err(|e| fail(&e))?);
        let (said, heard) = channel();
        let (orders, ordered) = unbounded_channel();
        let theirs = verdict.clone();
        let work = move || {
            let streams = (their_out, their_err);
            if let Err(why) = work(&target, &program, streams, ordered, &theirs, &Asker(said.clone())) {
                // Heard while the session has not begun; afterwards the verdict tells.
                let _ = said.send(Said::Failed(why.clone()));
                theirs.give(Err(why.to_string()));
            }
        };
        let thread =
            std::thread::Builder::new().name("tapdeck-ssh".into()).spawn(work).map_err(|e| fail(&e))?;
        let this = Self {
            out: Some(out),
            err,
            err_first: false,
            terminal: terminal.is_some(),
            keys: Keys::of(terminal.and_then(|t| t.termios.as_ref())),
            drain: Drain::default(),
            orders: Some(orders),
            verdict,
            place: name.clone(),
            thread: Some(thread),
        };
        // Dropped on every way out but one, which ends the thread.
        wait_for(&heard, prompter, &name)?;
        Ok(this)
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A session that has ended needs no orders.
            let _ = orders.send(order);
        }
    }
}

/// Waits until the program runs, and passes questions on to the prompter.
fn wait_for(heard: &Receiver<Said>, prompter: &mut dyn Prompter, name: &str) -> Result<(), SpawnError> {
    loop {
        match heard.recv_timeout(LOOK) {
            Ok(Said::Ready) => return Ok(()),
            Ok(Said::Failed(why)) => return Err(why.into_spawn_error(name)),
            Ok(Said::Note(text)) => prompter.note(&text),
            Ok(Said::Ask { question, secret, answer }) => {
                let said = prompter.ask(&question, secret);
                if let Some(signal) = prompter.cancelled() {
                    return Err(SpawnError::CalledOff(signal));
                }
                let said = said.map_err(|e| SpawnError::unreachable(name, format!("cannot ask: {e}")))?;
                // The connecting thread may be gone, and then it needs no answer.
                let _ = answer.send(said);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(signal) = prompter.cancelled() {
                    return Err(SpawnError::CalledOff(signal));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(SpawnError::unreachable(name, "the connection broke off"));
            }
        }
    }
}

/// Everything that happens on the thread.
fn work(
    target: &Target,
    program: &Program,
    (out, err): (UnixStream, Option<UnixStream>),
    mut orders: UnboundedReceiver<Order>,
    verdict: &Arc<Verdict>,
    asker: &Asker,
) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("no runtime: {e}"))?;
    runtime.block_on(async {
        let io = |e: io::Error| e.to_string();
        let streams = Streams {
            both: tokio::net::UnixStream::from_std(out).map_err(io)?,
            err: err.map(tokio::net::UnixStream::from_std).transpose().map_err(io)?,
        };
        let reach = async {
            let connection = connect::connect(target, asker.clone()).await?;
            let running = session::start(&connection, program).await?;
            Ok::<_, Fault>((connection, running))
        };
        // There is nothing to order before the program runs; when the backend is dropped, it all
        // ends.
        let given_up = async { while orders.recv().await.is_some() {} };
        let (connection, running) = tokio::select! {
            reached = reach => reached?,
            () = given_up => return Ok(()),
        };
        // Without a waiting thread the orders end, and so does this.
        let _ = asker.0.send(Said::Ready);
        session::run(connection, running, streams, orders, verdict.clone()).await;
        Ok(())
    })
}

/// Machines on the way to a machine.
const HOPS: usize = 8;

/// Where to go and as whom: what was said, what the configuration says, what is usual.
fn target(place: &SshPlace) -> Result<Target, String> {
    let (mut target, proxy) = alone(place)?;
    let mut proxy = proxy;
    // A way may begin with a machine that has a way of its own.
    while let Some(through) = proxy.take() {
        match through {
            Proxy::Command(command) => target.command = Some(command),
            Proxy::Jump(hops) => {
                let mut before = Vec::new();
                for hop in &hops {
                    let hop = format!("ssh:{}", hop.strip_prefix("ssh://").unwrap_or(hop));
                    let Ok(Place::Ssh(mut hop)) = hop.parse() else {
                        return Err(format!(
                            "~/.ssh/config names {hop:?} on the way to it, which is no machine"
                        ));
                    };
                    hop.accept_new = place.accept_new;
                    let (hop, its) = alone(&hop)?;
                    if before.is_empty() {
                        proxy = its;
                    }
                    before.push(hop);
                }
                before.append(&mut target.through);
                target.through = before;
            }
        }
        if target.through.len() > HOPS {
            return Err(format!("there are more than {HOPS} machines on the way to it"));
        }
    }
    Ok(target)
}

/// A machine by itself, and the way to it, if there is a special one.
fn alone(place: &SshPlace) -> Result<(Target, Option<Proxy>), String> {
    let home = crate::recorder::home_folder().unwrap_or_default();
    let mut config = config::read(&home.join(".ssh/config"), &home, &place.host)?;
    let proxy = config.proxy.take();
    let here = || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = place.user.clone().or_else(|| config.user.clone()).or_else(here).or_else(own_name);
    let user = user.ok_or("as whom? write ssh:USER@HOST")?;
    let target = Target {
        host: config.host_name.clone().unwrap_or_else(|| place.host.clone()),
        port: place.port.or(config.port).unwrap_or(22),
        user,
        named: place.identities.clone(),
        accept_new: place.accept_new,
        home,
        config,
        through: Vec::new(),
        command: None,
    };
    Ok((target, proxy))
}

/// The name of the user whose process this is.
fn own_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|fields| fields.get(2) == Some(&uid.as_str())).map(|fields| fields[0].to_owned())
}

/// The kind of terminal that the program is to see: as set for it, or the user's.
fn term(command: &CommandSpec) -> String {
    let given = command.env.iter().rev().find(|(name, _)| name == "TERM").map(|(_, value)| value.clone());
    let term = given.unwrap_or_else(|| std::env::var_os("TERM"));
    term.and_then(|t| t.into_string().ok()).filter(|t| !t.is_empty()).unwrap_or_else(|| "dumb".into())
}

/// Reads from a stream that may be gone; forgets it at its end.
fn read_one(stream: &mut Option<UnixStream>, buf: &mut [u8]) -> io::Result<usize> {
    let Some(socket) = stream else { return Ok(0) };
    match socket.read(buf) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => {
            *stream = None;
            Ok(0)
        }
        other => other,
    }
}

impl Backend for Ssh {
    fn watch(&self) -> Watch<'_> {
        Watch {
            readable: [self.out.as_ref().map(AsFd::as_fd), self.err.as_ref().map(AsFd::as_fd)],
            writable: self.out.as_ref().map(AsFd::as_fd),
            exit: (!self.drain.begun()).then(|| self.verdict.fd()),
            read_at: self.drain.look_at(),
            ..Watch::default()
        }
    }

    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        self.err_first = !self.err_first;
        let order = if self.err_first { [Stream::Err, Stream::Out] } else { [Stream::Out, Stream::Err] };
        for stream in order {
            let socket = if stream == Stream::Out { &mut self.out } else { &mut self.err };
            let n = read_one(socket, buf)?;
            if n > 0 {
                self.drain.passed(now);
                return Ok(Got::Bytes(stream, n));
            }
        }
        let open = self.out.is_some() || self.err.is_some();
        if open && !self.drain.over(now) {
            return Ok(Got::Nothing);
        }
        (self.out, self.err) = (None, None);
        Ok(Got::Closed)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(out) = &mut self.out else { return Ok(bytes.len()) };
        match out.write(bytes) {
            // The program is gone: what is typed now goes nowhere.
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn end_input(&mut self, line_open: bool, quiet: Duration) -> io::Result<EndOfInput> {
        if self.terminal {
            return Ok(self.keys.end_of_input(line_open, quiet));
        }
        if let Some(out) = &self.out {
            out.shutdown(std::net::Shutdown::Write)?;
        }
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, size: WinSize) -> io::Result<()> {
        if self.terminal {
            self.order(Order::Resize(size));
        }
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        // A server passes signals on to the first group of processes only, if at all; the
        // terminal's own keys reach its foreground process group.
        if self.terminal
            && let Some(key) = self.keys.of_signal(signal)
        {
            return self.write(&[key]).map(drop);
        }
        self.order(Order::Signal(signal));
        Ok(())
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        self.order(Order::Stop(how));
        Ok(())
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        // The protocol has no word for it: the program goes on until its output is not taken any
        // more.
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        let Some(verdict) = self.verdict.get() else { return Ok(None) };
        self.drain.begin();
        // What it wrote last may still be on its way.
        if self.out.is_some() || self.err.is_some() {
            return Ok(None);
        }
        verdict.map(Some).map_err(|why| io::Error::other(format!("{}: {why}", self.place)))
    }

    fn has_terminal(&self) -> bool {
        self.terminal
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.orders = None;
        (self.out, self.err) = (None, None);
        if let Some(thread) = self.thread.take() {
            // Without orders and streams it says farewell, which has a limit.
            let _ = thread.join();
        }
    }
}
