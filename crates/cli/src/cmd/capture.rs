//! `tapdeck capture`: captures a turn at the broker.

use clap::Args;
use serde_json::json;
use tapdeck_proto::broker::{Answer, Request};
use tapdeck_serve::broker::BrokerClient;

use crate::ending::{Ending, print, print_json};
use crate::failure::{Failure, Result};
use crate::sessions::{find, id_or_name, split_turn_id};

/// Capture a session's last turn, or a turn by its id, at the broker.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck capture claude
  tapdeck capture 4711:3 --json")]
pub(crate) struct CaptureArgs {
    /// Id or name of a session, or the id of a turn [default: the only session]
    #[arg(value_name = "SESSION|TURN")]
    what: Option<String>,
    /// Print the captured turn as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &CaptureArgs) -> Result {
    let mut broker = BrokerClient::connect()?;
    let (id, number) = match args.what.as_deref().map(split_turn_id) {
        Some((session, number)) => (id_or_name(session), number),
        None => (find(None)?.id, None),
    };
    let request = match number {
        Some(number) => Request::CaptureById { turn_id: format!("{id}:{number}") },
        None => Request::Capture { session: id },
    };
    let Answer::Turn { turn, .. } = broker.ask(&request)? else {
        return Err(Failure::io("the broker answered without a turn"));
    };
    if args.json {
        print_json(&json!(turn));
    } else {
        let cut = if turn.truncated { ", not all of the answer" } else { "" };
        print(format_args!(
            "captured {}, {}{cut}\n",
            turn.turn_id,
            crate::human::count(turn.byte_length, "byte")
        ));
    }
    Ok(Ending::Done)
}
