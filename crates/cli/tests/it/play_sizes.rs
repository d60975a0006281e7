//! `tapdeck play` in terminals of every size, under tmux: what tmux shows is the picture that
//! `tapdeck render` gives for the same place, in the middle of a larger terminal and cut by a
//! smaller one. After the end its lines are in tmux's own scrollback.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tapdeck_needs::has;
use tapdeck_term::{Attrs, Settings, Size, Style, Term, Underline};

use crate::support::{Home, PATIENCE, TAPDECK, eventually};
use crate::under_tmux::Tmux;

/// How long it stands still at each stop, in seconds of the recording.
const STOP: f64 = 900_000.0;

/// One event of a recording.
#[derive(Clone)]
enum Event {
    Output(String),
    Resize(Size),
}

/// A recording with stops at which it can be looked at.
struct Recording {
    size: Size,
    events: Vec<Event>,
    stops: Vec<usize>,
}

impl Recording {
    /// The events of an asciicast, with stops after these shares of them.
    fn of_cast(cast: &str, shares: &[f64]) -> Self {
        let mut lines = cast.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let header = lines.next().expect("a header");
        let side = |v: &Value| u16::try_from(v.as_u64().expect("a number")).expect("small");
        let size = Size::new(side(&header["term"]["cols"]), side(&header["term"]["rows"]));
        let events: Vec<Event> = lines
            .filter_map(|event| {
                let text = event[2].as_str()?;
                match event[1].as_str()? {
                    "o" => Some(Event::Output(text.to_owned())),
                    "r" => {
                        let (cols, rows) = text.split_once('x')?;
                        Some(Event::Resize(Size::new(cols.parse().ok()?, rows.parse().ok()?)))
                    }
                    _ => None,
                }
            })
            .collect();
        let stops = shares.iter().map(|share| (events.len() as f64 * share) as usize).collect();
        let mut recording = Self { size, events, stops };
        // The event before a stop changes the picture: otherwise the picture is there before the
        // player has come to the stop, and the test goes on too early.
        for i in 0..recording.stops.len() {
            let screen = |stop| recording.fed(stop).screen().map(|line| line.text()).collect::<Vec<_>>();
            let mut stop = recording.stops[i];
            while stop > 1 && screen(stop) == screen(stop - 1) {
                stop -= 1;
            }
            recording.stops[i] = stop;
        }
        // A busy machine records what a program says in fewer events: two stops may be one.
        recording.stops.dedup();
        recording
    }

    /// An asciicast that plays in half a second at a thousand times its speed, but for its stops.
    fn write(&self, home: &Home, name: &str) {
        let mut cast = json!({"version": 2, "width": self.size.cols, "height": self.size.rows}).to_string();
        let mut at = 0.0;
        for (i, event) in self.events.iter().enumerate() {
            at += if self.stops.contains(&i) { STOP } else { 500.0 / self.events.len() as f64 };
            let event = match event {
                Event::Output(text) => json!([at, "o", text]),
                Event::Resize(size) => json!([at, "r", format!("{}x{}", size.cols, size.rows)]),
            };
            write!(cast, "\n{event}").expect("memory");
        }
        write!(cast, "\n{}\n", json!([at + STOP, "o", ""])).expect("memory");
        std::fs::write(home.path(name), cast).expect("written");
    }

    /// A terminal that has got the events before a stop.
    fn fed(&self, stop: usize) -> Term {
        let mut term = Term::new(self.size, Settings::default());
        for event in &self.events[..stop] {
            match event {
                Event::Output(text) => drop(term.feed(text.as_bytes())),
                Event::Resize(size) => drop(term.resize(*size)),
            }
        }
        term
    }

    /// The terminal at a stop, which is what `tapdeck render` says, too.
    fn term_at(&self, home: &Home, stop: usize) -> Term {
        let term = self.fed(stop);
        let mut ops = Vec::new();
        for event in &self.events[..stop] {
            match event {
                Event::Output(text) => {
                    let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
                    ops.push(json!(["feed", hex]));
                }
                Event::Resize(size) => ops.push(json!(["resize", size.cols, size.rows])),
            }
        }
        ops.push(json!(["snap"]));
        let request = json!({"cols": self.size.cols, "rows": self.size.rows, "ops": ops});
        let mut render = home.tapdeck(["render", "--jsonl"]);
        let mut render = render.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it renders");
        let mut stdin = render.stdin.take().expect("a pipe");
        writeln!(stdin, "{request}").expect("it reads");
        drop(stdin);
        let out = render.wait_with_output().expect("it ends");
        let answer: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        for (y, row) in answer["snaps"][0]["rows"].as_array().expect("rows").iter().enumerate() {
            let cells = row.as_array().expect("cells").iter().filter_map(Value::as_str);
            let text: String = cells.map(|cell| if cell.is_empty() { " " } else { cell }).collect();
            let ours = term.row(y as u16).map(|line| line.text()).unwrap_or_default();
            assert_eq!(ours, text.trim_end_matches(' '), "row {y}");
        }
        term
    }
}

