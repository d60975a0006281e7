//! Writing a cassette's id and digest into the scenario that is bound to it, leaving everything else as its author
//! wrote it.

/// The text of a scenario with this id and digest in its `cassette` part.
pub fn bind(text: &str, id: &str, sha256: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_key = |line: &str, key: &str| line.trim_start().split_once(':').is_some_and(|(k, _)| k == key);
    let start = lines.iter().position(|l| l.starts_with("cassette:"));
    let mut out: Vec<String> = Vec::new();
    let bound = |indent: &str| [format!("{indent}id: {id}"), format!("{indent}sha256: {sha256}")];
    let Some(start) = start else {
        // Behind the opening comment and the name.
        let head = lines.iter().take_while(|l| {
            l.starts_with('#') || l.trim().is_empty() || is_key(l, "scenario") || l.starts_with("---")
        });
        let head = head.count();
        out.extend(lines[..head].iter().map(|l| (*l).to_owned()));
        out.push("cassette:".to_owned());
        out.extend(bound("  "));
        out.extend(lines[head..].iter().map(|l| (*l).to_owned()));
        return out.join("\n") + "\n";
    };
    out.extend(lines[..start].iter().map(|l| (*l).to_owned()));
    out.push("cassette:".to_owned());
    let inside = |l: &&&str| l.starts_with([' ', '\t', '#']) || l.trim().is_empty();
    let body: Vec<&str> = lines[start + 1..].iter().take_while(inside).copied().collect();
    // Blank lines belong to what comes next.
    let body_len = body.iter().rposition(|l| l.starts_with([' ', '\t'])).map_or(0, |i| i + 1);
    let body = &body[..body_len];
    let indent =
        body.iter().find(|l| !l.trim().is_empty()).map_or("  ", |l| &l[..l.len() - l.trim_start().len()]);
    // What stood on the key's own line, `cassette: {path: x}`, is spread out.
    let inline = lines[start]["cassette:".len()..].trim();
    if let Some(fields) = inline.strip_prefix('{').and_then(|f| f.strip_suffix('}')) {
        let kept = fields.split(',').map(str::trim).filter(|f| !f.is_empty());
        let kept = kept.filter(|f| !is_key(f, "id") && !is_key(f, "sha256"));
        out.extend(kept.map(|f| format!("{indent}{f}")));
    }
    let kept = body.iter().filter(|l| !is_key(l, "id") && !is_key(l, "sha256"));
    out.extend(kept.map(|l| (*l).to_owned()));
    out.extend(bound(indent));
    out.extend(lines[start + 1 + body_len..].iter().map(|l| (*l).to_owned()));
    out.join("\n") + "\n"
}
