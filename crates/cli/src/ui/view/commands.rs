//! The keys while reading, as data: the keymap of all players, a table for `less`'s keys, and one
//! for live sessions. They are what keys are looked up in and what the help page shows, so that the
//! two cannot disagree. The keymap comes first: where a key of it is also one of `less`'s, it wins.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tapdeck_term::keys::{KeyPress, Mods};

use crate::keymap::{Action, Keymap, spelled as spelled_press};
use crate::ui::keys::key_of;

/// A command of the viewer. A number typed before its key is its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    LineOn,
    LineBack,
    PageOn,
    PageBack,
    WindowOn,
    WindowBack,
    HalfOn,
    HalfBack,
    Right,
    Left,
    RightEnd,
    LeftEnd,
    Follow,
    FollowUntil,
    First,
    Last,
    Percent,
    SearchOn,
    SearchBack,
    Next,
    Previous,
    Unlight,
    Forget,
    Filter,
    CloseRound,
    OpenRound,
    CloseAny,
    OpenAny,
    MarkTop,
    MarkBottom,
    GoToMark,
    ToggleMark,
    Unmark,
    About,
    Option,
    ShowOption,
    Version,
    Shell,
    Pipe,
    Save,
    Edit,
    Repaint,
    Help,
    Quit,
    NoTags,
    NoFiles,
    Tall,
    Instruct,
    Copy,
    SnapshotOn,
    SnapshotBack,
    Play,
    SkipOn,
    SkipBack,
    LongSkipOn,
    LongSkipBack,
    StepOn,
    StepBack,
    Faster,
    Slower,
    MomentOn,
    MomentBack,
    Type,
    Mark,
    Pause,
    Suspend,
}

/// Keys, their command, and its text in the help. Keys of a sequence are separated by spaces; `C-`
/// and `S-` stand for Ctrl and Shift; Alt is `Esc` before the key.
type Row = (&'static [&'static str], Act, &'static str);

/// A part of the help page.
type Part = (&'static str, &'static [Row]);

const OURS: &[Row] = &[
    (&["{", "["], Act::SnapshotBack, "row of the previous snapshot or instruction"),
    (&["}", "]"], Act::SnapshotOn, "row of the next snapshot or instruction"),
    (
        &["i"],
        Act::Instruct,
        "write, change or delete the instruction of a line, as does a click on the left border",
    ),
    (&["y"], Act::Copy, "copy the selection, or the line, to the clipboard (OSC 52); drag to select"),
    (&["t"], Act::Tall, "as many rows as fit, or the terminal's own"),
];

const LIVE: &[Row] = &[
    (&["Enter"], Act::Type, "type to the program, which takes the stick; Ctrl-] stops"),
    (&["m"], Act::Mark, "add a marker to the recording, with a label or none"),
    (&["p"], Act::Pause, "pause the recording, or let it go on"),
];

const MOVING: &[Row] = &[
    (&["j", "e", "C-e", "C-n", "C-j", "Enter", "Down"], Act::LineOn, "a line on (or N)"),
    (&["k", "y", "C-y", "C-k", "C-p", "Up"], Act::LineBack, "a line back (or N)"),
    (&["f", "C-f", "C-v", "Space", "PgDn"], Act::PageOn, "a window on (or N lines)"),
    (&["b", "C-b", "Esc v", "PgUp"], Act::PageBack, "a window back (or N lines)"),
    (&["z", "Esc Space"], Act::WindowOn, "a window on (z makes it N lines)"),
    (&["w"], Act::WindowBack, "a window back (and makes it N lines)"),
    (&["d", "C-d"], Act::HalfOn, "half a window on (and makes it N lines)"),
    (&["u", "C-u"], Act::HalfBack, "half a window back (and makes it N lines)"),
    (&["Esc )", "Esc Right", "Right"], Act::Right, "half a width to the right (or N columns)"),
    (&["Esc (", "Esc Left", "Left"], Act::Left, "half a width to the left (or N columns)"),
    (&["Esc }", "C-Right"], Act::RightEnd, "to the last column"),
    (&["Esc {", "C-Left"], Act::LeftEnd, "to the first column"),
    (&["F"], Act::Follow, "follow the end of a live session or a recording in progress; others play"),
    (&["Esc F"], Act::FollowUntil, "the same, until what is searched for comes"),
];

