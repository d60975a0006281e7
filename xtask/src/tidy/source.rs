//! A Rust source file, with code, comments and tests told apart line by line.

/// One line of a source file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// The code without comments and without the contents of strings.
    pub(crate) code: String,
    /// The contents of strings.
    pub(crate) text: String,
    /// The comment, without what is before it.
    pub(crate) comment: String,
    /// Its width in columns.
    pub(crate) width: usize,
    /// Whether it is part of an item that is compiled for tests only.
    pub(crate) test: bool,
}

impl Line {
    /// Returns whether the line is a comment and nothing else.
    pub(crate) fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && !self.comment.is_empty()
    }
}

/// Splits a file into lines.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines = scan(text);
    mark_tests(&mut lines);
    lines
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    /// Inside this many nested block comments.
    BlockComment(usize),
    Text,
    /// A raw string that ends with a quote and this many `#`.
    Raw(usize),
}

fn scan(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = &chars[at..];
        let begins = |word: &str| word.chars().enumerate().all(|(i, w)| rest.get(i) == Some(&w));
        let (taken, next) = match state {
            State::Code if begins("//") => (2, State::LineComment),
            State::Code if begins("/*") => (2, State::BlockComment(1)),
            State::Code if c == '"' => (1, State::Text),
            State::Code => match raw_string(&chars, at) {
                Some((length, hashes)) => (length, State::Raw(hashes)),
                None => (char_literal(rest).unwrap_or(1), State::Code),
            },
            State::LineComment if c == '\n' => (1, State::Code),
            State::LineComment => (1, state),
            State::BlockComment(depth) if begins("/*") => (2, State::BlockComment(depth + 1)),
            State::BlockComment(1) if begins("*/") => (2, State::Code),
            State::BlockComment(depth) if begins("*/") => (2, State::BlockComment(depth - 1)),
            State::BlockComment(_) => (1, state),
            State::Text if c == '\\' => (2, state),
            State::Text if c == '"' => (1, State::Code),
            State::Raw(hashes) if c == '"' && ends(rest, hashes) => (1 + hashes, State::Code),
            State::Text | State::Raw(_) => (1, state),
        };
        let comment = |s| matches!(s, State::LineComment | State::BlockComment(_));
        // A literal is kept as its quotes only, so that no brace in it counts.
        let code = matches!((state, next), (State::Code, State::Code)) && taken == 1;
        for &c in rest.iter().take(taken) {
            let line = lines.last_mut().expect("there is a first line");
            if c == '\n' {
                lines.push(Line::default());
                continue;
            }
            line.width += 1;
            if comment(state) || comment(next) {
                line.comment.push(c);
            } else if code {
                line.code.push(c);
            } else {
                line.text.push(c);
                if !line.code.ends_with('"') {
                    line.code.push('"');
                }
            }
        }
        state = next;
        at += taken;
    }
    lines
}

/// The length of a raw string's opening at this place, and its number of `#`.
fn raw_string(chars: &[char], at: usize) -> Option<(usize, usize)> {
    let within_name = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] != 'r' || within_name && chars[at - 1] != 'b' {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some((hashes + 2, hashes))
}

/// Whether this quote is followed by as many `#` as end the raw string.
fn ends(rest: &[char], hashes: usize) -> bool {
    rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#')
}

/// The length of a character literal that begins here; a lifetime is none.
fn char_literal(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', _, ..] => rest.iter().skip(3).position(|c| *c == '\'').map(|end| end + 4),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

/// Marks each item behind `#[cfg(test)]`, to its closing brace or semicolon.
fn mark_tests(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        let code = lines[at].code.trim();
        if code.starts_with("#![cfg(test)]") {
            return lines[at..].iter_mut().for_each(|line| line.test = true);
        }
        if !code.starts_with("#[cfg(test)]") && !code.starts_with("#[cfg(all(test") {
            at += 1;
            continue;
        }
        let (mut braces, mut brackets) = (0_i32, 0_i32);
        'item: while at < lines.len() {
            lines[at].test = true;
            let code = std::mem::take(&mut lines[at].code);
            let mut over = false;
            for c in code.chars() {
                match c {
                    '{' => braces += 1,
                    '}' => braces -= 1,
                    '[' | '(' => brackets += 1,
                    ']' | ')' => brackets -= 1,
                    _ => {}
                }
                over = matches!(c, '}' | ';') && braces == 0 && brackets == 0;
                if over {
                    break;
                }
            }
            lines[at].code = code;
            at += 1;
            if over {
                break 'item;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().filter(|l| !l.test).map(|l| l.code).collect()
    }

    #[test]
    fn comments_are_no_code() {
        let all = lines("let a = 1; // one\n/* two /* three */ four\nfive */ let b;");
        assert_eq!(all[0].code, "let a = 1; ");
        assert_eq!(all[0].comment, "// one");
        assert!(!all[0].is_comment());
        assert!(all[1].is_comment());
        assert_eq!(all[2].code, " let b;");
        assert_eq!(all[0].width, 17);
    }

    #[test]
    fn strings_and_characters_hide_what_is_in_them() {
        let text = r####"f("// {", r#"" }"#, '{', '\'', b"\"{", 'a', br"{"); let x: &'a str = y; // z"####;
        let all = lines(text);
        assert_eq!(all[0].comment, "// z");
        assert!(!all[0].code.contains(['{', '}']), "{}", all[0].code);
        assert!(all[0].code.ends_with("let x: &'a str = y; "), "{}", all[0].code);
        assert!(all[0].text.contains("// {") && !all[0].text.contains('z'), "{}", all[0].text);
    }

    #[test]
    fn only_the_item_behind_the_attribute_is_a_test() {
        let text = "a();\n#[cfg(test)]\nmod tests {\n    fn f() { \"}\"; }\n}\nb();\n\
                    #[cfg(test)]\nuse x::{y, z};\nc();\n#[cfg(test)]\nconst N: [u8; 2] = [0; 2];\nd();";
        assert_eq!(code(text), ["a();", "b();", "c();", "d();"]);
        assert_eq!(code("a();\n#![cfg(test)]\nb();"), ["a();"]);
    }
}
