//! Files that are small and cost much: every format, compressed and not, with shapes that a reader
//! might take at their word. Each is read by the commands that open recordings, under limits of
//! memory and processor time that the system enforces.
//!
//! `cargo test` throws every fortieth of the bombs, in a small size. `cargo xtask bombs` throws all
//! of them at a release build, at full size.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::Time;
use tapdeck_tape::ahr::Quality;
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{Container, Event, Format, Header, Kind, Parts, writer};
use tapdeck_term::Size;

use crate::support::{Home, TAPDECK};

/// What a command may take: private memory in KiB, and processor time in seconds. A build without
/// optimizations is many times slower.
const MEMORY: u32 = 256 << 10;
const TIME: u32 = if cfg!(debug_assertions) { 60 } else { 5 };

/// The commands that open a recording.
const COMMANDS: [&[&str]; 4] =
    [&["info"], &["verify"], &["convert", "-q", "-o", "-", "--to", "txt"], &["play", "--fast"]];

/// How a bomb is packed.
const PACKINGS: [&str; 3] = ["plain", "zst", "frames"];

/// The shapes of sessions, in any format.
const SHAPES: [&str; 21] = [
    "line",
    "tiny",
    "resizes",
    "wide",
    "repeat",
    "scroll",
    "osc",
    "sixel",
    "apc",
    "combining",
    "params",
    "newlines",
    "alternate",
    "markers",
    "inputs",
    "pauses",
    "links",
    "titles",
    "colors",
    "ideographs",
    "invalid",
];

const FORMATS: [Format; 8] = [
    Format::CastV1,
    Format::CastV2,
    Format::CastV3,
    Format::Ttyrec,
    Format::Typescript,
    Format::Ahr,
    Format::Raw,
    Format::Ans,
];

/// Text and files that no writer would make, by name.
const CRAFTED: [&str; 26] = [
    "v1-tiny.cast",
    "v1-deep.cast",
    "v1-numbers.cast",
    "v1-env.cast",
    "v1-open.cast",
    "v2-header.cast",
    "v2-deep.cast",
    "v2-values.cast",
    "v2-sizes.cast",
    "v2-far.cast",
    "v3-header.cast",
    "v3-values.cast",
    "v3-notes.cast",
    "v3-halves.cast",
    "length.ttyrec",
    "empty.ttyrec",
    "zeros.ttyrec",
    "steps.typescript",
    "fields.typescript",
    "zeros.ahr",
    "magic.ahr",
    "lengths.ahr",
    "frames.3a",
    "palette.3a",
    "sauce.ans",
    "blank.cast",
];

/// How many times a piece has to be repeated for so many bytes.
fn times(piece: &[u8], bytes: usize) -> Vec<u8> {
    piece.repeat(bytes / piece.len())
}

/// The events of a session of this shape, of about so many bytes.
fn session(shape: &str, bytes: usize) -> Vec<Kind> {
    let one = |piece: &str| vec![Kind::Output(Bytes::from(times(piece.as_bytes(), bytes)))];
    let long = |head: &str, piece: &str| {
        vec![Kind::Output(Bytes::from([head.as_bytes(), &times(piece.as_bytes(), bytes)].concat()))]
    };
    let each = |make: &dyn Fn(usize) -> String| {
        let mut out = Vec::new();
        for n in 0.. {
            out.extend(make(n).bytes());
            if out.len() >= bytes {
                break;
            }
        }
        vec![Kind::Output(out.into())]
    };
    let many = |kind: &dyn Fn(usize) -> Kind| (0..bytes / 16).map(kind).collect();
    match shape {
        "line" => one("x"),
        "tiny" => many(&|_| Kind::Output(Bytes::from_static(b"x"))),
        "resizes" => many(&|n| Kind::Resize([Size::new(1, 1), Size::new(9999, 9999)][n % 2])),
        "wide" => [vec![Kind::Resize(Size::new(10_000, 10_000))], one("x\x1b[B")].concat(),
        "repeat" => one("x\x1b[2147483647b"),
        "scroll" => one("\x1b[99999S\x1b[99999T\x1b[99999L\x1b[99999M\x1b[99999@"),
        "osc" => long("\x1b]0;", "x"),
        "sixel" => long("\x1bPq", "#1;2;9;9;9!9999~-"),
        "apc" => long("\x1b_G", "x"),
        "combining" => long("e", "\u{301}"),
        "params" => long("\x1b[", "1;"),
        "newlines" => one("\n"),
        "alternate" => one("\x1b[?1049hx\x1b[?1049l"),
        "markers" => many(&|n| Kind::Marker(n.to_string())),
        "inputs" => many(&|_| Kind::Input(Bytes::from_static(b"x"))),
        "pauses" => many(&|_| Kind::Output(Bytes::from_static(b"\x1b[2J"))),
        "links" => each(&|n| format!("\x1b]8;;http://x/{n}\x1b\\x")),
        "titles" => each(&|n| format!("\x1b]2;{n}\x1b\\\x1b[22t")),
        "colors" => each(&|n| format!("\x1b[38;2;{};{};{}mx", n % 256, n / 256 % 256, n / 65_536 % 256)),
        "ideographs" => [vec![Kind::Resize(Size::new(1, 1))], one("\u{6f22}")].concat(),
        "invalid" => vec![Kind::Output(vec![0xff; bytes].into())],
        other => panic!("no shape {other}"),
    }
}

