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
    assert_eq!(scenario.assertions[2].line.number, 32);
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
        (scenario.steps[0].line.number, scenario.steps[0].within),
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
        assert!(e.line.number.abs_diff(line) <= 1, "{text}\n{e}");
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
        ("scenario: x\nclock: 12:00\n", 2, "\"12:00\" is no time: write one such as"),
        ("scenario: x\nclock: {start: 2026-02-31 12:00:00}\n", 2, "is no time"),
        ("scenario: x\nclock: {stat: 2026-01-31 12:00:00}\n", 2, "did you mean \"start\"?"),
        ("scenario: x\nabout: y\n\tsize: 80x24\n", 3, "tab"),
    ] {
        let e = parse(text).expect_err(text);
        assert!(e.what.contains(part), "{text}\n{e}");
        assert_eq!(e.line.number, line, "{text}\n{e}");
    }
    let placed = parse("program:\n  run: [a]\n  on: nowhere\n").expect("the place is judged elsewhere");
    assert!(matches!(
        placed.source,
        Some(Source::Program(Program { on: Some((Line { number: 3, .. }, _)), .. }))
    ));
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
        assert_eq!(bind(before, &to, None), after);
        assert_eq!(bind(&bind(before, &to, None), &to, None), after, "twice is once");
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
        assert_eq!(bind(before, &to, None), after);
        assert_eq!(bind(after, &to, None), after, "twice is once");
    }
    let bound = bind(WHOLE, &to, None);
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
        assert_eq!(bind(before, &to, None), after);
        assert_eq!(bind(&after, &to, None), after, "twice is once");
    }
    assert_eq!(
        parse(&after).expect("still understood").cassette,
        CassetteRef { path: Some("p".into()), ..to }
    );
}

/// A text keeps the digits that its author wrote. YAML takes `1.50` for the number 1.5, and so did
/// scenarios: a screen with 1.5 was what they asked for.
#[test]
fn texts_keep_their_digits() {
    let scenario = parse(
        "program: {run: [echo, 1.50, 007, 1e3, 0x10]}\nsteps:\n  - expect: {contains: 1.50}\n  - type: 2.0\n  - send: 7\nassert:\n  - {screen: {contains: [1.50, 10.00, 1_000, 0x1F, true]}}\n  - {screen: {title: 3.10}}\n  - {service: {path: $.cost, is: 1.50}}\n  - {exit: 0}\n",
    )
    .expect("it is understood");
    let Some(Source::Program(program)) = &scenario.source else { panic!("a program") };
    assert_eq!(program.run, ["echo", "1.50", "007", "1e3", "0x10"]);
    let Action::Expect(condition) = &scenario.steps[0].action else { panic!("an expect") };
    assert_eq!(condition.to_string(), "contains \"1.50\"");
    assert!(matches!(&scenario.steps[1].action, Action::Type(text) if text == "2.0"));
    let said: Vec<String> = scenario.assertions.iter().map(|a| a.claim.to_string()).collect();
    for text in ["1.50", "10.00", "1_000", "0x1F", "true"] {
        assert!(said[0].contains(&format!("\"{text}\"")), "{said:?}");
    }
    assert!(said[1].contains("3.10") && said[2].contains("1.5"), "{said:?}");
}

/// Files beside a scenario that it includes.
fn with(files: &[(&str, &str)], text: &str, variant: Option<&str>) -> Result<Scenario, ScenarioError> {
    let stored = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| std::io::Error::other("no such file"))
    };
    Scenario::parse_variant(text, variant, &stored)
}

