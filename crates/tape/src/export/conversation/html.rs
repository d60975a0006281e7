//! A conversation as one HTML file, with no script and nothing to load. A content policy forbids
//! everything but the page's own style. Text only ever becomes escaped text.

use std::io::Write;

use tapdeck_term::{Theme, is_safe_link, is_unsafe};

use super::super::html::digest;
use super::super::theme_css::theme_css;
use super::{Out, clock, decision, detail, duration, facts, remarks, speaker, title};
use crate::Result;
use crate::conversation::{AskedBack, Conversation, Entry, Exchange, Passage};
use crate::markdown::{Block, Piece, blocks, is_rule, pieces};
use crate::push_fmt::PushFmt;
use crate::turns::RecordedPart;

const STYLE: &str = include_str!("page.css");
/// Lists are shown at most this deep.
const DEEP: usize = 4;

pub(super) fn write<W: Write>(conversation: &Conversation, out: &mut Out<W>) -> Result<()> {
    let theme = |name: &str| theme_css(&Theme::named(name).unwrap_or_default());
    let light = theme("light").trim_end().to_owned();
    let css = format!("{}@media (prefers-color-scheme:light){{{light}}}\n{STYLE}", theme("dark"));
    let title = escaped(&title(conversation));
    out.put(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{css}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>\n",
        digest(&css),
    ))?;
    for (name, value) in facts(conversation) {
        out.put(format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value)))?;
    }
    out.put("</dl>\n</header>\n<main>\n")?;
    for entry in &conversation.entries {
        match entry {
            Entry::Turn(turn) => out.put(turn_html(turn, conversation))?,
            Entry::Question(question) => out.put(asked(question))?,
        }
    }
    out.put("</main>\n</body>\n</html>\n")
}

fn turn_html(turn: &Exchange, conversation: &Conversation) -> String {
    let mut html = String::new();
    let n = turn.number;
    let time = clock(turn.asked, conversation);
    let is_bot = turn.by.as_ref().is_some_and(|by| by.role.as_deref() == Some("bot"));
    html.push_fmt(format_args!(
        "<article id=\"turn-{n}\">\n<section class=\"prompt{}\">\n<h2>{} <a href=\"#turn-{n}\">{n}</a> \
         <time datetime=\"{}Z\">{time}</time></h2>\n",
        if is_bot { " bot" } else { "" },
        escaped(&speaker(turn.by.as_ref())),
        turn.asked.utc().replace(' ', "T"),
    ));
    html.push_str(&text_as_it_is(if turn.prompt.trim().is_empty() { "(not known)" } else { &turn.prompt }));
    html.push_fmt(format_args!(
        "</section>\n<section class=\"answer\">\n<h3>Answer <span>{}</span>",
        duration(turn.took())
    ));
    for remark in remarks(turn) {
        html.push_fmt(format_args!(" <strong>{remark}</strong>"));
    }
    html.push_str("</h3>\n");
    for passage in &turn.answer {
        html.push_str(&match passage {
            Passage::Text { text, markdown: true } => markdown(text),
            Passage::Text { text, .. } => text_as_it_is(text),
            Passage::Tool(run) => tool(run),
            Passage::Question(question) => asked(question),
        });
    }
    html.push_str("</section>\n</article>\n");
    html
}

/// A tool's run. What it returned is folded up.
fn tool(run: &RecordedPart) -> String {
    let name = escaped(run.tool.as_deref().unwrap_or_default());
    let failed = if run.failed { " <strong>failed or denied</strong>" } else { "" };
    let about = run.about.as_deref().map(str::trim_end).unwrap_or_default();
    let mut head = format!("<b>{name}</b>{failed}");
    if !about.is_empty() && !about.contains('\n') {
        head.push_fmt(format_args!(" <code>{}</code>", escaped(about)));
    }
    let mut body = String::new();
    for text in [about].into_iter().filter(|about| about.contains('\n')).chain(run.result.as_deref()) {
        if !text.trim().is_empty() {
            body.push_str(&preformatted(text.trim_end()));
        }
    }
    if body.is_empty() {
        return format!("<p class=\"tool\">{head}</p>\n");
    }
    format!("<details class=\"tool\"><summary>{head}</summary>\n{body}</details>\n")
}

