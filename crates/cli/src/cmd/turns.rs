//! `tapdeck turns`: what was submitted at a program's prompts, and what it answered.

use std::io::Read;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tapdeck_core::base64;
use tapdeck_host::{Player, Source};
use tapdeck_proto::bus::{Role, Turns, WhichTurn};
use tapdeck_serve::client::ClientError;
use tapdeck_tape::{Container, Format, Item, Kind, TurnNumbers};
use tapdeck_term::Settings;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::keys::IdentityArgs;
use crate::screen::OutputStream;
use crate::sessions::{ANSWER, ask, connect, find, split_turn_id};
use crate::unreadable::{self, FileRole};

/// List the turns of a session, or show one.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
A turn is the text submitted at a prompt and the program's output until its next prompt. SESSION may
also be a recording, which has its turns.

Examples:
  tapdeck turns build
  tapdeck turns demo.ahr --json
  tapdeck turns show 4711:3 --text
  tapdeck turns show build --raw | less -R"
)]
pub(crate) struct TurnsArgs {
    #[command(subcommand)]
    show: Option<Show>,
    /// Id or name of a live session, or a recording [default: the only session]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Subcommand)]
enum Show {
    Show(ShowArgs),
}

/// Show one turn.
#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The turn, as SESSION:NUMBER; without a number, the last one
    #[arg(value_name = "ID")]
    id: String,
    /// Do not warn about an answer of which only a part is known
    #[arg(long)]
    allow_truncated: bool,
    /// Print the program's raw output
    #[arg(long, group = "how")]
    raw: bool,
    /// Print only the text, as shown on the screen (the default)
    #[arg(long, group = "how")]
    text: bool,
    /// Print all details as JSON
    #[arg(long, group = "how")]
    json: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl TurnsArgs {
    pub(super) fn reports_json(&self) -> bool {
        match &self.show {
            Some(Show::Show(args)) => args.json,
            None => self.json,
        }
    }
}

pub(crate) fn run(args: &TurnsArgs) -> Result {
    match &args.show {
        Some(Show::Show(args)) => show(args),
        None => list(args),
    }
}

fn list(args: &TurnsArgs) -> Result {
    let found = args.session.as_deref().map(|name| recording(name, &args.identity));
    let turns = match found.transpose()?.flatten() {
        Some(source) => recorded(&source)?.iter().map(brief).collect(),
        None => live(args.session.as_deref())?,
    };
    if args.json {
        print_json(&Value::from(turns));
        return Ok(Ending::Done);
    }
    for turn in &turns {
        let flag = |key: &str, name| if turn[key].as_bool().unwrap_or(false) { name } else { "" };
        let input = turn["input"].as_str().unwrap_or("");
        let first = input.lines().next().unwrap_or("");
        print(format_args!(
            "{:<14} {:>9} B  {}{}{}\n",
            turn["turn_id"].as_str().unwrap_or("-"),
            turn["byte_length"].as_u64().unwrap_or(0),
            human::printable(first),
            flag("interrupted", "  (interrupted)"),
            flag("truncated", "  (cut)"),
        ));
    }
    Ok(Ending::Done)
}

fn live(session: Option<&str>) -> Result<Vec<Value>, Failure> {
    let listing = find(session)?;
    let mut bus = connect(&listing, "turns", Role::Observer)?;
    let turns = ask(&mut bus, &Turns { whole: true, limit: None })?;
    Ok(turns.iter().filter_map(|turn| serde_json::to_value(turn).ok()).map(|turn| brief(&turn)).collect())
}

/// The fields of a turn in a list.
fn brief(turn: &Value) -> Value {
    let mut out = serde_json::Map::new();
    for key in ["turn_id", "timestamp", "byte_length", "interrupted", "truncated", "input"] {
        out.insert(key.into(), turn[key].clone());
    }
    out.into()
}

/// The recording of that name, if there is one. Fails for a format without turns.
fn recording(name: &str, identity: &IdentityArgs) -> Result<Option<Source>, Failure> {
    let path = Path::new(name);
    let named = path.file_name().and_then(|n| n.to_str()).and_then(Container::of_name);
    match named {
        // A file is meant by its path, or where no session has this name.
        None if (path.exists() || name.contains('/')) && find(Some(name)).is_err() => {
            identity.load([path])?;
            let source = Source::find(path, None, None)?;
            match source.container() {
                Container { format: Format::Ahr, zst: false } => Ok(Some(source)),
                other => Err(without_turns(name, other)),
            }
        }
        None if path.extension().is_some() && find(Some(name)).is_err() => {
            let hint = unreadable::instead_of(path, FileRole::Recording);
            Err(Failure::not_found(format!("{name}: no such file or live session{hint}")))
        }
        None => Ok(None),
        // A session may have a name that looks like one of a recording.
        Some(_) if !path.exists() && find(Some(name)).is_ok() => Ok(None),
        Some(Container { format: Format::Ahr, zst: false }) => {
            identity.load([path])?;
            Ok(Some(Source::find(path, None, None)?))
        }
        Some(other) => Err(without_turns(name, other)),
    }
}

fn without_turns(name: &str, container: Container) -> Failure {
    Failure::usage(format!("{name} is {container}, which carries no turns: an .ahr does"))
}

/// The turns of a recording.
fn recorded(source: &Source) -> Result<Vec<Value>, Failure> {
    let path = source.path();
    let sidecar = format!("events.jsonl of {}", path.display());
    let mut text = String::new();
    let Some(mut events) = source.sidecar("events.jsonl") else {
        // A recording may have no turns; a file of which nothing can be read is none.
        Player::of(source.clone(), Settings::default())?;
        return Ok(Vec::new());
    };
    events.read_to_string(&mut text).map_err(|e| Failure::io(format!("{sidecar}: {e}")))?;
    let mut turns = Vec::new();
    let mut numbers = TurnNumbers::default();
    for (n, line) in text.lines().enumerate() {
        let wrong = |e| Failure::io(format!("{sidecar}, line {}: {e}", n + 1));
        let mut turn: Value = serde_json::from_str(line).map_err(wrong)?;
        if turn["kind"] != "turn" {
            continue;
        }
        let number = |key: &str| turn[key].as_u64().unwrap_or(0);
        let (length, ms) =
            (number("end_byte").saturating_sub(number("start_byte")), number("end_ns") / 1_000_000);
        let nth = numbers.next(number("number"));
        turn["number"] = json!(nth);
        turn["turn_id"] = json!(format!("{}:{nth}", path.display()));
        turn["byte_length"] = json!(length);
        turn["timestamp"] = json!(ms);
        turns.push(turn);
    }
    Ok(turns)
}

fn show(args: &ShowArgs) -> Result {
    let (session, number) = split_turn_id(&args.id);
    let turn = if let Some(source) = recording(session, &args.identity)? {
        of_recording(&source, number)?
    } else {
        let listing = find(Some(session))?;
        let mut bus = connect(&listing, "turns", Role::Observer)?;
        match bus.request(&WhichTurn { number, raw: true, ..WhichTurn::default() }, ANSWER) {
            Ok(turn) => serde_json::to_value(turn).unwrap_or_default(),
            Err(ClientError::Denied(why)) => {
                return Err(Failure::not_found(why));
            }
            Err(e) => return Err(e.into()),
        }
    };
    let text = turn["text"].as_str().unwrap_or("");
    if args.json {
        let mut turn = turn.clone();
        turn.as_object_mut().map(|t| t.remove("raw"));
        print_json(&turn);
    } else if args.raw {
        let raw = turn["raw"].as_str().and_then(base64::decode).unwrap_or_default();
        let mut stream = OutputStream::stdout();
        stream.pass_on(&raw);
        stream.end();
    } else {
        if turn["truncated"] == json!(true) && !args.allow_truncated {
            say("only a part of this answer is known: the rest left the screen unread");
        }
        print(format_args!("{text}"));
        if !text.is_empty() && !text.ends_with('\n') {
            print(format_args!("\n"));
        }
    }
    Ok(Ending::Done)
}

/// A turn of a recording, with its bytes.
fn of_recording(source: &Source, number: Option<u64>) -> Result<Value, Failure> {
    let path = source.path();
    let mut turns = recorded(source)?;
    let at = match number {
        Some(number) => turns.iter().position(|t| t["number"] == json!(number)),
        None => turns.len().checked_sub(1),
    };
    let none = || Failure::not_found(format!("{} has no such turn", path.display()));
    let mut turn = turns.swap_remove(at.ok_or_else(none)?);
    let place = |key: &str| turn[key].as_u64().unwrap_or(0);
    let (start, end) = (place("start_byte"), place("end_byte"));
    let failed = |e: &dyn std::fmt::Display| Failure::io(format!("{}: {e}", path.display()));
    let mut reader = source.open().map_err(|e| failed(&e))?;
    let mut raw = Vec::new();
    let mut at = 0u64;
    while at < end {
        let Some(item) = reader.next_item().map_err(|e| failed(&e))? else { break };
        let Item::Event(event) = item else { continue };
        match event.kind {
            Kind::Output(bytes) => {
                let place = |offset: u64| {
                    usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len())
                };
                raw.extend_from_slice(&bytes[place(start)..place(end)]);
                at += bytes.len() as u64;
            }
            Kind::Lost(n) => at += n,
            _ => {}
        }
    }
    turn["raw"] = json!(base64::encode(&raw));
    Ok(turn)
}
