//! Keys that this version does not know. A later version, or another recorder, may add them at any
//! level: they are ignored, guarded by the digests, and kept wherever a cassette is written anew.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::check::{digest_hex, pretty};
use super::events::{InputLine, OutputLine, ServiceLine};
use super::{Discovery, Files, Final, Manifest, Quota, Refusal, ScrubReport, names};
use crate::Extra;
use crate::seal::SealKey;

/// The digest of a manifest as it is stored: of its members beside `id` and `content_digest`,
/// without blanks, keys in order, numbers as they stand in the file.
///
/// # Errors
/// When it is no JSON object.
pub(crate) fn manifest_digest(stored: &[u8]) -> serde_json::Result<String> {
    let mut members: Members<'_> = serde_json::from_slice(stored)?;
    members.0.retain(|(key, _)| key != "id" && key != "content_digest");
    let mut text = String::new();
    members.write(&mut text)?;
    Ok(digest_hex(text.as_bytes()))
}

/// The members of an object in the order of the file, those with one name included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Members<'_> {
    fn write(mut self, out: &mut String) -> serde_json::Result<()> {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
        out.push('{');
        for (i, (key, value)) in self.0.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            out.push_str(&serde_json::to_string(key)?);
            out.push(':');
            write_value(value.get(), out)?;
        }
        out.push('}');
        Ok(())
    }
}

fn write_value(text: &str, out: &mut String) -> serde_json::Result<()> {
    match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str::<Members<'_>>(text)?.write(out)?,
        Some(b'[') => {
            out.push('[');
            for (i, item) in serde_json::from_str::<Vec<&RawValue>>(text)?.into_iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_value(item.get(), out)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        _ => out.push_str(text),
    }
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        from.deserialize_map(Collect).map(Members)
    }
}

/// The unknown fields within a value.
#[derive(Debug, Clone)]
enum Node {
    Object { own: Extra, within: Vec<(String, Node)> },
    List(Vec<(usize, Node)>),
}

impl Node {
    /// Finds the fields of `stored` that `known`, its reading by this version, lacks.
    fn find(stored: Value, known: &Value) -> Option<Self> {
        match (stored, known) {
            (Value::Object(stored), Value::Object(known)) => {
                let (mut own, mut within) = (Extra::default(), Vec::new());
                for (key, value) in stored {
                    match known.get(&key) {
                        Some(known) => within.extend(Self::find(value, known).map(|node| (key, node))),
                        None => {
                            own.0.insert(key, value);
                        }
                    }
                }
                let any = !own.is_empty() || !within.is_empty();
                any.then_some(Self::Object { own, within })
            }
            (Value::Array(stored), Value::Array(known)) if stored.len() == known.len() => {
                let each = stored.into_iter().zip(known).enumerate();
                let nodes = each.filter_map(|(i, (stored, known))| Some((i, Self::find(stored, known)?)));
                let nodes: Vec<_> = nodes.collect();
                (!nodes.is_empty()).then_some(Self::List(nodes))
            }
            _ => None,
        }
    }

    /// Finds them in the text of a `T`.
    fn of<T: Serialize + DeserializeOwned>(stored: &[u8]) -> Option<Self> {
        let stored: Value = serde_json::from_slice(stored).ok()?;
        let known = serde_json::to_value(T::deserialize(&stored).ok()?).ok()?;
        Self::find(stored, &known)
    }

