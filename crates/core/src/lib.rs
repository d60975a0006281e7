//! The session as a state machine without I/O: event log, readers, talking stick, text decoding.
