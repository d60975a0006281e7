//! Tells an answer as it grows. The protocol has no way to take anything back, so only what will
//! not change is told: the parts that a program itself writes down, or else rows that have stood on
//! the screen for a while, with others below them.

use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_core::turns::squeezed;
use tapdeck_proto::acp::{Chunk, ToolCall, ToolContent, ToolKind, ToolStatus, Update};
use tapdeck_proto::bus::Part;

/// How long a row must have stood as it is, and all rows above it.
const STOOD: Duration = Duration::from_millis(1200);
/// The longest text of one message, in bytes: clients read messages of 64 KiB at least.
const CHUNK: usize = 12 << 10;
/// What is told of a tool's result, in bytes.
const RESULT: usize = 12 << 10;
/// The longest title of a tool, in characters.
const TITLE: usize = 200;

/// What has been told of an answer.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// The number of the turn, which the names of its tools begin with.
    turn: String,
    /// The first part that has not been told.
    next: usize,
    /// The tools that have not returned.
    open: Vec<usize>,
    /// The text that has been told.
    told: String,
    /// The rows that stood on the screen last, each with the time since when it has.
    rows: Vec<(String, Time)>,
    /// How many of them have been told.
    rows_told: usize,
}

impl Telling {
    /// Begins with a turn: `SESSION:NUMBER`.
    pub(super) fn new(turn_id: &str) -> Self {
        let turn = turn_id.rsplit(':').next().unwrap_or_default().to_owned();
        Self { turn, ..Self::default() }
    }

    /// Returns the first part that is of interest.
    pub(super) fn from(&self) -> usize {
        self.open.first().copied().unwrap_or(self.next)
    }

    /// Takes the parts from [`Telling::from`] on.
    pub(super) fn parts(&mut self, parts: Vec<Part>) -> Vec<Update> {
        let mut updates = Vec::new();
        for (at, part) in (self.from()..).zip(parts) {
            let is_new = at >= self.next;
            match part {
                Part::Text { text } if is_new => self.say(&text, &mut updates),
                Part::Tool { tool, about, result, failed } => {
                    let returned = result.is_some();
                    let status = match (returned, failed) {
                        (false, _) => ToolStatus::InProgress,
                        (true, false) => ToolStatus::Completed,
                        (true, true) => ToolStatus::Failed,
                    };
                    let content = result.filter(|text| !text.trim().is_empty());
                    let content = content.map(|text| vec![ToolContent::text(fenced(cut(&text, RESULT)))]);
                    let tool_call_id = self.tool_id(at);
                    if is_new {
                        let title = Some(title(&tool, &about));
                        let (kind, status) = (Some(kind_of(&tool)), Some(status));
                        updates.push(Update::ToolCall(ToolCall {
                            tool_call_id,
                            title,
                            kind,
                            status,
                            content,
                        }));
                        if !returned {
                            self.open.push(at);
                        }
                    } else if returned && self.open.contains(&at) {
                        self.open.retain(|open| *open != at);
                        let status = Some(status);
                        let call = ToolCall { tool_call_id, status, content, ..ToolCall::default() };
                        updates.push(Update::ToolCallUpdate(call));
                    }
                }
                Part::Text { .. } => {}
            }
            self.next = self.next.max(at + 1);
        }
        updates
    }

    /// Takes the answer as the screen shows it now.
    pub(super) fn screen(&mut self, text: &str, now: Time) -> Vec<Update> {
        let mut same = true;
        let mut rows: Vec<(String, Time)> = Vec::new();
        for (at, row) in text.lines().enumerate() {
            let old = self.rows.get(at).filter(|(old, _)| same && old == row);
            same &= old.is_some();
            rows.push((row.to_owned(), old.map_or(now, |(_, since)| *since)));
        }
        self.rows = rows;
        // Something else stands where told rows stood: the rest is told at the end.
        let shown = self.rows.iter().take(self.rows_told).map(|(row, _)| row.as_str());
        if !squeezed(&shown.collect::<String>()).eq(&squeezed(&self.told)) {
            return Vec::new();
        }
        let last = self.rows.iter().rposition(|(row, _)| !row.trim().is_empty()).unwrap_or(0);
        let stood = self.rows[..last].iter().take_while(|(_, since)| now.since(*since) >= STOOD).count();
        let mut updates = Vec::new();
        if stood > self.rows_told {
            let rows: Vec<&str> = self.rows[self.rows_told..stood].iter().map(|(r, _)| r.as_str()).collect();
            let text = rows.join("\n") + "\n";
            self.rows_told = stood;
            self.told.push_str(&text);
            chunks(&text, &mut updates);
        }
        updates
    }

