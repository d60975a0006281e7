//! The engine: the few of its calls that a session needs. Docker's own and Podman's compatible
//! socket speak the same.

use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::WinSize;

use super::http::{Answer, CallOff, Endpoint, HttpError, Patience, Socket, request};

/// How long the engine may take for an ordinary call. Removing a container that does not want to go
/// takes it longest.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a registry may be silent while an image is pulled.
const PULL_LIMIT: Duration = Duration::from_secs(300);
/// The first version whose terminals can begin with a size.
const SIZED: (u32, u32) = (1, 42);

/// What the engine refused or did not do.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    /// It answered, with an error.
    #[error("{message}")]
    Refused { status: u16, message: String },
    /// It did not answer, or not as an engine does.
    #[error("the engine at {endpoint}: {why}")]
    Away { endpoint: Endpoint, why: HttpError },
}

impl EngineError {
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            EngineError::Refused { status, .. } => Some(*status),
            EngineError::Away { .. } => None,
        }
    }
}

pub(super) type EngineResult<T> = Result<T, EngineError>;

/// The same for one more call.
fn again<'a>(cancelled: &'a mut Option<CallOff<'_>>) -> Option<CallOff<'a>> {
    cancelled.as_mut().map(|f| &mut **f as CallOff<'a>)
}

/// An engine that has answered.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    endpoint: Endpoint,
    version: (u32, u32),
}

impl Engine {
    /// Finds out what the engine speaks.
    pub(super) fn greet(endpoint: Endpoint, mut cancelled: Option<CallOff<'_>>) -> EngineResult<Self> {
        // Every engine answers this, whatever its version.
        let engine = Self { endpoint, version: (0, 0) };
        let answer = engine.send("GET", "/_ping", None, false, LIMIT.into(), again(&mut cancelled))?;
        let version = answer.header("api-version").and_then(parse_version);
        let nonsense = HttpError::Nonsense("it does not say which version it is");
        let version =
            version.ok_or(EngineError::Away { endpoint: engine.endpoint.clone(), why: nonsense })?;
        Ok(Self { version, ..engine })
    }

    /// Where it is, and what it speaks.
    pub(super) fn describe(&self) -> String {
        let (major, minor) = self.version;
        format!("{} speaks version {major}.{minor}", self.endpoint)
    }

    /// A size to begin with, as part of a request, where the engine knows such a thing.
    pub(super) fn console_size(&self, size: Option<WinSize>) -> Option<Value> {
        size.filter(|_| self.version >= SIZED).map(|size| json!([size.rows, size.cols]))
    }

    /// A call with a short answer.
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> EngineResult<Value> {
        self.call_while(method, path, body, LIMIT.into(), None)
    }

    /// Makes a call that the user may cancel.
    pub(super) fn call_while(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        limit: Option<Duration>,
        mut cancelled: Option<CallOff<'_>>,
    ) -> EngineResult<Value> {
        let mut answer = self.send(method, path, body, false, limit, again(&mut cancelled))?;
        let text = answer
            .body(&mut Patience { limit, cancelled: again(&mut cancelled) })
            .map_err(|why| self.away(why))?;
        Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
    }

    /// A call after which the connection belongs to the program.
    pub(super) fn hijack(
        &self,
        path: &str,
        body: Option<&Value>,
        mut cancelled: Option<CallOff<'_>>,
    ) -> EngineResult<(Socket, Vec<u8>)> {
        Ok(self.send("POST", path, body, true, LIMIT.into(), again(&mut cancelled))?.into_stream())
    }

    /// A call whose answer begins now and ends when something has happened.
    pub(super) fn watch(&self, path: &str, mut cancelled: Option<CallOff<'_>>) -> EngineResult<Watched> {
        let answer = self.send("POST", path, None, false, LIMIT.into(), again(&mut cancelled))?;
        Ok(Watched { answer, endpoint: self.endpoint.clone() })
    }

    /// Fetches an image, and tells now and then how it gets on.
    pub(super) fn pull(&self, image: &str, mut cancelled: Option<CallOff<'_>>) -> EngineResult<()> {
        // Without a tag all of them would come.
        let name = image.rsplit('/').next().unwrap_or(image);
        let tag = if name.contains([':', '@']) { "" } else { ":latest" };
        let path = format!("/images/create?fromImage={}", escape(&format!("{image}{tag}")));
        let limit = Some(PULL_LIMIT);
        let mut answer = self.send("POST", &path, None, false, limit, again(&mut cancelled))?;
        let mut line = Vec::new();
        let mut failed = None;
        while let Some(piece) = answer
            .piece(&mut Patience { limit, cancelled: again(&mut cancelled) })
            .map_err(|why| self.away(why))?
        {
            // One object a line; a line that is too long to be one is not kept.
            for byte in piece {
                if byte == b'\n' || line.len() > 64 * 1024 {
                    let said: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
                    failed = said["error"].as_str().map(str::to_owned).or(failed);
                    line.clear();
                } else {
                    line.push(byte);
                }
            }
        }
        match failed {
            Some(message) => Err(EngineError::Refused { status: 404, message }),
            None => Ok(()),
        }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        upgrade: bool,
        limit: Option<Duration>,
        mut cancelled: Option<CallOff<'_>>,
    ) -> EngineResult<Answer> {
        let bytes = request(method, &self.versioned(path), body, upgrade);
        let mut answer =
            Answer::to(&self.endpoint, &bytes, &mut Patience { limit, cancelled: again(&mut cancelled) })
                .map_err(|why| self.away(why))?;
        if (200..400).contains(&answer.status) || answer.status == 101 {
            return Ok(answer);
        }
        let status = answer.status;
        let text = answer
            .body(&mut Patience { limit, cancelled: again(&mut cancelled) })
            .map_err(|why| self.away(why))?;
        let said: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        let message = match said["message"].as_str() {
            Some(message) => message.trim().to_owned(),
            None => format!("the engine at {} refused with {status}", self.endpoint),
        };
        Err(EngineError::Refused { status, message })
    }

    fn versioned(&self, path: &str) -> String {
        let (major, minor) = self.version;
        if major == 0 { path.to_owned() } else { format!("/v{major}.{minor}{path}") }
    }

    /// A request as it goes over the wire, for another process to send.
    pub(super) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        request(method, &self.versioned(path), body, false)
    }

    /// The engine's socket, where it has one.
    pub(super) fn socket(&self) -> Option<&std::path::Path> {
        match &self.endpoint {
            Endpoint::Unix(path) => Some(path),
            Endpoint::Tcp(_) | Endpoint::Tls(..) => None,
        }
    }

    fn away(&self, why: HttpError) -> EngineError {
        EngineError::Away { endpoint: self.endpoint.clone(), why }
    }
}

/// An answer that is waited for.
pub(super) struct Watched {
    answer: Answer,
    endpoint: Endpoint,
}

impl Watched {
    /// Waits for it, for as long as it takes.
    pub(super) fn wait(mut self) -> EngineResult<Value> {
        let mut patience = Patience { limit: None, cancelled: None };
        let text = self.answer.body(&mut patience);
        let text = text.map_err(|why| EngineError::Away { endpoint: self.endpoint, why })?;
        Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok().filter(|m| *m > 0)?, minor.parse().ok()?))
}

/// A piece of a path or a query, in which nothing means anything.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_paths_escaped() {
        assert_eq!(parse_version("1.41"), Some((1, 41)));
        assert_eq!((parse_version(""), parse_version("0.1"), parse_version("1")), (None, None, None));
        assert_eq!(escape("a/b:c d"), "a%2Fb%3Ac%20d");
    }
}
