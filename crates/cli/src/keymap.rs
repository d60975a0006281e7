//! The keys of everything that plays a recording: `play`, `view` and the page. They are data, one
//! table for all, so that help and behaviour cannot disagree.

use tapdeck_term::keys::{Key, KeyPress, Mods};

/// A command of a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Play or pause.
    Pause,
    /// To the next output.
    StepOn,
    /// To the output before.
    StepBack,
    /// Five seconds forward.
    SkipOn,
    /// Five seconds back.
    SkipBack,
    /// A minute forward.
    LongSkipOn,
    /// A minute back.
    LongSkipBack,
    /// To the next marker or snapshot.
    MarkerOn,
    /// To the marker or snapshot before.
    MarkerBack,
    /// To a tenth of the length.
    Tenth(u8),
    /// Play faster.
    Faster,
    /// Play slower.
    Slower,
    /// Search.
    Search,
    /// To the next match.
    Next,
    /// To the start.
    Start,
    /// To the end.
    End,
    /// Move the part in sight up.
    PanUp,
    /// Move the part in sight down.
    PanDown,
    /// Move the part in sight to the left.
    PanLeft,
    /// Move the part in sight to the right.
    PanRight,
    /// Let the part in sight follow the cursor.
    Follow,
    /// Show the keys.
    Help,
    /// Leave.
    Quit,
}

impl Action {
    /// The name of the action, for tables outside of this program.
    pub fn name(self) -> &'static str {
        match self {
            Action::Pause => "pause",
            Action::StepOn => "step-on",
            Action::StepBack => "step-back",
            Action::SkipOn => "skip-on",
            Action::SkipBack => "skip-back",
            Action::LongSkipOn => "long-skip-on",
            Action::LongSkipBack => "long-skip-back",
            Action::MarkerOn => "marker-on",
            Action::MarkerBack => "marker-back",
            Action::Tenth(n) => TENTHS[usize::from(n).min(TENTHS.len() - 1)],
            Action::Faster => "faster",
            Action::Slower => "slower",
            Action::Search => "search",
            Action::Next => "next",
            Action::Start => "start",
            Action::End => "end",
            Action::PanUp => "pan-up",
            Action::PanDown => "pan-down",
            Action::PanLeft => "pan-left",
            Action::PanRight => "pan-right",
            Action::Follow => "follow",
            Action::Help => "help",
            Action::Quit => "quit",
        }
    }

    /// Whether it moves the part in sight of a picture that does not fit the terminal.
    pub fn pans(self) -> bool {
        use Action::{Follow, PanDown, PanLeft, PanRight, PanUp};
        matches!(self, PanUp | PanDown | PanLeft | PanRight | Follow)
    }
}

const TENTHS: [&str; 10] = [
    "tenth-0", "tenth-1", "tenth-2", "tenth-3", "tenth-4", "tenth-5", "tenth-6", "tenth-7", "tenth-8",
    "tenth-9",
];

/// Keys by their names, separated by spaces; the action; its text in the help.
const USUAL: &[(&str, Action, &str)] = &[
    ("Space", Action::Pause, "play or pause"),
    (".", Action::StepOn, "step to the next output"),
    (",", Action::StepBack, "step to the output before"),
    ("Right", Action::SkipOn, "5 seconds forward"),
    ("Left", Action::SkipBack, "5 seconds back"),
    ("S-Right", Action::LongSkipOn, "1 minute forward"),
    ("S-Left", Action::LongSkipBack, "1 minute back"),
    ("]", Action::MarkerOn, "next marker or snapshot"),
    ("[", Action::MarkerBack, "previous marker or snapshot"),
    ("0", Action::Tenth(0), TENTH),
    ("1", Action::Tenth(1), TENTH),
    ("2", Action::Tenth(2), TENTH),
    ("3", Action::Tenth(3), TENTH),
    ("4", Action::Tenth(4), TENTH),
    ("5", Action::Tenth(5), TENTH),
    ("6", Action::Tenth(6), TENTH),
    ("7", Action::Tenth(7), TENTH),
    ("8", Action::Tenth(8), TENTH),
    ("9", Action::Tenth(9), TENTH),
    (">", Action::Faster, "faster"),
    ("<", Action::Slower, "slower"),
    ("/", Action::Search, "search"),
    ("n", Action::Next, "next match"),
    ("g Home", Action::Start, "to the start"),
    ("G End", Action::End, "to the end"),
    ("Up k", Action::PanUp, "move the view up"),
    ("Down j", Action::PanDown, "move the view down"),
    ("M-Left", Action::PanLeft, "move the view left"),
    ("M-Right", Action::PanRight, "move the view right"),
    ("F", Action::Follow, "follow the cursor again"),
    ("?", Action::Help, "show or hide the keys"),
    ("q Q C-c", Action::Quit, "quit"),
];

