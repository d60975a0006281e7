//! The tables of `docs/protocols.md`, made from the types of `tapdeck-proto`: each message with its
//! fields and the first words of its documentation.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use tapdeck_proto::schema::{Message, Payload};
use tapdeck_proto::{attach, broker, bus, page, tty};

/// Returns all tables, each with the name that its markers carry.
pub(super) fn all() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("verbs", verbs()?),
        ("page verbs", page_verbs()),
        ("bus events", sent::<bus::Event>().messages("event", "name")?),
        ("attach request", received::<attach::Join>().fields()?),
        ("attach from session", sent::<attach::Said>().messages("message", "type")?),
        ("attach from client", received::<attach::Asked>().messages("message", "type")?),
        ("tty negotiation", received::<tty::Negotiation>().fields()?),
        ("tty terminal", received::<tty::Tty>().fields()?),
        ("tty refusals", sent::<tty::RefusalCode>().words()?),
        ("tty from server", sent::<tty::ServerControl>().messages("message", "type")?),
        ("tty from client", received::<tty::ClientControl>().messages("message", "type")?),
        ("broker requests", broker_requests()?),
        ("broker answers", received::<broker::Answer>().answers()?),
        ("broker errors", sent::<broker::ErrorCode>().words()?),
        ("page bodies", messages(page::bodies(), as_read)?),
        ("page messages", messages(page::messages(), as_written)?),
        ("page commands", messages(page::command_messages(), as_read)?),
        ("page recording", sent::<page::PlayState>().fields()?),
    ])
}

fn verbs() -> Result<String> {
    let mut table = String::from("| client | needs | payload | reply |\n| --- | --- | --- | --- |\n");
    for (verb, exchange) in bus::VERBS.iter().zip(bus::exchanges()) {
        let payload = match exchange.payload {
            Payload::None => "none".to_owned(),
            Payload::Text => String::new(),
            Payload::Json(message) => as_read(message).payload()?,
        };
        let reply = as_written(exchange.reply).shape(2)?;
        let reply = if reply == "{}" { String::new() } else { format!(" {reply}") };
        let reply = format!("`{}{reply}`", exchange.reply_verb);
        let (payload, reply) = (remarked(payload, verb.payload), remarked(reply, verb.reply));
        writeln!(table, "| {} | {} | {payload} | {reply} |", verb.verb, verb.needs)?;
    }
    Ok(table)
}