/// A question that the program asked, with its decision.
fn asked(question: &AskedBack) -> String {
    let mut html = format!("<aside>\n<h3>{}</h3>\n", escaped(question.text.trim()));
    let rows = detail(question);
    if !rows.is_empty() {
        html.push_str(&preformatted(&rows.join("\n")));
    }
    let chosen = question.answer.as_ref().and_then(|answer| answer.number);
    if !question.options.is_empty() {
        html.push_str("<ul class=\"options\">\n");
        for option in &question.options {
            let class = if chosen == Some(option.number) { " class=\"chosen\"" } else { "" };
            html.push_fmt(format_args!("<li{class}>{}. {}</li>\n", option.number, escaped(&option.label)));
        }
        html.push_str("</ul>\n");
    }
    html.push_fmt(format_args!(
        "<p class=\"decision\">Decided: {}</p>\n</aside>\n",
        escaped(&decision(question))
    ));
    html
}

/// Text that is not Markdown.
fn text_as_it_is(text: &str) -> String {
    let is_drawn = |line: &str| line.starts_with([' ', '\t']) || line.contains("  ");
    let text = text.trim_end();
    if text.lines().any(is_drawn) {
        return preformatted(text);
    }
    format!("<p>{}</p>\n", escaped(text))
}

fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>\n", escaped(text))
}

/// Markdown of a program, as elements.
fn markdown(text: &str) -> String {
    let mut page = Page::default();
    for block in blocks(text) {
        match block {
            Block::Code { lines, .. } => {
                page.close();
                page.html.push_str(&preformatted(&lines.join("\n")));
            }
            Block::Heading { level, text } => {
                page.close();
                let level = (level + 2).clamp(4, 6);
                page.html.push_fmt(format_args!("<h{level}>{}</h{level}>\n", inline(text)));
            }
            Block::Item { indent, mark, text } => {
                page.open("ul", "</ul>\n");
                let deep = (indent / 2).min(DEEP - 1) + 1;
                let mark = if mark.starts_with(|c: char| c.is_ascii_digit()) { mark } else { "•" };
                page.html.push_fmt(format_args!(
                    "<li class=\"l{deep}\"><span>{mark}</span> {}</li>\n",
                    inline(text)
                ));
            }
            Block::Quote(text) => {
                page.open("blockquote", "</blockquote>\n");
                page.html.push_fmt(format_args!("{}\n", inline(text)));
            }
            Block::Line(line) if line.trim().is_empty() => page.close(),
            Block::Line(line) if is_rule(line.trim()) => {
                page.close();
                page.html.push_str("<hr>\n");
            }
            // A line behind an item goes on with it.
            Block::Line(line) if page.is_in("ul") && line.starts_with(' ') => {
                page.html.truncate(page.html.trim_end().trim_end_matches("</li>").len());
                page.html.push_fmt(format_args!("\n{}</li>\n", inline(line.trim())));
            }
            // A table, or a drawing.
            Block::Line(line) if line.starts_with("    ") || line.trim_start().starts_with('|') => {
                page.open("pre", "</pre>\n");
                page.html.push_fmt(format_args!("{}\n", escaped(line)));
            }
            Block::Line(line) => {
                page.open("p", "</p>\n");
                page.html.push_fmt(format_args!("{}\n", inline(line.trim())));
            }
        }
    }
    page.close();
    page.html
}

/// Elements in the making.
#[derive(Default)]
struct Page {
    html: String,
    /// The element that is open, and what closes it.
    open: Option<(&'static str, &'static str)>,
}

impl Page {
    fn is_in(&self, element: &str) -> bool {
        self.open.is_some_and(|(open, _)| open == element)
    }

    fn open(&mut self, element: &'static str, end: &'static str) {
        if !self.is_in(element) {
            self.close();
            self.html.push_fmt(format_args!("<{element}>"));
            self.open = Some((element, end));
        }
    }