    /// Takes the answer as it is in the end, read off the screen. Tells the rows below the last one
    /// that has been told.
    pub(super) fn rest(&mut self, text: &str) -> Vec<Update> {
        let told = letters(&self.told);
        let rows: Vec<&str> = text.lines().collect();
        let is_told =
            |row: &&str| Some(letters(row)).is_some_and(|row| !row.is_empty() && told.contains(&row));
        let from = if told.is_empty() { 0 } else { rows.iter().rposition(is_told).map_or(0, |at| at + 1) };
        let rest = rows[from..].join("\n");
        let mut updates = Vec::new();
        if self.rows_told > 0 {
            // What was told ends with a line end.
            self.told.push_str(&rest);
            chunks(&rest, &mut updates);
        } else {
            self.say(rest.trim_matches('\n'), &mut updates);
        }
        updates
    }

    /// Ends the tools of which no result came: they have failed if the answer was broken off.
    pub(super) fn end(&mut self, interrupted: bool) -> Vec<Update> {
        let status = Some(if interrupted { ToolStatus::Failed } else { ToolStatus::Completed });
        let open = std::mem::take(&mut self.open);
        let ended = |at: usize| ToolCall { tool_call_id: self.tool_id(at), status, ..ToolCall::default() };
        open.into_iter().map(|at| Update::ToolCallUpdate(ended(at))).collect()
    }

    fn tool_id(&self, at: usize) -> String {
        format!("tool-{}.{at}", self.turn)
    }

    /// Tells one more paragraph.
    fn say(&mut self, text: &str, updates: &mut Vec<Update>) {
        if text.trim().is_empty() {
            return;
        }
        let gap = if self.told.is_empty() { "" } else { "\n\n" };
        let text = format!("{gap}{text}");
        chunks(&text, updates);
        self.told.push_str(&text);
    }
}

/// What is the same of a text with the marks that a program draws around it and without.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Tells a text in pieces that every client can read.
pub(super) fn chunks(text: &str, updates: &mut Vec<Update>) {
    let text = tapdeck_term::printable_lines(text);
    let mut text = text.as_str();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(CHUNK));
        updates.push(Update::AgentMessageChunk(Chunk::text(piece)));
        text = rest;
    }
}

/// Returns the beginning of a text, and says what is left out.
fn cut(text: &str, max: usize) -> String {
    let kept = &text[..text.floor_char_boundary(max)];
    let left = text.len() - kept.len();
    let kept = tapdeck_term::printable_lines(kept);
    if left == 0 { kept } else { format!("{kept}\n[{left} bytes left out]") }
}

/// Returns a program's output as a block of code: clients take texts for Markdown.
pub(super) fn fenced(text: String) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn title(tool: &str, about: &str) -> String {
    let title = match about.lines().next().map(str::trim) {
        Some(about) if !about.is_empty() => format!("{tool}: {about}"),
        _ => tool.to_owned(),
    };
    let title = tapdeck_term::printable(&title);
    match title.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &title[..at]),
        None => title,
    }
}

