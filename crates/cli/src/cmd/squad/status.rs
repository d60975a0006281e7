//! `tapdeck squad status`: what each agent of a squad is doing.

use clap::Args;
use serde_json::{Value, json};
use tapdeck::squad::{PromptState, Relay, SavedAgent, SavedRelay, State};
use tapdeck_proto::bus::{AgentState, SessionState};
use tapdeck_serve::client::{Described, describe_all};
use tapdeck_term::text_width;

use super::locate::{self, Supervision, Which};
use super::member::session_name;
use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::sessions::alive;

/// Show what each agent of a squad is doing.
#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &StatusArgs) -> Result {
    let found = args.which.find()?;
    let mut state = State::load(&found.name)?.unwrap_or_default();
    // A file that cannot be read any more says nothing about its agents and relays.
    let squad = locate::read(&found.file).ok();
    for name in squad.iter().flat_map(|squad| squad.agents.keys()) {
        state.agents.entry(name.clone()).or_default();
    }
    let relays = squad.as_ref().map_or(&[][..], |squad| &squad.relays);
    if relays.len() > state.relays.len() {
        state.relays.resize(relays.len(), SavedRelay::default());
    }
    let has_prompt = |name: &str| match &squad {
        Some(squad) => squad.agents.get(name).is_some_and(|agent| agent.prompt.is_some()),
        None => true,
    };
    // The right is given back at once.
    let is_supervised = Supervision::take(&found.name)?.is_none();
    let prefix = session_name(&found.name, "");
    let listings: Vec<_> =
        alive()?.1.into_iter().filter(|l| l.name.as_ref().is_some_and(|n| n.starts_with(&prefix))).collect();
    let sessions = describe_all(&listings, "squad");
    let session = |name: &str| {
        let name = session_name(&found.name, name);
        sessions.iter().find(|s| s.about.name.as_ref() == Some(&name))
    };
    let of_file = relays.iter().map(Some).chain(std::iter::repeat(None));
    // An agent without a first prompt waits for none.
    let prompt = |name: &str, saved: &SavedAgent| {
        Some(saved.prompt).filter(|prompt| *prompt != PromptState::Waiting || has_prompt(name))
    };
    if args.json {
        let agents: Vec<Value> = state
            .agents
            .iter()
            .map(|(name, saved)| to_json(name, saved, prompt(name, saved), session(name)))
            .collect();
        print_json(&json!({
            "name": found.name,
            "file": found.file.to_string_lossy(),
            "supervisor": state.supervisor.filter(|_| is_supervised),
            "agents": agents,
            "relays": state.relays.iter().zip(of_file).map(relay_json).collect::<Vec<_>>(),
            "vote": state.vote,
        }));
        return Ok(Ending::Done);
    }
    let mut rows =
        vec![["AGENT", "SESSION", "STATE", "PROMPT", "RESTARTS", "BRANCH", "RECORDING"].map(str::to_owned)];
    rows.extend(
        state.agents.iter().map(|(name, saved)| row(name, saved, prompt(name, saved), session(name))),
    );
    print_table(&rows);
    let supervisor =
        if is_supervised { "supervised" } else { "not supervised: tapdeck squad up supervises it" };
    print(format_args!("{}: {supervisor}\n", found.name));
    for (i, (saved, relay)) in state.relays.iter().zip(of_file).enumerate() {
        print(format_args!("relay {}: {}\n", i + 1, human::printable(&relay_text(saved, relay))));
    }
    match (&state.vote.best, &state.vote.answer) {
        (Some(best), _) => print(format_args!("vote: {} is the best\n", human::printable(best))),
        (None, Some(_)) => print(format_args!("vote: the judge has named no agent\n")),
        (None, None) => {}
    }
    for (name, saved) in &state.agents {
        if let Some(error) = &saved.error {
            print(format_args!("{name}: {}\n", human::printable(error)));
        }
    }
    Ok(Ending::Done)
}

