//! What a client wants, read out of its negotiation: every field is looked at, and what makes no sense is refused with
//! its name rather than guessed at.

use serde_json::{Map, Value, json};
use tapdeck_core::WinSize;

use super::{WireError, fields};

/// A session that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Negotiation {
    /// Where it is to run, or `attach` for one that runs already.
    pub backend: String,
    /// What the client shows to be let in.
    pub token: Option<String>,
    /// The terminal; without one, the program runs on pipes.
    pub tty: Option<Tty>,
    /// Program and arguments; the user's shell when empty.
    pub cmd: Vec<String>,
    /// Where to run it.
    pub cwd: Option<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// A name for people: the session's, or the client's own when it attaches.
    pub name: Option<String>,
    /// The session goes on when the client has gone.
    pub detached: bool,
    /// The whole of it, for fields of a backend's own.
    pub rest: Map<String, Value>,
}

/// The client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tty {
    /// What kind it is.
    pub term: Option<String>,
    /// How large.
    pub size: WinSize,
    /// Its settings, by the names of the ssh protocol.
    pub modes: Vec<(String, u8)>,
    /// The program's questions are answered at the client's side.
    pub answers: bool,
}

impl Default for Tty {
    fn default() -> Self {
        Self { term: None, size: WinSize::cells(80, 24), modes: Vec::new(), answers: true }
    }
}

impl Negotiation {
    /// Reads a negotiation.
    pub fn from_json(value: Value) -> Result<Self, WireError> {
        if !value.is_object() {
            return Err(wrong("a negotiation is an object"));
        }
        let text =
            |key: &str| fields::text(&value, key).map(|t| t.map(str::to_owned)).map_err(WireError::Json);
        match text("carriage")?.as_deref() {
            None | Some("raw") => {}
            Some(other) => return Err(no_carriage(other)),
        }
        let backend = text("backend")?.unwrap_or_else(|| "local".into());
        let mut cmd = Vec::new();
        match value.get("cmd") {
            None | Some(Value::Null) => {}
            Some(Value::Array(args)) => {
                for arg in args {
                    let arg = arg.as_str().ok_or_else(|| wrong("\"cmd\" is a list of texts"))?;
                    if arg.contains('\0') {
                        return Err(wrong("\"cmd\" has a NUL in it, which no argument can have"));
                    }
                    cmd.push(arg.to_owned());
                }
            }
            Some(_) => return Err(wrong("\"cmd\" is a list of texts")),
        }
        let mut env = Vec::new();
        match value.get("env") {
            None | Some(Value::Null) => {}
            Some(Value::Object(all)) => {
                for (key, value) in all {
                    let value = value.as_str().filter(|v| !v.contains('\0'));
                    let fits = !key.is_empty() && !key.contains(['=', '\0']);
                    match value.filter(|_| fits) {
                        Some(value) => env.push((key.clone(), value.to_owned())),
                        None => return Err(wrong("\"env\" has names and texts")),
                    }
                }
            }
            Some(_) => return Err(wrong("\"env\" has names and texts")),
        }
        let detached = fields::flag(&value, "detached", false).map_err(WireError::Json)?;
        let (token, cwd, name) = (text("token")?, text("cwd")?, text("name")?);
        let tty = value.get("tty").filter(|t| !t.is_null()).map(Tty::from_json).transpose()?;
        let Value::Object(rest) = value else { return Err(wrong("a negotiation is an object")) };
        Ok(Self { backend, token, tty, cmd, cwd, env, name, detached, rest })
    }

    /// The negotiation that asks for it.
    pub fn to_json(&self) -> Value {
        let mut all = self.rest.clone();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                all.insert(key.to_owned(), value);
            }
        };
        put("carriage", json!("raw"));
        put("backend", json!(self.backend));
        put("token", json!(self.token));
        put("cmd", json!(self.cmd));
        put("cwd", json!(self.cwd));
        put("env", Value::Object(self.env.iter().map(|(k, v)| (k.clone(), json!(v))).collect()));
        put("name", json!(self.name));
        put("detached", json!(self.detached));
        all.insert("tty".into(), self.tty.as_ref().map_or(Value::Null, Tty::to_json));
        Value::Object(all)
    }
}

impl Tty {
    pub(super) fn from_json(value: &Value) -> Result<Self, WireError> {
        let Value::Object(tty) = value else { return Err(wrong("\"tty\" is an object or null")) };
        let size = if tty.contains_key("cols") || tty.contains_key("rows") {
            size_of(value).ok_or_else(|| wrong("\"tty\" has cols and rows, from 1 to 10000"))?
        } else {
            WinSize::cells(80, 24)
        };
        let mut modes = Vec::new();
        match tty.get("modes") {
            None | Some(Value::Null) => {}
            Some(Value::Object(all)) => {
                for (name, value) in all {
                    let value = value.as_u64().or(value.as_bool().map(u64::from));
                    let value = value.and_then(|v| u8::try_from(v).ok());
                    modes
                        .push((name.clone(), value.ok_or_else(|| wrong("\"modes\" has numbers up to 255"))?));
                }
            }
            Some(_) => return Err(wrong("\"modes\" is an object")),
        }
        let answers = fields::flag(value, "answers", true).map_err(WireError::Json)?;
        let term = fields::text(value, "term").map_err(WireError::Json)?.map(str::to_owned);
        Ok(Self { term, size, modes, answers })
    }