#[test]
fn a_scenario_includes_others() {
    let files = [
        (
            "common/base.yaml",
            "include: deeper/env.yaml\nscenario: base\nsize: 100x30\nprogram:\n  run: [sh, -c, old]\n  timeout: 9s\nsteps:\n  - include: login.yaml\nassert:\n  - {exit: 0}\n",
        ),
        ("common/deeper/env.yaml", "env: {allow: [PATH], set: {A: a, B: b}}\n"),
        ("common/login.yaml", "- expect: {contains: \"login:\"}\n- type: \"me\\n\"\n"),
        ("bye.yaml", "- send: q\n- send: x\n"),
    ];
    let text = "scenario: own\ninclude: common/base.yaml\nenv: {set: {B: mine}}\nprogram: {run: [less]}\nsteps:\n  - snapshot: here\n  - include: [bye.yaml]\nassert:\n  - {leaked: 0}\n";
    let scenario = with(&files, text, None).expect("it is understood");
    assert_eq!((scenario.name.as_deref(), scenario.size), (Some("own"), Size::new(100, 30)));
    let env = scenario.env.as_ref().expect("an environment");
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        (&env.allow[..], &env.set[..]),
        (&["PATH".to_owned()][..], &[set("A", "a"), set("B", "mine")][..])
    );
    let Some(Source::Program(program)) = &scenario.source else { panic!("a program") };
    assert_eq!((&program.run[..], program.timeout), (&["less".to_owned()][..], Duration::from_secs(9)));
    let places: Vec<String> = scenario.steps.iter().map(|step| step.line.to_string()).collect();
    assert_eq!(
        places,
        [
            "common/login.yaml, line 1",
            "common/login.yaml, line 2",
            "line 6",
            "bye.yaml, line 1",
            "bye.yaml, line 2"
        ]
    );
    assert_eq!(scenario.assertions.len(), 2);
    assert_eq!(scenario.assertions[0].line.to_string(), "common/base.yaml, line 10");
}

#[test]
fn what_is_wrong_with_an_inclusion_names_its_file_and_line() {
    let deep: Vec<(String, String)> =
        (0..20).map(|n| (format!("d{n}"), format!("include: d{}\n", n + 1))).collect();
    let mut files: Vec<(&str, &str)> = deep.iter().map(|(name, text)| (&**name, &**text)).collect();
    files.extend([
        ("a/one.yaml", "\ninclude: ../two.yaml\n"),
        ("two.yaml", "include: a/one.yaml\n"),
        ("typo.yaml", "assert:\n  - {exit: 0}\n  - {screen: {contain: x}}\n"),
        ("broken.yaml", "steps: [\n"),
        ("list.yaml", "- send: q\n"),
        ("map.yaml", "size: 80x24\n"),
        ("keys.yaml", "- send: q\n- send: Entr\n"),
    ]);
    let many = "include: [map.yaml".to_owned() + &", map.yaml".repeat(70) + "]\n";
    let program = "program: {run: [a]}\nsteps:\n";
    for (text, place, part) in [
        ("include: missing.yaml\n", "line 1", "cannot include missing.yaml: no such file"),
        ("size: 80x24\ninclude: a/one.yaml\n", "two.yaml, line 1", "a/one.yaml → two.yaml → a/one.yaml"),
        ("include: typo.yaml\n", "typo.yaml, line 3", "did you mean \"contains\"?"),
        ("include: broken.yaml\n", "broken.yaml", "no YAML"),
        ("include: list.yaml\n", "list.yaml, line 1", "not a list"),
        (&format!("{program}  - include: map.yaml\n"), "map.yaml, line 1", "must be a list"),
        (&format!("{program}  - include: keys.yaml\n"), "keys.yaml, line 2", "Entr"),
        ("include: /etc/passwd\n", "line 1", "a path from the file that includes it"),
        ("include: {file: x}\n", "line 1", "a file, or a list of files"),
        ("include: d0\n", "d7, line 1", "more than 8 levels deep"),
        (&many, "line 1", "at most 64 files"),
    ] {
        let e = with(&files, text, None).expect_err(text);
        assert!(e.to_string().starts_with(place) && e.what.contains(part), "{text}\n{e}");
    }
}

const MATRIX: &str = r#"scenario: shells
parameters: {prompt: ready, title: "a {{shell}}"}
matrix:
  size: [80x24, 40x10]
  shell: [[bash, -l], dash]
cassette:
  variants:
    "80x24, dash": {id: I, sha256: D}
size: "{{size}}"
program:
  run: ["{{shell}}"]
  files: {"{{prompt}}.txt": "{{prompt}} ${{prompt} {{ }}"}
steps:
  - expect: {contains: "{{prompt}} {{size}}"}
assert:
  - {screen: {file: "end-{{size}}.txt"}}
"#;

