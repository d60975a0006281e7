//! Every setting, declared once: its table, name, type, default and description. The structs that
//! commands read, `tapdeck config` and the reference page of the manual all come from here.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapdeck_cli::keymap::Keymap;
use tapdeck_host::FailureAction;

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
        #[serde(default)]
        pub(crate) struct Config {
            $( $(#[doc = $about])+ pub(crate) $table: $type, )+
            /// The user's own themes.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub(crate) themes: BTreeMap<String, OwnTheme>,
        }

        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[serde(default)]
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
    /// Defaults of `tapdeck rec`.
    [rec] Rec {
        /// Record keyboard input, as with `--input`. `--no-input` turns it off for one recording.
        input: bool = false,
        /// Patterns for the text in front of the cursor that asks for a secret, besides those that
        /// Tapdeck knows. With `--input`, the answer is not recorded.
        secret_prompts: Vec<String> = Vec::new(),
        /// Names of Tapdeck's own rules of that kind to turn off: `"password"`, `"key"`,
        /// `"request"` or `"other-languages"`.
        ignored_prompts: Vec<String> = Vec::new(),
        /// Folder for recordings without a file name. Empty means `recordings` in Tapdeck's state
        /// folder. `~` is your home directory.
        folder: String = String::new(),
        /// File name of such a recording. `{date}`, `{time}`, `{program}` and `{pid}` are replaced;
        /// the extension selects the format.
        name: String = "{date}-{time}-{program}-{pid}.ahr".into(),
        /// Mask secrets before they are written, as with `--scrub`. `--no-scrub` turns it off for
        /// one recording.
        scrub: bool = false,
        /// Key file that seals every recording, as with `--seal`. Empty means that recordings are
        /// not sealed.
        seal: String = String::new(),
        /// Public keys of age (`age1…`), or files of them, that every recording is encrypted to, as
        /// with `--encrypt`.
        encrypt: Vec<String> = Vec::new(),
        /// Longest pause when the recording is played, such as `"2s"`, as with `--idle-time-limit`.
        /// The recording itself keeps the full pauses.
        idle_limit: Limit = Limit(None),
        /// What to do with the program when the recording fails, as with `--strict`: `"end"` or
        /// `true` ends it, `"stop"` suspends it, `"off"` or `false` lets it go on. `tapdeck serve
        /// --record` does the same.
        strict: Strict = Strict::Off,
        /// Keys for the recording behind this one, such as `"C-\\"`, as with `--prefix`, in a
        /// foreground `rec`. Empty means none.
        prefix: String = String::new(),
        /// How your terminal tells you at once that the recording has failed, as with `--alert`:
        /// `"bell"`, `"title"`, `"both"` or `"none"`.
        alert: Alert = Alert::None,
    }

    /// Keeping the files of recorded sessions, to branch from there: see `tapdeck rec --snapshots`.
    [snapshots] SnapshotSettings {
        /// What keeps them in every recording: `"git"`, `"command"`, or `"off"`.
        provider: String = "off".into(),
        /// Program, with its arguments, for `--snapshots command`. It reads a JSON object on
        /// standard input, and prints one with the `id` and the `label` of what it kept.
        command: Vec<String> = Vec::new(),
        /// Timeout of that program.
        timeout: Limit = Limit(Some(Duration::from_secs(30))),
    }

    /// Defaults of `tapdeck play` and `tapdeck view`.
    [play] Play {
        /// Playback speed.
        speed: f64 = 1.0,
        /// Longest pause, such as `"2s"`. `"none"` uses the limit of the recording, if it has one.
        idle_limit: Limit = Limit(None),
        /// Identity file of age that decrypts recordings, as with `--identity`, for every command.
        identity: String = String::new(),
        /// Theme of `tapdeck play`. Empty means that of `[theme]`; `"none"` uses the terminal's
        /// colors.
        theme: String = String::new(),
    }

    /// The viewer, `tapdeck view`.
    [view] View {
        /// Program, with its arguments, that branches a session. `{recording}`, `{snapshot}`,
        /// `{label}`, `{anchor}` and `{text}` are replaced. Empty means `tapdeck branch`, where a
        /// recording has kept files.
        branch_command: Vec<String> = Vec::new(),
        /// Use the mouse.
        mouse: bool = true,
        /// Maximum number of scrollback rows.
        scrollback: usize = 200_000,
        /// Theme of `tapdeck view` and `tapdeck dash`. Empty means that of `[theme]`; `"none"` uses
        /// the terminal's colors.
        theme: String = String::new(),
    }

    /// Colors.
    [theme] Colours {
        /// Theme of `play`, `view`, `dash`, the web page and exports: `"dark"`, `"light"`,
        /// `"high-contrast"`, `"sepia"`, `"dracula"` or one of your own. Empty means the terminal's
        /// colors in terminals, the recording's theme in exports, and `"dark"` elsewhere.
        name: String = String::new(),
    }

    /// Key bindings of `play` and `view`. Keys have tmux's names; separate several with spaces..
    [keys] Keys {
        /// Play or pause.
        pause: String = "Space".into(),
        /// Step forward to the next output.
        step_on: String = ".".into(),
        /// Step back to the previous output.
        step_back: String = ",".into(),
        /// Skip 5 seconds forward.
        skip_on: String = "Right".into(),
        /// Skip 5 seconds back.
        skip_back: String = "Left".into(),
        /// Skip 1 minute forward.
        long_skip_on: String = "S-Right".into(),
        /// Skip 1 minute back.
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
        /// Go to the start.
        start: String = "g Home".into(),
        /// Go to the end.
        end: String = "G End".into(),
        /// Move the view up.
        pan_up: String = "Up k".into(),
        /// Move the view down.
        pan_down: String = "Down j".into(),
        /// Move the view left.
        pan_left: String = "M-Left".into(),
        /// Move the view right.
        pan_right: String = "M-Right".into(),
        /// Follow the cursor.
        follow: String = "F".into(),
        /// Show or hide the help.
        help: String = "?".into(),
        /// Quit.
        quit: String = "q Q C-c".into(),
    }

    /// Defaults of `tapdeck attach`.
    [attach] Attach {
        /// Keys that detach, one or two, in tmux's names. `"none"` disables them.
        detach_keys: String = "C-\\ d".into(),
        /// Show for two seconds how to detach.
        hint: bool = true,
        /// Lines of the session's scrollback to add to your terminal's, as with `--scrollback`.
        /// `"none"` leaves your terminal's scrollback alone, and brings your screen back at the
        /// end.
        scrollback: Scrollback = Scrollback(None),
        /// Type in any of your terminals on a session without taking control first. Without it, the
        /// terminal that types keeps control until you take it. Other users, and clients over the
        /// network, always have to take it.
        share: bool = true,
        /// What else of a program's output reaches your terminal: `"notifications"`, `"progress"`
        /// (of the taskbar or the tab) and `"clipboard"`, which lets the program set your
        /// clipboard. No program can read it.
        pass: Vec<Pass> = vec![Pass::Notifications, Pass::Progress],
    }

    /// Defaults of `tapdeck web`.
    [web] Web {
        /// Port to listen on, on loopback only; 0 means any free port.
        port: u16 = 0,
        /// Make the link view-only. `--read-only=false` turns it off once.
        read_only: bool = false,
        /// Folder with the recordings to list. Empty means the folder of `[rec]`.
        recordings: String = String::new(),
        /// Additional host names, with optional ports, at which browsers may open the page.
        hosts: Vec<String> = Vec::new(),
        /// Origins of other sites whose player may show live sessions.
        players: Vec<String> = Vec::new(),
        /// Default theme of the pages of `tapdeck web` and `tapdeck serve`. Empty means that of
        /// `[theme]`.
        theme: String = String::new(),
    }

    /// How the states and turns of coding agents are found.
    [agents] AgentSettings {
        /// Journals not to read: files in which an agent itself writes what it does. `"claude"` is
        /// all of an agent, `"claude/transcript"` one of them, `"*"` all of them. Without them,
        /// Tapdeck relies on the screen.
        ignore_journals: Vec<String> = Vec::new(),
    }

    /// Actions when the state of a session's program changes.
    [hooks] Hooks {
        /// Program to run, with its arguments. `{session}`, `{name}`, `{state}` and `{rule}` are
        /// replaced. The environment variable `TAPDECK_STATE_EVENT` has the event as JSON.
        on_state: Vec<String> = Vec::new(),
        /// States to run it for; empty means all.
        states: Vec<String> = Vec::new(),
        /// Ring the terminal's bell.
        bell: bool = false,
        /// Show a desktop notification.
        notify: bool = false,
    }

    /// Notifications of `tapdeck dash` when the state of a session's program changes.
    [notifications] Notifications {
        /// States to notify about: `"blocked"`, `"idle"`, `"working"`, `"done"`.
        states: Vec<String> = vec!["blocked".into()],
        /// Ring the terminal's bell.
        bell: bool = false,
        /// How to make the terminal show a desktop notification: `"osc9"` (iTerm2, kitty, WezTerm,
        /// Ghostty, Windows Terminal), `"osc777"` (foot, urxvt, VTE) or `"none"`.
        terminal: String = "none".into(),
    }

    /// Global hotkeys of `tapdeck hotkeys`.
    [hotkeys] Hotkeys {
        /// Captures the last turn of the session in the focused window.
        capture: String = "Ctrl+Alt+C".into(),
        /// Pastes the captured turn into the session in the focused window.
        paste: String = "Ctrl+Alt+V".into(),
        /// Show a desktop notification for each action.
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

    /// The folder whose recordings the page lists and MCP offers.
    #[cfg(any(feature = "mcp", feature = "web"))]
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

/// What to do with a program whose recording fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Strict {
    /// Let it go on.
    Off,
    /// End it.
    End,
    /// Suspend it.
    Stop,
}

impl Strict {
    pub(crate) fn action(self) -> FailureAction {
        match self {
            Strict::Off => FailureAction::GoOn,
            Strict::End => FailureAction::End,
            Strict::Stop => FailureAction::Suspend,
        }
    }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected \"end\", \"stop\", \"off\", true or false")]
        enum Written {
            Plain(bool),
            Word(Word),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Word {
            Off,
            End,
            Stop,
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Plain(false) | Written::Word(Word::Off) => Strict::Off,
            Written::Plain(true) | Written::Word(Word::End) => Strict::End,
            Written::Word(Word::Stop) => Strict::Stop,
        })
    }
}

/// How a terminal tells its user that a recording has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Alert {
    /// Not at all.
    None,
    /// By its bell.
    Bell,
    /// By its title.
    Title,
    /// By both.
    Both,
}

/// What an attached terminal is told of beside what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pass {
    /// Notifications on the desktop (OSC 9, 777 and 99).
    Notifications,
    /// The progress of the program (OSC 9;4).
    Progress,
    /// What the program puts on the clipboard (OSC 52).
    Clipboard,
}

/// Lines of scrollback that an attached terminal gets, or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scrollback(pub(crate) Option<usize>);

impl FromStr for Scrollback {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            lines => lines.parse().map(|lines| Self(Some(lines))).map_err(|_| {
                format!("expected a number of lines, such as 1000, or \"none\", and not {text:?}")
            }),
        }
    }
}

impl Serialize for Scrollback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str("none"),
            Some(lines) => serializer.serialize_u64(lines as u64),
        }
    }
}

impl<'de> Deserialize<'de> for Scrollback {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number of lines, or \"none\"")]
        enum Written {
            Text(String),
            Lines(usize),
        }
        match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
            Written::Lines(lines) => Ok(Self(Some(lines))),
        }
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
