//! A conversation as Markdown.

use std::borrow::Cow;
use std::io::Write;

use tapdeck_term::{is_safe_link, printable};

use super::super::text::{fence_for, longest_run};
use super::{Out, clock, decision, detail, duration, facts, remarks, speaker, title};
use crate::Result;
use crate::conversation::{AskedBack, Conversation, Entry, Exchange, Passage};
use crate::markdown::{Block, Piece, blocks, is_rule, pieces};
use crate::turns::RecordedPart;

/// Lines of a tool's result that are written.
const RESULT: usize = 30;
/// Headings of answers are at least this many levels below the title.
const BELOW: usize = 3;

pub(super) fn write<W: Write>(conversation: &Conversation, out: &mut Out<W>) -> Result<()> {
    out.put(format!("# {}\n\n", escaped(&title(conversation))))?;
    for (name, value) in facts(conversation) {
        out.put(format!("- {name}: {}\n", plain_or_code(&value)))?;
    }
    for entry in &conversation.entries {
        match entry {
            Entry::Turn(turn) => write_turn(turn, conversation, out)?,
            Entry::Question(question) => {
                let at = clock(question.asked, conversation);
                out.put(format!("\n## Asked outside an answer, {at}\n\n{}", asked(question)))?;
            }
        }
    }
    Ok(())
}

fn write_turn<W: Write>(turn: &Exchange, conversation: &Conversation, out: &mut Out<W>) -> Result<()> {
    let by = escaped(&speaker(turn.by.as_ref()));
    out.put(format!("\n## {}. {by}, {}\n\n", turn.number, clock(turn.asked, conversation)))?;
    let prompt = if turn.prompt.trim().is_empty() {
        fenced(&["(not known)"], "text")
    } else {
        text_as_it_is(&turn.prompt)
    };
    for line in prompt.lines() {
        out.put(format!("> {line}").trim_end())?;
        out.put("\n")?;
    }
    let mut remarks: Vec<String> = remarks(turn).into_iter().map(str::to_owned).collect();
    remarks.insert(0, duration(turn.took()));
    out.put(format!("\n**Answer** ({})\n", remarks.join(", ")))?;
    for passage in &turn.answer {
        out.put("\n")?;
        out.put(match passage {
            Passage::Text { text, markdown: true } => markdown(text),
            Passage::Text { text, .. } => text_as_it_is(text),
            Passage::Tool(run) => tool(run),
            Passage::Question(question) => asked(question),
        })?;
    }
    Ok(())
}

/// A tool's run.
fn tool(run: &RecordedPart) -> String {
    let failed = if run.failed { ", failed or denied" } else { "" };
    let mut text = format!("**Tool: {}**{failed}", escaped(run.tool.as_deref().unwrap_or_default()));
    match run.about.as_deref().map(str::trim_end).unwrap_or_default() {
        "" => text.push('\n'),
        about if about.contains('\n') => {
            text.push_str("\n\n");
            text.push_str(&fenced(&about.lines().collect::<Vec<_>>(), "text"));
        }
        about => text.push_str(&format!(" {}\n", code(about))),
    }
    let result: Vec<&str> = run.result.as_deref().unwrap_or_default().trim_end().lines().collect();
    if !result.is_empty() {
        text.push('\n');
        text.push_str(&fenced(&result[..result.len().min(RESULT)], "text"));
        if result.len() > RESULT {
            text.push_str(&format!("\n({} more lines)\n", result.len() - RESULT));
        }
    }
    text
}

/// A question that the program asked, with its decision.
fn asked(question: &AskedBack) -> String {
    let mut text = format!("**Asked:** {}\n\n", escaped(question.text.trim()));
    let rows = detail(question);
    if !rows.is_empty() {
        text.push_str(&fenced(&rows, "text"));
        text.push('\n');
    }
    for option in &question.options {
        text.push_str(&format!("{}. {}\n", option.number, escaped(&option.label)));
    }
    if !question.options.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("**Decided:** {}\n", escaped(&decision(question))));
    text
}