const TENTH: &str = "jump to that tenth";

/// Keys that have one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The keys, each of which does it.
    pub keys: Vec<KeyPress>,
    /// What they do.
    pub action: Action,
    /// The text in the help.
    pub text: &'static str,
}

/// The keys of a player and what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bindings = USUAL.iter().map(|(keys, action, text)| Binding {
            keys: keys.split(' ').filter_map(|name| name.parse().ok()).map(plain).collect(),
            action: *action,
            text,
        });
        Self { bindings: bindings.collect() }
    }
}

impl Keymap {
    /// The bindings, in the order of the help.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The usual keys, with other ones for these actions: names of actions, and of their keys,
    /// separated by spaces.
    ///
    /// # Errors
    /// With the reason, when a key does not exist or has two actions.
    pub fn with<'a>(others: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, (String, String)> {
        let mut keymap = Self::default();
        let mut changed = Vec::new();
        for (name, keys) in others {
            let wrong = |why: String| (name.to_owned(), why);
            let binding = keymap.bindings.iter_mut().find(|binding| binding.action.name() == name);
            let binding = binding.ok_or_else(|| wrong("there is no such action".into()))?;
            let keys = keys.split(' ').filter(|key| !key.is_empty());
            let parsed: Result<Vec<KeyPress>, _> = keys.map(|key| key.parse().map(plain)).collect();
            let parsed = parsed.map_err(|e| wrong(e.to_string()))?;
            if std::mem::replace(&mut binding.keys, parsed.clone()) != parsed {
                changed.push(name);
            }
        }
        for name in changed {
            let of = |binding: &&Binding| binding.action.name() == name;
            for key in keymap.bindings.iter().find(of).into_iter().flat_map(|binding| &binding.keys) {
                let other = keymap.bindings.iter().find(|b| b.action.name() != name && b.keys.contains(key));
                if let Some(other) = other {
                    let why = format!("{key} is the key of {}, too", other.action.name().replace('-', "_"));
                    return Err((name.to_owned(), why));
                }
            }
        }
        Ok(keymap)
    }

    /// The action of a key.
    pub fn action_of(&self, key: KeyPress) -> Option<Action> {
        let key = plain(key);
        self.bindings.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
    }

    /// The lines of a help page for the actions that `has` accepts: keys, and what they do.
    pub fn help(&self, has: impl Fn(Action) -> bool) -> Vec<(String, &'static str)> {
        let mut lines: Vec<(String, &'static str)> = Vec::new();
        for binding in self.bindings.iter().filter(|binding| has(binding.action)) {
            let keys = binding.keys.iter().map(|key| spelled(*key)).collect::<Vec<_>>().join(" ");
            match lines.last_mut() {
                // The tenths are one line, from the first key to the last.
                Some((all, text)) if *text == binding.text => {
                    let first = all.split('-').next().unwrap_or_default().to_owned();
                    *all = format!("{first}-{keys}");
                }
                _ => lines.push((keys, binding.text)),
            }
        }
        lines
    }
}