/// A session in a format: the recording and its timing file.
fn written(format: Format, shape: &str, bytes: usize) -> Parts {
    let pause = Duration::from_secs(if shape == "pauses" { 1_000 } else { 0 });
    let kinds = session(shape, bytes);
    let mut parts = Parts::default();
    let Some(mut writer) = writer(format, Quality::Brotli(5)) else {
        // Version 1 has nothing but output.
        let mut text = b"{\"version\":1,\"width\":80,\"height\":24,\"stdout\":[".to_vec();
        for (n, kind) in kinds.iter().enumerate() {
            let Kind::Output(bytes) = kind else { continue };
            let output = serde_json::to_string(&String::from_utf8_lossy(bytes)).expect("text");
            let comma = if n > 0 { "," } else { "" };
            text.extend(format!("{comma}[{},{output}]", pause.as_secs()).bytes());
        }
        text.extend(b"]}");
        parts.main = text;
        return parts;
    };
    writer.begin(&Header { size: Some(Size::new(80, 24)), ..Header::default() }, &mut parts);
    let mut time = Time::ZERO;
    for kind in kinds {
        time += pause;
        writer.event(&Event::new(time, kind), &mut parts);
    }
    writer.finish(&mut parts);
    parts
}

/// A file that no writer would make.
fn crafted(name: &str, bytes: usize) -> Parts {
    let head2 = "{\"version\":2,\"width\":80,\"height\":24}\n";
    let head3 = "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n";
    let text = |head: &str, piece: &str, end: &str| {
        [head.as_bytes(), &times(piece.as_bytes(), bytes), end.as_bytes()].concat()
    };
    let block = |uncompressed: u32, compressed: u32| {
        let mut header = b"AHRC\x01\x00\x2c\x00".to_vec();
        header.extend([0; 16]);
        header.extend([uncompressed.to_le_bytes(), compressed.to_le_bytes(), 1u32.to_le_bytes()].concat());
        header.extend([0; 8]);
        header
    };
    let main = match name {
        "v1-tiny.cast" => {
            text("{\"version\":1,\"width\":80,\"height\":24,\"stdout\":[[0,\"\"]", ",[0,\"\"]", "]}")
        }
        "v1-deep.cast" => text("{\"version\":1,\"width\":80,\"height\":24,\"stdout\":", "[", ""),
        "v1-numbers.cast" => {
            text("{\"version\":1,\"width\":80,\"height\":24,\"x\":[1", ",1", "],\"stdout\":[]}")
        }
        "v1-env.cast" => text(
            "{\"version\":1,\"width\":80,\"height\":24,\"stdout\":[],\"env\":{\"a\":\"\"",
            ",\"a\":\"\"",
            "}}",
        ),
        "v1-open.cast" => text("{\n", "\"version\":1,\n", ""),
        "v2-header.cast" => text("{\"version\":2,\"width\":80,\"height\":24,\"x\":[1", ",1", "]}\n"),
        "v2-deep.cast" => text(&format!("{head2}[0,\"z\","), "[", "\n"),
        "v2-values.cast" => text(&format!("{head2}[0,\"z\",[1"), ",1", "]]\n"),
        "v2-sizes.cast" => text(head2, "[0,\"r\",\"99999999x99999999\"]\n[0,\"r\",\"1x1\"]\n", ""),
        "v2-far.cast" => text(head2, "[999999999,\"o\",\"\"]\n", ""),
        "v3-header.cast" => {
            text("{\"version\":3,\"term\":{\"cols\":80,\"rows\":24,\"x\":{\"a\":1", ",\"a\":1", "}}}\n")
        }
        "v3-values.cast" => text(head3, "[0,\"z\",{\"a\":[1,2,3]}]\n", ""),
        "v3-notes.cast" => text(head3, "[0,\"r\",\"nonsense\"]\n", ""),
        "v3-halves.cast" => text(head3, "[0,\"o\",\"\\ud800\"]\n", ""),
        "blank.cast" => text(head2, "\n", ""),
        "length.ttyrec" => [&[0; 8][..], &u32::MAX.to_le_bytes(), &times(b"x", bytes)].concat(),
        "empty.ttyrec" => [&b"\x01\0\0\0\x01\0\0\0\x01\0\0\0x"[..], &times(&[0; 12], bytes)].concat(),
        "zeros.ttyrec" => vec![0; bytes],
        "steps.typescript" => b"Script started\n".to_vec(),
        "fields.typescript" => b"Script started\n".to_vec(),
        "zeros.ahr" => {
            // Blocks of which each stands for many megabytes of nothing.
            let mut parts = Parts::default();
            let mut writer = writer(Format::Ahr, Quality::Brotli(11)).expect("the format is written");
            writer.begin(&Header::default(), &mut parts);
            for _ in 0..64 {
                writer.event(&Event::new(Time::ZERO, Kind::Output(vec![0; bytes].into())), &mut parts);
            }
            writer.finish(&mut parts);
            parts.main
        }
        "magic.ahr" => times(b"AHRC", bytes),
        "lengths.ahr" => {
            let piece = [block(64 << 20, 1 << 16), vec![0; 64]].concat();
            times(&piece, bytes)
        }
        "frames.3a" => text("@3a\ndelay 1\nwidth 80\nheight 24\n\n@body\n", "x\n", ""),
        "palette.3a" => text("@3a\nwidth 10000\nheight 10000\n", "col a fg:1 bg:2\n", "\n@body\n"),
        "sauce.ans" => [times(b"x", bytes), b"\x1aCOMNT".to_vec(), vec![255; 128]].concat(),
        other => panic!("no file {other}"),
    };
    let timing = match name {
        "steps.typescript" => times(b"0 99999999999\n", bytes),
        "fields.typescript" => times(b"H 0 COLUMNS 9999999\nS 0 SIGWINCH ROWS=9999 COLS=9999\n", bytes),
        _ => Vec::new(),
    };
    let mut parts = Parts::default();
    (parts.main, parts.timing) = (main, timing);
    parts
}

