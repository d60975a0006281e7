//! Every message that crosses a process boundary, as a type.
//!
//! This crate turns messages into bytes and back. It does no I/O and makes no decisions: servers
//! and clients of a session share these types, so that they cannot disagree on a field.
//!
//! | module | protocol | format |
//! | --- | --- | --- |
//! | [`bus`] | the text bus of a live session | lines of `VERB[#id] payload`, JSON |
//! | [`attach`] | the attach wire's control messages | JSON in chunks |
//! | [`tty`] | the tty wire over a network: negotiation and control messages | JSON in chunks |
//! | [`broker`] | turns across sessions | MessagePack in frames |
//! | [`page`] | the page: lists, and recordings that are played | lines of `VERB payload`, JSON |
//! | [`api`] | the HTTP API of the page's server | JSON bodies, server-sent events |
//! | [`acp`] | the Agent Client Protocol | lines of JSON-RPC |
//! | [`agentapi`] | the HTTP interface of coder/agentapi | JSON bodies, server-sent events |
//! | [`snapshot`] | announcements of file system snapshots to the recorder | SSZ in frames |

pub mod acp;
pub mod agentapi;
pub mod api;
pub mod attach;
pub mod broker;
pub mod bus;
mod fields;
pub mod page;
#[cfg(feature = "schema")]
pub mod schema;
pub mod snapshot;
pub mod tty;

pub use fields::PayloadError;
