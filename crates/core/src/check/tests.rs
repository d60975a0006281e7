//! Checks judged on small timelines, each with what must hold and what must not.

use core::time::Duration;

use bytes::Bytes;
use tapdeck_term::Size;

use super::*;
use crate::event::Exit;
use crate::log::Seq;
use crate::time::Time;

/// A timeline from moments, at these times.
fn timeline(end_ms: u64, moments: &[(u64, What)]) -> Timeline {
    let at = |i: usize, ms| Pos { time: Time::from_millis(ms), seq: Seq(i as u64 + 1) };
    let moments: Vec<_> = moments
        .iter()
        .enumerate()
        .map(|(i, (t, what))| Moment { at: at(i, *t), what: what.clone() })
        .collect();
    let end = End {
        at: at(moments.len(), end_ms),
        exit: Some(Exit::Code(0)),
        eof: Some(true),
        leaked: Some(0),
        ..End::default()
    };
    Timeline { size: Size::new(20, 4), moments, end, ..Timeline::default() }
}

fn out(text: &'static str) -> What {
    What::Output(Bytes::from_static(text.as_bytes()))
}

fn key(name: &str, bytes: &'static str) -> What {
    What::Input(Input {
        bytes: Bytes::from_static(bytes.as_bytes()),
        key: Some(name.into()),
        ..Input::default()
    })
}

fn contains(text: &str) -> Condition {
    Condition { facts: vec![Fact::Contains(text.into())], ..Condition::default() }
}

fn matches(text: &str) -> Condition {
    Condition { facts: vec![Fact::Matches(pattern(text).expect("a pattern"))], ..Condition::default() }
}

fn window(from: &str, to: &str) -> Window {
    let point = |p: &str| (!p.is_empty()).then(|| p.parse().expect("a point"));
    Window { from: point(from), to: point(to) }
}

/// A question, an answer a second later, a screen that goes on for another two.
fn dialogue() -> Timeline {
    timeline(
        3000,
        &[
            (0, out("\x1b]2;ask\x07name? ")),
            (500, key("Enter", "\r")),
            (500, What::Mark("asked".into())),
            (1000, out("\r\nhel")),
            (1000, out("lo\x1b[")),
            (1200, What::Resize(Size::new(30, 5))),
            (1200, out("1m!\x07")),
            (1500, What::Signal("INT".into())),
        ],
    )
}

#[track_caller]
fn check(t: &Timeline, claim: Claim, holds: bool) {
    let verdict = evaluate(t, std::slice::from_ref(&claim)).pop().expect("one answer");
    assert_eq!(verdict.is_ok(), holds, "{claim}: {verdict:?}");
}

#[test]
fn at_a_time_is_the_state_at_that_time() {
    let t = dialogue();
    for (point, text, holds) in [
        ("0s", "name?", true),
        ("999ms", "hello", false),
        ("999ms", "name?", true),
        ("1s", "hello", true),
        ("1.1s", "hello!", false),
        ("1.2s", "hello!", true),
        ("@asked", "hello", false),
        ("@asked+500ms", "hello", true),
        ("@end", "hello!", true),
        ("@nowhere", "hello!", false),
        ("4s", "hello!", false),
        // Before the beginning there is nothing to hold.
        ("@asked-500ms", "name?", true),
        ("@asked-501ms", "name?", false),
        ("@start-5s", "name?", false),
        ("@end-100s", "name?", false),
    ] {
        check(&t, Claim::At(point.parse().expect(point), contains(text)), holds);
    }
}

#[test]
fn windows_begin_with_what_is_on_the_screen() {
    let t = dialogue();
    for (from, to, text, ever) in [
        ("0s", "900ms", "hello", false),
        ("0s", "1s", "hello", true),
        ("2s", "2.5s", "hello!", true),
        ("", "", "hello!", true),
        ("@asked", "@end", "hello", true),
        ("0s", "@asked", "hello", false),
        ("1s", "1s", "hel", true),
    ] {
        check(&t, Claim::Eventually(window(from, to), contains(text)), ever);
        check(&t, Claim::Never(window(from, to), contains(text)), !ever);
    }
    check(&t, Claim::Always(window("1s", ""), contains("hel")), true);
    check(&t, Claim::Always(window("900ms", ""), contains("hel")), false);
    // Half a word was there for a moment: `never` must see it, though no time shows it.
    let lacks = Condition {
        facts: vec![Fact::Lacks("hello".into()), Fact::Contains("hel".into())],
        ..Condition::default()
    };
    check(&t, Claim::Eventually(Window::default(), lacks), true);
    check(&t, Claim::Never(window("2s", "1s"), contains("x")), false);
}

