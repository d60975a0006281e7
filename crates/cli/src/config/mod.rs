//! The user's configuration: `$TAPDECK_CONFIG`, or `tapdeck/config.toml` under `$XDG_CONFIG_HOME`
//! (`~/.config`). A file that is not there is an empty one. A file that is wrong is an error of
//! every command that reads it, in the same words: the line, what is wrong, and what was probably
//! meant.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tapdeck::paths;
use tapdeck_core::turns::AgentState;
use tapdeck_core::withhold::SecretPrompts;
use tapdeck_host::NAME_PLACEHOLDERS;
use toml::de::{DeTable, DeValue};

use crate::failure::{Failure, Result};
use crate::{formats, parse};
use tapdeck_tape::nearest;

mod settings;
mod themes;
#[cfg(feature = "tui")]
pub(crate) use settings::Notifications;
pub(crate) use settings::{Alert, Config, Hooks, Key, Pass, Scrollback, Strict, TABLES, Table};
pub(crate) use themes::OWN_THEME;

/// The longest configuration, in bytes.
const MAX: u64 = 1 << 20;

impl Config {
    /// Reads the configuration.
    pub(crate) fn load() -> Result<Self> {
        Ok(ConfigFile::read()?.config)
    }
}

/// The configuration, with the file that it comes from.
pub(crate) struct ConfigFile {
    /// Where the file is, or would be; `None` for a user without a home.
    pub(crate) path: Option<PathBuf>,
    /// Whether there is a file.
    pub(crate) exists: bool,
    pub(crate) config: Config,
    /// The line of each setting that the file has, by table and name.
    lines: Lines,
}

type Lines = BTreeMap<(String, String), usize>;

impl ConfigFile {
    /// Reads the configuration.
    ///
    /// # Errors
    /// When the file cannot be read or is wrong.
    pub(crate) fn read() -> Result<Self> {
        let path = paths::config_file();
        let Some(text) = path.as_ref().map(read_text).transpose()?.flatten() else {
            return Ok(Self { path, exists: false, config: Config::default(), lines: Lines::new() });
        };
        let (config, lines) = parse(&text).map_err(|wrong| {
            let place = path.as_deref().unwrap_or(Path::new("")).display();
            Failure::usage(format!("{place}:{}: {}", wrong.line, wrong.message))
        })?;
        Ok(Self { path, exists: true, config, lines })
    }

    /// The settings of the user's own themes: table, name, value and line, each table preceded by
    /// an entry without a name.
    pub(crate) fn own_themes(&self) -> Vec<(&str, &str, Value, usize)> {
        let mut found = Vec::new();
        for ((place, name), line) in &self.lines {
            let own = place.strip_prefix("themes.").and_then(|theme| self.config.themes.get(theme));
            if let Some(own) = own {
                let all = serde_json::to_value(own).unwrap_or_default();
                let value = all.get(name).cloned().unwrap_or_default();
                found.push((place.as_str(), name.as_str(), value, *line));
            }
        }
        found
    }

    /// The line where the file has this setting.
    pub(crate) fn line(&self, key: Key) -> Option<usize> {
        self.lines.get(&(key.table.to_owned(), key.name.to_owned())).copied()
    }
}

/// The text of the file; `None` if it does not exist and need not.
fn read_text(path: &PathBuf) -> Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A file that the user has named must exist.
        Err(e) if e.kind() == ErrorKind::NotFound && paths::named_config_file().is_none() => return Ok(None),
        Err(e) => return Err(Failure::file(path, &e)),
    };
    let mut text = String::new();
    let read = file.take(MAX + 1).read_to_string(&mut text).map_err(|e| Failure::file(path, &e))?;
    if read as u64 > MAX {
        return Err(Failure::usage(format!("{}: the configuration is longer than 1 MiB", path.display())));
    }
    Ok(Some(text))
}

/// What is wrong in a configuration.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    message: String,
}

