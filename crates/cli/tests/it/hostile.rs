//! One corpus of hostile output and names, over every view, export and door. What reaches the
//! user's terminal is judged by a parser that is not ours, against a list for each kind of view.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::live::Detached;
use crate::support::{Home, Seat};

const OUTPUT: &str = include_str!("../hostile/output.txt");
const NAMES: &str = include_str!("../hostile/names.txt");
/// What is on the screen in the end.
pub const END: &str = "the-end-of-it";

/// The pieces of a file of the corpus.
fn pieces(text: &str) -> Vec<Vec<u8>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| unescaped(line).unwrap_or_else(|| panic!("cannot read {line:?}"))).collect()
}

fn unescaped(line: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        rest = match behind.chars().next()? {
            'e' => {
                out.push(0x1b);
                &behind[1..]
            }
            '\\' => {
                out.push(b'\\');
                &behind[1..]
            }
            'x' => {
                out.push(u8::from_str_radix(behind.get(1..3)?, 16).ok()?);
                &behind[3..]
            }
            'u' => {
                let (number, behind) = behind.strip_prefix("u{")?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
                out.extend_from_slice(c.to_string().as_bytes());
                behind
            }
            _ => return None,
        };
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

/// All output, one piece a row, and an end on a screen that is fit to be read.
fn output() -> Vec<u8> {
    let mut all = pieces(OUTPUT).join(&b"|\r\n"[..]);
    all.extend_from_slice(b"\x18\x1b[20l\x1b[?42l\x1b[?69l\x1b[r\x1b(B\x0f\x1b[m\x1b[H\x1b[2J");
    all.extend_from_slice(END.as_bytes());
    all
}

fn names() -> Vec<String> {
    pieces(NAMES).into_iter().map(|name| String::from_utf8(name).expect("text")).collect()
}

/// What an independent parser finds in a stream besides text.
#[derive(Default)]
struct Found(Vec<String>);

impl vte::Perform for Found {
    fn print(&mut self, c: char) {
        if c.is_control() {
            self.0.push(format!("control {:x}", u32::from(c)));
        }
    }

    fn execute(&mut self, byte: u8) {
        self.0.push(format!("control {byte:x}"));
    }

    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.0.push(format!("DCS {action}"));
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        self.0.push(format!("OSC {}", String::from_utf8_lossy(&params.join(&b';'))));
    }

    fn csi_dispatch(&mut self, params: &vte::Params, inter: &[u8], ignore: bool, action: char) {
        let params: Vec<String> = params.iter().map(|p| p[0].to_string()).collect();
        let ignored = if ignore { " too long" } else { "" };
        let inter = String::from_utf8_lossy(inter);
        self.0.push(format!("CSI {inter}{action}\t{}{ignored}", params.join(";")));
    }

    fn esc_dispatch(&mut self, inter: &[u8], _: bool, byte: u8) {
        self.0.push(format!("ESC {}{}", String::from_utf8_lossy(inter), char::from(byte)));
    }
}

fn found(bytes: &[u8]) -> Vec<String> {
    let mut found = Found::default();
    vte::Parser::new().advance(&mut found, bytes);
    // It passes over these without a word.
    let strings = bytes.windows(2).filter(|w| w[0] == 0x1b && b"PX^_k".contains(&w[1]));
    found.0.extend(strings.map(|w| format!("string {}", char::from(w[1]))));
    // The end of a string is told apart from the string.
    found.0.retain(|one| one != "ESC \\");
    found.0
}

/// What a kind of view may write to a terminal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum May {
    /// Text and ends of lines.
    Write,
    /// Colors and links as well.
    Style,
    /// Paint a screen, and listen to keys and the mouse.
    Paint,
    /// Pass on what draws, and modes that are undone.
    Pass,
}

