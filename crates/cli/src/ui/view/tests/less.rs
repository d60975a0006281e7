//! The keys of `less`.

use ratatui::style::Color;

use super::{Effect, News, SECOND, SNAPSHOTS, Stage, forty};

#[test]
fn the_keys_of_less_move() {
    let mut stage = Stage::of(&forty(), 40, 14);
    for (keys, first) in [
        ("k", "line 32"),
        ("j", "line 33"),
        ("j", "line 33"),
        ("b", "line 25"),
        ("\x1b[5~", "line 17"),
        ("f", "line 25"),
        ("u", "line 21"),
        ("d", "line 25"),
        ("g", "line 1"),
        ("k", "line 1"),
        ("\x1b[B\x1b[B", "line 3"),
        ("e", "line 4"),
        ("\x19", "line 3"),
        ("\x05", "line 4"),
        ("ma", "line 4"),
        ("G", "line 33"),
        ("'a", "line 4"),
        ("''", "line 33"),
        ("\x1b<", "line 1"),
        ("\x1b>", "line 33"),
        ("\x1b[<64;20;5M", "line 30"),
        ("\x1b[<65;20;5M", "line 33"),
        ("\x1b[H", "line 1"),
        ("\x1b[F", "line 33"),
        ("10k", "line 23"),
        ("3j", "line 26"),
        ("5b", "line 21"),
        ("100g", "line 33"),
        ("12G", "line 12"),
        ("50%", "line 21"),
        ("25p", "line 11"),
        ("3z", "line 14"),
        ("z", "line 17"),
        ("2w", "line 15"),
        ("w", "line 13"),
        ("\x1b ", "line 15"),
        ("2d", "line 17"),
        ("d", "line 19"),
        ("u", "line 17"),
        ("1\x7f4k", "line 13"),
        ("9", "line 13"),
        ("\x1b", "line 13"),
        ("j", "line 14"),
        ("Mb", "line 14"),
        ("g'b", "line 14"),
        ("\x18\x18", "line 1"),
        ("\x1bMb'b", "line 1"),
        ("'$", "line 33"),
        ("'^", "line 1"),
        ("\x1b>", "line 33"),
        ("\x1b<", "line 1"),
        ("\x16\x0e", "line 4"),
        ("\x1bv", "line 2"),
        ("3/line .*0$\r", "line 28"),
        ("2\x1b?line .*0$\r", "line 18"),
        ("2n", "line 33"),
    ] {
        stage.send(keys);
        assert_eq!(stage.first(), first, "after {keys:?}\n{}", stage.screen());
    }
}

#[test]
fn a_digit_alone_is_a_tenth_and_with_others_a_number() {
    let mut stage = Stage::of(&forty(), 50, 14);
    stage.send("5");
    assert!(stage.screen().contains(":5 …") && stage.screen().contains("0:40 / 0:40"), "{}", stage.screen());
    stage.pass(SECOND);
    assert!(stage.screen().contains("0:20 / 0:40"), "{}", stage.screen());
    stage.send("25");
    stage.pass(10 * SECOND);
    assert!(stage.screen().contains(":25") && stage.screen().contains("0:20 / 0:40"), "{}", stage.screen());
    stage.send("\x1b[D");
    assert!(stage.screen().contains("0:00 / 0:40"), "25 seconds back\n{}", stage.screen());
    stage.send("3.");
    assert_eq!(stage.lines().last().map(String::as_str), Some("line 3"), "{}", stage.screen());
}

