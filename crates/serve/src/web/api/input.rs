//! The parts of a request: its query, and its body.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tapdeck_proto::api::MAX_BODY;
use tapdeck_proto::schema::{JsonSchema, fields_of};
use tapdeck_tape::nearest::unknown;

use super::Refusal;
use crate::web::Site;

/// The query of a request.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Site> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Site) -> Result<Self, Refusal> {
        let Query(query) = Query::try_from_uri(&parts.uri)
            .map_err(|e| Refusal::malformed(format!("the query makes no sense: {}", e.body_text())))?;
        Ok(Self(query))
    }
}

/// The body of a request: a JSON object. Nothing stands for an empty one.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned + JsonSchema> FromRequest<Site> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Site) -> Result<Self, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_none_or(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
        });
        // The guard has read the body, and has bounded it.
        let body = axum::body::to_bytes(request.into_body(), MAX_BODY).await.map_err(Refusal::internal)?;
        if !is_json && !body.is_empty() {
            return Err(Refusal::malformed("the body must be JSON, with Content-Type: application/json"));
        }
        let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
        let malformed = |e: serde_json::Error| Refusal::malformed(format!("the body makes no sense: {e}"));
        let value: Value = serde_json::from_slice(text).map_err(malformed)?;
        // serde reads a struct from a list of its fields, too.
        let Value::Object(fields) = &value else {
            return Err(Refusal::malformed("the body must be a JSON object"));
        };
        // The bus ignores what it does not know, for newer clients. Here it is a mistake.
        let known = fields_of::<T>();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Refusal::malformed(unknown("field", name, &known)));
        }
        Ok(Self(serde_json::from_value(value).map_err(malformed)?))
    }
}
