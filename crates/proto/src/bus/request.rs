//! What clients send: one type a verb.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::answer::{Answer, Answered};
use super::theme::PaintTheme;
use super::which_turn::WhichTurn;
use super::{NO_SIZE, Role, json, reply};
use crate::fields::{self, PayloadError, is_false, is_true};

/// The longest text of `FIND`, in bytes.
pub const MAX_NEEDLE: usize = 1000;
/// The longest label of `MARK`, in bytes.
pub const MAX_LABEL: usize = 1000;
/// The longest text of `PASTE`, in bytes.
pub const MAX_PASTE: usize = 8 << 20;

/// A request whose reply has a type of its own.
pub trait Ask: Sized {
    /// The verb.
    const VERB: &'static str;
    /// The reply's verb.
    const REPLY: &'static str;
    /// The reply's payload.
    type Reply: serde::de::DeserializeOwned;

    /// Reads the request from what follows its verb.
    ///
    /// # Errors
    /// When the payload cannot be read; the error is the reason for a `DENIED`.
    fn from_payload(payload: &str) -> Result<Self, PayloadError>;

    /// Writes what follows the verb: one line.
    fn to_payload(&self) -> String;
}

/// A request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Sessions ignore verbs that they do not know, so that newer clients can talk to older
    /// sessions.
    #[error("no verb is called {0:.20}")]
    UnknownVerb(String),
    /// The payload is not what the verb takes.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// A verb, as documentation, the page and tests know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verb {
    /// The verb.
    pub verb: &'static str,
    /// What a client needs to use it, in the words of `core::Need`; `nothing` for the greeting.
    pub needs: &'static str,
    /// Whether the page may send it.
    pub page: bool,
    /// A payload to try it with.
    pub example: &'static str,
    /// What its type does not say about the payload, in Markdown.
    pub payload: &'static str,
    /// What its type does not say about the reply, in Markdown.
    pub reply: &'static str,
}

/// What has to be up to date before a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Nothing.
    Nothing,
    /// The output, passed on to all clients.
    Output,
    /// The turns and the program's state.
    Turns,
    /// Output, turns and state.
    Both,
}

impl Reads {
    /// Returns whether the output has to be up to date.
    pub fn output(self) -> bool {
        matches!(self, Reads::Output | Reads::Both)
    }

    /// Returns whether the turns have to be up to date.
    pub fn turns(self) -> bool {
        matches!(self, Reads::Turns | Reads::Both)
    }
}

