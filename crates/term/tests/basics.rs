//! The model's promises, each on a small example.

use std::io::Write as _;

use tapdeck_term::{Attrs, FilterOptions, ModeWatch, ReplayFilter, Settings, Signal, Size, Term};

fn term(cols: u16, rows: u16) -> Term {
    Term::new(Size::new(cols, rows), Settings::default())
}

fn rows(t: &Term) -> Vec<String> {
    t.screen().map(|l| l.text()).collect()
}

#[test]
fn provenance_is_exact_to_the_byte() {
    let mut t = term(10, 3);
    t.feed_at(b"ab\r\ncd\x1b[1;5Hx", 100);
    let written: Vec<_> = t.screen().map(|l| l.written()).collect();
    // `x` is byte 112; `d` is byte 105.
    assert_eq!(written, [Some(112), Some(105), None]);
    t.feed(b"\x1b[2K");
    assert_eq!(t.row(0).map(|l| l.last_write_byte()), Some(116));
}

#[test]
fn provenance_survives_scrolling_and_reflow() {
    let mut t = term(4, 2);
    t.feed(b"abcdef\r\nxy\r\nz");
    let all: Vec<_> = t.lines().map(|l| (l.text(), l.written())).collect();
    let want = [("abcd", 3), ("ef", 5), ("xy", 9), ("z", 12)];
    assert_eq!(all, want.map(|(s, n)| (s.to_owned(), Some(n))));
    t.resize(Size::new(8, 2));
    let all: Vec<_> = t.lines().map(|l| (l.text(), l.written())).collect();
    let want = [("abcdef", 5), ("xy", 9), ("z", 12)];
    assert_eq!(all, want.map(|(s, n)| (s.to_owned(), Some(n))));
}

#[test]
fn sizes_are_clamped() {
    let t = term(0, 0);
    assert_eq!(t.size(), Size::new(1, 1));
    let t = term(65535, 65535);
    assert_eq!(t.size(), Size::new(1000, 1000));
}

#[test]
fn scrollback_has_a_limit_and_counts_what_went() {
    let mut t = Term::new(Size::new(20, 2), Settings::default().scrollback(5));
    for i in 0..20 {
        t.feed(format!("line {i}\r\n").as_bytes());
    }
    assert_eq!(t.scrollback_len(), 5);
    assert_eq!(t.evicted(), 14);
    assert_eq!(t.scrollback().next().map(|l| l.text()), Some("line 14".to_owned()));
}

#[test]
fn undo_is_empty_when_nothing_is_set() {
    let mut t = term(80, 24);
    t.feed(b"hello\r\n");
    assert!(t.undo_modes().is_empty());
    let mut w = ModeWatch::new();
    w.feed(b"hello\r\n\x1b[1mx\x1b[0m");
    assert!(w.undo().is_empty());
}

#[test]
fn model_and_watch_undo_the_same() {
    let program = b"\x1b[?1049h\x1b[?25l\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[?2026h\x1b[31m\x1b[5 q\x1b=\x1b[?1h";
    let mut t = term(80, 24);
    t.feed(program);
    let mut w = ModeWatch::new();
    for b in program {
        w.feed(&[*b]);
    }
    assert_eq!(t.undo_modes(), w.undo());
    let undo = t.undo_modes();
    t.feed(&undo);
    assert!(t.undo_modes().is_empty(), "{:?}", String::from_utf8_lossy(&t.undo_modes()));
    w.feed(&undo);
    assert!(w.undo().is_empty(), "{:?}", String::from_utf8_lossy(&w.undo()));
}

fn filtered(input: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    ReplayFilter::new(FilterOptions::default()).filter(input, &mut whole);
    let mut split = Vec::new();
    let mut f = ReplayFilter::new(FilterOptions::default());
    for b in input {
        f.filter(&[*b], &mut split);
    }
    assert_eq!(whole, split, "any split gives the same");
    whole
}

#[test]
fn a_bare_byte_hides_nothing_that_comes_after_it() {
    for b in 0x80..=0x9fu8 {
        let mut t = term(20, 4);
        t.feed(&filtered(&[b"A", [b].as_slice(), b"B\r\nsecond"].concat()));
        let rows: Vec<String> = t.screen().map(|l| l.text()).collect();
        assert_eq!(&rows[..2], ["A\u{fffd}B", "second"], "{b:02x}");
    }
    assert_eq!(filtered(b"\x9d52;c;YQ==\x1b[c\x07x"), "\u{fffd}52;c;YQ==\x07x".as_bytes());
}

