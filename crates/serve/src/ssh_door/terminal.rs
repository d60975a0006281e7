//! The command that runs for a client: on a terminal of the client's type and size, or on pipes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tapdeck_core::{Exit, Stamp, Stream};
use tapdeck_host::InheritedSignals;
use tapdeck_host::backend::{
    Backend, CommandSpec, EndOfInput, Got, LocalPty, Pipes, StopSignal, TerminalSetup,
};
use tapdeck_term::printable;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

use super::ClientTerminal;
use super::client::size;
use crate::wire::start_code;

/// The most input that waits for the command; no person types more.
const INPUT_LIMIT: usize = 4 << 20;

/// How long output may follow the command's end, and how often to check for either.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// Tells a client why it gets nothing.
pub(super) async fn refuse(channel: Channel<Msg>, why: String, code: i32) {
    let (_reader, writer) = channel.split();
    // The reason quotes names, of sessions and of what the client asked for.
    let text = format!("tapdeck: {}\r\n", printable(&why));
    // A client that is gone needs no reason.
    let _ = writer.extended_data(1, text.as_bytes()).await;
    end(&writer, Exit::Code(code)).await;
}

/// Runs a command for a client, until either ends.
pub(super) async fn show(
    channel: Channel<Msg>,
    mut command: CommandSpec,
    terminal: Option<ClientTerminal>,
    signals: InheritedSignals,
) {
    let started: Result<Box<dyn Backend>, _> = match &terminal {
        Some(terminal) => {
            command.env.push(("TERM".into(), Some(terminal.term.clone().into())));
            let setup = TerminalSetup::default().size(terminal.size);
            LocalPty::spawn(&command, signals, &setup).map(|b| Box::new(b) as Box<dyn Backend>)
        }
        None => Pipes::spawn(&command, signals).map(|b| Box::new(b) as Box<dyn Backend>),
    };
    match started {
        Ok(backend) => carry(channel, backend).await,
        Err(e) => refuse(channel, e.to_string(), start_code(e.kind())).await,
    }
}

/// Makes a copy of a descriptor to be waited at in the runtime.
#[expect(
    deprecated,
    reason = "its successor is unsafe for types that may close what they own, which this one does not"
)]
fn waiting_at(fd: Option<BorrowedFd<'_>>) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    let fd = fd.map(|fd| fd.try_clone_to_owned()).transpose()?;
    fd.map(|fd| AsyncFd::with_interest(fd, Interest::READABLE | Interest::WRITABLE)).transpose()
}

async fn readable(fd: Option<&AsyncFd<OwnedFd>>) {
    match fd {
        Some(fd) => {
            // Reading tells whether bytes are there; the old readiness no longer counts.
            if let Ok(mut guard) = fd.readable().await {
                guard.clear_ready_matching(Ready::READABLE);
            }
        }
        None => std::future::pending().await,
    }
}

async fn writable(fd: Option<&AsyncFd<OwnedFd>>, wanted: bool) {
    match fd {
        Some(fd) if wanted => {
            if let Ok(mut guard) = fd.writable().await {
                guard.clear_ready_matching(Ready::WRITABLE);
            }
        }
        _ => std::future::pending().await,
    }
}

/// Carries bytes both ways, until the command has ended or the client is gone.
async fn carry(channel: Channel<Msg>, backend: Box<dyn Backend>) {
    let Ok(waits) = Waits::of(backend.as_ref()) else { return };
    let (reader, writer) = channel.split();
    let (typed, buf) = (VecDeque::new(), vec![0; 32 * 1024].into());
    let mut relay = Relay { backend, reader, writer, typed, exit: None, buf };
    match relay.run(&waits).await {
        Ok(exit) => end(&relay.writer, exit).await,
        Err(Gone) => {
            // A command that has ended already needs no signal.
            let _ = relay.backend.stop(StopSignal::HangUp);
        }
    }
}

/// The backend's descriptors, to be waited at in the runtime.
struct Waits {
    out: Option<AsyncFd<OwnedFd>>,
    err: Option<AsyncFd<OwnedFd>>,
    exit: Option<AsyncFd<OwnedFd>>,
    /// `None` for a terminal, which is written through the descriptor that it is read from.
    input: Option<AsyncFd<OwnedFd>>,
}

impl Waits {
    fn of(backend: &dyn Backend) -> io::Result<Self> {
        let watch = backend.watch();
        let [out, err] = watch.readable;
        Ok(Self {
            out: waiting_at(out)?,
            err: waiting_at(err)?,
            exit: waiting_at(watch.exit)?,
            input: waiting_at(watch.writable.filter(|_| err.is_some()))?,
        })
    }
}

