//! Scrubbing of recordings: one of any format is read to find what must not be seen, and read again
//! to be copied without it. Times, chunks, offsets and sequences stay; so does the shape of every
//! frame.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use serde_json::{Map, Value};
use tapdeck_core::Offset;
use tapdeck_core::scrub::{Report, Scrubber};
use tapdeck_term::Size;

use crate::event::{EventReader, Header, Item, Kind};
use crate::meta::Meta;
use crate::{Extra, JsonValue, Result};

/// Readings after which nothing new is expected to be learned.
const READINGS: usize = 3;

/// The size that a recording begins with.
pub fn first_size(header: &Header) -> Size {
    header.size.unwrap_or_default()
}

/// Reads a recording until a reading teaches nothing new about its secrets. `open` opens it from
/// its start. What breaks off is judged up to there; a copy of it meets the same end.
///
/// # Errors
/// When it cannot be opened.
pub fn study<R: EventReader, E>(
    mut scrubber: Scrubber,
    mut open: impl FnMut() -> std::result::Result<R, E>,
) -> std::result::Result<Scrubber, E> {
    for reading in 0..READINGS {
        let known = scrubber.learned();
        if reading > 0 {
            scrubber = scrubber.again();
        }
        let mut reader = open()?;
        if reading == 0 {
            // An argument may tell what is typed later.
            let _ = scrub_header(reader.header(), &mut scrubber);
        }
        while let Ok(Some(item)) = reader.next_item() {
            if let Item::Event(event) = item {
                take(&event.kind, &mut scrubber);
            }
        }
        scrubber.finish();
        if scrubber.learned() == known {
            break;
        }
    }
    scrubber.forget_fields();
    Ok(scrubber)
}

fn take(kind: &Kind, scrubber: &mut Scrubber) {
    match kind {
        Kind::Output(bytes) => scrubber.output(bytes),
        Kind::Input(bytes) => scrubber.input(bytes),
        Kind::Resize(size) => scrubber.resize(*size),
        Kind::Lost(n) => scrubber.lost(*n),
        _ => {}
    }
}

/// A reader whose events are scrubbed as they pass.
#[derive(Debug)]
pub struct Scrubbed<R> {
    inner: R,
    scrubber: Scrubber,
    header: Header,
    output: u64,
    input: u64,
}

impl<R: EventReader> Scrubbed<R> {
    /// Over a recording from its start, with a scrubber that has studied it.
    pub fn new(inner: R, mut scrubber: Scrubber) -> Self {
        let header = scrub_header(inner.header(), &mut scrubber);
        Self { inner, scrubber, header, output: 0, input: 0 }
    }

    /// The scrubber, for what stands beside the recording and for its report.
    pub fn scrubber(&mut self) -> &mut Scrubber {
        &mut self.scrubber
    }
}

impl<R: EventReader> EventReader for Scrubbed<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        let mut item = self.inner.next_item()?;
        if let Some(Item::Event(event)) = &mut item {
            match &mut event.kind {
                Kind::Output(bytes) => {
                    let at = Offset(self.output);
                    self.output += bytes.len() as u64;
                    let masks = self.scrubber.output_masks();
                    if masks.touches(at, bytes.len()) {
                        let mut masked = bytes.to_vec();
                        masks.apply(at, &mut masked);
                        *bytes = masked.into();
                    }
                    self.scrubber.inspect(bytes);
                }
                Kind::Input(bytes) => {
                    let at = Offset(self.input);
                    self.input += bytes.len() as u64;
                    let masks = self.scrubber.input_masks();
                    if masks.touches(at, bytes.len()) {
                        let mut masked = bytes.to_vec();
                        masks.apply(at, &mut masked);
                        *bytes = Bytes::from(masked);
                    }
                }
                Kind::Lost(n) => self.output += *n,
                Kind::Marker(label) | Kind::Snapshot { label, .. } => *label = self.scrubber.text(label),
                Kind::Other { data, .. } => scrub_json(data, &mut self.scrubber),
                _ => {}
            }
        }
        Ok(item)
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

/// A header without what must not be seen.
pub fn scrub_header(header: &Header, scrubber: &mut Scrubber) -> Header {
    let mut header = header.clone();
    for text in [&mut header.command, &mut header.folder, &mut header.title].into_iter().flatten() {
        *text = scrubber.text(text);
    }
    scrub_named(&mut header.env, scrubber);
    scrub_named(&mut header.tags, scrubber);
    scrub_extra(&mut header.extra, scrubber);
    header
}

/// Scrubs names and values.
fn scrub_named(named: &mut BTreeMap<String, String>, scrubber: &mut Scrubber) {
    for (name, value) in named.iter_mut() {
        *value = with_name(name, value, scrubber);
    }
    *named = clean_names(std::mem::take(named), scrubber).collect();
}

/// Scrubs all that a sidecar tells in words.
pub fn scrub_meta(meta: &mut Meta, scrubber: &mut Scrubber) {
    let argv: Vec<String> = meta.argv().iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
    let clean = scrub_argv(&argv, scrubber);
    if clean != argv {
        meta.set_argv(clean);
    }
    for text in [&mut meta.cwd, &mut meta.title, &mut meta.continues].into_iter().flatten() {
        *text = scrubber.text(text);
    }
    scrub_named(&mut meta.env, scrubber);
    scrub_named(&mut meta.tags, scrubber);
    if let Some(parent) = &mut meta.parent {
        let texts = [&mut parent.path, &mut parent.at, &mut parent.worktree];
        for text in texts.into_iter().chain(&mut parent.instruction) {
            *text = scrubber.text(text);
        }
    }
    for edit in &mut meta.history {
        let names = edit.sources.iter_mut().map(|source| &mut source.name);
        for text in edit.edits.iter_mut().chain(names) {
            *text = scrubber.text(text);
        }
    }
    scrub_extra(&mut meta.extra, scrubber);
}

