//! The shape of a value: types, required keys, ranges. The words are those of JSON Schema, as far
//! as they are known here; a word that is not known is an error, so that nothing passes unchecked.

use std::fmt;

use regex::Regex;

use super::json::Json;
use super::pattern;
use crate::ParseError;

/// Values within each other up to which a shape is followed.
const MAX_DEPTH: usize = 32;
const WORDS: [&str; 12] = [
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "pattern",
];

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// A text.
    String,
    /// A list.
    Array,
    /// Keys and values.
    Object,
}

impl JsonType {
    const ALL: [(Self, &str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Number, "number"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn has(self, value: &Json) -> bool {
        match (self, value) {
            (Self::Integer, Json::Number(n)) => n.fract() == 0.0,
            (Self::Null, Json::Null)
            | (Self::Boolean, Json::Bool(_))
            | (Self::Number, Json::Number(_))
            | (Self::String, Json::Text(_))
            | (Self::Array, Json::List(_))
            | (Self::Object, Json::Map(_)) => true,
            _ => false,
        }
    }

    fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(_) => Self::Boolean,
            Json::Number(n) if n.fract() == 0.0 => Self::Integer,
            Json::Number(_) => Self::Number,
            Json::Text(_) => Self::String,
            Json::List(_) => Self::Array,
            Json::Map(_) => Self::Object,
        }
    }
}

/// What a value must look like.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    types: Vec<JsonType>,
    among: Option<Vec<Json>>,
    required: Vec<String>,
    properties: Vec<(String, Schema)>,
    /// Keys that are not among the properties are wrong.
    closed: bool,
    items: Option<Box<Schema>>,
    length: (Option<f64>, Option<f64>),
    range: (Option<f64>, Option<f64>),
    pattern: Option<Regex>,
}

impl Schema {
    /// Reads a shape.
    ///
    /// # Errors
    /// With the word that is not known, or makes no sense.
    pub fn parse(from: &Json) -> Result<Self, ParseError> {
        Self::parse_at(from, 0)
    }

    fn parse_at(from: &Json, depth: usize) -> Result<Self, ParseError> {
        let wrong = |what: String| ParseError::new(what);
        let Json::Map(words) = from else {
            return Err(wrong(format!("a schema is a map such as {{type: object}}, not {from}")));
        };
        if depth > MAX_DEPTH {
            return Err(wrong(format!("a schema has at most {MAX_DEPTH} levels")));
        }
        let mut schema = Self::default();
        for (word, value) in words {
            let number = || match value {
                Json::Number(n) => Ok(Some(*n)),
                _ => Err(wrong(format!("{word} wants a number, not {value}"))),
            };
            match &**word {
                "type" => schema.types = list(value).iter().map(a_type).collect::<Result<_, _>>()?,
                "enum" => match value {
                    Json::List(values) => schema.among = Some(values.clone()),
                    _ => return Err(wrong(format!("enum wants a list, not {value}"))),
                },
                "const" => schema.among = Some(vec![value.clone()]),
                "required" => {
                    for key in list(value) {
                        let Json::Text(key) = key else {
                            return Err(wrong(format!("required wants keys, not {key}")));
                        };
                        schema.required.push(key.clone());
                    }
                }
                "properties" => {
                    let Json::Map(fields) = value else {
                        return Err(wrong(format!("properties wants a map, not {value}")));
                    };
                    for (key, shape) in fields {
                        schema.properties.push((key.clone(), Self::parse_at(shape, depth + 1)?));
                    }
                }
                "additionalProperties" => match value {
                    Json::Bool(open) => schema.closed = !open,
                    _ => {
                        return Err(wrong(format!("additionalProperties wants true or false, not {value}")));
                    }
                },
                "items" => schema.items = Some(Box::new(Self::parse_at(value, depth + 1)?)),
                "minItems" => schema.length.0 = number()?,
                "maxItems" => schema.length.1 = number()?,
                "minimum" => schema.range.0 = number()?,
                "maximum" => schema.range.1 = number()?,
                "pattern" => match value {
                    Json::Text(text) => schema.pattern = Some(pattern(text)?),
                    _ => return Err(wrong(format!("pattern wants a text, not {value}"))),
                },
                _ => return Err(wrong(format!("no word of a schema is {word:?}: use {}", WORDS.join(", ")))),
            }
        }
        Ok(schema)
    }

    /// Checks a value. Says which part of it is wrong, and why.
    pub(crate) fn check(&self, value: &Json) -> Result<(), String> {
        self.check_at("$", value)
    }