#[test]
fn a_filter_leaves_matching_lines_and_the_rest_works_on_them() {
    let mut stage = Stage::with(&forty(), SNAPSHOTS, 60, 20, true);
    stage.send("&0$\r");
    assert_eq!(stage.lines(), ["line 10", "line 20", "line 30", "line 40"], "{}", stage.screen());
    assert!(stage.screen().contains("only &0$"), "{}", stage.screen());
    stage.send("&!2\r");
    assert_eq!(stage.lines(), ["line 10", "line 30", "line 40"], "both count\n{}", stage.screen());
    stage.send("g/line 2\r");
    assert!(stage.screen().contains("not found"), "what is hidden is not found\n{}", stage.screen());
    stage.send("/30\ri");
    let (_, at) = stage.find("line 30");
    assert!(stage.rows()[usize::from(at) + 1].contains("Instruction from snapshot 8"), "{}", stage.screen());
    stage.send("\x1b[1;3A");
    let (_, at) = stage.find("line 10");
    assert!(
        stage.rows()[usize::from(at) + 1].contains("Instruction"),
        "moved in what is left\n{}",
        stage.screen()
    );
    stage.send("\x1b");
    stage.send("&(\r");
    assert!(stage.screen().contains("no regular expression"), "{}", stage.screen());
    stage.send("&nothing\ri");
    assert!(stage.lines().is_empty() && stage.screen().contains("no line is left"), "{}", stage.screen());
    stage.send("jkfbGg/x\rn50%&\rg");
    assert_eq!(stage.first(), "line 1", "{}", stage.screen());
    stage.send("&\x12.*\r");
    assert!(stage.lines().is_empty(), "taken literally\n{}", stage.screen());
    stage.send("&\r");
    let (mut stage, link) = Stage::live(60, 14);
    stage.send("&x\r");
    for i in 0..30 {
        link.0.borrow_mut().news.push_back(News::Output(format!("line {i}\r\nline {i}x\r\n").into_bytes()));
        stage.settle();
    }
    assert_eq!(stage.lines().last().map(String::as_str), Some("line 29x"), "followed\n{}", stage.screen());
    assert_eq!(stage.lines().len(), 8, "{}", stage.screen());
}

#[test]
fn patterns_have_modifiers_and_case() {
    let mut stage = Stage::of(&forty(), 60, 14);
    for (keys, row) in [
        ("g/!line 1?[0-9]$\r", Some(19)),
        ("n", Some(20)),
        ("G/@line 3\r", Some(2)),
        ("g\x1b?@line 3\r", Some(38)),
        ("/*line 7$\r", Some(6)),
    ] {
        stage.send(keys);
        assert_eq!(stage.app.focus, row, "{keys}\n{}", stage.screen());
    }
    stage.send("g/\x0bline 5\r");
    assert_eq!(stage.first(), "line 1", "lit up, and the view has not moved\n{}", stage.screen());
    let (x, y) = stage.find("line 5");
    assert_eq!(stage.terminal.backend().buffer()[(x, y)].bg, Color::Indexed(179));
    stage.send("\x1bu");
    assert_eq!(stage.terminal.backend().buffer()[(x, y)].bg, Color::Reset, "lights out");
    stage.send("/LINE 9\r");
    assert!(stage.screen().contains("not found"), "{}", stage.screen());
    stage.send("\x1b-I");
    assert!(stage.screen().contains("searches ignore case"), "{}", stage.screen());
    stage.send("n");
    assert_eq!(stage.app.focus, Some(8), "{}", stage.screen());
    stage.send("_i");
    assert!(stage.screen().contains("searches ignore case"), "told, not changed\n{}", stage.screen());
    stage.send("\x1bUn");
    assert!(stage.screen().contains("nothing has been searched for"), "{}", stage.screen());
    stage.send("/\x1b[A\r");
    assert!(stage.screen().contains("found"), "the last pattern from the history\n{}", stage.screen());
}

#[test]
fn following_until_something_comes() {
    let (mut stage, link) = Stage::live(60, 14);
    let tell = |text: String| link.0.borrow_mut().news.push_back(News::Output(text.into_bytes()));
    tell("line 0 done\r\n".to_owned());
    stage.settle();
    stage.send("/done\r\x1bF");
    assert!(stage.screen().contains("until done comes"), "{}", stage.screen());
    (1..=100).for_each(|i| tell(format!("line {i}\r\n")));
    stage.settle();
    tell("line 101 done\r\n".to_owned());
    (102..=200).for_each(|i| tell(format!("line {i}\r\n")));
    stage.settle();
    assert!(stage.screen().contains("it has come"), "{}", stage.screen());
    assert_eq!(stage.app.focus, Some(101), "{}", stage.screen());
    stage.send("F");
    assert_eq!(stage.lines().last().map(String::as_str), Some("line 200"), "{}", stage.screen());
}