#[test]
fn each_combination_of_a_matrix_is_a_scenario() {
    let files = [("end-80x24.txt", "x"), ("end-40x10.txt", "y")];
    let text = MATRIX.replace(", title: \"a {{shell}}\"", "");
    let names = Scenario::variants(&text, &|_| Err(std::io::Error::other(""))).expect("understood");
    assert_eq!(names, ["80x24, bash -l", "80x24, dash", "40x10, bash -l", "40x10, dash"]);
    let each: Vec<Scenario> =
        names.iter().map(|name| with(&files, &text, Some(name)).expect("understood")).collect();
    let told: Vec<_> = each
        .iter()
        .map(|s| {
            let Some(Source::Program(program)) = &s.source else { panic!("a program") };
            (s.size.cols, program.run.join(" "), s.cassette_suffix(), s.cassette.id.clone())
        })
        .collect();
    let want = |cols, run: &str, suffix: &str, id: Option<&str>| {
        (cols, run.to_owned(), suffix.to_owned(), id.map(str::to_owned))
    };
    assert_eq!(
        told,
        [
            want(80, "bash -l", ".80x24-bash-l.cassette", None),
            want(80, "dash", ".80x24-dash.cassette", Some("I")),
            want(40, "bash -l", ".40x10-bash-l.cassette", None),
            want(40, "dash", ".40x10-dash.cassette", None),
        ]
    );
    let Some(Source::Program(program)) = &each[0].source else { panic!("a program") };
    assert_eq!(program.files, [("ready.txt".to_owned(), "ready ${{prompt} {{ }}".to_owned())]);
    assert!(each[2].assertions[0].claim.to_string().contains("end-40x10.txt"));
    // Listed combinations, and parameters where one says nothing.
    let listed = "parameters: {n: 1}\nmatrix: [{a: x}, {a: y, n: 2}]\nplay: [{write: \"{{a}}\"}, {exit: \"{{n}}\"}]\nassert: [{exit: \"{{n}}\"}]\n";
    for (name, code) in [("x", 1), ("y, 2", 2)] {
        let scenario = with(&[], listed, Some(name)).expect("understood");
        assert_eq!(scenario.assertions[0].claim.to_string(), format!("exit code {code}"));
    }
}

#[test]
fn what_is_wrong_with_a_matrix_is_an_error() {
    let body = "play: [{write: \"{{a}}\"}, {exit: 0}]\nassert: [{exit: 0}]\n";
    let many = format!("matrix: {{a: [{}], b: [{}]}}\n", "1, ".repeat(20), "1, ".repeat(20));
    for (head, part) in [
        ("matrix: {a: [x, x]}\n", "the combination [x] is there twice"),
        ("matrix: {a: [x/y, x-y]}\n", "the same file names"),
        ("matrix: {a: x}\n", "a: a list of values is wanted"),
        ("matrix: [x]\n", "a combination wants names and values"),
        ("matrix: {a: []}\n", "no combinations"),
        ("matrix: {a b: [x]}\n", "\"a b\" is no name"),
        ("matrix: {a: [{b: c}]}\n", "a text or a list"),
        ("matrix: {a: [x], b: [y]}\n", "nothing uses b: write \"{{b}}\""),
        ("parameters: {b: y}\n", "there is no parameter {{a}}"),
        ("parameters: {ab: y}\n", "did you mean {{ab}}?"),
        ("cassette: {path: x.cassette}\nmatrix: {a: [x]}\n", "the same cassette"),
        (&many, "more than 256 combinations"),
    ] {
        let text = format!("{head}{body}");
        let e = with(&[], &text, None).expect_err(&text);
        assert!(e.what.contains(part), "{text}\n{e}");
    }
    let e = with(&[], MATRIX, Some("80x25, dash")).expect_err("there is none");
    assert!(e.what.contains("no combination [80x25, dash]"), "{e}");
    let list = format!("matrix: {{a: [[x, y]]}}\nabout: \"so {{{{a}}}}\"\n{body}");
    assert!(
        with(&[], &list, None).expect_err("a list in a text").what.contains("cannot stand within a text")
    );
    // Nothing that is repeated fills the memory.
    let long = "x".repeat(1 << 20);
    let bomb = format!("parameters: {{a: {long}}}\nabout: \"{}\"\n", "{{a}}".repeat(1000));
    assert!(with(&[], &bomb, None).expect_err("a gigabyte").what.contains("too large"));
    let bomb = format!("about: &a {long}\nsteps: [{}]\n", "*a, ".repeat(1000));
    assert!(with(&[], &bomb, None).expect_err("a gigabyte").what.contains("too large"));
}

