//! `tapdeck broker` and its clients `capture`, `deliver` and `relay`: turns from one session to another.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use tapdeck_core::base64;
use tapdeck_host::{Keyboard, Pressed};
use tapdeck_serve::broker::msgpack::Value;
use tapdeck_serve::broker::{Asked, Broker, BrokerError, Limits, Sink};

use super::paste::{How, deliver as paste, is_fine};
use crate::ending::{Ending, code, print, say};
use crate::human;
use crate::sessions::{Failed, alive, ask, connect, find};

/// How long a tool of the desktop's may take.
const TOOL: Duration = Duration::from_secs(10);

/// Keep the last turns of all sessions, to be captured and delivered.
#[derive(Args)]
#[command(after_help = "\
Runs until it is ended. Sessions that run already and sessions that start later make themselves
known to it.

Examples:
  tapdeck broker &
  tapdeck capture claude && tapdeck deliver inject codex")]
pub(crate) struct BrokerArgs {
    /// Turns of each session that are kept
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ring: u32,
    /// Bytes of a turn that are kept
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = clap::value_parser!(u32).range(1..=15 << 20))]
    turn_bytes: u32,
}

/// Capture the last turn of a session, or one by its id, at the broker.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck capture claude
  tapdeck capture 4711:3 --json")]
pub(crate) struct CaptureArgs {
    /// Id or name of a session, or the id of a turn
    #[arg(value_name = "SESSION|TURN")]
    what: String,
    /// What was captured, as JSON
    #[arg(long)]
    json: bool,
}

/// Deliver what was captured.
#[derive(Args)]
#[command(after_help = "\
What is injected is pasted, not submitted: as text, without control characters, in brackets where
the program has asked for them, and on one line where it has not.

Examples:
  tapdeck deliver inject codex
  tapdeck deliver clipboard
  tapdeck deliver file answer.md")]
pub(crate) struct DeliverArgs {
    #[command(subcommand)]
    to: To,
}

