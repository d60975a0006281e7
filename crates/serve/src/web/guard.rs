//! Access control. Every request must name a host that is ours, which prevents DNS rebinding, and
//! its origin, if it has one, must be our own page. A token comes in the fragment of the link,
//! which browsers do not send; the page exchanges it for a cookie that scripts cannot read.
//! Programs may send the token itself as a bearer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use tapdeck_core::{Authority, Need, Right};
use tapdeck_proto::api::MAX_BODY;
use tapdeck_proto::bus::{Hex, PaintTheme};
use tapdeck_proto::page::{Body, LoggedIn, Login, NamedTheme, PageScope};
use tapdeck_term::{Rgb, Theme};
use tokio::time::timeout;

use super::serving::REQUEST;
use super::{Site, api};
use crate::admission::Seat;
use crate::live::same;

/// The most logins at once; a new one replaces the oldest.
const LOGINS: usize = 256;
const TOKEN: usize = 1024;
/// How often a pass is looked at again, where no change is told.
const LOOK: Duration = Duration::from_secs(10);
/// What a client is told whose pass is no longer valid.
pub(super) const REVOKED: &str = "the credential is no longer good";
/// The longest body of a request.
const BODY: usize = 4096;

/// The logins: each cookie's secret, and the token that was exchanged for it.
#[derive(Default)]
pub(super) struct Logins(VecDeque<(String, String)>);

/// A valid credential. It may be revoked later.
#[derive(Clone)]
pub(super) struct Pass {
    pub(super) token: String,
    pub(super) authority: Authority,
    /// The seat of its connection, which it keeps.
    _seat: Option<Seat>,
}

impl Pass {
    /// Returns the pass for work that goes on without its connection.
    pub(super) fn without_seat(self) -> Self {
        Self { _seat: None, ..self }
    }
}

/// A request's pass, which [`check`] has put there.
impl FromRequestParts<Site> for Pass {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &Site) -> Result<Self, Response> {
        parts.extensions.get::<Self>().cloned().ok_or_else(no_credential)
    }
}

/// The credential that a request shows.
enum Shown {
    /// A token that is not known: a guess, for all that the server knows.
    Wrong,
    /// A token that grants this.
    Known(String, Authority),
    Nothing,
}

impl Site {
    /// Reads the credential of a request: a bearer token, or the cookie that a token was exchanged
    /// for. A cookie of an earlier login is no guess.
    fn shown(&self, headers: &HeaderMap) -> Shown {
        if let Some(token) = bearer(headers) {
            return self.known(token);
        }
        let Some(cookie) = self.cookie(headers) else { return Shown::Nothing };
        let token = {
            let logins = self.logins();
            let known = logins.0.iter().find(|(secret, _)| same(secret.as_bytes(), cookie.as_bytes()));
            known.map(|(_, token)| token.clone())
        };
        match token.map(|token| self.known(&token)) {
            Some(known @ Shown::Known(..)) => known,
            _ => Shown::Nothing,
        }
    }

    fn known(&self, token: &str) -> Shown {
        match (self.0.options.check)(token) {
            Some(authority) => Shown::Known(token.to_owned(), authority),
            None => Shown::Wrong,
        }
    }

    /// Makes the pass of a request, and admits its connection. A token that does not let its bearer
    /// watch is worth nothing on the page.
    async fn pass(&self, shown: Shown, seat: &Seat) -> Result<Option<Pass>, Response> {
        let (token, authority) = match shown {
            Shown::Known(token, authority) => (token, authority),
            Shown::Wrong => {
                seat.failed().await;
                return Ok(None);
            }
            Shown::Nothing => return Ok(None),
        };
        if !self.may_watch(authority) {
            return Ok(None);
        }
        seat.admit().map_err(|full| refuse(StatusCode::SERVICE_UNAVAILABLE, &full.to_string()))?;
        Ok(Some(Pass { token, authority, _seat: Some(seat.clone()) }))
    }

    fn may_watch(&self, authority: Authority) -> bool {
        authority.check(Need::Watch, false, self.0.clock.now().wall).is_ok()
    }

