//! A conversation for people to read: Markdown, a page without a script, or JSON for tools.
//!
//! The text of a conversation is untrusted. What an agent wrote down is Markdown, and is written
//! again block by block, so that no markup in it acts and none of it can pass for a prompt of
//! another party. Text that was read off the screen keeps its shape between fences.

mod html;
mod json;
mod md;

use std::io::Write;
use std::time::Duration;

use tapdeck_core::WallTime;

use super::Out;
use crate::Result;
use crate::conversation::{AskedBack, Conversation, Exchange};
use crate::turns::Speaker;

/// The forms of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversationAs {
    /// Markdown.
    Md,
    /// A page of its own.
    Html,
    /// One JSON object.
    Json,
}

/// Writes a conversation.
///
/// # Errors
/// When the writer fails.
pub fn conversation(form: ConversationAs, conversation: &Conversation, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    match form {
        ConversationAs::Md => md::write(conversation, &mut out),
        ConversationAs::Html => html::write(conversation, &mut out),
        ConversationAs::Json => json::write(conversation, &mut out),
    }?;
    out.flush()
}

/// The name of the party at the terminal where the session was started.
const LOCAL: &str = "local";

/// A party in words.
fn speaker(by: Option<&Speaker>) -> String {
    match by.map(|by| (by.name.as_str(), by.role.as_deref())) {
        None => "Unknown party".to_owned(),
        Some((LOCAL, None | Some("human"))) => "Person".to_owned(),
        Some((name, Some("human"))) => format!("Person ({name})"),
        Some((name, Some("bot"))) => format!("Bot ({name})"),
        Some((name, _)) => name.to_owned(),
    }
}

/// What is known of a session, by name.
fn facts(conversation: &Conversation) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !conversation.command.is_empty() {
        facts.push(("Command", conversation.command.join(" ")));
    }
    if let Some(folder) = &conversation.folder {
        facts.push(("Folder", folder.clone()));
    }
    if let Some(started) = conversation.started {
        let ended = conversation.ended.map(|ended| format!(", {} long", duration(ended.since(started))));
        facts.push(("Date", format!("{} UTC{}", started.utc(), ended.unwrap_or_default())));
    }
    let count = |is: fn(&Exchange) -> bool| conversation.turns().filter(|turn| is(turn)).count();
    let mut prompts = count(|_| true).to_string();
    let marked =
        [(count(|turn| turn.interrupted), "interrupted"), (count(|turn| turn.truncated), "incomplete")];
    for (n, what) in marked.into_iter().filter(|(n, _)| *n > 0) {
        prompts += &format!(", {n} {what}");
    }
    facts.push(("Prompts", prompts));
    facts
}

/// The title of a conversation.
fn title(conversation: &Conversation) -> String {
    let command = || (!conversation.command.is_empty()).then(|| conversation.command.join(" "));
    conversation.title.clone().or_else(command).unwrap_or_else(|| "Conversation".to_owned())
}

/// The time of day, with the date if that is not the day on which the session started.
fn clock(at: WallTime, conversation: &Conversation) -> String {
    let full = at.utc();
    let started = conversation.started.map(WallTime::utc);
    match (full.split_once(' '), started.as_deref().and_then(|s| s.split_once(' '))) {
        (Some((day, time)), Some((first, _))) if day == first => time.to_owned(),
        _ => full,
    }
}

/// A length of time for people.
fn duration(d: Duration) -> String {
    match d.as_secs() {
        0..60 => format!("{:.1} s", d.as_secs_f64()),
        secs @ 60..3_600 => format!("{} min {} s", secs / 60, secs % 60),
        secs => format!("{} h {} min", secs / 3_600, secs / 60 % 60),
    }
}

/// How an answer ended, if not at its end.
fn remarks(turn: &Exchange) -> Vec<&'static str> {
    let mut remarks = Vec::new();
    if turn.interrupted {
        remarks.push("interrupted");
    }
    if turn.truncated {
        remarks.push("incomplete: a part left the screen unread");
    }
    remarks
}

/// How a question was decided, in words.
fn decision(question: &AskedBack) -> String {
    let Some(answer) = &question.answer else {
        return "It is not known how this was decided".to_owned();
    };
    let by = question.by.as_ref().map(|by| format!(", by {}", speaker(Some(by)))).unwrap_or_default();
    format!("{}{by} after {}", answer.words(), duration(question.waited()))
}

/// The rows of a question without the question itself, if there are any.
fn detail(question: &AskedBack) -> Vec<&str> {
    let rows = question.detail.iter().map(String::as_str);
    let same = |row: &&str| row.trim() == question.text.trim();
    let rows: Vec<&str> = rows.filter(|row| !same(row)).collect();
    if rows.iter().all(|row| row.trim().is_empty()) { Vec::new() } else { rows }
}
