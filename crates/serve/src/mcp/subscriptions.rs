//! Subscriptions: a client hears that a screen or a conversation has changed, at a bounded rate,
//! and reads it again when it wants to.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::{Event, Frames, Push, Sub};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::call::{Call, Caller, Refusal};
use super::resources::Place;
use super::server::Handler;
use crate::client::ANSWER;

/// The least time between two messages about one resource.
const QUIET: Duration = Duration::from_millis(500);
/// The most resources that one client follows.
const FOLLOWED: usize = 32;
/// How often a thread looks whether its client is gone.
const LOOK: Duration = Duration::from_millis(500);

/// Returns what can be followed: screens and turns.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let known = uris.filter(|uri| watched(uri).is_some()).take(FOLLOWED).cloned();
    SubscriptionFilter::builder().resource_subscriptions(known).build()
}

/// Returns the session of a resource that can be followed, and whether it is a screen.
fn watched(uri: &str) -> Option<(String, bool)> {
    match Place::parse(uri)? {
        Place::Screen(session) => Some((session, true)),
        Place::Turns(session) => Some((session, false)),
        Place::Recording(_) => None,
    }
}

/// The way to a client.
enum Way {
    /// An older client, which subscribed to one resource.
    Peer(Peer<RoleServer>),
    /// A newer one, with a stream of its own.
    Sink(SubscriptionSink),
}

impl Way {
    /// Tells of a change. Returns `false` when the client is gone.
    async fn tell(&self, uri: &str) -> bool {
        match self {
            Way::Peer(peer) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
            }
            Way::Sink(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// Cancels the thread of a subscription whose task ends.
struct Cancels(Call);

impl Drop for Cancels {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Handler {
    /// Follows one resource for an older client, until it unsubscribes or leaves.
    pub(super) fn follow(&self, uri: String, context: &RequestContext<RoleServer>) -> Result<(), Refusal> {
        let caller = self.caller(context)?;
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|_, task| !task.is_finished());
        if followed.len() >= FOLLOWED {
            return Err(Refusal::new(format!("at most {FOLLOWED} resources can be followed at once")));
        }
        let task = self.task(uri.clone(), caller, Way::Peer(context.peer.clone()))?;
        if let Some(former) = followed.insert(uri, tokio::spawn(task).abort_handle()) {
            former.abort();
        }
        Ok(())
    }

    pub(super) fn unfollow(&self, uri: &str) {
        let task = self.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        if let Some(task) = task {
            task.abort();
        }
    }

    pub(super) fn unfollow_all(&self) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.drain().for_each(|(_, task)| task.abort());
    }

    /// Follows all resources of a newer client's stream, until it ends the stream.
    pub(super) async fn follow_all(&self, context: &SubscriptionContext) -> Result<(), Refusal> {
        let caller = self.caller(context.request_context())?;
        let mut tasks = tokio::task::JoinSet::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten().take(FOLLOWED) {
            tasks.spawn(self.task(uri.clone(), caller.clone(), Way::Sink(context.sink().clone()))?);
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = caller.revoked() => {}
        }
        Ok(())
    }

    /// Makes the task that tells a client of each change of a resource.
    fn task(
        &self,
        uri: String,
        caller: Caller,
        way: Way,
    ) -> Result<impl Future<Output = ()> + Send + 'static, Refusal> {
        let (session, is_screen) = watched(&uri)
            .ok_or_else(|| Refusal::new("only screens and turns of sessions can be followed"))?;
        let shared = self.shared();
        let seat = Arc::clone(&shared.subscriptions).try_acquire_owned();
        let seat = seat.map_err(|_| Refusal::new("too many resources are followed"))?;
        let call = Call::new(shared, caller);
        Ok(async move {
            let guard = Cancels(call.clone());
            let changed = Arc::new(Notify::new());
            let notify = Arc::clone(&changed);
            let mut thread = tokio::task::spawn_blocking(move || {
                let _seat = seat;
                let listing = call.find(Some(&session))?;
                follow(&call, &listing, is_screen, &notify)
            });
            loop {
                tokio::select! {
                    () = changed.notified() => {}
                    () = guard.0.caller.revoked() => return,
                    ended = &mut thread => {
                        if !matches!(ended, Ok(Ok(()))) {
                            tracing::debug!(uri, "a subscription has failed");
                        }
                        // The end of a session changes its last screen, too.
                        way.tell(&uri).await;
                        return;
                    }
                }
                if !way.tell(&uri).await {
                    return;
                }
                // Changes meanwhile are told as one.
                sleep(QUIET).await;
            }
        })
    }
}

/// Notes each change of a session's screen or turns, until its program ends.
fn follow(call: &Call, listing: &Listing, is_screen: bool, changed: &Notify) -> Result<(), Refusal> {
    let mut bus = call.watch(listing)?;
    let frames = if is_screen { Frames::Delta } else { Frames::None };
    bus.request(&Sub { frames, out: false, max_fps: Some(2), looks: false, ..Sub::default() }, ANSWER)?;
    while !call.is_cancelled() {
        match bus.next(Some(LOOK))?.and_then(|frame| frame.push()) {
            Some(Push::Frame(_)) if is_screen => changed.notify_one(),
            Some(Push::Event(Event::Turn(_))) if !is_screen => changed.notify_one(),
            Some(Push::Event(Event::Closed { .. })) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}