const JUMPING: &[Row] = &[
    (&["g", "<", "Esc <", "Home"], Act::First, "to the first row (or row N)"),
    (&["G", ">", "Esc >", "End"], Act::Last, "to the last row (or row N)"),
    (&["p", "%"], Act::Percent, "to the first row (or N percent down)"),
    (&["(", "{", "["], Act::CloseRound, "to the ) of the (N-th) ( in the top row"),
    (&[")", "}", "]"], Act::OpenRound, "to the ( of the (N-th) ) in the bottom row"),
    (&["Esc C-f"], Act::CloseAny, "the same for two characters typed then, such as { }"),
    (&["Esc C-b"], Act::OpenAny, "the same backwards"),
    (&["m"], Act::MarkTop, "mark the top row with a letter"),
    (&["M"], Act::MarkBottom, "mark the bottom row with a letter"),
    (&["'"], Act::GoToMark, "to a mark; ' where you were; ^ first; $ last"),
    (&["C-x C-x"], Act::ToggleMark, "where you were"),
    (&["Esc m", "Esc M"], Act::Unmark, "forget a mark"),
];

const SEARCHING: &[Row] = &[
    (&["/"], Act::SearchOn, "search on (the N-th); a regular expression"),
    (&["?", "Esc ?"], Act::SearchBack, "search back (the N-th)"),
    (&["n", "Esc n"], Act::Next, "the next (the N-th); the search goes round the end"),
    (&["N", "Esc N"], Act::Previous, "the one before (the N-th)"),
    (&["Esc u"], Act::Unlight, "put the lights out, or on again"),
    (&["Esc U"], Act::Forget, "forget what was searched for"),
    (&["&"], Act::Filter, "only matching lines; again for fewer; nothing for all"),
];

/// The characters that modify a pattern.
const MODIFIERS: &[(&str, &str)] = &[
    ("! ^N", "lines that do not match"),
    ("^R", "text as it is, not a regular expression"),
    ("@ ^F", "begin at the first row, or the last for ?"),
    ("^K", "light up, but stay here"),
    ("* ^E ^W", "nothing: there is one recording, and its end is gone round"),
];

const REST: &[Row] = &[
    (&["=", "C-g", ": f"], Act::About, "what this is, and where"),
    (&["-", "Esc -"], Act::Option, "then i: does case count? only capitals / always; I: never"),
    (&["_"], Act::ShowOption, "then i or I: how that stands"),
    (&["!"], Act::Shell, "run a shell command"),
    (&["|"], Act::Pipe, "rows from here to a mark into a shell command"),
    (&["s"], Act::Save, "save the rows as text, or the screen as .png, .svg or .html"),
    (&["v"], Act::Edit, "open the rows in $VISUAL or $EDITOR"),
    (&["r", "R", "C-r", "C-l"], Act::Repaint, "paint again"),
    (&["V"], Act::Version, "which version this is"),
    (&["h", "H", "F1"], Act::Help, "this page"),
    (&["C-z"], Act::Suspend, "suspend the viewer; fg brings it back"),
    (&["q", "Q", ": q", ": Q", "Z Z", "C-c"], Act::Quit, "quit; asks while the program runs"),
    (&["t", "T"], Act::NoTags, "tags: there are none here"),
    (
        &[": e", "C-x C-v", ": n", ": p", ": x", ": d", "+"],
        Act::NoFiles,
        "other files: there is one recording here",
    ),
];

/// The tables of keys: of a recording, or of a live session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyTables {
    Tape,
    Live,
}

/// The result of a lookup of the keys so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Act(Act),
    /// The keys are the beginning of a command.
    Begun,
    Nothing,
}

/// One key of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chord {
    code: KeyCode,
    ctrl: bool,
    shift: bool,
}

impl Chord {
    /// Escape, the first key of a sequence for Alt.
    pub(super) const ESCAPE: Self = Self { code: KeyCode::Esc, ctrl: false, shift: false };

    /// The chords of a key event; Alt is an Escape before it.
    pub(super) fn of(key: KeyEvent) -> (Option<Self>, Self) {
        let has = |modifier| key.modifiers.contains(modifier);
        // Whether a character needs Shift depends on the keyboard.
        let shift = has(KeyModifiers::SHIFT) && !matches!(key.code, KeyCode::Char(_));
        let chord = Self { code: key.code, ctrl: has(KeyModifiers::CONTROL), shift };
        (has(KeyModifiers::ALT).then_some(Self::ESCAPE), chord)
    }

    /// The key press, as the keymap has it.
    fn press(self) -> Option<KeyPress> {
        let key = key_of(self.code)?;
        let held = |on: bool, held: Mods| if on { held } else { Mods::NONE };
        Some(KeyPress::new(key, held(self.ctrl, Mods::CTRL).with(held(self.shift, Mods::SHIFT))))
    }

