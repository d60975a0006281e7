//! `tapdeck ls`: the live sessions.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tapdeck_serve::client::describe_all;

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
    let sessions: Vec<Value> = describe_all(&listings, "ls");
    if args.json {
        print_json(&Value::from(sessions));
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

fn row(session: &Value) -> Vec<String> {
    let text = |key: &str| session[key].as_str().unwrap_or("-").to_owned();
    let number = |key: &str| session[key].as_u64();
    let size = match (number("cols"), number("rows_n")) {
        (Some(cols), Some(rows)) => format!("{cols}x{rows}"),
        _ => "-".into(),
    };
    let age = number("age_ms").map_or("-".into(), |ms| human::duration(Duration::from_secs(ms / 1000)));
    let clients = session["clients"].as_array().map_or(0, Vec::len).to_string();
    let state = match (text("state"), &session["exit"]) {
        (state, Value::Object(exit)) => match exit.get("signal").and_then(Value::as_str) {
            Some(signal) => format!("{state} SIG{signal}"),
            None => format!("{state} {}", exit.get("code").cloned().unwrap_or_default()),
        },
        // What it is doing says more than that it runs.
        (state, _) if state == "running" => match session["agent_state"].as_str() {
            Some(agent) if agent != "unknown" => agent.to_owned(),
            _ => state,
        },
        (state, _) => state,
    };
    let command: Vec<&str> =
        session["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    [text("id"), text("name"), size, age, text("driver"), clients, state, command.join(" ")]
        .map(|cell| human::printable(&cell))
        .to_vec()
}