    /// Adds them to another value of the same form. What that has already stays.
    fn put(self, new: &mut Value) {
        match (self, new) {
            (Self::Object { own, within }, Value::Object(new)) => {
                for (key, node) in within {
                    if let Some(value) = new.get_mut(&key) {
                        node.put(value);
                    }
                }
                for (key, value) in own.0 {
                    new.entry(key).or_insert(value);
                }
            }
            (Self::List(nodes), Value::Array(new)) => {
                for (i, node) in nodes {
                    if let Some(value) = new.get_mut(i) {
                        node.put(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn put_into(self, text: &[u8]) -> Option<Value> {
        let mut value = serde_json::from_slice(text).ok()?;
        self.put(&mut value);
        Some(value)
    }

    fn each(&mut self, visit: &mut dyn FnMut(&mut Extra)) {
        match self {
            Self::Object { own, within } => {
                if !own.is_empty() {
                    visit(own);
                }
                within.iter_mut().for_each(|(_, node)| node.each(visit));
            }
            Self::List(nodes) => nodes.iter_mut().for_each(|(_, node)| node.each(visit)),
        }
    }
}

/// A file of one object, written anew as [`pretty`] does, with the unknown fields of its stored
/// form.
pub(crate) fn pretty_keeping<T: Serialize + DeserializeOwned>(stored: &[u8], new: &T) -> Vec<u8> {
    let new = pretty(new);
    let kept = Node::of::<T>(stored).and_then(|node| node.put_into(&new));
    kept.map_or(new, |kept| pretty(&kept))
}

/// The fields of a cassette that this version does not know, with their places. Those of frames are
/// left out: frames are derived anew.
#[derive(Debug, Clone)]
pub struct UnknownFields(Vec<(&'static str, Vec<(usize, Node)>)>);

impl UnknownFields {
    /// Finds those of a cassette.
    pub fn of(files: &Files) -> Self {
        let object = |name, find: fn(&[u8]) -> Option<Node>| {
            let node = files.get(name).and_then(|bytes| find(bytes));
            (name, node.map(|node| (0, node)).into_iter().collect())
        };
        let stream = |name, find: fn(&[u8]) -> Option<Node>| {
            let lines = files.get(name).map_or(&[][..], |bytes| &bytes[..]).split(|b| *b == b'\n');
            (name, lines.enumerate().filter_map(|(i, line)| Some((i, find(line)?))).collect())
        };
        let all: [(_, Vec<_>); 8] = [
            object(names::MANIFEST, Node::of::<Manifest>),
            object(names::FINAL, Node::of::<Final>),
            object(names::SCRUB, Node::of::<ScrubReport>),
            object(names::QUOTA, Node::of::<Quota>),
            object(names::DISCOVERY, Node::of::<Discovery>),
            stream(names::INPUT, Node::of::<InputLine>),
            stream(names::OUTPUT, Node::of::<OutputLine>),
            stream(names::SERVICE, Node::of::<ServiceLine>),
        ];
        Self(all.into_iter().filter(|(_, nodes)| !nodes.is_empty()).collect())
    }

    /// Visits the fields of each object that has some.
    pub fn each(&mut self, mut visit: impl FnMut(&mut Extra)) {
        self.0.iter_mut().flat_map(|(_, nodes)| nodes).for_each(|(_, node)| node.each(&mut visit));
    }

    /// Adds them to a cassette that was made of this one, event by event, and binds that anew,
    /// sealed with the key if there is one.
    ///
    /// # Errors
    /// When that has no manifest.
    pub fn put_into(self, files: &mut Files, key: Option<&SealKey>) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        for (name, nodes) in self.0 {
            let Some(text) = files.get(name).cloned() else { continue };
            let stream = name.ends_with(".jsonl");
            let mut nodes = nodes.into_iter().peekable();
            let mut out = Vec::with_capacity(text.len());
            let pieces: Vec<&[u8]> =
                if stream { text.split(|b| *b == b'\n').collect() } else { vec![&text[..]] };
            for (i, piece) in pieces.into_iter().enumerate() {
                if i > 0 {
                    out.push(b'\n');
                }
                let node = nodes.next_if(|(at, _)| *at == i).map(|(_, node)| node);
                match node.and_then(|node| node.put_into(piece)) {
                    Some(kept) if stream => out.extend(serde_json::to_vec(&kept).unwrap_or_default()),
                    Some(kept) => out.extend(pretty(&kept)),
                    None => out.extend_from_slice(piece),
                }
            }
            files.put(name, out);
        }
        let stored: Bytes = files.need(names::MANIFEST)?.clone();
        let mut manifest = Manifest::from_bytes(&stored)?;
        for (name, bytes) in files.iter().filter(|(name, _)| ![names::RAW, names::MANIFEST].contains(name)) {
            manifest.content_digest.files.insert(name.to_owned(), digest_hex(bytes));
        }
        files.put(names::MANIFEST, manifest.bound_bytes(&stored, key));
        Ok(())
    }
}
