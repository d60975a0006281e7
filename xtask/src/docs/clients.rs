//! Generates small clients of the HTTP API from its OpenAPI document: a Python module that needs
//! nothing but Python, and a JavaScript module with types for TypeScript.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

const PYTHON_BASE: &str = include_str!("client_base.py");
const SCRIPT_BASE: &str = include_str!("client_base.js");

/// An operation of the document.
struct Operation<'a> {
    id: &'a str,
    summary: &'a str,
    method: String,
    path: &'a str,
    path_names: Vec<&'a str>,
    query: Vec<&'a Value>,
    body: Option<&'a str>,
    reply: Reply<'a>,
}

/// What an operation returns.
enum Reply<'a> {
    Json(&'a Value),
    /// JSON or text, by its media type.
    Either(&'a Value),
    Text,
    Bytes,
    Events(&'a Value),
}

fn operations(document: &Value) -> Result<Vec<Operation<'_>>> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().context("paths")? {
        for (method, operation) in methods.as_object().context("methods")? {
            let parameters = || operation["parameters"].as_array().into_iter().flatten();
            let of = |place: &str| parameters().filter(|p| p["in"] == place).collect::<Vec<_>>();
            let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            all.push(Operation {
                id: operation["operationId"].as_str().context("a name")?,
                summary: operation["summary"].as_str().context("a summary")?,
                method: method.to_uppercase(),
                path,
                path_names: of("path").iter().filter_map(|p| p["name"].as_str()).collect(),
                query: of("query"),
                body: body.and_then(|name| name.rsplit('/').next()),
                reply: reply(operation)?,
            });
        }
    }
    Ok(all)
}

fn reply(operation: &Value) -> Result<Reply<'_>> {
    let responses = operation["responses"].as_object().context("responses")?;
    let done = responses.iter().find(|(status, _)| status.starts_with('2')).context("a reply")?.1;
    let content = done["content"].as_object().context("content")?;
    let json = content.get("application/json").map(|json| &json["schema"]);
    Ok(match (json, content.get("text/event-stream")) {
        (_, Some(events)) => Reply::Events(&events["x-event-data"]),
        (Some(schema), _) if content.contains_key("text/plain") => Reply::Either(schema),
        (Some(schema), _) => Reply::Json(schema),
        (None, _) if content.contains_key("text/plain") => Reply::Text,
        _ => Reply::Bytes,
    })
}

/// The fields of an object type: name, schema, and whether it must be there.
fn fields(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, schema)| (name.as_str(), schema, required(name))).collect()
}

fn schemas(document: &Value) -> Result<&Map<String, Value>> {
    document["components"]["schemas"].as_object().context("schemas")
}

/// How a language spells types.
struct Language {
    text: &'static str,
    integer: &'static str,
    number: &'static str,
    boolean: &'static str,
    nothing: &'static str,
    any: &'static str,
    object: &'static str,
    array: fn(&str) -> String,
    literal: fn(&[String]) -> String,
    union: fn(&[String]) -> String,
}

const PYTHON: Language = Language {
    text: "str",
    integer: "int",
    number: "float",
    boolean: "bool",
    nothing: "None",
    any: "Any",
    object: "Dict[str, Any]",
    array: |of| format!("List[{of}]"),
    literal: |all| format!("Literal[{}]", all.join(", ")),
    // Python 3.9 does not know `|` between types.
    union: |all| if all.len() == 1 { all.concat() } else { format!("Union[{}]", all.join(", ")) },
};

const SCRIPT: Language = Language {
    text: "string",
    integer: "number",
    number: "number",
    boolean: "boolean",
    nothing: "null",
    any: "unknown",
    object: "Record<string, unknown>",
    array: |of| if of.contains('|') { format!("({of})[]") } else { format!("{of}[]") },
    literal: |all| all.join(" | "),
    union: |all| all.join(" | "),
};

/// Returns a schema as a type.
fn type_of(schema: &Value, language: &Language) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or(language.any).to_owned();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(all) = schema[key].as_array() {
            return union(all.iter().map(|one| type_of(one, language)), language);
        }
    }
    if let Some(all) = schema["enum"].as_array() {
        return (language.literal)(&all.iter().map(Value::to_string).collect::<Vec<_>>());
    }
    if schema["const"].is_string() {
        return (language.literal)(&[schema["const"].to_string()]);
    }
    let named = |name: &str| match name {
        "string" => language.text.to_owned(),
        "integer" => language.integer.to_owned(),
        "number" => language.number.to_owned(),
        "boolean" => language.boolean.to_owned(),
        "null" => language.nothing.to_owned(),
        "array" => match schema.get("items") {
            Some(items) if items.is_object() => (language.array)(&type_of(items, language)),
            _ => (language.array)(language.any),
        },
        "object" => language.object.to_owned(),
        _ => language.any.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => union(names.iter().filter_map(Value::as_str).map(named), language),
        _ => language.any.to_owned(),
    }
}

