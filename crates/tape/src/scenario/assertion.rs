//! Assertions of the file to claims.

use tapdeck_core::Exit;
use tapdeck_core::check::{
    self, Anchor, BytesTest, Claim, Count, ExitTest, Happening, Json, JsonPath, JsonTest, ParseError, Point,
    Schema, TextTest, Trace, Window, pattern, signal_name, signal_number,
};

use super::condition::{self, Common, Said, count, size};
use super::raw::{self, At};
use super::timeline::from_json;
use super::{Assertion, ScenarioError, Stored};
use crate::base64;
use crate::cassette::names;

pub(super) fn read(
    raw: At<raw::Assertion>,
    common: &Common,
    stored: Stored<'_>,
) -> Result<Assertion, ScenarioError> {
    let line = raw.line;
    let at = |what: String| ScenarioError { line: line.clone(), what };
    let raw = raw.value;
    let wrong = |e: ParseError| at(e.into());
    let point = |text: &Option<String>| text.as_ref().map(|t| t.parse::<Point>()).transpose().map_err(wrong);
    let (here, from, to) = (point(&raw.at)?, point(&raw.from)?, point(&raw.to)?);
    if here.is_some() && (from.is_some() || to.is_some()) {
        return Err(at("at is one point, from and to are a stretch: write the one or the other".into()));
    }
    let window = Window { from, to };
    let condition = |c: &raw::Condition| condition::read(c, &line, common, stored);
    let mut claims: Vec<(&str, Claim)> = Vec::new();
    let mut add = |key, claim| claims.push((key, claim));
    if let Some(length) = &raw.stable_for {
        let length = check::length(length).map_err(wrong)?;
        let screen = condition::stable(raw.screen.as_ref(), &line, common, stored)?;
        // At a point: from there on, for so long.
        let window = match &here {
            Some(p) => {
                let until = p.clone().plus(length);
                Window { from: Some(p.clone()), to: Some(until) }
            }
            None => window.clone(),
        };
        add("stable_for", Claim::StableFor(length, window, screen));
    } else if let Some(c) = &raw.screen {
        if window != Window::default() {
            return Err(
                at("screen is a state at one point: write at, or always, eventually or never".into()),
            );
        }
        let point = here.clone().unwrap_or_else(|| Anchor::End.into());
        add("screen", Claim::At(point, condition(c)?));
    }
    if let Some(c) = &raw.eventually {
        add("eventually", Claim::Eventually(window.clone(), condition(c)?));
    }
    if let Some(c) = &raw.never {
        add("never", Claim::Never(window.clone(), condition(c)?));
    }
    if let Some(c) = &raw.always {
        add("always", Claim::Always(window.clone(), condition(c)?));
    }
    for (key, trace) in traces(&raw).map_err(at)? {
        add(key, Claim::Trace(window.clone(), trace));
    }
    let keys: Vec<&str> = claims.iter().map(|(key, _)| *key).collect();
    let takes_at = matches!(keys[..], ["screen" | "stable_for"]);
    match (claims.pop(), claims.is_empty()) {
        (Some(_), true) if here.is_some() && !takes_at => {
            Err(at(format!("{} looks at a stretch: write from and to instead of at", keys[0])))
        }
        (Some((_, claim)), true) => Ok(Assertion { line, name: raw.name, claim }),
        (Some(_), false) => Err(at(format!("one thing at a time: this asks for {}", keys.join(" and ")))),
        (None, _) => Err(at("this asks for nothing: write screen, eventually, never, exit …".into())),
    }
}