#[test]
fn stable_counts_the_frame_already_there() {
    let t = dialogue();
    for (ms, from, to, text, holds) in [
        (1000, "", "", "name?", true),
        (1000, "200ms", "", "name?", true),
        (1000, "0s", "900ms", "", false),
        (500, "2s", "2.5s", "", true),
        (600, "2s", "2.5s", "", false),
        (1800, "", "", "hello!", true),
        (1900, "", "", "hello!", false),
        (1000, "@asked", "1.2s", "", false),
    ] {
        let condition = if text.is_empty() { Condition::default() } else { contains(text) };
        check(&t, Claim::StableFor(Duration::from_millis(ms), window(from, to), condition), holds);
    }
}

/// Where no screen is, and where no text is known, nothing can be said to be absent.
#[test]
fn what_cannot_be_seen_is_not_absent() {
    let t = dialogue();
    let region = |top, left| Region { top, bottom: top, left, right: left };
    let looking = |region, fact| Condition { look: Look { region, ..Look::default() }, facts: vec![fact] };
    let style = |row, col, width| {
        let cells = Cells::At(Spot { row, col, width });
        Fact::Style(StyleFact { cells, fg: None, bg: None, attrs: Vec::new(), underline: None, link: None })
    };
    let cursor = |row| Fact::Cursor { row: Some(row), col: None, visible: None, shape: None };
    let unread = || Fact::Unread { file: "x.txt".into(), why: "no such file".into(), styled: false };
    // It is 20x4 at first and 30x5 in the end.
    for (condition, at_first, in_the_end) in [
        (looking(region(4, 0), Fact::Blank), false, true),
        (looking(region(5, 0), Fact::Blank), false, false),
        (looking(region(3, 20), Fact::Lacks("x".into())), false, true),
        (looking(region(3, 30), Fact::Lacks("x".into())), false, false),
        (looking(Region::ALL, style(3, 17, 3)), true, true),
        (looking(Region::ALL, style(3, 18, 3)), false, true),
        (looking(Region::ALL, style(4, 28, 3)), false, false),
        (looking(Region::ALL, unread()), false, false),
    ] {
        check(&t, Claim::At(Point::after_start(Duration::from_millis(0)), condition.clone()), at_first);
        check(&t, Claim::At("@end".parse().expect("a point"), condition), in_the_end);
    }
    check(&t, Claim::Never(Window::default(), looking(Region::ALL, cursor(5))), false);
    check(&t, Claim::Never(Window::default(), looking(Region::ALL, cursor(4))), true);
    check(&t, Claim::Never(Window::default(), looking(Region::ALL, unread())), false);
    check(
        &t,
        Claim::StableFor(Duration::from_millis(100), Window::default(), looking(Region::ALL, unread())),
        false,
    );
    let blank = timeline(100, &[(0, out(" "))]);
    check(&blank, Claim::Always(Window::default(), looking(Region::ALL, unread())), false);
}

#[test]
fn states() {
    let t = dialogue();
    let at = |point: &str, fact: Fact, holds: bool| {
        let condition = Condition { facts: vec![fact], ..Condition::default() };
        check(&t, Claim::At(point.parse().expect(point), condition), holds);
    };
    let cursor = |row, col| Fact::Cursor { row: Some(row), col: Some(col), visible: Some(true), shape: None };
    at("0s", cursor(0, 6), true);
    at("@end", cursor(1, 6), true);
    at("@end", cursor(1, 5), false);
    at("1s", Fact::Size(Size::new(20, 4)), true);
    at("@end", Fact::Size(Size::new(30, 5)), true);
    at("@end", Fact::Title(TextTest::Is("ask".into())), true);
    at("@end", Fact::Alternate(false), true);
    at("@end", Fact::Mode("wrap".parse().expect("known"), true), true);
    at("@end", Fact::Mode("?2004".parse().expect("known"), true), false);
    at("@end", Fact::Equals { text: "name?\nhello!\n".into(), file: None }, true);
    at("@end", Fact::Equals { text: "name?\nhallo!".into(), file: None }, false);
    at("@end", Fact::Scrolled { min: Some(1), max: None }, false);
    let bold = |text: &str, on: bool| {
        let attrs = vec![("bold".parse().expect("known"), on)];
        let cells = Cells::Text(text.into());
        Fact::Style(StyleFact { cells, fg: None, bg: None, attrs, underline: None, link: None })
    };
    at("@end", bold("!", true), true);
    at("@end", bold("o!", true), false);
    at("@end", bold("hello", false), true);
}

