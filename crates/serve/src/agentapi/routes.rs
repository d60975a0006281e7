//! The endpoints.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapdeck_host::registry::Listing;
use tapdeck_proto::agentapi::{
    MessageRequest, MessageResponse, MessageType, MessageUpdate, MessagesResponse, ScreenUpdate,
    StatusChange, StatusResponse, Transport, UploadResponse,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::access::Access;
use super::deliver::{self, Undelivered};
use super::follow::{Followed, View};
use super::problem::Problem;
use super::upload::{self, Uploads};

/// The longest body of a message, as with agentapi.
const BODY: usize = 1 << 20;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(60);
/// The most messages that are delivered at once. All but one of them wait.
const DELIVERIES: usize = 16;
/// The most event streams.
const STREAMS: usize = 128;
/// How often an event stream without events says that it is there.
const BEAT: Duration = Duration::from_secs(15);

/// How long clients have to read the end of their events.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the endpoints serve.
pub(super) struct Server {
    session: Listing,
    followed: Arc<Followed>,
    agent_type: String,
    access: Access,
    uploads: Uploads,
    deliveries: Semaphore,
    /// One prompt at a time: the next one has to see the state that this one leaves.
    prompts: tokio::sync::Mutex<()>,
    streams: Arc<Semaphore>,
}

impl Server {
    pub(super) fn new(
        session: Listing,
        followed: Arc<Followed>,
        agent_type: String,
        access: Access,
        uploads: Uploads,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            followed,
            agent_type,
            access,
            uploads,
            deliveries: Semaphore::new(DELIVERIES),
            prompts: tokio::sync::Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
        })
    }

    /// Ends all event streams, and gives their clients a moment to read the rest.
    pub(super) async fn close(&self) {
        self.followed.close();
        let all = self.streams.acquire_many(u32::try_from(STREAMS).unwrap_or(u32::MAX));
        // A client that does not read is cut off.
        let _ = timeout(FAREWELL, all).await;
    }
}

/// Returns the routes.
pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/messages", get(messages))
        .route("/message", post(message))
        .route("/events", get(events))
        .route("/internal/screen", get(screen))
        .route("/upload", post(upload).layer(DefaultBodyLimit::max(upload::FILE + (1 << 20))))
        .route("/openapi.json", get(openapi))
        .route("/openapi-3.0.json", get(openapi))
        .fallback(async || {
            Problem::new(StatusCode::NOT_FOUND, "there is no such endpoint; see /openapi.json")
        })
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the endpoint does not take this method")
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&server), check))
        .with_state(server)
}

/// Refuses other hosts and other pages, and answers what browsers ask before they send a request.
async fn check(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !server.access.allows_host(headers) {
        let why = format!("invalid host header; allowed hosts: {}", server.access.hosts());
        return Problem::new(StatusCode::BAD_REQUEST, why).into_response();
    }
    let Ok(origin) = server.access.origin(headers) else {
        let why = "this web page's origin is not among the allowed ones";
        return Problem::new(StatusCode::FORBIDDEN, why).into_response();
    };
    let preflight =
        request.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match preflight {
        true => StatusCode::OK.into_response(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        let all = origin == "*";
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if !all {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        if preflight {
            let fixed = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE, OPTIONS"),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, "Accept, Authorization, Content-Type, X-CSRF-Token"),
                (header::ACCESS_CONTROL_MAX_AGE, "300"),
            ];
            headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        }
    }
    response
}

async fn status(State(server): State<Arc<Server>>) -> Json<StatusResponse> {
    let status = server.followed.view().borrow().status;
    Json(StatusResponse { agent_type: server.agent_type.clone(), status, transport: Transport::Pty })
}

async fn messages(State(server): State<Arc<Server>>) -> Json<MessagesResponse> {
    let messages = server.followed.view().borrow().messages.iter().map(|m| (**m).clone()).collect();
    Json(MessagesResponse { messages })
}

async fn message(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<MessageResponse>, Problem> {
    if !is_json(&headers) {
        let why = "the body must be JSON, with Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let body = match timeout(BODY_TIME, axum::body::to_bytes(request.into_body(), BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let why = "the body is too large: at most 1 MiB";
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        Err(_) => {
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come within 60 s"));
        }
    };
    let MessageRequest { content, r#type, .. } = read_message(&body)?;
    let Ok(_place) = server.deliveries.try_acquire() else {
        let why = "too many messages are on their way; try again later";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let _turn = match r#type {
        MessageType::User => Some(server.prompts.lock().await),
        MessageType::Raw => None,
    };
    let sending = Arc::clone(&server);
    let sent = tokio::task::spawn_blocking(move || match r#type {
        MessageType::User => deliver::prompt(&sending.session, &sending.followed, &content),
        MessageType::Raw => deliver::keystrokes(&sending.session, &sending.followed, &content),
    });
    sent.await.unwrap_or_else(|e| Err(Undelivered::Failed(e.to_string())))?;
    Ok(Json(MessageResponse { ok: true }))
}

/// Returns whether a body is said to be JSON, or nothing is said of it.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}

/// Reads a message, and says which part of it is wrong.
fn read_message(body: &[u8]) -> Result<MessageRequest, Problem> {
    let malformed =
        |e: serde_json::Error| Problem::new(StatusCode::BAD_REQUEST, format!("malformed JSON: {e}"));
    let value: Value = serde_json::from_slice(body).map_err(malformed)?;
    let Value::Object(fields) = &value else { return Err(Problem::invalid("body", "expected object")) };
    for name in ["content", "type"] {
        match fields.get(name) {
            Some(Value::String(_)) => {}
            Some(_) => return Err(Problem::invalid(&format!("body.{name}"), "expected string")),
            None => {
                let why = format!("expected required property {name} to be present");
                return Err(Problem::invalid("body", why));
            }
        }
    }
    if !matches!(fields["type"].as_str(), Some("user" | "raw")) {
        return Err(Problem::invalid("body.type", "expected value to be one of \"user, raw\""));
    }
    if let Some(other) = fields.keys().find(|name| !matches!(name.as_str(), "content" | "type" | "$schema")) {
        return Err(Problem::invalid(&format!("body.{other}"), "unexpected property"));
    }
    serde_json::from_value(value).map_err(|e| Problem::invalid("body", e.to_string()))
}

async fn upload(
    State(server): State<Arc<Server>>,
    request: Request,
) -> Result<Json<UploadResponse>, Problem> {
    let form = Multipart::from_request(request, &()).await;
    let form =
        form.map_err(|e| Problem::new(e.status(), format!("expected a multipart form: {}", e.body_text())))?;
    let kept = timeout(BODY_TIME, server.uploads.keep(form)).await;
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the file did not come within 60 s");
    Ok(Json(kept.map_err(late)??))
}

async fn openapi() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/openapi+json")];
    (kind, include_str!("openapi.json")).into_response()
}

/// What a stream of events has in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Messages and the status.
    Conversation,
    /// These and the screen.
    All,
    /// The screen alone, as agentapi's terminal view reads it.
    Screen,
}

