//! The command as its users meet it: real programs on real terminals.

#![allow(unreachable_pub, missing_docs, reason = "tests explain themselves by their names")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and take the time")]

#[cfg(feature = "mcp")]
mod acp;
#[cfg(feature = "web")]
mod agentapi;
mod agents;
#[cfg(feature = "mcp")]
mod agents_mcp;
mod agents_new;
mod answer;
#[cfg(feature = "web")]
mod api;
mod attach;
mod bombs;
mod branch;
mod broker;
#[cfg(feature = "web")]
mod browser;
mod bus;
mod cassette;
mod commands;
mod config;
mod contrib;
mod conversation;
mod convert;
#[cfg(feature = "hotkeys")]
mod desktop;
#[cfg(feature = "web")]
mod doctor;
mod edit;
#[cfg(feature = "encrypt")]
mod encrypted;
mod evidence;
mod exported_page;
mod failed_recording;
mod faults;
mod foreign;
mod help;
mod hidden_turns;
mod hostile;
mod instruct;
mod live;
#[cfg(feature = "net")]
mod log;
#[cfg(all(feature = "net", feature = "tui", feature = "web"))]
mod manual;
mod mark;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(all(feature = "mcp", feature = "net", feature = "web"))]
mod mcp_http;
#[cfg(all(feature = "net", feature = "web"))]
mod page;
mod pause;
#[cfg(feature = "raster")]
mod pictures;
#[cfg(all(feature = "docker", feature = "ssh"))]
mod places;
mod plain;
mod play;
mod play_sizes;
mod probe;
mod rec;
mod recordings;
mod repair;
mod scenario_runs;
mod scenarios;
mod scrub;
mod signals;
mod snapshot;
mod squad;
#[cfg(feature = "ssh")]
mod ssh_door;
#[cfg(all(feature = "net", feature = "ssh", feature = "web"))]
mod strangers;
mod support;
mod terminal;
mod transcripts;
mod turns;
mod under_tmux;
#[cfg(feature = "tui")]
mod view;
mod vttest;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "web")]
mod webdriver;
#[cfg(feature = "net")]
mod whole;
mod wire;
#[cfg(feature = "net")]
mod wire_crowd;
#[cfg(feature = "net")]
mod wire_guard;
#[cfg(feature = "net")]
mod wire_quic;