    fn to_json(&self) -> Value {
        let mut value = size_json(self.size);
        value["term"] = json!(self.term);
        value["modes"] = Value::Object(self.modes.iter().map(|(n, v)| (n.clone(), json!(v))).collect());
        value["answers"] = json!(self.answers);
        value
    }
}

/// No terminal has more columns or rows.
const MAX_SIDE: u16 = 10_000;

/// A size as the wire carries it: a terminal without rows or columns is none, nor is one of more than can be.
pub fn size_of(value: &Value) -> Option<WinSize> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let side = |key: &str| {
        let n = number(key).and_then(|n| u16::try_from(n).ok());
        n.filter(|n| (1..=MAX_SIDE).contains(n))
    };
    let (cols, rows) = (side("cols")?, side("rows")?);
    let pixels = |key: &str| number(key).map_or(0, |n| u16::try_from(n).unwrap_or(u16::MAX));
    Some(WinSize { cols, rows, x_pixels: pixels("pixel_width"), y_pixels: pixels("pixel_height") })
}

/// Returns a size that the wire can carry: a terminal that does not know its size still needs one where
/// the program runs.
pub(crate) fn on_wire(size: WinSize) -> WinSize {
    let size = size.or_default();
    WinSize { cols: size.cols.min(MAX_SIDE), rows: size.rows.min(MAX_SIDE), ..size }
}

/// Encodes a size as the wire carries it.
pub fn size_json(size: WinSize) -> Value {
    let size = on_wire(size);
    json!({
        "cols": size.cols,
        "rows": size.rows,
        "pixel_width": size.x_pixels,
        "pixel_height": size.y_pixels,
    })
}

/// A carriage that does not exist.
pub(super) fn no_carriage(asked: &str) -> WireError {
    wrong(&format!("there is no carriage {asked:?}: it is \"raw\""))
}

fn wrong(what: &str) -> WireError {
    WireError::Json(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negotiation_says_what_is_wanted_or_what_is_wrong_with_it() {
        let ask = json!({
            "carriage": "raw", "backend": "local", "cmd": ["sh", "-c", "x"], "cwd": "/", "env": {"A": "b"},
            "tty": {"term": "vt100", "cols": 100, "rows": 30, "pixel_width": 5, "pixel_height": 6, "modes": {"ECHO": 0}},
            "token": "t", "detached": true, "container": "c1",
        });
        let wanted = Negotiation::from_json(ask.clone()).expect("fine");
        assert_eq!((wanted.cmd.len(), wanted.env[0].1.as_str(), wanted.detached), (3, "b", true));
        let tty = wanted.tty.clone().expect("a terminal");
        assert_eq!((tty.size.cols, tty.size.y_pixels, tty.answers), (100, 6, true));
        assert_eq!(tty.modes, [("ECHO".to_owned(), 0)]);
        assert_eq!(wanted.rest["container"], "c1");
        assert_eq!(Negotiation::from_json(wanted.to_json()).map(|w| w.tty), Ok(Some(tty)), "there and back");

        let unsized_tty = Tty { size: WinSize::cells(0, 0), ..Tty::default() };
        let asked = Negotiation { tty: Some(unsized_tty), ..wanted.clone() };
        let size = Negotiation::from_json(asked.to_json()).expect("taken").tty.expect("a terminal").size;
        assert_eq!((size.cols, size.rows), (80, 24), "a terminal that does not know its size");

        let least = Negotiation::from_json(json!({})).expect("everything has a default");
        assert_eq!((least.backend.as_str(), least.tty, least.cmd.is_empty()), ("local", None, true));
        for (wrong, field) in [
            (json!([]), "object"),
            (json!({"carriage": "boat"}), "carriage"),
            (json!({"backend": 1}), "backend"),
            (json!({"cmd": "ls"}), "cmd"),
            (json!({"cmd": ["a\0b"]}), "NUL"),
            (json!({"env": {"A=B": "c"}}), "env"),
            (json!({"env": []}), "env"),
            (json!({"cwd": "a\0"}), "cwd"),
            (json!({"tty": 5}), "tty"),
            (json!({"tty": {"cols": 0, "rows": 5}}), "cols"),
            (json!({"tty": {"cols": 70_000, "rows": 5}}), "cols"),
            (json!({"tty": {"answers": "no"}}), "answers"),
            (json!({"token": 5}), "token"),
            (json!({"name": ["n"]}), "name"),
            (json!({"tty": {"modes": {"VINTR": 300}}}), "modes"),
            (json!({"detached": "yes"}), "detached"),
        ] {
            let error = Negotiation::from_json(wrong.clone()).expect_err("it makes no sense").to_string();
            assert!(error.contains(field), "{wrong}: {error}");
        }
    }
}
