//! The tracer: the same screen as the model's, every character at its place in the stream, nothing
//! lost unseen, and no difference in which pieces the stream comes.

use proptest::prelude::*;
use tapdeck_term::{Glyph, Kind, Settings, Size, Term, Tracer, Witness};

/// Everything that was told.
#[derive(Debug, Default, PartialEq)]
struct Told {
    lines: Vec<(String, Vec<Glyph>)>,
    payloads: Vec<(Kind, Vec<u8>, u64)>,
    asked: Option<String>,
}

impl Witness for Told {
    fn cares(&mut self, text: &str) -> bool {
        self.asked = Some(text.to_owned());
        true
    }
    fn line(&mut self, text: &str, glyphs: &[Glyph]) {
        if let Some(asked) = self.asked.take() {
            assert_eq!(asked, text, "what was asked about is what is told");
        }
        assert_eq!(text.chars().count(), glyphs.len());
        self.lines.push((text.to_owned(), glyphs.to_vec()));
    }
    fn payload(&mut self, kind: Kind, data: &[u8], at: u64) {
        self.payloads.push((kind, data.to_vec(), at));
    }
    fn unseen(&mut self, _: Kind, _: u64) {}
}

fn trace(bytes: &[u8], size: Size, step: usize) -> Told {
    let mut told = Told::default();
    let mut tracer = Tracer::new(size);
    bytes.chunks(step).for_each(|b| tracer.feed(b, &mut told));
    tracer.finish(&mut told);
    told
}

fn lines(text: &str, cols: u16, rows: u16) -> Vec<String> {
    trace(text.as_bytes(), Size::new(cols, rows), 1000).lines.into_iter().map(|l| l.0).collect()
}

#[test]
fn lines_are_told_when_they_go() {
    assert_eq!(lines("one\r\ntwo\r\nthree\r\nfour", 20, 2), ["one", "two", "three", "four"]);
    assert_eq!(lines("old\rnew", 20, 2), ["old", "new"]);
    assert_eq!(lines("old\x1b[2Knew", 20, 2), ["old", "   new"]);
    assert_eq!(lines("abcdefgh", 5, 4), ["abcdefgh"], "wrapped");
    assert_eq!(
        lines("abcdefghijklmnopqrstuvwxyz\r\n", 5, 2),
        ["abcdefghijklmnopqrstuvwxyz"],
        "wrapped off the top"
    );
    assert_eq!(lines("main\x1b[?1049halt\x1b[?1049lmore", 20, 2), ["main", "    alt", "mainmore"]);
    assert_eq!(lines("ab\x1b[1;4Hd\x1b[1;3Hc", 20, 2), ["abcd"], "in any order");
    assert_eq!(lines("x\x1b[1;31my\x1b[0mz", 20, 2), ["xyz"], "colours are no matter");
    assert_eq!(lines("same\r\x1b[K", 20, 2), ["same"]);
    assert_eq!(lines("\x1b[?7labcdefgh", 5, 2), ["abcde", "abcdefgh", "abcdh"], "cut off, but sent");
}

#[test]
fn payloads_have_their_place() {
    let text = "a\x1b]0;title\x07b\x1b]8;;uri\x1b\\c\x1bPq#1\x1b\\\x1b]2;cut\x18\x1b]9;off\x1b[m\x1b]1;open";
    for step in [1, 3, 1000] {
        let told = trace(text.as_bytes(), Size::default(), step);
        let texts: Vec<&[u8]> = told.payloads.iter().map(|p| &*p.1).collect();
        assert_eq!(texts, [&b"0;title"[..], b"8;;uri", b"#1", b"2;cut", b"9;off", b"1;open"]);
        for (_, data, at) in &told.payloads {
            assert_eq!(&text.as_bytes()[*at as usize..][..data.len()], data);
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => "[a-z é漢😀]{1,40}",
        1 => "(e\u{301}|👩\u{200d}👩|🇩🇪|x\u{fe0f}){1,3}",
        3 => "[\r\n\t\x08]{1,3}",
        3 => "\x1b\\[[0-9]{0,2};?[0-9]{0,2}[A-HJKLMPSTX@dGfb]",
        2 => "\x1b\\[[0-9]{1,2}m",
        1 => "\x1b\\[\\?(1049|47|7|69|6|3|2004)[hl]",
        1 => "\x1b\\[(4[hl]|[1-9];[1-9]r|[1-9]{1,2};[1-9]{1,2}s|!p|[1-9];[1-9];[1-9];[1-9](;[1-9];[1-9];[1-9];1)?\\$[vxz{rt])",
        1 => "\x1b([78DEMc69]|#[3568]|\\(0|\\(B)",
        1 => "\x1b\\[[0-2]\"q|\x1b\\[\\?[0-2][JK]",
        1 => "\x1b\\][0-9]{1,2};[a-z;=]{0,10}(\x07|\x1b\\\\|\x18)",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_split_tells_the_same(
        text in prop::collection::vec(piece(), 0..40),
        cols in 1u16..60,
        rows in 1u16..8,
        step in 1usize..30,
    ) {
        let bytes = text.concat().into_bytes();
        let size = Size::new(cols, rows);
        let whole = trace(&bytes, size, 1 << 20);
        let split = trace(&bytes, size, step);
        prop_assert_eq!(&split.lines, &whole.lines);
        prop_assert_eq!(&split.payloads, &whole.payloads);
        for (text, glyphs) in &whole.lines {
            prop_assert_eq!(text.chars().count(), glyphs.len());
            for g in glyphs.iter().filter(|g| g.len > 0) {
                let there = &bytes[g.at as usize..][..usize::from(g.len)];
                // Line drawing shows another character than was sent, and half a wide one leaves a
                // space.
                if let Ok(there) = std::str::from_utf8(there) {
                    prop_assert!(there.chars().count() == 1, "{there:?} for {:?}", g.c);
                }
            }
        }
    }

    /// What the model shows at the end is what the tracer told last of those rows.
    #[test]
    fn the_screen_is_the_models(
        text in prop::collection::vec(piece(), 0..30),
        cols in 2u16..40,
        rows in 1u16..6,
    ) {
        let bytes = text.concat().into_bytes();
        let size = Size::new(cols, rows);
        let mut term = Term::new(size, Settings::default().replies(false));
        term.feed(&bytes);
        let told = trace(&bytes, size, 1 << 20);
        let mut line = String::new();
        for row in term.screen() {
            let wrapped = row.wrapped();
            // Spaces apart: one is left where a wide character did not fit.
            row.each(|text, _, _| line.extend(text.chars().next().filter(|c| *c != ' ')));
            if wrapped {
                continue;
            }
            let shown = std::mem::take(&mut line);
            // What DECALN draws was never sent, and the head of the first line may have scrolled
            // away.
            if !shown.is_empty() && term.scrollback_len() == 0 && !shown.contains('E') {
                // Erasing makes no new text, so what is left of a line is not told again.
                let holds = |line: &str| {
                    let mut there = line.chars();
                    shown.chars().all(|c| there.any(|t| t == c))
                };
                prop_assert!(told.lines.iter().any(|l| holds(&l.0)), "{:?}", shown);
            }
        }
    }
}
