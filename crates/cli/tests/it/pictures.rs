//! Stills and films: `convert` to png, gif, apng and what ffmpeg writes, and `peek --output`.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tapdeck_needs::has;

use crate::live::Detached;
use crate::support::Home;

/// A recording of four screens: one each second, the second one marked, with a pause of a minute
/// before the last.
fn write_cast(home: &Home) {
    let cast = concat!(
        r#"{"version":3,"term":{"cols":20,"rows":4}}"#,
        "\n",
        r#"[0.5,"o","\u001b[2J\u001b[H\u001b[31mone"]"#,
        "\n",
        r#"[1.0,"o","\r\n\u001b[42mtwo"]"#,
        "\n",
        r#"[0.1,"m","second"]"#,
        "\n",
        r#"[0.9,"o","\r\n\u001b[mthree"]"#,
        "\n",
        r#"[60.0,"o","\r\nfour"]"#,
        "\n",
        r#"[1.0,"x","0"]"#,
        "\n",
    );
    fs::write(home.path("a.cast"), cast).expect("written");
}

#[track_caller]
fn convert(home: &Home, args: &[&str], code: i32) -> String {
    let out = home.run([&["convert", "a.cast"], args].concat());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// Width and height of a PNG.
#[track_caller]
fn png_size(home: &Home, name: &str) -> (u32, u32) {
    let file = fs::read(home.path(name)).expect("a picture");
    assert!(file.starts_with(b"\x89PNG\r\n\x1a\n") && file.ends_with(b"IEND\xaeB`\x82"), "{name}");
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

/// The delays of a GIF in hundredths of a second, from its graphic control extensions.
fn gif_delays(file: &[u8]) -> Vec<u16> {
    let controls = file.windows(8).filter(|w| w.starts_with(b"\x21\xf9\x04") && w[7] == 0);
    controls.map(|w| u16::from_le_bytes([w[4], w[5]])).collect()
}

#[test]
fn stills_show_the_screen_at_their_moments() {
    let home = Home::new();
    write_cast(&home);
    convert(&home, &["-o", "end.png"], 0);
    // 20 by 4 cells of 8 by 16 pixels and a padding of 10, twice as large.
    let (w, h) = png_size(&home, "end.png");
    assert_eq!(w, 2 * (20 * 17 / 2 + 20));
    convert(&home, &["-o", "small.png", "--scale", "1", "--padding", "0"], 0);
    assert!(png_size(&home, "small.png").0 < w / 2);
    convert(&home, &["-o", "window.png", "--window"], 0);
    assert!(png_size(&home, "window.png").1 > h);

    convert(&home, &["-o", "mark.png", "--at", "@second"], 0);
    convert(&home, &["-o", "many.png", "--at", "0:01", "--at", "@second", "--at", "100%"], 0);
    let read = |name: &str| fs::read(home.path(name)).expect("a picture");
    assert!(!home.path("many.png").exists());
    assert_eq!(read("many-2.png"), read("mark.png"));
    assert_eq!(read("many-3.png"), read("end.png"));
    assert_ne!(read("many-1.png"), read("many-2.png"));
    // The same screen gives the same bytes, and another theme gives others.
    convert(&home, &["-o", "again.png"], 0);
    assert_eq!(read("again.png"), read("end.png"));
    convert(&home, &["-o", "light.png", "--theme", "light"], 0);
    assert_ne!(read("light.png"), read("end.png"));

    // Before the first event the screen is empty.
    convert(&home, &["-o", "empty.png", "--at", "0s"], 0);
    assert_eq!(png_size(&home, "empty.png"), (w, h));
    assert_ne!(read("empty.png"), read("many-1.png"));

    convert(&home, &["-o", "at.svg", "--at", "@second"], 0);
    let svg = fs::read_to_string(home.path("at.svg")).expect("a picture");
    assert!(svg.contains("two") && !svg.contains("three") && !svg.contains("<set"), "{svg}");

    convert(&home, &["-o", "sheet.png", "--sheet", "3x2"], 0);
    let (sheet_w, sheet_h) = png_size(&home, "sheet.png");
    assert!(sheet_w > 3 * w / 2 && sheet_h > h, "{sheet_w}x{sheet_h}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let home = Home::new();
    write_cast(&home);
    for (args, why) in [
        (&["-o", "x.txt", "--at", "1s"][..], "--at is for png and svg, not txt"),
        (&["-o", "x.gif", "--sheet", "2x2"], "--sheet makes a png, not gif"),
        (&["-o", "x.png", "--sheet", "1x1", "--at", "1s", "--at", "2s"], "do not fit on a sheet"),
        (&["-o", "x.png", "--at", "1s", "--to", "2s"], "--to has no meaning"),
        (&["-o", "x.md", "--window"], "the options of pictures are for png and films, not md"),
        (&["-o", "x.png", "--font-size", "900"], "a font size is a number from 4 to 200"),
        (&["-o", "x.png", "--font", "No Such Font"], "no font is called \"No Such Font\""),
        (&["-o", "x.bmp"], "unsupported output format \".bmp\""),
    ] {
        let said = convert(&home, args, 2);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let said = convert(&home, &["-o", "x.png", "--at", "@nowhere"], 3);
    assert!(said.contains("nowhere"), "{said}");
    let left = fs::read_dir(home.path("")).expect("the home").flatten();
    let left: Vec<_> = left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with('x')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn films_have_a_frame_for_each_change() {
    let home = Home::new();
    write_cast(&home);
    convert(&home, &["-o", "a.gif", "--idle-time-limit", "3s"], 0);
    let gif = fs::read(home.path("a.gif")).expect("a film");
    assert!(gif.starts_with(b"GIF89a") && gif.ends_with(b";"));
    // The blank screen, and a frame for each of the four lines: the pause is cut to 3 s, and the
    // last frame stays for 2 s after the end.
    assert_eq!(gif_delays(&gif), [100, 100, 300, 300], "the first frame begins at 0.5 s");
    convert(&home, &["-o", "fast.gif", "--idle-time-limit", "3s", "--speed", "2", "--from", "1s"], 0);
    let fast = gif_delays(&fs::read(home.path("fast.gif")).expect("a film"));
    assert!(fast.iter().sum::<u16>() < 600, "{fast:?}");

    convert(&home, &["-o", "a.apng", "--fps", "10"], 0);
    let apng = fs::read(home.path("a.apng")).expect("a film");
    png_size(&home, "a.apng");
    assert_eq!(apng.windows(4).filter(|w| *w == b"fcTL").count(), 4);
    let count = apng.windows(4).position(|w| w == b"acTL").expect("an animation");
    assert_eq!(apng[count + 4..count + 8], [0, 0, 0, 4]);

    let out = home.run(["convert", "--json", "a.cast", "-o", "b.gif", "-i", "1s"]);
    let report: Value = serde_json::from_slice(&out.stdout).expect("a report");
    let length = fs::metadata(home.path("b.gif")).expect("a film").len();
    assert_eq!((&report["to"], &report["written_bytes"]), (&"gif".into(), &length.into()), "{report}");
    // What exists stays.
    assert!(convert(&home, &["-o", "b.gif"], 2).contains("b.gif"));
    assert_eq!(fs::metadata(home.path("b.gif")).expect("a film").len(), length);
    let piped = home.run(["convert", "-q", "a.cast", "-o", "-", "--format", "gif", "-i", "3s"]);
    assert_eq!(piped.stdout, gif);
}

/// A terminal that grows makes a film of the largest size.
#[test]
fn films_are_as_large_as_the_largest_screen() {
    let home = Home::new();
    let cast = concat!(
        r#"{"version":3,"term":{"cols":10,"rows":2}}"#,
        "\n[0.5,\"o\",\"small\"]\n[1.0,\"r\",\"30x6\"]\n[0.2,\"o\",\"\\r\\nlarge\"]\n[1.0,\"r\",\"5x1\"]\n",
    );
    fs::write(home.path("a.cast"), cast).expect("written");
    let large = cast.replace("\"cols\":10,\"rows\":2", "\"cols\":30,\"rows\":6");
    fs::write(home.path("b.cast"), large).expect("written");
    let size = |name: &str| {
        let file = fs::read(home.path(name)).expect("a film");
        (u16::from_le_bytes([file[6], file[7]]), u16::from_le_bytes([file[8], file[9]]))
    };
    convert(&home, &["-o", "a.gif"], 0);
    assert_eq!(home.run(["convert", "-q", "b.cast", "-o", "b.gif"]).status.code(), Some(0));
    assert_eq!(size("a.gif"), size("b.gif"));
}

#[test]
fn ffmpeg_writes_what_it_can_and_is_named_where_it_is_missing() {
    let home = Home::new();
    write_cast(&home);
    let empty = home.path("empty");
    fs::create_dir(&empty).expect("a folder");
    let out =
        home.tapdeck(["convert", "a.cast", "-o", "a.mp4"]).env("PATH", &empty).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("install the package ffmpeg") && !home.path("a.mp4").exists(), "{said}");
    if !has("ffmpeg") || !has("ffprobe") {
        return;
    }
    for name in ["a.mp4", "a.webm", "a.webp"] {
        convert(&home, &["-o", name, "--idle-time-limit", "1s"], 0);
        assert!(fs::metadata(home.path(name)).expect("a film").len() > 500, "{name}");
    }
    for name in ["a.mp4", "a.webm"] {
        let mut probe = Command::new("ffprobe");
        probe.args(["-v", "error", "-show_entries", "format=duration:stream=width,height", "-of", "csv=p=0"]);
        let out = probe.arg(home.path(name)).output().expect("ffprobe runs");
        let found = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && found.starts_with("180,"), "{name}: {found}");
        // Four seconds, the rest of two, and up to one more for the copy of the last frame.
        let seconds: f64 = found.lines().last().and_then(|n| n.parse().ok()).expect("a length");
        assert!((5.9..7.1).contains(&seconds), "{name}: {found}");
    }
}

#[test]
fn peek_writes_the_screen_of_a_session_as_a_picture() {
    let home = Home::new();
    let script = "printf '\\033[1;32mready\\033[m to go'; sleep 1000";
    let session = Detached::start(&home, &[], &["sh", "-c", script]);
    session.wait_text("ready to go");
    for (name, start) in [("a.png", "\u{fffd}PNG"), ("a.svg", "<svg"), ("a.html", "<pre")] {
        session.ok(&["peek", "-o", name]);
        let file = fs::read(home.path(name)).expect("a picture");
        let text = String::from_utf8_lossy(&file);
        assert!(text.starts_with(start) && (name == "a.png" || text.contains("ready")), "{name}: {text}");
    }
    let out = home.run(["peek", "-o", "a.doc"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("supported: .png, .svg, .html"));
    assert_eq!(home.run(["peek", "-o", "a.png"]).status.code(), Some(2), "it is there already");
    assert_eq!(home.run(["peek", "-o", "a.png", "--overwrite"]).status.code(), Some(0));
}
