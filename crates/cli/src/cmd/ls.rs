//! `tapdeck ls`: the live sessions.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{AgentState, Exit, SessionState, Status};
use tapdeck_serve::client::{Described, Said, describe_all};

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::sessions::alive;

/// List live sessions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck ls
  tapdeck ls --json | jq '.[].socket'")]
pub(crate) struct LsArgs {
    /// Everything there is to say, with the sockets, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &LsArgs) -> Result {
    let (_, listings) = alive()?;
    let sessions = describe_all(&listings, "ls");
    if args.json {
        print_json(&sessions);
        return Ok(Ending::Done);
    }
    let mut rows = vec![
        ["ID", "NAME", "SIZE", "AGE", "DRIVER", "CLIENTS", "STATE", "COMMAND"].map(str::to_owned).to_vec(),
    ];
    rows.extend(sessions.iter().map(row));
    let widths: Vec<usize> =
        (0..7).map(|i| rows.iter().map(|r| tapdeck_term::text_width(&r[i])).max().unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width.saturating_sub(tapdeck_term::text_width(cell)) + 2));
        }
        line.push_str(&row[7]);
        print(format_args!("{}\n", line.trim_end()));
    }
    Ok(Ending::Done)
}

fn row(session: &Described) -> Vec<String> {
    let about = &session.about;
    let status = session.status();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let age = |status: &Status| human::duration(Duration::from_secs(status.age_ms / 1000));
    [
        about.id.clone(),
        or_dash(about.name.clone()),
        or_dash(status.map(|s| format!("{}x{}", s.cols, s.rows_n))),
        or_dash(status.map(age)),
        or_dash(status.and_then(|s| s.driver.clone())),
        status.map_or(0, |s| s.clients.len()).to_string(),
        state(&session.said),
        about.command.join(" "),
    ]
    .map(|cell| human::printable(&cell))
    .to_vec()
}

fn state(said: &Said) -> String {
    let status = match said {
        Said::Status(status) => status,
        Said::Silent { state, .. } => return (*state).to_owned(),
    };
    let state = status.state.name();
    match &status.exit {
        Some(Exit { signal: Some(signal), .. }) => format!("{state} SIG{signal}"),
        Some(Exit { code, .. }) => format!("{state} {code}"),
        // The state of an agent tells more than that it runs.
        None if status.state == SessionState::Running && status.agent_state != AgentState::Unknown => {
            status.agent_state.name().to_owned()
        }
        None => state.to_owned(),
    }
}