#[derive(Subcommand)]
enum To {
    /// Into the prompt of a session
    Inject {
        /// Id or name of the session
        #[arg(value_name = "SESSION")]
        session: String,
        /// The exact bytes, control characters included
        #[arg(long)]
        raw: bool,
    },
    /// Onto the clipboard, by the desktop's own tools or through this terminal (OSC 52)
    Clipboard,
    /// Into a file, which is replaced
    File {
        /// The file
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

/// Submit the last answer of one session as the prompt of another, and say whether it was taken.
#[derive(Args)]
#[command(after_help = "\
Works with and without a broker.

Examples:
  tapdeck relay codex claude
  tapdeck relay 4711:3 claude --before 'Review this answer:'")]
pub(crate) struct RelayArgs {
    /// The session whose last answer it is, or the id of a turn
    #[arg(value_name = "FROM")]
    from: String,
    /// The session that gets it
    #[arg(value_name = "TO")]
    to: String,
    /// Text to put in front of it
    #[arg(long, value_name = "TEXT")]
    before: Option<String>,
    /// Only paste it, without Enter
    #[arg(long)]
    no_enter: bool,
    /// How long each step may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

impl From<BrokerError> for Failed {
    fn from(e: BrokerError) -> Self {
        let code = match &e {
            BrokerError::NotThere => code::NOT_FOUND,
            BrokerError::Refused { error, .. } if error.ends_with("not_found") => code::NOT_FOUND,
            BrokerError::Refused { .. } => code::FAILED,
            _ => code::IO,
        };
        Failed(e.to_string(), code)
    }
}

pub(crate) fn run(args: &BrokerArgs) -> Ending {
    let limits = Limits { ring: args.ring as usize, turn: args.turn_bytes as usize };
    // Before there are other threads, which would be ended by what is meant for this one.
    let mut signals = match Keyboard::ends_only() {
        Ok(signals) => signals,
        Err(e) => return Failed(format!("the broker cannot start: {e}"), code::IO).end(),
    };
    let mut broker = match Broker::bind(limits, Arc::new(write_sink)) {
        Ok(broker) => broker,
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
            say("a broker is running already");
            return Ending::Code(code::FAILED);
        }
        Err(e) => return Failed(format!("the broker cannot start: {e}"), code::IO).end(),
    };
    // Those who run already look only when they are told to; on a thread, because they answer to the broker.
    std::thread::spawn(|| {
        for listing in alive().map(|(_, all)| all).unwrap_or_default() {
            let _ = connect(&listing, "broker", "observer").and_then(|mut bus| ask(&mut bus, "BROKER", ""));
        }
    });
    let stop = broker.stopper();
    std::thread::spawn(move || {
        while !matches!(signals.wait(None), Ok(Pressed::Signal(_)) | Err(_)) {}
        stop();
    });
    broker.run();
    Ending::Code(0)
}

pub(crate) fn run_capture(args: &CaptureArgs) -> Ending {
    capture(args).unwrap_or_else(|failed| failed.end_as(args.json))
}

pub(crate) fn run_deliver(args: &DeliverArgs) -> Ending {
    deliver(args).unwrap_or_else(Failed::end)
}

pub(crate) fn run_relay(args: &RelayArgs) -> Ending {
    relay(args).unwrap_or_else(|failed| failed.end_as(args.json))
}

/// The id under which the broker knows a session: sessions of others are known by theirs.
fn id_of(name: &str) -> String {
    find(Some(name)).map_or_else(|_| name.to_owned(), |listing| listing.id)
}

/// A turn's id, if it is one.
fn turn_id(what: &str) -> Option<(&str, u64)> {
    let (session, number) = what.rsplit_once(':')?;
    Some((session, number.parse().ok()?))
}

fn capture(args: &CaptureArgs) -> Result<Ending, Failed> {
    let mut broker = Asked::connect()?;
    let answer = match turn_id(&args.what) {
        Some((session, number)) => {
            broker.ask("capture_by_id", [("turn_id", Value::Str(format!("{}:{number}", id_of(session))))])?
        }
        None => broker.ask("capture", [("session", Value::Str(id_of(&args.what)))])?,
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let number = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
    let flag = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
    if args.json {
        let captured = json!({
            "turn_id": text("turn_id"),
            "timestamp": number("timestamp"),
            "byte_length": number("byte_length"),
            "interrupted": flag("interrupted"),
            "truncated": flag("truncated"),
        });
        print(format_args!("{}\n", human::json(&captured)));
    } else {
        let cut = if flag("truncated") { ", not all of the answer" } else { "" };
        print(format_args!("captured {}, {} bytes{cut}\n", text("turn_id"), number("byte_length")));
    }
    Ok(Ending::Code(0))
}

fn deliver(args: &DeliverArgs) -> Result<Ending, Failed> {
    let mut broker = Asked::connect()?;
    let answer = match &args.to {
        To::Inject { session, raw } => broker.ask(
            "deliver",
            [("sink", "inject".into()), ("session", Value::Str(id_of(session))), ("raw", Value::Bool(*raw))],
        )?,
        To::File { path } => {
            let path = std::path::absolute(path).map_err(|e| Failed(e.to_string(), code::USAGE))?;
            let path =
                path.to_str().ok_or_else(|| Failed("the file's name is not UTF-8".into(), code::USAGE))?;
            broker.ask("deliver", [("sink", "file".into()), ("path", path.into())])?
        }
        To::Clipboard => match broker.ask("deliver", [("sink", "clipboard".into())]) {
            Err(BrokerError::Refused { error, .. }) if error == "sink_failed" => {
                return through_terminal(&mut broker);
            }
            answer => answer?,
        },
    };
    let id = answer.get("turn_id").and_then(Value::as_str).unwrap_or("-").to_owned();
    print(format_args!("delivered {id}\n"));
    Ok(Ending::Code(0))
}

/// Where the desktop has no tool for it, the terminal may know how.
fn through_terminal(broker: &mut Asked) -> Result<Ending, Failed> {
    let temp = tempfile::tempdir().map_err(|e| Failed(e.to_string(), code::IO))?;
    let path = temp.path().join("turn");
    let name = path.to_str().unwrap_or_default().to_owned();
    broker.ask("deliver", [("sink", "file".into()), ("path", Value::Str(name))])?;
    let failed = |e: std::io::Error| Failed(format!("no clipboard can be reached: {e}"), code::IO);
    let content = std::fs::read(&path).map_err(failed)?;
    let mut tty = std::fs::OpenOptions::new().write(true).open("/dev/tty").map_err(failed)?;
    let sequence = format!("\x1b]52;c;{}\x07", base64::encode(&content));
    tty.write_all(sequence.as_bytes()).map_err(failed)?;
    print(format_args!("delivered through this terminal\n"));
    Ok(Ending::Code(0))
}

fn relay(args: &RelayArgs) -> Result<Ending, Failed> {
    let (from, number) = turn_id(&args.from).map_or((args.from.as_str(), None), |(s, n)| (s, Some(n)));
    let from = find(Some(from))?;
    let to = find(Some(&args.to))?;
    if from.id == to.id {
        return Err(Failed("a session cannot be relayed to itself".into(), code::USAGE));
    }
    let request = number.map_or_else(|| json!({}), |n| json!({"number": n}));
    let turn: Json = ask(&mut connect(&from, "relay", "observer")?, "TURN", &request.to_string())?;
    let answer = turn["text"].as_str().unwrap_or("").trim_end().to_owned();
    if answer.is_empty() {
        return Err(Failed("that turn has no text".into(), code::FAILED));
    }
    let text = match &args.before {
        Some(before) => format!("{before}\n{answer}"),
        None => answer,
    };
    let mut bus = connect(&to, "relay", "human")?;
    let how = How { enter: !args.no_enter, raw: false, wait: Duration::from_secs(args.timeout) };
    let mut outcome = paste(&mut bus, &text, how)?;
    outcome["turn_id"] = turn["turn_id"].clone();
    outcome["truncated"] = turn["truncated"].clone();
    if turn["truncated"] == true {
        say("only the end of that answer was in sight, and no more of it was passed on");
    }
    let fine = is_fine(&outcome);
    let what = outcome["outcome"].as_str().unwrap_or("stalled");
    if args.json {
        print(format_args!("{}\n", human::json(&outcome)));
    } else {
        let why = human::printable(outcome["evidence"].as_str().unwrap_or(""));
        let id = outcome["turn_id"].as_str().unwrap_or("-");
        if fine { print(format_args!("{id} {what}: {why}\n")) } else { say(format_args!("{what}: {why}")) }
    }
    Ok(Ending::Code(if fine { 0 } else { code::FAILED }))
}

/// Writes a turn to a file or to the desktop's clipboard; on a thread of the broker's.
fn write_sink(sink: &Sink, content: &[u8]) -> Result<(), String> {
    match sink {
        Sink::File(path) => write_file(path, content).map_err(|e| format!("{}: {e}", path.display())),
        Sink::Clipboard => {
            let tools: [&[&str]; 3] =
                [&["wl-copy"], &["xclip", "-selection", "clipboard"], &["xsel", "--clipboard", "--input"]];
            let shown = |tool: &[&str]| match tool[0] {
                "wl-copy" => std::env::var_os("WAYLAND_DISPLAY").is_some(),
                _ => std::env::var_os("DISPLAY").is_some(),
            };
            for tool in tools.into_iter().filter(|t| shown(t)) {
                if copy_with(tool, content).is_ok() {
                    return Ok(());
                }
            }
            Err("no clipboard tool of the desktop works: wl-copy, xclip or xsel".into())
        }
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
    reason = "a tool of the desktop's, with no terminal and nobody's session"
)]
fn copy_with(tool: &[&str], content: &[u8]) -> std::io::Result<()> {
    let mut child = Command::new(tool[0])
        .args(&tool[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // One that neither reads nor ends would keep its thread for ever.
    let (done, watched) = channel::<()>();
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let watchdog = std::thread::spawn(move || {
        if let (Err(RecvTimeoutError::Timeout), Some(pid)) = (watched.recv_timeout(TOOL), pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(content));
    let ended = child.wait();
    drop(done);
    let _ = watchdog.join();
    written?;
    if ended?.success() { Ok(()) } else { Err(std::io::Error::other("it failed")) }
}
