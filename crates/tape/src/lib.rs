//! Recordings: events to bytes and back.