#[test]
fn what_happened() {
    let t = dialogue();
    let order = |list: Vec<Happening>| Trace::Order(list);
    let output = |s: &str| Happening::Output(s.as_bytes().to_vec());
    let delay = |from, to, min, max| Trace::Delay { from, to, ms: Count { min, max } };
    for (trace, holds) in [
        (order(vec![output("name"), Happening::Key("Enter".into()), output("hello"), Happening::End]), true),
        (order(vec![output("hello"), Happening::Key("Enter".into())]), false),
        (order(vec![output("\x1b["), Happening::Resize(Size::new(30, 5)), output("1m!")]), true),
        (order(vec![output("na"), output("me")]), true),
        (order(vec![output("me"), output("na")]), false),
        (order(vec![Happening::Shows("hello!".into()), Happening::Signal("INT".into())]), true),
        (order(vec![Happening::Mark("asked".into()), Happening::Shows("hello".into())]), true),
        // What still stands there has not come.
        (order(vec![Happening::Shows("hello".into()), Happening::Shows("name".into())]), false),
        (order(vec![Happening::Shows("name".into()), Happening::Shows("hello".into())]), true),
        (delay(Happening::Key("Enter".into()), output("hel"), Some(500), Some(500)), true),
        (delay(Happening::Key("Enter".into()), output("hel"), Some(501), None), false),
        (delay(Happening::Start, Happening::End, Some(3000), None), true),
        (Trace::Gap(Count { min: None, max: Some(1000) }), true),
        (Trace::Gap(Count { min: None, max: Some(999) }), false),
        (Trace::Chunks(Count::exactly(4)), true),
        (Trace::SplitEscapes(Count::exactly(1)), true),
        (Trace::SplitCharacters(Count::exactly(0)), true),
        (Trace::Bells(Count::exactly(1)), true),
        (Trace::Bells(Count::exactly(2)), false),
        (Trace::Keys(vec!["Enter".into()]), true),
        (Trace::Input(BytesTest::Is(b"\r".to_vec())), true),
        (Trace::Input(BytesTest::Is(b"\n".to_vec())), false),
        (Trace::Signals(vec!["INT".into()]), true),
        (Trace::Signals(vec![]), false),
        (Trace::Resizes(vec![Size::new(30, 5)]), true),
        (Trace::Output(BytesTest::Contains(b"hello\x1b[1m".to_vec())), true),
        (Trace::Exit(ExitTest::Is(Exit::Code(0))), true),
        (Trace::Exit(ExitTest::Failure), false),
        (Trace::Ended(Cause::Program), true),
        (Trace::Eof(true), true),
        (Trace::Leaked(Count::exactly(0)), true),
    ] {
        check(&t, Claim::Trace(Window::default(), trace), holds);
    }
    check(&t, Claim::Trace(window("", "900ms"), Trace::Chunks(Count::exactly(1))), true);
}

#[test]
fn pastes_answers_and_service_events() {
    let input = |bytes: &'static [u8], paste, reply| {
        What::Input(Input { bytes: Bytes::from_static(bytes), key: None, paste, reply })
    };
    let event =
        Json::Map(vec![("type".into(), Json::Text("final".into())), ("cost".into(), Json::Number(0.5))]);
    let t = timeline(
        100,
        &[
            (0, out("\x1b[?2004h\x1b[?2004$p\x1b]52;c;aGk=\x07")),
            (10, input(b"\x1b[?2004;1$y", false, true)),
            (20, input(b"\x1b[200~one\rtw", true, false)),
            (20, input(b"o\x1b[201~", true, false)),
            (30, input(b"x", false, false)),
            (40, What::Service(event)),
        ],
    );
    let path = |p: &str| p.parse::<JsonPath>().expect(p);
    let is = |text: &str| JsonTest::Text(TextTest::Is(text.into()));
    let any = Count { min: Some(1), max: None };
    for (trace, holds) in [
        (Trace::Pastes(vec!["one\ntwo".into()]), true),
        (Trace::Pastes(vec!["one".into()]), false),
        (Trace::Input(BytesTest::Is(b"\x1b[200~one\rtwo\x1b[201~x".to_vec())), true),
        (Trace::Replies(BytesTest::Is(b"\x1b[?2004;1$y".to_vec())), true),
        (Trace::Clipboard(vec![("c".into(), "aGk=".into())]), true),
        (Trace::Service { path: path("$.type"), test: is("final"), count: any }, true),
        (Trace::Service { path: path("$.type"), test: is("start"), count: any }, false),
        (Trace::Service { path: path("warning"), test: JsonTest::Exists, count: Count::exactly(0) }, true),
        (Trace::Service { path: path("cost"), test: JsonTest::Is(Json::Number(0.5)), count: any }, true),
    ] {
        check(&t, Claim::Trace(Window::default(), trace), holds);
    }
}

