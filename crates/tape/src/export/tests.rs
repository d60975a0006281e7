use bytes::Bytes;

use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::{Size, Theme};

use super::branch::{BranchPoints, BranchRow, branch_points, final_lines};
use super::text::txt;
use super::*;
use crate::event::{Event, EventReader, Header, Item, Kind};
use crate::instruction::Instruction;
use crate::replay::Replay;
use crate::turns::{RecordedTurn, turns_of};

/// A session in memory.
struct Session {
    header: Header,
    events: std::vec::IntoIter<Event>,
}

impl EventReader for Session {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        Ok(self.events.next().map(Item::Event))
    }

    fn position(&self) -> u64 {
        0
    }
}

fn session(kinds: Vec<Kind>) -> Session {
    let header = Header {
        size: Some(Size::new(40, 6)),
        title: Some("</title><script>alert(1)</script>".to_owned()),
        started: Some(WallTime::from_nanos(1_000)),
        ..Header::default()
    };
    let events: Vec<Event> =
        (0..).zip(kinds).map(|(i, kind)| Event::new(Time::from_millis(200 * i), kind)).collect();
    Session { header, events: events.into_iter() }
}

fn out(text: &str) -> Kind {
    Kind::Output(Bytes::copy_from_slice(text.as_bytes()))
}

fn snapshot(id: u64, anchor: u64) -> Kind {
    Kind::Snapshot { id, anchor, label: format!("s{id}") }
}

fn rows_of(replay: &Replay) -> Vec<String> {
    rows_with(replay, &[])
}

fn rows_with(replay: &Replay, instructions: &[Instruction]) -> Vec<String> {
    let (turns, moments) = (replay.hidden_turns(), replay.moments());
    let points = BranchPoints { turns, instructions, ..BranchPoints::new(replay.term(), moments) };
    branch_points(&points)
        .map(|row| match row {
            BranchRow::Line(line) => line.text,
            BranchRow::Moment(m) => format!("<{}>", m.label),
            BranchRow::Instruction(i, line) => format!("<i{line}: {}>", i.text),
            BranchRow::Turn(turn) => format!("<turn {}: {} {}>", turn.number, turn.input, turn.text.trim()),
        })
        .collect()
}

