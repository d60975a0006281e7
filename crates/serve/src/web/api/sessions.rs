//! Sessions: list, start, look and wait.

use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use regex::Regex;
use tapdeck_core::turns::AgentState;
use tapdeck_host::registry::Listing;
use tapdeck_proto::api::{
    ScreenFormat, ScreenQuery, SessionList, TurnList, TurnQuery, TurnsQuery, WaitQuery, Waited,
};
use tapdeck_proto::bus::{self, Ask, Explained, Info, InfoWanted, Snap};
use tapdeck_proto::page::{OpenSession, Started};

use super::input::{Body, Params};
use super::{At, Refusal};
use crate::client::{self, ANSWER, Bus, ClientError, Condition, Role, RowsFrom, Wait};
use crate::web::guard::Pass;
use crate::web::{Site, list as page_list, open as opener};

/// The name of the API's clients at a session.
pub(super) const NAME: &str = "api";
/// How long a wait lasts, unless told otherwise, and at most.
const WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// The longest regular expression.
const PATTERN: usize = 1000;

/// Finds the session that a client means.
pub(super) fn find(which: &str) -> Result<Listing, Refusal> {
    Ok(client::find(Some(which))?)
}

/// Connects to a session to look at it.
fn look(which: &str) -> Result<Bus, Refusal> {
    Ok(client::connect_to_watch(&find(which)?, NAME, Role::Observer)?)
}

impl Site {
    /// Asks a session something that every bearer of a pass may know.
    async fn ask<A>(&self, pass: &Pass, which: String, asked: A) -> Result<A::Reply, Refusal>
    where
        A: Ask + Send + 'static,
        A::Reply: Send + 'static,
    {
        self.call(pass, move || Ok(look(&which)?.request(&asked, ANSWER)?)).await
    }
}

pub(super) async fn list(site: At, pass: Pass) -> Result<Json<SessionList>, Refusal> {
    let sessions = site.call(&pass, || {
        let (_, listings) = client::alive().map_err(Refusal::internal)?;
        let described = client::describe_all(&listings, "api-list");
        Ok(described.into_iter().map(page_list::brief).collect())
    });
    Ok(Json(SessionList { sessions: sessions.await? }))
}

pub(super) async fn open(
    site: At,
    pass: Pass,
    Body(asked): Body<OpenSession>,
) -> Result<(StatusCode, Json<Started>), Refusal> {
    Ok((StatusCode::CREATED, Json(opener::open(site.0, pass, asked).await?)))
}

pub(super) async fn show(site: At, pass: Pass, Path(id): Path<String>) -> Result<Json<Info>, Refusal> {
    Ok(Json(site.ask(&pass, id, InfoWanted::Brief).await?))
}

pub(super) async fn explain(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
) -> Result<Json<Explained>, Refusal> {
    Ok(Json(site.ask(&pass, id, bus::Explain).await?))
}

pub(super) async fn screen(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Params(query): Params<ScreenQuery>,
) -> Result<Response, Refusal> {
    let ScreenQuery { format, scrollback, since } = query;
    let snap = Snap { ansi: format == ScreenFormat::Ansi, scrollback, since, ..Snap::default() };
    let screen = site.ask(&pass, id, snap).await?;
    let rows = match format {
        ScreenFormat::Json => return Ok(Json(screen).into_response()),
        ScreenFormat::Text => screen.lines.unwrap_or(screen.contents.rows),
        ScreenFormat::Ansi => screen.ansi.unwrap_or_default(),
    };
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

pub(super) async fn turns(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Params(query): Params<TurnsQuery>,
) -> Result<Json<TurnList>, Refusal> {
    let TurnsQuery { limit, whole } = query;
    Ok(Json(TurnList { turns: site.ask(&pass, id, bus::Turns { limit, whole }).await? }))
}

pub(super) async fn turn(
    site: At,
    pass: Pass,
    Path((id, number)): Path<(String, String)>,
    Params(query): Params<TurnQuery>,
) -> Result<Json<bus::Turn>, Refusal> {
    let number = match number.as_str() {
        "last" => None,
        number => {
            let wrong = |_| Refusal::malformed("a turn is named by its number, from 1, or as \"last\"");
            Some(number.parse().map_err(wrong)?)
        }
    };
    let asked = bus::WhichTurn { number, raw: query.raw, ..bus::WhichTurn::default() };
    let turn = site.call(&pass, move || match look(&id)?.request(&asked, ANSWER) {
        Err(ClientError::Denied(why)) => Err(Refusal::not_found(why)),
        turn => Ok(turn?),
    });
    Ok(Json(turn.await?))
}

pub(super) async fn wait(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Params(query): Params<WaitQuery>,
) -> Result<Json<Waited>, Refusal> {
    let timeout = query.timeout_ms.map_or(WAIT, Duration::from_millis).min(LONGEST_WAIT);
    let wait = Wait { condition: condition(&query)?, rows: RowsFrom::Screen, timeout };
    let met = site.call(&pass, move || Ok(wait.run(&find(&id)?, NAME, None)?)).await?;
    Ok(Json(Waited { state: met.state, exit: met.exit }))
}

/// Returns the one condition of a query.
fn condition(query: &WaitQuery) -> Result<Condition, Refusal> {
    let WaitQuery { state, text, idle_ms, exit, .. } = query;
    match (state, text, idle_ms, exit) {
        (Some(states), None, None, false) => {
            let states = states.split(',').map(|state| state.parse::<AgentState>());
            let states = states.collect::<Result<_, _>>().map_err(|e| Refusal::malformed(e.to_string()))?;
            Ok(Condition::States(states))
        }
        (None, Some(text), None, false) if text.len() <= PATTERN => {
            let wrong = |e: regex::Error| Refusal::malformed(format!("text is no regular expression: {e}"));
            Ok(Condition::Text(Regex::new(text).map_err(wrong)?))
        }
        (None, None, Some(idle), false) => Ok(Condition::Idle(Duration::from_millis(*idle))),
        (None, None, None, true) => Ok(Condition::Exit),
        _ => Err(Refusal::malformed(
            "a wait takes exactly one of state, text (up to 1000 bytes), idle_ms and exit=true",
        )),
    }
}
