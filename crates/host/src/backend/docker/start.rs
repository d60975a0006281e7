//! Starting a program in a container.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::super::place::{Container, DockerPlace, Place, Prompter};
use super::super::remote::{Drain, Keys, Verdict};
use super::super::{CommandSpec, SpawnError, TerminalSetup};
use super::engine::{Engine, EngineError, EngineResult, Watched, escape};
use super::frames::{Frames, Took};
use super::http::{HttpError, Socket};
use super::locate::endpoint;
use super::order::{Held, Hold, exit_of, last_will, remove};
use super::worker::EngineWorker;
use super::{Docker, Tube};
use crate::clock::Clock;

/// Tells its process within the container, then becomes the program. Without that number nothing
/// could be sent to it.
const HERALD: &str = r#"echo "tapdeck $$"; exec "$@""#;
/// How long that may take.
const HERALD_LIMIT: Duration = Duration::from_secs(30);

/// A program to start.
struct Job<'a> {
    engine: Engine,
    place: &'a DockerPlace,
    argv: Vec<String>,
    env: Vec<String>,
    cwd: Option<String>,
    terminal: Option<&'a TerminalSetup>,
}

impl Docker {
    /// Starts a program in a container, on a terminal or on pipes.
    pub(in super::super) fn start(
        place: &DockerPlace,
        command: &CommandSpec,
        terminal: Option<&TerminalSetup>,
        prompter: &mut dyn Prompter,
    ) -> Result<Self, SpawnError> {
        let name = Place::Docker(place.clone()).to_string();
        let fail = |why: String| SpawnError::unreachable(&name, why);
        let endpoint = endpoint(|var| std::env::var(var).ok()).map_err(fail)?;
        let engine =
            Engine::greet(endpoint, Some(&mut || prompter.cancelled())).map_err(|e| explain(e, &name, ""))?;
        let text = |what: &std::ffi::OsStr| {
            let text = std::str::from_utf8(what.as_bytes()).map(str::to_owned);
            text.map_err(|_| {
                SpawnError::unreachable(&name, format!("{what:?} is no UTF-8, which the engine needs"))
            })
        };
        let mut env = Vec::new();
        // What the terminal understands is a matter of the terminal, not of the image.
        let term = std::env::var("TERM").ok().filter(|t| !t.is_empty());
        if let Some(term) = term.filter(|_| terminal.is_some()) {
            env.push(format!("TERM={term}"));
        }
        for (key, value) in &command.env {
            if let Some(value) = value {
                env.push(format!("{}={}", text(key)?, text(value)?));
            }
        }
        let argv = command.argv.iter().map(|a| text(a)).collect::<Result<Vec<_>, _>>()?;
        let cwd = command.cwd.as_ref().map(|c| text(c.as_os_str())).transpose()?;
        let job = Job { engine, place, argv, env, cwd, terminal };
        let program = job.argv.first().cloned().unwrap_or_default();
        let started = match &place.container {
            Container::New(image) => job.run(image, prompter),
            Container::Running(container) => job.exec(container, prompter),
        };
        started.map_err(|e| explain(e, &name, &program))
    }
}

/// What the engine refused, as what a person needs to know.
fn explain(e: EngineError, place: &str, program: &str) -> SpawnError {
    match &e {
        EngineError::Away { why: HttpError::CalledOff(signal), .. } => return SpawnError::CalledOff(*signal),
        EngineError::Refused { message, .. } if !program.is_empty() => {
            let named = message.contains(&format!("exec: \"{program}\""));
            if named && (message.contains("not found") || message.contains("no such file")) {
                return SpawnError::NotFound { program: program.to_owned() };
            }
            if named && message.contains("permission denied") {
                let why = io::Error::from_raw_os_error(libc::EACCES);
                return SpawnError::NotExecutable { program: program.to_owned(), why };
            }
        }
        _ => {}
    }
    SpawnError::unreachable(place, e)
}

/// A container that is removed unless its session begins.
struct Created<'a> {
    engine: &'a Engine,
    id: String,
    kept: bool,
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        if !self.kept {
            remove(self.engine, &self.id);
        }
    }
}