/// The query of `GET /events`.
#[derive(Deserialize)]
struct Wanted {
    /// Send `screen_update`, too. agentapi does not, and its Go client takes no events that it does
    /// not know.
    #[serde(default)]
    screen: bool,
}

async fn events(
    State(server): State<Arc<Server>>,
    wanted: Result<Query<Wanted>, axum::extract::rejection::QueryRejection>,
) -> Response {
    match wanted {
        Ok(Query(Wanted { screen: true })) => stream_of(&server, Kind::All),
        Ok(_) => stream_of(&server, Kind::Conversation),
        Err(_) => Problem::invalid("query.screen", "expected true or false").into_response(),
    }
}

async fn screen(State(server): State<Arc<Server>>) -> Response {
    stream_of(&server, Kind::Screen)
}

/// Starts a stream of events.
fn stream_of(server: &Arc<Server>, kind: Kind) -> Response {
    let Ok(place) = Arc::clone(&server.streams).try_acquire_owned() else {
        let why = "too many clients listen to events; try again later";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let events = Events {
        kind,
        agent_type: server.agent_type.clone(),
        views: server.followed.view(),
        shown: None,
        queue: VecDeque::new(),
        _place: place,
    };
    let mut response = Sse::new(events.stream()).keep_alive(KeepAlive::new().interval(BEAT)).into_response();
    let fixed = [
        (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let fixed = fixed.map(|(name, value)| (name, HeaderValue::from_static(value)));
    for (name, value) in fixed {
        response.headers_mut().insert(name, value);
    }
    response
}

/// The events of one client: what it was shown, and what it is to be sent. A slow client gets the
/// newest state and misses what was between.
struct Events {
    kind: Kind,
    agent_type: String,
    views: watch::Receiver<View>,
    shown: Option<View>,
    queue: VecDeque<Event>,
    _place: OwnedSemaphorePermit,
}

impl Events {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut events| {
            let event = events.next().await?;
            Some((Ok(event), events))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            if self.shown.as_ref().is_some_and(|shown| shown.over) {
                return None;
            }
            if self.shown.is_some() {
                self.views.changed().await.ok()?;
            }
            let view = self.views.borrow_and_update().clone();
            self.tell(&view);
            self.shown = Some(view);
        }
    }

    /// Queues what a client does not know yet.
    fn tell(&mut self, view: &View) {
        let shown = self.shown.take();
        let mut queue = std::mem::take(&mut self.queue);
        if self.kind != Kind::Screen {
            let known = shown.as_ref().map_or(&[][..], |shown| &shown.messages);
            let first = known.first().map_or(0, |first| first.id);
            for message in &view.messages {
                let place = message.id.checked_sub(first).and_then(|n| usize::try_from(n).ok());
                let same = place.and_then(|n| known.get(n)).is_some_and(|old| Arc::ptr_eq(old, message));
                if !same {
                    queue.extend(event("message_update", &MessageUpdate::from(&**message)));
                }
            }
            if shown.as_ref().is_none_or(|shown| shown.status != view.status) {
                let change = StatusChange { agent_type: self.agent_type.clone(), status: view.status };
                queue.extend(event("status_change", &change));
            }
        }
        if self.kind != Kind::Conversation && shown.is_none_or(|shown| shown.screen != view.screen) {
            let name = if self.kind == Kind::All { "screen_update" } else { "screen" };
            queue.extend(event(name, &ScreenUpdate { screen: view.screen.as_ref().to_owned() }));
        }
        if let Some(error) = view.error.as_ref().filter(|_| self.kind != Kind::Screen) {
            queue.extend(event("agent_error", &**error));
        }
        self.queue = queue;
    }
}

/// Makes an event. These types can always be written.
fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    Event::default().event(name).json_data(data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_message_is_refused_with_its_place() {
        let wrong = |body: &str| format!("{:?}", read_message(body.as_bytes()).expect_err(body));
        for (body, part) in [
            ("{", "malformed JSON"),
            ("[]", "\"body\""),
            ("{}", "property content"),
            (r#"{"content":5,"type":"user"}"#, "body.content"),
            (r#"{"content":"x","type":"other"}"#, "body.type"),
            (r#"{"content":"x","type":"user","more":1}"#, "body.more"),
        ] {
            assert!(wrong(body).contains(part), "{body}: {}", wrong(body));
        }
        assert!(read_message(br#"{"$schema":"x","content":"a","type":"raw"}"#).is_ok());
    }
}
