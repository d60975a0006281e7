//! Scenario files as people write them, and as they get them wrong.

use proptest::prelude::*;
use tapdeck_core::check::evaluate;

use super::*;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, &|_| Err(std::io::Error::other("no such file")))
}

const WHOLE: &str = r#"# Everything that a scenario can say.
scenario: everything
about: one of each
cassette:
  path: everything.cassette
  id: 01890a5d-ac96-774b-bcce-b302099a8057
  sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
size: 30x4
replay: scaled:0.5
env:
  allow: [PATH, TERM]
  set: {LANG: C.UTF-8}
normalise:
  - clock
  - {name: build, pattern: 'b\d+', with: '<build>'}
masks:
  - {rows: 4, cols: 10-}
scrub:
  - {name: build, pattern: 'b(\d+)', keep: "."}
play:
  - write: "\e]2;hello\e\\name: "
  - {input: "\r", key: Enter, after: 500ms}
  - snapshot: asked
  - {write: "\r\nb12 at 05:06\r\n", after: 0.5, chunk: 3}
  - {service: {type: final, cost: 0.5}}
  - {resize: 40x5, after: 1s}
  - hex: "1b 5b 31 6d 21"
  - {exit: 3, after: 1s}
assert:
  - {at: 0s, screen: {contains: "name:"}}
  - {name: the title, screen: {title: {contains: hell}}}
  - eventually: {contains: [name, at], matches: '^<build> at <clock>$'}
    from: "@asked"
    to: "@end"
  - {never: {contains: panic}}
  - {always: {rows: 1, equals: "name:"}, from: "@asked"}
  - {at: "@asked", stable_for: 400ms}
  - {stable_for: 1s, from: 1s, screen: {contains: "<build>"}}
  - {order: [{output: "name"}, {key: Return}, {shows: "at"}, {resize: 40x5}, "@end"]}
  - {delay: {from: {input: "\r"}, to: {output: "b12"}, min: 500ms, max: 500ms}}
  - {gap: {max: 1s}}
  - {chunks: {min: 3, max: 20}}
  - {input: "\r"}
  - {keys: [Enter]}
  - {resizes: [40x5]}
  - {signals: []}
  - {service: {path: $.type, is: final}}
  - {service: {path: $.warning, absent: true}}
  - {screen: {style: [{text: "!", bold: true}, {row: 1, col: 1, fg: default, bold: false}]}}
  - {screen: {cursor: {row: 3, col: 2, visible: true}, size: 40x5, alternate: false, modes: {wrap: true}}}
  - {exit: 3}
  - {exit: failure}
  - {ended: program}
"#;

#[test]
fn a_whole_scenario() {
    let scenario = parse(WHOLE).expect("it is understood");
    assert_eq!(scenario.cassette.id.as_deref(), Some("01890a5d-ac96-774b-bcce-b302099a8057"));
    assert_eq!((scenario.size, scenario.replay), (Size::new(30, 4), ReplayMode::Scaled(0.5)));
    assert_eq!(scenario.assertions[2].line, 32);
    assert_eq!((scenario.scrub[0].name.as_str(), scenario.scrub[0].keep.as_str()), ("build", "."));
    let Some(Source::Play(play)) = &scenario.source else { panic!("a play") };
    let claims: Vec<Claim> = scenario.assertions.iter().map(|a| a.claim.clone()).collect();
    let verdicts = evaluate(&play.timeline(scenario.size), &claims);
    for (assertion, verdict) in scenario.assertions.iter().zip(verdicts) {
        assert!(verdict.is_ok(), "line {}: {}: {verdict:?}", assertion.line, assertion.claim);
    }
}

