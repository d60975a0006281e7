//! The tools: what each takes, and what a model is told of it. [`super::sessions`] does the work.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tapdeck_core::turns::AgentState;
use tapdeck_proto::bus::{Resize, Typing};

use super::call::{Call, Refusal, result};
use super::resources::uri_of_screen;
use super::server::Handler;
use super::{NewSession, TEXT};
use crate::client::{Choice, Condition, RowsFrom, Wait, WaitError};

/// How long an ordinary call may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// The longest wait, and how much longer its call may take.
const WAIT: u64 = 600;
const SLACK: Duration = Duration::from_secs(20);
/// The most keys of one call.
const KEYS: usize = 1000;
/// The longest pattern, in bytes, and the most memory that it may take once compiled.
pub(super) const PATTERN: usize = 1000;
const COMPILED: usize = 4 << 20;
/// The longest command line of a new session, in bytes.
const COMMAND: usize = 64 * 1024;

type Done = Result<CallToolResult, ErrorData>;

/// A session, for tools that take nothing else.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SessionArgs {
    /// Name or id of the session, or the beginning of one. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

/// How a screen is returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    /// Plain text, one line for each row.
    #[default]
    Text,
    /// An SVG picture with colors, as an embedded resource.
    Svg,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ScreenArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// How many rows above the screen to include, at most 10000.
    #[serde(default)]
    scrollback: u32,
    /// Return only rows written since this output offset, the "seq" of an earlier result, including
    /// rows that have scrolled off.
    #[serde(default)]
    since: Option<u64>,
    /// "text" (default) or "svg". Use svg only if you can show pictures; PNG is not available.
    #[serde(default)]
    form: Form,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TypeArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// The text to type. A line end is the Enter key.
    text: String,
    /// Press Enter after the text.
    #[serde(default)]
    enter: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KeysArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// Keys in the spelling of tmux: "Enter", "Escape", "Tab", "BSpace", "Up", "PageDown", "F5",
    /// "C-c" (Ctrl), "M-x" (Alt), "S-Tab" (Shift), or a single character such as "y".
    keys: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AskArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// The prompt.
    text: String,
    /// The longest time to wait for the answer, in seconds; 300 by default, at most 600.
    #[serde(default)]
    timeout_s: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AnswerArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// "yes", "no", the number of an option, or its label or a unique part of it.
    #[serde(default)]
    choice: Option<String>,
    /// Text to type where the question takes text.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WaitArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// Wait until a row of the screen matches this regular expression.
    #[serde(default)]
    text: Option<String>,
    /// Wait until the program is in one of these states: "working", "blocked" (it asks a question or
    /// for permission), "idle" (it waits for a prompt), "done" (it has ended), "unknown".
    #[serde(default)]
    states: Option<Vec<String>>,
    /// Wait until the program has written nothing for this many milliseconds.
    #[serde(default)]
    idle_ms: Option<u64>,
    /// Wait until the program exits.
    #[serde(default)]
    exit: bool,
    /// With text: match only rows written since this output offset, the "seq" of an earlier result.
    #[serde(default)]
    since: Option<u64>,
    /// The longest time to wait, in seconds; 30 by default, at most 600.
    #[serde(default)]
    timeout_s: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TurnsArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// How many of the newest turns to list; 20 by default, at most 200.
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TurnArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// The turn's number, from 1; the last turn by default.
    #[serde(default)]
    number: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RecordingArgs {
    /// The recording's name, as list_recordings shows it.
    recording: String,
    /// The first line to return, from 1. A negative number counts from the end: -100 returns the last
    /// 100 lines. By default the first line.
    #[serde(default)]
    from: Option<i64>,
    /// How many lines to return; 500 by default, at most 5000.
    #[serde(default)]
    lines: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// A regular expression. Case matters only if it has a capital letter.
    pattern: String,
    /// Search only recordings whose name contains this text.
    #[serde(default)]
    recording: Option<String>,
    /// How many matching lines to return; 50 by default, at most 500.
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SizeArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// Columns, from 1 to 10000.
    cols: u16,
    /// Rows, from 1 to 10000.
    rows: u16,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StartArgs {
    /// The program and its arguments, each as one string; the user's shell if left out.
    #[serde(default)]
    command: Vec<String>,
    /// A name for the session.
    #[serde(default)]
    name: Option<String>,
    /// The folder to start in, as an absolute path.
    #[serde(default)]
    folder: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KillArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    session: Option<String>,
    /// Send this signal, such as "INT" or "TERM", instead of ending the session.
    #[serde(default)]
    signal: Option<String>,
}

/// Runs a call, and returns its value as JSON.
async fn as_json(
    handler: &Handler,
    context: &RequestContext<RoleServer>,
    work: impl FnOnce(&Call) -> Result<Value, Refusal> + Send + 'static,
) -> Done {
    Ok(result(handler.work(context, LIMIT, work).await.map(CallToolResult::structured)))
}

/// Runs a call, and returns its sentence.
async fn as_text(
    handler: &Handler,
    context: &RequestContext<RoleServer>,
    work: impl FnOnce(&Call) -> Result<String, Refusal> + Send + 'static,
) -> Done {
    let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
    Ok(result(handler.work(context, LIMIT, work).await.map(text)))
}

#[rmcp::tool_router(router = read_tools, vis = "pub(super)")]
impl Handler {
    #[rmcp::tool(
        description = "List the running sessions: name, command, folder, state of the program (agent_state \
                       working, blocked, idle, done or unknown), the client that drives, screen size.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn list_sessions(&self, _: Parameters<NoArgs>, context: RequestContext<RoleServer>) -> Done {
        as_json(self, &context, Call::describe).await
    }

    #[rmcp::tool(
        description = "Read a session's screen as it is now, as text or as an SVG picture. The first line \
                       says what the program does, who drives, and \"seq\", the output offset for later \
                       calls.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn read_screen(
        &self,
        Parameters(args): Parameters<ScreenArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        let done = self.work(&context, LIMIT, move |call| match args.form {
            Form::Text => {
                let above = args.scrollback.min(10_000) as usize;
                let screen = call.screen(args.session.as_deref(), above, args.since)?;
                let text = format!("{}\n\n{}", screen.about, screen.rows);
                Ok(vec![ContentBlock::text(text)])
            }
            Form::Svg => {
                let (listing, svg) = call.picture(args.session.as_deref())?;
                let uri = uri_of_screen(&listing);
                let picture = ResourceContents::text(svg, uri).with_mime_type("image/svg+xml");
                let note = "The screen as an SVG picture. Clients that show only PNG or JPEG cannot show it.";
                Ok(vec![ContentBlock::text(note), ContentBlock::resource(picture)])
            }
        });
        Ok(result(done.await.map(CallToolResult::success)))
    }

    #[rmcp::tool(
        description = "Wait until a condition holds in a session: give exactly one of text, states, idle_ms \
                       or exit. Returns met: true, or met: false with the reason on timeout. Prefer this to \
                       reading the screen again and again.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn wait_for(
        &self,
        Parameters(args): Parameters<WaitArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        let wait = match args.parse() {
            Ok(wait) => wait,
            Err(refusal) => return Ok(result(Err(refusal))),
        };
        let limit = wait.timeout + SLACK;
        let done = self.work(&context, limit, move |call| {
            let listing = call.find(args.session.as_deref())?;
            let start = call.shared.clock.now().mono;
            let ended = wait.run(&listing, &call.caller.name, Some(&|| call.is_cancelled()));
            let waited_ms = call.shared.clock.now().mono.since(start).as_millis();
            let waited_ms = u64::try_from(waited_ms).unwrap_or(u64::MAX);
            match ended {
                Ok(met) => Ok(json!({
                    "met": true,
                    "waited_ms": waited_ms,
                    "state": met.state.name(),
                    "exit": met.exit,
                })),
                Err(e @ (WaitError::TimedOut { .. } | WaitError::Ended)) => {
                    Ok(json!({ "met": false, "waited_ms": waited_ms, "reason": e.to_string() }))
                }
                Err(e) => Err(e.into()),
            }
        });
        Ok(result(done.await.map(CallToolResult::structured)))
    }

    #[rmcp::tool(
        description = "Explain the state of a session's program: the state, the rule that says so, and the \
                       rows of the screen that it rests on.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn explain_state(
        &self,
        Parameters(args): Parameters<SessionArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_json(self, &context, move |call| call.explain(args.session.as_deref())).await
    }

    #[rmcp::tool(
        description = "List the newest turns of a session. A turn is a prompt and the program's answer to \
                       it.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn list_turns(
        &self,
        Parameters(args): Parameters<TurnsArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        let limit = args.limit.unwrap_or(20).clamp(1, 200);
        as_json(self, &context, move |call| call.turns(args.session.as_deref(), limit)).await
    }

    #[rmcp::tool(
        description = "Read one turn of a session in full: the prompt and the answer. Without a number, the \
                       last turn.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn read_turn(
        &self,
        Parameters(args): Parameters<TurnArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_json(self, &context, move |call| call.turn(args.session.as_deref(), args.number)).await
    }

    #[rmcp::tool(
        description = "List the newest recordings of past and running sessions.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn list_recordings(&self, _: Parameters<NoArgs>, context: RequestContext<RoleServer>) -> Done {
        as_json(self, &context, Call::recordings).await
    }

    #[rmcp::tool(
        description = "Read lines of a recording: the rows that the program wrote, as a terminal showed \
                       them, and the turns of the conversation after them.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn read_recording(
        &self,
        Parameters(args): Parameters<RecordingArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        let lines = args.lines.unwrap_or(500).clamp(1, 5000);
        let from = args.from.unwrap_or(1);
        as_text(self, &context, move |call| {
            let read = call.read_recording(&args.recording, from, lines)?;
            let to = read.from + read.count.saturating_sub(1);
            let more = if read.is_cut { "; there are more" } else { "" };
            Ok(format!("lines {} to {to} of {}{more}\n\n{}", read.from, args.recording, read.text))
        })
        .await
    }

    #[rmcp::tool(
        description = "Search the text of recordings, the newest first, with a regular expression. Returns \
                       the matching lines with their recording and line number.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn search_recordings(
        &self,
        Parameters(args): Parameters<SearchArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        let limit = usize::try_from(args.limit.unwrap_or(50).clamp(1, 500)).unwrap_or(50);
        as_json(self, &context, move |call| {
            let pattern = compile(&args.pattern, true)?;
            call.search(&pattern, args.recording.as_deref(), limit)
        })
        .await
    }
}

