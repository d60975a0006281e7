//! Every setting, declared once: its table, name, type, default and description. The structs that
//! commands read, `tapdeck config` and the reference page of the manual all come from here.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapdeck_cli::keymap::Keymap;

use super::themes::{OWN_THEME, OwnTheme};
use crate::parse;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// The table that it stands in.
    pub(crate) table: &'static str,
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// What it does: the lines of a paragraph.
    pub(crate) text: &'static [&'static str],
}

/// A table of settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What its settings are about: the lines of a paragraph.
    pub(crate) text: &'static [&'static str],
    pub(crate) keys: &'static [Key],
}

/// Declares the tables: for each a struct with a default, and its description.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])+
        [$table:ident] $type:ident {
            $( $(#[doc = $text:literal])+ $key:ident: $of:ty = $default:expr, )+
        }
    )+) => {
        /// Everything that can be configured.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct Config {
            $( $(#[doc = $about])+ pub(crate) $table: $type, )+
            /// The user's own themes.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub(crate) themes: BTreeMap<String, OwnTheme>,
        }

        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub(crate) struct $type {
                $( $(#[doc = $text])+ pub(crate) $key: $of, )+
            }

            impl Default for $type {
                fn default() -> Self {
                    Self { $( $key: $default, )+ }
                }
            }
        )+

        /// The tables, in the order of the reference.
        pub(crate) const TABLES: &[Table] = &[$(
            Table {
                name: stringify!($table),
                text: &[$($about),+],
                keys: &[$(
                    Key { table: stringify!($table), name: stringify!($key), text: &[$($text),+] },
                )+],
            },
        )+];
    };
}

tables! {
    /// What `tapdeck rec` does unless an option says otherwise.
    [rec] Rec {
        /// Record what is typed, too, as `--input` does. `--no-input` turns it off for one
        /// recording.
        input: bool = false,
        /// The folder for recordings that are given no name. Empty means `recordings` in
        /// Tapdeck's state folder. `~` stands for your home.
        folder: String = String::new(),
        /// The name of such a recording. `{date}`, `{time}`, `{program}` and `{pid}` are filled
        /// in; the ending chooses the format.
        name: String = "{date}-{time}-{program}-{pid}.ahr".into(),
        /// Mask secrets before they are written, as `--scrub` does. `--no-scrub` turns it off for
        /// one recording.
        scrub: bool = false,
        /// The file with the key that seals every recording, as `--seal` does. Empty means that
        /// recordings are not sealed.
        seal: String = String::new(),
        /// The longest pause that players of the recording make, such as `"2s"`, as
        /// `--idle-time-limit` does. The recording keeps all pauses as they were.
        idle_limit: Limit = Limit(None),
    }

    /// How `tapdeck play` and `tapdeck view` play.
    [play] Play {
        /// How many times as fast.
        speed: f64 = 1.0,
        /// The longest pause, such as `"2s"`; `"none"` leaves pauses as they were, or as the
        /// recording says.
        idle_limit: Limit = Limit(None),
        /// The theme of `tapdeck play`. Empty means that of `[theme]`; with `"none"` a recording
        /// has the colours of your terminal.
        theme: String = String::new(),
    }

    /// The viewer, `tapdeck view`.
    [view] View {
        /// The program and its arguments that branch a session. `{recording}`, `{snapshot}`,
        /// `{label}`, `{anchor}` and `{text}` are filled in.
        branch_command: Vec<String> = Vec::new(),
        /// Whether the mouse is used.
        mouse: bool = true,
        /// How many rows are kept above the screen.
        scrollback: usize = 200_000,
        /// The theme of `tapdeck view` and `tapdeck dash`. Empty means that of `[theme]`; with
        /// `"none"` they have the colours of your terminal.
        theme: String = String::new(),
    }

    /// The colours of everything that Tapdeck draws.
    [theme] Colours {
        /// The theme of `play`, `view`, `dash`, the page and exports: `"dark"`, `"light"`,
        /// `"high-contrast"`, `"sepia"`, `"dracula"` or one of your own. Empty means that terminals
        /// keep their own colours, an export has the theme of its recording, and all else is dark.
        name: String = String::new(),
    }

    /// The keys of `play` and `view`, in tmux's names, separated by spaces.
    [keys] Keys {
        /// Play or pause.
        pause: String = "Space".into(),
        /// Step forward to the next output.
        step_on: String = ".".into(),
        /// Step back to the output before.
        step_back: String = ",".into(),
        /// 5 seconds forward.
        skip_on: String = "Right".into(),
        /// 5 seconds back.
        skip_back: String = "Left".into(),
        /// 1 minute forward.
        long_skip_on: String = "S-Right".into(),
        /// 1 minute back.
        long_skip_back: String = "S-Left".into(),
        /// Next marker or snapshot.
        marker_on: String = "]".into(),
        /// Previous marker or snapshot.
        marker_back: String = "[".into(),
        /// Faster.
        faster: String = ">".into(),
        /// Slower.
        slower: String = "<".into(),
        /// Search.
        search: String = "/".into(),
        /// Next match.
        next: String = "n".into(),
        /// To the start.
        start: String = "g Home".into(),
        /// To the end.
        end: String = "G End".into(),
        /// Move the view up.
        pan_up: String = "Up k".into(),
        /// Move the view down.
        pan_down: String = "Down j".into(),
        /// Move the view left.
        pan_left: String = "M-Left".into(),
        /// Move the view right.
        pan_right: String = "M-Right".into(),
        /// Let the view follow the cursor.
        follow: String = "F".into(),
        /// Show or hide the keys.
        help: String = "?".into(),
        /// Quit.
        quit: String = "q Q C-c".into(),
    }

    /// Attached terminals, `tapdeck attach`.
    [attach] Attach {
        /// The keys to leave with, one or two in tmux's names; `"none"` for none.
        detach_keys: String = "C-\\ d".into(),
        /// Whether to say for two seconds how to leave.
        hint: bool = true,
    }

    /// The page in the browser, `tapdeck web`.
    [web] Web {
        /// The port to listen on, on this machine alone; 0 means any that is free.
        port: u16 = 0,
        /// Whether the link lets watch, and not drive. `--read-only=false` turns it off once.
        read_only: bool = false,
        /// The folder whose recordings are listed. Empty means the folder of `[rec]`.
        recordings: String = String::new(),
        /// Further names, with their ports if any, under which a browser reaches the page.
        hosts: Vec<String> = Vec::new(),
        /// Origins of other pages whose player may show live sessions.
        players: Vec<String> = Vec::new(),
        /// The theme until a visitor chooses another, also of the page that `tapdeck serve` offers.
        /// Empty means that of `[theme]`.
        theme: String = String::new(),
    }

    /// What happens when the state of a session's program changes.
    [hooks] Hooks {
        /// The program to run, with its arguments. `{session}`, `{name}`, `{state}` and `{rule}`
        /// are filled in; `TAPDECK_STATE_EVENT` has the change as JSON.
        on_state: Vec<String> = Vec::new(),
        /// The states that it is run for; all when empty.
        states: Vec<String> = Vec::new(),
        /// Whether the bell of this terminal rings.
        bell: bool = false,
        /// Whether to show a desktop notification.
        notify: bool = false,
    }

    /// What `tapdeck dash` does when the program of a session changes its state.
    [notifications] Notifications {
        /// The states that are told: `"blocked"`, `"idle"`, `"working"`, `"done"`.
        states: Vec<String> = vec!["blocked".into()],
        /// Whether the terminal rings its bell.
        bell: bool = false,
        /// Whether the terminal shows a desktop notification: `"osc9"` (iTerm2, kitty, WezTerm,
        /// Ghostty, Windows Terminal), `"osc777"` (foot, urxvt, VTE) or `"none"`.
        terminal: String = "none".into(),
    }

    /// Keys that work in every window, for `tapdeck hotkeys`.
    [hotkeys] Hotkeys {
        /// The key that captures an agent's last answer.
        capture: String = "Ctrl+Alt+C".into(),
        /// The key that pastes it into the window in front.
        paste: String = "Ctrl+Alt+V".into(),
        /// Whether to show a desktop notification for each action.
        notify: bool = false,
    }
}

impl Config {
    /// The keys of `play` and `view`.
    ///
    /// # Errors
    /// With the setting and the reason, when a key does not exist or has two actions.
    pub(crate) fn keymap(&self) -> Result<Keymap, (String, String)> {
        let keys = serde_json::to_value(&self.keys).unwrap_or_default();
        let named = |(name, keys): (&String, &Value)| {
            (name.replace('_', "-"), keys.as_str().unwrap_or_default().to_owned())
        };
        let named: Vec<_> = keys.as_object().into_iter().flatten().map(named).collect();
        Keymap::with(named.iter().map(|(name, keys)| (name.as_str(), keys.as_str())))
            .map_err(|(name, why)| (name.replace('-', "_"), why))
    }

    /// The folder whose recordings the page lists.
    #[cfg(feature = "web")]
    pub(crate) fn recordings_folder(&self) -> std::path::PathBuf {
        match [&self.web.recordings, &self.rec.folder].into_iter().find(|folder| !folder.is_empty()) {
            Some(folder) => parse::home_path(folder),
            None => tapdeck_host::state_folder().join("recordings"),
        }
    }

    /// The value of a setting, as JSON; values in this form are valid TOML, too. A setting of a
    /// theme that has no name has its default.
    pub(crate) fn value(&self, key: Key) -> Value {
        if key.table == OWN_THEME.name {
            let usual = serde_json::to_value(OwnTheme::usual()).unwrap_or_default();
            return usual.get(key.name).cloned().unwrap_or_default();
        }
        let all = serde_json::to_value(self).unwrap_or_default();
        all.get(key.table).and_then(|table| table.get(key.name)).cloned().unwrap_or_default()
    }
}

/// A length of time that limits something, or no limit: `"2s"`, `1.5` (seconds) or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

impl Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str("none"),
            Some(limit) if limit.subsec_millis() > 0 => {
                serializer.collect_str(&format_args!("{}ms", limit.as_millis()))
            }
            Some(limit) => serializer.collect_str(&format_args!("{}s", limit.as_secs())),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a duration such as \"2s\" or \"500ms\", or \"none\"")]
        enum Written {
            Text(String),
            Seconds(f64),
            Whole(u32),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Text(text) if text == "none" => return Ok(Self(None)),
            Written::Text(text) => text,
            Written::Seconds(seconds) => seconds.to_string(),
            Written::Whole(seconds) => seconds.to_string(),
        };
        parse::duration(&text).map(|limit| Self(Some(limit))).map_err(serde::de::Error::custom)
    }
}
