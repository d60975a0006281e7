//! What the goldens do not say: limits, quiet rules, and that a detector holds what it promises
//! whatever it is fed.

use core::time::Duration;
use std::sync::Arc;

use proptest::prelude::*;
use tapdeck_term::{Settings, Size, Term};

use super::*;
use crate::event::Exit;
use crate::time::{Stamp, Time, WallTime};

fn at(ms: u64) -> Stamp {
    Stamp { mono: Time::from_millis(ms), wall: WallTime::from_millis(ms) }
}

fn rules(text: &RuleText) -> Arc<Rules> {
    Arc::new(Rules::new(text, None).expect("sound"))
}

fn prompt(pattern: &str) -> RuleText {
    let prompts = vec![PromptText { name: "p".into(), pattern: pattern.into(), ..PromptText::default() }];
    RuleText { name: "test".into(), prompts, ..RuleText::default() }
}

struct Bench {
    term: Term,
    detector: Detector,
    offset: u64,
}

impl Bench {
    fn new(text: &RuleText, limits: Limits) -> Self {
        let term = Term::new(Size::new(80, 24), Settings::default());
        Self { term, detector: Detector::new(rules(text), limits), offset: 0 }
    }

    fn out(&mut self, ms: u64, bytes: &[u8]) {
        self.detector.advance(&self.term, at(ms));
        let changes = self.term.feed(bytes);
        self.detector.output(bytes, Offset(self.offset), &changes.signals, at(ms));
        self.offset += bytes.len() as u64;
    }

    fn type_in(&mut self, ms: u64, bytes: &[u8]) {
        self.detector.advance(&self.term, at(ms));
        self.detector.input(&self.term, bytes, None, at(ms));
    }

    fn notices(&mut self, ms: u64) -> Vec<Notice> {
        self.detector.advance(&self.term, at(ms));
        std::iter::from_fn(|| self.detector.poll()).collect()
    }

    fn turns(&mut self, ms: u64) -> Vec<Arc<Turn>> {
        let done = |n| if let Notice::Completed(turn) = n { Some(turn) } else { None };
        self.notices(ms).into_iter().filter_map(done).collect()
    }
}

#[test]
fn a_long_answer_is_cut_and_says_so() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default().content(1000));
    bench.out(0, b"$ ");
    bench.type_in(100, b"yes\r");
    bench.out(110, b"yes\r\n");
    for i in 0..100 {
        bench.out(120 + i, b"0123456789012345678\r\n");
    }
    bench.out(300, b"$ ");
    let turns = bench.turns(1000);
    assert_eq!(turns.len(), 1);
    assert!(turns[0].truncated && turns[0].raw.len() <= 1000 && turns[0].raw.len() > 900);
    assert_eq!(turns[0].text.lines().count(), 100, "what is on the page is whole");
}

#[test]
fn an_answer_that_has_left_the_scrollback_is_told_whole() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.term = Term::new(Size::new(80, 24), Settings::default().scrollback(100));
    bench.out(0, b"$ ");
    bench.type_in(100, b"seq 500\r");
    bench.out(110, b"seq 500\r\n");
    let lines: String = (1..=500).map(|n| format!("{n}\n")).collect();
    bench.out(120, lines.replace('\n', "\r\n").as_bytes());
    bench.out(130, b"x".repeat(20_000).as_slice());
    bench.out(140, b"\r\n$ ");
    let turns = bench.turns(1000);
    assert_eq!(turns.len(), 1);
    assert!(turns[0].text == format!("{lines}{}\n", "x".repeat(20_000)) && !turns[0].truncated);
}