fn is_allowed(may: May, one: &str) -> bool {
    let (kind, rest) = one.split_once(' ').unwrap_or((one, ""));
    let (action, params) = rest.split_once('\t').unwrap_or((rest, ""));
    let modes = |known: &[&str]| params.split(';').all(|mode| known.contains(&mode));
    let link = || {
        let uri = rest.splitn(3, ';').nth(2).unwrap_or_default();
        let safe = ["http://", "https://", "mailto:"].iter().any(|s| uri.to_lowercase().starts_with(s));
        uri.is_empty() || (safe && !uri.chars().any(|c| c.is_control() || c == ' ' || c == '\u{202e}'))
    };
    let written = kind == "control" && matches!(rest, "a" | "d" | "9");
    let styled = (kind == "CSI" && action == "m") || (kind == "OSC" && rest.starts_with("8;") && link());
    let painted = match (kind, action) {
        ("CSI", "H" | "K" | "G" | "J" | "X" | "A" | "B" | "C" | "D" | "d" | "r" | " q") => params != "3",
        ("CSI", "?h" | "?l") => {
            modes(&["1", "7", "25", "1000", "1002", "1003", "1004", "1006", "1015", "1049", "2004", "2026"])
        }
        ("CSI", ">u" | "<u" | "=u") => true,
        ("ESC", "(B" | "7" | "8" | "=" | ">") => true,
        _ => false,
    };
    let passed = match (kind, action) {
        ("control", _) => matches!(rest, "7" | "8" | "b" | "c" | "e" | "f" | "0" | "18" | "1a" | "7f"),
        // The title, and notices and progress of a program that a user is attached to.
        ("OSC", _) => {
            ["2;", "9;", "777;"].iter().any(|number| rest.starts_with(number))
                && !rest.chars().any(|c| c.is_control() || c == '\u{202e}')
        }
        ("CSI", "!p" | ">m" | "g" | "s" | "u" | "b" | "\"q" | "I" | "Z" | "h" | "l") => {
            params != "2" && params != "20"
        }
        ("CSI", "t") => params.starts_with("22;0") || params.starts_with("23;0"),
        ("CSI", "?W") => true,
        ("CSI", "?h" | "?l") => modes(&[
            "1", "5", "6", "7", "9", "12", "25", "66", "69", "1000", "1002", "1003", "1004", "1005", "1006",
            "1015", "1016", "1049", "2004", "2026", "2027", "2031",
        ]),
        ("ESC", "(0" | "D" | "M" | "E" | "H" | "#8" | ")B" | "*B" | "+B") => true,
        _ => false,
    };
    match may {
        May::Write => written,
        May::Style => written || styled,
        May::Paint => written || styled || painted,
        May::Pass => written || styled || painted || passed,
    }
}

#[track_caller]
pub fn judge(what: &str, may: May, bytes: &[u8]) {
    let acts: BTreeSet<String> = found(bytes).into_iter().filter(|one| !is_allowed(may, one)).collect();
    assert!(acts.is_empty(), "{what}: {acts:?}");
    if may == May::Write {
        let text = String::from_utf8_lossy(bytes);
        let hidden = text.chars().find(|c| tapdeck_term::is_unsafe(*c) && !"\n\r\t".contains(*c));
        assert_eq!(hidden, None, "{what}: {text}");
    }
}

/// Runs a command on a terminal to its end and judges all that it wrote.
#[track_caller]
fn on_terminal(what: &str, may: May, command: Command) {
    let mut seat = Seat::new(command);
    seat.end();
    judge(what, may, &seat.raw);
}

/// A recording of the corpus under a hostile name, with a hostile title, command, folder and
/// markers: as `.cast` with characters, as `.ahr` with all bytes.
pub fn recordings(home: &Home) -> Vec<PathBuf> {
    let all = output();
    let name = names().join(" ").replace('/', "_");
    let name: String = name.chars().take(60).collect();
    let title = names().join(" ");
    let mut cast = json!({"version": 2, "width": 80, "height": 24, "title": title, "command": title,
        "env": {"SHELL": title, "TERM": title}})
    .to_string();
    for (n, label) in names().iter().enumerate() {
        cast += &format!("\n{}", json!([f64::from(n as u32) / 1000.0, "m", label]));
    }
    cast += &format!("\n{}\n", json!([0.1, "o", String::from_utf8_lossy(&all)]));
    let cast_path = home.path(&format!("{name}.cast"));
    std::fs::write(&cast_path, cast).expect("written");
    std::fs::write(home.path("corpus"), all).expect("written");
    let ahr_path = home.path(&format!("{name}.ahr"));
    let folder = home.path(&name);
    std::fs::create_dir(&folder).expect("made");
    let mut command = home.tapdeck(["rec", "-q", "--headless"]);
    command.arg(&ahr_path).args(["--", "sh", "-c", "cat ../corpus"]).args(names()).current_dir(&folder);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    judge("rec --headless", May::Write, &output.stdout);
    vec![cast_path, ahr_path]
}