macro_rules! verbs {
    ($($verb:literal $variant:ident($payload:ty) $kind:ident -> $said:literal $reply:ty,
        needs $needs:literal, reads $reads:ident, page $page:literal, example $example:literal,
        $takes:literal, $gives:literal;)+) => {
        /// What a client asks for. A session answers every variant.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $(#[doc = concat!("`", $verb, "`")] $variant($payload),)+
        }

        /// All verbs.
        pub const VERBS: &[Verb] = &[$(Verb {
            verb: $verb,
            needs: $needs,
            page: $page,
            example: $example,
            payload: $takes,
            reply: $gives,
        },)+];

        /// Returns the types of all payloads and replies, in the order of [`VERBS`].
        #[cfg(feature = "schema")]
        pub fn exchanges() -> Vec<crate::schema::Exchange> {
            use crate::schema::{Exchange, Message};
            vec![$(Exchange {
                verb: $verb,
                payload: verbs!(@schema $kind $payload),
                reply_verb: $said,
                reply: Message::new::<$reply>($said),
            },)+]
        }

        impl Request {
            /// Reads a request. The verb may be in any case.
            ///
            /// # Errors
            /// When the verb is unknown, or its payload cannot be read.
            pub fn parse(verb: &str, payload: &str) -> Result<Self, RequestError> {
                match verb.to_ascii_uppercase().as_str() {
                    $($verb => Ok(Self::$variant(<$payload>::from_payload(payload)?)),)+
                    verb => Err(RequestError::UnknownVerb(verb.to_owned())),
                }
            }

            /// Returns the verb.
            pub fn verb(&self) -> &'static str {
                match self { $(Self::$variant(_) => $verb,)+ }
            }

            /// Writes what follows the verb.
            pub fn payload(&self) -> String {
                match self { $(Self::$variant(asked) => asked.to_payload(),)+ }
            }

            /// Returns what has to be up to date before the request is answered.
            pub fn reads(&self) -> Reads {
                match self { $(Self::$variant(_) => Reads::$reads,)+ }
            }
        }

        $(impl Ask for $payload {
            const VERB: &'static str = $verb;
            const REPLY: &'static str = $said;
            type Reply = $reply;
            verbs!(@$kind);
        }

        impl From<$payload> for Request {
            fn from(asked: $payload) -> Self {
                Self::$variant(asked)
            }
        })+
    };
    // A JSON object, or nothing.
    (@object) => {
        fn from_payload(payload: &str) -> Result<Self, PayloadError> {
            fields::object(payload)
        }
        fn to_payload(&self) -> String {
            match json(self) {
                empty if empty == "{}" => String::new(),
                payload => payload,
            }
        }
    };
    // The rest of the line, as it is.
    (@text) => {
        fn from_payload(payload: &str) -> Result<Self, PayloadError> {
            Ok(Self(payload.to_owned()))
        }
        fn to_payload(&self) -> String {
            self.0.clone()
        }
    };
    // Nothing; what stands there is ignored.
    (@none) => {
        fn from_payload(_: &str) -> Result<Self, PayloadError> {
            Ok(Self)
        }
        fn to_payload(&self) -> String {
            String::new()
        }
    };
    // JSON, by functions of its own.
    (@json) => { verbs!(@own); };
    // A word, by functions of its own.
    (@word) => { verbs!(@own); };
    (@own) => {
        fn from_payload(payload: &str) -> Result<Self, PayloadError> {
            Self::read(payload)
        }
        fn to_payload(&self) -> String {
            self.write()
        }
    };
    (@schema object $payload:ty) => { crate::schema::Payload::Json(Message::new::<$payload>(<$payload>::VERB)) };
    (@schema json $payload:ty) => { crate::schema::Payload::Json(Message::new::<$payload>(<$payload>::VERB)) };
    (@schema none $payload:ty) => { crate::schema::Payload::None };
    (@schema $other:ident $payload:ty) => { crate::schema::Payload::Text };
}