#[rmcp::tool_router(router = drive_tools, vis = "pub(super)")]
impl Handler {
    #[rmcp::tool(
        description = "Give the program in a session, such as a coding agent, a prompt and wait for its \
                       answer. Returns outcome answered (with the answer), blocked (it asks back: see \
                       question, then use answer), undelivered, timeout (still working: use wait_for, then \
                       read_turn) or ended.",
        annotations(read_only_hint = false, destructive_hint = true, open_world_hint = true)
    )]
    async fn ask(&self, Parameters(args): Parameters<AskArgs>, context: RequestContext<RoleServer>) -> Done {
        let within = Duration::from_secs(args.timeout_s.unwrap_or(300).clamp(1, WAIT));
        // Delivery has steps of its own.
        let limit = within.saturating_mul(5) + SLACK;
        let done = self.work(&context, limit, move |call| {
            if args.text.len() > TEXT {
                return Err(Refusal::new("the prompt is longer than 1 MiB"));
            }
            call.ask(args.session.as_deref(), &args.text, within)
        });
        Ok(result(done.await.map(CallToolResult::structured)))
    }

    #[rmcp::tool(
        description = "Answer the question that a blocked program asks: a permission, a choice, a password. \
                       Give choice for one of its options, or text for free text. Returns outcome answered, \
                       stalled, nothing_asked or no_such_choice, with the question; next is the question \
                       that came after it.",
        annotations(read_only_hint = false, destructive_hint = true, open_world_hint = true)
    )]
    async fn answer(
        &self,
        Parameters(args): Parameters<AnswerArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_json(self, &context, move |call| {
            let choice = match (args.choice, args.text) {
                (Some(choice), None) => Choice::named(&choice),
                (None, Some(text)) => Choice::Text(text),
                _ => return Err(Refusal::new("give either choice or text")),
            };
            call.answer(args.session.as_deref(), &choice)
        })
        .await
    }

    #[rmcp::tool(
        description = "Type text into a session, as at its keyboard. To give a coding agent a prompt, use \
                       ask instead, which confirms delivery and waits for the answer.",
        annotations(read_only_hint = false, destructive_hint = true, open_world_hint = true)
    )]
    async fn type_text(
        &self,
        Parameters(args): Parameters<TypeArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            if args.text.len() > TEXT {
                return Err(Refusal::new("the text is longer than 1 MiB"));
            }
            let chars = args.text.chars().count();
            let text = if args.enter { args.text + "\n" } else { args.text };
            let typing = Typing { text: Some(text), ..Typing::default() };
            let seq = call.type_in(args.session.as_deref(), typing)?;
            Ok(format!("typed {chars} characters; since {seq} for what the program writes in answer"))
        })
        .await
    }

    #[rmcp::tool(
        description = "Press keys in a session, such as [\"Down\", \"Enter\"] or [\"C-c\"].",
        annotations(read_only_hint = false, destructive_hint = true, open_world_hint = true)
    )]
    async fn press_keys(
        &self,
        Parameters(args): Parameters<KeysArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            if args.keys.is_empty() || args.keys.len() > KEYS {
                return Err(Refusal::new(format!("give from 1 to {KEYS} keys")));
            }
            let count = args.keys.len();
            let typing = Typing { keys: Some(args.keys), ..Typing::default() };
            let seq = call.type_in(args.session.as_deref(), typing)?;
            Ok(format!("pressed {count} keys; since {seq} for what the program writes in answer"))
        })
        .await
    }

    #[rmcp::tool(
        description = "Take the stick of a session, so that other programs cannot type until you release \
                       it. Not needed for single calls. Fails while a person drives, and a person can take \
                       it back at any time.",
        annotations(read_only_hint = false, destructive_hint = false, open_world_hint = false)
    )]
    async fn take_stick(
        &self,
        Parameters(args): Parameters<SessionArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            let taken = call.take(args.session.as_deref())?;
            Ok(format!("you drive, as {}; call release_stick when you are done", driver(taken.driver)))
        })
        .await
    }

    #[rmcp::tool(
        description = "Release the stick of a session that take_stick took.",
        annotations(read_only_hint = false, destructive_hint = false, open_world_hint = false)
    )]
    async fn release_stick(
        &self,
        Parameters(args): Parameters<SessionArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            call.release(args.session.as_deref())?;
            Ok("released".to_owned())
        })
        .await
    }

    #[rmcp::tool(
        description = "Set the size of a session's terminal. Fails while a person drives.",
        annotations(read_only_hint = false, destructive_hint = false, open_world_hint = false)
    )]
    async fn resize_session(
        &self,
        Parameters(args): Parameters<SizeArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            let size = Resize { cols: args.cols, rows: args.rows };
            let resized = call.resize(args.session.as_deref(), size)?;
            Ok(format!("the size is {}x{}", resized.cols, resized.rows))
        })
        .await
    }
}

