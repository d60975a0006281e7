//! Properties of the model on generated programs: what they write is random, but made of what real
//! ones write.

use proptest::prelude::*;
use tapdeck_term::{Keep, Line, Scanner, Settings, Size, Style, Term, Token};

/// A piece of a program's output.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        "[a-zA-Z0-9 .,:/-]{1,30}",
        "[äöüéñ→│─┌┐█▒]{1,10}",
        "[漢字かなカナ한글]{1,8}",
        prop_oneof![
            Just("👨‍👩‍👧‍👦".to_owned()),
            Just("👍🏿".to_owned()),
            Just("🇯🇵🇩🇪".to_owned()),
            Just("❤️".to_owned()),
            Just("1️⃣".to_owned()),
            Just("e\u{301}".to_owned()),
            Just("\u{301}".to_owned()),
            Just("न\u{94d}द".to_owned()),
            Just("\u{fe0f}".to_owned()),
            Just("\u{200d}".to_owned()),
            Just("ก\u{e33}".to_owned()),
            Just("\u{600}1".to_owned()),
        ],
    ]
    .prop_map(String::into_bytes);
    let control = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        1 => prop::sample::select(vec![7u8, 8, 9, 10, 11, 12, 13, 14, 15, 0x18, 0x1a]).prop_map(|b| vec![b]),
    ];
    let number = prop_oneof![3 => 0u32..12, 1 => 0u32..200, 1 => Just(70_000u32)];
    let params = prop::collection::vec(number.clone(), 0..5)
        .prop_map(|v| v.iter().map(u32::to_string).collect::<Vec<_>>().join(";"));
    let csi = (params.clone(), prop::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abdefghjklmrsu^".to_vec()))
        .prop_map(|(p, f)| format!("\x1b[{p}{}", char::from(f)).into_bytes());
    let sgr = prop::collection::vec(
        prop::sample::select(vec![
            "0",
            "1",
            "2",
            "3",
            "4",
            "4:3",
            "7",
            "9",
            "21",
            "22",
            "24",
            "27",
            "31",
            "42",
            "49",
            "53",
            "94",
            "105",
            "38;5;200",
            "48;2;1;2;3",
            "38:2::9:8:7",
            "58:5:4",
            "58:2::1:2:3",
        ]),
        0..4,
    )
    .prop_map(|v| format!("\x1b[{}m", v.join(";")).into_bytes());
    let modes = (
        prop::sample::select(vec![
            1u16, 3, 4, 5, 6, 7, 8, 12, 25, 40, 45, 47, 66, 69, 95, 1000, 1002, 1003, 1004, 1006, 1045, 1047,
            1048, 1049, 2004, 2026, 2027, 2031,
        ]),
        any::<bool>(),
    )
        .prop_map(|(n, on)| format!("\x1b[?{n}{}", if on { 'h' } else { 'l' }).into_bytes());
    let marked = (
        params,
        prop::sample::select(vec![
            "\"q", "$r", "$t", "$v", "$x", "$z", "${", "'}", "'~", " @", " A", " q", "*x", "#{", "#}",
        ]),
    )
        .prop_map(|(p, f)| format!("\x1b[{p}{f}").into_bytes());
    let other = prop::sample::select(vec![
        "\x1b7",
        "\x1b8",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1bM",
        "\x1b6",
        "\x1b9",
        "\x1b=",
        "\x1b>",
        "\x1b#3",
        "\x1b#4",
        "\x1b#5",
        "\x1b#6",
        "\x1b#8",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x1b(A",
        "\x1bn",
        "\x1bN",
        "\x1bV",
        "\x1bW",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[20h",
        "\x1b[20l",
        "\x1b[!p",
        "\x1b[3g",
        "\x1b[?2J",
        "\x1b[?1K",
        "\x1b[>1u",
        "\x1b[<u",
        "\x1b[=5u",
        "\x1b[>4;2m",
        "\x1b[22t",
        "\x1b[23t",
        "\x1b]0;one\x07",
        "\x1b]2;two\x1b\\",
        "\x1b]8;;http://a\x1b\\",
        "\x1b]8;id=x;http://b\x1b\\",
        "\x1b]8;;\x1b\\",
        "\x1b]4;3;#112233\x07",
        "\x1b]11;rgb:1/2/3\x07",
        "\x1b]104\x07",
        "\x1b]133;A\x07",
        "\x1b]133;C\x07",
        "\x1bc",
        "\x1b[?1049h",
        "\x1b[3J",
        "\x1b[?6s",
        "\x1b[?6r",
        "\x1b[r",
    ])
    .prop_map(|s| s.as_bytes().to_vec());
    prop_oneof![
        8 => text,
        5 => control,
        5 => csi,
        3 => sgr,
        2 => modes,
        1 => marked,
        2 => other,
    ]
}

fn program() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..60).prop_map(|v| v.concat())
}