/// What a timeline holds must come back from the cassette made of it, or live and replayed checks
/// would differ.
#[test]
fn a_timeline_survives_its_cassette() {
    let scenario = parse(WHOLE).expect("it is understood");
    let Some(Source::Play(play)) = &scenario.source else { panic!("a play") };
    let mut before = play.timeline(scenario.size);
    before.end.eof = Some(true);
    before.end.leaked = Some(0);
    let files =
        record(&before, Duration::from_millis(1), crate::cassette::tests::closing()).expect("small enough");
    let after = timeline(&crate::cassette::Cassette::from_files(&files).expect("whole"));
    assert_eq!((before.size, before.moments.len()), (after.size, after.moments.len()));
    for (a, b) in before.moments.iter().zip(&after.moments) {
        assert_eq!((a.at.time, &a.what), (b.at.time, &b.what));
    }
    let end =
        |t: &tapdeck_core::check::Timeline| (t.end.at.time, t.end.exit, t.end.cause, t.end.eof, t.end.leaked);
    assert_eq!(end(&before), end(&after));
}

/// What stands beside the events of a cassette can be asserted as well.
#[test]
fn what_stands_beside_the_events() {
    let text = r#"play: [{write: hello}, {exit: 0}]
assert:
  - {final: {path: $.exit.code, is: 0}}
  - {final: {path: $.final_text, matches: "^hel+o"}}
  - {final: {path: $.usage.tokens, absent: true}}
  - {manifest: {path: $.terminal.emulator.name, contains: tapdeck}}
  - {scrub_report: {path: $.status, is: not_scrubbed}}
  - {quota: {path: "$.windows[*].state", is: ok}}
  - {discovery: {absent: true}}
  - {final: {path: $.exit.code, is: 1}}
  - {discovery: {path: "$.models[0]"}}
  - {final: {path: $.final_text, absent: true}}
"#;
    let scenario = parse(text).expect("it is understood");
    let Some(Source::Play(play)) = &scenario.source else { panic!("a play") };
    let window = crate::cassette::QuotaWindow { state: "ok".into(), ..Default::default() };
    let mut closing = crate::cassette::tests::closing();
    closing.quota = Some(crate::cassette::Quota { windows: vec![window], ..Default::default() });
    closing.discovery = None;
    let files =
        record(&play.timeline(scenario.size), Duration::from_millis(1), closing).expect("small enough");
    let after = timeline(&crate::cassette::Cassette::from_files(&files).expect("whole"));
    let claims: Vec<Claim> = scenario.assertions.iter().map(|a| a.claim.clone()).collect();
    let said: Vec<String> = evaluate(&after, &claims)
        .into_iter()
        .map(|v| v.err().map(|f| f.message).unwrap_or_default())
        .collect();
    assert_eq!(said[..7], [""; 7], "{claims:?}");
    assert_eq!(
        said[7..],
        [
            "final.json has 0 at $.exit.code",
            "the cassette has no discovery.json",
            "final.json has something at $.final_text"
        ]
    );
}

#[test]
fn steps() {
    let scenario = parse(
        "program: {run: [less, x], files: {x: hello}, timeout: 5s}\nsteps:\n  - expect: {contains: hello}\n    within: 2s\n  - send: [C-c, Enter]\n  - send: q\n  - type: /abc\n  - paste: |\n      two\n      lines\n  - resize: 100x30\n  - signal: SIGINT\n  - snapshot: found\n  - wait: {stable: 100ms, screen: {rows: 2-}}\n  - wait: {exit: true}\n",
    )
    .expect("it is understood");
    assert_eq!(scenario.steps.len(), 10);
    assert_eq!(
        (scenario.steps[0].line, scenario.steps[0].within),
        (3, Some(std::time::Duration::from_secs(2)))
    );
    let Some(Source::Program(program)) = scenario.source else { panic!("a program") };
    assert_eq!((program.needs, program.timeout), (None, std::time::Duration::from_secs(5)));
}

