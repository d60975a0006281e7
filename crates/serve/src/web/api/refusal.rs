//! Refusals: one JSON body for all, with a status, a word and a sentence.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tapdeck_core::Denied;
use tapdeck_proto::api::Problem;

use crate::client::{ClientError, FindError, WaitError};
use crate::web::guard::REVOKED;

/// A refusal.
#[derive(Debug)]
pub(in crate::web) struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    pub(in crate::web) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// A request that makes no sense.
    pub(in crate::web) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// A request that the session or the recording does not allow now.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn too_many(what: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, format!("too many {what} are under way; try again later"))
    }

    pub(super) fn late(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, message)
    }

    pub(super) fn revoked() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, REVOKED)
    }

    pub(super) fn internal(e: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string())
    }

    /// Returns the body.
    pub(super) fn problem(&self) -> Problem {
        Problem {
            status: self.status.as_u16(),
            error: word_of(self.status).to_owned(),
            message: self.message.clone(),
        }
    }
}

/// Returns a status as a word for programs.
fn word_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "malformed",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "timed_out",
        StatusCode::CONFLICT => "refused",
        StatusCode::PAYLOAD_TOO_LARGE => "too_long",
        StatusCode::UNPROCESSABLE_ENTITY => "not_started",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "too_many",
        _ => "failed",
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem())).into_response()
    }
}

impl From<Denied> for Refusal {
    fn from(e: Denied) -> Self {
        match e {
            Denied::NotHolder => Self::conflict(format!("{e}; take it first")),
            e => Self::new(StatusCode::FORBIDDEN, e.to_string()),
        }
    }
}

impl From<FindError> for Refusal {
    fn from(e: FindError) -> Self {
        match &e {
            FindError::Empty | FindError::Several { .. } => Self::malformed(e.to_string()),
            FindError::NoSession | FindError::Unknown { .. } => Self::not_found(e.to_string()),
            _ => Self::internal(e),
        }
    }
}

impl From<ClientError> for Refusal {
    fn from(e: ClientError) -> Self {
        match &e {
            ClientError::Denied(why) => Self::conflict(why),
            ClientError::NotListening(_) | ClientError::Ended => Self::not_found("the session has ended"),
            ClientError::Late(_) => Self::late(e.to_string()),
            ClientError::Unfit(why) => Self::malformed(*why),
            _ => Self::internal(e),
        }
    }
}

impl From<WaitError> for Refusal {
    fn from(e: WaitError) -> Self {
        match e {
            WaitError::Client(e) => e.into(),
            WaitError::TimedOut { .. } => Self::late(e.to_string()),
            e => Self::conflict(e.to_string()),
        }
    }
}