/// Text that is not Markdown: as it is where Markdown would show it so, otherwise between fences.
fn text_as_it_is(text: &str) -> String {
    let text = text.trim_end();
    if is_plain(text) {
        return format!("{text}\n");
    }
    fenced(&text.lines().collect::<Vec<_>>(), "text")
}

/// Whether Markdown shows a text exactly as it stands there.
fn is_plain(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let one_by_one = lines.windows(2).all(|two| two[0].is_empty() || two[1].is_empty());
    one_by_one && lines.iter().all(|line| is_plain_line(line))
}

fn is_plain_line(line: &str) -> bool {
    let is_joined = |at: usize| {
        let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        !alone(line[..at].chars().next_back()) && !alone(line[at + 1..].chars().next())
    };
    let is_special = |(at, c): (usize, char)| match c {
        '_' => !is_joined(at),
        c => "`*[]<>&\\$|~^".contains(c),
    };
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < line.len() && digits.starts_with(['.', ')']);
    line.trim() == line
        && !line.contains("  ")
        && !line.starts_with(['#', '-', '+', '=', ':'])
        && !is_numbered
        && printable(line) == line
        && !line.char_indices().any(is_special)
}

/// Text within a line that Markdown shows as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A value on a line of its own: as it is, or as code.
fn plain_or_code(value: &str) -> String {
    if is_plain_line(value) { value.to_owned() } else { code(value) }
}

/// Code in a line.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, b'`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{}{pad}{ticks}", printable(text))
}

/// A block of code that no line of it can close.
fn fenced(lines: &[&str], language: &str) -> String {
    let fence = fence_for(lines.iter().map(|line| Cow::from(*line)));
    let mut text = format!("{fence}{language}\n");
    for line in lines {
        // Tabs are part of code.
        text.extend(line.split_inclusive('\t').map(|piece| match piece.strip_suffix('\t') {
            Some(piece) => printable(piece) + "\t",
            None => printable(piece),
        }));
        text.push('\n');
    }
    text + &fence + "\n"
}

/// Markdown of a program, written again: its blocks, without markup that acts.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let blank = |out: &mut String| {
        if !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
    };
    let mut behind_code = false;
    for block in blocks(text) {
        if std::mem::take(&mut behind_code) {
            blank(&mut out);
        }
        match block {
            Block::Code { language, lines } => {
                blank(&mut out);
                let known = |c: char| c.is_ascii_alphanumeric() || "+-#_.".contains(c);
                let language = if language.chars().all(known) { language } else { "" };
                out.push_str(&fenced(&lines, language));
                behind_code = true;
            }
            Block::Heading { level, text } => {
                out.push_str(&format!("{} {}\n", "#".repeat((level + BELOW).min(6)), inline(text)));
            }
            Block::Item { indent, mark, text } => {
                out.push_str(&format!("{}{mark} {}\n", " ".repeat(indent.min(12)), inline(text)));
            }
            Block::Quote(text) => {
                let escape = if text.trim_start().starts_with(['#', '=', '-']) { "\\" } else { "" };
                out.push_str(&format!("> {escape}{}\n", inline(text.trim_start())));
            }
            // Under a paragraph, these would make a heading of it.
            Block::Line(line) if is_rule(line.trim()) => out.push_str("***\n"),
            Block::Line(line) if is_underline(line.trim()) => out.push_str(&format!("\\{}\n", line.trim())),
            Block::Line("") if out.is_empty() || out.ends_with("\n\n") => {}
            Block::Line(line) => {
                out.push_str(&inline(line));
                out.push('\n');
            }
        }
    }
    out
}

fn is_underline(line: &str) -> bool {
    ['=', '-'].iter().any(|sign| !line.is_empty() && line.chars().all(|c| c == *sign))
}