/// Reads a configuration. Of several mistakes, returns the one that comes first in the file.
fn parse(text: &str) -> Result<(Config, Lines), Wrong> {
    let line_at = |at: usize| text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
    let line_of = |e: &toml::de::Error| line_at(e.span().map_or(0, |span| span.start));
    let tables = DeTable::parse(text)
        .map_err(|e| Wrong { line: line_of(&e), message: e.message().trim_end().to_owned() })?;
    let mut lines = Lines::new();
    let mut mistakes = Vec::new();
    for (name, value) in tables.get_ref() {
        let line = line_at(name.span().start);
        let name = name.get_ref().as_ref();
        match (name, value.get_ref(), TABLES.iter().find(|table| table.name == name)) {
            ("themes", DeValue::Table(themes), _) => {
                for (name, value) in themes {
                    let place = format!("themes.{}", name.get_ref());
                    let line = line_at(name.span().start);
                    lines.insert((place.clone(), String::new()), line);
                    match value.get_ref() {
                        DeValue::Table(keys) => {
                            note_keys(&OWN_THEME, &place, keys, &mut lines, &mut mistakes, line_at);
                        }
                        _ => {
                            let message =
                                format!("a theme is a table: write [{place}], and its colors below");
                            mistakes.push(Wrong { line, message });
                        }
                    }
                }
            }
            (_, _, None) => mistakes.push(Wrong { line, message: unknown_table(name) }),
            (_, DeValue::Table(keys), Some(table)) => {
                note_keys(table, name, keys, &mut lines, &mut mistakes, line_at);
            }
            _ => {
                let message = format!("{name:?} is a table: write [{name}], and its settings below");
                mistakes.push(Wrong { line, message });
            }
        }
    }
    let config = toml::from_str(text).map_err(|e| {
        let line = line_of(&e);
        let key = lines.iter().find(|(_, at)| **at == line).map(|((_, key), _)| key.as_str());
        mistakes.push(Wrong { line, message: wrong_value(key.unwrap_or_default(), e.message()) });
    });
    mistakes.extend(config.iter().flat_map(|config| failed_checks(config, &lines)));
    // Where a mistake has two messages, the first one is more precise.
    match (mistakes.into_iter().min_by_key(|wrong| wrong.line), config) {
        (None, Ok(config)) => Ok((config, lines)),
        (wrong, _) => Err(wrong.unwrap_or(Wrong { line: 1, message: String::new() })),
    }
}

/// What is wrong in a configuration whose settings all have the right type.
fn failed_checks(config: &Config, lines: &Lines) -> Vec<Wrong> {
    let wrong = |table: &str, name: &str, why: &str| Wrong {
        line: lines.get(&(table.to_owned(), name.to_owned())).copied().unwrap_or(1),
        message: if name.is_empty() { why.to_owned() } else { format!("{name}: {why}") },
    };
    let theme = config.check_themes().err();
    let theme =
        theme.map(|(theme, key, why)| wrong(&format!("themes.{theme}"), key.unwrap_or_default(), &why));
    let checks = CHECKS
        .iter()
        .filter_map(|(table, name, check)| check(config).err().map(|why| wrong(table, name, &why)));
    let keys = config.keymap().err().map(|(name, why)| wrong("keys", &name, &why));
    theme.into_iter().chain(checks).chain(keys).collect()
}

/// A value of the wrong type, in the words of the file instead of those of the parser.
fn wrong_value(key: &str, message: &str) -> String {
    let message = message.trim_end();
    let said = match message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected ")) {
        Some((found, wanted)) => {
            let wanted = match wanted {
                "a boolean" => "true or false",
                "a sequence" => "a list such as [\"a\", \"b\"]",
                "a string" => "text in quotes",
                "f64" => "a number",
                "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
                other => other,
            };
            let value = found.split_once(' ').map_or(found, |(_, value)| value.trim_matches('`'));
            format!("expected {wanted}, and not {value}")
        }
        None => message.to_owned(),
    };
    if key.is_empty() { said } else { format!("{key}: {said}") }
}

