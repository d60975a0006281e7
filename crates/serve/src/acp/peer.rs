//! The client at the other end: JSON-RPC 2.0, one message a line, in both directions.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tapdeck_proto::acp::code;

/// The longest message of a client, in bytes.
const MESSAGE: usize = 16 << 20;

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RpcError {
    code: i64,
    message: String,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(code::PARAMS, message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(code::FAILED, message)
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        result: Result<Value, Value>,
    },
    /// What is none; the error goes to this id.
    Malformed {
        id: Value,
        error: RpcError,
    },
}

/// Reads the next message; `None` when the client has closed the stream. A line that is too long is
/// skipped without being kept.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    loop {
        let mut line = Vec::new();
        let read = from.by_ref().take(MESSAGE as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.len() > MESSAGE && line.last() != Some(&b'\n') {
            from.skip_until(b'\n')?;
            let error = RpcError::new(code::REQUEST, "the message is too long: at most 16 MiB");
            return Ok(Some(Incoming::Malformed { id: Value::Null, error }));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(parse(&line)));
        }
    }
}

fn parse(line: &[u8]) -> Incoming {
    let malformed = |id, code, why: String| Incoming::Malformed { id, error: RpcError::new(code, why) };
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(e) => return malformed(Value::Null, code::PARSE, format!("malformed JSON: {e}")),
    };
    let Value::Object(mut fields) = message else {
        return malformed(Value::Null, code::REQUEST, "a message is an object; there are no batches".into());
    };
    let id = fields.remove("id");
    let is_id = |id: &Value| matches!(id, Value::Null | Value::String(_) | Value::Number(_));
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return malformed(Value::Null, code::REQUEST, "\"id\" is a number or a text".into());
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let why = "\"jsonrpc\" is not \"2.0\"".to_owned();
        return malformed(id.unwrap_or_default(), code::REQUEST, why);
    }
    let params = fields.remove("params").unwrap_or_default();
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method, params },
        (Some(Value::String(method)), None) => Incoming::Notification { method, params },
        (None, Some(id)) if fields.contains_key("result") || fields.contains_key("error") => {
            let result = match fields.remove("error") {
                Some(error) => Err(error),
                None => Ok(fields.remove("result").unwrap_or_default()),
            };
            Incoming::Response { id, result }
        }
        (_, id) => {
            let why = "neither a request nor a response".to_owned();
            malformed(id.unwrap_or_default(), code::REQUEST, why)
        }
    }
}

/// Reads the parameters of a method.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|e| RpcError::params(e.to_string()))
}

/// Requests that the client has not answered.
#[derive(Default)]
struct Asked {
    last: u64,
    open: HashMap<u64, Sender<Result<Value, Value>>>,
}

/// The way to the client.
pub(super) struct Peer {
    to: Mutex<Box<dyn Write + Send>>,
    asked: Mutex<Asked>,
}

impl Peer {
    pub(super) fn new(to: impl Write + Send + 'static) -> Self {
        Self { to: Mutex::new(Box::new(to)), asked: Mutex::default() }
    }

    /// Sends a message. A client that is gone is noticed by the end of what it sends.
    fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = to.write_all(line.as_bytes()).and_then(|()| to.flush()) {
            tracing::debug!("the client does not read: {e}");
        }
    }

    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": value(params)}));
    }

    pub(super) fn respond(&self, id: &Value, result: Result<Value, RpcError>) {
        self.send(&match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(RpcError { code, message }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        });
    }

    /// Asks the client for something. Returns the number of the request, and where its answer
    /// comes.
    pub(super) fn ask(&self, method: &str, params: &impl Serialize) -> (u64, Receiver<Result<Value, Value>>) {
        let (tell, answer) = channel();
        let id = {
            let mut asked = self.asked();
            asked.last += 1;
            let id = asked.last;
            asked.open.insert(id, tell);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": value(params)}));
        (id, answer)
    }

    /// Forgets a request. Returns whether the client has not answered it.
    pub(super) fn forget(&self, id: u64) -> bool {
        self.asked().open.remove(&id).is_some()
    }

    /// Takes a request back, whose answer is of no more use.
    pub(super) fn take_back(&self, id: u64) {
        if self.forget(id) {
            self.notify("$/cancel_request", &json!({"requestId": id}));
        }
    }

    /// Passes on the client's answer. One that nothing waits for came too late.
    pub(super) fn answered(&self, id: &Value, result: Result<Value, Value>) {
        let waits = id.as_u64().and_then(|id| self.asked().open.remove(&id));
        if let Some(waits) = waits {
            // The prompt that asked may be over.
            let _ = waits.send(result);
        }
    }

    /// Forgets all requests: no answer will come.
    pub(super) fn hang_up(&self) {
        self.asked().open.clear();
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a message's part as JSON. The types of the protocol can always be written.
pub(super) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> (Value, i64) {
        match parse(line.as_bytes()) {
            Incoming::Malformed { id, error } => (id, error.code),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_gets_the_error_of_json_rpc() {
        assert_eq!(error("{"), (Value::Null, code::PARSE));
        assert_eq!(error("\u{ff}"), (Value::Null, code::PARSE));
        assert_eq!(error("[]"), (Value::Null, code::REQUEST));
        assert_eq!(error("7"), (Value::Null, code::REQUEST));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#), (Value::Null, code::REQUEST));
        assert_eq!(error(r#"{"id":1,"method":"x"}"#), (1.into(), code::REQUEST));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":"a","method":3}"#), ("a".into(), code::REQUEST));
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":2}"#), (2.into(), code::REQUEST));
        assert_eq!(error(&"[".repeat(100_000)), (Value::Null, code::PARSE), "too deep");
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let mut lines = vec![b'"'; MESSAGE + 10];
        lines.extend(b"\n\n{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}\n");
        let mut from = lines.as_slice();
        assert!(matches!(read(&mut from), Ok(Some(Incoming::Malformed { .. }))));
        let method = "session/cancel".to_owned();
        let next = read(&mut from).expect("readable");
        assert_eq!(next, Some(Incoming::Notification { method, params: Value::Null }));
        assert_eq!(read(&mut from).expect("readable"), None);
    }

    #[test]
    fn answers_come_to_the_one_that_asked() {
        let peer = Peer::new(io::sink());
        let (id, answer) = peer.ask("x", &json!({}));
        peer.answered(&json!("other"), Ok(json!(1)));
        peer.answered(&json!(id), Ok(json!(2)));
        assert_eq!(answer.recv(), Ok(Ok(json!(2))));
        let (id, answer) = peer.ask("x", &json!({}));
        peer.take_back(id);
        peer.answered(&json!(id), Ok(json!(3)));
        assert!(answer.recv().is_err());
    }
}
