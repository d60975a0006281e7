//! A user's side elsewhere: two bounded queues between a session's driver and the thread that
//! carries its bytes on.
//!
//! The driver stops reading the program when the client does not take its output, exactly as for a
//! slow terminal, so a slow client slows its own session and loses nothing. The client's end waits
//! by [`std::task::Waker`]: any runtime can carry the bytes, and this crate needs none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tapdeck_core::{Stream, WinSize};

use super::Typed;
use crate::inbox::Handle;

/// Output that may wait for the client before the program is made to wait.
const OUTPUT_LIMIT: usize = 256 * 1024;
/// Input that may wait for the driver before the client is made to wait.
const INPUT_LIMIT: usize = 64 * 1024;

/// What is known of the user at a client's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserProfile {
    /// The user types, so the program's terminal echoes.
    pub types: bool,
    /// A terminal there answers the program's queries.
    pub answers: bool,
    /// The session goes on when the client is gone.
    pub stays: bool,
}

/// The session has ended, and everything it wrote has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is over")]
pub struct QueuesClosed;

/// What came from the client, in its order.
enum Given {
    Bytes(Bytes),
    Size(WinSize),
}

#[derive(Default)]
struct State {
    output: VecDeque<(Stream, Bytes)>,
    output_len: usize,
    input: VecDeque<Given>,
    input_len: usize,
    /// No more input will come.
    input_ended: bool,
    /// The client is gone; the driver has been told once `told` is set.
    gone: bool,
    told: bool,
    /// The session is over.
    closed: bool,
    /// The driver waits for room.
    starved: bool,
    wants_output: Option<Waker>,
    wants_room: Option<Waker>,
    driver: Option<Handle>,
}

type Shared = Arc<Mutex<State>>;

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The client's end.
pub struct UserQueues(Shared);

crate::opaque::opaque_debug!(UserQueues);

/// The driver's end.
pub struct QueueSide {
    shared: Shared,
    profile: UserProfile,
}

crate::opaque::opaque_debug!(QueueSide);

pub(super) fn pair(profile: UserProfile) -> (QueueSide, UserQueues) {
    let shared = Shared::default();
    (QueueSide { shared: Arc::clone(&shared), profile }, UserQueues(shared))
}

impl UserQueues {
    /// Takes the output that waits, in order; waits for some if there is none.
    pub fn poll_output(
        &self,
        cx: &mut Context<'_>,
        into: &mut Vec<(Stream, Bytes)>,
    ) -> Poll<Result<(), QueuesClosed>> {
        let mut state = lock(&self.0);
        if state.output.is_empty() {
            if state.closed {
                return Poll::Ready(Err(QueuesClosed));
            }
            state.wants_output = Some(cx.waker().clone());
            return Poll::Pending;
        }
        into.extend(state.output.drain(..));
        state.output_len = 0;
        if std::mem::take(&mut state.starved) {
            wake_driver(state);
        }
        Poll::Ready(Ok(()))
    }

    /// Waits for room for input.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), QueuesClosed>> {
        let mut state = lock(&self.0);
        if state.closed {
            return Poll::Ready(Err(QueuesClosed));
        }
        if state.input_len < INPUT_LIMIT {
            return Poll::Ready(Ok(()));
        }
        state.wants_room = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Gives input to the program. A caller that has not waited for room first keeps it short.
    pub fn push(&self, bytes: Bytes) {
        let mut state = lock(&self.0);
        if !state.closed && !state.input_ended && !bytes.is_empty() {
            state.input_len += bytes.len();
            state.input.push_back(Given::Bytes(bytes));
            wake_driver(state);
        }
    }

    /// Says that the terminal has another size, behind what was typed before and ahead of what is
    /// typed after.
    pub fn resize(&self, size: WinSize) {
        let mut state = lock(&self.0);
        // Of sizes with nothing in between, the last one counts.
        if let Some(Given::Size(last)) = state.input.back_mut() {
            *last = size;
        } else if !state.closed {
            state.input.push_back(Given::Size(size));
        }
        wake_driver(state);
    }

    /// Says that no more input will come.
    pub fn end_input(&self) {
        let mut state = lock(&self.0);
        state.input_ended = true;
        wake_driver(state);
    }
}

impl Drop for UserQueues {
    /// The client is gone: what waits for it is let go.
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.gone = true;
        state.output.clear();
        state.output_len = 0;
        wake_driver(state);
    }
}

fn wake_driver(state: MutexGuard<'_, State>) {
    let driver = state.driver.clone();
    drop(state);
    if let Some(driver) = driver {
        driver.nudge();
    }
}

impl QueueSide {
    pub(super) fn profile(&self) -> UserProfile {
        self.profile
    }

    pub(super) fn wake_by(&mut self, handle: &Handle) {
        lock(&self.shared).driver = Some(handle.clone());
    }

    pub(super) fn has_typed(&self, room: bool) -> bool {
        let state = lock(&self.shared);
        let input = !state.input.is_empty();
        (state.gone && !state.told && !(input && self.profile.stays))
            || (room && (!state.input.is_empty() || state.input_ended))
    }

