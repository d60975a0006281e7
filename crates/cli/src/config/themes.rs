//! Themes by name: the built-in ones, and the user's own.

use serde::{Deserialize, Serialize};
use tapdeck_term::{Rgb, Theme};

use super::settings::{Config, Key, Table};
use tapdeck_tape::nearest;

/// The name of no theme: a terminal keeps its own colours.
const NONE: &str = "none";

/// A theme of the user, `[themes.NAME]`. What it leaves out is as in the theme that it is based on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OwnTheme {
    base: Option<String>,
    foreground: Option<String>,
    background: Option<String>,
    cursor: Option<String>,
    ansi: Option<Vec<String>>,
}

const fn key(name: &'static str, text: &'static [&'static str]) -> Key {
    Key { table: "themes.NAME", name, text }
}

/// The settings of a theme. Their defaults are the colours of `dark`.
pub(crate) const OWN_THEME: Table = Table {
    name: "themes.NAME",
    text: &[" Your own theme, by a name that you choose. Colors are written as `\"#rrggbb\"`."],
    keys: &[
        key("base", &[" Built-in theme that supplies the missing settings."]),
        key("foreground", &[" Text of the default color."]),
        key("background", &[" The background of the screen."]),
        key("cursor", &[" The cursor."]),
        key(
            "ansi",
            &[
                " The 16 ANSI colors: black, red, green, yellow, blue, magenta, cyan, white, and their bright",
                " variants. With 8 colors, the bright ones are like the others.",
            ],
        ),
    ],
};

impl OwnTheme {
    /// A theme with every setting, that of the default theme.
    pub(super) fn usual() -> Self {
        let theme = Theme::default();
        let text = |colour: Rgb| Some(colour.to_string());
        Self {
            base: Some("dark".into()),
            foreground: text(theme.foreground),
            background: text(theme.background),
            cursor: text(theme.cursor),
            ansi: Some(theme.ansi.map(|colour| colour.to_string()).to_vec()),
        }
    }

    /// The colours.
    ///
    /// # Errors
    /// With the setting and the reason, when one makes no sense.
    pub(super) fn theme(&self) -> Result<Theme, (&'static str, String)> {
        let base = match self.base.as_deref() {
            None => Theme::default(),
            Some(name) => {
                let known = Theme::BUILT_IN.iter().map(|(name, _)| *name);
                Theme::named(name).ok_or_else(|| ("base", unknown(name, known)))?
            }
        };
        let colour = |name, text: &Option<String>, usual| match text {
            None => Ok(usual),
            Some(text) => text.parse::<Rgb>().map_err(|e| (name, format!("{e}, and not {text:?}"))),
        };
        let foreground = colour("foreground", &self.foreground, base.foreground)?;
        // A cursor that is not set must not vanish on another background.
        let cursor = if self.foreground.is_some() { foreground } else { base.cursor };
        Ok(Theme {
            foreground,
            background: colour("background", &self.background, base.background)?,
            cursor: colour("cursor", &self.cursor, cursor)?,
            ansi: match &self.ansi {
                None => base.ansi,
                Some(texts) => ansi(texts).map_err(|why| ("ansi", why))?,
            },
        })
    }
}

fn ansi(texts: &[String]) -> Result<[Rgb; 16], String> {
    if ![8, 16].contains(&texts.len()) {
        return Err(format!("expected 8 or 16 colors, and not {}", texts.len()));
    }
    let parsed = |text: &String| text.parse::<Rgb>().map_err(|e| format!("{e}, and not {text:?}"));
    let colours = texts.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
    Ok(std::array::from_fn(|i| colours[i % colours.len()]))
}

/// What to say about a theme that does not exist.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let meant = nearest::name(name, known.iter().copied());
    let meant = meant.map(|meant| format!("did you mean {meant:?}? ")).unwrap_or_default();
    format!("there is no theme {name:?}; {meant}Themes: {}", known.join(", "))
}

impl Config {
    /// All themes by their names, the built-in ones first.
    pub(crate) fn all_themes(&self) -> Vec<(String, Theme)> {
        let built_in = Theme::BUILT_IN.iter().map(|(name, theme)| ((*name).to_owned(), *theme));
        // Reading the configuration has checked the user's own.
        let own = self.themes.iter().filter_map(|(name, own)| Some((name.clone(), own.theme().ok()?)));
        built_in.chain(own).collect()
    }

    /// Finds a theme by its name.
    ///
    /// # Errors
    /// With the names that there are, when none is like it.
    pub(crate) fn theme_named(&self, name: &str) -> Result<Theme, String> {
        let all = self.all_themes();
        let found = all.iter().find(|(known, _)| known == name).map(|(_, theme)| *theme);
        found.ok_or_else(|| unknown(name, all.iter().map(|(known, _)| known.as_str())))
    }

    /// The theme that an option or a setting names, the first that says something; `None` where
    /// none does, or where it is `none`.
    ///
    /// # Errors
    /// When there is no theme of that name.
    pub(crate) fn choose_theme(&self, option: Option<&str>, own: &str) -> Result<Option<Theme>, String> {
        let chosen = option.into_iter().chain([own, &self.theme.name]).find(|name| !name.is_empty());
        chosen.filter(|name| *name != NONE).map(|name| self.theme_named(name)).transpose()
    }

    /// Checks the name that an option or a setting has for a theme.
    pub(crate) fn check_theme(&self, name: &str) -> Result<(), String> {
        if name.is_empty() || name == NONE { Ok(()) } else { self.theme_named(name).map(drop) }
    }

    /// Checks the user's themes.
    ///
    /// # Errors
    /// With the theme, its setting if one is wrong, and the reason.
    pub(super) fn check_themes(&self) -> Result<(), (String, Option<&'static str>, String)> {
        for (name, own) in &self.themes {
            if Theme::named(name).is_some() || name == NONE {
                let why = format!("the name {name:?} is taken: choose another one");
                return Err((name.clone(), None, why));
            }
            own.theme().map_err(|(key, why)| (name.clone(), Some(key), why))?;
        }
        Ok(())
    }
}