impl Job<'_> {
    /// A new container for the program alone.
    fn run(&self, image: &str, prompter: &mut dyn Prompter) -> EngineResult<Docker> {
        // With a first process of its own the program can be signalled like any other, and no
        // process is left unreaped. Not every engine has one to give.
        match self.run_with(image, true, prompter) {
            Err(EngineError::Refused { message, .. })
                if message.contains("docker-init") || message.contains("init binary") =>
            {
                self.run_with(image, false, prompter)
            }
            other => other,
        }
    }

    fn run_with(&self, image: &str, init: bool, prompter: &mut dyn Prompter) -> EngineResult<Docker> {
        let mut body = json!({
            "Image": image,
            "Env": self.env,
            "Tty": self.terminal.is_some(),
            "OpenStdin": true,
            "StdinOnce": true,
            "AttachStdin": true,
            "AttachStdout": true,
            "AttachStderr": true,
            "Labels": { "tapdeck": "session" },
            "HostConfig": { "AutoRemove": true, "Init": init, "Binds": self.place.mounts },
        });
        if !self.argv.is_empty() {
            body["Cmd"] = json!(self.argv);
        }
        if let Some(cwd) = &self.cwd {
            body["WorkingDir"] = json!(cwd);
        }
        if let Some(user) = &self.place.user {
            body["User"] = json!(user);
        }
        let sized = self.engine.console_size(self.terminal.map(|t| t.size));
        if let Some(size) = &sized {
            body["HostConfig"]["ConsoleSize"] = size.clone();
        }
        let limit = Some(Duration::from_secs(60));
        let created = self.engine.call_while(
            "POST",
            "/containers/create",
            Some(&body),
            limit,
            Some(&mut || prompter.cancelled()),
        );
        let created = match created {
            Err(e) if e.status() == Some(404) => {
                prompter.note(&format!("pulling {image}"));
                self.engine.pull(image, Some(&mut || prompter.cancelled()))?;
                self.engine.call("POST", "/containers/create", Some(&body))?
            }
            other => other?,
        };
        let id = created["Id"].as_str().filter(|id| !id.is_empty() && escape(id) == *id);
        let id = id.ok_or_else(|| refused("the engine made a container without a name"))?.to_owned();
        let mut created = Created { engine: &self.engine, id: id.clone(), kept: false };
        let mut cancelled = || prompter.cancelled();
        // Before it starts, so that nothing that it writes and no end of it is missed.
        let path = format!("/containers/{id}/attach?stream=1&stdin=1&stdout=1&stderr=1");
        let (stream, early) = self.engine.hijack(&path, None, Some(&mut cancelled))?;
        let path = format!("/containers/{id}/wait?condition=next-exit");
        let watched = self.engine.watch(&path, Some(&mut cancelled))?;
        self.engine.call_while(
            "POST",
            &format!("/containers/{id}/start"),
            None,
            limit,
            Some(&mut cancelled),
        )?;
        created.kept = true;
        self.session(Held::Container(id), self.tube(stream, early), Some(watched), sized.is_some())
    }

    /// One more program in a running container.
    fn exec(&self, container: &str, prompter: &mut dyn Prompter) -> EngineResult<Docker> {
        let own = if self.argv.is_empty() { &["sh".to_owned()][..] } else { &self.argv };
        let herald = ["sh", "-c", HERALD, "sh"].map(str::to_owned);
        let heralded: Vec<String> = herald.into_iter().chain(own.iter().cloned()).collect();
        let told = self.exec_as(container, &heralded, prompter).and_then(|(exec, mut tube)| {
            let pid = read_herald(&mut tube, prompter)?;
            Ok((exec, tube, pid))
        });
        let (exec, tube, pid) = match told {
            Ok((exec, tube, Some(pid))) => (exec, tube, Some(pid)),
            Err(e) if !matches!(&e, EngineError::Refused { message, .. } if message.contains("\"sh\"")) => {
                return Err(e);
            }
            // No shell within: the program has to do without signals, but for the terminal's own
            // keys.
            _ => {
                let (exec, tube) = self.exec_as(container, own, prompter)?;
                (exec, tube, None)
            }
        };
        let sized = self.engine.console_size(self.terminal.map(|t| t.size)).is_some();
        self.session(Held::Program { container: container.to_owned(), exec, pid }, tube, None, sized)
    }

    fn exec_as(
        &self,
        container: &str,
        argv: &[String],
        prompter: &mut dyn Prompter,
    ) -> EngineResult<(String, Tube)> {
        let mut body = json!({
            "Cmd": argv,
            "Env": self.env,
            "Tty": self.terminal.is_some(),
            "AttachStdin": true,
            "AttachStdout": true,
            "AttachStderr": true,
        });
        if let Some(cwd) = &self.cwd {
            body["WorkingDir"] = json!(cwd);
        }
        if let Some(user) = &self.place.user {
            body["User"] = json!(user);
        }
        let mut begin = json!({ "Detach": false, "Tty": self.terminal.is_some() });
        if let Some(size) = self.engine.console_size(self.terminal.map(|t| t.size)) {
            body["ConsoleSize"] = size.clone();
            begin["ConsoleSize"] = size;
        }
        let path = format!("/containers/{}/exec", escape(container));
        let created = self.engine.call("POST", &path, Some(&body))?;
        let exec = created["Id"].as_str().filter(|id| !id.is_empty() && escape(id) == *id);
        let exec = exec.ok_or_else(|| refused("the engine started a program without a name"))?.to_owned();
        let path = format!("/exec/{exec}/start");
        let (stream, early) = self.engine.hijack(&path, Some(&begin), Some(&mut || prompter.cancelled()))?;
        Ok((exec, self.tube(stream, early)))
    }

    fn tube(&self, stream: Socket, early: Vec<u8>) -> Tube {
        Tube { stream: Some(stream), early, frames: self.terminal.is_none().then(Frames::default) }
    }

    fn session(&self, held: Held, tube: Tube, watched: Option<Watched>, sized: bool) -> EngineResult<Docker> {
        let system = |e: io::Error| refused(&e.to_string());
        let verdict = Arc::new(Verdict::new().map_err(system)?);
        let will = last_will(&self.engine, &held);
        let hold = Hold { engine: self.engine.clone(), held, verdict: verdict.clone() };
        if let Some(terminal) = self.terminal.filter(|_| !sized) {
            // Engines that cannot start with a size set it as soon as the program runs.
            let _ = hold.resize(terminal.size);
        }
        if let Some(watched) = watched {
            let verdict = verdict.clone();
            let wait = move || {
                verdict.give(match watched.wait() {
                    Ok(said) if said["StatusCode"].is_i64() => Ok(exit_of(&said["StatusCode"])),
                    Ok(_) => Err("the engine does not say how the program ended".into()),
                    Err(e) => Err(e.to_string()),
                });
            };
            std::thread::Builder::new().name("tapdeck-docker-wait".into()).spawn(wait).map_err(system)?;
        }
        let worker = EngineWorker::start(move |orders| hold.serve(orders)).map_err(system)?;
        Ok(Docker {
            tube,
            // The far terminal has the engine's settings, whatever ours are.
            keys: Keys::of(None),
            drain: Drain::default(),
            input_ended: false,
            worker,
            verdict,
            _will: will,
        })
    }
}