/// A report that says only "no" sends its reader back to the recording.
#[test]
fn failures_say_where_and_when() {
    let t = dialogue();
    let verdict = |claim: Claim| evaluate(&t, &[claim]).pop().expect("one").expect_err("it fails");
    let early = verdict(Claim::At(Point::after_start(Duration::from_millis(900)), contains("hello")));
    assert!(early.message.contains("it does hold at 1s"), "{}", early.message);
    assert_eq!(early.shots.len(), 2);
    assert_eq!(early.shots[1].spots, [Spot { row: 1, col: 0, width: 5 }]);
    let seen = verdict(Claim::Never(Window::default(), contains("llo")));
    assert_eq!(seen.shots[0].spots, [Spot { row: 1, col: 2, width: 3 }]);
    let wrong = Condition {
        facts: vec![Fact::Equals { text: "name?\nhexlo!".into(), file: None }],
        ..Condition::default()
    };
    let differs = verdict(Claim::At(Point::from(Anchor::End), wrong));
    assert_eq!(differs.shots[0].spots, [Spot { row: 1, col: 2, width: 4 }]);
    assert!(differs.texts.is_some());
    let unknown = verdict(Claim::At(Point::mark("nowhere"), contains("x")));
    assert!(unknown.message.contains("asked"), "{}", unknown.message);
}

/// The screens that a claim saw, by their text.
fn holds(timeline: &Timeline, claim: Claim) -> bool {
    evaluate(timeline, &[claim])[0].is_ok()
}

/// What a program draws within a synchronised update is no screen before the update ends.
#[test]
fn half_drawn_screens_are_not_judged() {
    let t = timeline(
        3000,
        &[
            (0, out("old")),
            (500, out("\x1b[?2026h\x1b[H\x1b[Jha")),
            (600, What::Mark("half".into())),
            (700, out("lf\x1b[H\x1b[Jnew\x1b[?20")),
            (800, out("26l")),
        ],
    );
    let never = |text: &str| Claim::Never(Window::default(), contains(text));
    assert!(holds(&t, never("ha")) && holds(&t, Claim::Always(window("100ms", ""), matches("old|new"))));
    assert!(holds(&t, Claim::At("@half".parse().expect("a point"), contains("old"))));
    assert!(!holds(&t, Claim::At("750ms".parse().expect("a point"), contains("new"))));
    assert!(holds(&t, Claim::At("800ms".parse().expect("a point"), contains("new"))));
    let shows = |text: &str| Happening::Shows(text.into());
    let order = |list| Claim::Trace(Window::default(), Trace::Order(list));
    assert!(holds(&t, order(vec![shows("old"), Happening::Mark("half".into()), shows("new")])));
    assert!(!holds(&t, order(vec![shows("half")])));
    let stable = Claim::StableFor(Duration::from_millis(800), window("", "@end"), contains("old"));
    assert!(holds(&t, stable), "the old screen lasts until the new one is complete");
}

/// Two updates may arrive in one piece; the screen between them was shown.
#[test]
fn each_of_two_updates_is_a_screen() {
    let t =
        timeline(100, &[(0, out("\x1b[?2026hone\x1b[?2026l\x1b[?2026h\rtwo\x1b[?2026l\x1b[?2026h\rthr"))]);
    let eventually = |text: &str| Claim::Eventually(Window::default(), contains(text));
    assert!(holds(&t, eventually("one")) && holds(&t, eventually("two")));
    let last = Claim::At("@end".parse().expect("a point"), contains("thr"));
    assert!(holds(&t, last), "the end is judged as it is");
}

/// A program that never ends its update is seen after a second.
#[test]
fn an_update_without_an_end_is_bounded() {
    let t = timeline(
        5000,
        &[(1000, out("\x1b[?2026hstuck")), (3000, key("q", "q")), (4000, out(" more")), (4500, out("!"))],
    );
    let at = |when: &str, text: &str| Claim::At(when.parse().expect("a point"), contains(text));
    assert!(!holds(&t, at("1.9s", "stuck")) && holds(&t, at("2s", "stuck")) && holds(&t, at("4s", "more")));
    let order =
        vec![Happening::Shows("stuck".into()), Happening::Key("q".into()), Happening::Shows("!".into())];
    assert!(holds(&t, Claim::Trace(Window::default(), Trace::Order(order))));
}