fn text_of(export: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> String {
    let mut buf = Vec::new();
    export(&mut buf).unwrap();
    String::from_utf8(buf).unwrap()
}

#[test]
fn snapshots_stand_beside_the_line_in_work() {
    // A spinner rewrites its line, text scrolls away, and several snapshots share a place.
    let replay = Replay::to_end(
        &mut session(vec![
            snapshot(0, 0),
            out("one\r\n"),
            out("work |"),
            snapshot(1, 11),
            out("\rwork /"),
            snapshot(2, 18),
            snapshot(3, 18),
            out("\rdone  \r\n"),
            snapshot(4, 27),
            out("a\r\nb\r\nc\r\nd\r\ne\r\nf\r\nlast"),
            snapshot(5, 49),
        ]),
        100,
    )
    .unwrap();
    assert_eq!(
        rows_of(&replay),
        ["<s0>", "one", "<s1>", "<s2>", "<s3>", "done", "<s4>", "a", "b", "c", "d", "e", "f", "last", "<s5>"]
    );
}

#[test]
fn rows_under_the_alternate_screen_are_exported() {
    // The rows on the main screen were lost when the recording ended in the alternate screen.
    let events = || {
        session(vec![
            out("1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\nunder\r\n"),
            snapshot(1, 29),
            out("\x1b[?1049h\x1b[H\x1b[2Jover"),
        ])
    };
    let all = ["1", "2", "3", "4", "5", "6", "7", "under", "<s1>", "over"];
    let replay = Replay::to_end(&mut events(), 100).unwrap();
    assert_eq!(rows_of(&replay), all);
    for form in [LinesAs::Txt, LinesAs::Ansi, LinesAs::Md, LinesAs::Json, LinesAs::Csv] {
        let text = text_of(|out| lines(form, &mut events(), Vec::new(), 100, out));
        let [under, over] = ["under", "over"].map(|word| text.find(word));
        assert!(under.is_some() && under < over, "{form:?}: {text}");
    }
    let text = text_of(|out| lines(LinesAs::Txt, &mut events(), Vec::new(), 100, out));
    assert_eq!(text, "1\n2\n3\n4\n5\n6\n7\nunder\nover\n");
    // A screen that shows nothing leaves no blank rows.
    let mut cleared = session(vec![out("one\r\n\x1b[?1049h\x1b[H\x1b[2J")]);
    assert_eq!(rows_of(&Replay::to_end(&mut cleared, 100).unwrap()), ["one"]);
}

#[test]
fn a_marker_without_a_label_is_markdown() {
    // Four or two asterisks in a row stood in the text.
    let marked = || session(vec![out("one\r\n"), Kind::Marker(String::new()), out("two")]);
    let text = text_of(|out| lines(LinesAs::Md, &mut marked(), Vec::new(), 100, out));
    assert!(text.contains("**🔖 marker** ("), "{text}");
    let replay = Replay::to_end(&mut marked(), 100).unwrap();
    let table = text_of(|out| branch_md(&BranchPoints::new(replay.term(), replay.moments()), out));
    assert!(table.contains("| **🔖 marker** | **5** |  |"), "{table}");
}

#[test]
fn cursor_addressing_does_not_move_snapshots_away() {
    // The status line at the top is written last: a plain merge by position would put everything
    // before it, and the third snapshot would stand before the first.
    let text = "\x1b[2J\x1b[3;1Hbody one";
    let more = "\x1b[4;1Hbody two";
    let status = "\x1b[1;1Hstatus";
    let replay = Replay::to_end(
        &mut session(vec![
            out(text),
            snapshot(1, text.len() as u64),
            out(more),
            snapshot(2, (text.len() + more.len()) as u64),
            out(status),
            snapshot(3, (text.len() + more.len() + status.len()) as u64),
        ]),
        100,
    )
    .unwrap();
    assert_eq!(rows_of(&replay), ["status", "", "body one", "<s1>", "body two", "<s2>", "<s3>"]);
}

#[test]
fn the_final_lines_are_all_of_them() {
    // The first implementation printed the oldest screenful and dropped the rest.
    let text: String = (0..500).map(|i| format!("line {i}\r\n")).collect();
    let replay = Replay::to_end(&mut session(vec![out(&text)]), 1_000_000).unwrap();
    let lines: Vec<_> = final_lines(replay.term()).collect();
    assert_eq!(lines.len(), 500);
    assert_eq!((lines[499].idx, lines[499].text.as_str()), (499, "line 499"));
    let first = lines[0].last_write_byte.unwrap();
    assert!((5..8).contains(&first), "{first}");
    assert_eq!(text_of(|w| txt(&replay, w)).lines().count(), 500);
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</script><img src=x onerror=alert(1)> | =1+1 \u{202e}rtl\u{2028} & \"q\"\r\n=cmd()\r\n````\r\n\x1b]0;t\x07x";
    let kinds =
        || vec![out(evil), Kind::Marker("</script>=1 | ``` <b>".to_owned()), Kind::Exit(Exit::Code(0))];
    let replay = Replay::to_end(&mut session(kinds()), 100).unwrap();

    let page = text_of(|w| html(&mut session(kinds()), Annotations::default(), HtmlOptions::default(), w));
    assert!(!page.contains("<img") && !page.contains("<script>alert"), "{page}");
    assert_eq!(page.matches("</script>").count(), 4, "head, frames, tail and player");
    assert!(page.contains("default-src 'none'"));

    let picture = text_of(|w| svg_still(replay.term(), SvgOptions::default(), w));
    assert!(!picture.contains("<img") && picture.contains("&lt;img"), "{picture}");
    let still = text_of(|w| html_still(replay.term(), Theme::default(), w));
    assert!(!still.contains("<img") && still.contains("&lt;img"), "{still}");
    let film = text_of(|w| svg_animated(&mut session(kinds()), SvgOptions::default(), w).map(drop));
    assert!(!film.contains("<img") && film.contains("&lt;img"), "{film}");

    let table = text_of(|w| branch_csv(&BranchPoints::new(replay.term(), replay.moments()), w));
    assert!(table.contains(",\"'=cmd()\""), "{table}");
    let list = text_of(|w| branch_md(&BranchPoints::new(replay.term(), replay.moments()), w));
    assert!(!list.contains("<img") && list.lines().all(|l| l.starts_with('|') && l.ends_with('|')), "{list}");
    let as_lines = |form| text_of(|w| lines(form, &mut session(kinds()), Vec::new(), 100, w));
    let transcript = as_lines(LinesAs::Md);
    assert!(transcript.contains("\n`````text\n"), "{transcript}");
    for export in [page, still, table, list, transcript, text_of(|w| txt(&replay, w))] {
        assert!(!export.contains(['\u{202e}', '\u{2028}', '\x1b', '\x07']), "{export}");
    }
    let object: serde_json::Value = serde_json::from_str(&as_lines(LinesAs::Json)).unwrap();
    assert_eq!(object["exit"]["code"], 0);
    assert!(object["lines"].as_array().unwrap().iter().any(|l| l["text"] == "=cmd()"));
    let merged: serde_json::Value = serde_json::from_str(&text_of(|w| {
        branch_json(&BranchPoints::new(replay.term(), replay.moments()), w)
    }))
    .unwrap();
    assert_eq!(merged[merged.as_array().unwrap().len() - 1]["kind"], "marker");
}

#[test]
fn only_links_to_the_web_can_be_followed() {
    let text = "\x1b]8;;https://e.x/</script>\x1b\\here\x1b]8;;javascript:a()\x1b\\there\x1b]8;;https://\u{202e}\x1b\\else";
    let page =
        text_of(|w| html(&mut session(vec![out(text)]), Annotations::default(), HtmlOptions::default(), w));
    assert!(page.contains(r#"[["","","","","https://e.x/\u003c/script>"],["","",""]]"#), "{page}");
}

#[test]
fn colours_survive_in_ansi() {
    let ansi = |text| text_of(|w| lines(LinesAs::Ansi, &mut session(vec![out(text)]), Vec::new(), 10, w));
    let text = ansi("\x1b[31mred\x1b[0m plain\r\n\x1b[2Jgone?");
    assert!(text.contains("gone?"), "{text:?}");
    assert_eq!(ansi("\x1b[31mred\x1b[0m plain"), "\x1b[0;31mred\x1b[m plain\n");
}

#[test]
fn an_empty_session_exports_too() {
    let replay = Replay::to_end(&mut session(vec![]), 10).unwrap();
    assert_eq!(text_of(|w| txt(&replay, w)), "");
    assert_eq!(text_of(|w| branch_json(&BranchPoints::new(replay.term(), &[]), w)), "[]\n");
    let object = text_of(|w| lines(LinesAs::Json, &mut session(vec![]), Vec::new(), 10, w));
    assert!(serde_json::from_str::<serde_json::Value>(&object).is_ok(), "{object}");
    text_of(|w| svg_animated(&mut session(vec![]), SvgOptions::default(), w).map(drop));
}

/// The texts of an animation that a viewer shows at a time since the start of the film, or without
/// animation.
fn shown(film: &str, at: Option<f64>) -> Vec<String> {
    let mut texts = Vec::new();
    for group in film.split("<g").skip(2) {
        let number = |name: &str| {
            let (_, value) = group.split_once(&format!("{name}=\""))?;
            let offset = value.split_once('"')?.0.rsplit('+').next()?.trim_end_matches('s');
            // The start of the film has no offset.
            offset.parse::<f64>().ok().or(Some(0.0))
        };
        let hidden = group.starts_with(" visibility=\"hidden\"");
        let range = number("begin").zip(number("dur")).filter(|_| group.contains("<set"));
        let toggled = at.zip(range).is_some_and(|(at, (begin, dur))| at >= begin && at < begin + dur);
        if hidden == toggled {
            let text = group.split("<text").nth(1).and_then(|text| text.split(['>', '<']).nth(1));
            texts.extend(text.map(str::to_owned));
        }
    }
    texts
}

#[test]
fn the_last_screen_of_an_animation_stays_until_it_starts_again() {
    let kinds = vec![out("first"), out("\rsecond\r\nbelow"), out("\x1b[H\x1b[2Jlast\r\nrow")];
    let film = text_of(|w| svg_animated(&mut session(kinds), SvgOptions::default(), w).map(drop));
    assert!(film.contains("begin=\"0s;film.end+2s\" dur=\"0.500s\""), "{film}");
    assert_eq!(shown(&film, Some(0.1)), ["first"], "{film}");
    assert_eq!(shown(&film, Some(0.3)), ["second", "below"], "{film}");
    for held in [0.45, 0.55, 2.45] {
        assert_eq!(shown(&film, Some(held)), ["last", "row"], "at {held}: {film}");
    }
    assert_eq!(shown(&film, None), ["last", "row"], "without animation: {film}");
}

/// Lines that fall out of memory are written first; the whole must read as if all had been kept.
#[test]
fn a_long_session_is_written_as_it_goes() {
    let text = |from: u64, to: u64| {
        (from..to).map(|i| format!("{i}{}\r\n", "`".repeat(i as usize % 7))).collect::<String>()
    };
    let kinds = || {
        let mut kinds = vec![Kind::Marker("first".to_owned())];
        for i in 0..40_u64 {
            kinds.push(out(&text(i * 200, (i + 1) * 200)));
            if i % 10 == 3 {
                kinds.push(Kind::Marker(format!("at {i}")));
            }
        }
        kinds.push(Kind::Exit(Exit::Code(7)));
        kinds
    };
    let whole = Replay::to_end(&mut session(kinds()), 10_000).unwrap();
    let as_lines = |form| {
        text_of(|w| text::lines_in_steps(form, &mut session(kinds()), Annotations::default(), (500, 700), w))
    };
    assert!(as_lines(LinesAs::Txt) == text_of(|w| txt(&whole, w)));
    assert!(
        as_lines(LinesAs::Csv)
            == text_of(|w| branch_csv(&BranchPoints::new(whole.term(), whole.moments()), w))
    );
    let object: serde_json::Value = serde_json::from_str(&as_lines(LinesAs::Json)).unwrap();
    assert_eq!((object["lines"].as_array().unwrap().len(), &object["exit"]["code"]), (8_000, &7.into()));
    let transcript = as_lines(LinesAs::Md);
    assert_eq!(transcript.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).count(), 8_000);
    assert_eq!(transcript.matches("🔖").count(), 5);
    assert_eq!(
        transcript.matches("text\n").count() * 2,
        transcript.lines().filter(|l| l.starts_with("```")).count()
    );
    assert!(transcript.ends_with("- Exit code: 7\n"), "{}", &transcript[transcript.len() - 200..]);
}

#[test]
fn a_screen_becomes_a_pre_with_inline_styles() {
    let text = "a \x1b[1;4mb\x1b[m\x1b[5Cc\r\n\x1b]8;;https://x.test/\x1b\\link\x1b]8;;\x1b\\";
    let replay = Replay::to_end(&mut session(vec![out(text)]), 100).unwrap();
    let still = text_of(|w| html_still(replay.term(), Theme::default(), w));
    let rows: Vec<&str> = still.lines().collect();
    let bold = "<span style=\"font-weight:bold;text-decoration:underline\">b</span>";
    assert!(rows[0].ends_with(&format!(">a {bold}     c")), "{still}");
    assert_eq!(rows[1], "<a href=\"https://x.test/\">link</a>");
    assert_eq!((rows.len(), rows[6]), (7, "</pre>"));
}

/// Every export shows every theme, and an unreadable blue nowhere.
#[test]
fn exports_have_the_colours_of_a_theme() {
    let kinds = || vec![out("\x1b[34mblue\x1b[m \x1b[103mpaper\x1b[m \x1b[38;5;208mcube\x1b[m")];
    let replay = Replay::to_end(&mut session(kinds()), 0).unwrap();
    for (name, theme) in Theme::BUILT_IN {
        let svg = SvgOptions { theme: Some(*theme), ..SvgOptions::default() };
        let page = HtmlOptions { theme: Some(*theme), ..HtmlOptions::default() };
        let mut carrying = session(kinds());
        carrying.header.theme = Some(crate::cast::theme_value(theme));
        for (export, text) in [
            ("still", text_of(|w| svg_still(replay.term(), svg, w))),
            ("film", text_of(|w| svg_animated(&mut session(kinds()), svg, w).map(drop))),
            ("film of its own", text_of(|w| svg_animated(&mut carrying, SvgOptions::default(), w).map(drop))),
            ("pre", text_of(|w| html_still(replay.term(), *theme, w))),
            ("page", text_of(|w| html(&mut session(kinds()), Annotations::default(), page, w))),
        ] {
            let Theme { background, ansi, .. } = theme;
            for colour in [background, &ansi[4], &ansi[11]] {
                assert!(text.contains(&colour.to_string()), "{name}: {export} without {colour}: {text}");
            }
            assert!(text.contains("#ff8700"), "{name}: {export}: the cube is no part of a theme");
            assert!(!text.contains("#0000ee"), "{name}: {export}");
        }
    }
}

/// A turn whose answer is the text between `<` and `>` of this output.
fn turn(number: u64, output: &str, input: &str, text: &str) -> RecordedTurn {
    let at = |mark: String| output.find(&mark).expect("the mark") as u64;
    let line = serde_json::json!({
        "ts_ns": 1, "kind": "turn", "number": number, "input": input, "text": text,
        "start_byte": at(format!("<{number}")), "end_byte": at(format!("{number}>")),
        "start_ns": 1_000, "end_ns": 2_000,
    });
    turns_of(line.to_string().as_bytes()).expect("a line").remove(0)
}

/// What a program says in the alternate screen was in no export.
#[test]
fn turns_of_the_alternate_screen_stand_between_the_lines() {
    let output = "$ agent\r\n\x1b[?1049h\x1b[H<1hello1>\x1b[H\x1b[J<2world\r\nof two2>\x1b[?1049l$ echo x\r\n<3x\r\n3>$ ";
    let turns = || {
        vec![
            turn(1, output, "first question", "hello\n"),
            turn(2, output, "second\nquestion", "world\nof =two\u{202e}\n"),
            turn(3, output, "echo x", "x\n"),
        ]
    };
    let replay = Replay::to_end_with_turns(&mut session(vec![out(output)]), 100, turns()).unwrap();
    let expected = [
        "$ agent",
        "<turn 1: first question hello>",
        "<turn 2: second\nquestion world\nof =two\u{202e}>",
        "$ echo x",
        "<3x",
        "3>$",
    ];
    assert_eq!(rows_of(&replay), expected, "the third is in the lines already");
    // However the output comes in pieces.
    for len in [1, 7, 30] {
        let pieces = output.as_bytes().chunks(len).map(|b| Kind::Output(Bytes::copy_from_slice(b))).collect();
        let replay = Replay::to_end_with_turns(&mut session(pieces), 100, turns()).unwrap();
        assert_eq!(rows_of(&replay), expected, "{len}");
    }
    let as_lines = |form| text_of(|w| lines(form, &mut session(vec![out(output)]), turns(), 100, w));
    let txt = as_lines(LinesAs::Txt);
    assert!(
        txt.starts_with("$ agent\n--- turn 1: question ---\nfirst question\n--- turn 1: answer ---\nhello\n"),
        "{txt}"
    );
    assert!(txt.contains("--- turn 2: end ---\n$ echo x\n"), "{txt}");
    assert_eq!(txt, as_lines(LinesAs::Ansi).replace("\x1b[0m", ""));
    let md = as_lines(LinesAs::Md);
    assert!(md.contains("**💬 turn 2: answer**\n\n```text\nworld\nof =two\u{fffd}\n```\n"), "{md}");
    let json: serde_json::Value = serde_json::from_str(&as_lines(LinesAs::Json)).unwrap();
    assert_eq!(
        (json["turns"].as_array().unwrap().len(), &json["turns"][1]["input"]),
        (2, &"second\nquestion".into())
    );
    let csv = as_lines(LinesAs::Csv);
    assert!(csv.contains("question,2,") && csv.contains("\"second\nquestion\""), "{csv}");
    let page = text_of(|w| html(&mut session(vec![out(output)]), turns(), HtmlOptions::default(), w));
    assert!(page.contains("--- turn 2: question ---\nsecond\nquestion\n"), "{page}");
    let table = text_of(|w| {
        let turns = replay.hidden_turns();
        branch_md(&BranchPoints { turns, ..BranchPoints::new(replay.term(), &[]) }, w)
    });
    assert!(table.contains("**💬 turn 2: question** ") && table.contains("second<br>question"), "{table}");
    for export in [txt, md, csv, page, table] {
        assert!(!export.contains('\u{202e}'), "{export}");
    }
}

/// A recording that ends while its agent shows the last answer has that answer in its lines.
#[test]
fn the_last_screen_is_not_told_twice() {
    let output = "$ agent\r\n\x1b[?1049h\x1b[H<1old1>\x1b[2;1H> what?\r\n<2newest\r\nlines2>\x1b[H\x1b[K";
    let turns = vec![turn(1, output, "before?", "old"), turn(2, output, "what?", "newest\nlines")];
    let replay = Replay::to_end_with_turns(&mut session(vec![out(output)]), 100, turns).unwrap();
    assert_eq!(
        rows_of(&replay).iter().map(String::as_str).filter(|row| !row.is_empty()).collect::<Vec<_>>(),
        ["$ agent", "<turn 1: before? old>", "> what?", "<2newest", "lines2>"]
    );
}

fn instruction(line: u64, anchor_byte: u64, text: &str) -> Instruction {
    Instruction {
        id: line,
        deleted: false,
        written: WallTime::from_nanos(5),
        anchor_byte,
        line: Some(line),
        snapshot: None,
        text: text.to_owned(),
    }
}

/// A row that is rewritten between two snapshots put the later one first.
#[test]
fn snapshots_and_instructions_are_in_order_of_time() {
    let (text, again) = ("one\r\ntwo\r\nthree\r\n", "\x1b[3Auno\r\n\r\n\r\n");
    let (first, second) = (text.len() as u64, (text.len() + again.len()) as u64);
    let events = || {
        vec![
            out(text),
            snapshot(1, first),
            out(again),
            snapshot(2, second),
            out("four"),
            snapshot(3, second + 4),
        ]
    };
    let replay = Replay::to_end(&mut session(events()), 100).unwrap();
    assert_eq!(rows_of(&replay), ["uno", "two", "three", "<s1>", "<s2>", "four", "<s3>"]);
    // Each behind its line, whatever their order in the file.
    let two = text.find("two").unwrap() as u64 + 2;
    let instructions = [instruction(3, second + 3, "=end\nit"), instruction(1, two, "use <b>")];
    let rows = ["uno", "two", "<i1: use <b>>", "three", "<s1>", "<s2>", "four", "<s3>", "<i3: =end\nit>"];
    assert_eq!(rows_with(&replay, &instructions), rows);

    let points =
        BranchPoints { instructions: &instructions, ..BranchPoints::new(replay.term(), replay.moments()) };
    let md = text_of(|w| branch_md(&points, w));
    assert!(
        md.contains("| **✏️ line 3** | **33** | **=end<br>it** |\n") && md.contains("use &lt;b&gt;"),
        "{md}"
    );
    let json: serde_json::Value = serde_json::from_str(&text_of(|w| branch_json(&points, w))).unwrap();
    assert_eq!((&json[2]["kind"], &json[2]["line"]), (&"instruction".into(), &1.into()), "{json}");
    let csv = text_of(|w| branch_csv(&points, w));
    assert!(csv.contains("instruction,3,33,5,\"'=end\nit\"\r\n"), "{csv}");

    // The same in the exports, however many lines are kept until the end.
    for kept in [(100, 270_000), (1, 2)] {
        let export = |form| {
            let known = Annotations { instructions: instructions.to_vec(), ..Annotations::default() };
            text_of(|w| text::lines_in_steps(form, &mut session(events()), known, kept, w))
        };
        let csv = export(LinesAs::Csv);
        let kinds: Vec<&str> = csv.lines().filter_map(|l| l.split_once(',')).map(|(kind, _)| kind).collect();
        let wanted =
            ["kind", "line", "line", "instruction", "line", "snapshot", "snapshot", "line", "snapshot"];
        assert_eq!(kinds[..9], wanted, "{csv}");
        let md = export(LinesAs::Md);
        assert!(md.contains("**✏️ instruction at line 1**\n\n```text\nuse <b>\n```\n"), "{md}");
        let json: serde_json::Value = serde_json::from_str(&export(LinesAs::Json)).unwrap();
        assert_eq!(json["instructions"][0]["text"], "use <b>", "{json}");
    }
    let known = Annotations { instructions: instructions.to_vec(), ..Annotations::default() };
    let page = text_of(|w| html(&mut session(events()), known, HtmlOptions::default(), w));
    let (_, transcript) = page.split_once("<pre id=\"transcript\">").expect("a transcript");
    let wanted = "uno\ntwo\n<mark>✏️ instruction at line 1: use &lt;b&gt;</mark>\nthree\n";
    assert!(transcript.starts_with(wanted), "{transcript}");
    assert!(transcript.contains("four\n<mark>✏️ instruction at line 3: =end\nit</mark>\n"), "{transcript}");

    // Without a line of its own, one belongs to the line that was being written.
    let unplaced = [Instruction { line: None, ..instruction(9, two, "x") }];
    assert_eq!(rows_with(&replay, &unplaced)[..3], ["uno", "two", "<i1: x>"]);
}

/// A list that lacks something did not say so.
#[test]
fn a_list_says_that_it_is_cut() {
    let text: String = (0..40).map(|i| format!("line {i}\r\n")).collect();
    let replay = Replay::to_end(&mut session(vec![out(&text)]), 10).unwrap();
    let points = BranchPoints { left_out: 7, ..BranchPoints::new(replay.term(), &[]) };
    let (md, csv) = (text_of(|w| branch_md(&points, w)), text_of(|w| branch_csv(&points, w)));
    let json: serde_json::Value = serde_json::from_str(&text_of(|w| branch_json(&points, w))).unwrap();
    let lines = json[0]["lines"].as_u64().expect("a number");
    let says =
        format!("the list is cut: it lacks the first {lines} lines and 7 snapshots, markers or instructions");
    assert_eq!(
        (&json[0]["kind"], &json[0]["moments"], &json[1]["idx"]),
        (&"cut".into(), &7.into(), &lines.into())
    );
    assert!(csv.contains(&format!("cut,,,,\"{says}\"")) && md.contains("**✂ cut**"), "{csv}{md}");
    let whole = BranchPoints::new(replay.term(), &[]);
    assert!(lines > 0 && text_of(|w| branch_csv(&whole, w)).contains("lacks the first"), "{csv}");
}
