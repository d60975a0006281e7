//! The way to a session's model and to its driver, never to both at once.
//!
//! The driver may be waiting for the model, so code that holds the model must not wait for the
//! driver. [`Access::look`] borrows the only way to the driver while the model is held, so code
//! that uses both does not compile.

use std::sync::Arc;

use tapdeck_core::turns::Turn;
use tapdeck_core::{Offset, Time};
use tapdeck_host::{Glass, Handle, Look};
use tapdeck_proto::bus::About;

use crate::broker::Wrapper;

/// A session's model and driver. A thread that needs both has an `Access` of its own.
#[derive(Clone)]
pub(crate) struct Access {
    handle: Handle,
    glass: Glass,
}

impl Access {
    pub(super) fn new(handle: Handle, glass: Glass) -> Self {
        Self { handle, glass }
    }

    /// Holds the model, brought up to the log's end.
    pub(crate) fn look(&mut self) -> Look<'_> {
        self.glass.look(&self.handle)
    }

    /// Returns the way to the driver.
    pub(crate) fn driver(&self) -> &Handle {
        &self.handle
    }

    /// Returns the name of the client that holds the stick. Asks the driver.
    pub(super) fn holder(&self) -> Option<String> {
        self.handle.holder().ok().flatten().map(|name| name.to_string())
    }

    /// Returns the generation of the newest screen known to the model, without holding the model.
    pub(super) fn generation(&self) -> u64 {
        self.glass.generation()
    }

    /// Returns when the detector wants to look next.
    pub(super) fn look_at(&self) -> Option<Time> {
        self.glass.look_at()
    }

    /// Returns the offset in the output up to which the model has read.
    pub(super) fn seen(&self) -> Offset {
        self.glass.seen()
    }

    /// Returns whether the log has more than the model has read.
    pub(super) fn is_behind(&self) -> bool {
        self.glass.is_behind()
    }

    /// Registers the session with the broker, if there is one and turns are looked for.
    pub(super) fn join_broker(&mut self, about: &About, past: Vec<Arc<Turn>>) -> Option<Wrapper> {
        let program = about.command.first().map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or(program);
        let pattern = self.look().detector().map(|d| d.rules().pattern(program))?;
        Wrapper::join(&about.id, &pattern, self.clone(), past.into_iter())
    }
}
