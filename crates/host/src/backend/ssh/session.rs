//! A program on the far side, once one is known there: its terminal, its command, and the bytes
//! both ways.

use std::cell::Cell;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Disconnect, Pty, Sig};
use tapdeck_core::check::{signal_name, signal_number};
use tapdeck_core::{Exit, WinSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::super::remote::Verdict;
use super::super::{CommandSpec, StopSignal};
use super::connect::Connection;
use super::fault::Fault;

/// After a signal that is to end the program: how long it has before its terminal is taken away.
/// Some servers pass no signals on; without its terminal a program ends by itself.
const HUNG_UP: Duration = Duration::from_secs(5);
const KILLED: Duration = Duration::from_millis(300);
/// How long the far side has to close what we have closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the driver asks for while the program runs.
#[derive(Debug)]
pub(super) enum Order {
    Resize(WinSize),
    Signal(i32),
    Stop(StopSignal),
}

/// What to run, ready to be said.
pub(super) struct Program {
    pub(super) command: CommandSpec,
    pub(super) terminal: Option<Terminal>,
}

/// The terminal that it gets.
pub(super) struct Terminal {
    pub(super) term: String,
    pub(super) size: WinSize,
    pub(super) modes: Vec<(Pty, u32)>,
}

/// Our ends of the program's streams.
pub(super) struct Streams {
    pub(super) both: UnixStream,
    pub(super) err: Option<UnixStream>,
}

/// A program that runs.
pub(super) struct Running {
    reader: ChannelReadHalf,
    writer: ChannelWriteHalf<Msg>,
}

/// Starts the program.
pub(super) async fn start(connection: &Connection, program: &Program) -> Result<Running, Fault> {
    let channel = connection.handle.channel_open_session().await;
    let channel = channel.map_err(|e| format!("it opens no session: {e}"))?;
    let (mut reader, writer) = channel.split();
    let lost = |e: russh::Error| e.to_string();
    if let Some(Terminal { term, size, modes }) = &program.terminal {
        let (cols, rows) = (u32::from(size.cols), u32::from(size.rows));
        let (x, y) = (u32::from(size.x_pixels), u32::from(size.y_pixels));
        writer.request_pty(true, term, cols, rows, x, y, modes).await.map_err(lost)?;
        if !granted(&mut reader).await? {
            return Err(Fault::NoTerminal);
        }
    }
    // Servers take few variables this way; the others are set by the command itself.
    let mut refused = Vec::new();
    for (name, value) in &program.command.env {
        let Some(value) = value else { continue };
        let (Some(key), Some(text)) = (name.to_str(), value.to_str()) else {
            return Err(format!("the variable {name:?} is no UTF-8, which the protocol needs").into());
        };
        if key == "TERM" && program.terminal.is_some() {
            continue;
        }
        writer.set_env(true, key, text).await.map_err(lost)?;
        if !granted(&mut reader).await? {
            refused.push((key, text));
        }
    }
    match command_line(&program.command, &refused) {
        Some(line) => writer.exec(true, line).await.map_err(lost)?,
        None => writer.request_shell(true).await.map_err(lost)?,
    }
    if !granted(&mut reader).await? {
        return Err("it does not start the program".into());
    }
    Ok(Running { reader, writer })
}

/// Whether a request was granted. Nothing else comes before the program runs.
async fn granted(reader: &mut ChannelReadHalf) -> Result<bool, String> {
    loop {
        match reader.wait().await {
            Some(ChannelMsg::Success) => return Ok(true),
            Some(ChannelMsg::Failure) => return Ok(false),
            Some(ChannelMsg::Close) | None => return Err("it closed the session".into()),
            Some(_) => {}
        }
    }
}

/// The line that the far shell is given; none for the login shell itself.
fn command_line(command: &CommandSpec, variables: &[(&str, &str)]) -> Option<Vec<u8>> {
    if command.argv.is_empty() && command.cwd.is_none() && variables.is_empty() {
        return None;
    }
    let mut line = Vec::new();
    if let Some(cwd) = &command.cwd {
        line.extend_from_slice(b"cd ");
        quote(&mut line, cwd.as_os_str().as_bytes());
        line.extend_from_slice(b" && ");
    }
    line.extend_from_slice(b"exec");
    if !variables.is_empty() {
        line.extend_from_slice(b" env");
        for (name, value) in variables {
            line.push(b' ');
            quote(&mut line, format!("{name}={value}").as_bytes());
        }
    }
    if command.argv.is_empty() {
        line.extend_from_slice(b" \"$SHELL\" -l");
    }
    for word in &command.argv {
        line.push(b' ');
        quote(&mut line, word.as_bytes());
    }
    Some(line)
}

/// A word in which nothing means anything to a shell.
fn quote(line: &mut Vec<u8>, word: &[u8]) {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./,:+@%".contains(b);
    if !word.is_empty() && word.iter().all(plain) {
        return line.extend_from_slice(word);
    }
    line.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\'');
}

