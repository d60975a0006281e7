//! The OpenAPI document of the API.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{BASE, Method, Problem, ROUTES, Route};

/// Makes the schema of a type, and adds the types in it to the generator's.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// Makes the schema of a type.
pub(crate) fn shape_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The types of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shapes {
    pub(crate) query: Option<Shape>,
    pub(crate) body: Option<Shape>,
    pub(crate) reply: Reply,
}

/// What a reply holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Json(Shape),
    /// Text, or JSON of this type.
    TextOr(Shape),
    /// Server-sent events whose data are JSON of this type.
    Events(Shape),
    Text,
    Bytes,
    /// This document.
    Document,
}

/// Statuses of refusals, and what they mean.
const REFUSALS: [(&str, &str); 10] = [
    ("400", "The request makes no sense"),
    ("401", "A token is needed"),
    ("403", "The token does not allow this, or the host or origin is not ours"),
    ("404", "There is no such session, turn or recording"),
    ("409", "The session refuses it now"),
    ("413", "The request is too long"),
    ("422", "The session could not be started"),
    ("429", "Too many requests are under way"),
    ("500", "The server failed, or could not read the session's answer"),
    ("504", "The session did not answer, or the condition did not hold in time"),
];

/// Returns the OpenAPI 3.1 document of the API.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let method = match route.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method] = operation;
    }
    // Every refusal has this body.
    generator.subschema_for::<Problem>();
    let refusals: Map<String, Value> =
        REFUSALS.iter().map(|(status, why)| (status_name(status), refusal(why))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tapdeck",
            "version": "1",
            "description": "Sessions, turns and recordings of a Tapdeck server.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": BASE}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": refusals,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn status_name(status: &str) -> String {
    format!("Problem{status}")
}

fn refusal(why: &str) -> Value {
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    json!({"description": why, "content": {"application/json": {"schema": schema}}})
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route.path.split('/').filter_map(path_parameter).collect();
    if let Some(query) = route.shapes.query {
        parameters.extend(query_parameters(query, generator));
    }
    let mut responses = Map::new();
    responses.insert(
        route.status.to_string(),
        json!({"description": "Done", "content": content(route, generator)}),
    );
    for (status, _) in REFUSALS {
        if *status != *"422" || route.status == 201 {
            let name = format!("#/components/responses/{}", status_name(status));
            responses.insert(status.to_owned(), json!({"$ref": name}));
        }
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": format!("Needs: {}.", route.needs),
        "responses": responses,
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if route.needs == "nothing" {
        operation["security"] = json!([]);
    }
    if let Some(body) = route.shapes.body {
        let schema = body(generator);
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn content(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let text = json!({"schema": {"type": "string"}});
    match route.shapes.reply {
        Reply::Json(shape) => json!({"application/json": {"schema": shape(generator)}}),
        Reply::TextOr(shape) => json!({"application/json": {"schema": shape(generator)}, "text/plain": text}),
        Reply::Events(shape) => {
            // OpenAPI has no words for the frames of such a stream: this is the type of their data.
            let data = shape(generator);
            json!({"text/event-stream": {"schema": {"type": "string"}, "x-event-data": data}})
        }
        Reply::Text => json!({"text/plain": text}),
        Reply::Bytes => {
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}})
        }
        Reply::Document => json!({"application/json": {"schema": {"type": "object"}}}),
    }
}

/// Returns the parameter that a part of a path stands for.
fn path_parameter(part: &str) -> Option<Value> {
    let name = part.strip_prefix('{')?.strip_suffix('}')?;
    let what = match name {
        "id" => "Id or name of a live session, or a unique prefix of one",
        "number" => "The turn's number, from 1, or `last`",
        _ => "The recording's name in the list; a `/` in it is written as %2F",
    };
    let schema = json!({"type": "string"});
    Some(json!({"name": name, "in": "path", "required": true, "description": what, "schema": schema}))
}

/// Returns the fields of a query's type as parameters. The type itself is no part of the document.
fn query_parameters(query: Shape, generator: &mut SchemaGenerator) -> Vec<Value> {
    let reference = query(generator);
    let name = reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let Some(schema) = name.and_then(|name| generator.definitions_mut().remove(name)) else {
        return Vec::new();
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            let what = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            json!({
                "name": name, "in": "query", "required": required.contains(&name.as_str()),
                "description": what, "schema": schema,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_a_target() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(target)) = fields.get("$ref") {
                        let pointer = target.strip_prefix('#').expect("a reference within the document");
                        assert!(document.pointer(pointer).is_some(), "{target}");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(all) => all.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
        assert_eq!(document["paths"]["/sessions"]["post"]["operationId"], "openSession");
        let wait = &document["paths"]["/sessions/{id}/wait"]["get"]["parameters"];
        let names: Vec<&str> =
            wait.as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
        assert_eq!(names, ["id", "exit", "idle_ms", "state", "text", "timeout_ms"]);
    }
}