#[rmcp::tool_router(router = open_tools, vis = "pub(super)")]
impl Handler {
    #[rmcp::tool(
        description = "Start a program as a new session that runs in the background. Returns the session's \
                       id.",
        annotations(read_only_hint = false, destructive_hint = false, open_world_hint = true)
    )]
    async fn start_session(
        &self,
        Parameters(args): Parameters<StartArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        Ok(result(self.start(&context, args).await))
    }

    #[rmcp::tool(
        description = "End a session and its program, or send the program a signal. Fails while a person \
                       drives.",
        annotations(read_only_hint = false, destructive_hint = true, open_world_hint = false)
    )]
    async fn kill_session(
        &self,
        Parameters(args): Parameters<KillArgs>,
        context: RequestContext<RoleServer>,
    ) -> Done {
        as_text(self, &context, move |call| {
            let what = args.signal.as_deref().map(|signal| format!("sent {signal} to"));
            let what = what.unwrap_or_else(|| "ended".to_owned());
            let id = call.kill(args.session.as_deref(), args.signal)?;
            Ok(format!("{what} session {id}"))
        })
        .await
    }
}

impl Handler {
    async fn start(
        &self,
        context: &RequestContext<RoleServer>,
        args: StartArgs,
    ) -> Result<CallToolResult, Refusal> {
        let caller = self.caller(context)?;
        let new = args.parse()?;
        let patterns = &self.shared().options.sessions;
        if !patterns.is_empty() && !patterns.iter().any(|p| new.name.as_ref().is_some_and(|n| p.is_match(n)))
        {
            return Err(Refusal::new(
                "this server sees only some sessions: give the new session a name that matches its --session",
            ));
        }
        let id = match &caller.access {
            Some(access) => (access.start)(new).await.map_err(Refusal::new)?,
            None => {
                self.work(context, LIMIT, move |call| match &call.shared.options.start {
                    Some(start) => start(new).map_err(Refusal::new),
                    None => Err(Refusal::new("this server starts no sessions")),
                })
                .await?
            }
        };
        Ok(CallToolResult::structured(json!({ "session": id })))
    }
}

