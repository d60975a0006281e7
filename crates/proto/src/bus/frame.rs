//! Frames: the screen, whole, as a delta, or for a painter.

use std::borrow::Cow;

use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fields::is_false;

/// The payload of `FRAME`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Frame {
    /// For a painter.
    Paint(Box<Paint<'static>>),
    /// For clients that know terminals.
    Screen(Box<Screen>),
}

/// A screen: whole, or the rows that changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Screen {
    /// The screen's width.
    pub cols: u16,
    /// The screen's height.
    pub rows_n: u16,
    /// The offset in the program's output.
    pub seq: u64,
    /// The window's title.
    pub title: String,
    /// What is on it.
    #[serde(flatten)]
    pub contents: Contents,
    /// Only `changed` is to be looked at, against the frame before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub delta: bool,
    /// The rows that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<Change>>,
    /// The offset that `lines` begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// The rows that were asked for, those above the screen included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
    /// Rows with escape sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ansi: Option<Vec<String>>,
    /// How many of the oldest rows of `lines` and `ansi` were left out, because the frame would be
    /// too long with them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The number of the first row that was not left out. `SNAP` with this as `before` gives the
    /// rows in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What is on a screen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contents {
    /// The rows as text; none in a delta.
    pub rows: Vec<String>,
    /// The rows as runs of cells of one style; none in a delta, and where they do not fit.
    pub cells: Vec<Vec<Run>>,
    /// The cursor's column.
    pub cx: u16,
    /// The cursor's row.
    pub cy: u16,
    /// The cursor.
    pub cursor: Cursor,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// The modes in force, by name.
    pub modes: Vec<String>,
    /// Rows above the screen.
    pub scrollback: usize,
    /// `cells` were left out, because the frame would be too long with them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub text_only: bool,
}

/// A cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub struct Cursor {
    pub visible: bool,
    pub blink: bool,
    pub shape: CursorShape,
}

/// A cursor's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CursorShape {
    #[default]
    Block,
    Underline,
    Bar,
}

/// A row that changed: `[row, text, runs]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change(
    /// Its number on the screen.
    pub u16,
    /// Its text.
    pub String,
    /// Its runs.
    pub Vec<Run>,
);

/// Cells of one style: `[col, text, fg, bg, bold, italic, underline, strike, blink]`, and where
/// there is more to the style, [`More`] as a tenth element.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The first column.
    pub col: u16,
    /// The text.
    pub text: String,
    /// The color of the text, in six hexadecimal digits.
    pub fg: String,
    /// The color behind it.
    pub bg: String,
    /// Bold.
    pub bold: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined in any way.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// Blinking.
    pub blink: bool,
    /// What else there is to the style.
    pub more: Option<Box<More>>,
}

#[cfg(feature = "schema")]
type Basic = (u16, String, String, String, bool, bool, bool, bool, bool);

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut tuple = to.serialize_tuple(9 + usize::from(self.more.is_some()))?;
        tuple.serialize_element(&self.col)?;
        for text in [&self.text, &self.fg, &self.bg] {
            tuple.serialize_element(text)?;
        }
        for flag in [self.bold, self.italic, self.underline, self.strike, self.blink] {
            tuple.serialize_element(&flag)?;
        }
        if let Some(more) = &self.more {
            tuple.serialize_element(more)?;
        }
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> serde::de::Visitor<'de> for Elements {
            type Value = Run;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a run of nine or ten elements")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Run, A::Error> {
                macro_rules! next {
                    () => {
                        seq.next_element()?.ok_or_else(|| serde::de::Error::invalid_length(0, &self))?
                    };
                }
                let run = Run {
                    col: next!(),
                    text: next!(),
                    fg: next!(),
                    bg: next!(),
                    bold: next!(),
                    italic: next!(),
                    underline: next!(),
                    strike: next!(),
                    blink: next!(),
                    more: seq.next_element()?,
                };
                // Newer sessions may say more.
                while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                Ok(run)
            }
        }
        from.deserialize_seq(Elements)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Run {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = <Basic as schemars::JsonSchema>::json_schema(generator);
        let more = generator.subschema_for::<More>();
        schema.insert("items".into(), more.to_value());
        schema.insert("maxItems".into(), 10.into());
        schema.insert(
            "description".into(),
            "[col, text, fg, bg, bold, italic, underline, strike, blink, more?]".into(),
        );
        schema
    }
}

