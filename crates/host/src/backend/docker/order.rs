//! What the worker does: a session's orders, said to the engine. A new container is signalled by
//! the engine. For a program within a running one the engine has no such call: one more program
//! beside it sends the signal.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::{Exit, WinSize};

use super::super::remote::Verdict;
use super::engine::{Engine, EngineError, escape};
use super::worker::Orders;
use crate::sys::LastWill;

/// How often, and how many times, an engine is asked how a program ended whose output has.
const ASK_AGAIN: Duration = Duration::from_millis(20);
const ASKS: usize = 250;

/// Signals the group in the terminal's foreground, or every process in the session of `$1`. A
/// session's number is that of its first process, which may be gone. The name of a program may hold
/// anything, so what stands behind its last bracket is read.
const SIGNAL: &str = r#"
for file in /proc/[0-9]*/stat; do
  IFS= read -r line 2>/dev/null <"$file" || continue
  pid=${line%% *}
  set -- "$1" "$2" "$3" ${line##*) }
  [ "$7" = "$1" ] || continue
  if [ "$3" = all ]; then kill "-$2" "$pid" 2>/dev/null; continue; fi
  group=$9; [ "$group" -gt 0 ] || group=$6
  kill "-$2" "-$group"; exit
done"#;

/// What is to be said to the engine if this process is killed, so that nothing of the session is
/// left behind.
pub(super) fn last_will(engine: &Engine, held: &Held) -> Option<LastWill> {
    let request = match held {
        Held::Container(id) => engine.request("DELETE", &format!("/containers/{id}?force=true&v=true"), None),
        Held::Program { container, pid: Some(pid), .. } => {
            let argv = ["sh", "-c", SIGNAL, "sh", &pid.to_string(), "KILL", "all"];
            let beside = prepare_beside(engine, container, &argv).ok()?;
            engine.request("POST", &format!("/exec/{beside}/start"), Some(&json!({ "Detach": true })))
        }
        Held::Program { pid: None, .. } => return None,
    };
    // Without it the session runs all the same.
    LastWill::request(engine.socket()?, &request).ok()
}

/// A short program in a container, ready to be started.
fn prepare_beside(engine: &Engine, container: &str, argv: &[&str]) -> Result<String, EngineError> {
    let body = json!({ "Cmd": argv, "User": "0", "AttachStdout": true, "AttachStderr": true });
    let path = format!("/containers/{}/exec", escape(container));
    let created = engine.call("POST", &path, Some(&body))?;
    Ok(escape(created["Id"].as_str().unwrap_or_default()))
}

/// What a session holds at the engine.
pub(super) enum Held {
    /// A container of its own.
    Container(String),
    /// A program in a container, and its process within, where that is known.
    Program { container: String, exec: String, pid: Option<u32> },
}

/// A session's hold on something at the engine.
pub(super) struct Hold {
    pub(super) engine: Engine,
    pub(super) held: Held,
    pub(super) verdict: Arc<Verdict>,
}

impl Hold {
    /// Carries out the orders; returns whether a size was refused. What else the engine refuses now
    /// concerns a program that is gone. An engine that is away is noticed by the wait for the
    /// program's end.
    pub(super) fn serve(&self, orders: &Orders) -> bool {
        let refused = orders.resize.is_some_and(|size| self.resize(size).is_err());
        if let Some(frozen) = orders.freeze {
            // See above: a refusal concerns a program that is gone.
            let _ = self.freeze(frozen);
        }
        for (name, all) in &orders.signals {
            // See above: a refusal concerns a program that is gone.
            let _ = self.signal(name, *all);
        }
        if orders.ended {
            self.find_out();
        }
        if orders.over {
            self.clear();
        }
        refused
    }

    pub(super) fn resize(&self, size: WinSize) -> Result<Value, EngineError> {
        let what = match &self.held {
            Held::Container(id) => format!("/containers/{id}"),
            Held::Program { exec, .. } => format!("/exec/{exec}"),
        };
        self.engine.call("POST", &format!("{what}/resize?h={}&w={}", size.rows, size.cols), None)
    }

    fn freeze(&self, frozen: bool) -> Result<Value, EngineError> {
        match &self.held {
            Held::Container(id) => {
                let what = if frozen { "pause" } else { "unpause" };
                self.engine.call("POST", &format!("/containers/{id}/{what}"), None)
            }
            Held::Program { .. } => self.signal(if frozen { "STOP" } else { "CONT" }, true),
        }
    }

    fn signal(&self, name: &str, all: bool) -> Result<Value, EngineError> {
        match &self.held {
            Held::Container(id) => {
                self.engine.call("POST", &format!("/containers/{id}/kill?signal={}", escape(name)), None)
            }
            Held::Program { container, pid: Some(pid), .. } => {
                let whom = if all { "all" } else { "foreground" };
                self.run_beside(container, &["sh", "-c", SIGNAL, "sh", &pid.to_string(), name, whom])
            }
            // Without a shell within there is no way to reach it.
            Held::Program { pid: None, .. } => Ok(Value::Null),
        }
    }

    /// Runs a short program in a container, to its end.
    fn run_beside(&self, container: &str, argv: &[&str]) -> Result<Value, EngineError> {
        let id = prepare_beside(&self.engine, container, argv)?;
        let body = json!({ "Detach": false, "Tty": false });
        self.engine.call("POST", &format!("/exec/{id}/start"), Some(&body))
    }

    /// The program's output has ended: how did it?
    fn find_out(&self) {
        let Held::Program { exec, .. } = &self.held else { return };
        for _ in 0..ASKS {
            match self.engine.call("GET", &format!("/exec/{exec}/json"), None) {
                Ok(state) if state["Running"] == json!(true) || state["ExitCode"].is_null() => {
                    std::thread::park_timeout(ASK_AGAIN);
                }
                Ok(state) => return self.verdict.give(Ok(exit_of(&state["ExitCode"]))),
                Err(e) => return self.verdict.give(Err(e.to_string())),
            }
        }
        self.verdict.give(Err("the program runs, but the engine has closed its output".into()));
    }

    /// The session is over: nothing of it is left behind.
    fn clear(&self) {
        let ended = self.verdict.get().is_some_and(|v| v.is_ok());
        match &self.held {
            // It goes by itself when its program has ended.
            Held::Container(_) if ended => {}
            Held::Container(id) => remove(&self.engine, id),
            Held::Program { .. } if ended => {}
            Held::Program { .. } => drop(self.signal("KILL", true)),
        }
    }
}

/// Removes a container, whatever it does.
pub(super) fn remove(engine: &Engine, id: &str) {
    // One that is gone, or going by itself, needs no help.
    let _ = engine.call("DELETE", &format!("/containers/{id}?force=true&v=true"), None);
}

/// How a program ended, as the engine says it.
pub(super) fn exit_of(code: &Value) -> Exit {
    code.as_i64().map_or(Exit::Code(255), exit_of_code)
}

/// How a program ended whose far side tells only a code: above 128 it is by convention a signal.
fn exit_of_code(code: i64) -> Exit {
    match i32::try_from(code) {
        Ok(code @ 129..=159) => Exit::Signal(code - 128),
        Ok(code) => Exit::Code(code),
        Err(_) => Exit::Code(255),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_above_128_are_signals() {
        let cases =
            [(7, Exit::Code(7)), (137, Exit::Signal(9)), (128, Exit::Code(128)), (255, Exit::Code(255))];
        for (code, exit) in cases {
            assert_eq!(exit_of(&json!(code)), exit);
        }
        assert_eq!((exit_of(&json!(i64::MAX)), exit_of(&Value::Null)), (Exit::Code(255), Exit::Code(255)));
    }
}
