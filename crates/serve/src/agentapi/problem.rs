//! Refusals, in the form of RFC 7807.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tapdeck_proto::agentapi::{ErrorDetail, ErrorModel};

use super::deliver::Undelivered;

/// A refusal.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    errors: Vec<ErrorDetail>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new() }
    }

    /// A request whose form is wrong at this place.
    pub(super) fn invalid(location: &str, message: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "validation failed");
        problem.errors.push(ErrorDetail { message: message.into(), location: Some(location.to_owned()) });
        problem
    }
}

/// agentapi answers 500 for a message that it cannot send; clients may rely on that.
impl From<Undelivered> for Problem {
    fn from(e: Undelivered) -> Self {
        let message = format!("failed to send message: {e}");
        let mut problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, message.clone());
        problem.errors.push(ErrorDetail { message, location: None });
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ErrorModel {
            status: self.status.as_u16(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: self.detail,
            errors: self.errors,
        };
        let mut response = (self.status, axum::Json(body)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
