//! The broker: turns across sessions, in frames of MessagePack.