/// What was asked is told as it stood when it was submitted, however it came to stand there.
#[test]
fn an_edited_line_is_told_as_it_was_submitted() {
    // The prompt as it is drawn; pieces of output and input; what was asked.
    let bash = "\x1b[?2004h$ ";
    let zsh = "$ \x1b[?2004h\x1b[70C1:23\x1b[3G";
    let marked = "\x1b]133;A\x07$ \x1b]133;B\x07";
    type Step<'a> = (&'a str, &'a str);
    let edits: [(&[Step<'_>], &str); 4] = [
        (
            &[("echo one two", "echo one two"), ("\x17", "\x08\x08\x08\x1b[3P"), ("three", "three")],
            "echo one three",
        ),
        (&[("echo /et", "echo /et"), ("\t", "c/")], "echo /etc/"),
        (&[("cho end", "cho end"), ("\x01", "\x1b[3G"), ("e", "\x1b[1@e")], "echo end"),
        (&[("\x1b[A", "echo old")], "echo old"),
    ];
    for shown in [bash, zsh, marked] {
        for (steps, wanted) in &edits {
            let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
            bench.out(0, shown.as_bytes());
            let mut ms = 1000;
            for (typed, drawn) in *steps {
                bench.type_in(ms, typed.as_bytes());
                bench.out(ms + 1, drawn.as_bytes());
                ms += 1000;
            }
            bench.type_in(ms, b"\r");
            let off = if shown == marked { "\r\n\x1b]133;C\x07" } else { "\r\n\x1b[?2004l\r" };
            bench.out(ms + 1, format!("{off}well\r\n{shown}").as_bytes());
            let turns = bench.turns(ms + 1000);
            let told: Vec<_> = turns.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
            assert_eq!(told, [(*wanted, "well\n")], "{shown:?} {steps:?}");
        }
    }
}

/// A row that was erased before, and that a line end alone passes over, is a blank line of the
/// output all the same.
#[test]
fn blank_lines_are_output() {
    // What is drawn with the prompt, and what was there before it.
    for (before, prompt_text) in [
        ("", "$ "),
        ("x\r\ny\r\nz\r\n\x1b[H\x1b[2J", "$ "),
        ("x\r\n", "\r\x1b[J$ \x1b[K"),
        ("x\r\n\r\n\r\n", "\r\x1b[J$ \x1b[K"),
    ] {
        for output in ["a\n\nb\n", "\na\n", "commit 1\nDate\n\n    msg\n\n", "\n\n\na\n\n\n", "a"] {
            let mut bench = Bench::new(&prompt(r"\$ $"), Limits::default());
            bench.out(0, before.as_bytes());
            bench.out(1, prompt_text.as_bytes());
            bench.type_in(1000, b"show");
            bench.out(1010, b"show");
            bench.type_in(1020, b"\r");
            let shown = output.replace('\n', "\r\n");
            let next = prompt_text.trim_start_matches('\r');
            bench.out(1030, format!("\r\n{shown}{next}").as_bytes());
            let turns = bench.turns(2000);
            let told: Vec<_> = turns.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
            assert_eq!(told, [("show", output)], "{before:?} {prompt_text:?}");
        }
    }
}

/// An agent's answer ends where the question is repeated, and only there; where that is out of
/// sight, it says so.
#[test]
fn an_answer_may_look_like_a_question() {
    let text = RuleText {
        by_state: true,
        answer_within: Some(Duration::from_secs(3)),
        frame: Some("^❯(?: |$)".into()),
        echo: Some(r"^[>❯] \S".into()),
        states: vec![
            StateText {
                name: "works".into(),
                state: AgentState::Working,
                screen: vec!["^working$".into()],
                ..StateText::default()
            },
            StateText {
                name: "asks".into(),
                state: AgentState::Blocked,
                screen: vec![r"^\s*❯ 1\. ".into()],
                field: Some(r"^❯ 1\. ".into()),
                ..StateText::default()
            },
            StateText {
                name: "rests".into(),
                state: AgentState::Idle,
                screen: vec!["^❯(?: |$)".into()],
                ..StateText::default()
            },
        ],
        ..RuleText::default()
    };
    let page = |above: &str, last: &str| format!("\x1b[H\x1b[2J{}{last}", above.replace('\n', "\r\n"));
    // What the screen shows in the end, the text of the turn, and whether it is cut.
    for (shown, told, cut) in [
        (
            "❯ build it\n\nI ran:\n> tsc -p .\n❯ 1. Yes\nDone.\n\n",
            "I ran:\n> tsc -p .\n❯ 1. Yes\nDone.\n",
            false,
        ),
        ("line 8\nline 9\n\n", "line 8\nline 9\n", true),
        ("❯ build it\nline 8\nline 9\n\n", "line 8\nline 9\n", true),
    ] {
        let mut bench = Bench::new(&text, Limits::default());
        bench.out(0, format!("\x1b[?1049h{}", page("hello\n\n", "❯ ")).as_bytes());
        assert!(!bench.notices(1000).is_empty());
        bench.type_in(1100, b"build it");
        bench.out(1110, b"build it");
        bench.type_in(1200, b"\r");
        bench.out(1210, page("❯ build it\n\nworking\n", "❯ ").as_bytes());
        bench.notices(2500);
        bench.out(3000, page(shown, "❯ ").as_bytes());
        let turns = bench.turns(9000);
        let got: Vec<_> = turns.iter().map(|t| (t.text.as_str(), t.truncated)).collect();
        assert_eq!(got, [(told, cut)], "{shown:?}: {:?}", bench.detector.judgement());
    }
}

/// Completions are listed below the line, and the line is drawn again below them.
#[test]
fn a_line_below_its_completions_is_told_whole() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    bench.type_in(1000, b"cat /etc/host");
    bench.out(1010, b"cat /etc/host");
    bench.type_in(2000, b"\t\t");
    bench.out(2010, b"\r\nhost.conf  hostname   hosts\r\n$ cat /etc/host");
    bench.type_in(3000, b"name");
    bench.out(3010, b"name");
    bench.type_in(4000, b"\r");
    bench.out(4010, b"\r\nbox\r\n$ ");
    let turns = bench.turns(5000);
    let told: Vec<_> = turns.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
    assert_eq!(told, [("cat /etc/hostname", "box\n")]);
}

/// A program that shows nothing of what is typed may be asking for a secret.
#[test]
fn what_was_not_shown_is_not_told() {
    let told = |typed: &[&[u8]], echo: &[u8]| {
        let mut bench = Bench::new(&prompt(r"^> $"), Limits::default());
        bench.out(0, b"> ");
        for (n, piece) in typed.iter().enumerate() {
            bench.type_in(1000 + 10 * n as u64, piece);
            if !piece.ends_with(b"\r") && !echo.is_empty() {
                bench.out(1005 + 10 * n as u64, piece);
            }
        }
        bench.out(1100, &[echo, b"\r\nwell\r\n> "].concat());
        let turns = bench.turns(3000);
        assert_eq!(turns.len(), 1);
        turns[0].input.clone()
    };
    assert_eq!(told(&[b"hunter2 is it\r"], b""), "");
    assert_eq!(told(&[b"hunter2", b"\r"], b""), "");
    assert_eq!(told(&[b"hunter2 is it\r"], b"h\x08\x1b[32mhunter2\x1b[m is it"), "hunter2 is it");
    assert_eq!(told(&[b"clear", b"\r"], b"\r\n\x1b[H\x1b[2J"), "clear");
}

/// A shell that drew something below its line goes down to it without a line end.
#[test]
fn a_line_that_was_searched_for_has_an_answer() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ \x1b[?2004h");
    bench.type_in(1000, b"\x12");
    bench.out(1001, b"\r\r\nbck-i-search: _\x1b[K\x1b[A\x1b[13D");
    bench.type_in(2000, b"al");
    bench.out(2001, b"echo alpha beta\x1b[1B\x08\x08\x08al_\x1b[A\x1b[12D");
    bench.type_in(3000, b"\r");
    bench.out(
        3001,
        b"\x1b[1B\r\x1b[K\x1b[A\x1b[7C\x1b[?2004l\x1b[1B\ralpha beta\r\n\r\x1b[J$ \x1b[K\x1b[?2004h",
    );
    let turns = bench.turns(5000);
    let told: Vec<_> = turns.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
    assert_eq!(told, [("echo alpha beta", "alpha beta\n")]);
    assert_eq!(&turns[0].raw[..], b"alpha beta\r\n");
}

#[test]
fn lines_that_were_typed_ahead_have_their_own_answers_where_the_shell_marks_them() {
    let prompt_text = "\x1b]133;A\x07$ \x1b]133;B\x07";
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, prompt_text.as_bytes());
    bench.type_in(1000, b"sleep 1; echo A\rtrue\recho B\recho C\r");
    bench.out(1001, b"sleep 1; echo A\r\n\x1b]133;C\x07true\r\necho B\r\necho C\r\n");
    let then =
        |line: &str, said: &str| format!("\x1b]133;D;0\x07{prompt_text}{line}\r\n\x1b]133;C\x07{said}");
    let all = format!(
        "A\r\n{}{}{}\x1b]133;D;0\x07{prompt_text}",
        then("true", ""),
        then("echo B", "B\r\n"),
        then("echo C", "C\r\n")
    );
    bench.out(2000, all.as_bytes());
    let turns = bench.turns(3000);
    let told: Vec<_> = turns.iter().map(|t| (t.number, t.input.as_str(), t.text.as_str())).collect();
    assert_eq!(told, [(1, "sleep 1; echo A", "A\n"), (2, "echo B", "B\n"), (3, "echo C", "C\n")]);
    assert_eq!(bench.detector.judgement().state, AgentState::Idle);
    assert_eq!(turns[1].raw.as_ref(), b"B\r\n");
}