/// Carries bytes and orders until the program has ended and its output is out. The orders' end is
/// that of the session.
pub(super) async fn run(
    connection: Connection,
    running: Running,
    streams: Streams,
    orders: UnboundedReceiver<Order>,
    verdict: Arc<Verdict>,
) {
    let Running { mut reader, writer } = running;
    let (mut input, mut out) = streams.both.into_split();
    let mut err = streams.err;
    let killed = Cell::new(None);
    tokio::select! {
        () = pass_output(&mut reader, &mut out, err.as_mut(), &verdict) => {}
        () = pass_input(&mut input, &writer) => {}
        () = obey(orders, &writer, &killed) => {}
    }
    // The first verdict stands; this one is for programs whose end was not reported.
    verdict.give(killed.get().ok_or_else(|| connection.lost()));
    drop((out, input, err));
    let farewell = connection.handle.disconnect(Disconnect::ByApplication, "", "");
    // A server that does not take leave is left.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Passes the program's output to the driver, and reports its exit.
async fn pass_output(
    reader: &mut ChannelReadHalf,
    out: &mut OwnedWriteHalf,
    mut err: Option<&mut UnixStream>,
    verdict: &Verdict,
) {
    while let Some(message) = reader.wait().await {
        let written = match message {
            ChannelMsg::Data { data } => out.write_all(&data).await,
            ChannelMsg::ExtendedData { data, ext: 1 } => match &mut err {
                Some(err) => err.write_all(&data).await,
                None => out.write_all(&data).await,
            },
            ChannelMsg::ExitStatus { exit_status } => {
                // A death by signal has a message of its own.
                verdict.give(Ok(Exit::Code(i32::try_from(exit_status).unwrap_or(255))));
                Ok(())
            }
            ChannelMsg::ExitSignal { signal_name, .. } => {
                verdict.give(Ok(Exit::Signal(number_of(&signal_name))));
                Ok(())
            }
            ChannelMsg::Close => return,
            _ => Ok(()),
        };
        // The driver is gone, and the session with it.
        if written.is_err() {
            return;
        }
    }
}

/// Passes the driver's input to the program. Never returns: the end of input is not the session's.
async fn pass_input(input: &mut OwnedReadHalf, writer: &ChannelWriteHalf<Msg>) {
    let mut buf = vec![0; 32 * 1024];
    loop {
        match input.read(&mut buf).await {
            Ok(n) if n > 0 => {
                if writer.data(&buf[..n]).await.is_err() {
                    break;
                }
            }
            _ => {
                // A lost connection is noticed by the reader.
                let _ = writer.eof().await;
                break;
            }
        }
    }
    std::future::pending().await
}

/// Carries out the driver's orders to their end. Sets `killed` before it kills the program, because
/// the server may close the channel at once. A lost connection is noticed where output is read, so
/// what is sent here may fail.
async fn obey(
    mut orders: UnboundedReceiver<Order>,
    writer: &ChannelWriteHalf<Msg>,
    killed: &Cell<Option<Exit>>,
) {
    let mut close_at: Option<Instant> = None;
    loop {
        let deadline = async {
            match close_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let order = tokio::select! {
            order = orders.recv() => order,
            () = deadline => {
                killed.set(Some(Exit::Signal(libc::SIGKILL)));
                let _ = writer.signal(Sig::KILL).await;
                let _ = writer.close().await;
                tokio::time::sleep(FAREWELL).await;
                return;
            }
        };
        let Some(order) = order else { return };
        match order {
            Order::Resize(size) => {
                let (cols, rows) = (u32::from(size.cols), u32::from(size.rows));
                let (x, y) = (u32::from(size.x_pixels), u32::from(size.y_pixels));
                let _ = writer.window_change(cols, rows, x, y).await;
            }
            Order::Signal(signal) => {
                let _ = writer.signal(named(signal)).await;
            }
            Order::Stop(how) => {
                let _ = writer.signal(named(how.signal())).await;
                let left = match how {
                    StopSignal::Terminate => continue,
                    StopSignal::HangUp => HUNG_UP,
                    StopSignal::Kill => KILLED,
                };
                let at = Instant::now() + left;
                close_at = Some(close_at.map_or(at, |set| set.min(at)));
            }
        }
    }
}

impl Connection {
    /// Says that the connection was lost, and why.
    fn lost(&self) -> String {
        let said = self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let said = said.unwrap_or_else(|| "the far side closed it".into());
        format!("the connection was lost: {said}")
    }
}

fn named(signal: i32) -> Sig {
    match signal {
        libc::SIGHUP => Sig::HUP,
        libc::SIGINT => Sig::INT,
        libc::SIGKILL => Sig::KILL,
        libc::SIGQUIT => Sig::QUIT,
        libc::SIGTERM => Sig::TERM,
        libc::SIGUSR1 => Sig::USR1,
        other => Sig::Custom(signal_name(other)),
    }
}

fn number_of(signal: &Sig) -> i32 {
    match signal {
        Sig::ABRT => libc::SIGABRT,
        Sig::ALRM => libc::SIGALRM,
        Sig::FPE => libc::SIGFPE,
        Sig::HUP => libc::SIGHUP,
        Sig::ILL => libc::SIGILL,
        Sig::INT => libc::SIGINT,
        Sig::KILL => libc::SIGKILL,
        Sig::PIPE => libc::SIGPIPE,
        Sig::QUIT => libc::SIGQUIT,
        Sig::SEGV => libc::SIGSEGV,
        Sig::TERM => libc::SIGTERM,
        Sig::USR1 => libc::SIGUSR1,
        // A signal that has no number here is some death all the same.
        Sig::Custom(name) => signal_number(name).unwrap_or(libc::SIGKILL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_far_shell_as_they_are() {
        let line = |argv: &[&str], cwd: Option<&str>, env: &[(&str, &str)]| {
            let mut command = CommandSpec::new(argv.iter().copied());
            command.cwd = cwd.map(Into::into);
            command_line(&command, env).map(|l| String::from_utf8_lossy(&l).into_owned())
        };
        assert_eq!(line(&[], None, &[]), None);
        assert_eq!(line(&["ls", "-l"], None, &[]).as_deref(), Some("exec ls -l"));
        assert_eq!(
            line(&["sh", "-c", "echo '$x'"], None, &[]).as_deref(),
            Some(r"exec sh -c 'echo '\''$x'\'''")
        );
        assert_eq!(line(&[""], Some("/a b"), &[]).as_deref(), Some("cd '/a b' && exec ''"));
        let with = line(&["x"], None, &[("A", "1"), ("B", "$(rm)")]);
        assert_eq!(with.as_deref(), Some("exec env 'A=1' 'B=$(rm)' x"));
        assert_eq!(line(&[], Some("/w"), &[]).as_deref(), Some("cd /w && exec \"$SHELL\" -l"));
    }

    #[test]
    fn signals_by_name() {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGUSR2, libc::SIGKILL] {
            assert_eq!(number_of(&named(signal)), signal);
        }
    }
}