/// A check that never runs because of a typing error is worse than none.
#[test]
fn whatever_is_not_understood_is_an_error_with_its_line() {
    for (text, line, part) in [
        ("scenario: x\nasert: []\n", 2, "asert"),
        ("assert:\n  - {screen: {contain: x}}\n", 2, "contain"),
        ("assert:\n  - {screen: {}}\n", 2, "nothing"),
        ("assert:\n  - {name: x}\n", 2, "nothing"),
        ("assert:\n  - {exit: 0, eof: true}\n", 2, "exit and eof"),
        ("assert:\n  - {exit: 0}\n  - {at: 5x, screen: {contains: x}}\n", 3, "5x"),
        ("assert:\n  - {at: 1s, never: {contains: x}}\n", 2, "from and to"),
        ("assert:\n  - {at: 1s, from: 2s, screen: {contains: x}}\n", 2, "stretch"),
        ("assert:\n  - {screen: {matches: '('}}\n", 2, "pattern"),
        ("assert:\n  - {screen: {modes: {wrapp: true}}}\n", 2, "wrapp"),
        ("assert:\n  - {screen: {style: {text: x, fg: reddish}}}\n", 2, "reddish"),
        ("assert:\n  - {screen: {cursor: {row: 0}}}\n", 2, "counted from 1"),
        ("assert:\n  - {screen: {rows: 5-3, contains: x}}\n", 2, "5-3"),
        ("assert:\n  - {signals: [WHAT]}\n", 2, "WHAT"),
        ("assert:\n  - {ended: badly}\n", 2, "badly"),
        ("assert:\n  - {exit: maybe}\n", 2, "maybe"),
        ("assert:\n  - {order: [{output: a}]}\n", 2, "two"),
        ("assert:\n  - {order: [{output: a}, {outputs: b}]}\n", 2, ""),
        ("assert:\n  - {screen: {file: ../../etc/passwd}}\n", 2, "beside"),
        ("normalise:\n  - moon\n", 2, "moon"),
        ("masks:\n  - {}\n", 2, "mask"),
        ("scrub:\n  - {name: x, pattern: '('}\n", 2, "x"),
        ("scrub:\n  - {name: x, pattern: 'a*'}\n", 2, "empty"),
        ("assert:\n  - {final: {path: $.a, count: 2}}\n", 2, "count"),
        ("size: 80\n", 1, "80"),
        ("size: 80x99999\n", 1, "99999"),
        ("replay: later\n", 1, "later"),
        ("cassette: {path: /etc}\n", 1, "beside"),
        ("steps:\n  - send: q\n", 2, "no program"),
        ("program: {run: []}\n", 1, "run"),
        ("program: {run: [a], files: {../x: y}}\n", 1, "folder"),
        ("program: {run: [a]}\nsteps:\n  - send: Entr\n", 3, "Entr"),
        ("program: {run: [a]}\nsteps:\n  - {send: q, type: x}\n", 3, "one step"),
        ("program: {run: [a]}\nsteps:\n  - sleep: 5s\n", 3, "sleep"),
        ("program: {run: [a]}\nsteps:\n  - click: {text: x, col: 3}\n", 3, "a place is a text"),
        ("program: {run: [a]}\nsteps:\n  - click: {text: x, button: top}\n", 3, "top"),
        ("program: {run: [a]}\nsteps:\n  - scroll: {up: 1, down: 1}\n", 3, "one of up, down"),
        ("program: {run: [a]}\nsteps:\n  - scroll: {up: 0}\n", 3, "1 to 1000"),
        ("program: {run: [a]}\nsteps:\n  - drag: {from: x, too: y}\n", 3, "did you mean \"to\"?"),
        ("program: {run: [a]}\nsteps:\n  - {send: q, within: 1s}\n", 3, "within"),
        ("program: {run: [a]}\nsteps:\n  - snapshot: two words\n", 3, "two words"),
        ("program: {run: [a]}\nplay:\n  - write: x\n", 2, "not both"),
        ("play:\n  - {write: x, resize: 1x1}\n", 2, "one of"),
        ("play:\n  - {write: x, times: 9999999999}\n", 2, "at most"),
        ("play:\n  - hex: 1\n", 2, "hexadecimal"),
        ("masks:\n  - {rows: 1-, cols: 1-}\n", 2, "whole screen"),
        ("program: {run: ls -l}\n", 1, "run: a list is wanted"),
        ("assert:\n  - screen: hello\n", 2, "screen: keys are wanted"),
        ("assert:\n  - screen: {row: 3, contains: x}\n", 2, "unknown key \"row\"; did you mean \"rows\"?"),
        ("program: {run: [a]}\nsteps:\n  - sleep: 5s\n", 3, "known here: send, type, paste"),
        ("assert:\n  - {eof: y}\n", 2, "eof: write true or false"),
        ("assert:\n  - {exit: 0}\n---\nassert: []\n", 3, "one document"),
        ("program: {files: {a: b}}\n", 1, "the key \"run\" is missing"),
        ("assert:\n  - screen: {cursor: {row: x}}\n", 2, "row: a number is wanted"),
        ("steps: *a\n", 1, "*NAME"),
        ("program: {run: [a]}\nenv: {set: {A=B: x}}\n", 2, "A=B"),
        ("program: {run: [a]}\nenv: {allow: [PATH, '']}\n", 2, "no name of a variable"),
        ("size: 99999x24\n", 1, "from 1 to 1000"),
        ("a: [\n", 1, ""),
        ("assert:\n  - {exit: 0}\nassert:\n  - {exit: 1}\n", 3, "assert is there twice"),
    ] {
        let e = parse(text).expect_err(text);
        assert!(e.what.contains(part), "{text}\n{e}");
        assert!(e.line.abs_diff(line) <= 1, "{text}\n{e}");
        for foreign in ["expected", "sequence", "mapping", "scalar", "struct", "invalid", "`", "deserial"] {
            assert!(!e.what.contains(foreign), "text of a library: {text}\n{e}");
        }
    }
}