verbs! {
    "HELLO" Hello(Hello) json -> "OK" reply::Welcome,
        needs "nothing", reads Nothing, page false, example "",
        "`role` is `observer` by default; with `watch` the client does not claim the stick",
        "the connection ends after `DENIED`";
    "SNAP" Snap(Snap) object -> "FRAME" super::Screen,
        needs "watch", reads Output, page true, example "",
        "",
        "if the rows do not fit in a frame, it has the newest ones, with `omitted` and `from`";
    "INFO" Info(InfoWanted) word -> "INFO" reply::Info,
        needs "watch", reads Both, page true, example "brief",
        "none, or `brief`: without the screen",
        "`state` is `lost` if the exit is unknown";
    "SUB" Sub(Sub) object -> "OK" reply::Subscribed,
        needs "watch", reads Output, page true, example "{\"frames\":\"none\"}",
        "by default `frames` is `full`, `out` and `looks` are `true`",
        "then pushes";
    "ACK" Ack(Ack) none -> "OK" reply::Nothing,
        needs "watch", reads Nothing, page true, example "",
        "a frame has been drawn",
        "only with an id";
    "ROWS" Rows(Rows) object -> "ROWS" super::PaintedRows<'static>,
        needs "watch", reads Output, page true, example "{\"from\":0,\"to\":1}",
        "rows by number, `to` excluded",
        "at most 500 rows; `to` is the end of them";
    "FIND" Find(Find) object -> "FIND" reply::Found,
        needs "watch", reads Output, page true, example "{\"text\":\"x\"}",
        "smart case",
        "the newest 1000; a hit is `[row, col, width]`";
    "LINE" Line(Line) text -> "OK" reply::Nothing,
        needs "drive", reads Nothing, page false, example "x",
        "the rest of the line; like KEY and CMD it claims the stick if no client holds it",
        "only with an id";
    "KEY" Key(Key) json -> "OK" reply::Typed,
        needs "drive", reads Output, page true, example "\"x\"",
        "a string is sent unchanged; an object is encoded for the program's modes; `col` and `row` are cells from 0, `x` and `y` pixels for programs that ask for them; `mods` are letters of `S`, `M` and `C`; with the `fence` of a TAKE, denied if the stick has changed hands since",
        "only with `confirm`; otherwise as LINE";
    "CMD" Cmd(Cmd) text -> "RESP" reply::Captured,
        needs "drive", reads Both, page false, example "x",
        "the rest of the line",
        "";
    "PASTE" Paste(Paste) object -> "PASTE" reply::Pasted,
        needs "drive", reads Both, page true, example "{\"text\":\"x\",\"wait_ms\":1}",
        "without `enter: false`, Enter is pressed after the text",
        "`pasted` with `enter: false` only";
    "ANSWER" Answer(Answer) object -> "ANSWER" Answered,
        needs "drive", reads Both, page true, example "{\"choice\":\"yes\",\"wait_ms\":1}",
        "`choice` is `yes`, `no`, an option's number, its label or a unique part of it; `text` is typed where the question takes text",
        "`no_such_choice` and `nothing_asked` mean that nothing was sent";
    "TURNS" Turns(Turns) object -> "TURNS" Vec<super::Turn>,
        needs "watch", reads Turns, page true, example "",
        "",
        "the optional fields with `whole` only, but never `raw`";
    "TURN" Turn(WhichTurn) object -> "TURN" super::Turn,
        needs "watch", reads Turns, page true, example "{}",
        "by default the last turn",
        "`raw` is base64";
    "EXPLAIN" Explain(Explain) none -> "EXPLAIN" reply::Explained,
        needs "watch", reads Turns, page true, example "",
        "",
        "";
    "BROKER" Broker(Broker) none -> "OK" reply::Brokered,
        needs "administer", reads Nothing, page false, example "",
        "",
        "whether the session has registered with a broker";
    "TAKE" Take(Take) none -> "OK" reply::Taken,
        needs "drive", reads Nothing, page true, example "",
        "",
        "";
    "RELEASE" Release(Release) none -> "OK" reply::Released,
        needs "drive, and the stick", reads Nothing, page true, example "",
        "",
        "";
    "RESIZE" Resize(Resize) object -> "OK" reply::Resized,
        needs "the stick, or administer", reads Nothing, page true, example "{\"cols\":80,\"rows\":24}",
        "",
        "";
    "MARK" Mark(Mark) object -> "OK" reply::Nothing,
        needs "drive", reads Output, page true, example "{\"label\":\"here\"}",
        "at most 1000 bytes; marks this moment in the recordings of the session",
        "denied if the session is not recorded";
    "INSTRUCT" Instruct(Instruct) object -> "OK" reply::Instructed,
        needs "drive", reads Output, page true, example "{\"text\":\"x\"}",
        "at most 61440 bytes of `text`; by default it is new, and stands behind all output; with the `id` of another it replaces that, and without `text` deletes it",
        "denied if the session is not recorded as an .ahr, where it is within 250 ms";
    "KILL" Kill(Kill) object -> "OK" reply::Nothing,
        needs "the stick, or administer", reads Nothing, page false, example "{\"signal\":\"CONT\"}",
        "without a signal, the session ends the program",
        "";
    "REC" Rec(Rec) object -> "OK" reply::Recorded,
        needs "administer", reads Nothing, page false, example "{}",
        "`path` is absolute; `stop` is the path of a recording to stop",
        "";
    "PAUSE" Pause(Pause) object -> "OK" reply::Paused,
        needs "administer", reads Nothing, page false, example "{\"pause\":true}",
        "`pause` is true to pause the recordings of the session, and false to let them go on; without it, they do what they do not do now",
        "denied if the session is not recorded";
    "RENAME" Rename(Rename) object -> "OK" reply::Nothing,
        needs "administer", reads Nothing, page false, example "{\"name\":\"x\"}",
        "the new name of the session",
        "denied if the name is taken";
}

