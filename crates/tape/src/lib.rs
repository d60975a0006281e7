//! Recordings: events to bytes and back.
//!
//! Everything here works over slices and `std::io` traits that the caller opened: no file is created, no
//! clock is read, nothing is paced and nothing is decided. A codec returns bytes and others write them.
//! What a file says is never trusted: every length is bounded before memory is taken for it, a damaged
//! part costs what it covers, and every message names the position that it speaks of.

pub mod ahr;
mod base64;
mod error;
pub mod meta;

pub use error::{Error, Place, Result};