/// In YAML 1.2 `y` and `no` are texts. A dialog that wants `y` was sent the key `true`.
#[test]
fn y_and_n_are_keys() {
    let scenario = parse("program: {run: [a]}\nsteps:\n  - send: y\n  - send: [n, y]\n  - type: no\n  - expect: {contains: [on, off, yes]}\n")
        .expect("it is understood");
    let said: Vec<String> = scenario.steps.iter().map(|s| format!("{:?}", s.action)).collect();
    let Action::Send(keys) = &scenario.steps[1].action else { panic!("{said:?}") };
    assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), ["n", "y"]);
    assert!(
        matches!(&scenario.steps[0].action, Action::Send(keys) if keys[0].to_string() == "y"),
        "{said:?}"
    );
    assert!(matches!(&scenario.steps[2].action, Action::Type(text) if text == "no"), "{said:?}");
    let Action::Expect(condition) = &scenario.steps[3].action else { panic!("{said:?}") };
    assert_eq!(condition.to_string(), "contains \"on\", contains \"off\", contains \"yes\"");
}

/// In a long scenario the line of the part that it stands in is of little help.
#[test]
fn the_line_is_that_of_the_word_itself() {
    for (text, line, part) in [
        ("cassette:\n  id: x\n  path: /etc\n", 3, "beside"),
        ("program:\n  run: [a]\n  timeout: 5x\n", 3, "5x"),
        ("program:\n  timeout: 5s\n  run: []\n", 3, "run"),
        ("program:\n  run: [a]\n  files:\n    a: b\n    ../x: y\n", 5, "../x"),
        ("program:\n  run: [a]\n  copy:\n    - a\n    - ../x\n", 5, "../x"),
        ("assert:\n  - screen:\n      contains: x\n      cols: 5-3\n", 4, "5-3"),
        ("assert:\n  - screen:\n      style:\n        - text: x\n          fg: reddish\n", 5, "reddish"),
        ("assert:\n  - screen:\n      style:\n        text: x\n        underline: wild\n", 5, "wild"),
        ("masks:\n  - rows: 1\n    cols: x\n", 3, "x"),
        ("program: {run: [a]}\nsteps:\n  - expect: {contains: x}\n    within: 3q\n", 4, "3q"),
        ("env:\n  set:\n    A: b\n    C=D: e\n", 4, "C=D"),
        ("scenario: x\nabout: y\n\tsize: 80x24\n", 3, "tab"),
    ] {
        let e = parse(text).expect_err(text);
        assert!(e.what.contains(part), "{text}\n{e}");
        assert_eq!(e.line, line, "{text}\n{e}");
    }
    let placed = parse("program:\n  run: [a]\n  on: nowhere\n").expect("the place is judged elsewhere");
    assert!(matches!(placed.source, Some(Source::Program(Program { on: Some((3, _)), .. }))));
}