/// The part of a picture that a terminal shows, and where.
#[derive(Debug, Clone, Copy)]
struct View {
    terminal: Size,
    at: (u16, u16),
    shown: (u16, u16),
    /// The last row is the status line's.
    own_row: bool,
    cut: bool,
}

impl View {
    fn of(picture: Size, terminal: Size) -> Self {
        let cut = picture.cols > terminal.cols || picture.rows > terminal.rows;
        let own_row = cut || picture.rows < terminal.rows;
        let free = terminal.rows - u16::from(own_row);
        let shown = (picture.rows.min(free), picture.cols.min(terminal.cols));
        let at = ((free - shown.0) / 2, (terminal.cols - shown.1) / 2);
        Self { terminal, at, shown, own_row, cut }
    }
}

/// A style as far as every terminal keeps it.
fn style_of(style: Style) -> (tapdeck_term::Colour, tapdeck_term::Colour, bool, bool, bool) {
    let has = |attr| style.attrs.contains(attr);
    (style.fg, style.bg, has(Attrs::BOLD), has(Attrs::INVERSE), style.underline != Underline::None)
}

/// A player in tmux.
struct Stage<'a> {
    tmux: &'a Tmux<'a>,
    size: Size,
    name: String,
}

impl<'a> Stage<'a> {
    fn play(tmux: &'a Tmux<'a>, size: Size, args: &str) -> Self {
        let tapdeck = std::env::var("TAPDECK_BINARY").unwrap_or_else(|_| TAPDECK.to_owned());
        let name = format!("play{}x{}", size.cols, size.rows);
        let (cols, rows) = (size.cols.to_string(), size.rows.to_string());
        let script = format!("echo before; '{tapdeck}' play {args}; echo \"=ended $?\"; exec cat");
        tmux.run(&["new-session", "-d", "-s", &name, "-x", &cols, "-y", &rows, &script]);
        Self { tmux, size, name }
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux.run(&[&["send-keys", "-t", &self.name][..], keys].concat());
    }

