//! Writing a cassette's id, digest, binding and pins into the scenario that is bound to it, leaving
//! everything else as its author wrote it.

use serde_json::{Map, Value};

use super::CassetteRef;
use super::pins::line_of;

/// The keys that are written; the path is its author's.
const OURS: [&str; 5] = ["id", "sha256", "binding", "pins", "variants"];

/// What is written, as JSON.
fn values(to: &CassetteRef) -> Vec<(&'static str, Value)> {
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let pins = to.pins.as_ref().map(|pins| Value::Object(pins.0.clone()));
    let values = [text(&to.id), text(&to.sha256), text(&to.binding), pins];
    OURS.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The text of a scenario with this id, digest, binding and pins in its `cassette` part. Of a
/// scenario with a matrix these are of one combination, and the others keep theirs.
pub fn bind(text: &str, to: &CassetteRef, variant: Option<&str>) -> String {
    let values = match variant {
        None => values(to),
        Some(name) => {
            let before = super::tree::read(text, None).ok().map(|tree| tree.to_value());
            let before = before.as_ref().and_then(|tree| tree.pointer("/cassette/variants")?.as_object());
            let mut all = before.cloned().unwrap_or_default();
            let own: Map<String, Value> =
                values(to).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            all.insert(name.to_owned(), own.into());
            vec![("variants", all.into())]
        }
    };
    write(text, &values)
}

fn write(text: &str, to: &[(&'static str, Value)]) -> String {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let is_head = |l: &&str| l.starts_with('#') || l.trim().is_empty() || l.starts_with("---");
    let bound = match text.lines().find(|l| !is_head(l)) {
        Some(first) if first.trim_start().starts_with('{') => flow(text, to),
        _ => block(text, to),
    };
    // Lines end as their author has them end.
    let bound = if text.contains("\r\n") { bound.replace("\r\n", "\n").replace('\n', "\r\n") } else { bound };
    format!("{mark}{bound}")
}

/// Binds a scenario that is written in braces, as JSON is.
fn flow(text: &str, to: &[(&'static str, Value)]) -> String {
    let (Some(open), Some(close)) = (text.find('{'), text.rfind('}')) else { return text.to_owned() };
    let body = &text[open + 1..close];
    let quoted = |(key, value): &(&str, Value)| format!("\"{key}\": {}", line_of(value));
    let ours = to.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let mut entries: Vec<String> = entries(body).into_iter().map(str::to_owned).collect();
    match entries.iter_mut().find(|e| key(e) == "cassette") {
        Some(entry) => {
            let inner = entry.find('{').and_then(|from| Some(&entry[from + 1..entry.rfind('}')?]));
            let kept = inner.map(self::entries).unwrap_or_default().into_iter();
            let kept =
                kept.filter(|e| !OURS.contains(&key(e)) && !key(e).is_empty()).map(|e| e.trim().to_owned());
            let all: Vec<String> = kept.chain([ours]).collect();
            let space = &entry[..entry.len() - entry.trim_start().len()];
            *entry = format!("{space}\"cassette\": {{{}}}", all.join(", "));
        }
        None => {
            let space: String = body.chars().take_while(|c| c.is_whitespace()).collect();
            entries.insert(0, format!("{space}\"cassette\": {{{ours}}}"));
            if space.is_empty() {
                entries[1].insert(0, ' ');
            }
        }
    }
    format!("{}{}{}", &text[..=open], entries.join(","), &text[close..])
}

/// What stands between the commas of a text in braces.
fn entries(body: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0usize, 0, Vec::new());
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(&body[from..at]);
                from = at + 1;
            }
            '"' => {
                while chars.next().is_some_and(|(_, c)| c != '"' && (c != '\\' || chars.next().is_some())) {}
            }
            '\'' => while chars.next().is_some_and(|(_, c)| c != '\'') {},
            _ => {}
        }
    }
    out.push(&body[from..]);
    out
}

/// The name in front of an entry's colon.
fn key(entry: &str) -> &str {
    entry.split(':').next().unwrap_or_default().trim().trim_matches(['"', '\''])
}

/// Binds a scenario that is written in lines.
fn block(text: &str, to: &[(&'static str, Value)]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_key = |line: &str, key: &str| line.trim_start().split_once(':').is_some_and(|(k, _)| k == key);
    let start = lines.iter().position(|l| l.starts_with("cassette:"));
    let mut out: Vec<String> = Vec::new();
    let bound = |indent: &str| {
        let line = |(key, value): &(&str, Value)| match value {
            Value::String(text) => format!("{indent}{key}: {text}"),
            Value::Object(variants) if *key == "variants" => {
                let each = variants.iter().map(|(name, to)| {
                    format!("\n{indent}{indent}{}: {}", Value::from(name.as_str()), line_of(to))
                });
                format!("{indent}{key}:{}", each.collect::<String>())
            }
            value => format!("{indent}{key}: {}", line_of(value)),
        };
        to.iter().map(line).collect::<Vec<_>>()
    };
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
        let kept = entries(fields).into_iter().map(str::trim).filter(|f| !f.is_empty());
        let kept = kept.filter(|f| !OURS.contains(&key(f)));
        out.extend(kept.map(|f| format!("{indent}{f}")));
    }
    // A value that goes on in deeper lines is left out with them.
    let mut ours = false;
    for line in body {
        let deeper = line.starts_with(&format!("{indent} ")) || line.trim().is_empty();
        ours = if deeper { ours } else { OURS.iter().any(|key| is_key(line, key)) };
        if !ours {
            out.push((*line).to_owned());
        }
    }
    out.extend(bound(indent));
    out.extend(lines[start + 1 + body_len..].iter().map(|l| (*l).to_owned()));
    out.join("\n") + "\n"
}
