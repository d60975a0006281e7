//! Times of the wall clock in JSON, as a number of nanoseconds: for `#[serde(with = "…")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tapdeck_core::WallTime;

/// Writes a time.
///
/// # Errors
/// When the serialiser fails.
pub fn serialize<S: Serializer>(time: &WallTime, to: S) -> Result<S::Ok, S::Error> {
    time.as_nanos().serialize(to)
}

/// Reads a time.
///
/// # Errors
/// When it is no number.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WallTime, D::Error> {
    u64::deserialize(from).map(WallTime::from_nanos)
}

/// A time that may be unknown, as a number or `null`.
pub mod option {
    use super::{Deserialize, Deserializer, Serialize, Serializer, WallTime};

    /// Writes a time.
    ///
    /// # Errors
    /// When the serialiser fails.
    pub fn serialize<S: Serializer>(time: &Option<WallTime>, to: S) -> Result<S::Ok, S::Error> {
        time.map(WallTime::as_nanos).serialize(to)
    }

    /// Reads a time.
    ///
    /// # Errors
    /// When it is neither a number nor `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WallTime>, D::Error> {
        Ok(Option::deserialize(from)?.map(WallTime::from_nanos))
    }
}