/// They were all one answer, with the prompts in it.
#[test]
fn lines_that_were_typed_ahead_have_their_own_answers_where_a_line_editor_echoes_them() {
    let eol = "\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m";
    let zsh = format!("{eol}{}\r \r\r\x1b[J$ \x1b[K\x1b[?2004h", " ".repeat(79));
    // The prompt as it is drawn, and what the shell writes when it has read a line.
    for (prompt_text, read) in [("\x1b[?2004h$ ", "\r\n\x1b[?2004l\r"), (zsh.as_str(), "\x1b[?2004l\r\r\n")] {
        let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
        bench.detector.rules = Arc::new(
            Rules::new(&RuleText { eol_marks: vec![eol.into()], ..prompt(r"^\$ $") }, None).expect("sound"),
        );
        bench.out(0, prompt_text.as_bytes());
        bench.type_in(1000, b"sleep 1; echo A\rread x\rsome text\rtrue\rprintf B\recho C\r");
        bench.out(1001, format!("sleep 1; echo A{read}read x\r\nsome text\r\ntrue\r\n").as_bytes());
        let then = |line: &str, said: &str| format!("{prompt_text}{line}{read}{said}");
        let all = format!(
            "A\r\n{}{}{}{}{prompt_text}",
            then("read x", ""),
            then("true", ""),
            then("printf B", "B"),
            then("echo C", "C\r\n")
        );
        bench.out(2000, all.as_bytes());
        let turns = bench.turns(3000);
        let told: Vec<_> = turns.iter().map(|t| (t.number, t.input.as_str(), t.text.as_str())).collect();
        assert_eq!(
            told,
            [(1, "sleep 1; echo A", "A\n"), (2, "printf B", "B"), (3, "echo C", "C\n")],
            "{prompt_text:?}"
        );
        assert_eq!(turns[0].raw.as_ref(), b"read x\r\nsome text\r\ntrue\r\nA\r\n");
        assert_eq!(turns[1].raw.as_ref(), b"B", "{prompt_text:?}");
        assert_eq!(bench.detector.judgement().state, AgentState::Idle);
    }
}

/// Where only the text of the prompt tells, the rows above it were taken for output for ever if the
/// prompt had one row at first.
#[test]
fn a_prompt_that_grows_a_row_is_learned() {
    // Enter at the empty prompt shows it at once.
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    let mut ms = 1000;
    let ask = |bench: &mut Bench, ms: &mut u64, line: &str, said: &str| {
        bench.type_in(*ms, format!("{line}\r").as_bytes());
        bench.out(*ms + 1, format!("{line}\r\n{said}~/src\r\n$ ").as_bytes());
        *ms += 1000;
        let turns = bench.turns(*ms - 500);
        turns.first().map(|t| t.text.clone()).unwrap_or_default()
    };
    assert_eq!(ask(&mut bench, &mut ms, "PS1=...", ""), "~/src\n", "nothing tells yet");
    assert_eq!(ask(&mut bench, &mut ms, "", ""), "");
    assert_eq!(ask(&mut bench, &mut ms, "echo a", "a\r\n"), "a\n");
    // So do three different questions.
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    let told = ["PS1=...", "echo a", "echo b", "echo c"].map(|line| {
        let said = line.strip_prefix("echo ").map(|word| format!("{word}\r\n")).unwrap_or_default();
        ask(&mut bench, &mut ms, line, &said)
    });
    assert_eq!(told, ["~/src\n", "a\n~/src\n", "b\n", "c\n"]);
    // The same question thrice says nothing.
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    for _ in 0..4 {
        assert_eq!(ask(&mut bench, &mut ms, "pwd", ""), "~/src\n");
    }
}