    fn close(&mut self) {
        if let Some((_, end)) = self.open.take() {
            self.html.truncate(self.html.trim_end_matches('\n').len());
            self.html.push_str(end);
        }
    }
}

/// A line of Markdown as elements: code, bold text and links to the web.
fn inline(line: &str) -> String {
    let mut html = String::with_capacity(line.len());
    for piece in pieces(line) {
        match piece {
            Piece::Code(code) => html.push_fmt(format_args!("<code>{}</code>", escaped(code.trim()))),
            Piece::Text(text) => bold(text, &mut html),
        }
    }
    html
}

/// Text in which two stars begin and end what is bold.
fn bold(text: &str, html: &mut String) {
    let parts: Vec<&str> = text.split("**").collect();
    for (n, part) in parts.iter().enumerate() {
        let is_bold = n % 2 == 1 && n + 1 < parts.len();
        match (is_bold, n % 2 == 1) {
            (true, _) => {
                html.push_str("<b>");
                links(part, html);
                html.push_str("</b>");
            }
            // Stars without a partner.
            (false, true) => {
                html.push_str("**");
                links(part, html);
            }
            (false, false) => links(part, html),
        }
    }
}

/// Text with links: `[text](address)`.
fn links(mut text: &str, html: &mut String) {
    while let Some((before, label, uri, behind)) = next_link(text) {
        html.push_str(&escaped(&unescaped(before)));
        html.push_fmt(format_args!(
            "<a href=\"{}\" rel=\"noreferrer noopener\">{}</a>",
            escaped(uri),
            escaped(&unescaped(label))
        ));
        text = behind;
    }
    html.push_str(&escaped(&unescaped(text)));
}

/// The first link to the web in a text: what is before it, its label, its address, what is behind.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    text.match_indices("](").find_map(|(at, _)| {
        let start = text[..at].rfind('[')?;
        let (uri, behind) = text[at + 2..].split_once(')')?;
        is_safe_link(uri).then_some((&text[..start], &text[start + 1..at], uri, behind))
    })
}

/// Text without the backslashes that keep signs from having a meaning.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(next)) if next.is_ascii_punctuation() => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

/// Text in which nothing acts. Ends of lines and tabs stay.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '\n' | '\t' => html.push(c),
            c if is_unsafe(c) => html.push(char::REPLACEMENT_CHARACTER),
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_elements_that_cannot_act() {
        let cases = [
            ("a **b** `c<` <i>", "<p>a <b>b</b> <code>c&lt;</code> &lt;i&gt;</p>\n"),
            ("2 ** 3", "<p>2 ** 3</p>\n"),
            (
                "- a\n  - b\n    more\n1. c",
                "<ul><li class=\"l1\"><span>•</span> a</li>\n\
              <li class=\"l2\"><span>•</span> b\nmore</li>\n<li class=\"l1\"><span>1.</span> c</li></ul>\n",
            ),
            ("# A\ntext\n\n> q", "<h4>A</h4>\n<p>text</p>\n<blockquote>q</blockquote>\n"),
            ("```rust\nfn a() {}\n```", "<pre>fn a() {}</pre>\n"),
            ("```\n</pre><script>", "<pre>&lt;/pre&gt;&lt;script&gt;</pre>\n"),
            ("[x](javascript:a)", "<p>[x](javascript:a)</p>\n"),
            (
                "see [x](https://e.org/?a&b).",
                "<p>see <a href=\"https://e.org/?a&amp;b\" rel=\"noreferrer noopener\">x</a>.</p>\n",
            ),
            ("| a | b |\n|---|---|", "<pre>| a | b |\n|---|---|</pre>\n"),
            ("a\u{2028}\u{202e}\u{1b}[2J", "<p>a\u{fffd}\u{fffd}\u{fffd}[2J</p>\n"),
        ];
        for (text, wanted) in cases {
            assert_eq!(markdown(text), wanted, "{text}");
        }
    }
}
