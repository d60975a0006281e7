//! Reads a recording for the API: a description, or its lines. The process that does this shuts
//! itself in first, as the one that plays recordings.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_host::{Source, signals};
use tapdeck_proto::api::RecordingInfo;
use tapdeck_proto::bus;
use tapdeck_tape::export::{LinesAs, lines};
use tapdeck_tape::{Item, Kind};

/// The first byte of what is written: the recording can be read, or a reason follows.
pub(super) const READ: u8 = b'+';
pub(super) const FAILED: u8 = b'-';
/// Lines in memory.
const ROWS: usize = 10_000;

/// Writes a JSON object that says what a recording holds.
///
/// # Errors
/// When `out` takes no more.
pub fn describe_recording(path: &Path, out: impl Write) -> io::Result<()> {
    reply(out, path, |source, out| {
        let info = describe(source);
        serde_json::to_writer(out, &info).map_err(io::Error::from)
    })
}

/// Writes the lines of a recording as plain text.
///
/// # Errors
/// When `out` takes no more.
pub fn recording_text(path: &Path, out: impl Write) -> io::Result<()> {
    reply(out, path, |source, out| {
        let mut reader = source.open().map_err(io::Error::other)?;
        let turns = source.turns().map_err(io::Error::other)?;
        lines(LinesAs::Txt, &mut *reader, turns, ROWS, out).map_err(io::Error::other)
    })
}

/// Finds a recording, says whether it can be read, and has the rest written.
fn reply(
    out: impl Write,
    path: &Path,
    write: impl FnOnce(&Source, &mut BufWriter<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = out;
    let opened = Source::find(path, None, None).and_then(|source| source.open().map(|_| source));
    let source = match opened {
        Ok(source) => source,
        Err(e) => {
            out.write_all(&[FAILED])?;
            return out.write_all(e.to_string().as_bytes());
        }
    };
    let mut out = BufWriter::new(&mut out as &mut dyn Write);
    out.write_all(&[READ])?;
    write(&source, &mut out)?;
    out.flush()
}

fn describe(source: &Source) -> RecordingInfo {
    let mut info = RecordingInfo {
        format: source.container().to_string(),
        encrypted: source.is_encrypted(),
        ..RecordingInfo::default()
    };
    let mut reader = match source.open() {
        Ok(reader) => reader,
        Err(e) => return RecordingInfo { broke_off: Some(e.to_string()), ..info },
    };
    let header = reader.header().clone();
    let meta = source.meta();
    info.title = meta.as_ref().and_then(|meta| meta.title.clone()).or(header.title);
    info.command = meta.map(|meta| meta.cmd.join(" ")).filter(|cmd| !cmd.is_empty()).or(header.command);
    info.started_ns = header.started.map(WallTime::as_nanos);
    info.cols = header.size.map(|size| size.cols);
    info.rows = header.size.map(|size| size.rows);
    let mut end = Time::ZERO;
    loop {
        let event = match reader.next_item() {
            Ok(Some(Item::Event(event))) => event,
            Ok(Some(Item::Note(_))) => continue,
            Ok(None) => break,
            Err(e) => {
                info.broke_off = Some(e.to_string());
                break;
            }
        };
        end = event.time;
        match event.kind {
            Kind::Output(bytes) => info.output_bytes += bytes.len() as u64,
            Kind::Input(_) => info.inputs += 1,
            Kind::Marker(_) | Kind::Snapshot { .. } => info.moments += 1,
            Kind::Exit(exit) => info.exit = Some(exit_of(exit)),
            _ => {}
        }
    }
    info.duration_ms = end.as_millis();
    info
}

fn exit_of(exit: Exit) -> bus::Exit {
    match exit {
        Exit::Code(code) => bus::Exit { code, signal: None, recording_error: None },
        Exit::Signal(signal) => {
            let name = signals::name(signal).map_or_else(|| signal.to_string(), str::to_owned);
            bus::Exit { code: 128 + signal, signal: Some(name), recording_error: None }
        }
    }
}