/// Long answers lost all but what the scrollback had, because line ends and colors were counted as
/// text.
#[test]
fn a_long_answer_keeps_as_much_text_as_is_promised() {
    // Lines of two letters, blank ones and coloured ones, each with how many lines fit.
    for (line, shown, fit) in [("ab", "ab", 20_000), ("", "", 60_000), ("\x1b[32mab\x1b[m", "ab", 20_000)] {
        for (lines, cut) in [(fit - 1000, false), (fit + 1000, true)] {
            let limit = 60_000;
            let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default().content(limit));
            bench.term = Term::new(Size::new(80, 24), Settings::default().scrollback(100));
            bench.out(0, b"$ ");
            bench.type_in(100, b"long\r");
            bench.out(110, b"long\r\n");
            let lines = if line.len() > 4 { lines.min(6_000) } else { lines };
            let cut = cut && line.len() <= 4;
            bench.out(120, format!("{line}\r\n").repeat(lines).as_bytes());
            bench.out(130, b"end\r\n$ ");
            let turns = bench.turns(1000);
            assert_eq!(turns.len(), 1, "{line:?} {lines}");
            let turn = &turns[0];
            assert_eq!(turn.truncated, cut, "{line:?} {lines}");
            assert!(turn.raw.len() <= limit);
            if cut {
                assert!(turn.text.len() <= limit && turn.text.len() > limit - 100, "{}", turn.text.len());
            } else {
                assert!(turn.text == format!("{shown}\n").repeat(lines) + "end\n", "{line:?} {lines}");
            }
        }
    }
}

#[test]
fn a_line_that_was_given_up_is_no_part_of_the_next() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"\x1b[?2004h$ ");
    bench.type_in(1000, b"echo zz");
    bench.out(1001, b"echo zz");
    bench.type_in(1002, b"\x03echo q\r");
    bench.out(1003, b"^C\r\n\x1b[?2004l\r\x1b[?2004h$ echo q\r\n\x1b[?2004l\rq\r\n\x1b[?2004h$ ");
    let turns = bench.turns(2000);
    assert_eq!(turns.last().map(|t| t.input.as_str()), Some("echo q"));
}

/// The rest of the answer was lost: nothing had been submitted to what looked like a prompt.
#[test]
fn an_answer_goes_on_behind_what_looks_like_a_prompt() {
    // The prompt as it is drawn, what is asked, the answer in pieces, and what is told.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);
    let cases: [Case<'_>; 6] = [
        ("\x1b[?2004h$ ", &["$ ", "real\r\n"], &["$ real\n"]),
        ("\x1b[?2004h$ ", &["a\r\n$ ", "real\r\n"], &["a\n", "$ real\n"]),
        ("\x1b[?2004h$ ", &["a$ ", "real\r\nmore\r\n"], &["a", "$ real\nmore\n"]),
        ("$ ", &["$ ", "real\r\n"], &["$ real\n"]),
        ("$ ", &["a\r\n$ ", "b\r\n$ ", "c\r\n"], &["a\n", "$ b\n", "$ c\n"]),
        ("$ ", &["a\r\n$ ", "\x1b[2K\r"], &["a\n"]),
    ];
    for (prompt_text, pieces, wanted) in cases {
        let mut bench = Bench::new(&prompt(r"\$ $"), Limits::default());
        bench.out(0, prompt_text.as_bytes());
        bench.type_in(1000, b"go\r");
        let off = if prompt_text.len() > 2 { "\x1b[?2004l\r" } else { "" };
        bench.out(1001, format!("go\r\n{off}").as_bytes());
        let mut ms = 1010;
        for piece in pieces {
            bench.out(ms, piece.as_bytes());
            ms += 2000;
        }
        bench.out(ms, prompt_text.as_bytes());
        let turns = bench.turns(ms + 2000);
        let told: Vec<_> = turns.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(told, wanted, "{prompt_text:?} {pieces:?}");
        assert!(turns.iter().all(|t| t.input == "go"));
        assert_eq!(bench.detector.answered(), 1);
        // What is typed then is a turn of its own.
        bench.type_in(ms + 3000, b"two\r");
        bench.out(ms + 3001, format!("two\r\n{off}well\r\n{prompt_text}").as_bytes());
        let next = bench.turns(ms + 6000);
        let told: Vec<_> = next.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
        assert_eq!(told, [("two", "well\n")], "{prompt_text:?} {pieces:?}");
    }
}

/// Python's prompt in the output of a program that has a line editor ended the answer at once.
#[test]
fn a_prompt_without_the_usual_line_editor_is_not_believed_at_once() {
    let mut text = prompt("^>>> $");
    text.prompts[0].strict = true;
    let mut bench = Bench::new(&text, Limits::default());
    bench.out(0, b"\x1b[?2004h>>> ");
    bench.type_in(1000, b"go()\r");
    bench.out(1001, b"go()\r\n\x1b[?2004l\r>>> ");
    assert_eq!(bench.turns(2000).len(), 0);
    assert!(!bench.detector.is_ready());
    bench.out(2100, b"real\r\n\x1b[?2004h>>> ");
    let turns = bench.turns(3000);
    assert_eq!(turns.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), [">>> real\n"]);
}

#[test]
fn a_plain_shell_within_one_with_a_line_editor_comes_to_rest() {
    let mut bench = Bench::new(&prompt(r"^[$%] $"), Limits::default());
    bench.out(0, b"\x1b[?2004h% ");
    bench.type_in(1000, b"dash\r");
    bench.out(1001, b"dash\r\n\x1b[?2004l\r$ ");
    assert_eq!(bench.turns(1500).len(), 0);
    assert_ne!(bench.detector.judgement().state, AgentState::Idle, "a line editor may still come");
    bench.notices(4000);
    assert_eq!(bench.detector.judgement().state, AgentState::Idle);
    bench.type_in(5000, b"echo hi\r");
    bench.out(5001, b"echo hi\r\nhi\r\n$ ");
    let turns = bench.turns(5500);
    assert_eq!(turns.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), ["hi\n"]);
}