fn size() -> impl Strategy<Value = Size> {
    (1u16..24, 1u16..9).prop_map(|(c, r)| Size::new(c, r))
}

fn settings() -> Settings {
    Settings::default().scrollback(40)
}

/// A row as a text that is short where nothing special is on it.
fn look(l: &Line<'_>) -> String {
    let mut out = String::new();
    for mut r in l.runs() {
        // Numbers of links are each terminal's own.
        r.style.link = u32::from(r.style.link != 0);
        if r.style == Style::default() {
            out += &format!("{:?}@{}+{} ", r.text, r.col, r.width);
        } else {
            out += &format!("{:?}@{}+{}{:?} ", r.text, r.col, r.width, r.style);
        }
    }
    format!("{out}{}{}", if l.wrapped() { "wrapped " } else { "" }, l.size() as u8)
}

fn state(t: &Term) -> Vec<String> {
    let mut out: Vec<String> = t.lines().map(|l| look(&l)).collect();
    out.push(format!("{:?} {:?} {:?} {:?}", t.cursor(), t.modes(), t.title(), t.palette()));
    out
}

/// Drops each REP that comes before the first character: a dump does not carry what it would
/// repeat.
fn without_early_rep(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut printed) = (Vec::new(), false);
    let mut scanner = Scanner::new();
    let mut take = |_: &Scanner, token: Token<'_>| match token {
        Token::Text(text) => {
            printed |= text.iter().any(u8::is_ascii_graphic);
            out.extend_from_slice(text);
        }
        Token::Control { bytes, .. } | Token::Part { bytes, .. } => {
            let is_rep = bytes.starts_with(b"\x1b[") && bytes.ends_with(b"b");
            if printed || !is_rep {
                out.extend_from_slice(bytes);
            }
        }
    };
    scanner.feed(bytes, &mut take);
    scanner.finish(&mut take);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The bytes arrive in pieces as the system likes; nothing may depend on them.
    #[test]
    fn any_split_gives_the_same(bytes in program(), size in size(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut whole = Term::new(size, settings());
        let a = whole.feed(&bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|i| i.index(bytes.len() + 1)).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut split = Term::new(size, settings());
        let (mut at, mut replies, mut signals) = (0, Vec::new(), Vec::new());
        for cut in cuts {
            let c = split.feed(&bytes[at..cut]);
            replies.extend(c.replies);
            signals.extend(c.signals);
            at = cut;
        }
        prop_assert_eq!(state(&whole), state(&split));
        prop_assert_eq!(a.replies, replies);
        prop_assert_eq!(a.signals, signals);
        let written = |t: &Term| t.lines().map(|l| l.written()).collect::<Vec<_>>();
        prop_assert_eq!(written(&whole), written(&split));
        prop_assert_eq!(whole.dump(), split.dump());
    }

    /// A dump fed to a fresh terminal gives the same terminal.
    #[test]
    fn dump_and_feed_are_inverse(bytes in program(), size in size()) {
        let mut first = Term::new(size, settings());
        first.feed(&bytes);
        let dump = first.dump();
        let mut second = Term::new(first.size(), settings());
        second.feed(&dump);
        prop_assert_eq!(state(&first), state(&second), "dump {:?}", String::from_utf8_lossy(&dump));
        let again = second.dump();
        prop_assert_eq!(String::from_utf8_lossy(&dump), String::from_utf8_lossy(&again));
    }

    /// Bytes that renew a terminal bring any state back to that of a fresh one, and it goes on as
    /// a fresh one does.
    #[test]
    fn a_renewed_terminal_is_a_fresh_one(
        bytes in program(),
        more in program(),
        size in size(),
        keep in prop::sample::select(vec![Keep::Nothing, Keep::Scrollback, Keep::Lines]),
    ) {
        let mut renewed = Term::new(size, settings());
        renewed.feed(&bytes);
        let size = renewed.size();
        renewed.feed(&renewed.renew(keep));
        let mut fresh = Term::new(size, settings());
        let screen = |t: &Term| state(t)[t.scrollback_len()..].to_vec();
        prop_assert_eq!(screen(&renewed), screen(&fresh));
        prop_assert!(keep != Keep::Nothing || renewed.scrollback_len() == 0);
        prop_assert_eq!(renewed.directory(), "");
        let more = without_early_rep(&more);
        renewed.feed(&more);
        fresh.feed(&more);
        prop_assert_eq!(screen(&renewed), screen(&fresh));
    }

    /// An earlier state of a terminal becomes the later one, with its scrollback.
    #[test]
    fn an_earlier_state_is_brought_up(bytes in program(), more in program(), size in size()) {
        let mut term = Term::new(size, settings());
        term.feed(&bytes);
        let mut before = term.clone();
        term.feed(&more);
        let bytes = term.dump_since(&before);
        before.feed(&bytes);
        prop_assert_eq!(state(&term), state(&before));
    }

    /// Without what came and went in between, the screen is the same, and what is in the scrollback
    /// was on the screen or in the scrollback before.
    #[test]
    fn an_earlier_state_is_drawn_again(bytes in program(), more in program(), size in size()) {
        let mut term = Term::new(size, settings());
        term.feed(&bytes);
        let mut before = term.clone();
        let mut known: Vec<String> = before.lines().map(|line| line.text()).collect();
        // The main screen is behind the other one.
        let mut main = before.clone();
        main.feed(b"\x18\x1b<\x1b[?47l");
        known.extend(main.lines().map(|line| line.text()));
        term.feed(&more);
        let redraw = term.redraw_since(&before);
        if term.size() != before.size() {
            before.resize(term.size());
        }
        before.feed(&redraw);
        let screen = |t: &Term| state(t)[t.scrollback_len()..].to_vec();
        prop_assert_eq!(screen(&before), screen(&term), "redraw {:?}", String::from_utf8_lossy(&redraw));
        // A change of the width breaks rows at other places.
        for line in before.scrollback().filter(|_| main.size() == before.size()) {
            prop_assert!(known.contains(&line.text()), "{:?} is new", line.text());
        }
    }

    /// And both go on in the same way.
    #[test]
    fn dump_can_be_gone_on_from(bytes in program(), more in program(), size in size()) {
        let mut first = Term::new(size, settings());
        first.feed(&bytes);
        let mut second = Term::new(first.size(), settings());
        second.feed(&first.dump());
        // RIS brings back what was never lost.
        let b = b"\x1b[m\x1b[?45l\x1b[?1045l";
        first.feed(b);
        second.feed(b);
        let more = without_early_rep(&more);
        first.feed(&more);
        second.feed(&more);
        prop_assert_eq!(state(&first), state(&second));
    }

    /// No bytes and no sizes make it panic, and it stays within its bounds.
    #[test]
    fn arbitrary_bytes_and_sizes(parts in prop::collection::vec((prop_oneof![prop::collection::vec(any::<u8>(), 0..60), piece()], any::<Option<(u8, u8)>>()), 0..40)) {
        let mut t = Term::new(Size::new(20, 5), settings());
        for (bytes, resize) in parts {
            t.feed(&bytes);
            if let Some((c, r)) = resize {
                t.resize(Size::new(u16::from(c), u16::from(r)));
            }
            prop_assert!(t.scrollback_len() <= 40);
            let cursor = t.cursor();
            prop_assert!(cursor.col < t.size().cols && cursor.row < t.size().rows);
            t.check_invariants();
        }
        t.dump();
        t.lines().for_each(|l| { l.text(); l.runs(); });
    }

    /// Reflow keeps all text while there is room for it.
    #[test]
    fn reflow_keeps_the_text(lines in prop::collection::vec("[a-z]{0,40}", 1..6), widths in prop::collection::vec(3u16..50, 1..5)) {
        let mut t = Term::new(Size::new(20, 6), Settings::default());
        let text = lines.join("\r\n");
        t.feed(text.as_bytes());
        for w in widths {
            t.resize(Size::new(w, 6));
            let mut got = vec![String::new()];
            for l in t.lines() {
                if let Some(last) = got.last_mut() {
                    last.push_str(&l.text());
                }
                if !l.wrapped() {
                    got.push(String::new());
                }
            }
            while got.last().is_some_and(String::is_empty) {
                got.pop();
            }
            let mut want: Vec<String> = lines.clone();
            while want.last().is_some_and(String::is_empty) {
                want.pop();
            }
            prop_assert_eq!(got, want);
        }
    }

    /// The scanner's tokens are the stream.
    #[test]
    fn scanner_loses_nothing(bytes in prop_oneof![program(), prop::collection::vec(any::<u8>(), 0..200)], cut in any::<prop::sample::Index>()) {
        let cut = cut.index(bytes.len() + 1);
        let mut s = Scanner::new();
        let mut out = Vec::new();
        let mut take = |_: &Scanner, t: Token<'_>| match t {
            Token::Text(b) | Token::Control { bytes: b, .. } | Token::Part { bytes: b, .. } => out.extend_from_slice(b),
        };
        s.feed(&bytes[..cut], &mut take);
        s.feed(&bytes[cut..], &mut take);
        s.finish(&mut take);
        prop_assert_eq!(out, bytes);
    }
}