/// The name of every bomb: what is in it, and how it is packed.
fn all() -> Vec<(String, &'static str)> {
    let shaped = FORMATS.iter().flat_map(|format| {
        let end = Container { format: *format, zst: false }.to_string();
        SHAPES.iter().map(move |shape| format!("{shape}.{end}"))
    });
    let names: Vec<String> = shaped.chain(CRAFTED.iter().map(|name| (*name).to_owned())).collect();
    names.iter().flat_map(|name| PACKINGS.map(|packing| (name.clone(), packing))).collect()
}

/// Makes a bomb. Returns the arguments that name it.
fn make(home: &Home, name: &str, packing: &str, bytes: usize) -> Vec<String> {
    let found = FORMATS.iter().find_map(|format| {
        let end = Container { format: *format, zst: false }.to_string();
        let shape = name.strip_suffix(&format!(".{end}"))?;
        SHAPES.contains(&shape).then(|| written(*format, shape, bytes))
    });
    let parts = found.unwrap_or_else(|| crafted(name, bytes));
    let mut args = Vec::new();
    // The names of the versions of asciicast are no extensions.
    let base = ["asciicast-v1", "asciicast-v2", "asciicast-v3"].iter().find_map(|v| name.strip_suffix(v));
    let mut file = base.map_or_else(|| name.to_owned(), |base| format!("{base}cast"));
    let main = match packing {
        "plain" => parts.main,
        "zst" => {
            file.push_str(".zst");
            zst(&parts.main)
        }
        _ => {
            // One stream after another.
            file.push_str(".zst");
            let pieces = parts.main.chunks(parts.main.len() / 8 + 1);
            pieces.flat_map(zst).collect()
        }
    };
    std::fs::write(home.path(&file), main).expect("written");
    args.push(file);
    if name.ends_with("typescript") {
        std::fs::write(home.path("timing"), parts.timing).expect("written");
        args.extend(["--timing".to_owned(), "timing".to_owned()]);
    }
    args
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut writer = ZstWriter::new(3).expect("memory");
    let mut out = bytes.to_vec();
    writer.step(&mut out).expect("compressed");
    out.extend(writer.finish().expect("compressed"));
    out
}