/// A key as it is compared: whether a character needs Shift depends on the keyboard.
fn plain(key: KeyPress) -> KeyPress {
    let mut mods = Mods::NONE;
    for held in [Mods::CTRL, Mods::ALT, Mods::SHIFT] {
        if key.mods.contains(held) && !(held == Mods::SHIFT && matches!(key.key, Key::Char(_))) {
            mods = mods.with(held);
        }
    }
    KeyPress::new(key.key, mods)
}

/// A key as a help page shows it.
pub fn spelled(key: KeyPress) -> String {
    let bare = match key.key {
        Key::Left => "←".to_owned(),
        Key::Right => "→".to_owned(),
        Key::Up => "↑".to_owned(),
        Key::Down => "↓".to_owned(),
        Key::Char(' ') => "space".to_owned(),
        _ => KeyPress::new(key.key, Mods::NONE).to_string(),
    };
    if let (Key::Char(c), true) = (key.key, key.mods == Mods::CTRL) {
        return format!("^{}", c.to_uppercase());
    }
    let held = [(Mods::CTRL, "Ctrl-"), (Mods::ALT, "Alt-"), (Mods::SHIFT, "Shift-")];
    let names: String = held.iter().filter(|(m, _)| key.mods.contains(*m)).map(|(_, name)| *name).collect();
    names + &bare
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of a page: a row for each key that browsers leave to it.
    fn page_table(keymap: &Keymap) -> String {
        let mut table = "// The keys of the player, made from the keymap of the command by its own test: name, action, text.\n\
                         export const KEYS = [\n"
            .to_owned();
        for binding in keymap.bindings().iter().filter(|binding| !binding.action.pans()) {
            for key in binding.keys.iter().filter(|key| !key.mods.contains(Mods::CTRL)) {
                let texts = [&key.to_string(), binding.action.name(), binding.text];
                let row = texts.map(|text| serde_json::json!(text).to_string()).join(", ");
                table += &format!("  [{row}],\n");
            }
        }
        table + "];\n"
    }

    /// `UPDATE_DOCS=1` writes the table anew.
    #[test]
    fn the_page_has_the_same_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/src/web/page/keymap.js");
        let table = page_table(&Keymap::default());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &table).expect("written");
        }
        let page = std::fs::read_to_string(path).expect("the page's table");
        assert_eq!(page, table, "run this test with UPDATE_DOCS=1");
    }

    /// The page of an export is one file and has a table of its own.
    #[test]
    fn an_exported_page_obeys_the_same_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tape/src/export/player.js");
        let script = std::fs::read_to_string(path).expect("the script");
        let exempt = |action| matches!(action, Action::Quit | Action::Next | Action::Tenth(_));
        for binding in Keymap::default().bindings() {
            if binding.action.pans() || exempt(binding.action) {
                continue;
            }
            for key in &binding.keys {
                let name = key.to_string().replace("S-", "Shift+").replace("Space", " ");
                let name = name.replace("Left", "ArrowLeft").replace("Right", "ArrowRight");
                let there = [format!("\n      \"{name}\": "), format!("\n      {name}: ")];
                assert!(there.iter().any(|entry| script.contains(entry.as_str())), "{name} is missing");
            }
        }
    }

    #[test]
    fn every_key_has_a_name_and_one_action() {
        let keymap = Keymap::default();
        let mut seen = std::collections::HashSet::new();
        for (binding, (keys, ..)) in keymap.bindings().iter().zip(USUAL) {
            assert_eq!(binding.keys.len(), keys.split(' ').count(), "{keys}: a name is wrong");
            for key in &binding.keys {
                assert!(seen.insert(*key), "{key} twice");
                assert_eq!(keymap.action_of(*key), Some(binding.action), "{key}");
            }
        }
    }

    #[test]
    fn the_help_has_a_line_for_each_action() {
        let help = Keymap::default().help(|action| !action.pans());
        for (keys, text) in
            [("0-9", TENTH), ("Shift-→", "1 minute forward"), ("space", "play or pause"), ("q Q ^C", "quit")]
        {
            assert!(help.contains(&(keys.to_owned(), text)), "{keys}: {help:?}");
        }
        assert!(!help.iter().any(|(keys, _)| keys.contains('↑')));
    }
}