/// Whether a relay has passed on all answers that it may.
fn is_exhausted(saved: &SavedRelay, relay: Option<&Relay>) -> bool {
    relay.is_some_and(|relay| saved.rounds >= relay.rounds)
}

/// How far a relay is, in a few words.
fn relay_text(saved: &SavedRelay, relay: Option<&Relay>) -> String {
    let rounds = match (saved.rounds, relay) {
        (done, Some(relay)) => {
            format!(
                "{} to {}, {}",
                relay.from.get_ref(),
                relay.to.get_ref(),
                rounds(done, Some(relay.rounds))
            )
        }
        (done, None) => rounds(done, None),
    };
    match &saved.ended {
        Some(why) => format!("{rounds}, ended: {why}"),
        None if is_exhausted(saved, relay) => format!("{rounds}, exhausted: it passes nothing on"),
        None => rounds,
    }
}

fn rounds(done: u32, most: Option<u32>) -> String {
    match (done, most) {
        (done, Some(1)) => format!("{done} of 1 round"),
        (done, Some(most)) => format!("{done} of {most} rounds"),
        (1, None) => "1 round".to_owned(),
        (done, None) => format!("{done} rounds"),
    }
}

fn relay_json((saved, relay): (&SavedRelay, Option<&Relay>)) -> Value {
    json!({
        "from": relay.map(|relay| relay.from.get_ref()),
        "to": relay.map(|relay| relay.to.get_ref()),
        "rounds": saved.rounds,
        "max_rounds": relay.map(|relay| relay.rounds),
        "exhausted": is_exhausted(saved, relay),
        "ended": saved.ended,
    })
}

/// What an agent is doing, in one word or two.
fn state_of(saved: &SavedAgent, session: Option<&Described>) -> String {
    let Some(session) = session else {
        return saved.ended.clone().unwrap_or_else(|| match saved.session {
            Some(_) => "gone".to_owned(),
            None => "not started".to_owned(),
        });
    };
    match session.status() {
        None => "no answer".to_owned(),
        Some(status) if status.done && saved.ended.is_some() => saved.ended.clone().unwrap_or_default(),
        Some(status)
            if status.state == SessionState::Running && status.agent_state != AgentState::Unknown =>
        {
            status.agent_state.name().to_owned()
        }
        Some(status) => status.state.name().to_owned(),
    }
}

fn row(
    name: &str,
    saved: &SavedAgent,
    prompt: Option<PromptState>,
    session: Option<&Described>,
) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let path = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    [
        name.to_owned(),
        or_dash(session.map(|s| s.about.id.clone())),
        state_of(saved, session),
        prompt.map_or("-", prompt_text).to_owned(),
        saved.restarts.to_string(),
        or_dash(saved.worktree.as_ref().map(|w| w.branch.clone())),
        or_dash(saved.recording.as_ref().map(path)),
    ]
    .map(|cell| human::printable(&cell))
}

fn prompt_text(state: PromptState) -> &'static str {
    match state {
        PromptState::Waiting => "waiting",
        PromptState::Sent => "sent",
        PromptState::Answered => "answered",
    }
}

fn to_json(
    name: &str,
    saved: &SavedAgent,
    prompt: Option<PromptState>,
    session: Option<&Described>,
) -> Value {
    json!({
        "name": name,
        "session": session.map(|s| &s.about.id),
        "state": state_of(saved, session),
        "running": session.and_then(Described::status).is_some_and(|s| !s.done),
        "folder": saved.folder,
        "worktree": saved.worktree,
        "recording": saved.recording,
        "earlier_recordings": saved.earlier,
        "restarts": saved.restarts,
        "prompt": prompt,
        "ended": saved.ended,
        "error": saved.error,
    })
}

fn print_table(rows: &[[String; 7]]) {
    let width = |column: usize| rows.iter().map(|row| text_width(&row[column])).max().unwrap_or_default();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            line.push_str(&" ".repeat(width(column).saturating_sub(text_width(cell)) + 2));
        }
        print(format_args!("{}\n", line.trim_end()));
    }
}