/// Returns a cell with what the type does not say.
fn remarked(cell: String, remark: &str) -> String {
    let parts = [cell.as_str(), remark].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

/// The verbs that the page may send.
fn page_verbs() -> String {
    let verbs: Vec<_> = bus::VERBS.iter().filter(|verb| verb.page).map(|verb| verb.verb).collect();
    let lines: Vec<String> = verbs.chunks(8).map(|some| format!("`{}`", some.join("`, `"))).collect();
    format!("The page may send these verbs:\n{}.\n", lines.join(",\n"))
}

/// Messages by name, with their fields and their meaning.
fn messages(all: Vec<Message>, describe: fn(Message) -> Described) -> Result<String> {
    let mut table = String::from("| name | payload | meaning |\n| --- | --- | --- |\n");
    for message in all {
        let described = describe(message);
        let (shape, meaning) = (described.shape(2)?, meaning(&described.0)?);
        // The first column has the name already.
        let meaning = meaning.strip_prefix(&format!("`{}`: ", message.name)).unwrap_or(&meaning);
        writeln!(table, "| `{}` | `{shape}` | {meaning} |", message.name)?;
    }
    Ok(table)
}

/// The requests of the broker's peers, and the one message that the broker sends by itself.
fn broker_requests() -> Result<String> {
    let mut table = String::from("| from | message | fields | meaning |\n| --- | --- | --- | --- |\n");
    let requests = received::<broker::Request>();
    for message in requests.variants()? {
        let kind = requests.tag(message, "type")?;
        let sender = broker::Request::sender(kind).with_context(|| format!("who sends {kind}?"))?;
        let (fields, meaning) = (requests.field_names(message, "type")?, meaning(message)?);
        writeln!(table, "| {} | `{kind}` | {fields} | {meaning} |", sender.name())?;
    }
    let inject = received::<broker::Inject>();
    let (fields, meaning) = (inject.field_names(&inject.0, "type")?, meaning(&inject.0)?);
    writeln!(table, "| broker | `inject` | {fields} | {meaning} |")?;
    Ok(table)
}

/// The schema of a type.
struct Described(Value);

/// Describes a type as it is written: a field is optional if it is sometimes left out.
fn sent<T: JsonSchema>() -> Described {
    described::<T>(SchemaSettings::default().for_serialize())
}

/// Describes a type as it is read: a field is optional if it may be left out.
fn received<T: JsonSchema>() -> Described {
    described::<T>(SchemaSettings::default().for_deserialize())
}

fn described<T: JsonSchema>(settings: SchemaSettings) -> Described {
    Described(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// Describes a message as it is written.
fn as_written(message: Message) -> Described {
    Described((message.schema)(SchemaSettings::default().for_serialize()).to_value())
}

/// Describes a message as it is read.
fn as_read(message: Message) -> Described {
    Described((message.schema)(SchemaSettings::default().for_deserialize()).to_value())
}

impl Described {
    /// Describes the payload of a request. Without a field that is required, it may be left out.
    fn payload(&self) -> Result<String> {
        if let Ok(variants) = self.variants() {
            let kinds = variants.iter().map(|variant| match self.shape_of(variant, 2)? {
                None => Ok(format!("a JSON {}", self.kind(variant)?)),
                Some(shape) => Ok(format!("`{shape}`")),
            });
            return Ok(kinds.collect::<Result<Vec<_>>>()?.join(" or "));
        }
        let optional = self.names(&self.0)?.iter().all(|(_, required)| !required);
        Ok(format!("{}`{}`", if optional { "none, or " } else { "" }, self.shape(2)?))
    }

    /// Returns the fields of a message as in `{name, other?}`, those of objects within it down to
    /// a depth.
    fn shape(&self, depth: usize) -> Result<String> {
        self.shape_of(&self.0, depth)?.context("a message has fields, or is a list")
    }

    /// Returns the fields of an object or of the objects of a list; `None` for other kinds.
    fn shape_of(&self, schema: &Value, depth: usize) -> Result<Option<String>> {
        if let Some(options) = schema["anyOf"].as_array() {
            let mut options = options.iter().filter(|option| option["type"] != "null");
            let only = options.next().filter(|_| options.next().is_none());
            return only.map_or(Ok(None), |option| self.shape_of(option, depth));
        }
        let schema = self.resolved(schema)?;
        if schema["items"].is_object() && schema.get("prefixItems").is_none() {
            let items = self.shape_of(&schema["items"], depth)?;
            return Ok(items.filter(|items| items.starts_with('{')).map(|items| format!("[{items}, …]")));
        }
        let words = schema["oneOf"].as_array().into_iter().flatten();
        let words: Vec<String> = words.filter_map(|v| v.get("const")).map(Value::to_string).collect();
        if !words.is_empty() {
            return Ok(Some(words.join("\\|")));
        }
        if depth == 0 || schema["type"] != "object" {
            return Ok(None);
        }
        let mut fields = Vec::new();
        for (name, required) in self.names(schema)? {
            let shape = self.shape_of(&self.property(schema, name)?, depth - 1)?;
            let shape = shape.map(|shape| format!(": {shape}")).unwrap_or_default();
            fields.push(format!("{name}{}{shape}", if required { "" } else { "?" }));
        }
        Ok(Some(format!("{{{}}}", fields.join(", "))))
    }

    /// Makes a table of the messages of an enum, which are told apart by the field `tag`.
    fn messages(&self, heading: &str, tag: &str) -> Result<String> {
        let mut table = format!("| {heading} | fields | meaning |\n| --- | --- | --- |\n");
        for message in self.variants()? {
            // The variant that stands for messages of newer versions has no name.
            let Ok(name) = self.tag(message, tag) else { continue };
            if name.eq_ignore_ascii_case("unknown") {
                continue;
            }
            let (fields, meaning) = (self.field_names(message, tag)?, meaning(message)?);
            writeln!(table, "| `{name}` | {fields} | {meaning} |")?;
        }
        Ok(table)
    }

    /// Makes a table of messages that are told apart by their fields alone.
    fn answers(&self) -> Result<String> {
        let mut table = String::from("| fields | meaning |\n| --- | --- |\n");
        for message in self.variants()? {
            writeln!(table, "| {} | {} |", self.field_names(message, "")?, meaning(message)?)?;
        }
        Ok(table)
    }

    /// Makes a table of the fields of a message.
    fn fields(&self) -> Result<String> {
        let mut table = String::from("| field | type | meaning |\n| --- | --- | --- |\n");
        for (name, required) in self.names(&self.0)? {
            let field = &self.property(&self.0, name)?;
            let (optional, kind) = (if required { "" } else { "?" }, self.kind(field)?);
            writeln!(table, "| `{name}{optional}` | {kind} | {} |", meaning(field)?)?;
        }
        Ok(table)
    }

    /// Makes a table of the words of an enum without fields.
    fn words(&self) -> Result<String> {
        let mut table = String::from("| word | meaning |\n| --- | --- |\n");
        for word in self.variants()? {
            let name = word["const"].as_str().context("a word has a const")?;
            writeln!(table, "| `{name}` | {} |", meaning(word)?)?;
        }
        Ok(table)
    }

    fn variants(&self) -> Result<&Vec<Value>> {
        let all = self.0.get("oneOf").or(self.0.get("anyOf"));
        all.and_then(Value::as_array).context("an enum has variants")
    }

    fn tag<'a>(&self, message: &'a Value, tag: &str) -> Result<&'a str> {
        message["properties"][tag]["const"].as_str().with_context(|| format!("no {tag} in {message}"))
    }

    /// Lists the fields of a message but its tag, those that may be missing with a `?`.
    fn field_names(&self, message: &Value, tag: &str) -> Result<String> {
        let mut names = Vec::new();
        for (name, required) in self.names(message)?.into_iter().filter(|(name, _)| *name != tag) {
            names.push(format!("`{name}{}`", if required { "" } else { "?" }));
        }
        // Variants of a variant: each has a tag of its own.
        for variant in self.resolved(message)?["oneOf"].as_array().into_iter().flatten() {
            let fixed = variant["properties"].as_object().into_iter().flatten();
            let fixed = fixed.filter_map(|(name, is)| Some(format!("`{name}: {}`", is.get("const")?)));
            let fixed: Vec<String> = fixed.collect();
            let own = self
                .names(variant)?
                .into_iter()
                .filter(|(name, _)| variant["properties"][name].get("const").is_none());
            let own = own.map(|(name, required)| format!("`{name}{}`", if required { "" } else { "?" }));
            names.push(fixed.into_iter().chain(own).collect::<Vec<_>>().join(", "));
        }
        let separator = if self.resolved(message)?["oneOf"].is_array() { " or " } else { ", " };
        Ok(if names.is_empty() { "none".to_owned() } else { names.join(separator) })
    }

    /// Returns the names of a message's fields and whether they are required: these first, in the
    /// order of the type.
    fn names<'a>(&'a self, message: &'a Value) -> Result<Vec<(&'a str, bool)>> {
        let mut names: Vec<(&str, bool)> = Vec::new();
        let parts = [message, self.resolved(message)?];
        for part in parts {
            let required = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.extend(required.map(|name| (name, true)));
        }
        for part in parts {
            let all = part["properties"].as_object().into_iter().flatten();
            names.extend(all.map(|(name, _)| (name.as_str(), false)));
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|(name, _)| seen.insert(*name));
        Ok(names)
    }

    /// Returns what a message refers to, or the message.
    fn resolved<'a>(&'a self, schema: &'a Value) -> Result<&'a Value> {
        let Some(reference) = schema["$ref"].as_str() else { return Ok(schema) };
        let path = reference.strip_prefix('#').context("a reference into the schema")?;
        self.0.pointer(path).with_context(|| format!("nothing at {reference}"))
    }

    fn property(&self, message: &Value, name: &str) -> Result<Value> {
        let found = message["properties"].get(name).or(self.resolved(message)?["properties"].get(name));
        found.cloned().with_context(|| format!("no field {name}"))
    }

    /// Returns the type of a field, in words.
    fn kind(&self, field: &Value) -> Result<String> {
        if let Some(options) = field["anyOf"].as_array() {
            let options = options.iter().filter(|option| option["type"] != "null");
            let kinds: Vec<String> = options.map(|option| self.kind(option)).collect::<Result<_>>()?;
            return Ok(kinds.join(" or "));
        }
        let field = self.resolved(field)?;
        let variants = field.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<String> = variants.filter_map(|v| Some(format!("`{}`", v.get("const")?))).collect();
        if !words.is_empty() {
            return Ok(words.join(", "));
        }
        let kinds = match &field["type"] {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => bail!("a field without a type: {field}"),
        };
        let kind = kinds.into_iter().find(|kind| *kind != "null").context("a type beside null")?;
        Ok(match kind {
            "array" => format!("list of {}", self.kind(&field["items"])?),
            "boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        })
    }
}

/// Returns the documentation of a type or a field, as a cell of a table.
fn meaning(schema: &Value) -> Result<String> {
    let text = schema["description"].as_str().with_context(|| format!("no documentation: {schema}"))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"))
}