/// Throws a bomb at every command. Returns what went wrong.
fn throw(name: &str, packing: &str, bytes: usize) -> Vec<String> {
    let home = Home::new();
    let args = make(&home, name, packing, bytes).join(" ");
    let binary = std::env::var("TAPDECK_BINARY").unwrap_or_else(|_| TAPDECK.to_owned());
    let mut faults = Vec::new();
    for command in COMMANDS {
        let line = format!(
            "ulimit -d {MEMORY}; ulimit -t {TIME}; ulimit -c 0; exec {binary} {} {args}",
            command.join(" ")
        );
        let out = home
            .command("bash")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .expect("bash runs");
        if out.status.signal().is_some() || !matches!(out.status.code(), Some(0..=4)) {
            let said = String::from_utf8_lossy(&out.stderr);
            let said: String = said.chars().take(300).collect();
            faults.push(format!("{name} {packing}, {}: {}: {said}", command.join(" "), out.status));
        }
    }
    faults
}

#[test]
fn no_recording_takes_memory_or_time_without_bound() {
    let faults: Vec<String> =
        all().iter().step_by(41).flat_map(|(name, packing)| throw(name, packing, 16 << 10)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The whole set, at full size: `cargo xtask bombs`.
#[test]
#[ignore = "takes many minutes, and a release build"]
#[expect(clippy::print_stdout, reason = "a long run that a person looks at")]
fn every_bomb() {
    let all = all();
    let only = std::env::var("TAPDECK_BOMB").unwrap_or_default();
    let mut faults = Vec::new();
    for (name, packing) in all.iter().filter(|(name, _)| name.contains(&only)) {
        // What is compressed stands for more than a disk would hold.
        let bytes = if *packing == "plain" { 4 << 20 } else { 64 << 20 };
        let found = throw(name, packing, bytes);
        found.iter().for_each(|fault| println!("{fault}"));
        faults.extend(found);
    }
    println!("{} bombs, {} commands each: {} faults", all.len(), COMMANDS.len(), faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A device or a pipe that never ends was read for ever, or until the memory was full.
#[test]
fn what_never_ends_is_refused() {
    let home = Home::new();
    std::fs::write(home.path("x.cast"), "{\"version\": 2, \"width\": 80, \"height\": 24}\n")
        .expect("written");
    for device in ["/dev/zero", "/dev/urandom", "/dev/full"] {
        let others = [
            &["test"][..],
            &["scrub", "x.cast", "--dry-run", "--rules"],
            &["convert", "--from", "raw", "-o", "x.txt"],
        ];
        for command in COMMANDS.iter().copied().chain(others) {
            let mut args = vec![device];
            args.splice(0..0, command.iter().copied());
            let out = home.run(&args);
            let said =
                String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
            assert!(matches!(out.status.code(), Some(1..=4)), "{args:?}: {}: {said}", out.status);
        }
    }
}