#[test]
fn what_arrives_long_after_its_time_is_seen_all_the_same() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    bench.type_in(200, b"yes\r");
    bench.out(210, b"yes\r\n");
    // The screen is looked at between two pieces that were read in one turn.
    assert_eq!(bench.turns(300).len(), 0);
    bench.out(210, b"well\r\n$ ");
    let turns = bench.turns(300);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].text, "well\n");
}

#[test]
fn a_nested_program_that_is_known_before_the_outer_one_has_made_room_is_judged_by_its_own_prompt() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"\x1b[?2004h$ ");
    bench.type_in(200, b"parrot\r");
    bench.out(201, b"parrot");
    // The processes tell which program is there; the terminal still shows the outer one at its line
    // editor.
    bench.detector.advance(&bench.term, at(300));
    bench.detector.set_nested(Some(rules(&prompt("^parrot> $"))), &bench.term, at(300));
    bench.out(310, b"\r\n\x1b[?2004l\rparrot> ");
    assert_eq!(bench.turns(400).len(), 0);
    assert_eq!(bench.detector.prompt(), Some("parrot> "));
    bench.type_in(500, b"one\r");
    bench.out(510, b"one\r\none one\r\nparrot> ");
    let turns = bench.turns(600);
    assert_eq!(turns.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), ["one one\n"]);
}

#[test]
fn what_stands_in_the_input_field_has_not_been_taken_however_long_ago_it_was_submitted() {
    let state = |name: &str, state, row: &str| StateText {
        name: name.into(),
        state,
        screen: vec![row.into()],
        ..StateText::default()
    };
    let text = RuleText {
        name: "agent".into(),
        by_state: true,
        settle: Some(Duration::from_millis(300)),
        answer_within: Some(Duration::from_secs(3)),
        frame: Some("^› ?".into()),
        echo: Some("^› ".into()),
        states: vec![
            state("at work", AgentState::Working, "^working"),
            state("prompt", AgentState::Idle, "^› ?"),
        ],
        ..RuleText::default()
    };
    // What is asked, whether it is drawn as a placeholder, and what comes above the prompt once it
    // is taken.
    let long = "one\r".repeat(400);
    for (asked, shown) in
        [("hi", "hi"), ("a question of some length", "a question of some length"), (&long, "[Pasted]")]
    {
        let text = RuleText { placeholder: Some(r"\[Pasted\]".into()), ..text.clone() };
        let mut bench = Bench::new(&text, Limits::default());
        bench.out(0, "\x1b[?2004h\x1b[10H› ".as_bytes());
        assert_eq!(bench.turns(1000).len(), 0);
        assert!(bench.detector.is_ready());
        bench.type_in(1000, format!("\x1b[200~{asked}\x1b[201~").as_bytes());
        bench.out(1010, shown.as_bytes());
        bench.type_in(1200, b"\r");
        // It hears nothing for a while.
        assert_eq!(bench.turns(10_000).len(), 0, "{shown}");
        assert_eq!(bench.detector.judgement().state, AgentState::Idle);
        assert_eq!(bench.detector.answered(), 0);
        assert!(!bench.detector.has_taken() && bench.detector.is_standing(&bench.term), "{shown}");
        // Then it takes it, and answers.
        bench.out(10_000, format!("\x1b[H\x1b[J› {shown}\r\n\r\nworking\x1b[10H› ").as_bytes());
        bench.detector.advance(&bench.term, at(10_400));
        assert!(bench.detector.has_taken() && !bench.detector.is_standing(&bench.term), "{shown}");
        bench.out(11_000, "\x1b[3H\x1b[Kwell\x1b[10;3H".as_bytes());
        let turns = bench.turns(12_000);
        assert_eq!(turns.len(), 1, "{shown}");
        assert_eq!(turns[0].text, "well\n", "{shown}");
    }
}

/// Rules of an agent with a screen, a status file and a transcript.
fn agent_with_journals() -> RuleText {
    let state = |name: &str, state, row: &str, stands| StateText {
        name: name.into(),
        state,
        screen: vec![row.into()],
        stands,
        ..StateText::default()
    };
    let said = JournalRecord { said: vec!["text".into()], ..JournalRecord::default() };
    let transcript =
        Journal { name: "transcript".into(), lines: true, records: vec![said], ..Journal::default() };
    RuleText {
        name: "agent".into(),
        by_state: true,
        settle: Some(Duration::from_millis(300)),
        answer_within: Some(Duration::from_secs(3)),
        frame: Some("^› ?".into()),
        echo: Some("^› ".into()),
        states: vec![
            state("question", AgentState::Blocked, "^Allow", Some(Duration::from_millis(250))),
            state("at work", AgentState::Working, "^working", None),
            state("prompt", AgentState::Idle, "^› ?", None),
        ],
        journals: vec![transcript],
        ..RuleText::default()
    }
}

impl Bench {
    fn report(&mut self, ms: u64, file: u64, sure: bool, what: Reported) {
        self.detector.advance(&self.term, at(ms));
        let report = Report {
            source: "journal".into(),
            file,
            sure,
            conversation: None,
            at: WallTime::from_millis(ms),
            what,
        };
        self.detector.report(&self.term, report, at(ms));
    }

    fn state(&mut self, ms: u64) -> (AgentState, Evidence) {
        self.detector.advance(&self.term, at(ms));
        (self.detector.judgement().state, self.detector.judgement().evidence)
    }
}

fn working() -> Reported {
    Reported::State(AgentState::Working, String::new())
}

