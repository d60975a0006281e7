//! Nothing of its own: see `tests/less.rs`.
