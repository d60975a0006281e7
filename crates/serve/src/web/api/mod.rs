//! The HTTP API, below `/api/v1`: what the page and the bus offer, for programs.
//!
//! `tapdeck_proto::api` has the table of operations. Each is one function here; the guard has
//! checked host, origin and credential before, and every function checks what else it needs. Calls
//! to sessions block, so they run on threads of their own, of which there is a limited number.

mod drive;
mod events;
mod files;
mod input;
mod refusal;
mod sessions;
mod stick;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use tapdeck_core::Need;
use tapdeck_proto::api::{BASE, Method, Operation, ROUTES, Route, document};
use tokio::sync::Semaphore;

use super::Site;
use super::guard::Pass;
pub(super) use refusal::Refusal;

/// Calls to sessions that run at once.
const CALLS: usize = 64;
/// Event streams at once.
const STREAMS: usize = 128;

/// What the API keeps between requests.
pub(super) struct State {
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    sticks: stick::Sticks,
}

impl Default for State {
    fn default() -> Self {
        Self {
            calls: Arc::new(Semaphore::new(CALLS)),
            streams: Arc::new(Semaphore::new(STREAMS)),
            sticks: stick::Sticks::default(),
        }
    }
}

/// Returns whether a path is of the API.
pub(super) fn is_below(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/'))
}

/// Adds the routes of the API.
pub(super) fn add_routes(router: Router<Site>) -> Router<Site> {
    let router = ROUTES
        .iter()
        .fold(router, |router, route| router.route(&format!("{BASE}{}", route.path), method_router(route)));
    router.route(
        &format!("{BASE}/{{*rest}}"),
        axum::routing::any(async || Refusal::not_found("no such operation")),
    )
}

fn method_router(route: &Route) -> MethodRouter<Site> {
    let method = match route.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
    };
    match route.operation {
        Operation::ListSessions => on(method, sessions::list),
        Operation::OpenSession => on(method, sessions::open),
        Operation::ShowSession => on(method, sessions::show),
        Operation::GetScreen => on(method, sessions::screen),
        Operation::Explain => on(method, sessions::explain),
        Operation::WaitFor => on(method, sessions::wait),
        Operation::ListTurns => on(method, sessions::turns),
        Operation::ShowTurn => on(method, sessions::turn),
        Operation::SessionEvents => on(method, events::of_session),
        Operation::TypeText => on(method, drive::type_text),
        Operation::PressKeys => on(method, drive::press_keys),
        Operation::Paste => on(method, drive::paste),
        Operation::Ask => on(method, drive::ask),
        Operation::Answer => on(method, drive::answer),
        Operation::TakeStick => on(method, stick::take),
        Operation::ReleaseStick => on(method, stick::release),
        Operation::ResizeSession => on(method, drive::resize),
        Operation::KillSession => on(method, drive::kill),
        Operation::ListRecordings => on(method, files::list),
        Operation::ShowRecording => on(method, files::show),
        Operation::GetRecordingFile => on(method, files::file),
        Operation::GetRecordingText => on(method, files::text),
        Operation::Events => on(method, events::of_list),
        Operation::Openapi => on(method, openapi),
    }
}

async fn openapi() -> Response {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| document().to_string());
    ([(header::CONTENT_TYPE, "application/json")], document.as_str()).into_response()
}

impl Site {
    /// Runs a call that blocks, for the bearer of a pass.
    async fn call<T: Send + 'static>(
        &self,
        pass: &Pass,
        call: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(place) = Arc::clone(&self.0.api.calls).try_acquire_owned() else {
            return Err(Refusal::too_many("requests"));
        };
        let called = tokio::task::spawn_blocking(move || {
            // A call goes on when its client is gone, and keeps its place.
            let _place = place;
            call()
        });
        match self.while_valid(pass, called).await {
            Some(Ok(done)) => done,
            Some(Err(e)) => Err(Refusal::internal(e)),
            None => Err(Refusal::revoked()),
        }
    }

    /// Checks that a pass allows something. A bearer that holds the stick may do more.
    fn allow(&self, pass: &Pass, need: Need, holds: bool) -> Result<(), Refusal> {
        Ok(pass.authority.check(need, holds, self.0.clock.now().wall)?)
    }
}

/// What the handlers take first.
type At = Shared<Site>;
