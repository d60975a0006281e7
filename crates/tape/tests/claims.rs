//! Each claim that a scenario can make, alone: one that holds of a session, and one like it that
//! does not. A check that cannot fail is none.

use tapdeck_core::check::evaluate;
use tapdeck_tape::scenario::{Scenario, Source};

const PLAY: &str = r#"size: 30x4
normalise: [clock]
play:
  - write: "\e]2;hello\e\\name: "
  - {input: "\r", key: Enter, after: 500ms}
  - snapshot: asked
  - {write: "\r\nb12 at 05:06:07\r\n", after: 0.5, chunk: 4}
  - {paste: "two words", after: 100ms}
  - snapshot: pasted
  - {service: {type: final, cost: 0.5, ok: true, names: [a, b]}}
  - {signal: SIGWINCH}
  - {resize: 40x5, after: 800ms}
  - {write: "\e[1;31mred\e[0m\e[?1049h\e[2J\e[H", after: 100ms}
  - snapshot: full
  - {write: "alternate\e[?25l", after: 100ms}
  - {write: "\e[?1049l\e[?25h\a", after: 400ms}
  - {exit: 3, after: 1s}
"#;

/// What holds, and what does not.
const CLAIMS: &[(&str, &str)] = &[
    (r#"{screen: {contains: 'name:'}}"#, r#"{screen: {contains: nothing}}"#),
    (r#"{screen: {contains: ['name:', b12]}}"#, r#"{screen: {contains: ['name:', b13]}}"#),
    (r#"{screen: {lacks: panic}}"#, r#"{screen: {lacks: 'name:'}}"#),
    (r#"{screen: {lacks: [panic, alternate]}}"#, r#"{screen: {lacks: [panic, red]}}"#),
    (r#"{screen: {matches: '^b\d+ at <clock>$'}}"#, r#"{screen: {matches: '^b\d+$'}}"#),
    (r#"{screen: {rows: 1, equals: 'name:'}}"#, r#"{screen: {rows: 2, equals: 'name:'}}"#),
    (r#"{screen: {rows: 2, matches: at}}"#, r#"{screen: {rows: 1, matches: at}}"#),
    (r#"{screen: {rows: 1-2, contains: b12}}"#, r#"{screen: {rows: 3-4, contains: b12}}"#),
    (r#"{screen: {rows: 3-, contains: red}}"#, r#"{screen: {rows: 4-, contains: red}}"#),
    (r#"{screen: {cols: 1-3, contains: red}}"#, r#"{screen: {cols: 4-, contains: red}}"#),
    (r#"{screen: {rows: 5, blank: true}}"#, r#"{screen: {rows: 1, blank: true}}"#),
    (r#"{at: 0s, screen: {contains: 'name:'}}"#, r#"{at: 0s, screen: {contains: b12}}"#),
    (r#"{at: '@asked', screen: {lacks: b12}}"#, r#"{at: '@pasted', screen: {lacks: b12}}"#),
    (r#"{at: '@pasted', screen: {contains: b12}}"#, r#"{at: '@asked', screen: {contains: b12}}"#),
    (r#"{at: '@end', screen: {contains: red}}"#, r#"{at: '@pasted', screen: {contains: red}}"#),
    (r#"{at: '@start', screen: {size: 30x4}}"#, r#"{at: '@end', screen: {size: 30x4}}"#),
    (r#"{at: 1.5s, screen: {contains: b12}}"#, r#"{at: 0.9s, screen: {contains: b12}}"#),
    (r#"{at: '@asked+600ms', screen: {contains: b12}}"#, r#"{at: '@asked+400ms', screen: {contains: b12}}"#),
    (r#"{screen: {size: 40x5}}"#, r#"{screen: {size: 40x6}}"#),
    (r#"{screen: {alternate: false}}"#, r#"{screen: {alternate: true}}"#),
    (r#"{at: '@full', screen: {alternate: true}}"#, r#"{at: '@full', screen: {alternate: false}}"#),
    (r#"{screen: {cursor: {visible: true}}}"#, r#"{screen: {cursor: {visible: false}}}"#),
    (r#"{screen: {cursor: {row: 3, col: 4}}}"#, r#"{screen: {cursor: {row: 3, col: 5}}}"#),
    (r#"{screen: {cursor: {row: 3}}}"#, r#"{screen: {cursor: {row: 2}}}"#),
    (r#"{screen: {cursor: {shape: default}}}"#, r#"{screen: {cursor: {shape: bar}}}"#),
    (r#"{eventually: {cursor: {visible: false}}}"#, r#"{always: {cursor: {visible: true}}}"#),
    (r#"{screen: {modes: {wrap: true}}}"#, r#"{screen: {modes: {wrap: false}}}"#),
    (r#"{screen: {modes: {'?7': true}}}"#, r#"{screen: {modes: {'?7': false}}}"#),
    (r#"{screen: {title: hello}}"#, r#"{screen: {title: bye}}"#),
    (r#"{screen: {title: {contains: ell}}}"#, r#"{screen: {title: {contains: elk}}}"#),
    (r#"{screen: {title: {matches: '^h.*o$'}}}"#, r#"{screen: {title: {matches: '^h$'}}}"#),
    (r#"{screen: {title: {is: hello}}}"#, r#"{screen: {title: {is: hell}}}"#),
    (r#"{screen: {scrolled: 0}}"#, r#"{screen: {scrolled: 1}}"#),
    (r#"{screen: {scrolled: {max: 2}}}"#, r#"{screen: {scrolled: {min: 2}}}"#),
    (r#"{screen: {style: {text: red, fg: red}}}"#, r#"{screen: {style: {text: red, fg: green}}}"#),
    (r#"{screen: {style: {text: red, bold: true}}}"#, r#"{screen: {style: {text: red, bold: false}}}"#),
    (
        r#"{screen: {style: {text: 'name:', bold: false}}}"#,
        r#"{screen: {style: {text: 'name:', bold: true}}}"#,
    ),
    (r#"{screen: {style: {row: 3, col: 1, fg: red}}}"#, r#"{screen: {style: {row: 1, col: 1, fg: red}}}"#),
    (
        r#"{screen: {style: {row: 3, col: 1, width: 3, fg: red}}}"#,
        r#"{screen: {style: {row: 3, col: 1, width: 4, fg: red}}}"#,
    ),
    (r#"{screen: {style: {text: red, bg: default}}}"#, r#"{screen: {style: {text: red, bg: red}}}"#),
    (r#"{screen: {style: {text: red, italic: false}}}"#, r#"{screen: {style: {text: red, italic: true}}}"#),
    (r#"{screen: {style: {text: red, faint: false}}}"#, r#"{screen: {style: {text: red, faint: true}}}"#),
    (r#"{screen: {style: {text: red, blink: false}}}"#, r#"{screen: {style: {text: red, blink: true}}}"#),
    (r#"{screen: {style: {text: red, inverse: false}}}"#, r#"{screen: {style: {text: red, inverse: true}}}"#),
    (r#"{screen: {style: {text: red, conceal: false}}}"#, r#"{screen: {style: {text: red, conceal: true}}}"#),
    (r#"{screen: {style: {text: red, strike: false}}}"#, r#"{screen: {style: {text: red, strike: true}}}"#),
    (
        r#"{screen: {style: {text: red, overline: false}}}"#,
        r#"{screen: {style: {text: red, overline: true}}}"#,
    ),
    (
        r#"{screen: {style: {text: red, underline: none}}}"#,
        r#"{screen: {style: {text: red, underline: single}}}"#,
    ),
    (
        r#"{screen: {style: [{text: red, fg: red}, {text: 'name:', fg: default}]}}"#,
        r#"{screen: {style: [{text: red, fg: red}, {text: 'name:', fg: red}]}}"#,
    ),
    (r#"{eventually: {contains: alternate}}"#, r#"{eventually: {contains: nowhere}}"#),
    (r#"{eventually: {contains: b12}, from: '@asked'}"#, r#"{eventually: {contains: b12}, to: '@asked'}"#),
    (
        r#"{eventually: {contains: alternate}, from: '@full', to: '@end'}"#,
        r#"{eventually: {contains: alternate}, from: '@start', to: '@full'}"#,
    ),
    (r#"{eventually: {size: 40x5}}"#, r#"{eventually: {size: 41x5}}"#),
    (r#"{eventually: {alternate: true}}"#, r#"{eventually: {alternate: true}, to: '@pasted'}"#),
    (r#"{never: {contains: panic}}"#, r#"{never: {contains: b12}}"#),
    (r#"{never: {contains: b12}, to: '@asked'}"#, r#"{never: {contains: b12}, from: '@asked'}"#),
    (r#"{never: {contains: alternate}, to: '@full'}"#, r#"{never: {contains: alternate}, from: '@full'}"#),
    (r#"{never: {title: bye}}"#, r#"{never: {title: hello}}"#),
    (r#"{never: {size: 80x24}}"#, r#"{never: {size: 40x5}}"#),
    (r#"{always: {title: hello}, from: '@asked'}"#, r#"{always: {contains: b12}, from: 100ms}"#),
    (r#"{always: {contains: 'name:'}, from: '@asked', to: '@pasted'}"#, r#"{always: {contains: 'name:'}}"#),
    (
        r#"{always: {contains: b12}, from: '@pasted', to: 1.9s}"#,
        r#"{always: {contains: b12}, from: '@asked', to: '@full'}"#,
    ),
    (r#"{always: {size: 30x4}, to: '@pasted'}"#, r#"{always: {size: 30x4}}"#),
    (r#"{always: {lacks: panic}}"#, r#"{always: {lacks: alternate}}"#),
    (r#"{at: '@asked', stable_for: 400ms}"#, r#"{at: '@asked', stable_for: 600ms}"#),
    (r#"{stable_for: 700ms, from: '@pasted'}"#, r#"{stable_for: 5s}"#),
    (
        r#"{stable_for: 900ms, screen: {contains: red}}"#,
        r#"{stable_for: 900ms, screen: {contains: alternate}}"#,
    ),
    (
        r#"{stable_for: 300ms, screen: {contains: alternate}}"#,
        r#"{stable_for: 600ms, screen: {contains: alternate}}"#,
    ),
    (
        r#"{stable_for: 1s, screen: {rows: 1, contains: 'name:'}}"#,
        r#"{stable_for: 3s, screen: {rows: 1, contains: 'name:'}}"#,
    ),
    (r#"{order: [{output: name}, {key: Enter}, {shows: b12}]}"#, r#"{order: [{shows: b12}, {key: Enter}]}"#),
    (r#"{order: ['@start', '@asked', '@pasted', '@full', '@end']}"#, r#"{order: ['@pasted', '@asked']}"#),
    (r#"{order: [{key: Return}, {output: b12}]}"#, r#"{order: [{output: b12}, {key: Return}]}"#),
    (
        r#"{order: [{paste: 'two words'}, {signal: WINCH}, {resize: 40x5}]}"#,
        r#"{order: [{resize: 40x5}, {paste: 'two words'}]}"#,
    ),
    (
        r#"{order: [{service: {path: $.type, is: final}}, {resize: 40x5}]}"#,
        r#"{order: [{resize: 40x5}, {service: {path: $.type, is: final}}]}"#,
    ),
    (
        r#"{order: [{shows: b12}, {shows: alternate}, {shows: red}]}"#,
        r#"{order: [{shows: red}, {shows: alternate}]}"#,
    ),
    (r#"{order: [{input: "\r"}, '@end']}"#, r#"{order: ['@end', {input: "\r"}]}"#),
    (r#"{order: [{signal: SIGWINCH}, '@full']}"#, r#"{order: ['@full', {signal: SIGWINCH}]}"#),
    (
        r#"{delay: {from: {key: Enter}, to: {output: b12}, min: 500ms, max: 500ms}}"#,
        r#"{delay: {from: {key: Enter}, to: {output: b12}, max: 499ms}}"#,
    ),
    (
        r#"{delay: {from: '@start', to: '@asked', max: 500ms}}"#,
        r#"{delay: {from: '@start', to: '@asked', max: 400ms}}"#,
    ),
    (
        r#"{delay: {from: '@pasted', to: {resize: 40x5}, min: 800ms}}"#,
        r#"{delay: {from: '@pasted', to: {resize: 40x5}, min: 900ms}}"#,
    ),
    (
        r#"{delay: {from: '@full', to: '@end', min: 1.5s}}"#,
        r#"{delay: {from: '@full', to: '@end', min: 1.6s}}"#,
    ),
    (
        r#"{delay: {from: {shows: alternate}, to: '@end', max: 1.4s}}"#,
        r#"{delay: {from: {shows: alternate}, to: '@end', max: 1.3s}}"#,
    ),
    (r#"{gap: {max: 1s}}"#, r#"{gap: {max: 900ms}}"#),
    (r#"{gap: {min: 500ms}}"#, r#"{gap: {min: 2s}}"#),
    (r#"{chunks: {min: 5}}"#, r#"{chunks: {max: 4}}"#),
    (r#"{chunks: 9}"#, r#"{chunks: 10}"#),
    (r#"{chunk_bytes: {max: 40}}"#, r#"{chunk_bytes: {max: 5}}"#),
    (r#"{output_bytes: {min: 50}}"#, r#"{output_bytes: {max: 50}}"#),
    (r#"{output: {contains: "\e[1;31m"}}"#, r#"{output: {contains: "\e[1;32m"}}"#),
    (r#"{output: {lacks: "\e[4m"}}"#, r#"{output: {lacks: "\e[1;31m"}}"#),
    (r#"{split_escapes: 0}"#, r#"{split_escapes: 1}"#),
    (r#"{split_characters: 0}"#, r#"{split_characters: {min: 1}}"#),
    (r#"{input: {contains: two words}}"#, r#"{input: {contains: three}}"#),
    (r#"{input: {lacks: secret}}"#, r#"{input: {lacks: two words}}"#),
    (r#"{replies: ""}"#, r#"{replies: {contains: x}}"#),
    (r#"{bells: 1}"#, r#"{bells: 0}"#),
    (r#"{bells: {min: 1, max: 2}}"#, r#"{bells: {min: 2}}"#),
    (r#"{clipboard: []}"#, r#"{clipboard: [{selection: c, text: x}]}"#),
    (r#"{keys: [Enter]}"#, r#"{keys: []}"#),
    (r#"{pastes: [two words]}"#, r#"{pastes: [two]}"#),
    (r#"{signals: [WINCH]}"#, r#"{signals: []}"#),
    (r#"{signals: [SIGWINCH]}"#, r#"{signals: [SIGINT]}"#),
    (r#"{resizes: [40x5]}"#, r#"{resizes: [30x4]}"#),
    (r#"{service: {path: $.type, is: final}}"#, r#"{service: {path: $.type, is: usage}}"#),
    (r#"{service: {path: $.cost, is: 0.5}}"#, r#"{service: {path: $.cost, is: 0.6}}"#),
    (r#"{service: {path: $.ok, is: true}}"#, r#"{service: {path: $.ok, is: false}}"#),
    (r#"{service: {path: '$.names[1]', is: b}}"#, r#"{service: {path: '$.names[0]', is: b}}"#),
    (
        r#"{service: {path: '$.names[*]', matches: '^[ab]$'}}"#,
        r#"{service: {path: '$.names[*]', matches: c}}"#,
    ),
    (r#"{service: {path: $.type, contains: in}}"#, r#"{service: {path: $.type, contains: out}}"#),
    (
        r#"{service: {path: $.type, is: final, count: 1}}"#,
        r#"{service: {path: $.type, is: final, count: 2}}"#,
    ),
    (r#"{service: {path: $.warning, absent: true}}"#, r#"{service: {path: $.cost, absent: true}}"#),
    (r#"{service: {path: $.cost, type: number}}"#, r#"{service: {path: $.cost, type: integer}}"#),
    (r#"{service: {path: $.names, type: array}}"#, r#"{service: {path: $.names, type: object}}"#),
    (
        r#"{service: {path: $.ok, type: [boolean, 'null']}}"#,
        r#"{service: {path: $.ok, type: [string, 'null']}}"#,
    ),
    (
        r#"{service: {path: $.names, schema: {items: {type: string}, minItems: 2}}}"#,
        r#"{service: {path: $.names, schema: {minItems: 3}}}"#,
    ),
    (
        r#"{service: {path: $.type, schema: {enum: [final, usage]}}}"#,
        r#"{service: {path: $.type, schema: {const: usage}}}"#,
    ),
    (
        r#"{service: {path: $.cost, schema: {minimum: 0, maximum: 1}}}"#,
        r#"{service: {path: $.cost, schema: {minimum: 1}}}"#,
    ),
    (
        r#"{service: {path: $.type, schema: {pattern: '^f'}}}"#,
        r#"{service: {path: $.type, schema: {pattern: '^u'}}}"#,
    ),
    (
        r#"{events: {type: final, schema: {required: [cost]}}}"#,
        r#"{events: {type: final, schema: {required: [tokens]}}}"#,
    ),
    (r#"{events: {schema: {type: object}}}"#, r#"{events: {schema: {type: array}}}"#),
    (
        r#"{events: {type: final, schema: {type: object}, count: 1}}"#,
        r#"{events: {type: final, schema: {type: object}, count: 2}}"#,
    ),
    (
        r#"{events: {type: usage, schema: {type: object}, count: 0}}"#,
        r#"{events: {type: usage, schema: {type: object}}}"#,
    ),
    (
        r#"{events: {schema: {properties: {cost: {type: number}}}}}"#,
        r#"{events: {schema: {properties: {cost: {type: string}}}}}"#,
    ),
    (
        r#"{events: {schema: {properties: {names: {items: {enum: [a, b]}}}}}}"#,
        r#"{events: {schema: {properties: {names: {items: {enum: [a]}}}}}}"#,
    ),
    (
        r#"{events: {schema: {additionalProperties: true}}}"#,
        r#"{events: {schema: {additionalProperties: false}}}"#,
    ),
    (r#"{exit: 3}"#, r#"{exit: 0}"#),
    (r#"{exit: failure}"#, r#"{exit: {signal: SIGKILL}}"#),
    (r#"{exit: {code: 3}}"#, r#"{exit: {code: 4}}"#),
    (r#"{ended: program}"#, r#"{ended: timeout}"#),
];

#[test]
fn each_claim_holds_and_its_opposite_does_not() {
    let mut wrong = Vec::new();
    for (holds, fails) in CLAIMS {
        for (claim, expected) in [(holds, true), (fails, false)] {
            let text = format!("{PLAY}assert:\n  - {claim}\n");
            let scenario = Scenario::parse(&text, &|_| Err(std::io::Error::other("no such file")));
            let scenario = scenario.unwrap_or_else(|e| panic!("{claim}: {e}"));
            let Some(Source::Play(play)) = &scenario.source else { panic!("a play") };
            let claims = [scenario.assertions[0].claim.clone()];
            let verdict = &evaluate(&play.timeline(scenario.size), &claims)[0];
            if verdict.is_ok() != expected {
                wrong.push(format!("{claim}: {verdict:?}"));
            }
            if let Err(failure) = verdict {
                assert!(!failure.message.is_empty(), "{claim}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CLAIMS.len() >= 121, "{}", CLAIMS.len());
}
