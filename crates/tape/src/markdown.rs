//! The part of Markdown that answers of agents are written in: fenced code, code in lines,
//! headings, lists, quotes and paragraphs. It is read line by line and never fails, so that a text
//! can be written again, in Markdown or HTML, with nothing in it that acts.

/// A block of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block<'a> {
    /// Code between fences, with its language.
    Code {
        /// The first word behind the fence.
        language: &'a str,
        /// Its lines, without the indentation of the fence.
        lines: Vec<&'a str>,
    },
    /// A heading, without its signs.
    Heading {
        /// Its level, from 1 to 6.
        level: usize,
        /// Its text.
        text: &'a str,
    },
    /// An item of a list.
    Item {
        /// Blanks in front of it.
        indent: usize,
        /// What stands in front of the text: `-` or `3.`
        mark: &'a str,
        /// Its text.
        text: &'a str,
    },
    /// A quoted line, without its sign.
    Quote(&'a str),
    /// Any other line. An empty one separates paragraphs.
    Line(&'a str),
}

/// A piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// Code, without its backticks.
    Code(&'a str),
}

/// The blocks of a text.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::opens(line) else {
            found.push(block(line));
            continue;
        };
        let inside = lines.by_ref().take_while(|line| !fence.is_closed_by(line));
        let lines = inside.map(|line| outdented(line, fence.indent)).collect();
        found.push(Block::Code { language: fence.language, lines });
    }
    found
}

/// A fence that opens a block of code.
struct Fence<'a> {
    indent: usize,
    sign: char,
    length: usize,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn opens(line: &'a str) -> Option<Self> {
        let rest = line.trim_start_matches([' ', '\t']);
        let sign = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = rest.trim_start_matches(sign);
        let length = rest.len() - info.len();
        if length < 3 || (sign == '`' && info.contains('`')) {
            return None;
        }
        let language = info.split_whitespace().next().unwrap_or("");
        Some(Self { indent: line.len() - rest.len(), sign, length, language })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim();
        let indent = line.len() - line.trim_start().len();
        let is_outer = indent <= self.indent + 3;
        is_outer && rest.len() >= self.length && rest.chars().all(|c| c == self.sign)
    }
}

/// A line without so many of the blanks in front of it.
fn outdented(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[blanks.min(indent)..]
}

/// The block that one line is.
fn block(line: &str) -> Block<'_> {
    let rest = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - rest.len();
    let text = rest.trim_start_matches('#');
    let level = rest.len() - text.len();
    if (1..=6).contains(&level) && text.starts_with(' ') {
        return Block::Heading { level, text: text.trim().trim_end_matches('#').trim_end() };
    }
    if let Some(quoted) = rest.strip_prefix('>') {
        return Block::Quote(quoted.strip_prefix(' ').unwrap_or(quoted));
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = match rest[digits..].chars().next() {
        Some('.' | ')') if (1..=9).contains(&digits) => digits + 1,
        Some('-' | '*' | '+') if digits == 0 => 1,
        _ => 0,
    };
    match rest[mark..].strip_prefix(' ') {
        Some(text) if mark > 0 && !text.trim().is_empty() && !is_rule(rest) => {
            Block::Item { indent, mark: &rest[..mark], text: text.trim() }
        }
        _ => Block::Line(line.trim_end()),
    }
}

/// Whether a line draws a line across the page.
pub(crate) fn is_rule(line: &str) -> bool {
    ['-', '*', '_'].iter().any(|sign| {
        line.chars().filter(|c| c == sign).count() >= 3 && line.chars().all(|c| c == *sign || c == ' ')
    })
}

/// The pieces of a line: a run of backticks begins code if one of the same length ends it on the
/// line. Other backticks are text.
pub(crate) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut text, mut at) = (0, 0);
    let bytes = line.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|b| **b == b'`').count();
    while at < bytes.len() {
        match bytes[at] {
            // What a backslash stands before means nothing.
            b'\\' => at += 1 + usize::from(bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation)),
            b'`' => {
                let length = run(at);
                let mut end = at + length;
                while end < bytes.len() {
                    match run(end) {
                        0 => end += 1,
                        closing if closing == length => break,
                        other => end += other,
                    }
                }
                if end < bytes.len() {
                    if text < at {
                        found.push(Piece::Text(&line[text..at]));
                    }
                    found.push(Piece::Code(&line[at + length..end]));
                    (text, at) = (end + length, end + length);
                } else {
                    at += length;
                }
            }
            _ => at += 1,
        }
    }
    if text < line.len() {
        found.push(Piece::Text(&line[text..]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart() {
        let text = "# Title #\npara\n- one\n  2) two\n> said\n```rust x\n  fn\n```\n1. a\n   ~~~\n   b\n     c\n   ~~~\n\
                    ***\n#no\n10 a\n```\nopen";
        let item = |indent, mark, text| Block::Item { indent, mark, text };
        let code = |language, lines: &[&'static str]| Block::Code { language, lines: lines.to_vec() };
        let wanted = [
            Block::Heading { level: 1, text: "Title" },
            Block::Line("para"),
            item(0, "-", "one"),
            item(2, "2)", "two"),
            Block::Quote("said"),
            code("rust", &["  fn"]),
            item(0, "1.", "a"),
            code("", &["b", "  c"]),
            Block::Line("***"),
            Block::Line("#no"),
            Block::Line("10 a"),
            code("", &["open"]),
        ];
        assert_eq!(blocks(text), wanted);
    }

    #[test]
    fn code_in_lines_needs_both_ends() {
        let cases: [(&str, &[Piece<'_>]); 7] = [
            ("plain", &[Piece::Text("plain")]),
            ("a `b` c", &[Piece::Text("a "), Piece::Code("b"), Piece::Text(" c")]),
            ("``a ` b``", &[Piece::Code("a ` b")]),
            ("`a", &[Piece::Text("`a")]),
            (r"\`a `b`", &[Piece::Text(r"\`a "), Piece::Code("b")]),
            ("é`ü`", &[Piece::Text("é"), Piece::Code("ü")]),
            ("```a``", &[Piece::Text("```a``")]),
        ];
        for (line, wanted) in cases {
            assert_eq!(pieces(line), wanted, "{line}");
        }
    }
}
