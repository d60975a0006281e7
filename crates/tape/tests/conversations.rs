//! Conversations with real agents, as their recordings have them, in each form. Each golden is the
//! events and the description of a recording. `TAPDECK_BLESS=1` writes what is made of them anew:
//! look at it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tapdeck_tape::conversation::{Conversation, Entry, Passage};
use tapdeck_tape::export::{ConversationAs, conversation};
use tapdeck_tape::meta::Meta;

fn golden(name: &str, end: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations").join(format!("{name}.{end}"))
}

fn read(name: &str) -> Conversation {
    let events = File::open(golden(name, "events.jsonl")).expect("events");
    let meta = fs::read(golden(name, "meta.json")).expect("a description");
    let meta = Meta::from_bytes(&meta).expect("sound");
    Conversation::read(events, Some(&meta), None).expect("sound")
}

/// Compares all forms of a conversation with their goldens, and says of which parts it is made.
fn check(name: &str) -> Vec<String> {
    let talk = read(name);
    for (form, end) in
        [(ConversationAs::Md, "md"), (ConversationAs::Html, "html"), (ConversationAs::Json, "json")]
    {
        let mut made = Vec::new();
        conversation(form, &talk, &mut made).expect("in memory");
        let path = golden(name, &format!("{end}.golden"));
        if std::env::var_os("TAPDECK_BLESS").is_some() {
            fs::write(&path, &made).expect("written");
        }
        let made = String::from_utf8(made).expect("text");
        assert_eq!(made, fs::read_to_string(&path).expect("a golden"), "{}", path.display());
    }
    let part = |passage: &Passage| match passage {
        Passage::Text { markdown: true, .. } => "said",
        Passage::Text { .. } => "shown",
        Passage::Tool(_) => "tool",
        Passage::Question(_) => "question",
    };
    let entry = |entry: &Entry| match entry {
        Entry::Turn(turn) => {
            let role = turn.by.as_ref().and_then(|by| by.role.as_deref()).unwrap_or("unknown");
            let parts: Vec<_> = turn.answer.iter().map(part).collect();
            let end = if turn.interrupted { ", interrupted" } else { "" };
            format!("{role}: {}{end}", parts.join(" "))
        }
        Entry::Question(question) => format!("question: {}", question.text),
    };
    talk.entries.iter().map(entry).collect()
}

#[test]
fn a_talk_with_claude_code() {
    let wanted = [
        "human: said",
        "bot: said",
        "human: question tool said",
        "human: question shown",
        "human: said, interrupted",
        "human: said",
    ];
    assert_eq!(check("claude"), wanted);
}

#[test]
fn a_talk_with_codex() {
    let wanted = [
        "human: said",
        "bot: said",
        "human: question tool said",
        "human: question shown, interrupted",
        "human: shown, interrupted",
        "human: said",
    ];
    assert_eq!(check("codex"), wanted);
}

/// Recordings from before questions and parties were written down.
#[test]
fn older_recordings_have_conversations_too() {
    let events = [
        r#"{"ts_ns":5,"kind":"driver","from":null,"to":"local","why":"claimed","fence":1}"#,
        r#"{"ts_ns":20,"kind":"state","state":"blocked","evidence":"screen","rule":"x","rows":[[3," Do you want it?"],[4,"> 1. Yes"]]}"#,
        r#"{"ts_ns":30,"kind":"state","state":"working","evidence":"screen","rule":"x","rows":[]}"#,
        r#"{"ts_ns":40,"kind":"turn","number":1,"start_byte":0,"end_byte":9,"start_ns":10,"end_ns":40,"input":"do it","text":"* done\n","evidence":"screen"}"#,
        r#"{"ts_ns":45,"kind":"news","unknown":true}"#,
    ];
    let talk = Conversation::read(events.join("\n").as_bytes(), None, None).expect("sound");
    let Some(turn) = talk.turns().next() else { panic!("no turn") };
    assert_eq!(turn.by.as_ref().map(|by| (by.name.as_str(), by.role.as_deref())), Some(("local", None)));
    let Passage::Question(question) = &turn.answer[0] else { panic!("{turn:?}") };
    assert_eq!((question.text.as_str(), &question.answer), ("Do you want it?", &None));
    assert_eq!(turn.answer[1], Passage::Text { text: "* done".into(), markdown: false });
    let mut md = Vec::new();
    conversation(ConversationAs::Md, &talk, &mut md).expect("in memory");
    let md = String::from_utf8(md).expect("text");
    assert!(md.contains("## 1. Person, ") && md.contains("It is not known how this was decided"), "{md}");
}

/// A question of a prompt that was never answered is not part of the answer before.
#[test]
fn questions_behind_an_answer_are_not_part_of_it() {
    let events = [
        r#"{"kind":"question","start_ns":5,"end_ns":6,"text":"Trust it?","options":[{"number":1,"label":"Yes"}]}"#,
        r#"{"kind":"turn","number":1,"start_byte":0,"end_byte":9,"start_ns":10,"end_ns":40,"input":"a","text":"b\n"}"#,
        r#"{"kind":"question","start_ns":50,"end_ns":60,"text":"Which one?","options":[{"number":1,"label":"Red"}]}"#,
    ];
    let talk = Conversation::read(events.join("\n").as_bytes(), None, None).expect("sound");
    let mut md = Vec::new();
    conversation(ConversationAs::Md, &talk, &mut md).expect("in memory");
    let md = String::from_utf8(md).expect("text");
    let headings: Vec<&str> =
        md.lines().filter(|line| line.starts_with("## ") || line.starts_with("**Asked")).collect();
    let [first, trust, turn, behind, which] = headings[..] else { panic!("{md}") };
    assert!(first.starts_with("## Asked outside an answer, ") && behind.starts_with(&first[..26]), "{md}");
    assert!(
        trust.ends_with("Trust it?") && turn.starts_with("## 1. ") && which.ends_with("Which one?"),
        "{md}"
    );
}

/// A line of events that makes no sense is reported, and none takes the program down.
#[test]
fn events_that_make_no_sense_are_told() {
    for (line, wanted) in [
        (r#"{"kind":"turn","number":1}"#, "line 1: a turn that makes no sense"),
        (r#"{"kind":"question","start_ns":"x"}"#, "line 1: a question that makes no sense"),
    ] {
        let message = Conversation::read(line.as_bytes(), None, None).expect_err(line).to_string();
        assert!(message.contains(wanted), "{message}");
    }
    // Parts that claim more lines than there are, and none.
    let line = r#"{"kind":"turn","number":1,"start_byte":0,"end_byte":0,"start_ns":9,"end_ns":1,"input":"","text":"a\n\nb\n","parts":[{"at_ns":1,"lines":0},{"at_ns":2,"lines":18446744073709551615}]}"#;
    let talk = Conversation::read(line.as_bytes(), None, None).expect("sound");
    for form in [ConversationAs::Md, ConversationAs::Html, ConversationAs::Json] {
        conversation(form, &talk, std::io::sink()).expect("in memory");
    }
}
