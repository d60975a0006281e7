//! The names under which clients of other protocols join sessions.

/// The longest name that a client gives itself, in characters.
const NAME: usize = 48;

/// Returns the name under which a client of a protocol joins sessions: `mcp:claude-code`.
pub(crate) fn name_on_bus(protocol: &str, client: Option<&str>) -> String {
    let fits = |c: &char| c.is_alphanumeric() || "-_.@/ ".contains(*c);
    let name: String = client.unwrap_or_default().trim().chars().filter(fits).take(NAME).collect();
    if name.is_empty() { protocol.to_owned() } else { format!("{protocol}:{}", name.replace(' ', "-")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_name_is_kept_short_and_plain() {
        let cases = [
            (Some("claude-code"), "mcp:claude-code"),
            (Some("Codex CLI"), "mcp:Codex-CLI"),
            (Some("a\u{1b}[31mb\n"), "mcp:a31mb"),
            (Some(""), "mcp"),
            (None, "mcp"),
        ];
        for (name, expected) in cases {
            assert_eq!(name_on_bus("mcp", name), expected, "{name:?}");
        }
        assert_eq!(name_on_bus("mcp", Some(&"x".repeat(1000))).len(), NAME + 4);
    }
}