fn idle() -> Reported {
    Reported::State(AgentState::Idle, String::new())
}

#[test]
fn a_journal_is_believed_above_a_screen_that_shows_rest() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    bench.out(0, "\x1b[?1049h\x1b[10H› ".as_bytes());
    bench.report(100, 1, true, idle());
    assert_eq!(bench.state(500), (AgentState::Idle, Evidence::Journal));
    bench.type_in(1000, b"why?\r");
    assert_eq!(bench.state(1001), (AgentState::Working, Evidence::Input));
    // An idle word from before the prompt says nothing about it.
    let old = Report { at: WallTime::from_millis(999), ..report_of(idle()) };
    bench.detector.report(&bench.term, old, at(1010));
    assert_eq!(bench.state(1011).0, AgentState::Working);
    bench.report(1020, 1, true, working());
    bench.report(1030, 2, true, Reported::Asked("why?".into()));
    // The screen shows the question, something like an answer and the prompt for a long time.
    bench.out(1100, "\x1b[H\x1b[J› why?\r\n\r\nReading\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(9000), (AgentState::Working, Evidence::Journal));
    assert_eq!(bench.detector.judgement().against[0].state, AgentState::Idle);
    // A question counts when it has stood for a while, and what it interrupts is not over.
    bench.out(9000, "\x1b[5HAllow it?".as_bytes());
    assert_eq!(bench.state(9200).0, AgentState::Working);
    assert_eq!(bench.state(9300), (AgentState::Blocked, Evidence::Screen));
    bench.out(9400, "\x1b[5H\x1b[K".as_bytes());
    assert_eq!(bench.state(9600), (AgentState::Working, Evidence::Journal));
    // The answer is the journal's, however little of it the screen shows.
    let answer: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    bench.report(9700, 2, true, Reported::Said(answer.clone()));
    bench.report(9710, 1, true, idle());
    assert_eq!(bench.turns(9750).len(), 0, "the transcript may not have all of it yet");
    bench.report(9800, 2, true, Reported::Said("and that is all".into()));
    bench.report(9800, 2, true, Reported::Ended(false));
    let turns = bench.turns(9810);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].text, format!("{}\n\nand that is all\n", answer.trim_end()));
    assert_eq!((turns[0].input.as_str(), turns[0].truncated), ("why?", false));
    assert_eq!(bench.state(9811), (AgentState::Idle, Evidence::Journal));
}

/// A journal that tells of the end and never of the text is no evidence for what the screen shows.
#[test]
fn an_answer_is_told_with_the_source_of_its_text() {
    for has_text in [false, true] {
        let mut bench = Bench::new(&agent_with_journals(), Limits::default());
        bench.out(0, "\x1b[?1049h\x1b[10H› ".as_bytes());
        bench.report(100, 1, true, idle());
        assert_eq!(bench.state(500), (AgentState::Idle, Evidence::Journal));
        bench.type_in(1000, b"why?\r");
        bench.report(1020, 1, true, working());
        bench.report(1030, 2, true, Reported::Asked("why?".into()));
        bench.out(1100, "\x1b[H\x1b[J› why?\r\n\r\nas shown\x1b[10H› ".as_bytes());
        if has_text {
            bench.report(2000, 2, true, Reported::Said("as written".into()));
            bench.report(2000, 2, true, Reported::Ended(false));
        }
        bench.report(2010, 1, true, idle());
        let turns = bench.turns(4000);
        assert_eq!(bench.state(4001), (AgentState::Idle, Evidence::Journal));
        let expected =
            if has_text { ("as written\n", Evidence::Journal) } else { ("as shown\n", Evidence::Screen) };
        assert_eq!((turns[0].text.as_str(), turns[0].evidence), expected);
    }
}

fn report_of(what: Reported) -> Report {
    Report { source: "journal".into(), file: 1, sure: true, conversation: None, at: WallTime::ZERO, what }
}

#[test]
fn a_journal_that_could_be_of_another_session_must_have_the_prompt() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    bench.out(0, "\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(1000).0, AgentState::Idle);
    bench.type_in(2000, "\x1b[200~cafe\u{301} au  lait\x1b[201~\r".as_bytes());
    bench.report(2100, 1, false, Reported::Asked("something else".into()));
    bench.report(2110, 1, false, Reported::Said("no answer to this".into()));
    bench.report(2120, 1, false, Reported::Ended(false));
    bench.report(2130, 1, false, idle());
    assert_eq!(bench.state(2200), (AgentState::Working, Evidence::Input));
    bench.report(2300, 2, false, Reported::Asked("caf\u{e9} au lait".into()));
    assert!(bench.detector.has_taken());
    bench.report(2310, 2, false, Reported::Said("one moment".into()));
    bench.report(2320, 2, false, Reported::Ended(true));
    bench.report(2320, 2, false, idle());
    let turns = bench.turns(2400);
    assert_eq!(turns.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), ["one moment\n"]);
    assert!(turns[0].interrupted);
    // The file is known now, whatever is asked next.
    bench.report(3000, 2, false, Reported::Asked("typed elsewhere".into()));
    bench.report(3010, 2, false, Reported::Said("yes".into()));
    bench.report(3020, 2, false, Reported::Ended(false));
    bench.report(3020, 2, false, idle());
    assert_eq!(bench.turns(3100)[0].input, "typed elsewhere");
}

