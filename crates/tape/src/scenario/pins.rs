//! What a scenario holds its cassette to beside the output: how the run ended, what was typed, what
//! was told, and what the run was made from (command, environment, files, steps, play). Each has a
//! short digest in the scenario, so that a change can be named and not only noticed.

use serde_json::{Map, Value, json};

use super::{Line, Scenario};
use crate::cassette::{Exit, Files, Refusal, digest_hex, names};

/// Digits of a digest that only has to tell a change from none. What guards the cassette is its
/// whole binding.
const DIGITS: usize = 8;

/// The digests of what a scenario and its cassette hold, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pins(pub(super) Map<String, Value>);

/// Something that is not what was pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinChange {
    /// The line of the scenario, where there is one.
    pub line: Option<Line>,
    /// What has changed, in one sentence.
    pub what: String,
    /// Whether the cassette can be kept if the change is right. Steps that were not recorded cannot
    /// be judged from it.
    pub can_stay: bool,
}

fn short(bytes: &[u8]) -> Value {
    let mut digest = digest_hex(bytes);
    digest.truncate(DIGITS);
    digest.into()
}

fn of_value(value: &Value) -> Value {
    // Maps are sorted, so that the order of keys makes no difference.
    short(value.to_string().as_bytes())
}

fn of_map(value: Option<&Value>) -> Option<Value> {
    let map = value?.as_object().filter(|map| !map.is_empty())?;
    Some(map.iter().map(|(name, value)| (name.clone(), of_value(value))).collect::<Map<_, _>>().into())
}

/// A step: whatever is given to the program, word for word. What is only looked at may be put
/// differently, for it is judged anew each time.
fn of_step(step: &Value) -> Value {
    let Some(fields) = step.as_object() else { return of_value(step) };
    let looks = ["expect", "wait", "snapshot"].into_iter().find(|key| fields.contains_key(*key));
    looks.map_or_else(|| of_value(step), |key| short(key.as_bytes()))
}

impl Pins {
    /// Those of a scenario, of the files that it copies (names and contents' digests) and of its
    /// cassette.
    ///
    /// # Errors
    /// When the cassette lacks a file.
    pub fn of(
        scenario: &Scenario,
        copied: &[(String, String)],
        files: &Files,
        exit: &Exit,
    ) -> Result<Self, Refusal> {
        let scenario = &scenario.stated;
        let program = &scenario["program"];
        let ended = match (&exit.code, &exit.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => signal.clone(),
            (None, None) => "unknown".to_owned(),
        };
        let copied = copied.iter().map(|(name, digest)| (name.clone(), short(digest.as_bytes())));
        let copied: Map<String, Value> = copied.collect();
        let list = |key: &str, of: fn(&Value) -> Value| {
            let items = scenario[key].as_array().filter(|items| !items.is_empty())?;
            Some(Value::Array(items.iter().map(of).collect()))
        };
        let stated = |value: &Value| (!value.is_null()).then(|| of_value(value));
        let all = [
            ("exit", Some(json!(ended))),
            ("input", Some(short(files.need(names::INPUT)?))),
            ("events", Some(short(files.need(names::SERVICE)?))),
            ("run", stated(&program["run"])),
            ("on", stated(&program["on"])),
            ("allow", stated(&scenario["env"]["allow"])),
            ("set", of_map(scenario["env"].get("set"))),
            ("clock", stated(&scenario["clock"])),
            ("files", of_map(program.get("files"))),
            ("setup", list("setup", of_value)),
            ("copy", (!copied.is_empty()).then(|| copied.into())),
            ("steps", list("steps", of_step)),
            ("play", list("play", of_value)),
        ];
        Ok(Self(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()))
    }

    /// What is not as `self` has it. What `self` does not pin may be anything.
    pub fn changes(&self, now: &Self, scenario: &Scenario) -> Vec<PinChange> {
        let mut found = Vec::new();
        let mut say = |line, what: String| found.push(PinChange { line, what, can_stay: true });
        // A scenario from before there were pins for a part holds nothing to it.
        if self.0.is_empty() {
            return found;
        }
        let empty = Map::new();
        let map = |pins: &'_ Self, name: &str| pins.0.get(name).and_then(Value::as_object).cloned();
        for name in ["exit", "input", "events", "run", "on", "allow", "clock", "setup"] {
            let (before, is) = (self.0.get(name), now.0.get(name));
            if before == is {
                continue;
            }
            let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("unknown").to_owned();
            say(
                None,
                match name {
                    "exit" => format!(
                        "the recorded run ended with {}; the scenario was written for one that ended with {}",
                        ended(&text(is)),
                        ended(&text(before))
                    ),
                    "input" => "input.jsonl is not the input that the scenario was written for".to_owned(),
                    "events" => {
                        "service-events.jsonl has other events than those that the scenario was written for"
                            .to_owned()
                    }
                    "run" => "program.run is not the command that was recorded".to_owned(),
                    "setup" => "setup has other commands than those that were recorded".to_owned(),
                    "clock" => "clock is not the one with which it was recorded".to_owned(),
                    "on" => "program.on is not the place where it was recorded".to_owned(),
                    _ => "env.allow is not the list with which it was recorded".to_owned(),
                },
            );
        }
        for (name, what) in [("set", "env.set"), ("files", "program.files"), ("copy", "program.copy")] {
            let (before, is) = (map(self, name), map(now, name));
            let (before, is) = (before.as_ref().unwrap_or(&empty), is.as_ref().unwrap_or(&empty));
            for (key, digest) in is {
                match before.get(key) {
                    Some(before) if before == digest => {}
                    Some(_) => say(None, format!("{key} of {what} is not what it was in the recorded run")),
                    None => say(None, format!("{key} of {what} was not in the recorded run")),
                }
            }
            for key in before.keys().filter(|key| !is.contains_key(*key)) {
                say(None, format!("{key} of {what} was in the recorded run, and is gone"));
            }
        }
        for (name, one) in [("steps", "step"), ("play", "entry")] {
            let list = |pins: &Self| pins.0.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
            let (before, is) = (list(self), list(now));
            let differs = (0..before.len().max(is.len())).find(|i| before.get(*i) != is.get(*i));
            let Some(i) = differs else { continue };
            // Behind one that was added or taken away all others have moved.
            let number = i + 1;
            let counts = match before.len() == is.len() {
                true => String::new(),
                false => format!("; {} were recorded, and there are {}", before.len(), is.len()),
            };
            let line = scenario.steps.get(i).filter(|_| name == "steps").map(|step| step.line.clone());
            let what = format!("{one} {number} of {name} is not the one that was recorded{counts}");
            found.push(PinChange { line, what, can_stay: counts.is_empty() || name == "play" });
        }
        found
    }

    /// Returns whether a part is not as `self` has it.
    pub fn differs(&self, now: &Self, part: &str) -> bool {
        self.0.get(part) != now.0.get(part)
    }
}

fn ended(how: &str) -> String {
    match how.parse::<i32>() {
        Ok(code) => format!("exit code {code}"),
        Err(_) => how.to_owned(),
    }
}

/// JSON with a blank behind commas and colons, which is YAML too.
pub(super) fn line_of(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", Value::from(k.as_str()), line_of(v))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(line_of).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