#[test]
fn binding_leaves_the_rest_alone() {
    let to = CassetteRef { id: Some("I".into()), sha256: Some("D".into()), ..CassetteRef::default() };
    for (before, after) in [
        ("scenario: x\nassert: []\n", "scenario: x\ncassette:\n  id: I\n  sha256: D\nassert: []\n"),
        (
            "# why\ncassette:\n    path: p # here\n    id: old\n    sha256: old\n\nassert: []\n",
            "# why\ncassette:\n    path: p # here\n    id: I\n    sha256: D\n\nassert: []\n",
        ),
        ("cassette: {path: p, id: old}\n", "cassette:\n  path: p\n  id: I\n  sha256: D\n"),
        ("cassette:\nsize: 80x24\n", "cassette:\n  id: I\n  sha256: D\nsize: 80x24\n"),
    ] {
        assert_eq!(bind(before, &to), after);
        assert_eq!(bind(&bind(before, &to), &to), after, "twice is once");
    }
    for (before, after) in [
        (
            "\u{feff}scenario: x\r\nsteps: []\r\n",
            "\u{feff}scenario: x\r\ncassette:\r\n  id: I\r\n  sha256: D\r\nsteps: []\r\n",
        ),
        (
            r#"{"scenario":"js","play":[{"exit":0}]}"#,
            r#"{"cassette": {"id": "I", "sha256": "D"}, "scenario":"js","play":[{"exit":0}]}"#,
        ),
        (
            "# json\n{\n  \"scenario\": \"a, {b}\",\n  'cassette': {path: 'x, y', id: old},\n  \"play\": []\n}\n",
            "# json\n{\n  \"scenario\": \"a, {b}\",\n  \"cassette\": {path: 'x, y', \"id\": \"I\", \"sha256\": \"D\"},\n  \"play\": []\n}\n",
        ),
    ] {
        assert_eq!(bind(before, &to), after);
        assert_eq!(bind(after, &to), after, "twice is once");
    }
    let bound = bind(WHOLE, &to);
    assert_eq!(parse(&bound).expect("still understood").cassette.id.as_deref(), Some("I"));
    // Everything that is pinned stands in one line, and is replaced whole, however it was written.
    let pins = Pins(serde_json::from_str(r#"{"exit":"0","set":{"A":"1e10"},"steps":["1","2"]}"#).unwrap());
    let to = CassetteRef { binding: Some("B".into()), pins: Some(pins), ..to };
    let line = r#"pins: {"exit": "0", "set": {"A": "1e10"}, "steps": ["1", "2"]}"#;
    let after = format!("cassette:\n  path: p\n  id: I\n  sha256: D\n  binding: B\n  {line}\nassert: []\n");
    for before in [
        "cassette:\n  path: p\n  pins:\n    exit: 1\n    steps:\n      - a\n  id: x\nassert: []\n",
        "cassette: {path: p, pins: {exit: 1, set: {A: 2}}, id: x}\nassert: []\n",
    ] {
        assert_eq!(bind(before, &to), after);
        assert_eq!(bind(&after, &to), after, "twice is once");
    }
    assert_eq!(
        parse(&after).expect("still understood").cassette,
        CassetteRef { path: Some("p".into()), ..to }
    );
}

proptest! {
    /// Nothing that is typed into a scenario may bring the program down.
    #[test]
    fn no_text_panics(lines in prop::collection::vec("[-{}a-z:@\\[\\], \"'*&|>\\\\e0-9]{0,30}", 0..12)) {
        let _ = parse(&lines.join("\n"));
    }

    #[test]
    fn no_damage_panics(at in any::<prop::sample::Index>(), with in "[ -~]{0,4}", cut in 0usize..6) {
        let mut text = WHOLE.to_owned();
        let start = at.index(text.len());
        let end = (start + cut).min(text.len());
        text.replace_range(start..end, &with);
        let _ = parse(&text);
    }
}
