//! The messages by name, each with the JSON Schema of its type: what documentation is made from.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

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