#[test]
fn no_view_of_a_recording_lets_it_act() {
    let home = Home::new();
    for path in recordings(&home) {
        let arg = |words: &[&str]| {
            let mut command = home.tapdeck(words);
            command.arg(&path);
            command
        };
        for words in [
            &["info"][..],
            &["info", "--json"],
            &["verify"],
            &["branch-points"],
            &["branch-points", "--format", "csv"],
            &["index"],
            &["turns"],
            &["scrub", "--dry-run"],
            &["repair", "--dry-run"],
            &["attach"],
            &["wait", "--exit"],
            &["nonsense"],
        ] {
            on_terminal(&format!("{words:?} {path:?}"), May::Write, arg(words));
        }
        on_terminal("render", May::Style, arg(&["render"]));
        #[cfg(feature = "tui")]
        {
            let mut seat = Seat::new(arg(&["view"]));
            seat.wait_text(END);
            for keys in ["i", "\x1b", "{", "=", "h", "q", "g", "]", "/evil\r"] {
                seat.send(keys);
                seat.read_some(std::time::Duration::from_millis(50));
            }
            seat.send("\x1b\x1bqqq");
            seat.end();
            judge("view", May::Paint, &seat.raw);
            assert!(seat.term.undo_modes().is_empty(), "all is undone");
        }
    }
}

#[test]
fn no_export_of_a_recording_lets_it_act() {
    let home = Home::new();
    let benign = home.path("benign.cast");
    let link = "\\u001b]8;;https://x.example\\u001b\\\\l\\u001b]8;;\\u001b\\\\";
    let styled = "\\u001b[1;3;4;9;31;42;58;5;3mx\\u001b[m";
    let cast = format!(
        "{{\"version\":2,\"width\":80,\"height\":24}}\n[0.1,\"o\",\"{link}{styled}\"]\n[0.2,\"m\",\"a\"]\n"
    );
    std::fs::write(&benign, cast).expect("written");
    let export = |path: &std::path::Path, format: &str| {
        let mut command = home.tapdeck(["convert", "-q", "--format", format, "-o", "-"]);
        let output = command.arg(path).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        judge(&format!("{format}: messages"), May::Write, said.as_bytes());
        assert!(output.status.code() < Some(2), "{format}: {said}");
        output.stdout
    };
    for path in recordings(&home) {
        for format in ["txt", "md", "csv"] {
            judge(format, May::Write, &export(&path, format));
        }
        judge("ansi", May::Style, &export(&path, "ansi"));
        let text = export(&path, "json");
        judge("json", May::Write, &text);
        serde_json::from_slice::<Value>(&text).expect("JSON");
        for line in export(&path, "cast").split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            serde_json::from_slice::<Value>(line).expect("a line of JSON");
        }
        for format in ["html", "svg", "svg-still"] {
            let (hostile, benign) = (export(&path, format), export(&benign, format));
            let (hostile, benign) = (markup(&hostile), markup(&benign));
            let more: Vec<&String> = hostile.difference(&benign).collect();
            assert!(more.is_empty(), "{format}: {more:?}");
        }
    }
}

