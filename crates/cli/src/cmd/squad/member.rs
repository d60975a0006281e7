//! An agent of a squad while it is supervised: started, watched, and started again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck::squad::{Agent, SavedAgent, Squad, State, Worktree, WorktreeOf};
use tapdeck_core::{Time, WallTime};
use tapdeck_host::cassette::rfc3339;
use tapdeck_host::recordings_folder;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::{AgentState, Frames, InfoWanted, Role, Status, Sub};
use tapdeck_serve::client::{ANSWER, Bus, ClientError, connect_to};

use crate::detached_host;

/// The longest time before an agent is started again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The size of a terminal that no user has.
const SIZE: &str = "120x40";

/// An agent at run time.
pub(super) struct Member {
    /// The connection to its session, while that runs.
    pub(super) bus: Option<Bus>,
    /// The id of its session, while that runs.
    pub(super) session: Option<String>,
    pub(super) state: AgentState,
    /// It was ready for a prompt.
    pub(super) was_idle: bool,
    pub(super) started_at: Time,
    /// It is to be started, not before this time.
    pub(super) start_at: Option<Time>,
}

impl Member {
    /// An agent that does not run and is to be started.
    pub(super) fn new() -> Self {
        Self {
            bus: None,
            session: None,
            state: AgentState::Unknown,
            was_idle: false,
            started_at: Time::ZERO,
            start_at: Some(Time::ZERO),
        }
    }

    /// Watches its session. Returns what the session says of itself.
    pub(super) fn watch(&mut self, listing: &Listing, now: Time) -> Result<Status, ClientError> {
        let mut bus = connect_to(listing, "squad", Role::Observer)?;
        let mut status = bus.request(&InfoWanted::Brief, ANSWER)?.status;
        // The last look at a session that has ended lets its host go.
        match bus.request(&Sub { frames: Frames::None, out: false, ..Sub::default() }, ANSWER) {
            Err(e) if !status.done => return Err(e),
            _ => {}
        }
        // The state may have changed before the subscription. A session that has ended meanwhile
        // has sent its exit.
        if !status.done
            && let Ok(again) = bus.request(&InfoWanted::Brief, ANSWER)
        {
            status = again.status;
        }
        self.bus = Some(bus);
        self.session = Some(listing.id.clone());
        self.start_at = None;
        self.started_at = now;
        self.was_idle = status.turns > 0;
        self.is_now(status.agent_state);
        Ok(status)
    }

    /// Notes its state.
    pub(super) fn is_now(&mut self, state: AgentState) {
        self.state = state;
        self.was_idle |= state == AgentState::Idle;
    }

    /// Notes that its session is gone.
    pub(super) fn is_gone(&mut self) {
        (self.bus, self.session, self.state) = (None, None, AgentState::Unknown);
    }
}

/// The time before the n-th restart.
pub(super) fn backoff(restarts: u32) -> Duration {
    let seconds = 1_u64 << restarts.saturating_sub(1).min(6);
    Duration::from_secs(seconds).min(MAX_BACKOFF)
}

/// The name of an agent's session.
pub(super) fn session_name(squad: &str, agent: &str) -> String {
    format!("{squad}/{agent}")
}

/// Starts an agent's session, and returns its id.
pub(super) fn start(
    squad: &Squad,
    name: &str,
    agent: &Agent,
    saved: &mut SavedAgent,
    now: WallTime,
) -> Result<String, String> {
    let folder = folder(squad, name, agent, saved)?;
    let again = saved.session.is_some();
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |text: &str| args.push(text.into());
    add(if agent.record { "rec" } else { "run" });
    add("--detached-host");
    add("--name");
    add(&session_name(&squad.name, name));
    let size = agent.size.as_ref().map(|size| size.get_ref().as_str());
    add(&format!("--size={}", size.unwrap_or(SIZE)));
    for (option, value) in [("--agent", &agent.rules), ("--prompt", &agent.prompt_pattern)] {
        if let Some(value) = value {
            add(&format!("{option}={}", value.get_ref()));
        }
    }
    args.extend(["--cwd".into(), folder.clone().into_os_string()]);
    let recordings = (saved.recording.clone(), saved.earlier.clone());
    if agent.record {
        let recording = recording(squad, name, now)?;
        if let Some(before) = saved.records(recording.clone()) {
            args.extend(["--continues".into(), before.into_os_string()]);
        }
        args.push(recording.into_os_string());
    }
    args.push("--".into());
    let command = agent.resume.as_ref().filter(|_| again).unwrap_or(agent.command.get_ref());
    args.extend(command.iter().map(OsString::from));
    saved.folder = Some(folder);
    (saved.ended, saved.succeeded, saved.error, saved.turn) = (None, false, None, 0);
    let env = agent.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let started = detached_host::start_quietly(args, env).map_err(|failure| failure.message().to_owned());
    match &started {
        Ok(id) => saved.session = Some(id.clone()),
        // Nothing was recorded.
        Err(_) => (saved.recording, saved.earlier) = recordings,
    }
    started
}

/// The folder that an agent works in. Its worktree is made if it has none.
fn folder(squad: &Squad, name: &str, agent: &Agent, saved: &mut SavedAgent) -> Result<PathBuf, String> {
    let folder = squad.folder().join(&agent.folder);
    let folder = folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))?;
    let branch = match &agent.worktree {
        WorktreeOf::Own(false) => return Ok(folder),
        WorktreeOf::Own(true) => format!("tapdeck/{}/{name}", squad.name),
        WorktreeOf::Branch(branch) => branch.clone(),
    };
    let kept = saved.worktree.take().filter(|worktree| worktree.path.join(".git").exists());
    let worktree = match kept {
        Some(kept) => kept,
        None => {
            let path = State::folder().map_err(|e| e.to_string())?.join(&squad.name).join(name);
            Worktree::make(&folder, &path, &branch).map_err(|e| e.to_string())?
        }
    };
    let inside = worktree.folder_for(&folder).map_err(|e| e.to_string());
    saved.worktree = Some(worktree);
    inside
}

/// The file of a new recording.
fn recording(squad: &Squad, name: &str, now: WallTime) -> Result<PathBuf, String> {
    let folder = match &squad.recordings {
        Some(folder) => squad.folder().join(folder),
        None => recordings_folder().ok_or("this user has no home folder for recordings: set recordings")?,
    };
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    tapdeck_host::disk::create_folders(&folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let time = rfc3339(now).replace(':', "");
    let path = |n: u32| {
        let number = if n > 1 { format!("-{n}") } else { String::new() };
        folder.join(format!("{}-{name}-{time}{number}.ahr", squad.name))
    };
    (1..1000).map(path).find(|path: &PathBuf| !Path::exists(path)).ok_or_else(|| "no free name".to_owned())
}