#[test]
fn brackets_files_and_what_is_not_here() {
    let cast =
        "{\"version\":2,\"width\":20,\"height\":2}\n[0.1,\"o\",\"f(a,\\r\\n{b\\r\\n}\\r\\n) g\\r\\nend\"]\n";
    let mut stage = Stage::of(cast, 60, 8);
    stage.send("g(");
    assert!(stage.screen().contains(") g"), "{}", stage.screen());
    stage.send(")");
    assert!(stage.screen().contains("f(a,"), "{}", stage.screen());
    stage.send("j\x1b\x06{}");
    assert!(stage.screen().contains('}'), "{}", stage.screen());
    stage.send("g)");
    assert!(stage.screen().contains("no ) in the bottom row"), "{}", stage.screen());
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("saved.txt");
    stage.send(&format!("s{}\r", path.display()));
    assert_eq!(std::fs::read_to_string(&path).expect("saved"), "f(a,\n{b\n}\n) g\nend\n");
    stage.send(&format!("s{}\r", path.display()));
    assert!(stage.screen().contains("cannot save"), "what is there stays\n{}", stage.screen());
    for (name, start) in [("screen.svg", &b"<svg"[..]), ("screen.png", b"\x89PNG")] {
        let path = home.path().join(name);
        stage.send(&format!("s{}\r", path.display()));
        if cfg!(feature = "raster") || name == "screen.svg" {
            assert!(stage.screen().contains("the screen is in"), "{}", stage.screen());
            assert!(std::fs::read(&path).expect("saved").starts_with(start), "{name}");
        }
    }
    let Effect::Run(command) = stage.send("|$wc -l\r") else { panic!("nothing is run") };
    assert_eq!(command[4], "wc -l");
    assert_eq!(std::fs::read_to_string(&command[5]).expect("lent"), "f(a,\n{b\n}\n) g\nend\n");
    stage.app.take_back();
    assert!(!std::path::Path::new(&command[5]).exists());
    let Effect::Run(command) = stage.send("!echo hi\r") else { panic!("nothing is run") };
    assert_eq!(command[4], "echo hi");
    assert!(matches!(stage.send("v"), Effect::Run(_)));
    for (keys, text) in [("T", "no tags"), (":n", "one recording"), ("V", "tapdeck 0."), ("<", "0.75×")] {
        stage.send(keys);
        assert!(stage.screen().contains(text), "{keys}\n{}", stage.screen());
    }
    for quit in [":q", "ZZ", "Q", "q"] {
        assert_eq!(stage.send(quit), Effect::Quit, "{quit}");
    }
}

#[test]
fn the_help_scrolls_and_names_everything() {
    let mut stage = Stage::of(&forty(), 90, 14);
    let mut seen = String::new();
    stage.send("h");
    for _ in 0..12 {
        seen += &stage.screen();
        stage.send(" ");
    }
    for text in [
        "a line on (or N)",
        "Esc-v",
        "only matching lines",
        "5 seconds forward",
        "^X^X",
        "a number before a key is its N",
    ] {
        assert!(seen.contains(text), "{text}\n{seen}");
    }
    stage.send("g");
    assert!(stage.screen().contains("Keys 1–"), "{}", stage.screen());
    stage.send("q");
    assert!(!stage.screen().contains("Keys 1–"), "{}", stage.screen());
    let mut tall = Stage::live(100, 90).0;
    tall.send("H");
    assert!(
        tall.screen().contains("Ctrl-] stops") && tall.screen().contains("Keys · q"),
        "{}",
        tall.screen()
    );
}

/// Texts were cut at the right border.
#[test]
fn the_help_is_whole_in_narrow_terminals() {
    for (cols, rows) in [(80, 24), (40, 12)] {
        let mut stage = Stage::of(&forty(), cols, rows);
        stage.send("?");
        let mut seen = String::new();
        for _ in 0..200 {
            seen += &stage.screen().replace(['│', '\n'], " ");
            stage.send("j");
        }
        for word in ["border", "(OSC", "clipboard", "snapshot", "output", "others", "columns)"] {
            assert!(seen.contains(&format!(" {word}")), "{cols}×{rows}: {word}");
        }
        assert!(!seen.contains("step to the ne "), "{cols}×{rows}");
    }
}