/// The digit that answered a dialog at the start counted as the beginning of the first prompt,
/// whose turn was lost.
#[test]
fn what_answers_a_dialog_is_no_beginning_of_a_prompt() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    for start in [0, 10_000] {
        bench.out(start, "\x1b[2J\x1b[HAllow it?".as_bytes());
        assert_eq!(bench.state(start + 500).0, AgentState::Blocked);
        bench.type_in(start + 600, b"1");
        bench.out(start + 700, "\x1b[2J\x1b[10H› ".as_bytes());
        assert_eq!(bench.state(start + 2000).0, AgentState::Idle);
        bench.type_in(start + 2100, b"\x1b[200~why?\x1b[201~\r");
        let file = start + 1;
        bench.report(start + 2200, file, false, Reported::Asked("why?".into()));
        assert!(bench.detector.has_taken(), "{start}");
        bench.report(start + 2300, file, false, Reported::Said("so".into()));
        bench.report(start + 2300, file, false, Reported::Ended(false));
        bench.report(start + 2300, file, false, idle());
        assert_eq!(bench.turns(start + 2400)[0].text, "so\n");
    }
}

#[test]
fn a_prompt_whose_submission_was_not_noticed_is_a_turn_of_its_own() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    // Typed before the screen told of a prompt; the journal is read late.
    bench.type_in(10, b"first\r");
    bench.out(20, "\x1b[10H› ".as_bytes());
    bench.report(30, 1, true, idle());
    let asked = Report { at: WallTime::from_millis(100), ..report_of(Reported::Asked("first".into())) };
    let over = Report { at: WallTime::from_millis(150), ..report_of(idle()) };
    let said = |what| Report { at: WallTime::from_millis(150), ..report_of(what) };
    for report in [asked, said(Reported::Said("one".into())), said(Reported::Ended(false)), over] {
        bench.detector.report(&bench.term, report, at(400));
    }
    bench.type_in(500, b"second\r");
    bench.report(510, 1, true, Reported::Asked("second".into()));
    bench.report(520, 1, true, Reported::Said("two".into()));
    bench.report(530, 1, true, Reported::Ended(false));
    bench.report(530, 1, true, idle());
    let turns = bench.turns(600);
    let told: Vec<(&str, &str)> = turns.iter().map(|t| (t.input.as_str(), t.text.as_str())).collect();
    assert_eq!(told, [("first", "one\n"), ("second", "two\n")]);
}

#[test]
fn a_journal_that_stopped_is_believed_no_longer_than_a_silent_prompt_allows() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    bench.out(0, "\x1b[10H› ".as_bytes());
    bench.report(1000, 1, true, working());
    assert_eq!(bench.state(9000).0, AgentState::Working);
    assert_eq!(bench.state(12_000), (AgentState::Idle, Evidence::Screen));
    assert_eq!(bench.detector.judgement().against[0].evidence, Evidence::Journal);
}

#[test]
fn a_short_answer_without_a_sign_of_work_is_over_when_it_has_settled() {
    let mut bench =
        Bench::new(&RuleText { journals: Vec::new(), ..agent_with_journals() }, Limits::default());
    bench.out(0, "\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(1000).0, AgentState::Idle);
    bench.type_in(2000, b"hi\r");
    bench.out(2050, "\x1b[H\x1b[J› hi\r\n\r\nhello\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(2200).0, AgentState::Working);
    assert_eq!(bench.turns(2500).iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), ["hello\n"]);
    assert_eq!(bench.state(2501).0, AgentState::Idle);
}

#[test]
fn time_alone_ends_nothing_unless_a_rule_says_so() {
    for (quiet, wanted) in [(None, 0), (Some(Duration::from_secs(5)), 1)] {
        let mut bench = Bench::new(&RuleText { quiet, ..prompt(r"^\$ $") }, Limits::default());
        bench.out(0, b"$ ");
        bench.type_in(100, b"cat\r");
        bench.out(110, b"cat\r\nhello\r\n");
        assert_eq!(bench.turns(4000).len(), 0);
        assert_eq!(bench.turns(3_600_000).len(), wanted);
    }
}

#[test]
fn without_a_prompt_there_is_no_turn_and_an_end_is_none() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"hello\r\n");
    bench.type_in(100, b"x\r");
    bench.out(110, b"x\r\ny\r\n");
    bench.detector.exit(Exit::Code(3), at(200));
    let notices = bench.notices(1000);
    assert!(matches!(notices.as_slice(), [Notice::State(j)] if j.state == AgentState::Done), "{notices:?}");
}