/// Output that writes without scrolling, so that a row stays where it is.
fn still_program() -> impl Strategy<Value = Vec<u8>> {
    let step = prop_oneof![
        3 => "[a-z漢é]{1,12}",
        1 => (1u8..9, 1u8..20).prop_map(|(y, x)| format!("\x1b[{y};{x}H")),
        1 => prop::sample::select(vec!["\x1b[K", "\x1b[1K", "\x1b[J", "\x1b[3@", "\x1b[2P", "\x1b[4X", "\x1b[31m", "\x1b#6", "\r", "\t"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(step, 0..30).prop_map(|v| v.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A row never changes after the byte that it names as its last, and that byte is one that
    /// could write to it.
    #[test]
    fn provenance_is_never_early(bytes in still_program()) {
        let mut t = Term::new(Size::new(20, 60), settings());
        // That a row goes on in the next is the next one's doing.
        let look = |l: &Line<'_>| look(l).replace("wrapped ", "");
        let blank: Vec<String> = t.screen().map(|l| look(&l)).collect();
        let mut before = blank;
        let mut changed = vec![None; before.len()];
        for (i, b) in bytes.iter().enumerate() {
            t.feed(&[*b]);
            let now: Vec<String> = t.screen().map(|l| look(&l)).collect();
            for (y, (a, b)) in before.iter().zip(&now).enumerate() {
                if a != b {
                    changed[y] = Some(i as u64);
                }
            }
            before = now;
        }
        for (y, line) in t.screen().enumerate() {
            prop_assert!(changed[y] <= line.written(), "row {} changed at {:?}, says {:?}", y, changed[y], line.written());
            if let Some(w) = line.written() {
                prop_assert!(bytes[w as usize] != 0x1b && bytes[w as usize] != b'[');
            }
        }
    }
}