#[test]
fn replay_filter_takes_out_questions_that_hide_in_others() {
    let hidden: [&[u8]; 6] = [
        b"\xff(\x9b\xc20.\x9b.\xc2\x9b\xc2x00x.",
        b"\x9b\xc2\x9bc",
        b"\x1b\xc2\x9bc",
        b"\x1b[\xc2\x9bc",
        b"\x9d0;\xc2\x9bc\x07",
        b"\x90\x1bx\xc2\x9b6n\xc2\x9c",
    ];
    for bytes in hidden {
        let left = filtered(bytes);
        assert!(term(20, 6).feed(&left).replies.is_empty(), "{bytes:?} leaves {left:?}");
    }
}

#[test]
fn replay_filter_takes_out_questions() {
    for ask in [
        "\x1b[c",
        "\x1b[>c",
        "\x1b[=c",
        "\x1b[0c",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?996n",
        "\x1b[?2026$p",
        "\x1b[4$p",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b[>q",
        "\x1b[>0q",
        "\x1b[14t",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b]10;?\x07",
        "\x1b]4;1;?\x1b\\",
        "\x1b]52;c;Zm9v\x07",
        "\x1b]52;c;?\x07",
        "\x1b[?u",
        "\x1b_Gi=1,a=q;AAAA\x1b\\",
        "\x05",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b]9;hello\x07",
        "\x1b]777;notify;a;b\x07",
        "\x1b]99;i=1;x\x1b\\",
        "\x1b]1337;File=inline=1:AAAA\x07",
        "\x1bZ",
        "\u{9b}c",
        "\u{9a}",
        "\x1b[8;24;80t",
        "\x1b[?2048h",
        "\x1b[x",
    ] {
        assert_eq!(filtered(format!("a{ask}b").as_bytes()), b"ab", "{ask:?}");
    }
}