/// `HELLO`: who the client is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Hello {
    /// The role that the client asks for; the session may grant less.
    #[serde(deserialize_with = "role")]
    pub role: Role,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "fields::lenient")]
    pub name: Option<String>,
    /// The credential that grants the role.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "token")]
    pub token: Option<String>,
    /// The longest frame that the client takes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_frame: Option<u64>,
    /// Do not claim the stick.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub watch: bool,
}

impl Hello {
    fn read(payload: &str) -> Result<Self, PayloadError> {
        match payload.trim() {
            "" => Ok(Self::default()),
            text => match serde_json::from_str(text) {
                Ok(value @ Value::Object(_)) => fields::checked(value),
                _ => Err(PayloadError::Form("HELLO takes a JSON object".to_owned())),
            },
        }
    }

    fn write(&self) -> String {
        json(self)
    }
}

fn role<'de, D: Deserializer<'de>>(from: D) -> Result<Role, D::Error> {
    fields::by(from, |value| match value {
        Value::Null => Ok(Role::Observer),
        value => value
            .as_str()
            .and_then(Role::from_name)
            .ok_or_else(|| format!("a role is human, bot or observer, and not {}", fields::short(value))),
    })
}

fn token<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    fields::by(from, |value| match value {
        Value::Null => Ok(None),
        Value::String(token) => Ok(Some(token.clone())),
        _ => Err("the token is wrong"),
    })
}

/// `SNAP`: the screen as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Snap {
    /// Rows with escape sequences, too.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub ansi: bool,
    /// The rows above the screen, too.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub scrollback: bool,
    /// The rows that were written to since this offset in the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Of those rows, the ones in front of this number: see [`super::Screen::from`].
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "fields::lenient")]
    pub before: Option<u64>,
}

/// `INFO`: the session, with its screen or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InfoWanted {
    /// With the screen.
    #[default]
    Full,
    /// Without it.
    Brief,
}

impl InfoWanted {
    #[expect(clippy::unnecessary_wraps, reason = "payloads are read alike")]
    fn read(payload: &str) -> Result<Self, PayloadError> {
        Ok(if payload.trim() == "brief" { Self::Brief } else { Self::Full })
    }

    fn write(self) -> String {
        match self {
            InfoWanted::Full => String::new(),
            InfoWanted::Brief => "brief".to_owned(),
        }
    }
}

/// How a subscriber gets the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Frames {
    /// Not at all.
    None,
    /// Whole, each time.
    #[default]
    Full,
    /// The rows that changed.
    Delta,
    /// For a painter that knows nothing of terminals: see [`super::Paint`].
    Paint,
}

/// `SUB`: push what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sub {
    /// How the screen is sent.
    #[serde(deserialize_with = "frames")]
    pub frames: Frames,
    /// Whether the output is sent.
    #[serde(skip_serializing_if = "is_true", deserialize_with = "fields::or_yes")]
    pub out: bool,
    /// Frames a second at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fps: Option<u64>,
    /// Send the output from this offset on, as far as it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Frames that are sent before an `ACK`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether this subscription counts as looking at the last screen.
    #[serde(skip_serializing_if = "is_true", deserialize_with = "fields::or_yes")]
    pub looks: bool,
    /// The colors of `paint` frames and of `ROWS`; xterm's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<PaintTheme>,
}

impl Default for Sub {
    fn default() -> Self {
        Self {
            frames: Frames::Full,
            out: true,
            max_fps: None,
            since: None,
            window: None,
            looks: true,
            theme: None,
        }
    }
}

