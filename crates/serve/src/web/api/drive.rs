//! Requests that drive a session. Without the stick they come from a program, which never takes it
//! from a person; with it (see [`super::stick`]) they come from its holder.

use std::str::FromStr as _;
use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use tapdeck_core::Need;
use tapdeck_host::signals;
use tapdeck_proto::api::{self, PressKeys, TypeText};
use tapdeck_proto::bus::{self, Key, Typed, Typing};
use tapdeck_term::keys::KeyPress;

use super::input::Body;
use super::sessions::{NAME, find};
use super::{At, Refusal};
use crate::client::{self, ANSWER, Bus, Role, connect_to_watch};
use crate::live::role_on_bus;
use crate::web::Site;
use crate::web::guard::Pass;

/// The most keys of a request.
const KEYS: usize = 1000;
/// How long a step of a delivery may take, at most.
const LONGEST_STEP: Duration = Duration::from_mins(10);
/// How long an answer may take, unless told otherwise, and at most.
const ASK: Duration = Duration::from_mins(10);
const LONGEST_ASK: Duration = Duration::from_hours(1);

impl Site {
    /// Does something with a session that the bearer of a pass drives.
    async fn drive<T: Send + 'static>(
        &self,
        pass: &Pass,
        which: String,
        act: impl FnOnce(&mut Bus) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.allow(pass, Need::Drive, false)?;
        self.with_bus(pass, which, Role::Bot, act).await
    }

    /// Does something that needs the stick, or the right to administer.
    async fn command<T: Send + 'static>(
        &self,
        pass: &Pass,
        which: String,
        act: impl FnOnce(&mut Bus) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.allow(pass, Need::Watch, false)?;
        // The session itself checks the stick.
        let role = role_on_bus(pass.authority.role());
        if role == Role::Observer {
            self.allow(pass, Need::Administer, false)?;
        }
        self.with_bus(pass, which, role, act).await
    }

    /// Uses the connection that holds the stick for this bearer, or another one with this role.
    async fn with_bus<T: Send + 'static>(
        &self,
        pass: &Pass,
        which: String,
        role: Role,
        act: impl FnOnce(&mut Bus) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (site, token) = (self.clone(), pass.token.clone());
        self.call(pass, move || {
            let listing = find(&which)?;
            match site.held(&token, &listing.id) {
                Some(held) => held.with(act),
                None => act(&mut connect_to_watch(&listing, NAME, role)?),
            }
        })
        .await
    }
}

pub(super) async fn type_text(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(TypeText { text }): Body<TypeText>,
) -> Result<Json<Typed>, Refusal> {
    send_keys(&site, &pass, id, Typing { text: Some(text), ..Typing::default() }).await
}

pub(super) async fn press_keys(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(PressKeys { keys }): Body<PressKeys>,
) -> Result<Json<Typed>, Refusal> {
    if keys.len() > KEYS {
        return Err(Refusal::malformed("a request presses at most 1000 keys"));
    }
    for key in &keys {
        KeyPress::from_str(key).map_err(|e| Refusal::malformed(e.to_string()))?;
    }
    send_keys(&site, &pass, id, Typing { keys: Some(keys), ..Typing::default() }).await
}

async fn send_keys(site: &Site, pass: &Pass, id: String, typing: Typing) -> Result<Json<Typed>, Refusal> {
    let key = Key::Typed(Typing { confirm: true, ..typing });
    Ok(Json(site.drive(pass, id, move |bus| Ok(bus.request(&key, ANSWER)?)).await?))
}

pub(super) async fn paste(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(asked): Body<bus::Paste>,
) -> Result<Json<bus::Pasted>, Refusal> {
    let step = asked.wait_ms.map(|ms| Duration::from_millis(ms).min(LONGEST_STEP));
    let asked = bus::Paste { wait_ms: step.map(millis), ..asked };
    // There are four steps, of 15 s each by default.
    let within = step.unwrap_or(Duration::from_secs(15)) * 4 + ANSWER;
    Ok(Json(site.drive(&pass, id, move |bus| Ok(bus.request(&asked, within)?)).await?))
}

pub(super) async fn ask(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(asked): Body<api::Ask>,
) -> Result<Json<api::Asked>, Refusal> {
    let within = asked.timeout_ms.map_or(ASK, Duration::from_millis).min(LONGEST_ASK);
    let answered = site.drive(&pass, id, move |bus| Ok(client::ask(bus, &asked.text, within)?)).await?;
    Ok(Json(asked_of(answered)))
}

fn asked_of(asked: client::Asked) -> api::Asked {
    let outcome = match asked.outcome {
        client::AskOutcome::Answered => api::AskOutcome::Answered,
        client::AskOutcome::Blocked => api::AskOutcome::Blocked,
        client::AskOutcome::Undelivered => api::AskOutcome::Undelivered,
        client::AskOutcome::Timeout => api::AskOutcome::Timeout,
        client::AskOutcome::Ended => api::AskOutcome::Ended,
    };
    api::Asked {
        outcome,
        answer: asked.answer,
        turn_id: asked.turn_id,
        truncated: asked.truncated,
        interrupted: asked.interrupted,
        state: asked.state,
        question: asked.question,
        evidence: asked.evidence,
    }
}

pub(super) async fn answer(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(asked): Body<bus::Answer>,
) -> Result<Json<bus::Answered>, Refusal> {
    let step = asked.wait_ms.map_or(ANSWER, Duration::from_millis).min(LONGEST_STEP);
    let asked = bus::Answer { wait_ms: Some(millis(step)), ..asked };
    Ok(Json(site.drive(&pass, id, move |bus| Ok(bus.request(&asked, step + ANSWER)?)).await?))
}

pub(super) async fn resize(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(asked): Body<bus::Resize>,
) -> Result<Json<bus::Resized>, Refusal> {
    Ok(Json(site.command(&pass, id, move |bus| Ok(bus.request(&asked, ANSWER)?)).await?))
}

pub(super) async fn kill(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(asked): Body<bus::Kill>,
) -> Result<Json<bus::Nothing>, Refusal> {
    if let Some(name) = asked.signal.as_deref().filter(|name| signals::number(name).is_none()) {
        return Err(Refusal::malformed(format!("no signal is called {name:?}")));
    }
    Ok(Json(site.command(&pass, id, move |bus| Ok(bus.request(&asked, ANSWER)?)).await?))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