#[test]
fn a_signal_interrupts_as_the_key_does() {
    let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default());
    bench.out(0, b"$ ");
    bench.type_in(100, b"sleep 9\r");
    bench.out(110, b"sleep 9\r\n");
    bench.detector.advance(&bench.term, at(500));
    bench.detector.signal(2);
    bench.out(510, b"\r\n$ ");
    let turns = bench.turns(1000);
    assert!(turns.len() == 1 && turns[0].interrupted);
    // Ctrl-\ is a signal of the terminal, too.
    bench.type_in(2000, b"sleep 9\r");
    bench.out(2010, b"sleep 9\r\n");
    bench.type_in(2500, b"\x1c");
    bench.out(2510, b"^\\Quit (core dumped)\r\n$ ");
    let turns = bench.turns(3000);
    assert!(turns.len() == 1 && turns[0].interrupted);
    assert_eq!(turns[0].text, "Quit (core dumped)\n");
    // At a prompt it does nothing.
    bench.type_in(4000, b"echo \x1chi");
    bench.out(4001, b"echo hi");
    bench.type_in(4002, b"\r");
    bench.out(4010, b"\r\nhi\r\n$ ");
    let turns = bench.turns(5000);
    assert_eq!((turns[0].input.as_str(), turns[0].interrupted), ("echo hi", false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes, in whatever pieces: no panic, the same notices, and turns in order within
    /// the stream.
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_turns(
        events in prop::collection::vec((0u64..200, prop_oneof![
            Just((true, b"$ ".to_vec())),
            Just((true, b"\r\n$ ".to_vec())),
            Just((true, b"\x1b[?2004h$ ".to_vec())),
            Just((true, b"\x1b[?2004l\r".to_vec())),
            Just((true, b"\x1b]133;A\x07$ \x1b]133;B\x07".to_vec())),
            Just((true, b"\x1b]133;C\x07".to_vec())),
            Just((true, b"\x1b]133;D;0\x07".to_vec())),
            Just((true, b"\x1b[2J\x1b[H".to_vec())),
            Just((true, b"\x1b[?1049h".to_vec())),
            Just((true, b"\x1b[?1049l".to_vec())),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| (true, b)),
            Just((false, b"ls\r".to_vec())),
            Just((false, b"\x03".to_vec())),
            Just((false, b"\x1b[200~a\rb\x1b[201~\r".to_vec())),
        ]), 0..40),
        size in 1usize..7,
    ) {
        let run = |size: usize| {
            let mut bench = Bench::new(&prompt(r"^\$ $"), Limits::default().content(500));
            let mut ms = 0;
            for (later, (out, bytes)) in &events {
                ms += later;
                if *out {
                    bytes.chunks(size).for_each(|piece| bench.out(ms, piece));
                } else {
                    bench.type_in(ms, bytes);
                }
            }
            (bench.notices(ms + 10_000), bench.offset)
        };
        let (whole, offset) = run(usize::MAX);
        prop_assert_eq!(&run(size).0, &whole);
        let mut last = 0;
        for notice in whole {
            if let Notice::Completed(turn) = notice {
                prop_assert_eq!(turn.number, last + 1);
                prop_assert!(turn.start.byte <= turn.end.byte && turn.end.byte <= Offset(offset));
                last = turn.number;
            }
        }
    }
}

/// A dialog that came once the prompt had been there left its answer in front of the next question.
#[test]
fn a_key_that_answers_a_dialog_is_no_part_of_the_next_question() {
    let mut bench = Bench::new(&agent_with_journals(), Limits::default());
    bench.out(0, "\x1b[?2004h\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(1000).0, AgentState::Idle);
    bench.out(1100, b"\x1b[H\x1b[JAllow it?");
    assert_eq!(bench.state(2000).0, AgentState::Blocked);
    bench.type_in(2100, b"1");
    bench.out(2200, "\x1b[H\x1b[J\x1b[10H› ".as_bytes());
    assert_eq!(bench.state(3000).0, AgentState::Idle);
    bench.type_in(3100, b"well?");
    bench.out(3200, b"well?");
    bench.type_in(3300, b"\r");
    bench.out(3400, "\x1b[H\x1b[J› well?\r\n\r\nworking\x1b[10H› ".as_bytes());
    bench.detector.advance(&bench.term, at(3500));
    bench.out(4000, "\x1b[3H\x1b[Kyes\x1b[10;3H".as_bytes());
    let turns = bench.turns(8000);
    assert_eq!(turns.iter().map(|t| t.input.as_str()).collect::<Vec<_>>(), ["well?"]);
}

/// What decided a question was lost: only its rows were kept.
#[test]
fn a_question_is_told_with_the_option_that_the_keys_chose() {
    let blocked = StateText {
        name: "question".into(),
        state: AgentState::Blocked,
        screen: vec![r"^❯ \d".into()],
        ..StateText::default()
    };
    let text = RuleText { name: "test".into(), by_state: true, states: vec![blocked], ..RuleText::default() };
    let dialog = |marked: usize| {
        let options = ["1. Yes", "2. Yes, always", "3. No (esc)"];
        let row = |(i, label)| format!("{} {label}\r\n", if i == marked { "❯" } else { " " });
        let rows: String = options.iter().enumerate().map(row).collect();
        format!("\x1b[H\x1b[JMay it?\r\n\r\n{rows}\r\nEsc to cancel")
    };
    // What is typed, which option is marked then, and what that means.
    type Case<'a> = (&'a [(&'a [u8], usize)], Option<Answered>);
    let cases: [Case<'_>; 7] = [
        (&[(b"3", 0)], Some(Answered::Option(2))),
        (&[(b"\r", 0)], Some(Answered::Option(0))),
        (&[(b"\x1b[B", 0), (b"\r", 1)], Some(Answered::Option(1))),
        (&[(b"\x1b[B\x1b[B\x1b[13u", 0)], Some(Answered::Option(2))),
        (&[(b"\x1b", 0)], Some(Answered::Option(2))),
        (&[(b"x", 0)], None),
        (&[], None),
    ];
    for (keys, wanted) in cases {
        let mut bench = Bench::new(&text, Limits::default());
        let by = Party { name: "ada".into(), role: crate::stick::Role::Human };
        let mut ms = 0;
        for (bytes, marked) in keys {
            bench.out(ms, dialog(*marked).as_bytes());
            bench.detector.advance(&bench.term, at(ms + 500));
            bench.detector.input(&bench.term, bytes, Some(&by), at(ms + 500));
            ms += 600;
        }
        if keys.is_empty() {
            bench.out(ms, dialog(0).as_bytes());
        }
        bench.detector.advance(&bench.term, at(ms + 500));
        bench.out(ms + 600, b"\x1b[H\x1b[Jdone");
        let decided: Vec<Arc<Decision>> = bench
            .notices(ms + 2000)
            .into_iter()
            .filter_map(|n| if let Notice::Decided(decision) = n { Some(decision) } else { None })
            .collect();
        assert_eq!(decided.len(), 1, "{keys:?}");
        assert_eq!(
            (decided[0].dialog.question.as_str(), &decided[0].answer),
            ("May it?", &wanted),
            "{keys:?}"
        );
        assert_eq!(decided[0].by, wanted.map(|_| by), "{keys:?}");
    }
}
