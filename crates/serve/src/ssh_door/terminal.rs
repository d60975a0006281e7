//! What a visitor gets: one of our own commands, on a terminal of the visitor's kind and size or on pipes, with the bytes
//! carried both ways.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelWriteHalf};
use tapdeck_core::{Exit, Stamp, Stream};
use tapdeck_host::InheritedSignals;
use tapdeck_host::backend::{Backend, CommandSpec, EndOfInput, Got, LocalPty, Pipes, Stop, TerminalSetup};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

use super::Kind;
use super::visitor::size;

/// Input that the command has not taken yet; somebody who types more than that is no person.
const INPUT_LIMIT: usize = 4 << 20;

/// How long the command's end may lie apart from that of its output, and how often to look.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// Tells a visitor why they get nothing.
pub(super) async fn refuse(channel: Channel<Msg>, why: String, code: i32) {
    let (_reader, writer) = channel.split();
    let text = format!("tapdeck: {why}\r\n");
    let _ = writer.extended_data(1, text.as_bytes()).await;
    end(&writer, Exit::Code(code)).await;
}

/// Runs a command for a visitor, to the end of either.
pub(super) async fn show(
    channel: Channel<Msg>,
    mut command: CommandSpec,
    kind: Option<Kind>,
    signals: InheritedSignals,
) {
    let started: Result<Box<dyn Backend>, _> = match &kind {
        Some(kind) => {
            command.env.push(("TERM".into(), Some(kind.term.clone().into())));
            let setup = TerminalSetup { size: kind.size, ..TerminalSetup::default() };
            LocalPty::spawn(&command, signals, &setup).map(|b| Box::new(b) as Box<dyn Backend>)
        }
        None => Pipes::spawn(&command, signals).map(|b| Box::new(b) as Box<dyn Backend>),
    };
    match started {
        Ok(backend) => carry(channel, backend).await,
        Err(e) => refuse(channel, e.to_string(), e.exit_code()).await,
    }
}

/// A descriptor of the backend's, to be waited at in the runtime.
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
            // Whether there is anything is seen by reading; what was known of it counts no longer.
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

async fn carry(channel: Channel<Msg>, mut backend: Box<dyn Backend>) {
    let (mut reader, writer) = channel.split();
    let watch = backend.watch();
    let fds = (|| {
        io::Result::Ok((
            waiting_at(watch.readable[0])?,
            waiting_at(watch.readable[1])?,
            waiting_at(watch.exit)?,
            // A terminal is written through the descriptor that it is read from.
            if watch.readable[1].is_some() { waiting_at(watch.writable)? } else { None },
        ))
    })();
    let Ok((out, err, exit, input)) = fds else { return };
    let input = input.as_ref().or(out.as_ref());
    let mut typed: VecDeque<u8> = VecDeque::new();
    let mut ended = None;
    let mut buf = vec![0; 32 * 1024];
    loop {
        // Everything that is there goes out first. While the visitor does not take it, what they say is still heard.
        let mut closed = false;
        loop {
            match backend.read(&mut buf, Stamp::default()) {
                Ok(Got::Bytes(stream, n)) => {
                    let send = write(&writer, stream, &buf[..n]);
                    let mut send = std::pin::pin!(send);
                    loop {
                        tokio::select! {
                            sent = &mut send => match sent {
                                Ok(()) => break,
                                Err(_) => return,
                            },
                            message = reader.wait() => {
                                if !hear(message, backend.as_mut(), &mut typed) {
                                    return;
                                }
                                give(backend.as_mut(), &mut typed);
                            }
                        }
                    }
                }
                Ok(Got::Closed) => {
                    closed = true;
                    break;
                }
                Ok(_) => break,
                Err(_) => return,
            }
        }
        ended = ended.or_else(|| backend.exited().ok().flatten());
        if let Some(exit) = ended.filter(|_| closed) {
            return end(&writer, exit).await;
        }
        // A stream that has ended would be ready for ever.
        let open = backend.watch().readable.map(|fd| fd.is_some());
        tokio::select! {
            () = readable(out.as_ref()), if open[0] => {}
            () = readable(err.as_ref()), if open[1] => {}
            () = writable(input, !typed.is_empty()) => give(backend.as_mut(), &mut typed),
            () = readable(exit.as_ref()), if ended.is_none() => {}
            () = tokio::time::sleep(LOOK), if closed || ended.is_some() => {
                // Whatever the command left on its way is out by now.
                if let Some(exit) = ended {
                    return end(&writer, exit).await;
                }
            }
            message = reader.wait() => {
                if !hear(message, backend.as_mut(), &mut typed) {
                    // The visitor is gone; so is the command, when its terminal is.
                    let _ = backend.stop(Stop::HangUp);
                    return;
                }
                give(backend.as_mut(), &mut typed);
            }
        }
    }
}

/// What a visitor says; `false` when they are gone.
fn hear(message: Option<ChannelMsg>, backend: &mut dyn Backend, typed: &mut VecDeque<u8>) -> bool {
    match message {
        Some(ChannelMsg::Data { data }) => {
            typed.extend(data.iter());
            return typed.len() <= INPUT_LIMIT;
        }
        Some(ChannelMsg::WindowChange { col_width, row_height, pix_width, pix_height }) => {
            let _ = backend.resize(size(col_width, row_height, pix_width, pix_height));
        }
        Some(ChannelMsg::Eof) if !backend.has_terminal() => {
            let told = backend.end_input(false, std::time::Duration::ZERO);
            debug_assert!(!matches!(told, Ok(EndOfInput::Send(..))), "pipes have no such key");
        }
        Some(ChannelMsg::Close) | None => return false,
        Some(_) => {}
    }
    true
}

/// Gives the command what it takes.
fn give(backend: &mut dyn Backend, typed: &mut VecDeque<u8>) {
    while !typed.is_empty() {
        match backend.write(typed.as_slices().0) {
            Ok(n) if n > 0 => drop(typed.drain(..n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            // The command reads no more.
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

/// The end of a command, as the protocol says it.
async fn end(writer: &ChannelWriteHalf<Msg>, exit: Exit) {
    let code = match exit {
        Exit::Code(code) => u32::try_from(code).unwrap_or(255),
        Exit::Signal(signal) => 128 + u32::try_from(signal).unwrap_or(0),
    };
    let _ = writer.exit_status(code).await;
    let _ = writer.eof().await;
    let _ = writer.close().await;
}
