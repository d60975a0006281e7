//! The stick between requests. A session gives the stick to a connection, and HTTP has none that
//! lasts: so the server keeps one for a while, for each credential and session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use tapdeck_core::{Need, Time};
use tapdeck_proto::api::{Lease, Take};
use tapdeck_proto::bus;

use super::input::Body;
use super::sessions::{NAME, find};
use super::{At, Refusal};
use crate::client::{ANSWER, Bus, connect_to_watch};
use crate::live::role_on_bus;
use crate::web::Site;
use crate::web::guard::Pass;

/// How long the stick is held, unless told otherwise, and at most.
const LEASE: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_mins(10);
/// The most sticks that are held.
const STICKS: usize = 64;

/// The sticks that are held, by token and session.
#[derive(Default)]
pub(super) struct Sticks(Mutex<HashMap<(String, String), Arc<Held>>>);

/// A stick that is held.
pub(super) struct Held {
    bus: Mutex<Bus>,
    lease: Duration,
    /// When it is given up.
    until: Mutex<Time>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    /// Uses the connection that holds it, which serves one request at a time.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Bus) -> Result<T, Refusal>) -> Result<T, Refusal> {
        match self.bus.try_lock() {
            Ok(mut bus) => act(&mut bus),
            Err(TryLockError::Poisoned(bus)) => act(&mut bus.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Refusal::conflict("another request of yours drives this session; wait for its end"))
            }
        }
    }
}

impl Site {
    /// Returns the stick that the bearer of a token holds at a session, and renews its lease.
    pub(super) fn held(&self, token: &str, session: &str) -> Option<Arc<Held>> {
        let now = self.0.clock.now().mono;
        let key = (token.to_owned(), session.to_owned());
        let held = lock(&self.0.api.sticks.0).get(&key).cloned()?;
        let mut until = lock(&held.until);
        if now >= *until {
            return None;
        }
        *until = now + held.lease;
        drop(until);
        Some(held)
    }

    /// Gives the stick up when its lease is over or its credential revoked.
    async fn mind(self, pass: Pass, session: String, held: Arc<Held>) {
        let over = async {
            loop {
                let left = lock(&held.until).since(self.0.clock.now().mono);
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left).await;
            }
        };
        let _ = self.while_valid(&pass, over).await;
        let mut sticks = lock(&self.0.api.sticks.0);
        let key = (pass.token, session);
        if sticks.get(&key).is_some_and(|now| Arc::ptr_eq(now, &held)) {
            sticks.remove(&key);
        }
    }
}

pub(super) async fn take(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Body(Take { lease_ms }): Body<Take>,
) -> Result<Json<Lease>, Refusal> {
    site.allow(&pass, Need::Drive, false)?;
    let lease = lease_ms.map_or(LEASE, Duration::from_millis).clamp(Duration::from_secs(1), LONGEST);
    let role = role_on_bus(pass.authority.role());
    let (asked, token) = (site.0.clone(), pass.token.clone());
    let taken = site.call(&pass, move || {
        let listing = find(&id)?;
        let mut bus = connect_to_watch(&listing, NAME, role)?;
        let taken = bus.request(&bus::Take, ANSWER)?;
        let until = Mutex::new(asked.0.clock.now().mono + lease);
        let held = Arc::new(Held { bus: Mutex::new(bus), lease, until });
        let mut sticks = lock(&asked.0.api.sticks.0);
        let key = (token, listing.id.clone());
        if sticks.len() >= STICKS && !sticks.contains_key(&key) {
            return Err(Refusal::too_many("sticks"));
        }
        sticks.insert(key, Arc::clone(&held));
        Ok((taken, listing.id, held))
    });
    let (taken, session, held) = taken.await?;
    // The task keeps no seat: the stick is held by the credential and not by the connection.
    tokio::spawn(site.0.clone().mind(pass.without_seat(), session, held));
    let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(Lease { driver: taken.driver, fence: taken.fence, lease_ms }))
}

pub(super) async fn release(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
) -> Result<Json<bus::Released>, Refusal> {
    site.allow(&pass, Need::Drive, false)?;
    let (asked, token) = (site.0.clone(), pass.token.clone());
    let released = site.call(&pass, move || {
        let listing = find(&id)?;
        let held = lock(&asked.0.api.sticks.0).remove(&(token, listing.id));
        let held = held.ok_or_else(|| Refusal::conflict("you do not hold the stick; take it first"))?;
        held.with(|bus| Ok(bus.request(&bus::Release, ANSWER)?))
    });
    Ok(Json(released.await?))
}