/// The client has closed its channel, or the command cannot be read.
struct Gone;

/// A command, and the channel of the client that it runs for.
struct Relay {
    backend: Box<dyn Backend>,
    reader: ChannelReadHalf,
    writer: ChannelWriteHalf<Msg>,
    /// Input that the command has not taken yet.
    typed: VecDeque<u8>,
    exit: Option<Exit>,
    buf: Box<[u8]>,
}

impl Relay {
    async fn run(&mut self, waits: &Waits) -> Result<Exit, Gone> {
        let input = waits.input.as_ref().or(waits.out.as_ref());
        loop {
            let closed = self.send_output().await?;
            self.exit = self.exit.or_else(|| self.backend.exited().ok().flatten());
            if let Some(exit) = self.exit.filter(|_| closed) {
                return Ok(exit);
            }
            // A stream that has ended would be ready for ever.
            let [out, err] = self.backend.watch().readable.map(|fd| fd.is_some());
            tokio::select! {
                () = readable(waits.out.as_ref()), if out => {}
                () = readable(waits.err.as_ref()), if err => {}
                () = readable(waits.exit.as_ref()), if self.exit.is_none() => {}
                () = writable(input, !self.typed.is_empty()) => {
                    give(self.backend.as_mut(), &mut self.typed);
                }
                () = tokio::time::sleep(LOOK), if closed || self.exit.is_some() => {
                    // By now all output of a command that has ended is out.
                    if let Some(exit) = self.exit {
                        return Ok(exit);
                    }
                }
                message = self.reader.wait() => hear(message, self.backend.as_mut(), &mut self.typed)?,
            }
        }
    }

    /// Sends everything that the command has written. Returns whether its output has ended.
    async fn send_output(&mut self) -> Result<bool, Gone> {
        loop {
            match self.backend.read(&mut self.buf, Stamp::default()) {
                Ok(Got::Bytes(stream, n)) => self.send(stream, n).await?,
                Ok(Got::Closed) => return Ok(true),
                Ok(_) => return Ok(false),
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Sends the first `n` bytes of the buffer. While the client does not take them, its messages
    /// are still served.
    async fn send(&mut self, stream: Stream, n: usize) -> Result<(), Gone> {
        let mut sending = std::pin::pin!(write(&self.writer, stream, &self.buf[..n]));
        loop {
            tokio::select! {
                sent = &mut sending => return sent.map_err(|_| Gone),
                message = self.reader.wait() => hear(message, self.backend.as_mut(), &mut self.typed)?,
            }
        }
    }
}

/// Serves a message of the client.
fn hear(
    message: Option<ChannelMsg>,
    backend: &mut dyn Backend,
    typed: &mut VecDeque<u8>,
) -> Result<(), Gone> {
    match message {
        Some(ChannelMsg::Data { data }) => {
            typed.extend(data.iter());
            if typed.len() > INPUT_LIMIT {
                return Err(Gone);
            }
        }
        Some(ChannelMsg::WindowChange { col_width, row_height, pix_width, pix_height }) => {
            // A command that has ended has no size.
            let _ = backend.resize(size(col_width, row_height, pix_width, pix_height));
        }
        Some(ChannelMsg::Eof) if !backend.has_terminal() => {
            let told = backend.end_input(false, std::time::Duration::ZERO);
            debug_assert!(!matches!(told, Ok(EndOfInput::Send(..))), "pipes have no such key");
        }
        Some(ChannelMsg::Close) | None => return Err(Gone),
        Some(_) => {}
    }
    give(backend, typed);
    Ok(())
}

/// Gives the command as much input as it takes.
fn give(backend: &mut dyn Backend, typed: &mut VecDeque<u8>) {
    while !typed.is_empty() {
        match backend.write(typed.as_slices().0) {
            Ok(n) if n > 0 => drop(typed.drain(..n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            // The command has closed its input.
            _ => return typed.clear(),
        }
    }
}

async fn write(writer: &ChannelWriteHalf<Msg>, stream: Stream, bytes: &[u8]) -> Result<(), russh::Error> {
    match stream {
        Stream::Out => writer.data(bytes).await,
        Stream::Err => writer.extended_data(1, bytes).await,
    }
}

/// Reports how the command ended, and closes the channel.
async fn end(writer: &ChannelWriteHalf<Msg>, exit: Exit) {
    let code = match exit {
        Exit::Code(code) => u32::try_from(code).unwrap_or(255),
        Exit::Signal(signal) => 128 + u32::try_from(signal).unwrap_or(0),
    };
    // A client that is gone hears nothing, and needs not.
    let _ = writer.exit_status(code).await;
    let _ = writer.eof().await;
    let _ = writer.close().await;
}