/// The number that the herald tells; `None` when it was no herald who spoke.
fn read_herald(tube: &mut Tube, prompter: &mut dyn Prompter) -> EngineResult<Option<u32>> {
    let clock = Clock::start();
    let mut line = Vec::new();
    while line.len() < 40 && !line.ends_with(b"\n") {
        let mut byte = [0];
        // One at a time: what stands behind the line is the program's.
        match tube.take(&mut byte).map_err(|e| refused(&e.to_string()))? {
            (_, Took::Bytes(_)) => line.push(byte[0]),
            (_, Took::End) => break,
            (_, Took::Nothing) => {
                if let Some(signal) = prompter.cancelled() {
                    return Err(refused(&format!("called off by signal {signal}")));
                }
                if clock.elapsed() > HERALD_LIMIT {
                    return Err(refused("the container does not start the program"));
                }
                let Some(stream) = &tube.stream else { break };
                let look = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                // Only a pause; the read that follows finds an error, if there is one.
                let _ = poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&look));
            }
        }
    }
    let text = String::from_utf8_lossy(&line);
    Ok(text.strip_prefix("tapdeck ").and_then(|pid| pid.trim_end().parse().ok()))
}

fn refused(message: &str) -> EngineError {
    EngineError::Refused { status: 500, message: message.to_owned() }
}
