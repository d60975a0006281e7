//! Probes: reading the facts that only an agent's screen shows. How is data (`agents/*.toml`): what
//! to start, what shows that it is ready, which keys to send, when the panel is complete and what
//! to read off it. A panel counts only if it was written after the keys were sent, has everything
//! that is needed and stands still.

mod flow;
mod machine;
mod parse;
mod run;

pub use flow::{Agent, FlowError, Probe, agent};
pub use parse::{Facts, Status};
pub use run::{ProbeOptions, Probed, probe, probe_folder, read_cassette};