    pub(super) fn is_blocked(&self) -> bool {
        let mut state = lock(&self.shared);
        let blocked = state.output_len >= OUTPUT_LIMIT;
        state.starved |= blocked;
        blocked
    }

    pub(super) fn backlog(&self) -> usize {
        lock(&self.shared).output_len
    }

    pub(super) fn read(&mut self) -> Typed {
        let mut state = lock(&self.shared);
        // What a client left behind for a program that goes on without it is still delivered.
        if state.gone && (state.input.is_empty() || !self.profile.stays) {
            if std::mem::replace(&mut state.told, true) {
                return Typed::Nothing;
            }
            return if self.profile.stays { Typed::Left } else { Typed::Gone };
        }
        match state.input.pop_front() {
            Some(Given::Bytes(bytes)) => {
                state.input_len -= bytes.len();
                let waker = state.wants_room.take();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
                return Typed::Bytes(bytes);
            }
            Some(Given::Size(size)) => return Typed::Resized(size),
            None => {}
        }
        // Said once.
        if std::mem::take(&mut state.input_ended) { Typed::End } else { Typed::Nothing }
    }

    pub(super) fn write(&mut self, stream: Stream, bytes: &Bytes) {
        let mut state = lock(&self.shared);
        if state.gone {
            return;
        }
        state.output_len += bytes.len();
        state.output.push_back((stream, bytes.clone()));
        let waker = state.wants_output.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn abandon(&mut self) {
        let mut state = lock(&self.shared);
        state.output.clear();
        state.output_len = 0;
    }
}

impl Drop for QueueSide {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.closed = true;
        // A handle holds the session's inbox, which holds nothing of ours; but there is no driver
        // to wake any more.
        state.driver = None;
        let wakers = [state.wants_output.take(), state.wants_room.take()];
        drop(state);
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: UserProfile = UserProfile { types: true, answers: true, stays: false };

    fn output(queues: &UserQueues) -> Poll<Result<Vec<(Stream, Bytes)>, QueuesClosed>> {
        let mut got = Vec::new();
        queues.poll_output(&mut Context::from_waker(Waker::noop()), &mut got).map_ok(|()| got)
    }

    #[test]
    fn output_is_bounded_by_the_driver_and_survives_its_end() {
        let (mut inside, queues) = pair(OWNER);
        assert!(output(&queues).is_pending());
        let piece = Bytes::from(vec![b'x'; OUTPUT_LIMIT]);
        inside.write(Stream::Out, &piece);
        assert!(inside.is_blocked());
        drop(inside);
        assert_eq!(output(&queues), Poll::Ready(Ok(vec![(Stream::Out, piece)])));
        assert_eq!(output(&queues), Poll::Ready(Err(QueuesClosed)));
    }

    #[test]
    fn input_comes_in_order_with_its_end_last_and_said_once() {
        let (mut inside, queues) = pair(OWNER);
        let mut cx = Context::from_waker(Waker::noop());
        queues.resize(WinSize::cells(1, 1));
        queues.resize(WinSize::cells(2, 2));
        queues.push(Bytes::from(vec![b'i'; INPUT_LIMIT]));
        assert!(queues.poll_room(&mut cx).is_pending());
        queues.end_input();
        assert!(inside.has_typed(true) && !inside.has_typed(false));
        assert!(matches!(inside.read(), Typed::Resized(size) if size == WinSize::cells(2, 2)));
        assert!(matches!(inside.read(), Typed::Bytes(b) if b.len() == INPUT_LIMIT));
        assert_eq!(queues.poll_room(&mut cx), Poll::Ready(Ok(())));
        assert!(matches!(inside.read(), Typed::End));
        assert!(matches!(inside.read(), Typed::Nothing) && !inside.has_typed(true));
    }

    #[test]
    fn what_was_typed_before_leaving_still_comes() {
        for stays in [false, true] {
            let (mut inside, queues) = pair(UserProfile { stays, ..OWNER });
            queues.push(Bytes::from_static(b"do it"));
            drop(queues);
            assert_eq!(inside.has_typed(false), !stays);
            assert!(inside.has_typed(true));
            assert_eq!(matches!(inside.read(), Typed::Bytes(b) if b == "do it"), stays);
            if stays {
                assert!(inside.has_typed(false) && matches!(inside.read(), Typed::Left));
            }
        }
    }

    #[test]
    fn a_client_that_goes_is_noticed_even_while_nothing_is_read() {
        for (stays, left) in [(false, false), (true, true)] {
            let (mut inside, queues) = pair(UserProfile { stays, ..OWNER });
            inside.write(Stream::Out, &Bytes::from(vec![0; OUTPUT_LIMIT]));
            drop(queues);
            assert!(inside.has_typed(false) && !inside.is_blocked());
            assert_eq!(matches!(inside.read(), Typed::Left), left);
            assert!(!inside.has_typed(true), "said once");
        }
    }
}
