//! `tapdeck ls`: the live sessions.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{AgentState, Exit, SessionState, Status};
use tapdeck_serve::client::{Described, Said, describe_all};
use tapdeck_term::text_width;

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human::{self, shortened};
use crate::sessions::alive;

/// List live sessions.
#[derive(Args)]
#[command(after_help = "\
In a narrow terminal, ls leaves out the less important columns.

Examples:
  tapdeck ls
  tapdeck ls -q | xargs -n 1 tapdeck peek
  tapdeck ls --json | jq '.[].socket'")]
pub(crate) struct LsArgs {
    /// Print only the ids, one per line
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print all details as JSON, including the sockets
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &LsArgs) -> Result {
    let (_, listings) = alive()?;
    if args.quiet {
        listings.iter().for_each(|listing| print(format_args!("{}\n", listing.id)));
        return Ok(Ending::Done);
    }
    let sessions = describe_all(&listings, "ls");
    if args.json {
        print_json(&sessions);
        return Ok(Ending::Done);
    }
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(sessions.iter().map(row));
    let terminal = std::io::stdout().is_terminal().then(tapdeck_host::terminal_size).flatten();
    let width = terminal.map(|size| usize::from(size.cols)).filter(|cols| *cols > 0);
    for line in table(&rows, width) {
        print(format_args!("{line}\n"));
    }
    Ok(Ending::Done)
}

const HEADINGS: [&str; 8] = ["ID", "NAME", "SIZE", "AGE", "DRIVER", "CLIENTS", "STATE", "COMMAND"];
/// The columns to leave out on a narrow terminal, in this order.
const LEAVE_OUT: [usize; 5] = [5, 2, 4, 3, 0];
/// The columns whose text may be cut.
const NAME: usize = 1;
const COMMAND: usize = 7;
/// The width that a cut column keeps.
const KEPT: usize = 10;
/// The space between two columns.
const GAP: usize = 2;

/// The lines of the table, no wider than the terminal.
fn table(rows: &[[String; 8]], width: Option<usize>) -> Vec<String> {
    let mut widths: [usize; 8] = std::array::from_fn(|column| {
        rows.iter().map(|row| text_width(&row[column])).max().unwrap_or_default()
    });
    let mut columns: Vec<usize> = (0..8).collect();
    if let Some(width) = width {
        let total = |columns: &[usize], widths: &[usize; 8]| {
            columns.iter().map(|c| widths[*c]).sum::<usize>() + GAP * columns.len().saturating_sub(1)
        };
        // What is over the width goes first from the command, then with whole columns, and at last
        // from the names.
        let least = |widths: &[usize; 8]| {
            let mut least = *widths;
            least[COMMAND] = least[COMMAND].min(KEPT);
            least
        };
        for column in LEAVE_OUT {
            let is_too_wide = total(&columns, &least(&widths)) > width;
            // A session without a name is known by its id alone.
            let needed = column == 0 && rows.iter().any(|row| row[NAME] == "-");
            if is_too_wide && !needed {
                columns.retain(|c| *c != column);
            }
        }
        for column in [COMMAND, NAME] {
            let over = total(&columns, &widths).saturating_sub(width);
            let floor = if column == COMMAND { KEPT } else { 1 };
            widths[column] = widths[column].saturating_sub(over).max(floor.min(widths[column]));
        }
    }
    let line = |row: &[String; 8]| {
        let mut line = String::new();
        for column in &columns {
            let cell = shortened(&row[*column], widths[*column]);
            let padding = widths[*column].saturating_sub(text_width(&cell)) + GAP;
            line.push_str(&cell);
            line.push_str(&" ".repeat(padding));
        }
        let line = line.trim_end();
        width.map_or_else(|| line.to_owned(), |width| shortened(line, width))
    };
    rows.iter().map(line).collect()
}

fn row(session: &Described) -> [String; 8] {
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
}

fn state(said: &Said) -> String {
    let status = match said {
        Said::Status(status) => status,
        Said::Silent { state, .. } => return (*state).to_owned(),
    };
    let recorded = if status.recording_error.is_some() { ", recording failed" } else { "" };
    format!("{}{recorded}", program_state(status))
}

fn program_state(status: &Status) -> String {
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
