//! Unicode's own test data: where clusters end, and how wide emoji are.

use super::{Joiner, Props, char_width, text_width};

fn code(hex: &str) -> char {
    u32::from_str_radix(hex, 16).ok().and_then(char::from_u32).expect("a code point")
}

fn cases(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

#[test]
fn clusters_end_where_unicode_says() {
    let props = Props::new();
    let mut failed = Vec::new();
    for case in cases(include_str!("../../tests/data/GraphemeBreakTest.txt")) {
        let mut joiner = Joiner::NONE;
        let mut signs = case.split(' ');
        let mut first = true;
        while let (Some(sign), Some(cp)) = (signs.next(), signs.next()) {
            let c = code(cp);
            let joins = joiner.push(props.of(c));
            // Controls are carried out, not written, and end the cluster. CR LF is two of them to a
            // terminal.
            if c.is_control() || c == '\u{200b}' {
                joiner = Joiner::NONE;
                continue;
            }
            if !first && joins != (sign == "×") {
                failed.push(case);
            }
            first = false;
        }
    }
    assert!(failed.is_empty(), "{} cases: {failed:#?}", failed.len());
}

#[test]
fn every_emoji_is_two_columns() {
    let mut failed = Vec::new();
    for case in cases(include_str!("../../tests/data/emoji-test.txt")) {
        let text: String = case.split(' ').map(code).collect();
        if text_width(&text) != 2 {
            failed.push((case, text.clone(), text_width(&text)));
        }
    }
    assert!(failed.is_empty(), "{} cases: {failed:?}", failed.len());
}

#[test]
fn variation_selectors_choose_the_width() {
    for case in cases(include_str!("../../tests/data/emoji-variation-sequences.txt")) {
        let c = code(case);
        assert_eq!(text_width(&format!("{c}\u{fe0f}")), 2, "{case} as emoji");
    }
}

#[test]
fn widths_are_those_of_the_crate() {
    use unicode_width::UnicodeWidthChar as _;
    for c in '\u{a0}'..=char::MAX {
        if c != '\u{ad}' {
            assert_eq!(char_width(c), c.width().unwrap_or(0).min(2), "U+{:04X}", c as u32);
        }
    }
}
