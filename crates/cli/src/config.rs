//! The user's configuration: `$TAPDECK_CONFIG`, or `tapdeck/config.toml` under `$XDG_CONFIG_HOME`
//! (`~/.config`). A file that is not there is an empty one; one that cannot be understood is an
//! error that names the place, so that a typing error does not go unnoticed.

use std::fs::File;
use std::io::Read;

use serde::Deserialize;
use tapdeck::paths;

/// The longest configuration, in bytes.
const MAX: u64 = 1 << 20;

/// Everything that can be configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The viewer.
    pub(crate) view: View,
    /// The hooks.
    pub(crate) hooks: Hooks,
    /// Attached terminals.
    pub(crate) attach: Attach,
    /// Keys that work in every window.
    pub(crate) hotkeys: Hotkeys,
}

/// `[hotkeys]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Hotkeys {
    /// The key that captures.
    pub(crate) capture: String,
    /// The key that pastes.
    pub(crate) paste: String,
    /// Whether to show a desktop notification for each action.
    pub(crate) notify: bool,
}

impl Default for Hotkeys {
    fn default() -> Self {
        Self { capture: "Ctrl+Alt+C".into(), paste: "Ctrl+Alt+V".into(), notify: false }
    }
}

/// `[attach]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Attach {
    /// The keys to leave with, one or two; `none` for none.
    pub(crate) detach_keys: String,
}

impl Default for Attach {
    fn default() -> Self {
        Self { detach_keys: "C-\\ d".into() }
    }
}

/// `[hooks]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Hooks {
    /// Program and arguments; `{session}`, `{name}`, `{state}` and `{rule}` are filled in.
    pub(crate) on_state: Vec<String>,
    /// The states that it is run for; all when empty.
    pub(crate) states: Vec<String>,
    /// Whether the bell of this terminal is rung.
    pub(crate) bell: bool,
    /// Whether to show a desktop notification.
    pub(crate) notify: bool,
}

/// `[view]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct View {
    /// Program and arguments that branch a session; `{recording}`, `{snapshot}`, `{label}`,
    /// `{anchor}` and `{text}` are filled in.
    pub(crate) branch_command: Vec<String>,
    /// Whether the mouse is used.
    pub(crate) mouse: bool,
    /// Rows kept above the screen.
    pub(crate) scrollback: usize,
}

impl Default for View {
    fn default() -> Self {
        Self { branch_command: Vec::new(), mouse: true, scrollback: 200_000 }
    }
}

impl Config {
    /// Reads the configuration.
    pub(crate) fn load() -> Result<Self, String> {
        let Some(path) = paths::config_file() else { return Ok(Self::default()) };
        let fail = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let file = match File::open(&path) {
            Ok(file) => file,
            // A file that the user has named must exist.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && paths::named_config_file().is_none() => {
                return Ok(Self::default());
            }
            Err(e) => return Err(fail(&e)),
        };
        let mut text = String::new();
        let read = file.take(MAX + 1).read_to_string(&mut text).map_err(|e| fail(&e))?;
        if read as u64 > MAX {
            return Err(fail(&"the configuration is longer than 1 MiB"));
        }
        Self::parse(&text).map_err(|e| fail(&e))
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text.bytes().take(span.start).filter(|b| *b == b'\n').count() + 1);
            match line {
                Some(line) => format!("line {line}: {}", e.message()),
                None => e.message().to_owned(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_as_usual_and_what_is_wrong_has_a_line() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
        let config =
            Config::parse("[view]\nbranch_command = [\"git\", \"{snapshot}\"]\n").expect("it is right");
        assert_eq!(config.view.branch_command, ["git", "{snapshot}"]);
        assert!(config.view.mouse);
        for (bad, what) in [
            ("[view]\nmuose = true", "line 2"),
            ("[view]\n\nmouse = 3", "line 3"),
            ("[veiw]", "line 1"),
            ("[", "line 1"),
        ] {
            let message = Config::parse(bad).expect_err(bad);
            assert!(message.contains(what), "{bad}: {message}");
        }
    }
}
