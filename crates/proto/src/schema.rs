//! The messages by name, each with the JSON Schema of its type: what documentation is made from.

pub use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};

/// Returns the names of the fields that a JSON object of a type may have.
pub fn fields_of<T: JsonSchema>() -> Vec<String> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let fields = schema.get("properties").and_then(serde_json::Value::as_object);
    fields.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// A message's name and its type.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// The name on the wire.
    pub name: &'static str,
    /// Makes the type's schema.
    pub schema: fn(SchemaSettings) -> Schema,
}

impl Message {
    pub(crate) fn new<T: JsonSchema>(name: &'static str) -> Self {
        Self { name, schema: |settings| settings.into_generator().into_root_schema_for::<T>() }
    }
}

/// A request of the bus and its reply.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// The request's verb.
    pub verb: &'static str,
    /// What follows the verb.
    pub payload: Payload,
    /// The reply's verb.
    pub reply_verb: &'static str,
    /// The reply.
    pub reply: Message,
}

/// What follows the verb of a request.
#[derive(Debug, Clone, Copy)]
pub enum Payload {
    /// Nothing.
    None,
    /// Text that is not JSON.
    Text,
    /// JSON.
    Json(Message),
}