/// A line of Markdown without HTML, pictures and links that could act. Each backtick belongs to
/// code that ends on this line, or is escaped, so that a reader of Markdown sees the same code.
fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for piece in pieces(line) {
        match piece {
            Piece::Code(text) => out.push_str(&code(text)),
            Piece::Text(text) => text_without_markup(text, &mut out),
        }
    }
    out
}

fn text_without_markup(text: &str, out: &mut String) {
    let text = printable(&text.replace('\t', "    "));
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '<' => out.push_str("&lt;"),
            '`' => out.push_str("\\`"),
            '\\' => match chars.next_if(|(_, next)| next.is_ascii_punctuation()) {
                Some((_, '<')) => out.push_str("&lt;"),
                Some((_, next)) => out.extend(['\\', next]),
                // At the end of a piece it could escape the code behind it.
                None => out.push_str("\\\\"),
            },
            '!' if rest.starts_with('[') => out.push_str("\\!"),
            ']' if rest.starts_with(':') => out.push_str("\\]"),
            ']' if rest.starts_with('(') && !leads_to_web(&rest[1..]) => out.push_str("\\]"),
            c => out.push(c),
        }
    }
}

/// Whether the target of a link is one that may be followed, or a path.
fn leads_to_web(target: &str) -> bool {
    let target = target.trim_start();
    let Some(end) = target.find([')', ' ']) else { return false };
    let uri = &target[..end];
    is_safe_link(uri) || (!uri.is_empty() && !uri.contains([':', '&', '\\', '<', '%']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_their_markdown_and_lose_what_acts() {
        let cases = [
            ("The capital is **Paris**.", "The capital is **Paris**.\n"),
            ("# Big", "#### Big\n"),
            ("Big\n===", "Big\n\\===\n"),
            ("Big\n---", "Big\n***\n"),
            ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>\n"),
            ("`<b>` and `", "`<b>` and \\`\n"),
            ("`\n` <script> `", "\\`\n` <script> `\n"),
            ("![x](http://t/p.png)", "\\![x](http://t/p.png)\n"),
            ("[x](javascript:alert)", "[x\\](javascript:alert)\n"),
            ("[x](java&#115;cript:a)", "[x\\](java&#115;cript:a)\n"),
            ("[x](https://e.org/a) [y](src/a.rs)", "[x](https://e.org/a) [y](src/a.rs)\n"),
            ("[x]: javascript:a", "[x\\]: javascript:a\n"),
            ("```\na\n```\n\n\nb", "```\na\n```\n\nb\n"),
            ("say\n```rust\nfn a() {}", "say\n\n```rust\nfn a() {}\n```\n"),
            ("````\n```\n````\nend", "````\n```\n````\n\nend\n"),
            ("- a\n  ```\n<script>\n  ```", "- a\n\n```\n<script>\n```\n"),
            ("a\u{202e}b", "a\u{fffd}b\n"),
            (r"\<b>", "&lt;b>\n"),
        ];
        for (text, wanted) in cases {
            assert_eq!(markdown(text), wanted, "{text}");
        }
    }

    #[test]
    fn text_keeps_its_shape() {
        let cases = [
            ("What is the capital of France?", "What is the capital of France?\n"),
            ("one\n\ntwo", "one\n\ntwo\n"),
            ("one\ntwo", "```text\none\ntwo\n```\n"),
            ("use `a`", "```text\nuse `a`\n```\n"),
            ("- a", "```text\n- a\n```\n"),
            ("1. a", "```text\n1. a\n```\n"),
            ("a_b", "a_b\n"),
            ("_b_", "```text\n_b_\n```\n"),
            ("```\n<b>", "````text\n```\n<b>\n````\n"),
            ("a\u{2028}b", "```text\na\u{fffd}b\n```\n"),
        ];
        for (text, wanted) in cases {
            assert_eq!(text_as_it_is(text), wanted, "{text}");
        }
    }
}
