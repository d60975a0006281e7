//! The text that a prompt of the client becomes. A program at a terminal takes text alone.

use std::fmt::Write as _;

use tapdeck_proto::acp::PromptPart;

use super::peer::RpcError;

/// Returns the text of a prompt: links as paths, and contents of files behind everything else.
pub(super) fn text_of(parts: &[PromptPart]) -> Result<String, RpcError> {
    let mut text = String::new();
    let mut files = String::new();
    for part in parts {
        match part {
            PromptPart::Text { text: more } => text.push_str(more),
            PromptPart::ResourceLink { uri } => text.push_str(&shown(uri)),
            PromptPart::Resource { resource } => {
                let Some(content) = &resource.text else {
                    return Err(RpcError::params("a terminal takes no files that are not text"));
                };
                let name = shown(&resource.uri);
                text.push_str(&name);
                let fenced = super::telling::fenced(content.clone());
                // Memory takes everything, so writing cannot fail.
                let _ = write!(files, "\n\n{name}:\n{fenced}");
            }
            PromptPart::Image {} => return Err(RpcError::params("a terminal takes no pictures")),
            PromptPart::Audio {} => return Err(RpcError::params("a terminal takes no sound")),
        }
    }
    let text = format!("{}{files}", text.trim());
    if text.trim().is_empty() { Err(RpcError::params("the prompt is empty")) } else { Ok(text) }
}

/// Returns a link as agents read it: a path for a file of this machine, with lines as `:3-5`.
fn shown(uri: &str) -> String {
    let Some(path) = uri.strip_prefix("file://").filter(|path| path.starts_with('/')) else {
        return uri.to_owned();
    };
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let path = path.split('?').next().unwrap_or_default();
    let Some(path) = decoded(path) else { return uri.to_owned() };
    let lines: String =
        fragment.chars().filter(|c| *c != 'L').map(|c| if c == ':' { '-' } else { c }).collect();
    let is_range = lines.starts_with(|c: char| c.is_ascii_digit())
        && lines.chars().all(|c| c.is_ascii_digit() || c == '-');
    if is_range { format!("{path}:{lines}") } else { path }
}

/// Undoes the percent encoding; `None` if what comes out is no text.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(parts: Value) -> Result<String, RpcError> {
        text_of(&serde_json::from_value::<Vec<PromptPart>>(parts).expect("parts"))
    }

    #[test]
    fn links_stand_where_they_are_and_contents_behind() {
        let parts = json!([
            {"type": "text", "text": " Fix "},
            {"type": "resource_link", "name": "a b.rs", "uri": "file:///src/a%20b.rs#L3:5"},
            {"type": "text", "text": " like "},
            {"type": "resource", "resource": {"uri": "file:///n.md", "text": "one\n```\n"}},
            {"type": "text", "text": " and "},
            {"type": "resource_link", "name": "x", "uri": "https://example.org/%20#L1"},
        ]);
        let expected =
            "Fix /src/a b.rs:3-5 like /n.md and https://example.org/%20#L1\n\n/n.md:\n````\none\n```\n````";
        assert_eq!(text(parts).as_deref(), Ok(expected));
        assert_eq!(shown("file:///a%ff"), "file:///a%ff", "no text");
        assert_eq!(shown("file:///a%"), "/a%");
        assert_eq!(shown("file:///a#frag"), "/a");
    }

    #[test]
    fn what_a_terminal_does_not_take_is_refused() {
        assert!(text(json!([{"type": "image", "data": "", "mimeType": "image/png"}])).is_err());
        assert!(text(json!([{"type": "resource", "resource": {"uri": "file:///x", "blob": ""}}])).is_err());
        assert!(text(json!([{"type": "text", "text": " \n"}])).is_err());
        assert!(text(json!([])).is_err());
    }
}