/// Notes the line of each setting of a table, which is called `place` in this file.
fn note_keys(
    table: &Table,
    place: &str,
    keys: &DeTable<'_>,
    lines: &mut Lines,
    mistakes: &mut Vec<Wrong>,
    line_at: impl Fn(usize) -> usize,
) {
    for key in keys.keys() {
        let (line, name) = (line_at(key.span().start), key.get_ref().as_ref());
        if table.keys.iter().any(|key| key.name == name) {
            lines.insert((place.to_owned(), name.to_owned()), line);
        } else {
            mistakes.push(Wrong { line, message: unknown_key(table, place, name) });
        }
    }
}

/// A check of one setting: its table, its name, and what must hold.
type Check = (&'static str, &'static str, fn(&Config) -> Result<(), String>);

/// What types do not check.
const NONE: &[&str] = &[];

const CHECKS: &[Check] = &[
    ("play", "speed", |config| parse::speed(&config.play.speed.to_string()).map(drop)),
    ("play", "theme", |config| config.check_theme(&config.play.theme)),
    ("view", "theme", |config| config.check_theme(&config.view.theme)),
    ("theme", "name", |config| config.check_theme(&config.theme.name)),
    ("web", "theme", |config| config.check_theme(&config.web.theme)),
    ("hooks", "states", |config| check_states(&config.hooks.states)),
    ("notifications", "states", |config| check_states(&config.notifications.states)),
    ("notifications", "terminal", |config| match config.notifications.terminal.as_str() {
        "none" | "osc9" | "osc777" => Ok(()),
        other => Err(format!("expected \"osc9\", \"osc777\" or \"none\", and not {other:?}")),
    }),
    ("attach", "detach_keys", |config| parse::detach_keys(&config.attach.detach_keys).map(drop)),
    ("rec", "name", |config| check_recording_name(&config.rec.name)),
    ("rec", "secret_prompts", |config| SecretPrompts::new(&config.rec.secret_prompts, NONE).map(drop)),
    ("rec", "ignored_prompts", |config| SecretPrompts::new(NONE, &config.rec.ignored_prompts).map(drop)),
];