/// A combination is bound without a change of the others.
#[test]
fn a_combination_is_bound_on_its_own() {
    let to = CassetteRef { id: Some("J".into()), sha256: Some("E".into()), ..CassetteRef::default() };
    let bound = bind(MATRIX, &to, Some("40x10, dash"));
    let lines = "cassette:\n  variants:\n    \"40x10, dash\": {\"id\": \"J\", \"sha256\": \"E\"}\n    \"80x24, dash\": {\"id\": \"I\", \"sha256\": \"D\"}\nsize:";
    assert!(bound.contains(lines), "{bound}");
    assert_eq!(bind(&bound, &to, Some("40x10, dash")), bound, "twice is once");
    let json = r#"{"matrix": {"a": ["x"]}, "cassette": {"variants": {"y": {"id": "I"}}}}"#;
    assert_eq!(
        bind(json, &to, Some("x")),
        r#"{"matrix": {"a": ["x"]}, "cassette": {"variants": {"x": {"id": "J", "sha256": "E"}, "y": {"id": "I"}}}}"#
    );
}

/// The manual has an example for each key: all examples are understood, and at each place where
/// keys are known, each of them is in some example.
#[test]
fn the_manual_has_every_key() {
    use super::tree::{Content, Node};

    /// The maps of a tree, by the way to them.
    fn maps(node: &Node, way: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let inside: Vec<&Node> = match &node.content {
            Content::Scalar { .. } => return,
            Content::List(items) => items.iter().collect(),
            Content::Map(entries) => {
                found.push(way.clone());
                entries.iter().map(|(_, value)| value).collect()
            }
        };
        for (i, node) in inside.into_iter().enumerate() {
            way.push(i);
            maps(node, way, found);
            way.pop();
        }
    }

    fn at<'a>(node: &'a mut Node, way: &[usize]) -> &'a mut Node {
        way.iter().fold(node, |node, i| match &mut node.content {
            Content::Map(entries) => &mut entries[*i].1,
            Content::List(items) => &mut items[*i],
            Content::Scalar { .. } => unreachable!("a scalar has nothing in it"),
        })
    }

    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md"));
    let page = page.expect("the page");
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().expect("an end")).collect();
    assert!(examples.len() > 10);
    let stored = |name: &str| {
        let is_list = ["login", "clean"].iter().any(|part| name.contains(part));
        Ok(if is_list { "[]" } else { "{}" }.to_owned())
    };
    // The keys that are known at a place, as a message lists them, and those that examples use.
    let mut used: std::collections::BTreeMap<String, std::collections::BTreeSet<String>> = Default::default();
    for example in examples {
        let variants = Scenario::variants(example, &stored).unwrap_or_else(|e| panic!("{e}\n{example}"));
        let names =
            variants.iter().map(|name| Some(name.as_str())).chain(variants.is_empty().then_some(None));
        for name in names {
            Scenario::parse_variant(example, name, &stored).unwrap_or_else(|e| panic!("{e}\n{example}"));
        }
        let tree = super::expand::Whole::read(example, &stored).and_then(|whole| whole.choose(None));
        let tree = tree.expect("it is understood");
        let mut ways = Vec::new();
        maps(&tree, &mut Vec::new(), &mut ways);
        for way in ways {
            let mut probed = tree.clone();
            let Content::Map(entries) = &mut at(&mut probed, &way).content else { continue };
            let keys: Vec<String> =
                entries.iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect();
            let probe = Node {
                line: Line::default(),
                content: Content::Scalar { text: "\u{1}".repeat(9), plain: false },
            };
            entries.insert(0, (probe.clone(), probe));
            let Err(e) = raw::typed::<raw::File>(&probed) else { continue };
            let Some((_, known)) = e.what.split_once("known here: ") else { continue };
            assert!(!known.contains('…'), "the list of keys is cut");
            used.entry(known.to_owned()).or_default().extend(keys);
        }
    }
    let missing: Vec<&str> =
        used.iter().flat_map(|(known, used)| known.split(", ").filter(|key| !used.contains(*key))).collect();
    assert_eq!(missing, Vec::<&str>::new(), "keys without an example in docs/scenarios.md");
    let of_file: Vec<&str> =
        used.keys().filter(|known| known.starts_with("scenario, ")).map(|k| &**k).collect();
    assert_eq!(of_file.len(), 1, "the keys of a file are known");
    assert!(used.len() > 20, "only {} places have keys", used.len());
    for key in ["include:", "parameters:", "matrix:"] {
        assert!(page.contains(key), "{key}");
    }
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