/// What else there is to a style.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct More {
    /// The color of the text as the program named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<Colour>,
    /// The color behind it as the program named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<Colour>,
    /// Faint.
    #[serde(skip_serializing_if = "is_false")]
    pub faint: bool,
    /// Concealed.
    #[serde(skip_serializing_if = "is_false")]
    pub conceal: bool,
    /// Colors swapped.
    #[serde(skip_serializing_if = "is_false")]
    pub inverse: bool,
    /// With a line above.
    #[serde(skip_serializing_if = "is_false")]
    pub overline: bool,
    /// The kind of underline, where it is not a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underline: Option<Cow<'static, str>>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A color as a program names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Colour {
    /// A place in the palette.
    Indexed(u8),
    /// Six hexadecimal digits.
    Rgb(String),
}

/// A screen for a painter that knows nothing of terminals: the rows that changed, or all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paint<'a> {
    /// Always true.
    pub paint: bool,
    /// All rows of the screen are in `changed`.
    pub full: bool,
    /// The offset in the program's output.
    pub seq: u64,
    /// The screen's width.
    pub cols: u16,
    /// The screen's height.
    pub rows_n: u16,
    /// The number of the screen's first row, counted from the first that the session ever had.
    pub top: u64,
    /// The number of the oldest row that is kept.
    pub first: u64,
    /// The window's title.
    pub title: String,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// The program wants the mouse.
    pub mouse: bool,
    /// The program wants the mouse's moves, too.
    pub moves: bool,
    /// The wheel is typed as arrow keys.
    pub wheel: bool,
    /// The program wants to know of the focus.
    pub focus: bool,
    /// The color of text without a style.
    pub fg: String,
    /// The color behind it.
    pub bg: String,
    /// The cursor.
    pub cursor: PaintCursor,
    /// Styles, which pieces name by their place, from 1.
    pub styles: Vec<PaintStyle>,
    /// The rows.
    pub changed: Vec<PaintRow<'a>>,
}

/// A cursor for a painter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub struct PaintCursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
    pub blink: bool,
    pub shape: CursorShape,
    /// What stands under it.
    pub text: String,
    /// The cells that it takes.
    pub width: u16,
    pub colour: String,
}

/// A style for a painter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PaintStyle {
    /// The color of the text, where it is not the screen's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f: Option<String>,
    /// The color behind it, where it is not the screen's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    /// Letters of attributes: `b`old, `d`im, `i`talic, blin`k`, `s`trike, `o`verline, `c`onceal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub a: String,
    /// The kind of underline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub u: Option<Cow<'static, str>>,
    /// The underline's color.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uc: Option<String>,
    /// Where a link leads, on the web only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l: Option<String>,
}

/// A row for a painter: `[number, flags, pieces]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaintRow<'a>(
    /// Its number, counted from the first row that the session ever had.
    pub u64,
    /// 1 the text goes on in the next row, 2 double width, 4 and 8 the halves of double height.
    pub u8,
    /// Its pieces.
    pub Vec<Piece<'a>>,
);

/// Cells of one style for a painter: `[col, width, text, style]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Piece<'a>(
    /// The first column.
    pub u16,
    /// The cells that it takes; negative for a glyph that may not fill them exactly.
    pub i32,
    /// The text.
    pub Cow<'a, str>,
    /// The place in `styles`, from 1; 0 is the plain one.
    pub usize,
);

/// `ROWS`: rows for a painter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaintedRows<'a> {
    /// The number of the oldest row that is kept.
    pub first: u64,
    /// The number of the screen's first row.
    pub top: u64,
    /// The first row that was asked for.
    pub from: u64,
    /// How far the reply goes.
    pub to: u64,
    /// The screen's width.
    pub cols: u16,
    /// Styles, which pieces name by their place, from 1.
    pub styles: Vec<PaintStyle>,
    /// The rows.
    pub changed: Vec<PaintRow<'a>>,
}
