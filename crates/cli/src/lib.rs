//! The terminal views of the `tapdeck` command, as a library for the command itself and for its
//! benchmarks. Programs of others use the crate `tapdeck`.

#![allow(
    missing_debug_implementations,
    reason = "the views hold terminals and threads, and only the command uses them"
)]

pub mod color;
pub mod human;
pub mod instructions;
pub mod keymap;
pub mod render;
pub mod tape;
#[cfg(feature = "tui")]
pub mod ui;
