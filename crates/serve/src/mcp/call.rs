//! One call of a client: who calls, what it may do, and the thread that it runs on.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam};
use rmcp::service::RequestContext;
use rustix::net::{Shutdown, shutdown};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::access::{Access, Allow};
use super::server::{Handler, Shared};
use crate::client::{Bus, ClientError, FindError, WaitError};

/// How often a client hears that its call still runs, if it asked for that.
const PROGRESS: Duration = Duration::from_secs(5);

/// Why a call failed, in words for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) why: String,
    /// The connection to the session is of no more use.
    pub(super) is_gone: bool,
}

impl Refusal {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_gone: false }
    }
}

impl From<FindError> for Refusal {
    fn from(e: FindError) -> Self {
        Self::new(format!("{e}; list_sessions shows the sessions"))
    }
}

impl From<ClientError> for Refusal {
    fn from(e: ClientError) -> Self {
        let is_gone = matches!(e, ClientError::Ended | ClientError::Io(_) | ClientError::NotListening(_));
        let why = match e {
            ClientError::Denied(why) if why.ends_with(" drives") => format!(
                "refused: {why}. Only one client types at a time, and a person goes first: wait until \
                 the session is free, or ask that person to release it."
            ),
            e => e.to_string(),
        };
        Self { why, is_gone }
    }
}

impl From<WaitError> for Refusal {
    fn from(e: WaitError) -> Self {
        match e {
            WaitError::Client(e) => e.into(),
            e => Self::new(e.to_string()),
        }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(e: std::io::Error) -> Self {
        Self::new(e.to_string())
    }
}

/// The client that calls.
#[derive(Clone)]
pub(super) struct Caller {
    /// Its name on the bus: `mcp:claude-code`.
    pub(super) name: String,
    /// What it may do.
    pub(super) allow: Allow,
    /// Its credential, if it came over HTTP.
    pub(super) access: Option<Access>,
}

impl Caller {
    /// Tells clients apart that may have the same name.
    pub(super) fn key(&self) -> (String, String) {
        (self.access.as_ref().map(|access| access.key.clone()).unwrap_or_default(), self.name.clone())
    }

    /// Waits until its credential is revoked, if it has one.
    pub(super) async fn revoked(&self) {
        match &self.access {
            Some(access) => (access.revoked)().await,
            None => std::future::pending().await,
        }
    }
}

/// What the thread of a call has.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Caller,
    cancelled: Arc<AtomicBool>,
    /// The connections that are shut when the call is cancelled, so that no thread waits on.
    lines: Arc<Mutex<Vec<(u64, OwnedFd)>>>,
}

impl Call {
    pub(super) fn new(shared: Arc<Shared>, caller: Caller) -> Self {
        Self { shared, caller, cancelled: Arc::default(), lines: Arc::default() }
    }

    /// Returns whether the client no longer waits for the result.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        for (_, line) in self.lines.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A connection that has ended needs no end.
            let _ = shutdown(line, Shutdown::Both);
        }
    }

    /// Shuts a connection when the call is cancelled while `work` uses it.
    pub(super) fn while_called<T>(
        &self,
        bus: &mut Bus,
        work: impl FnOnce(&mut Bus) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let line = bus.fd().try_clone_to_owned()?;
        let lines = || self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let number = {
            let mut lines = lines();
            let number = lines.last().map_or(0, |(number, _)| number + 1);
            lines.push((number, line));
            number
        };
        if self.is_cancelled() {
            self.cancel();
        }
        let done = work(bus);
        lines().retain(|(n, _)| *n != number);
        done
    }
}

/// Cancels a call whose future is dropped: then nothing waits for its result.
struct CancelOnDrop(Call);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Handler {
    /// Does blocking work for a client on a thread, for no longer than `limit`. It ends early when
    /// the client cancels the call or its credential is revoked; the thread follows by itself.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        limit: Duration,
        work: impl FnOnce(&Call) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let caller = self.caller(context)?;
        let shared = self.shared();
        let seat = Arc::clone(&shared.calls).try_acquire_owned();
        let seat = seat.map_err(|_| Refusal::new("too many calls run at once: wait for one to end"))?;
        let call = Call::new(shared, caller);
        let guard = CancelOnDrop(call.clone());
        let thread = tokio::task::spawn_blocking(move || {
            let _seat = seat;
            work(&call)
        });
        tokio::select! {
            done = thread => done.map_err(|e| Refusal::new(format!("the call failed: {e}")))?,
            () = context.ct.cancelled() => Err(Refusal::new("cancelled")),
            () = guard.0.caller.revoked() => Err(Refusal::new("the credential is no longer good")),
            () = report_progress(context) => Err(Refusal::new("cancelled")),
            () = sleep(limit) => {
                Err(Refusal::new(format!("the session did not answer within {} s", limit.as_secs())))
            }
        }
    }
}

/// Tells a client that asked for progress that its call still runs, so that its own limit does not
/// end a wait. Returns when the client is gone.
async fn report_progress(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let mut beat = interval(PROGRESS);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.tick().await;
    let mut seconds = 0.0;
    loop {
        beat.tick().await;
        seconds += PROGRESS.as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds).with_message("still waiting");
        if context.peer.notify_progress(progress).await.is_err() {
            return;
        }
    }
}

/// The result of a tool: what it returned, or why it failed, for the model to read.
pub(super) fn result(done: Result<CallToolResult, Refusal>) -> CallToolResult {
    done.unwrap_or_else(|refusal| CallToolResult::error(vec![ContentBlock::text(refusal.why)]))
}
