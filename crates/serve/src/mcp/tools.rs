//! The tools: what each takes, and what a model is told of it. [`super::sessions`] does the work.

use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tapdeck_proto::bus::{Resize, Typing};

use super::TEXT;
use super::args::{
    AnswerArgs, AskArgs, Form, KeysArgs, KillArgs, NoArgs, RecordingArgs, ScreenArgs, SearchArgs,
    SessionArgs, SizeArgs, StartArgs, TurnArgs, TurnsArgs, TypeArgs, WAIT, WaitArgs, compile,
};
use super::call::{Call, Refusal, result};
use super::resources::uri_of_screen;
use super::server::Handler;
use crate::client::{Choice, WaitError};

/// How long an ordinary call may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// How much longer than its wait a call may take.
const SLACK: Duration = Duration::from_secs(20);
/// How much longer the delivery of a prompt may take than its answer.
const DELIVERY: Duration = Duration::from_secs(60);
/// The most keys of one call.
const KEYS: usize = 1000;
type Done = Result<CallToolResult, ErrorData>;

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
                Err(e @ (WaitError::TimedOut { .. } | WaitError::Ended(_))) => {
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
                       them, and between them the prompts and answers of full-screen agents.",
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
        let limit = within + DELIVERY;
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
            let keys = if count == 1 { "key" } else { "keys" };
            Ok(format!("pressed {count} {keys}; since {seq} for what the program writes in answer"))
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
                "this server sees only some sessions: give the new session a name that matches its patterns",
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

fn driver(name: Option<String>) -> String {
    name.unwrap_or_else(|| "a program".to_owned())
}