fn check_recording_name(name: &str) -> Result<(), String> {
    if name.contains('/') {
        return Err("it is a name, not a path: the folder is a setting of its own".into());
    }
    if name.trim().is_empty() {
        return Err("it is empty; write for instance \"{date}-{time}.ahr\"".into());
    }
    let mut plain = String::from("x");
    let mut rest = name;
    while let Some((before, (placeholder, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        if !NAME_PLACEHOLDERS.contains(&placeholder) {
            let known = match nearest::name(placeholder, NAME_PLACEHOLDERS.iter().copied()) {
                Some(meant) => format!("did you mean {{{meant}}}?"),
                None => format!("use {{{}}}", NAME_PLACEHOLDERS.join("}, {")),
            };
            return Err(format!("unknown placeholder {{{placeholder}}}; {known}"));
        }
        plain.push_str(before);
        rest = after;
    }
    plain.push_str(rest);
    formats::recorded(&plain, None).map(drop)
}

fn check_states(names: &[String]) -> Result<(), String> {
    let check = |name: &String| name.parse::<AgentState>().map(drop).map_err(|e| e.to_string());
    names.iter().try_for_each(check)
}

fn unknown_table(name: &str) -> String {
    let home = TABLES.iter().find(|table| table.keys.iter().any(|key| key.name == name));
    match (nearest::name(name, TABLES.iter().map(|table| table.name)), home) {
        (Some(meant), _) => format!("there is no table [{name}]; did you mean [{meant}]?"),
        (None, Some(table)) => format!("{name:?} belongs in a table: write [{}] above it", table.name),
        (None, None) => {
            format!("there is no table [{name}]; `tapdeck config show` lists what can be set")
        }
    }
}

fn unknown_key(table: &Table, place: &str, name: &str) -> String {
    let home = TABLES.iter().find(|table| table.keys.iter().any(|key| key.name == name));
    match (nearest::name(name, table.keys.iter().map(|key| key.name)), home) {
        (_, Some(home)) => format!("[{place}] has no setting {name:?}; [{}] has", home.name),
        (Some(meant), None) => format!("[{place}] has no setting {name:?}; did you mean {meant:?}?"),
        (None, None) => {
            let names: Vec<_> = table.keys.iter().map(|key| key.name).collect();
            format!("[{place}] has no setting {name:?}; it has {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_cli::keymap::Keymap;
    use tapdeck_term::{Rgb, Theme};

    use super::*;

    #[test]
    fn what_is_left_out_is_as_usual_and_what_is_wrong_has_a_line() {
        assert_eq!(parse("").map(|(config, _)| config), Ok(Config::default()));
        let (config, lines) =
            parse("[view]\nbranch_command = [\"git\", \"{snapshot}\"]\n").expect("it is right");
        assert_eq!(config.view.branch_command, ["git", "{snapshot}"]);
        assert!(config.view.mouse);
        assert_eq!(lines.into_values().collect::<Vec<_>>(), [2]);
        for (bad, line, what) in [
            ("[view]\nmuose = true", 2, "[view] has no setting \"muose\"; did you mean \"mouse\"?"),
            ("[view]\n\nmouse = 3", 3, "mouse: expected true or false, and not 3"),
            ("[web]\nport = \"x\"", 2, "port: expected a whole number, and not \"x\""),
            (
                "[hooks]\nstates = \"idle\"",
                2,
                "states: expected a list such as [\"a\", \"b\"], and not \"idle\"",
            ),
            ("[web]\nprot = 1\n[attach]\nhnit = true", 2, "did you mean \"port\"?"),
            ("[play]\nspeed = 0\n[attach]\nhnit = true", 2, "speed: the speed must be between"),
            ("[attach]\nhnit = true\n[view]\nmouse = 3", 2, "did you mean \"hint\"?"),
            ("[veiw]", 1, "there is no table [veiw]; did you mean [view]?"),
            ("\nspeed = 2", 2, "\"speed\" belongs in a table: write [play] above it"),
            ("[view]\nspeed = 2", 2, "[view] has no setting \"speed\"; [play] has"),
            ("view = 3", 1, "\"view\" is a table"),
            ("[colour]\nx = 3", 1, "there is no table [colour]; `tapdeck config show` lists"),
            ("[play]\nspeed = 0", 2, "speed: the speed must be between"),
            ("[play]\nidle_limit = \"2 weeks\"", 2, "idle_limit: expected a duration"),
            ("[attach]\n\ndetach_keys = \"a b c\"", 3, "detach_keys: "),
            ("[keys]\npause = \"Spce\"", 2, "pause: "),
            ("[keys]\nsearch = \"q\"", 2, "search: q is the key of quit, too"),
            ("[hooks]\nstates = [\"blokced\"]", 2, "states: no state is called \"blokced\""),
            ("[notifications]\nterminal = \"osc8\"", 2, "terminal: expected \"osc9\""),
            ("[rec]\nname = \"a/b\"", 2, "the folder is a setting of its own"),
            ("[rec]\nname = \" \"", 2, "name: it is empty; write for instance"),
            ("[rec]\nname = \"x.gif\"", 2, "name: unsupported output format \".gif\"; supported: .ahr"),
            ("[rec]\n\nname = \"{dat}.ahr\"", 3, "unknown placeholder {dat}; did you mean {date}?"),
            ("[rec]\nname = \"{}.ahr\"", 2, "unknown placeholder {}; use {date}, {time}, {program}, {pid}"),
            (
                "[play]\ntheme = \"drak\"",
                2,
                "theme: there is no theme \"drak\"; did you mean \"dark\"? Themes: ",
            ),
            ("[theme]\nname = \"x\"", 2, "dark, light, high-contrast, sepia, dracula"),
            ("[web]\ntheme = \"x\"\n[themes.mine]", 2, "dracula, mine"),
            ("[themes.mine]\nforegruond = \"#000000\"", 2, "did you mean \"foreground\"?"),
            ("[themes.mine]\n\nforeground = \"black\"", 3, "foreground: expected a color such as"),
            ("[themes.mine]\nansi = [\"#000000\"]", 2, "ansi: expected 8 or 16 colors, and not 1"),
            (
                "[themes.mine]\nbase = \"lihgt\"",
                2,
                "base: there is no theme \"lihgt\"; did you mean \"light\"?",
            ),
            ("[themes]\nmine = 3", 2, "write [themes.mine]"),
            ("\n[themes.dark]", 2, "the name \"dark\" is taken"),
            ("[", 1, ""),
        ] {
            let wrong = parse(bad).expect_err(bad);
            assert!(wrong.line == line && wrong.message.contains(what), "{bad}: {wrong:?}");
        }
    }

    /// Whatever the defaults are, the file that `init` writes says the same.
    #[test]
    fn every_default_can_be_written_and_read() {
        for table in TABLES {
            for key in table.keys {
                let text = format!("[{}]\n{} = {}", table.name, key.name, Config::default().value(*key));
                assert_eq!(parse(&text).map(|(config, _)| config), Ok(Config::default()), "{text}");
            }
        }
    }

    /// The settings list the usual keys of every action but the tenths.
    #[test]
    fn the_keys_are_those_of_the_keymap() {
        let usual = Keymap::default();
        assert_eq!(Config::default().keymap(), Ok(usual.clone()));
        let table = TABLES.iter().find(|table| table.name == "keys").expect("a table");
        let actions = usual.bindings().iter().map(|binding| binding.action.name().replace('-', "_"));
        let actions: Vec<_> = actions.filter(|name| !name.starts_with("tenth")).collect();
        assert_eq!(table.keys.iter().map(|key| key.name).collect::<Vec<_>>(), actions);
        let (config, _) = parse("[keys]\npause = \"p\"\nquit = \"x C-c\"").expect("it is right");
        let keymap = config.keymap().expect("no key twice");
        let action = |key: &str| keymap.action_of(key.parse().expect("a key")).map(|action| action.name());
        assert_eq!(
            [action("p"), action("Space"), action("x"), action("q")],
            [Some("pause"), None, Some("quit"), None]
        );
    }

    #[test]
    fn themes_are_chosen_by_the_first_that_says_something() {
        let text = "[theme]\nname = \"mine\"\n[play]\ntheme = \"none\"\n[themes.mine]\nbase = \"light\"\n\
                    background = \"#010203\"\nansi = [\"#000000\", \"#000001\", \"#000002\", \"#000003\", \
                    \"#000004\", \"#000005\", \"#000006\", \"#000007\"]";
        let (config, _) = parse(text).expect("it is right");
        let light = Theme::named("light").expect("a theme");
        let mine = config.theme_named("mine").expect("a theme");
        assert_eq!((mine.foreground, mine.cursor), (light.foreground, light.cursor));
        assert_eq!((mine.background, mine.ansi[12]), (Rgb(1, 2, 3), Rgb(0, 0, 4)));
        let chosen = |option, own: &str| config.choose_theme(option, own).expect("a theme");
        assert_eq!(chosen(Some("dark"), "light"), Theme::named("dark"));
        assert_eq!(chosen(None, "light"), Some(light));
        assert_eq!(chosen(None, ""), Some(mine));
        assert_eq!(chosen(None, &config.play.theme), None);
        assert_eq!(Config::default().choose_theme(None, ""), Ok(None));
        assert_eq!(config.all_themes().last().map(|(name, _)| name.as_str()), Some("mine"));
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        for text in ["\"2s\"", "\"500ms\"", "\"none\"", "1.5", "2"] {
            let (config, _) = parse(&format!("[play]\nidle_limit = {text}")).expect(text);
            let table = TABLES.iter().find(|table| table.name == "play").expect("a table");
            let key = table.keys.iter().find(|key| key.name == "idle_limit").expect("a setting");
            let again = config.value(*key);
            let (second, _) = parse(&format!("[play]\nidle_limit = {again}")).expect(text);
            assert_eq!(config, second, "{text}");
        }
    }
}