/// What parties, agents and tools say, with the corpus in every text.
#[test]
fn no_conversation_acts() {
    let home = Home::new();
    let recorded = home.run(["rec", "-q", "--headless", "talk.ahr", "--", "true"]);
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let mut texts = names();
    texts.extend(pieces(OUTPUT).iter().map(|piece| String::from_utf8_lossy(piece).into_owned()));
    let markdown =
        ["<script>x</script>", "```\n</pre><img src=x>", "[x](javascript:x)", "![x](http://x)", "`\n<b>`"];
    texts.extend(markdown.map(str::to_owned));
    let (all, title) = (texts.join("\n"), texts.join(" "));
    let lines = all.lines().count();
    let by = json!({"name": title, "role": "bot"});
    let question = json!({"kind": "question", "ts_ns": 9, "start_ns": 3, "end_ns": 4, "text": title, "detail": texts,
        "options": [{"number": 1, "label": title}], "answer": {"number": 1, "label": title}, "by": by});
    let parts =
        json!([{"at_ns": 1, "lines": lines}, {"at_ns": 2, "tool": title, "about": all, "result": all}]);
    let turn = json!({"kind": "turn", "ts_ns": 9, "number": 1, "start_byte": 0, "end_byte": 0, "start_ns": 1,
        "end_ns": 5, "input": all, "text": all, "parts": parts, "by": by});
    let shown = json!({"kind": "turn", "ts_ns": 9, "number": 2, "start_byte": 0, "end_byte": 0, "start_ns": 6,
        "end_ns": 7, "input": title, "text": all, "by": by});
    home.append("talk.ahr", "events.jsonl", format!("{turn}\n{question}\n{shown}\n").as_bytes());
    let export = |form: &str| {
        let args = ["convert", "-q", "talk.ahr", "-o", "-", "--as", "conversation", "--to", form];
        let out = home.run(args);
        assert!(out.status.success(), "{form}: {}", String::from_utf8_lossy(&out.stderr));
        judge(form, May::Write, &out.stdout);
        out.stdout
    };
    serde_json::from_slice::<Value>(&export("json")).expect("JSON");
    let elements = markup(&export("html"));
    for element in ["script", "img", "object", "iframe", "svg", "form"] {
        assert!(!elements.contains(element), "{elements:?}");
    }
    let known =
        ["a", "article", "div", "li", "meta", "p", "section", "time", "details", "html", "ul", "!DOCTYPE"];
    let odd =
        elements.iter().filter(|e| e.contains(' ') && !known.contains(&e.split(' ').next().unwrap_or("")));
    assert_eq!(odd.collect::<Vec<_>>(), Vec::<&String>::new());
    // Between fences anything may stand; elsewhere no element begins.
    let md = String::from_utf8(export("md")).expect("text");
    let mut fence = "";
    for line in md.lines() {
        let bare = line.trim_start_matches("> ");
        let ticks = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        if fence.is_empty() && ticks.len() > 2 {
            fence = ticks;
        } else if bare == fence {
            fence = "";
        } else if fence.is_empty() {
            let outside: String = line.split('`').step_by(2).collect();
            assert!(!outside.contains('<'), "{line}");
        }
    }
    assert_eq!(fence, "", "every fence is closed");
}

/// The elements of a page or a picture, each with the names of its attributes. Styles and scripts
/// have no elements in them; what may stand in a script is a value of JSON.
fn markup(bytes: &[u8]) -> BTreeSet<String> {
    let text = std::str::from_utf8(bytes).expect("text");
    assert!(!text.chars().any(|c| tapdeck_term::is_unsafe(c) && !"\n\t".contains(c)));
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('<') {
        let (inside, after) = behind.split_once('>').expect("an element ends");
        rest = after;
        let name = inside.split([' ', '/']).find(|part| !part.is_empty()).unwrap_or_default();
        found.insert(name.to_owned());
        let mut values = inside.split('"');
        while let Some(attribute) = values.next() {
            if let Some(key) = attribute.trim().strip_suffix('=') {
                found.insert(format!("{name} {}", key.rsplit(' ').next().unwrap_or_default()));
                let value = values.next().expect("a value");
                if key.ends_with("href") {
                    assert!(value.starts_with("http") || value.starts_with('#'), "{value}");
                }
            }
        }
        if ["script", "style"].contains(&name) && !inside.starts_with('/') {
            let (_, after) = rest.split_once(&format!("</{name}>")).expect("it ends");
            rest = after;
        }
    }
    found
}