fn union(all: impl Iterator<Item = String>, language: &Language) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in all {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    (language.union)(&parts)
}

/// Returns the first sentence of a description.
fn about(schema: &Value) -> &str {
    schema["description"].as_str().and_then(|text| text.split("\n\n").next()).unwrap_or_default()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Returns the Python module.
pub(super) fn python(document: &Value) -> Result<String> {
    let mut out = PYTHON_BASE.to_owned();
    for operation in operations(document)? {
        python_method(&mut out, &operation, schemas(document)?)?;
    }
    for (name, schema) in schemas(document)? {
        let fields = fields(schema);
        if fields.is_empty() {
            writeln!(out, "\n\nif TYPE_CHECKING:\n    {name} = {}", type_of(schema, &PYTHON))?;
            continue;
        }
        let base = format!("_{name}");
        for (class, parent, wanted) in
            [(&base, "TypedDict".to_owned(), true), (name, format!("{base}, total=False"), false)]
        {
            writeln!(out, "\n\nclass {class}({parent}):")?;
            writeln!(out, "    \"\"\"{}\"\"\"", about(schema).replace('\n', " "))?;
            for (field, schema, _) in fields.iter().filter(|(.., required)| *required == wanted) {
                // A keyword cannot name a member of a class; the field is there all the same.
                let hidden = if is_python_word(field) { "# " } else { "" };
                writeln!(out, "    {hidden}{field}: {}", type_of(schema, &PYTHON))?;
            }
        }
    }
    Ok(out)
}

fn is_python_word(name: &str) -> bool {
    matches!(
        name,
        "from" | "in" | "is" | "class" | "def" | "not" | "and" | "or" | "if" | "for" | "with" | "as"
    )
}

fn python_method(out: &mut String, operation: &Operation<'_>, types: &Map<String, Value>) -> Result<()> {
    let mut given = String::from("self");
    for name in &operation.path_names {
        write!(given, ", {name}: str")?;
    }
    let query = operation.query.iter().filter_map(|p| Some((p["name"].as_str()?, &p["schema"], false)));
    let body = operation.body.and_then(|name| types.get(name)).map(fields).unwrap_or_default();
    let named: Vec<(&str, &Value, bool)> = query.chain(body).collect();
    if !named.is_empty() {
        given.push_str(", *");
    }
    for (name, schema, required) in
        named.iter().filter(|(.., r)| *r).chain(named.iter().filter(|(.., r)| !*r))
    {
        let kind = type_of(schema, &PYTHON);
        match required {
            true => write!(given, ", {name}: {kind}")?,
            false if kind.contains("None") => write!(given, ", {name}: {kind} = None")?,
            false => write!(given, ", {name}: Union[{kind}, None] = None")?,
        }
    }
    let returns = match &operation.reply {
        Reply::Json(schema) => type_of(schema, &PYTHON),
        Reply::Either(schema) => format!("Union[{}, str]", type_of(schema, &PYTHON)),
        Reply::Text => "str".to_owned(),
        Reply::Bytes => "bytes".to_owned(),
        Reply::Events(schema) => format!("Iterator[Tuple[str, {}]]", type_of(schema, &PYTHON)),
    };
    let path = operation.path_names.iter().fold(operation.path.to_owned(), |path, name| {
        path.replace(&format!("{{{name}}}"), &format!("{{_quote({name})}}"))
    });
    let pairs: Vec<String> = named.iter().map(|(name, ..)| format!("\"{name}\": {name}")).collect();
    let pairs = format!("{{{}}}", pairs.join(", "));
    let values = match (named.is_empty(), operation.method.as_str()) {
        (true, _) => String::new(),
        (false, "GET") => format!(", query={pairs}"),
        (false, _) => format!(", body={pairs}"),
    };
    let call = match operation.reply {
        Reply::Events(_) => "_events",
        Reply::Bytes => "_bytes",
        _ => "_call",
    };
    writeln!(out, "\n    def {}({given}) -> {returns}:", snake(operation.id))?;
    writeln!(out, "        \"\"\"{}\"\"\"", operation.summary)?;
    writeln!(out, "        return self.{call}(\"{}\", f\"{path}\"{values})", operation.method)?;
    Ok(())
}

/// Returns the JavaScript module.
pub(super) fn script(document: &Value) -> Result<String> {
    let mut out = SCRIPT_BASE.to_owned();
    for operation in operations(document)? {
        let names = given_script(&operation, false, |name, _| name.trim_end_matches('?').to_owned());
        let path = operation.path_names.iter().fold(operation.path.to_owned(), |path, name| {
            path.replace(&format!("{{{name}}}"), &format!("${{encodeURIComponent({name})}}"))
        });
        let (query, body) = (!operation.query.is_empty(), operation.body.is_some());
        let mut options = Vec::new();
        if query {
            options.push("query");
        }
        if body {
            options.push("body");
        }
        let call = match operation.reply {
            Reply::Events(_) => "#events",
            Reply::Bytes => "#bytes",
            _ => "#call",
        };
        writeln!(out, "\n  /** {} */", operation.summary)?;
        writeln!(out, "  {}({names}) {{", operation.id)?;
        let options = format!("{{ {} }}", options.join(", ")).replace("{  }", "{}");
        writeln!(out, "    return this.{call}(\"{}\", `{path}`, {options});", operation.method)?;
        writeln!(out, "  }}")?;
    }
    out.push_str("}\n");
    Ok(out)
}

/// Returns the parameters of a method, each by `show` with its type.
fn given_script(operation: &Operation<'_>, needs_body: bool, show: impl Fn(&str, &str) -> String) -> String {
    let mut given: Vec<String> = operation.path_names.iter().map(|name| show(name, "string")).collect();
    if !operation.query.is_empty() {
        let parts = operation
            .query
            .iter()
            .filter_map(|p| Some(format!("{}?: {}", p["name"].as_str()?, type_of(&p["schema"], &SCRIPT))));
        given.push(show("query?", &format!("{{ {} }}", parts.collect::<Vec<_>>().join("; "))));
    }
    if let Some(body) = operation.body {
        given.push(show(if needs_body { "body" } else { "body?" }, body));
    }
    given.join(", ")
}

/// Returns the types of the JavaScript module.
pub(super) fn script_types(document: &Value) -> Result<String> {
    let mut out = String::from(
        "// Types of tapdeck.js, generated by cargo xtask docs.\n\n\
         /** A refusal of the server. */\n\
         export class TapdeckError extends Error {\n  status: number;\n  error: string;\n}\n\n\
         /** A client of Tapdeck's HTTP API. */\n\
         export class Tapdeck {\n  \
         /** Uses the server at this address, such as `http://127.0.0.1:8080`, with this token. */\n  \
         constructor(url: string, token: string);\n",
    );
    for operation in operations(document)? {
        let body = operation.body.and_then(|name| schemas(document).ok()?.get(name));
        let needs_body = body.is_some_and(|body| fields(body).iter().any(|(.., required)| *required));
        let given = given_script(&operation, needs_body, |name, kind| {
            let optional = name.ends_with('?');
            format!("{}{}: {kind}", name.trim_end_matches('?'), if optional { "?" } else { "" })
        });
        let returns = match &operation.reply {
            Reply::Json(schema) => format!("Promise<{}>", type_of(schema, &SCRIPT)),
            Reply::Either(schema) => format!("Promise<{} | string>", type_of(schema, &SCRIPT)),
            Reply::Text => "Promise<string>".to_owned(),
            Reply::Bytes => "Promise<Uint8Array>".to_owned(),
            Reply::Events(schema) => {
                format!("AsyncGenerator<{{ event: string; data: {} }}>", type_of(schema, &SCRIPT))
            }
        };
        writeln!(out, "  /** {} */", operation.summary)?;
        writeln!(out, "  {}({given}): {returns};", operation.id)?;
    }
    out.push_str("}\n");
    for (name, schema) in schemas(document)? {
        let fields = fields(schema);
        writeln!(out, "\n/** {} */", about(schema).replace('\n', " "))?;
        if fields.is_empty() {
            writeln!(out, "export type {name} = {};", type_of(schema, &SCRIPT))?;
            continue;
        }
        writeln!(out, "export interface {name} {{")?;
        for (field, schema, required) in fields {
            let mark = if required { "" } else { "?" };
            writeln!(out, "  {field}{mark}: {};", type_of(schema, &SCRIPT))?;
        }
        writeln!(out, "}}")?;
    }
    Ok(out)
}