    /// Does something for the bearer of a pass; `None` if the pass is revoked or expires meanwhile.
    pub(super) async fn while_valid<T>(&self, pass: &Pass, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.revoked(&pass.token, pass.authority) => None,
        }
    }

    /// Waits until a token no longer grants the same.
    pub(super) async fn revoked(&self, token: &str, authority: Authority) {
        let mut changes = self.0.options.changes.clone();
        while self.still(token, authority) {
            let changed = async {
                match &mut changes {
                    Some(changes) => changes.changed().await.is_ok(),
                    None => false,
                }
            };
            let expires = authority.expires().map(|at| at.since(self.0.clock.now().wall));
            // What nothing tells of is looked at now and then.
            let look = expires.map_or(LOOK, |left| left.min(LOOK));
            if timeout(look, changed).await == Ok(false) {
                changes = None;
                tokio::time::sleep(look).await;
            }
        }
    }

    /// Returns whether a token still grants the same.
    fn still(&self, token: &str, authority: Authority) -> bool {
        (self.0.options.check)(token) == Some(authority) && self.may_watch(authority)
    }

    /// Returns whether a pass lets its bearer start programs. What the page starts it also drives.
    pub(super) fn may_open(&self, pass: &Pass) -> bool {
        let now = self.0.clock.now().wall;
        [Need::Open, Need::Drive].iter().all(|need| pass.authority.check(*need, false, now).is_ok())
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let pairs = headers.get_all(header::COOKIE).iter().filter_map(|v| v.to_str().ok());
        pairs
            .flat_map(|v| v.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find_map(|(name, value)| (name == self.0.cookie).then_some(value))
    }

    fn is_ours(&self, host: &str) -> bool {
        self.0.options.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
            || self.is_named(host)
            || self.is_address(host)
    }

    /// Returns whether this is an address of a server that listens on all of them. A browser that
    /// was led here by a name of another site says that name.
    fn is_address(&self, host: &str) -> bool {
        let Ok(address) = host.parse::<SocketAddr>() else { return false };
        let listening = self.0.options.hosts.iter().filter_map(|ours| ours.parse::<SocketAddr>().ok());
        listening.into_iter().any(|ours| ours.ip().is_unspecified() && ours.port() == address.port())
    }

    fn is_named(&self, host: &str) -> bool {
        self.0.options.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Returns whether an origin is our own page.
    fn is_own_origin(&self, origin: &str) -> bool {
        let own = if self.0.options.secure { "https" } else { "http" };
        origin.split_once("://").is_some_and(|(scheme, host)| {
            (scheme == own && self.is_ours(host)) || (scheme == "https" && self.is_named(host))
        })
    }
}

impl Site {
    /// Returns whether an origin is a page that may show live streams.
    fn is_player(&self, origin: &str) -> bool {
        self.0.options.players.iter().any(|player| player.eq_ignore_ascii_case(origin))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

/// Refuses a request with a reason.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response {
    let mut response = (status, format!("{why}\n")).into_response();
    response.extensions_mut().insert(Why(why.to_owned()));
    response
}

/// The reason of a refusal, for clients of the API, which get it as JSON.
#[derive(Clone)]
struct Why(String);

fn no_credential() -> Response {
    refuse(
        StatusCode::UNAUTHORIZED,
        "a token is needed: open the link that the server printed, or this page with #token= and a token behind it",
    )
}

/// Checks every request first, and adds security headers to every answer.
pub(super) async fn check(
    State(site): State<Site>,
    Extension(seat): Extension<Seat>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default().to_owned();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match suspect(&site, &request, &host) {
        Some(why) => refuse(StatusCode::FORBIDDEN, why),
        None => match prepared(&site, &seat, request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal,
        },
    };
    if api::is_below(&path) {
        let why = match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Some(Why("the operation does not take this method".into())),
            _ => response.extensions_mut().remove(),
        };
        if let Some(Why(why)) = why {
            response = api::Refusal::new(response.status(), why).into_response();
        }
    }
    let status = response.status();
    // Neither the path nor the method has a token in it; tokens come in a header or a body.
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            tracing::warn!(door = "page", status = status.as_u16(), %method, path, "refused");
        }
        // The tty wire admits or refuses its client when that has negotiated.
        StatusCode::SWITCHING_PROTOCOLS if path != "/ws/tty" => {
            tracing::info!(door = "page", path, "admitted");
        }
        status if status.is_server_error() => {
            tracing::error!(door = "page", status = status.as_u16(), %method, path, "failed");
        }
        _ => {}
    }
    let socket = if site.0.options.secure { "wss" } else { "ws" };
    let own_socket = if site.is_ours(&host) { format!(" {socket}://{host}") } else { String::new() };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{own_socket}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Gives a request its pass, if it has one, and waits for all of its body.