#[test]
fn no_live_session_acts_on_the_terminal_that_looks_at_it() {
    let home = Home::new();
    std::fs::write(home.path("corpus"), output()).expect("written");
    // The model answers the queries; their echo would be drawn over the end.
    let script = "printf 'ready? '; read x; stty -echo; cat corpus; read y";
    let mut command = vec!["sh", "-c", script];
    let all = names();
    command.extend(all.iter().map(String::as_str));
    let session = Detached::start(&home, &["--name", "</script>'\"&"], &command);
    let id = session.id.as_str();
    // Its bytes pass.
    let mut seat = Seat::new(home.tapdeck(["attach", id]));
    seat.wait_text("ready?");
    seat.send("\r");
    seat.wait_text(END);
    seat.send("\x1cd");
    assert_eq!(seat.end().code(), Some(0));
    judge("attach", May::Pass, &seat.raw);
    assert!(seat.replies.is_empty(), "{:?}", String::from_utf8_lossy(&seat.replies));
    let left = seat.term.undo_modes();
    assert!(left.is_empty(), "left behind: {:?}", String::from_utf8_lossy(&left));
    assert_eq!(seat.term.title(), "", "the title is the user's again");
    // Its screen is painted, in one of the same size and in another.
    for (cols, rows) in [(80, 24), (60, 20)] {
        let mut seat = Seat::with_size(home.tapdeck(["attach", "--read-only", id]), cols, rows);
        seat.wait_text(END);
        seat.send("\x1cd");
        assert_eq!(seat.end().code(), Some(0));
        judge("attach again", May::Pass, &seat.raw);
        assert!(seat.term.undo_modes().is_empty() && seat.replies.is_empty());
    }
    on_terminal("tail", May::Pass, home.tapdeck(["tail", id]));
    for words in [
        &["ls"][..],
        &["ls", "--json"],
        &["peek", "--color", "never"],
        &["peek", "--json"],
        &["explain"],
        &["turns"],
        &["wait", "--text", "nosuch", "--timeout", "100ms"],
    ] {
        let args = words[..1].iter().copied().chain((words[0] != "ls").then_some(id));
        let args: Vec<&str> = args.chain(words[1..].iter().copied()).collect();
        on_terminal(&format!("{args:?}"), May::Write, home.tapdeck(args));
    }
    on_terminal("peek", May::Style, home.tapdeck(["peek", id, "--scrollback"]));
    for name in names() {
        for words in
            [&["peek", &name][..], &["rename", id, &name], &["wait", &name, "--exit", "--timeout", "1ms"]]
        {
            on_terminal(&format!("{words:?}"), May::Write, home.tapdeck(words));
        }
    }
    #[cfg(feature = "tui")]
    {
        let mut seat = Seat::new(home.tapdeck(["dash"]));
        seat.wait_text(END);
        seat.send("q");
        seat.end();
        judge("dash", May::Paint, &seat.raw);
        assert!(seat.term.undo_modes().is_empty(), "all is undone");
    }
}

/// The door printed what it was asked for as it was.
#[cfg(feature = "ssh")]
#[test]
fn the_ssh_door_quotes_nothing_that_acts() {
    use crate::ssh_door::{Door, make_keys};
    if !tapdeck_needs::has("ssh") || !tapdeck_needs::has("ssh-keygen") {
        return;
    }
    let home = Home::new();
    make_keys(&home, &["full"]);
    std::fs::copy(home.path("full.pub"), home.path("keys")).expect("copied");
    let door = Door::open(&home);
    for name in names() {
        for words in [&[name.as_str()][..], &["attach", &name], &["peek", &name]] {
            let output = door.ask(&home, "full", "nosuch", words);
            judge("the door", May::Write, &[output.stdout, output.stderr].concat());
        }
    }
}

#[test]
fn the_corpus_is_read_as_it_is_spelled() {
    assert_eq!(unescaped("a\\e[\\x9b\\u{202e}\\\\b").as_deref(), Some(&b"a\x1b[\x9b\xe2\x80\xae\\b"[..]));
    assert_eq!(unescaped("\\q"), None);
    assert!(pieces(OUTPUT).len() > 100 && names().len() >= 10);
    assert!(std::ffi::OsStr::from_bytes(&output()).len() > 2_000);
    // The judge sees what it is to see.
    let all = output();
    let acts = found(&all).into_iter().filter(|one| !is_allowed(May::Pass, one)).count();
    assert!(acts > 60, "{acts}");
}

/// Ctrl-C, the usual end of `tail -f`, left the mouse, the alternate screen and tab stops changed.
#[test]
fn following_output_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let script = r"printf 'x\033[3g\033)0\033[?1049h\033[?1003h\033[?25l\033[?2004h\033[?1h shown'; read x";
    let started = home.run(["run", "-d", "--name", "s", "--", "sh", "-c", script]);
    assert!(started.status.success());
    for signal in ["INT", "TERM", "HUP"] {
        let mut seat = Seat::new(home.tapdeck(["tail", "-f", "s"]));
        seat.wait_text("shown");
        assert!(!seat.term.undo_modes().is_empty());
        let pid = seat.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().expect("it runs");
        assert!(sent.success());
        seat.end();
        let left = seat.term.undo_modes();
        assert!(left.is_empty(), "{signal} leaves {:?}", String::from_utf8_lossy(&left));
    }
    home.run(["kill", "s"]);
}
