//! `tapdeck broker`: keeps the last turns of all sessions.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use tapdeck_host::{Keyboard, Pressed};
use tapdeck_proto::broker::Desktop;
use tapdeck_proto::bus::Role;
use tapdeck_serve::broker::{Broker, Limits, Sink};
use tapdeck_serve::client::{ANSWER, connect_to_watch};

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sessions::alive;

/// How long a tool of the desktop may take.
const TOOL: Duration = Duration::from_secs(10);

/// Keep the last turns of all sessions for capture and deliver.
#[derive(Args)]
#[command(after_help = "\
Runs until you stop it. Sessions that are running and sessions that start later register themselves.

Examples:
  tapdeck broker &
  tapdeck capture claude && tapdeck deliver inject codex")]
pub(crate) struct BrokerArgs {
    /// Turns to keep per session
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ring: u32,
    /// Bytes to keep per turn
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = clap::value_parser!(u32).range(1..=15 << 20))]
    turn_bytes: u32,
    /// Bytes to keep in all; beyond that, the session with the most loses its oldest turn
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, value_parser = clap::value_parser!(u64).range(1 << 20..=64 << 30), hide_short_help = true)]
    total_bytes: u64,
}

pub(crate) fn run(args: &BrokerArgs) -> Result {
    let total = usize::try_from(args.total_bytes).unwrap_or(usize::MAX);
    let limits = Limits::default().ring(args.ring as usize).turn(args.turn_bytes as usize).total(total);
    let cannot = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AddrInUse => Failure::check("a broker is running already"),
        _ => Failure::io(format!("the broker cannot start: {e}")),
    };
    // Before there are other threads, which would not have the signals blocked.
    let mut signals = Keyboard::ends_only().map_err(cannot)?;
    let mut broker = Broker::bind(limits, Arc::new(write_sink)).map_err(cannot)?;
    // On a thread, because the sessions connect to the broker before they answer.
    std::thread::spawn(tell_sessions);
    let stop = broker.stopper();
    std::thread::spawn(move || {
        while !matches!(signals.wait(None), Ok(Pressed::Signal(_)) | Err(_)) {}
        stop();
    });
    broker.run();
    Ok(Ending::Done)
}

/// Tells the sessions that run already to look for the broker.
fn tell_sessions() {
    for listing in alive().map(|(_, all)| all).unwrap_or_default() {
        // A session that does not answer is ending, or finds the broker with its next turn.
        let _ = connect_to_watch(&listing, "broker", Role::Human)
            .and_then(|mut bus| bus.request(&tapdeck_proto::bus::Broker, ANSWER));
    }
}

/// Writes a turn to a file or to the desktop's clipboard, on a thread of the broker.
fn write_sink(sink: &Sink, content: &[u8]) -> Result<(), String> {
    match sink {
        Sink::File(path) => write_file(path, content).map_err(|e| format!("{}: {e}", path.display())),
        Sink::Clipboard(desktop) => {
            let desktop = if desktop.is_named() { desktop.clone() } else { own_desktop() };
            let tools: [&[&str]; 3] =
                [&["wl-copy"], &["xclip", "-selection", "clipboard"], &["xsel", "--clipboard", "--input"]];
            let shown = |tool: &[&str]| match tool[0] {
                "wl-copy" => desktop.wayland_display.is_some(),
                _ => desktop.display.is_some(),
            };
            for tool in tools.into_iter().filter(|t| shown(t)) {
                if copy_with(tool, &desktop, content).is_ok() {
                    return Ok(());
                }
            }
            Err("no clipboard tool of the desktop works: wl-copy, xclip or xsel".into())
        }
    }
}

/// The desktop that the broker was started in, for clients that name none.
fn own_desktop() -> Desktop {
    let variable = |name: &str| std::env::var(name).ok();
    Desktop {
        display: variable("DISPLAY"),
        wayland_display: variable("WAYLAND_DISPLAY"),
        xauthority: variable("XAUTHORITY"),
    }
}

fn write_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a tool of the desktop, which has no terminal and is no session"
)]
fn copy_with(tool: &[&str], desktop: &Desktop, content: &[u8]) -> std::io::Result<()> {
    let mut command = Command::new(tool[0]);
    for (name, value) in [
        ("DISPLAY", &desktop.display),
        ("WAYLAND_DISPLAY", &desktop.wayland_display),
        ("XAUTHORITY", &desktop.xauthority),
    ] {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child =
        command.args(&tool[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // A tool that neither reads nor ends must not keep its thread for ever.
    let (done, watched) = channel::<()>();
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let watchdog = std::thread::spawn(move || {
        if let (Err(RecvTimeoutError::Timeout), Some(pid)) = (watched.recv_timeout(TOOL), pid) {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(content));
    let ended = child.wait();
    drop(done);
    // The watchdog returns nothing, and cannot panic.
    let _ = watchdog.join();
    written?;
    if ended?.success() { Ok(()) } else { Err(std::io::Error::other("it failed")) }
}