async fn prepared(site: &Site, seat: &Seat, mut request: Request) -> Result<Request, Response> {
    let mut longest = BODY;
    // The tty wire has a credential of its own.
    if request.uri().path() != "/ws/tty"
        && let Some(pass) = site.pass(site.shown(request.headers()), seat).await?
    {
        longest = longest_body(&request);
        request.extensions_mut().insert(pass);
    }
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    match timeout(REQUEST, axum::body::to_bytes(body, longest)).await {
        Ok(Ok(body)) => Ok(Request::from_parts(parts, body.into())),
        Ok(Err(_)) => Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long")),
        Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the request did not come to its end in time")),
    }
}

/// Returns how long the body of a request with a pass may be.
fn longest_body(request: &Request) -> usize {
    match request.uri().path() {
        #[cfg(feature = "mcp")]
        super::mcp::PATH => crate::mcp::MESSAGE,
        path if api::is_below(path) => MAX_BODY,
        _ => BODY,
    }
}

/// Returns what is wrong with a request's host or origin.
fn suspect(site: &Site, request: &Request, host: &str) -> Option<&'static str> {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().count() != 1 || !site.is_ours(host) {
        return Some("this server does not go by that name");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (Some(origin), None) => {
            let watches = request.uri().path().starts_with("/ws/alis");
            let ours = origin
                .to_str()
                .is_ok_and(|origin| site.is_own_origin(origin) || (watches && site.is_player(origin)));
            (!ours).then_some("other pages have no business here")
        }
        (Some(_), Some(_)) => Some("a request comes from one place"),
        (None, _) => {
            // A browser sends an origin whenever it matters; other programs send a token.
            let matters = request.method() != Method::GET || headers.contains_key(header::UPGRADE);
            let why = match request.uri().path() {
                // Every page sends its origin here.
                "/ws/tty" => "a token is needed",
                _ => "say where you come from, or show a token",
            };
            (matters && bearer(headers).is_none()).then_some(why)
        }
    }
}

/// `POST /login {token}`: exchanges a token for a cookie. A body of another form is refused like a
/// wrong token.
pub(super) async fn log_in(
    State(site): State<Site>,
    Extension(seat): Extension<Seat>,
    Json(body): Json<Body<Login>>,
) -> Response {
    let token = match &body {
        Body::Object(Login { token }) if token.len() <= TOKEN => token,
        _ => "",
    };
    let pass = match site.pass(site.known(token), &seat).await {
        Ok(Some(pass)) => pass,
        Ok(None) => return refuse(StatusCode::FORBIDDEN, "the token is wrong, or no longer good"),
        Err(refusal) => return refusal,
    };
    let Ok(secret) = tapdeck_host::registry::new_token() else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "no randomness to be had");
    };
    let secure = if site.0.options.secure { "; Secure" } else { "" };
    let cookie = format!("{}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}", site.0.cookie);
    let mut logins = site.logins();
    if logins.0.len() >= LOGINS {
        logins.0.pop_front();
    }
    logins.0.push_back((secret, token.to_owned()));
    drop(logins);
    ([(header::SET_COOKIE, cookie)], scope_of(&site, &pass)).into_response()
}

/// `GET /login`: returns what the cookie allows.
pub(super) async fn logged_in(State(site): State<Site>, pass: Pass) -> Response {
    scope_of(&site, &pass).into_response()
}

/// Returns the most that the page offers to a pass's bearer, and the themes.
fn scope_of(site: &Site, pass: &Pass) -> Json<LoggedIn> {
    let scope = if site.may_open(pass) {
        PageScope::Open
    } else if pass.authority.grants(Right::Drive) {
        PageScope::Attach
    } else {
        PageScope::Observe
    };
    let themes = &site.0.options.themes;
    let named = |(name, theme): &(String, Theme)| NamedTheme {
        name: name.clone(),
        light: theme.is_light(),
        colours: paint_theme(theme),
    };
    let all = themes.all.iter().map(named).collect();
    Json(LoggedIn { scope, theme: themes.usual.clone(), themes: all })
}

/// A theme as a painter asks for it.
fn paint_theme(theme: &Theme) -> PaintTheme {
    let hex = |Rgb(r, g, b)| Hex(r, g, b);
    PaintTheme {
        fg: hex(theme.foreground),
        bg: hex(theme.background),
        cursor: hex(theme.cursor),
        ansi: theme.ansi.map(hex),
    }
}

/// `DELETE /login`: revokes the cookie.
pub(super) async fn log_out(State(site): State<Site>, headers: HeaderMap) -> Response {
    if let Some(cookie) = site.cookie(&headers) {
        site.logins().0.retain(|(secret, _)| !same(secret.as_bytes(), cookie.as_bytes()));
    }
    let gone = format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict", site.0.cookie);
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response()
}