    fn parse(text: &str) -> Self {
        let (ctrl, rest) = text.strip_prefix("C-").map_or((false, text), |rest| (true, rest));
        let (shift, rest) = rest.strip_prefix("S-").map_or((false, rest), |rest| (true, rest));
        let code = match rest {
            "Space" => KeyCode::Char(' '),
            "Enter" => KeyCode::Enter,
            "Esc" => KeyCode::Esc,
            "Up" => KeyCode::Up,
            "Down" => KeyCode::Down,
            "Left" => KeyCode::Left,
            "Right" => KeyCode::Right,
            "Home" => KeyCode::Home,
            "End" => KeyCode::End,
            "PgUp" => KeyCode::PageUp,
            "PgDn" => KeyCode::PageDown,
            "F1" => KeyCode::F(1),
            _ => rest.chars().next().map_or(KeyCode::Null, KeyCode::Char),
        };
        Self { code, ctrl, shift }
    }
}

/// The key as the help shows it.
fn spelled(keys: &str) -> String {
    let one = |key: &str| match key {
        "Up" => "↑".to_owned(),
        "Down" => "↓".to_owned(),
        "Space" => "space".to_owned(),
        _ => match key.strip_prefix("C-") {
            Some(c) if c.len() == 1 => format!("^{}", c.to_uppercase()),
            Some(name) => format!("Ctrl-{}", spelled(name)),
            None => match key.strip_prefix("S-") {
                Some(name) => format!("Shift-{}", spelled(name)),
                None => key.replace("Left", "←").replace("Right", "→"),
            },
        },
    };
    let mut parts = keys.split(' ').map(one);
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |all, part| if all == "Esc" { format!("Esc-{part}") } else { all + &part })
}

impl KeyTables {
    /// The tables behind the keymap, in the order of the lookup.
    fn parts(self) -> [Part; 6] {
        let own: Part = match self {
            KeyTables::Tape => ("Time", &[]),
            KeyTables::Live => ("The program", LIVE),
        };
        let rest = ("The rest", REST);
        [
            own,
            ("Tapdeck's own", OURS),
            ("Moving", MOVING),
            ("Jumping", JUMPING),
            ("Searching", SEARCHING),
            rest,
        ]
    }

    /// The command for an action of the keymap. A live session has no other time to go to.
    fn act_of(self, action: Action) -> Option<Act> {
        let act = match action {
            Action::Search => Act::SearchOn,
            Action::Next => Act::Next,
            Action::Start => Act::First,
            Action::End => Act::Last,
            Action::PanUp => Act::LineBack,
            Action::PanDown => Act::LineOn,
            Action::PanLeft => Act::Left,
            Action::PanRight => Act::Right,
            Action::Follow => Act::Follow,
            Action::Help => Act::Help,
            Action::Quit => Act::Quit,
            _ if self == KeyTables::Live => return None,
            Action::Pause => Act::Play,
            Action::StepOn => Act::StepOn,
            Action::StepBack => Act::StepBack,
            Action::SkipOn => Act::SkipOn,
            Action::SkipBack => Act::SkipBack,
            Action::LongSkipOn => Act::LongSkipOn,
            Action::LongSkipBack => Act::LongSkipBack,
            Action::MarkerOn => Act::MomentOn,
            Action::MarkerBack => Act::MomentBack,
            Action::Faster => Act::Faster,
            Action::Slower => Act::Slower,
            // A digit may be the beginning of a number, which is not looked up here.
            Action::Tenth(_) => return None,
        };
        Some(act)
    }

    /// Looks up the command of these keys.
    pub(super) fn look_up(self, keymap: &Keymap, keys: &[Chord]) -> Found {
        let press = match keys {
            [key] => key.press(),
            [Chord::ESCAPE, key] => {
                key.press().map(|press| KeyPress { mods: press.mods.with(Mods::ALT), ..press })
            }
            _ => None,
        };
        if let Some(act) = press.and_then(|press| self.act_of(keymap.action_of(press)?)) {
            return Found::Act(act);
        }
        let mut begun = false;
        for (_, rows) in self.parts() {
            for (all, act, _) in rows {
                for sequence in *all {
                    let mut wanted = sequence.split(' ').map(Chord::parse);
                    if !keys.iter().all(|key| wanted.next() == Some(*key)) {
                        continue;
                    }
                    if wanted.next().is_none() {
                        return Found::Act(*act);
                    }
                    begun = true;
                }
            }
        }
        if begun { Found::Begun } else { Found::Nothing }
    }