/// Scrubs a command line. Its words are looked at together: an option and its value are two of
/// them.
pub fn scrub_argv(argv: &[String], scrubber: &mut Scrubber) -> Vec<String> {
    let masked: Vec<char> = scrubber.text(&argv.join(" ")).chars().collect();
    let mut at = 0;
    let word = |arg: &String| {
        let n = arg.chars().count();
        let part = masked.iter().skip(at).take(n).collect();
        at += n + 1;
        part
    };
    argv.iter().map(word).collect()
}

/// Scrubs a line of a sidecar of lines; one that is no JSON as plain text.
pub fn scrub_line(line: &[u8], scrubber: &mut Scrubber) -> Vec<u8> {
    match serde_json::from_slice::<Value>(line) {
        Ok(mut value) => {
            let before = value.clone();
            scrub_value(&mut value, scrubber);
            // As it was written, unless something is gone.
            if value == before { line.to_vec() } else { format!("{value}\n").into_bytes() }
        }
        Err(_) => scrubber.text(&String::from_utf8_lossy(line)).into_bytes(),
    }
}

/// Scrubs every text in a value, by itself and by the name that it goes under.
pub fn scrub_json(value: &mut JsonValue, scrubber: &mut Scrubber) {
    scrub_value(&mut value.0, scrubber);
}

/// Scrubs every text of these fields, and their names.
pub fn scrub_extra(fields: &mut Extra, scrubber: &mut Scrubber) {
    scrub_map(&mut fields.0, scrubber);
}

fn scrub_value(value: &mut Value, scrubber: &mut Scrubber) {
    match value {
        Value::String(text) => *text = scrubber.text(text),
        Value::Array(list) => list.iter_mut().for_each(|v| scrub_value(v, scrubber)),
        Value::Object(map) => scrub_map(map, scrubber),
        _ => {}
    }
}

fn scrub_map(map: &mut Map<String, Value>, scrubber: &mut Scrubber) {
    for (name, value) in map.iter_mut() {
        match value {
            Value::String(text) => *text = with_name(name, text, scrubber),
            other => scrub_value(other, scrubber),
        }
    }
    *map = clean_names(std::mem::take(map), scrubber).collect();
}

/// The same entries with their names scrubbed. Names that hold nothing keep theirs, and of several
/// that are masked alike none takes another's place.
fn clean_names<V>(
    entries: impl IntoIterator<Item = (String, V)>,
    scrubber: &mut Scrubber,
) -> impl Iterator<Item = (String, V)> {
    let mut entries: Vec<(bool, String, V)> = entries
        .into_iter()
        .map(|(name, value)| {
            let clean = scrubber.text(&name);
            (clean != name, clean, value)
        })
        .collect();
    let mut taken: HashSet<String> = entries.iter().filter(|e| !e.0).map(|e| e.1.clone()).collect();
    for (_, name, _) in entries.iter_mut().filter(|e| e.0) {
        let mut free = name.clone();
        let mut n = 1;
        while !taken.insert(free.clone()) {
            n += 1;
            free = format!("{name}-{n}");
        }
        *name = free;
    }
    entries.into_iter().map(|(_, name, value)| (name, value))
}

/// A text that goes under a name, which may be what gives it away.
fn with_name(name: &str, text: &str, scrubber: &mut Scrubber) -> String {
    let named = format!("\"{name}\": \"{text}\"");
    let masked: Vec<char> = scrubber.text(&named).chars().collect();
    let n = text.chars().count();
    masked[masked.len() - 1 - n..masked.len() - 1].iter().collect()
}

/// One word for how it went.
pub fn status(report: &Report) -> &'static str {
    if report.is_clean() { "scrubbed" } else { "incomplete" }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tapdeck_core::scrub::Rules;

    use super::*;

    /// A name may be what must not be seen. No entry is lost over that, and no other name is
    /// touched.
    #[test]
    fn names_of_objects_are_scrubbed() {
        let rules = Rules::of_packs(&["secrets"]).and_then(|list| Rules::new(list, Vec::new()));
        let mut scrubber = Scrubber::new(Arc::new(rules.expect("rules")), Size::default());
        let keys = ["Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4", "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV5"]
            .map(|tail| format!("sk-ant-api03-{tail}"));
        let mut value = json!({"uses": {}, "list": [{"name": "ada", "password": "hunter2hunter2"}]});
        for key in &keys {
            value["uses"][key] = 1.into();
            value["list"][0][key] = "text".into();
        }
        scrub_value(&mut value, &mut scrubber);
        let text = value.to_string();
        assert!(!text.contains("Zm9v") && !text.contains("hunter2"), "{text}");
        let names = |v: &Value| v.as_object().expect("an object").len();
        assert_eq!((names(&value["uses"]), names(&value["list"][0])), (2, 4), "{text}");
        assert_eq!(value["list"][0]["name"], "ada");
        let mut header = Header::default();
        header.env.extend(keys.map(|key| (key, String::new())));
        let header = scrub_header(&header, &mut scrubber);
        assert!(header.env.len() == 2 && !header.env.keys().any(|k| k.contains("Zm9v")), "{header:?}");
    }
}
