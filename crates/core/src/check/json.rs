//! Data of service events as checks look at it, and the paths that lead into it.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// A JSON value, without the library that reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in the order of its keys in the file.
    Map(Vec<(String, Json)>),
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Text(s) => write!(f, "{s:?}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Map(fields) => {
                f.write_str("{")?;
                for (i, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key:?}: {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
    Any,
}

/// A path such as `$.quota.windows[0].name`; `*` and `[*]` stand for every element. The `$.` may be
/// left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

impl JsonPath {
    /// The values that the path leads to.
    pub(crate) fn select<'a>(&self, value: &'a Json) -> Vec<&'a Json> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                match (step, value) {
                    (Step::Key(key), Json::Map(fields)) => {
                        next.extend(fields.iter().filter(|(k, _)| k == key).map(|(_, v)| v));
                    }
                    (Step::Index(i), Json::List(items)) => next.extend(items.get(*i)),
                    (Step::Any, Json::List(items)) => next.extend(items),
                    (Step::Any, Json::Map(fields)) => next.extend(fields.iter().map(|(_, v)| v)),
                    _ => {}
                }
            }
            found = next;
        }
        found
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for JsonPath {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |why: &str| ParseError::new(format!("{text:?} is no path: {why}"));
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (inner, tail) = after.split_once(']').ok_or_else(|| wrong("a [ has no ]"))?;
                let quoted = |q: char| inner.strip_prefix(q).and_then(|s| s.strip_suffix(q));
                steps.push(match (inner, quoted('"').or_else(|| quoted('\''))) {
                    (_, Some(key)) => Step::Key(key.to_owned()),
                    ("*", None) => Step::Any,
                    (n, None) => Step::Index(n.parse().map_err(|_| wrong("[ ] wants a number, * or a key"))?),
                });
                rest = tail;
                continue;
            }
            let key = rest.strip_prefix('.').unwrap_or(rest);
            let end = key.find(['.', '[']).unwrap_or(key.len());
            match &key[..end] {
                "" => return Err(wrong("a key is empty")),
                "*" => steps.push(Step::Any),
                name => steps.push(Step::Key(name.to_owned())),
            }
            rest = &key[end..];
        }
        Ok(Self { text: text.to_owned(), steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Json {
        let window = |name: &str, used: f64| {
            Json::Map(vec![("name".into(), Json::Text(name.into())), ("used".into(), Json::Number(used))])
        };
        Json::Map(vec![
            ("type".into(), Json::Text("quota".into())),
            ("windows".into(), Json::List(vec![window("5h", 12.0), window("week", 40.5)])),
        ])
    }

    #[test]
    fn paths_lead_to_values() {
        for (path, found) in [
            ("$.type", "\"quota\""),
            ("type", "\"quota\""),
            ("windows[1].name", "\"week\""),
            ("$['windows'][0][\"used\"]", "12"),
            ("windows[*].used", "12 40.5"),
            ("windows.*.name", "\"5h\" \"week\""),
            ("windows[7]", ""),
            ("nothing.here", ""),
        ] {
            let path: JsonPath = path.parse().expect(path);
            let values: Vec<_> = path.select(&sample()).iter().map(ToString::to_string).collect();
            assert_eq!(values.join(" "), found, "{path}");
        }
        for bad in ["a[", "a[x]", "a..b", "."] {
            assert!(bad.parse::<JsonPath>().is_err(), "{bad}");
        }
    }
}