/// Claims by their key.
type Traces = Vec<(&'static str, Trace)>;

/// The claims that are not about the screen.
fn traces(raw: &raw::Assertion) -> Said<Traces> {
    let mut out = timing_traces(raw)?;
    out.extend(count_traces(raw)?);
    out.extend(byte_traces(raw)?);
    out.extend(event_traces(raw)?);
    out.extend(service_trace(raw)?);
    out.extend(events_trace(raw)?);
    out.extend(file_traces(raw)?);
    out.extend(end_traces(raw)?);
    Ok(out)
}

/// Claims about the order of events and the times between them.
fn timing_traces(raw: &raw::Assertion) -> Said<Traces> {
    let mut out = Traces::new();
    if let Some(list) = &raw.order {
        if list.len() < 2 {
            return Err("order wants at least two".into());
        }
        out.push(("order", Trace::Order(list.iter().map(happening).collect::<Said<_>>()?)));
    }
    if let Some(delay) = &raw.delay {
        let ms = times(&delay.min, &delay.max)?;
        out.push(("delay", Trace::Delay { from: happening(&delay.from)?, to: happening(&delay.to)?, ms }));
    }
    if let Some(gap) = &raw.gap {
        out.push(("gap", Trace::Gap(times(&gap.min, &gap.max)?)));
    }
    Ok(out)
}

/// Claims about numbers.
fn count_traces(raw: &raw::Assertion) -> Said<Traces> {
    type OfCount = fn(Count) -> Trace;
    let counts: [(&'static str, &Option<raw::Count>, OfCount); 7] = [
        ("chunks", &raw.chunks, Trace::Chunks),
        ("chunk_bytes", &raw.chunk_bytes, Trace::ChunkBytes),
        ("output_bytes", &raw.output_bytes, Trace::OutputBytes),
        ("split_escapes", &raw.split_escapes, Trace::SplitEscapes),
        ("split_characters", &raw.split_characters, Trace::SplitCharacters),
        ("bells", &raw.bells, Trace::Bells),
        ("leaked", &raw.leaked, Trace::Leaked),
    ];
    let given = counts.into_iter().filter_map(|(key, value, make)| Some((key, value.as_ref()?, make)));
    given.map(|(key, value, make)| Ok((key, make(count(value)?)))).collect()
}

/// Claims about the bytes of a stream.
fn byte_traces(raw: &raw::Assertion) -> Said<Traces> {
    type OfBytes = fn(BytesTest) -> Trace;
    let tests: [(&'static str, &Option<raw::Bytes>, OfBytes); 3] = [
        ("output", &raw.output, Trace::Output),
        ("input", &raw.input, Trace::Input),
        ("replies", &raw.replies, Trace::Replies),
    ];
    let given = tests.into_iter().filter_map(|(key, value, make)| Some((key, value.as_ref()?, make)));
    given.map(|(key, value, make)| Ok((key, make(bytes(value)?)))).collect()
}

/// Claims about keys, pastes, signals, sizes and the clipboard.
fn event_traces(raw: &raw::Assertion) -> Said<Traces> {
    let mut out = Traces::new();
    if let Some(keys) = &raw.keys {
        let named = keys.iter().map(|k| key_name(k)).collect::<Said<_>>()?;
        out.push(("keys", Trace::Keys(named)));
    }
    out.extend(raw.pastes.clone().map(|p| ("pastes", Trace::Pastes(p))));
    if let Some(signals) = &raw.signals {
        let names = signals.iter().map(|s| signal(s)).collect::<Said<_>>()?;
        out.push(("signals", Trace::Signals(names)));
    }
    if let Some(sizes) = &raw.resizes {
        out.push(("resizes", Trace::Resizes(sizes.iter().map(|s| size(s)).collect::<Said<_>>()?)));
    }
    if let Some(writes) = &raw.clipboard {
        let list = writes.iter().map(|c| (c.selection.clone(), base64::encode(c.text.as_bytes())));
        out.push(("clipboard", Trace::Clipboard(list.collect())));
    }
    Ok(out)
}

/// The claim about service events.
fn service_trace(raw: &raw::Assertion) -> Said<Option<(&'static str, Trace)>> {
    let Some(service) = &raw.service else { return Ok(None) };
    let (path, test) = service_test(service)?;
    let count = match (&service.count, service.absent) {
        (Some(c), None | Some(false)) => count(c)?,
        (None, Some(true)) => Count::exactly(0),
        (None, _) => Count { min: Some(1), max: None },
        (Some(_), Some(true)) => return Err("absent and count exclude each other".into()),
    };
    Ok(Some(("service", Trace::Service { path, test, count })))
}

/// The claim about the shape of service events.
fn events_trace(raw: &raw::Assertion) -> Said<Option<(&'static str, Trace)>> {
    let Some(events) = &raw.events else { return Ok(None) };
    let shape = Box::new(Schema::parse(&from_json(&events.schema))?);
    let count = events.count.as_ref().map_or(Ok(Count { min: Some(1), max: None }), count)?;
    Ok(Some(("events", Trace::Events { kind: events.type_.clone(), shape, count })))
}

/// Claims about the files of a cassette.
fn file_traces(raw: &raw::Assertion) -> Said<Traces> {
    let files = [
        ("final", names::FINAL, &raw.final_),
        ("quota", names::QUOTA, &raw.quota),
        ("discovery", names::DISCOVERY, &raw.discovery),
        ("manifest", names::MANIFEST, &raw.manifest),
        ("scrub_report", names::SCRUB, &raw.scrub_report),
    ];
    let mut out = Traces::new();
    for (key, name, value) in files {
        let Some(value) = value else { continue };
        if value.count.is_some() {
            return Err(format!("count goes with service events; there is one {name}"));
        }
        let (path, test) = service_test(value)?;
        out.push((key, Trace::Beside { name, path, test, absent: value.absent == Some(true) }));
    }
    Ok(out)
}

/// Claims about the end of the program.
fn end_traces(raw: &raw::Assertion) -> Said<Traces> {
    let mut out = Traces::new();
    if let Some(end) = &raw.exit {
        out.push(("exit", Trace::Exit(exit(end)?)));
    }
    if let Some(cause) = &raw.ended {
        out.push(("ended", Trace::Ended(cause.parse()?)));
    }
    out.extend(raw.eof.map(|on| ("eof", Trace::Eof(on))));
    Ok(out)
}

fn times(min: &Option<String>, max: &Option<String>) -> Said<Count> {
    let ms =
        |t: &Option<String>| t.as_ref().map(|t| check::length(t).map(|l| l.as_millis() as u64)).transpose();
    if min.is_none() && max.is_none() {
        return Err("a range of times wants min, max or both".into());
    }
    Ok(Count { min: ms(min)?, max: ms(max)? })
}

fn bytes(raw: &raw::Bytes) -> Said<BytesTest> {
    let owned = |t: &String| t.clone().into_bytes();
    match raw {
        raw::Bytes::Is(text) => Ok(BytesTest::Is(owned(text))),
        raw::Bytes::Long(l) => match (&l.is, &l.contains, &l.lacks) {
            (Some(text), None, None) => Ok(BytesTest::Is(owned(text))),
            (None, Some(text), None) => Ok(BytesTest::Contains(owned(text))),
            (None, None, Some(text)) => Ok(BytesTest::Lacks(owned(text))),
            _ => Err("bytes want one of is, contains and lacks".into()),
        },
    }
}

/// A key's name as it is written back, so that `Esc` and `Escape` are one.
pub(super) fn key_name(name: &str) -> Said<String> {
    let key: tapdeck_term::keys::KeyPress =
        name.parse().map_err(|e: tapdeck_term::keys::KeyNameError| e.to_string())?;
    Ok(key.to_string())
}

pub(super) fn signal(name: &str) -> Said<String> {
    signal_number(name).map(signal_name).ok_or_else(|| format!("no signal is called {name:?}"))
}

pub(super) fn exit(raw: &raw::Exit) -> Said<ExitTest> {
    match raw {
        raw::Exit::Short(text) if text == "failure" => Ok(ExitTest::Failure),
        raw::Exit::Short(text) => {
            let wrong = |_| format!("{text:?} is no way to end: write a code, failure, or signal: NAME");
            text.parse().map(|code| ExitTest::Is(Exit::Code(code))).map_err(wrong)
        }
        raw::Exit::Long(l) => match (l.code, &l.signal) {
            (Some(code), None) => Ok(ExitTest::Is(Exit::Code(code))),
            (None, Some(name)) => {
                let number = signal_number(name).ok_or_else(|| format!("no signal is called {name:?}"))?;
                Ok(ExitTest::Is(Exit::Signal(number)))
            }
            _ => Err("an exit wants a code or a signal".into()),
        },
    }
}

fn service_test(raw: &raw::Service) -> Said<(JsonPath, JsonTest)> {
    let mut tests = Vec::new();
    tests.extend(raw.is.as_ref().map(|value| JsonTest::Is(from_json(value))));
    tests.extend(raw.contains.clone().map(|text| JsonTest::Text(TextTest::Contains(text))));
    if let Some(text) = &raw.matches {
        tests.push(JsonTest::Text(TextTest::Matches(pattern(text)?)));
    }
    if let Some(kind) = &raw.type_ {
        let schema = Json::Map(vec![("type".to_owned(), from_json(kind))]);
        tests.push(JsonTest::Shape(Box::new(Schema::parse(&schema)?)));
    }
    if let Some(schema) = &raw.schema {
        tests.push(JsonTest::Shape(Box::new(Schema::parse(&from_json(schema))?)));
    }
    let test = tests.pop().unwrap_or(JsonTest::Exists);
    if !tests.is_empty() {
        return Err("a value wants one of is, contains, matches, type and schema".into());
    }
    Ok((raw.path.parse()?, test))
}

fn happening(raw: &raw::Happening) -> Said<Happening> {
    let long = match raw {
        raw::Happening::Point(text) => {
            return Ok(match text.strip_prefix('@') {
                Some("start") => Happening::Start,
                Some("end") => Happening::End,
                Some(name) if !name.is_empty() => Happening::Mark(name.to_owned()),
                _ => {
                    return Err(format!(
                        "{text:?} is nothing that happens: write @start, @end, @ and a name, or output: …"
                    ));
                }
            });
        }
        raw::Happening::Long(long) => long,
    };
    let mut found = Vec::new();
    found.extend(long.output.clone().map(|t| Happening::Output(t.into_bytes())));
    found.extend(long.shows.clone().map(Happening::Shows));
    found.extend(long.input.clone().map(|t| Happening::Input(t.into_bytes())));
    found.extend(long.key.as_ref().map(|k| key_name(k).map(Happening::Key)).transpose()?);
    found.extend(long.paste.clone().map(Happening::Paste));
    found.extend(long.signal.as_ref().map(|s| signal(s).map(Happening::Signal)).transpose()?);
    found.extend(long.resize.as_ref().map(|s| size(s).map(Happening::Resize)).transpose()?);
    if let Some(service) = &long.service {
        let (path, test) = service_test(service)?;
        found.push(Happening::Service(path, test));
    }
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => {
            Err("something that happens is one of output, shows, input, key, paste, signal, resize, service"
                .into())
        }
    }
}