fn frames<'de, D: Deserializer<'de>>(from: D) -> Result<Frames, D::Error> {
    fields::by(from, |value| match value.as_str() {
        _ if value.is_null() => Ok(Frames::Full),
        Some("full") => Ok(Frames::Full),
        Some("delta") => Ok(Frames::Delta),
        Some("none") => Ok(Frames::None),
        Some("paint") => Ok(Frames::Paint),
        _ => Err(format!("frames are full, delta, paint or none, and not {value}")),
    })
}

/// `ACK`: the client has drawn a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack;

/// `ROWS`: rows by their number, for a painter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnyRows")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Rows {
    /// The first row.
    pub from: u64,
    /// The row behind the last one.
    pub to: u64,
}

#[derive(Deserialize)]
struct AnyRows {
    #[serde(default, deserialize_with = "fields::lenient")]
    from: Option<u64>,
    #[serde(default, deserialize_with = "fields::lenient")]
    to: Option<u64>,
}

impl TryFrom<AnyRows> for Rows {
    type Error = &'static str;

    fn try_from(any: AnyRows) -> Result<Self, Self::Error> {
        match (any.from, any.to) {
            (Some(from), Some(to)) => Ok(Self { from, to }),
            _ => Err("ROWS takes {\"from\": …, \"to\": …}, the second not included"),
        }
    }
}

/// `FIND`: where a text stands in all rows that are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnyText")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Find {
    /// The text, in smart case.
    pub text: String,
}

#[derive(Deserialize)]
struct AnyText {
    #[serde(default, deserialize_with = "fields::lenient")]
    text: Option<String>,
}

impl TryFrom<AnyText> for Find {
    type Error = &'static str;

    fn try_from(any: AnyText) -> Result<Self, Self::Error> {
        match any.text {
            Some(text) if !text.is_empty() && text.len() <= MAX_NEEDLE => Ok(Self { text }),
            _ => Err("FIND takes {\"text\": …} of at most 1000 bytes"),
        }
    }
}

/// `LINE`: types a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line(pub String);

/// `CMD`: types a line, and captures the output up to the next prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmd(pub String);

/// `KEY`: types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Key {
    /// A text that is sent as it is.
    Raw(String),
    /// Keys and text, encoded for the program's modes.
    Typed(Typing),
}

impl Key {
    fn read(payload: &str) -> Result<Self, PayloadError> {
        let malformed = |e| PayloadError::Form(format!("KEY takes a JSON string: {e}"));
        match serde_json::from_str(payload).map_err(malformed)? {
            Value::String(text) => Ok(Key::Raw(text)),
            value @ Value::Object(_) => fields::checked(value).map(Key::Typed),
            _ => Err(PayloadError::Form("KEY takes a JSON string".to_owned())),
        }
    }

    fn write(&self) -> String {
        match self {
            Key::Raw(text) => json(text),
            Key::Typed(typing) => json(typing),
        }
    }
}

/// What is typed, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnyTyping")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Typing {
    /// Keys by their names, as tmux spells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Text; line ends are typed as Enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text, in brackets where the program asked for bracketed paste.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    /// The mouse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mouse: Option<Mouse>,
    /// Whether the terminal has gained the focus, or lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<bool>,
    /// Reply with `OK {seq}`.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub confirm: bool,
    /// Refuse if the stick has changed hands since `TAKE` gave this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

/// The fields of [`Typing`] in any kind: `null` is not the same as left out.
#[derive(Deserialize)]
struct AnyTyping {
    #[serde(default, deserialize_with = "fields::present")]
    keys: Option<Value>,
    #[serde(default, deserialize_with = "fields::present")]
    text: Option<Value>,
    #[serde(default, deserialize_with = "fields::present")]
    paste: Option<Value>,
    #[serde(default, deserialize_with = "fields::present")]
    mouse: Option<Value>,
    #[serde(default, deserialize_with = "fields::present")]
    focus: Option<Value>,
    #[serde(default, deserialize_with = "fields::or_default")]
    confirm: bool,
    #[serde(default)]
    fence: Option<u64>,
}

impl TryFrom<AnyTyping> for Typing {
    type Error = String;