/// Returns the kind of a tool by its name, for the picture that a client shows.
fn kind_of(tool: &str) -> ToolKind {
    let name = tool.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["bash", "shell", "exec", "command"]) {
        ToolKind::Execute
    } else if has(&["fetch", "websearch", "web_search", "browse"]) {
        ToolKind::Fetch
    } else if has(&["edit", "write", "patch", "replace"]) {
        ToolKind::Edit
    } else if has(&["grep", "glob", "search", "find"]) || name == "ls" {
        ToolKind::Search
    } else if has(&["read", "view"]) {
        ToolKind::Read
    } else {
        ToolKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// What the updates say, tools in brackets.
    fn said(updates: Vec<Update>) -> String {
        let said = |update| match update {
            Update::AgentMessageChunk(chunk) => serde_json::to_value(chunk).expect("JSON")["content"]["text"]
                .as_str()
                .expect("text")
                .to_owned(),
            Update::ToolCall(call) => {
                format!("[{} {:?}]", call.title.expect("a title"), call.status.expect("one"))
            }
            Update::ToolCallUpdate(call) => {
                format!("[{} {:?}]", call.tool_call_id, call.status.expect("one"))
            }
            Update::UserMessageChunk(_) => panic!("that is the user"),
        };
        updates.into_iter().map(said).collect()
    }

    fn text(text: &str) -> Part {
        Part::Text { text: text.into() }
    }

    fn tool(result: Option<&str>, failed: bool) -> Part {
        let result = result.map(str::to_owned);
        Part::Tool { tool: "Bash".into(), about: "ls\n-l".into(), result, failed }
    }

    #[test]
    fn parts_are_told_once_and_tools_again_when_they_return() {
        let mut telling = Telling::new("s:7");
        assert_eq!(said(telling.parts(vec![text("one"), tool(None, false)])), "one[Bash: ls InProgress]");
        assert_eq!(telling.from(), 1);
        assert_eq!(said(telling.parts(vec![tool(None, false), text("two")])), "\n\ntwo");
        assert_eq!(said(telling.parts(vec![tool(Some("x"), true), text("two")])), "[tool-7.1 Failed]");
        assert_eq!(telling.from(), 3);
        assert_eq!(said(telling.parts(vec![tool(Some(""), false)])), "[Bash: ls Completed]");
        assert_eq!(said(telling.parts(vec![tool(None, false)])), "[Bash: ls InProgress]");
        assert_eq!(said(telling.end(false)), "[tool-7.4 Completed]");
        assert_eq!(said(telling.end(true)), "");
    }

    #[test]
    fn rows_are_told_when_they_have_stood_and_the_rest_in_the_end() {
        let mut telling = Telling::new("s:1");
        assert_eq!(said(telling.screen("one\n⠋ busy", at(0))), "");
        assert_eq!(said(telling.screen("one\n⠙ busy", at(1000))), "");
        assert_eq!(said(telling.screen("one\n⠹ busy", at(1300))), "one\n");
        assert_eq!(said(telling.screen("one\ntwo\n⠸ busy", at(1400))), "");
        assert_eq!(said(telling.screen("one\ntwo\n⠸ busy", at(2700))), "two\n");
        // Nothing can be taken back, so nothing is told while other rows stand there.
        assert_eq!(said(telling.screen("new\ntwo\nthree", at(2800))), "");
        assert_eq!(said(telling.screen("new\ntwo\nthree\nfour", at(9000))), "");
        assert_eq!(said(telling.rest("one\ntwo\nthree\nfour")), "three\nfour");
    }

    #[test]
    fn an_answer_that_was_not_told_is_told_whole() {
        assert_eq!(said(Telling::new("s:1").rest("one\n\ntwo")), "one\n\ntwo");
        let mut telling = Telling::new("s:1");
        assert_eq!(
            said(telling.parts(vec![text("First."), tool(None, false)])),
            "First.[Bash: ls InProgress]"
        );
        assert_eq!(said(telling.rest("● First.\n● Ran\n  more")), "\n\n● Ran\n  more", "by its letters");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut updates = Vec::new();
        chunks(&"é".repeat(CHUNK), &mut updates);
        assert_eq!(updates.len(), 2);
        assert_eq!(said(updates), "é".repeat(CHUNK));
        assert_eq!(fenced("a\n```\nb\n".into()), "````\na\n```\nb\n````");
    }
}
