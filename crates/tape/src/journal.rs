//! Records of an agent's own journal: JSON, one record a file or a line. The rules say which fields
//! mean what.

use serde_json::Value;
use tapdeck_core::WallTime;
use tapdeck_core::turns::{Journal, JournalRecord, Reported, ToolCalls, ToolResults};

/// The longest text that is taken out of a record.
const MAX_TEXT: usize = 4 << 20;
/// The longest text that is taken of a tool's run: what it works on, and what it returned.
const TOOL_TEXT: usize = 8 << 10;

/// A record of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Record(Value);

impl Record {
    /// Reads a record; `None` when it is no JSON, or not whole yet.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().map(Self)
    }

    /// The text of a field.
    pub fn text(&self, field: &str) -> Option<String> {
        match *values(&self.0, field).first()? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(is) => Some(is.to_string()),
            _ => None,
        }
    }

    /// When it was written down, if it says so: milliseconds since 1970, or a time as RFC 3339
    /// writes it.
    pub fn time(&self, journal: &Journal) -> Option<WallTime> {
        self.time_in(journal.time.as_deref()?)
    }

    /// The time in a field.
    pub fn time_in(&self, field: &str) -> Option<WallTime> {
        match *values(&self.0, field).first()? {
            Value::Number(millis) => millis.as_u64().map(WallTime::from_millis),
            Value::String(text) => utc(text),
            _ => None,
        }
    }

    /// What it says, by the first rule that fits.
    pub fn reports(&self, journal: &Journal) -> Vec<Reported> {
        let fits = |rule: &&JournalRecord| rule.when.iter().all(|(field, value)| self.has(field, value));
        let Some(rule) = journal.records.iter().find(fits) else { return Vec::new() };
        let mut found = Vec::new();
        if let Some(text) = self.texts(&rule.asked) {
            found.push(Reported::Asked(text));
        }
        if let Some(text) = self.texts(&rule.said) {
            found.push(Reported::Said(text));
        }
        if let Some(calls) = &rule.used {
            found.extend(self.used(calls));
        }
        if let Some(results) = &rule.returned {
            found.extend(self.returned(results));
        }
        if rule.ended {
            found.push(Reported::Ended(rule.interrupted));
        }
        if let Some(state) = rule.state {
            let detail = rule.detail.as_deref().and_then(|field| self.text(field)).unwrap_or_default();
            found.push(Reported::State(state, detail.chars().take(200).collect()));
        }
        found
    }

    /// The tools that it says the program ran.
    fn used<'r>(&'r self, calls: &'r ToolCalls) -> impl Iterator<Item = Reported> + 'r {
        elements(&self.0, &calls.each).into_iter().filter_map(|call| {
            let name = text_at(call, &calls.name).filter(|name| !name.is_empty())?;
            let about = calls.about.iter().find_map(|path| text_at(call, path)).unwrap_or_default();
            Some(Reported::Used { id: text_at(call, &calls.id).unwrap_or_default(), name, about })
        })
    }

    /// What it says that tools returned.
    fn returned<'r>(&'r self, results: &'r ToolResults) -> impl Iterator<Item = Reported> + 'r {
        elements(&self.0, &results.each).into_iter().filter_map(|result| {
            let text = results.text.iter().find_map(|path| text_at(result, path)).unwrap_or_default();
            let failed = results.failed.as_ref().and_then(|path| text_at(result, path));
            let failed = failed.is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
            Some(Reported::Returned { id: text_at(result, &results.id)?, text, failed })
        })
    }

    fn has(&self, field: &str, value: &str) -> bool {
        if value == "*" {
            !values(&self.0, field).is_empty()
        } else {
            self.text(field).as_deref() == Some(value)
        }
    }

    /// The texts of these fields, one below the other.
    fn texts(&self, fields: &[String]) -> Option<String> {
        let all = fields.iter().flat_map(|field| values(&self.0, field)).filter_map(Value::as_str);
        let mut text = String::new();
        for part in all {
            if text.len() + part.len() > MAX_TEXT {
                break;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(part);
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The values that a path of names leads to; `*` is every element of a list.
fn values<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for name in path.split('.') {
        found = found
            .into_iter()
            .flat_map(|value| match (name, value) {
                ("*", Value::Array(all)) => all.iter().collect::<Vec<_>>(),
                (name, Value::Object(map)) => map.get(name).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect();
    }
    found.retain(|value| !value.is_null());
    found
}

/// The values that a path leads to; the value itself for an empty path.
fn elements<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    if path.is_empty() { vec![value] } else { values(value, path) }
}

/// The text at a path, at most [`TOOL_TEXT`] of it. Lists are joined, and a text on the way that is
/// JSON is read.
fn text_at(value: &Value, path: &str) -> Option<String> {
    let Some((name, rest)) = path.split_once('.').or((!path.is_empty()).then_some((path, ""))) else {
        return plain_text(value);
    };
    match value {
        Value::Object(map) => text_at(map.get(name)?, rest),
        Value::Array(list) if name == "*" => {
            let texts: Vec<String> = list.iter().filter_map(|element| text_at(element, rest)).collect();
            (!texts.is_empty()).then(|| cut(texts.join("\n")))
        }
        Value::String(text) if text.starts_with('{') => {
            text_at(&serde_json::from_str::<Value>(text).ok()?, path)
        }
        _ => None,
    }
}

/// A value as text.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(cut(text.clone())),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            Some(cut(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")))
        }
        Value::Array(_) => None,
        other => Some(cut(other.to_string())),
    }
}