    /// The help page: keys and what they do; a title has no keys.
    pub(super) fn help(self, keymap: &Keymap) -> Vec<(String, &'static str)> {
        let mut page = Vec::new();
        let listed = |act: Act| self.parts().iter().any(|(_, rows)| rows.iter().any(|(_, a, _)| *a == act));
        for (title, rows) in self.parts() {
            page.push((String::new(), title));
            if title == "Time" {
                let own = |action| self.act_of(action).is_some_and(|act| !listed(act));
                page.extend(keymap.help(|action| own(action) || matches!(action, Action::Tenth(_))));
            }
            for (keys, act, text) in rows {
                let works = |k: &&str| {
                    let keys: Vec<Chord> = k.split(' ').map(Chord::parse).collect();
                    self.look_up(keymap, &keys) == Found::Act(*act)
                };
                let bound = keymap.bindings().iter().filter(|b| self.act_of(b.action) == Some(*act));
                let mut names: Vec<String> =
                    bound.flat_map(|b| &b.keys).map(|key| spelled_press(*key)).collect();
                for key in keys.iter().filter(|k| works(k)).map(|k| spelled(k)) {
                    // The same key has two names: Alt, and Esc before it.
                    if !names.iter().any(|name| *name == key || name.replace("Alt-", "Esc-") == key) {
                        names.push(key);
                    }
                }
                let keys = names;
                if !keys.is_empty() {
                    page.push((keys.join(" "), *text));
                }
            }
            match title {
                "Time" => page.push(("click".to_owned(), "on the timeline: to that place")),
                "Searching" => {
                    page.push((String::new(), "A pattern may begin with"));
                    page.extend(MODIFIERS.iter().map(|(keys, text)| ((*keys).to_owned(), *text)));
                }
                _ => {}
            }
        }
        page.push(("10j 50% 30→".to_owned(), "a number before a key is its N"));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of `less --help`, but for those of line editing.
    const LESS: &str = "h H q :q Q :Q ZZ e ^E j ^N CR y ^Y k ^K ^P f ^F ^V SPACE b ^B ESC-v z w ESC-SPACE d ^D u ^U ESC-) \
        RIGHT ESC-( LEFT ESC-} ^RIGHT ESC-{ ^LEFT F ESC-F r ^R ^L R / ? n N ESC-n ESC-N ESC-u ESC-U & g < ESC-< G > ESC-> \
        p % t T { ( [ } ) ] ESC-^F ESC-^B m M ' ^X^X ESC-M :e ^X^V :n :p :x :d = ^G :f - _ + ! | s v V";

    fn chords(spelling: &str) -> Vec<Chord> {
        let (escape, rest) =
            spelling.strip_prefix("ESC-").map_or((None, spelling), |r| (Some(Chord::ESCAPE), r));
        let mut keys: Vec<Chord> = escape.into_iter().collect();
        let named = [("CR", "Enter"), ("SPACE", "Space"), ("RIGHT", "Right"), ("LEFT", "Left")];
        let (ctrl, bare) = rest.strip_prefix('^').filter(|r| !r.is_empty()).map_or(("", rest), |r| ("C-", r));
        if let Some((_, name)) = named.iter().find(|(n, _)| *n == bare) {
            keys.push(Chord::parse(&format!("{ctrl}{name}")));
            return keys;
        }
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            match chars.next_if(|_| c == '^') {
                Some(c) => keys.push(Chord::parse(&format!("C-{}", c.to_ascii_lowercase()))),
                None => keys.push(Chord::parse(&c.to_string())),
            }
        }
        keys
    }

    #[test]
    fn every_key_of_less_does_something() {
        for tables in [KeyTables::Tape, KeyTables::Live] {
            for key in LESS.split_whitespace() {
                assert!(
                    matches!(tables.look_up(&Keymap::default(), &chords(key)), Found::Act(_)),
                    "{tables:?} {key}"
                );
            }
        }
    }

    #[test]
    fn what_is_ours_instead_is_this_and_no_more() {
        let ours = |tables: KeyTables| {
            let mut taken: Vec<&str> = Vec::new();
            for (_, rows) in tables.parts() {
                for (keys, act, _) in rows {
                    taken.extend(keys.iter().filter(|k| {
                        let keys: Vec<Chord> = k.split(' ').map(Chord::parse).collect();
                        tables.look_up(&Keymap::default(), &keys) != Found::Act(*act)
                    }));
                }
            }
            taken.join(" ")
        };
        assert_eq!(ours(KeyTables::Tape), "[ ] y Space Right Left < > { [ } ] ? t");
        assert_eq!(ours(KeyTables::Live), "Enter y p { [ } ] m ? t");
    }

    #[test]
    fn the_help_names_each_key_once() {
        for tables in [KeyTables::Tape, KeyTables::Live] {
            let mut seen = std::collections::HashSet::new();
            for (keys, text) in tables.help(&Keymap::default()) {
                assert!(!text.is_empty());
                for key in keys.split(' ').filter(|k| !k.is_empty() && text != "light up, but stay here") {
                    let modifier = MODIFIERS.iter().any(|(_, t)| *t == text);
                    assert!(modifier || seen.insert(key.to_owned()), "{tables:?}: {key} twice");
                }
            }
            assert!(seen.contains("Esc-v") && seen.contains("^E") && seen.contains("ZZ"), "{seen:?}");
        }
    }
}