    fn try_from(any: AnyTyping) -> Result<Self, String> {
        let given = [&any.keys, &any.text, &any.paste, &any.mouse, &any.focus];
        if given.iter().all(|value| value.is_none()) {
            return Err(
                "KEY takes a JSON string, or an object with one of keys, text, paste, mouse, focus".into()
            );
        }
        let string = |value: &Value, what: &str| {
            value.as_str().map(str::to_owned).ok_or_else(|| format!("{what} is a string, and not {value}"))
        };
        let keys = |value: Value| {
            let names = value.as_array().ok_or("\"keys\" is an array of names")?;
            names.iter().map(|name| string(name, "a key")).collect::<Result<_, String>>()
        };
        Ok(Self {
            keys: any.keys.map(keys).transpose()?,
            text: any.text.map(|text| string(&text, "text")).transpose()?,
            paste: any.paste.map(|text| string(&text, "paste")).transpose()?,
            mouse: any.mouse.map(|mouse| Mouse::read(&mouse)).transpose()?,
            focus: any
                .focus
                .map(|gained| gained.as_bool().ok_or("\"focus\" is true or false"))
                .transpose()?,
            confirm: any.confirm,
            fence: any.fence,
        })
    }
}

/// An event of the mouse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mouse {
    /// What happened.
    pub kind: MouseKind,
    /// The button; a press and a release have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Button>,
    /// The column, from 0.
    pub col: u16,
    /// The row, from 0.
    pub row: u16,
    /// The place in pixels, for programs that ask for those.
    #[serde(default, deserialize_with = "pixels")]
    pub x: u16,
    /// The place in pixels.
    #[serde(default, deserialize_with = "pixels")]
    pub y: u16,
    /// Modifiers: letters of `S`hift, `M`eta and `C`ontrol.
    #[serde(default, deserialize_with = "mods", skip_serializing_if = "String::is_empty")]
    pub mods: String,
}

impl Mouse {
    fn read(value: &Value) -> Result<Self, String> {
        let wrong =
            "a mouse event has kind (press, release or move), button, col and row, and x, y and mods at will";
        // serde reads a struct from a list, too.
        let object = Some(value).filter(|value| value.is_object()).ok_or(wrong)?;
        let event = Self::deserialize(object).map_err(|_| wrong)?;
        let needs_button = event.kind != MouseKind::Move;
        let known = event.mods.chars().all(|c| matches!(c, 'S' | 'M' | 'C'));
        if needs_button && event.button.is_none() || !known {
            return Err(wrong.to_owned());
        }
        Ok(event)
    }
}

fn pixels<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    Ok(fields::lenient(from)?.unwrap_or_default())
}

fn mods<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(fields::lenient(from)?.unwrap_or_default())
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MouseKind {
    /// A button went down.
    Press,
    /// A button came up.
    Release,
    /// The pointer moved.
    Move,
}

/// A button of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Button {
    Left,
    Middle,
    Right,
    WheelUp,
    WheelDown,
    WheelLeft,
    WheelRight,
}

/// `PASTE`: delivers a prompt, and confirms that it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnyPaste")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Paste {
    /// The text.
    pub text: String,
    /// Whether Enter is pressed behind it.
    #[serde(skip_serializing_if = "is_true")]
    #[cfg_attr(feature = "schema", schemars(default = "fields::yes"))]
    pub enter: bool,
    /// Whether control characters are sent, too, and line ends typed.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub raw: bool,
    /// Whether what stands in the program's input field is deleted first.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub clear: bool,
    /// Whether it waits its turn for as long as that takes, an hour at most.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub queue: bool,
    /// How long each step may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

impl Paste {
    /// Submits a text as a prompt.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), enter: true, raw: false, clear: false, queue: false, wait_ms: None }
    }
}

#[derive(Deserialize)]
struct AnyPaste {
    #[serde(default, deserialize_with = "fields::lenient")]
    text: Option<String>,
    #[serde(default = "fields::yes", deserialize_with = "fields::or_yes")]
    enter: bool,
    #[serde(default, deserialize_with = "fields::or_default")]
    raw: bool,
    #[serde(default, deserialize_with = "fields::or_default")]
    clear: bool,
    #[serde(default, deserialize_with = "fields::or_default")]
    queue: bool,
    #[serde(default)]
    wait_ms: Option<u64>,
}