    /// The screen with its styles, and whether and where there is a cursor.
    fn screen(&self) -> (Term, String) {
        let state = "#{cursor_flag} #{cursor_x},#{cursor_y}";
        let ask = ["display-message", "-t", &self.name, "-p", state, ";"];
        let all = self.tmux.run(&[&ask[..], &["capture-pane", "-t", &self.name, "-p", "-e", "-N"]].concat());
        let (cursor, rows) = all.split_once('\n').unwrap_or_default();
        let mut term = Term::new(self.size, Settings::default());
        term.feed(rows.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
        (term, cursor.to_owned())
    }

    /// All lines, with those that wrap joined.
    fn lines(&self) -> Vec<String> {
        let all = self.tmux.run(&["capture-pane", "-t", &self.name, "-p", "-J", "-S", "-"]);
        all.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    #[track_caller]
    fn wait(&self, what: &str, mut wrong: impl FnMut(&Term, &str) -> Option<String>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (term, cursor) = self.screen();
            let Some(wrong) = wrong(&term, &cursor) else { return };
            let screen: String = term.screen().map(|line| format!("|{}\n", line.text())).collect();
            assert!(Instant::now() < deadline, "{} {what}: {wrong}\n{screen}", self.name);
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Waits until the player paints, so that it takes the keys.
    #[track_caller]
    fn wait_alternate(&self) {
        eventually("a painted picture", || {
            self.tmux.run(&["display-message", "-t", &self.name, "-p", "#{alternate_on}"]).trim() == "1"
        });
    }

    /// Waits until the picture is shown from this corner of it, to which these keys move the view.
    #[track_caller]
    fn wait_picture(&self, picture: &Term, corner: (u16, u16), keys: &[&str]) {
        let view = View::of(picture.size(), self.size);
        let mut looks = 0;
        self.wait(&format!("from {corner:?}"), |term, cursor| {
            // Before the recording has come to the picture, there may have been nothing to move.
            if !keys.is_empty() && looks % 20 == 0 {
                self.keys(keys);
            }
            looks += 1;
            difference(picture, term, cursor, view, corner)
        });
    }

    /// Waits for the end, and returns how it ended.
    #[track_caller]
    fn wait_end(&self) -> Vec<String> {
        let ended = |term: &Term| term.screen().any(|line| line.text().starts_with("=ended"));
        self.wait("end", |term, _| (!ended(term)).then(|| "it has not ended".to_owned()));
        let modes = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag} #{wrap_flag} \
                     #{scroll_region_upper} #{scroll_region_lower}";
        let state = self.tmux.run(&["display-message", "-t", &self.name, "-p", modes]);
        assert_eq!(state.trim(), format!("0 1 0 0 1 0 {}", self.size.rows - 1), "{}", self.name);
        self.lines()
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.tmux.run(&["kill-session", "-t", &self.name]);
    }
}

/// Where the terminal does not show the picture as it should, if so.
fn difference(picture: &Term, shown: &Term, cursor: &str, view: View, corner: (u16, u16)) -> Option<String> {
    for y in 0..view.shown.0 {
        // tmux does not tell of the colours behind the last character of a row.
        let mut end = 0;
        if let Some(line) = shown.row(view.at.0 + y) {
            let mut col = 0;
            line.each(|text, width, style| {
                col += width;
                end = if text.is_empty() && style == Style::default() { end } else { col };
            });
        }
        for x in 0..view.shown.1 {
            let (from, to) = (corner.1, corner.1 + view.shown.1);
            let want = picture.cell(corner.0 + y, from + x)?;
            let got = shown.cell(view.at.0 + y, view.at.1 + x)?;
            // A wide character that is cut in half is blank.
            let cut = (want.width == 2 && from + x + 1 == to) || (want.width == 0 && x == 0);
            let want_text = if cut || want.text == " " { "" } else { &want.text };
            let got_text = if got.text == " " { "" } else { &got.text };
            let (mut a, b) = (style_of(want.style), style_of(got.style));
            if usize::from(view.at.1 + x) >= end && want_text.is_empty() {
                continue;
            }
            if want_text.is_empty() {
                // Of a blank only its background can be seen; inverse, that is the text's colour.
                a.0 = b.0;
                a.2 = b.2;
            }
            if got_text != want_text || a != b {
                return Some(format!("row {y}, column {x}: {got:?}, not {want:?}"));
            }
        }
    }
    for y in (0..view.at.0).chain(view.at.0 + view.shown.0..view.terminal.rows - u16::from(view.own_row)) {
        let text = shown.row(y).map(|line| line.text()).unwrap_or_default();
        if text.chars().any(|c| !" ┌─┐└┘".contains(c)) {
            return Some(format!("row {y} outside of the picture has {text:?}"));
        }
    }
    if view.own_row {
        let line = shown.row(view.terminal.rows - 1).map(|line| line.text()).unwrap_or_default();
        let size = picture.size();
        let hint = format!("of {}×{}", size.cols, size.rows);
        if !line.contains("▶") || (view.cut && !line.contains(&hint)) {
            return Some(format!("the status line is {line:?}"));
        }
    }
    let place = picture.cursor();
    let y = place.row.checked_sub(corner.0).filter(|y| *y < view.shown.0);
    let x = place.col.checked_sub(corner.1).filter(|x| *x < view.shown.1);
    let want = match (y, x) {
        (Some(y), Some(x)) if place.visible => format!("1 {},{}", x + view.at.1, y + view.at.0),
        _ => "0 ".to_owned(),
    };
    (!cursor.starts_with(&want)).then(|| format!("the cursor is {cursor:?}, not {want:?}"))
}

/// The lines of a terminal, with those that wrap joined, without the blank ones.
fn lines_of(term: &Term) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in term.lines() {
        let last = lines.last_mut().expect("one");
        last.push_str(&line.text());
        if line.wrapped() {
            let blanks = line.written_blanks().map_or(0, |(_, n)| usize::from(n));
            last.extend(std::iter::repeat_n(' ', blanks));
        } else {
            lines.push(String::new());
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Plays a recording in terminals that are smaller, equal and larger in each direction.
fn check(home: &Home, recording: &Recording) {
    recording.write(home, "r.cast");
    let tmux = Tmux::start(home);
    let Size { cols, rows } = recording.size;
    let pictures: Vec<Term> = recording.stops.iter().map(|stop| recording.term_at(home, *stop)).collect();
    let mut last = recording.term_at(home, recording.events.len());
    for terminal in [
        (cols, rows),
        (cols - 37, rows - 11),
        (cols, rows + 15),
        (cols + 41, rows),
        (cols + 40, rows + 16),
        (cols - 40, rows + 16),
        (cols - 38, rows),
        (cols + 40, rows - 12),
        (cols, rows - 1),
    ] {
        let terminal = Size::new(terminal.0, terminal.1);
        let stage = Stage::play(&tmux, terminal, "--speed 1000 r.cast");
        stage.wait_alternate();
        for picture in &pictures {
            let view = View::of(picture.size(), terminal);
            let size = picture.size();
            if view.cut {
                // To every corner of it: the view goes by half of what is in sight.
                let back = [["Up"; 9], ["M-Left"; 9]].concat();
                stage.wait_picture(picture, (0, 0), &back);
                let on = [["Down"; 9], ["M-Right"; 9]].concat();
                stage.wait_picture(picture, (size.rows - view.shown.0, size.cols - view.shown.1), &on);
                stage.keys(&["F"]);
                stage.wait("the cursor", |_, cursor| {
                    let there = !picture.cursor().visible || cursor.starts_with('1');
                    (!there).then(|| "it is out of sight".to_owned())
                });
            } else {
                stage.wait_picture(picture, (0, 0), &[]);
            }
            stage.keys(&[".", "Space"]);
        }
        stage.keys(&["G", "q"]);
        let got: Vec<String> = stage.wait_end().into_iter().filter(|line| !line.is_empty()).collect();
        let undo = last.undo_modes();
        last.feed(&undo);
        let want: Vec<String> =
            ["before".to_owned()].into_iter().chain(lines_of(&last)).chain(["=ended 0".to_owned()]).collect();
        assert!(got == want, "{}: {got:#?}\nnot {want:#?}", stage.name);
    }
}

fn record(home: &Home, name: &str, command: &[&str]) -> String {
    let head = ["rec", "-q", "--headless", "--window-size", "80x24", name, "--"];
    let out = home.run(head.iter().chain(command));
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    cast_of(home, name)
}

fn cast_of(home: &Home, name: &str) -> String {
    let out = home.run(["convert", "-q", "--overwrite", name, "-o", "converted.cast"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::read_to_string(home.path("converted.cast")).expect("written")
}

#[test]
fn lines() {
    if !has("tmux") {
        return;
    }
    let home = Home::new();
    let script = "for i in $(seq 60); do printf 'line %s \\033[3%sm%s\\033[m 漢字 %090d\\n' $i $((i % 8)) \
                  colour $i; done";
    let mut recording = Recording::of_cast(&record(&home, "l.ahr", &["sh", "-c", script]), &[]);
    // The recorder joins what comes at once; here every line is an event.
    let text: String = recording
        .events
        .iter()
        .map(|event| match event {
            Event::Output(text) => text.as_str(),
            Event::Resize(_) => "",
        })
        .collect();
    recording.events = text.split_inclusive('\n').map(|line| Event::Output(line.to_owned())).collect();
    recording.stops = vec![20, 45];
    check(&home, &recording);
}

#[test]
fn vim() {
    if !has("tmux") || !has("vim") {
        return;
    }
    let home = Home::new();
    let text: String = (1..200).map(|i| format!("{i}: some (text) {}\n", "x".repeat(i % 90))).collect();
    std::fs::write(home.path("text"), text).expect("written");
    std::fs::write(home.path("script"), ":set nu hls\r/9\rnnn\x06\x06ohello\x1bGgg:q!\r").expect("written");
    let command = ["vim", "-u", "NONE", "-i", "NONE", "-n", "-s", "script", "text"];
    let recording = Recording::of_cast(&record(&home, "v.ahr", &command), &[0.5, 0.8]);
    check(&home, &recording);
}

#[test]
fn htop() {
    if !has("tmux") || !has("htop") || !has("timeout") {
        return;
    }
    let home = Home::new();
    let command = ["sh", "-c", "timeout -s INT --foreground 2 htop -d 3; :"];
    let recording = Recording::of_cast(&record(&home, "h.ahr", &command), &[0.4, 0.9]);
    check(&home, &recording);
}

#[test]
fn an_agent() {
    if !has("tmux") {
        return;
    }
    let home = Home::new();
    let cassettes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cassettes/agents");
    for name in ["claude-conversation", "codex-conversation"] {
        let cast = cast_of(&home, &format!("{cassettes}/{name}.cassette"));
        check(&home, &Recording::of_cast(&cast, &[0.4, 0.8]));
    }
}

#[test]
fn a_resize_in_the_middle() {
    if !has("tmux") {
        return;
    }
    let home = Home::new();
    let mut events: Vec<Event> =
        (1..40).map(|i| Event::Output(format!("line {i} {}\r\n", "y".repeat(i * 2)))).collect();
    for (at, (cols, rows)) in [(10, (100, 30)), (20, (60, 20)), (30, (80, 24))] {
        events.insert(at, Event::Resize(Size::new(cols, rows)));
    }
    let recording = Recording { size: Size::new(80, 24), events, stops: vec![8, 15, 25, 38] };
    check(&home, &recording);
}