/// A text of a tool's run, shortened where it is too long.
fn cut(mut text: String) -> String {
    if text.len() > TOOL_TEXT {
        text.truncate(text.floor_char_boundary(TOOL_TEXT));
        text.push_str("\n…");
    }
    text
}

/// Reads a time in UTC, such as `2026-11-18T15:17:46.779Z`.
fn utc(text: &str) -> Option<WallTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':');
    let hour: u64 = clock.next()?.parse().ok()?;
    let minute: u64 = clock.next()?.parse().ok()?;
    let seconds: f64 = clock.next()?.parse().ok()?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    // Days since 1970: years begin in March, so that the leap day is the last one.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;
    let seconds_of_day = (hour * 60 + minute) * 60;
    let whole = days.checked_sub(719_468)? * 86_400 + seconds_of_day;
    Some(WallTime::from_secs(whole) + std::time::Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Agents;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-18T15:17:46.779Z", Some(1_795_015_066_779)),
            ("2024-02-29T23:59:59.5Z", Some(1_709_251_199_500)),
            ("2000-03-01T00:00:00Z", Some(951_868_800_000)),
            ("2026-11-18 15:17:46", None),
            ("2026-13-18T15:17:46Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("TZ", None),
        ] {
            assert_eq!(utc(text).map(WallTime::as_millis), millis, "{text}");
        }
    }

    #[test]
    fn records_say_what_the_rules_of_the_agents_know() {
        let agents = Agents::new(&[]).expect("read");
        let rules = |name: &str| agents.rules(name).expect("sound").expect("there");
        let said = |agent: &str, journal: usize, record: &str| {
            let rules = rules(agent);
            let record = Record::parse(record.as_bytes()).expect("JSON");
            format!("{:?}", record.reports(&rules.journals()[journal]))
        };
        let cases = [
            ("claude", 0, r#"{"status":"busy"}"#, r#"[State(Working, "")]"#),
            (
                "claude",
                0,
                r#"{"status":"waiting","waitingFor":"permission prompt"}"#,
                r#"[State(Blocked, "permission prompt")]"#,
            ),
            ("claude", 0, r#"{"status":"idle"}"#, r#"[State(Idle, "")]"#),
            ("claude", 0, r#"{"status":"new"}"#, "[]"),
            (
                "claude",
                1,
                r#"{"type":"user","origin":{"kind":"human"},"message":{"content":"hello"}}"#,
                r#"[Asked("hello")]"#,
            ),
            (
                "claude",
                1,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}"#,
                "[]",
            ),
            (
                "claude",
                1,
                r#"{"type":"assistant","isSidechain":false,"message":{"content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"}]}}"#,
                r#"[Said("a\nb")]"#,
            ),
            (
                "claude",
                1,
                r#"{"type":"assistant","isSidechain":false,"message":{"content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"a.txt","content":"x"}}]}}"#,
                r#"[Used { id: "t1", name: "Write", about: "a.txt" }]"#,
            ),
            (
                "claude",
                1,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"no"}],"is_error":true}]}}"#,
                r#"[Returned { id: "t1", text: "no", failed: true }]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}"#,
                r#"[Used { id: "c1", name: "exec_command", about: "ls" }]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"c1","aggregated_output":"a\n","exit_code":2}}}"#,
                r#"[Returned { id: "c1", text: "a\n", failed: true }]"#,
            ),
            (
                "claude",
                1,
                r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"a"}]}}"#,
                "[]",
            ),
            (
                "claude",
                1,
                r#"{"type":"user","interruptedMessageId":"m","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
                "[Ended(true)]",
            ),
            ("claude", 1, r#"{"type":"system","subtype":"turn_duration"}"#, "[Ended(false)]"),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"task_started"}}"#,
                r#"[State(Working, "")]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"hi"}]}}}"#,
                r#"[Asked("hi")]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","content":[{"type":"Text","text":"ho"}]}}}"#,
                r#"[Said("ho")]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"task_complete"}}"#,
                r#"[Ended(false), State(Idle, "")]"#,
            ),
            (
                "codex",
                0,
                r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#,
                r#"[Ended(true), State(Idle, "")]"#,
            ),
        ];
        for (agent, journal, record, wanted) in cases {
            assert_eq!(said(agent, journal, record), wanted, "{record}");
        }
    }
}