    fn check_at(&self, path: &str, value: &Json) -> Result<(), String> {
        if !self.types.is_empty() && !self.types.iter().any(|kind| kind.has(value)) {
            let names: Vec<_> = self.types.iter().map(|kind| kind.name()).collect();
            let is = JsonType::of(value).name();
            return Err(format!("{path} is {}, not {}: {value}", article(is), names.join(" or ")));
        }
        if let Some(among) = &self.among
            && !among.contains(value)
        {
            let values: Vec<_> = among.iter().map(ToString::to_string).collect();
            return Err(format!("{path} is {value}, not {}", values.join(" or ")));
        }
        match value {
            Json::Map(fields) => self.check_fields(path, fields),
            Json::List(items) => {
                in_range(self.length, items.len() as f64)
                    .map_err(|range| format!("{path} has {} items, {range}", items.len()))?;
                let Some(shape) = &self.items else { return Ok(()) };
                let mut each = items.iter().enumerate();
                each.try_for_each(|(i, item)| shape.check_at(&format!("{path}[{i}]"), item))
            }
            Json::Number(n) => in_range(self.range, *n).map_err(|range| format!("{path} is {n}, {range}")),
            Json::Text(text) => match &self.pattern {
                Some(pattern) if !pattern.is_match(text) => {
                    Err(format!("{path} is {value}, which does not match /{pattern}/"))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn check_fields(&self, path: &str, fields: &[(String, Json)]) -> Result<(), String> {
        let has = |key: &String| fields.iter().any(|(name, _)| name == key);
        if let Some(key) = self.required.iter().find(|key| !has(key)) {
            return Err(format!("{path} has no {key:?}"));
        }
        for (key, value) in fields {
            match self.properties.iter().find(|(name, _)| name == key) {
                Some((_, shape)) => shape.check_at(&format!("{path}.{key}"), value)?,
                None if self.closed => return Err(format!("{path} has {key:?}, which is not expected")),
                None => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.types.iter().map(|kind| kind.name()).collect();
        match &names[..] {
            [] => f.write_str("a shape"),
            names => f.write_str(&names.join(" or ")),
        }
    }
}

/// One, or those of a list.
fn list(value: &Json) -> &[Json] {
    match value {
        Json::List(values) => values,
        one => std::slice::from_ref(one),
    }
}

fn a_type(value: &Json) -> Result<JsonType, ParseError> {
    let found = JsonType::ALL.iter().find(|(_, name)| matches!(value, Json::Text(text) if text == name));
    let names = || JsonType::ALL.map(|(_, name)| name).join(", ");
    found
        .map(|(kind, _)| *kind)
        .ok_or_else(|| ParseError::new(format!("{value} is no type: use {}", names())))
}

fn article(name: &str) -> String {
    let an = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    if name == "null" { name.to_owned() } else { format!("{an} {name}") }
}

fn in_range((min, max): (Option<f64>, Option<f64>), n: f64) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if n < min => Err(format!("less than {min}")),
        (_, Some(max)) if n > max => Err(format!("more than {max}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&str, Json)]) -> Json {
        Json::Map(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    }

    fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    #[test]
    fn each_word_is_checked_and_names_the_place() {
        let number = Json::Number;
        let usage = |tokens: Json| map(&[("type", text("usage")), ("tokens", tokens)]);
        let whole = map(&[("type", text("integer")), ("minimum", number(0.0)), ("maximum", number(9.0))]);
        let shape = map(&[
            ("type", text("object")),
            ("required", Json::List(vec![text("type"), text("tokens")])),
            ("additionalProperties", Json::Bool(false)),
            (
                "properties",
                map(&[
                    ("type", map(&[("const", text("usage"))])),
                    ("tokens", whole.clone()),
                    (
                        "names",
                        map(&[
                            ("items", map(&[("type", text("string")), ("pattern", text("^[a-z]+$"))])),
                            ("maxItems", number(2.0)),
                            ("minItems", number(1.0)),
                        ]),
                    ),
                    ("mode", map(&[("enum", Json::List(vec![text("plan"), text("auto"), Json::Null]))])),
                ]),
            ),
        ]);
        let schema = Schema::parse(&shape).expect("a schema");
        let with = |key: &str, value: Json| {
            let Json::Map(mut fields) = usage(number(1.0)) else { panic!("a map") };
            fields.push((key.to_owned(), value));
            Json::Map(fields)
        };
        let names = |names: &[&str]| with("names", Json::List(names.iter().map(|n| text(n)).collect()));
        for (value, wrong) in [
            (usage(number(3.0)), None),
            (with("mode", Json::Null), None),
            (names(&["ada", "bob"]), None),
            (text("usage"), Some("$ is a string, not object: \"usage\"")),
            (usage(text("3")), Some("$.tokens is a string, not integer: \"3\"")),
            (usage(number(1.5)), Some("$.tokens is a number, not integer: 1.5")),
            (usage(number(-1.0)), Some("$.tokens is -1, less than 0")),
            (usage(number(10.0)), Some("$.tokens is 10, more than 9")),
            (usage(Json::Null), Some("$.tokens is null, not integer: null")),
            (map(&[("type", text("usage"))]), Some("$ has no \"tokens\"")),
            (with("other", Json::Null), Some("$ has \"other\", which is not expected")),
            (with("mode", text("x")), Some("$.mode is \"x\", not \"plan\" or \"auto\" or null")),
            (names(&[]), Some("$.names has 0 items, less than 1")),
            (names(&["a", "b", "c"]), Some("$.names has 3 items, more than 2")),
            (names(&["a", "B"]), Some("$.names[1] is \"B\", which does not match /^[a-z]+$/")),
        ] {
            assert_eq!(schema.check(&value).err().as_deref(), wrong, "{value}");
        }
        for (bad, why) in [
            (text("object"), "a schema is a map"),
            (map(&[("typ", text("object"))]), "no word of a schema is \"typ\""),
            (map(&[("type", text("text"))]), "\"text\" is no type"),
            (map(&[("minimum", text("1"))]), "minimum wants a number"),
            (map(&[("pattern", text("["))]), "is no pattern"),
            (
                map(&[("properties", map(&[("a", map(&[("x", Json::Null)]))]))]),
                "no word of a schema is \"x\"",
            ),
        ] {
            let error = Schema::parse(&bad).expect_err("it is none").to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