impl TryFrom<AnyPaste> for Paste {
    type Error = &'static str;

    fn try_from(any: AnyPaste) -> Result<Self, Self::Error> {
        let text = any.text.clone().filter(|text| text.len() <= MAX_PASTE);
        let text = text.ok_or("PASTE takes {\"text\": …} of at most 8 MiB")?;
        let AnyPaste { enter, raw, clear, queue, wait_ms, .. } = any;
        Ok(Self { text, enter, raw, clear, queue, wait_ms })
    }
}

/// `TURNS`: the turns that are kept, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Turns {
    /// Only so many, the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// With their texts.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub whole: bool,
}

/// `EXPLAIN`: the program's state, and the evidence for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Explain;

/// `BROKER`: registers the session with the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Broker;

/// `TAKE`: takes the stick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Take;

/// `RELEASE`: gives the stick up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Release;

/// `RESIZE`: sets the size of the session's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "AnySize")]
#[cfg_attr(feature = "schema", schemars(!try_from))]
pub struct Resize {
    /// Columns, from 1 to 10000.
    pub cols: u16,
    /// Rows, from 1 to 10000.
    pub rows: u16,
}

#[derive(Deserialize)]
struct AnySize {
    #[serde(default, deserialize_with = "fields::lenient")]
    cols: Option<u16>,
    #[serde(default, deserialize_with = "fields::lenient")]
    rows: Option<u16>,
}

impl TryFrom<AnySize> for Resize {
    type Error = &'static str;

    fn try_from(any: AnySize) -> Result<Self, Self::Error> {
        let side = |n: Option<u16>| n.filter(|n| (1..=10_000).contains(n));
        match (side(any.cols), side(any.rows)) {
            (Some(cols), Some(rows)) => Ok(Self { cols, rows }),
            _ => Err(NO_SIZE),
        }
    }
}

/// `MARK`: marks this moment in the recordings of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Mark {
    /// A name for the moment; may be empty.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// `INSTRUCT`: writes, changes or deletes an instruction in the recording of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Instruct {
    /// The id of the instruction to change or delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Bytes of the recording's output before its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_byte: Option<u64>,
    /// Number of the line that it stands behind, if the client knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The snapshot to branch from, if the client knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotPlace>,
    /// What to do differently from there on.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A snapshot in the recording of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotPlace {
    /// Its number.
    pub id: u64,
    /// Bytes of output before it.
    pub anchor_byte: u64,
    /// Its label.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// `KILL`: ends the program, or sends it a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Kill {
    /// The signal's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// `PAUSE`: pauses the recordings of the session, or lets them go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pause {
    /// Which of the two; left out for the one that they do not do now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<bool>,
}

/// `RENAME`: gives the session another name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rename {
    /// The new name.
    pub name: String,
}

/// `REC`: starts or stops a recording of the running session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rec {
    /// The recording that is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Where it is recorded; absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Record what is typed.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub input: bool,
    /// Record what is typed without an echo, too.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub hidden_input: bool,
    /// How hard the recording is compressed, from 0 to 11.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "fields::lenient")]
    pub quality: Option<u64>,
    /// Replace a file that is there.
    #[serde(skip_serializing_if = "is_false", deserialize_with = "fields::or_default")]
    pub overwrite: bool,
    /// The recording's title.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "fields::lenient")]
    pub title: Option<String>,
    /// The recording's tags: names and values, which may be empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "fields::or_default")]
    pub tags: BTreeMap<String, String>,
    /// Packs of rules that mask secrets.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "packs")]
    pub scrub: Option<Vec<String>>,
    /// Public keys that the recording is encrypted to, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<String>,
}

fn packs<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    fields::by(from, |value| match value {
        Value::Null => Ok(None),
        list => serde_json::from_value(list.clone()).map(Some).map_err(|_| "scrub takes a list of packs"),
    })
}
