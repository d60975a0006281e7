//! Views of a session in the user's terminal.

pub(crate) mod crop;
pub(crate) mod detach_keys;
