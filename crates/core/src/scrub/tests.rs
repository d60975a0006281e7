//! The rules by their own examples, and what the scrubber promises, as properties.

use std::sync::Arc;

use proptest::prelude::*;
use tapdeck_term::{Scanner, Settings, Size, Term, Token};

use super::*;
use crate::log::Offset;

fn rules(packs: &[&str], secrets: &[&str]) -> Arc<Rules> {
    let secret = |v: &&str| Secret { name: format!("literal:{v:.3}"), value: (*v).to_owned() };
    let list = Rules::of_packs(packs).expect("packs");
    Arc::new(Rules::new(list, secrets.iter().map(secret).collect()).expect("rules"))
}

/// One rule alone, on one text.
fn apply(builtin: &Builtin, text: &str) -> String {
    let rule = Rules::of_packs(&["all"]).expect("packs").into_iter().find(|r| r.name == builtin.name);
    let rules = Rules::new(vec![rule.expect("there")], Vec::new()).expect("a rule");
    Scrubber::new(Arc::new(rules), Size::default()).text(text)
}

/// Each rule changes what it says it changes, and leaves alone what it says it leaves alone.
#[test]
fn rules_keep_their_word() {
    let mut broken = Vec::new();
    for builtin in BUILTIN {
        assert!(PACKS.iter().any(|p| p.0 == builtin.pack), "{}", builtin.name);
        assert!(!builtin.hits.is_empty() && !builtin.misses.is_empty(), "{}", builtin.name);
        let same = builtin.misses.iter().map(|text| (*text, *text));
        for (text, expected) in builtin.hits.iter().copied().chain(same) {
            let changed = apply(builtin, text);
            if changed != expected || apply(builtin, &changed) != changed {
                broken.push((builtin.name, changed, expected));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Texts that must not be masked, with all rules that are used unless others are named.
#[test]
fn ordinary_text_stays() {
    let rules = rules(&Rules::default_packs().iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    for text in [
        "token_count_total 1234 secretariat",
        "12.3k tokens · esc to interrupt",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "\x1b[0m\x1b[?25h\x1b[38;2;1;2;3mhello\x1b[0m",
        "cargo test --workspace -- --token-stream",
        "fn next(&mut self) -> Option<Token> { self.tokens.next() }",
        "error[E0308]: expected `Secret`, found `String`",
        "│ > password reset flow │",
        "12:34:56.789 1d 2h 3m 4s pid 12345",
        "2026-03-01T00:00:09.128Z INFO [worker-20] handled::user id=615612bccdcb token leader",
        "lrwxrwxrwx 1 root root 34 Jun 24 2025 getty@tty1.service -> /lib/systemd/system/getty@.service",
        "00012340  89 c4 4c  89 63 40 4c 8b 65 48 4d  |.G..I..L.c@L.eHM|",
        "pub const IFLA_INET6_TOKEN: _bindgen_ty_5 = _bindgen_ty_5::IFLA_INET6_TOKEN;",
        "debug1: kex: sk-ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256",
        "   Compiling proc-macro2 v1.0.106 (registry+https://example.org/index)",
        "  123 alice     20   0  174324  12345   9876 S   0.3   0.1   0:01.23 top",
    ] {
        let mut scrubber = Scrubber::new(rules.clone(), Size::default());
        scrubber.output(text.as_bytes());
        scrubber.finish();
        assert_eq!(scrubber.report().positions, [], "{text:?}");
    }
}

#[test]
fn wrong_rules_are_named() {
    let rule = |pattern: &str| Rule { name: "mine".into(), pattern: pattern.into(), ..Rule::default() };
    for (pattern, why) in [("a(b", "unclosed group"), ("x*", "empty text")] {
        let e = Rules::new(vec![rule(pattern)], Vec::new()).expect_err("refused").to_string();
        assert!(e.contains("\"mine\"") && e.contains(why), "{e}");
    }
    assert!(Rules::new(vec![rule("a"), rule("b")], Vec::new()).is_err());
    assert!(Rules::of_packs(&["nope"]).is_err());
    let short = Secret { name: "PIN".into(), value: "123".into() };
    let e = Rules::new(Vec::new(), vec![short.clone()]).expect_err("refused");
    assert!(e.to_string().contains("PIN"));
    assert!(!format!("{short:?}").contains("123"));
}

/// Reads a session twice, as a file is scrubbed, in pieces of this size, and returns the masked
/// output and the report.
fn scrub(rules: &Arc<Rules>, size: Size, bytes: &[u8], piece: usize) -> (Vec<u8>, Report) {
    let mut scrubber = Scrubber::new(rules.clone(), size);
    for _ in 0..2 {
        scrubber = scrubber.again();
        bytes.chunks(piece.max(1)).for_each(|p| scrubber.output(p));
        scrubber.finish();
    }
    let mut out = bytes.to_vec();
    scrubber.output_masks().apply(Offset(0), &mut out);
    scrubber.inspect(&out);
    (out, scrubber.report())
}

/// The sequences of a stream: all bytes of those that hold no text, the head of those that do.
fn sequences(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    let mut each = |_: &Scanner, token: Token<'_>| {
        if let Token::Control { kind, bytes, .. } = token {
            use tapdeck_term::Kind::{Control, Csi, Esc};
            let plain = matches!(kind, Control | Csi | Esc);
            list.push(if plain { bytes.to_vec() } else { vec![bytes[0], bytes[1], bytes.len() as u8] });
        }
    };
    let mut scanner = Scanner::new();
    scanner.feed(bytes, &mut each);
    scanner.finish(&mut each);
    list
}

/// Every frame of a stream as its shape: for each cell whether it is blank, and its width.
fn check_frames(before: &[u8], after: &[u8], size: Size, secrets: &[&str]) {
    let term = || Term::new(size, Settings::default().replies(false).scrollback(100));
    let (mut a, mut b) = (term(), term());
    for (i, (x, y)) in before.iter().zip(after).enumerate() {
        a.feed(&[*x]);
        b.feed(&[*y]);
        // A character of several bytes is there when its last one is.
        if !a.is_idle() {
            continue;
        }
        let mut text = String::new();
        for (row_a, row_b) in a.screen().zip(b.screen()) {
            let shape = |cells: Vec<Option<String>>| -> Vec<Option<bool>> {
                cells.into_iter().map(|c| c.map(|c| c.trim().is_empty())).collect()
            };
            assert_eq!(shape(row_a.cells()), shape(row_b.cells()), "byte {i}");
            text.push_str(&row_b.text());
            if !row_b.wrapped() {
                text.push('\n');
            }
        }
        assert_eq!(a.cursor(), b.cursor(), "byte {i}");
        for secret in secrets {
            assert!(!text.contains(secret), "byte {i}: {text}");
        }
    }
}

const KEY: &str = "sk-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0";
const VALUE: &str = "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0";

/// A secret in every disguise that a terminal sees through.
#[test]
fn a_secret_in_every_disguise() {
    let (head, tail) = KEY.split_at(20);
    let spread: String = KEY.chars().map(|c| format!("{c}\x1b[1m\x1b[0m")).collect();
    let moved: String = KEY.chars().enumerate().map(|(i, c)| format!("\x1b[3;{}H{c}", i + 5)).collect();
    let backwards: String = (0..KEY.len())
        .rev()
        .map(|i| (i, char::from(KEY.as_bytes()[i])))
        .map(|(i, c)| format!("\x1b[3;{}H{c}", i + 5))
        .collect();
    let typed: String = (1..=KEY.len()).map(|n| format!("\r\x1b[2K> {}", &KEY[..n])).collect();
    let cases: Vec<(&str, String)> = vec![
        ("plain", format!("the key is {KEY} today\r\n")),
        ("colours inside", format!("{spread}\r\n")),
        ("wrapped at the edge", format!("{}{KEY}\r\nmore\r\n", "x ".repeat(33))),
        ("wrapped over many rows", format!("{}{KEY}\r\n", "y".repeat(71) + " ")),
        ("cursor moves", format!("{moved}\r\n")),
        ("cursor moves, backwards", format!("{backwards}\r\n")),
        ("two parts, the second first", format!("\x1b[5;21H{tail}\x1b[5;1H{head}\r\n")),
        ("typed and redrawn", format!("{typed}\r\n")),
        ("overwritten at once", format!("{KEY}\r{}\r\n", "-".repeat(KEY.len()))),
        ("erased at once", format!("{KEY}\x1b[2K\r\n")),
        ("erased with the screen", format!("{KEY}\x1b[H\x1b[2J\r\n")),
        ("on the alternate screen", format!("\x1b[?1049h{KEY}\x1b[?1049l\r\n")),
        ("scrolled away", format!("{KEY}\r\n{}", "line\r\n".repeat(50))),
        ("inserted", format!("\x1b[4h{tail}\r{head}\x1b[4l\r\n")),
        ("characters deleted", format!("{head}XXX{tail}\x1b[21G\x1b[3P\r\n")),
        ("no wrapping", format!("\x1b[?7l{}{KEY}\x1b[?7h\r\n", "z ".repeat(38))),
        ("line drawing", format!("\x1b(0{}\x1b(B\r\n", KEY)),
        ("title", format!("\x1b]0;{KEY}\x07\x1b]2;{KEY}\x1b\\ok")),
        ("link", format!("\x1b]8;;https://x.test/?k={KEY}\x07text\x1b]8;;\x07")),
        ("folder", format!("\x1b]7;file://host/{KEY}\x07")),
        ("clipboard", format!("\x1b]52;c;{}\x07", crate::base64::encode(KEY.as_bytes()))),
        ("cut off title", format!("\x1b]0;{KEY}\x18ok\r\n")),
        ("unfinished title", format!("\x1b]0;{KEY}")),
        ("a device string", format!("\x1bP1$r{KEY}\x1b\\")),
        ("a long wrapped line", format!("{} {KEY} {}\r\n", "ab cd ".repeat(500), "ef gh ".repeat(100))),
        ("left and right margins", format!("\x1b[?69h\x1b[10;70s\x1b[H{KEY}\x1b[?69l\r\n")),
        ("a double-width row", format!("\x1b#6{}\r\n\x1b#5", &KEY)),
        ("two columns", format!("a key: {KEY} │ b\r\n")),
    ];
    let rules = rules(&["secrets"], &[]);
    let size = Size::new(80, 24);
    for (name, text) in &cases {
        let bytes = text.as_bytes();
        let (out, report) = scrub(&rules, size, bytes, usize::MAX >> 1);
        assert!(report.hits() > 0, "{name}: {report:?}");
        assert!(report.is_clean(), "{name}");
        assert_eq!(out.len(), bytes.len(), "{name}");
        assert_eq!(sequences(&out), sequences(bytes), "{name}");
        // In the stored bytes, sequences taken out; and as base64.
        let mut plain = Vec::new();
        Scanner::new().feed(&out, |_, token| {
            if let Token::Text(text) = token {
                plain.extend_from_slice(text);
            }
        });
        for stored in [&out, &plain] {
            let stored = String::from_utf8_lossy(stored);
            assert!(!stored.contains(VALUE), "{name}: {stored:?}");
            assert!(!stored.contains(&crate::base64::encode(KEY.as_bytes())), "{name}");
        }
        check_frames(bytes, &out, size, &[VALUE, &VALUE[..14]]);
        assert_eq!(scrub(&rules, size, bytes, 1), (out.clone(), report), "{name}: single bytes");
        let (again, report) = scrub(&rules, size, &out, 7);
        assert_eq!((again, report.hits()), (out, 0), "{name}: twice is once");
    }
}

/// Typed with mistakes, at a prompt, pasted, in pieces.
#[test]
fn what_was_typed() {
    let (head, tail) = VALUE.split_at(9);
    for (screen, input, gone) in [
        ("$ ", format!("export K={KEY}\r"), VALUE.to_owned()),
        ("$ ", format!("{}{head}zz\x7f\x7f{tail}\r", &KEY[..KEY.len() - VALUE.len()]), tail.to_owned()),
        ("$ ", format!("\x1b[200~{KEY}\x1b[201~\r"), VALUE.to_owned()),
        ("[sudo] password for bob: ", "letmein\r".to_owned(), "letmein".to_owned()),
        ("Enter passphrase for key '/x/id': ", "open sesame\r".to_owned(), "sesame".to_owned()),
        ("$ ", format!("echo {KEY}"), VALUE.to_owned()),
    ] {
        let rules = rules(&["secrets"], &[]);
        for piece in [1, 1000] {
            let mut scrubber = Scrubber::new(rules.clone(), Size::default());
            scrubber.output(screen.as_bytes());
            input.as_bytes().chunks(piece).for_each(|p| scrubber.input(p));
            scrubber.finish();
            let mut out = input.clone().into_bytes();
            scrubber.input_masks().apply(Offset(0), &mut out);
            let text = String::from_utf8_lossy(&out);
            assert!(!text.contains(&gone), "{text:?}");
            assert_eq!(sequences(&out), sequences(input.as_bytes()));
            assert!(scrubber.report().rules.iter().any(|r| r.input > 0));
        }
    }
    let mut scrubber = Scrubber::new(rules(&["secrets"], &[]), Size::default());
    scrubber.output(b"name: ");
    scrubber.input(b"letmein\r");
    scrubber.finish();
    assert_eq!(scrubber.input_masks().bytes(), 0, "an ordinary prompt");
}

/// The password was masked where it was typed, and nowhere else.
#[test]
fn a_password_that_was_typed_is_known_from_then_on() {
    let rules = rules(&["secrets"], &[]);
    let (asked, later) = ("Password: ", "\r\nit was letmein, and LETMEIN\x1b[31m letm\x1b[mein\r\n");
    // Asked for on the screen, or not shown by the terminal; kept or not.
    for (screen, hidden, kept) in [(asked, false, true), ("code? ", true, true), ("code? ", true, false)] {
        let mut scrubber = Scrubber::new(rules.clone(), Size::default());
        scrubber.output(screen.as_bytes());
        for piece in ["let", "mx\x7fein", "\r"] {
            match (hidden, kept) {
                (_, false) => scrubber.overhear(piece.as_bytes(), hidden),
                (true, _) => scrubber.hidden_input(piece.as_bytes()),
                (false, _) => scrubber.input(piece.as_bytes()),
            }
        }
        scrubber.output(later.as_bytes());
        scrubber.finish();
        let mut out = [screen, later].concat().into_bytes();
        scrubber.output_masks().apply(Offset(0), &mut out);
        let shown = String::from_utf8(out).expect("text");
        assert!(shown.ends_with("it was *******, and LETMEIN\x1b[31m ****\x1b[m***\r\n"), "{shown:?}");
        let report = scrubber.report();
        let typed = report.rules.iter().find(|r| r.name == "typed-password").expect("a rule");
        assert_eq!((typed.output, typed.input), (2, u64::from(kept)), "{screen:?} {kept}");
        assert_eq!(scrubber.input_masks().bytes() > 0, kept);
    }
    // What was given up or typed visibly is none.
    for (screen, hidden, keys) in [("name: ", false, "letmein\r"), ("code? ", true, "letmein\x03")] {
        let mut scrubber = Scrubber::new(rules.clone(), Size::default());
        scrubber.output(screen.as_bytes());
        if hidden {
            scrubber.hidden_input(keys.as_bytes());
        } else {
            scrubber.input(keys.as_bytes());
        }
        scrubber.output(later.as_bytes());
        scrubber.finish();
        assert_eq!(scrubber.output_masks().bytes(), 0, "{keys:?}");
    }
}

/// A shell that came back on the line of `Password: ` lost its prompt, everywhere.
#[test]
fn a_prompt_behind_a_request_for_a_password_is_none() {
    let rules = rules(&["secrets"], &[]);
    let run = |steps: &[(&str, bool)], size: usize| {
        let mut scrubber = Scrubber::new(rules.clone(), Size::default());
        let mut out = Vec::new();
        for (text, typed) in steps {
            for piece in text.as_bytes().chunks(size) {
                if *typed {
                    scrubber.hidden_input(piece);
                } else {
                    scrubber.output(piece);
                }
            }
            if !typed {
                out.extend_from_slice(text.as_bytes());
            }
        }
        scrubber.finish();
        scrubber.output_masks().apply(Offset(0), &mut out);
        String::from_utf8(out).expect("text")
    };
    let prompt = "ada@host1:~$ ";
    for size in [1, 3, 1000] {
        // The keys are known, or a line editor tells.
        let typed = [("Password: ", false), ("hunter22\r", true), (prompt, false), ("ls\r\n", false)];
        assert_eq!(run(&typed, size), format!("Password: {prompt}ls\r\n"));
        let text = format!("Password: \x1b[?2004h{prompt}ls\r\n{prompt}\r\n");
        assert_eq!(run(&[(&text, false)], size), text);
        let text = "Password: \x1b]133;A\x07bash-5.2# ls\r\nbash-5.2# \r\n";
        assert_eq!(run(&[(text, false)], size), text);
        // A value that a program or an echo shows is a secret all the same.
        for shown in ["Password: hunter22\r\n", "Password: \x1b[?2004hhunter22\r\n"] {
            assert!(!run(&[(shown, false)], size).contains("hunter22"), "{shown:?}");
        }
        let again = [("Password: ", false), ("hunter22\r", true), ("token: ab12cd34\r\n", false)];
        assert_eq!(run(&again, size), "Password: token: ********\r\n");
    }
}

#[test]
fn pem_blocks_go_from_line_to_line() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB";
    let text = format!(
        "x\r\n-----BEGIN RSA PRIVATE KEY-----\r\n{body}\r\n{body}\r\nAQAB\r\n-----END RSA PRIVATE KEY-----\r\nAQAB\r\n"
    );
    let (out, report) = scrub(&rules(&["secrets"], &[]), Size::default(), text.as_bytes(), 5);
    let out = String::from_utf8(out).expect("text");
    assert!(!out.contains("MIIE") && out.contains("-----BEGIN RSA") && out.contains("-----END RSA"), "{out}");
    assert_eq!(out.matches("AQAB").count(), 1, "only what stands in the block: {out}");
    assert!(report.rules.iter().any(|r| r.name == "pem-private-key" && r.output == 3), "{report:?}");
}

/// Values given by the user, of any script, whole and in part, also where no rule knows them.
#[test]
fn literal_secrets() {
    for secret in ["hunter2", "pässwörter", "秘密の鍵です", "🔑key🔑key"] {
        let rules = rules(&["secrets"], &[secret]);
        let text = format!("a {secret} b\r\n\x1b]0;{secret}\x07{}{secret}\r\n", "x".repeat(76));
        let (out, report) = scrub(&rules, Size::default(), text.as_bytes(), 3);
        assert!(!String::from_utf8_lossy(&out).contains(secret), "{secret}");
        check_frames(text.as_bytes(), &out, Size::default(), &[secret]);
        assert!(report.rules.iter().any(|r| r.pack == "literal" && r.output >= 3), "{report:?}");
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z =:é漢😀*]{1,30}",
        2 => Just(KEY.to_owned()),
        1 => Just(KEY[..25].to_owned()),
        1 => Just(VALUE[5..].to_owned()),
        1 => Just("hunter2hunter2".to_owned()),
        1 => Just("token=Ab3dEf6hIj9l password: x9y8z7w6".to_owned()),
        1 => Just("a\u{301}e\u{301}👩\u{200d}👩\u{200d}👧🇩🇪".to_owned()),
        3 => "[\r\n\t\x08]{1,2}",
        3 => "\x1b\\[[0-9]{0,2};?[0-9]{0,2}[A-HJKLMPSTX@dGfb]",
        2 => "\x1b\\[[0-9]{1,2}m",
        1 => "\x1b\\[\\?(1049|7|69|6|2004|2026)[hl]",
        1 => "\x1b\\[(4[hl]|[1-9];[1-9]r|[1-9]{1,2};[1-9]{1,2}s|!p)",
        1 => "\x1b([78DEMc]|#[3568]|\\(0|\\(B)",
        1 => "\x1b\\][0-9]{1,2};[a-z;=]{0,10}(token=Ab3dEf6hIj9l)?(\x07|\x1b\\\\|\x18)",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_a_scrubber_promises(
        text in prop::collection::vec(piece(), 0..40),
        cols in 1u16..100,
        rows in 1u16..12,
        step in 1usize..20,
    ) {
        let bytes = text.concat().into_bytes();
        let size = Size::new(cols, rows);
        let rules = rules(&["all"], &["hunter2hunter2"]);
        let (out, report) = scrub(&rules, size, &bytes, usize::MAX >> 1);
        prop_assert_eq!(out.len(), bytes.len());
        prop_assert_eq!(sequences(&out), sequences(&bytes));
        let secrets: &[&str] = if cols > 20 { &["hunter2hunter2"] } else { &[] };
        check_frames(&bytes, &out, size, secrets);
        let (other, split) = scrub(&rules, size, &bytes, step);
        prop_assert_eq!(String::from_utf8_lossy(&other), String::from_utf8_lossy(&out));
        prop_assert_eq!(&split.positions, &report.positions);
        prop_assert_eq!((split.learned, split.masked_bytes, split.residue), (report.learned, report.masked_bytes, report.residue));
        prop_assert_eq!(split, report);
        let (again, _) = scrub(&rules, size, &out, step);
        prop_assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&out));
    }
}

/// How a secret is drawn.
#[derive(Clone, Copy, Debug)]
enum Drawn {
    /// In one go, wrapped where the row ends.
    Plain,
    /// Each character at its place, from the left or from the right.
    Moved { backwards: bool },
    /// Its second half first.
    Halves,
}

/// The output that draws a line with a secret in it.
fn drawn(line: &str, how: Drawn, col: u16, size: Size, colours: &[u8]) -> String {
    let painted = |(i, c): (usize, char)| match colours[i % colours.len()] {
        0..=1 => format!("\x1b[3{}m{c}", i % 8),
        2 => format!("{c}\x1b[0m"),
        _ => c.to_string(),
    };
    let col = col % size.cols;
    // What does not fit on the row can only be wrapped.
    let fits = usize::from(col) + line.len() < usize::from(size.cols);
    let at = |i: usize| format!("\x1b[2;{}H", usize::from(col) + i + 1);
    let place = |(i, c): (usize, char)| at(i) + &painted((i, c));
    match how {
        Drawn::Moved { backwards: false } if fits => line.char_indices().map(place).collect(),
        Drawn::Moved { backwards: true } if fits => line.char_indices().rev().map(place).collect(),
        Drawn::Halves if fits => {
            let (head, tail) = line.split_at(line.len() / 2);
            format!("{}{tail}{}{head}", at(head.len()), at(0))
        }
        _ => " ".repeat(col.into()) + &line.char_indices().map(painted).collect::<String>(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Random secrets, split by random chunks, wraps, colours and cursor moves.
    #[test]
    fn a_random_secret_is_gone_whatever_its_disguise(
        (front, value) in prop_oneof![
            ("sk-ant-api03-", "[A-Za-z0-9_]{24,40}"),
            ("token ghp_", "[A-Za-z0-9]{36}"),
            ("AKIA", "[A-Z0-9]{16}"),
            ("api_key=", "[a-z]{6}[0-9][A-Za-z0-9]{5,20}"),
            ("password: ", "[a-z]{6}[0-9][A-Za-z0-9]{5,20}"),
        ],
        how in prop_oneof![
            Just(Drawn::Plain),
            any::<bool>().prop_map(|backwards| Drawn::Moved { backwards }),
            Just(Drawn::Halves),
        ],
        col in 0u16..120,
        cols in 24u16..120,
        colours in prop::collection::vec(0u8..8, 1..40),
        step in 1usize..40,
    ) {
        let size = Size::new(cols, 8);
        let text = drawn(&format!("{front}{value}"), how, col, size, &colours);
        let bytes = format!("hello\r\n{text}\r\n\x1b[8;1Hand again {value} \r\n").into_bytes();
        let (out, report) = scrub(&rules(&["secrets"], &[]), size, &bytes, step);
        prop_assert!(report.is_clean() && report.hits() > 0);
        prop_assert_eq!(out.len(), bytes.len());
        let (mut plain, mut stored) = (Vec::new(), String::from_utf8_lossy(&out).into_owned());
        Scanner::new().feed(&out, |_, token| {
            if let Token::Text(text) = token {
                plain.extend_from_slice(text);
            }
        });
        stored.push_str(&String::from_utf8_lossy(&plain));
        let backwards: String = value.chars().rev().collect();
        let half = &value[..value.len() / 2];
        for part in [value.as_str(), half, &backwards] {
            prop_assert!(!stored.contains(part), "{part} is in {stored:?}");
        }
        check_frames(&bytes, &out, size, &[&value, half]);
    }
}
