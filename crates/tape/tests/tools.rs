//! Files that this crate writes, read by the programs whose formats they are. A test whose program
//! is not installed reports itself as skipped.
#![expect(clippy::disallowed_methods, reason = "the point is to run other programs")]

use std::io::Write;
use std::process::{Command, Stdio};

use bytes::Bytes;
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_needs::has;
use tapdeck_tape::cast::{CastReader, CastVersion, CastWriter};
use tapdeck_tape::ttyrec::{TtyrecReader, TtyrecWriter};
use tapdeck_tape::typescript::{Timing, TypescriptReader, TypescriptWriter};
use tapdeck_tape::{Event, EventReader, EventWriter, Header, Item, Kind, Parts};
use tapdeck_term::Size;

const TEXT: &str = "hello\r\nschön € wörld\r\n";

fn written(writer: &mut dyn EventWriter) -> Parts {
    let header = Header {
        size: Some(Size::new(80, 24)),
        started: Some(WallTime::from_secs(1_700_000_000)),
        command: Some("sh -c 'x'".to_owned()),
        title: Some("a title".to_owned()),
        term: Some("xterm-256color".to_owned()),
        ..Header::default()
    };
    let mut parts = Parts::default();
    writer.begin(&header, &mut parts);
    for (i, piece) in TEXT.as_bytes().chunks(7).enumerate() {
        let kind = Kind::Output(Bytes::copy_from_slice(piece));
        writer.event(&Event::new(Time::from_millis(i as u64), kind), &mut parts);
    }
    writer.event(&Event::new(Time::from_millis(20), Kind::Resize(Size::new(100, 40))), &mut parts);
    writer.event(&Event::new(Time::from_millis(21), Kind::Exit(Exit::Code(0))), &mut parts);
    writer.finish(&mut parts);
    parts
}

fn run(command: &mut Command) -> (bool, Vec<u8>) {
    let out = command.stdin(Stdio::null()).output().expect("the program starts");
    (out.status.success(), [out.stdout, out.stderr].concat())
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle.as_bytes())
}

#[test]
fn asciinema_plays_our_casts() {
    if !has("asciinema") || !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.cast");
    let version = run(Command::new("asciinema").arg("--version")).1;
    if contains(&version, " 2.") {
        std::fs::write(&file, written(&mut CastWriter::new(CastVersion::V2)).main).unwrap();
        // It wants a terminal of its own even for printing to a pipe.
        let cat = format!("asciinema cat {}", file.display());
        let (ok, out) =
            run(Command::new("script").args(["-q", "-e", "-c", &cat, "/dev/null"]).env("LC_ALL", "C.UTF-8"));
        let out = String::from_utf8_lossy(&out).replace('\r', "").into_bytes();
        assert!(ok && contains(&out, &TEXT.replace('\r', "")), "{}", String::from_utf8_lossy(&out));
        return;
    }
    for version in [CastVersion::V2, CastVersion::V3] {
        std::fs::write(&file, written(&mut CastWriter::new(version)).main).unwrap();
        let raw = folder.path().join("x.raw");
        let (ok, said) = run(Command::new("asciinema")
            .args(["convert", "--overwrite", "--output-format", "raw"])
            .args([&file, &raw]));
        let out = std::fs::read(&raw).unwrap_or_default();
        assert!(ok && contains(&out, TEXT), "{version:?}: {}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn scriptreplay_plays_our_typescripts() {
    if !has("scriptreplay") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, timing) = (folder.path().join("data"), folder.path().join("timing"));
    for form in [Timing::Classic, Timing::Advanced] {
        let parts = written(&mut TypescriptWriter::new(form));
        std::fs::write(&data, &parts.main).unwrap();
        std::fs::write(&timing, &parts.timing).unwrap();
        let (ok, out) =
            run(Command::new("scriptreplay").arg("--timing").arg(&timing).arg("--log-out").arg(&data));
        assert!(ok && contains(&out, TEXT), "{form:?}: {}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn we_read_what_script_writes() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, timing) = (folder.path().join("data"), folder.path().join("timing"));
    // Classic timing cannot tell streams apart, so it goes with a log of output alone.
    for (form, log) in [("classic", "--log-out"), ("advanced", "--log-io")] {
        let status = Command::new("script")
            .args(["-q", "-e", "-c", "printf 'one\\n'; exit 3", "-m", form, log])
            .arg(&data)
            .arg("--log-timing")
            .arg(&timing)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(3));
        let files = [std::fs::File::open(&data).unwrap(), std::fs::File::open(&timing).unwrap()];
        let [data, timing] = files;
        let mut reader = TypescriptReader::new(data, timing).unwrap();
        let (mut out, mut exit) = (Vec::new(), None);
        while let Some(item) = reader.next_item().unwrap() {
            match item {
                Item::Event(Event { kind: Kind::Output(bytes), .. }) => out.extend_from_slice(&bytes),
                Item::Event(Event { kind: Kind::Exit(Exit::Code(code)), .. }) => exit = Some(code),
                Item::Event(_) => {}
                Item::Note(note) => panic!("{note}"),
            }
        }
        assert_eq!(out, b"one\r\n");
        assert_eq!(exit, Some(3), "{form}");
    }
}

#[test]
fn ttyplay_plays_our_ttyrecs() {
    if !has("ttyplay") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.ttyrec");
    std::fs::write(&file, written(&mut TtyrecWriter::default()).main).unwrap();
    let (_, out) = run(Command::new("ttyplay").arg("-n").arg(&file));
    assert!(contains(&out, TEXT), "{}", String::from_utf8_lossy(&out));
}

#[test]
fn we_read_what_ttyrec_and_asciinema_write() {
    let folder = tempfile::tempdir().unwrap();
    if has("ttyrec") {
        let file = folder.path().join("x.ttyrec");
        let _ = run(Command::new("ttyrec").args(["-e", "printf 'one\\n'"]).arg(&file));
        if std::fs::metadata(&file).is_ok_and(|m| m.len() > 0) {
            let mut reader = TtyrecReader::new(std::fs::File::open(&file).unwrap()).unwrap();
            let mut out = Vec::new();
            while let Some(item) = reader.next_item().unwrap() {
                match item {
                    Item::Event(Event { kind: Kind::Output(bytes), .. }) => out.extend_from_slice(&bytes),
                    other => panic!("{other:?}"),
                }
            }
            assert!(contains(&out, "one"), "{}", String::from_utf8_lossy(&out));
        }
    }
    if has("asciinema") {
        let file = folder.path().join("x.cast");
        let mut child = Command::new("asciinema")
            .args(["rec", "-q", "-c", "printf 'one\\n'"])
            .arg(&file)
            .env("LC_ALL", "C.UTF-8")
            .env("ASCIINEMA_CONFIG_HOME", folder.path())
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().map(|mut s| s.flush());
        let _ = child.wait();
        if std::fs::metadata(&file).is_ok_and(|m| m.len() > 0) {
            let mut reader = CastReader::new(std::fs::File::open(&file).unwrap()).unwrap();
            let mut out = Vec::new();
            while let Some(item) = reader.next_item().unwrap() {
                if let Item::Event(Event { kind: Kind::Output(bytes), .. }) = item {
                    out.extend_from_slice(&bytes);
                }
            }
            assert!(contains(&out, "one\r\n"), "{}", String::from_utf8_lossy(&out));
        }
    }
}