#[test]
fn replay_filter_passes_what_draws_byte_for_byte() {
    let text = "plain é漢😀\r\n\x1b[1;31mred\x1b[0m\x1b[2J\x1b[?1049h\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\\
                \x1b(0qqq\x1b(B\x1b[>4;1m\x1b[=1u\x1b[?2004;1004h\x1b[4h\x1b[2;5r\x1b7\x1b8\x1b[5 q\x1b[38:2::1:2:3m\
                \x1b#8\x1b[?25l\x1b[?1006;1000h\x1b[999;999H\x07\x08\t";
    assert_eq!(filtered(text.as_bytes()), text.as_bytes());
    let every: Vec<u8> = (0x20..=255).filter(|b| !matches!(b, 0x80..=0x9f | 0xc2)).collect();
    assert_eq!(filtered(&every), every);
}

/// It passed all that it did not know: modes that no view undoes, colours, pictures, links that
/// start programs.
#[test]
fn replay_filter_passes_only_what_is_on_its_list() {
    for bytes in [
        "\x1b[2h",
        "\x1b[12h",
        "\x1b[20h",
        "\x1b[?2l",
        "\x1b[?3h",
        "\x1b[?40h",
        "\x1b[?9001h",
        "\x1b[?1001h",
        "\x1b[3J",
        "\x1b[1;2;3;4;5T",
        "\x1b[>1;2m",
        "\x1b[61\"p",
        "\x1b[2q",
        "\x1b[1$}",
        "\x1b[#P",
        "\x1b[22;0t",
        "\x1b[23t",
        "\x1b]0;title\x07",
        "\x1b]2;title\x1b\\",
        "\x1b]4;1;red\x07",
        "\x1b]10;red\x07",
        "\x1b]104\x07",
        "\x1b]7;file:///\x07",
        "\x1b]22;pointer\x07",
        "\x1b]133;A\x07",
        "\x1b]1337;SetUserVar=a=YQ==\x07",
        "\x1b]20;c\x07",
        "\x1bPq#0;2;0;0;0~\x1b\\",
        "\x1bPpS(I0)\x1b\\",
        "\x1bPtmux;\x1b\x1b[c\x1b\\",
        "\x1bP1000p\x1b\\",
        "\x1b_x\x1b\\",
        "\x1b^x\x1b\\",
        "\x1bXx\x1b\\",
        "\x1b G",
        "\x1b%@",
        "\x1bk",
        "\x1bl",
        "\x11",
        "\u{90}q\u{9c}",
    ] {
        assert_eq!(filtered(format!("a{bytes}b").as_bytes()), b"ab", "{bytes:?}");
    }
    for (bytes, instead) in [
        ("\x1b[?1;9001;1006h", "\x1b[?1;1006h"),
        ("\u{9b}1m", "\x1b[1m"),
        ("\u{84}", "\x1bD"),
        ("\x1b[1\n;3\x051m", "\n\x1b[1;31m"),
        ("\x1b[2147483647b", "\x1b[65535b"),
        ("\x1b]8;a=1:id=x;HTTP://x\x07", "\x1b]8;id=x;HTTP://x\x1b\\"),
        ("\x1b]8;;javascript:x\x07", "\x1b]8;;\x1b\\"),
        ("\x1b]8;;file:///etc/passwd\x07", "\x1b]8;;\x1b\\"),
        ("\x1b]8;;http://x\u{202e}\x07", "\x1b]8;;\x1b\\"),
    ] {
        assert_eq!(String::from_utf8_lossy(&filtered(bytes.as_bytes())), instead, "{bytes:?}");
    }
    let out = filtered(b"\x1b[?1000h\x1bc");
    let mut t = term(20, 4);
    t.feed(&out);
    assert!(t.undo_modes().is_empty());
    assert!(!out.windows(2).any(|w| w == b"\x1bc"), "a reset would take the lines above");
}

#[test]
fn a_row_written_over_comes_back_and_nothing_else_changes() {
    let programs: [&[u8]; 7] = [
        b"plain\r\ntext \x1b[31mred",
        b"\x1b[4;1Hlast \x1b]8;;http://x\x1b\\link \x1b[1mbold\x1b[2;3H\x1b7\x1b[3;3H",
        b"\x1b[2;3r\x1b[?6h\x1b[2;4Hin margins",
        b"\x1b[4;20Hx\x1b[4;1H01234567890123456789",
        b"\x1b[4h\x1b[?7l\x1b[4;5Hinsert\x1b(0qqq",
        b"\x1b[4;19H\xe4\xb8\xad\x1b[41m\x1b[K\x1b[2;2H",
        b"\x1b[?1049h\x1b[4;3Halternate\x1b[?25l",
    ];
    for program in programs {
        let (mut model, mut real) = (term(20, 4), term(20, 4));
        model.feed(program);
        real.feed(program);
        real.feed(&model.over_row(3, "\x1b[7m a notice of ours \x1b[m"));
        assert!(real.row(3).is_some_and(|l| l.text().starts_with(" a notice of ours")));
        real.feed(&model.repaint_row(3));
        let dump = |t: &Term| String::from_utf8_lossy(&t.dump()).into_owned();
        assert_eq!(dump(&real), dump(&model), "{:?}", String::from_utf8_lossy(program));
    }
}

#[test]
fn replay_filter_does_not_join_what_it_leaves() {
    // What stands around a question must not become one when the question is gone.
    let out = filtered(b"\x1b[6\x1b[cn");
    assert!(!out.windows(4).any(|w| w == b"\x1b[6n"), "{out:?}");
    let out = filtered(b"\xc2\x05\x9bc");
    assert!(!out.windows(2).any(|w| w == b"\xc2\x9b"), "{out:?}");
}

#[test]
fn signals_are_told_and_nothing_is_echoed() {
    let mut t = term(80, 24);
    let c = t.feed(b"\x1b]0;evil\ntitle\x07\x07\x1b[21t\x1b]52;c;aGk=\x07\x1b]9;4;1;50\x07\x1b]133;A\x07");
    assert!(c.replies.is_empty());
    assert_eq!(t.title(), "eviltitle");
    assert!(c.signals.contains(&Signal::Bell));
    assert_eq!(c.signals.len(), 6, "{:?}", c.signals);
    assert_eq!(rows(&t)[0], "");
}

#[test]
fn agents_questions_are_answered() {
    let mut t = term(80, 24);
    let mut ask = |q: &str| String::from_utf8_lossy(&t.feed(q.as_bytes()).replies).into_owned();
    assert!(ask("\x1b[>0q").starts_with("\x1bP>|tapdeck "));
    assert_eq!(ask("\x1b[?u"), "\x1b[?0u");
    assert!(ask("\x1b[c").starts_with("\x1b[?64;"));
    assert_eq!(ask("\x1b[?2026$p"), "\x1b[?2026;2$y");
    assert_eq!(
        ask("\x1b[?1016$p\x1b[?2031$p\x1b[?1004$p\x1b[?2004$p"),
        "\x1b[?1016;2$y\x1b[?2031;2$y\x1b[?1004;2$y\x1b[?2004;2$y"
    );
    assert_eq!(ask("\x1b[?2027$p"), "\x1b[?2027;1$y");
    assert_eq!(ask("\x1b[6n"), "\x1b[1;1R");
    assert_eq!(ask("\x1b]11;?\x07"), "\x1b]11;rgb:0000/0000/0000\x07");
    assert_eq!(ask("\x1b]4;1;?\x1b\\"), "\x1b]4;1;rgb:cdcd/0000/0000\x1b\\");
    assert_eq!(ask("\x1bP+q544e\x1b\\"), "\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\");
    assert_eq!(ask("\x1b[14t\x1b[16t\x1b[18t"), "\x1b[4;480;800t\x1b[6;20;10t\x1b[8;24;80t");
    assert_eq!(ask("\x1b[?996n"), "\x1b[?997;1n");
    assert_eq!(ask("\x1b]99;i=q1:p=?;\x1b\\"), "\x1b]99;i=q1:p=?;p=title,body\x1b\\");
}

#[test]
fn a_number_cut_by_controls_stays_bounded() {
    // The digits of one parameter may have line feeds between them; the value once grew beyond its
    // type.
    let mut t = term(10, 3);
    let mut bytes = b"\x1b[".to_vec();
    for _ in 0..40 {
        bytes.extend_from_slice(b"9\n9\r");
    }
    bytes.push(b'C');
    t.feed(&bytes);
    assert_eq!(t.cursor().col, 9);
}

#[test]
fn watch_sees_colours_that_look_like_resets() {
    for (sgr, left) in
        [("38;5;0", true), ("0", false), ("", false), ("1;0", false), ("0;1", true), ("39", false)]
    {
        let mut w = ModeWatch::new();
        w.feed(format!("x\x1b[{sgr}my").as_bytes());
        assert_eq!(!w.undo().is_empty(), left, "{sgr}");
    }
}

#[test]
fn rows_of_scrollback_by_number_are_those_in_order() {
    let settings = Settings::default().scrollback(3_000);
    let mut term = Term::new(Size::new(40, 5), settings);
    for i in 0..10_000 {
        term.feed(format!("row {i} {}\r\n", "x".repeat(i % 30)).as_bytes());
    }
    let in_order: Vec<String> = term.scrollback().map(|line| line.text()).collect();
    let by_number: Vec<String> = (0..).map_while(|i| Some(term.scrollback_row(i)?.text())).collect();
    assert_eq!(in_order.len(), term.scrollback_len());
    assert_eq!(in_order, by_number);
}

/// A row that was drawn before it was known to go on was copied as a line of its own.
#[test]
fn painters_are_told_when_a_row_turns_out_to_go_on() {
    let mut term = Term::new(Size::new(5, 3), Settings::default());
    term.feed(b"abcd ");
    let drawn = term.generation();
    assert_eq!(term.row(0).and_then(|line| line.written_blanks()), None);
    term.feed(b"e");
    let rows: Vec<u16> = term.diff(drawn).rows.iter().map(|row| row.row).collect();
    assert_eq!(rows, [0, 1]);
    let line = term.row(0).expect("a row");
    assert!(line.wrapped());
    assert_eq!(line.written_blanks(), Some((4, 1)), "it was written, and stands between words");
    // A cell that was left because a wide character did not fit was not.
    term.feed("\r\n\u{1b}[2J\u{1b}[Habcd日".as_bytes());
    let line = term.row(0).expect("a row");
    assert_eq!((line.wrapped(), line.written_blanks()), (true, None));
}

#[test]
fn offsets_at_the_end_of_all_numbers_are_no_trouble() {
    let mut term = Term::new(Size::new(20, 3), Settings::default());
    for bytes in
        [&b"plain \x1b[1;31mred\x1b[0m"[..], b"\x1b]2;title\x07\r\n", "\u{4e2d}\x1b[5".as_bytes(), b"C."]
    {
        term.feed_at(bytes, u64::MAX);
    }
    let rows: Vec<_> = term.screen().map(|row| row.text()).collect();
    assert_eq!(rows, ["plain red", "\u{4e2d}     .", ""]);
}

#[test]
fn offsets_are_counted_and_can_be_set() {
    let mut t = term(10, 3);
    t.feed(b"ab\r\n");
    t.feed(b"cd");
    assert_eq!(t.offset(), 6);
    t.feed_at(b"e", 100);
    t.feed(b"f");
    assert_eq!(t.offset(), 102);
    let written: Vec<_> = t.screen().map(|l| l.written()).collect();
    assert_eq!(written, [Some(1), Some(101), None]);
}

#[test]
fn the_screen_can_be_read_as_text_and_by_cell() {
    let mut t = term(6, 4);
    write!(t, "one\r\n\x1b[1mt\u{65e5}o\r\n").expect("writing to a terminal never fails");
    assert_eq!(t.text(), "one\nt日o");
    let cell = |row, col| t.cell(row, col).map(|c| (c.text, c.width, c.style.attrs.contains(Attrs::BOLD)));
    assert_eq!(cell(1, 0), Some(("t".into(), 1, true)));
    assert_eq!(cell(1, 1), Some(("日".into(), 2, true)));
    assert_eq!(cell(1, 2), Some((String::new(), 0, true)));
    assert_eq!(cell(1, 3), Some(("o".into(), 1, true)));
    assert_eq!(cell(1, 5), Some((String::new(), 1, false)));
    assert_eq!((cell(1, 6), cell(4, 0)), (None, None));
    // A row in scrollback keeps only what stands in it.
    write!(t, "\r\n\r\n\r\n").expect("writing to a terminal never fails");
    let cell = |col| t.scrollback_row(0).and_then(|line| line.cell(col)).map(|c| c.text);
    assert_eq!((cell(2), cell(5), cell(6)), (Some("e".into()), Some(String::new()), None));
}

/// What a view passes to a real terminal must not outlive the view.
#[test]
fn all_that_passes_the_filter_can_be_undone() {
    let pieces: &[&[u8]] = &[
        b"text",
        b"\r\n",
        b"\x1b[5;9H",
        b"\x1b)0",
        b"\x1b*A",
        b"\x0e",
        b"\x1bn",
        b"\x1b|",
        b"\x1bN",
        b"\x1b[?1049h",
        b"\x1b[?47h",
        b"\x1b[?1047h",
        b"\x1b[?1048h",
        b"\x1b[?6h",
        b"\x1b[2;4r",
        b"\x1b[?69h",
        b"\x1b[3;9s",
        b"\x1b7",
        b"\x1b8",
        b"\x1b[>5u",
        b"\x1b[=3u",
        b"\x1b[<u",
        b"\x1b[1\"q",
        b"\x1bV",
        b"\x1bH",
        b"\x1b[3g",
        b"\x1b[?12h",
        b"\x1b[5 q",
        b"\x1b[?1003h",
        b"\x1b[?1015h",
        b"\x1b[?9h",
        b"\x1b[4h",
        b"\x1b[?7l",
        b"\x1b[?5h",
        b"\x1b=",
        b"\x1b[?66h",
        b"\x1b]8;;http://x\x1b\\",
        b"\x1b[1;4:3;58;5;1m",
        b"\x1b[#{",
        b"\x1b[?1s",
        b"\x1b[?1r",
        b"\x1b#6",
        b"\x1b[?2026h",
        b"\x1b[?2031h",
        b"\x1b[?2027l",
        b"\x1b[!p",
        b"\x1bc",
        b"\x1b[>4;2m",
        b"\x1b[?1004h",
        b"\x1b[?25l",
    ];
    let mut state = 7u32;
    for _ in 0..3000 {
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        let stream: Vec<u8> = (0..draw() % 12).flat_map(|_| pieces[draw() % pieces.len()]).copied().collect();
        let mut out = Vec::new();
        ReplayFilter::new(FilterOptions::default()).filter(&stream, &mut out);
        let mut t = term(20, 6);
        t.feed(&out);
        let undo = t.undo_modes();
        t.feed(&undo);
        let (shown, left) = (String::from_utf8_lossy(&out).into_owned(), t.undo_modes());
        assert!(left.is_empty(), "{shown:?} leaves {:?}", String::from_utf8_lossy(&left));
    }
}

fn filtered_to_the_end(stream: &[u8]) -> Vec<u8> {
    let (mut filter, mut out) = (ReplayFilter::new(FilterOptions::default()), Vec::new());
    filter.filter(stream, &mut out);
    filter.finish(&mut out);
    out
}

/// Keyboard flags that the user's own programs had pushed were popped with those of the session.
#[test]
fn the_filter_pops_what_was_pushed_and_no_more() {
    for (stream, want) in [
        (&b"\x1b[<9u"[..], &b""[..]),
        (b"\x1b[>1u\x1b[<9u\x1b[<u", b"\x1b[>1u\x1b[<1u"),
        (b"\x1b[>1u\x1b[>3u\x1b[<2u", b"\x1b[>1u\x1b[>3u\x1b[<2u"),
        // Each screen has a stack of its own.
        (b"\x1b[>1u\x1b[?1049h\x1b[<u", b"\x1b[>1u\x1b[?1049h"),
        (b"\x1b[>1u\x1b[?1049h\x1b[?1049l\x1b[<u", b"\x1b[>1u\x1b[?1049h\x1b[?1049l\x1b[<1u"),
    ] {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(shown(&filtered(stream)), shown(want));
    }
    assert!(filtered(b"\x1bc").starts_with(b"\x1b]8;;\x1b\\\x1b[=0u"), "a reset pops nothing of the user's");
}

/// They stayed when a view ended.
#[test]
fn clusters_charsets_and_the_scrollback_are_left_as_they_were() {
    assert_eq!(filtered_to_the_end(b"\x1b[?2027hx"), b"\x1b[?2027hx\x1b[?2027l");
    assert_eq!(filtered_to_the_end(b"\x1b[?2027h\x1b[?2027lx"), b"\x1b[?2027h\x1b[?2027lx");
    for erase in [&b"\x1b[3J"[..], b"\x1b[?3J", b"\x1b[?03J", b"\x1b[?3;0J", b"\x1b[?8W"] {
        assert_eq!(filtered(erase), b"", "{}", String::from_utf8_lossy(erase));
    }
    let mut t = term(20, 6);
    t.feed(b"\x1b)0\x1b*0");
    let undo = t.undo_modes();
    for want in [&b"\x1b)B"[..], b"\x1b*B"] {
        assert!(undo.windows(want.len()).any(|w| w == want), "{}", String::from_utf8_lossy(&undo));
    }
}

/// Terminals such as tmux forget the alternate screen when it is left, stay on it in a reset, and
/// do not know the mode for clusters.
#[test]
fn dumps_ask_little_of_terminals() {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut before = term(20, 4);
    before.feed("shell$ vim e\u{301}\r\n\x1b[?1049h\x1b[2;5Hbefore".as_bytes());
    let mut after = before.clone();
    after.feed(b"\x1b[3;1Hafter");
    let dump = text(after.dump());
    let (main, alternate) = dump.split_once("\x1b[?47h").expect("the alternate screen is entered");
    assert!(main.contains("shell$ vim e\u{301}") && !main.contains("after"), "{main:?}");
    assert!(alternate.contains("after") && !alternate.contains("\x1b[?47"), "{alternate:?}");
    let since = text(after.dump_since(&before));
    assert!(since.starts_with("\x1b[?47l\x1bc"), "{since:?}");
    assert!(since.ends_with(&dump), "{since:?}");
    assert!(!since.contains("2027"), "{since:?}");
    // What needs the mode gets it, and only there.
    after.feed("\x1b[4;1H1\u{fe0f}\u{20e3} \x1b[?2027le\u{301}\x1b[?2027h x".as_bytes());
    let mut again = term(20, 4);
    again.feed(&after.dump());
    assert_eq!(rows(&again), rows(&after));
    // A protected cell on the alternate screen.
    after.feed(b"\x1b[1\"qP\x1b[!p");
    let mut again = term(20, 4);
    again.feed(&after.dump());
    assert_eq!(text(again.dump()), text(after.dump()));
}

#[test]
fn earlier_states_with_wide_rows_behind_are_brought_up() {
    let mut t = term(20, 5);
    t.feed(b"\x1b#3one\r\ntwo\x1b[?1047h");
    let mut before = t.clone();
    t.feed(b"\x1b[?69h\x1b[?47l");
    before.feed(&t.dump_since(&before));
    assert_eq!(before.dump(), t.dump());
}