impl StartArgs {
    fn parse(self) -> Result<NewSession, Refusal> {
        let length: usize = self.command.iter().map(|word| word.len() + 1).sum();
        if length > COMMAND || self.command.iter().any(|word| word.contains('\0')) {
            return Err(Refusal::new("a command line has at most 64 KiB and no null characters"));
        }
        if self.folder.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(Refusal::new("give the folder as an absolute path"));
        }
        Ok(NewSession { command: self.command, name: self.name, folder: self.folder })
    }
}

impl WaitArgs {
    fn parse(&self) -> Result<Wait, Refusal> {
        let mut conditions = Vec::new();
        if let Some(text) = &self.text {
            conditions.push(Condition::Text(compile(text, false)?));
        }
        if let Some(states) = self.states.as_ref().filter(|states| !states.is_empty()) {
            let states: Result<Vec<AgentState>, _> = states.iter().map(|state| state.parse()).collect();
            conditions.push(Condition::States(states.map_err(|e| Refusal::new(e.to_string()))?));
        }
        conditions.extend(self.idle_ms.map(|ms| Condition::Idle(Duration::from_millis(ms.min(600_000)))));
        conditions.extend(self.exit.then_some(Condition::Exit));
        let (Some(condition), true) = (conditions.pop(), conditions.is_empty()) else {
            return Err(Refusal::new("give exactly one of text, states, idle_ms and exit"));
        };
        Ok(Wait {
            condition,
            rows: self.since.map_or(RowsFrom::Screen, RowsFrom::Offset),
            timeout: Duration::from_secs(self.timeout_s.unwrap_or(30).clamp(1, WAIT)),
        })
    }
}

/// Compiles a pattern of a client, bounded.
fn compile(pattern: &str, smart_case: bool) -> Result<Regex, Refusal> {
    if pattern.is_empty() || pattern.len() > PATTERN {
        return Err(Refusal::new(format!("a pattern has from 1 to {PATTERN} bytes")));
    }
    let ignores_case = smart_case && !pattern.chars().any(char::is_uppercase);
    let mut builder = regex::RegexBuilder::new(pattern);
    let built = builder.case_insensitive(ignores_case).size_limit(COMPILED).build();
    built.map_err(|e| Refusal::new(format!("not a regular expression: {e}")))
}

fn driver(name: Option<String>) -> String {
    name.unwrap_or_else(|| "a program".to_owned())
}
